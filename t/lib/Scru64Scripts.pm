# The scripts of an extension, in sql/: a base script, NAME--1.0.sql, and what each later version
# changes, NAME--1.0--1.1.sql; and what an update script of the realm may do.

package Scru64Scripts;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(not_allowed_statements scripts_of versions_of);

# The paths, in the order in which CREATE EXTENSION runs the scripts
sub paths_of
{
	my ($top, $name) = @_;
	my @paths = glob("$top/sql/$name--*.sql");
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

#
# An update script of scru64_realm runs as the bootstrap superuser, and all that it meets belongs to
# a role that may be none: tables with triggers, constraints and defaults, functions and
# views.  So it may only do what runs nothing of this.  What is not
# in this list is refused, also where it would do no harm.
#

my $name = qr/scru64_realm(?:_internal)?\.\w+/;
my $type = qr/(?:bigint|boolean|bytea|date|int4range|integer|interval|jsonb|name|numeric|scru64|smallint|text|timestamptz|tstzrange|uuid)(?:\[\])?/;
my $constant = qr/(?:NULL|true|false|-?\d+|'')/;
my $of_table = qr/ADD (?:COLUMN )?\w+ $type(?: NOT NULL)?(?: DEFAULT $constant)?|ALTER (?:COLUMN )?\w+ (?:SET DEFAULT $constant|DROP DEFAULT|DROP NOT NULL)/;
my $created = qr/(?:FUNCTION|TABLE|VIEW|SEQUENCE|TYPE)/;

# With '' for a text, $$ for one in dollars, () for what is in parentheses
my @allowed = (
	qr/CREATE (?:OR REPLACE )?FUNCTION $name ?\(\) .*/,
	qr/CREATE (?:OR REPLACE )?VIEW $name .*/,
	qr/CREATE TABLE $name ?\(\)/,
	qr/CREATE SEQUENCE $name(?: [\w ]+)?/,
	qr/CREATE TYPE $name AS (?:ENUM )?\(\)/,
	qr/ALTER TABLE $name $of_table(?:, $of_table)*/,
	qr/ALTER FUNCTION $name ?\(\) (?:RE)?SET .*/,
	qr/ALTER $created $name ?(?:\(\))? ?OWNER TO \@extowner\@/,
	qr/COMMENT ON (?:COLUMN|$created) $name(?:\.\w+| ?\(\))? IS (?:''|NULL)/,
	qr/DROP (?:FUNCTION|VIEW) $name ?(?:\(\))?/,
	qr/SELECT pg_catalog\.pg_extension_config_dump\('', ''\)/,
	qr/(?:GRANT|REVOKE) [\w ,()]+ ON (?:FUNCTION |TABLE )?[\w., ()]+ (?:TO|FROM) [\w\@, ]+/);

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

# The block that gives what a script has created to the owner of the extension, and to no other
# role: with empty lists in place of what it is for
sub without_names
{
	my ($block) = @_;

	return $block =~ s/\bARRAY\[(?:'[\w.,() \[\]]*'(?:,\s*)?)*\]/ARRAY[]/gr =~ s/\A(?:\s+|--\N*\n)+|\s+\z//gr;
}

# The statements of an update script of scru64_realm that are not allowed, each on a line.  Names in
# quotes, and texts with a backslash, which settings of a session change, are not, either.
sub not_allowed_statements
{
	my ($text, $block) = @_;
	my @found;

	$text =~ s/\A\\echo Use "ALTER EXTENSION scru64_realm UPDATE" to load this file\. \\quit\n//;
	foreach my $statement (statements_of($text))
	{
		my ($raw, $simple) = @{$statement};

		next if $simple =~ /^ *$/ || without_names($raw) eq without_names($block);
		$simple =~ s/(\((?:[^()]|(?1))*\))/()/g if $simple !~ /^ *SELECT\b/i;
		$simple =~ s/\s+/ /g;
		$simple =~ s/^ | ?;$//g;
		push @found, $raw =~ s/\s+/ /gr =~ s/^ //r
		  if $simple =~ /["\\]|[^ -~]/ || !grep { $simple =~ /^$_$/i } @allowed;
	}
	return @found;
}

1;
