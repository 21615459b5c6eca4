--
-- Joins: each method, against the same join of bigint columns.
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
SELECT count(*) FILTER (WHERE l.id IS DISTINCT FROM l.n::scru64
						OR r.id IS DISTINCT FROM r.n::scru64
						OR l.n <> r.n) AS wrong,
	   count(l.id) AS with_left, count(r.id) AS with_right, count(*)
FROM l FULL JOIN r ON l.id = r.id;
-- Small memory, many batches: the same hash splits them.
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT count(*), sum(l.i), sum(r.j) FROM l JOIN r ON l.id = r.id;
SET work_mem = '4MB';
RESET hash_mem_multiplier;
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
SELECT count(*) FILTER (WHERE l.id IS DISTINCT FROM l.n::scru64
						OR r.id IS DISTINCT FROM r.n::scru64
						OR l.n <> r.n) AS wrong,
	   count(l.id) AS with_left, count(r.id) AS with_right, count(*)
FROM l FULL JOIN r ON l.id = r.id;
RESET enable_indexscan;
RESET enable_indexonlyscan;
SET enable_seqscan = off;
RESET enable_material;
SET enable_sort = off;
CREATE INDEX l_id ON l (id);
EXPLAIN (COSTS OFF) SELECT l.id, r.j FROM l JOIN r ON l.id = r.id;
SELECT count(*), sum(i), sum(j) FROM (SELECT l.i, r.j FROM l JOIN r ON l.id = r.id) AS joined;
RESET enable_seqscan;
RESET enable_sort;
RESET enable_hashjoin;
RESET enable_nestloop;

-- Nested loop with an index
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(l.i), sum(r.j) FROM l JOIN r ON l.id = r.id WHERE l.i <= 10;
SELECT count(*), sum(l.i), sum(r.j) FROM l JOIN r ON l.id = r.id;
SELECT count(*), sum(l.i), sum(r.j) FROM l JOIN r ON l.n = r.n WHERE l.i BETWEEN 1000 AND 1010;
SELECT count(*), sum(l.i), sum(r.j) FROM l JOIN r ON l.id = r.id WHERE l.i BETWEEN 1000 AND 1010;
-- By an inequality
SELECT count(*), sum(l.i), sum(r.j) FROM l JOIN r ON l.n < r.n WHERE l.i % 10 = 0;
SELECT count(*), sum(l.i), sum(r.j) FROM l JOIN r ON l.id < r.id WHERE l.i % 10 = 0;
RESET enable_material;
RESET enable_memoize;
-- Keyed by the hash of the outer ID, the inner side is remembered.
CREATE FUNCTION pg_temp.has_memoize(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan::text LIKE '%"Node Type": "Memoize"%';
END
$$;
SET enable_seqscan = off;
SELECT pg_temp.has_memoize('SELECT count(*) FROM l JOIN r ON l.id = r.id');
RESET enable_seqscan;
SELECT count(*), sum(l.i), sum(r.j) FROM l JOIN r ON l.id = r.id;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_bitmapscan;

-- Semijoin, antijoin, NOT IN
SELECT count(*) FILTER (WHERE EXISTS (SELECT FROM r WHERE r.id = l.id)) AS semi,
	   count(*) FILTER (WHERE EXISTS (SELECT FROM r WHERE r.n = l.n)) AS semi_bigint
FROM l;
SELECT (SELECT count(*) FROM l WHERE id IN (SELECT id FROM r))
	   = (SELECT count(*) FROM l WHERE n IN (SELECT n FROM r)) AS in_,
	   (SELECT count(*) FROM l WHERE NOT EXISTS (SELECT FROM r WHERE r.id = l.id))
	   = (SELECT count(*) FROM l WHERE NOT EXISTS (SELECT FROM r WHERE r.n = l.n)) AS anti,
	   (SELECT count(*) FROM l WHERE id NOT IN (SELECT id FROM r WHERE id IS NOT NULL))
	   = (SELECT count(*) FROM l WHERE n NOT IN (SELECT n FROM r WHERE n IS NOT NULL)) AS not_in;

-- Equality carries over: one constant restricts both sides.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_material = off;
EXPLAIN (COSTS OFF)
	SELECT l.i, r.j FROM l JOIN r ON l.id = r.id WHERE l.id = '000ab5nqx6kg';
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_material;
