--
-- A realm in a database of its own, which belongs to the role :realm_owner, by whose session
-- authorization this goes on. Its clock is in a table, to be moved; and of what was generated on
-- this server, by other tests too, it sees one node.
--
\set ECHO none
\set original :DBNAME
\set SHOW_CONTEXT never
SET client_min_messages = warning;
DROP DATABASE IF EXISTS scru64_regression_realm;
RESET client_min_messages;
CREATE DATABASE scru64_regression_realm TEMPLATE template0 OWNER :"realm_owner";
\c scru64_regression_realm
SET lc_messages = 'C';
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
SET client_min_messages = warning;
CREATE EXTENSION scru64;
SET SESSION AUTHORIZATION :"realm_owner";
CREATE EXTENSION scru64_realm;
RESET client_min_messages;
CREATE TABLE test_clock (now timestamptz);
INSERT INTO test_clock VALUES (:'now');
CREATE OR REPLACE FUNCTION scru64_realm.clock() RETURNS timestamptz LANGUAGE sql VOLATILE
	RETURN (SELECT now FROM test_clock);
RESET SESSION AUTHORIZATION;
ALTER FUNCTION scru64_realm_internal.server_nodes() RENAME TO all_nodes;
SET SESSION AUTHORIZATION :"realm_owner";
CREATE FUNCTION scru64_realm_internal.server_nodes(OUT node text, OUT last_tick bigint) RETURNS SETOF record
	LANGUAGE sql AS $$ SELECT * FROM scru64_realm_internal.all_nodes() AS n WHERE n.node = current_setting('test.node', true) $$;
\ir ../../sql_tests/error_of.sql
