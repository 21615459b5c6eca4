/*-------------------------------------------------------------------------
 *
 * reported.c
 *		The watermarks that were reported in the open transaction.
 *
 * A statement asks for the watermark more than once: for each partition, or for each row.
 * Meanwhile other statements ask, of functions that it calls, or while a cursor is open.
 * If it got two answers, it would skip rows of the partitions that it reads first.  So an
 * answer is kept for as long as the transaction may have the snapshot that it is for.
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

/* With fewer answers nobody looks for those that are of no use any more. */
#define FEW_ANSWERS			64

typedef struct Reported
{
	LocalTransactionId lxid;	/* the transaction that all else is of */
	HTAB	   *answers;		/* of Answer */
	long		limit;			/* so many, and it is time to look for old ones */

	/* The last snapshot that has asked, and its answer */
	TransactionId xmax;
	uint32		xcnt;
	TransactionId *xip;			/* NULL: none has */
	uint64		watermark;
} Reported;

static Reported reported;

/*
 * Does a snapshot have a place among all of this server?
 *
 * One that was made by a replication slot goes by the order of the WAL instead, which may
 * be another one while a commit waits for standbys.  Nothing in it says so.
 */
static bool
has_place(Snapshot snapshot)
{
	return snapshot->snapshot_type == SNAPSHOT_MVCC && !snapshot->takenDuringRecovery;
}

/* Where a snapshot stands among all of this server; before all if it has no place. */
SnapshotPlace
place_of(Snapshot snapshot)
{
	SnapshotPlace place = {0};
	TransactionId own = GetTopTransactionIdIfAny();
	TransactionId *xids;
	uint32		count = snapshot->xcnt;

	if (!has_place(snapshot))
		return place;
	xids = palloc((count + 1) * sizeof(TransactionId));
	if (count > 0)
		memcpy(xids, snapshot->xip, count * sizeof(TransactionId));
	/* sessions leave out their own */
	if (TransactionIdIsNormal(own) && TransactionIdPrecedes(own, snapshot->xmax))
		xids[count++] = own;
	place.xmax = widen_xid(snapshot->xmax,
						   U64FromFullTransactionId(ReadNextFullTransactionId()));
	/* one that is just being prepared is there twice */
	qsort(xids, count, sizeof(TransactionId), xidComparator);
	place.running = qunique(xids, count, sizeof(TransactionId), xidComparator);
	pfree(xids);
	return place;
}

/* The transaction is another one, and so all memory of the one before is gone. */
static void
begin_answers(void)
{
	HASHCTL		control = {
		.keysize = sizeof(SnapshotPlace),
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
 * Forget the answers for snapshots that the session cannot have any more: all that it has
 * see what ended before its xmin, or VACUUM would take rows away from them.
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
		if (answer->place.xmax < xmin)
			hash_search(reported.answers, &answer->place, HASH_REMOVE, NULL);
	}
	reported.limit = Max(2 * hash_get_num_entries(reported.answers), FEW_ANSWERS);
}

/* Is it the snapshot that has asked last?  If a statement asks for each row, it is. */
static bool
has_asked_last(Snapshot snapshot)
{
	return reported.lxid == compat_lxid(MyProc) && reported.xip != NULL &&
		has_place(snapshot) &&
		snapshot->xmax == reported.xmax && snapshot->xcnt == reported.xcnt &&
		(snapshot->xcnt == 0 ||
		 memcmp(snapshot->xip, reported.xip, snapshot->xcnt * sizeof(TransactionId)) == 0);
}

static void
note_last(Snapshot snapshot, uint64 watermark)
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

/* The watermark for a snapshot: what was reported to it before, or else what find finds. */
uint64
reported_watermark(Snapshot snapshot, uint64 (*find) (SnapshotPlace place))
{
	SnapshotPlace place;
	Answer	   *answer;

	if (has_asked_last(snapshot))
		return reported.watermark;
	if (reported.lxid != compat_lxid(MyProc))
		begin_answers();
	place = place_of(snapshot);
	answer = hash_search(reported.answers, &place, HASH_FIND, NULL);
	if (answer == NULL)
	{
		uint64		watermark = find(place);

		if (hash_get_num_entries(reported.answers) >= reported.limit)
			forget_old_answers();
		answer = hash_search(reported.answers, &place, HASH_ENTER, NULL);
		answer->watermark = watermark;
	}
	note_last(snapshot, answer->watermark);
	return answer->watermark;
}
