-- plain/scru64.sql
--		SCRU64 IDs, version 1.0, where extensions cannot be installed: PostgreSQL 13 or later,
--		no superuser, plpgsql only.
--
--	psql -1 -v ON_ERROR_STOP=1 -f plain/scru64.sql
--
-- Makes the schema scru64_plain, and nothing elsewhere. IDs are bigint, with the bits of the
-- extension's type scru64. Run again, it replaces its functions, and keeps its node and its
-- last ID.
--
-- The sequence "last" holds the last ID of this database: its timestamp, and its counter in place
-- of node_id and counter. PostgreSQL writes it to the WAL before a row that has the ID, and no
-- rollback undoes nextval(). So neither a crash, a failover nor a restore generates a surviving
-- row's ID again, whatever the clock does. nextval() is one step for all sessions.
--
-- set_node() can be rolled back, and leaves the node before it, whose IDs must go on above those
-- of the transaction that was rolled back: clients may have seen them. So the node and "last" change
-- together: set_node() writes both anew, and a rollback, also one to a savepoint, returns both.
-- What no rollback returns is the sequence "tick": the last tick that has had IDs of any node.
-- move_to() takes each tick from there, and once only. So a tick's IDs are all of one set_node(),
-- and nodes that overlap have no tick in common.

-- Who owns the schema can do what its users can.
DO $$
BEGIN
	IF EXISTS (SELECT FROM pg_namespace WHERE nspname = 'scru64_plain' AND nspowner <> current_user::regrole) THEN
		RAISE 'schema scru64_plain is not yours' USING ERRCODE = '42501',
			DETAIL = 'Its owner could have whoever generates an ID run functions of his.',
			HINT = 'Run this as its owner, or drop it.';
	END IF;
END
$$;

CREATE SCHEMA IF NOT EXISTS scru64_plain;
COMMENT ON SCHEMA scru64_plain IS 'SCRU64 IDs without an extension, version 1.0';

-- timestamp << 24 | counter. The counter is below 2^23: between two ticks there is room for
-- what sessions draw beyond it.
CREATE SEQUENCE IF NOT EXISTS scru64_plain.last AS bigint MAXVALUE 4738381338321616895;

CREATE SEQUENCE IF NOT EXISTS scru64_plain.tick AS bigint MINVALUE 0;

-- The node: node_id_size << 24 | node_id. set_node() writes the function anew, and only the owner
-- may. The planner makes a constant of it.
DO $$
BEGIN
	IF to_regprocedure('scru64_plain.node()') IS NULL THEN
		CREATE FUNCTION scru64_plain.node() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT NULL::integer';
	END IF;
END
$$;


-- ---------------------------------------------------------------------------
-- Text
-- ---------------------------------------------------------------------------

-- 22003 outside the range of IDs
CREATE OR REPLACE FUNCTION scru64_plain.text(id bigint) RETURNS text
	LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	rest bigint := id;
	result text := '';
BEGIN
	IF id NOT BETWEEN 0 AND 4738381338321616895 THEN
		RAISE 'value "%" is out of range for type scru64', id USING ERRCODE = '22003',
			DETAIL = 'A scru64 is between 0 and 4738381338321616895.',
			HINT = 'IDs are what scru64_plain.generate() returns.';
	END IF;
	FOR digit IN 1 .. 12 LOOP
		result := substr('0123456789abcdefghijklmnopqrstuvwxyz', (rest % 36)::integer + 1, 1) || result;
		rest := rest / 36;
	END LOOP;
	RETURN result;
END
$$;

-- 22P02 for what is no ID
CREATE OR REPLACE FUNCTION scru64_plain.id(text text) RETURNS bigint
	LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	digits CONSTANT text := lower(text COLLATE "C");
	result bigint := 0;
BEGIN
	IF digits COLLATE "C" !~ '^[0-9a-z]{12}$' THEN
		RAISE 'invalid input syntax for type scru64: "%"', text USING ERRCODE = '22P02',
			DETAIL = 'A scru64 is written as exactly 12 digits, each 0-9 or a-z.',
			HINT = 'IDs look like 0u2r85hm2pt3.';
	END IF;
	FOR digit IN 1 .. 12 LOOP
		result := result * 36 + strpos('0123456789abcdefghijklmnopqrstuvwxyz' COLLATE "C", substr(digits, digit, 1)) - 1;
	END LOOP;
	RETURN result;
END
$$;


-- ---------------------------------------------------------------------------
-- Time
--
-- A tick is 256 ms, a day 337,500 ticks. All is exact to the last tick; on PostgreSQL 13, where
-- extract() is of double precision, min() to the year 2255.
-- ---------------------------------------------------------------------------

