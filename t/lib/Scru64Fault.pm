# What the tests with faults need: servers whose clock can be set and whose disk is slow, and copies
# of them; kill -9; a debugger; clients that log every ID as they receive it; and the file that holds
# the ceiling.

package Scru64Fault;

use Cwd qw(abs_path);
use Exporter 'import';
use Fcntl qw(O_CREAT O_WRONLY);
use Scru64Test;

our @EXPORT = qw(
	$give_sql add_standby attach_gdb can_set_clock catch_up compile_library copy_server crash end_load finish_load flushes_of give
	has_gdb has_stopped hold_flushes hold_flushes_for issues_ok kill_server leave_behind
	let_go log_counts logged make_disk make_template number_of_ids page_file record_ids record_load record_problems
	refused_ok release_flushes replace_file run_again set_clock set_load slow_flushes_for soon start_load start_server
	stop_at stop_clock try_node wait_for_flush wait_for_wal_writer with_clock
);


#
# Files
#

# Who reads the file meanwhile sees the old or the new one.
sub replace_file
{
	my ($path, $text) = @_;

	unlink("$path.new");
	append_to_file("$path.new", $text);
	rename("$path.new", $path) or die "could not rename $path.new: $!";
	return;
}

#
# The server and its clock
#

# Compile a library that a server loads before its own: a file of the modules' folders, or the text of
# one.  Returns its path, or nothing if there is no compiler, or if the server cannot load the
# library, as a server that is built with the address sanitizer.
sub compile_library
{
	my ($name, $dir, $text) = @_;
	my $library = "$dir/$name.so";
	my ($source) = defined $text ? "$dir/$name.c" : grep { -e } map { "$_/$name.c" } @INC;

	append_to_file($source, $text) if defined $text;
	my $status = system('cc', '-shared', '-fPIC', '-o', $library, $source);
	my $errors = '';

	return if $status == -1;
	die "could not compile $name.c" if $status != 0;

	local $ENV{LD_PRELOAD} = $library;
	# ld.so ignores a library that it cannot load, and prints an error
	return $library if IPC::Run::run([ 'postgres', '--version' ], '>', '/dev/null', '2>', \$errors) && $errors eq '';
	unlink($library);
	return;
}

my $clock_library;

sub can_set_clock
{
	$clock_library //= compile_library('set_clock', abs_path(PostgreSQL::Test::Utils::tempdir())) // '';
	return $clock_library ne '';
}

# Write the number that set_clock.c reads.
sub write_clock
{
	my ($node, $number) = @_;

	sysopen(my $file, $node->basedir . '/clock', O_WRONLY | O_CREAT) or die "could not open a clock: $!";
	syswrite($file, pack('q', $number)) == 8 or die "could not set a clock: $!";
	close($file);
	return;
}

# Set the server's clock to the machine's plus so many seconds.  Before the server is started for
# the first time, too.
sub set_clock
{
	my ($node, $seconds) = @_;

	return write_clock($node, 2 * sprintf('%.0f', $seconds * 1e6));
}

# Have the clock of a server stand still at a time, in seconds since 1970.
sub stop_clock
{
	my ($node, $time) = @_;

	return write_clock($node, 2000 * sprintf('%.0f', $time * 1000) + 1);
}

# Run something that starts a server or its programs, with the server's own clock if
# one was set.  set_monotonic: the clock that measures how long something takes is
# set, too; it must not go back while the server is up.
sub with_clock
{
	my ($node, $code, %params) = @_;
	my $clock = $node->basedir . '/clock';
	my $hold = $node->basedir . '/hold_flush.so';

	local %ENV = %ENV;
	$ENV{LD_PRELOAD} = '';
	if (-e $hold)
	{
		$ENV{LD_PRELOAD} = $hold;
		$ENV{HOLD_FLUSH} = $node->basedir . '/hold_flush';
	}
	if (-e $clock)
	{
		can_set_clock() or die 'no clock can be set';
		$ENV{LD_PRELOAD} .= " $clock_library";
		$ENV{SET_CLOCK} = abs_path($clock);
		$ENV{SET_CLOCK_MONOTONIC} = 1 if $params{set_monotonic};
	}
	return $code->();
}

