-- Change the type of IDs, and of all that depends on them: doc/coming-from.md and doc/plain.md
-- say how.  Run this by \i in psql -b, in a transaction, after
--
-- \set table account                      of the IDs
-- \set column id
-- \set type scru64                        of the new IDs
-- \set default scru64_generate()          of the new IDs
-- CREATE FUNCTION pg_temp.new_id(...)     from the old ID, in its type, to the new one
--
-- The query reads from the catalogs what depends on the IDs, and writes statements for it into the
-- table pg_temp.steps_in_one_go.  A trial truncates the tables, runs the statements, and is undone.
-- Objects that cannot be changed with the ID are listed, and stop the file.  Without any, psql runs
-- the statements because of \gexec.  To see them first, write ; in its place.
--
-- Not changed: columns that refer to the ID without a foreign key; bodies of functions.
-- Lost: comments on foreign keys, and on triggers and columns of views.  Of a table partitioned by the
--     ID, comments on indexes and constraints, and the statistics targets and options of columns.
--     Of this table, and of views, the grantors of privileges: the owner grants all of them.
-- Enabled: triggers of foreign keys that were disabled.
-- Kept: the rest.  A foreign key that was NOT VALID still is, and its references to missing rows
--     become null.

-- A failure rolls the whole transaction back, also if a statement after this file fails.
\set ON_ERROR_ROLLBACK off

LOCK TABLE :table;

CREATE FUNCTION pg_temp.new_bound(old :table.:"column"%TYPE) RETURNS :type LANGUAGE plpgsql AS $$
BEGIN
    IF pg_temp.new_id(old) IS NULL THEN
        RAISE EXCEPTION 'the bound % has no new ID', old;
    END IF;
    RETURN pg_temp.new_id(old);
END
$$;

SELECT EXISTS (SELECT FROM :table WHERE EXISTS (SELECT FROM pg_partitioned_table WHERE partstrat = 'h')
    AND hash_record_extended(ROW(:"column"), 0) <> hash_record_extended(ROW(pg_temp.new_id(:"column")), 0)) AS rehashed \gset

