-- heavy/bench/inserts.sql
--		2. INSERT ... SELECT with a DEFAULT primary key, its table's size, its index's
--		size, its WAL, and COPY in. (Single rows: scripts/bench.)

SET search_path = bench, public;

SELECT format('CREATE TABLE %I (id %s DEFAULT %s PRIMARY KEY, payload integer)',
			  'into ' || contender, type, id_default)
FROM source WHERE contender <> 'nextval, cache 100' ORDER BY place
\gexec

INSERT INTO contender (subject, contender, before, statement)
SELECT 'INSERT by DEFAULT', contender,
	   format('TRUNCATE %I', 'into ' || contender),
	   format('INSERT INTO %I (payload) SELECT n FROM generate_series(1, %s) AS n',
			  'into ' || contender, :rows)
FROM source WHERE contender <> 'nextval, cache 100' ORDER BY place;

CALL measure('INSERT by DEFAULT', :rounds);

-- These do not vary, so once is enough. The checkpoint has all of them begin
-- with the same full-page images to write.
CREATE PROCEDURE measure_sizes() LANGUAGE plpgsql AS $$
DECLARE
	c record;
	name text;
	start pg_lsn;
BEGIN
	FOR c IN
		SELECT * FROM contender WHERE subject = 'INSERT by DEFAULT' ORDER BY place
	LOOP
		name := quote_ident('into ' || c.contender);
		EXECUTE c.before;
		COMMIT;
		CHECKPOINT;
		start := pg_current_wal_insert_lsn();
		EXECUTE c.statement;
		COMMIT;
		INSERT INTO result (subject, contender, round, value, unit)
		SELECT s.subject, c.contender, 1, s.bytes / 1048576.0, 'MB'
		FROM (VALUES
			('after the INSERT: table', pg_table_size(name::regclass)),
			('after the INSERT: index', pg_indexes_size(name::regclass)),
			('after the INSERT: WAL', pg_current_wal_insert_lsn() - start)) AS s (subject, bytes);
		COMMIT;
	END LOOP;
END
$$;

CALL measure_sizes();

-- COPY in, of the present rows, into a table with a primary key
SELECT format('COPY (SELECT * FROM %I LIMIT %s) TO %L (FORMAT %s)',
			  'into ' || contender, :rows / 2, :'work' || '/tmp/' || contender || '.' || form, form)
FROM source, (VALUES ('text'), ('binary')) AS f (form)
WHERE contender IN ('scru64', 'nextval', 'gen_random_uuid', 'uuidv7')
\gexec

INSERT INTO contender (subject, contender, before, statement)
SELECT 'COPY in, ' || form, contender,
	   format('TRUNCATE %I', 'into ' || contender),
	   format('COPY %I FROM %L (FORMAT %s)',
			  'into ' || contender, :'work' || '/tmp/' || contender || '.' || form, form)
FROM source, (VALUES ('text'), ('binary')) AS f (form)
WHERE contender IN ('scru64', 'nextval', 'gen_random_uuid', 'uuidv7')
ORDER BY form, place;

CALL measure('COPY in, text', :rounds);
CALL measure('COPY in, binary', :rounds);

SELECT format('DROP TABLE IF EXISTS %I', 'into ' || contender) FROM source
\gexec
