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
-- The IDs of a lease are those after the tick of granted_at, up to its end. A next
-- lease of any of its node_ctr values is granted at occupied_until or later. So it
-- begins above all IDs of the one before, and nobody needs to know them.
--
-- Extension scru64 may be in any schema and may be moved to another one. The type
-- of last_id is bound here, and the functions that parse a node spec and show the
-- nodes in use; from here on they are called ledger.last_id%TYPE, node_ctr_range()
-- and generators(), and IDs are taken apart as bigint.
-- ---------------------------------------------------------------------------

CREATE TABLE scru64_realm.ledger (
	lease_id pg_catalog.uuid NOT NULL,
	node_id pg_catalog.int4 NOT NULL,
	node_id_size pg_catalog.int4 NOT NULL,
	holder pg_catalog.text NOT NULL,
	role pg_catalog.name NOT NULL DEFAULT session_user,
	ttl pg_catalog.interval,
	within pg_catalog.text,
	granted_at pg_catalog.timestamptz NOT NULL,
	expires_at pg_catalog.timestamptz NOT NULL,
	endless_since pg_catalog.timestamptz,
	revoked_at pg_catalog.timestamptz,
	released_at pg_catalog.timestamptz,
	occupied_until pg_catalog.timestamptz NOT NULL,
	changed_at pg_catalog.timestamptz NOT NULL,
	last_id scru64 NOT NULL,
	parent pg_catalog.uuid
);

CREATE FUNCTION scru64_realm.node_ctr_range(node_id pg_catalog.int4, node_id_size pg_catalog.int4) RETURNS pg_catalog.int4range
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
	RETURN pg_catalog.int4range(
		node_id OPERATOR(pg_catalog.<<) (24 OPERATOR(pg_catalog.-) node_id_size),
		(node_id OPERATOR(pg_catalog.+) 1) OPERATOR(pg_catalog.<<) (24 OPERATOR(pg_catalog.-) node_id_size));

COMMENT ON FUNCTION scru64_realm.node_ctr_range(pg_catalog.int4, pg_catalog.int4) IS 'node_ctr values of a node';

CREATE FUNCTION scru64_realm.node_ctr_range(node_spec pg_catalog.text) RETURNS pg_catalog.int4range
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
	RETURN (SELECT scru64_realm.node_ctr_range(n.node_id, n.node_id_size) FROM scru64_parse_node_spec(node_spec) AS n);

COMMENT ON FUNCTION scru64_realm.node_ctr_range(pg_catalog.text) IS 'node_ctr values of the node of a node spec';

CREATE FUNCTION scru64_realm.generators(
	OUT node pg_catalog.text,
	OUT node_ctr_range pg_catalog.int4range,
	OUT last_id pg_catalog.int8
) RETURNS SETOF pg_catalog.record
	LANGUAGE sql VOLATILE PARALLEL SAFE ROWS 10
BEGIN ATOMIC
	SELECT pg_catalog.format('%s/%s', g.node_id, g.node_id_size), scru64_realm.node_ctr_range(g.node_id, g.node_id_size),
		   CAST(n.node_prev AS pg_catalog.int8)
	FROM scru64_generators() AS g, scru64_parse_node_spec(g.node_spec) AS n;
END;

COMMENT ON FUNCTION scru64_realm.generators() IS 'nodes that this server has generated IDs of, and the ID after which each continues';

-- The one function with more rights than the extension's owner has: a session may have
-- another value than the server's, and only superusers see the files.
CREATE FUNCTION scru64_realm.server_node_specs() RETURNS SETOF pg_catalog.text
	LANGUAGE sql VOLATILE PARALLEL RESTRICTED SECURITY DEFINER ROWS 1 SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	SELECT f.setting FROM pg_catalog.pg_file_settings AS f WHERE pg_catalog.lower(f.name) OPERATOR(pg_catalog.=) 'scru64.node_spec';
END;

COMMENT ON FUNCTION scru64_realm.server_node_specs() IS 'node specs in the configuration files of this server';

-- Only members of pg_monitor may see them, and the realm's owner from now on.
GRANT EXECUTE ON FUNCTION scru64_generators() TO @extowner@;

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
	ADD CHECK ((expires_at = 'infinity') = (endless_since IS NOT NULL)),
	-- by release, or by a split
	ADD CHECK (released_at BETWEEN granted_at AND expires_at),
	-- an end, and after it the guard time, except for a lease that was split
	ADD CHECK (coalesce(released_at, expires_at) <= occupied_until),
	ADD CHECK (ttl > '0'),
	ADD CHECK (((last_id::bigint) & 16777215)::integer <@ node_ctr_range),
	ADD CHECK ((last_id::bigint) >> 24 > 0),
	ADD CHECK (parent <> lease_id);

-- What is occupied now, out of a long history
CREATE INDEX ledger_occupied_until ON scru64_realm.ledger (occupied_until) INCLUDE (node_ctr_range, granted_at);

COMMENT ON TABLE scru64_realm.ledger IS 'all leases, with those that have ended; lease_id is the holder''s secret';
COMMENT ON COLUMN scru64_realm.ledger.lease_id IS 'secret that renews, releases and splits the lease';
COMMENT ON COLUMN scru64_realm.ledger.node_id IS 'node_id of the node';
COMMENT ON COLUMN scru64_realm.ledger.node_id_size IS 'bits of the node_id';
COMMENT ON COLUMN scru64_realm.ledger.holder IS 'who has it, as given to lease()';
COMMENT ON COLUMN scru64_realm.ledger.role IS 'who has leased it: the role of the session';
COMMENT ON COLUMN scru64_realm.ledger.ttl IS 'as asked for; null: the longest';
COMMENT ON COLUMN scru64_realm.ledger.within IS 'as asked for';
COMMENT ON COLUMN scru64_realm.ledger.granted_at IS 'start of the lease: its IDs are of later ticks than this one';
COMMENT ON COLUMN scru64_realm.ledger.expires_at IS 'end of the lease, unless it is renewed or released before';
COMMENT ON COLUMN scru64_realm.ledger.endless_since IS 'since when it has no end; null if it has one';
COMMENT ON COLUMN scru64_realm.ledger.revoked_at IS 'when it was revoked: it is not renewed; null if it was not';
COMMENT ON COLUMN scru64_realm.ledger.released_at IS 'when it was released or split; null if it was not';
COMMENT ON COLUMN scru64_realm.ledger.occupied_until IS 'time from which the node may be leased again: end and guard time';
COMMENT ON COLUMN scru64_realm.ledger.changed_at IS 'the latest that the clock was when it was granted or changed';
COMMENT ON COLUMN scru64_realm.ledger.last_id IS 'last ID told by the holder, or that the lease began after';
COMMENT ON COLUMN scru64_realm.ledger.parent IS 'lease that was split into this one; it may have been pruned since';
COMMENT ON COLUMN scru64_realm.ledger.node_ctr_range IS 'node_ctr values of the node';
COMMENT ON COLUMN scru64_realm.ledger.occupied IS 'when nobody else may have the node';
COMMENT ON CONSTRAINT ledger_never_twice ON scru64_realm.ledger
	IS 'two leases share node_ctr values at different times only';

-- Locks. Tables of the owner's, and not advisory locks: anybody could take those.
--
-- Whoever changes a lease holds the weakest lock on the first, from before it reads the
-- settings and the clock. So who has the strongest one knows that nobody goes by older
-- settings. Whoever looks for a free node holds a lock on the second, if it is to be had
-- soon: it saves them from looking at the same one, no more.
CREATE TABLE scru64_realm.allocator ();
CREATE TABLE scru64_realm.turn ();

COMMENT ON TABLE scru64_realm.allocator IS 'empty; locked by whoever changes leases';
COMMENT ON TABLE scru64_realm.turn IS 'empty; locked by whoever looks for a free node';


-- ---------------------------------------------------------------------------
-- Settings
--
-- A table, because every caller could SET a parameter. CREATE EXTENSION makes its
-- row; the row of a dump takes its place, so that a realm that is restored is the
-- realm that was dumped.
-- ---------------------------------------------------------------------------

CREATE TABLE scru64_realm.settings (
	only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
	realm_id uuid NOT NULL DEFAULT gen_random_uuid(),
	made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	guard interval NOT NULL DEFAULT '30 seconds' CHECK (guard BETWEEN '0' AND '1 day'),
	max_ttl interval NOT NULL DEFAULT '1 hour' CHECK (max_ttl > '0'),
	first_ttl interval NOT NULL DEFAULT '131 seconds' CHECK (first_ttl > '0'),
	next_max_ttl interval,
	next_first_ttl interval,
	next_from timestamptz,
	CHECK (num_nulls(next_max_ttl, next_first_ttl, next_from) IN (0, 3))
);

COMMENT ON TABLE scru64_realm.settings IS 'which realm this is, and its settings; see set_guard(), set_max_ttl(), set_first_ttl()';
COMMENT ON COLUMN scru64_realm.settings.only_row IS 'true: there is one row';
COMMENT ON COLUMN scru64_realm.settings.realm_id IS 'name of this realm, made by CREATE EXTENSION and kept by dumps';
COMMENT ON COLUMN scru64_realm.settings.made_at IS 'when CREATE EXTENSION made it';
COMMENT ON COLUMN scru64_realm.settings.guard IS 'time from the end of a lease to the next one of the same node';
COMMENT ON COLUMN scru64_realm.settings.max_ttl IS 'how far from now on a lease may be promised';
COMMENT ON COLUMN scru64_realm.settings.first_ttl IS 'how far a new lease may be';
COMMENT ON COLUMN scru64_realm.settings.next_max_ttl IS 'max_ttl as it was raised; null if it was not';
COMMENT ON COLUMN scru64_realm.settings.next_first_ttl IS 'first_ttl with that';
COMMENT ON COLUMN scru64_realm.settings.next_from IS 'from when those two count';

CREATE FUNCTION scru64_realm.replace_settings() RETURNS trigger
	LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	DELETE FROM scru64_realm.settings;
	RETURN NEW;
END
$$;

