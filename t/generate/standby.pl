# A standby answers by ID and by time as its primary does, and generates nothing, until it
# is promoted.

use strict;
use warnings;
use Scru64Test;

my $primary = new_node('primary', allows_streaming => 1);
$primary->append_conf('postgresql.conf', "scru64.node_spec = '42/8'");
$primary->start;
$primary->safe_psql('postgres', q(
CREATE EXTENSION scru64;
CREATE ROLE monitor LOGIN IN ROLE pg_monitor;
CREATE TABLE ids (id scru64 DEFAULT scru64_generate() PRIMARY KEY, n integer);
INSERT INTO ids (n) SELECT g FROM generate_series(1, 1000) g;

-- a row every hour of two months, in partitions of a month
CREATE TABLE event (id scru64 PRIMARY KEY, n integer) PARTITION BY RANGE (id);
CREATE TABLE event_2026_01 PARTITION OF event
	FOR VALUES FROM (scru64_min('2026-01-01 00:00+00')) TO (scru64_min('2026-02-01 00:00+00'));
CREATE TABLE event_2026_02 PARTITION OF event
	FOR VALUES FROM (scru64_min('2026-02-01 00:00+00')) TO (scru64_min('2026-03-01 00:00+00'));
INSERT INTO event
SELECT scru64_from_parts(timestamptz '2026-01-01 00:00+00' + h * interval '1 hour', h), h
FROM generate_series(0, 59 * 24 - 1) h;
ANALYZE event;
CREATE TABLE old_event (id bigint, n integer);
INSERT INTO old_event SELECT id::bigint, n FROM event;
));
$primary->backup('backup');

# What finds how many rows
my @conditions = (
	[ 'a time condition', "id >= timestamptz '2026-02-28 00:00+00'", 24 ],
	[ 'a range of time', "id BETWEEN timestamptz '2026-01-31 12:00+00' AND timestamptz '2026-02-01 12:00+00'", 25 ],
	[ 'time on the left', "timestamptz '2026-01-02 00:00+00' > id", 24 ],
	[ 'scru64_min and scru64_max', "id > scru64_max('2026-01-01 00:00+00') AND id <= scru64_min('2026-01-03 00:00+00')", 47 ],
	[ 'scru64_timestamp', "scru64_timestamp(id) < '2026-01-02 00:00+00'", 24 ],
	[ 'a literal', "id < '0vodnvxngg00'", 0 ],
	[ 'a comparison with what was made here', "id = scru64_from_parts('2026-01-01 05:00+00', 5)", 1 ]);
is($primary->safe_psql('postgres', join('; ', map { "SELECT count(*) FROM event WHERE $_->[1]" } @conditions)),
	join("\n", map { $_->[2] } @conditions), 'the primary finds them');

my $refused =
  qr/ERROR:  25006: cannot execute scru64_generate\(\) during recovery
HINT:  Generate IDs on the primary\. If a connection pooler sent the query here, it must treat this function as one that writes\./;

