# What the view shows and the log says of ceilings, the clock and waits.

use strict;
use warnings;
use Scru64Clock;
use Scru64Server;
use Scru64Test;

plan skip_all => 'no clock can be set' if !can_set_clock();

# The ceiling is 16 ticks ahead, for a node that overflows 38: the allowance less one.
my $ahead = 16;
my $ahead_overflow = 38;
my $tick_ms = 256;

my $node = new_node('main');

# The server's clock moves when it is moved, and stands still otherwise: nothing here
# depends on how fast the machine is.  It is a day back, in the midst of a tick.
my $clock_ms = int((time() - 86400) * 1000 / $tick_ms) * $tick_ms + 100;

sub move_clock
{
	my ($by_ms) = @_;

	$clock_ms += $by_ms;
	stop_clock($node, $clock_ms / 1000);
	return;
}

move_clock(0);
start_server($node, set_monotonic => 1);
create_extension($node, 'CREATE TABLE ids (id scru64)');

sub last_of
{
	my ($spec, $count) = @_;

	return $node->safe_psql('postgres',
		"SET scru64.node_spec = '$spec'; SELECT max(id) FROM scru64_generate($count) id");
}

# The same, of a node that has to wait: each time, the clock moves on by a tick.
sub wait_for_last_of
{
	my ($spec, $count) = @_;
	my $waits = in_view($node, $spec, 'waits') || 0;
	my ($session, $monitor) = map { open_session($node) } (1 .. 2);
	my $look = "SELECT coalesce(sum(waits), 0), state = 'idle' AND query LIKE 'SELECT max%' FROM pg_stat_activity
LEFT JOIN scru64_generators() ON node_id || '/' || node_id_size = '$spec' WHERE pid = $session->{pid} GROUP BY state, query";

	$session->query_safe("SET scru64.node_spec = '$spec'");
	start_statement($session, "SELECT max(id) FROM scru64_generate($count) id");
	my $is_over = '';
	while ($is_over ne 't')
	{
		my $waits_now;

		wait_until(
			sub {
				($waits_now, $is_over) = split(/\|/, $monitor->query_safe($look));
				return $waits_now > $waits || $is_over eq 't';
			}, 0.01) or die "no end of waiting for $spec";
		move_clock($tick_ms) if $waits_now > $waits++;
	}
	$_->quit foreach ($session, $monitor);
	return;
}

#
# durable_until and lead
#
is($node->safe_psql('postgres', 'SELECT count(*) FROM scru64_generators()'), '0', 'no node before the first ID');
my $id = last_of('1/8', 1);
is( in_view($node, '1/8', qq(
last_id, node_spec, tick_of(durable_until) - tick_of(clock_timestamp()),
durable_until > scru64_timestamp(last_id), extract(epoch FROM lead) * 1000 BETWEEN -$tick_ms AND 0,
counter_overflows, clock_rollbacks, waits)),
	"$id|$id/8|$ahead|t|t|0|0|0",
	'a node that has given an ID');
$node->safe_psql('postgres', 'CHECKPOINT');
is(in_view($node, '1/8', 'tick_of(durable_until)'),
	unpack('x32 Q', slurp_file(page_file($node))), 'durable_until is what the page says');

my $session = open_session($node);
my ($above, $raises, $before) = (0, -1, '');
$session->query_safe("SET scru64.node_spec = '1/8'");
foreach (1 .. 60)
{
	$session->query_safe('SELECT scru64_generate()');
	my ($covered, $until) =
	  split(/\|/, $session->query_safe('SELECT last_id <= scru64_max(durable_until), durable_until FROM scru64_generators()'));

	$above++ if $covered ne 't';
	$raises++ if $until ne $before;
	$before = $until;
	move_clock(100);
}
$session->quit;
is($above, 0, 'no ID is above durable_until');
ok($raises >= 3 && $raises <= 5, "durable_until is raised every 1.5 seconds: $raises times in six");

# A restart: no node is known any more, but where all of them start.
my ($last, $durable) = split(/\|/, in_view($node, '1/8', 'last_id, tick_of(durable_until)'));
my $start = 'LOG:  node \\d+/\\d+ starts after .*, which is ahead of the clock';
is(scalar(logged($node, $start)), 0, 'no node starts ahead of the clock at first');
$node->stop('immediate');
start_server($node, set_monotonic => 1);
is($node->safe_psql('postgres', 'SELECT count(*) FROM scru64_generators()'), '0', 'after a restart: no node before the first ID');
$id = last_of('2/8', 1);
cmp_ok($node->safe_psql('postgres', "SELECT tick_of('$id'::scru64)"), '>', $durable, 'after a restart: the first ID is above durable_until');
is(in_view($node, '1/8', '1'), '', 'after a restart: another node is not there');
is(scalar(logged($node, $start)), 1, 'after a restart: the log says that the node starts ahead of the clock');
like(slurp_file($node->logfile),
	qr/LOG:  node 2\/8 starts after .*, which is ahead of the clock\n.*DETAIL:  The clock reads .*\. IDs up to then may have been issued before\./,
	'after a restart: and why');
last_of('2/8', 1);
is(scalar(logged($node, $start)), 1, 'after a restart: once');
cmp_ok($node->safe_psql('postgres', "SET scru64.node_spec = '$last/8'; SELECT scru64_generate()"),
	'gt', $last, 'its node_spec continues after all');

