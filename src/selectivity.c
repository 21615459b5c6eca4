/*-------------------------------------------------------------------------
 *
 * selectivity.c
 *		Row estimates for the inequality operators of scru64.
 *
 * The estimates are PostgreSQL's own for bigint.  Two things have to be done for
 * them that the planner does by itself only for types and estimators that it knows
 * by OID:
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
 * The planner asks about one condition at a time.  What one call looks at is
 * limited, or else planning would take time with the square of the number of
 * conditions.  Beyond the limits a bound is estimated alone.
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
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/typcache.h"

/* What the planner takes for a range that is empty up to rounding. */
#define TINY_RANGE_SEL		1.0e-10
#define ROUNDING_ERROR		0.01

/* Among more ANDed conditions than this, nobody looks for the other bound. */
#define MAX_CONJUNCTS		64
/* Nodes that are visited to find what a condition is ANDed with. */
#define MAX_NODES_VISITED	500

#define NOT_ESTIMATED		(-1.0)

/* The context of an estimate. */
typedef struct Context
{
	PlannerInfo *root;
	int			varRelid;
	Oid			opfamily;		/* btree, of the type */
} Context;

/* "column operator value", either way round. */
typedef struct Bound
{
	List	   *args;			/* as the clause has them; NIL: no bound */
	Oid			operator;
	StrategyNumber strategy;
	bool		is_upper;		/* does it bound the column from above? */
	Node	   *column;			/* or an expression of columns */
	Node	   *value;			/* a Const if it can be known */
	Selectivity selectivity;	/* core's estimate of it alone, once needed */
} Bound;

PG_FUNCTION_INFO_V1(scru64_ineqsel);

/* Core's estimators, by btree strategy; NULL for what is no inequality. */
static const PGFunction core_estimators[BTMaxStrategyNumber + 1] = {
	[BTLessStrategyNumber] = scalarltsel,
	[BTLessEqualStrategyNumber] = scalarlesel,
	[BTGreaterEqualStrategyNumber] = scalargesel,
	[BTGreaterStrategyNumber] = scalargtsel
};

/* The same node, as bigint.  Core looks below one relabelling, a domain's say. */
static Node *
relabel_as_bigint(Node *arg)
{
	return applyRelabelType(arg, INT8OID, -1, InvalidOid,
							COERCE_IMPLICIT_CAST, -1, false);
}

