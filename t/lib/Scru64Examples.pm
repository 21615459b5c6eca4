# The examples of README.md and doc/*.md: finding them, running them, comparing
# what they print with what the page says.
#
# All fenced blocks that begin with ```sql are run, in the order of the page, as if
# pasted into psql on a server with nothing but PostgreSQL's defaults.  What a block
# needs, the page has to show: there is no other set-up.
#
#   SELECT 1 + 1;    --> 2
#
# After "-->" stands what psql prints, to the end of the line, and in the lines that
# follow if they begin with "-->" too: rows first, columns separated by " | ", then
# messages with their SQLSTATE.  In a block with such results, what stands between one
# and the next must print just that, and what has none must print nothing.  A block
# without any may print what it likes, but no error.
#
#   SELECT scru64_generate();    --> 0wqnh4s7a41k (for example)
#
# Where a line says "(for example)", any ID may stand for an ID, any time for a time
# and any interval for an interval.
#
# In a comment of HTML, which the reader does not see, may stand before a block:
#
#   <!-- at NAME -->          on another server: "standby" is a standby of the first,
#                             made at that moment; other names are servers of their own
#   <!-- recipe of parts -->  not run as an example; another test runs what has these words
#   <!-- run -->              for a block of ```sh, which is let be without it
#
# and anywhere:
#
#   <!-- restart -->          here the page has the reader restart the server
#   <!-- set-up -->           here the page expects a server with the extension and a node,
#   <!-- set-up at NAME -->   which it leaves to README.md: they are made, by a block of
#                             SQL that no reader sees.  What stands in further lines
#                             before "-->" is run after that, such as a table:
#
#   <!-- set-up
#   CREATE TABLE event (id scru64 DEFAULT scru64_generate() PRIMARY KEY);
#   -->
#
# 'NODE/8' and 'OTHER/8' are node specs that the reader chooses.
#
# "host=r1,r2" and the like in a block lead to the server of such a name, or to the
# first one if there is none.

package Scru64Examples;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(blocks_of examples_of recipe results_of same_shape);

# What a page expects that has "set-up"
my $set_up = q(CREATE EXTENSION IF NOT EXISTS scru64;
LOAD 'scru64';
ALTER SYSTEM SET scru64.node_spec = 'NODE/8';
SELECT pg_reload_conf();
SELECT pg_sleep(0.3);
);

# The reader's numbers
sub with_nodes
{
	my ($text) = @_;

	return $text =~ s{'NODE/8'}{'42/8'}gr =~ s{'OTHER/8'}{'43/8'}gr;
}

# The blocks of a page, in order: line, section (its heading), language, mark (what the
# comment says), text.
# A restart is a block, too.
sub blocks_of
{
	my ($file) = @_;
	my @blocks;
	my $block;    # the one that is being read
	my $indent = '';
	my $mark = '';
	my $section = '';
	my $number = 0;

	open(my $page, '<', $file) or die "could not open $file: $!";
	while (my $line = <$page>)
	{
		chomp $line;
		$number++;
		if ($block)
		{
			if ($line =~ $block->{end})
			{
				push @blocks, $block;
				$block = undef;
				next;
			}
			$line =~ s/^$indent//;
			$block->{text} .= with_nodes("$line\n");
		}
		elsif ($line =~ /^(\s*)```(\S*)/)
		{
			$indent = $1;
			$block = { line => $number, section => $section, language => $2, mark => $mark, text => '', end => qr/^\s*```\s*$/ };
			$mark = '';
		}
		elsif ($line =~ /^\s*<!-- set-up(?: (at \w+))?( -->)?$/)
		{
			my ($at, $end) = ($1, $2);
			my $text = with_nodes($at ? $set_up =~ s/NODE/OTHER/r : $set_up);

			$indent = '';
			$block = { line => $number, section => $section, language => 'sql', mark => $at // '', text => $text, end => qr/^\s*-->$/ };
			if ($end)
			{
				push @blocks, $block;
				$block = undef;
			}
		}
		elsif ($line =~ /^\s*<!-- restart -->$/)
		{
			push @blocks, { line => $number, language => 'restart', mark => '', text => '' };
		}
		elsif ($line =~ /^\s*<!-- (run|at \w+|recipe .*\S) -->$/)
		{
			$mark = $1;
		}
		elsif ($line =~ /<!--/)
		{
			die "$file:$number: this comment means nothing to the tests";
		}
		elsif ($line =~ /\S/)
		{
			$mark = '';
			$section = $1 if $line =~ /^#+ (.*)/;
		}
	}
	die "$file: a block does not end" if $block;
	return @blocks;
}

# The examples of a block of SQL, in order: line, sql, and expected if there is a result
# in the block.
sub examples_of
{
	my ($block) = @_;
	my $number = $block->{line};
	my @examples;
	my $example;

	return { line => $number + 1, sql => $block->{text} } if $block->{text} !~ /-->/;
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

# Run examples in one session; what each has printed, in order, all in one, and the
# messages alone.  After each one, also run what is in its "then" and forget what that
# prints.
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

	my @results = map { { all => '', messages => '' } } @examples;
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
				$results[$i]{all} .= "$line\n";
				$results[$i]{messages} .= "$line\n" if \$stream == \$err;
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
