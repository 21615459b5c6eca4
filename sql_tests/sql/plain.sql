--
-- plain/scru64.sql, SCRU64 IDs without an extension: its text, times, errors and node specs are
-- those of the extension.
--
\getenv source PG_ABS_SRCDIR
\set file :source '/../plain/scru64.sql'
CREATE ROLE regress_plain_owner;
CREATE ROLE regress_plain_user;
SELECT format('GRANT CREATE ON DATABASE %I TO regress_plain_owner', current_database()) \gexec
SET ROLE regress_plain_owner;
CREATE SCHEMA plain_test;
SET search_path = plain_test, public;
\set ECHO none
SET client_min_messages = warning;
\i :file
RESET client_min_messages;
\set ECHO all

-- No node yet
SELECT scru64_plain.node_spec();
SELECT * FROM test.error_of('SELECT scru64_plain.generate()');

--
-- The same text and the same times, for the values the specification names, the ends, and
-- 100,000 others
--
CREATE TEMP TABLE value AS
SELECT id FROM unnest('{0,1,16777215,16777216,109959589539758421,110770749696212993,4738381338304839679,4738381338304839680,4738381338321616894,4738381338321616895}'::bigint[]) AS id
UNION ALL
SELECT (random() * 4738381338321616895)::bigint % 4738381338321616896 FROM generate_series(1, 50000)
UNION ALL
SELECT (120000000000000000 * random())::bigint FROM generate_series(1, 50000);
SELECT count(*),
	   count(*) FILTER (WHERE scru64_plain.text(id) = id::scru64::text) AS text,
	   count(*) FILTER (WHERE scru64_plain.id(id::scru64::text) = id) AS id,
	   count(*) FILTER (WHERE scru64_plain.id(upper(id::scru64::text)) = id) AS upper_case,
	   count(*) FILTER (WHERE scru64_plain.timestamp(id) = id::scru64::timestamptz) AS time,
	   count(*) FILTER (WHERE scru64_plain.min(ts) = scru64_min(ts)::bigint) AS min
FROM value, LATERAL (SELECT id::scru64::timestamptz + (id % 3 - 1) * interval '1 microsecond') AS t (ts);
SELECT ts, scru64_plain.min(ts) = scru64_min(ts)::bigint AS same
FROM unnest('{-infinity,infinity,1969-12-31 23:59:59.999999+00,1970-01-01 00:00+00,1970-01-01 00:00:00.000001+00,4261-02-27 06:08:58.88+00,4261-02-27 06:08:58.880001+00,290000-01-01 00:00+00}'::timestamptz[]) AS ts;
SELECT scru64_plain.text(NULL), scru64_plain.id(NULL), scru64_plain.timestamp(NULL), scru64_plain.min(NULL);

-- A time zone's days have 23 and 25 hours, too.
SET TimeZone = 'America/New_York';
SELECT count(*) FROM value WHERE scru64_plain.timestamp(id) <> id::scru64::timestamptz;
RESET TimeZone;

-- The same errors
SELECT quote_literal(input) AS input, p.code, p.message, p.detail,
	   (p.code, p.message, p.detail) = (e.code, e.message, e.detail) AS same
FROM unnest(ARRAY['', '0u2pf62ji4b', '0u2pf62ji4b9a', ' 0u2pf62ji4b', '-0u2pf62ji4b', E'0u2pf62ji4b\n', E'0u2pf62ji4b9\n', '0u2pf62ji4_9', '0u2pf62jı4b9', E'\u212A0u2pf62ji4b']) AS input,
	 test.error_of(format('SELECT scru64_plain.id(%L)', input)) AS p,
	 test.error_of(format('SELECT %L::scru64', input)) AS e;
SELECT input, p.code, p.message, p.detail, (p.code, p.message, p.detail) = (e.code, e.message, e.detail) AS same
FROM unnest('{-1,4738381338321616896,9223372036854775807,-9223372036854775808}'::bigint[]) AS input,
	 test.error_of(format('SELECT scru64_plain.text(%L)', input)) AS p,
	 test.error_of(format('SELECT %L::bigint::scru64', input)) AS e;

