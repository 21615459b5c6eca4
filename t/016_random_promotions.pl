# Two servers take turns: the primary goes down under load, in whatever way, the standby
# is promoted, and the old primary follows it.  All clocks are off, by up to eight
# seconds both ways.  No ID of a row that is there comes again, and each node's IDs
# increase.
#
# The standby is synchronous in half of the rounds.  Then no ID comes again that a client
# has seen whose commits wait for it, nor a smaller one.  In some rounds a disk or the
# standby is slow, or the standby away, and statements are cancelled.
#
# SCRU64_PROMOTIONS is how many promotions there are in each of two runs.  If it is set,
# most rounds have such faults.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use File::Copy;
use POSIX ();
use Scru64Fault;
use Scru64Random;
use Scru64Test;

plan skip_all => 'libfaketime is not installed' if !can_set_clock();

my $promotions = $ENV{SCRU64_PROMOTIONS} || 30;
my $rounds_with_faults = $ENV{SCRU64_PROMOTIONS} ? 0.7 : 0.15;
my $seed = seed_random();

# One session for each node, so that its rows are in order.  The last node is
# saturated.
my @specs = ('1/8', '700/12', '7/20');

# Sessions that write nothing share these nodes, whatever each of them waits for.
my @shared_specs = ('9/8', '3000/12');
my @levels = ('on', 'remote_write', 'remote_apply', 'local', 'off');
my @timeouts = ('0', '0', '50', '300', '2000');

# For how long a session may wait after all faults have been taken back.
my $patience_s = 180;

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

# What all clocks are about.  It is put ahead of what any ceiling allows to see what the
# next one waits for.
my $clock_base = 0;

sub clock_around_base
{
	return sprintf('%+.1f', $clock_base + rand(16) - 8);
}

sub latest_clock
{
	return sprintf('%+.1f', $clock_base + 8);
}

# A session that logs the IDs that it gets, when that is committed.
sub start_client
{
	my ($node, $log, $spec, $statement, %settings) = @_;
	my $statements = $node->basedir . '/' . ($statement =~ s/\W/_/gr) . '.sql';
	my $options = join(' ', map { "-c $_=$settings{$_}" } sort keys %settings);

	append_to_file($statements, join('', ("$statement;\n" x 3, "\\! sleep 0.02\n") x 4000))
	  if !-e $statements;
	return {
		log => $log,
		spec => $spec,
		# does it wait for a synchronous standby?
		waits => $settings{synchronous_commit} !~ /local|off/,
		run => IPC::Run::start(
			[
				'psql', '-XAtq', '-v', 'VERBOSITY=verbose', '-f', $statements, '-d',
				$node->connstr('postgres') . " application_name=client options='$options'"
			],
			'<', '/dev/null', '>', "$log.ids", '2>', "$log.err")
	};
}

sub start_clients
{
	my ($node, $round, $sharing) = @_;
	my $log = $node->basedir . "/$round";
	my @clients = map {
		start_client($node, "$log." . ($_ =~ s/\W/_/r), $_, "SELECT try_give('$_', 3)",
			synchronous_commit => one_of(@levels))
	} @specs;

	foreach my $n (1 .. $sharing)
	{
		my $spec = one_of(@shared_specs);

		push @clients, start_client(
			$node, "$log.$n", $spec, 'SELECT scru64_generate(10)',
			'scru64.node_spec' => $spec,
			synchronous_commit => one_of(@levels),
			statement_timeout => one_of(@timeouts));
	}
	return @clients;
}

# All that clients have ever received: what comes twice was never replicated.  And of
# each node the greatest one that was, because a client has it that waits for that.
my (%seen, %replicated);
my ($received, $twice, $replicated) = (0, 0, 0);

# What was wrong with what clients got.  synchronous: they could rely on the standby.
sub finish_clients
{
	my ($synchronous, @clients) = @_;
	my (%now, %greatest);
	my $wrong = '';

	foreach my $client (@clients)
	{
		my ($log, $spec) = @{$client}{ 'log', 'spec' };
		my $known = $replicated{$spec} || '';
		my $last = '';

		$client->{run}->finish;
		foreach my $id (grep { /^\w{12}$/ } split(/\n/, read_file("$log.ids")))
		{
			$received++;
			$twice++ if $seen{$id}++;
			$wrong .= "$id of $spec twice in a round\n" if $now{$id}++;
			$wrong .= "$id of $spec, when the standby had $known\n" if $id le $known;
			$wrong .= "$id of $spec after $last\n" if $id le $last;
			$last = $id;
			next if !$synchronous || !$client->{waits};
			$replicated++;
			$greatest{$spec} = $id if $id gt ($greatest{$spec} || '');
		}
		# what is cancelled, and a clock that is too far behind; no talk of commits of
		# those that have none
		$wrong .= join('', grep { /ERROR:  (?!57014|58000)/ || /canceling wait/ && $log =~ /\.\d$/ }
			  split(/^/, read_file("$log.err")));
		unlink("$log.ids", "$log.err");
	}
	$replicated{$_} = $greatest{$_} foreach (keys %greatest);
	return substr($wrong, 0, 1000);
}

