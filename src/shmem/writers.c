/*-------------------------------------------------------------------------
 *
 * writers.c
 *		Which open transactions have issued IDs.
 *
 * Each process has an entry in the shared memory of slots.c, in which it advertises a
 * bound: all IDs that its open transaction has issued are after it.  A transaction that is
 * prepared has no process any more.  So the session copies the bound into a table for
 * prepared transactions, before it clears its entry.
 *
 * What guards what:
 *
 *	Writer.bound		atomic.  The process and its parallel workers lower it; the process
 *						clears it when its transaction is over.
 *	Writer.lxid			atomic.  The transaction that the bound is of, written before the
 *						bound.  A process that has not loaded the library never clears
 *						what its workers have advertised, so readers compare this with
 *						the process's present transaction.
 *	PreparedWriter		NodeSlots.prepared_lock.  Its holder asks PostgreSQL which
 *						transactions are in progress: the places of all others are free.
 *						That may read from disk, and raise; an abort unlocks it.
 *
 * Invariants:
 *
 *	- From before a transaction issues its first ID until no new snapshot finds it in
 *	  progress, there is a bound below all its IDs: in the entry of its process, from the
 *	  preparation on in the table, and for a while in both.
 *
 *	- Whoever reads all entries, and then the table, misses no transaction.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "access/parallel.h"
#include "access/transam.h"
#include "access/twophase.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/procarray.h"

#include "shmem/writers.h"

/* PreparedWriter.bound where nobody knows it: it is below all IDs that are ever issued */
#define UNKNOWN_BOUND		1

/* Of a transaction that has issued no ID */
#define NOTHING_ADVERTISED	UINT64_MAX

uint64		advertised = NOTHING_ADVERTISED;

/* Had the leader of this parallel worker loaded the library when the worker started? */
static bool leader_watches = true;

/* The entry of the session: a parallel worker uses that of its leader. */
static Writer *
entry_of_session(PGPROC **proc)
{
	*proc = IsParallelWorker() ? MyProc->lockGroupLeader : MyProc;
	return &node_slots->writers[compat_proc_number(*proc)];
}

/* Lower a bound, where 0 is above all. */
static void
lower_bound(Writer *writer, uint64 last)
{
	uint64		bound = pg_atomic_read_u64(&writer->bound);

	while ((bound == 0 || bound > last) &&
		   !pg_atomic_compare_exchange_u64(&writer->bound, &bound, last))
		;
}

/*
 * Advertise that all IDs that the session's transaction issues from here on are after last,
 * unless it has advertised less before.
 *
 * Where there was no room for entries, nobody gets a watermark, and this does nothing.
 */
pg_noinline void
advertise(uint64 last)
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
	advertised = node_slots->n_writers > 0 ? last : 0;
	if (node_slots->n_writers == 0)
		return;
	writer = entry_of_session(&proc);
	pg_atomic_write_u32(&writer->lxid, compat_lxid(proc));
	lower_bound(writer, last);
}

/*
 * The bound of a process's open transaction; 0 if there is none.
 *
 * Ordering: none between bound and lxid.  A transaction that the reader must not miss has
 * an ID in a state that the reader has read before.  By that the reader sees all that
 * advertise() and PostgreSQL have written before the ID (litmus: entry-owner).
 */
static uint64
bound_of_entry(int number)
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
 * Report an open transaction that has issued IDs: each number below that of the entries
 * and places together may stand for one.  False if it does not; pid is 0 for a prepared
 * transaction.
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
	*bound = bound_of_entry(number);
	*pid = ProcGlobal->allProcs[number].pid;
	return *bound != 0 && *pid != 0;
}

/*
 * The least ID that an open transaction may have issued, or above all if there is none.
 * *unknown is a transaction whose IDs nobody knows, if there is one.
 *
 * Ordering: a session that prepares its transaction takes the lock, writes to the table,
 * and then clears its entry.  If it has had the lock before, its bound is in the table; if
 * it takes the lock later, its entry was still there (litmus: prepared).
 */
uint64
writers_bound(TransactionId *unknown)
{
	uint64		least = UINT64_MAX;

	*unknown = InvalidTransactionId;
	for (int i = 0; i < node_slots->n_writers; i++)
		least = least_of(least, first_after(bound_of_entry(i)));
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

/* Keep the bound of a transaction that is being prepared, in a place that is free. */
static void
note_prepared(uint64 xid, uint64 bound)
{
	PreparedWriter *prepared = prepared_writers(node_slots);
	int			place = 0;

	LWLockAcquire(&node_slots->prepared_lock, LW_EXCLUSIVE);
	while (place < node_slots->n_prepared && is_in_progress(prepared[place].xid))
		place++;
	if (place == node_slots->n_prepared)
		elog(ERROR, "no place for a prepared transaction that has issued IDs");
	prepared[place] = (PreparedWriter) {.xid = xid, .bound = bound};
	LWLockRelease(&node_slots->prepared_lock);
}

/*
 * Note the transactions that were prepared before the server was started.  Nobody knows
 * their IDs.  To be called once after a start, before an ID is issued.
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
 * The transaction is about to be prepared.  Its parallel workers may have issued IDs,
 * though the session itself has not, and has not attached the shared memory yet.
 */
static void
before_prepare(void)
{
	uint64		bound;

	/* PostgreSQL is about to say so */
	if (max_prepared_xacts == 0)
		return;
	if (!try_slots() || node_slots->n_writers == 0)
		return;
	bound = bound_of_entry(compat_proc_number(MyProc));
	if (bound != 0)
		note_prepared(U64FromFullTransactionId(GetTopFullTransactionId()), bound);
}

/*
 * The transaction is over, or prepared, and every snapshot from now on sees it so:
 * PostgreSQL calls this after it has removed it from the array of processes.
 */
static void
after_transaction(void)
{
	Writer	   *writer;
	PGPROC	   *proc;

	advertised = NOTHING_ADVERTISED;
	if (node_slots == NULL || node_slots->n_writers == 0 || IsParallelWorker())
		return;
	writer = entry_of_session(&proc);
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
 * To be called when the library is loaded.  A parallel worker loads the libraries of its
 * leader when it starts, and others when it needs them.
 */
void
watch_transactions(void)
{
	leader_watches = !IsParallelWorker() || InitializingParallelWorker;
	RegisterXactCallback(at_transaction_event, NULL);
}
