/*-------------------------------------------------------------------------
 *
 * test_generator.c
 *		Unit tests of generator.c: the transition from an ID to the next.
 *
 * Each rule with its edges by hand; then long random histories, compared step
 * by step with a model of the rules and with what must hold after any step;
 * then what a node can do under sustained load.
 *
 *-------------------------------------------------------------------------
 */
#include "pure/generator.h"

#include "harness.h"

#define UNTOUCHED	UINT64_C(0xa5a5a5a5a5a5a5a5)
#define ALL_ONES	UINT32_MAX

#define IDS_PER_TICK	UINT64_C(16777216)	/* of all nodes together */
#define MAX_TIMESTAMP	UINT64_C(282429536480)	/* reserved, as 0 is */
#define LAST_TICK		(MAX_TIMESTAMP - 1)
#define TODAY			UINT64_C(6900000000)	/* in the year 2025 */
#define ALLOWANCE		UINT64_C(39)	/* 10 s */

static const uint64_t allowances[] = {
	1, 2, 3, ALLOWANCE, 100, 337500, UINT64_C(0x7fffffff), UINT64_C(0x80000000),
	UINT32_MAX
};

static const char *
verdict_name(GeneratorVerdict verdict)
{
	switch (verdict)
	{
		case GENERATOR_NEXT:
			return "NEXT";
		case GENERATOR_NEXT_BY_OVERFLOW:
			return "NEXT_BY_OVERFLOW";
		case GENERATOR_WAIT:
			return "WAIT";
		case GENERATOR_CLOCK_BEHIND:
			return "CLOCK_BEHIND";
		case GENERATOR_EXHAUSTED:
			return "EXHAUSTED";
	}
	return "?";
}

static bool
has_next(GeneratorVerdict verdict)
{
	return verdict == GENERATOR_NEXT || verdict == GENERATOR_NEXT_BY_OVERFLOW;
}

/* IDs of a node in a tick. */
static uint64_t
capacity_of(Scru64Node node)
{
	return IDS_PER_TICK >> node.node_id_size;
}

/* The ID of a node, from its parts. */
static uint64_t
id_of(Scru64Node node, uint64_t timestamp, uint64_t counter)
{
	return timestamp * IDS_PER_TICK + node.node_id * capacity_of(node) + counter;
}

static uint64_t
last_id_of(Scru64Node node, uint64_t timestamp)
{
	return id_of(node, timestamp, capacity_of(node) - 1);
}

/* Some nodes of each size: both ends and the middle of its node_ids. */
#define NODES_OF_EACH_SIZE	4
#define NODES	(23 * NODES_OF_EACH_SIZE)

static Scru64Node
node_at(int i)
{
	Scru64Node	node;
	uint32_t	count;

	node.node_id_size = 1 + (uint32_t) (i / NODES_OF_EACH_SIZE);
	count = UINT32_C(1) << node.node_id_size;
	switch (i % NODES_OF_EACH_SIZE)
	{
		case 0:
			node.node_id = 0;
			break;
		case 1:
			node.node_id = count - 1;
			break;
		case 2:
			node.node_id = count / 2;
			break;
		default:
			node.node_id = UINT32_C(0x555555) % count;
			break;
	}
	return node;
}

/*
 * Check a transition: its verdict, and its ID if it has one; if not, *next is
 * left alone.
 */
static void
check_step_at(int line, Scru64Node node, uint64_t last, uint64_t now,
			  uint64_t allowance, uint32_t random, GeneratorVerdict verdict,
			  uint64_t next)
{
	Generator	generator = generator_make(node);
	uint64_t	got_next = UNTOUCHED;
	GeneratorVerdict got = generator_next(&generator, last, now, allowance,
										  random, &got_next);
	uint64_t	incremented = UNTOUCHED;
	bool		increments = generator_increment(&generator, last, now,
												 allowance, &incremented);
	bool		passed;

	passed = CHECK(got == verdict);
	passed &= CHECK_UINT(got_next, ==, has_next(verdict) ? next : UNTOUCHED);

	/* the short way says the same, where it says anything */
	passed &= CHECK(increments == (verdict == GENERATOR_NEXT && next == last + 1 &&
								   now <= last / IDS_PER_TICK));
	passed &= CHECK_UINT(incremented, ==, increments ? next : UNTOUCHED);
	if (!passed)
	{
		TELL("in the step of line %d", line);
		TELL("node %" PRIu32 "/%" PRIu32 ", last tick %" PRIu64 " and counter %"
			 PRIu64 ", now %" PRIu64 ", allowance %" PRIu64 ", random %" PRIx32,
			 node.node_id, node.node_id_size, last / IDS_PER_TICK,
			 last % capacity_of(node), now, allowance, random);
		TELL("verdict %s, should be %s", verdict_name(got), verdict_name(verdict));
	}
}

#define CHECK_NEXT(node, last, now, allowance, random, next) \
	check_step_at(__LINE__, node, last, now, allowance, random, \
				  GENERATOR_NEXT, next)
#define CHECK_OVERFLOW(node, last, now, allowance, random, next) \
	check_step_at(__LINE__, node, last, now, allowance, random, \
				  GENERATOR_NEXT_BY_OVERFLOW, next)
