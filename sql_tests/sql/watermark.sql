--
-- scru64_watermark(): below it, a statement sees all rows that will ever be there.
--
-- What happens between sessions is in the TAP tests.
--
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_scru64_user, regress_scru64_monitor;
RESET client_min_messages;
SET compute_query_id = off;
-- There is no node but this one, whatever there was before.
SELECT scru64_set_ceiling();
SET scru64.node_spec = '0x90/8';

CREATE TABLE scru64_events (id scru64 PRIMARY KEY DEFAULT scru64_generate(), n integer);
ALTER TABLE scru64_events SET (autovacuum_enabled = off);

-- How many rows there are below the watermark, and above it
CREATE FUNCTION test.below(OUT below bigint, OUT above bigint) LANGUAGE sql STABLE AS $$
	SELECT count(*) FILTER (WHERE id < scru64_watermark()),
		   count(*) FILTER (WHERE id >= scru64_watermark())
	FROM scru64_events
$$;

-- Wait until all are below it, however fast the machine is
CREATE PROCEDURE test.wait_for_all() LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 1800 LOOP
		COMMIT;
		IF (SELECT above FROM test.below()) = 0 THEN
			RETURN;
		END IF;
		PERFORM pg_sleep(0.1);
	END LOOP;
	RAISE 'these rows stay at or above the watermark: %', (SELECT above FROM test.below());
END
$$;

--
-- What it is: the same for the whole statement, so that an index can be searched by it
--
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF)
	SELECT * FROM scru64_events
	WHERE id > '0u2pf62ji4b9' AND id < scru64_watermark() ORDER BY id LIMIT 1000;
RESET enable_seqscan;
RESET enable_bitmapscan;
-- A parallel plan asks for it in the session itself.
CREATE TABLE scru64_many (id scru64, n integer)
	WITH (autovacuum_enabled = off, parallel_workers = 2);
INSERT INTO scru64_many SELECT scru64_generate(), n FROM generate_series(1, 20000) AS n;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT count(*) FROM scru64_many WHERE n > 0 AND id < scru64_watermark();
SELECT count(*) FROM scru64_many WHERE n > 0 AND id < (SELECT scru64_watermark());
RESET max_parallel_workers_per_gather;
DROP TABLE scru64_many;

--
-- With one node all rows that are committed are below it, at once.
--
INSERT INTO scru64_events (n) VALUES (1);
SELECT * FROM test.below();
INSERT INTO scru64_events (n) SELECT n FROM generate_series(2, 1000) AS n;
SELECT * FROM test.below();
-- It is no ID that was issued, and none of those to come is below it.
SELECT scru64_watermark() > max(id) AS is_above FROM scru64_events;
SELECT scru64_watermark() AS before \gset
INSERT INTO scru64_events (n) SELECT n FROM generate_series(1001, 2000) AS n;
SELECT count(*) FROM scru64_events WHERE id < :'before';
SELECT min(id) >= :'before' AS is_above FROM scru64_events WHERE n > 1000;
-- An ID without a row holds back nothing when its transaction is over.
SELECT scru64_generate() AS unused \gset
SELECT scru64_watermark() > :'unused' AS is_above;
-- It never falls.
SELECT count(*) FILTER (WHERE w < previous) AS falls, count(*)
FROM (SELECT w, lag(w) OVER (ORDER BY i) AS previous
	  FROM (SELECT i, scru64_watermark() AS w FROM generate_series(1, 1000) AS i OFFSET 0) AS w) AS p;

--
-- A transaction that has made IDs: its rows are above it, until they are there for all.
--
TRUNCATE scru64_events;
INSERT INTO scru64_events (n) VALUES (1);
BEGIN;
SELECT * FROM test.below();
INSERT INTO scru64_events (n) VALUES (2) RETURNING id AS mine \gset
SELECT * FROM test.below();
SELECT scru64_watermark() <= :'mine' AS is_below;
-- A savepoint does not count: what it leaves may be there, too.
SAVEPOINT a;
INSERT INTO scru64_events (n) VALUES (3);
SELECT * FROM test.below();
RELEASE a;
SELECT * FROM test.below();
SAVEPOINT b;
INSERT INTO scru64_events (n) VALUES (4);
ROLLBACK TO b;
SELECT * FROM test.below();
SELECT scru64_watermark() <= :'mine' AS is_below;
COMMIT;
SELECT * FROM test.below();
-- Only a savepoint has made IDs, and is gone: they are not known apart.
BEGIN;
SAVEPOINT a;
INSERT INTO scru64_events (n) VALUES (5);
ROLLBACK TO a;
INSERT INTO scru64_events (n) VALUES (6);
SELECT * FROM test.below();
ROLLBACK;
SELECT * FROM test.below();
-- What is rolled back leaves nothing behind, nor does an error.
BEGIN;
INSERT INTO scru64_events (n) VALUES (7) RETURNING id AS mine \gset
ROLLBACK;
SELECT scru64_watermark() > :'mine' AS is_above;
INSERT INTO scru64_events (n) SELECT 1 / (10 - n) FROM generate_series(8, 12) AS n;
SELECT * FROM test.below();
SELECT count(*) FROM scru64_transactions();

--
-- Snapshots
--
-- One for the whole transaction: one answer, though IDs are made meanwhile.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT scru64_watermark() AS first \gset
SELECT * FROM test.below();
SELECT scru64_watermark() = :'first' AS is_the_same;
INSERT INTO scru64_events (n) VALUES (51);
SELECT scru64_watermark() = :'first' AS is_the_same;
SELECT * FROM test.below();
COMMIT;
SELECT * FROM test.below();
-- A cursor goes by what it was when it was opened.
BEGIN;
DECLARE below CURSOR FOR SELECT n FROM scru64_events WHERE id < scru64_watermark() ORDER BY id;
MOVE 2 IN below;
INSERT INTO scru64_events (n) VALUES (52), (53);
FETCH ALL IN below;
COMMIT;
SELECT * FROM test.below();

