/*-------------------------------------------------------------------------
 *
 * ceiling.c
 *		The ceiling: how far the IDs of this server may go.
 *
 * Loads, raises and sets the ceiling for the slots of slots.c, and keeps it on the page of
 * ceiling_page.c.
 *
 * Every ID is of a tick at or below the ceiling, and this ceiling is flushed to the WAL before
 * the ID is issued.  So in the WAL the ceiling precedes every row with such an ID.  A server
 * that has replayed such a row, in crash recovery, on promotion or in a restore to any point,
 * has replayed the row's ceiling, too, and starts above it.  No clock is involved.
 *
 * With synchronous replication the standbys need the ceiling as well, or a failover would lose
 * it.  So there are a durable ceiling, flushed by this server, and a replicated one, flushed
 * by the standbys, too.  A session's synchronous_commit decides which one is usable for the
 * session.  The session waits for the standbys only for a tick above the replicated ceiling.
 *
 * What guards what:
 *
 *	the page, CeilingState.written
 *						the page's lock (ceiling_page_lock), which is held during I/O; a wait
 *						for the lock can be cancelled.
 *	CeilingState.incarnation
 *						atomic; raised under the page's lock.
 *	CeilingState.awaited, awaited_at, awaited_since
 *						CeilingState.mutex
 *	CeilingState.raising_since
 *						atomic; written under the page's lock.  Counts only as long as a
 *						process has the lock: an error of the write leaves it as it is.
 *	CeilingState.written_at
 *						written under the page's lock and the mutex, read under either.
 *	CeilingState.durable, replicated
 *						atomic; written under the mutex, durable also under the page's lock,
 *						read without a lock.
 *
 * Invariants:
 *
 *	- durable is 0, or a flushed ceiling at or below the page's: one that this server has
 *	  written, or the one that was loaded, below which only leased nodes start.  replicated is
 *	  0, or a ceiling that was durable, and is flushed by the synchronous standbys, too.
 *
 *	- To raise the ceiling is to reserve, for this shared memory, the ticks above the page's
 *	  ceiling up to the new one.  If the page has a greater ceiling than CeilingState.written,
 *	  another version of the library, which has its own slots, has reserved ticks, or
 *	  ceiling_set() could not write: then all nodes start anew above the page's ceiling.  If
 *	  the page has a lower one, the disk has lost a write, or the other version has set the
 *	  ceiling: then CeilingState.written is written again, and all nodes start above it.  The
 *	  leased node keeps its lease, which only this version's worker has: without a lease,
 *	  sessions would wait for seconds.
 *
 *	- If the page disappears after it was loaded, only scru64_set_ceiling() makes it anew.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"
#include "utils/timestamp.h"

#include "ceiling/ceiling.h"
#include "ceiling/ceiling_page.h"
#include "ceiling/standbys.h"
#include "clock.h"
#include "settings.h"
#include "shmem/node_slots.h"
#include "shmem/open_transactions.h"
#include "type/id_time.h"

/* Milliseconds between two tests of the standbys, doubled from MIN to MAX */
#define MIN_NAP_MS			1
#define MAX_NAP_MS			200

/* Milliseconds after which a flush, by this server or by standbys, is slow */
#define LONG_FLUSH_MS		1000

PG_FUNCTION_INFO_V1(scru64_create_ceiling);

/* See above for what guards what. */
typedef struct CeilingState
{
	pg_atomic_uint32 incarnation;	/* how often all nodes were started above the ceiling */
	uint64		written;		/* the ceiling written last, in ticks */
	XLogRecPtr	written_at;		/* the end of its record in the WAL */
	uint64		awaited;		/* the ceiling that the standbys flush next */
	XLogRecPtr	awaited_at;		/* the end of its record */
	int64		awaited_since;	/* when a session first found that they had not, or 0 */
	slock_t		mutex;
	pg_atomic_uint64 durable;	/* the ceiling flushed by this server, */
	pg_atomic_uint64 replicated;	/* and by the synchronous standbys, too */
	ConditionVariable moved;	/* for sessions that wait for replicated */
	pg_atomic_uint64 raising_since; /* when the raise began that goes on, or 0 */
} CeilingState;

static CeilingState *state_of_server = NULL;

static void
init_ceiling(void *part, int tranche_id)
{
	CeilingState *state = part;

	(void) tranche_id;
	pg_atomic_init_u32(&state->incarnation, 0);
	SpinLockInit(&state->mutex);
	pg_atomic_init_u64(&state->durable, 0);
	pg_atomic_init_u64(&state->replicated, 0);
	ConditionVariableInit(&state->moved);
	pg_atomic_init_u64(&state->raising_since, 0);
}

