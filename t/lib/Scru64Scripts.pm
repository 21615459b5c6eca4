# The scripts of an extension, in sql/: a base script, NAME--1.0.sql, and what each later version
# changes, NAME--1.0--1.1.sql.  The realm's are put together of what is in realm/sql/: the current text
# of each function and view, and what each later version changes else, 1.0--1.1.sql.  And what those
# may do.

package Scru64Scripts;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(not_allowed_statements realm_functions versions_of);

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

#
# An update of scru64_realm runs as the bootstrap superuser, and all that it meets belongs to a role
# that may be none: tables with triggers, constraints and defaults, functions and views.  So it may
# only do what runs nothing of this.  What is not in these lists is refused, also where it would do
# no harm.
#

my $name = qr/scru64_realm(?:_internal)?\.\w+/;
my $type = qr/(?:bigint|boolean|bytea|date|int4range|integer|interval|jsonb|name|numeric|scru64|smallint|text|timestamptz|tstzrange|uuid)(?:\[\])?/;
my $constant = qr/(?:NULL|true|false|-?\d+|'')/;
my $of_table = qr/ADD (?:COLUMN )?\w+ $type(?: NOT NULL| DEFAULT $constant){0,2}|ALTER (?:COLUMN )?\w+ (?:SET DEFAULT $constant|DROP DEFAULT|DROP NOT NULL)/;

# With '' for a text, $$ for one in dollars, () for what is in parentheses.  What each version
# changes of tables, 1.0--1.1.sql:
my @steps = (
	qr/CREATE TABLE $name ?\(\)/,
	qr/CREATE SEQUENCE $name(?: [\w ]+)?/,
	qr/CREATE TYPE $name AS (?:ENUM )?\(\)/,
	qr/ALTER TABLE $name $of_table(?:, $of_table)*/,
	qr/COMMENT ON (?:COLUMN|TABLE|SEQUENCE|TYPE) $name(?:\.\w+)? IS (?:''|NULL)/,
	qr/DROP (?:FUNCTION|VIEW) IF EXISTS $name ?(?:\(\))?/);

# The functions and views, which each update replaces:
my @definitions = (
	qr/SET LOCAL search_path = scru64_realm_internal, scru64_realm, pg_temp/,
	qr/CREATE OR REPLACE (?:FUNCTION [\w.]+ ?\(\)|VIEW [\w.]+) .*/,
	qr/COMMENT ON (?:COLUMN|FUNCTION|VIEW) [\w.]+ ?(?:\(\) )?IS ''/);

# The statements of a script, [as it stands, simplified].  CREATE FUNCTION goes on to the END of its
# BEGIN ATOMIC.
sub statements_of
{
	my ($text) = @_;
	my ($raw, $simple, $depth) = ('', '', 0);
	my @statements;

	while ($text =~ /\G(?:(--\N*|\/\*.*?\*\/|\s+)|('(?:[^'\\]|'')*')|(\$([A-Za-z]*)\$.*?\$\g{-1}\$)|([A-Za-z_][\w\$]*)|.)/gs)
	{
		my ($token, $blank, $literal, $dollars, $word) = ($&, $1, $2, $3, $5 // '');

		$raw .= $token;
		$simple .= defined $blank ? ' ' : defined $literal ? "''" : defined $dollars ? '$$' : $token;
		$depth++ if $simple =~ /^ *CREATE\b/i && $word =~ /^(?:ATOMIC|CASE)$/i;
		$depth-- if $depth && $word =~ /^END$/i;
		next if $depth || $token ne ';';
		push @statements, [ $raw, $simple ];
		$raw = $simple = '';
	}
	return (@statements, [ $raw, $simple ]);
}

# The statements of one of these files that are not allowed in it, each on a line.  Names in quotes,
# and texts with a backslash, which settings of a session change, are not, either.
sub not_allowed_statements
{
	my ($path, $text) = @_;
	my @allowed = $path =~ /--/ ? @steps : @definitions;
	my @found;

	foreach my $statement (statements_of($text))
	{
		my ($raw, $simple) = @{$statement};

		next if $simple =~ /^ *$/;
		$simple =~ s/(\((?:[^()]|(?1))*\))/()/g if $simple !~ /^ *SELECT\b/i;
		$simple =~ s/\s+/ /g;
		$simple =~ s/^ | ?;$//g;
		push @found, $raw =~ s/\s+/ /gr =~ s/^ //r
		  if $simple =~ /["\\]|[^ -~]/ || !grep { $simple =~ /^$_$/i } @allowed;
	}
	return @found;
}

1;
