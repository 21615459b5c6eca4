# With synchronous replication, IDs that only clients have seen do not come again
# after a failover either: a session that raises the ceiling waits for the standbys as
# its commit would.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Scru64Fault;
use Scru64Test;
use Test::More;

plan skip_all => 'libfaketime is not installed' if !can_set_clock();

my $template = make_template('template', allows_streaming => 1);

# The primary's clock is ahead, so that the standby's does not help.
my $primary = copy_server($template, 'primary', clock => '+8');
$primary->append_conf('postgresql.conf', "synchronous_standby_names = 'standby'");
start_server($primary);
my $standby = add_standby($template, $primary, 'standby', clock => '+0');
my %record;
my $wait_event = $primary->safe_psql('postgres', 'SHOW server_version_num') >= 170000 ? 'Scru64Standby' : 'Extension';

sub waiting_sessions
{
	my ($server) = @_;

	return $server->poll_query_until('postgres',
		"SELECT count(*) > 0 FROM pg_stat_activity WHERE state = 'active' AND wait_event = '$wait_event'");
}

# No row is written, so that nothing but the ceiling has to wait.
my $load = start_load($primary, '1/12' => 2);
$standby->stop('immediate');
ok(waiting_sessions($primary), 'without the standby, the ceiling is not raised');
kill_server($primary);
finish_load($load);
is(record_load(\%record, $load), '', 'no client had an error before');
cmp_ok(number_of_ids(\%record, '1/12'), '>', 100, 'clients have received IDs');

start_server($standby);
$standby->promote;
my $again = start_load($standby, '1/12' => 2);
end_load($again);
is(record_load(\%record, $again), '', 'no client of the new primary had an error');
is(record_problems(\%record), '', 'no ID that a client has received comes again');

# Who waits can be cancelled, and keeps nobody waiting who does not want to.
$standby->append_conf('postgresql.conf', "synchronous_standby_names = 'nobody'");
$standby->restart;
my $session = open_session($standby);
my $pid = $session->query_safe('SELECT pg_backend_pid()');
start_statement($session, "SET scru64.node_spec = '2/12'; SELECT 'ID', scru64_generate()");
ok(waiting_sessions($standby), 'a session waits for a standby that is not there');
like(
	$standby->safe_psql(
		'postgres',
		"SET synchronous_commit = local; SET statement_timeout = '60s'; SET scru64.node_spec = '3/12'; SELECT scru64_generate()"
	),
	qr/^\w{12}$/,
	'another one does not, if its commits would not');
$standby->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
my ($out, $err) = try_statement($session, "SELECT 'after'");
like($err, qr/ERROR:  57014/, 'the wait ends when it is cancelled');
unlike($err, qr/WARNING|commit/, 'and nothing is said of commits');
unlike($out, qr/^ID/m, 'there is no ID then');

$session->quit;
$standby->stop;
done_testing();
