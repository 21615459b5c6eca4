/*-------------------------------------------------------------------------
 *
 * worker.c
 *		What the lease worker remembers, sees and shows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "pgstat.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "lease_worker/worker.h"
#include "type/id_time.h"

#define USECS_PER_MSEC		1000

/* See how things are, to decide by. */
Plan *
refresh_plan(Worker *worker)
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
	plan->is_standby_lease = plan->has_lease && held->is_standby_lease;
	plan->is_unrenewable = plan->has_lease && held->is_unrenewable;
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

/* Show all sessions how things are. */
void
show(Worker *worker)
{
	LeaseInfo  *info = &worker->info;
	const HeldLease *held = &worker->held;
	const Plan *plan = refresh_plan(worker);
	int64		left_ms = Max(next_call_ms(plan) - plan->now_ms, 0);

	info->node = plan->has_lease ? held->node : (Scru64Node) {0};
	info->is_standby_lease = plan->is_standby_lease;
	info->granted_at = held->granted_at;
	info->expires_at = held->expires_at;
	info->next_attempt_at = GetCurrentTimestamp() + left_ms * USECS_PER_MSEC;
	scru64_lease_set_info(info);
}

void
show_busy(Worker *worker, bool busy)
{
	worker->info.busy = busy;
	show(worker);
	pgstat_report_activity(busy ? STATE_RUNNING : STATE_IDLE,
						   busy ? "talking with the realm" : NULL);
}

void
forget_failures(Worker *worker)
{
	worker->info.failures = 0;
	worker->info.last_error[0] = '\0';
	worker->info.last_error_at = 0;
}

void
note_failure(Worker *worker, const char *problem)
{
	worker->info.failures++;
	strlcpy(worker->info.last_error, problem, LEASE_TEXT_LEN);
	worker->info.last_error_at = GetCurrentTimestamp();
}
