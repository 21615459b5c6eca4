--
-- What a realm promises at most, requests that are repeated, leases that are revoked,
-- and what its owner sets: in a database of its own.
--
SET client_min_messages = warning;
DROP DATABASE IF EXISTS scru64_regression_realm;
DROP DATABASE IF EXISTS scru64_regression_realm_copy;
DROP ROLE IF EXISTS regress_realm_owner, regress_realm_app;
RESET client_min_messages;
CREATE ROLE regress_realm_owner;
CREATE ROLE regress_realm_app;
SELECT 'regress_realm_owner' AS realm_owner, '2027-01-01 12:00:00+00' AS now \gset
\i sql_tests/realm.sql
SELECT guard, max_ttl, first_ttl, next_max_ttl, next_first_ttl, next_from FROM scru64_realm.settings;
GRANT EXECUTE ON FUNCTION scru64_realm.lease, scru64_realm.renew, scru64_realm.release, scru64_realm.split TO regress_realm_app;

--
-- A call is a statement of its own, in which no error of it is caught, and which sees what others commit.
--
BEGIN;
SELECT scru64_realm.lease(8, 'x');
ROLLBACK;
SELECT 1 \; SELECT scru64_realm.lease(8, 'x');
BEGIN;
DECLARE k CURSOR WITH HOLD FOR SELECT scru64_realm.lease(8, 'x');
COMMIT;
SELECT call, e.code, e.message
FROM unnest(ARRAY['lease(8, ''x'')', 'renew(gen_random_uuid())', 'release(gen_random_uuid())', 'split(gen_random_uuid(), 9)', 'revoke(''x'')',
		'revoke(gen_random_uuid())', 'set_guard(''31 s'')', 'set_max_ttl(''2 hours'')', 'set_first_ttl(''1 s'')', 'prune(''1 s'')',
		'nothing_was_lost()', 'something_was_lost()']) AS call,
	 test.error_of('SELECT scru64_realm.' || call) AS e;
SET default_transaction_isolation = 'repeatable read';
SELECT scru64_realm.lease(8, 'x');
SELECT scru64_realm.set_guard('31 s');
RESET default_transaction_isolation;
SELECT count(*) FROM scru64_realm.ledger;
-- the statement may be a procedure, which commits
DO 'BEGIN PERFORM scru64_realm.lease(8, ''kept''); COMMIT; PERFORM scru64_realm.lease(8, ''not kept''); ROLLBACK; END';
SELECT holder FROM scru64_realm.ledger;
DELETE FROM scru64_realm.ledger;
-- What follows is rolled back, or its errors are caught.
CREATE OR REPLACE FUNCTION scru64_realm_internal.begin_change(is_short boolean) RETURNS void LANGUAGE sql AS '';

--
-- A new lease is for first_ttl, or less if that is asked for.
--
SELECT ttl, expires_at - granted_at AS promised
FROM unnest(ARRAY[NULL, '1 day', '131.000001 s', '131 s', '130 s', '1 us']::interval[]) AS ttl, scru64_realm.lease(8, 'new', ttl);
-- A renewal is for as long as the lease is old, up to max_ttl.
SELECT lease_id FROM scru64_realm.lease(8, 'old') \gset
DO $$
DECLARE
	id uuid := (SELECT lease_id FROM scru64_realm.ledger WHERE holder = 'old');
	expires_at timestamptz;
BEGIN
	FOR n IN 1 .. 8 LOOP
		UPDATE test_clock SET now = (SELECT l.expires_at - interval '1 s' FROM scru64_realm.ledger AS l WHERE lease_id = id);
		SELECT r.expires_at INTO expires_at FROM scru64_realm.renew(id) AS r;
		RAISE INFO 'after % for %', (SELECT now - granted_at FROM test_clock, scru64_realm.ledger WHERE lease_id = id), expires_at - scru64_realm.clock();
	END LOOP;
END
$$;
-- by the realm's clock, wherever that is
UPDATE test_clock SET now = now - interval '3 hours';
SELECT count(*) FROM scru64_realm.renew(:'lease_id'), test_clock WHERE expires_at > now + interval '3 hours';
UPDATE test_clock SET now = now + interval '3 hours';
SELECT expires_at - now AS promised FROM test_clock, scru64_realm.renew(:'lease_id', '1 minute');
SELECT scru64_realm.release(:'lease_id');

