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

#define ALL_ONES	UINT32_MAX

static const char *const verdict_names[] = {
	[GENERATOR_NEXT] = "NEXT", [GENERATOR_NEXT_BY_OVERFLOW] = "NEXT_BY_OVERFLOW", [GENERATOR_WAIT] = "WAIT",
	[GENERATOR_CLOCK_BEHIND] = "CLOCK_BEHIND", [GENERATOR_EXHAUSTED] = "EXHAUSTED"
};

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
	uint32_t	size = 1 + (uint32_t) (i / NODES_OF_EACH_SIZE);
	uint32_t	count = UINT32_C(1) << size;
	uint32_t	node_ids[NODES_OF_EACH_SIZE] = {0, count - 1, count / 2, UINT32_C(0x555555) % count};

	return (Scru64Node) {node_ids[i % NODES_OF_EACH_SIZE], size};
}

/*
 * Check a transition: its verdict, and its ID if it has one; if not, *next is
 * left alone.
 */
static bool
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
		TELL("verdict %s, should be %s", verdict_names[got], verdict_names[verdict]);
	}
	return passed;
}

#define CHECK_STEP(...)		check_step_at(__LINE__, __VA_ARGS__)
#define CHECK_NEXT(node, last, now, allowance, random, next) \
	CHECK_STEP(node, last, now, allowance, random, GENERATOR_NEXT, next)
#define CHECK_OVERFLOW(node, last, now, allowance, random, next) \
	CHECK_STEP(node, last, now, allowance, random, GENERATOR_NEXT_BY_OVERFLOW, next)
#define CHECK_NO_NEXT(node, last, now, allowance, verdict) \
	CHECK_STEP(node, last, now, allowance, ALL_ONES, verdict, 0)

/* Rule 1: the clock is ahead of the last ID.  One bit of the counter is kept clear. */
static void
rule_1_takes_the_clocks_tick(void)
{
	for (int i = 0; i < NODES; i++)
	{
		Scru64Node	node = node_at(i);
		uint64_t	half = capacity_of(node) / 2;

		/* whatever the distance, the counter and the allowance */
		CHECK_NEXT(node, id_of(node, TODAY, 0), TODAY + 1, ALLOWANCE, 0, id_of(node, TODAY + 1, 0));
		CHECK_NEXT(node, id_of(node, TODAY, half), TODAY + 1, 0, 0, id_of(node, TODAY + 1, 0));
		CHECK_NEXT(node, last_id_of(node, TODAY), LAST_TICK, UINT32_MAX, 0, id_of(node, LAST_TICK, 0));

		/* each random bit below the clear one is used, the rest is not */
		CHECK_NEXT(node, id_of(node, TODAY, 0), TODAY + 1, ALLOWANCE, ALL_ONES, id_of(node, TODAY + 1, half - 1));
		for (uint32_t random = 1; random != 0; random <<= 1)
			CHECK_NEXT(node, id_of(node, TODAY, 0), TODAY + 1, ALLOWANCE, random,
					   id_of(node, TODAY + 1, random < half ? random : 0));
	}
}

/* Rule 2: the clock is not ahead of the last ID. */
static void
rule_2_counts_on(void)
{
	for (int i = 0; i < NODES; i++)
	{
		Scru64Node	node = node_at(i);
		uint64_t	full = last_id_of(node, TODAY);

		/* in the same tick, whatever the allowance and the random bits */
		CHECK_NEXT(node, id_of(node, TODAY, 0), TODAY, 0, ALL_ONES, id_of(node, TODAY, 1));
		CHECK_NEXT(node, full - 1, TODAY, ALLOWANCE, 0, full);

		/* with the clock back: up to the allowance */
		CHECK_NEXT(node, full - 1, TODAY - ALLOWANCE, ALLOWANCE, ALL_ONES, full);
		CHECK_NEXT(node, full - 1, TODAY - UINT32_MAX, UINT32_MAX, ALL_ONES, full);
	}
}