--
-- Partitions: each asks by itself, and all get the same.
--
CREATE TABLE scru64_parted (id scru64 DEFAULT scru64_generate(), n integer) PARTITION BY RANGE (id);
CREATE TABLE scru64_parted_past PARTITION OF scru64_parted FOR VALUES FROM (MINVALUE) TO ('0u2pf62ji4b9');
CREATE TABLE scru64_parted_now PARTITION OF scru64_parted FOR VALUES FROM ('0u2pf62ji4b9') TO ('zzzzzzzzzzz0');
CREATE INDEX ON scru64_parted (id);
INSERT INTO scru64_parted VALUES ('0u0000000000', 1);
INSERT INTO scru64_parted (n) VALUES (2), (3);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT n FROM scru64_parted WHERE id < scru64_watermark() ORDER BY id;
SELECT n FROM scru64_parted WHERE id < scru64_watermark() ORDER BY id;
RESET enable_seqscan;
RESET enable_bitmapscan;
SELECT count(DISTINCT w) FROM (SELECT scru64_watermark() AS w FROM scru64_parted) AS w;
DROP TABLE scru64_parted;

--
-- In functions
--
CREATE FUNCTION test.new_events(INOUT last scru64, OUT n bigint) LANGUAGE plpgsql AS $$
DECLARE
	until scru64 := scru64_watermark();
BEGIN
	SELECT count(*) INTO n FROM scru64_events WHERE id > last AND id < until;
	last := (until::bigint - 1)::scru64;
END
$$;
TRUNCATE scru64_events;
INSERT INTO scru64_events (n) VALUES (1), (2);
SELECT * FROM test.new_events('000000000000') \gset
SELECT :n AS n;
SELECT n FROM test.new_events(:'last');
INSERT INTO scru64_events (n) VALUES (3), (4), (5);
SELECT n FROM test.new_events(:'last');
-- It ends the transaction of the IDs that it makes itself, and sees them below.
CREATE PROCEDURE test.make_and_read(OUT own bigint, OUT later bigint) LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO scru64_events (n) VALUES (6);
	SELECT count(*) INTO own FROM scru64_events WHERE n = 6 AND id < scru64_watermark();
	COMMIT;
	SELECT count(*) INTO later FROM scru64_events WHERE n = 6 AND id < scru64_watermark();
END
$$;
CALL test.make_and_read(NULL, NULL);

--
-- Who holds it back
--
CREATE ROLE regress_scru64_user;
CREATE ROLE regress_scru64_monitor;
GRANT pg_monitor TO regress_scru64_monitor;
GRANT SELECT ON scru64_events TO regress_scru64_user;
SELECT count(*) FROM scru64_transactions();
BEGIN;
SELECT count(*) FROM scru64_transactions();
INSERT INTO scru64_events (n) VALUES (7) RETURNING id AS mine \gset
SELECT pid = pg_backend_pid() AS is_mine, gid, first_id_after < :'mine' AS is_before, since = now() AS is_its_time
FROM scru64_transactions();
-- The watermark is the ID after that.
SELECT scru64_watermark()::bigint - first_id_after::bigint AS difference FROM scru64_transactions();
SET LOCAL ROLE regress_scru64_monitor;
SELECT pid = pg_backend_pid() AS is_mine, gid, first_id_after < :'mine' AS is_before, since = now() AS is_its_time
FROM scru64_transactions();
ROLLBACK;
SELECT count(*) FROM scru64_transactions();
SET ROLE regress_scru64_user;
SELECT count(*) FROM scru64_transactions();
\echo :SQLSTATE
-- All may ask for the watermark.
SELECT count(*) FROM scru64_events WHERE id < scru64_watermark();
RESET ROLE;

--
-- Several nodes: it may take until the tick is over.
--
TRUNCATE scru64_events;
-- Another node of the same transaction, whose IDs are before those that it has made
SET scru64.node_spec = '0x91/8';
SELECT scru64_generate() \g /dev/null
SET scru64.node_spec = '0x90/8';
INSERT INTO scru64_events (n) SELECT n FROM generate_series(20, 29) AS n;
CALL test.wait_for_all();
SELECT * FROM test.below();
BEGIN;
INSERT INTO scru64_events (n) VALUES (30);
SET LOCAL scru64.node_spec = '0x91/8';
INSERT INTO scru64_events (n) VALUES (31);
SET LOCAL scru64.node_spec = '0x90/8';
INSERT INTO scru64_events (n) VALUES (32);
SELECT scru64_watermark() <= min(id) AS is_below FROM scru64_events WHERE n >= 30;
COMMIT;
CALL test.wait_for_all();
SELECT * FROM test.below();
-- Nor do nodes hold it back that have nothing to do, or have never issued an ID.
SET scru64.node_spec = '0x92/8';
SELECT scru64_watermark() IS NOT NULL AS is_there;
INSERT INTO scru64_events (n) SELECT n FROM generate_series(40, 49) AS n;
CALL test.wait_for_all();
SELECT * FROM test.below();

-- A node that has fallen behind issues nothing below it.
SET scru64.node_spec = '0x91/8';
SELECT scru64_watermark() AS before \gset
INSERT INTO scru64_events (n) VALUES (50) RETURNING id >= :'before' AS is_above;
CALL test.wait_for_all();
SELECT * FROM test.below();

DROP FUNCTION test.below, test.new_events;
DROP PROCEDURE test.wait_for_all, test.make_and_read;
DROP TABLE scru64_events;
DROP ROLE regress_scru64_user, regress_scru64_monitor;
