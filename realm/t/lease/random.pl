# All that can happen to servers with leases and to their realm, whose own server leases, too,
# at random and at the same time: clocks, crashes, stops, processes that are stopped and go on,
# disks that are slow, a network that delays, cuts and swallows what is said, settings,
# scru64_set_ceiling(), configured nodes.  No ID twice, and each in a window of its server; not
# more leases than there is need for; and when all is well again, all have one.
#
# SCRU64_LEASE_FAULTS: for how many seconds, 30 without it; SCRU64_SEED: which.

use strict;
use warnings;
use Scru64Clock;
use Scru64Copies;
use Scru64Disk;
use Scru64Lease;
use Scru64Proxy;
use Scru64Random;
use Scru64Server;
use Scru64Test;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;

my $seed = seed_random();
my @clock = can_set_clock() ? (clock => '+0') : ();
note('no clock can be set') if !@clock;

my $template = make_template('template', allows_streaming => 1);
my $realm = make_realm($template, 'realm', @clock, disk => 1);
# few nodes, so that they are leased again as soon as they may be
$realm->safe_psql('realm', "SELECT scru64_realm.set_guard('0 s', true)");

my $proxy = Scru64Proxy->new($realm);
my $lines = fleet_lines($realm, lease_ttl => '10s', lease_node_id_size => '10', lease_within => '0/6', realm => $proxy->connstr('proxy'));
$realm->append_conf('postgresql.conf', $preload . $lines);
$realm->stop;
start_server($realm);
my @servers = ($realm, map { fleet_server($template, "server_$_", $lines . ($_ < 3 ? $preload : ''), @clock, disk => 1) } 1 .. 3);
my $began = time();
isnt(wait_for_lease($_), '', $_->name . ' has a lease through the proxy') foreach (@servers);
begin_load($_, 2) foreach (@servers);

# a clock that leaps ten years ahead, and back
if (@clock)
{
	my $server = $servers[1];

	set_clock($server, '+' . 10 * 365 * 86400);
	like(wait_until(sub { (try_generate($server))[1] }), qr/ERROR:  5[58]000/, 'ten years ahead: no ID');
	sleep(2);
	set_clock($server, '+0');
	isnt(wait_until(sub { (try_generate($server))[0] }), '', 'back again: IDs by itself');
}

# who does not answer: server => [ when it goes on, how ]
my %away;

sub leave
{
	my ($server, $seconds, $go_on) = @_;

	$away{ $server->name } = [ time() + rand($seconds), $go_on ];
	return;
}

sub stop_processes
{
	my ($server, $seconds, @pids) = @_;

	kill('STOP', @pids);
	return leave($server, $seconds, sub { kill('CONT', reverse(@pids)) });
}

# What may fail, or be in vain
sub sql
{
	my ($server, $sql) = @_;
	my $out = '';

	eval { (undef, $out) = $server->psql('postgres', "SET statement_timeout = '5 s'; $sql", timeout => 20); };
	return split(/\n/, $out || '');
}

my $not_stopped = '';
sub stop_fast
{
	my ($server) = @_;
	local $ENV{PGCTLTIMEOUT} = 30;

	# PostgreSQL hangs if it is told to stop just before the recovery from a crash begins.
	return if !sql($server, 'SELECT 1');
	if (!$server->stop('fast', fail_ok => 1))
	{
		$not_stopped .= $server->name . ' ';
		$server->stop('immediate', fail_ok => 1);
	}
	return start_server($server);
}

