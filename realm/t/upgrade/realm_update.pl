# A realm with leases is updated from this version to a later one, as a maintainer would write the
# later one, and from each version that was released to this one.  Then the extension is as if the
# later one had been created: what its functions and views say, their settings, owners and
# privileges, but for what the owner has granted and revoked.

use strict;
use warnings;
use File::Basename;
use FindBin;
use Scru64Files;
use Scru64Test;
use Scru64Versions;

plan skip_all => 'there is no make' if system('command -v make >/dev/null 2>&1') != 0;

#
# The later version: a column with a default in each table, one of them in a view, a rule of renew(),
# a function with another result, a new one, and new relations
#

my $sources = copy_sources();
my %this = built_scripts($sources);
my ($this) = map { /^\w+--([\d.]+)\.sql$/ } keys %this;
my $later = '1.99';

sub change
{
	my ($file, $pattern, $replacement) = @_;

	return patch($sources, "realm/$file", $pattern, sub { $replacement });
}

change('scru64_realm.control', qr/^default_version = .*/m, "default_version = '$later'");
append_to_file("$sources/realm/sql/$this--$later.sql", <<'END');
ALTER TABLE scru64_realm.ledger ADD novelty bigint NOT NULL DEFAULT 0;
ALTER TABLE scru64_realm.settings ADD novelty integer NOT NULL DEFAULT 7;
ALTER TABLE scru64_realm_internal.allocator ADD novelty integer NOT NULL DEFAULT 7;
ALTER TABLE scru64_realm_internal.turn ADD novelty integer NOT NULL DEFAULT 7;
CREATE TABLE scru64_realm.novelty (n integer);
CREATE SEQUENCE scru64_realm_internal.novelty_mark;
DROP FUNCTION IF EXISTS scru64_realm.split(uuid, integer, scru64);
END
change('sql/functions.sql', qr/SET expires_at = greatest\(l\.expires_at, renew\.expires_at\),\n/,
	"SET expires_at = greatest(l.expires_at, renew.expires_at), novelty = l.novelty + 1,\n");
change('sql/functions.sql', qr/\tOUT expires_at timestamptz\n\) RETURNS SETOF record\n/, "\tOUT expires_at timestamptz,\n\tOUT novelty integer\n) RETURNS SETOF record\n");
change('sql/functions.sql', qr/l\.granted_at, until;\n/, "l.granted_at, until, 4711;\n");
append_to_file("$sources/realm/sql/functions.sql", "CREATE OR REPLACE FUNCTION scru64_realm.novelty() RETURNS integer LANGUAGE sql RETURN 4711;\n");
change('sql/views.sql', qr/l\.revoked_at, l\.last_id.*\K\n/, ", l.novelty\n");
append_to_file("$sources/realm/sql/views.sql", "CREATE OR REPLACE VIEW scru64_realm.novel AS SELECT scru64_realm.novelty();\n");
my %later = built_scripts($sources);

# A server that reads its extensions from a folder of ours
my $installation = make_installation();
local $ENV{PATH} = "$installation->{bin}:$ENV{PATH}";
my $node = new_node('main', install_path => $installation->{path});
$node->start;
$node->safe_psql('postgres', q(
CREATE ROLE owner LOGIN;
CREATE ROLE app LOGIN;
CREATE ROLE other LOGIN;
CREATE ROLE monitor LOGIN IN ROLE pg_monitor;
));

# Install these scripts and those, and have CREATE EXTENSION create this version.
sub install_scripts
{
	my ($version, %scripts) = @_;
	my $control = slurp_file("$sources/realm/scru64_realm.control") =~ s/^default_version = .*/default_version = '$version'/mr;

	unlink(glob("$installation->{extensions}/scru64_realm--*.sql"));
	replace_file("$installation->{extensions}/$_", $scripts{$_}) foreach (keys %scripts);
	replace_file("$installation->{extensions}/scru64_realm.control", $control);
	return;
}

# A database with the extension, which belongs to no superuser.  The role of the scripts grants all
# it makes to others, by default.
sub create_realm
{
	my ($db) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $db OWNER owner");
	$node->safe_psql($db, q(
CREATE EXTENSION scru64;
ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO other;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO other;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO other;
));
	$node->safe_psql($db, 'CREATE EXTENSION scru64_realm', extra_params => [ '-U', 'owner' ]);
	return;
}

