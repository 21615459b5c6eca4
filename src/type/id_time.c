/*-------------------------------------------------------------------------
 *
 * id_time.c
 *		IDs as time: from an ID to its timestamp and back, and to the bounds
 *		of the IDs of a time range; RANGE of windows; planner support of
 *		"id < time" and the like.
 *
 * An ID's time is the start of its tick; a tick is 256 ms.  Only RANGE, which adds an
 * interval, depends on a time zone.
 *
 * Invariant: for every timestamptz t and every ID that can be generated,
 *
 *		id >= scru64_min(t)  if and only if  scru64_timestamp(id) >= t
 *		id <= scru64_max(t)  if and only if  scru64_timestamp(id) <= t
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "access/stratnum.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "type/id_time.h"

PG_FUNCTION_INFO_V1(scru64_timestamp);
PG_FUNCTION_INFO_V1(scru64_from_parts);
PG_FUNCTION_INFO_V1(scru64_min);
PG_FUNCTION_INFO_V1(scru64_max);
PG_FUNCTION_INFO_V1(scru64_in_range);
PG_FUNCTION_INFO_V1(scru64_lt_timestamptz);
PG_FUNCTION_INFO_V1(scru64_le_timestamptz);
PG_FUNCTION_INFO_V1(scru64_ge_timestamptz);
PG_FUNCTION_INFO_V1(scru64_gt_timestamptz);
PG_FUNCTION_INFO_V1(scru64_timestamptz_lt);
PG_FUNCTION_INFO_V1(scru64_timestamptz_le);
PG_FUNCTION_INFO_V1(scru64_timestamptz_ge);
PG_FUNCTION_INFO_V1(scru64_timestamptz_gt);
PG_FUNCTION_INFO_V1(scru64_lt_timestamptz_support);
PG_FUNCTION_INFO_V1(scru64_le_timestamptz_support);
PG_FUNCTION_INFO_V1(scru64_ge_timestamptz_support);
PG_FUNCTION_INFO_V1(scru64_gt_timestamptz_support);

static TimestampTz
id_time(uint64 id)
{
	return time_of_tick(scru64_get_timestamp(id));
}

/* scru64_timestamp(scru64) -> timestamptz: start of the ID's tick. */
Datum
scru64_timestamp(PG_FUNCTION_ARGS)
{
	PG_RETURN_TIMESTAMPTZ(id_time((uint64) PG_GETARG_INT64(0)));
}

uint64
id_time_checked_tick(TimestampTz time)
{
	/* infinity is out of range by its value */
	if (time < UNIX_EPOCH_TIMESTAMP || time >= LAST_TICK_TIMESTAMP + TICK_USECS)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range for type %s: \"%s\"", "scru64",
						timestamptz_to_str(time)),
				 errdetail("The timestamp of a scru64 is between the years 1970 and 4261."),
				 errhint("Give a time between them. For the end of a range of IDs use %s or %s, which take any time.",
						 "scru64_min(ts)", "scru64_max(ts)")));
	return tick_of_time(time);
}

/*
 * scru64_from_parts(ts timestamptz, node_ctr integer) -> scru64
 *
 * The ID with this node_ctr, 0 .. 2^24 - 1, in the tick that holds ts.  22008
 * if there is no such tick, infinity included, and 22003 for a node_ctr out of
 * range.
 */
Datum
scru64_from_parts(PG_FUNCTION_ARGS)
{
	uint64		tick = id_time_checked_tick(PG_GETARG_TIMESTAMPTZ(0));
	int32		node_ctr = PG_GETARG_INT32(1);

	if (node_ctr < 0 || node_ctr > (int32) SCRU64_MAX_NODE_CTR)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("node_ctr out of range: %d", node_ctr),
				 errdetail("A node_ctr is between 0 and %u.",
						   SCRU64_MAX_NODE_CTR),
				 errhint("A node_ctr is node_id << (24 - node_id_size) | counter.")));

	PG_RETURN_INT64((int64) scru64_compose(tick, (uint32) node_ctr));
}

