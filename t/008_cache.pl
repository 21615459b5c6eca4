# scru64.cache: sessions that take several IDs from their node at once.  Blocks that end
# in the middle, for every reason there is: no ID comes twice, and each session has its
# own in order.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Scru64Fault;
use Scru64Test;
use Test::More;

#
# Many sessions, with blocks of all sizes
#
my $node = new_node('main');
$node->append_conf('postgresql.conf', "scru64.node_spec = '5/8'\nmax_parallel_workers_per_gather = 2\n");
$node->start;
$node->safe_psql(
	'postgres', q(
CREATE EXTENSION scru64;
CREATE ROLE anybody LOGIN;
CREATE TABLE numbers AS SELECT n FROM generate_series(1, 20000) AS n;
ALTER TABLE numbers SET (parallel_workers = 2);
GRANT SELECT ON numbers TO anybody;
));
{
	my @runs;
	my @files;
	my $unsorted = '';
	my @caches = (1, 2, 3, 10, 100, 1000, 100000, 1);

	foreach my $n (0 .. 15)
	{
		my $file = $node->basedir . "/ids_$n";
		my $sql = "SET scru64.cache = $caches[ $n % 8 ];\n"
		  . "COPY (SELECT scru64_generate() FROM numbers) TO STDOUT;\n" x 2
		  . "COPY (SELECT scru64_generate(5000)) TO STDOUT;\n"
		  # lowered and raised in the middle
		  . join('', map { "SET scru64.cache = $_;\nCOPY (SELECT scru64_generate(777)) TO STDOUT;\n" } (1, 50, 7, 1, 64))
		  . "SELECT scru64_generate();\n" x 500;

		replace_file("$file.sql", $sql);
		push @files, $file;
		push @runs,
		  IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-U', 'anybody', '-f', "$file.sql", '-d', $node->connstr('postgres') ],
			'<', '/dev/null', '>', $file);
	}
	ok($_->finish, 'a session among others, of a role without rights') foreach (@runs);
	$unsorted .= `LC_ALL=C sort -c -u '$_' 2>&1` foreach (@files);
	is($unsorted, '', 'each has its IDs in order');
	my ($distinct) = split(' ', `LC_ALL=C sort -m -u @files | wc -l`);
	is($distinct, 16 * (2 * 20000 + 5000 + 5 * 777 + 500), 'none comes twice');
}