--
-- Without end
--
SELECT lease_id, expires_at - realm_clock AS promised
FROM scru64_realm.lease(8, 'endless', '1000 years', node_id => 50, request => '11111111-2222-4333-8444-555555555555');
UPDATE test_clock SET now = now + '50 minutes';
SELECT expires_at - realm_clock AS promised
FROM scru64_realm.lease(8, 'endless', '1000 years', node_id => 50, request => '11111111-2222-4333-8444-555555555555');
SELECT scru64_realm.lease(8, 'another', node_id => 50);
SELECT expires_at - realm_clock AS promised FROM scru64_realm.renew('11111111-2222-4333-8444-555555555555', '1 minute');
UPDATE test_clock SET now = now + '10 minutes 30 s';
SELECT expires_at - realm_clock AS promised FROM scru64_realm.renew('11111111-2222-4333-8444-555555555555');
BEGIN;
UPDATE test_clock SET now = now + '1 us';
SELECT expires_at FROM scru64_realm.renew('11111111-2222-4333-8444-555555555555');
SELECT expires_at FROM scru64_realm.leases WHERE holder = 'endless';
-- what comes out of a split has no end either
SELECT expires_at FROM scru64_realm.split('11111111-2222-4333-8444-555555555555', 9);
ROLLBACK;
SELECT expires_at - now AS promised FROM test_clock, scru64_realm.split('11111111-2222-4333-8444-555555555555', 9);
DELETE FROM scru64_realm.ledger;

--
-- A request that is repeated is the same, or an error.
--
BEGIN;
SELECT lease_id, granted_at = realm_clock AS new
FROM scru64_realm.lease(8, 'app', '1 minute', within => '3/4', request => '11111111-2222-4333-8444-555555555555');
SELECT lease_id, granted_at = realm_clock AS same
FROM scru64_realm.lease(8, 'app', '60 seconds', within => '3/4', request => '11111111-2222-4333-8444-555555555555');
SELECT lease_id, granted_at = realm_clock AS same
FROM scru64_realm.lease(8, 'app', '60 seconds', 48, within => '3/4', request => '11111111-2222-4333-8444-555555555555');
COMMIT;
SELECT asked, e.*
FROM (VALUES
	('9, ''app'', ''1 minute'', within => ''3/4'''),
	('8, ''other'', ''1 minute'', within => ''3/4'''),
	('8, ''app'', ''61 s'', within => ''3/4'''),
	('8, ''app'', within => ''3/4'''),
	('8, ''app'', ''1 minute'''),
	('8, ''app'', ''1 minute'', within => ''0x3/4'''),
	('8, ''app'', ''1 minute'', 49, within => ''3/4''')
) AS v (asked), test.error_of(format('SELECT scru64_realm.lease(%s, request => ''11111111-2222-4333-8444-555555555555'')', asked)) AS e;
SELECT node, holder FROM scru64_realm.leases;
DELETE FROM scru64_realm.ledger;

--
-- A node that is ahead of the realm's clock: not beyond what is promised, either.
--
RESET SESSION AUTHORIZATION;
SET scru64.node_spec = '4050000/22';
SELECT count(scru64_generate());
RESET scru64.node_spec;
SET SESSION AUTHORIZATION regress_realm_owner;
SET test.node = '4050000/22';
BEGIN;
UPDATE test_clock SET now = clock_timestamp() - interval '60 s';
SELECT granted_at > realm_clock + '50 s' AS later, expires_at - realm_clock AS promised FROM scru64_realm.lease(22, 'x', node_id => 4050000);
ROLLBACK;
UPDATE test_clock SET now = clock_timestamp() - interval '10 minutes';
DO $$
BEGIN
	PERFORM scru64_realm.lease(22, 'x', node_id => 4050000);
EXCEPTION WHEN object_not_in_prerequisite_state THEN
	RAISE INFO '%', SQLERRM;
END
$$;
RESET test.node;
UPDATE test_clock SET now = '2027-01-02 12:00:00+00';

--
-- Who has how much
--
SET SESSION AUTHORIZATION regress_realm_app;
SELECT count(*) FROM scru64_realm.lease(8, 'app') AS a, scru64_realm.lease(10, 'app') AS b;
SET SESSION AUTHORIZATION regress_realm_owner;
SELECT count(*) FROM scru64_realm.lease(6, 'owner');
SELECT role, leases, node_ctr_values FROM scru64_realm.roles;
SELECT node, holder, role FROM scru64_realm.leases;

