/*-------------------------------------------------------------------------
 *
 * ceiling.c
 *		The ceiling: how far the IDs of this server may go.
 *
 * Loads, raises and sets the ceiling for the slots of slots.c, and keeps it on
 * the page of ceiling_page.c.
 *
 * Every ID that is issued is of a tick at or below the ceiling, and the ceiling is
 * flushed to the WAL before.  So in the order of the WAL it stands before every
 * row with such an ID: whatever state a server has by replaying WAL, by a crash, a
 * promotion, a restore to any point, with a row it has the row's ceiling.  It
 * starts above that.  No clock comes into it.
 *
 * With synchronous replication the standbys need the ceiling as well, or a failover
 * would lose it.  So there are two marks, one for the ceiling as flushed here and one as
 * flushed by the standbys, and each session goes by the one that its commits would wait
 * for.  A session waits for the standbys only when it needs a tick above their mark.
 *
 * What guards what:
 *
 *	the page, Reservation.written
 *						the page's lock (ceiling_page_lock), which is held during
 *						I/O, and can be waited for cancellably.
 *	Reservation.generation
 *						atomic; raised under the page's lock.
 *	Reservation.written_at, sent, sent_at
 *						Reservation.mutex
 *	Reservation.durable, replicated
 *						atomic; written under the mutex, durable also under the
 *						page's lock, read without.
 *
 * Invariants:
 *
 *	- durable is 0, or a ceiling that was written by this shared memory and
 *	  flushed, at or below the page's.  replicated is 0, or one that was durable and
 *	  that the synchronous standbys have flushed, too.
 *
 *	- A raise is a reservation, for this shared memory, of the ticks above the
 *	  page's ceiling up to the new one.  If the page has a greater ceiling than the one
 *	  written last, another version of the library, with slots of its own, has reserved
 *	  ticks: then all nodes start again above the page's ceiling.  If it has a lower one,
 *	  the disk has lost a write, or that other version has set it: then the one written
 *	  last is written again, and all nodes start above that.
 *
 *	- If the page disappears after the slots were loaded, only scru64_set_ceiling()
 *	  makes it anew.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

#include "ceiling/ceiling.h"
#include "ceiling/ceiling_page.h"
#include "ceiling/standbys.h"
#include "clock.h"
#include "settings.h"
#include "shmem/node_slots.h"
#include "shmem/writers.h"
#include "type/id_time.h"

/* Milliseconds between looks at the standbys: few at first, then more. */
#define MIN_NAP_MS			1
#define MAX_NAP_MS			200

#define WAIT_EVENT_NAME		"Scru64Standby"

PG_FUNCTION_INFO_V1(scru64_create_ceiling);

static Reservation *
reservation_of_server(void)
{
	ensure_slots();
	return &node_slots->reservation;
}

/* The ceiling that was flushed here, in ticks. */
uint64
ceiling_durable(void)
{
	return pg_atomic_read_u64(&reservation_of_server()->durable);
}

/* Send the ceiling written last: the standbys' mark follows when they have it.  Mutex held. */
static void
send_written(Reservation *reservation)
{
	reservation->sent = pg_atomic_read_u64(&reservation->durable);
	reservation->sent_at = reservation->written_at;
}

/*
 * When the standbys have flushed the ceiling that was sent, raise their mark to it, and
 * send the one written last.
 *
 * Sessions may raise the ceiling faster than a late standby flushes it, which then never
 * has the one written last.  So the one sent stays the same until the standbys have it.
 */
static void
note_standbys(Reservation *reservation)
{
	XLogRecPtr	reached = standbys_reached();
	bool		moved;

	SpinLockAcquire(&reservation->mutex);
	moved = reservation->sent > pg_atomic_read_u64(&reservation->replicated) &&
		reservation->sent_at <= reached;
	if (moved)
	{
		if (reservation->written_at <= reached)
			send_written(reservation);
		pg_atomic_write_u64(&reservation->replicated, reservation->sent);
		send_written(reservation);
	}
	SpinLockRelease(&reservation->mutex);
	if (moved)
		ConditionVariableBroadcast(&reservation->moved);
}

/*
 * The tick up to which this session may issue IDs.
 *
 * Ordering: a session reads it after the state of its node, and before it advances
 * that.  It is raised after the ceiling was flushed (litmus: ceiling-before-row), and
 * lowered before all nodes lose their slots: then the session cannot advance the state
 * (litmus: durable).
 */
