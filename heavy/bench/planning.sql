-- heavy/bench/planning.sql
--		8. Planning of queries with very many conditions.
--
-- Each query is planned of IDs and of the bigints inside them, and not executed.
-- Measured is the processor time of the first EXPLAIN of a prepared statement, minus that
-- of the second one, which has the plan already.

SET search_path = bench, public;
SET bench.rounds = :rounds;
SET plan_cache_mode = force_generic_plan;

CREATE TABLE planning_rows AS
	SELECT i, n::scru64 AS id, n
	FROM generate_series(1, 100000) AS i, LATERAL (SELECT ((6553600000 + i / 2) << 24) + (i & 1)) AS v (n);
CREATE INDEX ON planning_rows (id);
CREATE INDEX ON planning_rows (n);

VACUUM (ANALYZE) planning_rows;

-- A query has "@" for its conditions. ID is the column; LOW and HIGH are values, other ones
-- in each condition.
CREATE TABLE planning (place integer GENERATED ALWAYS AS IDENTITY, subject text, query text, conditions integer, separator text, condition text);
INSERT INTO planning (subject, query, conditions, separator, condition) VALUES
	('ORed ranges',
	 'SELECT FROM planning_rows WHERE @', 2000, ' OR ', '(ID >= LOW AND ID < HIGH)'),
	('ANDed bounds',
	 'SELECT FROM planning_rows WHERE @', 1000, ' AND ', 'ID >= LOW AND ID < HIGH'),
	('ANDed ranges of expressions',
	 'SELECT FROM planning_rows WHERE @', 2000, ' AND ', 'greatest(ID, LOW) >= LOW AND HIGH > greatest(ID, LOW)'),
	('join, both sides',
	 'SELECT FROM planning_rows AS x JOIN planning_rows AS y USING (i) WHERE @', 1000, ' OR ',
	 '(x.ID >= LOW AND x.ID < HIGH AND y.ID >= LOW AND y.ID < HIGH)');

-- with --quick a hundredth of them
UPDATE planning SET conditions = greatest(2, conditions * :rows / 1000000);

CREATE FUNCTION planning_value(k integer, type text) RETURNS text LANGUAGE sql
RETURN (SELECT format('%L::%s', CASE type WHEN 'scru64' THEN n::scru64::text ELSE n::text END, type)
		FROM (SELECT (6553600000 + k) << 24) AS v (n));

CREATE FUNCTION planning_query(p planning, type text) RETURNS text LANGUAGE sql
RETURN (SELECT replace(replace(p.query, '@', string_agg(condition, p.separator ORDER BY k)),
					   'ID', CASE type WHEN 'scru64' THEN 'id' ELSE 'n' END)
		FROM generate_series(1, p.conditions) AS k,
			 replace(replace(p.condition, 'LOW', bench.planning_value(20 * k, type)),
					 'HIGH', bench.planning_value(20 * k + 50, type)) AS condition);

DO $$
DECLARE
	turn record;
	times double precision[];
	plan json;			-- thrown away
BEGIN
	FOR round IN 1 .. current_setting('bench.rounds')::integer LOOP
		FOR turn IN
			SELECT p.subject, t.type, planning_query(p, t.type) AS query
			FROM planning AS p, (VALUES ('scru64'), ('bigint')) AS t (type)
			ORDER BY p.place, random()
		LOOP
			-- what the query before it has left is not measured
			EXECUTE 'EXPLAIN ' || turn.query;
			EXECUTE 'PREPARE planned AS ' || turn.query;
			times = ARRAY[ms(true)];
			FOR i IN 1 .. 2 LOOP
				EXECUTE 'EXPLAIN (FORMAT JSON) EXECUTE planned' INTO plan;
				times = times || ms(true);
			END LOOP;
			DEALLOCATE planned;
			INSERT INTO result (subject, contender, round, value, unit)
			VALUES ('planning, ' || turn.subject, turn.type, round, 2 * times[2] - times[1] - times[3], 'ms');
		END LOOP;
	END LOOP;
END
$$;
