--
-- The extension scru64_gist or scru64_gin, whichever :method says, in a database of its
-- own.  A role that is no superuser makes the extension, with each extension in a schema of
-- its own.  Other objects of the same names in these schemas stay as they are.
--
\set original :DBNAME
\set SHOW_CONTEXT never
\set extension scru64_ :method
\set library btree_ :method
SET client_min_messages = warning;
DROP DATABASE IF EXISTS scru64_regression_index;
DROP ROLE IF EXISTS regress_index_owner;
RESET client_min_messages;
CREATE ROLE regress_index_owner;
CREATE DATABASE scru64_regression_index TEMPLATE template0 OWNER regress_index_owner;
\c scru64_regression_index
SET lc_messages = 'C';
SET max_parallel_workers_per_gather = 0;
SET SESSION AUTHORIZATION regress_index_owner;
CREATE SCHEMA here;
CREATE SCHEMA ids;
CREATE SCHEMA "a 'library'";
CREATE EXTENSION scru64 SCHEMA ids;
CREATE EXTENSION :library SCHEMA "a 'library'";
CREATE FUNCTION here.decoy(ids.scru64, ids.scru64) RETURNS boolean LANGUAGE sql RETURN true;
CREATE FUNCTION here.scru64_cmp(ids.scru64, ids.scru64) RETURNS integer LANGUAGE sql RETURN 0;
CREATE OPERATOR here.= (LEFTARG = ids.scru64, RIGHTARG = ids.scru64, FUNCTION = here.decoy, COMMUTATOR = OPERATOR(here.=));
CREATE OPERATOR "a 'library'".< (LEFTARG = ids.scru64, RIGHTARG = ids.scru64, FUNCTION = here.decoy);
CREATE DOMAIN here.scru64 AS text;
CREATE DOMAIN "a 'library'".scru64 AS text;
CREATE DOMAIN here.gbtreekey16 AS text;
CREATE DOMAIN ids.gbtreekey16 AS text;
SET search_path = here, ids, "a 'library'";
CREATE EXTENSION :extension SCHEMA here;
SHOW search_path;
SET search_path = '';

SELECT pg_describe_object(classid, objid, objsubid) AS object,
	   obj_description(objid, classid::regclass::name) <> '' AS has_comment
FROM pg_depend
WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = :'extension') AND deptype = 'e'
ORDER BY pg_describe_object(classid, objid, objsubid) COLLATE "C";
SELECT opcnamespace::regnamespace, opcname, opcdefault, opckeytype::regtype, amvalidate(oid)
FROM pg_opclass
WHERE opcintype = 'ids.scru64'::regtype AND opcmethod = (SELECT oid FROM pg_am WHERE amname = :'method');
SELECT amopstrategy, amopopr::regoperator
FROM pg_amop
JOIN pg_opfamily AS f ON f.oid = amopfamily
WHERE f.opfnamespace = 'here'::regnamespace
ORDER BY amopstrategy;
SELECT amprocnum, amproc::regprocedure
FROM pg_amproc
JOIN pg_opfamily AS f ON f.oid = amprocfamily
WHERE f.opfnamespace = 'here'::regnamespace AND amprocnum < 11
ORDER BY amprocnum;
SELECT r.rolsuper, provolatile, proisstrict, proparallel, probin, prosrc
FROM pg_proc AS p JOIN pg_roles AS r ON r.oid = p.proowner
WHERE p.pronamespace = 'here'::regnamespace AND p.proname LIKE :'extension' || '\_%'
ORDER BY prosrc COLLATE "C";
