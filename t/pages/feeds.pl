# The recipes of doc/feeds.md: consumers made of its blocks as they stand miss no row and
# handle none twice, while others write, wait, roll back and change their nodes, and when
# consumer and server are killed.  The same for a broker, for partitions, for a standby, for a subscriber
# and for a fleet.

use strict;
use warnings;
use FindBin;
use Scru64Examples;
use Scru64Loads;
use Scru64Server;
use Scru64Test;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;

my $python = '/usr/bin/python3';
my $has_psycopg = system("$python -c 'import psycopg' 2>/dev/null") == 0;

# How many rows are enough before something is done to those who write and read them
my $enough = 300;

my $first_place = '000000000000';

#
# The page
#
my $page = "$FindBin::RealBin/../../doc/feeds.md";
my @blocks = blocks_of($page);

# What stands in a section for a server, or in a language; without the examples that
# print something, which t/pages/examples.pl runs.
sub blocks_in
{
	my ($section, %want) = @_;
	my $language = $want{language} || 'sql';
	my $mark = $want{at} ? "at $want{at}" : $language eq 'sh' ? 'run' : '';
	my @found = grep {
			 $_->{language} eq $language
		  && $_->{mark} eq $mark
		  && $_->{section} eq $section
		  && ($language ne 'sql' || $_->{text} !~ /-->/)
	} @blocks;

	die "there is nothing in \"$section\"" if !@found;
	$_->{is_run} = 1 foreach (@found);
	return join("\n", map { $_->{text} } @found);
}

# A statement that is prepared in an example: with the place as $1
sub prepared_in
{
	my ($section, $name, $at) = @_;
	my $mark = $at ? "at $at" : '';
	my ($block) = grep { $_->{section} eq $section && $_->{mark} eq $mark && $_->{text} =~ /^PREPARE $name /m } @blocks
	  or die "there is no $name in \"$section\"";

	my ($statement) = $block->{text} =~ /^(PREPARE $name .*?;)/ms;
	$block->{is_run} = 1;
	return $statement;
}

# Run SQL as it stands.
sub run_sql
{
	my ($server, $sql) = @_;
	my ($rc, $out, $err) = $server->psql('postgres', $sql);

	return is($rc, 0, $server->name . ': ' . substr($sql =~ s/\s+/ /gr, 0, 50)) || diag($err);
}

#
# Programs, which are started again when they end
#
sub start_program
{
	my ($server, $name, $input, @command) = @_;
	my $file = PostgreSQL::Test::Utils::tempdir() . "/$name.in";

	append_to_file($file, $input);
	return start_client($server, $file, name => $name, again => 1, kill => 1, command => \@command);
}

sub psql_program
{
	my ($server, $name, $input) = @_;

	return start_program($server, $name, $input, qw(psql -XAtq -v ON_ERROR_STOP=1));
}

