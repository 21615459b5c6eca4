-- heavy/bench/types.sql
--		3. Text out and in.  4. Lookups, scans, sorts, joins, indexes.
--
-- The same rows under three types: IDs as a node generates them; the bigints
-- inside them; uuids made of them by a hash, as random as any. Twice the
-- rounds for 4., where small differences are the question.

SET search_path = bench, public;

CREATE TABLE type_of (contender text PRIMARY KEY, type text, place integer);
INSERT INTO type_of VALUES ('scru64', 'scru64', 1), ('bigint', 'bigint', 2), ('uuid', 'uuid', 3);

CREATE TABLE rows_scru64 AS
	SELECT id, n AS payload FROM (SELECT scru64_generate() AS id, n FROM generate_series(1, :rows / 2) AS n) AS s;
CREATE TABLE rows_bigint AS SELECT id::bigint AS id, payload FROM rows_scru64;
CREATE TABLE rows_uuid AS SELECT md5(id::text)::uuid AS id, payload FROM rows_scru64;

-- The same in another order, to sort, join and build indexes from
SELECT format('CREATE TABLE mixed_%1$s AS SELECT * FROM rows_%1$s ORDER BY hashint8(payload)', type),
	   format('CREATE TABLE text_%1$s AS SELECT id::text COLLATE "C" AS id FROM rows_%1$s', type),
	   format('ALTER TABLE rows_%1$s ADD PRIMARY KEY (id)', type),
	   -- every 20th row, to be looked up
	   format('CREATE TABLE some_%1$s AS SELECT * FROM mixed_%1$s WHERE payload %% 20 = 0', type)
FROM type_of
\gexec
VACUUM (ANALYZE, FREEZE);
CHECKPOINT;

-- Text: over a scan without the conversion
INSERT INTO contender (subject, contender, statement, rows)
SELECT s.subject, t.contender, format(s.statement, t.type), :rows / 2
FROM type_of AS t, (VALUES
	('text out', 'SELECT count(id::text) FROM rows_%s'),
	('text in', 'SELECT count(id::%1$s) FROM text_%1$s')) AS s (subject, statement)
ORDER BY t.place;
INSERT INTO contender (subject, contender, statement, rows) VALUES
	('text out', 'scan', 'SELECT count(id) FROM rows_bigint', :rows / 2),
	('text in', 'scan', 'SELECT count(id) FROM text_scru64', :rows / 2);

CALL measure('text out', :rounds, 'scan');
CALL measure('text in', :rounds, 'scan');

INSERT INTO contender (subject, contender, statement)
SELECT 'COPY out, text', contender, format('COPY rows_%s TO ''/dev/null''', type)
FROM type_of ORDER BY place;

CALL measure('COPY out, text', :rounds);

-- A PL/pgSQL loop of point lookups would measure PL/pgSQL; a nested loop is
-- nothing but lookups.
SET max_parallel_workers_per_gather = 0;
SET work_mem = '256MB';

INSERT INTO contender (subject, contender, before, statement)
SELECT s.subject, t.contender, format(s.before, t.type), format(s.statement, t.type)
FROM type_of AS t, (VALUES
	('lookups by primary key',
	 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = on',
	 'SELECT count(r.payload) FROM some_%1$s AS s JOIN rows_%1$s AS r ON r.id = s.id'),
	('range scan, half of the table',
	 'RESET enable_hashjoin; RESET enable_mergejoin; SET enable_seqscan = off; SET enable_bitmapscan = off',
	 'SELECT count(payload) FROM rows_%1$s WHERE id >= (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM (SELECT id FROM some_%1$s LIMIT 1000) AS l)'),
	('sort',
	 'RESET enable_seqscan; RESET enable_bitmapscan',
	 'SELECT count(*) FROM (SELECT id FROM mixed_%1$s ORDER BY id OFFSET 0) AS s'),
	('hash join',
	 NULL,
	 'SELECT count(r.payload) FROM rows_%1$s AS r JOIN mixed_%1$s AS m ON m.id = r.id'),
	('CREATE INDEX',
	 'DROP INDEX IF EXISTS mixed_%1$s_id',
	 'CREATE INDEX mixed_%1$s_id ON mixed_%1$s (id)')) AS s (subject, before, statement)
ORDER BY t.place;

CALL measure('lookups by primary key', 2 * :rounds);
CALL measure('range scan, half of the table', 2 * :rounds);
CALL measure('sort', 2 * :rounds);
SET enable_mergejoin = off; SET enable_nestloop = off;
CALL measure('hash join', 2 * :rounds);
RESET enable_mergejoin; RESET enable_nestloop;
CALL measure('CREATE INDEX', 2 * :rounds);

INSERT INTO result (subject, contender, round, value, unit)
SELECT 'size of that index', contender, 1, pg_table_size(format('mixed_%s_id', type)::regclass) / 1048576.0, 'MB'
FROM type_of ORDER BY place;
