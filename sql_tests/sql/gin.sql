--
-- The extension scru64_gin: GIN indexes on an ID and other columns, in a database of
-- its own.
--
SELECT count(*) = 0 AS is_missing FROM pg_available_extensions WHERE name = 'btree_gin' \gset
\if :is_missing
\echo skipped: there is no btree_gin
\quit
\endif

\set method gin
\i sql_tests/index_extension.sql

RESET SESSION AUTHORIZATION;
SET client_min_messages = warning;
DROP FUNCTION "a 'library'".decoy, "a 'library'".scru64_cmp CASCADE;
RESET client_min_messages;
ALTER EXTENSION btree_gin SET SCHEMA public;
RESET search_path;

--
-- 100,000 rows of 1,000 tenants, each of an ID.  The number n is the ID as a bigint.
--
CREATE TABLE document (id scru64, n bigint, tags text[]) WITH (autovacuum_enabled = off);
INSERT INTO document
	SELECT n::scru64, n, ARRAY['tag' || i % 7, 'tag' || i % 11]
	FROM generate_series(1, 100000) AS i,
		 LATERAL (SELECT mod(i::bigint * 7919, 1000) AS k) AS r,
		 LATERAL (SELECT CASE k
			WHEN 0 THEN 0
			WHEN 1 THEN 4738381338321616895
			-- neighbours, of one tick
			ELSE (6553600000 + k / 3) << 24 | mod(k, 3)
		 END AS n) AS v;
INSERT INTO document (tags) VALUES ('{tag1}');
CREATE INDEX document_id_tags ON document USING gin (id, tags);
VACUUM (FREEZE, ANALYZE) document;
-- Those that come later are in the pending list first.
INSERT INTO document SELECT id, n, '{tag1,late}' FROM document LIMIT 1000;

SELECT min(n) AS low, min(id) AS low_id, max(n) AS high, max(id) AS high_id
FROM (SELECT DISTINCT id, n FROM document WHERE n IS NOT NULL ORDER BY n OFFSET 300 LIMIT 50) AS middle \gset
\i sql_tests/questions.sql
INSERT INTO question VALUES (format('id IN (%L, %L)', :'low_id', :'high_id'), format('n IN (%s, %s)', :'low', :'high'));
INSERT INTO question SELECT condition || late, same || late FROM question, (VALUES (' AND tags @> ''{tag1,late}''')) AS v (late);
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM document WHERE id = :'low_id' AND tags @> '{tag1}';
SELECT * FROM pg_temp.compare('document', 'document_id_tags');
VACUUM document;
SELECT * FROM pg_temp.compare('document', 'document_id_tags');

-- Nothing goes without what needs it.
DROP EXTENSION btree_gin;
DROP EXTENSION scru64_gin;
DROP TABLE document;
DROP EXTENSION scru64_gin;

\c :original
DROP DATABASE scru64_regression_index;
DROP ROLE regress_index_owner;
