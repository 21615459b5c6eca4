--
-- Settings: what they take, and what they refuse.  Who may set them, and where: settings_levels.
--
LOAD 'scru64';

-- scripts/check compares the first three columns with doc/scru64.md.
\pset format unaligned
SELECT name, context, coalesce(nullif(current_setting(name), ''), 'empty') AS "default", vartype, unit, min_val, max_val, short_desc
FROM pg_settings WHERE name LIKE 'scru64.%' ORDER BY name COLLATE "C";
\pset format aligned
-- Nobody gets a setting by a slip of the pen.
SET scru64.nodespec = '42/8';

--
-- scru64.node_spec: the three forms
--
SET scru64.node_spec = '42/8';
SHOW scru64.node_spec;
SET scru64.node_spec = '0xb00/12';
SHOW scru64.node_spec;
SET scru64.node_spec TO '0u2r85hm2pt3/16';
SHOW scru64.node_spec;
SET scru64.node_spec = '';
SHOW scru64.node_spec;

--
-- What is no node spec: 22023, and the old one stays.
--
SET scru64.node_spec = '42/8';
SET scru64.node_spec = '42';
\echo :SQLSTATE
SHOW scru64.node_spec;
SET scru64.node_spec = '42/24';
\echo :SQLSTATE
SHOW scru64.node_spec;
SET scru64.node_spec = '256/8';
\echo :SQLSTATE
SHOW scru64.node_spec;

-- Other texts of a form
ALTER SYSTEM SET scru64.lease_within = '42/0';
ALTER SYSTEM SET scru64.realm_id = '00000000-0000-0000-0000-00000000000';
ALTER SYSTEM SET scru64.realm_id = '00000000-0000-0000-0000-00000000000g';

--
-- scru64.lease_holder: for a realm and databases of any encoding
--
SELECT repeat('x', 201) AS too_long \gset
ALTER SYSTEM SET scru64.lease_holder = :'too_long';
\echo :SQLSTATE
ALTER SYSTEM SET scru64.lease_holder = E'one\ttwo';
\echo :SQLSTATE
ALTER SYSTEM SET scru64.lease_holder = 'ä';
\echo :SQLSTATE

--
-- scru64_parse_node_spec(): the same parser
--
SELECT spec, p.*
FROM (VALUES
	('42/8'), ('0xb00/12'), ('0u2r85hm2pt3/16'), ('0U2R85HM2PT3/1'), ('8388607/23'), ('000000000042/8'), (NULL)
) AS v (spec), scru64_parse_node_spec(spec) AS p;

-- The same errors, and one for the empty one, which is a setting
SELECT spec, e.*
FROM (VALUES ('42'), ('42/24'), ('256/8'), ('')) AS v (spec),
	 test.error_of(format('SELECT scru64_parse_node_spec(%L)', spec)) AS e;
