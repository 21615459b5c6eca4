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
	('0u2pf62ji4b9a'),
	('0u2pf62ji4b '),
	('-0u2pf62ji4b'),
	('0u2pf6_2ji4b'),
	('0x10'),
	('NULL')
) AS v (input), test.error_of(format('SELECT %L::scru64', input)) AS e;
-- A letter outside ASCII and ten digits: twelve bytes in UTF-8
SELECT e.code, e.detail,
	   e.message = format('invalid input syntax for type scru64: "%s"', input) AS message_quotes_input
FROM (VALUES (chr(233) || '0000000000')) AS v (input),
	 test.error_of(format('SELECT %L::scru64', input)) AS e;

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
-- Soft errors, as for COPY ... ON_ERROR, where the version has them: the same
-- verdicts and words as the errors of a version that has not.
--
SELECT current_setting('server_version_num')::integer >= 160000 AS has_soft_errors \gset
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
	('0u2pf62ji4b', 'scru64'),
	('{0u2pf62ji4b9}', 'scru64[]'),
	('{0u2pf62ji4b9,x}', 'scru64[]')
) AS v (input, type), pg_temp.input_error(input, type) AS e;
