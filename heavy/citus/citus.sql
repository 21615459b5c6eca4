-- citus.sql
--		The claims of doc/distributed.md about Citus, for run: on a coordinator and two workers
--		leasing their nodes from a realm.

\ir ../neighbours/check.sql

-- The plan of a query, in one line
CREATE FUNCTION plan(query text, options text DEFAULT 'COSTS OFF') RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	line text;
	lines text := '';
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
		lines := lines || line || ' ';
	END LOOP;
	RETURN lines;
END
$$;

--
-- Nodes
--

-- A server leases its node when it is asked for an ID.
SELECT count(*) FROM run_command_on_all_nodes('SELECT scru64_generate()') \gset
CREATE TABLE node AS
SELECT nodeid, scru64_node_ctr(result::scru64) >> 12 AS node, groupid = 0 AS here
FROM run_command_on_all_nodes('SELECT scru64_generate()') JOIN pg_dist_node USING (nodeid);
SELECT "check"('three servers have three nodes', count(*) = 3 AND count(DISTINCT node) = 3) FROM node;
SELECT node AS here FROM node WHERE here \gset

CREATE VIEW same_node AS
SELECT node, array_agg(nodeid) AS servers
FROM run_command_on_all_nodes($$
    SELECT ARRAY(
        SELECT DISTINCT node_id || '/' || node_id_size
        FROM (SELECT scru64_node_spec()
              UNION
              SELECT substring(setting, '^scru64\.node_spec=(.+)')
              FROM pg_db_role_setting, unnest(setconfig) AS setting) AS s (spec),
            scru64_parse_node_spec(spec)
        WHERE spec IS NOT NULL)
$$), unnest(result::text[]) AS node
GROUP BY node HAVING count(*) > 1;

SELECT "check"('no two servers have one node', count(*) = 0) FROM same_node;
ALTER DATABASE app SET scru64.node_spec = '42/8';
\connect
SELECT "check"('ALTER DATABASE gives all servers one node, and the query finds them',
			   count(*) = 1 AND max(node) = '42/8' AND max(cardinality(servers)) = 3) FROM same_node;
ALTER DATABASE app RESET scru64.node_spec;
\connect
CREATE ROLE other;
ALTER ROLE other SET scru64.node_spec = '0x2c/8';
SELECT "check"('so does ALTER ROLE, of another role too',
			   count(*) = 1 AND max(node) = '44/8' AND max(cardinality(servers)) = 3) FROM same_node;
ALTER ROLE other SET scru64.node_spec = '';
SELECT "check"('and without them there is nothing to find', count(*) = 0) FROM same_node;

--
-- Where IDs are made
--

CREATE TABLE source (id scru64 DEFAULT scru64_generate(), n integer);
INSERT INTO source (n) SELECT generate_series(1, 20);
CREATE TABLE event (id scru64 DEFAULT scru64_generate() PRIMARY KEY, what text);
SELECT create_distributed_table('event', 'id') \gset
INSERT INTO event (what) VALUES ('values'), ('values');
\copy event (what) FROM PROGRAM 'printf "copy\ncopy\n"'
INSERT INTO event (what) SELECT 'local' FROM source;
SELECT "check"('INSERT, COPY, and INSERT .. SELECT from a local table: of the server one is connected to',
			   count(*) = 24 AND bool_and(scru64_node_ctr(id) >> 12 = :here)) FROM event;

SELECT nodename AS worker_host, nodeport AS worker_port, node AS there
FROM node JOIN pg_dist_node USING (nodeid) WHERE NOT here LIMIT 1 \gset
\set coordinator_host :HOST
\set coordinator_port :PORT
\connect - - :worker_host :worker_port
INSERT INTO event (what) VALUES ('worker');
\connect - - :coordinator_host :coordinator_port
SELECT "check"('also if that is a worker', count(*) = 1 AND bool_and(scru64_node_ctr(id) >> 12 = :there))
FROM event WHERE what = 'worker';

CREATE TABLE spread (n integer PRIMARY KEY);
SELECT create_distributed_table('spread', 'n') \gset
INSERT INTO spread SELECT generate_series(1, 200);
INSERT INTO event (what) SELECT 'distributed' FROM spread;
SELECT "check"('INSERT .. SELECT from a distributed table: of the workers',
			   count(*) = 200 AND count(DISTINCT scru64_node_ctr(id) >> 12) = 2
			   AND bool_and(scru64_node_ctr(id) >> 12 <> :here)) FROM event WHERE what = 'distributed';
