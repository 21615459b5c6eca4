# scru64_watermark() and what is not one session on one server: standbys, and a server
# without room for it.

use strict;
use warnings;
use Scru64Copies;
use Scru64Server;
use Scru64Test;
use Scru64Watermark;

my $template = make_template('template', allows_streaming => 1);
my ($id, $before, $out, $err);

# A server with these lines in its configuration, and the node 1/8
sub server_with
{
	my ($name, $lines) = @_;
	my $server = copy_server($template, $name, lines => "scru64.node_spec = '1/8'\n$lines");

	start_server($server);
	add_events($server);
	return $server;
}

sub put_here
{
	my ($server, $sql) = @_;

	return $server->safe_psql('postgres', ($sql || '') . put_sql(0));
}

#
# Standbys
#
{
	my $node = server_with('primary', '');
	my $standby = add_standby($template, $node, 'standby');
	my $session = open_session($node);
	my $poller = open_session($node);

	catch_up($node, $standby);
	like(error_of($standby, 'SELECT * FROM event WHERE id < scru64_watermark()'),
		qr/ERROR:  25006: cannot execute scru64_watermark\(\) during recovery/, 'a standby has none');

	# A commit that waits for standbys: nobody sees its row.
	set_parameter($node, 'synchronous_standby_names', 'nobody', $session);
	# the checkpointer tells the others of it
	$node->safe_psql('postgres', 'CHECKPOINT');
	$session->query_safe('BEGIN; SET LOCAL synchronous_commit = local');
	$id = put($session);
	$session->query_safe('SET LOCAL synchronous_commit = on');
	start_statement($session, 'COMMIT');
	ok(waits_for($node, $session, 'SyncRep'), 'a commit waits for a standby');
	put_here($node, 'SET synchronous_commit = local; ');
	held_ok($node, $id, 'and holds the watermark back');
	is($node->safe_psql('postgres', "SELECT count(*) FROM event WHERE id = '$id'"), '0', 'as its row is not to be seen');
	set_parameter($node, 'synchronous_standby_names', 'standby');
	$session->query_safe('SELECT');
	passes_ok($node, $id, 'there is a standby: it passes');

	# A raise of the ceiling that waits for a standby, while others ask all the time and
	# another node goes on.  It waits when what the standby had is used up.
	$standby->stop('immediate');
	start_statement($session, "SET scru64.node_spec = '2/8'; SELECT 'ID ' || max(id) FROM
		(SELECT scru64_generate() AS id FROM generate_series(1, 100) AS n, LATERAL (SELECT pg_sleep(0.1 + n * 0)) AS p) AS made");
	ok(waits_for($node, $session, 'Standby'), 'a session waits for the ceiling of a standby');
	$poller->query_safe("SET synchronous_commit = local; SET scru64.node_spec = '3/8'");
	foreach my $look (1 .. 40)
	{
		put($poller);
		$before = $poller->query_safe('SELECT scru64_watermark() FROM pg_sleep(0.1)');
	}
	start_statement($poller, 'SELECT count(scru64_watermark()) FROM generate_series(1, 40) AS n, LATERAL (SELECT pg_sleep(0.05 + n * 0)) AS p');
	start_server($standby);
	($out, $err) = try_statement($session, 'SELECT');
	like($out, qr/ID \w{12}/, 'a session that waits for a standby while others ask gets through') or diag($err);
	my ($given) = $out =~ /ID (\w{12})/;
	cmp_ok($given || '', 'ge', $before, 'above the watermark');
	$_->quit foreach ($session, $poller);
	$standby->stop;
	$node->stop('immediate');
}

#
# No room for writers.  Only before 17 the server has to have it from the start.
#
my $needs_room = $template->config_data('--version') =~ /^PostgreSQL 1[56]/;
{
	my $node = server_with('large', "max_connections = 3000\n");

	like(put_here($node), qr/^\w{12}$/, 'thousands of connections: IDs');
	if ($needs_room)
	{
		no_watermark_ok($node, qr/DETAIL:  .* 3\d\d\d processes .*\nHINT:  .*"shared_preload_libraries"/, 'and no watermark');
	}
	else
	{
		passes_ok($node, put_here($node), 'and a watermark');
	}
	like(put_here($node), qr/^\w{12}$/, 'IDs go on');
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'scru64'");
	$node->restart;
	passes_ok($node, put_here($node), 'preloaded: there is a watermark');
	$node->stop;
}

# Nor for nodes: a session's locks have taken what there was.
{
	my $node = server_with('full', "max_locks_per_transaction = 10\nmax_connections = 10\nmax_prepared_transactions = 10\n");

	$node->restart;
	my ($session, $locks) = map { open_session($node) } (1 .. 2);
	($out, $err) = try_statement($locks, 'SELECT count(pg_advisory_xact_lock(n)) FROM generate_series(1, 1000000) AS n');
	like($err, qr/ERROR:  53200: out of shared memory/, 'shared memory is full');
	($out, $err) = try_statement($session, put_sql(0));
	like($err, qr/ERROR:  53200: not enough shared memory/, 'no IDs') if $needs_room;
	$session->query_safe('BEGIN; INSERT INTO event VALUES (scru64_min(now()), 1)');
	($out, $err) = try_statement($session, "PREPARE TRANSACTION 'without ID'");
	is($err, '', 'and a transaction without one is prepared');
	$_->quit foreach ($session, $locks);
	$node->safe_psql('postgres', "COMMIT PREPARED 'without ID'");
	$node->restart;
	passes_ok($node, put_here($node), 'after a restart there is room');
	$node->stop;
}
done_testing();
