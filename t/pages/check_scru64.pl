# examples/check_scru64: a program for monitoring that asks as a member of pg_monitor, on
# servers that are well and in each state in which there is no ID, or soon will be none.

use strict;
use warnings;
use FindBin;
use Scru64Clock;
use Scru64Copies;
use Scru64Files;
use Scru64Lease;
use Scru64Server;
use Scru64Test;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;

plan skip_all => 'no clock can be set' if !can_set_clock();

my $dir = PostgreSQL::Test::Utils::tempdir();
my $well = 'scru64 is well';

# The clocks of all servers stand still, in the midst of a tick, and are moved.
my $clock = int(time() / 256) * 256 + 0.1;

# A server that is well, stopped, with a database and a role that monitors it.
my $template = new_node('template', allows_streaming => 1);
stop_clock($template, $clock);
start_server($template);
$template->safe_psql('postgres', 'CREATE DATABASE app; CREATE ROLE monitor LOGIN IN ROLE pg_monitor');
$template->safe_psql('app', 'CREATE EXTENSION scru64; CREATE TABLE event (id scru64 DEFAULT scru64_generate() PRIMARY KEY)');
$template->stop;
$template->backup_fs_cold('cold');

# A copy of it, not started, with these settings
sub server
{
	my ($name, $conf) = @_;
	my $node = copy_server($template, $name, clock => '+0', lines => $conf);

	stop_clock($node, $clock);
	return $node;
}

sub started
{
	my $node = server(@_);

	start_server($node);
	return $node;
}

# What the check prints, and its exit status
sub check
{
	my ($node, $options) = @_;

	local @ENV{qw(PGHOST PGPORT PGUSER)} = ($node->host, $node->port, 'monitor');
	my $out = qx(sh '$FindBin::RealBin/../../examples/check_scru64' $options -d app);
	return ($? >> 8, $out);
}

