--
-- COPY, and all else whose expressions are planned alone: there a support function
-- replaces scru64_generate(). (t/generate/copy shows what COPY writes.)
--
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_scru64_user;
RESET client_min_messages;
CREATE ROLE regress_scru64_user;
SET scru64.node_spec = '0x60/8';

-- Rows, different IDs, and rows whose ID is not greater than that of the row before
CREATE FUNCTION scru64_rows(query text, OUT total bigint, OUT different bigint, OUT disorder bigint)
LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE id <= before)
		FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before FROM (%s) AS q (id, n)) AS o', query)
	INTO total, different, disorder;
END
$$;

--
-- COPY: a default, a domain's, a partitioned table, and a trigger that generates
--
CREATE DOMAIN scru64_made AS scru64 DEFAULT scru64_generate() CHECK (VALUE > '0u2pf62ji4b9');
CREATE TABLE scru64_copied (
	id scru64 DEFAULT scru64_generate(),
	made scru64_made,
	cased scru64 DEFAULT CASE 1 WHEN 1 THEN scru64_generate() END,
	triggered scru64,
	n integer
) PARTITION BY RANGE (n);
CREATE TABLE scru64_copied_low PARTITION OF scru64_copied FOR VALUES FROM (1) TO (3);
CREATE TABLE scru64_copied_high PARTITION OF scru64_copied FOR VALUES FROM (3) TO (6);
COPY scru64_copied (n) FROM stdin;
1
2
3
4
5
\.
SELECT c.* FROM unnest(ARRAY['id', 'made', 'cased']) AS name, scru64_rows(format('SELECT %I, n FROM scru64_copied', name)) AS c;
SELECT count(DISTINCT id) FROM (SELECT unnest(ARRAY[id, made, cased]) AS id FROM scru64_copied) AS i;
CREATE FUNCTION scru64_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.triggered := scru64_generate(); RETURN NEW; END';
CREATE TRIGGER made BEFORE INSERT ON scru64_copied_high FOR EACH ROW EXECUTE FUNCTION scru64_trigger();
TRUNCATE scru64_copied;
COPY scru64_copied (n) FROM stdin;
3
4
\.
SELECT * FROM scru64_rows('SELECT triggered, n FROM scru64_copied');
-- WHERE with times: COPY executes what replaces these comparisons, and looks up no function.
COPY scru64_copied (id, n) FROM stdin WHERE id >= timestamptz '2026-01-01' AND now() > id;
0u2pf62ji4b9	5
0w6gzvagxxg4	5
zzzzzzzzzzzz	5
\.
SELECT id FROM scru64_copied WHERE n = 5;

--
-- A column that is added has an ID for each row, also of a domain, and so has a changed one
--
CREATE TABLE scru64_old AS SELECT n, '0u2pf62ji4b9'::scru64 AS old FROM generate_series(1, 100) AS n;
ALTER TABLE scru64_old ADD id scru64 DEFAULT scru64_generate();
ALTER TABLE scru64_old ADD made scru64_made DEFAULT scru64_generate();
ALTER TABLE scru64_old ALTER old TYPE scru64 USING scru64_generate();
SELECT c.* FROM unnest(ARRAY['id', 'made', 'old']) AS name, scru64_rows(format('SELECT %I, n FROM scru64_old', name)) AS c;
-- As with nextval(): minor versions before 2025 leave such a column null.
CREATE SEQUENCE scru64_numbers;
CREATE DOMAIN scru64_number AS bigint DEFAULT nextval('scru64_numbers');
ALTER TABLE scru64_old ADD by_domain scru64_made, ADD number scru64_number;
SELECT count(DISTINCT by_domain) = count(DISTINCT number) AS same FROM scru64_old;
DROP TABLE scru64_old;
DROP DOMAIN scru64_number;
DROP SEQUENCE scru64_numbers;

--
-- Arguments of EXECUTE and CALL, bounds of partitions
--
CREATE TABLE scru64_given (id scru64, n serial);
PREPARE scru64_give AS INSERT INTO scru64_given VALUES ($1);
CREATE PROCEDURE scru64_give(id scru64, again scru64 DEFAULT scru64_generate()) LANGUAGE sql AS 'INSERT INTO scru64_given VALUES (id), (again)';
EXECUTE scru64_give(scru64_generate());
EXECUTE scru64_give(scru64_generate());
CALL scru64_give(scru64_generate());
SELECT * FROM scru64_rows('SELECT id, n FROM scru64_given');
DEALLOCATE scru64_give;
DROP PROCEDURE scru64_give;
CREATE TABLE scru64_parts (id scru64) PARTITION BY RANGE (id);
CREATE TABLE scru64_part PARTITION OF scru64_parts FOR VALUES FROM (MINVALUE) TO (scru64_generate());
INSERT INTO scru64_parts VALUES ('0u2pf62ji4b9');
DROP TABLE scru64_parts;

