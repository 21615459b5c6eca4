--
-- scru64_timestamp(id) compared with a time uses the index on id, in whatever
-- query it stands, and never changes a result.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS scru64;
RESET client_min_messages;

SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
SET IntervalStyle = 'postgres';
SET max_parallel_workers_per_gather = 0;
SET jit = off;
SET plan_cache_mode = auto;

-- 10,000 IDs, four in a tick, 2,500 ticks of 2026-01-01; "at" is not the time of id.
CREATE TABLE scru64_a (id scru64 PRIMARY KEY, k integer, at timestamptz) WITH (autovacuum_enabled = off);
INSERT INTO scru64_a
	SELECT scru64_from_parts(timestamptz '2026-01-01 00:00:00+00' + i / 4 * interval '256 milliseconds', i % 4),
		   i % 7, timestamptz '2026-01-01 00:00:00+00' + (i * 37 % 2500) * interval '256 milliseconds'
	FROM generate_series(0, 9999) AS i;
VACUUM (ANALYZE) scru64_a;

-- What a query gives as it is, with the condition out of the index's reach, and
-- without index scans; and whether an index is searched for an ID.
CREATE FUNCTION pg_temp.compare(query text, OUT by_index boolean, OUT rows bigint, OUT same boolean)
LANGUAGE plpgsql AS $$
DECLARE
	digest CONSTANT text := 'SELECT count(*), md5(string_agg(q::text, '','' ORDER BY q::text COLLATE "C")) FROM (%s) AS q';
	out_of_reach CONSTANT text := regexp_replace(query, '(scru64_timestamp\([\w.]+\)|[\w.]+::timestamptz)', '(\1 + interval ''0'')', 'g');
	line text;
	n bigint;
	as_is text;
	other text;
