/*-------------------------------------------------------------------------
 *
 * lease.c
 *		What the sessions and the lease worker tell each other.
 *
 * The worker, of a library of its own, leases a node, and gives it to the sessions
 * in leased_slot.c; they have the worker started, call it, and wait here for what
 * they need of it.  Raises no error: generate.c does.
 *
 * A lease is a window in ID space: its IDs are of ticks after that of its grant, and
 * not after that of its expiry, both by the realm's clock.  The upper end is the
 * limit of the lease's slot, the lower end its start.  No clock of this server
 * comes into it.
 *
 * What guards what:
 *
 *	Lease.info, worker_latch	Lease.mutex, held for a copy only.
 *	Lease.requested, called		atomic; hints.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "pg_compat.h"

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/condition_variable.h"
#include "storage/latch.h"
#include "storage/spin.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "settings.h"
#include "shmem/lease.h"
#include "shmem/leased_slot.h"

/* How long a session waits for the worker, and between looks, in milliseconds. */
#define MAX_WAIT			10000
#define NAP					200

/* Seconds between two requests for a worker. */
#define REQUEST_INTERVAL	5

#define WORKER_RESTART		5	/* seconds */

extern PGDLLEXPORT void scru64_start_lease_worker(Datum arg);

typedef struct Lease
{
	slock_t		mutex;
	LeaseInfo	info;
	Latch	   *worker_latch;
	pg_atomic_uint32 called;	/* does a session wait for the realm? */
	pg_atomic_uint64 requested; /* when a worker was asked for, monotonic seconds */
	ConditionVariable changed;
} Lease;

static Lease *the_lease = NULL;

static void
init_lease(void *memory)
{
	Lease	   *new_lease = memory;

	memset(new_lease, 0, sizeof(Lease));
	SpinLockInit(&new_lease->mutex);
	pg_atomic_init_u64(&new_lease->requested, 0);
	pg_atomic_init_u32(&new_lease->called, 0);
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

/* On a standby that preloads the library it leases ahead. */
static const BackgroundWorker lease_worker = {
	.bgw_name = "scru64 lease worker",
	.bgw_type = "scru64 lease worker",
	.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
	.bgw_start_time = BgWorkerStart_ConsistentState,
	.bgw_restart_time = WORKER_RESTART,
	.bgw_library_name = "scru64",
	.bgw_function_name = "scru64_start_lease_worker"
};

/* While the library is preloaded: have a worker started with the server. */
void
register_lease_worker(void)
{
	BackgroundWorker worker = lease_worker;

	if (*scru64_realm != '\0')
		RegisterBackgroundWorker(&worker);
}

/* The entry of the worker, which is in a library that is linked with libpq. */
void
scru64_start_lease_worker(Datum arg)
{
	void		(*worker_main) (Datum) = (void (*) (Datum))
		load_external_function("$libdir/scru64_lease", "scru64_lease_main", true, NULL);

	(void) arg;
	/* it has been installed anew since this library was loaded, perhaps */
	worker_main(CStringGetDatum(SCRU64_VERSION));
}

/*
 * The sessions' side
 */

/* See to it that there is a worker.  False if there is no place for one. */
static bool
request_worker(void)
{
	Lease	   *lease = shared_lease();
	uint64		last = pg_atomic_read_u64(&lease->requested);
	uint64		now = monotonic_ms() / 1000 + 1;
	BackgroundWorker worker = lease_worker;

	if (lease_info().worker_pid != 0 ||
		(last != 0 && now - last < REQUEST_INTERVAL) ||
		!pg_atomic_compare_exchange_u64(&lease->requested, &last, now))
		return true;
	return RegisterDynamicBackgroundWorker(&worker, NULL);
}

/* Have the worker look at once, if there is one, and perhaps call the realm. */
void
lease_wake_worker(bool call_realm)
{
	Lease	   *lease = shared_lease();
	Latch	   *latch;

	if (call_realm)
		pg_atomic_write_u32(&lease->called, 1);
	SpinLockAcquire(&lease->mutex);
	latch = lease->worker_latch;
	SpinLockRelease(&lease->mutex);
	if (latch != NULL)
		SetLatch(latch);
}

static void
nap(void)
{
	static uint32 wait_event = 0;

	if (wait_event == 0)
		wait_event = compat_wait_event("Scru64Lease");
	(void) ConditionVariableTimedSleep(&shared_lease()->changed, NAP, wait_event);
}

/*
 * Is it worth waiting for the worker?  If a lease is held for the end of recovery, that is
 * what it gives next, whatever has failed.
 */
static bool
worth_waiting(const LeaseInfo *info, uint64 began)
{
	TimestampTz enough = GetCurrentTimestamp() + MAX_WAIT * INT64CONST(1000);

	return monotonic_ms() - began < MAX_WAIT &&
		(info->busy || info->is_standby_lease ||
		 (info->failures == 0 && info->next_attempt_at < enough));
}

/*
 * The slot of the server's lease, its node and its state.  Waits for the worker,
 * cancellably and not for long; NULL if there is no lease then, and why.
 *
 * Ordering: busy is read before the slot; the worker gives that to the node before it
 * is no longer busy (litmus: busy-slot).
 */
NodeSlot *
lease_find_slot(NodeKey *key, uint64 *state, LeaseInfo *info, bool *has_place)
{
	uint64		began = monotonic_ms();
	NodeSlot   *slot;

	*info = lease_info();
	while ((slot = leased_slot_find(key, state)) == NULL)
	{
		*has_place = request_worker();
		/* also if it is not waited for: then the next attempt is sooner */
		lease_wake_worker(true);
		if (!*has_place || !worth_waiting(info, began))
			break;
		nap();
		*info = lease_info();
	}
	ConditionVariableCancelSleep();
	return slot;
}

/*
 * Wait until the window of the lease reaches a tick, or the slot is another
 * node's.  False if no renewal is on its way or it takes too long.
 *
 * Ordering: busy is read before the limit; the worker raises that before it is no
 * longer busy (litmus: busy-limit).
 */
bool
lease_wait_for_renewal(NodeSlot *slot, NodeKey key, uint64 tick, LeaseInfo *info)
{
	uint64		began = monotonic_ms();
	uint64		state;
	bool		reached;

	/* from here on no change is missed */
	ConditionVariablePrepareToSleep(&shared_lease()->changed);
	lease_wake_worker(true);
	do
	{
		nap();
		*info = lease_info();
		reached = !node_slot_read(slot, key, &state) || node_slot_limit(slot) >= tick;
	} while (!reached && info->busy && monotonic_ms() - began < MAX_WAIT);
	ConditionVariableCancelSleep();
	return reached;
}

/*
 * The worker's side
 */

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
bool
scru64_lease_claim(void)
{
	Lease	   *lease = shared_lease();
	bool		claimed;

	SpinLockAcquire(&lease->mutex);
	claimed = lease->info.worker_pid == 0;
	if (claimed)
	{
		lease->info.worker_pid = MyProcPid;
		lease->worker_latch = MyLatch;
	}
	SpinLockRelease(&lease->mutex);
	return claimed;
}

/* Has a session called since the last time? */
bool
scru64_lease_was_called(void)
{
	return pg_atomic_exchange_u32(&shared_lease()->called, 0) != 0;
}
