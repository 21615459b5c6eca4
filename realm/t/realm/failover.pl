# A realm that is promoted or copied grants nobody else what the one before it granted without its knowing, and
# no more than that has to wait: promotions, hosts whose clocks differ, max_ttl raised around a promotion, and
# owners who say that the realm has lost something.  What clocks that leap, and several failovers, may do is
# tried by realm/t/realm/simulator.pl.
#
# Clocks stand still where they are set, so that this takes the same turns on any
# machine: times are seconds, and the standbys of a realm do not know what happened
# after 0.

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

my ($max_ttl, $first_ttl, $slack) = (3600, 131, 30);
my $day = 86400;

make_realm_template();

sub promote
{
	my ($seconds, $standby) = @_;

	at($seconds, $standby);
	$standby->promote;
	return;
}

#
# An asynchronous standby that is behind by two seconds, and its primary lost
#
my $realm = start_realm('one');
my $standby = add_realm_standby($realm, 'one_promoted');
my $grown = lease($realm, 'grown', node_id => 10);
my $other = lease($realm, 'other', node_id => 11);
my $over = lease($realm, 'over', node_id => 12);
grow($realm, $grown, 60);
grow($realm, $other, 100);
at(-200, $realm);
my $hasty = lease($realm, 'hasty', node_id => 13, ttl => '1 minute');
at(0, $realm);
renew($realm, $other, ttl => '100 s');
leave_behind($realm, $standby);
at(0, $standby);
is($standby->safe_psql('postgres', 'TABLE scru64_realm.leases'), $realm->safe_psql('postgres', 'TABLE scru64_realm.leases'), 'a standby shows the leases');
like(somebody_else($standby), qr/ERROR:  25006: /, 'it grants none');
like(renew($standby, $other), qr/ERROR:  25006: /, 'it renews none');
# The standby knows that this lease lasts for a minute.
at(1, $realm);
is(renew($realm, $grown, ttl => '1 hour'), 1 + $max_ttl, 'a renewal for an hour that the standby does not get');
my $lost = lease($realm, 'lost', ttl => '1 day');
is($lost->{expires}, 1 + $first_ttl, 'nor does it get a lease, which is for no more than first_ttl');
$realm->stop('immediate');
start_server($realm);
like(somebody_else($realm), $granted, 'after its own crash a realm grants leases');
$realm->stop('immediate');

promote(2, $standby);
my $until = 2 + $first_ttl + $slack;
like(somebody_else($standby), $waits, 'the promoted standby grants nothing');
$standby->stop;
start_server($standby);
at(50, $standby);
like(somebody_else($standby), $waits, 'neither does it after a restart');
is(renew($standby, $other), 50 + $max_ttl, 'who has a lease that it knows renews it');
is(scalar(logged($standby, qr/LOG: .*was promoted, restored or copied/)), 1, 'the log says so, once');
ok_from($standby, $until, 'any node');
cmp_ok($until, '<=', 180, 'that is three minutes at most');
lease($standby, 'next of the lost one', node_id => $lost->{node_id});
lease($standby, 'next of one that was over', node_id => 12);
lease($standby, 'next of another', node_id => 13);
ok_from($standby, 2 + $max_ttl + $slack, 'what may have been renewed', 10);
$standby->stop;

#
# A second failover in the grace period.  Before 0 there was a lease that ended
# soon, and was renewed for an hour.
#
$realm = start_realm('two');
$standby = add_realm_standby($realm, 'two_promoted');
my $short = lease($realm, 'short', node_id => 20);
grow($realm, $short, 9);
at(0, $realm);
$other = lease($realm, 'other', node_id => 21);
leave_behind($realm, $standby);
at(5, $realm);
is(renew($realm, $short, ttl => '1 hour'), 5 + $max_ttl, 'a renewal that is lost');
$realm->stop('immediate');

promote(10, $standby);
like(somebody_else($standby), $waits, 'the promoted standby finds out what it is');
$standby->stop('immediate');
start_server($standby);
like(somebody_else($standby), $waits, 'after a crash, too');
at(100, $standby);
my $second = add_realm_standby($standby, 'two_promoted_again');
renew($standby, $other);
catch_up($standby, $second);
$standby->stop;
# It had all that there was.  So this change has lost nothing, but for the first one.
promote(120, $second);
like(somebody_else($second), $waits, 'promoted again');
ok_from($second, 120 + 120 + 2 * $slack + $slack, 'after the second change');
at(1000, $second);
my $taken_back = "SELECT (extract(epoch FROM scru64_realm.nothing_was_lost()) - $zero)::integer";
is(ask($second, $taken_back), '0', 'nothing_was_lost() returns since when there may have been something to lose');
is(ask($second, $taken_back), '', 'said again, it is about nothing');
ok_from($second, 10 + $first_ttl + $slack, 'with that taken back, after the first change');
$second->safe_psql('postgres', "SELECT scru64_realm.prune('0')");
ok_from($second, 10 + $max_ttl + $slack, 'what may have been renewed before that, also after prune()', 20);
$second->stop;

