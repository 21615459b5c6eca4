/*-------------------------------------------------------------------------
 *
 * generate_errors.h
 *		The errors that scru64_generate() raises if there is no ID, and its lines in the log.
 *
 * generate.c and session_node.c call.  The caller has decided that there is an error; each function here says why, and what to do.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GENERATE_ERRORS_H
#define GENERATE_ERRORS_H

#include "shmem/slot.h"
#include "shmem/worker_mailbox.h"

pg_noreturn extern void generate_fail_in_recovery(void);
pg_noreturn extern void generate_fail_in_parallel_worker(void);
pg_noreturn extern void generate_fail_no_node(void);
pg_noreturn extern void generate_fail_overlap(const NodeReport *conflict);
pg_noreturn extern void generate_fail_clock_behind(uint64 state);
pg_noreturn extern void generate_fail_no_lease(const LeaseInfo *info, bool has_worker_slot);
pg_noreturn extern void generate_fail_lease_over(const LeaseInfo *info, uint64 tick);

extern void generate_log_start(uint64 state);
extern void generate_log_rollback(uint64 seen, uint64 now);
extern void generate_log_wait(uint64 state);
extern void generate_log_own_node_spec(void);
extern char *generate_warn_of_clock(uint64 state, int64 wait_ms);
extern char *generate_warn_of_flush(int64 waited_ms);
extern char *generate_warn_of_standbys(int64 waited_ms);

#endif							/* GENERATE_ERRORS_H */
