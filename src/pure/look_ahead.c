/*-------------------------------------------------------------------------
 *
 * look_ahead.c
 *		May a node enter a tick, and how far is the ceiling to be raised?
 *
 * The ceiling is the last tick whose IDs this server may issue.  Knows nothing of PostgreSQL.  The
 * rules and reasons are in look_ahead.h.
 *
 *-------------------------------------------------------------------------
 */
#include "pure/look_ahead.h"

/* How far ahead of the clock this node wants the ceiling to be. */
static uint64_t
wanted_lead(const LookAhead *request)
{
	uint64_t	lead = request->tick > request->now ? request->tick - request->now : 0;
	uint64_t	wanted = request->overflow ?
		greatest_of(LOOK_AHEAD_OVERFLOW_TICKS, lead + LOOK_AHEAD_TICKS) :
		LOOK_AHEAD_TICKS;

	return least_of(wanted, look_ahead_most(request->allowance));
}

/*
 * Is it time to raise the ceiling?  If the allowance leaves little room to look ahead,
 * "near" is less, or every tick would raise the ceiling.
 */
static bool
is_near(const LookAhead *request, uint64_t lead)
{
	uint64_t	early = least_of(LOOK_AHEAD_EARLY_TICKS,
								 lead * LOOK_AHEAD_EARLY_TICKS / LOOK_AHEAD_TICKS);

	return request->durable - request->tick < early;
}

LookAheadVerdict
look_ahead(const LookAhead *request, uint64_t *target)
{
	uint64_t	lead = wanted_lead(request);
	uint64_t	wanted = least_of(greatest_of(request->tick, request->now + lead),
								  least_of(request->limit, SCRU64_LAST_TIMESTAMP));

	if (request->tick > request->limit)
		return LOOK_AHEAD_PAST_LIMIT;
	if (request->tick > request->usable && request->tick <= request->durable)
		return LOOK_AHEAD_WAIT;
	if (request->tick <= request->durable &&
		(request->durable >= wanted || !is_near(request, lead)))
		return LOOK_AHEAD_ENTER;
	*target = wanted;
	return request->tick <= request->durable ?
		LOOK_AHEAD_ENTER_AND_RAISE : LOOK_AHEAD_RAISE_FIRST;
}
