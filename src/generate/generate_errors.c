/*-------------------------------------------------------------------------
 *
 * generate_errors.c
 *		The errors that scru64_generate() raises if there is no ID, its lines in the log, and the
 *		warnings of scru64_check().
 *
 * Each function says what its caller has found: nothing is decided here, except how often a line is
 * logged.  Most are about the session's node.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "miscadmin.h"
#include "replication/syncrep.h"
#include "utils/timestamp.h"

#include "ceiling/standbys.h"
#include "clock.h"
#include "generate/generate_errors.h"
#include "generate/session_node.h"
#include "pure/base36.h"
#include "settings.h"
#include "shmem/leased_slot.h"
#include "type/id_time.h"

/*
 * Text, palloc'd
 */

static char *
node_text(Scru64Node node)
{
	return psprintf("%u/%u", node.node_id, node.node_id_size);
}

static char *
session_node_text(void)
{
	return node_text(node_of_key(session_node.key));
}

static bool
node_log_is_due(LogKind kind)
{
	return slots_log_is_due(kind, node_of_key(session_node.key).node_id);
}

static char *
time_text(TimestampTz time)
{
	return pstrdup(timestamptz_to_str(time));
}

/* For a DETAIL: a node's last ID, or where it starts. */
static char *
state_text(Scru64Node node, uint64 state)
{
	char		id[BASE36_DIGITS + 1] = "";
	char	   *time;

	time = time_text(time_of_tick(node_state_tick(state)));
	if (!node_state_is_id(state))
		return psprintf("Node %s has issued no ID yet, and starts after %s.",
						node_text(node), time);
	base36_encode(state, id);
	return psprintf("The last ID of node %s, %s, is of %s.",
					node_text(node), id, time);
}

/*
 * Errors
 */

/* 25006: as PreventCommandDuringRecovery(), and a hint */
void
generate_fail_in_recovery(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
			 errmsg("cannot execute %s during recovery", "scru64_generate()"),
			 errhint("Generate IDs on the primary. If a connection pooler sent the query here, it must treat this function as one that writes.")));
}

/* 25000: as PreventCommandIfParallelMode(), and a hint */
void
generate_fail_in_parallel_worker(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
			 errmsg("cannot execute %s during a parallel operation", "scru64_generate()"),
			 errdetail("A parallel worker generates no IDs."),
			 errhint("Mark the function that calls it as PARALLEL RESTRICTED.")));
}

/* 55000 */
void
generate_fail_no_node(void)
{
	const char *bad_spec = settings_bad_environment_spec();
	GucSource	refused = settings_refused_node_spec_source();

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("node spec is not set"),
			 refused != PGC_S_DEFAULT ?
			 errdetail("The parameter \"%s\" is empty: its value from source \"%s\" replaced the server's in this session, and was refused.",
					   NODE_SPEC_SETTING, GucSource_Names[refused]) :
			 bad_spec == NULL ?
			 errdetail("The parameter \"%s\" is empty, so there is no node to generate IDs for.",
					   NODE_SPEC_SETTING) :
			 errdetail("The parameter \"%s\" is empty, and environment variable %s is ignored: invalid node spec \"%s\".",
					   NODE_SPEC_SETTING, "SCRU64_NODE_SPEC", bad_spec),
			 refused != PGC_S_DEFAULT ?
			 errhint("Take the value out of the client's start-up options, or RESET it by ALTER ROLE or ALTER DATABASE, and connect again. The warning at the first use of scru64 in the session says why it was refused.") :
			 errhint("Write for NODE a number from 0 to 255 that no other server has: LOAD 'scru64'; ALTER SYSTEM SET scru64.node_spec = 'NODE/8'; SELECT pg_reload_conf(); Or set \"%s\", and have one leased.",
					 REALM_SETTING)));
}

/* 55006 */
void
generate_fail_overlap(const NodeReport *conflict)
{
	if (conflict->is_leased)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("node %s overlaps node %s, which this server has leased",
						session_node_text(), node_text(conflict->node)),
				 errdetail("Since the server was started, the realm has leased node %s to it, now or before.",
						   node_text(conflict->node)),
				 errhint("Choose a node that the realm does not lease to servers. Waiting does not help: this node is refused until the server is restarted, or has leased %d other nodes.",
						 LEASED_NODES)));
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_IN_USE),
			 errmsg("node %s overlaps node %s, which is in use on this server",
					session_node_text(), node_text(conflict->node)),
			 errdetail("%s", state_text(conflict->node, conflict->state)),
			 errhint("Choose node_ids of which none is a bit prefix of another, or wait until the other node has been idle for longer than \"%s\".",
					 ALLOWANCE_SETTING)));
}

