# scru64_watermark() on a server that leases its node: hand-over to another one, a lease that is
# over, and a promotion.

use strict;
use warnings;
use Scru64Clock;
use Scru64Copies;
use Scru64Lease;
use Scru64Server;
use Scru64Test;
use Scru64Watermark;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;
plan skip_all => 'no clock can be set' if !can_set_clock();

my $template = make_template('template', allows_streaming => 1);
my $realm = make_realm($template, 'realm', clock => '+0');
$realm->safe_psql('realm', "SELECT scru64_realm.set_guard('0 s', true)");
# leases of one half, so that configured nodes have the other
my $lines = fleet_lines($realm, lease_ttl => '10s', lease_within => '0/1') . $preload;
my $configured = '4000/12';
my $server = fleet_server($template, 'server', $lines, clock => '+0');
my ($node, $id, $before, $next);

sub put_leased
{
	my (undef, $given, $err) = $server->psql('postgres', put_sql(0));

	return $given || $err;
}

sub above_ok
{
	my ($name) = @_;

	cmp_ok(put_leased(), 'ge', $before, "$name: the next ID is above the watermark");
	passes_ok($server, put_leased(), "$name: and soon below it");
	return;
}

# An ID of the leased node, and then a row of another that it holds back, unless it is
# fast-forwarded.  Returns the first.
sub put_both
{
	my ($name) = @_;
	my $leased = put_leased();

	like($leased, qr/^\w{12}$/, "$name: an ID");
	passes_ok($server, put($server, $configured), "$name: a node that is idle holds nothing back");
	# in another tick than the first
	my $later = "SET scru64.node_spec = '$configured'; SELECT tick_of(scru64_generate()) > tick_of('$leased'::scru64) + 1";
	ok(wait_until(sub { $server->safe_psql('postgres', $later) eq 't' }), "$name: the tick is over");
	passes_ok($server, put($server, $configured), "$name: still");
	$before = watermark($server);
	return $leased;
}

isnt($node = wait_for_lease($server), '', 'a lease');
add_events($server);

#
# Hand-over to another node, by clocks that have gone back: it begins above
#
$id = put_both('hand-over');
set_clock($_, '-5') foreach ($realm, $server);
configure_server($server, "scru64.lease_node_id_size = 11\n");
ok(wait_until(sub { watermark($server); size_of($server) == 11 }), 'hand-over: another node');
above_ok('hand-over');
ok(wait_until(sub {
	$realm->safe_psql('realm', "SELECT count(*) FROM scru64_realm.ledger WHERE holder = 'server' AND released_at IS NOT NULL") > 0 }),
	'hand-over: the realm has the old one back');
is($realm->safe_psql('realm', "SELECT last_id FROM scru64_realm.ledger WHERE holder = 'server' AND released_at IS NOT NULL"),
	$id, 'hand-over: with the last ID that it issued');
set_clock($_, '+0') foreach ($realm, $server);

#
# The realm is away, and the lease ends
#
isnt(wait_for_lease($server), '', 'a lease');
put_both('an end');
$realm->stop;
ok(wait_until(sub { put_leased() =~ /ERROR/ }), 'an end: the lease is over');
passes_ok($server, put($server, $configured), 'an end: its node holds nothing back');
$before = watermark($server);
start_server($realm);
isnt(wait_for_lease($server), '', 'an end: a lease again');
above_ok('an end');

#
# A promotion, while somebody asks all the time
#
{
	my $standby = add_standby($template, $server, 'standby', clock => '+0', lines => $lines);
	my $rows = 'SELECT count(*) FROM event';

	put_both('a promotion');
	my $count = $server->safe_psql('postgres', $rows);
	catch_up($server, $standby);
	like(error_of($standby, "$rows WHERE id < scru64_watermark()"),
		qr/cannot execute scru64_watermark\(\) during recovery/, 'a standby has no watermark');
	my $reader = open_session($standby);
	start_statement($reader, "SELECT scru64_watermark() FROM pg_sleep(0.01);\n" x 300);
	$server->stop('immediate');
	$standby->promote;
	$reader->quit;
	ok($standby->poll_query_until('postgres', "$rows WHERE id < scru64_watermark()", $count), 'promoted: all rows are below it');
	cmp_ok(watermark($standby), 'ge', $before, 'nor has it gone back');
	$before = watermark($standby);
	isnt(wait_for_lease($standby), '', 'promoted: a lease');
	$server = $standby;
	above_ok('promoted');
}
$server->stop;

