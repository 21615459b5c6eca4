/*-------------------------------------------------------------------------
 *
 * look_ahead.c
 *		May a node enter a tick, and how far is the ceiling to be raised?
 *
 * Knows nothing of PostgreSQL.  The reasons are in look_ahead.h.
 *
 *-------------------------------------------------------------------------
 */
#include "pure/look_ahead.h"

/* How far ahead of the clock this node wants the ceiling to be. */
static uint64_t
wanted_lead(const LookAhead *asked)
{
	uint64_t	lead = asked->tick > asked->now ? asked->tick - asked->now : 0;
	uint64_t	wanted = asked->overflow ?
		greatest_of(LOOK_AHEAD_OVERFLOW_TICKS, lead + LOOK_AHEAD_TICKS) :
		LOOK_AHEAD_TICKS;

	return least_of(wanted, look_ahead_most(asked->allowance));
}

/*
 * Is the ceiling so near that it is time to raise it?  An allowance that leaves
 * little room to look ahead must not have every tick raise it.
 */
static bool
is_near(const LookAhead *asked, uint64_t lead)
{
	uint64_t	early = least_of(LOOK_AHEAD_EARLY_TICKS,
								 lead * LOOK_AHEAD_EARLY_TICKS / LOOK_AHEAD_TICKS);

	return asked->durable - asked->tick < early;
}

LookAheadVerdict
look_ahead(const LookAhead *asked, uint64_t *target)
{
	uint64_t	lead = wanted_lead(asked);
	uint64_t	wanted = least_of(greatest_of(asked->tick, asked->now + lead),
								  least_of(asked->limit, SCRU64_LAST_TIMESTAMP));

	if (asked->tick > asked->limit)
		return LOOK_AHEAD_PAST_LIMIT;
	if (asked->tick > asked->mark && asked->tick <= asked->durable)
		return LOOK_AHEAD_WAIT;
	if (asked->tick <= asked->durable &&
		(asked->durable >= wanted || !is_near(asked, lead)))
		return LOOK_AHEAD_ENTER;
	*target = wanted;
	return asked->tick <= asked->durable ?
		LOOK_AHEAD_ENTER_AND_RAISE : LOOK_AHEAD_RAISE_FIRST;
}
