--
-- Time conditions with the extension in a schema that is not on search_path.
--
-- In a database of its own: the other files keep theirs.
SELECT current_database() AS database \gset
CREATE DATABASE regress_scru64_time TEMPLATE template0;
ALTER DATABASE regress_scru64_time SET max_parallel_workers_per_gather = 0;
ALTER DATABASE regress_scru64_time SET jit = off;
\c regress_scru64_time
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
SET IntervalStyle = 'postgres';

CREATE SCHEMA ids;
CREATE EXTENSION scru64 SCHEMA ids;
SHOW search_path;

CREATE TABLE event (id ids.scru64 PRIMARY KEY, n integer);
INSERT INTO event
	SELECT ids.scru64_from_parts(timestamptz '2026-01-01 00:00:00+00' + i / 4 * interval '256 milliseconds', i % 4), i
	FROM generate_series(0, 9999) AS i;
ANALYZE event;
CREATE VIEW late AS SELECT * FROM event WHERE id OPERATOR(ids.>=) timestamptz '2026-01-01 00:10:00+00';
CREATE VIEW ahead AS SELECT * FROM event WHERE id OPERATOR(ids.>) now();

-- The operators are found by their schema, the cast and the frame by their types.
EXPLAIN (COSTS OFF) SELECT * FROM event WHERE id OPERATOR(ids.<) timestamptz '2026-01-01 00:00:10';
SELECT count(*) FROM event WHERE id OPERATOR(ids.<) timestamptz '2026-01-01 00:00:10';
SELECT count(*) FROM event WHERE timestamptz '2026-01-01 00:10:00' OPERATOR(ids.<=) id;
\set VERBOSITY terse
SELECT count(*) FROM event WHERE id < timestamptz '2026-01-01 00:00:10';
\set VERBOSITY default
SELECT count(*) FROM event WHERE ids.scru64_timestamp(id) < '2026-01-01 00:00:10';
SELECT count(*) FROM event WHERE id::timestamptz < '2026-01-01 00:00:10';
EXPLAIN (COSTS OFF) SELECT n FROM late;
SELECT count(*) FROM late;
SELECT max(c) FROM (SELECT count(*) OVER (ORDER BY id RANGE '1 second' PRECEDING) AS c FROM event) AS v;
\set VERBOSITY terse
SELECT count(*) FROM event WHERE id >= '2026-01-01';
\set VERBOSITY default

-- Nothing that is put before pg_catalog gets in the way of what the operators
-- are made of.
CREATE SCHEMA hostile;
CREATE FUNCTION hostile.scru64_min(timestamptz) RETURNS ids.scru64 LANGUAGE sql AS 'SELECT ''zzzzzzzzzzzz''::ids.scru64';
CREATE FUNCTION hostile.scru64_max(timestamptz) RETURNS ids.scru64 LANGUAGE sql AS 'SELECT ''000000000000''::ids.scru64';
SET search_path = hostile, pg_catalog, public;
SELECT count(*) FROM event WHERE id OPERATOR(ids.<) timestamptz '2026-01-01 00:00:10';
SELECT count(*) FROM event WHERE id::timestamptz < '2026-01-01 00:00:10';
RESET search_path;

-- Moved, and then the first query of a session: views follow.
ALTER EXTENSION scru64 SET SCHEMA public;
EXPLAIN (COSTS OFF) SELECT n FROM late;
EXPLAIN (COSTS OFF) SELECT * FROM event WHERE id >= timestamptz '2026-01-01 00:10:30';
\c -
EXPLAIN (COSTS OFF) SELECT n FROM ahead;
CREATE SCHEMA elsewhere;
ALTER EXTENSION scru64 SET SCHEMA elsewhere;
\c -
EXPLAIN (COSTS OFF) SELECT * FROM event WHERE id OPERATOR(elsewhere.>=) now();
SET TimeZone = 'UTC';
SELECT count(*) FROM event WHERE id::timestamptz < '2026-01-01 00:00:10';
SELECT count(*) FROM event WHERE id OPERATOR(elsewhere.<) timestamptz '2026-01-01 00:00:10';
SELECT count(*) FROM late;

-- Dropped, and the library still loaded.
SET client_min_messages = warning;
DROP EXTENSION scru64 CASCADE;
RESET client_min_messages;
SELECT count(*) FROM event WHERE to_timestamp(n) >= '1970-01-01 00:01:00';
SELECT count(*) FROM pg_proc WHERE proname ~ 'scru64' AND pronamespace = 'elsewhere'::regnamespace;

\c :database
DROP DATABASE regress_scru64_time;
