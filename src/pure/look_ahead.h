/*-------------------------------------------------------------------------
 *
 * look_ahead.h
 *		May a node enter a tick, and how far is the ceiling to be raised?
 *
 * The ceiling is the last tick whose IDs this server may issue; ceiling.c raises it.  Knows
 * nothing of PostgreSQL.  Pure: input is the tick, the clock and the ceiling, output a verdict.
 * All times are in ticks.
 *
 * A raise costs a write to the WAL, so the ceiling is set some way ahead, and a session
 * that comes near it raises it while the others continue.  But after a restart all nodes
 * start above the ceiling, and so ahead of the clock: it is set no farther ahead than necessary.
 *
 *-------------------------------------------------------------------------
 */
#ifndef LOOK_AHEAD_H
#define LOOK_AHEAD_H

#include "pure/scru64.h"

/* How far the ceiling is set ahead of the clock: about four seconds. */
#define LOOK_AHEAD_TICKS			16

/*
 * The ceiling is raised when a node enters a tick nearer to it than this.  So even with IDs
 * in every tick, a raise of up to 2.5 s is over before a session needs a tick above.
 */
#define LOOK_AHEAD_EARLY_TICKS		11

/*
 * A node that overflows will overflow again: the ceiling is set 10 s ahead at once, which
 * is all of the default allowance, or LOOK_AHEAD_TICKS ahead of the node if that is more.
 */
#define LOOK_AHEAD_OVERFLOW_TICKS	39

/* A request of a node to enter a tick */
typedef struct LookAhead
{
	uint64_t	tick;
	uint64_t	now;			/* the clock */
	uint64_t	allowance;		/* how far an ID may be ahead of the clock */
	uint64_t	durable;		/* the durable ceiling */
	uint64_t	usable;			/* the ceiling usable for this session */
	uint64_t	limit;			/* the last tick of the node's lease */
	bool		overflow;		/* is the tick before it full? */
} LookAhead;

typedef enum LookAheadVerdict
{
	LOOK_AHEAD_ENTER,			/* the tick is at or below the usable ceiling */
	LOOK_AHEAD_ENTER_AND_RAISE, /* likewise, and the ceiling is near */
	LOOK_AHEAD_WAIT,			/* the durable ceiling is high enough, the usable not yet */
	LOOK_AHEAD_RAISE_FIRST,		/* the tick is above the durable ceiling */
	LOOK_AHEAD_PAST_LIMIT		/* the tick is after the lease's window */
} LookAheadVerdict;

/*
 * How far the ceiling may be ahead of the clock, and a tick entered by overflow: one tick
 * less than the allowance.  After a restart nodes start one tick above the ceiling, and
 * this tick must still be within the allowance.
 */
static inline uint64_t
look_ahead_most(uint64_t allowance)
{
	return allowance > 0 ? allowance - 1 : 0;
}

/*
 * Is a tick after the lease's window worth waiting for?  A renewal moves the limit at least
 * as far as the clock has moved.  So the tick is if the clock is within the window, and has
 * to move by at most within_ms for a renewal to reach the tick.
 */
static inline bool
look_ahead_is_reached(uint64_t tick, uint64_t limit, uint64_t now, int64_t within_ms)
{
	return now <= limit && (int64_t) ((tick - limit) << SCRU64_TICK_SHIFT) <= within_ms;
}

/*
 * May the node enter the tick?  *target is where to raise the ceiling to, never below the
 * tick; it is set if and only if the verdict is to raise.
 */
extern LookAheadVerdict look_ahead(const LookAhead *request, uint64_t *target);

#endif							/* LOOK_AHEAD_H */
