/*-------------------------------------------------------------------------
 *
 * worker.c
 *		What the lease worker remembers, and sees.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "lease_worker/worker.h"
#include "shmem/leased_slot.h"
#include "type/id_time.h"

/* See how things are, to decide by. */
Plan *
look_around(Worker *worker)
{
	const HeldLease *held = &worker->held;
	Plan	   *plan = &worker->plan;
	NodeReport	look = {0};
	TimestampTz realm_clock;

	plan->now_ms = monotonic_ms();
	/* as far as is known; in the year 2000 if it is not */
	realm_clock = held->realm_clock + (plan->now_ms - held->heard_at_ms) * USECS_PER_MSEC;
	plan->failures = worker->info.failures;
	plan->in_recovery = RecoveryInProgress();
	plan->has_lease = has_lease(worker);
	plan->is_ahead = plan->has_lease && held->is_ahead;
	plan->is_lapsing = plan->has_lease && held->is_lapsing;
	plan->has_slot = scru64_leased_look(&look);
	plan->has_heard = held->realm_clock != 0;
	plan->left_ms = (held->expires_at - realm_clock) / USECS_PER_MSEC;
	plan->own_tick = tick_of_time(Max(GetCurrentTimestamp(), UNIX_EPOCH_TIMESTAMP));
	plan->clock_tick = Max(plan->own_tick, tick_of_time(Max(realm_clock, UNIX_EPOCH_TIMESTAMP)));
	plan->start_tick = held->start_tick;
	plan->furthest_tick = Max(held->start_tick, scru64_get_timestamp(look.last_id));
	plan->limit_tick = held->limit_tick;
	if (plan->has_lease && plan->has_slot)
		node_size_look(&plan->size, plan->now_ms, look.counts[NODE_SATURATED], look.counts[NODE_USED]);
	return plan;
}
