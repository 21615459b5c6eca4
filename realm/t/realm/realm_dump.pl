# A realm that is dumped and restored: leases stay, and those who have them can renew them.

use strict;
use warnings;
use FindBin;
use Scru64Examples;
use Scru64Test;

# with a system identifier of its own
my $node = new_node('main', extra => ['--locale=C']);
$node->start;

# A dump may come to a server that was set up alike, with the same OIDs.
my $alike = new_node('alike', extra => ['--locale=C']);
$alike->start;
my ($one, $other) = map { [ split(/\n/) ] } map { $_->safe_psql('postgres', q(
CREATE EXTENSION scru64_realm CASCADE;
SELECT oid FROM pg_extension WHERE extname = 'scru64_realm';
SELECT scru64_realm_internal.identity();
DROP EXTENSION scru64 CASCADE)) } ($node, $alike);
is($one->[0], $other->[0], 'two servers that were set up alike');
isnt($one->[1], $other->[1], 'are not taken for each other');
$alike->stop;

# The extension belongs to who owns the database and is no superuser.
$node->safe_psql('postgres', q(
CREATE ROLE realm_owner LOGIN;
CREATE ROLE app LOGIN;
CREATE DATABASE realm OWNER realm_owner;
CREATE DATABASE restored OWNER realm_owner;
CREATE DATABASE restored_by_superuser;
));
my $setup = q(
CREATE EXTENSION scru64_realm CASCADE;
SELECT scru64_realm.set_guard('1 hour');
GRANT EXECUTE ON FUNCTION scru64_realm.lease, scru64_realm.renew TO app;
CREATE TABLE mine (what text, lease_id uuid, node_spec text, expires_at timestamptz);
INSERT INTO mine SELECT 'a day', l.lease_id, l.node_spec, l.expires_at FROM scru64_realm.lease(8, 'one') AS l;
INSERT INTO mine SELECT 'forever', l.lease_id, l.node_spec, l.expires_at FROM scru64_realm.lease(4, 'two', '1000 years') AS l;
INSERT INTO mine SELECT 'parent', l.lease_id, l.node_spec, l.expires_at FROM scru64_realm.lease(6, 'three', node_id => 20) AS l;
INSERT INTO mine SELECT 'child', s.lease_id, s.node_spec, s.expires_at
FROM mine, scru64_realm.split(lease_id, 8, scru64_from_parts(now(), 20 << 18)) AS s
WHERE what = 'parent';
INSERT INTO mine SELECT 'released', l.lease_id, l.node_spec, l.expires_at FROM scru64_realm.lease(12, 'four', node_id => 4095) AS l;
SELECT scru64_realm.release(lease_id, scru64_from_parts(now(), 4095 << 12)) FROM mine WHERE what = 'released';
SELECT setval('scru64_realm_internal.pruned_until', 1);
SELECT scru64_realm.set_max_ttl('2 hours');
SELECT scru64_realm_internal.set_failover(('2001-01-01', '2002-01-01', '2003-01-01', '2004-01-01')),
	scru64_realm_internal.set_failover(('2005-01-01', '2006-01-01', '2007-01-01', 'infinity'), '_before');
);
$node->safe_psql('realm', $setup, extra_params => [ '-U', 'realm_owner' ]);

my $superuser = $node->safe_psql('postgres', 'SELECT current_user');
my $dump = $node->basedir . '/realm.dump';
my $state = q(
SELECT lease_id, node_id, node_id_size, holder, granted_at, expires_at, released_at, occupied_until, last_id, parent,
	role, ttl, within, endless_since, revoked_at, clock_reading, change,
	node_ctr_range, occupied FROM scru64_realm.ledger ORDER BY lease_id;
SELECT * FROM scru64_realm.settings;
SELECT scru64_realm.realm_id();
SELECT c.relname, pg_sequence_last_value(c.oid) FROM pg_class AS c
WHERE c.relnamespace = 'scru64_realm_internal'::regnamespace AND c.relkind = 'S' ORDER BY c.relname;
SELECT node, holder, role, granted_at, expires_at, revoked_at, last_id FROM scru64_realm.leases;
SELECT * FROM scru64_realm.capacity;
SELECT p.oid::regprocedure, has_function_privilege('app', p.oid, 'EXECUTE')
FROM pg_proc AS p WHERE pronamespace = 'scru64_realm'::regnamespace ORDER BY p.oid::regprocedure::text COLLATE "C";
SELECT relname, has_table_privilege('app', oid, 'SELECT') FROM pg_class
WHERE relnamespace = 'scru64_realm'::regnamespace AND relkind IN ('r', 'v', 'S') ORDER BY 1;
);
# A lease that was split, behind those that came out of it
$node->safe_psql('realm', 'UPDATE scru64_realm.ledger SET holder = holder WHERE released_at IS NOT NULL');
my $before = $node->safe_psql('realm', $state);

# Programs of the page, in a directory of their own
my $dir = PostgreSQL::Test::Utils::tempdir();

sub moves_ok
{
	my ($server, $text) = @_;

	local @ENV{qw(PGHOST PGPORT)} = ($server->host, $server->port);
	local $ENV{PATH} = $server->config_data('--bindir') . ":$ENV{PATH}";
	is(system('bash', '-e', '-c', 'cd "$1" && eval "$2"', '-', $dir, $text), 0, 'moved: ' . substr($text, 0, 10));
	return;
}

