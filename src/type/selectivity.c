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
 * The planner asks about one condition at a time and does not say what it is
 * ANDed with.  A search for that in every call would take time with the square
 * of the number of conditions.  So a relation's conditions are walked once in a
 * plan, and conditions that are ANDed are estimated together, when the planner
 * asks about the first of them.
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
#include "nodes/memnodes.h"
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

/* What the planner takes for a range that is empty up to rounding. */
#define TINY_RANGE_SEL		1.0e-10
#define ROUNDING_ERROR		0.01

/* As most plans have; there may be more. */
#define FEW_CONJUNCTS		16

/* A varRelid that the planner never asks about. */
#define NOT_ESTIMATED		(-1)

/* The context of an estimate. */
typedef struct Context
{
	PlannerInfo *root;
	int			varRelid;
	Oid			opfamily;		/* btree, of the type */
	HTAB	   *known;			/* the plan's conjuncts */
} Context;

/* An operator expression that is ANDed with others. */
typedef struct Conjunct
{
	List	   *args;			/* hash key: the list that the planner calls with */
	List	   *conjuncts;		/* what it is ANDed with, itself included */
	int			varRelid;		/* that the share is for, or NOT_ESTIMATED */
	Selectivity share;			/* of the rows that the other bounds have kept */
} Conjunct;

/* The tightest bounds of a column among conditions that are ANDed. */
typedef struct Range
{
	Node	   *column;			/* or an expression of columns */
	Conjunct   *lower;			/* NULL if there is none */
	Conjunct   *upper;
} Range;

PG_FUNCTION_INFO_V1(scru64_ineqsel);

/* Core's estimators, by btree strategy; NULL for what is no inequality. */
static const PGFunction core_estimators[BTMaxStrategyNumber + 1] = {
	[BTLessStrategyNumber] = scalarltsel,
	[BTLessEqualStrategyNumber] = scalarlesel,
	[BTGreaterEqualStrategyNumber] = scalargesel,
	[BTGreaterStrategyNumber] = scalargtsel
};

static Node *
strip_restrictinfo(Node *clause)
{
	return IsA(clause, RestrictInfo) ?
		(Node *) ((RestrictInfo *) clause)->clause : clause;
}

/* Core's estimate of an inequality, whatever else is known of the column. */
static Selectivity
estimate_alone(const Context *context, Oid operator, Node *left, Node *right)
{
	int			strategy = get_op_opfamily_strategy(operator, context->opfamily);
	List	   *args = lappend(list_make1(left), right);
	ListCell   *lc;

	CHECK_FOR_INTERRUPTS();
	foreach(lc, args)
		lfirst(lc) = applyRelabelType(lfirst(lc), INT8OID, -1, InvalidOid,
									  COERCE_IMPLICIT_CAST, -1, false);
	return DatumGetFloat8(DirectFunctionCall4(core_estimators[strategy],
											  PointerGetDatum(context->root),
											  ObjectIdGetDatum(operator),
											  PointerGetDatum(args),
											  Int32GetDatum(context->varRelid)));
}

/* Is a side of an operator a constant, or as good as one?  Simplify it if so. */
static bool
is_value(const Context *context, Node **side)
{
	Node	   *value = estimate_expression_value(context->root, *side);

	if (!is_pseudo_constant_clause(value))
		return false;
	*side = value;
	return true;
}

/* The range of a column, new if it is not among them. */
static Range *
range_of(Node *column, List **ranges)
{
	Range	   *range;
	ListCell   *lc;

	foreach(lc, *ranges)
	{
		range = lfirst(lc);
		if (equal(range->column, column))
			return range;
	}
	range = palloc0(sizeof(Range));
	range->column = column;
	*ranges = lappend(*ranges, range);
	return range;
}

/*
 * Estimate a conjunct alone, if it is an inequality.  One between a column and a
 * value is a bound, and may make the column's range tighter.
 */
