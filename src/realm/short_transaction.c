/*-------------------------------------------------------------------------
 *
 * short_transaction.c
 *		For the functions of a realm: a transaction that calls them is durable, and short.
 *
 * Durable: its commit is acknowledged when it is on disk, and on those of synchronous
 * standbys.  Otherwise a crash or a failover could lose a lease that its holder uses.
 *
 * Short: until it ends, its locks keep other servers waiting.  And a promoted standby of a realm
 * may lack the newest leases.  Before it grants any, it waits until they must be over, and computes
 * how long from the leases that it has (begin_wait() and longest_wait() in scru64_realm's script).
 * So a lease must not reach the standby long after it was granted.  A timeout ends the session of
 * a transaction that stays open, and the transaction cannot be prepared.
 *
 * The caller can change every setting between the call and the commit.  So both are
 * checked again when the transaction commits.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include <signal.h>

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/resowner.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

#include "clock.h"

/*
 * Longer than scru64_realm.lease() waits for others, and less than the slack that the
 * realm allows for clocks: 30 seconds.
 */
#define LONGEST_MS			15000

/* How often the session is terminated, until it ends */
#define AGAIN_MS			1000

#define TOO_LONG_MESSAGE	"transaction was open for too long after it called a function of a realm"
#define TOO_LONG_DETAIL		"It is at most %d seconds. Nothing was changed in the realm."
#define TOO_LONG_HINT		"Call the function in a transaction of its own, and commit at once."

PG_FUNCTION_INFO_V1(scru64_keep_durable);
PG_FUNCTION_INFO_V1(scru64_keep_short);

/* Has this transaction called scru64_keep_durable()? */
static bool is_durable = false;

/* When this transaction called first, by the monotonic clock; 0 if it has not. */
static int64 called_ms = 0;
/* The subtransaction whose end releases all that the calls hold */
static SubTransactionId called_in;
static TimeoutId timeout;
static volatile sig_atomic_t is_terminated = false;

static emit_log_hook_type prev_emit_log_hook = NULL;

static void
begin_timeout(void)
{
	int64		left_ms = Max(LONGEST_MS - (monotonic_ms() - called_ms), 1);

	enable_timeout_every(timeout, TimestampTzPlusMilliseconds(GetCurrentTimestamp(), left_ms),
						 AGAIN_MS);
}

/*
 * An error is about to be reported, to the log and to the client.
 *
 * The one that ends the session says why.  Any other that no function has caught has ended all
 * timeouts, and perhaps ends nothing else, as in a subtransaction that has failed before: begin
 * the timeout again.  PostgreSQL does not call this where log_min_messages, which only
 * superusers set, leaves errors out.
 */
static void
at_report(ErrorData *edata)
{
	if (is_terminated && edata->elevel == FATAL && edata->sqlerrcode == ERRCODE_ADMIN_SHUTDOWN)
	{
		MemoryContext context = MemoryContextSwitchTo(edata->assoc_context);

		edata->sqlerrcode = ERRCODE_INVALID_TRANSACTION_STATE;
		edata->message = pstrdup(TOO_LONG_MESSAGE);
		edata->detail = psprintf(TOO_LONG_DETAIL, LONGEST_MS / 1000);
		edata->hint = pstrdup(TOO_LONG_HINT);
		MemoryContextSwitchTo(context);
	}
	else if (called_ms != 0 && edata->elevel == ERROR)
		begin_timeout();
	if (prev_emit_log_hook)
		prev_emit_log_hook(edata);
}

/*
 * In a signal handler: what pg_terminate_backend() does, also while the session is idle.
 *
 * Once the transaction commits, it may wait for the disk and for standbys: terminated then,
 * the session would leave what is committed unacknowledged.  (A subtransaction that ends is
 * not "in a transaction" either, but its transaction goes on.)
 *
 * While a session sends an error to a client that does not read, the session holds interrupts, and
 * cannot be terminated.  The second time, end the connection: the session's write fails.  (The
 * caller of this handler holds interrupts, too, hence more than 1.)
 */
