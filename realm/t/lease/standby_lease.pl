# A standby that preloads the library has a lease for its promotion: it has a node at once
# then, though the realm is away, and goes on after all IDs of its primary.

use strict;
use warnings;
use Scru64Clock;
use Scru64Copies;
use Scru64Debugger;
use Scru64Lease;
use Scru64Loads;
use Scru64Server;
use Scru64Test;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;

my $template = make_template('template', allows_streaming => 1);
my $realm = make_realm($template, 'realm');
my $primaries = 0;

# what the servers ask for
$realm->safe_psql('postgres', "ALTER ROLE fleet SET log_statement = 'all'");

# A primary under a load, ahead of the clock by some seconds, and a standby of it that
# has a lease.  However slow the machine is, one statement can take a node ahead.
sub make_pair
{
	my ($lines) = @_;
	my $n = ++$primaries;
	my $primary = fleet_server($template, "primary_$n", fleet_lines($realm, lease_node_id_size => 18, lease_node_id_size_min => 18));
	my $standby = add_standby($template, $primary, "standby_$n", lines => $lines . $preload);

	isnt(wait_for_lease($primary), '', "primary $n: a lease");
	begin_load($primary, 2);
	wait_until(
		sub {
			$primary->safe_psql('postgres', 'SELECT count(scru64_generate()) FROM generate_series(1, 1500)');
			return $primary->safe_psql('postgres', "SELECT count(*) FROM scru64_generators() WHERE lead > '3 s'") eq 1;
		}) or fail("primary $n is not ahead of the clock");
	return ($primary, $standby);
}

# The node that a standby holds.
sub held_by
{
	my ($standby) = @_;

	return wait_until(sub { lease_sql($standby, "CASE WHEN state = 'held for promotion' THEN node_spec END") });
}

# End the load of the primary, and the primary; returns the last ID of all that it issued.
sub end_primary
{
	my ($primary, $standby) = @_;
	my @ids = sort map { ids_of($_) } end_loads();

	catch_up($primary, $standby);
	$primary->stop('immediate');
	return $ids[-1];
}

# Promote a standby, and see that it issues IDs, in a session from before.
sub ok_promoted
{
	my ($standby, $node, $last_id, $name) = @_;
	my $session = open_session($standby);
	my (undef, $refused) = try_statement($session, 'SELECT scru64_generate()');
	like($refused, qr/ERROR:  25006: /, "$name: a standby gives no ID");
	$standby->promote;
	my $began = time();
	my ($id, $err) = try_statement($session, 'SELECT scru64_generate()');
	my $took = time() - $began;
	$session->quit;
	note_ids($standby, $id) if $id ne '';
	is($err, '', "$name: promoted, it issues IDs");
	cmp_ok($took, '<', 5, sprintf('%s: after %.3f s', $name, $took));
	cmp_ok($id, 'gt', $last_id, "$name: after all of its primary");
	is(lease_of($standby), $node, "$name: of the node that it held");
	begin_load($standby, 2);
	sleep(0.5);
	return;
}

#
# While it is a standby
#
my ($primary, $standby) = make_pair(fleet_lines($realm));
my $node = held_by($standby);
isnt($node, '', 'a standby leases a node');
isnt($node, lease_of($primary), 'another node than its primary');
is($standby->safe_psql('postgres', 'SELECT scru64_node_spec() IS NULL'), 't', 'no session has it');
is($standby->safe_psql('postgres', 'SELECT count(*) FROM scru64_generators()'), 0, 'nor has it a slot');
is($realm->safe_psql('realm', "SELECT node FROM scru64_realm.leases WHERE holder = 'standby_1'"), $node, 'the realm knows');
{
	my $renewed = lease_sql($standby, 'renewed_at');

	configure_server($standby, "scru64.lease_node_id_size = 11\n");
	ok(wait_until(sub { lease_sql($standby, "renewed_at > '$renewed'") eq 't' }), 'it is renewed');
	is(held_by($standby), $node, 'whatever size is wanted');
	configure_server($standby, "scru64.lease_node_id_size = 12\n");
}
my $before = $node;
crash($standby);
$node = held_by($standby);
ok($node ne '' && $node ne $before, "a crash: another one, $before, $node");
$standby->stop('fast');
is( $realm->safe_psql(
		'realm', "SELECT count(*) FROM scru64_realm.ledger WHERE holder = 'standby_1' AND last_id = scru64_realm_internal.start(node_ctr_range, granted_at) AND occupied_until = released_at + (SELECT guard FROM scru64_realm.settings)"),
	1, 'a stop releases it, without an ID');
