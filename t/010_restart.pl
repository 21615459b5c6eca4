# The server is restarted, crashes and is killed under load: no ID twice, and
# after each start every ID is above all that were received before.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use List::Util qw(shuffle);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Scru64Fault;
use Scru64Test;
use Test::More;
use Time::HiRes qw(sleep);

my $node = new_node('main');
$node->append_conf('postgresql.conf', 'restart_after_crash = on');
start_server($node);
$node->safe_psql('postgres', 'CREATE EXTENSION scru64');

# The nodes of the load, and how many sessions each has.  A tick has room for a
# few IDs of the last one, so it is ahead of the clock.
my %sessions = ('1/8' => 3, '700/12' => 2, '5/20' => 1);

my %faults = (
	'restart, fast' => sub { $node->stop('fast') },
	'restart, immediate' => sub { $node->stop('immediate') },
	'kill -9 of a backend' => sub {
		my $pid = $node->safe_psql('postgres',
			"SELECT pid FROM pg_stat_activity WHERE application_name = 'load' ORDER BY random() LIMIT 1"
		);

		kill('KILL', $pid) or die "could not kill $pid: $!";
	},
	'kill -9 of the postmaster' => sub { kill_server($node) });
my @rounds = shuffle((sort keys %faults) x 5);

my %received;
my $round = 0;

foreach my $fault (@rounds)
{
	my $name = 'round ' . ++$round . ", $fault";
	# the node that is ahead waits after a start: only sometimes is there time
	my $load = start_load($node, map { $_ => $sessions{$_} }
		  grep { $_ ne '5/20' || $round % 10 == 1 } keys %sessions);

	sleep(rand(0.3));
	$faults{$fault}->();
	finish_load($load);
	is(record_load(\%received, $load), '', "$name: no other error");
	is(record_problems(\%received), '', "$name: no ID twice, none too low");
	foreach my $spec (sort keys %received)
	{
		cmp_ok($received{$spec}{greatest},
			'le', ceiling_of($node, $spec),
			"$name: the file has a ceiling for all IDs of $spec");
	}

	if ($fault eq 'kill -9 of a backend')
	{
		$node->poll_query_until('postgres', 'SELECT true')
		  or die 'the server did not restart';
	}
	else
	{
		start_server($node);
	}
}

foreach my $spec (sort keys %sessions)
{
	record_ids(\%received, $spec,
		[ $node->safe_psql('postgres', "SET scru64.node_spec = '$spec'; SELECT scru64_generate()") ]);
	cmp_ok(number_of_ids(\%received, $spec), '>', 100, "IDs of $spec were received");
}
is(record_problems(\%received), '', 'the last start: no ID twice, none too low');
note(log_counts(\%received));

$node->stop;
done_testing();
