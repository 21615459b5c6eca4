/*-------------------------------------------------------------------------
 *
 * lease.c
 *		How sessions and the lease worker reach each other.
 *
 * A session that needs a node starts the worker, wakes it, and waits.  The worker, of a
 * library of its own, acquires a lease, activates it in leased_slot.c, shows its state
 * here and wakes all sessions that wait.  That there is no lease, or none any more, is an
 * answer here, and an error in attach.c.
 *
 * A lease is a window in ID space: its IDs are of ticks after that of its grant, and
 * not after that of its expiry, both by the realm's clock.  The upper end is the
 * limit of the lease's slot, the lower end its start.  No clock of this server
 * comes into it.
 *
 * What guards what:
 *
 *	Lease.changed		itself.
 *	all else of Lease	Lease.mutex, locked for a copy only.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/condition_variable.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/spin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "pure/look_ahead.h"
#include "settings.h"
#include "shmem/lease.h"
#include "shmem/leased_slot.h"
#include "shmem/slots.h"

/* How long a session waits for the worker, and between looks */
#define MAX_WAIT_MS			10000
#define NAP_MS				200

/* Between the start of a worker and the next; and if a worker does not even start */
#define WORKER_PAUSE_MS		5000
#define REGISTER_PAUSE_MS	60000

/* When the postmaster restarts the worker that it has registered itself */
#define WORKER_RESTART_S	60

extern PGDLLEXPORT void scru64_start_lease_worker(Datum arg);

typedef struct Lease
{
	slock_t		mutex;
	LeaseInfo	info;
	Latch	   *worker_latch;	/* NULL: there is no worker */
	bool		called;			/* does a session wait for the realm? */
	int64		next_start_ms;	/* no session starts a worker before this */
	ConditionVariable changed;	/* info, or the leased slot */
} Lease;

static Lease *the_lease = NULL;

static void
init_lease(void *memory)
{
	Lease	   *new_lease = memory;

	memset(new_lease, 0, sizeof(Lease));
	SpinLockInit(&new_lease->mutex);
	ConditionVariableInit(&new_lease->changed);
}

Size
lease_size(void)
{
	return sizeof(Lease);
}

static Lease *
shared_lease(void)
{
	if (the_lease == NULL)
		the_lease = compat_shared_memory(SHARED_MEMORY_NAME("lease"), sizeof(Lease), init_lease);
	return the_lease;
}

LeaseInfo
lease_info(void)
{
	Lease	   *lease = shared_lease();
	LeaseInfo	info;

	SpinLockAcquire(&lease->mutex);
	info = lease->info;
	SpinLockRelease(&lease->mutex);
	return info;
}

/*
 * It starts on a standby, too, to hold a lease for its promotion.
 *
 * The postmaster forgets a worker that a session has registered as soon as it ends,
 * however it ends, so none that fails keeps a place of max_worker_processes.  The next
 * session that needs a worker starts another.
 */
static const BackgroundWorker lease_worker = {
	.bgw_name = "scru64 lease worker",
	.bgw_type = "scru64 lease worker",
	.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
	.bgw_start_time = BgWorkerStart_ConsistentState,
	.bgw_restart_time = BGW_NEVER_RESTART,
	.bgw_library_name = "scru64",
	.bgw_function_name = "scru64_start_lease_worker"
};

/*
 * To be called while the library is preloaded: the worker starts with the server.  The
 * postmaster restarts it, since no session of a standby does.
 */
void
register_lease_worker(void)
{
	BackgroundWorker worker = lease_worker;

	worker.bgw_restart_time = WORKER_RESTART_S;
	if (*scru64_realm != '\0')
		RegisterBackgroundWorker(&worker);
}

/*
 * The sessions' side
 */

/* Wake the worker, if there is one: to look at the node's load, or to call the realm. */
void
lease_wake_worker(bool call_realm)
{
	Lease	   *lease = shared_lease();
	Latch	   *latch;

	SpinLockAcquire(&lease->mutex);
	lease->called |= call_realm;
	latch = lease->worker_latch;
	SpinLockRelease(&lease->mutex);
	if (latch != NULL)
		SetLatch(latch);
}

