--
-- The generator, as one session sees it. What several sessions see of each
-- other, and what takes long, is in the TAP tests.
--
-- Nodes that overlap must not be used within seconds of each other, so these
-- tests share out the first hexadecimal digit: 0, 2, 3, 4 and a are used here, 5
-- by parallel, 6 and 7 by privileges, 8 by install.
--

-- Timestamp of an ID and of the clock, in ticks
CREATE FUNCTION pg_temp.tick(id scru64) RETURNS bigint LANGUAGE sql
RETURN id::bigint >> 24;
CREATE FUNCTION pg_temp.tick_now() RETURNS bigint LANGUAGE sql
RETURN floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint / 256;
-- The time of a tick, as messages show it
CREATE FUNCTION pg_temp.tick_time(id scru64) RETURNS text LANGUAGE sql
RETURN (timestamptz '1970-01-01 00:00:00+00' + pg_temp.tick(id) * interval '256 milliseconds')::text;
SET datestyle = 'ISO';

--
-- No node
--
SET scru64.node_spec = '';
CREATE TEMP TABLE item (id scru64 DEFAULT scru64_generate() PRIMARY KEY, i integer);
SELECT statement, e.*
FROM unnest(ARRAY['SELECT scru64_generate()', 'SELECT * FROM scru64_generate(3)', 'SELECT scru64_check()',
				  'INSERT INTO item (i) VALUES (1)']) AS statement, test.error_of(statement) AS e;
SELECT count(*) FROM item;

--
-- One ID: of this node, of this time
--
CREATE FUNCTION pg_temp.is_now() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	before bigint = pg_temp.tick_now();
	id scru64 = scru64_generate();
BEGIN
	-- a coarse clock may be some milliseconds behind
	RETURN pg_temp.tick(id) BETWEEN before - 1 AND pg_temp.tick_now();
END
$$;
SET scru64.node_spec = '0x2f/8';
SELECT pg_temp.is_now();
SELECT scru64_node_ctr(scru64_generate()) >> 16 AS node_id, pg_typeof(scru64_generate());

-- Each call issues another, and a later one.
SET scru64.node_spec = '42/8';
SELECT a < b AS lt FROM (SELECT scru64_generate() AS a, scru64_generate() AS b OFFSET 0) AS two;
DO $$
DECLARE
	last scru64 = scru64_generate();
	next scru64;
BEGIN
	FOR i IN 1..10000 LOOP
		next = scru64_generate();
		IF next <= last OR scru64_node_ctr(next) >> 16 <> 42 THEN
			RAISE 'call %: % after %', i, next, last;
		END IF;
		last = next;
	END LOOP;
END
$$;

--
-- scru64_generate(count)
--
SELECT count(*), count(DISTINCT id) AS different,
	   count(*) FILTER (WHERE id <= previous) AS out_of_order,
	   count(*) FILTER (WHERE scru64_node_ctr(id) >> 16 <> 42) AS of_another_node
FROM (
	SELECT id, lag(id) OVER (ORDER BY place) AS previous
	FROM scru64_generate(100000) WITH ORDINALITY AS g (id, place)
) AS generated;
SELECT asked, (SELECT count(*) FROM scru64_generate(asked)) AS given FROM unnest('{0,1,NULL}'::integer[]) AS asked;
SELECT statement, e.*
FROM unnest(ARRAY['SELECT scru64_generate(-1) LIMIT 1', 'SELECT * FROM scru64_generate(-1)',
				  'SELECT scru64_generate(-2147483648) LIMIT 1']) AS statement, test.error_of(statement) AS e;
SELECT count(*) FROM (SELECT scru64_generate(3) OFFSET 0) AS g;
SELECT count(*) FROM (SELECT * FROM scru64_generate(1000) LIMIT 5) AS g;
SELECT scru64_generate(1) > max(id) AS is_later FROM scru64_generate(count => 5) AS g (id);

-- A client need not say which type its parameter is of.
PREPARE generate AS SELECT count(*) FROM (SELECT scru64_generate($1)) AS g;
SELECT parameter_types FROM pg_prepared_statements WHERE name = 'generate';
EXECUTE generate (3);
DEALLOCATE generate;
SELECT count(*) FROM scru64_generate('3');
SELECT count(*) FROM scru64_generate(NULL);