static void
estimate_conjunct(const Context *context, OpExpr *op, List **ranges)
{
	int			strategy = get_op_opfamily_strategy(op->opno, context->opfamily);
	Conjunct   *conjunct = hash_search(context->known, &op->args, HASH_FIND, NULL);
	Node	   *left;
	Node	   *right;
	bool		varonleft;
	bool		is_bound;
	Range	   *range;
	Conjunct  **tightest;

	if (conjunct == NULL || core_estimators[strategy] == NULL)
		return;
	left = linitial(op->args);
	right = lsecond(op->args);
	varonleft = is_value(context, &right);
	is_bound = varonleft || is_value(context, &left);
	conjunct->varRelid = context->varRelid;
	conjunct->share = estimate_alone(context, op->opno, left, right);
	if (!is_bound)
		return;

	range = range_of(varonleft ? left : right, ranges);
	tightest = (strategy < BTEqualStrategyNumber) == varonleft ?
		&range->upper : &range->lower;
	/* of two, the one that keeps more is redundant */
	if (*tightest != NULL && (*tightest)->share <= conjunct->share)
		conjunct->share = 1.0;
	else
	{
		if (*tightest != NULL)
			(*tightest)->share = 1.0;
		*tightest = conjunct;
	}
}

/* The share of rows between two bounds, as clauselist_selectivity() has it. */
static Selectivity
range_selectivity(const Context *context, const Range *range)
{
	Selectivity result = range->lower->share + range->upper->share - 1.0;

	/*
	 * Exactly the default: the estimator knew nothing.  Where constants have 80
	 * bits, as on i386, a double is never equal to it, in core neither.
	 */
	if (range->lower->share == DEFAULT_INEQ_SEL ||
		range->upper->share == DEFAULT_INEQ_SEL)
		return DEFAULT_RANGE_INEQ_SEL;

	/* both bounds left the nulls out */
	result += nulltestsel(context->root, IS_NULL, range->column,
						  context->varRelid, JOIN_INNER, NULL);
	if (result > 0.0)
		return result;
	return result < -ROUNDING_ERROR ? DEFAULT_RANGE_INEQ_SEL : TINY_RANGE_SEL;
}

/* Estimate all inequalities among conditions that are ANDed. */
static void
estimate_conjuncts(const Context *context, List *conjuncts)
{
	List	   *ranges = NIL;
	ListCell   *lc;

	foreach(lc, conjuncts)
	{
		Node	   *clause = strip_restrictinfo(lfirst(lc));

		if (IsA(clause, OpExpr))
			estimate_conjunct(context, (OpExpr *) clause, &ranges);
	}
	foreach(lc, ranges)
	{
		Range	   *range = lfirst(lc);
		Selectivity both;

		if (range->lower == NULL || range->upper == NULL)
			continue;
		both = range_selectivity(context, range);
		/* their product, and the lower bound's own as far as it can be */
		range->lower->share = Max(range->lower->share, both);
		range->upper->share = both / range->lower->share;
	}
}

/*
 * Note the conjuncts below AND, which a List is here, OR, NOT, IS TRUE and
 * whatever else has conditions in it.  A list of them is itself noted as a key,
 * so that nothing is noted twice.  known is an HTAB: it is a walker's context.
 */
static bool
note_conjuncts(Node *node, void *known)
{
	List	   *conjuncts = NIL;
	ListCell   *lc;
	bool		found;

	if (node == NULL)
		return false;
	CHECK_FOR_INTERRUPTS();
	node = strip_restrictinfo(node);
	if (IsA(node, OpExpr))
		return false;
	if (IsA(node, List))
		conjuncts = (List *) node;
	else if (is_andclause(node))
		conjuncts = ((BoolExpr *) node)->args;

	if (conjuncts != NIL)
	{
		(void) hash_search(known, &conjuncts, HASH_ENTER, &found);
		if (found)
			return false;
	}
	foreach(lc, conjuncts)
	{
		OpExpr	   *op = (OpExpr *) strip_restrictinfo(lfirst(lc));
		Conjunct   *conjunct;

		if (!IsA(op, OpExpr))
			continue;
		conjunct = hash_search(known, &op->args, HASH_ENTER, &found);
		if (found)
			continue;
		conjunct->conjuncts = conjuncts;
		conjunct->varRelid = NOT_ESTIMATED;
	}
	return expression_tree_walker(node, note_conjuncts, known);
}