#
# The server's disk
#

# Give a server that is stopped a disk on which flushes of the WAL can be held.  False
# if compile_library() returns nothing.
sub make_disk
{
	my ($node) = @_;

	$node->append_conf('postgresql.conf', "fsync = on\nwal_sync_method = fdatasync");
	return defined compile_library('hold_flush', $node->basedir);
}

# From here on no flush ends until they are released.
sub hold_flushes
{
	my ($node) = @_;

	unlink($node->basedir . '/hold_flush.log');
	append_to_file($node->basedir . '/hold_flush', '');
	return;
}

sub release_flushes
{
	my ($node) = @_;

	unlink($node->basedir . '/hold_flush') or die "could not release flushes: $!";
	return;
}

# Something that a shell does after so many seconds, whatever the test waits for then.
sub soon
{
	my ($seconds, $command) = @_;

	system("(sleep $seconds; $command) </dev/null >/dev/null 2>&1 &") == 0 or die 'no shell';
	return;
}

# From here on flushes are held, or take some milliseconds longer, for so many seconds.
sub hold_flushes_for
{
	my ($node, $seconds, $ms) = @_;
	my $file = $node->basedir . '/hold_flush';

	replace_file($file, defined $ms ? "$ms\n" : '');
	soon($seconds, "rm -f '$file'");
	return;
}

sub slow_flushes_for
{
	my ($node, $seconds) = @_;

	return hold_flushes_for($node, $seconds, 10 + int(rand(500)));
}

# How often a process has wanted a flush since they were held.
sub flushes_of
{
	my ($node, $pid) = @_;
	my $log = $node->basedir . '/hold_flush.log';

	return scalar(grep { $_ eq $pid } split("\n", -e $log ? slurp_file($log) : ''));
}

# Wait until one of some processes does.
sub wait_for_flush
{
	my ($node, @pids) = @_;

	return wait_until(sub { return (grep { flushes_of($node, $_) > 0 } @pids)[0] }, 0.01) || die 'no flush';
}

# Start a server.  After a crash the old processes may need a moment to go.
sub start_server
{
	my ($node, %params) = @_;

	wait_until(
		sub {
			return 1 if with_clock($node, sub { $node->start(fail_ok => 1) }, %params);
			# a start that failed must not be taken for a running server
			$node->stop('fast', fail_ok => 1);
			return 0;
		}) or die 'could not start ' . $node->name;
	return;
}

# kill -9 of the postmaster.  The other processes need a moment to go, and a start would
# wait for them for longer.
sub kill_server
{
	my ($node) = @_;
	my $data = abs_path($node->data_dir);

	$node->kill9;
	wait_until(sub { return !grep { (readlink("$_/cwd") || '') eq $data } glob('/proc/[0-9]*') }, 0.01);
	# some containers let the dead wait for a second, and these files name one
	unlink("$data/postmaster.pid", $node->host . '/.s.PGSQL.' . $node->port . '.lock');
	return;
}

# Wait until a server's WAL writer waits.  One that begins when the postmaster is dead fails an
# assertion of PostgreSQL, where there are assertions.
sub wait_for_wal_writer
{
	my ($node) = @_;

	$node->poll_query_until('postgres', "SELECT true FROM pg_stat_activity WHERE backend_type = 'walwriter' AND wait_event IS NOT NULL")
	  or die 'there is no WAL writer';
	return;
}

# kill -9 of a session, or of this process, of a server that restarts after crashes.  Returns when
# the server has started all its processes anew.
sub crash
{
	my ($node, $pid) = @_;
	my $session = open_session($node);
	my $anew = 'pid FROM pg_stat_activity WHERE backend_type = $$checkpointer$$';
	my $checkpointer = $session->query_safe("SELECT $anew");

	kill('KILL', $pid || $session->{pid}) or die "could not kill a process: $!";
	$session->{run}->finish;
	$node->poll_query_until('postgres', "SELECT $checkpointer <> $anew") or die 'the server does not restart';
	return;
}

#
# The debugger
#

sub has_gdb
{
	return system('gdb --version >/dev/null 2>&1') == 0;
}

