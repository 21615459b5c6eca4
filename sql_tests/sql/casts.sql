--
-- Casts.
--
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
SET IntervalStyle = 'postgres';

--
-- What there is, and how strong. Context: a is assignment, e explicit, i would
-- be implicit. Method: b is binary-coercible, f a function, i text input and
-- output.
--
SELECT castsource::regtype AS source, casttarget::regtype AS target,
	   castcontext, castmethod, nullif(castfunc, 0)::regprocedure AS function
FROM pg_cast
WHERE 'scru64'::regtype IN (castsource, casttarget)
ORDER BY castsource::regtype::text COLLATE "C", casttarget::regtype::text COLLATE "C";

--
-- bigint
--
SELECT number, number::scru64 AS id, number::scru64::bigint = number AS same
FROM (VALUES (0::bigint), (1), (109959589539758421), (4738381338321616895))
	 AS v (number);
SELECT (-1)::bigint::scru64;
SELECT number, e.code, e.message, e.detail, e.hint
FROM (VALUES
	((-1)::bigint),
	((36::numeric ^ 12)::bigint),
	(4738381338321616896),
	(9223372036854775807),
	(-9223372036854775808),
	(-4738381338321616895)
) AS v (number), test.error_of(format('SELECT %L::bigint::scru64', number)) AS e;
SELECT NULL::bigint::scru64 IS NULL AS null_to_scru64,
	   NULL::scru64::bigint IS NULL AS null_to_bigint;

--
-- text, varchar, character
--
SELECT '0u2pf62ji4b9'::text::scru64, '0U2PF62JI4B9'::varchar::scru64,
	   '0u2pf62ji4b9'::scru64::text, '0u2pf62ji4b9'::scru64::varchar;
SELECT pg_typeof('0u2pf62ji4b9'::scru64::text), pg_typeof('0u2pf62ji4b9'::scru64::varchar);
-- varchar(n) and char(n) cut an ID as they cut a text.
SELECT '0u2pf62ji4b9'::scru64::varchar(5), '0u2pf62ji4b9'::scru64::char(3);
SELECT '0u2pf62ji4b9'::scru64::varchar(4);
-- A character that is longer is padded, and no ID; as text it has lost the padding.
SELECT '0u2pf62ji4b9'::char(12)::scru64, '0u2pf62ji4b9'::char(14)::text::scru64;
SELECT type, e.code, e.message, e.detail
FROM (VALUES ('text'), ('varchar'), ('char(12)'), ('char(14)')) AS v (type),
	 test.error_of(format('SELECT ''0u2pf62ji4b''::%s::scru64', type)) AS e;

--
-- bytea
--
SELECT '0u2pf62ji4b9'::scru64::bytea, '\x0186a7aa022a4155'::bytea::scru64;
SELECT count(*) FILTER (WHERE id::bytea <> int8send(id::bigint)) AS wrong_bytes,
	   count(*) FILTER (WHERE id::bytea::scru64 <> id) AS wrong_ids
FROM generate_series(1, 10000) AS i,
	 LATERAL (SELECT ((hashint8extended(i, 0) & 9223372036854775807)
					  % 4738381338321616896)::scru64) AS v (id);
SELECT bytes, e.code, e.message, e.detail, e.hint
FROM (VALUES
	('\x'::bytea),
	('\x0186a7aa022a41'),
	('\x0186a7aa022a415500'),
	('0u2pf62ji4b9'::bytea),
	(int8send(-1)),
	(int8send(4738381338321616896))
) AS v (bytes), test.error_of(format('SELECT %L::bytea::scru64', bytes)) AS e;
-- In a table, bytes have a short header or lie outside the row.
CREATE TEMP TABLE bytes (id integer, b bytea);
ALTER TABLE bytes ALTER b SET STORAGE EXTERNAL;
INSERT INTO bytes VALUES (1, '\x0186a7aa022a4155'), (2, convert_to(repeat('0', 10000), 'SQL_ASCII'));
SELECT b::scru64 FROM bytes WHERE id = 1;
SELECT b::scru64 FROM bytes WHERE id = 2;

--
-- Assignment: an INSERT of a text, varchar or character value or parameter just works,
-- and so does one of an ID into a bigint column.
--
CREATE TEMP TABLE item (id scru64, note text);
INSERT INTO item VALUES ('0u2pf62ji4b9', 'literal');
INSERT INTO item SELECT '0u2pf62ji4ba'::text, 'text';
INSERT INTO item SELECT '0u2pf62ji4bb'::varchar, 'varchar';
INSERT INTO item SELECT '0U2PF62JI4BI'::char(12), 'character';
INSERT INTO item VALUES (left('0U2PF62JI4BC and more', 12), 'text function');
INSERT INTO item VALUES (109959589539758425::scru64, 'bigint');
PREPARE insert_text (text, text) AS INSERT INTO item VALUES ($1, $2);
EXECUTE insert_text ('0u2pf62ji4be', 'text parameter');
PREPARE insert_varchar (varchar, text) AS INSERT INTO item VALUES ($1, $2);
EXECUTE insert_varchar ('0u2pf62ji4bf', 'varchar parameter');
PREPARE insert_bigint (bigint, text) AS INSERT INTO item VALUES ($1::scru64, $2);
EXECUTE insert_bigint (109959589539758428, 'bigint parameter');
PREPARE insert_unknown AS INSERT INTO item VALUES ($1, $2);
EXECUTE insert_unknown ('0u2pf62ji4bh', 'parameter of unknown type');
UPDATE item SET id = '0u2pf62ji4bz'::text WHERE note = 'literal';
SELECT * FROM item ORDER BY id;
EXECUTE insert_text ('0u2pf62ji4b', 'bad text');
EXECUTE insert_bigint (-1, 'bad bigint');
DEALLOCATE ALL;

