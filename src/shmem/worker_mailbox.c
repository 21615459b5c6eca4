/*-------------------------------------------------------------------------
 *
 * worker_mailbox.c
 *		How sessions and the lease worker reach each other.
 *
 * A session that needs the leased node starts the worker, if there is none, wakes it, and
 * waits.  The worker, which is in a library of its own, acquires a lease, activates it in
 * leased_slot.c, publishes its own state here, and wakes all waiting sessions.  Functions
 * here return false or NULL if there is no lease; session_node.c raises the error.  A session
 * waits for ten seconds at most, and the wait can be cancelled.
 *
 * What guards what:
 *
 *	Mailbox.changed		a condition variable, which guards itself.
 *	all else			Mailbox.lock, held only to copy or assign fields.
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
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "pure/look_ahead.h"
#include "settings.h"
#include "shmem/leased_slot.h"
#include "shmem/slots.h"
#include "shmem/worker_mailbox.h"

#define MAX_WAIT_MS			10000	/* the longest wait of a session for the worker */
#define NAP_MS				200		/* a waiting session looks again at least so often */
#define WORKER_PAUSE_MS		5000	/* from a worker's start to the next registration */
#define REGISTER_PAUSE_MS	60000	/* from a registration, if the worker does not start */
#define WORKER_RESTART_S	60		/* until the postmaster restarts a preloaded worker */

extern PGDLLEXPORT void scru64_start_lease_worker(Datum arg);

typedef struct Mailbox
{
	LWLock		lock;
	LeaseInfo	info;
	Latch	   *worker_latch;	/* NULL: there is no worker */
	bool		called;			/* has a session asked the worker to call the realm? */
	int64		next_start_ms;	/* no session registers a worker before this */
	ConditionVariable changed;	/* info or the leased slot has changed */
} Mailbox;

static Mailbox *mailbox_of_server = NULL;

static void
init_mailbox(void *part, int tranche_id)
{
	Mailbox    *mailbox = part;

	LWLockInitialize(&mailbox->lock, tranche_id);
	ConditionVariableInit(&mailbox->changed);
}

const SharedPart mailbox_part = {
	.size = sizeof(Mailbox),
	.init = init_mailbox,
	.part = (void **) &mailbox_of_server
};

static Mailbox *
shared_mailbox(void)
{
	shared_parts_attach();
	return mailbox_of_server;
}

LeaseInfo
mailbox_info(void)
{
	Mailbox    *mailbox = shared_mailbox();
	LeaseInfo	info;

	LWLockAcquire(&mailbox->lock, LW_SHARED);
	info = mailbox->info;
	LWLockRelease(&mailbox->lock);
	return info;
}

/*
 * The worker also starts on a standby, to hold a lease for the promotion.
 *
 * Because of BGW_NEVER_RESTART the postmaster forgets the worker as soon as it ends, even by
 * an error.  So a failed worker occupies none of max_worker_processes, and the next session
 * that needs a worker registers another one.
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
 * Call this while the library is preloaded: the worker then starts with the server.  The
 * postmaster restarts this worker, because on a standby no session registers another.
 */
void
mailbox_register_worker(void)
{
	BackgroundWorker worker = lease_worker;

	worker.bgw_restart_time = WORKER_RESTART_S;
	if (*scru64_realm != '\0')
		RegisterBackgroundWorker(&worker);
}

/*
 * The sessions' side
 */

/* Wake the worker, if there is one: to call the realm, or only to look at the node's load. */
void
mailbox_wake_worker(bool call_realm)
{
	Mailbox    *mailbox = shared_mailbox();
	Latch	   *latch;

	LWLockAcquire(&mailbox->lock, LW_EXCLUSIVE);
	mailbox->called |= call_realm;
	latch = mailbox->worker_latch;
	LWLockRelease(&mailbox->lock);
	if (latch != NULL)
		SetLatch(latch);
}

/* Wake the worker, or register one.  Returns false if max_worker_processes has no room. */
bool
mailbox_call_worker(bool call_realm)
{
	Mailbox    *mailbox = shared_mailbox();
	BackgroundWorker worker = lease_worker;
	int64		now_ms = monotonic_ms();
	bool		is_due;
	bool		registered;

	mailbox_wake_worker(call_realm);
	LWLockAcquire(&mailbox->lock, LW_EXCLUSIVE);
	is_due = mailbox->info.worker_pid == 0 && now_ms >= mailbox->next_start_ms;
	if (is_due)
		mailbox->next_start_ms = now_ms + REGISTER_PAUSE_MS;
	LWLockRelease(&mailbox->lock);
	if (!is_due)
		return true;
	registered = RegisterDynamicBackgroundWorker(&worker, NULL);
	LWLockAcquire(&mailbox->lock, LW_EXCLUSIVE);
	mailbox->info.no_worker_slot = !registered;
	if (!registered)
		mailbox->next_start_ms = now_ms;
	LWLockRelease(&mailbox->lock);
	return registered;
}

