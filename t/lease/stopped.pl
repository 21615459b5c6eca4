# Processes that are stopped where it is worst, and go on when somebody else has
# their node: no ID of it leaves outside the window.

use FindBin;
use lib "$FindBin::RealBin/../lib";
use Scru64Fault;
use Scru64Lease;
use Scru64Test;

my $template = make_template('template', allows_streaming => 1);
my $realm = make_realm($template, 'realm');
# two nodes, which are given again at once
my $lines = fleet_lines($realm, lease_ttl => '10s', lease_node_id_size => '10', lease_within => '0/9');
$realm->safe_psql('realm', "SELECT scru64_realm.set_guard('0 s', true)");

my ($server_a, $server_b, $server_c) = map { fleet_server($template, $_, $lines . ($_ eq 'a' ? $preload : '')) } qw(a b c);
my $node_a = wait_for_lease($server_a);
my $node_b = wait_for_lease($server_b);
is(join(' ', sort($node_a, $node_b)), '0/10 1/10', 'two servers have the two nodes');
begin_load($_, 3) foreach ($server_a, $server_b, $server_c);
like(last_error($server_c, qr/realm is full/), qr/full/, 'a third has none');

#
# All of a server, past the end of its lease
#
signal_server($server_a, 'STOP');
my $began = time();
my $taken = wait_for_lease($server_c);
is($taken, $node_a, sprintf('the node of the one that is stopped is free after %.1f s', time() - $began));
sleep(1);
signal_server($server_a, 'CONT');
like(last_error($server_a, qr/realm is full/), qr/full/, 'it goes on, and has none');
# a lease that the realm has refused to renew stays in scru64_lease(), as failing, until there is another one
my $refused = logged($server_a, "the lease of node $node_a is not renewed any more");
my $row = 'failing|' . ($refused ? $node_a : '');
ok(wait_until(sub { lease_sql($server_a, "state, coalesce(node_spec, '')") eq $row }), "nor does scru64_lease() say that the old one is held: $row");

#
# Sessions of a server, while the worker returns the node; others go on, and the
# realm takes its time
#
my @pids = split(/\n/, $server_b->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE application_name = 'load'"));
my $slow = open_session($realm, dbname => 'realm');
$slow->query_safe("BEGIN; SELECT FROM scru64_realm.ledger WHERE holder = 'b' FOR UPDATE");
kill('STOP', @pids[ 1 .. $#pids ]);
configure_server($server_b, "scru64.realm = ''\n");
sleep(1);
$slow->query_safe('ROLLBACK');
$slow->quit;
$began = time();
is(wait_for_lease($server_a), $node_b, sprintf('a node that is returned is free after %.1f s', time() - $began));
sleep(0.5);
kill('CONT', @pids);
sleep(0.5);

#
# All have room again
#
$server_c->stop;
configure_server($server_b, $lines);
isnt(wait_for_lease($server_b), '', 'when there is one, it is leased');

end_loads_ok('55000|57P01|57P03', 'no other error');

#
# A session at the limit, which is stopped while it looks at the worker, until that has
# renewed the lease
#
SKIP:
{
	skip 'gdb is not installed', 1 if !has_gdb();
	# 16 IDs in a tick, which may be a minute ahead of the clock
	my $server = fleet_server($template, 'd', fleet_lines($realm, lease_ttl => '10s', lease_node_id_size => '20', rollback_allowance => '60s'));
	isnt(wait_for_lease($server), '', 'a server with a small node');
	my $session = open_session($server);
	$session->query_safe('SELECT scru64_generate()');
	my $worker = lease_sql($server, 'worker_pid');
	kill('STOP', $worker);
	wait_until(sub { lease_sql($server, "expires_at < now() + '55 s'") eq 't' });
	my $renewed = lease_sql($server, 'renewed_at');
	my $gdb = stop_at($server, $session->{pid}, 'lease_info');
	start_statement($session, 'SELECT max(id) FROM scru64_generate(16 * 4 * 56) id');
	ok(has_stopped($gdb), 'a session is at the limit');
	kill('CONT', $worker);
	ok(wait_until(sub { lease_sql($server, "renewed_at > '$renewed' AND expires_at > now() + '60 s'") eq 't' }), 'the lease is renewed meanwhile');
	my $stopped = let_go($gdb);
	my ($out, $err) = try_statement($session, 'SELECT 1');
	skip 'the debugger could not stop it there', 1 if !$stopped;
	is($err, '', 'the session goes on');
	note_ids($server, grep { /^[0-9a-z]{12}$/ } split(/\n/, $out));
	$session->quit;
	$server->stop;
}

#
# A worker that has failed, on a server that does not preload the library: a session starts
# another one while the lease lasts, or it would not be renewed
#
SKIP:
{
	skip 'gdb is not installed', 1 if !has_gdb();
	my $server = fleet_server($template, 'e', fleet_lines($realm));
	isnt(wait_for_lease($server), '', 'a server that does not preload the library');
	my $lease = lease_sql($server, 'node_spec, granted_at');
	system('gdb -batch -nx -p ' . lease_sql($server, 'worker_pid') . " -ex 'call (void) proc_exit(0)' >/dev/null 2>&1");
	skip 'the debugger could not end the worker', 1 if !wait_until(sub { lease_sql($server, 'worker_pid IS NULL') eq 't' });
	ok(wait_until(sub { try_generate($server); lease_sql($server, 'worker_pid IS NOT NULL') eq 't' }), 'a session that has the lease starts another worker');
	is(lease_sql($server, 'node_spec, granted_at'), $lease, 'the lease goes on');
	$server->stop;
}

#
# A session that has found its tick below the limit, and is stopped before it takes the
# ID, until the node is somebody else's
#
SKIP:
{
	skip 'gdb is not installed', 1 if !has_gdb();
	my $library = $server_b->config_data('--pkglibdir') . '/scru64.so';
	# the compiler may have made two of one swap
	my @places = map { "enter_tick$_" } `gdb -batch -nx -ex 'disassemble enter_tick' $library 2>&1` =~ /<(\+\d+)>:\s+lock cmpxchg/g;
	skip 'the swap is not to be found', 1 if !@places;
	my $session = open_session($server_b);
	my $node = lease_of($server_b);
	note_ids($server_b, $session->query_safe('SELECT scru64_generate()'));
	my $gdb = stop_at($server_b, $session->{pid}, map { "*($_)" } @places);
	start_statement($session, 'SELECT scru64_generate()');
	ok(has_stopped($gdb), 'a session is stopped after it has checked the limit');
	configure_server($server_b, "scru64.realm = ''\n");
	start_server($server_c);
	is(wait_for_lease($server_c), $node, 'its node is returned, and somebody else has it');
	try_generate($server_c) foreach (1 .. 3);
	my $stopped = let_go($gdb);
	# it would wait for a lease
	sleep(0.3);
	$server_b->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT scru64_generate()%'");
	my ($out, $err) = try_statement($session, 'SELECT 1');
	my @late = grep { /^[0-9a-z]{12}$/ } split(/\n/, $out);
	note_ids($server_b, @late);
	$session->quit;
	skip 'the debugger could not stop it there', 1 if !$stopped;
	like($err, qr/ERROR:  (57014|55000): /, 'it goes on, and has no node any more');
	is("@late", '', 'nor the ID');
}
ok_ids($realm, 'stopped and continued');
done_testing();
