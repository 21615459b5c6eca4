# The size of a leased node follows the load: it grows while sessions have to wait for
# the clock, goes back when little of it is used, and nobody notices but by the speed:
# whatever the rollback allowance is beside the ttl, whatever the clocks say, whatever is
# configured.
#
# SCRU64_LOAD_SIZE: node_id_size of a quiet server, which two bits less are enough for;
# SCRU64_LOAD_SECONDS: how long the load goes on.  With 8 and 30 it is 600,000 IDs a
# second, from two sessions.

use strict;
use warnings;
use Scru64Copies;
use Scru64Lease;
use Scru64Test;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;

my $quiet = $ENV{SCRU64_LOAD_SIZE} || 12;
my $busy = $quiet - 2;
my $seconds = $ENV{SCRU64_LOAD_SECONDS} || 12;

# 2.34 times what the quiet size can give
my $rate = 2.34 * 2**(24 - $quiet) / 0.256;

my $template = make_template('template');
my $realm = make_realm($template, 'realm');

# A server that leases a node, of 10 seconds if no parameter of fleet_lines() says otherwise.
sub server_with_lease
{
	my ($name, $allowance, $lines, %params) = @_;
	my $server = fleet_server($template, $name,
		$lines . fleet_lines($realm, lease_ttl => '10s', lease_node_id_size => $quiet, lease_node_id_size_min => $busy, %params)
		  . "scru64.rollback_allowance = '$allowance'\nrestart_after_crash = on\n");

	isnt(wait_for_lease($server), '', "$name: a lease");
	return $server;
}

sub waits_of
{
	my ($server) = @_;

	return in_view($server, lease_of($server), 'node_id, waits');
}

# Does a server wait for the realm, which has been asked for a lease?
sub is_leasing
{
	return $realm->safe_psql('realm', "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%scru64_realm.lease(%' AND wait_event_type = 'Lock'");
}

#
# A hot server and a cold one
#
my $hot = server_with_lease('hot', '2s', $preload);
my $cold = server_with_lease('cold', '2s', '');
is(size_of($hot), $quiet, 'the size of a quiet server');
is(lease_sql($hot, 'size_changed_at, size_reason'), '|', 'which has not changed');
begin_streams($hot, $rate, $seconds, 2);
begin_streams($cold, 200, $seconds, 1);
sleep($seconds * 2 / 3);
my $before = waits_of($hot);
sleep($seconds / 3 - 1);
is(waits_of($hot), $before, 'hot: nobody waits in the end');
is(size_of($hot), $busy, 'hot: it has grown');
is(size_of($cold), $quiet, 'cold: it has not');
is(lease_sql($hot, "size_changed_at BETWEEN now() - '1 min'::interval AND now(), size_reason"),
	't|sessions had to wait for the clock', 'scru64_lease() says when and why');
is( $realm->safe_psql('realm', "SELECT count(*), count(*) FILTER (WHERE node_id_size = $busy) FROM scru64_realm.leases WHERE holder = 'hot'"),
	'1|1', 'the realm has the old one back');
ok_streams('a hot server and a cold one');
like(slurp_file($hot->logfile), qr{LOG:  the node of this server is \d+/$busy now, and was \d+/$quiet: sessions had to wait for the clock\n}, 'a line in the log');

#
# Quiet again, while two others want to grow and there is room for one
#
my ($one, $two) = map { server_with_lease($_, '2s', '', lease_within => '1/' . ($busy - 1)) } qw(one two);
begin_streams($_, $rate, 9, 1) foreach ($one, $two);
ok(wait_until(sub { size_of($one) == $busy || size_of($two) == $busy }), 'one of two grows');
my ($grown, $other) = size_of($one) == $busy ? ($one, $two) : ($two, $one);
like(wait_until(sub { lease_sql($other, 'size_reason') }), qr/^no node of node_id_size $busy instead of $quiet: .*full/, 'the other one says why it does not');
is(lease_sql($other, 'state, failures, node_id_size'), "held|0|$quiet", 'and goes on');
like(slurp_file($other->logfile), qr/LOG:  this server has acquired no node of node_id_size $busy instead of $quiet: /, 'in the log, too');
ok_streams('two that are busy');
my @told = slurp_file($other->logfile) =~ /no node of node_id_size/g;
is(scalar(@told), 1, 'not again and again');

ok(wait_until(sub { size_of($hot) == $quiet }), 'quiet again: it goes back');
is(lease_sql($hot, 'size_reason'), 'little of the node was used', 'and says why');

