# A network between servers and their realm that delays, cuts and swallows what they say
# and hear, at random: no ID twice, and each in a window of its server; lost answers cost
# no nodes; the servers stop when they are told to, and all is well when the network is.
#
# SCRU64_PROXY_FAULTS: for how many seconds, 20 without it; SCRU64_SEED: which.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Scru64Fault;
use Scru64Lease;
use Scru64Proxy;
use Scru64Random;
use Scru64Test;

my $seconds = $ENV{SCRU64_PROXY_FAULTS} || 20;
my $seed = seed_random();
my $template = make_template('template');
my $realm = make_realm($template, 'realm');
# few nodes, so that they are leased again as soon as they may be
$realm->safe_psql('realm', "SELECT scru64_realm.set_guard('0 s', true)");

my $proxy = Scru64Proxy->new($realm);
my $lines = fleet_lines($realm,
	lease_ttl => '10s',
	lease_node_id_size => '10',
	lease_node_id_size_min => '10',
	lease_within => '0/7',
	realm => $proxy->connstr('proxy'));
my @servers = map { fleet_server($template, "server_$_", $lines . ($_ == 2 ? $preload : '')) } 1 .. 3;

isnt(wait_for_lease($_, 15), '', $_->name . ' has a lease through the proxy') foreach (@servers);
begin_load($_, 2) foreach (@servers);

my @longest = map { 0 } @servers;
my $slow = '';
my $end = time() + $seconds;
while (time() < $end)
{
	my $server = one_of(@servers);

	$proxy->share_of_faults(one_of(0, 0.1, 0.2, 0.4));
	sleep(1 + rand(2));
	next if rand() < 0.6;
	if (rand() < 0.5)
	{
		$server->reload;
		next;
	}
	# a stop, in the middle of whatever it is
	my $began = time();
	local $ENV{PGCTLTIMEOUT} = 30;
	my $stopped = $server->stop('fast', fail_ok => 1);
	$slow .= sprintf('%s: %.1f s; ', $server->name, time() - $began) if !$stopped || time() - $began > 12;
	$server->stop('immediate', fail_ok => 1) if !$stopped;
	start_server($server);
}
is($slow, '', 'the servers have stopped when they were told to');

$proxy->share_of_faults(0);
note(scalar($proxy->events('fault')) . ' connections had faults');
my @leases = map { wait_for_lease($_, 40) } @servers;
is(scalar(grep { $_ ne '' } @leases), 3, "when the network is well again, all have a lease: @leases");
my $errors = errors_of(end_loads());
note('errors of the clients: ' . join(', ', map { "$_ $errors->{$_}" } sort keys %{$errors}));
is(join(' ', grep { !/^(55000|57P01|57P03)$/ } keys %{$errors}), '', 'the clients have seen no other error than that there is no lease');
ok_ids($realm, 'seed ' . $seed, 1000);
is(join("\n", map { logged($_, 'was terminated by|PANIC|TRAP') } @servers), '', 'no crash');
cmp_ok($realm->safe_psql('realm', "SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM scru64_realm.ledger WHERE clock_timestamp() < upper(occupied) GROUP BY holder) l"),
	'<=', 8, 'lost answers have not cost one node each');
is(join("\n", $proxy->events('died')), '', 'the proxy has lived through it, too');
done_testing();
