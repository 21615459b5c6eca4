# More nodes than there are slots, and restarts in between: what the state file has
# no line for is below its floor, and the file stays small.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Scru64Fault;
use Scru64Test;
use Test::More;
use Time::HiRes qw(sleep);

plan skip_all => 'libfaketime is not installed' if !can_set_clock();

my $slots = 128;
my $nodes = 1024;
my $holders = 160;

my $node = new_node('main');
my $state = state_file($node);

$node->append_conf('postgresql.conf', 'max_connections = 200');
set_clock($node, '+0');
start_server($node);
$node->safe_psql('postgres', 'CREATE EXTENSION scru64');
add_helpers($node);
$node->safe_psql(
	'postgres', q(
CREATE TABLE ids (n bigserial, run integer, node integer, id scru64);

CREATE FUNCTION give(spec text, count integer) RETURNS SETOF scru64
LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('scru64.node_spec', true) IS DISTINCT FROM spec THEN
		PERFORM set_config('scru64.node_spec', spec, false);
	END IF;
	RETURN QUERY SELECT scru64_generate(count);
END
$$;
));

my %received;

# Two IDs of each of these nodes in turn, in one session.
sub go_through
{
	my ($name, @specs) = @_;
	my %ids;
	my $list = join(', ', map { "('$_')" } @specs);

	foreach my $line (split(/\n/,
			$node->safe_psql('postgres',
				"SET statement_timeout = '60s'; SELECT spec, id FROM (VALUES $list) s (spec), give(spec, 2) id")))
	{
		my ($spec, $id) = split(/\|/, $line);

		push @{ $ids{$spec} }, $id;
	}
	record_ids(\%received, $_, $ids{$_}) foreach (keys %ids);
	is(scalar(keys %ids), scalar(@specs), "$name: all nodes give IDs");
	is(record_problems(\%received), '', "$name: no ID twice, none too low");
	return;
}

# At most one line for each slot, and each ID below its line or the floor.
sub file_ok
{
	my ($name) = @_;
	my $lines = () = read_file($state) =~ /\n/g;
	my %file = state_ids($node);
	my @missing = grep { $received{$_}{greatest} gt ($file{$_} || '') && $received{$_}{greatest} gt $file{floor} }
	  keys %received;

	cmp_ok($lines, '<=', $slots + 3, "$name: the file has at most $slots nodes");
	is(join(' ', @missing), '', "$name: the file has a ceiling for all IDs");
	return;
}

#
# All nodes in turn, again and again.  After each restart the clock is behind.
#
my @all = map { "$_/10" } (0 .. $nodes - 1);
my @restarts = (
	[ 'fast restart', sub { $node->stop('fast') }, '-2' ],
	[ 'immediate restart', sub { $node->stop('immediate') }, '+0' ],
	[ 'kill -9', sub { kill_server($node) }, '-2' ]);

go_through('first', @all);
file_ok('first');
foreach my $restart (@restarts)
{
	my ($name, $go_down, $clock) = @{$restart};

	$go_down->();
	set_clock($node, $clock);
	start_server($node);
	# nodes that the file knows of, and others, in this order and the other way round
	go_through($name, $clock eq '-2' ? @all : reverse @all);
	file_ok($name);
}

#
# A node that is ahead of the clock loses its slot.
#
my $unused = 0;

# Take all slots, by nodes that were not used before.
sub take_all_slots
{
	my ($name) = @_;

	go_through($name, map { (12000 + $unused++) . '/14' } (1 .. 2 * $slots));
	return;
}

sub restart_anew
{
	kill_server($node);
	unlink($state);
	set_clock($node, '+0');
	start_server($node);
	%received = ();
	return;
}

foreach my $when ('without a restart', 'and the server is killed')
{
	my $name = "a node ahead of the clock loses its slot, $when";

	restart_anew();
	go_through("$name, first", '1/10');
	set_clock($node, '-6');
	go_through("$name, ahead", '1/10');
	take_all_slots("$name, others");
	my %file = state_ids($node);
	ok(!defined $file{'1/10'}, "$name: the file has forgotten it");
	if ($when eq 'and the server is killed')
	{
		kill_server($node);
		start_server($node);
	}
	go_through("$name, back", '1/10');
	go_through("$name, a node that was not used before", '3/10');
	file_ok($name);
}

#
# The floor is far ahead of the clock, because the node that had it was: who is at the
# time of the clock goes on.
#
restart_anew();
set_parameter($node, 'scru64.rollback_allowance', '1min');
set_clock($node, '+50');
go_through('floor ahead, its node', '1/10');
set_clock($node, '+0');

my $session = open_session($node);
my ($out, $err) = try_statement($session, "SELECT give('2/10', 1)");
is($err, '', 'floor ahead, a node at the time of the clock: no error');
record_ids(\%received, '2/10', [ split(/\n/, $out) ]);