/* Rule 3: the counter is full.  Four bits of the next one are kept clear. */
static void
rule_3_enters_the_next_tick(void)
{
	for (int i = 0; i < NODES; i++)
	{
		Scru64Node	node = node_at(i);
		uint64_t	full = last_id_of(node, TODAY);

		/* of a counter of four bits or less nothing is random */
		uint64_t	limit = capacity_of(node) < 16 ? 1 : capacity_of(node) / 16;

		CHECK_OVERFLOW(node, full, TODAY, 1, 0, id_of(node, TODAY + 1, 0));
		CHECK_OVERFLOW(node, full, TODAY + 1 - ALLOWANCE, ALLOWANCE, 0, id_of(node, TODAY + 1, 0));
		CHECK_OVERFLOW(node, full, TODAY, ALLOWANCE, ALL_ONES, id_of(node, TODAY + 1, limit - 1));
		for (uint32_t random = 1; random != 0; random <<= 1)
			CHECK_OVERFLOW(node, full, TODAY, ALLOWANCE, random,
						   id_of(node, TODAY + 1, random < limit ? random : 0));
	}
}

/* Rule 4: wait beyond the allowance, give up beyond twice the allowance. */
static void
rule_4_waits_then_gives_up(void)
{
	static const uint64_t allowances[] = {1, 2, ALLOWANCE, UINT64_C(0x7fffffff)};

	for (int i = 0; i < NODES; i++)
		for (size_t k = 0; k < LENGTH_OF(allowances); k++)
		{
			Scru64Node	node = node_at(i);
			uint64_t	full = last_id_of(node, TODAY);
			uint64_t	allowance = allowances[k];

			/* the next ID is of the last one's tick */
			CHECK_NO_NEXT(node, full - 1, TODAY - allowance - 1, allowance, GENERATOR_WAIT);
			CHECK_NO_NEXT(node, full - 1, TODAY - 2 * allowance, allowance, GENERATOR_WAIT);
			CHECK_NO_NEXT(node, full - 1, TODAY - 2 * allowance - 1, allowance, GENERATOR_CLOCK_BEHIND);
			CHECK_NO_NEXT(node, full - 1, 0, allowance, GENERATOR_CLOCK_BEHIND);

			/* the next ID is of the tick after the last one's */
			CHECK_NO_NEXT(node, full, TODAY - allowance, allowance, GENERATOR_WAIT);
			CHECK_NO_NEXT(node, full, TODAY + 1 - 2 * allowance, allowance, GENERATOR_WAIT);
			CHECK_NO_NEXT(node, full, TODAY - 2 * allowance, allowance, GENERATOR_CLOCK_BEHIND);
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
		uint64_t	full = last_id_of(node, TODAY);

		CHECK_NO_NEXT(node, full - 1, TODAY - 1, 0, GENERATOR_WAIT);
		CHECK_NO_NEXT(node, full - 1, TODAY - 2, 0, GENERATOR_CLOCK_BEHIND);
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

		CHECK_NO_NEXT(node, none, 0, 0, GENERATOR_WAIT);
		CHECK_OVERFLOW(node, none, 0, 1, 0, id_of(node, 1, 0));
		CHECK_NEXT(node, none, 1, 0, 0, id_of(node, 1, 0));
		CHECK_NEXT(node, none, TODAY, 0, 0, id_of(node, TODAY, 0));

		/* a clock that reads 0 after IDs were issued */
		CHECK_NEXT(node, id_of(node, ALLOWANCE, 0), 0, ALLOWANCE, 0, id_of(node, ALLOWANCE, 1));
		CHECK_NO_NEXT(node, last_id_of(node, ALLOWANCE), 0, ALLOWANCE, GENERATOR_WAIT);
	}
}

