--
-- < <= >= > between an ID and a timestamptz, both ways round.
--

SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';

--
-- What there is: no operator of equality, none that hashes or merges
--
SELECT o.oid::regoperator AS operator, oprcode, oprcom::regoperator AS commutator,
	   oprnegate::regoperator AS negator, oprrest, oprjoin, oprcanhash OR oprcanmerge AS joins
FROM pg_operator AS o
WHERE 'scru64'::regtype IN (oprleft, oprright)
	AND 'timestamptz'::regtype IN (oprleft, oprright)
ORDER BY oprname COLLATE "C", oprleft = 'timestamptz'::regtype;
SELECT prosupport, string_agg(proname, ', ' ORDER BY proname COLLATE "C") AS functions
FROM pg_proc WHERE prosupport::text ~ '_timestamptz_support$' GROUP BY 1 ORDER BY prosupport::text COLLATE "C";
\set VERBOSITY terse
SELECT '0u2r85hm2pt3'::scru64 = timestamptz '2026-01-01';
\set VERBOSITY default

--
-- What they mean: the comparison of the ID's time
--
-- The other way to write each, which knows nothing of the operators.
CREATE FUNCTION pg_temp.disagreements(id scru64, t timestamptz)
RETURNS TABLE (
	lt boolean, le boolean, ge boolean, gt boolean,
	t_lt boolean, t_le boolean, t_ge boolean, t_gt boolean,
	min_max boolean
) LANGUAGE sql IMMUTABLE AS $$
	SELECT (id < t) IS DISTINCT FROM (scru64_timestamp(id) < t),
		   (id <= t) IS DISTINCT FROM (scru64_timestamp(id) <= t),
		   (id >= t) IS DISTINCT FROM (scru64_timestamp(id) >= t),
		   (id > t) IS DISTINCT FROM (scru64_timestamp(id) > t),
		   (t < id) IS DISTINCT FROM (t < scru64_timestamp(id)),
		   (t <= id) IS DISTINCT FROM (t <= scru64_timestamp(id)),
		   (t >= id) IS DISTINCT FROM (t >= scru64_timestamp(id)),
		   (t > id) IS DISTINCT FROM (t > scru64_timestamp(id)),
		   (id < scru64_min(t), id <= scru64_max(t), id >= scru64_min(t), id > scru64_max(t))
		   IS DISTINCT FROM
		   (scru64_timestamp(id) < t, scru64_timestamp(id) <= t,
			scru64_timestamp(id) >= t, scru64_timestamp(id) > t)
$$;

-- 1,000,000 pairs: IDs of all times and node_ctrs, and times that are, in turn,
-- a tick boundary, a microsecond to each side of it, and any; each less than
-- three ticks from the ID's, so that all outcomes are frequent.
CREATE TEMPORARY TABLE pair AS
	SELECT (tick << 24 | CASE i % 5 WHEN 0 THEN 0 WHEN 1 THEN 16777215
							ELSE hashint8extended(i, 2) & 16777215 END)::scru64 AS id,
		   timestamptz 'epoch' + (tick + distance) * interval '256 milliseconds'
		   + CASE i % 4 WHEN 3 THEN (hashint8extended(i, 4) & 9223372036854775807) % 256000
				 ELSE i % 4 - 1 END
			 * interval '1 microsecond' AS t
	FROM generate_series(1, 1000000) AS i,
		 LATERAL (SELECT 1 + (hashint8extended(i, 1) & 9223372036854775807) % 282429536479,
						 (hashint8extended(i, 3) & 3) - 1) AS v (tick, distance);
SELECT count(*) AS pairs,
	   count(*) FILTER (WHERE scru64_timestamp(id) < t) AS before,
	   count(*) FILTER (WHERE scru64_timestamp(id) = t) AS equal,
	   count(*) FILTER (WHERE scru64_timestamp(id) > t) AS after,
	   count(*) FILTER (WHERE abs(extract(epoch FROM scru64_timestamp(id) - t)) < 0.768) AS near
FROM pair;
SELECT count(*) AS pairs,
	   count(*) FILTER (WHERE lt) AS lt, count(*) FILTER (WHERE le) AS le,
	   count(*) FILTER (WHERE ge) AS ge, count(*) FILTER (WHERE gt) AS gt,
	   count(*) FILTER (WHERE t_lt) AS t_lt, count(*) FILTER (WHERE t_le) AS t_le,
	   count(*) FILTER (WHERE t_ge) AS t_ge, count(*) FILTER (WHERE t_gt) AS t_gt,
	   count(*) FILTER (WHERE min_max) AS min_max
