--
-- Text input and output.
--

--
-- The values that the specification names
--
SELECT input, input::scru64 AS id, input::scru64::bigint AS number,
	   input::scru64::bigint = expected AS as_expected,
	   expected::bigint::scru64::text = lower(input) AS and_back
FROM (VALUES
	('0u2pf62ji4b9', 109959589539758421),
	('000000000000', 0),
	('zzzzzzzzzzzz', 36::numeric ^ 12 - 1)
) AS v (input, expected);

-- Either case in, lower case out.
SELECT input, input::scru64 AS id, input::scru64 = '0u375nxqh5cq' AS same
FROM (VALUES ('0U375NXQH5CQ'), ('0u375nxqh5cq'), ('0u375NxqH5cq')) AS v (input);

-- Twelve digits are Base36, whatever else they look like.
SELECT input, input::scru64::bigint AS number
FROM (VALUES ('109959589539'), ('0x0000000010'), ('000infinity0')) AS v (input);

-- Eight bytes, passed by value where bigint is, no storage but plain.
SELECT s.typlen, s.typbyval = i.typbyval AS byval_as_bigint,
	   s.typalign = i.typalign AS align_as_bigint, s.typstorage, s.typcategory,
	   s.typispreferred, s.typtype, s.typdelim,
	   s.typarray = 'scru64[]'::regtype AS has_array_type
FROM pg_type AS s, pg_type AS i
WHERE s.oid = 'scru64'::regtype AND i.oid = 'bigint'::regtype;

--
-- Bad text: 22P02, whatever is wrong
--
SELECT '0u2pf62ji4b'::scru64;
-- the integer of an ID, as text
SELECT '110770749696212993'::scru64;
SELECT '4738381338321616895'::scru64;
SELECT '47383813383216168950'::scru64;
SELECT quote_literal(input) AS input, e.code, e.message, e.detail, e.hint
FROM (VALUES
	(''),
	('0'),
	('0u2pf62ji4b'),
	('0u2pf62ji4b9a'),
	('0u2pf62ji4b90u2pf62ji4b9'),
	(' 0u2pf62ji4b9'),
	('0u2pf62ji4b9 '),
	(' 0u2pf62ji4b'),
	('0u2pf62ji4b '),
	('0u2pf6 ji4b9'),
	('            '),
	('+0u2pf62ji4b'),
	('-0u2pf62ji4b'),
	('-00000000001'),
	('+0u2pf62ji4b9'),
	('0u2pf6_2ji4b'),
	('0u2pf6-2ji4b'),
	('0u2pf62ji4_9'),
	('0u2pf62ji4.9'),
	('0x10'),
	('0u2pf62ji4b/'),
	('0u2pf62ji4b:'),
	('0u2pf62ji4b@'),
	('0u2pf62ji4b['),
	('0u2pf62ji4b`'),
	('0u2pf62ji4b{'),
	('{u2pf62ji4b9'),
	('NULL'),
	('109959589539758421'),
	('0u2pf62ji4b9/16')
) AS v (input), test.error_of(format('SELECT %L::scru64', input)) AS e;

-- Blanks that are not spaces, and characters outside ASCII: a letter in front
-- of ten to twelve digits, so that one of them has twelve bytes in any encoding.
SELECT digits, e.code, e.detail,
	   e.message = format('invalid input syntax for type scru64: "%s"', input)
	   AS message_quotes_input
FROM (VALUES (9), (10), (11), (233)) AS c (code),
	 generate_series(10, 12) AS digits,
	 LATERAL (SELECT chr(c.code) || repeat('0', digits)) AS v (input),
	 test.error_of(format('SELECT %L::scru64', input)) AS e
ORDER BY c.code, digits;

-- Every ASCII character in every place: in only if it is a digit.
WITH probe AS (
	SELECT overlay('0u2pf62ji4b9' PLACING chr(code) FROM place) AS input
	FROM generate_series(1, 127) AS code, generate_series(1, 12) AS place
)
SELECT count(*) AS inputs,
	   count(*) FILTER (WHERE code IS NULL) AS accepted,
	   count(*) FILTER (WHERE code = '22P02') AS refused,
	   count(*) FILTER (WHERE (code IS NULL) <>
						(input COLLATE "C" ~ '^[0-9A-Za-z]{12}$')) AS mistakes
FROM probe, test.error_of(format('SELECT %L::scru64', input));

-- Every length up to 40.
SELECT count(*) AS lengths,
	   array_agg(length) FILTER (WHERE code IS NULL) AS accepted,
	   count(*) FILTER (WHERE code = '22P02') AS refused
FROM generate_series(0, 40) AS length,
	 test.error_of(format('SELECT %L::scru64', repeat('z', length)));

