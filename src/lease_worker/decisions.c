/*-------------------------------------------------------------------------
 *
 * decisions.c
 *		What the lease worker does, and when.
 *
 * Pure, see decisions.h.
 *
 *-------------------------------------------------------------------------
 */
#include "decisions.h"

#define MSECS_PER_SEC		1000

#define MIN(a, b)			((a) < (b) ? (a) : (b))
#define MAX(a, b)			((a) > (b) ? (a) : (b))

/*
 * Is a new lease better than this one?  Its window is over by the realm's clock, or
 * it begins, or its last ID is, too far ahead of both clocks.
 */
bool
is_useless(const Plan *plan)
{
	uint64_t	allowance_ticks = (uint64_t) plan->allowance_ms >> SCRU64_TICK_SHIFT;

	return plan->has_heard &&
		(plan->left_ms <= 0 ||
		 plan->furthest_tick > plan->clock_tick + 2 * allowance_ticks + 1);
}

/*
 * Is the lease to be given back?  Its slot was taken away, by scru64_set_ceiling()
 * for example, or a better one can be had, as far as is known.
 */
static bool
wants_release(const Plan *plan)
{
	return plan->has_lease &&
		(!plan->has_slot ||
		 (plan->failures == 0 && plan->now_ms >= plan->next_lease_ms && is_useless(plan)));
}

/* Is a larger node worth a call before the lease has to be renewed? */
static bool
wants_larger(const Plan *plan)
{
	return plan->has_lease && plan->failures == 0 && plan->now_ms >= plan->next_size_ms &&
		node_size_larger(&plan->size) != plan->size.current;
}

/* The order matters: what is of no use is given back before the realm is called. */
Step
next_step(const Plan *plan)
{
	if (wants_release(plan))
		return STEP_RELEASE;
	if (plan->now_ms < plan->next_attempt_ms && !wants_larger(plan))
		return STEP_SLEEP;
	return plan->has_lease || plan->now_ms >= plan->next_lease_ms ? STEP_CALL : STEP_PUT_OFF;
}

/*
 * A session calls: there is no lease, or it has come to the end of the window.  Then it
 * is tried at once, or soon if that has failed before.
 */
void
plan_call(Plan *plan)
{
	if (plan->failures > 0)
		plan->next_attempt_ms = MIN(plan->next_attempt_ms, plan->called_attempt_ms);
	else if (!plan->has_slot || plan->now_ms - plan->last_called_ms >= MIN_LEASE_PAUSE_MS)
	{
		plan->last_called_ms = plan->now_ms;
		plan->next_attempt_ms = plan->now_ms;
	}
}

/* The node_id_size to have when the lease is renewed; often that of now. */
int
wanted_size(const Plan *plan)
{
	int			larger = node_size_larger(&plan->size);

	return larger != plan->size.current ? larger :
		node_size_smaller(&plan->size, plan->now_ms, plan->ttl_s * MSECS_PER_SEC);
}

/* Evenly from 0 to most. */
static int64_t
jitter(int64_t most, uint32_t random)
{
	return (int64_t) ((double) random / UINT32_MAX * (double) most);
}

/*
 * When to renew: after a third of what is left of the window, give or take a bit.  A
 * node that is ahead of the clock by the allowance has that much less.
 */
static int64_t
renewal_pause_ms(const Plan *plan, uint32_t random)
{
	int64_t		usable = plan->left_ms - plan->allowance_ms;
	int64_t		third = MIN(usable, plan->ttl_s * MSECS_PER_SEC) / 3;
	int64_t		pause = MAX(third, MIN_PAUSE_MS);

	return pause - pause / 10 + jitter(pause / 5, random);
}

static int64_t
retry_pause_ms(const Plan *plan, int64_t longest_ms, uint32_t random)
{
	int64_t		most = MIN(longest_ms, plan->ttl_s * MSECS_PER_SEC / 6);
	int64_t		grown = (int64_t) MIN_PAUSE_MS << MIN(plan->failures, 6);
	int64_t		pause = jitter(MIN(most, grown), random);

	return MAX(pause, MIN_PAUSE_MS / 2);
}

/* An attempt is over: when is the next one? */
void
plan_attempt(Plan *plan, bool done, uint32_t random)
{
	plan->called_attempt_ms = plan->now_ms + retry_pause_ms(plan, MAX_CALLED_PAUSE_MS, random);
	if (done && is_useless(plan))
		plan->next_attempt_ms = MAX(plan->now_ms, plan->next_lease_ms);
	else
		plan->next_attempt_ms = plan->now_ms +
			(done ? renewal_pause_ms(plan, random) :
			 retry_pause_ms(plan, MAX_PAUSE_MS, random));
}

/* The next new lease is after a pause, which grows until one was renewed. */
void
plan_new_lease(Plan *plan, int64_t now_ms)
{
	int64_t		most = MAX(MIN_LEASE_PAUSE_MS, plan->ttl_s * MSECS_PER_SEC / 16);

	plan->next_lease_ms = now_ms + plan->lease_pause_ms;
	plan->lease_pause_ms = MIN(2 * plan->lease_pause_ms, most);
}

/*
 * For how long to ask: the setting says for how long at most.  Besides, for what a
 * node's IDs may be ahead of the clock: a busy one reaches the end of the window by so
 * much earlier.
 */
int64_t
window_s(const Plan *plan, int64_t seconds)
{
	return MIN(seconds, plan->ttl_s) + plan->allowance_ms / MSECS_PER_SEC + 1;
}

/*
 * The most that will be asked for.  A realm that was promoted waits for so long: it
 * may have lost a renewal.
 */
int64_t
longest_window_s(const Plan *plan)
{
	return window_s(plan, plan->ttl_s);
}

/* For as long as the lease is old: if nobody releases it, it costs that much again. */
int64_t
renewal_window_s(const Plan *plan, int64_t age_ms)
{
	return window_s(plan, MAX(FIRST_TTL_S, age_ms / MSECS_PER_SEC));
}

/* A lease of another size is for what the one of now has left. */
int64_t
successor_window_s(const Plan *plan)
{
	return MAX(FIRST_TTL_S, plan->left_ms / MSECS_PER_SEC) + window_s(plan, 0);
}

/* Not so long that the one of now is over meanwhile. */
int64_t
successor_timeout_ms(const Plan *plan)
{
	return MIN(CALL_TIMEOUT_MS, plan->left_ms / 3);
}
