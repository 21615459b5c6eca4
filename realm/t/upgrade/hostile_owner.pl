# The owner of a realm, who is no superuser, prepares everything that the owner can for the update of
# the extension, whose script runs as the bootstrap superuser.  An update whose parts follow the rules
# of doc/maintainers.md makes the owner no superuser.  Those that break one do, and scripts/check
# refuses them.

use strict;
use warnings;
use Scru64Scripts;
use Scru64Test;
use Scru64Versions;

plan skip_all => 'there is no make' if system('command -v make >/dev/null 2>&1') != 0;

# All that a step may do
my $step = q(
-- a column; a function over it, and one of before; a view that shows it
ALTER TABLE scru64_realm.settings ADD COLUMN note text NOT NULL DEFAULT 'none', ADD since timestamptz, ADD checked integer DEFAULT -1 NOT NULL;
ALTER TABLE scru64_realm.settings ALTER COLUMN since SET DEFAULT '2026-01-01', ALTER guard DROP DEFAULT;
COMMENT ON COLUMN scru64_realm.settings.note IS 'what is of note; isn''t it';
CREATE TABLE scru64_realm.more (id bigint PRIMARY KEY, CHECK (id > 0), at timestamptz DEFAULT pg_catalog.now());
CREATE SEQUENCE scru64_realm_internal.mark MINVALUE 0;
DROP FUNCTION IF EXISTS scru64_realm_internal.unused(integer);
);
my $functions = q(
CREATE OR REPLACE FUNCTION scru64_realm.note(least_length integer DEFAULT 0) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
	SELECT CASE WHEN pg_catalog.length(s.note) > least_length THEN s.note END FROM scru64_realm.settings AS s;
END;
CREATE OR REPLACE FUNCTION touch() RETURNS void LANGUAGE plpgsql
	SET search_path = pg_catalog, scru64_realm, scru64_realm_internal, pg_temp AS $$
BEGIN
	UPDATE settings SET note = 'touched; by touch()';
END
$$;
);
my $views = q(
CREATE OR REPLACE VIEW scru64_realm.notes WITH (security_barrier) AS SELECT s.note, c AS clock FROM settings AS s, clock() AS c;
);

# What a step must not do, each by something that belongs to the owner
my %break = (
	update => 'UPDATE scru64_realm.settings SET made_at = made_at;',
	insert => "INSERT INTO scru64_realm.settings DEFAULT VALUES;",
	delete => 'DELETE FROM scru64_realm.ledger;',
	call => 'SELECT scru64_realm.clock();',
	inner_call => 'SELECT scru64_realm_internal.timeline();',
	view => 'TABLE scru64_realm.leases;',
	copied_view => 'CREATE TABLE scru64_realm.copy AS SELECT * FROM scru64_realm.leases;',
	default_that_calls => 'ALTER TABLE scru64_realm.settings ADD COLUMN at timestamptz DEFAULT scru64_realm.clock();',
	checked => 'ALTER TABLE scru64_realm.settings ADD CHECK (scru64_realm_internal.timeline() IS NOT NULL);',
	do => 'DO $do$ BEGIN PERFORM scru64_realm.clock(); END $do$;');

# Refused too, though the owner cannot use them, or not as easily
my @refused = (
	'CREATE FUNCTION note() RETURNS text LANGUAGE sql RETURN 1;',
	'ALTER TABLE settings ADD COLUMN note text;',
	"ALTER TABLE scru64_realm.settings ADD COLUMN note scru64_realm.note;",
	'ALTER TABLE scru64_realm.settings ADD COLUMN note serial;',
	"ALTER TABLE scru64_realm.settings ADD COLUMN note text DEFAULT lower('x');",
	'ALTER TABLE scru64_realm.settings ALTER COLUMN next_from TYPE timestamp;',
	'ALTER TABLE scru64_realm.settings SET UNLOGGED;',
	'CREATE INDEX ON scru64_realm.ledger (holder);',
	'SET LOCAL search_path = scru64_realm;',
	"SELECT pg_catalog.pg_extension_config_dump('scru64_realm.more', '');",
	'CREATE OR REPLACE FUNCTION scru64_realm.note() RETURNS text LANGUAGE sql RETURN 1;',
	'GRANT SELECT ON scru64_realm.ledger TO pg_monitor;',
	"COMMENT ON TABLE scru64_realm.ledger IS '\\'; UPDATE scru64_realm.settings SET made_at = made_at; --';",
	"COMMENT ON TABLE scru64_realm.ledger IS E'\\\\'; UPDATE scru64_realm.settings SET made_at = made_at; --';",
	'DROP FUNCTION IF EXISTS scru64_realm_internal.unused(integer) CASCADE;',
	'DROP FUNCTION scru64_realm_internal.unused(integer);',
	'CREATE FUNCTION scru64_realm.a() RETURNS void LANGUAGE sql BEGIN ATOMIC SELECT; END; CALL scru64_realm.a();',
	'CREATE VIEW scru64_realm.a AS SELECT 1; CALL scru64_realm.a();');

