--
-- Who may do what in a realm, and what those who may not try: in a database whose
-- owner is no superuser.
--
\set original :DBNAME
\set SHOW_CONTEXT never
SET client_min_messages = warning;
DROP DATABASE IF EXISTS scru64_regression_realm;
DROP ROLE IF EXISTS regress_realm_owner, regress_realm_app, regress_realm_other, regress_realm_monitor, regress_realm_once, regress_realm_heir;
RESET client_min_messages;
CREATE DATABASE scru64_regression_realm TEMPLATE template0;
CREATE ROLE regress_realm_owner;
CREATE ROLE regress_realm_app;
CREATE ROLE regress_realm_other;
CREATE ROLE regress_realm_monitor IN ROLE pg_monitor;
ALTER DATABASE scru64_regression_realm OWNER TO regress_realm_owner;
\c scru64_regression_realm
SET lc_messages = 'C';
SET client_min_messages = warning;

-- A schema of that name may have anything in it.
GRANT CREATE ON DATABASE scru64_regression_realm TO regress_realm_other;
CREATE EXTENSION scru64;
CREATE SCHEMA scru64_realm AUTHORIZATION regress_realm_other;
CREATE EXTENSION scru64_realm;
\echo :SQLSTATE
DROP SCHEMA scru64_realm;
CREATE SCHEMA scru64_realm_internal AUTHORIZATION regress_realm_other;
CREATE EXTENSION scru64_realm;
DROP SCHEMA scru64_realm_internal;
SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'scru64_realm%';

-- Default privileges of the role that installs it grant nothing.
SET SESSION AUTHORIZATION regress_realm_owner;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO regress_realm_other, PUBLIC;
ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO regress_realm_other;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO regress_realm_other WITH GRANT OPTION;
RESET SESSION AUTHORIZATION;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO regress_realm_other, PUBLIC;
ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO regress_realm_other;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO regress_realm_other WITH GRANT OPTION;
CREATE EXTENSION scru64_realm;
SELECT objid::regclass AS granted FROM pg_depend AS d JOIN pg_class AS c ON c.oid = objid, aclexplode(relacl) AS a
WHERE classid = 'pg_class'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'scru64_realm')
	AND grantee NOT IN (relowner, 'pg_monitor'::regrole);
DROP EXTENSION scru64_realm;
SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'scru64_realm%';

-- Who has had one is left without a privilege, and can be dropped.
CREATE ROLE regress_realm_once;
GRANT CREATE ON DATABASE scru64_regression_realm TO regress_realm_once;
SET SESSION AUTHORIZATION regress_realm_once;
CREATE EXTENSION scru64_realm;
DROP EXTENSION scru64_realm;
RESET SESSION AUTHORIZATION;
REVOKE CREATE ON DATABASE scru64_regression_realm FROM regress_realm_once;
DROP ROLE regress_realm_once;

SET SESSION AUTHORIZATION regress_realm_owner;
SET quote_all_identifiers = on;
CREATE EXTENSION scru64_realm;
RESET quote_all_identifiers;
-- All of it belongs to the owner, but for two functions, and nobody else may do anything.
CREATE VIEW realm_function AS
	SELECT p.oid::regprocedure AS function, CASE WHEN rolsuper THEN 'a superuser' ELSE rolname END AS owner, p.*, r.rolname
	FROM pg_proc AS p JOIN pg_roles AS r ON r.oid = proowner WHERE pronamespace::regnamespace::text LIKE 'scru64_realm%';
