/*-------------------------------------------------------------------------
 *
 * type.c
 *		The type scru64: text and binary input, text output, casts, accessor.
 *
 * A scru64 is an int8 inside the range of SCRU64 IDs.  The functions here guard the
 * range; functions that work on every int8 (comparison, hashing, binary output, the
 * cast to bytea) are in operators.c.
 *
 * Invariant: no function returns a scru64 outside 0 .. SCRU64_MAX_ID.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "lib/stringinfo.h"
#include "libpq/pqformat.h"
#include "port/pg_bswap.h"
#include "utils/builtins.h"

#include "pure/base36.h"
#include "pure/scru64.h"

/* Bytes of a binary scru64. */
#define SCRU64_BYTES	8

#define MAX_BIGINT_DIGITS	19

PG_FUNCTION_INFO_V1(scru64_in);
PG_FUNCTION_INFO_V1(scru64_out);
PG_FUNCTION_INFO_V1(scru64_recv);
PG_FUNCTION_INFO_V1(scru64_from_bigint);
PG_FUNCTION_INFO_V1(scru64_from_bytea);
PG_FUNCTION_INFO_V1(scru64_node_ctr);

/*
 * Does a text begin as a date does, 2026-01-31?  In "id >= '2026-01-31'" PostgreSQL
 * takes the literal for an ID.
 */
static bool
looks_like_date(const char *text)
{
	return strspn(text, "0123456789") == 4 && text[4] == '-';
}

/*
 * Is a text the integer of an ID, as drivers send it?  An integer of twelve digits
 * is taken for the text of an ID.
 */
static bool
looks_like_bigint(const char *text)
{
	size_t		len = strlen(text);

	return len > BASE36_DIGITS && len <= MAX_BIGINT_DIGITS &&
		strspn(text, "0123456789") == len;
}

/*
 * scru64_in(cstring) -> scru64
 *
 * Twelve Base36 digits of either case and nothing else.  22P02 otherwise, as a
 * soft error where the version has them.
 */
Datum
scru64_in(PG_FUNCTION_ARGS)
{
	char	   *text = PG_GETARG_CSTRING(0);
	uint64_t	id;

	if (!base36_decode(text, strlen(text), &id))
		ereturn(fcinfo->context, (Datum) 0,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid input syntax for type %s: \"%s\"",
						"scru64", text),
				 errdetail("A scru64 is written as exactly %d digits, each 0-9 or a-z.",
						   BASE36_DIGITS),
				 looks_like_date(text) ?
				 errhint("To compare an ID with a time, write: timestamptz '%s', or for a parameter: $1::timestamptz.",
						 text) :
				 looks_like_bigint(text) ?
				 errhint("To give an ID as an integer, write: %s::scru64, or for a parameter: $1::bigint::scru64. Or give the ID in its string form.",
						 text) :
				 errhint("IDs look like %s. An integer is converted by a cast from bigint.",
						 "0u2r85hm2pt3")));

	PG_RETURN_INT64((int64) id);
}

/* scru64_out(scru64) -> cstring: twelve digits, lower case. */
Datum
scru64_out(PG_FUNCTION_ARGS)
{
	char	   *text = palloc(BASE36_DIGITS + 1);

	base36_encode((uint64) PG_GETARG_INT64(0), text);
	text[BASE36_DIGITS] = '\0';
	PG_RETURN_CSTRING(text);
}

/*
 * scru64_recv(internal) -> scru64
 *
 * Eight bytes, big-endian, as a bigint has it.  22P03 for anything else.
 */
Datum
scru64_recv(PG_FUNCTION_ARGS)
{
	StringInfo	buf = (StringInfo) PG_GETARG_POINTER(0);
	int			len = buf->len - buf->cursor;
	uint64		id;

	if (len != SCRU64_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid binary format for type %s", "scru64"),
				 errdetail("A binary scru64 has %d bytes, not %d.",
						   SCRU64_BYTES, len),
				 errhint("Send it as a bigint is sent, or as text.")));

	id = (uint64) pq_getmsgint64(buf);
	if (id > SCRU64_MAX_ID)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid binary format for type %s", "scru64"),
				 errdetail("The value " INT64_FORMAT " is not between 0 and " UINT64_FORMAT ".",
						   (int64) id, (uint64) SCRU64_MAX_ID),
				 errhint("Send the bytes in network order, most significant first.")));

	PG_RETURN_INT64((int64) id);
}

/* An ID from a number of unknown range: 22003 outside 0 .. SCRU64_MAX_ID. */
static Datum
checked_id(int64 value)
{
	/* a negative value is a huge unsigned one */
	if ((uint64) value > SCRU64_MAX_ID)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("value \"" INT64_FORMAT "\" is out of range for type %s",
						value, "scru64"),
				 errdetail("A scru64 is between 0 and " UINT64_FORMAT ".",
						   (uint64) SCRU64_MAX_ID),
				 errhint("If this is an ID of another kind, make one of its time with %s.",
						 "scru64_from_parts(ts, node_ctr)")));
	return Int64GetDatum(value);
}

/* scru64_from_bigint(bigint) -> scru64: range-checked, 22003. */
Datum
scru64_from_bigint(PG_FUNCTION_ARGS)
{
	return checked_id(PG_GETARG_INT64(0));
}

/*
 * scru64_from_bytea(bytea) -> scru64
 *
 * Eight bytes, big-endian: 22023 for another length, 22003 out of range.
 */
Datum
scru64_from_bytea(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	int			len = VARSIZE_ANY_EXHDR(bytes);
	uint64		big_endian;

	if (len != SCRU64_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid length of bytea for type %s: %d",
						"scru64", len),
				 errdetail("A binary scru64 has %d bytes.", SCRU64_BYTES),
				 errhint("If the bytes are the ID's text, use %s.",
						 "convert_from(bytes, 'UTF8')::scru64")));

	memcpy(&big_endian, VARDATA_ANY(bytes), sizeof(big_endian));
	return checked_id((int64) pg_ntoh64(big_endian));
}

/* scru64_node_ctr(scru64) -> integer: the low 24 bits, 0 .. 2^24 - 1. */
Datum
scru64_node_ctr(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32((int32) scru64_get_node_ctr((uint64) PG_GETARG_INT64(0)));
}