--
-- What is revoked lasts as long as it does.
--
SELECT lease_id FROM scru64_realm.lease(8, 'gone', request => '22222222-2222-4333-8444-555555555555') \gset
SELECT scru64_realm.revoke(:'lease_id'::uuid);
SELECT scru64_realm.revoke(:'lease_id'::uuid);
SELECT scru64_realm.revoke('gone');
SELECT scru64_realm.revoke('app');
SELECT scru64_realm.revoke('nobody');
SELECT scru64_realm.revoke(NULL::text), scru64_realm.revoke(NULL::uuid);
-- a literal is a lease_id in all its forms, and not only a name
BEGIN;
SELECT FROM scru64_realm.lease(8, 'a') AS a, scru64_realm.lease(8, 'b', request => 'abcdef22-2222-4333-8444-555555555555') AS b,
	scru64_realm.lease(8, 'abcdef2222224333-8444-555555555555') AS c;
SELECT scru64_realm.revoke('{ABCDEF2222224333-8444-555555555555}');
SELECT scru64_realm.revoke('abcdef2222224333-8444-555555555555');
SELECT holder, revoked_at IS NOT NULL AS revoked FROM scru64_realm.leases WHERE node_id_size = 8 ORDER BY node_id DESC LIMIT 3;
ROLLBACK;
SELECT node, holder, expires_at, revoked_at FROM scru64_realm.leases;
SELECT call, e.*
FROM unnest(ARRAY['renew(%L)', 'split(%L, 9)']) AS call, test.error_of(format('SELECT scru64_realm.' || call, :'lease_id')) AS e;
SELECT expires_at - realm_clock AS promised FROM scru64_realm.lease(8, 'gone', request => '22222222-2222-4333-8444-555555555555');
SELECT scru64_realm.release(:'lease_id');
DELETE FROM scru64_realm.ledger;

--
-- Settings: a raise counts later, a reduction at once.
--
SELECT scru64_realm.set_max_ttl('2 hours');
SELECT max_ttl, first_ttl, next_max_ttl, next_first_ttl, next_from FROM scru64_realm.settings;
-- the same again, and more
SELECT scru64_realm.set_max_ttl('2 hours');
UPDATE test_clock SET now = now + '10 minutes';
SELECT scru64_realm.set_max_ttl('2 hours');
SELECT scru64_realm.set_max_ttl('3 hours');
SELECT max_ttl, next_max_ttl, next_from FROM scru64_realm.settings;
-- less than it is to be, and less than it is
SELECT scru64_realm.set_max_ttl('2 hours');
SELECT scru64_realm.set_max_ttl('30 minutes');
SELECT max_ttl, next_max_ttl, next_from FROM scru64_realm.settings;
-- both
SELECT scru64_realm.set_first_ttl('3 minutes');
BEGIN;
SELECT expires_at - realm_clock AS promised FROM scru64_realm.lease(8, 'x');
UPDATE test_clock SET now = now + '30 minutes 30 s';
SELECT expires_at - realm_clock AS promised FROM scru64_realm.lease(8, 'x');
SELECT scru64_realm.set_first_ttl('1 minute') = now AS at_once FROM test_clock;
SELECT expires_at - realm_clock AS promised FROM scru64_realm.lease(8, 'x');
ROLLBACK;
SELECT scru64_realm.set_max_ttl('20 minutes');
SELECT max_ttl, first_ttl, next_max_ttl, next_first_ttl, next_from FROM scru64_realm.settings;
SELECT scru64_realm.set_first_ttl('1 minute');
SELECT max_ttl, first_ttl, next_max_ttl, next_first_ttl, next_from FROM scru64_realm.settings;
-- a guard time that is longer than clocks differ
SELECT scru64_realm.set_guard('2 minutes');
SELECT scru64_realm.set_max_ttl('1 month -29 days') AS a_reduction;
SELECT scru64_realm.set_max_ttl('1 hour');
UPDATE test_clock SET now = now + '22 minutes';
SELECT scru64_realm.set_max_ttl('1 hour');
SELECT call, e.*
FROM unnest(ARRAY['max_ttl(''0'')', 'max_ttl(''-1 s'')', 'max_ttl(''-12 mons +361 days'')', 'max_ttl(''12 mons 1 day'')',
				  'first_ttl(''1000 years'')']) AS call, test.error_of('SELECT scru64_realm.set_' || call) AS e;