/*
 * The smallest ID with scru64_timestamp(id) >= ts; the first or the last of all IDs,
 * a reserved one, if ts is before 1970 or past the last tick's start.
 */
static int64
least_id(TimestampTz time)
{
	if (time <= UNIX_EPOCH_TIMESTAMP)
		return 0;
	if (time > LAST_TICK_TIMESTAMP)
		return (int64) SCRU64_MAX_ID;

	/* the first tick that does not start before ts */
	return (int64) scru64_compose(tick_of_time(time + TICK_USECS - 1), 0);
}

/*
 * The largest ID with scru64_timestamp(id) <= ts; the first or the last of all IDs,
 * a reserved one, if ts is before 1970 or in the last tick or past it.
 */
static int64
greatest_id(TimestampTz time)
{
	if (time < UNIX_EPOCH_TIMESTAMP)
		return 0;
	if (time >= LAST_TICK_TIMESTAMP)
		return (int64) SCRU64_MAX_ID;
	return (int64) scru64_compose(tick_of_time(time), SCRU64_MAX_NODE_CTR);
}

/* scru64_min(timestamptz) -> scru64 */
Datum
scru64_min(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(least_id(PG_GETARG_TIMESTAMPTZ(0)));
}

/* scru64_max(timestamptz) -> scru64 */
Datum
scru64_max(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(greatest_id(PG_GETARG_TIMESTAMPTZ(0)));
}

/*
 * (scru64, timestamptz) -> boolean, (timestamptz, scru64) -> boolean
 *
 * In C, though planner support replaces most calls: PostgreSQL crashes where it calls an IMMUTABLE
 * function of SQL without a snapshot, as when it plans the CHECK of a domain after COMMIT.
 */
Datum
scru64_lt_timestamptz(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(PG_GETARG_INT64(0) < least_id(PG_GETARG_TIMESTAMPTZ(1)));
}

Datum
scru64_le_timestamptz(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(PG_GETARG_INT64(0) <= greatest_id(PG_GETARG_TIMESTAMPTZ(1)));
}

Datum
scru64_ge_timestamptz(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(PG_GETARG_INT64(0) >= least_id(PG_GETARG_TIMESTAMPTZ(1)));
}

Datum
scru64_gt_timestamptz(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(PG_GETARG_INT64(0) > greatest_id(PG_GETARG_TIMESTAMPTZ(1)));
}

Datum
scru64_timestamptz_lt(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(PG_GETARG_INT64(1) > greatest_id(PG_GETARG_TIMESTAMPTZ(0)));
}

Datum
scru64_timestamptz_le(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(PG_GETARG_INT64(1) >= least_id(PG_GETARG_TIMESTAMPTZ(0)));
}

Datum
scru64_timestamptz_ge(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(PG_GETARG_INT64(1) <= greatest_id(PG_GETARG_TIMESTAMPTZ(0)));
}

Datum
scru64_timestamptz_gt(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(PG_GETARG_INT64(1) < least_id(PG_GETARG_TIMESTAMPTZ(0)));
}

/*
 * scru64_in_range(scru64, scru64, interval, boolean, boolean) -> boolean
 *
 * btree support function 3: whether an ID's time is within an interval before
 * or after another's, as core's for timestamptz.
 */
Datum
scru64_in_range(PG_FUNCTION_ARGS)
{
	uint64		val = (uint64) PG_GETARG_INT64(0);
	uint64		base = (uint64) PG_GETARG_INT64(1);

	return DirectFunctionCall5(in_range_timestamptz_interval,
							   TimestampTzGetDatum(id_time(val)),
							   TimestampTzGetDatum(id_time(base)),
							   PG_GETARG_DATUM(2),
							   PG_GETARG_DATUM(3),
							   PG_GETARG_DATUM(4));
}