# the slots go round: all but that one
foreach my $round (1 .. 2)
{
	go_through("floor ahead, the other slots, $round",
		map { ($_ + 13000) . '/14' } (1 .. $slots - 2));
	($out, $err) = try_statement($session, "SELECT give('2/10', 1)");
	record_ids(\%received, '2/10', [ split(/\n/, $out) ]);
	sleep(0.3);
}
set_clock($node, '+1');
go_through('floor ahead, the other slots, 3', map { ($_ + 13000) . '/14' } (1 .. $slots - 2));
($out, $err) = try_statement($session, "SELECT give('2/10', 1)");
record_ids(\%received, '2/10', [ split(/\n/, $out) ]);
# its hint of the clock is the oldest one now
set_clock($node, '-3');
($out, $err) = try_statement($session, "SELECT give('1/10', 1)");
record_ids(\%received, '1/10', [ split(/\n/, $out) ]);
set_clock($node, '+1');
go_through('floor ahead, one more node', '13500/14');
my %file = state_ids($node);
ok(!defined $file{'1/10'}, 'floor ahead: its node has lost its slot');
is( $node->safe_psql('postgres',
		'SELECT last_id FROM scru64_generators WHERE node_id = 2 AND node_id_size = 10'),
	$received{'2/10'}{greatest},
	'floor ahead: the other one has not');
set_clock($node, '+7');
($out, $err) = try_statement($session, "SET statement_timeout = '2s'; SELECT give('2/10', 1)");
is($err, '', 'floor ahead, then a node at the time of the clock needs a ceiling: no error');
record_ids(\%received, '2/10', [ split(/\n/, $out) ]);
is(record_problems(\%received), '', 'floor ahead: no ID twice, none too low');
file_ok('floor ahead');
$session->quit;
set_parameter($node, 'scru64.rollback_allowance', '10s');

#
# A file with more nodes than there are slots.
#
$node->stop;
my $now = int(time() * 1000) >> 8;
my %ceilings;
foreach my $n (0 .. 199)
{
	# those behind the others are further ahead of the clock
	$ceilings{"$n/10"} =
	  encode_id(($now + ($n < $slots ? 4 : 16) + $n % 3) << 24 | $n << 14 | 0x3fff);
}
my @in_file = map { "$_/10" } (0 .. 199);
replace_file($state,
	state_text("timeline 1\nfloor 000000000000\n"
		  . join('', map { "$ceilings{$_}/10\n" } @in_file)));
set_clock($node, '+0');
start_server($node);
%received = map { $_ => { ids => {}, greatest => $ceilings{$_}, problems => [] } } keys %ceilings;
go_through('more nodes in the file than slots', reverse @in_file);
file_ok('more nodes in the file than slots');

#
# More sessions than there are slots, each with a node of its own, and a crash.
#
foreach my $run (1, 2)
{
	my $name = "$holders sessions hold a node each, $run";
	my ($bench_out, $bench_err) = ('', '');
	my $script = $node->basedir . "/hold_$run";

	append_to_file($script,
		"INSERT INTO ids (run, node, id) SELECT $run, :client_id, give(:client_id || '/10', 5);\n");
	my $bench = IPC::Run::start(
		[
			'pgbench', '--no-vacuum', "--client=$holders", '--jobs=2', '--time=60',
			'-f', $script, '-h', $node->host, '-p', $node->port, 'postgres'
		],
		'>', \$bench_out, '2>', \$bench_err,
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	ok( $node->poll_query_until('postgres',
			"SELECT count(DISTINCT node) = $holders AND count(*) > 20 * $holders FROM ids WHERE run = $run"),
		"$name: all of them make progress");
	$run == 1 ? kill_server($node) : $node->stop('fast');
	$bench->finish;
	unlike($bench_err, qr/ERROR: /, "$name: no error");
	set_clock($node, '-2');
	start_server($node);
	my %greatest = map { split(/\|/) } split(/\n/,
		$node->safe_psql('postgres', "SELECT node || '/10', max(id) FROM ids GROUP BY node"));
	$received{$_}{greatest} = $greatest{$_} foreach (keys %greatest);
	file_ok($name);
}
is( $node->safe_psql(
		'postgres', q(
SELECT count(*) - count(DISTINCT id), count(*) FILTER (WHERE wrong)
FROM (SELECT id, id <= lag(id) OVER (PARTITION BY node ORDER BY n) AS wrong FROM ids) i
)),
	'0|0',
	"$holders sessions hold a node each: no ID twice, all in order");
go_through('after that', map { "$_/10" } (0 .. $holders - 1));

$node->stop;
done_testing();
