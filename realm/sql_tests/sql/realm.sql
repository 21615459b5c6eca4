--
-- A realm: lease, renew, release, split, in a database of its own.
--
SELECT current_user AS realm_owner, '2026-12-01 12:00:00+00' AS now \gset
\i sql_tests/realm.sql
\pset format unaligned
\pset footer off
-- New leases are for a day, too; what they are for else: realm_limits.sql
UPDATE scru64_realm.settings SET max_ttl = '24 hours', first_ttl = '24 hours';

SELECT extrelocatable, obj_description(oid, 'pg_extension') <> '' AS has_comment
FROM pg_extension WHERE extname = 'scru64_realm';

-- What is tried here is rolled back, or its errors are caught.
CREATE OR REPLACE FUNCTION scru64_realm_internal.begin_change(is_short boolean) RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION node_of(node_spec text) RETURNS text
	LANGUAGE sql RETURN (SELECT node_id || '/' || node_id_size FROM scru64_parse_node_spec(node_spec));

--
-- Hot nodes and cold nodes: 8 with 4 bits and 128 with 8 bits fill the realm, in
-- whatever order they come. (The specification has 0x0/4 to 0x7/4 and 0x80/8 to
-- 0xff/8.)
--
BEGIN;
SELECT node_spec, node_of(node_spec), granted_at, expires_at, realm_clock FROM scru64_realm.lease(8, 'cold');
SELECT node_of(node_spec), expires_at FROM scru64_realm.lease(4, 'hot');
SELECT node_of(node_spec) FROM scru64_realm.lease(8, 'cold');
SELECT node_of(node_spec) FROM scru64_realm.lease(4, 'hot');
SELECT count(*) FROM generate_series(3, 128) AS n, scru64_realm.lease(8, 'cold ' || n);
SELECT count(*) FROM generate_series(3, 8) AS n, scru64_realm.lease(4, 'hot ' || n);
SELECT count(*), count(*) FILTER (WHERE available > 0) FROM scru64_realm.capacity;
SAVEPOINT full_realm;
SELECT scru64_realm.lease(23, 'one more');
\echo :SQLSTATE
ROLLBACK TO full_realm;
SELECT scru64_realm.lease(8, 'one more', within => '3/4');
ROLLBACK;

-- Short node_ids stay available: the smallest free block is taken.
BEGIN;
SELECT node_of(node_spec) FROM scru64_realm.lease(6, 'a', node_id => 1);
SELECT node_of(node_spec) FROM scru64_realm.lease(8, repeat('b', 200));
SELECT node_of(node_spec) FROM scru64_realm.lease(5, 'c');
SELECT node_of(node_spec) FROM scru64_realm.lease(10, 'd');
SELECT node_of(node_spec) FROM scru64_realm.lease(1, 'e');
SELECT * FROM scru64_realm.capacity WHERE node_id_size <= 8;
ROLLBACK;

--
-- A block of its own for a site
--
BEGIN;
SELECT node_of(node_spec) FROM scru64_realm.lease(8, 'site', within => '3/4');
SELECT node_of(node_spec) FROM scru64_realm.lease(8, 'site', within => '0x3/4');
SELECT node_of(node_spec) FROM scru64_realm.lease(4, 'site', within => '15/4');
SELECT node_of(node_spec) FROM scru64_realm.lease(8, 'site', within => scru64_from_parts(now(), 5 << 20) || '/4');
SELECT node_of(node_spec) FROM scru64_realm.lease(8, 'site', node_id => 255 - 16, within => '0xe/4');
SELECT node, holder FROM scru64_realm.leases;
ROLLBACK;

--
-- The life of a lease
--
SELECT lease_id, node_spec FROM scru64_realm.lease(8, 'app 1', ttl => '1 hour') \gset
SELECT node_id, node_id_size, node, holder, granted_at, expires_at, last_id FROM scru64_realm.leases;
SELECT * FROM scru64_realm.renew(:'lease_id', '2 hours');
UPDATE test_clock SET now = now + '1 hour';
SELECT * FROM scru64_realm.renew(:'lease_id');
SELECT * FROM scru64_realm.renew(:'lease_id', last_id => scru64_from_parts('2026-12-01 13:00:00+00', 77));
SELECT node_id, node_id_size, node, holder, granted_at, expires_at, last_id FROM scru64_realm.leases;
SELECT scru64_realm.release(:'lease_id', scru64_from_parts('2026-12-01 13:00:10+00', 88));
SELECT node_id, node_id_size, node, holder, granted_at, expires_at, last_id FROM scru64_realm.leases;
-- its end is its end
SELECT call, e.*
FROM unnest(ARRAY['renew(%L)', 'release(%L)', 'split(%L, 9)']) AS call,
	 test.error_of(format('SELECT scru64_realm.' || call, :'lease_id')) AS e;