# Attach gdb to a process of a server.  Returns when gdb has run the first commands; gdb continues
# with the others, and leaves the process.
sub attach_gdb
{
	my ($node, $pid, $first, @then) = @_;
	my $file = $node->basedir . "/gdb_$pid";
	my @commands = (
		(map { "handle $_ nostop noprint pass" } qw(SIGHUP SIGUSR1)),
		@{$first}, "shell touch $file.attached", @then, 'detach');
	my $run = IPC::Run::start([ 'gdb', '-batch', '-nx', '-p', $pid, map { ('-ex', $_) } @commands ], '<', '/dev/null', '>&', "$file.log");

	wait_until(sub { -e "$file.attached" }, 0.1);
	return { file => $file, run => $run };
}

# Have a process stop at one of these places: has_stopped() waits until the process has stopped,
# and let_go() lets the process continue, and is false if it never came to a place.
sub stop_at
{
	my ($node, $pid, @places) = @_;
	my $file = $node->basedir . "/gdb_$pid";

	return attach_gdb($node, $pid, [ map { "break $_" } @places ],
		'continue', "shell touch $file.stopped; while [ -e $file.attached ]; do sleep 0.05; done");
}

sub has_stopped
{
	my ($gdb) = @_;

	return wait_until(sub { -e "$gdb->{file}.stopped" }, 0.1);
}

sub let_go
{
	my ($gdb) = @_;

	unlink("$gdb->{file}.attached", "$gdb->{file}.stopped");
	$gdb->{run}->finish;
	return slurp_file("$gdb->{file}.log") =~ /^Breakpoint \d+, /m;
}

#
# Copies of a server
#

# For create_extension(): a table for IDs, and functions that put IDs into it and return them
our $give_sql = q(
CREATE TABLE ids (n bigserial, node text, id scru64);

CREATE FUNCTION give(spec text, count integer) RETURNS SETOF scru64
LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('scru64.node_spec', true) IS DISTINCT FROM spec THEN
		PERFORM set_config('scru64.node_spec', spec, false);
	END IF;
	RETURN QUERY INSERT INTO ids (node, id) SELECT spec, g FROM scru64_generate(count) g
		RETURNING id;
END
$$;

-- IDs until the node is as far ahead of the clock as it may be
CREATE FUNCTION make_busy(spec text) RETURNS SETOF scru64
LANGUAGE plpgsql AS $$
BEGIN
	LOOP
		RETURN QUERY SELECT give(spec, 8);
		EXIT WHEN (SELECT lead > current_setting('scru64.rollback_allowance')::interval - interval '0.6 s'
				   FROM scru64_generators() WHERE node_id || '/' || node_id_size = spec);
	END LOOP;
END
$$;

-- the nodes whose rows have an ID twice, or out of order
CREATE FUNCTION wrong_nodes() RETURNS text
LANGUAGE sql AS $$
	SELECT coalesce(string_agg(DISTINCT node, ' '), '')
	FROM (SELECT node, id <= lag(id) OVER (PARTITION BY node ORDER BY n) AS wrong FROM ids) i
	WHERE wrong
$$;
);

# A server with the extension that was stopped, from which others are made: cheaper
# than a base backup, and each may be a standby of another.
sub make_template
{
	my ($name, %params) = @_;
	my $node = new_node($name, %params);

	$node->append_conf(
		'postgresql.conf', qq(
wal_keep_size = 256MB
bgwriter_delay = 10s
max_prepared_transactions = 10
restart_after_crash = on
)) if $params{allows_streaming};
	start_server($node);
	create_extension($node, $give_sql);
	$node->stop;
	$node->backup_fs_cold('cold');
	return $node;
}

# A server from a backup, with a clock and lines in its configuration if it is to have them, not started.
sub copy_server
{
	my ($from, $name, %params) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init_from_backup($from, $params{backup} || 'cold');
	set_clock($node, $params{clock}) if defined $params{clock};
	$node->append_conf('postgresql.conf', $params{lines}) if defined $params{lines};
	return $node;
}

