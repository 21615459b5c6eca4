# Servers that start with a clock and a disk of their own and may be killed, their log, and the file that
# holds the ceiling.

package Scru64Server;

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter 'import';
use Scru64Clock;
use Scru64Test;

our @EXPORT = qw(crash kill_server logged page_file start_server wait_for_wal_writer with_clock);

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
		$ENV{LD_PRELOAD} .= ' ' . clock_library();
		$ENV{SET_CLOCK} = abs_path($clock);
		$ENV{SET_CLOCK_MONOTONIC} = 1 if $params{set_monotonic};
	}
	return $code->();
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
	wait_until(sub { look_at($node, 'postgres', "SELECT $checkpointer <> $anew") eq 't' }) or die 'the server does not restart';
	return;
}

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
