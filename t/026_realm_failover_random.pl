# A realm that fails over, is restored, copied, crashes, whose clocks leap and whose
# owner changes his mind, at random; and holders who lease, renew, release and split
# meanwhile, and do not always hear the answer.  What one was promised, nobody else is,
# by any of the realms that there ever were.
#
# SCRU64_REALM_FAULTS: for how many seconds, for example 60; SCRU64_SEED: which.
#
# The rules have conditions, and chance keeps to them: the clocks of hosts that a realm
# moves to are right, to 15 seconds; what is lost is younger than max_ttl; who takes over
# from whom is fenced; and what nobody can notice, the owner says, as a leap of the clock
# that was lost, or in which the last known change was made.
# Clocks are moved on by minutes and hours at a time, so that days go by.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use File::Path qw(rmtree);
use List::Util qw(max min);
use Scru64Fault;
use Scru64Random;
use Scru64Realm;
use Scru64Test;

plan skip_all => 'takes its time: set SCRU64_REALM_FAULTS to some seconds' if !$ENV{SCRU64_REALM_FAULTS};
plan skip_all => 'libfaketime is not installed' if !can_set_clock();

my $seed = seed_random();
my %count;		# how often what happened

my $template = make_template('template', allows_streaming => 1, extra => ['--wal-segsize=1']);
$template->append_conf('postgresql.conf', "wal_keep_size = 64MB\nmax_wal_size = 64MB\nmin_wal_size = 2MB\nlog_checkpoints = off\n");

my $create_realm = q(
CREATE EXTENSION scru64_realm;

-- What was promised is not taken back.
CREATE OR REPLACE FUNCTION check_promise() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.expires_at < OLD.expires_at
		OR NEW.occupied_until < OLD.occupied_until AND NEW.released_at IS NULL
		OR scru64_realm_internal.tick(NEW.occupied_until) < NEW.last_id::bigint >> 24 AND NEW.released_at IS NOT NULL
		OR OLD.released_at IS NOT NULL AND NEW <> OLD
	THEN
		RAISE EXCEPTION 'promise: % became %', OLD, NEW USING ERRCODE = 'XX000';
	END IF;
	RETURN NEW;
END
$$;
CREATE TRIGGER promise BEFORE UPDATE ON scru64_realm.ledger FOR EACH ROW EXECUTE FUNCTION check_promise();
);

#
# Hosts and their clocks
#
# All are at $now, give or take what the host's clock is off by; a leap of the primary's
# clock comes on top.  They go on by themselves, too.
#
my $now = 1;
my $leap = 0;
my $hosts = 0;
my ($primary, $session, $standby, %off_by);
my $furthest = 0;
# how far ahead the clock was at the last change, and where
my %last_change = (leap => 0, reading => 0);
my @retired;

sub set_clocks
{
	$furthest = max($furthest, $now + $leap);
	foreach my $host (grep { defined } $primary, $standby)
	{
		set_clock($host, sprintf('%+.3f', $now + $off_by{ $host->name } + ($host == $primary ? $leap : 0)));
	}
	return;
}

sub move_on
{
	my ($seconds) = @_;

	$now += $seconds;
	set_clocks();
	return;
}

# A session of the primary, which a crash ends.
sub connect_primary
{
	eval { $session->quit } if defined $session;
	$session = open_session($primary);
	return;
}

# An answer or an error, both on one line each.
sub call
{
	my ($sql) = @_;
	my ($out, $err) = try_statement($session, $sql);

	die "the server has gone: $err" if $err =~ /connection to server was lost|server closed the connection/;
	return ($out, $err =~ /ERROR:  ([0-9A-Z]{5}): (.*)/ ? "$1 $2" : '');
}

# A statement that has to be.
sub must
{
	my ($sql) = @_;
	my ($out, $err) = call($sql);

	BAIL_OUT("$sql: $err") if $err ne '';
	return $out;
}

sub retire
{
	my ($host) = @_;

	$host->stop('immediate', fail_ok => 1);
	rmtree($host->data_dir);
	return;
}

sub new_host
{
	my ($backup_of, $backup) = @_;
	my $host = PostgreSQL::Test::Cluster->new('host_' . ++$hosts);

	$host->init_from_backup($backup_of, $backup);
	$off_by{ $host->name } = rand(14) - 7;
	set_clock($host, sprintf('%+.3f', $now + $off_by{ $host->name }));
	return $host;
}

