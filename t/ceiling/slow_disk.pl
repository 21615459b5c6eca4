# A disk and a standby that answer late: who waits for the ceiling, for how long, and what the
# log and scru64_check() say.  The clock moves only when the test says so, so nothing here depends on how fast
# anything is.

use strict;
use warnings;
use Scru64Clock;
use Scru64Copies;
use Scru64Disk;
use Scru64Server;
use Scru64Test;

plan skip_all => 'no clock can be set' if !can_set_clock();

# Milliseconds, of the clock
my $tick_ms = 256;
my $clock_ms = 1_782_907_200_000;	# 2026-07-01 12:00:00
$clock_ms -= $clock_ms % $tick_ms;

my $template = make_template('template', allows_streaming => 1);
my $node = copy_server($template, 'slow');
my @clocks = ($node);

plan skip_all => 'there is no compiler' if !make_disk($node);

sub move_clock
{
	my ($ms) = @_;

	$clock_ms += $ms;
	stop_clock($_, $clock_ms / 1000) foreach @clocks;
	return;
}

# While the clock stands still, a signal handler that interrupts a wait sees the machine's time,
# and ends a statement whose timeout is over by then.  So no other timer may interrupt a wait.
$node->append_conf('postgresql.conf', "deadlock_timeout = '10min'");
move_clock(0);
start_server($node);

my %given;

# A session of a node
sub session_of
{
	my ($spec, @settings) = @_;
	my $session = open_session($node);

	$session->query_safe(join('', map { "SET $_;\n" } "statement_timeout = '60s'", "scru64.node_spec = '$spec'", @settings));
	return $session;
}

# The number that a session got or what went wrong
sub next_id
{
	my ($client) = @_;
	my ($out, $err) = try_statement($client, 'SELECT scru64_generate()::bigint');

	$given{$out}++ if $err eq '';
	return $err eq '' ? $out : $err;
}

sub start_next
{
	my ($client) = @_;

	start_statement($client, 'SELECT scru64_generate()::bigint AS id');
	return;
}

# What came of it; whatever psql prints before
sub end_next
{
	my ($client) = @_;
	my ($out, $err) = try_statement($client, 'SELECT 0');
	my ($id) = $out =~ /^(\d{10,})$/m;

	$given{$id}++ if defined $id;
	return $id || $err;
}

# Wait until the log has a message that matches, with its DETAIL and HINT.
sub logged_in_full
{
	my ($pattern) = @_;

	return wait_until(sub { return slurp_file($node->logfile) =~ $pattern });
}

# What the log says of a wait for the standby, of which so many are missing
sub wait_logged_ok
{
	my ($missing, $name) = @_;

	return ok(
		logged_in_full(qr/LOG:  sessions wait until synchronous standbys have flushed the ceiling of scru64\n.*DETAIL:  Standbys missing: $missing of 1\. The parameter "synchronous_standby_names" is "standby"\.\n.*HINT:  /),
		$name);
}

# What scru64_check() returns to a new session, and whether it warns
sub check
{
	my ($settings) = @_;

	$settings //= '';
	my ($status, $out, $err) = $node->psql('postgres', "SET scru64.node_spec = '9/12'; $settings; SELECT scru64_check()");
	return $status == 0 ? ($out, $err) : ('failed', $err);
}

sub check_well_ok
{
	my ($name, $settings) = @_;

	return is(join('', check($settings)), '', "$name: scru64_check() is content");
}

sub check_waits_ok
{
	my ($pattern, $name) = @_;

	return ok(
		wait_until(sub {
			my ($out, $err) = check();
			return $out =~ $pattern && $err =~ /WARNING:  scru64_generate\(\) would wait\nDETAIL:  \Q$out\E\nHINT:  /;
		}),
		"$name: scru64_check() says so");
}

