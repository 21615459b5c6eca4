/*-------------------------------------------------------------------------
 *
 * selectivity.c
 *		Row estimates for the inequality operators of scru64.
 *
 * The estimates are PostgreSQL's own for bigint.  The planner does two things for
 * types and estimators that it knows by OID, and for no others:
 *
 *	- It interpolates within a histogram bin, on a linear scale.  So its
 *	  estimators get the operands relabelled as bigint.
 *
 *	- It takes "id >= a AND id < b" for one range, and not for two independent
 *	  conditions whose estimates it multiplies.  So the estimator here finds the
 *	  other bound itself: the lower bound gets its own estimate and the upper
 *	  bound the share of the rest, and their product is the range's.
 *
 * The planner asks about one condition at a time and does not say with which others
 * it is ANDed.  So the first call for a relation reads the relation's conditions, and
 * estimates all bounds that are ANDed.  Later calls find these in a hash table, which
 * goes with the planner's memory.  A condition that is not there is estimated alone: one
 * that is ORed, or one that the planner makes up, as for each element of an ANY.  No list
 * of conditions is read twice, so planning time grows with the number of conditions as it
 * does for bigint.
 *
 * Estimates only: a wrong guess here costs time, never a wrong result.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "access/stratnum.h"
#include "catalog/pg_type_d.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/fmgrprotos.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/selfuncs.h"
#include "utils/typcache.h"

/* A bound of a column; or, without a share, conditions that have been read. */
typedef struct Bound
{
	List	   *key;			/* the operator's arguments, or the conditions */
	Selectivity share;			/* of the rows that the other bounds have kept */
} Bound;

/* The lower and the upper bound of a column, where conditions are ANDed. */
typedef struct Range
{
	Node	   *column;
	Bound	   *lower;
	Bound	   *upper;
} Range;

/* What is planned in a memory context, which this is in. */
typedef struct Planning
{
	struct Planning *outer;		/* began before */
	HTAB	   *bounds;
	MemoryContextCallback end;
} Planning;

typedef struct Call
{
	PlannerInfo *root;
	Oid			opfamily;		/* btree, of the type */
	HTAB	   *bounds;
} Call;

PG_FUNCTION_INFO_V1(scru64_ineqsel);

/* Core's estimators, by btree strategy; NULL for other strategies. */
static const PGFunction core_estimators[BTMaxStrategyNumber + 1] = {
	[BTLessStrategyNumber] = scalarltsel,
	[BTLessEqualStrategyNumber] = scalarlesel,
	[BTGreaterEqualStrategyNumber] = scalargesel,
	[BTGreaterStrategyNumber] = scalargtsel
};

/* A function that gives a value may have a query planned while another one is. */
static Planning *plannings = NULL;

/* The memory of a planning is about to be freed. */
static void
forget(void *planning)
{
	Planning  **link = &plannings;

	while (*link != planning)
		link = &(*link)->outer;
	*link = (*link)->outer;
}

