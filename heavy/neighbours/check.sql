-- check.sql
--		Used by the tests beside this file: check(what, holds) gives the line that
--		scripts/heavy counts. A file that ends with an error has failed.

\set ON_ERROR_STOP on
\set QUIET on

CREATE FUNCTION "check"(what text, holds boolean) RETURNS text
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN holds THEN 'ok: ' ELSE 'not ok: ' END || what;

CREATE EXTENSION scru64;