-- In FROM, a million take no more memory than the store of the executor, also where an
-- ID is passed by reference.
SET scru64.node_spec = '0xa/4';
SET work_mem = '64kB';
SELECT (SELECT sum(total_bytes) FROM pg_backend_memory_contexts) < 10000000 AS in_little_memory
FROM scru64_generate(1000000) LIMIT 1;
RESET work_mem;
SET scru64.node_spec = '42/8';

--
-- In a table
--
INSERT INTO item (i) SELECT i FROM generate_series(1, 10000) AS i;
INSERT INTO item (i) VALUES (10001), (10002);
INSERT INTO item SELECT id, 10002 + place FROM scru64_generate(10000) WITH ORDINALITY AS g (id, place);
COPY item (i) FROM stdin;
20003
20004
\.
UPDATE item SET id = DEFAULT WHERE i = 1;
SELECT count(*), count(DISTINCT id) AS different FROM item;
SELECT count(*) FILTER (WHERE id <= previous) AS out_of_order
FROM (SELECT id, lag(id) OVER (ORDER BY i) AS previous FROM item WHERE i > 1) AS ordered;
SELECT i FROM item ORDER BY id DESC LIMIT 2;
INSERT INTO item (i) VALUES (20005) RETURNING id = (SELECT max(id) FROM item) AS was_there,
	id > (SELECT max(id) FROM item) AS is_later;

--
-- scru64_check(): the error that there would be, and no trace of the look
--
SELECT scru64_check();
SELECT scru64_generate() > max(id) AS goes_on FROM item;
SET scru64.node_spec = '0x2a0/12';
SELECT checked = generated AS the_same, checked.code, checked.message
FROM test.error_of('SELECT scru64_check()') AS checked, test.error_of('SELECT scru64_generate()') AS generated;
SELECT set_config('scru64.node_spec', scru64_from_parts(now() + '1 hour', 42 << 16) || '/8', false) IS NOT NULL AS ahead;
SELECT code, message FROM test.error_of('SELECT scru64_check()');
SET scru64.node_spec = '0x3fff/16';
SELECT scru64_check();
SELECT count(*) FROM scru64_generators() WHERE node_id = 16383 AND node_id_size = 16;
SET scru64.node_spec = '0x3fff0/20';
SELECT scru64_node_ctr(scru64_generate()) >> 4 AS node_id;
SET scru64.node_spec = '42/8';

--
-- Every form of spec names its node. The left side is a node_id, or an ID that
-- has one.
--
CREATE FUNCTION pg_temp.generate_as(spec text) RETURNS scru64 LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('scru64.node_spec', spec, true);
	RETURN scru64_generate();
END
$$;
SELECT spec, scru64_node_ctr(pg_temp.generate_as(spec)) >> (24 - size) = node_id AS of_node
FROM (VALUES
	('42/8', 42, 8), ('0x2a/8', 42, 8), ('0X2A/8', 42, 8), ('00000042/008', 42, 8),
	('48/8', 48, 8), ('784/12', 784, 12), ('0x320/12', 800, 12),
	('3276/14', 3276, 14), ('208896/20', 208896, 20),
	('0x1a0001/23', 1703937, 23), ('0x1ffffe/23', 2097150, 23),
	('0/8', 0, 8), ('000000000000/8', 0, 8), ('00000000ZZZZ/8', 25, 8)
) AS v (spec, node_id, size);
-- An ID of the past names its node, and does not bring the past back.
SELECT pg_temp.tick(id) >= pg_temp.tick_now() - 40 AS is_now,
	   scru64_node_ctr(id) >> 12 AS node_id
FROM (SELECT pg_temp.generate_as(((100::bigint << 24) + (821 << 12) + 5)::scru64 || '/12') OFFSET 0) AS g (id);