const SharedPart ceiling_part = {
	.size = sizeof(CeilingState),
	.init = init_ceiling,
	.part = (void **) &state_of_server
};

static CeilingState *
ceiling_state(void)
{
	shared_parts_attach();
	return state_of_server;
}

/* The ceiling flushed by this server, in ticks */
uint64
ceiling_durable(void)
{
	return pg_atomic_read_u64(&ceiling_state()->durable);
}

/* Await the durable ceiling next: sessions wait for the standbys to flush it.  Mutex held. */
static void
await_durable(CeilingState *state)
{
	state->awaited = pg_atomic_read_u64(&state->durable);
	state->awaited_at = state->written_at;
}

/*
 * If the standbys have flushed the awaited ceiling, raise replicated to it, or to the latest
 * ceiling if they have flushed this, too.  Then await the latest.
 *
 * Await one ceiling at a time: a slow standby might never catch up with the latest.
 */
static void
note_standbys(CeilingState *state)
{
	XLogRecPtr	reached = standbys_reached();
	int64		now = monotonic_ms();
	bool		moved;

	SpinLockAcquire(&state->mutex);
	moved = state->awaited > pg_atomic_read_u64(&state->replicated) &&
		state->awaited_at <= reached;
	if (moved)
	{
		if (state->written_at <= reached)
			await_durable(state);
		pg_atomic_write_u64(&state->replicated, state->awaited);
		await_durable(state);
		state->awaited_since = 0;
	}
	else if (state->awaited > pg_atomic_read_u64(&state->replicated) &&
			 state->awaited_since == 0)
		state->awaited_since = now;
	SpinLockRelease(&state->mutex);
	if (moved)
		ConditionVariableBroadcast(&state->moved);
}

/*
 * The ceiling that is usable for this session, in ticks.
 *
 * Ordering: a session reads this ceiling after its node's state, and before it advances the
 * state.  The ceiling is raised after it was flushed (mutant: publish-before-flush), and cleared
 * before all nodes lose their slots: then no session can advance the state (mutant:
 * durable-cleared-late).
 */
uint64
ceiling_usable(void)
{
	CeilingState *state = ceiling_state();
	uint64		durable = ceiling_durable();

	if (!standbys_are_waited_for())
		return durable;
	if (pg_atomic_read_u64(&state->replicated) < durable)
		note_standbys(state);
	return pg_atomic_read_u64(&state->replicated);
}

/*
 * Start all nodes anew above a ceiling; none issues an ID before the next raise.  The leased node
 * loses its lease unless keep_lease.  Page locked.
 *
 * Ordering: durable is cleared before the nodes lose their slots.  A session that has read the
 * old durable advances its node before the eviction, or not at all.  A session that reads a
 * new start marker finds durable cleared, by the barrier of slot_give() (mutants:
 * durable-cleared-late, barrier-after-state).  The incarnation is raised last (mutant:
 * incarnation-early).
 */
static void
restart_above(uint64 ceiling, bool keep_lease)
{
	CeilingState *state = ceiling_state();
	XLogRecPtr	flushed = GetFlushRecPtr(NULL);
	uint32		incarnation;

	SpinLockAcquire(&state->mutex);
	pg_atomic_write_u64(&state->durable, 0);
	pg_atomic_write_u64(&state->replicated, 0);
	state->awaited = 0;
	state->awaited_since = 0;
	state->written_at = flushed;
	SpinLockRelease(&state->mutex);
	node_slots_restart(ceiling, keep_lease);
	state->written = ceiling;
	incarnation = pg_atomic_read_u32(&state->incarnation);
	if (incarnation == 0)
		transactions_note_recovered();
	pg_write_barrier();
	pg_atomic_write_u32(&state->incarnation, incarnation + 1);
}

/*
 * The incarnation: how often all nodes were started above the ceiling since the server was
 * started.  0: the ceiling is not loaded yet.
 *
 * Ordering: a session reads the incarnation before the clock, the ceiling and the state of its
 * node; restart_above() raises the incarnation after the ceiling and the states have changed.
 * A session that decides by older values has an older incarnation, too (mutant: incarnation-early).
 */
uint32
ceiling_incarnation(void)
{
	uint32		incarnation = pg_atomic_read_u32(&ceiling_state()->incarnation);

	pg_read_barrier();
	return incarnation;
}

/*
 * Start all nodes above the page's ceiling, once after a start of the server.  Not to be
 * called during recovery, nor with the page locked.
 *
 * Without a page, the last ID is unknown: this ID is ahead of the clock by the allowance at
 * most, if the clock was right when the ID was issued.
 *
 * Here and below, the log comes after the release of the lock: a line may go to a client, too,
 * that does not read, and every raise needs the lock.
 */
