/*-------------------------------------------------------------------------
 *
 * worker.c
 *		The lease worker: it acquires a lease of a node from a realm, activates it for the
 *		sessions, renews it, replaces it by a better one, and releases it.
 *
 * The worker is a library of its own, linked with libpq, so that sessions never load libpq.
 * One background worker per server runs scru64_lease_main(): a loop that decides on the next
 * step (lease_plan.c) and takes it.  Each call of the realm has a short connection of its own
 * (realm_client.c).  Sessions are reached through worker_mailbox.h and leased_slot.h.
 *
 * A step changes two places: the realm's ledger, and shared memory, where the slot of the
 * sessions and a copy of the lease change together.  If a worker ends by an error, the next
 * worker resumes the copy.  If the worker fails between the two changes, or an answer is lost, one
 * node is wasted.  If any process of the server crashes, PostgreSQL makes its shared memory anew,
 * and the current lease is wasted, too.
 *
 * Invariants:
 *
 *	- The worker activates a lease, or raises its limit, only when the realm has answered
 *	  completely, without an error, and without a WARNING that the commit may not have reached
 *	  the realm's synchronous standby.  The limit never falls.
 *	- The worker releases a lease only after it has evicted the node from the sessions' slot,
 *	  and reports the last ID issued.  Once the release is sent, the lease is never used again.
 *	- The lease_id, a secret, is in memory that only processes of this server have mapped,
 *	  never in the data directory, unless a process dumps core there, or
 *	  dynamic_shared_memory_type is mmap.  The worker writes neither the lease_id nor the
 *	  connection string to the log.
 *	- The worker resumes a lease only from the shared memory in which the lease was saved.  A
 *	  data directory may be a copy, so after any start the worker acquires a new lease; also
 *	  after a crash of a process, which starts all processes anew.
 *	- To replace a lease, the worker first acquires the next one.  Sessions generate IDs of
 *	  the next lease after the last ID of the old one; only then is the old one released.
 *	- A lease that the realm does not know any more is used to its end, and never renewed or
 *	  released: it may be from before a failover that has lost it.
 *	- No session uses a standby's lease before recovery has ended; then its IDs begin above
 *	  the ceiling from the WAL.
 *
 * A lease's ticks and timestamps are by the realm's clock, the times of attempts by the
 * monotonic clock, and the times of attempts in scru64_lease() by this server's clock.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "pg_compat.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "common/hashfn.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "postmaster/postmaster.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "ceiling/ceiling.h"
#include "clock.h"
#include "realm/worker/lease_plan.h"
#include "realm/worker/realm_client.h"
#include "settings.h"
#include "type/id_time.h"

#define USECS_PER_MSEC		1000

/* Between two messages of a standing failure */
#define LOG_PAUSE_MS		60000

PG_MODULE_MAGIC;

extern PGDLLEXPORT void scru64_lease_main(void);

typedef struct Worker
{
	LeaseInfo	info;			/* as published to sessions */
	HeldLease	held;			/* the current lease, if has_lease() */
	Plan		plan;
	bool		size_failed;	/* could the node_id_size not be changed? */
	LeaseRequest request;		/* the last request for a lease */
	char	   *conninfo;		/* of the realm of the lease */
	int			first_host;		/* index of the realm's host to call first */
	int64		logged_at_ms;	/* the last failure, by the monotonic clock */
} Worker;

/* A node as the arguments of %u/%u */
#define NODE_ARGS(lease)	(lease)->node.node_id, (lease)->node.node_id_size

static bool
has_lease(const Worker *worker)
{
	return worker->held.lease_id[0] != '\0';
}

static void release_lease(Worker *worker);

/*
 * The state: update, publish and log it
 */

/* Update the plan to the present state, as the basis of all decisions. */
static Plan *
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
		node_size_look(&plan->size, plan->now_ms, report.counts[NODE_SATURATED],
					   report.counts[NODE_USED]);
	return plan;
}

/* Publish the present state to all sessions. */
static void
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

static void
publish_busy(Worker *worker, bool busy)
{
	worker->info.busy = busy;
	publish_info(worker);
	pgstat_report_activity(busy ? STATE_RUNNING : STATE_IDLE,
						   busy ? "talking with the realm" : NULL);
}

