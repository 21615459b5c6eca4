/*-------------------------------------------------------------------------
 *
 * scru64_lease.c
 *		The lease worker: it acquires a lease of a node from a realm, activates it for
 *		the sessions, renews it, replaces it by a better one, and returns it.
 *
 * The worker is a library of its own, linked with libpq, so that sessions never load libpq.
 * One background worker per server runs scru64_lease_main(): a loop that decides on the next
 * step (lease_plan.c) and takes it (lifecycle.c).  Each call of the realm (realm_calls.c) has
 * a short connection of its own (realm.c).  Sessions are reached through worker_mailbox.h and
 * leased_slot.h.
 *
 * Invariants:
 *
 *	- The worker activates a lease, or raises its limit, only when the realm has answered
 *	  completely, without an error and without a WARNING: a commit that has not reached the
 *	  realm's synchronous standby warns.  The limit never falls.
 *	- The worker returns a lease only after it has taken the slot from the sessions, and
 *	  reports the last ID issued.  Once that is sent, the lease is never used again.
 *	- The lease_id, a secret, is in memory that only processes of this server have mapped,
 *	  never in the data directory, unless a process dumps core there.  Neither the lease_id
 *	  nor the connection string is in the log.
 *	- The worker resumes a lease only under the same postmaster.  A data directory may be a
 *	  copy, so after any other start the worker acquires a new lease.
 *	- To replace a lease, the worker first acquires the next one.  Sessions generate IDs of
 *	  the next lease after the last ID of the old one; only then is the old one returned.
 *	- A lease that the realm does not know any more is used to its end, and never renewed or
 *	  returned: it may be from before a failover that has lost it.
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

#include "clock.h"
#include "lease_worker/lifecycle.h"
#include "settings.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void scru64_lease_main(void);

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

/* Return the lease, because the next one is from another realm, or there is to be none. */
static void
leave_realm(Worker *worker)
{
	return_lease(worker);
	memset(&worker->held, 0, sizeof(worker->held));
	worker->request.lease_id[0] = '\0';
	worker->plan.next_lease_ms = 0;
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
	{
		return_lease(worker);
		worker->plan.next_lease_ms = 0;
	}
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
 * worker holds a lease of another realm, it returns the lease.
 */
static bool
enter_realm(Worker *worker, RealmCall *call)
{
	HeldLease  *held = &worker->held;
	const char *wanted = wanted_realm_id(worker);
	char		realm_id[UUID_TEXT_LEN + 1];

	if (!call_realm_id(call, realm_id))
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
				(errmsg("this server has got %s", info->size_reason),
				 errdetail("The lease of node %u/%u goes on.", NODE_ARGS(&worker->held))));
	}
}

static void
call_realm(Worker *worker)
{
	RealmCall	call;
	bool		done;

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
	plan_attempt(refresh_plan(worker), done, pg_prng_uint32(&pg_global_prng_state));
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
	plan = refresh_plan(worker);
	if (!plan->in_recovery && !plan->has_ceiling)
		plan->has_ceiling = load_ceiling();
	switch (plan_next_step(plan))
	{
		case STEP_SLEEP:
			sleep_a_while(worker);
			break;
		case STEP_ACTIVATE:
			activate_standby_lease(worker);
			break;
		case STEP_RETURN:
			return_lease(worker);
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
	while (!ShutdownRequestPending && *scru64_realm != '\0')
	{
		MemoryContextReset(loop_context);
		CHECK_FOR_INTERRUPTS();
		work(worker);
	}
	return_lease(worker);
	/* 1: the postmaster restarts a worker registered at preload */
	proc_exit(*scru64_realm == '\0' ? 0 : 1);
}