is(scalar(logged($realm, qr/DETAIL: .*[Pp]arameters: \$1 = '[0-9a-f-]{36}', \$2 = '[0-9a-z]{12}'$/)), 1, 'but with where it begins for the last one');
start_server($standby);
$before = $node;
$node = held_by($standby);
ok($node ne '' && $node ne $before, "started again: another one, $before, $node");

configure_server($standby, "scru64.realm = ''\n");
ok(wait_until(sub { $realm->safe_psql('realm', "SELECT released_at IS NOT NULL FROM scru64_realm.ledger WHERE holder = 'standby_1' AND node_id || '/' || node_id_size = '$node'") eq 't' }), 'without a realm, it releases the lease');
crash($standby);
configure_server($standby, fleet_lines($realm));
$node = held_by($standby);
isnt($node, '', 'with a realm again, it leases a node, without a restart');

$realm->safe_psql('realm', "UPDATE scru64_realm.ledger SET lease_id = gen_random_uuid() WHERE holder = 'standby_1'");
sleep(10);
$standby->reload;
$before = $node;
$node = wait_until(sub { my $now = held_by($standby); $now ne $before && $now });
isnt($node, '', 'one that the realm does not know: another one');

#
# Promoted without a realm
#
$realm->stop('immediate');
ok_promoted($standby, $node, end_primary($primary, $standby), 'the realm is away');
like(lease_sql($standby, 'state'), qr/^held/, 'scru64_lease()');
ok(scalar(logged($standby, "LOG:  recovery has ended, and this server has node \Q$node\E")) == 1, 'the log');
sleep(1);
start_server($realm);
$standby->reload;
ok(wait_until(sub { lease_sql($standby, "state = 'held' AND failures = 0") eq 't' }), 'the realm is back: it is renewed');
crash($standby);
isnt(wait_for_lease($standby, $node), '', 'a crash after the promotion: another node');
end_loads();
ok_ids($realm, 'the realm is away');
$standby->stop;

#
# A realm that is silent, and is just being asked
#
($primary, $standby) = make_pair(fleet_lines($realm));
$node = held_by($standby);
my $last_id = end_primary($primary, $standby);
signal_server($realm, 'STOP');
$standby->reload;
ok(wait_until(sub { $standby->safe_psql('postgres', "SELECT query FROM pg_stat_activity WHERE backend_type = 'scru64 lease worker'") eq 'talking with the realm' }), 'the realm is asked');
ok_promoted($standby, $node, $last_id, 'a realm that is silent');
signal_server($realm, 'CONT');
end_loads();
$standby->stop;

#
# The window is nearly over, and over
#
($primary, $standby) = make_pair(fleet_lines($realm, lease_ttl => '10s'));
$node = held_by($standby);
$last_id = end_primary($primary, $standby);
$realm->stop('immediate');
my $expires = lease_sql($standby, 'extract(epoch FROM expires_at)::numeric(20,3)');
sleep(0.1) while (time() < $expires - 6);
ok_promoted($standby, $node, $last_id, 'little time left');
my $err = wait_until(sub { (try_generate($standby))[1] });
like($err, qr/ERROR:  55000: /, 'then there are none');
cmp_ok(time(), '>', $expires - 0.3, 'not before the end of the window');
start_server($realm);
isnt(wait_for_lease($standby), '', 'the realm is back: a lease');
end_loads();
$standby->stop;

($primary, $standby) = make_pair(fleet_lines($realm, lease_ttl => '10s'));
isnt(held_by($standby), '', 'once more');
end_primary($primary, $standby);
$realm->stop('immediate');
$expires = lease_sql($standby, 'extract(epoch FROM expires_at)::numeric(20,3)');
sleep(0.1) while (time() < $expires + 1);
$standby->promote;
like((try_generate($standby))[1], qr/ERROR:  55000: /, 'the window is over: no ID');
start_server($realm);
isnt(wait_for_lease($standby), '', 'the realm is back: a lease');
$standby->stop;

#
# A primary whose clock is ahead: its ceiling is beyond the window
#
SKIP:
{
	skip 'no clock can be set', 1 if !can_set_clock();
	my $server = fleet_server($template, 'ahead', "scru64.node_spec = '1000/10'\n", clock => '+7200');

	$standby = add_standby($template, $server, 'behind', lines => fleet_lines($realm) . $preload);
	isnt(held_by($standby), '', 'a primary whose clock is ahead');
	isnt($server->safe_psql('postgres', 'SELECT scru64_generate()'), '', 'and its IDs');
	catch_up($server, $standby);
	$server->stop('immediate');
	$standby->promote;
	isnt(wait_for_lease($standby), '', 'a lease whose window has no room for more: another one');
	is($realm->safe_psql('realm', "SELECT count(*), count(*) FILTER (WHERE released_at IS NOT NULL) FROM scru64_realm.ledger WHERE holder = 'behind'"),
		'2|1', 'and the first one is released');
	$standby->stop;
}

