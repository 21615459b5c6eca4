# Two servers take turns: the primary goes down under load, in whatever way, the standby
# is promoted, and the old primary follows it.  All clocks are off, by up to eight
# seconds both ways.  No ID of a row that is there comes again, and each node's IDs
# increase.  SCRU64_PROMOTIONS is how many promotions there are in each of two runs.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use File::Copy;
use IPC::Run;
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Scru64Fault;
use Scru64Test;
use Test::More;
use Time::HiRes qw(sleep);

plan skip_all => 'libfaketime is not installed' if !can_set_clock();

my $promotions = $ENV{SCRU64_PROMOTIONS} || 30;
my $seed = $ENV{SCRU64_SEED} || int(rand(2**31));

srand($seed);
note("SCRU64_SEED=$seed");

# One session for each node, so that its rows are in order.  The last node is
# saturated.
my @specs = ('1/8', '700/12', '7/20');

# Small, because it is copied so often.
my $template = make_template('template', allows_streaming => 1, extra => ['--wal-segsize=1']);
start_server($template);
foreach my $database ('template0', 'template1')
{
	$template->safe_psql('postgres', "ALTER DATABASE $database is_template false; ALTER DATABASE $database allow_connections false");
	$template->safe_psql('postgres', "DROP DATABASE $database");
}
$template->safe_psql(
	'postgres', q(
-- IDs, or none if the clock is too far behind
CREATE FUNCTION try_give(spec text, count integer) RETURNS SETOF scru64
LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY SELECT give(spec, count);
EXCEPTION WHEN system_error THEN
	NULL;
END
$$;
));
$template->stop;
$template->backup_fs_cold('with_try_give');

sub random_clock
{
	return sprintf('%+.1f', rand(16) - 8);
}

# Each session logs what it is given, when that is committed.
sub start_inserts
{
	my ($node, $round) = @_;
	my @clients;

	foreach my $spec (@specs)
	{
		my $log = $node->basedir . "/$round." . ($spec =~ s/\W/_/r);
		my $statements = $node->basedir . '/' . ($spec =~ s/\W/_/r) . '.sql';

		append_to_file($statements, join('', ("SELECT try_give('$spec', 3);\n" x 3, "\\! sleep 0.01\n") x 2000))
		  if !-e $statements;
		push @clients,
		  {
			log => $log,
			run => IPC::Run::start(
				[ 'psql', '-XAtq', '-f', $statements, '-d', $node->connstr('postgres') ],
				'<', '/dev/null', '>', "$log.ids", '2>', "$log.err")
		  };
	}
	return @clients;
}

# All that clients have ever received: what comes twice was never replicated.
my %seen;
my ($received, $twice) = (0, 0);

sub finish_inserts
{
	my (@clients) = @_;
	my $errors = '';

	foreach my $client (@clients)
	{
		$client->{run}->finish;
		foreach my $id (grep { /^\w{12}$/ } split(/\n/, read_file("$client->{log}.ids")))
		{
			$received++;
			$twice++ if $seen{$id}++;
		}
		$errors .= join('', grep { /ERROR/ } split(/^/, read_file("$client->{log}.err")));
	}
	return $errors;
}

# Have the old primary follow the new one.
sub follow
{
	my ($old, $new, $how) = @_;
	my $data = $old->data_dir;
	my $conf = $old->basedir . '/postgresql.conf';

	copy("$data/postgresql.conf", $conf) or die "could not copy $conf: $!";
	if ($how eq 'pg_rewind')
	{
		my $attempts = 50;
		my @command = (
			'pg_rewind', '--no-sync', '--target-pgdata', $data,
			'--source-server', $new->connstr('postgres'));
		my ($out, $err) = ('', '');

		# it reads the timeline from the source's control file
		$new->safe_psql('postgres', 'CHECKPOINT');
		# the processes of a server that was killed need a moment to go
		until (IPC::Run::run(\@command, '>', \$out, '2>', \$err))
		{
			die "pg_rewind: $err" if $attempts-- == 0;
			sleep(0.1);
		}
	}
	else
	{
		system('rm', '-rf', $data) == 0 or die "could not remove $data";
		PostgreSQL::Test::Utils::system_or_bail('pg_basebackup', '--no-sync', '--checkpoint=fast',
			'--pgdata', $data, '-d', $new->connstr('postgres'));
	}
	copy($conf, "$data/postgresql.conf") or die "could not copy $conf: $!";
	append_to_file("$data/standby.signal", '');
	start_server($old);
	return;
}

