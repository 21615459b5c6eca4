/*-------------------------------------------------------------------------
 *
 * test_scru64.c
 *		Unit tests of scru64.h: constants and accessors.
 *
 *-------------------------------------------------------------------------
 */
#include "pure/scru64.h"

#include "harness.h"

static void
constants(void)
{
	uint64_t	ids = 1;

	for (int i = 0; i < 12; i++)
		ids *= 36;
	CHECK_UINT(SCRU64_MAX_ID, ==, ids - 1);
	CHECK_UINT(ids % UINT64_C(16777216), ==, UINT64_C(0));
	CHECK_UINT(SCRU64_MAX_TIMESTAMP, ==, UINT64_C(282429536480));
	CHECK_UINT(SCRU64_MAX_NODE_CTR, ==, UINT32_C(16777215));
	CHECK_UINT(SCRU64_FIRST_TIMESTAMP, ==, UINT64_C(1));
	CHECK_UINT(SCRU64_LAST_TIMESTAMP, ==, UINT64_C(282429536479));
	CHECK_UINT((uint64_t) SCRU64_TICK_MS, ==, UINT64_C(256));
	CHECK_UINT(UINT64_C(1) << SCRU64_TICK_SHIFT, ==, UINT64_C(256));
}

/* The parts of an ID are its quotient and remainder by 2^24. */
static void
parts(void)
{
	Random		random = random_make(1);

	CHECK_UINT(scru64_compose(0, 0), ==, UINT64_C(0));
	CHECK_UINT(scru64_compose(SCRU64_MAX_TIMESTAMP, SCRU64_MAX_NODE_CTR), ==,
			   SCRU64_MAX_ID);
	CHECK_UINT(scru64_get_timestamp(SCRU64_MAX_ID), ==, SCRU64_MAX_TIMESTAMP);
	CHECK_UINT(scru64_get_node_ctr(SCRU64_MAX_ID), ==, SCRU64_MAX_NODE_CTR);

	/* the specification's example: 0u2pf62ji4b9 */
	CHECK_UINT(scru64_get_timestamp(UINT64_C(109959589539758421)), ==,
			   UINT64_C(109959589539758421) / 16777216);

	for (int i = 0; i < 100000; i++)
	{
		uint64_t	id = random_length(&random, 63) % (SCRU64_MAX_ID + 1);
		uint64_t	timestamp = scru64_get_timestamp(id);
		uint32_t	node_ctr = scru64_get_node_ctr(id);

		CHECK_UINT(timestamp, ==, id / 16777216);
		CHECK_UINT(node_ctr, ==, id % 16777216);
		CHECK_UINT(scru64_compose(timestamp, node_ctr), ==, id);
	}
}

/* The nodes of a size share out all node_ctrs, in order and without a gap. */
static void
nodes(void)
{
	Random		random = random_make(2);

	for (uint32_t size = 1; size <= 23; size++)
	{
		uint32_t	count = UINT32_C(1) << size;
		uint32_t	share = UINT32_C(16777216) / count;

		for (int i = 0; i < 1000; i++)
		{
			uint32_t	node_id = (uint32_t) random_below(&random, count);
			Scru64Node	node = {node_id, size};

			if (i == 0)
				node.node_id = 0;
			else if (i == 1)
				node.node_id = count - 1;
			CHECK_UINT(scru64_node_base(node), ==, node.node_id * share);
			CHECK_UINT(scru64_max_counter(node), ==, share - 1);
			CHECK_UINT(scru64_node_base(node) & scru64_max_counter(node), ==,
					   UINT32_C(0));
		}
	}
}

int
main(void)
{
	RUN(constants);
	RUN(parts);
	RUN(nodes);
	return harness_finish();
}