static Node *
strip_relabelling(Node *node)
{
	while (IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	return node;
}

/* Core's estimate of a bound, whatever else is known of the column. */
static Selectivity
estimate_alone(const Context *context, Bound *bound)
{
	if (bound->selectivity == NOT_ESTIMATED)
	{
		List	   *args = list_copy(bound->args);
		ListCell   *lc;

		foreach(lc, args)
		{
			/* a value that is known need not be worked out again */
			if (bound->value != NULL && strip_relabelling(lfirst(lc)) != bound->column)
				lfirst(lc) = bound->value;
			lfirst(lc) = relabel_as_bigint(lfirst(lc));
		}
		bound->selectivity =
			DatumGetFloat8(DirectFunctionCall4(core_estimators[bound->strategy],
											   PointerGetDatum(context->root),
											   ObjectIdGetDatum(bound->operator),
											   PointerGetDatum(args),
											   Int32GetDatum(context->varRelid)));
	}
	return bound->selectivity;
}

/* Is a side of an operator a constant, or as good as one?  Simplify it if so. */
static bool
is_value(const Context *context, Node **side)
{
	Node	   *value;

	if (IsA(*side, Const) || IsA(*side, Var))
		return IsA(*side, Const);
	value = strip_relabelling(estimate_expression_value(context->root, *side));
	if (!is_pseudo_constant_clause(value))
		return false;
	*side = value;
	return true;
}

/* Take "left operator right" apart.  False if none of the sides is a constant. */
static bool
make_bound(const Context *context, Oid operator, List *args, Bound *bound)
{
	Node	   *left = strip_relabelling(linitial(args));
	Node	   *right = strip_relabelling(lsecond(args));
	bool		varonleft = is_value(context, &right);

	bound->args = args;
	bound->operator = operator;
	bound->strategy = get_op_opfamily_strategy(operator, context->opfamily);
	bound->is_upper = (bound->strategy < BTEqualStrategyNumber) == varonleft;
	bound->selectivity = NOT_ESTIMATED;
	bound->value = NULL;
	if (core_estimators[bound->strategy] == NULL ||
		(!varonleft && !is_value(context, &left)))
		return false;
	bound->column = varonleft ? left : right;
	bound->value = varonleft ? right : left;
	return true;
}

/* Is one bound tighter than another of the same side? */
static bool
is_tighter(const Context *context, Bound *one, Bound *other)
{
	int64		value;
	int64		other_value;

	if (!IsA(one->value, Const) || !IsA(other->value, Const))
		return estimate_alone(context, one) < estimate_alone(context, other);

	/* a null, which finds nothing, counts as 0 */
	value = DatumGetInt64(((Const *) one->value)->constvalue);
	other_value = DatumGetInt64(((Const *) other->value)->constvalue);
	/* the one that leaves the value itself out */
	if (value == other_value)
		return (one->strategy == BTLessStrategyNumber ||
				one->strategy == BTGreaterStrategyNumber) &&
			one->strategy != other->strategy;
	return one->is_upper == (value < other_value);
}

/* What find_conjuncts() looks for, and what it has found. */
typedef struct ConjunctSearch
{
	List	   *args;			/* of the operator expression */
	List	   *conjuncts;		/* what it is ANDed with, itself included */
	int			nodes_left;		/* to visit; below 0: given up */
} ConjunctSearch;

static Node *
strip_restrictinfo(Node *clause)
{
	return IsA(clause, RestrictInfo) ?
		(Node *) ((RestrictInfo *) clause)->clause : clause;
}

/*
 * Look for the operator expression below AND, which a List is here, OR, NOT, IS
 * TRUE and whatever else has conditions in it.  True if there is no more to look
 * for: found or given up.
 */
static bool
find_conjuncts(Node *node, ConjunctSearch *search)
{
	List	   *conjuncts = NIL;
	ListCell   *lc;

	if (node == NULL)
		return false;
	node = strip_restrictinfo(node);
	if (IsA(node, List))
		conjuncts = (List *) node;
	else if (is_andclause(node))
		conjuncts = ((BoolExpr *) node)->args;

	search->nodes_left -= 1 + list_length(conjuncts);
	if (search->nodes_left < 0)
		return true;
	if (IsA(node, OpExpr))
	{
		if (((OpExpr *) node)->args == search->args)
			search->conjuncts = list_make1(node);
		return search->conjuncts != NIL;
	}
	foreach(lc, conjuncts)
	{
		OpExpr	   *op = (OpExpr *) strip_restrictinfo(lfirst(lc));

		if (IsA(op, OpExpr) && op->args == search->args)
		{
			search->conjuncts = conjuncts;
			return true;
		}
	}
	return expression_tree_walker(node, find_conjuncts, search);
}

/* The tightest bound of each side among clauses; of like ones the first. */
static void
collect_bounds(const Context *context, const Bound *bound, List *clauses,
			   Bound *lower, Bound *upper)
{
	ListCell   *lc;

	foreach(lc, clauses)
	{
		RestrictInfo *rinfo = lfirst(lc);
		OpExpr	   *op = (OpExpr *) strip_restrictinfo((Node *) rinfo);
		Bound		other;
		Bound	   *tightest;

		if (!IsA(op, OpExpr) || list_length(op->args) != 2)
			continue;
		/* its value need not be worked out again */
		if (op->args == bound->args)
			other = *bound;
		else if (!make_bound(context, op->opno, op->args, &other) ||
				 !equal(other.column, bound->column))
			continue;
		/* an estimate that was made already is kept there */
		if (IsA(rinfo, RestrictInfo) && !other.is_upper &&
			rinfo->norm_selec >= 0.0 && rinfo->norm_selec < 1.0)
			other.selectivity = rinfo->norm_selec;
		tightest = other.is_upper ? upper : lower;
		if (tightest->args == NIL || is_tighter(context, &other, tightest))
			*tightest = other;
	}
}

/* The share of rows between two bounds, as clauselist_selectivity() has it. */
static Selectivity
range_selectivity(const Context *context, Bound *lower, Bound *upper)
{
	Selectivity range;

	/* exactly the default: the estimator knew nothing */
	if (estimate_alone(context, lower) == DEFAULT_INEQ_SEL ||
		estimate_alone(context, upper) == DEFAULT_INEQ_SEL)
		return DEFAULT_RANGE_INEQ_SEL;

	range = lower->selectivity + upper->selectivity - 1.0;
	/* both bounds left the nulls out */
	range += nulltestsel(context->root, IS_NULL, lower->column,
						 context->varRelid, JOIN_INNER, NULL);

	if (range > 0.0)
		return range;
	return range < -ROUNDING_ERROR ? DEFAULT_RANGE_INEQ_SEL : TINY_RANGE_SEL;
}

/* The relation of a column; NULL if there are several or none. */
static RelOptInfo *
relation_of(const Context *context, Node *column)
{
	VariableStatData vardata;

	/* what nearly all are, without a look at statistics */
	if (IsA(column, Var))
		return find_base_rel(context->root, ((Var *) column)->varno);
	examine_variable(context->root, column, context->varRelid, &vardata);
	ReleaseVariableStats(vardata);
	return vardata.rel;
}

/*
 * The share that a bound keeps of the rows that the other conditions on its
 * column, among those that it is ANDed with, have kept.
 */
static Selectivity
estimate_bound(const Context *context, Bound *bound)
{
	RelOptInfo *rel = relation_of(context, bound->column);
	ConjunctSearch search = {
		.args = bound->args,
		.nodes_left = MAX_NODES_VISITED
	};
	List	   *clauses;
	Bound		lower = {0};
	Bound		upper = {0};
	Bound	   *tightest = bound->is_upper ? &upper : &lower;

	if (rel == NULL)
		return estimate_alone(context, bound);
	/* the last is for what is filtered after an outer join */
	if (!find_conjuncts((Node *) rel->baserestrictinfo, &search) &&
		!find_conjuncts(context->root->parse->havingQual, &search))
		(void) find_conjuncts((Node *) rel->joininfo, &search);

	clauses = search.conjuncts != NIL ? search.conjuncts : rel->baserestrictinfo;
	if (search.nodes_left < 0 || list_length(clauses) > MAX_CONJUNCTS)
		return estimate_alone(context, bound);
	collect_bounds(context, bound, clauses, &lower, &upper);

	/*
	 * An index path may ask about a commuted copy of a clause.  It takes the
	 * place of its like among the relation's conditions.
	 */
	if (search.conjuncts == NIL &&
		(tightest->args == NIL || !is_tighter(context, tightest, bound)))
		*tightest = *bound;

	/* another one makes this one redundant, as tight and before it, or tighter */
	if (tightest->args != bound->args)
		return 1.0;
	if (bound->is_upper && lower.args != NIL &&
		estimate_alone(context, &lower) > 0.0)
		return range_selectivity(context, &lower, &upper) / lower.selectivity;
	return estimate_alone(context, bound);
}

/*
 * scru64_ineqsel(internal, oid, internal, integer) -> float8
 *
 * RESTRICT estimator of < <= >= >.
 */
Datum
scru64_ineqsel(PG_FUNCTION_ARGS)
{
	Oid			operator = PG_GETARG_OID(1);
	Context		context = {
		.root = (PlannerInfo *) PG_GETARG_POINTER(0),
		.varRelid = PG_GETARG_INT32(3)
	};
	Oid			lefttype;
	Oid			righttype;
	Bound		bound;
	Selectivity result;

	CHECK_FOR_INTERRUPTS();

	op_input_types(operator, &lefttype, &righttype);
	context.opfamily = lookup_type_cache(lefttype,
										 TYPECACHE_BTREE_OPFAMILY)->btree_opf;

	if (make_bound(&context, operator, (List *) PG_GETARG_POINTER(2), &bound))
		result = estimate_bound(&context, &bound);
	else if (core_estimators[bound.strategy] != NULL)
		result = estimate_alone(&context, &bound);
	else
		result = DEFAULT_INEQ_SEL;
	CLAMP_PROBABILITY(result);
	PG_RETURN_FLOAT8(result);
}
