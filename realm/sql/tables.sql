-- ---------------------------------------------------------------------------
-- Schemas
--
-- scru64_realm is for people, scru64_realm_internal for its functions. This script
-- creates both, and so they belong to the extension: a schema of such a name that
-- exists already, perhaps with functions for the unwary in it, is an error; DROP
-- EXTENSION drops them; and pg_dump leaves them to CREATE EXTENSION. The control file
-- says pg_catalog only because CREATE EXTENSION wants a schema that exists. Nothing is
-- put there.
--
-- The script may run with more rights than its caller has. In the end, own.sql makes the
-- caller the owner of everything, so that functions that run with their owner's rights have
-- no more than the caller.
-- ---------------------------------------------------------------------------

CREATE SCHEMA scru64_realm AUTHORIZATION @extowner@;
CREATE SCHEMA scru64_realm_internal AUTHORIZATION @extowner@;

COMMENT ON SCHEMA scru64_realm IS 'node specs of a SCRU64 realm, leased';
COMMENT ON SCHEMA scru64_realm_internal IS 'what the functions of scru64_realm need; not to be called';

-- ---------------------------------------------------------------------------
-- The ledger: who had which node and when
--
-- A node owns a range of node_ctr values, from its node_id with a counter of 0
-- to just below the next node_id. Two leases may share any of it only at different
-- times: an exclusion constraint says so, and no function can break it.
--
-- The IDs of a lease are of the ticks after granted_at, up to its end. The next lease of
-- any of its node_ctr values is granted at occupied_until or later. So it begins above
-- all IDs of the lease before, and the realm need not know them.
-- ---------------------------------------------------------------------------

-- Changes that use the clock are numbered in the order in which they read it. They may commit in
-- another order, but a transaction is short: the last one that a standby knows began at most 15
-- seconds before its last commit, wherever the clock was. The numbers are in the rows,
-- because a dump reads sequences later than rows.
CREATE SEQUENCE scru64_realm_internal.change;

CREATE TABLE scru64_realm.ledger (
	lease_id uuid NOT NULL,
	node_id integer NOT NULL,
	node_id_size integer NOT NULL,
	holder text NOT NULL,
	role name NOT NULL DEFAULT session_user,
	ttl interval,
	within text,
	granted_at timestamptz NOT NULL,
	expires_at timestamptz NOT NULL,
	endless_since timestamptz,
	revoked_at timestamptz,
	released_at timestamptz,
	occupied_until timestamptz NOT NULL,
	clock_reading timestamptz NOT NULL,
	change bigint NOT NULL DEFAULT pg_catalog.nextval('scru64_realm_internal.change'),
	last_id scru64 NOT NULL,
	parent uuid
);

-- From here on PostgreSQL's own names come first, and then those of this script, which go
-- to scru64_realm_internal if they say nothing else.
SET LOCAL search_path = scru64_realm_internal, scru64_realm, pg_temp;

