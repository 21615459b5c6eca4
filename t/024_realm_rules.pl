# What was promised to a holder is not given to somebody else: whatever the clock of
# the realm's server does, after a failover, a restore and a prune, and when nobody
# knows whether an answer arrived.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Scru64Fault;
use Scru64Test;
use Test::More;

plan skip_all => 'needs libfaketime' if !can_set_clock();

my $template = make_template('template', allows_streaming => 1);
my $realm = copy_server($template, 'realm', clock => '+0');
start_server($realm);
$realm->safe_psql('postgres', 'CREATE EXTENSION scru64_realm');
# New leases are for as long as is asked for: what bounds that is for t/025 and t/027.
my $no_bounds = "UPDATE scru64_realm.settings SET max_ttl = '87600 hours', first_ttl = '87600 hours'";
$realm->safe_psql('postgres', $no_bounds);
my $node_id = 100;
my $not_free = qr/is not free/;

# A lease of the next node, for an hour if nothing else is said: its lease_id.
sub lease
{
	my ($node, $ttl) = @_;

	$node_id++;
	return $node->safe_psql('postgres',
		sprintf("SELECT lease_id FROM scru64_realm.lease(8, 'holder', '%s', node_id => $node_id)", $ttl || '1 hour'));
}

# What happens when somebody else asks for a node now: its start, or an error.
sub ask
{
	my ($node, $wanted, $ttl) = @_;
	my ($ret, $out, $err) = $node->psql(
		'postgres',
		sprintf(
			"\\set VERBOSITY verbose\nBEGIN; SELECT split_part(node_spec, '/', 1) FROM scru64_realm.lease(8, 'somebody else', '%s'%s); ROLLBACK",
			$ttl || '1 minute', defined $wanted ? ", node_id => $wanted" : ''));

	return $ret == 0 && $err eq '' ? $out : $err;
}

# Something about a lease, out of the ledger.
sub ledger
{
	my ($node, $id, $what) = @_;

	return $node->safe_psql('postgres', "SELECT $what FROM scru64_realm.ledger WHERE lease_id = '$id'");
}

#
# Renewals
#
my $id = lease($realm);
my $promised = ledger($realm, $id, 'expires_at');
$realm->safe_psql('postgres', "SELECT FROM scru64_realm.renew('$id', '10 s')");
is(ledger($realm, $id, 'expires_at'), $promised, 'a renewal for less, whose answer is lost, takes nothing back');
set_clock($realm, '+50');
like(ask($realm, $node_id), $not_free, 'nobody else has the node then');

# The holder knows what the first renewal said.
set_clock($realm, '+1800');
$realm->safe_psql('postgres', "SELECT FROM scru64_realm.renew('$id', '1 hour')");
$promised = ledger($realm, $id, 'expires_at');
set_clock($realm, '+0');
$realm->safe_psql('postgres', "SELECT FROM scru64_realm.renew('$id', '1 hour')");
is(ledger($realm, $id, 'expires_at'), $promised, 'nor does one after the clock was set back by 30 minutes');
set_clock($realm, '+3700');
like(ask($realm, $node_id), $not_free, 'nobody else has the node an hour later');
set_clock($realm, '+5500');
like(ask($realm, $node_id), qr/^[0-9a-z]{12}$/, 'and then somebody has');

#
# A release by a holder whose last ID is 31 s ahead of its clock, to a realm whose clock
# is behind by a minute
#
set_clock($realm, '-60');
$id = lease($realm);
my $last_id = $realm->safe_psql('postgres',
	"SELECT scru64_from_parts(clock_timestamp() + interval '91 s', ($node_id << 16) + 7)");
my ($ret, $out, $err) = $realm->psql('postgres', "SELECT scru64_realm.release('$id', '$last_id')");
is($err, '', 'a last ID far ahead of the clock is taken');
$realm->psql('postgres', "SELECT scru64_realm.release('$id')") if $err ne '';
set_clock($realm, '-25');
like(ask($realm, $node_id), $not_free, 'nobody has the node after the guard time, when the IDs are from later');
set_clock($realm, '+32');
cmp_ok(ask($realm, $node_id), 'gt', $last_id, 'who has it next begins after them');

