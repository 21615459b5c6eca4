# plain/scru64.sql, IDs without an extension: sessions insert rows while statements are
# cancelled, sessions and servers killed and stopped, a standby promoted, and the clock goes
# back.  No ID of a row comes twice, IDs of a client are in order, and no lock is left behind.
#
# SCRU64_PLAIN_ROUNDS is how many faults there are.

use strict;
use warnings;
use FindBin;
use Scru64Clock;
use Scru64Examples;
use Scru64Loads;
use Scru64Random;
use Scru64Server;
use Scru64Test;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;

my $rounds = $ENV{SCRU64_PLAIN_ROUNDS} || 20;
my $file = "$FindBin::RealBin/../../plain/scru64.sql";
seed_random();

# A primary and a synchronous standby, of which the second stands in for the first in turn
my $primary = new_node('first', allows_streaming => 1);
$primary->append_conf('postgresql.conf', "restart_after_crash = on\nmax_prepared_transactions = 5");
start_server($primary);
$primary->safe_psql('postgres', 'CREATE ROLE owner LOGIN; CREATE DATABASE plain OWNER owner');

sub owner
{
	my ($sql) = @_;

	return $primary->safe_psql('plain', $sql, extra_params => [ '-U', 'owner' ]);
}

sub install
{
	my ($database) = @_;

	$primary->command_ok([ 'psql', '-Xq', '-1', '-v', 'ON_ERROR_STOP=1', '-d', $primary->connstr($database), '-U', 'owner', '-f', $file ],
		"installed in $database");
	return;
}

install('plain');

# Who made the schema before could have its users' functions do anything.
$primary->safe_psql('postgres', q(
CREATE ROLE other LOGIN;
CREATE DATABASE taken OWNER other;
\\c taken other
CREATE SCHEMA scru64_plain;
CREATE FUNCTION scru64_plain.node() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 1';
));
$primary->command_fails_like([ 'psql', '-Xq', '-1', '-v', 'ON_ERROR_STOP=1', '-d', $primary->connstr('taken'), '-f', $file ],
	qr/ERROR:  schema scru64_plain is not yours/, 'not in a schema of somebody else');
owner(q(
SELECT scru64_plain.set_node('42/8');
CREATE TABLE ids (id bigint DEFAULT scru64_plain.generate() PRIMARY KEY, n integer);
));
$primary->backup('for_standby');
$primary->append_conf('postgresql.conf', "synchronous_standby_names = '*'");

my $standbys = 0;

sub new_standby
{
	my $standby = PostgreSQL::Test::Cluster->new('standby_' . ++$standbys);

	$standby->init_from_backup($primary, 'for_standby', has_streaming => 1);
	start_server($standby);
	return $standby;
}

my $standby = new_standby();
$primary->reload;

# Rows, with little time and with enough.  A wait for the standby that is cut short counts as a
# commit, which a promotion loses.
sub statements
{
	my (@timeouts) = @_;

	return "\\c plain owner\n"
		  . join('', map { "SET statement_timeout = $_;\n" . "INSERT INTO ids SELECT scru64_plain.generate(), n FROM generate_series(1, 5) AS n RETURNING scru64_plain.text(id);\n" x 20 . "\\! exec sleep 0.1\n" } @timeouts) x 2000;
}

my %received;

sub end_round
{
	my ($name, @load) = @_;
	my $errors;

	end_clients(@load);
	$errors = join('', grep { !/canceling statement due to (statement timeout|user request)|canceling wait for synchronous replication|the clock is too far behind|^(DETAIL|HINT|CONTEXT|PL\/pgSQL|LINE|\s)|^psql:\S+ (DETAIL|HINT|CONTEXT)|invalid connection|connection failure|connection to server/ }
		  map { "$_\n" } split(/\n/, record_load(\%received, @load)));
	is($errors, '', "$name: no other error");
	is(record_problems(\%received), '', "$name: no ID twice, none out of order");
	return;
}

sub locks_left
{
	return $primary->poll_query_until('plain', "SELECT count(*) = 0 FROM pg_locks WHERE locktype = 'advisory'");
}