static void
forget_failures(Worker *worker)
{
	worker->info.failures = 0;
	worker->info.last_error[0] = '\0';
	worker->info.last_error_at = 0;
}

/* Note a failure.  Log the first one, and then one once in LOG_PAUSE_MS. */
static void
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
			 errmsg("this server has not acquired a lease: %s", info->last_error) :
			 worker->held.renewal_refused ?
			 errmsg("this server has not acquired another lease: %s", info->last_error) :
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

/*
 * Acquire: have the realm grant a lease
 */

/* Acquire a lease of a node with this node_id_size.  No session uses it yet. */
static bool
acquire_lease(Worker *worker, RealmCall *call, int node_id_size, HeldLease *lease)
{
	realm_set_request(&worker->request, node_id_size, plan_window_s(&worker->plan),
					  worker->info.holder, scru64_lease_within);
	*lease = worker->held;
	/* even if recovery has just ended: sessions get the lease once the ceiling is loaded */
	lease->is_standby_lease = !worker->plan.has_ceiling;
	lease->renewal_refused = false;
	if (!realm_lease(call, &worker->request, lease))
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
renew_unused(Worker *worker, RealmCall *call, HeldLease *lease)
{
	(void) realm_renew(call, plan_window_s(&worker->plan), 0, lease);
	worker->plan.next_size_ms = monotonic_ms() + MIN_LEASE_PAUSE_MS;
	return realm_problem(call, psprintf("node %u/%u overlaps one that is configured on this server",
										NODE_ARGS(lease)));
}

/*
 * Activate: let sessions generate IDs of a lease
 */

/* From here on the worker renews this lease. */
static void
hold_lease(Worker *worker, const HeldLease *lease)
{
	NodeReport	report = {0};

	worker->held = *lease;
	(void) scru64_leased_report(&report);
	node_size_begin(&worker->plan.size, (int) lease->node.node_id_size, monotonic_ms(),
					report.counts[NODE_SATURATED], report.counts[NODE_USED]);
	publish_info(worker);
}

/*
 * Activate a lease, even if its IDs cannot be above earlier ones.  On a standby, only save the
 * lease, until recovery has ended.
 */
static bool
activate_lease(Worker *worker, RealmCall *call, HeldLease *lease)
{
	uint64		back_from = 0;

	(void) scru64_leased_evict();
	if (lease->is_standby_lease)
		scru64_leased_update(lease);
	else if (!scru64_leased_activate(lease, refresh_plan(worker)->clock_tick, &back_from))
		return renew_unused(worker, call, lease);
	worker->info.size_changed_at = 0;
	worker->info.size_reason[0] = '\0';
	hold_lease(worker, lease);
	ereport(LOG,
			(lease->is_standby_lease ?
			 errmsg("this standby has leased node %u/%u for its promotion", NODE_ARGS(lease)) :
			 errmsg("this server has leased node %u/%u", NODE_ARGS(lease)),
			 errdetail("The lease is from %s to %s, by the realm's clock.",
					   pstrdup(timestamptz_to_str(lease->granted_at)),
					   pstrdup(timestamptz_to_str(lease->expires_at)))));
	if (back_from != 0)
		ereport(LOG,
				(errmsg("IDs and the watermark of this server go back from %s to %s",
						pstrdup(timestamptz_to_str(time_of_tick(back_from))),
						pstrdup(timestamptz_to_str(time_of_tick(lease->start_tick)))),
				 errdetail("They were ahead of the clock by more than twice \"%s\" (%d ms).",
						   ALLOWANCE_SETTING, scru64_rollback_allowance),
				 errhint("Readers of new rows miss rows, unless their positions are set back, too.")));
	return true;
}

/* Neither sessions nor the next worker have the lease any more.  Returns its last ID, or 0. */
static uint64
evict_lease(Worker *worker)
{
	uint64		last_id = scru64_leased_evict();

	worker->held.lease_id[0] = '\0';
	publish_info(worker);
	return last_id;
}

/*
 * Recovery has ended: activate the standby's lease, above all IDs of the old primary.  The
 * ceiling is locked meanwhile: scru64_set_ceiling() runs before this, or after, and evicts the
 * node.
 */
static void
activate_standby_lease(Worker *worker)
{
	HeldLease	lease = worker->held;
	MemoryContext context = CurrentMemoryContext;
	bool		in_window;
	bool		activated;
	uint64		start;

	lease.is_standby_lease = false;
	StartTransactionCommand();
	start = Max(lease.start_tick, scru64_ceiling_lock());
	in_window = start < lease.limit_tick;
	activated = in_window && scru64_leased_activate_above(&lease, start);
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
		hold_lease(worker, &lease);
		return;
	}
	/* no other server has a node that overlaps a configured one until the lease ends */
	if (in_window)
		(void) evict_lease(worker);
	else
		release_lease(worker);
	worker->plan.next_attempt_ms = 0;
}

