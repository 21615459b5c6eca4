# The clock is set back, or forward and back, while the server is down: no ID twice, all
# in order, or a clear error and no ID.

use FindBin;
use lib "$FindBin::RealBin/../lib";
use Scru64Fault;
use Scru64Test;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;
plan skip_all => 'no clock can be set' if !can_set_clock();

# Milliseconds that a wait may need to see that the clock was set.
my $look_at_clock = 2500;

my $node = new_node('main');
set_clock($node, '+0');
start_server($node);
create_extension($node, $give_sql);

my %received;
my $nodes = 0;
my $ends = 0;

# A node that was not used before.
sub unused
{
	return ++$nodes . '/8';
}

sub record_ok
{
	my ($name) = @_;

	is(record_problems(\%received), '', "$name: no ID twice, none out of order");
	return;
}

# Let sessions generate, and end that.  Errors match the pattern, or there are
# none.
sub generate
{
	my ($spec, $name) = @_;
	my $load = start_load($node, $spec => 2);

	end_load($load);
	is(record_load(\%received, $load), '', "$name: no error");
	record_ok($name);
	return;
}

# The server goes down in the middle of what its sessions do: each time in
# another way.
sub go_down
{
	my $how = $ends++ % 3;

	return $node->stop('fast') if $how == 0;
	return $node->stop('immediate') if $how == 1;
	return kill_server($node);
}

sub clock_is
{
	my ($clock, $name) = @_;
	my $offset = $node->safe_psql('postgres', 'SELECT extract(epoch FROM clock_timestamp())') - time();

	cmp_ok(abs($offset - $clock), '<', 2, "$name: the server has that clock");
	return;
}

# No ID, and an error that tells the clock, where the node is, its time, and when IDs come again.
# The hint is a greater allowance, if it can be great enough.
sub clock_refused_ok
{
	my ($spec, $name, $days) = @_;
	my $way_out =
	  $days
	  ? qr/"scru64\.node_spec" to a node that has not been used .*scru64_set_ceiling\(\)/
	  : qr/"scru64\.rollback_allowance" to '\d+s', and reload/;
	my $err = refused_ok($node, $spec,
		qr/ERROR:  58000: the clock is too far behind the (last ID|start) of node $spec\n.*\nHINT:  Correct the clock, or wait.*$way_out/,
		$name);
	my ($now, $id, $then, $again) =
	  $err =~ /DETAIL:  The clock reads (.*?)\. (?:The last ID of node $spec, (\w{12}), is of|Node $spec has issued no ID yet, and starts after) (.*?)\. IDs come again when the clock reads (.*?), earlier/;
	$_ ||= '1970-01-01' foreach ($now, $then, $again);
	cmp_ok($id, 'ge', $received{$spec}{greatest}, "$name: all IDs are at or below that one") if defined $id;
	is($node->safe_psql('postgres', qq(
SELECT extract(epoch FROM clock_timestamp() - timestamptz '$now') BETWEEN 0 AND 10, timestamptz '$then' > timestamptz '$now',
	extract(epoch FROM timestamptz '$then' - timestamptz '$again') BETWEEN 19.7 AND 20)),
		't|t|t', "$name: the times are right");
	return;
}

# What the hint says: a node that was not used, and a ceiling.
sub set_ceiling
{
	$node->safe_psql('postgres', 'SELECT scru64_set_ceiling()');
	return unused();
}

# The node's next ID is of the clock's time.
sub at_once_ok
{
	my ($spec, $name) = @_;
	my ($id, $late) = split(/\|/, $node->safe_psql('postgres', qq(
SET scru64.node_spec = '$spec';
SELECT id, tick_of(clock_timestamp()) - tick_of(id) FROM scru64_generate() id)));

	record_ids(\%received, $spec, [$id]);
	cmp_ok(abs($late), '<=', 1, "$name: node $spec generates at once, with the time of the clock");
	return;
}

