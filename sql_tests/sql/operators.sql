--
-- Operators and order: as the integer does it, which is also the order of the
-- text in C collation.
--

--
-- What there is
--
SELECT o.oprname, o.oprcode, c.oprname AS commutator, n.oprname AS negator,
	   o.oprcanmerge AS merges, o.oprcanhash AS hashes, o.oprrest, o.oprjoin
FROM pg_operator AS o
LEFT JOIN pg_operator AS c ON c.oid = o.oprcom
	AND c.oprleft = o.oprright AND c.oprright = o.oprleft
LEFT JOIN pg_operator AS n ON n.oid = o.oprnegate
	AND n.oprleft = o.oprleft AND n.oprright = o.oprright
WHERE o.oprleft = 'scru64'::regtype AND o.oprright = 'scru64'::regtype
ORDER BY o.oprname COLLATE "C";

-- Each is as bigint's own, but for the estimate of a restriction: the same cost,
-- volatility and leakproofness, and so for joins.
SELECT array_agg(s.oprname ORDER BY s.oprname COLLATE "C") FILTER (
		   WHERE (sp.procost, sp.provolatile, sp.proisstrict, sp.proparallel, sp.proleakproof, s.oprjoin)
			   = (bp.procost, bp.provolatile, bp.proisstrict, bp.proparallel, bp.proleakproof, b.oprjoin)) AS as_bigint
FROM pg_operator AS s
JOIN pg_proc AS sp ON sp.oid = s.oprcode
JOIN pg_operator AS b ON b.oprname = s.oprname
	AND b.oprleft = 'bigint'::regtype AND b.oprright = 'bigint'::regtype
JOIN pg_proc AS bp ON bp.oid = b.oprcode
WHERE s.oprleft = 'scru64'::regtype AND s.oprright = 'scru64'::regtype;

SELECT a < b AS lt, a <= b AS le, a = b AS eq, a <> b AS ne, a >= b AS ge, a > b AS gt
FROM (VALUES
	(scru64 '0u2pf62ji4b9', scru64 '0u2pf62ji4ba'),
	('0u2pf62ji4b9', '0u2pf62ji4b9'),
	('0u2pf62ji4ba', '0u2pf62ji4b9'),
	('000000000000', 'zzzzzzzzzzzz'),
	('zzzzzzzzzzzz', '000000000000'),
	('0u2pf62ji4b9', NULL)
) AS v (a, b);

--
-- Random values, equal and neighbouring ones among them
--
CREATE TEMP TABLE pair AS
	SELECT a::scru64, b::scru64, a AS na, b AS nb
	FROM generate_series(1, 100000) AS i,
		 LATERAL (SELECT (hashint8extended(i, 1) & 9223372036854775807)
						 % 4738381338321616896) AS x (a),
		 LATERAL (SELECT CASE i % 4
				  WHEN 0 THEN a
				  WHEN 1 THEN least(a + 1, 4738381338321616895)
				  WHEN 2 THEN greatest(a - 1, 0)
				  ELSE (hashint8extended(i, 2) & 9223372036854775807)
					   % 4738381338321616896
				  END) AS y (b);
INSERT INTO pair
	SELECT a::scru64, b::scru64, a, b
	FROM (VALUES (0), (1), (4738381338321616894), (4738381338321616895)) AS x (a),
		 (VALUES (0), (1), (4738381338321616894), (4738381338321616895)) AS y (b);
CREATE TEMP VIEW wrong AS
	SELECT count(*) AS pairs,
		   count(*) FILTER (WHERE (a < b) <> (na < nb)) AS lt,
		   count(*) FILTER (WHERE (a <= b) <> (na <= nb)) AS le,
		   count(*) FILTER (WHERE (a = b) <> (na = nb)) AS eq,
		   count(*) FILTER (WHERE (a <> b) <> (na <> nb)) AS ne,
		   count(*) FILTER (WHERE (a >= b) <> (na >= nb)) AS ge,
		   count(*) FILTER (WHERE (a > b) <> (na > nb)) AS gt,
		   -- the support functions, and the order of text
		   count(*) FILTER (WHERE scru64_cmp(a, b) <> btint8cmp(na, nb)) AS cmp,
		   count(*) FILTER (WHERE scru64_hash(a) <> hashint8(na)) AS hash,
		   count(*) FILTER (WHERE scru64_hash_extended(a, 0) <> hashint8extended(na, 0)) AS extended,
		   count(*) FILTER (WHERE scru64_hash_extended(a, nb) <> hashint8extended(na, nb)) AS with_seed,
		   count(*) FILTER (WHERE scru64_send(a) <> int8send(na)) AS send,
		   count(*) FILTER (WHERE scru64_smaller(a, b)::bigint <> int8smaller(na, nb)) AS smaller,
		   count(*) FILTER (WHERE scru64_larger(a, b)::bigint <> int8larger(na, nb)) AS larger,
		   count(*) FILTER (WHERE (a < b) <> (a::text COLLATE "C" < b::text COLLATE "C")) AS text
	FROM pair;
