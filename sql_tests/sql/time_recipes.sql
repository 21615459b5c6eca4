--
-- The recipes of the reference, section "IDs as time".
--

SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
-- 8,192 IDs a tick
SET scru64.node_spec = '1447/11';

--
-- The last hour's rows
--
CREATE TABLE event (id scru64 DEFAULT scru64_generate() PRIMARY KEY, what text NOT NULL);
INSERT INTO event (what) VALUES ('now');
INSERT INTO event VALUES (scru64_from_parts(now() - interval '30 minutes', 0), 'half an hour ago'),
						 (scru64_from_parts(now() - interval '2 hours', 0), 'two hours ago'),
						 (scru64_from_parts(now() - interval '100 days', 0), 'a hundred days ago');
SELECT what FROM event WHERE id >= now() - interval '1 hour' ORDER BY id;
-- What a node generates ahead of the clock is above now().
SELECT count(*) FROM scru64_generate(200000) AS id;
INSERT INTO event (what) VALUES ('ahead');
SELECT what FROM event WHERE id > now() ORDER BY id;
DELETE FROM event WHERE id < now() - interval '90 days';
SELECT what FROM event ORDER BY id;
DROP TABLE event;

--
-- Monthly partitions, twelve months in advance, and retention
--
CREATE TABLE event (id scru64 DEFAULT scru64_generate() PRIMARY KEY, what text NOT NULL)
	PARTITION BY RANGE (id);
DO $$
DECLARE
	month timestamptz;
BEGIN
	FOR month IN SELECT generate_series(timestamptz '2026-01-01', '2026-12-01', '1 month')
	LOOP
		EXECUTE format('CREATE TABLE %I PARTITION OF event FOR VALUES FROM (scru64_min(%L)) TO (scru64_min(%L))',
					   to_char(month, '"event_"YYYY_MM'), month, month + interval '1 month');
	END LOOP;
END
$$;
SELECT relname, pg_get_expr(relpartbound, oid) AS bounds
FROM pg_class WHERE relispartition AND relkind = 'r' AND relname ~ '^event_2026' ORDER BY relname COLLATE "C";
INSERT INTO event
	SELECT scru64_from_parts('2026-01-01 00:00+00'::timestamptz + d * interval '1 day', 0), 'day ' || d
	FROM generate_series(0, 364) AS d;
SELECT to_char(scru64_timestamp(min(id)), 'Mon') AS month, tableoid::regclass AS partition, count(*)
FROM event GROUP BY tableoid ORDER BY min(id);
SELECT count(*) FROM event WHERE id >= timestamptz '2026-11-15' AND id < timestamptz '2026-12-15';
-- outside a transaction, without blocking those who read and write
ALTER TABLE event DETACH PARTITION event_2026_01 CONCURRENTLY;
DROP TABLE event_2026_01;
SELECT min(what) AS first FROM event WHERE id = (SELECT min(id) FROM event);
DROP TABLE event;

--
-- BRIN for a table that is filled in the order of IDs
--
CREATE TABLE event (id scru64 DEFAULT scru64_generate(), what text NOT NULL);
INSERT INTO event
	SELECT scru64_from_parts('2026-01-01 00:00+00'::timestamptz + i * interval '10 seconds', 0), repeat('x', 100)
	FROM generate_series(0, 99999) AS i;
CREATE INDEX event_id_brin ON event USING brin (id) WITH (pages_per_range = 32, autosummarize = on);
CREATE INDEX event_id_btree ON event (id);
-- with blocks of 8 kB: BRIN needs three blocks, however large they are
SELECT pg_relation_size('event_id_btree') / pg_relation_size('event_id_brin')
	> 50 * 8192 / current_setting('block_size')::integer AS fifty_times_smaller;
DROP INDEX event_id_btree;
ANALYZE event;
EXPLAIN (COSTS OFF) SELECT * FROM event WHERE id >= timestamptz '2026-01-12 00:00' AND id < timestamptz '2026-01-12 01:00';
SELECT count(*) FROM event WHERE id >= timestamptz '2026-01-12 00:00' AND id < timestamptz '2026-01-12 01:00';
DROP TABLE event;

--
-- IDs for rows that there are
--
-- 30,000 rows, some of them many in a tick, some in the same microsecond.
CREATE TABLE event (event_id integer PRIMARY KEY, created_at timestamptz, what text);
INSERT INTO event
	SELECT i, timestamptz '2024-02-29 12:00+00' + (hashint8extended(i, 1) & 8191) * interval '5 seconds', 'row ' || i
	FROM generate_series(1, 20000) AS i;
INSERT INTO event
	SELECT i, timestamptz '2024-03-01 12:00+00' + i / 3 * interval '1 millisecond', 'row ' || i
	FROM generate_series(20001, 30000) AS i;

