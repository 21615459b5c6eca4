--
-- Binary input and output: eight bytes, big-endian, as bigint has it.
--

--
-- Output
--
SELECT number, scru64_send(number::scru64),
	   scru64_send(number::scru64) = int8send(number) AS as_bigint
FROM (VALUES (0::bigint), (1), (109959589539758421), (4738381338321616895))
	 AS v (number);
SELECT count(*) FILTER (WHERE scru64_send(n::scru64) <> int8send(n)) AS differing
FROM generate_series(1, 10000) AS i,
	 LATERAL (SELECT (hashint8extended(i, 0) & 9223372036854775807) % 4738381338321616896)
	 AS v (n);

-- These are the type's own functions for that.
SELECT typreceive, typsend FROM pg_type WHERE oid = 'scru64'::regtype;

--
-- Input: COPY reads a file of one column and one row, made of these bytes.
--
CREATE TEMP TABLE received (id scru64);
CREATE TEMP TABLE received_array (ids scru64[]);
CREATE TEMP TABLE received_bigint (n bigint);

-- Signature, flags and no header extension; one field; the field with its
-- length, which is -1 for a null; trailer.
CREATE FUNCTION pg_temp.copy_file(field bytea) RETURNS bytea LANGUAGE sql
RETURN '\x5047434f50590aff0d0a00'::bytea || int4send(0) || int4send(0) ||
	   int2send(1::smallint) ||
	   coalesce(int4send(length(field)) || field, int4send(-1)) ||
	   int2send(-1::smallint);

CREATE FUNCTION pg_temp.receive(
	target regclass, field bytea,
	OUT code text, OUT message text, OUT detail text, OUT hint text
) LANGUAGE plpgsql AS $$
DECLARE
	copy oid := lo_from_bytea(0, pg_temp.copy_file(field));
BEGIN
	-- Windows has no shell for FROM PROGRAM, and base backups leave out a file of this name
	PERFORM lo_export(copy, 'pgsql_tmp.scru64_regress'), lo_unlink(copy);
	SELECT * INTO code, message, detail, hint FROM test.error_of(
		format('COPY %s FROM %L (FORMAT binary)', target, 'pgsql_tmp.scru64_regress'));
END
$$;

-- The file is right: bigint takes it.
SELECT code, message
FROM pg_temp.receive('received_bigint', '\x0186a7aa022a4155');
SELECT n, to_hex(n) FROM received_bigint;

-- What bigint sends and what scru64 sends, both ends of the range included.
SELECT number, e.code, e.message
FROM (VALUES (0::bigint), (1), (109959589539758421), (4738381338321616895))
	 AS v (number),
	 pg_temp.receive('received', int8send(number)) AS e;
SELECT e.code, e.message
FROM pg_temp.receive('received', scru64_send('0u375nxqh5cq')) AS e;
SELECT e.code, e.message FROM pg_temp.receive('received', NULL) AS e;
SELECT id, id::bigint AS number FROM received ORDER BY id;

-- Another length, or out of range: 22P03.
TRUNCATE received;
SELECT field, e.code, e.message, e.detail, e.hint
FROM (VALUES
	('\x'::bytea),
	('\x00'),
	('\x0186a7aa'),
	('\x0186a7aa022a41'),
	('\x0186a7aa022a415500'),
	('\x0186a7aa022a41550186a7aa022a4155'),
	(int8send((36::numeric ^ 12)::bigint)),
	(int8send(9223372036854775807)),
	(int8send(-1)),
	(int8send(-9223372036854775808)),
	('0u2pf62ji4b9'::bytea)
) AS v (field), pg_temp.receive('received', field) AS e;
SELECT count(*) AS received FROM received;

-- Random numbers of all 64 bits: in if and only if they are in range.
SELECT count(*) AS numbers,
	   count(*) FILTER (WHERE (code IS NULL) <> (n BETWEEN 0 AND 4738381338321616895))
	   AS mistakes,
	   count(*) FILTER (WHERE code <> '22P03') AS other_errors
FROM generate_series(1, 50) AS i,
	 LATERAL (SELECT hashint8extended(i, 0)) AS v (n),
	 pg_temp.receive('received', int8send(n));
SELECT count(*) BETWEEN 1 AND 49 AS some FROM received;

-- As an element of an array, which sends and receives by the same functions.
SELECT e.code, e.message
FROM pg_temp.receive('received_array',
	array_send('{0u2pf62ji4b9,NULL,zzzzzzzzzzzz}'::scru64[])) AS e;
SELECT ids FROM received_array;
SELECT e.code, e.message, e.detail
FROM pg_temp.receive('received_array',
	overlay(array_send('{0u2pf62ji4b9}'::scru64[])
			PLACING '\xffffffffffffffff'::bytea FROM 25)) AS e;
