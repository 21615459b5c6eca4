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

#include "clock.h"
#include "node_slots.h"
#include "tick_time.h"

#define USECS_PER_MSEC		1000

/* Columns of scru64_generators(). */
enum
{
	COLUMN_NODE_ID,
	COLUMN_NODE_ID_SIZE,
	COLUMN_LAST_ID,
	COLUMN_NODE_SPEC,
	COLUMN_LEAD,
	COLUMN_DURABLE_UNTIL,
	COLUMN_COUNTER_OVERFLOWS,
	COLUMN_CLOCK_ROLLBACKS,
	COLUMN_WAITS,
	NUM_COLUMNS
};

PG_FUNCTION_INFO_V1(scru64_generators);

/* Time of an ID minus the clock. */
static Interval *
lead_interval(uint64 id, int64 now_ms)
{
	Interval   *lead = palloc0(sizeof(Interval));
	int64		id_ms = (int64) (scru64_get_timestamp(id) << SCRU64_TICK_SHIFT);

	lead->time = (id_ms - now_ms) * USECS_PER_MSEC;
	return lead;
}

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
 * One row for each node in use on this server.  What depends on the last ID is
 * null for a node that has given out none.
 */
Datum
scru64_generators(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	NodeReport	reports[NODE_SLOTS];
	int			count = node_slots_report(reports);
	uint64		durable = node_slots_durable();
	int64		now_ms = clock_ms();

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < count; i++)
	{
		const NodeReport *report = &reports[i];
		bool		has_id = node_state_is_id(report->state);
		Datum		values[NUM_COLUMNS] = {0};
		bool		nulls[NUM_COLUMNS] = {0};

		values[COLUMN_NODE_ID] = Int32GetDatum((int32) report->node.node_id);
		values[COLUMN_NODE_ID_SIZE] = Int32GetDatum((int32) report->node.node_id_size);
		values[COLUMN_NODE_SPEC] = resumable_spec(report);
		nulls[COLUMN_LAST_ID] = nulls[COLUMN_LEAD] = !has_id;
		if (has_id)
		{
			values[COLUMN_LAST_ID] = Int64GetDatum((int64) report->state);
			values[COLUMN_LEAD] = IntervalPGetDatum(lead_interval(report->state, now_ms));
		}
		values[COLUMN_DURABLE_UNTIL] = TimestampTzGetDatum(time_of_tick(durable));
		nulls[COLUMN_DURABLE_UNTIL] = durable == 0;
		values[COLUMN_COUNTER_OVERFLOWS] = Int64GetDatum((int64) report->counter_overflows);
		values[COLUMN_CLOCK_ROLLBACKS] = Int64GetDatum((int64) report->clock_rollbacks);
		values[COLUMN_WAITS] = Int64GetDatum((int64) report->waits);

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
