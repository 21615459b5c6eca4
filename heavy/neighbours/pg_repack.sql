-- pg_repack.sql
--		A table is written anew by pg_repack, which makes its indexes with a search_path of
--		pg_catalog, pg_temp and public.

CREATE EXTENSION pg_repack;
CREATE SCHEMA app;
SET search_path = app;
\ir check.sql

CREATE TABLE item (id scru64 DEFAULT scru64_generate() PRIMARY KEY, parent scru64, n integer);
CREATE INDEX ON item (n) WHERE parent IS DISTINCT FROM '0u2r85hm2pt3';
CREATE INDEX ON item (n) WHERE CASE parent WHEN id THEN false ELSE true END;
CREATE INDEX ON item (NULLIF(parent, id));
CREATE INDEX ON item USING brin (id) WHERE id >= timestamptz '2026-01-01 00:00+00';
INSERT INTO item SELECT id, lag(id) OVER (ORDER BY id), 1 FROM scru64_generate(10000) AS id;
DELETE FROM item WHERE scru64_node_ctr(id) % 2 = 0;
CREATE VIEW state AS
SELECT (SELECT md5(string_agg(item::text, ' ' ORDER BY id)) FROM item) AS rows,
	(SELECT string_agg(pg_get_indexdef(indexrelid), ' ' ORDER BY indexrelid::regclass::text)
	 FROM pg_index WHERE indrelid = 'item'::regclass AND indisvalid) AS indexes;
SELECT *, pg_relation_filenode('item') AS file FROM state \gset
SELECT setting AS bindir FROM pg_config WHERE name = 'BINDIR' \gset
\setenv BINDIR :bindir
\setenv PGDATABASE :DBNAME
\! "$BINDIR/pg_repack" --table=app.item
SELECT "check"('the table is written anew', pg_relation_filenode('item') <> :file);
SELECT "check"('its rows and indexes are what they were', rows = :'rows' AND indexes = :'indexes') FROM state;
INSERT INTO item (n) VALUES (2);
SELECT "check"('it goes on', count(*) = 1) FROM item WHERE n = 2 AND id = (SELECT max(id) FROM item);
