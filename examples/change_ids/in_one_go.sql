-- Change the type of IDs, and of all that depends on them: doc/coming-from.md and doc/plain.md
-- say how.  Run this by \i in psql, in a transaction, after
--
-- \set table account                      of the IDs
-- \set column id
-- \set type scru64                        of the new IDs
-- \set default scru64_generate()          of the new IDs
-- CREATE FUNCTION pg_temp.new_id(...)     from the old ID, in its type, to the new one
--
-- The query reads from the catalogs what depends on the IDs.  It returns statements, which psql
-- runs because of \gexec.  To see them first, write ; in its place.
--
-- Not covered: materialized views, rules on tables, policies, generated columns, triggers OF the
--     column, publications with a WHERE; views, checks and indexes that use the ID as a number; a
--     table partitioned by the ID that has row security or is in a publication.  A statement fails:
--     ROLLBACK, drop what the error names, begin again, and create it again afterwards.
-- Not changed: columns that refer to the ID without a foreign key.
-- Lost: defaults of columns that refer to the ID; comments on foreign keys, and on triggers and
--     columns of views.
-- Enabled: triggers that were disabled, of a view, a foreign key or a table partitioned by the ID.
-- Kept: the rest.  A foreign key that was NOT VALID still is, and its references to missing rows
--     become null.

LOCK TABLE :table;

