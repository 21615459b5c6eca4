-- How long a lease takes in a realm with 100,000 leases in its history, of which
-- 10,000 are active.
--
--     createdb realm_bench
--     psql -X -q -d realm_bench -f bench/realm.sql
--
-- Prints median and maximum in milliseconds, for leases of several kinds.

\set ON_ERROR_STOP on
\set QUIET on
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS scru64_realm CASCADE;
RESET client_min_messages;

BEGIN;

-- Nine tenths have ended, each some time in the last ten days, and left a last ID.
-- Those that are active have nodes of 15 to 20 bits.
INSERT INTO scru64_realm.ledger (node_id, node_id_size, holder, granted_at, expires_at, occupied_until, last_id)
SELECT n / 100, 14, 'ended', ended_at - interval '1 hour', ended_at, ended_at + interval '30 s',
	   (floor(extract(epoch FROM ended_at) * 1000 / 256)::bigint << 24 | (n / 100 << 10))::scru64
FROM generate_series(0, 89999) AS n, LATERAL (SELECT now() - interval '1 hour' - n % 100 * interval '140 min' AS ended_at) AS e;

DO $$
BEGIN
	FOR n IN 1 .. 10000 LOOP
		PERFORM scru64_realm.lease(15 + n % 6, 'active', '1 day');
		-- holes
		IF n % 7 = 0 THEN
			PERFORM scru64_realm.lease(18, 'hole', '1 day');
		END IF;
	END LOOP;
	UPDATE scru64_realm.ledger SET granted_at = granted_at - interval '1 hour', expires_at = now() - interval '1 minute',
		occupied_until = now() - interval '30 s' WHERE holder = 'hole';
END
$$;
COMMIT;
VACUUM ANALYZE scru64_realm.ledger;

SELECT count(*) AS history, count(*) FILTER (WHERE occupied_until > now()) AS active FROM scru64_realm.ledger;

-- 200 leases of a kind, each released at once
CREATE FUNCTION pg_temp.measure(size integer, place text, OUT median numeric, OUT maximum numeric) LANGUAGE plpgsql AS $$
DECLARE
	began timestamptz;
	took float8[];
	id uuid;
BEGIN
	FOR n IN 1 .. 200 LOOP
		began := clock_timestamp();
		SELECT lease_id INTO id FROM scru64_realm.lease(size, 'bench', within => place);
		took := took || extract(epoch FROM clock_timestamp() - began)::float8 * 1000;
		-- as if it had never been
		DELETE FROM scru64_realm.ledger WHERE lease_id = id;
	END LOOP;
	SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY t)::numeric(8,2), max(t)::numeric(8,2)
	INTO median, maximum FROM unnest(took) AS t;
END
$$;
SELECT size, coalesce(place, '') AS within, median AS "median ms", maximum AS "maximum ms"
FROM (VALUES (2, NULL), (8, NULL), (12, NULL), (16, NULL), (20, NULL), (23, NULL), (16, '3/4'), (20, '0/1')) AS kind (size, place),
	 pg_temp.measure(size, place);
