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

# What the server's configuration says, and what others would like to have in
# their sessions.
my $servers_lines = q(
scru64.node_spec = '14/8'
scru64.rollback_allowance = '2s'
scru64.lease_ttl = '2h'
scru64.lease_holder = 'here'
);
my $servers_values = '2s|2h|here';
my $show =
  q(SELECT current_setting('scru64.rollback_allowance'), current_setting('scru64.lease_ttl'), current_setting('scru64.lease_holder'));
my %own_values = (
	rollback_allowance => '1h',
	realm => 'host=/nowhere',
	realm_id => '00000000-0000-0000-0000-000000000000',
	lease_node_id_size => '10',
	lease_node_id_size_min => '9',
	lease_ttl => '3h',
	lease_within => '3/4',
	lease_holder => 'me');
my $cannot_now_warning =
  qr/WARNING:  (?:55P02: )?parameter "scru64\.\w+" cannot be changed now/;
my $cannot_now =
  qr/(?:ERROR|FATAL):  (?:55P02: )?parameter "scru64\.\w+" cannot be changed now/;

# A session has the server's values, and no message but a given one.
sub has_servers_values
{
	my ($name, %params) = @_;
	my ($out, $err) = new_session("$used; $show", %params);

	is($out, "14\n$servers_values", "$name: the server's values");
	like($err, $params{message} || qr/^$/, "$name: the messages");
	return;
}

