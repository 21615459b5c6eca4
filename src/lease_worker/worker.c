/*-------------------------------------------------------------------------
 *
 * worker.c
 *		The state of the lease worker: update, publish and log it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "pgstat.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "lease_worker/worker.h"
#include "settings.h"
#include "type/id_time.h"

#define USECS_PER_MSEC		1000

/* Between two messages of a standing failure */
#define LOG_PAUSE_MS		60000

/* Update the plan to the present state, as the basis of all decisions. */
Plan *
refresh_plan(Worker *worker)
{
	const HeldLease *held = &worker->held;
	Plan	   *plan = &worker->plan;
	NodeReport	report = {0};
	TimestampTz realm_clock;

	plan->now_ms = monotonic_ms();
	/* as last heard, and the time since then; in the year 2000 if never heard */
	realm_clock = held->realm_clock + (plan->now_ms - held->heard_at_ms) * USECS_PER_MSEC;
	plan->failures = worker->info.failures;
	plan->in_recovery = RecoveryInProgress();
	plan->has_lease = has_lease(worker);
	plan->is_standby_lease = plan->has_lease && held->is_standby_lease;
	plan->renewal_refused = plan->has_lease && held->renewal_refused;
	plan->has_slot = scru64_leased_report(&report);
	plan->knows_realm_clock = held->realm_clock != 0;
	plan->remaining_ms = (held->expires_at - realm_clock) / USECS_PER_MSEC;
	plan->own_tick = tick_of_time(Max(GetCurrentTimestamp(), UNIX_EPOCH_TIMESTAMP));
	plan->clock_tick = Max(plan->own_tick, tick_of_time(Max(realm_clock, UNIX_EPOCH_TIMESTAMP)));
	plan->start_tick = held->start_tick;
	plan->furthest_tick = Max(held->start_tick, report.tick);
	plan->limit_tick = held->limit_tick;
	plan->is_unused = !node_state_is_id(report.state);
	if (plan->has_lease && plan->has_slot)
		node_size_look(&plan->size, plan->now_ms, report.counts[NODE_SATURATED], report.counts[NODE_USED]);
	return plan;
}

/* Publish the present state to all sessions. */
void
publish_info(Worker *worker)
{
	LeaseInfo  *info = &worker->info;
	const HeldLease *held = &worker->held;
	const Plan *plan = refresh_plan(worker);
	int64		pause_ms = Max(plan_next_call_ms(plan) - plan->now_ms, 0);

	info->node = plan->has_lease ? held->node : (Scru64Node) {0};
	info->is_standby_lease = plan->is_standby_lease;
	info->granted_at = held->granted_at;
	info->expires_at = held->expires_at;
	info->next_attempt_at = GetCurrentTimestamp() + pause_ms * USECS_PER_MSEC;
	scru64_mailbox_set_info(info);
}

void
publish_busy(Worker *worker, bool busy)
{
	worker->info.busy = busy;
	publish_info(worker);
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

/* Note a failure.  Log the first one, and then one once in LOG_PAUSE_MS. */
void
note_failure(Worker *worker, const RealmCall *call)
{
	LeaseInfo  *info = &worker->info;

	info->failures++;
	strlcpy(info->last_error, call->problem, LEASE_TEXT_LEN);
	info->last_error_at = GetCurrentTimestamp();
	if (info->failures > 1 && monotonic_ms() - worker->logged_at_ms < LOG_PAUSE_MS)
		return;
	worker->logged_at_ms = monotonic_ms();
	ereport(LOG,
			(!has_lease(worker) ?
			 errmsg("the realm has not given this server a lease: %s", info->last_error) :
			 worker->held.renewal_refused ?
			 errmsg("the realm has not given this server another lease: %s", info->last_error) :
			 errmsg("the lease of this server was not renewed: %s", info->last_error),
			 errdetail("%ld attempts have failed since the last success.",
					   (long) info->failures),
			 !call->other_realm ?
			 errhint("It is tried again and again. See %s.", "scru64_lease()") :
			 *scru64_realm_id != '\0' ?
			 errhint("If the first realm is the one to lease from, set \"%s\" to its ID when that realm grants leases.",
					 "scru64.realm_id") :
			 errhint("A realm has another ID after DROP EXTENSION and CREATE EXTENSION, for example. If the first realm is the one to lease from, wait until the lease is over.")));
}
