-- A holder of leases, which is a client of pgbench: one call, in a connection of its own.  It renews its
-- lease, 30 times on average, and then ends: by a release, or without a word.  Its next call is lease().
--
--     pgbench -n -C -M extended -c 300 -j 4 -R 15 -T 300 -D has_lease=0 -f heavy/bench/holders.sql
--
-- pgbench serves its clients in turn: at 15 calls a second, each of 300 calls every 20 seconds.
\set end random(1, 60)
\if :has_lease = 0
SELECT lease_id, left(node_spec, 12) AS last_id FROM scru64_realm.lease(12, 'holder', '1 minute') \gset
\set has_lease 1
\elif :end > 2
SELECT scru64_realm.renew(:lease_id, '1 minute', :last_id);
\else
\set has_lease 0
\if :end = 1
SELECT scru64_realm.release(:lease_id, :last_id);
\endif
\endif
