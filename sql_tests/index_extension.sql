--
-- The extension scru64_gist or scru64_gin, whichever :method says, in a database of its
-- own.  A role that is no superuser makes the extension, with PostgreSQL's library in a
-- schema that also has other objects of the names that the script uses.
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
CREATE SCHEMA "a 'library'";
CREATE EXTENSION scru64;
CREATE EXTENSION :library SCHEMA "a 'library'";
-- These are in the way of signatures that are not full ...
DO $$
DECLARE
	name text;
BEGIN
	FOR name IN SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = to_regnamespace('"a ''library''"')
	LOOP
		EXECUTE format('CREATE FUNCTION "a ''library''".%I(text) RETURNS text LANGUAGE sql RETURN $1', name);
	END LOOP;
END
$$;
-- ... and these would be taken if pg_catalog did not come first.
CREATE FUNCTION "a 'library'".decoy(scru64, scru64) RETURNS boolean LANGUAGE sql RETURN true;
CREATE FUNCTION "a 'library'".scru64_cmp(scru64, scru64) RETURNS integer LANGUAGE sql RETURN 0;
CREATE OPERATOR "a 'library'".< (LEFTARG = scru64, RIGHTARG = scru64, FUNCTION = "a 'library'".decoy);
CREATE OPERATOR "a 'library'".= (LEFTARG = scru64, RIGHTARG = scru64, FUNCTION = "a 'library'".decoy,
	COMMUTATOR = OPERATOR("a 'library'".=));
SET search_path = "a 'library'", pg_catalog;
CREATE EXTENSION :extension;
SHOW search_path;
SET search_path = '';

SELECT pg_describe_object(classid, objid, objsubid) AS object,
	   obj_description(objid, classid::regclass::name) <> '' AS has_comment
FROM pg_depend
WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = :'extension') AND deptype = 'e'
ORDER BY pg_describe_object(classid, objid, objsubid) COLLATE "C";
SELECT opcnamespace::regnamespace, opcname, opcdefault, opckeytype::regtype, amvalidate(oid)
FROM pg_opclass
WHERE opcintype = 'scru64'::regtype AND opcmethod = (SELECT oid FROM pg_am WHERE amname = :'method');
SELECT amopstrategy, amopopr::regoperator
FROM pg_amop
JOIN pg_opfamily AS f ON f.oid = amopfamily
WHERE f.opfname = 'scru64_ops' AND f.opfmethod = (SELECT oid FROM pg_am WHERE amname = :'method')
ORDER BY amopstrategy;
SELECT amprocnum, amproc::regprocedure
FROM pg_amproc
JOIN pg_opfamily AS f ON f.oid = amprocfamily
WHERE f.opfname = 'scru64_ops' AND f.opfmethod = (SELECT oid FROM pg_am WHERE amname = :'method') AND amprocnum < 11
ORDER BY amprocnum;
SELECT r.rolsuper, provolatile, proisstrict, proparallel, probin, prosrc
FROM pg_proc AS p JOIN pg_roles AS r ON r.oid = p.proowner
WHERE p.proname LIKE :'extension' || '\_%'
ORDER BY prosrc COLLATE "C";
