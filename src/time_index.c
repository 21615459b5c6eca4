/*-------------------------------------------------------------------------
 *
 * time_index.c
 *		Index paths for conditions on scru64_timestamp(id).
 *
 * Upper storey.  "scru64_timestamp(id) >= t", or the same as a cast, compares
 * two timestamptz with PostgreSQL's own operator.  A planner support function
 * could derive an index condition from it only if it were attached to that
 * operator, which is not ours.  So it is done where the planner lets modules
 * add paths to a relation: for each such condition the one that it implies for
 * the ID itself is put next to it,
 *
 *		scru64_timestamp(id) >= t	implies		id >= scru64_min(t)
 *		scru64_timestamp(id) <= t	implies		id <= scru64_max(t)
 *
 * (> and < imply the same), and the planner is asked for index paths once more.
 * The condition as it was written stays as a filter, so that what the index
 * finds needs to be no more than enough: a result never depends on the plan.
 *
 * The support function of scru64_timestamp() has one job: to be called, and so
 * to have this library loaded before the first path of a query is made.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "pg_compat.h"

#include "access/stratnum.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "time_index.h"

PG_FUNCTION_INFO_V1(scru64_timestamp_support);

extern PGDLLEXPORT Datum scru64_timestamp(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum scru64_min(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum scru64_max(PG_FUNCTION_ARGS);

static set_rel_pathlist_hook_type prev_set_rel_pathlist_hook = NULL;

/*
 * scru64_timestamp_support(internal) -> internal
 *
 * Supports no request: see the top of the file.
 */
Datum
scru64_timestamp_support(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_POINTER(NULL);
}

/* Is this expression a call of scru64_timestamp()? */
static bool
is_timestamp_call(Node *node)
{
	FuncExpr   *call = (FuncExpr *) node;
	FmgrInfo	function;

	if (!IsA(node, FuncExpr) || call->funcresulttype != TIMESTAMPTZOID ||
		list_length(call->args) != 1)
		return false;
	/* by address: the name may be anybody's, the schema may be any */
	fmgr_info(call->funcid, &function);
	return function.fn_addr == scru64_timestamp;
}

/*
 * The bound that scru64_min() or scru64_max() gives for a time; NULL if that
 * cannot be had.
 *
 * A query must not need more rights because of what is done here: the function
 * is looked up without those that its schema asks for, a constant's bound is
 * computed here and now, and else the user must have the right to call it.
 */
static Expr *
make_bound(PlannerInfo *root, bool is_upper, Oid timestamp_funcid, Oid id_type,
		   Expr *time)
{
	Node	   *estimate = eval_const_expressions(root, (Node *) time);
	Oid			argtypes[] = {TIMESTAMPTZOID};
	Oid			funcid;

	if (IsA(estimate, Const))
	{
		Const	   *constant = (Const *) estimate;

		if (constant->constisnull)
			return NULL;
		return (Expr *)
			makeConst(id_type, -1, InvalidOid, sizeof(int64),
					  DirectFunctionCall1(is_upper ? scru64_max : scru64_min,
										  constant->constvalue),
					  false, FLOAT8PASSBYVAL);
	}

	funcid = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
							 CStringGetDatum(is_upper ? "scru64_max" : "scru64_min"),
							 PointerGetDatum(buildoidvector(argtypes, lengthof(argtypes))),
							 ObjectIdGetDatum(get_func_namespace(timestamp_funcid)));
	if (!OidIsValid(funcid) ||
		compat_function_aclcheck(funcid, GetUserId()) != ACLCHECK_OK)
		return NULL;
	return (Expr *) makeFuncExpr(funcid, id_type, list_make1(time),
								 InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
}

