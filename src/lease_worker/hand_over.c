/*-------------------------------------------------------------------------
 *
 * hand_over.c
 *		Another lease while the sessions have one: they go on with it, in order.
 *
 * The next one is leased first; then they have its node, after the last ID of the old
 * one; and only then is that released.  A lease that cannot be handed over to is given
 * back.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "clock.h"
#include "lease_worker/hand_over.h"
#include "lease_worker/holding.h"
#include "lease_worker/messages.h"
#include "settings.h"
#include "shmem/leased_slot.h"

static const char *const problems[] = {
	[HAND_OVER_ENDED] = "the lease was ended meanwhile",
	[HAND_OVER_TOO_SHORT] = "its lease ends too early",
	[HAND_OVER_AHEAD] = "its lease begins ahead of this server's clock"
};

/* Have the sessions go on with the node of the next lease. */
static HandOver
hand_over(Worker *worker, const HeldLease *next, uint64 *last_id)
{
	HandOver	result = scru64_leased_hand_over(next, look_around(worker)->own_tick,
												 allowance_ticks(), last_id);

	if (result == HAND_OVER_DONE)
		begin_lease(worker, next);
	return result;
}

/* The call goes on with a release, even if the worker is to stop. */
static void
begin_release(RealmCall *call)
{
	call->deadline_ms = monotonic_ms() + RELEASE_TIMEOUT_MS;
	call->stopping = true;
}

/* Give a lease back that no session has had. */
static void
give_back(RealmCall *call, const HeldLease *lease)
{
	begin_release(call);
	(void) call_release(call, lease, start_id(lease));
}

/*
 * Go on with a node of another size.  The lease of now, which was just renewed, stays
 * as it is if that is not to be had.
 */
void
change_size(Worker *worker, RealmCall *call, int wanted)
{
	HeldLease	old = worker->held;
	HeldLease	next;
	HandOver	result;
	uint64		last_id;

	worker->plan.next_size_ms = monotonic_ms() + SIZE_PAUSE_MS;
	call->deadline_ms = monotonic_ms() + successor_timeout_ms(&worker->plan);
	if (!ask_for_lease(worker, call, wanted, &next))
	{
		if (!realm_is_disturbed(call))
			log_size_problem(worker, call->problem);
		return;
	}
	result = hand_over(worker, &next, &last_id);
	if (result == HAND_OVER_DONE)
	{
		worker->plan.next_size_ms = 0;
		log_size(worker, &old);
		begin_release(call);
		log_release(&old, call_release(call, &old, last_id), call->problem);
	}
	else if (result == HAND_OVER_OVERLAPS)
	{
		shield(worker, call, &next);
		worker->plan.next_size_ms = monotonic_ms() + MIN_LEASE_PAUSE_MS;
		log_size_problem(worker, call->problem);
	}
	else
	{
		give_back(call, &next);
		log_size_problem(worker, problems[result]);
	}
}

/*
 * Go on with another lease in place of one that is not renewed any more, and that the
 * realm does not take back.  Where the sessions cannot go on in order, they keep the old
 * one for as long as they can have any ID of it.
 */
bool
replace_lease(Worker *worker, RealmCall *call)
{
	HeldLease	old = worker->held;
	HeldLease	next;
	HandOver	result;
	uint64		last_id;

	if (!ask_for_lease(worker, call, worker->plan.size.current, &next))
		return false;
	plan_new_lease(&worker->plan, monotonic_ms());
	result = hand_over(worker, &next, &last_id);
	if (result == HAND_OVER_DONE)
	{
		log_node(&next, &old, "its lease was not renewed any more");
		return true;
	}
	if (result == HAND_OVER_OVERLAPS)
	{
		shield(worker, call, &next);
		return false;
	}
	if (is_spent(look_around(worker)))
		return begin_anew(worker, call, &next);
	give_back(call, &next);
	return realm_problem(call, problems[result]);
}
