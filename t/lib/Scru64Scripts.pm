# The scripts of an extension, in sql/: a base script, NAME--1.0.sql, and what each later version
# changes, NAME--1.0--1.1.sql.  The realm's are put together of what is in realm/sql/: the current text
# of each function, and what each later version changes else, 1.0--1.1.sql.

package Scru64Scripts;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(realm_functions versions_of);

# The paths, in the order in which CREATE EXTENSION runs the scripts
sub paths_of
{
	my ($top, $name) = @_;
	my @paths = $name eq 'scru64_realm' ? glob("$top/realm/sql/[0-9]*--*.sql") : glob("$top/sql/$name--*.sql");
	my %place = map { $_ => /(\d+)\.(\d+)\.sql$/ ? $1 * 1000 + $2 : die "$_ has no version\n" } @paths;

	@paths = sort { $place{$a} <=> $place{$b} } @paths;
	return @paths;
}

# The realm's functions
sub realm_functions
{
	my ($top) = @_;
	my $path = "$top/realm/sql/functions.sql";

	open(my $file, '<', $path) or die "could not open $path: $!\n";
	local $/ = undef;
	return scalar(<$file>);
}

# The versions that they make, each from the one before; none after a missing step
sub versions_of
{
	my @versions = $_[1] eq 'scru64_realm' ? '1.0' : ();

	foreach my $path (paths_of(@_))
	{
		my ($from, $to) = $path =~ m{(?:--|/)(?:([\d.]+)--)?(\d+\.\d+)\.sql$};

		last if ($from // '') ne ($versions[-1] // '');
		push @versions, $to;
	}
	return @versions;
}

1;
