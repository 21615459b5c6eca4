-- ---------------------------------------------------------------------------
-- Views: for members of pg_monitor, and one for the functions
--
-- Those of scru64_realm show no lease_id. Reading them takes EXECUTE on clock() and free(),
-- too. A column that comes later is the last one of its view.
-- ---------------------------------------------------------------------------

CREATE OR REPLACE VIEW scru64_realm.leases WITH (security_barrier) AS
	SELECT l.node_id, l.node_id_size, l.node_id || '/' || l.node_id_size AS node, l.holder, l.role,
		   l.granted_at, l.expires_at, l.revoked_at, l.last_id
	FROM ledger AS l, clock() AS clock
	WHERE l.occupied_until > clock AND l.expires_at > clock AND l.released_at IS NULL
	ORDER BY l.node_ctr_range;

COMMENT ON VIEW leases IS 'active leases, without their lease_ids';
COMMENT ON COLUMN leases.node_id IS 'node_id of the node';
COMMENT ON COLUMN leases.node_id_size IS 'bits of the node_id';
COMMENT ON COLUMN leases.node IS 'both, as in a node spec';
COMMENT ON COLUMN leases.holder IS 'who has it, as given to lease()';
COMMENT ON COLUMN leases.role IS 'who has leased it: the role of the session';
COMMENT ON COLUMN leases.granted_at IS 'start of the lease';
COMMENT ON COLUMN leases.expires_at IS 'end of the lease, unless it is renewed or released before';
COMMENT ON COLUMN leases.revoked_at IS 'when it was revoked: it is not renewed; null if it was not';
COMMENT ON COLUMN leases.last_id IS 'last ID reported by the holder, or the one after which the lease began';

CREATE OR REPLACE VIEW scru64_realm.roles WITH (security_barrier) AS
	SELECT l.role, count(*) AS leases, sum(1 << (24 - l.node_id_size)) AS node_ctr_values,
		   round(sum(1 << (24 - l.node_id_size)) * 100.0 / 16777216, 2) AS percent
	FROM leases AS l
	GROUP BY l.role
	ORDER BY l.role;

COMMENT ON VIEW roles IS 'who has how many active leases';
COMMENT ON COLUMN roles.role IS 'who has leased them: the role of the session';
COMMENT ON COLUMN roles.leases IS 'how many are active';
COMMENT ON COLUMN roles.node_ctr_values IS 'how many node_ctr values they have together';
COMMENT ON COLUMN roles.percent IS 'how much of the realm that is';

CREATE OR REPLACE VIEW scru64_realm.capacity WITH (security_barrier) AS
	WITH gap AS MATERIALIZED (
		SELECT gap FROM clock() AS clock, unnest(free(clock, clock + interval '24 hours')) AS gap
	)
	SELECT size AS node_id_size,
		   coalesce(sum(greatest(0, (upper(gap) >> (24 - size)) -
									((lower(gap) + (1 << (24 - size)) - 1) >> (24 - size)))), 0) AS available
	FROM generate_series(1, 23) AS size LEFT JOIN gap ON true
	GROUP BY size
	ORDER BY size;

COMMENT ON VIEW capacity IS 'how many nodes of each size could be leased now, for a day';
COMMENT ON COLUMN capacity.node_id_size IS 'bits of the node_id';
COMMENT ON COLUMN capacity.available IS 'nodes of this size that are free, if no others were leased';

-- What is known of the realm's clock
CREATE OR REPLACE VIEW readings AS
	SELECT l.change, l.clock_reading AS at FROM ledger AS l UNION ALL SELECT 0, s.made_at FROM settings AS s;
