--
-- Joins: a plan of each method, against the same join of bigint columns.
--

SET work_mem = '4MB';

-- Some IDs are in one table only, some several times.
CREATE TEMP TABLE l (id scru64, n bigint, i integer);
CREATE TEMP TABLE r (id scru64, n bigint, j integer);
INSERT INTO l
	SELECT n::scru64, n, i
	FROM generate_series(1, 3000) AS i,
		 LATERAL (SELECT hashint8extended(i % 2000, 0) & 4503599627370495) AS v (n);
INSERT INTO r
	SELECT n::scru64, n, i
	FROM generate_series(1, 3000) AS i,
		 LATERAL (SELECT hashint8extended(i % 1500 + 1000, 0) & 4503599627370495) AS v (n);
INSERT INTO l VALUES (NULL, NULL, 0);
INSERT INTO r VALUES (NULL, NULL, 0);
CREATE INDEX r_id ON r (id);
ANALYZE l;
ANALYZE r;

SELECT count(*), sum(l.i), sum(r.j) FROM l JOIN r ON l.n = r.n;

-- Hash
SET enable_mergejoin = off;
SET enable_nestloop = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(l.i), sum(r.j) FROM l JOIN r ON l.id = r.id;
SELECT count(*), sum(l.i), sum(r.j) FROM l JOIN r ON l.id = r.id;
RESET enable_mergejoin;
RESET enable_nestloop;

-- Merge
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = off;
SET enable_material = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(l.i), sum(r.j) FROM l JOIN r ON l.id = r.id;
SELECT count(*), sum(l.i), sum(r.j) FROM l JOIN r ON l.id = r.id;
RESET enable_indexscan;
RESET enable_indexonlyscan;
RESET enable_bitmapscan;
RESET enable_material;
RESET enable_hashjoin;
RESET enable_nestloop;

-- Nested loop with an index
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(l.i), sum(r.j) FROM l JOIN r ON l.id = r.id WHERE l.i <= 10;
SELECT count(*), sum(l.i), sum(r.j) FROM l JOIN r ON l.id = r.id;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
RESET enable_memoize;

-- Equality carries over: one constant restricts both sides.
CREATE INDEX l_id ON l (id);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_material = off;
EXPLAIN (COSTS OFF)
	SELECT l.i, r.j FROM l JOIN r ON l.id = r.id WHERE l.id = '000ab5nqx6kg';
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_material;