# The same, and it is a standby that follows another server.
sub add_standby
{
	my ($from, $primary, $name, %params) = @_;
	my $node = copy_server($from, $name, %params);

	$node->enable_streaming($primary);
	start_server($node);
	return $node;
}

# Wait until standbys have replayed all WAL that the primary has flushed: they get no other.  The
# WAL writer of a server whose clock stands still writes WAL, and does not flush it.
sub catch_up
{
	my ($primary, @standbys) = @_;
	my $lsn = $primary->lsn('flush');

	foreach my $standby (@standbys)
	{
		$standby->poll_query_until('postgres', "SELECT pg_last_wal_replay_lsn() >= '$lsn'")
		  or die $standby->name . ' does not catch up';
	}
	return;
}

# A standby has what there is, and gets nothing from here on.
sub leave_behind
{
	my ($primary, $standby) = @_;

	catch_up($primary, $standby);
	$standby->safe_psql('postgres', "ALTER SYSTEM SET primary_conninfo = ''; SELECT pg_reload_conf()");
	$primary->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM pg_stat_replication WHERE application_name = '" . $standby->name . "'")
	  or die $standby->name . ' still follows';
	return;
}

#
# Clients
#

# Statements that one client goes through: single IDs, and sets of them, at once
# and row by row.  About 1,000 IDs a second: what a test needs is that sessions generate
# IDs when something happens.  The pause is the client's: pg_sleep() goes by the clock
# that tests set, and sleeps for a year if that is set back by one meanwhile.
my $statements =
	"SELECT scru64_generate();\n" x 100
  . "SELECT scru64_generate(100);\n"
  . "COPY (SELECT scru64_generate(100)) TO STDOUT;\n"
  . "\\! exec sleep 0.3\n";
my $load_script;
my $loads = 0;

# Have a shell run a command again and again, whatever happens to it, as long as there is a file.
# The end makes the file $base.done.
sub run_again
{
	my ($base, $file, $command) = @_;

	system("(while [ -e '$file' ] && kill -0 $$; do $command & echo \$! >'$base.pid'; wait \$!; sleep 0.2; done; touch '$base.done')"
		  . " </dev/null >/dev/null 2>'$base.err' &") == 0 or die 'no shell';
	return;
}

# Other statements for the loads to come
sub set_load
{
	my ($dir, $sql) = @_;

	$load_script = "$dir/load.sql";
	replace_file($load_script, $sql);
	return;
}

# Let sessions generate IDs of nodes, each session into a log of its own, and
# return when each has some.  Nodes: spec => number of sessions.
sub start_load
{
	my ($node, %sessions) = @_;
	my @clients;

	set_load($node->basedir, "SET scru64.node_spec = :'node';\n" . $statements x 1000) if !defined $load_script;
	$loads++;
	foreach my $spec (sort keys %sessions)
	{
		foreach my $n (1 .. $sessions{$spec})
		{
			my $log = $node->basedir . "/load_${loads}_" . scalar(@clients);
			my $run = IPC::Run::start(
				[
					'psql', '-XAtq', '-v', "node=$spec", '-f', $load_script, '-d',
					$node->connstr('postgres') . ' application_name=load'
				],
				'<', '/dev/null', '>', "$log.ids", '2>', "$log.err");
			push @clients, { spec => $spec, log => $log, run => $run };
		}
	}

	foreach my $client (@clients)
	{
		wait_until(sub { -s "$client->{log}.ids" }, 0.01) or die "no ID of $client->{spec}: " . slurp_file("$client->{log}.err");
	}
	return { node => $node, clients => \@clients };
}

# Wait until the clients of a load have lost their server.
sub finish_load
{
	my ($load) = @_;

	$_->{run}->finish foreach (@{ $load->{clients} });
	return;
}

