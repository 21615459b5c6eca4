-- examples/pg_cron.sql
--		Partitions of a day for the table event (id scru64, ...) PARTITION BY RANGE (id),
--		from midnight UTC to midnight UTC: makes those of today and of the next "ahead"
--		days, and drops those that ended more than "keep" days ago. Put the name of your
--		table in place of event, and let pg_cron call the procedure once a day
--		(doc/distributed.md).

CREATE PROCEDURE event_partitions(ahead integer, keep integer)
LANGUAGE plpgsql
SET TimeZone = 'UTC'
SET lock_timeout = '10s'
AS $$
DECLARE
    day date;
    old regclass;
BEGIN
    FOR day IN SELECT current_date + n FROM generate_series(0, ahead) n LOOP
        EXECUTE format('CREATE TABLE IF NOT EXISTS %I PARTITION OF event FOR VALUES FROM (scru64_min(%L)) TO (scru64_min(%L))',
                       to_char(day, '"event_"YYYYMMDD'), day::timestamptz, (day + 1)::timestamptz);
    END LOOP;
    FOR old IN SELECT c.oid FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
               WHERE inhparent = 'event'::regclass AND relname ~ '^event_\d{8}$'
               AND relname < to_char(current_date - keep - 1, '"event_"YYYYMMDD') LOOP
        EXECUTE format('DROP TABLE %s', old);
    END LOOP;
END
$$;
