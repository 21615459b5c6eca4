-- What the extension has before this script, and who may call its functions: for own.sql. Until
-- a script says otherwise, PostgreSQL's own names are the only ones.
SET LOCAL quote_all_identifiers = off;

-- While an update waits for a reader of the ledger, calls wait behind the update: for less than the
-- calls' own lock_timeout, 10 seconds.
SET LOCAL lock_timeout = '5s';

DO $do$
BEGIN
	PERFORM set_config('scru64_realm.before', coalesce(
			(SELECT jsonb_object_agg(format('%s/%s', d.classid, d.objid), jsonb_build_object('name', d.objid::regproc, 'acl', p.proacl::text))
			 FROM pg_depend AS d LEFT JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
			 WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
			   AND d.refobjid = (SELECT e.oid FROM pg_extension AS e WHERE e.extname = 'scru64_realm')), '{}')::text, true);
END
$do$;

