/*-------------------------------------------------------------------------
 *
 * test_watermark_rules.c
 *		Unit tests of watermark_rules.c: what the watermark is, as far as numbers tell.
 *
 * Each rule with its edges by hand; then servers whose nodes issue IDs at random, with
 * what must hold of every watermark; and histories of transactions, in which the order
 * of the snapshots is compared with what they see.
 *
 *-------------------------------------------------------------------------
 */
#include "pure/generator.h"
#include "pure/watermark_rules.h"

#include "harness.h"

#define TODAY		UINT64_C(6900000000)	/* in the year 2025 */
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

/*
 * Servers with some nodes, as watermark.c goes by these rules: each call finds all IDs of
 * before below the watermark once the clock has passed them, and no ID after it is below.
 */
#define NODES	5

typedef struct Server
{
	Generator	generators[NODES];
	uint64_t	last[NODES];	/* as watermark.c and the node leave it, */
	uint64_t	used[NODES];	/* and the tick of its last ID */
	uint64_t	top;
	uint64_t	now;
	uint64_t	ceiling;
	uint64_t	watermark;
} Server;

static uint64_t
find_watermark(Server *server)
{
	WatermarkView view = watermark_view(server->top, server->now, server->ceiling);
	uint64_t	least = UINT64_MAX;

	for (int i = 0; i < NODES; i++)
	{
		uint64_t	past = watermark_past(&view, server->used[i], 39);
		uint64_t	end = generator_last_of_tick(&server->generators[i], past);
		uint64_t	first;

		if (watermark_is_held_back(&view, server->last[i], end))
			server->last[i] = end;
		first = generator_first_after(&server->generators[i], server->last[i]);
		if (first < least)
			least = first;
	}
	return watermark_closed_below(&view, least);
}

static void
issue(Server *server, Random *random)
{
	uint64_t	node = random_below(random, NODES);
	uint64_t	allowance = 1 + random_below(random, 40);
	uint64_t	next;
	GeneratorVerdict verdict = generator_next(&server->generators[node], server->last[node],
											  server->now, allowance,
											  (uint32_t) random_bits(random), &next);

	if (verdict != GENERATOR_NEXT && verdict != GENERATOR_NEXT_BY_OVERFLOW)
		return;
	CHECK_UINT(next, >=, server->watermark);
	/* sometimes it is raised by what is needed, and sometimes ahead */
	if (scru64_get_timestamp(next) > server->ceiling)
		server->ceiling = scru64_get_timestamp(next) + random_below(random, 2) * 16;
	server->last[node] = next;
	server->used[node] = scru64_get_timestamp(next);
	if (next > server->top)
		server->top = next;
}

static void
restart(Server *server)
{
	for (int i = 0; i < NODES; i++)
	{
		server->last[i] = generator_last_of_tick(&server->generators[i], server->ceiling);
		CHECK_UINT(generator_first_after(&server->generators[i], server->last[i]), >=,
				   server->watermark);
	}
	server->top = scru64_compose(server->ceiling, (uint32_t) LAST_NODE_CTR);
}

static void
check_server(Server *server)
{
	uint64_t	watermark = find_watermark(server);

	if (watermark > server->watermark)
		server->watermark = watermark;
	CHECK_UINT(server->watermark, <=, scru64_compose(server->ceiling + 1, 0));
	/* the time of all IDs is over: they are below it, and it stands */
	if (server->now > scru64_get_timestamp(server->top))
	{
		CHECK_UINT(watermark, >, server->top);
		CHECK_UINT(find_watermark(server), ==, watermark);
	}
}

static void
any_server(void)
{
	Random		random = random_make(24);

	for (int run = 0; run < 300; run++)
	{
		/* few IDs in a tick, so that nodes fill theirs */
		uint8_t		size = random_below(&random, 2) == 0 ? 22 : 12;
		Server		server = {.now = TODAY, .ceiling = TODAY - 1000};

		for (int i = 0; i < NODES; i++)
		{
			Scru64Node	node = {.node_id = (uint32_t) (3 * i), .node_id_size = size};

			server.generators[i] = generator_make(node);
		}
		restart(&server);
		for (int step = 0; step < 500; step++)
		{
			switch (random_below(&random, 8))
			{
				case 0:
					server.now += random_length(&random, 6);
					break;
				case 1:
					server.now -= random_length(&random, 4);
					break;
				case 2:
				case 3:
					check_server(&server);
					break;
				case 4:
					if (random_below(&random, 20) == 0)
						restart(&server);
					break;
				default:
					issue(&server, &random);
			}
		}
	}
}