#define CHECK_NO_NEXT(node, last, now, allowance, verdict) \
	check_step_at(__LINE__, node, last, now, allowance, ALL_ONES, verdict, 0)

/* Rule 1: the clock is ahead of the last ID. */
static void
rule_1_takes_the_clocks_tick(void)
{
	for (int i = 0; i < NODES; i++)
	{
		Scru64Node	node = node_at(i);
		uint64_t	counters[] = {0, capacity_of(node) / 2,
		capacity_of(node) - 1};

		for (size_t j = 0; j < LENGTH_OF(counters); j++)
		{
			uint64_t	last = id_of(node, TODAY, counters[j]);

			/* whatever the distance, the counter and the allowance */
			CHECK_NEXT(node, last, TODAY + 1, ALLOWANCE, 0,
					   id_of(node, TODAY + 1, 0));
			CHECK_NEXT(node, last, TODAY + 1, 0, 0, id_of(node, TODAY + 1, 0));
			CHECK_NEXT(node, last, TODAY + 2, ALLOWANCE, 0,
					   id_of(node, TODAY + 2, 0));
			CHECK_NEXT(node, last, TODAY + 1000000, UINT32_MAX, 0,
					   id_of(node, TODAY + 1000000, 0));
			CHECK_NEXT(node, last, LAST_TICK, ALLOWANCE, 0,
					   id_of(node, LAST_TICK, 0));
		}
	}
}

static void
rule_1_keeps_one_bit_clear(void)
{
	for (int i = 0; i < NODES; i++)
	{
		Scru64Node	node = node_at(i);
		uint64_t	last = id_of(node, TODAY, 0);
		uint64_t	half = capacity_of(node) / 2;

		CHECK_NEXT(node, last, TODAY + 1, ALLOWANCE, ALL_ONES,
				   id_of(node, TODAY + 1, half - 1));
		for (unsigned int bit = 0; bit < 32; bit++)
		{
			uint32_t	random = UINT32_C(1) << bit;

			/* each random bit below the clear one is used, the rest is not */
			CHECK_NEXT(node, last, TODAY + 1, ALLOWANCE, random,
					   id_of(node, TODAY + 1, random < half ? random : 0));
		}
	}
}

/* Rule 2: the clock is not ahead of the last ID. */
static void
rule_2_counts_on(void)
{
	for (int i = 0; i < NODES; i++)
	{
		Scru64Node	node = node_at(i);
		uint64_t	capacity = capacity_of(node);
		uint64_t	counters[] = {0, capacity / 2 - 1, capacity - 2};

		for (size_t j = 0; j < LENGTH_OF(counters); j++)
		{
			uint64_t	last = id_of(node, TODAY, counters[j]);
			uint64_t	next = id_of(node, TODAY, counters[j] + 1);

			/* in the same tick, whatever the allowance and the random bits */
			CHECK_NEXT(node, last, TODAY, ALLOWANCE, ALL_ONES, next);
			CHECK_NEXT(node, last, TODAY, ALLOWANCE, 0, next);
			CHECK_NEXT(node, last, TODAY, 0, ALL_ONES, next);

			/* with the clock back: up to the allowance */
			for (size_t k = 0; k < LENGTH_OF(allowances); k++)
			{
				uint64_t	allowance = allowances[k];

				CHECK_NEXT(node, last, TODAY - 1, allowance, ALL_ONES, next);
				CHECK_NEXT(node, last, TODAY - allowance, allowance, ALL_ONES,
						   next);
			}
		}
	}
}

/* Rule 3: the counter is full. */
static void
rule_3_enters_the_next_tick(void)
{
	for (int i = 0; i < NODES; i++)
	{
		Scru64Node	node = node_at(i);
		uint64_t	last = last_id_of(node, TODAY);
		uint64_t	next = id_of(node, TODAY + 1, 0);

		for (size_t k = 0; k < LENGTH_OF(allowances); k++)
		{
			uint64_t	allowance = allowances[k];

			CHECK_OVERFLOW(node, last, TODAY, allowance, 0, next);
			CHECK_OVERFLOW(node, last, TODAY + 1 - allowance, allowance, 0, next);
		}

		/* the clock is there already: that is rule 1 */
		CHECK_NEXT(node, last, TODAY + 1, ALLOWANCE, ALL_ONES,
				   id_of(node, TODAY + 1, capacity_of(node) / 2 - 1));
	}
}

static void
rule_3_keeps_four_bits_clear(void)
{
	for (int i = 0; i < NODES; i++)
	{
		Scru64Node	node = node_at(i);
		uint64_t	last = last_id_of(node, TODAY);

		/* of a counter of four bits or less nothing is random */
		uint64_t	limit = capacity_of(node) < 16 ? 1 : capacity_of(node) / 16;

		CHECK_OVERFLOW(node, last, TODAY, ALLOWANCE, ALL_ONES,
					   id_of(node, TODAY + 1, limit - 1));
		for (unsigned int bit = 0; bit < 32; bit++)
		{
			uint32_t	random = UINT32_C(1) << bit;

			CHECK_OVERFLOW(node, last, TODAY, ALLOWANCE, random,
						   id_of(node, TODAY + 1, random < limit ? random : 0));
		}
	}
}

