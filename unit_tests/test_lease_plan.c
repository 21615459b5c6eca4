/*-------------------------------------------------------------------------
 *
 * test_lease_plan.c
 *		Unit tests of lease_plan.c: what the lease worker does, and when.
 *
 * Each rule with its edges by hand, and the pauses with all random bits that matter.
 *
 *-------------------------------------------------------------------------
 */
#include "pure/lease_plan.h"

#include "harness.h"

#define NOW_MS		INT64_C(1000000)
#define HOUR_S		INT64_C(3600)
#define CLOCK_TICK	UINT64_C(6500000000)

/* The allowance of 10 s has 39 whole ticks. */
#define ALLOWANCE_MS	10000
#define FURTHEST_TICK	(CLOCK_TICK + 2 * 39)

static const uint32_t randoms[] = {0, 1, UINT32_MAX / 2, UINT32_MAX - 1, UINT32_MAX};

/* A lease in use, just renewed for an hour, with all pauses over but the renewal's. */
static Plan
held(void)
{
	Plan		plan = {
		.ttl_s = HOUR_S,
		.allowance_ms = ALLOWANCE_MS,
		.size = {.quiet = 12, .least = 8},
		.now_ms = NOW_MS,
		.has_ceiling = true,
		.has_lease = true,
		.has_slot = true,
		.knows_realm_clock = true,
		.remaining_ms = HOUR_S * 1000,
		.own_tick = CLOCK_TICK,
		.clock_tick = CLOCK_TICK,
		.start_tick = CLOCK_TICK,
		.furthest_tick = CLOCK_TICK,
		.limit_tick = CLOCK_TICK + 1,
		.next_attempt_ms = NOW_MS + 1,
		.lease_pause_ms = MIN_LEASE_PAUSE_MS
	};

	node_size_begin(&plan.size, 12, NOW_MS, 0, 0);
	return plan;
}

static Plan
without_lease(void)
{
	Plan		plan = held();

	plan.has_lease = plan.has_slot = false;
	return plan;
}

/* The lease of a standby. */
static Plan
standby_lease(void)
{
	Plan		plan = held();

	plan.in_recovery = plan.is_standby_lease = true;
	plan.has_slot = false;
	return plan;
}

/* A lease that the realm has refused to renew, and a new one may be had. */
static Plan
renewal_refused(void)
{
	Plan		plan = held();

	plan.renewal_refused = true;
	plan.failures = 1;
	return plan;
}

/* Sessions have waited before so many looks that the node should have more capacity. */
static void
wait_for_capacity(Plan *plan)
{
	for (int i = 1; i <= NODE_SIZE_WAITING_LOOKS; i++)
		node_size_look(&plan->size, NOW_MS + i * NODE_SIZE_LOOK_MS, (uint64_t) i, 0);
}

static void
a_lease_is_worth_replacing_when_it_is_over_or_far_ahead(void)
{
	Plan		plan = held();

	CHECK(!plan_is_worth_replacing(&plan));
	plan.remaining_ms = 1;
	CHECK(!plan_is_worth_replacing(&plan));
	plan.remaining_ms = 0;
	CHECK(plan_is_worth_replacing(&plan));
	plan.remaining_ms = -1;
	CHECK(plan_is_worth_replacing(&plan));

	plan = held();
	plan.furthest_tick = FURTHEST_TICK;
	CHECK(!plan_is_worth_replacing(&plan));
	plan.furthest_tick = FURTHEST_TICK + 1;
	CHECK(plan_is_worth_replacing(&plan));
	/* the clock has gone on */
	plan.clock_tick++;
	CHECK(!plan_is_worth_replacing(&plan));
	plan.allowance_ms = 0;
	plan.furthest_tick = plan.clock_tick + 1;
	CHECK(!plan_is_worth_replacing(&plan));
	plan.furthest_tick++;
	CHECK(plan_is_worth_replacing(&plan));

	/* granted by a clock that was ahead of what both are now */
	plan = held();
	plan.start_tick = plan.furthest_tick = CLOCK_TICK + 1;
	CHECK(plan_is_worth_replacing(&plan));
	plan.clock_tick++;
	CHECK(!plan_is_worth_replacing(&plan));
}