--
-- Node specs: what the extension takes, and no other
--
CREATE FUNCTION pg_temp.try_spec(spec text, OUT code text, OUT detail text, OUT error_as_extension boolean, OUT node_as_extension boolean)
LANGUAGE plpgsql AS $$
DECLARE
	plain record;
	extension record;
BEGIN
	SELECT * INTO plain FROM test.error_of(format('SELECT scru64_plain.set_node(%L)', spec));
	SELECT * INTO extension FROM test.error_of(format('SELECT scru64_parse_node_spec(%L)', spec));
	code := plain.code;
	detail := plain.detail;
	error_as_extension := plain IS NOT DISTINCT FROM extension;
	IF code IS NULL THEN
		EXECUTE 'SELECT scru64_plain.node() = (node_id_size << 24) + node_id FROM scru64_parse_node_spec($1)'
			INTO node_as_extension USING spec;
	END IF;
END
$$;
SELECT quote_literal(spec) AS spec, e.*
FROM unnest(ARRAY[
	'', '/', '42', '42/', '/8', '42/8', '042/8', '0/1', '1/1', '2/1', '255/8', '256/8',
	'42/0', '42/24', '42/08', '42/0008', '42/999', '-1/8', '+1/8', ' 42/8', '42/8 ', '42/8/8', '42/8a', E'42/8\n',
	'0x2a/8', '0X2A/8', '0xg/8', '0x/8', '0xffffff/23', '0x7fffff/23', '8388607/23', '8388608/23',
	'00000042/8', '000000042/8', '0x00002a/8', '0x000002a/8', '99999999/23', '٤٢/8',
	'0u2r85hm2pt3/16', '0U2R85HM2PT3/8', '0u2r85hm2pt3/24', '0u2r85hm2pt/8', '00000000002a/8', '0000009ix4pn/8'
]) AS spec, pg_temp.try_spec(spec) AS e;

--
-- IDs: in order, of the node, of the clock
--
SELECT scru64_plain.set_node('0x2a/8');
SELECT scru64_plain.node_spec();
CREATE TABLE plain (id bigint DEFAULT scru64_plain.generate() PRIMARY KEY, n integer);
SELECT clock_timestamp() AS begin \gset
INSERT INTO plain (n) SELECT n FROM generate_series(1, 100000) AS n;
SELECT count(DISTINCT id), bool_and(id > before) AS in_order, bool_and(id >> 16 & 255 = 42) AS of_the_node,
	   bool_and(scru64_plain.timestamp(id) BETWEEN :'begin'::timestamptz - interval '256 ms' AND clock_timestamp() + interval '10.5 seconds') AS of_the_clock
FROM (SELECT id, coalesce(lag(id) OVER (ORDER BY n), 0) AS before FROM plain) AS p;

-- Another node_id_size, the file run again: IDs go on in order.
SELECT max(id) AS last FROM plain \gset
SELECT scru64_plain.set_node('3/2');
SELECT scru64_plain.generate() AS next \gset
SELECT :next > :last AS in_order, :next >> 22 & 3 AS node_id;
\set ECHO none
SET client_min_messages = warning;
\i :file
RESET client_min_messages;
\set ECHO all
SELECT scru64_plain.generate() > :next AS in_order, scru64_plain.generate() >> 22 & 3 AS node_id;
-- a node of one bit of counter: two IDs a tick, the allowance is 39 ticks
SELECT scru64_plain.set_node('5/23');
SELECT count(DISTINCT id), bool_and(id >> 1 & 8388607 = 5) AS of_the_node
FROM (SELECT scru64_plain.generate() AS id FROM generate_series(1, 60)) AS g;

-- A previous ID: after its tick, or after the last ID
SELECT scru64_from_parts(now() + interval '8 seconds', 42 << 16) AS id \gset
SELECT scru64_plain.set_node(:'id' || '/8');
SELECT scru64_plain.generate() AS next \gset
SELECT scru64_plain.timestamp(:next) > :'id'::scru64::timestamptz AS after_it;
SELECT scru64_plain.set_node('0u2r85hm2pt3/8');
SELECT scru64_plain.generate() > :next AS after_the_last;

