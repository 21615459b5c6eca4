/*-------------------------------------------------------------------------
 *
 * scru64_lease.c
 *		The lease worker: leases a node from a realm, renews and releases it.
 *
 * A library of its own, linked with libpq, so that sessions never load that.  One
 * background worker per server runs lease_worker_main(); it talks with the realm
 * over one short connection a call, and publishes what it gets through lease.h.
 *
 * Invariants:
 *
 *	- What is published was answered completely, without an error and without a
 *	  WARNING: a commit that has not reached the realm's standby warns.
 *	- The limit of a lease is raised after the realm's commit, and never lowered.
 *	- A lease is released only after its slot was taken from the sessions, with the
 *	  last ID that left.  Once a release was sent, the lease is dead.
 *	- The lease_id, which is a secret, is in this process and in a shared memory
 *	  object of the machine, never in the data directory.
 *	- A lease goes on only under the same postmaster.  A data directory may be a
 *	  copy: any other start takes a new lease.
 *	- Where a node of another size is better, it is leased first, then the sessions go
 *	  on with it, after the last ID of the old one, and then that is released.
 *
 * Times are of three kinds: ticks and timestamps are of the realm's clock; when to
 * try again is by the monotonic clock; what the view shows of attempts is by this
 * server's clock.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "fmgr.h"
#include "../pg_compat.h"

#include "access/xact.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "postmaster/postmaster.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "../settings.h"
#include "../tick_time.h"
#include "node_size.h"
#include "realm_calls.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void lease_worker_main(Datum arg);

/* Milliseconds */
#define CALL_TIMEOUT		15000	/* longer than the realm's lock_timeout */
#define RELEASE_TIMEOUT		2500
#define MIN_PAUSE			1000
#define MAX_PAUSE			60000
#define MIN_LEASE_PAUSE		10000	/* between two new leases */
#define SIZE_PAUSE			60000	/* after a node of another size was not to be had */
#define LOG_PAUSE			60000	/* between two messages of a standing failure */

/* Seconds: what the first lease is for, and every renewal at least. */
#define FIRST_TTL			120

/* What the worker has to remember. */
static struct
{
	LeaseInfo	info;
	HeldLease	held;
	NodeSize	size;			/* of its node */
	LeaseRequest request;		/* a lease that was asked for, */
	LeaseRequest size_request;	/* and one of another size */
	char	   *realm;			/* where the lease is from */
	char	   *realm_id;		/* the settings that it is by */
	char	   *within;
	TimestampTz realm_clock;	/* as last heard; 0: not yet */
	int64		heard_at;		/* then, monotonic ms */
	int64		got_lease_at;	/* monotonic ms, as those below */
	int64		next_attempt;
	int64		next_lease;		/* no new lease before this, */
	int64		next_size;		/* and none of another size */
	int64		lease_pause;
	int64		last_logged;
	int64		last_called;	/* by a session */
}			worker;

static bool
has_lease(void)
{
	return worker.held.lease_id[0] != '\0';
}

/*
 * What is said
 */

static void
publish(void)
{
	HeldLease  *held = &worker.held;

	worker.info.node = has_lease() ? held->node : (Scru64Node) {0};
	worker.info.granted_at = held->granted_at;
	worker.info.expires_at = held->expires_at;
	scru64_lease_set_info(&worker.info);
}

static void
set_busy(bool busy)
{
	worker.info.busy = busy;
	publish();
	pgstat_report_activity(busy ? STATE_RUNNING : STATE_IDLE,
						   busy ? "talking with the realm" : NULL);
}

/* Keep a message on one line, and in ASCII: databases may have other encodings. */
static void
keep_message(char *kept, const char *message)
{
	strlcpy(kept, message, LEASE_TEXT_LEN);
	for (char *c = kept; *c != '\0'; c++)
	{
		if (*c == '\n' || *c == '\r' || *c == '\t')
			*c = c[1] == '\0' ? '\0' : ' ';
		else if (IS_HIGHBIT_SET(*c))
			*c = '?';
	}
}

