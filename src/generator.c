/*-------------------------------------------------------------------------
 *
 * generator.c
 *		The transition from one ID of a node to the next.
 *
 * Knows nothing of PostgreSQL.  The rules and the invariants are in generator.h.
 *
 *-------------------------------------------------------------------------
 */
#include "generator.h"

/* A random counter with some leading bits clear, in a tick of this node. */
static uint64_t
enter_tick(const Generator *generator, uint64_t timestamp, uint32_t random,
		   int guard_bits)
{
	uint32_t	counter = random & (generator->max_counter >> guard_bits);

	return scru64_compose(timestamp, generator->node_base | counter);
}

/* The tick in which rules 2 and 3 put the ID after last. */
static uint64_t
continued_timestamp(const Generator *generator, uint64_t last)
{
	bool		full = (last & generator->max_counter) == generator->max_counter;

	return scru64_get_timestamp(last) + (full ? 1 : 0);
}

/*
 * The largest lead that is worth a wait.  A node that is merely saturated
 * asks for one tick more than the allowance, whatever the allowance is.
 */
static uint64_t
longest_lead(uint64_t allowance)
{
	return allowance > 0 ? 2 * allowance : 1;
}

bool
generator_hopeless(uint64_t timestamp, uint64_t now, uint64_t allowance)
{
	return timestamp > now && timestamp - now > longest_lead(allowance);
}

uint64_t
generator_due(const Generator *generator, uint64_t last, uint64_t allowance)
{
	uint64_t	timestamp = continued_timestamp(generator, last);

	return timestamp > allowance ? timestamp - allowance : 0;
}

GeneratorVerdict
generator_next(const Generator *generator, uint64_t last, uint64_t now,
			   uint64_t allowance, uint32_t random, uint64_t *next)
{
	bool		fresh = now > scru64_get_timestamp(last);
	uint64_t	timestamp = fresh ? now : continued_timestamp(generator, last);

	if (generator_hopeless(timestamp, now, allowance))
		return GENERATOR_CLOCK_BEHIND;
	if (timestamp > SCRU64_LAST_TIMESTAMP)
		return GENERATOR_EXHAUSTED;
	if (timestamp > now && timestamp - now > allowance)
		return GENERATOR_WAIT;

	if (fresh)
	{
		*next = enter_tick(generator, timestamp, random, GENERATOR_GUARD_BITS);
		return GENERATOR_NEXT;
	}
	if (timestamp > scru64_get_timestamp(last))
	{
		*next = enter_tick(generator, timestamp, random,
						   GENERATOR_OVERFLOW_GUARD_BITS);
		return GENERATOR_NEXT_BY_OVERFLOW;
	}
	*next = last + 1;
	return GENERATOR_NEXT;
}
