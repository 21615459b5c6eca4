# The clock goes back, or forward, or is nonsense: IDs stay in order, or there
# are none.

use strict;
use warnings;
use Scru64Clock;
use Scru64Copies;
use Scru64Server;
use Scru64Test;

plan skip_all => 'no clock can be set' if !can_set_clock();

# Milliseconds that a wait may need to see that the clock was set.
my $look_at_clock = 2000;

# Seconds of a tick
my $tick = 0.256;

# Last timestamp that is not reserved.
my $last_tick = 282429536479;

my $node = new_node('main');

set_clock($node, '+0');
start_server($node);
create_extension($node, q(
CREATE TABLE ids (session integer, n bigserial, node text, id scru64 PRIMARY KEY, at timestamptz);

CREATE FUNCTION give(node text, count integer, session integer DEFAULT 0) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('scru64.node_spec', node, false);
	INSERT INTO ids (session, node, id, at)
	SELECT session, node, g, clock_timestamp() FROM scru64_generate(count) g;
END
$$;

-- IDs of a node that are at or below one that its session, and for session 0
-- the only one at its time, had before
CREATE FUNCTION disorder(node text) RETURNS bigint LANGUAGE sql AS $$
	SELECT count(*) FILTER (WHERE id <= previous)
	FROM (SELECT id, lag(id) OVER (PARTITION BY session ORDER BY n) AS previous
		  FROM ids i WHERE i.node = disorder.node) i;
$$;
));

my $session = open_session($node);
my $other = open_session($node);

# The clock does what it is told to.
foreach my $behind (0, 100)
{
	set_clock($node, "-$behind");
	my $difference = $node->safe_psql('postgres', 'SELECT extract(epoch FROM clock_timestamp())') - time();
	cmp_ok(abs($difference + $behind), '<', 2, "the clock is $behind s behind");
}
set_clock($node, '+0');

sub last_id
{
	my ($spec) = @_;

	return $node->safe_psql('postgres', "SELECT max(id) FROM ids WHERE node = '$spec'");
}

# When the last ID of a node was made, in seconds since 1970
sub last_time
{
	my ($spec) = @_;

	return $node->safe_psql('postgres', "SELECT extract(epoch FROM scru64_timestamp('" . last_id($spec) . "'))");
}

# The clock is so many seconds behind the last ID of a node.
sub set_clock_behind
{
	my ($spec, $seconds) = @_;

	set_clock($node, sprintf('%+.3f', last_time($spec) - $seconds - time()));
	return;
}

sub in_order
{
	my ($spec, $count, $name) = @_;

	is($node->safe_psql('postgres', "SELECT count(*), disorder('$spec') FROM ids WHERE node = '$spec'"),
		"$count|0", $name);
	return;
}

# An error 58000 that tells the clock and the last ID with its time.
sub clock_behind_ok
{
	my ($session, $spec, $name) = @_;
	my $to_minutes = sub { "to_char($_[0], 'YYYY-MM-DD HH24:MI')" };
	# the error rounds down to a tick, and the minute may be over soon
	my $before = $node->safe_psql('postgres', 'SELECT ' . $to_minutes->("clock_timestamp() - interval '300 ms'"));
	my ($out, $err) = try_statement($session, "SELECT give('$spec', 1)");
	my ($last_id, $then, $now) = split(/\|/, $node->safe_psql('postgres',
			'SELECT max(id), ' . $to_minutes->('to_timestamp(tick_of(max(id)) * 0.256)') . ', ' . $to_minutes->('clock_timestamp()')
			  . " FROM ids WHERE node = '$spec'"));

	is($out, '', $name);
	like($err, qr/ERROR:  58000: the clock is too far behind the last ID of node $spec\n/, "$name: error 58000");
	like($err, qr/DETAIL: .*($before|$now).*$last_id.*$then/, "$name: the clock, the last ID and its time");
	my ($again) = $err =~ /IDs come again when the clock reads (.*?), earlier/;
	my ($enough) = $err =~ /rollback_allowance" to '(\d+s)', and reload/;
	ok($again, "$name: when IDs come again");
	like($err, qr/HINT: .*clock.* set "scru64\.(rollback_allowance|node_spec)" to/, "$name: a way out");
	return ($again, $enough);
}