# End a load whose server lives on.
sub end_load
{
	my ($load) = @_;

	$load->{node}->safe_psql('postgres',
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'load'");
	finish_load($load);
	return;
}

#
# IDs that clients have received
#
# A record has for each node spec all IDs that were received, the greatest of
# them, and what was wrong.
#

sub log_counts
{
	my ($record) = @_;

	return join(', ', map { "$_: " . number_of_ids($record, $_) } sort keys %{$record});
}

sub number_of_ids
{
	my ($record, $spec) = @_;

	return scalar(keys %{ $record->{$spec}{ids} });
}

# Add what sessions have received at the same time, each in its order, after everything that is
# recorded.  An ID that is there twice, or is not above those before, is a problem.
sub record_ids
{
	my ($record, $spec, @sessions) = @_;
	my $of_node = $record->{$spec} ||= { ids => {}, greatest => '', problems => [] };
	my $known = $of_node->{greatest};

	foreach my $session (@sessions)
	{
		my $previous = $known;

		foreach my $id (@{$session})
		{
			push @{ $of_node->{problems} }, "$id of $spec twice" if $of_node->{ids}{$id}++;
			push @{ $of_node->{problems} }, "$id of $spec after $previous" if $id le $previous;
			$previous = $id;
			$of_node->{greatest} = $id if $id gt $of_node->{greatest};
		}
	}
	return;
}

# Add the logs of a load.  Returns what the clients have written to stderr
# except for the loss of the connection.
sub record_load
{
	my ($record, $load) = @_;
	my %sessions;
	my $errors = '';

	foreach my $client (@{ $load->{clients} })
	{
		my @lines = split(/\n/, slurp_file("$client->{log}.ids"));
		my @ids = grep { /^[0-9a-z]{12}$/ } @lines;

		die "$client->{log}.ids has other lines than IDs" if @ids != @lines;
		push @{ $sessions{ $client->{spec} } }, \@ids;

		foreach my $line (split(/\n/, slurp_file("$client->{log}.err")))
		{
			$errors .= "$line\n"
			  if $line !~
			  /terminating connection|server closed the connection|connection to server was lost|terminated abnormally|before or while processing|commanded this server process|another server process exited|corrupted shared memory|reconnect to the database|no connection to the server/;
		}
	}
	record_ids($record, $_, @{ $sessions{$_} }) foreach (sort keys %sessions);
	return $errors;
}

# Everything that was wrong so far, the first few; and forget it.
sub record_problems
{
	my ($record) = @_;
	my @problems;

	foreach my $spec (sort keys %{$record})
	{
		push @problems, @{ $record->{$spec}{problems} };
		$record->{$spec}{problems} = [];
	}
	splice(@problems, 5) if @problems > 5;
	return join("\n", @problems);
}

#
# Nodes, each time in a session of its own
#

# The IDs and the errors that the session gets.  Parameters: count, and those of open_session().
sub try_node
{
	my ($node, $spec, %params) = @_;
	my $session = open_session($node, %params);
	my ($out, $err) = try_statement($session,
		"SET statement_timeout = '20s'; SET scru64.node_spec = '$spec'; SELECT scru64_generate(" . ($params{count} || 1) . ')');

	$session->quit;
	return ($out, $err);
}

# The session gets no ID, and this error, which is returned.
sub refused_ok
{
	my ($node, $spec, $error, $name) = @_;
	my ($out, $err) = try_node($node, $spec);

	is($out, '', "$name: no ID of $spec");
	like($err, $error, "$name: the error of $spec");
	return $err;
}

# The session gets IDs, above all of the node in a record, and no error but the ignored one.
sub issues_ok
{
	my ($node, $record, $spec, $name, %params) = @_;
	my ($out, $err) = try_node($node, $spec, %params);

	$err =~ s/$params{ignored}// if $params{ignored};
	is($err, '', "$name: IDs of $spec");
	record_ids($record, $spec, [ split(/\n/, $out) ]);
	is(record_problems($record), '', "$name: above all before");
	return;
}

#
# IDs in rows
#

# IDs of a node, as rows of the table.
sub give
{
	my ($node, $spec, $count) = @_;

	return split(/\n/, $node->safe_psql('postgres', "SELECT give('$spec', $count)"));
}

#
# The page
#

sub page_file
{
	my ($node) = @_;

	return $node->data_dir . '/global/9864';
}

# Lines of the log that match.
sub logged
{
	my ($node, $pattern) = @_;

	return grep { /$pattern/ } split(/\n/, slurp_file($node->logfile));
}

1;
