/*-------------------------------------------------------------------------
 *
 * views.c
 *		The function behind the view scru64_generators.
 *
 * Upper storey.  Shows what node_slots.c reports; changes nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "pg_compat.h"

#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "node_slots.h"
#include "tick_time.h"

#define NUM_COLUMNS			8

PG_FUNCTION_INFO_V1(scru64_generators);

/* The node spec that continues after everything that a node has given out. */
static Datum
resumable_spec(const NodeReport *report)
{
	Generator	generator = generator_make(report->node);
	NodeSpec	spec = {.node = report->node};
	char		text[NODE_SPEC_BUFLEN];

	if (node_state_tick(report->state) > 0)
		spec.node_prev = node_state_last(report->state, &generator);
	node_spec_format(&spec, text);
	return CStringGetTextDatum(text);
}

/*
 * scru64_generators() -> setof record
 *
 * One row for each node in use on this server; last_id is null for a node that
 * has given out none.
 */
Datum
scru64_generators(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	NodeReport	reports[NODE_SLOTS + 1];
	int			count = node_slots_report(reports);
	uint64		durable = node_slots_durable();

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < count; i++)
	{
		const NodeReport *report = &reports[i];
		Datum		values[NUM_COLUMNS] = {
			Int32GetDatum((int32) report->node.node_id),
			Int32GetDatum((int32) report->node.node_id_size),
			Int64GetDatum((int64) report->state),
			resumable_spec(report),
			TimestampTzGetDatum(time_of_tick(durable)),
			Int64GetDatum((int64) report->counter_overflows),
			Int64GetDatum((int64) report->clock_rollbacks),
			Int64GetDatum((int64) report->waits)
		};
		bool		nulls[NUM_COLUMNS] = {
			[2] = !node_state_is_id(report->state),
			[4] = durable == 0
		};

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
