--
-- Row estimates: as good as for bigint.
--

SET default_statistics_target = 100;

-- What the planner expects a query to return.
CREATE FUNCTION pg_temp.estimate(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows';
END
$$;

-- A million IDs of steady traffic, eight a second: two a tick. Beside each
-- its number; beside both a copy that has nulls; and a column that says which
-- row is which.
CREATE TABLE scru64_traffic (i integer, id scru64, n bigint, id_or_null scru64, n_or_null bigint)
	WITH (autovacuum_enabled = off);
INSERT INTO scru64_traffic
	SELECT i, n::scru64, n,
		   CASE WHEN i % 5 <> 0 THEN n::scru64 END, CASE WHEN i % 5 <> 0 THEN n END
	FROM generate_series(1, 1000000) AS i,
		 LATERAL (SELECT (6553600000 + i / 2) << 24 | (42 << 16) + (i & 1)) AS v (n);
CREATE UNIQUE INDEX scru64_traffic_id ON scru64_traffic (id);
CREATE UNIQUE INDEX scru64_traffic_n ON scru64_traffic (n);
ANALYZE scru64_traffic;

-- Bounds: the last and the first 500 rows, and five thousand in the middle
SELECT n AS last_500, id AS last_500_id FROM scru64_traffic WHERE i = 999500 \gset
SELECT n AS first_500, id AS first_500_id FROM scru64_traffic WHERE i = 501 \gset
SELECT n AS low, id AS low_id FROM scru64_traffic WHERE i = 500000 \gset
SELECT n AS high, id AS high_id FROM scru64_traffic WHERE i = 505000 \gset

--
-- Against the truth
--
CREATE TEMP TABLE truth (condition text);
INSERT INTO truth
	SELECT format(condition, :'last_500_id', :'first_500_id', :'low_id', :'high_id')
	FROM (VALUES
		('id > %1$L'), ('id >= %1$L'), ('%1$L < id'), ('%1$L <= id'),
		('id < %2$L'), ('id <= %2$L'), ('%2$L > id'), ('%2$L >= id'),
		('id > %3$L'), ('id < %4$L'),
		('id BETWEEN %3$L AND %4$L'),
		('id > %3$L AND id < %4$L'),
		('%4$L >= id AND %3$L <= id')
	) AS v (condition);
CREATE FUNCTION pg_temp.rows_of(condition text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	result bigint;
BEGIN
	EXECUTE 'SELECT count(*) FROM scru64_traffic WHERE ' || condition INTO result;
	RETURN result;
END
$$;
SELECT condition, rows,
	   estimate BETWEEN rows / 2 AND rows * 2 AS within_factor_2
FROM truth,
	 pg_temp.rows_of(condition) AS rows,
	 pg_temp.estimate('SELECT FROM scru64_traffic WHERE ' || condition) AS estimate;

--
-- Against bigint: within 1 percent, and a row for rounding
--
CREATE FUNCTION pg_temp.alike(a bigint, b bigint) RETURNS boolean LANGUAGE sql
RETURN abs(a - b) <= 1 + b / 100;

-- A condition has %1$s for the column, and for constants of it %2$s (last 500),
-- %3$s (first 500), %4$s and %5$s (five thousand in the middle), %6$s (the middle
-- of these), %7$s (below all), %8$s (above all).
CREATE FUNCTION pg_temp.conditions() RETURNS SETOF text LANGUAGE sql
BEGIN ATOMIC
	SELECT condition FROM (VALUES
	-- one bound
	('%1$s < %2$s'), ('%1$s <= %2$s'), ('%1$s > %2$s'), ('%1$s >= %2$s'),
	('%2$s < %1$s'), ('%2$s <= %1$s'), ('%2$s > %1$s'), ('%2$s >= %1$s'),
	('%1$s < %3$s'), ('%1$s > %3$s'), ('%1$s < %6$s'), ('%1$s > %6$s'),
	('%1$s < %7$s'), ('%1$s > %7$s'), ('%1$s < %8$s'), ('%1$s > %8$s'),
	('NOT %1$s < %6$s'), ('NOT %1$s > %2$s'),
	-- equality
	('%1$s = %6$s'), ('%1$s <> %6$s'), ('%1$s IN (%2$s, %4$s, %6$s)'),
	-- two bounds: of the middle, of either end, wide, empty, beyond the ends
	('%1$s BETWEEN %4$s AND %5$s'),
	('%1$s > %4$s AND %1$s < %5$s'),
	('%1$s >= %4$s AND %1$s < %5$s'),
	('%1$s < %5$s AND %1$s > %4$s'),
	('%5$s > %1$s AND %4$s < %1$s'),
	('%4$s <= %1$s AND %1$s <= %5$s'),
	('%1$s BETWEEN %2$s AND %8$s'),
	('%1$s BETWEEN %7$s AND %3$s'),
	('%1$s BETWEEN %7$s AND %8$s'),
	('%1$s BETWEEN %3$s AND %2$s'),
	('%1$s > %3$s AND %1$s < %6$s'),
	('%1$s > %5$s AND %1$s < %4$s'),
	('%1$s > %8$s AND %1$s < %8$s'),
	('%1$s BETWEEN %6$s AND %6$s'),
	('%1$s NOT BETWEEN %4$s AND %5$s'),
	('%1$s BETWEEN SYMMETRIC %5$s AND %4$s'),
	-- more bounds than two
	('%1$s > %4$s AND %1$s < %5$s AND %1$s < %2$s'),
	('%1$s > %4$s AND %1$s > %3$s AND %1$s < %5$s'),
	('%1$s > %3$s AND %1$s > %4$s AND %1$s < %5$s AND %1$s <= %2$s'),
	('%1$s > %4$s AND %1$s > %6$s'),
	('%1$s < %4$s AND %1$s < %6$s AND %1$s < %5$s'),
	('%1$s > %4$s AND %1$s > %4$s AND %1$s < %5$s'),
	('%1$s > %4$s AND %1$s >= %4$s AND %1$s < %5$s'),
	('%4$s < %1$s AND %4$s < %1$s AND %5$s > %1$s'),
	('%1$s > %4$s AND %4$s < %1$s AND %5$s > %1$s AND %1$s < %5$s'),
	('%1$s > %4$s AND %1$s < %5$s AND %1$s <> %6$s'),
	-- with conditions on other columns
	('%1$s > %4$s AND i < 502500 AND %1$s < %5$s'),
	('%1$s > %4$s AND %1$s < %5$s AND i %% 2 = 0'),
	-- with conditions that bound the column in another way
	('%1$s > ANY (ARRAY[%4$s, %5$s])'),
	('%1$s < ALL (ARRAY[%4$s, %5$s])'),
	('(%1$s, i) > (%4$s, 5)'),
	('(%1$s, i) > (%4$s, 5) AND %1$s < %5$s'),
	-- in OR, NOT and AND of these
	('%1$s BETWEEN %4$s AND %5$s OR %1$s > %2$s'),
	('%1$s BETWEEN %4$s AND %6$s OR %1$s BETWEEN %3$s AND %4$s OR i = 1'),
	('(%1$s > %4$s AND %1$s < %5$s OR %1$s < %3$s) AND %1$s > %7$s'),
	('%1$s > %4$s AND (%1$s < %5$s OR %1$s < %6$s)'),
	('NOT (%1$s BETWEEN %4$s AND %5$s)'),
	('NOT (%1$s < %4$s OR %1$s > %5$s)'),
	('NOT (%1$s > %4$s AND %1$s < %5$s OR i = 3)'),
	('(%1$s > %4$s AND %1$s < %5$s) OR (%1$s > %4$s AND i = 1)'),
	('%1$s > %4$s AND (%1$s < %5$s AND i > 5 OR %1$s < %6$s AND i < 7)'),
	('(%1$s > %4$s OR %1$s < %3$s) AND (%1$s < %5$s OR i = 4)'),
	('CASE WHEN i > 0 THEN %1$s > %4$s AND %1$s < %5$s END'),
	('(%1$s > %4$s AND %1$s < %5$s) IS TRUE'),
	('(%1$s > %4$s AND %1$s < %5$s) IS NOT FALSE'),
	-- no constants
	('%1$s > (SELECT %1$s FROM %9$s LIMIT 1)'),
	('%1$s > (SELECT %1$s FROM %9$s LIMIT 1) AND %1$s < (SELECT %1$s FROM %9$s LIMIT 1)'),
	('%1$s > (SELECT %1$s FROM %9$s LIMIT 1) AND %1$s < %2$s'),
	('%1$s > %4$s AND %1$s < (CASE WHEN random() < 2 THEN %5$s END)'),
	('%1$s < %1$s'),
	('%1$s > NULL'),
	-- null tests
	('%1$s IS NULL'), ('%1$s IS NOT NULL AND %1$s BETWEEN %4$s AND %5$s'),
	('%1$s IS NULL OR %1$s > %2$s'),
	('coalesce(%1$s, %3$s) > %2$s'),
	('coalesce(%1$s, %3$s) BETWEEN %4$s AND %5$s')
	) AS v (condition);
END;

-- The conditions whose estimates differ between a scru64 and a bigint column of
-- a relation, and how many there were.
CREATE FUNCTION pg_temp.compare(
	relation text, id text, n text, OUT conditions bigint, OUT differing text[]
) LANGUAGE plpgsql AS $$
DECLARE
	bounds bigint[] = (
		SELECT array_agg(t.n ORDER BY place)
		FROM unnest(ARRAY[999500, 501, 500000, 505000, 502500]) WITH ORDINALITY AS p (row_number, place)
		JOIN scru64_traffic AS t ON t.i = p.row_number
	) || ARRAY[0, 4738381338321616895];
	ids text[] = (SELECT array_agg(format('%L::scru64', b::scru64)) FROM unnest(bounds) AS b);
	ns text[] = (SELECT array_agg(format('%L::bigint', b)) FROM unnest(bounds) AS b);
	condition text;
	a bigint;
	b bigint;
BEGIN
	conditions = 0;
	FOR condition IN SELECT * FROM pg_temp.conditions() LOOP
		a = pg_temp.estimate(format('SELECT FROM %s WHERE ', relation)
			|| format(condition, VARIADIC id || ids || relation));
		b = pg_temp.estimate(format('SELECT FROM %s WHERE ', relation)
			|| format(condition, VARIADIC n || ns || relation));
		conditions = conditions + 1;
		IF NOT pg_temp.alike(a, b) THEN
			differing = differing || format('%s: %s, not %s', condition, a, b);
		END IF;
	END LOOP;
END
$$;

CREATE VIEW scru64_traffic_view AS SELECT id AS a, n AS b, i FROM scru64_traffic WHERE i > 0;
CREATE DOMAIN scru64_domain AS scru64;
CREATE DOMAIN scru64_bigint_domain AS bigint;
CREATE TABLE scru64_few (i integer, id scru64, n bigint, d scru64_domain, m scru64_bigint_domain)
	WITH (autovacuum_enabled = off);
INSERT INTO scru64_few SELECT i, id, n, id, n FROM scru64_traffic WHERE i % 100 = 0;
CREATE TABLE scru64_unknown WITH (autovacuum_enabled = off) AS TABLE scru64_few;
-- An expression that has statistics
CREATE INDEX scru64_few_id ON scru64_few ((greatest(id, '0u0000000000')));
CREATE INDEX scru64_few_n ON scru64_few ((greatest(n, 108453036173819904)));
-- Many equal values, so that the statistics have a list of common ones
CREATE TABLE scru64_common (i integer, id scru64, n bigint) WITH (autovacuum_enabled = off);
INSERT INTO scru64_common
	SELECT t.i, s.id, s.n
	FROM scru64_traffic AS t
	JOIN scru64_traffic AS s
	ON s.i = CASE WHEN t.i % 3 = 0 THEN t.i ELSE 500000 + t.i % 20 * 500 END
	WHERE t.i <= 30000 OR t.i > 990000;
CREATE TABLE scru64_empty (i integer, id scru64, n bigint) WITH (autovacuum_enabled = off);
CREATE TABLE scru64_analyzed (i integer, id scru64, n bigint) WITH (autovacuum_enabled = off);
CREATE TABLE scru64_nulls (i integer, id scru64, n bigint) WITH (autovacuum_enabled = off);
INSERT INTO scru64_nulls SELECT i FROM generate_series(1, 1000) AS i;
CREATE TABLE scru64_one (i integer, id scru64, n bigint) WITH (autovacuum_enabled = off);
INSERT INTO scru64_one SELECT i, id, n FROM scru64_traffic WHERE i = 502500;
CREATE TABLE scru64_child () INHERITS (scru64_one) WITH (autovacuum_enabled = off);
INSERT INTO scru64_child SELECT i, id, n FROM scru64_traffic WHERE i % 50 = 0;
CREATE TABLE scru64_parts (i integer, id scru64, n bigint) PARTITION BY RANGE (i);
CREATE TABLE scru64_parts_1 PARTITION OF scru64_parts FOR VALUES FROM (0) TO (502500)
	WITH (autovacuum_enabled = off);
CREATE TABLE scru64_parts_2 PARTITION OF scru64_parts FOR VALUES FROM (502500) TO (1000001)
	WITH (autovacuum_enabled = off);
INSERT INTO scru64_parts SELECT i, id, n FROM scru64_traffic WHERE i % 20 = 0;
ANALYZE scru64_few, scru64_common, scru64_analyzed, scru64_nulls, scru64_one, scru64_parts;
SELECT what, c.*
FROM (VALUES
	('a column', 'scru64_traffic', 'id', 'n'),
	('with nulls and without an index', 'scru64_traffic', 'id_or_null', 'n_or_null'),
	('a view', 'scru64_traffic_view', 'a', 'b'),
	('a subquery', '(SELECT * FROM scru64_traffic OFFSET 0) AS s', 's.id', 's.n'),
	('an aggregate', '(SELECT i, max(id) AS id, max(n) AS n FROM scru64_traffic GROUP BY i) AS s', 'id', 'n'),
	('a CTE', '(WITH t AS MATERIALIZED (SELECT * FROM scru64_traffic) SELECT * FROM t) AS s', 'id', 'n'),
	('a union', '(SELECT * FROM scru64_traffic UNION ALL SELECT * FROM scru64_traffic) AS s', 'id', 'n'),
	('without statistics', 'scru64_unknown', 'id', 'n'),
	('few rows', 'scru64_few', 'id', 'n'),
	('a domain', 'scru64_few', 'd', 'm'),
	('an expression', 'scru64_few', 'greatest(id, ''0u0000000000'')', 'greatest(n, 108453036173819904)'),
	('common values', 'scru64_common', 'id', 'n'),
	('an empty table', 'scru64_empty', 'id', 'n'),
	('an empty table that is analyzed', 'scru64_analyzed', 'id', 'n'),
	('nothing but nulls', 'scru64_nulls', 'id', 'n'),
	('one value', 'ONLY scru64_one', 'id', 'n'),
	('inheritance', 'scru64_one', 'id', 'n'),
	('partitions', 'scru64_parts', 'id', 'n')
) AS v (what, relation, id, n), pg_temp.compare(relation, id, n) AS c;
DROP VIEW scru64_traffic_view;
DROP INDEX scru64_few_id, scru64_few_n;

-- By index, and by bitmap
SET enable_seqscan = off;
SELECT * FROM pg_temp.compare('scru64_traffic', 'id', 'n');
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SELECT * FROM pg_temp.compare('scru64_traffic', 'id', 'n');
RESET enable_seqscan;
RESET enable_indexscan;
RESET enable_indexonlyscan;

--
-- Parameters
--
PREPARE above_id (scru64) AS SELECT FROM scru64_traffic WHERE id > $1;
PREPARE above_n (bigint) AS SELECT FROM scru64_traffic WHERE n > $1;
PREPARE between_id (scru64, scru64) AS SELECT FROM scru64_traffic WHERE id BETWEEN $1 AND $2;
PREPARE between_n (bigint, bigint) AS SELECT FROM scru64_traffic WHERE n BETWEEN $1 AND $2;
PREPARE equal_id (scru64) AS SELECT FROM scru64_traffic WHERE id = $1;
PREPARE equal_n (bigint) AS SELECT FROM scru64_traffic WHERE n = $1;
SELECT mode, pg_temp.alike(pg_temp.estimate(format('EXECUTE above_id (%L)', :'last_500_id')),
						   pg_temp.estimate(format('EXECUTE above_n (%L)', :'last_500'))) AS above,
	   pg_temp.alike(pg_temp.estimate(format('EXECUTE between_id (%L, %L)', :'low_id', :'high_id')),
					 pg_temp.estimate(format('EXECUTE between_n (%L, %L)', :'low', :'high'))) AS between_,
	   pg_temp.alike(pg_temp.estimate(format('EXECUTE equal_id (%L)', :'low_id')),
					 pg_temp.estimate(format('EXECUTE equal_n (%L)', :'low'))) AS equal
FROM unnest(ARRAY['force_generic_plan', 'force_custom_plan']) AS wanted,
	 set_config('plan_cache_mode', wanted, false) AS mode;
RESET plan_cache_mode;
DEALLOCATE ALL;

--
-- Values that are known when a query is planned, and not in its text: one of a
-- setting, null if it is not set, and one that a query of its own finds, which is
-- planned while this one is
--
CREATE FUNCTION pg_temp.first_from(i integer) RETURNS scru64 STABLE LANGUAGE plpgsql AS $$
DECLARE
	low scru64 = ((6553600000 + i / 2) << 24)::scru64;
	high scru64 = ((6553600100 + i / 2) << 24)::scru64;
BEGIN
	RETURN (SELECT min(t.id) FROM scru64_traffic AS t WHERE t.id >= low AND t.id < high);
END
$$;
CREATE TEMP TABLE stable_value (condition text);
INSERT INTO stable_value
	SELECT replace(replace(replace(replace(condition,
		'@since', 'current_setting(''app.since'', true)::scru64::%2$s'),
		'@low', format('%L::scru64::%%2$s', :'low_id')),
		'@high', format('%L::scru64::%%2$s', :'high_id')),
		'@first_from', 'pg_temp.first_from')
	FROM (VALUES
		('%1$s >= @since'),
		('%1$s >= @since AND %1$s >= @low'),
		('%1$s >= @low AND %1$s >= @since'),
		('%1$s <= @since AND %1$s <= @low'),
		('%1$s >= @since AND %1$s < @high'),
		('%1$s >= @low AND %1$s < @since'),
		('%1$s >= @since AND %1$s < @since'),
		('%1$s >= @low AND %1$s < @first_from(505000)::%2$s'),
		('%1$s >= @first_from(500000)::%2$s AND %1$s < @first_from(505000)::%2$s'),
		('%1$s >= @first_from(500000)::%2$s AND %1$s < @high OR %1$s >= @first_from(250000)::%2$s AND %1$s < @since')
	) AS v (condition);
CREATE FUNCTION pg_temp.differing() RETURNS text[] LANGUAGE sql AS $$
	SELECT array_agg(format('%s: %s, not %s', condition, a, b)) FILTER (WHERE NOT pg_temp.alike(a, b))
	FROM stable_value,
		 pg_temp.estimate('SELECT FROM scru64_traffic WHERE ' || format(condition, 'id', 'scru64')) AS a,
		 pg_temp.estimate('SELECT FROM scru64_traffic WHERE ' || format(condition, 'n', 'bigint')) AS b
$$;
SELECT pg_temp.differing();
SET app.since = :'first_500_id';
SELECT pg_temp.differing();
RESET app.since;

-- The planner calls a function no more often than for bigint, though a query of the
-- function is planned in each call
CREATE TEMP SEQUENCE calls;
CREATE FUNCTION pg_temp.counted(i integer) RETURNS scru64 STABLE LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
BEGIN
	PERFORM nextval('calls');
	RETURN pg_temp.first_from(i);
END
$$;
CREATE FUNCTION pg_temp.calls(id text, type text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	PERFORM setval('calls', 1), pg_temp.estimate('SELECT FROM scru64_traffic WHERE ' ||
		(SELECT string_agg(format('%1$s >= pg_temp.counted(%3$s)::%2$s AND %1$s <> %1$s OR n < pg_temp.counted(%3$s)::bigint', id, type, k), ' OR ')
		 FROM generate_series(1, 20) AS k));
	RETURN lastval() - 1;
END
$$;
SELECT pg_temp.calls('n', 'bigint') > 0 AS called, pg_temp.calls('id', 'scru64') <= pg_temp.calls('n', 'bigint') AS alike;
-- Nor where the planner asks for no estimate
CREATE FUNCTION pg_temp.failing() RETURNS scru64 STABLE LANGUAGE plpgsql AS $$
BEGIN
	RAISE 'called';
END
$$;
SELECT pg_temp.estimate('SELECT FROM scru64_traffic WHERE id > ''0u2mfn9gb7r4'' AND CASE WHEN i < 0 THEN id < pg_temp.failing() END') > 0 AS planned;

--
-- Many conditions, ANDed and ORed: as for bigint, however many they are, and of
-- times as of IDs. The limit is far more than they should take.
--

-- A bound of a column: an ID, its number, or its time
CREATE FUNCTION pg_temp.bound(i integer, kind text) RETURNS text LANGUAGE sql
RETURN (SELECT CASE kind WHEN 'id' THEN quote_literal(n::scru64)
						 WHEN 'n' THEN n::text
						 ELSE format('%L::timestamptz', scru64_timestamp(n::scru64)) END
		FROM (SELECT (6553600000 + i / 2) << 24 | (42 << 16)) AS v (n));
-- A query of many conditions. One has %1$s for the column and for bounds of it,
-- which are other ones in each, %2$s and %3$s (half a million rows later) and %4$s
-- (fifty rows after %2$s).
CREATE FUNCTION pg_temp.many(query text, count integer, separator text, condition text, kind text) RETURNS text LANGUAGE sql
RETURN format(query,
	(SELECT string_agg(format(condition, CASE kind WHEN 'n' THEN 'n' ELSE 'id' END,
							  pg_temp.bound(k * 100, kind), pg_temp.bound(500000 + k * 100, kind),
							  pg_temp.bound(k * 100 + 50, kind)),
					   separator ORDER BY k)
	 FROM generate_series(1, count) AS k));
SET statement_timeout = '15min';
SELECT separator, condition, array_agg(count ORDER BY count) AS counts,
	   array_agg(count ORDER BY count) FILTER (WHERE NOT pg_temp.alike(a, b)) AS differing,
	   array_agg(count ORDER BY count) FILTER (WHERE NOT pg_temp.alike(c, b)) AS differing_times
FROM (VALUES
	(ARRAY[32, 33, 300, 1000], ' AND ', '%1$s > %2$s AND %1$s < %3$s'),
	(ARRAY[64, 65, 66, 300], ' AND ', '%1$s > %2$s'),
	(ARRAY[64, 65, 66, 300], ' AND ', '%3$s > %1$s'),
	(ARRAY[16, 17, 300], ' AND ', '%1$s > %2$s AND %2$s <= %1$s AND %1$s < %3$s AND %1$s <= %3$s'),
	(ARRAY[2000], ' AND ', '(%1$s > %3$s OR %1$s < %2$s)'),
	(ARRAY[2000], ' OR ', '%1$s > %3$s'),
	(ARRAY[64, 1000], ' OR ', '(%1$s > %2$s AND %1$s < %3$s)'),
	(ARRAY[64, 99, 100, 101, 300, 1000], ' OR ', '(%1$s >= %2$s AND %1$s < %4$s)'),
	(ARRAY[64, 99, 100, 101, 300, 1000], ' OR ', '(%4$s > %1$s AND %2$s <= %1$s AND i > 0)'),
	(ARRAY[64, 1000], ' OR ', '(%1$s > %2$s AND (%1$s < %3$s OR i = 1))'),
	(ARRAY[64, 1000], ' OR ', '(i > 0 AND %1$s >= %2$s AND (i < 0 OR (%1$s >= %2$s AND %1$s < %4$s)))'),
	(ARRAY[2, 50, 300], ' OR ', '(%1$s >= %2$s AND %1$s < %4$s) IS TRUE')
) AS v (counts, separator, condition),
	 unnest(counts) AS count,
	 (VALUES ('SELECT FROM scru64_traffic WHERE %s')) AS q (query),
	 pg_temp.estimate(pg_temp.many(query, count, separator, condition, 'id')) AS a,
	 pg_temp.estimate(pg_temp.many(query, count, separator, condition, 'n')) AS b,
	 pg_temp.estimate(pg_temp.many(query, count, separator, condition, 'time')) AS c
GROUP BY separator, condition
ORDER BY separator, condition COLLATE "C";
-- A range of one ID
SELECT count, pg_temp.alike(
	pg_temp.estimate(pg_temp.many('SELECT FROM scru64_traffic WHERE %s', count, ' OR ', '%1$s BETWEEN %2$s AND %2$s', 'id')),
	pg_temp.estimate(pg_temp.many('SELECT FROM scru64_traffic WHERE %s', count, ' OR ', '%1$s BETWEEN %2$s AND %2$s', 'n'))) AS alike
FROM unnest(ARRAY[64, 1000]) AS count;
-- Elsewhere than in the conditions of a table
SELECT query, condition, pg_temp.alike(
	pg_temp.estimate(pg_temp.many(query, 150, separator, condition, 'id')),
	pg_temp.estimate(pg_temp.many(query, 150, separator, condition, 'n'))) AS alike
FROM (VALUES
	('SELECT FROM scru64_few AS a LEFT JOIN scru64_common AS b ON a.i = b.i WHERE b.i IS NULL OR %s', ' OR ',
	 '(b.%1$s >= %2$s AND b.%1$s < %4$s)'),
	('SELECT FROM scru64_few AS a LEFT JOIN scru64_common AS b ON a.i = b.i AND a.i > 5 AND (%s)', ' OR ',
	 '(a.%1$s >= %2$s AND a.%1$s < %4$s)'),
	('SELECT FROM scru64_few AS a JOIN scru64_traffic AS b ON a.i = b.i WHERE %s', ' OR ',
	 '(b.%1$s >= %2$s AND b.%1$s < %4$s AND a.i > 0)'),
	('SELECT FROM scru64_few AS a, scru64_traffic AS b WHERE %s', ' OR ',
	 '(b.%1$s >= %2$s AND b.%1$s < %4$s AND a.%1$s >= %2$s AND a.%1$s < %4$s)'),
	('SELECT i FROM scru64_few GROUP BY i HAVING %s', ' OR ', '(max(%1$s) >= %2$s AND max(%1$s) < %4$s)'),
	('SELECT i FROM scru64_few GROUP BY i HAVING %s', ' AND ', 'max(%1$s) >= %2$s AND min(%1$s) < %3$s'),
	('SELECT FROM scru64_parts WHERE %s', ' OR ', '(%1$s >= %2$s AND %1$s < %4$s)'),
	('SELECT FROM (SELECT * FROM scru64_traffic OFFSET 0) AS s WHERE %s', ' OR ', '(%1$s >= %2$s AND %1$s < %4$s)')
) AS v (query, separator, condition);
RESET statement_timeout;

--
-- Joins
--
CREATE TEMP TABLE join_query (id_query text, n_query text);
INSERT INTO join_query
	SELECT format(q, 'id', quote_literal(:'low_id') || '::scru64', quote_literal(:'high_id') || '::scru64'),
		   format(q, 'n', :'low', :'high')
	FROM (VALUES
		('SELECT FROM scru64_few AS a JOIN scru64_traffic AS b ON a.%1$s = b.%1$s'),
		('SELECT FROM scru64_few AS a JOIN scru64_traffic AS b ON a.%1$s < b.%1$s'),
		('SELECT FROM scru64_few AS a JOIN scru64_traffic AS b ON a.%1$s >= b.%1$s'),
		('SELECT FROM scru64_few AS a JOIN scru64_traffic AS b ON a.%1$s <> b.%1$s'),
		('SELECT FROM scru64_few AS a JOIN scru64_traffic AS b USING (%1$s) WHERE %1$s BETWEEN %2$s AND %3$s'),
		('SELECT FROM scru64_few AS a JOIN scru64_traffic AS b ON a.i = b.i AND b.%1$s BETWEEN %2$s AND %3$s'),
		('SELECT FROM scru64_few AS a JOIN scru64_traffic AS b ON a.i = b.i WHERE b.%1$s BETWEEN %2$s AND %3$s AND a.%1$s BETWEEN %2$s AND %3$s'),
		('SELECT FROM scru64_few AS a LEFT JOIN scru64_traffic AS b ON a.i = b.i AND b.%1$s > %2$s AND b.%1$s < %3$s'),
		('SELECT FROM scru64_few AS a JOIN scru64_common AS b ON b.%1$s > a.%1$s AND b.%1$s < %3$s'),
		('SELECT FROM scru64_few AS a JOIN scru64_traffic AS b ON b.%1$s > a.%1$s AND b.%1$s < a.%1$s'),
		('SELECT FROM scru64_few AS a WHERE EXISTS (SELECT FROM scru64_traffic AS b WHERE a.%1$s = b.%1$s AND b.%1$s BETWEEN %2$s AND %3$s)'),
		('SELECT FROM scru64_few AS a WHERE NOT EXISTS (SELECT FROM scru64_traffic AS b WHERE a.%1$s = b.%1$s AND b.%1$s > %2$s AND b.%1$s < %3$s)'),
		('SELECT FROM scru64_few AS a FULL JOIN scru64_common AS b ON a.i = b.i WHERE coalesce(a.%1$s, b.%1$s) > %2$s'),
		('SELECT FROM scru64_few AS a FULL JOIN scru64_common AS b ON a.i = b.i WHERE coalesce(a.%1$s, b.%1$s) BETWEEN %2$s AND %3$s'),
		('SELECT FROM scru64_few AS a LEFT JOIN scru64_common AS b ON a.i = b.i WHERE coalesce(b.%1$s, %2$s) BETWEEN %2$s AND %3$s'),
		('SELECT FROM scru64_few AS a LEFT JOIN scru64_common AS b ON a.i = b.i WHERE b.%1$s IS NULL OR (b.%1$s > %2$s AND b.%1$s < %3$s)'),
		('SELECT FROM scru64_few AS a, LATERAL (SELECT FROM scru64_traffic AS b WHERE b.%1$s BETWEEN a.%1$s AND a.%1$s) AS l'),
		('SELECT FROM scru64_few AS a, LATERAL (SELECT FROM scru64_traffic AS b WHERE b.%1$s > a.%1$s LIMIT 3) AS l'),
		('SELECT %1$s FROM scru64_common GROUP BY %1$s'),
		('SELECT DISTINCT %1$s FROM scru64_common WHERE %1$s BETWEEN %2$s AND %3$s'),
		('SELECT i FROM scru64_few GROUP BY i HAVING max(%1$s) > %2$s AND max(%1$s) < %3$s')
	) AS v (q);
SELECT count(*) AS queries,
	   array_agg(format('%s: %s, not %s', id_query, a, b))
	   FILTER (WHERE NOT pg_temp.alike(a, b)) AS differing
FROM join_query, pg_temp.estimate(id_query) AS a, pg_temp.estimate(n_query) AS b;

-- The same of a range that each row of the outer side gives: with an index on
-- the inner side its estimate is of one scan.
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_seqscan = off;
CREATE FUNCTION pg_temp.inner_estimate(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan #>> '{0,Plan,Plans,1,Plan Rows}';
END
$$;
SELECT condition, pg_temp.alike(
	pg_temp.inner_estimate('SELECT FROM scru64_few AS a JOIN scru64_traffic AS b ON ' || format(condition, 'id', quote_literal(:'high_id'))),
	pg_temp.inner_estimate('SELECT FROM scru64_few AS a JOIN scru64_traffic AS b ON ' || format(condition, 'n', :'high'))) AS alike
FROM (VALUES
	('b.%1$s = a.%1$s'),
	('b.%1$s > a.%1$s'),
	('b.%1$s > a.%1$s AND b.%1$s < a.%1$s'),
	('b.%1$s > a.%1$s AND b.%1$s < %2$s'),
	('b.%1$s > a.%1$s AND b.%1$s < a.%1$s AND b.%1$s > %2$s')
) AS v (condition);
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_seqscan;

DROP TABLE scru64_traffic, scru64_few, scru64_unknown, scru64_common, scru64_empty, scru64_analyzed, scru64_nulls,
	scru64_one, scru64_child, scru64_parts;
DROP DOMAIN scru64_domain, scru64_bigint_domain;
