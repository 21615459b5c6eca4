/*-------------------------------------------------------------------------
 *
 * holding.c
 *		The lease that the worker holds: obtain, resume, renew, give and release it.
 *
 * Each keeps together what the realm has granted, what the sessions may use, and what
 * is kept for the next worker.  The order in which that is done is what makes it safe.
 *
 * Invariants: those of scru64_lease.c; here they are kept.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "utils/timestamp.h"

#include "ceiling/ceiling.h"
#include "clock.h"
#include "lease_worker/holding.h"
#include "lease_worker/messages.h"
#include "lease_worker/realm_identity.h"
#include "settings.h"
#include "shmem/leased_slot.h"

/* Begin with a lease that the sessions have, or are to have when recovery has ended. */
void
begin_lease(Worker *worker, const HeldLease *lease)
{
	NodeReport	look = {0};

	worker->held = *lease;
	(void) scru64_leased_look(&look);
	node_size_begin(&worker->plan.size, (int) lease->node.node_id_size, monotonic_ms(),
					look.counts[NODE_SATURATED], look.counts[NODE_USED]);
	publish(worker);
}

/*
 * May the lease of this postmaster that was kept go on?  Then the sessions have it, as
 * before: they have never lost it, or there was a crash, and all of its IDs that were
 * given out are at or below the ceiling.  That is locked, so that scru64_set_ceiling()
 * comes before, and has removed what was kept, or after, and ends the lease.
 */
static bool
resume(Worker *worker, uint64 ceiling)
{
	HeldLease	lease;
	NodeReport	look;
	bool		resumed = scru64_leased_recall(&lease) && is_of_address(&lease) &&
		(lease.is_ahead || scru64_leased_look(&look) ||
		 (lease.start_tick < ceiling && ceiling <= lease.limit_tick &&
		  scru64_leased_begin(&lease, ceiling)));

	if (resumed)
		begin_lease(worker, &lease);
	else
		(void) scru64_leased_end();
	return resumed;
}

/* The lease of this postmaster, if there is one that may go on. */
void
resume_lease(Worker *worker)
{
	bool		resumed;

	/* during recovery nobody sets the ceiling, nor can it be read */
	if (RecoveryInProgress())
		resumed = resume(worker, 0);
	else
	{
		StartTransactionCommand();
		resumed = resume(worker, scru64_ceiling_hold());
		scru64_ceiling_let_go();
		CommitTransactionCommand();
	}
	if (resumed)
		ereport(LOG,
				(errmsg("the lease of node %u/%u goes on",
						worker->held.node.node_id, worker->held.node.node_id_size)));
}

/* Ask for a lease of a node of this size. */
bool
ask_for_lease(Worker *worker, RealmCall *call, int node_id_size, HeldLease *lease)
{
	set_request(&worker->request, node_id_size, window_s(&worker->plan),
				worker->info.holder, scru64_lease_within);
	*lease = worker->held;
	lease->is_ahead = lease->is_lapsing = false;
	if (!call_lease(call, &worker->request, lease))
		return false;
	worker->held.realm_clock = lease->realm_clock;
	worker->held.heard_at_ms = lease->heard_at_ms;
	return true;
}

/*
 * A lease of a node that somebody has set on this server by hand: it is kept, so that
 * nobody else gets it as long as it lasts.
 */
void
shield(Worker *worker, RealmCall *call, HeldLease *lease)
{
	(void) call_renew(call, window_s(&worker->plan), 0, lease);
	realm_problem(call, psprintf("node %u/%u overlaps one that is set on this server by hand",
								 lease->node.node_id, lease->node.node_id_size));
}

/*
 * Begin with a lease, whatever the sessions had before.  On a standby none of them is
 * to have it yet.
 */
bool
begin_anew(Worker *worker, RealmCall *call, HeldLease *lease)
{
	(void) scru64_leased_end();
	lease->is_ahead = worker->plan.in_recovery;
	if (!scru64_leased_begin(lease, lease->start_tick))
	{
		shield(worker, call, lease);
		return false;
	}
	worker->info.size_changed_at = 0;
	worker->info.size_reason[0] = '\0';
	begin_lease(worker, lease);
	log_lease(lease);
	return true;
}