static void
terminate_session(void)
{
	if (GetCurrentTransactionNestLevel() <= 1 && !IsTransactionState())
		return;
	if (is_terminated && InterruptHoldoffCount > 1)
		compat_end_connection();
	is_terminated = true;
	ProcDiePending = true;
	InterruptPending = true;
	SetLatch(MyLatch);
}

static void
end_timeout(void)
{
	if (called_ms != 0)
		disable_timeout(timeout, false);
	called_ms = 0;
}

/*
 * If the subtransaction that has called is rolled back, the locks that other calls wait for are
 * gone, and what it has leased.  Otherwise begin the timeout again, as at_report() does.
 */
static void
at_subtransaction_event(SubXactEvent event, SubTransactionId id, SubTransactionId parent,
						void *arg)
{
	(void) arg;
	if (called_ms == 0)
		return;
	if (event == SUBXACT_EVENT_ABORT_SUB && id == called_in)
		end_timeout();
	else
		begin_timeout();
	if (event == SUBXACT_EVENT_COMMIT_SUB && id == called_in)
		called_in = parent;
}

static void
must_not_prepare(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cannot PREPARE a transaction that has called a function of a realm"),
			 errdetail("Others who lease from the realm might have to wait for its end, and its commit might not be durable."),
			 errhint("Call the function in a transaction of its own, and commit that.")));
}

/*
 * Callbacks of other modules may come after this one and wait, as postgres_fdw's waits for
 * the commit of another server.  So the timeout runs until the commit record is written.
 */
static void
must_be_short(void)
{
	if (monotonic_ms() - called_ms >= LONGEST_MS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg(TOO_LONG_MESSAGE),
				 errdetail(TOO_LONG_DETAIL, LONGEST_MS / 1000),
				 errhint(TOO_LONG_HINT)));
	/* set the timeout anew: it is a time of the clock, which may have been set back */
	begin_timeout();
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
			if (called_ms != 0 || is_durable)
				must_not_prepare();
			break;
		case XACT_EVENT_PRE_COMMIT:
			if (called_ms != 0)
				must_be_short();
			if (is_durable)
				make_durable();
			break;
		default:
			end_timeout();
			is_durable = false;
			/* not after an abort: the session is yet to end, and to say why */
			if (event == XACT_EVENT_COMMIT)
				is_terminated = false;
	}
}

static void
watch_transaction(void)
{
	static bool is_watching = false;

	if (is_watching)
		return;
	timeout = RegisterTimeout(USER_TIMEOUT, terminate_session);
	RegisterXactCallback(at_transaction_end, NULL);
	RegisterSubXactCallback(at_subtransaction_event, NULL);
	/* last: what comes before may raise, and is then repeated */
	prev_emit_log_hook = emit_log_hook;
	emit_log_hook = at_report;
	is_watching = true;
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
				 errmsg("cannot execute functions that change a realm within security-restricted operation"),
				 errdetail("An index or a materialized view may call in the session of another role than its owner."),
				 errhint("Call the function in a transaction of its own, and commit that.")));
}

/*
 * scru64_realm_internal.keep_durable() -> void
 *
 * The commit of this transaction is acknowledged when it is on disk, and on those of synchronous
 * standbys.  PostgreSQL waits only for transactions that have an ID, and setval() gives none.
 */
Datum
scru64_keep_durable(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	watch_transaction();
	PreventCommandDuringRecovery("functions that change a realm");
	must_not_be_restricted();
	(void) GetTopFullTransactionId();
	is_durable = true;
	PG_RETURN_VOID();
}

/*
 * Does the end of the current subtransaction release what this call holds?  Not if a cursor
 * that is older than the subtransaction calls (DECLARE, SAVEPOINT, FETCH): the locks are the
 * cursor's.
 */
static bool
belongs_to_subtransaction(void)
{
	ResourceOwner owner = CurrentResourceOwner;

	while (owner != NULL && owner != CurTransactionResourceOwner)
		owner = ResourceOwnerGetParent(owner);
	return owner != NULL;
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
	if (called_ms == 0)
	{
		watch_transaction();
		called_ms = monotonic_ms();
		called_in = GetCurrentSubTransactionId();
		begin_timeout();
	}
	if (!belongs_to_subtransaction())
		called_in = TopSubTransactionId;
	PG_RETURN_VOID();
}