foreach my $preload (0, 1)
{
	my $mode = $preload ? 'preloaded' : 'not preloaded';
	my $standby = PostgreSQL::Test::Cluster->new('standby' . ($preload ? '_preloaded' : ''));
	my $n = 1001 + $preload;
	my ($out, $err);

	$standby->init_from_backup($primary, 'backup', has_streaming => 1);
	$standby->append_conf('postgresql.conf', "shared_preload_libraries = 'scru64'") if $preload;
	$standby->start;

	# rows that came by replication can be read and found
	my $id = $primary->safe_psql('postgres', "INSERT INTO ids (n) VALUES ($n) RETURNING id");
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	is($standby->safe_psql('postgres', qq(
SET enable_seqscan = off;
SELECT n, id, id = '$id' FROM ids WHERE id = '$id'
)),
		"$n|$id|t", "$mode: the standby finds an ID");
	is($standby->safe_psql('postgres', 'SELECT count(DISTINCT id), max(id) FROM ids'),
		"$n|$id", "$mode: the standby reads IDs");

	# each in a session of its own, so that nothing has loaded the library
	foreach my $test (@conditions)
	{
		my ($name, $condition, $count) = @{$test};

		is($standby->safe_psql('postgres', "SELECT count(*) FROM event WHERE $condition"),
			$count, "$mode: standby: $name");
	}

	my $plan = $standby->safe_psql('postgres', q(
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM event
WHERE id >= timestamptz '2026-02-27 00:00+00' AND id < timestamptz '2026-02-28 00:00+00'));
	like($plan, qr/Index Scan using event_2026_02_pkey .*Index Cond: \(\(id >= '\w{12}'::scru64\) AND \(id < '\w{12}'::scru64\)\)/s,
		"$mode: standby: a time condition uses the index");
	unlike($plan, qr/event_2026_01/, "$mode: standby: and prunes partitions");
	is($standby->safe_psql('postgres', q(
SELECT min(id) = scru64_from_parts('2026-01-01 00:00+00', 0), max(id) = scru64_from_parts('2026-02-28 23:00+00', 1415),
	   (SELECT max(c) FROM (SELECT count(*) OVER (ORDER BY id RANGE '5 hours' PRECEDING) AS c FROM event) w)
FROM event)),
		't|t|6',
		"$mode: standby: min, max, a window in units of time");
	is($standby->safe_psql('postgres', q(
SET enable_nestloop = off;
SELECT count(*) FROM event e JOIN old_event o ON e.id = o.id::scru64)),
		59 * 24,
		"$mode: standby: a join");

	# generation is refused, whichever way
	my $session = open_session($standby);
	foreach my $sql (
		'SELECT scru64_generate()',
		'SELECT count(*) FROM scru64_generate(3)',
		"SET scru64.node_spec = '7/8'; SELECT scru64_generate()",
		"SET scru64.node_spec = ''; SELECT scru64_generate()",
		'RESET scru64.node_spec; SELECT scru64_generate()')
	{
		($out, $err) = try_statement($session, $sql);
		is($out, '', "$mode: on the standby, $sql");
		like($err, $refused, "$mode: on the standby, $sql: error 25006");
	}

	# scru64_generators() can be called, and shows no node, for none is in use here
	is($standby->safe_psql('postgres', 'SELECT count(*) FROM scru64_generators()'),
		'0', "$mode: scru64_generators() on the standby");
	is($standby->safe_psql('postgres', 'SELECT count(*) FROM scru64_generators()', extra_params => [ '-U', 'monitor' ]),
		'0', "$mode: scru64_generators() on the standby, for a role that monitors");

	# After promotion the same session may generate, and new ones may; with a
	# node that the primary has not.
	$standby->append_conf('postgresql.conf', "scru64.node_spec = '43/8'");
	$standby->reload;
	$standby->promote;
	ok($standby->poll_query_until('postgres', "SELECT current_setting('scru64.node_spec') = '43/8'"),
		"$mode: the promoted standby has a node of its own");
	($out, $err) = try_statement($session, 'SELECT scru64_node_ctr(scru64_generate()) >> 16');
	is("$out|$err", '43|', "$mode: a session of before the promotion generates");
	is($standby->safe_psql('postgres', q(
INSERT INTO ids (n) SELECT 0 FROM generate_series(1, 1000);
SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE scru64_node_ctr(id) >> 16 <> 43)
FROM ids WHERE n = 0;
)),
		'1000|1000|0', "$mode: a new session generates");
	is($standby->safe_psql('postgres', q(
SELECT node_id, node_id_size, last_id = (SELECT max(id) FROM ids WHERE n = 0)
FROM scru64_generators() WHERE last_id IS NOT NULL
)),
		'43|8|t', "$mode: its node is shown");
	is($standby->safe_psql('postgres', q(
BEGIN READ ONLY;
SELECT count(DISTINCT id) FROM scru64_generate(10) id;
COMMIT;
)),
		'10', "$mode: a transaction that is only read only generates");

	$session->quit;
	$standby->stop;
}

# The primary has not noticed.
is($primary->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE n = 0) FROM ids'),
	'1002|1002|0', 'the primary has its own IDs');

$primary->stop;
done_testing();
