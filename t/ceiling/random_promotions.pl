# Two servers take turns: the primary goes down under load, in whatever way, the standby is
# promoted, and pg_rewind has the old primary follow it.  All clocks are off, by up to eight
# seconds both ways.  In half of the rounds a disk or the standby is slow, or the standby away,
# and statements are cancelled.
#
# No ID of a row that is there comes again, and each node's IDs increase.  Of IDs that clients
# have seen, none comes again if their commits wait for the standby, nor a smaller one.  The
# simulator (unit_tests/sim/) tries each rule, t/ceiling/promotion each way; here PostgreSQL does all at once.
# SCRU64_PROMOTIONS: how many; SCRU64_SEED: which.

use strict;
use warnings;
use File::Copy;
use Scru64Clock;
use Scru64Copies;
use Scru64Disk;
use Scru64Files;
use Scru64Loads;
use Scru64Random;
use Scru64Server;
use Scru64Test;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;
plan skip_all => 'no clock can be set, or there is no pg_rewind' if !can_set_clock() || !has_program('pg_rewind');

my $promotions = $ENV{SCRU64_PROMOTIONS} || 16;
my $template = make_template('template', allows_streaming => 1, extra => ['--wal-segsize=1']);
my ($primary, $standby) = map { copy_server($template, "server_$_") } (1, 2);
my $rows = 0;
# of each node the greatest ID that was replicated, because a client has it that waits for that
my %replicated;
# what all clocks are about
my $clock_base = 0;

seed_random();
sub set_some_clock { return set_clock($_[0], sprintf('%+.1f', $clock_base + rand(16) - 8)) }
sub set_latest_clock { return set_clock($_[0], sprintf('%+.1f', $clock_base + 8)) }

# A session that logs the IDs that it gets: in rows of one node, or of some of which none is in a row
sub start_session
{
	my ($spec) = @_;
	my $level = one_of('on', 'remote_write', 'remote_apply', 'local', 'off');
	my $writes = defined $spec;
	my $statement = $writes ? "SELECT give('$spec', 3)" : 'SELECT scru64_generate(10)';

	$spec //= one_of('9/8', '3000/12');
	my ($client) = start_clients($primary, 1, name => 'client', variables => ['VERBOSITY=verbose'],
		sql => join('', ("$statement;\n" x 9, "\\! exec sleep 0.06\n") x 1400),
		options => "-c scru64.node_spec=$spec -c synchronous_commit=$level -c statement_timeout=" . one_of(0, 0, 50, 300, 2000));
	return { %{$client}, spec => $spec, waits => $level !~ /local|off/, writes => $writes };
}

