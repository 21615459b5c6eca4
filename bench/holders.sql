-- What pgbench has logged of the holders' turns, minute by minute, and what is left of them.
CREATE TEMP TABLE turn (client integer, number integer, took float8, script integer, ended integer, us integer, late float8);
\copy turn FROM PROGRAM 'cat turns.*' (DELIMITER ' ');
SELECT minute, round(count(*) / 60.0, 1) AS "turns/s",
	   percentile_disc(ARRAY[0.5, 0.99, 1]) WITHIN GROUP (ORDER BY round((took - late)::numeric / 1000, 1)) AS "ms: median, 99%, max"
FROM (SELECT (ended - min(ended) OVER ()) / 60 + 1 AS minute, took, late FROM turn) AS t
GROUP BY minute ORDER BY minute;
SELECT round(:used::numeric / :seconds, 1) AS "% of a core", (SELECT count(*) FROM scru64_realm.ledger) AS ledger,
	   n_dead_tup AS "dead rows", autovacuum_count AS vacuums, pg_total_relation_size(relid) / 1024 AS kB
FROM pg_stat_user_tables WHERE relname = 'ledger';
