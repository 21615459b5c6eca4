# One member of a realm must not stop the others, or fill its log: transactions that are
# left open, arguments that are long.

use FindBin;
use lib "$FindBin::RealBin/../lib";
use Scru64Fault;
use Scru64Realm;
use Scru64Test;

plan skip_all => 'no clock can be set' if !can_set_clock();

make_realm_template();
my $realm = realm_of_template('realm', clock => '+0');
# what measures how long a transaction is open moves with the clock
start_server($realm, set_monotonic => 1);
$realm->safe_psql('postgres', q(
CREATE ROLE member LOGIN;
GRANT EXECUTE ON FUNCTION scru64_realm.lease, scru64_realm.renew, scru64_realm.release, scru64_realm.split TO member;
));

my ($clock, $out, $err) = (0);

sub move_on
{
	$clock += $_[0];
	set_clock($realm, sprintf('%+d', $clock));
	return;
}

sub active
{
	return $realm->safe_psql('postgres', "SELECT coalesce(string_agg(holder, ' '), '') FROM scru64_realm.leases");
}

#
# A transaction that calls the realm has 15 seconds.
#
my $id = (split(/\|/, ask($realm, lease_sql(8, 'renewed'))))[0];
my %calls = (
	lease => "scru64_realm.lease(8, 'late')",
	renew => "scru64_realm.renew('$id', '1 hour')",
	release => "scru64_realm.release('$id')",
	split => "scru64_realm.split('$id', 9)");
foreach my $call (sort keys %calls)
{
	my $session = open_session($realm);

	$session->query_safe("BEGIN; SELECT count(*) FROM $calls{$call}");
	move_on(16);
	($out, $err) = try_statement($session, 'COMMIT');
	like($err, qr/(ERROR|FATAL):  25000: transaction was open for too long/, "$call: it does not commit after that");
	eval { $session->quit };
	is(active(), 'renewed', "$call: and it has done nothing");
}

sub let_time_pass
{
	my ($session) = @_;

	move_on(20);
	# the signal has the session look at its timers
	kill('ALRM', $session->{pid}) or die "could not signal process $session->{pid}: $!";
	return;
}

# Nor does it wait for its session to do something; not after an error that was rolled back, either,
# which has ended all timeouts, though the log did not get the error.  The client and the log are
# told why.
foreach my $begin ("BEGIN; SELECT count(*) FROM $calls{lease}",
	"BEGIN; SELECT count(*) FROM $calls{lease}; SAVEPOINT s; SELECT 1/0; ROLLBACK TO s",
	"SET log_min_messages = fatal; BEGIN; SELECT count(*) FROM $calls{lease}; SAVEPOINT s; SELECT 1/0; ROLLBACK TO s",
	"BEGIN; SELECT count(*) FROM $calls{lease}; SAVEPOINT s; SELECT 1/0; SELECT 'the second error'",
	"BEGIN; SELECT count(*) FROM $calls{lease}; SAVEPOINT s; SELECT 1/0; SELECT 'the second error'; ROLLBACK TO s",
	"BEGIN; SAVEPOINT s; SELECT count(*) FROM $calls{lease}; RELEASE s; SAVEPOINT s; ROLLBACK TO s",
	"BEGIN; SELECT scru64_realm.set_max_ttl('2 h')",
	# the locks are the cursor's
	"BEGIN; DECLARE k CURSOR FOR SELECT count(*) FROM $calls{lease}; SAVEPOINT s; FETCH k; ROLLBACK TO s",
	"BEGIN; DECLARE k CURSOR FOR SELECT count(*) FROM $calls{renew}; SAVEPOINT s; SELECT count(*) FROM $calls{lease}; FETCH k; ROLLBACK TO s")
{
	my $session = open_session($realm);
	my $log = -s $realm->logfile;

	try_statement($session, $begin);
	let_time_pass($session);
	ok( $realm->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $session->{pid}"),
		"its session is terminated: $begin");
	eval { try_statement($session, 'SELECT 1') };
	like($session->{stderr}, qr/FATAL:  25000: transaction was open for too long after it called a function of a realm\nDETAIL:  It is at most 15 seconds\. Nothing was changed in the realm\.\nHINT:  /,
		'... and the client is told why');
	like(slurp_file($realm->logfile, $log), qr/FATAL:  transaction was open for too long.*\n.*DETAIL:  /, '... and the log');
	eval { $session->quit };
	unlike(active(), qr/late/, '... and it has leased nothing');
}