static void
a_lease_is_exhausted_when_sessions_can_have_no_more_of_it(void)
{
	Plan		plan = held();

	plan.own_tick = plan.limit_tick;
	CHECK(!plan_is_exhausted(&plan));
	plan.own_tick++;
	CHECK(plan_is_exhausted(&plan));

	/* whatever the realm's clock says */
	plan = held();
	plan.remaining_ms = -1;
	plan.clock_tick = plan.limit_tick + 1;
	CHECK(!plan_is_exhausted(&plan));

	plan = held();
	plan.furthest_tick = FURTHEST_TICK;
	CHECK(!plan_is_exhausted(&plan));
	plan.furthest_tick++;
	CHECK(plan_is_exhausted(&plan));

	plan = held();
	plan.has_slot = false;
	CHECK(plan_is_exhausted(&plan));
}

static void
nothing_is_worth_replacing_before_the_realm_was_heard(void)
{
	Plan		plan = held();

	plan.knows_realm_clock = false;
	plan.remaining_ms = -1;
	CHECK(!plan_is_worth_replacing(&plan));
	CHECK(!plan_has_expired(&plan));
	plan.furthest_tick = FURTHEST_TICK + 1;
	CHECK(!plan_is_worth_replacing(&plan));
	plan.start_tick = CLOCK_TICK + 1;
	CHECK(!plan_is_worth_replacing(&plan));
	plan.knows_realm_clock = true;
	CHECK(plan_has_expired(&plan));
}

static void
a_held_lease_waits_for_its_renewal(void)
{
	Plan		plan = held();

	CHECK(plan_next_step(&plan) == STEP_SLEEP);
	plan.next_attempt_ms = NOW_MS;
	CHECK(plan_next_step(&plan) == STEP_CALL);
	/* a renewal does not wait for what a new lease waits for */
	plan.next_lease_ms = NOW_MS + 1;
	CHECK(plan_next_step(&plan) == STEP_CALL);
	/* nor is a lease that is of use released after failures */
	plan.failures = 7;
	CHECK(plan_next_step(&plan) == STEP_CALL);
}

static void
a_lease_worth_replacing_is_released_if_another_may_be_had(void)
{
	Plan		plan = held();

	plan.remaining_ms = 0;
	CHECK(plan_next_step(&plan) == STEP_RELEASE);
	plan.next_lease_ms = NOW_MS;
	CHECK(plan_next_step(&plan) == STEP_RELEASE);
	plan.next_lease_ms = NOW_MS + 1;
	CHECK(plan_next_step(&plan) == STEP_SLEEP);
	plan.next_lease_ms = 0;
	/* the realm does not answer: who knows whether there is another */
	plan.failures = 1;
	CHECK(plan_next_step(&plan) == STEP_SLEEP);
}

static void
a_lease_whose_node_was_evicted_is_released_at_once(void)
{
	Plan		plan = held();

	plan.has_slot = false;
	plan.failures = 1;
	plan.knows_realm_clock = false;
	plan.next_lease_ms = NOW_MS + 1;
	CHECK(plan_next_step(&plan) == STEP_RELEASE);
}

static void
a_new_lease_has_its_pause(void)
{
	Plan		plan = without_lease();

	CHECK(plan_next_step(&plan) == STEP_SLEEP);
	plan.next_attempt_ms = NOW_MS;
	CHECK(plan_next_step(&plan) == STEP_CALL);
	plan.next_lease_ms = NOW_MS;
	CHECK(plan_next_step(&plan) == STEP_CALL);
	plan.next_lease_ms = NOW_MS + 1;
	CHECK(plan_next_step(&plan) == STEP_SLEEP);
	CHECK_INT(plan_sleep_until_ms(&plan), ==, NOW_MS + 1);
	/* what was left of another one does not count */
	plan.remaining_ms = -1;
	CHECK(plan_next_step(&plan) == STEP_SLEEP);
	plan.has_slot = true;
	CHECK(plan_next_step(&plan) == STEP_SLEEP);
	/* nor does a call of a session */
	plan.has_slot = false;
	CHECK(!plan_call(&plan));
	CHECK_INT(plan_sleep_until_ms(&plan), ==, NOW_MS + 1);
	plan.next_lease_ms = 0;
	CHECK_INT(plan_sleep_until_ms(&plan), ==, NOW_MS);
	/* the renewal of the one that is held may be later */
	plan.next_attempt_ms = NOW_MS + 2;
	CHECK_INT(plan_sleep_until_ms(&plan), ==, NOW_MS + 2);
}

