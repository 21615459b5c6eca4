--
-- Indexes of every kind.
--

--
-- What there is
--
SELECT amname, opcname, opcdefault, opfname, amvalidate(c.oid)
FROM pg_opclass AS c
JOIN pg_am AS a ON a.oid = c.opcmethod
JOIN pg_opfamily AS f ON f.oid = c.opcfamily
WHERE opcintype = 'scru64'::regtype
ORDER BY amname COLLATE "C", opcname COLLATE "C";
SELECT amname, opfname, amopstrategy, amopopr::regoperator
FROM pg_amop
JOIN pg_opfamily AS f ON f.oid = amopfamily
JOIN pg_am AS a ON a.oid = amopmethod
WHERE amoplefttype = 'scru64'::regtype AND amoprighttype = 'scru64'::regtype
ORDER BY amname COLLATE "C", opfname COLLATE "C", amopstrategy;
-- Btree support 6 is apart: PostgreSQL has skip support from 18 on.
SELECT amname, opfname, amprocnum, amproc
FROM pg_amproc
JOIN pg_opfamily AS f ON f.oid = amprocfamily
JOIN pg_am AS a ON a.oid = opfmethod
WHERE amproclefttype = 'scru64'::regtype AND amprocrighttype = 'scru64'::regtype
	AND (amname, amprocnum) <> ('btree', 6)
ORDER BY amname COLLATE "C", opfname COLLATE "C", amprocnum;
SELECT (count(*) FILTER (WHERE amproc::text = 'btint8skipsupport') = 1)
	   = (current_setting('server_version_num')::integer >= 180000) AS skip_support,
	   count(*) <= 1 AS and_nothing_else
FROM pg_amproc
JOIN pg_opfamily AS f ON f.oid = amprocfamily
JOIN pg_am AS a ON a.oid = opfmethod
WHERE amproclefttype = 'scru64'::regtype AND amname = 'btree' AND amprocnum = 6;

--
-- A table of steady traffic, three IDs a tick, in the order of its pages; a
-- second ID in no order; and their numbers, which no index helps
--
CREATE TABLE scru64_indexed (id scru64, n bigint, shuffled scru64, m bigint)
	WITH (autovacuum_enabled = off);
INSERT INTO scru64_indexed
	SELECT n::scru64, n, m::scru64, m
	FROM generate_series(1, 50000) AS i,
		 LATERAL (SELECT (6553600000 + i / 3) << 24 | i) AS v (n),
		 LATERAL (SELECT (6553600000 + mod(i::bigint * 31607, 50021) / 3) << 24 | i) AS w (m);
INSERT INTO scru64_indexed VALUES (NULL, NULL, NULL, NULL);
VACUUM (FREEZE, ANALYZE) scru64_indexed;
SELECT min(n) AS low, min(id) AS low_id, max(n) AS high, max(id) AS high_id
FROM (SELECT * FROM scru64_indexed ORDER BY n OFFSET 20000 LIMIT 1000) AS middle \gset
SELECT m AS one, shuffled AS one_id FROM scru64_indexed WHERE n = :low \gset
SELECT :'low_id' AS low, :'high_id' AS high, :'one_id' AS one;

\i sql_tests/questions.sql
INSERT INTO question
	SELECT format(condition, :'low_id', :'high_id', :'one_id'),
		   format(same, :'low', :'high', :'one')
	FROM (VALUES
		('%1$L = id', 'n = %1$s'),
		('id IN (%1$L, %2$L)', 'n IN (%1$s, %2$s)'),
		('id = ANY (''{000000000000,%1$s,%2$s}'')', 'n = ANY (''{0,%1$s,%2$s}'')'),
		('id <> %1$L', 'n <> %1$s'),
		('id IS NULL', 'n IS NULL'),
		('id IS NOT NULL', 'n IS NOT NULL'),
		('id >= ''000000000000''', 'n >= 0'),
		('id <= ''zzzzzzzzzzzz''', 'n <= 4738381338321616895'),
		('shuffled = %3$L', 'm = %3$s'),
		('shuffled IN (%1$L, %2$L, %3$L)', 'm IN (%1$s, %2$s, %3$s)'),
		('shuffled = ANY (ARRAY(SELECT shuffled FROM scru64_indexed WHERE m %% 1000 = 0))', 'm %% 1000 = 0'),
		('shuffled BETWEEN %1$L AND %2$L', 'm BETWEEN %1$s AND %2$s')
	) AS v (condition, same);
