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
#include "../id_time.h"
#include "lease_worker.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void lease_worker_main(Datum arg);

/* Milliseconds */
#define MIN_PAUSE			1000
#define MAX_PAUSE			60000

/*
 * The size of the node
 */

static void
read_sizes(Worker *worker)
{
	worker->size.quiet = scru64_lease_node_id_size;
	worker->size.least = Min(scru64_lease_node_id_size, scru64_lease_node_id_size_min);
}

static void
look_at_node(Worker *worker)
{
	LeaseLook	look;

	if (has_lease(worker) && scru64_leased_look(&look))
		node_size_look(&worker->size, monotonic_ms(), look.saturated, look.used);
}

/* The node_id_size to have when the lease is renewed; often that of now. */
static int
wanted_size(Worker *worker)
{
	int			larger = node_size_larger(&worker->size);

	return larger != worker->size.current ? larger :
		node_size_smaller(&worker->size, monotonic_ms(), (int64) scru64_lease_ttl * 1000);
}

/* Is a larger node worth a call before the lease has to be renewed? */
static bool
wants_larger(Worker *worker)
{
	return has_lease(worker) && worker->info.failures == 0 &&
		node_size_larger(&worker->size) != worker->size.current &&
		monotonic_ms() >= worker->next_size;
}

/*
 * What to do, and when
 */

/*
 * Is a new lease better than this one?  Its window is over by the realm's clock, or
 * it begins, or its state is, too far ahead of both clocks.
 */
static bool
is_useless(Worker *worker)
{
	uint64		allowance = 2 * allowance_ticks() + 1;
	TimestampTz realm = realm_now(worker);
	LeaseLook	look;
	uint64		clocks;

	if (worker->realm_clock == 0)
		return false;
	if (realm >= worker->held.expires_at)
		return true;
	clocks = tick_of_time(Max(Max(realm, GetCurrentTimestamp()), UNIX_EPOCH_TIMESTAMP));
	return worker->held.start > clocks + allowance ||
		(scru64_leased_look(&look) &&
		 scru64_get_timestamp(look.last_id) > clocks + allowance);
}

/*
 * Is the lease to be given back?  Its slot was taken away, by scru64_set_ceiling()
 * for example, or a better one can be had, as far as is known.
 */
static bool
wants_release(Worker *worker)
{
	LeaseLook	look;

	return has_lease(worker) &&
		(!scru64_leased_look(&look) ||
		 (worker->info.failures == 0 && monotonic_ms() >= worker->next_lease &&
		  is_useless(worker)));
}

static int64
jitter(int64 most)
{
	return (int64) (pg_prng_double(&pg_global_prng_state) * (double) most);
}

/*
 * When to renew: after a third of what is left of the window, give or take a bit.  A
 * node that is ahead of the clock by the allowance has that much less.
 */
static int64
renewal_pause(Worker *worker)
{
	int64		left = Max(worker->held.expires_at - worker->realm_clock, 0) / 1000 -
		scru64_rollback_allowance;
	int64		third = Max(Min(left, (int64) scru64_lease_ttl * 1000) / 3, MIN_PAUSE);

	return third - third / 10 + jitter(third / 5);
}

static int64
retry_pause(Worker *worker)
{
	int64		most = Min(MAX_PAUSE, (int64) scru64_lease_ttl * 1000 / 6);
	int64		grown = MIN_PAUSE << Min(worker->info.failures, 6);

	return Max(MIN_PAUSE / 2, jitter(Min(most, grown)));
}

/* Have the node follow its load, if it is time to. */
static void
follow_load(Worker *worker, PGconn *conn)
{
	int			wanted;

	look_at_node(worker);
	wanted = wanted_size(worker);
	if (wanted == worker->size.current)
	{
		if (worker->size_failed)
			worker->info.size_reason[0] = '\0';
		worker->size_failed = false;
	}
	else if (monotonic_ms() >= worker->next_size)
		change_size(worker, conn, wanted);
}

