# The recipe of doc/coming-from.md under logical replication: while it goes on, rows are
# written and replicated; and the subscriber never stops.

use strict;
use warnings;
use FindBin;
use Scru64ComingFrom;
use Scru64Examples;
use Scru64Test;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;

my $rows = 10000;
my $page = "$FindBin::RealBin/../../doc/coming-from.md";

# Who writes stops when this is locked.
my $stop = 64;

my %servers;
foreach my $name ('publisher', 'subscriber')
{
	my $server = new_node($name, allows_streaming => 'logical');

	$server->append_conf(
		'postgresql.conf', qq(
fsync = off
client_min_messages = warning
wal_retrieve_retry_interval = 100ms
max_replication_slots = 10
));
	$server->start;
	$server->safe_psql('template1', 'CREATE EXTENSION scru64');
	$servers{$name} = $server;
}
my ($publisher, $subscriber) = @servers{qw(publisher subscriber)};
$publisher->safe_psql('postgres', "ALTER ROLE ALL SET scru64.node_spec = '42/8'");
$subscriber->safe_psql('postgres', "ALTER ROLE ALL SET scru64.node_spec = '43/8'");

# Run blocks of the page in a session, as pasted.
sub paste
{
	my ($server, $db, $what, @sql) = @_;

	return is(error_of($server, join("\n", @sql), dbname => $db), '', "$db: $what on the " . $server->name);
}

sub wait_for_subscriber
{
	my ($db) = @_;
	my ($mark, $look) = split /(?<=\\gset)\n/, recipe($page, 'wait');
	my $session = $publisher->background_psql($db);

	$session->query_safe($mark);
	ok(wait_until(sub { $session->query_safe($look) eq "$db|t" }), "$db: the subscriber has all");
	$session->quit;
	return;
}

# A session that writes until it is to stop: accounts and entries come, move and go.  Each
# transaction locks one row, so none is in a deadlock.
sub start_writer
{
	my ($db, $source) = @_;
	my $session = $publisher->background_psql($db);
	my $ms = 'to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint)';
	my ($id, $value) =
	  $source eq 'uuid7' ? (', id', ", overlay(gen_random_uuid()::text PLACING overlay(lpad($ms, 12, '0') PLACING '-' FROM 9 FOR 0) || '-7' FROM 1 FOR 15)::uuid") : ('', '');

	$session->query_until(qr/^started$/m, qq(\\echo started
DO \$\$
DECLARE
	mine text := 'meanwhile ' || pg_backend_pid();
BEGIN
	WHILE pg_try_advisory_xact_lock_shared($stop) LOOP
		INSERT INTO account (name$id) VALUES (mine$value);
		COMMIT;
		INSERT INTO entry (account_id, amount) SELECT id, 2 FROM account WHERE name = 'account 7';
		COMMIT;
		INSERT INTO entry (account_id, amount) SELECT id, 3 FROM account WHERE name = mine ORDER BY random() LIMIT 1;
		COMMIT;
		UPDATE entry SET amount = 4 WHERE id = (SELECT max(e.id) FROM entry AS e);
		COMMIT;
		UPDATE entry SET account_id = (SELECT id FROM account WHERE name = 'account 8') WHERE id = (SELECT max(e.id) - 3 FROM entry AS e) AND amount = 2;
		COMMIT;
		DELETE FROM entry WHERE id = (SELECT max(e.id) - 6 FROM entry AS e) AND amount = 4;
		COMMIT;
		PERFORM pg_sleep(0.005);
	END LOOP;
END
\$\$;
));
	return $session;
}

sub contents
{
	my ($server, $db, $table) = @_;

	return $server->safe_psql($db,
		"SELECT count(*), md5(string_agg(t::text, ' ' ORDER BY id::text COLLATE \"C\")) FROM (SELECT * FROM $table) AS t");
}