/* Something has failed; what is palloc'd is freed with the attempt. */
static void
failed(const char *what)
{
	worker.info.failures++;
	worker.info.last_error_at = GetCurrentTimestamp();
	keep_message(worker.info.last_error, what);
	publish();
	if (worker.info.failures > 1 && monotonic_ms() - worker.last_logged < LOG_PAUSE)
		return;
	worker.last_logged = monotonic_ms();
	ereport(LOG,
			(errmsg("the realm has not given this server a lease: %s",
					worker.info.last_error),
			 errdetail("%ld attempts have failed since the last success.",
					   (long) worker.info.failures),
			 errhint("It is tried again and again. See the view %s.", "scru64_lease")));
}

static void
forget_failures(void)
{
	worker.info.failures = 0;
	worker.info.last_error[0] = '\0';
	worker.info.last_error_at = 0;
}

static void
log_release(const HeldLease *lease, bool done, const char *problem)
{
	if (done)
		ereport(LOG,
				(errmsg("the lease of node %u/%u was given back",
						lease->node.node_id, lease->node.node_id_size)));
	else
		ereport(LOG,
				(errmsg("the lease of node %u/%u was not given back: %s",
						lease->node.node_id, lease->node.node_id_size, problem),
				 errdetail("It ends by itself at %s, by the realm's clock.",
						   timestamptz_to_str(lease->expires_at))));
}

/*
 * The lease
 */

static void
hear_clock(TimestampTz realm_clock)
{
	worker.realm_clock = realm_clock;
	worker.heard_at = monotonic_ms();
}

/* The realm's clock now, as far as is known. */
static TimestampTz
realm_now(void)
{
	return worker.realm_clock + (monotonic_ms() - worker.heard_at) * 1000;
}

/* The lease is over: it is in nobody's memory any more. */
static void
forget_lease(void)
{
	worker.held.lease_id[0] = '\0';
	keep_lease(&worker.held);
	publish();
}

/* A lease of seconds, but not for longer than the setting says. */
static int64
at_most_ttl(int64 seconds)
{
	return Min(seconds, (int64) scru64_lease_ttl);
}

static void
keep_setting(char **kept, const char *value)
{
	if (*kept != NULL)
		pfree(*kept);
	*kept = MemoryContextStrdup(TopMemoryContext, value);
}

/*
 * Is this the realm that this server is to have its lease from?  *moved if it is,
 * but the lease is still from another one.
 */
static bool
check_realm(PGconn *conn, int64 deadline, RealmAnswer *answer, bool *moved)
{
	HeldLease  *held = &worker.held;
	char		realm_id[UUID_TEXT_LEN + 1];
	bool		same_address = strcmp(worker.realm, scru64_realm) == 0;
	const char *wanted = *worker.realm_id != '\0' ? worker.realm_id :
		same_address ? held->realm_id : "";

	if (!call_realm_id(conn, deadline, answer, realm_id))
		return false;
	if (*wanted != '\0' && pg_strcasecmp(realm_id, wanted) != 0)
	{
		snprintf(answer->problem, LEASE_TEXT_LEN, "this is realm %s, and not %s",
				 realm_id, wanted);
		return false;
	}
	*moved = has_lease() && strcmp(realm_id, held->realm_id) != 0;
	if (*moved)
		return false;
	if (*worker.realm_id == '\0' && strcmp(realm_id, held->realm_id) != 0)
		ereport(LOG,
				(errmsg("the realm of this server is %s", realm_id),
				 errhint("Set \"%s\" to it, and no other realm is taken for it.",
						 "scru64.realm_id")));
	strlcpy(held->realm_id, realm_id, sizeof(held->realm_id));
	if (!same_address)
		keep_setting(&worker.realm, scru64_realm);
	return true;
}

/* Begin with a lease that the sessions have. */
static void
begin_lease(const HeldLease *lease)
{
	worker.held = *lease;
	keep_lease(&worker.held);
	node_size_begin(&worker.size, (int) lease->node.node_id_size, monotonic_ms());
	publish();
}

