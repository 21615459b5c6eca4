/*-------------------------------------------------------------------------
 *
 * lifecycle.c
 *		The steps of the lease worker: acquire, activate, renew, replace and return a lease.
 *
 * Each step updates three things: the realm's grant, the sessions' slot, and the lease saved
 * for the next worker.  The order is such that a crash or a lost answer between two updates
 * wastes one node at most.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "utils/timestamp.h"

#include "ceiling/ceiling.h"
#include "clock.h"
#include "lease_worker/lifecycle.h"
#include "settings.h"
#include "type/id_time.h"

/* Load the ceiling, before sessions get a lease.  Returns false if the ceiling has no page. */
bool
load_ceiling(void)
{
	MemoryContext context = CurrentMemoryContext;
	bool		loaded;

	StartTransactionCommand();
	loaded = scru64_ceiling_load_page();
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
	return loaded;
}

/*
 * Acquire
 */

/* Have the realm grant a lease of a node with this node_id_size.  No session uses it yet. */
bool
acquire_lease(Worker *worker, RealmCall *call, int node_id_size, HeldLease *lease)
{
	set_request(&worker->request, node_id_size, plan_window_s(&worker->plan),
				worker->info.holder, scru64_lease_within);
	*lease = worker->held;
	/* even if recovery has just ended: sessions get the lease once the ceiling is loaded */
	lease->is_standby_lease = !worker->plan.has_ceiling;
	lease->renewal_refused = false;
	if (!call_lease(call, &worker->request, lease))
		return false;
	worker->held.realm_clock = lease->realm_clock;
	worker->held.heard_at_ms = lease->heard_at_ms;
	if (!has_lease(worker) || worker->held.renewal_refused)
		plan_new_lease(&worker->plan, monotonic_ms());
	return true;
}

/*
 * The leased node overlaps one that is configured on this server.  No session uses the lease,
 * but while it lasts, the realm leases the node to no other server.  The worker may acquire
 * another lease soon, because the realm then grants another node.
 */
static bool
quarantine(Worker *worker, RealmCall *call, HeldLease *lease)
{
	(void) call_renew(call, plan_window_s(&worker->plan), 0, lease);
	worker->plan.next_size_ms = monotonic_ms() + MIN_LEASE_PAUSE_MS;
	return realm_problem(call, psprintf("node %u/%u overlaps one that is configured on this server",
										NODE_ARGS(lease)));
}

/*
 * Activate
 */

/* Take over a lease: from here on the worker renews it. */
static void
adopt_lease(Worker *worker, const HeldLease *lease)
{
	NodeReport	report = {0};

	worker->held = *lease;
	(void) scru64_leased_report(&report);
	node_size_begin(&worker->plan.size, (int) lease->node.node_id_size, monotonic_ms(),
					report.counts[NODE_SATURATED], report.counts[NODE_USED]);
	publish_info(worker);
}

/* Times in ticks. */
static void
log_going_back(uint64 from, uint64 to)
{
	ereport(LOG,
			(errmsg("IDs and the watermark of this server go back from %s to %s",
					pstrdup(timestamptz_to_str(time_of_tick(from))),
					pstrdup(timestamptz_to_str(time_of_tick(to)))),
			 errdetail("They were ahead of the clock by more than twice \"%s\" (%d ms).",
					   ALLOWANCE_SETTING, scru64_rollback_allowance),
			 errhint("Readers of new rows miss rows, unless their positions are set back, too.")));
}

/*
 * Let sessions generate IDs of a lease from its start on, even if they are below earlier IDs.
 * On a standby, sessions generate when recovery has ended.
 */
bool
activate_lease(Worker *worker, RealmCall *call, HeldLease *lease)
{
	uint64		back_from;

	(void) scru64_leased_end();
	if (!scru64_leased_activate(lease, lease->start_tick, refresh_plan(worker)->clock_tick,
								&back_from))
		return quarantine(worker, call, lease);
	worker->info.size_changed_at = 0;
	worker->info.size_reason[0] = '\0';
	adopt_lease(worker, lease);
	ereport(LOG,
			(lease->is_standby_lease ?
			 errmsg("this standby has leased node %u/%u for its promotion", NODE_ARGS(lease)) :
			 errmsg("this server has leased node %u/%u", NODE_ARGS(lease)),
			 errdetail("The lease is from %s to %s, by the realm's clock.",
					   pstrdup(timestamptz_to_str(lease->granted_at)),
					   pstrdup(timestamptz_to_str(lease->expires_at)))));
	if (back_from != 0)
		log_going_back(back_from, lease->start_tick);
	return true;
}

