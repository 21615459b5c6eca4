--
-- The extension, created for the files that follow.
--
-- Every other file creates it too if need be, so that each runs by itself.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS scru64;
RESET client_min_messages;

-- The newest version is the one that is installed by default.
SELECT e.extversion = a.default_version AS is_default_version,
	   a.comment <> '' AS has_comment
FROM pg_extension AS e
JOIN pg_available_extensions AS a ON a.name = e.extname
WHERE e.extname = 'scru64';

SELECT relocatable, trusted, superuser
FROM pg_available_extension_versions
WHERE name = 'scru64' AND installed;
