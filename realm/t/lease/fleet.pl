# A server leases its own node: a fleet with the same lines of configuration, who
# sees what, configured nodes, and what ends and what keeps a lease.

use strict;
use warnings;
use File::Find;
use List::Util qw(uniq);
use Scru64Copies;
use Scru64Files;
use Scru64Lease;
use Scru64Server;
use Scru64Test;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;

my $template = make_template('template', allows_streaming => 1);
my $realm = make_realm($template, 'realm');
my $lines = fleet_lines($realm);

# A password, and a file that it is in
my $passfile = $realm->basedir . '/passfile';
$realm->safe_psql('postgres', "ALTER ROLE fleet PASSWORD '$password'");
replace_file($realm->data_dir . '/pg_hba.conf', "local all fleet scram-sha-256\n" . slurp_file($realm->data_dir . '/pg_hba.conf'));
$realm->reload;
replace_file($passfile, "*:*:*:fleet:$password\n");
chmod(0600, $passfile);

#
# A new server that has the lines from its first start, as an image may: nothing was lost
#
{
	my $server = new_node('new');

	$server->append_conf('postgresql.conf', $lines . $preload . "scru64.rollback_allowance = '1d'\n");
	start_server($server);
	my $worker = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'scru64 lease worker' AND wait_event = 'Extension'";
	ok($server->poll_query_until('postgres', $worker, 1), 'a new server: its worker waits');
	is($realm->safe_psql('realm', "SELECT count(*) FROM scru64_realm.ledger WHERE holder = 'new'"), 0, 'nobody needs a node');
	$server->safe_psql('postgres', 'CREATE EXTENSION scru64');
	is((try_generate($server))[1], '', 'until the first session asks for an ID');
	is($server->safe_psql('postgres', "SELECT scru64_ceiling() < clock_timestamp() + interval '1 hour'"), 't', 'it begins at the clock');
	is(scalar(logged($server, 'the ceiling of scru64 was lost')), 0, 'no ceiling was lost');
	$server->restart;
	ok(wait_until(sub { lease_of($server) }), 'started again: a lease at once');
	is($server->safe_psql('postgres', q(SELECT node_id || '/' || node_id_size = scru64_node_spec(), last_id, lead FROM scru64_generators())),
		't||', 'of a node without an ID');
	$server->stop;
}

#
# A fleet
#
my $server_a = fleet_server($template, 'a', $lines . $preload);
my $server_b = fleet_server($template, 'b', $lines =~ s/password=$password/passfile=$passfile/r);
my $server_c = fleet_server($template, 'c', $lines);

is($server_b->safe_psql('postgres', 'SELECT scru64_node_spec() IS NULL'), 't', 'no node before one is needed');
is(lease_sql($server_b, 'state, node_spec, failures'), 'no worker||0', 'scru64_lease() without a worker');
ok(wait_until(sub { lease_of($server_a) }), 'preloaded: a lease without a session that needs one');
my ($first, $err) = try_generate($server_b);
is($err, '', 'not preloaded: the first session gets an ID');
# Where the node specs are from that went before a lease, in the order in which the log says so
sub logged_sources
{
	my ($server) = @_;

	return join(' ', uniq(map { /source "(.*?)"/ } logged($server, 'DETAIL:  A session has "scru64.node_spec" from source')));
}

# the realm's own server has the same lines
$realm->safe_psql('postgres', "SET scru64.node_spec = '203/8'; SELECT scru64_generate()");
is(logged_sources($realm), '', 'a configured node, and no realm: nothing in the log');
configure_server($realm, $lines);
$realm->poll_query_until('postgres', "SELECT length(current_setting('scru64.realm')) > 0") or die 'no reload';
begin_load($_, 2) foreach ($server_a, $server_b, $server_c, $realm);
ok(wait_for_lease($_), $_->name . ' has a lease') foreach ($server_a, $server_b, $server_c, $realm);
my %nodes = map { $_->safe_psql('postgres', "LOAD 'scru64'; SELECT scru64_node_spec()") => $_->name } ($server_a, $server_b, $server_c);
is(scalar(keys %nodes), 3, 'three nodes: ' . join(' ', sort keys %nodes));
is(lease_sql($server_b, "state, node_spec = scru64_node_spec(), holder, failures, last_error, expires_at - granted_at >= '119s', next_attempt_at BETWEEN now() AND now() + (expires_at - now()) / 2"),
	'held|t|b|0||t|t', 'scru64_lease()');

