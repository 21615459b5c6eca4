/*-------------------------------------------------------------------------
 *
 * ceiling.c
 *		The ceiling: how far the IDs of this server may go.
 *
 * Loads, raises and sets the ceiling for the slots of node_slots.c, and keeps it on
 * the page of ceiling_page.c.
 *
 * Every ID that leaves is of a tick at or below the ceiling, and the ceiling is
 * flushed to the WAL before.  So in the order of the WAL it stands before every
 * row with such an ID: whatever state a server has by replaying WAL, by a crash, a
 * promotion, a restore to any point, with a row it has the row's ceiling.  It
 * starts above that.  No clock comes into it.
 *
 * What guards what:
 *
 *	the page, Reservation.written
 *						the page's lock (ceiling_page_lock), which is held during
 *						I/O, and can be waited for cancellably.
 *	Reservation.loaded	atomic; set under the page's lock, once.
 *	Reservation.durable	atomic; written under the page's lock, read without.
 *
 * Invariants:
 *
 *	- durable is 0, or a ceiling that was written by this shared memory and
 *	  flushed, at or below the page's.
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

#include "miscadmin.h"
#include "utils/timestamp.h"

#include "ceiling.h"
#include "ceiling_page.h"
#include "clock.h"
#include "id_time.h"
#include "node_slots.h"
#include "settings.h"

PG_FUNCTION_INFO_V1(scru64_create_ceiling);

static Reservation *
reservation_of_server(void)
{
	ensure_slots();
	return &node_slots->reservation;
}

/*
 * The tick up to which IDs may be given out.
 *
 * Ordering: a session reads it before it advances a state, which is a full
 * barrier.  It is raised after the ceiling was flushed, and lowered before all
 * slots are taken from their nodes: then that fails.
 */
uint64
ceiling_durable(void)
{
	return pg_atomic_read_u64(&reservation_of_server()->durable);
}

/*
 * Start all nodes above a tick, the ceiling on the page, and give out nothing
 * until that is raised.  Page locked.
 *
 * Ordering: durable is gone before the slots are.  A session that has found it
 * high enough before advances its node before the slot is taken, or not at all.
 */
static void
start_above(uint64 ceiling)
{
	Reservation *reservation = reservation_of_server();

	pg_atomic_write_u64(&reservation->durable, 0);
	pg_memory_barrier();
	node_slots_restart(ceiling);
	reservation->written = ceiling;
	pg_write_barrier();
	pg_atomic_write_u32(&reservation->loaded, 1);
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
	Reservation *reservation = reservation_of_server();
	uint64		ceiling;

	if (pg_atomic_read_u32(&reservation->loaded))
		return;
	(void) ceiling_page_lock(true);
	if (!pg_atomic_read_u32(&reservation->loaded))
	{
		if (!ceiling_page_read(&ceiling))
		{
			ceiling = Min(now + allowance, SCRU64_LAST_TIMESTAMP);
			ceiling_page_write(ceiling);
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

/*
 * Reserve the ticks up to target, for a node whose state needs it.  Page locked.
 * Returns the ceiling on the page then, or 0 if there is nothing to wait for.
 *
 * If the state is another one when the page is locked, what was asked for may
 * have been decided by a clock or a ceiling that was corrected meanwhile.
 */
static uint64
reserve(NodeSlot *slot, NodeKey key, uint64 state, uint64 target)
{
	Reservation *reservation = reservation_of_server();
	uint64		current;
	uint64		ceiling;

	if (!node_slot_read(slot, key, &current) || current != state ||
		ceiling_durable() >= target)
		return 0;
	if (!ceiling_page_read(&ceiling))
		ceiling_page_damaged("Its page has disappeared since the server was started.");
	if (ceiling != reservation->written)
	{
		start_above(ceiling);
		return 0;
	}
	/* else another session has written it, and waits */
	if (ceiling < target)
	{
		ceiling_page_write(target);
		reservation->written = ceiling = target;
	}
	return ceiling;
}

/*
 * Raise the ceiling to a tick, for a node whose state needs it.  False if nothing
 * was done, because another session is at it and the caller does not want to
 * wait; else read the state anew.
 */
bool
ceiling_raise(NodeSlot *slot, NodeKey key, uint64 state, uint64 target,
			  bool wait)
{
	Reservation *reservation = reservation_of_server();
	uint64		ceiling;

	if (!ceiling_page_lock(wait))
		return false;
	if (!wait && reservation->written >= target)
	{
		ceiling_page_unlock();
		return false;
	}
	ceiling = reserve(slot, key, state, target);
	ceiling_page_unlock();
	if (ceiling == 0)
		return true;

	/* in the meantime others can reserve more, or all can have been set back */
	ceiling_page_wait();
	(void) ceiling_page_lock(true);
	if (reservation->written >= ceiling && ceiling_durable() < ceiling)
		pg_atomic_write_u64(&reservation->durable, ceiling);
	ceiling_page_unlock();
	return true;
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
		if (pg_atomic_read_u32(&reservation_of_server()->loaded))
			ceiling_page_damaged("Its page has disappeared since the server was started.");
		ceiling_page_write(0);
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
	/*
	 * First the slots: so nothing leaves that the new ceiling does not cover.  If
	 * it cannot be written, the next raise finds the old one on the page.
	 */
	(void) ceiling_page_lock(true);
	start_above(ceiling);
	ceiling_page_write(ceiling);
	ceiling_page_unlock();
	ceiling_page_wait();
}
