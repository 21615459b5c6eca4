/*-------------------------------------------------------------------------
 *
 * watermark.c
 *		scru64_watermark(): a reader of new rows misses no row below it.
 *
 * Take a row whose ID this server has issued in the transaction that inserted the row.  If
 * the ID is below the watermark, the calling statement sees the row, or the row will never
 * become visible.  Three steps:
 *
 *	1. close_past() finds the ID below which no node issues any more.  Idle nodes would hold the
 *	   watermark back: close_past() fast-forwards these nodes, to start above that ID.
 *
 *	2. open_transactions.c has a bound below all IDs of each open transaction.  The watermark is at
 *	   most the first ID after the lowest bound.
 *
 *	3. The session takes a new snapshot last.  It sees all transactions that are over by
 *	   then, so the watermark holds for it, and for all later snapshots.  The statement's
 *	   own snapshot is older.  If a transaction has ended in between, the statement gets the
 *	   greatest remembered watermark whose snapshot is not later than the statement's.
 *
 * A statement may call scru64_watermark() more than once: for each partition, or for each
 * row.  Between these calls other statements may call it: in functions, or while the first
 * statement's cursor is open.  If a statement got two answers, it would skip rows of the
 * partitions that it reads first.  So an answer is kept while its snapshot may be in use.
 *
 * What guards what: NodeSlots.lock guards all of Watermark.
 *
 * Invariants:
 *
 *	- No watermark is above the first ID after the closed tick.  A node that gets a slot issues
 *	  IDs only after this tick: slots_start_above_closed() and may_continue() see to it.
 *
 *	- No watermark is above the first ID after the ceiling.  So after a crash the server
 *	  issues no ID below a watermark of before, whatever its clock says.
 *
 *	- Watermark.highest holds for all new snapshots, so their watermarks never fall.  Only
 *	  slots_restart_watermark() lowers it, when nodes start anew: all nodes by
 *	  scru64_set_ceiling(), or the node of a new lease if the closed tick is too far ahead of
 *	  the clock.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "access/transam.h"
#include "access/xact.h"
#include "funcapi.h"
#include "lib/qunique.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "ceiling/ceiling.h"
#include "clock.h"
#include "settings.h"
#include "shmem/open_transactions.h"
#include "shmem/slots.h"

/* With fewer answers it is not worth looking for old ones. */
#define FEW_ANSWERS			64

PG_FUNCTION_INFO_V1(scru64_watermark);
PG_FUNCTION_INFO_V1(scru64_open_transactions);

/* The watermarks reported in the open transaction */
typedef struct Reported
{
	LocalTransactionId lxid;	/* the transaction of all below */
	HTAB	   *answers;		/* of Answer */
	long		limit;			/* at so many answers, forget the old ones */

	/* The snapshot of the last call, and its answer */
	TransactionId xmax;
	uint32		xcnt;
	TransactionId *xip;			/* NULL: there was no call */
	uint64		watermark;
} Reported;

static Reported reported;

/*
 * Fast-forward a node to the end of a tick, if its state is still *state.  If a session was
 * faster, set *state to the present one.
 *
 * Ordering: such a session has advertised its ID before (mutants: fast-forward-split,
 * advertised-late).
 */
static void
fast_forward(NodeSlot *slot, uint64 *state, uint64 last, uint64 tick)
{
	uint64		start = slots_make_start(tick);

	if (!node_slot_advance(slot, state, start))
		return;
	slot->progress = slot_progress(slot, *state);
	node_slot_count_used(slot, last, 0);
	*state = start;
}

/*
 * The first ID that the node of a slot may still issue, or above all if the slot is free.
 * Fast-forwards the node if it holds the watermark back.
 */
static uint64
close_past_of_slot(NodeSlot *slot, const WatermarkView *view)
{
	NodeKey		key = pg_atomic_read_u32(&slot->key);
	uint64		state = pg_atomic_read_u64(&slot->state);
	Generator	generator = generator_make(node_of_key(key));
	uint64		last = node_state_last(state, &generator);
	uint64		past = watermark_past(view, node_state_tick(slot_progress(slot, state)),
									  allowance_ticks());

	if (key == 0)
		return UINT64_MAX;
	if (watermark_is_held_back(view, last, generator_last_of_tick(&generator, past)))
		fast_forward(slot, &state, last, past);
	return generator_first_after(&generator, node_state_last(state, &generator));
}

/* The greatest ID that any node may have issued. */
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
	for (int i = 0; i < PARKED_NODES; i++)
	{
		if (node_slots->parked_keys[i] != 0)
			top = Max(top, node_slots->parked_ids[i]);
	}
	return top;
}

