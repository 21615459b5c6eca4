# Where scru64.node_spec may be set, who may set it, and which setting counts,
# with the library preloaded and without.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Scru64Test;
use Test::More;
use Time::HiRes qw(usleep);

# All nodes of this test have size 8, so that an ID tells which node it is of.
my $used = 'SELECT scru64_node_ctr(scru64_generate()) >> 16';

my $node = new_node('main');
$node->append_conf(
	'postgresql.conf', q(
shared_preload_libraries = ''
deadlock_timeout = '1s'
));
my $version;

# Give postgresql.conf these lines beyond what every start here has, and start
# with a value of the environment variable or none.
sub start_with
{
	my ($preload, $variable, $lines) = @_;

	$node->adjust_conf('postgresql.conf', 'shared_preload_libraries',
		$preload ? "'scru64'" : "''");
	$node->adjust_conf('postgresql.conf', 'scru64.node_spec', undef);
	$node->append_conf('postgresql.conf', $lines) if defined $lines;

	local %ENV = %ENV;
	$ENV{SCRU64_NODE_SPEC} = $variable if defined $variable;
	$node->start;
	return;
}

# Statements in a new session: what they wrote to stdout and to stderr, in full.
sub new_session
{
	my ($sql, %params) = @_;
	my $user = $params{user};
	my $file = $node->basedir . '/statements.sql';

	# not by standard input, which nobody reads where there is no connection
	open(my $statements, '>', $file) or die "could not write $file: $!";
	print $statements "$sql\n";
	close $statements;
	my ($ret, $out, $err) = $node->psql(
		$params{dbname} || 'postgres', '',
		on_error_stop => 0,
		extra_params =>
		  [ '-v', 'VERBOSITY=verbose', '-f', $file, defined $user ? ('-U', $user) : () ]);

	return ($out, $err);
}

# Which node a new session uses, without a message.
sub uses
{
	my ($expected, $name, %params) = @_;
	my ($out, $err) = new_session($used, %params);

	is($out, $expected, $name);
	is($err, '', "$name: no message");
	return;
}

sub not_set
{
	my ($name) = @_;
	my ($out, $err) = new_session($used);

	is($out, '', $name);
	like(
		$err,
		qr/ERROR:  55000: node spec is not set\nDETAIL: .*\nHINT: .*ALTER SYSTEM SET scru64\.node_spec = /,
		"$name: error 55000 with the ALTER SYSTEM line");
	return;
}

# Poll until a running session uses a node.
sub poll_session
{
	my ($session, $expected) = @_;

	for my $attempt (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		my ($out, $err) = try_statement($session, $used);

		return 1 if $out eq $expected && $err eq '';
		usleep(100_000);
	}
	return 0;
}

# Start once to make the objects.
start_with(0);
$version = $node->safe_psql('postgres', 'SHOW server_version_num');
$node->safe_psql(
	'postgres', q(
CREATE EXTENSION scru64;
CREATE DATABASE second;
CREATE ROLE app LOGIN;
CREATE ROLE trusted LOGIN;
CREATE DATABASE apps OWNER app;
GRANT SET ON PARAMETER scru64.node_spec TO trusted;
GRANT CREATE ON SCHEMA public TO app;
));
$node->safe_psql($_, 'CREATE EXTENSION scru64') foreach ('second', 'apps');
add_helpers($node);
$node->stop;

my $bad_value = qr/invalid value for parameter "scru64\.node_spec": "42\/0"/;
my $denied =
  qr/ERROR:  42501: permission denied to set parameter "scru64\.node_spec"/;
my $denied_at_load =
  qr/WARNING:  42501: permission denied to set parameter "scru64\.node_spec"/;

