/* sql/scru64--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION scru64" to load this file. \quit

-- ---------------------------------------------------------------------------
-- Type
--
-- A scru64 is an int8 inside the range of SCRU64 IDs.
--
-- Everything is in pg_catalog. IS DISTINCT FROM, NULLIF, CASE and JOIN USING cannot name
-- the schema of an operator: with the operators elsewhere, PostgreSQL could not restore
-- a dump of these.
-- ---------------------------------------------------------------------------

CREATE TYPE scru64;

CREATE FUNCTION scru64_in(cstring) RETURNS scru64 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION scru64_out(scru64) RETURNS cstring AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION scru64_recv(internal) RETURNS scru64 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION scru64_send(scru64) RETURNS bytea AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE TYPE scru64 (
	INPUT = scru64_in,
	OUTPUT = scru64_out,
	RECEIVE = scru64_recv,
	SEND = scru64_send,
	LIKE = int8,
	CATEGORY = 'U'
);

COMMENT ON TYPE scru64 IS 'SCRU64 ID: 64 bits, sorted by time, written as 12 Base36 digits';
COMMENT ON FUNCTION scru64_in(cstring) IS 'I/O';
COMMENT ON FUNCTION scru64_out(scru64) IS 'I/O';
COMMENT ON FUNCTION scru64_recv(internal) IS 'I/O';
COMMENT ON FUNCTION scru64_send(scru64) IS 'I/O: 8 bytes, big-endian';

-- ---------------------------------------------------------------------------
-- Comparison operators
--
-- LEAKPROOF, as the int8 functions are whose results they have.
-- ---------------------------------------------------------------------------

CREATE FUNCTION scru64_lt(scru64, scru64) RETURNS boolean AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE FUNCTION scru64_le(scru64, scru64) RETURNS boolean AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE FUNCTION scru64_eq(scru64, scru64) RETURNS boolean AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE FUNCTION scru64_ne(scru64, scru64) RETURNS boolean AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE FUNCTION scru64_ge(scru64, scru64) RETURNS boolean AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE FUNCTION scru64_gt(scru64, scru64) RETURNS boolean AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;

COMMENT ON FUNCTION scru64_lt(scru64, scru64) IS 'implementation of < operator';
COMMENT ON FUNCTION scru64_le(scru64, scru64) IS 'implementation of <= operator';
COMMENT ON FUNCTION scru64_eq(scru64, scru64) IS 'implementation of = operator';
COMMENT ON FUNCTION scru64_ne(scru64, scru64) IS 'implementation of <> operator';
COMMENT ON FUNCTION scru64_ge(scru64, scru64) IS 'implementation of >= operator';
COMMENT ON FUNCTION scru64_gt(scru64, scru64) IS 'implementation of > operator';

-- PostgreSQL's estimators know no linear scale for this type: they get the operands as bigint.
CREATE FUNCTION scru64_ineqsel(internal, oid, internal, integer) RETURNS float8
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION scru64_ineqsel(internal, oid, internal, integer)
	IS 'restriction selectivity of < <= >= > and ranges of them';

CREATE OPERATOR < (LEFTARG = scru64, RIGHTARG = scru64, FUNCTION = scru64_lt, COMMUTATOR = >, NEGATOR = >=,
	RESTRICT = scru64_ineqsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = scru64, RIGHTARG = scru64, FUNCTION = scru64_le, COMMUTATOR = >=, NEGATOR = >,
	RESTRICT = scru64_ineqsel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = scru64, RIGHTARG = scru64, FUNCTION = scru64_eq, COMMUTATOR = =, NEGATOR = <>,
	RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES);
CREATE OPERATOR <> (LEFTARG = scru64, RIGHTARG = scru64, FUNCTION = scru64_ne, COMMUTATOR = <>, NEGATOR = =,
	RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR >= (LEFTARG = scru64, RIGHTARG = scru64, FUNCTION = scru64_ge, COMMUTATOR = <=, NEGATOR = <,
	RESTRICT = scru64_ineqsel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = scru64, RIGHTARG = scru64, FUNCTION = scru64_gt, COMMUTATOR = <, NEGATOR = <=,
	RESTRICT = scru64_ineqsel, JOIN = scalargtjoinsel);

COMMENT ON OPERATOR < (scru64, scru64) IS 'less than';
COMMENT ON OPERATOR <= (scru64, scru64) IS 'less than or equal';
COMMENT ON OPERATOR = (scru64, scru64) IS 'equal';
COMMENT ON OPERATOR <> (scru64, scru64) IS 'not equal';
COMMENT ON OPERATOR >= (scru64, scru64) IS 'greater than or equal';
COMMENT ON OPERATOR > (scru64, scru64) IS 'greater than';

-- ---------------------------------------------------------------------------
-- Indexes
-- ---------------------------------------------------------------------------

CREATE FUNCTION scru64_cmp(scru64, scru64) RETURNS integer AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE FUNCTION scru64_hash(scru64) RETURNS integer AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE FUNCTION scru64_hash_extended(scru64, bigint) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;

COMMENT ON FUNCTION scru64_cmp(scru64, scru64) IS 'less-equal-greater';
COMMENT ON FUNCTION scru64_hash(scru64) IS 'hash';
COMMENT ON FUNCTION scru64_hash_extended(scru64, bigint) IS 'hash';

CREATE OPERATOR CLASS scru64_ops DEFAULT FOR TYPE scru64 USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 scru64_cmp(scru64, scru64),
	FUNCTION 2 btint8sortsupport(internal),
	FUNCTION 4 btequalimage(oid);

-- Skip support came with PostgreSQL 18. SQL in place of DO: a database may have no plpgsql.
CREATE FUNCTION scru64_add_skip_support() RETURNS void LANGUAGE sql AS $$
	ALTER OPERATOR FAMILY scru64_ops USING btree ADD
		FUNCTION 6 (scru64, scru64) btint8skipsupport(internal);
$$;
SELECT scru64_add_skip_support() WHERE current_setting('server_version_num')::integer >= 180000;
DROP FUNCTION scru64_add_skip_support();

CREATE OPERATOR CLASS scru64_ops DEFAULT FOR TYPE scru64 USING hash AS
	OPERATOR 1 =,
	FUNCTION 1 scru64_hash(scru64),
	FUNCTION 2 scru64_hash_extended(scru64, bigint);

CREATE OPERATOR CLASS scru64_minmax_ops DEFAULT FOR TYPE scru64 USING brin AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 brin_minmax_opcinfo(internal),
	FUNCTION 2 brin_minmax_add_value(internal, internal, internal, internal),
	FUNCTION 3 brin_minmax_consistent(internal, internal, internal),
	FUNCTION 4 brin_minmax_union(internal, internal, internal);

CREATE OPERATOR CLASS scru64_minmax_multi_ops FOR TYPE scru64 USING brin AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 brin_minmax_multi_opcinfo(internal),
	FUNCTION 2 brin_minmax_multi_add_value(internal, internal, internal, internal),
	FUNCTION 3 brin_minmax_multi_consistent(internal, internal, internal, integer),
	FUNCTION 4 brin_minmax_multi_union(internal, internal, internal),
	FUNCTION 5 brin_minmax_multi_options(internal),
	FUNCTION 11 brin_minmax_multi_distance_int8(internal, internal);

CREATE OPERATOR CLASS scru64_bloom_ops FOR TYPE scru64 USING brin AS
	OPERATOR 1 =,
	FUNCTION 1 brin_bloom_opcinfo(internal),
	FUNCTION 2 brin_bloom_add_value(internal, internal, internal, internal),
	FUNCTION 3 brin_bloom_consistent(internal, internal, internal, integer),
	FUNCTION 4 brin_bloom_union(internal, internal, internal),
	FUNCTION 5 brin_bloom_options(internal),
	FUNCTION 11 scru64_hash(scru64);

COMMENT ON OPERATOR FAMILY scru64_ops USING btree IS 'btree indexes on scru64';
COMMENT ON OPERATOR CLASS scru64_ops USING btree IS 'btree indexes on scru64';
COMMENT ON OPERATOR FAMILY scru64_ops USING hash IS 'hash indexes on scru64';
COMMENT ON OPERATOR CLASS scru64_ops USING hash IS 'hash indexes on scru64';
COMMENT ON OPERATOR FAMILY scru64_minmax_ops USING brin IS 'BRIN indexes on scru64: one range';
COMMENT ON OPERATOR CLASS scru64_minmax_ops USING brin IS 'BRIN indexes on scru64: one range';
COMMENT ON OPERATOR FAMILY scru64_minmax_multi_ops USING brin IS 'BRIN indexes on scru64: several ranges';
COMMENT ON OPERATOR CLASS scru64_minmax_multi_ops USING brin IS 'BRIN indexes on scru64: several ranges';
COMMENT ON OPERATOR FAMILY scru64_bloom_ops USING brin IS 'BRIN indexes on scru64: equality only';
COMMENT ON OPERATOR CLASS scru64_bloom_ops USING brin IS 'BRIN indexes on scru64: equality only';

-- ---------------------------------------------------------------------------
-- Aggregates
-- ---------------------------------------------------------------------------

CREATE FUNCTION scru64_smaller(scru64, scru64) RETURNS scru64 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION scru64_larger(scru64, scru64) RETURNS scru64 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION scru64_smaller(scru64, scru64) IS 'smaller of two';
COMMENT ON FUNCTION scru64_larger(scru64, scru64) IS 'larger of two';

-- SORTOP is what lets an index answer.
CREATE AGGREGATE min(scru64) (
	SFUNC = scru64_smaller, STYPE = scru64,
	COMBINEFUNC = scru64_smaller, SORTOP = <, PARALLEL = SAFE
);
CREATE AGGREGATE max(scru64) (
	SFUNC = scru64_larger, STYPE = scru64,
	COMBINEFUNC = scru64_larger, SORTOP = >, PARALLEL = SAFE
);

COMMENT ON AGGREGATE min(scru64) IS 'minimum value of all scru64 input values';
COMMENT ON AGGREGATE max(scru64) IS 'maximum value of all scru64 input values';

-- ---------------------------------------------------------------------------
-- Casts
--
-- None is implicit: an implicit cast makes operators ambiguous or, worse, finds
-- one that was not meant.
-- ---------------------------------------------------------------------------

CREATE FUNCTION scru64_from_bigint(bigint) RETURNS scru64 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION scru64_from_bytea(bytea) RETURNS scru64 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION scru64_from_bigint(bigint) IS 'convert bigint to scru64';
COMMENT ON FUNCTION scru64_from_bytea(bytea) IS 'convert 8 bytes, big-endian, to scru64';

-- Every scru64 is a bigint, so this way there is nothing to do, not even a
-- table to rewrite.
CREATE CAST (scru64 AS bigint) WITHOUT FUNCTION AS ASSIGNMENT;

-- Explicit: most numbers are IDs of some time. A writer that still generates numbers,
-- by nextval() or as Snowflakes do, gets 42804 in place of an ID of another time.
CREATE CAST (bigint AS scru64) WITH FUNCTION scru64_from_bigint(bigint);

-- Assignment, so that an INSERT of a text value or parameter just works. The other way
-- PostgreSQL converts every type.
CREATE CAST (text AS scru64) WITH INOUT AS ASSIGNMENT;
CREATE CAST (varchar AS scru64) WITH INOUT AS ASSIGNMENT;
CREATE CAST (character AS scru64) WITH INOUT AS ASSIGNMENT;

-- Explicit: bytes are nothing that one takes for an ID by accident.
CREATE CAST (scru64 AS bytea) WITH FUNCTION scru64_send(scru64);
CREATE CAST (bytea AS scru64) WITH FUNCTION scru64_from_bytea(bytea);

COMMENT ON CAST (scru64 AS bigint) IS 'same 64 bits';
COMMENT ON CAST (bigint AS scru64) IS 'same 64 bits, range-checked';
COMMENT ON CAST (text AS scru64) IS '12 Base36 digits';
COMMENT ON CAST (varchar AS scru64) IS '12 Base36 digits';
COMMENT ON CAST (character AS scru64) IS '12 Base36 digits';
COMMENT ON CAST (scru64 AS bytea) IS '8 bytes, big-endian';
COMMENT ON CAST (bytea AS scru64) IS '8 bytes, big-endian';

-- ---------------------------------------------------------------------------
-- Parts of an ID
-- ---------------------------------------------------------------------------

CREATE FUNCTION scru64_timestamp(scru64) RETURNS timestamptz AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION scru64_node_ctr(scru64) RETURNS integer AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION scru64_from_parts(ts timestamptz, node_ctr integer) RETURNS scru64
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION scru64_timestamp(scru64) IS 'time of an ID: start of its tick of 256 ms';
COMMENT ON FUNCTION scru64_node_ctr(scru64) IS 'node_id and counter of an ID: the low 24 bits';
COMMENT ON FUNCTION scru64_from_parts(timestamptz, integer) IS 'ID with this node_ctr in the tick that holds ts';

-- Explicit: an ID is not a time, it only has one.
CREATE CAST (scru64 AS timestamptz) WITH FUNCTION scru64_timestamp(scru64);

COMMENT ON CAST (scru64 AS timestamptz) IS 'time of an ID: start of its tick of 256 ms';

-- ---------------------------------------------------------------------------
-- Time ranges
--
-- An ID compares with a timestamptz by its time. Planner support makes of it a
-- comparison of IDs, id < scru64_min(ts) and the like, in which the planner finds
-- indexes, partitions and statistics.
-- ---------------------------------------------------------------------------

CREATE FUNCTION scru64_min(timestamptz) RETURNS scru64 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE FUNCTION scru64_max(timestamptz) RETURNS scru64 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;

COMMENT ON FUNCTION scru64_min(timestamptz) IS 'smallest ID whose time is not before this';
COMMENT ON FUNCTION scru64_max(timestamptz) IS 'largest ID whose time is not after this';

-- Explicit: it is a bound, and not a new ID to store.
CREATE CAST (timestamptz AS scru64) WITH FUNCTION scru64_min(timestamptz);

COMMENT ON CAST (timestamptz AS scru64) IS 'smallest ID whose time is not before this: a bound, not a new ID';

CREATE FUNCTION scru64_lt_timestamptz_support(internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION scru64_le_timestamptz_support(internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION scru64_ge_timestamptz_support(internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION scru64_gt_timestamptz_support(internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION scru64_lt_timestamptz_support(internal) IS 'planner support of scru64 < timestamptz, timestamptz > scru64';
COMMENT ON FUNCTION scru64_le_timestamptz_support(internal) IS 'planner support of scru64 <= timestamptz, timestamptz >= scru64';
COMMENT ON FUNCTION scru64_ge_timestamptz_support(internal) IS 'planner support of scru64 >= timestamptz, timestamptz <= scru64';
COMMENT ON FUNCTION scru64_gt_timestamptz_support(internal) IS 'planner support of scru64 > timestamptz, timestamptz < scru64';

CREATE FUNCTION scru64_lt_timestamptz(scru64, timestamptz) RETURNS boolean AS 'MODULE_PATHNAME' LANGUAGE C
	IMMUTABLE STRICT PARALLEL SAFE SUPPORT scru64_lt_timestamptz_support;
CREATE FUNCTION scru64_le_timestamptz(scru64, timestamptz) RETURNS boolean AS 'MODULE_PATHNAME' LANGUAGE C
	IMMUTABLE STRICT PARALLEL SAFE SUPPORT scru64_le_timestamptz_support;
CREATE FUNCTION scru64_ge_timestamptz(scru64, timestamptz) RETURNS boolean AS 'MODULE_PATHNAME' LANGUAGE C
	IMMUTABLE STRICT PARALLEL SAFE SUPPORT scru64_ge_timestamptz_support;
CREATE FUNCTION scru64_gt_timestamptz(scru64, timestamptz) RETURNS boolean AS 'MODULE_PATHNAME' LANGUAGE C
	IMMUTABLE STRICT PARALLEL SAFE SUPPORT scru64_gt_timestamptz_support;

CREATE FUNCTION timestamptz_lt_scru64(timestamptz, scru64) RETURNS boolean
	AS 'MODULE_PATHNAME', 'scru64_timestamptz_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT scru64_gt_timestamptz_support;
CREATE FUNCTION timestamptz_le_scru64(timestamptz, scru64) RETURNS boolean
	AS 'MODULE_PATHNAME', 'scru64_timestamptz_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT scru64_ge_timestamptz_support;
CREATE FUNCTION timestamptz_ge_scru64(timestamptz, scru64) RETURNS boolean
	AS 'MODULE_PATHNAME', 'scru64_timestamptz_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT scru64_le_timestamptz_support;
CREATE FUNCTION timestamptz_gt_scru64(timestamptz, scru64) RETURNS boolean
	AS 'MODULE_PATHNAME', 'scru64_timestamptz_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT scru64_lt_timestamptz_support;

COMMENT ON FUNCTION scru64_lt_timestamptz(scru64, timestamptz) IS 'implementation of < operator';
COMMENT ON FUNCTION scru64_le_timestamptz(scru64, timestamptz) IS 'implementation of <= operator';
COMMENT ON FUNCTION scru64_ge_timestamptz(scru64, timestamptz) IS 'implementation of >= operator';
COMMENT ON FUNCTION scru64_gt_timestamptz(scru64, timestamptz) IS 'implementation of > operator';
COMMENT ON FUNCTION timestamptz_lt_scru64(timestamptz, scru64) IS 'implementation of < operator';
COMMENT ON FUNCTION timestamptz_le_scru64(timestamptz, scru64) IS 'implementation of <= operator';
COMMENT ON FUNCTION timestamptz_ge_scru64(timestamptz, scru64) IS 'implementation of >= operator';
COMMENT ON FUNCTION timestamptz_gt_scru64(timestamptz, scru64) IS 'implementation of > operator';

CREATE OPERATOR < (LEFTARG = scru64, RIGHTARG = timestamptz, FUNCTION = scru64_lt_timestamptz, COMMUTATOR = >, NEGATOR = >=,
	RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = scru64, RIGHTARG = timestamptz, FUNCTION = scru64_le_timestamptz, COMMUTATOR = >=, NEGATOR = >,
	RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR >= (LEFTARG = scru64, RIGHTARG = timestamptz, FUNCTION = scru64_ge_timestamptz, COMMUTATOR = <=, NEGATOR = <,
	RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = scru64, RIGHTARG = timestamptz, FUNCTION = scru64_gt_timestamptz, COMMUTATOR = <, NEGATOR = <=,
	RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR < (LEFTARG = timestamptz, RIGHTARG = scru64, FUNCTION = timestamptz_lt_scru64, COMMUTATOR = >, NEGATOR = >=,
	RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = timestamptz, RIGHTARG = scru64, FUNCTION = timestamptz_le_scru64, COMMUTATOR = >=, NEGATOR = >,
	RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR >= (LEFTARG = timestamptz, RIGHTARG = scru64, FUNCTION = timestamptz_ge_scru64, COMMUTATOR = <=, NEGATOR = <,
	RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = timestamptz, RIGHTARG = scru64, FUNCTION = timestamptz_gt_scru64, COMMUTATOR = <, NEGATOR = <=,
	RESTRICT = scalargtsel, JOIN = scalargtjoinsel);

COMMENT ON OPERATOR < (scru64, timestamptz) IS 'less than, by time';
COMMENT ON OPERATOR <= (scru64, timestamptz) IS 'less than or equal, by time';
COMMENT ON OPERATOR >= (scru64, timestamptz) IS 'greater than or equal, by time';
COMMENT ON OPERATOR > (scru64, timestamptz) IS 'greater than, by time';
COMMENT ON OPERATOR < (timestamptz, scru64) IS 'less than, by time';
COMMENT ON OPERATOR <= (timestamptz, scru64) IS 'less than or equal, by time';
COMMENT ON OPERATOR >= (timestamptz, scru64) IS 'greater than or equal, by time';
COMMENT ON OPERATOR > (timestamptz, scru64) IS 'greater than, by time';

-- RANGE BETWEEN '1 hour' PRECEDING AND CURRENT ROW, over an ID. Not immutable:
-- how long a day is depends on the time zone.
CREATE FUNCTION scru64_in_range(scru64, scru64, interval, boolean, boolean) RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION scru64_in_range(scru64, scru64, interval, boolean, boolean) IS 'window RANGE support';

ALTER OPERATOR FAMILY scru64_ops USING btree ADD
	FUNCTION 3 (scru64, interval) scru64_in_range(scru64, scru64, interval, boolean, boolean);

-- ---------------------------------------------------------------------------
-- Generator
-- ---------------------------------------------------------------------------

CREATE FUNCTION scru64_generate_support(internal) RETURNS internal AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION scru64_generate() RETURNS scru64
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED SUPPORT scru64_generate_support;
CREATE FUNCTION scru64_generate(count integer) RETURNS SETOF scru64
	AS 'MODULE_PATHNAME', 'scru64_generate_count' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

-- Planner support puts this in the place of scru64_generate(). Not strict, as its argument may
-- be null. No SQL can call it: nothing there is of the type internal.
CREATE FUNCTION scru64_generate_in_copy(internal) RETURNS scru64 AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL RESTRICTED;

COMMENT ON FUNCTION scru64_generate_support(internal) IS 'planner support of scru64_generate()';
COMMENT ON FUNCTION scru64_generate_in_copy(internal) IS 'scru64_generate() for COPY; not to be called';
COMMENT ON FUNCTION scru64_generate() IS 'next ID of this session''s node';
COMMENT ON FUNCTION scru64_generate(integer) IS 'next IDs of this session''s node, in order';

CREATE FUNCTION scru64_parse_node_spec(
	node_spec text,
	OUT node_id integer,
	OUT node_id_size integer,
	OUT node_prev scru64
) AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION scru64_parse_node_spec(text) IS 'what a node spec says';

-- The page that no ID leaves without belongs to the server, not to a database: it
-- is made once, and stays.
CREATE FUNCTION scru64_create_ceiling() RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
SELECT scru64_create_ceiling();
DROP FUNCTION scru64_create_ceiling();

CREATE FUNCTION scru64_set_ceiling(timestamptz DEFAULT clock_timestamp()) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION scru64_set_ceiling(timestamptz)
	IS 'have all nodes of this server start after this time, whatever they have issued';

CREATE FUNCTION scru64_check() RETURNS text AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION scru64_check() IS 'raise the error that scru64_generate() would, or say what it would wait for; without issuing an ID or waiting';

CREATE FUNCTION scru64_ceiling() RETURNS timestamptz AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION scru64_ceiling() IS 'time up to which this server may have issued IDs';

CREATE FUNCTION scru64_generators(
	OUT node_id integer,
	OUT node_id_size integer,
	OUT last_id scru64,
	OUT node_spec text,
	OUT lead interval,
	OUT durable_until timestamptz,
	OUT counter_overflows bigint,
	OUT clock_rollbacks bigint,
	OUT waits bigint
) RETURNS SETOF record AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL SAFE ROWS 10;

COMMENT ON FUNCTION scru64_generators() IS 'nodes in use on this server';

-- ---------------------------------------------------------------------------
-- Watermark
-- ---------------------------------------------------------------------------

CREATE FUNCTION scru64_watermark() RETURNS scru64 AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION scru64_watermark() IS 'ID below which this statement sees all rows that will ever be there; a function that returns it must be STABLE';

-- Reserved for scru64_transactions(), which has the rights of its owner, a superuser: who may
-- call it sees when each of these transactions began.
CREATE FUNCTION scru64_open_transactions(
	OUT pid integer,
	OUT transaction xid,
	OUT first_id_after scru64
) RETURNS SETOF record AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL SAFE ROWS 10;

CREATE FUNCTION scru64_transactions(
	OUT pid integer,
	OUT gid text,
	OUT first_id_after scru64,
	OUT since timestamptz
) RETURNS SETOF record LANGUAGE sql
	VOLATILE STRICT PARALLEL RESTRICTED ROWS 10 SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	SELECT t.pid, p.gid, t.first_id_after, coalesce(a.xact_start, p.prepared)
	FROM scru64_open_transactions() AS t
		LEFT JOIN pg_stat_activity AS a ON a.pid = t.pid
		LEFT JOIN pg_prepared_xacts AS p ON p.transaction = t.transaction;
END;

COMMENT ON FUNCTION scru64_open_transactions() IS 'open transactions that have generated IDs, for scru64_transactions()';
COMMENT ON FUNCTION scru64_transactions() IS 'open transactions that have generated IDs, which hold back the watermark';

-- ---------------------------------------------------------------------------
-- The server's lease
-- ---------------------------------------------------------------------------

CREATE FUNCTION scru64_node_spec() RETURNS text AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION scru64_node_spec() IS 'node of this session, by setting or lease';

CREATE FUNCTION scru64_lease(
	OUT state text,
	OUT node_spec text,
	OUT holder text,
	OUT granted_at timestamptz,
	OUT expires_at timestamptz,
	OUT renewed_at timestamptz,
	OUT next_attempt_at timestamptz,
	OUT failures bigint,
	OUT last_error text,
	OUT last_error_at timestamptz,
	OUT worker_pid integer,
	OUT node_id_size integer,
	OUT size_changed_at timestamptz,
	OUT size_reason text
) RETURNS SETOF record AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL SAFE ROWS 1;

COMMENT ON FUNCTION scru64_lease() IS 'lease of this server';

-- ---------------------------------------------------------------------------
-- By default only roles that monitor the server have these privileges
-- ---------------------------------------------------------------------------

REVOKE ALL ON FUNCTION scru64_check(), scru64_ceiling(), scru64_generators(), scru64_transactions(),
	scru64_open_transactions(), scru64_lease(), scru64_set_ceiling(timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION scru64_check(), scru64_ceiling(), scru64_generators(), scru64_transactions(),
	scru64_lease() TO pg_monitor;
