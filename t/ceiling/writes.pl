# More nodes than there are slots, sessions that switch between them, and restarts: no ID
# twice, none too low, no last ID forgotten, and nothing is written because a node has lost
# its slot.  How much is written at all.

use FindBin;
use lib "$FindBin::RealBin/../lib";
use List::Util qw(shuffle);
use Scru64Fault;
use Scru64Test;

plan skip_all => 'no clock can be set' if !can_set_clock();

my $slots = 128;
my $nodes = 1024;
my $holders = 160;

# Bytes in the WAL for a ceiling, and a few more where a page of it begins.  After a checkpoint the whole
# page is written, too.
my $record = 120;

my $template = make_template('template');
my $node = copy_server($template, 'main', clock => '+0', lines => "max_connections = 200\ncheckpoint_timeout = 1h\n");

start_server($node);
$node->safe_psql('postgres', q(
-- IDs of nodes in turn, so many of each, without writing anything
CREATE FUNCTION draw(specs text[], count integer) RETURNS TABLE (spec text, id scru64)
LANGUAGE plpgsql AS $$
BEGIN
	FOREACH spec IN ARRAY specs LOOP
		PERFORM set_config('scru64.node_spec', spec, false);
		RETURN QUERY SELECT spec, g FROM scru64_generate(count) g;
	END LOOP;
END
$$;

-- IDs of a node, which is set only if the session has another one.  Moments are of one order for
-- the whole server: a batch that ended before another one of its node began has the smaller IDs.
CREATE SEQUENCE moments;
CREATE TABLE batches (node integer, began bigint, ids scru64[], ended bigint);
CREATE TABLE watched (rows bigint, nodes bigint, wrong bigint);
CREATE FUNCTION give_batch(node integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	spec text := node || '/11';
	began bigint;
	given scru64[];
BEGIN
	IF current_setting('scru64.node_spec', true) IS DISTINCT FROM spec THEN
		PERFORM set_config('scru64.node_spec', spec, false);
	END IF;
	began := nextval('moments');
	given := ARRAY(SELECT scru64_generate(20));
	INSERT INTO batches VALUES (node, began, given, nextval('moments'));
END
$$;
CHECKPOINT;
));

my %received;

# Where the WAL is, in bytes.
my $wal = "SELECT pg_current_wal_insert_lsn() - '0/0'";

sub wal
{
	return $node->safe_psql('postgres', $wal);
}

# Two IDs of each of these nodes in turn, in one session.  Returns what was written.
sub go_through
{
	my ($name, @specs) = @_;
	my %ids;
	my ($before, @lines) = split(/\n/, $node->safe_psql('postgres',
			"$wal; SET statement_timeout = '60s'; SELECT * FROM draw('{" . join(',', @specs) . "}', 2); $wal"));
	my $after = pop(@lines);

	foreach my $line (@lines)
	{
		my ($spec, $id) = split(/\|/, $line);

		push @{ $ids{$spec} }, $id;
	}
	record_ids(\%received, $_, $ids{$_}) foreach (keys %ids);
	is(scalar(@lines), 2 * @specs, "$name: all nodes give IDs");
	is(record_problems(\%received), '', "$name: no ID twice, none too low");
	return $after - $before;
}

#
# All nodes in random order, again and again.  After each restart the clock is behind.
#
# Others are in the other half.
my @all = map { "$_/11" } (0 .. $nodes - 1);

go_through('first', shuffle(@all));
foreach my $again (1 .. 3)
{
	cmp_ok(go_through("again, $again", shuffle(@all)), '<=', 3 * $record, "again, $again: nothing is written when a node loses its slot");
}

# The server remembers the last IDs of all nodes: with the clock behind, each node goes on
# right after its last ID.
my @last = map { $received{$_}{greatest} } @all;

set_parameter($node, 'scru64.rollback_allowance', '10min');
set_clock($node, '-300');
go_through('the clock is behind', shuffle(@all));
is( $node->safe_psql('postgres', sprintf(
			"SELECT count(*) FROM unnest('{%s}'::scru64[], '{%s}'::scru64[]) AS node (last, now) WHERE now::bigint = last::bigint + 2",
			join(',', @last), join(',', map { $received{$_}{greatest} } @all))),
	$nodes, 'the clock is behind: the two IDs of each node come right after its last one');
set_clock($node, '+0');
set_parameter($node, 'scru64.rollback_allowance', '10s');

# A session that goes from node to node at every ID.
go_through('each three times', shuffle(@all, @all, @all));

# Sessions that switch nodes all the time.  Half of the time they choose from few enough nodes to
# come back soon.
{
	my %batches;

	pgbench_ok($node, '8 sessions switch between nodes', 8, 1500, {
			'switch_all@5' => "\\set node random(0, $nodes - 1)\nSELECT give_batch(:node)",
			'switch_some@5' => "\\set node random(0, $holders - 1)\nSELECT give_batch(:node)",
			'watch_switch@1' => q(INSERT INTO watched
SELECT count(*), count(DISTINCT (node_id, node_id_size)), count(*) FILTER (WHERE scru64_node_ctr(last_id) >> 13 <> node_id OR node_id_size <> 11)
FROM scru64_generators();)
		});
	foreach my $line (split(/\n/, $node->safe_psql('postgres', "SELECT node || '/11', array_to_string(ids, '|') FROM batches")))
	{
		my ($spec, @ids) = split(/\|/, $line);

		push @{ $batches{$spec} }, \@ids;
	}
	record_ids(\%received, $_, @{ $batches{$_} }) foreach (keys %batches);
	is(record_problems(\%received), '', 'switched: no ID twice, none too low, batches in order');
	is($node->safe_psql('postgres', q(
SELECT count(*) > 10000, count(*) FILTER (WHERE EXISTS (SELECT FROM unnest(ids) AS id WHERE scru64_node_ctr(id) >> 13 <> node)),
	(SELECT count(*) FROM batches AS a JOIN batches AS b USING (node) WHERE a.ended < b.began AND a.ids[20] >= b.ids[1])
FROM batches)),
		't|0|0', 'switched: all of their nodes, none below one that was there before');
	is($node->safe_psql('postgres', 'SELECT count(*) > 100, max(rows), count(*) FILTER (WHERE nodes <> rows), sum(wrong) FROM watched'),
		"t|$slots|0|0", 'switched: there never were more nodes than there are slots, nor one twice');
}

my @restarts = (
	[ 'fast restart', sub { $node->stop('fast') }, '-2' ],
	[ 'immediate restart', sub { $node->stop('immediate') }, '+0' ],
	[ 'kill -9', sub { kill_server($node) }, '-2' ]);

foreach my $restart (@restarts)
{
	my ($name, $go_down, $clock) = @{$restart};

	$go_down->();
	set_clock($node, $clock);
	start_server($node);
	go_through($name, shuffle(@all));
}

#
# A node that is ahead of the clock loses its slot.
#
my $unused = 0;

foreach my $when ('without a restart', 'and the server is killed')
{
	my $name = "a node ahead of the clock loses its slot, $when";

	set_clock($node, '+0');
	go_through("$name, first", '1/11');
	set_clock($node, '-6');
	go_through("$name, ahead", '1/11');
	# by nodes that were not used before
	go_through("$name, others", map { (12000 + $unused++) . '/14' } (1 .. 2 * $slots));
	is(in_view($node, '1/11', 'count(*)'), '0', "$name: it has lost its slot");
	if ($when eq 'and the server is killed')
	{
		kill_server($node);
		start_server($node);
	}
	go_through("$name, back", '1/11');
	go_through("$name, a node that was not used before", (14000 + $unused++) . '/14');
}

#
# One small record in about 1.5 seconds, as long as there are IDs.
#
set_clock($node, '+100');
go_through('volume', '1/11');
my $clock = 100;
my $session = open_session($node);
$session->query_safe("SET scru64.node_spec = '1/11'");
# who reads rows of the catalog first may write their page, where pages have checksums
record_ids(\%received, '1/11', [ $session->query_safe('SELECT scru64_generate()') ]);
my $before = wal();
foreach my $quarter (1 .. 80)
{
	$clock += 0.25;
	set_clock($node, sprintf('+%.2f', $clock));
	record_ids(\%received, '1/11', [ $session->query_safe('SELECT scru64_generate()') ]);
}
my $written = wal() - $before;
is(record_problems(\%received), '', 'volume: no ID twice, none too low');
cmp_ok($written, '<=', 16 * $record, "volume: at most one record in five ticks ($written bytes in 20 s)");
cmp_ok($written, '>=', 3 * 64, 'volume: there are some');
$before = wal();
foreach my $quarter (1 .. 40)
{
	$clock += 0.25;
	set_clock($node, sprintf('+%.2f', $clock));
	$session->query_safe('SELECT 1');
}
is(wal() - $before, 0, 'volume: nothing is written without IDs');
$session->quit;

# A saturated node, at the full rate.
$node->safe_psql('postgres', "SELECT make_busy('600000/20')");
$before = wal();
my $began = $node->safe_psql('postgres', 'SELECT extract(epoch FROM clock_timestamp())');
go_through('saturated', ('600000/20') x 100);
my $seconds = $node->safe_psql('postgres', 'SELECT extract(epoch FROM clock_timestamp())') - $began;
$written = wal() - $before;
cmp_ok($written, '<=', (5 + 4 * $seconds) * $record, "saturated: at most one record in a tick ($written bytes in $seconds s)");

#
# More sessions than there are slots, each with a node of its own, and a crash.
#
foreach my $run (1, 2)
{
	my $name = "$holders sessions hold a node each, $run";
	my ($bench_out, $bench_err) = ('', '');
	my $script = $node->basedir . "/hold_$run";

	append_to_file($script, "SELECT give(:client_id || '/11', 5);\n");
	$node->safe_psql('postgres', 'TRUNCATE ids');
	my $bench = IPC::Run::start(
		[
			'pgbench', '--no-vacuum', "--client=$holders", '--jobs=2', '--time=60',
			'-f', $script, '-h', $node->host, '-p', $node->port, 'postgres'
		],
		'>', \$bench_out, '2>', \$bench_err,
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	ok( $node->poll_query_until('postgres',
			"SELECT count(DISTINCT node) = $holders AND count(*) > 20 * $holders FROM ids"),
		"$name: all of them make progress");
	$run == 1 ? kill_server($node) : $node->stop('fast');
	$bench->finish;
	unlike($bench_err, qr/ERROR: /, "$name: no error");
	set_clock($node, sprintf('+%.2f', $clock - 2));
	start_server($node);
	is($node->safe_psql('postgres', 'SELECT wrong_nodes(), count(*) - count(DISTINCT id) FROM ids'),
		'|0', "$name: no ID twice, all in order");
	my %greatest = map { split(/\|/) } split(/\n/,
		$node->safe_psql('postgres', 'SELECT node, max(id) FROM ids GROUP BY node'));
	$received{$_}{greatest} = $greatest{$_} foreach (keys %greatest);
	go_through("$name, after that", sort keys %greatest);
}

$node->stop;
done_testing();
