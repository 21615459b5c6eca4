/*-------------------------------------------------------------------------
 *
 * lease.c
 *		The server's lease of a node, as sessions see it.
 *
 * Upper storey.  The lease worker, of a library of its own, leases a node and
 * publishes it through lease_publish.c; sessions without a node spec use it, have the
 * worker started, and wait here for what they need of it.  scru64_set_ceiling() is
 * here, because it ends the lease.
 *
 * A lease is a window in ID space: its IDs are of ticks after that of its grant, and
 * not after that of its expiry, both by the realm's clock.  The upper end is the
 * limit of the lease's slot, the lower end its start.  No clock of this server
 * comes into it.
 *
 * What guards what:
 *
 *	the lease's slot, Lease.last_key, last_state
 *						the lock of the slots, see node_slots.c.
 *	Lease.info, worker_latch
 *						Lease.mutex, held for a copy only.
 *	Lease.requested, called
 *						atomic; hints.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/mman.h>

#include "fmgr.h"
#include "pg_compat.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "tcop/utility.h"
#include "utils/timestamp.h"

#include "ceiling.h"
#include "generate_errors.h"
#include "lease.h"
#include "monotonic.h"
#include "settings.h"
#include "tick_time.h"

/* How long a session waits for the worker, and between looks, in milliseconds. */
#define MAX_WAIT			10000
#define NAP					200

/* Seconds between two requests for a worker. */
#define REQUEST_INTERVAL	5

#define WAIT_EVENT_NAME		"Scru64Lease"
#define WORKER_LIBRARY		"scru64"
#define WORKER_FUNCTION		"scru64_lease_main"
#define WORKER_RESTART		5	/* seconds */

PG_FUNCTION_INFO_V1(scru64_set_ceiling);

extern PGDLLEXPORT void scru64_lease_main(Datum arg);

void
lease_init(Lease *lease)
{
	SpinLockInit(&lease->mutex);
	pg_atomic_init_u64(&lease->requested, 0);
	pg_atomic_init_u32(&lease->called, 0);
	ConditionVariableInit(&lease->changed);
}

LeaseInfo
lease_info(void)
{
	Lease	   *lease = node_slots_lease();
	LeaseInfo	info;

	SpinLockAcquire(&lease->mutex);
	info = lease->info;
	SpinLockRelease(&lease->mutex);
	return info;
}

static void
fill_worker(BackgroundWorker *worker)
{
	memset(worker, 0, sizeof(*worker));
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker->bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker->bgw_restart_time = WORKER_RESTART;
	strlcpy(worker->bgw_library_name, WORKER_LIBRARY, sizeof(worker->bgw_library_name));
	strlcpy(worker->bgw_function_name, WORKER_FUNCTION, sizeof(worker->bgw_function_name));
	strlcpy(worker->bgw_name, "scru64 lease worker", BGW_MAXLEN);
	strlcpy(worker->bgw_type, "scru64 lease worker", BGW_MAXLEN);
}

/* While the library is preloaded: have a worker started with the server. */
void
register_lease_worker(void)
{
	BackgroundWorker worker;

	if (*scru64_realm == '\0')
		return;
	fill_worker(&worker);
	RegisterBackgroundWorker(&worker);
}

/* The entry of the worker, which is in a library that is linked with libpq. */
void
scru64_lease_main(Datum arg)
{
	void		(*worker_main) (Datum) = (void (*) (Datum))
		load_external_function("$libdir/scru64_lease", "lease_worker_main", true, NULL);

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
	Lease	   *lease = node_slots_lease();
	uint64		last = pg_atomic_read_u64(&lease->requested);
	uint64		now = monotonic_ms() / 1000 + 1;
	BackgroundWorker worker;

	if (lease_info().worker_pid != 0 ||
		(last != 0 && now - last < REQUEST_INTERVAL) ||
		!pg_atomic_compare_exchange_u64(&lease->requested, &last, now))
		return true;
	fill_worker(&worker);
	return RegisterDynamicBackgroundWorker(&worker, NULL);
}

