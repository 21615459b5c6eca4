# Servers and their realm are of different versions; and a server has another version of
# the libraries than the one that it was started with.

use strict;
use warnings;
use Scru64Copies;
use Scru64Lease;
use Scru64Server;
use Scru64Test;
use Scru64Versions;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;

my $template = make_template('template');
my $realm = make_realm($template, 'realm');
my %libraries = current_libraries();
my ($worker) = grep { /_lease/ } keys %libraries;
my %other = map { s/_\d+/_X/r => $libraries{$_} =~ s/(scru64 shared memory |\$libdir\/scru64_lease_)\d(\d*)\0/$1X\0$2/gr } keys %libraries;

$other{'scru64.so'} ne $libraries{'scru64.so'} or die 'there is no name of a layout in scru64.so';

# Change functions of a realm, as another version would: each is made anew.
sub change_functions
{
	my ($db, %change) = @_;

	foreach my $name (sort keys %change)
	{
		my $of = "FROM pg_proc WHERE pronamespace = 'scru64_realm'::regnamespace AND proname = '$name'";
		my $definition = $realm->safe_psql($db, "SELECT pg_get_functiondef(oid) $of");
		my $signature = $realm->safe_psql($db, "SELECT oid::regprocedure $of");
		my $changed = $change{$name}->($definition);

		die "$name is as it was" if $changed eq $definition;
		$realm->safe_psql($db, "ALTER EXTENSION scru64_realm DROP FUNCTION $signature; DROP FUNCTION $signature;
$changed;
ALTER EXTENSION scru64_realm ADD FUNCTION scru64_realm.$name;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA scru64_realm TO fleet");
	}
	return;
}

sub realm_in
{
	my ($db) = @_;

	$realm->safe_psql('postgres', "CREATE DATABASE $db");
	$realm->safe_psql($db, 'CREATE EXTENSION scru64_realm CASCADE; GRANT USAGE ON SCHEMA scru64_realm TO fleet;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA scru64_realm TO fleet');
	return;
}

# What is wrong with the lease worker's library, and what is said of it
my @broken = (
	[ 'that cannot be loaded', 'no library', qr/could not load library "[^"]*\Q$worker\E"/ ],
	[ 'that is gone', undef, qr/could not access file "(?:\$libdir\/)?scru64_lease_\d+"/ ]);

# A server that preloads the library starts with a broken one, and no session asks for an
# ID.  It is mended now: see the end.
my $mended = make_installation();
my $idle = new_node('idle', install_path => $mended->{path});
install_libraries($mended, %libraries);
$idle->append_conf('postgresql.conf', fleet_lines($realm) . $preload);
$idle->start;
$idle->safe_psql('postgres', 'CREATE EXTENSION scru64');
isnt(wait_for_lease($idle), '', 'preloaded: a lease');
install_libraries($mended, $worker => $broken[0][1]);
$idle->restart;
isnt(wait_until(sub { lease_sql($idle, 'last_error') =~ $broken[0][2] }), '', 'preloaded, and the worker cannot be loaded: the view says why');
install_libraries($mended, %libraries);

#
# A later realm: its functions have more arguments, with defaults, and return more columns,
# wherever these stand.  Neither is in the way of a server of this version.
#
change_functions('realm',
	realm_id => sub { $_[0] =~ s/realm_id\(\)/realm_id(novelty integer DEFAULT 0)/r },
	lease => sub { $_[0] =~ s/(holder text), /$1, novelty integer DEFAULT 0, /r =~ s/(OUT lease_id uuid)/OUT novel text, $1/r },
	renew => sub { $_[0] =~ s/(\(lease_id uuid), /$1, novelty integer DEFAULT 0, /r =~ s/(OUT expires_at)/OUT novel text, $1/r },
	release => sub { $_[0] =~ s/(\(lease_id uuid), /$1, novelty integer DEFAULT 0, /r });
is($realm->safe_psql('realm', q(SELECT string_agg(proname, ' ' ORDER BY proname) FROM pg_proc WHERE pronamespace = 'scru64_realm'::regnamespace AND 'novelty' = ANY (proargnames))),
	'lease realm_id release renew', 'a later realm: the functions are other ones');

my $server = fleet_server($template, 'server', fleet_lines($realm, lease_ttl => '10s'));
my $node = wait_for_lease($server);
isnt($node, '', 'a later realm: it leases');
my $expires_at = lease_sql($server, 'expires_at');
isnt(wait_until(sub { lease_sql($server, "expires_at > '$expires_at' AND failures = 0") eq 't' }), '', 'a later realm: it renews');
$server->stop;
like($realm->safe_psql('realm', q(SELECT holder, released_at IS NOT NULL FROM scru64_realm.ledger WHERE holder = 'server')), qr/^server\|t$/, 'a later realm: it releases');

#
# A server that has another version of the libraries than the one that it was started with,
# with another layout of what they share.  Both lease: sessions of before go on with their
# node, new ones have one of their own.
#
my $installation = make_installation();
my $rolling = new_node('rolling', install_path => $installation->{path});

install_libraries($installation, %libraries);
$rolling->append_conf('postgresql.conf', fleet_lines($realm, lease_ttl => '10s') . "restart_after_crash = on\n");
$rolling->start;
$rolling->safe_psql('postgres', 'CREATE EXTENSION scru64');
my $session = open_session($rolling);

sub session_goes_on_ok
{
	my ($name) = @_;
	my ($id, $err);

	wait_until(sub { ($id, $err) = try_statement($session, 'SELECT scru64_generate()'); $err eq '' });
	is($err, '', "$name: the session of before goes on");
	note_ids($rolling, $id);
	return $session->query_safe('SELECT node_spec FROM scru64_lease()');
}

my $first = session_goes_on_ok('one version');
install_libraries($installation, %other);
my $second = wait_for_lease($rolling);
like($second, qr{^\d+/12$}, 'another layout: a new session has a node');
isnt($second, $first, '... of its own');
# Each version raises the ceiling above the other's, again and again: the last rounds with a node
# that one version has leased, and the other, which cannot know, has configured.
{
	my @sessions = ($session, open_session($rolling));
	my (@errors, %first_in, @shared);

	foreach my $round (1 .. 30)
	{
		$sessions[1]->query_safe("SET scru64.node_spec = '$first'") if $round == 16;
		foreach my $i (0, 1)
		{
			my ($out, $err) = try_statement($sessions[$i], q(SELECT id || ' ' || (id::bigint >> 24) FROM scru64_generate() AS id));
			my ($id, $tick) = split(/ /, $out);

			push @errors, $err if $err ne '';
			next if !defined $tick;
			# what is configured has no window
			note_ids($rolling, $id) if $i == 0 || $round < 16;
			push @shared, $id if $round >= 16 && ($first_in{$tick} //= $i) != $i;
		}
		sleep(0.4);
	}
	is(join('', @errors), '', 'another layout: sessions of both versions go on');
	is(join(' ', map { $_->query_safe('SELECT node_spec FROM scru64_lease()') } @sessions), "$first $second", '... each version with its node');
	is(join(' ', @shared), '', '... never in one tick with the same node');
	$sessions[1]->quit;
}
is($realm->safe_psql('realm', "SELECT count(*) FROM scru64_realm.leases WHERE holder = 'rolling' AND node IN ('$first', '$second')"), 2, 'the realm knows of both');
{
	my $pid = $session->query_safe('SELECT worker_pid FROM scru64_lease()');

	$rolling->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
	ok(wait_until(sub { $session->query_safe('SELECT worker_pid IS NULL FROM scru64_lease()') eq 't' }), 'another layout: the worker of before ends');
	like((try_statement($session, 'SELECT scru64_generate()'))[1], qr/ERROR:  55000: .*HINT:  .*another version of scru64 was installed, connect again/s, '... and its sessions have to connect again');
}
$session->quit;

# Where the library is preloaded, all sessions have that of before, and its own lease worker, which
# is loaded anew when it starts again after a crash.
install_libraries($installation, %libraries);
$rolling->append_conf('postgresql.conf', $preload);
$rolling->restart;
$session = open_session($rolling);
$node = wait_for_lease($rolling);
isnt($node, '', 'preloaded: a lease');
install_libraries($installation, %other);
session_goes_on_ok('preloaded, another layout installed');
isnt(wait_for_lease($rolling), '', 'preloaded, another layout installed: new sessions, too');
crash($rolling, $session->{pid});
isnt(wait_for_lease($rolling, $node), '', 'after a crash: another lease, without a restart');
install_libraries($installation, %libraries);
$rolling->stop;

#
# A lease worker that cannot start keeps no worker slot.  Not preloaded: each worker is
# started by a session.
#

# How many of 8 workers does a query get?
sub launched
{
	my $plan = $rolling->safe_psql('postgres', 'SET max_parallel_workers_per_gather = 8; SET parallel_setup_cost = 0; SET min_parallel_table_scan_size = 0;
EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) SELECT count(*) FROM many');

	return $plan =~ /Workers Launched: (\d+)/ ? $1 : $plan;
}

# The slot of a worker is free a moment after the worker has ended.
sub none_lost_ok
{
	my ($name) = @_;
	my $launched;

	wait_until(sub { ($launched = launched()) eq '8' });
	return is($launched, '8', "$name: no worker slot is lost");
}
$rolling->append_conf('postgresql.conf', "shared_preload_libraries = ''\nmax_worker_processes = 8\nmax_logical_replication_workers = 0\n");
$rolling->start;
$rolling->safe_psql('postgres', 'CREATE TABLE many AS SELECT * FROM generate_series(1, 1000); ALTER TABLE many SET (parallel_workers = 8)');
none_lost_ok('no worker yet');

foreach my $case (@broken)
{
	my ($name, $library, $why) = @{$case};
	my $began = time();
	my $logged = logged($rolling, "ERROR:  $why");
	my $err;

	defined $library ? install_libraries($installation, $worker => $library) : unlink("$installation->{libraries}/$worker");
	$rolling->restart;
	wait_until(sub { (undef, $err) = try_generate($rolling); lease_sql($rolling, 'failures >= 3') eq 't' });
	like(lease_sql($rolling, 'state, failures, last_error'), qr/^failing\|\d+\|$why/, "a worker $name: the view says why, after several attempts");
	like($err, qr/ERROR:  55000: this server has no lease of a node.*DETAIL:  The lease worker failed at \d[^\n]*: $why.*HINT:  See scru64_lease\(\) .*If another version of scru64 was installed, /s, "a worker $name: so does the error");
	my $lines = logged($rolling, "ERROR:  $why") - $logged;
	cmp_ok($lines, '>', 0, "a worker $name: so does the log");
	cmp_ok($lines, '<=', 1 + (time() - $began) / 60, "a worker $name: once a minute");
	none_lost_ok("a worker $name");
	install_libraries($installation, %libraries);
	isnt(wait_for_lease($rolling), '', "a worker $name is mended: a lease, without a restart");
	is(lease_sql($rolling, 'state, failures, last_error'), 'held|0|', "a worker $name is mended: the view");
}

# Nor does one whose own library cannot be loaded any more, by which a session asks for it.
$rolling->restart;
$session = open_session($rolling);
$session->query_safe("LOAD 'scru64'");
install_libraries($installation, 'scru64.so' => 'no library');
like((try_statement($session, 'SELECT scru64_generate()'))[1], qr/ERROR:  55000: .*DETAIL:  The lease worker has not started yet\./s, 'the library is gone: the error');
is(scalar(logged($rolling, 'ERROR:  could not load library "[^"]*scru64\.so"')), 1, 'the library is gone: the log');
none_lost_ok('the library is gone');
$session->quit;
install_libraries($installation, %libraries);
$rolling->stop;
ok_ids($realm, 'another realm, and other libraries');

#
# An earlier realm, which has not what the server calls: the server says what is missing.
#
realm_in('earlier');
change_functions('earlier', lease => sub { $_[0] =~ s/, request uuid DEFAULT NULL::uuid//r =~ s/asked.lease_id := request;//r });
$server->append_conf('postgresql.conf', fleet_lines($realm, realm => (fleet_lines($realm) =~ /'(.*)'/)[0] . ' dbname=earlier'));
$server->start;
my $missing = qr/function scru64_realm\.lease\(node_id_size => .*request => .*\) does not exist/;
like(last_error($server, $missing), $missing, 'an earlier realm: what is missing');
like((try_generate($server))[1], qr/ERROR:  55000: this server has no lease of a node.*HINT:  See scru64_lease\(\)/s, 'an earlier realm: the error');
is(scalar(logged($server, "has not acquired.*$missing")), 1, 'an earlier realm: the log');

# It is upgraded.
change_functions('earlier', lease => sub { $_[0] =~ s/(within text DEFAULT NULL::text)/$1, request uuid DEFAULT NULL/r =~ s/(asked\.node_id := node_id;)/asked.lease_id := request; $1/r });
isnt(wait_for_lease($server), '', 'an earlier realm, upgraded: it leases');
$realm->safe_psql('earlier', 'ALTER FUNCTION scru64_realm.renew RENAME TO renew_of_old');
$missing = qr/function scru64_realm\.renew\(lease_id => .*\) does not exist/;
like(last_error($server, $missing), $missing, 'a realm without renew(): what is missing');
$server->stop;

isnt(wait_until(sub { lease_sql($idle, 'state, failures, last_error') eq 'held|0|' }), '', 'preloaded, and the worker can be loaded again: a lease, and no session has asked');
$idle->stop;

done_testing();
