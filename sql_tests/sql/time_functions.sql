--
-- From an ID to its time, from a time to an ID, and the bounds of a time range.
--

SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';

--
-- scru64_timestamp: the start of the tick
--
SELECT id, scru64_timestamp(id) AS time, id::timestamptz = scru64_timestamp(id) AS cast_agrees
FROM (VALUES ('000000000000'::scru64),	-- first ID of tick 0, reserved
			 ('00000009zldr'),			-- last ID of tick 0, reserved
			 ('00000009zlds'),			-- first ID of tick 1
			 ('0u2r85hm2pt3'),
			 ('0u2pf62ji4b9'),
			 ('zzzzzzzq0em7'),			-- last ID of the last tick but one
			 ('zzzzzzzq0em8'),			-- first ID of the last tick, reserved
			 ('zzzzzzzzzzzz')) AS v (id);
SELECT scru64_timestamp(NULL), NULL::scru64::timestamptz;

-- The same in another way: bigint and numeric arithmetic.
CREATE TEMPORARY TABLE sample AS
	SELECT n::scru64 AS id, n
	FROM generate_series(1, 200000) AS i,
		 LATERAL (SELECT (hashint8extended(i, 1) & 9223372036854775807) % 4738381338321616896) AS v (n);
INSERT INTO sample
	SELECT n::scru64, n
	FROM (VALUES (0::bigint), (1), (282429536480 << 24), (282429536481 << 24)) AS v (edge),
		 generate_series(-2, 2) AS d,
		 LATERAL (SELECT edge + d) AS w (n)
	WHERE n BETWEEN 0 AND 4738381338321616895;
SELECT count(*) AS ids,
	   count(*) FILTER (WHERE extract(epoch FROM scru64_timestamp(id)) = (n >> 24) * 0.256) AS right_time,
	   count(*) FILTER (WHERE scru64_node_ctr(id) = n % 16777216) AS right_node_ctr
FROM sample;

--
-- scru64_from_parts: the tick that holds a time
--
SELECT scru64_from_parts('2026-01-01 00:00:00.255999+00', 0) AS in_tick,
	   scru64_from_parts('2026-01-01 00:00:00.256+00', 0) AS next_tick,
	   scru64_from_parts(ts => '2026-01-01 00:00:00+00', node_ctr => 16777215) AS last_in_tick;
SELECT scru64_from_parts(NULL, 0), scru64_from_parts('2026-01-01', NULL);

-- There and back, for every ID, the reserved ones included.
SELECT count(*) AS ids,
	   count(*) FILTER (WHERE scru64_from_parts(scru64_timestamp(id), scru64_node_ctr(id)) = id) AS same,
	   count(*) FILTER (WHERE scru64_from_parts(scru64_timestamp(id) + interval '255999 microseconds',
												scru64_node_ctr(id)) = id) AS same_at_end_of_tick
FROM sample;

-- And from any time, to the microsecond.
CREATE TEMPORARY TABLE moment AS
	SELECT timestamptz 'epoch' + microseconds * interval '1 microsecond' AS ts,
		   (hashint8extended(i, 3) & 16777215)::integer AS node_ctr
	FROM generate_series(1, 200000) AS i,
		 LATERAL (SELECT (hashint8extended(i, 2) & 9007199254740991)) AS v (microseconds);
SELECT count(*) AS times, min(ts) > '1970-01-01' AS from_then, max(ts) > '2255-01-01' AS till_then,
	   count(*) FILTER (WHERE scru64_node_ctr(id) = node_ctr) AS right_node_ctr,
	   count(*) FILTER (WHERE id::bigint >> 24 = floor(extract(epoch FROM ts) / 0.256)) AS right_tick,
	   count(*) FILTER (WHERE scru64_timestamp(id) <= ts
						AND ts < scru64_timestamp(id) + interval '256 milliseconds') AS inside
FROM moment, LATERAL (SELECT scru64_from_parts(ts, node_ctr)) AS v (id);

-- From the first tick to the last.
SELECT scru64_from_parts('1970-01-01 00:00:00+00', 0) AS first,
	   scru64_from_parts('4261-02-27 06:08:59.135999+00', 16777215) AS last;
