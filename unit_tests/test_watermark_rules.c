/*-------------------------------------------------------------------------
 *
 * test_watermark_rules.c
 *		Unit tests of watermark_rules.c: what the watermark is, as far as numbers tell.
 *
 * Each rule with its edges by hand; and histories of transactions, in which the order
 * of the snapshots is compared with what they see.
 *
 *-------------------------------------------------------------------------
 */
#include "pure/watermark_rules.h"

#include "harness.h"

#define LAST_NODE_CTR	UINT64_C(0xffffff)

static uint64_t
id_of(int64_t tick, uint64_t node_ctr)
{
	return scru64_compose(TODAY + (uint64_t) tick, (uint32_t) node_ctr);
}

/* With the clock and the ceiling relative to TODAY. */
static WatermarkView
view_of(uint64_t top, int64_t now, int64_t ceiling)
{
	return watermark_view(top, TODAY + (uint64_t) now, TODAY + (uint64_t) ceiling);
}

/* The clock counts as far as the ceiling allows, and never as the first tick of all. */
static void
the_tick(void)
{
	CHECK_UINT(view_of(0, 0, 16).tick, ==, TODAY);
	CHECK_UINT(view_of(0, 16, 16).tick, ==, TODAY + 16);
	CHECK_UINT(view_of(0, 17, 16).tick, ==, TODAY + 17);
	CHECK_UINT(view_of(0, 18, 16).tick, ==, TODAY + 17);
	CHECK_UINT(view_of(0, -1000, 16).tick, ==, TODAY - 1000);
	CHECK_UINT(watermark_view(0, 0, 0).tick, ==, 1);
	CHECK_UINT(watermark_view(0, 5, 0).tick, ==, 1);
	CHECK_UINT(view_of(0, 0, 16).ceiling, ==, TODAY + 16);
	CHECK_UINT(view_of(id_of(3, 5), 0, 16).top, ==, id_of(3, 5));
}

static void
who_holds_it_back(void)
{
	uint64_t	top = id_of(-1, 500);
	WatermarkView view = view_of(top, 0, 16);
	uint64_t	end = id_of(-1, 1000);

	CHECK(watermark_is_held_back(&view, id_of(-9, 7), end));
	CHECK(watermark_is_held_back(&view, top - 1, end));
	/* a node by itself, or the one that is first */
	CHECK(!watermark_is_held_back(&view, top, end));
	/* it has come to the end of the past, or is in the present */
	CHECK(watermark_is_held_back(&view, id_of(-1, 99), id_of(-1, 100)));
	CHECK(!watermark_is_held_back(&view, id_of(-1, 100), id_of(-1, 100)));
	view = view_of(id_of(3, 0), 0, 16);
	CHECK(!watermark_is_held_back(&view, id_of(0, 0), end));
}

/* A node at work issues IDs of the current tick, an idle one begins after it. */
static void
the_past(void)
{
	WatermarkView view = view_of(id_of(0, 5), 0, 16);

	CHECK_UINT(watermark_past(&view, TODAY, 39), ==, TODAY - 1);
	CHECK_UINT(watermark_past(&view, TODAY - 4, 39), ==, TODAY - 1);
	CHECK_UINT(watermark_past(&view, TODAY - 5, 39), ==, TODAY);
	CHECK_UINT(watermark_past(&view, 0, 1), ==, TODAY);
	/* not if it would have to wait for the next */
	CHECK_UINT(watermark_past(&view, 0, 0), ==, TODAY - 1);
	/* ahead of the clock, which went back */
	CHECK_UINT(watermark_past(&view, TODAY + 1000, 39), ==, TODAY - 1);
	view = view_of(0, 1000, 16);
	CHECK_UINT(watermark_past(&view, TODAY, 39), ==, TODAY + 17);
}

static void
closed_below(void)
{
	WatermarkView view = view_of(id_of(-5, 77), 0, 16);

	/* the node that is least */
	CHECK_UINT(watermark_closed_below(&view, id_of(-5, 78)), ==, id_of(-5, 78));
	CHECK_UINT(watermark_closed_below(&view, id_of(-9, 0)), ==, id_of(-9, 0));
	/* no node at all, or none that matters: the past */
	CHECK_UINT(watermark_closed_below(&view, UINT64_MAX), ==, id_of(0, 0));
	/* IDs are ahead of the clock: all of them */
	view = view_of(id_of(7, 77), 0, 16);
	CHECK_UINT(watermark_closed_below(&view, UINT64_MAX), ==, id_of(7, 78));
	view = view_of(id_of(0, 0), 0, 16);
	CHECK_UINT(watermark_closed_below(&view, UINT64_MAX), ==, id_of(0, 1));
	/* a restart begins above the ceiling, and not above what the clock said before */
	view = view_of(id_of(16, LAST_NODE_CTR), 0, 16);
	CHECK_UINT(watermark_closed_below(&view, UINT64_MAX), ==, id_of(17, 0));
	view = view_of(id_of(3, 0), 1000, 16);
	CHECK_UINT(watermark_closed_below(&view, UINT64_MAX), ==, id_of(17, 0));
	view = view_of(id_of(30, 0), 1000, 16);
	CHECK_UINT(watermark_closed_below(&view, id_of(40, 0)), ==, id_of(17, 0));
}

static SnapshotPosition
position_at(uint64_t xmax, uint32_t running)
{
	SnapshotPosition position = {.xmax = xmax, .running = running};

	return position;
}