--
-- A setting's scope is the node's.
--
\pset format unaligned
\pset tuples_only on
SET scru64.node_spec = '42/8';
SELECT test.node();
BEGIN;
SET LOCAL scru64.node_spec = '40/8';
SELECT test.node();
SAVEPOINT s;
SET LOCAL scru64.node_spec = '41/8';
SELECT test.node();
ROLLBACK TO s;
SELECT test.node();
SET scru64.node_spec = '41/8';
SELECT test.node();
RELEASE s;
SELECT test.node();
ROLLBACK;
SELECT test.node();
BEGIN;
SET scru64.node_spec = '40/8';
SELECT test.node();
COMMIT;
SELECT test.node();
-- A refused value changes nothing.
SET scru64.node_spec = '256/8';
SELECT test.node();
CREATE FUNCTION pg_temp.node_41() RETURNS integer LANGUAGE sql
SET scru64.node_spec = '41/8'
AS 'SELECT test.node()';
SELECT pg_temp.node_41(), test.node();
SET scru64.node_spec = '';
SELECT test.node();
SET scru64.node_spec = '42/8';
\pset tuples_only off
\pset format aligned

--
-- node_prev: the generator goes on after that ID. Its time is ahead of the
-- clock here, so that it is seen to; a node of its own for each run, so that
-- the run before is not.
--
SELECT (4 << 12) + (pg_temp.tick_now() & 4095) AS node_id \gset
SELECT (pg_temp.tick_now() + 30 << 24) + (:node_id << 8) + 7 AS prev \gset
SELECT set_config('scru64.node_spec', :prev::scru64 || '/16', false) = :prev::scru64 || '/16' AS is_set;
SELECT scru64_generate()::bigint - :prev AS distance;
SELECT scru64_generate()::bigint - :prev AS distance FROM generate_series(1, 3);
-- Other forms of the same node are the same node: it does not go back.
SELECT set_config('scru64.node_spec', :node_id || '/16', false) = :node_id || '/16' AS is_set;
SELECT scru64_generate()::bigint - :prev AS distance;
-- Nor does a node_prev that was passed take it back; one not reached does
-- take it forward.
SELECT set_config('scru64.node_spec', (:prev - 5)::scru64 || '/16', false) <> '' AS is_set;
SELECT scru64_generate()::bigint - :prev AS distance;
SELECT set_config('scru64.node_spec', (:prev + 100)::scru64 || '/16', false) <> '' AS is_set;
SELECT scru64_generate()::bigint - :prev AS distance;
-- A full counter: on in the next tick, at a random counter of which the four
-- leading bits are clear.
SELECT set_config('scru64.node_spec', (:prev | 255)::scru64 || '/16', false) <> '' AS is_set;
SELECT pg_temp.tick(id) - (:prev >> 24) AS ticks, scru64_node_ctr(id) >> 8 = :node_id AS of_node,
	   scru64_node_ctr(id) & 255 < 16 AS guarded
FROM (SELECT scru64_generate() OFFSET 0) AS g (id);
-- scru64_generators() tells.
SELECT node_id = :node_id AS node_id, node_id_size, pg_temp.tick(last_id) - (:prev >> 24) AS ticks,
	   node_spec = last_id || '/16' AS resumable,
	   lead BETWEEN interval '1 second' AND interval '9 seconds' AS lead,
	   counter_overflows, clock_rollbacks, waits
FROM scru64_generators() WHERE node_id = :node_id AND node_id_size = 16;
-- Its node_spec continues.
SELECT node_spec, last_id::bigint AS last FROM scru64_generators()
WHERE node_id = :node_id AND node_id_size = 16 \gset
SET scru64.node_spec = :'node_spec';
SELECT scru64_generate()::bigint - :last AS distance;

-- So far ahead of the clock that no waiting helps: 58000, and the node is not
-- spoilt for who comes with a better spec.
SELECT (pg_temp.tick_now() + 1000000 << 24) + (44 << 16) AS far \gset
SELECT set_config('scru64.node_spec', :far::scru64 || '/8', false) = :far::scru64 || '/8' AS is_set;
CREATE FUNCTION pg_temp.masked(detail text, id scru64) RETURNS text LANGUAGE sql
RETURN (
	SELECT regexp_replace(
		replace(replace(replace(detail, id::text, '<ID>'),
						'is of ' || pg_temp.tick_time(id), 'is of <its time>'),
				'(' || setting || ' ms)', '(<setting> ms)'),
		'reads .*?(?=\. The|, earlier)', 'reads <time>', 'g')
	FROM pg_settings WHERE name = 'scru64.rollback_allowance'
);
SELECT e.code, e.message, pg_temp.masked(e.detail, :far::scru64) AS detail, e.hint
FROM test.error_of('SELECT scru64_generate()') AS e;
SELECT count(*) FROM scru64_generators() WHERE node_id = 44 AND node_id_size = 8 AND lead > interval '1 minute';
SET scru64.node_spec = '44/8';
SELECT pg_temp.is_now();
-- The last ID there is
SET scru64.node_spec = 'ZZZZZZZZZZZZ/8';
SELECT e.code, e.message, pg_temp.masked(e.detail, 'zzzzzzzzzzzz') AS detail
FROM test.error_of('SELECT scru64_generate()') AS e;