/* What was asked for is not what is wanted now. */
static void
forget_requests(Worker *worker)
{
	worker->request.request[0] = worker->size_request.request[0] = '\0';
	worker->next_lease = 0;
}

/* Have done with a realm: another one, or none, is what the settings say. */
static void
leave_realm(Worker *worker)
{
	release_lease(worker);
	memset(&worker->held, 0, sizeof(worker->held));
	forget_requests(worker);
	keep_setting(&worker->realm, scru64_realm);
}

static void
tell_next_attempt(Worker *worker)
{
	worker->info.next_attempt_at = GetCurrentTimestamp() +
		(worker->next_attempt - monotonic_ms()) * 1000;
}

static void
attempt(Worker *worker)
{
	int64		deadline = monotonic_ms() + CALL_TIMEOUT;
	bool		moved = false;
	RealmAnswer answer;
	PGconn	   *conn;
	bool		done;

	set_busy(worker, true);
	conn = realm_connect(scru64_realm, deadline, false);
	done = check_realm(worker, conn, deadline, &answer, &moved) &&
		(has_lease(worker) ? renew_lease(worker, conn, deadline, &answer) :
		 take_lease(worker, conn, deadline, &answer));
	if (done)
		follow_load(worker, conn);
	PQfinish(conn);
	if (moved)
	{
		leave_realm(worker);
		return;
	}
	if (done)
	{
		forget_failures(worker);
		worker->info.renewed_at = GetCurrentTimestamp();
	}
	else if (!ShutdownRequestPending && !ConfigReloadPending)
		failed(worker, answer.problem);
	worker->next_attempt = monotonic_ms() + (done ? renewal_pause(worker) : retry_pause(worker));
	if (done && is_useless(worker))
		worker->next_attempt = Max(monotonic_ms(), worker->next_lease);
	tell_next_attempt(worker);
	set_busy(worker, false);
}

/* What the realm is told that this server is called, from the next lease on. */
static void
read_holder(Worker *worker)
{
	char		host[LEASE_TEXT_LEN / 2] = "";

	if (gethostname(host, sizeof(host) - 1) != 0)
		strlcpy(host, "unknown", sizeof(host));
	if (*scru64_lease_holder != '\0')
		strlcpy(worker->info.holder, scru64_lease_holder, LEASE_TEXT_LEN);
	else if (*cluster_name != '\0')
		strlcpy(worker->info.holder, cluster_name, LEASE_TEXT_LEN);
	else
		snprintf(worker->info.holder, LEASE_TEXT_LEN, "%s:%d", host, PostPortNumber);
}

/* A session that waits for the worker shall not wait for one that is gone. */
static void
leave(int code, Datum arg)
{
	Worker	   *worker = (Worker *) DatumGetPointer(arg);

	(void) code;
	scru64_lease_attach_worker(NULL);
	worker->info.worker_pid = 0;
	worker->info.busy = false;
	publish(worker);
}

/*
 * Read the settings again.  A connection string that has changed may lead to the same
 * realm: then the lease goes on.  Nor does it end because of one that leads nowhere.
 */
static void
reload(Worker *worker)
{
	bool		other_realm_id;
	bool		other_within;

	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
	read_holder(worker);
	read_sizes(worker);
	other_realm_id = pg_strcasecmp(worker->realm_id, scru64_realm_id) != 0;
	other_within = strcmp(worker->within, scru64_lease_within) != 0;
	if (!other_realm_id && !other_within && strcmp(worker->realm, scru64_realm) == 0 &&
		!(has_lease(worker) && wanted_size(worker) != worker->size.current))
	{
		publish(worker);
		return;
	}
	keep_setting(&worker->realm_id, scru64_realm_id);
	keep_setting(&worker->within, scru64_lease_within);
	if (*scru64_realm == '\0' ||
		(other_realm_id && *scru64_realm_id != '\0' &&
		 pg_strcasecmp(worker->held.realm_id, scru64_realm_id) != 0))
		leave_realm(worker);
	else if (other_within)
	{
		release_lease(worker);
		forget_requests(worker);
	}
	forget_failures(worker);
	worker->next_attempt = 0;
	worker->next_size = 0;
}

