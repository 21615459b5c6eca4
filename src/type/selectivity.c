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
 * it is ANDed.  A search in every call would take time with the square of their
 * number.  So the first call for a column estimates all its bounds, and later ones find
 * theirs in a hash table, which goes with the planner's memory.
 *
 * Estimates only: a wrong guess here costs time, never a wrong result.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "access/stratnum.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
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

/* A bound of a column. */
typedef struct Bound
{
	List	   *args;			/* hash key: the operator's, as the planner has them */
	Selectivity share;			/* of the rows that the other bounds have kept */
} Bound;

/* The first call for a column, or for an expression of columns. */
typedef struct Call
{
	PlannerInfo *root;
	Oid			opfamily;		/* btree, of the type */
	Node	   *column;
	HTAB	   *bounds;			/* that have been estimated */
} Call;

PG_FUNCTION_INFO_V1(scru64_ineqsel);

/* Core's estimators, by btree strategy; NULL for other strategies. */
static const PGFunction core_estimators[BTMaxStrategyNumber + 1] = {
	[BTLessStrategyNumber] = scalarltsel,
	[BTLessEqualStrategyNumber] = scalarlesel,
	[BTGreaterEqualStrategyNumber] = scalargesel,
	[BTGreaterStrategyNumber] = scalargtsel
};

/* The bounds of the query that was planned last, and the planner's context. */
static HTAB *last_bounds = NULL;
static MemoryContext last_planner_cxt = NULL;

/* A context is about to be freed that has these bounds. */
static void
forget_bounds(void *bounds)
{
	if (last_bounds == bounds)
		last_bounds = NULL;
}