sub as_owner
{
	my ($db, $sql) = @_;

	return $node->safe_psql($db, $sql, extra_params => [ '-U', 'owner' ]);
}

# What the owner has granted and revoked
sub grant
{
	my ($db) = @_;

	as_owner($db, q(
GRANT USAGE ON SCHEMA scru64_realm TO app;
GRANT EXECUTE ON FUNCTION scru64_realm.lease, scru64_realm.renew TO app;
GRANT EXECUTE ON FUNCTION scru64_realm.split TO app WITH GRANT OPTION;
GRANT EXECUTE ON FUNCTION scru64_realm.split, scru64_realm.realm_id TO PUBLIC;
GRANT SELECT ON scru64_realm.ledger TO app;
REVOKE SELECT ON scru64_realm.roles FROM pg_monitor;
REVOKE EXECUTE ON FUNCTION scru64_realm.revoke(uuid) FROM owner;
));
	return;
}

# All of the extension, a line each, in an order of its own; and the order of the views' columns
sub contents
{
	my ($db) = @_;

	return $node->safe_psql($db, q(
WITH o AS (
	SELECT d.classid, d.objid, i.type || ' ' || i.identity AS name
	FROM pg_depend AS d, pg_identify_object(d.classid, d.objid, 0) AS i
	WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
	  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'scru64_realm')
), acl AS (
	SELECT tableoid, oid, relowner AS owner, relacl AS acl, coalesce(reloptions::text || pg_get_viewdef(oid), '') AS text FROM pg_class
	UNION ALL
	SELECT tableoid, oid, proowner, proacl, pg_get_functiondef(oid) FROM pg_proc WHERE prokind = 'f'
	UNION ALL
	SELECT tableoid, oid, typowner, typacl, '' FROM pg_type
	UNION ALL
	SELECT tableoid, oid, nspowner, nspacl, '' FROM pg_namespace
)
SELECT line FROM (
	SELECT format('%s, owner %s, privileges %s, %s, %s', o.name, acl.owner::regrole,
		(SELECT array_agg(a::text ORDER BY a::text COLLATE "C") FROM unnest(acl.acl) AS a), obj_description(o.objid, o.classid::regclass::name), acl.text) AS line
	FROM o JOIN acl ON (acl.tableoid, acl.oid) = (o.classid, o.objid)
	UNION ALL
	SELECT format('%s.%s %s %s %s: %s', a.attrelid::regclass, a.attname, a.atttypid::regtype, a.attnotnull, pg_get_expr(d.adbin, d.adrelid), col_description(a.attrelid, a.attnum))
	FROM o JOIN pg_attribute AS a ON a.attrelid = o.objid AND o.classid = 'pg_class'::regclass LEFT JOIN pg_attrdef AS d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
	WHERE a.attnum > 0
	UNION ALL
	SELECT format('%s %s %s', c.conrelid::regclass, c.conname, pg_get_constraintdef(c.oid)) FROM o JOIN pg_constraint AS c ON c.conrelid = o.objid
	UNION ALL
	SELECT pg_get_indexdef(x.indexrelid) FROM o JOIN pg_index AS x ON x.indrelid = o.objid
	UNION ALL
	SELECT pg_get_triggerdef(t.oid) FROM o JOIN pg_trigger AS t ON t.tgrelid = o.objid
	UNION ALL
	SELECT 'dumped: ' || r::regclass FROM pg_extension, unnest(extconfig) AS r WHERE extname = 'scru64_realm'
) AS l ORDER BY line COLLATE "C"));
}

# The lines that only one of two texts has
sub difference
{
	my ($got, $expected) = @_;
	my %count;

	$count{$_}++ foreach (split(/\n/, $got));
	$count{$_}-- foreach (split(/\n/, $expected));
	return join("\n", map { $count{$_} > 0 ? "+ $_" : $count{$_} < 0 ? "- $_" : () } sort keys %count);
}

