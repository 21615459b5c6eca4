/*-------------------------------------------------------------------------
 *
 * server.c
 *		SQL functions that show administrators this server's nodes, lease and ceiling.
 *
 * scru64_generators(), scru64_lease(), scru64_node_spec() and scru64_ceiling() only read, and the
 * extension's script says who may call them.  scru64_set_ceiling() sets the ceiling, the last tick
 * whose IDs this server may issue, and may also lower the ceiling.  So only superusers may call it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "ceiling/ceiling.h"
#include "ceiling/ceiling_page.h"
#include "settings.h"
#include "shmem/leased_slot.h"
#include "shmem/node_slots.h"
#include "shmem/worker_mailbox.h"
#include "type/id_time.h"

PG_FUNCTION_INFO_V1(scru64_ceiling);
PG_FUNCTION_INFO_V1(scru64_generators);
PG_FUNCTION_INFO_V1(scru64_lease);
PG_FUNCTION_INFO_V1(scru64_node_spec);
PG_FUNCTION_INFO_V1(scru64_set_ceiling);

/* The spec of a node; it continues after node_prev, unless this is 0. */
static Datum
spec_text(Scru64Node node, uint64 node_prev)
{
	NodeSpec	spec = {.node = node, .node_prev = node_prev};
	char		text[NODE_SPEC_BUFLEN];

	node_spec_format(&spec, text);
	return CStringGetTextDatum(text);
}

/* How far an ID's time is ahead of the clock: an interval */
static Datum
lead_of(uint64 id)
{
	return DirectFunctionCall2(timestamp_mi,
							   TimestampTzGetDatum(time_of_tick(scru64_get_timestamp(id))),
							   TimestampTzGetDatum(GetCurrentTimestamp()));
}

/*
 * scru64_generators() -> setof record
 *
 * One row for each node in use on this server; last_id and lead are null for a node that
 * has issued none.
 */
Datum
scru64_generators(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	NodeReport	reports[NODE_SLOTS + 1];
	int			count = node_slots_report(reports);
	uint64		durable = ceiling_durable();

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < count; i++)
	{
		const NodeReport *report = &reports[i];
		bool		has_issued = node_state_is_id(report->state);
		Datum		values[] = {
			Int32GetDatum((int32) report->node.node_id),
			Int32GetDatum((int32) report->node.node_id_size),
			Int64GetDatum((int64) report->state),
			/* continues after all IDs of the node */
			spec_text(report->node, node_state_tick(report->state) > 0 ? report->last_id : 0),
			has_issued ? lead_of(report->state) : (Datum) 0,
			TimestampTzGetDatum(time_of_tick(durable)),
			Int64GetDatum((int64) report->counts[NODE_OVERFLOWS]),
			Int64GetDatum((int64) report->counts[NODE_ROLLBACKS]),
			Int64GetDatum((int64) report->counts[NODE_WAITS])
		};
		bool		nulls[lengthof(values)] = {
			[2] = !has_issued,
			[4] = !has_issued,
			[5] = durable == 0
		};

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * scru64_node_spec() -> text
 *
 * The node of this session: from the setting, else from the server's lease; null if
 * there is neither.
 */
Datum
scru64_node_spec(PG_FUNCTION_ARGS)
{
	NodeReport	leased;

	(void) fcinfo;
	if (configured_node.node.node_id_size != 0)
		PG_RETURN_DATUM(spec_text(configured_node.node, 0));
	if (!scru64_leased_report(&leased))
		PG_RETURN_NULL();
	PG_RETURN_DATUM(spec_text(leased.node, 0));
}

/*
 * scru64_lease() -> setof record: one row where scru64.realm is set, else none.
 */
Datum
scru64_lease(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	LeaseInfo	info = mailbox_info();
	bool		has_lease = info.node.node_id_size != 0;
	bool		lease_over = info.failures > 0 && GetCurrentTimestamp() >= info.expires_at;
	const char *state = has_lease && !lease_over ?
		(info.is_standby_lease ? "held for promotion" :
		 info.failures > 0 ? "held, not renewed" : "held") :
		info.failures > 0 ? "failing" : info.worker_pid != 0 ? "starting" : "no worker";
	Datum		values[] = {
		CStringGetTextDatum(state),
		has_lease ? spec_text(info.node, 0) : (Datum) 0,
		CStringGetTextDatum(info.holder),
		TimestampTzGetDatum(info.granted_at),
		TimestampTzGetDatum(info.expires_at),
		TimestampTzGetDatum(info.renewed_at),
		TimestampTzGetDatum(info.next_attempt_at),
		Int64GetDatum(info.failures),
		CStringGetTextDatum(info.last_error),
		TimestampTzGetDatum(info.last_error_at),
		Int32GetDatum((int32) info.worker_pid),
		Int32GetDatum((int32) info.node.node_id_size),
		TimestampTzGetDatum(info.size_changed_at),
		CStringGetTextDatum(info.size_reason)
	};
	bool		nulls[lengthof(values)] = {
		false, !has_lease, info.holder[0] == '\0', !has_lease, !has_lease,
		info.renewed_at == 0, info.next_attempt_at == 0, false,
		info.last_error[0] == '\0', info.last_error_at == 0, info.worker_pid == 0,
		!has_lease, info.size_changed_at == 0, info.size_reason[0] == '\0'
	};

	InitMaterializedSRF(fcinfo, 0);
	if (*scru64_realm != '\0')
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	return (Datum) 0;
}

/*
 * scru64_ceiling() -> timestamptz
 *
 * The ceiling on the page, where the next raise, or the next start of the server, finds
 * it; null if the page was lost, XX001 if it is damaged.  Reads the page of a later
 * version, too.  Writes nothing.
 */
Datum
scru64_ceiling(PG_FUNCTION_ARGS)
{
	uint64		ceiling;

	(void) fcinfo;
	if (!ceiling_page_look(&ceiling, false))
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(time_of_tick(ceiling));
}

/*
 * scru64_set_ceiling(timestamptz) -> void
 *
 * All nodes of this server start after this time, whatever they have issued and
 * whatever the page says.  42501 for all but superusers, 25006 in recovery, 22008
 * for a time without a tick.
 *
 * The leased node is evicted, too: the ceiling no longer tells how far its IDs went.
 */
Datum
scru64_set_ceiling(PG_FUNCTION_ARGS)
{
	uint64		ceiling;

	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be superuser to call %s", "scru64_set_ceiling()"),
				 errdetail("Whoever sets the ceiling can make IDs come again."),
				 errhint("Ask a superuser of this server.")));
	PreventCommandDuringRecovery("scru64_set_ceiling()");
	ceiling = id_time_checked_tick(PG_GETARG_TIMESTAMPTZ(0));

	/* no ID is of a later tick */
	ceiling_set(Min(ceiling, SCRU64_LAST_TIMESTAMP));
	mailbox_wake_worker(true);
	PG_RETURN_VOID();
}
