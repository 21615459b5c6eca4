/*-------------------------------------------------------------------------
 *
 * holding.c
 *		The lease that the worker holds: get, resume, renew, change and release it.
 *
 * Part of the lease worker.  Each keeps together what the realm has granted, what
 * the sessions may use, and what is kept for the next worker.  The order in which
 * that is done is what makes it safe.
 *
 * Invariants: those of scru64_lease.c; here they are kept.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "postmaster/interrupt.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "../ceiling.h"
#include "../id_time.h"
#include "../settings.h"
#include "lease_worker.h"

/* Milliseconds */
#define RELEASE_TIMEOUT		2500
#define SIZE_PAUSE			60000	/* after a node of another size was not to be had */

static void
hear_clock(Worker *worker, TimestampTz realm_clock)
{
	worker->realm_clock = realm_clock;
	worker->heard_at = monotonic_ms();
}

/* The realm's clock now, as far as is known; in the year 2000 if it is not. */
TimestampTz
realm_now(Worker *worker)
{
	return worker->realm_clock + (monotonic_ms() - worker->heard_at) * 1000;
}

/* The lease is over: it is in nobody's memory any more. */
static void
forget_lease(Worker *worker)
{
	worker->held.lease_id[0] = '\0';
	keep_lease(&worker->held);
	publish(worker);
}

/*
 * For how many seconds to ask: the setting says for how many at most.  Besides, for
 * what a node's IDs may be ahead of the clock: a busy one reaches the end of the window
 * by so much earlier.
 */
static int64
window(int64 seconds)
{
	return Min(seconds, (int64) scru64_lease_ttl) + scru64_rollback_allowance / 1000 + 1;
}

/*
 * The most that will be asked for.  A realm that was promoted waits for so long: it
 * may have lost a renewal.
 */
static int64
longest_window(void)
{
	return window(scru64_lease_ttl);
}

void
keep_setting(char **kept, const char *value)
{
	if (*kept != NULL)
		pfree(*kept);
	*kept = MemoryContextStrdup(TopMemoryContext, value);
}

/* Where a lease is from, so that it is not taken for one of another realm. */
uint64
address_hash(const char *realm)
{
	return hash_bytes_extended((const unsigned char *) realm, (int) strlen(realm), 0);
}

/*
 * Is this the realm that this server is to have its lease from?  *moved if it is,
 * but the lease is still from another one.
 */
bool
check_realm(Worker *worker, PGconn *conn, int64 deadline, RealmAnswer *answer,
			bool *moved)
{
	HeldLease  *held = &worker->held;
	char		realm_id[UUID_TEXT_LEN + 1];
	bool		same_address = strcmp(worker->realm, scru64_realm) == 0;
	const char *wanted = *worker->realm_id != '\0' ? worker->realm_id :
		same_address ? held->realm_id : "";

	if (!call_realm_id(conn, deadline, answer, realm_id))
		return false;
	if (*wanted != '\0' && pg_strcasecmp(realm_id, wanted) != 0)
	{
		snprintf(answer->problem, LEASE_TEXT_LEN, "this is realm %s, and not %s",
				 realm_id, wanted);
		return false;
	}
	*moved = has_lease(worker) && strcmp(realm_id, held->realm_id) != 0;
	if (*moved)
		return false;
	if (*worker->realm_id == '\0' && strcmp(realm_id, held->realm_id) != 0)
		ereport(LOG,
				(errmsg("the realm of this server is %s", realm_id),
				 errhint("Set \"%s\" to it, and no other realm is taken for it.",
						 "scru64.realm_id")));
	strlcpy(held->realm_id, realm_id, sizeof(held->realm_id));
	held->address = address_hash(scru64_realm);
	if (!same_address)
		keep_setting(&worker->realm, scru64_realm);
	return true;
}

/*
 * Keep the lease for a worker to come, unless scru64_set_ceiling() has just ended it:
 * that has removed what was kept before.
 */
static void
keep_held(Worker *worker)
{
	HeldLease	none = {0};
	LeaseLook	look;

	keep_lease(&worker->held);
	if (!scru64_leased_look(&look))
		keep_lease(&none);
}

/* Begin with a lease that the sessions have. */
static void
begin_lease(Worker *worker, const HeldLease *lease)
{
	LeaseLook	look = {0};

	worker->held = *lease;
	keep_held(worker);
	(void) scru64_leased_look(&look);
	node_size_begin(&worker->size, (int) lease->node.node_id_size, monotonic_ms(),
					look.saturated, look.used);
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
	LeaseLook	look;

	if (!recall_lease(held) || held->lease_id[0] == '\0' ||
		held->address != address_hash(scru64_realm))
		return false;
	if (scru64_leased_look(&look) &&
		look.node.node_id == held->node.node_id &&
		look.node.node_id_size == held->node.node_id_size)
		return true;
	/* of a worker that was changing it */
	(void) scru64_leased_end();
	return held->start < ceiling && ceiling <= held->limit &&
		scru64_leased_begin(held->node, ceiling, held->limit);
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
		/* of a worker that has left nothing: nobody could renew or release it */
		(void) scru64_leased_end();
		keep_lease(&worker->held);
	}
	scru64_ceiling_let_go();
	CommitTransactionCommand();
	if (!resumed)
		return;
	worker->got_lease_at = monotonic_ms();
	ereport(LOG,
			(errmsg("the lease of node %u/%u goes on",
					held.node.node_id, held.node.node_id_size)));
}

