-- pg_cron.sql
--		Partitions made ahead and dropped when they are old, and rows deleted when
--		they are old, by pg_cron.

\ir check.sql

CREATE EXTENSION pg_cron;

CREATE TABLE event (
    id   scru64 DEFAULT scru64_generate() PRIMARY KEY,
    what text NOT NULL
) PARTITION BY RANGE (id);

\ir ../../examples/pg_cron.sql

CALL event_partitions(7, 30);
SELECT cron.schedule('event_partitions', '10 0 * * *', 'CALL event_partitions(7, 30)');

CREATE TABLE visit (id scru64 DEFAULT scru64_generate() PRIMARY KEY, who text);
SELECT cron.schedule('visit_retention', '20 0 * * *', $$DELETE FROM visit WHERE id < now() - interval '30 days'$$);

-- A job's IDs are of the server's node, as all are.
SELECT cron.schedule('visit_insert', '* * * * *', $$INSERT INTO visit (who) VALUES ('cron')$$);

-- Made by the procedure itself
SET TimeZone = 'UTC';
SELECT "check"('partitions of 8 days are there', count(*) = 8) FROM pg_inherits WHERE inhparent = 'event'::regclass;
INSERT INTO event (what) VALUES ('now');
SELECT "check"('a row of today is in the partition of today',
			   (SELECT tableoid::regclass::text FROM event) = to_char(current_date, '"event_"YYYYMMDD'));
SELECT "check"('partitions begin and end at midnight UTC',
			   bool_and(bound[1]::scru64::timestamptz::time = '00:00' AND bound[2]::scru64::timestamptz::time = '00:00'
						AND scru64_node_ctr(bound[1]::scru64) = 0))
FROM (SELECT regexp_match(pg_get_expr(relpartbound, c.oid), 'FROM \(''(\w{12})''\) TO \(''(\w{12})''\)') AS bound
	  FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent = 'event'::regclass) b;

-- Old ones, as of a server that had the job for 40 days, and no more of the next
DO $$
DECLARE
	day date;
BEGIN
	FOR day IN SELECT current_date - n FROM generate_series(1, 40) n LOOP
		EXECUTE format('CREATE TABLE %I PARTITION OF event FOR VALUES FROM (scru64_min(%L)) TO (scru64_min(%L))',
					   to_char(day, '"event_"YYYYMMDD'), day::timestamptz, (day + 1)::timestamptz);
		INSERT INTO event VALUES (scru64_from_parts(day::timestamptz, 0), 'old');
	END LOOP;
	EXECUTE format('DROP TABLE %I', to_char(current_date + 7, '"event_"YYYYMMDD'));
END
$$;
INSERT INTO visit SELECT scru64_from_parts(now() - (n - 0.5) * interval '1 day', 0), 'old' FROM generate_series(1, 40) n;
SELECT "check"('before the jobs run, the old ones are there',
			   (SELECT count(*) FROM event) = 41 AND
			   (SELECT count(*) FROM pg_inherits WHERE inhparent = 'event'::regclass) = 47);

-- Now let it run, for real, at the next full minute.
SELECT cron.alter_job(jobid, schedule => '* * * * *') FROM cron.job;
DO $$
BEGIN
	FOR attempt IN 1 .. 600 LOOP
		EXIT WHEN (SELECT count(DISTINCT jobid) = 3 FROM cron.job_run_details WHERE status IN ('succeeded', 'failed'));
		PERFORM pg_sleep(0.2);
	END LOOP;
END
$$;

SELECT "check"('the job ' || jobname || ' has succeeded', coalesce(status = 'succeeded', false))
FROM cron.job LEFT JOIN LATERAL (SELECT status FROM cron.job_run_details d WHERE d.jobid = job.jobid ORDER BY runid LIMIT 1) d ON true
ORDER BY jobname;
SELECT cron.unschedule(jobid) FROM cron.job;
SELECT "check"('old partitions are gone, and those of the next days are there',
			   min(inhrelid::regclass::text) = to_char(current_date - 31, '"event_"YYYYMMDD')
			   AND max(inhrelid::regclass::text) = to_char(current_date + 7, '"event_"YYYYMMDD')
			   AND count(*) = 39)
FROM pg_inherits WHERE inhparent = 'event'::regclass;
SELECT "check"('rows of 31 days and today are there', count(*) = 32 AND min(id) >= now() - interval '32 days') FROM event;
SELECT "check"('old rows are deleted, and younger ones are there',
			   min(id) >= now() - interval '30 days 5 minutes' AND count(*) = 30) FROM visit WHERE who = 'old';
SELECT "check"('IDs made by a job are of the server''s node',
			   count(*) > 0 AND bool_and(scru64_node_ctr(id) >> 16 = 42)) FROM visit WHERE who = 'cron';
