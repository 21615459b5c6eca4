# One member of a realm must not stop the others, or fill its log: transactions that are
# left open, arguments that are long.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use List::Util qw(max);
use Scru64Fault;
use Scru64Realm;
use Scru64Test;

plan skip_all => 'needs libfaketime' if !can_set_clock();

make_realm_template();
my $realm = realm_of_template('realm', clock => '+0');
# what measures how long a transaction is open moves with the clock
start_server($realm, fake_monotonic => 1);
$realm->safe_psql(
	'postgres', q(
CREATE ROLE member LOGIN;
GRANT EXECUTE ON FUNCTION scru64_realm.lease, scru64_realm.renew, scru64_realm.release, scru64_realm.split TO member;
));

my ($clock, $out, $err) = (0);

sub move_on
{
	$clock += $_[0];
	set_clock($realm, "+$clock");
	return;
}

sub active
{
	return $realm->safe_psql('postgres', "SELECT coalesce(string_agg(holder, ' '), '') FROM scru64_realm.leases");
}

#
# A transaction that calls the realm has 15 seconds.
#
my $id = (split(/\|/, ask($realm, lease_sql(8, 'renewed'))))[0];
my %calls = (
	lease => "scru64_realm.lease(8, 'late')",
	renew => "scru64_realm.renew('$id', '1 hour')",
	release => "scru64_realm.release('$id')",
	split => "scru64_realm.split('$id', 9)");
foreach my $call (sort keys %calls)
{
	my $session = open_session($realm);

	$session->query_safe("BEGIN; SELECT count(*) FROM $calls{$call}");
	move_on(16);
	($out, $err) = try_statement($session, 'COMMIT');
	like($err, qr/ERROR:  25000: transaction was open for too long|FATAL:  57P01/, "$call: it does not commit after that");
	eval { $session->quit };
	is(active(), 'renewed', "$call: and it has done nothing");
}

# Nor does it wait for its session to do something.
my $session = open_session($realm);
my $pid = $session->query_safe('SELECT pg_backend_pid()');
$session->query_safe("BEGIN; SELECT count(*) FROM $calls{lease}");
move_on(16);
# a timer is looked at when the next one is set
eval { try_statement($session, 'SET statement_timeout = 100000; SELECT 1; SELECT pg_sleep(1)'); };
ok( $realm->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid"),
	'its session is terminated');
eval { $session->quit };
is(active(), 'renewed', 'and it has leased nothing');

# Who commits in time and goes on is left alone.
$session = open_session($realm);
$session->query_safe("SELECT count(*) FROM $calls{lease}");
$session->query_safe('BEGIN');
move_on(60);
is($session->query_safe('SELECT 1'), '1', 'other transactions take their time');
$session->query_safe('COMMIT');

#
# Arguments of 200 MB
#
my $log = -s $realm->logfile;
foreach my $long (
	"lease(8, repeat('x', 200000000))",
	"lease(8, 'x', within => repeat('1', 200000000))",
	"lease(8, 'x', within => repeat('1', 200000000) || '/8')",
	"revoke(repeat('x', 200000000))")
{
	($out, $err) = try_statement($session, "SELECT scru64_realm.$long");
	cmp_ok(length($err), '<', 2000, 'short error for ' . substr($long, 0, 40));
	like($err, qr/ERROR:  22023: /, 'which is one') if $long !~ /revoke/;
}
cmp_ok((-s $realm->logfile) - $log, '<', 10000, 'and little in the log');

$session->quit;
$realm->stop;
done_testing();