sub check_ok
{
	my ($node, $name, $status, $pattern, $options) = @_;
	my ($got, $out) = check($node, $options // '');

	is($got, $status, "$name: exit status $status") or diag($out);
	like($out, $pattern, "$name: what it prints");
	return;
}

# And a row can be inserted, or it fails with this.
sub insert_ok
{
	my ($node, $name, $error) = @_;
	return like(error_of($node, 'INSERT INTO event DEFAULT VALUES', dbname => 'app'),
		$error // qr/^$/, "$name: " . ($error ? 'no row' : 'a row'));
}

# And there is no ID while this is set for the database, which the check says.
sub setting_ok
{
	my ($node, $name, $setting, $value, $error) = @_;

	$node->safe_psql('postgres', "ALTER DATABASE app SET $setting = '$value'");
	insert_ok($node, $name, $error);
	check_ok($node, $name, 2, $error);
	$node->safe_psql('postgres', "ALTER DATABASE app RESET $setting");
	check_ok($node, "$name no longer", 0, qr/^$well$/);
	return;
}

#
# Well, and nothing happens by the check
#
my $main = started('main', "scru64.node_spec = '42/8'\nmax_prepared_transactions = 1");
check_ok($main, 'never used', 0, qr/^$well$/);
is($main->safe_psql('app', 'SELECT count(*) FROM scru64_generators()'), 0, 'it takes no slot');
insert_ok($main, 'well');
my $traces = q(SELECT last_id, durable_until, scru64_ceiling() FROM scru64_generators());
$clock += 100;
stop_clock($main, $clock);
my $before = $main->safe_psql('app', $traces);
check_ok($main, 'well', 0, qr/^$well$/);
is($main->safe_psql('app', $traces), $before, 'it makes no ID and writes nothing');

# Who may look
$main->safe_psql('postgres', 'REVOKE pg_monitor FROM monitor');
check_ok($main, 'not a monitor', 2, qr/^role monitor does not have the privileges of pg_monitor: run GRANT pg_monitor TO monitor$/);
$main->safe_psql('postgres', 'GRANT pg_monitor TO monitor');

# Messages besides the line do no harm.
$main->safe_psql('postgres', q(ALTER ROLE monitor SET client_min_messages = debug1));
check_ok($main, 'with messages', 0, qr/^$well$/m);
$main->safe_psql('postgres', q(ALTER ROLE monitor RESET client_min_messages));

#
# No node for the database
#
insert_ok($main, 'to be overlapped');
setting_ok($main, 'an allowance of its own', 'scru64.rollback_allowance', '20s', qr/parameter "scru64.rollback_allowance" cannot be set for a session/);
setting_ok($main, 'a node that overlaps', 'scru64.node_spec', '84/9', qr/node 84\/9 overlaps node 42\/8/);

#
# Who holds back the watermark
#
my $open = open_session($main, dbname => 'app');
$open->query_safe('BEGIN; INSERT INTO event DEFAULT VALUES');
check_ok($main, 'an open transaction', 0, qr/^$well$/);
$clock += 61;
stop_clock($main, $clock);
check_ok($main, 'one open for long', 1, qr/^process \d+ holds back the watermark since/);
$open->query_safe("PREPARE TRANSACTION 'forgotten'");
$open->quit;
check_ok($main, 'a prepared transaction', 0, qr/^$well$/);
$clock += 61;
stop_clock($main, $clock);
check_ok($main, 'one prepared long ago', 1, qr/^prepared transaction forgotten holds back the watermark since/);
$main->safe_psql('app', "COMMIT PREPARED 'forgotten'");
check_ok($main, 'it is over', 0, qr/^$well$/);

#
# No node
#
my $none = started('none', '');
insert_ok($none, 'no node', qr/node spec is not set/);
check_ok($none, 'no node', 2, qr/node spec is not set/);
$none->stop;

# A realm that nobody can reach, and one whose worker has no place
my $realm = "scru64.realm = 'host=$dir dbname=realm'";
my $failing = started('failing', $realm);
insert_ok($failing, 'no realm', qr/this server has no lease/);
$failing->poll_query_until('app', q(SELECT state = 'failing' FROM scru64_lease())) or die 'the lease does not fail';
check_ok($failing, 'no realm', 2, qr/this server has no lease of a node.*^lease failing/ms);
$failing->stop;

my $workless = started('workless', "$realm\nmax_worker_processes = 0\n");
insert_ok($workless, "no worker, $_", qr/There is no free slot for the lease worker/) foreach ('asked once', 'asked twice');
check_ok($workless, 'no worker', 2, qr/this server has no lease of a node/);
$workless->stop;

#
# A leased node, and the realm
#
my $ledger = make_realm($template, 'ledger', clock => '+0');
my $leasing = fleet_server($template, 'leasing', fleet_lines($ledger), clock => '+0');
my $option = "--realm='host=" . $ledger->host . ' port=' . $ledger->port . " dbname=realm user=watcher'";
$ledger->safe_psql('realm', join("\n", 'CREATE ROLE watcher LOGIN;', slurp_file("$FindBin::RealBin/../../doc/operating.md") =~ /^(GRANT .* TO watcher;)$/mg));
check_ok($leasing, 'nobody has asked for a lease', 0, qr/^scru64 is well$/);
is($leasing->safe_psql('app', 'SELECT state FROM scru64_lease()'), 'no worker', 'nor has the check');
insert_ok($leasing, 'leased');
check_ok($leasing, 'leased', 0, qr/^$well$/, $option);
my $leased = $leasing->safe_psql('app', 'SELECT scru64_node_spec()');
setting_ok($leasing, 'the leased node is configured', 'scru64.node_spec', $leased, qr/node $leased overlaps node $leased/);

# of its 4096 nodes, 14, as many holders, and then 6
$ledger->safe_psql('realm', q(SELECT scru64_realm.lease(size, 'one') FROM generate_series(1, 8) AS size));
check_ok($leasing, '15 nodes for two', 0, qr/^$well$/, $option);
$ledger->safe_psql('realm', q(SELECT scru64_realm.lease(23, 'one of ' || i) FROM generate_series(1, 20) AS i));
check_ok($leasing, '14 nodes for 22', 1, qr/^14 free nodes in the realm$/, $option);
$ledger->safe_psql('realm', q(SELECT scru64_realm.lease(9, 'one')));
check_ok($leasing, '6 nodes', 2, qr/^6 free nodes in the realm$/, $option);
check_ok($leasing, 'without the realm', 0, qr/^$well$/);
check_ok($leasing, 'no answer', 1, qr/^no answer from the realm$/m, "--realm='host=$dir dbname=realm'");
$_->stop foreach ($leasing, $ledger);

#
# A node that is too busy: as soon as it has issued its last ID, it stays 256 ms
# below the allowance.
#
sub too_busy
{
	my ($name, $conf, $pattern) = @_;
	my $server = started($name, "scru64.node_spec = '0/20'\n$conf");
	my $session = open_session($server, dbname => 'app');

	start_statement($session, 'SELECT count(*) FROM scru64_generate(100000)');
	$server->poll_query_until('app', q(SELECT waits > 0 FROM scru64_generators())) or die 'no session waits';
	check_ok($server, "too busy, $name", 2, $pattern);
	$server->safe_psql('postgres', "SELECT pg_cancel_backend($session->{pid})");
	$session->quit;
	return $server;
}

my $busy = too_busy('busy', '', qr/^node 0\/20 is ahead by 00:00:09/);
stop_clock($busy, $clock + 2);
check_ok($busy, 'busy', 1, qr/^node 0\/20 is ahead by 00:00:07/);
stop_clock($busy, $clock + 7);
check_ok($busy, 'not so busy', 0, qr/^$well$/);
$busy->stop;

# The same with a small allowance, of which 256 ms are a great part
too_busy('small', "scru64.rollback_allowance = '2s'", qr/^node 0\/20 is ahead by 00:00:01/)->stop;

#
# The ceiling
#

# The clock was ahead, but by little: the next ID waits.
$main->safe_psql('app', q(SELECT scru64_set_ceiling(clock_timestamp() + interval '15 s')));
check_ok($main, 'the clock is a bit behind', 2, qr/^The next ID waits for the clock for 5\d{3} ms\. Node 42\/8 has issued no ID yet, and starts after .*\.$/m);

# The clock was an hour ahead, before the start: no node is in use yet.
$main->safe_psql('app', q(SELECT scru64_set_ceiling(clock_timestamp() + interval '1 hour')));
insert_ok($main, 'the clock is behind', qr/the clock is too far behind/);
check_ok($main, 'the clock is behind', 2, qr/^ERROR: .*the clock is too far behind the start of node 42\/8.*^the ceiling is ahead by 00:59/ms);
$main->safe_psql('app', q(SELECT scru64_set_ceiling()));
check_ok($main, 'the clock is right', 0, qr/^$well$/);
insert_ok($main, 'the clock is right');

# The same in a session, whose node spec continues after an ID.
my $check = sub {
	my ($time) = @_;
	my $set = "SELECT set_config('scru64.node_spec', scru64_from_parts($time, 43 << 16) || '/8', false)";

	return error_of($main, "$set; SELECT scru64_check()", dbname => 'app');
};
is($check->("now() - interval '1 hour'"), '', 'an ID of before');
like($check->("now() + interval '1 hour'"), qr/the clock is too far behind the last ID of node/, 'an ID of long after');

# Cut while the server is up; where it is idle, nothing has noticed that.
my $page = slurp_file(page_file($main));
replace_file(page_file($main), substr($page, 0, 100));
check_ok($main, 'cut', 2, qr/"global\/9864" is damaged/);
$clock += 100;
stop_clock($main, $clock);
insert_ok($main, 'cut', qr/"global\/9864" is damaged/);

# Away
unlink(page_file($main));
insert_ok($main, 'away', qr/"global\/9864" is damaged/);
check_ok($main, 'away', 2, qr/"global\/9864" is damaged.*^the ceiling is lost$/ms);

# Back
replace_file(page_file($main), $page);
insert_ok($main, 'back');
check_ok($main, 'back', 0, qr/^$well$/);

# Not as it was written, since before the start
$main->stop;
$page = slurp_file(page_file($main));
replace_file(page_file($main), substr($page, 0, 30) . '!' . substr($page, 31));
start_server($main);
check_ok($main, 'damaged', 2, qr/"global\/9864" is damaged/);
insert_ok($main, 'damaged', qr/"global\/9864" is damaged/);
$main->stop;
replace_file(page_file($main), $page);

# Lost, as after pg_upgrade
unlink(page_file($main));
start_server($main);
check_ok($main, 'lost', 2, qr/^the ceiling is lost$/);
$main->safe_psql('app', 'SELECT scru64_watermark()');
check_ok($main, 'made anew', 0, qr/^$well$/);
$clock += 100;
stop_clock($main, $clock);
insert_ok($main, 'made anew');

#
# A standby
#
$main->backup('for_standby');
my $standby = copy_server($main, 'standby', backup => 'for_standby');
stop_clock($standby, $clock);
$standby->enable_streaming($main);
start_server($standby);
check_ok($standby, 'standby', 0, qr/^$well$/);
$standby->append_conf('postgresql.conf', "scru64.node_spec = ''");
$standby->reload;
$standby->poll_query_until('app', q(SELECT scru64_node_spec() IS NULL)) or die 'the standby still has a node';
check_ok($standby, 'standby without a node', 1, qr/^no node$/);
$standby->stop;

#
# A synchronous standby.  Its clock, and that of its primary at first, is the real one:
# before PostgreSQL 16, children of a postmaster do not always get another.
#
my $primary = copy_server($template, 'primary', clock => '+0', lines => "scru64.node_spec = '42/8'\nwal_sender_timeout = 0");
start_server($primary);
$primary->backup('for_standby');
my $late = add_standby($primary, $primary, 'late', backup => 'for_standby');
my $names = sub { set_parameter($primary, 'synchronous_standby_names', $_[0]) };
$names->('ANY 1 (late, other)');
ok(wait_until(sub { (check($primary, ''))[0] == 0 }), 'a synchronous standby');
my $receiver = $late->safe_psql('postgres', 'SELECT pid FROM pg_stat_wal_receiver');
kill('STOP', $receiver) or die 'could not stop the WAL receiver';
$primary->safe_psql('app', 'SET synchronous_commit = local; CREATE TABLE late ()');
$primary->poll_query_until('postgres', 'SELECT sent_lsn > flush_lsn FROM pg_stat_replication') or die 'nothing is sent';
my $heard = $primary->safe_psql('postgres', 'SELECT extract(epoch FROM reply_time) FROM pg_stat_replication');
stop_clock($primary, $heard + 1.5);
check_ok($primary, 'late', 1, qr/^a synchronous standby is late by 00:00:01/);
stop_clock($primary, $heard + 3);
check_ok($primary, 'too late', 2, qr/^a synchronous standby is late by 00:00:0[23]/);
$names->('ANY 2 (late, other)');
check_ok($primary, 'one of two', 2, qr/^a synchronous standby is missing\nThe next ID waits for synchronous standbys\. Missing: 1 of 2\.$/);
$names->('');
check_ok($primary, 'no longer synchronous', 0, qr/^$well$/);
kill('CONT', $receiver);
$_->stop foreach ($late, $primary);

#
# No answer
#
$main->safe_psql('app', 'DROP EXTENSION scru64 CASCADE');
check_ok($main, 'no extension', 2, qr/^database app does not have the extension scru64: .*CREATE EXTENSION scru64 there$/);
$main->stop;
check_ok($main, 'no server', 2, qr/failed/);

done_testing();
