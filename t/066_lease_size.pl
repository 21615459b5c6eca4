# The size of a leased node follows the load: it grows while sessions have to wait for
# the clock, goes back when little of it is used, and nobody notices but by the speed.
#
# SCRU64_LOAD_SIZE: node_id_size of a quiet server, which two bits less are enough for;
# SCRU64_LOAD_SECONDS: how long the load goes on.  With 8 and 30 it is 600,000 IDs a
# second, from two sessions.

use FindBin;
use lib $FindBin::RealBin;
use Scru64Fault;
use Scru64Lease;
use Scru64Test;

my $quiet = $ENV{SCRU64_LOAD_SIZE} || 12;
my $busy = $quiet - 2;
my $seconds = $ENV{SCRU64_LOAD_SECONDS} || 12;

# 2.34 times what the quiet size can give
my $rate = 2.34 * 2**(24 - $quiet) / 0.256;

my $template = make_template('template');
my $realm = make_realm($template, 'realm');
my $lines = fleet_lines(
	$realm,
	lease_ttl => '10s',
	lease_node_id_size => $quiet,
	lease_node_id_size_min => $busy) . "scru64.rollback_allowance = '2s'\nrestart_after_crash = on\n";

sub waits_of
{
	my ($server) = @_;
	my $node = lease_of($server);

	return $node . ' ' . $server->safe_psql('postgres', "SELECT waits FROM scru64_generators WHERE node_id || '/' || node_id_size = '$node'");
}

# Does a server wait for the realm, which has been asked for a lease?
sub is_leasing
{
	return $realm->safe_psql('realm', "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%scru64_realm.lease(%' AND wait_event_type = 'Lock'");
}

#
# A hot server and a cold one
#
my $hot = fleet_server($template, 'hot', $lines . $preload);
my $cold = fleet_server($template, 'cold', $lines);
isnt(wait_for_lease($_, 10), '', $_->name . ': a lease') foreach ($hot, $cold);
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
	't|sessions had to wait for the clock', 'the view says when and why');
is( $realm->safe_psql('realm', "SELECT count(*), count(*) FILTER (WHERE node_id_size = $busy) FROM scru64_realm.leases WHERE holder = 'hot'"),
	'1|1', 'the realm has the old one back');
ok_streams('a hot server and a cold one');
like(slurp_file($hot->logfile), qr{LOG:  the node of this server is \d+/$busy now, and was \d+/$quiet: sessions had to wait for the clock\n}, 'a line in the log');

#
# Quiet again, while two others want to grow and there is room for one
#
my $block = "\nscru64.lease_within = '1/" . ($busy - 1) . "'\n";
my ($one, $two) = map { fleet_server($template, $_, $lines . $block) } qw(one two);
isnt(wait_for_lease($_, 10), '', $_->name . ': a lease') foreach ($one, $two);
begin_streams($_, $rate, 9, 1) foreach ($one, $two);
ok(wait_until(9, sub { size_of($one) == $busy || size_of($two) == $busy }), 'one of two grows');
my ($grown, $other) = size_of($one) == $busy ? ($one, $two) : ($two, $one);
like(wait_until(9, sub { lease_sql($other, 'size_reason') }), qr/^no node of node_id_size $busy instead of $quiet: .*full/, 'the other one says why it does not');
is(lease_sql($other, 'state, failures, node_id_size'), "held|0|$quiet", 'and goes on');
like(slurp_file($other->logfile), qr/LOG:  this server has got no node of node_id_size $busy instead of $quiet: /, 'in the log, too');
ok_streams('two that are busy');
my @told = slurp_file($other->logfile) =~ /no node of node_id_size/g;
is(scalar(@told), 1, 'not again and again');

ok(wait_until(30, sub { size_of($hot) == $quiet }), 'quiet again: it goes back');
is(lease_sql($hot, 'size_reason'), 'little of the node was used', 'and says why');

#
# A hand-over that is slow, and one whose worker is killed in the middle.  No renewal
# is due meanwhile.
#
configure_server($hot, "scru64.lease_ttl = '1h'\n");
ok(wait_until(9, sub { lease_sql($hot, "expires_at > now() + '100 s' AND next_attempt_at > now() + '30 s'") eq 't' }), 'a longer ttl');
my $session = open_session($realm, dbname => 'realm');
$session->query_safe("BEGIN; SELECT FROM scru64_realm.lease(20, 'slow')");
begin_streams($hot, $rate, 9, 1);
ok(wait_until(9, \&is_leasing), 'the realm is slow to lease another');
is(size_of($hot), $quiet, 'until then the old one goes on');
$session->query_safe('ROLLBACK');
ok(wait_until(5, sub { size_of($hot) == $busy }), 'then the other one');
ok_streams('a slow realm');
{
	my $node = lease_of($hot);
	configure_server($hot, "scru64.lease_node_id_size_min = $quiet\n");
	ok(wait_until(5, sub { size_of($hot) == $quiet }), 'a size that is not allowed any more is changed by a reload');
	is(lease_sql($hot, 'size_reason'), 'the settings were changed', 'and that is said');
	configure_server($hot, "scru64.lease_node_id_size_min = $busy\n");
}
{
		$session->query_safe("BEGIN; SELECT FROM scru64_realm.lease(20, 'slow')");
	my $node = lease_of($hot);
	begin_load($hot, 1);
	begin_streams($hot, $rate, 7, 1);
	ok(wait_until(9, \&is_leasing), 'again');
	kill('KILL', lease_sql($hot, 'worker_pid'));
	finish_streams();
	$session->query_safe('ROLLBACK');
	goes_on_ok(wait_for_lease($hot, 10), $node, 'the worker is killed while it waits for another size: the node of before goes on');
	end_loads();
	ok_ids($realm, 'a worker that is killed', 1);
}
$session->quit;
$_->stop foreach ($hot, $cold, $one, $two);
done_testing();