# The first that was wrong with what clients got
sub what_was_wrong
{
	my (%count, %greatest, @wrong);

	foreach my $client (@_)
	{
		my $spec = $client->{spec};
		my $last = $replicated{$spec} // '';

		finish_clients($client);
		foreach my $id (ids_of($client))
		{
			push @wrong, "$id of $spec after $last" if $id le $last;
			push @wrong, "$id of $spec twice" if $count{$id}++;
			$last = $id;
		}
		$greatest{$spec} = $last if $client->{waits} && $last gt ($greatest{$spec} // '');
		# what is cancelled, and a clock that is too far behind; no talk of commits of those that have none
		push @wrong, grep { /ERROR:  (?!57014|58000)/ || /canceling wait/ && !$client->{writes} } split(/\n/, slurp_file("$client->{base}.err"));
	}
	%replicated = (%replicated, %greatest);
	return $wrong[0];
}

# Faults.  Each is taken back after some seconds, whatever happens meanwhile.
sub stop_process
{
	my ($seconds, $type) = @_;
	my (undef, $pid) = $standby->psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = '$type'");

	return $pid && kill('STOP', $pid) && soon($seconds, "kill -CONT $pid");
}

my $is_away = 0;
my @faults = (
	[ 'primary: flushes held', sub { hold_flushes_for($primary, $_[0]) } ],
	[ 'primary: slow flushes', sub { slow_flushes_for($primary, $_[0]) } ],
	[ 'primary: clock far ahead', sub { $clock_base += 20; set_latest_clock($primary) } ],
	[ 'primary: sender terminated', sub { $primary->psql('postgres', 'SELECT pg_terminate_backend(pid) FROM pg_stat_replication') } ],
	[ 'primary: statements cancelled', sub { $primary->psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'client'") } ],
	[ 'standby: flushes held', sub { hold_flushes_for($standby, $_[0]) } ],
	[ 'standby: slow flushes', sub { slow_flushes_for($standby, $_[0]) } ],
	[ 'standby: receiver stopped', sub { stop_process($_[0], 'walreceiver') } ],
	[ 'standby: replay stopped', sub { stop_process($_[0], 'startup') } ],
	[ 'standby: away', sub { $standby->stop(one_of('immediate', 'fast')); $is_away = 1 } ]);

sub bring_back { start_server($standby) if $is_away; return $is_away = 0 }

# Have the old primary follow the new one.
sub follow
{
	my ($new, $old) = @_;
	my ($data, $conf) = ($old->data_dir, $old->basedir . '/postgresql.conf');
	my @command = ('pg_rewind', '--no-sync', '--target-pgdata', $data, '--source-server', $new->connstr('postgres'));

	copy("$data/postgresql.conf", $conf) or die "could not copy $conf: $!";
	# it reads the timeline from the source's control file; and processes that were killed need a moment to go
	$new->safe_psql('postgres', 'CHECKPOINT');
	wait_until(sub { IPC::Run::run(\@command, '>', "$conf.log", '2>&1') }) or die 'pg_rewind: ' . slurp_file("$conf.log");
	copy($conf, "$data/postgresql.conf") or die "could not copy $conf: $!";
	append_to_file("$data/standby.signal", '');
	start_server($old);
	return;
}

foreach my $pair ([ $primary, $standby ], [ $standby, $primary ])
{
	my ($server, $other) = @{$pair};

	make_disk($server) or note('there is no compiler');
	set_some_clock($server);
	$server->enable_streaming($other);
	$server->append_conf('postgresql.conf', "synchronous_standby_names = '" . $other->name . "'");
}
unlink($primary->data_dir . '/standby.signal');
start_server($_) foreach ($primary, $standby);

foreach my $round (1 .. $promotions)
{
	my $end = one_of('kill -9', 'immediate', 'fast');
	my $name = "promotion $round, after $end";
	my @plan = chance(0.5) ? map({ [ @{ one_of(@faults) }, sprintf('%.2f', 6 * rand()**3) ] } 0 .. rand(4)) : ();
	# the third node is saturated
	my @specs = ('1/8', '700/12', '7/20', undef, undef, undef, undef);
	my @clients = map { start_session($_) } @specs;

	# if it refuses, all have their IDs once its clock is as far ahead as any was
	for (my $look = 1; $look < 1000 && !-s "$clients[0]{base}.out"; $look++)
	{
		set_latest_clock($primary) if $look == 30;
		sleep(0.01);
	}
	$standby->poll_query_until('postgres', "SELECT count(*) > $rows FROM ids") || die 'no rows are replicated' if !@plan;
	sleep(rand(0.3));
	set_some_clock($_) foreach (grep { chance(0.5) } $primary, $standby);
	foreach my $fault (@plan)
	{
		my ($what, $code, $seconds) = @{$fault};

		sleep(rand(0.5));
		next if $is_away && $what =~ /^standby/;
		note($what);
		$code->($seconds);
	}
	if (chance(0.4))
	{
		# who waits for the clock needs one that is as far ahead as any was
		set_latest_clock($primary);
		bring_back();
		my $ended = "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'client' AND state = 'active' AND query_start <= ";
		ok($primary->poll_query_until('postgres', "$ended'" . $primary->safe_psql('postgres', 'SELECT clock_timestamp()') . q(')), "$name: no statement goes on for ever");
	}
	$end eq 'kill -9' ? kill_server($primary) : $primary->stop($end);
	bring_back();
	$standby->promote;
	is(what_was_wrong(@clients), undef, "$name: IDs of clients");
	my ($wrong, $count, $again) = split(/\|/, $standby->safe_psql('postgres', 'SELECT wrong_nodes(), count(*), count(*) - count(DISTINCT id) FROM ids'));
	is("$wrong $again", ' 0', "$name: $count rows, in order, each with an ID of its own");
	# a standby that was slow or away may have none of the round
	cmp_ok($count, @plan ? '>=' : '>', $rows, "$name: rows of before, and more");
	$rows = $count;
	($primary, $standby) = ($standby, $primary);
	follow($primary, $standby) if $round < $promotions;
}
$primary->stop('immediate');
done_testing();