#
# A raise that takes longer than it reaches ahead
#
foreach my $case ([ '10s', 20_000 ], [ '0', 300 ])
{
	my ($allowance, $late_ms) = @{$case};
	my $name = "allowance $allowance";
	my @clients = map { session_of('5/12') } (1 .. 4);

	set_parameter($node, 'scru64.rollback_allowance', $allowance, @clients);
	next_id($clients[0]);
	move_clock(20_000);
	check_well_ok("$name, before");
	hold_flushes($node);
	my $asked_at = $clock_ms >> 8;
	start_next($_) foreach @clients;
	my $raiser = wait_for_flush($node, map { $_->{pid} } @clients);
	waits_for($node, $_, 'extend') foreach grep { $_->{pid} != $raiser } @clients;
	check_waits_ok(qr/^The next ID waits for a flush of the WAL, which has taken \d{4,} ms so far\.$/, $name);
	move_clock($late_ms);
	release_flushes($node);

	my @ids = map { end_next($_) } @clients;
	is(scalar(grep { /^\d+$/ } @ids), 4, "$name: all sessions get an ID") or diag("@ids");
	is(scalar(grep { $_ >> 24 >= $asked_at && $_ >> 24 <= $asked_at + 16 } @ids), 4, "$name: of a tick that the raise reaches");
	my $flushes = 0;
	$flushes += flushes_of($node, $_->{pid}) foreach @clients;
	is($flushes, 1, "$name: one raise for all of them");
	check_well_ok("$name, after");
	like(next_id($clients[0]), qr/^\d+$/, "$name: and the next");
	$_->quit foreach @clients;
}
set_parameter($node, 'scru64.rollback_allowance', '10s');

# A cursor that rests after a raise: its next ID is of now.
{
	my $client = session_of('5/12');
	my $next = sub { return $client->query_safe('FETCH 1 FROM ids') >> 24 };

	move_clock(60_000);
	$client->query_safe('BEGIN; DECLARE ids CURSOR FOR SELECT scru64_generate(3)::bigint');
	foreach my $pause (0, 60_000, 3_600_000)
	{
		move_clock($pause);
		is($next->(), $clock_ms >> 8, "a cursor that rests for $pause ms: an ID of now");
	}
	$client->quit;
}

#
# A raise that takes 2.5 s: only one session waits.
#
move_clock(60_000);
my @clients = map { session_of('6/12') } (1 .. 8);
next_id($_) foreach @clients;
move_clock(6 * $tick_ms);
hold_flushes($node);
start_next($clients[0]);
is(wait_for_flush($node, $clients[0]->{pid}), $clients[0]->{pid}, 'the first to come near the ceiling raises it');
foreach my $tick (1 .. 10)
{
	my @ids = map { next_id($_) } @clients[ 1 .. 7 ];

	is(scalar(grep { /^\d+$/ && $_ >> 24 == $clock_ms >> 8 } @ids), 7, "tick $tick: seven sessions have their IDs") or diag("@ids");
	move_clock($tick_ms);
}
# not less of the machine's time either
sleep(1);
release_flushes($node);
like(end_next($clients[0]), qr/^\d+$/, 'and then the first');
ok(logged_in_full(qr/LOG:  raising the ceiling of scru64 took \d{4,} ms\n.*DETAIL:  .*WAL.*\n.*HINT:  Check the disk/), 'the log says how long a raise took');
$_->quit foreach @clients;

#
# A wait for a flush of another session ends when it is cancelled.
#
move_clock(60_000);
@clients = map { session_of('7/12') } (1 .. 2);
hold_flushes($node);
start_next($clients[0]);
wait_for_flush($node, $clients[0]->{pid});
$clients[1]->query_safe("SET statement_timeout = '100ms'");
like(next_id($clients[1]), qr/57014/, 'a session that waits for another one is cancelled');
release_flushes($node);
like(end_next($clients[0]), qr/^\d+$/, 'the other one gets its ID');
$_->quit foreach @clients;

#
# A synchronous standby that answers late
#
my $standby = copy_server($template, 'standby');
push @clocks, $standby;
make_disk($standby);
move_clock(0);
$standby->enable_streaming($node);
start_server($standby);
set_parameter($node, 'synchronous_standby_names', 'standby');
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
  or die 'no synchronous standby';

