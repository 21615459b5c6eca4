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

#include "../lease.h"
#include "../settings.h"
#include "../tick_time.h"
#include "kept_lease.h"
#include "realm.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void lease_worker_main(Datum arg);

#define ID_TEXT_LEN			13

/* Milliseconds */
#define CALL_TIMEOUT		15000	/* longer than the realm's lock_timeout */
#define RELEASE_TIMEOUT		2500
#define MIN_PAUSE			1000
#define MAX_PAUSE			60000
#define MIN_LEASE_PAUSE		10000	/* between two new leases */
#define LOG_PAUSE			60000	/* between two messages of a standing failure */

/* Seconds: what the first lease is for, and every renewal at least. */
#define FIRST_TTL			120

/* What the worker has to remember. */
static struct
{
	LeaseInfo	info;
	HeldLease	held;
	char		request[UUID_TEXT_LEN + 1]; /* of a lease that was asked for */
	char	   *realm;			/* the settings that the lease is by */
	char	   *realm_id;
	char	   *within;
	int			node_id_size;
	TimestampTz realm_clock;	/* as last heard; 0: not yet */
	int64		heard_at;		/* then, monotonic ms */
	int64		got_lease_at;	/* monotonic ms, as those below */
	int64		next_attempt;
	int64		next_lease;		/* no new lease before this */
	int64		lease_pause;
	int64		last_logged;
	int64		last_woken;		/* by a session */
}			worker;

/*
 * What is said
 */

