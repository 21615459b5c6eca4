# Who changes a realm waits until the change is on disk, whatever synchronous_commit is at the call,
# at the commit, or in between.

use strict;
use warnings;
use Scru64Disk;
use Scru64Server;
use Scru64Test;

my $node = new_node('main');
plan skip_all => 'no compiler' if !make_disk($node);
$node->append_conf('postgresql.conf', "synchronous_commit = off\nautovacuum = off");
start_server($node);
$node->safe_psql('postgres', q(
CREATE EXTENSION scru64_realm CASCADE;
CREATE FUNCTION lease() RETURNS text LANGUAGE sql SET synchronous_commit = on
	AS $$ SELECT node_spec FROM scru64_realm.lease(8, 'wrapped') $$;
));
my $session = open_session($node);

# Does the statement wait for a flush, by the session itself or by another process that was first?
sub flushes_ok
{
	my ($name, $sql, $expected) = @_;
	my ($last) = $sql =~ /(?:.*; )?(.*)/;
	my $found;

	hold_flushes($node);
	start_statement($session, $sql);
	wait_until(
		sub {
			$found = look_at($node, 'postgres', "SELECT CASE WHEN state = 'idle' AND query = \$\$$last;\$\$ THEN 'no' WHEN lower(wait_event) IN ('walsync', 'walwrite') THEN 'yes' END
				FROM pg_stat_activity WHERE pid = $session->{pid}");
		}, 0.02);
	is($found, $expected // 'yes', $name);
	release_flushes($node);
	is((try_statement($session, 'RESET ALL'))[1], '', '... without an error');
	return;
}

my $lease = "SELECT node_spec FROM scru64_realm.lease(8, 'x')";
flushes_ok('what changes no realm does not wait', 'CREATE TABLE other ()', 'no');
flushes_ok('a lease', $lease);
flushes_ok('a function that has synchronous_commit on', 'SELECT lease()');
flushes_ok('off after the call', "SELECT node_spec, set_config('synchronous_commit', 'off', false) FROM scru64_realm.lease(8, 'x')");
flushes_ok('RESET ALL after the call', "SET synchronous_commit = on; DO 'BEGIN PERFORM scru64_realm.lease(8, ''x'');RESET ALL;END'");
flushes_ok('a COMMIT of a procedure', "DO 'BEGIN PERFORM scru64_realm.lease(8, ''x'');SET LOCAL synchronous_commit = off;COMMIT;END'");
foreach my $call (q(revoke('x')), q(set_guard('31 s')), q(set_max_ttl('2 h')), q(set_first_ttl('3 min')), 'something_was_lost()',
	'nothing_was_lost()')
{
	flushes_ok($call, "SELECT scru64_realm.$call, set_config('synchronous_commit', 'off', true)");
}

$session->quit;
$node->stop;
done_testing();