move_clock(60_000);
@clients = map { session_of('8/12', "synchronous_commit = $_") } ('on', ('remote_apply') x 7);
# of the same node, so that it enters ticks for the others
my $local = session_of('8/12', 'synchronous_commit = local');
foreach my $pause (60_000, 3_600_000)
{
	move_clock($pause);
	my @ids = map { next_id($_) } @clients;
	is(scalar(grep { /^\d+$/ && $_ >> 24 == $clock_ms >> 8 } @ids), 8, "after $pause ms without IDs: IDs of now") or diag("@ids");
}
move_clock(6 * $tick_ms);
hold_flushes($standby);
foreach my $tick (1 .. 10)
{
	my @ids = map { next_id($_) } @clients;

	is(scalar(grep { /^\d+$/ && $_ >> 24 == $clock_ms >> 8 } @ids), 8, "standby, tick $tick: all sessions have their IDs")
	  or diag("@ids");
	check_well_ok("standby, tick $tick");
	move_clock($tick_ms);
}
move_clock(1000);
my $began = time();
start_next($_) foreach @clients;
ok(waits_for($node, $_, 'Standby'), 'then they wait for it') foreach @clients;
wait_logged_ok(0, 'the log says so, and that the standby is there');
check_waits_ok(qr/^The next ID waits for synchronous standbys, which have not flushed the ceiling for \d{4,} ms\.$/, 'a late standby');
check_well_ok('a session that does not wait for it', 'SET synchronous_commit = local');
like(next_id($local), qr/^\d+$/, 'but for one whose commits would not wait');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($clients[0]->{pid})");
like(end_next($clients[0]), qr/57014/, 'one is cancelled');
ok(waits_for($node, $_, 'Standby'), 'and the others still wait') foreach @clients[ 1 .. 7 ];
# it gives one raise after the other to the WAL, and they wait for the first
foreach (1 .. 3)
{
	move_clock(10_000);
	like(next_id($local), qr/^\d+$/, 'the local session goes on');
}
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
$standby->poll_query_until('postgres', "SELECT pg_get_wal_replay_pause_state() = 'paused'") or die 'the replay is not paused';
release_flushes($standby);
my @ids = map { end_next($_) } @clients[ 1 .. 7 ];
is(scalar(grep { /^\d+$/ } @ids), 7, 'they get their IDs when it has flushed the ceiling, and not replayed it') or diag("@ids");
cmp_ok(scalar(logged($node, 'sessions wait until synchronous standbys')), '<=', 1 + (time() - $began) / 60, 'the log has a line a minute for all of them');
check_well_ok('the standby has answered');

# Whoever has cancelled its wait, or has none, pays for nobody else.
$standby->stop('immediate');
move_clock(60_000);
check_waits_ok(qr/^The next ID waits for synchronous standbys\. Missing: 1 of 1\.$/, 'the standby is gone');
like(next_id($local), qr/^\d+$/, 'the standby is gone: the local session goes on');
check_well_ok('a session that does not wait for the lost standby', 'SET synchronous_commit = local');
$clients[0]->query_safe("SET statement_timeout = '100ms'");
my ($out, $err) = try_statement($clients[0], 'SELECT scru64_generate()');
like($err, qr/ERROR:  57014/, 'a session that waits is ended by its timeout');
unlike($err, qr/WARNING|commit/, 'and nothing is said of commits');
like(next_id($clients[0]), qr/57014/, 'nor has it an ID after that');
like(next_id($local), qr/^\d+$/, 'the local session has one of the same tick');
like(next_id($clients[0]), qr/57014/, 'and the other one still has none');
my $prev = $node->safe_psql('postgres', 'SELECT ((' . (($clock_ms >> 8) + 30) . '::bigint << 24) + (8 << 12) + 5)::scru64');
$clients[0]->query_safe("SET scru64.node_spec = '$prev/12'");
like(next_id($clients[0]), qr/57014/, 'nor by another node');
$clients[0]->query_safe('SET synchronous_commit = local');
like(next_id($clients[0]), qr/^\d+$/, 'a session that does not want to wait any more has an ID');
$clients[0]->query_safe('SET synchronous_commit = on');
like(next_id($clients[0]), qr/57014/, 'and one that wants to again has none');
$clients[1]->query_safe("SET statement_timeout = '100ms'");
like(next_id($clients[1]), qr/57014/, 'nor has another one');
start_next($clients[2]);
ok(waits_for($node, $clients[2], 'Standby'), 'a session waits');
set_parameter($node, 'synchronous_standby_names', '');
like(end_next($clients[2]), qr/^\d+$/, 'and goes on when there is to be no standby');
check_well_ok('there is to be no standby');
move_clock(60_000);
check_well_ok('there is to be no standby, and the next ID needs a raise');

