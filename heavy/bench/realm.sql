-- How long a lease takes in a realm with 100,000 leases in its history, of which
-- 10,000 are active.
--
--     createdb realm_bench
--     psql -X -q -d realm_bench -f heavy/bench/realm.sql
--
-- Prints median and maximum in milliseconds, for leases of several kinds.

\set ON_ERROR_STOP on
\set QUIET on
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS scru64_realm CASCADE;
RESET client_min_messages;

-- 90,000 have ended, six days of them, and left a last ID.
INSERT INTO scru64_realm.ledger (node_id, node_id_size, holder, granted_at, expires_at, occupied_until, clock_reading, last_id)
SELECT n % 16384, 14, 'ended', ended_at - interval '1 hour', ended_at, ended_at + interval '30 s', ended_at,
	   (floor(extract(epoch FROM ended_at) * 1000 / 256)::bigint << 24 | (n % 16384 << 10))::scru64
FROM generate_series(0, 89999) AS n,
	 LATERAL (SELECT now() - interval '2 hours' - n / 16384 * interval '1 day' - n % 100 * interval '1 minute' AS ended_at) AS e;

-- 10,000 are active, all over the realm, with nodes of 14 to 20 bits and room
-- between them.
INSERT INTO scru64_realm.ledger (node_id, node_id_size, holder, granted_at, expires_at, occupied_until, clock_reading, last_id)
SELECT (n * 8 / 5) << n % 7, 14 + n % 7, 'active', now() - interval '1 hour', now() + interval '1 day',
	   now() + interval '1 day 30 s', now(),
	   (floor(extract(epoch FROM now() - interval '1 hour') * 1000 / 256)::bigint << 24 | (((n * 8 / 5) << n % 7) << (10 - n % 7)))::scru64
FROM generate_series(0, 9999) AS n;
VACUUM ANALYZE scru64_realm.ledger;

SELECT count(*) AS history, count(*) FILTER (WHERE occupied_until > now()) AS active FROM scru64_realm.ledger;

-- 200 leases of a kind, each in place of the one before
CREATE TEMP TABLE kind (n serial, size integer, place text, median numeric(8,2), maximum numeric(8,2));
INSERT INTO kind (size, place)
VALUES (6, NULL), (8, NULL), (12, NULL), (16, NULL), (20, NULL), (23, NULL), (16, '3/4'), (20, '0/1');

DO $$
DECLARE
	kind kind;
	began timestamptz;
	took float8[];
	id uuid;
BEGIN
	FOR kind IN SELECT * FROM kind ORDER BY n LOOP
		took := '{}';
		FOR n IN 1 .. 200 LOOP
			began := clock_timestamp();
			SELECT lease_id INTO id FROM scru64_realm.lease(kind.size, 'bench', within => kind.place);
			took := took || extract(epoch FROM clock_timestamp() - began)::float8 * 1000;
			-- as if it had never been
			DELETE FROM scru64_realm.ledger WHERE lease_id = id;
			COMMIT;
		END LOOP;
		UPDATE kind AS k SET median = percentile, maximum = (SELECT max(t) FROM unnest(took) AS t)
		FROM (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY t) AS percentile FROM unnest(took) AS t) AS p
		WHERE k.n = kind.n;
		COMMIT;
	END LOOP;
END
$$;
SELECT size, coalesce(place, '') AS within, median AS "median ms", maximum AS "maximum ms" FROM kind ORDER BY n;