void
ceiling_load(void)
{
	uint64		ceiling;
	bool		was_lost = false;

	if (ceiling_incarnation() > 0)
		return;
	(void) ceiling_page_lock(true);
	if (ceiling_incarnation() == 0)
	{
		was_lost = !ceiling_page_read(&ceiling);
		if (was_lost)
		{
			ceiling = Min(clock_tick() + allowance_ticks(), SCRU64_LAST_TIMESTAMP);
			(void) ceiling_page_write(ceiling);
		}
		restart_above(ceiling, false);
	}
	ceiling_page_unlock();
	if (was_lost)
		ereport(LOG,
				(errmsg("the ceiling of scru64 was lost"),
				 errdetail("IDs start after %s, the clock plus \"%s\".",
						   timestamptz_to_str(time_of_tick(ceiling)), "scru64.rollback_allowance"),
				 errhint("They are above those of before if the clock was right then, and is now. Do not put an old file back: IDs would come again.")));
}

/*
 * Load the ceiling if there is a page.  If there is none, either no ID was issued yet, or the
 * page was lost: the next session that generates an ID handles this.
 */
bool
scru64_ceiling_load_if_written(void)
{
	bool		has_page;

	(void) ceiling_page_lock(true);
	has_page = ceiling_incarnation() > 0 || ceiling_page_exists();
	ceiling_page_unlock();
	if (has_page)
		ceiling_load();
	return has_page;
}

/*
 * Lock the ceiling until the transaction ends, so that no other session raises or sets it.
 * Returns the ceiling that this server has written last, or was started with, in ticks.
 */
uint64
scru64_ceiling_lock(void)
{
	ceiling_load();
	(void) ceiling_page_lock(true);
	return ceiling_state()->written;
}

/*
 * Set written and durable to a flushed ceiling, whose record in the WAL ends at written_at.
 * Page locked.
 */
static void
set_durable(CeilingState *state, uint64 ceiling, XLogRecPtr written_at)
{
	bool		has_standbys = standbys_are_defined();

	state->written = ceiling;
	SpinLockAcquire(&state->mutex);
	if (!has_standbys)
		state->awaited_since = 0;
	state->written_at = written_at;
	pg_atomic_write_u64(&state->durable, ceiling);
	if (state->awaited <= pg_atomic_read_u64(&state->replicated))
		await_durable(state);
	SpinLockRelease(&state->mutex);
}

/* The ceiling on the page, which was there when the server loaded the ceiling.  Page locked. */
static uint64
read_page_again(void)
{
	uint64		ceiling;

	if (!ceiling_page_read(&ceiling))
		ceiling_page_damaged("Its page has disappeared since the server was started.");
	return ceiling;
}

/* The log: the page had a lower ceiling than this server has written. */
static void
log_went_back(uint64 found, uint64 written)
{
	ereport(LOG,
			(errmsg("the ceiling of scru64 went back"),
			 errdetail("Its page had %s, and this server has written %s: IDs start after that.",
					   pstrdup(timestamptz_to_str(time_of_tick(found))),
					   pstrdup(timestamptz_to_str(time_of_tick(written)))),
			 errhint("Unless another version of scru64 has set it, a disk has lost a write: check it.")));
}

/*
 * Raise the ceiling to the tick target, unless durable has reached the tick enough by now.  If
 * another session has the lock, and wait is false, return at once.
 *
 * Do nothing if all nodes were started anew after the caller read incarnation.  The caller may
 * have used a wrong clock: if the clock was corrected since, and scru64_set_ceiling() has
 * lowered the ceiling, the caller would raise the ceiling again.
 */
void
ceiling_raise(uint32 incarnation, uint64 enough, uint64 target, bool wait)
{
	CeilingState *state = ceiling_state();
	uint64		ceiling;
	uint64		lost = 0;		/* a ceiling that was written, and is not on the page */
	int64		locked_at;

	if (!ceiling_page_lock(wait))
		return;
	locked_at = monotonic_ms();
	if (incarnation == ceiling_incarnation() && ceiling_durable() < enough)
	{
		ceiling = read_page_again();
		pg_atomic_write_u64(&state->raising_since, locked_at);
		if (ceiling < state->written)
		{
			lost = state->written;
			(void) ceiling_page_write(lost);
			restart_above(lost, true);
		}
		else if (ceiling > state->written)
			restart_above(ceiling, true);
		else if (ceiling < target)
			set_durable(state, target, ceiling_page_write(target));
		else
			set_durable(state, ceiling, state->written_at);
	}
	pg_atomic_write_u64(&state->raising_since, 0);
	ceiling_page_unlock();
	if (lost != 0)
		log_went_back(ceiling, lost);
	ceiling_page_log_slow(locked_at);
}

