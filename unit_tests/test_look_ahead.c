/*-------------------------------------------------------------------------
 *
 * test_look_ahead.c
 *		Unit tests of look_ahead.c: when the ceiling is raised, and how far.
 *
 * Each rule with its edges by hand; then a server that runs for a minute.
 *
 *-------------------------------------------------------------------------
 */
#include "pure/look_ahead.h"

#include "harness.h"

#define DAY			UINT64_C(337500)

/* A question with the clock at TODAY, to which the ticks are relative. */
static LookAhead
ask(int64_t tick, int64_t durable, uint64_t allowance, bool overflow)
{
	LookAhead	request = {
		.tick = TODAY + (uint64_t) tick,
		.now = TODAY,
		.allowance = allowance,
		.durable = TODAY + (uint64_t) durable,
		.usable = TODAY + (uint64_t) durable,
		.limit = LAST_TICK,
		.overflow = overflow
	};

	return request;
}

static LookAhead
ask_limited(int64_t tick, int64_t durable, int64_t limit)
{
	LookAhead	request = ask(tick, durable, ALLOWANCE, false);

	request.limit = TODAY + (uint64_t) limit;
	return request;
}

static bool
raises(LookAheadVerdict verdict)
{
	return verdict == LOOK_AHEAD_ENTER_AND_RAISE || verdict == LOOK_AHEAD_RAISE_FIRST;
}

static void
check_at(int line, LookAhead request, LookAheadVerdict verdict, uint64_t target)
{
	uint64_t	got_target = UNTOUCHED;
	LookAheadVerdict got = look_ahead(&request, &got_target);
	bool		passed = CHECK_UINT((uint64_t) got, ==, (uint64_t) verdict);

	passed &= CHECK_UINT(got_target, ==, raises(verdict) ? target : UNTOUCHED);
	if (!passed)
		TELL("in the question of line %d", line);
}

#define CHECK_ENTERS(request) check_at(__LINE__, request, LOOK_AHEAD_ENTER, 0)
#define CHECK_EARLY(request, target) \
	check_at(__LINE__, request, LOOK_AHEAD_ENTER_AND_RAISE, TODAY + (target))
#define CHECK_FIRST(request, target) \
	check_at(__LINE__, request, LOOK_AHEAD_RAISE_FIRST, TODAY + (target))
#define CHECK_PAST(request) check_at(__LINE__, request, LOOK_AHEAD_PAST_LIMIT, 0)

/* A node that keeps up with the clock has the ceiling four seconds ahead. */
static void
a_quiet_node(void)
{
	CHECK_FIRST(ask(0, -1, ALLOWANCE, false), 16);
	CHECK_FIRST(ask(0, -1000, ALLOWANCE, false), 16);
	CHECK_ENTERS(ask(0, 16, ALLOWANCE, false));
	CHECK_ENTERS(ask(0, 11, ALLOWANCE, false));
	CHECK_EARLY(ask(0, 10, ALLOWANCE, false), 16);
	CHECK_EARLY(ask(0, 0, ALLOWANCE, false), 16);
}

/* The next tick, while the clock stands: near the ceiling, but that is high enough. */
static void
a_node_ahead(void)
{
	CHECK_ENTERS(ask(10, 16, ALLOWANCE, false));
	CHECK_ENTERS(ask(16, 16, ALLOWANCE, false));
	CHECK_EARLY(ask(10, 15, ALLOWANCE, false), 16);
	/* after a restart, say: no farther than it has to be */
	CHECK_FIRST(ask(17, 16, ALLOWANCE, false), 17);
}

static void
a_node_that_overflows(void)
{
	CHECK_FIRST(ask(1, 0, ALLOWANCE, true), 38);
	CHECK_EARLY(ask(7, 16, ALLOWANCE, true), 38);
	CHECK_ENTERS(ask(5, 16, ALLOWANCE, true));
	CHECK_ENTERS(ask(38, 38, ALLOWANCE, true));
}

/* Never farther than a restart with the same allowance can go without waiting. */
static void
the_allowance(void)
{
	CHECK_FIRST(ask(0, -1, 0, false), 0);
	CHECK_FIRST(ask(0, -1, 0, true), 0);
	CHECK_FIRST(ask(0, -1, 1, false), 0);
	CHECK_FIRST(ask(0, -1, 2, false), 1);
	CHECK_FIRST(ask(0, -1, 16, false), 15);
	CHECK_FIRST(ask(0, -1, 17, false), 16);
	CHECK_FIRST(ask(0, -1, DAY, false), 16);
	CHECK_FIRST(ask(1, 0, 3, true), 2);

	/* little room: not every tick raises it */
	CHECK_ENTERS(ask(0, 0, 0, false));
	CHECK_ENTERS(ask(0, 1, 3, false));
	CHECK_EARLY(ask(0, 0, 3, false), 2);
}

