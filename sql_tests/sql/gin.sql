--
-- The extension scru64_gin: GIN indexes on an ID and other columns, in a database of
-- its own.
--
SELECT count(*) = 0 AS is_missing FROM pg_available_extensions WHERE name = 'btree_gin' \gset
\if :is_missing
\echo skipped: there is no btree_gin
\quit
\endif

\set original :DBNAME
SET client_min_messages = warning;
DROP DATABASE IF EXISTS scru64_regression_gin;
DROP ROLE IF EXISTS regress_gin_owner;
RESET client_min_messages;
CREATE ROLE regress_gin_owner;
CREATE DATABASE scru64_regression_gin TEMPLATE template0 OWNER regress_gin_owner;
\c scru64_regression_gin
SET lc_messages = 'C';
SET max_parallel_workers_per_gather = 0;

--
-- Made by who is no superuser, with each extension in a schema of its own.  Whatever
-- else of those names there is in these schemas is let be.
--
SET SESSION AUTHORIZATION regress_gin_owner;
CREATE SCHEMA here;
CREATE SCHEMA ids;
CREATE SCHEMA "a 'library'";
CREATE EXTENSION scru64 SCHEMA ids;
CREATE EXTENSION btree_gin SCHEMA "a 'library'";
CREATE FUNCTION here.decoy(ids.scru64, ids.scru64) RETURNS boolean LANGUAGE sql RETURN true;
CREATE FUNCTION here.scru64_cmp(ids.scru64, ids.scru64) RETURNS integer LANGUAGE sql RETURN 0;
CREATE OPERATOR here.= (LEFTARG = ids.scru64, RIGHTARG = ids.scru64, FUNCTION = here.decoy, COMMUTATOR = OPERATOR(here.=));
CREATE OPERATOR "a 'library'".< (LEFTARG = ids.scru64, RIGHTARG = ids.scru64, FUNCTION = here.decoy);
CREATE DOMAIN here.scru64 AS text;
CREATE DOMAIN "a 'library'".scru64 AS text;
SET search_path = here, ids, "a 'library'";
CREATE EXTENSION scru64_gin SCHEMA here;
SET search_path = '';

SELECT pg_describe_object(classid, objid, objsubid) AS object,
	   obj_description(objid, classid::regclass::name) <> '' AS has_comment
FROM pg_depend
WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'scru64_gin') AND deptype = 'e'
ORDER BY pg_describe_object(classid, objid, objsubid) COLLATE "C";
SELECT opcnamespace::regnamespace, opcname, opcdefault, amvalidate(oid)
FROM pg_opclass
WHERE opcintype = 'ids.scru64'::regtype AND opcmethod = (SELECT oid FROM pg_am WHERE amname = 'gin');
SELECT amopstrategy, amopopr::regoperator
FROM pg_amop
JOIN pg_opfamily AS f ON f.oid = amopfamily
WHERE f.opfnamespace = 'here'::regnamespace
ORDER BY amopstrategy;
SELECT amprocnum, amproc::regprocedure
FROM pg_amproc
JOIN pg_opfamily AS f ON f.oid = amprocfamily
WHERE f.opfnamespace = 'here'::regnamespace
ORDER BY amprocnum;
SELECT r.rolsuper, provolatile, proisstrict, proparallel, probin, prosrc
FROM pg_proc AS p JOIN pg_roles AS r ON r.oid = p.proowner
WHERE p.proname LIKE 'scru64_gin_%'
ORDER BY prosrc COLLATE "C";

RESET SESSION AUTHORIZATION;
SET client_min_messages = warning;
DROP FUNCTION here.decoy CASCADE;
RESET client_min_messages;
ALTER EXTENSION scru64_gin SET SCHEMA public;
ALTER EXTENSION scru64 SET SCHEMA public;
ALTER EXTENSION btree_gin SET SCHEMA public;
RESET search_path;

--
-- 100,000 rows of 1,000 tenants, which are numbered in n
--
CREATE TABLE document (tenant scru64, n bigint, tags text[]) WITH (autovacuum_enabled = off);
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
CREATE INDEX document_tenant_tags ON document USING gin (tenant, tags);
VACUUM (FREEZE, ANALYZE) document;
-- Those that come later are in the pending list first.
INSERT INTO document SELECT tenant, n, '{tag1,late}' FROM document LIMIT 1000;

SELECT min(n) AS low, min(tenant) AS low_id, max(n) AS high, max(tenant) AS high_id
FROM (SELECT DISTINCT tenant, n FROM document WHERE n IS NOT NULL ORDER BY n OFFSET 300 LIMIT 50) AS middle \gset
CREATE FUNCTION pg_temp.compare(
	low text, high text, low_id text, high_id text,
	OUT questions bigint, OUT not_empty bigint, OUT differing text[], OUT without_index text[]
) LANGUAGE plpgsql AS $$
DECLARE
	question text;
	same text;
	found_rows bigint;
	expected bigint;
	plan text;
BEGIN
	questions = 0;
	not_empty = 0;
	FOR question, same IN
		SELECT format(c || t, low_id, high_id), format(s || t, low, high)
		FROM (VALUES
			('tenant = %1$L', 'n = %1$s'),
			('tenant < %1$L', 'n < %1$s'),
			('tenant <= %1$L', 'n <= %1$s'),
			('tenant > %2$L', 'n > %2$s'),
			('%2$L <= tenant', 'n >= %2$s'),
			('tenant BETWEEN %1$L AND %2$L', 'n BETWEEN %1$s AND %2$s'),
			('tenant IN (%1$L, %2$L)', 'n IN (%1$s, %2$s)'),
			('tenant <= ''000000000000''', 'n <= 0'),
			('tenant < ''000000000000''', 'n < 0'),
			('tenant >= ''zzzzzzzzzzzz''', 'n >= 4738381338321616895'),
			('tenant > ''zzzzzzzzzzzz''', 'n > 4738381338321616895'),
			('tenant >= scru64_timestamp(%2$L)', 'n >= %2$s >> 24 << 24'),
			('tenant < scru64_timestamp(%1$L)', 'n < %1$s >> 24 << 24')
		) AS v (c, s), (VALUES (''), (' AND tags @> ''{tag1,late}''')) AS w (t)
	LOOP
		EXECUTE 'SELECT count(*) FROM document WHERE ' || question INTO found_rows;
		EXECUTE 'SELECT count(*) FROM document WHERE ' || same INTO expected;
		EXECUTE 'EXPLAIN (FORMAT JSON) SELECT count(*) FROM document WHERE ' || question INTO plan;
		questions = questions + 1;
		not_empty = not_empty + (found_rows > 0)::integer;
		IF found_rows <> expected THEN
			differing = differing || question;
		END IF;
		IF plan NOT LIKE '%"Index Name": "document_tenant_tags"%' THEN
			without_index = without_index || question;
		END IF;
	END LOOP;
END
$$;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM document WHERE tenant = :'low_id' AND tags @> '{tag1}';
SELECT * FROM pg_temp.compare(:'low', :'high', :'low_id', :'high_id');
VACUUM document;
SELECT * FROM pg_temp.compare(:'low', :'high', :'low_id', :'high_id');

-- Nothing goes without what needs it.
\set SHOW_CONTEXT never
DROP EXTENSION btree_gin;
DROP EXTENSION scru64_gin;
DROP TABLE document;
DROP EXTENSION scru64_gin;

\c :original
DROP DATABASE scru64_regression_gin;
DROP ROLE regress_gin_owner;