static bool
take_lease(PGconn *conn, int64 deadline, RealmAnswer *answer)
{
	LeaseRequest *request = &worker.request;
	HeldLease	lease = worker.held;
	TimestampTz clock;

	request->node_id_size = scru64_lease_node_id_size;
	request->holder = worker.info.holder;
	request->within = worker.within;
	request->ttl = at_most_ttl(FIRST_TTL);
	if (!call_lease(conn, deadline, answer, request, &lease, &clock))
		return false;
	hear_clock(clock);
	worker.next_lease = monotonic_ms() + worker.lease_pause;
	worker.lease_pause = Min(2 * worker.lease_pause,
							 Max(MIN_LEASE_PAUSE, (int64) scru64_lease_ttl * 1000 / 16));
	if (!scru64_lease_begin(lease.node, lease.start, lease.limit))
	{
		/* it stays leased, so that nobody else gets it as long as it lasts */
		(void) call_renew(conn, deadline, answer, scru64_lease_ttl, 0, &lease, &clock);
		snprintf(answer->problem, LEASE_TEXT_LEN,
				 "node %u/%u overlaps one that is set on this server by hand",
				 lease.node.node_id, lease.node.node_id_size);
		return false;
	}
	worker.got_lease_at = monotonic_ms();
	worker.info.size_changed_at = 0;
	worker.info.size_reason[0] = '\0';
	begin_lease(&lease);
	ereport(LOG,
			(errmsg("this server has leased node %u/%u",
					lease.node.node_id, lease.node.node_id_size),
			 errdetail("The lease is from %s to %s, by the realm's clock.",
					   pstrdup(timestamptz_to_str(lease.granted_at)),
					   pstrdup(timestamptz_to_str(lease.expires_at)))));
	return true;
}

static bool
renew_lease(PGconn *conn, int64 deadline, RealmAnswer *answer)
{
	LeaseLook	look = {0};
	int64		age = (monotonic_ms() - worker.got_lease_at) / 1000;
	TimestampTz clock;

	(void) scru64_lease_look(&look);
	if (!call_renew(conn, deadline, answer, at_most_ttl(Max(FIRST_TTL, age)),
					look.last_id, &worker.held, &clock))
	{
		/* the realm has ended it, so that somebody else may have the node */
		if (answer->over)
		{
			(void) scru64_lease_end();
			forget_lease();
		}
		return false;
	}
	hear_clock(clock);
	scru64_lease_extend(worker.held.node, worker.held.limit);
	worker.lease_pause = MIN_LEASE_PAUSE;
	keep_lease(&worker.held);
	return true;
}

/*
 * Give the lease back.  First the slot: what was sent is the end of it, whatever
 * the realm answers.
 */
static void
release_lease(void)
{
	HeldLease	lease = worker.held;
	uint64		last_id = scru64_lease_end();
	int64		deadline = monotonic_ms() + RELEASE_TIMEOUT;
	RealmAnswer answer;
	PGconn	   *conn;
	bool		done;

	if (!has_lease())
		return;
	forget_lease();
	set_busy(true);
	conn = realm_connect(worker.realm, deadline, true);
	done = call_release(conn, deadline, true, &answer, &lease, last_id);
	PQfinish(conn);
	log_release(&lease, done, answer.problem);
	set_busy(false);
}

/*
 * The size of the node
 */

static void
read_sizes(void)
{
	worker.size.quiet = scru64_lease_node_id_size;
	worker.size.least = Min(scru64_lease_node_id_size, scru64_lease_node_id_size_min);
}

static void
look_at_node(void)
{
	LeaseLook	look;

	if (has_lease() && scru64_lease_look(&look))
		node_size_look(&worker.size, monotonic_ms(), look.waits,
					   look.counter_overflows, look.used);
}

/* The node_id_size to have when the lease is renewed; often that of now. */
static int
wanted_size(void)
{
	int			larger = node_size_larger(&worker.size);

	return larger != worker.size.current ? larger :
		node_size_smaller(&worker.size, monotonic_ms(), (int64) scru64_lease_ttl * 1000);
}

/* Is a larger node worth a call before the lease has to be renewed? */
static bool
wants_larger(void)
{
	return has_lease() && worker.info.failures == 0 &&
		node_size_larger(&worker.size) != worker.size.current &&
		monotonic_ms() >= worker.next_size;
}

