--
-- Who may generate, who may look, who may set the ceiling.
--
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_scru64_user, regress_scru64_monitor;
RESET client_min_messages;
LOAD 'scru64';
CREATE ROLE regress_scru64_user;
CREATE ROLE regress_scru64_monitor;

--
-- All roles may use the node that is set.  Who may set a node: settings_levels.
--
SET scru64.node_spec = '0x62/8';
SET ROLE regress_scru64_user;
SELECT test.node();
SELECT count(*) FROM scru64_generate(3);
RESET ROLE;

--
-- Who may look
--
SET ROLE regress_scru64_monitor;
SELECT statement, code, message
FROM unnest(ARRAY['SELECT scru64_generators()', 'SELECT scru64_transactions()', 'SELECT scru64_open_transactions()',
				  'SELECT scru64_lease()', 'SELECT scru64_ceiling()', 'SELECT scru64_check()'])
	 AS statement, test.error_of(statement);
RESET ROLE;
GRANT pg_monitor TO regress_scru64_monitor;
SET ROLE regress_scru64_monitor;
SELECT node_id FROM scru64_generators() WHERE node_id = 98 AND node_id_size = 8;
SELECT count(*) FROM scru64_transactions();
SELECT count(*) FROM scru64_open_transactions();
SELECT count(*) FROM scru64_lease();
SELECT scru64_ceiling() > 'epoch' AS is_shown;
SELECT scru64_check();
RESET ROLE;

--
-- scru64_transactions() shows when a transaction began to who may call it, also of another
-- role's session.  Nothing that the caller has takes the place of what the function reads.
--
BEGIN;
SELECT count(scru64_generate()) FROM generate_series(1, 3);
GRANT EXECUTE ON FUNCTION scru64_transactions() TO regress_scru64_user;
CREATE SCHEMA scru64_decoys AUTHORIZATION regress_scru64_user;
SET LOCAL ROLE regress_scru64_user;
SELECT xact_start FROM pg_stat_activity WHERE pid = pg_backend_pid();
CREATE TEMP VIEW pg_stat_activity AS SELECT -1 AS pid, timestamptz 'epoch' AS xact_start;
CREATE VIEW scru64_decoys.pg_prepared_xacts AS SELECT xid '1' AS transaction, 'gid' AS gid, timestamptz 'epoch' AS prepared;
CREATE FUNCTION scru64_decoys.scru64_open_transactions(OUT pid integer, OUT transaction xid, OUT first_id_after scru64)
	RETURNS SETOF record LANGUAGE sql AS $$SELECT -1, xid '1', scru64 '000000000000'$$;
SET LOCAL search_path = pg_temp, scru64_decoys, pg_catalog;
SELECT a.pid, p.gid, t.pid FROM pg_stat_activity AS a, pg_prepared_xacts AS p, scru64_open_transactions() AS t;
SELECT pid = pg_backend_pid() AS own, gid, since = now() AS since FROM scru64_transactions();
ROLLBACK;

--
-- scru64_set_ceiling() is for superusers, also where somebody is granted it.
--
GRANT EXECUTE ON FUNCTION scru64_set_ceiling(timestamptz) TO regress_scru64_user;
SET ROLE regress_scru64_user;
SELECT scru64_set_ceiling();
\echo :SQLSTATE
RESET ROLE;
SET ROLE regress_scru64_monitor;
SELECT scru64_set_ceiling();
RESET ROLE;
REVOKE EXECUTE ON FUNCTION scru64_set_ceiling(timestamptz) FROM regress_scru64_user;
-- A superuser can ask for nothing that has no tick.
SELECT scru64_set_ceiling('infinity');
SELECT scru64_set_ceiling('1969-12-31 23:59:59+00');
\echo :SQLSTATE
SELECT scru64_set_ceiling(NULL) IS NULL AS nothing;

DROP ROLE regress_scru64_user, regress_scru64_monitor;
