# What only the start of a server shows of the settings: the environment variable, the command
# line, postgresql.conf and its reload, values of all roles and of one, parallel workers.  With
# the library preloaded and without.  What a session may set is in settings_levels.sql.

use strict;
use warnings;
use Scru64Test;

# All nodes of this test have size 8, so that an ID tells which node it is of.
my $used = 'SELECT scru64_node_ctr(scru64_generate()) >> 16';
my $show = q(SELECT concat_ws(' ', current_setting('scru64.rollback_allowance'), current_setting('scru64.lease_ttl'), current_setting('scru64.lease_holder')));
my $servers = '20s 4h here';

my $node = new_node('main');
my ($preload, $mode) = (0, 'not preloaded');

# What statements return in a new session, then its messages, for example "13 WARNING 42501";
# and what its errors say.
sub outcome_is
{
	my ($sql, $expected, $name, %params) = @_;
	my (undef, $out, $err) = $node->psql(
		'postgres', $sql,
		on_error_stop => 0,
		extra_params => [ '-v', 'VERBOSITY=verbose', '-U', $params{user} || 'postgres' ]);
	my @messages = map { s/:  / /r } $err =~ /((?:ERROR|WARNING):  [0-9A-Z]{5}(?=:))/g;

	is(join(' ', split(/\n/, $out), @messages), $expected, "$mode, $name") or diag($err);
	like($err, $params{says}, "$mode, $name: it says why") if defined $params{says};
	return;
}

# Restart with this environment variable.  What the command line has stays.
sub restart_with
{
	local $ENV{SCRU64_NODE_SPEC} = $_[0];
	return $node->restart;
}

# Poll until a running session has what the file says.
sub comes_to
{
	my ($session, $sql, $expected, $name) = @_;

	return ok(wait_until(sub { return (try_statement($session, $sql))[0] eq $expected }), "$mode, $name");
}

sub refused
{
	my ($setting, $source) = @_;

	return (says => qr/ERROR:  55P02: parameter "scru64\.$setting" cannot be set for a session\nDETAIL: .*"$source"/);
}

# Nothing is set, or nothing valid.
sub test_invalid
{
	my $ignored = qr/environment variable SCRU64_NODE_SPEC is ignored: invalid node spec "42\/0"/;

	# what is not valid in the file is no value of the session's own
	$node->append_conf('postgresql.conf', "scru64.node_spec = '42/0'\n");
	restart_with('');
	outcome_is($used, $preload ? 'ERROR 55000' : 'WARNING 22023 ERROR 55000', 'invalid in postgresql.conf, an empty variable',
		says => qr/ERROR:  55000: node spec is not set\nDETAIL:  The parameter "scru64\.node_spec" is empty, so .*\nHINT: .*ALTER SYSTEM SET scru64\.node_spec = /);
	$node->adjust_conf('postgresql.conf', 'scru64.node_spec', undef);

	my $log = -s $node->logfile;
	restart_with('42/0');
	outcome_is("LOAD 'scru64'; $used", 'ERROR 55000', 'invalid environment variable: no message before the error', says => qr/DETAIL: .*$ignored/);
	is(scalar(() = slurp_file($node->logfile, $log) =~ /WARNING: .*$ignored/g), $preload ? 1 : 0, "$mode, invalid environment variable: a warning at the start");
	return;
}

# Parallel workers have the same values, even where only they load the library.
sub test_workers
{
	my $version = $node->pg_version;
	my $parallel = 'SET ' . ($version >= 16 ? 'debug_parallel_query' : 'force_parallel_mode') . ' = on; SET parallel_leader_participation = off;';
	my $ask = "$parallel SELECT min(inside()) FROM generate_series(1, 2)";

  SKIP:
	{
		skip 'before 15.9, 16.5 and 17.1, of November 2024, no parallel worker defines a setting', 5
		  if $version < 15.9 || $version >= 16 && $version < 16.5 || $version >= 17 && $version < 17.1;

		outcome_is("$ask; $used; $show", "10/8 $servers 10 $servers", 'in a parallel worker', user => 'app');
		outcome_is("SET scru64.rollback_allowance = '1h'; $ask", 'WARNING 55P02 ERROR 55P02', 'SET, in a parallel worker', user => 'app', refused('rollback_allowance', 'session'));
		outcome_is("$ask; $used", 'WARNING 55P02 ERROR 55P02 WARNING 55P02 ERROR 55P02', 'value of a role, in a parallel worker', user => 'own', refused('rollback_allowance', 'user'));
	}
	return;
}