/* Rule 4: wait beyond the allowance, give up beyond twice the allowance. */
static void
rule_4_waits_then_gives_up(void)
{
	for (int i = 0; i < NODES; i++)
	{
		Scru64Node	node = node_at(i);
		uint64_t	counters[] = {0, capacity_of(node) - 2};
		uint64_t	full = last_id_of(node, TODAY);

		for (size_t k = 0; k < LENGTH_OF(allowances); k++)
		{
			uint64_t	allowance = allowances[k];
			uint64_t	twice = 2 * allowance;

			if (twice + 1 > TODAY)
				continue;

			for (size_t j = 0; j < LENGTH_OF(counters); j++)
			{
				uint64_t	last = id_of(node, TODAY, counters[j]);

				/* the next ID is of the last one's tick */
				CHECK_NO_NEXT(node, last, TODAY - allowance - 1, allowance,
							  GENERATOR_WAIT);
				CHECK_NO_NEXT(node, last, TODAY - twice, allowance,
							  GENERATOR_WAIT);
				CHECK_NO_NEXT(node, last, TODAY - twice - 1, allowance,
							  GENERATOR_CLOCK_BEHIND);
				CHECK_NO_NEXT(node, last, 0, allowance, GENERATOR_CLOCK_BEHIND);
			}

			/* the next ID is of the tick after the last one's */
			CHECK_NO_NEXT(node, full, TODAY - allowance, allowance,
						  GENERATOR_WAIT);
			CHECK_NO_NEXT(node, full, TODAY + 1 - twice, allowance,
						  GENERATOR_WAIT);
			CHECK_NO_NEXT(node, full, TODAY - twice, allowance,
						  GENERATOR_CLOCK_BEHIND);
			CHECK_NO_NEXT(node, full, 0, allowance, GENERATOR_CLOCK_BEHIND);
		}
	}
}

/*
 * With no allowance IDs do not go ahead of the clock at all.  A node that is
 * saturated still waits for the next tick: it asks for one tick, and twice
 * nothing would leave no wait at all.
 */
static void
no_allowance(void)
{
	for (int i = 0; i < NODES; i++)
	{
		Scru64Node	node = node_at(i);
		uint64_t	last = id_of(node, TODAY, capacity_of(node) - 2);
		uint64_t	full = last_id_of(node, TODAY);

		CHECK_NEXT(node, last, TODAY, 0, 0, full);
		CHECK_NO_NEXT(node, last, TODAY - 1, 0, GENERATOR_WAIT);
		CHECK_NO_NEXT(node, last, TODAY - 2, 0, GENERATOR_CLOCK_BEHIND);

		CHECK_NEXT(node, full, TODAY + 1, 0, 0, id_of(node, TODAY + 1, 0));
		CHECK_NO_NEXT(node, full, TODAY, 0, GENERATOR_WAIT);
		CHECK_NO_NEXT(node, full, TODAY - 1, 0, GENERATOR_CLOCK_BEHIND);
	}
}

/* A node that has issued nothing starts after the reserved first tick. */
static void
starts_after_the_first_tick(void)
{
	for (int i = 0; i < NODES; i++)
	{
		Scru64Node	node = node_at(i);
		uint64_t	none = last_id_of(node, 0);
		uint64_t	half = capacity_of(node) / 2;

		CHECK_NO_NEXT(node, none, 0, 0, GENERATOR_WAIT);
		CHECK_OVERFLOW(node, none, 0, 1, 0, id_of(node, 1, 0));
		CHECK_OVERFLOW(node, none, 0, ALLOWANCE, 0, id_of(node, 1, 0));
		CHECK_NEXT(node, none, 1, 0, ALL_ONES, id_of(node, 1, half - 1));
		CHECK_NEXT(node, none, TODAY, 0, ALL_ONES, id_of(node, TODAY, half - 1));

		/* a clock that reads 0 after IDs were issued */
		CHECK_NEXT(node, id_of(node, 1, 0), 0, 1, 0, id_of(node, 1, 1));
		CHECK_NO_NEXT(node, id_of(node, 1, 0), 0, 0, GENERATOR_WAIT);
		CHECK_NEXT(node, id_of(node, ALLOWANCE, 0), 0, ALLOWANCE, 0,
				   id_of(node, ALLOWANCE, 1));
		CHECK_NO_NEXT(node, last_id_of(node, ALLOWANCE), 0, ALLOWANCE,
					  GENERATOR_WAIT);
		CHECK_NO_NEXT(node, id_of(node, 2 * ALLOWANCE, 0), 0, ALLOWANCE,
					  GENERATOR_WAIT);
		CHECK_NO_NEXT(node, last_id_of(node, 2 * ALLOWANCE), 0, ALLOWANCE,
					  GENERATOR_CLOCK_BEHIND);
		CHECK_NO_NEXT(node, id_of(node, 2 * ALLOWANCE + 1, 0), 0, ALLOWANCE,
					  GENERATOR_CLOCK_BEHIND);
		CHECK_NO_NEXT(node, id_of(node, TODAY, 0), 0, ALLOWANCE,
					  GENERATOR_CLOCK_BEHIND);
	}
}