COMMENT ON FUNCTION scru64_realm.replace_settings() IS 'let the row that comes take the place of the one that is there';

CREATE TRIGGER one_row BEFORE INSERT ON scru64_realm.settings
	FOR EACH ROW EXECUTE FUNCTION scru64_realm.replace_settings();

COMMENT ON TRIGGER one_row ON scru64_realm.settings IS 'a dump is restored';

INSERT INTO scru64_realm.settings DEFAULT VALUES;


-- ---------------------------------------------------------------------------
-- Marks
--
-- What a realm has to remember of its own past. They are sequences because those keep
-- what was written also when the transaction fails: the lease() that finds out that it
-- has to wait is refused, and the next one must not begin to wait anew.
--
-- Times are microseconds since 1970; the greatest number is infinity.
-- ---------------------------------------------------------------------------

CREATE SEQUENCE scru64_realm.home MINVALUE 0;
CREATE SEQUENCE scru64_realm.timeline MINVALUE 0;
CREATE SEQUENCE scru64_realm.pruned_until MINVALUE 0;

COMMENT ON SEQUENCE scru64_realm.home IS 'where leases are granted: what here() was then';
COMMENT ON SEQUENCE scru64_realm.timeline IS 'timeline of this server then';
COMMENT ON SEQUENCE scru64_realm.pruned_until IS 'end of all leases that prune() has deleted';

-- The last time that the realm found itself promoted, restored or copied
CREATE SEQUENCE scru64_realm.reason MINVALUE 0;
CREATE SEQUENCE scru64_realm.changed_at MINVALUE 0;
CREATE SEQUENCE scru64_realm.known_until MINVALUE 0;
CREATE SEQUENCE scru64_realm.granting_from MINVALUE 0;
CREATE SEQUENCE scru64_realm.lost_until MINVALUE 0;

COMMENT ON SEQUENCE scru64_realm.reason IS 'what here() was then; 1: something_was_lost() was called; 0: it was not';
COMMENT ON SEQUENCE scru64_realm.changed_at IS 'when it was noticed that the realm was promoted, restored or copied';
COMMENT ON SEQUENCE scru64_realm.known_until IS 'the latest that the clock is known to have been before that';
COMMENT ON SEQUENCE scru64_realm.granting_from IS 'end of all leases whose grants may have been lost then';
COMMENT ON SEQUENCE scru64_realm.lost_until IS 'end of all leases whose renewals may have been lost then';

-- The same before that, for nothing_was_lost()
CREATE SEQUENCE scru64_realm.changed_at_before MINVALUE 0;
CREATE SEQUENCE scru64_realm.known_until_before MINVALUE 0;
CREATE SEQUENCE scru64_realm.granting_from_before MINVALUE 0;
CREATE SEQUENCE scru64_realm.lost_until_before MINVALUE 0;

COMMENT ON SEQUENCE scru64_realm.changed_at_before IS 'what changed_at was before';
COMMENT ON SEQUENCE scru64_realm.known_until_before IS 'what known_until was before';
COMMENT ON SEQUENCE scru64_realm.granting_from_before IS 'what granting_from was before';
COMMENT ON SEQUENCE scru64_realm.lost_until_before IS 'what lost_until was before';

-- The four together
CREATE TYPE scru64_realm.change AS (
	changed_at timestamptz,
	known_until timestamptz,
	granting_from timestamptz,
	lost_until timestamptz
);

COMMENT ON TYPE scru64_realm.change IS 'when the realm was promoted, restored or copied, and what may have been lost';

-- pg_dump includes what is in them.
DO $do$
DECLARE
	relation regclass;
BEGIN
	FOR relation IN
		SELECT c.oid FROM pg_class AS c
		WHERE c.relnamespace = 'scru64_realm'::regnamespace AND (c.relname IN ('ledger', 'settings') OR c.relkind = 'S')
		ORDER BY c.oid
	LOOP
		PERFORM pg_extension_config_dump(relation, '');
	END LOOP;
END
$do$;


-- ---------------------------------------------------------------------------
-- What the functions have in common
--
-- For the owner only, who calls them from within the functions that are granted, and
-- with the settings of those. The end of this script sees to both.
--
-- What others commit meanwhile has to be seen. So a function that decides by what is in
-- a table is VOLATILE: then each of its statements has a snapshot of its own.
-- ---------------------------------------------------------------------------

-- Not now(): a lease that is taken late in a transaction begins late.
CREATE FUNCTION scru64_realm.clock() RETURNS timestamptz
	LANGUAGE sql VOLATILE PARALLEL SAFE
	RETURN clock_timestamp();

COMMENT ON FUNCTION scru64_realm.clock() IS 'the time, for everything here';

-- What the settings say. A raise counts for grants when the realm has known it for so
-- long that a standby that is promoted knows it, too; what was lost is waited for as
-- though it counted at once.
CREATE FUNCTION scru64_realm.limits(
	clock timestamptz,
	OUT guard interval,
	OUT slack interval,				-- greater than the difference of clocks
	OUT max_ttl interval,
	OUT first_ttl interval,
	OUT longest_ttl interval,		-- at any time
	OUT longest_first_ttl interval
)
	LANGUAGE sql VOLATILE PARALLEL SAFE
BEGIN ATOMIC
	SELECT s.guard, greatest(s.guard, interval '30 s'),
		   CASE WHEN clock >= s.next_from THEN s.next_max_ttl ELSE s.max_ttl END,
		   CASE WHEN clock >= s.next_from THEN s.next_first_ttl ELSE s.first_ttl END,
		   greatest(s.max_ttl, s.next_max_ttl), greatest(s.first_ttl, s.next_first_ttl)
	FROM scru64_realm.settings AS s;
END;

COMMENT ON FUNCTION scru64_realm.limits(timestamptz) IS 'what the settings say at a time';

-- interval has an infinity only from PostgreSQL 17 on, so a thousand years mean
-- the same.
CREATE FUNCTION scru64_realm.is_endless(ttl interval) RETURNS boolean
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN ttl IS NOT NULL AND ttl >= interval '1000 years';

COMMENT ON FUNCTION scru64_realm.is_endless(interval) IS 'does it stand for no end?';

CREATE FUNCTION scru64_realm.is_owner() RETURNS boolean
	LANGUAGE sql STABLE PARALLEL RESTRICTED
	RETURN pg_has_role(session_user, current_user, 'MEMBER');

COMMENT ON FUNCTION scru64_realm.is_owner() IS 'may the caller of a function that has its owner''s rights do what the owner may?';

CREATE FUNCTION scru64_realm.check_ttl(ttl interval) RETURNS void
	LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
AS $$
BEGIN
	IF ttl <= interval '0' THEN
		RAISE EXCEPTION 'invalid ttl: %', ttl
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = 'It is how long the lease lasts: a time greater than 0.',
				HINT = 'Leave it out to get the longest that the realm grants.';
	ELSIF scru64_realm.is_endless(ttl) AND NOT scru64_realm.is_owner() THEN
		RAISE EXCEPTION 'permission denied for a lease without end'
			USING ERRCODE = 'insufficient_privilege',
				DETAIL = 'Its node would be lost to others for good.',
				HINT = 'Ask the owner of the realm, or give a ttl of less than 1000 years, and renew.';
	END IF;
END
$$;

COMMENT ON FUNCTION scru64_realm.check_ttl(interval) IS 'error for what is no ttl, or not the caller''s to ask for';

-- A lease without end is occupied without end at once. But its holder is told so only
-- when a standby that is promoted knows it.
CREATE FUNCTION scru64_realm.told(lease scru64_realm.ledger, clock timestamptz, cap timestamptz) RETURNS timestamptz
	LANGUAGE sql VOLATILE PARALLEL SAFE
	RETURN CASE WHEN isfinite(lease.expires_at) THEN lease.expires_at
		WHEN clock > lease.endless_since + (SELECT l.max_ttl + l.slack FROM scru64_realm.limits(clock) AS l) THEN 'infinity'
		ELSE cap END;

COMMENT ON FUNCTION scru64_realm.told(scru64_realm.ledger, timestamptz, timestamptz) IS 'end of a lease that its holder is told';

-- As a lease gets older: if nobody releases it, it costs about its own lifetime. And a
-- realm that has forgotten a new one need not wait long.
CREATE FUNCTION scru64_realm.cap(granted_at timestamptz, clock timestamptz) RETURNS timestamptz
	LANGUAGE sql VOLATILE PARALLEL SAFE
	RETURN (SELECT clock + least(l.max_ttl, greatest(l.first_ttl, clock - granted_at)) FROM scru64_realm.limits(clock) AS l);

COMMENT ON FUNCTION scru64_realm.cap(timestamptz, timestamptz) IS 'how far a lease may be promised';

-- The timestamp of IDs that are generated at a time, in ticks of 256 ms since 1970,
-- and the time at which it begins. Later times have the last timestamp of all.
CREATE FUNCTION scru64_realm.tick(at timestamptz) RETURNS bigint
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
	RETURN least(floor(extract(epoch FROM at) * 1000 / 256), 282429536479);

COMMENT ON FUNCTION scru64_realm.tick(timestamptz) IS 'tick of 256 ms that holds a time';

CREATE FUNCTION scru64_realm.tick_start(tick bigint) RETURNS timestamptz
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
	RETURN timestamptz '1970-01-01 00:00:00+00' + tick * interval '256 ms';

COMMENT ON FUNCTION scru64_realm.tick_start(bigint) IS 'time at which a tick begins';

-- The ID after which a lease begins: the last one that its node could have in the
-- tick of granted_at
CREATE FUNCTION scru64_realm.start(node_ctr_range int4range, granted_at timestamptz) RETURNS bigint
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
	RETURN scru64_realm.tick(granted_at) << 24 | (upper(node_ctr_range) - 1);

COMMENT ON FUNCTION scru64_realm.start(int4range, timestamptz) IS 'ID after which a lease begins';

CREATE FUNCTION scru64_realm.node_spec(
	node_ctr_range int4range,
	granted_at timestamptz,
	node_id_size integer
) RETURNS text
	LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
