# Sessions wait for the one that writes the state file: the waits can be seen and
# ended, who has a ceiling does not wait, one write is for all, and whatever happens to
# the writer, the others go on.
#
# The file's temporary name is a named pipe here, so that a write takes as long as
# the test wants.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use Fcntl;
use IPC::Run;
use POSIX qw(mkfifo);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Scru64Fault;
use Scru64Test;
use Test::More;
use Time::HiRes qw(sleep time stat);

# Milliseconds that a wait may need to end.
my $at_once = 400;

my $node = new_node('main');
my $state = state_file($node);
my $pipe = "$state.tmp";
my $unused = 0;

$node->append_conf('postgresql.conf', "restart_after_crash = on\nmax_connections = 200");
start_server($node);
$node->safe_psql('postgres', 'CREATE EXTENSION scru64');
add_helpers($node);

my $wait_event =
  $node->safe_psql('postgres', 'SHOW server_version_num') >= 170000
  ? 'Extension Scru64StateFile'
  : 'Extension Extension';

my %received;

sub unused
{
	return ++$unused . '/10';
}

sub generate_sql
{
	my ($spec) = @_;

	return "SET scru64.node_spec = '$spec'; SELECT scru64_generate()";
}

sub session
{
	my $session = open_session($node);

	$session->{pid} = $session->query_safe('SELECT pg_backend_pid()');
	return $session;
}

# What a statement that was started has given: an ID, or else an error.
sub result
{
	my ($session, $spec) = @_;
	my ($out, $err) = try_statement($session, 'SELECT 1');
	my ($id) = $out =~ /^(\w{12})$/m;

	record_ids(\%received, $spec, [$id]) if defined $id;
	return $err;
}

sub waiting
{
	return $node->safe_psql('postgres',
		"SELECT count(*) FROM pg_stat_activity WHERE wait_event_type || ' ' || wait_event = '$wait_event'"
	);
}

sub waiting_ok
{
	my ($count, $name) = @_;

	ok( $node->poll_query_until(
			'postgres',
			"SELECT count(*) FROM pg_stat_activity WHERE wait_event_type || ' ' || wait_event = '$wait_event'",
			$count),
		"$name: $count wait");
	return;
}

# A session that has begun to write the file, and cannot go on.
sub stuck_writer
{
	my ($spec, $name) = @_;
	my $writer = session();
	my $in_a_row = 0;

	mkfifo($pipe, 0600) or die "could not make $pipe: $!";
	start_statement($writer, generate_sql($spec));

	# it runs, and neither ends nor waits for others
	foreach my $attempt (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		my $writes = $node->safe_psql('postgres', qq(
SELECT state = 'active' AND query LIKE '%generate%' AND wait_event IS NULL
FROM pg_stat_activity WHERE pid = $writer->{pid}));

		$in_a_row = $writes eq 't' ? $in_a_row + 1 : 0;
		last if $in_a_row == 5;
		sleep(0.05);
	}
	is($in_a_row, 5, "$name: a session writes");
	return $writer;
}

# Let the writer go on: read what it writes.
sub let_go
{
	sysopen(my $reader, $pipe, O_RDONLY) or die "could not open $pipe: $!";
	local $/ = undef;
	my $text = <$reader>;

	close($reader);
	return $text;
}

sub no_problems
{
	my ($name) = @_;

	is(record_problems(\%received), '', "$name: no ID twice, none too low");
	return;
}

# All nodes so far, and a new one, go on within a moment.
sub goes_on_ok
{
	my ($name) = @_;
	my $session = session();
	my $errors = '';

	unlink($pipe);
	$session->query_safe("SET statement_timeout = '5s'");
	foreach my $spec (sort keys %received, unused())
	{
		my ($out, $err) = try_statement($session, generate_sql($spec));

		$errors .= $err;
		record_ids(\%received, $spec, [$out]) if $err eq '';
	}
	$session->quit;
	is($errors, '', "$name: all nodes go on");
	no_problems($name);
	return;
}

#
# One is stuck.
#
my $spec = unused();
my $ready = session();
my $ready_spec = unused();