static void
sleep_until_changed(void)
{
	(void) ConditionVariableTimedSleep(&shared_mailbox()->changed, NAP_MS,
									   compat_wait_event("Scru64Lease"));
}

/*
 * Is it worth waiting for the worker?  If the worker holds a standby's lease, it activates
 * the lease next, even after failures: sessions wait only when recovery has ended.
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
 * Is a renewal under way, or due, that may move the limit to a tick, or is the tick near enough for
 * the next one?  A worker that is missing, or has just been started, renews the lease first.  The
 * distance from limit to tick does not shrink during a wait, because the limit moves only on
 * renewal; so the distance is compared with all of MAX_WAIT_MS.
 */
static bool
renewal_may_reach(const LeaseInfo *info, uint64 limit, uint64 tick)
{
	return info->busy || (info->worker_pid == 0 && !info->no_worker_slot) ||
		info->next_attempt_at <= GetCurrentTimestamp() ||
		look_ahead_is_reached(tick, limit, Max(clock_ms(), 0) >> SCRU64_TICK_SHIFT, MAX_WAIT_MS);
}

/*
 * For scru64_check(), which calls no worker: as far as it is known, would a session that has no
 * lease wait for the worker, and get one?  If there is no worker, the session would start one.
 */
bool
mailbox_may_bring_lease(const LeaseInfo *info)
{
	return IsUnderPostmaster && !info->no_worker_slot &&
		(info->worker_pid != 0 || !shared_parts_are_mixed()) &&
		worth_waiting(info, monotonic_ms());
}

/* The same for a session whose next ID is of a tick above the limit of the lease */
bool
mailbox_may_renew(const LeaseInfo *info, uint64 limit, uint64 tick)
{
	return mailbox_may_bring_lease(info) && renewal_may_reach(info, limit, tick);
}

/*
 * Returns the slot of the server's lease, and its node in *key.  If there is no lease, waits
 * for the worker, for MAX_WAIT_MS at most; the wait can be cancelled.  If there is still no
 * lease, returns NULL; *info, and *has_worker_slot (does max_worker_processes have room for
 * the worker?), then give the reason.
 *
 * Ordering: a session reads busy before the slot.  The worker activates a lease while it is
 * busy: it writes the slot before it clears busy (mutants: slot-before-busy,
 * busy-cleared-early).
 */
NodeSlot *
mailbox_find_slot(NodeKey *key, LeaseInfo *info, bool *has_worker_slot)
{
	uint64		began = monotonic_ms();
	NodeReport	report;
	bool		has_lease;

	*info = mailbox_info();
	while (!(has_lease = scru64_leased_report(&report)))
	{
		/* even if this session will not wait, its call brings the next attempt forward */
		*has_worker_slot = mailbox_call_worker(true);
		if (!*has_worker_slot || !worth_waiting(info, began))
			break;
		sleep_until_changed();
		*info = mailbox_info();
	}
	ConditionVariableCancelSleep();
	if (!has_lease)
		return NULL;
	*key = node_key(report.node);
	return &node_slots->leased;
}

/*
 * Wait until the window of the lease reaches a tick, or the slot has another node.  Returns
 * false if no renewal that may reach the tick is under way, or if it takes too long.
 *
 * Ordering: a session reads busy before the limit.  The worker renews a lease while it is
 * busy: it raises the limit before it clears busy (mutants: limit-before-busy,
 * busy-cleared-early).
 */
bool
mailbox_wait_for_renewal(NodeSlot *slot, NodeKey key, uint64 tick, LeaseInfo *info)
{
	uint64		began = monotonic_ms();
	uint64		state;
	bool		reached;

	/* after this the session misses no change */
	ConditionVariablePrepareToSleep(&shared_mailbox()->changed);
	(void) mailbox_call_worker(true);
	do
	{
		sleep_until_changed();
		*info = mailbox_info();
		reached = !node_slot_read(slot, key, &state) || node_slot_limit(slot) >= tick;
	} while (!reached && worth_waiting(info, began) &&
			 renewal_may_reach(info, node_slot_limit(slot), tick));
	ConditionVariableCancelSleep();
	return reached;
}

/*
 * The worker's side
 */

/* Copy a text for sessions: as one line of ASCII, for databases of any encoding. */
void
scru64_mailbox_copy_text(char *copy, const char *text, size_t size)
{
	strlcpy(copy, text, size);
	for (char *c = copy; *c != '\0'; c++)
	{
		if (*c == '\n' || *c == '\r' || *c == '\t')
			*c = c[1] == '\0' ? '\0' : ' ';
		else if (*c < ' ' || *c > '~')
			*c = '?';
	}
}