# The environment variable is the default.  $previous: an ID of node 255, ahead within the allowance
sub test_sources
{
	my ($previous) = @_;
	my $timeout = $preload ? '3s' : '2s';

	restart_with("$previous/8");
	outcome_is("$used; $show; SELECT scru64_generate() > '$previous'; SET scru64.node_spec = '7/8'; $used; RESET scru64.node_spec; $used",
		"255 $servers t 7 255", 'environment variable, previous ID: continues after it');
	if (!$preload)
	{
		# the node of the variable may be a different one than the configured
		local $ENV{PGOPTIONS} = '-c scru64.node_spec=20/8';
		outcome_is($used, 'WARNING 42501 ERROR 55000', 'start-up options give no other node, nor that of the variable', user => 'app',
			says => qr/DETAIL: .*source "client" replaced the server's in this session, and was refused\.\nHINT: .*start-up options.* ALTER ROLE /);
	}

	# reload reaches running sessions
	my $running = open_session($node);
	$running->query_safe($used);
	$node->append_conf('postgresql.conf', "scru64.node_spec = '10/8'\n");
	$node->reload;
	comes_to($running, $used, 10, 'postgresql.conf goes before the environment variable, by reload');
	test_workers() if !$preload;
	# another parameter tells when the file was read
	$node->append_conf('postgresql.conf', "scru64.node_spec = '42/0'\ndeadlock_timeout = '$timeout'\n");
	$node->reload;
	comes_to($running, 'SHOW deadlock_timeout', $timeout, 'the file was read');
	is($running->query_safe($used), '10', "$mode, invalid at reload: the old value stays");
	# the server knows nothing of the library if it is not preloaded, so it has no old value
	outcome_is($used, $preload ? '10' : 'WARNING 22023 ERROR 55000', 'invalid at reload: new session');
	$running->quit;
	$node->adjust_conf('postgresql.conf', 'scru64.node_spec', undef);
	return;
}

$node->start;
# a session that has loaded the library could not set what is the server's
my $previous = $node->safe_psql('postgres', qq(
CREATE ROLE app LOGIN;
CREATE ROLE own LOGIN;
ALTER ROLE own SET scru64.rollback_allowance = '1h';
ALTER ROLE ALL SET scru64.lease_holder = 'all';
CREATE EXTENSION scru64;
-- wrongly marked, so that a worker checks its settings
CREATE FUNCTION inside() RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS \$\$
BEGIN
	PERFORM scru64_watermark();
	RETURN scru64_node_spec() || ' ' || ($show);
END
\$\$;
SELECT scru64_max(now() + '8 s');
));
outcome_is($used, 'WARNING 55P02 ERROR 55P02', 'value of all roles', user => 'app', refused('lease_holder', 'global'));
$node->safe_psql('postgres', 'ALTER ROLE ALL RESET scru64.lease_holder');
foreach my $setting (split(/\n/, $node->safe_psql('postgres', "LOAD 'scru64'; SELECT name, reset_val FROM pg_settings WHERE name LIKE 'scru64.%' AND context = 'sighup'")))
{
	my ($name, $value) = $setting =~ /^scru64\.(.*)\|(.*)/;

	local $ENV{PGOPTIONS} = "-c SCRU64.$name=$value";
	outcome_is($used, 'WARNING 55P02 ERROR 55P02', "start-up option $name", refused($name, 'client'));
}
$node->append_conf(
	'postgresql.conf', qq(
scru64.rollback_allowance = '20s'
scru64.lease_holder = 'here'
));
$node->stop;
command_ok([ 'pg_ctl', '--wait', '--pgdata', $node->data_dir, '--log', $node->logfile, '--options', '-c scru64.lease_ttl=4h', 'start' ],
	'start with a setting on the command line');

test_invalid();
test_sources($previous);

($preload, $mode) = (1, 'preloaded');
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'scru64'\n");
test_invalid();
test_sources($previous);
$node->stop;
done_testing();