#
# Faults.  Each is taken back after some seconds, whatever happens meanwhile.
#

# which servers have a synchronous standby when they are the primary, for good
my %synchronous;
my %counts;

sub set_standby
{
	my ($server, $name) = @_;

	$server->append_conf('postgresql.conf', "synchronous_standby_names = '$name'");
	$synchronous{ $server->name } = $name ne '';
	return;
}

sub draw_standby
{
	my ($server, $standby) = @_;

	return set_standby($server, rand() < 0.5 ? $standby->name : '');
}

# most faults are short
sub seconds
{
	return sprintf('%.2f', 6 * rand()**3);
}

# Stop processes of a server for some time.
sub stop_processes
{
	my ($server, $seconds, $type) = @_;
	my (undef, $pids) = $server->psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = '$type'");

	return if !$pids;
	$pids =~ s/\s+/ /g;
	system("kill -STOP $pids");
	soon($seconds, "kill -CONT $pids");
	return;
}

sub for_clients
{
	my ($server, $function, $which) = @_;

	return $server->psql('postgres', "SELECT $function(pid) FROM pg_stat_activity WHERE $which");
}

my %away;
my @faults = (
	[ 'primary: flushes held', sub { hold_flushes_for($_[0], $_[2]) } ],
	[ 'primary: slow flushes', sub { slow_flushes_for($_[0], $_[2]) } ],
	[ 'standby: flushes held', sub { hold_flushes_for($_[1], $_[2]) } ],
	[ 'standby: slow flushes', sub { slow_flushes_for($_[1], $_[2]) } ],
	[ 'standby: receiver stopped', sub { stop_processes($_[1], $_[2], 'walreceiver') } ],
	[ 'standby: replay stopped', sub { stop_processes($_[1], $_[2], 'startup') } ],
	[ 'standby: away', sub { $_[1]->stop(one_of('immediate', 'fast')); $away{ $_[1]->name } = 1 } ],
	[ 'primary: another clock', sub { set_clock($_[0], clock_around_base()) } ],
	[ 'primary: sender terminated', sub { for_clients($_[0], 'pg_terminate_backend', "backend_type = 'walsender'") } ],
	[ 'some statements cancelled', sub { for_clients($_[0], 'pg_cancel_backend', "application_name = 'client' AND random() < 0.5") } ],
	[ 'all statements cancelled', sub { for_clients($_[0], 'pg_cancel_backend', "application_name = 'client'") for (1 .. 5) } ],
	[ 'no synchronous standby any more', sub { set_standby($_[0], ''); $_[0]->reload } ]);

sub bring_back
{
	my ($standby) = @_;

	start_server($standby) if delete $away{ $standby->name };
	return;
}

# What clients are at, each statement of each session: a hash.
sub statements
{
	my ($server) = @_;
	my $list = $server->safe_psql('postgres',
		"SELECT pid || ' ' || query_start || ' ' || query || ' ' || coalesce(wait_event, '') FROM pg_stat_activity WHERE application_name = 'client' AND state = 'active'");

	return map { /^(\d+ \S+ \S+)(.*)/ ? ($1 => $2) : () } split(/\n/, $list);
}

# Once all faults are taken back, no statement goes on for ever.  Those that did.
sub statements_without_end
{
	my ($primary, $standby) = @_;
	my $end = time() + $patience_s;
	my %waiting;

	# who waits for the clock needs one that is as far ahead as any was
	set_clock($primary, latest_clock());
	bring_back($standby);
	$counts{'checks that all statements end'}++;
	for (%waiting = statements($primary); %waiting && time() < $end; sleep(0.05))
	{
		my %now = statements($primary);

		delete @waiting{ grep { !exists $now{$_} } keys %waiting };
	}
	return join('', map { "$_$waiting{$_} does not end\n" } sort keys %waiting);
}

