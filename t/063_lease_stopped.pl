# Processes that are stopped where it is worst, and go on when somebody else has
# their node: no ID of it leaves outside the window.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Scru64Fault;
use Scru64Lease;
use Scru64Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $template = make_template('template', allows_streaming => 1);
my $realm = make_realm($template, 'realm');
# two nodes, which are given again at once
my $lines = fleet_lines($realm, lease_ttl => '10s', lease_node_id_size => '10', lease_within => '0/9');
$realm->safe_psql('realm', "SELECT scru64_realm.set_guard('0 s', true)");

sub server
{
	my ($name) = @_;
	my $server = copy_server($template, $name);

	$server->append_conf('postgresql.conf', $lines);
	start_server($server);
	return $server;
}

my ($server_a, $server_b, $server_c) = map { server($_) } qw(a b c);
my $node_a = wait_for_lease($server_a, 10);
my $node_b = wait_for_lease($server_b, 10);
is(join(' ', sort($node_a, $node_b)), '0/10 1/10', 'two servers have the two nodes');
begin_load($_, 3) foreach ($server_a, $server_b, $server_c);
like(wait_until(5, sub { my (undef, $err) = try_generate($server_c); $err =~ /(realm is full)/ ? $1 : '' }), qr/full/, 'a third has none');

#
# All of a server, past the end of its lease
#
signal_server($server_a, 'STOP');
my $began = time();
my $taken = wait_for_lease($server_c, 30);
is($taken, $node_a, sprintf('the node of the one that is stopped is free after %.1f s', time() - $began));
sleep(1);
signal_server($server_a, 'CONT');
like(wait_until(10, sub { my (undef, $err) = try_generate($server_a); $err =~ /(realm is full)/ ? $1 : '' }), qr/full/,
	'it goes on, and has none');
is(lease_of($server_a), '', 'nor does the view say so');

#
# Sessions of a server, while the worker gives the node back; others go on, and the
# realm takes its time
#
my @pids = split(/\n/, $server_b->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE application_name = 'load'"));
my $slow = open_session($realm, dbname => 'realm');
$slow->query_safe("BEGIN; SELECT FROM scru64_realm.ledger WHERE holder = 'b' FOR UPDATE");
kill('STOP', @pids[ 1 .. $#pids ]);
configure_server($server_b, "scru64.realm = ''\n");
sleep(1);
$slow->query_safe('ROLLBACK');
$slow->quit;
$began = time();
is(wait_for_lease($server_a, 15), $node_b, sprintf('a node that is given back is free after %.1f s', time() - $began));
sleep(0.5);
kill('CONT', @pids);
sleep(0.5);

#
# All have room again
#
$server_c->stop;
configure_server($server_b, $lines);
isnt(wait_for_lease($server_b, 20), '', 'when there is one, it is leased');
my @loads = end_loads();
my $errors = errors_of(@loads);
note('errors of the clients: ' . join(', ', map { "$_ $errors->{$_}" } sort keys %{$errors}));
is(join(' ', grep { !/^(55000|57P01|57P03)$/ } keys %{$errors}), '', 'no other error');
ok_ids($realm, 'stopped and continued', 10000);
done_testing();
