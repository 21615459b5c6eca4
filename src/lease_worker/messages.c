/*-------------------------------------------------------------------------
 *
 * messages.c
 *		What the lease worker writes to the log.
 *
 * Never the lease_id or the connection string.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "clock.h"
#include "lease_worker/messages.h"
#include "settings.h"

/* Between two messages of a standing failure */
#define LOG_PAUSE_MS		60000

/* A node as the arguments of %u/%u */
#define NODE_ARGS(lease)	(lease)->node.node_id, (lease)->node.node_id_size

void
log_realm(const char *realm_id)
{
	ereport(LOG,
			(errmsg("the realm of this server is %s", realm_id),
			 errhint("Set \"%s\" to it, and no other realm is taken for it.",
					 "scru64.realm_id")));
}

/* The first failure, and then once in a while. */
void
log_failure(Worker *worker, bool other_realm)
{
	const LeaseInfo *info = &worker->info;

	if (info->failures > 1 && monotonic_ms() - worker->logged_at_ms < LOG_PAUSE_MS)
		return;
	worker->logged_at_ms = monotonic_ms();
	ereport(LOG,
			(!has_lease(worker) ?
			 errmsg("the realm has not given this server a lease: %s", info->last_error) :
			 worker->held.is_unrenewable ?
			 errmsg("the realm has not given this server another lease: %s", info->last_error) :
			 errmsg("the lease of this server was not renewed: %s", info->last_error),
			 errdetail("%ld attempts have failed since the last success.",
					   (long) info->failures),
			 !other_realm ?
			 errhint("It is tried again and again. See the view %s.", "scru64_lease") :
			 *scru64_realm_id != '\0' ?
			 errhint("If it is the one to lease from, set \"%s\" to its ID.", "scru64.realm_id") :
			 errhint("A realm has another ID after DROP EXTENSION and CREATE EXTENSION, for example. If it is the one to lease from, set \"%s\" to its ID, or wait until the lease is over.",
					 "scru64.realm_id")));
}

void
log_lease(const HeldLease *lease)
{
	ereport(LOG,
			(lease->is_standby_lease ?
			 errmsg("this standby has leased node %u/%u for its promotion", NODE_ARGS(lease)) :
			 errmsg("this server has leased node %u/%u", NODE_ARGS(lease)),
			 errdetail("The lease is from %s to %s, by the realm's clock.",
					   pstrdup(timestamptz_to_str(lease->granted_at)),
					   pstrdup(timestamptz_to_str(lease->expires_at)))));
}

void
log_resumption(const HeldLease *lease)
{
	ereport(LOG,
			(errmsg("the lease of node %u/%u goes on", NODE_ARGS(lease))));
}

/* in_window: whether the ceiling is within the lease's window */
void
log_promotion(const HeldLease *lease, bool activated, bool in_window)
{
	ereport(LOG,
			(activated ?
			 errmsg("recovery has ended, and this server has node %u/%u", NODE_ARGS(lease)) :
			 in_window ?
			 errmsg("recovery has ended, and node %u/%u overlaps one that is configured on this server",
					NODE_ARGS(lease)) :
			 errmsg("recovery has ended, and the ceiling of this server is beyond the lease of node %u/%u",
					NODE_ARGS(lease))));
}

void
log_unrenewable(const HeldLease *lease, const char *problem)
{
	ereport(LOG,
			(errmsg("the lease of node %u/%u is not renewed any more: %s", NODE_ARGS(lease), problem),
			 errdetail("It is used until it ends at %s, by the realm's clock, or the realm has given this server another one.",
					   timestamptz_to_str(lease->expires_at))));
}

void
log_replacement(const HeldLease *lease, const HeldLease *old, const char *reason)
{
	ereport(LOG,
			(errmsg("the node of this server is %u/%u now, and was %u/%u: %s",
					NODE_ARGS(lease), NODE_ARGS(old), reason)));
}

void
log_size_problem(const Worker *worker)
{
	ereport(LOG,
			(errmsg("this server has got %s", worker->info.size_reason),
			 errdetail("The lease of node %u/%u goes on.", NODE_ARGS(&worker->held))));
}

void
log_return(const HeldLease *lease, bool done, const char *problem)
{
	ereport(LOG,
			(done ?
			 errmsg("the lease of node %u/%u was returned", NODE_ARGS(lease)) :
			 errmsg("the lease of node %u/%u was not returned: %s", NODE_ARGS(lease), problem),
			 done ? 0 :
			 errdetail("It ends by itself at %s, by the realm's clock.",
					   timestamptz_to_str(lease->expires_at))));
}