/* The bounds so far. */
static HTAB *
bounds_of_planning(MemoryContext planner_cxt)
{
	Planning   *planning = plannings;

	while (planning != NULL && GetMemoryChunkContext(planning) != planner_cxt)
		planning = planning->outer;
	if (planning == NULL)
	{
		HASHCTL		ctl = {
			.keysize = sizeof(List *),
			.entrysize = sizeof(Bound),
			.hcxt = planner_cxt
		};

		planning = MemoryContextAlloc(planner_cxt, sizeof(*planning));
		planning->outer = plannings;
		planning->bounds = hash_create("scru64 bounds", 16, &ctl,
									   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
		planning->end.func = forget;
		planning->end.arg = planning;
		MemoryContextRegisterResetCallback(planner_cxt, &planning->end);
		plannings = planning;
	}
	return planning->bounds;
}

/* Core's estimate of an inequality, whatever else is known of the column. */
static Selectivity
estimate_alone(PlannerInfo *root, Oid operator, int strategy, List *args, int varRelid)
{
	List	   *relabelled = NIL;
	ListCell   *lc;

	foreach(lc, args)
		relabelled = lappend(relabelled, applyRelabelType(lfirst(lc), INT8OID, -1, InvalidOid,
														  COERCE_IMPLICIT_CAST, -1, false));
	return DatumGetFloat8(DirectFunctionCall4(core_estimators[strategy],
											  PointerGetDatum(root),
											  ObjectIdGetDatum(operator),
											  PointerGetDatum(relabelled),
											  Int32GetDatum(varRelid)));
}

/*
 * Make the product of two bounds' shares the range's, as clauselist_selectivity()
 * has it.  The lower bound keeps its own as far as it can.
 */
static void
pair_bounds(PlannerInfo *root, const Range *range)
{
	Bound	   *lower = range->lower;
	Bound	   *upper = range->upper;
	Selectivity both;

	if (lower == NULL || upper == NULL)
		return;

	/*
	 * Exactly the default: the estimator knew nothing.  Where constants have 80
	 * bits, as on i386, a double is never equal to it, in core neither.
	 */
	if (lower->share == DEFAULT_INEQ_SEL || upper->share == DEFAULT_INEQ_SEL)
		both = DEFAULT_RANGE_INEQ_SEL;
	else
	{
		/* both bounds left the nulls out */
		both = lower->share + upper->share - 1.0 +
			nulltestsel(root, IS_NULL, range->column, 0, JOIN_INNER, NULL);
		/* empty up to rounding, or bounds that were estimated in different ways */
		if (both <= 0.0)
			both = both < -0.01 ? DEFAULT_RANGE_INEQ_SEL : 1.0e-10;
	}
	lower->share = Max(lower->share, both);
	upper->share = both / lower->share;
}

/* If a condition is a bound and has no estimate yet, estimate it. */
static void
estimate_bound(const Call *call, OpExpr *op, List **ranges)
{
	int			strategy = get_op_opfamily_strategy(op->opno, call->opfamily);
	bool		varonleft;
	bool		found;
	Node	   *column;
	Bound	   *bound;
	ListCell   *lc;
	Range	   *range;
	Bound	  **tightest;

	/* only bounds of one relation make a range */
	if (core_estimators[strategy] == NULL || NumRelids(call->root, (Node *) op) != 1)
		return;
	varonleft = is_pseudo_constant_clause(lsecond(op->args));
	if (!varonleft && !is_pseudo_constant_clause(linitial(op->args)))
		return;
	column = varonleft ? linitial(op->args) : lsecond(op->args);
	bound = hash_search(call->bounds, &op->args, HASH_ENTER, &found);
	if (found)
		return;
	bound->share = estimate_alone(call->root, op->opno, strategy, op->args, 0);

	foreach(lc, *ranges)
		if (equal(((Range *) lfirst(lc))->column, column))
			break;
	if (lc != NULL)
		range = lfirst(lc);
	else
	{
		range = palloc0(sizeof(*range));
		range->column = column;
		*ranges = lappend(*ranges, range);
	}
	tightest = (strategy < BTEqualStrategyNumber) == varonleft ? &range->upper : &range->lower;
	if (*tightest == NULL)
		*tightest = bound;
	else
	{
		/* of two, the one that keeps more is redundant */
		(*tightest)->share = Min((*tightest)->share, bound->share);
		bound->share = 1.0;
	}
}

/* Estimate the bounds among conditions that are ANDed. */
static void
estimate_conditions(const Call *call, List *conditions)
{
	List	   *ranges = NIL;
	ListCell   *lc;

	foreach(lc, conditions)
	{
		Node	   *clause = lfirst(lc);

		if (IsA(clause, RestrictInfo))
			clause = (Node *) ((RestrictInfo *) clause)->clause;
		if (IsA(clause, OpExpr))
			estimate_bound(call, (OpExpr *) clause, &ranges);
	}
	foreach(lc, ranges)
		pair_bounds(call->root, lfirst(lc));
}

/*
 * Estimate the bounds below a node, where the planner asks for estimates.  A List's
 * elements are ANDed; it is read once.
 */
static bool
estimate_below(Node *node, void *context)
{
	const Call *call = context;

	if (node == NULL)
		return false;
	if (IsA(node, RestrictInfo))
		node = (Node *) ((RestrictInfo *) node)->clause;
	if (IsA(node, List))
	{
		bool		found;

		(void) hash_search(call->bounds, &node, HASH_ENTER, &found);
		if (found)
			return false;
		estimate_conditions(call, (List *) node);
	}
	else if (is_andclause(node))
		estimate_conditions(call, ((BoolExpr *) node)->args);
	else if (!IsA(node, BoolExpr) && !IsA(node, BooleanTest))
		return false;
	return expression_tree_walker(node, estimate_below, context);
}

/* Estimate the bounds wherever the planner may have found a condition. */
static void
estimate_bounds(Call *call, Relids relids)
{
	PlannerInfo *root = call->root;
	int			relid = -1;

	(void) estimate_below(root->parse->havingQual, call);
	/* outer joins have numbers, too */
	while ((relid = bms_next_member(relids, relid)) >= 0 &&
		   relid < root->simple_rel_array_size)
	{
		RelOptInfo *rel = root->simple_rel_array[relid];

		if (rel == NULL)
			continue;
		(void) estimate_below((Node *) rel->baserestrictinfo, call);
		/* for conditions that are tested after an outer join */
		(void) estimate_below((Node *) rel->joininfo, call);
	}
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
	Call		call = {.root = root};
	Oid			lefttype;
	Oid			righttype;
	int			strategy;
	Bound	   *bound;

	op_input_types(operator, &lefttype, &righttype);
	/* any role may name this estimator for its own operator, which may be unary */
	if (!OidIsValid(lefttype))
		PG_RETURN_FLOAT8(DEFAULT_INEQ_SEL);
	call.opfamily = lookup_type_cache(lefttype, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	strategy = get_op_opfamily_strategy(operator, call.opfamily);
	if (core_estimators[strategy] == NULL)
		PG_RETURN_FLOAT8(DEFAULT_INEQ_SEL);

	call.bounds = bounds_of_planning(root->planner_cxt);
	bound = hash_search(call.bounds, &args, HASH_FIND, NULL);
	if (bound == NULL)
	{
		estimate_bounds(&call, pull_varnos(root, (Node *) args));
		bound = hash_search(call.bounds, &args, HASH_FIND, NULL);
	}
	if (bound != NULL)
		PG_RETURN_FLOAT8(bound->share);
	PG_RETURN_FLOAT8(estimate_alone(root, operator, strategy, args, varRelid));
}