#
# Leases in the far future are in nobody's way.
#
set_clock($realm, '+' . 10 * 365 * 86400);
$id = lease($realm);
set_clock($realm, '+0');
like(ask($realm, $node_id), qr/^[0-9a-z]{12}$/, 'a clock that was 10 years ahead does not block a node for 10 years');
like(ask($realm, $node_id, '3700 days'), $not_free, 'but for such a time it is');
$realm->safe_psql('postgres', "DELETE FROM scru64_realm.ledger WHERE lease_id = '$id'");

#
# prune() with a clock that was ahead
#
set_clock($realm, '+' . 3 * 86400);
$id = lease($realm, '1 minute');
set_clock($realm, '+' . (3 * 86400 + 100));
$realm->safe_psql('postgres', "SELECT scru64_realm.prune('0')");
set_clock($realm, '+' . 3 * 86400);
like(
	ask($realm, $node_id),
	qr/ERROR:  55000: the realm's clock is behind leases that have been pruned\nDETAIL:  It is at .*, and the last of them was occupied until /,
	'no lease for a time that leases were for that have been pruned');
set_clock($realm, '+0');
like(ask($realm), qr/ERROR:  55000: the realm's clock is behind/, 'nor any before');
set_clock($realm, '+' . (3 * 86400 + 95));
like(ask($realm, $node_id), qr/^[0-9a-z]{12}$/, 'after that, there are leases');
$realm->stop;

#
# A realm with an asynchronous standby, which is promoted beside it
#
my $primary = copy_server($template, 'primary', clock => '+0');
start_server($primary);
$primary->safe_psql('postgres', 'CREATE EXTENSION scru64_realm');
$primary->safe_psql('postgres', "UPDATE scru64_realm.settings SET first_ttl = max_ttl");
my $standby = add_standby($template, $primary, 'standby', clock => '+0');
$id = lease($primary);
# for a minute, but the holder will ask for more
my $grows = lease($primary, '1 minute');
catch_up($primary, $standby);
$standby->safe_psql('postgres', "ALTER SYSTEM SET primary_conninfo = ''");
$standby->safe_psql('postgres', 'SELECT pg_reload_conf()');
$primary->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_replication')
  or die 'the standby still follows';

# This the standby does not know: a renewal, and a lease.
$promised = $primary->safe_psql('postgres', "SELECT expires_at FROM scru64_realm.renew('$grows', '1 hour')");
my $lost = $primary->safe_psql('postgres',
	q(SELECT scru64_node_ctr(split_part(node_spec, '/', 1)::scru64) >> 16 FROM scru64_realm.lease(8, 'lost', '1 hour')));
$primary->stop('immediate');
start_server($primary);
like(ask($primary), qr/^[0-9a-z]{12}$/, 'after its own crash a realm grants leases');

$standby->promote;
is($standby->safe_psql('postgres', 'SELECT count(*) FROM scru64_realm.ledger'), '2', 'the promoted standby lacks a lease');
my $waits = qr/ERROR:  55000: realm grants no new lease until (\S+ \S+)\nDETAIL:  It was promoted/;
like(ask($standby, $lost), $waits, 'it does not grant what it does not know to be leased');
my ($until) = ask($standby) =~ $waits;
set_clock($standby, '+1800');
like(ask($standby), qr/no new lease until \Q$until\E/, 'nor anything else, and it does not begin to wait anew');
is(scalar(logged($standby, qr/LOG: .*was promoted, restored or copied: it grants no new lease until \Q$until\E/)),
	1, 'the log says so, once');
like(
	$standby->safe_psql(
		'postgres', "SELECT '$until'::timestamptz - (max(granted_at) + '1 hour 30 s') FROM scru64_realm.ledger"),
	qr/^00:0/,
	'it waits for max_ttl and the guard time');
is($standby->safe_psql('postgres', "SELECT '$until'::timestamptz > '$promised'"), 't', 'so it outlasts a renewal that was lost');
$standby->safe_psql('postgres', "SELECT FROM scru64_realm.renew('$id', '1 hour')");
cmp_ok(ledger($standby, $id, "expires_at > clock_timestamp() + '59 minutes'"), 'eq', 't', 'renewals go on');
$standby->stop;
start_server($standby);
like(ask($standby), qr/no new lease until \Q$until\E/, 'a restart changes nothing');
set_clock($standby, '+3900');
like(ask($standby, $lost), qr/^[0-9a-z]{12}$/, 'then it grants leases');
set_clock($standby, '+1800');
like(ask($standby), $waits, 'not before, also if the clock goes back');
$standby->safe_psql('postgres', 'SELECT scru64_realm.nothing_was_lost()');
like(ask($standby), qr/^[0-9a-z]{12}$/, 'at once, if its owner says that nothing was lost');
$standby->stop;

#
# A dump that is restored elsewhere: the same realm, which waits, too
#
SKIP:
{
	skip 'there is no pg_dump', 7 if !has_program('pg_dump');
	my $other = new_node('other');
	set_clock($other, '+0');
	start_server($other);
	my $dump = $primary->basedir . '/dump.sql';
	$primary->command_ok([ 'pg_dump', '-f', $dump, '-n', 'scru64_realm', '-e', '*', $primary->connstr('postgres') ], 'pg_dump');
	$primary->safe_psql('postgres', q(SELECT FROM scru64_realm.lease(8, 'after the dump', '1 hour')));
	$other->safe_psql('postgres', 'CREATE EXTENSION scru64');
	$other->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $other->connstr('postgres'), '-f', $dump ], 'restored');
	is(
		$other->safe_psql('postgres', 'SELECT scru64_realm.realm_id()'),
		$primary->safe_psql('postgres', 'SELECT scru64_realm.realm_id()'),
		'it is the same realm');
	like(ask($other), $waits, 'and grants nothing new');
	$other->safe_psql('postgres', "SELECT FROM scru64_realm.renew('$id', '1 hour')");
	set_clock($other, '+3700');
	like(ask($other), qr/^[0-9a-z]{12}$/, 'until what was leased after the dump is over');
	$other->stop;

	# and in place of the one that has gone on
	$primary->safe_psql('postgres', 'DROP EXTENSION scru64_realm');
	$primary->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $primary->connstr('postgres'), '-f', $dump ],
		'restored in place');
	like(ask($primary), $waits, 'it waits there, too');
	$primary->safe_psql('postgres', 'SELECT scru64_realm.nothing_was_lost()');
}

#
# What the realm's own server uses without a lease
#
sub node_asked_for
{
	return $primary->safe_psql('postgres',
		q(SELECT scru64_node_ctr(split_part(node_spec, '/', 1)::scru64) >> 16 FROM scru64_realm.lease(8, 'x', '1 hour')));
}

$primary->safe_psql('postgres', 'DELETE FROM scru64_realm.ledger');
is(node_asked_for(), '0', 'best fit');
$primary->safe_psql('postgres', 'DELETE FROM scru64_realm.ledger');
set_parameter($primary, 'scru64.node_spec', '0/8');
$primary->restart;
is(node_asked_for(), '1', 'a node that is set in the configuration is not leased');
{
	local $ENV{PGOPTIONS} = '-c scru64.node_spec=';
	is(node_asked_for(), '2', 'nor if the session that asks has set another one');
}
$primary->safe_psql('postgres', "ALTER DATABASE template1 SET scru64.node_spec = '0x3/8'");
is(node_asked_for(), '4', 'nor one of another database');
$primary->safe_psql('postgres', "SET scru64.node_spec = '5/8'; SELECT scru64_generate()");
is(node_asked_for(), '6', 'nor one that a session has used');
$primary->stop;

done_testing();
