-- ---------------------------------------------------------------------------
-- The functions: the current text of each
--
-- Each script runs this, that of a new realm and those of updates. A function whose result or
-- parameters change is dropped before, by the update.
--
-- No function depends on its caller's search_path. Names in an SQL body are bound when it is
-- created, and SET would keep it from being inlined. The other functions look names up when
-- they run: in pg_catalog, then in the two schemas, where only the owner can create anything.
-- Those that others call have a time zone too, so that a day has 24 hours, and a format for
-- the times in their messages.
--
-- The first ones are created while PostgreSQL's own names are the only ones: an update may run
-- with more rights than the owner has, who may have made anything in the two schemas.
-- ---------------------------------------------------------------------------

-- The next two functions, alone, have more rights than the extension's owner has: they belong to
-- a superuser. They look no name up in the owner's schemas, and read none of the owner's tables.
-- All roles may execute them, so that the next owner may, too, after REASSIGN OWNED. But only the
-- owner, and roles to which the owner grants this, reach the schema.

-- The nodes that this server has generated IDs of, in all databases, and the tick after which each
-- continues: less than scru64_generators() shows to members of pg_monitor. The body is text, and
-- no function that the next version of the extension scru64 may drop is kept by it.
CREATE OR REPLACE FUNCTION scru64_realm_internal.server_nodes(OUT node text, OUT last_tick bigint) RETURNS SETOF record LANGUAGE sql
	SECURITY DEFINER ROWS 10 SET search_path = pg_catalog, pg_temp
AS $$
	SELECT format('%s/%s', g.node_id, g.node_id_size), n.node_prev::bigint >> 24
	FROM pg_catalog.scru64_generators() AS g, pg_catalog.scru64_parse_node_spec(g.node_spec) AS n;
$$;

-- The node specs in the configuration files of this server: a session may have another
-- value. Only superusers see the files.
CREATE OR REPLACE FUNCTION scru64_realm_internal.server_node_specs() RETURNS SETOF text LANGUAGE sql
	SECURITY DEFINER ROWS 1 SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	SELECT f.setting FROM pg_file_settings AS f WHERE lower(f.name) = 'scru64.node_spec';
END;

-- node_ctr values of a node
CREATE OR REPLACE FUNCTION scru64_realm_internal.node_ctr_range(node_id integer, node_id_size integer) RETURNS int4range
	LANGUAGE sql IMMUTABLE STRICT
	RETURN pg_catalog.int4range(
		node_id OPERATOR(pg_catalog.<<) (24 OPERATOR(pg_catalog.-) node_id_size),
		(node_id OPERATOR(pg_catalog.+) 1) OPERATOR(pg_catalog.<<) (24 OPERATOR(pg_catalog.-) node_id_size));

-- node_ctr values of the node of a node spec
CREATE OR REPLACE FUNCTION scru64_realm_internal.node_ctr_range(node_spec text) RETURNS int4range
	LANGUAGE sql IMMUTABLE STRICT
	RETURN (SELECT scru64_realm_internal.node_ctr_range(n.node_id, n.node_id_size) FROM scru64_parse_node_spec(node_spec) AS n);

-- From here on PostgreSQL's own names come first, and then those of these scripts, which go to
-- scru64_realm_internal if they say nothing else.
SET LOCAL search_path = scru64_realm_internal, scru64_realm, pg_temp;

-- Trigger on settings
CREATE OR REPLACE FUNCTION replace_settings() RETURNS trigger LANGUAGE plpgsql
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp
AS $$
BEGIN
	DELETE FROM settings;
	RETURN NEW;
END
$$;

-- ---------------------------------------------------------------------------
-- For holders: lease, renew, release, split
-- ---------------------------------------------------------------------------

-- If another transaction that has not ended yet has changed a lease of the node that looks
-- free, it waits a bit and turns to another node.
CREATE OR REPLACE FUNCTION scru64_realm.lease(
	node_id_size integer,
	holder text,
	ttl interval DEFAULT NULL,
	node_id integer DEFAULT NULL,
	within text DEFAULT NULL,
	request uuid DEFAULT NULL,
	OUT lease_id uuid,
	OUT node_spec text,
	OUT granted_at timestamptz,
	OUT expires_at timestamptz,
	OUT realm_clock timestamptz
)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET lock_timeout = '10s'
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD'
AS $$
#variable_conflict error
DECLARE
	attempts CONSTANT integer := CASE WHEN node_id IS NULL THEN 40 ELSE 4 END;
	patience CONSTANT text := CASE WHEN node_id IS NULL THEN '200ms' ELSE '2s' END;
	asked ledger;
	whole_region int4multirange;
	region int4multirange;
	has_turn boolean;
	draft ledger;
	granted ledger;
BEGIN
	-- First of all: a text that is too long must not be in a message, either.
	IF holder IS NULL OR char_length(holder) NOT BETWEEN 1 AND 200 THEN
		RAISE EXCEPTION 'invalid holder: %', coalesce(char_length(holder) || ' characters', 'null')
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = 'A holder is a text of 1 to 200 characters.',
				HINT = 'Name the server or application, so that others know whose lease it is.';
	ELSIF char_length(within) > 100 THEN
		RAISE EXCEPTION 'invalid node spec: % characters', char_length(within)
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = 'It is the block that the node shall be of.',
				HINT = 'For example: 3/4.';
	END IF;
	PERFORM check_node_id_size(node_id_size, 'Few bits leave many for the counter; 8 are a good start.');
	asked.ttl := check_ttl(ttl);
	whole_region := int4multirange(requested_region(node_id_size, node_id, within));
	region := whole_region;
	asked.lease_id := request;
	asked.node_id := node_id;
	asked.node_id_size := node_id_size;
	asked.holder := holder;
	asked.within := within;

	PERFORM begin_call();
	has_turn := has_turn();
	PERFORM set_config('lock_timeout', patience, true);
	FOR attempt IN 1 .. attempts LOOP
		realm_clock := clock();
		granted := repeated(asked, realm_clock);
		EXIT WHEN granted.lease_id IS NOT NULL;
		draft := draft(asked, region, realm_clock, NOT has_turn OR attempt > 1);
		IF draft.node_id IS NOT NULL THEN
			granted := enter_lease(draft);
			EXIT WHEN granted.lease_id IS NOT NULL;
			IF node_id IS NULL THEN
				region := region - int4multirange(draft.node_ctr_range);
			END IF;
		ELSIF region <> whole_region THEN
			-- others had all that looked free; by now they may have ended
			region := whole_region;
		ELSE
			RAISE EXCEPTION 'realm is full'
				USING ERRCODE = 'configuration_limit_exceeded',
					DETAIL = format('No node_id of %s bits is free%s.', node_id_size, ' within ' || within),
					HINT = 'Ask for a greater node_id_size, or have leases released. See the view scru64_realm.capacity.';
		END IF;
	END LOOP;
	IF granted.lease_id IS NULL THEN
		RAISE EXCEPTION 'could not grant a lease in time'
			USING ERRCODE = 'lock_not_available',
				DETAIL = 'Transactions that have changed leases of the nodes that looked free were still open.',
				HINT = 'Try again.';
	END IF;

	lease_id := granted.lease_id;
	node_spec := format('%s/%s', start(granted.node_ctr_range, granted.granted_at), granted.node_id_size);
	granted_at := granted.granted_at;
	expires_at := CASE WHEN isfinite(granted.expires_at) THEN granted.expires_at ELSE cap(realm_clock, realm_clock) END;
