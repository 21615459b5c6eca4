/*-------------------------------------------------------------------------
 *
 * generator.h
 *		From one ID of a node to the next.
 *
 * Knows nothing of PostgreSQL.  Pure: input is the last ID, the clock and random bits,
 * output the next ID, or the reason why there is none.  Nothing here reads a clock, locks,
 * allocates or keeps anything, so every case can be tested by itself.
 *
 * SCRU64 specification v1.0.0, "Counter overflow handling" and "Clock rollback handling".
 * All times are in ticks.  The lead is how far an ID is ahead of the clock, the allowance
 * (scru64.rollback_allowance) the greatest lead of an ID that is generated without waiting:
 *
 *	1. Clock ahead of the last ID: take the clock's tick, with a random counter.
 *	2. Else continue in the last ID's tick.
 *	3. Counter full: enter the next tick, with a random counter.
 *	4. Rules 2 and 3 hold while the lead of the next ID is at most the allowance.  If the lead
 *	   is greater, the caller waits for the clock.  If the lead is greater than twice the
 *	   allowance (with an allowance of 0: than one tick), the caller gives up.  The last ID is
 *	   never taken back: a node never returns to a tick that it has left.
 *
 * Invariants: the next ID is greater than the last, has the node's own bits, and is of neither
 * the first nor the last tick, whose IDs the specification reserves.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GENERATOR_H
#define GENERATOR_H

#include "pure/scru64.h"

/*
 * Leading bits of a tick's first counter that are kept clear, as room for the next
 * IDs of the tick.  A node enters a tick by overflow under load, when every value
 * skipped is capacity lost.
 */
#define GENERATOR_GUARD_BITS			1
#define GENERATOR_OVERFLOW_GUARD_BITS	4

/* The constants of a node */
typedef struct Generator
{
	uint32_t	node_base;		/* the node's bits of a node_ctr, counter 0 */
	uint32_t	max_counter;	/* also the counter's mask */
} Generator;

typedef enum GeneratorVerdict
{
	GENERATOR_NEXT,				/* *next is the next ID */
	GENERATOR_NEXT_BY_OVERFLOW, /* likewise, in a tick entered by rule 3 */
	GENERATOR_WAIT,				/* rule 4: try again at generator_due() */
	GENERATOR_CLOCK_BEHIND,		/* rule 4: give up */
	GENERATOR_EXHAUSTED			/* past the last tick, in the year 4261 */
} GeneratorVerdict;

static inline Generator
generator_make(Scru64Node node)
{
	Generator	generator = {
		.node_base = scru64_node_base(node),
		.max_counter = scru64_max_counter(node)
	};

	return generator;
}

/*
 * The last ID that this node can have in a tick.  The ID after it is of a later tick.
 */
static inline uint64_t
generator_last_of_tick(const Generator *generator, uint64_t timestamp)
{
	return scru64_compose(timestamp,
						  generator->node_base | generator->max_counter);
}

/*
 * A lower bound of this node's IDs after last.  If last is the last ID of its tick, they
 * are of the next tick or later.
 */
static inline uint64_t
generator_first_after(const Generator *generator, uint64_t last)
{
	return (last & generator->max_counter) == generator->max_counter ?
		scru64_compose(scru64_get_timestamp(last) + 1, 0) : last + 1;
}

/* Does an ID have the node's bits? */
static inline bool
generator_owns(const Generator *generator, uint64_t id)
{
	return ((id - generator->node_base) & SCRU64_MAX_NODE_CTR) <= generator->max_counter;
}

/*
 * Rule 2, the case of nearly every ID under load, by itself: callers inline it, and draw
 * no random bits.  False, with *next untouched, where rule 2 does not apply.  Never true
 * if last is an ID of another node or of the last tick, or above SCRU64_MAX_ID, and so no ID.
 */
static inline bool
generator_increment(const Generator *generator, uint64_t last, uint64_t now,
					uint64_t allowance, uint64_t *next)
{
	uint64_t	timestamp = scru64_get_timestamp(last);

	if (timestamp < now || timestamp - now > allowance ||
		timestamp > SCRU64_LAST_TIMESTAMP ||
		((last - generator->node_base) & SCRU64_MAX_NODE_CTR) >= generator->max_counter)
		return false;
	*next = last + 1;
	return true;
}

/*
 * All rules.
 *
 *	last		last ID issued, with this node's bits, or generator_last_of_tick();
 *				in tick 0 only generator_last_of_tick()
 *	now			the clock, in ticks
 *	allowance	how far an ID may be ahead of the clock, in ticks, below 2^32
 *	random		random bits; the low 23 matter
 *
 * *next is set if and only if the verdict is one of the first two of the enum.
 */
extern GeneratorVerdict generator_next(const Generator *generator,
									   uint64_t last, uint64_t now,
									   uint64_t allowance, uint32_t random,
									   uint64_t *next);

/* The tick that the clock has to reach before the ID after last can be issued. */
extern uint64_t generator_due(const Generator *generator, uint64_t last,
							  uint64_t allowance);

/*
 * Is an ID of this timestamp so far ahead of the clock that generator_next()
 * gives up on it?
 */
extern bool generator_too_far_ahead(uint64_t timestamp, uint64_t now,
									uint64_t allowance);

/*
 * The tick after which IDs of a new lease begin: start, or last, the tick of the server's last ID
 * of a lease before, so that IDs stay in order.
 *
 *	start, limit	IDs of the lease are of ticks after start, up to limit
 *	now				the later of this server's clock and the realm's
 *	allowance		how far an ID may be ahead of the clock, in ticks
 *
 * Not last if it is more than the allowance ahead: then a clock was wrong, or the allowance was
 * greater, and the new lease is the chance to recover.  Nor if the window ends before: then
 * sessions would wait for the next renewal.
 */
static inline uint64_t
generator_start_after(uint64_t start, uint64_t limit, uint64_t last, uint64_t now, uint64_t allowance)
{
	return last > start && last < limit && last <= now + allowance ? last : start;
}

#endif							/* GENERATOR_H */
