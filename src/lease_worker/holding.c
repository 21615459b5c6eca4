/*-------------------------------------------------------------------------
 *
 * holding.c
 *		The lease that the worker holds: obtain, resume, renew, change and release it.
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
#include "common/hashfn.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "../ceiling.h"
#include "../clock.h"
#include "../id_time.h"
#include "../leased_slot.h"
#include "../node_spec.h"
#include "../settings.h"
#include "holding.h"
#include "messages.h"

static void
hear_clock(Worker *worker, const RealmCall *call)
{
	worker->realm_clock = call->clock;
	worker->heard_at_ms = monotonic_ms();
}

/* See how things are, to decide by. */
Plan *
look_around(Worker *worker)
{
	Plan	   *plan = &worker->plan;
	NodeReport	look = {0};
	TimestampTz realm_clock;

	plan->now_ms = monotonic_ms();
	/* as far as is known; in the year 2000 if it is not */
	realm_clock = worker->realm_clock + (plan->now_ms - worker->heard_at_ms) * USECS_PER_MSEC;
	plan->failures = worker->info.failures;
	plan->has_lease = has_lease(worker);
	plan->has_slot = scru64_leased_look(&look);
	plan->has_heard = worker->realm_clock != 0;
	plan->left_ms = (worker->held.expires_at - realm_clock) / USECS_PER_MSEC;
	plan->clock_tick = tick_of_time(Max(Max(realm_clock, GetCurrentTimestamp()),
										UNIX_EPOCH_TIMESTAMP));
	plan->furthest_tick = Max(worker->held.start_tick, scru64_get_timestamp(look.last_id));
	if (plan->has_lease && plan->has_slot)
		node_size_look(&plan->size, plan->now_ms, look.counts[NODE_SATURATED], look.counts[NODE_USED]);
	return plan;
}

/* The lease is over: it is in nobody's memory any more. */
static void
forget_lease(Worker *worker)
{
	worker->held.lease_id[0] = '\0';
	keep_lease(&worker->held);
	publish(worker);
}

/* From here on, where the lease is from is what the setting says. */
void
keep_address(Worker *worker)
{
	if (worker->realm != NULL)
		pfree(worker->realm);
	worker->realm = MemoryContextStrdup(TopMemoryContext, scru64_realm);
}

/* Where a lease is from, so that it is not taken for one of another realm. */
static uint64
address_hash(const char *realm)
{
	return hash_bytes_extended((const unsigned char *) realm, (int) strlen(realm), 0);
}

/* Which realm this server is to have its lease from; empty: any. */
static const char *
wanted_realm_id(const Worker *worker)
{
	if (*scru64_realm_id != '\0')
		return scru64_realm_id;
	return strcmp(worker->realm, scru64_realm) == 0 ? worker->held.realm_id : "";
}

/* Which realm is it?  False if it is not one to have a lease from. */
bool
check_realm(const Worker *worker, RealmCall *call, char *realm_id)
{
	const char *wanted = wanted_realm_id(worker);

	if (!call_realm_id(call, realm_id))
		return false;
	if (*wanted != '\0' && pg_strcasecmp(realm_id, wanted) != 0)
		return realm_problem(call, psprintf("this is realm %s, and not %s", realm_id, wanted));
	return true;
}

/* From here on the lease is from this realm, at the address that is set. */
void
settle_in_realm(Worker *worker, const char *realm_id)
{
	HeldLease  *held = &worker->held;

	if (*scru64_realm_id == '\0' && strcmp(realm_id, held->realm_id) != 0)
		ereport(LOG,
				(errmsg("the realm of this server is %s", realm_id),
				 errhint("Set \"%s\" to it, and no other realm is taken for it.",
						 "scru64.realm_id")));
	strlcpy(held->realm_id, realm_id, sizeof(held->realm_id));
	held->address = address_hash(scru64_realm);
	keep_address(worker);
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
	if (!scru64_leased_look(&look))
		keep_lease(&none);
}

