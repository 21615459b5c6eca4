# scru64_watermark(), rule by rule: a statement sees all rows below it; and nothing holds it back
# that need not.  No ID that is issued later is below it, whatever nodes and clocks do: that is for the
# simulator (unit_tests/sim/) and t/watermark/random_readers.

use strict;
use warnings;
use Scru64Clock;
use Scru64Copies;
use Scru64Debugger;
use Scru64Server;
use Scru64Test;
use Scru64Watermark;

plan skip_all => 'no clock can be set' if !can_set_clock();

my $template = make_template('template', allows_streaming => 1);
my $node = copy_server($template, 'main', clock => '+0');
my ($id, $other, $before, $out, $err);

start_server($node);
add_events($node);

# No node has begun, and all begin now.
sub begin_anew
{
	$node->safe_psql('postgres', 'SELECT scru64_set_ceiling(); TRUNCATE event');
	return;
}

sub above_ok
{
	my ($given, $watermark, $name) = @_;

	cmp_ok($given, 'ge', $watermark, $name);
	return;
}

# All IDs are of the tick that the ceiling is at: a node that has issued less holds
# nothing back when that is over.
set_parameter($node, 'scru64.rollback_allowance', '0');
stop_clock($node, time);
begin_anew();
set_clock($node, '+0');
put($node, '1/8');
put($node, '2/8');
passes_ok($node, put($node, '200/8'), 'an idle server: it is above all rows');
set_parameter($node, 'scru64.rollback_allowance', '10s');

#
# scru64_set_ceiling(): all begins anew, and so does the watermark
#
$node->safe_psql('postgres', "SELECT scru64_set_ceiling('2036-01-02 03:04:05+00')");
$before = watermark($node);
begin_anew();
{
	my $session = open_session($node);

	$session->query_safe("SET scru64.node_spec = '1/8'; BEGIN");
	$id = put($session);
	cmp_ok($id, 'lt', $before, 'a ceiling is set back: IDs are below those of before');
	held_ok($node, $id, 'a ceiling is set back: so is the watermark');
	$session->query_safe('COMMIT');
	passes_ok($node, $id, 'a ceiling is set back: a row is below it');
	$session->quit;
}

#
# A statement that does not see what has been committed
#
begin_anew();
put($node, '1/8');
{
	my $reader = open_session($node);
	my $lock = open_session($node);
	my $rows = 'SELECT count(*) FROM event WHERE id < scru64_watermark()';

	watermark($node);
	$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	my $seen = $reader->query_safe('SELECT count(*) FROM event');
	$id = put($node, '1/8');
	passes_ok($node, $id, 'REPEATABLE READ: others get more');
	cmp_ok($reader->query_safe('SELECT scru64_watermark()'), 'le', $id, 'REPEATABLE READ: below what it does not see');
	is($reader->query_safe($rows), $seen, 'REPEATABLE READ: what it does see is below');
	put($node, '1/8');
	is($reader->query_safe($rows), $seen, 'REPEATABLE READ: its answer stays');
	$reader->query_safe('COMMIT');

	# a commit between a statement's snapshot and its call, which may be in a function
	$node->safe_psql('postgres', q(
CREATE FUNCTION stable_watermark() RETURNS scru64 LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN scru64_watermark();
END
$$;

-- what asks, and then reads, sees what has been committed meanwhile
CREATE FUNCTION unread_rows() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
	until scru64;
BEGIN
	until := scru64_watermark();
	RETURN (SELECT count(*) FROM event WHERE id >= until);
END
$$;
));
	foreach my $case ([ 'scru64_watermark', 'le' ], [ 'stable_watermark', 'le' ], [ 'unread_rows', 'eq' ])
	{
		my ($function, $how) = @{$case};

		$lock->query_safe('SELECT pg_advisory_lock(1)');
		start_statement($reader, "SELECT $function() FROM (SELECT wait_for(1) OFFSET 0) AS waited");
		ok(waits_for($node, $reader, 'advisory'), "$function(): a statement has its snapshot");
		$id = put($node, '1/8');
		passes_ok($node, $id, "$function(): others get more");
		$lock->query_safe('SELECT pg_advisory_unlock(1)');
		cmp_ok($reader->query_safe('SELECT'), $how, $how eq 'le' ? $id : 0, "$function(): the statement gets no more than it sees");
	}
	$_->quit foreach ($reader, $lock);
}

