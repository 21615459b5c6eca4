-- heavy/bench/ids.sql
--		1. The cost of an ID, in one session. (Several sessions: scripts/bench.)
--
-- Every statement calls its function once a row and throws the values away; the
-- baseline calls one of the server's own, which returns a number it has ready.
-- A set in the select list is the cheapest way to so many rows. Many short rounds, in the time
-- of the processor: an ID costs less than what differs between two rounds of a machine that is
-- not quiet.

SET search_path = bench, public;

-- What there is without an extension
\ir ../../plain/scru64.sql
SELECT scru64_plain.set_node('5/4');

CREATE FUNCTION uuidv7_plpgsql() RETURNS uuid LANGUAGE plpgsql AS $$
BEGIN
	RETURN encode(set_byte(overlay(uuid_send(gen_random_uuid())
		PLACING substring(int8send(floor(date_part('epoch', clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6),
		6, 112 + (random() * 15)::integer), 'hex')::uuid;
END
$$;

INSERT INTO contender (subject, contender, statement, rows)
SELECT 'one ID', s.contender,
	   format('SELECT count(%s) FROM (SELECT generate_series(1, %s) OFFSET 0) AS s', s.call, s.rows), s.rows
FROM (SELECT place, contender, call,
			 CASE WHEN contender = 'scru64' THEN 4 ELSE 1 END * :ids / 5 AS rows
	  FROM source
	  UNION ALL
	  SELECT 0, 'no-op', 'pg_backend_pid()', 4 * :ids / 5
	  UNION ALL
	  SELECT 1000, 'scru64_plain', 'scru64_plain.generate()', :ids / 5
	  UNION ALL
	  SELECT 1001, 'uuid v7, plpgsql', 'uuidv7_plpgsql()', :ids / 5) AS s
ORDER BY s.place;

CALL measure('one ID', 10 * :rounds, 'no-op', processor => true);

-- Many IDs by one call, and by a call for each: in FROM, where sets are kept until they
-- are read, and in the select list.
INSERT INTO contender (subject, contender, statement, rows)
SELECT s.subject, s.contender, format(s.statement, :ids), :ids
FROM (VALUES
	('many IDs, in FROM', 'a call for each', 'SELECT count(id) FROM (SELECT scru64_generate() AS id FROM generate_series(1, %s) OFFSET 0) AS s'),
	('many IDs, in FROM', 'scru64_generate(n)', 'SELECT count(id) FROM scru64_generate(%s) AS id'),
	('many IDs, in the select list', 'a call for each',
	 'SELECT count(scru64_generate()) FROM (SELECT generate_series(1, %s) OFFSET 0) AS s'),
	('many IDs, in the select list', 'scru64_generate(n)',
	 'SELECT count(id) FROM (SELECT scru64_generate(%s) AS id OFFSET 0) AS s')) AS s (subject, contender, statement);

CALL measure('many IDs, in FROM', :rounds);
CALL measure('many IDs, in the select list', :rounds);
