--
-- Parallel plans.
--
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_scru64_user;
RESET client_min_messages;

SET jit = off;
SET max_parallel_workers = 8;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;

CREATE TABLE scru64_parallel (id scru64, n bigint)
	WITH (autovacuum_enabled = off, parallel_workers = 2);
INSERT INTO scru64_parallel
	SELECT n::scru64, n
	FROM generate_series(1, 50000) AS i,
		 LATERAL (SELECT (hashint8extended(i % 40000, 0) & 9223372036854775807)
						 % 4738381338321616896) AS v (n);
VACUUM (FREEZE, ANALYZE) scru64_parallel;

-- Scan, with input, output and comparison in the workers; partial aggregates
EXPLAIN (COSTS OFF)
	SELECT count(*), min(id), max(id), count(*) FILTER (WHERE id::text::scru64 <> id)
	FROM scru64_parallel WHERE id > '7zzzzzzzzzzz';
SELECT count(*), min(id), max(id), count(*) FILTER (WHERE id::text::scru64 <> id) AS wrong
FROM scru64_parallel WHERE id > '7zzzzzzzzzzz';
SELECT count(*), min(n)::scru64, max(n)::scru64
FROM scru64_parallel WHERE n > '7zzzzzzzzzzz'::scru64::bigint;

--
-- Scan and sort are parallel, and scru64_generate() is above Gather, as nextval() is: the IDs have
-- the order of the rows.
--
SET scru64.node_spec = '0x50/8';
SET compute_query_id = off;
SET parallel_leader_participation = off;
EXPLAIN (COSTS OFF, VERBOSE)
	SELECT scru64_generate() AS id, n FROM scru64_parallel WHERE id > '7zzzzzzzzzzz' ORDER BY n;
CREATE TABLE scru64_parallel_ids AS
	SELECT scru64_generate() AS id, n FROM scru64_parallel WHERE id > '7zzzzzzzzzzz' ORDER BY n;
SELECT count(*), count(DISTINCT id) AS different, count(*) FILTER (WHERE n < previous) AS out_of_order
FROM (SELECT id, n, lag(n) OVER (ORDER BY id) AS previous FROM scru64_parallel_ids) AS ids;
EXPLAIN (COSTS OFF) SELECT g FROM scru64_parallel, LATERAL scru64_generate((n % 3)::integer) AS g;

--
-- A function that is wrongly marked PARALLEL SAFE: in a worker it raises what nextval() does.
--
CREATE FUNCTION scru64_wrongly_safe(what text) RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS $$
DECLARE
	result text;
BEGIN
	EXECUTE 'SELECT ' || what INTO result;
	RETURN result;
END
$$;
CREATE SEQUENCE scru64_sequence;
SELECT what, e.*
FROM unnest(ARRAY['nextval(''scru64_sequence'')', 'scru64_generate()', 'scru64_generate(1)', 'scru64_check()']) AS what,
	 test.error_of(format('SELECT count(scru64_wrongly_safe(%L)) FROM scru64_parallel', what)) AS e;

--
-- Workers have the settings of the session.
--
CREATE ROLE regress_scru64_user;
GRANT SELECT ON scru64_parallel TO regress_scru64_user;
CREATE VIEW scru64_in_workers AS
	SELECT count(*), min(spec), max(spec)
	FROM (SELECT scru64_node_spec() AS spec FROM scru64_parallel OFFSET 0) AS answers;
GRANT SELECT ON scru64_in_workers TO regress_scru64_user;
CREATE FUNCTION scru64_be_parallel() RETURNS void LANGUAGE sql AS $$
	SELECT set_config(name, value, false)
	FROM (VALUES
		('jit', 'off'), ('max_parallel_workers', '8'), ('max_parallel_workers_per_gather', '2'),
		('parallel_setup_cost', '0'), ('parallel_tuple_cost', '0'), ('min_parallel_table_scan_size', '0'),
		('parallel_leader_participation', 'off')
	) AS v (name, value)
$$;
EXPLAIN (COSTS OFF, VERBOSE) SELECT * FROM scru64_in_workers;

-- So it is for a role that may not choose the node: the one that was chosen in the session, or for
-- the database, and whether or not the session has loaded the library when the query starts.
\c -
SELECT scru64_be_parallel();
SET scru64.node_spec = '0x58/8';
SELECT * FROM scru64_in_workers;

\c -
SELECT scru64_be_parallel();
SET scru64.node_spec = '0x59/8';
SET ROLE regress_scru64_user;
SELECT * FROM scru64_in_workers;
RESET ROLE;

SELECT current_database() AS database \gset
ALTER DATABASE :"database" SET scru64.node_spec = '0x5a/8';
\c -
SELECT scru64_be_parallel();
SET SESSION AUTHORIZATION regress_scru64_user;
SELECT * FROM scru64_in_workers;
SELECT * FROM scru64_in_workers;
RESET SESSION AUTHORIZATION;
ALTER DATABASE :"database" RESET scru64.node_spec;

\c -
SELECT scru64_be_parallel();
LOAD 'scru64';
GRANT SET ON PARAMETER scru64.node_spec TO regress_scru64_user;
SET ROLE regress_scru64_user;
SET scru64.node_spec = '0x5b/8';
SELECT * FROM scru64_in_workers;
RESET ROLE;
REVOKE SET ON PARAMETER scru64.node_spec FROM regress_scru64_user;

DROP VIEW scru64_in_workers;
DROP FUNCTION scru64_be_parallel, scru64_wrongly_safe;
DROP SEQUENCE scru64_sequence;
DROP TABLE scru64_parallel, scru64_parallel_ids;
DROP ROLE regress_scru64_user;
