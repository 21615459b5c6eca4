/*-------------------------------------------------------------------------
 *
 * decisions.c
 *		What the lease worker does, and when.
 *
 * Pure, see decisions.h.
 *
 *-------------------------------------------------------------------------
 */
#include "pure/decisions.h"

#define MSECS_PER_SEC		1000

#define MIN(a, b)			((a) < (b) ? (a) : (b))
#define MAX(a, b)			((a) > (b) ? (a) : (b))

/* Is the window over, as far as is known? */
bool
is_over(const Plan *plan)
{
	return plan->has_heard && plan->left_ms <= 0;
}

/* Is it too far ahead of both clocks to wait for them? */
static bool
is_far_ahead(const Plan *plan)
{
	uint64_t	allowance_ticks = (uint64_t) plan->allowance_ms >> SCRU64_TICK_SHIFT;

	return plan->furthest_tick > plan->clock_tick + 2 * allowance_ticks + 1;
}

/*
 * Is a new lease better than this one?  Its window is over by the realm's clock; or it
 * was granted by a clock that was ahead of what both are now; or its last ID is too far
 * ahead of them.
 *
 * A lease that is ahead of the realm's clock alone is of use: that one was set back, and
 * the window of a new lease would be over already by this server's.
 */
bool
is_useless(const Plan *plan)
{
	return is_over(plan) ||
		(plan->has_heard &&
		 (plan->start_tick > plan->clock_tick || is_far_ahead(plan)));
}

/*
 * Can the sessions have no more of the lease?  By this server's clock: theirs is what
 * takes them to the end of the window.
 */
bool
is_spent(const Plan *plan)
{
	return !plan->has_slot || plan->own_tick > plan->limit_tick || is_far_ahead(plan);
}

/*
 * Is the lease to be given back?  Its slot was taken away, by scru64_set_ceiling()
 * for example, or a better one can be had, as far as is known.  One that is lapsing is
 * used until there is another.
 */
static bool
wants_release(const Plan *plan)
{
	return plan->has_lease &&
		((!plan->has_slot && !plan->is_ahead) ||
		 (!plan->is_lapsing && plan->failures == 0 &&
		  plan->now_ms >= plan->next_lease_ms && is_useless(plan)));
}

/* Is a larger node worth a call before the lease has to be renewed? */
static bool
wants_larger(const Plan *plan)
{
	return plan->has_lease && !plan->is_ahead && !plan->is_lapsing &&
		plan->failures == 0 && plan->now_ms >= plan->next_size_ms &&
		node_size_larger(&plan->size) != plan->size.current;
}

/* The order matters: what is of no use is given back before the realm is called. */
Step
next_step(const Plan *plan)
{
	bool		wants_new = !plan->has_lease || plan->is_lapsing;

	if (plan->is_ahead && !plan->in_recovery)
		return STEP_GIVE;
	if (wants_release(plan))
		return STEP_RELEASE;
	if (plan->now_ms < plan->next_attempt_ms && !wants_larger(plan))
		return STEP_SLEEP;
	return wants_new && plan->now_ms < plan->next_lease_ms ? STEP_PUT_OFF : STEP_CALL;
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

/*
 * The node_id_size to have when the lease is renewed; often that of now.  As long as
 * no session has the node, nothing is known of what it needs.
 */
int
wanted_size(const Plan *plan)
{
	int			larger = node_size_larger(&plan->size);

	if (plan->is_ahead)
		return plan->size.current;
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
 * node that is ahead of the clock by the allowance has that much less; but a young lease
 * may be shorter than the allowance, and is not renewed again and again for that.
 */
static int64_t
renewal_pause_ms(const Plan *plan, uint32_t random)
{
	int64_t		usable = MAX(plan->left_ms - plan->allowance_ms, plan->left_ms / 4);
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

/* Until when there is nothing to do, if nobody calls. */
int64_t
sleep_until_ms(const Plan *plan)
{
	int64_t		look_ms = node_size_next_look(&plan->size);
	int64_t		until_ms = plan->next_attempt_ms;

	if (plan->has_slot && look_ms >= 0)
		until_ms = MIN(until_ms, look_ms);
	return plan->is_ahead ? MIN(until_ms, plan->now_ms + RECOVERY_NAP_MS) : until_ms;
}

/*
 * For how long to ask; the realm grants what it sees fit.  As the setting says, and for
 * what a node's IDs may be ahead of the clock: a busy one reaches the end of the window
 * by so much earlier.
 */
int64_t
window_s(const Plan *plan)
{
	return plan->ttl_s + plan->allowance_ms / MSECS_PER_SEC + 1;
}

/* Not so long that the one of now is over meanwhile. */
int64_t
successor_timeout_ms(const Plan *plan)
{
	return MIN(CALL_TIMEOUT_MS, plan->left_ms / 3);
}