bool
obtain_lease(Worker *worker, RealmCall *call)
{
	HeldLease	lease;

	if (!ask_for_lease(worker, call, worker->plan.size.quiet, &lease))
		return false;
	plan_new_lease(&worker->plan, monotonic_ms());
	return begin_anew(worker, call, &lease);
}

/*
 * The realm will not renew the lease ever again: it has ended it, or has lost it.  Nobody
 * else has its IDs as long as its window is open, so the sessions keep it for that long.
 */
static void
let_lapse(Worker *worker, const char *problem)
{
	worker->held.is_lapsing = true;
	scru64_leased_update(&worker->held);
	log_lapse(&worker->held, problem);
}

bool
renew_lease(Worker *worker, RealmCall *call)
{
	HeldLease  *held = &worker->held;
	NodeReport	look = {0};

	(void) scru64_leased_look(&look);
	if (!call_renew(call, window_s(&worker->plan), look.last_id, held))
	{
		if (call->over || (call->refused && is_over(look_around(worker))))
			let_lapse(worker, call->problem);
		return false;
	}
	scru64_leased_update(held);
	worker->plan.lease_pause_ms = MIN_LEASE_PAUSE_MS;
	return true;
}

/* From here on nobody has the lease, nor will resume it.  The last ID that left, or 0. */
static uint64
end_lease(Worker *worker)
{
	uint64		last_id = scru64_leased_end();

	worker->held.lease_id[0] = '\0';
	publish(worker);
	return last_id;
}

/*
 * Recovery has ended: the sessions may have the lease that was held until now, after all
 * that the old primary has given out.  The ceiling is locked, so that
 * scru64_set_ceiling() comes before, or after, and ends the lease.
 */
void
give_lease(Worker *worker)
{
	HeldLease	lease = worker->held;
	MemoryContext context = CurrentMemoryContext;
	bool		is_inside;
	bool		given;
	uint64		start;

	StartTransactionCommand();
	start = Max(lease.start_tick, scru64_ceiling_hold());
	is_inside = start < lease.limit_tick;
	lease.is_ahead = false;
	given = is_inside && scru64_leased_begin(&lease, start);
	if (given)
		begin_lease(worker, &lease);
	scru64_ceiling_let_go();
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
	ereport(LOG,
			(given ?
			 errmsg("recovery has ended, and this server has node %u/%u",
					lease.node.node_id, lease.node.node_id_size) :
			 is_inside ?
			 errmsg("recovery has ended, and node %u/%u overlaps one that is set on this server by hand",
					lease.node.node_id, lease.node.node_id_size) :
			 errmsg("recovery has ended, and the ceiling of this server is beyond the lease of node %u/%u",
					lease.node.node_id, lease.node.node_id_size)));
	if (given)
		return;
	/* one that is set by hand nobody else gets as long as the lease lasts */
	if (is_inside)
		end_lease(worker);
	else
		release_lease(worker);
	worker->plan.next_attempt_ms = 0;
}

/* What stands for the last ID of a lease that has had none. */
uint64
start_id(const HeldLease *lease)
{
	return scru64_compose(lease->start_tick, scru64_node_base(lease->node) |
						  scru64_max_counter(lease->node));
}

/*
 * Give the lease back.  First the slot: what was sent is the end of it, whatever
 * the realm answers.
 */
void
release_lease(Worker *worker)
{
	HeldLease	lease = worker->held;
	bool		ends_by_itself = lease.is_lapsing || is_over(look_around(worker));
	bool		has_had_lease = has_lease(worker);
	uint64		last_id = end_lease(worker);
	RealmCall	call;

	if (!has_had_lease || ends_by_itself)
		return;
	set_busy(worker, true);
	realm_open(&call, worker->realm, worker->first_host, RELEASE_TIMEOUT_MS, true);
	log_release(&lease, call_release(&call, &lease, lease.is_ahead ? start_id(&lease) : last_id),
				call.problem);
	realm_close(&call);
	set_busy(worker, false);
}

/* What was asked for is not what is wanted now. */
void
forget_request(Worker *worker)
{
	worker->request.request[0] = '\0';
	worker->plan.next_lease_ms = 0;
}

/* Have done with a realm: another one, or none, is what the settings say. */
void
leave_realm(Worker *worker)
{
	release_lease(worker);
	memset(&worker->held, 0, sizeof(worker->held));
	forget_request(worker);
	keep_address(worker);
}