--
-- Overlapping nodes: 55006, and the error names the one in use.
--
SET scru64.node_spec = '42/8';
SELECT scru64_generate() AS id \gset
SET scru64.node_spec = '0x2a0/12';
SELECT e.code, e.message, pg_temp.masked(e.detail, :'id') AS detail, e.hint
FROM test.error_of('SELECT scru64_generate()') AS e;
SELECT e.code, e.message FROM test.error_of('SELECT count(*) FROM scru64_generate(10)') AS e;
SELECT count(*) FROM scru64_generators() WHERE node_id = 672;
-- A neighbour is none.
SET scru64.node_spec = '0x2b0/12';
SELECT scru64_node_ctr(scru64_generate()) >> 12 AS node_id;
-- The first goes on.
SET scru64.node_spec = '42/8';
SELECT scru64_generate() > :'id' AS is_later;
-- The other way round: the longer node_id first
SET scru64.node_spec = '0x260/12';
SELECT scru64_generate() AS id \gset
SET scru64.node_spec = '38/8';
SELECT e.code, e.message, pg_temp.masked(e.detail, :'id') AS detail, e.hint
FROM test.error_of('SELECT scru64_generate()') AS e;
SET scru64.node_spec = '0x261/12';
SELECT scru64_node_ctr(scru64_generate()) >> 12 AS node_id;

--
-- The smallest node: a tick has two IDs. It runs ahead of the clock, and counts.
--
SET scru64.node_spec = '0x1bffff/23';
SELECT coalesce(sum(counter_overflows), 0) AS overflows FROM scru64_generators()
WHERE node_id = 1835007 AND node_id_size = 23 \gset
SELECT count(*), count(DISTINCT id) AS different, max(pg_temp.tick(id)) - min(pg_temp.tick(id)) >= 8 AS ahead
FROM scru64_generate(20) AS g (id);
SELECT counter_overflows - :overflows >= 8 AS overflows, lead > interval '0' AS ahead
FROM scru64_generators() WHERE node_id = 1835007 AND node_id_size = 23;

--
-- In a read-only transaction, which nextval() refuses
--
SET scru64.node_spec = '42/8';
BEGIN READ ONLY;
SELECT scru64_generate() > max(id) AS is_later FROM item;
SELECT count(*) FROM scru64_generate(3);
COMMIT;
-- An ID of a transaction that is rolled back does not come again.
BEGIN;
SELECT scru64_generate() AS id \gset
ROLLBACK;
SELECT scru64_generate() > :'id' AS is_later;

--
-- scru64_generators(), as a whole
--
SELECT count(*) FILTER (WHERE node_id NOT BETWEEN 0 AND (1 << node_id_size) - 1) AS bad_node_id,
	   count(*) FILTER (WHERE scru64_node_ctr(last_id) >> (24 - node_id_size) <> node_id) AS bad_last_id,
	   count(*) FILTER (WHERE last_id IS NOT NULL AND node_spec <> last_id || '/' || node_id_size
						OR last_id IS NULL AND node_spec <> node_id || '/' || node_id_size) AS bad_spec,
	   count(*) FILTER (WHERE (last_id IS NULL) <> (lead IS NULL)) AS bad_lead,
	   count(*) FILTER (WHERE counter_overflows < 0 OR clock_rollbacks < 0 OR waits < 0) AS bad_count,
	   count(*) = count(DISTINCT (node_id, node_id_size)) AS one_row_a_node,
	   count(*) > 10 AS many
FROM scru64_generators();
SELECT node_id, node_id_size FROM scru64_generators()
WHERE node_id_size = 8 AND node_id IN (40, 41, 42, 44, 47)
ORDER BY node_id, node_id_size;

--
-- Back to the server's setting
--
DISCARD ALL;
SELECT setting = reset_val AS is_reset FROM pg_settings WHERE name = 'scru64.node_spec';
