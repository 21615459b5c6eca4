/*-------------------------------------------------------------------------
 *
 * lifecycle.h
 *		The steps of the lease worker: acquire, activate, renew, replace and return a lease.
 *
 *-------------------------------------------------------------------------
 */
#ifndef LIFECYCLE_H
#define LIFECYCLE_H

#include "lease_worker/worker.h"

extern bool load_ceiling(void);
extern bool acquire_lease(Worker *worker, RealmCall *call, int node_id_size, HeldLease *lease);
extern bool activate_lease(Worker *worker, RealmCall *call, HeldLease *lease);
extern void activate_standby_lease(Worker *worker);
extern void resume_lease(Worker *worker);
extern bool renew_lease(Worker *worker, RealmCall *call);
extern bool replace_lease(Worker *worker, RealmCall *call, int node_id_size);
extern void return_lease(Worker *worker);

#endif							/* LIFECYCLE_H */