-- The start of the ID's tick
CREATE OR REPLACE FUNCTION scru64_plain.timestamp(id bigint) RETURNS timestamptz
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT timestamptz 'epoch' + (id >> 24) / 337500 * interval '24 hours' + (id >> 24) % 337500 * interval '256 ms'
$$;

-- The smallest ID of this time or later; any time is taken
CREATE OR REPLACE FUNCTION scru64_plain.min(ts timestamptz) RETURNS bigint
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE
		WHEN ts <= timestamptz 'epoch' THEN 0
		WHEN ts > scru64_plain.timestamp(4738381338321616895) THEN 4738381338321616895
		ELSE ((extract(epoch FROM ts) * 1000000)::bigint + 255999) / 256000 << 24
	END
$$;


-- ---------------------------------------------------------------------------
-- Generator
-- ---------------------------------------------------------------------------

-- Moves "last" to that tick, or to a later one if a set_node() that was rolled back has had IDs of
-- that tick. Returns the first value; 0 if "last" is at that tick, null if another session moves
-- "last" now.
--
-- Nothing in the CASE waits, or can be cancelled: nextval() and pg_sequence_last_value() have locked
-- the sequences in this transaction. So no session leaves the advisory lock behind. While one has
-- the lock, stopped in the middle, what others draw is of the tick before, which has room for it.
--
-- "tick" is read before the advisory lock is held. Only move_to() changes "tick" meanwhile, and then
-- "last" has moved, too: to this tick or a later one, and the answer is 0, or to an earlier one.
CREATE OR REPLACE FUNCTION scru64_plain.move_to(tick bigint, counter bigint) RETURNS bigint
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	first CONSTANT bigint := greatest(tick, pg_sequence_last_value('scru64_plain.tick') + 1) << 24 | counter;
	key CONSTANT integer := 'scru64_plain.last'::regclass::oid;
BEGIN
	RETURN CASE WHEN pg_try_advisory_lock(640064, key) THEN
		CASE CASE WHEN pg_sequence_last_value('scru64_plain.last') < tick << 24
				  THEN CASE WHEN setval('scru64_plain.tick', first >> 24) > 0 THEN setval('scru64_plain.last', first) END
				  ELSE 0 END
		WHEN first THEN CASE WHEN pg_advisory_unlock(640064, key) THEN first END
		ELSE CASE WHEN pg_advisory_unlock(640064, key) THEN 0 END
		END
	END;
EXCEPTION WHEN OTHERS OR query_canceled THEN
	PERFORM pg_advisory_unlock(640064, key) FROM pg_locks
	WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND (classid, objid) = (640064, key);
	RAISE;
END
$$;

-- The next ID. Up to 39 ticks, 10 s, ahead of the clock it goes on in order; up to twice that it
-- waits; beyond, it fails with 58000.
--
-- In a new tick the counter begins at random, the top bit 0, so that no ID tells how many there
-- were before; after a full tick it begins at 0.
CREATE OR REPLACE FUNCTION scru64_plain.generate() RETURNS bigint
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	-- drawn before the node is read: from then on set_node() waits
	drawn bigint := nextval('scru64_plain.last');
	node CONSTANT integer := scru64_plain.node();
	counter_size CONSTANT integer := 24 - (node >> 24);
	max_counter CONSTANT integer := (1 << counter_size) - 1;
	allowance CONSTANT integer := 39;
	tick bigint;		-- of what was drawn
	next_tick bigint;	-- of the ID
	now bigint;			-- in ticks
	first bigint;		-- of the next tick
BEGIN
	IF node IS NULL THEN
		RAISE 'node spec is not set' USING ERRCODE = '55000',
			DETAIL = 'There is no node to generate IDs for.',
			HINT = 'Write for NODE a number from 0 to 255 that nobody else has: SELECT scru64_plain.set_node(''NODE/8'');';
	END IF;
	LOOP
		tick := drawn >> 24;
		now := floor(date_part('epoch', clock_timestamp()) * 3.90625);
		IF tick >= now AND drawn & 16777215 <= max_counter THEN
			next_tick := tick;
		ELSE
			next_tick := greatest(now, tick + 1);
		END IF;

		IF next_tick > now + 2 * allowance THEN
			RAISE 'the clock is too far behind the last ID of node %/%', node & 16777215, node >> 24 USING ERRCODE = '58000',
				DETAIL = format('The clock reads %s. The last ID is of %s. The next ID would be ahead by more than 20 seconds.',
								clock_timestamp(), scru64_plain.timestamp(drawn)),
				HINT = 'Correct the clock, or wait until it has caught up.';
		ELSIF next_tick > now + allowance THEN
			PERFORM pg_sleep((next_tick - now - allowance) * 0.256);
		ELSIF next_tick = tick THEN
			RETURN (tick << 24) + ((node & 16777215) << counter_size) + (drawn & max_counter);
		ELSE
			first := scru64_plain.move_to(next_tick, CASE WHEN next_tick > now THEN 0 ELSE floor(random() * (max_counter + 1) / 2) END::integer);
			IF first IS NULL THEN
				PERFORM pg_sleep(0.001);
			ELSIF first = 0 THEN
				drawn := nextval('scru64_plain.last');
			ELSE
				drawn := first;
			END IF;
		END IF;
	END LOOP;