static void
log_size_problem(int wanted, const char *problem)
{
	char		text[LEASE_TEXT_LEN];

	snprintf(text, sizeof(text), "no node of size %d instead of %d: %s", wanted,
			 worker.size.current, problem);
	keep_message(worker.info.size_reason, text);
	publish();
	ereport(LOG,
			(errmsg("this server has got %s", worker.info.size_reason),
			 errdetail("The lease of node %u/%u goes on.",
					   worker.held.node.node_id, worker.held.node.node_id_size)));
}

static void
log_size(const HeldLease *old)
{
	const HeldLease *held = &worker.held;
	bool		larger = held->node.node_id_size < old->node.node_id_size;

	worker.info.size_changed_at = GetCurrentTimestamp();
	snprintf(worker.info.size_reason, LEASE_TEXT_LEN, "%s",
			 (int) old->node.node_id_size > worker.size.quiet ||
			 (int) old->node.node_id_size < worker.size.least ? "the settings were changed" :
			 larger ? "sessions had to wait for the clock" :
			 "little of the node was used");
	publish();
	ereport(LOG,
			(errmsg("the node of this server is %u/%u now, and was %u/%u: %s",
					held->node.node_id, held->node.node_id_size,
					old->node.node_id, old->node.node_id_size,
					worker.info.size_reason)));
}

/*
 * Go on with a node of another size.  The lease of now stays as it is if that is
 * not to be had.
 */
static bool
change_size(PGconn *conn, int64 deadline, int wanted)
{
	LeaseRequest *request = &worker.size_request;
	HeldLease	old = worker.held;
	HeldLease	next = old;
	int64		left = Max(old.expires_at - realm_now(), 0) / USECS_PER_SEC;
	RealmAnswer answer;
	TimestampTz clock;
	uint64		last_id;
	bool		done;

	worker.next_size = monotonic_ms() + SIZE_PAUSE;
	request->node_id_size = wanted;
	request->holder = worker.info.holder;
	request->within = worker.within;
	/* as long as the old one, and for what its IDs may be ahead of the clock */
	request->ttl = Max(left, at_most_ttl(FIRST_TTL)) + scru64_rollback_allowance / 1000 + 1;
	if (!call_lease(conn, deadline, &answer, request, &next, &clock))
	{
		log_size_problem(wanted, answer.problem);
		return false;
	}
	hear_clock(clock);
	if (!scru64_lease_hand_over(next.node, next.start, next.limit, &last_id))
	{
		(void) call_release(conn, deadline, false, &answer, &next, 0);
		log_size_problem(wanted, "its lease does not reach as far, or it overlaps one that is set on this server by hand");
		return false;
	}
	begin_lease(&next);
	worker.next_size = 0;
	log_size(&old);
	done = call_release(conn, deadline, false, &answer, &old, last_id);
	log_release(&old, done, answer.problem);
	return true;
}

/*
 * What to do, and when
 */

/*
 * Is a new lease better than this one?  Its window is over by the realm's clock, or
 * it begins, or its state is, too far ahead of both clocks.
 */
static bool
is_useless(void)
{
	uint64		allowance = 2 * allowance_ticks() + 1;
	TimestampTz realm = realm_now();
	LeaseLook	look;
	uint64		clocks;

	if (worker.realm_clock == 0)
		return false;
	if (realm >= worker.held.expires_at)
		return true;
	clocks = tick_of_time(Max(Max(realm, GetCurrentTimestamp()), UNIX_EPOCH_TIMESTAMP));
	return worker.held.start > clocks + allowance ||
		(scru64_lease_look(&look) &&
		 scru64_get_timestamp(look.last_id) > clocks + allowance);
}

/*
 * Is the lease to be given back?  Its slot was taken away, by scru64_set_ceiling()
 * for example, or a better one can be had, as far as is known.
 */
static bool
wants_release(void)
{
	LeaseLook	look;

	return has_lease() &&
		(!scru64_lease_look(&look) ||
		 (worker.info.failures == 0 && monotonic_ms() >= worker.next_lease &&
		  is_useless()));
}

static int64
jitter(int64 most)
{
	return (int64) (pg_prng_double(&pg_global_prng_state) * (double) most);
}