/* Publish the worker's state to all sessions, and wake the waiting ones. */
void
scru64_mailbox_set_info(const LeaseInfo *info)
{
	Mailbox    *mailbox = shared_mailbox();

	LWLockAcquire(&mailbox->lock, LW_EXCLUSIVE);
	mailbox->info = *info;
	if (info->worker_pid == 0)
		mailbox->worker_latch = NULL;
	LWLockRelease(&mailbox->lock);
	ConditionVariableBroadcast(&mailbox->changed);
}

/* Become the server's only lease worker.  Returns false if there is one already. */
static bool
become_worker(void)
{
	Mailbox    *mailbox = shared_mailbox();
	int64		now_ms = monotonic_ms();
	bool		claimed;

	LWLockAcquire(&mailbox->lock, LW_EXCLUSIVE);
	claimed = mailbox->info.worker_pid == 0;
	if (claimed)
	{
		mailbox->info.worker_pid = MyProcPid;
		mailbox->info.no_worker_slot = false;
		mailbox->worker_latch = MyLatch;
		mailbox->next_start_ms = now_ms + WORKER_PAUSE_MS;
	}
	LWLockRelease(&mailbox->lock);
	return claimed;
}

/*
 * Called when the worker ends, even by an error: sessions must not wait for it any more.  They wait
 * for the next worker, which they may register after the pause, or at once if this worker has run
 * for longer.
 */
static void
end_worker(int code, Datum arg)
{
	Mailbox    *mailbox = shared_mailbox();
	LeaseInfo	info = mailbox_info();
	int64		pause_ms;

	(void) code;
	(void) arg;
	LWLockAcquire(&mailbox->lock, LW_SHARED);
	pause_ms = mailbox->next_start_ms;
	LWLockRelease(&mailbox->lock);
	pause_ms -= monotonic_ms();
	info.worker_pid = 0;
	info.busy = false;
	info.next_attempt_at = GetCurrentTimestamp() + Max(pause_ms, 0) * INT64CONST(1000);
	scru64_mailbox_set_info(&info);
}

/* An error ends the worker: publish the error to all sessions, and log it once in a while. */
static void
publish_error(void)
{
	LeaseInfo	info;
	ErrorData  *error;

	HOLD_INTERRUPTS();
	LWLockReleaseAll();
	info = mailbox_info();
	MemoryContextSwitchTo(TopMemoryContext);
	error = CopyErrorData();
	if (slots_log_is_due(LOG_LEASE_WORKER, 0))
		EmitErrorReport();
	/* this is the only worker, so nothing else changes info meanwhile */
	info.failures++;
	info.worker_failed = true;
	info.last_error_at = GetCurrentTimestamp();
	scru64_mailbox_copy_text(info.last_error, error->message, LEASE_TEXT_LEN);
	scru64_mailbox_set_info(&info);
}

/*
 * The entry point of the worker.  The process becomes the only worker before it loads the
 * worker's library, which is linked with libpq: so also when loading fails there is only one.
 */
void
scru64_start_lease_worker(Datum arg)
{
	(void) arg;
	shared_parts_attach();
	/*
	 * Two sessions may have registered a worker at the same time; or a session has, while the
	 * postmaster waited to restart a preloaded one.  This server is no standby then, so whenever it
	 * needs a worker again, a session registers the next one.
	 */
	if (!become_worker())
		proc_exit(0);
	before_shmem_exit(end_worker, (Datum) 0);
	if (*scru64_realm == '\0' && MyBgworkerEntry->bgw_restart_time == BGW_NEVER_RESTART)
		proc_exit(0);
	PG_TRY();
	{
		/* of this version, though a newer one may have been installed */
		void		(*worker_main) (void) = (void (*) (void))
			load_external_function("$libdir/scru64_lease_" SHARED_MEMORY_VERSION,
								   "scru64_lease_main", true, NULL);

		worker_main();
	}
	PG_CATCH();
	{
		publish_error();
	}
	PG_END_TRY();
	/* 1 is logged, and has the postmaster restart a worker registered at preload */
	proc_exit(MyBgworkerEntry->bgw_restart_time == BGW_NEVER_RESTART ? 0 : 1);
}

/* Has a session asked the worker to call the realm since the last time? */
bool
scru64_mailbox_was_called(void)
{
	Mailbox    *mailbox = shared_mailbox();
	bool		called;

	LWLockAcquire(&mailbox->lock, LW_EXCLUSIVE);
	called = mailbox->called;
	mailbox->called = false;
	LWLockRelease(&mailbox->lock);
	return called;
}
