--
-- Installing, moving and removing the extension, in a database of its own.
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
-- What the planner expects a query to return
CREATE FUNCTION estimate(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows';
END
$$;
CREATE SCHEMA hidden;
CREATE SCHEMA other;
SELECT string_agg(catalog || '=' || row_count, ' ') AS before FROM catalog_rows() \gset
SELECT count(*) AS changed FROM changed(:'before');

--
-- In a schema that is not in search_path
--
CREATE EXTENSION scru64 SCHEMA hidden;
SELECT count(*) > 10 AS changed FROM changed(:'before');
SHOW search_path;
SELECT scru64 '0u2pf62ji4b9';
SET scru64.node_spec = '0x80/8';
CREATE TABLE item (id hidden.scru64 DEFAULT hidden.scru64_generate() PRIMARY KEY, n integer);
INSERT INTO item (n) SELECT i FROM generate_series(1, 1000) AS i;
INSERT INTO item VALUES ('0u2pf62ji4b9', 1001), ('0u2pf62ji4ba'::text, 1002);
SELECT id, n FROM item WHERE id OPERATOR(hidden.=) '0U2PF62JI4B9';
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT id, n FROM item WHERE id OPERATOR(hidden.=) '0u2pf62ji4b9';
RESET enable_seqscan;
RESET enable_bitmapscan;
SELECT count(*) FILTER (WHERE id OPERATOR(hidden.<) '0u2pf62ji4ba') AS lt,
	   count(*) FILTER (WHERE id OPERATOR(hidden.<=) '0u2pf62ji4ba') AS le,
	   count(*) FILTER (WHERE id OPERATOR(hidden.<>) '0u2pf62ji4ba') AS ne,
	   count(*) FILTER (WHERE id OPERATOR(hidden.>=) '0u2pf62ji4ba') AS ge,
	   count(*) FILTER (WHERE id OPERATOR(hidden.>) '0u2pf62ji4ba') AS gt,
	   count(*) FILTER (WHERE id OPERATOR(hidden.=) ANY ('{0u2pf62ji4b9,000000000000}')) AS any,
	   hidden.min(id), hidden.max(id) OPERATOR(hidden.>) '0u2pf62ji4ba' AS max
FROM item;
SELECT id FROM item ORDER BY id LIMIT 2;
SELECT count(*) FROM (SELECT DISTINCT id FROM item) AS d;
SELECT count(*) FROM (SELECT id, count(*) FROM item GROUP BY id) AS g;
SELECT id::bigint, id::text, id::bytea, to_json(id), hidden.scru64_node_ctr(id),
	   id::bigint::hidden.scru64, id::bytea::hidden.scru64, id::varchar::hidden.scru64
FROM item WHERE n = 1001;
SELECT count(*) FROM item AS a JOIN item AS b ON a.id OPERATOR(hidden.=) b.id;
-- The estimate too finds its way.
CREATE TABLE traffic AS SELECT i::bigint::hidden.scru64 AS id FROM generate_series(1, 100000) AS i;
ANALYZE traffic;
SELECT estimate($$
	SELECT FROM traffic
	WHERE id OPERATOR(hidden.>) '000000000zzz' AND id OPERATOR(hidden.<) '00000000115r'
$$) BETWEEN 600 AND 2400 AS near_1200;
CREATE INDEX item_hash ON item USING hash (id);
CREATE INDEX item_brin ON item USING brin (id);
CREATE INDEX item_multi ON item USING brin (id hidden.scru64_minmax_multi_ops);
CREATE INDEX item_bloom ON item USING brin (id hidden.scru64_bloom_ops);
SELECT node_spec <> '', last_id::text = (SELECT hidden.max(id)::text FROM item)
FROM hidden.scru64_generators() WHERE node_id = 128 AND node_id_size = 8;

-- With nothing in search_path
SET search_path = '';
INSERT INTO public.item (n) VALUES (1003);
SELECT count(*) FROM public.item;
SELECT i::bigint::hidden.scru64 FROM generate_series(1, 2) AS i;
RESET search_path;

-- Removed only with what uses it
DROP EXTENSION scru64;
DROP TABLE traffic;

-- Times: the operators are found by their schema, the cast and the frame by their types.
CREATE TABLE event (id hidden.scru64 PRIMARY KEY);
INSERT INTO event
	SELECT hidden.scru64_from_parts(timestamptz '2026-01-01 00:00:00+00' + i / 4 * interval '256 milliseconds', i % 4)
	FROM generate_series(0, 9999) AS i;
ANALYZE event;
CREATE VIEW late AS SELECT * FROM event WHERE id OPERATOR(hidden.>=) timestamptz '2026-01-01 00:10:00+00';
CREATE VIEW ahead AS SELECT * FROM event WHERE id OPERATOR(hidden.>) now();
EXPLAIN (COSTS OFF) SELECT * FROM event WHERE id OPERATOR(hidden.<) timestamptz '2026-01-01 00:00:10+00';
SELECT count(*) FROM event WHERE id OPERATOR(hidden.<) timestamptz '2026-01-01 00:00:10+00';
\set VERBOSITY terse
SELECT count(*) FROM event WHERE id < timestamptz '2026-01-01 00:00:10+00';
\set VERBOSITY default
SELECT count(*) FROM event WHERE id::timestamptz < '2026-01-01 00:00:10+00';
SELECT max(c) FROM (SELECT count(*) OVER (ORDER BY id RANGE '1 second' PRECEDING) AS c FROM event) AS v;
-- Nothing that is put before pg_catalog gets in the way of what the operators are made of.
CREATE SCHEMA hostile;
CREATE FUNCTION hostile.scru64_min(timestamptz) RETURNS hidden.scru64 LANGUAGE sql AS 'SELECT ''zzzzzzzzzzzz''::hidden.scru64';
CREATE FUNCTION hostile.scru64_max(timestamptz) RETURNS hidden.scru64 LANGUAGE sql AS 'SELECT ''000000000000''::hidden.scru64';
SET search_path = hostile, pg_catalog, public;
SELECT count(*) FROM event WHERE id OPERATOR(hidden.<) timestamptz '2026-01-01 00:00:10+00';
SELECT count(*) FROM event WHERE id::timestamptz < '2026-01-01 00:00:10+00';
RESET search_path;
DROP FUNCTION hostile.scru64_min, hostile.scru64_max;
DROP SCHEMA hostile;

--
-- Moved to another schema, and on search_path
--
ALTER EXTENSION scru64 SET SCHEMA other;
SELECT count(*) FILTER (WHERE schema <> 'other') AS left_behind, count(*) > 20 AS many
FROM pg_depend AS d
JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid,
	 pg_identify_object(d.classid, d.objid, d.objsubid) AS o
WHERE e.extname = 'scru64' AND o.type <> 'cast';
SELECT count(*) AS left_behind FROM pg_class WHERE relnamespace = 'hidden'::regnamespace;
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'item'::regclass;
INSERT INTO item (n) VALUES (1004);
SELECT count(*) FROM other.scru64_generators() WHERE node_id = 128 AND node_id_size = 8;
SET search_path = public, other;
SELECT count(*), count(*) FILTER (WHERE id > '0u2pf62ji4ba') AS gt, min(id) FROM item;
SELECT count(*) FROM item AS a JOIN item AS b USING (id);
-- The first query of a session; and views follow.
\c -
EXPLAIN (COSTS OFF) SELECT * FROM ahead;
EXPLAIN (COSTS OFF) SELECT * FROM late;
SELECT count(*) FROM late;
SET scru64.node_spec = '0x80/8';

--
-- Removed: nothing is left.
--
DROP VIEW late, ahead;
DROP TABLE item, event;
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
SELECT * FROM scru64_generators();
SET scru64.node_spec = '0x80/8';
ALTER FUNCTION scru64_node_ctr(scru64) SECURITY DEFINER;
DROP TABLE item;
DROP EXTENSION scru64;
RESET SESSION AUTHORIZATION;
ALTER DATABASE scru64_regression OWNER TO CURRENT_USER;

GRANT CREATE ON DATABASE scru64_regression TO regress_scru64_creator;
SET SESSION AUTHORIZATION regress_scru64_creator;
CREATE SCHEMA regress_scru64_creator;
CREATE EXTENSION scru64 SCHEMA regress_scru64_creator;
SELECT extowner::regrole, extnamespace::regnamespace FROM pg_extension WHERE extname = 'scru64';
SELECT scru64 '0u2pf62ji4b9' < '0u2pf62ji4ba' AS lt;
DROP EXTENSION scru64;
RESET SESSION AUTHORIZATION;

\c :original
DROP DATABASE scru64_regression;
DROP ROLE regress_scru64_owner, regress_scru64_creator, regress_scru64_nobody;