/* Have the worker look at once, if there is one, and perhaps call the realm. */
void
lease_wake_worker(bool call_realm)
{
	Lease	   *lease = node_slots_lease();
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
		wait_event = compat_wait_event(WAIT_EVENT_NAME);
	(void) ConditionVariableTimedSleep(&node_slots_lease()->changed, NAP, wait_event);
}

/* Is it worth to wait for the worker? */
static bool
worth_waiting(const LeaseInfo *info, uint64 began)
{
	TimestampTz enough = GetCurrentTimestamp() + MAX_WAIT * INT64CONST(1000);

	return monotonic_ms() - began < MAX_WAIT &&
		(info->busy || (info->failures == 0 && info->next_attempt_at < enough));
}

static void
no_lease(const LeaseInfo *info, bool has_place)
{
	ConditionVariableCancelSleep();
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("this server has no lease of a node"),
			 !has_place ?
			 errdetail("There is no free slot for the lease worker.") :
			 info->last_error[0] != '\0' ?
			 errdetail("The lease worker says: %s", info->last_error) :
			 errdetail("The lease worker has not got one yet."),
			 !has_place ?
			 errhint("Raise \"%s\" and restart the server.", "max_worker_processes") :
			 errhint("See the view %s and the server log. It is tried again and again.",
					 "scru64_lease")));
}

/*
 * The slot of the server's lease, its node and its state.  Waits for the worker,
 * cancellably and not for long; 55000 if there is no lease then.
 */
NodeSlot *
lease_find_slot(NodeKey *key, uint64 *state)
{
	uint64		began = monotonic_ms();

	for (;;)
	{
		NodeSlot   *slot = node_slots_find_leased(key, state);
		LeaseInfo	info;
		bool		has_place;

		if (slot != NULL)
		{
			ConditionVariableCancelSleep();
			return slot;
		}
		has_place = request_worker();
		info = lease_info();
		if (!has_place || !worth_waiting(&info, began))
			no_lease(&info, has_place);
		lease_wake_worker(true);
		nap();
	}
}

/*
 * Wait until the window of the lease reaches a tick, or the slot is another
 * node's; 55000 if no renewal is on its way or it takes too long.
 */
void
lease_wait_for_renewal(NodeSlot *slot, NodeKey key, uint64 tick)
{
	uint64		began = monotonic_ms();

	/* from here on no change is missed */
	ConditionVariablePrepareToSleep(&node_slots_lease()->changed);
	lease_wake_worker(true);
	nap();
	for (;;)
	{
		uint64		state;
		LeaseInfo	info = lease_info();

		if (!node_slot_read(slot, key, &state) ||
			pg_atomic_read_u64(&slot->limit) >= tick)
		{
			ConditionVariableCancelSleep();
			return;
		}
		if (!info.busy || monotonic_ms() - began >= MAX_WAIT)
		{
			ConditionVariableCancelSleep();
			lease_is_over(&info, tick);
		}
		nap();
	}
}

/*
 * scru64_set_ceiling(timestamptz) -> void
 *
 * Whatever was given out and whatever the page says: all nodes of this server
 * start after this time.  42501 for all but superusers, 25006 in recovery, 22008
 * for a time without a tick.
 *
 * It ends the lease, and nobody resumes that: the ceiling no longer tells how far
 * its IDs went.
 */
Datum
scru64_set_ceiling(PG_FUNCTION_ARGS)
{
	char		name[LEASE_OBJECT_NAMELEN];
	uint64		ceiling;

	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be superuser to call %s", "scru64_set_ceiling()"),
				 errdetail("Whoever sets the ceiling can make IDs come again."),
				 errhint("Ask a superuser of this server.")));
	PreventCommandDuringRecovery("scru64_set_ceiling()");
	ceiling = checked_tick_of_time(PG_GETARG_TIMESTAMPTZ(0));

	scru64_lease_object_name(name);
	(void) shm_unlink(name);
	ceiling_set(ceiling);
	/* it may have renewed, and kept, the lease meanwhile */
	(void) shm_unlink(name);
	lease_wake_worker(true);
	PG_RETURN_VOID();
}