/* The same, and start one if there is none.  False if "max_worker_processes" are running. */
bool
lease_call_worker(bool call_realm)
{
	Lease	   *lease = shared_lease();
	BackgroundWorker worker = lease_worker;
	int64		now_ms = monotonic_ms();
	bool		is_due;

	lease_wake_worker(call_realm);
	SpinLockAcquire(&lease->mutex);
	is_due = lease->info.worker_pid == 0 && now_ms >= lease->next_start_ms;
	if (is_due)
		lease->next_start_ms = now_ms + REGISTER_PAUSE_MS;
	SpinLockRelease(&lease->mutex);
	if (!is_due || RegisterDynamicBackgroundWorker(&worker, NULL))
		return true;
	SpinLockAcquire(&lease->mutex);
	lease->next_start_ms = now_ms;
	SpinLockRelease(&lease->mutex);
	return false;
}

static void
nap(void)
{
	static uint32 wait_event = 0;

	if (wait_event == 0)
		wait_event = compat_wait_event("Scru64Lease");
	(void) ConditionVariableTimedSleep(&shared_lease()->changed, NAP_MS, wait_event);
}

/*
 * Is it worth waiting for the worker?  One that holds a standby's lease activates it
 * next, as recovery has ended, whatever has failed.
 */
static bool
worth_waiting(const LeaseInfo *info, uint64 began)
{
	TimestampTz enough = GetCurrentTimestamp() + MAX_WAIT_MS * INT64CONST(1000);

	return monotonic_ms() - began < MAX_WAIT_MS &&
		(info->busy || info->is_standby_lease ||
		 (info->failures == 0 && info->next_attempt_at < enough));
}

/*
 * The slot of the server's lease, and its node.  Waits for the worker, cancellably and not
 * for long.  NULL if there is no lease then; *info, and *has_place (is there a place for a
 * worker?), say why.
 *
 * Ordering: a session reads busy before the slot; the worker, which activates a lease
 * while it is busy, writes them the other way round (litmus: busy-slot).
 */
NodeSlot *
lease_find_slot(NodeKey *key, LeaseInfo *info, bool *has_place)
{
	uint64		began = monotonic_ms();
	NodeReport	look;
	bool		has_lease;

	*info = lease_info();
	while (!(has_lease = scru64_leased_look(&look)))
	{
		/* also if this session does not wait: the next attempt is sooner */
		*has_place = lease_call_worker(true);
		if (!*has_place || !worth_waiting(info, began))
			break;
		nap();
		*info = lease_info();
	}
	ConditionVariableCancelSleep();
	if (!has_lease)
		return NULL;
	*key = node_key(look.node);
	return &node_slots->leased;
}

/*
 * Wait until the window of the lease reaches a tick, or the slot is another
 * node's.  False if no renewal is on its way that may reach it, or it takes too long.  How
 * far the limit is from the tick says nothing of how long is left: it stays where it is until
 * the lease is renewed.
 *
 * Ordering: a session reads busy before the limit; the worker, which raises the limit
 * while it is busy, writes them the other way round (litmus: busy-limit).
 */
bool
lease_wait_for_renewal(NodeSlot *slot, NodeKey key, uint64 tick, LeaseInfo *info)
{
	uint64		began = monotonic_ms();
	uint64		state;
	bool		reached;

	/* from here on no change is missed */
	ConditionVariablePrepareToSleep(&shared_lease()->changed);
	(void) lease_call_worker(true);
	do
	{
		nap();
		*info = lease_info();
		reached = !node_slot_read(slot, key, &state) || node_slot_limit(slot) >= tick;
	} while (!reached && worth_waiting(info, began) &&
			 (info->busy ||
			  look_ahead_is_reached(tick, node_slot_limit(slot), Max(clock_ms(), 0) >> SCRU64_TICK_SHIFT,
									MAX_WAIT_MS)));
	ConditionVariableCancelSleep();
	return reached;
}

/*
 * The worker's side
 */

