/*-------------------------------------------------------------------------
 *
 * look_ahead.h
 *		May a node enter a tick, and how far is the ceiling to be raised?
 *
 * Knows nothing of PostgreSQL.  Pure: what is known of the tick, the clock and the
 * ceiling goes in, what to do comes out.  ceiling.c says what the ceiling is, and
 * raises it.  All times are in ticks.
 *
 * A raise costs a write to the WAL, so the ceiling is put some way ahead, and
 * whoever comes near it raises it while the others go on.  But a server that is
 * restarted begins above the ceiling, and gives out nothing before: so it is not
 * put farther ahead than need be.
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
 * A node that overflows goes on to do so: it gets the next 10 s at once, which is
 * all of the default allowance, and beyond that LOOK_AHEAD_TICKS more than it has
 * used up.
 */
#define LOOK_AHEAD_OVERFLOW_TICKS	39

/* What a node asks for that wants to enter a tick. */
typedef struct LookAhead
{
	uint64_t	tick;
	uint64_t	now;			/* the clock */
	uint64_t	allowance;		/* how far an ID may be ahead of it */
	uint64_t	durable;		/* the ceiling that was flushed here, */
	uint64_t	mark;			/* and the one that this session may use */
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
 * How far ahead of the clock anything may be that a restart has to start above:
 * it begins one tick later, and that has to be within the allowance.
 */
static inline uint64_t
look_ahead_most(uint64_t allowance)
{
	return allowance > 0 ? allowance - 1 : 0;
}

/*
 * What to do about a tick.  *target is where the ceiling is to be raised to; it is
 * set if and only if the verdict is to raise, and never below the tick.
 */
extern LookAheadVerdict look_ahead(const LookAhead *asked, uint64_t *target);

#endif							/* LOOK_AHEAD_H */
