/*-------------------------------------------------------------------------
 *
 * writers.c
 *		Who has made IDs in a transaction that is still open.
 *
 * A word for each process, in the shared memory of slots.c: all IDs that its open
 * transaction has made are after it.  A transaction that is prepared has no process
 * any more, and gets an entry of its own before it is.
 *
 * What guards what: the words are atomic.
 *
 *	Writer.bound		lowered by the process and its parallel workers, cleared by
 *						the process when it has no transaction any more.
 *	Writer.lxid			says of which transaction the bound is, and is written before
 *						it.  A process that has not loaded the library clears nothing:
 *						by this its bound ends with its transaction all the same.
 *	PreparedWriter		an LWLock.  Its holder asks PostgreSQL which transactions are in
 *						progress: the places of all others are free.
 *
 * Invariants:
 *
 *	- Between the first ID of a transaction and the moment when no snapshot sees it
 *	  run, there is a bound below all its IDs: in the word, or from the preparation on
 *	  in an entry, and for a while in both.
 *
 *	- An entry is complete before the word is cleared.  Whoever reads all words first
 *	  misses none.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "pg_compat.h"

#include "access/parallel.h"
#include "access/transam.h"
#include "access/twophase.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/procarray.h"

#include "shmem/writers.h"

/* PreparedWriter.bound where nobody knows it: it is below all IDs that are ever made */
#define UNKNOWN_BOUND		1

/* made_after of a transaction without an ID */
#define NOTHING_MADE		UINT64_MAX

uint64		made_after = NOTHING_MADE;

/* Has the leader of this parallel worker loaded the library, as far as is known? */
static bool leader_watches = true;

/* The word of the session, which is its leader's for a parallel worker. */
static Writer *
writer_of_session(PGPROC **proc)
{
	*proc = IsParallelWorker() ? MyProc->lockGroupLeader : MyProc;
	return &node_slots->writers[compat_proc_number(*proc)];
}

/* Lower a word, 0 being above all. */
static void
lower_bound(Writer *writer, uint64 last)
{
	uint64		bound = pg_atomic_read_u64(&writer->bound);

	while ((bound == 0 || bound > last) &&
		   !pg_atomic_compare_exchange_u64(&writer->bound, &bound, last))
		;
}

/*
 * From here on the IDs that the session's transaction makes are after last, or after
 * what it has announced before.
 *
 * Where there was no room for words, there is nothing to do: nobody gets a watermark.
 */
pg_noinline void
announce(uint64 last)
{
	Writer	   *writer;
	PGPROC	   *proc;

	if (!leader_watches && max_prepared_xacts > 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("parallel worker cannot generate IDs for a session that has not loaded scru64"),
				 errdetail("Nobody would notice if the session prepared its transaction."),
				 errhint("Add scru64 to \"%s\" or \"%s\".",
						 "shared_preload_libraries", "session_preload_libraries")));
	made_after = node_slots->n_writers > 0 ? last : 0;
	if (node_slots->n_writers == 0)
		return;
	writer = writer_of_session(&proc);
	pg_atomic_write_u32(&writer->lxid, compat_lxid(proc));
	lower_bound(writer, last);
}

/*
 * The bound of a process's open transaction; 0 if there is none.
 *
 * Ordering: none between the two parts of the word.  Of a transaction that must not be
 * missed an ID was found before this: by that, all that announce() and PostgreSQL have
 * written for it is seen (litmus: words-owner).
 */
static uint64
bound_of_writer(int number)
{
	Writer	   *writer = &node_slots->writers[number];
	uint64		bound = pg_atomic_read_u64(&writer->bound);

	if (bound == 0)
		return 0;
	return pg_atomic_read_u32(&writer->lxid) ==
		*(volatile LocalTransactionId *) &compat_lxid(&ProcGlobal->allProcs[number]) ? bound : 0;
}

/* The first ID that a bound allows for; above all where there is none. */
static uint64
first_after(uint64 bound)
{
	return bound != 0 ? bound + 1 : UINT64_MAX;
}

/*
 * Is a transaction in progress?  PostgreSQL knows it by 32 bits, and takes one that ended
 * 2^31 transactions ago for one that is yet to come.
 */
static bool
is_in_progress(uint64 xid)
{
	return xid != 0 &&
		U64FromFullTransactionId(ReadNextFullTransactionId()) - xid <= MaxTransactionId / 2 &&
		TransactionIdIsInProgress((TransactionId) xid);
}

/* The bound of a prepared transaction, and the transaction; 0 if there is none here. */
static uint64
bound_of_prepared(int place, TransactionId *xid)
{
	PreparedWriter *prepared = &prepared_writers(node_slots)[place];

	*xid = (TransactionId) prepared->xid;
	return is_in_progress(prepared->xid) ? prepared->bound : 0;
}

