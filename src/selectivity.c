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
 * The planner asks about one condition at a time, and nothing can be kept from
 * one time to the next.  So what one call looks at is limited, or else planning
 * would take time with the square of the number of conditions: bounds are
 * compared by their constants, core is asked for the tightest ones only, and
 * beyond some number of conditions an estimate is that of the bound alone.
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
/* As many nodes are visited, at most, to find what a condition is ANDed with. */
#define MAX_NODES_VISITED	300

#define NOT_ESTIMATED		(-1.0)

/* An inequality between a column and something that has none of its relation. */
typedef struct Inequality
{
	List	   *args;			/* of the operator expression; NIL: there is none */
	Oid			operator;
	StrategyNumber strategy;
	bool		is_upper;		/* does it bound the column from above? */
	Node	   *bound;			/* the other side, a Const if it can be known */
	Selectivity selectivity;	/* core's estimate of it alone, if needed yet */
} Inequality;

/* A column, or an expression of columns, and how its conditions are estimated. */
typedef struct Column
{
	PlannerInfo *root;
	int			varRelid;
	Oid			opfamily;		/* btree, of its type */
	RelOptInfo *rel;			/* its relation */
	Node	   *var;
} Column;

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

/* Core's estimate of an inequality, whatever else is known of the column. */
static Selectivity
estimate_alone(const Column *column, Inequality *inequality)
{
	if (inequality->selectivity == NOT_ESTIMATED)
	{
		List	   *args = list_make2(relabel_as_bigint(linitial(inequality->args)),
									  relabel_as_bigint(lsecond(inequality->args)));

		inequality->selectivity =
			DatumGetFloat8(DirectFunctionCall4(core_estimator(inequality->strategy),
											   PointerGetDatum(column->root),
											   ObjectIdGetDatum(inequality->operator),
											   PointerGetDatum(args),
											   Int32GetDatum(column->varRelid)));
		list_free(args);
	}
	return inequality->selectivity;
}

/*
 * Find the column and the bound of "left operator right".  False if it is not of
 * the form "column operator constant" either way round.
 */
static bool
find_column(List *args, Column *column, Node **bound, bool *varonleft)
{
	Node	   *left = strip_relabelling(linitial(args));
	Node	   *right = strip_relabelling(lsecond(args));
	Node	   *var;
	VariableStatData vardata;

	/* what nearly all are, without a look at statistics */
	*varonleft = IsA(left, Var);
	var = *varonleft ? left : right;
	*bound = *varonleft ? right : left;
	if (IsA(var, Var) && IsA(*bound, Const) &&
		(column->varRelid == 0 || column->varRelid == ((Var *) var)->varno))
	{
		column->var = var;
		column->rel = find_base_rel(column->root, ((Var *) var)->varno);
		return true;
	}

	if (!get_restriction_variable(column->root, args, column->varRelid,
								  &vardata, bound, varonleft))
		return false;
	column->var = strip_relabelling(vardata.var);
	column->rel = vardata.rel;
	*bound = strip_relabelling(*bound);
	ReleaseVariableStats(vardata);
	return true;
}

/* False if the operator is no inequality of the column's type. */
static bool
make_inequality(const Column *column, Oid operator, List *args, Node *bound,
				bool varonleft, Inequality *inequality)
{
	StrategyNumber strategy = get_op_opfamily_strategy(operator,
													   column->opfamily);

	if (core_estimator(strategy) == NULL)
		return false;
	inequality->args = args;
	inequality->operator = operator;
	inequality->strategy = strategy;
	inequality->is_upper = (strategy < BTEqualStrategyNumber) == varonleft;
	inequality->bound = bound;
	inequality->selectivity = NOT_ESTIMATED;
	return true;
}

/* Is a clause an inequality between this column and a constant, or as good? */
static bool
is_bound_of(const Column *column, Node *clause, Inequality *inequality)
{
	OpExpr	   *op = (OpExpr *) clause;
	Node	   *left;
	Node	   *right;
	Node	   *bound;
	bool		varonleft;

	if (!IsA(clause, OpExpr) || list_length(op->args) != 2)
		return false;
	left = strip_relabelling(linitial(op->args));
	right = strip_relabelling(lsecond(op->args));
	varonleft = equal(left, column->var);
	if (!varonleft && !equal(right, column->var))
		return false;

	bound = varonleft ? right : left;
	if (!make_inequality(column, op->opno, op->args, bound, varonleft,
						 inequality))
		return false;
	if (IsA(bound, Const))
		return true;
	inequality->bound = strip_relabelling(estimate_expression_value(column->root,
																	bound));
	return is_pseudo_constant_clause(inequality->bound);
}

static bool
is_known(const Inequality *inequality)
{
	return IsA(inequality->bound, Const) &&
		!((Const *) inequality->bound)->constisnull;
}

