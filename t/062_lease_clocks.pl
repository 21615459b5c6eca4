# Clocks of servers and of their realm, set anywhere within a day and while they are
# up: no ID twice, whatever they say.
#
# SCRU64_CLOCK_CHANGES: how many; SCRU64_SEED: which.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Scru64Fault;
use Scru64Lease;
use Scru64Random;
use Scru64Test;

plan skip_all => 'libfaketime is not installed' if !can_set_clock();

my $changes = $ENV{SCRU64_CLOCK_CHANGES} || 50;
my $seed = seed_random();

my $template = make_template('template', allows_streaming => 1);
my $realm = make_realm($template, 'realm', clock => '+0');
# few nodes, so that they are given again as soon as they may be
$realm->safe_psql('realm', "SELECT scru64_realm.set_guard('0 s', true)");

my $lines = fleet_lines($realm, lease_ttl => '10s', lease_node_id_size => '10', lease_within => '0/7');
my @servers;
my $restarts = 0;
my $began = time();
foreach my $n (1 .. 3)
{
	push @servers, fleet_server($template, "server_$n", $lines . ($n == 2 ? $preload : ''), clock => $n == 1 ? '+0' : random_clock());
}
isnt(wait_for_lease($servers[0], 15), '', 'a lease');
foreach my $server (@servers)
{
	begin_load($server, 2);
}

# a clock that leaps ten years ahead, and back
{
	my $server = $servers[0];
	set_clock($server, '+' . 10 * 365 * 86400);
	my $error = wait_until(15, sub { (try_generate($server))[1] });
	like($error, qr/ERROR:  5[58]000/, 'ten years ahead: ' . ($error =~ /ERROR:(.*)/)[0]);
	sleep(2);
	set_clock($server, '+0');
	my $back = time();
	isnt(wait_until(40, sub { (try_generate($server))[0] }), '', 'back again: IDs by itself');
	note(sprintf('after %.1f s', time() - $back));
}

foreach my $change (1 .. $changes)
{
	my $node = rand() < 0.3 ? $realm : $servers[ rand(@servers) ];
	# right again, or a server would seldom issue any
	my $clock = rand() < 0.4 ? '+0' : random_clock();

	set_clock($_, $clock) foreach ($change % 10 == 0 ? ($realm, @servers) : $node);
	note($change % 10 == 0 ? 'all' : $node->name, " $clock");
	if (rand() < 0.1 && $node != $realm)
	{
		$restarts++;
		kill_server($node);
		start_server($node);
	}
	sleep(rand(0.6));
}
set_clock($_, '+0') foreach ($realm, @servers);
my @leases = map { wait_for_lease($_, 30) } @servers;
my $loads = [ end_loads() ];
is(scalar(grep { $_ ne '' } @leases), 3, "the clocks are right, and all have a lease: @leases");
my $errors = errors_of(@{$loads});
note('errors of the clients: ' . join(', ', map { "$_ $errors->{$_}" } sort keys %{$errors}));
is(join(' ', grep { !/^(55000|58000|57P01|57P03)$/ } keys %{$errors}), '', 'no other error');
my $most = $realm->safe_psql('realm', 'SELECT max(n) FROM (SELECT count(*) AS n FROM scru64_realm.ledger GROUP BY holder) h');
cmp_ok($most, '<=', 3 + $restarts + (time() - $began) / 10, "no server has had more than $most leases");
ok_ids($realm, "$changes changes of clocks, seed " . $seed, 1000);
done_testing();
