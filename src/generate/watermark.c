/*-------------------------------------------------------------------------
 *
 * watermark.c
 *		scru64_watermark(): below it, a reader of new rows misses none.
 *
 * A row below the watermark is visible to the statement that asks, or never will be, if
 * its ID was issued on this server to the transaction that inserted it.  Three steps:
 *
 *	1. close_past() finds the ID below which no node issues any more.  It fast-forwards the
 *	   nodes that are not at work, or they would hold the watermark back.
 *
 *	2. writers.c knows the open transactions that have issued IDs.  The watermark is not
 *	   above the first of those IDs.
 *
 *	3. A snapshot is taken last.  It sees all transactions that are over by then, so the
 *	   watermark holds for it, and for all later ones.  The statement has taken its own
 *	   snapshot before.  If another transaction has ended since, the statement gets the
 *	   greatest watermark that anybody had found before that snapshot.
 *
 * What guards what: the lock of slots.c guards all of Watermark.
 *
 * Invariants:
 *
 *	- No node begins at or below the closed tick (new_start() and may_continue() see to
 *	  it), and no watermark is above the first ID after that tick.
 *
 *	- No watermark is above the first ID after the ceiling.  So a server that has crashed
 *	  issues nothing below one, whatever its clock says then.
 *
 *	- The watermarks of new snapshots never fall, because the greatest one holds for all
 *	  of them.  Only restart_watermark() lowers it, where nodes begin anew: all of them,
 *	  by scru64_set_ceiling(), or that of a new lease, where the closed tick is too far
 *	  ahead of the clock.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "access/transam.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/procarray.h"
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
 * Fast-forward a node to the end of a tick, if its state is still the same.  Else a
 * session was faster, and *state is what it is now.
 *
 * Ordering: that session has advertised its ID before (litmus: entry-fast-forward).
 */
static void
fast_forward(NodeSlot *slot, uint64 *state, uint64 last, uint64 tick)
{
	uint64		start = start_word(tick);

	if (!node_slot_advance(slot, state, start))
		return;
	slot->left = slot_left(slot, *state);
	node_slot_count_used(slot, last, 0);
	*state = start;
}

/*
 * The first ID that the node of a slot may issue from here on, or above all if the slot is
 * free.
 */
static uint64
close_past_of_slot(NodeSlot *slot, const WatermarkView *view)
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
		fast_forward(slot, &state, last, past);
	return generator_first_after(&generator, node_state_last(state, &generator));
}

/* The greatest ID that a node may have issued. */
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
 * The ID below which no node issues any more, but sessions may have advertised some.  Lock
 * held exclusively.
 *
 *	now			the clock, in ticks
 */
static uint64
close_past(uint64 now)
{
	Watermark  *watermark = &node_slots->watermark;
	uint64		durable = ceiling_durable();
	WatermarkView view = watermark_view(greatest_id(), now,
										Max(durable, node_slots->floor));
	uint64		first = close_past_of_slot(&node_slots->leased, &view);
	uint64		closed_below;

	for (int i = 0; i < NODE_SLOTS; i++)
		first = least_of(first, close_past_of_slot(&node_slots->slots[i], &view));
	closed_below = watermark_closed_below(&view, first);
	watermark->closed = Max(watermark->closed, scru64_get_timestamp(closed_below - 1));
	return closed_below;
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

/* The least ID that an open transaction may have issued; an error if nobody knows it. */
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
 * The session keeps what it finds for its next statement.  If other sessions call so often
 * that the shared ring has no answer left that is old enough, that statement gets this.
 *
 * Ordering: first the nodes, then the entries, then the snapshot.  If a node has issued an
 * ID before, its transaction has advertised it, or is over, and the snapshot sees it so
 * (litmus: entry-state).
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
		uint64		first_open;
		uint64		highest;

		CHECK_FOR_INTERRUPTS();
		LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
		first_open = close_past(now);
		highest = watermark->highest;
		restarts = watermark->restarts;
		LWLockRelease(&node_slots->lock);

		pg_read_barrier();
		first_open = least_of(first_open, bound_of_open());
		present.watermark = Max(highest, first_open);
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

/* Likewise, or an error where nobody can know it. */
static uint64
check_and_find_watermark(SnapshotPlace place)
{
	uint64		watermark;

	PreventCommandDuringRecovery("scru64_watermark()");
	check_server_settings();
	ceiling_load();
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
 * Exclusive.  25006 in recovery; 55000 if nobody can know it.
 *
 * It answers for the snapshot that asks, which a VOLATILE function takes anew for each of
 * its statements.  Nobody sees whether the rows are read with that one, too, or with an
 * older one of whoever has called the function: so the pages say that it has to be STABLE.
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
 * The open transactions that have issued IDs: the process, or the prepared transaction,
 * and an ID that all of those are after.
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
