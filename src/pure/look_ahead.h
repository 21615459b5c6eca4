/*-------------------------------------------------------------------------
 *
 * look_ahead.h
 *		May a node enter a tick, and how far is the ceiling to be raised?
 *
 * Knows nothing of PostgreSQL.  Pure: the tick, the clock and the ceiling go in, a verdict
 * comes out.  ceiling.c explains the ceiling, and raises it.  All times are in ticks.
 *
 * A raise costs a write to the WAL, so the ceiling is put some way ahead, and the session
 * that comes near it raises it while the others go on.  But after a restart all nodes
 * start above the ceiling: so it is not put farther ahead than necessary.
 *
 *-------------------------------------------------------------------------
 */
#ifndef LOOK_AHEAD_H
#define LOOK_AHEAD_H

#include "pure/scru64.h"

/* How far the ceiling is put ahead of the clock: about four seconds. */
#define LOOK_AHEAD_TICKS			16

/*
 * The ceiling is raised when it is nearer than this.  So while there are IDs in every
 * tick, a raise of up to 2.5 s is over before any session has used up what is left.
 */
#define LOOK_AHEAD_EARLY_TICKS		11

/*
 * A node that overflows will do so again: it gets the next 10 s at once, all of the
 * default allowance, and beyond that LOOK_AHEAD_TICKS more than it has used.
 */
#define LOOK_AHEAD_OVERFLOW_TICKS	39

/* A node asks to enter a tick. */
typedef struct LookAhead
{
	uint64_t	tick;
	uint64_t	now;			/* the clock */
	uint64_t	allowance;		/* how far an ID may be ahead of it */
	uint64_t	durable;		/* the ceiling, as flushed here, */
	uint64_t	mark;			/* and as this session may use it */
	uint64_t	limit;			/* the last tick of the node's lease */
	bool		overflow;		/* is the tick before it full? */
} LookAhead;

typedef enum LookAheadVerdict
{
	LOOK_AHEAD_ENTER,			/* the tick is at or below the mark */
	LOOK_AHEAD_ENTER_AND_RAISE, /* likewise, and the ceiling is near */
	LOOK_AHEAD_WAIT,			/* the ceiling is high enough, the mark not yet */
	LOOK_AHEAD_RAISE_FIRST,		/* the tick is above the ceiling */
	LOOK_AHEAD_PAST_LIMIT		/* the tick is after the lease's window */
} LookAheadVerdict;

/*
 * How far the ceiling, and an ID, may be ahead of the clock: nodes start one tick later
 * after a restart, and that tick has to be within the allowance.
 */
static inline uint64_t
look_ahead_most(uint64_t allowance)
{
	return allowance > 0 ? allowance - 1 : 0;
}

/*
 * Is a tick after the lease's window worth waiting for?  A window moves on with the clock at
 * least when the lease is renewed, so it reaches a tick that is ahead of the clock.
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
extern LookAheadVerdict look_ahead(const LookAhead *asked, uint64_t *target);

#endif							/* LOOK_AHEAD_H */