CREATE TEMP TABLE others (t text, v varchar, c char(12), n bigint);
INSERT INTO others SELECT id, id, id, id FROM item WHERE note = 'bigint';
SELECT * FROM others;

--
-- A number is no ID unless the statement says so: what still generates numbers gets an
-- error, and no ID of another time.
--
CREATE TEMP SEQUENCE numbers;
CREATE TEMP TABLE numbered (n bigint);
CREATE TEMP TABLE ranged (id scru64) PARTITION BY RANGE (id);
INSERT INTO item VALUES (nextval('numbers'), 'a sequence');
SELECT statement, e.code, e.message, e.hint
FROM (VALUES
	('INSERT INTO item VALUES (109959589539758425)'),
	('INSERT INTO item VALUES (1)'),
	('INSERT INTO item SELECT n FROM numbered'),
	('UPDATE item SET id = n FROM numbered'),
	('MERGE INTO item USING numbered ON false WHEN NOT MATCHED THEN INSERT (id) VALUES (n)'),
	('PREPARE insert_number (bigint) AS INSERT INTO item VALUES ($1)'),
	('ALTER TABLE item ALTER id SET DEFAULT nextval(''numbers'')'),
	('ALTER TABLE numbered ALTER n TYPE scru64'),
	('CREATE TEMP TABLE made (n bigint, id scru64 GENERATED ALWAYS AS (n) STORED)'),
	('CREATE TEMP TABLE part PARTITION OF ranged FOR VALUES FROM (1) TO (2)'),
	('CREATE FUNCTION pg_temp.made() RETURNS scru64 LANGUAGE sql AS ''SELECT 1::bigint'''),
	('CREATE TEMP TABLE made (ids scru64[]); INSERT INTO made VALUES (ARRAY[1::bigint])'),
	('CREATE TEMP TABLE made (ids scru64[]); UPDATE made SET ids[1] = 1::bigint')
) AS v (statement),
	 test.error_of(statement) AS e;

-- PL/pgSQL converts through text where no cast is for assignment: 12 digits are the text
-- of an ID, and other numbers of none.
SELECT number, e.code, e.message, e.hint
FROM (VALUES ('1::bigint'), ('nextval(''numbers'')'), ('99999999999'), ('109959589539758425'), ('1000000000000')) AS v (number),
	 test.error_of(format('DO $$ DECLARE id scru64; BEGIN id := %s; END $$', number)) AS e;
DO $$
DECLARE
	id scru64;
	n bigint;
BEGIN
	id := 100000000000;
	RAISE NOTICE '% of %', id, id::timestamptz;
	-- the other cast is for assignment: the number is the ID's
	n := id;
	RAISE NOTICE '%', n;
	id := 100000000000::scru64;
	RAISE NOTICE '% of %', id, id::timestamptz;
END
$$;

