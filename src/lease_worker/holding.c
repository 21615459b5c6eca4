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

/* The lease is over: it is in nobody's memory any more. */
static void
forget_lease(Worker *worker)
{
	worker->held.lease_id[0] = '\0';
	keep_lease(&worker->held);
	publish(worker);
}

/*
 * Keep the lease for a worker to come, unless scru64_set_ceiling() has just ended it:
 * that has removed what was kept before.
 */
static void
keep_held(Worker *worker)
{
	HeldLease	none = {0};
	NodeReport	look;

	keep_lease(&worker->held);
	if (!worker->held.is_ahead && !scru64_leased_look(&look))
		keep_lease(&none);
}

/* Begin with a lease that the sessions have, or are to have when recovery has ended. */
void
begin_lease(Worker *worker, const HeldLease *lease)
{
	NodeReport	look = {0};

	worker->held = *lease;
	keep_held(worker);
	(void) scru64_leased_look(&look);
	node_size_begin(&worker->plan.size, (int) lease->node.node_id_size, monotonic_ms(),
					look.counts[NODE_SATURATED], look.counts[NODE_USED]);
	publish(worker);
}

/*
 * May the lease of this postmaster that was kept go on?  Then the sessions have it, as
 * before.  The ceiling is locked, so that scru64_set_ceiling() comes before, and has
 * removed what was kept, or after, and ends the lease.
 */
static bool
can_resume(HeldLease *held, uint64 ceiling)
{
	NodeReport	look;

	if (!recall_lease(held) || held->lease_id[0] == '\0' || !is_of_address(held))
		return false;
	if (held->is_ahead ||
		(scru64_leased_look(&look) && nodes_equal(look.node, held->node)))
		return true;
	/* a worker was changing the node, and the slot has one that was not kept */
	(void) scru64_leased_end();
	return held->start_tick < ceiling && ceiling <= held->limit_tick &&
		scru64_leased_begin(held->node, ceiling, held->limit_tick);
}

static bool
resume(Worker *worker, uint64 ceiling)
{
	HeldLease	held;
	bool		resumed = can_resume(&held, ceiling);

	if (resumed)
		begin_lease(worker, &held);
	else
	{
		/* a worker has kept no lease of the node in the slot: nobody could renew or release it */
		(void) scru64_leased_end();
		keep_lease(&worker->held);
	}
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
	if (!lease->is_ahead &&
		!scru64_leased_begin(lease->node, lease->start_tick, lease->limit_tick))
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
	keep_held(worker);
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
	scru64_leased_extend(held->node, held->limit_tick);
	worker->plan.lease_pause_ms = MIN_LEASE_PAUSE_MS;
	keep_held(worker);
	return true;
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
	given = is_inside && scru64_leased_begin(lease.node, start, lease.limit_tick);
	lease.is_ahead = false;
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
		forget_lease(worker);
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
	uint64		last_id = scru64_leased_end();
	RealmCall	call;

	if (!has_lease(worker))
		return;
	forget_lease(worker);
	if (ends_by_itself)
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
