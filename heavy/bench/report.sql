-- heavy/bench/report.sql
--		The measurements, a row for each contender of a subject: the median of its rounds,
--		its ratio to the median of the contender it is compared with, and the spread: the
--		greatest minus the least round, of the median. "wanted" is the wanted ratio.

SET search_path = bench, public;

CREATE TEMPORARY VIEW figure AS
SELECT min(place) AS place, subject, contender, unit,
	   -- missed rows: all count
	   CASE unit WHEN 'rows' THEN sum(value) ELSE percentile_cont(0.5) WITHIN GROUP (ORDER BY value) END AS median,
	   max(value) - min(value) AS width
FROM result GROUP BY subject, contender, unit;

-- One of each subject, if it is about scru64 or there are ways of doing one thing
CREATE TEMPORARY VIEW compared_with AS
SELECT subject, median AS compared FROM figure
WHERE contender IN ('scru64', 'a call for each', '100 nodes', 'configured node', 'plain inserts, no reader') AND median > 0;

WITH wanted (subject, contender, ratio) AS (
	VALUES ('one ID', 'clock_timestamp', 'at least 1.92'),
		('one ID', 'nextval', 'at least 12'),
		('one ID', 'gen_random_uuid', 'at least 59'),
		('one ID, 2 sessions', 'nextval', 'at least 5'),
		('2 sessions', 'nextval', 'at most 0.2'),
		('one ID, nodes in turn', '1,024 nodes', 'at most 2'),
		('many IDs, in FROM', 'scru64_generate(n)', 'at most 1'),
		('INSERT by DEFAULT', 'nextval', 'at least 1'),
		('INSERT by DEFAULT', 'gen_random_uuid', 'at least 1'),
		('INSERT by DEFAULT', 'uuidv7', 'at least 1'),
		('text out', 'bigint', 'at least 1.25'),
		('text out', 'uuid', 'at least 3.3'),
		('text in', 'bigint', 'at least 1.25'),
		('text in', 'uuid', 'at least 3.3'),
		('lookups by primary key', 'bigint', 'at least 0.97'),
		('range scan, half of the table', 'bigint', 'at least 0.97'),
		('sort', 'bigint', 'at least 0.97'),
		('hash join', 'bigint', 'at least 0.97'),
		('hash aggregate', 'bigint', 'at least 0.97'),
		('CREATE INDEX', 'bigint', 'at least 0.97'),
		('size of that index', 'bigint', '1'),
		('id = ''...''', 'bigint', 'at least 0.97'),
		('ORDER BY id DESC LIMIT 20', 'bigint', 'at least 0.91'),
		('id >= now() - interval ''1 hour''', 'timestamptz', 'at least 0.91'),
		('rows of the last hour, 100 times', 'timestamptz, own index', 'at least 1')
	UNION
	SELECT subject, 'bigint', 'at least 0.25' FROM figure WHERE subject LIKE 'planning, %'
	UNION
	SELECT subject, c.contender, c.ratio
	FROM figure, (VALUES ('nextval', 'at most 0.9'), ('nextval, cache 100', 'at most 1.1')) AS c (contender, ratio)
	WHERE subject LIKE 'COPY, a table each, %'
)
SELECT subject, contender,
	   round(median::numeric, CASE WHEN abs(median) < 10 THEN 2 WHEN abs(median) < 100 THEN 1 ELSE 0 END) AS median, unit,
	   round((median / compared)::numeric, 3) AS ratio, w.ratio AS wanted,
	   CASE WHEN width > 0 AND median > 0 THEN round((100 * width / median)::numeric) || '%' END AS spread
FROM figure LEFT JOIN compared_with USING (subject) LEFT JOIN wanted AS w USING (subject, contender)
ORDER BY min(place) OVER (PARTITION BY subject), place;
