-- heavy/bench/peers.sql
--		Other extensions that make IDs, beside scru64 and PostgreSQL's own: the cost of an ID
--		(as in ids.sql), INSERT ... SELECT (as in inserts.sql), and the size of its table and
--		index. The times are those of the processor, for machines that are not quiet.

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
SELECT place, contender, type, call
FROM source
WHERE contender IN ('scru64', 'nextval', 'gen_random_uuid', 'uuidv7')
UNION ALL
SELECT 1000 + place, s.contender, s.type, s.call
FROM (VALUES
	(1, 'pgEdge snowflake', 'snowflake', 'bigint', 'snowflake.nextval(''bench.flakes'')'),
	(2, 'pg_uuidv7', 'pg_uuidv7', 'uuid', 'uuid_generate_v7()'),
	(3, 'pg-ulid', 'ulid', 'ulid', 'gen_ulid()')) AS s (place, contender, extension, type, call)
	JOIN pg_extension AS e ON e.extname = s.extension;

INSERT INTO contender (subject, contender, statement, rows)
SELECT 'peers: one ID', contender,
	   format('SELECT count(%s) FROM (SELECT generate_series(1, %s) OFFSET 0) AS s', call, rows), rows
FROM (SELECT place, contender, call, CASE WHEN contender = 'scru64' THEN 4 ELSE 1 END * :ids / 5 AS rows
	  FROM peer
	  UNION ALL
	  SELECT 0, 'no-op', 'pg_backend_pid()', 4 * :ids / 5) AS s
ORDER BY place;

CALL measure('peers: one ID', 10 * :rounds, 'no-op', processor => true);

SELECT format('CREATE TABLE %I (id %s DEFAULT %s PRIMARY KEY, payload integer)', 'peer ' || contender, type, call)
FROM peer ORDER BY place
\gexec

INSERT INTO contender (subject, contender, before, statement)
SELECT 'peers: INSERT', contender,
	   format('TRUNCATE %I', 'peer ' || contender),
	   format('INSERT INTO %I (payload) SELECT n FROM generate_series(1, %s) AS n', 'peer ' || contender, :rows)
FROM peer ORDER BY place;

CALL measure('peers: INSERT', :rounds, processor => true);

INSERT INTO result (subject, contender, round, value, unit)
SELECT 'peers: table and index', contender, 1,
	   pg_total_relation_size(quote_ident('peer ' || contender)::regclass) / 1048576.0, 'MB'
FROM peer ORDER BY place;

SELECT format('DROP TABLE %I', 'peer ' || contender) FROM peer
\gexec
