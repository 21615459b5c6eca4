--
-- RANGE frames over an ID, in units of time.
--

SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';

--
-- Where PostgreSQL finds it: support function 3 of the operator family
--
SELECT amproclefttype::regtype, amprocrighttype::regtype, amprocnum, amproc
FROM pg_amproc
JOIN pg_opfamily AS f ON f.oid = amprocfamily
JOIN pg_am AS a ON a.oid = opfmethod
WHERE amname = 'btree' AND amproclefttype = 'scru64'::regtype AND amprocrighttype = 'interval'::regtype;

--
-- One ID a tick: the same as over a timestamptz
--
-- 2,000 IDs at irregular distances, over six days and the change to summer time
-- in New York on 2026-03-08. All distances are whole ticks.
CREATE TEMPORARY TABLE event AS
	SELECT id, scru64_timestamp(id) AS at, i % 3 AS kind
	FROM (SELECT i, sum(1 + (hashint8extended(i, 1) & 2047)) OVER (ORDER BY i) AS tick
		  FROM generate_series(1, 2000) AS i) AS v,
		 LATERAL (SELECT ((6924487500 + tick::bigint) << 24 | (hashint8extended(i, 2) & 16777215))::scru64) AS w (id);
SELECT count(*), count(DISTINCT at) AS ticks, min(at), max(at) FROM event;

SELECT count(*) AS rows,
	   count(*) FILTER (WHERE by_id <> by_time) AS different,
	   min(by_id), round(avg(by_id), 2) AS avg, max(by_id)
FROM (SELECT count(*) OVER (ORDER BY id RANGE BETWEEN '10 minutes' PRECEDING AND CURRENT ROW) AS by_id,
			 count(*) OVER (ORDER BY at RANGE BETWEEN '10 minutes' PRECEDING AND CURRENT ROW) AS by_time
	  FROM event) AS v;

-- Every kind of frame: in how many rows do the two differ?
CREATE FUNCTION pg_temp.different(frame text, direction text, OUT rows bigint, OUT different bigint, OUT frames bigint)
LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format($q$
		SELECT count(*), count(*) FILTER (WHERE (a, b, c) IS DISTINCT FROM (d, e, f)), count(DISTINCT (a, b, c))
		FROM (SELECT count(*) OVER by_id AS a, min(id) OVER by_id AS b, max(id) OVER by_id AS c,
					 count(*) OVER by_time AS d, min(id) OVER by_time AS e, max(id) OVER by_time AS f
			  FROM event
			  WINDOW by_id AS (PARTITION BY kind ORDER BY id %2$s RANGE BETWEEN %1$s),
					 by_time AS (PARTITION BY kind ORDER BY at %2$s RANGE BETWEEN %1$s)) AS v
		$q$, frame, direction)
	INTO rows, different, frames;
END
$$;
SELECT frame, direction, d.*
FROM unnest(ARRAY[
		$$'10 minutes' PRECEDING AND CURRENT ROW$$,
		$$'10 minutes' PRECEDING AND '5 minutes' PRECEDING$$,
		$$CURRENT ROW AND '1 hour' FOLLOWING$$,
		$$'30 seconds' FOLLOWING AND '2 hours' FOLLOWING$$,
		$$'1 hour' PRECEDING AND '1 hour' FOLLOWING$$,
		$$'1 hour' PRECEDING AND '1 hour' FOLLOWING EXCLUDE CURRENT ROW$$,
		$$UNBOUNDED PRECEDING AND '1 hour' PRECEDING$$,
		$$'1 hour' FOLLOWING AND UNBOUNDED FOLLOWING$$,
		$$'0' PRECEDING AND '0' FOLLOWING$$,
		$$'256 milliseconds' PRECEDING AND '255.999 milliseconds' FOLLOWING$$,
		$$'5 minutes' PRECEDING AND '10 minutes' PRECEDING$$,
		$$'1 day' PRECEDING AND CURRENT ROW$$,
		$$'1 month' PRECEDING AND CURRENT ROW$$]) WITH ORDINALITY AS f (frame, n),
	 unnest(ARRAY['ASC', 'DESC', 'NULLS FIRST']) AS direction,
	 LATERAL pg_temp.different(frame, direction) AS d
ORDER BY n, direction COLLATE "C";

-- A day is as long as the time zone says: 23 hours on one day in New York.
CREATE TEMPORARY TABLE two_days AS
	SELECT id, scru64_timestamp(id) AS at
	FROM (VALUES (scru64_from_parts('2026-03-08 00:00:00 EST', 1)),
				 (scru64_from_parts('2026-03-08 23:30:00 EDT', 1)),
				 (scru64_from_parts('2026-03-09 00:30:00 EDT', 1))) AS v (id);
