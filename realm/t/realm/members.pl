# One member of a realm must not stop the others, or fill its log: statements that go on,
# arguments that are long.

use strict;
use warnings;
use Scru64Clock;
use Scru64Realm;
use Scru64Server;
use Scru64Test;

plan skip_all => 'no clock can be set' if !can_set_clock();

make_realm_template();
my $realm = realm_of_template('realm', clock => '+0');
# what measures how long a transaction is open moves with the clock
start_server($realm, set_monotonic => 1);
$realm->safe_psql('postgres', q(
CREATE ROLE member LOGIN;
GRANT EXECUTE ON FUNCTION scru64_realm.lease, scru64_realm.renew, scru64_realm.release, scru64_realm.split TO member;
UPDATE scru64_realm.settings SET first_ttl = '1 hour';
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

# Let time pass for a session
sub outlast
{
	my ($session, $seconds) = @_;

	move_on($seconds);
	# the signal has the session look at its timers
	kill('ALRM', $session->{pid});
	return;
}

#
# A statement that calls the realm has 15 seconds.
#
my $id = (split(/\|/, ask($realm, lease_statement(8, 'renewed'))))[0];
my %calls = (
	lease => "scru64_realm.lease(8, 'late')",
	renew => "scru64_realm.renew('$id', '1 hour')",
	release => "scru64_realm.release('$id')",
	split => "scru64_realm.split('$id', 9)");
my ($holder, $session) = (open_session($realm), open_session($realm));

# It does not commit later, though it catches what cancels it.
foreach my $call (sort keys %calls)
{
	(my $quoted = $calls{$call}) =~ s/'/''/g;
	start_statement($session, "DO 'BEGIN PERFORM $quoted; BEGIN PERFORM pg_sleep(3600); EXCEPTION WHEN query_canceled THEN NULL; END; END'");
	waits_for($realm, $session, 'PgSleep') or die 'the session does not wait';
	outlast($session, 16);
	($out, $err) = try_statement($session, 'SELECT 1');
	like($err, qr/ERROR:  25000: statement took too long after it called a function of a realm/, "$call: it does not commit after that");
	is(active(), 'renewed', "$call: and it has done nothing");
}

# Where it goes on, it is canceled,
$holder->query_safe('SELECT pg_advisory_lock(1)');
start_statement($session, "SELECT count(*), pg_advisory_lock(1) FROM $calls{lease}");
waits_for($realm, $session, 'advisory') or die 'the session does not wait';
outlast($session, 16);
($out, $err) = try_statement($session, 'SELECT 1');
like($err, qr/ERROR:  57014: canceling statement/, 'a statement that goes on is canceled');
is($out, '1', 'and its session goes on');

# and where that does not help, its session is terminated.
$realm->safe_psql('postgres', q(
CREATE TABLE of_members (line text);
CREATE FUNCTION lease() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM scru64_realm.lease(8, ''late''); RETURN NULL; END';
CREATE TRIGGER lease BEFORE INSERT ON of_members EXECUTE FUNCTION lease();
));
my %going_on = (
	'catches the error' => [ 'PgSleep', "DO 'BEGIN PERFORM scru64_realm.lease(8, ''late''); LOOP BEGIN PERFORM pg_sleep(3600); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END'" ],
	'waits for data' => [ 'ClientRead', 'COPY of_members FROM STDIN' ],
	'waits for a client that does not read' => [ 'ClientWrite', "SELECT (SELECT 1 FROM pg_advisory_lock(1)), repeat('x', 1000000) FROM $calls{lease}, generate_series(1, 100)" ]);
foreach my $how (sort keys %going_on)
{
	my ($event, $statement) = @{ $going_on{$how} };
	my $endless = open_session($realm);
	my $psql = $endless->{run}{KIDS}[0]{PID};
	my $log = -s $realm->logfile;

	start_statement($endless, $statement);
	if ($event eq 'ClientWrite')
	{
		waits_for($realm, $endless, 'advisory') or die 'the session does not wait';
		kill('STOP', $psql);
		$holder->query_safe('SELECT pg_advisory_unlock(1)');
	}
	waits_for($realm, $endless, $event) or die "there is no $event";
	outlast($endless, 16);
	ok(wait_until(sub {
		outlast($endless, 1);
		return $realm->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE pid = $endless->{pid}") eq '0';
	}), "a session whose statement $how is terminated");
	like(slurp_file($realm->logfile, $log), qr/FATAL:  (?:57P01: )?terminating connection due to administrator command/, '... by 57P01');
	kill('CONT', $psql);
	eval { $endless->quit };
	is(active(), 'renewed', '... and has leased nothing');
}

# The owner's functions have 15 seconds from the end of their wait for calls, or no limit.
foreach my $call ("set_guard('40 s')", "set_max_ttl('2 hours')")
{
	wait_until(sub {
		my $began = time();

		$holder->query_safe('BEGIN; LOCK TABLE scru64_realm_internal.allocator IN ACCESS SHARE MODE');
		start_statement($session, "SELECT scru64_realm.$call");
		waits_for($realm, $session, 'relation') or die 'the session does not wait';
		outlast($session, 18);
		$holder->query_safe('COMMIT');
		($out, $err) = try_statement($session, 'SELECT 1');
		# a slow machine takes the 2 seconds that are left of its lock_timeout
		return $err eq '' || time() - $began < 2;
	});
	is($err, '', "$call waits for calls for 18 seconds");
}

# A statement's 15 seconds are also for all that comes before the record of its commit.  Here this
# is a NOTIFY, or the commit of another server.  Both wait for a standby which is missing.
my $late = open_session($realm);
my %waiting = (object => "SELECT count(*), pg_notify('x', '') FROM $calls{lease}");
if ($realm->safe_psql('postgres', q(SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw')))
{
	$realm->safe_psql('postgres', sprintf(q(
CREATE EXTENSION postgres_fdw;
CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%s', dbname 'postgres');
CREATE USER MAPPING FOR CURRENT_USER SERVER other;
CREATE TABLE of_other (line text);
CREATE FOREIGN TABLE to_other (line text) SERVER other OPTIONS (table_name 'of_other');
), $realm->host, $realm->port));
	# from here on, its callback comes after the realm's, which is registered later
	$late->query_safe('TABLE to_other');
	$waiting{ $realm->pg_version >= 17 ? 'PostgresFdwGetResult' : 'Extension' } = "INSERT INTO to_other SELECT lease_id FROM $calls{lease}";
}
$late->query_safe("SELECT FROM scru64_realm.lease(8, 'first')");
set_parameter($realm, 'synchronous_standby_names', 'missing');
# the checkpointer tells the others of it
$realm->safe_psql('postgres', 'CHECKPOINT');
$holder->query_safe('BEGIN; CREATE TABLE what_is_written (); NOTIFY x');
start_statement($holder, 'COMMIT');
waits_for($realm, $holder, 'SyncRep') or die 'no commit waits for a standby';
foreach my $event (sort keys %waiting)
{
	start_statement($late, $waiting{$event});
	waits_for($realm, $late, $event) or die "there is no $event";
	outlast($late, 16);
	($out, $err) = try_statement($late, 'SELECT 1');
	like($err, qr/ERROR:  57014: canceling statement/, "who waits in its commit is refused: $event");
}

# After that it takes its time.
start_statement($session, "SELECT count(*) FROM scru64_realm.lease(8, 'in time')");
waits_for($realm, $session, 'SyncRep') or die 'no commit waits for a standby';
outlast($session, 20) for (1 .. 5);
set_parameter($realm, 'synchronous_standby_names', '');
is(join('', try_statement($session, 'SELECT 2')), "1\n2", 'who has committed is left to wait for a standby, and gets its answer');
is($realm->safe_psql('postgres', "SELECT string_agg(holder, ' ' ORDER BY change) FROM scru64_realm.ledger"),
	'renewed first in time', 'who was refused has leased nothing');
$_->quit foreach ($holder, $late);

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

#
# The clock is set back between the call and the commit, which then waits.  What measures how long a transaction
# is open goes on, on a server that is started anew.
#
$realm->stop;
start_server($realm);
($holder, $session, $late) = map { open_session($realm) } 1 .. 3;
set_parameter($realm, 'synchronous_standby_names', 'missing');
$realm->safe_psql('postgres', 'CHECKPOINT');
$session->query_safe('BEGIN; CREATE TABLE what_is_written_then (); NOTIFY x');
start_statement($session, 'COMMIT');
waits_for($realm, $session, 'SyncRep') or die 'no commit waits for a standby';
$holder->query_safe('SELECT pg_advisory_lock(1)');
start_statement($late, "SELECT count(*), pg_notify('x', ''), pg_advisory_lock_shared(1) FROM $calls{lease}");
waits_for($realm, $late, 'advisory') or die 'the session does not wait';
move_on(-3600);
$holder->query_safe('SELECT pg_advisory_unlock(1)');
waits_for($realm, $late, 'object') or die 'its commit does not wait';
outlast($late, 16);
($out, $err) = try_statement($late, 'SELECT 1');
like($err, qr/ERROR:  57014: canceling statement/, 'a clock that is set back gives a commit no more time');
set_parameter($realm, 'synchronous_standby_names', '');
$_->quit foreach ($holder, $session, $late);
$realm->stop;
done_testing();
