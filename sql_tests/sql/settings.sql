--
-- Settings: what they take, and what they refuse.
--
LOAD 'scru64';

SELECT name, context, vartype, unit, min_val, max_val, short_desc
FROM pg_settings WHERE name LIKE 'scru64.%' ORDER BY name COLLATE "C";
SELECT boot_val FROM pg_settings WHERE name = 'scru64.rollback_allowance';
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

-- The setting after it was tried to set, and the error if there was one
CREATE FUNCTION pg_temp.try(
	spec text, OUT setting text, OUT code text, OUT message text, OUT detail text, OUT hint text
) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('scru64.node_spec', '42/8', false);
	BEGIN
		PERFORM set_config('scru64.node_spec', spec, false);
	EXCEPTION WHEN OTHERS THEN
		GET STACKED DIAGNOSTICS
			code = RETURNED_SQLSTATE,
			message = MESSAGE_TEXT,
			detail = PG_EXCEPTION_DETAIL,
			hint = PG_EXCEPTION_HINT;
	END;
	setting = current_setting('scru64.node_spec');
END
$$;

SELECT spec, code, setting = spec AS is_set
FROM (VALUES
	('0/1'), ('1/1'), ('0/23'), ('255/8'), ('8388607/23'),
	('00000042/8'), ('42/08'), ('42/008'), ('0/023'),
	('0x0/1'), ('0x2a/8'), ('0X2A/8'), ('0xfF/8'), ('0x00002a/8'), ('0x7fffff/23'),
	('0u2r85hm2pt3/1'), ('0U2R85HM2PT3/16'), ('0u2r85hm2pt3/23'), ('0u2r85hm2pt3/016'),
	('000000000000/8'), ('zzzzzzzzzzzz/8'), ('000000000042/8'), ('0x000000002a/8'),
	('')
) AS v (spec), pg_temp.try(spec);

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

-- Signs, blanks, empty parts, a second slash, other characters
CREATE TEMP TABLE bad (kind text, spec text);
INSERT INTO bad
SELECT 'syntax', spec
FROM (VALUES
	('+42/8'), ('-42/8'), ('42/+8'), ('42/-8'), ('-0/8'), ('42/-0'), ('0x+2a/8'), ('0x-1/8'),
	(' '), (' 42/8'), ('42/8 '), ('42 /8'), ('42/ 8'), ('4 2/8'), (E'42/8\n'), (E'\t42/8'),
	('/'), ('42/'), ('/8'), ('42'), ('8'), ('0x/8'), ('0X/8'), ('0x2a'), ('0u2r85hm2pt3'),
	('0u2r85hm2pt3/'),
	('42/8/'), ('42//8'), ('/42/8'), ('42/8/1'), ('0u2r85hm2pt3/16/1'),
	('42.0/8'), ('42/8.0'), ('4e1/8'), ('42/1e1'), ('42,8'), ('42\8'), ('42:8'), ('4_2/8'),
	('2a/8'), ('x2a/8'), ('0b10/8'), ('0o52/8'), ('0xg/8'), ('42/0x8'), ('42/a'),
	('forty/8'), ('42/8;'), ('0x2a/8h'), ('0u2r85hm2pt_/16'), ('0u2r85hm-pt3/16'),
	-- too long on the left: 9 to 11 and 13 characters; on the right: 4
	('000000042/8'), ('0000000042/8'), ('00000000042/8'), ('0000000000042/8'),
	('0x000002a/8'), ('0x0000002a/8'), ('0x00000002a/8'), ('0x0000000002a/8'),
	('u2r85hm2pt3/16'), ('00u2r85hm2pt3/16'), ('999999999/23'), ('4294967338/8'),
	('42/0008'), ('42/00000008'), ('0u2r85hm2pt3/0016'), ('42/4294967304')
) AS v (spec);

-- The size is 1 to 23.
INSERT INTO bad
SELECT 'size', spec
FROM (VALUES
	('0/0'), ('42/0'), ('42/00'), ('42/000'), ('0x2a/0'), ('0u2r85hm2pt3/0'),
	('42/24'), ('42/25'), ('42/32'), ('42/64'), ('42/99'), ('42/256'), ('42/264'), ('42/999'),
	('0x2a/24'), ('0u2r85hm2pt3/24'), ('0/24')
) AS v (spec);

-- The node_id fits in so many bits.
INSERT INTO bad
SELECT 'node_id', spec
FROM (VALUES
	('2/1'), ('256/8'), ('42/5'), ('8388608/23'), ('16777215/23'), ('99999999/23'),
	('0x2/1'), ('0x100/8'), ('0x800000/23'), ('0xffffff/23')
) AS v (spec);
-- One row for each error: what it says, and of which specs.
SELECT count(*), kind, code, setting, detail, hint,
	   count(*) FILTER (WHERE message = format('invalid value for parameter "scru64.node_spec": "%s"', spec))
	   AS quoted
FROM bad, pg_temp.try(spec)
GROUP BY kind, code, setting, detail, hint
ORDER BY kind COLLATE "C", code, setting, detail COLLATE "C";
SELECT spec AS accepted FROM bad, pg_temp.try(spec) WHERE code IS NULL;

-- For every size, the largest node_id that fits, and the next.
SELECT count(*) FILTER (WHERE largest.code IS NULL AND largest.setting = spec) AS accepted,
	   count(*) FILTER (WHERE next.code = '22023' AND next.setting = '42/8') AS refused
FROM generate_series(1, 23) AS size,
	 LATERAL (SELECT format('%s/%s', (1 << size) - 1, size), format('%s/%s', 1 << size, size))
	 AS v (spec, next_spec),
	 pg_temp.try(spec) AS largest, pg_temp.try(next_spec) AS next;

--
-- scru64_parse_node_spec(): the same parser
--
SELECT spec, p.*
FROM (VALUES
	('42/8'), ('0xb00/12'), ('0u2r85hm2pt3/16'), ('0U2R85HM2PT3/1'), ('8388607/23'), ('000000000042/8'), (NULL)
) AS v (spec), scru64_parse_node_spec(spec) AS p;

-- The same errors, but for the empty one, which is a setting.
SELECT count(*), count(*) FILTER (WHERE parsed.code = tried.code AND parsed.detail = tried.detail
								  AND parsed.hint = tried.hint) AS same_error,
	   count(*) FILTER (WHERE parsed.message = format('invalid node spec "%s"', spec)) AS quoted
FROM bad, test.error_of(format('SELECT scru64_parse_node_spec(%L)', spec)) AS parsed, pg_temp.try(spec) AS tried;
SELECT scru64_parse_node_spec('');
