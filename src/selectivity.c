/*-------------------------------------------------------------------------
 *
 * selectivity.c
 *		Row estimates for the inequality operators of scru64.
 *
 * Upper storey.  The estimates are PostgreSQL's own for bigint.  Two things
 * have to be done for them that the planner does by itself only for types and
 * estimators that it knows by OID:
 *
 *	- Within a histogram bin it interpolates on a linear scale, which it has
 *	  for bigint and not for scru64.  So its estimators get the clause
 *	  relabelled as bigint.
 *
 *	- "id >= a AND id < b" is one range, not two independent conditions.  The
 *	  planner pairs the bounds by the names of its own estimators, and
 *	  multiplies what any other estimator returns.  So the estimator here looks
 *	  for the other bound itself: the lower bound gets its own estimate and the
 *	  upper bound the share of the rest, so that their product is the range's.
 *
 * Estimates only: a wrong guess here costs time, never a wrong result.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "pg_compat.h"

#include "access/stratnum.h"
#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/typcache.h"

/* What the planner takes for a range that is empty up to rounding. */
#define TINY_RANGE_SEL		1.0e-10
#define ROUNDING_ERROR		0.01

/* One side's tightest bound on a column, as the share of rows it keeps. */
typedef struct RangeBounds
{
	bool		has_lower;
	bool		has_upper;
	Selectivity lower;
	Selectivity upper;
} RangeBounds;

/* An inequality between a column and something that is constant per scan. */
typedef struct Inequality
{
	Node	   *var;			/* the column, or an expression of columns */
	RelOptInfo *rel;			/* its relation */
	bool		is_upper;		/* does it bound var from above? */
	Selectivity selectivity;	/* core's estimate of it alone */
} Inequality;

PG_FUNCTION_INFO_V1(scru64_ineqsel);

/* Core's estimator of an inequality, by its btree strategy. */
static PGFunction
core_estimator(StrategyNumber strategy)
{
	switch (strategy)
	{
		case BTLessStrategyNumber:
			return scalarltsel;
		case BTLessEqualStrategyNumber:
			return scalarlesel;
		case BTGreaterEqualStrategyNumber:
			return scalargesel;
		case BTGreaterStrategyNumber:
			return scalargtsel;
		default:
			return NULL;
	}
}

static List *
relabel_as_bigint(List *args)
{
	List	   *relabelled = NIL;
	ListCell   *lc;

	foreach(lc, args)
		relabelled = lappend(relabelled,
							 makeRelabelType((Expr *) lfirst(lc), INT8OID, -1,
											 InvalidOid,
											 COERCE_IMPLICIT_CAST));
	return relabelled;
}

/*
 * Take "left operator right" apart and estimate it alone.  False if the
 * operator is no inequality of opfamily, or the clause not of the form
 * "column operator constant" either way round.
 */
static bool
examine_inequality(PlannerInfo *root, Oid opfamily, Oid operator, List *args,
				   int varRelid, Inequality *inequality)
{
	StrategyNumber strategy = get_op_opfamily_strategy(operator, opfamily);
	PGFunction	estimator = core_estimator(strategy);
	VariableStatData vardata;
	Node	   *other;
	bool		varonleft;

	if (estimator == NULL ||
		!get_restriction_variable(root, args, varRelid,
								  &vardata, &other, &varonleft))
		return false;

	inequality->var = vardata.var;
	inequality->rel = vardata.rel;
	inequality->is_upper = (strategy < BTEqualStrategyNumber) == varonleft;
	ReleaseVariableStats(vardata);

	inequality->selectivity =
		DatumGetFloat8(DirectFunctionCall4(estimator,
										   PointerGetDatum(root),
										   ObjectIdGetDatum(operator),
										   PointerGetDatum(relabel_as_bigint(args)),
										   Int32GetDatum(varRelid)));
	return true;
}

static Node *
strip_restrictinfo(Node *clause)
{
	return IsA(clause, RestrictInfo) ?
		(Node *) ((RestrictInfo *) clause)->clause : clause;
}

/*
 * The conditions that are ANDed with the operator expression of these args,
 * itself included; NIL if it is not among clauses.
 */