/*
 * Wait until the usable ceiling has reached a tick that the durable ceiling has reached.
 *
 * A standby reports its position when it receives WAL, and on an idle server it receives none.
 * So after a while the session raises the ceiling by one tick, to have the standby report.
 * If all nodes are started anew meanwhile, the session stops waiting.
 */
void
ceiling_wait_for_standbys(uint32 incarnation, uint64 tick)
{
	CeilingState *state = ceiling_state();
	uint64		durable = ceiling_durable();
	long		nap_ms = MIN_NAP_MS;
	int64		began_at = monotonic_ms();

	while (incarnation == ceiling_incarnation() && ceiling_usable() < tick &&
		   tick <= ceiling_durable())
	{
		(void) ConditionVariableTimedSleep(&state->moved, nap_ms,
										   compat_wait_event("Scru64Standby"));
		if (nap_ms == MAX_NAP_MS)
			ceiling_raise(incarnation, durable + 1, Min(durable + 1, SCRU64_LAST_TIMESTAMP),
						  false);
		nap_ms = Min(2 * nap_ms, MAX_NAP_MS);
		standbys_log_wait(began_at);
	}
	ConditionVariableCancelSleep();
}

/*
 * Would an ID of this tick wait for longer than usual, and for what?  Sets *waited_ms to how long
 * this has lasted; 0 if the ID would be the first to wait.  Waits for nothing, and leaves the ceiling
 * as it is.  Raises the error that a raise would find on the page.
 *
 * An ID above the durable ceiling needs a raise, and at most one goes on.  A wait for standbys that
 * are missing may have no end.  Others count from when a session, perhaps this one, first found
 * that they had not flushed the ceiling.
 */
CeilingWait
ceiling_look_for_wait(uint64 tick, int64 *waited_ms)
{
	CeilingState *state = ceiling_state();
	int64		since;

	*waited_ms = 0;
	if (tick <= ceiling_usable())
		return CEILING_WAIT_NONE;
	if (tick > ceiling_durable())
	{
		if (ceiling_page_lock(false))
		{
			if (ceiling_incarnation() > 0)
				(void) read_page_again();
			ceiling_page_unlock();
		}
		else if ((since = pg_atomic_read_u64(&state->raising_since)) != 0)
			*waited_ms = monotonic_ms() - since;
		if (*waited_ms >= LONG_FLUSH_MS)
			return CEILING_WAIT_FLUSH;
	}
	if (standbys_are_waited_for())
	{
		SpinLockAcquire(&state->mutex);
		since = state->awaited_since;
		SpinLockRelease(&state->mutex);
		*waited_ms = since != 0 ? monotonic_ms() - since : 0;
		if (standbys_missing() > 0 || *waited_ms >= LONG_FLUSH_MS)
			return CEILING_WAIT_STANDBYS;
	}
	return CEILING_WAIT_NONE;
}

/*
 * scru64_create_ceiling() -> void
 *
 * For CREATE EXTENSION: if there is no page, make one with the ceiling 0, as no ID was issued.
 * This is wrong if a page was lost, and another database has the extension.  The server cannot
 * know this, and logs a message.
 */
Datum
scru64_create_ceiling(PG_FUNCTION_ARGS)
{
	bool		is_new;

	(void) fcinfo;
	PreventCommandDuringRecovery("scru64_create_ceiling()");
	(void) ceiling_page_lock(true);
	is_new = !ceiling_page_exists();
	if (is_new)
	{
		if (ceiling_incarnation() > 0)
			ceiling_page_damaged("Its page has disappeared since the server was started.");
		(void) ceiling_page_write(0);
	}
	ceiling_page_unlock();
	if (is_new)
		ereport(LOG,
				(errmsg("the ceiling of scru64 was made"),
				 errdetail("There was none: no ID counts as issued on this server."),
				 errhint("If another database has IDs of this server, the ceiling was lost: as a superuser, call %s with a time that is not before the last of them.",
						 "scru64_set_ceiling()")));
	PG_RETURN_VOID();
}

/*
 * Start all nodes of this server above a tick, whatever they have issued and whatever the page
 * has.  Not to be called during recovery.
 */
void
ceiling_set(uint64 ceiling)
{
	CeilingState *state = ceiling_state();
	XLogRecPtr	written_at;

	/*
	 * Restart the slots first, so that no ID is issued above the new ceiling.  If the new one
	 * cannot be written, the next raise finds the old one on the page, and starts the nodes
	 * above the greater of the two.  The standbys get the new ceiling with the next raise.
	 */
	(void) ceiling_page_lock(true);
	restart_above(ceiling, false);
	written_at = ceiling_page_write(ceiling);
	SpinLockAcquire(&state->mutex);
	state->written_at = written_at;
	SpinLockRelease(&state->mutex);
	ceiling_page_unlock();
}