record_ids(\%received, $ready_spec, [ $ready->query_safe(generate_sql($ready_spec)) ]);
my $writer = stuck_writer($spec, 'stuck');
record_ids(\%received, $ready_spec, [ $ready->query_safe("SET statement_timeout = '1s'; SELECT scru64_generate()") ]);
no_problems('stuck, a session that has a ceiling');

my $same = session();
my ($out, $err) = try_statement($same, "SET statement_timeout = '300ms'; " . generate_sql($spec));
is($out, '', 'stuck: no ID of the node whose ceiling is not written yet');
like($err, qr/ERROR:  57014: /, 'stuck: statement_timeout ends a wait');
$same->query_safe('SET statement_timeout = 0');
foreach my $how ('pg_cancel_backend', 'pg_terminate_backend')
{
	my $session = session();

	start_statement($session, generate_sql($spec));
	waiting_ok(1, "stuck, $how");
	cmp_ok($node->safe_psql('postgres', "SELECT round(end_statement($session->{pid}, '$how'))"),
		'<', $at_once, "stuck: $how ends a wait at once");
	if ($how eq 'pg_cancel_backend')
	{
		like(result($session, $spec), qr/ERROR:  57014: /, "stuck: that is the error");
		$session->quit;
	}
	else
	{
		$session->{run}->finish;
	}
}
is($node->safe_psql('postgres', 'SELECT count(*) > 0 FROM scru64_generators'), 't', 'stuck: the view works');