static List *
find_conjuncts(List *clauses, List *args)
{
	ListCell   *lc;

	foreach(lc, clauses)
	{
		Node	   *clause = strip_restrictinfo((Node *) lfirst(lc));
		List	   *found = NIL;

		if (IsA(clause, OpExpr) && ((OpExpr *) clause)->args == args)
			return clauses;

		if (is_andclause(clause))
			found = find_conjuncts(((BoolExpr *) clause)->args, args);
		else if (is_orclause(clause))
		{
			ListCell   *arm;

			foreach(arm, ((BoolExpr *) clause)->args)
			{
				found = find_conjuncts(list_make1(lfirst(arm)), args);
				if (found != NIL)
					break;
			}
		}
		if (found != NIL)
			return found;
	}
	return NIL;
}

/* Keep the tighter bound of each side, as core does. */
static void
add_bound(RangeBounds *bounds, const Inequality *inequality)
{
	if (inequality->is_upper)
	{
		if (!bounds->has_upper || inequality->selectivity < bounds->upper)
			bounds->upper = inequality->selectivity;
		bounds->has_upper = true;
	}
	else
	{
		if (!bounds->has_lower || inequality->selectivity < bounds->lower)
			bounds->lower = inequality->selectivity;
		bounds->has_lower = true;
	}
}

/* All bounds on the column of an inequality among the clauses. */
static RangeBounds
collect_bounds(PlannerInfo *root, Oid opfamily, List *clauses, int varRelid,
			   const Inequality *inequality)
{
	RangeBounds bounds = {0};
	ListCell   *lc;

	foreach(lc, clauses)
	{
		Node	   *clause = strip_restrictinfo((Node *) lfirst(lc));
		OpExpr	   *op = (OpExpr *) clause;
		Inequality	other;

		if (IsA(clause, OpExpr) &&
			examine_inequality(root, opfamily, op->opno, op->args, varRelid,
							   &other) &&
			equal(other.var, inequality->var))
			add_bound(&bounds, &other);
	}
	return bounds;
}

/* The share of rows between two bounds, as clauselist_selectivity() has it. */
static Selectivity
range_selectivity(PlannerInfo *root, Node *var, int varRelid,
				  const RangeBounds *bounds)
{
	Selectivity range;

	/* exactly the default: the estimator knew nothing */
	if (bounds->lower == DEFAULT_INEQ_SEL || bounds->upper == DEFAULT_INEQ_SEL)
		return DEFAULT_RANGE_INEQ_SEL;

	range = bounds->lower + bounds->upper - 1.0;
	/* both bounds left the nulls out */
	range += nulltestsel(root, IS_NULL, var, varRelid, JOIN_INNER, NULL);

	if (range > 0.0)
		return range;
	return range < -ROUNDING_ERROR ? DEFAULT_RANGE_INEQ_SEL : TINY_RANGE_SEL;
}

/*
 * scru64_ineqsel(internal, oid, internal, integer) -> float8
 *
 * RESTRICT estimator of < <= >= >.
 */
Datum
scru64_ineqsel(PG_FUNCTION_ARGS)
{
	PlannerInfo *root = (PlannerInfo *) PG_GETARG_POINTER(0);
	Oid			operator = PG_GETARG_OID(1);
	List	   *args = (List *) PG_GETARG_POINTER(2);
	int			varRelid = PG_GETARG_INT32(3);
	Oid			lefttype;
	Oid			righttype;
	Oid			opfamily;
	Inequality	inequality;
	RangeBounds bounds;
	List	   *conjuncts;
	Selectivity result;

	op_input_types(operator, &lefttype, &righttype);
	opfamily = lookup_type_cache(lefttype, TYPECACHE_BTREE_OPFAMILY)->btree_opf;

	if (!examine_inequality(root, opfamily, operator, args, varRelid,
							&inequality))
		PG_RETURN_FLOAT8(DEFAULT_INEQ_SEL);

	/*
	 * An index path may ask about a commuted copy of a clause.  It is not
	 * found, but what it is ANDed with is the relation's own list then.
	 */
	conjuncts = find_conjuncts(inequality.rel->baserestrictinfo, args);
	if (conjuncts == NIL)
		conjuncts = inequality.rel->baserestrictinfo;
	bounds = collect_bounds(root, opfamily, conjuncts, varRelid, &inequality);
	add_bound(&bounds, &inequality);

	if (inequality.selectivity >
		(inequality.is_upper ? bounds.upper : bounds.lower))
		result = 1.0;			/* a tighter bound makes this one redundant */
	else if (inequality.is_upper && bounds.has_lower && bounds.lower > 0.0)
		result = range_selectivity(root, inequality.var, varRelid, &bounds) /
			bounds.lower;
	else
		result = inequality.selectivity;

	CLAMP_PROBABILITY(result);
	PG_RETURN_FLOAT8(result);
}
