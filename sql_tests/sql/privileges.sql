--
-- Who may choose the node, who may generate, who may look.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS scru64;
DROP ROLE IF EXISTS regress_scru64_user, regress_scru64_monitor;
RESET client_min_messages;
SET max_parallel_workers_per_gather = 0;
LOAD 'scru64';
CREATE ROLE regress_scru64_user;
CREATE ROLE regress_scru64_monitor;

--
-- The node that is set is there for all to use, and not for all to change.
--
SET scru64.node_spec = '0x60/8';
SET ROLE regress_scru64_user;
SELECT test.node();
SELECT count(*) FROM scru64_generate(3);
SET scru64.node_spec = '0x61/8';
\echo :SQLSTATE
SELECT set_config('scru64.node_spec', '0x61/8', false);
\echo :SQLSTATE
RESET scru64.node_spec;
\echo :SQLSTATE
UPDATE pg_settings SET setting = '0x61/8' WHERE name = 'scru64.node_spec';
CREATE FUNCTION pg_temp.node_61() RETURNS integer LANGUAGE sql
SET scru64.node_spec = '0x61/8'
AS 'SELECT 1';
ALTER ROLE regress_scru64_user SET scru64.node_spec = '0x61/8';
SET scru64.rollback_allowance = 0;
ALTER SYSTEM SET scru64.node_spec = '0x61/8';
SHOW scru64.node_spec;
SELECT test.node();
RESET ROLE;

--
-- GRANT SET ON PARAMETER
--
GRANT SET ON PARAMETER scru64.node_spec TO regress_scru64_user;
SET ROLE regress_scru64_user;
SET scru64.node_spec = '0x62/8';
SELECT test.node();
SET scru64.node_spec = '0x6200/8';
\echo :SQLSTATE
SELECT test.node();
RESET ROLE;
REVOKE SET ON PARAMETER scru64.node_spec FROM regress_scru64_user;
SET ROLE regress_scru64_user;
SET scru64.node_spec = '0x61/8';
SELECT test.node();
RESET ROLE;

--
-- Who may look
--
SET ROLE regress_scru64_monitor;
SELECT node_id FROM scru64_generators WHERE node_id = 98 AND node_id_size = 8;
\echo :SQLSTATE
SELECT node_id FROM scru64_generators() WHERE node_id = 98 AND node_id_size = 8;
\echo :SQLSTATE
SELECT scru64_ceiling();
\echo :SQLSTATE
RESET ROLE;
GRANT pg_monitor TO regress_scru64_monitor;
SET ROLE regress_scru64_monitor;
SELECT node_id FROM scru64_generators WHERE node_id = 98 AND node_id_size = 8;
SELECT node_id FROM scru64_generators() WHERE node_id = 98 AND node_id_size = 8;
SELECT scru64_ceiling() > 'epoch' AS is_shown;
DELETE FROM scru64_generators;
\echo :SQLSTATE
RESET ROLE;

--
-- In a new session the library is not loaded before it is needed, unless the
-- server preloads it. Until then the setting is any setting to PostgreSQL. Who
-- must not choose the node gains nothing by that.
--
\c -
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = error;
SET ROLE regress_scru64_user;
DO $$
BEGIN
	PERFORM set_config('scru64.node_spec', '0x63/8', false);
EXCEPTION WHEN insufficient_privilege THEN
	NULL;
END
$$;
DO $$
BEGIN
	RAISE INFO 'has an ID of the node: %', scru64_node_ctr(scru64_generate()) >> 16 = 99;
EXCEPTION WHEN object_not_in_prerequisite_state THEN
	RAISE INFO 'has an ID of the node: %', false;
END
$$;
SELECT current_setting('scru64.node_spec') = '0x63/8' AS has_the_setting,
	   setting = reset_val AS has_the_default
FROM pg_settings WHERE name = 'scru64.node_spec';
RESET ROLE;
SELECT count(*) FROM scru64_generators WHERE node_id = 99 AND node_id_size = 8;

-- Who is allowed to, is allowed to before the library is loaded too.
\c -
SET max_parallel_workers_per_gather = 0;
SET scru64.node_spec = '0x64/8';
SELECT scru64_node_ctr(scru64_generate()) >> 16 AS node_id;
GRANT SET ON PARAMETER scru64.node_spec TO regress_scru64_user;
\c -
SET max_parallel_workers_per_gather = 0;
SET ROLE regress_scru64_user;
SET scru64.node_spec = '0x65/8';
SELECT scru64_node_ctr(scru64_generate()) >> 16 AS node_id;
RESET ROLE;
REVOKE SET ON PARAMETER scru64.node_spec FROM regress_scru64_user;

-- A node spec that is no node spec, before the library is loaded: it is not
-- taken.
\c -
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = error;
DO $$
BEGIN
	PERFORM set_config('scru64.node_spec', '256/8', false);
EXCEPTION WHEN invalid_parameter_value THEN
	NULL;
END
$$;
LOAD 'scru64';
SELECT setting = reset_val AS has_the_default
FROM pg_settings WHERE name = 'scru64.node_spec';

--
-- scru64_set_ceiling() is for superusers, also where somebody is granted it.
--
SELECT has_function_privilege('public', 'scru64_set_ceiling(timestamptz)', 'EXECUTE') AS public;
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

--
-- For all sessions of a database or of a role
--
SELECT current_database() AS database, current_user AS superuser \gset
ALTER DATABASE :"database" SET scru64.node_spec = '0x70/8';
\c -
SET max_parallel_workers_per_gather = 0;
SELECT scru64_node_ctr(scru64_generate()) >> 16 AS node_id;
SHOW scru64.node_spec;
SET scru64.node_spec = '0x72/8';
SELECT scru64_node_ctr(scru64_generate()) >> 16 AS node_id;
RESET scru64.node_spec;
SELECT scru64_node_ctr(scru64_generate()) >> 16 AS node_id;
ALTER ROLE :"superuser" IN DATABASE :"database" SET scru64.node_spec = '0x71/8';
\c -
SET max_parallel_workers_per_gather = 0;
SELECT scru64_node_ctr(scru64_generate()) >> 16 AS node_id;
ALTER ROLE :"superuser" IN DATABASE :"database" RESET scru64.node_spec;
ALTER DATABASE :"database" RESET scru64.node_spec;
ALTER DATABASE :"database" SET scru64.node_spec = '256/8';
\echo :SQLSTATE

DROP ROLE regress_scru64_user, regress_scru64_monitor;
