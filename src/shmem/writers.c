/*-------------------------------------------------------------------------
 *
 * writers.c
 *		Who has made IDs in a transaction that is still open.
 *
 * A word for each process, in the shared memory of slots.c: all IDs that its open
 * transaction has made are after it.  A transaction that is prepared has no process
 * any more, and gets an entry of its own before it is.
 *
 * What guards what: all is atomic, and there is no lock.
 *
 *	Writer.bound		lowered by the process and its parallel workers, cleared by
 *						the process when it has no transaction any more.
 *	Writer.lxid			says of which transaction the bound is, and is written before
 *						it.  A process that has not loaded the library clears nothing:
 *						by this its bound ends with its transaction all the same.
 *	PreparedWriter		free unless its transaction is in progress.
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

/* PreparedWriter.xid of a place that somebody has taken, and not written yet */
#define BEING_WRITTEN		FrozenTransactionId

/* PreparedWriter.bound where nobody knows it: it is below all IDs that are ever made */
#define UNKNOWN_BOUND		1

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
	session_node.made_after = node_slots->n_writers > 0 ? last : 0;
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
 * Is a transaction in progress?  PostgreSQL, which knows it by 32 bits, would say so of
 * one that ended 2^31 transactions ago, too: it takes it for one that is yet to come.
 */
static bool
is_in_progress(uint64 xid)
{
	return xid >= FirstNormalTransactionId &&
		U64FromFullTransactionId(ReadNextFullTransactionId()) - xid <= MaxTransactionId / 2 &&
		TransactionIdIsInProgress((TransactionId) xid);
}

/* The bound of a prepared transaction, and the transaction; 0 if there is none here. */
static uint64
bound_of_prepared(int place, TransactionId *xid)
{
	PreparedWriter *prepared = &prepared_writers(node_slots)[place];
	uint64		full_xid = pg_atomic_read_u64(&prepared->xid);
	uint64		bound;

	*xid = (TransactionId) full_xid;
	pg_read_barrier();
	bound = pg_atomic_read_u64(&prepared->bound);
	return is_in_progress(full_xid) ? bound : 0;
}

/*
 * One of the transactions that are open and have made IDs, for all numbers below that
 * of the words and entries together; pid is 0 for one that is prepared.
 */
bool
writer_report(int number, int *pid, TransactionId *xid, uint64 *bound)
{
	*pid = 0;
	*xid = InvalidTransactionId;
	if (number >= node_slots->n_writers)
	{
		*bound = bound_of_prepared(number - node_slots->n_writers, xid);
		return *bound != 0;
	}
	*bound = bound_of_writer(number);
	*pid = ProcGlobal->allProcs[number].pid;
	return *bound != 0 && *pid != 0;
}

/*
 * The least ID that an open transaction may have made, or above all if there is none.
 *
 * Ordering: the words are read before the entries, see the invariants (litmus: entries).
 */
uint64
writers_bound(void)
{
	uint64		least = UINT64_MAX;
	TransactionId xid;

	for (int i = 0; i < node_slots->n_writers; i++)
		least = least_of(least, first_after(bound_of_writer(i)));
	pg_memory_barrier();
	for (int i = 0; i < node_slots->n_prepared; i++)
		least = least_of(least, first_after(bound_of_prepared(i, &xid)));
	return least;
}

/*
 * Keep a bound for a transaction that is being prepared.
 *
 * Ordering: the bound is written before the xid, for who reads entries alone (litmus:
 * entry-whole), and both before the word is cleared, by after_transaction() or, for its
 * lxid, by PostgreSQL, whose locks in between are no barriers (litmus: entries).  Who
 * finds the bound of a later transaction in an entry finds the one before over (litmus:
 * entry-again).
 */
static void
note_prepared(uint64 own_xid, uint64 bound)
{
	for (int i = 0; i < node_slots->n_prepared; i++)
	{
		PreparedWriter *prepared = &prepared_writers(node_slots)[i];
		uint64		xid = pg_atomic_read_u64(&prepared->xid);

		if (xid == BEING_WRITTEN || is_in_progress(xid) ||
			!pg_atomic_compare_exchange_u64(&prepared->xid, &xid, BEING_WRITTEN))
			continue;
		pg_atomic_write_u64(&prepared->bound, bound);
		pg_write_barrier();
		pg_atomic_write_u64(&prepared->xid, own_xid);
		pg_write_barrier();
		return;
	}
	elog(ERROR, "no place for a prepared transaction that has generated IDs");
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

/* A transaction that was prepared before then, and is not over. */
TransactionId
unknown_writer(void)
{
	for (int i = 0; i < node_slots->n_prepared; i++)
	{
		TransactionId xid;

		if (bound_of_prepared(i, &xid) == UNKNOWN_BOUND)
			return xid;
	}
	return InvalidTransactionId;
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

	session_node.made_after = NOTHING_MADE;
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