/* Begin with a lease that the sessions have. */
static void
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
 * May the sessions go on with the lease of this postmaster that was kept?  Then they
 * do.  The ceiling is locked, so that scru64_set_ceiling() comes before, and has
 * removed what was kept, or after, and ends the lease.
 */
static bool
can_resume(HeldLease *held, uint64 ceiling)
{
	NodeReport	look;

	if (!recall_lease(held) || held->lease_id[0] == '\0' ||
		held->address != address_hash(scru64_realm))
		return false;
	if (scru64_leased_look(&look) && nodes_equal(look.node, held->node))
		return true;
	/* a worker was changing the node, and the slot has one that was not kept */
	(void) scru64_leased_end();
	return held->start_tick < ceiling && ceiling <= held->limit_tick &&
		scru64_leased_begin(held->node, ceiling, held->limit_tick);
}

/* The lease of this postmaster, if there is one that may go on. */
void
resume_lease(Worker *worker)
{
	HeldLease	held;
	bool		resumed;

	StartTransactionCommand();
	resumed = can_resume(&held, scru64_ceiling_hold());
	if (resumed)
		begin_lease(worker, &held);
	else
	{
		/* a worker has kept no lease of the node in the slot: nobody could renew or release it */
		(void) scru64_leased_end();
		keep_lease(&worker->held);
	}
	scru64_ceiling_let_go();
	CommitTransactionCommand();
	if (!resumed)
		return;
	worker->got_lease_at_ms = monotonic_ms();
	ereport(LOG,
			(errmsg("the lease of node %u/%u goes on",
					held.node.node_id, held.node.node_id_size)));
}

/* Ask for a lease, of the node_id_size that the request has. */
static bool
ask_for_lease(Worker *worker, RealmCall *call, LeaseRequest *request, int64 ttl_s,
			  HeldLease *lease)
{
	request->holder = worker->info.holder;
	request->within = scru64_lease_within;
	request->ttl_s = ttl_s;
	request->longest_ttl_s = Max(ttl_s, longest_window_s(&worker->plan));
	*lease = worker->held;
	if (!call_lease(call, request, lease))
		return false;
	hear_clock(worker, call);
	return true;
}

/*
 * A lease of a node that somebody has set on this server by hand: it is kept, so that
 * nobody else gets it as long as it lasts.
 */
static void
shield(Worker *worker, RealmCall *call, HeldLease *lease)
{
	(void) call_renew(call, worker->plan.ttl_s, longest_window_s(&worker->plan), 0, lease);
	realm_problem(call, psprintf("node %u/%u overlaps one that is set on this server by hand",
								 lease->node.node_id, lease->node.node_id_size));
}

bool
obtain_lease(Worker *worker, RealmCall *call)
{
	HeldLease	lease;

	worker->request.node_id_size = worker->plan.size.quiet;
	if (!ask_for_lease(worker, call, &worker->request,
					   window_s(&worker->plan, FIRST_TTL_S), &lease))
		return false;
	plan_new_lease(&worker->plan, monotonic_ms());
	if (!scru64_leased_begin(lease.node, lease.start_tick, lease.limit_tick))
	{
		shield(worker, call, &lease);
		return false;
	}
	worker->got_lease_at_ms = monotonic_ms();
	worker->info.size_changed_at = 0;
	worker->info.size_reason[0] = '\0';
	begin_lease(worker, &lease);
	ereport(LOG,
			(errmsg("this server has leased node %u/%u",
					lease.node.node_id, lease.node.node_id_size),
			 errdetail("The lease is from %s to %s, by the realm's clock.",
					   pstrdup(timestamptz_to_str(lease.granted_at)),
					   pstrdup(timestamptz_to_str(lease.expires_at)))));
	return true;
}