static bool
is_strict(const Inequality *inequality)
{
	return inequality->strategy == BTLessStrategyNumber ||
		inequality->strategy == BTGreaterStrategyNumber;
}

/* Is one bound tighter than another of the same side? */
static bool
is_tighter(const Column *column, Inequality *one, Inequality *other)
{
	int64		value;
	int64		other_value;

	if (!is_known(one) || !is_known(other))
		return estimate_alone(column, one) < estimate_alone(column, other);

	value = DatumGetInt64(((Const *) one->bound)->constvalue);
	other_value = DatumGetInt64(((Const *) other->bound)->constvalue);
	if (value == other_value)
		return is_strict(one) && !is_strict(other);
	return one->is_upper == (value < other_value);
}

static Node *
strip_restrictinfo(Node *clause)
{
	return IsA(clause, RestrictInfo) ?
		(Node *) ((RestrictInfo *) clause)->clause : clause;
}

/* What conjuncts_of() looks for, and what it has found. */
typedef struct ConjunctSearch
{
	List	   *args;			/* of the operator expression */
	List	   *conjuncts;		/* what it is ANDed with, itself included */
	int			nodes_left;		/* to visit; below 0: given up */
} ConjunctSearch;

/*
 * Where to begin: at one of the clauses and, if that is an OR, at one of its
 * arms.  The planner asks about conditions in their order, so the next one is
 * where the last one was found or comes after it.  These are but numbers, of
 * whatever query it was: where they lead nowhere, the search is longer.
 */
typedef struct SearchStart
{
	int			clause;
	int			arm;
} SearchStart;

static const SearchStart beginning = {0, 0};
static SearchStart last_found = {0, 0};

static bool
is_searched_for(Node *clause, const ConjunctSearch *search)
{
	return IsA(clause, OpExpr) && ((OpExpr *) clause)->args == search->args;
}

static bool
find_among_conjuncts(List *clauses, ConjunctSearch *search)
{
	ListCell   *lc;

	search->nodes_left -= list_length(clauses);
	if (search->nodes_left < 0)
		return true;
	foreach(lc, clauses)
	{
		if (is_searched_for(lfirst(lc), search))
		{
			search->conjuncts = clauses;
			return true;
		}
	}
	return false;
}

/*
 * Look below AND, OR, NOT, IS TRUE and whatever else has conditions in it.
 * True if there is no more to look for: found or given up.
 */
static bool
find_conjuncts_walker(Node *node, ConjunctSearch *search)
{
	if (node == NULL)
		return false;
	if (--search->nodes_left < 0)
		return true;
	if (is_searched_for(node, search))
	{
		search->conjuncts = list_make1(node);
		return true;
	}
	if (is_andclause(node) &&
		find_among_conjuncts(((BoolExpr *) node)->args, search))
		return true;
	return expression_tree_walker(node, find_conjuncts_walker, search);
}

/* The same for one of the ANDed clauses; an OR from one arm on, round about. */
static bool
find_in_clause(Node *clause, ConjunctSearch *search, int start)
{
	List	   *arms;

	if (!is_orclause(clause))
		return find_conjuncts_walker(clause, search);
	arms = ((BoolExpr *) clause)->args;
	for (int i = 0; i < list_length(arms); i++)
	{
		int			arm = (start + i) % list_length(arms);

		if (find_conjuncts_walker(list_nth(arms, arm), search))
		{
			last_found.arm = arm;
			return true;
		}
	}
	return false;
}

/* The same for ANDed clauses, from one of them on, round about. */
static bool
find_conjuncts(List *clauses, ConjunctSearch *search, SearchStart start)
{
	search->nodes_left = MAX_NODES_VISITED;
	for (int i = 0; i < list_length(clauses); i++)
	{
		int			position = (start.clause + i) % list_length(clauses);
		Node	   *clause = strip_restrictinfo(list_nth(clauses, position));

		if (is_searched_for(clause, search))
			search->conjuncts = clauses;
		else if (!find_in_clause(clause, search, start.arm))
			continue;
		last_found.clause = position;
		return true;
	}
	return false;
}

/*
 * What an operator expression of these args is ANDed with, itself included.
 * NIL if it is nowhere.  False if that would take too long to find out.
 */
static bool
find_conjuncts_of(const Column *column, List *args, List **conjuncts)
{
	ConjunctSearch search = {.args = args};
	List	   *clauses = column->rel->baserestrictinfo;
	List	   *having = (List *) column->root->parse->havingQual;

	(void) find_conjuncts(clauses, &search, last_found);
	if (search.nodes_left < 0)
		(void) find_conjuncts(clauses, &search, beginning);
	/* the last is for what is filtered after an outer join */
	if (search.nodes_left >= 0 && search.conjuncts == NIL &&
		!find_conjuncts(having, &search, beginning))
		(void) find_conjuncts(column->rel->joininfo, &search, beginning);
	*conjuncts = search.conjuncts;
	return search.nodes_left >= 0;
}

