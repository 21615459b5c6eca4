# A realm that is away, or refuses; and servers that are copies of one another.

use strict;
use warnings;
use IO::Socket::UNIX;
use List::Util qw(max);
use Scru64Copies;
use Scru64Debugger;
use Scru64Files;
use Scru64Lease;
use Scru64Server;
use Scru64Test;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;

my $template = make_template('template', allows_streaming => 1);
my $realm = make_realm($template, 'realm');

#
# A realm that refuses, each time in its own words
#
my %case_of = (
	'no such database' => [ 'dbname=nowhere', {}, qr/database "nowhere" does not exist/ ],
	'no realm in the database' => [ 'dbname=postgres', {}, qr/schema "scru64_realm" does not exist/ ],
	'a realm that is older' => [ 'dbname=older', {}, qr/function scru64_realm\.realm_id\(\) does not exist/ ],
	'a realm that is a bit older' => [ 'dbname=a_bit_older', {}, qr/function scru64_realm\.lease\(.*\) does not exist/ ],
	'no such server' => [ 'host=/nowhere', {}, qr{connection to server on socket "/nowhere/.*No such file} ],
	'too many ports' => [ 'port=5998,5999', {}, qr/could not match 2 port numbers to 1 hosts/ ],
	'too many addresses' => [ 'hostaddr=127.0.0.1,127.0.0.2', {}, qr/could not match 1 host names to 2 hostaddr values/ ],
	'not a connection string' => [ 'nonsense', {}, qr/scru64\.realm is not a connection string/ ],
	'wrong password' => [ 'user=locked', {}, qr/password authentication failed for user "locked"/ ],
	'no right' => [ 'user=stranger', {}, qr/permission denied for function lease/ ],
	'a full realm' => [ '', { lease_within => '1023/10' }, qr/realm is full/ ],
	'a block that is too small' => [ '', { lease_within => '8191/13' }, qr/does not fit into 8191\/13/ ],
	'another realm' => [ '', { realm_id => '00000000-0000-0000-0000-00000000000f' },
		qr/this is realm [0-9a-f-]{36}, and not 00000000-0000-0000-0000-00000000000f/ ],
);
# what an older one lacks
foreach my $case ([ 'older', 'realm_id' ], [ 'a_bit_older', 'lease' ])
{
	my ($dbname, $function) = @{$case};

	$realm->safe_psql('postgres', "CREATE DATABASE $dbname");
	$realm->safe_psql($dbname, "CREATE EXTENSION scru64_realm CASCADE; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA scru64_realm TO fleet; ALTER EXTENSION scru64_realm DROP FUNCTION scru64_realm.$function; DROP FUNCTION scru64_realm.$function");
}
$realm->safe_psql('postgres', "CREATE ROLE locked LOGIN PASSWORD 'another one'");
replace_file($realm->data_dir . '/pg_hba.conf',
	"local realm locked scram-sha-256\n" . slurp_file($realm->data_dir . '/pg_hba.conf'));
$realm->reload;
$realm->safe_psql('realm', "SELECT lease_id FROM scru64_realm.lease(10, 'other', '1 hour', 1023)");

my $refused = fleet_server($template, 'refused', fleet_lines($realm, realm => 'dbname=nowhere'));
my ($realm_line) = fleet_lines($realm) =~ /'(.*)'/;
foreach my $name (sort keys %case_of)
{
	my ($more, $settings, $message) = @{ $case_of{$name} };

	configure_server($refused,
		fleet_lines($realm, lease_ttl => '10s', lease_within => '', realm_id => '', realm => "$realm_line $more", %{$settings}));
	my $seen = last_error($refused, $message);
	like($seen, $message, "$name: in scru64_lease()");
	note('refused: ' . lease_sql($refused, 'last_error')) if $seen eq '';
	my ($id, $error) = try_generate($refused);
	# whoever sees the error may be anybody
	like($error, qr/ERROR:  55000: this server has no lease of a node.*DETAIL:  The last attempt to acquire one failed at \d/s, "$name: an error");
	unlike($error, $message, "$name: not in the error");
	is(scalar(logged($refused, "has not acquired.*$message")), 1, "$name: in the log, once")
	  or note(join("\n", logged($refused, 'has not acquired')));
	like(lease_sql($refused, "state, failures > 0, last_error_at > now() - interval '1 min', next_attempt_at < now() + interval '6 s', node_spec"),
		qr/^failing\|t\|t\|t\|$/, "$name: its row");
}
configure_server($refused, fleet_lines($realm, realm_id => $realm->safe_psql('realm', 'SELECT scru64_realm.realm_id()')));
isnt(wait_for_lease($refused), '', 'all right: a lease');
is(lease_sql($refused, 'state, failures, last_error, last_error_at'), 'held|0||', 'and no error in scru64_lease()');

# a worker that cannot start
$refused->append_conf('postgresql.conf', "max_worker_processes = 0\n");
$refused->restart;
like((try_generate($refused))[1], qr/ERROR:  55000: .*DETAIL:  There is no free slot for the lease worker.*HINT:  Raise "max_worker_processes"/s,
	'no slot for a worker');
like(error_of($refused, 'SELECT scru64_check()'), qr/ERROR:  55000: .*DETAIL:  There is no free slot for the lease worker/s,
	'no slot for a worker: scru64_check() says so');
$refused->append_conf('postgresql.conf', "max_worker_processes = 8\n$preload");

#
# A realm that does not answer: sessions wait, and can be cancelled
#
kill('STOP', postmaster_pid($realm));
$refused->restart;
like((try_generate($refused, "SET statement_timeout = '700 ms'; "))[1], qr/ERROR:  57014: /, 'whoever waits can be cancelled');
kill('CONT', postmaster_pid($realm));
isnt(wait_for_lease($refused), '', 'it answers: a lease');

# a worker that dies meanwhile, and there was a failure before
SKIP:
{
	skip 'gdb is not installed', 3 if !has_gdb();
	my $dir = PostgreSQL::Test::Utils::tempdir_short();
	my $server = fleet_server($template, 'dies', fleet_lines($realm, realm => "host=$dir port=5999"));
	my $session = open_session($server);

	like(last_error($server, qr{No such file}), qr/No such file/, 'a realm that is not there');
	my $deaf = IO::Socket::UNIX->new(Local => "$dir/.s.PGSQL.5999", Listen => 5) or die "could not listen: $!";
	$server->reload;
	$server->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE state = 'active' AND query = 'talking with the realm'") or die 'the worker does not call the realm';
	start_statement($session, 'SELECT scru64_generate()');
	$server->poll_query_until('postgres', "SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $session->{pid}") or die 'the session does not wait';
	system('gdb -batch -nx -p ' . lease_sql($server, 'worker_pid') . " -ex 'call (void) proc_exit(0)' >/dev/null 2>&1");
	my $died = time();
	like((try_statement($session, 'SELECT 1'))[1], qr/ERROR:  55000: this server has no lease/, 'who waits gets an error');
	# and not after the 10 s that a session waits
	cmp_ok(time() - $died, '<', 3, 'and does not wait for a worker that is dead');
	$session->quit;
	$server->stop;
}

# several hosts, and the first one is deaf: a machine that is gone, for example
{
	my $dir = PostgreSQL::Test::Utils::tempdir_short();
	my $deaf = IO::Socket::UNIX->new(Local => "$dir/.s.PGSQL.5999", Listen => 500) or die "could not listen: $!";
	my $hosts = "host=$dir," . $realm->host . ' port=5999,' . $realm->port;

	# in a service file, which libpq finds by the server's environment
	{
		local $ENV{PGSERVICEFILE} = "$dir/service";
		append_to_file($ENV{PGSERVICEFILE}, join("\n", '[realm]', split(/ /, $hosts), 'dbname=realm', 'user=fleet', ''));
		configure_server($refused, fleet_lines($realm, realm => 'service=realm', lease_within => '2/8'));
		$refused->restart;
		like(wait_until(sub { try_generate($refused); my $node = lease_of($refused); $node =~ m{^(3[2-9]|4[0-7])/12$} && $node }),
			qr{/12$}, 'several hosts in a service file, the first does not answer: the next one does');
	}
	$refused->restart;
	configure_server($refused, fleet_lines($realm, realm => "$hosts dbname=realm user=fleet connect_timeout=2 target_session_attrs=read-write", lease_within => '1/8'));
	my $first = wait_until(sub { try_generate($refused); my $node = lease_of($refused); $node =~ m{^(1[6-9]|2[0-9]|3[01])/12$} && $node });
	like($first, qr{^(1[6-9]|2[0-9]|3[01])/12$}, 'several hosts, the first does not answer: the next one does');
	configure_server($refused, fleet_lines($realm, lease_within => '4001/12'));
	is(wait_until(sub { try_generate($refused); my $node = lease_of($refused); $node eq '4001/12' && $node }), '4001/12', 'all of a block');
	# no session configures a node that the server leases, or has leased before
	foreach my $leased ($first, '4001/12')
	{
		like((try_generate($refused, "SET scru64.node_spec = '$leased'; "))[1],
			qr{ERROR:  55006: node $leased overlaps node $leased, which this server has leased\nDETAIL:  .*$leased.*\nHINT:  Choose a node that the realm does not lease.* restarted, or has leased 64 other nodes\.},
			"$leased configured, which was leased");
	}
	is($refused->safe_psql('postgres', "SET scru64.node_spec = '4002/12'; SELECT scru64_generate() IS NOT NULL"), 't', 'another one configured');
	my $session = open_session($refused);
	my $node = '4001/12';
	foreach my $n (1 .. 63)
	{
		$session->query_safe("ALTER SYSTEM SET scru64.lease_within = '@{[2 + $n % 2]}/4'");
		$session->query_safe('SELECT pg_reload_conf()');
		$node = wait_until(sub { my $now = $session->query_safe('SELECT node_spec FROM scru64_lease()'); $now ne '' && $now ne $node && $now }, 0.02);
	}
	is($session->query_safe("SET scru64.node_spec = '$first'; SELECT scru64_generate() IS NOT NULL"), 't', "$first configured, after which it has leased 64 others");
	like((try_generate($refused, "SET scru64.node_spec = '4001/12'; "))[1], qr{node 4001/12 overlaps node 4001/12}, 'and 4001/12, after which it has leased 63');
	$session->query_safe('ALTER SYSTEM RESET scru64.lease_within');
	$session->quit;
	configure_server($refused, fleet_lines($realm, lease_within => ''));
}

#
# The realm away, until the lease is over
#
my $server_a = fleet_server($template, 'a', fleet_lines($realm, lease_ttl => '10s') . $preload);
my $server_d = fleet_server($template, 'd', fleet_lines($realm, lease_ttl => '20s'));
my $node_crashed = wait_for_lease($refused);
isnt(wait_for_lease($server_a), '', 'a lease of 10 s');
isnt(wait_for_lease($server_d), '', 'another server, with a longer one');
begin_load($server_a, 2);
ok(wait_until(sub { lease_sql($server_a, "expires_at - granted_at > '12 s'") eq 't' }), 'it is renewed');
my $node = lease_of($server_a);
# for a copy of a server that is stopped
$server_d->stop;
$server_d->backup_fs_cold('cold2');
$realm->stop('immediate');
my $expires = lease_sql($server_a, 'extract(epoch FROM expires_at)::numeric(20,3)');
my ($before) = try_generate($server_a);
isnt($before, '', 'the realm is away, and there are IDs');
# the crash of a process costs the lease
crash($refused, lease_sql($refused, 'worker_pid'));
like((try_generate($refused))[1], qr/ERROR:  55000: this server has no lease of a node/, 'a crash while the realm is away: no ID');
# a server that starts has none, either
start_server($server_d);
my ($none, $message) = try_generate($server_d);
like($message, qr/ERROR:  55000: this server has no lease of a node.*The last attempt to acquire one failed at \d/s,
	'a server that starts has no node');
my $asked;
my $over = wait_until(sub { $asked = max($expires, time()); (try_generate($server_a))[1] });
my $answered = time();
like($over, qr{ERROR:  55000: .* of .*node.*The last attempt to (acquire one|renew it) failed at \d}s, 'at the end of the window there are none, and why');
like($over, qr{It ends at \S+ \S+ by the realm's clock, and the next ID is of \S+ \S+\.}, 'with both times');
cmp_ok($answered - $expires, '>', -0.3, 'not before');
# a session may wait for 10 s
cmp_ok($answered - $asked, '<', 8, 'and not much after');
like(lease_sql($server_a, 'state'), qr/held, not renewed|failing/, 'the lease: ' . lease_sql($server_a, 'state, node_spec, failures'));
cmp_ok(scalar(logged($server_a, 'has not acquired')), '<=', 1, 'a line in the log');
start_server($realm);
my $back = time();
isnt(wait_for_lease($server_a), '', 'the realm is back, and there are IDs, without a restart');
note(sprintf('after %.1f s', time() - $back));
my $lease_d = wait_for_lease($server_d);
isnt($lease_d, '', 'the one that had none, too');
isnt(wait_for_lease($refused, $node_crashed), '', 'and the one that has crashed, another one');
$refused->stop;

#
# Copies of a server that was stopped, of one that runs, by the book and not
#
begin_load($server_d, 2);

my $cold = fleet_server($server_d, 'cold', '', backup => 'cold2');
begin_load($cold, 2);
$server_d->backup('hot');
my $hot = fleet_server($server_d, 'hot', $preload, backup => 'hot');
begin_load($hot, 2);
system('cp', '-a', $server_d->data_dir, $server_d->backup_dir . '/disk');
unlink($server_d->backup_dir . '/disk/postmaster.pid');
my $disk = fleet_server($server_d, 'disk', '', backup => 'disk');
begin_load($disk, 2);
my %nodes = map { wait_for_lease($_) => 1 } ($cold, $hot, $disk);
$nodes{ lease_of($server_d) } = 1;
is(scalar(grep { $_ ne '' } keys %nodes), 4, 'copies have nodes of their own: ' . join(' ', sort keys %nodes));
is(lease_of($server_d), $lease_d, 'and the origin keeps its own');

# crashes in a row: each costs a node at most, for two minutes
foreach my $crash (1 .. 3)
{
	wait_for_wal_writer($disk);
	kill_server($disk);
	start_server($disk);
}
isnt(wait_for_lease($disk), '', 'after crashes: a lease');
end_loads_ok('55000|57P01|57P03', 'no other error');
ok_ids($realm, 'all', 10000);
$_->stop foreach ($server_a, $server_d, $cold, $hot, $disk);
is($realm->safe_psql('realm', "SELECT count(*) FROM scru64_realm.leases WHERE holder IN ('cold', 'hot') OR holder = 'd' AND node = '$lease_d'"), 0, 'all are released');
#
# The owner of the realm has a server's lease go on without end
#
{
	my $server = fleet_server($template, 'endless', fleet_lines($realm));

	isnt(wait_for_lease($server), '', 'a lease');
	$realm->safe_psql('realm', "SELECT scru64_realm.renew(lease_id, '1000 years') FROM scru64_realm.ledger WHERE holder = 'endless'");
	# what a realm tells only after its max_ttl
	$realm->psql('realm', "UPDATE scru64_realm.ledger SET endless_since = now() - interval '1 day' WHERE holder = 'endless'");
	$server->reload;
	ok(wait_until(sub { lease_sql($server, "expires_at > '4000-01-01'") eq 't' }), 'its lease is renewed without end: it takes that');
	is(lease_sql($server, 'state, failures, last_error'), 'held|0|', 'and there is no failure');
	isnt((try_generate($server))[0], '', 'and there are IDs');
	$server->stop;
}
done_testing();
