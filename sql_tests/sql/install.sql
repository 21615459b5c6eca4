--
-- Installing and removing the extension, in a database of its own.
--
\set original :DBNAME
SET client_min_messages = warning;
DROP DATABASE IF EXISTS scru64_regression;
DROP ROLE IF EXISTS regress_scru64_owner, regress_scru64_creator, regress_scru64_nobody;
RESET client_min_messages;
CREATE DATABASE scru64_regression TEMPLATE template0;
CREATE ROLE regress_scru64_owner;
CREATE ROLE regress_scru64_creator;
CREATE ROLE regress_scru64_nobody;

ALTER DATABASE scru64_regression SET lc_messages = 'C';
ALTER DATABASE scru64_regression SET bytea_output = 'hex';
ALTER DATABASE scru64_regression SET max_parallel_workers_per_gather = 0;
\c scru64_regression

-- How many rows each catalog has, of this database
CREATE FUNCTION catalog_rows(OUT catalog text, OUT row_count bigint) RETURNS SETOF record
LANGUAGE plpgsql AS $$
BEGIN
	FOR catalog IN
		SELECT oid::regclass FROM pg_class
		WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r'
			AND NOT relisshared AND relname <> 'pg_statistic'
		ORDER BY relname COLLATE "C"
	LOOP
		EXECUTE format('SELECT count(*) FROM %s', catalog) INTO row_count;
		RETURN NEXT;
	END LOOP;
	catalog = 'pg_shdepend';
	row_count = (SELECT count(*) FROM pg_shdepend
				 WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()));
	RETURN NEXT;
END
$$;
-- Which of them differ from before
CREATE FUNCTION changed(before text, OUT catalog text, OUT difference bigint)
RETURNS SETOF record LANGUAGE sql AS $$
	SELECT c.catalog, c.row_count - split_part(b, '=', 2)::bigint
	FROM catalog_rows() AS c
	LEFT JOIN string_to_table(before, ' ') AS b ON split_part(b, '=', 1) = c.catalog
	WHERE c.row_count IS DISTINCT FROM split_part(b, '=', 2)::bigint
$$;
SELECT string_agg(catalog || '=' || row_count, ' ') AS before FROM catalog_rows() \gset
SELECT count(*) AS changed FROM changed(:'before');

--
-- It is in pg_catalog, wherever one asks for it, and needs nothing in search_path.
--
CREATE SCHEMA elsewhere;
CREATE EXTENSION scru64 SCHEMA elsewhere;
DROP SCHEMA elsewhere;
SET search_path = '';
CREATE EXTENSION scru64;
SHOW search_path;
SELECT count(*) FILTER (WHERE schema <> 'pg_catalog') AS elsewhere, count(*) > 20 AS many
FROM pg_depend AS d
JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid,
	 pg_identify_object(d.classid, d.objid, d.objsubid) AS o
WHERE e.extname = 'scru64' AND o.type <> 'cast';
SET scru64.node_spec = '0x80/8';
CREATE TABLE public.item (id scru64 DEFAULT scru64_generate() PRIMARY KEY, n integer);
INSERT INTO public.item (n) SELECT i FROM generate_series(1, 1000) AS i;
INSERT INTO public.item VALUES ('0u2pf62ji4b9', 1001), ('0u2pf62ji4ba'::text, 1002);
SELECT id, n FROM public.item WHERE id = '0U2PF62JI4B9';
SELECT count(*) FILTER (WHERE id < timestamptz '2026-01-01 00:00+00') AS old, min(id), max(id) > '0u2pf62ji4ba' AS max
FROM public.item;
SELECT id::bigint, id::text, id::bytea, to_json(id), id::bigint::scru64, id::bytea::scru64, id::varchar::scru64
FROM public.item WHERE n = 1001;
SELECT count(*) FROM public.item AS a JOIN public.item AS b USING (id);
CREATE INDEX item_hash ON public.item USING hash (id);
CREATE INDEX item_brin ON public.item USING brin (id);
CREATE INDEX item_multi ON public.item USING brin (id scru64_minmax_multi_ops);
CREATE INDEX item_bloom ON public.item USING brin (id scru64_bloom_ops);
SELECT node_spec <> '' AS node_spec, last_id = (SELECT max(id) FROM public.item) AS last_id
FROM scru64_generators() WHERE node_id = 128 AND node_id_size = 8;
RESET search_path;

