-- heavy/bench/setup.sql
--		The benchmark's own objects: contenders, results, and the measuring procedure.
--
-- A subject is one question, such as the cost of an ID. Its contenders are
-- measured in turn, round by round, in an order drawn by lot each time: other work
-- of the machine falls on all of them, and none always follows the one leaving the
-- caches full.

CREATE EXTENSION scru64;

CREATE SCHEMA bench;
SET search_path = bench, public;

-- Sources of a table's IDs: the type, the function of the DEFAULT.
CREATE TABLE source (
	contender text PRIMARY KEY,
	place integer GENERATED ALWAYS AS IDENTITY,
	type text NOT NULL,
	call text NOT NULL,
	id_default text NOT NULL
);

CREATE SEQUENCE ids;
CREATE SEQUENCE ids_cached CACHE 100;

INSERT INTO source (contender, type, call, id_default)
SELECT s.contender, s.type, s.call, s.call
FROM (VALUES
	('scru64', 'scru64', 'scru64_generate()', NULL),
	('nextval', 'bigint', 'nextval(''bench.ids'')', NULL),
	('nextval, cache 100', 'bigint', 'nextval(''bench.ids_cached'')', NULL),
	('gen_random_uuid', 'uuid', 'gen_random_uuid()', 'gen_random_uuid()'),
	('uuidv7', 'uuid', 'uuidv7()', 'uuidv7()'),
	('uuid as text', 'text', 'gen_random_uuid()::text', 'gen_random_uuid()')
) AS s (contender, type, call, needs)
WHERE s.needs IS NULL OR to_regprocedure(s.needs) IS NOT NULL;

-- Contenders of a subject. "before" runs untimed, "statement" is measured; "rows"
-- divides the time, if the result is per row.
CREATE TABLE contender (
	subject text,
	place integer GENERATED ALWAYS AS IDENTITY,
	contender text,
	before text,
	statement text NOT NULL,
	rows bigint,
	PRIMARY KEY (subject, contender)
);

CREATE TABLE result (
	place integer GENERATED ALWAYS AS IDENTITY,
	subject text NOT NULL,
	contender text NOT NULL,
	round integer NOT NULL,
	value double precision NOT NULL,
	unit text NOT NULL
);

-- The processor time of this process, in ns, until it last went to wait
CREATE FUNCTION used() RETURNS bigint LANGUAGE sql VOLATILE
RETURN split_part(pg_read_file('/proc/self/schedstat', 0, 100), ' ', 1)::bigint;

-- The time in ms, or that of the processor
CREATE FUNCTION ms(processor boolean) RETURNS double precision LANGUAGE plpgsql AS $$
BEGIN
	IF processor THEN
		PERFORM pg_sleep(0.001);
		RETURN bench.used() / 1e6;
	END IF;
	RETURN 1000 * extract(epoch FROM clock_timestamp());
END
$$;

-- Measure a subject: in ns per row where rows are given, else in ms. With a
-- baseline, a contender of the subject, results are the excess over it in the
-- same round, and its own is left out. "processor": this process's time on one.
CREATE PROCEDURE measure(subject text, rounds integer, baseline text DEFAULT NULL, processor boolean DEFAULT false)
LANGUAGE plpgsql AS $$
DECLARE
	c record;
	begun double precision;
	ms double precision;
BEGIN
	CREATE TEMPORARY TABLE IF NOT EXISTS measured
		(contender text, round integer, ms double precision, rows bigint, place integer);
	TRUNCATE measured;
	COMMIT;
	-- round 0 warms up and is not kept
	FOR round IN 0 .. rounds LOOP
		FOR c IN
			SELECT b.*
			FROM bench.contender AS b
			WHERE b.subject = measure.subject
			ORDER BY random()
		LOOP
			IF c.before IS NOT NULL THEN
				EXECUTE c.before;
				COMMIT;
			END IF;
			begun := bench.ms(processor);
			EXECUTE c.statement;
			COMMIT;
			ms := bench.ms(processor) - begun;
			IF round > 0 THEN
				INSERT INTO measured VALUES (c.contender, round, ms, c.rows, c.place);
			END IF;
		END LOOP;
	END LOOP;
	INSERT INTO bench.result (subject, contender, round, value, unit)
	SELECT measure.subject, m.contender, m.round,
		   (m.ms - coalesce(b.ms * m.rows / b.rows, 0)) * coalesce(1e6 / m.rows, 1),
		   CASE WHEN m.rows IS NULL THEN 'ms' ELSE 'ns' END
	FROM measured AS m
		LEFT JOIN measured AS b ON b.contender = baseline AND b.round = m.round
	WHERE m.contender IS DISTINCT FROM baseline
	ORDER BY m.place, m.round;
	COMMIT;
END
$$;
