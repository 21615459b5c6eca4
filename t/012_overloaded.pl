# A node that is ahead of the clock by the full allowance when its server is
# killed: no ID twice, and soon it goes on.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Scru64Fault;
use Scru64Test;
use Test::More;
use Time::HiRes qw(sleep time);

# The default allowance of 10 s is 39 ticks.
my $allowance = 10;

my $node = new_node('main');
start_server($node);
$node->safe_psql('postgres', 'CREATE EXTENSION scru64');

my %received;

sub in_view
{
	my ($spec, $columns) = @_;

	return $node->safe_psql('postgres',
		"SELECT $columns FROM scru64_generators WHERE node_id || '/' || node_id_size = '$spec'");
}

# Ask sessions of a node for IDs until it is as far ahead of the clock as it may
# be, and kill the server at that moment, while the sessions wait.
sub kill_when_ahead
{
	my ($spec, $lead, $name) = @_;
	my $load = start_load($node, $spec => 4);

	# nothing is ahead by more, but what the view computes with the clock
	ok( $node->poll_query_until(
			'postgres', qq(
SELECT lead BETWEEN interval '$lead s' - interval '600 ms' AND interval '$lead s' AND waits > 0
FROM scru64_generators
WHERE node_id || '/' || node_id_size = '$spec')),
		"$name: the node is ahead by the allowance");
	kill_server($node);
	finish_load($load);
	is(record_load(\%received, $load), '', "$name: no error");
	is(record_problems(\%received), '', "$name: no ID twice, none too low");
	return;
}

# The node goes on, within so many seconds.
sub goes_on_ok
{
	my ($spec, $seconds, $name, $set) = @_;
	my $session = open_session($node);
	my $began = time();

	$set = $spec if !defined $set;
	my ($out, $err) = try_statement($session,
		"SET scru64.node_spec = '$set'; SELECT scru64_generate(3)");

	is($err, '', "$name: no error");
	cmp_ok(time() - $began, '<', $seconds, "$name: soon");
	record_ids(\%received, $spec, [ split(/\n/, $out) ]);
	is(record_problems(\%received), '', "$name: no ID twice, none too low");
	$session->quit;
	return;
}

kill_when_ahead('1/20', $allowance, 'overloaded');
start_server($node);
goes_on_ok('1/20', 2 * $allowance, 'overloaded, after kill -9');

# Restarts in a row, at once, and with IDs in between.
kill_when_ahead('1/20', $allowance, 'three restarts');
foreach my $restart (1 .. 3)
{
	start_server($node);
	kill_server($node);
}
start_server($node);
goes_on_ok('1/20', 2 * $allowance, 'after three restarts in a row');
# A node spec that continues after an ID ahead of the clock: what was given after
# that is kept, too.
my $previous = $node->safe_psql('postgres',
	"SELECT scru64_from_parts(clock_timestamp() + interval '9 s', 9 << 4 | 3)");

record_ids(\%received, '9/20', [$previous]);
goes_on_ok('9/20', 1, 'a previous ID ahead of the clock', "$previous/20");
kill_server($node);
start_server($node);
goes_on_ok('9/20', 2 * $allowance, 'a previous ID ahead of the clock, after kill -9');

# However small the allowance: a node that was killed at the time of the clock, or
# ahead of it, goes on when the clock has passed what its ceiling was.
my $unused = 2;

foreach my $small ('0', '1s')
{
	my $spec = $unused++ . '/20';
	my ($seconds) = $small =~ /(\d+)/;

	set_parameter($node, 'scru64.rollback_allowance', $small);
	# the ceiling is that of the other nodes, and this one is new
	$node->safe_psql('postgres', 'SELECT scru64_set_ceiling()');
	kill_when_ahead($spec, $seconds, "allowance $small");
	start_server($node);
	goes_on_ok($spec, 2 * $seconds + 5, "allowance $small, after kill -9");
}

$node->stop;
done_testing();
