-- heavy/bench/watermark.sql
--		The cost of a call of scru64_watermark(), over a function of the server that
--		returns a number it has ready.
--
-- Each call is in a transaction of its own: in one, the second repeats the first.

SET search_path = bench, public;

CREATE PROCEDURE measure_watermark(contender text, rounds integer, calls integer)
LANGUAGE plpgsql AS $$
DECLARE
	begun timestamptz;
	over timestamptz;
	ended timestamptz;
BEGIN
	-- round 0 warms up and is not kept
	FOR round IN 0 .. rounds LOOP
		PERFORM scru64_generate();
		COMMIT;
		begun := clock_timestamp();
		FOR i IN 1 .. calls LOOP
			PERFORM scru64_watermark();
			COMMIT;
		END LOOP;
		over := clock_timestamp();
		FOR i IN 1 .. calls LOOP
			PERFORM pg_backend_pid();
			COMMIT;
		END LOOP;
		ended := clock_timestamp();
		IF round > 0 THEN
			INSERT INTO bench.result (subject, contender, round, value, unit)
			VALUES ('one call of scru64_watermark()', contender, round,
					1e6 * extract(epoch FROM (over - begun) - (ended - over)) / calls, 'us');
			COMMIT;
		END IF;
	END LOOP;
END
$$;

CALL measure_watermark('idle', :rounds, :ids / 50);

-- Again in the same statement, as for each partition of a table
INSERT INTO contender (subject, contender, statement, rows)
SELECT 'scru64_watermark(), repeated', contender,
	   format('SELECT count(%s) FROM (SELECT generate_series(1, %s) OFFSET 0) AS s', contender, :rows), :rows
FROM unnest('{scru64_watermark(),pg_backend_pid()}'::text[]) AS contender;

CALL measure('scru64_watermark(), repeated', :rounds, 'pg_backend_pid()');