ALTER TABLE ledger
	ALTER lease_id SET DEFAULT gen_random_uuid(),
	ADD node_ctr_range int4range NOT NULL GENERATED ALWAYS AS
		(int4range(node_id << (24 - node_id_size), (node_id + 1) << (24 - node_id_size))) STORED,
	ADD occupied tstzrange NOT NULL GENERATED ALWAYS AS
		(tstzrange(granted_at, occupied_until)) STORED,
	ADD PRIMARY KEY (lease_id),
	ADD CONSTRAINT ledger_never_twice EXCLUDE USING gist (node_ctr_range WITH &&, occupied WITH &&),
	ADD CONSTRAINT ledger_node_id_size_in_range CHECK (node_id_size BETWEEN 1 AND 23),
	ADD CONSTRAINT ledger_node_id_of_this_size CHECK (node_id BETWEEN 0 AND (1 << node_id_size) - 1),
	ADD CONSTRAINT ledger_holder_of_this_length CHECK (char_length(holder) BETWEEN 1 AND 200),
	ADD CONSTRAINT ledger_granted_at_finite CHECK (isfinite(granted_at)),
	ADD CONSTRAINT ledger_granted_before_end CHECK (granted_at < expires_at),
	ADD CONSTRAINT ledger_endless_with_since CHECK ((expires_at = 'infinity') = (endless_since IS NOT NULL)),
	-- by release, or by a split
	ADD CONSTRAINT ledger_released_while_active CHECK (released_at BETWEEN granted_at AND expires_at),
	-- an end, and after it the guard time, except for a lease that was split
	ADD CONSTRAINT ledger_occupied_to_end CHECK (coalesce(released_at, expires_at) <= occupied_until),
	ADD CONSTRAINT ledger_ttl_positive CHECK (ttl > '0'),
	ADD CONSTRAINT ledger_last_id_of_this_node CHECK (((last_id::bigint) & 16777215)::integer <@ node_ctr_range),
	ADD CONSTRAINT ledger_last_id_with_time CHECK ((last_id::bigint) >> 24 > 0),
	ADD CONSTRAINT ledger_parent_is_another CHECK (parent <> lease_id);

-- What is occupied now, out of a long history; what came out of a split
CREATE INDEX ledger_occupied_until ON ledger (occupied_until) INCLUDE (node_ctr_range, granted_at);
CREATE INDEX ledger_parent ON ledger (parent) WHERE parent IS NOT NULL;

COMMENT ON TABLE ledger IS 'all leases, with those that have ended; lease_id is the holder''s secret';
COMMENT ON COLUMN ledger.lease_id IS 'secret that renews, releases and splits the lease';
COMMENT ON COLUMN ledger.node_id IS 'node_id of the node';
COMMENT ON COLUMN ledger.node_id_size IS 'bits of the node_id';
COMMENT ON COLUMN ledger.holder IS 'who has it, as given to lease()';
COMMENT ON COLUMN ledger.role IS 'who has leased it: the role of the session';
COMMENT ON COLUMN ledger.ttl IS 'as asked for; null: the longest';
COMMENT ON COLUMN ledger.within IS 'as asked for';
COMMENT ON COLUMN ledger.granted_at IS 'start of the lease: its IDs are of later ticks than this one';
COMMENT ON COLUMN ledger.expires_at IS 'end of the lease, unless it is renewed or released before';
COMMENT ON COLUMN ledger.endless_since IS 'since when it has no end; null if it has one';
COMMENT ON COLUMN ledger.revoked_at IS 'when it was revoked: it is not renewed; null if it was not';
COMMENT ON COLUMN ledger.released_at IS 'when it was released or split; null if it was not';
COMMENT ON COLUMN ledger.occupied_until IS 'time from which the node may be leased again: end and guard time';
COMMENT ON COLUMN ledger.clock_reading IS 'the time on the clock when it was granted or last changed';
COMMENT ON COLUMN ledger.change IS 'number of that change';
COMMENT ON COLUMN ledger.last_id IS 'last ID reported by the holder, or the one after which the lease began';
COMMENT ON COLUMN ledger.parent IS 'lease that was split into this one; it may have been pruned since';
COMMENT ON COLUMN ledger.node_ctr_range IS 'node_ctr values of the node';
COMMENT ON COLUMN ledger.occupied IS 'when no other lease may have the node';

-- ---------------------------------------------------------------------------
-- Settings
--
-- A table, because every caller could SET a parameter. CREATE EXTENSION makes its
-- row (once.sql); the row of a dump takes its place, so that a realm that is restored is the
-- realm that was dumped.
-- ---------------------------------------------------------------------------

