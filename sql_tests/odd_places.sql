--
-- Every function of scru64, and every C function of scru64_realm, with values, with other
-- values and with nulls, to be called where functions of extensions are rarely called. A new
-- function is among them.
--
CREATE SCHEMA odd;
CREATE TABLE odd.argument (type regtype, value text, other text);
INSERT INTO odd.argument VALUES
	('bigint', '0', '-1'), ('boolean', 'true', 'false'), ('bytea', $$'\x0123456789abcdef'$$, $$'\x'$$),
	('cstring', $$'0u2r85hm2pt3'$$, $$'wrong'$$), ('integer', '2', '-1'), ('internal', 'NULL', 'NULL'),
	('interval', $$'1 day'$$, $$'-1 day'$$), ('oid', '0', '1'), ('scru64', $$'0u2r85hm2pt3'$$, $$'000000000000'$$),
	('text', $$'42/8'$$, $$'wrong'$$), ('timestamptz', 'clock_timestamp()', $$'infinity'$$);

-- The count of a set: a domain's CHECK cannot have a set
CREATE FUNCTION odd.rows(call text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	result bigint;
BEGIN
	EXECUTE 'SELECT count(*) FROM ' || call INTO result;
	RETURN result;
END
$$;

CREATE TABLE odd.call (n serial, function text, call text, expression text);
INSERT INTO odd.call (function, call, expression)
	SELECT function, call, CASE WHEN is_set THEN format('odd.rows(%L)', call) ELSE call END
	FROM (SELECT p.oid::regprocedure::text AS function, p.proretset AS is_set,
				 format('%s.%I(%s)', p.pronamespace::regnamespace, p.proname, v.values) AS call
		  FROM pg_proc AS p
			  JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
			  JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid
			  JOIN pg_language AS l ON l.oid = p.prolang
			  CROSS JOIN LATERAL (
				  SELECT DISTINCT coalesce(string_agg(format('%s::%s', (ARRAY[a.value, a.other, 'NULL'])[g.n], t.type::regtype), ', ' ORDER BY t.n)
														  FILTER (WHERE t.type IS NOT NULL), '')
				  FROM generate_series(1, 3) AS g (n)
					  LEFT JOIN unnest(p.proargtypes) WITH ORDINALITY AS t (type, n) ON true
					  LEFT JOIN odd.argument AS a ON a.type = t.type
				  GROUP BY g.n
			  ) AS v (values)
		  WHERE e.extname IN ('scru64', 'scru64_realm') AND (e.extname = 'scru64' OR l.lanname = 'c') AND p.prokind = 'f'
	) AS c
	ORDER BY function COLLATE "C", call COLLATE "C";

-- The SQLSTATE of each call; 00000 if there was no error
CREATE TABLE odd.result (place text, n integer, code text);

-- Call all by a statement with %1$s for the expression, %2$s for the call, %3$s for the number.
-- What a statement has done is undone.
CREATE FUNCTION odd.try(place text, statement text DEFAULT 'SELECT num_nulls(%1$s)') RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	call odd.call;
BEGIN
	FOR call IN SELECT * FROM odd.call ORDER BY n LOOP
		BEGIN
			EXECUTE format(statement, call.expression, call.call, call.n);
			RAISE SQLSTATE '0U000';
		EXCEPTION WHEN OTHERS THEN
			INSERT INTO odd.result VALUES (place, call.n, replace(SQLSTATE, '0U000', '00000'));
		END;
	END LOOP;
END
$$;

-- A function that has a call in it, and says of itself what it likes
CREATE FUNCTION odd.wrap(expression text, says text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE OR REPLACE FUNCTION odd.wrapped(integer) RETURNS integer %s LANGUAGE plpgsql AS %L',
				   says, format('BEGIN RETURN num_nulls(%s); END', expression));
END
$$;

-- A domain for each call.  Not all PostgreSQLs have literals of the type internal.
DO $$
DECLARE
	call odd.call;
BEGIN
	FOR call IN SELECT * FROM odd.call ORDER BY n LOOP
		BEGIN
			EXECUTE format('CREATE DOMAIN odd.of_%s AS text CHECK (num_nulls(%s) >= 0)', call.n, call.expression);
		EXCEPTION WHEN feature_not_supported OR cannot_coerce THEN
			DELETE FROM odd.call AS c WHERE c.n = call.n AND c.function ~ '[(,]internal';
		END;
	END LOOP;
END
$$;

-- A block of PL/pgSQL that calls all by variables of these domains, each after what comes first,
-- and with no statement in between that would take a snapshot
CREATE FUNCTION odd.block(place text, first text) RETURNS text LANGUAGE sql AS $f$
	SELECT format($$DECLARE
	codes text[];
BEGIN
	%s
	INSERT INTO odd.result SELECT %L, c.n, c.code FROM unnest(codes) WITH ORDINALITY AS c (code, n) WHERE c.code <> '';
END
$$, string_agg(format($$
	%s
	BEGIN
		DECLARE
			v odd.of_%s;
		BEGIN
			RAISE SQLSTATE '0U000';
		END;
	EXCEPTION WHEN OTHERS THEN
		codes[%s] := replace(SQLSTATE, '0U000', '00000');
	END;
$$, first, n, n), '' ORDER BY n), place)
	FROM odd.call
$f$;

-- Whether all have been called in each place, and the functions that raise there what they do
-- not raise in a statement.  What a literal of the type internal raises is PostgreSQL's affair.
CREATE FUNCTION odd.report(OUT place text, OUT code text, OUT functions text) RETURNS SETOF record LANGUAGE sql AS $$
	SELECT r.place COLLATE "C", CASE WHEN count(*) = (SELECT count(*) FROM odd.call) THEN 'all' ELSE 'not all' END, ''
	FROM odd.result AS r
	GROUP BY 1
	UNION ALL
	SELECT r.place COLLATE "C", r.code, string_agg(DISTINCT c.function COLLATE "C", ' ' ORDER BY c.function COLLATE "C")
	FROM odd.call AS c
		JOIN odd.result AS r USING (n)
		LEFT JOIN odd.result AS s ON s.n = c.n AND s.place = 'statement' AND r.place <> 'statement'
	WHERE r.code <> coalesce(s.code, '00000') AND c.function !~ '[(,]internal'
	GROUP BY 1, 2
	ORDER BY 1, 2
$$;