#
# Clocks: of the host that a realm comes to, and those of before
#
$realm = start_realm('four');
at(0, $realm);
my $first = lease($realm, 'first', node_id => 40);
$realm->stop;
$second = promoted_copy($realm, 'behind', -7200);
like(somebody_else($second), $waits, 'a host whose clock is 2 hours behind');
at(3, $second);
like(renew($second, $first, ttl => '1 minute'), qr/^$first_ttl$/, 'a lease that it knows is renewed');
ok_from($second, $max_ttl + $slack, 'it goes by the time that it knows, and how old that is it cannot know');
$second->stop;

$second = promoted_copy($realm, 'ahead', 3 * $day);
like(somebody_else($second), $waits, 'a host whose clock is 3 days ahead');
at(3, $second);
like(somebody_else($second), $waits, 'when it is right, no lease is granted');
like(renew($second, $first), $not_active, 'nor renewed');
$until = 3 * $day + $max_ttl + $slack;
ok_from($second, $until, 'then');
$second->stop;

start_server($realm);
at(-$day, $realm);
my $left = lease($realm, 'left', ttl => '25 hours');
renew($realm, $left, ttl => '26 hours');
at(3 * $day, $realm);
lease($realm, 'of another time');
at(0, $realm);
renew($realm, $left);
$realm->stop;
$second = promoted_copy($realm, 'right', 2);
somebody_else($second);
ok_from($second, 2 + $max_ttl + $slack, 'the last change made by a clock that was wrong');
$second->stop;

#
# The guard time of leases, which was not always that of the realm
#
$realm = start_realm('eight');
$standby = add_realm_standby($realm, 'eight_promoted');
at(0, $realm);
my $raised = lease($realm, 'before the guard time was raised', node_id => 80, ttl => '1 minute');
$realm->safe_psql('postgres', "SELECT scru64_realm.set_guard('2 s', true)");
my $last = lease($realm, 'with a short one', node_id => 81, ttl => '1 minute');
my $ends = lease($realm, 'with a short one, and ends soon', node_id => 82, ttl => '20 s');
$realm->safe_psql('postgres', "SELECT scru64_realm.set_guard('10 minutes')");
leave_behind($realm, $standby);
$realm->stop('immediate');
promote(2, $standby);
like(somebody_else($standby), $waits, 'the promoted standby grants nothing');
like(renew($standby, $raised, ttl => '1 minute'), qr/^62$/, 'a lease from before the guard time was raised is renewed');
like(renew($standby, $last, ttl => '1 minute'), qr/^62$/, 'one with a short guard time, too, that does not end in 30 seconds');
like(renew($standby, $ends), qr/$not_active\nDETAIL:  .*, this lease had ended, or its node was occupied for 30 more seconds at most/, 'but not one that does');
$standby->stop;

# The realms that follow are others.
ok_promised_once(15);

# What an owner's call returns, in seconds.
sub seconds_of
{
	my ($node, $call) = @_;

	return ask($node, "SELECT (extract(epoch FROM scru64_realm.$call) - $zero)::integer");
}

#
# The table of waits in doc/realm.md
#
$realm = start_realm('raised');
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
my $shorter = 600;
at(-4900, $realm);
is(seconds_of($realm, "set_max_ttl('$shorter s')"), -4900, 'a reduction counts at once');
$grown = lease($realm, 'grown', node_id => 10);
grow($realm, $grown, 20);
at(0, $realm);
my $unaware = add_realm_standby($realm, 'unaware');
leave_behind($realm, $unaware);
my $aware = add_realm_standby($realm, 'aware');
my $again = add_realm_standby($realm, 'again');
my $counts = $shorter + $slack;
is(seconds_of($realm, "set_max_ttl('20 min')"), $counts, 'a raise counts when the realm has known it for long enough');
at(10, $realm);
is(seconds_of($realm, "set_max_ttl('20 min')"), $counts, 'said again, it counts from then on, too');
is(renew($realm, $grown, ttl => '1 hour'), 10 + $shorter, 'before, renewals are for what it was');
leave_behind($realm, $aware);
leave_behind($realm, $again);
grow($realm, $grown, $counts);
at($counts - 1, $realm);
is(renew($realm, $grown, ttl => '1 hour'), $counts - 1 + $shorter, 'to the last second');

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
$lost = lease($realm, 'lost');
$realm->stop;
my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init_from_backup($realm, 'base');
at(2, $copy);
start_server($copy);
like(somebody_else($copy, $lost->{node_id}), $granted, 'a copy without a signal file grants what was granted');
$until = seconds_of($copy, 'something_was_lost()');
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