SELECT * FROM pg_temp.compare('scru64_indexed');

-- The scans of a plan, whatever the version shows around them.
CREATE FUNCTION pg_temp.scans(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN QUERY
		SELECT concat_ws(' ', node ->> 'Node Type', node ->> 'Scan Direction',
						 node ->> 'Index Name', node ->> 'Index Cond')
		FROM jsonb_path_query(plan::jsonb, 'strict $.**') AS node
		WHERE node ->> 'Node Type' LIKE '%Scan%';
END
$$;

SET enable_seqscan = off;

--
-- Btree
--
CREATE INDEX scru64_indexed_id ON scru64_indexed (id);
CREATE INDEX scru64_indexed_shuffled ON scru64_indexed (shuffled);
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT n FROM scru64_indexed WHERE id = :'low_id';
EXPLAIN (COSTS OFF) SELECT n FROM scru64_indexed WHERE id >= :'low_id' AND :'high_id' > id;
EXPLAIN (COSTS OFF) SELECT n FROM scru64_indexed WHERE id IN (:'low_id', :'high_id');
EXPLAIN (COSTS OFF)
	SELECT n FROM scru64_indexed WHERE id BETWEEN :'low_id' AND :'high_id'
	ORDER BY id DESC LIMIT 5;
SELECT :high - n AS distance FROM scru64_indexed WHERE id BETWEEN :'low_id' AND :'high_id'
ORDER BY id DESC LIMIT 5;
SELECT * FROM pg_temp.compare('scru64_indexed');
-- min and max look at one end of the index, and not at the table.
SELECT query, pg_temp.scans(query) AS scan
FROM unnest(ARRAY[
	'SELECT min(id) FROM scru64_indexed',
	'SELECT max(id) FROM scru64_indexed',
	'SELECT max(shuffled) FROM scru64_indexed WHERE shuffled < ''0uzzzzzzzzzz''',
	'SELECT id FROM scru64_indexed ORDER BY id',
	'SELECT count(*) FROM scru64_indexed WHERE id < ''0u2pf62ji4b9''']) AS query;
SELECT min(id)::bigint = min(n) AS min, max(id)::bigint = max(n) AS max,
	   min(shuffled)::bigint = min(m) AS shuffled_min,
	   max(shuffled)::bigint = max(m) AS shuffled_max
FROM scru64_indexed;
SELECT count(*) FILTER (WHERE id <= previous) AS out_of_order, count(*)
FROM (
	SELECT shuffled, lag(shuffled) OVER (ORDER BY shuffled) FROM scru64_indexed
	WHERE shuffled IS NOT NULL
) AS ordered (id, previous);
RESET enable_bitmapscan;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
EXPLAIN (COSTS OFF)
	SELECT n FROM scru64_indexed WHERE id BETWEEN :'low_id' AND :'high_id';
SELECT * FROM pg_temp.compare('scru64_indexed');
RESET enable_indexscan;
RESET enable_indexonlyscan;

-- Row comparison over two columns of an index
CREATE INDEX scru64_indexed_both ON scru64_indexed (id, shuffled);
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF)
	SELECT n FROM scru64_indexed WHERE (id, shuffled) > (:'low_id', '000000000000')
	ORDER BY id, shuffled LIMIT 3;
SELECT n - :low AS distance FROM scru64_indexed
WHERE (id, shuffled) > (:'low_id', '000000000000')
ORDER BY id, shuffled LIMIT 3;
RESET enable_bitmapscan;
DROP INDEX scru64_indexed_both;

-- An index grown by inserts in no order, with deletes in between; unique
CREATE TABLE scru64_grown (id scru64 PRIMARY KEY, n bigint) WITH (autovacuum_enabled = off);
INSERT INTO scru64_grown SELECT shuffled, m FROM scru64_indexed WHERE m IS NOT NULL;
DELETE FROM scru64_grown WHERE n % 7 = 0;
VACUUM scru64_grown;
INSERT INTO scru64_grown SELECT m::scru64, m FROM scru64_indexed WHERE m % 7 = 0;
SET enable_bitmapscan = off;
SET enable_sort = off;
SELECT count(*), count(*) FILTER (WHERE id::bigint <> n) AS wrong,
	   count(*) FILTER (WHERE id <= previous) AS out_of_order
