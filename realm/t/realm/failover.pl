# A realm that is promoted or copied grants nobody else what the one before it granted
# without its knowing; and no more than that has to wait.
#
# Clocks stand still where they are set, so that this takes the same turns on any
# machine: times are seconds, and the standbys of a realm do not know what happened
# after 0.

use strict;
use warnings;
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
# A lease that has ended, whose successor is lost; and leases without end that are lost
#
$realm = start_realm('three');
$standby = add_realm_standby($realm, 'three_promoted');
my $forever = lease($realm, 'forever', node_id => 31);
grow($realm, $forever, 200);
at(0, $realm);
my $first = lease($realm, 'first', node_id => 30);
leave_behind($realm, $standby);
$until = $first->{expires} + $slack;
at($until, $realm);
my $successor = lease($realm, 'its successor', node_id => 30);
my $endless = lease($realm, 'endless', node_id => 32, ttl => '1000 years');
is($endless->{expires}, $until + $first_ttl, 'a lease without end, which is not reported to be one');
is(renew($realm, $forever, ttl => '1000 years'), $until + $max_ttl, 'nor is who renews without end');
$realm->stop('immediate');

promote($until + 9, $standby);
like(somebody_else($standby), $waits, 'the promoted standby grants nothing');
at(50, $standby);
like(renew($standby, $first), $not_active, 'what was over is not renewed when its clock goes back');
my $growing = $until + 9 + $until + 9 + 2 * $slack + $slack;
ok_from($standby, $growing, 'the lease without end that was lost', 32);
like(somebody_else($standby, 30), qr/ERROR:  55/, 'the one whose successor was lost may have been renewed, too');
ok_from($standby, $until + 9 + $max_ttl + $slack, 'it', 30);
ok_from($standby, $until + 9 + $max_ttl + $slack, 'the lease that was renewed without end', 31);
$standby->stop;

#
# A promotion that nobody noticed, and a second one that lost nothing
#
$realm = start_realm('five');
$standby = add_realm_standby($realm, 'five_promoted');
$grown = lease($realm, 'grown', node_id => 50);
grow($realm, $grown, 60);
at(0, $realm);
lease($realm, 'young');
leave_behind($realm, $standby);
at(1, $realm);
is(renew($realm, $grown, ttl => '1 hour'), 1 + $max_ttl, 'a renewal that is lost again');
$realm->stop('immediate');
promote(2, $standby);
$second = add_realm_standby($standby, 'five_promoted_again');
catch_up($standby, $second);
$standby->stop;
promote(20, $second);
is(ask($second, $taken_back), '', 'nothing_was_lost() is not for two promotions at once');
ok_from($second, 20 + $first_ttl + $slack, 'after both');
ok_from($second, 20 + $max_ttl + $slack, 'what was renewed before both', 50);
$second->stop;

#
# A leap of the clock before the failover.  What is lost was granted after it, and is as old
# as the standby is behind; the greatest time in the ledger makes it seem younger.  prune()
# deletes what has ended, but for the last change: it alone knows that the clock went back.
#
$realm = start_realm('six');
$standby = add_realm_standby($realm, 'six_promoted');
at(50 + 150, $realm);
lease($realm, 'in a leap', node_id => 60);
at(51, $realm);
$first = lease($realm, 'after it', node_id => 61);
$realm->safe_psql('postgres', "SELECT scru64_realm.release('$first->{id}')");
end_window($first->{window}, $first->{window}{start});
at(52 + $slack, $realm);
is(ask($realm, "SELECT scru64_realm.prune('0')"), '0', 'prune() keeps the last change after a leap');
leave_behind($realm, $standby);
$lost = lease($realm, 'lost', node_id => 62);
grow($realm, $lost, 1900);
at(1850, $realm);
is(renew($realm, $lost), 1850 + 1850 - 52 - $slack, 'a lease that is lost has grown');
$realm->stop('immediate');
promote(1851, $standby);
like(somebody_else($standby), $waits, 'promoted, 30 minutes behind');
at($lost->{expires} - 1, $standby);
like(somebody_else($standby, 62), $waits, 'while somebody has the node that was lost, it is not leased again');
ok_from($standby, 1851 + 1800 + 2 * $slack + $slack, 'after as long as the lost one may be', 62);
$standby->stop;

#
# A leap that is lost itself, and in which a node got its next holder: its owner does as
# doc/realm.md says.
#
$realm = start_realm('seven');
$standby = add_realm_standby($realm, 'seven_promoted');
at(0, $realm);
$first = lease($realm, 'over in the leap', node_id => 70);
leave_behind($realm, $standby);
at(601, $realm);
$lost = lease($realm, 'its successor', node_id => 70);
is(renew($realm, lease($realm, 'lost', node_id => 72)), 601 + $first_ttl, 'leases in a leap that is lost');
$realm->stop('immediate');
promote(2, $standby);
$standby->safe_psql('postgres', q(
SELECT scru64_realm.revoke(lease_id) FROM scru64_realm.ledger WHERE occupied_until < now() + interval '10 minutes 30 s';
SELECT scru64_realm.something_was_lost(until => now() + interval '10 minutes' + interval '1 hour' + interval '30 s');
));
like(renew($standby, $first), qr/ERROR:  55000: lease was revoked/, 'what ended in it is not renewed');
at($lost->{expires} - 1, $standby);
like(somebody_else($standby, 72), $waits, 'and while somebody may have a node that was leased in it, none is leased');
ok_from($standby, 2 + 600 + $max_ttl + $slack, 'after as long as that may be', 70);
$standby->stop;

#
# Clocks: of the host that a realm comes to, and those of before
#
$realm = start_realm('four');
at(0, $realm);
$first = lease($realm, 'first', node_id => 40);
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

ok_promised_once(23);
done_testing();
