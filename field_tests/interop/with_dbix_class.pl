# DBIx::Class
package Scru64::Schema::Result::Event;
use strict;
use warnings;
use parent 'DBIx::Class::Core';

__PACKAGE__->table('event');
__PACKAGE__->add_columns(
	id      => { data_type => 'scru64', default_value => \'scru64_generate()', retrieve_on_insert => 1 },
	what    => { data_type => 'text' },
	related => { data_type => 'scru64[]', is_nullable => 1 });
__PACKAGE__->set_primary_key('id');

package Scru64::Schema;
use parent 'DBIx::Class::Schema';

__PACKAGE__->register_class(Event => 'Scru64::Schema::Result::Event');

package main;
use Test::More;

require './harness.pl';
our ($id, $number, @ordered);

print "# DBIx::Class $DBIx::Class::VERSION\n";
my @warnings;
local $SIG{__WARN__} = sub { push @warnings, @_ };
my $schema = Scru64::Schema->connect('dbi:Pg:', undef, undef, { quote_names => 1 });
my $events = $schema->resultset('Event');

# The texts of the events meeting a condition, in order
sub whats
{
	my ($condition) = @_;

	return [ $events->search({ id => $condition }, { order_by => 'id' })->get_column('what')->all ];
}

# Works without a hint
my $first = $events->create({ what => 'first' });
is($first->id, psql('SELECT id FROM event'), 'DEFAULT gives an ID, a string');
my $second = $events->create({ what => 'second' });
is($events->find($first->id)->what, 'first', 'find');
is($events->find($first->id)->related, undef, 'NULL');
is_deeply(whats({ '>' => $first->id }), ['second'], 'parameter in a range');
$events->create({ id => uc $id, what => 'given', related => [ $first->id, undef ] });
is(psql("SELECT id, related FROM event WHERE what = 'given'"),
	"$id|{" . $first->id . ',NULL}', 'parameter in an INSERT, and an array');
is_deeply(whats([ $id, $first->id ]), [ 'given', 'first' ], 'IN');
is_deeply(whats({ '=' => \[ 'ANY(?)', [ {} => [ $id, $first->id ] ] ] }), [ 'given', 'first' ], '= ANY');
my @more = $events->populate([ { what => 'third' }, { what => 'fourth' } ]);
is_deeply([ map { $_->id } @more ],
	[ split(/\n/, psql("SELECT id FROM event WHERE what IN ('third', 'fourth') ORDER BY id")) ], 'populate');
is_bad_text(sub { $events->find('no ID') }, 'no ID', 'bad text');
is_bad_text(sub { $events->find($number) }, $number, 'a number needs a cast');
is_deeply(whats({ '=' => \[ '?::bigint::scru64', $number ] }), ['given'], 'and has one');
my $since = psql("SELECT now() - interval '1 hour'");
is_bad_text(sub { whats({ '>=' => $since }) }, $since, 'a time needs a cast');
is_deeply(whats({ '>=' => \[ '?::timestamptz', $since ] }), [qw(first second third fourth)], 'and has one');
is($events->find($id)->related, '{' . $first->id . ',NULL}', 'an array comes as text');
is_deeply([@warnings], [], 'no warning');

# Order
$events->create({ id => $_, what => 'ordered' }) foreach (grep { $_ ne $id } reverse @ordered);
done($events->search(undef, { order_by => 'id' })->get_column('id')->all);