/*
 * A long allowance is no reason to go far ahead: a server whose allowance is lowered
 * later would have to wait for the clock for so long.
 */
static void
a_long_allowance(void)
{
	CHECK_FIRST(ask(1, 0, DAY, true), 39);
	CHECK_FIRST(ask(23, 0, DAY, true), 39);
	CHECK_FIRST(ask(24, 0, DAY, true), 40);
	CHECK_FIRST(ask(1000, 0, DAY, true), 1016);
	CHECK_FIRST(ask(DAY - 2, 0, DAY, true), DAY - 1);
}

/* The standbys do not have all that was flushed here. */
static void
the_marks(void)
{
	LookAhead	request = ask(3, 16, ALLOWANCE, false);

	request.usable = TODAY + 2;
	check_at(__LINE__, request, LOOK_AHEAD_WAIT, 0);
	request.usable = TODAY + 3;
	CHECK_ENTERS(request);
	/* they are waited for when it is time, and not before */
	request.durable = TODAY + 13;
	CHECK_EARLY(request, 16);
	request.durable = TODAY + 3;
	request.usable = TODAY + 2;
	check_at(__LINE__, request, LOOK_AHEAD_WAIT, 0);
	request.durable = TODAY + 2;
	request.usable = 0;
	CHECK_FIRST(request, 16);
}

/* The end of a lease's window, and of all time. */
static void
the_limit(void)
{
	CHECK_PAST(ask_limited(1, 16, 0));
	CHECK_PAST(ask_limited(1, -1, 0));
	CHECK_ENTERS(ask_limited(0, 0, 0));
	CHECK_FIRST(ask_limited(0, -1, 0), 0);
	CHECK_FIRST(ask_limited(0, -1, 5), 5);
	CHECK_EARLY(ask_limited(2, 4, 5), 5);
	CHECK_ENTERS(ask_limited(5, 5, 5));
	check_at(__LINE__, (LookAhead) {
			 .tick = LAST_TICK, .now = LAST_TICK, .allowance = ALLOWANCE, .limit = UINT64_MAX
			 }, LOOK_AHEAD_RAISE_FIRST, LAST_TICK);
}

/* A node that always keeps up: how often the ceiling is raised, and with how much left. */
static void
a_minute(void)
{
	uint64_t	durable = 0;
	int			first = 0;
	int			early = 0;

	for (uint64_t now = TODAY; now < TODAY + 234; now++)
	{
		LookAhead	request = {
			.tick = now, .now = now, .allowance = ALLOWANCE, .durable = durable, .usable = durable,
			.limit = LAST_TICK
		};
		uint64_t	target = 0;
		LookAheadVerdict verdict = look_ahead(&request, &target);

		first += verdict == LOOK_AHEAD_RAISE_FIRST;
		early += verdict == LOOK_AHEAD_ENTER_AND_RAISE;
		/* from the end of this tick on, nobody has to wait for 2.5 s */
		if (verdict == LOOK_AHEAD_ENTER_AND_RAISE)
			CHECK_UINT((durable - now) * 256, >=, 2500);
		if (raises(verdict))
			durable = target;
	}
	CHECK_UINT((uint64_t) first, ==, 1);
	CHECK_UINT((uint64_t) early, <=, 40);
}

static void
a_tick_after_the_lease_is_reached_if_only_that_is_ahead(void)
{
	CHECK(look_ahead_is_reached(1001, 1000, 990, 256));
	CHECK(!look_ahead_is_reached(1001, 1000, 990, 255));
	CHECK(look_ahead_is_reached(1039, 1000, 1000, 10000));
	CHECK(!look_ahead_is_reached(1040, 1000, 1000, 10000));
	CHECK(!look_ahead_is_reached(1040, 1000, 1000, -1));
	/* a clock that has passed the lease goes on, too */
	CHECK(!look_ahead_is_reached(1002, 1000, 1001, 10000));
	CHECK(!look_ahead_is_reached(1001, 1000, 1001, 10000));
}

int
main(void)
{
	RUN(a_quiet_node);
	RUN(a_node_ahead);
	RUN(a_node_that_overflows);
	RUN(the_allowance);
	RUN(a_long_allowance);
	RUN(the_marks);
	RUN(the_limit);
	RUN(a_minute);
	RUN(a_tick_after_the_lease_is_reached_if_only_that_is_ahead);
	return harness_finish();
}