/* The tick before the reserved last one is the last that gives IDs. */
static void
ends_with_the_tick_before_the_last(void)
{
	static const uint64_t beyond[] = {
		MAX_TIMESTAMP, MAX_TIMESTAMP + 1, UINT64_C(1) << 39, UINT64_C(1) << 40,
		(UINT64_C(1) << 40) + 1, UINT64_C(1) << 63, UINT64_MAX
	};

	for (int i = 0; i < NODES; i++)
	{
		Scru64Node	node = node_at(i);
		uint64_t	capacity = capacity_of(node);
		uint64_t	early = id_of(node, TODAY, 0);
		uint64_t	late = id_of(node, LAST_TICK, 0);
		uint64_t	full = last_id_of(node, LAST_TICK);
		uint64_t	lasts[] = {early, late, full};

		CHECK_NEXT(node, early, LAST_TICK, ALLOWANCE, 0, late);
		CHECK_NEXT(node, late, LAST_TICK, ALLOWANCE, 0, late + 1);
		CHECK_NEXT(node, full - 1, LAST_TICK, ALLOWANCE, 0, full);
		CHECK_NEXT(node, full - 1, LAST_TICK - ALLOWANCE, ALLOWANCE, 0, full);
		CHECK_OVERFLOW(node, last_id_of(node, LAST_TICK - 1), LAST_TICK - 1,
					   ALLOWANCE, ALL_ONES,
					   id_of(node, LAST_TICK, capacity < 16 ? 0 : capacity / 16 - 1));

		/* there is no tick after it to go on in, nor to wait for */
		CHECK_NO_NEXT(node, full, LAST_TICK, ALLOWANCE, GENERATOR_EXHAUSTED);
		CHECK_NO_NEXT(node, full, LAST_TICK, 0, GENERATOR_EXHAUSTED);
		CHECK_NO_NEXT(node, full, MAX_TIMESTAMP - ALLOWANCE, ALLOWANCE,
					  GENERATOR_EXHAUSTED);
		CHECK_NO_NEXT(node, full, MAX_TIMESTAMP - 2 * ALLOWANCE, ALLOWANCE,
					  GENERATOR_EXHAUSTED);
		CHECK_NO_NEXT(node, full, MAX_TIMESTAMP - 2 * ALLOWANCE - 1, ALLOWANCE,
					  GENERATOR_CLOCK_BEHIND);

		for (size_t j = 0; j < LENGTH_OF(beyond); j++)
			for (size_t k = 0; k < LENGTH_OF(lasts); k++)
			{
				CHECK_NO_NEXT(node, lasts[k], beyond[j], ALLOWANCE,
							  GENERATOR_EXHAUSTED);
				CHECK_NO_NEXT(node, lasts[k], beyond[j], 0,
							  GENERATOR_EXHAUSTED);
			}
	}
}

/* A node_prev may be of the reserved last tick: nothing comes after it. */
static void
node_prev_in_the_reserved_last_tick(void)
{
	for (int i = 0; i < NODES; i++)
	{
		Scru64Node	node = node_at(i);
		uint64_t	lasts[] = {
			id_of(node, MAX_TIMESTAMP, 0),
			id_of(node, MAX_TIMESTAMP, capacity_of(node) - 2),
			id_of(node, MAX_TIMESTAMP, capacity_of(node) - 1)
		};

		for (size_t k = 0; k < LENGTH_OF(lasts); k++)
		{
			CHECK_NO_NEXT(node, lasts[k], TODAY, ALLOWANCE,
						  GENERATOR_CLOCK_BEHIND);
			CHECK_NO_NEXT(node, lasts[k], 0, ALLOWANCE, GENERATOR_CLOCK_BEHIND);
			CHECK_NO_NEXT(node, lasts[k], MAX_TIMESTAMP - ALLOWANCE - 2,
						  ALLOWANCE, GENERATOR_EXHAUSTED);
			CHECK_NO_NEXT(node, lasts[k], MAX_TIMESTAMP - ALLOWANCE, ALLOWANCE,
						  GENERATOR_EXHAUSTED);
			CHECK_NO_NEXT(node, lasts[k], LAST_TICK, ALLOWANCE,
						  GENERATOR_EXHAUSTED);
			CHECK_NO_NEXT(node, lasts[k], MAX_TIMESTAMP, ALLOWANCE,
						  GENERATOR_EXHAUSTED);
			CHECK_NO_NEXT(node, lasts[k], MAX_TIMESTAMP, 0,
						  GENERATOR_EXHAUSTED);
			CHECK_NO_NEXT(node, lasts[k], MAX_TIMESTAMP + 1, ALLOWANCE,
						  GENERATOR_EXHAUSTED);
		}
	}
}