# Many nodes wait meanwhile, and what comes next is for all of them.
my $sessions = 30;
my ($bench_out, $bench_err) = ('', '');
my $script = $node->basedir . '/wait';
append_to_file($script, q(
\set node :client_id + 100
SET scru64.node_spec = ':node/10';
SELECT scru64_generate();
));
my $bench = IPC::Run::start(
	[
		'pgbench', '--no-vacuum', "--client=$sessions", '--jobs=2',
		'--transactions=1', '-f', $script, '-h', $node->host, '-p', $node->port, 'postgres'
	],
	'>', \$bench_out, '2>', \$bench_err,
	IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
waiting_ok($sessions, 'stuck, many nodes');

like(let_go(), qr{^scru64 state file.*\ntimeline 1\nfloor .*\n(\w{12}/10\n)+$}, 'what the stuck session writes is a state file');
my $writes = 0;
my $last = '';
my $until = time() + 1.5;
while (time() < $until)
{
	my @stat = stat($state);
	my $now = @stat ? "$stat[1] $stat[9]" : $last;

	$writes++ if $now ne $last;
	$last = $now;
}
$bench->finish;
is($bench_err, '', 'many nodes: no error');
is($node->safe_psql('postgres', 'SELECT count(*) FROM scru64_generators WHERE node_id >= 100 AND last_id IS NOT NULL'),
	$sessions, 'many nodes: each has an ID');
# the first is the stuck session's; one may come before the last session waits
cmp_ok($writes, '<=', 3, "many nodes: one write is for all ($writes)");
is(result($writer, $spec), '', 'the stuck session goes on');
$writer->quit;
goes_on_ok('after many nodes');

#
# What happens to who is stuck.
#
foreach my $how ('pg_cancel_backend', 'pg_terminate_backend')
{
	my $name = "the stuck session, $how";
	my $waiter = session();
	my $waiter_spec = unused();

	$spec = unused();
	$writer = stuck_writer($spec, $name);
	start_statement($waiter, generate_sql($waiter_spec));
	waiting_ok(1, $name);
	$node->safe_psql('postgres', "SELECT $how($writer->{pid})");
	sleep(0.1);
	is(waiting(), 1, "$name: nobody else may write meanwhile");
	let_go();
	is(result($waiter, $waiter_spec), '', "$name: who waited goes on");
	if ($how eq 'pg_cancel_backend')
	{
		result($writer, $spec);
		$writer->quit;
	}
	else
	{
		$writer->{run}->finish;
	}
	$waiter->quit;
	goes_on_ok($name);
}

# While it writes, it loses its slot: the ceiling is not the next node's.
{
	my $name = 'the slot is taken away';
	my $nodes = 128;
	my $sql = $node->basedir . '/take_slots';
	my ($take_out, $take_err) = ('', '');

	$spec = unused();
	$writer = stuck_writer($spec, $name);
	append_to_file($sql, q(
\set node :client_id + 300
SET statement_timeout = '1s';
SET scru64.node_spec = ':node/10';
SELECT scru64_generate();
));
	IPC::Run::run(
		[
			'pgbench', '--no-vacuum', "--client=$nodes", '--jobs=2',
			'--transactions=1', '-f', $sql, '-h', $node->host, '-p', $node->port, 'postgres'
		],
		'>', \$take_out, '2>', \$take_err,
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	my $timeouts = () = $take_err =~ /canceling statement due to statement timeout/g;
	is($timeouts, $nodes, "$name: $nodes other nodes wait, and give up");
	is( $node->safe_psql('postgres',
			'SELECT count(*) FROM scru64_generators WHERE node_id >= 300 AND last_id IS NULL'),
		$nodes, "$name: they have all slots");
	let_go();
	is(result($writer, $spec), '', "$name: the session goes on");
	cmp_ok($received{$spec}{greatest}, 'le', ceiling_of($node, $spec), "$name: with a ceiling in the file");
	my %file = state_ids($node);
	my @wrong = grep { !defined $file{$_} } split(/\n/,
		$node->safe_psql('postgres',
			q(SELECT node_id || '/10' FROM scru64_generators WHERE durable_until IS NOT NULL)));
	is(join(' ', @wrong), '', "$name: no node has a ceiling that is not in the file");
	$writer->quit;
	goes_on_ok($name);
}

# Its write fails: who waited has to try for himself, and may.
{
	my $name = 'the write fails';
	my @waiters = map { session() } (1 .. 3);
	my @specs = map { unused() } (1 .. 3);

	$spec = unused();
	$writer = stuck_writer($spec, $name);
	start_statement($waiters[$_], generate_sql($specs[$_])) foreach (0 .. 2);
	waiting_ok(3, $name);
	rename($state, "$state.away") or die "could not rename $state: $!";
	mkdir($state) or die "could not make $state: $!";
	# the pipe stays where it is, so keep it open
	sysopen(my $reader, $pipe, O_RDWR) or die "could not open $pipe: $!";
	like(result($writer, $spec), qr/ERROR:  42809: could not open file "scru64\.state"/, "$name: the error");
	like(result($waiters[$_], $specs[$_]), qr/ERROR:  42809: could not open file "scru64\.state"/, "$name: who waited has it, too, $_")
	  foreach (0 .. 2);
	is($received{$_}, undef, "$name: no ID of $_") foreach ($spec, @specs);
	close($reader);
	rmdir($state);
	rename("$state.away", $state) or die "could not rename $state.away: $!";
	$_->quit foreach ($writer, @waiters);
	goes_on_ok($name);
}

# The server crashes in the middle of a write.
foreach my $how ('kill -9 of the writer', 'kill -9 of the postmaster')
{
	my $waiter = session();
	my $waiter_spec = unused();
	my $before = read_file($state);

	$spec = unused();
	$writer = stuck_writer($spec, $how);
	start_statement($waiter, generate_sql($waiter_spec));
	waiting_ok(1, $how);
	kill_server($node) if $how eq 'kill -9 of the postmaster';
	kill('KILL', $writer->{pid}) or die "could not kill $writer->{pid}: $!";
	$_->{run}->finish foreach ($writer, $waiter);
	is(read_file($state), $before, "$how: the state file is as it was");
	unlink($pipe);
	if ($how eq 'kill -9 of the postmaster')
	{
		start_server($node);
	}
	else
	{
		$node->poll_query_until('postgres', 'SELECT true')
		  or die 'the server did not restart';
	}
	goes_on_ok($how);
}

$same->quit;
$ready->quit;
$node->stop;
done_testing();