/* End the lease for all sessions and the next worker.  Returns its last ID, or 0. */
static uint64
end_lease(Worker *worker)
{
	uint64		last_id = scru64_leased_end();

	worker->held.lease_id[0] = '\0';
	publish_info(worker);
	return last_id;
}

/*
 * Recovery has ended: let sessions generate IDs of the standby's lease, above all IDs of the
 * old primary.  The ceiling is locked meanwhile: scru64_set_ceiling() runs before this, or
 * after, and ends the lease.
 */
void
activate_standby_lease(Worker *worker)
{
	HeldLease	lease = worker->held;
	MemoryContext context = CurrentMemoryContext;
	bool		in_window;
	bool		activated;
	uint64		start;
	uint64		back_from;

	lease.is_standby_lease = false;
	StartTransactionCommand();
	start = Max(lease.start_tick, scru64_ceiling_lock());
	in_window = start < lease.limit_tick;
	activated = in_window && scru64_leased_activate(&lease, start, 0, &back_from);
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
	ereport(LOG,
			(activated ?
			 errmsg("recovery has ended, and this server has node %u/%u", NODE_ARGS(&lease)) :
			 in_window ?
			 errmsg("recovery has ended, and node %u/%u overlaps one that is configured on this server",
					NODE_ARGS(&lease)) :
			 errmsg("recovery has ended, and the ceiling of this server is beyond the lease of node %u/%u",
					NODE_ARGS(&lease))));
	if (activated)
	{
		adopt_lease(worker, &lease);
		return;
	}
	/* a node that overlaps a configured one stays in quarantine until the lease ends */
	if (in_window)
		(void) end_lease(worker);
	else
		return_lease(worker);
	worker->plan.next_attempt_ms = 0;
}

/*
 * Resume the saved lease, if there is one.  If the worker before ended without a crash, the
 * sessions still have the lease.  A crash has cleared the slot, but all IDs of the lease are
 * at or below the ceiling: if the ceiling is inside the window, IDs continue above it.  The
 * ceiling is locked meanwhile: scru64_set_ceiling() runs before this, and has removed the
 * saved lease, or after, and ends the lease.
 */
void
resume_lease(Worker *worker)
{
	HeldLease	lease;
	NodeReport	report;
	uint64		ceiling = 0;
	uint64		back_from;
	bool		has_ceiling = !RecoveryInProgress() && load_ceiling();
	bool		resumed;

	/* during recovery the ceiling cannot be set or read */
	if (has_ceiling)
	{
		StartTransactionCommand();
		ceiling = scru64_ceiling_lock();
	}
	resumed = scru64_leased_recall(&lease) && lease.conninfo_hash == worker->held.conninfo_hash &&
		(lease.is_standby_lease || scru64_leased_report(&report) ||
		 (lease.start_tick < ceiling && ceiling <= lease.limit_tick &&
		  scru64_leased_activate(&lease, ceiling, 0, &back_from)));
	if (has_ceiling)
		CommitTransactionCommand();
	if (resumed)
	{
		adopt_lease(worker, &lease);
		ereport(LOG,
				(errmsg("the lease of node %u/%u goes on", NODE_ARGS(&lease))));
	}
	else
		(void) end_lease(worker);
}

/*
 * Renew
 */

/*
 * Renew the lease.  The limit rises after the realm has committed.  If the realm has ended or
 * lost the lease, it will never renew the lease; but no other server has the lease's IDs while
 * the window is open, so the sessions use the lease until then.
 */
bool
renew_lease(Worker *worker, RealmCall *call)
{
	HeldLease  *held = &worker->held;
	NodeReport	report = {0};
	bool		renewed;

	(void) scru64_leased_report(&report);
	renewed = call_renew(call, plan_window_s(&worker->plan), report.last_id, held);
	if (renewed)
		worker->plan.lease_pause_ms = MIN_LEASE_PAUSE_MS;
	else if (call->lease_over || (call->refused && plan_has_expired(refresh_plan(worker))))
	{
		held->renewal_refused = true;
		ereport(LOG,
				(errmsg("the lease of node %u/%u is not renewed any more: %s",
						NODE_ARGS(held), call->problem),
				 errdetail("It is used until it ends at %s, by the realm's clock, or the realm has given this server another one.",
						   timestamptz_to_str(held->expires_at))));
	}
	scru64_leased_update(held);
	return renewed;
}

/*
 * Replace
 */

