# Many clients at a realm at the same time.

use strict;
use warnings;
use Scru64Realm;
use Scru64Test;

my $requests = 150;		# of each client
my $clients = 32;

my $node = new_node('main');
$node->append_conf('postgresql.conf', "max_connections = 60\nmax_prepared_transactions = 1");
$node->start;
$node->safe_psql('postgres', q(
CREATE EXTENSION scru64_realm CASCADE;
SELECT scru64_realm.set_guard('1 s', even_if_unsafe => true);
CREATE ROLE app LOGIN;
GRANT EXECUTE ON FUNCTION scru64_realm.lease, scru64_realm.renew, scru64_realm.release, scru64_realm.split TO app;
-- An error is caught; and to make a call that takes long, a transaction block stands for its statement.
CREATE OR REPLACE FUNCTION scru64_realm_internal.begin_change(is_short boolean) RETURNS void LANGUAGE sql AS '';

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

my %first = (name => 'a', lo => 0, hi => 16, start => 0, limit => 5);
my %second = (name => 'b', lo => 15, hi => 17, start => 4, limit => 9);
like(overlaps(\%first, \%second), qr/^a and b: /, 'an overlap would be found');
is(overlaps(\%first, { %second, start => 5 }, { %second, lo => 16, limit => 5 }), '', 'and nothing else');

pgbench_ok($node, "$clients clients get no error but that of a full realm", $clients, $requests,
	{ 'request' => "SELECT request(:client_id);\n" }, '--username=app');

my %counts = map { split(/\|/) }
  split(/\n/, $node->safe_psql('postgres', 'SELECT what, count(*) FROM log GROUP BY what'));
note join(', ', map { "$_: $counts{$_}" } sort keys %counts);
cmp_ok($counts{$_} || 0, '>', 10, "there are some of: $_") foreach ('lease', 'short', 'full', 'renew', 'release', 'split');

ok_apart('of what was promised, by the ledger', windows_of($node, q(
SELECT lease_id, lower(node_ctr_range), upper(node_ctr_range), extract(epoch FROM granted_at), extract(epoch FROM occupied_until)
FROM scru64_realm.ledger)));
ok_apart('nor of what the clients got', windows_of($node, q(
SELECT lease_id, lower(r), upper(r), extract(epoch FROM got_at), coalesce(extract(epoch FROM gone_at), 'infinity')
FROM log, scru64_realm_internal.node_ctr_range(node_spec) AS r
WHERE lease_id IS NOT NULL)));
is( $node->safe_psql('postgres', "SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'"),
	'0', 'no deadlock');
unlike(slurp_file($node->logfile), qr/ERROR/, 'no error in the log');

#
# Two sessions, step by step
#
$node->safe_psql('postgres', q(
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

# Which node a lease is of
sub node_of
{
	my ($lease) = @_;

	return "SELECT node_id FROM scru64_realm.lease($lease), scru64_parse_node_spec(node_spec)";
}

sub wait_for_waiter
{
	my ($type, $count) = (@_, 1);

	$node->poll_query_until('postgres', "SELECT count(*) = $count FROM pg_locks WHERE NOT granted AND locktype = '$type'")
	  or die 'nobody waits';
	return;
}

my $renewed = $one->query_safe("SELECT lease_id FROM scru64_realm.lease(8, 'one', '1 hour', node_id => 100)");
my @sets = ("set_max_ttl('1 hour')", "set_first_ttl('1 hour')", "set_guard('40 s')", "prune('1 hour')");

# Others wait for a lease that is not committed, but not for long: then they have another.
$one->query_safe('BEGIN');
my $leased = $one->query_safe(node_of("8, 'one'"));
($out, $err) = try_statement($two, node_of("8, 'two'"));
is($err, '', 'a lease that is not committed is in nobody\'s way');
isnt($out, $leased, 'but its node is not to be had');
$two->query_safe("DELETE FROM scru64_realm.ledger WHERE holder = 'two'");
$one->query_safe('ROLLBACK');
is($two->query_safe(node_of("8, 'two'")), $leased, 'after a rollback it is free');
$two->query_safe("DELETE FROM scru64_realm.ledger WHERE holder = 'two'");

# So they do for a renewal that is not committed, where they would have the node.
$one->query_safe("BEGIN; SELECT scru64_realm.renew('$renewed', '3 hours')");
$node->safe_psql('postgres', "UPDATE test_clock SET moved = moved + '2 hours'");
($out, $err) = try_statement($two, node_of("8, 'two', within => '50/7'"));
is($err, '', 'a renewal that is not committed is in nobody\'s way');
is($out, 101, 'but its node is not to be had');
($out, $err) = try_statement($two, "SELECT scru64_realm.lease(8, 'two', node_id => 100)");
like(
	$err,
	qr/ERROR:  55P03: could not grant a lease in time\nDETAIL:  Transactions .* still open.*\nHINT:  Try again/,
	'who waits for too long for that node gets 55P03');
$one->query_safe('ROLLBACK');

# What its owner sets waits for those who go by what was set before.
$renewed = $one->query_safe("SELECT lease_id FROM scru64_realm.lease(8, 'one', '1 hour', node_id => 110)");
foreach my $set (@sets)
{
	$one->query_safe("BEGIN; SELECT scru64_realm.renew('$renewed', '3 hours')");
	start_statement($two, "SELECT scru64_realm.$set");
	wait_for_waiter('relation');
	$one->query_safe('COMMIT');
	($out, $err) = try_statement($two, 'SELECT 1');
	is($err, '', "$set waits for who renews");
}

# If it has to give up, it says who that was.
$node->safe_psql('postgres', "ALTER FUNCTION scru64_realm.set_guard SET lock_timeout = '100ms'");
my $role = $one->query_safe('SELECT current_user');
$one->query_safe("BEGIN; SELECT scru64_realm.renew('$renewed', '3 hours')");
($out, $err) = try_statement($two, "SELECT scru64_realm.set_guard('40 s')");
like(
	$err,
	qr/ERROR:  55P03: could not lock out calls of the realm within 100ms\nDETAIL:  .* not ended: process $one->{pid} of role $role\.\nHINT:  Try again/,
	'who waits for too long is told for whom');
$one->query_safe('COMMIT');
$one->query_safe("BEGIN; LOCK TABLE scru64_realm_internal.allocator IN ACCESS SHARE MODE; PREPARE TRANSACTION 'reader'");
($out, $err) = try_statement($two, "SELECT scru64_realm.set_guard('40 s')");
like($err, qr/ERROR:  55P03: .*\nDETAIL:  .* not ended: a prepared transaction\.\nHINT:  .* pg_prepared_xacts/, 'also for a prepared transaction');
$one->query_safe("ROLLBACK PREPARED 'reader'");
$node->safe_psql('postgres', "UPDATE scru64_realm.settings SET guard = '30 s', max_ttl = '24 hours', first_ttl = '24 hours'");

# What is leased or split while a lease is revoked does not escape that: by its holder, or by
# the lease that was split.
foreach my $whose ("'%s'", "'%s'::uuid", "'revoked'")
{
	my $parent = $one->query_safe("SELECT lease_id FROM scru64_realm.lease(8, 'revoked')");

	$one->query_safe('BEGIN');
	my $other = $one->query_safe("SELECT lease_id FROM scru64_realm.lease(8, 'revoked')");
	my ($child, $parted) = split(/\n/, $one->query_safe("SELECT lease_id FROM scru64_realm.split('$parent', 9)"));
	my @revoked = ($child, split(/\n/, $one->query_safe("SELECT lease_id FROM scru64_realm.split('$parted', 10)")));
	push @revoked, $other if $whose =~ /revoked/;
	start_statement($two, sprintf("SELECT scru64_realm.revoke($whose)", $parent));
	wait_for_waiter('relation');
	$one->query_safe('COMMIT');
	($out, $err) = try_statement($two, 'SELECT NULL');
	is("$out$err", scalar(@revoked) . "\n", "revoke($whose): what becomes active meanwhile");
	foreach my $id (@revoked)
	{
		($out, $err) = try_statement($two, "SELECT scru64_realm.renew('$id')");
		like($err, qr/ERROR:  55000: lease was revoked/, "revoke($whose): it is not renewed");
	}
	$one->query_safe("DELETE FROM scru64_realm.ledger WHERE holder = 'revoked'");
}

# A lease that is renewed at the last moment, while somebody else asks for the node:
# it is in nobody's way until that is committed, and then it is.
my $id = $one->query_safe("SELECT lease_id FROM scru64_realm.lease(8, 'one', '1 hour', node_id => 200)");
foreach my $end ('COMMIT', 'ROLLBACK')
{
	$one->query_safe("BEGIN; SELECT scru64_realm.renew('$id', '3 hours')");
	$node->safe_psql('postgres', "UPDATE test_clock SET moved = moved + '2 hours'");
	start_statement($two, node_of("8, 'two', node_id => 200"));
	wait_for_waiter('transactionid');
	$one->query_safe($end);
	($out, $err) = try_statement($two, 'SELECT 1');
	if ($end eq 'COMMIT')
	{
		like($err, qr{55006: node 200/8 is not free\nDETAIL:.*occupied until }, 'a call that is late by a moment is refused');
	}
	else
	{
		like($out, qr/^200$/m, 'a renewal that is rolled back is none');
		is($err, '', 'without an error');
	}
}

# Renewals of one lease come one after the other, also with its release.
$id = $one->query_safe("SELECT lease_id FROM scru64_realm.lease(8, 'one')");
$one->query_safe("BEGIN; SELECT scru64_realm.release('$id')");
start_statement($two, "SELECT scru64_realm.renew('$id')");
wait_for_waiter('transactionid');
$one->query_safe('COMMIT');
($out, $err) = try_statement($two, 'SELECT 1');
like($err, qr/ERROR:  55000: lease is not active/, 'who waits for a release cannot renew');

# Nor can who waits until the lease is over.
$id = $one->query_safe("SELECT lease_id FROM scru64_realm.lease(8, 'one', '1 hour')");
$one->query_safe("BEGIN; SELECT scru64_realm.renew('$id', '3 hours')");
start_statement($two, "SELECT scru64_realm.renew('$id')");
wait_for_waiter('transactionid');
$node->safe_psql('postgres', "UPDATE test_clock SET moved = moved + '2 hours'");
$one->query_safe('ROLLBACK');
($out, $err) = try_statement($two, 'SELECT 1');
like($err, qr/ERROR:  55000: lease is not active/, 'who waits until the lease is over cannot renew');

# Requests that are repeated at the same time: one lease, which those who wait get, too.
my $request = '11111111-2222-4333-8444-555555555555';
my $ask = "SELECT node_spec FROM scru64_realm.lease(8, 'one', request => '$request')";
$one->query_safe('BEGIN');
my $spec = $one->query_safe($ask);
start_statement($two, $ask);
wait_for_waiter('relation');
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

#
# Nodes that the realm's own server uses without a lease: in its configuration, which a
# session may override, and of another database.
#
$one->query_safe('DELETE FROM scru64_realm.ledger');
is($two->query_safe(node_of("8, 'x'")), 0, 'best fit');
$one->query_safe("DELETE FROM scru64_realm.ledger; ALTER DATABASE template1 SET scru64.node_spec = '0x1/8'");
set_parameter($node, 'scru64.node_spec', '0/8');
$two->query_safe("LOAD 'scru64'; SET scru64.node_spec = ''");
is($two->query_safe(node_of("8, 'x'")), 2, 'neither of them is leased');

#
# something_was_lost()
#
# A call that is about to notice a failover does not stop it.
my $gate = open_session($node);
$node->safe_psql('postgres', "SELECT setval('scru64_realm_internal.last_identity', 5)");
$gate->query_safe('BEGIN; LOCK TABLE scru64_realm.settings IN SHARE ROW EXCLUSIVE MODE');
start_statement($one, 'SELECT scru64_realm.something_was_lost()');
wait_for_waiter('relation');
start_statement($two, "SELECT scru64_realm.lease(8, 'x')");
wait_for_waiter('relation', 2);
$gate->query_safe('COMMIT');
($out, $err) = try_statement($one, 'SELECT 1');
is($err, '', 'something_was_lost(), while a call notices a failover');
($out, $err) = try_statement($two, 'SELECT 1');
like($err, $waits, 'after which the call is refused');

# Where it fails, it has not begun to wait, and is not taken back either.
$node->safe_psql('postgres', "UPDATE test_clock SET moved = moved + '2 days'");
$node->safe_psql('postgres', "ALTER FUNCTION scru64_realm.something_was_lost SET lock_timeout = '100ms'");
$one->query_safe("BEGIN; SELECT FROM scru64_realm.lease(8, 'one')");
($out, $err) = try_statement($two, 'SELECT scru64_realm.something_was_lost()');
like($err, qr/ERROR:  55P03: could not lock out calls of the realm/, 'something_was_lost() does not outlast a call');
$one->query_safe('COMMIT');
$two->query_safe('SELECT scru64_realm.something_was_lost()');
($out, $err) = try_statement($two, "SELECT scru64_realm.lease(8, 'x')");
like($err, $waits, 'it is tried again');
$two->query_safe('SELECT scru64_realm.nothing_was_lost()');
($out, $err) = try_statement($two, "SELECT scru64_realm.lease(8, 'x')");
is($err, '', 'and one nothing_was_lost() takes it back');

$_->quit foreach ($one, $two, $gate);
$node->stop;
done_testing();
