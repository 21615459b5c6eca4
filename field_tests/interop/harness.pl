# Shared by the Perl programs here: values fetched by another client.
use strict;
use warnings;
use Test::More;

our $id = '0u2r85hm2pt3';
our $number = 109964681944955175;
# IDs in the order of the server, which must be the order of strings
our @ordered = qw(000000000000 0000000000zz 00000000a000 0u2r85hm2pt3
  9zzzzzzzzzzz a00000000000 zzzzzzzzzzzz);

# psql's output, without the last line feed
sub psql
{
	my ($sql) = @_;

	open(my $out, '-|', $ENV{PSQL}, '-X', '-q', '-A', '-t', '-v',
		'ON_ERROR_STOP=1', '-c', $sql)
	  or die "psql: $!";
	my $printed = do { local $/; <$out> };
	close($out) or die "psql failed";
	chomp $printed;
	return $printed;
}

# Does it fail because this is no ID?
sub is_bad_text
{
	my ($run, $text, $name) = @_;

	eval { $run->() };
	like($@, qr/invalid input syntax for type scru64: "\Q$text\E"/, $name);
	return;
}

# The end, which scripts/interop waits for.  IDs: all of the table event, in the server's order, as
# the client has them
sub done
{
	my (@ids) = @_;
	my %is_ordered = map { $_ => 1 } our @ordered;

	is(join("\n", @ids), psql('SELECT id FROM event ORDER BY id'), "the server's order");
	is_deeply([ sort @ids ], \@ids, 'it is the order of the strings');
	is_deeply([ grep { $is_ordered{$_} } @ids ], \@ordered, 'and the one expected');
	done_testing();
	print "done\n";
	return;
}

1;
