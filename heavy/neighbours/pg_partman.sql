-- pg_partman.sql
--		pg_partman 5 takes a scru64 column for one of type text, which it knows how to
--		partition by time, once it is configured to.

\ir check.sql

CREATE SCHEMA partman;
CREATE EXTENSION pg_partman SCHEMA partman;
SET TimeZone = 'UTC';

CREATE FUNCTION scru64_bound(timestamptz) RETURNS text
LANGUAGE sql IMMUTABLE RETURN scru64_min($1)::text;

CREATE FUNCTION scru64_bound_time(text) RETURNS timestamptz
LANGUAGE sql IMMUTABLE RETURN scru64_timestamp($1::scru64);

CREATE TABLE event (
    id   scru64 DEFAULT scru64_generate() PRIMARY KEY,
    what text NOT NULL
) PARTITION BY RANGE (id);

-- As it comes, it refuses: if it does no more, examples/pg_partman.sql is to be changed.
DO $$
BEGIN
	PERFORM partman.create_parent('public.event', 'id', '1 day',
		p_time_encoder := 'public.scru64_bound', p_time_decoder := 'public.scru64_bound_time');
	RAISE 'pg_partman takes a column of type scru64';
EXCEPTION WHEN raise_exception THEN
	IF sqlerrm !~ 'only supports partitioning of data types' THEN
		RAISE;
	END IF;
END
$$;
SELECT "check"('as it comes, pg_partman refuses', NOT EXISTS (SELECT FROM partman.part_config));

\ir ../../examples/pg_partman.sql

SELECT partman.create_parent('public.event', 'id', '1 day',
                             p_time_encoder := 'public.scru64_bound',
                             p_time_decoder := 'public.scru64_bound_time');

UPDATE partman.part_config
SET retention = '30 days', retention_keep_table = false, infinite_time_partitions = true
WHERE parent_table = 'public.event';

CREATE VIEW partitions AS
SELECT relname, bound[1]::scru64::timestamptz AS lower, bound[2]::scru64::timestamptz AS upper
FROM (SELECT relname, regexp_match(pg_get_expr(relpartbound, c.oid), 'FROM \(''(\w{12})''\) TO \(''(\w{12})''\)') AS bound
	  FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent = 'event'::regclass) b
WHERE bound IS NOT NULL;

SELECT "check"('4 partitions before today, and 4 ahead',
			   count(*) FILTER (WHERE upper <= current_date) = 4 AND count(*) FILTER (WHERE lower > current_date) >= 3)
FROM partitions;
SELECT "check"('each is a day, and says so in its name',
			   bool_and(upper - lower = interval '1 day' AND relname = to_char(lower, '"event_p"YYYYMMDD')))
FROM partitions;

INSERT INTO event (what) VALUES ('now');
SELECT "check"('a row of today is in the partition of today',
			   (SELECT tableoid::regclass::text FROM event) = to_char(current_date, '"event_p"YYYYMMDD'));

-- 40 days ago it would have begun with these.
SELECT partman.create_partition_time('public.event', array_agg(current_date - n)::timestamptz[])
FROM generate_series(5, 40) n;
INSERT INTO event SELECT scru64_from_parts((current_date - n)::timestamptz, 0), 'old' FROM generate_series(1, 40) n;
SELECT "check"('rows are in the partition of their day',
			   count(*) = 40 AND bool_and(relname = to_char(id::timestamptz, '"event_p"YYYYMMDD')))
FROM event JOIN pg_class c ON c.oid = event.tableoid WHERE what = 'old';
DO $$
BEGIN
	EXECUTE (SELECT format('DROP TABLE %I', max(relname)) FROM partitions);
END
$$;

CREATE TABLE before AS SELECT * FROM partitions;
CALL partman.run_maintenance_proc();
SELECT "check"('maintenance makes the next partition',
			   (SELECT max(upper) FROM partitions) > (SELECT max(upper) FROM before)
			   AND (SELECT max(upper) FROM partitions) >= current_date + 5);
SELECT "check"('maintenance drops what is old', min(upper) = current_date - 29 OR min(upper) = current_date - 30)
FROM partitions;
SELECT "check"('the rows of these days are gone, and only they',
			   min(id) = (SELECT scru64_min(min(lower)) FROM partitions) AND count(*) BETWEEN 30 AND 32)
FROM event;
SELECT "check"('nothing is in the default partition', count(*) = 0) FROM event_default;
