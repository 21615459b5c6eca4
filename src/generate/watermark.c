/*-------------------------------------------------------------------------
 *
 * watermark.c
 *		scru64_watermark(): below it, a reader of new rows misses none.
 *
 * Every row of this server whose ID was made here, by the transaction that inserted it,
 * and is below the watermark, and that will ever be visible, is visible to the snapshot
 * of the statement that asks.  For that it has to be known
 *
 *	- below which ID no node gives out anything any more: settle().  Nodes that are not
 *	  at work are put at the end of the past for that.
 *
 *	- which IDs before that may be of transactions that are still open: writers.c.
 *
 *	- that the statement sees all that is over: by a snapshot that is taken last.  If
 *	  the statement's own sees less than that one, the answer is what was found before
 *	  it was taken.
 *
 * What guards what: the lock of slots.c all of Watermark.
 *
 * Invariants:
 *
 *	- No node begins at or below the tick settled (new_start(), and what is retired), and
 *	  every watermark given is at or below the first ID after that tick.
 *
 *	- No watermark is above the first ID after the ceiling.  So a server that has crashed
 *	  gives out nothing below one, whatever its clock says then.
 *
 *	- A watermark holds for all snapshots that are taken after it was found.  So the
 *	  highest one does, and what is told to statements of now never falls, unless
 *	  restart_watermark() was called: by scru64_set_ceiling(), which has all nodes begin
 *	  anew, and for a lease that is out of reach of what was settled.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "pg_compat.h"

#include "access/transam.h"
#include "access/xact.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "tcop/utility.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "ceiling/ceiling.h"
#include "clock.h"
#include "generate/reported.h"
#include "settings.h"
#include "shmem/writers.h"

PG_FUNCTION_INFO_V1(scru64_watermark);
PG_FUNCTION_INFO_V1(scru64_transactions);

/*
 * Put a node at the end of the past, if its state is still the same.  Else *state is
 * what it is now.
 *
 * Ordering: a session that was faster has announced its ID before (litmus:
 * entry-fast-forward).
 */
static void
put_off(NodeSlot *slot, uint64 *state, uint64 last, uint64 tick)
{
	uint64		start = start_word(tick);

	if (!node_slot_advance(slot, state, start))
		return;
	slot->left = slot_left(slot, *state);
	node_slot_count_used(slot, last, 0);
	*state = start;
}

/*
 * The first ID that the sessions of a slot may give out from here on, or above all if it
 * has no node.
 */
static uint64
settle_slot(NodeSlot *slot, const WatermarkView *view)
{
	NodeKey		key = pg_atomic_read_u32(&slot->key);
	uint64		state = pg_atomic_read_u64(&slot->state);
	Generator	generator = generator_make(node_of_key(key));
	uint64		last = node_state_last(state, &generator);
	uint64		past = watermark_past(view, node_state_tick(slot_left(slot, state)),
									  allowance_ticks());

	if (key == 0)
		return UINT64_MAX;
	if (watermark_is_held_back(view, last, generator_last_of_tick(&generator, past)))
		put_off(slot, &state, last, past);
	return generator_first_after(&generator, node_state_last(state, &generator));
}

/* The greatest ID that a node may have given out. */
static uint64
greatest_id(void)
{
	uint64		top = scru64_compose(node_slots->floor, SCRU64_MAX_NODE_CTR);

	for (int i = 0; i <= NODE_SLOTS; i++)
	{
		NodeSlot   *slot = i < NODE_SLOTS ? &node_slots->slots[i] : &node_slots->leased;
		uint64		state = pg_atomic_read_u64(&slot->state);

		if (node_state_is_id(state))
			top = Max(top, state);
	}
	for (int i = 0; i < RETIRED_NODES; i++)
	{
		if (node_slots->retired_keys[i] != 0)
			top = Max(top, node_slots->retired_ids[i]);
	}
	return top;
}

/*
 * The ID below which no node gives out anything from here on, but for what sessions have
 * announced.  Lock held exclusively.
 *
 *	now			the clock, in ticks
 */
static uint64
settle(uint64 now)
{
	Watermark  *watermark = &node_slots->watermark;
	uint64		durable = ceiling_durable();
	WatermarkView view = watermark_view(greatest_id(), now,
										Max(durable, node_slots->floor));
	uint64		least = settle_slot(&node_slots->leased, &view);
	uint64		settled;

	for (int i = 0; i < NODE_SLOTS; i++)
		least = least_of(least, settle_slot(&node_slots->slots[i], &view));
	settled = watermark_closed_below(&view, least);
	watermark->settled = Max(watermark->settled, scru64_get_timestamp(settled - 1));
	return settled;
}

