-- A turn of a holder of leases, run by pgbench: it leases a node, and renews the lease at each turn,
-- 30 turns on average. Half of the holders then release the lease, half end without a word.
-- Each comes back at its next turn.
\set end random(1, 60)
\if :holds
	\if :end = 1
		SELECT 0 AS holds FROM scru64_realm.release(':lease_id', ':last_id') \gset
	\elif :end = 2
		\set holds 0
	\else
		SELECT FROM scru64_realm.renew(':lease_id', '1 min', ':last_id');
	\endif
\else
	SELECT 1 AS holds, lease_id, left(node_spec, 12) AS last_id
	FROM scru64_realm.lease(12, 'holder', '1 min') \gset
\endif