foreach my $test ([ 'bigserial', 'TABLE account, entry' ], [ 'uuid7', 'ALL TABLES' ])
{
	my ($source, $tables) = @$test;
	my $db = $source;
	my $log = -s $subscriber->logfile;

	foreach my $server ($publisher, $subscriber)
	{
		$server->safe_psql('postgres', "CREATE DATABASE $db");
		$server->safe_psql($db, setup($source, $rows));
	}
	$publisher->safe_psql($db, "CREATE PUBLICATION p FOR $tables");
	$subscriber->safe_psql($db,
		"CREATE SUBSCRIPTION $db CONNECTION '" . $publisher->connstr . " dbname=$db' PUBLICATION p WITH (copy_data = false)");

	my @writers = map { start_writer($db, $source) } 1 .. 2;
	my $accounts = sub { $publisher->safe_psql($db, 'SELECT count(*) FROM account') };
	my $wait_for_writers = sub {
		$publisher->poll_query_until($db, 'SELECT count(*) > ' . ($accounts->() + 10) . ' FROM account') or die 'nobody writes';
	};

	$wait_for_writers->();
	paste($subscriber, $db, 'the map', recipe($page, 'subscriber')) if $tables eq 'ALL TABLES';
	paste($subscriber, $db, 'step 1', step(1));
	$wait_for_writers->();
	paste($publisher, $db, 'step 1', step(1));
	$wait_for_writers->();
	paste($publisher, $db, 'steps 2 to 4', map_beside($source), map { step($_) } 2 .. 4);
	$wait_for_writers->();
	wait_for_subscriber($db);
	paste($subscriber, $db, 'steps 3 and 4', step(3), step(4));
	$wait_for_writers->();

	my $holder = $publisher->background_psql($db);
	$holder->query_safe("SELECT pg_advisory_lock($stop)");
	is($_->query('SELECT 1'), '1', "$db: a writer has written to the end") foreach @writers;
	$_->quit foreach @writers;
	$holder->quit;
	wait_for_subscriber($db);
	paste($_, $db, 'step 5', step(5)) foreach ($publisher, $subscriber);

	# Everything is right on the publisher, also what is written by these, and the same
	# on the subscriber.
	my @checks = checks('quiet', $rows);
	my @results = split /\n/, $publisher->safe_psql($db, join(";\n", map { ref $_ ? $_->[0] : () } @checks));
	while (my ($name, $check) = splice(@checks, 0, 2))
	{
		is(shift @results, $check->[1], "$db: $name");
		is($subscriber->safe_psql($db, $check->[0]), $check->[1], "$db: $name, on the subscriber")
		  if $name =~ /^(type|constraints|valid|nothing)/;
	}
	wait_for_subscriber($db);
	is(contents($subscriber, $db, $_), contents($publisher, $db, $_), "$db: $_ is the same") foreach ('account', 'entry');
	cmp_ok($publisher->safe_psql($db, q(SELECT count(*) FROM account WHERE name ~ 'meanwhile')), '>', 50, "$db: there were writers");
	unlike(slurp_file($subscriber->logfile, $log), qr/ERROR:/, "$db: the subscriber has not stopped");

	# And back, with both servers writing: no number comes twice.
	my %nodes = (publisher => '44/8', subscriber => '45/8');
	foreach my $server ($publisher, $subscriber)
	{
		$server->command_ok([ 'psql', '-Xq1', '-v', 'ON_ERROR_STOP=1', '-d', $server->connstr($db), '-f', "$FindBin::RealBin/../../plain/scru64.sql" ],
			'plain/scru64.sql');
		$server->safe_psql($db, "SELECT scru64_plain.set_node('" . $nodes{ $server->name } . "')");
	}
	wait_for_subscriber($db);
	paste($_, $db, 'back', plain_recipe('account', 'back')) foreach ($publisher, $subscriber);
	my @ids = map { split(/\n/, $_->safe_psql($db, q(INSERT INTO account (name) VALUES ('back'), ('back') RETURNING id))) } ($subscriber, $publisher);
	my %different = map { $_ => 1 } @ids;
	is(scalar(keys %different), 4, "$db: back, no number came twice") or diag("@ids");
	wait_for_subscriber($db);
	is($subscriber->safe_psql($db, q(SELECT count(*) FROM account WHERE name = 'back')), '4', "$db: back, the subscriber has the rows of both");
	$subscriber->safe_psql($db, "DROP SUBSCRIPTION $db");
}

$_->stop foreach ($subscriber, $publisher);
done_testing();
