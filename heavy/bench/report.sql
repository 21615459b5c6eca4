-- heavy/bench/report.sql
--		The measurements, a row for each contender of a subject: the median of its rounds,
--		its ratio to the median of the contender it is compared with, and the spread: the
--		greatest minus the least round, of the median.

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
WHERE contender IN ('scru64', 'a call for each', '100 nodes', 'plain inserts, no reader') AND median > 0;

SELECT subject, contender,
	   round(median::numeric, CASE WHEN abs(median) < 10 THEN 2 WHEN abs(median) < 100 THEN 1 ELSE 0 END) AS median, unit,
	   round((median / compared)::numeric, 3) AS ratio,
	   CASE WHEN width > 0 AND median > 0 THEN round((100 * width / median)::numeric) || '%' END AS spread
FROM figure LEFT JOIN compared_with USING (subject)
ORDER BY min(place) OVER (PARTITION BY subject), place;