/* When to renew: after a third of what is left of the window, give or take a bit. */
static int64
renewal_pause(void)
{
	int64		left = Max(worker.held.expires_at - worker.realm_clock, 0) / 1000;
	int64		third = Max(Min(left, (int64) scru64_lease_ttl * 1000) / 3, MIN_PAUSE);

	return third - third / 10 + jitter(third / 5);
}

static int64
retry_pause(void)
{
	int64		most = Min(MAX_PAUSE, (int64) scru64_lease_ttl * 1000 / 6);
	int64		grown = MIN_PAUSE << Min(worker.info.failures, 6);

	return Max(MIN_PAUSE / 2, jitter(Min(most, grown)));
}

/* Ask the realm for what is wanted of it. */
static bool
ask(PGconn *conn, int64 deadline, RealmAnswer *answer)
{
	int			wanted;

	if (!has_lease())
		return take_lease(conn, deadline, answer);
	look_at_node();
	wanted = wanted_size();
	if (wanted != worker.size.current && monotonic_ms() >= worker.next_size &&
		change_size(conn, deadline, wanted))
		return true;
	return renew_lease(conn, deadline, answer);
}

/* Have done with a realm: another one, or none, is what the settings say. */
static void
leave_realm(void)
{
	release_lease();
	memset(&worker.held, 0, sizeof(worker.held));
	worker.request.request[0] = worker.size_request.request[0] = '\0';
	worker.next_lease = 0;
	keep_setting(&worker.realm, scru64_realm);
}

static void
attempt(void)
{
	int64		deadline = monotonic_ms() + CALL_TIMEOUT;
	bool		moved = false;
	RealmAnswer answer;
	PGconn	   *conn;
	bool		done;

	set_busy(true);
	conn = realm_connect(scru64_realm, deadline, false);
	done = check_realm(conn, deadline, &answer, &moved) && ask(conn, deadline, &answer);
	PQfinish(conn);
	if (moved)
	{
		leave_realm();
		return;
	}
	if (done)
	{
		forget_failures();
		worker.info.renewed_at = GetCurrentTimestamp();
	}
	else if (!ShutdownRequestPending && !ConfigReloadPending)
		failed(answer.problem);
	worker.next_attempt = monotonic_ms() + (done ? renewal_pause() : retry_pause());
	if (done && is_useless())
		worker.next_attempt = Max(monotonic_ms(), worker.next_lease);
	worker.info.next_attempt_at = GetCurrentTimestamp() +
		(worker.next_attempt - monotonic_ms()) * 1000;
	set_busy(false);
}

/* The lease of this postmaster, if there is one that may go on. */
static void
resume_lease(void)
{
	HeldLease	held;
	LeaseLook	look;
	uint64		ceiling;

	StartTransactionCommand();
	ceiling = scru64_lease_load_ceiling();
	CommitTransactionCommand();
	if (!recall_lease(&held) || held.lease_id[0] == '\0')
	{
		/* of a worker that has left nothing: nobody could renew or release it */
		(void) scru64_lease_end();
		return;
	}
	if (scru64_lease_look(&look) &&
		(look.node.node_id != held.node.node_id ||
		 look.node.node_id_size != held.node.node_id_size))
		/* of a worker that was changing it */
		(void) scru64_lease_end();
	if (!scru64_lease_look(&look) &&
		!(held.start < ceiling && ceiling <= held.limit &&
		  scru64_lease_begin(held.node, ceiling, held.limit)))
		return;
	begin_lease(&held);
	worker.got_lease_at = monotonic_ms();
	ereport(LOG,
			(errmsg("the lease of node %u/%u goes on",
					held.node.node_id, held.node.node_id_size)));
}

/* What the realm is told that this server is called, from the next lease on. */
static void
read_holder(void)
{
	char		host[LEASE_TEXT_LEN / 2] = "";

	if (gethostname(host, sizeof(host) - 1) != 0)
		strlcpy(host, "unknown", sizeof(host));
	if (*scru64_lease_holder != '\0')
		strlcpy(worker.info.holder, scru64_lease_holder, LEASE_TEXT_LEN);
	else if (*cluster_name != '\0')
		strlcpy(worker.info.holder, cluster_name, LEASE_TEXT_LEN);
	else
		snprintf(worker.info.holder, LEASE_TEXT_LEN, "%s:%d", host, PostPortNumber);
}