pg_noreturn static void
no_watermark(const char *detail, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("there is no watermark"),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint)));
}

/* The least ID that an open transaction may have made; an error if nobody knows it. */
static uint64
bound_of_open(void)
{
	TransactionId unknown;
	uint64		bound = writers_bound(&unknown);

	if (TransactionIdIsValid(unknown))
		no_watermark(psprintf("Transaction %u was prepared before scru64 was used since the start of the server, and may have made IDs.", unknown),
					 "End it: the view scru64_transactions has its gid, for COMMIT PREPARED or ROLLBACK PREPARED.");
	return bound;
}

/*
 * The watermark for a snapshot, by its place.  Not to be called before the ceiling was
 * loaded.
 *
 * What is found holds for the snapshots from now on.  The session keeps it, for its next
 * statement: others may call so often that no answer of before that is left in the shared
 * ring, and the statement would get none.
 *
 * Ordering: first the nodes, then the writers, then the snapshot.  What a node has given
 * out before is announced by then, or over, and what is over is in the snapshot (litmus:
 * entry-state).
 */
static uint64
find_watermark(SnapshotPlace place)
{
	static SnapshotData snapshot = {.snapshot_type = SNAPSHOT_MVCC};
	static AnswerRing own_answers;
	static uint32 own_restarts;
	Watermark  *watermark = &node_slots->watermark;
	Answer		present;
	uint32		restarts;
	uint64		best = 0;
	bool		found;

	do
	{
		uint64		now = clock_tick();
		uint64		settled;
		uint64		highest;

		CHECK_FOR_INTERRUPTS();
		LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
		settled = settle(now);
		highest = watermark->highest;
		restarts = watermark->restarts;
		LWLockRelease(&node_slots->lock);

		pg_read_barrier();
		settled = least_of(settled, bound_of_open());
		present.watermark = Max(highest, settled);
		present.place = place_of(GetSnapshotData(&snapshot));

		LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
		found = restarts == watermark->restarts;
		if (found)
		{
			watermark->highest = Max(watermark->highest, present.watermark);
			answers_put(&watermark->answers, present.place, present.watermark);
			best = answers_best(&watermark->answers, place);
		}
		LWLockRelease(&node_slots->lock);
	} while (!found);

	if (own_restarts != restarts)
		memset(&own_answers, 0, sizeof(own_answers));
	own_restarts = restarts;
	answers_put(&own_answers, present.place, present.watermark);
	return Max(best, answers_best(&own_answers, place));
}

/* Find the watermark, where one can be known. */
static uint64
check_and_find_watermark(SnapshotPlace place)
{
	uint64		watermark;

	PreventCommandDuringRecovery("scru64_watermark()");
	check_server_settings();
	ceiling_load(clock_tick(), allowance_ticks());
	if (node_slots->n_writers == 0)
		no_watermark(psprintf("There is no shared memory to spare for the %d processes that this server may have.",
							  MaxBackends),
					 "Add scru64 to \"shared_preload_libraries\", and restart the server.");
	watermark = find_watermark(place);
	/* not before: the others may have begun meanwhile */
	if (slots_are_mixed())
		no_watermark("Two versions of scru64 have made IDs since the server was started.",
					 "Restart the server.");
	return watermark;
}

/*
 * scru64_watermark() -> scru64
 *
 * Exclusive: all rows with IDs below it that will ever be there are there.  25006 in
 * recovery; 55000 if it cannot be told.
 */
Datum
scru64_watermark(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_DATUM(Int64GetDatum((int64) reported_watermark(GetActiveSnapshot(),
															 check_and_find_watermark)));
}

/*
 * scru64_transactions() -> setof record
 *
 * The open transactions that have made IDs: the process, or the prepared transaction,
 * and an ID that all of them are after.
 */
Datum
scru64_transactions(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	ensure_slots();
	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < node_slots->n_writers + node_slots->n_prepared; i++)
	{
		int			pid;
		TransactionId xid;
		uint64		bound;

		if (writer_report(i, &pid, &xid, &bound))
		{
			Datum		values[] = {Int32GetDatum(pid), TransactionIdGetDatum(xid), Int64GetDatum((int64) bound)};
			bool		nulls[] = {pid == 0, pid != 0, false};

			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
		}
	}
	return (Datum) 0;
}