SELECT ts, node_ctr, e.*
FROM (VALUES
	('1969-12-31 23:59:59.999999+00', 0), ('4261-02-27 06:08:59.136+00', 0), ('infinity', 0), ('-infinity', 0),
	('294276-12-31 23:59:59.999999+00', 0), ('4713-01-01 00:00:00+00 BC', 0),
	('2026-01-01', -1), ('2026-01-01', 16777216), ('2026-01-01', -2147483648)
) AS v (ts, node_ctr), test.error_of(format('SELECT scru64_from_parts(%L, %s)', ts, node_ctr)) AS e;
-- One counter more than the node 254/8 has, and the ID is of the node after it.
SELECT scru64_node_ctr(scru64_from_parts('2026-01-01', (254 << 16) + 65536)) >> 16 AS node_id;

--
-- scru64_min and scru64_max: the IDs from a time on, and up to a time
--
SELECT t, scru64_min(t) AS min, scru64_max(t) AS max
FROM (VALUES ('-infinity'::timestamptz),
			 ('4714-11-24 00:00:00+00 BC'),
			 ('1969-12-31 23:59:59.999999+00'),
			 ('1970-01-01 00:00:00+00'),
			 ('1970-01-01 00:00:00.000001+00'),
			 ('1970-01-01 00:00:00.256+00'),
			 ('2025-12-31 23:59:59.999999+00'),
			 ('2026-01-01 00:00:00+00'),
			 ('2026-01-01 00:00:00.000001+00'),
			 ('2026-01-01 00:00:00.255999+00'),
			 ('2026-01-01 00:00:00.256+00'),
			 ('4261-02-27 06:08:58.879999+00'),
			 ('4261-02-27 06:08:58.88+00'),
			 ('4261-02-27 06:08:58.880001+00'),
			 ('4261-02-27 06:08:59.136+00'),
			 ('294276-12-31 23:59:59.999999+00'),
			 ('infinity')) AS v (t)
ORDER BY t;
SELECT scru64_min(NULL), scru64_max(NULL);

-- They are what their names say: an ID less, or more, is on the other side.
SELECT count(*) AS times,
	   count(*) FILTER (WHERE scru64_timestamp(scru64_min(ts)) >= ts) AS min_is_in,
	   count(*) FILTER (WHERE scru64_timestamp((scru64_min(ts)::bigint - 1)::scru64) < ts) AS one_less_is_out,
	   count(*) FILTER (WHERE scru64_timestamp(scru64_max(ts)) <= ts) AS max_is_in,
	   count(*) FILTER (WHERE scru64_timestamp((scru64_max(ts)::bigint + 1)::scru64) > ts) AS one_more_is_out
FROM (SELECT ts FROM moment
	  UNION ALL
	  -- and on the very boundaries
	  SELECT scru64_timestamp(scru64_from_parts(ts, 0)) + d * interval '1 microsecond'
	  FROM moment, generate_series(-1, 1) AS d) AS v
WHERE ts > '1970-01-01';

--
-- No time zone changes any of it
--
CREATE FUNCTION pg_temp.digest(zone text) RETURNS text
	LANGUAGE plpgsql SET TimeZone FROM CURRENT AS $$
BEGIN
	PERFORM set_config('TimeZone', zone, true);
	-- half hours over two years, each summer time's begin and end among them
	RETURN (SELECT md5(string_agg(concat_ws(' ', scru64_min(t), scru64_max(t),
											scru64_from_parts(t, 7),
											extract(epoch FROM scru64_timestamp(scru64_from_parts(t, 7)))),
								  ',' ORDER BY t))
			FROM generate_series(0, 35039) AS i,
				 LATERAL (SELECT timestamptz '2025-01-01 00:00:00.1+00' + i * interval '30 minutes') AS v (t));
END
$$;
SELECT count(DISTINCT pg_temp.digest(zone)) AS digests
FROM (VALUES ('UTC'), ('America/New_York'), ('Europe/Berlin'), ('Asia/Kolkata'),
			 ('Australia/Lord_Howe'), ('Pacific/Kiritimati'), ('<+0517>-05:17')) AS v (zone);

