# Where settings may be set, who may set them, and which value counts, with the library
# preloaded and without.

use FindBin;
use lib "$FindBin::RealBin/../lib";
use Scru64Test;

# All nodes of this test have size 8, so that an ID tells which node it is of.
my $used = 'SELECT scru64_node_ctr(scru64_generate()) >> 16';

# Who is not superuser may not load a library by LOAD.
my $load = "SELECT WHERE scru64_node_ctr('000000000000') > 0";

my $node = new_node('main');
$node->append_conf('postgresql.conf', "deadlock_timeout = '1s'");
my ($preload, $mode);

# Give postgresql.conf these lines beyond what every start here has, and start with a
# value of the environment variable or none.
sub start_with
{
	my ($variable, $lines) = @_;

	$node->adjust_conf('postgresql.conf', 'scru64.node_spec', undef);
	$node->append_conf('postgresql.conf', $lines) if defined $lines;

	local %ENV = %ENV;
	$ENV{SCRU64_NODE_SPEC} = $variable if defined $variable;
	$node->start;
	return;
}

# Statements in a new session: the rows, then its messages, for example "13 WARNING
# 42501"; and all that it wrote to stderr.
sub outcome
{
	my ($sql, %params) = @_;
	my $file = $node->basedir . '/statements.sql';

	local $ENV{PGOPTIONS} = "-c $params{options}" if defined $params{options};
	# not by standard input, which nobody reads where there is no connection
	unlink($file);
	append_to_file($file, "$sql\n");
	my ($ret, $out, $err) = $node->psql(
		$params{dbname} || 'postgres', '',
		on_error_stop => 0,
		extra_params => [ '-v', 'VERBOSITY=verbose', '-f', $file, '-U', $params{user} || 'postgres' ]);
	my @messages = $err =~ /((?:ERROR|FATAL|WARNING):  (?:[0-9A-Z]{5}(?=:))?)/g;

	return (join(' ', grep { $_ ne '' } split(/\n/, $out), map { s/: +/ /r =~ s/ $//r } @messages), $err);
}

sub outcome_is
{
	my ($sql, $expected, $name, %params) = @_;
	my ($outcome, $err) = outcome($sql, %params);

	is($outcome, $expected, "$mode, $name") or diag($err);
	like($err, $params{says}, "$mode, $name: it says why") if defined $params{says};
	return;
}

# Poll until a running session uses a node.
sub comes_to_use
{
	my ($session, $expected, $name) = @_;
	my ($out, $err);

	wait_until(sub { ($out, $err) = try_statement($session, $used); return $out eq $expected });
	return is("$out$err", $expected, "$mode, $name");
}

sub reload_until
{
	my ($setting, $value) = @_;

	$node->reload;
	$node->poll_query_until('postgres', "SELECT current_setting('$setting') = '$value'") or die "$setting does not become $value";
	return;
}

# What a superuser does in a session of its own, if it was not for the library.
sub superuser
{
	my ($sql) = @_;

	return $node->safe_psql('postgres', $sql);
}

$node->start;
my $version = superuser('SHOW server_version_num');
superuser(
	q(
CREATE EXTENSION scru64;
CREATE ROLE app LOGIN;
CREATE ROLE trusted LOGIN;
CREATE ROLE own LOGIN;
CREATE ROLE own_here LOGIN;
CREATE ROLE own_node LOGIN;
CREATE DATABASE second;
CREATE DATABASE own;
CREATE DATABASE apps OWNER app;
GRANT SET ON PARAMETER scru64.node_spec, scru64.rollback_allowance TO trusted;
GRANT CREATE ON SCHEMA public TO PUBLIC;
));
foreach my $database ('second', 'apps', 'own')
{
	$node->safe_psql($database, 'CREATE EXTENSION scru64; GRANT CREATE ON SCHEMA public TO PUBLIC');
}
# a session that has loaded the library could not do this
superuser(
	q(
ALTER ROLE own SET scru64.rollback_allowance = '1h';
ALTER ROLE own_node SET scru64.node_spec = '42/0';
ALTER ROLE own_here IN DATABASE postgres SET scru64.lease_within = '3/4';
ALTER DATABASE own SET scru64.lease_ttl = '3h';
));
$node->stop;

my $bad_value = qr/invalid value for parameter "scru64\.node_spec": "42\/0"/;
my $not_set = qr/ERROR:  55000: node spec is not set\nDETAIL: .*\nHINT: .*ALTER SYSTEM SET scru64\.node_spec = /;

#
# The environment variable of the server is the default.
#
sub test_environment
{
	start_with();
	outcome_is($used, 'ERROR 55000', 'nothing is set', says => $not_set);
	outcome_is("ALTER SYSTEM SET scru64.node_spec = '9/8'", $preload || $version >= 170000 ? '' : 'ERROR 42704', 'ALTER SYSTEM in a new session');
	outcome_is("LOAD 'scru64'; ALTER SYSTEM SET scru64.node_spec = '9/8'", '', 'ALTER SYSTEM after LOAD');
	# one more way to load the library
	outcome_is('DROP EXTENSION scru64; CREATE EXTENSION scru64; ALTER SYSTEM RESET scru64.node_spec', '', 'ALTER SYSTEM after CREATE EXTENSION', dbname => 'second');
	# some seconds ahead, which is within the allowance
	my $previous = superuser("SELECT scru64_max(now() + '8 s')");
	$node->stop;

	foreach my $case ([ '0X2B/8', '43' ], [ '42/8', '42' ], [ '', 'ERROR 55000' ], [ "$previous/8", '255' ])
	{
		my ($variable, $expected) = @{$case};

		start_with($variable);
		outcome_is($used, $expected, "environment variable '$variable'");
		outcome_is("SELECT scru64_generate() > '$previous'", 't', 'environment variable, previous ID: continues after it') if $expected eq '255';
		outcome_is("LOAD 'scru64'; SET scru64.node_spec = '7/8'; $used; RESET scru64.node_spec; $used", '7 42', 'environment variable, SET, RESET') if $expected eq '42';
		$node->stop;
	}

	my $log = -s $node->logfile;
	my $ignored = qr/environment variable SCRU64_NODE_SPEC is ignored: invalid node spec "42\/0"/;
	start_with('42/0');
	outcome_is("LOAD 'scru64'; SHOW scru64.node_spec", '', 'invalid environment variable: the setting is empty, no message in every session');
	outcome_is($used, 'ERROR 55000', 'invalid environment variable: who has no node', says => qr/DETAIL: .*$ignored/);
	$node->stop;
	is(scalar(() = slurp_file($node->logfile, $log) =~ /WARNING: .*$ignored/g), $preload ? 1 : 0, "$mode, invalid environment variable: a warning at the start");
	return;
}

sub test_configuration_file
{
	my $log = -s $node->logfile;

	start_with('42/8', "scru64.node_spec = '10/8'\n");
	outcome_is($used, '10', 'postgresql.conf goes before the environment variable');
	$node->stop;

	start_with(undef, "scru64.node_spec = '42/0'\n");
	outcome_is("LOAD 'scru64'; SHOW scru64.node_spec", $preload ? '' : 'WARNING 22023', 'invalid in postgresql.conf at start: the setting is empty');
	like(slurp_file($node->logfile, $log), $bad_value, "$mode, invalid in postgresql.conf at start: the log says so");
	my $running = open_session($node);
	like((try_statement($running, $used))[1], qr/ERROR:  55000/, "$mode, invalid in postgresql.conf at start: no ID");

	# reload reaches running sessions
	foreach my $n (11, 12)
	{
		$node->adjust_conf('postgresql.conf', 'scru64.node_spec', "'$n/8'");
		$node->reload;
		comes_to_use($running, $n, "running session, node $n by reload");
		outcome_is($used, $n, 'new session after reload');
	}
	# an invalid value: another parameter in the file tells when it was read
	$log = -s $node->logfile;
	$node->adjust_conf('postgresql.conf', 'scru64.node_spec', "'42/0'");
	$node->adjust_conf('postgresql.conf', 'deadlock_timeout', "'2s'");
	reload_until('deadlock_timeout', '2s');
	is($running->query_safe($used), '12', "$mode, invalid in postgresql.conf at reload: the old value stays");
	# the server knows nothing of the library if it is not preloaded, so it has no old value
	outcome_is($used, $preload ? '12' : 'WARNING 22023 ERROR 55000', 'invalid in postgresql.conf at reload: new session');
	like(slurp_file($node->logfile, $log), qr/$bad_value.*node_id_size, after the slash, must be between 1 and 23/s, "$mode, invalid in postgresql.conf at reload: the log says so, and why");
	$node->adjust_conf('postgresql.conf', 'deadlock_timeout', "'1s'");
	$running->quit;
	$node->stop;
	return;
}

# Each goes before those above: for whom it is, and for whom it is not, who keeps what
# was before.
my @levels = (
	[ 'SYSTEM', {}, undef ],
	[ 'DATABASE second', { dbname => 'second' }, {} ],
	[ 'ROLE app', { dbname => 'second', user => 'app' }, { dbname => 'second' } ],
	[ 'ROLE app IN DATABASE second', { dbname => 'second', user => 'app' }, { user => 'app' } ]);

sub test_levels
{
	my $n = 13;

	start_with('42/8', "scru64.node_spec = '10/8'\n");
	foreach my $level (@levels)
	{
		my ($where, $who, $not) = @{$level};

		superuser("LOAD 'scru64'; ALTER $where SET scru64.node_spec = '$n/8'");
		outcome_is("LOAD 'scru64'; ALTER $where SET scru64.node_spec = '42/0'", 'ERROR 22023', "ALTER $where, invalid", says => $bad_value);
		reload_until('scru64.node_spec', "$n/8") if $where eq 'SYSTEM';
		outcome_is($used, $n, "ALTER $where goes before what is above", %{$who});
		outcome_is($used, $n - 1, "ALTER $where is not for others", %{$not}) if defined $not;
		$n++;
	}
	outcome_is("LOAD 'scru64'; $used; SET scru64.node_spec = '18/8'; $used; RESET scru64.node_spec; $used",
		'17 18 17', 'PGOPTIONS, and SET before that', dbname => 'second', options => 'scru64.node_spec=17/8');
	superuser("ALTER DATABASE second RESET ALL; ALTER ROLE app RESET ALL; ALTER ROLE app IN DATABASE second RESET ALL");

	# the state of a node is one for all databases
	my $generate = "LOAD 'scru64'; SET scru64.node_spec = '19/8'; SELECT scru64_generate()";
	my ($first) = outcome($generate);
	my ($second) = outcome($generate, dbname => 'second');
	is(superuser("SELECT '$first'::scru64 < '$second'::scru64"), 't', "$mode, databases share the node");
	return;
}

# Who chooses the node, and how: what happens in that session, which then makes an ID, to
# nobody in particular, to whom a superuser has granted it, and to a superuser; and which
# node a new session has then.  Refused: not by SET alone before the library is loaded,
# but when it is.
my $function = q(CREATE FUNCTION cheat() RETURNS integer LANGUAGE sql SET scru64.node_spec = '20/8'
	AS 'SELECT scru64_node_ctr(scru64_generate()) >> 16'; SELECT cheat(); DROP FUNCTION IF EXISTS cheat());
my @ways = (
	[ "SET scru64.node_spec = '20/8'", [ '13 REFUSED 42501', '20', '20' ], [ 13, 13, 13 ] ],
	[ "SELECT WHERE set_config('scru64.node_spec', '20/8', false) = ''", [ '13 REFUSED 42501', '20', '20' ], [ 13, 13, 13 ] ],
	[ "ALTER ROLE CURRENT_USER SET scru64.node_spec = '20/8'", [ '13 ERROR 42501', '13', '13' ], [ 13, 20, 20 ] ],
	[ "ALTER DATABASE apps SET scru64.node_spec = '20/8'", [ '13 ERROR 42501', '13 ERROR 42501', '13' ], [ 13, 13, 20 ] ],
	[ "$load; ALTER SYSTEM SET scru64.node_spec = '20/8'", [ '13 ERROR 42501', '13 ERROR 42501', '13' ], [ 13, 13, 13 ] ],
	[ "$load; RESET scru64.node_spec", [ '13 ERROR 42501', '13', '13' ], [ 13, 13, 13 ] ],
	[ $function, [ '13 ERROR 42501 ERROR 42883', '20 13', '20 13' ], [ 13, 13, 13 ] ]);

sub test_who
{
	foreach my $loaded (0, 1)
	{
		my $when = $loaded ? 'after loading' : 'before loading';

		foreach my $way (@ways)
		{
			my ($sql, $in_session, $in_next) = @{$way};
			my @users = ('app', 'trusted', 'postgres');

			foreach my $i (0 .. $#users)
			{
				my $expected = $in_session->[$i];
				my @who = (user => $users[$i], dbname => 'apps');
				my $name = "$when, $users[$i]: " . substr($sql, 0, 40);

				$expected =~ s/REFUSED/$preload || $loaded ? 'ERROR' : 'WARNING'/e;
				outcome_is(($loaded ? "$load; " : '') . "$sql; $used", $expected, $name, @who);
				outcome_is($used, $in_next->[$i], "$name, then", @who);
				superuser(
					"LOAD 'scru64'; ALTER ROLE $users[$i] RESET ALL; ALTER DATABASE apps RESET ALL; ALTER SYSTEM SET scru64.node_spec = '13/8'");
			}
		}
	}
	my @start_up = (options => 'scru64.node_spec=20/8');
	outcome_is($used, '20', 'PGOPTIONS after GRANT SET ON PARAMETER', user => 'trusted', @start_up);
	outcome_is($used, $preload ? 'FATAL' : 'WARNING 42501 ERROR 55000', 'PGOPTIONS gives no other node', user => 'app', @start_up,
		says => qr/permission denied to set parameter "scru64\.node_spec"/);
	return if $preload;

	# The server's value is lost where nothing is preloaded: until a reload.
	my $refused = sub { return qr/55000: node spec is not set\nDETAIL: .*source "$_[0]" replaced the server's in this session, and was refused\.\nHINT: .*start-up options.* ALTER ROLE / };
	outcome_is($used, 'WARNING 42501 ERROR 55000', 'PGOPTIONS: the error says so', user => 'app', @start_up, says => $refused->('client'));
	outcome_is($used, 'WARNING 22023 ERROR 55000', 'ALTER ROLE before loading, invalid', user => 'own_node', says => $refused->('user'));
	# The right counts when the value is set, not when it is used.
	outcome_is("ALTER ROLE CURRENT_USER SET scru64.node_spec = '20/8'", '', 'ALTER ROLE before loading', user => 'trusted');
	superuser('REVOKE SET ON PARAMETER scru64.node_spec FROM trusted');
	outcome_is($used, '20', 'ALTER ROLE before loading, REVOKE', user => 'trusted');
	superuser('ALTER ROLE trusted RESET ALL; GRANT SET ON PARAMETER scru64.node_spec TO trusted');
	return;
}

# What the server's configuration says, and what others would like to have in their
# sessions.
my $show = q(SELECT current_setting('scru64.rollback_allowance'), current_setting('scru64.lease_ttl'), current_setting('scru64.lease_holder'));
my $servers = "14 2s|2h|here";
my %own_values = (
	rollback_allowance => '1h',
	realm => 'host=/nowhere',
	realm_id => '00000000-0000-0000-0000-000000000000',
	lease_node_id_size => '10',
	lease_node_id_size_min => '9',
	lease_ttl => '3h',
	lease_within => '3/4',
	lease_holder => 'me');

# Sessions with a value of their own generate nothing, and can do all else.
sub refused
{
	my ($setting, $source, $name, %params) = @_;

	outcome_is("SELECT 'before'; $used; SELECT 'then'; SELECT scru64_min(now()) > '000000000000'; $used; SELECT 'after'",
		'before then t after WARNING 55P02 ERROR 55P02 ERROR 55P02', "$name: refused where it generates, each time", %params,
		says => qr/ERROR:  55P02: parameter "scru64\.$setting" cannot be set for a session\nDETAIL:  It is the same for all sessions of the server, but this one had a value from source "$source"\.\nHINT:  .*RESET/);
	return;
}

#
# What is the server's is the same for all sessions, whoever they belong to.
#
sub test_servers_settings
{
	superuser("LOAD 'scru64'; ALTER SYSTEM RESET scru64.node_spec");
	$node->append_conf('postgresql.conf', "scru64.node_spec = '14/8'\nscru64.rollback_allowance = '2s'\nscru64.lease_ttl = '2h'\nscru64.lease_holder = 'here'\n");
	$node->restart;
	# with the larger allowance of before, the ceiling is too far ahead for this one
	superuser('SELECT scru64_set_ceiling()');
	outcome_is("$used; $show", $servers, 'a user', user => 'app');

	foreach my $user ('postgres', 'app', 'trusted')
	{
		foreach my $name (sort keys %own_values)
		{
			my $set = "SET scru64.$name = '$own_values{$name}'";
			my @start_up = (user => $user, options => "scru64.$name=$own_values{$name}");
			my $refused = $preload ? 'ERROR' : 'WARNING';

			outcome_is("$used; $set; $show", "$servers ERROR 55P02", "$user: $set", user => $user);
			outcome_is("$set; $used; $show", "$servers $refused 55P02", "$user: $set, before loading", user => $user);
			$preload ? outcome_is($show, 'FATAL', "$user: PGOPTIONS, scru64.$name", @start_up, says => qr/"scru64\.$name" cannot be changed now/) :
			  refused($name, 'client', "$user: PGOPTIONS, scru64.$name", @start_up);
		}
	}
	foreach my $case (
		[ 'rollback_allowance', 'user', user => 'own' ],
		[ 'lease_within', 'database user', user => 'own_here' ],
		[ 'lease_ttl', 'database', dbname => 'own', user => 'app' ])
	{
		my ($name, $source, %params) = @{$case};
		my $what = "value of a $source from before the library";

		$preload ? outcome_is("$used; $show", "$servers WARNING", $what, %params, says => qr/"scru64\.$name" cannot be changed now/) :
		  refused($name, $source, $what, %params);
	}
	# reading, writing and looking after tables go on
	outcome_is(
		"CREATE TABLE kept (id scru64 PRIMARY KEY); INSERT INTO kept SELECT n::scru64 FROM generate_series(1, 1000::bigint) n; VACUUM ANALYZE kept; SELECT count(*) FROM kept WHERE id > '000000000000'; DROP TABLE kept",
		$preload ? '1000 WARNING' : '1000 WARNING 55P02', 'value of a database: its tables can be used', dbname => 'own');
	outcome_is("$used; $show", $servers, 'value of a database user: not in another database', dbname => 'second', user => 'own_here');

	foreach my $whose ('ROLE app', 'ROLE ALL', 'DATABASE apps')
	{
		outcome_is("LOAD 'scru64'; ALTER $whose SET scru64.lease_ttl = '3h'", 'ERROR 55P02', "ALTER $whose after loading");
		next if $whose eq 'ROLE ALL';
		outcome_is("ALTER $whose SET scru64.lease_ttl = '3h'", $preload ? 'ERROR 55P02' : 'ERROR 42501', "ALTER $whose by app", user => 'app');
	}
	outcome_is("ALTER ROLE trusted SET scru64.rollback_allowance = '1h'", $preload ? 'ERROR 55P02' : '', 'ALTER ROLE after GRANT SET ON PARAMETER', user => 'trusted');
	return;
}

# What is possible where the library is loaded later
sub test_before_loading
{
	# that hurts nobody else
	refused('rollback_allowance', 'user', 'ALTER ROLE after GRANT SET ON PARAMETER', user => 'trusted');
	outcome_is("$used; $show", $servers, 'ALTER ROLE after GRANT SET ON PARAMETER, another role', user => 'app');
	# a superuser can shut out all, and let them in again
	superuser("ALTER ROLE ALL SET scru64.lease_holder = 'all'");
	refused('lease_holder', 'global', 'ALTER ROLE ALL', user => 'app');
	superuser('ALTER ROLE ALL RESET scru64.lease_holder; ALTER ROLE trusted RESET ALL');
	outcome_is("$used; $show", $servers, 'ALTER ROLE RESET', user => 'trusted');

	# values that a session sets before it loads the library
	foreach my $set (
		"SET scru64.rollback_allowance = '1h'",
		"SET SCRU64.Rollback_Allowance = '2s'",
		"DO \$\$BEGIN PERFORM set_config('scru64.rollback_allowance', '1h', false); END\$\$",
		"BEGIN; SET scru64.rollback_allowance = '1h'; SET LOCAL scru64.rollback_allowance = '2h'; COMMIT")
	{
		outcome_is("$set; $used; $show", "$servers WARNING 55P02", $set, user => 'app');
		outcome_is("$set; $_; $used; $show", $servers, "$set; $_", user => 'app') foreach ('RESET scru64.rollback_allowance', 'RESET ALL', 'DISCARD ALL');
	}
	foreach my $set ('SET', 'SET LOCAL')
	{
		outcome_is("BEGIN; $set scru64.rollback_allowance = '1h'; $used; ROLLBACK; $used; $show", "14 $servers WARNING 55P02", "$set, ROLLBACK", user => 'app');
	}
	outcome_is("SET scru64.node_spec = '42/0'; $used", '14 WARNING 22023', 'SET, invalid');

	# the SET clause of a function
	my $cheat = q(CREATE FUNCTION cheat() RETURNS text LANGUAGE plpgsql SET scru64.rollback_allowance = '1h' AS 'BEGIN RETURN scru64_generate() > ''000000000000''; END');
	outcome_is($cheat, 'ERROR 42501', "a function's SET by app", user => 'app');
	superuser($cheat);
	outcome_is("SELECT cheat(); $used; $show; SELECT cheat()", "true $servers WARNING 55P02 ERROR 55P02", "a function's SET has no effect", user => 'app');
	superuser('DROP FUNCTION cheat()');

	test_workers();
	return;
}

# Parallel workers go by the same, even where only they load the library.
sub test_workers
{
	my $parallel = 'SET ' . ($version >= 160000 ? 'debug_parallel_query' : 'force_parallel_mode') . ' = on; SET parallel_leader_participation = off;';
	my $ask = "$parallel SELECT count(inside()) FROM generate_series(1, 2)";

	# the first use of the library may be in a parallel plan
	outcome_is("$parallel SELECT min(scru64_node_spec()) FROM generate_series(1, 2); SHOW scru64.node_spec", '14/8 14/8', 'loaded in a parallel query: the settings are there', user => 'app');

  SKIP:
	{
		skip 'before 15.9, 16.5 and 17.1, of November 2024, no parallel worker defines a setting', 5
		  if $version % 10000 < ({ 15 => 9, 16 => 5, 17 => 1 }->{ int($version / 10000) } // 0);

		# wrongly marked, so that a worker checks its settings
		superuser("CREATE FUNCTION inside() RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS 'BEGIN RETURN scru64_watermark(); END'");
		outcome_is("$ask; $used; $show", "2 $servers", 'in a parallel worker', user => 'app');
		outcome_is("SET scru64.rollback_allowance = '1h'; $ask", 'WARNING 55P02 ERROR 55P02', 'SET, in a parallel worker', user => 'app', says => qr/cannot be set for a session.*source "session".*CONTEXT:  .*parallel worker/s);
		outcome_is($ask, 'WARNING 55P02 ERROR 55P02', 'PGOPTIONS, in a parallel worker', user => 'app', options => 'scru64.rollback_allowance=1h', says => qr/cannot be set for a session.*source "client".*CONTEXT:  .*parallel worker/s);
		superuser('DROP FUNCTION inside()');
	}
	return;
}

# What is not valid in postgresql.conf is no session's own value; nor is the command line.
sub test_other_sources
{
	$node->adjust_conf('postgresql.conf', 'scru64.lease_ttl', "'1s'");
	$node->restart;
	outcome_is("LOAD 'scru64'; SET client_min_messages = error; $used; SHOW scru64.lease_ttl", $preload ? '14 1h' : '14 1h WARNING 22023', 'invalid in postgresql.conf: the default');
	$node->stop;

	my @pg_ctl = ('pg_ctl', '--wait', '--pgdata', $node->data_dir, '--log', $node->logfile);
	command_ok([ @pg_ctl, '--options', '-c scru64.lease_ttl=4h', 'start' ], "$mode, start with a setting on the command line");
	outcome_is("$used; SHOW scru64.lease_ttl", '14 4h', 'on the command line of the server', user => 'app');
	command_ok([ @pg_ctl, '--mode=fast', 'stop' ], "$mode, stop");

	$node->adjust_conf('postgresql.conf', "scru64.$_", undef) foreach ('rollback_allowance', 'lease_ttl', 'lease_holder');
	start_with(undef, "scru64.node_spec = '10/8'\n");
	superuser("LOAD 'scru64'; ALTER SYSTEM SET scru64.node_spec = '13/8'");
	reload_until('scru64.node_spec', '13/8');
	superuser("LOAD 'scru64'; ALTER SYSTEM RESET scru64.node_spec");
	reload_until('scru64.node_spec', '10/8');
	outcome_is($used, '10', 'ALTER SYSTEM RESET leaves postgresql.conf');
	$node->stop;
	return;
}

foreach my $library ('', 'scru64')
{
	$preload = $library ne '';
	$mode = $preload ? 'preloaded' : 'not preloaded';
	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$library'\n");
	test_environment();
	test_configuration_file();
	test_levels();
	test_who();
	test_servers_settings();
	test_before_loading() if !$preload;
	test_other_sources();
}
done_testing();