# Nor does it wait for a client that does not read an error.
{
	my ($holder, $session) = (open_session($realm), open_session($realm));
	my $psql = $session->{run}{KIDS}[0]{PID};
	my $log = -s $realm->logfile;

	$holder->query_safe('SELECT pg_advisory_lock(1)');
	start_statement($session, "BEGIN; SELECT count(*) FROM $calls{lease}; DO 'BEGIN PERFORM pg_advisory_lock(1); RAISE EXCEPTION ''%'', repeat(''x'', 5000000); END'");
	waits_for($realm, $session, 'advisory') or die 'the session does not wait';
	kill('STOP', $psql);
	$holder->quit;
	waits_for($realm, $session, 'ClientWrite') or die 'the client reads';
	ok(wait_until(sub {
		move_on(20);
		kill('ALRM', $session->{pid});
		return $realm->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE pid = $session->{pid}") eq '0';
	}), 'who does not read an error is terminated');
	like(slurp_file($realm->logfile, $log), qr/FATAL:  transaction was open for too long.*\n.*DETAIL:  /, '... and the log is told why');
	kill('CONT', $psql);
	eval { $session->quit };
	unlike(active(), qr/late/, '... and has leased nothing');
}

# A savepoint from before the call takes the limit back.
my $session = open_session($realm);
$session->query_safe("BEGIN; SAVEPOINT s; SELECT count(*) FROM $calls{lease}; ROLLBACK TO s");
let_time_pass($session);
is($session->query_safe('SELECT 1'), '1', 'who has rolled the call back may take time');
$session->query_safe('COMMIT');
$session->quit;

# A commit has what is left of the 15 seconds for all that comes before its record.  Here that
# is a NOTIFY, which waits for another one's commit, and that for a standby which is missing.
set_parameter($realm, 'synchronous_standby_names', 'missing');
# the checkpointer tells the others of it
$realm->safe_psql('postgres', 'CHECKPOINT');
my ($notifier, $late, $in_time) = map { open_session($realm) } (1 .. 3);
$notifier->query_safe('BEGIN; CREATE TABLE what_is_written (); NOTIFY x');
start_statement($notifier, 'COMMIT');
waits_for($realm, $notifier, 'SyncRep') or die 'no commit waits for a standby';
$late->query_safe("BEGIN; SELECT count(*) FROM $calls{lease}; NOTIFY x");
start_statement($late, 'COMMIT');
waits_for($realm, $late, 'object') or die 'no commit waits for another one';
let_time_pass($late);
$realm->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $late->{pid}")
  or fail('who waits in its commit is not terminated');

# After that it takes its time.
start_statement($in_time, "SELECT count(*) FROM scru64_realm.lease(8, 'in time')");
waits_for($realm, $in_time, 'SyncRep') or die 'no commit waits for a standby';
let_time_pass($in_time);
set_parameter($realm, 'synchronous_standby_names', '');
($out, $err) = ('', '');
eval { ($out, $err) = try_statement($in_time, 'SELECT 2') };
is("$out$err", "1\n2", 'who has committed is left to wait for a standby, and gets its answer');
is( $realm->safe_psql('postgres', "SELECT string_agg(holder, ' ' ORDER BY change) FROM scru64_realm.ledger"),
	'renewed in time', 'who was terminated has leased nothing');
$_->quit foreach ($notifier, $in_time);
eval { $late->quit };

# Who commits in time and goes on is left alone.
$session = open_session($realm);
$session->query_safe("SELECT count(*) FROM $calls{lease}");
$session->query_safe('BEGIN');
move_on(60);
is($session->query_safe('SELECT 1'), '1', 'other transactions take their time');
$session->query_safe('COMMIT');

#
# Arguments of 20 MB
#
my $log = -s $realm->logfile;
foreach my $long (
	"lease(8, repeat('x', 20000000))",
	"lease(8, 'x', within => repeat('1', 20000000))",
	"lease(8, 'x', within => repeat('1', 20000000) || '/8')",
	"revoke(repeat('x', 20000000))")
{
	($out, $err) = try_statement($session, "SELECT scru64_realm.$long");
	cmp_ok(length($err), '<', 2000, 'short error for ' . substr($long, 0, 40));
	like($err, qr/ERROR:  22023: /, 'which is one') if $long !~ /revoke/;
}
cmp_ok((-s $realm->logfile) - $log, '<', 10000, 'and little in the log');

$session->quit;
$realm->stop;
done_testing();
