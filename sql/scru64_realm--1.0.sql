/* sql/scru64_realm--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION scru64_realm" to load this file. \quit


-- ---------------------------------------------------------------------------
-- Schema
--
-- It is created here and so belongs to the extension: a schema of this name
-- that is there already, perhaps with functions for the unwary in it, is an
-- error; DROP EXTENSION takes it along; and pg_dump leaves it to CREATE
-- EXTENSION. The control file says pg_catalog only because CREATE EXTENSION
-- wants a schema that exists. Nothing is put there.
--
-- This script may run with more rights than its caller has. What it makes is
-- the caller's all the same, so that the functions, which run with their owner's
-- rights, have no more of them than that.
-- ---------------------------------------------------------------------------

CREATE SCHEMA scru64_realm AUTHORIZATION @extowner@;

COMMENT ON SCHEMA scru64_realm IS 'node specs of a SCRU64 realm, leased';


-- ---------------------------------------------------------------------------
-- The ledger: who had which node and when
--
-- A node owns a range of node_ctr values, from its node_id with a counter of 0
-- to just below the next node_id. Two leases may share any of it only at
-- different times. The exclusion constraint says that, and no function below can
-- break it.
--
-- Extension scru64 may be in any schema and may be moved to another one. The type
-- of last_id is bound here, and the function that parses a node spec; from here on
-- they are called ledger.last_id%TYPE and node_ctr_range(), and IDs are taken apart
-- as bigint.
-- ---------------------------------------------------------------------------

CREATE TABLE scru64_realm.ledger (
	lease_id pg_catalog.uuid NOT NULL,
	node_id pg_catalog.int4 NOT NULL,
	node_id_size pg_catalog.int4 NOT NULL,
	holder pg_catalog.text NOT NULL,
	granted_at pg_catalog.timestamptz NOT NULL,
	expires_at pg_catalog.timestamptz NOT NULL,
	released_at pg_catalog.timestamptz,
	occupied_until pg_catalog.timestamptz NOT NULL,
	last_id scru64,
	last_id_final pg_catalog.bool NOT NULL DEFAULT false,
	parent pg_catalog.uuid
);

CREATE FUNCTION scru64_realm.node_ctr_range(node_spec pg_catalog.text) RETURNS pg_catalog.int4range
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
	RETURN (SELECT pg_catalog.int4range(
				n.node_id OPERATOR(pg_catalog.<<) (24 OPERATOR(pg_catalog.-) n.node_id_size),
				(n.node_id OPERATOR(pg_catalog.+) 1) OPERATOR(pg_catalog.<<) (24 OPERATOR(pg_catalog.-) n.node_id_size))
			FROM scru64_parse_node_spec(node_spec) AS n);

COMMENT ON FUNCTION scru64_realm.node_ctr_range(pg_catalog.text) IS 'node_ctr values of the node of a node spec';

-- No other name from here on may mean anything but PostgreSQL's own.
SET LOCAL search_path = pg_catalog, pg_temp;

ALTER TABLE scru64_realm.ledger
	ALTER lease_id SET DEFAULT gen_random_uuid(),
	ADD node_ctr_range int4range NOT NULL GENERATED ALWAYS AS
		(int4range(node_id << (24 - node_id_size), (node_id + 1) << (24 - node_id_size))) STORED,
	ADD occupied tstzrange NOT NULL GENERATED ALWAYS AS
		(tstzrange(granted_at, occupied_until)) STORED,
	ADD PRIMARY KEY (lease_id),
	ADD CONSTRAINT ledger_never_twice EXCLUDE USING gist (node_ctr_range WITH &&, occupied WITH &&),
	ADD CHECK (node_id_size BETWEEN 1 AND 23),
	ADD CHECK (node_id BETWEEN 0 AND (1 << node_id_size) - 1),
	ADD CHECK (char_length(holder) BETWEEN 1 AND 200),
	ADD CHECK (isfinite(granted_at)),
	ADD CHECK (granted_at < expires_at),
	-- by release, or by a split
	ADD CHECK (released_at BETWEEN granted_at AND expires_at),
	-- an end, and after it the guard time, except for a lease that was split
	ADD CHECK (coalesce(released_at, expires_at) <= occupied_until),
	ADD CHECK (((last_id::bigint) & 16777215)::integer <@ node_ctr_range),
	ADD CHECK ((last_id::bigint) >> 24 > 0),
	ADD CHECK (NOT last_id_final OR (last_id IS NOT NULL AND released_at IS NOT NULL)),
	ADD CHECK (parent <> lease_id);

-- What is occupied now, out of a long history
CREATE INDEX ledger_occupied_until ON scru64_realm.ledger (occupied_until) INCLUDE (node_ctr_range);

COMMENT ON TABLE scru64_realm.ledger IS 'all leases, with those that have ended; lease_id is the holder''s secret';
COMMENT ON COLUMN scru64_realm.ledger.lease_id IS 'secret that renews, releases and splits the lease';
COMMENT ON COLUMN scru64_realm.ledger.node_id IS 'node_id of the node';
COMMENT ON COLUMN scru64_realm.ledger.node_id_size IS 'bits of the node_id';
COMMENT ON COLUMN scru64_realm.ledger.holder IS 'who has it, as given to lease()';
COMMENT ON COLUMN scru64_realm.ledger.granted_at IS 'start of the lease';
COMMENT ON COLUMN scru64_realm.ledger.expires_at IS 'end of the lease, unless it is renewed or released before';
COMMENT ON COLUMN scru64_realm.ledger.released_at IS 'when it was released or split; null if it was not';
COMMENT ON COLUMN scru64_realm.ledger.occupied_until IS 'time from which the node may be leased again: end and guard time';
COMMENT ON COLUMN scru64_realm.ledger.last_id IS 'ID after which the node continues; null if none is known';
COMMENT ON COLUMN scru64_realm.ledger.last_id_final IS 'last_id was told when the lease ended: there are no later ones';
COMMENT ON COLUMN scru64_realm.ledger.parent IS 'lease that was split into this one; it may have been pruned since';
COMMENT ON COLUMN scru64_realm.ledger.node_ctr_range IS 'node_ctr values of the node';
COMMENT ON COLUMN scru64_realm.ledger.occupied IS 'when nobody else may have the node';
COMMENT ON CONSTRAINT ledger_never_twice ON scru64_realm.ledger
	IS 'two leases share node_ctr values at different times only';

-- Whoever grants a lease holds a lock on this table. A table of the owner's, and
-- not an advisory lock: anybody could take that.
CREATE TABLE scru64_realm.allocator ();

COMMENT ON TABLE scru64_realm.allocator IS 'empty; locked by whoever grants a lease';


-- ---------------------------------------------------------------------------
-- Settings
--
-- A table, because every caller could SET a parameter. It has no row as long as
-- the defaults hold, so that a dump can be restored into a new extension.
-- ---------------------------------------------------------------------------

CREATE TABLE scru64_realm.settings (
	only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
	guard interval NOT NULL CHECK (guard BETWEEN '1 second' AND '1 day')
);

COMMENT ON TABLE scru64_realm.settings IS 'settings of the realm that are not the default; see set_guard()';
COMMENT ON COLUMN scru64_realm.settings.only_row IS 'true: there is one row at most';
COMMENT ON COLUMN scru64_realm.settings.guard IS 'time from the end of a lease to the next one of the same node';

-- pg_dump includes what is in them.
SELECT pg_extension_config_dump('scru64_realm.ledger', '');
SELECT pg_extension_config_dump('scru64_realm.settings', '');


-- ---------------------------------------------------------------------------
-- What the functions have in common
--
-- For the owner only, who calls them from within the functions that are granted.
--
-- All functions that read or write have a search_path of their own. TimeZone is
-- set so that a day has 24 hours, whoever asks.
-- ---------------------------------------------------------------------------

-- Not now(): a lease that is taken late in a transaction begins late.
CREATE FUNCTION scru64_realm.clock() RETURNS timestamptz
	LANGUAGE sql VOLATILE PARALLEL SAFE
	RETURN clock_timestamp();

COMMENT ON FUNCTION scru64_realm.clock() IS 'the time, for everything here';

CREATE FUNCTION scru64_realm.guard() RETURNS interval
	LANGUAGE plpgsql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RETURN coalesce((SELECT s.guard FROM scru64_realm.settings AS s), '30 seconds');
END
$$;

COMMENT ON FUNCTION scru64_realm.guard() IS 'guard time of the realm';

-- interval has an infinity only from PostgreSQL 17 on, so a thousand years mean
-- the same. Null does not: it is what a forgotten variable is.
CREATE FUNCTION scru64_realm.expiry(since timestamptz, ttl interval) RETURNS timestamptz
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
	SET TimeZone = 'UTC'
AS $$
BEGIN
	IF ttl >= interval '1000 years' THEN
		RETURN 'infinity';
	ELSIF ttl > interval '0' AND since + ttl > since THEN
		RETURN since + ttl;
	END IF;
	RAISE EXCEPTION 'invalid ttl: %', coalesce(ttl::text, 'null')
		USING ERRCODE = 'invalid_parameter_value',
			DETAIL = 'It is how long the lease lasts: a time greater than 0.',
			HINT = 'For a lease that does not expire, give 1000 years or more; from PostgreSQL 17 on also infinity.';
END
$$;

COMMENT ON FUNCTION scru64_realm.expiry(timestamptz, interval) IS 'end of a lease that lasts for ttl';

-- The timestamp of IDs that are generated at a time: in ticks of 256 ms since 1970
CREATE FUNCTION scru64_realm.tick(at timestamptz) RETURNS bigint
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RETURN floor(extract(epoch FROM at) * 1000 / 256);
END
$$;

COMMENT ON FUNCTION scru64_realm.tick(timestamptz) IS 'tick of 256 ms that holds a time';

-- A lease that is not acknowledged until it is on disk cannot be forgotten in a
-- crash and be granted again. If the server has synchronous standbys, it is on
-- their disks, too.
CREATE FUNCTION scru64_realm.commit_durably() RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF current_setting('synchronous_commit') IN ('off', 'local', 'remote_write') THEN
		PERFORM set_config('synchronous_commit', 'on', true);
	END IF;
END
$$;

COMMENT ON FUNCTION scru64_realm.commit_durably()
	IS 'have the transaction on disk before its commit is acknowledged';

-- Lock an active lease and check the last ID that its holder tells. The error for
-- a lease that is unknown is that for one that has ended, or belongs to somebody
-- who would not give away its lease_id: they look the same from here.
CREATE FUNCTION scru64_realm.held(
	lease_id uuid,
	new_last_id scru64_realm.ledger.last_id%TYPE,
	OUT since timestamptz,
	OUT guard interval,
	OUT node_id_size integer,
	OUT node_ctr_range int4range,
	OUT holder text,
	OUT expires_at timestamptz,
	OUT last_id scru64_realm.ledger.last_id%TYPE
)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	SET TimeZone = 'UTC'
	SET DateStyle = 'ISO, YMD'
AS $$
DECLARE
	known scru64_realm.ledger%ROWTYPE;
	clock timestamptz;
BEGIN
	IF held.lease_id IS NULL THEN
		RAISE EXCEPTION 'lease_id must not be null'
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = 'It says which lease is meant, and that the caller holds it.',
				HINT = 'It is what scru64_realm.lease() returned as lease_id.';
	END IF;

	-- first the lock, then the time
	SELECT * INTO known FROM scru64_realm.ledger AS l WHERE l.lease_id = held.lease_id FOR UPDATE;
	clock := scru64_realm.clock();
	IF known.lease_id IS NULL OR known.released_at IS NOT NULL OR known.expires_at <= clock THEN
		PERFORM scru64_realm.raise_not_active(held.lease_id);
	END IF;

	-- A clock that went back after the lease was granted
	since := greatest(clock, known.granted_at);
	guard := scru64_realm.guard();
	node_id_size := known.node_id_size;
	node_ctr_range := known.node_ctr_range;
	holder := known.holder;
	expires_at := known.expires_at;
	last_id := coalesce(new_last_id, known.last_id);

	IF NOT (last_id::bigint & 16777215)::integer <@ node_ctr_range OR last_id::bigint >> 24 = 0 THEN
		RAISE EXCEPTION 'ID % is not of this lease', last_id
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = format('The lease is of node %s/%s.', known.node_id, node_id_size),
				HINT = 'Give the last ID that was generated with this lease''s node spec.';
	ELSIF last_id::bigint < known.last_id::bigint THEN
		RAISE EXCEPTION 'ID % is not the last one of this lease', last_id
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = format('ID %s is known already, as the one given before or as the one that the lease began after.',
								known.last_id),
				HINT = 'Give the last ID that was generated with this lease''s node spec.';
	ELSIF new_last_id IS NOT NULL
		AND to_timestamp((last_id::bigint >> 24) * 0.256::float8) > clock + guard THEN
		-- Whoever has the node next could not generate until then.
		RAISE EXCEPTION 'ID % is too far ahead of the clock', last_id
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = format('Its time is %s, the realm''s clock is at %s, and the guard time is %s.',
								to_timestamp((last_id::bigint >> 24) * 0.256::float8), clock, guard),
				HINT = 'Check the clocks of both machines, then try again.';
	END IF;
END
$$;

COMMENT ON FUNCTION scru64_realm.held
	IS 'lock an active lease, and check the last ID told by its holder';

CREATE FUNCTION scru64_realm.raise_not_active(lease_id uuid) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RAISE EXCEPTION 'lease is not active'
		USING ERRCODE = 'object_not_in_prerequisite_state',
			DETAIL = format('There is no active lease with lease_id %s: it is unknown, has expired, or was released or split.',
							lease_id),
			HINT = 'A lease that has ended is not revived. Stop generating, and get a new one from scru64_realm.lease().';
END
$$;

COMMENT ON FUNCTION scru64_realm.raise_not_active(uuid) IS 'error for a lease that is not active';


-- ---------------------------------------------------------------------------
-- Leases
-- ---------------------------------------------------------------------------

CREATE FUNCTION scru64_realm.lease(
	node_id_size integer,
	holder text,
	ttl interval DEFAULT '1 day',
	node_id integer DEFAULT NULL,
	within text DEFAULT NULL,
	OUT lease_id uuid,
	OUT node_spec text,
	OUT expires_at timestamptz
)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp
	SET TimeZone = 'UTC'
	SET DateStyle = 'ISO, YMD'
	SET lock_timeout = '10s'
AS $$
#variable_conflict error
DECLARE
	attempts CONSTANT integer := 10;
	guard interval;
	block integer;			-- node_ctr values of a node of this size
	place int4range := int4range(0, 16777216);
	wanted int4range;
	wanted_start integer;
	busy_until timestamptz;
	clock timestamptz;
	last_id scru64_realm.ledger.last_id%TYPE;
BEGIN
	IF lease.node_id_size IS NULL OR lease.node_id_size NOT BETWEEN 1 AND 23 THEN
		RAISE EXCEPTION 'invalid node_id_size: %', coalesce(lease.node_id_size::text, 'null')
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = 'A node_id has 1 to 23 bits.',
				HINT = 'Few bits leave many for the counter; 8 are a good start.';
	END IF;
	block := 1 << (24 - lease.node_id_size);
	IF lease.holder IS NULL OR char_length(lease.holder) NOT BETWEEN 1 AND 200 THEN
		RAISE EXCEPTION 'invalid holder: %', coalesce(char_length(lease.holder) || ' characters', 'null')
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = 'A holder is a text of 1 to 200 characters.',
				HINT = 'Name the server or application, so that others know whose lease it is.';
	END IF;
	IF lease.within IS NOT NULL THEN
		place := scru64_realm.node_ctr_range(lease.within);
		IF upper(place) - lower(place) < block THEN
			RAISE EXCEPTION 'a node with a node_id_size of % does not fit into %', lease.node_id_size, lease.within
				USING ERRCODE = 'invalid_parameter_value',
					DETAIL = format('It has %s node_ctr values, and %s has %s.',
									block, lease.within, upper(place) - lower(place)),
					HINT = 'Ask for a greater node_id_size.';
		END IF;
	END IF;
	IF lease.node_id IS NOT NULL THEN
		IF lease.node_id NOT BETWEEN 0 AND (1 << lease.node_id_size) - 1 THEN
			RAISE EXCEPTION 'invalid node_id: %', lease.node_id
				USING ERRCODE = 'invalid_parameter_value',
					DETAIL = format('A node_id of %s bits is 0 to %s.', lease.node_id_size, (1 << lease.node_id_size) - 1),
					HINT = 'Leave node_id out to get one that is free.';
		END IF;
		wanted := int4range(lease.node_id * block, (lease.node_id + 1) * block);
		IF NOT wanted <@ place THEN
			RAISE EXCEPTION 'node %/% is not within %', lease.node_id, lease.node_id_size, lease.within
				USING ERRCODE = 'invalid_parameter_value',
					DETAIL = format('A node_id of %s bits within it is %s to %s.', lease.node_id_size,
									lower(place) / block, upper(place) / block - 1),
					HINT = 'Leave node_id out to get one that is free.';
		END IF;
	END IF;
	PERFORM scru64_realm.expiry(scru64_realm.clock(), ttl);

	-- A snapshot that is older than the wait for others does not show what they have
	-- leased, or where they have ended.
	IF current_setting('transaction_isolation') NOT LIKE 'read %' THEN
		RAISE EXCEPTION 'cannot grant a lease in a transaction with isolation level %', current_setting('transaction_isolation')
			USING ERRCODE = 'active_sql_transaction',
				DETAIL = 'It does not see what others have committed since it began.',
				HINT = 'Use isolation level read committed.';
	END IF;

	-- One at a time. What is read from here on was committed by everybody before.
	BEGIN
		LOCK TABLE scru64_realm.allocator IN EXCLUSIVE MODE;
	EXCEPTION WHEN lock_not_available THEN
		RAISE EXCEPTION 'could not grant a lease within 10 seconds'
			USING ERRCODE = 'lock_not_available',
				DETAIL = 'Another transaction that has taken a lease is still open.',
				HINT = 'Try again. Whoever takes a lease should commit at once.';
	END;
	PERFORM scru64_realm.commit_durably();
	guard := scru64_realm.guard();

	FOR attempt IN 1 .. attempts LOOP
		clock := scru64_realm.clock();
		expires_at := scru64_realm.expiry(clock, ttl);

		-- What is occupied later is not free either: the clock may have gone back.
		IF lease.node_id IS NOT NULL THEN
			SELECT max(l.occupied_until) INTO busy_until
			FROM scru64_realm.ledger AS l
			WHERE l.node_ctr_range && wanted AND l.occupied && tstzrange(clock, NULL);
			IF busy_until IS NOT NULL THEN
				RAISE EXCEPTION 'node %/% is not free', lease.node_id, lease.node_id_size
					USING ERRCODE = 'object_in_use',
						DETAIL = CASE WHEN isfinite(busy_until)
							THEN format('It, or a part of it, is occupied until %s.', busy_until)
							ELSE 'It, or a part of it, is occupied by a lease that does not expire.' END,
						HINT = 'Leave node_id out to get one that is free.';
			END IF;
		ELSE
			-- Best fit. In a gap of the free node_ctr values, a and b are the first
			-- and the last place where a block of this size could begin or end. The
			-- free blocks of the gap, each as large as its alignment and the gap
			-- allow, grow from both ends to the middle. So the smallest one that is
			-- large enough begins at a or ends at b, and its size is the smaller one
			-- of the alignments of a and b. (0 is aligned to everything.)
			SELECT CASE WHEN (a & -a) BETWEEN 1 AND (b & -b) THEN a ELSE b - (b & -b) END AS start
			INTO wanted_start
			FROM (SELECT (lower(gap) + block - 1) & -block AS a, upper(gap) & -block AS b
				  FROM unnest(int4multirange(place) - coalesce(
						(SELECT range_agg(l.node_ctr_range)
						 FROM scru64_realm.ledger AS l
						 WHERE l.occupied_until > clock), '{}')) AS gap
				  -- each once, and not wherever a or b is written
				  OFFSET 0) AS ends
			WHERE a < b
			ORDER BY least(nullif(a & -a, 0), b & -b), start
			LIMIT 1;
			IF NOT FOUND THEN
				RAISE EXCEPTION 'realm is full'
					USING ERRCODE = 'configuration_limit_exceeded',
						DETAIL = format('No node_id of %s bits is free%s.', lease.node_id_size, ' within ' || lease.within),
						HINT = 'Ask for a greater node_id_size, or have leases released. See the view scru64_realm.capacity.';
			END IF;
			wanted := int4range(wanted_start, wanted_start + block);
		END IF;

		-- Continue above what earlier holders can have generated, whatever the next
		-- one's clock says: after the last ID that was told at the end, or else in
		-- the tick after the guard time, which none of their IDs is later than. After
		-- the last ID of another node, which may have had only a part of this one or
		-- more than that, it continues in a later tick. Leave out who ended more than a
		-- day ago: it takes a clock that is wrong by more than that to come to their
		-- ticks again. A spec that continues is never wrong, only longer.
		SELECT max(CASE WHEN l.last_id_final AND l.node_ctr_range = wanted THEN l.last_id::bigint
						ELSE greatest(l.last_id::bigint >> 24,
									  CASE WHEN NOT l.last_id_final THEN scru64_realm.tick(l.occupied_until) END)
							 << 24 | (upper(wanted) - 1) END)
		INTO last_id
		FROM scru64_realm.ledger AS l
		WHERE l.node_ctr_range && wanted AND l.occupied && tstzrange(clock - interval '1 day', NULL);

		BEGIN
			INSERT INTO scru64_realm.ledger AS l
				(node_id, node_id_size, holder, granted_at, expires_at, occupied_until, last_id)
			VALUES (lower(wanted) / block, lease.node_id_size, lease.holder, clock, lease.expires_at,
					lease.expires_at + guard, last_id)
			RETURNING l.lease_id,
				format('%s/%s', coalesce(l.last_id::text, l.node_id::text), l.node_id_size)
			INTO lease_id, node_spec;
			RETURN;
		EXCEPTION WHEN exclusion_violation THEN
			-- Somebody has renewed, and committed, a lease that had just ended: look
			-- again.
			IF attempt = attempts THEN
				RAISE EXCEPTION 'could not grant a lease due to concurrent renewals'
					USING ERRCODE = 'serialization_failure',
						DETAIL = format('In %s attempts, somebody else has renewed the lease of the node that looked free.', attempts),
						HINT = 'Try again.';
			END IF;
		WHEN lock_not_available THEN
			RAISE EXCEPTION 'could not grant a lease within 10 seconds'
				USING ERRCODE = 'lock_not_available',
					DETAIL = 'Another transaction that has renewed, released or split a lease of this node is still open.',
					HINT = 'Try again. Whoever renews a lease should commit at once.';
		END;
	END LOOP;
END
$$;

COMMENT ON FUNCTION scru64_realm.lease
	IS 'lease a node: a free one of this size, or this node_id, within a block if one is given';

CREATE FUNCTION scru64_realm.renew(
	lease_id uuid,
	ttl interval DEFAULT '1 day',
	last_id scru64_realm.ledger.last_id%TYPE DEFAULT NULL
) RETURNS timestamptz
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp
	SET TimeZone = 'UTC'
	SET DateStyle = 'ISO, YMD'
	SET lock_timeout = '10s'
AS $$
#variable_conflict error
DECLARE
	held record;
	new_expiry timestamptz;
BEGIN
	PERFORM scru64_realm.expiry(scru64_realm.clock(), ttl);
	SELECT * INTO held FROM scru64_realm.held(renew.lease_id, renew.last_id);
	new_expiry := scru64_realm.expiry(held.since, ttl);
	PERFORM scru64_realm.commit_durably();
	BEGIN
		UPDATE scru64_realm.ledger AS l
		SET expires_at = new_expiry, occupied_until = new_expiry + held.guard, last_id = held.last_id
		WHERE l.lease_id = renew.lease_id;
	EXCEPTION WHEN exclusion_violation THEN
		-- It had ended and somebody else has the node, by a clock that was ahead.
		PERFORM scru64_realm.raise_not_active(renew.lease_id);
	END;
	RETURN new_expiry;
END
$$;

COMMENT ON FUNCTION scru64_realm.renew IS 'let an active lease last for ttl from now on';

CREATE FUNCTION scru64_realm.release(
	lease_id uuid,
	last_id scru64_realm.ledger.last_id%TYPE DEFAULT NULL
) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp
	SET TimeZone = 'UTC'
	SET DateStyle = 'ISO, YMD'
	SET lock_timeout = '10s'
AS $$
#variable_conflict error
DECLARE
	held record;
BEGIN
	SELECT * INTO held FROM scru64_realm.held(release.lease_id, release.last_id);
	BEGIN
		UPDATE scru64_realm.ledger AS l
		SET released_at = held.since, occupied_until = held.since + held.guard, last_id = held.last_id,
			last_id_final = release.last_id IS NOT NULL
		WHERE l.lease_id = release.lease_id;
	EXCEPTION WHEN exclusion_violation THEN
		-- as in renew()
		PERFORM scru64_realm.raise_not_active(release.lease_id);
	END;
END
$$;

COMMENT ON FUNCTION scru64_realm.release IS 'end an active lease; the next one continues after last_id';

CREATE FUNCTION scru64_realm.split(
	INOUT lease_id uuid,
	node_id_size integer,
	last_id scru64_realm.ledger.last_id%TYPE DEFAULT NULL,
	OUT node_spec text,
	OUT expires_at timestamptz
) RETURNS SETOF record
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER ROWS 16
	SET search_path = pg_catalog, pg_temp
	SET TimeZone = 'UTC'
	SET DateStyle = 'ISO, YMD'
	SET lock_timeout = '10s'
AS $$
#variable_conflict error
DECLARE
	held record;
	block integer;
	last_tick bigint;
BEGIN
	IF split.node_id_size IS NULL OR split.node_id_size NOT BETWEEN 1 AND 23 THEN
		RAISE EXCEPTION 'invalid node_id_size: %', coalesce(split.node_id_size::text, 'null')
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = 'A node_id has 1 to 23 bits.',
				HINT = 'Give one that is greater than the lease''s.';
	END IF;
	block := 1 << (24 - split.node_id_size);
	SELECT * INTO held FROM scru64_realm.held(split.lease_id, split.last_id);
	IF split.node_id_size - held.node_id_size NOT BETWEEN 1 AND 12 THEN
		RAISE EXCEPTION 'cannot split a lease with a node_id_size of % into leases with a node_id_size of %',
				held.node_id_size, split.node_id_size
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = 'The new node_ids are longer, by 1 to 12 bits: 2 to 4096 leases come out of it.',
				HINT = 'To split into more, split what comes out of it.';
	END IF;
	PERFORM scru64_realm.commit_durably();

	-- No guard time: it is the same holder. But none of the new leases begins in a
	-- tick that the old one has come to, as far as that is known.
	last_tick := held.last_id::bigint >> 24;
	IF split.last_id IS NULL THEN
		last_tick := greatest(last_tick, scru64_realm.tick(held.since));
	END IF;
	BEGIN
		UPDATE scru64_realm.ledger AS l
		SET released_at = held.since, occupied_until = held.since, last_id = held.last_id,
			last_id_final = split.last_id IS NOT NULL
		WHERE l.lease_id = split.lease_id;
		RETURN QUERY
		INSERT INTO scru64_realm.ledger AS l
			(node_id, node_id_size, holder, granted_at, expires_at, occupied_until, last_id, parent)
		SELECT start / block, split.node_id_size, held.holder, held.since, held.expires_at, held.expires_at + held.guard,
			   (last_tick << 24 | (start + block - 1)), split.lease_id
		FROM generate_series(lower(held.node_ctr_range), upper(held.node_ctr_range) - 1, block) AS start
		ORDER BY start
		RETURNING l.lease_id, format('%s/%s', l.last_id, l.node_id_size), l.expires_at;
	EXCEPTION WHEN exclusion_violation THEN
		-- as in renew()
		PERFORM scru64_realm.raise_not_active(split.lease_id);
	END;
END
$$;

COMMENT ON FUNCTION scru64_realm.split IS 'turn an active lease into leases of longer node_ids inside it';


-- ---------------------------------------------------------------------------
-- For who runs the realm
--
-- The views tell who has what, and no lease_id. Members of pg_monitor may read
-- them, and therefore the clock.
-- ---------------------------------------------------------------------------

CREATE VIEW scru64_realm.leases WITH (security_barrier) AS
	SELECT l.node_id, l.node_id_size, l.node_id || '/' || l.node_id_size AS node, l.holder,
		   l.granted_at, l.expires_at, l.last_id
	FROM scru64_realm.ledger AS l, scru64_realm.clock() AS clock
	WHERE l.occupied_until > clock AND l.expires_at > clock AND l.released_at IS NULL
	ORDER BY l.node_ctr_range;

COMMENT ON VIEW scru64_realm.leases IS 'active leases, without their lease_ids';
COMMENT ON COLUMN scru64_realm.leases.node_id IS 'node_id of the node';
COMMENT ON COLUMN scru64_realm.leases.node_id_size IS 'bits of the node_id';
COMMENT ON COLUMN scru64_realm.leases.node IS 'both, as in a node spec';
COMMENT ON COLUMN scru64_realm.leases.holder IS 'who has it, as given to lease()';
COMMENT ON COLUMN scru64_realm.leases.granted_at IS 'start of the lease';
COMMENT ON COLUMN scru64_realm.leases.expires_at IS 'end of the lease, unless it is renewed or released before';
COMMENT ON COLUMN scru64_realm.leases.last_id IS 'last ID told by the holder, or that the lease began after; null if none is known';

CREATE VIEW scru64_realm.capacity WITH (security_barrier) AS
	WITH gap AS MATERIALIZED (
		SELECT gap
		FROM scru64_realm.clock() AS clock,
			 unnest(int4multirange(int4range(0, 16777216)) - coalesce(
				(SELECT range_agg(l.node_ctr_range)
				 FROM scru64_realm.ledger AS l
				 WHERE l.occupied_until > clock), '{}')) AS gap
	)
	SELECT size AS node_id_size,
		   coalesce(sum(greatest(0, (upper(gap) >> (24 - size)) -
									((lower(gap) + (1 << (24 - size)) - 1) >> (24 - size)))), 0) AS available
	FROM generate_series(1, 23) AS size LEFT JOIN gap ON true
	GROUP BY size
	ORDER BY size;

COMMENT ON VIEW scru64_realm.capacity IS 'how many nodes of each size could be leased now';
COMMENT ON COLUMN scru64_realm.capacity.node_id_size IS 'bits of the node_id';
COMMENT ON COLUMN scru64_realm.capacity.available IS 'nodes of this size that are free, if no others were leased';

CREATE FUNCTION scru64_realm.set_guard(guard interval) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict error
BEGIN
	IF set_guard.guard IS NULL OR set_guard.guard NOT BETWEEN interval '1 second' AND interval '1 day' THEN
		RAISE EXCEPTION 'invalid guard time: %', coalesce(set_guard.guard::text, 'null')
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = 'It is a time from 1 second to 1 day.',
				HINT = 'It has to cover the rollback allowance of the generators and the difference of their clocks.';
	END IF;
	-- in seconds, so that it is the same time whatever the calendar says
	INSERT INTO scru64_realm.settings AS s (guard)
	VALUES (make_interval(secs => extract(epoch FROM set_guard.guard)::float8))
	ON CONFLICT ON CONSTRAINT settings_pkey DO UPDATE SET guard = EXCLUDED.guard;
END
$$;

COMMENT ON FUNCTION scru64_realm.set_guard(interval)
	IS 'set the guard time, for leases that are granted, renewed or ended from now on';

-- As long as lease() may need to know where a lease ended, its row stays.
CREATE FUNCTION scru64_realm.prune(older_than interval) RETURNS bigint
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp
	SET TimeZone = 'UTC'
AS $$
#variable_conflict error
DECLARE
	clock timestamptz := scru64_realm.clock();
	pruned bigint;
BEGIN
	IF older_than IS NULL OR older_than < interval '0' THEN
		RAISE EXCEPTION 'invalid age: %', coalesce(older_than::text, 'null')
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = 'It is how long ago a lease must have ended for its row to be deleted: 0 or more.',
				HINT = 'For example: 90 days.';
	ELSIF older_than >= interval '1000 years' THEN
		RETURN 0;
	END IF;
	DELETE FROM scru64_realm.ledger AS l
	WHERE l.occupied_until <= clock - greatest(older_than, interval '1 day');
	GET DIAGNOSTICS pruned = ROW_COUNT;
	RETURN pruned;
END
$$;

COMMENT ON FUNCTION scru64_realm.prune(interval)
	IS 'delete leases that ended longer ago than this and matter to nobody any more; returns how many';


-- ---------------------------------------------------------------------------
-- Owner and privileges
--
-- Default privileges of whoever runs this script may have granted anything to
-- anybody: start from nothing.
-- ---------------------------------------------------------------------------

DO $$
DECLARE
	object record;
	grantee text;
BEGIN
	FOR object IN
		SELECT CASE c.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END AS kind, 'TABLE' AS acl_kind,
			   c.oid::regclass::text AS name, c.relacl AS acl
		FROM pg_class AS c WHERE c.relnamespace = 'scru64_realm'::regnamespace AND c.relkind IN ('r', 'v')
		UNION ALL
		SELECT 'FUNCTION', 'FUNCTION', p.oid::regprocedure::text, p.proacl
		FROM pg_proc AS p WHERE p.pronamespace = 'scru64_realm'::regnamespace
		UNION ALL
		SELECT 'SCHEMA', 'SCHEMA', n.oid::regnamespace::text, n.nspacl
		FROM pg_namespace AS n WHERE n.oid = 'scru64_realm'::regnamespace
	LOOP
		EXECUTE format('REVOKE ALL ON %s %s FROM PUBLIC', object.acl_kind, object.name);
		FOR grantee IN
			SELECT DISTINCT a.grantee::regrole::text FROM aclexplode(object.acl) AS a WHERE a.grantee <> 0
		LOOP
			EXECUTE format('REVOKE ALL ON %s %s FROM %s CASCADE', object.acl_kind, object.name, grantee);
		END LOOP;
		EXECUTE format('ALTER %s %s OWNER TO %s', object.kind, object.name, $name$@extowner@$name$);
		EXECUTE format('GRANT ALL ON %s %s TO %s', object.acl_kind, object.name, $name$@extowner@$name$);
	END LOOP;
END
$$;

GRANT USAGE ON SCHEMA scru64_realm TO PUBLIC;
GRANT SELECT ON scru64_realm.leases, scru64_realm.capacity TO pg_monitor;
GRANT EXECUTE ON FUNCTION scru64_realm.clock() TO pg_monitor;
