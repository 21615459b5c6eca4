/*-------------------------------------------------------------------------
 *
 * messages.h
 *		What the lease worker writes to the log.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MESSAGES_H
#define MESSAGES_H

#include "lease_worker/worker.h"

extern void log_realm(const char *realm_id);
extern void log_failure(Worker *worker, bool other_realm);
extern void log_lease(const HeldLease *lease);
extern void log_resumption(const HeldLease *lease);
extern void log_promotion(const HeldLease *lease, bool activated, bool in_window);
extern void log_unrenewable(const HeldLease *lease, const char *problem);
extern void log_replacement(const HeldLease *lease, const HeldLease *old, const char *reason);
extern void log_size_problem(const Worker *worker);
extern void log_return(const HeldLease *lease, bool done, const char *problem);

#endif							/* MESSAGES_H */