/*
 * Copy what went wrong to where sessions see it: on one line, and of ASCII, as the
 * database that a session reads it in may have any encoding.
 */
void
scru64_lease_copy_problem(char problem[LEASE_TEXT_LEN], const char *text)
{
	strlcpy(problem, text, LEASE_TEXT_LEN);
	for (char *c = problem; *c != '\0'; c++)
	{
		if (*c == '\n' || *c == '\r' || *c == '\t')
			*c = c[1] == '\0' ? '\0' : ' ';
		else if (*c < ' ' || *c > '~')
			*c = '?';
	}
}

/* Show all sessions the worker's state, and wake those that wait. */
void
scru64_lease_set_info(const LeaseInfo *info)
{
	Lease	   *lease = shared_lease();

	SpinLockAcquire(&lease->mutex);
	lease->info = *info;
	if (info->worker_pid == 0)
		lease->worker_latch = NULL;
	SpinLockRelease(&lease->mutex);
	ConditionVariableBroadcast(&lease->changed);
}

/* Become the server's only lease worker, which sessions call.  False if there is one. */
static bool
claim(void)
{
	Lease	   *lease = shared_lease();
	int64		now_ms = monotonic_ms();
	bool		claimed;

	SpinLockAcquire(&lease->mutex);
	claimed = lease->info.worker_pid == 0;
	if (claimed)
	{
		lease->info.worker_pid = MyProcPid;
		lease->worker_latch = MyLatch;
		lease->next_start_ms = now_ms + WORKER_PAUSE_MS;
	}
	SpinLockRelease(&lease->mutex);
	return claimed;
}

/* The worker ends, also by an error: no session is to wait for it. */
static void
leave(int code, Datum arg)
{
	LeaseInfo	info = lease_info();

	(void) code;
	(void) arg;
	info.worker_pid = 0;
	info.busy = false;
	scru64_lease_set_info(&info);
}

/* An error ends the worker.  Show all sessions why; and the log, once in a while. */
static void
note_error(void)
{
	LeaseInfo	info = lease_info();
	ErrorData  *error;

	HOLD_INTERRUPTS();
	LWLockReleaseAll();
	MemoryContextSwitchTo(TopMemoryContext);
	error = CopyErrorData();
	if (log_is_due(LOG_LEASE_WORKER, 0))
		EmitErrorReport();
	/* only the worker that has claimed its place changes this */
	info.failures++;
	info.worker_failed = true;
	info.last_error_at = GetCurrentTimestamp();
	info.next_attempt_at = info.last_error_at + WORKER_PAUSE_MS * INT64CONST(1000);
	scru64_lease_copy_problem(info.last_error, error->message);
	scru64_lease_set_info(&info);
}

/*
 * The entry of the worker, which is in a library that is linked with libpq.  It claims its
 * place before it loads that, so there is one at most, also where that fails.
 */
void
scru64_start_lease_worker(Datum arg)
{
	(void) arg;
	ensure_slots();
	/* two sessions may have started a worker at the same time */
	if (!claim())
		proc_exit(0);
	before_shmem_exit(leave, (Datum) 0);
	if (*scru64_realm == '\0')
		proc_exit(0);
	PG_TRY();
	{
		void		(*worker_main) (Datum) = (void (*) (Datum))
			load_external_function("$libdir/scru64_lease", "scru64_lease_main", true, NULL);

		/* another release may have been installed since this library was loaded */
		worker_main(CStringGetDatum(SHARED_MEMORY_NAME("lease worker")));
	}
	PG_CATCH();
	{
		note_error();
	}
	PG_END_TRY();
	/* quietly, unless the postmaster is to restart it */
	proc_exit(MyBgworkerEntry->bgw_restart_time == BGW_NEVER_RESTART ? 0 : 1);
}

/* Has a session called since the last time? */
bool
scru64_lease_was_called(void)
{
	Lease	   *lease = shared_lease();
	bool		called;

	SpinLockAcquire(&lease->mutex);
	called = lease->called;
	lease->called = false;
	SpinLockRelease(&lease->mutex);
	return called;
}
