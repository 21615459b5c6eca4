--
-- A role that may look into no schema but its own, and search_paths that have little or nothing:
-- all of the type is there, as bigint is.
--
CREATE ROLE regress_scru64_alone;
CREATE SCHEMA AUTHORIZATION regress_scru64_alone;
SET scru64.node_spec = '0x81/8';
BEGIN;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
SET LOCAL ROLE regress_scru64_alone;
CREATE TABLE regress_scru64_alone.event (
	id scru64 DEFAULT scru64_generate() PRIMARY KEY, parent scru64, c char(12) DEFAULT '0u2r85hm2pt3',
	CHECK (parent IS DISTINCT FROM id), CHECK (id >= timestamptz '2026-01-01 00:00+00')
);
CREATE FUNCTION regress_scru64_alone.newer(a scru64, b scru64) RETURNS boolean LANGUAGE plpgsql AS
	'BEGIN RETURN CASE a WHEN b THEN false ELSE a > b AND NULLIF(a, b) >= timestamptz ''2026-01-01 00:00+00'' END; END';
SELECT $$
INSERT INTO regress_scru64_alone.event DEFAULT VALUES;
INSERT INTO regress_scru64_alone.event (id, parent) SELECT id, lag(id) OVER (ORDER BY id) FROM scru64_generate(3) AS id;
SELECT count(*) > 3 AS rows, bool_and(id IS DISTINCT FROM parent) AS distinct, bool_and(NULLIF(id, parent) = id) AS nullif,
	bool_and(CASE parent WHEN id THEN false ELSE true END) AS "case", bool_and((1, id) > (0, parent)) AS row,
	bool_and(id IN ('0u2r85hm2pt3', id)) AS in, bool_and(id BETWEEN '0u2r85hm2pt3' AND now() + interval '1 hour') AS between,
	bool_and(GREATEST(id, parent) = id) AS greatest, min(id) < max(id) AS aggregates,
	count(parent) FILTER (WHERE regress_scru64_alone.newer(id, parent)) > 1 AS plpgsql
FROM regress_scru64_alone.event;
SELECT count(*) > 3 AS using FROM regress_scru64_alone.event AS a JOIN regress_scru64_alone.event AS b USING (id);
SELECT bool_and(count > 0) AS range FROM (SELECT count(*) OVER (ORDER BY id RANGE '1 hour' PRECEDING) FROM regress_scru64_alone.event) AS w;
SELECT id::bigint, id::text, id::varchar, id::char(12), id::bytea, id::timestamptz = scru64_timestamp(id) AS timestamptz, scru64_node_ctr(id)
FROM CAST('0u2r85hm2pt3' AS scru64) AS id;
SELECT 109964681944955175::scru64, '0u2r85hm2pt3'::text::scru64, '0u2r85hm2pt3'::varchar::scru64, '\x0186ac4bad2af927'::bytea::scru64,
	timestamptz '2026-01-01 00:00+00'::scru64 = scru64_min('2026-01-01 00:00+00') AS timestamptz,
	scru64_max('2026-01-01 00:00+00'), scru64_from_parts('2026-01-01 00:00+00', 1), ARRAY['0u2r85hm2pt3']::scru64[];
UPDATE regress_scru64_alone.event SET parent = c WHERE parent IS NULL;
DELETE FROM regress_scru64_alone.event WHERE parent IS NOT DISTINCT FROM '0u2r85hm2pt3' RETURNING parent;
$$ AS statements \gset
SET LOCAL search_path = '';
:statements
SET LOCAL search_path = pg_catalog, pg_temp;
:statements
ROLLBACK;
RESET scru64.node_spec;
DROP SCHEMA regress_scru64_alone;
DROP ROLE regress_scru64_alone;
