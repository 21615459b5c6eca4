# Rose::DB::Object
package Scru64::DB;
use strict;
use warnings;
use parent 'Rose::DB';

__PACKAGE__->use_private_registry;
__PACKAGE__->register_db(driver => 'pg', map { $_ => $ENV{ 'PG' . uc } } qw(host port database));
__PACKAGE__->default_connect_options(PrintError => 0);

package Scru64::Object;
use parent 'Rose::DB::Object';

sub init_db { return Scru64::DB->new_or_cached(username => $ENV{PGUSER}) }

package Automatic;
use parent -norequire, 'Scru64::Object';

__PACKAGE__->meta->setup(table => 'event', auto => 1);

package Event;
use parent -norequire, 'Scru64::Object';

__PACKAGE__->meta->setup(
	table => 'event',
	columns => [ id => { type => 'varchar' }, what => { type => 'text' }, related => { type => 'array' } ],
	primary_key_columns => ['id'],
	# [recipe: Rose::DB::Object]
	primary_key_generator => sub { $_[1]->dbh->selectrow_array('SELECT scru64_generate()') },
	# [end]
);

package main;
use Test::More;

require './harness.pl';
our ($id, $number, @ordered);

print "# Rose::DB::Object $Rose::DB::Object::VERSION\n";

# The texts of the events meeting a condition, in order
sub whats
{
	my (@query) = @_;

	return [ map { $_->what } @{ Rose::DB::Object::Manager->get_objects(
		object_class => 'Event', query => \@query, sort_by => 'id') } ];
}

# An event, saved
sub add
{
	my ($class, @fields) = @_;
	my $event = $class->new(@fields);

	$event->db->do_transaction(sub { $event->save }) or die $event->db->error;
	return $event;
}

is_bad_text(sub { add('Automatic', what => 'x') }, 'scru64_generate()', 'a default is taken for a string');
my $first = add('Event', what => 'first');
is($first->id, psql('SELECT id FROM event'), 'generated, an ID is a string');
add('Event', what => 'second');
is(Event->new(id => $first->id)->load->what, 'first', 'load');
is(Event->new(id => $first->id)->load->related, undef, 'NULL');
is_deeply(whats(id => { gt => $first->id }), ['second'], 'parameter in a range');
add('Event', id => uc $id, what => 'given', related => [ $first->id, $id ]);
is(psql("SELECT id, related FROM event WHERE what = 'given'"),
	"$id|{" . $first->id . ",$id}", 'parameter in an INSERT, and an array');
is_deeply([ Event->new(id => $id)->load->related ], [ $first->id, $id ], 'and back');
is_deeply(whats(id => [ $id, $first->id ]), [ 'given', 'first' ], 'IN');
is_bad_text(sub { Event->new(id => 'no ID')->load }, 'no ID', 'bad text');
is_bad_text(sub { Event->new(id => $number)->load }, $number, 'a number needs a cast');
my $since = psql("SELECT now() - interval '1 hour'");
is_bad_text(sub { whats(id => { ge => $since }) }, $since, 'a time needs a cast');
is_deeply(whats([ \'id >= ?::timestamptz', $since ]), [ 'first', 'second' ], 'and has one');

# Order
add('Event', id => $_, what => $_) foreach (grep { $_ ne $id } reverse @ordered);
done(map { $_->id } @{ Rose::DB::Object::Manager->get_objects(object_class => 'Event', sort_by => 'id') });