# configured nodes go before the lease
is(substr($server_b->safe_psql('postgres', "SET scru64.node_spec = '200/8'; SELECT scru64_node_spec()"), 0), '200/8', 'a configured node');
$server_b->safe_psql('postgres', "CREATE ROLE configured LOGIN; ALTER ROLE configured SET scru64.node_spec = '201/8'; CREATE DATABASE configured; ALTER DATABASE configured SET scru64.node_spec = '202/8'");
foreach my $case ([ 'configured', 'postgres', '201/8', 'role' ], [ 'postgres', 'configured', '202/8', 'database' ])
{
	my ($user, $dbname, $spec, $what) = @{$case};
	$server_b->safe_psql($dbname, 'CREATE EXTENSION scru64') if $dbname ne 'postgres';
	foreach my $session (1 .. 2)
	{
		my (undef, $out) = $server_b->psql($dbname, "SELECT scru64_node_spec(); SELECT scru64_generate()::bigint >> 16 & 255",
			extra_params => [ '-U', $user ]);
		is($out, "$spec\n" . (split('/', $spec))[0], "a node set for a $what");
	}
}

# more configured nodes than there are slots do not evict the lease's
{
	my $node = lease_of($server_b);
	$server_b->safe_psql('postgres', "SELECT scru64_generate(); SELECT set_config('scru64.node_spec', n || '/16', false), scru64_generate(3) FROM generate_series(60000, 60199) n; SET scru64.node_spec = ''; SELECT scru64_generate()");
	is(lease_of($server_b), $node, 'after 200 configured nodes: the same lease');
	is($server_b->safe_psql('postgres', "SELECT count(*) FROM scru64_generators() WHERE node_id || '/' || node_id_size = '$node'"), 1, 'and its slot');
}

is(logged_sources($server_b), 'user database session', 'the log names each source of a node spec that goes before the lease');
cmp_ok(scalar(logged($server_b, 'DETAIL:  A session has')), '<', 10, 'once a minute, not for each session and node');
like(slurp_file($server_b->logfile),
	qr{LOG:  node 201/8 is used in place of the one that this server leases\n.*DETAIL:  .* source "user"\. .*\n.*HINT:  RESET it by ALTER ROLE},
	'and what to do');

# a configured node that overlaps the lease
foreach my $spec (lease_of($server_b), '0/1')
{
	my ($out, $message) = try_generate($server_b, "SET scru64.node_spec = '$spec'; ");
	like($message, qr/ERROR:  55006: node \S+ overlaps node/, "$spec configured, which is leased");
}

#
# Who sees what
#
$server_b->safe_psql('postgres', 'CREATE ROLE monitor LOGIN IN ROLE pg_monitor; CREATE ROLE other LOGIN');
like($server_b->safe_psql('postgres', 'SELECT state, node_spec FROM scru64_lease()', extra_params => [ '-U', 'monitor' ]), qr{^held\|\d+/12$}, 'pg_monitor sees the lease');
like(error_of($server_b, 'SELECT FROM scru64_lease()', extra_params => [ '-U', 'other' ]), qr/permission denied/, 'others do not');
{
	my @other = (extra_params => [ '-U', 'other' ]);
	is($server_b->safe_psql('postgres', "SELECT scru64_node_spec(), scru64_generate() IS NULL; SELECT setting FROM pg_settings WHERE name = 'scru64.realm'", @other),
		lease_of($server_b) . '|f', 'they see their node, and no connection string in pg_settings');
	like(error_of($server_b, 'SELECT scru64_generate(); SHOW scru64.realm', @other), qr/permission denied|must be superuser/, 'nor by SHOW');
	is($server_b->safe_psql('postgres', "SELECT backend_type, state, datname, usename, query = ANY ('{\"\",talking with the realm}') FROM pg_stat_activity WHERE backend_type LIKE '%lease%'"),
		'scru64 lease worker|idle||postgres|t', 'pg_stat_activity shows the worker');
}
foreach my $server ($server_a, $server_b)
{
	my $session = open_session($server);
	my $worker = lease_sql($server, 'worker_pid');

	$session->query_safe('SELECT scru64_generate()');
	unlike(slurp_file("/proc/$session->{pid}/maps"), qr/libpq/, $server->name . ': a session without libpq');
	like(slurp_file("/proc/$worker/maps"), qr/libpq/, $server->name . ': the worker has it');
	$session->quit;
}

