# How long a realm waits; max_ttl is raised around a promotion; and owners say that the realm
# has lost something.
#
# Clocks stand still where they are set: times are seconds.

use strict;
use warnings;
use FindBin;
use Scru64Clock;
use Scru64Copies;
use Scru64Realm;
use Scru64Server;
use Scru64Test;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;

plan skip_all => 'no clock can be set' if !can_set_clock();

my ($max_ttl, $first_ttl, $slack) = (600, 131, 30);

make_realm_template();

# What an owner's call returns, in seconds.
sub seconds_of
{
	my ($node, $call) = @_;

	return ask($node, "SELECT (extract(epoch FROM scru64_realm.$call) - $zero)::integer");
}

#
# The table of waits in doc/realm.md
#
my $realm = start_realm('raised');
my $page = slurp_file("$FindBin::RealBin/../../../doc/realm.md");
my @waits = $page =~ /^\|(?:up to |)(\d+ \w+)(?: or more,.*|)\|(\d[\w ]+)\|$/mg;
my $longest = $waits[-1];

# How much longer new leases wait than the page says, and nodes that were leased before
sub wait_differs
{
	my ($since, $wait, $more) = (@_, 0);

	return ask($realm, qq(
SELECT extract(epoch FROM w.granting_from - now() - interval '$wait')::integer,
	   extract(epoch FROM w.lost_until - now() - interval '$longest')::integer
FROM scru64_realm_internal.longest_wait(ROW(now(), now() - interval '$since' - interval '$more s', 'epoch', 'epoch')::scru64_realm_internal.failover) AS w));
}

cmp_ok(scalar(@waits), '>=', 8, 'doc/realm.md has a table of waits');
foreach my $n (0 .. $#waits / 2)
{
	is(wait_differs(@waits[ 2 * $n, 2 * $n + 1 ]), '0|0', "doc/realm.md: the last change was $waits[2 * $n] ago");
}
is(wait_differs('0 s', $waits[1]), '0|0', 'doc/realm.md: no wait is shorter than the first');
is(wait_differs(@waits[ 0, 1 ], 1), '1|0', 'doc/realm.md: then the wait grows');
is(wait_differs(@waits[ -2, -1 ], -1), '-1|0', 'doc/realm.md: up to the last');
is(wait_differs('10 years', $longest), '0|0', 'doc/realm.md: and no further');

#
# max_ttl is raised, and standbys are promoted just before that counts and just after
#
at(-4900, $realm);
is(seconds_of($realm, "set_max_ttl('$max_ttl s')"), -4900, 'a reduction counts at once');
my $grown = lease($realm, 'grown', node_id => 10);
grow($realm, $grown, 20);
at(0, $realm);
my $unaware = add_realm_standby($realm, 'unaware');
leave_behind($realm, $unaware);
my $aware = add_realm_standby($realm, 'aware');
my $again = add_realm_standby($realm, 'again');
my $counts = $max_ttl + $slack;
is(seconds_of($realm, "set_max_ttl('20 min')"), $counts, 'a raise counts when the realm has known it for long enough');
at(10, $realm);
is(seconds_of($realm, "set_max_ttl('20 min')"), $counts, 'said again, it counts from then on, too');
is(renew($realm, $grown, ttl => '1 hour'), 10 + $max_ttl, 'before, renewals are for what it was');
leave_behind($realm, $aware);
leave_behind($realm, $again);
grow($realm, $grown, $counts);
at($counts - 1, $realm);
is(renew($realm, $grown, ttl => '1 hour'), $counts - 1 + $max_ttl, 'to the last second');

# One does not know of the raise.
at($counts - 1, $unaware);
$unaware->promote;
like(somebody_else($unaware), $waits, 'promoted a second before');
at($grown->{expires} + $slack - 1, $unaware);
like(somebody_else($unaware, 10), qr/ERROR:  55/, 'it waits, without knowing of the raise');
at($grown->{expires} + $slack, $unaware);
like(somebody_else($unaware, 10), $granted, 'until the holder is done');
$unaware->stop;

at($counts, $realm);
is(renew($realm, $grown, ttl => '1 hour'), $counts + 1200, 'from then on, renewals are for what it is');
foreach my $standby ($aware, $again)
{
	my $noticed = $counts + ($standby == $aware ? -1 : 1);

	at($noticed, $standby);
	$standby->promote;
	like(somebody_else($standby), $waits, "promoted at $noticed s");
}
ok_from($aware, $counts - 1 + 1200 + $slack, 'with a raise that did not count yet', 10);
$aware->stop;

# and one more while it waits
at(800, $again);
my $raised_at = 800 + 1200 + $slack;
is(seconds_of($again, "set_max_ttl('40 min')"), $raised_at, 'a raise while the realm waits');
ok_from($again, $counts + 1 + 2400 + $slack, 'that has it wait for longer', 10);
$again->stop;
$realm->stop;

#
# Copies of a realm that nobody notices: they are started as they are.
#
$realm = start_realm('copied');
$grown = lease($realm, 'grown', node_id => 30);
grow($realm, $grown, 100);
at(0, $realm);
$realm->backup('base');
at(1, $realm);
my $renewed = renew($realm, $grown, ttl => '1 hour');
my $lost = lease($realm, 'lost');
$realm->stop;
my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init_from_backup($realm, 'base');
at(2, $copy);
start_server($copy);
like(somebody_else($copy, $lost->{node_id}), $granted, 'a copy without a signal file grants what was granted');
my $until = seconds_of($copy, 'something_was_lost()');
is($until, 2 + 3600 + $slack, 'its owner says that something was lost');
like(somebody_else($copy), $waits, 'then it waits');
is(renew($copy, $grown), $renewed + 1, 'who has a lease that it knows renews it');
$copy->stop('immediate');
start_server($copy);
ok_from($copy, $until, 'any node, after a crash, too');
ok_from($copy, $until, 'the one that was lost', $lost->{node_id});

# until a time
at($until + 10, $copy);
is(seconds_of($copy, "something_was_lost(to_timestamp($zero + $until + 100000))"), $until + 100000, 'until a given time');
like(somebody_else($copy), $waits, 'then nobody is granted a node');
isnt(seconds_of($copy, 'nothing_was_lost()'), '', 'it is taken back like a change that was noticed');
like(somebody_else($copy), $granted, 'and all is as before');

# another realm in its place, which knows nothing, and where leases were for a day
my $day = 24 * 3600;
my $endless = lease_statement(8, 'endless', node_id => 40, ttl => '1000 years');
$counts = seconds_of($copy, "set_max_ttl('1 day')");
at($counts, $copy);
like(ask($copy, $endless), $granted, 'a lease without end');
$grown = lease($copy, 'for a day', node_id => 50);
grow($copy, $grown, $counts + 2 * $day);
at($counts + 2 * $day - 1, $copy);
renew($copy, $grown);
$copy->safe_psql('postgres', 'DROP EXTENSION scru64_realm; CREATE EXTENSION scru64_realm');
seconds_of($copy, "set_max_ttl('1 day')");
like(ask($copy, $endless), $granted, 'again, in a realm that was made anew');
is(seconds_of($copy, 'something_was_lost()'), $grown->{expires} + $slack, 'it waits as long as leases were');
ok_from($copy, $grown->{expires} + $slack, 'a realm that was made anew', 50);
like(somebody_else($copy, 40), $not_free, 'nobody gets what has no end');
$copy->stop;

ok_promised_once(5);
done_testing();