/* The tick before the reserved last one is the last that gives IDs. */
static void
ends_with_the_tick_before_the_last(void)
{
	static const uint64_t beyond[] = {
		MAX_TIMESTAMP, MAX_TIMESTAMP + 1, UINT64_C(1) << 39, UINT64_C(1) << 40, UINT64_MAX
	};

	for (int i = 0; i < NODES; i++)
	{
		Scru64Node	node = node_at(i);
		uint64_t	full = last_id_of(node, LAST_TICK);
		uint64_t	prev = id_of(node, MAX_TIMESTAMP, 0);

		CHECK_NEXT(node, full - 1, LAST_TICK, ALLOWANCE, 0, full);
		CHECK_OVERFLOW(node, last_id_of(node, LAST_TICK - 1), LAST_TICK - 1, ALLOWANCE, 0,
					   id_of(node, LAST_TICK, 0));

		/* there is no tick after it to go on in, nor to wait for */
		CHECK_NO_NEXT(node, full, LAST_TICK, 0, GENERATOR_EXHAUSTED);
		CHECK_NO_NEXT(node, full, MAX_TIMESTAMP - 2 * ALLOWANCE, ALLOWANCE, GENERATOR_EXHAUSTED);
		CHECK_NO_NEXT(node, full, MAX_TIMESTAMP - 2 * ALLOWANCE - 1, ALLOWANCE, GENERATOR_CLOCK_BEHIND);
		for (size_t j = 0; j < LENGTH_OF(beyond); j++)
			CHECK_NO_NEXT(node, id_of(node, TODAY, 0), beyond[j], ALLOWANCE, GENERATOR_EXHAUSTED);

		/* a node_prev may be of the reserved last tick: nothing comes after it */
		CHECK_NO_NEXT(node, prev, TODAY, ALLOWANCE, GENERATOR_CLOCK_BEHIND);
		CHECK_NO_NEXT(node, prev, LAST_TICK, ALLOWANCE, GENERATOR_EXHAUSTED);
		CHECK_NO_NEXT(node, prev, MAX_TIMESTAMP, 0, GENERATOR_EXHAUSTED);
	}
}

static void
no_increment_of_anything_but_the_nodes_ids(void)
{
	/* the last ones lie inside 42/8, and are the node's own */
	Scru64Node	nodes[] = {{41, 8}, {43, 8}, {0, 8}, {255, 8}, {43, 23}, {84, 9}, {85, 9}};
	Generator	generator = generator_make((Scru64Node) {42, 8});

	for (size_t i = 0; i < LENGTH_OF(nodes); i++)
	{
		uint64_t	id = id_of(nodes[i], TODAY, 0);
		bool		is_own = nodes[i].node_id_size == 9;
		uint64_t	next = UNTOUCHED;

		CHECK(generator_owns(&generator, id) == is_own);
		CHECK(generator_increment(&generator, id, TODAY, ALLOWANCE, &next) == is_own);
		CHECK_UINT(next, ==, is_own ? id + 1 : UNTOUCHED);

		/* a word whose highest bit is set is no ID */
		id |= UINT64_C(1) << 63;
		CHECK(!generator_increment(&generator, id, TODAY, UINT32_MAX, &next));
		CHECK(!generator_increment(&generator, id, id >> 24, UINT32_MAX, &next));
	}
	CHECK(generator_owns(&generator, last_id_of((Scru64Node) {42, 8}, TODAY)));
}

