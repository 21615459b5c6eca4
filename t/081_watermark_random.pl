# Readers that go by scru64_watermark(), each with a position of its own, while sessions
# write in all the ways that there are, are ended, crash, and have their clock moved.  Each
# reader has read exactly the rows that there are, in order of their IDs.
#
# SCRU64_WATERMARK_SECONDS is for how long, SCRU64_SEED which, SCRU64_WATERMARK_WEIGHTS how
# often what happens: see Scru64Feed.pm.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use List::Util qw(sum);
use Scru64Fault;
use Scru64Feed;
use Scru64Random;
use Scru64Test;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my $seconds = $ENV{SCRU64_WATERMARK_SECONDS} || 60;
my $seed = seed_random();
my $writers = 10;
my $tellers = 2;

set_weights($ENV{SCRU64_WATERMARK_WEIGHTS} || '');

sub now { return clock_gettime(CLOCK_MONOTONIC) }

#
# The server
#
my $preloads = rand() < 0.5;
my $server = new_node('main');
$server->append_conf(
	'postgresql.conf', qq(
max_connections = 60
max_prepared_transactions = 20
max_worker_processes = 16
wal_writer_delay = 10s
restart_after_crash = on
scru64.node_spec = '7/12'
parallel_setup_cost = 0
parallel_tuple_cost = 0
min_parallel_table_scan_size = 0
) . ($preloads ? "shared_preload_libraries = 'scru64'\n" : ''));
set_clock($server, '+0') if can_set_clock();
start_server($server);
$server->safe_psql('postgres', sql_for_clients());
like($server->safe_psql('postgres', 'EXPLAIN SELECT scru64_generate() FROM numbers'), qr/Gather/, 'workers make IDs');

#
# Clients
#
my $dir = $server->basedir . '/clients';
my @clients;

sub begin_client
{
	my ($name, %client) = @_;

	push @clients, {
		name => $name,
		pid => start_client(
			%client,
			dir => $dir,
			name => $name,
			connstr => $server->connstr('postgres'),
			seed => $seed + @clients + 1)
	};
	return;
}

mkdir($dir) or die "$dir: $!";
# how many nodes there are, how many writers, and how they commit
my @weather = map { [ pick('nodes') =~ /(\d+)/, one_of(2, $writers, $writers), one_of('on', 'mixed', 'off') ] } (1 .. 1000);
my $began = now();
my %of_all = (weather => \@weather, began => $began);

begin_client("writer_$_", %of_all, number => $_ - 1) foreach (1 .. $writers);
begin_client("watermarks_$_", %of_all) foreach (1 .. $tellers);
foreach my $reader (@readers)
{
	my ($name, $table, $reads, undef, $asks) = @{$reader};
	begin_client($name, %of_all, table => $table, reads => $reads, asks => $asks || 'scru64_watermark');
}

#
# Faults
#
my %faults;

# What may fail: the server may just be starting again.
sub try_sql
{
	my ($sql) = @_;
	my $out = '';

	eval { (undef, $out) = $server->psql('postgres', $sql, timeout => 20); };
	return split(/\n/, $out || '');
}

sub wait_for_server
{
	until (try_sql('SELECT 1'))
	{
		sleep(0.1);
	}
	return;
}

sub restart
{
	my ($mode) = @_;

	$server->stop($mode, fail_ok => 1);
	sleep(rand(0.5));
	start_server($server);
	return;
}

my $some_client = "FROM pg_stat_activity WHERE application_name = 'client' ORDER BY random() LIMIT 1";
my %make = (
	terminate => sub { try_sql("SELECT pg_terminate_backend(pid) $some_client") },
	cancel => sub { try_sql("SELECT pg_cancel_backend(pid) $some_client") },
	kill => sub { kill('KILL', try_sql("SELECT pid $some_client")); wait_for_server() },
	crash => sub { restart('immediate') },
	restart => sub { restart('fast') },
	clock => sub { set_clock($server, sprintf('%+.1f', rand(6) - 3)) },
	clock_right => sub { set_clock($server, '+0') });

while (now() < $began + $seconds)
{
	my $fault = pick('fault');

	sleep(rand(0.6));
	next if $fault =~ /^clock/ && !can_set_clock();
	$make{$fault}->();
	$faults{$fault}++;
}

#
# The end: no row is written any more, and the clock is further than it ever was
#
sub wait_for_clients
{
	my ($names) = @_;

	waitpid($_->{pid}, 0) foreach (grep { $_->{name} =~ $names } @clients);
	return;
}

set_clock($server, '+4') if can_set_clock();
append_to_file("$dir/stop", '');
wait_for_clients(qr/^writer/);
foreach my $sql (split(/\n/, $server->safe_psql('postgres', "SELECT format('%s PREPARED %L', CASE WHEN random() < 0.5 THEN 'COMMIT' ELSE 'ROLLBACK' END, gid) FROM pg_prepared_xacts")))
{
	$server->safe_psql('postgres', $sql);
}
# what has just been asked for the last time may still be open, and a node ahead of the clock
ok( $server->poll_query_until('postgres', 'SELECT scru64_watermark() > greatest((SELECT max(id) FROM event), (SELECT max(id) FROM parted))'),
	'at the end the watermark is above all rows');
append_to_file("$dir/last", '');
wait_for_clients(qr/./);

#
# What was wrong, and what was done
#
my %counts = (IDs => 0, prepared => 0, calls => 0, 'rows read' => 0);
my $wrong = '';
foreach my $client (@clients)
{
	my $report = -e "$dir/$client->{name}.report" ? read_file("$dir/$client->{name}.report") : "wrong: $client->{name} has died\n";

	foreach my $line (split(/\n/, $report))
	{
		$line =~ /^(.*)\t(\d+)$/ ? ($counts{$1} += $2) : ($wrong .= "$line\n");
	}
}
is($wrong, '', 'nothing was wrong with what any client got');

my ($watermarks, $early, $early_ids) = early_ids($dir);
is($early_ids, '', 'no ID was issued below a watermark that was reported before');

my ($missed, $undone) = (0, 0);
my %rows;
foreach my $table ('event', 'parted')
{
	$server->safe_psql('postgres', "\\pset fieldsep ' '\n\\o $dir/$table.rows\nSELECT id, lax FROM $table ORDER BY id");
	$rows{$table} = $server->safe_psql('postgres', "SELECT count(*) FROM $table");
	cmp_ok($rows{$table}, '>', 100, "rows in $table");
}
foreach my $reader (@readers)
{
	my ($name, $table, undef, $may_be_lost) = @{$reader};
	my ($of_reader, $undone_of_reader, $what) = compare("$dir/$table.rows", "$dir/$name.read", $may_be_lost);

	is($what, '', "$name: has read all rows of $table, each once, in order");
	$missed += $of_reader;
	$undone += $undone_of_reader;
}
is(join("\n", logged($server, qr/PANIC:|TRAP:/)), '', 'no PANIC, no assertion');

note("SCRU64_SEED=$seed, $seconds s, " . ($preloads ? '' : 'not ') . 'preloaded');
note(sum(values %rows) . " rows ($counts{IDs} IDs seen, $counts{prepared} transactions prepared), "
	  . @readers . " readers, $counts{calls} calls, " . sum(0, values %faults) . ' faults ('
	  . join(', ', map { "$_ $faults{$_}" } sort keys %faults)
	  . "), $missed missed, $early early IDs, $counts{'rows read'} rows read, $undone of them undone by crashes, $watermarks watermarks compared");
note(join(', ', map { "$_: $counts{$_}" } sort grep { /error|connections/ } keys %counts));
$server->stop;
done_testing();