foreach my $preload (0, 1)
{
	my $mode = $preload ? 'preloaded' : 'not preloaded';
	my ($out, $err, $log);

	note "scru64 is $mode";

	#
	# The environment variable of the server is the default.
	#
	start_with($preload);
	is($node->safe_psql('postgres', 'SHOW shared_preload_libraries'),
		$preload ? 'scru64' : '', $mode);
	not_set("$mode, nothing set");
	($out, $err) = new_session("ALTER SYSTEM SET scru64.node_spec = '9/8'");
	if ($preload || $version >= 170000)
	{
		is($err, '', "$mode, ALTER SYSTEM in a new session");
	}
	else
	{
		like(
			$err,
			qr/ERROR:  42704: unrecognized configuration parameter "scru64\.node_spec"/,
			"$mode, ALTER SYSTEM in a new session");
	}
	($out, $err) =
	  new_session("LOAD 'scru64'; ALTER SYSTEM SET scru64.node_spec = '9/8'");
	is($err, '', "$mode, ALTER SYSTEM after LOAD");
	# one more way to load the library
	($out, $err) = new_session(
		"DROP EXTENSION scru64; CREATE EXTENSION scru64; ALTER SYSTEM RESET scru64.node_spec",
		dbname => 'second');
	is($err, '', "$mode, ALTER SYSTEM after CREATE EXTENSION");
	$node->stop;

	start_with($preload, '42/8');
	uses('42', "$mode, environment variable");
	($out, $err) = new_session(
		"LOAD 'scru64'; SET scru64.node_spec = '7/8'; $used; RESET scru64.node_spec; $used"
	);
	is("$out|$err", "7\n42|", "$mode, environment variable, SET, RESET");
	# 5 s ahead, which is within the allowance
	my $previous = $node->safe_psql('postgres',
		q(SELECT ((tick_of(now()) + 20 << 24) + (200 << 16) + 1000)::scru64));
	$node->stop;

	start_with($preload, '0X2B/8');
	uses('43', "$mode, environment variable, hexadecimal");
	$node->stop;

	start_with($preload, "$previous/8");
	is( $node->safe_psql(
			'postgres',
			"SELECT scru64_generate()::bigint - '$previous'::scru64::bigint"),
		'1',
		"$mode, environment variable, previous ID: continues after it");
	# with a node in use, a later one raises it and an earlier one does nothing
	is( $node->safe_psql(
			'postgres', qq(
SET scru64.node_spec = '200/8';
SELECT scru64_generate()::bigint - '$previous'::scru64::bigint;
SELECT ('$previous'::scru64::bigint + 10000)::scru64 || '/8' AS later \\gset
SET scru64.node_spec = :'later';
SELECT scru64_generate()::bigint - '$previous'::scru64::bigint;
SET scru64.node_spec = '$previous/8';
SELECT scru64_generate()::bigint - '$previous'::scru64::bigint;
)),
		"2\n10001\n10002",
		"$mode, previous ID of a node in use: continues after the later one");
	$node->stop;

	$log = -s $node->logfile;
	start_with($preload, '42/0');
	($out, $err) = new_session("LOAD 'scru64'; SHOW scru64.node_spec");
	is($out, '',
		"$mode, invalid environment variable leaves the setting empty");
	my $ignored =
	  qr/environment variable SCRU64_NODE_SPEC is ignored: invalid node spec "42\/0"/;
	unlike($err, $ignored,
		"$mode, invalid environment variable: no message in every session");
	($out, $err) = new_session($used);
	like(
		$err,
		qr/ERROR:  55000: .*\n.*DETAIL: .*$ignored/,
		"$mode, invalid environment variable: who has no node is told");
	my @warnings = slurp_file($node->logfile, $log) =~ /WARNING: .*$ignored/g;
	is(scalar(@warnings), $preload ? 1 : 0,
		"$mode, invalid environment variable: a warning at the start");
	$node->stop;

	start_with($preload, '');
	not_set("$mode, empty environment variable");
	$node->stop;

	#
	# postgresql.conf
	#
	start_with($preload, '42/8', "scru64.node_spec = '10/8'\n");
	uses('10', "$mode, postgresql.conf goes before the environment variable");
	$node->stop;

	$log = -s $node->logfile;
	start_with($preload, undef, "scru64.node_spec = '42/0'\n");
	($out, $err) = new_session("LOAD 'scru64'; SHOW scru64.node_spec");
	is($out, '',
		"$mode, invalid in postgresql.conf at start leaves the setting empty"
	);
	like($preload ? slurp_file($node->logfile, $log) : $err,
		$bad_value, "$mode, invalid in postgresql.conf at start: a warning");
	($out, $err) = new_session($used);
	is($out, '', "$mode, invalid in postgresql.conf at start: no ID");
	like(
		$err,
		qr/ERROR:  55000: node spec is not set/,
		"$mode, invalid in postgresql.conf at start: error 55000");

	# reload reaches running sessions
	my $running = open_session($node);
	($out, $err) = try_statement($running, $used);
	like($err, qr/ERROR:  55000/, "$mode, running session without a node");
	$node->adjust_conf('postgresql.conf', 'scru64.node_spec', "'11/8'");
	$node->reload;
	ok(poll_session($running, '11'),
		"$mode, running session gets a node by reload");
	uses('11', "$mode, new session after reload");
	$node->adjust_conf('postgresql.conf', 'scru64.node_spec', "'12/8'");
	$node->reload;
	ok(poll_session($running, '12'),
		"$mode, running session gets another node by reload");

	# an invalid value: another parameter in the file tells when it was read
	$log = -s $node->logfile;
	$node->adjust_conf('postgresql.conf', 'scru64.node_spec', "'42/0'");
	$node->adjust_conf('postgresql.conf', 'deadlock_timeout', "'2s'");
	$node->reload;
	ok( $node->poll_query_until(
			'postgres', "SELECT current_setting('deadlock_timeout') = '2s'"),
		"$mode, invalid in postgresql.conf at reload: the rest of it counts");
	is($running->query_safe($used),
		'12',
		"$mode, invalid in postgresql.conf at reload: the old value stays");
	if ($preload)
	{
		uses('12',
			"$mode, invalid in postgresql.conf at reload: new session");
	}
	else
	{
		# the server knows nothing of the library, so it has no old value
		($out, $err) = new_session($used);
		like(
			$err,
			qr/WARNING: .*$bad_value.*ERROR:  55000/s,
			"$mode, invalid in postgresql.conf at reload: new session");
	}
	like(slurp_file($node->logfile, $log),
		$bad_value,
		"$mode, invalid in postgresql.conf at reload: the log says so");
	like(
		slurp_file($node->logfile, $log),
		qr/node_id_size, after the slash, must be between 1 and 23/,
		"$mode, invalid in postgresql.conf at reload: the log says why");
	$node->adjust_conf('postgresql.conf', 'deadlock_timeout', "'1s'");
	$running->quit;
	$node->stop;

	#
	# ALTER SYSTEM, ALTER DATABASE, ALTER ROLE: each goes before the one above
	#
	start_with($preload, '42/8', "scru64.node_spec = '10/8'\n");
	($out, $err) = new_session(
		"LOAD 'scru64'; ALTER SYSTEM SET scru64.node_spec = '13/8'");
	is($err, '', "$mode, ALTER SYSTEM");
	$node->reload;
	ok( $node->poll_query_until(
			'postgres', "SELECT current_setting('scru64.node_spec') = '13/8'"
		),
		"$mode, ALTER SYSTEM and reload");
	uses('13', "$mode, ALTER SYSTEM goes before postgresql.conf");
	($out, $err) = new_session(
		"LOAD 'scru64'; ALTER SYSTEM SET scru64.node_spec = '42/0'");
	like(
		$err,
		qr/ERROR:  22023: $bad_value/,
		"$mode, ALTER SYSTEM with an invalid value");

	$node->safe_psql('postgres',
		"ALTER DATABASE second SET scru64.node_spec = '14/8'");
	uses(
		'14',
		"$mode, ALTER DATABASE goes before ALTER SYSTEM",
		dbname => 'second');
	uses('13', "$mode, ALTER DATABASE is for that database only");
	$node->safe_psql('postgres',
		"ALTER ROLE app SET scru64.node_spec = '15/8'");
	uses(
		'15', "$mode, ALTER ROLE by a superuser goes before ALTER DATABASE",
		dbname => 'second',
		user => 'app');
	uses('14', "$mode, ALTER ROLE is for that role only", dbname => 'second');
	$node->safe_psql('postgres',
		"ALTER ROLE app IN DATABASE second SET scru64.node_spec = '16/8'");
	uses(
		'16', "$mode, ALTER ROLE IN DATABASE goes before ALTER ROLE",
		dbname => 'second',
		user => 'app');
	uses(
		'15',
		"$mode, ALTER ROLE IN DATABASE is for that database only",
		user => 'app');
	{
		local $ENV{PGOPTIONS} = '-c scru64.node_spec=17/8';

		uses('17', "$mode, PGOPTIONS of a superuser", dbname => 'second');
		($out, $err) = new_session(
			"LOAD 'scru64'; SET scru64.node_spec = '18/8'; $used; RESET scru64.node_spec; $used"
		);
		is("$out|$err", "18\n17|", "$mode, SET goes before PGOPTIONS");
	}
	foreach my $where ('DATABASE second', 'ROLE app')
	{
		($out, $err) = new_session(
			"LOAD 'scru64'; ALTER $where SET scru64.node_spec = '42/0'");
		like(
			$err,
			qr/ERROR:  22023: $bad_value/,
			"$mode, ALTER $where with an invalid value");
	}
	uses(
		'16', "$mode, invalid values have changed nothing",
		dbname => 'second',
		user => 'app');

	# the state of a node is one for all databases
	my ($first) = new_session(
		"LOAD 'scru64'; SET scru64.node_spec = '19/8'; SELECT scru64_generate()"
	);
	my ($second) = new_session(
		"LOAD 'scru64'; SET scru64.node_spec = '19/8'; SELECT scru64_generate()",
		dbname => 'second');
	is( $node->safe_psql(
			'postgres', "SELECT '$first'::scru64 < '$second'::scru64"),
		't',
		"$mode, databases share the node");

	$node->safe_psql(
		'postgres', q(
ALTER DATABASE second RESET ALL;
ALTER ROLE app RESET ALL;
ALTER ROLE app IN DATABASE second RESET ALL;
));

	#
	# Who is not superuser cannot choose the node, by whatever way.
	#
	foreach my $loaded (0, 1)
	{
		my $load = $loaded ? "SELECT scru64_node_ctr('000000000000');" : '';
		my $when = $loaded ? "$mode, after loading" : "$mode, before loading";
		my $out_loaded = $loaded ? "0\n" : '';

		# without the library, SET makes a placeholder; loading it discards that
		($out, $err) =
		  new_session("$load SET scru64.node_spec = '20/8'; $used",
			user => 'app');
		is($out, "${out_loaded}13", "$when, SET has no effect");
		like(
			$err,
			$preload || $loaded ? qr/^\S+ $denied/ : qr/^\S+ $denied_at_load/,
			"$when, SET is refused");

		($out, $err) =
		  new_session("$load ALTER ROLE app SET scru64.node_spec = '20/8'",
			user => 'app');
		like($err, $denied, "$when, ALTER ROLE is refused");
		($out, $err) = new_session(
			"$load ALTER DATABASE apps SET scru64.node_spec = '20/8'",
			user => 'app',
			dbname => 'apps');
		like($err, $denied, "$when, ALTER DATABASE by its owner is refused");
		uses(
			'13', "$when, ALTER has no effect",
			user => 'app',
			dbname => 'apps');

		($out, $err) = new_session(
			qq($load
CREATE FUNCTION cheat() RETURNS integer LANGUAGE sql
	SET scru64.node_spec = '20/8' AS 'SELECT scru64_node_ctr(scru64_generate()) >> 16';
SELECT cheat();
$used;
DROP FUNCTION cheat();
), user => 'app');
		unlike($out, qr/20/, "$when, a function's SET has no effect");
		like($out, qr/^13$/m, "$when, a function's SET does no harm");
		like(
			$err,
			qr/permission denied to set parameter "scru64\.node_spec"/,
			"$when, a function's SET is refused");

		# whom a superuser has granted it
		($out, $err) =
		  new_session("$load SET scru64.node_spec = '21/8'; $used",
			user => 'trusted');
		is("$out|$err", "${out_loaded}21|",
			"$when, SET after GRANT SET ON PARAMETER");
		($out, $err) = new_session(
			"$load ALTER ROLE trusted SET scru64.node_spec = '22/8'",
			user => 'trusted');
		is($err, '', "$when, ALTER ROLE after GRANT SET ON PARAMETER");
		uses(
			'22',
			"$when, ALTER ROLE after GRANT SET ON PARAMETER has an effect",
			user => 'trusted');
		$node->safe_psql('postgres', 'ALTER ROLE trusted RESET ALL');
	}
	{
		local $ENV{PGOPTIONS} = '-c scru64.node_spec=20/8';

		($out, $err) = new_session($used, user => 'app');
		if ($preload)
		{
			is($out, '', "$mode, PGOPTIONS: no connection");
			like(
				$err,
				qr/FATAL: .*permission denied to set parameter "scru64\.node_spec"/,
				"$mode, PGOPTIONS is refused");
		}
		else
		{
			# what the file says is lost on the way, but the user must not get
			# another node by that
			like($out, qr/^(13)?$/, "$mode, PGOPTIONS gives no other node");
			like($err, $denied_at_load, "$mode, PGOPTIONS is refused");
		}
		uses(
			'20',
			"$mode, PGOPTIONS after GRANT SET ON PARAMETER",
			user => 'trusted');
	}

	#
	# The allowance is the server's, and nobody's in a session.
	#
	my $show = 'SHOW scru64.rollback_allowance';
	foreach my $user (undef, 'trusted')
	{
		($out, $err) = new_session(
			"SELECT scru64_node_ctr('000000000000'); SET scru64.rollback_allowance = '1h'; $show",
			user => $user);
		is($out, "0\n10s",
			"$mode, SET scru64.rollback_allowance has no effect");
		like(
			$err,
			qr/ERROR:  55P02: /,
			"$mode, SET scru64.rollback_allowance is refused");

		local $ENV{PGOPTIONS} = '-c scru64.rollback_allowance=1h';
		($out, $err) =
		  new_session("SELECT scru64_node_ctr('000000000000'); $show",
			user => $user);
		unlike($out, qr/1h/,
			"$mode, scru64.rollback_allowance in PGOPTIONS has no effect");
		like(
			$err,
			qr/scru64\.rollback_allowance/,
			"$mode, scru64.rollback_allowance in PGOPTIONS is refused");
	}

	# Options of a client hide what the configuration says, but only until the
	# library is loaded; and parallel workers go by the same.
	if (!$preload)
	{
		my $farthest =
		  q(SELECT max(tick_of(last_id)) - tick_of(clock_timestamp()) FROM scru64_generators WHERE node_id_size = 23);
		my $give = 'SELECT scru64_generate() FROM generate_series(1, 20)';
		my $in_worker =
		  'SET force_parallel_mode = on; SET debug_parallel_query = on;';

		$node->append_conf('postgresql.conf',
			"scru64.rollback_allowance = '1s'\nscru64.node_spec = '3/23'\n");
		$node->safe_psql('postgres',
			"LOAD 'scru64'; ALTER SYSTEM RESET scru64.node_spec");
		$node->restart;
		# with the larger allowance of before, the ceiling is too far ahead for this one
		$node->safe_psql('postgres', 'SELECT scru64_set_ceiling()');
		foreach my $sql ("$give; $show", "$in_worker $give; $show")
		{
			{
				local $ENV{PGOPTIONS} = '-c scru64.rollback_allowance=1h';
				($out, $err) = new_session($sql, user => 'app');
			}
			like($out, qr/^(\w{12}\n){20}1s$/,
				"$mode, scru64.rollback_allowance in PGOPTIONS: the session has the server's");
			cmp_ok($node->safe_psql('postgres', $farthest),
				'<=', 3, "$mode, and does not run the node ahead");
		}

		# the first use of the library may be in a parallel plan
		($out, $err) = new_session(
			"$in_worker SELECT count(scru64_generate()::text) FROM generate_series(1, 2); SHOW scru64.node_spec"
		);
		is($out, "2\n3/23", "$mode, loaded in a parallel query: the settings are there");
		$node->adjust_conf('postgresql.conf', 'scru64.rollback_allowance', undef);
		$node->adjust_conf('postgresql.conf', 'scru64.node_spec', "'10/8'");
		$node->restart;
	}

	# a parameter that does not exist is not taken for one of somebody else's
	($out, $err) = new_session("LOAD 'scru64'; SET scru64.node_spek = '1/8'");
	like(
		$err,
		qr/ERROR: .*scru64\.node_spek/,
		"$mode, a misspelled parameter is an error");

	$node->safe_psql('postgres',
		"LOAD 'scru64'; ALTER SYSTEM RESET scru64.node_spec");
	$node->reload;
	ok( $node->poll_query_until(
			'postgres', "SELECT current_setting('scru64.node_spec') = '10/8'"
		),
		"$mode, ALTER SYSTEM RESET and reload");
	uses('10', "$mode, ALTER SYSTEM RESET leaves postgresql.conf");
	$node->stop;
}

done_testing();