-- one that is ahead of the clock is refused, and changes nothing
SELECT code, message, detail FROM test.error_of($$SELECT scru64_plain.set_node('zzzzzzzzzzzz/8')$$);
SELECT scru64_plain.generate() >> 16 & 255 AS node_id, scru64_plain.generate() > :next AS in_order;
-- what is rolled back leaves the node, and IDs go on above its own
BEGIN;
SELECT scru64_plain.set_node('42/8');
SELECT max(scru64_plain.generate()) AS next FROM generate_series(1, 20000) \gset
ROLLBACK;
SELECT scru64_plain.generate() > :next AS in_order, scru64_plain.node_spec();

-- Nodes that overlap one after the other, in one transaction, and where each is rolled back
DO $$
DECLARE
	ids bigint[] := '{}';
BEGIN
	FOR i IN 1 .. 3 LOOP
		PERFORM scru64_plain.set_node('43/22');
		ids := ids || ARRAY(SELECT scru64_plain.generate() FROM generate_series(1, 3));
		PERFORM scru64_plain.set_node('21/21');
		ids := ids || ARRAY(SELECT scru64_plain.generate() FROM generate_series(1, 2));
		BEGIN
			PERFORM scru64_plain.set_node('43/22');
			ids := ids || ARRAY(SELECT scru64_plain.generate() FROM generate_series(1, 4));
			BEGIN
				PERFORM scru64_plain.set_node('21/21');
				ids := ids || ARRAY(SELECT scru64_plain.generate() FROM generate_series(1, 4));
				RAISE 'undo';
			EXCEPTION WHEN raise_exception THEN
				ids := ids || ARRAY(SELECT scru64_plain.generate() FROM generate_series(1, 4));
			END;
			RAISE 'undo';
		EXCEPTION WHEN raise_exception THEN
			ids := ids || ARRAY(SELECT scru64_plain.generate() FROM generate_series(1, 6));
		END;
	END LOOP;
	RAISE NOTICE '%', (SELECT format('%s IDs, %s different, %s out of order, of the node %s', count(*), count(DISTINCT id), count(*) FILTER (WHERE id < before), scru64_plain.node_spec())
		FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before FROM unnest(ids) WITH ORDINALITY AS i (id, n)) AS i);
END
$$;

--
-- To the extension, and back: no ID changes, and on the way back no table is rewritten
--
CREATE TEMP TABLE before AS SELECT id, n FROM plain;
ALTER TABLE plain ALTER COLUMN id DROP DEFAULT, ALTER COLUMN id TYPE scru64 USING id::scru64, ALTER COLUMN id SET DEFAULT scru64_generate();
SELECT count(*) AS same FROM plain JOIN before USING (n) WHERE plain.id::bigint = before.id AND plain.id::text = scru64_plain.text(before.id);
SELECT pg_relation_filenode('plain') AS filenode \gset
ALTER TABLE plain ALTER COLUMN id DROP DEFAULT, ALTER COLUMN id TYPE bigint, ALTER COLUMN id SET DEFAULT scru64_plain.generate();
SELECT pg_relation_filenode('plain') = :filenode AS same_file;
SELECT count(*) AS same FROM plain JOIN before USING (id, n);

-- 20 seconds ahead and more: refused, and nothing is left behind
DO $$BEGIN EXECUTE format('ALTER SEQUENCE scru64_plain.last RESTART %s', scru64_plain.min(now() + interval '1 hour')); END$$;
SELECT code, message, detail ~ '^The clock reads .*The last ID is of .*The next ID would be ahead by more than 20 seconds.$' AS detail, hint
FROM test.error_of('SELECT scru64_plain.generate()');
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory';