/*
 * A lease of a node that somebody has set on this server by hand: it is kept, so that
 * nobody else gets it as long as it lasts.
 */
static void
shield(PGconn *conn, int64 deadline, RealmAnswer *answer, HeldLease *lease)
{
	TimestampTz clock;

	(void) call_renew(conn, deadline, answer, scru64_lease_ttl, longest_window(), 0,
					  lease, &clock);
	snprintf(answer->problem, LEASE_TEXT_LEN,
			 "node %u/%u overlaps one that is set on this server by hand",
			 lease->node.node_id, lease->node.node_id_size);
}

bool
take_lease(Worker *worker, PGconn *conn, int64 deadline, RealmAnswer *answer)
{
	LeaseRequest *request = &worker->request;
	HeldLease	lease = worker->held;
	TimestampTz clock;

	request->node_id_size = scru64_lease_node_id_size;
	request->holder = worker->info.holder;
	request->within = worker->within;
	request->ttl = window(FIRST_TTL);
	request->longest_ttl = longest_window();
	if (!call_lease(conn, deadline, answer, request, &lease, &clock))
		return false;
	hear_clock(worker, clock);
	worker->next_lease = monotonic_ms() + worker->lease_pause;
	worker->lease_pause = Min(2 * worker->lease_pause,
							 Max(MIN_LEASE_PAUSE, (int64) scru64_lease_ttl * 1000 / 16));
	if (!scru64_leased_begin(lease.node, lease.start, lease.limit))
	{
		shield(conn, deadline, answer, &lease);
		return false;
	}
	worker->got_lease_at = monotonic_ms();
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
renew_lease(Worker *worker, PGconn *conn, int64 deadline, RealmAnswer *answer)
{
	LeaseLook	look = {0};
	int64		age = (monotonic_ms() - worker->got_lease_at) / 1000;
	TimestampTz clock;

	(void) scru64_leased_look(&look);
	if (!call_renew(conn, deadline, answer, window(Max(FIRST_TTL, age)),
					longest_window(), look.last_id, &worker->held, &clock))
	{
		/* the realm has ended it, so that somebody else may have the node */
		if (answer->over || (answer->refused && realm_now(worker) >= worker->held.expires_at))
		{
			(void) scru64_leased_end();
			forget_lease(worker);
		}
		return false;
	}
	hear_clock(worker, clock);
	scru64_leased_extend(worker->held.node, worker->held.limit);
	worker->lease_pause = MIN_LEASE_PAUSE;
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
	int64		deadline = monotonic_ms() + RELEASE_TIMEOUT;
	RealmAnswer answer;
	PGconn	   *conn;
	bool		done;

	if (!has_lease(worker))
		return;
	forget_lease(worker);
	set_busy(worker, true);
	conn = realm_connect(worker->realm, deadline, true);
	done = call_release(conn, deadline, true, &answer, &lease, last_id);
	PQfinish(conn);
	log_release(&lease, done, answer.problem);
	set_busy(worker, false);
}

/* Has something come up that has the worker leave off? */
static bool
is_disturbed(void)
{
	return ShutdownRequestPending || ConfigReloadPending;
}

/*
 * Go on with a node of another size.  The lease of now, which was just renewed, stays
 * as it is if that is not to be had.
 */
void
change_size(Worker *worker, PGconn *conn, int wanted)
{
	static const char *const problems[] = {
		[HAND_OVER_ENDED] = "the lease was ended meanwhile",
		[HAND_OVER_TOO_SHORT] = "its lease ends too early",
		[HAND_OVER_AHEAD] = "its lease begins ahead of this server's clock"
	};
	LeaseRequest *request = &worker->size_request;
	HeldLease	old = worker->held;
	HeldLease	next = old;
	int64		left = Max(old.expires_at - realm_now(worker), 0) / 1000;
	int64		deadline = monotonic_ms() + Min(CALL_TIMEOUT, left / 3);
	RealmAnswer answer;
	TimestampTz clock;
	HandOver	result;
	uint64		last_id;
	bool		done;

	worker->next_size = monotonic_ms() + SIZE_PAUSE;
	request->node_id_size = wanted;
	request->holder = worker->info.holder;
	request->within = worker->within;
	request->ttl = Max(left / 1000, FIRST_TTL) + window(0);
	request->longest_ttl = Max(request->ttl, longest_window());
	if (!call_lease(conn, deadline, &answer, request, &next, &clock))
	{
		if (!is_disturbed())
			log_size_problem(worker, wanted, answer.problem);
		return;
	}
	hear_clock(worker, clock);
	result = scru64_leased_hand_over(next.node, next.start, next.limit,
									 tick_of_time(GetCurrentTimestamp()), allowance_ticks(), &last_id);
	if (result == HAND_OVER_OVERLAPS)
	{
		shield(conn, deadline, &answer, &next);
		worker->next_size = monotonic_ms() + MIN_LEASE_PAUSE;
		log_size_problem(worker, wanted, answer.problem);
		return;
	}
	deadline = monotonic_ms() + RELEASE_TIMEOUT;
	if (result != HAND_OVER_DONE)
	{
		(void) call_release(conn, deadline, true, &answer, &next,
							scru64_compose(next.start, scru64_node_base(next.node) |
										   scru64_max_counter(next.node)));
		log_size_problem(worker, wanted, problems[result]);
		return;
	}
	begin_lease(worker, &next);
	worker->next_size = 0;
	log_size(worker, &old);
	done = call_release(conn, deadline, true, &answer, &old, last_id);
	log_release(&old, done, answer.problem);
}