/*
 * The allowance, in seconds, with which an ID of a tick is issued at once, also if the tick before
 * is full.  The clock may have been set since the session decided on the error.
 */
static uint64
enough_allowance(uint64 tick)
{
	uint64		lead = tick - least_of(tick, clock_tick());

	return (lead + 1) * SCRU64_TICK_MS / MSECS_PER_SEC + 1;
}

/* 58000; state: the node's, or its node_prev */
void
generate_fail_clock_behind(uint64 state)
{
	Scru64Node	node = node_of_key(session_node.key);
	Generator	generator = generator_make(node);
	uint64		last = node_state_last(state, &generator);
	uint64		again = generator_due(&generator, last, 2 * allowance_ticks());
	uint64		enough_s = enough_allowance(generator_due(&generator, last, 0));

	ereport(ERROR,
			(errcode(ERRCODE_SYSTEM_ERROR),
			 node_state_is_id(state) ?
			 errmsg("the clock is too far behind the last ID of node %s",
					session_node_text()) :
			 errmsg("the clock is too far behind the start of node %s",
					session_node_text()),
			 errdetail("The clock reads %s. %s IDs come again when the clock reads %s, earlier by twice \"%s\" (%d ms).",
					   time_text(GetCurrentTimestamp()), state_text(node, state),
					   time_text(time_of_tick(again)),
					   ALLOWANCE_SETTING, scru64_rollback_allowance),
			 enough_s * MSECS_PER_SEC <= MAX_ROLLBACK_ALLOWANCE ?
			 errhint("Correct the clock, or wait. If that takes too long, set \"%s\" to '%ds', and reload the configuration: IDs go on in order. Set it back when the clock has caught up.",
					 ALLOWANCE_SETTING, (int) enough_s) :
			 errhint("Correct the clock, or wait. If that takes too long, set \"%s\" to a node that has not been used and then, as a superuser, call %s.",
					 NODE_SPEC_SETTING, "scru64_set_ceiling()")));
}

/*
 * For a DETAIL: when the last attempt to acquire or renew the lease failed, or nothing.  Why a
 * call of the realm failed is in the log and scru64_lease(): it may name the realm's host and
 * user.
 */
static const char *
failure_text(const LeaseInfo *info, const char *attempt)
{
	return info->last_error_at == 0 ? "" :
		info->worker_failed ?
		psprintf("The lease worker failed at %s: %s.", time_text(info->last_error_at), info->last_error) :
		psprintf("The last attempt to %s failed at %s.", attempt, time_text(info->last_error_at));
}

/* 55000 */
void
generate_fail_no_lease(const LeaseInfo *info, bool has_worker_slot)
{
	const char *failure = failure_text(info, "acquire one");

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("this server has no lease of a node"),
			 errdetail("%s", !IsUnderPostmaster ? "There is no lease worker in single-user mode." :
					   !has_worker_slot ? "There is no free slot for the lease worker." :
					   *failure != '\0' ? failure :
					   info->worker_pid == 0 ? "The lease worker has not started yet." :
					   "The lease worker has not got one yet."),
			 !IsUnderPostmaster ?
			 errhint("Set \"%s\" to a node that the realm does not lease.", NODE_SPEC_SETTING) :
			 !has_worker_slot ?
			 errhint("Raise \"%s\" and restart the server.", "max_worker_processes") :
			 info->worker_failed || (info->worker_pid == 0 && shared_parts_are_mixed()) ?
			 errhint("See %s and the server log. If another version of scru64 was installed, connect again; if the server preloads scru64, restart the server.",
					 "scru64_lease()") :
			 errhint("See %s and the server log. It is tried again and again.",
					 "scru64_lease()")));
}