sub one_client
{
	my ($do) = @_;
	my $pid = $primary->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE application_name = 'load' ORDER BY random() LIMIT 1");

	$do->($pid) if $pid ne '';
	return;
}

sub promote
{
	my (@load) = @_;

	$primary->stop('immediate');
	finish_clients(@load);
	$standby->promote;
	$primary = $standby;
	$primary->safe_psql('postgres', q(ALTER SYSTEM SET synchronous_standby_names = ''; SELECT pg_reload_conf()));
	$primary->poll_query_until('postgres', "SELECT current_setting('synchronous_standby_names') = ''") or die;
	$primary->backup('for_standby');
	$standby = new_standby();
	$primary->safe_psql('postgres', 'ALTER SYSTEM RESET synchronous_standby_names');
	$primary->append_conf('postgresql.conf', "synchronous_standby_names = '*'");
	$primary->reload;
	return;
}

my %faults = (
	'cancels' => sub {
		$primary->safe_psql('postgres', q(
DO $$
BEGIN
	FOR i IN 1 .. 50 LOOP
		PERFORM pg_cancel_backend(pid)
		FROM (SELECT pid FROM pg_stat_activity WHERE application_name = 'load' AND state = 'active' ORDER BY random() LIMIT 1) a;
		PERFORM pg_stat_clear_snapshot(), pg_sleep(0.02);
	END LOOP;
END
$$));
	},
	'a session terminated' => sub {
		one_client(sub { $primary->safe_psql('postgres', "SELECT pg_terminate_backend($_[0])") });
	},
	'kill -9 of a backend' => sub {
		one_client(sub { crash($primary, $_[0]) });
		finish_clients(@_);
	},
	'stopped sessions' => sub {
		my @pids = split(/\n/, $primary->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE application_name = 'load'"));

		for (1 .. 20)
		{
			my $pid = one_of(@pids);

			kill('STOP', $pid);
			sleep(0.1);
			kill('CONT', $pid);
			sleep(0.05);
		}
	},
	'kill -9 of the server' => sub { kill_server($primary); finish_clients(@_); start_server($primary); },
	'restart' => sub { $primary->stop('fast'); finish_clients(@_); start_server($primary); },
	'promotion' => \&promote);

sub run_round
{
	my ($name, $fault, @timeouts) = @_;
	my @load = start_load($primary, { '42/8' => 4 }, sql => statements(@timeouts));

	sleep(rand(0.5));
	$fault->(@load);
	end_round($name, @load);
	ok(locks_left(), "$name: no lock is left");
	return;
}

my @names = sort keys %faults;
foreach my $round (1 .. $rounds)
{
	my $fault = $round <= @names ? $names[ $round - 1 ] : one_of(@names);

	run_round("$round, $fault", $faults{$fault}, $fault eq 'promotion' ? 0 : (0, 3, 1, 8));
}

# Sessions are slow between what they read of the sequence and what they set it to.
my $slow_sql = slurp_file($file);
is($slow_sql =~ s/(setval\('scru64_plain.last', first\))/CASE WHEN pg_sleep(0.01) IS NOT NULL THEN $1 END/, 1, 'slow moves');
owner("SET client_min_messages = warning; $slow_sql");
run_round('slow moves', sub { sleep(3) }, 0, 15, 25);
install('plain');

# The clock goes back.
SKIP:
{
	skip 'no clock can be set', 9 if !can_set_clock();

	set_clock($primary, '+0');
	$primary->stop;
	start_server($primary);
	foreach my $seconds (5, 15, 3600)
	{
		run_round("clock $seconds s back", sub { set_clock($primary, -$seconds); sleep(1.5); set_clock($primary, '+0'); }, 0);
	}
}
note(log_counts(\%received));
cmp_ok(number_of_ids(\%received, '42/8'), '>', 50 * $rounds, 'IDs were received');
cmp_ok(owner('SELECT count(*) FROM ids'), '>=', number_of_ids(\%received, '42/8'), 'each is in a row');

# Nodes that overlap, while sessions go on: set_node() waits for those that have drawn.  Of
# what is rolled back, clients have seen the IDs.
sub set_node_sql
{
	my ($spec) = @_;

	return "DO 'BEGIN PERFORM scru64_plain.set_node(''$spec''); END';\n"
	  . "SELECT scru64_plain.text(scru64_plain.generate());\n" x 6;
}

my $set_and_rolled_back =
	"SAVEPOINT s;\n" . set_node_sql('43/22') . "ROLLBACK TO s;\n" . "SELECT scru64_plain.text(scru64_plain.generate());\n" x 6;
owner("SELECT scru64_plain.set_node('21/21')");
my @load = start_load($primary, { 'any' => 3 }, sql => statements(0));
my ($setter) = start_load($primary, { 'any' => 1 }, sql =>
	"\\c plain owner\n"
	  . join('', map { "BEGIN;\n" . set_node_sql($_) . $set_and_rolled_back . "ROLLBACK;\nBEGIN;\n" . set_node_sql($_) . "COMMIT;\n" } ('43/22', '21/21') x 2));
finish_clients($setter);
end_clients(@load);
is(slurp_file("$setter->{base}.err"), '', 'nodes set under load: no error');
record_load(\%received, @load, $setter);
is(record_problems(\%received), '', 'nodes set under load, and rolled back: no ID twice, none out of order');
is(owner('SELECT scru64_plain.node_spec()'), '21/21', 'the node that was set last');

# The server is killed before the node that has had IDs is committed.  The IDs are in the WAL.
@load = start_load($primary, { 'any' => 1 }, sql => "\\c plain owner\nBEGIN;\n" . set_node_sql('43/22') . "SELECT pg_sleep(3600);\n");
$primary->poll_query_until('postgres', q(SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep')) or die;
owner("COMMENT ON TABLE ids IS 'a commit, which flushes the WAL'");
kill_server($primary);
finish_clients(@load);
start_server($primary);
record_load(\%received, @load);
record_ids(\%received, 'any', [ split(/\n/, owner('SELECT scru64_plain.text(scru64_plain.generate()) FROM generate_series(1, 12)')) ]);
is(record_problems(\%received), '', 'killed before the commit: no ID twice, none out of order');
is(owner('SELECT scru64_plain.node_spec()'), '21/21', 'killed before the commit: the node that was set before');

# An ID ahead of the clock, of a transaction that had nothing to write, because another one, which
# is still open, has drawn before: after a crash it comes again, unless a row with it was committed.
SKIP:
{
	skip 'no clock can be set', 2 if !can_set_clock();

	my $missed = 0;

	# The server may write the WAL meanwhile, and then the ID does not come again.
	my $comes_again = sub {
		my ($and_then) = @_;
		my $drawing = $primary->background_psql('plain');

		# who has to wait for a clock that stands still waits for ever
		set_clock($primary, '+0');
		$primary->poll_query_until('plain', 'SELECT scru64_plain.timestamp(last_value) < clock_timestamp() FROM scru64_plain.last') or die 'IDs stay ahead of the clock';
		# to an ID of a tick that has more
		stop_clock($primary, time());
		$drawing->query_safe(q(
BEGIN;
DO $$
DECLARE
	id bigint;
BEGIN
	LOOP
		id := scru64_plain.generate();
		EXIT WHEN id & 7 = 3 AND scru64_plain.timestamp(id) > clock_timestamp();
	END LOOP;
END
$$));
		my $id = owner('SELECT scru64_plain.generate()');
		owner($and_then->($id)) if defined $and_then;
		kill_server($primary);
		eval { $drawing->quit };
		start_server($primary);
		return owner("SELECT count(*) FROM generate_series(1, 24) WHERE scru64_plain.generate() = $id");
	};
	$missed++ until ($missed == 10 || $comes_again->());
	cmp_ok($missed, '<', 10, 'killed after a SELECT: its ID comes again');
	is($comes_again->(sub { "INSERT INTO ids VALUES ($_[0], -2)" }), 0, 'killed after a row was committed: its ID does not');
	set_clock($primary, '+0');
}

# One that has drawn, and does nothing else: set_node() as the page has it gives up, and lets
# others go on.
my ($set_node) = grep { $_->{text} =~ /set_node/ } blocks_of("$FindBin::RealBin/../../doc/plain.md");
my $idle = $primary->background_psql('plain');
$idle->query_safe('BEGIN; SELECT scru64_plain.generate()');
like(error_of($primary, $set_node->{text}, dbname => 'plain', extra_params => [ '-U', 'owner' ]),
	qr/canceling statement due to lock timeout/, 'an idle transaction that has drawn: set_node() gives up');
$idle->query_safe('COMMIT');
$idle->quit;
owner($set_node->{text});
is(owner('SELECT scru64_plain.node_spec()'), '42/8', 'set as the page has it');

#
# What others do with the sequence and the schema
#

# Who changes the sequence makes others wait, who can be cancelled; then they go on.
my $other = $primary->background_psql('plain', on_error_stop => 0);
$other->query_safe('SET client_min_messages = warning; BEGIN; ALTER SEQUENCE scru64_plain.last CACHE 1; DROP SCHEMA scru64_plain CASCADE');
like(error_of($primary, "SET statement_timeout = '0.2s'; SELECT scru64_plain.generate()", dbname => 'plain', extra_params => [ '-U', 'owner' ]),
	qr/canceling statement due to statement timeout/, 'ALTER SEQUENCE, DROP SCHEMA: a wait that a cancel ends');
$other->query_safe('ROLLBACK');
my $last = owner('SELECT scru64_plain.generate()');
cmp_ok($last, '>', owner('SELECT max(id) FROM ids'), 'rolled back: in order');

# A prepared transaction with IDs does not stop others, and neither does a restart.
owner(q(BEGIN; INSERT INTO ids (n) VALUES (-1); PREPARE TRANSACTION 'prepared'));
cmp_ok(owner('SELECT scru64_plain.generate()'), '>', $last, 'beside a prepared transaction: in order');
$primary->restart;
$standby->stop;
$primary->append_conf('postgresql.conf', "synchronous_standby_names = ''");
$primary->reload;
$last = owner(q(COMMIT PREPARED 'prepared'; SELECT max(id) FROM ids));
cmp_ok(owner('SELECT scru64_plain.generate()'), '>', $last, 'after it: in order');
is(owner(q(SELECT count(*) FROM ids WHERE n = -1)), 1, 'its row is there');

# What cannot write makes no ID, in an exception block neither, and leaves no lock.
my $try = q(
DO $$
BEGIN
	PERFORM scru64_plain.generate();
EXCEPTION WHEN read_only_sql_transaction THEN
	RAISE NOTICE 'refused';
END
$$;
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory';
);
my ($status, $out, $err) = $primary->psql('plain', "BEGIN READ ONLY; $try");
is("$out $err" =~ /^0 .*refused/s, 1, 'read only: refused, and no lock is left');
start_server($standby);
$standby->poll_query_until('plain', 'SELECT true') or die;
($status, $out, $err) = $standby->psql('plain', $try);
is("$out $err" =~ /^0 .*refused/s, 1, 'a standby: refused, and no lock is left');

# A dump has the sequence, so a restored database goes on after its rows.
SKIP:
{
	skip 'there is no pg_dump', 2 if !has_program('pg_dump') || !has_program('pg_restore');

	my $dump = $primary->basedir . '/dump';
	$primary->safe_psql('postgres', 'CREATE DATABASE restored OWNER owner');
	$primary->command_ok([ 'pg_dump', '-Fc', '-d', $primary->connstr('plain'), '-f', $dump ], 'dumped');
	$primary->command_ok([ 'pg_restore', '-d', $primary->connstr('restored'), $dump ], 'restored');
	is( $primary->safe_psql('restored', 'SELECT scru64_plain.generate() > max(id), scru64_plain.generate() >> 16 & 255 FROM ids'),
		't|42', 'a dump that was restored: the node, and in order');
}

done_testing();
