/*-------------------------------------------------------------------------
 *
 * short_transaction.c
 *		For the functions of a realm: a transaction that calls them ends with its statement, is
 *		durable, and short.
 *
 * It ends with its statement, as that of VACUUM: until it ends, its locks keep other servers
 * waiting, and its holder must not use a lease that may still be rolled back.
 *
 * Durable: its commit is acknowledged when it is on disk, and on those of synchronous
 * standbys.  Otherwise a crash or a failover could lose a lease that its holder uses.
 *
 * Short: a promoted standby of a realm may lack the newest leases.  Before it grants any, it waits
 * until they must be over, and computes how long from the leases that it has (begin_wait() and
 * longest_wait() in scru64_realm's script).  So a lease must not reach the standby long after it
 * was granted.
 *
 * The statement may go on after the call, and set what it likes.  So the commit looks again at the
 * time, and makes itself durable; and a timeout ends a statement that does not come to its commit.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

#include "clock.h"

/*
 * Longer than scru64_realm.lease() waits for others, and less than the slack that the
 * realm allows for clocks: 30 seconds.
 */
#define LONGEST_MS			15000

/*
 * Then the statement is canceled, in such intervals and so often, and then, after 18 seconds, its
 * session terminated.  The owner's functions wait for calls for longer: 20 seconds.
 */
#define AGAIN_MS			1000
#define CANCELLATIONS		3

#define CHANGES				"functions that change a realm"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(scru64_begin_change);

/* Has this transaction called scru64_begin_change()? */
static bool is_change = false;

/* Since when it has to be short, by the monotonic clock; 0 if it need not be. */
static int64 called_ms = 0;

static TimeoutId timeout;
static volatile sig_atomic_t times_ended;

/*
 * In a signal handler: cancel the statement as statement_timeout does.  One may go on even then,
 * since it catches the error, or waits for its client: terminate its session.
 *
 * From before its record on, a commit is left alone: canceled, it would not wait for standbys.
 * (A subtransaction that ends is not "in a transaction" either, but its transaction goes on.)
 */
static void
end_statement(void)
{
	if (IsTransactionState() || GetCurrentTransactionNestLevel() > 1)
		kill(MyProcPid, times_ended++ < CANCELLATIONS ? SIGINT : SIGTERM);
}

static void
begin_timeout(int64 left_ms)
{
	times_ended = 0;
	enable_timeout_every(timeout, TimestampTzPlusMilliseconds(GetCurrentTimestamp(), left_ms),
						 AGAIN_MS);
}

static void
must_not_be_in_block(void)
{
	/* or a pipeline, which is one in all but name */
	if (IsInTransactionBlock(true))
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("%s cannot run inside a transaction block", CHANGES),
				 errdetail("Other callers might wait until the block ends, and a rollback would undo what the function has returned."),
				 errhint("Call the function in a statement of its own, with autocommit, and outside of blocks with EXCEPTION.")));
}

/*
 * Callbacks of other modules may come after this one and wait, as postgres_fdw's waits for the
 * commit of another server, and a NOTIFY waits for other commits.  So the timeout goes on.
 */
static void
must_be_short(void)
{
	int64		left_ms = LONGEST_MS - (monotonic_ms() - called_ms);

	if (left_ms <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("statement took too long after it called a function of a realm"),
				 errdetail("It takes at most %d seconds. The realm was not changed.", LONGEST_MS / 1000),
				 errhint("Call the function in a statement of its own.")));
	/* anew: it is a time of the clock, which may have been set back */
	begin_timeout(left_ms);
}

/* Whatever the caller has set: the commit waits for the disk and for synchronous standbys. */
static void
make_durable(void)
{
	if (synchronous_commit < SYNCHRONOUS_COMMIT_REMOTE_FLUSH)
		(void) set_config_option("synchronous_commit", "on", PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_LOCAL, true, 0, false);
}

static void
at_transaction_end(XactEvent event, void *arg)
{
	(void) arg;
	switch (event)
	{
		case XACT_EVENT_PRE_PREPARE:
			/* a block that has begun after the call */
			if (is_change)
				must_not_be_in_block();
			break;
		case XACT_EVENT_PRE_COMMIT:
			if (called_ms != 0)
				must_be_short();
			if (is_change)
				make_durable();
			break;
		default:
			if (called_ms != 0)
				disable_timeout(timeout, false);
			is_change = false;
			called_ms = 0;
	}
}

/*
 * Indexes and materialized views call as their owner, but in the session of any role: a
 * superuser's REFRESH, or autovacuum.  A realm takes the role of the session for the caller.
 */
static void
must_not_be_restricted(void)
{
	if (InSecurityRestrictedOperation())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("cannot execute %s within security-restricted operation", CHANGES),
				 errdetail("An index or a materialized view may call in the session of another role than its owner."),
				 errhint("Call the function in a statement of its own.")));
}

/* Whoever waits for others has to see the leases and settings that those commit. */
static void
must_see_others(void)
{
	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("cannot change a realm in a transaction with isolation level %s",
						GetConfigOption("transaction_isolation", false, false)),
				 errdetail("It does not see what others have committed since it began."),
				 errhint("Use isolation level read committed.")));
}

static void
watch_transaction(void)
{
	static bool is_watching = false;

	if (is_watching)
		return;
	timeout = RegisterTimeout(USER_TIMEOUT, end_statement);
	RegisterXactCallback(at_transaction_end, NULL);
	is_watching = true;
}

/*
 * scru64_realm_internal.begin_change(is_short boolean) -> void
 *
 * If it is to be short, the transaction has 15 seconds from here on to commit.
 */
Datum
scru64_begin_change(PG_FUNCTION_ARGS)
{
	PreventCommandDuringRecovery(CHANGES);
	must_not_be_restricted();
	must_not_be_in_block();
	must_see_others();
	watch_transaction();
	/* a client that sends no Sync does not keep the transaction open, either */
	PreventInTransactionBlock(true, CHANGES);
	is_change = true;
	if (PG_GETARG_BOOL(0) && called_ms == 0)
	{
		called_ms = monotonic_ms();
		begin_timeout(LONGEST_MS);
	}
	PG_RETURN_VOID();
}