# One that asks twice.  Between, a transaction ends that held it back, and no snapshot
# tells of that; and others ask, with snapshots of their own.
$node->safe_psql('postgres', q(
CREATE TABLE part (id scru64, kind integer, n integer) PARTITION BY LIST (kind);
CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1);
CREATE TABLE part_2 PARTITION OF part FOR VALUES IN (2);
CREATE FUNCTION put_parts(n integer) RETURNS void LANGUAGE sql AS $$
	INSERT INTO part VALUES (scru64_generate(), 1, n), (scru64_generate(), 2, n)
$$;

-- transactions that end, until somebody has had this lock
CREATE PROCEDURE go_on_until(lock integer) LANGUAGE plpgsql AS $$
BEGIN
	WHILE NOT pg_try_advisory_lock(lock) LOOP
		PERFORM pg_current_xact_id();
		COMMIT;
	END LOOP;
	PERFORM pg_advisory_unlock(lock);
END
$$;

-- ask so often, each time with another snapshot
CREATE FUNCTION ask(times integer) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	before xid8 := '0';
BEGIN
	FOR i IN 1 .. times LOOP
		WHILE pg_snapshot_xmax(pg_current_snapshot()) = before LOOP
		END LOOP;
		before := pg_snapshot_xmax(pg_current_snapshot());
		PERFORM scru64_watermark();
	END LOOP;
	RETURN true;
END
$$;
));
foreach my $case ([ 'statement', 0 ], [ 'statement', 200 ], [ 'cursor', 0 ], [ 'cursor', 200 ])
{
	my ($way, $times) = @{$case};
	my ($reader, $lock, $open, $other) = map { open_session($node) } (1 .. 4);
	my $put = "SET scru64.node_spec = '1/8'; SELECT put_parts";

	begin_anew();
	$node->safe_psql('postgres', "TRUNCATE part; $put(0)");
	$open->query_safe("SET scru64.node_spec = '1/8'; BEGIN; SELECT scru64_generate()");
	$node->safe_psql('postgres', "$put(1)");
	$lock->query_safe('SELECT pg_advisory_lock(2), pg_advisory_lock(3)');
	if ($way eq 'statement')
	{
		start_statement($reader,
			"SELECT string_agg(kind || ' ' || n, ', ') FROM part WHERE id < scru64_watermark() AND CASE WHEN kind = 1 THEN wait_for(2) AND ask($times) ELSE true END");
		ok(waits_for($node, $reader, 'advisory'), 'a statement reads the first partition');
	}
	else
	{
		$reader->query_safe('BEGIN; DECLARE c CURSOR FOR SELECT kind, n FROM part WHERE id < scru64_watermark(); FETCH c');
		# and what no snapshot of before sees
		$node->safe_psql('postgres', "$put(2)");
	}
	$open->query_safe('COMMIT');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM part WHERE id >= scru64_watermark()'), '0', "$way: others get more");
	start_statement($other, 'CALL go_on_until(3)');
	$lock->query_safe('SELECT pg_advisory_unlock(2)');
	if ($way eq 'statement')
	{
		is($reader->query_safe('SELECT'), '1 0, 2 0', "$way: one answer for all partitions, $times others between");
	}
	else
	{
		$reader->query_safe("SELECT ask($times)");
		is($reader->query_safe('FETCH ALL FROM c'), '2|0', "$way: one answer for all partitions, $times others between");
	}
	$lock->query_safe('SELECT pg_advisory_unlock(3)');
	$_->quit foreach ($reader, $lock, $open, $other);
}

