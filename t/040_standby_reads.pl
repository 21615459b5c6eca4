# A standby answers by ID and by time as its primary does.  Two servers with one
# configuration take turns as primary and standby: no ID comes again.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use File::Path qw(rmtree);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Scru64Fault;
use Scru64Test;
use Test::More;

# What keeps the pair together gives both the same settings, the node included.
my $one = new_node('one', allows_streaming => 1);
$one->append_conf(
	'postgresql.conf', q(
scru64.node_spec = '42/8'
wal_log_hints = on
wal_keep_size = 256MB
max_replication_slots = 10
));
$one->start;
$one->safe_psql(
	'postgres', q(
CREATE EXTENSION scru64;
CREATE TABLE ids (id scru64 DEFAULT scru64_generate() PRIMARY KEY, server text);
INSERT INTO ids (server) SELECT 'one' FROM generate_series(1, 1000);

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
$one->backup('backup');

my $two = PostgreSQL::Test::Cluster->new('two');
$two->init_from_backup($one, 'backup', has_streaming => 1);
$two->start;
$one->wait_for_catchup($two, 'replay', $one->lsn('insert'));


#
# Reads: each in a session of its own, so that nothing has loaded the library
#

foreach my $test (
	[ 'a time condition', "id >= timestamptz '2026-02-28 00:00+00'", 24 ],
	[ 'a range of time', "id BETWEEN timestamptz '2026-01-31 12:00+00' AND timestamptz '2026-02-01 12:00+00'", 25 ],
	[ 'time on the left', "timestamptz '2026-01-02 00:00+00' > id", 24 ],
	[ 'scru64_min and scru64_max', "id > scru64_max('2026-01-01 00:00+00') AND id <= scru64_min('2026-01-03 00:00+00')", 47 ],
	[ 'scru64_timestamp', "scru64_timestamp(id) < '2026-01-02 00:00+00'", 24 ],
	[ 'a literal', "id < '0vodnvxngg00'", 0 ],
	[ 'a comparison with what was made here',
		"id = scru64_from_parts('2026-01-01 05:00+00', 5)", 1 ])
{
	my ($name, $condition, $count) = @$test;

	is($two->safe_psql('postgres', "SELECT count(*) FROM event WHERE $condition"),
		$count, "standby: $name");
	is($one->safe_psql('postgres', "SELECT count(*) FROM event WHERE $condition"),
		$count, "primary: $name");
}

my $plan = $two->safe_psql('postgres', q(
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM event
WHERE id >= timestamptz '2026-02-27 00:00+00' AND id < timestamptz '2026-02-28 00:00+00'));
like($plan, qr/Index Scan using event_2026_02_pkey .*Index Cond: \(\(id >= '\w{12}'::scru64\) AND \(id < '\w{12}'::scru64\)\)/s,
	'standby: a time condition uses the index');
unlike($plan, qr/event_2026_01/, 'standby: and prunes partitions');
is( $two->safe_psql(
		'postgres', q(
SELECT min(id) = scru64_from_parts('2026-01-01 00:00+00', 0), max(id) = scru64_from_parts('2026-02-28 23:00+00', 1415),
	   (SELECT max(c) FROM (SELECT count(*) OVER (ORDER BY id RANGE '5 hours' PRECEDING) AS c FROM event) w)
FROM event)),
	't|t|6',
	'standby: min, max, a window in units of time');
is( $two->safe_psql(
		'postgres', q(
SET enable_nestloop = off;
SELECT count(*) FROM event e JOIN old_event o ON e.id = o.id::scru64)),
	59 * 24,
	'standby: a join');


#
# Failover and back
#

# IDs that the old primary has issued: the rows, and what a standby may not have
my %given;

sub insert_ids
{
	my ($server, $name) = @_;

	$given{$_}++
	  foreach (split(/\n/, $server->safe_psql('postgres', qq(
INSERT INTO ids (server) SELECT '$name' FROM generate_series(1, 1000) RETURNING id))));
	return;
}

# The old primary was stopped before the new one was promoted, and follows it.
sub follow
{
	my ($old, $new) = @_;
	my $data = $old->data_dir;
	my $conf = read_file("$data/postgresql.conf");
	my @command = (
		'pg_rewind', '--source-server=' . $new->connstr('postgres'),
		"--target-pgdata=$data", '--no-sync', "--config-file=$data/postgresql.conf");

	# before, the control file has the old timeline, and pg_rewind finds nothing to do
	$new->safe_psql('postgres', 'CHECKPOINT');
	if (!has_program('pg_rewind'))
	{
		rmtree($data);
		@command = ('pg_basebackup', '--no-sync', '--checkpoint=fast', "--pgdata=$data", '-d', $new->connstr('postgres'));
	}
	command_ok(\@command, $command[0]);
	# which has brought the port and the name of the other server
	replace_file($old->data_dir . '/postgresql.conf', $conf);
	unlink($old->data_dir . '/postgresql.auto.conf');
	$old->enable_streaming($new);
	$old->set_standby_mode();
	$old->start;
	$new->wait_for_catchup($old, 'replay', $new->lsn('insert'));
	return;
}

insert_ids($one, 'one');
$one->wait_for_catchup($two, 'replay', $one->lsn('insert'));
$one->stop('immediate');
$two->promote;
insert_ids($two, 'two');
follow($one, $two);
my ($out, $err) = ('', '');
$one->psql('postgres', 'SELECT scru64_generate()', stdout => \$out, stderr => \$err);
like($err, qr/cannot execute scru64_generate\(\) during recovery/, 'the old primary is a standby');

insert_ids($two, 'two again');
$two->wait_for_catchup($one, 'replay', $two->lsn('insert'));
$two->stop('immediate');
$one->promote;
insert_ids($one, 'one again');

is(scalar(keys %given), 4000, 'no ID twice over a failover and back');
is( $one->safe_psql(
		'postgres', q(
SELECT string_agg(server, ', ' ORDER BY first),
	   bool_and(first > coalesce(before, '000000000000')),
	   bool_and(scru64_node_ctr(first) >> 16 = 42)
FROM (SELECT server, min(id) AS first, lag(max(id)) OVER (ORDER BY min(id)) AS before
	  FROM ids GROUP BY server) s)),
	'one, two, two again, one again|t|t',
	'and each server went on above the other one');

$one->stop;
done_testing();