AS $$
DECLARE
	-- from bigint
	start scru64_realm.ledger.last_id%TYPE := scru64_realm.start(node_ctr_range, granted_at);
BEGIN
	RETURN format('%s/%s', start, node_id_size);
END
$$;

COMMENT ON FUNCTION scru64_realm.node_spec(int4range, timestamptz, integer) IS 'node spec of a lease, as granted';

-- Times as the marks keep them
CREATE FUNCTION scru64_realm.mark(at timestamptz) RETURNS bigint
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
	RETURN CASE WHEN isfinite(at) THEN extract(epoch FROM at) * 1000000 ELSE 9223372036854775807 END;

COMMENT ON FUNCTION scru64_realm.mark(timestamptz) IS 'number that stands for a time in a mark';

CREATE FUNCTION scru64_realm.mark_time(mark bigint) RETURNS timestamptz
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
	RETURN CASE WHEN mark < 9223372036854775807
		THEN timestamptz '1970-01-01 00:00:00+00' + mark * interval '1 us' ELSE 'infinity' END;

COMMENT ON FUNCTION scru64_realm.mark_time(bigint) IS 'time that a number in a mark stands for';

CREATE FUNCTION scru64_realm.marks() RETURNS scru64_realm.change
	LANGUAGE sql VOLATILE PARALLEL SAFE
	RETURN ROW(scru64_realm.mark_time((SELECT m.last_value FROM scru64_realm.changed_at AS m)),
			   scru64_realm.mark_time((SELECT m.last_value FROM scru64_realm.known_until AS m)),
			   scru64_realm.mark_time((SELECT m.last_value FROM scru64_realm.granting_from AS m)),
			   scru64_realm.mark_time((SELECT m.last_value FROM scru64_realm.lost_until AS m)))::scru64_realm.change;

COMMENT ON FUNCTION scru64_realm.marks() IS 'the last time that the realm was promoted, restored or copied';

CREATE FUNCTION scru64_realm.marks_before() RETURNS scru64_realm.change
	LANGUAGE sql VOLATILE PARALLEL SAFE
	RETURN ROW(scru64_realm.mark_time((SELECT m.last_value FROM scru64_realm.changed_at_before AS m)),
			   scru64_realm.mark_time((SELECT m.last_value FROM scru64_realm.known_until_before AS m)),
			   scru64_realm.mark_time((SELECT m.last_value FROM scru64_realm.granting_from_before AS m)),
			   scru64_realm.mark_time((SELECT m.last_value FROM scru64_realm.lost_until_before AS m)))::scru64_realm.change;

COMMENT ON FUNCTION scru64_realm.marks_before() IS 'what marks() was before that';

-- suffix: '_before' for those
CREATE FUNCTION scru64_realm.set_marks(marks scru64_realm.change, suffix text DEFAULT '') RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
BEGIN
	PERFORM setval(format('scru64_realm.%I', m.name || suffix)::regclass, scru64_realm.mark(m.at))
	FROM (VALUES ('changed_at', marks.changed_at), ('known_until', marks.known_until),
				 ('granting_from', marks.granting_from), ('lost_until', marks.lost_until)) AS m (name, at);
END
$$;

COMMENT ON FUNCTION scru64_realm.set_marks(scru64_realm.change, text) IS 'set what marks() or marks_before() returns';

-- What may have been lost, at the longest. A grant: it was made after known_until, so
-- that the lease is not older than that, give or take what clocks differ by. A renewal,
-- of a lease of any age: max_ttl.
CREATE FUNCTION scru64_realm.waiting(marks scru64_realm.change) RETURNS scru64_realm.change
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	limits record := scru64_realm.limits(marks.changed_at);
	age interval := marks.changed_at - marks.known_until + 2 * limits.slack;
BEGIN
	marks.granting_from := greatest(marks.granting_from, marks.changed_at + limits.slack
									+ least(limits.longest_ttl, greatest(limits.longest_first_ttl, age)));
	marks.lost_until := greatest(marks.lost_until, marks.changed_at + limits.slack + limits.longest_ttl);
	RETURN marks;
END
$$;

COMMENT ON FUNCTION scru64_realm.waiting(scru64_realm.change) IS 'these marks, with the ends of what may have been lost';

-- known_until: when the realm still knew of all leases, as far as anybody can say
-- reason: as the mark of that name. It tells whether this is the same change as the last
-- time: then what was before that is what it was.
CREATE FUNCTION scru64_realm.begin_waiting(
	clock timestamptz,
	reading timestamptz,
	known_until timestamptz,
	reason bigint
) RETURNS scru64_realm.change
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	before scru64_realm.change := scru64_realm.marks();
	marks scru64_realm.change := before;
BEGIN
	marks.changed_at := greatest(clock, reading, before.changed_at);
	-- what was lost the last time is not known by now
	marks.known_until := CASE WHEN clock < before.lost_until THEN least(known_until, before.known_until) ELSE known_until END;
	marks := scru64_realm.waiting(marks);
	IF (SELECT r.last_value FROM scru64_realm.reason AS r) <> reason THEN
		PERFORM scru64_realm.set_marks(before, '_before');
	END IF;
	-- from here on it is the same: a crash may keep a part of the marks
	PERFORM setval('scru64_realm.reason', reason);
	PERFORM scru64_realm.set_marks(marks);
	RETURN marks;
END
$$;

COMMENT ON FUNCTION scru64_realm.begin_waiting
	IS 'have the realm wait for leases that may have been lost';

-- The latest that the clock is known to have been, unless it was a day ahead: then it was
-- wrong.
CREATE FUNCTION scru64_realm.reading(clock timestamptz) RETURNS timestamptz
	LANGUAGE plpgsql VOLATILE PARALLEL SAFE
AS $$
BEGIN
	RETURN (SELECT max(r.at)
			FROM (SELECT l.changed_at FROM scru64_realm.ledger AS l
				  UNION ALL
				  SELECT s.made_at FROM scru64_realm.settings AS s) AS r (at)
			WHERE r.at <= clock + interval '1 day');
END
$$;

COMMENT ON FUNCTION scru64_realm.reading(timestamptz) IS 'the latest that the clock is known to have been';

CREATE FUNCTION scru64_realm.timeline() RETURNS integer
	LANGUAGE sql VOLATILE PARALLEL SAFE
	RETURN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer;

COMMENT ON FUNCTION scru64_realm.timeline() IS 'timeline of this server';

-- A standby that was promoted has another timeline, a dump that was restored elsewhere
-- another system identifier, in another database that one's oid, and in place of what
-- was there the extension's.
CREATE FUNCTION scru64_realm.here() RETURNS bigint
	LANGUAGE sql VOLATILE PARALLEL SAFE
	RETURN hashtextextended(format('%s/%s/%s/%s',
			(SELECT c.system_identifier FROM pg_control_system() AS c),
			scru64_realm.timeline(),
			(SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()),
			(SELECT e.oid FROM pg_extension AS e WHERE e.extname = 'scru64_realm')), 0)
		& 9223372036854775807;

COMMENT ON FUNCTION scru64_realm.here() IS 'this server, timeline, database and extension, as one number';

CREATE FUNCTION scru64_realm.is_home() RETURNS boolean
	LANGUAGE sql VOLATILE PARALLEL SAFE
	RETURN (SELECT h.last_value FROM scru64_realm.home AS h) = scru64_realm.here();

COMMENT ON FUNCTION scru64_realm.is_home() IS 'is the ledger where it was when the last lease was granted?';

SELECT setval('scru64_realm.home', scru64_realm.here()), setval('scru64_realm.timeline', scru64_realm.timeline());

-- The ledger is not where it was when the last lease was granted. It may have lost some:
-- wait for as long as those can last.
CREATE FUNCTION scru64_realm.move_in() RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	clock timestamptz;
	reading timestamptz;
	marks scru64_realm.change;
BEGIN
	-- one at a time
	LOCK TABLE scru64_realm.settings IN SHARE ROW EXCLUSIVE MODE;
	IF scru64_realm.is_home() THEN
		RETURN;
	END IF;
	clock := scru64_realm.clock();
	reading := scru64_realm.reading(clock);
	marks := scru64_realm.begin_waiting(clock, reading, coalesce(reading, scru64_realm.mark_time(0)), scru64_realm.here());
	-- promoted more than once: nobody's word is for all of that
	PERFORM scru64_realm.set_marks(marks, '_before')
	FROM scru64_realm.timeline AS t
	WHERE scru64_realm.timeline() > t.last_value + 1;
	PERFORM setval('scru64_realm.timeline', scru64_realm.timeline());
	-- at last: to begin to wait again does no harm
	PERFORM setval('scru64_realm.home', scru64_realm.here());
	RAISE LOG 'realm in database "%" was promoted, restored or copied: it grants no new lease until %',
			current_database(), marks.granting_from
		USING DETAIL = format('Leases that were granted after %s may be unknown, and nodes that were leased then are not free before %s.',
							  marks.known_until, marks.lost_until),
			HINT = 'If nothing was lost, its owner can say so: scru64_realm.nothing_was_lost().';
END
$$;

COMMENT ON FUNCTION scru64_realm.move_in() IS 'have a realm wait that was promoted, restored or copied';

-- The lock of the one that notices goes at once: its transaction may stay open, and others
-- would wait. What it rolls back for that leaves the marks as they are: they are sequences.
CREATE FUNCTION scru64_realm.check_home() RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
BEGIN
	-- what cannot write is refused later
	IF pg_is_in_recovery() OR scru64_realm.is_home() THEN
		RETURN;
	END IF;
	BEGIN
		PERFORM scru64_realm.move_in();
		RAISE SQLSTATE 'SR001';
	EXCEPTION WHEN SQLSTATE 'SR001' THEN
		RETURN;
	END;
END
$$;

COMMENT ON FUNCTION scru64_realm.check_home() IS 'have a realm wait if it was promoted, restored or copied';

