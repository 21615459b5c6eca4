# Readers that go by scru64_watermark(), each with a position of its own, while sessions write in
# all the ways that there are, are cancelled and ended, the server crashes, its disk is slow, and
# its clock is moved.  Each reader has read exactly the rows that there are, in order of their IDs.
#
# The simulator (unit_tests/sim/) tries each rule; this is PostgreSQL with its snapshots, callbacks,
# workers and plans.  SCRU64_WATERMARK_SECONDS is for how long, SCRU64_SEED which.

use strict;
use warnings;
use Scru64Clock;
use Scru64Disk;
use Scru64Loads;
use Scru64Random;
use Scru64Server;
use Scru64Test;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;
plan skip_all => 'no clock can be set' if !can_set_clock();

seed_random();
my $seconds = $ENV{SCRU64_WATERMARK_SECONDS} || 30;
my $server = new_node('main');
$server->append_conf(
	'postgresql.conf', q(
max_prepared_transactions = 20
max_worker_processes = 16
wal_writer_delay = 10s
restart_after_crash = on
scru64.node_spec = '7/12'
parallel_setup_cost = 0
parallel_tuple_cost = 0
min_parallel_table_scan_size = 0
) . one_of('', "shared_preload_libraries = 'scru64'\n"));
make_disk($server) or note('there is no compiler');
set_clock($server, '+0');
start_server($server);
$server->safe_psql('postgres', q(
CREATE EXTENSION scru64;
-- lax: a crash may forget the row after it was seen
CREATE TABLE event (id scru64 PRIMARY KEY DEFAULT scru64_generate(), lax boolean DEFAULT current_setting('synchronous_commit') = 'off');
CREATE TABLE parted (LIKE event INCLUDING DEFAULTS) PARTITION BY HASH (id);
SELECT format('CREATE TABLE parted_%s PARTITION OF parted (PRIMARY KEY (id)) FOR VALUES WITH (MODULUS 4, REMAINDER %s)', n, n)
FROM generate_series(0, 3) AS n \gexec
CREATE TABLE told (watermark scru64, id scru64 DEFAULT scru64_generate(), CHECK (id >= watermark));

-- rows of subtransactions, some of which fail; ends: of many transactions
CREATE PROCEDURE go_through(ends boolean) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 3 LOOP
		INSERT INTO event DEFAULT VALUES;
		BEGIN
			INSERT INTO parted DEFAULT VALUES;
			PERFORM 1 / floor(random() * 2)::integer;
		EXCEPTION WHEN division_by_zero THEN
			INSERT INTO event DEFAULT VALUES;
		END;
		IF ends AND random() < 0.4 THEN
			COMMIT;
		END IF;
	END LOOP;
END
$$;

CREATE FUNCTION stable_watermark() RETURNS scru64 LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN scru64_watermark(); END $$;
));

# Writers: how they commit, and how many nodes there are, more than there are slots for, too
my @commits = @{ one_of([ 'on', 'off' ], ['on'], ['off']) };
my $nodes = one_of(1, 3, 40, 300);

sub insert { return 'INSERT INTO ' . one_of('event', 'event', 'parted') . ' SELECT FROM generate_series(1, ' . int(1 + rand(one_of(1, 10, 200))) . ')' }
sub set_node { return "SET scru64.node_spec = '" . one_of(int(rand($nodes)) . '/12', int(200 + rand($nodes) / 8) . '/8') . "'" }
sub pause { return sprintf('\! sleep %.3f', rand(0.3)**2) }
sub some_of { return map { one_by_weight(@{ $_[1] })->[1]->() } (1 .. $_[0]) }

my @steps = (
	[ 10, \&insert ],
	[ 4, sub { return ('SAVEPOINT s', insert(), one_of('RELEASE s', 'ROLLBACK TO s')) } ],
	[ 3, sub { return 'CALL go_through(false)' } ],
	[ 3, \&set_node ],
	[ 3, \&pause ],
	[ 1, sub { return 'SELECT scru64_generate()' } ]);