sub add_standby_of_primary
{
	my $backup = 'for_' . ($hosts + 1);

	$primary->backup($backup, backup_options => ['-cfast']);
	$standby = new_host($primary, $backup);
	$standby->enable_streaming($primary);
	start_server($standby);
	rmtree($primary->backup_dir . "/$backup");
	return;
}

sub follow
{
	my ($follows) = @_;

	$standby->safe_psql('postgres',
		"ALTER SYSTEM SET primary_conninfo = '" . ($follows ? $primary->connstr =~ s/'/''/gr . ' application_name=' . $standby->name : '') . "'");
	$standby->safe_psql('postgres', 'SELECT pg_reload_conf()');
	return if $follows;
	$primary->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM pg_stat_replication WHERE application_name = '" . $standby->name . "'")
	  or BAIL_OUT('the standby still follows');
	return;
}

#
# Holders
#
# A lease: lease_id, window, its name, whether it is without end.  Who has sent a
# release or a split generates no more, whatever comes back.
#
my @leases;
my $holders = 0;
my $block = 3;	# of 8 bits, of which there are nodes of 10 to 14 bits: few
# a promise without end, which no realm may lose
my $endless_promised = 0;
my $with_endless = chance(0.3);
# what nobody has heard the answer to
my @unheard;

sub count
{
	my ($what, $err) = @_;

	$count{ $what . ($err ne '' ? ' ' . (split(/ /, $err))[0] : '') }++;
	return;
}

# A question that is repeated may change nothing.
sub count_change
{
	my ($what, $err, $is_repeated) = @_;

	count($what, $err);
	%last_change = (leap => $leap, reading => $now + $leap) if $err eq '' && !($is_repeated && $leap == 0);
	return;
}

sub lease_some
{
	my $is_repeated = @unheard && chance(0.5);

	ask_for_lease($is_repeated ? splice(@unheard, rand(@unheard), 1) : new_question(), $is_repeated);
	return;
}

sub ask_for_lease
{
	my ($asks, $is_repeated) = @_;
	my ($size, $holder, $named) = @{$asks};
	my ($out, $err) = call(lease_sql($size, $holder, %{$named}));
	my ($id, $lo, $hi, $start, $limit) = split(/\|/, $out);

	count_change('lease', $err, $is_repeated);
	$block++ if $err =~ /^53400/ && chance(0.1);
	if ($err eq '' && chance(0.15))
	{
		$count{'lease lost'}++;
		push @unheard, $asks if defined $named->{request};
	}
	elsif ($err eq '')
	{
		push @leases, new_lease("$holder of " . $primary->name, $id, $lo, $hi, $start, $limit);
	}
	return;
}

sub new_lease
{
	my ($name, $id, @window) = @_;

	return { id => $id, name => $name, window => new_window($name, @window) };
}

sub new_question
{
	my $size = 10 + int(rand(5));
	my %named = (
		within => "$block/8",
		ttl => one_of(undef, '1 hour', '1 day', int(1 + rand(200)) . ' s', $with_endless && chance(0.03) ? '1000 years' : '10 s'));

	$holders++;
	$named{request} = sprintf('%08x-0000-4000-8000-%012x', $seed % 2**32, $holders) if chance(0.5);
	return question_for(one_of(recent_leases()), %named) if @leases && chance(0.4);
	return [ $size, "holder $holders", \%named ];
}

# What somebody has, or has had, another one asks for.
sub question_for
{
	my ($lease, %named) = @_;
	my $size = size_of_window($lease->{window});

	$named{node_id} = $lease->{window}{lo} >> (24 - $size);
	delete $named{within};
	return [ $size, "holder $holders", \%named ];
}

# Few, so that each is renewed often enough to grow old.
sub recent_leases
{
	return @leases[ max(0, @leases - 15) .. $#leases ];
}

# An ID of a lease, which its holder may report as its last one.
sub some_id
{
	my ($lease) = @_;
	my $window = $lease->{window};
	my $clock = int(must('SELECT scru64_realm_internal.tick(scru64_realm.clock())'));
	my $tick = chance(0.2) ? $window->{limit} : $clock + int(rand(60) - 20);

	$tick = max($window->{start}, min($tick, $window->{limit}));
	return ($tick, ($tick << 24) + $window->{lo} + int(rand($window->{hi} - $window->{lo})));
}

sub renew_some
{
	my ($lease) = @_;
	my (undef, $last_id) = chance(0.2) ? some_id($lease) : ();
	my $sql = renew_sql($lease->{id},
		ttl => one_of(undef, undef, '1 hour', int(1 + rand(600)) . ' s', $with_endless && chance(0.02) ? '1000 years' : '1 day'));

	$sql =~ s/\)$/, last_id => ${last_id}::bigint::scru64)/ if defined $last_id;
	my ($out, $err) = call($sql);
	count_change('renew', $err);
	if ($err ne '')
	{
		# asked again sometimes, when clocks are another
		@leases = grep { $_ != $lease } @leases if chance(0.6);
		return;
	}
	if (chance(0.15))
	{
		$count{'renew lost'}++;
		return;
	}
	my (undef, $limit) = split(/\|/, $out);
	raise_limit($lease->{window}, $limit);
	$endless_promised = 1 if $limit == 282429536479;
	return;
}

sub release_some
{
	my ($lease) = @_;
	my $with_last = chance(0.7);
	my ($tick, $last_id) = some_id($lease);

	@leases = grep { $_ != $lease } @leases;
	if (!$with_last)
	{
		# its word is that it was not ahead of the realm's clock
		$tick = int(must('SELECT scru64_realm_internal.tick(scru64_realm.clock())'));
	}
	end_window($lease->{window}, max($tick, $lease->{window}{start}));
	return if chance(0.05);
	my (undef, $err) = call("SELECT scru64_realm.release('$lease->{id}'" . ($with_last ? ", ${last_id}::bigint::scru64" : '') . ')');
	count_change($with_last ? 'release' : 'release without ID', $err);
	return;
}

sub size_of_window
{
	my ($window) = @_;

	return 24 - int(log($window->{hi} - $window->{lo}) / log(2) + 0.5);
}

sub split_some
{
	my ($lease) = @_;
	my $size = size_of_window($lease->{window}) + 1 + int(rand(2));

	return if $size > 16;
	my ($tick, $last_id) = some_id($lease);
	@leases = grep { $_ != $lease } @leases;
	end_window($lease->{window}, max($tick, $lease->{window}{start}));
	my ($out, $err) = call(
		"SELECT lease_id, node_id << (24 - node_id_size), (node_id + 1) << (24 - node_id_size), scru64_realm_internal.tick(granted_at), scru64_realm_internal.tick(expires_at)
FROM scru64_realm.split('$lease->{id}', $size, ${last_id}::bigint::scru64), scru64_parse_node_spec(node_spec)");
	count_change('split', $err);
	return if $err ne '' || chance(0.15);
	foreach my $row (split(/\n/, $out))
	{
		my ($id, $lo, $hi, $start, $limit) = split(/\|/, $row);
		push @leases, new_lease("part of $lease->{name}", $id, $lo, $hi, $start, $limit);
		$endless_promised = 1 if $limit == 282429536479;
	}
	return;
}

# What holders do for a while.
sub holders_act
{
	my ($calls, $step) = @_;

	for my $n (1 .. $calls)
	{
		my $lease = @leases ? one_of(recent_leases()) : undef;
		my $what = rand();

		move_on(rand($step)) if chance(0.5);
		if (!defined $lease || $what < 0.2) { lease_some() }
		elsif ($what < 0.85) { renew_some($lease) }
		elsif ($what < 0.95) { release_some($lease) }
		else { split_some($lease) }
	}
	return;
}

#
# What its owner does
#
# the longest max_ttl that the settings have had
my $longest = 3600;

sub set_something
{
	my ($what, $value) = @{ one_of(
		[ 'set_max_ttl', one_of(60, 300, 900, 1800, 3600) ],
		[ 'set_max_ttl', one_of(60, 300, 900, 1800, 3600) ],
		[ 'set_first_ttl', one_of(20, 60, 131, 300) ],
		[ 'set_guard', one_of(0, 0, 11, 30, 60) ]) };

	must("SELECT scru64_realm.$what('$value s'" . ($what eq 'set_guard' ? ', true' : '') . ')');
	$longest = max($longest, $value) if $what eq 'set_max_ttl';
	count($what, '');
	return;
}

sub prune_some
{
	must(sprintf("SELECT scru64_realm.prune('%d s')", chance(0.5) ? 0 : rand(4000)));
	count('prune', '');
	return;
}

sub revoke_some
{
	must("SELECT scru64_realm.revoke(lease_id) FROM scru64_realm.ledger WHERE released_at IS NULL ORDER BY random() LIMIT 1");
	count('revoke', '');
	return;
}

sub max_ttl_s
{
	return must('SELECT extract(epoch FROM max_ttl) FROM scru64_realm_internal.limits(scru64_realm.clock())');
}

#
# What happens to the realm
#

# Its clock leaps, for a while, and is right again.
sub leap
{
	leap_by(chance(0.2) ? (chance(0.5) ? 1 : -1) * (86400 + rand(2 * 86400)) : random_clock());
	holders_act(1, 1) if chance(0.5);
	catch_up($primary, $standby);
	return;
}

sub leap_by
{
	$leap = $_[0];
	count('clock ' . ($leap < 0 ? 'back' : 'ahead'), '');
	set_clocks();
	holders_act(1 + int(rand(10)), one_of(1, 30));
	$leap = 0;
	set_clocks();
	return;
}

sub crash
{
	$primary->stop('immediate');
	start_server($primary);
	connect_primary();
	count('crash', '');
	return;
}

# The standby takes over; the primary is fenced.
sub promote
{
	my ($unseen) = @_;

	push @retired, $primary;
	$standby->promote;
	$primary = $standby;
	undef $standby;
	set_clocks();
	connect_primary();
	must('ALTER SYSTEM RESET primary_conninfo');
	something_was_lost($unseen) if defined $unseen;
	# noticed while its clock is right
	move_on(rand(3)) if chance(0.5);
	lease_some();
	# nothing can be lost, so it may be wrong
	if (chance(0.3))
	{
		leap_by(-rand(one_of(300, 4000)));
	}
	return;
}

# Up to when it grants leases again, about.
sub move_on_to_grants
{
	my ($factor) = @_;
	my $waits_for = must("SELECT extract(epoch FROM (scru64_realm_internal.last_failover()).granting_from - scru64_realm.clock())");

	move_on($waits_for * $factor) if $waits_for > 0;
	return;
}

# Something is done that will be lost: for less than max_ttl, as long as it may be. Returns
# how far the clock was ahead in a leap that the ledger does not show; undef if there is none.
sub lag
{
	my $most = 0.5 * max_ttl_s();
	my $since = $now;
	my %known = %last_change;
	my $with_leaps = chance(0.3);
	my @unseen;

	renew_some($_) foreach (grep { chance(0.5) } recent_leases());
	lease_some() for (1 .. int(rand(4)));
	# some grow as old as they may be
	my @kept = @leases[ max(0, @leases - 3) .. $#leases ];
	while ($now - $since < $most && chance(0.9))
	{
		if ($with_leaps && chance(0.3))
		{
			$leap = random_clock();
			push @unseen, max($leap, 0) if abs($leap) > 15;
			set_clocks();
		}
		renew_some($_) foreach (@kept);
		holders_act(1 + int(rand(8)), min($most / 16, one_of(1, 20, 100), 20 + ($now - $since) / 3));
		$leap = 0;
		set_clocks();
		chance(0.3) ? set_something() : chance(0.2) ? prune_some() : chance(0.2) ? revoke_some() : 0;
	}
	renew_some($_) foreach (@kept);
	# what is ahead of the clock still, by more than any guard time, can be seen
	push @unseen, $known{leap} if $known{leap} > 15 && $known{reading} < $now + 90;
	$count{'leap unseen'}++ if @unseen;
	$count{'leap seen'}++ if !@unseen && $furthest > $now + 60;
	return max(@unseen);
}

sub asynchronous_failover
{
	if (chance(0.4))
	{
		# out of the last failover's wait, in which what is known does not count
		move_on(5000) if chance(0.7);
		leap_by(rand(one_of(-1000, 300, 600, 3600)));
		holders_act(1 + int(rand(5)), 1) if chance(0.7);
	}
	catch_up($primary, $standby);
	follow(0);
	my $unseen = lag();
	$primary->stop('immediate') if chance(0.7);
	promote($unseen);
	move_on_to_grants(1 + rand(one_of(0.1, 0.5))) if chance(0.7);
	if (chance(0.7))
	{
		ask_for_lease(question_for($_)) foreach (recent_leases());
	}
	count('asynchronous failover', '');
	return;
}

sub synchronous_failover
{
	must("ALTER SYSTEM SET synchronous_standby_names = '*'");
	must('SELECT pg_reload_conf()');
	$primary->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
	  or BAIL_OUT('no synchronous standby');
	catch_up($primary, $standby);
	holders_act(1 + int(rand(20)), one_of(1, 20));
	$primary->stop('immediate');
	promote();
	must('ALTER SYSTEM RESET synchronous_standby_names');
	must('SELECT pg_reload_conf()');
	holders_act(int(rand(4)), 1);
	if (chance(0.8))
	{
		must('SELECT scru64_realm.nothing_was_lost()');
		count('nothing was lost', '');
	}
	count('synchronous failover', '');
	return;
}

sub switchover
{
	catch_up($primary, $standby);
	$session->quit;
	undef $session;
	$primary->stop('fast');
	promote();
	holders_act(int(rand(4)), 1);
	if (chance(0.7))
	{
		must('SELECT scru64_realm.nothing_was_lost()');
		count('nothing was lost', '');
	}
	count('switchover', '');
	return;
}

# A base backup of before, and how it is started: with a signal file, or as it is.
sub restore
{
	my ($with_signal) = @_;
	my $from = $primary;

	# a lease without end would be lost for ever
	return if $endless_promised;
	$primary->backup('restored', backup_options => ['-cfast']);
	my $unseen = lag();
	# older than what is promised at most, sometimes
	my $is_old = chance(0.3);
	holders_act(30, 400) if $is_old;
	if ($endless_promised)
	{
		rmtree($from->backup_dir . '/restored');
		return;
	}
	retire($standby);
	push @retired, $primary;
	$primary = new_host($from, 'restored');
	undef $standby;
	rmtree($from->backup_dir . '/restored');
	$primary->append_conf('postgresql.conf', "restore_command = 'false'\n");
	append_to_file($primary->data_dir . '/recovery.signal', '') if $with_signal;
	start_server($primary);
	$primary->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or BAIL_OUT('in recovery');
	connect_primary();
	# nobody notices the copy, or how old the backup is
	something_was_lost($unseen) if !$with_signal || $is_old || defined $unseen;
	lease_some();
	count($with_signal ? 'backup restored' : 'copy without a signal file', '');
	return;
}

sub something_was_lost
{
	my ($ahead) = @_;

	my $guard = "(SELECT greatest(guard, '30 s') FROM scru64_realm.settings)";

	must("SELECT scru64_realm.revoke(lease_id) FROM scru64_realm.ledger WHERE occupied_until < scru64_realm.clock() + '$ahead s' + $guard")
	  if $ahead;
	must("SELECT scru64_realm.something_was_lost(scru64_realm.clock() + '" . (($ahead // 0) + $longest) . " s' + $guard)");
	count('something was lost', '');
	return;
}

# What the owner says and takes back.
sub say_what_is_not_so
{
	something_was_lost() for (1 .. 1 + int(rand(2)));
	holders_act(int(rand(10)), one_of(1, 20));
	must('SELECT scru64_realm.nothing_was_lost()');
	count('said for nothing', '');
	return;
}

sub make_anew
{
	return if $endless_promised;
	must('DROP EXTENSION scru64_realm');
	$primary->safe_psql('postgres', $create_realm);
	something_was_lost(max(0, $furthest - $now));
	count('made anew', '');
	return;
}

# how often, and what
my @faults = (
	[ 20, \&asynchronous_failover ],
	[ 10, \&synchronous_failover ],
	[ 10, \&switchover ],
	[ 6, sub { restore(1) } ],
	[ 5, sub { restore(0) } ],
	[ 8, \&crash ],
	[ 20, \&leap ],
	[ 10, \&prune_some ],
	[ 15, \&set_something ],
	[ 5, \&revoke_some ],
	[ 2, \&say_what_is_not_so ],
	[ 2, \&make_anew ]);

start_server($template);
$template->safe_psql('postgres', $create_realm);
$template->stop;
$template->backup_fs_cold('realm');

$primary = new_host($template, 'realm');
start_server($primary);
connect_primary();
must("SELECT scru64_realm.set_max_ttl('900 s')") if chance(0.5);
must("SELECT scru64_realm.set_guard('0', true)") if chance(0.5);

my $end = time() + $ENV{SCRU64_REALM_FAULTS};
while (time() < $end)
{
	add_standby_of_primary() if !defined $standby;
	# those that were left running
	retire(shift(@retired)) while (@retired > 1);
	if (chance(0.7))
	{
		holders_act(1 + int(rand(100)), one_of(1, 10, 10, 60, 200));
	}
	move_on(one_of(1, 10, 100, 1000, 5000)) if chance(0.5);
	one_by_weight(@faults)->[1]->();
	move_on_to_grants(0.5 + rand(0.6)) if chance(0.7);
}
eval { $session->quit };
retire($_) foreach (@retired, grep { defined } $primary, $standby);

note(join(', ', map { "$_: $count{$_}" } sort keys %count));
note(sprintf('%.1f days', $now / 86400));
is(join(', ', grep { / [0-9A-Z]{5}$/ && !/22023|53400|55000|55006/ } sort keys %count), '', 'no other errors than there are to be');
ok_promised_once(20, "seed $seed");
done_testing();