--
-- Times as bounds: of an index, of partitions
--
CREATE TABLE plain_log (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE plain_log_2025 PARTITION OF plain_log
	FOR VALUES FROM (scru64_plain.min('2025-01-01 00:00+00')) TO (scru64_plain.min('2026-01-01 00:00+00'));
CREATE TABLE plain_log_2026 PARTITION OF plain_log
	FOR VALUES FROM (scru64_plain.min('2026-01-01 00:00+00')) TO (scru64_plain.min('2027-01-01 00:00+00'));
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM plain_log WHERE id >= scru64_plain.min('2026-06-01 00:00+00');
RESET enable_seqscan;
RESET enable_bitmapscan;

--
-- Who may INSERT needs no privilege in the schema; nobody but the owner moves IDs.
--
CREATE TABLE other (id bigint DEFAULT scru64_plain.generate());
SELECT scru64_plain.set_node('43/8');
ALTER SEQUENCE scru64_plain.last RESTART;
GRANT USAGE ON SCHEMA plain_test TO regress_plain_user;
GRANT INSERT ON other TO regress_plain_user;
SET ROLE regress_plain_user;
INSERT INTO other DEFAULT VALUES;
SELECT code, message FROM unnest(ARRAY[
	$$SELECT scru64_plain.generate()$$,
	$$SELECT setval('scru64_plain.last', 1)$$,
	$$SELECT scru64_plain.set_node('1/8')$$]) AS s, test.error_of(s);
SET ROLE regress_plain_owner;
GRANT USAGE ON SCHEMA scru64_plain TO regress_plain_user;
SET ROLE regress_plain_user;
SELECT code, message FROM unnest(ARRAY[
	$$SELECT nextval('scru64_plain.last')$$,
	$$SELECT setval('scru64_plain.last', 1)$$,
	$$SELECT scru64_plain.set_node('1/8')$$]) AS s, test.error_of(s);
-- a schema of which PUBLIC may execute nothing: what the page has one grant
SET ROLE regress_plain_owner;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA scru64_plain FROM PUBLIC;
SET ROLE regress_plain_user;
SELECT code, message FROM unnest(ARRAY['INSERT INTO other DEFAULT VALUES', 'SELECT scru64_plain.min(now())']) AS s, test.error_of(s);
SET ROLE regress_plain_owner;
GRANT EXECUTE ON FUNCTION scru64_plain.generate() TO regress_plain_user;
REVOKE USAGE ON SCHEMA scru64_plain FROM regress_plain_user;
SET ROLE regress_plain_user;
INSERT INTO other DEFAULT VALUES;
SET ROLE regress_plain_owner;
GRANT USAGE ON SCHEMA scru64_plain TO regress_plain_user;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA scru64_plain TO regress_plain_user;
SET ROLE regress_plain_user;
SELECT scru64_plain.id(scru64_plain.text(scru64_plain.generate())) > scru64_plain.min(now() - interval '1 second') AS of_the_clock, scru64_plain.node_spec();
SELECT code, message FROM test.error_of($$SELECT scru64_plain.set_node('1/8')$$);
-- a schema that was renamed
SET ROLE regress_plain_owner;
ALTER SCHEMA scru64_plain RENAME TO plain_renamed;
-- the code depends on the version of PostgreSQL
SELECT code IN ('3F000', '42P01') AS is_gone FROM test.error_of('INSERT INTO other DEFAULT VALUES');
ALTER SCHEMA plain_renamed RENAME TO scru64_plain;
INSERT INTO other DEFAULT VALUES;
-- a schema of the caller's own, before pg_catalog
RESET ROLE;
CREATE SCHEMA plain_hostile AUTHORIZATION regress_plain_user;
SET ROLE regress_plain_user;
CREATE FUNCTION plain_hostile.shift(bigint, integer) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN RAISE 'as %', current_user; END$$;
CREATE OPERATOR plain_hostile.>> (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = plain_hostile.shift);
SET search_path = plain_hostile, pg_catalog;
SELECT scru64_plain.generate() >= scru64_plain.min(now() - interval '256 ms') AS of_the_clock;
SET search_path = plain_test, public;

--
-- Nothing is left where it cannot write
--
SET ROLE regress_plain_owner;
BEGIN READ ONLY;
SELECT code, message FROM test.error_of('SELECT scru64_plain.generate()');
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory';
COMMIT;

RESET ROLE;
RESET search_path;
DROP OWNED BY regress_plain_owner, regress_plain_user CASCADE;
DROP ROLE regress_plain_owner, regress_plain_user;
