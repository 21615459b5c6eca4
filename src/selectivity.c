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
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/typcache.h"

/* What the planner takes for a range that is empty up to rounding. */
#define TINY_RANGE_SEL		1.0e-10
#define ROUNDING_ERROR		0.01

/* An inequality between a column and something that has none of its relation. */
typedef struct Inequality
{
	Node	   *var;			/* the column, or an expression of columns */
	RelOptInfo *rel;			/* its relation */
	bool		is_upper;		/* does it bound var from above? */
	bool		is_simple;		/* is the other side a constant, or as good? */
	List	   *args;			/* both, as the clause has them */
	Selectivity selectivity;	/* core's estimate of it alone */
} Inequality;

/* The tightest bound of each side; args is NIL where there is none. */
typedef struct RangeBounds
{
	Inequality	lower;
	Inequality	upper;
} RangeBounds;

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

/* The same, as bigint.  Core looks below one relabelling, a domain's say. */
static Expr *
relabel_as_bigint(Expr *arg)
{
	while (IsA(arg, RelabelType))
		arg = ((RelabelType *) arg)->arg;
	return (Expr *) makeRelabelType(arg, INT8OID, -1, InvalidOid,
									COERCE_IMPLICIT_CAST);
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
	List	   *bigint_args;

	if (estimator == NULL ||
		!get_restriction_variable(root, args, varRelid,
								  &vardata, &other, &varonleft))
		return false;

	inequality->var = vardata.var;
	inequality->rel = vardata.rel;
	inequality->args = args;
	inequality->is_upper = (strategy < BTEqualStrategyNumber) == varonleft;
	inequality->is_simple = is_pseudo_constant_clause(other);
	ReleaseVariableStats(vardata);

	bigint_args = list_make1(relabel_as_bigint(linitial(args)));
	bigint_args = lappend(bigint_args, relabel_as_bigint(lsecond(args)));
	inequality->selectivity =
		DatumGetFloat8(DirectFunctionCall4(estimator,
										   PointerGetDatum(root),
										   ObjectIdGetDatum(operator),
										   PointerGetDatum(bigint_args),
										   Int32GetDatum(varRelid)));
	return true;
}

static Node *
strip_restrictinfo(Node *clause)
{
	return IsA(clause, RestrictInfo) ?
		(Node *) ((RestrictInfo *) clause)->clause : clause;
}

/* What find_conjuncts() looks for, and what it has found. */
typedef struct ConjunctSearch
{
	List	   *args;			/* of the operator expression */
	List	   *conjuncts;		/* what it is ANDed with, itself included */
} ConjunctSearch;

static bool find_conjuncts_walker(Node *node, ConjunctSearch *search);

/* Look for the operator expression among clauses that are ANDed. */
static bool
find_conjuncts(List *clauses, ConjunctSearch *search)
{
	ListCell   *lc;

	foreach(lc, clauses)
	{
		Node	   *clause = strip_restrictinfo((Node *) lfirst(lc));

		if (IsA(clause, OpExpr) && ((OpExpr *) clause)->args == search->args)
		{
			search->conjuncts = clauses;
			return true;
		}
	}
	foreach(lc, clauses)
	{
		Node	   *clause = strip_restrictinfo((Node *) lfirst(lc));

		if (expression_tree_walker(clause, find_conjuncts_walker, search))
			return true;
	}
	return false;
}

/* The same below OR, NOT, IS TRUE and whatever else has conditions in it. */
static bool
find_conjuncts_walker(Node *node, ConjunctSearch *search)
{
	if (node == NULL)
		return false;
	if (is_andclause(node))
		return find_conjuncts(((BoolExpr *) node)->args, search);
	return find_conjuncts(list_make1(node), search);
}

/*
 * What an operator expression of these args is ANDed with, itself included.
 * NIL if that is not known.
 */
static List *
conjuncts_of(PlannerInfo *root, RelOptInfo *rel, List *args)
{
	ConjunctSearch search = {.args = args};

	/* the last is for what is filtered after an outer join */
	if (!find_conjuncts(rel->baserestrictinfo, &search) &&
		!find_conjuncts((List *) root->parse->havingQual, &search))
		(void) find_conjuncts(rel->joininfo, &search);
	return search.conjuncts;
}

/* Keep the tighter bound of each side, as core does; of equal ones the first. */
static void
add_bound(RangeBounds *bounds, const Inequality *inequality)
{
	Inequality *bound = inequality->is_upper ? &bounds->upper : &bounds->lower;

	if (bound->args == NIL || inequality->selectivity < bound->selectivity)
		*bound = *inequality;
}

/* The same, but of equal ones the last. */
static void
replace_bound(RangeBounds *bounds, const Inequality *inequality)
{
	Inequality *bound = inequality->is_upper ? &bounds->upper : &bounds->lower;

	if (bound->args == NIL || inequality->selectivity <= bound->selectivity)
		*bound = *inequality;
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
			other.is_simple && equal(other.var, inequality->var))
			add_bound(&bounds, &other);
	}
	return bounds;
}

/* The share of rows between two bounds, as clauselist_selectivity() has it. */
static Selectivity
range_selectivity(PlannerInfo *root, int varRelid, const RangeBounds *bounds)
{
	Selectivity lower = bounds->lower.selectivity;
	Selectivity upper = bounds->upper.selectivity;
	Selectivity range;

	/* exactly the default: the estimator knew nothing */
	if (lower == DEFAULT_INEQ_SEL || upper == DEFAULT_INEQ_SEL)
		return DEFAULT_RANGE_INEQ_SEL;

	range = lower + upper - 1.0;
	/* both bounds left the nulls out */
	range += nulltestsel(root, IS_NULL, bounds->lower.var, varRelid,
						 JOIN_INNER, NULL);

	if (range > 0.0)
		return range;
	return range < -ROUNDING_ERROR ? DEFAULT_RANGE_INEQ_SEL : TINY_RANGE_SEL;
}

/*
 * The share that an inequality keeps of the rows that the other conditions on
 * its column, among bounds, have kept.
 */
static Selectivity
share_of_bounds(PlannerInfo *root, int varRelid, const Inequality *inequality,
				const RangeBounds *bounds)
{
	const Inequality *tightest = inequality->is_upper ?
		&bounds->upper : &bounds->lower;

	/* another one makes this one redundant, as tight and before it, or tighter */
	if (tightest->args != inequality->args)
		return 1.0;
	if (inequality->is_upper && bounds->lower.args != NIL &&
		bounds->lower.selectivity > 0.0)
		return range_selectivity(root, varRelid, bounds) /
			bounds->lower.selectivity;
	return inequality->selectivity;
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
	/* core pairs no others either */
	if (!inequality.is_simple)
		PG_RETURN_FLOAT8(inequality.selectivity);

	conjuncts = conjuncts_of(root, inequality.rel, args);
	if (conjuncts != NIL)
		bounds = collect_bounds(root, opfamily, conjuncts, varRelid,
								&inequality);
	else
	{
		/*
		 * An index path may ask about a commuted copy of a clause.  It takes the
		 * place of its like among the relation's conditions.
		 */
		bounds = collect_bounds(root, opfamily,
								inequality.rel->baserestrictinfo, varRelid,
								&inequality);
		replace_bound(&bounds, &inequality);
	}
	result = share_of_bounds(root, varRelid, &inequality, &bounds);
	CLAMP_PROBABILITY(result);
	PG_RETURN_FLOAT8(result);
}
