/* sql/scru64_gin--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION scru64_gin" to load this file. \quit

-- ---------------------------------------------------------------------------
-- GIN indexes
--
-- A scru64 is an int8, so btree_gin's functions for int8 do. Those that are given
-- a scru64 are declared for it here. The least value that they know is that of int8,
-- which is no ID: it is only compared.
--
-- btree_gin may be in any schema, where others may make objects too. CREATE EXTENSION
-- puts this schema last on search_path, and full signatures leave no choice.
-- ---------------------------------------------------------------------------

CREATE FUNCTION scru64_gin_extract_value(scru64, internal) RETURNS internal
	AS '$libdir/btree_gin', 'gin_extract_value_int8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION scru64_gin_extract_query(scru64, internal, smallint, internal, internal) RETURNS internal
	AS '$libdir/btree_gin', 'gin_extract_query_int8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION scru64_gin_compare_prefix(scru64, scru64, smallint, internal) RETURNS integer
	AS '$libdir/btree_gin', 'gin_compare_prefix_int8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OPERATOR CLASS scru64_ops DEFAULT FOR TYPE scru64 USING gin AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 scru64_cmp(scru64, scru64),
	FUNCTION 2 scru64_gin_extract_value(scru64, internal),
	FUNCTION 3 scru64_gin_extract_query(scru64, internal, smallint, internal, internal),
	FUNCTION 4 gin_btree_consistent(internal, smallint, anyelement, integer, internal, internal),
	FUNCTION 5 scru64_gin_compare_prefix(scru64, scru64, smallint, internal);

COMMENT ON FUNCTION scru64_gin_extract_value(scru64, internal) IS 'GIN support';
COMMENT ON FUNCTION scru64_gin_extract_query(scru64, internal, smallint, internal, internal) IS 'GIN support';
COMMENT ON FUNCTION scru64_gin_compare_prefix(scru64, scru64, smallint, internal) IS 'GIN support';
COMMENT ON OPERATOR FAMILY scru64_ops USING gin IS 'GIN indexes on scru64';
COMMENT ON OPERATOR CLASS scru64_ops USING gin IS 'GIN indexes on scru64';