# The program of examples/ that the page names, with the call of run() at its end, or what
# stands in its place.
sub python_program
{
	my ($server, $name, $end) = @_;
	my $file = PostgreSQL::Test::Utils::tempdir() . "/$name.py";
	my $program = slurp_file("$FindBin::RealBin/../../examples/consumer.py");

	$program =~ s/^if __name__ .*//ms if $end;
	append_to_file($file, $program . ($end // ''));
	return start_program($server, $name, '', $python, $file);
}

#
# Writers
#
# Between an ID and its commit there is some time; a third is rolled back, or partly;
# transactions have IDs of several nodes.
#
my $write_rows = q(
CREATE PROCEDURE write_rows(statement text) LANGUAGE plpgsql AS $$
BEGIN
	LOOP
		IF random() < 0.3 THEN
			PERFORM set_config('scru64.node_spec', (random() * 5)::integer + current_setting('test.first_node')::integer || '/8', true);
		END IF;
		EXECUTE statement;
		PERFORM pg_sleep(random() * random() * random() * 0.1);
		BEGIN
			EXECUTE statement;
			IF random() < 0.2 THEN
				RAISE EXCEPTION 'not that one';
			END IF;
		EXCEPTION WHEN raise_exception THEN
			NULL;
		END;
		IF random() < 0.2 THEN
			ROLLBACK;
		ELSE
			COMMIT;
		END IF;
	END LOOP;
END
$$;
);

sub start_writers
{
	my ($server, $number, $statement) = @_;

	return map { psql_program($server, 'writer_' . $server->name . "_$_", "CALL write_rows(\$\$$statement\$\$);\n") } 1 .. $number;
}

#
# Readers: a statement of the page in a session, the place, and what has been read
#
sub start_reader
{
	my ($server, $name, $prepare) = @_;
	my $session = open_session($server);

	$session->query_safe($prepare);
	return { session => $session, name => $name, place => $first_place, read => [] };
}

# What has come; with what has come before, it has to be in order.
sub read_on
{
	my ($reader) = @_;
	my @ids = map { /^(\w{12})/ } split(/\n/, $reader->{session}->query_safe("EXECUTE $reader->{name}('$reader->{place}')"));

	push @{ $reader->{read} }, @ids;
	$reader->{place} = $ids[-1] if @ids;
	return scalar(@ids);
}

# Missed, and read twice or out of order
sub compare
{
	my ($what, $expected, $read) = @_;
	my %read = map { $_ => 1 } @{$read};
	my %expected = map { $_ => 1 } @{$expected};
	my @missed = grep { !$read{$_} } @{$expected};
	my @twice = grep { $read->[ $_ - 1 ] ge $read->[$_] } 1 .. $#{$read};

	cmp_ok(scalar(@{$expected}), '>=', $enough, "$what: there are rows");
	is(scalar(@missed), 0, "$what: none of " . @{$expected} . ' is missed');
	is(scalar(@twice), 0, "$what: none twice, and all in order");
	is(scalar(grep { !$expected{$_} } @{$read}), 0, "$what: and no other");
	return;
}

sub ids_in
{
	my ($server, $table) = @_;

	return split(/\n/, $server->safe_psql('postgres', "SELECT id FROM $table ORDER BY id"));
}

#
# A server, set up as the page says
#
sub new_server
{
	my ($name, $first_node) = @_;
	my $server = new_node($name, allows_streaming => 'logical');

	$server->append_conf(
		'postgresql.conf', qq(
test.first_node = $first_node
wal_retrieve_retry_interval = 100ms
max_prepared_transactions = 5
));
	$server->start;
	return $server;
}

my $server = new_server('server1', 50);
run_sql($server, blocks_in('Feeds: read new rows, and miss none'));
run_sql($server, blocks_in('In the same database'));
run_sql($server, blocks_in('Wake-up'));
run_sql($server, blocks_in('Several consumers'));
run_sql($server, blocks_in('To a broker'));
run_sql($server, blocks_in('On a standby'));
# Twice has to be seen, not refused.
$server->safe_psql('postgres', "ALTER TABLE mail DROP CONSTRAINT mail_pkey; $write_rows");
# Whoever moves a place can be stopped there, after the rows were handled.
$server->safe_psql('postgres', q(
CREATE FUNCTION stop_here() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_advisory_xact_lock_shared(24);
	RETURN NEW;
END
$$;
CREATE TRIGGER stop_here BEFORE UPDATE ON consumer FOR EACH ROW EXECUTE FUNCTION stop_here();
));

#
# Consumers with their place in the same database
#
my $write_outbox = 'INSERT INTO outbox (what) VALUES (md5(random()::text))';

sub wait_for_more
{
	my ($what) = @_;
	my $before = $server->safe_psql('postgres', 'SELECT count(*) FROM mail');

	return ok($server->poll_query_until('postgres', "SELECT count(*) > $before + $enough FROM mail"), "$what: rows are handled");
}

# Consumer and server are killed once, where it is worst; t/watermark/random_readers.pl has all other moments.
sub try_consumers
{
	my ($what, @consumers) = @_;
	my @writers = start_writers($server, 3, $write_outbox);
	my $session = open_session($server);

	wait_for_more($what);
	$session->query_safe('SELECT pg_advisory_lock(24)');
	ok($server->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'advisory'"),
		"$what: in the middle of a batch");
	# a session whose client is killed would go on to its COMMIT
	kill_client($consumers[0]);
	kill_server($server);
	eval { $session->quit };
	start_server($server);
	wait_for_more("$what, killed in the middle of a batch");
	end_clients(@writers);
	ok($server->poll_query_until('postgres', q(SELECT seen = (SELECT max(id) FROM outbox) FROM consumer WHERE name = 'mail')),
		"$what: all are handled");
	end_clients(@consumers);
	compare($what, [ ids_in($server, 'outbox') ],
		[ split(/\n/, $server->safe_psql('postgres', 'SELECT outbox_id FROM mail ORDER BY outbox_id')) ]);
	return;
}

sub sql_consumer
{
	my ($name) = @_;

	return psql_program($server, $name, "CALL make_mail();\n\\watch 0.05\n");
}

try_consumers('in SQL', sql_consumer('sql'));
my $send = blocks_in('To a broker', language => 'python');
SKIP:
{
	skip 'there is no psycopg', 1 if !$has_psycopg;
	try_consumers('in Python, woken', python_program($server, 'python'));
	$server->safe_psql('postgres', 'ALTER TABLE outbox DISABLE TRIGGER outbox_wakes');
	try_consumers('in Python and in SQL, not woken', python_program($server, 'beside'), sql_consumer('beside_sql'));
	$server->safe_psql('postgres', 'ALTER TABLE outbox ENABLE TRIGGER outbox_wakes');
}

# After a crash with prepared transactions there is no watermark until the last one has ended.  The
# consumer waits, says what for, and goes on.
SKIP:
{
	skip 'there is no psycopg', 1 if !$has_psycopg;
	# one that has notified cannot be prepared
	$server->safe_psql('postgres', 'ALTER TABLE outbox DISABLE TRIGGER outbox_wakes');
	$server->safe_psql('postgres', "BEGIN; $write_outbox; PREPARE TRANSACTION '$_'") foreach ('one', 'two');
	kill_server($server);
	start_server($server);
	my $waiting = python_program($server, 'waiting');
	my $said = sub { my ($gids) = @_; return wait_until(sub { -e "$waiting->{base}.err" && $gids == (() = slurp_file("$waiting->{base}.err") =~ /^mail waits: there is no watermark\nDETAIL:  Transaction \d+ was prepared before .*\nHINT:  All readers wait until the last /mg) }) };

	ok($said->(1), 'prepared transactions: the consumer waits, and says why');
	my $pid = slurp_file("$waiting->{base}.pid");
	my ($xid) = slurp_file("$waiting->{base}.err") =~ /Transaction (\d+)/;
	my ($first, $last) = split(/\n/, $server->safe_psql('postgres', "SELECT gid FROM pg_prepared_xacts ORDER BY transaction <> '$xid'"));
	$server->safe_psql('postgres', "COMMIT PREPARED '$first'; NOTIFY outbox");
	ok($said->(2), 'when one has ended, it waits for the other one');
	$server->safe_psql('postgres', "COMMIT PREPARED '$last'; NOTIFY outbox");
	ok($server->poll_query_until('postgres', q(SELECT seen = (SELECT max(id) FROM outbox) FROM consumer WHERE name = 'mail')), 'when the last has ended, it handles their rows');
	is(slurp_file("$waiting->{base}.pid"), $pid, 'and has not ended meanwhile');
	end_clients($waiting);
	$server->safe_psql('postgres', 'ALTER TABLE outbox ENABLE TRIGGER outbox_wakes');
}

#
# To a broker.  It dies after its first acknowledgement, and then again and again.
#
SKIP:
{
	skip 'there is no psycopg', 1 if !$has_psycopg;

	my $sent = PostgreSQL::Test::Utils::tempdir() . '/sent';
	my $begin_now = 'SELECT max(id) FROM outbox WHERE id < scru64_watermark()';
	my @writers = start_writers($server, 3, $write_outbox);
	$server->safe_psql('postgres', "UPDATE consumer SET seen = ($begin_now) WHERE name = 'broker'");
	my $begin = $server->safe_psql('postgres', "SELECT seen FROM consumer WHERE name = 'broker'");
	my $sender = python_program($server, 'sender', $send . qq(
import os, random

class Broker:
    def __init__(self):
        self.waiting = []

    def send(self, key, value):
        self.waiting.append(key)

    def flush(self):
        with open("$sent", "a") as file:
            for key in self.waiting:
                file.write(key + "\\n")
        if self.waiting and random.random() < 0.3:
            os._exit(1)
        self.waiting = []

broker = Broker()
run("broker", send)
));
	my $sent_all = sub { -e $sent ? split(/\n/, slurp_file($sent)) : () };
	my (%times, @received);

	# the receiver's rule: what is not greater than the last is dropped
	my $receive = sub {
		%times = @received = ();
		foreach my $id ($sent_all->())
		{
			$times{$id}++;
			push @received, $id if !@received || $id gt $received[-1];
		}
		return scalar(@received);
	};

	ok(wait_until(sub { $receive->() > $enough && grep { $_ > 1 } values %times }), 'broker: rows are sent, and some twice');
	end_clients(@writers);
	my @all = ids_in($server, "outbox WHERE id > '$begin'");
	ok(wait_until(sub { $receive->() && $received[-1] eq $all[-1] }), 'broker: the last is sent');
	end_clients($sender);
	$receive->();
	compare('broker', \@all, \@received);
}

#
# Partitions, and parts by an index
#
{
	my $news = prepared_in('Feeds: read new rows, and miss none', 'news');
	my ($condition) = slurp_file($page) =~ /adds the condition `(.*? = 2)`/ or die 'there is no condition for a part';
	my $task = $news =~ s/news/tasks_1/r =~ s/outbox/task_1/r;
	my $part = $news =~ s/news/part_2/r =~ s/WHERE/WHERE $condition AND/r;
	my @tasks = map { start_reader($server, "tasks_$_", $task =~ s/_1/_$_/gr) } 0 .. 1;
	my @parts = map { start_reader($server, "part_$_", $part =~ s/part_2/part_$_/r =~ s/= 2/= $_/r) } 0 .. 3;
	my @writers = (
		start_writers($server, 2, 'INSERT INTO task (customer, what) VALUES ((random() * 100)::integer, 1)'),
		start_writers($server, 2, $write_outbox));
	my $read = sub { read_on($_) foreach (@tasks, @parts); return };

	ok(wait_until(sub { $read->(); !grep { @{ $_->{read} } < $enough } @tasks, @parts }, 0.05), 'partitions and parts: rows are read');
	end_clients(@writers);
	my $read_all = sub {
		my ($what, $reader, @expected) = @_;

		ok(wait_until(sub { $read->(); $reader->{place} eq $expected[-1] }, 0.05), "$what: to its end");
		compare($what, \@expected, $reader->{read});
		return;
	};
	$read_all->("partition $_", $tasks[$_], ids_in($server, "task_$_")) foreach (0 .. $#tasks);
	$read_all->("part $_", $parts[$_], ids_in($server, "outbox WHERE scru64_hash(id) & 3 = $_")) foreach (0 .. $#parts);
	like(
		$parts[2]{session}->query_safe("SET enable_seqscan = off; SET enable_bitmapscan = off; BEGIN; ALTER TABLE outbox DROP CONSTRAINT outbox_pkey; EXPLAIN EXECUTE part_2('$first_place'); ROLLBACK"),
		qr/Index (Only )?Scan using outbox_parts .*\n.*Index Cond: .*scru64_hash.*= 2.*id > .*id < scru64_watermark/,
		'parts: all three conditions are in the index');
	like(
		$tasks[1]{session}->query_safe("SET enable_seqscan = off; SET enable_bitmapscan = off; DISCARD PLANS; EXPLAIN EXECUTE tasks_1('$first_place')"),
		qr/Index (Only )?Scan using task_1_pkey .*\n.*Index Cond: .*id > .*id < scru64_watermark/,
		'partitions: both conditions are in the primary key');
	$_->{session}->quit foreach (@tasks, @parts);
}

#
# A standby, and a fleet of two servers with a subscriber
#
# The readers begin at the end, where rows are missed.
$server->safe_psql('postgres', 'TRUNCATE outbox');
my $fleet = 'On a subscriber, and for a fleet';
my $standby = PostgreSQL::Test::Cluster->new('standby');
$server->backup('for_standby');
$standby->init_from_backup($server, 'for_standby', has_streaming => 1);
$standby->start;

my $server2 = new_server('server2', 60);
my $hub = new_server('hub', 70);
# without the restarts, which come to nothing here
my ($begin2, $end2) = blocks_in($fleet, at => 'server2') =~ /^(.*?)(INSERT .*)/s;
run_sql($server, blocks_in($fleet) =~ s/^ALTER SYSTEM SET wal_level.*\n//mr);
run_sql($server2, $begin2 =~ s/^ALTER SYSTEM SET wal_level.*\n/SELECT pg_reload_conf();\n/mr);
{
	local $ENV{PATH} = $server->config_data('--bindir') . ":$ENV{PATH}";
	command_ok([ 'bash', '-c', with_addresses(blocks_in($fleet, language => 'sh')) ], 'server2 gets the schema');
}
run_sql($server2, $end2);
run_sql($hub, with_addresses(blocks_in($fleet, at => 'hub')));
ok($hub->poll_query_until('postgres', blocks_in($fleet, at => 'hub') =~ /^(SELECT bool_and.*?);/m), 'the first copy is complete');

sub with_addresses
{
	my ($text) = @_;

	foreach ($server, $server2)
	{
		my ($name, $host, $port) = ($_->name, $_->host, $_->port);

		$text =~ s/host=$name/host=$host port=$port/g;
	}
	return $text;
}

{
	my $news = prepared_in('On a standby', 'news', 'standby');
	my @readers = map { start_reader($_, 'news', $news) } $standby, $hub;
	my ($at_standby, $at_hub) = @readers;
	my @writers = map { start_writers($_, 3, $write_outbox) } $server, $server2;
	my @jobs = map { psql_program($_, 'job', 'CALL publish_watermark(\'' . $_->name . "');\n\\watch 0.05\n") } $server, $server2;
	my $read = sub { read_on($_) foreach (@readers); return };

	ok(wait_until(sub { $read->(); !grep { @{ $_->{read} } < $enough } @readers }, 0.05), 'standby and fleet: rows are read');

	# One server is late: the readers wait for it, while rows of the other go on to come.
	my $number = q(SELECT count(*) FROM outbox);
	my $more = $hub->safe_psql('postgres', "ALTER SUBSCRIPTION server2 DISABLE; $number") + $enough;
	ok(wait_until(sub { $read->(); $hub->safe_psql('postgres', $number) > $more }, 0.05), 'fleet: one server is late');
	$hub->safe_psql('postgres', 'ALTER SUBSCRIPTION server2 ENABLE');
	end_clients(@writers);
	my @all = ids_in($server, 'outbox');
	my @everywhere = sort (@all, ids_in($server2, 'outbox'));
	ok(wait_until(sub { $read->(); $at_standby->{place} eq $all[-1] && $at_hub->{place} eq $everywhere[-1] }, 0.05),
		'standby and fleet: to the end');
	end_clients(@jobs);
	compare('standby', \@all, $at_standby->{read});
	compare('fleet', \@everywhere, $at_hub->{read});
	$_->{session}->quit foreach (@readers);
}

#
# Right after a restart, a statement that has begun before a commit gets the lowest ID
#
{
	my $published = q(SELECT watermark FROM feed_watermark WHERE server = 'server1');
	my $commit = q(INSERT INTO outbox (what) VALUES ('committed meanwhile'));

	$server2->restart;
	my $reader = open_session($server2);
	$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM outbox');
	$server2->safe_psql('postgres', $commit);
	is($reader->query_safe('SELECT scru64_watermark()'), $first_place, 'right after a restart: the lowest ID');
	$reader->query_safe('COMMIT');
	cmp_ok($reader->query_safe('SELECT scru64_watermark()'), 'gt', $first_place, 'and a greater one at the next call');
	$reader->quit;

	# what was published stays
	$server->safe_psql('postgres', 'CREATE TRIGGER stop_here BEFORE UPDATE ON feed_watermark FOR EACH STATEMENT EXECUTE FUNCTION stop_here()');
	my $before = $server->safe_psql('postgres', $published);
	cmp_ok($before, 'gt', $first_place, 'a watermark is published');
	$server->restart;
	my ($holder, $job) = map { open_session($server) } 1 .. 2;
	$holder->query_safe('SELECT pg_advisory_lock(24)');
	start_statement($job, q(CALL publish_watermark('server1')));
	waits_for($server, $job, 'advisory') or die 'the job does not wait';
	$server->safe_psql('postgres', $commit);
	$holder->query_safe('SELECT pg_advisory_unlock(24)');
	$job->query_safe('SELECT 1');
	$_->quit foreach ($holder, $job);
	is($server->safe_psql('postgres', $published), $before, 'right after a restart: what was published stays');
	$server->safe_psql('postgres', q(DROP TRIGGER stop_here ON feed_watermark; CALL publish_watermark('server1')));
	cmp_ok($server->safe_psql('postgres', $published), 'gt', $before, 'and rises at the next call');
}

#
# Why rows do not come: a prepared transaction of another database, and a position of the future
#
{
	my ($holding, $ahead) = blocks_in('Rows do not come') =~ /(.*?;)\n(.*)/s;
	my $news = q(SELECT count(*) > 0 FROM outbox WHERE what = 'later' AND id < scru64_watermark() AND id > (SELECT seen FROM consumer WHERE name = 'mail'));

	$server->safe_psql('postgres', q(CREATE DATABASE other; CREATE ROLE monitor IN ROLE pg_monitor));
	$server->safe_psql('other', q(CREATE EXTENSION scru64; BEGIN; SELECT scru64_generate(); PREPARE TRANSACTION 'held'));
	like($server->safe_psql('postgres', "SET ROLE monitor; $holding"), qr/^\|held\|\w{12}\|[^|]*\|other\|/,
		'rows do not come: the transaction, and its database');
	$server->safe_psql('other', q(ROLLBACK PREPARED 'held'));

	$server->safe_psql('postgres', 'UPDATE consumer SET seen = (SELECT max(id) FROM outbox)');
	is($server->safe_psql('postgres', $ahead), '', 'rows do not come: no position is later than the watermark');
	# the generator's clock may lag behind now()
	my $time = $server->safe_psql('postgres', q(SELECT now() - interval '1 second'));
	$server->safe_psql('postgres', q(UPDATE consumer SET seen = scru64_min(now() + interval '1 hour') WHERE name = 'mail';
INSERT INTO outbox (what) VALUES ('later')));
	like($server->safe_psql('postgres', $ahead), qr/^mail\|\w{12}\|\w{12}$/, 'rows do not come: one is');
	my ($set_back) = grep { $_->{mark} eq 'recipe future' } @blocks or die 'there is no recipe for positions of the future';
	$set_back->{is_run} = 1;
	is($server->safe_psql('postgres', $news), 'f', 'rows do not come: no row is read');
	run_sql($server, $set_back->{text} =~ s/TIME/$time/gr);
	ok($server->poll_query_until('postgres', $news), 'rows do not come: with the position set back, they come');

	# rows of the future, of which the consumer has handled some, and none of the last seconds
	run_sql($server, q(
DROP TABLE moved;
TRUNCATE outbox, mail;
INSERT INTO outbox SELECT scru64_from_parts(now() + interval '1 hour', n), 'of the future' FROM generate_series(1, 70000) AS n;
INSERT INTO mail SELECT id, what FROM outbox WHERE id <= scru64_from_parts(now() + interval '1 hour', 30000) AND what = 'of the future';
UPDATE consumer SET seen = (SELECT max(outbox_id) FROM mail) WHERE name = 'mail';
) . $set_back->{text} =~ s/TIME/now/gr . q(
INSERT INTO outbox (what) VALUES ('last');
));
	ok(wait_until(sub { look_at($server, 'postgres', q(CALL make_mail();
SELECT seen = (SELECT id FROM outbox WHERE what = 'last') FROM consumer WHERE name = 'mail')) =~ /^t$/m }), 'rows of the future: rows come');
	is($server->safe_psql('postgres', q(
SELECT times, bool_or(id > now() + interval '20 s'), count(*)
FROM (SELECT id, count(outbox_id) AS times FROM outbox LEFT JOIN mail ON outbox_id = id WHERE what = 'of the future' GROUP BY id) AS t
GROUP BY times)), '1|f|70000', 'rows of the future: all are handled once, and none comes later');
}

# What is left of the page
is( join(' ', map { $_->{line} } grep { !$_->{is_run} && $_->{language} ne 'restart' && $_->{text} !~ /-->/ } @blocks),
	'', 'all blocks of the page are run');

$_->stop foreach ($hub, $standby, $server2, $server);
done_testing();