-- not before the guard time is over
SELECT scru64_realm.lease(8, 'app 2', node_id => 0);
\echo :SQLSTATE
UPDATE test_clock SET now = now + '29.999999 s';
SELECT scru64_realm.lease(9, 'app 2', node_id => 0);
UPDATE test_clock SET now = now + '0.000001 s';
-- and then after the tick in which it is granted, as always
SELECT scru64_max(now)::bigint >> 24 AS tick FROM test_clock;
SELECT lease_id, node_spec, prev::bigint >> 24 AS tick, scru64_node_ctr(prev) AS node_ctr, granted_at, expires_at, realm_clock
FROM scru64_realm.lease(8, 'app 2', '1 hour', node_id => 0), CAST(split_part(node_spec, '/', 1) AS scru64) AS prev \gset
\echo :node_spec :tick :node_ctr :granted_at :expires_at :realm_clock
-- The next holder reports nothing and lets it expire: after the guard time, then.
UPDATE test_clock SET now = now + '1 hour';
SELECT scru64_realm.renew(:'lease_id');
\echo :SQLSTATE
UPDATE test_clock SET now = now + '30 s';
BEGIN;
SELECT node_of(node_spec) FROM scru64_realm.lease(8, 'app 3', '1 hour');
ROLLBACK;

--
-- A request that is repeated
--
BEGIN;
SELECT lease_id, node_spec, granted_at, expires_at FROM scru64_realm.lease(8, 'app 3', '1 hour', request => '11111111-2222-4333-8444-555555555555');
UPDATE test_clock SET now = now + '10 minutes';
SELECT expires_at FROM scru64_realm.renew('11111111-2222-4333-8444-555555555555', '2 hours', scru64_from_parts(scru64_realm.clock(), 7));
SELECT * FROM scru64_realm.lease(8, 'app 3', '1 hour', request => '11111111-2222-4333-8444-555555555555');
SELECT node, holder FROM scru64_realm.leases;
SAVEPOINT repeated;
SELECT scru64_realm.lease(9, 'app 3', '1 hour', request => '11111111-2222-4333-8444-555555555555');
\echo :SQLSTATE
ROLLBACK TO repeated;
SELECT scru64_realm.release('11111111-2222-4333-8444-555555555555');
SELECT scru64_realm.lease(8, 'app 3', '1 hour', request => '11111111-2222-4333-8444-555555555555');
\echo :SQLSTATE
ROLLBACK;
-- at its end, too
BEGIN;
SELECT lease_id FROM scru64_realm.lease(8, 'app 3', '1 hour', request => '11111111-2222-4333-8444-555555555555');
UPDATE test_clock SET now = now + '1 hour';
SELECT scru64_realm.lease(8, 'app 3', '1 hour', request => '11111111-2222-4333-8444-555555555555');
\echo :SQLSTATE
ROLLBACK;

--
-- A standing assignment
--
SELECT lease_id, node_of(node_spec) AS node, expires_at FROM scru64_realm.lease(8, 'db 1', ttl => '1000 years', node_id => 42) \gset
\echo :node :expires_at
SELECT scru64_realm.lease(12, 'db 2', node_id => 672);
-- what it has is not taken back, but is reported later
SELECT expires_at FROM scru64_realm.renew(:'lease_id', '1 hour');
SELECT expires_at FROM scru64_realm.renew(:'lease_id', '100000 years');
BEGIN;
UPDATE test_clock SET now = now + '24 hours 31 s';
SELECT expires_at FROM scru64_realm.renew(:'lease_id', '1 hour');
ROLLBACK;
-- interval has an infinity from PostgreSQL 17 on.
DO $$
DECLARE
	lease_id uuid;
	expires_at timestamptz;
BEGIN
	EXECUTE $query$
		SELECT l.lease_id FROM scru64_realm.lease(8, 'forever', 'infinity') AS l, scru64_realm.renew(l.lease_id, 'infinity') AS r
	$query$ INTO lease_id;
	SELECT l.expires_at INTO expires_at FROM scru64_realm.leases AS l WHERE l.holder = 'forever';
	RAISE INFO '%', expires_at;
	PERFORM scru64_realm.release(lease_id);
	EXECUTE $query$ SELECT scru64_realm.lease(8, 'never', '-infinity') $query$;
