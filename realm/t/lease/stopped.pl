# A session that is stopped where it is worst goes on with the lease; and whoever has a lease starts
# another worker for it.  That no ID leaves outside the window, however processes are stopped, is
# for the simulator (unit_tests/sim/).

use strict;
use warnings;
use Scru64Copies;
use Scru64Debugger;
use Scru64Lease;
use Scru64Server;
use Scru64Test;

plan skip_all => 'gdb is not installed' if !has_gdb();

my $template = make_template('template', allows_streaming => 1);
my $realm = make_realm($template, 'realm');
my $other = make_realm($template, 'other');
# longer than any wait here
$realm->safe_psql('realm', q(UPDATE scru64_realm.settings SET first_ttl = '1 hour'));

# Is the result of scru64_check() null, without an error?
sub check
{
	my ($server) = @_;
	my ($status, $out, $err) = $server->psql('postgres', 'SELECT scru64_check() IS NULL');

	return $out . $err;
}

#
# A session at the limit, which is stopped while it looks at the worker, until that has
# renewed the lease
#
SKIP:
{
	# 16 IDs in a tick, which may be a minute ahead of the clock
	my $server = fleet_server($template, 'd', fleet_lines($realm, lease_ttl => '10s', lease_node_id_size => '20', rollback_allowance => '60s'));
	isnt(wait_for_lease($server), '', 'a server with a small node');
	my $session = open_session($server);
	$session->query_safe('SELECT scru64_generate()');
	my $worker = lease_sql($server, 'worker_pid');
	kill('STOP', $worker);
	wait_until(sub { lease_sql($server, "expires_at < now() + '55 s'") eq 't' });
	my $renewed = lease_sql($server, 'renewed_at');
	my $gdb = stop_at($server, $session->{pid}, 'mailbox_info');
	start_statement($session, 'SELECT max(id) FROM scru64_generate(16 * 4 * 56) id');
	ok(has_stopped($gdb), 'a session is at the limit');
	kill('CONT', $worker);
	ok(wait_until(sub { lease_sql($server, "renewed_at > '$renewed' AND expires_at > now() + '60 s'") eq 't' }), 'the lease is renewed meanwhile');
	my $stopped = let_go($gdb);
	my ($out, $err) = try_statement($session, 'SELECT 1');
	note_ids($server, grep { /^[0-9a-z]{12}$/ } split(/\n/, $out));
	skip 'the debugger could not stop it there', 1 if !$stopped;
	is($err, '', 'the session goes on');
	$session->quit;
	$server->stop;
}

#
# A worker that has failed, on a server that does not preload the library: a session starts
# another one while the lease lasts, or it would not be renewed
#
sub end_worker
{
	my ($server) = @_;
	my $pid = lease_sql($server, 'worker_pid');

	return qx(gdb -batch -nx -p $pid -ex 'call (void) proc_exit(0)' 2>&1) =~ /exited/
	  && wait_until(sub { lease_sql($server, 'worker_pid IS NULL') eq 't' });
}

SKIP:
{
	my $server = fleet_server($template, 'e', fleet_lines($realm));
	isnt(wait_for_lease($server), '', 'a server that does not preload the library');
	my $lease = lease_sql($server, 'node_spec, granted_at');
	skip 'the debugger could not end the worker', 1 if !end_worker($server);
	ok(wait_until(sub { try_generate($server); lease_sql($server, 'worker_pid IS NOT NULL') eq 't' }), 'a session that has the lease starts another worker');
	is(lease_sql($server, 'node_spec, granted_at'), $lease, 'which resumes the lease');
	is(scalar(logged($server, 'the lease of node \S+ was resumed')), 1, 'and says so');

	# no worker is there to see that the realm is another one
	skip 'the debugger could not end the worker', 1 if !end_worker($server);
	configure_server($server, fleet_lines($other));
	ok(wait_until(sub { try_generate($server); $other->safe_psql('realm', 'SELECT count(*) FROM scru64_realm.leases') eq '1' }),
		'a lease of another realm is not resumed');
	$server->stop;
}

#
# A server that nobody asks for an ID, without a worker and with no lease, or with a lease that is
# over: scru64_check() knows that the next ID brings both
#
SKIP:
{
	my $server = fleet_server($template, 'f', fleet_lines($realm, lease_ttl => '10s', rollback_allowance => '1s'));

	is(check($server), 't', 'no session has asked for an ID yet: scru64_check() is null');
	isnt(wait_for_lease($server), '', 'an ID, nevertheless');
	$server->safe_psql('postgres', 'SELECT pg_terminate_backend(worker_pid) FROM scru64_lease()');
	ok(wait_until(sub { lease_sql($server, 'worker_pid IS NULL AND node_spec IS NULL') eq 't' }), 'a worker is terminated');
	is(check($server), 't', 'no worker, no lease: scru64_check() is null');
	like((try_generate($server))[0], qr/^\w{12}$/, 'no worker, no lease: an ID');

	system('gdb -batch -nx -p ' . lease_sql($server, 'worker_pid') . " -ex 'call (void) proc_exit(0)' >/dev/null 2>&1");
	skip 'the debugger could not end the worker', 3 if !wait_until(sub { lease_sql($server, 'worker_pid IS NULL') eq 't' });
	ok(wait_until(sub { lease_sql($server, 'expires_at < now()') eq 't' }), 'a lease is over');
	is(check($server), 't', 'no worker, a lease that is over: scru64_check() is null');
	like(join('', try_generate($server)), qr/^\w{12}$/, 'no worker, a lease that is over: an ID');
	$server->stop;
}

ok_ids([ $realm, $other ], 'stopped and continued');
done_testing();