my @ends = ([ 70, sub { return 'COMMIT' } ], [ 15, sub { return 'ROLLBACK' } ], [ 15, sub { return "PREPARE TRANSACTION 'p" . int(rand(300)) . "'" } ]);
my @actions = (
	[ 25, \&insert ],
	[ 40, sub { return ('BEGIN', some_of(1 + rand(one_of(2, 4, 12)), \@steps), some_of(1, \@ends)) } ],
	[ 8, sub { return 'CALL go_through(true)' } ],
	[ 16, sub { return "SELECT format('" . one_of('COMMIT', 'ROLLBACK') . q{ PREPARED %L', gid) FROM pg_prepared_xacts ORDER BY random() LIMIT 1 \gexec} } ],
	[ 8, sub { return (set_node(), 'SET synchronous_commit = ' . one_of(@commits)) } ],
	[ 8, sub { return 'INSERT INTO told (watermark) SELECT scru64_watermark()' } ],
	[ 4, \&pause ]);

# Readers: each adds what it reads to a file, and goes on after the last line there
my @readers = (
	[ 'statements', 'event', 'scru64' ], [ 'statements', 'parted', 'scru64' ], [ 'statements', 'parted', 'stable' ],
	[ 'repeatable', 'event', 'scru64' ], [ 'repeatable', 'parted', 'stable' ], [ 'prepared', 'parted', 'scru64' ],
	[ 'cursor', 'event', 'scru64' ], [ 'long', 'event', 'scru64' ]);

sub statements_of_reader
{
	my ($way, $table, $whose, $file) = @_;
	my $select = "SELECT id, lax FROM $table WHERE id > :'position' AND id < ${whose}_watermark() ORDER BY id LIMIT 5000";
	my $keep = "\\g |cat >>$file";
	my $go_on = "\\set position `sleep 0.03; tail -c 15 $file | cut -c 1-12`";
	my @poll = ("$select $keep", $go_on);
	my %statements = (
		statements => \@poll,
		repeatable => [ 'BEGIN ISOLATION LEVEL ' . one_of('REPEATABLE READ', 'SERIALIZABLE'), 'SELECT', (@poll) x 3, 'COMMIT' ],
		# held back by itself
		long => [ 'BEGIN', 'SELECT scru64_generate()', (@poll) x 10, one_of('COMMIT', 'ROLLBACK') ],
		cursor => [ 'BEGIN', "DECLARE reader CURSOR FOR $select", "FETCH 3 FROM reader $keep", pause(), "FETCH ALL FROM reader $keep", 'COMMIT', $go_on ],
		# one plan for all positions
		prepared => [ 'SET plan_cache_mode = force_generic_plan', 'DEALLOCATE ALL', 'PREPARE poll (scru64) AS ' . $select =~ s/:'position'/\$1/r,
			("EXECUTE poll (:'position') $keep", $go_on) x 50 ]);

	return @{ $statements{$way} };
}

# They go through their statements again and again, whatever happens to the server.
my $dir = $server->basedir . '/clients';
my @clients;

sub begin_client
{
	my ($name, @statements) = @_;

	append_to_file("$dir/$name.sql", join('', map { /^\\|\\g/ ? "$_\n" : "$_;\n" } @statements));
	append_to_file("$dir/$name.read", "000000000000 f\n");
	push @clients, start_client($server, "$dir/$name.sql", name => 'client', again => 1, command => [ 'sh', '-c',
			"exec psql -XAtq -F ' ' -v VERBOSITY=verbose -v position=\$(tail -c 15 $dir/$name.read | cut -c 1-12)" ]);
	return;
}

mkdir($dir) or die "$dir: $!";
begin_client("writer_$_", some_of(2000, \@actions)) foreach (1 .. 8);
foreach my $reader (@readers)
{
	my $name = join('_', @{$reader});

	begin_client($name, map { statements_of_reader(@{$reader}, "$dir/$name.read") } (1 .. 100));
}

# Faults; a statement may fail because the server is just starting again.
my $of_clients = "FROM pg_stat_activity WHERE application_name = 'client'";

sub try_sql { return split(/\n/, eval { ($server->psql('postgres', $_[0], timeout => 20))[1] } // '') }

my @faults = (
	[ 40, 'cancel', sub { try_sql("SELECT pg_cancel_backend(pid) $of_clients AND random() < 0.1") } ],
	[ 30, 'terminate', sub { try_sql("SELECT pg_terminate_backend(pid) $of_clients AND random() < 0.1") } ],
	[ 4, 'kill', sub { kill('KILL', try_sql("SELECT pid $of_clients ORDER BY random() LIMIT 1")) } ],
	[ 10, 'stop', sub { $server->stop(one_of('immediate', 'fast'), fail_ok => 1); start_server($server) } ],
	[ 15, 'flushes held', sub { hold_flushes_for($server, rand(2)) } ],
	[ 15, 'slow flushes', sub { slow_flushes_for($server, rand(3)) } ],
	[ 40, 'clock', sub { set_clock($server, sprintf('%+.1f', one_of(0, rand(6) - 3))) } ]);

for (my $end = time() + $seconds; time() < $end; sleep(rand(0.6)))
{
	my (undef, $what, $code) = @{ one_by_weight(@faults) };

	note($what);
	$code->();
}

# The end: no row is written any more, and the clock is further than it ever was
end_clients(@clients);
set_clock($server, '+4');
wait_until(sub { look_at($server, 'postgres', 'SELECT true') eq 't' }) or die 'the server has gone';
$server->safe_psql('postgres', "SELECT format('%s PREPARED %L', CASE WHEN random() < 0.5 THEN 'COMMIT' ELSE 'ROLLBACK' END, gid) FROM pg_prepared_xacts \\gexec");
ok($server->poll_query_until('postgres', 'SELECT scru64_watermark() > greatest((SELECT max(id) FROM event), (SELECT max(id) FROM parted))'),
	'at the end the watermark is above all rows');

# A statement is ended, the clock is far behind, a transaction has failed, not begun, or cannot be serialized; of prepared
# ones there are as many as may be, or the name is taken, or gone.
my $expected = qr/^(57P0[123]|57014|58000|25P0[12]|3B001|34000|26000|42P05|40001|53200|42710|42704|55000: (prepared transaction|there is no watermark))/;
my ($other) = grep { $_ !~ $expected } map { slurp_file("$_->{base}.err") =~ /ERROR:  (.*)/g } @clients;
is($other, undef, 'no other error, and no ID below a watermark that was there before');
foreach my $reader (@readers)
{
	my $file = "$dir/" . join('_', @{$reader}) . '.read';
	my $rows = "\\pset fieldsep ' '\nSELECT id, lax FROM $reader->[1]";
	my @there = split(/\n/, $server->safe_psql('postgres', $rows));
	my @read = split(/\n/, slurp_file($file));
	my $last = substr($read[-1], 0, 12);
	my $at_once = @read - 1;

	push @read, split(/\n/, $server->safe_psql('postgres', "$rows WHERE id > '$last' AND id < scru64_watermark() ORDER BY id"));
	my @wrong = map { "$read[$_] after $read[ $_ - 1 ]" } grep { $read[$_] le $read[ $_ - 1 ] } (1 .. $#read);
	shift @read;
	my %is_there = map { $_ => 1 } @there;
	my %is_read = map { $_ => 1 } @read;
	push @wrong, (map { "missed $_" } grep { !$is_read{$_} } @there), map { "$_ is not there" } grep { !$is_there{$_} && !/t$/ } @read;
	is($wrong[0], undef, "@{$reader}: all rows are read, once, in order");
	cmp_ok($at_once, '>', 100, "@{$reader}: $at_once of " . @there . ' while they were written');
}
is(join("\n", logged($server, qr/PANIC:|TRAP:/)), '', 'no PANIC, no assertion');
$server->stop;
done_testing();