static void
more_capacity_does_not_wait_for_the_renewal(void)
{
	Plan		plan = held();

	wait_for_capacity(&plan);
	CHECK(plan_next_step(&plan) == STEP_CALL);
	plan.next_size_ms = NOW_MS;
	CHECK(plan_next_step(&plan) == STEP_CALL);
	plan.next_size_ms = NOW_MS + 1;
	plan.next_attempt_ms = NOW_MS + 2;
	CHECK(plan_next_step(&plan) == STEP_SLEEP);
	CHECK_INT(plan_sleep_until_ms(&plan), ==, NOW_MS + 1);
	plan.next_size_ms = 0;
	plan.failures = 1;
	CHECK(plan_next_step(&plan) == STEP_SLEEP);
	plan.failures = 0;
	plan.has_lease = false;
	CHECK(plan_next_step(&plan) == STEP_SLEEP);
}

/* In recovery the lease is renewed as others are, and no session has it. */
static void
a_standby_holds_its_lease(void)
{
	Plan		plan = standby_lease();

	CHECK(plan_next_step(&plan) == STEP_SLEEP);
	plan.next_attempt_ms = NOW_MS;
	CHECK(plan_next_step(&plan) == STEP_CALL);
	/* nor is it returned because it has no slot, but if it is of no use */
	plan.failures = 1;
	CHECK(plan_next_step(&plan) == STEP_CALL);
	plan.remaining_ms = 0;
	CHECK(plan_next_step(&plan) == STEP_CALL);
	plan.failures = 0;
	CHECK(plan_next_step(&plan) == STEP_RELEASE);
	/* its size stays */
	plan = standby_lease();
	wait_for_capacity(&plan);
	CHECK_INT(plan_wanted_size(&plan), ==, 12);
	CHECK(plan_next_step(&plan) == STEP_SLEEP);
	plan.size.quiet = 11;
	CHECK_INT(plan_wanted_size(&plan), ==, 12);
	CHECK(plan_next_step(&plan) == STEP_SLEEP);
}

static void
a_lease_is_activated_when_recovery_has_ended(void)
{
	Plan		plan = standby_lease();

	plan.in_recovery = false;
	CHECK(plan_next_step(&plan) == STEP_ACTIVATE);
	/* before all else, whatever is known of the realm */
	plan.remaining_ms = 0;
	plan.next_attempt_ms = NOW_MS;
	CHECK(plan_next_step(&plan) == STEP_ACTIVATE);
	plan.failures = 1;
	plan.renewal_refused = true;
	CHECK(plan_next_step(&plan) == STEP_ACTIVATE);
	/* without one, as every server */
	plan = without_lease();
	plan.in_recovery = true;
	plan.next_attempt_ms = NOW_MS;
	CHECK(plan_next_step(&plan) == STEP_CALL);
	plan.in_recovery = false;
	CHECK(plan_next_step(&plan) == STEP_CALL);
}

/* Nobody has asked for an ID yet, so nobody needs a lease. */
static void
nothing_is_done_without_a_ceiling(void)
{
	Plan		plan = without_lease();

	plan.has_ceiling = false;
	plan.next_attempt_ms = 0;
	CHECK(plan_next_step(&plan) == STEP_SLEEP);
	CHECK_INT(plan_sleep_until_ms(&plan), ==, NOW_MS + MAX_PAUSE_MS);
	/* a standby's lease is not activated either; it has no ceiling during recovery */
	plan = standby_lease();
	plan.has_ceiling = false;
	plan.next_attempt_ms = NOW_MS;
	CHECK(plan_next_step(&plan) == STEP_CALL);
	plan.in_recovery = false;
	CHECK(plan_next_step(&plan) == STEP_SLEEP);
	plan.has_ceiling = true;
	CHECK(plan_next_step(&plan) == STEP_ACTIVATE);
}