/* A word whose highest bit is set is no ID, and is not incremented. */
static void
no_increment_of_what_is_no_id(void)
{
	Scru64Node	node = {42, 8};
	Generator	generator = generator_make(node);
	uint64_t	words[] = {
		UINT64_C(1) << 63, UINT64_C(1) << 63 | id_of(node, TODAY, 0),
		UINT64_C(1) << 63 | last_id_of(node, 0), UINT64_MAX - 1, UINT64_MAX
	};

	for (size_t i = 0; i < LENGTH_OF(words); i++)
		for (size_t k = 0; k < LENGTH_OF(allowances); k++)
		{
			uint64_t	next = UNTOUCHED;

			CHECK(!generator_increment(&generator, words[i], 0, allowances[k],
									   &next));
			CHECK(!generator_increment(&generator, words[i], TODAY,
									   allowances[k], &next));
			CHECK(!generator_increment(&generator, words[i], MAX_TIMESTAMP,
									   allowances[k], &next));
			CHECK_UINT(next, ==, UNTOUCHED);
		}
}

/* Nor is an ID of another node, whatever its counter is. */
static void
no_increment_of_another_nodes_id(void)
{
	Scru64Node	others[] = {{41, 8}, {43, 8}, {0, 8}, {255, 8}, {84, 9}, {43, 23}};
	Generator	generator = generator_make((Scru64Node) {42, 8});

	for (size_t i = 0; i < LENGTH_OF(others); i++)
	{
		/* 84/9 lies inside 42/8 */
		bool		is_inside = others[i].node_id_size == 9;
		uint64_t	ids[] = {id_of(others[i], TODAY, 0), last_id_of(others[i], TODAY)};

		for (size_t k = 0; k < LENGTH_OF(ids); k++)
		{
			uint64_t	next = UNTOUCHED;

			CHECK_UINT(generator_owns(&generator, ids[k]), ==, is_inside);
			CHECK_UINT(generator_increment(&generator, ids[k], TODAY, ALLOWANCE, &next), ==, is_inside);
			CHECK_UINT(next, ==, is_inside ? ids[k] + 1 : UNTOUCHED);
		}
	}
}

static void
last_of_tick(void)
{
	for (int i = 0; i < NODES; i++)
	{
		Scru64Node	node = node_at(i);
		Generator	generator = generator_make(node);
		uint64_t	ticks[] = {0, 1, TODAY, LAST_TICK, MAX_TIMESTAMP};

		CHECK_UINT(generator.node_base, ==, node.node_id * capacity_of(node));
		CHECK_UINT(generator.max_counter, ==, capacity_of(node) - 1);
		for (size_t j = 0; j < LENGTH_OF(ticks); j++)
		{
			uint64_t	last = last_id_of(node, ticks[j]);

			CHECK_UINT(generator_last_of_tick(&generator, ticks[j]), ==, last);
			CHECK_UINT(generator_first_after(&generator, last), ==, (ticks[j] + 1) * IDS_PER_TICK);
			CHECK_UINT(generator_first_after(&generator, last - 1), ==, last);
		}
	}
}

static void
hopeless(void)
{
	for (size_t k = 0; k < LENGTH_OF(allowances); k++)
	{
		uint64_t	allowance = allowances[k];

		for (uint64_t now = 0; now <= TODAY; now += TODAY / 2)
		{
			CHECK(!generator_too_far_ahead(now, now, allowance));
			CHECK(!generator_too_far_ahead(now + 1, now, allowance));
			CHECK(!generator_too_far_ahead(now + allowance, now, allowance));
			CHECK(!generator_too_far_ahead(now + 2 * allowance, now, allowance));
			CHECK(generator_too_far_ahead(now + 2 * allowance + 1, now, allowance));
			CHECK(generator_too_far_ahead(MAX_TIMESTAMP, now, allowance));
			CHECK(!generator_too_far_ahead(0, now, allowance));
		}
		CHECK(!generator_too_far_ahead(TODAY, UINT64_MAX, allowance));
		CHECK(!generator_too_far_ahead(TODAY - 1, TODAY, allowance));
	}
	CHECK(!generator_too_far_ahead(TODAY, TODAY, 0));
	CHECK(!generator_too_far_ahead(TODAY + 1, TODAY, 0));
	CHECK(generator_too_far_ahead(TODAY + 2, TODAY, 0));
	CHECK(!generator_too_far_ahead(TODAY - 1, TODAY, 0));
	CHECK(!generator_too_far_ahead(0, TODAY, 0));
}

static GeneratorVerdict
verdict_at(const Generator *generator, uint64_t last, uint64_t now,
		   uint64_t allowance)
{
	uint64_t	next;

	return generator_next(generator, last, now, allowance, 0, &next);
}

/* The first clock that gives an ID, found by trying them in order. */
static void
due_is_the_first_tick_that_gives_an_id(void)
{
	static const uint64_t few[] = {0, 1, 2, 3, 10, ALLOWANCE};

	for (int i = 0; i < NODES; i++)
		for (size_t k = 0; k < LENGTH_OF(few); k++)
			for (uint64_t tick = 1; tick <= 100; tick += 1 + tick / 4)
			{
				Scru64Node	node = node_at(i);
				Generator	generator = generator_make(node);
				uint64_t	lasts[] = {id_of(node, tick, 0),
					last_id_of(node, tick) - 1,
				last_id_of(node, tick)};

				for (size_t j = 0; j < LENGTH_OF(lasts); j++)
				{
					uint64_t	first = 0;

					/* the clock ahead of the last ID is always enough */
					while (first < tick + 1 &&
						   !has_next(verdict_at(&generator, lasts[j], first, few[k])))
						first++;
					CHECK_UINT(generator_due(&generator, lasts[j], few[k]), ==,
							   first);
					if (first > 0)
						CHECK(verdict_at(&generator, lasts[j], first - 1, few[k]) ==
							  GENERATOR_WAIT);
					for (uint64_t now = first; now <= tick + 2; now++)
						CHECK(has_next(verdict_at(&generator, lasts[j], now, few[k])));
				}
			}
}