-- Nodes that are in use on this server without a lease: set for somebody, or with a
-- last ID that no lease in the ledger has room for.
--
-- Up to PostgreSQL 16 no parallel plan may enter a block with EXCEPTION.
CREATE FUNCTION scru64_realm.unleased(
	OUT node text,
	OUT node_ctr_range int4range,
	OUT last_id bigint
) RETURNS SETOF record
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 10
AS $$
BEGIN
	RETURN QUERY
	SELECT g.node, g.node_ctr_range, g.last_id FROM scru64_realm.generators() AS g
	WHERE NOT EXISTS (SELECT FROM scru64_realm.ledger AS l
					  WHERE l.node_ctr_range @> g.node_ctr_range
						AND g.last_id >> 24 BETWEEN scru64_realm.tick(l.granted_at) AND scru64_realm.tick(l.occupied_until));
	FOR node IN
		SELECT current_setting('scru64.node_spec', true)
		UNION
		SELECT s FROM scru64_realm.server_node_specs() AS s
		UNION
		SELECT split_part(s.setting, '=', 2) FROM pg_db_role_setting AS d, unnest(d.setconfig) AS s (setting)
		WHERE lower(s.setting) LIKE 'scru64.node\_spec=%'
	LOOP
		BEGIN
			node_ctr_range := scru64_realm.node_ctr_range(node);
			last_id := 0;
			CONTINUE WHEN node_ctr_range IS NULL;
			RETURN NEXT;
		EXCEPTION WHEN invalid_parameter_value THEN
			-- nobody can generate with it
		END;
	END LOOP;
END
$$;

COMMENT ON FUNCTION scru64_realm.unleased() IS 'nodes that are in use on this server without a lease';

-- While a lease may have been renewed for longer than the ledger says, its node is not
-- free.
CREATE FUNCTION scru64_realm.forgotten(
	clock timestamptz,
	OUT lasted_until timestamptz,	-- if it lasted until then,
	OUT lost_until timestamptz		-- it may have been renewed until then; null: not any more
)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
BEGIN
	SELECT m.known_until - l.slack, m.lost_until INTO lasted_until, lost_until
	FROM scru64_realm.marks() AS m, scru64_realm.limits(clock) AS l
	WHERE clock < m.lost_until;
END
$$;

COMMENT ON FUNCTION scru64_realm.forgotten(timestamptz) IS 'which leases may have been renewed without being known to be';

-- What cannot be leased from now until a time, and why. STABLE, so that it becomes a
-- part of the query that asks.
CREATE FUNCTION scru64_realm.busy(
	clock timestamptz,
	until timestamptz,
	lasted_until timestamptz,
	lost_until timestamptz,
	OUT node_ctr_range int4range,
	OUT occupied_from timestamptz,
	OUT occupied_until timestamptz,
	OUT node text,
	OUT last_id bigint
) RETURNS SETOF record
	LANGUAGE sql STABLE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT l.node_ctr_range, l.granted_at, greatest(l.occupied_until, lost_until), NULL::text, NULL::bigint
	FROM scru64_realm.ledger AS l
	-- "occupied" and this time overlap
	WHERE l.occupied_until > least(clock, lasted_until) AND l.granted_at < least(l.occupied_until, until)
	UNION ALL
	SELECT u.node_ctr_range, NULL, NULL, u.node, u.last_id FROM scru64_realm.unleased() AS u;
END;

COMMENT ON FUNCTION scru64_realm.busy
	IS 'what is leased at any time between these, and nodes in use without a lease';

CREATE FUNCTION scru64_realm.free(
	clock timestamptz,
	until timestamptz,
	place int4range DEFAULT '[0,16777216)'
) RETURNS int4multirange
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
AS $$
DECLARE
	forgotten record := scru64_realm.forgotten(clock);
BEGIN
	RETURN int4multirange(place) - coalesce(
		(SELECT range_agg(b.node_ctr_range)
		 FROM scru64_realm.busy(clock, until, forgotten.lasted_until, forgotten.lost_until) AS b
		 WHERE b.node_ctr_range && place), '{}');
END
$$;

COMMENT ON FUNCTION scru64_realm.free IS 'node_ctr values in a place that can be leased from now until a time';

-- A lease that is not acknowledged until it is on disk cannot be forgotten in a
-- crash and be granted again. If the server has synchronous standbys, it is on
-- their disks, too.
CREATE FUNCTION scru64_realm.commit_durably() RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
BEGIN
	IF current_setting('synchronous_commit') IN ('off', 'local', 'remote_write') THEN
		PERFORM set_config('synchronous_commit', 'on', true);
	END IF;
END
$$;

COMMENT ON FUNCTION scru64_realm.commit_durably()
	IS 'have the transaction on disk before its commit is acknowledged';

-- Who does not commit shall not hold others up. And what is granted is to be known soon:
-- a realm that was promoted goes by that.
CREATE FUNCTION scru64_realm.keep_short() RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE
	AS '$libdir/scru64', 'scru64_keep_short';

COMMENT ON FUNCTION scru64_realm.keep_short() IS 'have this transaction end in 15 seconds, and not be prepared';

-- A snapshot that is older than the wait for others does not show what they have
-- leased, where they have ended, or what the settings are by now.
CREATE FUNCTION scru64_realm.begin_call() RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
BEGIN
	IF current_setting('transaction_isolation') NOT LIKE 'read %' THEN
		RAISE EXCEPTION 'cannot change a lease in a transaction with isolation level %', current_setting('transaction_isolation')
			USING ERRCODE = 'active_sql_transaction',
				DETAIL = 'It does not see what others have committed since it began.',
				HINT = 'Use isolation level read committed.';
	END IF;
	PERFORM scru64_realm.keep_short();
	LOCK TABLE scru64_realm.allocator IN ACCESS SHARE MODE;
	PERFORM scru64_realm.check_home();
END
$$;

COMMENT ON FUNCTION scru64_realm.begin_call() IS 'what lease(), renew(), release() and split() begin with';

-- The error for a lease that is unknown is that for one that has ended, or belongs to
-- somebody who would not give away its lease_id: they look the same from here.
CREATE FUNCTION scru64_realm.check_active(lease scru64_realm.ledger, clock timestamptz) RETURNS void
	LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$
BEGIN
	IF lease.lease_id IS NULL OR lease.released_at IS NOT NULL OR lease.expires_at <= clock THEN
		RAISE EXCEPTION 'lease is not active'
			USING ERRCODE = 'object_not_in_prerequisite_state',
				-- without the lease_id: it would be in the log
				DETAIL = 'No active lease has this lease_id: it is unknown, has expired, or was released or split.',
				HINT = 'A lease that has ended is not revived. Generate until the end that you were told, at the longest, and get a new one from scru64_realm.lease().';
	END IF;
END
$$;

COMMENT ON FUNCTION scru64_realm.check_active(scru64_realm.ledger, timestamptz)
	IS 'error for a lease that is unknown or has ended';

-- One that had ended when leases were lost is not revived, wherever the clock is now:
-- who had its node next may be lost. It has not been changed since.
CREATE FUNCTION scru64_realm.check_renewable(lease scru64_realm.ledger, clock timestamptz) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
BEGIN
	IF lease.revoked_at IS NOT NULL THEN
		RAISE EXCEPTION 'lease was revoked'
			USING ERRCODE = 'object_not_in_prerequisite_state',
				DETAIL = format('The owner of the realm has revoked it at %s. It lasts until %s.',
								lease.revoked_at, lease.expires_at),
				HINT = 'Get a new one from scru64_realm.lease(), if the owner lets you.';
	END IF;
	PERFORM scru64_realm.check_active(lease, 'infinity')
	FROM scru64_realm.marks() AS m, scru64_realm.limits(clock) AS l
	WHERE lease.occupied_until <= m.changed_at + l.slack AND lease.changed_at <= m.changed_at;
END
$$;

COMMENT ON FUNCTION scru64_realm.check_renewable(scru64_realm.ledger, timestamptz) IS 'error for an active lease that is not to be renewed';

-- Lock an active lease and check the last ID that its holder tells.
CREATE FUNCTION scru64_realm.held(
	lease_id uuid,
	INOUT last_id scru64_realm.ledger.last_id%TYPE,
	OUT clock timestamptz,
	OUT since timestamptz,
	OUT known scru64_realm.ledger
)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	-- null if none is told, and so are comparisons with it
	tick bigint := last_id::bigint >> 24;
BEGIN
	IF held.lease_id IS NULL THEN
		RAISE EXCEPTION 'lease_id must not be null'
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = 'It says which lease is meant, and that the caller holds it.',
				HINT = 'It is what scru64_realm.lease() returned as lease_id.';
	END IF;
	PERFORM scru64_realm.begin_call();

	-- first the lock, then the time
	SELECT * INTO known FROM scru64_realm.ledger AS l WHERE l.lease_id = held.lease_id FOR UPDATE;
	clock := scru64_realm.clock();
	PERFORM scru64_realm.check_active(known, clock);
	-- a clock that went back after the lease was granted
	since := greatest(clock, known.granted_at);

	IF NOT (last_id::bigint & 16777215)::integer <@ known.node_ctr_range
		OR tick > scru64_realm.tick(known.expires_at) THEN
		RAISE EXCEPTION 'ID % is not of this lease', last_id
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = format('The lease is of node %s/%s and expires at %s. The time of the ID is %s.',
								known.node_id, known.node_id_size, known.expires_at, scru64_realm.tick_start(tick)),
				HINT = 'Give the last ID that was generated with this lease''s node spec.';
	ELSIF last_id IS NULL OR last_id::bigint < known.last_id::bigint THEN
		last_id := known.last_id;
	END IF;
END
$$;

COMMENT ON FUNCTION scru64_realm.held
	IS 'lock an active lease, and check the last ID told by its holder';


-- ---------------------------------------------------------------------------
-- The steps of lease()
--
-- In its order: what is asked for, a repetition, the clock and the marks, a node, the
-- ledger. What is asked for is a row that is not in the ledger yet.
-- ---------------------------------------------------------------------------

CREATE FUNCTION scru64_realm.check_node_id_size(node_id_size integer, hint text) RETURNS void
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
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

COMMENT ON FUNCTION scru64_realm.check_node_id_size(integer, text) IS 'error, with this hint, for what is no node_id_size';