FROM pair, LATERAL pg_temp.disagreements(id, t);

-- 10,000 boundaries one after the other, and a microsecond to each side, with
-- the first and the last ID of each tick there.
SELECT count(*) AS pairs,
	   count(*) FILTER (WHERE lt OR le OR ge OR gt OR t_lt OR t_le OR t_ge OR t_gt OR min_max) AS wrong
FROM generate_series(6913635468, 6913645467) AS tick, generate_series(-1, 1) AS d,
	 generate_series(-1, 1) AS tick_distance, unnest(ARRAY[0, 16777215]) AS node_ctr,
	 LATERAL pg_temp.disagreements(((tick + tick_distance) << 24 | node_ctr)::scru64,
								   timestamptz 'epoch' + tick * interval '256 milliseconds'
								   + d * interval '1 microsecond');

-- The edges: all IDs at both ends against all times at both ends and beyond.
CREATE TEMPORARY TABLE edge_id AS
	SELECT (tick << 24 | node_ctr)::scru64 AS id
	FROM unnest(ARRAY[0, 1, 2, 282429536478, 282429536479, 282429536480]) AS tick,
		 unnest(ARRAY[0, 1, 16777214, 16777215]) AS node_ctr;
CREATE TEMPORARY TABLE edge_time AS
	SELECT timestamptz 'epoch' + tick * interval '256 milliseconds' + d * interval '1 microsecond' AS t
	FROM unnest(ARRAY[-1, 0, 1, 2, 282429536478, 282429536479, 282429536480, 282429536481]) AS tick,
		 generate_series(-1, 1) AS d
	UNION ALL
	VALUES ('-infinity'::timestamptz), ('infinity'),
		   ('4714-11-24 00:00:00+00 BC'), ('294276-12-31 23:59:59.999999+00'),
		   ('1901-12-13 20:45:52+00'), ('1969-12-31 00:00:00+00'),
		   ('4262-01-01 00:00:00+00'), ('9999-12-31 23:59:59+00');
SELECT min(id) AS first_id, max(id) AS last_id, count(*) AS ids FROM edge_id;
SELECT count(*) AS times, count(*) FILTER (WHERE t < '1970-01-01') AS before_1970,
	   count(*) FILTER (WHERE t > '4261-02-27 06:08:58.88') AS past_the_last_tick
FROM edge_time;
-- Only the first ID of all and the last are the clamps, and only beyond the ends.
SELECT id, t < '1970-01-01' AS before_1970, t > '4261-02-27 06:08:58.88' AS past_the_last_tick,
	   count(*) AS pairs,
	   count(*) FILTER (WHERE lt OR le OR ge OR gt OR t_lt OR t_le OR t_ge OR t_gt OR min_max) AS not_by_time
FROM edge_id, edge_time, LATERAL pg_temp.disagreements(id, t)
WHERE id IN ('000000000000', 'zzzzzzzzzzzz')
GROUP BY 1, 2, 3 ORDER BY 1, 2 DESC, 3;
SELECT count(*) AS pairs,
	   count(*) FILTER (WHERE lt OR le OR ge OR gt OR t_lt OR t_le OR t_ge OR t_gt OR min_max) AS not_by_time
FROM edge_id, edge_time, LATERAL pg_temp.disagreements(id, t)
WHERE id NOT IN ('000000000000', 'zzzzzzzzzzzz');
-- There, each compares as if its time were the very same.
SELECT id, id < t AS lt, id <= t AS le, id >= t AS ge, id > t AS gt,
	   t < id AS t_lt, t <= id AS t_le, t >= id AS t_ge, t > id AS t_gt, count(*)
FROM edge_id, edge_time
WHERE (id = '000000000000' AND t < '1970-01-01')
	OR (id = 'zzzzzzzzzzzz' AND t > '4261-02-27 06:08:58.88')
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9 ORDER BY 1;

-- In ANY and ALL they are called for each element, not inlined.
SELECT count(*) AS pairs,
	   count(*) FILTER (WHERE id < ANY (ARRAY[t]) <> (scru64_timestamp(id) < t)
						OR id <= ALL (ARRAY[t, t]) <> (scru64_timestamp(id) <= t)
						OR t > ANY (ARRAY[id]) <> (t > scru64_timestamp(id))
						OR t >= ALL (ARRAY[id]) <> (t >= scru64_timestamp(id))) AS wrong