# Some faults.  Returns what was wrong when they had been taken back, if they were.
sub make_faults
{
	my ($primary, $standby) = @_;
	# all is drawn before anything depends on how fast the servers are
	my @plan = map { [ one_of(@faults), seconds(), rand(0.5), rand() < 0.5 ] } (0 .. int(rand(4)));
	my $check = rand() < 0.4;
	my $pause = rand(1.5);

	$counts{'rounds with faults'}++;
	foreach my $fault (@plan)
	{
		my ($what, $seconds, $before, $ahead) = @{$fault};

		# who is away cannot be told anything
		next if $away{ $standby->name } && $what->[0] =~ /^standby/;
		sleep($before);
		$counts{ $what->[0] }++;
		$what->[1]->($primary, $standby, $seconds);
		next if !$ahead;
		$clock_base += 20;
		set_clock($primary, latest_clock());
		$counts{'primary: clock far ahead'}++;
	}
	return statements_without_end($primary, $standby) if $check;
	sleep($pause);
	return '';
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
	draw_standby($old, $new);
	append_to_file("$data/standby.signal", '');
	start_server($old);
	return;
}

# One run.  Writes what happened to a file, a line for each test.
sub run_promotions
{
	my ($how, $report, $primary, $standby) = @_;
	my ($rows, $set_right) = (0, 0);

	draw_standby($primary, $standby);
	start_server($primary);
	$standby->enable_streaming($primary);
	$primary->enable_streaming($standby);
	unlink($primary->data_dir . '/standby.signal');
	draw_standby($standby, $primary);
	start_server($standby);

	foreach my $round (1 .. $promotions)
	{
		my $name = "$how, promotion $round";
		my $has_faults = rand() < $rounds_with_faults;
		my @clients = start_clients($primary, $round, $has_faults ? 4 : 1);
		my $log = $clients[0]{log};
		my $end = one_of('kill -9', 'immediate', 'fast');

		# if it refuses, all have their IDs once its clock is as far ahead as any was
		for my $look (1 .. 1000)
		{
			last if -s "$log.ids";
			if ($look == 30)
			{
				set_clock($primary, latest_clock());
				$set_right++;
			}
			sleep(0.01);
		}
		# however slow the machine is
		$standby->poll_query_until('postgres', "SELECT count(*) > $rows FROM ids") if !$has_faults;
		sleep(rand(0.15));
		set_clock($primary, clock_around_base()) if rand() < 0.5;
		sleep(rand(0.15));
		set_clock($standby, clock_around_base()) if rand() < 0.5;
		my $endless = $has_faults ? make_faults($primary, $standby) : '';
		$end eq 'kill -9' ? kill_server($primary) : $primary->stop($end);
		bring_back($standby);
		$standby->promote;
		my $synchronous = $synchronous{ $primary->name };
		my $errors = $endless . finish_clients($synchronous, @clients);

		$counts{'rounds with a synchronous standby'}++ if $synchronous;
		$counts{'statements without an end'} += $endless =~ tr/\n//;
		my ($wrong, $count) = split(/\|/, $standby->safe_psql('postgres', 'SELECT wrong_nodes(), count(*) FROM ids'));
		# a standby that was slow or away may have none of the round
		my $enough = $count > $rows || $has_faults && $count == $rows;
		my $ok = $wrong eq '' && $errors eq '' && $enough ? 'ok' : "wrong: $wrong, rows: $rows, then $count $errors" =~ s/\s+/ /gr;
		append_to_file($report, "$ok|$name, after $end: all rows in order, more of them\n");
		$rows = $count;
		follow($primary, $standby, $how) if $round < $promotions;
		($primary, $standby) = ($standby, $primary);
	}
	my $again = $primary->safe_psql('postgres', 'SELECT count(*) - count(DISTINCT id) FROM ids');
	append_to_file($report,
		($again ? "$again twice" : 'ok') . "|$how: no ID of a row twice\n"
		. "note|$how: $rows rows, clock set right $set_right times; $received IDs received, $replicated of them replicated, $twice that were not came again\n"
		. join('', map { "note|$how: $_: $counts{$_}\n" } sort keys %counts)
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
	my @servers = map { copy_server($template, "${how}_$_", backup => 'with_try_give', clock => clock_around_base()) } (1, 2);

	make_disk($_) or note('there is no compiler') foreach (@servers);
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
