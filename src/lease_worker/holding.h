/*-------------------------------------------------------------------------
 *
 * holding.h
 *		The lease that the worker holds: obtain, resume, renew, change and release it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HOLDING_H
#define HOLDING_H

#include "worker.h"

extern Plan *look_around(Worker *worker);
extern void keep_address(Worker *worker);
extern bool check_realm(const Worker *worker, RealmCall *call, char *realm_id);
extern void settle_in_realm(Worker *worker, const char *realm_id);
extern void leave_realm(Worker *worker);
extern void forget_requests(Worker *worker);
extern void resume_lease(Worker *worker);
extern bool obtain_lease(Worker *worker, RealmCall *call);
extern bool renew_lease(Worker *worker, RealmCall *call);
extern void release_lease(Worker *worker);
extern void change_size(Worker *worker, RealmCall *call, int wanted);

#endif							/* HOLDING_H */