CREATE TABLE scru64_realm.settings (
	only_row boolean PRIMARY KEY DEFAULT true CONSTRAINT settings_only_row CHECK (only_row),
	realm_id uuid NOT NULL DEFAULT gen_random_uuid(),
	made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	guard interval NOT NULL DEFAULT '30 seconds' CONSTRAINT settings_guard_in_range CHECK (guard BETWEEN '0' AND '1 day'),
	max_ttl interval NOT NULL DEFAULT '1 hour' CONSTRAINT settings_max_ttl_positive CHECK (max_ttl > '0'),
	first_ttl interval NOT NULL DEFAULT '131 seconds' CONSTRAINT settings_first_ttl_positive CHECK (first_ttl > '0'),
	next_max_ttl interval,
	next_first_ttl interval,
	next_from timestamptz,
	CONSTRAINT settings_next_all_or_none CHECK (num_nulls(next_max_ttl, next_first_ttl, next_from) IN (0, 3))
);

COMMENT ON TABLE settings IS 'which realm this is, and its settings; see set_guard(), set_max_ttl(), set_first_ttl()';
COMMENT ON COLUMN settings.only_row IS 'true: there is one row';
COMMENT ON COLUMN settings.realm_id IS 'name of this realm, made by CREATE EXTENSION and kept by dumps';
COMMENT ON COLUMN settings.made_at IS 'when CREATE EXTENSION made it';
COMMENT ON COLUMN settings.guard IS 'time from the end of a lease to the next one of the same node';
COMMENT ON COLUMN settings.max_ttl IS 'how far from now on a lease may be promised';
COMMENT ON COLUMN settings.first_ttl IS 'how far a new lease may be';
COMMENT ON COLUMN settings.next_max_ttl IS 'max_ttl as it was raised; null if it was not';
COMMENT ON COLUMN settings.next_first_ttl IS 'first_ttl with that';
COMMENT ON COLUMN settings.next_from IS 'from when those two count';

-- ---------------------------------------------------------------------------
-- Locks and marks: for the functions only
-- ---------------------------------------------------------------------------

-- Locks: tables of the owner's, and not advisory locks, which anybody could take.
--
-- A call that changes a lease takes the weakest lock on allocator before it reads the
-- settings and the clock. The owner's functions take the strongest: then no call uses
-- older settings. A call that looks for a free node locks turn, if that can be had soon,
-- only so that not all of them look at the same node. The order is: allocator, settings, turn.
CREATE TABLE allocator ();
CREATE TABLE turn ();

-- Marks: what a realm has to remember of its own past. They are sequences because those
-- keep what was written also when the transaction fails: the lease() that notices a
-- failover is refused, and the next one must not begin to wait anew.
--
-- Times are microseconds since 1970; the greatest number is infinity.
CREATE SEQUENCE last_identity MINVALUE 0;			-- identity() of the realm that granted the last lease
CREATE SEQUENCE last_timeline MINVALUE 0;			-- its timeline()
CREATE SEQUENCE pruned_until MINVALUE 0;			-- end of all leases that prune() has deleted

-- The last failover: the realm found itself promoted, restored or copied
CREATE SEQUENCE reason MINVALUE 0;					-- identity() then; 1: something_was_lost() was called; 0: there was none
CREATE SEQUENCE noticed_at MINVALUE 0;				-- when it was noticed
CREATE SEQUENCE known_until MINVALUE 0;				-- what the clock is known to have been at the last change before that
CREATE SEQUENCE granting_from MINVALUE 0;			-- end of all leases whose grants may have been lost then
CREATE SEQUENCE lost_until MINVALUE 0;				-- end of all leases whose renewals may have been lost then

-- The one before that, for nothing_was_lost()
CREATE SEQUENCE noticed_at_before MINVALUE 0;
CREATE SEQUENCE known_until_before MINVALUE 0;
CREATE SEQUENCE granting_from_before MINVALUE 0;
CREATE SEQUENCE lost_until_before MINVALUE 0;

CREATE TYPE failover AS (
	noticed_at timestamptz,
	known_until timestamptz,
	granting_from timestamptz,
	lost_until timestamptz
);