uint64
ceiling_mark(void)
{
	Reservation *reservation = reservation_of_server();
	uint64		durable = ceiling_durable();

	if (!standbys_are_waited_for())
		return durable;
	if (pg_atomic_read_u64(&reservation->replicated) < durable)
		note_standbys(reservation);
	return pg_atomic_read_u64(&reservation->replicated);
}

/*
 * Start all nodes above a tick, the ceiling on the page, and issue no ID until that is
 * raised.  Page locked.
 *
 * Ordering: durable is cleared before the nodes lose their slots.  A session that has
 * found it high enough before that advances its node before the slot is taken, or not at
 * all: a session that reads a new start finds durable cleared, by the barrier of
 * slot_give() (litmus: durable).  The generation is raised last (litmus: generation).
 */
static void
start_above(uint64 ceiling)
{
	Reservation *reservation = reservation_of_server();
	XLogRecPtr	flushed = GetFlushRecPtr(NULL);
	uint32		generation;

	SpinLockAcquire(&reservation->mutex);
	pg_atomic_write_u64(&reservation->durable, 0);
	pg_atomic_write_u64(&reservation->replicated, 0);
	reservation->sent = 0;
	reservation->written_at = flushed;
	SpinLockRelease(&reservation->mutex);
	node_slots_restart(ceiling);
	reservation->written = ceiling;
	generation = pg_atomic_read_u32(&reservation->generation);
	if (generation == 0)
		note_prepared_before();
	pg_write_barrier();
	pg_atomic_write_u32(&reservation->generation, generation + 1);
}

/*
 * How often all nodes were started above the ceiling since the server was started.  0:
 * the ceiling is not loaded yet.
 *
 * Ordering: a session reads it before the clock, the ceiling and the state of its node,
 * and start_above() raises it after it has changed these.  So a raise that the session
 * decides on by what was there before has an older generation (litmus: generation).
 */
uint32
ceiling_generation(void)
{
	uint32		generation = pg_atomic_read_u32(&reservation_of_server()->generation);

	pg_read_barrier();
	return generation;
}

/*
 * Have the slots start above the ceiling, once after a start of the server.  Not
 * to be called during recovery.
 *
 * Without a page nobody knows which IDs were issued: none that was more than the
 * allowance ahead of the clock, if that was right.
 */
void
ceiling_load(void)
{
	uint64		ceiling;

	if (ceiling_generation() > 0)
		return;
	(void) ceiling_page_lock(true);
	if (ceiling_generation() == 0)
	{
		if (!ceiling_page_read(&ceiling))
		{
			ceiling = Min(clock_tick() + allowance_ticks(), SCRU64_LAST_TIMESTAMP);
			(void) ceiling_page_write(ceiling);
			ereport(LOG,
					(errmsg("the ceiling of scru64 was lost"),
					 errdetail("IDs start after %s, the clock plus \"%s\".",
							   timestamptz_to_str(time_of_tick(ceiling)),
							   "scru64.rollback_allowance"),
					 errhint("They are above those of before if the clock was right then, and is now.")));
		}
		start_above(ceiling);
	}
	ceiling_page_unlock();
}

/*
 * Load the ceiling if it has a page.  Without one no ID was issued yet, or it was lost: that
 * is for a session to deal with, which asks for an ID.
 */
bool
scru64_ceiling_load_page(void)
{
	bool		has_page;

	(void) ceiling_page_lock(true);
	has_page = ceiling_generation() > 0 || ceiling_page_exists();
	if (has_page)
		ceiling_load();
	ceiling_page_unlock();
	return has_page;
}

/*
 * Lock the ceiling until the transaction ends: nobody raises or sets it meanwhile.  Returns
 * the one that this server has written last, or was started with, in ticks.
 */
uint64
scru64_ceiling_lock(void)
{
	ceiling_load();
	(void) ceiling_page_lock(true);
	return reservation_of_server()->written;
}

/* A ceiling stands in the WAL up to written_at, and is flushed.  Page locked. */
static void
publish(Reservation *reservation, uint64 ceiling, XLogRecPtr written_at)
{
	reservation->written = ceiling;
	SpinLockAcquire(&reservation->mutex);
	reservation->written_at = written_at;
	pg_atomic_write_u64(&reservation->durable, ceiling);
	if (reservation->sent <= pg_atomic_read_u64(&reservation->replicated))
		send_written(reservation);
	SpinLockRelease(&reservation->mutex);
}

/*
 * The page has a lower ceiling than the one written last: write that again, and start
 * above it.  Page locked.
 */