# The ceiling is no part of a transaction, and a session may raise it while it has parallel
# workers.  The clock does not stand still here: after each crash, IDs would be further ahead of
# the clock.
my $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0';
my $generate = 'SELECT scru64_generate() AS id FROM (SELECT count(*) AS n FROM ids) AS counted WHERE n >= 0';
$node->stop;
set_clock($node, '+0');
start_server($node);
like($node->safe_psql('postgres', "$parallel; EXPLAIN (VERBOSE) $generate"), qr/Output: scru64_generate\(\).*Gather/s, 'a plan with workers');
foreach my $begin ('BEGIN READ ONLY', "$parallel; BEGIN")
{
	my @ids = grep { /^\w{12}$/ } split(/\n/, $node->safe_psql('postgres',
			"SET scru64.node_spec = '1/8'; $begin; $generate; ROLLBACK"));
	is(scalar(@ids), 1, "$begin: an ID");
	kill_server($node);
	start_server($node);
	cmp_ok(last_of('2/8', 1), 'gt', $ids[0], "$begin, ROLLBACK, kill -9: the next one is above");
	# the next ID needs a ceiling
	$node->stop;
	start_server($node);
}
$node->stop;
move_clock(0);
start_server($node, set_monotonic => 1);

# A slot that was another node's is no reason to be silent, nor to say a thing twice.
my $later = "SELECT scru64_set_ceiling(clock_timestamp() + '6 s')";
my $starts = sub {
	my ($spec) = @_;
	return scalar(logged($node, "LOG:  node $spec starts after .*, which is ahead of the clock"));
};
my %before = map { $_ => $starts->($_) } '1/8', '2/8';
$node->safe_psql('postgres', $later);
last_of('1/8', 1);
$node->safe_psql('postgres', $later);
last_of($_, 1) foreach ('2/8', '1/8');
is(join(' ', map { $starts->($_) - $before{$_} } sort keys %before), '1 1',
	'nodes that start ahead of the clock in slots of others: once each');

#
# Overflows and waits
#
$node->safe_psql('postgres', 'SELECT scru64_set_ceiling()');
last_of('3/20', 500);
is( in_view($node, '3/20', qq(
counter_overflows > 20, waits, clock_rollbacks, lead > interval '5 s',
tick_of(durable_until) - tick_of(clock_timestamp()))),
	"t|0|0|t|$ahead_overflow",
	'a node that is ahead of the clock');
is(scalar(logged($node, 'waits for the clock')), 0, 'nobody has waited');
wait_for_last_of('3/20', 200);
is( in_view($node, '3/20', 'waits > 0, clock_rollbacks, lead > interval \'9 s\''), 't|0|t', 'a node that has waited');
my $saturated = 'LOG:  node 3/20 waits for the clock';
is(scalar(logged($node, $saturated)), 1, 'the log says so');
wait_for_last_of('3/20', 30);
is(scalar(logged($node, $saturated)), 1, 'only once');
wait_for_last_of('4/20', 700);
is(scalar(logged($node, 'LOG:  node 4/20 waits for the clock')), 1, 'for each node');
like(slurp_file($node->logfile),
	qr/$saturated\n.*DETAIL:  The last ID of node 3\/20, \w{12}, is of .*\. The next would be ahead of the clock by more than "scru64\.rollback_allowance" \(10000 ms\)\.\n.*HINT:  .*smaller node_id_size/,
	'with what to do');
move_clock(65_000);
wait_for_last_of('3/20', 700);
is(scalar(logged($node, $saturated)), 2, 'and again after a minute');

#
# The clock goes back
#
$node->stop;
start_server($node);
# these nodes are not ahead of the clock
$node->safe_psql('postgres', 'SELECT scru64_set_ceiling()');
last_of($_, 1) foreach ('1/8', '2/8');
my $went_back = 'LOG:  the clock went back from ';
is(scalar(logged($node, $went_back)), 0, 'the clock has not gone back');
foreach (1 .. 3)
{
	move_clock(-2000);
	last_of('1/8', 1);
}
is(in_view($node, '1/8', 'clock_rollbacks, waits'), '3|0', 'the clock goes back three times');
is(scalar(logged($node, $went_back)), 1, 'the log says so once');
my ($from, $to) = (logged($node, $went_back))[0] =~ /from (.*) to (.*)$/;
is( $node->safe_psql('postgres', "SELECT round(extract(epoch FROM timestamptz '$from' - timestamptz '$to')), round(extract(epoch FROM clock_timestamp() - timestamptz '$to'))"),
	'2|-4',
	'from when to when');
last_of('2/8', 1);
is(in_view($node, '2/8', 'clock_rollbacks'), '1', 'another node sees it, too');
is(scalar(logged($node, $went_back)), 2, 'and says so');
like(slurp_file($node->logfile),
	qr/$went_back.*\n.*DETAIL:  Node 2\/8 continues after its last ID as long as that is not ahead of the clock by more than "scru64\.rollback_allowance" \(10000 ms\)\./,
	'with what follows');

# The counts are lost with a restart, and nothing else.  The node starts above its
# ceiling: with the clock as far back as it is, it would have to wait.
kill_server($node);
move_clock(2000);
start_server($node);
last_of('1/8', 1);
is(in_view($node, '1/8', 'clock_rollbacks, waits, counter_overflows, lead > interval \'5 s\''), '0|0|0|t', 'the counts start anew');

$node->stop;
done_testing();