-- Half past one, before and after the clock was put back.
SET TimeZone = 'America/New_York';
SELECT scru64_from_parts('2026-11-01 01:30:00 EDT', 0) AS before,
	   scru64_from_parts('2026-11-01 01:30:00 EST', 0) AS after,
	   scru64_timestamp(scru64_from_parts('2026-11-01 01:30:00 EDT', 0)) AS time_before,
	   scru64_timestamp(scru64_from_parts('2026-11-01 01:30:00 EST', 0)) AS time_after;
-- A literal without a zone is read in the session's own, as every timestamptz.
SELECT scru64_min('2026-01-01') = scru64_min('2026-01-01 05:00:00+00') AS local_midnight;
SET TimeZone = 'UTC';
SELECT scru64_min('2026-01-01') = scru64_min('2026-01-01 00:00:00+00') AS utc_midnight;

--
-- Immutable: generated columns, index expressions, CHECKs, partition bounds
--
CREATE TABLE scru64_created (
	id scru64 PRIMARY KEY CHECK (id >= scru64_min('2026-01-01 00:00:00+00')),
	created_at timestamptz GENERATED ALWAYS AS (scru64_timestamp(id)) STORED,
	node_ctr integer GENERATED ALWAYS AS (scru64_node_ctr(id)) STORED,
	too timestamptz GENERATED ALWAYS AS (id::timestamptz) STORED,
	made_of scru64 GENERATED ALWAYS AS (scru64_from_parts(scru64_timestamp(id), 0)) STORED,
	CHECK (id < timestamptz '2027-01-01 00:00:00+00'),
	CHECK (scru64_timestamp(id) < '2027-01-01 00:00:00+00')
);
CREATE INDEX scru64_created_day ON scru64_created (date_trunc('day', scru64_timestamp(id) AT TIME ZONE 'UTC'));
CREATE UNIQUE INDEX scru64_created_tick ON scru64_created (scru64_timestamp(id));
CREATE INDEX scru64_created_late ON scru64_created (node_ctr) WHERE id >= timestamptz '2026-07-01 00:00:00+00';
SET TimeZone = 'Europe/Berlin';
INSERT INTO scru64_created
	SELECT scru64_from_parts('2026-01-01 00:00:00+00'::timestamptz + i * interval '1 hour', i)
	FROM generate_series(0, 24 * 365 - 1) AS i;
SET TimeZone = 'America/New_York';
SELECT count(*), count(*) FILTER (WHERE created_at = scru64_timestamp(id) AND too = created_at) AS right_time,
	   count(*) FILTER (WHERE node_ctr = scru64_node_ctr(id)) AS right_node_ctr,
	   count(*) FILTER (WHERE made_of <= id AND scru64_max(too) >= id) AS right_tick
FROM scru64_created;
INSERT INTO scru64_created VALUES (scru64_from_parts('2025-12-31 23:59:59.999999+00', 0));
INSERT INTO scru64_created VALUES (scru64_from_parts('2027-01-01 00:00:00+00', 0));
-- another node_ctr, the same tick
INSERT INTO scru64_created VALUES (scru64_from_parts('2026-03-29 02:00:00+00', 16777215));
SET TimeZone = 'UTC';
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF)
	SELECT id FROM scru64_created
	WHERE date_trunc('day', scru64_timestamp(id) AT TIME ZONE 'UTC') = '2026-03-29';
SELECT count(*) FROM scru64_created
	WHERE date_trunc('day', scru64_timestamp(id) AT TIME ZONE 'UTC') = '2026-03-29';
EXPLAIN (COSTS OFF) SELECT id FROM scru64_created WHERE scru64_timestamp(id) = '2026-03-29 02:00:00+00';
SELECT id, created_at FROM scru64_created WHERE scru64_timestamp(id) = '2026-03-29 02:00:00+00';
-- a partial index: the planner sees that December is after July
EXPLAIN (COSTS OFF)
	SELECT created_at FROM scru64_created
	WHERE node_ctr = 8016 AND id >= timestamptz '2026-12-01 00:00:00+00';
SELECT created_at FROM scru64_created
	WHERE node_ctr = 8016 AND id >= timestamptz '2026-12-01 00:00:00+00';
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP TABLE scru64_created;
