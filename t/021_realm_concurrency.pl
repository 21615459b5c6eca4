# Many clients at a realm at the same time.
#
# SCRU64_TEST_SECONDS: how long they go on.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Scru64Test;
use Test::More;

my $seconds = $ENV{SCRU64_TEST_SECONDS} || 15;
my $clients = 32;

my $node = new_node('main');
$node->append_conf('postgresql.conf', "max_connections = 60\nmax_prepared_transactions = 2");
$node->start;
$node->safe_psql(
	'postgres', q(
CREATE EXTENSION scru64_realm CASCADE;
SELECT scru64_realm.set_guard('1 s', even_if_unsafe => true);
CREATE ROLE app LOGIN;
GRANT EXECUTE ON FUNCTION scru64_realm.lease, scru64_realm.renew, scru64_realm.release, scru64_realm.split TO app;

CREATE TABLE held (client integer, lease_id uuid, node_spec text);
CREATE TABLE log (what text, node_spec text, got_at timestamptz, gone_at timestamptz, lease_id uuid);
GRANT ALL ON held, log TO app;

-- A client's next request: the only error that it knows is a full realm.
CREATE FUNCTION request(client integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	mine held;
	size integer := 2 + floor(random() * 12);
BEGIN
	SELECT * INTO mine FROM held AS h WHERE h.client = request.client
	ORDER BY random() LIMIT 1;
	IF mine.lease_id IS NULL OR random() < 0.45 THEN
		BEGIN
			IF random() < 0.2 THEN
				-- left to itself
				INSERT INTO log SELECT 'short', l.node_spec, clock_timestamp(), l.expires_at, l.lease_id
				FROM scru64_realm.lease(size, 'client ' || client, '0.3 s') AS l;
			ELSE
				INSERT INTO held SELECT client, l.lease_id, l.node_spec
				FROM scru64_realm.lease(size, 'client ' || client) AS l
				RETURNING * INTO mine;
				INSERT INTO log VALUES ('lease', mine.node_spec, clock_timestamp(), NULL, mine.lease_id);
			END IF;
		EXCEPTION WHEN configuration_limit_exceeded THEN
			INSERT INTO log VALUES ('full');
		END;
	ELSIF random() < 0.3 THEN
		PERFORM scru64_realm.renew(mine.lease_id);
		INSERT INTO log VALUES ('renew');
	ELSIF random() < 0.1 AND split_part(mine.node_spec, '/', 2)::integer < 20 THEN
		UPDATE log SET gone_at = clock_timestamp() WHERE lease_id = mine.lease_id;
		INSERT INTO held SELECT client, s.lease_id, s.node_spec
		FROM scru64_realm.split(mine.lease_id, split_part(mine.node_spec, '/', 2)::integer + 1) AS s;
		DELETE FROM held AS h WHERE h.lease_id = mine.lease_id;
		INSERT INTO log VALUES ('split');
	ELSE
		UPDATE log SET gone_at = clock_timestamp() WHERE lease_id = mine.lease_id;
		PERFORM scru64_realm.release(mine.lease_id);
		DELETE FROM held AS h WHERE h.lease_id = mine.lease_id;
		INSERT INTO log VALUES ('release');
	END IF;
END
$$;
CREATE INDEX ON log (lease_id);
CREATE INDEX ON held (client);
));

# The node_id of a node spec, which begins with it or with an ID.
sub node_id_of
{
	my ($node, $size) = split(qr{/}, $_[0]);
	my $id = 0;

	return $node if length($node) < 12;
	use integer;
	$id = $id * 36 + index('0123456789abcdefghijklmnopqrstuvwxyz', $_) foreach split(//, $node);
	return ($id & 0xffffff) >> (24 - $size);
}

# Pairs of rows "id|node_spec|from|to" that share a part of the realm at the same
# time; no more than ten of them.
sub overlaps
{
	my @open;
	my @found;
	my @rows = map {
		my ($id, $spec, $from, $to) = split(/\|/);
		my ($node_id, $size) = (node_id_of($spec), $spec =~ s{.*/}{}r);
		{
			id => $id, from => $from, to => $to,
			lo => $node_id << (24 - $size), hi => ($node_id + 1) << (24 - $size)
		};
	} @_;

	foreach my $row (sort { $a->{from} <=> $b->{from} } @rows)
	{
		@open = grep { $_->{to} > $row->{from} } @open;
		push @found, map { "$_->{id} and $row->{id}" }
		  grep { $_->{lo} < $row->{hi} && $row->{lo} < $_->{hi} } @open;
		push @open, $row;
	}
	return join("\n", grep { defined } @found[ 0 .. 9 ]);
}

is(overlaps('a|1/4|0|5', 'b|16/8|4|9'), 'a and b', 'an overlap would be found');
is(overlaps('a|1/4|0|5', 'b|16/8|5|9', 'c|0/4|0|9'), '', 'and nothing else');
is(node_id_of('0u2r85hm2pt3/16'), 11001, 'the node_id of an ID');

$node->pgbench(
	"--no-vacuum --client=$clients --jobs=2 --time=$seconds --username=app",
	0,
	[qr{processed: \d+}],
	[qr{^$}],
	"$clients clients get no error but that of a full realm",
	{ 'request' => "SELECT request(:client_id);\n" });

my %counts = map { split(/\|/) }
  split(/\n/, $node->safe_psql('postgres', 'SELECT what, count(*) FROM log GROUP BY what'));
note join(', ', map { "$_: $counts{$_}" } sort keys %counts);
cmp_ok($counts{$_} || 0, '>', 10, "there are some of: $_") foreach ('lease', 'short', 'full', 'renew', 'release', 'split');

is( overlaps(
		split(
			/\n/,
			$node->safe_psql(
				'postgres', q(
SELECT lease_id, node_id || '/' || node_id_size, extract(epoch FROM granted_at), extract(epoch FROM occupied_until)
FROM scru64_realm.ledger
)))),
	'',
	'no two leases of one range at the same time, by the ledger');
is( overlaps(
		split(
			/\n/,
			$node->safe_psql(
				'postgres', q(
SELECT lease_id, node_spec, extract(epoch FROM got_at),
	coalesce(extract(epoch FROM gone_at), 'infinity')
FROM log WHERE lease_id IS NOT NULL
)))),
	'',
	'nor by what the clients were told');
is( $node->safe_psql('postgres', "SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'"),
	'0', 'no deadlock');
unlike(slurp_file($node->logfile), qr/ERROR/, 'no error in the log');

#
# Two sessions, step by step
#
$node->safe_psql(
	'postgres', q(
TRUNCATE scru64_realm.ledger;
SELECT scru64_realm.set_guard('30 s');
UPDATE scru64_realm.settings SET max_ttl = '24 hours', first_ttl = '24 hours';
CREATE TABLE test_clock (moved interval);
INSERT INTO test_clock VALUES ('0');
CREATE OR REPLACE FUNCTION scru64_realm.clock() RETURNS timestamptz LANGUAGE sql VOLATILE
	RETURN (SELECT pg_catalog.clock_timestamp() + moved FROM public.test_clock);
));
my ($one, $two) = map { open_session($node) } (1, 2);
my ($out, $err);

# A transaction that does not see what others commit cannot know what is free, nor what
# the settings are.
my $renewed = $one->query_safe("SELECT lease_id FROM scru64_realm.lease(8, 'one', '1 hour', node_id => 100)");
my %calls = (
	lease => "scru64_realm.lease(8, 'one')",
	renew => "scru64_realm.renew('$renewed')",
	release => "scru64_realm.release('$renewed')",
	split => "scru64_realm.split('$renewed', 9)");
foreach my $call (sort keys %calls)
{
	foreach my $level ('REPEATABLE READ', 'SERIALIZABLE')
	{
		$one->query_safe("BEGIN ISOLATION LEVEL $level");
		($out, $err) = try_statement($one, "SELECT $calls{$call}");
		like(
			$err,
			qr/ERROR:  25001: cannot change a lease in a transaction with isolation level \L$level\E\nDETAIL:.*\nHINT:  Use isolation level read committed/,
			"$call, $level: 25001");
		$one->query_safe('ROLLBACK');
	}
}
is($node->safe_psql('postgres', 'SELECT node FROM scru64_realm.leases'), '100/8', 'and it does nothing');

# Nor would others know when it ends, if it were prepared.
foreach my $call (sort keys %calls)
{
	$one->query_safe("BEGIN; SELECT count(*) FROM $calls{$call}");
	($out, $err) = try_statement($one, "PREPARE TRANSACTION 'forever'");
	like($err, qr/ERROR:  0A000: cannot PREPARE a transaction that has called a function of a realm/, "$call: it is not prepared");
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_prepared_xacts'), '0', 'no prepared transaction');
$one->query_safe("BEGIN; SELECT; PREPARE TRANSACTION 'of another kind'");
$one->query_safe("ROLLBACK PREPARED 'of another kind'");

# Others wait for a lease that is not committed, but not for long: then they have another.
$one->query_safe('BEGIN');
my $spec = $one->query_safe("SELECT node_spec FROM scru64_realm.lease(8, 'one')");
($out, $err) = try_statement($two, "SELECT node_spec FROM scru64_realm.lease(8, 'two')");
is($err, '', 'a lease that is not committed is in nobody\'s way');
isnt(node_id_of($out), node_id_of($spec), 'but its node is not to be had');
$two->query_safe("DELETE FROM scru64_realm.ledger WHERE holder = 'two'");
$one->query_safe('ROLLBACK');
is( node_id_of($two->query_safe("SELECT node_spec FROM scru64_realm.lease(8, 'two')")),
	node_id_of($spec), 'after a rollback it is free');
$two->query_safe("DELETE FROM scru64_realm.ledger WHERE holder = 'two'");

# So they do for a renewal that is not committed, where they would have the node.
$one->query_safe("BEGIN; SELECT scru64_realm.renew('$renewed', '3 hours')");
$node->safe_psql('postgres', "UPDATE test_clock SET moved = moved + '2 hours'");
($out, $err) = try_statement($two, "SELECT node_spec FROM scru64_realm.lease(8, 'two', within => '50/7')");
is($err, '', 'a renewal that is not committed is in nobody\'s way');
is(node_id_of($out), 101, 'but its node is not to be had');
($out, $err) = try_statement($two, "SELECT scru64_realm.lease(8, 'two', node_id => 100)");
like(
	$err,
	qr/ERROR:  55P03: could not grant a lease in time\nDETAIL:  Transactions .* still open.*\nHINT:  Try again/,
	'who waits for too long for that node gets 55P03');
$one->query_safe('ROLLBACK');

# What its owner sets waits for those who go by what was set before.
$renewed = $one->query_safe("SELECT lease_id FROM scru64_realm.lease(8, 'one', '1 hour', node_id => 110)");
foreach my $set ("set_max_ttl('1 hour')", "set_guard('40 s')", "prune('1 hour')")
{
	$one->query_safe("BEGIN; SELECT scru64_realm.renew('$renewed', '3 hours')");
	($out, $err) = try_statement($two, "SELECT scru64_realm.$set");
	like($err, qr/ERROR:  55P03: /, "$set does not wait for long");
	start_statement($two, "SELECT scru64_realm.$set");
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND locktype = 'relation'")
	  or die 'nobody waits';
	$one->query_safe('COMMIT');
	($out, $err) = try_statement($two, 'SELECT 1');
	is($err, '', 'but it does');
}
$node->safe_psql('postgres', "UPDATE scru64_realm.settings SET guard = '30 s', max_ttl = '24 hours', first_ttl = '24 hours'");

# A lease that is renewed at the last moment, while somebody else asks for the node:
# it is in nobody's way until that is committed, and then it is.
my $id = $one->query_safe("SELECT lease_id FROM scru64_realm.lease(8, 'one', '1 hour', node_id => 200)");
foreach my $end ('COMMIT', 'ROLLBACK')
{
	$one->query_safe("BEGIN; SELECT scru64_realm.renew('$id', '3 hours')");
	$node->safe_psql('postgres', "UPDATE test_clock SET moved = moved + '2 hours'");
	start_statement($two,
		q(SELECT 'got', scru64_node_ctr(split_part(node_spec, '/', 1)::scru64) >> 16
		  FROM scru64_realm.lease(8, 'two', node_id => 200)));
	$node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'transactionid'")
	  or die 'nobody waits';
	$one->query_safe($end);
	($out, $err) = try_statement($two, 'SELECT 1');
	if ($end eq 'COMMIT')
	{
		like($err, qr{55006: node 200/8 is not free\nDETAIL:.*occupied until }, 'who is late by a moment is told so');
	}
	else
	{
		like($out, qr/^got\|200$/m, 'a renewal that is rolled back is none');
		is($err, '', 'without an error');
	}
}

# Renewals of one lease come one after the other, also with its release.
$id = $one->query_safe("SELECT lease_id FROM scru64_realm.lease(8, 'one')");
$one->query_safe("BEGIN; SELECT scru64_realm.release('$id')");
start_statement($two, "SELECT scru64_realm.renew('$id')");
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'transactionid'")
  or die 'nobody waits';
$one->query_safe('COMMIT');
($out, $err) = try_statement($two, 'SELECT 1');
like($err, qr/ERROR:  55000: lease is not active/, 'who waits for a release cannot renew');

# Requests that are repeated at the same time: one lease, which those who wait get, too.
my $request = '11111111-2222-4333-8444-555555555555';
my $ask = "SELECT node_spec FROM scru64_realm.lease(8, 'one', request => '$request')";
$one->query_safe('BEGIN');
$spec = $one->query_safe($ask);
start_statement($two, $ask);
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND locktype = 'relation'")
  or die 'nobody waits';
$one->query_safe('COMMIT');
($out, $err) = try_statement($two, 'SELECT 1');
like($out, qr/^\Q$spec\E$/m, 'the same request at the same time: the same lease');
is($err, '', 'without an error');

# Lost answers, lost questions: none costs a node.
$request =~ tr/1/2/;
my $leases = $node->safe_psql('postgres', 'SELECT count(*) FROM scru64_realm.ledger');
for my $n (1 .. 100)
{
	my $end = ('ROLLBACK', 'COMMIT', 'COMMIT', 'SELECT 1/0; COMMIT')[ $n % 4 ];

	try_statement($one, "BEGIN; SELECT FROM scru64_realm.lease(8, 'lost', request => '$request'); $end");
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM scru64_realm.ledger') - $leases,
	1, '100 requests, repeated or abandoned: one lease');

# It is on disk before it is acknowledged, whatever the session thinks of that.
foreach my $call (
	"SELECT lease_id FROM scru64_realm.lease(8, 'one')",
	"SELECT lease_id FROM scru64_realm.split((SELECT lease_id FROM scru64_realm.lease(8, 'one')), 9) LIMIT 1")
{
	foreach my $level ('off', 'remote_write')
	{
		is( $one->query_safe("BEGIN; SET LOCAL synchronous_commit = $level; SELECT FROM ($call) AS l; SHOW synchronous_commit; ROLLBACK") =~
			  s/^\s*(.*?)\s*$/$1/sr,
			'on',
			"synchronous, not $level: $call");
	}
}

$_->quit foreach ($one, $two);
$node->stop;
done_testing();
