-- bench/watermark.sql
--		The cost of a call of scru64_watermark(), over a function of the server that
--		returns a number it has ready.
--
-- Each call is in a transaction of its own: in one, the second repeats the first.

SET search_path = bench, public;

-- IDs of so many nodes: of size 11, none of which overlaps the server's own. One node
-- is the server's own.
CREATE FUNCTION use_nodes(nodes integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. nodes LOOP
		IF nodes > 1 THEN
			PERFORM set_config('scru64.node_spec', 1024 + i || '/11', true);
		END IF;
		PERFORM scru64_generate();
	END LOOP;
END
$$;

CREATE PROCEDURE measure_watermark(contender text, nodes integer, rounds integer, calls integer)
LANGUAGE plpgsql AS $$
DECLARE
	begun timestamptz;
	over timestamptz;
	ended timestamptz;
BEGIN
	-- round 0 warms up and is not kept
	FOR round IN 0 .. rounds LOOP
		PERFORM use_nodes(nodes);
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

-- Again in the same statement, as for each partition of a table
CREATE FUNCTION measure_told(rounds integer, calls integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
	begun timestamptz;
	over timestamptz;
	ended timestamptz;
BEGIN
	FOR round IN 0 .. rounds LOOP
		begun := clock_timestamp();
		PERFORM count(scru64_watermark()) FROM (SELECT generate_series(1, calls) OFFSET 0) AS s;
		over := clock_timestamp();
		PERFORM count(pg_backend_pid()) FROM (SELECT generate_series(1, calls) OFFSET 0) AS s;
		ended := clock_timestamp();
		IF round > 0 THEN
			INSERT INTO bench.result (subject, contender, round, value, unit)
			VALUES ('one call of scru64_watermark()', 'again in the same statement', round,
					1e6 * extract(epoch FROM (over - begun) - (ended - over)) / calls, 'us');
		END IF;
	END LOOP;
END
$$;