--
-- 200,000 random values and all the edges, against Base36 computed with numeric
--
CREATE TEMP TABLE value AS
	SELECT (hashint8extended(i, 0) & 9223372036854775807) % 4738381338321616896 AS n
	FROM generate_series(1, 200000) AS i
	UNION ALL
	SELECT n::bigint
	FROM generate_series(0, 12) AS power,
		 generate_series(1, 35, 17) AS digit,
		 generate_series(-2, 2) AS delta,
		 LATERAL (SELECT digit * 36::numeric ^ power + delta) AS v (n)
	WHERE n BETWEEN 0 AND 36::numeric ^ 12 - 1
	UNION ALL
	SELECT n::bigint
	FROM generate_series(0, 62) AS power, generate_series(-1, 1) AS delta,
		 LATERAL (SELECT 2::numeric ^ power + delta) AS v (n)
	WHERE n BETWEEN 0 AND 36::numeric ^ 12 - 1;

CREATE FUNCTION pg_temp.base36(n numeric) RETURNS text LANGUAGE sql
RETURN (
	SELECT string_agg(substr('0123456789abcdefghijklmnopqrstuvwxyz',
							 (div(n, 36::numeric ^ place) % 36)::integer + 1, 1),
					  '' ORDER BY place DESC)
	FROM generate_series(0, 11) AS place
);
SELECT pg_temp.base36(109959589539758421), pg_temp.base36(36::numeric ^ 12 - 1);

CREATE TEMP TABLE sample AS
	SELECT n, n::scru64 AS id, pg_temp.base36(n) AS digits FROM value;
SELECT count(*) >= 200000 AS enough,
	   count(DISTINCT n) > 199000 AS various,
	   min(n) AS smallest, max(n) AS largest,
	   count(*) FILTER (WHERE id::text <> digits) AS wrong_output,
	   count(*) FILTER (WHERE digits::scru64::bigint <> n) AS wrong_input,
	   count(*) FILTER (WHERE upper(digits COLLATE "C")::scru64::bigint <> n)
	   AS wrong_upper_case,
	   count(*) FILTER (WHERE id::bigint <> n) AS wrong_bigint
FROM sample;

--
-- As text in a COPY, an array, a row, a literal of a container
--
SELECT ARRAY['0u2pf62ji4b9', 'ZZZZZZZZZZZZ']::scru64[],
	   '{0u2pf62ji4b9,NULL,"000000000000"}'::scru64[],
	   ROW(scru64 '0u2pf62ji4b9', 1);
SELECT '{0u2pf62ji4b9,0u2pf62ji4b}'::scru64[];

CREATE TEMP TABLE copied (line integer, id scru64);
COPY copied FROM stdin;
1	0u2pf62ji4b9
2	\N
3	ZZZZZZZZZZZZ
\.
COPY copied TO stdout;
COPY copied FROM stdin;
4	0u2pf62ji4b
\.

--
-- Soft errors, where the version has them: the same verdicts and words as the
-- errors of a version that has not.
--
SELECT current_setting('server_version_num')::integer >= 160000 AS has_soft_errors,
	   current_setting('server_version_num')::integer >= 170000 AS has_on_error \gset
\if :has_soft_errors
CREATE FUNCTION pg_temp.input_error(
	input text, type text,
	OUT message text, OUT detail text, OUT hint text, OUT code text
) LANGUAGE sql RETURN pg_input_error_info(input, type);
CREATE FUNCTION pg_temp.is_valid(input text, type text) RETURNS boolean
LANGUAGE sql RETURN pg_input_is_valid(input, type);
\else
CREATE FUNCTION pg_temp.input_error(
	input text, type text,
	OUT message text, OUT detail text, OUT hint text, OUT code text
) LANGUAGE sql AS $$
	SELECT message, nullif(detail, ''), nullif(hint, ''), code
	FROM test.error_of(format('SELECT %L::%s', input, type))
$$;
CREATE FUNCTION pg_temp.is_valid(input text, type text) RETURNS boolean
LANGUAGE sql RETURN (test.error_of(format('SELECT %L::%s', input, type))).code IS NULL;
\endif
SELECT quote_literal(input) AS input, type, pg_temp.is_valid(input, type), e.*
FROM (VALUES
	('0u2pf62ji4b9', 'scru64'),
	('0U2PF62JI4B9', 'scru64'),
	('0u2pf62ji4b', 'scru64'),
	('0u2pf62ji4b9a', 'scru64'),
	('0u2pf62ji4b_', 'scru64'),
	('', 'scru64'),
	('{0u2pf62ji4b9}', 'scru64[]'),
	('{0u2pf62ji4b9,x}', 'scru64[]')
) AS v (input, type), pg_temp.input_error(input, type) AS e;

CREATE TEMP TABLE lenient (line integer, id scru64);
SET client_min_messages = warning;
\if :has_on_error
COPY lenient FROM PROGRAM
	'for line in 1,0u2pf62ji4b9 2,0u2pf62ji4b 3,000000000000 4,0u2pf62ji4b9a 5,zzzzzzzzzzzz; do echo $line; done'
	(FORMAT csv, ON_ERROR ignore);
\else
COPY lenient FROM PROGRAM
	'for line in 1,0u2pf62ji4b9 3,000000000000 5,zzzzzzzzzzzz; do echo $line; done'
	(FORMAT csv);
\endif
RESET client_min_messages;
SELECT * FROM lenient ORDER BY line;