/*
 * The ID below which no node issues any more; transactions with IDs below it may be open.
 * Lock held exclusively.
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
	watermark->closed_tick = Max(watermark->closed_tick, scru64_get_timestamp(closed_below - 1));
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

/* The least ID that an open transaction may have issued; raises an error if unknown. */
static uint64
bound_of_open(void)
{
	TransactionId unknown;
	uint64		bound = transactions_bound(&unknown);

	if (TransactionIdIsValid(unknown))
		no_watermark(psprintf("Transaction %u was prepared before scru64 was used since the start of the server, and may have made IDs.", unknown),
					 "All readers wait until the last such transaction has ended: scru64_transactions() has their gids, for COMMIT PREPARED or ROLLBACK PREPARED.");
	return bound;
}

/*
 * Does a snapshot have a position?
 *
 * A snapshot exported with a new replication slot has none: it follows the order of commits
 * in the WAL, which may differ while a commit waits for standbys.  But nothing in the
 * snapshot tells, so this returns true for it.
 */
static bool
has_position(Snapshot snapshot)
{
	return snapshot->snapshot_type == SNAPSHOT_MVCC && !snapshot->takenDuringRecovery;
}

/* A snapshot's position; before all others if it has none. */
static SnapshotPosition
snapshot_position(Snapshot snapshot)
{
	SnapshotPosition position = {0};
	TransactionId own = GetTopTransactionIdIfAny();
	TransactionId *xids;
	uint32		count = snapshot->xcnt;

	if (!has_position(snapshot))
		return position;
	xids = palloc((count + 1) * sizeof(TransactionId));
	if (count > 0)
		memcpy(xids, snapshot->xip, count * sizeof(TransactionId));
	/* a snapshot does not list the session's own transaction */
	if (TransactionIdIsNormal(own) && TransactionIdPrecedes(own, snapshot->xmax))
		xids[count++] = own;
	position.xmax = widen_xid(snapshot->xmax,
							  U64FromFullTransactionId(ReadNextFullTransactionId()));
	/* a transaction that is just being prepared is listed twice */
	qsort(xids, count, sizeof(TransactionId), xidComparator);
	position.running = qunique(xids, count, sizeof(TransactionId), xidComparator);
	pfree(xids);
	return position;
}

/*
 * The watermark for a snapshot, by its position.  Call ceiling_load() before.
 *
 * The session also keeps its own answers.  If other sessions call so often that all answers
 * of the shared ring are too new for its next statement, the statement gets one of these.
 *
 * Ordering: read the states of the nodes first, then the entries of the writers, and take
 * the snapshot last.  If a node had issued an ID when its state was read, the transaction
 * has advertised the ID, or is over, and the snapshot sees it as over (mutants:
 * no-read-barrier-watermark, snapshot-first).
 */
static uint64
find_watermark(SnapshotPosition position)
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
		present.position = snapshot_position(GetSnapshotData(&snapshot));

		LWLockAcquire(&node_slots->lock, LW_EXCLUSIVE);
		found = restarts == watermark->restarts;
		if (found)
		{
			watermark->highest = Max(watermark->highest, present.watermark);
			watermark_remember(&watermark->answers, present.position, present.watermark);
			best = watermark_best(&watermark->answers, position);
		}
		LWLockRelease(&node_slots->lock);
	} while (!found);

	if (own_restarts != restarts)
		memset(&own_answers, 0, sizeof(own_answers));
	own_restarts = restarts;
	watermark_remember(&own_answers, present.position, present.watermark);
	best = Max(best, watermark_best(&own_answers, position));
	/* the shared ring may forget it before the session's next statement */
	watermark_remember(&own_answers, position, best);
	return best;
}

/* The same; raises an error if there can be no watermark. */
static uint64
check_and_find_watermark(SnapshotPosition position)
{
	uint64		watermark;

	PreventCommandDuringRecovery("scru64_watermark()");
	settings_check_server();
	ceiling_load();
	if (transactions_entries() == 0)
		no_watermark(psprintf("There is no shared memory to spare for the %d processes that this server may have.",
							  MaxBackends),
					 "Add scru64 to \"shared_preload_libraries\", and restart the server.");
	watermark = find_watermark(position);
	/* last: sessions with another version may have begun meanwhile */
	if (shared_parts_are_mixed())
		no_watermark("Two versions of scru64 have been used since the server was started.",
					 "Restart the server.");
	return watermark;
}

