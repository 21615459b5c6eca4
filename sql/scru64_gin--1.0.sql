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
-- The extensions may be in any schemas, where others may make objects too, and this
-- script may run with more rights than its caller has. So no name is left to
-- search_path: each has the schema of its extension.
-- ---------------------------------------------------------------------------

DO $do$
DECLARE
	here pg_catalog.text := pg_catalog.quote_ident(pg_catalog.current_schema());
	ids pg_catalog.text;
	gin pg_catalog.text;
BEGIN
	SET LOCAL search_path = pg_catalog, pg_temp;
	SELECT quote_ident(nspname) INTO STRICT ids
		FROM pg_namespace AS n JOIN pg_extension AS e ON e.extnamespace = n.oid WHERE extname = 'scru64';
	SELECT quote_ident(nspname) INTO STRICT gin
		FROM pg_namespace AS n JOIN pg_extension AS e ON e.extnamespace = n.oid WHERE extname = 'btree_gin';

	EXECUTE format($$
		CREATE FUNCTION %1$s.scru64_gin_extract_value(%2$s.scru64, internal) RETURNS internal
			AS '$libdir/btree_gin', 'gin_extract_value_int8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
		CREATE FUNCTION %1$s.scru64_gin_extract_query(%2$s.scru64, internal, smallint, internal, internal) RETURNS internal
			AS '$libdir/btree_gin', 'gin_extract_query_int8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
		CREATE FUNCTION %1$s.scru64_gin_compare_prefix(%2$s.scru64, %2$s.scru64, smallint, internal) RETURNS integer
			AS '$libdir/btree_gin', 'gin_compare_prefix_int8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

		CREATE OPERATOR FAMILY %1$s.scru64_ops USING gin;
		CREATE OPERATOR CLASS %1$s.scru64_ops DEFAULT FOR TYPE %2$s.scru64 USING gin FAMILY %1$s.scru64_ops AS
			OPERATOR 1 %2$s.<,
			OPERATOR 2 %2$s.<=,
			OPERATOR 3 %2$s.=,
			OPERATOR 4 %2$s.>=,
			OPERATOR 5 %2$s.>,
			FUNCTION 1 %2$s.scru64_cmp(%2$s.scru64, %2$s.scru64),
			FUNCTION 2 %1$s.scru64_gin_extract_value(%2$s.scru64, internal),
			FUNCTION 3 %1$s.scru64_gin_extract_query(%2$s.scru64, internal, smallint, internal, internal),
			FUNCTION 4 %3$s.gin_btree_consistent(internal, smallint, anyelement, integer, internal, internal),
			FUNCTION 5 %1$s.scru64_gin_compare_prefix(%2$s.scru64, %2$s.scru64, smallint, internal);

		COMMENT ON FUNCTION %1$s.scru64_gin_extract_value(%2$s.scru64, internal) IS 'GIN support';
		COMMENT ON FUNCTION %1$s.scru64_gin_extract_query(%2$s.scru64, internal, smallint, internal, internal) IS 'GIN support';
		COMMENT ON FUNCTION %1$s.scru64_gin_compare_prefix(%2$s.scru64, %2$s.scru64, smallint, internal) IS 'GIN support';
		COMMENT ON OPERATOR FAMILY %1$s.scru64_ops USING gin IS 'GIN indexes on scru64';
		COMMENT ON OPERATOR CLASS %1$s.scru64_ops USING gin IS 'GIN indexes on scru64';
	$$, here, ids, gin);
END
$do$;