/* Where the clock cannot be tried out: the ends of time, big allowances. */
static void
due_by_hand(void)
{
	Scru64Node	node = {42, 8};
	Generator	generator = generator_make(node);

	CHECK_UINT(generator_due(&generator, id_of(node, TODAY, 0), 0), ==, TODAY);
	CHECK_UINT(generator_due(&generator, last_id_of(node, TODAY), 0), ==,
			   TODAY + 1);
	CHECK_UINT(generator_due(&generator, id_of(node, TODAY, 0), ALLOWANCE), ==,
			   TODAY - ALLOWANCE);
	CHECK_UINT(generator_due(&generator, last_id_of(node, TODAY), ALLOWANCE), ==,
			   TODAY + 1 - ALLOWANCE);
	CHECK_UINT(generator_due(&generator, id_of(node, TODAY, 0), UINT32_MAX), ==,
			   TODAY - UINT32_MAX);
	CHECK_UINT(generator_due(&generator, id_of(node, 5, 0), UINT32_MAX), ==,
			   UINT64_C(0));
	CHECK_UINT(generator_due(&generator, last_id_of(node, 0), 0), ==,
			   UINT64_C(1));
	CHECK_UINT(generator_due(&generator, last_id_of(node, 0), 1), ==,
			   UINT64_C(0));
	CHECK_UINT(generator_due(&generator, id_of(node, LAST_TICK, 0), ALLOWANCE), ==,
			   LAST_TICK - ALLOWANCE);
}

/*
 * The model
 *
 * The rules as the contract tells them, on the parts of an ID.
 */

typedef struct Model
{
	uint64_t	tick;			/* of the last ID */
	uint64_t	counter;
	uint64_t	capacity;		/* values of the counter */
} Model;

/* A random counter, so many of its leading bits being 0. */
static uint64_t
model_counter(const Model *model, uint32_t random, int clear_bits)
{
	uint64_t	values = model->capacity;

	while (clear_bits-- > 0 && values > 1)
		values /= 2;
	return random % values;
}

/* Whether an ID may be issued whose tick is so far ahead of the clock. */
static GeneratorVerdict
model_judge(uint64_t tick, uint64_t now, uint64_t allowance)
{
	uint64_t	wait_limit = allowance + (allowance == 0 ? 1 : allowance);

	if (tick > now + wait_limit)
		return GENERATOR_CLOCK_BEHIND;
	if (tick < 1 || tick >= MAX_TIMESTAMP)
		return GENERATOR_EXHAUSTED;
	if (tick > now + allowance)
		return GENERATOR_WAIT;
	return GENERATOR_NEXT;
}

static GeneratorVerdict
model_next(Model *model, uint64_t now, uint64_t allowance, uint32_t random)
{
	GeneratorVerdict verdict;

	/* 1: the clock is ahead */
	if (model->tick < now)
	{
		verdict = model_judge(now, now, allowance);
		if (verdict == GENERATOR_NEXT)
		{
			model->tick = now;
			model->counter = model_counter(model, random, 1);
		}
		return verdict;
	}

	/* 2: there is room in the tick */
	if (model->counter + 1 < model->capacity)
	{
		verdict = model_judge(model->tick, now, allowance);
		if (verdict == GENERATOR_NEXT)
			model->counter++;
		return verdict;
	}

	/* 3: there is none */
	verdict = model_judge(model->tick + 1, now, allowance);
	if (verdict == GENERATOR_NEXT)
	{
		model->tick++;
		model->counter = model_counter(model, random, 4);
		verdict = GENERATOR_NEXT_BY_OVERFLOW;
	}
	return verdict;
}

/* What the histories came across: a test that meets nothing shows nothing. */
typedef struct Tally
{
	uint64_t	steps;
	uint64_t	verdicts[GENERATOR_EXHAUSTED + 1];
	uint64_t	overflows_of_size[24];
	uint64_t	increments;
	uint64_t	waits_ended;
} Tally;

/* A clock that runs, stands, and goes back by little and by a lot. */
static uint64_t
move_clock(uint64_t now, uint64_t allowance, Random *random)
{
	uint64_t	kind = random_below(random, 100);
	uint64_t	back = 0;

	if (kind < 50)
		return now;
	if (kind < 70)
		return now + 1;
	if (kind < 78)
		return now + 1 + random_below(random, allowance + 2);
	if (kind < 80)
		return now + random_below(random, 1000000);
	if (kind < 90)
		back = 1;
	else if (kind < 97)
		back = 1 + random_below(random, allowance + 1);
	else
		back = random_below(random, 3 * allowance + 4);
	return back < now ? now - back : 0;
}

