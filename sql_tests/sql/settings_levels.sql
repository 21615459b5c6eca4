--
-- Settings: who may choose the node, and that a value of the session's own of what is the
-- server's is refused, also one from before the session loaded the library.  What only the
-- start of a server shows: t/generate/settings.
--
SELECT count(*) > 0 AS is_preloaded FROM pg_settings WHERE name = 'scru64.node_spec' \gset
\if :is_preloaded
\echo skipped: this server preloads the library
\quit
\endif

SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_scru64_user, regress_scru64_trusted;
RESET client_min_messages;
CREATE ROLE regress_scru64_user;
CREATE ROLE regress_scru64_trusted;
GRANT SET ON PARAMETER scru64.node_spec TO regress_scru64_trusted;
SELECT current_database() AS database, current_user AS superuser \gset

-- The server's values: a new session has them.
LOAD 'scru64';
ALTER SYSTEM SET scru64.node_spec = '0xc0/8';
ALTER SYSTEM SET scru64.lease_ttl = '2h';
SELECT pg_reload_conf();
\set ask 'SELECT test.node(), current_setting(\'scru64.lease_ttl\') AS lease_ttl;'

--
-- Who may choose the node: superusers, and who has been granted it.  Before the library is
-- loaded, a value is refused when it is.
--
\c -
SET SESSION AUTHORIZATION regress_scru64_user;
SET scru64.node_spec = '0xc1/8';
:ask
\c -
SET SESSION AUTHORIZATION regress_scru64_trusted;
SET scru64.node_spec = '0xc1/8';
:ask
RESET SESSION AUTHORIZATION;

-- After
CREATE FUNCTION pg_temp.outcome(role text, statement text, OUT code text, OUT node integer) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('role', role, false);
	code = (test.error_of(statement)).code;
	node = test.node();
	RESET ROLE;
END
$$;
SELECT role, statement, o.*
FROM (VALUES
	('regress_scru64_trusted', 'RESET scru64.node_spec'),
	('regress_scru64_user', 'SET scru64.node_spec = ''0xc1/8'''),
	('regress_scru64_user', 'ALTER ROLE CURRENT_USER SET scru64.node_spec = ''0xc1/8'''),
	('regress_scru64_trusted', 'SET scru64.node_spec = ''0xc2/8'''),
	('regress_scru64_trusted', 'SET scru64.lease_ttl = ''3h'''),
	('regress_scru64_trusted', 'ALTER ROLE CURRENT_USER SET scru64.node_spec = ''0xc1/8'''),
	('regress_scru64_user', 'RESET scru64.node_spec'),
	('none', 'SET scru64.node_spec = ''0xc3/8'''),
	('none', 'SET scru64.lease_ttl = ''3h'''),
	('none', 'ALTER ROLE CURRENT_USER SET scru64.lease_ttl = ''3h''')
) AS v (role, statement), pg_temp.outcome(role, statement) AS o;

--
-- A value of the server's settings that a session had from its start, however it came to it:
-- the session generates nothing, and can do all else.
--
\connect -reuse-previous=on "options='-c scru64.lease_holder=me'"
SELECT scru64_generate();
SELECT statement, code, message
FROM unnest(ARRAY['SELECT scru64_generate()', 'SELECT scru64_check()', 'SELECT scru64_watermark()', 'SELECT scru64_min(now())',
				  'SELECT scru64_generators()']) AS statement, test.error_of(statement);

\set VERBOSITY terse
-- Values of a database, or of a role in it.  A session that has loaded the library cannot reset them.
\connect -reuse-previous=on "options=''"
ALTER DATABASE :"database" SET scru64.lease_ttl = '3h';
\c -
SELECT scru64_generate();
\c -
ALTER DATABASE :"database" RESET scru64.lease_ttl;
ALTER ROLE :"superuser" IN DATABASE :"database" SET scru64.lease_ttl = '3h';
\c -
SELECT scru64_generate();
\c -
ALTER ROLE :"superuser" IN DATABASE :"database" RESET scru64.lease_ttl;
\set VERBOSITY default

--
-- A value that a session sets before it loads the library has no effect.
--
\c -
SET scru64.lease_ttl = '3h';
:ask
\c -
BEGIN;
SET LOCAL scru64.lease_ttl = '3h';
:ask
ROLLBACK;
:ask
\c -
SET scru64.lease_ttl = '3h';
RESET ALL;
:ask
\c -
CREATE FUNCTION test.cheat() RETURNS text LANGUAGE plpgsql SET scru64.lease_ttl = '3h' AS $$
BEGIN
	RETURN test.node() || ' ' || current_setting('scru64.lease_ttl');
END
$$;
SELECT test.cheat();
SELECT test.cheat();
:ask
DROP FUNCTION test.cheat();

--
-- A session's own node goes before the server's.  Without one that is valid there is none.
--
\connect -reuse-previous=on "options='-c scru64.node_spec=0xc4/8'"
:ask
SET scru64.node_spec = '';
SELECT scru64_generate();
\connect -reuse-previous=on "options='-c scru64.node_spec=42/0'"
SELECT scru64_generate();

\connect -reuse-previous=on "options=''"
ALTER SYSTEM RESET scru64.node_spec;
ALTER SYSTEM RESET scru64.lease_ttl;
SELECT pg_reload_conf();
REVOKE SET ON PARAMETER scru64.node_spec FROM regress_scru64_trusted;
DROP ROLE regress_scru64_user, regress_scru64_trusted;
