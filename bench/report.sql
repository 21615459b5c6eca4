-- bench/report.sql
--		The results: ratios first, then medians and the spread of the rounds; and
--		how they compare with what was set out to be reached.

SET search_path = bench, public;

CREATE FUNCTION short(value double precision) RETURNS numeric LANGUAGE sql IMMUTABLE
RETURN round(value::numeric, CASE WHEN abs(value) < 10 THEN 2 WHEN abs(value) < 100 THEN 1 ELSE 0 END);

SELECT subject, contender,
	   CASE WHEN unit NOT IN ('share', 'times') THEN short(ratio) END AS ratio,
	   short(median) AS median, unit,
	   CASE WHEN rounds > 1 THEN short(least) || ' - ' || short(most) END AS spread,
	   rounds
FROM summary
ORDER BY subject_place, subject, place;

-- A contender's ratio to scru64 in a subject; null if it does not take part
CREATE FUNCTION ratio(subject text, contender text) RETURNS double precision LANGUAGE sql STABLE
RETURN (SELECT s.ratio FROM summary AS s WHERE s.subject = $1 AND s.contender = $2);
CREATE FUNCTION median(subject text, contender text) RETURNS double precision LANGUAGE sql STABLE
RETURN (SELECT s.median FROM summary AS s WHERE s.subject = $1 AND s.contender = $2);

WITH reach (what, measured, least, most) AS (
	VALUES
	('one ID: of clock_timestamp()', 1 / ratio('one ID', 'clock_timestamp'), NULL, 12 / 23.0),
	('one ID: of nextval()', 1 / ratio('one ID', 'nextval'), NULL, 1 / 12.0),
	('one ID: of gen_random_uuid()', 1 / ratio('one ID', 'gen_random_uuid'), NULL, 1 / 60.0),
	('IDs of two sessions, over no-op: times nextval()', ratio('one ID, 2 sessions', 'nextval'), 5, NULL),
	('IDs of two sessions, all in all: times nextval()', 1 / ratio('2 sessions', 'nextval'), 5, NULL),
	('one ID, 1,024 nodes in turn: of that with 100', (
		SELECT median('one ID, nodes in turn', '1024 nodes') / median('one ID, nodes in turn', '100 nodes')), NULL, 2),
	('INSERT by DEFAULT: of bigserial''s time', 1 / ratio('INSERT by DEFAULT', 'nextval'), NULL, 1),
	('INSERT by DEFAULT: of the fastest uuid''s time', 1 / (
		SELECT min(ratio('INSERT by DEFAULT', contender)) FROM source WHERE type = 'uuid'), NULL, 1),
	('text out: of bigint''s', 1 / ratio('text out', 'bigint'), NULL, 0.8),
	('text out: of uuid''s', 1 / ratio('text out', 'uuid'), NULL, 0.3),
	('text in: of bigint''s', 1 / ratio('text in', 'bigint'), NULL, 0.8),
	('text in: of uuid''s', 1 / ratio('text in', 'uuid'), NULL, 0.3),
	('lookups: of bigint''s', 1 / ratio('lookups by primary key', 'bigint'), NULL, 1.03),
	('range scan: of bigint''s', 1 / ratio('range scan, half of the table', 'bigint'), NULL, 1.03),
	('sort: of bigint''s', 1 / ratio('sort', 'bigint'), NULL, 1.03),
	('hash join: of bigint''s', 1 / ratio('hash join', 'bigint'), NULL, 1.03),
	('hash aggregate: of bigint''s', 1 / ratio('hash aggregate', 'bigint'), NULL, 1.03),
	('CREATE INDEX: of bigint''s', 1 / ratio('CREATE INDEX', 'bigint'), NULL, 1.03),
	('size of an index: of bigint''s', 1 / ratio('size of that index', 'bigint'), 1, 1),
	('capacity used: least of node_id_size 1 to 16', (
		SELECT min(median) FROM summary WHERE subject = 'capacity used'), 0.9, NULL),
	('last hour''s rows: of a timestamptz index''s time',
		1 / ratio('rows of the last hour, 100 times', 'timestamptz, own index'), NULL, 1),
	('last hour''s rows: estimated, of the truth', median('last hour: rows estimated, of the truth', 'scru64'), 0.5, 2)
)
SELECT what AS "set out to reach",
	   round(measured::numeric, 3) AS measured,
	   round(least::numeric, 3) AS "at least", round(most::numeric, 3) AS "at most",
	   CASE WHEN coalesce(measured >= least, true) AND coalesce(measured <= most, true) THEN 'yes' ELSE 'NO' END AS reached
FROM reach
WHERE measured IS NOT NULL;
