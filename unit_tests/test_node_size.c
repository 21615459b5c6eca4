/*-------------------------------------------------------------------------
 *
 * test_node_size.c
 *		Unit tests of node_size.c: the node_id_size that a load needs.
 *
 * Each rule with its edges by hand; then a model of a node under steady loads.
 *
 *-------------------------------------------------------------------------
 */
#include "realm/worker/node_size.h"

#include "harness.h"

#define TTL		INT64_C(60000)
#define LOOK	NODE_SIZE_LOOK_MS

/* IDs of a node in a second, which has 3.90625 ticks */
static uint64_t
capacity(int node_id_size)
{
	return (UINT64_C(1) << (SCRU64_NODE_CTR_SIZE - node_id_size)) * 1000 / SCRU64_TICK_MS;
}

static NodeSize
begin(int quiet, int least, int current)
{
	NodeSize	size = {.quiet = quiet, .least = least};

	node_size_begin(&size, current, 0, 0, 0);
	return size;
}

static void
waits_add_capacity(void)
{
	for (int current = 12; current >= 7; current--)
	{
		NodeSize	size = begin(12, 7, current);

		for (int i = 1; i <= NODE_SIZE_WAITING_LOOKS; i++)
		{
			CHECK_INT(node_size_after_waits(&size), ==, current);
			node_size_look(&size, i * LOOK, (uint64_t) i, 0);
		}
		/* not a whole step, if that is beyond the setting */
		CHECK_INT(node_size_after_waits(&size), ==, current > 9 ? current - 2 : 7);
	}
}

static void
a_burst_does_not(void)
{
	NodeSize	size = begin(12, 8, 12);

	for (int i = 1; i <= 1000; i++)
	{
		uint64_t	n = (uint64_t) (i - i / NODE_SIZE_WAITING_LOOKS);

		node_size_look(&size, i * LOOK, n, 0);
		CHECK_INT(node_size_after_waits(&size), ==, 12);
	}
}

static void
looks_too_close_count_for_nothing(void)
{
	NodeSize	size = begin(12, 8, 12);

	for (int i = 1; i < LOOK; i++)
		node_size_look(&size, i, (uint64_t) i, UINT64_C(1000000) * (uint64_t) i);
	CHECK_INT(size.waiting_looks, ==, 0);
	CHECK_INT(node_size_after_waits(&size), ==, 12);
}

static void
quiet_takes_capacity(void)
{
	for (int node_id_size = 1; node_id_size <= 20; node_id_size++)
	{
		uint64_t	sixteenth = capacity(node_id_size) / NODE_SIZE_QUIET;
		NodeSize	size = begin(21, 1, node_id_size);
		uint64_t	used = 0;

		/* just enough, and just not enough, to keep it; ten seconds have no remainder */
		for (int i = 1; i <= 10; i++)
			node_size_look(&size, i * 10 * LOOK, 0, used += 10 * sixteenth + 10);
		CHECK_INT(node_size_after_quiet(&size, 100 * LOOK + TTL - 1, TTL), ==, node_id_size);
		CHECK_INT(size.quiet_since_ms, ==, 100 * LOOK);
		for (int i = 11; i <= 15; i++)
			node_size_look(&size, i * 10 * LOOK, 0,
						   used += sixteenth > 0 ? 10 * sixteenth - 10 : 0);
		CHECK_INT(size.quiet_since_ms, ==, 100 * LOOK);
		CHECK_INT(node_size_after_quiet(&size, 100 * LOOK + TTL - 1, TTL), ==, node_id_size);
		CHECK_INT(node_size_after_quiet(&size, 100 * LOOK + TTL, TTL), ==,
				   node_id_size > 19 ? 21 : node_id_size + 2);
	}
}

static void
settings_that_change(void)
{
	NodeSize	size = begin(12, 8, 10);

	CHECK_INT(node_size_after_waits(&size), ==, 10);
	size.least = size.quiet = 9;
	CHECK_INT(node_size_after_waits(&size), ==, 9);
	size.least = size.quiet = 14;
	CHECK_INT(node_size_after_waits(&size), ==, 14);
}

static void
when_to_look(void)
{
	NodeSize	size = begin(12, 8, 12);

	CHECK(node_size_next_look(&size) == -1);
	node_size_look(&size, 5 * LOOK, 1, 0);
	CHECK_INT(node_size_next_look(&size), ==, 6 * LOOK);
	node_size_look(&size, 6 * LOOK, 1, 0);
	CHECK(node_size_next_look(&size) == -1);
	node_size_begin(&size, 8, 7 * LOOK, 0, 0);
	CHECK_INT(node_size_next_look(&size), ==, 7 * LOOK + NODE_SIZE_CALM_LOOK_MS);
	/* its capacity cannot rise further */
	node_size_look(&size, 8 * LOOK, 1, 0);
	CHECK_INT(node_size_next_look(&size), ==, 8 * LOOK + NODE_SIZE_CALM_LOOK_MS);
}

/*
 * A node under a load, in steps of a second, with an allowance of ten seconds: what
 * it issues beyond its capacity is ahead of the clock, until that is used up.
 */
typedef struct Model
{
	NodeSize	size;
	int64_t		now;
	double		lead;			/* in seconds */
	uint64_t	waits;
	uint64_t	used;
	uint64_t	last_second;
	int			raised;
	int			lowered;
	int64_t		last_change;
} Model;

static void
step(Model *model, uint64_t load)
{
	double		most = (double) capacity(model->size.current);
	int			wanted;

	model->now += LOOK;
	model->lead += (double) load / most - 1;
	model->last_second = load;
	if (model->lead < 0)
		model->lead = 0;
	if (model->lead > 10)
	{
		model->last_second = (uint64_t) most;
		model->lead = 10;
		model->waits++;
	}
	model->used += model->last_second;
	node_size_look(&model->size, model->now, model->waits, model->used);

	wanted = node_size_after_waits(&model->size);
	if (wanted < model->size.current)
		model->raised++;
	else
	{
		/* renewed after a third of the time */
		wanted = model->now % (TTL / 3) == 0 ?
			node_size_after_quiet(&model->size, model->now, TTL) : wanted;
		if (wanted == model->size.current)
			return;
		model->lowered++;
		CHECK_INT(model->now - model->last_change, >=, TTL);
		CHECK_INT(model->last_second, <, capacity(wanted) / 4 + 1);
	}
	node_size_begin(&model->size, wanted, model->now, 0, 0);
	model->waits = model->used = 0;
	model->last_change = model->now;
}

static void
steady_loads_find_their_size(void)
{
	for (uint64_t load = 1000; load < 2000000; load = load * 3 / 2)
	{
		Model		model = {.size = begin(12, 6, 12)};
		int			size;

		for (int i = 0; i < 300; i++)
			step(&model, load);
		size = model.size.current;
		CHECK(capacity(size) >= load || size == 6);
		CHECK(size == 12 || capacity(size + 2) < load);
		CHECK_INT(model.raised, ==, (12 - size) / 2);
		CHECK_INT(model.lowered, ==, 0);
		for (int i = 0; i < 400; i++)
			step(&model, 10);
		CHECK_INT(model.size.current, ==, 12);
	}
}

int
main(void)
{
	RUN(waits_add_capacity);
	RUN(a_burst_does_not);
	RUN(looks_too_close_count_for_nothing);
	RUN(quiet_takes_capacity);
	RUN(settings_that_change);
	RUN(when_to_look);
	RUN(steady_loads_find_their_size);
	return harness_finish();
}