SELECT at, count(*) OVER (ORDER BY id RANGE '1 day' PRECEDING) AS day,
	   count(*) OVER (ORDER BY id RANGE '24 hours' PRECEDING) AS hours
FROM two_days ORDER BY id;
SET TimeZone = 'America/New_York';
SELECT at, count(*) OVER (ORDER BY id RANGE '1 day' PRECEDING) AS day,
	   count(*) OVER (ORDER BY id RANGE '24 hours' PRECEDING) AS hours
FROM two_days ORDER BY id;
SELECT direction, d.*
FROM unnest(ARRAY['ASC', 'DESC']) AS direction,
	 LATERAL pg_temp.different($$'1 day' PRECEDING AND '1 day' FOLLOWING$$, direction) AS d
ORDER BY direction COLLATE "C";

-- The function itself against core's, in each of its four ways, at DST.
SELECT sub, less, count(*),
	   count(*) FILTER (WHERE scru64_in_range(v.id, b.id, span, sub, less)
						<> in_range(v.at, b.at, span, sub, less)) AS different,
	   count(*) FILTER (WHERE scru64_in_range(v.id, b.id, span, sub, less)) BETWEEN 1000 AND 79000 AS both_answers
FROM (SELECT * FROM event ORDER BY hashint8(id::bigint) LIMIT 100) AS v,
	 (SELECT * FROM event ORDER BY hashint8(id::bigint) DESC LIMIT 100) AS b,
	 unnest(ARRAY['0', '1 microsecond', '256 milliseconds', '1 day', '36 hours', '1 month', '1 day -3 hours',
				  '100 years']::interval[]) AS span,
	 unnest(ARRAY[true, false]) AS sub, unnest(ARRAY[true, false]) AS less
GROUP BY sub, less ORDER BY sub, less;
SELECT scru64_in_range(NULL, '0u2r85hm2pt3', '1 day', true, true) AS val,
	   scru64_in_range('0u2r85hm2pt3', NULL, '1 day', true, true) AS base,
	   scru64_in_range('0u2r85hm2pt3', '0u2r85hm2pt3', NULL, true, true) AS span;
SET TimeZone = 'UTC';

--
-- Several IDs in a tick
--
-- They have one time and still an order. CURRENT ROW is the row itself, with the
-- IDs before it; '0' PRECEDING and '0' FOLLOWING are the whole tick.
CREATE TEMPORARY TABLE burst AS
	SELECT scru64_from_parts(timestamptz '2026-01-01 00:00:00+00' + tick * interval '256 milliseconds', n) AS id, tick
	FROM generate_series(0, 2) AS tick, generate_series(1, 3) AS n
	UNION ALL
	VALUES (NULL::scru64, NULL::integer), (NULL, NULL);
SELECT tick, scru64_node_ctr(id) AS n,
	   count(*) OVER (ORDER BY id RANGE BETWEEN '0' PRECEDING AND CURRENT ROW) AS from_tick,
	   count(*) OVER (ORDER BY id RANGE BETWEEN CURRENT ROW AND '0' FOLLOWING) AS to_tick,
	   count(*) OVER (ORDER BY id RANGE BETWEEN '0' PRECEDING AND '0' FOLLOWING) AS tick_rows,
	   count(*) OVER (ORDER BY id RANGE BETWEEN '256 milliseconds' PRECEDING AND CURRENT ROW) AS from_tick_before,
	   count(*) OVER (ORDER BY id RANGE BETWEEN '255 milliseconds' PRECEDING AND CURRENT ROW) AS not_quite
FROM burst ORDER BY id;
-- Rows of one ID are peers.
SELECT scru64_node_ctr(id) AS n,
	   count(*) OVER (ORDER BY id RANGE BETWEEN '0' PRECEDING AND CURRENT ROW) AS from_tick
FROM (SELECT * FROM burst WHERE tick = 0 UNION ALL SELECT * FROM burst WHERE tick = 0) AS v ORDER BY id;

--
-- What is refused
--
SELECT what, e.code, e.message
FROM (VALUES
	('count(*) OVER (ORDER BY id RANGE BETWEEN ''-1 hour'' PRECEDING AND CURRENT ROW)'),
	('count(*) OVER (ORDER BY id RANGE BETWEEN CURRENT ROW AND ''-1 month'' FOLLOWING)'),
	('scru64_in_range(''0u2r85hm2pt3'', ''0u2r85hm2pt3'', ''-1 microsecond'', false, true)'),
	('count(*) OVER (ORDER BY id RANGE BETWEEN 10 PRECEDING AND CURRENT ROW)'),
	-- as core does where the sum of a time and an interval is no timestamptz
	('count(*) OVER (ORDER BY id RANGE BETWEEN ''300000 years'' PRECEDING AND CURRENT ROW)')
) AS v (what), test.error_of('SELECT ' || what || ' FROM burst') AS e;
