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

/*
 * The realm's clock has passed the end of the lease, as far as it was heard.  From then
 * on the realm may lease the node to somebody else.
 */
bool
has_expired(const Plan *plan)
{
	return plan->has_heard && plan->left_ms <= 0;
}

/* Generation fails, because the last ID is too far ahead of both clocks to wait for them. */
static bool
is_far_ahead(const Plan *plan)
{
	uint64_t	allowance_ticks = (uint64_t) plan->allowance_ms >> SCRU64_TICK_SHIFT;

	return plan->furthest_tick > plan->clock_tick + 2 * allowance_ticks + 1;
}

/*
 * Would the sessions be better off with a new lease?
 *
 * They would if this one has expired, and where a clock has leaped ahead and was set
 * right since.  If it was the realm's, the lease may begin in the future of both clocks;
 * if it was this server's, the last ID may be too far ahead of both.  A new lease begins
 * at its grant, so its IDs begin now.
 *
 * They would not if only the realm's clock was set back.  The lease, ahead of that
 * alone, serves them, while a new one would have ended already by this server's clock.
 */
bool
is_worth_replacing(const Plan *plan)
{
	return has_expired(plan) ||
		(plan->has_heard &&
		 (plan->start_tick > plan->clock_tick || is_far_ahead(plan)));
}

/*
 * Sessions can have no more IDs of the lease: somebody has ended it, this server's clock,
 * by which they generate, has passed its window, or generation fails.  The realm's clock
 * does not count, as no session looks at it.
 */
bool
is_exhausted(const Plan *plan)
{
	return !plan->has_slot || plan->own_tick > plan->limit_tick || is_far_ahead(plan);
}

/*
 * The worker returns a lease that somebody has ended, and one that is worth replacing if
 * the realm is likely to grant another now.  One that is unrenewable it keeps until it
 * has the other.
 */
static bool
wants_return(const Plan *plan)
{
	return plan->has_lease &&
		((!plan->has_slot && !plan->is_standby_lease) ||
		 (!plan->is_unrenewable && plan->failures == 0 &&
		  plan->now_ms >= plan->next_lease_ms && is_worth_replacing(plan)));
}

/* Is a larger node worth a call before the lease has to be renewed? */
static bool
wants_larger(const Plan *plan)
{
	return plan->has_lease && !plan->is_standby_lease && !plan->is_unrenewable &&
		plan->failures == 0 && plan->now_ms >= plan->next_size_ms &&
		node_size_larger(&plan->size) != plan->size.current;
}

/* When to call the realm: for a new lease not before the pause after the last one. */
int64_t
next_call_ms(const Plan *plan)
{
	return plan->has_lease && !plan->is_unrenewable ? plan->next_attempt_ms :
		MAX(plan->next_attempt_ms, plan->next_lease_ms);
}

/*
 * No session gets IDs of a lease before the ceiling is loaded: whoever loads it starts all
 * nodes anew, and so ends the lease.  On a standby that is after recovery.
 */
static bool
awaits_ceiling(const Plan *plan)
{
	return !plan->in_recovery && !plan->has_ceiling;
}

/* The order matters: the worker returns what is of no use before it calls the realm. */
Step
next_step(const Plan *plan)
{
	if (awaits_ceiling(plan))
		return STEP_SLEEP;
	if (plan->is_standby_lease && !plan->in_recovery)
		return STEP_ACTIVATE;
	if (wants_return(plan))
		return STEP_RETURN;
	return plan->now_ms >= next_call_ms(plan) || wants_larger(plan) ? STEP_CALL : STEP_SLEEP;
}

/*
 * A session calls: there is no lease, or it has come to the end of the window.  The
 * worker tries at once, or soon if it has failed before.  Is that sooner than planned?
 */
bool
plan_call(Plan *plan)
{
	int64_t		planned_ms = next_call_ms(plan);

	if (plan->failures > 0)
		plan->next_attempt_ms = MIN(plan->next_attempt_ms, plan->called_attempt_ms);
	else if (!plan->has_slot || plan->now_ms - plan->last_called_ms >= MIN_LEASE_PAUSE_MS)
	{
		plan->last_called_ms = plan->now_ms;
		plan->next_attempt_ms = plan->now_ms;
	}
	return next_call_ms(plan) < planned_ms;
}

/*
 * The node_id_size to have when the lease is renewed; often that of now.  As long as
 * no session has the node, nothing is known of what it needs.
 */
int
wanted_size(const Plan *plan)
{
	int			larger = node_size_larger(&plan->size);

	if (plan->is_standby_lease)
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
 *
 * Where the window does not reach the node's first ID, sessions wait: then as soon as it
 * would, because a window moves on with the clock at least.  A node that is used up to the
 * end of its window is a matter of the allowance.
 */
static int64_t
renewal_pause_ms(const Plan *plan, uint32_t random)
{
	int64_t		usable = MAX(plan->left_ms - plan->allowance_ms, plan->left_ms / 4);
	int64_t		third = MIN(usable, plan->ttl_s * MSECS_PER_SEC) / 3;
	int64_t		pause = MAX(third, MIN_PAUSE_MS);
	uint64_t	missing = plan->furthest_tick + 1 - plan->limit_tick;

	pause += jitter(pause / 5, random) - pause / 10;
	if (plan->is_unused && plan->furthest_tick >= plan->limit_tick)
		pause = MIN(pause, MAX((int64_t) (missing << SCRU64_TICK_SHIFT), MIN_PAUSE_MS));
	return pause;
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
	if (done && is_worth_replacing(plan))
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
	int64_t		until_ms = next_call_ms(plan);

	if (awaits_ceiling(plan))
		return plan->now_ms + MAX_PAUSE_MS;
	if (plan->has_slot && look_ms >= 0)
		until_ms = MIN(until_ms, look_ms);
	return MIN(until_ms, plan->now_ms + (plan->is_standby_lease ? RECOVERY_NAP_MS : MAX_SLEEP_MS));
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