--
-- It stays volatile to all else.
--
SELECT statement, code
FROM unnest(ARRAY[
	'CREATE INDEX ON scru64_given ((scru64_generate()))',
	'CREATE INDEX ON scru64_given (n) WHERE id < scru64_generate()',
	'CREATE TABLE scru64_wrong (id scru64 GENERATED ALWAYS AS (scru64_generate()) STORED)',
	'CREATE TABLE scru64_wrong (id scru64) PARTITION BY RANGE ((scru64_generate()))'
]) AS statement, test.error_of(statement);

--
-- No ID is generated for an estimate, and no node is needed.
--
ANALYZE scru64_given;
CREATE FUNCTION scru64_is_planned(condition text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE 'EXPLAIN SELECT FROM scru64_given WHERE ' || condition;
	RETURN true;
END
$$;
SELECT condition, scru64_is_planned(condition)
FROM unnest(ARRAY[
	'id = scru64_generate()',
	'id > scru64_generate()',
	'id BETWEEN scru64_generate() AND scru64_generate()',
	'id IN (scru64_generate(), scru64_generate())',
	'id > ANY (ARRAY[scru64_generate(), scru64_generate()])',
	'id > COALESCE(scru64_generate(), ''0u2pf62ji4b9'')',
	'CASE 1 WHEN n THEN id < scru64_generate() END LIMIT scru64_generate()::bigint'
]) AS condition
CROSS JOIN set_config('scru64.node_spec', '', true);
DROP FUNCTION scru64_is_planned;

--
-- A REVOKE holds, of either function.
--
GRANT INSERT ON scru64_copied TO regress_scru64_user;
CREATE FUNCTION scru64_revoke(revoked text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE 'REVOKE EXECUTE ON FUNCTION ' || revoked || ' FROM PUBLIC';
END
$$;
BEGIN;
SELECT scru64_revoke('scru64_generate_in_copy(internal)');
SET LOCAL ROLE regress_scru64_user;
COPY scru64_copied (n) FROM stdin;
1
2
\.
RESET ROLE;
SELECT * FROM scru64_rows('SELECT id, n FROM scru64_copied_low');
ROLLBACK;
GRANT pg_read_server_files TO regress_scru64_user;
BEGIN;
SELECT scru64_revoke('scru64_generate()');
SET LOCAL ROLE regress_scru64_user;
SELECT code, message FROM test.error_of('COPY scru64_copied (n) FROM ''/dev/null''');
ROLLBACK;
-- A session plans the CHECK of a domain once for all its roles, here by a COPY of a superuser.
CREATE FUNCTION scru64_later(id scru64) RETURNS boolean LANGUAGE sql VOLATILE RETURN id IS NOT NULL;
CREATE DOMAIN scru64_checked AS integer CHECK (scru64_later(scru64_generate()));
CREATE TABLE scru64_of_domain (n scru64_checked);
GRANT INSERT ON scru64_of_domain TO regress_scru64_user;
BEGIN;
SELECT scru64_revoke('scru64_generate_in_copy(internal)');
COPY scru64_of_domain FROM stdin;
1
\.
SET LOCAL ROLE regress_scru64_user;
SELECT code, message FROM test.error_of('INSERT INTO scru64_of_domain VALUES (2)');
ROLLBACK;
DROP TABLE scru64_of_domain;
DROP DOMAIN scru64_checked;
CREATE DOMAIN scru64_checked AS integer CHECK (scru64_later(scru64_generate()));
CREATE TABLE scru64_of_domain (n scru64_checked);
GRANT INSERT ON scru64_of_domain TO regress_scru64_user;
BEGIN;
SELECT scru64_revoke('scru64_generate()');
COPY scru64_of_domain FROM stdin;
1
\.
SET LOCAL ROLE regress_scru64_user;
SELECT code, message FROM test.error_of('INSERT INTO scru64_of_domain VALUES (2)');
ROLLBACK;
DROP TABLE scru64_of_domain;
DROP DOMAIN scru64_checked;
DROP FUNCTION scru64_later;
-- Without USAGE on the schema
BEGIN;
GRANT SELECT ON scru64_given TO regress_scru64_user;
REVOKE USAGE ON SCHEMA pg_catalog FROM PUBLIC;
SET LOCAL ROLE regress_scru64_user;
SELECT code, message FROM test.error_of('COPY scru64_copied (n) FROM ''/dev/null''');
SELECT code, message FROM test.error_of('EXPLAIN SELECT FROM scru64_given WHERE id > scru64_generate()');
ROLLBACK;

--
-- SQL does not get at the functions; minors of PostgreSQL differ in how they say so.
--
SELECT statement, code IN ('0A000', '42846', '42883') AS is_refused
FROM unnest(ARRAY[
	'SELECT scru64_generate_in_copy(NULL)',
	'SELECT scru64_generate_in_copy(NULL::internal)',
	'SELECT scru64_generate_in_copy(''0'')',
	'SELECT scru64_generate_support(NULL)'
]) AS statement, test.error_of(statement);

DROP TABLE scru64_copied, scru64_given;
DROP DOMAIN scru64_made;
DROP FUNCTION scru64_rows, scru64_trigger, scru64_revoke;
DROP ROLE regress_scru64_user;