/* 55000; tick: of the next ID */
void
generate_fail_lease_over(const LeaseInfo *info, uint64 tick)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the lease of node %s is over", session_node_text()),
			 errdetail("It ends at %s by the realm's clock, and the next ID is of %s.%s%s",
					   time_text(info->expires_at), time_text(time_of_tick(tick)),
					   info->last_error_at != 0 ? " " : "", failure_text(info, "renew it")),
			 errhint("See %s: either the realm cannot be reached, or this server's clock, or the last ID before it was started, is ahead of the realm's clock.",
					 "scru64_lease()")));
}

/*
 * The log: each line once a minute at most for a node, or for a source of node specs
 */

/* The node starts ahead of the clock. */
void
generate_log_start(uint64 state)
{
	if (!node_log_is_due(LOG_START))
		return;
	ereport(LOG,
			(errmsg("node %s starts after %s, which is ahead of the clock",
					session_node_text(), time_text(time_of_tick(node_state_tick(state)))),
			 errdetail("The clock reads %s. IDs up to then may have been issued before.",
					   time_text(GetCurrentTimestamp()))));
}

/* The clock before and now, in ticks */
void
generate_log_rollback(uint64 seen, uint64 now)
{
	if (!node_log_is_due(LOG_ROLLBACK))
		return;
	ereport(LOG,
			(errmsg("the clock went back from %s to %s",
					time_text(time_of_tick(seen)), time_text(time_of_tick(now))),
			 errdetail("Node %s continues after its last ID as long as that is not ahead of the clock by more than \"%s\" (%d ms).",
					   session_node_text(), ALLOWANCE_SETTING,
					   scru64_rollback_allowance)));
}

void
generate_log_wait(uint64 state)
{
	if (!node_log_is_due(LOG_WAIT))
		return;
	ereport(LOG,
			(errmsg("node %s waits for the clock", session_node_text()),
			 errdetail("%s The next would be ahead of the clock by more than \"%s\" (%d ms).",
					   state_text(node_of_key(session_node.key), state),
					   ALLOWANCE_SETTING, scru64_rollback_allowance),
			 node_state_is_id(state) ?
			 errhint("If the clock is right, the node is asked for more IDs than its counter has room for: it needs a smaller %s.",
					 session_is_leased() ?
					 "node_id_size, down to \"scru64.lease_node_id_size_min\"" : "node_id_size") :
			 errhint("IDs up to then may have been issued before. The wait ends by itself.")));
}

/* The session's own node spec takes precedence over the lease. */
void
generate_log_own_node_spec(void)
{
	GucSource	source = settings_own_node_spec_source();

	if (source == PGC_S_DEFAULT || !slots_log_is_due(LOG_CONFIGURED_NODE, source))
		return;
	ereport(LOG,
			(errmsg("node %s is used in place of the one that this server leases",
					session_node_text()),
			 errdetail("A session has \"%s\" from source \"%s\". No realm keeps other servers from having the same node.",
					   NODE_SPEC_SETTING, GucSource_Names[source]),
			 source <= PGC_S_DATABASE_USER ?
			 errhint("RESET it by ALTER ROLE or ALTER DATABASE: see pg_db_role_setting.") : 0));
}

/*
 * The warnings of scru64_check(): what the next ID would wait for.  Each returns its detail, which
 * is the result of scru64_check().
 */

static char *
warn(char *detail, const char *hint)
{
	ereport(WARNING,
			(errmsg("%s would wait", "scru64_generate()"),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint)));
	return detail;
}

char *
generate_warn_of_clock(uint64 state, int64 wait_ms)
{
	return warn(psprintf(_("The next ID waits for the clock for %lld ms. %s"), (long long) wait_ms,
						 state_text(node_of_key(session_node.key), state)),
				_("The wait ends by itself. Check the clock."));
}

char *
generate_warn_of_flush(int64 waited_ms)
{
	return warn(psprintf(_("The next ID waits for a flush of the WAL, which has taken %lld ms so far."),
						 (long long) waited_ms),
				_("Check the disk of the WAL."));
}

char *
generate_warn_of_standbys(int64 waited_ms)
{
	int			missing = standbys_missing();

	return warn(missing > 0 ?
				psprintf(_("The next ID waits for synchronous standbys. Missing: %d of %d."),
						 missing, SyncRepConfig->num_sync) :
				psprintf(_("The next ID waits for synchronous standbys, which have not flushed the ceiling for %lld ms."),
						 (long long) waited_ms),
				_("If a standby is not coming back, take it out of \"synchronous_standby_names\", and reload the configuration."));
}