END
$$;

COMMENT ON FUNCTION scru64_realm.lease
	IS 'lease a node: a free one of this size, or this node_id, within a block if one is given';

-- It never takes back a promise: a holder that misses the answer to this call uses the
-- answer before.
CREATE OR REPLACE FUNCTION scru64_realm.renew(
	lease_id uuid,
	ttl interval DEFAULT NULL,
	last_id ledger.last_id%TYPE DEFAULT NULL,
	OUT expires_at timestamptz,
	OUT granted_at timestamptz,
	OUT realm_clock timestamptz
)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET lock_timeout = '10s'
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD'
AS $$
#variable_conflict error
DECLARE
	locked record;
	known ledger;
	cap timestamptz;
BEGIN
	ttl := check_ttl(ttl);
	SELECT * INTO locked FROM lock_lease(renew.lease_id, renew.last_id);
	known := locked.known;
	PERFORM check_renewable(known);
	granted_at := known.granted_at;
	realm_clock := locked.clock;
	cap := cap(granted_at, realm_clock);
	expires_at := CASE WHEN is_endless(ttl) THEN 'infinity' ELSE least(locked.since + ttl, cap) END;
	BEGIN
		UPDATE ledger AS l
		SET expires_at = greatest(l.expires_at, renew.expires_at),
			occupied_until = greatest(l.occupied_until, renew.expires_at + s.guard),
			endless_since = coalesce(l.endless_since, CASE WHEN renew.expires_at = 'infinity' THEN realm_clock END),
			clock_reading = realm_clock,
			change = nextval('change'),
			last_id = locked.last_id
		FROM settings AS s
		WHERE l.lease_id = renew.lease_id
		RETURNING l.* INTO known;
	EXCEPTION WHEN exclusion_violation THEN
		-- The clock was ahead, and somebody else was granted the node.
		RAISE EXCEPTION 'lease cannot be extended to %', expires_at
			USING ERRCODE = 'object_in_use',
				DETAIL = format('It expires at %s, and by a clock that was ahead its node is leased to somebody else after that.',
								known.expires_at),
				HINT = 'Give a smaller ttl, or get a new lease from scru64_realm.lease().';
	END;
	expires_at := reported_end(known.expires_at, known.endless_since, realm_clock, cap);
END
$$;

COMMENT ON FUNCTION scru64_realm.renew IS 'let an active lease last for ttl from now on, or for as long as it does';

-- The IDs end at last_id. So the node is occupied for the guard time, or until the tick
-- after last_id if that is later, but no longer than before: by then it may be leased to
-- somebody else.
CREATE OR REPLACE FUNCTION scru64_realm.release(lease_id uuid, last_id ledger.last_id%TYPE DEFAULT NULL) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET lock_timeout = '10s'
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD'
AS $$
#variable_conflict error
DECLARE
	locked record;
BEGIN
	SELECT * INTO locked FROM lock_lease(release.lease_id, release.last_id);
	UPDATE ledger AS l
	SET released_at = locked.since, last_id = locked.last_id, clock_reading = locked.clock, change = nextval('change'),
		occupied_until = least(l.occupied_until,
							   greatest(locked.since + s.guard, tick_start((locked.last_id::bigint >> 24) + 1)))
	FROM settings AS s
	WHERE l.lease_id = release.lease_id;
END
$$;

COMMENT ON FUNCTION scru64_realm.release IS 'end an active lease whose IDs end at last_id';

CREATE OR REPLACE FUNCTION scru64_realm.split(
	INOUT lease_id uuid,
	node_id_size integer,
	last_id ledger.last_id%TYPE DEFAULT NULL,
	OUT node_spec text,
	OUT granted_at timestamptz,
	OUT expires_at timestamptz
) RETURNS SETOF record
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER ROWS 16 SET lock_timeout = '10s'
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD'
AS $$
#variable_conflict error
DECLARE
	locked record;
	known ledger;
	bits integer;			-- more than the old node_id has
	since timestamptz;
	until timestamptz;
BEGIN
	PERFORM check_node_id_size(split.node_id_size, 'Give one that is greater than the lease''s.');
	SELECT * INTO locked FROM lock_lease(split.lease_id, split.last_id);
	known := locked.known;
	PERFORM check_renewable(known);
	bits := split.node_id_size - known.node_id_size;
	IF bits NOT BETWEEN 1 AND 12 THEN
		RAISE EXCEPTION 'cannot split a lease with a node_id_size of % into leases with a node_id_size of %',
				known.node_id_size, split.node_id_size
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = 'The new node_ids are longer, by 1 to 12 bits: 2 to 4096 leases come out of it.',
				HINT = 'To split into more, split what comes out of it.';
	END IF;

	-- No guard time: it is the same holder. But the new leases begin after the old
	-- one's IDs.
	since := greatest(locked.since, tick_start((locked.last_id::bigint >> 24) + 1));
	until := reported_end(known.expires_at, known.endless_since, locked.clock, cap(known.granted_at, locked.clock));
	IF since >= until THEN
		RAISE EXCEPTION 'lease is over after ID %', locked.last_id
			USING ERRCODE = 'object_not_in_prerequisite_state',
				DETAIL = format('It expires at %s, and what comes out of a split begins at %s.', until, since),
				HINT = 'Renew the lease, then split it.';
	END IF;
	UPDATE ledger AS l
	SET released_at = since, occupied_until = since, last_id = locked.last_id, clock_reading = locked.clock, change = nextval('change')
	WHERE l.lease_id = split.lease_id;
	RETURN QUERY
	INSERT INTO ledger AS l
		(node_id, node_id_size, holder, ttl, within, granted_at, expires_at, endless_since, occupied_until, clock_reading, last_id, parent)
	SELECT n, split.node_id_size, known.holder, known.ttl, known.within,
		   since, known.expires_at, known.endless_since, known.occupied_until, locked.clock,
		   start(node_ctr_range(n, split.node_id_size), since), known.lease_id
	FROM generate_series(known.node_id << bits, ((known.node_id + 1) << bits) - 1) AS n
	ORDER BY n
	RETURNING l.lease_id, format('%s/%s', l.last_id, l.node_id_size), l.granted_at, until;
END
$$;

COMMENT ON FUNCTION scru64_realm.split IS 'turn an active lease into leases of longer node_ids inside it';

CREATE OR REPLACE FUNCTION scru64_realm.realm_id() RETURNS uuid
	LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD'
AS $$
BEGIN
	RETURN (SELECT s.realm_id FROM settings AS s);
END
$$;

COMMENT ON FUNCTION scru64_realm.realm_id() IS 'which realm this is: made by CREATE EXTENSION, kept by dumps';

-- ---------------------------------------------------------------------------
-- For the views
-- ---------------------------------------------------------------------------

-- Not now(): a lease that is taken late in a transaction begins late.
CREATE OR REPLACE FUNCTION scru64_realm.clock() RETURNS timestamptz
	LANGUAGE sql VOLATILE PARALLEL SAFE
	RETURN clock_timestamp();

COMMENT ON FUNCTION scru64_realm.clock() IS 'the time, for everything here';

CREATE OR REPLACE FUNCTION scru64_realm.free(
	clock timestamptz,
	until timestamptz,
	region int4range DEFAULT '[0,16777216)'
) RETURNS int4multirange
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD'
AS $$
BEGIN
	RETURN int4multirange(region) - coalesce((SELECT range_agg(b.node_ctr_range) FROM busy(region, clock, until) AS b), '{}');
