--
-- The extension, created for the files that follow.
--
-- Every other file creates it too if need be, so that each runs by itself.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS scru64;
RESET client_min_messages;

-- Not from pg_available_extensions: that does not see an extension that is tested
-- before it is installed, as Debian's packages are.
SELECT extrelocatable AS relocatable, obj_description(oid, 'pg_extension') <> '' AS has_comment
FROM pg_extension
WHERE extname = 'scru64';
