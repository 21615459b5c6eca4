# Logical replication: one way, as text and in binary form, and both ways between
# two servers that write to the same table, each with a node of its own.

use strict;
use warnings;
use FindBin;
use Scru64Examples;
use Scru64Test;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;

my %servers;
foreach my $n (1, 2)
{
	my $server = new_node("server_$n", allows_streaming => 'logical');

	$server->append_conf(
		'postgresql.conf', qq(
scru64.node_spec = '$n/8'
wal_retrieve_retry_interval = 100ms
));
	$server->start;
	# as on any two servers, the type's OID is not the same
	$server->safe_psql('postgres', 'CREATE TYPE something AS (n integer)') if $n == 2;
	$server->safe_psql('postgres', 'CREATE EXTENSION scru64');
	$servers{$n} = $server;
}
my ($one, $two) = @servers{ 1, 2 };

isnt($one->safe_psql('postgres', "SELECT 'scru64'::regtype::oid"),
	$two->safe_psql('postgres', "SELECT 'scru64'::regtype::oid"), 'the OID of the type is not the same');

sub everywhere
{
	my ($sql) = @_;

	$_->safe_psql('postgres', $sql) foreach ($one, $two);
	return;
}

# Let a server follow a publication of another one, and wait for the initial copy.
sub subscribe
{
	my ($server, $publisher, $publication, $name, $options) = @_;
	my $connstr = $publisher->connstr . ' dbname=postgres';

	$server->safe_psql('postgres',
		"CREATE SUBSCRIPTION $name CONNECTION '$connstr' PUBLICATION $publication WITH ($options)");
	$server->wait_for_subscription_sync($publisher, $name);
	return;
}

# How many rows a table has, and what is in them
sub rows_of
{
	my ($server, $columns, $table) = @_;

	return $server->safe_psql('postgres',
		qq(SELECT count(*), md5(string_agg(t::text, ' ' ORDER BY id::text COLLATE "C")) FROM (SELECT $columns FROM $table) t));
}


#
# One way
#