EXCEPTION
	WHEN invalid_datetime_format THEN
		RAISE INFO '%', CASE WHEN current_setting('server_version_num')::integer < 170000 THEN 'infinity' ELSE SQLERRM END;
	WHEN invalid_parameter_value THEN
		IF SQLERRM NOT LIKE 'invalid ttl: %' THEN
			RAISE;
		END IF;
END
$$;
SELECT scru64_realm.release(:'lease_id');

--
-- Split
--
BEGIN;
SELECT lease_id FROM scru64_realm.lease(4, 'service', '1 hour', node_id => 9) \gset
SELECT node_spec, granted_at, expires_at, lease_id <> :'lease_id' AS new FROM scru64_realm.split(:'lease_id', 6);
SELECT node, holder, expires_at FROM scru64_realm.leases;
SELECT count(*), count(DISTINCT parent) FROM scru64_realm.ledger WHERE parent = :'lease_id';
SAVEPOINT split;
SELECT scru64_realm.renew(:'lease_id');
\echo :SQLSTATE
ROLLBACK TO split;
-- After a last ID, in a later tick
SELECT lease_id FROM scru64_realm.ledger WHERE node_id = 37 AND node_id_size = 6 \gset
SELECT node_spec, granted_at, node_of(node_spec)
FROM scru64_realm.split(:'lease_id', 7, scru64_from_parts(scru64_realm.clock() + '1 s', 37 << 18));
SELECT released_at, occupied_until FROM scru64_realm.ledger WHERE lease_id = :'lease_id';
ROLLBACK TO split;
-- in the last of its ticks
SELECT scru64_realm.split(:'lease_id', 7, scru64_from_parts(expires_at, 37 << 18)) FROM scru64_realm.ledger WHERE lease_id = :'lease_id';
\echo :SQLSTATE
ROLLBACK;
BEGIN;
SELECT lease_id FROM scru64_realm.lease(4, 'service') \gset
SELECT count(*), min(node_of(node_spec)) FROM scru64_realm.split(:'lease_id', 16);
ROLLBACK;
SELECT lease_id FROM scru64_realm.lease(4, 'service') \gset
SELECT call, e.*
FROM unnest(ARRAY['split(%L, 17)', 'split(%L, 4)', 'split(%L, 3)', 'split(%L, 24)', 'split(%L, NULL)', 'split(NULL, 8)']) AS call,
	 test.error_of(format('SELECT scru64_realm.' || call, :'lease_id')) AS e;
SELECT node FROM scru64_realm.leases;

