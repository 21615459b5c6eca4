# postgres_fdw: what of a query on IDs is done by the remote server

use strict;
use warnings;
use Scru64Test;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;

my ($one, $two) = map {
	my $server = new_node("server_$_");

	$server->append_conf('postgresql.conf', "scru64.node_spec = '$_/8'\ntimezone = 'UTC'");
	$server->start;
	$server;
} (1, 2);

plan skip_all => 'postgres_fdw is not installed'
  if $one->safe_psql('postgres', q(SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw')) eq '0';

# The search_path of postgres_fdw's remote sessions is pg_catalog.
sub create_extensions
{
	my ($server, $other) = @_;
	my ($host, $port) = ($other->host, $other->port);

	$server->safe_psql('postgres', qq(
CREATE EXTENSION scru64;
CREATE EXTENSION postgres_fdw;
CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw
	OPTIONS (host '$host', port '$port', dbname 'postgres',
			 extensions 'scru64', use_remote_estimate 'true');
CREATE USER MAPPING FOR CURRENT_USER SERVER other;
));
	return;
}

create_extensions($one, $two);
create_extensions($two, $one);

# What a statement sends to the other server
sub remote_sql
{
	my ($server, $sql) = @_;
	my @plan = split(/\n/, $server->safe_psql('postgres', "EXPLAIN (VERBOSE, COSTS OFF) $sql"));

	return join("\n", map { /Remote SQL: (.*)/ ? $1 : () } @plan);
}


#
# Pushdown
#

$two->safe_psql('postgres', q(
CREATE TABLE event (id scru64 DEFAULT scru64_generate() PRIMARY KEY, what text);
CREATE TABLE note (id scru64 DEFAULT scru64_generate() PRIMARY KEY, event_id scru64);
-- one in 10 minutes from 2026 on, and some of today
INSERT INTO event
SELECT scru64_from_parts(timestamptz '2026-01-01' + g * interval '10 minutes', 5 << 16), g
FROM generate_series(0, 8639) g;
INSERT INTO event VALUES ('0vodnvxngg00', 'this'), ('0vodnvxngg01', 'that');
INSERT INTO event (what) SELECT 'today' FROM generate_series(1, 1000);
INSERT INTO note (event_id) SELECT id FROM event WHERE what LIKE '%0';
ANALYZE event, note;
));
$one->safe_psql('postgres', q(
CREATE SCHEMA far;
IMPORT FOREIGN SCHEMA public FROM SERVER other INTO far OPTIONS (import_default 'true');
));

# Is the result what the other server has if it is asked itself?
sub is_as_remote
{
	my ($name, $sql) = @_;
	my $got = $one->safe_psql('postgres', "BEGIN; $sql; ROLLBACK");
	my $there = $two->safe_psql('postgres', 'BEGIN; ' . $sql =~ s/\bfar\.//gr . '; ROLLBACK');

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(join("\n", sort split(/\n/, $got)), join("\n", sort split(/\n/, $there)), "$name: as on the remote server");
	isnt($got, '', "$name: there are rows");
	return;
}

my $where = qr/SELECT id, what FROM public\.event WHERE/;
my $min = qr/\(id >= scru64_min\(\$1::timestamp with time zone\)\)/;
my @tests = (
	[
		'an ID', q(SELECT * FROM far.event WHERE id = '0vodnvxngg00' OR id = '0vodnvxngg01'),
		qr/^$where \(\(\(id = '0vodnvxngg00'\) OR \(id = '0vodnvxngg01'\)\)\)$/
	],
	[
		'times known to the planner',
		q(SELECT * FROM far.event WHERE id >= timestamptz '2026-01-31' AND id < timestamptz '2026-02-01'),
		qr/^$where \(\(id >= '\w{12}'\)\) AND \(\(id < '\w{12}'\)\)$/
	],
	[
		'scru64_min and scru64_max',
		q(SELECT * FROM far.event WHERE id BETWEEN scru64_min('2026-01-31') AND scru64_max('2026-02-01')),
		qr/^$where \(\(id >= '\w{12}'\)\) AND \(\(id <= '\w{12}'\)\)$/
	],
	[
		'now() in a subquery', q(SELECT * FROM far.event WHERE id >= (SELECT now() - interval '1 hour')),
		qr/^$where \($min\)$/
	],
	[
		'times of another table',
		q(SELECT * FROM generate_series(timestamptz '2026-01-01', '2026-01-05', '1 day') t, LATERAL (SELECT count(*) FROM far.event WHERE id <= t) m),
		qr/^SELECT count\(\*\) FROM public\.event WHERE \(\(id <= scru64_max\(\$1::timestamp with time zone\)\)\)$/
	],
	[
		'scru64_timestamp',
		q(SELECT * FROM far.event WHERE id::timestamptz >= '2026-02-01' AND scru64_timestamp(id) < '2026-02-02'),
		qr/^$where \(\(id::timestamp with time zone >= '[^']+'::timestamp with time zone\)\) AND \(\(scru64_timestamp\(id\) < '[^']+'::timestamp with time zone\)\)$/
	],
	[ 'order and limit', q(SELECT * FROM far.event ORDER BY id DESC LIMIT 3), qr/ ORDER BY id DESC NULLS FIRST LIMIT 3::bigint$/ ],
	[
		'aggregates', q(SELECT min(id), max(id), count(*) FROM far.event WHERE id < timestamptz '2026-02-01'),
		qr/^SELECT min\(id\), max\(id\), count\(\*\) FROM public\.event WHERE \(\(id < '\w{12}'\)\)$/
	],
	[
		'a join',
		q(SELECT * FROM far.event JOIN far.note ON event.id = note.event_id WHERE event.id < timestamptz '2026-02-01'),
		qr/INNER JOIN public\.note r\d ON \(\(\(r\d\.id = r\d\.event_id\)\)/
	],
	[
		'a change', q(UPDATE far.event SET what = 'changed' WHERE id < timestamptz '2026-01-02' RETURNING id),
		qr/^UPDATE public\.event SET what = 'changed'::text WHERE \(\(id < '\w{12}'\)\) RETURNING id$/
	],
	# what names no operator's schema, and so needs it in the other server's search_path
	[
		'IS DISTINCT FROM', q(SELECT * FROM far.note WHERE id IS DISTINCT FROM event_id AND event_id IS DISTINCT FROM '0vodnvxngg00'),
		qr/^SELECT id, event_id FROM public\.note WHERE \(\(id IS DISTINCT FROM event_id\)\) AND \(\(event_id IS DISTINCT FROM '0vodnvxngg00'/
	],
	[
		'IS NOT DISTINCT FROM', q(SELECT * FROM far.event WHERE id IS NOT DISTINCT FROM '0vodnvxngg00'),
		# from 19 on "=", as there is no NULL in the column
		qr/^$where \(\((NOT \(id IS DISTINCT FROM|id =) '0vodnvxngg00'/
	],
	[
		'CASE', q(SELECT * FROM far.event WHERE CASE id WHEN '0vodnvxngg00' THEN true WHEN '0vodnvxngg01' THEN true ELSE false END),
		qr/^$where \(\(CASE id WHEN '0vodnvxngg00'/
	],
	[
		'a change of what is distinct', q(UPDATE far.event SET id = '0vodnvxngg02' WHERE id IS NOT DISTINCT FROM '0vodnvxngg01' RETURNING id, what),
		qr/^UPDATE public\.event SET id = '0vodnvxngg02'.* WHERE \(\((NOT \(id IS DISTINCT FROM|id =) /
	],
	[
		'a removal', q(DELETE FROM far.note WHERE event_id IS DISTINCT FROM '0vodnvxngg00' RETURNING id),
		qr/^DELETE FROM public\.note WHERE \(\(event_id IS DISTINCT FROM /
	]);

foreach my $test (@tests)
{
	my ($name, $sql, $pattern) = @$test;

	like(remote_sql($one, $sql), $pattern, "$name: the remote server does it");
	is_as_remote($name, $sql);
}

like(remote_sql($one, q(INSERT INTO far.event (what) VALUES ('new'))),
	qr/^INSERT INTO public\.event\(id, what\) VALUES \(\$1, \$2\)$/, 'a DEFAULT is made here');
is($one->safe_psql('postgres', q(INSERT INTO far.event (what) VALUES ('new') RETURNING scru64_node_ctr(id) >> 16)),
	'1', 'and is of this server');

# Where the other server does not do it, all rows are fetched, and looked through here.
my $all = qr/^SELECT id, what FROM public\.event$/;
foreach my $test (
	[ 'now() is not pushed: it could differ there', q(id >= now() - interval '1 hour'), $all ],
	# Before 17, an array's type is of no extension.
	[
		'IN is pushed from PostgreSQL 17 on', q(id IN ('0vodnvxngg00', '0vodnvxngg01')),
		$one->pg_version < 17 ? $all : qr/^$where \(\(id = ANY /
	])
{
	my ($name, $condition, $pattern) = @$test;

	like(remote_sql($one, "SELECT * FROM far.event WHERE $condition"), $pattern, $name);
	is($one->safe_psql('postgres', "SELECT count(*) FROM far.event WHERE $condition"),
		$two->safe_psql('postgres', "SELECT count(*) FROM event WHERE $condition"), "$name: the rows are right");
}

# Without the option extensions, nothing is pushed but what is PostgreSQL's own.
$one->safe_psql('postgres', 'ALTER SERVER other OPTIONS (DROP extensions)');
foreach my $test (@tests)
{
	my ($name, $sql) = @{$test};

	unlike(remote_sql($one, $sql), qr/scru64|WHERE (?!ctid = )/, "$name: not pushed");
	is_as_remote($name, $sql);
}
$one->safe_psql('postgres', q(ALTER SERVER other OPTIONS (ADD extensions 'scru64')));

$two->stop;
$one->stop;
done_testing();