/* It is neither renewed nor returned, but replaced, as soon as a new one may be had. */
static void
a_lease_refused_a_renewal_is_used_until_there_is_another(void)
{
	Plan		plan = renewal_refused();

	CHECK(plan_next_step(&plan) == STEP_SLEEP);
	plan.next_attempt_ms = NOW_MS;
	CHECK(plan_next_step(&plan) == STEP_CALL);
	plan.next_lease_ms = NOW_MS;
	CHECK(plan_next_step(&plan) == STEP_CALL);
	plan.next_lease_ms = NOW_MS + 1;
	CHECK(plan_next_step(&plan) == STEP_SLEEP);
	/* to its end and beyond, also after a reload */
	plan.next_lease_ms = 0;
	plan.remaining_ms = -1;
	CHECK(plan_next_step(&plan) == STEP_CALL);
	plan.failures = 0;
	CHECK(plan_next_step(&plan) == STEP_CALL);
	plan.furthest_tick = FURTHEST_TICK + 1;
	CHECK(plan_next_step(&plan) == STEP_CALL);
	/* but not if somebody has ended it */
	plan.has_slot = false;
	CHECK(plan_next_step(&plan) == STEP_RELEASE);
	/* nor is it replaced for more capacity */
	plan = renewal_refused();
	plan.failures = 0;
	wait_for_capacity(&plan);
	CHECK(plan_next_step(&plan) == STEP_SLEEP);
}

static void
sleeping(void)
{
	Plan		plan = held();

	plan.next_attempt_ms = NOW_MS + 60000;
	CHECK_INT(plan_sleep_until_ms(&plan), ==, NOW_MS + 60000);
	/* not for so long that the wait would have no end */
	plan.next_attempt_ms = NOW_MS + INT64_C(3000000000);
	CHECK_INT(plan_sleep_until_ms(&plan), ==, NOW_MS + MAX_SLEEP_MS);
	plan.next_attempt_ms = NOW_MS + 60000;
	/* a node with more capacity than a quiet server needs is looked at */
	node_size_begin(&plan.size, 10, NOW_MS, 0, 0);
	CHECK_INT(plan_sleep_until_ms(&plan), ==, NOW_MS + NODE_SIZE_CALM_LOOK_MS);
	plan.next_attempt_ms = NOW_MS + 1;
	CHECK_INT(plan_sleep_until_ms(&plan), ==, NOW_MS + 1);
	/* and one that nobody has is not */
	plan = without_lease();
	node_size_begin(&plan.size, 10, NOW_MS, 0, 0);
	plan.next_attempt_ms = NOW_MS + 60000;
	CHECK_INT(plan_sleep_until_ms(&plan), ==, NOW_MS + 60000);
	/* recovery ends without a word */
	plan = standby_lease();
	plan.next_attempt_ms = NOW_MS + 60000;
	CHECK_INT(plan_sleep_until_ms(&plan), ==, NOW_MS + RECOVERY_NAP_MS);
	plan.next_attempt_ms = NOW_MS + 1;
	CHECK_INT(plan_sleep_until_ms(&plan), ==, NOW_MS + 1);
	/* and nobody looks at a node that no session has */
	plan = standby_lease();
	plan.next_attempt_ms = NOW_MS + 60000;
	node_size_begin(&plan.size, 10, NOW_MS - 2 * NODE_SIZE_CALM_LOOK_MS, 0, 0);
	CHECK_INT(plan_sleep_until_ms(&plan), ==, NOW_MS + RECOVERY_NAP_MS);
}

static void
the_size_that_is_wanted(void)
{
	Plan		plan = held();

	CHECK_INT(plan_wanted_size(&plan), ==, 12);
	wait_for_capacity(&plan);
	CHECK_INT(plan_wanted_size(&plan), ==, 10);
	/* quiet for as long as a lease lasts by the setting */
	node_size_begin(&plan.size, 8, NOW_MS, 0, 0);
	plan.now_ms = NOW_MS + HOUR_S * 1000 - 1;
	CHECK_INT(plan_wanted_size(&plan), ==, 8);
	plan.now_ms++;
	CHECK_INT(plan_wanted_size(&plan), ==, 10);
	/* what is needed goes before what could be spared */
	wait_for_capacity(&plan);
	plan.size.least = 6;
	CHECK_INT(plan_wanted_size(&plan), ==, 6);
}

