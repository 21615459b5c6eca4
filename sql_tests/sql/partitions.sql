--
-- Partitioning by scru64.
--

SET enable_partitionwise_aggregate = off;

--
-- By hash: each row where a bigint would be
--
CREATE TABLE scru64_hashed (id scru64, i integer) PARTITION BY HASH (id);
CREATE TABLE scru64_hashed_n (n bigint, i integer) PARTITION BY HASH (n);
SELECT format('CREATE TABLE %s_%s PARTITION OF %1$s FOR VALUES WITH (MODULUS 4, REMAINDER %2$s)',
			  parent, remainder)
FROM unnest('{scru64_hashed,scru64_hashed_n}'::text[]) AS parent,
	 generate_series(0, 3) AS remainder \gexec
INSERT INTO scru64_hashed_n
	SELECT (hashint8extended(i, 0) & 9223372036854775807) % 4738381338321616896, i
	FROM generate_series(1, 1000) AS i;
INSERT INTO scru64_hashed_n VALUES (0, 0), (4738381338321616895, 0), (NULL, 0);
INSERT INTO scru64_hashed SELECT n::scru64, i FROM scru64_hashed_n;
SELECT right(tableoid::regclass::text, 1) AS remainder, count(*) > 200 AS enough
FROM scru64_hashed GROUP BY 1 ORDER BY 1;
SELECT count(*) FILTER (WHERE s.i IS NULL OR b.i IS NULL) AS elsewhere, count(*)
FROM (SELECT *, right(tableoid::regclass::text, 1) AS remainder FROM scru64_hashed) AS s
FULL JOIN (SELECT *, right(tableoid::regclass::text, 1) AS remainder FROM scru64_hashed_n) AS b
ON s.id::bigint IS NOT DISTINCT FROM b.n AND s.i = b.i AND s.remainder = b.remainder;
EXPLAIN (COSTS OFF) SELECT * FROM scru64_hashed WHERE id = '0u2pf62ji4b9';
SELECT * FROM scru64_hashed WHERE id IN ('000000000000', 'zzzzzzzzzzzz') ORDER BY id;
DROP TABLE scru64_hashed, scru64_hashed_n;

--
-- By range, which is by time
--
CREATE TABLE scru64_ranged (id scru64 PRIMARY KEY, n bigint) PARTITION BY RANGE (id);
CREATE TABLE scru64_ranged_old PARTITION OF scru64_ranged
	FOR VALUES FROM (MINVALUE) TO ('0u0000000000');
CREATE TABLE scru64_ranged_u0 PARTITION OF scru64_ranged
	FOR VALUES FROM ('0u0000000000') TO ('0u1000000000');
CREATE TABLE scru64_ranged_u1 PARTITION OF scru64_ranged
	FOR VALUES FROM ('0u1000000000') TO ('0u2000000000');
CREATE TABLE scru64_ranged_u2 PARTITION OF scru64_ranged
	FOR VALUES FROM ('0U2000000000') TO ('0U3000000000');
CREATE TABLE scru64_ranged_overlapping PARTITION OF scru64_ranged
	FOR VALUES FROM ('0u2zzzzzzzzz') TO ('0u4000000000');
SELECT relname, pg_get_expr(relpartbound, oid)
FROM pg_class WHERE relname ~ '^scru64_ranged_' AND relpartbound IS NOT NULL AND relkind = 'r'
ORDER BY relname COLLATE "C";
INSERT INTO scru64_ranged
	SELECT n::scru64, n
	FROM generate_series('0tz000000000'::scru64::bigint, '0u2zzzzzzzzz'::scru64::bigint,
						 101559956668416 / 10) AS n;	-- 36^9 / 10
INSERT INTO scru64_ranged VALUES ('0u3000000000', 0);
SELECT tableoid::regclass, count(*), min(id), max(id),
	   count(*) FILTER (WHERE id::bigint <> n) AS wrong
FROM scru64_ranged GROUP BY 1 ORDER BY min(id);
-- Rows at the very bounds
INSERT INTO scru64_ranged VALUES ('0u0zzzzzzzzz', 0), ('0u2zzzzzzzzz', 0), ('000000000000', 0)
RETURNING tableoid::regclass, id;

-- Pruning when the query is planned; when it runs: time_partitions.sql
SET enable_indexscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM scru64_ranged WHERE id > '0u1000000000' AND '0u2000000000' > id;
SELECT count(*) FROM scru64_ranged WHERE id > '0u1000000000' AND '0u2000000000' > id;
RESET enable_indexscan;
RESET enable_bitmapscan;
DROP TABLE scru64_ranged;

--
-- By list
--
CREATE TABLE scru64_listed (id scru64) PARTITION BY LIST (id);
CREATE TABLE scru64_listed_0 PARTITION OF scru64_listed
	FOR VALUES IN ('000000000000', 'zzzzzzzzzzzz');
CREATE TABLE scru64_listed_1 PARTITION OF scru64_listed DEFAULT;
INSERT INTO scru64_listed VALUES ('ZZZZZZZZZZZZ'), ('0u2pf62ji4b9');
SELECT tableoid::regclass, id FROM scru64_listed ORDER BY id;
DROP TABLE scru64_listed;
