-- heavy/bench/adhoc.sql
--		7. Queries as people type them and simple drivers send them: each parsed,
--		planned and executed by itself, by the simple protocol.
--
-- Measured is the processor time of the server's process, as the kernel keeps it:
-- not the client's, nor the way to it. The tables have the same rows and one index
-- each, and the IDs are not printed: nothing but the type of the index differs.

SET search_path = bench, public;

CREATE TABLE adhoc_scru64 AS
	SELECT scru64_from_parts(now() - n * interval '1 year' / (:rows / 2), n & 65535) AS id, n AS payload
	FROM generate_series(:rows / 2, 0, -1) AS n;
CREATE TABLE adhoc_bigint AS SELECT id::bigint AS id, payload FROM adhoc_scru64;
CREATE TABLE adhoc_timestamptz AS
	SELECT now() - n * interval '1 year' / (:rows / 2) AS id, n AS payload
	FROM generate_series(:rows / 2, 0, -1) AS n;
SELECT format('ALTER TABLE adhoc_%s ADD PRIMARY KEY (id)', type)
FROM unnest('{scru64,bigint,timestamptz}'::text[]) AS type
\gexec
VACUUM (ANALYZE, FREEZE);
CHECKPOINT;

CREATE TABLE adhoc (subject text, type text, query text);
INSERT INTO adhoc
SELECT s.subject, t.type, format(s.query, 'bench.adhoc_' || t.type, '%L')
FROM (VALUES
	('id = ''...''', '{scru64,bigint}', 'SELECT payload FROM %s WHERE id = %s'),
	('id >= now() - interval ''1 hour''', '{scru64,timestamptz}', 'SELECT payload FROM %s WHERE id >= now() - interval ''1 hour'''))
	AS s (subject, types, query), unnest(types::text[]) AS t (type);

-- The rows to ask for, the same of all
CREATE TABLE adhoc_ids AS
	SELECT row_number() OVER () AS place, id::text AS scru64, id::bigint::text AS bigint
	FROM (SELECT id FROM adhoc_scru64 ORDER BY hashint8(payload) LIMIT 1000) AS s;

CREATE PROCEDURE adhoc_begin() LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('bench.used', bench.used()::text, false);
END
$$;
CREATE PROCEDURE adhoc_end(subject text, contender text, round integer, queries bigint) LANGUAGE plpgsql AS $$
DECLARE
	us double precision = (bench.used() - current_setting('bench.used')::bigint) / 1000.0 / queries;
BEGIN
	-- round 0 warms up
	IF round > 0 THEN
		INSERT INTO bench.result (subject, contender, round, value, unit)
		VALUES (subject, contender, round, us, 'us');
	END IF;
END
$$;

-- psql sends each of these by itself. The contenders of a subject take turns, and one
-- has many short turns, so other work of the machine falls on all of them.
\o /dev/null
WITH turn AS (
	SELECT *, random() AS lot FROM generate_series(0, 10 * :rounds) AS round, adhoc
)
SELECT format(q.query, q.id)
FROM (
	SELECT round, subject, lot, 0 AS place, 'CALL bench.adhoc_begin()' AS query, NULL AS id FROM turn
	UNION ALL
	SELECT round, subject, lot, place, query, to_jsonb(i) ->> type FROM turn, adhoc_ids AS i
	UNION ALL
	SELECT round, subject, lot, 1001,
		   format('CALL bench.adhoc_end(%L, %L, %s, %s)', subject, type, round, (SELECT count(*) FROM adhoc_ids)), NULL
	FROM turn) AS q
ORDER BY round, subject, lot, place
\gexec
\o