# One run.  Writes what happened to a file, a line for each test.
sub run_promotions
{
	my ($how, $report, $primary, $standby) = @_;
	my ($rows, $set_right) = (0, 0);

	start_server($primary);
	$standby->enable_streaming($primary);
	$primary->enable_streaming($standby);
	unlink($primary->data_dir . '/standby.signal');
	start_server($standby);

	foreach my $round (1 .. $promotions)
	{
		my $name = "$how, promotion $round";
		my @clients = start_inserts($primary, $round);
		my $log = $clients[0]{log};
		my @end = ('kill -9', 'immediate', 'fast');
		my $end = $end[ rand(@end) ];

		# if it refuses, all have their IDs once its clock is as far ahead as any was
		for my $look (1 .. 1000)
		{
			last if -s "$log.ids";
			if ($look == 30)
			{
				set_clock($primary, '+8');
				$set_right++;
			}
			sleep(0.01);
		}
		sleep(rand(0.15));
		set_clock($primary, random_clock()) if rand() < 0.5;
		sleep(rand(0.15));
		set_clock($standby, random_clock()) if rand() < 0.5;
		$end eq 'kill -9' ? kill_server($primary) : $primary->stop($end);
		$standby->promote;
		my $errors = finish_inserts(@clients);

		my ($wrong, $count) = split(/\|/, $standby->safe_psql('postgres', 'SELECT wrong_nodes(), count(*) FROM ids'));
		my $ok = $wrong eq '' && $errors eq '' && $count > $rows ? 'ok' : "wrong: $wrong, rows: $rows, then $count";
		append_to_file($report, "$ok|$name, after $end: all rows in order, more of them\n");
		$rows = $count;
		follow($primary, $standby, $how) if $round < $promotions;
		($primary, $standby) = ($standby, $primary);
	}
	my $again = $primary->safe_psql('postgres', 'SELECT count(*) - count(DISTINCT id) FROM ids');
	append_to_file($report,
		($again ? "$again twice" : 'ok') . "|$how: no ID of a row twice\n"
		. "note|$how: $rows rows, clock set right $set_right times; $received IDs received, $twice that only clients had seen came again\n"
		. "end|\n");
	$primary->stop('immediate');
	return;
}

# Both runs at the same time: most of it is waiting.
my @ways = ('pg_rewind', 'pg_basebackup');
my %reports;
my @runs;

if (!has_program('pg_rewind'))
{
	note('there is no pg_rewind');
	shift @ways;
}
foreach my $how (@ways)
{
	my @servers = map { copy_server($template, "${how}_$_", backup => 'with_try_give', clock => random_clock()) } (1, 2);

	$reports{$how} = $template->basedir . "/$how";
	append_to_file($reports{$how}, '');
	my $pid = fork();
	die "could not fork: $!" if !defined $pid;
	if ($pid == 0)
	{
		# the parent counts, and ends what is left over
		srand($seed + length($how));
		eval { run_promotions($how, $reports{$how}, @servers); 1 }
		  or append_to_file($reports{$how}, 'died: ' . ($@ =~ s/\s+/ /gr) . "|$how\n");
		foreach my $server (@servers)
		{
			eval { $server->stop('immediate', fail_ok => 1); };
		}
		POSIX::_exit(0);
	}
	push @runs, $pid;
}
waitpid($_, 0) foreach (@runs);
foreach my $how (sort keys %reports)
{
	my $end = 0;

	foreach my $line (split(/\n/, read_file($reports{$how})))
	{
		my ($result, $name) = split(/\|/, $line, 2);

		$result eq 'end' ? $end = 1 : $result eq 'note' ? note($name) : is($result, 'ok', $name);
	}
	ok($end, "$how: it came to its end");
}
done_testing();
