/* sql/scru64_gist--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION scru64_gist" to load this file. \quit

-- ---------------------------------------------------------------------------
-- GiST indexes
--
-- A scru64 is an int8, so btree_gist's functions for int8 do. The one that is given
-- a scru64 is declared for it here. The others are given what the index stores.
--
-- There is no distance: those of IDs are numbers that mean nothing.
--
-- btree_gist may be in any schema, where others may make objects too. CREATE EXTENSION
-- puts this schema last on search_path, and full signatures leave no choice.
-- ---------------------------------------------------------------------------

CREATE FUNCTION scru64_gist_consistent(internal, scru64, smallint, oid, internal) RETURNS boolean
	AS '$libdir/btree_gist', 'gbt_int8_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OPERATOR CLASS scru64_ops DEFAULT FOR TYPE scru64 USING gist AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, OPERATOR 6 <>,
	FUNCTION 1 scru64_gist_consistent(internal, scru64, smallint, oid, internal),
	FUNCTION 2 gbt_int8_union(internal, internal),
	FUNCTION 3 gbt_int8_compress(internal),
	FUNCTION 4 gbt_decompress(internal),
	FUNCTION 5 gbt_int8_penalty(internal, internal, internal),
	FUNCTION 6 gbt_int8_picksplit(internal, internal),
	FUNCTION 7 gbt_int8_same(gbtreekey16, gbtreekey16, internal),
	FUNCTION 9 gbt_int8_fetch(internal),
	STORAGE gbtreekey16;

-- Sorted builds and temporal keys came with btree_gist 1.8, of PostgreSQL 18. Only superusers can
-- create a function of internal. SQL in place of DO: a database may have no plpgsql.
CREATE FUNCTION scru64_gist_add_support() RETURNS void LANGUAGE sql AS $$
	ALTER OPERATOR FAMILY scru64_ops USING gist ADD
		FUNCTION 11 (scru64, scru64) gbt_int8_sortsupport(internal),
		FUNCTION 12 ("any", "any") gist_translate_cmptype_btree(integer);
$$;
SELECT scru64_gist_add_support() WHERE to_regprocedure('gbt_int8_sortsupport(internal)') IS NOT NULL;
DROP FUNCTION scru64_gist_add_support();

COMMENT ON FUNCTION scru64_gist_consistent(internal, scru64, smallint, oid, internal) IS 'GiST support';
COMMENT ON OPERATOR FAMILY scru64_ops USING gist IS 'GiST indexes on scru64';
COMMENT ON OPERATOR CLASS scru64_ops USING gist IS 'GiST indexes on scru64';