#
# Promoted before it has a lease, as the realm is silent: the first one that it gets is good
#
{
	my $server = fleet_server($template, 'leader', "scru64.node_spec = '1000/10'\n");

	signal_server($realm, 'STOP');
	$standby = add_standby($template, $server, 'late', lines => fleet_lines($realm) . $preload);
	isnt($server->safe_psql('postgres', 'SELECT scru64_generate()'), '', 'the realm is silent: a standby');
	catch_up($server, $standby);
	$server->stop('immediate');
	$standby->promote;
	signal_server($realm, 'CONT');
	ok(wait_until(sub { lease_sql($standby, "state = 'held'") eq 't' }), 'promoted, it leases');
	$node = lease_of($standby);
	is((try_generate($standby))[1], '', 'and the first session gets an ID');
	is(lease_of($standby), $node, 'of this lease');
	is($realm->safe_psql('realm', "SELECT count(*) FROM scru64_realm.ledger WHERE holder = 'late'"), 1, 'there is one');
	$standby->stop;
}

#
# A lease that the standby's worker has released is not for its next worker
#
{
	my $server = fleet_server($template, 'one', "scru64.node_spec = '1000/10'\n");

	$standby = add_standby($template, $server, 'other', lines => fleet_lines($realm) . $preload);
	isnt(held_by($standby), '', 'a standby leases a node');
	# of which there is no node
	configure_server($standby, "scru64.lease_within = '1/20'\n");
	ok(wait_until(sub { $realm->safe_psql('realm', "SELECT released_at IS NOT NULL FROM scru64_realm.ledger WHERE holder = 'other'") eq 't' }), 'and releases it');
	ok(wait_until(sub { lease_sql($standby, "state = 'failing'") eq 't' }), 'and gets no other');
	my $worker = lease_sql($standby, 'worker_pid');
	$standby->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
	ok(wait_until(sub { lease_sql($standby, 'worker_pid IS NULL') eq 't' }), 'its worker ends');
	$server->stop;
	$standby->promote;
	ok(wait_until(sub { try_generate($standby); lease_sql($standby, "worker_pid <> $worker AND failures > 0") eq 't' }), 'promoted, it has another worker');
	like((try_generate($standby))[1], qr/ERROR:  55000: /, 'and no ID');
	is(scalar(logged($standby, qr/was resumed/)), 0, 'of a lease that was released');
	$standby->stop;
}

#
# Promoted when its worker has just decided to ask for its first lease
#
SKIP:
{
	skip 'gdb is not installed', 1 if !has_gdb();
	my $server = fleet_server($template, 'first', "scru64.node_spec = '1000/10'\n");

	$realm->stop;
	$standby = add_standby($template, $server, 'second', lines => fleet_lines($realm) . $preload);
	isnt($server->safe_psql('postgres', 'SELECT scru64_generate()'), '', 'the realm is away: a standby');
	catch_up($server, $standby);
	$server->stop('immediate');
	my $gdb = stop_at($standby, lease_sql($standby, 'worker_pid'), 'realm_open');
	$standby->reload;
	ok(has_stopped($gdb), 'its worker is about to ask');
	# from PostgreSQL 19 on, a promotion waits for each process, also for the one that is stopped
	$standby->pg_version->major < 19 ? $standby->promote : $standby->safe_psql('postgres', 'SELECT pg_promote(false)');
	start_server($realm);
	skip 'the debugger could not stop it there', 1 if !let_go($gdb);
	ok(wait_until(sub { lease_sql($standby, "state = 'held'") eq 't' }), 'promoted meanwhile, it leases');
	is((try_generate($standby))[1], '', 'and the first session gets an ID');
	is($realm->safe_psql('realm', "SELECT count(*) FROM scru64_realm.ledger WHERE holder = 'second'"), 1, 'of its only lease');
	$standby->stop;
}

#
# A standby that nobody can connect to
#
($primary, $standby) = make_pair(fleet_lines($realm) . "hot_standby = off\n");
end_loads();
is($realm->safe_psql('realm', "SELECT count(*) FROM scru64_realm.leases WHERE holder = '" . $standby->name . "'"), 0, 'hot_standby = off: no lease');
$primary->stop;
$standby->promote;
ok(wait_until(sub { lease_sql($standby, "state = 'held'") eq 't' }), 'promoted, it leases');
isnt((try_generate($standby))[0], '', 'and there are IDs');
$standby->stop;

ok_ids($realm, 'all');
done_testing();
