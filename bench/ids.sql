-- bench/ids.sql
--		1. The cost of an ID, in one session. (Several sessions: scripts/bench.)
--
-- Every statement calls its function once a row and throws the values away; the
-- baseline calls one of the server's own, which returns a number it has ready.
-- A set in the select list is the cheapest way to so many rows.

SET search_path = bench, public;

INSERT INTO contender (subject, contender, statement, rows)
SELECT 'one ID', s.contender,
	   format('SELECT count(%s) FROM (SELECT generate_series(1, %s) OFFSET 0) AS s', s.call, s.rows), s.rows
FROM (SELECT place, contender, call,
			 CASE WHEN contender = 'scru64' THEN 4 ELSE 1 END * :ids AS rows
	  FROM source
	  UNION ALL
	  SELECT -2, 'no-op', 'pg_backend_pid()', 4 * :ids
	  UNION ALL
	  SELECT -1, 'clock_timestamp', 'clock_timestamp()', 4 * :ids) AS s
ORDER BY s.place;

CALL measure('one ID', :rounds, 'no-op');

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