SELECT c.oid::regclass AS object, relowner::regrole AS owner, a.grantee::regrole, array_agg(privilege_type) AS privileges
FROM pg_class AS c LEFT JOIN LATERAL aclexplode(relacl) AS a ON a.grantee <> relowner
WHERE relnamespace::regnamespace::text LIKE 'scru64_realm%' AND relkind IN ('r', 'v', 'S')
GROUP BY 1, 2, 3 ORDER BY c.oid::regclass::text COLLATE "C";
-- No condition of a caller's sees a row that a view leaves out.
SELECT relname FROM pg_class
WHERE relnamespace = 'scru64_realm'::regnamespace AND relkind = 'v' AND reloptions IS DISTINCT FROM '{security_barrier=true}';
SELECT proname, owner, prosecdef AS definer, provolatile AS volatility, proparallel AS parallel, proisstrict AS strict, a.grantee::regrole
FROM realm_function LEFT JOIN LATERAL aclexplode(proacl) AS a ON a.grantee <> proowner
WHERE pronamespace = 'scru64_realm'::regnamespace
ORDER BY proname COLLATE "C";
SELECT function, owner, prosecdef AS definer, a.grantee::regrole
FROM realm_function LEFT JOIN LATERAL aclexplode(proacl) AS a ON a.grantee <> proowner
WHERE pronamespace = 'scru64_realm_internal'::regnamespace AND (proowner <> 'regress_realm_owner'::regrole OR a.grantee IS NOT NULL OR prosecdef);
SELECT typname, typowner::regrole AS owner, a.grantee::regrole
FROM pg_type AS t LEFT JOIN LATERAL aclexplode(typacl) AS a ON a.grantee <> typowner
WHERE typnamespace::regnamespace::text LIKE 'scru64_realm%' AND typcategory = 'C' AND (typowner::regrole <> 'regress_realm_owner'::regrole OR a.grantee IS NOT NULL);
SELECT nspname, nspowner::regrole AS owner, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS grantee, privilege_type
FROM pg_namespace, aclexplode(nspacl) WHERE nspname LIKE 'scru64_realm%' AND grantee <> nspowner;
-- Functions look names up in the owner's schemas, but for those that have more rights than
-- the owner. Nobody else can create anything there.
SELECT function, proconfig FROM realm_function
WHERE (prosecdef OR prosqlbody IS NULL AND probin IS NULL)
	AND 'search_path=pg_catalog, scru64_realm, scru64_realm_internal, pg_temp' <> ALL (coalesce(proconfig, '{}')) ORDER BY proname COLLATE "C";
SELECT rolname, nspname FROM pg_roles AS r, pg_namespace AS n
WHERE nspname LIKE 'scru64_realm%' AND NOT rolsuper AND has_schema_privilege(r.oid, n.oid, 'CREATE') ORDER BY nspname;
SELECT array_agg(proname ORDER BY proname COLLATE "C") AS functions, settings
FROM realm_function, array_to_string(ARRAY(SELECT s FROM unnest(proconfig) AS s WHERE s NOT LIKE 'search_path=%'), ' ') AS settings
WHERE settings <> ''
GROUP BY settings;
-- Every object has a comment that is there for people, and so has every column of a table or view.
SELECT pg_describe_object(classid, objid, objsubid) AS object
FROM pg_depend, pg_identify_object(classid, objid, objsubid) AS i
WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'scru64_realm')
	AND deptype = 'e' AND classid <> 'pg_type'::regclass AND i.schema IS DISTINCT FROM 'scru64_realm_internal'
	AND coalesce(obj_description(objid, classid::regclass::text::name), '') = '';
SELECT attrelid::regclass, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE relnamespace = 'scru64_realm'::regnamespace AND relkind IN ('r', 'v') AND attnum > 0 AND NOT attisdropped
	AND coalesce(col_description(attrelid, attnum), '') = '';
-- Of the nodes of this server, the owner sees what lease() needs: no last ID.
SELECT function, pg_get_function_arguments(oid) AS arguments FROM realm_function WHERE prosrc ~ 'scru64_generators';
-- Nothing of scru64 is kept but what its next version has, too.
SELECT function, d.refobjid::regprocedure AS depends_on
FROM realm_function AS f JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = f.oid AND d.refclassid = 'pg_proc'::regclass
WHERE d.refobjid::regprocedure::text ~ '^scru64_(generators|transactions|lease)\(';
SELECT count(*) AS of_its_library FROM realm_function WHERE probin IS NOT NULL AND prosrc !~ '^scru64_begin_change';
DROP VIEW realm_function;