BEGIN;
SET LOCAL citus.propagate_set_commands = 'local';
SET LOCAL scru64.node_spec = '46/8';
INSERT INTO event (what) SELECT 'set local' FROM spread;
COMMIT;
SELECT "check"('SET LOCAL, which is propagated: the workers have one node',
			   count(*) = 200 AND bool_and(scru64_node_ctr(id) >> 16 = 46)) FROM event WHERE what = 'set local';
BEGIN;
SET LOCAL citus.propagate_set_commands = 'local';
SELECT set_config('scru64.node_spec', '46/8', true) \gset
INSERT INTO event (what) SELECT 'set_config' FROM spread;
COMMIT;
SELECT "check"('set_config is not: the workers have their own',
			   count(*) = 200 AND count(DISTINCT scru64_node_ctr(id) >> 12) = 2
			   AND bool_and(scru64_node_ctr(id) >> 16 <> 46)) FROM event WHERE what = 'set_config';
ALTER TABLE spread ADD COLUMN id scru64 DEFAULT scru64_generate();
SELECT "check"('ADD COLUMN .. DEFAULT: of the workers',
			   count(DISTINCT id) = 200 AND count(DISTINCT scru64_node_ctr(id) >> 12) = 2
			   AND bool_and(scru64_node_ctr(id) >> 12 <> :here)) FROM spread;

DO $$
BEGIN
	UPDATE spread SET id = scru64_generate();
EXCEPTION WHEN feature_not_supported THEN
	PERFORM set_config('test.error', SQLERRM, false);
END
$$;
SELECT "check"('UPDATE with scru64_generate() is refused', current_setting('test.error') ~ 'must not be VOLATILE');

CREATE TABLE reference (n integer PRIMARY KEY);
SELECT create_reference_table('reference') \gset
INSERT INTO reference SELECT generate_series(1, 3);
ALTER TABLE reference ADD COLUMN id scru64 DEFAULT scru64_generate();
SELECT "check"('ADD COLUMN .. DEFAULT of a reference table: others on each server', count(DISTINCT result) = 3)
FROM run_command_on_all_nodes('SELECT string_agg(id::text, '' '' ORDER BY n) FROM reference');
WITH new AS MATERIALIZED (SELECT n, scru64_generate() AS id FROM reference)
UPDATE reference SET id = new.id FROM new WHERE reference.n = new.n;
INSERT INTO reference VALUES (4);
SELECT "check"('made equal by UPDATE, and equal where rows are inserted', count(DISTINCT result) = 1 AND max(length(result)) = 51)
FROM run_command_on_all_nodes('SELECT string_agg(id::text, '' '' ORDER BY n) FROM reference');

--
-- The realm
--

CREATE EXTENSION scru64_realm;
SELECT "check"('in a database of Citus, CREATE EXTENSION scru64_realm makes a realm on each server', count(DISTINCT result) = 3)
FROM run_command_on_all_nodes('SELECT realm_id FROM scru64_realm.settings');
DROP EXTENSION scru64_realm;
SET citus.enable_ddl_propagation = off;
CREATE EXTENSION scru64_realm;
RESET citus.enable_ddl_propagation;
SELECT "check"('without propagation: on this one only', sum(result::integer) = 1)
FROM run_command_on_all_nodes('SELECT count(*) FROM pg_extension WHERE extname = ''scru64_realm''');
DROP EXTENSION scru64_realm;

--
-- A table distributed by ID, with 20,000 rows of a week
--

TRUNCATE event;
INSERT INTO event SELECT scru64_from_parts(now() - n * interval '30 s', n), 'row' FROM generate_series(1, 20000) AS n;
CREATE TABLE detail (id scru64 REFERENCES event, what text);
SELECT create_distributed_table('detail', 'id', colocate_with => 'event') \gset
INSERT INTO detail SELECT id, 'detail' FROM event;
ANALYZE event, detail;
SELECT min(id) AS one, count(*) AS rows, md5(string_agg(id::text, ' ' ORDER BY id)) AS all_ids FROM event \gset

SELECT "check"('id = ... looks into one shard', p ~ 'Task Count: 1 ' AND p ~ 'Index Cond: \(id = ')
FROM plan(format('SELECT * FROM event WHERE id = %L', :'one')) AS p;
SELECT "check"('time ranges use the index on the workers', p ~ 'Task Count: 8 ' AND p ~ 'Index Cond: \(id >= scru64_min')
FROM plan('SELECT * FROM event WHERE id >= now() - interval ''1 hour''') AS p;
SELECT "check"('rows of the last hour are found', count(*) BETWEEN 119 AND 121) FROM event WHERE id >= now() - interval '1 hour';
SELECT "check"('a join on the ID is done on the workers', p ~ 'Task Count: 8 .* Join')
FROM plan('SELECT count(*) FROM event JOIN detail USING (id)') AS p;
SELECT "check"('max(id) reads all rows of all shards', p ~ 'Seq Scan') FROM plan('SELECT max(id) FROM event') AS p;
SELECT "check"('ORDER BY id DESC LIMIT 1 reads the end of each index', p ~ 'Index Only Scan Backward')
FROM plan('SELECT id FROM event ORDER BY id DESC LIMIT 1') AS p;