/* The bounds of a query; none yet if it is another than that of the last call. */
static HTAB *
bounds_of_query(MemoryContext planner_cxt)
{
	if (last_bounds == NULL || last_planner_cxt != planner_cxt)
	{
		MemoryContext cxt = AllocSetContextCreate(planner_cxt, "scru64 bounds", ALLOCSET_SMALL_SIZES);
		MemoryContextCallback *callback = MemoryContextAlloc(cxt, sizeof(*callback));
		HASHCTL		ctl = {
			.keysize = sizeof(List *),
			.entrysize = sizeof(Bound),
			.hcxt = cxt
		};

		last_bounds = hash_create("scru64 bounds", 16, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
		last_planner_cxt = planner_cxt;
		callback->func = forget_bounds;
		callback->arg = last_bounds;
		MemoryContextRegisterResetCallback(cxt, callback);
	}
	return last_bounds;
}

/* Core's estimate of an inequality, whatever else is known of the column. */
static Selectivity
estimate_alone(PlannerInfo *root, Oid operator, int strategy, List *args, int varRelid)
{
	List	   *relabelled = NIL;
	ListCell   *lc;

	CHECK_FOR_INTERRUPTS();
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
 * If a condition is a bound of the column and has no estimate yet, estimate it.
 * Compare it with the tightest bounds so far, the upper one and the lower one.
 */
static void
estimate_bound(const Call *call, OpExpr *op, Bound *tightest[2])
{
	int			strategy = get_op_opfamily_strategy(op->opno, call->opfamily);
	Node	   *left;
	Node	   *right;
	bool		varonleft;
	Selectivity share;
	Bound	   *bound;
	Bound	  **other;

	if (core_estimators[strategy] == NULL ||
		hash_search(call->bounds, &op->args, HASH_FIND, NULL) != NULL)
		return;
	left = linitial(op->args);
	right = lsecond(op->args);
	varonleft = equal(left, call->column);
	if (!is_pseudo_constant_clause(varonleft ? right : left) ||
		!(varonleft || equal(right, call->column)))
		return;

	share = estimate_alone(call->root, op->opno, strategy, op->args, 0);
	/* a function that gives the value may have had a query planned */
	last_bounds = call->bounds;
	last_planner_cxt = call->root->planner_cxt;

	bound = hash_search(call->bounds, &op->args, HASH_ENTER, NULL);
	bound->share = share;
	other = &tightest[(strategy < BTEqualStrategyNumber) == varonleft ? 0 : 1];
	/* of two, the one that keeps more is redundant */
	if (*other != NULL && (*other)->share <= share)
		bound->share = 1.0;
	else
	{
		if (*other != NULL)
			(*other)->share = 1.0;
		*other = bound;
	}
}

/*
 * Make the product of two bounds' shares the range's, as clauselist_selectivity()
 * has it.  The lower bound keeps its own as far as it can.
 */
static void
pair_bounds(const Call *call, Bound *upper, Bound *lower)
{
	Selectivity both;

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
			nulltestsel(call->root, IS_NULL, call->column, 0, JOIN_INNER, NULL);
		/* empty up to rounding, or bounds that were estimated in different ways */
		if (both <= 0.0)
			both = both < -0.01 ? DEFAULT_RANGE_INEQ_SEL : 1.0e-10;
	}
	lower->share = Max(lower->share, both);
	upper->share = both / lower->share;
}

/* Estimate the column's bounds among conditions that are ANDed. */
static void
estimate_conditions(const Call *call, List *conditions)
{
	Bound	   *tightest[2] = {NULL, NULL};
	ListCell   *lc;

	foreach(lc, conditions)
	{
		Node	   *clause = lfirst(lc);

		if (IsA(clause, RestrictInfo))
			clause = (Node *) ((RestrictInfo *) clause)->clause;
		if (IsA(clause, OpExpr))
			estimate_bound(call, (OpExpr *) clause, tightest);
	}
	if (tightest[0] != NULL && tightest[1] != NULL)
		pair_bounds(call, tightest[0], tightest[1]);
}

/* Estimate the column's bounds below a node.  A List's elements are ANDed. */
static bool
estimate_below(Node *node, void *call)
{
	if (node == NULL)
		return false;
	if (IsA(node, RestrictInfo))
		node = (Node *) ((RestrictInfo *) node)->clause;
	if (IsA(node, OpExpr))
	{
		/* ANDed with nothing, or estimated already */
		estimate_bound(call, (OpExpr *) node, (Bound *[2]) {NULL, NULL});
		return false;
	}
	if (IsA(node, List))
		estimate_conditions(call, (List *) node);
	else if (is_andclause(node))
		estimate_conditions(call, ((BoolExpr *) node)->args);
	return expression_tree_walker(node, estimate_below, call);
}

/* Estimate the column's bounds wherever the planner may have found one. */
static void
estimate_column(Call *call)
{
	Relids		relids = pull_varnos(call->root, call->column);
	int			relid = -1;

	(void) estimate_below(call->root->parse->havingQual, call);
	/* outer joins have numbers, too */
	while ((relid = bms_next_member(relids, relid)) >= 0 &&
		   relid < call->root->simple_rel_array_size)
	{
		RelOptInfo *rel = call->root->simple_rel_array[relid];

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
	call.opfamily = lookup_type_cache(lefttype, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	strategy = get_op_opfamily_strategy(operator, call.opfamily);
	if (core_estimators[strategy] == NULL)
		PG_RETURN_FLOAT8(DEFAULT_INEQ_SEL);

	/* only bounds of one relation make a range */
	if (NumRelids(root, (Node *) args) != 1)
		PG_RETURN_FLOAT8(estimate_alone(root, operator, strategy, args, varRelid));

	call.bounds = bounds_of_query(root->planner_cxt);
	bound = hash_search(call.bounds, &args, HASH_FIND, NULL);
	if (bound == NULL)
	{
		call.column = is_pseudo_constant_clause(lsecond(args)) ? linitial(args) : lsecond(args);
		estimate_column(&call);
		bound = hash_search(call.bounds, &args, HASH_FIND, NULL);
	}
	if (bound != NULL)
		PG_RETURN_FLOAT8(bound->share);
	PG_RETURN_FLOAT8(estimate_alone(root, operator, strategy, args, varRelid));
}