#
# What scripts/check says
#
my $path = 'realm/sql/1.0--1.1.sql';
my $of_functions = 'realm/sql/functions.sql';
is(join("\n", not_allowed_statements($path, $step)), '', 'the rules allow a step that follows them');
is(join("\n", not_allowed_statements($of_functions, "$functions$views")), '', 'and such functions and views');
is(scalar(not_allowed_statements($path, $break{$_})), 1, "they refuse $_") foreach (sort keys %break);
is(scalar(not_allowed_statements($of_functions, $break{$_})), 1, "they refuse $_ beside functions") foreach (sort keys %break);
cmp_ok(scalar(not_allowed_statements($path, "$step$_")), '>=', 1, "they refuse " . substr($_, 0, 80)) foreach (@refused);

#
# What PostgreSQL does
#
my $installation = make_installation();
my $node;

# An update to a version of that name, with what the step does, with these functions and views, and
# with an end as it is or not
sub add_version
{
	my ($version, $step_of_version, $of_functions, $of_views, $end) = @_;
	my $copy = copy_sources();
	my ($this) = slurp_file("$copy/realm/scru64_realm.control") =~ /^default_version = '(.*)'/m;
	my %scripts;

	patch($copy, 'realm/scru64_realm.control', qr/^default_version = .*/m, sub { "default_version = '$version'" });
	append_to_file("$copy/realm/sql/$this--$version.sql", $step_of_version);
	append_to_file("$copy/realm/sql/functions.sql", $of_functions // '');
	append_to_file("$copy/realm/sql/views.sql", $of_views // '');
	patch($copy, 'realm/sql/own.sql', qr/\A.*\z/s, $end) if defined $end;
	%scripts = built_scripts($copy);
	append_to_file("$installation->{extensions}/$_", $scripts{$_}) foreach (grep { /--.*--/ } keys %scripts);
	return;
}

sub is_superuser
{
	return $node->safe_psql('postgres', "SELECT rolsuper FROM pg_roles WHERE rolname = 'owner'");
}

local $ENV{PATH} = "$installation->{bin}:$ENV{PATH}";
add_version('follows', $step, $functions, $views, sub { $& =~ s/FROM \(VALUES \K/('pg_monitor', 'SELECT', 'scru64_realm.notes'),\n/r });
add_version($_, $break{$_}) foreach (keys %break);
# The end of the script calls functions, and looks only for PostgreSQL's own.
add_version('names_of_the_owner', $step, $functions, $views, sub { $& =~ s/^SET LOCAL search_path .*\n//mr });
$node = new_node('main');
$node->append_conf('postgresql.conf', "scru64.node_spec = '42/8'");
$node->start;
is($node->safe_psql('postgres', q(SELECT setting FROM pg_config WHERE name = 'SHAREDIR')) . '/extension',
	$installation->{extensions}, 'the server has a folder of extensions of its own');
$node->safe_psql('postgres', q(
CREATE ROLE owner LOGIN;
CREATE ROLE stranger LOGIN;
CREATE DATABASE realm OWNER owner;
));
my @as_owner = (extra_params => [ '-U', 'owner' ]);
$node->safe_psql('realm', q(
CREATE EXTENSION scru64_realm CASCADE;
SELECT FROM scru64_realm.lease(8, 'somebody');

-- makes the owner a superuser if a superuser runs it; for where only immutable functions may be, too
CREATE FUNCTION scru64_realm_internal.trap() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
		ALTER ROLE owner SUPERUSER;
	END IF;
	RETURN true;
END
$$;
CREATE FUNCTION scru64_realm_internal.still_trap() RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	RETURN scru64_realm_internal.trap();
END
$$;
CREATE FUNCTION scru64_realm_internal.trap_of_rows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM scru64_realm_internal.trap();
	RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END
$$;

-- of tables
CREATE TRIGGER aaa BEFORE INSERT OR UPDATE OR DELETE ON scru64_realm.settings FOR EACH ROW EXECUTE FUNCTION scru64_realm_internal.trap_of_rows();
CREATE TRIGGER aaa BEFORE INSERT OR UPDATE OR DELETE ON scru64_realm.ledger FOR EACH ROW EXECUTE FUNCTION scru64_realm_internal.trap_of_rows();
CREATE TRIGGER zzz AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON scru64_realm.settings FOR EACH STATEMENT EXECUTE FUNCTION scru64_realm_internal.trap_of_rows();
ALTER TABLE scru64_realm.settings
	ADD CHECK (scru64_realm_internal.trap()),
	ADD COLUMN by_default boolean DEFAULT scru64_realm_internal.trap(),
	ADD COLUMN computed boolean GENERATED ALWAYS AS (only_row AND scru64_realm_internal.still_trap()) STORED;
ALTER TABLE scru64_realm.ledger ADD CHECK (scru64_realm_internal.trap());
CREATE INDEX ON scru64_realm.settings ((only_row AND scru64_realm_internal.still_trap())) WHERE scru64_realm_internal.still_trap();
CREATE POLICY mine ON scru64_realm.settings USING (scru64_realm_internal.trap());
ALTER TABLE scru64_realm.settings ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

-- functions in place of those of the realm, as who calls them, and one more member to be dropped
CREATE OR REPLACE FUNCTION scru64_realm.clock() RETURNS timestamptz LANGUAGE plpgsql SECURITY INVOKER AS $$
BEGIN
	PERFORM scru64_realm_internal.trap();
	RETURN now();
END
$$;
CREATE OR REPLACE FUNCTION scru64_realm_internal.timeline() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
	PERFORM scru64_realm_internal.trap();
	RETURN 1;
END
$$;
CREATE FUNCTION scru64_realm_internal.unused(integer) RETURNS boolean LANGUAGE sql RETURN scru64_realm_internal.trap();
ALTER EXTENSION scru64_realm ADD FUNCTION scru64_realm_internal.unused(integer);

-- a function and operators that fit better than PostgreSQL's own
CREATE FUNCTION scru64_realm_internal.format(text, text, text, text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM scru64_realm_internal.trap();
	RETURN 'SELECT';
END
$$;
CREATE FUNCTION public.trap(oid, integer) RETURNS boolean LANGUAGE sql RETURN scru64_realm_internal.trap();
CREATE OPERATOR public.<> (LEFTARG = oid, RIGHTARG = integer, FUNCTION = public.trap);
CREATE OPERATOR public.= (LEFTARG = oid, RIGHTARG = integer, FUNCTION = public.trap);
), @as_owner);
# what only some version of PostgreSQL may let an owner do
$node->psql('realm', q(
CREATE FUNCTION scru64_realm_internal.trap_of_commands() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM scru64_realm_internal.trap(); END $$;
CREATE EVENT TRIGGER aaa ON ddl_command_start EXECUTE FUNCTION scru64_realm_internal.trap_of_commands();
), @as_owner);
# They are for what the superuser creates, so for what the script does.
$node->safe_psql('realm', 'ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO stranger WITH GRANT OPTION; ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO stranger');
is(is_superuser(), 'f', 'the owner has prepared all of this, and is no superuser');

# Update a copy of the database, as the owner, in a session that has temporary tables of such names.
# What it says is wrong
sub update_copy
{
	my ($version) = @_;

	$node->safe_psql('postgres', "ALTER ROLE owner NOSUPERUSER; CREATE DATABASE \"$version\" TEMPLATE realm OWNER owner");
	return error_of($node, qq(
CREATE TEMP TABLE settings (note boolean CHECK (scru64_realm_internal.trap()));
CREATE TEMP TABLE pg_proc (oid oid);
ALTER EXTENSION scru64_realm UPDATE TO '$version';
), dbname => $version, @as_owner);
}

unlike(update_copy('follows'), qr/ERROR/, 'the update, by a script that follows the rules');
is(is_superuser(), 'f', '... and the owner is no superuser');
is($node->safe_psql('follows', q(SELECT extversion FROM pg_extension WHERE extname = 'scru64_realm'), @as_owner), 'follows', '... and it is updated');
is($node->safe_psql('follows', q(
SELECT format('%s %s %s', p.proname, p.proowner::regrole, (SELECT string_agg(a.grantee::regrole::text, ' ' ORDER BY a.grantee::regrole::text) FROM aclexplode(p.proacl) AS a))
FROM pg_proc AS p WHERE p.proname IN ('note', 'touch') AND p.pronamespace::regnamespace::text ~ '^scru64_realm'
UNION ALL
SELECT format('%s %s %s', c.relname, c.relowner::regrole, (SELECT string_agg(DISTINCT a.grantee::regrole::text, ' ') FROM aclexplode(c.relacl) AS a))
FROM pg_class AS c WHERE c.oid IN ('scru64_realm.notes'::regclass, 'scru64_realm.more'::regclass)
ORDER BY 1)), "more owner owner\nnote owner owner\nnotes owner owner pg_monitor\ntouch owner owner", '... and what is new is the owner\'s alone');
is($node->safe_psql('follows', 'SELECT note, since, checked FROM scru64_realm.settings; SELECT scru64_realm_internal.touch(); SELECT note FROM scru64_realm.notes; SELECT scru64_realm.note(3)', @as_owner),
	"none||-1\n\ntouched; by touch()\ntouched; by touch()", '... and works');

foreach my $version (sort(keys %break), 'names_of_the_owner')
{
	update_copy($version);
	is(is_superuser(), 't', "a script that breaks a rule, $version: the owner is a superuser");
}

$node->stop;
done_testing();