/* The condition on the ID that "call <strategy> time" implies, or NULL. */
static Expr *
implied_condition(PlannerInfo *root, FuncExpr *call, StrategyNumber strategy,
				  Expr *time)
{
	bool		is_upper = strategy < BTEqualStrategyNumber;
	Expr	   *id = linitial(call->args);
	Oid			id_type = getBaseType(exprType((Node *) id));
	Oid			opfamily;
	Oid			operator;
	Expr	   *bound;

	if (strategy == BTEqualStrategyNumber)
		return NULL;

	opfamily = lookup_type_cache(id_type, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	operator = get_opfamily_member(opfamily, id_type, id_type,
								   is_upper ? BTLessEqualStrategyNumber :
								   BTGreaterEqualStrategyNumber);
	bound = make_bound(root, is_upper, call->funcid, id_type, time);
	if (!OidIsValid(operator) || bound == NULL)
		return NULL;
	return make_opclause(operator, BOOLOID, false, id, bound,
						 InvalidOid, InvalidOid);
}

/*
 * Is this expression the same for all rows of a relation, so that an index
 * can be searched for it?
 */
static bool
is_constant_per_scan(PlannerInfo *root, RelOptInfo *rel, Expr *expr)
{
	return !bms_overlap(pull_varnos(root, (Node *) expr), rel->relids) &&
		!contain_volatile_functions((Node *) expr);
}

/* The condition on the ID that "call operator time" implies, or NULL. */
static Expr *
implied_by_comparison(PlannerInfo *root, RelOptInfo *rel, Expr *call,
					  Oid operator, Expr *time)
{
	Oid			opfamily;
	StrategyNumber strategy;

	if (!OidIsValid(operator) || !is_timestamp_call((Node *) call) ||
		exprType((Node *) time) != TIMESTAMPTZOID ||
		!is_constant_per_scan(root, rel, time))
		return NULL;

	opfamily = lookup_type_cache(TIMESTAMPTZOID,
								 TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	strategy = get_op_opfamily_strategy(operator, opfamily);
	if (strategy == InvalidStrategy)
		return NULL;
	return implied_condition(root, (FuncExpr *) call, strategy, time);
}

/* The condition on the ID that a clause implies, or NULL. */
static Expr *
implied_by_clause(PlannerInfo *root, RelOptInfo *rel, Expr *clause)
{
	OpExpr	   *comparison = (OpExpr *) clause;
	Expr	   *left;
	Expr	   *right;
	Expr	   *condition;

	if (!IsA(clause, OpExpr) || list_length(comparison->args) != 2)
		return NULL;
	left = linitial(comparison->args);
	right = lsecond(comparison->args);

	condition = implied_by_comparison(root, rel, left, comparison->opno, right);
	if (condition == NULL)
		condition = implied_by_comparison(root, rel, right,
										  get_commutator(comparison->opno),
										  left);
	return condition;
}

/*
 * A condition that a clause implies, as the planner has them.  It may come as
 * early as the clause itself and no earlier, unless it gives nothing away: rows
 * that a policy hides must not be shown to a function of the user's.
 */
static RestrictInfo *
make_implied(PlannerInfo *root, Expr *condition, const RestrictInfo *clause)
{
	RestrictInfo *implied = make_simple_restrictinfo(root, condition);

	implied->security_level = clause->security_level;
	implied->leakproof = !contain_leaked_vars((Node *) condition);
	return implied;
}

/* The conditions on IDs that the clauses of a relation imply. */
static List *
implied_clauses(PlannerInfo *root, RelOptInfo *rel)
{
	List	   *implied = NIL;
	ListCell   *lc;

	foreach(lc, rel->baserestrictinfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		Expr	   *condition = implied_by_clause(root, rel, rinfo->clause);

		if (condition != NULL)
			implied = lappend(implied, make_implied(root, condition, rinfo));
	}
	return implied;
}

/*
 * Look for index paths once more, with the implied conditions.
 *
 * The index machinery matches each index with a list of clauses of its own,
 * and estimates with the relation's.  Both are set back afterwards, because
 * they also tell what a scan has to filter, and by then they say again what
 * the query said.
 */
static void
add_time_index_paths(PlannerInfo *root, RelOptInfo *rel, Index rti,
					 RangeTblEntry *rte)
{
	List	   *clauses = rel->baserestrictinfo;
	List	   *index_clauses = NIL;
	List	   *implied;
	ListCell   *lc;

	if (prev_set_rel_pathlist_hook)
		prev_set_rel_pathlist_hook(root, rel, rti, rte);

	/* only where the planner itself looks for index paths */
	if (rte->rtekind != RTE_RELATION || rte->inh || rte->tablesample != NULL ||
		rel->indexlist == NIL || IS_DUMMY_REL(rel))
		return;
	implied = implied_clauses(root, rel);
	if (implied == NIL)
		return;

	rel->baserestrictinfo = list_concat_copy(clauses, implied);
	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);

		index_clauses = lappend(index_clauses, index->indrestrictinfo);
		index->indrestrictinfo = list_concat_copy(index->indrestrictinfo,
												  implied);
	}

	create_index_paths(root, rel);

	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);

		index->indrestrictinfo = list_nth(index_clauses,
										  foreach_current_index(lc));
	}
	rel->baserestrictinfo = clauses;
}

void
time_index_init(void)
{
	prev_set_rel_pathlist_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = add_time_index_paths;
}
