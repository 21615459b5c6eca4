/*-------------------------------------------------------------------------
 *
 * generator.c
 *		From one ID of a node to the next.
 *
 * Computes the next ID from the last one and the clock, or the reason why there is none.  The rules
 * and the invariants are in generator.h.
 *
 *-------------------------------------------------------------------------
 */
#include "pure/generator.h"

/* The tick of the ID after last, by rules 2 and 3. */
static uint64_t
continued_timestamp(const Generator *generator, uint64_t last)
{
	bool		full = (last & generator->max_counter) == generator->max_counter;

	return scru64_get_timestamp(last) + (full ? 1 : 0);
}

bool
generator_too_far_ahead(uint64_t timestamp, uint64_t now, uint64_t allowance)
{
	/*
	 * A saturated node needs the tick after the allowance, and shall wait for the clock
	 * even if the allowance is 0.
	 */
	uint64_t	longest_lead = allowance > 0 ? 2 * allowance : 1;

	return timestamp > now && timestamp - now > longest_lead;
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
	int			guard_bits = fresh ? GENERATOR_GUARD_BITS : GENERATOR_OVERFLOW_GUARD_BITS;

	if (generator_too_far_ahead(timestamp, now, allowance))
		return GENERATOR_CLOCK_BEHIND;
	if (timestamp > SCRU64_LAST_TIMESTAMP)
		return GENERATOR_EXHAUSTED;
	if (timestamp > now && timestamp - now > allowance)
		return GENERATOR_WAIT;

	if (timestamp == scru64_get_timestamp(last))
	{
		*next = last + 1;
		return GENERATOR_NEXT;
	}
	*next = scru64_compose(timestamp, generator->node_base |
						   (random & (generator->max_counter >> guard_bits)));
	return fresh ? GENERATOR_NEXT : GENERATOR_NEXT_BY_OVERFLOW;
}
