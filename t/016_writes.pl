# How often the state file is written, and that it is on disk before it counts.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Scru64Fault;
use Scru64Test;
use Test::More;
use Time::HiRes qw(sleep time stat);

my $node = new_node('main');
my $state = state_file($node);

start_server($node);
$node->safe_psql('postgres', 'CREATE EXTENSION scru64');
add_helpers($node);
$node->safe_psql('postgres', "SET scru64.node_spec = '9/8'; SELECT scru64_generate()");

# A file that was replaced is another one, or has another time.
sub identity
{
	my @stat = stat($state) or return 'none';

	return "$stat[1] $stat[9]";
}

# Watch the file for so many seconds: how often it was replaced.
sub count_writes
{
	my ($seconds) = @_;
	my $until = time() + $seconds;
	my $last = identity();
	my $writes = 0;

	while (time() < $until)
	{
		my $now = identity();

		$writes++ if $now ne $last;
		$last = $now;
		sleep(0.003);
	}
	return $writes;
}

# Two nodes at full load: one at the time of the clock, one ahead of it.
my $seconds = 9;
my ($out, $err) = ('', '');
my $script = $node->basedir . '/full_load';

append_to_file($script, q(
\if :client_id = 0
SET scru64.node_spec = '2/20';
\else
SET scru64.node_spec = '1/1';
\endif
SELECT count(*) FROM scru64_generate(100);
));

my $bench = IPC::Run::start(
	[
		'pgbench', '--no-vacuum', '--client=4', '--jobs=2',
		'--time=' . ($seconds + 1), '-f', $script, '-h', $node->host, '-p',
		$node->port, 'postgres'
	],
	'>', \$out, '2>', \$err,
	IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
$node->poll_query_until('postgres',
	"SELECT count(*) = 2 FROM scru64_generators WHERE node_id IN (1, 2) AND last_id IS NOT NULL")
  or die 'the nodes do not generate';

my $writes = count_writes($seconds);
is( $node->safe_psql('postgres',
		"SELECT lead > interval '9 s' FROM scru64_generators WHERE node_id = 2"),
	't',
	'one node is ahead of the clock');
is( $node->safe_psql('postgres', q(
SELECT abs(tick_of(last_id) - tick_of(clock_timestamp())) <= 2 FROM scru64_generators WHERE node_id = 1)),
	't',
	'the other one is not');
$bench->finish;
is($err, '', 'full load: no error');
cmp_ok($writes, '<=', 2 * (2 + $seconds / 4), "full load: at most one write in four seconds and node ($writes)");
cmp_ok($writes, '>=', 2, 'full load: there are writes');

# A session that does not generate, and none at all.
my $session = open_session($node);
$session->query_safe("SET scru64.node_spec = '1/1'; SELECT scru64_generate()");
is(count_writes(4.5), 0, 'idle: no write');
$session->quit;

# A node that gives an ID now and then: not more than one write for each.
my $before = identity();
$writes = 0;
foreach my $n (1 .. 30)
{
	$node->safe_psql('postgres', "SET scru64.node_spec = '1/1'; SELECT scru64_generate()");
	$writes++ if identity() ne $before;
	$before = identity();
}
cmp_ok($writes, '<=', 3, 'a session for each ID: no write for each');

# The new file is on disk before it gets its name, and its name before the IDs
# are given.
$node->append_conf('postgresql.conf', 'fsync = on');
$node->restart;
SKIP:
{
	my $trace = $node->basedir . '/trace';

	$session = open_session($node);
	$session->query_safe("SET scru64.node_spec = '3/8'; LOAD 'scru64'; SELECT count(*) FROM scru64_generators");
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	my ($strace_out, $strace_err) = ('', '');
	my $strace = eval {
		IPC::Run::start(
			[
				'strace', '-p', $pid, '-o', $trace, '-y', '-s', '1000', '-e',
				'trace=fsync,fdatasync,rename,renameat,renameat2,sendto'
			],
			'>', \$strace_out, '2>', \$strace_err);
	};
	skip 'strace is not installed', 1 if !defined $strace;
	foreach my $attempt (1 .. 100)
	{
		last if $strace_err =~ /attached/ || !$strace->pumpable;
		$strace->pump_nb;
		sleep(0.05);
	}
	if ($strace_err !~ /attached/)
	{
		$strace->kill_kill;
		skip 'strace may not attach', 1;
	}

	my $id = $session->query_safe('SELECT scru64_generate()');
	$session->quit;
	$strace->finish;

	my $calls = read_file($trace);
	note($calls);
	like(
		$calls,
		qr{^f(data)?sync\(\d+<[^>]*/scru64\.state\.tmp>\)\s+=\s0$
		   .*
		   ^rename\w*\(.*"scru64\.state\.tmp",\s.*"scru64\.state".*\)\s+=\s0$
		   .*
		   ^f(data)?sync\(\d+<[^>]*/pgdata>\)\s+=\s0$
		   .*
		   ^sendto\(.*$id}msx,
		'the file is on disk before it has its name, and that before the ID is given');
}

$node->stop;
done_testing();