SELECT scru64_realm.set_max_ttl(NULL) IS NULL AS nothing;

--
-- What its owner says was lost
--
SELECT scru64_realm.nothing_was_lost() IS NULL AS nothing;
SELECT scru64_realm.something_was_lost() - now AS waits FROM test_clock;
SELECT scru64_realm.lease(8, 'x');
\echo :SQLSTATE
SELECT scru64_realm.set_max_ttl('2 hours') - now AS raised FROM test_clock;
SELECT (scru64_realm_internal.last_failover()).granting_from - now AS waits_for_longer FROM test_clock;
SELECT scru64_realm.nothing_was_lost() AS since;
SELECT scru64_realm.nothing_was_lost() IS NULL AS nothing;
SELECT count(*) FROM scru64_realm.lease(8, 'x');
SELECT scru64_realm.something_was_lost('infinity'), (scru64_realm_internal.last_failover()).lost_until;
SELECT scru64_realm.lease(8, 'x');
SELECT scru64_realm.nothing_was_lost() AS since;
SELECT scru64_realm.something_was_lost(now - interval '1 day') - now AS waits FROM test_clock;
-- between two times that it says so, the realm notices a failover
UPDATE test_clock SET now = now + interval '3 hours';
SELECT scru64_realm.nothing_was_lost() AS since;
SELECT scru64_realm.something_was_lost() - now AS waits FROM test_clock;
UPDATE test_clock SET now = now + interval '10 minutes';
SELECT setval('scru64_realm_internal.last_identity', 5);
SELECT count(*) FROM scru64_realm.lease(8, 'x');
UPDATE test_clock SET now = now + interval '10 minutes';
SELECT scru64_realm.something_was_lost() - now AS waits FROM test_clock;
SELECT scru64_realm.nothing_was_lost() AS since;
SELECT (scru64_realm_internal.last_failover()).granting_from - now AS waits_still FROM test_clock;
SELECT scru64_realm.nothing_was_lost() AS since;
-- and each time that it says so is a change of its own
UPDATE test_clock SET now = now + interval '3 hours';
SELECT scru64_realm.something_was_lost() - now AS waits FROM test_clock;
UPDATE test_clock SET now = now + interval '10 minutes';
SELECT scru64_realm.something_was_lost() - now AS waits FROM test_clock;
-- both are raised
SELECT scru64_realm.set_max_ttl('3 hours') - now AS raised FROM test_clock;
SELECT scru64_realm.nothing_was_lost() AS since;
SELECT (scru64_realm_internal.last_failover()).granting_from - now AS waits_still FROM test_clock;
SELECT scru64_realm.lease(8, 'x');
\echo :SQLSTATE
SELECT scru64_realm.nothing_was_lost() IS NULL AS nothing;

