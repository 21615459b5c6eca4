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
-- The extensions may be in any schemas, where others may make objects too, and this
-- script may run with more rights than its caller has. So no name is left to
-- search_path: each has the schema of its extension.
-- ---------------------------------------------------------------------------

DO $do$
DECLARE
	here pg_catalog.text := pg_catalog.quote_ident(pg_catalog.current_schema());
	ids pg_catalog.text;
	gist pg_catalog.text;
BEGIN
	SET LOCAL search_path = pg_catalog, pg_temp;
	SELECT quote_ident(nspname) INTO STRICT ids
		FROM pg_namespace AS n JOIN pg_extension AS e ON e.extnamespace = n.oid WHERE extname = 'scru64';
	SELECT quote_ident(nspname) INTO STRICT gist
		FROM pg_namespace AS n JOIN pg_extension AS e ON e.extnamespace = n.oid WHERE extname = 'btree_gist';

	EXECUTE format($$
		CREATE FUNCTION %1$s.scru64_gist_consistent(internal, %2$s.scru64, smallint, oid, internal) RETURNS boolean
			AS '$libdir/btree_gist', 'gbt_int8_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

		CREATE OPERATOR FAMILY %1$s.scru64_ops USING gist;
		CREATE OPERATOR CLASS %1$s.scru64_ops DEFAULT FOR TYPE %2$s.scru64 USING gist FAMILY %1$s.scru64_ops AS
			OPERATOR 1 %2$s.<,
			OPERATOR 2 %2$s.<=,
			OPERATOR 3 %2$s.=,
			OPERATOR 4 %2$s.>=,
			OPERATOR 5 %2$s.>,
			OPERATOR 6 %2$s.<>,
			FUNCTION 1 %1$s.scru64_gist_consistent(internal, %2$s.scru64, smallint, oid, internal),
			FUNCTION 2 %3$s.gbt_int8_union(internal, internal),
			FUNCTION 3 %3$s.gbt_int8_compress(internal),
			FUNCTION 4 %3$s.gbt_decompress(internal),
			FUNCTION 5 %3$s.gbt_int8_penalty(internal, internal, internal),
			FUNCTION 6 %3$s.gbt_int8_picksplit(internal, internal),
			FUNCTION 7 %3$s.gbt_int8_same(%3$s.gbtreekey16, %3$s.gbtreekey16, internal),
			FUNCTION 9 %3$s.gbt_int8_fetch(internal),
			STORAGE %3$s.gbtreekey16;

		COMMENT ON FUNCTION %1$s.scru64_gist_consistent(internal, %2$s.scru64, smallint, oid, internal) IS 'GiST support';
		COMMENT ON OPERATOR FAMILY %1$s.scru64_ops USING gist IS 'GiST indexes on scru64';
		COMMENT ON OPERATOR CLASS %1$s.scru64_ops USING gist IS 'GiST indexes on scru64';
	$$, here, ids, gist);

	-- Sorted builds and temporal keys came with btree_gist 1.8, of PostgreSQL 18.
	IF to_regprocedure(gist || '.gist_translate_cmptype_btree(integer)') IS NOT NULL THEN
		EXECUTE format($$
			ALTER OPERATOR FAMILY %1$s.scru64_ops USING gist ADD
				FUNCTION 11 (%2$s.scru64, %2$s.scru64) %3$s.gbt_int8_sortsupport(internal),
				FUNCTION 12 ("any", "any") %3$s.gist_translate_cmptype_btree(integer);
		$$, here, ids, gist);
	END IF;
END
$do$;