#
# A hand-over that is slow, and one whose worker is killed in the middle.  No renewal
# is due meanwhile.
# The ledger is locked: for a turn, lease() waits for 2 seconds only.
#
configure_server($hot, "scru64.lease_ttl = '1h'\n");
ok(wait_until(sub { lease_sql($hot, "expires_at > now() + '100 s' AND next_attempt_at > now() + '30 s'") eq 't' }), 'a longer ttl');
my $session = open_session($realm, dbname => 'realm');
$session->query_safe('BEGIN; LOCK TABLE scru64_realm.ledger');
begin_streams($hot, $rate, 9, 1);
ok(wait_until(\&is_leasing), 'the realm is slow to lease another');
is(size_of($hot), $quiet, 'until then the old one goes on');
# an ID that the realm has not heard of: the lease is not renewed after it
my ($last_id) = try_generate($hot);
$session->query_safe('ROLLBACK');
ok(wait_until(sub { size_of($hot) == $busy }), 'then the other one');
ok( wait_until(
		sub { $realm->safe_psql('realm', "SELECT last_id >= '$last_id' FROM scru64_realm.ledger WHERE holder = 'hot' AND released_at IS NOT NULL ORDER BY released_at DESC LIMIT 1") eq 't' }),
	'the old one is released with its last ID');
ok_streams('a slow realm');
{
	configure_server($hot, "scru64.lease_node_id_size_min = $quiet\n");
	ok(wait_until(sub { size_of($hot) == $quiet }), 'a size that is not allowed any more is changed by a reload');
	is(lease_sql($hot, 'size_reason'), 'the settings were changed', 'and that is said');
	configure_server($hot, "scru64.lease_node_id_size_min = $busy\n");
}
{
	$session->query_safe('BEGIN; LOCK TABLE scru64_realm.ledger');
	my $node = lease_of($hot);
	begin_load($hot, 1);
	begin_streams($hot, $rate, 7, 1);
	ok(wait_until(\&is_leasing), 'again');
	kill('KILL', lease_sql($hot, 'worker_pid'));
	finish_streams();
	$session->query_safe('ROLLBACK');
	isnt(wait_for_lease($hot, $node), '', 'the worker is killed while it waits for another size: another lease');
	end_loads();
	ok_ids($realm, 'a worker that is killed', 1);
}
$session->quit;
$_->stop foreach ($hot, $cold, $one, $two);

#
# An allowance as long as the ttl, and none at all
#
my @servers = map { server_with_lease(@{$_}, $preload) } ([ 'long', '10s' ], [ 'none', '0' ]);
begin_streams($_, $rate, 16, 1) foreach (@servers);
ok(wait_until(sub { size_of($_) == $busy }), $_->name . ': it grows') foreach (reverse @servers);
ok_streams('an allowance as long as the ttl, and none');
$_->stop foreach (@servers);

#
# Blocks of the realm that are configured here: nobody else gets them
#
$other = server_with_lease('other', '1s', $preload, lease_within => '3/8', lease_ttl => '60s', lease_node_id_size => 12, lease_node_id_size_min => 10);
my $configured = $realm->safe_psql('realm', "SELECT split_part(node_spec, '/', 1)::scru64::bigint >> 14 & 1023 FROM scru64_realm.lease(10, 'look', '10 s', within => '3/8'); DELETE FROM scru64_realm.ledger WHERE holder = 'look'") . '/10';
$other->safe_psql('postgres', "SET scru64.node_spec = '$configured'; SELECT scru64_generate()");
begin_streams($other, $rate, 10, 1);
like(wait_until(sub { lease_sql($other, 'size_reason') }), qr{^no node of node_id_size 10 instead of 12: node $configured overlaps one that is configured on this server},
	'a node of more capacity that is configured here is not used');
is($realm->safe_psql('realm', "SELECT count(*) FROM scru64_realm.leases WHERE holder = 'other' AND node = '$configured' AND expires_at > scru64_realm.clock() + '50 s'"),
	1, 'and stays leased');
ok_streams('a configured node');
$other->stop;

#
# Another connection string, which leads nowhere: the lease goes on
#
my $server = server_with_lease('elsewhere', '2s', $preload, lease_ttl => '1h');
my $node = lease_of($server);
configure_server($server, fleet_lines($realm, realm => 'host=/nowhere dbname=realm'));
ok(wait_until(sub { lease_sql($server, 'failures') > 0 }), 'a connection string that leads nowhere');
isnt((try_generate($server))[0], '', 'the lease goes on');
is(lease_of($server), $node, 'with its node');
$server->stop;
done_testing();