/* Does a call have it tried at once? */
static bool
heeds_call(Plan plan)
{
	plan.next_attempt_ms = NOW_MS + 60000;
	return plan_call(&plan) && plan.next_attempt_ms <= NOW_MS;
}

static void
calls_of_sessions_are_heeded_once_in_a_while(void)
{
	Plan		plan = held();

	plan.last_called_ms = NOW_MS - MIN_LEASE_PAUSE_MS + 1;
	CHECK(!heeds_call(plan));
	plan.last_called_ms--;
	CHECK(heeds_call(plan));
	(void) plan_call(&plan);
	CHECK(!heeds_call(plan));
	plan = without_lease();
	plan.last_called_ms = NOW_MS;
	CHECK(heeds_call(plan));
	/* it was ended, and not returned yet */
	plan.has_lease = true;
	CHECK(heeds_call(plan));
}

static void
calls_after_a_failure_make_the_pause_short(void)
{
	Plan		plan = without_lease();

	for (plan.failures = 1; plan.failures < 100; plan.failures++)
	{
		for (size_t i = 0; i < LENGTH_OF(randoms); i++)
		{
			int64_t		planned_ms;

			plan_attempt(&plan, false, randoms[i]);
			planned_ms = plan.next_attempt_ms;
			(void) plan_call(&plan);
			CHECK_INT(plan.next_attempt_ms, >=, NOW_MS + MIN_PAUSE_MS / 2);
			CHECK_INT(plan.next_attempt_ms, <=, NOW_MS + MAX_CALLED_PAUSE_MS);
			CHECK_INT(plan.next_attempt_ms, <=, planned_ms);
			/* however often they call */
			planned_ms = plan.next_attempt_ms;
			plan.now_ms++;
			(void) plan_call(&plan);
			plan.now_ms--;
			CHECK_INT(plan.next_attempt_ms, ==, planned_ms);
		}
	}
}

/* The pause after an attempt. */
static int64_t
pause_ms(Plan plan, bool done, uint32_t random)
{
	plan_attempt(&plan, done, random);
	return plan.next_attempt_ms - NOW_MS;
}

static void
renewals_are_after_a_third(void)
{
	Plan		plan = held();

	/* of the setting, if the window has more than that besides the allowance */
	plan.remaining_ms = (HOUR_S + 11) * 1000;
	CHECK_INT(pause_ms(plan, true, 0), ==, 1200000 - 120000);
	CHECK_INT(pause_ms(plan, true, UINT32_MAX), ==, 1200000 + 120000);
	plan.remaining_ms = INT64_MAX;
	CHECK_INT(pause_ms(plan, true, 0), ==, 1200000 - 120000);
	/* of what is left without the allowance, which is 120 s */
	plan.remaining_ms = 130000;
	for (size_t i = 0; i < LENGTH_OF(randoms); i++)
	{
		CHECK_INT(pause_ms(plan, true, randoms[i]), >=, 36000);
		CHECK_INT(pause_ms(plan, true, randoms[i]), <=, 44000);
	}
	CHECK_INT(pause_ms(plan, true, UINT32_MAX / 2), ==, 39999);
	/* but not at once, however little that is */
	for (plan.remaining_ms = 1; plan.remaining_ms < 12000; plan.remaining_ms += 999)
	{
		CHECK_INT(pause_ms(plan, true, 0), ==, MIN_PAUSE_MS - MIN_PAUSE_MS / 10);
		CHECK_INT(pause_ms(plan, true, UINT32_MAX), ==, MIN_PAUSE_MS + MIN_PAUSE_MS / 10);
	}
	/* nor every second, if the realm grants less than the allowance */
	plan.allowance_ms = HOUR_S * 1000;
	plan.remaining_ms = 132000;
	CHECK_INT(pause_ms(plan, true, 0), ==, 11000 - 1100);
	plan.allowance_ms = 99001;
	CHECK_INT(pause_ms(plan, true, 0), ==, 11000 - 1100);
	plan.allowance_ms = 98997;
	CHECK_INT(pause_ms(plan, true, 0), ==, 11001 - 1100);
	/* where the window does not reach the node's first ID, as soon as it would */
	plan = held();
	plan.is_unused = true;
	plan.furthest_tick = plan.limit_tick + 19;
	CHECK_INT(pause_ms(plan, true, UINT32_MAX), ==, 20 * 256);
	plan.furthest_tick = plan.limit_tick;
	CHECK_INT(pause_ms(plan, true, UINT32_MAX), ==, MIN_PAUSE_MS);
	plan.furthest_tick--;
	CHECK_INT(pause_ms(plan, true, 0), ==, 1196666 - 119666);
	/* which may be late */
	plan.remaining_ms = 60000;
	plan.furthest_tick = plan.limit_tick + 70;
	CHECK_INT(pause_ms(plan, true, 0), ==, 16666 - 1666);
	/* nor every second, if a node has used all that the window has */
	plan.is_unused = false;
	plan.furthest_tick = plan.limit_tick;
	CHECK_INT(pause_ms(plan, true, 0), ==, 16666 - 1666);
	/* the largest setting */
	plan = held();
	plan.remaining_ms = INT64_MAX;
	plan.ttl_s = INT32_MAX;
	CHECK_INT(pause_ms(plan, true, UINT32_MAX), <=, plan.ttl_s * 1000 * 11 / 30);
}

