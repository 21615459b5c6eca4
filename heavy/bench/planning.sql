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

CREATE TABLE planning_parts (LIKE planning_rows) PARTITION BY RANGE (i);
SELECT format('CREATE TABLE planning_part_%s PARTITION OF planning_parts FOR VALUES FROM (%s) TO (%s)', p, p * 500, (p + 1) * 500)
FROM generate_series(0, 200) AS p
\gexec
INSERT INTO planning_parts SELECT * FROM planning_rows;

SELECT format('CREATE TABLE planning_columns AS SELECT %s FROM planning_rows LIMIT 1000',
	string_agg(format('id AS id%1$s, n AS n%1$s', k), ', '))
FROM generate_series(1, 500) AS k
\gexec
VACUUM (ANALYZE) planning_rows, planning_parts, planning_columns;

-- A value that a query gives, which is planned while another one is
CREATE FUNCTION planning_id(k integer) RETURNS scru64 STABLE LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
BEGIN
	RETURN (SELECT min(id) FROM bench.planning_rows WHERE id >= '000000000000');
END
$$;

-- A query has "@" for its conditions. ID is the column; LOW and HIGH are values, other ones
-- in each condition, VALUES all LOWs; K is the condition's number, TYPE the type.
CREATE TABLE planning (place integer GENERATED ALWAYS AS IDENTITY, subject text, query text, conditions integer, separator text, condition text);
INSERT INTO planning (subject, query, conditions, separator, condition) VALUES
	('ORed ranges',
	 'SELECT FROM planning_rows WHERE @', 2000, ' OR ', '(ID >= LOW AND ID < HIGH)'),
	('ORed bounds',
	 'SELECT FROM planning_rows WHERE @', 2000, ' OR ', 'ID < LOW'),
	('ANDed bounds',
	 'SELECT FROM planning_rows WHERE @', 1000, ' AND ', 'ID >= LOW AND ID < HIGH'),
	('ANY beside ORed ranges',
	 'SELECT FROM planning_rows WHERE ID > ANY (ARRAY[VALUES]) AND (@)', 2000, ' OR ', '(ID >= LOW AND ID < HIGH)'),
	('ANY beside ANDed bounds',
	 'SELECT FROM planning_rows WHERE ID > ANY (ARRAY[VALUES]) AND @', 1000, ' AND ', 'ID >= LOW AND ID < HIGH'),
	('row comparisons',
	 'SELECT FROM planning_rows WHERE @', 1000, ' OR ', '(ID, i) > (LOW, 5)'),
	('IS TRUE',
	 'SELECT FROM planning_rows WHERE @', 1000, ' OR ', '(ID >= LOW AND ID < HIGH) IS TRUE'),
	('ORed bounds of expressions',
	 'SELECT FROM planning_rows WHERE @', 2000, ' OR ', 'greatest(ID, LOW) > HIGH'),
	('ORed ranges of expressions',
	 'SELECT FROM planning_rows WHERE @', 2000, ' OR ', '(greatest(ID, LOW) >= LOW AND greatest(ID, LOW) < HIGH)'),
	('ANDed ranges of expressions',
	 'SELECT FROM planning_rows WHERE @', 2000, ' AND ', 'greatest(ID, LOW) >= LOW AND HIGH > greatest(ID, LOW)'),
	('ORed ranges of columns',
	 'SELECT FROM planning_columns WHERE @', 500, ' OR ', '(IDK >= LOW AND IDK < HIGH)'),
	('ANDed ranges of columns',
	 'SELECT FROM planning_columns WHERE @', 500, ' AND ', 'IDK >= LOW AND IDK < HIGH'),
	('HAVING',
	 'SELECT i FROM planning_rows GROUP BY i HAVING @', 1000, ' OR ', '(max(greatest(ID, LOW)) >= LOW AND min(ID) < HIGH)'),
	('200 partitions',
	 'SELECT FROM planning_parts WHERE ID > ANY (ARRAY[VALUES]) AND (@)', 20, ' OR ', '(ID >= LOW AND ID < HIGH)'),
	('join, both sides',
	 'SELECT FROM planning_rows AS x JOIN planning_rows AS y USING (i) WHERE @', 1000, ' OR ',
	 '(x.ID >= LOW AND x.ID < HIGH AND y.ID >= LOW AND y.ID < HIGH)'),
	('outer join',
	 'SELECT FROM planning_rows AS x LEFT JOIN planning_rows AS y USING (i) WHERE y.i IS NULL OR @', 1000, ' OR ',
	 '(y.ID >= LOW AND y.ID < HIGH)'),
	('join by ranges',
	 'SELECT FROM planning_rows AS x JOIN planning_rows AS y ON y.ID > ANY (ARRAY[VALUES]) AND @', 300, ' AND ',
	 'y.ID > greatest(x.ID, LOW) AND y.ID < HIGH'),
	('join of 7',
	 'SELECT FROM planning_rows AS t0 @', 6, ' ', 'JOIN planning_rows AS tK ON tK.ID > t0.ID AND tK.ID >= LOW AND tK.ID < HIGH'),
	('subqueries',
	 'SELECT @', 300, ', ', '(SELECT max(i) FROM planning_rows WHERE ID >= LOW AND ID < HIGH)'),
	('UNION ALL',
	 '@', 300, ' UNION ALL ', 'SELECT i FROM planning_rows WHERE ID >= LOW AND ID < HIGH'),
	('values of queries',
	 'SELECT FROM planning_rows WHERE @', 100, ' OR ', 'ID >= planning_id(K)::TYPE AND ID < HIGH OR n >= planning_id(K)::bigint');

-- with --quick a hundredth of them
UPDATE planning SET conditions = greatest(2, conditions * :rows / 1000000);

CREATE FUNCTION planning_value(k integer, type text) RETURNS text LANGUAGE sql
RETURN (SELECT format('%L::%s', CASE type WHEN 'scru64' THEN n::scru64::text ELSE n::text END, type)
		FROM (SELECT (6553600000 + k) << 24) AS v (n));

CREATE FUNCTION planning_query(p planning, type text) RETURNS text LANGUAGE sql
RETURN (SELECT replace(replace(replace(p.query, '@', string_agg(condition, p.separator ORDER BY k)),
							   'VALUES', string_agg(low, ', ' ORDER BY k)),
					   'ID', CASE type WHEN 'scru64' THEN 'id' ELSE 'n' END)
		FROM generate_series(1, p.conditions) AS k,
			 bench.planning_value(20 * k, type) AS low,
			 bench.planning_value(20 * k + 50, type) AS high,
			 replace(replace(replace(replace(p.condition, 'LOW', low), 'HIGH', high), 'TYPE', type), 'K', k::text) AS condition);

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
