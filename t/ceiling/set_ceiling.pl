# scru64_set_ceiling(): the way out when a clock was years ahead, and what it does to
# sessions that have a node.

use strict;
use warnings;
use FindBin;
use Scru64Clock;
use Scru64Copies;
use Scru64Examples;
use Scru64Files;
use Scru64Loads;
use Scru64Server;
use Scru64Test;

plan skip_all => 'no clock can be set' if !can_set_clock();

my $ten_years = 10 * 365 * 86400;
my $way_out = qr/ERROR:  58000: .*\nDETAIL:  .*\nHINT:  .*"scru64\.node_spec".*scru64_set_ceiling\(\)/;
my $template = make_template('template', allows_streaming => 1);
my $node = copy_server($template, 'main', clock => '+0');
my %received;

start_server($node);
my $page_size = $node->safe_psql('postgres', 'SHOW block_size');
my $standby = add_standby($template, $node, 'standby', clock => '+0');

sub generate_sql
{
	my ($spec) = @_;

	return "SET statement_timeout = '20s'; SET scru64.node_spec = '$spec'; SELECT scru64_generate()";
}

# IDs at once, of the time of the clock.
sub at_once_ok
{
	my ($name, $server, $spec) = @_;
	my ($ret, $lead) = $server->psql('postgres',
		generate_sql($spec) . " id \\gset\nSELECT extract(epoch FROM scru64_timestamp(:'id') - clock_timestamp())");

	# a restart starts some seconds ahead
	ok($ret == 0 && $lead > -5 && $lead < 5, "$name: $spec has IDs of the time of the clock") or diag("$lead s");
	return;
}

#
# Ten years ahead for one ID
#
at_once_ok('at first', $node, '1/8');
set_clock($node, "+$ten_years");
issues_ok($node, \%received, '1/8', 'ten years ahead');
set_clock($node, '+0');
refused_ok($node, '1/8', $way_out, 'set right');
$node->restart;
# one ceiling is for all nodes, which have no last ID any more
foreach my $spec ('1/8', '2/8')
{
	my $err = refused_ok($node, $spec, $way_out, 'set right, after a restart');
	my ($then, $again) = $err =~ /the start of node $spec\nDETAIL:  .*Node $spec has issued no ID yet, and starts after (.*?)\. IDs come again when the clock reads (.*?), earlier/;

	is($node->safe_psql('postgres', "SELECT extract(epoch FROM timestamptz '$then' - timestamptz '$again') BETWEEN 19.7 AND 20"),
		't', 'set right, after a restart: when IDs come again');
}

# Who may set it, and where.
$node->safe_psql('postgres', 'CREATE ROLE somebody LOGIN; GRANT EXECUTE ON FUNCTION scru64_set_ceiling TO somebody');
my $set = 'SELECT scru64_set_ceiling()';
like(error_of($node, $set, extra_params => [ '-U', 'somebody' ]), qr/ERROR:  42501: /, 'not a superuser');
catch_up($node, $standby);
like(error_of($standby, $set), qr/ERROR:  25006: /, 'a standby');
refused_ok($node, '2/8', $way_out, 'nothing was set');

$node->safe_psql('postgres', $set);
at_once_ok('set', $node, $_) foreach ('2/8', '3/8');
$node->restart;
at_once_ok('set, after a restart', $node, $_) foreach ('2/8', '4/8');
kill_server($node);
start_server($node);
at_once_ok('set, after kill -9', $node, $_) foreach ('2/8', '5/8');
catch_up($node, $standby);
kill_server($node);
$standby->promote;
at_once_ok('set, on a standby that is promoted', $standby, $_) foreach ('2/8', '6/8');
$standby->stop('immediate');
start_server($node);

# To a time ahead: nothing at or before it.
my $tick = $node->safe_psql('postgres', q(
SELECT scru64_set_ceiling('2036-01-02 03:04:05+00');
SELECT (extract(epoch FROM timestamptz '2036-01-02 03:04:05+00') * 1000)::bigint >> 8));
($tick) = $tick =~ /(\d+)/;
refused_ok($node, '7/8', $way_out, 'a time ahead');
set_clock($node, '+' . ($tick * 0.256 - time() + 1));
is( $node->safe_psql('postgres', generate_sql('7/8') . " id \\gset\nSELECT :'id'::scru64::bigint >> 24 > $tick"),
	't', 'a time ahead: IDs are above it');
set_clock($node, '+0');
$node->safe_psql('postgres', 'SELECT scru64_set_ceiling()');
foreach my $time ("'infinity'", "'-infinity'", "'4714-01-01 BC'", "'294276-01-01'")
{
	like(error_of($node, "SELECT scru64_set_ceiling($time)"), qr/ERROR:  22\w{3}: /, "the time $time is refused");
}
at_once_ok('after that', $node, '8/8');