# Sessions with a value of their own generate nothing, and can do all else.
sub refused
{
	my ($name, $setting, $source, %params) = @_;
	my ($out, $err) = new_session(
		"SELECT 'before'; $used; SELECT 'then'; SELECT scru64_min(now()) > '000000000000'; $used; SELECT 'after'",
		%params);
	my $refusal =
	  qr/ERROR:  55P02: parameter "scru64\.$setting" cannot be set for a session\nDETAIL:  It is the same for all sessions of the server, but this one had a value from source "$source"\.\nHINT:  .*RESET/;

	is($out, "before\nthen\nt\nafter", "$name: refused where it generates");
	is(scalar(() = $err =~ /$refusal/g), 2, "$name: refused each time");
	is(scalar(() = $err =~ /ERROR|WARNING/g), 3, "$name: no other message");
	like($err, $cannot_now_warning, "$name: but a WARNING");
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
CREATE DATABASE own;
CREATE ROLE own LOGIN;
CREATE ROLE own_here LOGIN;
CREATE ROLE app LOGIN;
CREATE ROLE trusted LOGIN;
CREATE DATABASE apps OWNER app;
GRANT SET ON PARAMETER scru64.node_spec, scru64.rollback_allowance TO trusted;
GRANT CREATE ON SCHEMA public TO app;
));
$node->safe_psql($_, 'CREATE EXTENSION scru64') foreach ('second', 'apps', 'own');
add_helpers($node);
# a session that has loaded the library could not do this
$node->safe_psql(
	'postgres', q(
ALTER ROLE own SET scru64.rollback_allowance = '1h';
ALTER ROLE own_here IN DATABASE postgres SET scru64.lease_within = '3/4';
ALTER DATABASE own SET scru64.lease_ttl = '3h';
));
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

	start_with($preload, '0X2B/8');
	uses('43', "$mode, environment variable, hexadecimal");
	$node->stop;

	start_with($preload, '42/8');
	uses('42', "$mode, environment variable");
	($out, $err) = new_session(
		"LOAD 'scru64'; SET scru64.node_spec = '7/8'; $used; RESET scru64.node_spec; $used"
	);
	is("$out|$err", "7\n42|", "$mode, environment variable, SET, RESET");
	# half an hour ahead, which is within the allowance, however slow the machine is
	my $previous = $node->safe_psql('postgres',
		q(SELECT ((tick_of(now() + interval '30 minutes') << 24) + (200 << 16) + 1000)::scru64));
	$node->stop;

	start_with($preload, "$previous/8", "scru64.rollback_allowance = '1h'\n");
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
	$node->safe_psql('postgres', 'SELECT scru64_set_ceiling()');
	$node->stop;
	$node->adjust_conf('postgresql.conf', 'scru64.rollback_allowance', undef);

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
	# What is the server's is the same for all sessions, whoever they belong to.
	#
	$node->safe_psql('postgres',
		"LOAD 'scru64'; ALTER SYSTEM RESET scru64.node_spec");
	$node->append_conf('postgresql.conf', $servers_lines);
	$node->restart;
	# with the larger allowance of before, the ceiling is too far ahead for this one
	$node->safe_psql('postgres', 'SELECT scru64_set_ceiling()');
	has_servers_values("$mode, a superuser");
	has_servers_values("$mode, a user", user => 'app');

	foreach my $user ('postgres', 'app', 'trusted')
	{
		foreach my $name (sort keys %own_values)
		{
			my $what = "$mode, scru64.$name of $user";

			($out, $err) = new_session(
				"$used; SET scru64.$name = '$own_values{$name}'; $show",
				user => $user);
			is($out, "14\n$servers_values", "$what, SET has no effect");
			like($err, $cannot_now, "$what, SET is refused");

			local $ENV{PGOPTIONS} = "-c scru64.$name=$own_values{$name}";
			if ($preload)
			{
				($out, $err) = new_session($show, user => $user);
				is($out, '', "$what, PGOPTIONS: no connection");
				like($err, $cannot_now, "$what, PGOPTIONS is refused");
			}
			else
			{
				refused("$what, PGOPTIONS", $name, 'client', user => $user);
			}
		}
	}

	foreach my $case (
		[ 'rollback_allowance', 'user', user => 'own' ],
		[ 'lease_within', 'database user', user => 'own_here' ],
		[ 'lease_ttl', 'database', dbname => 'own', user => 'app' ])
	{
		my ($name, $source, %params) = @{$case};
		my $what = "$mode, value of a $source from before the library";

		if ($preload)
		{
			has_servers_values($what, %params,
				message =>
				  qr/^\S*WARNING: .*"scru64\.$name" cannot be changed now$/);
		}
		else
		{
			refused($what, $name, $source, %params);
		}
	}
	# reading, writing and looking after tables go on
	($out, $err) = new_session(
		"CREATE TABLE kept (id scru64 PRIMARY KEY); INSERT INTO kept SELECT n::scru64 FROM generate_series(1, 1000::bigint) n; VACUUM ANALYZE kept; SELECT count(*) FROM kept WHERE id > '000000000000'; DROP TABLE kept",
		dbname => 'own');
	is($out, '1000', "$mode, value of a database: its tables can be used");
	unlike($err, qr/ERROR/, "$mode, value of a database: no error");
	has_servers_values(
		"$mode, value of a database user: not in another database",
		dbname => 'second',
		user => 'own_here');

	foreach my $whose ('ROLE app', 'ROLE ALL', 'DATABASE apps')
	{
		($out, $err) = new_session(
			"LOAD 'scru64'; ALTER $whose SET scru64.lease_ttl = '3h'");
		like($err, $cannot_now, "$mode, ALTER $whose after loading");
	}
	foreach my $whose ('ROLE app', 'DATABASE apps')
	{
		($out, $err) = new_session("ALTER $whose SET scru64.lease_ttl = '3h'",
			user => 'app');
		like($err, $preload ? $cannot_now : qr/ERROR:  42501: /,
			"$mode, ALTER $whose by app");
	}
	($out, $err) = new_session(
		"ALTER ROLE trusted SET scru64.rollback_allowance = '1h'",
		user => 'trusted');
	like($err, $preload ? $cannot_now : qr/^$/,
		"$mode, ALTER ROLE after GRANT SET ON PARAMETER");

	if (!$preload)
	{
		# that hurts nobody else
		refused("$mode, ALTER ROLE after GRANT SET ON PARAMETER",
			'rollback_allowance', 'user', user => 'trusted');
		has_servers_values("$mode, ALTER ROLE after GRANT SET ON PARAMETER, another role",
			user => 'app');

		# a superuser can shut out all, and let them in again
		$node->safe_psql('postgres',
			"ALTER ROLE ALL SET scru64.lease_holder = 'all'");
		refused("$mode, ALTER ROLE ALL", 'lease_holder', 'global',
			user => 'app');
		$node->safe_psql('postgres',
			"ALTER ROLE ALL RESET scru64.lease_holder; ALTER ROLE trusted RESET ALL");
		has_servers_values("$mode, ALTER ROLE RESET", user => 'trusted');

		# values that a session sets before it loads the library
		foreach my $set (
			"SET scru64.rollback_allowance = '1h';",
			"SET SCRU64.Rollback_Allowance = '2s';",
			"DO \$\$BEGIN PERFORM set_config('scru64.rollback_allowance', '1h', false); END\$\$;",
			"BEGIN; SET scru64.rollback_allowance = '1h'; SET LOCAL scru64.rollback_allowance = '2h'; COMMIT;")
		{
			($out, $err) = new_session("$set $used; $show", user => 'app');
			is($out, "14\n$servers_values", "$mode, $set: the server's values");
			like($err, $cannot_now_warning, "$mode, $set: a WARNING");
			foreach my $reset ('RESET scru64.rollback_allowance',
				'RESET ALL', 'DISCARD ALL')
			{
				($out, $err) =
				  new_session("$set $reset; $used; $show", user => 'app');
				is("$out|$err", "14\n$servers_values|", "$mode, $set $reset");
			}
		}
		foreach my $set ("SET scru64.rollback_allowance = '1h'",
			"SET LOCAL scru64.rollback_allowance = '1h'")
		{
			($out, $err) = new_session("BEGIN; $set; $used; ROLLBACK; $used; $show",
				user => 'app');
			is($out, "14\n14\n$servers_values",
				"$mode, $set, ROLLBACK: the server's values");
			like($err, $cannot_now_warning, "$mode, $set, ROLLBACK: a WARNING");
		}

		# the SET clause of a function
		my $cheat = q(CREATE FUNCTION cheat() RETURNS text LANGUAGE plpgsql
	SET scru64.rollback_allowance = '1h' AS 'BEGIN RETURN scru64_generate(); END');
		($out, $err) = new_session($cheat, user => 'app');
		like($err, qr/ERROR:  42501: /, "$mode, a function's SET by app");
		$node->safe_psql('postgres', $cheat);
		($out, $err) = new_session(
			"SELECT cheat(); $used; $show; SELECT cheat(); $show",
			user => 'app');
		like($out, qr/^\w{12}\n14\n\Q$servers_values\E\n\Q$servers_values\E$/,
			"$mode, a function's SET has no effect");
		like($err, qr/$cannot_now_warning.*$cannot_now/s,
			"$mode, a function's SET is refused");
		$node->safe_psql('postgres', 'DROP FUNCTION cheat()');

		# parallel workers go by the same, even where only they load the library
		my $parallel =
		  'SET force_parallel_mode = on; SET debug_parallel_query = on; SET parallel_leader_participation = off;';
		my $give =
		  'SELECT count(inside()::text) FROM generate_series(1, 2)';
		$node->safe_psql(
			'postgres', q(
CREATE FUNCTION inside() RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS 'BEGIN RETURN scru64_generate(); END';
));
		($out, $err) = new_session("$parallel $give; $show", user => 'app');
		is($out, "2\n$servers_values", "$mode, in a parallel worker");
		($out, $err) = new_session(
			"$parallel SET scru64.rollback_allowance = '1h'; $give", user => 'app');
		is($out, '', "$mode, SET, in a parallel worker: no ID");
		like($err, qr/ERROR:  55P02: .* cannot be set for a session.*source "session"/s,
			"$mode, SET, in a parallel worker: refused");
		{
			local $ENV{PGOPTIONS} = '-c scru64.rollback_allowance=1h';
			($out, $err) = new_session("$parallel $give", user => 'app');
		}
		is($out, '', "$mode, PGOPTIONS, in a parallel worker: no ID");
		like($err, qr/ERROR:  55P02: .* cannot be set for a session.*source "client"/s,
			"$mode, PGOPTIONS, in a parallel worker: refused");
		$node->safe_psql('postgres', 'DROP FUNCTION inside()');

		# the first use of the library may be in a parallel plan
		($out, $err) = new_session(
			"$parallel SELECT count(scru64_generate()::text) FROM generate_series(1, 2); SHOW scru64.node_spec"
		);
		is($out, "2\n14/8", "$mode, loaded in a parallel query: the settings are there");
	}

	# what is not valid in postgresql.conf is no session's own value
	$node->adjust_conf('postgresql.conf', 'scru64.lease_ttl', "'1s'");
	$node->restart;
	($out, $err) = new_session("$used; SHOW scru64.lease_ttl", user => 'app');
	is($out, "14\n1h", "$mode, invalid in postgresql.conf: the default");

	$node->stop;
	my @pg_ctl = (
		'pg_ctl', '--wait', '--pgdata', $node->data_dir, '--log', $node->logfile);
	command_ok([ @pg_ctl, '--options', '-c scru64.lease_ttl=4h', 'start' ],
		"$mode, start with a setting on the command line");
	($out, $err) = new_session("$used; SHOW scru64.lease_ttl", user => 'app');
	is("$out|$err", "14\n4h|", "$mode, on the command line of the server");
	command_ok([ @pg_ctl, '--mode=fast', 'stop' ], "$mode, stop");

	$node->adjust_conf('postgresql.conf', "scru64.$_", undef)
	  foreach ('rollback_allowance', 'lease_ttl', 'lease_holder');
	$node->adjust_conf('postgresql.conf', 'scru64.node_spec', "'10/8'");
	$node->start;
	$node->safe_psql('postgres',
		"LOAD 'scru64'; ALTER SYSTEM SET scru64.node_spec = '13/8'");
	$node->restart;
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