-- Of what was generated on this server, by other tests too, the realm sees one node.
RESET SESSION AUTHORIZATION;
ALTER FUNCTION scru64_realm_internal.server_nodes() RENAME TO all_nodes;
SET SESSION AUTHORIZATION regress_realm_owner;
CREATE FUNCTION scru64_realm_internal.server_nodes(OUT node text, OUT last_tick bigint) RETURNS SETOF record
	LANGUAGE sql AS $$ SELECT * FROM scru64_realm_internal.all_nodes() AS n WHERE n.node = current_setting('test.node', true) $$;

-- Who is not granted anything
SELECT lease_id, node_spec FROM scru64_realm.lease(8, 'owner', '1 hour') \gset
SET SESSION AUTHORIZATION regress_realm_app;
SELECT scru64_realm.lease(8, 'app');
SELECT scru64_realm.renew(:'lease_id');
SELECT scru64_realm.release(:'lease_id');
SELECT scru64_realm.split(:'lease_id', 9);
SELECT scru64_realm.realm_id();
SELECT * FROM scru64_realm.leases;
SELECT * FROM scru64_realm.capacity;

-- EXECUTE alone: leases, and no look at those of others, nor a step of a lease alone
SET SESSION AUTHORIZATION regress_realm_owner;
GRANT EXECUTE ON FUNCTION scru64_realm.lease, scru64_realm.renew, scru64_realm.release, scru64_realm.split,
	scru64_realm.realm_id TO regress_realm_app;
SET SESSION AUTHORIZATION regress_realm_app;
SELECT proname FROM pg_proc JOIN pg_depend ON classid = 'pg_proc'::regclass AND objid = pg_proc.oid AND deptype = 'e'
WHERE pronamespace::regnamespace::text LIKE 'scru64_realm%' AND has_function_privilege(pg_proc.oid, 'EXECUTE')
ORDER BY proname COLLATE "C";
SELECT lease_id AS my_lease_id, node_id || '/' || node_id_size AS node
FROM scru64_realm.lease(8, 'app', '1 hour'), scru64_parse_node_spec(node_spec) \gset
\echo :node
SELECT count(*) FROM scru64_realm.renew(:'my_lease_id', '2 hours');
SELECT * FROM scru64_realm.ledger;
SELECT lease_id FROM scru64_realm.leases;
SELECT * FROM scru64_realm.settings;
SELECT scru64_realm.realm_id() IS NOT NULL AS has_name;
UPDATE scru64_realm.settings SET guard = '1 s';
UPDATE scru64_realm.ledger SET expires_at = 'infinity';
DELETE FROM scru64_realm.ledger;
SELECT scru64_realm.set_guard('1 s', true);
SELECT scru64_realm.set_max_ttl('1 hour');
SELECT scru64_realm.set_first_ttl('1 hour');
SELECT scru64_realm.nothing_was_lost();
SELECT scru64_realm.something_was_lost();
SELECT scru64_realm.revoke('owner');
SELECT scru64_realm.revoke(:'my_lease_id'::uuid);
SELECT scru64_realm.free(now(), now());
SELECT scru64_realm.prune('0');
SELECT scru64_realm.clock();
SELECT scru64_realm_internal.server_node_specs();
SELECT scru64_realm_internal.lock_lease(NULL, NULL);
SELECT setval('scru64_realm_internal.lost_until', 0);
BEGIN;
LOCK TABLE scru64_realm_internal.allocator IN ACCESS SHARE MODE;
ROLLBACK;
CREATE OR REPLACE FUNCTION scru64_realm.clock() RETURNS timestamptz LANGUAGE sql RETURN now();
CREATE FUNCTION scru64_realm.lease(integer, text) RETURNS text LANGUAGE sql RETURN 'mine';
CREATE FUNCTION scru64_realm_internal.tick(text) RETURNS text LANGUAGE sql RETURN 'mine';
CREATE TABLE scru64_realm.allocator ();
ALTER TABLE scru64_realm.ledger DISABLE TRIGGER ALL;
-- a lease without end
SELECT scru64_realm.lease(8, 'app', '1000 years');
\echo :SQLSTATE
SELECT scru64_realm.renew(:'my_lease_id', '1000 years');
-- a lease_id that is guessed
SELECT scru64_realm.renew('12345678-1234-4234-8234-123456789abc');
\echo :SQLSTATE
SELECT scru64_realm.release('12345678-1234-4234-8234-123456789abc');
SELECT scru64_realm.split('12345678-1234-4234-8234-123456789abc', 9);