END
$$;


-- ---------------------------------------------------------------------------
-- Node
-- ---------------------------------------------------------------------------

-- The node spec; null if there is none
CREATE OR REPLACE FUNCTION scru64_plain.node_spec() RETURNS text
	LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT (scru64_plain.node() & 16777215) || '/' || (scru64_plain.node() >> 24)
$$;

-- 22023 for what is no node spec. IDs go on in a later tick than the last one's, and node_prev's;
-- if this is rolled back, those of the node before go on in a later tick, too.
CREATE OR REPLACE FUNCTION scru64_plain.set_node(node_spec text) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	part CONSTANT text[] := regexp_match(node_spec COLLATE "C", '^([0-9]{1,8}|0[xX][0-9a-fA-F]{1,6}|[0-9a-zA-Z]{12})/([0-9]{1,3})$');
	node_id_size CONSTANT integer := part[2];
	node_prev bigint := 0;
	node_id bigint;
	wrong text;
BEGIN
	IF part IS NULL THEN
		wrong := 'A node spec is node_id/node_id_size, where node_id is decimal, hexadecimal after "0x", or a previous ID of 12 digits.';
	ELSIF node_id_size NOT BETWEEN 1 AND 23 THEN
		wrong := 'The node_id_size, after the slash, must be between 1 and 23.';
	ELSIF length(part[1]) = 12 THEN
		node_prev := scru64_plain.id(part[1]);
		node_id := (node_prev & 16777215) >> 24 - node_id_size;
	ELSIF lower(part[1]) LIKE '0x%' THEN
		node_id := ('x' || lpad(substr(part[1], 3), 8, '0'))::bit(32)::bigint;
	ELSE
		node_id := part[1];
	END IF;
	IF node_id >> node_id_size > 0 THEN
		wrong := 'The node_id, before the slash, does not fit in as many bits as the node_id_size, after it, says.';
	END IF;
	IF scru64_plain.timestamp(node_prev) > clock_timestamp() + interval '10 s' THEN
		wrong := 'The previous ID is more than 10 seconds ahead of the clock.';
	END IF;
	IF wrong IS NOT NULL THEN
		RAISE 'invalid node spec "%"', node_spec USING ERRCODE = '22023', DETAIL = wrong,
			HINT = 'Examples: 42/8, 0xb00/12, 0u2r85hm2pt3/16.';
	END IF;

	-- Waits for the transactions that have drawn, and lets no other draw until this one ends.
	ALTER SEQUENCE scru64_plain.last OWNED BY NONE;
	PERFORM setval('scru64_plain.tick', greatest(pg_sequence_last_value('scru64_plain.tick'), node_prev >> 24));
	-- Past all counters of its tick, "last" has no ID before move_to(). setval() moves the "last" that
	-- a rollback returns to, RESTART the one that a commit leaves.
	EXECUTE format('ALTER SEQUENCE scru64_plain.last RESTART %s',
				   (SELECT setval('scru64_plain.last', last_value >> 24 << 24 | 8388608) FROM scru64_plain.last));
	EXECUTE format('CREATE OR REPLACE FUNCTION scru64_plain.node() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS ''SELECT %s''',
				   (node_id_size << 24) + node_id);
END
$$;

COMMENT ON SEQUENCE scru64_plain.last IS 'the last ID of this database, without its node';
COMMENT ON SEQUENCE scru64_plain.tick IS 'the last tick that has had IDs of any node';
COMMENT ON FUNCTION scru64_plain.node() IS 'node_id_size << 24 | node_id';
COMMENT ON FUNCTION scru64_plain.node_spec() IS 'the node, as node_id/node_id_size';
COMMENT ON FUNCTION scru64_plain.move_to(bigint, bigint) IS 'for generate(): move the sequence to a later tick';
COMMENT ON FUNCTION scru64_plain.generate() IS 'generate the next ID';
COMMENT ON FUNCTION scru64_plain.set_node(text) IS 'set the node that generate() makes IDs for';
COMMENT ON FUNCTION scru64_plain.text(bigint) IS 'ID as 12 Base36 digits';
COMMENT ON FUNCTION scru64_plain.id(text) IS 'ID of 12 Base36 digits';
COMMENT ON FUNCTION scru64_plain.timestamp(bigint) IS 'time of an ID';
COMMENT ON FUNCTION scru64_plain.min(timestamptz) IS 'smallest ID of this time or later';