-- First of all: what is too long is not to be in a message, either.
CREATE FUNCTION scru64_realm.check_texts(holder text, within text) RETURNS void
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
BEGIN
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
END
$$;

COMMENT ON FUNCTION scru64_realm.check_texts(text, text) IS 'error for what is no holder, or too long to be a block';

CREATE FUNCTION scru64_realm.place(node_id_size integer, node_id integer, within text) RETURNS int4range
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
	block integer := 1 << (24 - node_id_size);			-- node_ctr values of a node of this size
	place int4range := coalesce(scru64_realm.node_ctr_range(within), int4range(0, 16777216));
	node_ctr_range int4range;
BEGIN
	IF upper(place) - lower(place) < block THEN
		RAISE EXCEPTION 'a node with a node_id_size of % does not fit into %', node_id_size, within
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = format('It has %s node_ctr values, and %s has %s.', block, within, upper(place) - lower(place)),
				HINT = 'Ask for a greater node_id_size.';
	ELSIF node_id IS NULL THEN
		RETURN place;
	ELSIF node_id NOT BETWEEN 0 AND (1 << node_id_size) - 1 THEN
		RAISE EXCEPTION 'invalid node_id: %', node_id
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = format('A node_id of %s bits is 0 to %s.', node_id_size, (1 << node_id_size) - 1),
				HINT = 'Leave node_id out to get one that is free.';
	END IF;
	node_ctr_range := scru64_realm.node_ctr_range(node_id, node_id_size);
	IF NOT node_ctr_range <@ place THEN
		RAISE EXCEPTION 'node %/% is not within %', node_id, node_id_size, within
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = format('A node_id of %s bits within it is %s to %s.', node_id_size,
								lower(place) / block, upper(place) / block - 1),
				HINT = 'Leave node_id out to get one that is free.';
	END IF;
	RETURN node_ctr_range;
END
$$;

COMMENT ON FUNCTION scru64_realm.place(integer, integer, text)
	IS 'node_ctr values of the node that is asked for by its node_id, or of all that it may be';

-- One looks for a free node at a time, so that they do not all find the same one. But who
-- does not commit shall not keep others from it: then the ledger's constraint alone keeps
-- nodes apart.
CREATE FUNCTION scru64_realm.has_turn() RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET lock_timeout = '2s'
AS $$
BEGIN
	LOCK TABLE scru64_realm.turn IN EXCLUSIVE MODE;
	RETURN true;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
	RETURN false;
END
$$;

COMMENT ON FUNCTION scru64_realm.has_turn() IS 'wait for a turn; false if that takes too long';

-- The same request again: the answer to it was lost.
--
-- The lease may be in the WAL of this server only. So it is written again: then this
-- commit, too, waits for the standbys, or says that it did not.
CREATE FUNCTION scru64_realm.repeated(asked scru64_realm.ledger, clock timestamptz) RETURNS scru64_realm.ledger
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	known scru64_realm.ledger;
BEGIN
	UPDATE scru64_realm.ledger AS l SET holder = l.holder WHERE l.lease_id = asked.lease_id
	RETURNING l.* INTO known;
	IF NOT FOUND THEN
		RETURN NULL;
	END IF;
	PERFORM scru64_realm.check_active(known, clock);
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

COMMENT ON FUNCTION scru64_realm.repeated(scru64_realm.ledger, timestamptz) IS 'lease that was granted to this request, or null';

CREATE FUNCTION scru64_realm.check_clock(clock timestamptz) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL SAFE
AS $$
DECLARE
	pruned_until timestamptz := (SELECT scru64_realm.mark_time(m.last_value) FROM scru64_realm.pruned_until AS m);
BEGIN
	IF scru64_realm.tick(clock) NOT BETWEEN 1 AND scru64_realm.tick('infinity') - 1 THEN
		RAISE EXCEPTION 'the realm''s clock is at a time without IDs'
			USING ERRCODE = 'system_error',
				DETAIL = format('It is at %s. The first IDs are of 1970, and the last ones of 4261.', clock),
				HINT = 'Correct the clock of the realm''s server.';
	ELSIF clock < pruned_until THEN
		RAISE EXCEPTION 'the realm''s clock is behind leases that have been pruned'
			USING ERRCODE = 'object_not_in_prerequisite_state',
				DETAIL = format('It is at %s, and the last of them was occupied until %s.', clock, pruned_until),
				HINT = 'Correct the clock of the realm''s server if it is behind. If it was ahead before, wait until it gets there.';
	END IF;
END
$$;

COMMENT ON FUNCTION scru64_realm.check_clock(timestamptz) IS 'error for a time at which no lease can begin';

CREATE FUNCTION scru64_realm.check_nothing_lost(clock timestamptz) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	marks scru64_realm.change := scru64_realm.marks();
BEGIN
	IF clock < marks.granting_from THEN
		RAISE EXCEPTION 'realm grants no new lease until %',
				CASE WHEN isfinite(marks.granting_from) THEN marks.granting_from::text ELSE 'its owner says that nothing was lost' END
			USING ERRCODE = 'object_not_in_prerequisite_state',
				DETAIL = format('It was promoted, restored or copied at %s, and leases that it does not know may last until then. Its clock is at %s.',
								marks.changed_at, clock),
				HINT = 'Leases that it knows can be renewed. After a switchover or with a synchronous standby nothing was lost: then the owner can call scru64_realm.nothing_was_lost().';
	END IF;
END
$$;

COMMENT ON FUNCTION scru64_realm.check_nothing_lost(timestamptz) IS 'error while leases may be active that are not in the ledger';

-- Best fit. In a gap of the free node_ctr values, a and b are the first and the last
-- place where a block of this size could begin or end. The free blocks of the gap, each
-- as large as its alignment and the gap allow, grow from both ends to the middle. So the
-- smallest one that is large enough begins at a or ends at b, and its size is the smaller
-- one of the alignments of a and b. (0 is aligned to everything.)
--
-- Who looks beside others looks anywhere: they would find the same node.
CREATE FUNCTION scru64_realm.free_node(
	asked scru64_realm.ledger,
	place int4multirange,
	clock timestamptz,
	until timestamptz,
	anywhere boolean
) RETURNS int4range
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
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
		  FROM unnest(scru64_realm.free(clock, until, range_merge(place)) * place) AS gap
		  -- each once, and not wherever a or b is written
		  OFFSET 0) AS ends
	WHERE a < b
	ORDER BY CASE WHEN anywhere THEN random() ELSE least(nullif(a & -a, 0), b & -b) END, start
	LIMIT 1;
	RETURN CASE WHEN first IS NOT NULL THEN int4range(first, first + block) END;
END
$$;

COMMENT ON FUNCTION scru64_realm.free_node IS 'node_ctr values of a free node in these places, or null';

-- The owner may lease a node that this server uses without a lease: from the tick after
-- what it has given out.
CREATE FUNCTION scru64_realm.free_from(
	asked scru64_realm.ledger,
	clock timestamptz,
	until timestamptz
) RETURNS timestamptz
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	wanted int4range := scru64_realm.node_ctr_range(asked.node_id, asked.node_id_size);
	free_from timestamptz := clock;
	forgotten record := scru64_realm.forgotten(clock);
	busy record;
BEGIN
	-- a lease before a node in use, and the one that lasts longest
	FOR busy IN
		SELECT * FROM scru64_realm.busy(clock, until, forgotten.lasted_until, forgotten.lost_until) AS b
		WHERE b.node_ctr_range && wanted
		ORDER BY b.occupied_until DESC NULLS LAST
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
		ELSIF busy.node_ctr_range <> wanted OR NOT scru64_realm.is_owner() THEN
			RAISE EXCEPTION 'node %/% is in use without a lease', asked.node_id, asked.node_id_size
				USING ERRCODE = 'object_in_use',
					DETAIL = format('This server generates with node %s, or is set to.', busy.node),
					HINT = 'Leave node_id out to get one that is free. For this server, the owner of the realm can lease the node that it uses.';
		END IF;
		free_from := greatest(free_from, scru64_realm.tick_start((busy.last_id >> 24) + 1));
	END LOOP;
	RETURN free_from;
END
$$;

COMMENT ON FUNCTION scru64_realm.free_from
	IS 'when a lease of this node can begin; error if it is not free';

-- No reader sees a renewal before its commit, nor a lease of somebody who had no turn. So a
-- node that looks free may be taken: then it is not granted.
CREATE FUNCTION scru64_realm.enter_lease(lease scru64_realm.ledger) RETURNS scru64_realm.ledger
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	granted scru64_realm.ledger;
BEGIN
	INSERT INTO scru64_realm.ledger AS l
		(lease_id, node_id, node_id_size, holder, ttl, within, granted_at, expires_at, endless_since, occupied_until, changed_at, last_id)
	VALUES (coalesce(lease.lease_id, gen_random_uuid()), lease.node_id, lease.node_id_size, lease.holder, lease.ttl, lease.within,
			lease.granted_at, lease.expires_at, lease.endless_since, lease.occupied_until, lease.changed_at, lease.last_id)
	RETURNING l.* INTO granted;
	RETURN granted;
EXCEPTION WHEN exclusion_violation OR unique_violation OR lock_not_available OR deadlock_detected THEN
	RETURN NULL;
END
$$;

COMMENT ON FUNCTION scru64_realm.enter_lease(scru64_realm.ledger) IS 'enter a lease into the ledger; null if that cannot be now';

-- The lease to grant, of a node that looks free
CREATE FUNCTION scru64_realm.draft(
	asked scru64_realm.ledger,
	place int4multirange,
	clock timestamptz,
	anywhere boolean
) RETURNS scru64_realm.ledger
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	limits record := scru64_realm.limits(clock);
	cap timestamptz := scru64_realm.cap(clock, clock);
	is_endless boolean := scru64_realm.is_endless(asked.ttl);
	ttl interval := CASE WHEN NOT is_endless THEN scru64_realm.in_seconds(asked.ttl) END;
	until timestamptz := CASE WHEN is_endless THEN 'infinity' ELSE least(clock + ttl, cap) + limits.guard END;
	lease scru64_realm.ledger := asked;
