/*-------------------------------------------------------------------------
 *
 * messages.c
 *		What the lease worker says: in the view scru64_lease and in the log.
 *
 * Never says the lease_id or the connection string.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pgstat.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "lease_worker/messages.h"
#include "settings.h"

/* Between two messages of a standing failure */
#define LOG_PAUSE_MS		60000

void
publish(Worker *worker)
{
	const HeldLease *held = &worker->held;

	worker->info.node = has_lease(worker) ? held->node : (Scru64Node) {0};
	worker->info.is_ahead = has_lease(worker) && held->is_ahead;
	worker->info.granted_at = held->granted_at;
	worker->info.expires_at = held->expires_at;
	scru64_lease_set_info(&worker->info);
}

void
set_busy(Worker *worker, bool busy)
{
	worker->info.busy = busy;
	publish(worker);
	pgstat_report_activity(busy ? STATE_RUNNING : STATE_IDLE,
						   busy ? "talking with the realm" : NULL);
}

/* Keep a message on one line, and what is printed of ASCII: databases may have other encodings. */
static void
keep_message(char *kept, const char *message)
{
	strlcpy(kept, message, LEASE_TEXT_LEN);
	for (char *c = kept; *c != '\0'; c++)
	{
		if (*c == '\n' || *c == '\r' || *c == '\t')
			*c = c[1] == '\0' ? '\0' : ' ';
		else if (*c < ' ' || *c > '~')
			*c = '?';
	}
}

/* Something has failed; what is palloc'd is freed with the attempt. */
void
failed(Worker *worker, const RealmCall *call)
{
	worker->info.failures++;
	worker->info.last_error_at = GetCurrentTimestamp();
	keep_message(worker->info.last_error, call->problem);
	publish(worker);
	if (worker->info.failures > 1 && monotonic_ms() - worker->logged_at_ms < LOG_PAUSE_MS)
		return;
	worker->logged_at_ms = monotonic_ms();
	ereport(LOG,
			(!has_lease(worker) ?
			 errmsg("the realm has not given this server a lease: %s",
					worker->info.last_error) :
			 worker->held.is_lapsing ?
			 errmsg("the realm has not given this server another lease: %s",
					worker->info.last_error) :
			 errmsg("the lease of this server was not renewed: %s",
					worker->info.last_error),
			 errdetail("%ld attempts have failed since the last success.",
					   (long) worker->info.failures),
			 !call->other_realm ?
			 errhint("It is tried again and again. See the view %s.", "scru64_lease") :
			 *scru64_realm_id != '\0' ?
			 errhint("If it is the one to lease from, set \"%s\" to its ID.", "scru64.realm_id") :
			 errhint("A realm has another ID after DROP EXTENSION and CREATE EXTENSION, for example. If it is the one to lease from, set \"%s\" to its ID, or wait until the lease is over.",
					 "scru64.realm_id")));
}

void
forget_failures(Worker *worker)
{
	worker->info.failures = 0;
	worker->info.last_error[0] = '\0';
	worker->info.last_error_at = 0;
}

void
log_lease(const HeldLease *lease)
{
	ereport(LOG,
			(lease->is_ahead ?
			 errmsg("this standby has leased node %u/%u for its promotion",
					lease->node.node_id, lease->node.node_id_size) :
			 errmsg("this server has leased node %u/%u",
					lease->node.node_id, lease->node.node_id_size),
			 errdetail("The lease is from %s to %s, by the realm's clock.",
					   pstrdup(timestamptz_to_str(lease->granted_at)),
					   pstrdup(timestamptz_to_str(lease->expires_at)))));
}

void
log_lapse(const HeldLease *lease, const char *problem)
{
	char		text[LEASE_TEXT_LEN];

	keep_message(text, problem);
	ereport(LOG,
			(errmsg("the lease of node %u/%u is not renewed any more: %s",
					lease->node.node_id, lease->node.node_id_size, text),
			 errdetail("It is used until it ends at %s, by the realm's clock, or the realm has given this server another one.",
					   timestamptz_to_str(lease->expires_at))));
}

void
log_release(const HeldLease *lease, bool done, const char *problem)
{
	char		text[LEASE_TEXT_LEN];

	keep_message(text, problem);
	ereport(LOG,
			(done ?
			 errmsg("the lease of node %u/%u was given back",
					lease->node.node_id, lease->node.node_id_size) :
			 errmsg("the lease of node %u/%u was not given back: %s",
					lease->node.node_id, lease->node.node_id_size, text),
			 done ? 0 :
			 errdetail("It ends by itself at %s, by the realm's clock.",
					   timestamptz_to_str(lease->expires_at))));
}

void
log_size_problem(Worker *worker, const char *problem)
{
	keep_message(worker->info.size_reason,
				 psprintf("no node of size %d instead of %d: %s",
						  worker->request.node_id_size, worker->plan.size.current, problem));
	worker->size_failed = true;
	publish(worker);
	ereport(LOG,
			(errmsg("this server has got %s", worker->info.size_reason),
			 errdetail("The lease of node %u/%u goes on.",
					   worker->held.node.node_id, worker->held.node.node_id_size)));
}

void
log_node(const HeldLease *held, const HeldLease *old, const char *reason)
{
	ereport(LOG,
			(errmsg("the node of this server is %u/%u now, and was %u/%u: %s",
					held->node.node_id, held->node.node_id_size,
					old->node.node_id, old->node.node_id_size, reason)));
}

void
log_size(Worker *worker, const HeldLease *old)
{
	const HeldLease *held = &worker->held;
	bool		larger = held->node.node_id_size < old->node.node_id_size;

	worker->size_failed = false;
	worker->info.size_changed_at = GetCurrentTimestamp();
	strlcpy(worker->info.size_reason,
			(int) old->node.node_id_size > worker->plan.size.quiet ||
			(int) old->node.node_id_size < worker->plan.size.least ? "the settings were changed" :
			larger ? "sessions had to wait for the clock" :
			"little of the node was used",
			LEASE_TEXT_LEN);
	publish(worker);
	log_node(held, old, worker->info.size_reason);
}