bool
renew_lease(Worker *worker, RealmCall *call)
{
	HeldLease  *held = &worker->held;
	NodeReport	look = {0};
	int64		age_ms = monotonic_ms() - worker->got_lease_at_ms;

	(void) scru64_leased_look(&look);
	if (!call_renew(call, renewal_window_s(&worker->plan, age_ms),
					longest_window_s(&worker->plan), look.last_id, held))
	{
		/* the realm has ended it, so that somebody else may have the node */
		if (call->over || (call->refused && look_around(worker)->left_ms <= 0))
		{
			(void) scru64_leased_end();
			forget_lease(worker);
		}
		return false;
	}
	hear_clock(worker, call);
	scru64_leased_extend(held->node, held->limit_tick);
	worker->plan.lease_pause_ms = MIN_LEASE_PAUSE_MS;
	keep_held(worker);
	return true;
}

/*
 * Give the lease back.  First the slot: what was sent is the end of it, whatever
 * the realm answers.
 */
void
release_lease(Worker *worker)
{
	HeldLease	lease = worker->held;
	uint64		last_id = scru64_leased_end();
	RealmCall	call;

	if (!has_lease(worker))
		return;
	forget_lease(worker);
	set_busy(worker, true);
	realm_open(&call, worker->realm, worker->first_host, RELEASE_TIMEOUT_MS, true);
	log_release(&lease, call_release(&call, &lease, last_id), call.problem);
	realm_close(&call);
	set_busy(worker, false);
}

/* What was asked for is not what is wanted now. */
void
forget_requests(Worker *worker)
{
	worker->request.request[0] = worker->size_request.request[0] = '\0';
	worker->plan.next_lease_ms = 0;
}

/* Have done with a realm: another one, or none, is what the settings say. */
void
leave_realm(Worker *worker)
{
	release_lease(worker);
	memset(&worker->held, 0, sizeof(worker->held));
	forget_requests(worker);
	keep_address(worker);
}

/*
 * Have the sessions go on with the node of the next lease, and give the old one back;
 * or the next one, if they cannot.
 */
static void
hand_over(Worker *worker, RealmCall *call, HeldLease *next)
{
	static const char *const problems[] = {
		[HAND_OVER_ENDED] = "the lease was ended meanwhile",
		[HAND_OVER_TOO_SHORT] = "its lease ends too early",
		[HAND_OVER_AHEAD] = "its lease begins ahead of this server's clock"
	};
	HeldLease	old = worker->held;
	uint64		last_id;
	HandOver	result = scru64_leased_hand_over(next->node, next->start_tick, next->limit_tick,
												 tick_of_time(Max(GetCurrentTimestamp(),
																  UNIX_EPOCH_TIMESTAMP)),
												 allowance_ticks(), &last_id);

	if (result == HAND_OVER_OVERLAPS)
	{
		shield(worker, call, next);
		worker->plan.next_size_ms = monotonic_ms() + MIN_LEASE_PAUSE_MS;
		log_size_problem(worker, call->problem);
		return;
	}
	call->deadline_ms = monotonic_ms() + RELEASE_TIMEOUT_MS;
	call->stopping = true;
	if (result != HAND_OVER_DONE)
	{
		(void) call_release(call, next,
							scru64_compose(next->start_tick, scru64_node_base(next->node) |
										   scru64_max_counter(next->node)));
		log_size_problem(worker, problems[result]);
		return;
	}
	begin_lease(worker, next);
	worker->plan.next_size_ms = 0;
	log_size(worker, &old);
	log_release(&old, call_release(call, &old, last_id), call->problem);
}

/*
 * Go on with a node of another size.  The lease of now, which was just renewed, stays
 * as it is if that is not to be had.
 */
void
change_size(Worker *worker, RealmCall *call, int wanted)
{
	HeldLease	next;

	worker->plan.next_size_ms = monotonic_ms() + SIZE_PAUSE_MS;
	worker->size_request.node_id_size = wanted;
	call->deadline_ms = monotonic_ms() + successor_timeout_ms(&worker->plan);
	if (ask_for_lease(worker, call, &worker->size_request,
					  successor_window_s(&worker->plan), &next))
		hand_over(worker, call, &next);
	else if (!realm_is_disturbed(call))
		log_size_problem(worker, call->problem);
}
