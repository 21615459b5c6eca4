/*-------------------------------------------------------------------------
 *
 * messages.h
 *		What the lease worker says: in the view scru64_lease and in the log.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MESSAGES_H
#define MESSAGES_H

#include "lease_worker/worker.h"

extern void publish(Worker *worker);
extern void set_busy(Worker *worker, bool busy);
extern void failed(Worker *worker, const RealmCall *call);
extern void forget_failures(Worker *worker);
extern void log_lease(const HeldLease *lease);
extern void log_lapse(const HeldLease *lease, const char *problem);
extern void log_release(const HeldLease *lease, bool done, const char *problem);
extern void log_node(const HeldLease *held, const HeldLease *old, const char *reason);
extern void log_size(Worker *worker, const HeldLease *old);
extern void log_size_problem(Worker *worker, const char *problem);

#endif							/* MESSAGES_H */
