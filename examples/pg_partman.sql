-- examples/pg_partman.sql
--		Lets pg_partman 5, in the schema partman, partition by a column of type scru64
--		(doc/distributed.md). Run it again after ALTER EXTENSION pg_partman UPDATE, and
--		after a restore from a dump.

CREATE OR REPLACE FUNCTION scru64_bound(timestamptz) RETURNS text
LANGUAGE sql IMMUTABLE RETURN scru64_min($1)::text;

CREATE OR REPLACE FUNCTION scru64_bound_time(text) RETURNS timestamptz
LANGUAGE sql IMMUTABLE RETURN scru64_timestamp($1::scru64);

-- pg_partman looks at the name of the column's type: accept scru64 as it does text.
DO $$
BEGIN
    EXECUTE replace(pg_get_functiondef('partman.check_control_type'::regproc),
                    '(''text'', ''varchar'')', '(''text'', ''varchar'', ''scru64'')');
END
$$;
