/*-------------------------------------------------------------------------
 *
 * sim.h
 *		What all parts of the simulator use.  main.c includes the parts, each after those that
 *		the part uses, but for what is declared at the end here.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIM_H
#define SIM_H

#include "postgres.h"

#include "pg_compat.h"

#include <inttypes.h>
#include <time.h>
#include <ucontext.h>

#include "access/twophase.h"
#include "access/xloginsert.h"
#include "common/pg_prng.h"
#include "libpq-fe.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/bufmgr.h"
#include "storage/condition_variable.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/procarray.h"
#include "storage/smgr.h"
#include "storage/spin.h"
#include "utils/memutils.h"

#include "ceiling/ceiling.h"
#include "generate/generate_errors.h"
#include "generate/session_node.h"
#include "pure/base36.h"
#include "shmem/worker_mailbox.h"
#include "shmem/leased_slot.h"
#include "shmem/open_transactions.h"
#include "type/id_time.h"

#define MS				INT64CONST(1000000)
#define SEC				(1000 * MS)
#define NEVER			INT64_MAX
#define START_CLOCK		(INT64CONST(1750000000) * SEC)
#define FIRST_XID		4

/* A function of a line or two, as most of those in place of PostgreSQL's */
#define FN(type, name, arguments, ...) type name arguments { __VA_ARGS__ }

/*
 * Variables in a section.  Each process has its own of the first (core.ld says more); a start
 * of the server clears the second, and a history begins with all of the third cleared.
 */
#define PROCESS_LOCAL	__attribute__((section("core_data")))
#define SERVER_LOCAL	__attribute__((section("server_data")))
#define HISTORY_LOCAL	__attribute__((section("history_data")))
#define CLEAR(section) \
	do { \
		extern char __start_##section[], __stop_##section[]; \
		memset(__start_##section, 0, (size_t) (__stop_##section - __start_##section)); \
	} while (0)

/* A line of the trace; and what must not happen, which ends the history */
#define trace(...)		((void) (is_verbose && print_line(__VA_ARGS__)))
#define violation(...)	((void) (begin_violation() && print_line(__VA_ARGS__)), end_history())

/* In a script one process runs, the clock stands, and each line is what to do and what comes of it. */
#define script(...)		((void) (is_script && printf(__VA_ARGS__)))

/* one of the values, by chance */
#define PICK(...)		(((const int64[]) {__VA_ARGS__})[rnd(lengthof(((const int64[]) {__VA_ARGS__})))])

/* What a history is like.  1in: once in so many times, 0 never */

#define MAX_NODES		8

typedef struct Swarm
{
	int64		sessions, n_nodes, watermarks;	/* watermarks: of 100 statements */
	bool		has_worker, has_standby;
	bool		is_uneven;		/* some bursts are long, most are short */
	bool		is_slow;		/* each flush takes longer than the ceiling is ahead */
	bool		is_corrected;	/* a clock that was ahead, as durability.md says */
	bool		is_calm;		/* nothing makes IDs go back */
	int64		lease_ticks;	/* the longest lease */
	int64		realm_nodes;	/* 1: all sessions use it */
	NodeKey		configured_key;	/* of a node of the realm that is configured, too, or 0 */
	int64		burst;			/* scheduling points until another process runs */
	int64		step_ns, flush_ms, max_jump;
	int64		jump_1in, crash_1in, cancel_1in, set_1in, allowance_1in, standby_1in, stall_1in, signal_1in,
				fail_1in, lose_1in, lose_page_1in, serials_1in, prepare_1in, finish_1in, stale_1in,
				no_row_1in;
	Scru64Node	nodes[MAX_NODES];
	uint64		first_xid;
} Swarm;

static Swarm swarm;

/* Used before they are defined */
extern XLogRecPtr flushed, standby_flushed;
extern void events(void);
extern void check_atomic(volatile Atomic *at, uint64 value, const void *code);
extern void release_view(const volatile void *lock);
extern void check_nothing_held(void);
extern uint64 ceiling_at(XLogRecPtr lsn);
extern bool waits_for_standby(void);
extern bool realm_has_leased(NodeKey key, uint64 tick);
extern void worker_main(void);
extern void worker_sleeps(int64 ms);
extern void recover_transactions(bool forks);

#endif							/* SIM_H */