/* A node by itself: all that it has issued is below. */
static void
one_node(void)
{
	Random		random = random_make(1);

	for (int i = 0; i < 100000; i++)
	{
		uint64_t	top = id_of((int64_t) random_below(&random, 60), random_below(&random, 1 << 24));
		WatermarkView view = view_of(top, (int64_t) random_below(&random, 60), 60);

		CHECK(!watermark_is_held_back(&view, top, UINT64_MAX));
		CHECK_UINT(watermark_closed_below(&view, top + 1), ==, top + 1);
	}
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
 * A history of transactions: each gets its number when it writes, and they end in any
 * order.  Their numbers are 32 bits to snapshots, and wrap around within the history.
 */
#define TRANSACTIONS	400
#define SNAPSHOTS		120
#define FIRST_NORMAL	3

typedef struct History
{
	uint64_t	first;			/* of the numbers that follow */
	uint32_t	count;
	bool		is_over[TRANSACTIONS];
	uint64_t	latest;			/* the greatest that is over */
	uint64_t	next;
} History;

typedef struct Taken
{
	SnapshotPosition position;
	bool		sees[TRANSACTIONS];
} Taken;

/* Number n of a history: those that stand for something else are left out. */
static uint64_t
xid_of(const History *history, uint32_t n)
{
	uint64_t	xid = history->first + n;
	uint64_t	wrap = (history->first | UINT32_MAX) + 1;

	return xid < wrap ? xid : xid + FIRST_NORMAL;
}

/* As a session takes it; one that has a transaction itself leaves that out. */
static Taken
take_snapshot(const History *history, Random *random)
{
	Taken		taken = {0};
	uint64_t	xmax = history->latest + 1;

	if ((uint32_t) xmax < FIRST_NORMAL)
		xmax += FIRST_NORMAL;
	for (uint32_t n = 0; n < history->count; n++)
	{
		uint64_t	xid = xid_of(history, n);

		taken.sees[n] = xid < xmax && history->is_over[n];
		taken.position.running += xid < xmax && !history->is_over[n];
	}
	taken.position.xmax = widen_xid((uint32_t) xmax, history->next + random_length(random, 31));
	CHECK_UINT(taken.position.xmax, ==, xmax);
	return taken;
}

static void
go_on(History *history, Random *random)
{
	uint32_t	n;

	if (random_below(random, 2) == 0 && history->count < TRANSACTIONS)
	{
		history->count++;
		history->next = xid_of(history, history->count);
		return;
	}
	if (history->count == 0)
		return;
	/* one of the last ones */
	n = history->count - 1 - (uint32_t) random_below(random, history->count < 9 ? history->count : 9);
	history->is_over[n] = true;
	if (xid_of(history, n) > history->latest)
		history->latest = xid_of(history, n);
}

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
		History		history = {.first = (UINT64_C(5) << 32) - 1 - random_below(&random, 200)};

		history.next = history.first;
		history.latest = history.first - 1;
		for (int i = 0; i < SNAPSHOTS; i++)
		{
			for (uint64_t steps = random_below(&random, 12); steps > 0; steps--)
				go_on(&history, &random);
			taken[i] = take_snapshot(&history, &random);
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

	CHECK_UINT(answers_best(&ring, position_at(1000, 0)), ==, 0);
	answers_put(&ring, position_at(1000, 2), 50);
	CHECK_UINT(answers_best(&ring, position_at(999, 0)), ==, 0);
	CHECK_UINT(answers_best(&ring, position_at(1000, 3)), ==, 0);
	CHECK_UINT(answers_best(&ring, position_at(1000, 2)), ==, 50);
	CHECK_UINT(answers_best(&ring, position_at(1000, 1)), ==, 50);
	CHECK_UINT(answers_best(&ring, position_at(1001, 9)), ==, 50);
	/* the greatest, whichever is last */
	answers_put(&ring, position_at(1000, 1), 70);
	answers_put(&ring, position_at(1000, 1), 60);
	CHECK_UINT(answers_best(&ring, position_at(1000, 0)), ==, 70);
	/* one for each snapshot, however often it is asked */
	for (int i = 0; i < 3 * ANSWERS; i++)
		answers_put(&ring, position_at(1000, 1), 70);
	CHECK_UINT(answers_best(&ring, position_at(1000, 2)), ==, 50);
	/* the last ones are kept */
	for (uint64_t i = 0; i < ANSWERS - 1; i++)
	{
		answers_put(&ring, position_at(2000 + i, 0), 100 + i);
		CHECK_UINT(answers_best(&ring, position_at(1999, 0)), ==, 70);
	}
	answers_put(&ring, position_at(3000, 0), 200);
	CHECK_UINT(answers_best(&ring, position_at(1999, 0)), ==, 0);
	for (uint64_t i = 0; i < ANSWERS - 1; i++)
		CHECK_UINT(answers_best(&ring, position_at(2000 + i, 0)), ==, 100 + i);
	CHECK_UINT(answers_best(&ring, position_at(3000, 0)), ==, 200);
}

int
main(void)
{
	RUN(the_tick);
	RUN(who_holds_it_back);
	RUN(the_past);
	RUN(closed_below);
	RUN(one_node);
	RUN(any_server);
	RUN(order_of_snapshots);
	RUN(wide_xids);
	RUN(any_history);
	RUN(answers);
	return harness_finish();
}