END
$$;

COMMENT ON FUNCTION scru64_realm.free IS 'node_ctr values in a region that can be leased from now until a time';

-- ---------------------------------------------------------------------------
-- For the owner
--
-- While one of these functions waits for a lock, others wait behind it: hence a lock_timeout
-- of 2 seconds. Those that wait for calls have 20, which is longer than a statement goes on
-- after its call. That of something_was_lost() is 60: it holds up only calls that have to be held up.
-- ---------------------------------------------------------------------------

-- It waits for calls, so that nothing escapes it that they lease or split meanwhile.
CREATE OR REPLACE FUNCTION scru64_realm.revoke(lease_id uuid) RETURNS bigint
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET lock_timeout = '20s'
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD'
AS $$
#variable_conflict error
DECLARE
	revoked bigint;
BEGIN
	PERFORM wait_for_calls();
	UPDATE ledger AS l SET revoked_at = clock()
	WHERE l.lease_id = revoke.lease_id AND l.released_at IS NULL AND l.revoked_at IS NULL AND l.expires_at > clock();
	GET DIAGNOSTICS revoked = ROW_COUNT;
	RETURN revoked + (SELECT coalesce(sum(revoke(l.lease_id)), 0) FROM ledger AS l WHERE l.parent = revoke.lease_id);
END
$$;

COMMENT ON FUNCTION scru64_realm.revoke(uuid) IS 'have an active lease, or all that it was split into, not be renewed; returns how many';

-- A lease_id that is written as a literal is a text, too.
CREATE OR REPLACE FUNCTION scru64_realm.revoke(holder text) RETURNS bigint
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET lock_timeout = '20s'
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD'
AS $$
#variable_conflict error
DECLARE
	digits text := lower(translate(left(revoke.holder, 100), '{-}', ''));
BEGIN
	PERFORM wait_for_calls();
	RETURN (SELECT coalesce(sum(revoke(l.lease_id)), 0) FROM ledger AS l
			WHERE l.holder = revoke.holder OR digits IN (replace(l.lease_id::text, '-', ''), replace(l.parent::text, '-', '')));
END
$$;

COMMENT ON FUNCTION scru64_realm.revoke(text) IS 'have active leases of a holder, or with this lease_id, not be renewed; returns how many';

CREATE OR REPLACE FUNCTION scru64_realm.set_guard(guard interval, even_if_unsafe boolean DEFAULT false) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET lock_timeout = '20s'
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD'
AS $$
#variable_conflict error
BEGIN
	guard := check_duration('guard time', guard, '0', '1 day', 'It is a time from 0 to 1 day.',
							'It has to cover the rollback allowance of the generators and the difference of their clocks.');
	IF guard < interval '11 seconds' AND even_if_unsafe IS NOT TRUE THEN
		RAISE EXCEPTION 'guard time is not safe: %', guard
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = 'Generators may be ahead of their clock by 10 seconds, and one that stops by its clock has then used IDs of that time.',
				HINT = 'Give 11 seconds or more, or also even_if_unsafe => true.';
	END IF;
	PERFORM wait_for_calls();
	UPDATE settings AS s SET guard = set_guard.guard;
END
$$;

COMMENT ON FUNCTION scru64_realm.set_guard(interval, boolean)
	IS 'set the guard time, for leases that are granted, renewed or ended from now on';

CREATE OR REPLACE FUNCTION scru64_realm.set_max_ttl(max_ttl interval) RETURNS timestamptz
	LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER SET lock_timeout = '20s'
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD'
AS $$
BEGIN
	RETURN set_ttls(max_ttl, NULL);
END
$$;

COMMENT ON FUNCTION scru64_realm.set_max_ttl(interval)
	IS 'set how far from now on leases are promised at most; returns from when that counts';

CREATE OR REPLACE FUNCTION scru64_realm.set_first_ttl(first_ttl interval) RETURNS timestamptz
	LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER SET lock_timeout = '20s'
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD'
AS $$
BEGIN
	RETURN set_ttls(NULL, first_ttl);
END
$$;

COMMENT ON FUNCTION scru64_realm.set_first_ttl(interval)
	IS 'set how far new leases are promised at most; returns from when that counts';

-- It takes back the last failover only: what was lost in the one before is still lost.
CREATE OR REPLACE FUNCTION scru64_realm.nothing_was_lost() RETURNS timestamptz
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET lock_timeout = '2s'
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD'
AS $$
DECLARE
	failover failover;
	before failover;
BEGIN
	PERFORM begin_change(is_short => false);
	LOCK TABLE settings IN SHARE ROW EXCLUSIVE MODE;
	PERFORM note_failover();
	failover := last_failover();
	before := last_failover('_before');
	PERFORM set_failover(before);
	RETURN CASE WHEN failover <> before THEN failover.known_until END;
END
$$;

COMMENT ON FUNCTION scru64_realm.nothing_was_lost()
	IS 'have a realm that was promoted, restored or copied not wait for that; returns since when nothing was lost';

-- For what note_failover() cannot notice. Leases of any age may be lost.
CREATE OR REPLACE FUNCTION scru64_realm.something_was_lost(until timestamptz DEFAULT NULL) RETURNS timestamptz
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET lock_timeout = '60s'
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD'
AS $$
DECLARE
	failover failover;
BEGIN
	-- before there are marks: they stay also where this fails
	PERFORM wait_for_calls();
	LOCK TABLE settings IN SHARE ROW EXCLUSIVE MODE;
	PERFORM note_failover();
	failover := begin_wait(1);
	failover.granting_from := greatest(failover.granting_from, until);
	failover.lost_until := greatest(failover.lost_until, until);
	PERFORM set_failover(failover);
	RETURN failover.granting_from;
END
$$;

COMMENT ON FUNCTION scru64_realm.something_was_lost(timestamptz)
	IS 'have a realm wait for leases that it may not know, until this time at least; returns until when';

-- It keeps the end of the last one: if the clock went back behind that, a node could be
-- leased for a time for which one of them had it. And it keeps the last change while a
-- later reading is known, which would pass for the last one's.
CREATE OR REPLACE FUNCTION scru64_realm.prune(older_than interval) RETURNS bigint
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET lock_timeout = '20s'
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD'
AS $$
#variable_conflict error
DECLARE
	clock timestamptz;
	lost_until timestamptz;		-- a lease may have been renewed until then
	known_until timestamptz;	-- if it lasted until later than this
	pruned bigint;
	pruned_until timestamptz;
BEGIN
	older_than := check_duration('age', older_than, '0', '1000 years',
								 'It is how long ago a lease must have ended for its row to be deleted: 0 or more.',
								 'For example: 90 days.');
	IF is_endless(older_than) THEN
		RETURN 0;
	END IF;
	-- calls that have read the clock by now have committed
	PERFORM wait_for_calls();
	PERFORM note_failover();
	clock := clock();
	SELECT f.lost_until, f.known_until - s.slack INTO lost_until, known_until
	FROM last_failover() AS f, limits(clock) AS s;
	WITH gone AS (
		DELETE FROM ledger AS l
		WHERE l.occupied_until <= clock - older_than
		  AND (l.occupied_until <= known_until OR lost_until <= clock - older_than)
		  AND (l.change < (SELECT max(r.change) FROM readings AS r) OR l.clock_reading >= (SELECT max(r.at) FROM readings AS r))
		RETURNING CASE WHEN l.occupied_until <= known_until THEN l.occupied_until
				  ELSE greatest(l.occupied_until, lost_until) END AS occupied_until
	)
	SELECT count(*), max(g.occupied_until) INTO pruned, pruned_until FROM gone AS g;
	IF pruned_until > remembered('pruned_until') THEN
		PERFORM remember('pruned_until', pruned_until);
	END IF;
	RETURN pruned;