/* Check what generator_due() says of a state against the verdicts around it. */
static void
check_due(const Generator *generator, uint64_t last, uint64_t now,
		  uint64_t allowance, GeneratorVerdict verdict, Random *random)
{
	uint64_t	due = generator_due(generator, last, allowance);
	GeneratorVerdict then = verdict_at(generator, last, due, allowance);
	uint64_t	later = due + random_below(random, 2 * allowance + 2);
	GeneratorVerdict later_on = verdict_at(generator, last, later, allowance);

	CHECK(has_next(then) || then == GENERATOR_EXHAUSTED);
	CHECK(has_next(later_on) || later_on == GENERATOR_EXHAUSTED);
	CHECK(has_next(then) || last >= (MAX_TIMESTAMP - 1) * IDS_PER_TICK);
	if (due > 0)
	{
		GeneratorVerdict before = verdict_at(generator, last, due - 1, allowance);

		CHECK(before == GENERATOR_WAIT ||
			  (before == GENERATOR_EXHAUSTED && then == GENERATOR_EXHAUSTED));
	}
	if (verdict == GENERATOR_WAIT || verdict == GENERATOR_CLOCK_BEHIND)
		CHECK_UINT(now, <, due);
	else
		CHECK(now >= due || verdict == GENERATOR_EXHAUSTED);
}

/* One node, many steps. */
static void
run_history(uint32_t node_id_size, uint64_t seed, int steps, Tally *tally)
{
	static const uint64_t some_allowances[] = {
		0, 0, 1, 2, 3, 10, ALLOWANCE, ALLOWANCE, 337500, UINT32_MAX
	};
	Random		random = random_make(seed * 32 + node_id_size);
	Scru64Node	node = {.node_id_size = node_id_size};
	Generator	generator;
	Model		model;
	uint64_t	allowance =
		some_allowances[random_below(&random, LENGTH_OF(some_allowances))];
	uint64_t	start;
	uint64_t	now;
	uint64_t	last;

	node.node_id = (uint32_t) random_below(&random, UINT64_C(1) << node_id_size);
	generator = generator_make(node);
	model.capacity = capacity_of(node);

	/* today, or near one of the ends of time */
	switch (random_below(&random, 8))
	{
		case 0:
			start = random_below(&random, 4);
			break;
		case 1:
			start = MAX_TIMESTAMP - 1 - random_below(&random, 40);
			break;
		default:
			start = TODAY + random_below(&random, 1000000);
			break;
	}
	now = start + random_below(&random, allowance % 1000 + 2);
	model.tick = start;
	model.counter = model.capacity - 1;
	last = generator_last_of_tick(&generator, start);

	for (int i = 0; i < steps; i++)
	{
		uint32_t	bits = (uint32_t) random_bits(&random);
		uint64_t	next = UNTOUCHED;
		uint64_t	incremented = UNTOUCHED;
		Model		before = model;
		GeneratorVerdict verdict;
		GeneratorVerdict expected;
		bool		increments;
		uint64_t	failures = harness.failures;

		if (random_below(&random, 10) == 0)
			bits = ALL_ONES;

		/* other sessions have taken all IDs of the tick, or all but few */
		if (start > 0 || model.tick > 0)
		{
			uint64_t	left = random_below(&random, 4);

			if (random_below(&random, 5) == 0 &&
				left < model.capacity - model.counter)
			{
				model.counter = model.capacity - 1 - left;
				last = id_of(node, model.tick, model.counter);
				before = model;
			}
		}

		verdict = generator_next(&generator, last, now, allowance, bits, &next);
		increments = generator_increment(&generator, last, now, allowance,
										 &incremented);
		expected = model_next(&model, now, allowance, bits);

		/* as the model */
		CHECK(verdict == expected);
		CHECK_UINT(next, ==, !has_next(expected) ? UNTOUCHED :
				   id_of(node, model.tick, model.counter));
		CHECK(increments == (expected == GENERATOR_NEXT &&
							 model.tick == before.tick));
		CHECK_UINT(incremented, ==, increments ? next : UNTOUCHED);

		/* what must hold, whatever the model says */
		if (has_next(verdict))
		{
			uint64_t	tick = next / IDS_PER_TICK;
			uint64_t	last_tick = last / IDS_PER_TICK;

			CHECK_UINT(next, >, last);
			CHECK_UINT(next % IDS_PER_TICK / model.capacity, ==, node.node_id);
			CHECK_UINT(tick, >=, UINT64_C(1));
			CHECK_UINT(tick, <, MAX_TIMESTAMP);
			CHECK_UINT(tick, <=, now + allowance);
			CHECK_UINT(tick, >=, now);

			/* a tick goes on where it was, and is never entered twice */
			if (tick == last_tick)
				CHECK_UINT(next, ==, last + 1);
			else
				CHECK_UINT(tick, >, last_tick);
			CHECK((verdict == GENERATOR_NEXT_BY_OVERFLOW) ==
				  (now <= last_tick && tick > last_tick));
		}
		check_due(&generator, last, now, allowance, verdict, &random);

		if (harness.failures != failures)
		{
			TELL("node %" PRIu32 "/%" PRIu32 ", seed %" PRIu64 ", step %d, allowance %"
				 PRIu64, node.node_id, node.node_id_size, seed, i, allowance);
			TELL("last tick %" PRIu64 " and counter %" PRIu64 ", now %" PRIu64
				 ", random %" PRIx32 ": %s, by the model %s", before.tick,
				 before.counter, now, bits, verdict_name(verdict),
				 verdict_name(expected));
			return;
		}

		tally->steps++;
		tally->verdicts[verdict]++;
		if (verdict == GENERATOR_NEXT_BY_OVERFLOW)
			tally->overflows_of_size[node_id_size]++;
		tally->increments += increments ? 1 : 0;

		if (has_next(verdict))
			last = next;
		if (verdict == GENERATOR_WAIT && random_below(&random, 2) == 0)
		{
			now = generator_due(&generator, last, allowance);
			tally->waits_ended++;
		}
		else if (verdict == GENERATOR_CLOCK_BEHIND &&
				 random_below(&random, 4) == 0)
			now = last / IDS_PER_TICK;
		else
			now = move_clock(now, allowance, &random);
	}
}