# The server goes down under load, and has another clock when it starts.
sub go_down_to
{
	my ($spec, $clock, $name) = @_;
	my $load = start_load($node, $spec => 2);

	go_down();
	finish_load($load);
	set_clock($node, $clock);
	start_server($node);
	is(record_load(\%received, $load), '', "$name: no error");
	record_ok($name);
	clock_is($clock, $name);
	return;
}

#
# Back by less than the allowance, and by up to twice.
#
my $spec = unused();

foreach my $time (1 .. 2)
{
	my $name = "back by 3 s, $time";

	go_down_to($spec, '-3', $name);
	generate($spec, $name);
	is($node->safe_psql('postgres', "SELECT sum(waits) FROM scru64_generators()"), '0', "$name: nobody had to wait");
	set_clock($node, '+0');
	sleep(0.3);
}
{
	my $name = 'back by 13 s';

	# a node that is at the time of the clock
	$spec = unused();
	go_down_to($spec, '-13', $name);
	my $session = open_session($node);
	start_statement($session, "SET scru64.node_spec = '$spec'; SELECT scru64_generate()");
	ok(waits_for($node, $session, 'Clock'), "$name: generation waits");

	my $began = time();
	set_clock($node, '-5');
	my ($out, $err) = try_statement($session, 'SELECT 1');
	cmp_ok((time() - $began) * 1000, '<', $look_at_clock, "$name: until the clock is within the allowance");
	is($err, '', "$name: without an error");
	my ($id) = $out =~ /^(\w{12})$/m;
	record_ids(\%received, $spec, [$id]);
	$session->quit;
	generate($spec, $name);
	set_clock($node, '+0');
	sleep(0.3);
}

{
	my $name = 'back by 15 s, of a node that was ahead by 9';

	$spec = '1048575/20';
	my @ids = split(/\n/, $node->safe_psql('postgres', "SELECT make_busy('$spec')"));
	record_ids(\%received, $spec, \@ids);
	my $last_time = $node->safe_psql('postgres', "SELECT extract(epoch FROM scru64_timestamp('$ids[-1]'))");
	go_down();
	# The clock stands still at 24 seconds before the last ID: 4 seconds more than twice the
	# allowance.  On a busy machine, 4 seconds might pass before the check.
	stop_clock($node, $last_time - 9 - 15);
	start_server($node);
	clock_refused_ok($spec, $name);
	set_clock($node, '-5');
	record_ids(\%received, $spec, [ $node->safe_psql('postgres', "SET scru64.node_spec = '$spec'; SELECT scru64_generate()") ]);
	record_ok("$name: with the clock back by 5");
	set_clock($node, '+0');
}

#
# Back by more: an hour, a year.
#
foreach my $back (3600, 365 * 86400)
{
	my $name = "back by $back s";
	my $old = unused();

	go_down_to($old, "-$back", $name);
	clock_refused_ok($old, $name, $back > 86400);
	go_down();
	start_server($node);
	# one ceiling is for all nodes
	clock_refused_ok($_, "$name, another restart", $back > 86400) foreach ($old, unused());

	my $fresh = set_ceiling();
	at_once_ok($fresh, "$name, a ceiling is set");
	generate($fresh, "$name, a ceiling is set");
	go_down_to($fresh, "-$back", "$name, a restart after that");
	generate($_, "$name, a restart after that") foreach ($fresh, unused());

	set_clock($node, '+0');
	generate($_, "$name, the clock has caught up") foreach ($fresh, unused());
}

#
# Forward by an hour, IDs, and back.
#
foreach my $time (1 .. 2)
{
	my $name = "forward by an hour and back, $time";
	my $old = unused();

	generate($old, $name);
	set_clock($node, '+3600');
	clock_is(3600, $name);
	at_once_ok($old, "$name, forward");
	go_down_to($old, '+0', $name);
	clock_refused_ok($old, $name);
	go_down();
	start_server($node);
	clock_refused_ok($_, "$name, another restart") foreach ($old, unused());

	set_clock($node, '+3600');
	generate($_, "$name, the clock has caught up") foreach ($old, unused());
	set_clock($node, '+0');
	at_once_ok(set_ceiling(), "$name, a ceiling is set");
}
note(log_counts(\%received));

$node->stop;
done_testing();
