-- timescaledb.sql
--		A hypertable of TimescaleDB, with chunks by the time of a scru64 column.

\ir check.sql

CREATE EXTENSION timescaledb;
SET TimeZone = 'UTC';

-- The time by which rows go to chunks. The millisecond matters.
CREATE FUNCTION event_time(scru64) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN scru64_timestamp($1) + interval '1 millisecond';

CREATE TABLE event (
    id   scru64 DEFAULT scru64_generate() PRIMARY KEY,
    what text NOT NULL
);
SELECT create_hypertable('event', by_range('id', interval '1 hour', partition_func => 'event_time'));

-- Three IDs in each of the ticks around every full hour: some hours begin with a
-- tick, some in the midst of one.
CREATE TABLE plain (LIKE event);
INSERT INTO plain
SELECT scru64_from_parts(timestamptz '2026-01-01' + h * interval '1 hour' + tick * interval '256 ms', (5 << 16) + n * 30000), h
FROM generate_series(-2, 50) h, generate_series(-2, 2) tick, generate_series(0, 2) n;
INSERT INTO event TABLE plain;
INSERT INTO event (what) SELECT 'now' FROM generate_series(1, 10);
SELECT "check"('rows are in chunks of an hour', count(*) BETWEEN 55 AND 56) FROM show_chunks('event');
SELECT "check"('and all are there', (SELECT count(*) FROM event) = (SELECT count(*) + 10 FROM plain));

-- Every comparison finds the same rows as in a plain table.
CREATE FUNCTION wrong(condition text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
	found bigint[];
BEGIN
	EXECUTE format('SELECT ARRAY[(SELECT count(*) FROM event WHERE %1$s AND what <> ''now''), (SELECT count(*) FROM plain WHERE %1$s)]', condition)
		INTO found;
	RETURN found[1] <> found[2];
END
$$;
SELECT "check"('comparisons with an ID, at the edges of chunks: '
			   || count(*) || ' comparisons, wrong: ' || coalesce(string_agg(condition, ', ') FILTER (WHERE wrong), 'none'),
			   count(*) > 400 AND NOT bool_or(wrong))
FROM (SELECT condition, wrong(condition)
	  FROM (SELECT DISTINCT (id::bigint + d)::scru64 AS id FROM plain, generate_series(-1, 1) d
			WHERE id BETWEEN timestamptz '2026-01-01 04:59' AND timestamptz '2026-01-01 06:01') i,
		   (VALUES ('<'), ('<='), ('='), ('>='), ('>')) o (op),
		   LATERAL (SELECT format('id %s %L', op, id) AS condition) c) t;
SELECT "check"('comparisons with a time, at the edges of chunks: '
			   || count(*) || ' comparisons, wrong: ' || coalesce(string_agg(condition, ', ') FILTER (WHERE wrong), 'none'),
			   count(*) > 500 AND NOT bool_or(wrong))
FROM (SELECT condition, wrong(condition)
	  FROM (SELECT timestamptz '2026-01-01 00:00' + h * interval '1 hour' + ms * interval '1 ms' AS t
			FROM generate_series(4, 6) h, generate_series(-512, 512, 32) ms) i,
		   (VALUES ('<'), ('<='), ('>='), ('>')) o (op),
		   (VALUES ('id'), ('scru64_timestamp(id)')) e (expression),
		   LATERAL (SELECT format('%s %s timestamptz %L', expression, op, t) AS condition) c) t;

-- Which chunks are looked into
CREATE FUNCTION chunks(query text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ' || query INTO plan;
	RETURN (SELECT count(*) FROM regexp_matches(plan::text, '"Relation Name": "_hyper', 'g'));
END
$$;
SELECT "check"('an ID: one chunk', chunks(format('SELECT * FROM event WHERE id = %L', (SELECT min(id) FROM plain))) = 1);
SELECT "check"('times that the planner knows: their chunks',
			   chunks($$SELECT * FROM event WHERE id >= timestamptz '2026-01-01 05:10' AND id < timestamptz '2026-01-01 05:50'$$) = 1
			   AND chunks($$SELECT * FROM event WHERE id >= timestamptz '2026-01-01 05:00' AND id < timestamptz '2026-01-01 07:00'$$) <= 3);

-- With now(), chunks are chosen by event_time(id), rows by id.
PREPARE last_hour AS
SELECT * FROM event
WHERE id >= now() - interval '1 hour' AND event_time(id) >= now() - interval '1 hour';

SELECT "check"('times relative to now(): the chunks since then', chunks('EXECUTE last_hour') <= 2);
SELECT "check"('and its rows', count(*) = 10)
FROM event WHERE id >= now() - interval '1 hour' AND event_time(id) >= now() - interval '1 hour';

SELECT drop_chunks('event', older_than => now() - interval '30 days');

SELECT "check"('drop_chunks drops what is old', count(*) = 10 AND min(what) = 'now') FROM event;