static void
write_again(uint64 found)
{
	uint64		written = reservation_of_server()->written;

	(void) ceiling_page_write(written);
	start_above(written);
	ereport(LOG,
			(errmsg("the ceiling of scru64 went back"),
			 errdetail("Its page had %s, and this server has written %s: IDs start after that.",
					   pstrdup(timestamptz_to_str(time_of_tick(found))),
					   pstrdup(timestamptz_to_str(time_of_tick(written)))),
			 errhint("Unless another version of scru64 has set it, a disk has lost a write: check it.")));
}

/*
 * Raise the ceiling to a tick, unless it is high enough by now.  A caller that does not
 * want to wait leaves it to the session that is just raising it.
 *
 * Nothing is done if all nodes have been started anew since the caller read generation.
 * It may have decided by a wrong clock: if that was corrected since, and
 * scru64_set_ceiling() has lowered the ceiling, this would raise it again.
 */
void
ceiling_raise(uint32 generation, uint64 enough, uint64 target, bool wait)
{
	Reservation *reservation = reservation_of_server();
	uint64		ceiling;

	if (!ceiling_page_lock(wait))
		return;
	if (generation == ceiling_generation() && ceiling_durable() < enough)
	{
		if (!ceiling_page_read(&ceiling))
			ceiling_page_damaged("Its page has disappeared since the server was started.");
		if (ceiling < reservation->written)
			write_again(ceiling);
		else if (ceiling > reservation->written)
			start_above(ceiling);
		else if (ceiling < target)
			publish(reservation, target, ceiling_page_write(target));
		else
			publish(reservation, ceiling, reservation->written_at);
	}
	ceiling_page_unlock();
}

/*
 * Wait until the standbys have flushed the ceiling of a tick, as far as it has been raised.
 *
 * A standby tells how far it is when it has got more WAL, and an idle one gets none.  So
 * after a while the session raises the ceiling by a tick, for the standby to answer.  It
 * waits no longer once all nodes have been started anew: then it could not raise it.
 */
void
ceiling_wait_for_standbys(uint32 generation, uint64 tick)
{
	static uint32 wait_event = 0;
	Reservation *reservation = reservation_of_server();
	uint64		durable = ceiling_durable();
	long		nap_ms = MIN_NAP_MS;

	if (wait_event == 0)
		wait_event = compat_wait_event(WAIT_EVENT_NAME);
	while (generation == ceiling_generation() && ceiling_mark() < tick && tick <= ceiling_durable())
	{
		(void) ConditionVariableTimedSleep(&reservation->moved, nap_ms, wait_event);
		if (nap_ms == MAX_NAP_MS)
			ceiling_raise(generation, durable + 1, Min(durable + 1, SCRU64_LAST_TIMESTAMP), false);
		nap_ms = Min(2 * nap_ms, MAX_NAP_MS);
	}
	ConditionVariableCancelSleep();
}

/*
 * scru64_create_ceiling() -> void
 *
 * For CREATE EXTENSION: make the page, if there is none, with the ceiling 0: no ID was
 * issued.  Nobody can know it if another database has the extension, and the page was
 * lost.  So the log says it.
 */
Datum
scru64_create_ceiling(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PreventCommandDuringRecovery("scru64_create_ceiling()");
	(void) ceiling_page_lock(true);
	if (!ceiling_page_exists())
	{
		if (ceiling_generation() > 0)
			ceiling_page_damaged("Its page has disappeared since the server was started.");
		(void) ceiling_page_write(0);
		ereport(LOG,
				(errmsg("the ceiling of scru64 was made"),
				 errdetail("There was none: no ID counts as issued on this server."),
				 errhint("If another database has IDs of this server, the ceiling was lost: as a superuser, call %s with a time that is not before the last of them.",
						 "scru64_set_ceiling()")));
	}
	ceiling_page_unlock();
	PG_RETURN_VOID();
}

/*
 * Start all nodes of this server after a tick, whatever they have issued and whatever the
 * page says.  Not to be called during recovery.
 */
void
ceiling_set(uint64 ceiling)
{
	Reservation *reservation = reservation_of_server();
	XLogRecPtr	written_at;

	/*
	 * First the slots: so no ID is issued that the new ceiling does not cover.  If it
	 * cannot be written, the next raise finds the old one on the page, and the nodes start
	 * above the greater of the two.  The standbys get it with that raise.
	 */
	(void) ceiling_page_lock(true);
	start_above(ceiling);
	written_at = ceiling_page_write(ceiling);
	SpinLockAcquire(&reservation->mutex);
	reservation->written_at = written_at;
	SpinLockRelease(&reservation->mutex);
	ceiling_page_unlock();
}