/* A reset callback that marks a context, see known_conjuncts(). */
static void
do_nothing(void *known pg_attribute_unused())
{
}

/*
 * The conjuncts noted so far.  They are in a child of the planner's memory context,
 * as the argument of a reset callback: the planner has no place for an estimator to
 * keep anything, and this one goes with the clauses or before.  What leads there is
 * in the same child, so nothing is left that points at what is gone.  A function that
 * is called for an estimate may have queries planned: they have a context of their
 * own.
 */
static HTAB *
known_conjuncts(MemoryContext planner_cxt)
{
	HASHCTL		ctl = {
		.keysize = sizeof(List *),
		.entrysize = sizeof(Conjunct)
	};
	MemoryContext child = planner_cxt->firstchild;
	MemoryContextCallback *holder;

	while (child != NULL && (child->reset_cbs == NULL || child->reset_cbs->func != do_nothing))
		child = child->nextchild;
	if (child != NULL)
		return child->reset_cbs->arg;

	child = AllocSetContextCreate(planner_cxt, "scru64 conjuncts", ALLOCSET_SMALL_SIZES);
	ctl.hcxt = child;
	holder = MemoryContextAlloc(child, sizeof(*holder));
	holder->func = do_nothing;
	holder->arg = hash_create("scru64 conjuncts", FEW_CONJUNCTS, &ctl,
							  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	MemoryContextRegisterResetCallback(child, holder);
	return holder->arg;
}

/* The relation that an expression is about; NULL if there are several or none. */
static RelOptInfo *
relation_of(PlannerInfo *root, Node *node)
{
	Relids		relids = pull_varnos(root, node);
	RelOptInfo *rel = NULL;
	int			relid = -1;

	while ((relid = bms_next_member(relids, relid)) >= 0)
	{
		/* an outer join has a number too */
		if (relid >= root->simple_rel_array_size ||
			root->simple_rel_array[relid] == NULL)
			continue;
		if (rel != NULL)
			return NULL;
		rel = root->simple_rel_array[relid];
	}
	return rel;
}

/* What an inequality keeps of the rows that other bounds of its column keep. */
static Selectivity
estimate_share(Context *context, Oid operator, List *args)
{
	RelOptInfo *rel = relation_of(context->root, (Node *) args);
	Conjunct   *conjunct = NULL;

	/* only bounds of one relation make a range */
	if (rel != NULL)
	{
		context->known = known_conjuncts(context->root->planner_cxt);
		(void) note_conjuncts((Node *) rel->baserestrictinfo, context->known);
		(void) note_conjuncts(context->root->parse->havingQual, context->known);
		/* for what is filtered after an outer join */
		(void) note_conjuncts((Node *) rel->joininfo, context->known);
		conjunct = hash_search(context->known, &args, HASH_FIND, NULL);
	}
	if (conjunct == NULL)
		return estimate_alone(context, operator, linitial(args), lsecond(args));
	if (conjunct->varRelid != context->varRelid)
		estimate_conjuncts(context, conjunct->conjuncts);
	return conjunct->share;
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
	Selectivity result = DEFAULT_INEQ_SEL;

	op_input_types(operator, &lefttype, &righttype);
	context.opfamily = lookup_type_cache(lefttype,
										 TYPECACHE_BTREE_OPFAMILY)->btree_opf;

	if (core_estimators[get_op_opfamily_strategy(operator, context.opfamily)] != NULL)
		result = estimate_share(&context, operator,
								(List *) PG_GETARG_POINTER(2));
	CLAMP_PROBABILITY(result);
	PG_RETURN_FLOAT8(result);
}
