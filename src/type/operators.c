/*-------------------------------------------------------------------------
 *
 * operators.c
 *		The functions of int8 for scru64: comparison, order, min and max, hash, binary output.
 *
 * Each function computes the same as its int8 counterpart.  They are functions of
 * this library for the sake of speed: to find a built-in function under another
 * name, PostgreSQL searches all names, in every query anew.
 *
 * Invariant: the result is the int8 function's, whatever the argument.  Indexes,
 * the sort support of int8 and hash partitions rely on it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "utils/fmgrprotos.h"

PG_FUNCTION_INFO_V1(scru64_lt);
PG_FUNCTION_INFO_V1(scru64_le);
PG_FUNCTION_INFO_V1(scru64_eq);
PG_FUNCTION_INFO_V1(scru64_ne);
PG_FUNCTION_INFO_V1(scru64_ge);
PG_FUNCTION_INFO_V1(scru64_gt);
PG_FUNCTION_INFO_V1(scru64_cmp);
PG_FUNCTION_INFO_V1(scru64_hash);
PG_FUNCTION_INFO_V1(scru64_hash_extended);
PG_FUNCTION_INFO_V1(scru64_smaller);
PG_FUNCTION_INFO_V1(scru64_larger);
PG_FUNCTION_INFO_V1(scru64_send);

/* (scru64, scru64) -> boolean */
Datum
scru64_lt(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(PG_GETARG_INT64(0) < PG_GETARG_INT64(1));
}

Datum
scru64_le(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(PG_GETARG_INT64(0) <= PG_GETARG_INT64(1));
}

Datum
scru64_eq(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(PG_GETARG_INT64(0) == PG_GETARG_INT64(1));
}

Datum
scru64_ne(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(PG_GETARG_INT64(0) != PG_GETARG_INT64(1));
}

Datum
scru64_ge(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(PG_GETARG_INT64(0) >= PG_GETARG_INT64(1));
}

Datum
scru64_gt(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(PG_GETARG_INT64(0) > PG_GETARG_INT64(1));
}

/* (scru64, scru64) -> integer: -1, 0 or 1 */
Datum
scru64_cmp(PG_FUNCTION_ARGS)
{
	int64		a = PG_GETARG_INT64(0);
	int64		b = PG_GETARG_INT64(1);

	PG_RETURN_INT32((a > b) - (a < b));
}

/* (scru64) -> integer; (scru64, bigint) -> bigint */
Datum
scru64_hash(PG_FUNCTION_ARGS)
{
	return hashint8(fcinfo);
}

Datum
scru64_hash_extended(PG_FUNCTION_ARGS)
{
	return hashint8extended(fcinfo);
}

/* (scru64, scru64) -> scru64 */
Datum
scru64_smaller(PG_FUNCTION_ARGS)
{
	int64		a = PG_GETARG_INT64(0);
	int64		b = PG_GETARG_INT64(1);

	PG_RETURN_INT64(Min(a, b));
}

Datum
scru64_larger(PG_FUNCTION_ARGS)
{
	int64		a = PG_GETARG_INT64(0);
	int64		b = PG_GETARG_INT64(1);

	PG_RETURN_INT64(Max(a, b));
}

/* (scru64) -> bytea: eight bytes, big-endian */
Datum
scru64_send(PG_FUNCTION_ARGS)
{
	return int8send(fcinfo);
}