#
# A standby that does not preload the library leases nothing; promoted, a node of its own
#
{
	my $standby = add_standby($template, $server_a, 'standby', lines => $lines);
	catch_up($server_a, $standby);
	my ($out, $message) = try_generate($standby);
	is($out, '', 'a standby gives no ID');
	like($message, qr/ERROR:  (25006|55000)/, 'a standby: ' . ($message =~ /ERROR:(.*)/)[0]);
	is(lease_of($standby), '', 'a standby leases nothing');
	is($realm->safe_psql('realm', "SELECT count(*) FROM scru64_realm.ledger WHERE holder = 'standby'"), 0, 'not in the ledger');
	$standby->promote;
	my $began = time();
	ok(wait_for_lease($standby), 'promoted, it does');
	note(sprintf('lease %.1f s after the promotion', time() - $began));
	isnt(lease_of($standby), lease_of($server_a), 'another one than its primary');
	# two primaries, both of which issue IDs
	begin_load($standby, 2);
	sleep(1);
	$standby->stop;
	is($realm->safe_psql('realm', "SELECT count(*) FROM scru64_realm.leases WHERE holder = 'standby'"), 0, 'a fast stop releases it');
}

#
# A node configured first: the first of a region in which no server has had a lease, so the realm
# grants this one.  The next lease may be had ten seconds later, see below.
#
my $configured = '256/12';
my $server_d = fleet_server($template, 'd', $lines . "scru64.lease_within = '1/4'\n");
foreach my $spec ('203/8', '')
{
	configure_server($server_d, "scru64.node_spec = '$spec'\n");
	$server_d->poll_query_until('postgres', "SELECT current_setting('scru64.node_spec') = '$spec'") or die 'no reload';
	$server_d->safe_psql('postgres', 'SELECT scru64_generate()') if $spec ne '';
}
is(logged_sources($server_d), '', 'a node in the configuration: nothing in the log');
$server_d->safe_psql('postgres', "SET scru64.node_spec = '$configured'; SELECT scru64_generate()");
ok( wait_until(sub { try_generate($server_d); lease_sql($server_d, 'last_error') =~ m{node $configured overlaps one that is configured on this server} }),
	'a node configured first: the worker says why it does not use what it got');

#
# kill -9 of a backend, of the worker, of the postmaster; a stop
#
foreach my $case ([ 'a session', $server_a ], [ 'the worker', $server_a ], [ 'a session', $server_b ], [ 'the worker', $server_b ])
{
	my ($what, $server) = @{$case};
	my $session = open_session($server);
	my $before = lease_of($server);
	my $victim = $what eq 'a session' ? $session->{pid} : lease_sql($server, 'worker_pid');

	crash($server, $victim);
	$session->{run}->finish if $what eq 'a session';
	my $after = wait_for_lease($server);
	ok($after ne '' && $after ne $before, $server->name . ", kill -9 of $what: another node, $before, $after");
}
{
	my $before = lease_of($server_c);
	$server_c->safe_psql('postgres', 'SELECT pg_terminate_backend(worker_pid) FROM scru64_lease()');
	my $after = wait_for_lease($server_c, $before);
	isnt($after, '', "the worker is told to end: it releases the node, and the next one has another, $before, $after");
}
foreach my $server ($server_a, $server_b)
{
	my $before = lease_of($server);
	kill_server($server);
	start_server($server);
	my $after = wait_for_lease($server);
	ok($after ne '' && $after ne $before, $server->name . ", kill -9 of the postmaster: another node, $before, $after");
}
# ends the lease of $server_c, which gets another one soon, see below
my $ended = lease_of($server_c);
$server_c->safe_psql('postgres', 'SELECT scru64_set_ceiling()');

