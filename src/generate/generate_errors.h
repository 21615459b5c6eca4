/*-------------------------------------------------------------------------
 *
 * generate_errors.h
 *		The errors of generation, and its lines in the log.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GENERATE_ERRORS_H
#define GENERATE_ERRORS_H

#include "shmem/lease.h"
#include "shmem/slot.h"

pg_noreturn extern void generate_in_recovery(void);
pg_noreturn extern void generate_in_parallel_worker(void);
pg_noreturn extern void node_spec_not_set(void);
pg_noreturn extern void node_overlaps(const NodeReport *conflict);
pg_noreturn extern void clock_behind(uint64 state);
pg_noreturn extern void no_lease(const LeaseInfo *info, bool has_worker_slot);
pg_noreturn extern void lease_is_over(const LeaseInfo *info, uint64 tick);

extern void log_start(uint64 state);
extern void log_rollback(uint64 seen, uint64 now);
extern void log_wait(uint64 state);
extern void log_own_node_spec(void);

#endif							/* GENERATE_ERRORS_H */
