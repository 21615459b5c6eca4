# The size of a leased node follows the load where that is not easy: whatever the
# rollback allowance is beside the ttl, whatever the clocks say, whatever is configured.

use FindBin;
use lib $FindBin::RealBin;
use Scru64Fault;
use Scru64Lease;
use Scru64Test;

my $template = make_template('template');
my $realm = make_realm($template, 'realm', clock => '+0');
my $rate = 3 * 2**12 / 0.256;

sub server_with_lease
{
	my ($name, $allowance, %params) = @_;
	my $server = fleet_server($template, $name,
		$preload . fleet_lines($realm, lease_node_id_size => 12, lease_node_id_size_min => 10, %params)
		  . "scru64.rollback_allowance = '$allowance'\nrestart_after_crash = on\n");

	isnt(wait_for_lease($server, 10), '', "$name: a lease");
	return $server;
}

#
# An allowance as long as the ttl, and none at all
#
my @servers = (server_with_lease('long', '10s', lease_ttl => '10s'), server_with_lease('none', '0', lease_ttl => '10s'));
begin_streams($_, $rate, 16, 1) foreach (@servers);
ok(wait_until(16, sub { size_of($_) == 10 }), $_->name . ': it grows') foreach (reverse @servers);
ok_streams('an allowance as long as the ttl, and none');
$_->stop foreach (@servers);

#
# Blocks of the realm that are configured here: nobody else gets them
#
my $other = server_with_lease('other', '1s', lease_within => '3/8', lease_ttl => '60s');
my $configured = $realm->safe_psql('realm', "BEGIN; SELECT split_part(node_spec, '/', 1)::scru64::bigint >> 14 & 1023 FROM scru64_realm.lease(10, 'look', '10 s', within => '3/8'); ROLLBACK") . '/10';
$other->safe_psql('postgres', "SET scru64.node_spec = '$configured'; SELECT scru64_generate()");
begin_streams($other, $rate, 10, 1);
like(wait_until(10, sub { lease_sql($other, 'size_reason') }), qr{^no node of node_id_size 10 instead of 12: node $configured overlaps one that is configured on this server},
	'a node of more capacity that is configured here is not used');
is($realm->safe_psql('realm', "SELECT count(*) FROM scru64_realm.leases WHERE holder = 'other' AND node = '$configured' AND expires_at > scru64_realm.clock() + '50 s'"),
	1, 'and stays leased');
ok_streams('a configured node');
$other->stop;

#
# The specification's example: hot nodes of 4 bits, and cold ones of 8
#
my %example = (lease_node_id_size => 8, lease_node_id_size_min => 4, lease_ttl => '60s');
my ($hot, @cold) = map { server_with_lease($_, '1s', %example) } qw(hot cold_1 cold_2);
my $busy = open_session($hot);
start_statement($busy, 'SELECT count(scru64_generate()) FROM (SELECT generate_series(1, 1000000000) OFFSET 0) AS s');
ok(wait_until(30, sub { size_of($hot) == 4 }), 'hot and cold nodes: hot');
is(join(' ', map { try_generate($_); size_of($_) } @cold), '8 8', 'and cold');
$hot->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT count(scru64_generate%'");
try_statement($busy, 'SELECT 1');
$busy->quit;
$_->stop foreach ($hot, @cold);

#
# The realm's clock is far ahead by now
#
SKIP:
{
	skip 'libfaketime is not installed', 1 if !can_set_clock();

	my $server = server_with_lease('behind', '2s', lease_ttl => '1h');
	my $node = lease_of($server);
	set_clock($realm, '+60');
	begin_streams($server, $rate, 10, 1);
	like(wait_until(10, sub { lease_sql($server, 'size_reason') }), qr/begins ahead of this server's clock/, 'a lease that begins ahead of the clock is not used');
	is(lease_of($server), $node, 'the node of now goes on');
	ok_streams('a realm whose clock is ahead');

	# another connection string, which leads nowhere: the lease goes on; but a server
	# whose processes start anew does not take it for one of the new realm
	set_clock($realm, '+0');
	configure_server($server, fleet_lines($realm, realm => 'host=/nowhere dbname=realm'));
	ok(wait_until(5, sub { lease_sql($server, 'failures') > 0 }), 'a connection string that leads nowhere');
	isnt((try_generate($server))[0], '', 'the lease goes on');
	is(lease_of($server), $node, 'with its node');
	kill('KILL', lease_sql($server, 'worker_pid'));
	sleep(0.3);
	$server->poll_query_until('postgres', 'SELECT true') or die 'the server does not restart';
	try_generate($server);
	is(lease_of($server), '', 'a crash: no lease of a realm that is not there');
	configure_server($server, fleet_lines($realm));
	isnt(wait_for_lease($server, 20), '', 'the old connection string: a lease');
	$server->stop;
}
done_testing();