-- Names of the caller's own, wherever they are looked for
SET SESSION AUTHORIZATION regress_realm_owner;
CREATE SCHEMA trap;
GRANT ALL ON SCHEMA trap TO regress_realm_app;
SET SESSION AUTHORIZATION regress_realm_app;
CREATE FUNCTION trap.spring() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	RAISE WARNING 'trap: runs as %', current_user;
END
$$;
CREATE FUNCTION trap.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
	PERFORM trap.spring();
	RETURN 'epoch';
END
$$;
CREATE FUNCTION trap.greatest(timestamptz, timestamptz) RETURNS timestamptz LANGUAGE sql AS 'SELECT trap.clock_timestamp()';
CREATE FUNCTION trap.upper(int4range) RETURNS integer LANGUAGE sql AS 'SELECT 0 FROM trap.spring()';
CREATE FUNCTION trap.lower(int4range) RETURNS integer LANGUAGE sql AS 'SELECT 0 FROM trap.spring()';
CREATE FUNCTION trap.plus(timestamptz, interval) RETURNS timestamptz LANGUAGE sql AS 'SELECT trap.clock_timestamp()';
CREATE FUNCTION trap.overlaps(int4range, int4range) RETURNS boolean LANGUAGE sql AS 'SELECT false FROM trap.spring()';
CREATE FUNCTION trap.equals(uuid, uuid) RETURNS boolean LANGUAGE sql AS 'SELECT true FROM trap.spring()';
CREATE OPERATOR trap.+ (LEFTARG = timestamptz, RIGHTARG = interval, FUNCTION = trap.plus);
CREATE OPERATOR trap.&& (LEFTARG = int4range, RIGHTARG = int4range, FUNCTION = trap.overlaps);
CREATE OPERATOR trap.= (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = trap.equals);
CREATE TYPE trap.uuid AS (a integer);
CREATE DOMAIN trap.int4range AS text;
CREATE FUNCTION trap.clock() RETURNS timestamptz LANGUAGE sql AS 'SELECT trap.clock_timestamp()';
CREATE FUNCTION trap.note_failover() RETURNS void LANGUAGE sql AS 'SELECT trap.spring()';
CREATE TYPE trap.failover AS (a integer);
CREATE TABLE trap.allocator ();
-- in a superuser's session, not as the superuser
CREATE MATERIALIZED VIEW trap.leases AS SELECT lease_id FROM scru64_realm.lease(8, 'trap', '1000 years') WITH NO DATA;
RESET SESSION AUTHORIZATION;
REFRESH MATERIALIZED VIEW trap.leases;
\echo :SQLSTATE
DROP MATERIALIZED VIEW trap.leases;
\c -
SET lc_messages = 'C';
SET SESSION AUTHORIZATION regress_realm_app;
SET search_path = trap, pg_temp, pg_catalog;
-- from 19 on there is but one kind of string literals
SELECT count(set_config(name, 'off', false)) AS ignored FROM pg_settings
WHERE name = 'standard_conforming_strings'
	AND current_setting('server_version_num')::integer < 190000 \gset
SET transform_null_equals = on;
SET quote_all_identifiers = on;
SET TimeZone = 'America/New_York';
SET DateStyle = 'SQL, DMY';
SET IntervalStyle = 'sql_standard';
SET plpgsql.extra_errors = 'all';
CREATE TEMP TABLE ledger (lease_id pg_catalog.uuid);
CREATE TEMP TABLE settings (guard interval);
SELECT lease_id AS trapped, node_id || '/' || node_id_size AS node
FROM scru64_realm.lease(8, 'app', '1 hour', within => '3/4', request => pg_catalog.gen_random_uuid()),
	scru64_parse_node_spec(node_spec) \gset
