# The server is restarted, crashes and is killed under load: no ID twice, and
# after each start every ID is above all that were received before.

use strict;
use warnings;
use List::Util qw(shuffle);
use Scru64Copies;
use Scru64Loads;
use Scru64Server;
use Scru64Test;

my $node = new_node('main');
$node->append_conf('postgresql.conf', 'restart_after_crash = on');
start_server($node);
create_extension($node, $give_sql);

# The nodes of the load, and how many sessions each has.  A tick has room for a
# few IDs of the last one, so it is ahead of the clock.
my %sessions = ('1/8' => 3, '700/12' => 2, '5/20' => 1);

my %faults = (
	'restart, fast' => sub { $node->stop('fast') },
	'restart, immediate' => sub { $node->stop('immediate') },
	'kill -9 of a backend' => sub {
		crash($node, $node->safe_psql('postgres',
				"SELECT pid FROM pg_stat_activity WHERE application_name = 'load' ORDER BY random() LIMIT 1"));
	},
	'kill -9 of the postmaster' => sub { kill_server($node) });
my @rounds = shuffle((sort keys %faults) x 2);

my %received;
my $round = 0;

foreach my $fault (@rounds)
{
	my $name = 'round ' . ++$round . ", $fault";
	# the node that is ahead waits after a start: only sometimes is there time
	my @load = start_load($node, { %sessions, $round == 1 ? () : ('5/20' => 0) });

	sleep(rand(0.3));
	$faults{$fault}->();
	finish_clients(@load);
	is(record_load(\%received, @load), '', "$name: no other error");
	is(record_problems(\%received), '', "$name: no ID twice, none too low");
	start_server($node) if $fault ne 'kill -9 of a backend';
}

foreach my $spec (sort keys %sessions)
{
	record_ids(\%received, $spec,
		[ $node->safe_psql('postgres', "SET scru64.node_spec = '$spec'; SELECT scru64_generate()") ]);
	# of the saturated one there are as many as the clock has time for
	cmp_ok(number_of_ids(\%received, $spec), '>', $spec eq '5/20' ? 0 : 100, "IDs of $spec were received");
}
is(record_problems(\%received), '', 'the last start: no ID twice, none too low');
note(log_counts(\%received));

#
# Restarts in a row: no wait for the first ID, and the lead over the clock does not grow.
#
my $ahead = 16 * 0.256;

# The first ID of a node after a start: how often sessions have waited, and its lead.
sub first_id
{
	my ($spec) = @_;
	my ($id, $lead, $waits) = split(/\|/, $node->safe_psql('postgres', qq(
SET scru64.node_spec = '$spec';
SELECT id, extract(epoch FROM scru64_timestamp(id) - clock_timestamp()),
	(SELECT sum(waits) FROM scru64_generators())
FROM scru64_generate() id)));

	record_ids(\%received, $spec, [$id]);
	return ($waits, $lead);
}

$node->stop;
# until nothing is ahead of the clock any more
my $wait = unpack('x32 Q', slurp_file(page_file($node))) * 0.256 - time();
sleep($wait + 0.5) if $wait > 0;
foreach my $restart (1 .. 6)
{
	start_server($node);
	my ($waits, $lead) = first_id('1/8');
	is($waits, 0, "restart $restart in a row: an ID at once");
	cmp_ok($lead, '<', $ahead + 0.3, "restart $restart in a row: at most four seconds ahead");
	($waits, $lead) = first_id("20$restart/12");
	is($waits, 0, "restart $restart in a row: an ID of another node at once");
	$restart % 2 ? $node->stop : kill_server($node);
}
is(record_problems(\%received), '', 'restarts in a row: no ID twice, none too low');

# A saturated node is ahead by the allowance, and starts there.
start_server($node);
foreach my $how ('fast', 'immediate')
{
	my @ids = split(/\n/, $node->safe_psql('postgres', "SELECT make_busy('6/20')"));
	record_ids(\%received, '6/20', \@ids);
	$node->stop($how);
	start_server($node);
	my ($waits, $lead) = first_id('6/20');
	is($waits, 0, "saturated, $how: an ID at once");
	cmp_ok($lead, '<', 10, "saturated, $how: not ahead by more than it was");
	($waits, $lead) = first_id('1/8');
	is($waits, 0, "saturated, $how: an ID of another node at once");
}
is(record_problems(\%received), '', 'saturated: no ID twice, none too low');

# An allowance that is smaller after the restart: an error, or a wait until the clock is
# there.
foreach my $small ('1s', '7s')
{
	my @ids = split(/\n/, $node->safe_psql('postgres', "SELECT make_busy('6/20')"));
	record_ids(\%received, '6/20', \@ids);
	$node->append_conf('postgresql.conf', "scru64.rollback_allowance = $small");
	$node->restart;
	if ($small eq '1s')
	{
		refused_ok($node, '6/20', qr/ERROR:  58000: .*\nDETAIL:  .*\nHINT:  .*scru64\.rollback_allowance/, 'allowance much lowered');
	}
	else
	{
		issues_ok($node, \%received, '6/20', 'allowance lowered');
	}
	$node->append_conf('postgresql.conf', 'scru64.rollback_allowance = 10s');
	$node->restart;
}
issues_ok($node, \%received, '6/20', 'allowance raised again');

#
# Killed while sessions wait, because their node is ahead by the full allowance: no ID
# twice, and soon it goes on.
#
# The default allowance of 10 s is 39 ticks.
my $allowance = 10;

# Ask sessions of a node for IDs until it is as far ahead of the clock as it may
# be, and kill the server at that moment, while the sessions wait.
sub kill_when_ahead
{
	my ($spec, $lead, $name) = @_;
	my @load = start_load($node, { $spec => 4 });

	# nothing is ahead by more, but the lead, which is computed with the clock
	ok( $node->poll_query_until(
			'postgres', qq(
SELECT lead BETWEEN interval '$lead s' - interval '600 ms' AND interval '$lead s' AND waits > 0
FROM scru64_generators()
WHERE node_id || '/' || node_id_size = '$spec')),
		"$name: the node is ahead by the allowance");
	kill_server($node);
	finish_clients(@load);
	is(record_load(\%received, @load), '', "$name: no error");
	is(record_problems(\%received), '', "$name: no ID twice, none too low");
	return;
}

# The node goes on, within so many seconds.
sub goes_on_ok
{
	my ($spec, $seconds, $name) = @_;
	my $session = open_session($node);
	my $began = time();
	my ($out, $err) = try_statement($session, "SET scru64.node_spec = '$spec'; SELECT scru64_generate(3)");

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

# However small the allowance: a node that was killed at the time of the clock, or
# ahead of it, goes on when the clock has passed what its ceiling was.
foreach my $seconds (0, 1)
{
	my $spec = 2 + $seconds . '/20';

	set_parameter($node, 'scru64.rollback_allowance', $seconds ? '1s' : '0');
	# the ceiling is that of the other nodes, and this one is new
	$node->safe_psql('postgres', 'SELECT scru64_set_ceiling()');
	kill_when_ahead($spec, $seconds, "allowance $seconds s");
	start_server($node);
	goes_on_ok($spec, 2 * $seconds + 5, "allowance $seconds s, after kill -9");
}

$node->stop;
done_testing();