--
-- Removed, only with what uses it: nothing is left.
--
DROP EXTENSION scru64;
DROP TABLE item;
SELECT count(*) > 10 AS changed FROM changed(:'before');
DROP EXTENSION scru64;
SELECT * FROM changed(:'before');
SELECT count(*) AS dangling FROM pg_depend
WHERE classid = 'pg_proc'::regclass AND NOT EXISTS (SELECT FROM pg_proc WHERE oid = objid)
	OR classid = 'pg_type'::regclass AND NOT EXISTS (SELECT FROM pg_type WHERE oid = objid);
-- Again, in the same session
CREATE EXTENSION scru64;
SELECT scru64 '0U2PF62JI4B9', scru64_generate() > '0u2pf62ji4b9' AS generates;
CREATE TABLE item (id scru64, n integer);
DROP EXTENSION scru64 CASCADE;
SELECT attname FROM pg_attribute
WHERE attrelid = 'item'::regclass AND attnum > 0 AND NOT attisdropped;
DROP TABLE item;
SELECT * FROM changed(:'before');
RESET scru64.node_spec;

--
-- By who is not superuser: who may create in the database
--
SET SESSION AUTHORIZATION regress_scru64_nobody;
CREATE EXTENSION scru64;
RESET SESSION AUTHORIZATION;

ALTER DATABASE scru64_regression OWNER TO regress_scru64_owner;
SET SESSION AUTHORIZATION regress_scru64_owner;
CREATE EXTENSION scru64;
SELECT extowner::regrole, extnamespace::regnamespace FROM pg_extension WHERE extname = 'scru64';
CREATE TABLE item (id scru64 DEFAULT scru64_generate() PRIMARY KEY);
INSERT INTO item VALUES ('0u2pf62ji4b9');
SELECT * FROM item;
-- It is theirs to use and to remove, and no way around a privilege.
SELECT * FROM scru64_generators();
SET scru64.node_spec = '0x80/8';
ALTER FUNCTION scru64_node_ctr(scru64) SECURITY DEFINER;
DROP TABLE item;
DROP EXTENSION scru64;
RESET SESSION AUTHORIZATION;
ALTER DATABASE scru64_regression OWNER TO CURRENT_USER;

GRANT CREATE ON DATABASE scru64_regression TO regress_scru64_creator;
SET SESSION AUTHORIZATION regress_scru64_creator;
CREATE EXTENSION scru64;
SELECT extowner::regrole, extnamespace::regnamespace FROM pg_extension WHERE extname = 'scru64';
SELECT scru64 '0u2pf62ji4b9' < '0u2pf62ji4ba' AS lt;
DROP EXTENSION scru64;
RESET SESSION AUTHORIZATION;

-- In a database without plpgsql; a realm needs plpgsql, and says so.
SET client_min_messages = warning;
DROP EXTENSION plpgsql CASCADE;
CREATE EXTENSION scru64;
SELECT scru64 '0u2pf62ji4b9' < '0u2pf62ji4ba' AS lt;
CREATE EXTENSION scru64_realm;
RESET client_min_messages;

-- The nodes of a server are the same for all its databases.
\c :original
SELECT node_id FROM scru64_generators() WHERE node_id = 128 AND node_id_size = 8;
DROP DATABASE scru64_regression;
DROP ROLE regress_scru64_owner, regress_scru64_creator, regress_scru64_nobody;