\echo :node
SELECT lease_id OPERATOR(pg_catalog.=) :'trapped' AS same FROM scru64_realm.lease(8, 'app', '1 hour', within => '3/4', request => :'trapped');
SELECT count(*) FROM scru64_realm.renew(:'trapped', '1 day', scru64_from_parts(pg_catalog.now(), 48 << 16));
SELECT node_spec LIKE '%/9' AS split FROM scru64_realm.split(:'trapped', 9);
SELECT scru64_realm.release(:'my_lease_id');
\set VERBOSITY terse
SELECT scru64_realm.lease(8, 'app', node_id => 48);
\echo :SQLSTATE
\set VERBOSITY default
RESET ALL;
RESET SESSION AUTHORIZATION;

-- A node in use without a lease: only the owner leases it, who need not be a member
-- of pg_monitor.
\c -
SET lc_messages = 'C';
SET client_min_messages = warning;
SET scru64.node_spec = '4100000/22';
SELECT count(scru64_generate());
RESET scru64.node_spec;
SET test.node = '4100000/22';
SET SESSION AUTHORIZATION regress_realm_app;
SELECT scru64_realm.lease(22, 'app', node_id => 4100000);
\echo :SQLSTATE
SET SESSION AUTHORIZATION regress_realm_owner;
SELECT count(*) FROM scru64_realm.lease(22, 'this server', '1 hour', node_id => 4100000);
RESET SESSION AUTHORIZATION;

-- Who monitors sees who has what, and no more.
SET SESSION AUTHORIZATION regress_realm_monitor;
SELECT scru64_realm.realm_id();
SELECT node, holder FROM scru64_realm.leases;
SELECT * FROM scru64_realm.capacity WHERE node_id_size = 4;
-- in a parallel plan, too
SELECT count(set_config(name, 'on', false)) AS set FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
SELECT * FROM scru64_realm.capacity WHERE node_id_size = 4;
SELECT count(set_config(name, 'off', false)) AS set FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
SELECT lease_id FROM scru64_realm.ledger;
SELECT scru64_realm.lease(8, 'monitor');
RESET SESSION AUTHORIZATION;

-- Who may read a view and call what it calls needs no more; without the latter, that is not enough.
SET SESSION AUTHORIZATION regress_realm_owner;
GRANT SELECT ON scru64_realm.leases, scru64_realm.roles, scru64_realm.capacity TO regress_realm_app;
SET SESSION AUTHORIZATION regress_realm_app;
SELECT count(*) FROM scru64_realm.leases;
SELECT count(*) FROM scru64_realm.capacity;
SET SESSION AUTHORIZATION regress_realm_owner;
GRANT EXECUTE ON FUNCTION scru64_realm.clock, scru64_realm.free TO regress_realm_app;
SET SESSION AUTHORIZATION regress_realm_app;
SELECT count(*) > 0 AS leases FROM scru64_realm.leases;
SELECT count(*) > 0 AS roles FROM scru64_realm.roles;
SELECT count(*) > 0 AS sizes FROM scru64_realm.capacity;
SELECT lease_id FROM scru64_realm.ledger;
RESET SESSION AUTHORIZATION;

-- All nodes count again.
DROP FUNCTION scru64_realm_internal.server_nodes();
ALTER FUNCTION scru64_realm_internal.all_nodes() RENAME TO server_nodes;
-- Another role becomes the owner, and the first one goes.
CREATE ROLE regress_realm_heir;
REASSIGN OWNED BY regress_realm_owner TO regress_realm_heir;
DROP OWNED BY regress_realm_owner;
DROP ROLE regress_realm_owner;
SET SESSION AUTHORIZATION regress_realm_heir;
SELECT count(*) FROM scru64_realm.lease(8, 'heir', '1 hour');
SET SESSION AUTHORIZATION regress_realm_app;
SELECT count(*) FROM scru64_realm.lease(8, 'app', '1 hour');
SELECT scru64_realm_internal.server_nodes();
RESET SESSION AUTHORIZATION;

-- It takes scru64, and goes with it; nothing is left.
DROP EXTENSION scru64;
ALTER EXTENSION scru64_realm SET SCHEMA public;
DROP EXTENSION scru64 CASCADE;
SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'scru64_realm%';

\c :original
DROP DATABASE scru64_regression_realm;
DROP ROLE regress_realm_heir, regress_realm_app, regress_realm_other, regress_realm_monitor;
