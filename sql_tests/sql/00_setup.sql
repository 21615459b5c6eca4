--
-- The extension and some functions, created for the files that follow: this one runs
-- before any of them.  Who drops the extension does so in a database of its own.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS scru64;
RESET client_min_messages;
SELECT current_database() AS database \gset
ALTER DATABASE :"database" SET max_parallel_workers_per_gather = 0;
ALTER DATABASE :"database" SET jit = off;

-- Not from pg_available_extensions: that does not see an extension that is tested
-- before it is installed, as Debian's packages are.
SELECT extrelocatable AS relocatable, obj_description(oid, 'pg_extension') <> '' AS has_comment
FROM pg_extension
WHERE extname = 'scru64';

\i sql_tests/error_of.sql

-- The node_id of the next ID, for a node_id_size of 8.  A string, so that the extension
-- can be dropped.
CREATE FUNCTION test.node() RETURNS integer LANGUAGE sql AS
	'SELECT scru64_node_ctr(scru64_generate()) >> 16';
