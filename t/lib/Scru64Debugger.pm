# gdb, which stops a process of a server at a place.

package Scru64Debugger;

use strict;
use warnings;

use Exporter 'import';
use Scru64Test;

our @EXPORT = qw(attach_gdb has_gdb has_stopped let_go stop_at);

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

1;