SELECT * FROM wrong;

-- The same compiled, and inlined into what is compiled, where the server can do
-- that.
SET jit = on;
SET jit_above_cost = 0;
SET jit_inline_above_cost = 0;
SET jit_optimize_above_cost = 0;
SELECT * FROM wrong;
SELECT min(a)::bigint = min(na) AS min, max(a)::bigint = max(na) AS max,
	   min(least(a, b))::bigint = min(least(na, nb)) AS least,
	   count(DISTINCT a) = count(DISTINCT na) AS distinct_
FROM pair;
RESET jit;
RESET jit_above_cost;
RESET jit_inline_above_cost;
RESET jit_optimize_above_cost;

-- The orders of ORDER BY
SELECT count(*) FILTER (WHERE up <> integer_up) AS up,
	   count(*) FILTER (WHERE up <> text_up) AS text_up,
	   count(*) FILTER (WHERE down <> integer_down) AS down,
	   count(*) FILTER (WHERE down <> using_down) AS using_down
FROM (
	SELECT rank() OVER (ORDER BY a) AS up,
		   rank() OVER (ORDER BY na) AS integer_up,
		   rank() OVER (ORDER BY a::text COLLATE "C") AS text_up,
		   rank() OVER (ORDER BY a DESC) AS down,
		   rank() OVER (ORDER BY na DESC) AS integer_down,
		   rank() OVER (ORDER BY a USING >) AS using_down
	FROM pair
) AS ranked;
SELECT array_agg(a ORDER BY a)::bigint[] = array_agg(na ORDER BY na) AS sorted,
	   array_agg(a ORDER BY a DESC)::bigint[] = array_agg(na ORDER BY na DESC)
	   AS sorted_down,
	   array_agg(a ORDER BY b, a)::bigint[] = array_agg(na ORDER BY nb, na)
	   AS sorted_by_two
FROM pair;
SELECT a FROM (VALUES (scru64 '00000000000z'), (NULL), ('zzzzzzzzzzzz'), ('000000000010'),
					  ('000000000000')) AS v (a)
ORDER BY a DESC NULLS LAST;

--
-- min, max
--
SELECT min(a)::bigint = min(na) AS min, max(a)::bigint = max(na) AS max,
	   min(a), max(a)
FROM pair;
SELECT min(a), max(a) FROM pair WHERE a IS NULL;
SELECT min(v), max(v)
FROM (VALUES (NULL::scru64), ('0u2pf62ji4b9'), (NULL), ('0u2pf62ji4ba')) AS t (v);
SELECT count(*) FILTER (WHERE s::bigint <> n OR l::bigint <> m) AS wrong
FROM (
	SELECT min(a) AS s, min(na) AS n, max(b) AS l, max(nb) AS m
	FROM pair GROUP BY na % 100
) AS grouped;
SELECT count(*) FILTER (WHERE least(a, b)::bigint <> least(na, nb)) AS least,
	   count(*) FILTER (WHERE greatest(a, b)::bigint <> greatest(na, nb)) AS greatest,
	   count(*) FILTER (WHERE (nullif(a, b) IS NULL) <> (na = nb)) AS nullif,
	   count(*) FILTER (WHERE (a IS DISTINCT FROM b) <> (na <> nb)) AS distinct_from,
	   count(*) FILTER (WHERE (a BETWEEN b AND a) <> (na >= nb)) AS between_
FROM pair;
SELECT aggfnoid::regprocedure, aggtransfn, aggcombinefn, aggsortop::regoperator,
	   proparallel