# An update waits for who reads the ledger, and a call waits behind the update: the update gives up first.
sub waits_ok
{
	my ($db, $lease, $name) = @_;
	my ($reader, $updater) = map { open_session($node, dbname => $db) } (1 .. 2);

	$reader->query_safe('BEGIN; SELECT FROM scru64_realm.leases');
	$updater->query_safe("SET statement_timeout = '60s'; SET SESSION AUTHORIZATION owner");
	start_statement($updater, 'ALTER EXTENSION scru64_realm UPDATE');
	is(error_of($node, "SELECT expires_at FROM scru64_realm.renew('$lease')", dbname => $db, extra_params => [ '-U', 'app' ]), '', "$name: a call does not fail");
	like((try_statement($updater, ''))[1], qr/ERROR:  55P03: canceling statement due to lock timeout/, "$name: the update gives up");
	$_->quit foreach ($updater, $reader);
	return;
}

# Update a realm with leases between two versions, with these scripts of them; and create another
# one of the later version.  Returns the databases, and a lease.
sub update_ok
{
	my ($from, $to, %scripts) = @_;
	my $name = "$from to $to";
	my ($updated, $created) = map { "${_}_$from" =~ tr/./_/r } ('updated', 'created');
	my ($lease, $leases);

	install_scripts($from, %scripts);
	create_realm($updated);
	grant($updated);
	$lease = $node->safe_psql($updated, "SELECT lease_id FROM scru64_realm.lease(8, 'app')", extra_params => [ '-U', 'app' ]);
	$node->safe_psql($updated, "SELECT lease_id FROM scru64_realm.lease(6, 'another')", extra_params => [ '-U', 'app' ]);
	install_scripts($to, %scripts);
	waits_ok($updated, $lease, "$name: beside a reader");
	$leases = as_owner($updated, 'SELECT node, holder, role, granted_at, expires_at, last_id FROM scru64_realm.leases');
	as_owner($updated, 'ALTER EXTENSION scru64_realm UPDATE');
	is($node->safe_psql($updated, "SELECT extversion FROM pg_extension WHERE extname = 'scru64_realm'"), $to, "$name: the version");
	is(as_owner($updated, 'SELECT node, holder, role, granted_at, expires_at, last_id FROM scru64_realm.leases'), $leases, "$name: the leases");
	create_realm($created);
	grant($created);
	is(difference(contents($updated), contents($created)), '', "$name: as if it was created, and granted to whom it was");
	return ($updated, $created, $lease);
}

my ($updated, $created, $lease) = update_ok($this, $later, %this, %later);
cmp_ok(scalar(() = contents($updated) =~ /^ SET search_path TO/mg), '>', 30, 'there are functions with settings');
like(contents($updated), qr/^view scru64_realm\.novel, owner owner, privileges \{owner=\w+\/owner\},/m, 'what is new has the owner, and nobody else has it');
like(contents($updated), qr/^function scru64_realm_internal\.server_node_specs\(\), owner (?!owner)/m, '... but for the one that takes more rights');
$node->safe_psql($updated, "SELECT expires_at FROM scru64_realm.renew('$lease')", extra_params => [ '-U', 'app' ]);
is($node->safe_psql($updated, 'SELECT node_id_size, novelty FROM scru64_realm.leases ORDER BY 1', extra_params => [ '-U', 'monitor' ]),
	"6|0\n8|1", 'the new column, and the new rule of renew()');
is($node->safe_psql($updated, "SELECT DISTINCT novelty FROM scru64_realm.split('$lease', 9)", extra_params => [ '-U', 'app' ]), '4711',
	'the new result of a function, for whom it was granted to');
is(as_owner($updated, 'SELECT novelty FROM scru64_realm.settings'), '7', 'the default of a new column');

# What the owner has made by the name of something new is not taken over.
install_scripts($this, %this, %later);
create_realm('taken');
as_owner('taken', 'CREATE FUNCTION scru64_realm.novelty() RETURNS integer LANGUAGE sql RETURN 1');
install_scripts($later, %this, %later);
like(error_of($node, 'ALTER EXTENSION scru64_realm UPDATE', dbname => 'taken', extra_params => [ '-U', 'owner' ]),
	qr/ERROR:  55000: function novelty\(\) is not a member of extension "scru64_realm"/, 'a function of the owner by the name of a new one');

# What was released
my @released = map { basename($_) } glob("$FindBin::RealBin/../released/scru64_realm--*.sql");
note('no version was released before this one') if !grep { $_ ne "scru64_realm--$this.sql" } @released;
update_ok(/--(.*)\.sql/, $this, %this, $_ => slurp_file("$FindBin::RealBin/../released/$_")) foreach (grep { $_ ne "scru64_realm--$this.sql" } @released);

$node->stop;
done_testing();
