/*-------------------------------------------------------------------------
 *
 * operators.c
 *		The functions of int8 for scru64: comparison, order, hash, output.
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

#define A		PG_GETARG_INT64(0)
#define B		PG_GETARG_INT64(1)

#define FUNCTION(name, result) \
	PG_FUNCTION_INFO_V1(name); \
	Datum \
	name(PG_FUNCTION_ARGS) \
	{ \
		return result; \
	} \
	extern Datum name(PG_FUNCTION_ARGS)

/* (scru64, scru64) -> boolean */
FUNCTION(scru64_lt, BoolGetDatum(A < B));
FUNCTION(scru64_le, BoolGetDatum(A <= B));
FUNCTION(scru64_eq, BoolGetDatum(A == B));
FUNCTION(scru64_ne, BoolGetDatum(A != B));
FUNCTION(scru64_ge, BoolGetDatum(A >= B));
FUNCTION(scru64_gt, BoolGetDatum(A > B));

/* (scru64, scru64) -> integer: -1, 0 or 1 */
FUNCTION(scru64_cmp, Int32GetDatum((A > B) - (A < B)));

/* (scru64) -> integer; (scru64, bigint) -> bigint */
FUNCTION(scru64_hash, hashint8(fcinfo));
FUNCTION(scru64_hash_extended, hashint8extended(fcinfo));

/* (scru64, scru64) -> scru64 */
FUNCTION(scru64_smaller, Int64GetDatum(Min(A, B)));
FUNCTION(scru64_larger, Int64GetDatum(Max(A, B)));

/* (scru64) -> bytea: eight bytes, big-endian */
FUNCTION(scru64_send, int8send(fcinfo));