# What is kept for that is of use: a transaction in which nothing is open but the
# statement that asks keeps little.
{
	my ($reader, $lock, $other) = map { open_session($node) } (1 .. 3);

	$lock->query_safe('SELECT pg_advisory_lock(3)');
	start_statement($other, 'CALL go_on_until(3)');
	$reader->query_safe("BEGIN;\n" . "SELECT scru64_watermark() AS w \\gset\n" x 4000);
	cmp_ok($reader->query_safe("SELECT sum(used_bytes) FROM pg_backend_memory_contexts WHERE name = 'scru64 watermarks'"),
		'<', 30_000, 'answers for snapshots that are gone are not kept');
	$lock->query_safe('SELECT pg_advisory_unlock(3)');
	$_->quit foreach ($reader, $lock, $other);
}

# The server remembers 16 answers.  A session is told one that another session has found since the
# first looked at the nodes, and the server forgets it before the first asks again.
SKIP:
{
	skip 'gdb is not installed', 1 if !has_gdb();
	my $reader = open_session($node);
	my ($gdb, $told);

	$reader->query_safe('SELECT scru64_watermark()');
	$gdb = stop_at($node, $reader->{pid}, 'transactions_bound');
	start_statement($reader, 'SELECT scru64_watermark()');
	ok(has_stopped($gdb), 'a session has looked at the nodes');
	# a transaction without a number: the next snapshot is as the one before
	$id = $node->safe_psql('postgres', "SET scru64.node_spec = '1/8'; SELECT scru64_generate()");
	$before = watermark($node);
	skip 'the debugger could not stop it there', 1 if !let_go($gdb);
	$told = $reader->query_safe('SELECT');
	is($told, $before, 'and is told what another one has found since');
	$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
	$node->safe_psql('postgres', 'DO $$ BEGIN FOR n IN 1 .. 20 LOOP PERFORM pg_current_xact_id(); COMMIT; PERFORM scru64_watermark(); END LOOP; END $$');
	above_ok($reader->query_safe('SELECT scru64_watermark()'), $told, 'the server has forgotten it, and the session has not');
	$reader->quit;
}