$one->safe_psql('postgres', q(
CREATE TABLE event (id scru64 DEFAULT scru64_generate() PRIMARY KEY, ids scru64[], what text);
INSERT INTO event (what) SELECT 'first' FROM generate_series(1, 1000);
CREATE PUBLICATION event FOR TABLE event;
));
foreach my $test (
	# a subscriber with the extension; what only it has gets its own DEFAULT
	[ 'by_text', 'scru64', 'binary = false' ],
	[ 'by_binary', 'scru64', 'binary = true' ],
	# and without it: the text form as text, the binary form as a number
	[ 'text_as_text', 'text', 'binary = false' ],
	[ 'binary_as_bigint', 'bigint', 'binary = true, copy_data = false' ])
{
	my ($name, $type, $options) = @$test;
	my $received = $type eq 'scru64' ? ', received scru64 DEFAULT scru64_generate()' : '';
	my $columns = $type eq 'bigint' ? 'id::bigint, ids::bigint[], what' : 'id, ids, what';
	my $rows;

	$two->safe_psql('postgres', "CREATE TABLE event (id $type PRIMARY KEY, ids ${type}[], what text$received)");
	$one->safe_psql('postgres', 'TRUNCATE event') if $options =~ /copy_data = false/;
	subscribe($two, $one, 'event', $name, $options);
	$one->safe_psql('postgres', qq(
INSERT INTO event (ids, what) SELECT array_agg(g), '$name' FROM scru64_generate(3000) WITH ORDINALITY g (g, n) GROUP BY n % 1000;
UPDATE event SET ids = ids || id WHERE id IN (SELECT id FROM event ORDER BY id DESC LIMIT 10);
UPDATE event SET id = scru64_generate() WHERE id = (SELECT max(id) FROM event);
DELETE FROM event WHERE id = (SELECT min(id) FROM event);
));
	$one->wait_for_catchup($name);
	$rows = rows_of($one, $columns, 'event');
	is(rows_of($two, 'id, ids, what', 'event'), $rows, "$name: the same rows");
	cmp_ok($rows =~ s/\|.*//r, '>', 900, "$name: there are rows");
	is( $two->safe_psql(
			'postgres',
			"SELECT count(*) > 900, count(DISTINCT received) = count(*), min(scru64_node_ctr(received) >> 16), max(scru64_node_ctr(received) >> 16) FROM event WHERE what = '$name'"
		),
		't|t|2|2',
		"$name: a DEFAULT that only the subscriber has is of its own node")
	  if $received;
	$two->safe_psql('postgres', "DROP SUBSCRIPTION $name; DROP TABLE event");
}


#
# Triggers of the subscriber: the search_path of what applies the changes is empty.
#

everywhere(q(
CREATE TABLE watched (id scru64 DEFAULT scru64_generate() PRIMARY KEY, parent scru64, kind text, newest scru64);
CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS '
BEGIN
	IF NEW.id >= timestamptz ''2026-01-01'' AND NEW.parent IS DISTINCT FROM NEW.id
		AND NEW.id > ALL (SELECT id FROM public.watched WHERE id <> NEW.id)
	THEN
		NEW.kind = CASE NEW.parent WHEN NULLIF(NEW.id, NEW.parent) THEN ''itself'' ELSE ''watched'' END;
		NEW.newest = GREATEST(NEW.id, NEW.parent);
	END IF;
	RETURN NEW;
END';
CREATE TRIGGER watch BEFORE INSERT ON watched FOR EACH ROW WHEN (NEW.parent IS DISTINCT FROM NEW.id) EXECUTE FUNCTION watch();
ALTER TABLE watched ENABLE ALWAYS TRIGGER watch;
CREATE PUBLICATION watched FOR TABLE watched (id, parent);
));
subscribe($two, $one, 'watched', 'watched', 'copy_data = false');
$one->safe_psql('postgres', 'INSERT INTO watched (parent) SELECT scru64_generate() FROM generate_series(1, 3)');
$one->wait_for_catchup('watched');
is($two->safe_psql('postgres', q(SELECT count(*) FROM watched WHERE kind = 'watched' AND newest = id)),
	'3', 'triggers of the subscriber compare IDs');
is(rows_of($two, '*', 'watched'), rows_of($one, '*', 'watched'), '... as they do on the publisher');
is($two->safe_psql('postgres', q(SELECT apply_error_count FROM pg_stat_subscription_stats WHERE subname = 'watched')),
	'0', '... without an error');
$two->safe_psql('postgres', 'DROP SUBSCRIPTION watched');


#
# Both ways: both servers write to one table at the same time
#

# Fill a table on both servers, each in a session of its own, change what is there
# already, and wait until each has what the other one has.
sub write_both
{
	my ($table, %subscriptions) = @_;
	my @sessions;

	foreach my $server ($one, $two)
	{
		my $in = "INSERT INTO $table (what) SELECT 'here' FROM generate_series(1, 10);\n" x 100;
		my $out = '';

		push @sessions,
		  [
			IPC::Run::start(
				[ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $server->connstr('postgres') ],
				'<', \$in, '>', \$out, '2>&1'),
			\$out
		  ];
	}
	foreach my $session (@sessions)
	{
		$session->[0]->finish;
		is(${ $session->[1] }, '', "$table: a server writes");
	}
	$servers{ 3 - $_ }->wait_for_catchup($subscriptions{$_}) foreach (1, 2);

	is($one->safe_psql('postgres', "SELECT count(*), count(DISTINCT id) FROM $table"),
		'2000|2000', "$table: one server has all rows");
	is(rows_of($two, '*', $table), rows_of($one, '*', $table), "$table: the other one has the same");
	is( $one->safe_psql(
			'postgres',
			"SELECT string_agg(n::text, ' ' ORDER BY n) FROM (SELECT DISTINCT scru64_node_ctr(id) >> 16 AS n FROM $table) t"
		),
		'1 2',
		"$table: the IDs are of the two nodes");

	# a row that the other server has made
	foreach my $n (1, 2)
	{
		$servers{$n}->safe_psql('postgres',
			"UPDATE $table SET what = 'changed on $n' WHERE id = (SELECT min(id) FROM $table WHERE what = 'here' AND "
			  . ($table eq 'by_site' ? "site = $n)" : "scru64_node_ctr(id) >> 16 = 3 - $n)"));
		$servers{$n}->wait_for_catchup($subscriptions{ 3 - $n });
	}
	is(rows_of($two, '*', $table), rows_of($one, '*', $table), "$table: the same after changes");
	is($one->safe_psql('postgres', "SELECT count(*) FROM $table WHERE what LIKE 'changed on _'"),
		'2', "$table: the changes are there");
	# A row that came back would be a conflict, and the subscription would stop with it.
	unlike(slurp_file($_->logfile), qr/duplicate key value/, "$table: no conflict") foreach ($one, $two);
	return;
}

# A block of the page, for a table of another name
sub from_page
{
	my ($name, $table) = @_;

	return recipe("$FindBin::RealBin/../../doc/distributed.md", $name) =~ s/event/$table/gr;
}

# Subscribe both ways as on the page, with or without its "origin = none".
sub subscribe_by_page
{
	my ($table, $with_origin) = @_;

	foreach my $try ([ 2, 'second', 1 ], [ 1, 'first', 2 ])
	{
		my ($n, $name, $from) = @$try;
		my $sql = from_page("origin, $name", $table);

		$sql =~ s/origin = none, // if !$with_origin;
		$servers{$n}->safe_psql('postgres', $sql =~ s/host=server(\d)/$servers{$1}->connstr/er);
		$servers{$n}->wait_for_subscription_sync($servers{$from}, "${table}_from_$from");
	}
	return;
}

# On every version: a publication of the rows that were made here.  A row filter
# knows only types and functions of PostgreSQL's own, so the ID cannot tell where a
# row comes from.
everywhere(from_page('origin, both', 'by_site'));
foreach my $n (1, 2)
{
	like(error_of($servers{$n}, "CREATE PUBLICATION wrong FOR TABLE by_site WHERE (id >= '000000000000'::scru64)"),
		qr/invalid publication WHERE expression/, 'a row filter on the ID is refused');
	$servers{$n}->safe_psql('postgres', from_page('site, each', 'by_site') =~ s/\b1\b/$n/gr);
}
subscribe_by_page('by_site', 0);
write_both('by_site', 1 => 'by_site_from_2', 2 => 'by_site_from_1');

# From PostgreSQL 16 on: all rows but those that came by replication.
SKIP:
{
	skip 'no origin = none before PostgreSQL 16', 9 if $one->pg_version < 16;

	# by the statements of the page
	$one->safe_psql('postgres', 'DROP PUBLICATION event; DROP TABLE event');
	everywhere(from_page('origin, both', 'event'));
	subscribe_by_page('event', 1);
	write_both('event', 1 => 'event_from_2', 2 => 'event_from_1');
}

$one->stop;
$two->stop;
done_testing();
