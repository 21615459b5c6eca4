--
-- The extension scru64_gist: GiST indexes on IDs, in a database of its own.
--
SELECT count(*) = 0 AS is_missing FROM pg_available_extensions WHERE name = 'btree_gist' \gset
\if :is_missing
\echo skipped: there is no btree_gist
\quit
\endif

\set method gist
\i sql_tests/index_extension.sql

-- What btree_gist has from PostgreSQL 18 on: sorted builds and temporal keys
SELECT count(*) = CASE WHEN current_setting('server_version_num')::integer >= 180000 THEN 2 ELSE 0 END AS of_18,
	   count(*) FILTER (WHERE format('%s %s %s', amprocnum, amproc, amproclefttype::regtype) NOT IN (
		   '11 "a ''library''".gbt_int8_sortsupport scru64',
		   '12 "a ''library''".gist_translate_cmptype_btree "any"')) AS others
FROM pg_amproc
JOIN pg_opfamily AS f ON f.oid = amprocfamily
WHERE f.opfname = 'scru64_ops' AND f.opfmethod = (SELECT oid FROM pg_am WHERE amname = 'gist') AND amprocnum >= 11;

-- Without any schema in search_path; and with btree_gist moved
CREATE TABLE public.booking (
	id scru64, during int4range,
	EXCLUDE USING gist (id WITH =, during WITH &&)
);
INSERT INTO public.booking VALUES ('0u2pf62ji4b9', '[1,5)'), ('0u2pf62ji4b9', '[5,7)'), ('0u2pf62ji4ba', '[1,7)');
INSERT INTO public.booking VALUES ('0u2pf62ji4b9', '[6,9)');
RESET SESSION AUTHORIZATION;
SET client_min_messages = warning;
DROP FUNCTION "a 'library'".decoy, "a 'library'".scru64_cmp CASCADE;
RESET client_min_messages;
ALTER EXTENSION btree_gist SET SCHEMA public;
RESET search_path;
INSERT INTO booking VALUES ('0u2pf62ji4ba', '[6,9)');

-- Nothing goes without what needs it.
DROP EXTENSION btree_gist;
DROP EXTENSION scru64;
DROP EXTENSION scru64_gist;
-- A table that goes over to bigint keeps its constraint.
ALTER TABLE booking ALTER id TYPE bigint;
INSERT INTO booking VALUES (109959589539758421, '[6,9)');
DROP EXTENSION scru64_gist;
DROP TABLE booking;
DROP EXTENSION scru64, btree_gist;

-- SCHEMA counts for btree_gist only.
CREATE SCHEMA library;
CREATE EXTENSION scru64_gist SCHEMA library;
CREATE EXTENSION scru64_gist SCHEMA library CASCADE;
SELECT extname, extnamespace::regnamespace FROM pg_extension WHERE extname LIKE '%\_gist' OR extname = 'scru64' ORDER BY extname;

--
-- 50,000 rows, each inserted unless its ID is taken at some of its time.  The number
-- n is the ID as a bigint.  No index is on it: it tells what is right.
--
CREATE TABLE candidate AS
	SELECT i, n, int4range(start, start + 1 + mod(i::bigint * i, 199)::integer) AS during
	FROM generate_series(1, 50000) AS i,
		 LATERAL (SELECT mod(i * 7919, 1000) AS k, mod(i::bigint * i * 31607, 49999)::integer AS start) AS r,
		 LATERAL (SELECT CASE k
			WHEN 0 THEN 0
			WHEN 1 THEN 4738381338321616895
			WHEN 2 THEN 1
			WHEN 3 THEN 4738381338321616894
			-- neighbours, of one tick
			ELSE (6553600000 + k / 3)::bigint << 24 | mod(k, 3)
		 END AS n) AS v;
CREATE TABLE booking (
	i integer, id scru64, n bigint, during int4range,
	CONSTRAINT never_twice EXCLUDE USING gist (id WITH =, during WITH &&)
) WITH (autovacuum_enabled = off);
INSERT INTO booking SELECT i, n::scru64, n, during FROM candidate ORDER BY i ON CONFLICT DO NOTHING;
-- null excludes nothing
INSERT INTO booking (during) VALUES ('[1,2)'), ('[1,2)');
VACUUM (FREEZE, ANALYZE) booking;

SELECT count(*) FROM booking;
SELECT count(*) AS twice
FROM (SELECT during, lag(during) OVER (PARTITION BY n ORDER BY during) FROM booking WHERE n IS NOT NULL) AS b (during, before)
WHERE during && before;
SELECT count(*) AS refused_for_nothing
FROM candidate AS c
WHERE NOT EXISTS (SELECT FROM booking AS b WHERE b.i = c.i)
	AND NOT EXISTS (SELECT FROM booking AS b WHERE b.n = c.n AND b.i < c.i AND b.during && c.during);
