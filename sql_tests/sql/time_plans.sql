--
-- Time conditions on a table of 5,000,000 rows: the operators use the plain index
-- on id, and their row estimates are right.
--

SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
SET IntervalStyle = 'postgres';
SET plan_cache_mode = auto;

-- 75 days up to now, 40 IDs every 52 seconds, four in a tick.
CREATE UNLOGGED TABLE scru64_traffic (id scru64 NOT NULL, n integer NOT NULL)
	WITH (autovacuum_enabled = off);
INSERT INTO scru64_traffic
	SELECT scru64_from_parts(now() - (5000000 - i) / 40 * interval '52 seconds'
							 + i % 40 / 4 * interval '256 milliseconds', i % 4), i
	FROM generate_series(0, 4999999) AS i;
CREATE UNIQUE INDEX scru64_traffic_id ON scru64_traffic (id);
VACUUM (FREEZE, ANALYZE) scru64_traffic;
SELECT count(*) AS rows, max(scru64_timestamp(id)) - min(scru64_timestamp(id)) > '75 days' AS seventy_five_days
FROM scru64_traffic;

-- The times of the table are those of the day it is made on, so they are left
-- out of what is shown.
CREATE FUNCTION scru64_plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query
	LOOP
		line := regexp_replace(line, '''[0-9a-z]{12}''::scru64', 'ID', 'g');
		RETURN NEXT regexp_replace(line, '''[^'']*''::timestamp with time zone', 'TIME', 'g');
	END LOOP;
END
$$;
SELECT date_trunc('hour', now()) - interval '1 hour' AS recent,
	   date_trunc('day', now()) - interval '1 day' AS yesterday,
	   date_trunc('day', now()) AS today,
	   date_trunc('hour', min(scru64_timestamp(id))) + interval '2 hours' AS early
FROM scru64_traffic \gset

--
-- The operators
--
SELECT scru64_plan(format('SELECT * FROM scru64_traffic WHERE id >= timestamptz %L', :'recent'));
SELECT scru64_plan(format('SELECT * FROM scru64_traffic WHERE id > timestamptz %L', :'recent'));
SELECT scru64_plan(format('SELECT * FROM scru64_traffic WHERE id < timestamptz %L', :'early'));
SELECT scru64_plan(format('SELECT * FROM scru64_traffic WHERE id <= timestamptz %L', :'early'));
SELECT scru64_plan(format('SELECT * FROM scru64_traffic WHERE id BETWEEN timestamptz %L AND timestamptz %L', :'yesterday', :'today'));
SELECT scru64_plan('SELECT * FROM scru64_traffic WHERE id >= now() - interval ''1 hour''');
-- with the time on the left
SELECT scru64_plan(format('SELECT * FROM scru64_traffic WHERE timestamptz %L <= id', :'recent'));
SELECT scru64_plan(format('SELECT * FROM scru64_traffic WHERE timestamptz %L < id', :'recent'));
SELECT scru64_plan(format('SELECT * FROM scru64_traffic WHERE timestamptz %L > id', :'early'));
SELECT scru64_plan(format('SELECT * FROM scru64_traffic WHERE timestamptz %L >= id', :'early'));
SELECT scru64_plan('SELECT * FROM scru64_traffic WHERE now() - interval ''1 hour'' <= id');

--
-- scru64_timestamp() and the cast are filters, as any function of a column, unless
-- they have an index of their own
--
SELECT scru64_plan('SELECT * FROM scru64_traffic WHERE scru64_timestamp(id) >= now() - interval ''1 hour''');
SELECT scru64_plan(format('SELECT * FROM scru64_traffic WHERE timestamptz %L > id::timestamptz', :'early'));
BEGIN;
CREATE INDEX ON scru64_traffic (scru64_timestamp(id));
SELECT scru64_plan('SELECT * FROM scru64_traffic WHERE scru64_timestamp(id) >= now() - interval ''1 hour''');
SELECT scru64_plan(format('SELECT * FROM scru64_traffic WHERE timestamptz %L > id::timestamptz', :'early'));
ROLLBACK;

--
-- Both ways round they find what scru64_timestamp() finds
--
-- Times at a boundary of a tick with IDs, a microsecond to each side, and within.
CREATE TEMPORARY TABLE near AS
	SELECT row_number() OVER (ORDER BY edge, d) AS k, edge + d * interval '1 microsecond' AS t
	FROM (SELECT scru64_timestamp(min(id)) + interval '2 hours' AS about FROM scru64_traffic
		  UNION ALL
		  SELECT scru64_timestamp(max(id)) - interval '2 hours' FROM scru64_traffic) AS v,
		 LATERAL (SELECT scru64_timestamp(min(id)) FROM scru64_traffic WHERE id >= about) AS w (edge),
		 unnest(ARRAY[-1, 0, 1, 100000]) AS d;
SELECT count(*), count(*) FILTER (WHERE EXISTS (SELECT FROM scru64_traffic WHERE scru64_timestamp(id) = t
												AND id >= t - interval '1 s' AND id < t + interval '1 s')) AS on_boundary
FROM near;
-- Which is asked of which: the lower end is searched for < and <=, the upper for
-- >= and >.
CREATE TEMPORARY TABLE question AS
	SELECT row_number() OVER (ORDER BY k, op COLLATE "C") AS q, op, translate(op, '<>', '><') AS mirrored_op, t
	FROM near, unnest(ARRAY['<', '<=', '>=', '>']) AS op
	WHERE (k <= 4) = (op IN ('<', '<='));
-- Without an index: FILTER is no condition of a scan.
SELECT string_agg(format('count(*) FILTER (WHERE scru64_timestamp(id) %s timestamptz %L)', op, t), ',' ORDER BY q) AS columns
FROM question \gset
SELECT ARRAY[:columns] AS truth FROM scru64_traffic \gset
CREATE FUNCTION pg_temp.answers(form text, OUT by_index bigint, OUT counts bigint[]) LANGUAGE plpgsql AS $$
DECLARE
	query text;
	n bigint;
BEGIN
	by_index := 0;
	FOR query IN
		SELECT format('SELECT count(*) FROM scru64_traffic WHERE ' || form, op, t, mirrored_op) FROM question ORDER BY q
	LOOP
		EXECUTE query INTO n;
		counts := counts || n;
		by_index := by_index + (SELECT count(*) FROM scru64_plan(query) AS line WHERE line ~ 'Index Cond');
	END LOOP;
END
$$;
SELECT cardinality(:'truth'::bigint[]) AS questions, form, by_index, counts = :'truth' AS as_without
FROM unnest(ARRAY['id %1$s timestamptz %2$L', 'timestamptz %2$L %3$s id']) WITH ORDINALITY AS f (form, k),
	 LATERAL pg_temp.answers(form)
ORDER BY k;

--
-- Row estimates
--
CREATE FUNCTION pg_temp.estimate(condition text, OUT estimate bigint, OUT truth bigint) LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) SELECT * FROM scru64_traffic WHERE ' || condition INTO plan;
	estimate := plan -> 0 -> 'Plan' ->> 'Plan Rows';
	EXECUTE 'SELECT count(*) FROM scru64_traffic WHERE ' || condition INTO truth;
