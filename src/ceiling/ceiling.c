/*-------------------------------------------------------------------------
 *
 * ceiling.c
 *		The ceiling: how far the IDs of this server may go.
 *
 * Loads, raises and sets the ceiling for the slots of slots.c, and keeps it on
 * the page of ceiling_page.c.
 *
 * Every ID that leaves is of a tick at or below the ceiling, and the ceiling is
 * flushed to the WAL before.  So in the order of the WAL it stands before every
 * row with such an ID: whatever state a server has by replaying WAL, by a crash, a
 * promotion, a restore to any point, with a row it has the row's ceiling.  It
 * starts above that.  No clock comes into it.
 *
 * With synchronous replication the standbys have to have it as well, or a failover
 * would forget it.  So there are two marks, how far the ceiling has been flushed here
 * and by them, and each session goes by the one that its commits would wait for.
 * What is on its way to the standbys is not waited for before it is needed.
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
 *	  page's ceiling up to the new one.  Where the page does not have what it wrote
 *	  last, another version of the library has reserved some, which has slots of
 *	  its own: then all nodes start again above the page's ceiling.
 *
 *	- A page that has been there since the slots were loaded is not made anew if
 *	  it disappears, except by scru64_set_ceiling().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "pg_compat.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "ceiling/ceiling.h"
#include "ceiling/ceiling_page.h"
#include "ceiling/standbys.h"
#include "clock.h"
#include "settings.h"
#include "shmem/node_slots.h"
#include "shmem/writers.h"
#include "type/id_time.h"

/* Milliseconds between looks at what the standbys have: few at first, then more. */
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

/* Standbys are to have a ceiling next, the one that was written last.  Mutex held. */
static void
send_written(Reservation *reservation)
{
	reservation->sent = pg_atomic_read_u64(&reservation->durable);
	reservation->sent_at = reservation->written_at;
}

/*
 * Keep what the standbys have.
 *
 * The one that is on its way is waited for until it has arrived, even if the ceiling
 * has been raised again and again meanwhile: else a standby that is always a bit
 * behind would never have the last.
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
 * The tick up to which IDs of this session may leave.
 *
 * Ordering: a session reads it after the state of its node, and before it advances
 * that.  It is raised after the ceiling was flushed (litmus: ceiling-before-row), and
 * lowered before all slots are taken from their nodes: then that fails (litmus:
 * durable).
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
 * Start all nodes above a tick, the ceiling on the page, and give out nothing
 * until that is raised.  Page locked.
 *
 * Ordering: durable is gone before the slots are.  A session that has found it
 * high enough before advances its node before the slot is taken, or not at all: who
 * finds a new start finds durable gone, by the barrier of slot_give() (litmus: durable).
 * The generation is raised last (litmus: generation).
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
 * How often all slots were started above the ceiling: 0 if they were not, since the
 * server was started.
 *
 * Ordering: it is read before the state of a node, the ceiling and the clock, and raised
 * after these have changed.  So what a session asks for is of this generation, or of an
 * older one and no longer wanted, see ceiling_raise() (litmus: generation).
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
 *	now			the clock, in ticks
 *	allowance	scru64.rollback_allowance, in ticks
 *
 * Without a page nobody knows what was given out: not more than the allowance
 * ahead of the clock, if that was right.
 */
void
ceiling_load(uint64 now, uint64 allowance)
{
	uint64		ceiling;

	if (ceiling_generation() > 0)
		return;
	(void) ceiling_page_lock(true);
	if (ceiling_generation() == 0)
	{
		if (!ceiling_page_read(&ceiling))
		{
			ceiling = Min(now + allowance, SCRU64_LAST_TIMESTAMP);
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
 * The ceiling that this server has written last, or was started with, in ticks.
 * Nobody raises or sets it until it is let go.
 */
uint64
scru64_ceiling_hold(void)
{
	ceiling_load(clock_tick(), allowance_ticks());
	(void) ceiling_page_lock(true);
	return reservation_of_server()->written;
}

void
scru64_ceiling_let_go(void)
{
	ceiling_page_unlock();
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
 * Raise the ceiling to a tick, unless it is high enough by now.  Whoever does not want to
 * wait leaves it to the session that is just raising it.
 *
 * Not if all nodes have been started anew since generation was read.  The caller may have
 * decided by a clock that was wrong; when that had been corrected, scru64_set_ceiling()
 * has lowered the ceiling, and this would raise it again.
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
		if (ceiling != reservation->written)
			start_above(ceiling);
		else if (ceiling < target)
			publish(reservation, target, ceiling_page_write(target));
		else
			publish(reservation, ceiling, reservation->written_at);
	}
	ceiling_page_unlock();
}

/*
 * Wait until the standbys have the ceiling of a tick, as far as it has been raised.
 *
 * What they have reached is known from their last answer, and an idle one has nothing
 * to answer to.  So after a while the ceiling is raised by a tick.
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
	while (ceiling_mark() < tick && tick <= ceiling_durable())
	{
		(void) ConditionVariableTimedSleep(&reservation->moved, nap_ms, wait_event);
		if (nap_ms == MAX_NAP_MS)
			ceiling_raise(generation, durable + 1, durable + 1, false);
		nap_ms = Min(2 * nap_ms, MAX_NAP_MS);
	}
	ConditionVariableCancelSleep();
}

/*
 * scru64_create_ceiling() -> void
 *
 * For CREATE EXTENSION: make the page, if there is none, with a ceiling that says
 * that nothing was given out.
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
	}
	ceiling_page_unlock();
	PG_RETURN_VOID();
}

/*
 * Whatever was given out and whatever the page says: all nodes of this server
 * start after a tick.  Not to be called during recovery.
 */
void
ceiling_set(uint64 ceiling)
{
	Reservation *reservation = reservation_of_server();
	XLogRecPtr	written_at;

	/*
	 * First the slots: so nothing leaves that the new ceiling does not cover.  If
	 * it cannot be written, the next raise finds the old one on the page.  The
	 * standbys get it with that raise.
	 */
	(void) ceiling_page_lock(true);
	start_above(ceiling);
	written_at = ceiling_page_write(ceiling);
	SpinLockAcquire(&reservation->mutex);
	reservation->written_at = written_at;
	SpinLockRelease(&reservation->mutex);
	ceiling_page_unlock();
}