END
$$;

COMMENT ON FUNCTION scru64_realm.prune(interval) IS 'delete leases that ended longer ago than this; returns how many';

-- ---------------------------------------------------------------------------
-- Internal: time
--
-- Internal functions are called by the functions above, and run with their settings. One
-- that reads a table must see what others commit meanwhile: it is VOLATILE, so that each
-- of its statements has a snapshot of its own.
-- ---------------------------------------------------------------------------

-- The settings at a time. A raise counts for grants when the realm has had it for so long
-- that any standby that is promoted has it, too; for leases that may be lost, at once.
CREATE OR REPLACE FUNCTION limits(
	clock timestamptz,
	OUT slack interval,				-- greater than the difference of clocks
	OUT max_ttl interval,
	OUT first_ttl interval,
	OUT longest_ttl interval,		-- at any time
	OUT longest_first_ttl interval
)
	LANGUAGE sql
BEGIN ATOMIC
	SELECT greatest(s.guard, interval '30 s'),
		   CASE WHEN clock >= s.next_from THEN s.next_max_ttl ELSE s.max_ttl END,
		   CASE WHEN clock >= s.next_from THEN s.next_first_ttl ELSE s.first_ttl END,
		   greatest(s.max_ttl, s.next_max_ttl), greatest(s.first_ttl, s.next_first_ttl)
	FROM settings AS s;
END;

-- How far a lease may be promised. The older it is, the farther: a lease that its holder
-- does not release then costs about its own lifetime, and a realm that has lost a new one need
-- not wait long.
CREATE OR REPLACE FUNCTION cap(granted_at timestamptz, clock timestamptz) RETURNS timestamptz LANGUAGE sql
	RETURN (SELECT clock + least(l.max_ttl, greatest(l.first_ttl, clock - granted_at)) FROM limits(clock) AS l);

-- The end of a lease, as its holder gets to know it. A lease without end occupies its node
-- without end at once, but is reported so only when any standby that is promoted has it.
CREATE OR REPLACE FUNCTION reported_end(
	expires_at timestamptz,
	endless_since timestamptz,
	clock timestamptz,
	cap timestamptz
) RETURNS timestamptz
	LANGUAGE sql
	RETURN CASE WHEN isfinite(expires_at) THEN expires_at
		WHEN clock > endless_since + (SELECT l.max_ttl + l.slack FROM limits(clock) AS l) THEN 'infinity'
		ELSE cap END;

-- The same time, whatever the calendar says: months and days of either sign are compared in
-- one way and added to a time in another one. interval has an infinity only from PostgreSQL 17
-- on, so a thousand years and more mean the same.
CREATE OR REPLACE FUNCTION in_seconds(duration interval) RETURNS interval LANGUAGE sql IMMUTABLE STRICT
	RETURN make_interval(secs => least(greatest(extract(epoch FROM duration), -31557600000), 31557600000)::float8);

CREATE OR REPLACE FUNCTION is_endless(duration interval) RETURNS boolean LANGUAGE sql IMMUTABLE
	RETURN coalesce(in_seconds(duration) = in_seconds('1000 years'), false);

-- What a caller says, in seconds; error if it is not between these two.
CREATE OR REPLACE FUNCTION check_duration(
	name text,
	duration interval,
	shortest interval,
	longest interval,
	detail text,
	hint text
) RETURNS interval
	LANGUAGE plpgsql
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp
AS $$
BEGIN
	IF in_seconds(duration) BETWEEN shortest AND in_seconds(longest) THEN
		RETURN in_seconds(duration);
	END IF;
	RAISE EXCEPTION 'invalid %: %', name, coalesce(duration::text, 'null')
		USING ERRCODE = 'invalid_parameter_value', DETAIL = check_duration.detail, HINT = check_duration.hint;
END
$$;

