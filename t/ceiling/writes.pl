# How much is written, and for what.  More nodes than there are slots: no last ID is forgotten, and
# nothing is written because a node has lost its slot.

use strict;
use warnings;
use List::Util qw(shuffle);
use Scru64Clock;
use Scru64Copies;
use Scru64Loads;
use Scru64Server;
use Scru64Test;

plan skip_all => 'no clock can be set' if !can_set_clock();

my $nodes = 1024;

# Bytes in the WAL for a ceiling, and a few more where a page of it begins.  After a checkpoint the whole
# page is written, too.
my $record = 120;

my $template = make_template('template');
my $node = copy_server($template, 'main', clock => '+0', lines => "checkpoint_timeout = 1h\n");

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
# All nodes in random order, again and again
#
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

$node->stop;
done_testing();