INSERT INTO booking SELECT -1, id, n, during FROM booking WHERE i = 4;

--
-- Questions about the IDs, and the same about their numbers
--
SELECT min(n) AS low, min(id) AS low_id, max(n) AS high, max(id) AS high_id
FROM (SELECT DISTINCT id, n FROM booking WHERE n IS NOT NULL ORDER BY n OFFSET 300 LIMIT 50) AS middle \gset
SELECT :'low_id' AS low, :'high_id' AS high;
\i sql_tests/questions.sql
INSERT INTO question
	SELECT format(condition, :'low_id', :'high_id'), format(same, :'low', :'high')
	FROM (VALUES
		('%1$L = id', 'n = %1$s'),
		('id <> %1$L', 'n <> %1$s'),
		('id IS NULL', 'n IS NULL'),
		('id IS NOT NULL', 'n IS NOT NULL'),
		('id > ''000000000000''', 'n > 0'),
		('id <> ''000000000000''', 'n <> 0'),
		('id < ''zzzzzzzzzzzz''', 'n < 4738381338321616895'),
		('scru64_timestamp(%1$L) >= id', 'n >> 24 <= %1$s >> 24'),
		('scru64_timestamp(%2$L) < id', 'n >> 24 > %2$s >> 24')
	) AS v (condition, same);
SET enable_seqscan = off;

-- The index of the constraint, which has grown row by row
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT id, during FROM booking WHERE id = :'low_id' AND during && '[7,9)';
EXPLAIN (COSTS OFF) SELECT i FROM booking WHERE id BETWEEN :'low_id' AND :'high_id';
SELECT * FROM pg_temp.compare('booking', 'never_twice');

-- The same after deletes and inserts
DELETE FROM booking WHERE mod(i, 10) = 0;
VACUUM booking;
INSERT INTO booking SELECT i, n::scru64, n, during FROM candidate WHERE mod(i, 10) = 0 ORDER BY i ON CONFLICT DO NOTHING;
VACUUM (FREEZE, ANALYZE) booking;
SELECT count(*) FROM booking;
SELECT * FROM pg_temp.compare('booking', 'never_twice');
ALTER TABLE booking DROP CONSTRAINT never_twice;

-- One that is built at once: as the version does, and with buffers
CREATE INDEX booking_id ON booking USING gist (id);
EXPLAIN (COSTS OFF) SELECT id FROM booking WHERE id > :'low_id' AND id <> :'high_id';
EXPLAIN (COSTS OFF) SELECT i FROM booking WHERE id >= timestamptz '2026-01-31 00:00+00';
EXPLAIN (COSTS OFF) SELECT id FROM booking WHERE timestamptz '2026-01-31 00:00+00' > id;
SELECT * FROM pg_temp.compare('booking', 'booking_id');
-- What an index-only scan reads is what is in the table.
SELECT count(*) AS fetched, count(DISTINCT id) FROM booking WHERE id <= 'zzzzzzzzzzzz';
SELECT count(n), count(DISTINCT n) FROM booking;
SELECT count(*) AS differing
FROM (SELECT DISTINCT id::bigint FROM booking WHERE id <= 'zzzzzzzzzzzz') AS b (id)
FULL JOIN (SELECT DISTINCT n FROM booking WHERE n IS NOT NULL) AS m ON m.n = b.id
WHERE b.id IS NULL OR m.n IS NULL;
DROP INDEX booking_id;
CREATE INDEX booking_id ON booking USING gist (id) WITH (buffering = on, fillfactor = 50);
SELECT * FROM pg_temp.compare('booking', 'booking_id');

-- By bitmaps
RESET enable_bitmapscan;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM booking WHERE id > :'low_id';
SELECT * FROM pg_temp.compare('booking', 'booking_id');
RESET enable_indexscan;
RESET enable_indexonlyscan;

--
-- What excludes all other IDs: a room has one event at a time.
--
CREATE TABLE room (
	number integer, event scru64, during int4range,
	EXCLUDE USING gist (number WITH =, event WITH <>, during WITH &&)
);
INSERT INTO room VALUES (1, '0u2r85hm2pt3', '[1,5)'), (1, '0u2r85hm2pt3', '[2,3)'), (1, '0u2pf62ji4b9', '[5,7)');
INSERT INTO room VALUES (1, '0u2pf62ji4b9', '[4,6)');

-- Without plpgsql
SET client_min_messages = warning;
DROP EXTENSION plpgsql, scru64_gist CASCADE;
RESET client_min_messages;
CREATE EXTENSION scru64_gist;

\c :original
DROP DATABASE scru64_regression_index;
DROP ROLE regress_index_owner;
