# What a realm promises at most, also while its owner changes that, so that it is known
# how long a realm that has lost something has to wait; and owners that say that it has.
#
# Clocks stand still where they are set: times are seconds.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Scru64Fault;
use Scru64Realm;
use Test::More;

plan skip_all => 'needs libfaketime' if !can_set_clock();

my ($max_ttl, $first_ttl, $slack) = (600, 131, 30);

make_realm_template();

# What an owner's call returns, in seconds.
sub seconds_of
{
	my ($node, $call) = @_;

	return ask($node, "SELECT (extract(epoch FROM scru64_realm.$call) - $zero)::integer");
}

# A realm whose max_ttl is 10 minutes, at 0.
sub realm_at_0
{
	my ($name) = @_;
	my $realm = start_realm($name);

	at(-4900, $realm);
	is(seconds_of($realm, "set_max_ttl('$max_ttl s')"), -4900, 'a reduction counts at once');
	return $realm;
}

# A copy of a realm that is stopped, as it is; and go on with both.
sub started_copy
{
	my ($realm, $name) = @_;

	$realm->backup_fs_cold($name);
	my $copy = copy_server($realm, $name, backup => $name, clock => '+0');
	start_server($copy);
	return $copy;
}

#
# max_ttl is raised, and standbys are promoted just before that counts and just after
#
my $realm = realm_at_0('raised');
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
# No promise is for longer than max_ttl from now on.
#
$realm = realm_at_0('bounds');
my $lease = lease($realm, 'for a day', node_id => 20, ttl => '1 day');
is($lease->{expires}, -4900 + $first_ttl, 'a new lease is for first_ttl');
at(-4850, $realm);
is(renew($realm, $lease), -4850 + $first_ttl, 'and so is its renewal as long as it is young');
grow($realm, $lease, -4000);
at(-4100, $realm);
is(renew($realm, $lease), -4100 + $max_ttl, 'one that is old is renewed for max_ttl');
at(-9000, $realm);
is(renew($realm, $lease), -4100 + $max_ttl, 'when the clock is back it keeps what it has, and gets no more');
at(-4000, $realm);
is(seconds_of($realm, "set_max_ttl('5 min')"), -4000, 'a reduction');
is(renew($realm, $lease), -4100 + $max_ttl, 'it takes nothing back');
at(-3700, $realm);
is(renew($realm, $lease), -3700 + 300, 'renewals are for less then');
is(seconds_of($realm, "set_first_ttl('200 s')"), -3700 + 300 + $slack, 'first_ttl is raised like max_ttl');
is(lease($realm, 'young')->{expires}, -3700 + $first_ttl, 'not before that counts');
at(-3700 + 300 + $slack, $realm);
is(lease($realm, 'young')->{expires}, -3700 + 300 + $slack + 200, 'and then');
is(seconds_of($realm, "set_first_ttl('20 s')"), -3370, 'it is reduced like max_ttl');
is(lease($realm, 'young')->{expires}, -3370 + 20, 'at once');

# without end
my $endless = lease($realm, 'endless', node_id => 21, ttl => '1000 years');
is($endless->{expires}, -3370 + 20, 'a lease without end is for first_ttl at first');
at(-3370 + 300 + $slack, $realm);
is(renew($realm, $endless), -3370 + 300 + $slack + 300, 'then for max_ttl');
is(somebody_else($realm, 21) =~ $not_free, 1, 'but nobody else has the node');
at(-3370 + 300 + $slack + 1, $realm);
is(ask($realm, renew_sql($endless->{id}) =~ s/.* FROM scru/SELECT expires_at FROM scru/sr), 'infinity', 'then without end');
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
is(seconds_of($copy, "something_was_lost(to_timestamp($zero + $until + 100000))"), $until + 100000, 'until a time that is told');
like(somebody_else($copy), $waits, 'then nobody is granted a node');
isnt(seconds_of($copy, 'nothing_was_lost()'), '', 'it is taken back like a change that was noticed');
like(somebody_else($copy), $granted, 'and all is as before');

# another realm in its place, which knows nothing
$copy->safe_psql('postgres', 'DROP EXTENSION scru64_realm; CREATE EXTENSION scru64_realm; SELECT scru64_realm.something_was_lost()');
ok_from($copy, $until + 10 + 3600 + $slack, 'a realm that was made anew');
$copy->stop;

ok_told(10);
done_testing();
