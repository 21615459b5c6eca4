# A realm, two servers that lease their node specs from it, and one table to which
# the rows of both come. Then a node changes hands.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Scru64Test;
use Test::More;

my $realm = new_node('realm');
$realm->append_conf('postgresql.conf', 'max_logical_replication_workers = 8');
$realm->start;
$realm->safe_psql(
	'postgres', q(
CREATE EXTENSION scru64_realm CASCADE;
CREATE ROLE node LOGIN;
GRANT EXECUTE ON FUNCTION scru64_realm.lease, scru64_realm.renew, scru64_realm.release TO node;
CREATE TABLE event (id scru64 PRIMARY KEY, server text, n integer);
));

# What an administrator would type
sub realm_psql
{
	my ($sql) = @_;
	my ($out, $err) = ('', '');

	IPC::Run::run(
		[ 'psql', '-XAtq', '-F', ' ', '-d', $realm->connstr('postgres') . ' user=node', '-c', $sql ],
		'>', \$out, '2>', \$err);
	chomp($out);
	die "$sql: $err" if $err ne '';
	return $out;
}

my %servers;
my %lease;

foreach my $name ('one', 'two')
{
	my $server = new_node($name, allows_streaming => 'logical');

	$server->start;
	$server->safe_psql('postgres', 'CREATE EXTENSION scru64');
	$server->safe_psql(
		'postgres', qq(
CREATE TABLE event (id scru64 DEFAULT scru64_generate() PRIMARY KEY, server text DEFAULT '$name', n integer);
CREATE PUBLICATION event FOR TABLE event;
));
	my ($id, $spec) = split(/ /, realm_psql("SELECT lease_id, node_spec FROM scru64_realm.lease(18, 'server $name')"));
	$lease{$name} = { id => $id, spec => $spec };
	set_parameter($server, 'scru64.node_spec', $spec);
	$servers{$name} = $server;
	$realm->safe_psql('postgres',
		sprintf("CREATE SUBSCRIPTION %s CONNECTION 'host=%s port=%s dbname=postgres' PUBLICATION event",
			$name, $server->host, $server->port));
}
is( $realm->safe_psql('postgres', 'SELECT node, holder FROM scru64_realm.leases'),
	"0/18|server one\n1/18|server two", 'two nodes');

# Both have nodes of 64 IDs in a tick, and use all that there are.
my %load;
foreach my $name (sort keys %servers)
{
	my $script = $servers{$name}->basedir . '/insert';

	append_to_file($script, "INSERT INTO event (n) SELECT g FROM generate_series(1, 20) g;\n");
	$load{$name} = IPC::Run::start(
		[
			'pgbench', '--no-vacuum', '--client=2', '--time=3', '-f', $script,
			'-h', $servers{$name}->host, '-p', $servers{$name}->port, 'postgres'
		],
		'>', '/dev/null', '2>', \$load{"$name err"});
}
foreach my $name (sort keys %servers)
{
	ok($load{$name}->finish, "server $name: load");
}

my %rows;
foreach my $name (sort keys %servers)
{
	my $server = $servers{$name};

	$rows{$name} = $server->safe_psql('postgres', 'SELECT count(*) FROM event');
	cmp_ok($rows{$name}, '>', 1000, "server $name: rows");
	$server->wait_for_catchup($name, 'replay', $server->lsn('write'));
}
is( $realm->safe_psql('postgres', 'SELECT server, count(*) FROM event GROUP BY server ORDER BY server'),
	"one|$rows{one}\ntwo|$rows{two}",
	'the rows of both are in one table');
is( $realm->safe_psql(
		'postgres', q(
SELECT count(*) > 5
FROM (SELECT FROM event GROUP BY id::bigint >> 24 HAVING count(DISTINCT server) = 2) AS ticks)),
	't',
	'they have IDs of the same ticks');
is( $realm->safe_psql('postgres', 'SELECT sum(apply_error_count), count(*) FROM pg_stat_subscription_stats'),
	'0|2', 'without a conflict');
unlike(slurp_file($realm->logfile), qr/duplicate key/, 'nor a duplicate key');

#
# One server ends, ahead of the clock by seconds and by more than the guard time, and
# releases its node with the last ID. Who has it next cannot have it before that.
#
my ($one, $two) = @servers{ 'one', 'two' };
$realm->safe_psql('postgres', "SELECT scru64_realm.set_guard('1 s', even_if_unsafe => true)");
$one->safe_psql('postgres', 'INSERT INTO event (n) SELECT g FROM generate_series(1, 1000) g');
$one->wait_for_catchup('one', 'replay', $one->lsn('write'));
my $last_id = $one->safe_psql('postgres', q(SELECT last_id FROM scru64_generators WHERE node_spec LIKE '%/18'));
$realm->safe_psql('postgres', 'DROP SUBSCRIPTION one');
$one->stop;
is($realm->safe_psql('postgres', "SELECT max(id) FROM event WHERE server = 'one'"), $last_id, 'the last ID of one node');
realm_psql("SELECT scru64_realm.release('$lease{one}{id}', '$last_id')");

my ($ret, $out, $err) = $realm->psql('postgres', "SELECT scru64_realm.lease(18, 'server two', node_id => 0)");
like($err, qr{node 0/18 is not free}, 'at once it cannot be leased');
$realm->poll_query_until('postgres', "SELECT clock_timestamp() >= max(occupied_until) FROM scru64_realm.ledger WHERE node_id = 0")
  or die 'the lease does not end';
my ($id, $spec) = split(/ /,
	realm_psql("SELECT lease_id, node_spec FROM scru64_realm.lease(18, 'server two', node_id => 0)"));
cmp_ok($spec, 'gt', $last_id, 'then the spec continues after the last ID');
set_parameter($two, 'scru64.node_spec', $spec);
is( $two->safe_psql(
		'postgres', qq(
INSERT INTO event (n) VALUES (0)
RETURNING id > '$last_id', scru64_node_ctr(id) >> 6
)),
	't|0',
	'the next ID of the node is above it');
$two->safe_psql('postgres', 'INSERT INTO event (n) SELECT g FROM generate_series(1, 200) g');
$two->wait_for_catchup('two', 'replay', $two->lsn('write'));
is( $realm->safe_psql('postgres', 'SELECT sum(apply_error_count) FROM pg_stat_subscription_stats'),
	'0', 'no conflict with the rows of its first holder');
is( $realm->safe_psql('postgres', "SELECT count(*) FROM event WHERE scru64_node_ctr(id) >> 6 = 0 AND server = 'two'"),
	'201', 'all rows are there');

# The new holder's is the only lease, and only it is renewed.
($ret, $out, $err) = $realm->psql('postgres', "SELECT scru64_realm.renew('$lease{one}{id}')");
like($err, qr/lease is not active/, 'the first holder cannot renew');
realm_psql("SELECT scru64_realm.renew('$id', last_id => '"
	  . $two->safe_psql('postgres', "SELECT max(id) FROM event WHERE scru64_node_ctr(id) >> 6 = 0") . "')");
is( $realm->safe_psql('postgres', 'SELECT node, holder, last_id IS NOT NULL FROM scru64_realm.leases ORDER BY node'),
	"0/18|server two|t\n1/18|server two|t",
	'the view shows who has what');

$realm->safe_psql('postgres', 'DROP SUBSCRIPTION two');
$two->stop;
$realm->stop;
done_testing();