BEGIN
	PERFORM scru64_realm.check_clock(clock);
	PERFORM scru64_realm.check_nothing_lost(clock);
	IF asked.node_id IS NULL THEN
		lease.granted_at := clock;
		lease.node_ctr_range := scru64_realm.free_node(asked, place, clock, until, anywhere);
		lease.node_id := lower(lease.node_ctr_range) >> (24 - asked.node_id_size);
	ELSE
		lease.granted_at := scru64_realm.free_from(asked, clock, until);
		lease.node_ctr_range := scru64_realm.node_ctr_range(asked.node_id, asked.node_id_size);
		IF lease.granted_at >= cap THEN
			RAISE EXCEPTION 'node %/% is ahead of the realm''s clock', asked.node_id, asked.node_id_size
				USING ERRCODE = 'object_not_in_prerequisite_state',
					DETAIL = format('The lease would begin at %s, and none is granted for longer than until %s.', lease.granted_at, cap),
					HINT = 'Try again when the clock gets there, or leave node_id out to get one that is free.';
		END IF;
	END IF;
	lease.expires_at := CASE WHEN is_endless THEN 'infinity'
		ELSE least(lease.granted_at + ttl, cap) END;
	lease.endless_since := CASE WHEN is_endless THEN clock END;
	lease.occupied_until := lease.expires_at + limits.guard;
	lease.changed_at := clock;
	lease.last_id := scru64_realm.start(lease.node_ctr_range, lease.granted_at);
	RETURN lease;
END
$$;

COMMENT ON FUNCTION scru64_realm.draft IS 'lease to grant; without a node if none is free';


CREATE FUNCTION scru64_realm.check_granted(
	granted scru64_realm.ledger,
	asked scru64_realm.ledger,
	is_full boolean
) RETURNS void
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
BEGIN
	IF granted.lease_id IS NOT NULL THEN
		RETURN;
	ELSIF is_full THEN
		RAISE EXCEPTION 'realm is full'
			USING ERRCODE = 'configuration_limit_exceeded',
				DETAIL = format('No node_id of %s bits is free%s.', asked.node_id_size, ' within ' || asked.within),
				HINT = 'Ask for a greater node_id_size, or have leases released. See the view scru64_realm.capacity.';
	END IF;
	RAISE EXCEPTION 'could not grant a lease in time'
		USING ERRCODE = 'lock_not_available',
			DETAIL = 'Transactions that have changed leases of the nodes that looked free were still open.',
			HINT = 'Try again. Whoever leases, renews, releases or splits should commit at once.';
END
$$;

COMMENT ON FUNCTION scru64_realm.check_granted IS 'error if no lease was granted';


-- ---------------------------------------------------------------------------
-- Leases
-- ---------------------------------------------------------------------------

