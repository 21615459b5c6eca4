# A server's disk on which flushes of the WAL can be held, by hold_flush.c.

package Scru64Disk;

use strict;
use warnings;

use Exporter 'import';
use Scru64Files;
use Scru64Test;

our @EXPORT = qw(flushes_of hold_flushes hold_flushes_for make_disk release_flushes slow_flushes_for wait_for_flush);

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

1;