# The last tick is reserved: no ID is of it.
is($node->safe_psql('postgres', q(
SELECT scru64_set_ceiling(scru64_timestamp('zzzzzzzzzzzz'));
SELECT scru64_watermark() = scru64_min(scru64_timestamp('zzzzzzzzzzzz'));
)),
	"\nt", 'the last time: the watermark is an ID');
refused_ok($node, '8/8', $way_out, 'the last time');
$node->restart;
refused_ok($node, '8/8', $way_out, 'the last time, after a restart');
$node->safe_psql('postgres', 'SELECT scru64_set_ceiling()');

#
# Sessions that had a node are retired: above what is set.
#
my @sessions = map { open_session($node) } (1 .. 3);
$_->query_safe("LOAD 'scru64'; SET scru64.node_spec = '9/8'; SELECT scru64_generate(); SELECT scru64_generate()") foreach (@sessions);
my $above = $node->safe_psql('postgres', q(
SELECT (extract(epoch FROM clock_timestamp() + interval '5 s') * 1000)::bigint >> 8 AS tick \gset
SELECT scru64_set_ceiling(to_timestamp(:tick * 0.256));
SELECT :tick));
($above) = $above =~ /(\d+)/;
foreach my $session (@sessions)
{
	# in this order, nothing in the same session looks at the node before
	my ($id, $given) = split(/\|/, $session->query_safe('SELECT id, id::bigint >> 24 FROM scru64_generate() AS id'));

	cmp_ok($given, '>', $above, 'a session that had a node starts above what was set');
	record_ids(\%received, '9/8', [$id]);
}
is(record_problems(\%received), '', 'no ID of them twice, none out of order');

# Sets and IDs at the same time, each ceiling two ticks above the one before, and so
# above all IDs.
my @load = start_load($node, { '10/8' => 3 });
foreach my $step (1 .. 7)
{
	$node->safe_psql('postgres', "SELECT scru64_set_ceiling(clock_timestamp() + interval '" . (5500 + 600 * $step) . " ms')");
}
end_clients(@load);
is(record_load(\%received, @load), '', 'set under load: no error');
is(record_problems(\%received), '', 'set under load: no ID twice, none out of order');
$_->quit foreach (@sessions);

#
# A damaged page
#
$node->stop;
my $text = slurp_file(page_file($node));
foreach my $damage ('x' x $page_size, "\0" x $page_size, '')
{
	my $name = 'page of ' . length($damage) . ' ' . (unpack('C', $damage) || 0);

	replace_file(page_file($node), $damage);
	start_server($node);
	$node->safe_psql('postgres', 'SELECT scru64_set_ceiling()');
	at_once_ok($name, $node, '12/8');
	kill_server($node);
	start_server($node);
	at_once_ok("$name, after kill -9", $node, '12/8');
	$node->stop;
}

#
# The steps of doc/troubleshooting.md, pasted though one fails: each block in a new psql, and none
# has loaded the library.  No node is made to start lower that a session still has.
#
my @steps = grep { $_->{language} eq 'sql' && $_->{section} =~ /^The clock/ } blocks_of("$FindBin::RealBin/../../doc/troubleshooting.md");

sub paste_steps
{
	return map { (results_of($node, 'postgres', { sql => $_->{text} }))[0]{all} } @steps;
}

{
	local $ENV{SCRU64_NODE_SPEC} = '9/8';
	start_server($node);
}
my $old = open_session($node);
my $ahead = q(SELECT scru64_ceiling() > clock_timestamp() + interval '50 minutes');
set_clock($node, '+3600');
is($old->query_safe('SELECT scru64_node_ctr(scru64_generate()) >> 16'), '9', 'the steps: an ID of the old node');
set_clock($node, '+0');
$node->safe_psql('postgres', q(LOAD 'scru64'; ALTER DATABASE postgres SET scru64.node_spec = '9/8'));
paste_steps();
is($node->safe_psql('postgres', $ahead), 't', 'the steps: nothing is done while the database has the old node');
$node->safe_psql('postgres', q(LOAD 'scru64'; ALTER DATABASE postgres RESET scru64.node_spec; ALTER ROLE somebody SET scru64.node_spec = '9/8'));
paste_steps();
is($node->safe_psql('postgres', $ahead), 't', 'the steps: nothing is done while a role has the old node');
$node->safe_psql('postgres', q(LOAD 'scru64'; ALTER ROLE somebody SET scru64.node_spec = '43/8'));
# a reload may take longer than the block waits
ok(wait_until(sub { paste_steps(); $node->safe_psql('postgres', $ahead) eq 'f' }), 'the steps: the ceiling is at the clock');
is($node->safe_psql('postgres', 'SELECT scru64_node_ctr(scru64_generate()) >> 16'), '43', 'the steps: and the node is the new one');
ok(!eval { $old->query_safe('SELECT 1') }, 'the steps: an older session has ended');
$node->stop;
done_testing();