/* A new transaction has begun: the memory of the last one's answers is gone. */
static void
begin_answers(void)
{
	HASHCTL		control = {
		.keysize = sizeof(SnapshotPosition),
		.entrysize = sizeof(Answer),
		.hcxt = TopTransactionContext
	};

	reported = (Reported) {
		.lxid = compat_lxid(MyProc),
		.answers = hash_create("scru64 watermarks", FEW_ANSWERS, &control,
							   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT),
		.limit = FEW_ANSWERS
	};
}

/*
 * Forget the answers for snapshots that the session cannot have any more.  Its xmin is at
 * or below the xmin, and so the xmax, of each of its snapshots: VACUUM relies on this.
 */
static void
forget_old_answers(void)
{
	uint64		xmin = widen_xid(MyProc->xmin,
								 U64FromFullTransactionId(ReadNextFullTransactionId()));
	HASH_SEQ_STATUS all;
	Answer	   *answer;

	hash_seq_init(&all, reported.answers);
	while ((answer = hash_seq_search(&all)) != NULL)
	{
		if (answer->position.xmax < xmin)
			hash_search(reported.answers, &answer->position, HASH_REMOVE, NULL);
	}
	reported.limit = Max(2 * hash_get_num_entries(reported.answers), FEW_ANSWERS);
}

/* Is this the snapshot of the last call, as when a statement calls for each row? */
static bool
is_of_last_call(Snapshot snapshot)
{
	return reported.lxid == compat_lxid(MyProc) && reported.xip != NULL &&
		has_position(snapshot) &&
		snapshot->xmax == reported.xmax && snapshot->xcnt == reported.xcnt &&
		(snapshot->xcnt == 0 ||
		 memcmp(snapshot->xip, reported.xip, snapshot->xcnt * sizeof(TransactionId)) == 0);
}

static void
note_last_call(Snapshot snapshot, uint64 watermark)
{
	Size		size = snapshot->xcnt * sizeof(TransactionId);

	if (reported.xip != NULL)
		pfree(reported.xip);
	reported.xip = NULL;
	reported.xip = MemoryContextAlloc(TopTransactionContext, size);
	if (size > 0)
		memcpy(reported.xip, snapshot->xip, size);
	reported.xmax = snapshot->xmax;
	reported.xcnt = snapshot->xcnt;
	reported.watermark = watermark;
}

/* The watermark for a snapshot: as reported for it before, or else a new one. */
static uint64
report_watermark(Snapshot snapshot)
{
	SnapshotPosition position;
	Answer	   *answer;

	if (is_of_last_call(snapshot))
		return reported.watermark;
	if (reported.lxid != compat_lxid(MyProc))
		begin_answers();
	position = snapshot_position(snapshot);
	answer = hash_search(reported.answers, &position, HASH_FIND, NULL);
	if (answer == NULL)
	{
		uint64		watermark = check_and_find_watermark(position);

		if (hash_get_num_entries(reported.answers) >= reported.limit)
			forget_old_answers();
		answer = hash_search(reported.answers, &position, HASH_ENTER, NULL);
		answer->watermark = watermark;
	}
	note_last_call(snapshot, answer->watermark);
	return answer->watermark;
}

/*
 * scru64_watermark() -> scru64
 *
 * An exclusive bound: rows with lesser IDs, not the row with this ID.  25006 in recovery; 55000
 * if there is no watermark.
 *
 * The answer is for the active snapshot, and a VOLATILE function takes a new one for each
 * of its statements.  Its caller may read the rows with an older snapshot, and this cannot
 * be seen here: so the pages require functions that return a watermark to be STABLE.
 *
 * After COMMIT in a DO block or a procedure, PL/pgSQL tests the CHECK of a domain with no active
 * snapshot.
 */
Datum
scru64_watermark(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	if (!ActiveSnapshotSet())
		no_watermark("A watermark is for the snapshot of a query, and no query is running.",
					 "Call scru64_watermark() in a query, and not in the CHECK constraint of a domain.");
	PG_RETURN_DATUM(Int64GetDatum((int64) report_watermark(GetActiveSnapshot())));
}

/*
 * scru64_open_transactions() -> setof record
 *
 * For scru64_transactions().  The open transactions that have issued IDs: the process, or the
 * prepared transaction, and a bound below all its IDs.
 */
Datum
scru64_open_transactions(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	shared_parts_attach();
	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < transactions_entries(); i++)
	{
		int			pid;
		TransactionId xid;
		uint64		bound;

		if (transactions_report(i, &pid, &xid, &bound))
		{
			Datum		values[] = {
				Int32GetDatum(pid),
				TransactionIdGetDatum(xid),
				Int64GetDatum((int64) bound)
			};
			bool		nulls[] = {pid == 0, pid != 0, false};

			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
		}
	}
	return (Datum) 0;
}
