--
-- A schema for what tests need, and in it what a statement raises.
--
\set ECHO none
CREATE SCHEMA test;
GRANT USAGE ON SCHEMA test TO PUBLIC;
CREATE FUNCTION test.error_of(
	statement text,
	OUT code text, OUT message text, OUT detail text, OUT hint text
) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS
		code = RETURNED_SQLSTATE,
		message = MESSAGE_TEXT,
		detail = PG_EXCEPTION_DETAIL,
		hint = PG_EXCEPTION_HINT;
END
$$;
\set ECHO all