static void
random_histories(void)
{
	Tally		tally = {0};

	for (uint64_t seed = 1; seed <= 240; seed++)
		for (uint32_t size = 1; size <= 23; size++)
			run_history(size, seed, 400, &tally);

	CHECK_UINT(tally.steps, >=, UINT64_C(2000000));
	CHECK_UINT(tally.increments, >, UINT64_C(100000));
	CHECK_UINT(tally.waits_ended, >, UINT64_C(10000));
	for (size_t i = 0; i < LENGTH_OF(tally.verdicts); i++)
	{
		harness_say("%s: %" PRIu64 " times", verdict_name((GeneratorVerdict) i),
					tally.verdicts[i]);
		CHECK_UINT(tally.verdicts[i], >, UINT64_C(10000));
	}
	for (size_t size = 1; size <= 23; size++)
		CHECK_UINT(tally.overflows_of_size[size], >, UINT64_C(1000));
}

/*
 * The share of all IDs of its ticks that a node issues, if it is asked for
 * more than it has all the time.  Counted from its first wait: until then it
 * runs ahead of the clock.
 */
static double
saturated_share(Scru64Node node, uint64_t allowance, Random *random)
{
	const uint64_t ticks = 2000;
	const uint64_t most = (ticks + allowance + 1) * capacity_of(node);
	Generator	generator = generator_make(node);
	uint64_t	last = last_id_of(node, TODAY);
	uint64_t	now = TODAY + 1;
	uint64_t	first_wait = 0;
	uint64_t	given_out = 0;

	while (first_wait == 0 || now < first_wait + ticks)
	{
		uint64_t	next;
		uint32_t	bits = (uint32_t) random_bits(random);
		GeneratorVerdict verdict = generator_next(&generator, last, now,
												  allowance, bits, &next);

		if (verdict == GENERATOR_WAIT)
		{
			if (first_wait == 0)
			{
				first_wait = now;
				given_out = 0;
			}
			now++;
			continue;
		}
		if (!CHECK(has_next(verdict)))
			break;
		last = next;
		given_out++;

		/* more than all IDs of the time: it does not keep to the allowance */
		if (!CHECK(given_out <= most))
			break;

		/* rule 2, many times at once */
		if (capacity_of(node) > 4096)
		{
			uint64_t	full = last | generator.max_counter;

			given_out += full - last;
			last = full;
		}
	}
	return (double) given_out / (double) (ticks * capacity_of(node));
}

static void
sustained_load(void)
{
	static const uint64_t some_allowances[] = {1, ALLOWANCE};
	Random		random = random_make(7);

	for (uint32_t size = 1; size <= 23; size++)
		for (size_t k = 0; k < LENGTH_OF(some_allowances); k++)
		{
			Scru64Node	node = {(UINT32_C(1) << size) - 1, size};
			double		share = saturated_share(node, some_allowances[k], &random);

			if (!CHECK(share >= 0.9) || some_allowances[k] == ALLOWANCE)
				harness_say("node_id_size %" PRIu32 ": %.1f %% of its IDs", size,
							100 * share);
			CHECK(share < 1.01);
		}
}

int
main(void)
{
	RUN(rule_1_takes_the_clocks_tick);
	RUN(rule_1_keeps_one_bit_clear);
	RUN(rule_2_counts_on);
	RUN(rule_3_enters_the_next_tick);
	RUN(rule_3_keeps_four_bits_clear);
	RUN(rule_4_waits_then_gives_up);
	RUN(no_allowance);
	RUN(starts_after_the_first_tick);
	RUN(ends_with_the_tick_before_the_last);
	RUN(node_prev_in_the_reserved_last_tick);
	RUN(no_increment_of_what_is_no_id);
	RUN(no_increment_of_another_nodes_id);
	RUN(last_of_tick);
	RUN(hopeless);
	RUN(due_is_the_first_tick_that_gives_an_id);
	RUN(due_by_hand);
	RUN(random_histories);
	RUN(sustained_load);
	return harness_finish();
}