CREATE TEMP TABLE steps_in_one_go ON COMMIT DROP AS
WITH RECURSIVE id (rel, num) AS (    -- the ID, and the columns that refer to it
    SELECT attrelid, attnum FROM pg_attribute WHERE attrelid = :'table'::regclass AND attname = :'column'
    UNION
    SELECT conrelid, k
    FROM id JOIN pg_constraint ON contype = 'f' AND conparentid = 0 AND confrelid = rel,
        unnest(conkey, confkey) AS u (k, referred)
    WHERE referred = num
), col (rel, num, name, refers) AS (  -- the same, also of partitions and of tables that inherit
    SELECT rel, num, attname, NOT (rel = :'table'::regclass AND attname = :'column')
    FROM id JOIN pg_attribute ON attrelid = rel AND attnum = num
    UNION
    SELECT inhrelid, attnum, name, refers
    FROM col JOIN pg_inherits ON inhparent = rel JOIN pg_attribute ON attrelid = inhrelid AND attname = name
), parent AS (                       -- tables that such a column partitions
    SELECT DISTINCT rel FROM col JOIN pg_partitioned_table ON partrelid = rel AND num = ANY (partattrs)
), part AS (
    SELECT inhrelid::regclass::text AS name, rel AS parent, pg_get_expr(relpartbound, c.oid) AS bound
    FROM parent JOIN pg_inherits ON inhparent = rel JOIN pg_class AS c ON c.oid = inhrelid
), seq AS (                          -- sequences that would be dropped with such a table
    SELECT objid::regclass AS name, format('%s.%I', refobjid::regclass, attname) AS owner
    FROM pg_depend JOIN pg_class AS c ON classid = 'pg_class'::regclass AND c.oid = objid AND relkind = 'S'
        JOIN pg_attribute ON refclassid = 'pg_class'::regclass AND attrelid = refobjid AND attnum = refobjsubid
    WHERE deptype = 'a' AND refobjid IN (TABLE parent)
), used AS (
    SELECT ev_class AS view, refobjid AS rel, refobjsubid AS num
    FROM pg_depend JOIN pg_rewrite AS r ON classid = 'pg_rewrite'::regclass AND objid = r.oid
        JOIN pg_class AS c ON c.oid = ev_class AND relkind = 'v'
    WHERE refclassid = 'pg_class'::regclass AND refobjid <> ev_class
), view (rel, depth) AS (            -- views of such columns, views of these views, and so on
    SELECT view, 1 FROM col JOIN used USING (rel) WHERE used.num = col.num OR rel IN (TABLE parent)
    UNION
    SELECT view, depth + 1 FROM view JOIN used USING (rel)
), anew AS (                         -- dropped, and created again
    SELECT c.*, depth, (pg_identify_object('pg_class'::regclass, oid, 0)).identity AS name
    FROM pg_class AS c JOIN (SELECT rel, 0 AS depth FROM parent
                             UNION SELECT rel, max(depth) FROM view GROUP BY rel) AS r ON rel = oid
), fkey AS (
    SELECT oid, format('ALTER TABLE %s %%s CONSTRAINT %I ', conrelid::regclass, conname) AS alter_table,
        pg_get_constraintdef(oid) AS def
    FROM pg_constraint
    WHERE contype = 'f' AND conparentid = 0
        AND (conrelid IN (TABLE parent) OR confrelid IN (TABLE parent)
             OR EXISTS (SELECT FROM id WHERE rel = conrelid AND num = ANY (conkey)))
), refused (what) AS (              -- objects that no statement here changes
    SELECT format('%s uses %s.%I', pg_describe_object(classid, objid, objsubid), rel::regclass, name)
    FROM col JOIN pg_depend AS d ON refclassid = 'pg_class'::regclass AND refobjid = rel AND refobjsubid = num
        LEFT JOIN pg_attrdef AS def ON classid = 'pg_attrdef'::regclass AND objid = def.oid
        LEFT JOIN pg_rewrite AS r ON classid = 'pg_rewrite'::regclass AND objid = r.oid
        LEFT JOIN pg_trigger AS t ON classid = 'pg_trigger'::regclass AND objid = t.oid
    WHERE (classid <> 'pg_class'::regclass OR objsubid <> 0)
        AND classid NOT IN ('pg_constraint'::regclass, 'pg_statistic_ext'::regclass)
        AND (adrelid = rel AND adnum = num AND NOT refers) IS NOT TRUE
        AND (ev_class IN (SELECT rel FROM view)) IS NOT TRUE
        AND coalesce(tgparentid, 0) = 0
    UNION SELECT format('column %s.%I has the domain %s: change its type to the type of the domain',
            rel::regclass, name, atttypid::regtype)
        FROM col JOIN pg_attribute ON attrelid = rel AND attnum = num JOIN pg_type AS t ON t.oid = atttypid
        WHERE typtype = 'd'
    UNION SELECT format('column %s.%I refers to the ID and is an identity: drop the identity', rel::regclass, name)
        FROM col JOIN pg_attribute ON attrelid = rel AND attnum = num WHERE refers AND attidentity <> ''
    UNION SELECT format('column %1$s.%2$I is inherited from %3$s.%2$I, which does not change', rel::regclass, name, inhparent::regclass)
        FROM col JOIN pg_inherits ON inhrelid = rel JOIN pg_attribute AS p ON p.attrelid = inhparent AND attname = name
        WHERE (inhparent, attnum) NOT IN (SELECT rel, num FROM col)
    UNION SELECT pg_describe_object('pg_attrdef'::regclass, d.oid, 0) FROM view JOIN pg_attrdef AS d ON adrelid = rel
    UNION SELECT format('table %s is partitioned by %s.%I and has %s', rel::regclass, rel::regclass, name, what)
        FROM parent JOIN col USING (rel) JOIN pg_class AS c ON c.oid = rel
            JOIN pg_partitioned_table ON partrelid = rel AND num = ANY (partattrs), LATERAL (VALUES
            (partnatts > 1, 'another column in its partition key'),
            (partstrat = 'h' AND :'rehashed', 'HASH partitions, which differ for the new IDs: move its rows into a new table'),
            (EXISTS (SELECT FROM pg_attribute WHERE attrelid = rel AND attnum <> num AND attidentity <> ''),
             'another column that is an identity'),
            (relrowsecurity OR EXISTS (SELECT FROM pg_policy WHERE polrelid = rel), 'row security or policies'),
            (EXISTS (SELECT FROM pg_publication_rel WHERE prrelid = rel), 'a place in a publication'),
            (EXISTS (SELECT FROM pg_subscription_rel WHERE srrelid = rel), 'a place in a subscription'),
            (EXISTS (SELECT FROM pg_statistic_ext WHERE stxrelid = rel), 'extended statistics'),
            (EXISTS (SELECT FROM pg_constraint WHERE conrelid = rel AND contype = 'c' AND NOT convalidated),
             'a CHECK that is NOT VALID'),
            (relispartition, 'a parent: it is itself a partition'),
            (relreplident <> 'd', 'a REPLICA IDENTITY'),
            (reltablespace <> 0, 'a tablespace')) AS v (found, what)
        WHERE found
), step (n, statement) AS (         -- what psql runs, in the order of n
    SELECT 1, format('LOCK TABLE %s', rel::regclass) FROM id
    UNION SELECT 2, format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', attrelid::regclass, attname)
        FROM id JOIN pg_attribute ON attrelid = rel AND attnum = num WHERE attidentity <> ''
    UNION SELECT 3, format('ALTER SEQUENCE %s OWNED BY NONE', name) FROM seq
    -- take apart
    UNION SELECT 100 - depth, 'DROP VIEW ' || name FROM anew WHERE depth > 0
    UNION SELECT 101, format(alter_table, 'DROP') FROM fkey
    UNION SELECT 103, format('CREATE TEMP TABLE like_%s (LIKE %s INCLUDING ALL EXCLUDING INDEXES) ON COMMIT DROP', oid, name)
        FROM anew WHERE depth = 0
    UNION SELECT 104, format('ALTER TABLE %s DETACH PARTITION %s', parent::regclass, name) FROM part
    UNION SELECT 105, 'DROP TABLE ' || name FROM anew WHERE depth = 0
    -- change the columns, of partitions in place of their parent
    UNION SELECT 107, format('ALTER TABLE %s %s', coalesce(name, rel::regclass::text), string_agg(format(
            'ALTER %1$I DROP DEFAULT, ALTER %1$I TYPE %2$s USING pg_temp.new_id(%1$I::%3$s)', attname, :'type',
            (SELECT format_type(atttypid, -1) FROM pg_attribute
             WHERE attrelid = :'table'::regclass AND attname = :'column')), ', '))
        FROM id JOIN pg_attribute ON attrelid = rel AND attnum = num
            LEFT JOIN (SELECT name, parent FROM part
                       UNION SELECT 'pg_temp.like_' || rel, rel FROM parent) AS p ON parent = rel
        WHERE attinhcount = 0           -- the others change with their parents
        GROUP BY rel, name
    -- put together
    UNION SELECT 108, format('CREATE TABLE %s (LIKE pg_temp.like_%s INCLUDING ALL) PARTITION BY %s',
            name, oid, pg_get_partkeydef(oid)) FROM anew WHERE depth = 0
    UNION SELECT 109, format('ALTER TABLE %s ADD CONSTRAINT %I %s', name, conname, pg_get_constraintdef(c.oid))
        FROM anew JOIN pg_constraint AS c ON conrelid = anew.oid AND contype IN ('p', 'u', 'x')
    UNION SELECT 109, pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid IN (TABLE parent)
            AND indexrelid NOT IN (SELECT conindid FROM pg_constraint WHERE conrelid = indrelid)
    UNION SELECT 110, format('ALTER TABLE %s ATTACH PARTITION %s %s', parent::regclass, name,
            CASE WHEN bound LIKE 'FOR VALUES WITH %' THEN bound
            ELSE regexp_replace(bound, 'E?''([^'']|'''')*''|[0-9]+', 'pg_temp.new_bound(\&)', 'g') END) FROM part
    UNION SELECT 111, format(alter_table, 'ADD') || def FROM fkey
    UNION SELECT 111, format('ALTER TABLE %s ALTER %I SET DEFAULT %s', :'table', :'column', :'default')
    UNION SELECT 111 + depth, format('CREATE VIEW %s%s AS %s', name,
            ' WITH (' || array_to_string(reloptions, ', ') || ')', pg_get_viewdef(oid)) FROM anew WHERE depth > 0
    UNION SELECT 200, format('ALTER TABLE %s OWNER TO %s', name, relowner::regrole) FROM anew
    UNION SELECT 201, pg_get_triggerdef(t.oid)
        FROM anew JOIN pg_trigger AS t ON tgrelid = anew.oid AND NOT tgisinternal
    UNION SELECT 202, format('ALTER TABLE ONLY %s %s TRIGGER %I', relid::regclass,
            CASE tgenabled WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' ELSE 'ENABLE ALWAYS' END, tgname)
        FROM parent, pg_partition_tree(rel) JOIN pg_trigger ON tgrelid = relid AND NOT tgisinternal WHERE tgenabled <> 'O'
    UNION SELECT 201, pg_get_ruledef(r.oid)
        FROM anew JOIN pg_rewrite AS r ON ev_class = anew.oid AND rulename <> '_RETURN'
    UNION SELECT 201, format('COMMENT ON %s %s IS %L', CASE depth WHEN 0 THEN 'TABLE' ELSE 'VIEW' END, name,
            obj_description(oid, 'pg_class')) FROM anew
    UNION SELECT 202, format('ALTER SEQUENCE %s OWNED BY %s', name, owner) FROM seq
    -- privileges: last, because an owner may have revoked its own
    UNION SELECT 203, format('REVOKE ALL ON %s FROM %s', name, relowner::regrole) FROM anew WHERE relacl IS NOT NULL
    UNION SELECT 203, format('REVOKE ALL ON %s FROM %s', name,    -- by default privileges
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)
        FROM anew, pg_default_acl, aclexplode(defaclacl) WHERE defaclobjtype = 'r' AND grantee <> relowner
    UNION SELECT 204, format('GRANT %s %s ON %s TO %s%s', privilege_type, cols, name,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
            CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END)
        FROM (SELECT name, relacl, '' FROM anew
              UNION SELECT name, attacl, format('(%I)', attname) FROM anew JOIN pg_attribute ON attrelid = oid
             ) AS a (name, acl, cols), aclexplode(acl)
), trial (n, statement) AS (         -- only in the trial: take the rows away; let each index and check fail by itself
    SELECT 102, format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) FROM pg_constraint
        WHERE contype = 'f' AND conparentid = 0 AND confrelid IN (SELECT rel FROM col) AND oid NOT IN (SELECT oid FROM fkey)
    UNION SELECT unnest(ARRAY[102, 109]), unnest(ARRAY[format('DROP INDEX %s', i.oid::regclass), CASE
            WHEN rel NOT IN (TABLE parent) THEN pg_get_indexdef(i.oid) END])
        FROM col JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = rel AND refobjsubid = num
            JOIN pg_class AS i ON classid = 'pg_class'::regclass AND i.oid = objid AND relkind IN ('i', 'I')
        WHERE NOT relispartition AND i.oid NOT IN (SELECT conindid FROM pg_constraint WHERE contype = 'x')
    UNION SELECT unnest(ARRAY[102, 111]), unnest(ARRAY['DROP STATISTICS ' || (pg_identify_object(classid, objid, 0)).identity,
            pg_get_statisticsobjdef(objid)])
        FROM col JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = rel AND refobjsubid = num
        WHERE classid = 'pg_statistic_ext'::regclass
    UNION SELECT unnest(ARRAY[102, 111]), format('ALTER TABLE %s %s CONSTRAINT %I %s', rel::regclass,
            unnest(ARRAY['DROP', 'ADD']), conname, unnest(ARRAY['', pg_get_constraintdef(c.oid)]))
        FROM col JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = rel AND refobjsubid = num
            JOIN pg_constraint AS c ON conrelid = rel AND (classid = 'pg_constraint'::regclass AND c.oid = objid
                OR classid = 'pg_class'::regclass AND conindid = objid)
        WHERE (contype = 'c' OR contype = 'x' AND rel NOT IN (TABLE parent)) AND conislocal
    UNION SELECT 106, format(unnest(ARRAY['ALTER TABLE %s DISABLE TRIGGER USER', 'TRUNCATE ONLY %s']), rel::regclass)
        FROM col JOIN pg_class AS c ON c.oid = rel WHERE relkind = 'r'
)
SELECT 'step' AS kind, n, statement FROM step WHERE statement IS NOT NULL
UNION ALL SELECT 'trial', n, statement FROM trial WHERE statement IS NOT NULL
UNION ALL SELECT 'refused', NULL, what FROM refused;

CREATE PROCEDURE pg_temp.try_in_one_go() LANGUAGE plpgsql AS $$
DECLARE
    s record;
    failed text;
    failed_at integer;
    more text;
BEGIN
    SELECT string_agg(statement, E'\n' ORDER BY statement) INTO failed FROM pg_temp.steps_in_one_go WHERE kind = 'refused';
    IF failed IS NULL THEN
        BEGIN
            FOR s IN SELECT * FROM pg_temp.steps_in_one_go ORDER BY n, statement LOOP
                EXIT WHEN s.n > failed_at AND failed_at <= 107;    -- the rest would fail, too
                BEGIN
                    EXECUTE s.statement;
                EXCEPTION WHEN OTHERS THEN
                    GET STACKED DIAGNOSTICS more = PG_EXCEPTION_DETAIL;
                    CONTINUE WHEN failed IS NOT NULL AND SQLSTATE = '42P01';    -- what a failed CREATE would have made
                    failed := concat_ws(E'\n', failed,
                        concat_ws(': ', left(split_part(s.statement, ' AS  ', 1), 150), SQLERRM), nullif(more, ''));
                    failed_at := coalesce(failed_at, s.n);
                END;
            END LOOP;
            RAISE EXCEPTION 'undo the trial';
        EXCEPTION WHEN raise_exception THEN
            NULL;
        END;
    END IF;
    IF failed IS NOT NULL THEN
        RAISE EXCEPTION 'these objects cannot be changed with the ID' USING DETAIL = failed,
            HINT = 'Nothing has changed. ROLLBACK. Begin again: drop these objects before in_one_go.sql, and create them'
                ' after it for the new type. For access method "gin" or "gist", CREATE EXTENSION scru64_gin or scru64_gist'
                ' CASCADE instead. For a bound, add a new ID to the map instead.';
    END IF;
END
$$;
CALL pg_temp.try_in_one_go();

SELECT statement FROM pg_temp.steps_in_one_go WHERE kind = 'step' ORDER BY n, statement \gexec
DROP TABLE pg_temp.steps_in_one_go;
DROP ROUTINE pg_temp.try_in_one_go, pg_temp.new_bound, pg_temp.new_id;
