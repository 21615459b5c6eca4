-- ---------------------------------------------------------------------------
-- Owner, privileges and dump of what this script has made, and of nothing else: an owner may
-- have granted and revoked
--
-- Default privileges of the role that runs this script may have granted anything to anybody:
-- start from nothing. A function that was dropped, and made with another result or other
-- parameters, is granted to whom it was granted before.
--
-- Again PostgreSQL's own names are the only ones: see functions.sql.
-- ---------------------------------------------------------------------------

SET LOCAL search_path = pg_catalog, pg_temp;

DO $do$
DECLARE
	before CONSTANT jsonb := current_setting('scru64_realm.before');
	object record;
	grantee text;
	privilege text;
	option text;
BEGIN
	FOR object IN
		SELECT d.objid, i.identity AS name, split_part(i.identity, '(', 1) AS short_name, upper(i.type) AS kind,
			   CASE WHEN i.type IN ('view', 'sequence') THEN 'TABLE' ELSE upper(i.type) END AS acl_kind,
			   coalesce(c.relacl, p.proacl, t.typacl, n.nspacl) AS acl
		FROM pg_depend AS d CROSS JOIN pg_identify_object(d.classid, d.objid, 0) AS i
			LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
			LEFT JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
			LEFT JOIN pg_type AS t ON d.classid = 'pg_type'::regclass AND t.oid = d.objid
			LEFT JOIN pg_class AS of_row ON of_row.oid = t.typrelid
			LEFT JOIN pg_namespace AS n ON d.classid = 'pg_namespace'::regclass AND n.oid = d.objid
		WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
		  AND d.refobjid = (SELECT e.oid FROM pg_extension AS e WHERE e.extname = 'scru64_realm')
		  AND NOT before ? format('%s/%s', d.classid, d.objid)
		  -- in PostgreSQL 17 and later, the types of rows and of arrays are members, too
		  AND coalesce(of_row.relkind, 'c') = 'c' AND coalesce(t.typcategory, 'C') <> 'A'
	LOOP
		FOR grantee IN
			SELECT 'PUBLIC' UNION SELECT a.grantee::regrole::text FROM aclexplode(object.acl) AS a WHERE a.grantee <> 0
		LOOP
			EXECUTE format('REVOKE ALL ON %s %s FROM %s CASCADE', object.acl_kind, object.name, grantee);
		END LOOP;
		-- see functions.sql
		IF object.short_name NOT IN ('scru64_realm_internal.server_nodes', 'scru64_realm_internal.server_node_specs') THEN
			EXECUTE format('ALTER %s %s OWNER TO %s', object.kind, object.name, $name$@extowner@$name$);
			EXECUTE format('GRANT ALL ON %s %s TO %s', object.acl_kind, object.name, $name$@extowner@$name$);
		END IF;
		-- pg_dump includes what is in them
		IF object.kind = 'SEQUENCE' OR object.name IN ('scru64_realm.ledger', 'scru64_realm.settings') THEN
			PERFORM pg_extension_config_dump(object.objid, '');
		END IF;
		FOR grantee, privilege, option IN
			SELECT g.grantee, g.privilege, ''
			FROM (VALUES ('PUBLIC', 'USAGE', 'scru64_realm'),
						 ('PUBLIC', 'EXECUTE', 'scru64_realm_internal.server_nodes'),
						 ('PUBLIC', 'EXECUTE', 'scru64_realm_internal.server_node_specs'),
						 ('pg_monitor', 'SELECT', 'scru64_realm.leases'),
						 ('pg_monitor', 'SELECT', 'scru64_realm.roles'),
						 ('pg_monitor', 'SELECT', 'scru64_realm.capacity'),
						 ('pg_monitor', 'EXECUTE', 'scru64_realm.clock'),
						 ('pg_monitor', 'EXECUTE', 'scru64_realm.free')) AS g (grantee, privilege, name)
			WHERE g.name = object.short_name
			UNION
			SELECT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, a.privilege_type,
				   CASE WHEN a.is_grantable THEN 'WITH GRANT OPTION' ELSE '' END
			FROM jsonb_each(before) AS b CROSS JOIN aclexplode((b.value ->> 'acl')::aclitem[]) AS a
			WHERE b.value ->> 'name' = object.short_name
			  AND NOT EXISTS (SELECT FROM pg_proc AS p WHERE b.key = format('%s/%s', 'pg_proc'::regclass::oid, p.oid))
		LOOP
			EXECUTE format('GRANT %s ON %s %s TO %s %s', privilege, object.acl_kind, object.name, grantee, option);
		END LOOP;
	END LOOP;
END
$do$;