/* Take a bound if it is tighter than the one of its side; of like ones the first. */
static void
add_bound(const Column *column, RangeBounds *bounds, Inequality *inequality)
{
	Inequality *bound = inequality->is_upper ? &bounds->upper : &bounds->lower;

	if (bound->args == NIL || is_tighter(column, inequality, bound))
		*bound = *inequality;
}

/* The same, but of like ones the last. */
static void
replace_bound(const Column *column, RangeBounds *bounds, Inequality *inequality)
{
	Inequality *bound = inequality->is_upper ? &bounds->upper : &bounds->lower;

	if (bound->args == NIL || !is_tighter(column, bound, inequality))
		*bound = *inequality;
}

/* The tightest bounds of a column among clauses. */
static RangeBounds
collect_bounds(const Column *column, List *clauses)
{
	RangeBounds bounds = {0};
	ListCell   *lc;

	foreach(lc, clauses)
	{
		RestrictInfo *rinfo = lfirst(lc);
		Inequality	inequality;

		if (!is_bound_of(column, strip_restrictinfo((Node *) rinfo),
						 &inequality))
			continue;
		/* an estimate that was made already is kept there */
		if (IsA(rinfo, RestrictInfo) && !inequality.is_upper &&
			rinfo->norm_selec >= 0.0 && rinfo->norm_selec < 1.0)
			inequality.selectivity = rinfo->norm_selec;
		add_bound(column, &bounds, &inequality);
	}
	return bounds;
}

/* The share of rows between two bounds, as clauselist_selectivity() has it. */
static Selectivity
range_selectivity(const Column *column, RangeBounds *bounds)
{
	Selectivity lower = estimate_alone(column, &bounds->lower);
	Selectivity upper = estimate_alone(column, &bounds->upper);
	Selectivity range;

	/* exactly the default: the estimator knew nothing */
	if (lower == DEFAULT_INEQ_SEL || upper == DEFAULT_INEQ_SEL)
		return DEFAULT_RANGE_INEQ_SEL;

	range = lower + upper - 1.0;
	/* both bounds left the nulls out */
	range += nulltestsel(column->root, IS_NULL, column->var, column->varRelid,
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
share_of_bounds(const Column *column, Inequality *inequality,
				RangeBounds *bounds)
{
	const Inequality *tightest = inequality->is_upper ?
		&bounds->upper : &bounds->lower;

	/* another one makes this one redundant, as tight and before it, or tighter */
	if (tightest->args != inequality->args)
		return 1.0;
	if (inequality->is_upper && bounds->lower.args != NIL &&
		estimate_alone(column, &bounds->lower) > 0.0)
		return range_selectivity(column, bounds) / bounds->lower.selectivity;
	return estimate_alone(column, inequality);
}

/* The share that an inequality keeps, by itself or as the bound of a range. */
static Selectivity
estimate(const Column *column, Inequality *inequality)
{
	List	   *conjuncts;
	List	   *clauses;
	RangeBounds bounds;

	/* core pairs no others either */
	if (!is_pseudo_constant_clause(inequality->bound))
		return estimate_alone(column, inequality);

	if (!find_conjuncts_of(column, inequality->args, &conjuncts))
		return estimate_alone(column, inequality);
	clauses = conjuncts != NIL ? conjuncts : column->rel->baserestrictinfo;
	if (list_length(clauses) > MAX_CONJUNCTS)
		return estimate_alone(column, inequality);

	bounds = collect_bounds(column, clauses);

	/*
	 * An index path may ask about a commuted copy of a clause.  It takes the
	 * place of its like among the relation's conditions.
	 */
	if (conjuncts == NIL)
		replace_bound(column, &bounds, inequality);
	return share_of_bounds(column, inequality, &bounds);
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
	List	   *args = (List *) PG_GETARG_POINTER(2);
	Column		column = {
		.root = (PlannerInfo *) PG_GETARG_POINTER(0),
		.varRelid = PG_GETARG_INT32(3)
	};
	Oid			lefttype;
	Oid			righttype;
	Node	   *bound;
	bool		varonleft;
	Inequality	inequality;
	Selectivity result;

	CHECK_FOR_INTERRUPTS();

	op_input_types(operator, &lefttype, &righttype);
	column.opfamily = lookup_type_cache(lefttype,
										TYPECACHE_BTREE_OPFAMILY)->btree_opf;

	if (!find_column(args, &column, &bound, &varonleft) ||
		!make_inequality(&column, operator, args, bound, varonleft, &inequality))
		PG_RETURN_FLOAT8(DEFAULT_INEQ_SEL);

	result = estimate(&column, &inequality);
	CLAMP_PROBABILITY(result);
	PG_RETURN_FLOAT8(result);
}