/* A session has come to the end of the window, or there is no lease. */
static void
answer_call(Worker *worker)
{
	int64		now = monotonic_ms();
	LeaseLook	look;

	if (scru64_lease_was_called() && worker->info.failures == 0 &&
		(!scru64_leased_look(&look) || now - worker->last_called >= MIN_LEASE_PAUSE))
	{
		worker->last_called = now;
		worker->next_attempt = 0;
	}
}

/* Sleep until there is something to do, or somebody asks for something. */
static void
sleep_a_while(Worker *worker, int64 until)
{
	int64		next_look = node_size_next_look(&worker->size);

	if (has_lease(worker) && next_look >= 0)
		until = Min(until, next_look);
	if (WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
				  (long) Max(until - monotonic_ms(), 0), PG_WAIT_EXTENSION) & WL_LATCH_SET)
	{
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (!ConfigReloadPending)
			answer_call(worker);
	}
}

/* Do what is next; the order matters. */
static void
work(Worker *worker)
{
	int64		now;

	if (ConfigReloadPending)
	{
		reload(worker);
		return;
	}
	/* what somebody has ended, or is better replaced, is given back first */
	if (wants_release(worker))
		release_lease(worker);
	/* what came meanwhile has set the latch, and that was reset */
	if (ShutdownRequestPending || ConfigReloadPending)
		return;
	look_at_node(worker);
	now = monotonic_ms();
	if (now < worker->next_attempt && !wants_larger(worker))
		sleep_a_while(worker, worker->next_attempt);
	else if (has_lease(worker) || now >= worker->next_lease)
		attempt(worker);
	else
	{
		worker->next_attempt = worker->next_lease;
		tell_next_attempt(worker);
		publish(worker);
	}
}

void
lease_worker_main(Datum arg)
{
	Worker	   *worker = MemoryContextAllocZero(TopMemoryContext, sizeof(Worker));
	MemoryContext loop_context;

	if (strcmp(DatumGetCString(arg), SCRU64_VERSION) != 0)
		ereport(FATAL,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the lease worker and the library of scru64 are of different versions"),
				 errdetail("The worker is of version %s, and this server has loaded version %s of the library.",
						   SCRU64_VERSION, DatumGetCString(arg)),
				 errhint("Restart the server.")));
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	/* nothing here is a query that could be cancelled */
	pqsignal(SIGINT, PG_SIG_IGN);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);

	keep_setting(&worker->realm, scru64_realm);
	keep_setting(&worker->realm_id, scru64_realm_id);
	keep_setting(&worker->within, scru64_lease_within);
	read_holder(worker);
	read_sizes(worker);
	/* two sessions may have asked for a worker at the same time */
	if (*worker->realm == '\0' || !scru64_lease_claim(MyProcPid))
		proc_exit(0);
	worker->info.worker_pid = MyProcPid;
	worker->lease_pause = MIN_LEASE_PAUSE;
	before_shmem_exit(leave, PointerGetDatum(worker));
	scru64_lease_attach_worker(MyLatch);
	resume_lease(worker);
	publish(worker);

	loop_context = AllocSetContextCreate(TopMemoryContext, "scru64 lease",
										 ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(loop_context);
	while (!ShutdownRequestPending && *scru64_realm != '\0')
	{
		MemoryContextReset(loop_context);
		CHECK_FOR_INTERRUPTS();
		work(worker);
	}
	release_lease(worker);
	/* unless the server stops too, or needs none, another worker is started */
	proc_exit(*scru64_realm == '\0' ? 0 : 1);
}
