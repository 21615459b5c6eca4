# DBD::Pg
use strict;
use warnings;

use DBD::Pg ();
use DBI;
use Test::More;

require './harness.pl';
our ($id, @ordered);

# The SQLSTATE of a failing query
sub failure
{
	my ($run) = @_;

	return eval { $run->(); 1 } ? 'none' : $DBI::state;
}

print "# DBD::Pg $DBD::Pg::VERSION\n";
my $dbh = DBI->connect('dbi:Pg:', undef, undef,
	{ RaiseError => 1, PrintError => 0, AutoCommit => 1 });

# The first value of the first row
sub value
{
	my ($sql, @params) = @_;

	return ($dbh->selectrow_array($sql, undef, @params))[0];
}

# Works without a hint
my $first = value('INSERT INTO event (what) VALUES (?) RETURNING id', 'first');
is($first, psql("SELECT id FROM event WHERE what = 'first'"),
	'DEFAULT gives an ID');
like($first, qr/^[0-9a-z]{12}$/, 'it is 12 digits');
$dbh->do('INSERT INTO event (what) VALUES (?), (?)', undef, 'second', 'third');
is(value("SELECT id FROM event WHERE what = 'first'"),
	$first, 'an ID is read back');

for my $prepare (1, 0)
{
	my $how = $prepare ? 'prepared' : 'not prepared';

	$dbh->{pg_server_prepare} = $prepare;
	is(value('SELECT what FROM event WHERE id = ?', $first),
		'first', "$how: parameter in a comparison");
	is_deeply(
		$dbh->selectcol_arrayref('SELECT what FROM event WHERE id > ? ORDER BY id',
			undef, $first),
		[ 'second', 'third' ],
		"$how: parameter in a range");
	is(value("INSERT INTO event (id, what) VALUES (?, 'given') RETURNING id",
			uc $id),
		$id, "$how: parameter in an INSERT");
	is(psql("SELECT id FROM event WHERE what = 'given'"), $id, "$how: it is stored");
	is_deeply(
		$dbh->selectcol_arrayref('SELECT what FROM event WHERE id = ANY(?) ORDER BY id',
			undef, [ $first, $id ]),
		[ 'given', 'first' ],
		"$how: = ANY(parameter)");
	is(value('SELECT count(*) FROM event WHERE id = ANY(?)', []),
		0, "$how: = ANY(empty parameter)");
	$dbh->do('UPDATE event SET related = ? WHERE id = ?',
		undef, [ $first, undef, $id ], $first);
	is(psql("SELECT related FROM event WHERE id = '$first'"),
		"{$first,NULL,$id}", "$how: an array in");
	$dbh->do("DELETE FROM event WHERE what = 'given'");
}
$dbh->{pg_server_prepare} = 1;

is(value('SELECT to_json(id) FROM event WHERE id = ?', $first),
	qq{"$first"}, 'to_json');
is(value('SELECT json_agg(id ORDER BY id) FROM event'),
	psql('SELECT json_agg(id ORDER BY id) FROM event'), 'json_agg');

# Needs a hint
my $sth = $dbh->prepare('SELECT what FROM event WHERE id = ?');
$sth->bind_param(1, $first, { pg_type => DBD::Pg::PG_TEXT });
is(failure(sub { $sth->execute }),
	'42883', 'a parameter of type text needs a cast');
$sth = $dbh->prepare('SELECT what FROM event WHERE id = ?::scru64');
$sth->bind_param(1, $first, { pg_type => DBD::Pg::PG_TEXT });
$sth->execute;
is($sth->fetchrow_array, 'first', 'and has one');

my $since = psql("SELECT now() - interval '1 hour'");
is(failure(sub { value('SELECT count(*) FROM event WHERE id >= ?', $since) }),
	'22P02', 'a time needs a cast');
is(value('SELECT count(*) FROM event WHERE id >= ?::timestamptz', $since),
	3, 'and has one');

is(value('SELECT related FROM event WHERE id = ?', $first),
	"{$first,NULL,$id}", 'an array comes as a string');
my ($related) = $dbh->selectrow_array(
	'SELECT related::text[] FROM event WHERE id = ?', undef, $first);
is_deeply($related, [ $first, undef, $id ], 'cast, it comes as an array');

# Order
$dbh->do("INSERT INTO event (id, what) VALUES (?, 'ordered')", undef, $_)
  for reverse @ordered;
done(@{ $dbh->selectcol_arrayref('SELECT id FROM event ORDER BY id') });
