/*-------------------------------------------------------------------------
 *
 * lease_plan.c
 *		Decides which step the lease worker takes next, and when.
 *
 * Takes no step itself, and knows nothing of PostgreSQL.  lease_plan.h has the contract.  The rules
 * are above the functions here, the pauses above renewal_pause_ms().
 *
 *-------------------------------------------------------------------------
 */
#include "pure/generator.h"
#include "realm/worker/lease_plan.h"

#define MSECS_PER_SEC		1000

/* Like least_of() and greatest_of(), for milliseconds, which may be negative. */
static int64_t
least_ms(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t
greatest_ms(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

bool
plan_has_expired(const Plan *plan)
{
	return plan->knows_realm_clock && plan->remaining_ms <= 0;
}

/* Does generation fail, because the last ID is too far ahead of both clocks? */
static bool
is_far_ahead(const Plan *plan)
{
	return generator_too_far_ahead(plan->furthest_tick, plan->clock_tick,
								   (uint64_t) plan->allowance_ms >> SCRU64_TICK_SHIFT);
}

bool
plan_is_worth_replacing(const Plan *plan)
{
	return plan_has_expired(plan) ||
		(plan->knows_realm_clock &&
		 (plan->start_tick > plan->clock_tick || is_far_ahead(plan)));
}

bool
plan_is_exhausted(const Plan *plan)
{
	return !plan->has_slot || plan->own_tick > plan->limit_tick || is_far_ahead(plan);
}

/*
 * The worker releases a lease whose node was evicted on this server.  The worker releases a lease
 * that is worth replacing, too, if the realm is likely to grant another one now; but a lease that
 * the realm refuses to renew stays until the worker has another one.
 */
static bool
wants_release(const Plan *plan)
{
	return plan->has_lease &&
		((!plan->has_slot && !plan->is_standby_lease) ||
		 (!plan->renewal_refused && plan->failures == 0 &&
		  plan->now_ms >= plan->next_lease_ms && plan_is_worth_replacing(plan)));
}

/*
 * Is a node with more capacity worth a call before the lease has to be renewed?  After a
 * failure, not before next_size_ms.
 */
static bool
wants_capacity(const Plan *plan)
{
	return plan->has_lease && !plan->is_standby_lease && !plan->renewal_refused &&
		plan->failures == 0 && node_size_after_waits(&plan->size) != plan->size.current;
}

int64_t
plan_next_call_ms(const Plan *plan)
{
	return plan->has_lease && !plan->renewal_refused ? plan->next_attempt_ms :
		greatest_ms(plan->next_attempt_ms, plan->next_lease_ms);
}

/*
 * No session gets IDs of a lease before the ceiling is loaded, because loading it starts all
 * nodes anew, and so evicts the leased node.  A standby loads the ceiling after recovery.
 */
static bool
awaits_ceiling(const Plan *plan)
{
	return !plan->in_recovery && !plan->has_ceiling;
}

Step
plan_next_step(const Plan *plan)
{
	if (awaits_ceiling(plan))
		return STEP_SLEEP;
	if (plan->is_standby_lease && !plan->in_recovery)
		return STEP_ACTIVATE;
	if (wants_release(plan))
		return STEP_RELEASE;
	return plan->now_ms >= plan_next_call_ms(plan) ||
		(wants_capacity(plan) && plan->now_ms >= plan->next_size_ms) ? STEP_CALL : STEP_SLEEP;
}

bool
plan_call(Plan *plan)
{
	int64_t		planned_ms = plan_next_call_ms(plan);

	if (plan->failures > 0)
		plan->next_attempt_ms = least_ms(plan->next_attempt_ms, plan->called_attempt_ms);
	else if (!plan->has_slot || plan->now_ms - plan->last_called_ms >= MIN_LEASE_PAUSE_MS)
	{
		plan->last_called_ms = plan->now_ms;
		plan->next_attempt_ms = plan->now_ms;
	}
	return plan_next_call_ms(plan) < planned_ms;
}

int
plan_wanted_size(const Plan *plan)
{
	int			after_waits = node_size_after_waits(&plan->size);

	if (plan->is_standby_lease)
		return plan->size.current;
	return after_waits != plan->size.current ? after_waits :
		node_size_after_quiet(&plan->size, plan->now_ms, plan->ttl_s * MSECS_PER_SEC);
}

/* A random time from 0 to most, evenly distributed. */
static int64_t
jitter(int64_t most, uint32_t random)
{
	return (int64_t) ((double) random / UINT32_MAX * (double) most);
}

/*
 * The pause before the lease is renewed.  All but the last one are give or take a tenth, and
 * none is shorter than MIN_PAUSE_MS, or a tenth less.
 *
 *	most leases				a third of what remains without the allowance: a node that is ahead
 *							of the clock reaches the end of the window so much earlier
 *	hardly longer than the	a twelfth of what remains: a young lease may be shorter than the
 *	allowance				allowance, and would be renewed every second
 *	longer than ttl_s		a third of ttl_s: it was lowered, or the lease has no end
 *	the window does not		the missing ticks, if that is shorter: sessions wait, and a renewed
 *	reach the first ID yet	window has moved on at least as far as the clock
 *
 * A node that has issued IDs up to the end of the window is no such case: for it the allowance
 * was subtracted.
 */
static int64_t
renewal_pause_ms(const Plan *plan, uint32_t random)
{
	int64_t		usable = greatest_ms(plan->remaining_ms - plan->allowance_ms,
									 plan->remaining_ms / 4);
	int64_t		third = least_ms(usable, plan->ttl_s * MSECS_PER_SEC) / 3;
	int64_t		pause = greatest_ms(third, MIN_PAUSE_MS);
	uint64_t	missing = plan->furthest_tick + 1 - plan->limit_tick;

	pause += jitter(pause / 5, random) - pause / 10;
	if (plan->is_unused && plan->furthest_tick >= plan->limit_tick)
		pause = least_ms(pause, greatest_ms((int64_t) (missing << SCRU64_TICK_SHIFT),
											MIN_PAUSE_MS));
	return pause;
}

static int64_t
retry_pause_ms(const Plan *plan, int64_t longest_ms, uint32_t random)
{
	int64_t		most = least_ms(longest_ms, plan->ttl_s * MSECS_PER_SEC / 6);
	int64_t		grown = (int64_t) MIN_PAUSE_MS << (plan->failures < 6 ? plan->failures : 6);
	int64_t		pause = jitter(least_ms(most, grown), random);

	return greatest_ms(pause, MIN_PAUSE_MS / 2);
}

void
plan_attempt(Plan *plan, bool done, uint32_t random)
{
	plan->called_attempt_ms = plan->now_ms + retry_pause_ms(plan, MAX_CALLED_PAUSE_MS, random);
	if (done && plan_is_worth_replacing(plan))
		plan->next_attempt_ms = greatest_ms(plan->now_ms, plan->next_lease_ms);
	else
		plan->next_attempt_ms = plan->now_ms +
			(done ? renewal_pause_ms(plan, random) :
			 retry_pause_ms(plan, MAX_PAUSE_MS, random));
}

void
plan_new_lease(Plan *plan, int64_t now_ms)
{
	int64_t		most = greatest_ms(MIN_LEASE_PAUSE_MS, plan->ttl_s * MSECS_PER_SEC / 16);

	plan->next_lease_ms = now_ms + plan->lease_pause_ms;
	plan->lease_pause_ms = least_ms(2 * plan->lease_pause_ms, most);
}

int64_t
plan_sleep_until_ms(const Plan *plan)
{
	int64_t		look_ms = node_size_next_look(&plan->size);
	int64_t		until_ms = plan_next_call_ms(plan);

	if (awaits_ceiling(plan))
		return plan->now_ms + MAX_PAUSE_MS;
	if (plan->has_slot && look_ms >= 0)
		until_ms = least_ms(until_ms, look_ms);
	if (wants_capacity(plan))
		until_ms = least_ms(until_ms, plan->next_size_ms);
	return least_ms(until_ms, plan->now_ms +
					(plan->is_standby_lease ? RECOVERY_NAP_MS : MAX_SLEEP_MS));
}

int64_t
plan_window_s(const Plan *plan)
{
	return plan->ttl_s + plan->allowance_ms / MSECS_PER_SEC + 1;
}

int64_t
plan_successor_timeout_ms(const Plan *plan)
{
	return least_ms(CALL_TIMEOUT_MS, plan->remaining_ms / 3);
}