/*
 * One of the transactions that are open and have made IDs, for all numbers below that
 * of the processes and places together; pid is 0 for one that is prepared.
 */
bool
writer_report(int number, int *pid, TransactionId *xid, uint64 *bound)
{
	*pid = 0;
	*xid = InvalidTransactionId;
	if (number >= node_slots->n_writers)
	{
		LWLockAcquire(&node_slots->prepared_lock, LW_SHARED);
		*bound = bound_of_prepared(number - node_slots->n_writers, xid);
		LWLockRelease(&node_slots->prepared_lock);
		return *bound != 0;
	}
	*bound = bound_of_writer(number);
	*pid = ProcGlobal->allProcs[number].pid;
	return *bound != 0 && *pid != 0;
}

/*
 * The least ID that an open transaction may have made, or above all if there is none.
 * *unknown is set to a transaction whose IDs nobody knows, if there is one.
 *
 * Ordering: the entries are read before the lock is released.  A session that prepares its
 * transaction clears its entry after it has had the lock: if that was before, its bound
 * is found here, and if it was after, its entry was still there (litmus: prepared).
 */
uint64
writers_bound(TransactionId *unknown)
{
	uint64		least = UINT64_MAX;

	*unknown = InvalidTransactionId;
	for (int i = 0; i < node_slots->n_writers; i++)
		least = least_of(least, first_after(bound_of_writer(i)));
	LWLockAcquire(&node_slots->prepared_lock, LW_SHARED);
	for (int i = 0; i < node_slots->n_prepared; i++)
	{
		TransactionId xid;
		uint64		bound = bound_of_prepared(i, &xid);

		least = least_of(least, first_after(bound));
		if (bound == UNKNOWN_BOUND)
			*unknown = xid;
	}
	LWLockRelease(&node_slots->prepared_lock);
	return least;
}

/* Keep a bound for a transaction that is being prepared, in a place that is free. */
static void
note_prepared(uint64 xid, uint64 bound)
{
	PreparedWriter *prepared = prepared_writers(node_slots);
	int			place = 0;

	LWLockAcquire(&node_slots->prepared_lock, LW_EXCLUSIVE);
	while (place < node_slots->n_prepared && is_in_progress(prepared[place].xid))
		place++;
	if (place == node_slots->n_prepared)
		elog(ERROR, "no place for a prepared transaction that has generated IDs");
	prepared[place] = (PreparedWriter) {.xid = xid, .bound = bound};
	LWLockRelease(&node_slots->prepared_lock);
}

/*
 * To be called once after a start of the server, before an ID is made: which IDs the
 * transactions have that are prepared by then, nobody knows.
 */
void
note_prepared_before(void)
{
	for (int i = 0; i < max_prepared_xacts && node_slots->n_prepared > 0; i++)
	{
		TransactionId xid = PreparedXactProcs[i].xid;

		if (TransactionIdIsNormal(xid))
			note_prepared(widen_xid(xid, U64FromFullTransactionId(ReadNextFullTransactionId())),
						  UNKNOWN_BOUND);
	}
}

/*
 * The transaction is about to be prepared.  Its parallel workers may have made IDs,
 * though the session itself has not, and has no shared memory yet.
 */
static void
before_prepare(void)
{
	uint64		bound;

	/* PostgreSQL is about to say so */
	if (max_prepared_xacts == 0)
		return;
	ensure_slots();
	if (node_slots->n_writers == 0)
		return;
	bound = bound_of_writer(compat_proc_number(MyProc));
	if (bound != 0)
		note_prepared(U64FromFullTransactionId(GetTopFullTransactionId()), bound);
}

/*
 * The transaction is over for all snapshots from now on, or it is prepared: PostgreSQL
 * calls this after it has taken it out of the array of processes.
 */
static void
after_transaction(void)
{
	Writer	   *writer;
	PGPROC	   *proc;

	made_after = NOTHING_MADE;
	if (node_slots == NULL || node_slots->n_writers == 0 || IsParallelWorker())
		return;
	writer = writer_of_session(&proc);
	if (pg_atomic_read_u64(&writer->bound) != 0)
		pg_atomic_write_u64(&writer->bound, 0);
}

static void
at_transaction_event(XactEvent event, void *arg)
{
	(void) arg;
	switch (event)
	{
		case XACT_EVENT_PRE_PREPARE:
			before_prepare();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
		case XACT_EVENT_PREPARE:
			after_transaction();
			break;
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
			break;
	}
}

/*
 * To be called when the library is loaded.  A parallel worker loads at its start what
 * its leader has loaded, and later what itself needs.
 */
void
watch_transactions(void)
{
	leader_watches = !IsParallelWorker() || InitializingParallelWorker;
	RegisterXactCallback(at_transaction_event, NULL);
}
