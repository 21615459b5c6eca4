/*-------------------------------------------------------------------------
 *
 * generate_support.c
 *		Planner support of scru64_generate(): COPY FROM inserts many rows at a time.
 *
 * COPY inserts row by row where a column's default is volatile, because the default might
 * read the table.  PostgreSQL makes an exception for nextval(), and for no other function.
 * scru64_generate() reads no table either.  So while the session's statement is COPY, a call
 * becomes, in an expression that is planned alone, without a query, as COPY's defaults are,
 *
 *		COALESCE(scru64_generate_in_copy(internal), nextval)
 *
 * The first function is declared STABLE, and never returns null.  So the nextval is never
 * evaluated, and needs no sequence.  It keeps the expression volatile.
 *
 * Invariant: the planner generates no ID.  To estimate rows, it plans expressions alone, too,
 * and evaluates what is STABLE in them, unless an argument is no constant.  So the first
 * function gets an argument of which only the executor has the value, and ignores it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/supportnodes.h"
#include "tcop/pquery.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(scru64_generate_support);

/* Without a check of privileges on the schema, which no default needs. */
static Oid
find_generate_in_copy(void)
{
	Oid			internal = INTERNALOID;

	return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
						   CStringGetDatum("scru64_generate_in_copy"),
						   PointerGetDatum(buildoidvector(&internal, 1)),
						   ObjectIdGetDatum(PG_CATALOG_NAMESPACE));
}

/*
 * May all roles execute both functions?  Else the call stays as it is, and the executor checks the
 * privilege of each role: a session plans the CHECK of a domain once, and all its roles use that.
 */
static bool
all_may_execute(Oid generate, Oid in_copy)
{
	return compat_may_execute(generate, ACL_ID_PUBLIC) &&
		compat_may_execute(in_copy, ACL_ID_PUBLIC);
}

/* An argument for scru64_generate_in_copy() */
static Expr *
argument_for_executor(void)
{
	CaseTestExpr *argument = makeNode(CaseTestExpr);

	argument->typeId = INTERNALOID;
	argument->typeMod = -1;
	return (Expr *) argument;
}

/* nextval() of no sequence, as a value of this type: not to be evaluated */
static Expr *
volatile_expression(Oid type)
{
	NextValueExpr *next = makeNode(NextValueExpr);

	next->typeId = INT8OID;
	return (Expr *) makeRelabelType((Expr *) next, type, -1, InvalidOid, COERCE_IMPLICIT_CAST);
}

/*
 * Other statements keep the call as it is: Citus plans parts of an INSERT alone, and evaluates
 * each part.
 */
static bool
statement_is_copy(void)
{
	return ActivePortal != NULL && ActivePortal->commandTag == CMDTAG_COPY;
}

/* scru64_generate_support(internal) -> internal */
Datum
scru64_generate_support(PG_FUNCTION_ARGS)
{
	SupportRequestSimplify *request = (SupportRequestSimplify *) PG_GETARG_POINTER(0);
	const FuncExpr *call;
	Oid			in_copy;
	FuncExpr   *replacement;
	CoalesceExpr *result;

	if (!IsA(request, SupportRequestSimplify) || request->root != NULL || !statement_is_copy())
		PG_RETURN_POINTER(NULL);
	call = request->fcall;
	in_copy = find_generate_in_copy();
	if (!OidIsValid(in_copy) || !all_may_execute(call->funcid, in_copy))
		PG_RETURN_POINTER(NULL);

	replacement = makeFuncExpr(in_copy, call->funcresulttype,
							   list_make1(argument_for_executor()),
							   InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
	result = makeNode(CoalesceExpr);
	result->coalescetype = call->funcresulttype;
	result->args = lappend(list_make1(replacement), volatile_expression(call->funcresulttype));
	result->location = call->location;
	PG_RETURN_POINTER(result);
}