sub fresh_ok
{
	my ($spec, $name) = @_;

	my ($out, $err) = try_statement($other, "SET statement_timeout = '2s'; SELECT give('$spec', 1); SET statement_timeout = 0");

	is($err, '', $name);
	is( $node->safe_psql(
			'postgres',
			"SELECT tick_of(at) - tick_of(id) BETWEEN 0 AND 2 FROM ids WHERE node = '$spec' ORDER BY n DESC LIMIT 1"
		),
		't',
		"$name: with the time of the clock");
	return;
}

#
# Back by less than the allowance: goes on after the last ID.
#
$session->query_safe("SELECT give('1/8', 100)");
stop_clock($node, last_time('1/8') - 3);
$session->query_safe("SELECT give('1/8', 100)");
is(in_view($node, '1/8', 'clock_rollbacks, waits'), '1|0', 'the clock goes back by 3 s: seen at once');
$other->query_safe("SELECT give('1/8', 100)");
$session->query_safe("SELECT give('1/8', 100)");
is(in_view($node, '1/8', "clock_rollbacks, waits, lead BETWEEN '2.7 s' AND '3.3 s'"), '1|0|t', 'and counted once');
in_order('1/8', 400, 'the IDs go on in order');
set_clock($node, '+0');
$session->query_safe("SELECT give('1/8', 100)");
$other->query_safe("SELECT give('1/8', 100)");
is(in_view($node, '1/8', 'clock_rollbacks, waits'), '1|0', 'the clock goes forward again');
in_order('1/8', 600, 'the IDs go on in order');

# seen by many sessions; the clock has reached a new tick since it was set
sleep(0.3);
$session->query_safe("SELECT give('1/8', 100)");
stop_clock($node, last_time('1/8') - 3);
pgbench_ok($node, 'the clock goes back, and 8 sessions see it', 8, 20,
	{ 'rollback' => q(SELECT give('1/8', 10, :client_id + 1)) });
is(in_view($node, '1/8', 'clock_rollbacks, waits'), '2|0', 'it is counted once');
in_order('1/8', 2300, 'every session has its IDs in order');

#
# Back by more than the allowance, but less than twice: waits, then goes on.
#
set_clock($node, '+0');
$session->query_safe("SELECT give('3/8', 100)");
set_clock_behind('3/8', 18);
start_statement($session, "SELECT give('3/8', 100)");
ok(waits_for($node, $session, 'Clock'), 'the clock goes back by 18 s: the session waits');
fresh_ok('4/8', 'another node generates at once');
set_clock_behind('3/8', 13);
my ($out, $err) = try_statement($session, 'SELECT 1');
is($err, '', 'the clock comes closer: the wait ends');
in_order('3/8', 200, 'a wait ends, and the IDs go on in order');
is( $node->safe_psql(
		'postgres',
		"SELECT max(tick_of(id) - tick_of(at)) BETWEEN 37 AND 39 FROM ids WHERE node = '3/8' AND n > (SELECT min(n) + 99 FROM ids WHERE node = '3/8')"
	),
	't',
	'as soon as the clock has come close enough');
is(in_view($node, '3/8', 'clock_rollbacks > 0, waits'), 't|1', 'the wait is counted');

stop_clock($node, last_time('3/8') - 18);
start_statement($session, "SELECT give('3/8', 100)");
ok(waits_for($node, $session, 'Clock'), 'the clock goes back by 18 s again: the session waits');
SKIP:
{
	my $stat = "/proc/$session->{pid}/stat";

	skip 'no process shows what it does', 1 if !-r $stat;
	$other->query_safe("SELECT pg_log_backend_memory_contexts($session->{pid})");
	wait_until(sub { logged($node, 'Grand total: ') }) or die 'the signal was lost';
	ok(wait_until(sub { slurp_file($stat) =~ /\) S /; }, 0.01), 'after a signal that does not end the wait, it sleeps again');
}
my $began = time();
set_clock($node, '+0');
($out, $err) = try_statement($session, 'SELECT 1');
is($err, '', 'the wait ends when the clock is set');
cmp_ok((time() - $began) * 1000, '<', $look_at_clock, 'soon');
in_order('3/8', 300, 'the IDs go on in order');

#
# Back by an hour: an error that says what to do, and another node works.
#
$session->query_safe("SELECT give('5/8', 100)");
set_clock($node, '-3600');
clock_behind_ok($session, '5/8', 'the clock goes back by an hour');
clock_behind_ok($other, '5/8', 'another session of the node');
fresh_ok('6/8', 'another node generates at once');
my ($again, $enough) = clock_behind_ok($session, '5/8', 'the node before is still ahead of the clock');

