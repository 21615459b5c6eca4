/*-------------------------------------------------------------------------
 *
 * holding.h
 *		The lease that the worker holds: obtain, resume, renew, give and release it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HOLDING_H
#define HOLDING_H

#include "lease_worker/worker.h"

extern void resume_lease(Worker *worker);
extern bool ask_for_lease(Worker *worker, RealmCall *call, int node_id_size, HeldLease *lease);
extern void begin_lease(Worker *worker, const HeldLease *lease);
extern bool begin_anew(Worker *worker, RealmCall *call, HeldLease *lease);
extern bool obtain_lease(Worker *worker, RealmCall *call);
extern bool renew_lease(Worker *worker, RealmCall *call);
extern void give_lease(Worker *worker);
extern void shield(Worker *worker, RealmCall *call, HeldLease *lease);
extern uint64 start_id(const HeldLease *lease);
extern void release_lease(Worker *worker);
extern void forget_request(Worker *worker);
extern void leave_realm(Worker *worker);

#endif							/* HOLDING_H */