static void
last_of_tick(void)
{
	for (int i = 0; i < NODES; i++)
	{
		Scru64Node	node = node_at(i);
		Generator	generator = generator_make(node);
		uint64_t	ticks[] = {0, 1, TODAY, LAST_TICK, MAX_TIMESTAMP};

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
due(void)
{
	Scru64Node	node = {42, 8};
	Generator	generator = generator_make(node);

	CHECK_UINT(generator_due(&generator, id_of(node, TODAY, 0), 0), ==, TODAY);
	CHECK_UINT(generator_due(&generator, last_id_of(node, TODAY), 0), ==, TODAY + 1);
	CHECK_UINT(generator_due(&generator, last_id_of(node, TODAY), UINT32_MAX), ==, TODAY + 1 - UINT32_MAX);
	CHECK_UINT(generator_due(&generator, id_of(node, 5, 0), UINT32_MAX), ==, 0);
	CHECK_UINT(generator_due(&generator, last_id_of(node, 0), 0), ==, 1);
	CHECK_UINT(generator_due(&generator, last_id_of(node, 0), 1), ==, 0);
}

/*
 * The model: the rules as the contract tells them, on the parts of an ID.
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

static GeneratorVerdict
model_next(Model *model, uint64_t now, uint64_t allowance, uint32_t random)
{
	bool		is_ahead = model->tick < now;
	bool		has_room = model->counter + 1 < model->capacity;
	uint64_t	tick = is_ahead ? now : has_room ? model->tick : model->tick + 1;

	/* rule 4, and the end of time */
	if (tick > now + allowance + (allowance == 0 ? 1 : allowance))
		return GENERATOR_CLOCK_BEHIND;
	if (tick >= MAX_TIMESTAMP)
		return GENERATOR_EXHAUSTED;
	if (tick > now + allowance)
		return GENERATOR_WAIT;

	/* rules 1, 2 and 3 */
	model->tick = tick;
	if (is_ahead)
		model->counter = model_counter(model, random, 1);
	else if (has_room)
		model->counter++;
	else
	{
		model->counter = model_counter(model, random, 4);
		return GENERATOR_NEXT_BY_OVERFLOW;
	}
	return GENERATOR_NEXT;
}

/* A clock that runs, stands, and goes back by little and by a lot. */
static uint64_t
move_clock(uint64_t now, uint64_t allowance, Random *random)
{
	uint64_t	kind = random_below(random, 100);
	uint64_t	back = kind < 90 ? 1 : random_below(random, 3 * allowance + 4);

	if (kind < 50)
		return now;
	if (kind < 70)
		return now + 1;
	if (kind < 78)
		return now + 1 + random_below(random, allowance + 2);
	if (kind < 80)
		return now + random_below(random, 1000000);
	return now - least_of(back, now);
}

/* The clock gives an ID from generator_due() on, unless there is none for ever. */
static void
check_due(Scru64Node node, uint64_t last, uint64_t allowance, Random *random)
{
	Generator	generator = generator_make(node);
	uint64_t	due = generator_due(&generator, last, allowance);
	uint64_t	later = due + random_below(random, 2 * allowance + 2);
	uint64_t	next;

	if (last >= id_of(node, LAST_TICK, 0) || later > LAST_TICK)
		return;
	CHECK(has_next(generator_next(&generator, last, due, allowance, 0, &next)));
	CHECK(has_next(generator_next(&generator, last, later, allowance, 0, &next)));
	if (due > 0)
		CHECK(generator_next(&generator, last, due - 1, allowance, 0, &next) == GENERATOR_WAIT);
}

/* One node, many steps. */
static void
run_history(uint32_t size, uint64_t seed, uint64_t *tally)
{
	static const uint64_t allowances[] = {0, 0, 1, 2, 3, 10, ALLOWANCE, ALLOWANCE, 337500, UINT32_MAX};
	Random		random = random_make(seed * 32 + size);
	Scru64Node	node = {(uint32_t) random_below(&random, UINT64_C(1) << size), size};
	uint64_t	allowance = allowances[random_below(&random, LENGTH_OF(allowances))];

	/* today, or near one of the ends of time */
	uint64_t	starts[] = {random_below(&random, 4), LAST_TICK - random_below(&random, 40), TODAY, TODAY};
	uint64_t	start = starts[random_below(&random, 4)];
	uint64_t	now = start + random_below(&random, allowance % 1000 + 2);
	Model		model = {.tick = start, .counter = capacity_of(node) - 1, .capacity = capacity_of(node)};

	for (int i = 0; i < 400; i++)
	{
		uint32_t	bits = random_below(&random, 10) == 0 ? ALL_ONES : (uint32_t) random_bits(&random);
		uint64_t	left = random_below(&random, 20);
		uint64_t	last;
		uint64_t	next;
		GeneratorVerdict verdict;

		/* other sessions have taken all IDs of the tick, or all but few */
		if (left < 4 && left < model.capacity - model.counter)
			model.counter = model.capacity - 1 - left;
		last = id_of(node, model.tick, model.counter);
		verdict = model_next(&model, now, allowance, bits);
		next = id_of(node, model.tick, model.counter);
		tally[verdict]++;
		if (!CHECK_STEP(node, last, now, allowance, bits, verdict, next))
			return;
		check_due(node, last, allowance, &random);

		/* what must hold, whatever the model says: a tick goes on where it was, or is a later one */
		if (has_next(verdict))
		{
			CHECK(next == last + 1 || next / IDS_PER_TICK > last / IDS_PER_TICK);
			CHECK_UINT(next % IDS_PER_TICK / model.capacity, ==, node.node_id);
			CHECK(model.tick >= 1 && model.tick <= LAST_TICK);
			CHECK(model.tick >= now && model.tick <= now + allowance);
		}
		now = verdict == GENERATOR_CLOCK_BEHIND && random_below(&random, 4) == 0 ? model.tick :
			move_clock(now, allowance, &random);
	}
}

static void
random_histories(void)
{
	uint64_t	tally[GENERATOR_EXHAUSTED + 1] = {0};

	for (uint64_t seed = 1; seed <= 100; seed++)
		for (uint32_t size = 1; size <= 23; size++)
			run_history(size, seed, tally);

	/* what is not met is not tested */
	for (size_t i = 0; i < LENGTH_OF(tally); i++)
		if (!CHECK_UINT(tally[i], >, 10000))
			TELL("%s", verdict_names[i]);
}

/* The share of its IDs that a node issues if it is asked for more all the time. */
static double
saturated_share(Scru64Node node, uint64_t allowance, Random *random)
{
	const uint64_t ticks = 2000;
	const uint64_t most = ticks * capacity_of(node);
	Generator	generator = generator_make(node);
	uint64_t	last = last_id_of(node, TODAY + allowance);
	uint64_t	issued = 0;
	uint64_t	next;

	for (uint64_t now = TODAY + 1; now <= TODAY + ticks; now++)
		while (issued <= most &&
			   has_next(generator_next(&generator, last, now, allowance, (uint32_t) random_bits(random), &next)))
		{
			/* the rest of the tick by rule 2 */
			last = next | generator.max_counter;
			issued += last - next + 1;
		}
	return (double) issued / (double) most;
}

static void
sustained_load(void)
{
	Random		random = random_make(7);

	for (uint32_t size = 1; size <= 23; size++)
	{
		Scru64Node	node = {(UINT32_C(1) << size) - 1, size};
		double		share = saturated_share(node, ALLOWANCE, &random);

		if (!CHECK(share >= 0.96 && share <= 1))
			TELL("node_id_size %" PRIu32 ": %.1f %% of its IDs", size, 100 * share);
	}
}

/* A new lease begins above the last ID, if its window and the clock allow it. */
static void
a_new_lease_continues_after_the_last_id(void)
{
	uint64_t	now = TODAY;
	uint64_t	start = now - 1;
	uint64_t	limit = now + 500;

	CHECK_UINT(generator_start_after(start, limit, 0, now, 39), ==, start);
	CHECK_UINT(generator_start_after(start, limit, start - 1, now, 39), ==, start);
	CHECK_UINT(generator_start_after(start, limit, start, now, 39), ==, start);
	CHECK_UINT(generator_start_after(start, limit, start + 1, now, 39), ==, start + 1);
	/* an ID may be ahead by the allowance, but no more */
	CHECK_UINT(generator_start_after(start, limit, now + 39, now, 39), ==, now + 39);
	CHECK_UINT(generator_start_after(start, limit, now + 40, now, 39), ==, start);
	CHECK_UINT(generator_start_after(start, limit, now, now, 0), ==, now);
	CHECK_UINT(generator_start_after(start, limit, now + 1, now, 0), ==, start);
	/* the window has at least one tick after it */
	CHECK_UINT(generator_start_after(start, now + 21, now + 20, now, 39), ==, now + 20);
	CHECK_UINT(generator_start_after(start, now + 20, now + 20, now, 39), ==, start);
	/* a lease that begins ahead of the clock begins there */
	CHECK_UINT(generator_start_after(now + 10, limit, now + 9, now, 39), ==, now + 10);
}

int
main(void)
{
	RUN(rule_1_takes_the_clocks_tick);
	RUN(rule_2_counts_on);
	RUN(rule_3_enters_the_next_tick);
	RUN(rule_4_waits_then_gives_up);
	RUN(no_allowance);
	RUN(starts_after_the_first_tick);
	RUN(ends_with_the_tick_before_the_last);
	RUN(no_increment_of_anything_but_the_nodes_ids);
	RUN(last_of_tick);
	RUN(due);
	RUN(random_histories);
	RUN(sustained_load);
	RUN(a_new_lease_continues_after_the_last_id);
	return harness_finish();
}