FROM pg_aggregate JOIN pg_proc ON pg_proc.oid = aggfnoid
WHERE aggtranstype = 'scru64'::regtype
ORDER BY aggfnoid::regprocedure::text COLLATE "C";

--
-- GROUP BY, as DISTINCT and set operations do it: by hash and by sort
--
CREATE TEMP TABLE repeated AS
	SELECT (i % 1000 * 1000003)::bigint::scru64 AS id, (i % 1000 * 1000003)::bigint AS n
	FROM generate_series(1, 10000) AS i;
ANALYZE repeated;
SET enable_sort = off;
EXPLAIN (COSTS OFF) SELECT id, count(*) FROM repeated GROUP BY id;
SELECT count(*) AS groups, min(count), max(count), count(*) FILTER (WHERE id::bigint <> n) AS wrong
FROM (SELECT id, count(*), min(n) AS n FROM repeated GROUP BY id) AS g;
RESET enable_sort;
SET enable_hashagg = off;
EXPLAIN (COSTS OFF) SELECT id, count(*) FROM repeated GROUP BY id;
SELECT count(*) AS groups, min(count), max(count), count(*) FILTER (WHERE id::bigint <> n) AS wrong
FROM (SELECT id, count(*), min(n) AS n FROM repeated GROUP BY id) AS g;
RESET enable_hashagg;
SELECT count(DISTINCT id), count(id) FROM repeated;

--
-- Arrays, rows, sets of values
--
SELECT count(*) FILTER (WHERE id = ANY (two)) AS in_array,
	   count(*) FILTER (WHERE id IN ('000000000000', '00000000lflv')) AS in_list,
	   count(*) FILTER (WHERE n IN (0, 1000003)) AS in_bigint_list,
	   count(*) FILTER (WHERE id <> ALL (two)) AS not_in_array,
	   count(*) FILTER (WHERE id < ANY (two)) AS below_any,
	   count(*) FILTER (WHERE id > ALL (two)) AS above_all
FROM repeated, (SELECT '{0,1000003}'::bigint[]::scru64[]) AS v (two);
-- A long array of constants is looked up by hash.
SELECT array_agg(DISTINCT id) AS ids FROM repeated WHERE n < 500 * 1000003 \gset
SELECT count(*) FROM repeated WHERE id = ANY (:'ids');
SELECT count(*) FROM repeated WHERE id <> ALL (:'ids');
PREPARE in_array (scru64[]) AS SELECT count(*) FROM repeated WHERE id = ANY ($1);
EXECUTE in_array (:'ids');
DEALLOCATE in_array;
SELECT a = b AS eq, a < b AS lt, a @> b AS contains, a && b AS overlaps,
	   a || b AS concatenated, array_position(a, '0u2pf62ji4b9') AS position,
	   array_remove(a, '0u2pf62ji4b9') AS removed
FROM (VALUES
	('{000000000000,0u2pf62ji4b9}'::scru64[], '{0u2pf62ji4b9}'::scru64[]),
	('{0u2pf62ji4b9}', '{0u2pf62ji4ba}'),
	('{}', '{}')
) AS v (a, b);
SELECT count(*) FILTER (WHERE (ROW(a, b) < ROW(b, a)) <> (ROW(na, nb) < ROW(nb, na))) AS lt,
	   count(*) FILTER (WHERE (ROW(a, b) = ROW(b, a)) <> (ROW(na, nb) = ROW(nb, na))) AS eq,
	   count(*) FILTER (WHERE (ROW(a, nb) >= ROW(b, na)) <> (ROW(na, nb) >= ROW(nb, na))) AS ge
FROM pair;
SELECT count(DISTINCT ROW(id, n)) FROM repeated;
SELECT hash_array(ARRAY[id]) = hash_array(ARRAY[n]) AS array_hash,
	   hash_record(ROW(id)) = hash_record(ROW(n)) AS row_hash
FROM (VALUES (scru64 '0u2pf62ji4b9', 109959589539758421)) AS v (id, n);

--
-- The accessor
--
SELECT id, scru64_node_ctr(id)
FROM (VALUES (scru64 '0u2pf62ji4b9'), ('000000000000'), ('zzzzzzzzzzzz'), (NULL)) AS v (id);
SELECT count(*) FILTER (WHERE scru64_node_ctr(a) <> na % 16777216) AS wrong FROM pair;