/* A session that waits for the worker shall not wait for one that is gone. */
static void
leave(int code, Datum arg)
{
	(void) code;
	(void) arg;
	scru64_lease_attach_worker(NULL);
	worker.info.worker_pid = 0;
	worker.info.busy = false;
	publish();
}

/*
 * Read the settings again.  A connection string that has changed may lead to the same
 * realm: then the lease goes on.  Nor does it end because of one that leads nowhere.
 */
static void
reload(void)
{
	bool		other_realm_id;
	bool		other_within;

	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
	read_holder();
	read_sizes();
	other_realm_id = pg_strcasecmp(worker.realm_id, scru64_realm_id) != 0;
	other_within = strcmp(worker.within, scru64_lease_within) != 0;
	if (!other_realm_id && !other_within && strcmp(worker.realm, scru64_realm) == 0 &&
		wanted_size() == worker.size.current)
	{
		publish();
		return;
	}
	keep_setting(&worker.realm_id, scru64_realm_id);
	keep_setting(&worker.within, scru64_lease_within);
	if (*scru64_realm == '\0' || other_within ||
		(other_realm_id && *scru64_realm_id != '\0' &&
		 pg_strcasecmp(worker.held.realm_id, scru64_realm_id) != 0))
		leave_realm();
	forget_failures();
	worker.next_attempt = 0;
	worker.next_size = 0;
}

/* A session has come to the end of the window, or there is no lease. */
static void
answer_call(void)
{
	int64		now = monotonic_ms();
	LeaseLook	look;

	if (scru64_lease_was_called() && worker.info.failures == 0 &&
		(!scru64_lease_look(&look) || now - worker.last_called >= MIN_LEASE_PAUSE))
	{
		worker.last_called = now;
		worker.next_attempt = 0;
	}
}

/* Sleep until there is something to do, or somebody asks for something. */
static void
sleep_a_while(int64 until)
{
	int64		next_look = node_size_next_look(&worker.size);

	if (has_lease() && next_look >= 0)
		until = Min(until, next_look);
	if (WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
				  (long) Max(until - monotonic_ms(), 0), PG_WAIT_EXTENSION) & WL_LATCH_SET)
	{
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (!ConfigReloadPending)
			answer_call();
	}
}

/* Do what is next; the order matters. */
static void
work(void)
{
	int64		now;

	if (ConfigReloadPending)
	{
		reload();
		return;
	}
	/* what somebody has ended, or is better replaced, is given back first */
	if (wants_release())
		release_lease();
	look_at_node();
	now = monotonic_ms();
	if (now < worker.next_attempt && !wants_larger())
		sleep_a_while(worker.next_attempt);
	else if (has_lease() || now >= worker.next_lease)
		attempt();
	else
		worker.next_attempt = worker.next_lease;
}

void
lease_worker_main(Datum arg)
{
	MemoryContext loop_context;

	(void) arg;
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	/* nothing here is a query that could be cancelled */
	pqsignal(SIGINT, SIG_IGN);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);

	keep_setting(&worker.realm, scru64_realm);
	keep_setting(&worker.realm_id, scru64_realm_id);
	keep_setting(&worker.within, scru64_lease_within);
	read_holder();
	read_sizes();
	/* two sessions may have asked for a worker at the same time */
	if (*worker.realm == '\0' || !scru64_lease_claim(MyProcPid))
		proc_exit(0);
	worker.info.worker_pid = MyProcPid;
	worker.lease_pause = MIN_LEASE_PAUSE;
	before_shmem_exit(leave, (Datum) 0);
	scru64_lease_attach_worker(MyLatch);
	resume_lease();
	publish();

	loop_context = AllocSetContextCreate(TopMemoryContext, "scru64 lease",
										 ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(loop_context);
	while (!ShutdownRequestPending && *scru64_realm != '\0')
	{
		MemoryContextReset(loop_context);
		CHECK_FOR_INTERRUPTS();
		work();
	}
	release_lease();
	/* unless the server stops too, or needs none, another worker is started */
	proc_exit(*scru64_realm == '\0' ? 0 : 1);
}