--
-- What the realm notices: here, by the mark of another server
--
DELETE FROM scru64_realm.ledger;
UPDATE scru64_realm.settings
SET guard = '30 s', max_ttl = '1 hour', first_ttl = '131 s', next_max_ttl = NULL, next_first_ttl = NULL, next_from = NULL;
UPDATE test_clock SET now = '2027-01-03 00:00:00+00';
SELECT count(*) FROM scru64_realm.lease(8, 'over', '1 s', node_id => 70);
SELECT lease_id FROM scru64_realm.lease(8, 'active', request => '33333333-2222-4333-8444-555555555555') \gset
UPDATE test_clock SET now = now + interval '31 s';
SELECT setval('scru64_realm_internal.last_identity', 5);
-- it locks out others for that moment, and not until the transaction ends
BEGIN;
SELECT expires_at FROM scru64_realm.renew(:'lease_id');
SELECT (scru64_realm_internal.last_failover()).*;
SELECT count(*) FROM pg_locks WHERE relation = 'scru64_realm.settings'::regclass AND mode = 'ShareRowExclusiveLock' AND pid = pg_backend_pid();
COMMIT;
-- after a crash before the last mark it notices the same change, and not another one
SELECT setval('scru64_realm_internal.last_identity', 5);
SELECT scru64_realm.lease(8, 'x');
SELECT scru64_realm.nothing_was_lost() AS since;
SELECT count(*) FROM scru64_realm.lease(8, 'x', '1 s');
-- a lease that was over may have been renewed: it is kept, and so is its node
SELECT setval('scru64_realm_internal.last_identity', 5);
SELECT scru64_realm.prune('0');
UPDATE test_clock SET now = (scru64_realm_internal.last_failover()).granting_from;
SELECT scru64_realm.lease(8, 'x', node_id => 70);
SELECT scru64_realm.prune('0');
UPDATE test_clock SET now = (scru64_realm_internal.last_failover()).lost_until;
SELECT scru64_realm.prune('0');
-- as if it had ended now
UPDATE test_clock SET now = now - interval '1 s';
SELECT scru64_realm.lease(8, 'x', node_id => 70);
-- and that it keeps, whatever ends before it
UPDATE test_clock SET now = now + interval '1 s';
SELECT lease_id FROM scru64_realm.lease(8, 'ends by a clock that was set back') \gset
SELECT count(*) FROM scru64_realm.lease(8, 'ends before', '1 s');
UPDATE test_clock SET now = now + interval '60 s';
SELECT scru64_realm.prune('0');
UPDATE test_clock SET now = now - interval '60 s';
SELECT scru64_realm.release(:'lease_id');
UPDATE test_clock SET now = now + interval '30.5 s';
SELECT scru64_realm.prune('0');
SELECT scru64_realm.lease(8, 'x');

--
-- Since when something may have been lost: the last change, whatever was read before it. One
-- that is ahead of the clock by more than the guard time was made in a leap, and says nothing.
--
DELETE FROM scru64_realm.ledger;
UPDATE scru64_realm.settings SET made_at = now FROM test_clock;
SELECT scru64_realm.set_guard('30 s');
UPDATE test_clock SET now = now + interval '2 days 90 s';
SELECT count(*) FROM scru64_realm.lease(8, 'in a leap', '1 s');
UPDATE test_clock SET now = now - interval '90 s';
SELECT count(*) FROM scru64_realm.lease(8, 'after it', '1 s');
UPDATE test_clock SET now = now + interval '40 s';
-- the last change, which has ended, stays while a later reading is known
SELECT scru64_realm.prune('0');
SELECT setval('scru64_realm_internal.last_identity', 5);
SELECT scru64_realm.lease(8, 'x');
SELECT now - scru64_realm.nothing_was_lost() AS ago FROM test_clock;
UPDATE test_clock SET now = now + interval '10 minutes';
SELECT scru64_realm.prune('0');
SELECT scru64_realm.prune('0');
SELECT lease_id FROM scru64_realm.lease(8, 'in a leap') \gset
UPDATE test_clock SET now = now - interval '30 s';
SELECT setval('scru64_realm_internal.last_identity', 5);
SELECT now - scru64_realm.nothing_was_lost() AS ago FROM test_clock;
UPDATE test_clock SET now = now - interval '1 us';
SELECT setval('scru64_realm_internal.last_identity', 5);
SELECT scru64_realm.nothing_was_lost() AS since;
-- all that goes by the clock is such a change
SELECT count(*) FROM scru64_realm.lease(8, 'other');
SELECT count(*) FROM scru64_realm.renew(:'lease_id', '1 s');
SELECT holder, clock_reading = now AS is_now FROM test_clock, scru64_realm.ledger ORDER BY change;
UPDATE test_clock SET now = now - interval '1 s';
SELECT count(*) FROM scru64_realm.split((SELECT lease_id FROM scru64_realm.ledger WHERE holder = 'other'), 9);
SELECT scru64_realm.release(:'lease_id');
SELECT holder, node_id_size, clock_reading = now AS is_now FROM test_clock, scru64_realm.ledger ORDER BY change;
-- a copy of its database
RESET SESSION AUTHORIZATION;
\c :original
CREATE DATABASE scru64_regression_realm_copy TEMPLATE scru64_regression_realm;
\c scru64_regression_realm_copy
SET lc_messages = 'C';
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
UPDATE test_clock SET now = now + interval '1 day';
SELECT scru64_realm.lease(8, 'x');

\c :original
DROP DATABASE scru64_regression_realm_copy;
DROP DATABASE scru64_regression_realm;
DROP ROLE regress_realm_owner, regress_realm_app;