# What the error says: when IDs come again, after a wait, and which allowance has them come at once
$again = $node->safe_psql('postgres', "SELECT extract(epoch FROM timestamptz '$again')");
stop_clock($node, $again - $tick);
clock_behind_ok($session, '5/8', 'a tick before IDs come again');
stop_clock($node, $again);
start_statement($session, "SELECT give('5/8', 100)");
ok(waits_for($node, $session, 'Clock'), 'when the error said that IDs come again, the session waits');
stop_clock($node, $again + 10);
($out, $err) = try_statement($session, 'SELECT 1');
is($err, '', 'and has its IDs');
stop_clock($node, last_time('5/8') - 3600);
($again, $enough) = clock_behind_ok($session, '5/8', 'back by an hour again');
set_parameter($node, 'scru64.rollback_allowance', $enough, $session, $other);
$_->query_safe("SELECT give('5/8', 100)") foreach ($session, $other, $session);
in_order('5/8', 500, 'with the allowance of the hint, IDs go on in order');
is(in_view($node, '5/8', "waits, lead BETWEEN '59 min' AND '61 min'"), '1|t', 'at once, an hour ahead');
set_parameter($node, 'scru64.rollback_allowance', '10s', $session, $other);
clock_behind_ok($session, '5/8', 'the allowance is set back');
set_clock($node, '+0');
$session->query_safe("SELECT give('5/8', 100)");
in_order('5/8', 600, 'the clock goes forward again, the IDs go on in order');
$session->query_safe("SELECT give('6/8', 100)");
in_order('6/8', 101, 'those of the other node, too');

#
# Forward by an hour, and back.
#
set_clock($node, '+3600');
$session->query_safe("SELECT give('7/8', 100)");
$session->query_safe("SELECT give('5/8', 100)");
fresh_ok('8/8', 'the clock goes forward by an hour: the IDs have its time');
set_clock($node, '+0');
clock_behind_ok($session, '7/8', 'the clock goes back again');
clock_behind_ok($other, '5/8', 'another session and node');
my $resumed = last_id('7/8');
($out, $err) = try_statement($other, "SET scru64.node_spec = '$resumed/8'; SELECT scru64_generate()");
like($err, qr/ERROR:  58000: .*node 7\/8\nDETAIL: .*$resumed/, 'the node that continues after the last ID');
($out, $err) = try_statement($other, "SET scru64.node_spec = '3/7'; SELECT scru64_generate()");
like($err,
	qr/ERROR:  55006: node 3\/7 overlaps node [67]\/8, which is in use/, 'a node that covers one ahead of the clock');
fresh_ok('9/8', 'another node generates at once');

# A spec that continues after an ID that the clock is too far behind is refused,
# and does not keep others from using the node.
$resumed = $node->safe_psql('postgres',
	'SELECT ((tick_of(clock_timestamp()) + 14000 << 24) + (16 << 16))::scru64'
);
($out, $err) = try_statement($other, "SET scru64.node_spec = '$resumed/8'; SELECT scru64_generate()");
like($err, qr/ERROR:  58000: .*node 16\/8\nDETAIL: .*$resumed/, 'a spec that continues after an ID an hour ahead');
fresh_ok('16/8', 'its node generates');
set_clock($node, '+3600');
$session->query_safe("SELECT give('7/8', 100)");
in_order('7/8', 200, 'the clock goes forward again, the IDs go on in order');
set_clock($node, '+0');

#
# Times that IDs do not have: errors, and nothing is kept of them.
#
sub no_id
{
	my ($spec, $clock, $name) = @_;
	my $count = "SELECT count(*) FROM ids WHERE node = '$spec'";
	my $before = $node->safe_psql('postgres', $count);
	my ($out, $err) = try_statement($session, "SELECT give('$spec', 1)");

	like($err, qr/ERROR:  58000: .*\nDETAIL: .*$clock.*\nHINT: .*clock/, "$name: error 58000 with the clock");
	is($node->safe_psql('postgres', "SELECT ($count), count(*) > 5 FROM scru64_generators() WHERE node_id_size = 8"),
		"$before|t", "$name: no ID, and the nodes are shown");
	return;
}