-- The timestamp of IDs that are generated at a time, in ticks of 256 ms since 1970.
-- Later times have the last timestamp of all.
CREATE OR REPLACE FUNCTION tick(at timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT
	RETURN least(floor(extract(epoch FROM at) * 1000 / 256), 282429536479);

CREATE OR REPLACE FUNCTION tick_start(tick bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT
	RETURN timestamptz 'epoch' + tick * interval '256 ms';

-- The ID after which a lease begins: the last one that its node could have in the tick
-- of granted_at
CREATE OR REPLACE FUNCTION start(node_ctr_range int4range, granted_at timestamptz) RETURNS ledger.last_id%TYPE
	LANGUAGE sql IMMUTABLE STRICT
	RETURN (tick(granted_at) << 24 | (upper(node_ctr_range) - 1))::scru64;

-- ---------------------------------------------------------------------------
-- Internal: failovers
-- ---------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION remembered(name text) RETURNS timestamptz LANGUAGE sql
	RETURN (SELECT CASE WHEN us < 9223372036854775807 THEN timestamptz 'epoch' + us * interval '1 us' ELSE 'infinity' END
			FROM coalesce(pg_sequence_last_value(('scru64_realm_internal.' || name)::regclass), 0) AS us);

CREATE OR REPLACE FUNCTION remember(name text, at timestamptz) RETURNS bigint LANGUAGE sql
	RETURN setval(('scru64_realm_internal.' || name)::regclass,
				  CASE WHEN isfinite(at) THEN (extract(epoch FROM at) * 1000000)::bigint ELSE 9223372036854775807 END);

-- suffix: '_before' for the one before
CREATE OR REPLACE FUNCTION last_failover(suffix text DEFAULT '') RETURNS failover LANGUAGE sql
	RETURN ROW(remembered('noticed_at' || suffix), remembered('known_until' || suffix),
			   remembered('granting_from' || suffix), remembered('lost_until' || suffix))::failover;

CREATE OR REPLACE FUNCTION set_failover(f failover, suffix text DEFAULT '') RETURNS void LANGUAGE plpgsql
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp
AS $$
BEGIN
	PERFORM remember('noticed_at' || suffix, f.noticed_at), remember('known_until' || suffix, f.known_until),
		remember('granting_from' || suffix, f.granting_from), remember('lost_until' || suffix, f.lost_until);
END
$$;

CREATE OR REPLACE FUNCTION timeline() RETURNS integer LANGUAGE sql
	RETURN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer;

-- This server, timeline, database and extension, as one number: a standby that was
-- promoted has another timeline, a dump that was restored elsewhere another system
-- identifier, in another database another oid, and in place of the old realm another
-- extension's.
CREATE OR REPLACE FUNCTION identity() RETURNS bigint LANGUAGE sql
	RETURN hashtextextended(format('%s/%s/%s/%s',
			(SELECT c.system_identifier FROM pg_control_system() AS c),
			timeline(),
			(SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()),
			(SELECT e.oid FROM pg_extension AS e WHERE e.extname = 'scru64_realm')), 0)
		& 9223372036854775807;

-- Moves both ends of a failover to the latest end of a lease that may have been lost. A
-- lost grant was made after known_until: the lease is no older than that, give or take the
-- difference of clocks. A lost renewal, of a lease of any age, was for max_ttl.
CREATE OR REPLACE FUNCTION longest_wait(f failover) RETURNS failover LANGUAGE plpgsql
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp
AS $$
DECLARE
	limits record := limits(f.noticed_at);
	age interval := f.noticed_at - f.known_until + 2 * limits.slack;
BEGIN
	f.granting_from := greatest(f.granting_from, f.noticed_at + limits.slack
								+ least(limits.longest_ttl, greatest(limits.longest_first_ttl, age)));
	f.lost_until := greatest(f.lost_until, f.noticed_at + limits.slack + limits.longest_ttl);
	RETURN f;
END
$$;

-- Has the realm wait for leases that may have been lost: since the last change in the
-- ledger, or, after something_was_lost(), since ever. The latest reading will not do: what is
-- lost may have been granted after a leap of the clock, by one that was right again. A last
-- change that is ahead of the clock was made in a leap, and says nothing.
--
-- The reason goes to the mark of that name. The same identity again means the same failover,
-- and the one before it stays; each something_was_lost() is one of its own.
CREATE OR REPLACE FUNCTION begin_wait(reason bigint) RETURNS failover LANGUAGE plpgsql
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp
AS $$
DECLARE
	clock timestamptz := clock();
	-- a clock that was ahead by more than a day was wrong
	reading timestamptz := (SELECT max(r.at) FROM readings AS r WHERE r.at <= clock + interval '1 day');
	last_change timestamptz := (SELECT r.at FROM readings AS r ORDER BY r.change DESC LIMIT 1);
	before failover := last_failover();
	failover failover := before;
BEGIN
	failover.noticed_at := greatest(clock, reading, before.noticed_at);
	failover.known_until := CASE WHEN reason = 1 OR last_change > clock + (SELECT l.slack FROM limits(clock) AS l) THEN 'epoch'
							ELSE last_change END;
	IF clock < before.lost_until THEN
		-- leases that were lost the last time are still unknown
		failover.known_until := least(failover.known_until, before.known_until);
	END IF;
	failover := longest_wait(failover);
	IF reason = 1 OR pg_sequence_last_value('reason') IS DISTINCT FROM reason THEN
		PERFORM set_failover(before, '_before');
	END IF;
	-- from here on it is the same: a crash may keep a part of the marks
	PERFORM setval('reason', reason);
	PERFORM set_failover(failover);
	RETURN failover;
END
$$;

-- Has the realm wait if another server, timeline, database or extension granted the last
-- lease: this one may lack some.
CREATE OR REPLACE FUNCTION note_failover() RETURNS void LANGUAGE plpgsql
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp
AS $$
DECLARE
	f failover;
BEGIN
	-- a call that cannot write is refused later
	IF pg_is_in_recovery() OR identity() = pg_sequence_last_value('last_identity') THEN
		RETURN;
	END IF;
	-- One call does this. It rolls a subtransaction back to unlock the table at once, because
	-- its commit may wait for a standby. The marks remain: they are sequences.
	BEGIN
		LOCK TABLE settings IN SHARE ROW EXCLUSIVE MODE;
		IF identity() IS DISTINCT FROM pg_sequence_last_value('last_identity') THEN
			f := begin_wait(identity());
			IF timeline() > pg_sequence_last_value('last_timeline') + 1 THEN
				-- promoted more than once: nothing_was_lost() vouches for one promotion
				PERFORM set_failover(f, '_before');
			END IF;
			PERFORM setval('last_timeline', timeline());
			-- last: after a crash before this, the wait only begins again
			PERFORM setval('last_identity', identity());
			RAISE LOG 'realm in database "%" was promoted, restored or copied: it grants no new lease until %',
					current_database(), f.granting_from
				USING DETAIL = format('Leases that were granted after %s may be unknown, and nodes that were leased then are not free before %s.',
									  f.known_until, f.lost_until),
					HINT = 'If nothing was lost, its owner can say so: scru64_realm.nothing_was_lost().';
		END IF;
		RAISE SQLSTATE 'SR001';
	EXCEPTION WHEN SQLSTATE 'SR001' THEN
		RETURN;
	END;
END
$$;

-- ---------------------------------------------------------------------------
-- Internal: what calls of the realm have in common
-- ---------------------------------------------------------------------------

-- May the session do what the owner may, whose rights the function has that calls this?
CREATE OR REPLACE FUNCTION is_owner() RETURNS boolean LANGUAGE sql STABLE
	RETURN pg_has_role(session_user, current_user, 'MEMBER');

CREATE OR REPLACE FUNCTION check_ttl(ttl interval) RETURNS interval LANGUAGE plpgsql
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp
AS $$
BEGIN
	IF is_endless(ttl) AND NOT is_owner() THEN
		RAISE EXCEPTION 'permission denied for a lease without end'
			USING ERRCODE = 'insufficient_privilege',
				DETAIL = 'Its node would be lost to others for good.',
				HINT = 'Ask the owner of the realm, or give a ttl of less than 1000 years, and renew.';
	END IF;
	RETURN CASE WHEN ttl IS NOT NULL THEN
		check_duration('ttl', ttl, '1 us', '1000 years', 'It is how long the lease lasts: a time greater than 0.',
					   'Leave it out to get the longest that the realm grants.') END;
END
$$;

CREATE OR REPLACE FUNCTION check_node_id_size(node_id_size integer, hint text) RETURNS void LANGUAGE plpgsql
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp
AS $$
BEGIN
	IF node_id_size IS NULL OR node_id_size NOT BETWEEN 1 AND 23 THEN
		RAISE EXCEPTION 'invalid node_id_size: %', coalesce(node_id_size::text, 'null')
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = 'A node_id has 1 to 23 bits.',
				HINT = check_node_id_size.hint;
	END IF;
END
$$;

-- A lease that is unknown and one that has ended get the same error: a guess of a lease_id
-- finds out nothing.
CREATE OR REPLACE FUNCTION check_active(lease ledger, clock timestamptz) RETURNS void LANGUAGE plpgsql
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp
AS $$
BEGIN
	IF lease.lease_id IS NULL OR lease.released_at IS NOT NULL OR lease.expires_at <= clock THEN
		RAISE EXCEPTION 'lease is not active'
			USING ERRCODE = 'object_not_in_prerequisite_state',
				-- without the lease_id: it would be in the log
				DETAIL = 'No active lease has this lease_id: it is unknown, has expired, or was released or split.',
				HINT = 'A lease that has ended is not revived. Generate until the last expires_at that was reported to you, at the longest, and get a new one from scru64_realm.lease().';
	END IF;
END
$$;

-- A lease that had ended when leases were lost is not revived, wherever the clock is now: the
-- next lease of its node may be lost. That one began after occupied_until, by a clock that was
-- ahead of this one by less than the guard time that the lease has, occupied_until - expires_at,
-- or by less than 30 seconds if that is more. Leases since then end later: none is granted before
-- granting_from, which is more than 30 seconds after noticed_at.
CREATE OR REPLACE FUNCTION check_renewable(lease ledger) RETURNS void LANGUAGE plpgsql
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp
AS $$
DECLARE
	noticed_at timestamptz := (last_failover()).noticed_at;
BEGIN
	IF lease.revoked_at IS NOT NULL THEN
		RAISE EXCEPTION 'lease was revoked'
			USING ERRCODE = 'object_not_in_prerequisite_state',
				DETAIL = format('The owner of the realm has revoked it at %s. It lasts until %s.',
								lease.revoked_at, lease.expires_at),
				HINT = 'Get a new one from scru64_realm.lease(), if the owner lets you.';
	ELSIF least(lease.expires_at, lease.occupied_until - interval '30 s') <= noticed_at THEN
		RAISE EXCEPTION 'lease is not active'
			USING ERRCODE = 'object_not_in_prerequisite_state',
				DETAIL = format('The realm was promoted, restored or copied, and noticed that at %s. By then, this lease had ended, or its node was occupied for 30 more seconds at most. The lease lasts until %s, and its node is occupied until %s.',
								noticed_at, lease.expires_at, lease.occupied_until),
				HINT = 'Generate until the last expires_at that was reported to you, at the longest, and get a new lease from scru64_realm.lease(). With a guard time of 30 seconds or more, only leases that had ended are not renewed.';
	END IF;
END
$$;

-- Every function that changes a realm begins with this. Its transaction ends with the statement:
-- a caller that does not commit would hold others up. It is read committed: who waits for others
-- has to see the leases and settings that those commit. And its commit is acknowledged when it is
-- on disk, and on those of synchronous standbys, whatever synchronous_commit is: a crash must not
-- lose a lease that its holder uses.
--
-- A short one commits within 15 seconds from here on, or not at all, and ends in 18: a realm that is
-- promoted relies on it that the ledger had each lease soon after its granted_at.
CREATE OR REPLACE FUNCTION begin_change(is_short boolean) RETURNS void STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'scru64_begin_change';

-- lease(), renew(), release() and split() begin with this.
CREATE OR REPLACE FUNCTION begin_call() RETURNS void LANGUAGE plpgsql
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp
AS $$
BEGIN
	PERFORM begin_change(is_short => true);
	LOCK TABLE allocator IN ACCESS SHARE MODE;
	PERFORM note_failover();
END
$$;

-- Waits until no call changes a lease, and keeps calls from it.
CREATE OR REPLACE FUNCTION wait_for_calls() RETURNS void LANGUAGE plpgsql
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp
AS $$
DECLARE
	callers text;
BEGIN
	PERFORM begin_change(is_short => false);
	-- not in a subtransaction, which counts as a transaction block
	BEGIN
		LOCK TABLE allocator IN ACCESS EXCLUSIVE MODE;
	EXCEPTION WHEN lock_not_available THEN
		SELECT string_agg(CASE WHEN l.pid IS NULL THEN 'a prepared transaction' ELSE format('process %s of role %s', l.pid, a.usename) END,
						  ', ' ORDER BY l.pid) INTO callers
		FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database AND d.datname = current_database() LEFT JOIN pg_stat_activity AS a USING (pid)
		WHERE l.relation = 'allocator'::regclass AND l.granted AND l.pid IS DISTINCT FROM pg_backend_pid();
		RAISE EXCEPTION 'could not lock out calls of the realm within %', current_setting('lock_timeout')
			USING ERRCODE = 'lock_not_available',
				DETAIL = format('Statements that have called the realm have not ended: %s.', coalesce(callers, 'ended by now')),
				HINT = 'Try again. Those of holders end in 18 seconds, unless their commit waits for synchronous standbys. pg_prepared_xacts has prepared transactions.';
	END;
END
$$;

-- Locks an active lease and checks the last ID that its holder reports.
CREATE OR REPLACE FUNCTION lock_lease(
	lease_id uuid,
	INOUT last_id ledger.last_id%TYPE,
	OUT clock timestamptz,
	OUT since timestamptz,
	OUT known ledger
)
	LANGUAGE plpgsql
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp
AS $$
DECLARE
	-- null if there is none, and so are comparisons with it
	tick bigint := last_id::bigint >> 24;
BEGIN
	IF lock_lease.lease_id IS NULL THEN
		RAISE EXCEPTION 'lease_id must not be null'
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = 'It says which lease is meant, and that the caller holds it.',
				HINT = 'It is what scru64_realm.lease() returned as lease_id.';
	END IF;
	PERFORM begin_call();

	-- first the lock, then the time
	SELECT * INTO known FROM ledger AS l WHERE l.lease_id = lock_lease.lease_id FOR UPDATE;
	clock := clock();
	PERFORM check_active(known, clock);
	-- a clock that went back after the lease was granted
	since := greatest(clock, known.granted_at);

	IF NOT (last_id::bigint & 16777215)::integer <@ known.node_ctr_range OR tick > tick(known.expires_at) THEN
		RAISE EXCEPTION 'ID % is not of this lease', last_id
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = format('The lease is of node %s/%s and expires at %s. The time of the ID is %s.',
								known.node_id, known.node_id_size, known.expires_at, tick_start(tick)),
				HINT = 'Give the last ID that was generated with this lease''s node spec.';
	ELSIF last_id IS NULL OR last_id::bigint < known.last_id::bigint THEN
		last_id := known.last_id;
	END IF;
END
$$;

-- ---------------------------------------------------------------------------
-- Internal: the steps of lease()
--
-- In its order. "asked" is a row for the ledger with the columns that the caller chose.
-- ---------------------------------------------------------------------------

-- node_ctr values of the node with this node_id, or those within which any node will do
CREATE OR REPLACE FUNCTION requested_region(node_id_size integer, node_id integer, within text) RETURNS int4range LANGUAGE plpgsql
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp
AS $$
DECLARE
	block integer := 1 << (24 - node_id_size);			-- node_ctr values of a node of this size
	region int4range := coalesce(node_ctr_range(within), int4range(0, 16777216));
	node_ctr_range int4range;
BEGIN
	IF upper(region) - lower(region) < block THEN
		RAISE EXCEPTION 'a node with a node_id_size of % does not fit into %', node_id_size, within
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = format('It has %s node_ctr values, and %s has %s.', block, within, upper(region) - lower(region)),
				HINT = 'Ask for a greater node_id_size.';
	ELSIF node_id IS NULL THEN
		RETURN region;
	ELSIF node_id NOT BETWEEN 0 AND (1 << node_id_size) - 1 THEN
		RAISE EXCEPTION 'invalid node_id: %', node_id
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = format('A node_id of %s bits is 0 to %s.', node_id_size, (1 << node_id_size) - 1),
				HINT = 'Leave node_id out to get one that is free.';
	END IF;
	node_ctr_range := node_ctr_range(node_id, node_id_size);
	IF NOT node_ctr_range <@ region THEN
		RAISE EXCEPTION 'node %/% is not within %', node_id, node_id_size, within
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = format('A node_id of %s bits within it is %s to %s.', node_id_size,
								lower(region) / block, upper(region) / block - 1),
				HINT = 'Leave node_id out to get one that is free.';
	END IF;
	RETURN node_ctr_range;
END
$$;

-- Waits for a turn, so that calls do not all find the same free node. False if that takes
-- too long, because a statement goes on or its commit waits: then the ledger's constraint
-- alone keeps nodes apart.
CREATE OR REPLACE FUNCTION has_turn() RETURNS boolean LANGUAGE plpgsql SET lock_timeout = '2s'
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp
AS $$
BEGIN
	LOCK TABLE turn IN EXCLUSIVE MODE;
	RETURN true;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
	RETURN false;
END
$$;

-- The lease that was granted to this request before, if any: its answer was lost. It may be
-- in the WAL of this server only; written again, this commit, too, waits for the standbys,
-- or warns that it did not.
CREATE OR REPLACE FUNCTION repeated(asked ledger, clock timestamptz) RETURNS ledger LANGUAGE plpgsql
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp
AS $$
DECLARE
	known ledger;
BEGIN
	UPDATE ledger AS l SET holder = l.holder WHERE l.lease_id = asked.lease_id
	RETURNING l.* INTO known;
	IF NOT FOUND THEN
		RETURN NULL;
	END IF;
	PERFORM check_active(known, clock);
	IF (known.node_id_size, coalesce(asked.node_id, known.node_id), known.ttl, known.holder, known.within)
		IS DISTINCT FROM (asked.node_id_size, known.node_id, asked.ttl, asked.holder, asked.within) THEN
		RAISE EXCEPTION 'request was made for something else'
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = format('A lease was granted to it, of node %s/%s. A request is repeated as it was made.',
								known.node_id, known.node_id_size),
				HINT = 'Give each lease a request of its own: gen_random_uuid(), for example.';
	END IF;
	RETURN known;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
	-- somebody renews or ends it
	RETURN NULL;
END
$$;

-- Nodes in use on this server without a lease: those in a node spec that is set, and those
-- of generators whose last ID is in the window of no lease
--
-- Up to PostgreSQL 16 no parallel plan may enter a block with EXCEPTION.
CREATE OR REPLACE FUNCTION unleased(OUT node text, OUT node_ctr_range int4range, OUT last_tick bigint) RETURNS SETOF record
	LANGUAGE plpgsql PARALLEL UNSAFE ROWS 10
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp
AS $$
BEGIN
	RETURN QUERY
	SELECT g.node, r.node_ctr_range, g.last_tick FROM server_nodes() AS g, node_ctr_range(g.node) AS r (node_ctr_range)
	WHERE NOT EXISTS (SELECT FROM ledger AS l
					  WHERE l.node_ctr_range @> r.node_ctr_range
						AND g.last_tick BETWEEN tick(l.granted_at) AND tick(l.occupied_until));
	FOR node IN
		SELECT current_setting('scru64.node_spec', true)
		UNION
		SELECT s FROM server_node_specs() AS s
		UNION
		SELECT split_part(s.setting, '=', 2) FROM pg_db_role_setting AS d, unnest(d.setconfig) AS s (setting)
		WHERE starts_with(lower(s.setting), 'scru64.node_spec=')
	LOOP
		BEGIN
			node_ctr_range := node_ctr_range(node);
			last_tick := 0;
			CONTINUE WHEN node_ctr_range IS NULL;
			RETURN NEXT;
		EXCEPTION WHEN invalid_parameter_value THEN
			-- no generator accepts this spec
		END;
	END LOOP;
END
$$;

-- Nodes in a region that cannot be leased from now until a time: they are leased at some
-- time between, or in use without a lease.
CREATE OR REPLACE FUNCTION busy(
	region int4range,
	clock timestamptz,
	until timestamptz,
	OUT node_ctr_range int4range,
	OUT occupied_from timestamptz,
	OUT occupied_until timestamptz,
	OUT node text,				-- in use without a lease
	OUT last_tick bigint
) RETURNS SETOF record
	LANGUAGE plpgsql
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp
AS $$
DECLARE
	lost_renewals record;		-- of leases that lasted until one time, until the other
BEGIN
	SELECT f.known_until - l.slack AS lasted_until, f.lost_until INTO lost_renewals
	FROM last_failover() AS f, limits(clock) AS l
	WHERE clock < f.lost_until;
	RETURN QUERY
	SELECT l.node_ctr_range, l.granted_at, greatest(l.occupied_until, lost_renewals.lost_until), NULL::text, NULL::bigint
	FROM ledger AS l
	-- "occupied" and this time overlap
	WHERE l.occupied_until > least(clock, lost_renewals.lasted_until) AND l.granted_at < least(l.occupied_until, until)
		AND l.node_ctr_range && region
	UNION ALL
	SELECT u.node_ctr_range, NULL, NULL, u.node, u.last_tick FROM unleased() AS u WHERE u.node_ctr_range && region;
END
$$;

-- node_ctr values of a free node in this region, or null: best fit
--
-- In a gap of the free node_ctr values, a and b are the first value at which a block of this
-- size could begin, and the last at which one could end. The free blocks of the gap, each
-- as large as its alignment and the gap allow, grow from both ends to the middle. So the
-- smallest one that is large enough begins at a or ends at b, and its size is the smaller
-- one of the alignments of a and b. (0 is aligned to everything.)
--
-- A call that looks beside others takes any block: best fit would find the same for all.
CREATE OR REPLACE FUNCTION free_node(
	asked ledger,
	region int4multirange,
	clock timestamptz,
	until timestamptz,
	anywhere boolean
) RETURNS int4range
	LANGUAGE plpgsql
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp
AS $$
DECLARE
	block integer := 1 << (24 - asked.node_id_size);
	first integer;
BEGIN
	SELECT CASE WHEN anywhere THEN a + block * floor(random() * ((b - a) / block))::integer
				WHEN (a & -a) BETWEEN 1 AND (b & -b) THEN a
				ELSE b - (b & -b) END AS start
	INTO first
	FROM (SELECT (lower(gap) + block - 1) & -block AS a, upper(gap) & -block AS b
		  FROM unnest(free(clock, until, range_merge(region)) * region) AS gap
		  -- each once, and not wherever a or b is written
		  OFFSET 0) AS ends
	WHERE a < b
	ORDER BY CASE WHEN anywhere THEN random() ELSE least(nullif(a & -a, 0), b & -b) END, start
	LIMIT 1;
	RETURN CASE WHEN first IS NOT NULL THEN int4range(first, first + block) END;
END
$$;

-- The time at which a lease of this node can begin; error if it is not free. The owner may
-- lease a node that this server uses without a lease: from the tick after its last ID.
CREATE OR REPLACE FUNCTION free_from(asked ledger, clock timestamptz, until timestamptz) RETURNS timestamptz LANGUAGE plpgsql
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp
AS $$
DECLARE
	wanted int4range := node_ctr_range(asked.node_id, asked.node_id_size);
	free_from timestamptz := clock;
	busy record;
BEGIN
	-- a lease before a node in use, and the one that lasts longest
	FOR busy IN
		SELECT * FROM busy(wanted, clock, until) AS b ORDER BY b.occupied_until DESC NULLS LAST
	LOOP
		IF busy.node IS NULL THEN
			RAISE EXCEPTION 'node %/% is not free', asked.node_id, asked.node_id_size
				USING ERRCODE = 'object_in_use',
					DETAIL = CASE
						WHEN busy.occupied_from > clock THEN
							format('It, or a part of it, is occupied from %s until %s.', busy.occupied_from, busy.occupied_until)
						WHEN isfinite(busy.occupied_until) THEN
							format('It, or a part of it, is occupied until %s.', busy.occupied_until)
						ELSE 'It, or a part of it, is occupied by a lease that does not expire.' END,
					HINT = 'Leave node_id out to get one that is free.';
		ELSIF busy.node_ctr_range <> wanted OR NOT is_owner() THEN
			RAISE EXCEPTION 'node %/% is in use without a lease', asked.node_id, asked.node_id_size
				USING ERRCODE = 'object_in_use',
					DETAIL = format('This server generates with node %s, or is set to.', busy.node),
					HINT = 'Leave node_id out to get one that is free. For this server, the owner of the realm can lease the node that it uses.';
		END IF;
		free_from := greatest(free_from, tick_start(busy.last_tick + 1));
	END LOOP;
	RETURN free_from;
END
$$;

-- The row of the lease to grant, of a node that looks free; without a node if none is free.
-- Error if the realm grants none now.
CREATE OR REPLACE FUNCTION draft(asked ledger, region int4multirange, clock timestamptz, anywhere boolean) RETURNS ledger LANGUAGE plpgsql
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp
AS $$
DECLARE
	failover failover := last_failover();
	pruned_until timestamptz := remembered('pruned_until');
	guard interval := (SELECT s.guard FROM settings AS s);
	cap timestamptz := cap(clock, clock);
	is_endless boolean := is_endless(asked.ttl);
	ttl interval := CASE WHEN NOT is_endless THEN asked.ttl END;
	until timestamptz := CASE WHEN is_endless THEN 'infinity' ELSE least(clock + ttl, cap) + guard END;
	lease ledger := asked;
BEGIN
	IF tick(clock) NOT BETWEEN 1 AND tick('infinity') - 1 THEN
		RAISE EXCEPTION 'the realm''s clock is at a time without IDs'
			USING ERRCODE = 'system_error',
				DETAIL = format('It is at %s. The first IDs are of 1970, and the last ones of 4261.', clock),
				HINT = 'Correct the clock of the realm''s server.';
	ELSIF clock < pruned_until THEN
		RAISE EXCEPTION 'the realm''s clock is behind leases that have been pruned'
			USING ERRCODE = 'object_not_in_prerequisite_state',
				DETAIL = format('It is at %s, and the last of them was occupied until %s.', clock, pruned_until),
				HINT = 'Correct the clock of the realm''s server if it is behind. If it was ahead before, wait until it gets there.';
	ELSIF clock < failover.granting_from THEN
		RAISE EXCEPTION 'realm grants no new lease until %',
				CASE WHEN isfinite(failover.granting_from) THEN failover.granting_from::text ELSE 'its owner says that nothing was lost' END
			USING ERRCODE = 'object_not_in_prerequisite_state',
				DETAIL = format('It was promoted, restored or copied at %s, and leases that it does not know may last until then. Its clock is at %s.',
								failover.noticed_at, clock),
				HINT = 'Leases that it knows can be renewed. After a switchover or with a synchronous standby nothing was lost: then the owner can call scru64_realm.nothing_was_lost().';
	END IF;
	IF asked.node_id IS NULL THEN
		lease.granted_at := clock;
		lease.node_ctr_range := free_node(asked, region, clock, until, anywhere);
		lease.node_id := lower(lease.node_ctr_range) >> (24 - asked.node_id_size);
	ELSE
		lease.granted_at := free_from(asked, clock, until);
		lease.node_ctr_range := node_ctr_range(asked.node_id, asked.node_id_size);
		IF lease.granted_at >= cap THEN
			RAISE EXCEPTION 'node %/% is ahead of the realm''s clock', asked.node_id, asked.node_id_size
				USING ERRCODE = 'object_not_in_prerequisite_state',
					DETAIL = format('The lease would begin at %s, and none is granted for longer than until %s.', lease.granted_at, cap),
					HINT = 'Try again when the clock gets there, or leave node_id out to get one that is free.';
		END IF;
	END IF;
	lease.expires_at := CASE WHEN is_endless THEN 'infinity' ELSE least(lease.granted_at + ttl, cap) END;
	lease.endless_since := CASE WHEN is_endless THEN clock END;
	lease.occupied_until := lease.expires_at + guard;
	lease.clock_reading := clock;
	lease.last_id := start(lease.node_ctr_range, lease.granted_at);
	RETURN lease;
END
$$;

-- Enters a lease into the ledger; null if the node was not free. No call sees a renewal
-- before its commit, nor the lease of a call that had no turn, so a node may look free.
CREATE OR REPLACE FUNCTION enter_lease(lease ledger) RETURNS ledger LANGUAGE plpgsql
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp
AS $$
DECLARE
	granted ledger;
BEGIN
	INSERT INTO ledger AS l
		(lease_id, node_id, node_id_size, holder, ttl, within, granted_at, expires_at, endless_since, occupied_until, clock_reading, last_id)
	VALUES (coalesce(lease.lease_id, gen_random_uuid()), lease.node_id, lease.node_id_size, lease.holder, lease.ttl, lease.within,
			lease.granted_at, lease.expires_at, lease.endless_since, lease.occupied_until, lease.clock_reading, lease.last_id)
	RETURNING l.* INTO granted;
	RETURN granted;
EXCEPTION WHEN exclusion_violation OR unique_violation OR lock_not_available OR deadlock_detected THEN
	RETURN NULL;
END
$$;

-- ---------------------------------------------------------------------------
-- Internal: the settings of the owner
-- ---------------------------------------------------------------------------

-- Sets one of the two and returns from when it counts; the other one is null, and stays. A
-- reduction counts at once: no call uses the old value then. For a raise see limits().
CREATE OR REPLACE FUNCTION set_ttls(max_ttl interval, first_ttl interval) RETURNS timestamptz LANGUAGE plpgsql
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp
AS $$
DECLARE
	clock timestamptz;
	old settings;
	limits record;
	is_raised boolean;
	counts_from timestamptz;
BEGIN
	PERFORM check_duration('ttl', coalesce(max_ttl, first_ttl), '1 second', '366 days', 'It is a time from 1 second to 366 days.',
						   'A lease for longer is one without end, which the owner can ask for.');
	max_ttl := in_seconds(max_ttl);
	first_ttl := in_seconds(first_ttl);
	PERFORM wait_for_calls();
	-- a raise is counted from here on
	PERFORM begin_change(is_short => true);
	PERFORM note_failover();
	clock := clock();
	limits := limits(clock);
	SELECT * INTO old FROM settings;
	is_raised := max_ttl > limits.max_ttl OR first_ttl > limits.first_ttl;
	max_ttl := coalesce(max_ttl, old.next_max_ttl, old.max_ttl);
	first_ttl := coalesce(first_ttl, old.next_first_ttl, old.first_ttl);
	IF max_ttl > limits.max_ttl OR first_ttl > limits.first_ttl THEN
		counts_from := CASE WHEN (max_ttl, first_ttl) = (old.next_max_ttl, old.next_first_ttl) THEN old.next_from
			ELSE clock + limits.max_ttl + limits.slack END;
	END IF;
	UPDATE settings AS s
	SET max_ttl = least(limits.max_ttl, set_ttls.max_ttl), first_ttl = least(limits.first_ttl, set_ttls.first_ttl),
		next_max_ttl = CASE WHEN counts_from IS NOT NULL THEN set_ttls.max_ttl END,
		next_first_ttl = CASE WHEN counts_from IS NOT NULL THEN set_ttls.first_ttl END,
		next_from = counts_from;
	PERFORM set_failover(longest_wait(f), suffix)
	FROM unnest(ARRAY['', '_before']) AS suffix, last_failover(suffix) AS f
	WHERE clock < f.lost_until;
	RETURN greatest(clock, CASE WHEN is_raised THEN counts_from END);
END
$$;