--
-- Nothing is implicit: no comparison, arithmetic or function call finds its
-- way through a cast.
--
SELECT expression, e.code, e.message
FROM (VALUES
	('id = ''0u2pf62ji4b9''::text'),
	('''0u2pf62ji4b9''::text = id'),
	('id = ''0u2pf62ji4b9''::varchar'),
	('id = ''0u2pf62ji4b9''::char(12)'),
	('id = 1::bigint'),
	('id = 1'),
	('id < 1::bigint'),
	('id = ''\x00''::bytea'),
	('id + 1'),
	('-id'),
	('length(id)'),
	('abs(id)'),
	('to_hex(id)'),
	('sum(id)'),
	('scru64_node_ctr(1::bigint)'),
	('coalesce(id, 1::bigint)'),
	('id::integer'),
	('1::scru64'),
	('1.0::scru64'),
	('true::scru64'),
	('localtimestamp::scru64'),
	('current_date::scru64'),
	('gen_random_uuid()::scru64')
) AS v (expression),
	 test.error_of(format('SELECT %s FROM item', expression)) AS e;
-- A literal is neither: it takes the other side's type.
SELECT note FROM item WHERE id = '0U2PF62JI4BA';

INSERT INTO item VALUES ('\x0186a7aa022a4155'::bytea, 'bytea');

--
-- Arrays
--
SELECT ARRAY[0, 109959589539758421]::bigint[]::scru64[] AS from_bigint,
	   ARRAY['000000000000', '0U2PF62JI4B9']::text[]::scru64[] AS from_text,
	   ARRAY['000000000000', '0U2PF62JI4B9']::varchar[]::scru64[] AS from_varchar,
	   '{000000000000,0u2pf62ji4b9}'::scru64[]::bigint[] AS to_bigint,
	   '{000000000000,0u2pf62ji4b9}'::scru64[]::text[] AS to_text,
	   '{000000000000,0u2pf62ji4b9}'::scru64[]::bytea[] AS to_bytea;
SELECT ARRAY[0, -1]::bigint[]::scru64[];
SELECT ARRAY['x']::text[]::scru64[];

--
-- JSON: twelve characters, which no reader rounds.
--
SELECT to_json(id), to_jsonb(id), json_build_object('id', id), row_to_json(item),
	   json_typeof(to_json(id)), jsonb_typeof(to_jsonb(id))
FROM item WHERE note = 'bigint';
SELECT json_agg(id ORDER BY id) AS agg, to_json(array_agg(id ORDER BY id)) AS array
FROM item WHERE note LIKE '%text';
SELECT id, note
FROM json_to_record('{"id": "0u2pf62ji4b9", "note": "from JSON"}')
	 AS r (id scru64, note text);
SELECT id FROM json_populate_record(NULL::item, '{"id": 109959589539758421}');

--
-- timestamptz: the time of an ID, and the smallest ID of a time.
--
SELECT time, time::scru64 AS id, time::scru64 = scru64_min(time) AS smallest,
	   time::scru64::timestamptz AS its_time
FROM (VALUES (timestamptz '2026-01-31 00:00:00+00'), ('2023-03-04 11:04:46.08+00'),
			 ('2023-03-04 11:04:46.080001+00'), ('-infinity'), ('1969-12-31 00:00:00+00'), (NULL))
	 AS v (time);
SELECT ARRAY[timestamptz '2026-01-31 00:00:00+00', NULL]::scru64[];
-- It is no new ID, so it is not stored by mistake.
CREATE TEMP TABLE bound (id scru64);
INSERT INTO bound VALUES (timestamptz '2026-01-31 00:00:00+00');
INSERT INTO bound VALUES (CAST (timestamptz '2026-01-31 00:00:00+00' AS scru64)) RETURNING id;

--
-- A domain is cast as its base type.
--
CREATE DOMAIN pg_temp.even_id AS scru64 CHECK (value::bigint % 2 = 0);
SELECT 2::bigint::scru64::pg_temp.even_id, '000000000002'::text::pg_temp.even_id,
	   '000000000002'::pg_temp.even_id::bigint;
SELECT '000000000001'::text::pg_temp.even_id;

--
-- Changing a column's type: to bigint, no row is rewritten.
--
CREATE TABLE scru64_altered (id scru64 PRIMARY KEY, other scru64);
INSERT INTO scru64_altered
	SELECT i::scru64, (36::numeric ^ 12 - i)::bigint::scru64
	FROM generate_series(1::bigint, 1000) AS i;
SELECT pg_relation_filenode('scru64_altered') AS before \gset
ALTER TABLE scru64_altered ALTER id TYPE bigint, ALTER other TYPE bigint;
SELECT pg_relation_filenode('scru64_altered') = :before AS is_same_file;
SELECT count(*), min(id), max(id), min(other), max(other) FROM scru64_altered;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM scru64_altered WHERE id = 500;
SELECT * FROM scru64_altered WHERE id = 500;
RESET enable_seqscan;
RESET enable_bitmapscan;

-- Back, each value is checked.
ALTER TABLE scru64_altered ALTER id TYPE scru64 USING id::scru64;
SELECT count(*), min(id), max(id) FROM scru64_altered;
UPDATE scru64_altered SET other = -1 WHERE id = '000000000001';
ALTER TABLE scru64_altered ALTER other TYPE scru64 USING other::scru64;
SELECT other FROM scru64_altered WHERE id = '000000000001';

-- From text and back.
ALTER TABLE scru64_altered ALTER id TYPE text;
SELECT min(id COLLATE "C"), max(id COLLATE "C") FROM scru64_altered;
ALTER TABLE scru64_altered ALTER id TYPE scru64;
SELECT min(id), max(id) FROM scru64_altered;
-- From character; a longer one is padded.
ALTER TABLE scru64_altered ALTER id TYPE char(12);
ALTER TABLE scru64_altered ALTER id TYPE scru64;
SELECT min(id), max(id) FROM scru64_altered;
ALTER TABLE scru64_altered ALTER id TYPE char(14);
ALTER TABLE scru64_altered ALTER id TYPE scru64;
ALTER TABLE scru64_altered ALTER id TYPE scru64 USING id::text::scru64;
SELECT min(id), max(id) FROM scru64_altered;
DROP TABLE scru64_altered;