static void
a_lease_worth_replacing_is_not_kept_for_a_third(void)
{
	Plan		plan = held();

	plan.remaining_ms = 0;
	CHECK_INT(pause_ms(plan, true, UINT32_MAX), ==, 0);
	plan.next_lease_ms = NOW_MS + 20000;
	CHECK_INT(pause_ms(plan, true, UINT32_MAX), ==, 20000);
	/* a failure has its own pause */
	plan.failures = 1;
	CHECK_INT(pause_ms(plan, false, UINT32_MAX), ==, 2000);
}

static void
failures_have_pauses_that_grow(void)
{
	Plan		plan = held();

	for (plan.failures = 1; plan.failures < 100; plan.failures++)
	{
		int64_t		most = plan.failures < 6 ? MIN_PAUSE_MS << plan.failures : MAX_PAUSE_MS;

		CHECK_INT(pause_ms(plan, false, 0), ==, MIN_PAUSE_MS / 2);
		CHECK_INT(pause_ms(plan, false, UINT32_MAX), ==, most);
		CHECK_INT(pause_ms(plan, false, UINT32_MAX / 2), ==, most / 2 - 1 > MIN_PAUSE_MS / 2 ? most / 2 - 1 : MIN_PAUSE_MS / 2);
	}
	/* and not beyond a sixth of what a lease lasts */
	plan.ttl_s = 60;
	CHECK_INT(pause_ms(plan, false, UINT32_MAX), ==, 10000);
	plan.ttl_s = 10;
	CHECK_INT(pause_ms(plan, false, UINT32_MAX), ==, 1666);
	plan.failures = INT64_MAX;
	CHECK_INT(pause_ms(plan, false, UINT32_MAX), ==, 1666);
}

static void
new_leases_have_pauses_that_grow(void)
{
	Plan		plan = without_lease();
	int64_t		expected = MIN_LEASE_PAUSE_MS;

	for (int i = 0; i < 100; i++)
	{
		plan_new_lease(&plan, NOW_MS + i);
		CHECK_INT(plan.next_lease_ms, ==, NOW_MS + i + expected);
		expected = 2 * expected < HOUR_S * 1000 / 16 ? 2 * expected : HOUR_S * 1000 / 16;
		CHECK_INT(plan.lease_pause_ms, ==, expected);
	}
	/* a short lease: never less than the first one */
	plan.ttl_s = 10;
	plan_new_lease(&plan, NOW_MS);
	CHECK_INT(plan.lease_pause_ms, ==, MIN_LEASE_PAUSE_MS);
}

