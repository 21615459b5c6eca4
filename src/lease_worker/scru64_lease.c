/*-------------------------------------------------------------------------
 *
 * scru64_lease.c
 *		The lease worker: leases a node from a realm, renews and releases it.
 *
 * A library of its own, linked with libpq, so that sessions never load that.  One
 * background worker per server runs scru64_lease_main(); it talks with the realm
 * over one short connection a call, and publishes what it gets through lease.h.
 *
 * Invariants:
 *
 *	- What is published was answered completely, without an error and without a
 *	  WARNING: a commit that has not reached the realm's synchronous standby warns.
 *	- The limit of a lease is raised after the realm's commit, and never lowered.
 *	- A lease is released only after its slot was taken from the sessions, with the
 *	  last ID that left.  Once a release was sent, the lease is dead.
 *	- The lease_id, which is a secret, is in this process and on a page that this
 *	  postmaster has mapped, never in the data directory.
 *	- A lease goes on only under the same postmaster.  A data directory may be a
 *	  copy: any other start takes a new lease.
 *	- Where a node of another size is better, it is leased first, then the sessions go
 *	  on with it, after the last ID of the old one, and then that is released.
 *	- A lease that the realm does not know any more is used to its end, and never
 *	  renewed or released: it may be from before a failover that has lost it.
 *	- What a standby leases no session has before recovery has ended; then it begins
 *	  above the ceiling that came with the WAL.
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
#include "pg_compat.h"

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

#include "clock.h"
#include "lease_worker/hand_over.h"
#include "lease_worker/holding.h"
#include "lease_worker/messages.h"
#include "lease_worker/realm_identity.h"
#include "settings.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void scru64_lease_main(Datum arg);

/* What the realm is told that this server is called, from the next lease on. */
static void
read_holder(Worker *worker)
{
	const char *name = *scru64_lease_holder != '\0' ? scru64_lease_holder : cluster_name;
	char		host[LEASE_TEXT_LEN / 2] = "";

	if (gethostname(host, sizeof(host) - 1) != 0)
		strlcpy(host, "unknown", sizeof(host));
	if (*name != '\0')
		strlcpy(worker->info.holder, name, LEASE_TEXT_LEN);
	else
		snprintf(worker->info.holder, LEASE_TEXT_LEN, "%s:%d", host, PostPortNumber);
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

/* Have the node follow its load, if it is time to. */
static void
follow_load(Worker *worker, RealmCall *call)
{
	const Plan *plan = look_around(worker);
	int			wanted = wanted_size(plan);

	if (wanted == plan->size.current)
	{
		if (worker->size_failed)
			worker->info.size_reason[0] = '\0';
		worker->size_failed = false;
	}
	else if (plan->now_ms >= plan->next_size_ms)
		change_size(worker, call, wanted);
}

static void
tell_next_attempt(Worker *worker)
{
	worker->info.next_attempt_at = GetCurrentTimestamp() +
		(worker->plan.next_attempt_ms - monotonic_ms()) * USECS_PER_MSEC;
}

/* *moved: the lease of now is from another realm than the one that answers. */
static bool
obtain_or_renew(Worker *worker, RealmCall *call, bool *moved)
{
	char		realm_id[UUID_TEXT_LEN + 1];

	if (!check_realm(worker, call, realm_id))
		return false;
	*moved = has_lease(worker) && strcmp(realm_id, worker->held.realm_id) != 0;
	if (*moved)
		return false;
	settle_in_realm(worker, realm_id);
	if (!has_lease(worker))
		return obtain_lease(worker, call);
	if (!worker->held.is_lapsing && renew_lease(worker, call))
		return true;
	/* at once, if a new lease may be had by now */
	return worker->held.is_lapsing && monotonic_ms() >= worker->plan.next_lease_ms &&
		replace_lease(worker, call);
}

static void
attempt(Worker *worker)
{
	bool		moved = false;
	bool		done;
	RealmCall	call;

	set_busy(worker, true);
	realm_open(&call, scru64_realm, worker->first_host, CALL_TIMEOUT_MS, false);
	done = obtain_or_renew(worker, &call, &moved);
	/* a former primary may be connected, and wait for its standby without end */
	worker->first_host = done || moved ? call.host : call.host + 1;
	if (done)
		follow_load(worker, &call);
	realm_close(&call);
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
	else if (!realm_is_disturbed(&call))
		failed(worker, &call);
	plan_attempt(look_around(worker), done, pg_prng_uint32(&pg_global_prng_state));
	tell_next_attempt(worker);
	set_busy(worker, false);
}

/* A session that waits for the worker shall not wait for one that is gone. */
static void
leave(int code, Datum arg)
{
	Worker	   *worker = (Worker *) DatumGetPointer(arg);

	(void) code;
	worker->info.worker_pid = 0;
	worker->info.busy = false;
	publish(worker);
}

/* Have done with the realm or the block, if the settings say so. */
static void
apply_settings(Worker *worker, bool other_realm_id, bool other_within)
{
	if (*scru64_realm == '\0' ||
		(other_realm_id && *scru64_realm_id != '\0' &&
		 pg_strcasecmp(worker->held.realm_id, scru64_realm_id) != 0))
		leave_realm(worker);
	else if (other_within)
	{
		release_lease(worker);
		forget_request(worker);
	}
	forget_failures(worker);
	worker->plan.next_size_ms = 0;
}

/*
 * Read the settings again.  A connection string that has changed may lead to the same
 * realm: then the lease goes on.  Nor does it end because of one that leads nowhere.
 */
static void
reload(Worker *worker)
{
	const char *old_realm_id = pstrdup(scru64_realm_id);
	const char *old_within = pstrdup(scru64_lease_within);
	bool		other_realm_id;
	bool		other_within;
	bool		other_size;

	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
	read_settings(worker);
	other_realm_id = pg_strcasecmp(old_realm_id, scru64_realm_id) != 0;
	other_within = strcmp(old_within, scru64_lease_within) != 0;
	other_size = has_lease(worker) &&
		wanted_size(look_around(worker)) != worker->plan.size.current;
	if (other_realm_id || other_within || other_size || strcmp(worker->realm, scru64_realm) != 0)
		apply_settings(worker, other_realm_id, other_within);
	/* somebody may have mended what was wrong */
	worker->plan.next_attempt_ms = 0;
	publish(worker);
}

static void
answer_call(Worker *worker)
{
	Plan	   *plan = look_around(worker);
	int64		planned_ms = plan->next_attempt_ms;

	if (!scru64_lease_was_called())
		return;
	plan_call(plan);
	if (plan->next_attempt_ms < planned_ms)
	{
		tell_next_attempt(worker);
		publish(worker);
	}
}

/* Sleep until there is something to do, or somebody asks for something. */
static void
sleep_a_while(Worker *worker)
{
	int64		until_ms = sleep_until_ms(&worker->plan);

	if (WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
				  (long) Max(until_ms - monotonic_ms(), 0), PG_WAIT_EXTENSION) & WL_LATCH_SET)
	{
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (!ConfigReloadPending)
			answer_call(worker);
	}
}

/*
 * One step at a time.  What signals ask for is looked at before each: the latch that
 * they set may be reset by the step during which they come.
 */
static void
work(Worker *worker)
{
	if (ConfigReloadPending)
	{
		reload(worker);
		return;
	}
	switch (next_step(look_around(worker)))
	{
		case STEP_SLEEP:
			sleep_a_while(worker);
			break;
		case STEP_GIVE:
			give_lease(worker);
			break;
		case STEP_RELEASE:
			release_lease(worker);
			break;
		case STEP_CALL:
			attempt(worker);
			break;
		case STEP_PUT_OFF:
			worker->plan.next_attempt_ms = worker->plan.next_lease_ms;
			tell_next_attempt(worker);
			publish(worker);
			break;
	}
}

void
scru64_lease_main(Datum arg)
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

	keep_address(worker);
	read_settings(worker);
	/* two sessions may have asked for a worker at the same time */
	if (*worker->realm == '\0' || !scru64_lease_claim())
		proc_exit(0);
	worker->info.worker_pid = MyProcPid;
	worker->plan.lease_pause_ms = MIN_LEASE_PAUSE_MS;
	before_shmem_exit(leave, PointerGetDatum(worker));
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
