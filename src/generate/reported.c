/*-------------------------------------------------------------------------
 *
 * reported.c
 *		The watermarks reported in the open transaction.
 *
 * A statement may call scru64_watermark() more than once: for each partition, or for each
 * row.  Between these calls other statements may call it: in functions, or while the first
 * statement's cursor is open.  If a statement got two answers, it would skip rows of the
 * partitions that it reads first.  So an answer is kept while its snapshot may be in use.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "access/transam.h"
#include "access/xact.h"
#include "lib/qunique.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "generate/reported.h"

/* With fewer answers it is not worth looking for old ones. */
#define FEW_ANSWERS			64

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
SnapshotPosition
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

/* The watermark for a snapshot: as reported for it before, or else from find(). */
uint64
reported_watermark(Snapshot snapshot, uint64 (*find) (SnapshotPosition position))
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
		uint64		watermark = find(position);

		if (hash_get_num_entries(reported.answers) >= reported.limit)
			forget_old_answers();
		answer = hash_search(reported.answers, &position, HASH_ENTER, NULL);
		answer->watermark = watermark;
	}
	note_last_call(snapshot, answer->watermark);
	return answer->watermark;
}