WITH RECURSIVE id (rel, num) AS (    -- the ID, and the columns that refer to it
    SELECT attrelid, attnum FROM pg_attribute WHERE attrelid = :'table'::regclass AND attname = :'column'
    UNION
    SELECT conrelid, k
    FROM id JOIN pg_constraint ON contype = 'f' AND conparentid = 0 AND confrelid = rel,
        unnest(conkey, confkey) AS u (k, referred)
    WHERE referred = num
), parent AS (                       -- tables that such a column partitions
    SELECT rel FROM id JOIN pg_partitioned_table ON partrelid = rel AND num = ANY (partattrs)
        JOIN pg_class AS c ON c.oid = rel
    WHERE NOT relrowsecurity AND NOT EXISTS (SELECT FROM pg_publication_rel WHERE prrelid = rel)
), part AS (
    SELECT inhrelid::regclass::text AS name, rel AS parent, pg_get_expr(relpartbound, c.oid) AS bound
    FROM parent JOIN pg_inherits ON inhparent = rel JOIN pg_class AS c ON c.oid = inhrelid
), used AS (
    SELECT ev_class AS view, refobjid AS rel, refobjsubid AS num
    FROM pg_depend JOIN pg_rewrite AS r ON classid = 'pg_rewrite'::regclass AND objid = r.oid
    WHERE refclassid = 'pg_class'::regclass AND refobjid <> ev_class
), view (rel, depth) AS (            -- views of such columns, views of these views, and so on
    SELECT view, 1 FROM id JOIN used USING (rel) WHERE used.num = id.num OR rel IN (TABLE parent)
    UNION
    SELECT view, depth + 1 FROM view JOIN used USING (rel)
), anew AS (                         -- dropped, and created again
    SELECT c.*, depth, (pg_identify_object('pg_class'::regclass, oid, 0)).identity AS name
    FROM pg_class AS c JOIN (SELECT rel, 0 AS depth FROM parent
                             UNION SELECT rel, max(depth) FROM view GROUP BY rel) AS r ON rel = oid
), fkey AS (
    SELECT format('ALTER TABLE %s %%s CONSTRAINT %I ', conrelid::regclass, conname) AS alter_table,
        pg_get_constraintdef(oid) AS def
    FROM pg_constraint
    WHERE contype = 'f' AND conparentid = 0
        AND (conrelid IN (TABLE parent) OR confrelid IN (TABLE parent)
             OR EXISTS (SELECT FROM id WHERE rel = conrelid AND num = ANY (conkey)))
), step (n, statement) AS (         -- what psql runs, in the order of n
    SELECT 1, format('LOCK TABLE %s', rel::regclass) FROM id
    UNION SELECT 2, format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', attrelid::regclass, attname)
        FROM id JOIN pg_attribute ON attrelid = rel AND attnum = num WHERE attidentity <> ''
    -- take apart
    UNION SELECT 100 - depth, 'DROP VIEW ' || name FROM anew WHERE depth > 0
    UNION SELECT 101, format(alter_table, 'DROP') FROM fkey
    UNION SELECT 102, format('CREATE TEMP TABLE like_%s (LIKE %s INCLUDING ALL EXCLUDING INDEXES)', oid, name)
        FROM anew WHERE depth = 0
    UNION SELECT 103, format('ALTER TABLE %s DETACH PARTITION %s', parent::regclass, name) FROM part
    UNION SELECT 104, 'DROP TABLE ' || name FROM anew WHERE depth = 0
    -- change the columns, of partitions in place of their parent
    UNION SELECT 105, format('ALTER TABLE %s %s', coalesce(name, rel::regclass::text), string_agg(format(
            'ALTER %I DROP DEFAULT, ALTER %1$I TYPE %s USING pg_temp.new_id(%1$I)', attname, :'type'), ', '))
        FROM id JOIN pg_attribute ON attrelid = rel AND attnum = num
            LEFT JOIN (SELECT name, parent FROM part
                       UNION SELECT 'pg_temp.like_' || rel, rel FROM parent) AS p ON parent = rel
        GROUP BY rel, name
    -- put together
    UNION SELECT 106, format('CREATE TABLE %s (LIKE pg_temp.like_%s INCLUDING ALL) PARTITION BY %s',
            name, oid, pg_get_partkeydef(oid)) FROM anew WHERE depth = 0
    UNION SELECT 107, format('ALTER TABLE %s ADD CONSTRAINT %I %s', name, conname, pg_get_constraintdef(c.oid))
        FROM anew JOIN pg_constraint AS c ON conrelid = anew.oid AND contype IN ('p', 'u', 'x')
    UNION SELECT 107, pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid IN (TABLE parent)
            AND indexrelid NOT IN (SELECT conindid FROM pg_constraint WHERE conrelid = indrelid)
    UNION SELECT 108, format('ALTER TABLE %s ATTACH PARTITION %s %s', parent::regclass, name,
            regexp_replace(bound, '(''[^'']*'')', 'pg_temp.new_id(\1)', 'g')) FROM part
    UNION SELECT 109, format(alter_table, 'ADD') || def FROM fkey
    UNION SELECT 109, format('ALTER TABLE %s ALTER %I SET DEFAULT %s', :'table', :'column', :'default')
    UNION SELECT 109 + depth, format('CREATE VIEW %s%s AS %s', name,
            ' WITH (' || array_to_string(reloptions, ', ') || ')', pg_get_viewdef(oid)) FROM anew WHERE depth > 0
    UNION SELECT 200, format('ALTER TABLE %s OWNER TO %s', name, relowner::regrole) FROM anew
    UNION SELECT 201, format('GRANT %s %s ON %s TO %s%s', privilege_type, cols, name,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
            CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END)
        FROM (SELECT name, relacl, '' FROM anew
              UNION SELECT name, attacl, format('(%I)', attname) FROM anew JOIN pg_attribute ON attrelid = oid
             ) AS a (name, acl, cols), aclexplode(acl)
    UNION SELECT 202, pg_get_triggerdef(t.oid)
        FROM anew JOIN pg_trigger AS t ON tgrelid = anew.oid AND NOT tgisinternal
    UNION SELECT 202, pg_get_ruledef(r.oid)
        FROM anew JOIN pg_rewrite AS r ON ev_class = anew.oid AND rulename <> '_RETURN'
    UNION SELECT 202, format('COMMENT ON %s %s IS %L', CASE depth WHEN 0 THEN 'TABLE' ELSE 'VIEW' END, name,
            obj_description(oid, 'pg_class')) FROM anew
)
SELECT statement FROM step ORDER BY n \gexec
DROP FUNCTION pg_temp.new_id;