static void
publish(void)
{
	HeldLease  *held = &worker.held;
	bool		has_lease = held->lease_id[0] != '\0';

	worker.info.node = has_lease ? held->node : (Scru64Node) {0};
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

/* Something has failed; what is palloc'd is freed with the attempt. */
static void
failed(const char *what)
{
	worker.info.failures++;
	worker.info.last_error_at = GetCurrentTimestamp();
	strlcpy(worker.info.last_error, what, LEASE_TEXT_LEN);
	for (char *c = worker.info.last_error; *c != '\0'; c++)
	{
		if (*c == '\n' || *c == '\r' || *c == '\t')
			*c = c[1] == '\0' ? '\0' : ' ';
		else if (IS_HIGHBIT_SET(*c))
			*c = '?';
	}
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
succeeded(void)
{
	worker.info.failures = 0;
	worker.info.last_error[0] = '\0';
	worker.info.last_error_at = 0;
	worker.info.renewed_at = GetCurrentTimestamp();
}

/*
 * Leases
 */

/* A timestamp from microseconds of Unix time, as the realm is asked for them. */
static TimestampTz
time_of_usecs(const char *text)
{
	return UNIX_EPOCH_TIMESTAMP + (int64) strtoll(text, NULL, 10);
}

#define USECS(column)	"(extract(epoch FROM " column ") * 1000000)::bigint"

/* The last ID of the lease as text, for the realm; NULL if there is none. */
static const char *
told(uint64 last_id, char *text)
{
	if (scru64_get_timestamp(last_id) <= worker.held.start)
		return NULL;
	scru64_lease_id_text(last_id, text);
	return text;
}

static void
hear_clock(const char *usecs)
{
	worker.realm_clock = time_of_usecs(usecs);
	worker.heard_at = monotonic_ms();
}

/* The lease is over: it is in nobody's memory any more. */
static void
forget_lease(void)
{
	worker.held.lease_id[0] = '\0';
	keep_lease(&worker.held);
	publish();
}

static bool
check_realm(PGconn *conn, int64 deadline, RealmAnswer *answer)
{
	const char *wanted = *worker.realm_id != '\0' ? worker.realm_id :
		worker.held.realm_id;
	char	   *realm_id;
	bool		right;

	if (!realm_ask(conn, "SELECT scru64_realm.realm_id(), set_config('client_min_messages', 'warning', false)", 0, NULL, deadline,
				   false, answer))
		return false;
	realm_id = PQgetvalue(answer->result, 0, 0);
	right = *wanted == '\0' || pg_strcasecmp(realm_id, wanted) == 0;
	if (!right)
		snprintf(answer->problem, LEASE_TEXT_LEN, "this is realm %s, and not %s",
				 realm_id, wanted);
	else
	{
		if (*wanted == '\0')
			ereport(LOG,
					(errmsg("the realm of this server is %s", realm_id),
					 errhint("Set \"%s\" to it, and no other realm is taken for it.",
							 "scru64.realm_id")));
		strlcpy(worker.held.realm_id, realm_id, UUID_TEXT_LEN + 1);
	}
	PQclear(answer->result);
	return right;
}

static void
ttl_text(char *text, int64 seconds)
{
	snprintf(text, 32, "%ld seconds", (long) Min(seconds, (int64) scru64_lease_ttl));
}

static void
make_request(void)
{
	uint8		random[16];

	if (worker.request[0] != '\0')
		return;
	if (!pg_strong_random(random, sizeof(random)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	for (int i = 0, at = 0; i < 16; i++)
		at += snprintf(worker.request + at, sizeof(worker.request) - at, "%s%02x",
					   i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", random[i]);
}

static bool
take_lease(PGconn *conn, int64 deadline, RealmAnswer *answer)
{
	char		size[16];
	char		ttl[32];
	const char *params[] = {size, worker.info.holder, ttl,
	*worker.within != '\0' ? worker.within : NULL, worker.request};
	HeldLease  *held = &worker.held;
	NodeSpec	spec;
	bool		begun;

	make_request();
	snprintf(size, sizeof(size), "%d", worker.node_id_size);
	ttl_text(ttl, FIRST_TTL);
	if (!realm_ask(conn, "SELECT lease_id, node_spec, " USECS("granted_at") ", "
				   USECS("expires_at") ", " USECS("realm_clock")
				   " FROM scru64_realm.lease($1, $2, $3, NULL, $4, $5)",
				   lengthof(params), params, deadline, false, answer))
	{
		/* what was refused was not leased; whatever else happened may have been */
		if (answer->refused)
			worker.request[0] = '\0';
		return false;
	}
	if (!scru64_lease_parse_spec(PQgetvalue(answer->result, 0, 1), &spec))
	{
		snprintf(answer->problem, LEASE_TEXT_LEN, "the realm's answer is no node spec");
		PQclear(answer->result);
		return false;
	}

	held->node = spec.node;
	held->granted_at = time_of_usecs(PQgetvalue(answer->result, 0, 2));
	held->expires_at = time_of_usecs(PQgetvalue(answer->result, 0, 3));
	hear_clock(PQgetvalue(answer->result, 0, 4));
	held->start = Max(tick_of_time(held->granted_at),
					  scru64_get_timestamp(spec.node_prev));
	held->limit = tick_of_time(held->expires_at);
	worker.request[0] = '\0';
	begun = scru64_lease_begin(held->node, held->start, held->limit);
	if (begun)
	{
		strlcpy(held->lease_id, PQgetvalue(answer->result, 0, 0), UUID_TEXT_LEN + 1);
		worker.got_lease_at = monotonic_ms();
		keep_lease(&worker.held);
		ereport(LOG,
				(errmsg("this server has leased node %u/%u",
						held->node.node_id, held->node.node_id_size),
				 errdetail("The lease is from %s to %s, by the realm's clock.",
						   pstrdup(timestamptz_to_str(held->granted_at)),
						   pstrdup(timestamptz_to_str(held->expires_at)))));
	}
	else
		/* it stays leased, so that nobody else gets it as long as it lasts */
		snprintf(answer->problem, LEASE_TEXT_LEN,
				 "node %u/%u overlaps one that is set on this server by hand",
				 held->node.node_id, held->node.node_id_size);
	PQclear(answer->result);
	worker.next_lease = monotonic_ms() + worker.lease_pause;
	worker.lease_pause = Min(2 * worker.lease_pause,
							 Max(MIN_LEASE_PAUSE, (int64) scru64_lease_ttl * 1000 / 16));
	return begun;
}

static bool
renew_lease(PGconn *conn, int64 deadline, RealmAnswer *answer)
{
	HeldLease  *held = &worker.held;
	char		ttl[32];
	char		last[ID_TEXT_LEN];
	uint64		last_id = 0;
	const char *params[] = {held->lease_id, ttl, NULL};

	ttl_text(ttl, Max(FIRST_TTL, (monotonic_ms() - worker.got_lease_at) / 1000));
	if (scru64_lease_is_held(&last_id))
		params[2] = told(last_id, last);
	if (!realm_ask(conn, "SELECT " USECS("expires_at") ", " USECS("realm_clock")
				   " FROM scru64_realm.renew($1, $2, $3)",
				   lengthof(params), params, deadline, false, answer))
	{
		/* the realm has ended it, so that somebody else may have the node */
		if (answer->over)
		{
			(void) scru64_lease_end();
			forget_lease();
		}
		return false;
	}
	held->expires_at = time_of_usecs(PQgetvalue(answer->result, 0, 0));
	held->limit = Max(held->limit, tick_of_time(held->expires_at));
	hear_clock(PQgetvalue(answer->result, 0, 1));
	scru64_lease_extend(held->node, held->limit);
	worker.lease_pause = MIN_LEASE_PAUSE;
	keep_lease(&worker.held);
	PQclear(answer->result);
	return true;
}

/*
 * Give the lease back.  First the slot: what was sent is the end of it, whatever
 * the realm answers.
 */
static void
release_lease(void)
{
	RealmAnswer answer;
	char		last[ID_TEXT_LEN];
	char		lease_id[UUID_TEXT_LEN + 1];
	const char *params[] = {lease_id, told(scru64_lease_end(), last)};
	int64		deadline = monotonic_ms() + RELEASE_TIMEOUT;
	PGconn	   *conn;

	if (worker.held.lease_id[0] == '\0')
		return;
	strlcpy(lease_id, worker.held.lease_id, sizeof(lease_id));
	forget_lease();
	set_busy(true);
	conn = realm_connect(worker.realm, deadline, true);
	if (!realm_ask(conn, "SELECT scru64_realm.release($1, $2)", lengthof(params),
				   params, deadline, true, &answer))
		ereport(LOG,
				(errmsg("the lease of node %u/%u was not given back: %s",
						worker.held.node.node_id, worker.held.node.node_id_size,
						answer.problem),
				 errdetail("It ends by itself at %s, by the realm's clock.",
						   timestamptz_to_str(worker.held.expires_at))));
	else
		ereport(LOG,
				(errmsg("the lease of node %u/%u was given back",
						worker.held.node.node_id, worker.held.node.node_id_size)));
	PQclear(answer.result);
	PQfinish(conn);
	set_busy(false);
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
	uint64		last_id = 0;
	TimestampTz realm = worker.realm_clock + (monotonic_ms() - worker.heard_at) * 1000;
	uint64		clocks;

	if (worker.realm_clock == 0)
		return false;
	if (realm >= worker.held.expires_at)
		return true;
	clocks = tick_of_time(Max(Max(realm, GetCurrentTimestamp()), UNIX_EPOCH_TIMESTAMP));
	return worker.held.start > clocks + allowance ||
		(scru64_lease_is_held(&last_id) &&
		 scru64_get_timestamp(last_id) > clocks + allowance);
}

/*
 * Is the lease to be given back?  Its slot was taken away, by scru64_set_ceiling()
 * for example, or a better one can be had, as far as is known.
 */
static bool
wants_release(void)
{
	uint64		last_id;

	return worker.held.lease_id[0] != '\0' &&
		(!scru64_lease_is_held(&last_id) ||
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

static void
attempt(void)
{
	RealmAnswer answer;
	int64		deadline = monotonic_ms() + CALL_TIMEOUT;
	bool		done;
	PGconn	   *conn;

	set_busy(true);
	conn = realm_connect(worker.realm, deadline, false);
	done = check_realm(conn, deadline, &answer) &&
		(worker.held.lease_id[0] != '\0' ?
		 renew_lease(conn, deadline, &answer) : take_lease(conn, deadline, &answer));
	PQfinish(conn);
	if (done)
		succeeded();
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
	uint64		last_id;
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
	if (!scru64_lease_is_held(&last_id) &&
		!(held.start < ceiling && ceiling <= held.limit &&
		  scru64_lease_begin(held.node, ceiling, held.limit)))
		return;
	worker.held = held;
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

static void
read_settings(void)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	worker.realm = pstrdup(scru64_realm);
	worker.realm_id = pstrdup(scru64_realm_id);
	worker.within = pstrdup(scru64_lease_within);
	worker.node_id_size = scru64_lease_node_id_size;
	MemoryContextSwitchTo(old);
	read_holder();
}

static bool
settings_changed(void)
{
	return strcmp(worker.realm, scru64_realm) != 0 ||
		strcmp(worker.realm_id, scru64_realm_id) != 0 ||
		strcmp(worker.within, scru64_lease_within) != 0 ||
		worker.node_id_size != scru64_lease_node_id_size;
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

static void
reload(void)
{
	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
	read_holder();
	if (!settings_changed())
	{
		publish();
		return;
	}
	release_lease();
	memset(&worker.held, 0, sizeof(worker.held));
	worker.request[0] = '\0';
	read_settings();
	worker.info.failures = 0;
	worker.info.last_error[0] = '\0';
	worker.next_attempt = 0;
	worker.next_lease = 0;
}

void
lease_worker_main(Datum arg)
{
	MemoryContext loop_context;

	(void) arg;
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	/* nothing here is a query that could be cancelled */
	pqsignal(SIGINT, PG_SIG_IGN);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);

	read_settings();
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
	while (!ShutdownRequestPending && *worker.realm != '\0')
	{
		int64		now;

		MemoryContextReset(loop_context);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			reload();
			continue;
		}
		/* what somebody has ended, or is better replaced, is given back first */
		if (wants_release())
			release_lease();
		now = monotonic_ms();
		if (now >= worker.next_attempt)
		{
			if (worker.held.lease_id[0] != '\0' || now >= worker.next_lease)
				attempt();
			else
				worker.next_attempt = worker.next_lease;
			continue;
		}
		if (WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					  (long) (worker.next_attempt - now), PG_WAIT_EXTENSION) & WL_LATCH_SET)
		{
			uint64		last_id;

			ResetLatch(MyLatch);
			CHECK_FOR_INTERRUPTS();
			now = monotonic_ms();
			/* a session has come to the end of the window, or there is none */
			if (worker.info.failures == 0 && !ConfigReloadPending &&
				(!scru64_lease_is_held(&last_id) ||
				 now - worker.last_woken >= MIN_LEASE_PAUSE))
			{
				worker.last_woken = now;
				worker.next_attempt = 0;
			}
		}
	}
	release_lease();
	/* unless the server stops too, or needs none, another worker is started */
	proc_exit(*worker.realm == '\0' ? 0 : 1);
}
