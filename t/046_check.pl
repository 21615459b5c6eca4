# examples/check_scru64: a program for monitoring that asks as a member of pg_monitor, on
# servers that are well and in each state in which there is no ID, or soon will be none.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Scru64Fault;
use Scru64Test;

plan skip_all => 'libfaketime is not installed' if !can_set_clock();

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
	my $node = copy_server($template, $name, clock => '+0');

	stop_clock($node, $clock);
	$node->append_conf('postgresql.conf', $conf);
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
	my ($node) = @_;

	local @ENV{qw(PGHOST PGPORT PGUSER)} = ($node->host, $node->port, 'monitor');
	my $out = qx(sh '$FindBin::RealBin/../examples/check_scru64' -d app);
	return ($? >> 8, $out);
}

sub check_ok
{
	my ($node, $name, $status, $pattern) = @_;
	my ($got, $out) = check($node);

	is($got, $status, "$name: exit status $status") or diag($out);
	like($out, $pattern, "$name: what it prints");
	return;
}

# And a row can be inserted, or it fails with this.
sub insert_ok
{
	my ($node, $name, $error) = @_;
	my (undef, undef, $err) = $node->psql('app', 'INSERT INTO event DEFAULT VALUES');

	like($err, $error // qr/^$/, "$name: " . ($error ? 'no row' : 'a row'));
	return;
}

#
# Well, and nothing happens by the check
#
my $main = started('main', "scru64.node_spec = '42/8'");
check_ok($main, 'never used', 0, qr/^$well$/);
insert_ok($main, 'well');
my $traces = q(SELECT last_id, durable_until, scru64_ceiling() FROM scru64_generators);
$clock += 100;
stop_clock($main, $clock);
my $before = $main->safe_psql('app', $traces);
check_ok($main, 'well', 0, qr/^$well$/);
is($main->safe_psql('app', $traces), $before, 'it makes no ID and writes nothing');

# Messages besides the line do no harm.
$main->safe_psql('postgres', q(ALTER ROLE monitor SET client_min_messages = debug1));
check_ok($main, 'with messages', 0, qr/^$well$/m);
$main->safe_psql('postgres', q(ALTER ROLE monitor RESET client_min_messages));

#
# No node
#
my $none = started('none', '');
insert_ok($none, 'no node', qr/node spec is not set/);
check_ok($none, 'no node', 2, qr/no node/);
$none->stop;

# A realm that nobody can reach, and one whose worker has no place
my $realm = "scru64.realm = 'host=$dir dbname=realm'";
my $failing = started('failing', $realm);
insert_ok($failing, 'no realm', qr/this server has no lease/);
$failing->poll_query_until('app', q(SELECT state = 'failing' FROM scru64_lease)) or die 'the lease does not fail';
check_ok($failing, 'no realm', 2, qr/no node; lease failing/);
$failing->stop;

my $workless = started('workless', "$realm\nmax_worker_processes = 0\n");
insert_ok($workless, 'no worker', qr/There is no free slot for the lease worker/);
check_ok($workless, 'no worker', 2, qr/no node/);
$workless->stop;

#
# A node that is too busy: as soon as it has issued its last ID, it stays 256 ms
# below the allowance.
#
sub too_busy
{
	my ($name, $conf, $pattern) = @_;
	my $server = started($name, "scru64.node_spec = '0/20'\n$conf");
	my $session = open_session($server, dbname => 'app');
	my $pid = $session->query_safe('SELECT pg_backend_pid()');

	start_statement($session, 'SELECT count(*) FROM scru64_generate(100000)');
	$server->poll_query_until('app', q(SELECT waits > 0 FROM scru64_generators));
	check_ok($server, "too busy, $name", 2, $pattern);
	$server->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
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

# The clock was an hour ahead, before the start: no node is in use yet.
$main->safe_psql('app', q(SELECT scru64_set_ceiling(clock_timestamp() + interval '1 hour')));
insert_ok($main, 'the clock is behind', qr/the clock is too far behind/);
check_ok($main, 'the clock is behind', 2, qr/^the ceiling is ahead by 00:59/);
$main->safe_psql('app', q(SELECT scru64_set_ceiling()));
check_ok($main, 'the clock is right', 0, qr/^$well$/);
insert_ok($main, 'the clock is right');

# Cut while the server is up; where it is idle, nothing has noticed that.
my $page = read_file(page_file($main));
replace_file(page_file($main), substr($page, 0, 100));
check_ok($main, 'cut', 2, qr/"global\/9864" is damaged/);
$clock += 100;
stop_clock($main, $clock);
insert_ok($main, 'cut', qr/"global\/9864" is damaged/);

# Away
unlink(page_file($main));
insert_ok($main, 'away', qr/"global\/9864" is damaged/);
check_ok($main, 'away', 2, qr/^the ceiling is lost$/);

# Back
replace_file(page_file($main), $page);
insert_ok($main, 'back');
check_ok($main, 'back', 0, qr/^$well$/);

# Not as it was written, since before the start
$main->stop;
$page = read_file(page_file($main));
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
$standby->poll_query_until('app', q(SELECT scru64_node_spec() IS NULL))
  or die 'the standby still has a node';
check_ok($standby, 'standby without a node', 1, qr/^no node$/);
$standby->stop;

#
# No answer
#
$main->safe_psql('app', 'DROP EXTENSION scru64 CASCADE');
check_ok($main, 'no extension', 2, qr/does not exist/);
$main->stop;
check_ok($main, 'no server', 2, qr/failed/);

done_testing();