{
	my $node = lease_of($server_b);
	$server_b->stop('fast');
	is($realm->safe_psql('realm', "SELECT count(*), count(*) FILTER (WHERE last_id::bigint >> 24 > scru64_realm_internal.tick(granted_at)) FROM scru64_realm.ledger WHERE holder = 'b' AND released_at IS NOT NULL"),
		'1|1', 'it releases the node, with the last ID');
	start_server($server_b);
	isnt(wait_for_lease($server_b), '', 'started again: a lease');
}
{
	kill('STOP', postmaster_pid($realm));
	my $began = time();
	$server_b->stop('fast');
	# an answer would be waited for for 15 s
	cmp_ok(time() - $began, '<', 12, sprintf('a fast stop with a realm that does not answer: %.1f s', time() - $began));
	kill('CONT', postmaster_pid($realm));
	start_server($server_b);
	isnt(wait_for_lease($server_b), '', 'started again: a lease');
}

#
# The setting emptied, and set again
#
sub is_released
{
	my ($holder, $node) = @_;

	return $realm->safe_psql('realm', "SELECT released_at IS NOT NULL FROM scru64_realm.ledger WHERE holder = '$holder' AND node_id || '/' || node_id_size = '$node' ORDER BY granted_at DESC LIMIT 1") eq 't';
}

{
	my $before = lease_of($server_a);
	configure_server($server_a, "scru64.realm = ''\n");
	ok(wait_until(sub { is_released('a', $before) }), 'scru64.realm emptied: the lease is released');
	my ($out, $message) = try_generate($server_a);
	like($message, qr/ERROR:  55000: node spec is not set/, 'and there is no node');
	is(lease_sql($server_a, 'count(*)'), 0, 'nor a row of scru64_lease()');
	configure_server($server_a, $lines);
	isnt(wait_for_lease($server_a), '', 'set again: a lease');
}

#
# What takes its time
#
isnt(wait_for_lease($server_c, $ended), '', 'scru64_set_ceiling(): another lease');
ok(wait_until(sub { is_released('c', $ended) }), 'the one before is released');
my $other = wait_for_lease($server_d);
ok($other ne '' && $other ne $configured, "a node configured first: the worker takes another, $configured, $other");
$server_d->stop;

#
# Secrets
#
end_loads();
ok_ids($realm, 'a fleet', 1000);
my @ids = split(/\n/, $realm->safe_psql('realm', 'SELECT lease_id FROM scru64_realm.ledger'));
my @secrets = ($password, map { my $hex = s/-//gr; ($_, $hex, pack('H*', $hex)) } @ids);
my (@found, %seen);

sub look
{
	my ($where, $text) = @_;

	push @found, "$_ in $where" foreach (grep { index($text, $_) >= 0 } @secrets);
	return;
}

cmp_ok(scalar(@secrets), '>', 12, 'there are secrets');
# what any role sees where the password is in a file, and a copy of the server
foreach my $role ('postgres', 'monitor', 'other')
{
	foreach my $rows ('scru64_lease()', 'scru64_generators()', 'pg_stat_activity', 'pg_settings', 'pg_file_settings', 'scru64_node_spec()')
	{
		my ($rc, $out, $message) = $server_b->psql('postgres', "SELECT v::text FROM $rows v", extra_params => [ '-U', $role ]);
		look("$rows of $role", "$out$message");
		$seen{$role} .= " $rows" if $rc == 0 && $out ne '' && $out ne '()';
	}
}
is($seen{other}, ' pg_stat_activity pg_settings scru64_node_spec()', 'what others see at all');
$server_b->backup('hot');
$_->stop foreach ($server_a, $server_b, $server_c);
find(
	{
		no_chdir => 1,
		# the configuration of the others has the password
		wanted => sub { look($_, slurp_file($_)) if -f $_ && !m{_[ac]_data/.*/(postgresql\.conf|config_exec_params)$} }
	},
	$server_b->backup_dir . '/hot', map { $_->data_dir } ($server_a, $server_b, $server_c));
# PostgreSQL itself tells what a reload has changed: doc/scru64.md says so
look($_->name . "'s log", slurp_file($_->logfile) =~ s/parameter "scru64.realm" changed to .*//gr) foreach ($server_a, $server_b, $server_c);
is(join(', ', @found), '', 'no lease_id and no password in the data directories, a base backup, the logs, and what any role sees');
done_testing();