-- A lease of a node that is free, or of this node. Where others have not committed what
-- they do with the one that looks free, wait a bit, and turn to another.
CREATE FUNCTION scru64_realm.lease(
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
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
AS $$
#variable_conflict error
DECLARE
	attempts CONSTANT integer := CASE WHEN node_id IS NULL THEN 40 ELSE 4 END;
	patience CONSTANT text := CASE WHEN node_id IS NULL THEN '200ms' ELSE '2s' END;
	asked scru64_realm.ledger;
	whole int4multirange;
	place int4multirange;
	has_turn boolean;
	draft scru64_realm.ledger;
	granted scru64_realm.ledger;
	is_full boolean;
BEGIN
	PERFORM scru64_realm.check_texts(holder, within);
	PERFORM scru64_realm.check_node_id_size(node_id_size, 'Few bits leave many for the counter; 8 are a good start.');
	PERFORM scru64_realm.check_ttl(ttl);
	whole := int4multirange(scru64_realm.place(node_id_size, node_id, within));
	place := whole;
	asked.lease_id := request;
	asked.node_id := node_id;
	asked.node_id_size := node_id_size;
	asked.holder := holder;
	asked.ttl := ttl;
	asked.within := within;
	PERFORM scru64_realm.begin_call();
	PERFORM scru64_realm.commit_durably();
	has_turn := scru64_realm.has_turn();
	PERFORM set_config('lock_timeout', patience, true);
	FOR attempt IN 1 .. attempts LOOP
		realm_clock := scru64_realm.clock();
		granted := scru64_realm.repeated(asked, realm_clock);
		EXIT WHEN granted.lease_id IS NOT NULL;
		draft := scru64_realm.draft(asked, place, realm_clock, NOT has_turn OR attempt > 1);
		is_full := draft.node_id IS NULL AND place = whole;
		EXIT WHEN is_full;
		IF draft.node_id IS NULL THEN
			-- others had all that looked free; by now they may have ended
			place := whole;
			CONTINUE;
		END IF;
		granted := scru64_realm.enter_lease(draft);
		EXIT WHEN granted.lease_id IS NOT NULL;
		IF node_id IS NULL THEN
			place := place - int4multirange(draft.node_ctr_range);
		END IF;
	END LOOP;
	PERFORM scru64_realm.check_granted(granted, asked, is_full);

	lease_id := granted.lease_id;
	node_spec := scru64_realm.node_spec(granted.node_ctr_range, granted.granted_at, granted.node_id_size);
	granted_at := granted.granted_at;
	expires_at := CASE WHEN isfinite(granted.expires_at) THEN granted.expires_at ELSE scru64_realm.cap(realm_clock, realm_clock) END;
END
$$;

COMMENT ON FUNCTION scru64_realm.lease
	IS 'lease a node: a free one of this size, or this node_id, within a block if one is given';

-- It never takes back what was promised before: the holder goes on with that if the
-- answer to this is lost.
CREATE FUNCTION scru64_realm.renew(
	lease_id uuid,
	ttl interval DEFAULT NULL,
	last_id scru64_realm.ledger.last_id%TYPE DEFAULT NULL,
	OUT expires_at timestamptz,
	OUT granted_at timestamptz,
	OUT realm_clock timestamptz
)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
AS $$
#variable_conflict error
DECLARE
	held record;
	known scru64_realm.ledger;
	limits record;
	cap timestamptz;
BEGIN
	PERFORM scru64_realm.check_ttl(ttl);
	SELECT * INTO held FROM scru64_realm.held(renew.lease_id, renew.last_id);
	known := held.known;
	PERFORM scru64_realm.check_renewable(known, held.clock);
	granted_at := known.granted_at;
	realm_clock := held.clock;
	limits := scru64_realm.limits(realm_clock);
	cap := scru64_realm.cap(granted_at, realm_clock);
	expires_at := CASE WHEN scru64_realm.is_endless(ttl) THEN 'infinity'
		ELSE least(held.since + scru64_realm.in_seconds(ttl), cap) END;
	PERFORM scru64_realm.commit_durably();
	BEGIN
		UPDATE scru64_realm.ledger AS l
		SET expires_at = greatest(l.expires_at, renew.expires_at),
			occupied_until = greatest(l.occupied_until, renew.expires_at + limits.guard),
			endless_since = coalesce(l.endless_since, CASE WHEN renew.expires_at = 'infinity' THEN realm_clock END),
			changed_at = greatest(l.changed_at, realm_clock),
			last_id = held.last_id
		WHERE l.lease_id = renew.lease_id
		RETURNING * INTO known;
	EXCEPTION WHEN exclusion_violation THEN
		-- The clock was ahead, and somebody else was granted the node.
		RAISE EXCEPTION 'lease cannot be extended to %', expires_at
			USING ERRCODE = 'object_in_use',
				DETAIL = format('It expires at %s, and by a clock that was ahead its node is leased to somebody else after that.',
								known.expires_at),
				HINT = 'Give a smaller ttl, or get a new lease from scru64_realm.lease().';
	END;
	expires_at := scru64_realm.told(known, realm_clock, cap);
END
$$;

COMMENT ON FUNCTION scru64_realm.renew IS 'let an active lease last for ttl from now on, or for as long as it does';

-- Its IDs end at last_id. So the node is occupied for the guard time, or until the
-- tick after last_id if that is later. Never for longer than before: what comes then
-- may be somebody else's already.
CREATE FUNCTION scru64_realm.release(
	lease_id uuid,
	last_id scru64_realm.ledger.last_id%TYPE DEFAULT NULL
) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
AS $$
#variable_conflict error
DECLARE
	held record;
BEGIN
	SELECT * INTO held FROM scru64_realm.held(release.lease_id, release.last_id);
	UPDATE scru64_realm.ledger AS l
	SET released_at = held.since, last_id = held.last_id, changed_at = greatest(l.changed_at, held.clock),
		occupied_until = least(l.occupied_until,
							   greatest(held.since + s.guard,
										scru64_realm.tick_start((held.last_id::bigint >> 24) + 1)))
	FROM scru64_realm.settings AS s
	WHERE l.lease_id = release.lease_id;
END
$$;

COMMENT ON FUNCTION scru64_realm.release IS 'end an active lease whose IDs end at last_id';

CREATE FUNCTION scru64_realm.split(
	INOUT lease_id uuid,
	node_id_size integer,
	last_id scru64_realm.ledger.last_id%TYPE DEFAULT NULL,
	OUT node_spec text,
	OUT granted_at timestamptz,
	OUT expires_at timestamptz
) RETURNS SETOF record
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER ROWS 16
AS $$
#variable_conflict error
DECLARE
	held record;
	known scru64_realm.ledger;
	bits integer;			-- more than the old node_id has
	since timestamptz;
	until timestamptz;
BEGIN
	PERFORM scru64_realm.check_node_id_size(split.node_id_size, 'Give one that is greater than the lease''s.');
	SELECT * INTO held FROM scru64_realm.held(split.lease_id, split.last_id);
	known := held.known;
	PERFORM scru64_realm.check_renewable(known, held.clock);
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
	since := greatest(held.since, scru64_realm.tick_start((held.last_id::bigint >> 24) + 1));
	until := scru64_realm.told(known, held.clock, scru64_realm.cap(known.granted_at, held.clock));
	IF since >= until THEN
		RAISE EXCEPTION 'lease is over after ID %', held.last_id
			USING ERRCODE = 'object_not_in_prerequisite_state',
				DETAIL = format('It expires at %s, and what comes out of a split begins at %s.', until, since),
				HINT = 'Renew the lease, then split it.';
	END IF;
	PERFORM scru64_realm.commit_durably();
	UPDATE scru64_realm.ledger AS l
	SET released_at = since, occupied_until = since, last_id = held.last_id, changed_at = greatest(l.changed_at, held.clock)
	WHERE l.lease_id = split.lease_id;
	RETURN QUERY
	INSERT INTO scru64_realm.ledger AS l
		(node_id, node_id_size, holder, ttl, within, granted_at, expires_at, endless_since, occupied_until, changed_at, last_id, parent)
	SELECT n, split.node_id_size, known.holder, known.ttl, known.within,
		   since, known.expires_at, known.endless_since, known.occupied_until, held.clock,
		   scru64_realm.start(scru64_realm.node_ctr_range(n, split.node_id_size), since), known.lease_id
	FROM generate_series(known.node_id << bits, ((known.node_id + 1) << bits) - 1) AS n
	ORDER BY n
	RETURNING l.lease_id, scru64_realm.node_spec(l.node_ctr_range, l.granted_at, l.node_id_size), l.granted_at, until;
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
	SELECT l.node_id, l.node_id_size, l.node_id || '/' || l.node_id_size AS node, l.holder, l.role,
		   l.granted_at, l.expires_at, l.revoked_at, l.last_id
	FROM scru64_realm.ledger AS l, scru64_realm.clock() AS clock
	WHERE l.occupied_until > clock AND l.expires_at > clock AND l.released_at IS NULL
	ORDER BY l.node_ctr_range;

COMMENT ON VIEW scru64_realm.leases IS 'active leases, without their lease_ids';
COMMENT ON COLUMN scru64_realm.leases.node_id IS 'node_id of the node';
COMMENT ON COLUMN scru64_realm.leases.node_id_size IS 'bits of the node_id';
COMMENT ON COLUMN scru64_realm.leases.node IS 'both, as in a node spec';
COMMENT ON COLUMN scru64_realm.leases.holder IS 'who has it, as given to lease()';
COMMENT ON COLUMN scru64_realm.leases.role IS 'who has leased it: the role of the session';
COMMENT ON COLUMN scru64_realm.leases.granted_at IS 'start of the lease';
COMMENT ON COLUMN scru64_realm.leases.expires_at IS 'end of the lease, unless it is renewed or released before';
COMMENT ON COLUMN scru64_realm.leases.revoked_at IS 'when it was revoked: it is not renewed; null if it was not';
COMMENT ON COLUMN scru64_realm.leases.last_id IS 'last ID told by the holder, or that the lease began after';

CREATE VIEW scru64_realm.roles WITH (security_barrier) AS
	SELECT l.role, count(*) AS leases, sum(1 << (24 - l.node_id_size)) AS node_ctr_values,
		   round(sum(1 << (24 - l.node_id_size)) * 100.0 / 16777216, 2) AS percent
	FROM scru64_realm.leases AS l
	GROUP BY l.role
	ORDER BY l.role;

COMMENT ON VIEW scru64_realm.roles IS 'who has how many active leases';
COMMENT ON COLUMN scru64_realm.roles.role IS 'who has leased them: the role of the session';
COMMENT ON COLUMN scru64_realm.roles.leases IS 'how many are active';
COMMENT ON COLUMN scru64_realm.roles.node_ctr_values IS 'how many node_ctr values they have together';
COMMENT ON COLUMN scru64_realm.roles.percent IS 'how much of the realm that is';

CREATE VIEW scru64_realm.capacity WITH (security_barrier) AS
	WITH gap AS MATERIALIZED (
		SELECT gap
		FROM scru64_realm.clock() AS clock,
			 unnest(scru64_realm.free(clock, clock + interval '24 hours')) AS gap
	)
	SELECT size AS node_id_size,
		   coalesce(sum(greatest(0, (upper(gap) >> (24 - size)) -
									((lower(gap) + (1 << (24 - size)) - 1) >> (24 - size)))), 0) AS available
	FROM generate_series(1, 23) AS size LEFT JOIN gap ON true
	GROUP BY size
	ORDER BY size;

COMMENT ON VIEW scru64_realm.capacity IS 'how many nodes of each size could be leased now, for a day';
COMMENT ON COLUMN scru64_realm.capacity.node_id_size IS 'bits of the node_id';
COMMENT ON COLUMN scru64_realm.capacity.available IS 'nodes of this size that are free, if no others were leased';

CREATE FUNCTION scru64_realm.realm_id() RETURNS uuid
	LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER
AS $$
BEGIN
	RETURN (SELECT s.realm_id FROM scru64_realm.settings AS s);
END
$$;

COMMENT ON FUNCTION scru64_realm.realm_id() IS 'which realm this is: made by CREATE EXTENSION, kept by dumps';

CREATE FUNCTION scru64_realm.wait_for_calls() RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
BEGIN
	LOCK TABLE scru64_realm.allocator IN ACCESS EXCLUSIVE MODE;
EXCEPTION WHEN lock_not_available THEN
	RAISE EXCEPTION 'could not lock out calls of the realm within %', current_setting('lock_timeout')
		USING ERRCODE = 'lock_not_available',
			DETAIL = 'A transaction that has called the realm is still open.',
			HINT = $hint$Try again, or end it. To find it: SELECT pid FROM pg_locks WHERE relation = 'scru64_realm.allocator'::regclass;$hint$;
END
$$;

COMMENT ON FUNCTION scru64_realm.wait_for_calls() IS 'wait until nobody changes a lease, and keep others from it';

-- The same time whatever the calendar says
CREATE FUNCTION scru64_realm.in_seconds(duration interval) RETURNS interval
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN make_interval(secs => extract(epoch FROM duration)::float8);

COMMENT ON FUNCTION scru64_realm.in_seconds(interval) IS 'a time without days and months';

CREATE FUNCTION scru64_realm.set_guard(guard interval, even_if_unsafe boolean DEFAULT false) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
AS $$
#variable_conflict error
BEGIN
	IF set_guard.guard IS NULL OR set_guard.guard NOT BETWEEN interval '0' AND interval '1 day' THEN
		RAISE EXCEPTION 'invalid guard time: %', coalesce(set_guard.guard::text, 'null')
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = 'It is a time from 0 to 1 day.',
				HINT = 'It has to cover the rollback allowance of the generators and the difference of their clocks.';
	ELSIF set_guard.guard < interval '11 seconds' AND even_if_unsafe IS NOT TRUE THEN
		RAISE EXCEPTION 'guard time is not safe: %', set_guard.guard
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = 'Generators may be ahead of their clock by 10 seconds, and one that stops by its clock has then used IDs of that time.',
				HINT = 'Give 11 seconds or more, or also even_if_unsafe => true.';
	END IF;
	PERFORM scru64_realm.commit_durably();
	PERFORM scru64_realm.wait_for_calls();
	UPDATE scru64_realm.settings AS s SET guard = scru64_realm.in_seconds(set_guard.guard);
END
$$;

COMMENT ON FUNCTION scru64_realm.set_guard(interval, boolean)
	IS 'set the guard time, for leases that are granted, renewed or ended from now on';

-- One of the two; the other one, null, stays as it is.
--
-- A reduction counts at once: nobody goes by the old value then. A raise counts for grants
-- when a standby that is promoted knows of it, and for what may be lost at once.
CREATE FUNCTION scru64_realm.set_ttls(max_ttl interval, first_ttl interval) RETURNS timestamptz
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	clock timestamptz;
	old scru64_realm.settings;
	limits record;
	is_raised boolean;
	counts_from timestamptz;
BEGIN
	IF coalesce(max_ttl, first_ttl) NOT BETWEEN interval '1 second' AND interval '366 days' THEN
		RAISE EXCEPTION 'invalid ttl: %', coalesce(max_ttl, first_ttl)
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = 'It is a time from 1 second to 366 days.',
				HINT = 'A lease for longer is one without end, which the owner can ask for.';
	END IF;
	PERFORM scru64_realm.commit_durably();
	-- a raise is counted from here on
	PERFORM scru64_realm.keep_short();
	PERFORM scru64_realm.wait_for_calls();
	PERFORM scru64_realm.check_home();
	clock := scru64_realm.clock();
	limits := scru64_realm.limits(clock);
	SELECT * INTO old FROM scru64_realm.settings;
	is_raised := max_ttl > limits.max_ttl OR first_ttl > limits.first_ttl;
	max_ttl := coalesce(scru64_realm.in_seconds(max_ttl), old.next_max_ttl, old.max_ttl);
	first_ttl := coalesce(scru64_realm.in_seconds(first_ttl), old.next_first_ttl, old.first_ttl);
	IF max_ttl > limits.max_ttl OR first_ttl > limits.first_ttl THEN
		counts_from := CASE WHEN (max_ttl, first_ttl) = (old.next_max_ttl, old.next_first_ttl) THEN old.next_from
			ELSE clock + limits.max_ttl + limits.slack END;
	END IF;
	UPDATE scru64_realm.settings AS s
	SET max_ttl = least(limits.max_ttl, set_ttls.max_ttl), first_ttl = least(limits.first_ttl, set_ttls.first_ttl),
		next_max_ttl = CASE WHEN counts_from IS NOT NULL THEN set_ttls.max_ttl END,
		next_first_ttl = CASE WHEN counts_from IS NOT NULL THEN set_ttls.first_ttl END,
		next_from = counts_from;
	PERFORM scru64_realm.set_marks(scru64_realm.waiting(m)) FROM scru64_realm.marks() AS m WHERE clock < m.lost_until;
	PERFORM scru64_realm.set_marks(scru64_realm.waiting(m), '_before') FROM scru64_realm.marks_before() AS m WHERE clock < m.lost_until;
	RETURN greatest(clock, CASE WHEN is_raised THEN counts_from END);
END
$$;

COMMENT ON FUNCTION scru64_realm.set_ttls(interval, interval) IS 'set one of them; returns from when that counts';

CREATE FUNCTION scru64_realm.set_max_ttl(max_ttl interval) RETURNS timestamptz
	LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER
AS $$
BEGIN
	RETURN scru64_realm.set_ttls(max_ttl, NULL);
END
$$;

COMMENT ON FUNCTION scru64_realm.set_max_ttl(interval)
	IS 'set how far from now on leases are promised at most; returns from when that counts';

CREATE FUNCTION scru64_realm.set_first_ttl(first_ttl interval) RETURNS timestamptz
	LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER
AS $$
BEGIN
	RETURN scru64_realm.set_ttls(NULL, first_ttl);
END
$$;

COMMENT ON FUNCTION scru64_realm.set_first_ttl(interval)
	IS 'set how far new leases are promised at most; returns from when that counts';

-- Only what was noticed last: what was lost before that is lost all the same.
CREATE FUNCTION scru64_realm.nothing_was_lost() RETURNS timestamptz
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
AS $$
DECLARE
	marks scru64_realm.change;
	before scru64_realm.change;
BEGIN
	PERFORM scru64_realm.commit_durably();
	LOCK TABLE scru64_realm.settings IN SHARE ROW EXCLUSIVE MODE;
	PERFORM scru64_realm.check_home();
	marks := scru64_realm.marks();
	before := scru64_realm.marks_before();
	PERFORM scru64_realm.set_marks(before);
	RETURN CASE WHEN marks <> before THEN marks.known_until END;
END
$$;

COMMENT ON FUNCTION scru64_realm.nothing_was_lost()
	IS 'have a realm that was promoted, restored or copied not wait for that; returns since when nothing was lost';

-- For what check_home() cannot notice. What may be lost is as old as it may be.
CREATE FUNCTION scru64_realm.something_was_lost(until timestamptz DEFAULT NULL) RETURNS timestamptz
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
AS $$
DECLARE
	clock timestamptz;
	marks scru64_realm.change;
BEGIN
	PERFORM scru64_realm.commit_durably();
	LOCK TABLE scru64_realm.settings IN SHARE ROW EXCLUSIVE MODE;
	PERFORM scru64_realm.check_home();
	clock := scru64_realm.clock();
	marks := scru64_realm.begin_waiting(clock, scru64_realm.reading(clock), scru64_realm.mark_time(0), 1);
	marks.granting_from := greatest(marks.granting_from, until);
	marks.lost_until := greatest(marks.lost_until, until);
	PERFORM scru64_realm.set_marks(marks);
	-- who has not seen that is about to commit
	PERFORM scru64_realm.wait_for_calls();
	RETURN marks.granting_from;
END
$$;

COMMENT ON FUNCTION scru64_realm.something_was_lost(timestamptz)
	IS 'have a realm wait for leases that it may not know, until this time at least; returns until when';

CREATE FUNCTION scru64_realm.revoke(lease_id uuid) RETURNS bigint
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
AS $$
#variable_conflict error
DECLARE
	revoked bigint;
BEGIN
	PERFORM scru64_realm.commit_durably();
	UPDATE scru64_realm.ledger AS l SET revoked_at = scru64_realm.clock()
	WHERE l.lease_id = revoke.lease_id AND l.released_at IS NULL AND l.revoked_at IS NULL AND l.expires_at > scru64_realm.clock();
	GET DIAGNOSTICS revoked = ROW_COUNT;
	RETURN revoked;
END
$$;

COMMENT ON FUNCTION scru64_realm.revoke(uuid) IS 'have an active lease not be renewed; returns 1, or 0 if there is none';

CREATE FUNCTION scru64_realm.revoke(holder text) RETURNS bigint
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
AS $$
#variable_conflict error
BEGIN
	RETURN (SELECT coalesce(sum(scru64_realm.revoke(l.lease_id)), 0) FROM scru64_realm.ledger AS l WHERE l.holder = revoke.holder);
END
$$;

COMMENT ON FUNCTION scru64_realm.revoke(text) IS 'have active leases of a holder not be renewed; returns how many';

-- Where the last of them ended is kept: should the clock go back behind that, a node
-- could be leased for a time that one of them was for.
CREATE FUNCTION scru64_realm.prune(older_than interval) RETURNS bigint
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
AS $$
#variable_conflict error
DECLARE
	clock timestamptz;
	lost_until timestamptz;		-- may have been renewed until then, if it lasted until
	known_until timestamptz;	-- later than this
	pruned bigint;
	mark bigint;
BEGIN
	IF older_than IS NULL OR older_than < interval '0' THEN
		RAISE EXCEPTION 'invalid age: %', coalesce(older_than::text, 'null')
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = 'It is how long ago a lease must have ended for its row to be deleted: 0 or more.',
				HINT = 'For example: 90 days.';
	ELSIF older_than >= interval '1000 years' THEN
		RETURN 0;
	END IF;
	-- whoever has read the clock by now has committed what is for that time
	PERFORM scru64_realm.wait_for_calls();
	PERFORM scru64_realm.check_home();
	clock := scru64_realm.clock();
	SELECT m.lost_until, m.known_until - s.slack INTO lost_until, known_until
	FROM scru64_realm.marks() AS m, scru64_realm.limits(clock) AS s;
	WITH gone AS (
		DELETE FROM scru64_realm.ledger AS l
		WHERE l.occupied_until <= clock - older_than
		  AND (l.occupied_until <= known_until OR lost_until <= clock - older_than)
		RETURNING CASE WHEN l.occupied_until <= known_until THEN l.occupied_until
				  ELSE greatest(l.occupied_until, lost_until) END AS occupied_until
	)
	SELECT count(*), scru64_realm.mark(max(g.occupied_until)) INTO pruned, mark FROM gone AS g;
	PERFORM setval('scru64_realm.pruned_until', mark)
	FROM scru64_realm.pruned_until AS m WHERE mark > m.last_value;
	RETURN pruned;
END
$$;

COMMENT ON FUNCTION scru64_realm.prune(interval) IS 'delete leases that ended longer ago than this; returns how many';


-- ---------------------------------------------------------------------------
-- Settings of functions, owner, privileges
--
-- No caller's search_path says what a function does. Names in an SQL body were bound
-- when it was created, and SET would keep it from being inlined; the other functions look
-- names up when they run. Those that are called from outside have a time zone too, so that
-- a day has 24 hours, a format for the times in their messages, and an end to their waiting.
--
-- Default privileges of whoever runs this script may have granted anything to
-- anybody: start from nothing.
-- ---------------------------------------------------------------------------

DO $do$
DECLARE
	object record;
	grantee text;
BEGIN
	FOR object IN
		SELECT CASE c.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END AS kind, 'TABLE' AS acl_kind,
			   c.oid::regclass::text AS name, c.relacl AS acl, NULL AS settings
		FROM pg_class AS c WHERE c.relnamespace = 'scru64_realm'::regnamespace AND c.relkind IN ('r', 'v', 'S')
		UNION ALL
		SELECT 'FUNCTION', 'FUNCTION', p.oid::regprocedure::text, p.proacl,
			   CASE WHEN p.prosqlbody IS NULL THEN 'SET search_path = pg_catalog, pg_temp' END ||
			   CASE WHEN p.prosecdef THEN $$ SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD'$$ ELSE '' END ||
			   CASE WHEN p.proname IN ('lease', 'renew', 'release', 'split') THEN $$ SET lock_timeout = '10s'$$
			   -- they wait for transactions that are kept short, and nobody for them who is to go on
			   WHEN p.proname IN ('revoke', 'something_was_lost') THEN $$ SET lock_timeout = '60s'$$
			   -- for the owner: those who wait behind them are not to wait for long
			   WHEN p.prosecdef AND p.provolatile = 'v' THEN $$ SET lock_timeout = '2s'$$ ELSE '' END
		FROM pg_proc AS p WHERE p.pronamespace = 'scru64_realm'::regnamespace
		UNION ALL
		SELECT 'TYPE', 'TYPE', t.oid::regtype::text, t.typacl, NULL
		FROM pg_type AS t JOIN pg_class AS c ON c.oid = t.typrelid
		WHERE c.relnamespace = 'scru64_realm'::regnamespace AND c.relkind = 'c'
		UNION ALL
		SELECT 'SCHEMA', 'SCHEMA', n.oid::regnamespace::text, n.nspacl, NULL
		FROM pg_namespace AS n WHERE n.oid = 'scru64_realm'::regnamespace
	LOOP
		IF object.settings IS NOT NULL THEN
			EXECUTE format('ALTER FUNCTION %s %s', object.name, object.settings);
		END IF;
		EXECUTE format('REVOKE ALL ON %s %s FROM PUBLIC', object.acl_kind, object.name);
		FOR grantee IN
			SELECT DISTINCT a.grantee::regrole::text FROM aclexplode(object.acl) AS a WHERE a.grantee <> 0
		LOOP
			EXECUTE format('REVOKE ALL ON %s %s FROM %s CASCADE', object.acl_kind, object.name, grantee);
		END LOOP;
		IF object.name <> 'scru64_realm.server_node_specs()' THEN
			EXECUTE format('ALTER %s %s OWNER TO %s', object.kind, object.name, $name$@extowner@$name$);
		END IF;
		EXECUTE format('GRANT ALL ON %s %s TO %s', object.acl_kind, object.name, $name$@extowner@$name$);
	END LOOP;
END
$do$;

GRANT USAGE ON SCHEMA scru64_realm TO PUBLIC;
GRANT SELECT ON scru64_realm.leases, scru64_realm.roles, scru64_realm.capacity TO pg_monitor;
GRANT EXECUTE ON FUNCTION scru64_realm.clock(), scru64_realm.free TO pg_monitor;

-- While an extension is created, only warnings are shown.
SET LOCAL client_min_messages = notice;

DO $do$
BEGIN
	RAISE NOTICE 'this realm knows of no leases'
		USING DETAIL = 'If there was a realm in this database before, nodes that it has leased may be in use still.',
			HINT = 'Then call scru64_realm.something_was_lost() now, before anybody leases.';
END
$do$;
