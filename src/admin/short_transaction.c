/*-------------------------------------------------------------------------
 *
 * short_transaction.c
 *		For the functions of a realm: a transaction that calls them is short.
 *
 * Until it ends, its locks keep other servers waiting.  And a realm's standby, once
 * promoted, trusts the times of the leases that it has: a lease must not reach it long
 * after it was granted.  So the transaction ends by itself, whatever its session does,
 * and it cannot be prepared.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/timeout.h"

#include "clock.h"

/*
 * Longer than scru64_realm.lease() waits for others, and less than the slack that the
 * realm allows for clocks: 30 seconds.
 */
#define LONGEST_MS			15000

PG_FUNCTION_INFO_V1(scru64_keep_short);

/* When this transaction called first, by the monotonic clock; 0 if it has not. */
static int64 called_ms = 0;
static TimeoutId timeout = MAX_TIMEOUTS;

/*
 * In a signal handler: what pg_terminate_backend() does, also while the session is idle.
 *
 * Once the transaction commits, it may wait for the disk and for standbys: terminated then,
 * the session would leave what is committed unacknowledged.  (A subtransaction that ends is
 * not "in a transaction" either, but its transaction goes on.)
 */
static void
terminate_session(void)
{
	if (GetCurrentTransactionNestLevel() == 1 && !IsTransactionState())
		return;
	ProcDiePending = true;
	InterruptPending = true;
	SetLatch(MyLatch);
}

static void
begin_timeout(void)
{
	enable_timeout_after(timeout, (int) Max(LONGEST_MS - (monotonic_ms() - called_ms), 1));
}

/* An error ends all timeouts, and leaves a transaction as it is that has a savepoint. */
static void
at_subtransaction_end(SubXactEvent event, SubTransactionId id, SubTransactionId parent, void *arg)
{
	(void) id;
	(void) parent;
	(void) arg;
	if (event == SUBXACT_EVENT_ABORT_SUB && called_ms != 0)
		begin_timeout();
}

/*
 * Callbacks of other modules may come after this one and wait, as postgres_fdw's waits for
 * the commit of another server.  So the timeout runs until the commit record is written.
 */
static void
at_transaction_end(XactEvent event, void *arg)
{
	(void) arg;
	if (called_ms == 0)
		return;
	if (event == XACT_EVENT_PRE_PREPARE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot PREPARE a transaction that has called a function of a realm"),
				 errdetail("Until it is ended, others who lease from the realm would have to wait."),
				 errhint("Call the function in a transaction of its own, and commit that.")));
	if (event != XACT_EVENT_PRE_COMMIT)
	{
		disable_timeout(timeout, false);
		called_ms = 0;
	}
	else if (monotonic_ms() - called_ms >= LONGEST_MS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("transaction was open for too long after it called a function of a realm"),
				 errdetail("It is at most %d seconds. Nothing was leased, renewed, released or split.",
						   LONGEST_MS / 1000),
				 errhint("Call the function in a transaction of its own, and commit at once.")));
	else
		/* set the timeout anew: it is a time of the clock, which may have been set back */
		begin_timeout();
}

/*
 * scru64_realm_internal.keep_short() -> void
 *
 * From here on this transaction has 15 seconds to commit: then its session is terminated,
 * or the commit is an error (25000).  PREPARE TRANSACTION is one (0A000).
 */
Datum
scru64_keep_short(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	if (called_ms != 0)
		PG_RETURN_VOID();
	if (timeout == MAX_TIMEOUTS)
	{
		timeout = RegisterTimeout(USER_TIMEOUT, terminate_session);
		RegisterXactCallback(at_transaction_end, NULL);
		RegisterSubXactCallback(at_subtransaction_end, NULL);
	}
	called_ms = monotonic_ms();
	begin_timeout();
	PG_RETURN_VOID();
}