--
-- What cannot be
--
SELECT call, e.*
FROM (VALUES
	('lease(0, ''x'')'),
	('lease(24, ''x'')'),
	('lease(-1, ''x'')'),
	('lease(2147483647, ''x'')'),
	('lease(NULL, ''x'')'),
	('lease(8, NULL)'),
	('lease(8, '''')'),
	('lease(8, repeat(''x'', 201))'),
	('lease(8, ''x'', ''0'')'),
	('lease(8, ''x'', ''-1 s'')'),
	('lease(8, ''x'', ''1 mon -35 days'')'),
	('lease(8, ''x'', ''-12 mons +361 days'')'),
	('lease(8, ''x'', node_id => 256)'),
	('lease(8, ''x'', node_id => -1)'),
	('lease(8, ''x'', node_id => 48, within => ''4/4'')'),
	('lease(3, ''x'', within => ''4/4'')'),
	('renew(NULL)'),
	('renew(''00000000-0000-0000-0000-000000000000'')'),
	('release(NULL)'),
	('release(''00000000-0000-0000-0000-000000000000'')'),
	('renew(%L, ''0'')')
) AS v (call), test.error_of(format('SELECT scru64_realm.' || call, :'lease_id')) AS e;
-- compared as it is added: a year has 365.25 days, and a month 30
BEGIN;
SELECT expires_at - granted_at AS promised FROM scru64_realm.lease(8, 'x', '1 year -365 days');
ROLLBACK;
DO $$
DECLARE
	spec text;
BEGIN
	FOREACH spec IN ARRAY ARRAY['', '/', '4', '4/', '/4', '16/4', '4/24', '4/0', '-1/4', '+1/4', ' 1/4', '1/4 ', '1/4/', '0x/4', '0x1g/8',
		'000000001/4', '0x0000001/4', '1/0004', '0u2r85hm2p/4', '0u2r85hm2pt3/24', '0u2r85hm2p-3/4', E'1/4\n', '1/4'';--']
	LOOP
		BEGIN
			PERFORM scru64_realm.lease(23, 'x', within => spec);
			RAISE WARNING 'taken: %', spec;
		EXCEPTION WHEN invalid_parameter_value THEN
			RAISE INFO '%', SQLERRM;
		END;
	END LOOP;
END
$$;
-- last IDs that are not
SELECT node_id, node_id_size FROM scru64_realm.ledger WHERE lease_id = :'lease_id';
UPDATE test_clock SET now = '2026-12-03 00:00:00+00';
SELECT lease_id FROM scru64_realm.lease(8, 'app 4', node_id => 200) \gset
SELECT e.*
FROM (VALUES
	('2026-12-03 00:00:00+00', 201 << 16),
	('2026-12-03 00:00:00+00', (200 << 16) - 1),
	('2026-12-04 00:00:00.256+00', 200 << 16)
) AS v (ts, node_ctr),
	 test.error_of(format('SELECT scru64_realm.renew(%L, last_id => scru64_from_parts(%L, %s))', :'lease_id', ts, node_ctr)) AS e;
-- in the lease's window, whatever the clock says; one below a known one is no news
SELECT expires_at FROM scru64_realm.renew(:'lease_id', last_id => scru64_from_parts('2026-12-03 00:59:00+00', (200 << 16)));
SELECT expires_at FROM scru64_realm.renew(:'lease_id', last_id => scru64_from_parts('2026-12-03 00:00:29+00', (200 << 16)));
SELECT expires_at FROM scru64_realm.renew(:'lease_id', last_id => (200 << 16)::bigint::scru64);
SELECT node, expires_at, scru64_timestamp(last_id) FROM scru64_realm.leases WHERE holder = 'app 4';
-- its IDs end there, and so does it
BEGIN;
SELECT scru64_realm.release(:'lease_id', last_id => scru64_from_parts('2026-12-03 00:00:29+00', (200 << 16)));
SELECT released_at, occupied_until, occupied_until - scru64_timestamp(last_id) AS a_tick FROM scru64_realm.ledger WHERE lease_id = :'lease_id';
ROLLBACK;

--
-- A clock that goes back
--
UPDATE test_clock SET now = '2026-12-02 00:00:00+00';
SELECT scru64_realm.lease(8, 'app 5', node_id => 200);
SELECT scru64_realm.lease(7, 'app 5', node_id => 100, ttl => '23:59:31');
-- what ends before that is in nobody's way
BEGIN;
SELECT granted_at, expires_at FROM scru64_realm.lease(7, 'app 5', node_id => 100, ttl => '23:59:30');
ROLLBACK;
-- nothing is taken back
SELECT expires_at FROM scru64_realm.renew(:'lease_id', '1 hour');
SELECT scru64_realm.release(:'lease_id', scru64_from_parts('2026-12-03 00:00:00.256+00', 200 << 16));
-- it ended after its last ID, the known one
SELECT granted_at, expires_at, released_at, occupied_until FROM scru64_realm.ledger WHERE lease_id = :'lease_id';
-- a renewal up to a lease that was granted while the clock was ahead
SELECT lease_id FROM scru64_realm.lease(8, 'app 5', '1 hour', node_id => 200) \gset
SELECT expires_at FROM scru64_realm.renew(:'lease_id', '1 day');
\echo :SQLSTATE
SELECT expires_at FROM scru64_realm.renew(:'lease_id', '2 hours');
SELECT scru64_realm.release(:'lease_id');
UPDATE test_clock SET now = '2026-12-03 00:59:00.223999+00';
SELECT scru64_realm.lease(8, 'app 5', node_id => 200);
UPDATE test_clock SET now = '2026-12-03 00:59:00.224+00';
SELECT count(*) FROM scru64_realm.lease(8, 'app 5', '1 hour', node_id => 200);

-- and to where there are no IDs
BEGIN;
UPDATE test_clock SET now = '1970-01-01 00:00:00.255+00';
SELECT scru64_realm.lease(8, 'app 5');
\echo :SQLSTATE
ROLLBACK;
BEGIN;
UPDATE test_clock SET now = '4262-01-01 00:00:00+00';
SELECT scru64_realm.lease(8, 'app 5');
\echo :SQLSTATE
ROLLBACK;
SELECT scru64_realm_internal.tick('1970-01-01 00:00:00.256+00'), scru64_realm_internal.tick('infinity'), scru64_realm_internal.tick('5000-01-01') = scru64_realm_internal.tick('infinity');

--
-- The guard time
--
SELECT scru64_realm.set_guard('2 minutes');
SELECT lease_id FROM scru64_realm.lease(8, 'app 6', '1 hour', node_id => 201) \gset
SELECT occupied_until - expires_at AS guard FROM scru64_realm.ledger WHERE lease_id = :'lease_id';
-- less is not taken back, either
SELECT scru64_realm.set_guard('1 mon -29 days -23:59:00');
SELECT expires_at FROM scru64_realm.renew(:'lease_id', '1 hour');
SELECT occupied_until - expires_at AS guard FROM scru64_realm.ledger WHERE lease_id = :'lease_id';
SELECT count(*) FROM scru64_realm.renew(:'lease_id', '2 hours');
SELECT occupied_until - expires_at AS guard FROM scru64_realm.ledger WHERE lease_id = :'lease_id';
SELECT scru64_realm.set_guard('11 s');
SELECT call, e.*
FROM (VALUES
	('set_guard(''10.999 s'')'),
	('set_guard(''0'', even_if_unsafe => NULL)'),
	('set_guard(''-1 s'', true)'),
	('set_guard(NULL)'),
	('set_guard(''1 day 1 s'')'),
	('set_guard(''-12 mons +361 days'', true)')
) AS v (call), test.error_of('SELECT scru64_realm.' || call) AS e;
SELECT scru64_realm.set_guard('0', even_if_unsafe => true);
SELECT guard FROM scru64_realm.settings;
SELECT scru64_realm.set_guard('1 minute');
SELECT count(*) FROM scru64_realm.settings;

--
-- What is in use on this server without a lease
--
UPDATE test_clock SET now = '2026-12-10 00:00:00+00';
SET scru64.node_spec = '0x3/4';
BEGIN;
SELECT node_of(node_spec) FROM scru64_realm.lease(4, 'x', within => '1/3');
SELECT scru64_realm.lease(4, 'x', within => '1/3');
\echo :SQLSTATE
ROLLBACK;
SELECT scru64_realm.lease(5, 'x', node_id => 6);
\echo :SQLSTATE
SELECT available FROM scru64_realm.capacity WHERE node_id_size = 3;
-- The owner leases it for this server, and then it is as any lease.
SELECT lease_id FROM scru64_realm.lease(4, 'this server', '1 hour', node_id => 3) \gset
SELECT scru64_realm.lease(4, 'x', node_id => 3);
RESET scru64.node_spec;
SELECT scru64_realm.release(:'lease_id', last_id) FROM scru64_realm.ledger WHERE lease_id = :'lease_id';
UPDATE test_clock SET now = now + '1 minute';
SELECT available FROM scru64_realm.capacity WHERE node_id_size = 3;
-- set for a database or a role
ALTER DATABASE scru64_regression_realm SET scru64.node_spec = '0u2r85hm2pt3/16';
SELECT node, node_ctr_range FROM scru64_realm_internal.unleased();
SELECT scru64_realm.lease(15, 'x', node_id => 5500);
ALTER DATABASE scru64_regression_realm SET scru64.node_spec = '';
SELECT node FROM scru64_realm_internal.unleased();
-- what was generated
BEGIN;
SET LOCAL scru64.node_spec = '4000000/22';
SELECT count(scru64_generate());
SET LOCAL scru64.node_spec = '';
SET LOCAL test.node = '4000000/22';
SELECT node, node_ctr_range FROM scru64_realm_internal.unleased();
SELECT scru64_realm.lease(21, 'x', node_id => 2000000);
ROLLBACK;
BEGIN;
SET LOCAL test.node = '4000000/22';
UPDATE test_clock SET now = clock_timestamp() - interval '1 s';
SELECT granted_at - now BETWEEN '0.5 s' AND '2 s' AS after_it FROM test_clock, scru64_realm.lease(22, 'x', node_id => 4000000);
SELECT pg_sleep_until(granted_at + '0.1 s') FROM scru64_realm.ledger WHERE node_id = 4000000;
SET LOCAL scru64.node_spec = '4000000/22';
SELECT count(scru64_generate());
SET LOCAL scru64.node_spec = '';
-- it generates with a lease now
SELECT count(*) FROM scru64_realm_internal.unleased();
-- a lease of the past has no room for it
UPDATE test_clock SET now = clock_timestamp() - interval '1 day';
SELECT count(*) FROM scru64_realm.lease(22, 'past', '1 hour', node_id => 4000002);
SET LOCAL scru64.node_spec = '4000002/22';
SELECT count(scru64_generate());
SET LOCAL scru64.node_spec = '';
SET LOCAL test.node = '4000002/22';
SELECT node FROM scru64_realm_internal.unleased();
-- by hand: one holder's node spec and last ID, and where the next one begins
UPDATE test_clock SET now = clock_timestamp();
SELECT lease_id, node_spec FROM scru64_realm.lease(22, 'one', '1 hour', node_id => 4000001) \gset
SET LOCAL scru64.node_spec = :'node_spec';
SELECT scru64_generate() > split_part(:'node_spec', '/', 1)::scru64 AS after_its_start;
SET LOCAL scru64.node_spec = '';
SELECT scru64_realm.release(:'lease_id', last_id) FROM scru64_generators() WHERE node_id = 4000001;
UPDATE test_clock SET now = now + '1 minute';
SELECT node_spec FROM scru64_realm.lease(22, 'two', '1 hour', node_id => 4000001) \gset
SELECT split_part(:'node_spec', '/', 1)::scru64 > last_id AS after_its_end FROM scru64_generators() WHERE node_id = 4000001;
ROLLBACK;

--
-- Pruning
--
UPDATE test_clock SET now = '2027-01-01 00:00:00+00';
SELECT lease_id FROM scru64_realm.lease(8, 'with ID', '1 hour', node_id => 100) \gset
SELECT scru64_realm.release(:'lease_id', scru64_from_parts(scru64_realm.clock(), 100 << 16));
SELECT lease_id FROM scru64_realm.lease(8, 'without ID', '1 hour', node_id => 101) \gset
SELECT scru64_realm.release(:'lease_id');
SELECT count(*) FROM scru64_realm.lease(8, 'active', '1000 years', node_id => 102);
SELECT count(*) > 5 AS pruned FROM scru64_realm.prune('7 days') AS n, generate_series(1, n);
SELECT holder FROM scru64_realm.ledger ORDER BY holder;
SELECT scru64_realm.prune('0');
UPDATE test_clock SET now = now + '1 hour';
SELECT scru64_realm.prune('0');
SELECT holder FROM scru64_realm.ledger ORDER BY holder;
SELECT count(*) FROM scru64_realm.lease(8, 'next', '1 hour', node_id => 100);
-- a clock that is behind what was pruned
SELECT scru64_realm_internal.remembered('pruned_until');
BEGIN;
UPDATE test_clock SET now = '2027-01-01 00:00:00+00';
SELECT scru64_realm.lease(8, 'too early', '1 hour', node_id => 103);
\echo :SQLSTATE
ROLLBACK;
UPDATE test_clock SET now = now + '100 days';
SELECT scru64_realm.prune('1000 years');
SELECT scru64_realm.prune('90 days');
SELECT holder FROM scru64_realm.ledger ORDER BY holder;
SELECT call, e.*
FROM unnest(ARRAY['prune(''-1 s'')', 'prune(''-12 mons +361 days'')', 'prune(NULL)']) AS call,
	 test.error_of('SELECT scru64_realm.' || call) AS e;

--
-- Nobody gets around the constraint, not even the owner.
--
INSERT INTO scru64_realm.ledger (node_id, node_id_size, holder, granted_at, expires_at, occupied_until, clock_reading, last_id)
VALUES (3264, 13, 'owner', '2030-01-01 00:00:00+00', '2030-01-02 00:00:00+00', '2030-01-02 00:00:30+00', '2030-01-01 00:00:00+00',
	scru64_from_parts('2030-01-01 00:00:00+00', 3264 << 11));
\echo :SQLSTATE
-- ... and what is violated has a name that says what it wants
SELECT conname FROM pg_constraint
WHERE connamespace IN ('scru64_realm'::regnamespace, 'scru64_realm_internal'::regnamespace) AND contype = 'c' AND conname ~ '_check[0-9]*$';

--
-- The columns of the views stay; new ones are the last.
--
SELECT c.relname, string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum) AS columns
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relnamespace = 'scru64_realm'::regnamespace AND c.relkind = 'v'
GROUP BY c.relname ORDER BY c.relname COLLATE "C";
\c :original
DROP DATABASE scru64_regression_realm;
