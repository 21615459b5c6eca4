--
-- Bytes and hash values that are the same on every machine, whatever its processor's
-- byte order and the width of its words: clients, hash partitions and replicas of
-- another architecture rely on them.
--

SELECT id, scru64_send(id) AS sent, id::bytea, (id::bytea)::scru64 = id AS back
FROM unnest('{000000000000,000000000001,0u2pf62ji4b9,0u375nxqh5cq,zzzzzzzzzzzz}'::scru64[]) AS id;
SELECT array_send('{0u2pf62ji4b9,NULL}'::scru64[]) = '\x0000000100000001'::bytea ||
	   int4send('scru64'::regtype::oid::integer) || '\x0000000200000001'::bytea ||
	   '\x000000080186a7aa022a4155'::bytea || '\xffffffff'::bytea AS array_sent;

SELECT id, scru64_hash(id), scru64_hash_extended(id, 0) AS extended,
	   scru64_hash_extended(id, 4738381338321616895) AS with_seed
FROM unnest('{000000000000,000000000001,0u2pf62ji4b9,0u375nxqh5cq,zzzzzzzzzzzz}'::scru64[]) AS id;
SELECT hash_array(ids), hash_array_extended(ids, 42), hash_record(ROW(ids[1]))
FROM (VALUES ('{0u2pf62ji4b9,0u375nxqh5cq}'::scru64[])) AS v (ids);

--
-- The page of the ceiling is in the byte order of the machine, as all of a data
-- directory and of the WAL is: a server of another byte order reads none of them. Core's
-- header of the page ends with a version, 4, whose place tells which order that is.
-- Behind it stand magic, version, ceiling and CRC.
--
SELECT scru64_set_ceiling('2036-01-02 03:04:05+00');
CHECKPOINT;
SELECT length(contents), CASE get_byte(page, 18)
	WHEN 4 THEN contents = '\x636e645c 01000000 fce1f3e401000000 28840cdd'
	ELSE contents = '\x5c646e63 00000001 00000001e4f3e1fc 1a71c756' END AS as_written
FROM pg_read_binary_file('global/9864', 0, 24 + 20) AS page,
	 substr(page, 1 + 24) AS contents;
-- The files that follow find the clock ahead of it.
SELECT scru64_set_ceiling();
DO $$ BEGIN PERFORM pg_sleep(0.3); END $$;
