# A server's clock, which set_clock.c sets or stops.

package Scru64Clock;

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter 'import';
use Fcntl qw(O_CREAT O_WRONLY);
use Scru64Files;
use Scru64Test;

our @EXPORT = qw(can_set_clock clock_library set_clock stop_clock);

my $library;

sub can_set_clock
{
	$library //= compile_library('set_clock', abs_path(PostgreSQL::Test::Utils::tempdir())) // '';
	return $library ne '';
}

# The library, once it is compiled
sub clock_library
{
	can_set_clock() or die 'no clock can be set';
	return $library;
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

1;
