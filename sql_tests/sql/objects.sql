--
-- What the extension consists of, and what holds for every part of it.
--
\pset format unaligned
\pset footer off

-- Its members, without the types that come with a type: these have been members from
-- PostgreSQL 17 on.
CREATE TEMP TABLE member AS
	SELECT d.classid::regclass AS catalog, d.objid, d.objsubid
	FROM pg_depend AS d
	JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
	WHERE e.extname = 'scru64' AND d.deptype = 'e'
		AND NOT (d.classid = 'pg_type'::regclass
				 AND EXISTS (SELECT FROM pg_type AS t
							 WHERE t.oid = d.objid AND t.typelem <> 0));

-- Everything but the functions, which follow
SELECT pg_describe_object(catalog, objid, objsubid) AS object
FROM member
WHERE catalog <> 'pg_proc'::regclass
ORDER BY pg_describe_object(catalog, objid, objsubid) COLLATE "C";

SELECT p.oid::regprocedure AS function, prorettype::regtype AS returns, proretset AS set,
	   provolatile AS volatility, proisstrict AS strict, proparallel AS parallel,
	   proleakproof AS leakproof, prosecdef AS definer, lanname AS language
FROM member
JOIN pg_proc AS p ON p.oid = objid AND catalog = 'pg_proc'::regclass
JOIN pg_language AS l ON l.oid = p.prolang
ORDER BY p.oid::regprocedure::text COLLATE "C";

-- The columns of those with rows for people
SELECT proname, name, type::regtype
FROM pg_proc, ROWS FROM (unnest(proargnames), unnest(proallargtypes)) WITH ORDINALITY AS c (name, type, number)
WHERE oid IN ('scru64_generators()'::regprocedure, 'scru64_transactions()'::regprocedure, 'scru64_lease()'::regprocedure)
ORDER BY proname COLLATE "C", number;

-- Every one is strict (an aggregate by its transition function), runs as its caller, with the
-- caller's settings, and is parallel safe: but for what generates or asks for the node of the
-- session, the watermark, which the session finds itself, what a superuser does to the whole server,
-- and what looks at the activity of others for its caller.
SELECT p.oid::regprocedure AS function
FROM member
JOIN pg_proc AS p ON p.oid = objid AND catalog = 'pg_proc'::regclass
LEFT JOIN pg_aggregate AS a ON a.aggfnoid = p.oid
LEFT JOIN pg_proc AS t ON t.oid = a.aggtransfn
WHERE p.proparallel <> 's' OR p.prosecdef OR p.proconfig IS NOT NULL
	OR NOT coalesce(t.proisstrict, p.proisstrict)
ORDER BY p.oid::regprocedure::text COLLATE "C";

-- The C functions are all in one library, and none is bound to another path.
SELECT DISTINCT probin
FROM member
JOIN pg_proc AS p ON p.oid = objid AND catalog = 'pg_proc'::regclass
WHERE probin IS NOT NULL;

-- Every object has a comment.
SELECT pg_describe_object(catalog, objid, objsubid) AS object
FROM member
WHERE coalesce(obj_description(objid, catalog::text::name), '') = '';

-- Nothing is granted to all that tells of other sessions; anything else is.
SELECT p.oid::regprocedure AS function, has_function_privilege('pg_monitor', p.oid, 'EXECUTE') AS pg_monitor
FROM member
JOIN pg_proc AS p ON p.oid = objid AND catalog = 'pg_proc'::regclass
WHERE NOT has_function_privilege('public', p.oid, 'EXECUTE')
ORDER BY p.oid::regprocedure::text COLLATE "C";

-- NULL in, NULL out.
SELECT scru64_node_ctr(NULL) IS NULL AS node_ctr, scru64_send(NULL) IS NULL AS send,
	   scru64_cmp(NULL, '000000000000') IS NULL AS cmp, scru64_hash(NULL) IS NULL AS hash,
	   NULL::scru64 < '000000000000' IS NULL AS lt;