# synchronous_commit counts when the ID is generated: inside a function with SET, the function's.
set_parameter($node, 'synchronous_standby_names', 'standby', $clients[3]);
$clients[3]->query_safe(q(
SET synchronous_commit = local;
CREATE FUNCTION pg_temp.generate_local() RETURNS scru64 LANGUAGE plpgsql SET synchronous_commit = local AS 'BEGIN RETURN scru64_generate(); END';
SET synchronous_commit = on;
));
move_clock(60_000);
($out, $err) = try_statement($clients[3], 'SELECT pg_temp.generate_local()::bigint');
like("$out$err", qr/^\d+$/, 'a function with SET synchronous_commit = local does not wait');
$given{$out}++;
start_next($clients[3]);
ok(waits_for($node, $clients[3], 'Standby'), 'its session does, outside of it');
set_parameter($node, 'synchronous_standby_names', '');
like(end_next($clients[3]), qr/^\d+$/, 'until there is to be no standby');

is(scalar(grep { $_ > 1 } values %given), 0, 'no ID came twice');
$_->quit foreach (@clients, $local);

# A restart, so that the log may have another line within a minute
set_parameter($node, 'synchronous_standby_names', 'standby');
$node->stop;
start_server($node);
my $last = session_of('8/12', 'statement_timeout = 0');
start_next($last);
ok(waits_for($node, $last, 'Standby'), 'the standby is gone: a session waits');
wait_logged_ok(1, 'the log says that the standby is missing');
set_parameter($node, 'synchronous_standby_names', '');
like(end_next($last), qr/^\d+$/, 'and what the hint says ends the wait');

# A standby that has flushed the ceiling, and has reported this before it was to be synchronous.  It reports
# again when it receives WAL, which nothing else writes on a server that is idle and whose clock stands.
$standby->append_conf('postgresql.conf', "wal_receiver_status_interval = '1h'");
start_server($standby);
catch_up($node, $standby);
$node->wait_for_catchup($standby, 'flush');
set_parameter($node, 'synchronous_standby_names', 'another');
check_waits_ok(qr/Missing: 1 of 1/, 'another standby is to be synchronous');
set_parameter($node, 'synchronous_standby_names', 'standby', $last);
$node->poll_query_until('postgres', "SELECT sync_state = 'sync' FROM pg_stat_replication") or die 'no synchronous standby';
# which has entered no tick
$last->query_safe("SET statement_timeout = '60s'; SET scru64.node_spec = '9/12'");
like(next_id($last), qr/^\d+$/, 'a session that waits has it report again');
$standby->stop('immediate');
set_parameter($node, 'synchronous_standby_names', '', $last);

# A statement that began before there was to be a standby: its session does not know the setting.
move_clock(60_000);
my $lock = open_session($node);
$lock->query_safe('SELECT pg_advisory_lock(1)');
start_statement($last, 'DO $$ BEGIN PERFORM pg_advisory_lock_shared(1); PERFORM scru64_check(); END $$');
waits_for($node, $last, 'advisory');
set_parameter($node, 'synchronous_standby_names', 'standby');
check_waits_ok(qr/Missing: 1 of 1/, 'a session that knows the setting');
$lock->query_safe('SELECT pg_advisory_unlock(1)');
($out, $err) = try_statement($last, 'SELECT 1');
is($out, '1', 'scru64_check() in a session that does not know it');
$lock->quit;
set_parameter($node, 'synchronous_standby_names', '');
$last->quit;
$node->stop;
done_testing();