-- 1. New rows get their ID from now on; those that there are have none yet.
ALTER TABLE event ADD COLUMN id scru64;
ALTER TABLE event ALTER COLUMN id SET DEFAULT scru64_generate();
INSERT INTO event (event_id, created_at, what) VALUES (30001, now(), 'meanwhile');
-- 2. No tick holds more rows than a node 255/8 has counters: 2^(24 - 8).
SELECT scru64_timestamp(tick) AS tick, count(*)
FROM (SELECT scru64_from_parts(created_at, 0) AS tick FROM event WHERE id IS NULL) AS v
GROUP BY v.tick HAVING count(*) > 65536 ORDER BY v.tick;
-- 3. node_ctr is 255 << (24 - 8) and the row's number in its tick.
UPDATE event SET id = scru64_from_parts(created_at, (255 << 16) + n)
FROM (SELECT event_id,
			 row_number() OVER (PARTITION BY scru64_from_parts(created_at, 0)
								ORDER BY created_at, event_id)::integer - 1 AS n
	  FROM event WHERE id IS NULL) AS numbered
WHERE event.event_id = numbered.event_id;
-- 4.
ALTER TABLE event ALTER COLUMN id SET NOT NULL;
ALTER TABLE event DROP CONSTRAINT event_pkey;
ALTER TABLE event ADD PRIMARY KEY (id);

SELECT count(*) AS rows, count(DISTINCT id) AS ids, max(scru64_node_ctr(id)) FILTER (WHERE event_id <= 30000) - (255 << 16) + 1 AS most_in_a_tick,
	   count(*) FILTER (WHERE scru64_timestamp(id) <= created_at
						AND created_at < scru64_timestamp(id) + interval '256 ms') AS right_tick,
	   count(*) FILTER (WHERE scru64_node_ctr(id) >> 16 = 255) AS of_the_node
FROM event WHERE what <> 'meanwhile';
SELECT count(*) FILTER (WHERE by_id <> by_time) AS out_of_order
FROM (SELECT row_number() OVER (ORDER BY id) AS by_id,
			 row_number() OVER (ORDER BY created_at, event_id) AS by_time
	  FROM event) AS v;
SELECT what FROM event WHERE id = (SELECT max(id) FROM event);

-- Too many rows in a tick: with the last node of its size it is an error, with
-- any other the IDs run into those of the next node.
SELECT scru64_from_parts('2024-03-01 12:00', (255 << 16) + 65535) AS last;
SELECT scru64_from_parts('2024-03-01 12:00', (255 << 16) + 65536);
SELECT scru64_node_ctr(scru64_from_parts('2024-03-01 12:00', (254 << 16) + 65536)) >> 16 AS node_id;
-- No time, no ID; and no ID before 1970.
SELECT scru64_from_parts(NULL, 255 << 16);
SELECT scru64_from_parts('1969-07-20 20:17', 255 << 16);

-- With room for fewer rows than there are in some ticks, the rest go to the
-- ticks that follow: here a node 65535/16, which has 256 counters.
ALTER TABLE event ADD COLUMN id2 scru64;
SELECT count(*) AS ticks_too_full, max(count) AS most
FROM (SELECT count(*) FROM event WHERE id2 IS NULL GROUP BY scru64_from_parts(created_at, 0)) AS v
WHERE count > 256;
UPDATE event SET id2 = ((slot / 256) << 24 | (65535 << 8) + slot % 256)::scru64
FROM (SELECT event_id, r + max(tick * 256 - r) OVER (ORDER BY r) AS slot
	  FROM (SELECT event_id, scru64_from_parts(created_at, 0)::bigint >> 24 AS tick,
				   row_number() OVER (ORDER BY created_at, event_id) AS r
			FROM event WHERE id2 IS NULL AND created_at IS NOT NULL) AS numbered) AS placed
WHERE event.event_id = placed.event_id;
SELECT count(*) AS rows, count(DISTINCT id2) AS ids,
	   count(*) FILTER (WHERE scru64_node_ctr(id2) >> 8 = 65535) AS of_the_node,
	   count(*) FILTER (WHERE created_at < scru64_timestamp(id2)) AS moved,
	   max(scru64_timestamp(id2) - created_at) AS by_at_most,
	   count(*) FILTER (WHERE created_at >= scru64_timestamp(id2) + interval '256 ms') AS too_early
FROM event;
SELECT count(*) FILTER (WHERE by_id <> by_time) AS out_of_order
FROM (SELECT row_number() OVER (ORDER BY id2) AS by_id,
			 row_number() OVER (ORDER BY created_at, event_id) AS by_time
	  FROM event) AS v;
DROP TABLE event;

--
-- Reading what is new, once each, in spite of transactions that commit late
--
CREATE TABLE event (
	id scru64 DEFAULT scru64_generate() PRIMARY KEY,
	what text NOT NULL
);
INSERT INTO event (what) VALUES ('first'), ('second');
INSERT INTO event (what) VALUES ('third');
SELECT id AS last_id FROM event WHERE what = 'first' \gset
PREPARE new_rows (scru64) AS
	SELECT what FROM event
	WHERE id > $1 AND id < scru64_watermark()
	ORDER BY id;
-- Not what a transaction has written that is still open, be it this one.
BEGIN;
INSERT INTO event (what) VALUES ('fourth');
SELECT count(*) FROM event
WHERE id > :'last_id' AND id < scru64_watermark()
	AND what = 'fourth';
COMMIT;
-- Other nodes of the server may be ahead, and other transactions open: wait for them.
DO $$
BEGIN
	WHILE scru64_watermark() <= (SELECT max(id) FROM event)
	LOOP
		COMMIT;
		PERFORM pg_sleep(0.05);
	END LOOP;
END
$$;
EXECUTE new_rows (:'last_id');
DEALLOCATE new_rows;
DROP TABLE event;
