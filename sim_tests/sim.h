/*-------------------------------------------------------------------------
 *
 * sim.h
 *		What the parts of the simulator share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIM_H
#define SIM_H

#include "postgres.h"

#include "pg_compat.h"

#include "access/xact.h"
#include "storage/proc.h"
#include "utils/snapshot.h"

#include "pure/node_spec.h"
#include "settings.h"

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

/* schedule.c: chance, time, and the processes */

#define MAX_PROCESSES	8

typedef struct Process
{
	int			number;
	bool		is_alive;
	int64		wakes_at;		/* asleep until this time */
	int64		stalled_until;
	const volatile void *awaits;	/* or until another process wakes this */
} Process;

extern Process processes[MAX_PROCESSES], *me;	/* me is NULL: the scheduler runs */
extern int64 now_ns, clock_offset_ns;	/* the monotonic clock, and how far the clock is ahead of it */
extern uint64 seed;
extern int	incarnation;		/* of the server, in this history */
extern bool is_verbose, is_violated, is_over;
extern const char *crash_reason;	/* NULL: the server runs */
extern int	points_of_call;

extern void seed_chance(uint64 of_history);
extern uint32 rnd(int64 n);
extern bool one_in(int64 n);
extern int64 rnd_scale(int64 least, int64 most);
extern void save_pristine(void);
extern void load_pristine(void);
extern void start_process(int number, void (*main) (void));
extern void run_processes(void);
extern void scheduling_point(void);
extern void sleep_until(int64 ns, const volatile void *awaited);
extern void nap(int64 ns);
extern void wake(const volatile void *awaited);
extern bool print_line(const char *fmt,...) pg_attribute_printf(1, 2);
extern bool begin_violation(void);
extern void crash(const char *reason);
extern void end_history(void);

#define trace(...)		((void) (is_verbose && print_line(__VA_ARGS__)))
#define violation(...)	((void) (begin_violation() && print_line(__VA_ARGS__)), end_history())

/* In a script one process runs, the clock stands, and each line is what to do and what comes of it. */
extern bool is_script;
#define script(...)		((void) (is_script && printf(__VA_ARGS__)))

/* one of the values, by chance */
#define PICK(...)		(((const int64[]) {__VA_ARGS__})[rnd(lengthof(((const int64[]) {__VA_ARGS__})))])

/* main.c: what a history is like.  1in: once in so many times, 0 never */

#define MAX_NODES		8

typedef struct Swarm
{
	int64		sessions, n_nodes, watermarks;	/* watermarks: of 100 statements */
	bool		has_worker, has_parallel, has_standby;
	bool		is_slow;		/* each flush takes longer than the ceiling is ahead */
	bool		loads_late;		/* sessions load the library when they use it */
	bool		is_corrected;	/* a clock that was ahead, as durability.md says */
	int64		lease_ticks;	/* the longest lease */
	int64		realm_nodes;	/* 1: all sessions use it */
	int64		burst;			/* scheduling points until another process runs */
	int64		step_ns, flush_ms, max_jump;
	int64		jump_1in, crash_1in, cancel_1in, set_1in, allowance_1in, standby_1in, stall_1in,
				fail_1in, lose_1in, lose_page_1in, serials_1in;
	Scru64Node	nodes[MAX_NODES];
	uint64		first_xid;
} Swarm;

extern Swarm swarm;

extern void events(void);

/* memory.c: atomics, as weak as C11 allows */

#define MAX_SEGMENTS	4
#define SEGMENT_SIZE	(16 * 1024)

extern bool is_weak;
extern char shared_memory[MAX_SEGMENTS][SEGMENT_SIZE];

extern void see_all(void);
extern void acquire_view(const volatile void *lock);
extern void release_view(const volatile void *lock);

/* server.c: what the sources call of PostgreSQL */

#define MAX_PREPARED	3

extern PGPROC procs[MAX_PROCESSES + MAX_PREPARED];
extern Latch latches[MAX_PROCESSES];
extern bool is_canceled[MAX_PROCESSES];
extern SnapshotData active_snapshot;
extern int	error_code;
extern uint64 next_xid, latest_completed;
extern XactCallback xact_callback;

pg_noreturn extern void raise_error(int code, const char *message);
extern void must_be_quiet(const char *what);
extern void check_nothing_held(void);
extern void release_everything(void);
extern void forget_transaction_memory(void);
extern void lock_procs(void);
extern void cancel(Process *process);
extern void begin_process(void);
extern uint64 next_after(uint64 xid);
extern TimestampTz time_of_ns(int64 ns);

/* storage.c: the page, the WAL, the standby */

typedef enum RecordType
{
	RECORD_ANY, RECORD_CEILING, RECORD_COMMIT, RECORD_PREPARE
} RecordType;

typedef enum Recovery
{
	RECOVER_CRASH, RECOVER_FAILOVER, RECOVER_RESTORE
} Recovery;

extern XLogRecPtr flushed, standby_flushed;

extern XLogRecPtr wal_insert(RecordType type, int transaction, uint64 xid);
extern uint64 ceiling_at(XLogRecPtr lsn);
extern bool waits_for_standby(void);
extern void wait_for_standby(XLogRecPtr lsn);
extern void storage_events(void);
extern void recover(Recovery recovery);

/* check.c: what must hold */

typedef enum TransactionState
{
	TRANSACTION_ABORTED, TRANSACTION_OPEN, TRANSACTION_PREPARED, TRANSACTION_COMMITTED
} TransactionState;

typedef struct Transaction
{
	uint64		xid;
	TransactionState state, recovered;	/* recovered: by the WAL */
	uint64		visible_at;		/* when new snapshots saw it: commits are counted */
	int			first_id;		/* its IDs are in issued[] from here on */
} Transaction;

typedef struct Issued
{
	uint64		id;
	NodeKey		key;
	int			transaction;
	uint64		greatest;		/* of the node's up to this one */
	bool		is_row;
	bool		is_rolled_back;	/* the row will never be seen */
	bool		is_forgotten;	/* may be issued again */
	bool		is_replicated;	/* its session has waited for the standby */
} Issued;

#define MAX_TRANSACTIONS 32768
#define MAX_ISSUED		32768

extern Transaction transactions[MAX_TRANSACTIONS];
extern Issued issued[MAX_ISSUED];
extern int	n_transactions, n_issued;
extern uint64 visible_count;
extern uint64 max_tick;			/* of the IDs that count */
extern int	set_count;			/* how often IDs or watermarks may have gone back */

extern Datum call(PGFunction function, FunctionCallInfo fcinfo);
extern void node_is_set(void);
extern int	got_id(uint64 id, int transaction);
extern void now_visible(int transaction);
extern void got_watermark(uint64 watermark, uint64 visible_at, int set_count_then);
extern void begin_chain(void);
extern void begin_set(uint64 tick);
extern void end_set(bool has_failed);
extern void ceiling_is_written(uint64 ceiling);
extern void call_has_flushed(void);
extern void clock_is_read(int64 ns);
extern void begin_incarnation(void);
extern void end_incarnation(void);
extern void forget_ids(bool keeps_rows, bool keeps_replicated);

/* worker.c: the lease worker */

extern bool realm_has_leased(NodeKey key, uint64 tick);
extern void worker_main(void);

/* workload.c: the sessions */

extern void begin_transaction(void);
extern void abort_transaction(void);
extern void load_library(void);
extern void create_extension(void);
extern void start_workload(void);
extern void workload_events(void);
extern void recover_transactions(bool forks);

#endif							/* SIM_H */
