/*-------------------------------------------------------------------------
 *
 * refuse_prepare.c
 *		For the functions of a realm: what calls them is not prepared.
 *
 * A prepared transaction keeps its locks, over restarts too, until somebody ends it.
 * So one holder of a lease could stop all others.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"

PG_FUNCTION_INFO_V1(scru64_refuse_prepare);

/* Whether this transaction has called, and whether any has. */
static bool called = false;
static bool registered = false;

static void
at_transaction_end(XactEvent event, void *arg)
{
	(void) arg;
	if (event == XACT_EVENT_PRE_PREPARE && called)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot PREPARE a transaction that has called a function of a realm"),
				 errdetail("Until it is ended, others who lease from the realm would have to wait."),
				 errhint("Call the function in a transaction of its own, and commit that.")));
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT)
		called = false;
}

/*
 * scru64_realm.refuse_prepare() -> void
 *
 * From here on PREPARE TRANSACTION is an error (0A000) in this transaction.
 */
Datum
scru64_refuse_prepare(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	if (!registered)
		RegisterXactCallback(at_transaction_end, NULL);
	registered = called = true;
	PG_RETURN_VOID();
}