/* The expression "id OPERATOR bound". */
static Expr *
compare_id(Expr *id, int strategy, Expr *bound)
{
	Oid			type = exprType((Node *) id);
	Oid			opfamily = lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	Expr	   *clause = make_opclause(get_opfamily_member(opfamily, type, type, strategy),
									   BOOLOID, false, id, bound, InvalidOid, InvalidOid);

	/* COPY executes its WHERE as it was simplified: nothing looks up the function later. */
	set_opfuncid((OpExpr *) clause);
	return clause;
}

/* A constant of an ID's type */
static Expr *
constant_id(Oid type, int64 id)
{
	TypeCacheEntry *entry = lookup_type_cache(type, 0);

	return (Expr *) makeConst(type, -1, InvalidOid, entry->typlen, Int64GetDatum(id), false,
							  entry->typbyval);
}

/*
 * The expression "scru64_min(time)", or another function by name.  NULL if there is none, or if not
 * all roles may execute the function: a plan may be executed as another role than planned.
 */
static Expr *
call_of_bound(const char *name, Oid type, Expr *time)
{
	Oid			argument = TIMESTAMPTZOID;
	Oid			function = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
										   CStringGetDatum(name),
										   PointerGetDatum(buildoidvector(&argument, 1)),
										   ObjectIdGetDatum(PG_CATALOG_NAMESPACE));

	return !OidIsValid(function) || !compat_may_execute(function, ACL_ID_PUBLIC) ? NULL :
		(Expr *) makeFuncExpr(function, type, list_make1(time), InvalidOid, InvalidOid,
							  COERCE_EXPLICIT_CALL);
}

/*
 * Planner support of the comparisons of an ID with a time, whichever of them is on the left.
 * Returns a comparison of IDs, with the ID on the left, in which the planner finds indexes,
 * partitions and statistics.
 */
static Datum
simplify(FunctionCallInfo fcinfo, int strategy, const char *name, int64 (*bound_of) (TimestampTz))
{
	SupportRequestSimplify *request = (SupportRequestSimplify *) PG_GETARG_POINTER(0);
	Expr	   *id;
	Expr	   *time;
	Oid			type;
	Expr	   *bound;

	if (!IsA(request, SupportRequestSimplify))
		PG_RETURN_POINTER(NULL);
	id = linitial(request->fcall->args);
	time = lsecond(request->fcall->args);
	if (exprType((Node *) id) == TIMESTAMPTZOID)
	{
		id = lsecond(request->fcall->args);
		time = linitial(request->fcall->args);
	}
	type = exprType((Node *) id);
	if (IsA(time, Const))
		bound = constant_id(type, bound_of(DatumGetTimestampTz(((Const *) time)->constvalue)));
	else
		bound = call_of_bound(name, type, time);
	PG_RETURN_POINTER(bound == NULL ? NULL : compare_id(id, strategy, bound));
}

/* scru64_lt_timestamptz_support(internal) -> internal: id < time, time > id */
Datum
scru64_lt_timestamptz_support(PG_FUNCTION_ARGS)
{
	return simplify(fcinfo, BTLessStrategyNumber, "scru64_min", least_id);
}

/* scru64_le_timestamptz_support(internal) -> internal: id <= time, time >= id */
Datum
scru64_le_timestamptz_support(PG_FUNCTION_ARGS)
{
	return simplify(fcinfo, BTLessEqualStrategyNumber, "scru64_max", greatest_id);
}

/* scru64_ge_timestamptz_support(internal) -> internal: id >= time, time <= id */
Datum
scru64_ge_timestamptz_support(PG_FUNCTION_ARGS)
{
	return simplify(fcinfo, BTGreaterEqualStrategyNumber, "scru64_min", least_id);
}

/* scru64_gt_timestamptz_support(internal) -> internal: id > time, time < id */
Datum
scru64_gt_timestamptz_support(PG_FUNCTION_ARGS)
{
	return simplify(fcinfo, BTGreaterStrategyNumber, "scru64_max", greatest_id);
}