# workers of a parallel plan have blocks of their own
is( $node->safe_psql(
		'postgres', q(
SET scru64.cache = 100;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
DO $$ BEGIN PERFORM set_config(name, 'on', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query'); END $$;
SELECT count(*), count(DISTINCT id) FROM (SELECT scru64_generate() AS id FROM numbers OFFSET 0) AS s;
)),
	'20000|20000', 'a parallel plan');

# and after it the session's IDs are above all of them, whoever made them
foreach my $leader ('off', 'on')
{
	my $ids = $node->safe_psql(
		'postgres', qq(
SET scru64.cache = 100;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SET parallel_leader_participation = $leader;
DO \$\$ BEGIN PERFORM set_config(name, 'on', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query'); END \$\$;
) . q(
SELECT scru64_generate();
SELECT min(id) || ' ' || max(id) FROM (SELECT scru64_generate() AS id FROM numbers OFFSET 0) AS s;
) x 10 . 'SELECT scru64_generate()');
	my @ids = split(' ', $ids);

	is(scalar(@ids), 31, "leader participates: $leader: all IDs");
	is("@ids", join(' ', sort @ids), "leader participates: $leader: no ID of before after those of a parallel plan");
}

# a block is a 64th of the counter, at most
foreach my $case ([ 8, 1024 ], [ 12, 64 ], [ 17, 2 ], [ 18, 1 ], [ 23, 1 ])
{
	my ($size, $block) = @{$case};

	is( $node->safe_psql(
			'postgres', qq(
SET scru64.node_spec = '3/$size';
SET scru64.cache = 131072;
SELECT scru64_generate() AS id \\gset
SELECT g.last_id::bigint - :'id'::scru64::bigint + 1 FROM scru64_generators AS g WHERE node_id = 3 AND node_id_size = $size)),
		$block,
		"node_id_size $size: a block of $block");
}
like(($node->psql('postgres', "LOAD 'scru64'; SET scru64.cache = 131073"))[2], qr/131073 is outside the valid range/, 'the largest there is');
$node->stop;

#
# A clock that stands still, or is moved, in the middle of a block
#
SKIP:
{
	skip 'libfaketime is not installed', 1 if !can_set_clock();

	my $template = make_template('template');
	my $clock = copy_server($template, 'clock', clock => '2026-07-01 12:00:00');
	start_server($clock);
	my ($one, $two) = map { open_session($clock) } (1, 2);
	my $all = 0;
	my %given;

	# the next ID of a session, as a number, or what went wrong
	my $next = sub {
		my ($session) = @_;
		my ($out, $err) = try_statement($session, 'SELECT scru64_generate()::bigint');
		$all++;
		$given{$out}++;
		return $out || $err;
	};
	my $tick_of = sub { return $_[0] >> 24 };

	$_->query_safe("SET scru64.node_spec = '5/12'; SET statement_timeout = '1s'") foreach ($one, $two);
	# at the beginning of a tick that the clock does not leave
	$one->query_safe('SET scru64.cache = 10');
	my $first = $next->($one);
	my $other = $next->($two);
	is($other, $first + 10, 'another session goes on after the block');
	is(join(' ', map { $next->($one) - $first } (1 .. 9)), '1 2 3 4 5 6 7 8 9', 'the block');
	is($next->($one), $other + 1, 'and then the next one');
	is($next->($two), $other + 11, 'after which the other session goes on');

	# the tick is over
	set_clock($clock, '2026-07-01 12:00:01');
	my $later = $next->($one);
	is($tick_of->($later), $clock->safe_psql('postgres', 'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint >> 8'),
		'the tick is over: an ID of that of now');
	is($next->($one), $later + 1, 'and its block');

	# the clock goes back, by less than the allowance, and by more
	set_clock($clock, '2026-07-01 11:59:55');
	is($next->($one), $later + 2, 'the clock is a bit behind: the block goes on');
	set_clock($clock, '2026-07-01 11:59:48');
	like($next->($one), qr/57014/, 'far behind: it waits');
	set_clock($clock, '2026-07-01 11:59:00');
	like($next->($one), qr/58000/, 'very far behind: an error');
	set_clock($clock, '2026-07-01 12:00:01');
	cmp_ok($next->($one), '>', $later + 9, 'right again: another block');

	# lowered in the middle
	my $before = $next->($two);
	$one->query_safe('SET scru64.cache = 1');
	is($next->($one), $before + 1, 'lowered to 1: it is the next of all sessions');
	$one->query_safe('SET scru64.cache = 10');

	# another node in the middle, and back
	$before = $next->($one);
	$one->query_safe("SET scru64.node_spec = '6/12'");
	is(($next->($one) >> 12) & 4095, 6, 'another node');
	$one->query_safe("SET scru64.node_spec = '5/12'");
	is($next->($one), $before + 10, 'and back: the rest of the block is lost');

	# a node that overlaps it is refused in the middle: that is not to be noticed
	$before = $next->($one);
	my ($out, $err) = try_statement($two, "SET scru64.node_spec = '2/11'; SELECT scru64_generate()");
	like($err, qr/55006: node 2\/11 overlaps node 5\/12/, 'a node that overlaps this one is refused');
	$two->query_safe("SET scru64.node_spec = '5/12'");
	is($next->($one), $before + 1, 'and the block goes on');

	# the counter is full in the middle: 5 are left of this tick
	set_clock($clock, '2026-07-01 12:10:00');
	$before = $tick_of->($next->($two)) + 8;
	my $prev = $clock->safe_psql('postgres', "SELECT (($before << 24) + (5 << 12) + 4090)::scru64");
	$one->query_safe("SET scru64.node_spec = '$prev/12'");
	is(join(' ', map { my $id = $next->($one); ($id >> 24) - $before . ':' . ($id >> 24 == $before ? $id & 4095 : 'x') } (1 .. 7)),
		'0:4091 0:4092 0:4093 0:4094 0:4095 1:x 1:x', 'the counter overflows in the middle');

	# all nodes start anew in the middle
	$before = $next->($one);
	$clock->safe_psql('postgres', "SELECT scru64_set_ceiling('2026-07-01 12:00:00')");
	delete $given{$_} foreach (keys %given);
	$all = 0;
	$later = $next->($one);
	isnt($later, $before + 1, 'scru64_set_ceiling() in the middle: not an ID of before');
	is($clock->safe_psql('postgres', "SELECT last_id::bigint >= $later FROM scru64_generators WHERE node_id = 5"), 't', 'but one that the node knows of');
	$next->($_) foreach (($one, $two) x 20);
	is(scalar(keys %given), $all, 'none twice');
	$_->quit foreach ($one, $two);
	$clock->stop;
}
done_testing();
