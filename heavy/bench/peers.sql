-- heavy/bench/peers.sql
--		Other extensions that make IDs, beside scru64 and PostgreSQL's own: the cost of an ID
--		(as in ids.sql), INSERT ... SELECT (as in inserts.sql), and the size of its table and
--		index. Prints a table. The times are those of the processor, for machines that are
--		not quiet.

SET search_path = bench, public;
SET client_min_messages = warning;

-- Those that there are
SELECT format('CREATE EXTENSION %I', name)
FROM pg_available_extensions
WHERE name IN ('snowflake', 'pg_uuidv7', 'ulid')
\gexec

-- It needs a node, and takes the state of a sequence.
SET snowflake.node = 1;
CREATE SEQUENCE flakes;

CREATE TABLE peer AS
SELECT place, contender, type, call, NULL AS extension
FROM source
WHERE contender IN ('scru64', 'nextval', 'gen_random_uuid', 'uuidv7')
UNION ALL
SELECT 1000 + place, s.contender, s.type, s.call, e.extname || ' ' || e.extversion
FROM (VALUES
	(1, 'pgEdge snowflake', 'snowflake', 'bigint', 'snowflake.nextval(''bench.flakes'')'),
	(2, 'pg_uuidv7', 'pg_uuidv7', 'uuid', 'uuid_generate_v7()'),
	(3, 'pg-ulid', 'ulid', 'ulid', 'gen_ulid()')) AS s (place, contender, extension, type, call)
	JOIN pg_extension AS e ON e.extname = s.extension;

-- Many short rounds
INSERT INTO contender (subject, contender, statement, rows)
SELECT 'peers: one ID', contender,
	   format('SELECT count(%s) FROM (SELECT generate_series(1, %s) OFFSET 0) AS s', call, rows), rows
FROM (SELECT place, contender, call, CASE WHEN contender = 'scru64' THEN 4 ELSE 1 END * :ids / 5 AS rows
	  FROM peer
	  UNION ALL
	  SELECT 0, 'no-op', 'pg_backend_pid()', 4 * :ids / 5) AS s
ORDER BY place;

CALL measure('peers: one ID', 10 * :rounds, 'no-op', processor => true);

-- A round's excess over the baseline may be little because that took long: the least is that
-- of the least rounds.
CREATE TABLE least AS
SELECT 'peers: one ID' AS subject, contender,
	   (min(ms / rows) - (SELECT min(ms / rows) FROM measured WHERE contender = 'no-op')) * 1e6 AS value
FROM measured GROUP BY contender;

SELECT format('CREATE TABLE %I (id %s DEFAULT %s PRIMARY KEY, payload integer)', 'peer ' || contender, type, call)
FROM peer ORDER BY place
\gexec

INSERT INTO contender (subject, contender, before, statement)
SELECT 'peers: INSERT', contender,
	   format('TRUNCATE %I', 'peer ' || contender),
	   format('INSERT INTO %I (payload) SELECT n FROM generate_series(1, %s) AS n', 'peer ' || contender, :rows)
FROM peer ORDER BY place;

CALL measure('peers: INSERT', :rounds, processor => true);

INSERT INTO least SELECT 'peers: INSERT', contender, min(ms) FROM measured GROUP BY contender;

INSERT INTO result (subject, contender, round, value, unit)
SELECT 'peers: table and index', contender, 1,
	   pg_total_relation_size(quote_ident('peer ' || contender)::regclass) / 1048576.0, 'MB'
FROM peer ORDER BY place;

SELECT format('DROP TABLE %I', 'peer ' || contender) FROM peer
\gexec

-- The ratios are those of medians, and those of the least.
WITH figure AS (
	SELECT subject, contender, (percentile_cont(0.5) WITHIN GROUP (ORDER BY r.value))::numeric AS median,
		   min(l.value)::numeric AS least
	FROM result AS r LEFT JOIN least AS l USING (subject, contender)
	WHERE subject LIKE 'peers: %' GROUP BY subject, contender
), compared AS (
	SELECT f.*, round(f.median / s.median, 2) AS ratio, round(f.least / s.least, 2) AS least_ratio
	FROM figure AS f JOIN figure AS s USING (subject) WHERE s.contender = 'scru64'
)
SELECT p.contender, round(i.median, 1) AS "one ID, ns", i.ratio, round(i.least, 1) AS least, i.least_ratio AS ratio,
	   round(r.median / 1000, 3) AS "INSERT, s", r.ratio, round(r.least / 1000, 3) AS least, r.least_ratio AS ratio,
	   round(b.median, 1) AS "MB", b.ratio, p.extension
FROM peer AS p
	JOIN compared AS i ON i.contender = p.contender AND i.subject = 'peers: one ID'
	JOIN compared AS r ON r.contender = p.contender AND r.subject = 'peers: INSERT'
	JOIN compared AS b ON b.contender = p.contender AND b.subject = 'peers: table and index'
ORDER BY p.place;
