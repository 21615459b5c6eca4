# A standby whose clock is behind is promoted after the primary was killed, and
# another server is restored from the archive: no ID of a row that it has is given
# out again.

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
use Time::HiRes qw(sleep time);

plan skip_all => 'libfaketime is not installed' if !can_set_clock();

# All nodes that the primary uses.  The last one is saturated, and so ahead of
# the clock by the allowance.
my @specs = ('1/8', '2/8', '3/8', '700/12', '7/20');

my $primary = new_node('primary', allows_streaming => 1, has_archiving => 1);
$primary->append_conf('postgresql.conf', 'wal_keep_size = 256MB');
set_clock($primary, '+0');
start_server($primary);
$primary->safe_psql('postgres', 'CREATE EXTENSION scru64');
add_helpers($primary);
$primary->safe_psql(
	'postgres', q(
CREATE TABLE ids (n bigserial, node text, id scru64);

CREATE FUNCTION give(spec text, count integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('scru64.node_spec', spec, false);
	INSERT INTO ids (node, id) SELECT spec, g FROM scru64_generate(count) g;
END
$$;

-- how many IDs of a node there are, and how many are there twice
CREATE FUNCTION count_ids(spec text, OUT ids bigint, OUT twice bigint)
LANGUAGE sql AS $$
	SELECT count(*), count(*) - count(DISTINCT id) FROM ids WHERE node = spec;
$$;
));

# Let a session of every node insert.  Ends with the server.
my $bench_script = $primary->basedir . '/insert';
my ($bench_out, $bench_err) = ('', '');

append_to_file($bench_script,
	"\\set n :client_id + 1\n"
	  . join('', map { "\\if :n = $_\nSELECT give('$specs[$_ - 1]', 3);\n\\endif\n" } (1 .. @specs))
	  . "\\sleep 2 ms\n");

sub start_inserts
{
	my ($node, @more) = @_;

	return IPC::Run::start(
		[
			'pgbench', '--no-vacuum', '--jobs=2', '--client=' . scalar(@specs),
			@more, '-f', $bench_script, '-h', $node->host, '-p', $node->port, 'postgres'
		],
		'>', \$bench_out, '2>', \$bench_err,
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
}

# One copy from before the first ID, one with a state file.
$primary->backup('without');
ok(!-e state_file($primary), 'no state file before the first ID');
$primary->safe_psql('postgres', "SELECT give('$_', 1)") foreach (@specs);
ok(-e state_file($primary), 'a state file after the first ID');
$primary->backup('with');

# The third standby is killed after its promotion, before it gives an ID.
my %standbys;
foreach my $name ('without', 'with', 'with, killed')
{
	my $standby = PostgreSQL::Test::Cluster->new('standby_' . $name =~ s/\W+/_/r);
	my ($file) = $name =~ /^(\w+)/;

	$standby->init_from_backup($primary, $file, has_streaming => 1);
	set_clock($standby, '-8');
	start_server($standby);
	is(-e state_file($standby) ? 'with' : 'without', $file, "standby $name: the state file");
	$standbys{$name} = $standby;
}
my $restored = PostgreSQL::Test::Cluster->new('restored');
$restored->init_from_backup($primary, 'with', has_restoring => 1, standby => 0);
set_clock($restored, '-8');

my $inserts = start_inserts($primary, '--time=600');
$primary->poll_query_until('postgres',
	"SELECT lead > interval '9 s' FROM scru64_generators WHERE node_id = 7")
  or die 'the node is not saturated';

# On a standby there are no IDs.
foreach my $name (sort keys %standbys)
{
	my $standby = $standbys{$name};

	$name = "standby $name";

	$standby->poll_query_until('postgres', 'SELECT count(*) > 100 FROM ids')
	  or die 'the standby does not follow';
	$standby->{session} = open_session($standby);
	foreach my $sql (
		'SELECT scru64_generate()',
		'SELECT scru64_generate(3)',
		'SELECT ARRAY(SELECT scru64_generate(3))')
	{
		my ($out, $err) = try_statement($standby->{session},
			"SET scru64.node_spec = '1/8'; $sql");

		is($out, '', "$name: no ID: $sql");
		like($err, qr/ERROR:  25006: cannot execute scru64_generate\(\) during recovery\n/, "$name: error 25006: $sql");
	}
	is($standby->safe_psql('postgres', 'SELECT count(*) FROM scru64_generators'),
		'0', "$name: the view is empty");
}

# The archive gets the load so far, the standbys get more.
my $segment = $primary->safe_psql('postgres', 'SELECT pg_walfile_name(pg_switch_wal())');
$primary->poll_query_until('postgres',
	"SELECT last_archived_wal >= '$segment' FROM pg_stat_archiver")
  or die "$segment is not archived";
sleep(0.5);
kill_server($primary);
$inserts->finish;
like($bench_err, qr/server closed the connection|terminating connection/, 'the load ran until the primary was killed');

foreach my $name (sort keys %standbys)
{
	my $standby = $standbys{$name};

	$standby->poll_query_until('postgres',
		'SELECT pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn()')
	  or die 'the standby has not replayed what it has';
	$standby->promote;
	next if $name ne 'with, killed';
	$standby->{session}->quit;
	kill_server($standby);
	start_server($standby);
	$standby->{session} = open_session($standby);
}
start_server($restored);
$restored->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()')
  or die 'the server is not restored';
$restored->{session} = open_session($restored);
my %servers = (
	'restored' => $restored,
	map { ("standby $_" => $standbys{$_}) } keys %standbys);

# The last ID of each node, and one of a node that is not in the rows.
my %last;
foreach my $name (sort keys %servers)
{
	my $server = $servers{$name};
	my @ids = split(/\n/,
		$server->safe_psql('postgres', 'SELECT max(id) FROM ids GROUP BY node ORDER BY node'));

	is(scalar(@ids), scalar(@specs), "$name: has rows of all nodes");
	$last{$name} = $server->safe_psql('postgres', "SELECT max(id) FROM ids WHERE node <> '7/20'");
	is( $server->safe_psql('postgres',
			"SELECT tick_of(clock_timestamp()) < tick_of(scru64 '$last{$name}')"),
		't',
		"$name: the clock is behind the rows");
	# the servers wait at the same time
	start_statement($server->{session}, "SELECT give('1/8', 1)");
}

sub given_ok
{
	my ($server, $name) = @_;
	my ($out, $err) = try_statement($server->{session}, 'SELECT 1');

	is($err, '', "$name: no error");
	is( $server->safe_psql(
			'postgres', q(
SELECT string_agg(node, ' ' ORDER BY node)
FROM (SELECT node, id <= lag(id) OVER (PARTITION BY node ORDER BY n) AS wrong
	  FROM ids) i
WHERE wrong
)),
		'',
		"$name: all nodes are in order");
	return;
}

# While they wait, the file has what a restart would forget.
foreach my $name (sort keys %servers)
{
	my $server = $servers{$name};

	$server->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE state = 'active' AND wait_event_type = 'Extension'")
	  or die "$name does not wait";
	my %file = state_ids($server);
	cmp_ok($file{floor}, 'ge', $last{$name}, "$name: the file has a floor above the rows");
}
foreach my $name (sort keys %servers)
{
	given_ok($servers{$name}, "$name, the first ID");
}

# The floor outlives a restart: for nodes that have given out nothing since the
# promotion, too.
foreach my $name (sort keys %servers)
{
	my $server = $servers{$name};

	$server->{session}->quit;
	# 5 s before the last ID of a node at the time of the clock
	my $age = time() - $server->safe_psql('postgres',
		"SELECT tick_of(scru64 '$last{$name}') * 0.256");
	set_clock($server, sprintf('-%.1f', $age + 5));
	kill_server($server);
	start_server($server);
	is( $server->safe_psql('postgres',
			"SELECT tick_of(clock_timestamp()) < tick_of(scru64 '$last{$name}')"),
		't',
		"$name: the clock is behind the rows again");
	$server->{session} = open_session($server);
	start_statement($server->{session}, "SELECT give('2/8', 1)");
}
foreach my $name (sort keys %servers)
{
	my $server = $servers{$name};

	given_ok($server, "$name, the second restart");
	$server->{session}->query_safe("SELECT give('$_', 1)") foreach (@specs);
	given_ok($server, "$name, all nodes");
	cmp_ok(
		$server->safe_psql('postgres', "SET scru64.node_spec = '9/8'; SELECT scru64_generate()"),
		'gt', $last{$name},
		"$name: a node that was not used before is above all that");
}

# And under load.
my $server = $servers{'standby with'};
my $rows = $server->safe_psql('postgres', 'SELECT count(*) FROM ids');
start_inserts($server, '--time=2')->finish;
cmp_ok($server->safe_psql('postgres', 'SELECT count(*) FROM ids'), '>', $rows + 100, 'the new primary gives IDs');
foreach my $name (sort keys %servers)
{
	foreach my $spec (@specs)
	{
		like($servers{$name}->safe_psql('postgres', "SELECT * FROM count_ids('$spec')"),
			qr/^[1-9]\d*\|0$/, "$name: no ID of $spec twice");
	}
	$servers{$name}->{session}->quit;
	$servers{$name}->stop;
}
done_testing();