# A statement finds the watermark once, however often it asks: snapshot_position() looks through
# the transactions of a snapshot.
SKIP:
{
	skip 'gdb is not installed', 1 if !has_gdb();
	my $session = open_session($node);
	my @statements = (
		[ 'a call', qr/Result/, 'SELECT scru64_watermark()' ],
		[ 'a filter', qr/Filter/, 'SELECT count(*) FROM many WHERE id < scru64_watermark()' ],
		[ 'an output', qr/Output: .*scru64_watermark/, 'SELECT id < scru64_watermark() FROM many OFFSET 1000' ],
		[ 'a join', qr/Join Filter/, 'SELECT count(*) FROM many a LEFT JOIN generate_series(1, 3) n ON a.id < scru64_watermark()' ],
		[ 'an index condition', qr/Index Cond: .*scru64_watermark/,
			'SELECT count(x) FROM many m, LATERAL (SELECT id FROM indexed i WHERE i.id > m.id AND i.id < scru64_watermark() ORDER BY id LIMIT 1) x' ],
		[ 'partitions', qr/Append.*Subplans Removed: 1\b/s, 'SELECT count(*) FROM parted WHERE id < scru64_watermark()' ],
		[ 'partitions, pruned for each row', qr/Append.*Filter: .*m\.id.*scru64_watermark/s,
			'SELECT count(x) FROM many m, LATERAL (SELECT FROM parted p WHERE p.id = m.id AND p.id < scru64_watermark() OFFSET 0) x' ],
		[ 'a function', qr/Filter: .*stable_watermark/, 'SELECT count(*) FROM many WHERE id < stable_watermark()' ],
		[ 'above workers', qr/Filter: .*scru64_watermark.*Gather/s, 'SELECT count(*) FROM (SELECT id FROM shared WHERE id IS NOT NULL OFFSET 0) m WHERE id < scru64_watermark()' ]);
	my (@hits, $out, $err);

	$node->safe_psql('postgres', q(
CREATE TABLE many AS SELECT scru64_min(to_timestamp(n)) AS id FROM generate_series(1, 1000) AS n;
CREATE TABLE shared WITH (parallel_workers = 2) AS TABLE many;
CREATE TABLE indexed AS TABLE many;
CREATE INDEX ON indexed (id);
CREATE TABLE parted (id scru64) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (scru64_min('1970-01-01 00:10:00+00'));
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (scru64_min('1970-01-01 00:10:00+00')) TO (scru64_min('2100-01-01'));
CREATE TABLE parted_3 PARTITION OF parted FOR VALUES FROM (scru64_min('2100-01-01')) TO (MAXVALUE);
INSERT INTO parted TABLE many;
ANALYZE many, shared, indexed, parted;
));
	$session->query_safe('SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET enable_material = off; SELECT scru64_watermark()');
	foreach my $statement (@statements)
	{
		my ($name, $plan, $sql) = @{$statement};

		like($session->query_safe("EXPLAIN (VERBOSE, COSTS OFF) $sql"), $plan, "$name: the plan");
	}
	# scru64_node_spec() comes after each
	my $gdb = attach_gdb($node, $session->{pid},
		[ 'break snapshot_position', 'ignore 1 1000000', 'break scru64_node_spec' ],
		map { ('continue', 'info breakpoints') } @statements);
	$session->query_safe("$_->[2]; SELECT scru64_node_spec()") foreach (@statements);
	let_go($gdb);
	@hits = map { /^1 .*\n\s+breakpoint already hit (\d+) time/m ? $1 : 0 } split(/^Num /m, slurp_file("$gdb->{file}.log"));
	shift @hits;
	skip 'the debugger could not stop it there', 1 if @hits != @statements || $hits[0] == 0;
	# The planner may have a snapshot of its own. Workers signal the leader, and the debugger counts a
	# call again that a signal interrupts.
	cmp_ok($hits[$_] - $hits[ $_ - 1 ], '<=', ($_ == $#statements ? 50 : 2) * $hits[0], "$statements[$_]->[0]: the watermark is found once")
		foreach (1 .. $#statements);
	$session->quit;
}

#
# Transactions that are prepared
#
begin_anew();
$id = put($node, '1/8');
{
	my $session = open_session($node);
	my $held = sub { return $node->safe_psql('postgres', "SELECT coalesce(string_agg(coalesce(gid, 'a process'), ' ' ORDER BY gid NULLS FIRST), '') FROM scru64_transactions()") };

	$session->query_safe("SET scru64.node_spec = '1/8'");
	$session->query_safe('BEGIN');
	$id = put($session);
	$session->query_safe("PREPARE TRANSACTION 'one'");
	put($node, '1/8');
	is($held->(), 'one', 'a prepared transaction is in the view');
	held_ok($node, $id, 'and holds it back');
	# the session goes on, and holds nothing back
	$session->query_safe('BEGIN');
	$other = put($session);
	is($held->(), 'a process one', 'so is the next one of its session');
	$session->query_safe('COMMIT');
	held_ok($node, $id, 'still the prepared one');

	# more that fail than there is room for
	foreach my $n (1 .. 100)
	{
		$session->query_safe('BEGIN');
		put($session);
		($out, $err) = try_statement($session, "PREPARE TRANSACTION 'one'");
		last if $err !~ /ERROR:  42710/;
	}
	like($err, qr/ERROR:  42710/, 'a name that is in use');
	is($held->(), 'one', 'leaves nothing behind');
	$session->query_safe('CREATE TABLE kind (n integer PRIMARY KEY); CREATE TABLE deferred (n integer REFERENCES kind DEFERRABLE INITIALLY DEFERRED)');
	$session->query_safe('BEGIN; INSERT INTO deferred VALUES (1)');
	put($session);
	($out, $err) = try_statement($session, "PREPARE TRANSACTION 'two'");
	like($err, qr/ERROR:  23503/, 'a constraint that fails when it is prepared');
	is($held->(), 'one', 'leaves nothing behind either');
	$node->safe_psql('postgres', "COMMIT PREPARED 'one'");
	is($held->(), '', 'committed by another session');
	passes_ok($node, $other, 'it passes');

	# a restart: nobody knows what they have
	foreach my $gid ('three', 'four')
	{
		$session->query_safe('BEGIN');
		$id = put($session);
		$session->query_safe("PREPARE TRANSACTION '$gid'");
	}
	$session->quit;
}
$node->stop;
start_server($node);
my %xid = map { split(/\|/) } split(/\n/, $node->safe_psql('postgres', 'SELECT gid, transaction FROM pg_prepared_xacts'));
# also where the ceiling is set before anybody makes an ID
$node->safe_psql('postgres', "SELECT scru64_set_ceiling(scru64_timestamp('$id') + interval '1 s')");
no_watermark_ok($node, qr/DETAIL:  Transaction ($xid{three}|$xid{four}) was prepared before.*\nHINT:  All readers wait until the last .*scru64_transactions.*COMMIT PREPARED/,
	'after a restart with prepared transactions');
is($node->safe_psql('postgres', "SELECT string_agg(gid || ' ' || first_id_after, ' ' ORDER BY gid) FROM scru64_transactions()"),
	'four 000000000001 three 000000000001', 'they are in the view');
$other = put($node, '1/8');
$node->safe_psql('postgres', "ROLLBACK PREPARED 'three'");
no_watermark_ok($node, qr/DETAIL:  Transaction $xid{four} /, 'while there is one of them');
$node->safe_psql('postgres', "SET scru64.node_spec = '1/8'; BEGIN; INSERT INTO event VALUES (scru64_generate(), 5); PREPARE TRANSACTION 'five'");
$node->safe_psql('postgres', "COMMIT PREPARED 'four'");
passes_ok($node, $other, 'then there is one again, above the IDs issued meanwhile');
is($node->safe_psql('postgres', "SELECT count(*) FROM event WHERE id = '$id' AND id < scru64_watermark()"), '1', 'and the row that was prepared is below');
is($node->safe_psql('postgres', "SELECT gid FROM scru64_transactions()"), 'five', 'one that was prepared later is known');
$node->safe_psql('postgres', "ROLLBACK PREPARED 'five'");

#
# Sessions that go away
#
foreach my $how ('TERM', 'KILL')
{
	my $session = open_session($node);

	$session->query_safe("SET scru64.node_spec = '1/8'; BEGIN");
	$id = put($session);
	$before = watermark($node);
	cmp_ok($before, 'le', $id, "SIG$how: a transaction is open");
	kill($how, $session->{pid});
	$session->{run}->finish;
	$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM scru64_transactions()') or die 'the transaction is still there';
	$other = put($node, '1/8');
	cmp_ok($other, 'gt', $id, "SIG$how: no ID again");
	passes_ok($node, $other, "SIG$how: nothing holds it back");
	cmp_ok(watermark($node), 'ge', $before, "SIG$how: it has not gone back");
}

#
# A node that is idle holds nothing back, also within a tick.
#
set_clock($node, '+0');
begin_anew();
put($node, '16/8');
$node->poll_query_until('postgres', "SELECT clock_timestamp() > scru64_timestamp(max(id)) + interval '2 s' FROM event") or die 'the clock stands still';
$out = "";
foreach (1 .. 20)
{
	put($node, '2/8');
	$out .= $node->safe_psql('postgres', 'SELECT id FROM event WHERE id >= scru64_watermark()');
}
is($out, '', 'each row of the other node is below the watermark at once');

#
# What others know of nodes is not changed by who asks for the watermark.
#
set_parameter($node, 'scru64.rollback_allowance', '1s');
begin_anew();
put($node, '16/8');
$before = in_view($node, '16/8', 'last_id');
{
	my %last_ids;

	# 256/12 is a part of 16/8, which is in use for a second
	wait_until(sub {
		put($node, '2/8');
		watermark($node);
		$last_ids{ in_view($node, '16/8', 'last_id') } = 1;
		$err = error_of($node, "SET scru64.node_spec = '2/8'; SELECT scru64_generate(); SELECT scru64_watermark(); SET scru64.node_spec = '256/12'; SELECT scru64_generate()");
		return $err !~ /overlaps node/;
	}, 0.01);
	is($err, '', 'an idle node does not count as in use because somebody asks for the watermark');
	is(join(' ', keys %last_ids), $before, 'and its last ID stays the same');
}
$node->stop;
done_testing();
