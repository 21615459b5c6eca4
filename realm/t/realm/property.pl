# 2,000 random requests to a realm, while its clock moves on, stands still, leaps and goes back.
# Each answer, and each row of the ledger, is as expected: a lease is of the smallest free block,
# which the test finds by trying all blocks, and each refusal has its reason.
# (realm/t/realm/simulator shows that no ID is promised twice.)

use strict;
use warnings;
use Scru64Random;
use Scru64Test;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;

my $node = new_node('main');
my $seed = seed_random();

$node->start;
$node->safe_psql('postgres', q(
CREATE EXTENSION scru64_realm CASCADE;
-- reached by leases of this test
UPDATE scru64_realm.settings SET max_ttl = '400 s', first_ttl = '100 s', made_at = '2026-01-01';

-- the realm's clock, in microseconds, is what this session says
CREATE OR REPLACE FUNCTION scru64_realm.clock() RETURNS timestamptz LANGUAGE sql VOLATILE
	RETURN timestamptz 'epoch' + current_setting('test.us')::bigint * interval '1 us';
-- errors are caught
CREATE OR REPLACE FUNCTION scru64_realm_internal.begin_change(is_short boolean) RETURNS void LANGUAGE sql AS '';

CREATE TABLE log (n bigserial, request text, answer text, expected text);

CREATE FUNCTION pick(low integer, high integer) RETURNS integer LANGUAGE sql VOLATILE
	RETURN low + floor(random() * (high - low + 1))::integer;
CREATE FUNCTION tick_after(id bigint) RETURNS timestamptz LANGUAGE sql
	RETURN timestamptz 'epoch' + ((id >> 24) + 1) * interval '256 ms';

-- The beginning of the best block: of the free blocks within 5/14, each as large as possible, the
-- first of the smallest that are large enough
CREATE FUNCTION best_fit(asked integer, clock timestamptz, until timestamptz) RETURNS integer LANGUAGE sql AS $$
	WITH RECURSIVE taken AS MATERIALIZED (
		SELECT node_ctr_range AS node FROM scru64_realm.ledger
		WHERE occupied_until > clock AND granted_at < least(occupied_until, until)
	), block AS (
		SELECT 14 AS size, 5 AS n
		UNION ALL
		SELECT size + 1, 2 * n + half FROM block, generate_series(0, 1) AS half
		WHERE size < asked AND EXISTS (SELECT FROM taken WHERE node && int4range(n << 24 - size, n + 1 << 24 - size))
	)
	SELECT n << 24 - size FROM block
	WHERE NOT EXISTS (SELECT FROM taken WHERE node && int4range(n << 24 - size, n + 1 << 24 - size))
	ORDER BY size DESC, n LIMIT 1
$$;

CREATE PROCEDURE make_request() LANGUAGE plpgsql AS $$
DECLARE
	guard CONSTANT interval := '30 s';
	what float8 := random();
	clock timestamptz;
	old scru64_realm.ledger;
	new scru64_realm.ledger;
	ttl interval := CASE WHEN random() < 0.9 THEN pick(1, 500) * interval '1 s' END;
	size integer := pick(15, 23);
	last_id bigint;
	known bigint;
	since timestamptz;
	ends timestamptz;
	reported timestamptz;
	id uuid;
	block integer;
	request text;
	answer text;
	expected text;		-- also the error for the lease and the ID that a holder names
BEGIN
	PERFORM set_config('test.us', (current_setting('test.us')::bigint + CASE
		WHEN what < 0.02 THEN pick(-60000000, 0)
		WHEN what < 0.023 THEN pick(-900000000, 0)
		WHEN what < 0.04 THEN pick(0, 600000000)
		WHEN what < 0.2 THEN 0
		ELSE pick(0, 2000000) END)::text, false);
	clock := scru64_realm.clock();
	what := random();
	-- a lease, mostly one that has not ended, or not long ago
	SELECT * INTO old FROM scru64_realm.ledger WHERE expires_at > clock - interval '5 s' OR random() < 0.02 ORDER BY random() LIMIT 1;
	IF random() < 0.7 THEN
		last_id := (extract(epoch FROM clock) * 1000 / 256)::bigint + pick(-200, 300) << 24
			| CASE WHEN random() < 0.8 THEN lower(old.node_ctr_range) + pick(0, (1 << 24 - old.node_id_size) - 1) ELSE pick(0, 16777215) END;
	END IF;
	id := coalesce(old.lease_id, gen_random_uuid());
	known := greatest(old.last_id::bigint, last_id);
	since := greatest(clock, old.granted_at);
	expected := CASE
		WHEN old.expires_at IS NULL OR old.released_at IS NOT NULL OR old.expires_at <= clock THEN '55000'
		WHEN NOT (last_id & 16777215)::integer <@ old.node_ctr_range OR tick_after(last_id - (1 << 24)) > old.expires_at THEN '22023' END;
	BEGIN
		IF what < 0.5 THEN
			request := format('lease %s %s', size, ttl);
			ends := clock + least(ttl, '100 s');
			block := best_fit(size, clock, ends + guard);
			expected := CASE WHEN clock < scru64_realm_internal.remembered('pruned_until') THEN '55000' WHEN block IS NULL THEN '53400'
				ELSE ROW(block >> 24 - size, ends, clock, ends, ends + guard)::text END;
			SELECT lease_id, expires_at INTO id, reported FROM scru64_realm.lease(size, 'h', ttl, within => '5/14');
			SELECT * INTO STRICT new FROM scru64_realm.ledger WHERE lease_id = id;
			answer := ROW(new.node_id, reported, new.granted_at, new.expires_at, new.occupied_until);
		ELSIF what < 0.75 THEN
			request := format('renew %s %s %s', old, ttl, last_id);
			ends := least(since + ttl, clock + least('400 s', greatest('100 s', clock - old.granted_at)));
			expected := coalesce(expected, CASE WHEN old.revoked_at IS NOT NULL THEN '55000' END,
				CASE WHEN EXISTS (SELECT FROM scru64_realm.ledger AS l
								  WHERE l.lease_id <> old.lease_id AND l.node_ctr_range && old.node_ctr_range
									AND l.occupied && tstzrange(old.granted_at, greatest(old.occupied_until, ends + guard))) THEN '55006' END,
				ROW(greatest(old.expires_at, ends), greatest(old.expires_at, ends), greatest(old.occupied_until, ends + guard), known)::text);
			SELECT expires_at INTO reported FROM scru64_realm.renew(id, ttl, last_id::scru64);
			SELECT * INTO new FROM scru64_realm.ledger WHERE lease_id = id;
			answer := ROW(reported, new.expires_at, new.occupied_until, new.last_id::bigint);
		ELSIF what < 0.85 THEN
			request := format('release %s %s', old, last_id);
			expected := coalesce(expected, ROW(since, least(old.occupied_until, greatest(since + guard, tick_after(known))), known)::text);
			PERFORM scru64_realm.release(id, last_id::scru64);
			SELECT * INTO new FROM scru64_realm.ledger WHERE lease_id = id;
			answer := ROW(new.released_at, new.occupied_until, new.last_id::bigint);
		ELSIF what < 0.97 THEN
			size := least(23, old.node_id_size + pick(0, 2));
			request := format('split %s %s %s', old, size, last_id);
			since := greatest(since, tick_after(known));
			expected := coalesce(expected, CASE WHEN old.revoked_at IS NOT NULL THEN '55000' END,
				CASE WHEN size = old.node_id_size THEN '22023' WHEN since >= old.expires_at THEN '55000' END,
				(SELECT string_agg(ROW(n, since, old.expires_at, old.occupied_until, old.ttl, old.within,
					scru64_realm_internal.tick(since), since, since, known)::text, ' ' ORDER BY n)
				 FROM generate_series(old.node_id << size - old.node_id_size, (old.node_id + 1 << size - old.node_id_size) - 1) AS n));
			PERFORM scru64_realm.split(id, size, last_id::scru64);
			SELECT string_agg(ROW(l.node_id, l.granted_at, l.expires_at, l.occupied_until, l.ttl, l.within, l.last_id::bigint >> 24,
								  p.released_at, p.occupied_until, p.last_id::bigint)::text, ' ' ORDER BY l.node_id)
			INTO answer FROM scru64_realm.ledger AS l, scru64_realm.ledger AS p WHERE l.parent = id AND p.lease_id = id;
		ELSIF what < 0.98 THEN
			-- with all that it was split into
			request := format('revoke %s', old);
			expected := (WITH RECURSIVE part AS (
					SELECT l.* FROM scru64_realm.ledger AS l WHERE lease_id = id
					UNION ALL SELECT l.* FROM part AS p, scru64_realm.ledger AS l WHERE l.parent = p.lease_id)
				SELECT count(*) FROM part WHERE released_at IS NULL AND revoked_at IS NULL AND expires_at > clock);
			answer := scru64_realm.revoke(id);
		ELSE
			-- but for the last change while a later reading of the clock is known
			request := 'prune 60 s';
			expected := count(*) FROM scru64_realm.ledger, (SELECT max(change), max(clock_reading) FROM scru64_realm.ledger) AS last (change, reading)
				WHERE occupied_until <= clock - interval '60 s' AND (ledger.change < last.change OR clock_reading >= reading);
			answer := scru64_realm.prune('60 s');
			-- often, the clock goes back to before the end of what was pruned
			IF answer > '0' AND random() < 0.4 THEN
				PERFORM set_config('test.us', least(current_setting('test.us')::bigint,
					extract(epoch FROM scru64_realm_internal.remembered('pruned_until'))::bigint * 1000000 - pick(1, 40000000))::text, false);
			END IF;
		END IF;
	EXCEPTION WHEN SQLSTATE '22023' OR SQLSTATE '53400' OR SQLSTATE '55000' OR SQLSTATE '55006' THEN
		answer := SQLSTATE;
	END;
	INSERT INTO log (request, answer, expected) VALUES (request || ', clock ' || clock, answer, expected);
END
$$;
));

$node->safe_psql('postgres', "SELECT setseed($seed % 1000000 / 1000000.0);\nSET test.us = 1800000000000000;\n" . "CALL make_request();\n" x 2000);
is($node->safe_psql('postgres', q(SELECT request, 'answer ' || answer, 'expected ' || expected FROM log WHERE answer IS DISTINCT FROM expected ORDER BY n LIMIT 3)),
	'', 'each answer, and each row, is what it has to be');
my %count = map { split(/\|/) } split(/\n/, $node->safe_psql('postgres', q(
SELECT what || CASE WHEN answer ~ '^\w{5}$' THEN ' ' || answer ELSE '' END, count(*)
FROM (SELECT split_part(request, ' ', 1) AS what, answer FROM log) AS l GROUP BY 1)));
note(join(', ', map { "$_: $count{$_}" } sort keys %count));
cmp_ok($count{$_} // 0, '>', 0, "there are some of: $_")
  foreach ('lease', 'lease 53400', 'lease 55000', 'renew', 'renew 22023', 'renew 55000', 'release', 'release 22023',
	'release 55000', 'split', 'split 22023', 'split 55000', 'revoke', 'prune');
$node->stop;
done_testing();
