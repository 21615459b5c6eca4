-- heavy/bench/last_hour.sql
--		5. The rows of the last hour: by the ID alone, by a timestamptz with an index
--		of its own, by the time inside a uuid v7, and by the least uuid v7 of that time.
--
-- All three tables hold the same rows: one for every moment of the last 30 days.

SET search_path = bench, public;

SELECT now() - interval '30 days' AS begun, interval '30 days' / :last_hour_rows AS step
\gset

-- uuid v7 as its specification has it, of a given time
CREATE FUNCTION uuid_of(ts timestamptz, n integer) RETURNS uuid LANGUAGE sql IMMUTABLE
RETURN (lpad(to_hex((extract(epoch FROM ts) * 1000)::bigint), 12, '0') || '7' ||
		substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid;

-- The time inside, by PostgreSQL's own function where there is one
SELECT to_regprocedure('uuid_extract_timestamp(uuid)') IS NOT NULL AS extracts
\gset
\if :extracts
CREATE FUNCTION time_of(id uuid) RETURNS timestamptz LANGUAGE sql IMMUTABLE
RETURN uuid_extract_timestamp(id);
\else
CREATE FUNCTION time_of(id uuid) RETURNS timestamptz LANGUAGE sql IMMUTABLE
RETURN to_timestamp(('x' || left(translate(id::text, '-', ''), 12))::bit(48)::bigint / 1000.0);
\endif

-- Missing in PostgreSQL: the least uuid of a time
CREATE FUNCTION least_uuid(ts timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE
RETURN (lpad(to_hex(ceil(extract(epoch FROM ts) * 1000)::bigint), 12, '0') || '70008' || repeat('0', 15))::uuid;

CREATE TABLE hour_scru64 AS
	SELECT scru64_from_parts(:'begun'::timestamptz + n * :'step'::interval, (42 << 16) + (n & 65535)) AS id, n AS payload
	FROM generate_series(1, :last_hour_rows) AS n;
CREATE TABLE hour_bigserial AS
	SELECT n::bigint AS id, :'begun'::timestamptz + n * :'step'::interval AS created_at, n AS payload
	FROM generate_series(1, :last_hour_rows) AS n;
CREATE TABLE hour_uuid AS
	SELECT uuid_of(:'begun'::timestamptz + n * :'step'::interval, n) AS id, n AS payload
	FROM generate_series(1, :last_hour_rows) AS n;
ALTER TABLE hour_scru64 ADD PRIMARY KEY (id);
ALTER TABLE hour_bigserial ADD PRIMARY KEY (id);
CREATE INDEX hour_bigserial_created_at ON hour_bigserial (created_at);
ALTER TABLE hour_uuid ADD PRIMARY KEY (id);
VACUUM (ANALYZE, FREEZE);
CHECKPOINT;

SELECT now() - interval '1 hour' AS since
\gset

-- The same moment for all, but not as a constant
CREATE FUNCTION since() RETURNS timestamptz LANGUAGE sql STABLE
RETURN current_setting('bench.since')::timestamptz;
SELECT format('ALTER DATABASE %I SET bench.since = %L', current_database(), :'since')
\gexec
SET bench.since = :'since';

CREATE TABLE last_hour (contender text PRIMARY KEY, place integer GENERATED ALWAYS AS IDENTITY, statement text, tables text);
INSERT INTO last_hour (contender, statement, tables) VALUES
	('scru64', 'SELECT sum(payload) FROM hour_scru64 WHERE id >= since()', 'hour_scru64'),
	('timestamptz, own index', 'SELECT sum(payload) FROM hour_bigserial WHERE created_at >= since()', 'hour_bigserial'),
	('uuid v7, time extracted', 'SELECT sum(payload) FROM hour_uuid WHERE time_of(id) >= (SELECT since())', 'hour_uuid'),
	('uuid v7, bound made by hand', 'SELECT sum(payload) FROM hour_uuid WHERE id >= least_uuid(since())', 'hour_uuid');

INSERT INTO contender (subject, contender, statement)
SELECT 'rows of the last hour', contender, statement FROM last_hour ORDER BY place;

CALL measure('rows of the last hour', :rounds);

-- The planner's estimate, and the sizes
DO $$
DECLARE
	l record;
	plan jsonb;
	scan jsonb;
BEGIN
	FOR l IN SELECT * FROM last_hour ORDER BY place LOOP
		EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ' || l.statement INTO plan;
		-- not the sub-select with the time
		scan := jsonb_path_query_first(plan, '$[0].Plan.Plans[*] ? (@."Parent Relationship" == "Outer")');
		INSERT INTO result (subject, contender, round, value, unit) VALUES
			('last hour: rows estimated, of the truth', l.contender, 1,
			 (scan ->> 'Plan Rows')::float8 / greatest((scan ->> 'Actual Rows')::float8, 1), 'times'),
			('last hour: table and its indexes', l.contender, 1,
			 pg_total_relation_size(l.tables::regclass) / 1048576.0, 'MB');
	END LOOP;
END
$$;