BEGIN
	by_index := false;
	FOR line IN EXECUTE 'EXPLAIN ' || query
	LOOP
		by_index := by_index OR line ~ 'Index Cond: .*\mid [<>]=';
	END LOOP;
	EXECUTE format(digest, query) INTO rows, as_is;
	EXECUTE format(digest, out_of_reach) INTO n, other;
	same := query <> out_of_reach AND n = rows AND other IS NOT DISTINCT FROM as_is;
	PERFORM set_config('enable_indexscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
			set_config('enable_indexonlyscan', 'off', true);
	EXECUTE format(digest, query) INTO n, other;
	same := same AND n = rows AND other IS NOT DISTINCT FROM as_is;
	PERFORM set_config('enable_indexscan', 'on', true), set_config('enable_bitmapscan', 'on', true),
			set_config('enable_indexonlyscan', 'on', true);
END
$$;

--
-- All operators, both ways round, at a boundary of a tick and beside it
--
SELECT form, op, count(*) AS times, count(*) FILTER (WHERE by_index) AS by_index,
	   count(*) FILTER (WHERE same) AS same, min(rows), max(rows)
FROM unnest(ARRAY['scru64_timestamp(id) %1$s %2$L', '%2$L %1$s scru64_timestamp(id)',
				  'id::timestamptz %1$s %2$L', '%2$L %1$s id::timestamptz']) WITH ORDINALITY AS f (form, k),
	 unnest(ARRAY['<', '<=', '>=', '>']) AS op,
	 unnest(ARRAY['2026-01-01 00:05:07.2', '2026-01-01 00:05:07.199999', '2026-01-01 00:05:07.200001',
				  '2026-01-01 00:05:07.3', '2026-01-01', '2026-01-01 00:10:39.744',
				  '-infinity', 'infinity', '1960-01-01', '4300-01-01']) AS t,
	 LATERAL pg_temp.compare(format('SELECT id FROM scru64_a WHERE k < 5 AND ' || form, op, t))
GROUP BY k, form, op ORDER BY k, op COLLATE "C";

--
-- Every kind of query
--
CREATE VIEW scru64_a_view AS SELECT * FROM scru64_a WHERE scru64_timestamp(id) < '2026-01-01 00:05:00';
CREATE VIEW scru64_a_barrier WITH (security_barrier) AS SELECT * FROM scru64_a WHERE k <> 3;
SET enable_seqscan = off;
SELECT q, query, c.*
FROM unnest(ARRAY[
	$$SELECT id FROM scru64_a WHERE scru64_timestamp(id) BETWEEN '2026-01-01 00:05:00' AND '2026-01-01 00:06:00'$$,
	$$SELECT id FROM scru64_a WHERE scru64_timestamp(id) NOT BETWEEN '2026-01-01 00:01:00' AND '2026-01-01 00:06:00'$$,
	$$SELECT id FROM scru64_a WHERE NOT scru64_timestamp(id) < '2026-01-01 00:10:00'$$,
	$$SELECT id FROM scru64_a WHERE scru64_timestamp(id) >= '2026-01-01 00:10:00' AND scru64_timestamp(id) >= '2026-01-01 00:09:00' AND id::timestamptz < '2026-01-01 00:10:10'$$,
	$$SELECT id FROM scru64_a WHERE scru64_timestamp(id) > '2026-01-01 00:10:00' AND scru64_timestamp(id) < '2026-01-01 00:09:00'$$,
	$$SELECT id FROM scru64_a WHERE scru64_timestamp(id) >= '2026-01-01 00:10:00' AND id < scru64_max('2026-01-01 00:10:10')$$,
	$$SELECT id FROM scru64_a WHERE scru64_timestamp(id) = '2026-01-01 00:05:07.2'$$,
	$$SELECT id FROM scru64_a WHERE scru64_timestamp(id) <> '2026-01-01 00:05:07.2' AND k = 1$$,
	$$SELECT id FROM scru64_a WHERE scru64_timestamp(id) >= NULL$$,
	$$SELECT id FROM scru64_a WHERE (scru64_timestamp(id) >= '2026-01-01 00:10:30') IS NOT FALSE$$,
	$$SELECT id FROM scru64_a WHERE scru64_timestamp(id) >= '2026-01-01 00:10:00' OR k = 3$$,
	$$SELECT id FROM scru64_a WHERE scru64_timestamp(id) >= '2026-01-01 00:10:00' OR scru64_timestamp(id) < '2026-01-01 00:01:00'$$,
	$$SELECT id FROM scru64_a WHERE scru64_timestamp(id) >= '2026-01-01 00:05:00' AND (id < '0vodnvxngg09' OR id >= '0vodo6q5h79o')$$,
	$$SELECT id FROM scru64_a WHERE scru64_timestamp(id) >= ANY (ARRAY['2026-01-01 00:10:00', '2026-01-01 00:10:30']::timestamptz[])$$,
	$$SELECT id FROM scru64_a WHERE scru64_timestamp(id) >= date '2026-01-01' + time '00:10'$$,
	$$SELECT id FROM scru64_a WHERE scru64_timestamp(id) > now() - interval '1 minute'$$,
	$$SELECT id FROM scru64_a WHERE scru64_timestamp(id) >= (SELECT max(at) - interval '10 s' FROM scru64_a)$$,
	$$SELECT id FROM scru64_a WHERE scru64_timestamp(id) >= at AND k = 2$$,
	$$SELECT count(*), min(id), max(id), max(at) FROM scru64_a WHERE scru64_timestamp(id) < '2026-01-01 00:05:00'$$,
	$$SELECT max(id) FROM scru64_a WHERE scru64_timestamp(id) < '2026-01-01 00:05:07.2'$$,
	$$SELECT id FROM scru64_a WHERE scru64_timestamp(id) < '2026-01-01 00:05:00' ORDER BY id DESC LIMIT 7$$,
	$$SELECT k, count(*) FROM scru64_a WHERE scru64_timestamp(id) < '2026-01-01 00:05:00' GROUP BY k HAVING max(scru64_timestamp(id)) > '2026-01-01 00:01:00'$$,
	$$SELECT id, count(*) OVER (ORDER BY id RANGE '1 second' PRECEDING) FROM scru64_a WHERE scru64_timestamp(id) >= '2026-01-01 00:10:00'$$,
	$$SELECT DISTINCT k FROM scru64_a WHERE scru64_timestamp(id) >= '2026-01-01 00:10:39'$$,
	$$SELECT id, generate_series(1, 2) FROM scru64_a WHERE scru64_timestamp(id) >= '2026-01-01 00:10:00'$$,
	$$SELECT id FROM scru64_a WHERE scru64_timestamp(id) >= '2026-01-01 00:10:00' UNION ALL SELECT id FROM scru64_a WHERE scru64_timestamp(id) < '2026-01-01 00:00:10'$$,
	$$SELECT id FROM scru64_a WHERE scru64_timestamp(id) >= '2026-01-01 00:10:00' EXCEPT SELECT id FROM scru64_a WHERE scru64_timestamp(id) >= '2026-01-01 00:10:10'$$,
	$$SELECT id FROM (SELECT id, at FROM scru64_a UNION ALL SELECT id, at FROM scru64_a) AS u WHERE scru64_timestamp(id) >= '2026-01-01 00:10:00'$$,
	$$SELECT id FROM scru64_a_view WHERE scru64_timestamp(id) >= '2026-01-01 00:04:00'$$,
	$$SELECT id FROM scru64_a_barrier WHERE scru64_timestamp(id) >= '2026-01-01 00:10:00'$$,
	$$WITH c AS (SELECT * FROM scru64_a WHERE scru64_timestamp(id) >= '2026-01-01 00:10:00') SELECT * FROM c WHERE scru64_timestamp(id) < '2026-01-01 00:10:10'$$,
	$$WITH c AS MATERIALIZED (SELECT * FROM scru64_a WHERE scru64_timestamp(id) >= '2026-01-01 00:10:00') SELECT * FROM c WHERE scru64_timestamp(id) < '2026-01-01 00:10:10'$$,
	$$SELECT a.id, b.id FROM scru64_a AS a JOIN scru64_a AS b ON a.at = b.at AND scru64_timestamp(b.id) < '2026-01-01 00:02:30' WHERE scru64_timestamp(a.id) >= '2026-01-01 00:10:00'$$,
	$$SELECT a.id, b.id FROM scru64_a AS a LEFT JOIN scru64_a AS b ON a.id = b.id AND scru64_timestamp(b.id) < '2026-01-01 00:10:10' WHERE scru64_timestamp(a.id) >= '2026-01-01 00:10:00'$$,
	$$SELECT a.id, b.id FROM scru64_a AS a LEFT JOIN scru64_a AS b ON a.id = b.id AND b.k = 1 WHERE scru64_timestamp(a.id) >= '2026-01-01 00:10:00' AND (scru64_timestamp(b.id) < '2026-01-01 00:10:10' OR b.id IS NULL)$$,
	$$SELECT a.id, b.id FROM (SELECT * FROM scru64_a WHERE k = 1 AND scru64_timestamp(id) < '2026-01-01 00:00:30') AS a FULL JOIN (SELECT * FROM scru64_a WHERE k = 1 AND scru64_timestamp(id) < '2026-01-01 00:01:00') AS b ON a.id = b.id$$,
	$$SELECT a.id FROM scru64_a AS a WHERE scru64_timestamp(a.id) >= '2026-01-01 00:10:00' AND NOT EXISTS (SELECT FROM scru64_a AS b WHERE b.at = a.at AND scru64_timestamp(b.id) > '2026-01-01 00:10:10')$$,
	$$SELECT a.id, (SELECT count(*) FROM scru64_a AS b WHERE scru64_timestamp(b.id) >= a.at) FROM scru64_a AS a WHERE a.at > '2026-01-01 00:10:39'$$,
	$$SELECT a.id, l.id FROM scru64_a AS a, LATERAL (SELECT b.id FROM scru64_a AS b WHERE scru64_timestamp(b.id) > a.at ORDER BY b.id LIMIT 2) AS l WHERE a.at > '2026-01-01 00:10:38'$$,
	$$SELECT v.t, b.id FROM (VALUES (timestamptz '2026-01-01 00:10:30'), ('2026-01-01 00:10:35'), (NULL)) AS v (t) JOIN scru64_a AS b ON scru64_timestamp(b.id) >= v.t$$,
	$$SELECT a.id, b.id FROM scru64_a AS a JOIN scru64_a AS b ON scru64_timestamp(b.id) > scru64_timestamp(a.id) WHERE scru64_timestamp(a.id) >= '2026-01-01 00:10:39'$$,
	$$SELECT id FROM scru64_a WHERE scru64_timestamp(id) >= '2026-01-01 00:10:00' FOR UPDATE$$
	]) WITH ORDINALITY AS v (query, q),
	LATERAL pg_temp.compare(query) AS c
ORDER BY q;
-- Either plan will do where the time comes from a subquery that costs more.
SELECT c.rows, c.same FROM pg_temp.compare(
	$$SELECT id FROM scru64_a WHERE scru64_timestamp(id) >= CASE WHEN 3 IN (SELECT k FROM scru64_a) THEN timestamptz '2026-01-01 00:10:00' END$$) AS c;
RESET enable_seqscan;

-- Parallel plans.
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM scru64_a WHERE scru64_timestamp(id) >= '2026-01-01 00:05:00';
SELECT c.* FROM pg_temp.compare($$SELECT count(*) FROM scru64_a WHERE scru64_timestamp(id) >= '2026-01-01 00:05:00'$$) AS c;
SET max_parallel_workers_per_gather = 0;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET min_parallel_index_scan_size;
RESET enable_seqscan;

--
-- A time that is not the same for all rows of a scan is no bound
--
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM scru64_a WHERE scru64_timestamp(id) < clock_timestamp();
SELECT count(*) FROM scru64_a WHERE scru64_timestamp(id) < clock_timestamp();
RESET enable_seqscan;
EXPLAIN (COSTS OFF) SELECT id FROM scru64_a WHERE scru64_timestamp(id) < at;
SET enable_seqscan = off;
-- That of another table is one for the operator, which the planner sees as a
-- condition between IDs.
EXPLAIN (COSTS OFF)
	SELECT v.t, a.id FROM (VALUES (timestamptz '2026-01-01 00:10:30'), (now())) AS v (t)
	JOIN scru64_a AS a ON a.id >= v.t AND a.id < v.t + interval '1 second';
SELECT v.t, count(a.id)
FROM (VALUES (timestamptz '2026-01-01 00:10:30'), ('2026-01-01 00:10:39.744'), ('infinity'), (NULL)) AS v (t)
LEFT JOIN scru64_a AS a ON a.id >= v.t AND a.id < v.t + interval '1 second'
GROUP BY v.t ORDER BY v.t;
RESET enable_seqscan;

--
-- Other functions are not mistaken for it, one that is made of it counts
--
CREATE SCHEMA scru64_alike;
CREATE FUNCTION scru64_alike.scru64_timestamp(scru64) RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE STRICT
	AS 'BEGIN RETURN public.scru64_timestamp($1) - interval ''1 day''; END';
-- with the bounds that it would need next to it
CREATE FUNCTION scru64_alike.scru64_min(timestamptz) RETURNS scru64 LANGUAGE sql IMMUTABLE STRICT
	AS 'SELECT public.scru64_min($1)';
CREATE FUNCTION scru64_alike.scru64_max(timestamptz) RETURNS scru64 LANGUAGE sql IMMUTABLE STRICT
	AS 'SELECT public.scru64_max($1)';
CREATE FUNCTION scru64_alike.created(scru64) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT
	AS 'SELECT public.scru64_timestamp($1)';
SELECT count(*) FROM scru64_a WHERE scru64_alike.scru64_timestamp(id) >= '2026-01-01';
SELECT count(*) FROM scru64_a WHERE scru64_alike.scru64_timestamp(id) < '2026-01-01';
EXPLAIN (COSTS OFF) SELECT id FROM scru64_a WHERE scru64_alike.created(id) >= '2026-01-01 00:10:39';
SELECT count(*) FROM scru64_a WHERE scru64_alike.created(id) >= '2026-01-01 00:10:39';
SET client_min_messages = warning;
DROP SCHEMA scru64_alike CASCADE;
RESET client_min_messages;

--
-- Indexes of other kinds
--
CREATE DOMAIN scru64_dom AS scru64;
CREATE TABLE scru64_b (id scru64, did scru64_dom, other scru64, k integer, at timestamptz) WITH (autovacuum_enabled = off);
INSERT INTO scru64_b SELECT id, id, id, k, at FROM scru64_a;
INSERT INTO scru64_b SELECT FROM generate_series(1, 100);
VACUUM (ANALYZE) scru64_b;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
BEGIN;
CREATE INDEX ON scru64_b (k, id);
EXPLAIN (COSTS OFF) SELECT id FROM scru64_b WHERE k = 3 AND scru64_timestamp(id) >= '2026-01-01 00:10:00';
SELECT c.* FROM pg_temp.compare($$SELECT id FROM scru64_b WHERE k = 3 AND scru64_timestamp(id) >= '2026-01-01 00:10:00'$$) AS c;
ROLLBACK;
BEGIN;
CREATE INDEX ON scru64_b (id DESC NULLS LAST) INCLUDE (at);
EXPLAIN (COSTS OFF) SELECT id, at FROM scru64_b WHERE scru64_timestamp(id) >= '2026-01-01 00:10:00' ORDER BY id DESC NULLS LAST LIMIT 5;
SELECT c.* FROM pg_temp.compare($$SELECT id, at FROM scru64_b WHERE scru64_timestamp(id) >= '2026-01-01 00:10:00'$$) AS c;
ROLLBACK;
BEGIN;
CREATE INDEX ON scru64_b (id) WHERE k = 3;
EXPLAIN (COSTS OFF) SELECT * FROM scru64_b WHERE k = 3 AND scru64_timestamp(id) >= '2026-01-01 00:10:00';
SELECT c.* FROM pg_temp.compare($$SELECT * FROM scru64_b WHERE k = 3 AND scru64_timestamp(id) >= '2026-01-01 00:10:00'$$) AS c;
-- not for the rows that are not in it
SELECT c.* FROM pg_temp.compare($$SELECT * FROM scru64_b WHERE scru64_timestamp(id) >= '2026-01-01 00:10:00'$$) AS c;
ROLLBACK;
BEGIN;
CREATE INDEX ON scru64_b (id) WHERE scru64_timestamp(id) >= '2026-01-01 00:05:00';
EXPLAIN (COSTS OFF) SELECT * FROM scru64_b WHERE scru64_timestamp(id) >= '2026-01-01 00:05:00' AND scru64_timestamp(id) < '2026-01-01 00:05:10';
SELECT c.* FROM pg_temp.compare($$SELECT * FROM scru64_b WHERE scru64_timestamp(id) >= '2026-01-01 00:05:00' AND scru64_timestamp(id) < '2026-01-01 00:05:10'$$) AS c;
ROLLBACK;
BEGIN;
CREATE INDEX ON scru64_b (did);
EXPLAIN (COSTS OFF) SELECT did FROM scru64_b WHERE scru64_timestamp(did) >= '2026-01-01 00:10:00' AND did::timestamptz < '2026-01-01 00:10:10';
SELECT c.rows, c.same FROM pg_temp.compare($$SELECT did FROM scru64_b WHERE scru64_timestamp(did) >= '2026-01-01 00:10:00' AND did::timestamptz < '2026-01-01 00:10:10'$$) AS c;
ROLLBACK;
BEGIN;
CREATE INDEX ON scru64_b (greatest(id, other));
EXPLAIN (COSTS OFF) SELECT id FROM scru64_b WHERE scru64_timestamp(greatest(id, other)) >= '2026-01-01 00:10:00';
SELECT count(*) FROM scru64_b WHERE scru64_timestamp(greatest(id, other)) >= '2026-01-01 00:10:00';
ROLLBACK;
-- An index on the time itself needs no help.
BEGIN;
CREATE INDEX ON scru64_b (scru64_timestamp(id));
EXPLAIN (COSTS OFF) SELECT id FROM scru64_b WHERE scru64_timestamp(id) >= '2026-01-01 00:10:00';
ROLLBACK;
RESET enable_bitmapscan;
BEGIN;
CREATE INDEX ON scru64_b USING brin (id) WITH (pages_per_range = 4);
EXPLAIN (COSTS OFF) SELECT * FROM scru64_b WHERE scru64_timestamp(id) >= '2026-01-01 00:10:00';
SELECT c.* FROM pg_temp.compare($$SELECT * FROM scru64_b WHERE scru64_timestamp(id) >= '2026-01-01 00:10:00'$$) AS c;
ROLLBACK;
-- A hash index knows no order.
BEGIN;
SET LOCAL enable_seqscan = on;
CREATE INDEX ON scru64_b USING hash (id);
EXPLAIN (COSTS OFF) SELECT * FROM scru64_b WHERE scru64_timestamp(id) >= '2026-01-01 00:10:00';
ROLLBACK;
-- Two indexes, of which only both together are good enough.
BEGIN;
CREATE INDEX ON scru64_b (id);
CREATE INDEX ON scru64_b (at);
SELECT c.* FROM pg_temp.compare($$SELECT * FROM scru64_b WHERE at > '2026-01-01 00:10:00' AND scru64_timestamp(id) >= '2026-01-01 00:10:00'$$) AS c;
SELECT c.* FROM pg_temp.compare($$SELECT * FROM scru64_b WHERE at = '2026-01-01 00:10:00.064' OR (scru64_timestamp(id) >= '2026-01-01 00:10:00' AND k = 1)$$) AS c;
ROLLBACK;
RESET enable_seqscan;

--
-- Partitions, inheritance, samples
--
CREATE TABLE scru64_p (id scru64, k integer, at timestamptz) PARTITION BY RANGE (id);
CREATE TABLE scru64_p1 PARTITION OF scru64_p FOR VALUES FROM (MINVALUE) TO (scru64_min('2026-01-01 00:05:00+00'));
CREATE TABLE scru64_p2 PARTITION OF scru64_p FOR VALUES FROM (scru64_min('2026-01-01 00:05:00+00')) TO (MAXVALUE)
	PARTITION BY LIST (k);
-- with the columns in another order
CREATE TABLE scru64_p2a (at timestamptz, k integer, id scru64);
ALTER TABLE scru64_p2 ATTACH PARTITION scru64_p2a FOR VALUES IN (0, 1, 2, 3);
CREATE TABLE scru64_p2b PARTITION OF scru64_p2 DEFAULT;
CREATE INDEX scru64_p_id ON scru64_p (id);
INSERT INTO scru64_p SELECT * FROM scru64_a;
CREATE TABLE scru64_i (id scru64, k integer, at timestamptz);
CREATE TABLE scru64_i1 (PRIMARY KEY (id)) INHERITS (scru64_i);
CREATE TABLE scru64_i2 (more text) INHERITS (scru64_i);
CREATE INDEX ON scru64_i (id);
CREATE INDEX ON scru64_i2 (id);
INSERT INTO scru64_i SELECT * FROM scru64_a WHERE k = 1;
INSERT INTO scru64_i1 SELECT * FROM scru64_a WHERE k = 2;
INSERT INTO scru64_i2 SELECT * FROM scru64_a WHERE k > 2;
ANALYZE scru64_p, scru64_i, scru64_i1, scru64_i2;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM scru64_p WHERE scru64_timestamp(id) >= '2026-01-01 00:04:59' AND scru64_timestamp(id) < '2026-01-01 00:05:01';
EXPLAIN (COSTS OFF) SELECT * FROM scru64_i WHERE id::timestamptz >= '2026-01-01 00:10:39';
EXPLAIN (COSTS OFF) SELECT * FROM ONLY scru64_i WHERE id::timestamptz >= '2026-01-01 00:10:39';
RESET enable_bitmapscan;
SET enable_partitionwise_join = on;
SELECT query, c.*
FROM unnest(ARRAY[
	$$SELECT * FROM scru64_p WHERE scru64_timestamp(id) >= '2026-01-01 00:04:59' AND scru64_timestamp(id) < '2026-01-01 00:05:01'$$,
	$$SELECT * FROM scru64_p WHERE scru64_timestamp(id) >= '2026-01-01 00:10:00' ORDER BY id LIMIT 5$$,
	$$SELECT * FROM scru64_p AS a JOIN scru64_p AS b ON a.id = b.id WHERE scru64_timestamp(a.id) >= '2026-01-01 00:04:59' AND scru64_timestamp(b.id) < '2026-01-01 00:05:01'$$,
	$$SELECT * FROM scru64_i WHERE id::timestamptz >= '2026-01-01 00:10:39'$$,
	$$SELECT * FROM ONLY scru64_i WHERE id::timestamptz >= '2026-01-01 00:10:39'$$,
	$$SELECT * FROM scru64_a TABLESAMPLE bernoulli (50) REPEATABLE (1) WHERE scru64_timestamp(id) >= '2026-01-01 00:10:00'$$]) WITH ORDINALITY AS v (query, q),
	LATERAL pg_temp.compare(query) AS c
ORDER BY q;
RESET enable_partitionwise_join;
-- A sample is drawn from the table, not from the index.
EXPLAIN (COSTS OFF) SELECT * FROM scru64_a TABLESAMPLE bernoulli (50) REPEATABLE (1) WHERE scru64_timestamp(id) >= '2026-01-01 00:10:00';

--
-- Prepared: generic plans, and plans that outlive an index
--
SET plan_cache_mode = force_generic_plan;
PREPARE span AS SELECT count(*) FROM scru64_a WHERE scru64_timestamp(id) >= $1 AND id::timestamptz < $2;
EXPLAIN (COSTS OFF) EXECUTE span ('2026-01-01 00:01:00', '2026-01-01 00:02:00');
EXECUTE span ('2026-01-01 00:01:00.16', '2026-01-01 00:02:00.064');
EXECUTE span ('-infinity', 'infinity');
EXECUTE span ('infinity', '-infinity');
EXECUTE span (NULL, 'infinity');
EXECUTE span ('1960-01-01', '1969-12-31 23:59:59.999999');
ALTER TABLE scru64_a DROP CONSTRAINT scru64_a_pkey;
RESET enable_seqscan;
EXPLAIN (COSTS OFF) EXECUTE span ('2026-01-01 00:01:00', '2026-01-01 00:02:00');
EXECUTE span ('2026-01-01 00:01:00.16', '2026-01-01 00:02:00.064');
SET enable_seqscan = off;
ALTER TABLE scru64_a ADD PRIMARY KEY (id);
EXECUTE span ('2026-01-01 00:01:00.16', '2026-01-01 00:02:00.064');
DEALLOCATE span;
-- The time of another ID is a time, on the left as on the right.
PREPARE after_id (scru64) AS SELECT count(*) FROM scru64_a WHERE scru64_timestamp($1) < scru64_timestamp(id);
EXPLAIN (COSTS OFF) EXECUTE after_id ('0vodoe010p34');
EXECUTE after_id ('0vodoe010p34');
DEALLOCATE after_id;
RESET plan_cache_mode;

--
-- DELETE, UPDATE, MERGE, cursors
--
BEGIN;
EXPLAIN (COSTS OFF) DELETE FROM scru64_a WHERE scru64_timestamp(id) < '2026-01-01 00:05:07.2';
DELETE FROM scru64_a WHERE scru64_timestamp(id) < '2026-01-01 00:05:07.2';
SELECT count(*), min(scru64_timestamp(id)) FROM scru64_a;
EXPLAIN (COSTS OFF) UPDATE scru64_a SET k = 100 WHERE timestamptz '2026-01-01 00:10:00.064' < id::timestamptz;
UPDATE scru64_a SET k = 100 WHERE timestamptz '2026-01-01 00:10:00.064' < id::timestamptz;
SELECT k = 100 AS updated, count(*), min(scru64_timestamp(id)), max(scru64_timestamp(id)) FROM scru64_a GROUP BY k = 100 ORDER BY 1;
MERGE INTO scru64_a AS a
	USING (SELECT * FROM scru64_p WHERE scru64_timestamp(id) >= '2026-01-01 00:09:59') AS p
	ON a.id = p.id AND scru64_timestamp(a.id) < '2026-01-01 00:10:05'
	WHEN MATCHED AND scru64_timestamp(a.id) >= '2026-01-01 00:10:00.064' THEN UPDATE SET k = 200
	WHEN MATCHED THEN DELETE;
SELECT count(*), count(*) FILTER (WHERE k = 200) AS merged,
	   count(*) FILTER (WHERE scru64_timestamp(id) >= '2026-01-01 00:09:59'
						AND scru64_timestamp(id) < '2026-01-01 00:10:00.064') AS left_over
FROM scru64_a;
DECLARE late SCROLL CURSOR FOR SELECT scru64_timestamp(id), scru64_node_ctr(id) FROM scru64_a
	WHERE scru64_timestamp(id) >= '2026-01-01 00:10:39.488' ORDER BY id;
FETCH 2 FROM late;
FETCH LAST FROM late;
FETCH FIRST FROM late;
FETCH PRIOR FROM late;
ROLLBACK;
DELETE FROM scru64_p WHERE scru64_timestamp(id) < '2026-01-01 00:05:00';
SELECT tableoid::regclass AS partition, count(*) FROM scru64_p GROUP BY tableoid ORDER BY tableoid::regclass::text COLLATE "C";
RESET enable_seqscan;

DROP VIEW scru64_a_view, scru64_a_barrier;
DROP TABLE scru64_a, scru64_b, scru64_p, scru64_i, scru64_i1, scru64_i2;
DROP DOMAIN scru64_dom;
