--
-- All functions where functions of extensions are rarely called: where there is no snapshot, or
-- another process, or what may not generate.  Each call ends, by an error or not; no process
-- crashes.  (t/generate/odd_places.pl has the places that psql cannot reach.  Functions of SQL are
-- not among them: without a snapshot PostgreSQL crashes where it plans an IMMUTABLE one, also one of
-- its own, such as lpad('x', 3).  The realm has five, for its owner alone.)
--
SET client_min_messages = warning;
DROP DATABASE IF EXISTS scru64_regression_odd;
RESET client_min_messages;
CREATE DATABASE scru64_regression_odd TEMPLATE template0;
\set original :DBNAME
\c scru64_regression_odd
CREATE EXTENSION scru64;
\set VERBOSITY sqlstate
CREATE EXTENSION scru64_realm;
\set VERBOSITY default
\set ECHO none
\i sql_tests/odd_places.sql
\set ECHO all
\a
\t
SET scru64.node_spec = '0x6a/8';
-- There is no node but this one, whatever there was before.
SELECT scru64_set_ceiling();

-- A statement
SELECT odd.try('statement');
SELECT odd.try('list of a SELECT', 'SELECT format(''%%s'', %2$s)');

--
-- No snapshot: the CHECK of a domain, for a variable that has no value yet, or gets one
--
\set ECHO none
\o /dev/null
SELECT format('DO %L', odd.block('DO, after COMMIT', 'COMMIT;')) \gexec
SELECT format('DO %L', odd.block('DO, after ROLLBACK', 'ROLLBACK;')) \gexec
SELECT format('CREATE PROCEDURE odd.procedure() LANGUAGE plpgsql AS %L', odd.block('procedure, after COMMIT', 'COMMIT;')) \gexec
CALL odd.procedure();
-- CREATE INDEX CONCURRENTLY has committed when its event trigger is called.
SELECT format('CREATE FUNCTION odd.at_event() RETURNS event_trigger LANGUAGE plpgsql AS %L', odd.block('event trigger', '')) \gexec
CREATE TABLE odd.row (n integer, made integer) WITH (autovacuum_enabled = off, parallel_workers = 2);
CREATE EVENT TRIGGER odd ON ddl_command_end EXECUTE FUNCTION odd.at_event();
CREATE INDEX CONCURRENTLY odd_index ON odd.row (n);
DROP EVENT TRIGGER odd;
\o
\set ECHO all
-- What the error says
CREATE DOMAIN odd.watermark AS text CHECK (scru64_watermark() IS NOT NULL);
DO $$ BEGIN COMMIT; DECLARE v odd.watermark; BEGIN NULL; END; END $$;

--
-- What evaluates expressions, and is no query
--
INSERT INTO odd.row SELECT generate_series(1, 3);
CREATE TABLE odd.parted (n integer) PARTITION BY LIST (n);
CREATE FUNCTION odd.trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM odd.wrapped(NEW.n); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER odd AFTER UPDATE ON odd.row DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION odd.trigger();
SELECT odd.try('default', 'ALTER TABLE odd.row ALTER made SET DEFAULT num_nulls(%1$s); INSERT INTO odd.row VALUES (1)');
SELECT odd.try('COPY', 'ALTER TABLE odd.row ALTER made SET DEFAULT num_nulls(%1$s); COPY odd.row (n) FROM PROGRAM ''echo 1''');
SELECT odd.try('COPY, CHECK', 'ALTER TABLE odd.row ADD CHECK (num_nulls(%1$s) >= 0); COPY odd.row (n) FROM PROGRAM ''echo 1''');
SELECT odd.try('ADD COLUMN', 'ALTER TABLE odd.row ADD other integer DEFAULT num_nulls(%1$s)');
SELECT odd.try('domain', 'SELECT ''''::odd.of_%3$s');
SELECT odd.try('partition bound', 'CREATE TABLE odd.part PARTITION OF odd.parted FOR VALUES IN (num_nulls(%1$s))');
SELECT odd.try('planner', 'EXPLAIN SELECT FROM odd.row WHERE n < num_nulls(%1$s)');
SELECT odd.try('materialized view', 'CREATE MATERIALIZED VIEW odd.view AS SELECT num_nulls(%1$s); REFRESH MATERIALIZED VIEW odd.view');
-- A function that says that it is IMMUTABLE
SELECT odd.try('index', 'SELECT odd.wrap($$%1$s$$, ''IMMUTABLE''); CREATE INDEX ON odd.row (odd.wrapped(n)); ANALYZE odd.row');
SELECT odd.try('generated column', 'SELECT odd.wrap($$%1$s$$, ''IMMUTABLE''); CREATE TABLE odd.other (n integer, made integer GENERATED ALWAYS AS (odd.wrapped(n)) STORED); INSERT INTO odd.other VALUES (1)');
SELECT odd.try('deferred trigger', 'SELECT odd.wrap($$%1$s$$, ''VOLATILE''); UPDATE odd.row SET n = n; SET CONSTRAINTS ALL IMMEDIATE');
-- ... and one that says that it is PARALLEL SAFE
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET parallel_leader_participation = off;
SELECT odd.try('parallel worker', 'SELECT odd.wrap($$%1$s$$, ''STABLE PARALLEL SAFE''); SELECT odd.wrapped(n) FROM odd.row');

--
-- Operators of a role's own, with the estimator of scru64
--
CREATE FUNCTION odd.unary(integer) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN true; END';
CREATE FUNCTION odd.binary(anyelement, anyelement) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN true; END';
CREATE OPERATOR odd.<<< (RIGHTARG = integer, FUNCTION = odd.unary, RESTRICT = scru64_ineqsel);
CREATE OPERATOR odd.<<< (LEFTARG = anyelement, RIGHTARG = anyelement, FUNCTION = odd.binary, RESTRICT = scru64_ineqsel);
EXPLAIN (COSTS OFF) SELECT FROM odd.row WHERE OPERATOR(odd.<<<) n AND n < 3;
EXPLAIN (COSTS OFF) SELECT FROM odd.row WHERE n OPERATOR(odd.<<<) 1 AND n::text OPERATOR(odd.<<<) 'a' AND row OPERATOR(odd.<<<) row;

--
-- The end of a transaction: a cursor WITH HOLD, and a deferred trigger.  There is no BEGIN, because
-- a PostgreSQL with assertions crashes where an error is caught at COMMIT.
--
DECLARE held CURSOR WITH HOLD FOR SELECT odd.try('cursor WITH HOLD');
CREATE OR REPLACE FUNCTION odd.trigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM odd.try('end of transaction'); RETURN NULL; END $$;
UPDATE odd.row SET n = n WHERE n = 1;
FETCH held;

--
-- Where functions do not what they do in a statement.  (Some PostgreSQLs may have no snapshot at
-- the event.)
--
SELECT * FROM odd.report() WHERE place <> 'event trigger' OR functions <> 'scru64_watermark()';

\c :original
DROP DATABASE scru64_regression_odd;