/*
 * Resume: a worker has failed, and the next one takes up its lease
 */

/* The sessions still have the lease; a standby's lease may be activated next. */
static void
resume_lease(Worker *worker)
{
	HeldLease	lease;

	if (scru64_leased_resume(&lease) && lease.conninfo_hash == worker->held.conninfo_hash)
	{
		hold_lease(worker, &lease);
		ereport(LOG,
				(errmsg("the lease of node %u/%u was resumed", NODE_ARGS(&lease))));
	}
	else
		(void) evict_lease(worker);
}

/*
 * Renew: move the end of the lease
 */

/*
 * The limit rises after the realm has committed.  If the realm has ended or lost the lease, it
 * will never renew the lease; but no other server has the lease's IDs while the window is open,
 * so the sessions use the lease until then.
 */
static bool
renew_lease(Worker *worker, RealmCall *call)
{
	HeldLease  *held = &worker->held;
	NodeReport	report = {0};
	bool		renewed;

	(void) scru64_leased_report(&report);
	renewed = realm_renew(call, plan_window_s(&worker->plan), report.last_id, held);
	if (renewed)
		worker->plan.lease_pause_ms = MIN_LEASE_PAUSE_MS;
	else if (call->lease_over || (call->refused && plan_has_expired(refresh_plan(worker))))
	{
		held->renewal_refused = true;
		ereport(LOG,
				(errmsg("the lease of node %u/%u is not renewed any more: %s",
						NODE_ARGS(held), call->problem),
				 errdetail("It is used until it ends at %s, by the realm's clock, or this server has acquired another one.",
						   timestamptz_to_str(held->expires_at))));
	}
	scru64_leased_update(held);
	return renewed;
}

/*
 * Replace: have the sessions go from a lease to the next one
 */

/* The last ID to report for a lease without IDs */
static uint64
start_id(const HeldLease *lease)
{
	return scru64_compose(lease->start_tick, scru64_node_base(lease->node) |
						  scru64_max_counter(lease->node));
}

/* Release one of two leases over the open connection, even if the worker has to stop. */
static bool
release_one(RealmCall *call, const HeldLease *lease, uint64 last_id)
{
	call->deadline_ms = monotonic_ms() + RELEASE_TIMEOUT_MS;
	call->stopping = true;
	return realm_release(call, lease, last_id);
}