END
$$;
SELECT condition, e.truth > 2000 AS many, e.estimate BETWEEN e.truth / 2 AND e.truth * 2 AS within_factor_2
FROM unnest(ARRAY[
		$$id >= now() - interval '1 hour'$$,
		$$id >= now() - interval '1 day'$$,
		$$id >= now() - interval '30 days'$$,
		$$id > now() - interval '1 hour'$$,
		$$now() - interval '1 hour' <= id$$,
		$$now() - interval '1 day' < id$$,
		$$now() - interval '30 days' <= id$$,
		$$id < now() - interval '74 days'$$,
		$$id <= now() - interval '74 days'$$,
		$$now() - interval '74 days' > id$$,
		$$now() - interval '30 days' >= id$$,
		$$id BETWEEN now() - interval '2 hours' AND now() - interval '1 hour'$$,
		$$id BETWEEN now() - interval '2 days' AND now() - interval '1 day'$$,
		$$id >= now() - interval '40 days' AND id < now() - interval '10 days'$$,
		$$id >= now() - interval '40 days' AND now() - interval '39 days 22 hours' > id$$,
		$$id >= (now() - interval '1 day')::date$$]) WITH ORDINALITY AS c (condition, k),
	 LATERAL pg_temp.estimate(condition) AS e
ORDER BY k;
-- Outside the table there is next to nothing.
SELECT condition, e.truth, e.estimate < 1000 AS few
FROM unnest(ARRAY['id > timestamptz ''infinity''', 'id < timestamptz ''-infinity''',
				  'id < timestamptz ''1960-01-01''', 'id >= timestamptz ''4300-01-01''',
				  'id >= now() + interval ''1 hour''', 'id < now() - interval ''1 year''']) AS condition,
	 LATERAL pg_temp.estimate(condition) AS e
ORDER BY condition COLLATE "C";
SELECT condition, e.truth, e.estimate > 4990000 AS nearly_all
FROM unnest(ARRAY['id >= timestamptz ''-infinity''', 'id <= timestamptz ''infinity''']) AS condition,
	 LATERAL pg_temp.estimate(condition) AS e
ORDER BY condition COLLATE "C";
-- A function's result has no statistics, until they are asked for.
SELECT e.estimate BETWEEN 1600000 AND 1700000 AS a_third
FROM pg_temp.estimate($$scru64_timestamp(id) >= now() - interval '1 hour'$$) AS e;
CREATE STATISTICS scru64_traffic_time ON (scru64_timestamp(id)) FROM scru64_traffic;
ANALYZE scru64_traffic;
SELECT condition, e.estimate BETWEEN e.truth / 2 AND e.truth * 2 AS within_factor_2
FROM unnest(ARRAY[
		$$scru64_timestamp(id) >= now() - interval '1 day'$$,
		$$scru64_timestamp(id) >= now() - interval '30 days'$$,
		$$id::timestamptz BETWEEN now() - interval '2 days' AND now() - interval '1 day'$$]) WITH ORDINALITY AS c (condition, k),
	 LATERAL pg_temp.estimate(condition) AS e
ORDER BY k;

DROP FUNCTION scru64_plan;
DROP TABLE scru64_traffic;
