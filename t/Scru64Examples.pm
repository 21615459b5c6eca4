# The examples of README.md and doc/*.md: finding them, running them, comparing
# what they print with what the page says.
#
# What is looked at are fenced blocks that begin with ```sql.
#
#   SELECT 1 + 1;    --> 2
#
# A block with "-->" in it is run.  After "-->" stands what psql prints, to the end
# of the line, and in the lines that follow if they begin with "-->" too: rows first,
# columns separated by " | ", then messages with their SQLSTATE.  What stands between
# one such result and the next must print just that; what has none must print
# nothing.
#
#   SELECT scru64_generate();    --> 0wqnh4s7a41k (for example)
#
# Where a line says "(for example)", any ID may stand for an ID, any time for a time
# and any interval for an interval.
#
# In a comment of HTML, which the reader does not see, may stand before a block:
#
#   <!-- run -->              run it though it shows no result
#   <!-- recipe of parts -->  not run as an example, found by these words
#   <!-- run                  statements that are run but not shown
#   ...
#   -->
#
# All other blocks are let be.

package Scru64Examples;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(
  examples_of
  recipe
  results_of
  same_shape
);

# The blocks of a page, in order: line, mark (what the comment says), text.
sub blocks_of
{
	my ($file) = @_;
	my @blocks;
	my $block;    # the one that is being read
	my $end;      # what ends it
	my $indent = '';
	my $mark = '';
	my $number = 0;

	open(my $page, '<', $file) or die "could not open $file: $!";
	while (my $line = <$page>)
	{
		chomp $line;
		$number++;
		if ($block)
		{
			if ($line =~ $end)
			{
				push @blocks, $block if $block->{text} ne '';
				$block = undef;
				next;
			}
			$line =~ s/^$indent//;
			$block->{text} .= "$line\n";
		}
		elsif ($line =~ /^(\s*)```(\S*)/)
		{
			$indent = $1;
			$end = qr/^\s*```\s*$/;
			# what is not SQL is read to its end and then forgotten
			$block = {
				line => $number,
				mark => $2 eq 'sql' ? $mark : 'other',
				text => ''
			};
			$mark = '';
		}
		elsif ($line =~ /^\s*<!-- run$/)
		{
			$indent = '';
			$end = qr/^\s*-->$/;
			$block = { line => $number, mark => 'run', text => '' };
		}
		elsif ($line =~ /^\s*<!-- (run|recipe .*\S) -->$/)
		{
			$mark = $1;
		}
		elsif ($line =~ /\S/)
		{
			$mark = '';
		}
	}
	die "$file: a block does not end" if $block;
	return grep { $_->{mark} ne 'other' } @blocks;
}

# The examples of a page, in order: line, sql, expected.
sub examples_of
{
	my ($file) = @_;
	my @examples;

	foreach my $block (blocks_of($file))
	{
		my $number = $block->{line};
		my $example;

		next
		  if $block->{mark} =~ /^recipe/
		  || ($block->{mark} ne 'run' && $block->{text} !~ /-->/);
		foreach my $line (split /\n/, $block->{text})
		{
			$number++;
			if ($line =~ /^-->\s?(.*?)\s*$/ && $example)
			{
				$example->{expected} .= "$1\n";
				next;
			}
			# this line begins another one if a result was before it
			if ($example && $example->{expected} ne '')
			{
				push @examples, $example;
				$example = undef;
			}
			$example ||= { line => $number, sql => '', expected => '' };
			if ($line =~ /^(.*?)\s*-->\s?(.*?)\s*$/)
			{
				$example->{sql} .= "$1\n";
				$example->{expected} = "$2\n";
			}
			elsif ($line =~ /\S/ || $example->{sql} ne '')
			{
				$example->{sql} .= "$line\n";
			}
			else
			{
				$example = undef;
			}
		}
		push @examples, $example if $example && $example->{sql} =~ /\S/;
	}
	return @examples;
}

# The SQL of the blocks of a page that are marked as this recipe.
sub recipe
{
	my ($file, $name) = @_;
	my @parts =
	  map { $_->{text} } grep { $_->{mark} eq "recipe $name" } blocks_of($file);

	die "$file has no recipe \"$name\"" if !@parts;
	return join("\n", @parts);
}

# Run examples in one session; what each has printed, in order.  After each one,
# also run what is in its "then" and forget what that prints.
sub results_of
{
	my ($node, $dbname, @examples) = @_;
	my ($out, $err) = ('', '');
	my $script = q(\set QUIET on
\pset pager off
\pset format unaligned
\pset tuples_only on
\pset fieldsep ' | '
\pset null null
\set VERBOSITY verbose
\set SHOW_CONTEXT never
);

	# Both streams say where they are.
	for my $i (0 .. $#examples)
	{
		$script .=
			"\\echo <<$i>>\n\\warn <<$i>>\n"
		  . $examples[$i]{sql}
		  . "\n\\echo <<then>>\n\\warn <<then>>\n"
		  . ($examples[$i]{then} // '') . "\n";
	}
	require IPC::Run;
	IPC::Run::run(
		[ $node->installed_command('psql'), '-X', '-d', $node->connstr($dbname) ],
		'<', \$script, '>', \$out, '2>', \$err);

	my @results = ('') x @examples;
	foreach my $stream ($out, $err)
	{
		my $i;

		foreach my $line (split /\n/, $stream)
		{
			if ($line =~ /^<<(\w+)>>$/)
			{
				$i = $1 eq 'then' ? undef : $1;
			}
			# of an error, not its place in the statement or in the source, and
			# not what its message says anyway
			elsif (defined $i
				&& $line !~ /^(LOCATION:|LINE \d+:|\s+\^|[A-Z]+ NAME:)/)
			{
				$line =~ s/\s+$//;
				$results[$i] .= "$line\n";
			}
		}
	}
	return @results;
}

# What was expected and what was printed, made equal where the page says "(for
# example)" and they have the same shape.
sub same_shape
{
	my ($expected, $got) = @_;
	my @expected = split /\n/, $expected;
	my @got = split /\n/, $got;

	for my $i (0 .. $#expected)
	{
		next if $expected[$i] !~ s/\s*\(for example\)$//;
		foreach my $line ($expected[$i], defined $got[$i] ? $got[$i] : ())
		{
			$line =~ s/\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?\+\d\d\b/<time>/g;
			$line =~ s/(?<!\w)-?\d\d:\d\d:\d\d(\.\d+)?/<interval>/g;
			$line =~ s/\b[0-9a-z]{12}\b/<ID>/g;
		}
	}
	return (join("\n", @expected), join("\n", @got));
}

1;
