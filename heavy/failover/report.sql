-- report.sql
--		The report of failover/run. Variables: part, lease or static; events, how
--		many there were to be

\pset footer off
\pset tuples_only off
\pset format aligned
CREATE INDEX ON received (at);
CREATE INDEX ON received (port, at);
ANALYZE;

-- Everything known of an ID: the same answer twice is once.
CREATE TEMP TABLE known AS
SELECT tag, id, port, at FROM received UNION SELECT tag, id, port, at FROM kept;

CREATE TEMP TABLE twice AS
SELECT id FROM known GROUP BY id HAVING count(*) > 1;

UPDATE promotion AS p SET at = p.at - c.off * interval '1 s'
FROM clock AS c
WHERE p.port = c.port AND p.at - c.off * interval '1 s' BETWEEN c.since AND c.until;

CREATE TEMP TABLE first_id AS
SELECT p.at, p.port, extract(epoch FROM min(r.at) - p.at)::numeric(8,2) AS seconds
FROM promotion AS p LEFT JOIN LATERAL (
	SELECT at FROM received WHERE port = p.port AND at >= p.at ORDER BY at LIMIT 1) AS r ON true
WHERE p.at > (SELECT min(at) FROM event) AND p.port IN (SELECT port FROM received)
GROUP BY p.at, p.port;

SELECT n AS event, kind, leader || ' -> ' || next_leader AS leaders,
	   (SELECT string_agg(p.seconds::text, ', ' ORDER BY p.at) FROM first_id AS p
		WHERE p.at BETWEEN e.at AND e.until) AS "promotion to first ID, s"
FROM (SELECT *, lead(at, 1, 'infinity') OVER (ORDER BY n) AS until FROM event) AS e
ORDER BY n;

SELECT (SELECT count(*) FROM first_id) AS promotions,
	   (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY seconds) FROM first_id) AS "to first ID, median s",
	   (SELECT max(seconds) FROM first_id) AS "longest",
	   (SELECT count(*) FROM (SELECT FROM received GROUP BY date_trunc('second', at) HAVING count(DISTINCT port) > 1) AS s) AS "seconds with two leaders",
	   (SELECT count(*) FROM received) AS "received IDs",
	   (SELECT count(*) FROM kept) AS rows,
	   (SELECT count(*) FROM received AS r WHERE is_row AND NOT EXISTS (SELECT FROM kept AS k WHERE k.tag = r.tag)) AS "rows lost",
	   (SELECT count(*) FROM twice) AS "IDs twice";

\pset tuples_only on
\pset format unaligned
CREATE FUNCTION pg_temp.is(what text, holds boolean) RETURNS text
LANGUAGE sql RETURN CASE WHEN holds THEN 'ok: ' ELSE 'not ok: ' END || what;

SELECT pg_temp.is(count(*) || ' events', count(*) = :events) FROM event;
SELECT pg_temp.is('each promoted member gives IDs', bool_and(seconds IS NOT NULL)) FROM first_id;
SELECT pg_temp.is(format('no ID twice in %s rows', count(*)), count(*) > 1000 AND count(*) = count(DISTINCT id)) FROM kept;

SELECT :'part' = 'lease' AS lease \gset
\if :lease
SELECT pg_temp.is(format('no ID twice among %s that were received or are in rows', (SELECT count(*) FROM known)), NOT EXISTS (SELECT FROM twice));

-- The lease of each: in its window, up to the last ID if it was given back, and one server's
CREATE TEMP TABLE of_lease AS
SELECT k.id, k.port, l.lease_id
FROM known AS k LEFT JOIN ledger AS l
ON scru64_node_ctr(k.id) <@ l.node_ctr_range
   AND k.id::bigint >> 24 > scru64_realm_internal.tick(l.granted_at) AND k.id::bigint >> 24 <= scru64_realm_internal.tick(l.expires_at)
   AND (l.released_at IS NULL OR k.id <= l.last_id);
SELECT pg_temp.is('each is in the window of one lease', count(*) = count(lease_id) AND count(*) = (SELECT count(*) FROM known)) FROM of_lease;
SELECT pg_temp.is(format('each of %s leases was one server''s', count(*)), bool_and(servers = 1))
FROM (SELECT count(DISTINCT port) AS servers FROM of_lease GROUP BY lease_id) AS l;
\endif