set_clock($node, -time() - 100_000_000);
is($node->safe_psql('postgres', 'SELECT extract(year FROM clock_timestamp())'), '1966', 'the clock says 1966');
no_id('1/8', '1966-', 'a node that has IDs, before 1970');
no_id('10/8', '1966-', 'a node without IDs, before 1970');
stop_clock($node, 0);
is($node->safe_psql('postgres', 'SELECT extract(epoch FROM clock_timestamp())'), '0.000000', 'the clock says 0');
no_id('1/8', '1970-01-01 00:00:00', 'a node that has IDs, at the start of 1970');
$session->query_safe("SELECT give('11/8', 1)");
is($node->safe_psql('postgres', "SELECT tick_of(id) FROM ids WHERE node = '11/8'"),
	'1', 'a node without IDs, at the start of 1970: none of the reserved tick');
stop_clock($node, 1);
fresh_ok('12/8', 'a second after the start of 1970');

# 4261-02-27 06:08:58: the tick is 282429536476, and four of two IDs are left.
stop_clock($node, 72_301_961_338);
my $has_end_of_time = $node->safe_psql('postgres', 'SELECT extract(year FROM clock_timestamp())') == 4261;
SKIP:
{
	skip 'the clock of this machine has seconds of 32 bits', 1 if !$has_end_of_time;
	foreach my $n (1 .. 8)
	{
		($out, $err) = try_statement($session, "SELECT give('13/23', 1)");
	}
	is($err, '', 'the last second that has IDs');
	($out, $err) = try_statement($session, "SELECT give('13/23', 1)");
	like($err, qr/ERROR:  58000: .*\n.*DETAIL: .*4261-02-27.*\n.*HINT: .*clock/, 'its node is exhausted');
	is( $node->safe_psql(
			'postgres',
			"SELECT count(*), max(tick_of(id)), disorder('13/23') FROM ids WHERE node = '13/23'"
		),
		"8|$last_tick|0",
		'it has given all but reserved IDs');
	stop_clock($node, 72_301_961_339);
	no_id('1/8', '4261-02-27 06:0', 'a node that has IDs, at the end of time');
	no_id('14/8', '4261-02-27 06:0', 'a node without IDs, at the end of time');
	set_clock($node, '+' . 8000 * 365 * 86400);
	my $year =
	  $node->safe_psql('postgres', 'SELECT extract(year FROM clock_timestamp())');
	cmp_ok($year, '>', 9000, 'the clock says about 10000');
	no_id('1/8', "$year-", 'a node that has IDs, long after the end of time');
	no_id('15/8', "$year-", 'a node without IDs, long after the end of time');
	no_id('zzzzzzzzzzzz/8', "$year-", 'a node that goes on after the last ID');
	is($node->safe_psql('postgres', 'SELECT tick_of(scru64_ceiling())'), $last_tick, 'the ceiling is no later than the last tick that has IDs');
}

# The clock is right again.
set_clock($node, '+0');
clock_behind_ok($session, '13/23', 'the clock is right, the node of the end of time') if $has_end_of_time;
fresh_ok($_, "the clock is right, node $_") foreach ('10/8', '11/8', '12/8', '14/8', '15/8');
$session->query_safe("SELECT give('1/8', 100)");
in_order('1/8', 2400, 'the clock is right, the IDs of the first node go on in order');

# A node that another one took the place of is not forgotten when the clock goes
# back: a third one, which shares IDs with it, starts after its last ID.
$session->query_safe("SELECT give('0x20/8', 100)");
set_clock($node, '+20');
$session->query_safe("SELECT give('0x200/12', 100)");
is(in_view($node, '32/8', 'count(*)'), '0', 'a node takes the place of another');
set_clock($node, '-3');
$session->query_safe("SELECT give('0x201/12', 100)");
is($node->safe_psql('postgres', q(
SELECT min(id) FILTER (WHERE node = '0x201/12') > max(id) FILTER (WHERE node = '0x20/8')
FROM ids
)),
	't', 'the clock goes back: a third one starts after the first');
set_clock($node, '+0');

is($node->safe_psql('postgres', qq(
SELECT count(*) - count(DISTINCT id),
	count(*) FILTER (WHERE tick_of(id) NOT BETWEEN 1 AND $last_tick),
	(SELECT sum(disorder(node)) FROM (SELECT DISTINCT node FROM ids) nodes)
FROM ids
)),
	'0|0|0', 'no ID twice, none reserved, all in order');

$session->quit;
$other->quit;
$node->stop;
done_testing();
