--
-- Temporal keys, of PostgreSQL 18 and later, in a database of its own.
--
SELECT count(*) = 0 OR current_setting('server_version_num')::integer < 180000 AS is_missing
FROM pg_available_extensions WHERE name = 'btree_gist' \gset
\if :is_missing
\echo skipped: there is no btree_gist, or PostgreSQL has no temporal keys
\quit
\endif

\set original :DBNAME
\set SHOW_CONTEXT never
SET client_min_messages = warning;
DROP DATABASE IF EXISTS scru64_regression_gist;
CREATE DATABASE scru64_regression_gist TEMPLATE template0;
\c scru64_regression_gist
SET lc_messages = 'C';
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
CREATE EXTENSION scru64_gist CASCADE;
RESET client_min_messages;

CREATE TABLE price (
	item scru64, valid int4range, amount integer,
	PRIMARY KEY (item, valid WITHOUT OVERLAPS)
);
SELECT pg_get_constraintdef(oid), conexclop::regoperator[] FROM pg_constraint
WHERE conrelid = 'price'::regclass AND contype = 'p';
CREATE TABLE sale (
	id scru64, valid int4range, item scru64,
	UNIQUE (id, valid WITHOUT OVERLAPS),
	FOREIGN KEY (item, PERIOD valid) REFERENCES price (item, PERIOD valid)
);

-- The first and the last ID too
INSERT INTO price VALUES
	('0u2r85hm2pt3', '[1,10)', 100), ('0u2r85hm2pt3', '[10,20)', 110), ('0u2r85hm2pt4', '[5,15)', 120),
	('000000000000', '[1,10)', 130), ('zzzzzzzzzzzz', '[1,10)', 140);
INSERT INTO price VALUES ('0u2r85hm2pt3', '[19,21)', 150);
INSERT INTO price VALUES ('zzzzzzzzzzzz', '[1,2)', 150);
INSERT INTO price VALUES (NULL, '[1,2)', 150);
INSERT INTO price VALUES ('0u2r85hm2pt3', '[20,30)', 150) ON CONFLICT DO NOTHING;
INSERT INTO price VALUES ('0u2r85hm2pt3', '[25,35)', 160) ON CONFLICT DO NOTHING;

-- Two rows together cover it; nothing of another ID does.
INSERT INTO sale VALUES
	('0u2pf62ji4b9', '[5,25)', '0u2r85hm2pt3'), ('0u2pf62ji4ba', '[9,10)', 'zzzzzzzzzzzz'),
	('0u2pf62ji4bb', '[1,2)', NULL);
INSERT INTO sale VALUES ('0u2pf62ji4bc', '[4,6)', '0u2r85hm2pt4');
INSERT INTO sale VALUES ('0u2pf62ji4bc', '[4,6)', '0u2r85hm2pt5');
INSERT INTO sale VALUES ('0u2pf62ji4b9', '[1,6)', '0u2r85hm2pt3');
DELETE FROM price WHERE item = '0u2r85hm2pt3' AND valid @> 10;
UPDATE price SET item = '0u2r85hm2pt6' WHERE item = 'zzzzzzzzzzzz';
UPDATE price SET valid = '[8,10)' WHERE item = 'zzzzzzzzzzzz';
DELETE FROM price WHERE item = '000000000000';
SELECT * FROM price ORDER BY item, valid;
SELECT * FROM sale ORDER BY id;

-- With 100,000 rows.  The number n is the item as a bigint.
TRUNCATE sale, price;
INSERT INTO price
	SELECT n::scru64, int4range(10 * i, 10 * i + 10), n % 1000
	FROM generate_series(0, 999) AS k, generate_series(0, 99) AS i,
		 LATERAL (SELECT (6553600000 + mod(k * 617, 1009) / 3)::bigint << 24 | k) AS v (n);
INSERT INTO sale SELECT item, int4range(lower(valid) + 3, lower(valid) + 6), item FROM price WHERE valid && '[100,200)';
INSERT INTO sale SELECT min(item), int4range(999, 1001), min(item) FROM price;
VACUUM ANALYZE price;
SELECT count(*), count(DISTINCT item::bigint) FROM price;
SELECT min(item) AS one FROM price \gset
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT item, valid FROM price WHERE item = :'one' AND valid @> 42;
SELECT valid, amount = item::bigint % 1000 AS right FROM price WHERE item = :'one' AND valid @> 42;

\c :original
DROP DATABASE scru64_regression_gist;