static void
windows_have_the_allowance_on_top(void)
{
	Plan		plan = held();

	CHECK_INT(plan_window_s(&plan), ==, HOUR_S + 10 + 1);
	plan.allowance_ms = 999;
	CHECK_INT(plan_window_s(&plan), ==, HOUR_S + 1);
	plan.allowance_ms = 0;
	CHECK_INT(plan_window_s(&plan), ==, HOUR_S + 1);
	/* whatever is left: a realm's clock that was set back leaves a day */
	plan.remaining_ms = INT64_MAX;
	CHECK_INT(plan_window_s(&plan), ==, HOUR_S + 1);
	plan.ttl_s = 10;
	CHECK_INT(plan_window_s(&plan), ==, 11);
}

static void
a_successor_is_waited_for_while_there_is_time(void)
{
	Plan		plan = held();

	CHECK_INT(plan_successor_timeout_ms(&plan), ==, CALL_TIMEOUT_MS);
	plan.remaining_ms = 45000;
	CHECK_INT(plan_successor_timeout_ms(&plan), ==, CALL_TIMEOUT_MS);
	plan.remaining_ms -= 3;
	CHECK_INT(plan_successor_timeout_ms(&plan), ==, CALL_TIMEOUT_MS - 1);
	plan.remaining_ms = -3;
	CHECK(plan_successor_timeout_ms(&plan) < 0);
}

/* A new lease begins above the last ID, if its window and the clock allow it. */
static void
a_new_lease_continues_after_the_last_id(void)
{
	uint64_t	now = CLOCK_TICK;
	uint64_t	start = now - 1;
	uint64_t	limit = now + 500;

	CHECK_UINT(plan_start_after(start, limit, 0, now, 39), ==, start);
	CHECK_UINT(plan_start_after(start, limit, start - 1, now, 39), ==, start);
	CHECK_UINT(plan_start_after(start, limit, start, now, 39), ==, start);
	CHECK_UINT(plan_start_after(start, limit, start + 1, now, 39), ==, start + 1);
	/* an ID may be ahead by the allowance, but no more */
	CHECK_UINT(plan_start_after(start, limit, now + 39, now, 39), ==, now + 39);
	CHECK_UINT(plan_start_after(start, limit, now + 40, now, 39), ==, start);
	CHECK_UINT(plan_start_after(start, limit, now, now, 0), ==, now);
	CHECK_UINT(plan_start_after(start, limit, now + 1, now, 0), ==, start);
	/* the window has at least one tick after it */
	CHECK_UINT(plan_start_after(start, now + 21, now + 20, now, 39), ==, now + 20);
	CHECK_UINT(plan_start_after(start, now + 20, now + 20, now, 39), ==, start);
	/* a lease that begins ahead of the clock begins there */
	CHECK_UINT(plan_start_after(now + 10, limit, now + 9, now, 39), ==, now + 10);
}

int
main(void)
{
	RUN(a_lease_is_worth_replacing_when_it_is_over_or_far_ahead);
	RUN(a_lease_is_exhausted_when_sessions_can_have_no_more_of_it);
	RUN(nothing_is_worth_replacing_before_the_realm_was_heard);
	RUN(a_held_lease_waits_for_its_renewal);
	RUN(a_lease_worth_replacing_is_released_if_another_may_be_had);
	RUN(a_lease_whose_node_was_evicted_is_released_at_once);
	RUN(a_new_lease_has_its_pause);
	RUN(more_capacity_does_not_wait_for_the_renewal);
	RUN(a_standby_holds_its_lease);
	RUN(a_lease_is_activated_when_recovery_has_ended);
	RUN(nothing_is_done_without_a_ceiling);
	RUN(a_lease_refused_a_renewal_is_used_until_there_is_another);
	RUN(sleeping);
	RUN(the_size_that_is_wanted);
	RUN(calls_of_sessions_are_heeded_once_in_a_while);
	RUN(calls_after_a_failure_make_the_pause_short);
	RUN(renewals_are_after_a_third);
	RUN(a_lease_worth_replacing_is_not_kept_for_a_third);
	RUN(failures_have_pauses_that_grow);
	RUN(new_leases_have_pauses_that_grow);
	RUN(windows_have_the_allowance_on_top);
	RUN(a_successor_is_waited_for_while_there_is_time);
	RUN(a_new_lease_continues_after_the_last_id);
	return harness_finish();
}
