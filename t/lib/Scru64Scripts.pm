# The scripts of an extension, in sql/ or realm/sql/: a base script, NAME--1.0.sql, and what each later version
# changes, NAME--1.0--1.1.sql.

package Scru64Scripts;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(scripts_of versions_of);

# The paths, in the order in which CREATE EXTENSION runs the scripts
sub paths_of
{
	my ($top, $name) = @_;
	my @paths = glob("$top/{,realm/}sql/$name--*.sql");
	my %place = map { $_ => /(\d+)\.(\d+)\.sql$/ ? $1 * 1000 + $2 : die "$_ has no version\n" } @paths;

	@paths = sort { $place{$a} <=> $place{$b} } @paths;
	return @paths;
}

# Their text, as one
sub scripts_of
{
	my $text = '';

	foreach my $path (paths_of(@_))
	{
		open(my $file, '<', $path) or die "could not open $path: $!\n";
		local $/ = undef;
		$text .= <$file>;
	}
	return $text;
}

# The versions that they make, each from the one before; none after a missing step
sub versions_of
{
	my @versions;

	foreach my $path (paths_of(@_))
	{
		my ($from, $to) = $path =~ /--(?:([\d.]+)--)?(\d+\.\d+)\.sql$/;

		last if ($from // '') ne ($versions[-1] // '');
		push @versions, $to;
	}
	return @versions;
}

1;