SKIP:
{
	skip 'there is no pg_dump', 33 if !has_program('pg_dump');
	$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, $node->connstr('realm') ], 'pg_dump');
	foreach my $who ([ 'restored', 'realm_owner' ], [ 'restored_by_superuser', undef ], [ 'realm', 'realm_owner', '--clean', '--if-exists' ])
	{
		my ($db, $owner, @options) = @{$who};

		$node->command_ok(
			[
				'pg_restore', '--exit-on-error', @options,
				defined $owner ? ('--no-owner', '-U', $owner) : (), '-d', $node->connstr($db), $dump
			],
			"pg_restore to $db");
		is($node->safe_psql($db, $state), $before, "$db: the same leases, settings and privileges");
		is( $node->safe_psql($db, q(SELECT count(DISTINCT owner), min(owner) FROM (
				SELECT relowner::regrole::text AS owner FROM pg_class WHERE relnamespace = 'scru64_realm'::regnamespace
				UNION ALL SELECT proowner::regrole::text FROM pg_proc
				WHERE pronamespace = 'scru64_realm'::regnamespace AND proname NOT IN ('server_nodes', 'server_node_specs')
				UNION ALL SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'scru64_realm') AS o)),
			'1|' . ($owner || $superuser),
			"$db: all of it belongs to who restored it");
		# What was leased since the dump was made, a restored realm does not know.
		like(error_of($node, "SELECT scru64_realm.lease(8, 'five')", dbname => $db, extra_params => [ '-U', 'app' ]),
			qr/realm grants no new lease until 20/, "$db: no new lease");
		is( $node->safe_psql(
				$db, "SELECT count(scru64_realm.renew(lease_id)) FROM mine WHERE what IN ('a day', 'forever', 'child')"),
			'6',
			"$db: who has a lease can renew it");
		$node->safe_psql($db, 'SELECT scru64_realm.nothing_was_lost()', extra_params => [ '-U', $owner || $superuser ]);
		is( $node->safe_psql(
				$db, "SELECT node_id FROM scru64_realm.lease(8, 'five'), scru64_parse_node_spec(node_spec)",
				extra_params => [ '-U', 'app' ]),
			'1', "$db: then what is leased next is free");
		$node->safe_psql($db, "DELETE FROM scru64_realm.ledger WHERE holder = 'five'");
	}

	# Row by row
	$before = $node->safe_psql('realm', $state);
	my ($out, $err) = run_command([ 'pg_dump', '--inserts', '-f', "$dump.sql", $node->connstr('realm') ]);
	is($err, '', 'pg_dump --inserts warns of nothing');
	$node->safe_psql('postgres', 'CREATE DATABASE restored_row_by_row');
	$node->command_ok(
		[ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('restored_row_by_row'), '-f', "$dump.sql" ],
		'psql with the INSERTs of pg_dump');
	is($node->safe_psql('restored_row_by_row', $state), $before, 'row by row: the same leases, settings and privileges');

	# To another server, by the steps of the page
	my $page = "$FindBin::RealBin/../../../doc/realm.md";
	my ($make_realm) = map { $_->{text} } grep { $_->{mark} eq 'at r1' && $_->{text} =~ /CREATE DATABASE realm/ } blocks_of($page);
	my %fleet = (dbname => 'realm', extra_params => [ '-U', 'fleet' ]);
	my $held = 'SELECT node, holder, expires_at FROM scru64_realm.leases ORDER BY node';

	$node->safe_psql('postgres', 'DROP DATABASE realm');
	$node->safe_psql('postgres', $make_realm =~ s/^\\c realm.*//msr);
	$alike->start;
	$alike->safe_psql('postgres', $make_realm);
	$alike->safe_psql('realm', q(SELECT FROM scru64_realm.lease(8, 'old server', ttl => '1000 years', node_id => 42)), extra_params => [ '-U', 'realm' ]);
	my $lease = $alike->safe_psql('realm', q(SELECT lease_id FROM scru64_realm.lease(8, 'server', node_id => 7)), extra_params => $fleet{extra_params});
	my $old = $alike->safe_psql('realm', $held);
	my $open = open_session($alike, dbname => 'realm');

	results_of($alike, 'postgres', { sql => recipe($page, 'move, old') });
	like(error_of($alike, 'SELECT 1', %fleet), qr/database "realm" does not exist/, 'moved: nobody calls the old realm');
	ok(!eval { $open->query_safe('SELECT 1') }, 'moved: and no session is left there');
	moves_ok($alike, recipe($page, 'move, dump'));
	moves_ok($node, recipe($page, 'move, restore'));
	is($node->safe_psql('realm', $held), $old, 'moved: the same leases');
	like(error_of($node, q(SELECT FROM scru64_realm.lease(8, 'another')), %fleet), qr/realm grants no new lease until 20/, 'moved: no new lease');
	is($node->safe_psql('realm', "SELECT count(*) FROM scru64_realm.renew('$lease')", extra_params => $fleet{extra_params}), '1', 'moved: the fleet may renew');
	$node->safe_psql('realm', 'SELECT scru64_realm.nothing_was_lost()', extra_params => [ '-U', 'realm' ]);
	like(error_of($node, q(SELECT FROM scru64_realm.lease(8, 'another', node_id => 42)), %fleet), qr/55006: node .* is not free/, 'moved: a lease without end is there');
	is($node->safe_psql('realm', q(SELECT count(*) FROM scru64_realm.lease(8, 'another')), extra_params => $fleet{extra_params}), '1', 'moved: new leases');
	$alike->stop;
}
$node->stop;
done_testing();
