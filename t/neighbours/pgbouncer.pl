# Many clients share few sessions through pgbouncer in transaction mode: no ID
# twice, all of the server's node.  What SET does there, and what to use instead.

use strict;
use warnings;
use Scru64Test;

# scripts/test names the one that it has unpacked
my ($pgbouncer) = grep { $_ && -x $_ } ($ENV{SCRU64_PGBOUNCER},
	map { "$_/pgbouncer" } split(/:/, $ENV{PATH} . ':/usr/sbin'));

plan skip_all => 'pgbouncer is not installed' if !$pgbouncer;

my $server = new_node('server');
$server->append_conf('postgresql.conf', "scru64.node_spec = '42/8'");
$server->start;
$server->safe_psql('postgres', q(
CREATE EXTENSION scru64;
CREATE TABLE ids (id scru64 DEFAULT scru64_generate(), pid integer DEFAULT pg_backend_pid());
CREATE ROLE other SUPERUSER LOGIN;
ALTER ROLE other SET scru64.node_spec = '43/8';
));

my @poolers;

# A pooler with this many sessions for each database and user
sub start_pooler
{
	my ($pool_size) = @_;
	my $dir = PostgreSQL::Test::Utils::tempdir_short();
	my $port = PostgreSQL::Test::Cluster::get_free_port();
	my ($host, $server_port, $user) = ($server->host, $server->port, scalar getpwuid($>));

	append_to_file("$dir/users", qq("$user" ""\n"other" ""\n));
	append_to_file(
		"$dir/ini", qq(
[databases]
postgres = host=$host port=$server_port dbname=postgres
[pgbouncer]
listen_addr =
listen_port = $port
unix_socket_dir = $dir
auth_type = trust
auth_file = $dir/users
pool_mode = transaction
default_pool_size = $pool_size
max_client_conn = 200
));
	push @poolers, IPC::Run::start([ $pgbouncer, "$dir/ini" ], '<', \undef, '>', "$dir/log", '2>&1');
	wait_until(sub { -S "$dir/.s.PGSQL.$port" }) or die 'pgbouncer does not start: ' . slurp_file("$dir/log");
	return { dir => $dir, port => $port, user => $user };
}

END
{
	my $status = $?;

	$_->kill_kill foreach (@poolers);
	$? = $status;
}

sub connstr
{
	my ($pooler, $user) = @_;

	return "host=$pooler->{dir} port=$pooler->{port} dbname=postgres user=" . ($user || $pooler->{user});
}

sub query
{
	my ($pooler, $sql, $user) = @_;
	my ($out, $err) = run_command([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', connstr($pooler, $user), '-c', $sql ]);

	return $err eq '' ? $out : $err;
}


#
# Many clients, few sessions
#

my $pooler = start_pooler(4);
my $script = $server->basedir . '/insert';
append_to_file(
	$script, q(
INSERT INTO ids SELECT FROM generate_series(1, 3);
BEGIN;
INSERT INTO ids DEFAULT VALUES;
INSERT INTO ids (id) SELECT scru64_generate(3);
END;
));
command_ok(
	[
		'pgbench', '--no-vacuum', '--jobs=2', '--client=40', '--transactions=25', '-f', $script,
		'-h', $pooler->{dir}, '-p', $pooler->{port}, '-U', $pooler->{user}, 'postgres'
	],
	'40 clients');
is($server->safe_psql('postgres', q(
SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE scru64_node_ctr(id) >> 16 <> 42), count(DISTINCT pid) <= 4
FROM ids)),
	'7000|7000|0|t',
	'no ID twice, all of the node of the server, from 4 sessions');


#
# One session: what one client sets, the next one has
#

my $node = 'SELECT scru64_node_ctr(scru64_generate()) >> 16';

$pooler = start_pooler(1);
is(query($pooler, $node), '42', 'the node of the server');
is(query($pooler, "BEGIN; SET LOCAL scru64.node_spec = '7/8'; $node; COMMIT"), '7', 'SET LOCAL is for this transaction');
is(query($pooler, $node), '42', 'and for no other');
is(query($pooler, $node, 'other'), '43', 'ALTER ROLE SET is for the sessions of this role');
is(query($pooler, $node), '42', 'and for no other');
query($pooler, "SET scru64.node_spec = '8/8'");
is(query($pooler, $node), '8', 'SET stays in the session, for the next client, too');
query($pooler, 'RESET scru64.node_spec');
is(query($pooler, $node), '42', 'until RESET');

$_->kill_kill foreach (splice(@poolers));
$server->stop;
done_testing();