SELECT s.shardid AS shard, s.nodename AS from_host, s.nodeport AS from_port, n.nodename AS to_host, n.nodeport AS to_port
FROM citus_shards AS s, pg_dist_node AS n
WHERE s.table_name = 'event'::regclass AND n.groupid > 0 AND n.nodeport <> s.nodeport ORDER BY s.shardid LIMIT 1 \gset
SELECT citus_move_shard_placement(:shard, :'from_host', :from_port, :'to_host', :to_port, 'force_logical') \gset
SELECT "check"('a shard is moved', nodeport = :to_port) FROM citus_shards WHERE shardid = :shard;
SELECT citus_split_shard_by_split_points(:shard,
	ARRAY[((shardminvalue::bigint + shardmaxvalue::bigint) / 2)::text],
	ARRAY(SELECT nodeid FROM pg_dist_node WHERE groupid > 0 ORDER BY nodeid), 'force_logical')
FROM pg_dist_shard WHERE shardid = :shard \gset
SELECT "check"('and split', count(*) = 9) FROM citus_shards WHERE table_name = 'event'::regclass;
SELECT "check"('all rows are there', count(*) = :rows AND md5(string_agg(id::text, ' ' ORDER BY id)) = :'all_ids') FROM event;
SELECT "check"('and in the join', count(*) = :rows) FROM event JOIN detail USING (id);

--
-- Columnar
--

SELECT count(*) FROM pg_extension WHERE extname = 'citus_columnar' \gset columnar_
SELECT :columnar_count = 0 AS no_columnar \gset
\if :no_columnar
CREATE EXTENSION citus_columnar;
\endif
CREATE TABLE archive (id scru64, what text) USING columnar;
SELECT alter_columnar_table_set('archive', chunk_group_row_limit => 1000) \gset
INSERT INTO archive SELECT id, what FROM event ORDER BY id;
SELECT "check"('columnar: = skips chunks', p ~ 'Chunk Groups Removed by Filter: 19')
FROM plan(format('SELECT what FROM archive WHERE id = %L', :'one'), 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF') AS p;
SELECT "check"('columnar: a time skips chunks', p ~ 'Chunk Groups Removed by Filter: 19')
FROM plan(format('SELECT what FROM archive WHERE id >= timestamptz %L', now() - interval '1 hour'), 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF') AS p;
SELECT "check"('columnar: now() skips none', p ~ 'Chunk Groups Removed by Filter: 0')
FROM plan('SELECT what FROM archive WHERE id >= now() - interval ''1 hour''', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF') AS p;

--
-- Time partitions
--

SET TimeZone = 'UTC';
CREATE TABLE visit (
    id   scru64 DEFAULT scru64_generate() PRIMARY KEY,
    who  text
) PARTITION BY RANGE (id);
SELECT create_distributed_table('visit', 'id') \gset
SELECT create_time_partitions('visit', '1 day', now() + interval '7 days', now() - interval '2 days') \gset
CALL drop_old_time_partitions('visit', now() - interval '1 day');

SELECT "check"('time partitions are of whole days',
			   count(*) BETWEEN 9 AND 10 AND bool_and(from_value::scru64::timestamptz::time = '00:00'
				   AND to_value::scru64::timestamptz = from_value::scru64::timestamptz + interval '1 day'))
FROM time_partitions WHERE parent_table = 'visit'::regclass;
INSERT INTO visit (who) VALUES ('me');
SELECT "check"('the workers prune them', p ~ 'Subplans Removed')
FROM plan('SELECT * FROM visit WHERE id >= now() - interval ''1 hour''') AS p;

DO $$
BEGIN
	CALL alter_old_partitions_set_access_method('visit', now(), 'columnar');
EXCEPTION WHEN raise_exception THEN
	PERFORM set_config('test.error', SQLERRM, false);
END
$$;
SELECT "check"('alter_old_partitions_set_access_method refuses', current_setting('test.error') ~ 'cannot be cast to a timestamptz');
SELECT partition AS old FROM time_partitions WHERE parent_table = 'visit'::regclass ORDER BY from_value LIMIT 1 \gset
SELECT alter_table_set_access_method(:'old', 'columnar') \gset
SELECT "check"('alter_table_set_access_method does it', access_method = 'columnar') FROM time_partitions WHERE partition = :'old'::regclass;