FROM (SELECT * FROM pair LIMIT 20000) AS v;
-- The functions behind them have names too.
SELECT id, t,
	   scru64_lt_timestamptz(id, t) AS lt, scru64_le_timestamptz(id, t) AS le,
	   scru64_ge_timestamptz(id, t) AS ge, scru64_gt_timestamptz(id, t) AS gt,
	   timestamptz_lt_scru64(t, id) AS t_lt, timestamptz_le_scru64(t, id) AS t_le,
	   timestamptz_ge_scru64(t, id) AS t_ge, timestamptz_gt_scru64(t, id) AS t_gt
FROM (VALUES ('0vodnvxngg00'::scru64, timestamptz '2025-12-31 23:59:59.999999+00'),
			 ('0vodnvxngg00', '2026-01-01 00:00:00+00'),
			 ('0vodnvxngg00', '2026-01-01 00:00:00.000001+00')) AS v (id, t);

-- Nothing is known of what is not known.
SELECT id < t AS lt, id <= t AS le, id >= t AS ge, id > t AS gt,
	   t < id AS t_lt, t <= id AS t_le, t >= id AS t_ge, t > id AS t_gt
FROM (VALUES ('0u2r85hm2pt3'::scru64, NULL::timestamptz), (NULL, '2026-01-01')) AS v (id, t);

--
-- How it is written
--
CREATE TEMPORARY TABLE event (id scru64);
INSERT INTO event
	SELECT scru64_from_parts('2026-01-01 00:00:00+00'::timestamptz + i * interval '1 hour', 0)
	FROM generate_series(0, 47) AS i;
SELECT count(*) FROM event WHERE id BETWEEN timestamptz '2026-01-01 12:00' AND timestamptz '2026-01-01 18:00';
SELECT count(*) FROM event WHERE id >= timestamptz '2026-01-01 12:00' AND id < timestamptz '2026-01-01 18:00';
SELECT count(*) FROM event WHERE id NOT BETWEEN timestamptz '2026-01-01 12:00' AND timestamptz '2026-01-01 18:00';
SELECT count(*) FROM event WHERE NOT timestamptz '2026-01-02' <= id;
SELECT count(*) FROM event WHERE id < now();
-- It needs no right to call the functions that give the bounds.
BEGIN;
REVOKE EXECUTE ON FUNCTION scru64_min, scru64_max FROM PUBLIC;
CREATE ROLE regress_scru64_user;
SET LOCAL ROLE regress_scru64_user;
SELECT id < now() AS lt, id <= now() AS le, id >= now() AS ge, id > now() AS gt FROM (VALUES ('0u2r85hm2pt3'::scru64)) AS v (id);
ROLLBACK;
-- A date or a timestamp becomes a timestamptz, in the session's time zone. The
-- second day begins in Tokyo at 15:00 UTC, which is within a tick: the ID made at
-- that time is of a tick that began before.
SELECT count(*) FROM event WHERE id >= date '2026-01-02';
SELECT count(*) FROM event WHERE id >= timestamp '2026-01-02 12:00';
SET TimeZone = 'Asia/Tokyo';
SELECT count(*) FROM event WHERE id >= date '2026-01-02';
SET TimeZone = 'UTC';
-- A parameter needs its type: alone it is taken for an ID.
PREPARE untyped AS SELECT count(*) FROM event WHERE id >= $1;
PREPARE typed AS SELECT count(*) FROM event WHERE id >= $1::timestamptz;
SELECT name, parameter_types FROM pg_prepared_statements WHERE name ~ 'typed' ORDER BY name COLLATE "C";
EXECUTE typed ('2026-01-02');
DEALLOCATE untyped;
DEALLOCATE typed;

-- So is a literal, and a date is no ID: the error says what to write.
SELECT count(*) FROM event WHERE id >= '2026-01-01';
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) FROM event WHERE id BETWEEN '2026-01-01 12:00' AND '2026-01-01 18:00';
SELECT count(*) FROM event WHERE '2026-01-02T00:00:00Z' > id;
SELECT count(*) FROM event WHERE id >= timestamptz '2026-01-02T00:00:00Z';
-- No such advice for what is not a date.
SELECT count(*) FROM event WHERE id >= '20260101';
SELECT count(*) FROM event WHERE id >= 'yesterday';
SELECT count(*) FROM event WHERE id >= '12026-01-01';
SELECT count(*) FROM event WHERE id >= '';
-- Twelve digits are an ID, whatever they look like.
SELECT count(*) FROM event WHERE id >= '202601010000';

-- They are not of the operator class, so no row comparison.
SELECT count(*) FROM event WHERE (id, 1) >= (timestamptz '2026-01-01', 1);
