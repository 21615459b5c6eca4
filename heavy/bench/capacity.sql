-- heavy/bench/capacity.sql
--		6. The share of its format's IDs that a saturated node issues.
--
-- A node is driven until it runs ahead of the clock by the whole allowance and has
-- to wait, then measured between two of its IDs: IDs generated, divided by
-- all between the two. So no clock is in it but the node's own.

SET search_path = bench, public;

-- Sizes of 1 and 2 have room for more than one session may be able to generate:
-- then the clock runs ahead of the node, and the processor limits the share.
CREATE PROCEDURE measure_capacity(seconds double precision) LANGUAGE plpgsql AS $$
DECLARE
	first bigint;
	last bigint;
	capacity bigint;
	batch integer;
	generated bigint;
	stop timestamptz;
BEGIN
	FOR size IN 1 .. 16 LOOP
		-- all ones but for the last bit: none is a prefix of another
		EXECUTE format('SET scru64.node_spec = ''%s/%s''', (1 << size) - 2, size);
		capacity := 1 << (24 - size);
		batch := greatest(capacity / 8, 1);

		-- until it waits, or for long enough to, if it could
		stop := clock_timestamp() + 2 * seconds * interval '1 second';
		LOOP
			PERFORM count(*) FROM (SELECT scru64_generate(batch) OFFSET 0) AS s;
			EXIT WHEN clock_timestamp() > stop;
		END LOOP;

		first := scru64_generate()::bigint;
		generated := 0;
		stop := clock_timestamp() + seconds * interval '1 second';
		LOOP
			PERFORM count(*) FROM (SELECT scru64_generate(batch) OFFSET 0) AS s;
			generated := generated + batch;
			EXIT WHEN clock_timestamp() > stop;
		END LOOP;
		last := scru64_generate()::bigint;
		generated := generated + 1;

		INSERT INTO result (subject, contender, round, value, unit)
		VALUES ('capacity used', 'node_id_size ' || size, 1,
				generated / (((last >> 24) - (first >> 24)) * capacity::double precision
							 + (last & (capacity - 1)) - (first & (capacity - 1))), 'share');
		COMMIT;
	END LOOP;
END
$$;

CALL measure_capacity(:capacity_seconds);
