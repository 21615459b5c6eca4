# A node that is asked for more IDs than it has waits for the clock: as long as
# it must, no longer, and in a way that can be seen and ended.

use strict;
use warnings;
use Scru64Test;

# Milliseconds that a wait may need to end; a nap of the wait takes up to 1000.
my $at_once = 400;

# A node of size 23 has one counter bit, so that a tick of 256 ms has two IDs.
# The default allowance of 10 s is 39 ticks.
my $tick_ms = 256;

my $node = new_node('main');
$node->start;

# at is the clock when the ID was there
create_extension($node, q(
CREATE TABLE ids (node text, n serial, id scru64 PRIMARY KEY, at timestamptz);

CREATE FUNCTION give(node text, count integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('scru64.node_spec', node, false);
	FOR i IN 1 .. count LOOP
		INSERT INTO ids (node, id, at) VALUES (node, scru64_generate(), clock_timestamp());
	END LOOP;
END
$$;
));

#
# 200 IDs of one node: 100 ticks, of which all but the allowance must pass.
#
my $saturated = open_session($node);

start_statement($saturated, "SELECT give('1/23', 200)");
ok(waits_for($node, $saturated, 'Clock'), 'a saturated node waits, with a wait event');

# another node does not have to wait, nor who looks at scru64_generators()
my ($ret, $out, $err) = $node->psql(
	'postgres', q(
SET statement_timeout = '1s';
SET scru64.node_spec = '9/8';
SELECT count(*) FROM scru64_generate(1000);
SELECT node_id, waits > 0 FROM scru64_generators() ORDER BY node_id;
));
is($out, "1000\n1|t\n9|f", 'meanwhile another node generates');
is($err, '', 'without an error');

# several sessions of a saturated node: 104 IDs are 52 ticks
pgbench_ok($node, '8 sessions wait for one node, and all of them finish', 8, 13,
	{ 'several' => q(SELECT give('2/23', 1)) });

($out, $err) = try_statement($saturated, 'SELECT 1');
is($err, '', '200 IDs of a saturated node: no error');
# one tick more if the clock moves on after the first ID
like($node->safe_psql('postgres', q(
SELECT node, count(*), count(DISTINCT id), count(DISTINCT tick_of(id)),
	max(tick_of(id)) - min(tick_of(id)) + 1,
	count(*) FILTER (WHERE tick_of(id) > tick_of(at) + 39)
FROM ids GROUP BY node ORDER BY node
)),
	qr{^1/23\|200\|200\|(100\|100|101\|101)\|0\n2/23\|104\|104\|(52\|52|53\|53)\|0$},
	'two IDs in every tick, none too far ahead of the clock');
is( $node->safe_psql(
		'postgres',
		"SELECT count(*) FROM (SELECT id <= lag(id) OVER (ORDER BY n) AS wrong FROM ids WHERE node = '1/23') i WHERE wrong"
	),
	'0',
	'the IDs are in order');

# The first may come late in its tick, so the time of one tick may be missing;
# the generator's clock is a little coarse.
my $elapsed = $node->safe_psql('postgres',
	"SELECT extract(epoch FROM max(at) - min(at)) * 1000 FROM ids WHERE node = '1/23'");
cmp_ok($elapsed, '>', (100 - 39 - 2) * $tick_ms - 20, '200 IDs take their time');
cmp_ok($elapsed, '<', (100 - 39) * $tick_ms + 3000, 'and not much more');
is($node->safe_psql('postgres', q(
SELECT counter_overflows, waits BETWEEN 20 AND 61, clock_rollbacks,
	last_id = (SELECT max(id) FROM ids WHERE node = '1/23')
FROM scru64_generators() WHERE node_id = 1
)),
	'99|t|0|t', 'overflows and waits are counted');

#
# Ends of a wait.  A node that has used an allowance of 60 s waits for half a
# minute after the allowance was halved.
#
my $waiting = open_session($node);
my $controller = open_session($node);
my $saturate = "SELECT give('3/23', 460)";

# Time that it took to end the wait of a session.
sub end_wait
{
	my ($session, $how) = @_;

	return $controller->query_safe("SELECT round(end_statement($session->{pid}, '$how'))");
}

set_parameter($node, 'scru64.rollback_allowance', '1min', $waiting, $controller);
$waiting->query_safe($saturate);
set_parameter($node, 'scru64.rollback_allowance', '31s', $waiting, $controller);
my $waits = $node->safe_psql('postgres', 'SELECT waits FROM scru64_generators() WHERE node_id = 3');

foreach my $round (1 .. 3)
{
	start_statement($waiting, "SELECT give('3/23', 1)");
	ok(waits_for($node, $waiting, 'Clock'), "a session waits, $round");
	cmp_ok(end_wait($waiting, 'pg_cancel_backend'), '<', $at_once, "its wait is cancelled at once, $round");
	($out, $err) = try_statement($waiting, 'SELECT 1');
	like($err, qr/ERROR:  57014: canceling statement due to user request/, "that is the error, $round");
}
is($node->safe_psql('postgres', "SELECT waits - $waits FROM scru64_generators() WHERE node_id = 3"),
	'3', 'a wait is counted once, however long it is and whatever its end');

$elapsed = $controller->query_safe('SELECT extract(epoch FROM clock_timestamp()) * 1000');
($out, $err) = try_statement($waiting, "SET statement_timeout = '300ms'; SELECT give('3/23', 1)");
$elapsed = $controller->query_safe("SELECT extract(epoch FROM clock_timestamp()) * 1000 - $elapsed");
like($err, qr/ERROR:  57014: canceling statement due to statement timeout/, 'statement_timeout ends a wait');
cmp_ok($elapsed, '<', 300 + $at_once, 'at once');
cmp_ok($elapsed, '>=', 300, 'and not before');
$waiting->query_safe('SET statement_timeout = 0');

my $terminated = open_session($node);
start_statement($terminated, "SELECT give('3/23', 1)");
ok(waits_for($node, $terminated, 'Clock'), 'another session waits');
cmp_ok(end_wait($terminated, 'pg_terminate_backend'), '<', $at_once, 'its wait is terminated at once');
ok( $node->poll_query_until(
		'postgres',
		"SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $terminated->{pid})"),
	'and the session with it');
$terminated->{run}->finish;
like($terminated->{stderr}, qr/FATAL:  57P01: terminating connection/, 'that is the error');

is($node->safe_psql('postgres', "SELECT count(*) FROM ids WHERE node = '3/23'"),
	'460', 'waits that were ended gave no ID');
set_parameter($node, 'scru64.rollback_allowance', '1min', $waiting, $controller);
$waiting->query_safe("SELECT give('3/23', 4)");
is($node->safe_psql('postgres', q(
SELECT count(*), count(*) FILTER (WHERE id <= previous)
FROM (SELECT id, lag(id) OVER (ORDER BY n) AS previous FROM ids WHERE node = '3/23') i
)),
	'464|0', 'after that, generation goes on');

#
# Without an allowance, no ID is ahead of the clock.
#
set_parameter($node, 'scru64.rollback_allowance', '0', $waiting);
$waiting->query_safe("SELECT give('4/23', 10)");
pgbench_ok($node, '8 sessions wait for one node without an allowance', 8, 2,
	{ 'no_allowance' => q(SELECT give('5/23', 1)) });
set_parameter($node, 'scru64.rollback_allowance', '255ms', $waiting);
$waiting->query_safe("SELECT give('6/23', 6)");
is($node->safe_psql('postgres', q(
SELECT node, count(*), count(DISTINCT id), count(*) FILTER (WHERE tick_of(id) > tick_of(at)),
	max(tick_of(id)) - min(tick_of(id)) >= count(*) / 2 - 1
FROM ids WHERE node IN ('4/23', '5/23', '6/23') GROUP BY node ORDER BY node
)),
	"4/23|10|10|0|t\n5/23|16|16|0|t\n6/23|6|6|0|t", 'a saturated node waits for its next tick');

$saturated->quit;
$waiting->quit;
$controller->quit;
$node->stop;
done_testing();