static void
log_release(const HeldLease *lease, bool done, const char *problem)
{
	ereport(LOG,
			(done ?
			 errmsg("the lease of node %u/%u was released", NODE_ARGS(lease)) :
			 errmsg("the lease of node %u/%u was not released: %s", NODE_ARGS(lease), problem),
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

/* Sessions generate IDs of the next lease, above the old one's last_id: release the old one. */
static void
finish_replacement(Worker *worker, RealmCall *call, const HeldLease *next, uint64 last_id)
{
	HeldLease	old = worker->held;
	const char *reason;

	hold_lease(worker, next);
	reason = old.renewal_refused ? "its lease was not renewed any more" :
		set_size_reason(worker, &old);
	ereport(LOG,
			(errmsg("the node of this server is %u/%u now, and was %u/%u: %s",
					NODE_ARGS(next), NODE_ARGS(&old), reason)));
	if (!old.renewal_refused)
		log_release(&old, release_one(call, &old, last_id), call->problem);
}

/*
 * Acquire the next lease, have sessions generate its IDs, above all IDs of the old lease, and
 * then release the old one, unless its renewal was refused.  If the next lease's IDs cannot be
 * above the old one's, release the next lease instead; but if the old lease is exhausted and
 * cannot be renewed, activate the next lease all the same.
 */
static bool
replace_lease(Worker *worker, RealmCall *call, int node_id_size)
{
	static const char *const problems[] = {
		[REPLACE_EVICTED] = "the current node was evicted meanwhile",
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
		return renew_unused(worker, call, &next);
	if (worker->held.renewal_refused && plan_is_exhausted(refresh_plan(worker)))
		return activate_lease(worker, call, &next);
	(void) release_one(call, &next, start_id(&next));
	return realm_problem(call, problems[result]);
}

/*
 * Release: end the lease before its time
 */

/*
 * The node is evicted first, so that sessions issue no ID above the reported one, whatever the
 * realm answers.
 */
static void
release_lease(Worker *worker)
{
	HeldLease	lease = worker->held;
	bool		is_held = has_lease(worker);
	bool		ends_by_itself = lease.renewal_refused || plan_has_expired(refresh_plan(worker));
	uint64		last_id = evict_lease(worker);
	RealmCall	call;

	if (!is_held || ends_by_itself)
		return;
	publish_busy(worker, true);
	realm_open(&call, worker->conninfo, worker->first_host, RELEASE_TIMEOUT_MS, true);
	log_release(&lease,
				realm_release(&call, &lease, lease.is_standby_lease ? start_id(&lease) : last_id),
				call.problem);
	realm_close(&call);
	publish_busy(worker, false);
}

/*
 * Settings
 */

/* Read the name under which the realm lists this server, from the next lease on. */
static void
read_holder(Worker *worker)
{
	const char *name = *scru64_lease_holder != '\0' ? scru64_lease_holder : cluster_name;
	char		host[MAX_HOLDER_LEN / 2] = "";

	if (gethostname(host, sizeof(host) - 1) != 0)
		strlcpy(host, "unknown", sizeof(host));
	if (*name == '\0')
		name = psprintf("%s:%d", host, PostPortNumber);
	scru64_mailbox_copy_text(worker->info.holder, name, sizeof(worker->info.holder));
}

static void
read_settings(Worker *worker)
{
	Plan	   *plan = &worker->plan;

	read_holder(worker);
	plan->ttl_s = scru64_lease_ttl;
	plan->allowance_ms = scru64_rollback_allowance;
	plan->size.quiet = scru64_lease_node_id_size;
	plan->size.least = Min(scru64_lease_node_id_size, scru64_lease_node_id_size_min);
}

/* Note the connection string: from here on the lease is from the realm it leads to. */
static void
note_conninfo(Worker *worker)
{
	if (worker->conninfo != NULL)
		pfree(worker->conninfo);
	worker->conninfo = MemoryContextStrdup(TopMemoryContext, scru64_realm);
	worker->held.conninfo_hash = hash_bytes_extended((const unsigned char *) scru64_realm,
													 (int) strlen(scru64_realm), 0);
}

/*
 * Release the lease for one that may be acquired at once.  Sessions that have no ID meanwhile
 * learn so before the release, and wait.
 */
static void
release_for_next(Worker *worker)
{
	worker->plan.next_attempt_ms = worker->plan.next_lease_ms = 0;
	release_lease(worker);
}

/* Release the lease, because the next one is from another realm, or there is to be none. */
static void
leave_realm(Worker *worker)
{
	release_for_next(worker);
	memset(&worker->held, 0, sizeof(worker->held));
	worker->request.lease_id[0] = '\0';
	note_conninfo(worker);
}

/*
 * Read the settings again.  The lease goes on if a changed connection string leads to the same
 * realm, or to none.
 */
static void
reload(Worker *worker)
{
	const char *old_realm = psprintf("%s\n%s", scru64_realm, scru64_realm_id);
	const char *old_within = pstrdup(scru64_lease_within);
	bool		other_realm;
	bool		other_within;

	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
	read_settings(worker);
	other_realm = strcmp(old_realm, psprintf("%s\n%s", scru64_realm, scru64_realm_id)) != 0;
	other_within = strcmp(old_within, scru64_lease_within) != 0;
	if (other_realm || other_within ||
		(has_lease(worker) && plan_wanted_size(refresh_plan(worker)) != worker->plan.size.current))
	{
		forget_failures(worker);
		worker->plan.next_size_ms = 0;
	}
	if (*scru64_realm == '\0' ||
		(has_lease(worker) && *scru64_realm_id != '\0' &&
		 pg_strcasecmp(worker->held.realm_id, scru64_realm_id) != 0))
		leave_realm(worker);
	else if (other_within)
		release_for_next(worker);
	/* the reason why attempts have failed may be gone */
	worker->plan.next_attempt_ms = 0;
	publish_info(worker);
}

/*
 * Calls of the realm
 */

/*
 * The realm_id of the realm to lease from; empty: any.  If scru64.realm_id is not set, it is
 * the realm of the current lease, until the lease has expired.
 */
static const char *
wanted_realm_id(Worker *worker)
{
	if (*scru64_realm_id != '\0')
		return scru64_realm_id;
	return strcmp(worker->conninfo, scru64_realm) == 0 && refresh_plan(worker)->remaining_ms > 0 ?
		worker->held.realm_id : "";
}

/*
 * Ask the realm for its realm_id.  Returns false if it is not the realm to lease from.  If the
 * worker holds a lease of another realm, it releases the lease.
 */
static bool
enter_realm(Worker *worker, RealmCall *call)
{
	HeldLease  *held = &worker->held;
	const char *wanted = wanted_realm_id(worker);
	char		realm_id[UUID_TEXT_LEN + 1];

	if (!realm_get_id(call, realm_id))
		return false;
	call->other_realm = *wanted != '\0' && pg_strcasecmp(realm_id, wanted) != 0;
	if (call->other_realm)
		return realm_problem(call, psprintf("this is realm %s, and not %s", realm_id, wanted));
	if (strcmp(realm_id, held->realm_id) != 0)
	{
		if (has_lease(worker))
		{
			leave_realm(worker);
			publish_busy(worker, true);
		}
		if (*scru64_realm_id == '\0')
			ereport(LOG,
					(errmsg("the realm of this server is %s", realm_id),
					 errhint("Set \"%s\" to it, and no other realm is taken for it.",
							 "scru64.realm_id")));
		strlcpy(held->realm_id, realm_id, sizeof(held->realm_id));
	}
	note_conninfo(worker);
	return true;
}

/* Acquire a lease, renew the current one, or replace one whose renewal was refused. */
static bool
acquire_or_renew(Worker *worker, RealmCall *call)
{
	const Plan *plan = &worker->plan;
	HeldLease	lease;

	if (!has_lease(worker))
		return acquire_lease(worker, call, plan->size.quiet, &lease) &&
			activate_lease(worker, call, &lease);
	if (!worker->held.renewal_refused && renew_lease(worker, call))
		return true;
	return worker->held.renewal_refused && monotonic_ms() >= plan->next_lease_ms &&
		replace_lease(worker, call, plan->size.current);
}

/* Replace the lease by one with the node_id_size that the load needs, if it is time to. */
static void
follow_load(Worker *worker, RealmCall *call)
{
	Plan	   *plan = refresh_plan(worker);
	LeaseInfo  *info = &worker->info;
	int			wanted = plan_wanted_size(plan);

	if (wanted == plan->size.current)
	{
		if (worker->size_failed)
			info->size_reason[0] = '\0';
		worker->size_failed = false;
		return;
	}
	if (plan->now_ms < plan->next_size_ms)
		return;
	plan->next_size_ms = plan->now_ms + SIZE_PAUSE_MS;
	call->deadline_ms = plan->now_ms + plan_successor_timeout_ms(plan);
	if (replace_lease(worker, call, wanted))
		plan->next_size_ms = 0;
	else if (!realm_is_disturbed(call))
	{
		worker->size_failed = true;
		snprintf(info->size_reason, LEASE_TEXT_LEN, "no node of node_id_size %d instead of %d: %s",
				 wanted, plan->size.current, call->problem);
		ereport(LOG,
				(errmsg("this server has acquired %s", info->size_reason),
				 errdetail("The lease of node %u/%u goes on.", NODE_ARGS(&worker->held))));
	}
}

static void
call_realm(Worker *worker)
{
	RealmCall	call;
	bool		done;
	Plan	   *plan;

	publish_busy(worker, true);
	realm_open(&call, scru64_realm, worker->first_host, CALL_TIMEOUT_MS, false);
	done = enter_realm(worker, &call) && acquire_or_renew(worker, &call);
	/* a host that failed may be a former primary, which waits for its standby without end */
	worker->first_host = done ? call.host : call.host + 1;
	if (done)
	{
		follow_load(worker, &call);
		forget_failures(worker);
		worker->info.renewed_at = GetCurrentTimestamp();
	}
	else if (!realm_is_disturbed(&call))
		note_failure(worker, &call);
	realm_close(&call);
	plan = refresh_plan(worker);
	plan_attempt(plan, done, pg_prng_uint32(&pg_global_prng_state));
	publish_busy(worker, false);
}

/*
 * The loop
 */

/* Sleep until there is something to do, or a signal or a session wakes the worker. */
static void
sleep_a_while(Worker *worker)
{
	int64		until_ms = plan_sleep_until_ms(&worker->plan);

	if (WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
				  (long) Max(until_ms - monotonic_ms(), 0), PG_WAIT_EXTENSION) & WL_LATCH_SET)
	{
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		/* publish only news: waiting sessions wake up, and call again */
		if (!ConfigReloadPending && scru64_mailbox_was_called() &&
			plan_call(refresh_plan(worker)))
			publish_info(worker);
	}
}

/* Returns false if the ceiling has no page. */
static bool
load_ceiling_in_transaction(void)
{
	MemoryContext context = CurrentMemoryContext;
	bool		loaded;

	StartTransactionCommand();
	loaded = scru64_ceiling_load_if_written();
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
	return loaded;
}

/*
 * Take one step.  The worker tests for signals before each step, because the step before may
 * have reset the latch after a signal had set it.
 */
static void
work(Worker *worker)
{
	Plan	   *plan;

	if (ConfigReloadPending)
	{
		reload(worker);
		return;
	}
	if (*scru64_realm == '\0')
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH, -1, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		return;
	}
	plan = refresh_plan(worker);
	if (!plan->in_recovery && !plan->has_ceiling)
		plan->has_ceiling = load_ceiling_in_transaction();
	switch (plan_next_step(plan))
	{
		case STEP_SLEEP:
			sleep_a_while(worker);
			break;
		case STEP_ACTIVATE:
			activate_standby_lease(worker);
			break;
		case STEP_RELEASE:
			release_lease(worker);
			break;
		case STEP_CALL:
			call_realm(worker);
			break;
	}
}

void
scru64_lease_main(void)
{
	Worker	   *worker = MemoryContextAllocZero(TopMemoryContext, sizeof(Worker));
	MemoryContext loop_context;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	/* there is no query here to cancel */
	pqsignal(SIGINT, PG_SIG_IGN);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);

	note_conninfo(worker);
	read_settings(worker);
	worker->info.worker_pid = MyProcPid;
	worker->plan.lease_pause_ms = MIN_LEASE_PAUSE_MS;
	resume_lease(worker);

	loop_context = AllocSetContextCreate(TopMemoryContext, "scru64 lease",
										 ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(loop_context);
	/* the postmaster starts the worker of a standby only with the server: it waits for a realm */
	while (!ShutdownRequestPending &&
		   (*scru64_realm != '\0' || MyBgworkerEntry->bgw_restart_time != BGW_NEVER_RESTART))
	{
		MemoryContextReset(loop_context);
		CHECK_FOR_INTERRUPTS();
		work(worker);
	}
	/* the next worker need not wait as this one may have to */
	release_for_next(worker);
	/* 1: the postmaster restarts a worker registered at preload */
	proc_exit(ShutdownRequestPending ? 1 : 0);
}