/* The last ID to report for a lease without IDs */
static uint64
start_id(const HeldLease *lease)
{
	return scru64_compose(lease->start_tick, scru64_node_base(lease->node) |
						  scru64_max_counter(lease->node));
}

/* Return a lease over the open connection, even if the worker has to stop. */
static bool
release_lease(RealmCall *call, const HeldLease *lease, uint64 last_id)
{
	call->deadline_ms = monotonic_ms() + RELEASE_TIMEOUT_MS;
	call->stopping = true;
	return call_release(call, lease, last_id);
}

static void
log_return(const HeldLease *lease, bool done, const char *problem)
{
	ereport(LOG,
			(done ?
			 errmsg("the lease of node %u/%u was returned", NODE_ARGS(lease)) :
			 errmsg("the lease of node %u/%u was not returned: %s", NODE_ARGS(lease), problem),
			 done ? 0 :
			 errdetail("It ends by itself at %s, by the realm's clock.",
					   timestamptz_to_str(lease->expires_at))));
}

/* A lease was replaced for its node_id_size.  Sets the reason, and returns it. */
static const char *
set_size_reason(Worker *worker, const HeldLease *old)
{
	const NodeSize *size = &worker->plan.size;
	int			old_size = (int) old->node.node_id_size;

	worker->size_failed = false;
	worker->info.size_changed_at = GetCurrentTimestamp();
	strlcpy(worker->info.size_reason,
			old_size > size->quiet || old_size < size->least ? "the settings were changed" :
			size->current < old_size ? "sessions had to wait for the clock" :
			"little of the node was used",
			LEASE_TEXT_LEN);
	publish_info(worker);
	return worker->info.size_reason;
}

/* Sessions generate IDs of the next lease, above the old one's last_id: return the old one. */
static void
finish_replacement(Worker *worker, RealmCall *call, const HeldLease *next, uint64 last_id)
{
	HeldLease	old = worker->held;
	const char *reason;

	adopt_lease(worker, next);
	reason = old.renewal_refused ? "its lease was not renewed any more" : set_size_reason(worker, &old);
	ereport(LOG,
			(errmsg("the node of this server is %u/%u now, and was %u/%u: %s",
					NODE_ARGS(next), NODE_ARGS(&old), reason)));
	if (!old.renewal_refused)
		log_return(&old, release_lease(call, &old, last_id), call->problem);
}

/*
 * Acquire the next lease, have sessions generate its IDs, above all IDs of the old lease, and
 * then return the old one, unless its renewal was refused.  If the next lease's IDs cannot be
 * above the old one's, return the next lease instead; but if the old lease is exhausted and
 * cannot be renewed, activate the next lease all the same.
 */
bool
replace_lease(Worker *worker, RealmCall *call, int node_id_size)
{
	static const char *const problems[] = {
		[REPLACE_ENDED] = "the lease was ended meanwhile",
		[REPLACE_TOO_SHORT] = "its lease ends too early",
		[REPLACE_AHEAD] = "its lease begins ahead of this server's clock"
	};
	HeldLease	next;
	Replacement result;
	uint64		last_id;

	if (!acquire_lease(worker, call, node_id_size, &next))
		return false;
	result = scru64_leased_replace(&next, &last_id);
	if (result == REPLACE_DONE)
	{
		finish_replacement(worker, call, &next, last_id);
		return true;
	}
	if (result == REPLACE_OVERLAPS)
		return quarantine(worker, call, &next);
	if (worker->held.renewal_refused && plan_is_exhausted(refresh_plan(worker)))
		return activate_lease(worker, call, &next);
	(void) release_lease(call, &next, start_id(&next));
	return realm_problem(call, problems[result]);
}

/*
 * Return
 */

/*
 * Return the lease.  The slot is taken from the sessions first, so that they issue no ID above
 * the reported one, whatever the realm answers.
 */
void
return_lease(Worker *worker)
{
	HeldLease	lease = worker->held;
	bool		is_held = has_lease(worker);
	bool		ends_by_itself = lease.renewal_refused || plan_has_expired(refresh_plan(worker));
	uint64		last_id = end_lease(worker);
	RealmCall	call;

	if (!is_held || ends_by_itself)
		return;
	publish_busy(worker, true);
	realm_open(&call, worker->conninfo, worker->first_host, RELEASE_TIMEOUT_MS, true);
	log_return(&lease, call_release(&call, &lease, lease.is_standby_lease ? start_id(&lease) : last_id),
			   call.problem);
	realm_close(&call);
	publish_busy(worker, false);
}
