# All that can happen to servers with leases, at random and at the same time: clocks,
# crashes, stops, processes that are stopped and go on, a realm that goes away, disks that
# are slow, settings, scru64_set_ceiling(), configured nodes.  No ID twice, and each in a window of its server.
#
# SCRU64_LEASE_FAULTS: for how many seconds, for example 90; SCRU64_SEED: which.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Scru64Fault;
use Scru64Lease;
use Scru64Random;
use Scru64Test;

plan skip_all => 'takes its time: set SCRU64_LEASE_FAULTS to some seconds' if !$ENV{SCRU64_LEASE_FAULTS};
plan skip_all => 'libfaketime is not installed' if !can_set_clock();

my $seed = seed_random();

my $template = make_template('template', allows_streaming => 1);
my $realm = make_realm($template, 'realm', clock => '+0', disk => 1);
# few nodes, so that they are given again as soon as they may be
$realm->safe_psql('realm', "SELECT scru64_realm.set_guard('0 s', true)");

my $lines = fleet_lines($realm, lease_ttl => '10s', lease_node_id_size => '10', lease_within => '0/7');
my @servers;
foreach my $n (1 .. 3)
{
	push @servers, fleet_server($template, "server_$n", $lines . ($n < 3 ? $preload : ''), clock => '+0', disk => 1);
}
isnt(wait_for_lease($servers[0], 15), '', 'a lease');
begin_load($_, 3) foreach (@servers);

# server => [ when to go on, processes that are stopped ]
my %stopped;
my $realm_is_away = 0;

# What may fail, or be in vain
sub sql
{
	my ($server, $sql) = @_;
	my $out = '';

	eval { (undef, $out) = $server->psql('postgres', "SET statement_timeout = '5 s'; $sql", timeout => 20); };
	return split(/\n/, $out || '');
}

sub stop_processes
{
	my ($server, $seconds, @pids) = @_;

	kill('STOP', @pids);
	$stopped{ $server->name } = [ time() + rand($seconds), reverse(@pids) ];
	return;
}

my $sessions = "SELECT pid FROM pg_stat_activity WHERE application_name = 'load'";
# how often, and what
my @faults = (
	[ 6, 'the worker is terminated', sub { sql($_[0], 'SELECT pg_terminate_backend(worker_pid) FROM scru64_lease') } ],
	[ 6, 'kill -9 of the worker', sub { kill('KILL', sql($_[0], 'SELECT worker_pid FROM scru64_lease WHERE worker_pid IS NOT NULL')) } ],
	[ 8, 'kill -9 of a session', sub { kill('KILL', sql($_[0], "$sessions ORDER BY random() LIMIT 1")) } ],
	[ 4, 'kill -9 of the postmaster', sub { kill_server($_[0]); start_server($_[0]) } ],
	[ 2, 'stop -m fast', sub { $_[0]->stop('fast', fail_ok => 1); start_server($_[0]) } ],
	[ 2, 'stop -m immediate', sub { $_[0]->stop('immediate', fail_ok => 1); start_server($_[0]) } ],
	[ 5, 'all its processes are stopped', sub { my $pid = postmaster_pid($_[0]); stop_processes($_[0], 14, $pid, children_of($pid)) } ],
	[ 8, 'some are', sub { stop_processes($_[0], 6, grep { rand() < 0.5 } sql($_[0], "$sessions OR backend_type LIKE 'scru64%'")) } ],
	[ 8, 'scru64_set_ceiling()', sub { sql($_[0], "SELECT scru64_set_ceiling(now() + '" . random_clock() . " s')") } ],
	[ 5, 'another size', sub { configure_server($_[0], 'scru64.lease_node_id_size = ' . (9 + int(rand(3))) . "\n") } ],
	[ 3, 'a reload', sub { configure_server($_[0], '') } ],
	[ 5, 'configured nodes', sub { sql($_[0], "SET scru64.node_spec = '" . int(100 + rand(20)) . "/10'; SELECT count(scru64_generate()) FROM generate_series(1, 100)") } ],
	[ 5, 'the realm goes away', sub { $realm->stop('immediate'); $realm_is_away = time() + rand(5) } ],
	[ 6, 'its flushes are held', sub { hold_flushes_for($_[0], rand(6)) } ],
	[ 6, 'its flushes are slow', sub { slow_flushes_for($_[0], rand(6)) } ],
	[ 4, 'flushes of the realm are held', sub { hold_flushes_for($realm, rand(6)) } ],
	[ 4, 'flushes of the realm are slow', sub { slow_flushes_for($realm, rand(6)) } ],
	[ 33, 'a clock', sub { set_clock(rand() < 0.3 ? $realm : $_[0], rand() < 0.5 ? '+0' : random_clock()) } ]);
my $end = time() + $ENV{SCRU64_LEASE_FAULTS};

while (time() < $end)
{
	my $server = one_of(@servers);
	my (undef, $what, $code) = @{ one_by_weight(@faults) };

	foreach my $name (grep { $stopped{$_}[0] < time() } keys %stopped)
	{
		my (undef, @pids) = @{ delete $stopped{$name} };
		kill('CONT', @pids);
		note("$name goes on");
	}
	if ($realm_is_away && $realm_is_away < time())
	{
		start_server($realm);
		$realm_is_away = 0;
		note('the realm is back');
	}
	sleep(rand(0.7));
	# who is stopped cannot be told anything
	next if $what ne 'a clock' && ($stopped{ $server->name } || $what =~ /realm/ && $realm_is_away);
	note($server->name . ": $what");
	$code->($server);
}
kill('CONT', @{$_}[ 1 .. $#{$_} ]) foreach (values %stopped);
start_server($realm) if $realm_is_away;
set_clock($_, '+0') foreach ($realm, @servers);
my @leases = map { wait_for_lease($_, 40) } @servers;
my $errors = errors_of(end_loads());
note('errors of the clients: ' . join(', ', map { "$_ $errors->{$_}" } sort keys %{$errors}));
is(scalar(grep { $_ ne '' } @leases), 3, "when all is well again, all have a lease: @leases");
ok_ids($realm, 'seed ' . $seed, 1000);
done_testing();
