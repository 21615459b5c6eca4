# The mutants of heavy/mutants/table: src/ and realm/ with one rule broken.

package Scru64Mutants;

use strict;
use warnings;

use Exporter 'import';
use Scru64Scripts;

our @EXPORT = qw(broken mutants);

sub text_of
{
	my ($path) = @_;

	open(my $file, '<', $path) or die "could not open $path: $!\n";
	local $/ = undef;
	return scalar(<$file>);
}

# All mutants, in the order of the table: each a name, what finds the mutant, why nothing does, and
# edits: [place, old text, new text]
sub mutants
{
	my ($top) = @_;
	my @mutants;

	foreach my $line (grep { !/^(#|$)/ } split(/\n/, text_of("$top/heavy/mutants/table")))
	{
		my ($name, $finder, $place, $old, $new, $why_not) = split(/\t/, $line);

		push @mutants, { name => $name, finder => $finder, why_not => $why_not, edits => [] } if $name ne '';
		push @{ $mutants[-1]{edits} }, [ $place, $old, $new // '' ];
	}
	return @mutants;
}

# The statement that creates a function of the realm, without its first words
sub realm_function
{
	my ($top, $function) = @_;

	return $1 if realm_functions($top) =~ /^CREATE OR REPLACE (FUNCTION (?:scru64_realm\.)?\Q$function\E\(.*?)(?=^(?:CREATE|COMMENT|--)|\z)/ms;
	die "there is no function $function\n";
}

# The files of folders of sources, or the functions, that a mutant changes, with their new texts.
# Dies if a place does not have the old text once, blanks aside, or if the new text is the old one.
sub broken
{
	my ($mutant, $top, @folders) = @_;
	my %text;

	foreach my $edit (@{ $mutant->{edits} })
	{
		my ($place, $old, $new) = @{$edit};
		my $pattern = join('\s+', map { quotemeta } split(' ', $old));

		$text{$place} //= $mutant->{finder} =~ /^realm / ? realm_function($top, $place) : text_of(grep { -e } map { "$_/$place" } @folders);
		die "$mutant->{name}: $place does not have \"$old\" once\n" if 1 != (() = $text{$place} =~ /$pattern/g);
		die "$mutant->{name}: the new text of $place is the old one\n" if join(' ', split(' ', $new)) eq join(' ', split(' ', $old));
		$text{$place} =~ s/$pattern/$new/;
	}
	return %text;
}

1;