#
# A clock leaps ahead within the lease and is set right, while nobody asks for the watermark
#
$server = fleet_server($template, 'unread', fleet_lines($realm, rollback_allowance => '1s') . $preload, clock => '+0');
isnt(wait_for_lease($server), '', 'a leap: a lease');
set_clock($server, '+100');
($id) = try_generate($server);
like($id, qr/^\w{12}$/, 'a leap: an ID');
set_clock($server, '+0');
$next = wait_until(sub { (try_generate($server))[0] });
like($next, qr/^\w{12}$/, 'a leap: set right, another one');
cmp_ok($next, 'lt', $id, 'a leap: below the one of before');
is(scalar(logged($server, 'LOG:  IDs and the watermark of this server go back')), 1, 'a leap: the log says so');
$server->stop;

#
# A clean restart, after a row that is ahead of the clock: by more than a new lease lasts,
# and by more than the allowance.  IDs and the watermark go back only where a clock was
# wrong, and the log says so.
#
$realm->safe_psql('realm', "SELECT scru64_realm.set_first_ttl('90 s')");
$lines = fleet_lines($realm, lease_within => '0/1');
$server = fleet_server($template, 'ahead', $preload . "scru64.rollback_allowance = '120s'\n", clock => '+0');
add_events($server);

# Start the server again, with these lines and, if one is given, by this clock, which is also the
# realm's.
sub restart
{
	my ($with, $clock) = @_;

	$server->stop('fast');
	$server->append_conf('postgresql.conf', $with);
	set_clock($_, $clock) foreach (defined $clock ? ($realm, $server) : ());
	start_server($server);
	return;
}

# A row whose ID is ahead of the clock, and below the watermark: on a server without a
# lease, whose only node a session has.  Then have the server lease one.
sub put_ahead
{
	my ($seconds, $name, $clock) = @_;
	my $spec = "((tick_of(clock_timestamp() + '$seconds s') << 24) | (4000::bigint << 12))::scru64::text || '/12'";

	restart("scru64.realm = ''\n", $clock);
	$id = (split(/\n/, $server->safe_psql('postgres', "SELECT set_config('scru64.node_spec', $spec, false); " . put_sql(0))))[1];
	$before = watermark($server);
	cmp_ok($before, 'gt', $id, "$name: a row that a reader has seen");
	return;
}

sub put_at_last
{
	return wait_until(sub { my $out = put_leased(); $out !~ /ERROR/ && $out });
}

sub in_order_ok
{
	my ($next, $name) = @_;

	cmp_ok($next, 'gt', $id, "$name: the next ID is above");
	cmp_ok(watermark($server), 'ge', $before, "$name: nor has the watermark gone back");
	is(scalar(logged($server, 'LOG:  IDs and the watermark of this server go back')), 0, "$name: nothing in the log");
	return;
}

# the clocks stand still until the session asks, however slow all is: six seconds too early,
# and that is when the worker renews
my $stopped = time();
stop_clock($_, $stopped) foreach ($realm, $server);
put_ahead(96, 'a short lease');
restart($lines);
ok(wait_until(sub { lease_of($server) }), 'a short lease');
my $session = open_session($server);
set_clock($_, sprintf('%+.3f', $stopped - time())) foreach ($realm, $server);
($next, my $err) = try_statement($session, put_sql(0));
like($next || $err, qr/^\w{12}$/, 'a short lease: a session waits for a longer one');
$session->quit;
in_order_ok($next, 'a short lease');

$realm->safe_psql('realm', "SELECT scru64_realm.set_first_ttl('10 s')");
put_ahead(60, 'a lease that is much shorter', '+0');
restart($lines, '+0');
like(wait_until(sub { my $out = put_leased(); $out !~ /has no lease/ && $out }),
	qr/ERROR:  the lease of node .* is over/, 'a lease that is much shorter: an error');
like(wait_until(sub { my $error = error_of($server, 'SELECT scru64_check()'); $error =~ /ERROR/ && $error }),
	qr/ERROR:  \w{5}: the lease of node .* is over/, 'a lease that is much shorter: the check sees it');
set_clock($_, '+50') foreach ($realm, $server);
in_order_ok(put_at_last(), 'a lease that is much shorter');

put_ahead(119, 'a clock that is behind', '+100');
restart($lines, '+60');
$session = open_session($server);
start_statement($session, put_sql(0));
ok(wait_until(sub { scalar(logged($server, 'LOG:  node .* waits for the clock')) }), 'a clock that is behind: a session waits');
restart('', '+215');
$session->{run}->finish;
in_order_ok(put_at_last(), 'a clock that is behind');

put_ahead(119, 'a clock that was ahead', '+1000');
restart($lines, '+215');
$next = put_at_last();
like($next, qr/^\w{12}$/, 'a clock that was ahead: an ID');
cmp_ok($next, 'lt', $id, 'a clock that was ahead: below those of before');
passes_ok($server, $next, 'a clock that was ahead: so is the watermark');
is(scalar(logged($server, 'LOG:  IDs and the watermark of this server go back')), 1, 'a clock that was ahead: the log says so');
$server->stop;
done_testing();