static void
order_of_snapshots(void)
{
	SnapshotPosition nothing = {0};

	CHECK(snapshot_sees_all_of(position_at(1000, 3), position_at(1000, 3)));
	CHECK(snapshot_sees_all_of(position_at(1000, 2), position_at(1000, 3)));
	CHECK(!snapshot_sees_all_of(position_at(1000, 3), position_at(1000, 2)));
	CHECK(snapshot_sees_all_of(position_at(1001, 9), position_at(1000, 0)));
	CHECK(!snapshot_sees_all_of(position_at(1000, 0), position_at(1001, 9)));
	CHECK(snapshot_sees_all_of(position_at(1, 9), nothing));
	CHECK(!snapshot_sees_all_of(nothing, position_at(1, 9)));
}

static void
wide_xids(void)
{
	uint64_t	epoch = UINT64_C(7) << 32;

	CHECK_UINT(widen_xid(1000, 1000), ==, 1000);
	CHECK_UINT(widen_xid(1000, 1001), ==, 1000);
	CHECK_UINT(widen_xid(3, epoch + 3), ==, epoch + 3);
	CHECK_UINT(widen_xid(UINT32_MAX, epoch), ==, epoch - 1);
	CHECK_UINT(widen_xid(UINT32_MAX, epoch + 3), ==, epoch - 1);
	CHECK_UINT(widen_xid(UINT32_MAX, epoch - 1), ==, epoch - 1);
	CHECK_UINT(widen_xid(UINT32_C(1) << 31, epoch + 3), ==, epoch - (UINT64_C(1) << 31));
	CHECK_UINT(widen_xid(4, epoch + 3), ==, epoch - (UINT64_C(1) << 32) + 4);
}

/*
 * Transactions that end in any order, and snapshots, each with the transactions that it sees.
 * The numbers are 32 bits to snapshots, and wrap around on the way.
 */
#define TRANSACTIONS	400
#define SNAPSHOTS		120

typedef struct Taken
{
	SnapshotPosition position;
	bool		sees[TRANSACTIONS];
} Taken;

static bool
includes(const Taken *taken, const Taken *other)
{
	for (uint32_t n = 0; n < TRANSACTIONS; n++)
	{
		if (other->sees[n] && !taken->sees[n])
			return false;
	}
	return true;
}

static void
any_history(void)
{
	static Taken taken[SNAPSHOTS];
	Random		random = random_make(7);

	for (int run = 0; run < 60; run++)
	{
		uint64_t	first = (UINT64_C(5) << 32) - 1 - random_below(&random, 200);
		uint64_t	xmax = first;
		uint64_t	begun = 0;
		bool		is_over[TRANSACTIONS] = {false};

		for (int i = 0; i < SNAPSHOTS; i++)
		{
			for (uint64_t steps = random_below(&random, 12); steps > 0; steps--)
			{
				if (random_below(&random, 2) == 0 && begun < TRANSACTIONS)
					begun++;
				else if (begun > 0)
				{
					/* one of the last ones ends */
					uint64_t	n = begun - 1 - random_below(&random, least_of(begun, 9));

					is_over[n] = true;
					xmax = greatest_of(xmax, first + n + 1);
				}
			}
			memcpy(taken[i].sees, is_over, sizeof(is_over));
			taken[i].position = position_at(widen_xid((uint32_t) xmax, xmax + random_length(&random, 31)), 0);
			CHECK_UINT(taken[i].position.xmax, ==, xmax);
			for (uint64_t n = 0; n < xmax - first; n++)
				taken[i].position.running += !is_over[n];
		}
		for (int i = 0; i < SNAPSHOTS; i++)
		{
			for (int j = 0; j < SNAPSHOTS; j++)
				CHECK(snapshot_sees_all_of(taken[i].position, taken[j].position) ==
					  includes(&taken[i], &taken[j]));
		}
	}
}

static void
answers(void)
{
	AnswerRing	ring = {0};

	CHECK_UINT(watermark_best(&ring, position_at(1000, 0)), ==, 0);
	watermark_remember(&ring, position_at(1000, 2), 50);
	CHECK_UINT(watermark_best(&ring, position_at(999, 0)), ==, 0);
	CHECK_UINT(watermark_best(&ring, position_at(1000, 3)), ==, 0);
	CHECK_UINT(watermark_best(&ring, position_at(1000, 2)), ==, 50);
	CHECK_UINT(watermark_best(&ring, position_at(1000, 1)), ==, 50);
	CHECK_UINT(watermark_best(&ring, position_at(1001, 9)), ==, 50);
	/* the greatest, whichever is last */
	watermark_remember(&ring, position_at(1000, 1), 70);
	watermark_remember(&ring, position_at(1000, 1), 60);
	CHECK_UINT(watermark_best(&ring, position_at(1000, 0)), ==, 70);
	/* one for each snapshot, however often it is asked */
	for (int i = 0; i < 3 * ANSWERS; i++)
		watermark_remember(&ring, position_at(1000, 1), 70);
	CHECK_UINT(watermark_best(&ring, position_at(1000, 2)), ==, 50);
	/* the last ones are kept */
	for (uint64_t i = 0; i < ANSWERS - 1; i++)
	{
		watermark_remember(&ring, position_at(2000 + i, 0), 100 + i);
		CHECK_UINT(watermark_best(&ring, position_at(1999, 0)), ==, 70);
	}
	watermark_remember(&ring, position_at(3000, 0), 200);
	CHECK_UINT(watermark_best(&ring, position_at(1999, 0)), ==, 0);
	for (uint64_t i = 0; i < ANSWERS - 1; i++)
		CHECK_UINT(watermark_best(&ring, position_at(2000 + i, 0)), ==, 100 + i);
	CHECK_UINT(watermark_best(&ring, position_at(3000, 0)), ==, 200);
}

int
main(void)
{
	RUN(the_tick);
	RUN(who_holds_it_back);
	RUN(the_past);
	RUN(closed_below);
	RUN(order_of_snapshots);
	RUN(wide_xids);
	RUN(any_history);
	RUN(answers);
	return harness_finish();
}