my $sessions = "SELECT pid FROM pg_stat_activity WHERE application_name = 'load'";
# how often, what, and whether it may cost a lease: other leases are ten seconds apart
my @faults = (
	[ 6, 'the worker is terminated', 1, sub { sql($_[0], 'SELECT pg_terminate_backend(worker_pid) FROM scru64_lease()') } ],
	[ 6, 'kill -9 of the worker', 1, sub { kill('KILL', sql($_[0], 'SELECT worker_pid FROM scru64_lease() WHERE worker_pid IS NOT NULL')) } ],
	[ 6, 'kill -9 of a session', 1, sub { kill('KILL', sql($_[0], "$sessions ORDER BY random() LIMIT 1")) } ],
	[ 8, 'kill -9 of the postmaster', 1, sub { kill_server($_[0]); start_server($_[0]) } ],
	[ 4, 'stop -m fast', 1, \&stop_fast ],
	[ 6, 'stop -m immediate, and it is away', 1, sub { my ($server) = @_; $server->stop('immediate', fail_ok => 1); leave($server, 5, sub { start_server($server) }) } ],
	[ 5, 'all its processes are stopped', 0, sub { my $pid = postmaster_pid($_[0]); stop_processes($_[0], 14, $pid, children_of($pid)) } ],
	[ 8, 'some are', 0, sub { stop_processes($_[0], 6, grep { chance(0.5) } sql($_[0], "$sessions OR backend_type LIKE 'scru64%'")) } ],
	[ 8, 'scru64_set_ceiling()', 0, sub { sql($_[0], "SELECT scru64_set_ceiling(now() + '" . random_clock() . " s')") } ],
	[ 5, 'another size', 0, sub { configure_server($_[0], 'scru64.lease_node_id_size = ' . (9 + int(rand(3))) . "\n") } ],
	[ 5, 'a reload', 0, sub { $_[0]->reload } ],
	[ 5, 'configured nodes', 0, sub { sql($_[0], "SET scru64.node_spec = '" . int(100 + rand(20)) . "/10'; SELECT count(scru64_generate()) FROM generate_series(1, 100)") } ],
	[ 6, 'its flushes are held', 0, sub { hold_flushes_for($_[0], rand(6)) } ],
	[ 6, 'its flushes are slow', 0, sub { slow_flushes_for($_[0], rand(6)) } ],
	[ 20, 'the network', 0, sub { $proxy->share_of_faults(one_of(0, 0.1, 0.2, 0.4)) } ],
	[ @clock ? 40 : 0, 'a clock', 0, sub { set_clock($_[0], chance(0.5) ? '+0' : random_clock()) } ],
	[ @clock ? 4 : 0, 'all clocks', 0, sub { my $clock = random_clock(); set_clock($_, $clock) foreach (@servers) } ]);
# server => how many leases it may have had
my %most = map { $_->name => 3 } @servers;
my $count = 0;
my $end = time() + ($ENV{SCRU64_LEASE_FAULTS} || 30);

while (time() < $end)
{
	my $server = one_of(@servers);
	my $name = $server->name;
	my (undef, $what, $cost, $code) = @{ one_by_weight(@faults) };

	foreach my $back (grep { $away{$_}[0] < time() } keys %away)
	{
		note("$back goes on");
		(delete $away{$back})->[1]->();
	}
	sleep(rand(0.4));
	# who is away cannot be told anything
	next if $away{$name} && $what !~ /clock|network/;
	note("$name: $what");
	$most{$name} += $cost;
	$count++;
	$code->($server);
}
$_->[1]->() foreach (values %away);
$proxy->share_of_faults(0);
set_clock($_, '+0') foreach (@clock ? @servers : ());
my @leases = map { wait_for_lease($_) } @servers;
note("$count faults");
is(scalar(grep { $_ ne '' } @leases), 4, "when all is well again, all have a lease: @leases");
end_loads_ok('55000|58000|57P01|57P03', 'the clients have seen no other error');
is($not_stopped, '', 'the servers have stopped when they were told to');
ok_ids($realm, "seed $seed", 1000);
my %leases = split(/[|\n]/, $realm->safe_psql('realm', 'SELECT holder, count(*) FROM scru64_realm.ledger GROUP BY holder'));
note("$_: $leases{$_} leases, $most{$_} and one each 10 s at most") foreach (sort keys %leases);
is(join(' ', grep { $leases{$_} > $most{$_} + (time() - $began) / 10 } keys %leases), '', 'no server has had more leases than it may have needed');
is(join("\n", map { logged($_, 'was terminated by signal (?!9:)|PANIC|TRAP') } @servers), '', 'no crash but those');
is(join("\n", $proxy->events('died')), '', 'the proxy has lived through it, too');
done_testing();
