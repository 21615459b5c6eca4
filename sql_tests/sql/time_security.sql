--
-- What a user may see and call decides nothing else than that.
--
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_scru64_reader;
RESET client_min_messages;

SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';

CREATE ROLE regress_scru64_reader;

--
-- Row level security: the index on id helps, whoever asks
--
CREATE TABLE scru64_mail (id scru64 PRIMARY KEY, reader name NOT NULL);
INSERT INTO scru64_mail
	SELECT scru64_from_parts(timestamptz '2026-01-01 00:00:00+00' + i * interval '256 milliseconds', i),
		   CASE i % 3 WHEN 0 THEN 'regress_scru64_reader' ELSE 'somebody' END
	FROM generate_series(0, 9999) AS i;
ALTER TABLE scru64_mail ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON scru64_mail USING (reader = current_user);
CREATE POLICY not_too_old ON scru64_mail AS RESTRICTIVE USING (id >= timestamptz '2026-01-01 00:20:00');
GRANT SELECT, DELETE ON scru64_mail TO regress_scru64_reader;
ANALYZE scru64_mail;
SET ROLE regress_scru64_reader;
EXPLAIN (COSTS OFF) SELECT * FROM scru64_mail WHERE id < timestamptz '2026-01-01 00:20:10';
SELECT count(*), min(scru64_timestamp(id)), max(scru64_timestamp(id)), count(DISTINCT reader) AS readers
FROM scru64_mail WHERE id < timestamptz '2026-01-01 00:20:10';
SELECT count(*) FROM scru64_mail WHERE scru64_timestamp(id) < '2026-01-01 00:20:10';
BEGIN;
DELETE FROM scru64_mail WHERE id < timestamptz '2026-01-01 00:20:10';
SELECT count(*) FROM scru64_mail WHERE id < timestamptz '2026-01-01 00:20:20';
ROLLBACK;
RESET ROLE;

-- Of a join, too: what a time is made into tells nobody what the rows are that it is compared with.
CREATE TABLE scru64_visit (since timestamptz);
INSERT INTO scru64_visit VALUES ('2026-01-01 00:42:00');
ANALYZE scru64_visit;
GRANT SELECT ON scru64_visit TO regress_scru64_reader;
SET ROLE regress_scru64_reader;
EXPLAIN (COSTS OFF) SELECT m.id FROM scru64_visit AS v JOIN scru64_mail AS m ON m.id >= v.since;
EXPLAIN (COSTS OFF) SELECT m.id FROM scru64_visit AS v JOIN scru64_mail AS m ON m.id > v.since;
SELECT count(*) FROM scru64_visit AS v JOIN scru64_mail AS m ON m.id >= v.since;
RESET ROLE;

DROP TABLE scru64_mail, scru64_visit;
DROP ROLE regress_scru64_reader;
