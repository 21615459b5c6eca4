# Chance, for the tests that go by it.

package Scru64Random;

use strict;
use warnings;

use Exporter 'import';
use List::Util qw(sum);
use Test::More;

our @EXPORT = qw(chance one_by_weight one_of random_clock seed_random);

# SCRU64_SEED has all happen again, as far as chance is concerned.
sub seed_random
{
	my $seed = int($ENV{SCRU64_SEED} || time() % 1_000_000_007);

	srand($seed);
	diag("SCRU64_SEED=$seed") if !$ENV{SCRU64_SEED};
	return $seed;
}

sub chance { return rand() < $_[0] }
sub one_of { return $_[ rand(@_) ] }

# One of some [ weight, ... ].
sub one_by_weight
{
	my (@entries) = @_;
	my $at = rand(sum(map { $_->[0] } @entries));

	foreach my $entry (@entries)
	{
		return $entry if ($at -= $entry->[0]) < 0;
	}
	die 'no weight';
}

# A clock that is off by up to a second, a day, or anything between.
sub random_clock
{
	return sprintf('%+.1f', (2 * rand() - 1) * one_of(1, 3, 8, 15, 60, 3600, 86400));
}

1;