FROM (SELECT *, lag(id) OVER (ORDER BY id) AS previous FROM scru64_grown) AS ordered;
RESET enable_bitmapscan;
RESET enable_sort;
INSERT INTO scru64_grown SELECT min(shuffled), 0 FROM scru64_indexed
ON CONFLICT (id) DO UPDATE SET n = excluded.n
RETURNING id, n;
INSERT INTO scru64_grown VALUES ('0u2pf62ji4b9', 1);
INSERT INTO scru64_grown VALUES ('0U2PF62JI4B9', 2);
INSERT INTO scru64_grown VALUES (NULL, 3);
DROP TABLE scru64_grown;

-- Deduplication: equal IDs take as little room as equal bigints do.
CREATE TABLE scru64_duplicates (id scru64, n bigint) WITH (autovacuum_enabled = off);
CREATE INDEX scru64_duplicates_id ON scru64_duplicates (id);
CREATE INDEX scru64_duplicates_n ON scru64_duplicates (n);
CREATE INDEX scru64_duplicates_plain ON scru64_duplicates (id) WITH (deduplicate_items = off);
INSERT INTO scru64_duplicates
	SELECT (i % 10)::bigint::scru64, i % 10 FROM generate_series(1, 20000) AS i;
CREATE VIEW pg_temp.room AS
	SELECT pg_relation_size('scru64_duplicates_id')
		   = pg_relation_size('scru64_duplicates_n') AS as_bigint,
		   pg_relation_size('scru64_duplicates_id')
		   < pg_relation_size('scru64_duplicates_plain') / 2 AS deduplicated;
SELECT * FROM pg_temp.room;
REINDEX TABLE scru64_duplicates;
SELECT * FROM pg_temp.room;
DROP VIEW pg_temp.room;
DROP TABLE scru64_duplicates;

DROP INDEX scru64_indexed_id, scru64_indexed_shuffled;

--
-- Hash
--
CREATE INDEX scru64_indexed_id ON scru64_indexed USING hash (id);
CREATE INDEX scru64_indexed_shuffled ON scru64_indexed USING hash (shuffled);
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT n FROM scru64_indexed WHERE id = :'low_id';
SELECT count(*) AS wanted, count(*) FILTER (WHERE found_rows <> 1) AS wrong
FROM (SELECT id FROM scru64_indexed WHERE n % 100 = 0) AS w,
	 LATERAL (SELECT count(*) FROM scru64_indexed AS t WHERE t.id = w.id) AS l (found_rows);
RESET enable_bitmapscan;
SELECT * FROM pg_temp.compare('scru64_indexed');
DROP INDEX scru64_indexed_id, scru64_indexed_shuffled;

--
-- BRIN, in small page ranges so that there are many. That a scan reads less
-- than a quarter of the table shows that the index is not only right but of
-- use.
--
SELECT 4 * 8192 / current_setting('block_size')::integer AS pages_of_32_kb \gset
SELECT format('SELECT n FROM scru64_indexed WHERE id BETWEEN %L AND %L', :'low_id', :'high_id') AS range,
	   format('SELECT n FROM scru64_indexed WHERE id = %L', :'low_id') AS equal,
	   format('SELECT n FROM scru64_indexed WHERE shuffled = %L', :'one_id') AS shuffled \gset
-- Make such an index, and see whether each of the queries uses it and reads little, and all questions
CREATE FUNCTION pg_temp.try_brin(
	columns text, pages integer, queries text[],
	OUT reads_little boolean[], OUT questions bigint, OUT not_empty bigint, OUT differing text[]
) LANGUAGE plpgsql AS $$
DECLARE
	query text;
	plan jsonb;
	node jsonb;
BEGIN
	EXECUTE format('CREATE INDEX scru64_brin ON scru64_indexed USING brin (%s) WITH (pages_per_range = %s)', columns, pages);
	FOREACH query IN ARRAY queries LOOP
		EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
		SELECT n INTO STRICT node
		FROM jsonb_path_query(plan, 'strict $.**') AS n
		WHERE n ->> 'Node Type' = 'Bitmap Heap Scan' AND n #>> '{Plans,0,Index Name}' = 'scru64_brin';
		reads_little = reads_little || ((node ->> 'Lossy Heap Blocks')::bigint
			< pg_relation_size('scru64_indexed') / current_setting('block_size')::bigint / 4);
	END LOOP;
	SELECT c.questions, c.not_empty, c.differing INTO questions, not_empty, differing FROM pg_temp.compare('scru64_indexed') AS c;
	DROP INDEX scru64_brin;
