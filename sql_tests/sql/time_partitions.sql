--
-- Range partitions by time.
--

SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
SET IntervalStyle = 'postgres';
SET enable_partitionwise_aggregate = off;

-- Three months, and one that is ahead of every clock this will run by.
CREATE TABLE scru64_event (id scru64 PRIMARY KEY, n integer) PARTITION BY RANGE (id);
CREATE TABLE scru64_event_2026_01 PARTITION OF scru64_event
	FOR VALUES FROM (scru64_min('2026-01-01')) TO (scru64_min('2026-02-01'));
CREATE TABLE scru64_event_2026_02 PARTITION OF scru64_event
	FOR VALUES FROM (scru64_min('2026-02-01')) TO (scru64_min('2026-03-01'));
CREATE TABLE scru64_event_2026_03 PARTITION OF scru64_event
	FOR VALUES FROM (scru64_min('2026-03-01')) TO (scru64_min('2026-04-01'));
CREATE TABLE scru64_event_3026_01 PARTITION OF scru64_event
	FOR VALUES FROM (scru64_min('3026-01-01')) TO (scru64_min('3026-02-01'));
SELECT relname, pg_get_expr(relpartbound, oid) AS bounds
FROM pg_class WHERE relispartition AND relname ~ '^scru64_event_.*1$' ORDER BY relname COLLATE "C";

INSERT INTO scru64_event
	SELECT scru64_from_parts('2026-01-01'::timestamptz + i * interval '1 minute', i), i
	FROM generate_series(0, 90 * 1440 - 1) AS i;
-- The last tick of January and the first of February: midnight UTC is the
-- boundary of a tick on every day.
INSERT INTO scru64_event VALUES
	(scru64_from_parts('2026-01-31 23:59:59.999999', 16777215), -1),
	(scru64_from_parts('2026-02-01 00:00:00', 16777215), -2),
	(scru64_from_parts('3026-01-15', 0), -3);
INSERT INTO scru64_event VALUES (scru64_from_parts('2026-04-01', 0), 0);
VACUUM (ANALYZE) scru64_event;
SELECT tableoid::regclass AS partition, count(*), min(scru64_timestamp(id)), max(scru64_timestamp(id)),
	   min(n) FILTER (WHERE n < 0) AS edge
FROM scru64_event GROUP BY tableoid ORDER BY tableoid::regclass::text COLLATE "C";

--
-- Pruned when the query is planned
--
EXPLAIN (COSTS OFF) SELECT count(*) FROM scru64_event WHERE id >= timestamptz '2026-03-10' AND id < timestamptz '2026-03-11';
SELECT count(*) FROM scru64_event WHERE id >= timestamptz '2026-03-10' AND id < timestamptz '2026-03-11';
EXPLAIN (COSTS OFF) SELECT * FROM scru64_event WHERE id < timestamptz '2026-02-01';
-- A microsecond more, and February's first tick may be among them.
EXPLAIN (COSTS OFF) SELECT * FROM scru64_event WHERE id < timestamptz '2026-02-01 00:00:00.000001';

--
-- Pruned when it is run
--
EXPLAIN (COSTS OFF) SELECT * FROM scru64_event WHERE id >= now();
SELECT n FROM scru64_event WHERE id >= now();
-- A parameter of a generic plan.
SET plan_cache_mode = force_generic_plan;
PREPARE during AS SELECT count(*) FROM scru64_event WHERE id >= $1::timestamptz AND id < $2::timestamptz;
EXPLAIN (COSTS OFF) EXECUTE during ('2026-02-10', '2026-02-11');
EXECUTE during ('2026-02-10', '2026-02-11');
DEALLOCATE during;
RESET plan_cache_mode;

--
-- scru64_timestamp(id) is a filter and prunes none
--
EXPLAIN (COSTS OFF) SELECT count(*) FROM scru64_event
	WHERE scru64_timestamp(id) >= '2026-03-10' AND scru64_timestamp(id) < '2026-03-11';
SELECT count(*) FROM scru64_event
	WHERE scru64_timestamp(id) >= '2026-03-10' AND scru64_timestamp(id) < '2026-03-11';
SELECT count(*) FROM scru64_event WHERE id::timestamptz < '2026-02-01 00:00:00.000001';

--
-- Retention
--
-- outside a transaction, without blocking those who read and write
ALTER TABLE scru64_event DETACH PARTITION scru64_event_2026_01 CONCURRENTLY;
DROP TABLE scru64_event_2026_01;
SELECT count(*), min(scru64_timestamp(id)) FROM scru64_event;
EXPLAIN (COSTS OFF) SELECT * FROM scru64_event WHERE id < timestamptz '2026-02-15';

DROP TABLE scru64_event;