END
$$;
SELECT * FROM pg_temp.try_brin('id', :pages_of_32_kb, ARRAY[:'range', :'equal']);

-- Strays in all page ranges spoil minmax, and do not spoil minmax-multi. Bloom is for equality, in
-- no order.
ALTER TABLE scru64_indexed
	ALTER id TYPE scru64 USING
		CASE 0 WHEN n % 97 THEN 'zzzzzzzzzzzz' WHEN n % 89 THEN '000000000000' ELSE id END,
	ALTER n TYPE bigint USING
		CASE 0 WHEN n % 97 THEN 4738381338321616895 WHEN n % 89 THEN 0 ELSE n END;
VACUUM (FREEZE, ANALYZE) scru64_indexed;
SELECT columns, b.*
FROM (VALUES
	('id', ARRAY[:'range']),
	('id scru64_minmax_multi_ops', ARRAY[:'range', :'equal']),
	('id scru64_minmax_multi_ops (values_per_range = 8)', '{}'),
	('shuffled scru64_bloom_ops (n_distinct_per_range = 1000)', ARRAY[:'shuffled'])
) AS v (columns, queries), pg_temp.try_brin(columns, :pages_of_32_kb, queries) AS b;

-- What is inserted later is found too, whether summarized or not.
CREATE INDEX scru64_brin ON scru64_indexed USING brin (id) WITH (pages_per_range = :pages_of_32_kb);
INSERT INTO scru64_indexed SELECT i::scru64, i FROM generate_series(1::bigint, 5000) AS i;
SELECT * FROM pg_temp.compare('scru64_indexed');
SELECT brin_summarize_new_values('scru64_brin') > 0 AS summarized;
SELECT * FROM pg_temp.compare('scru64_indexed');

DROP TABLE scru64_indexed;

--
-- An index whose first column the condition leaves out. From PostgreSQL 18 on
-- the scan skips from one ID to the next, and skip support tells it which that
-- is: it takes as many searches as with bigint.
--
CREATE TABLE scru64_skipped (id scru64, n bigint, x integer) WITH (autovacuum_enabled = off);
INSERT INTO scru64_skipped
	SELECT (i % 10)::bigint::scru64, i % 10, i FROM generate_series(1, 20000) AS i;
CREATE FUNCTION pg_temp.searches(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
	RETURN coalesce(jsonb_path_query_first(plan, '$.**."Index Searches"')::bigint, -1);
END
$$;
SET enable_bitmapscan = off;
CREATE INDEX scru64_skipped_id ON scru64_skipped (id, x);
VACUUM (FREEZE, ANALYZE) scru64_skipped;
EXPLAIN (COSTS OFF) SELECT id, x FROM scru64_skipped WHERE x BETWEEN 12344 AND 12345;
SELECT id, x FROM scru64_skipped WHERE x BETWEEN 12344 AND 12345;
SELECT pg_temp.searches('SELECT id, x FROM scru64_skipped WHERE x = 12345') AS searches \gset
DROP INDEX scru64_skipped_id;
CREATE INDEX scru64_skipped_n ON scru64_skipped (n, x);
SELECT pg_temp.searches('SELECT n, x FROM scru64_skipped WHERE x = 12345')
	   = :searches AS as_many;
RESET enable_bitmapscan;
DROP TABLE scru64_skipped;

--
-- GIN on arrays
--
CREATE TABLE scru64_tagged (ids scru64[], ns bigint[]) WITH (autovacuum_enabled = off);
INSERT INTO scru64_tagged
	SELECT ns::scru64[], ns
	FROM generate_series(1, 2000) AS i,
		 LATERAL (SELECT ARRAY[i, i % 10, i % 100]::bigint[]) AS v (ns);
CREATE INDEX scru64_tagged_ids ON scru64_tagged USING gin (ids);
TRUNCATE question;
INSERT INTO question VALUES
	('ids @> ''{000000000007}''', 'ns @> ''{7}'''),
	('ids && ''{000000000007,000000000014}''', 'ns && ''{7,40}'''),
	('ids <@ ''{000000000006,00000000001u}''', 'ns <@ ''{6,66}'''),
	('ids = ''{0000000000zz,000000000005,00000000002n}''', 'ns = ''{1295,5,95}''');
SELECT * FROM pg_temp.compare('scru64_tagged', 'scru64_tagged_ids');
DROP TABLE scru64_tagged;
