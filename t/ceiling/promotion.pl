# A standby is promoted, or a server restored, in whatever way and with whatever
# clocks: no ID of any row that it has is issued again, whether the row is
# committed or in a transaction that is prepared.

use FindBin;
use lib "$FindBin::RealBin/../lib";
use Scru64Fault;
use Scru64Test;

plan skip_all => 'no clock can be set' if !can_set_clock();

# 16 IDs in a tick: a few hundred are ten seconds.
my $spec = '42/20';
my $template = make_template('template', allows_streaming => 1);
my $cases = 0;

# A primary and a standby, both with these clocks, running.
sub pair
{
	my ($primary_clock, $standby_clock) = @_;

	$cases++;
	my $primary = copy_server($template, "primary_$cases", clock => $primary_clock);
	start_server($primary);
	my $standby = add_standby($template, $primary, "standby_$cases", clock => $standby_clock);
	return ($primary, $standby);
}

# IDs of the node in rows, until it is ten seconds ahead; or in a transaction that
# is prepared.
sub busy
{
	my ($node) = @_;

	return split(/\n/, $node->safe_psql('postgres', "SELECT make_busy('$spec')"));
}

sub prepared
{
	my ($node, $call) = @_;

	return split(/\n/, $node->safe_psql('postgres', "BEGIN; SELECT $call; PREPARE TRANSACTION 'prepared'"));
}

sub any_commit
{
	my ($node) = @_;

	$node->safe_psql('postgres', 'INSERT INTO ids (node) VALUES (NULL); DELETE FROM ids WHERE node IS NULL');
	return;
}

# A server from a backup, and with the WAL of another one, up to a target
sub restore
{
	my ($from, $name, $other, $target, %params) = @_;
	my $restored = copy_server($from, $name, %params,
		lines => 'restore_command = \'cp ' . $other->data_dir . "/pg_wal/%f %p'\n$target\nrecovery_target_action = promote\n");

	$restored->set_recovery_mode;
	start_server($restored);
	$restored->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'the server is not restored';
	return $restored;
}

sub kill_and_promote
{
	my ($primary, $standby) = @_;

	catch_up($primary, $standby);
	kill_server($primary);
	$standby->promote;
	return;
}

# The server, which has rows with these IDs, issues others; its clock is off by
# so much.  If it starts below the last one, then as many as it takes to get there.
sub others_ok
{
	my ($name, $server, $clock, $count, @rows) = @_;
	my %rows = map { $_ => 1 } @rows;
	my $last = (sort @rows)[-1];

	my ($pushes, @given) = give_until_given($server, \$clock, $spec, 1);
	my ($more_pushes, @more) =
	  give_until_given($server, \$clock, $spec, $given[0] gt $last ? 10 : $count);
	push @given, @more;
	my $twice = grep { $rows{$_} } @given;

	cmp_ok(scalar(@rows), '>', 30, "$name: there are IDs");
	cmp_ok(scalar(@given), '>', 10, "$name: it gives IDs");
	is($twice, 0, "$name: none of a row");
	cmp_ok($given[0], 'gt', $last, "$name: all above those of the rows");
	$server->safe_psql('postgres', "COMMIT PREPARED 'prepared'")
	  if $server->safe_psql('postgres', 'SELECT count(*) FROM pg_prepared_xacts');
	is( $server->safe_psql('postgres',
			"SELECT count(DISTINCT id) FILTER (WHERE id IN ('" . join("', '", @rows) . "')), count(*) - count(DISTINCT id) FROM ids"),
		scalar(@rows) . '|0',
		"$name: the rows are there, each with an ID of its own");
	note("$name: $twice of " . scalar(@given) . ' twice, clock set on ' . ($pushes + $more_pushes) . ' times');
	$server->stop('immediate');
	return;
}

# The clocks of both servers, what the primary does before it is killed and the standby
# promoted, and how many IDs that one is to issue: they would be those of the rows if it
# started by its clock.
foreach my $case (
	[ 'prepared after the last commit, busy', '-12', '+0', 400,
		sub { any_commit($_[0]); set_clock($_[0], '+0'); prepared($_[0], "make_busy('$spec')") } ],
	[ 'prepared after the last commit, idle, standby behind', '-12', '-8', 500,
		sub { any_commit($_[0]); set_clock($_[0], '+0'); prepared($_[0], "give('$spec', 40)") } ],
	[ 'busy with a clock ahead, which is set right', '+8', '+0', 400,
		sub { my @rows = busy($_[0]); set_clock($_[0], '+0'); any_commit($_[0]); @rows } ],
	[ 'busy, clock set back', '+0', '+0', 400,
		sub { my @rows = busy($_[0]); set_clock($_[0], '-8'); any_commit($_[0]); @rows } ],
	[ 'allowance lowered', '+0', '+0', 1500,
		sub {
			set_parameter($_[0], 'scru64.rollback_allowance', '1min');
			my @rows = busy($_[0]);
			set_parameter($_[0], 'scru64.rollback_allowance', '10s');
			any_commit($_[0]);
			return @rows;
		} ])
{
	my ($name, $primary_clock, $standby_clock, $count, $rows) = @{$case};
	my ($primary, $standby) = pair($primary_clock, $standby_clock);
	my @rows = $rows->($primary);

	kill_and_promote($primary, $standby);
	others_ok($name, $standby, $standby_clock, $count, @rows);
}

{
	my $name = 'a process killed after the promotion';
	my ($primary, $standby) = pair('+8', '-8');
	my @rows = give($primary, $spec, 100);

	kill_and_promote($primary, $standby);
	crash($standby);
	like(slurp_file($standby->logfile), qr/all server processes terminated; reinitializing/, "$name: a crash");
	others_ok($name, $standby, -8, 1200, @rows);
}

# The standby has a checkpoint after the rows: nothing to replay when it starts.
foreach my $with (1, 0)
{
	my $clock = $with ? -25 : -8;
	my $name = "standby restarted, nothing to replay, clock behind by $clock s";
	my ($primary, $standby) = pair('+0', $clock);
	my @rows;

	if ($with)
	{
		# IDs in the backup, too
		$standby->stop;
		@rows = give($primary, $spec, 1);
		$primary->stop;
		$primary->backup_fs_cold('cold');
		start_server($primary);
		$standby = add_standby($primary, $primary, "standby_${cases}_with", clock => $clock);
	}
	push @rows, busy($primary);
	$primary->safe_psql('postgres', 'CHECKPOINT');
	catch_up($primary, $standby);
	kill_server($primary);
	$standby->stop;
	start_server($standby);
	unlike((slurp_file($standby->logfile) =~ /.*database system was shut down in recovery(.*)/s)[0],
		qr/last completed transaction/, "$name: it replays no transaction");
	$standby->promote;
	others_ok($name, $standby, $clock, 600, @rows);
}

# The files are copied first, and the rows are in the WAL that comes with them: what
# pg_basebackup --wal-method=stream may do.
{
	my $name = 'backup started without a signal file';
	my ($primary, $standby) = pair('+0', '+0');
	my $session = open_session($primary);
	my $backup = $primary->backup_dir . '/hot';

	$standby->stop('immediate');
	my @rows = give($primary, $spec, 1);
	$session->query_safe("SELECT pg_backup_start('hot', true)");
	PostgreSQL::Test::RecursiveCopy::copypath($primary->data_dir, $backup,
		filterfn => sub { $_[0] !~ m{^(log|postmaster\.(pid|opts)|pg_wal/.+)$} });
	push @rows, busy($primary);
	my $label = $session->query_safe('SELECT labelfile FROM pg_backup_stop(false)');
	$session->quit;
	kill_server($primary);
	rmdir("$backup/pg_wal");
	PostgreSQL::Test::RecursiveCopy::copypath($primary->data_dir . '/pg_wal', "$backup/pg_wal");
	append_to_file("$backup/backup_label", "$label\n");

	my $server = copy_server($primary, "server_$cases", backup => 'hot', clock => '+0');
	start_server($server);
	others_ok($name, $server, 0, 300, @rows);
}

{
	my $name = 'standby.signal removed';
	my ($primary, $standby) = pair('+0', '+0');
	my @rows = busy($primary);

	catch_up($primary, $standby);
	kill_server($primary);
	$standby->stop;
	unlink($standby->data_dir . '/standby.signal') or die "could not remove standby.signal: $!";
	start_server($standby);
	others_ok($name, $standby, 0, 300, @rows);
}

# The last commit is replayed, and recovery ends with it.
{
	my $name = 'restored to a commit';
	my ($primary, $standby) = pair('-20', '+0');

	$standby->stop('immediate');
	any_commit($primary);
	set_clock($primary, '+0');
	my @rows = split(/\n/, $primary->safe_psql('postgres',
		"BEGIN; SELECT give('$spec', 40); SELECT pg_current_wal_insert_lsn(); COMMIT"));
	my $lsn = pop @rows;
	any_commit($primary);
	kill_server($primary);

	my $restored = restore($template, "restored_$cases", $primary, "recovery_target_lsn = '$lsn'", clock => '-8');
	like(slurp_file($restored->logfile), qr/recovery stopping after WAL location/, "$name: it stops there");
	others_ok($name, $restored, -8, 500, @rows);
}

# The clocks of a chain of servers, and which of them is promoted.
foreach my $clocks ([ '+8', '-8', '+0', 1 ], [ '+8', '+0', '-8', 2 ], [ '-8', '+8', '-8', 2 ])
{
	my ($first, $second, $third, $which) = @{$clocks};
	my $name = "cascade with clocks $first, $second, $third, " . ($which == 1 ? 'first' : 'second') . ' standby';
	my ($primary, $standby) = pair($first, $second);
	my $cascaded = add_standby($template, $standby, "cascaded_$cases", clock => $third);
	my @rows = busy($primary);
	my $survivor = $which == 1 ? $standby : $cascaded;

	catch_up($primary, $standby, $cascaded);
	kill_server($primary);
	$standby->stop('immediate') if $which == 2;
	$survivor->promote;
	others_ok($name, $survivor, $which == 1 ? $second : $third, 400, @rows);
	$cascaded->stop('immediate') if $which == 1;
}

# A backup is taken, and promoted at once; and servers are restored from it, to points
# after it.
{
	my ($primary, $standby) = pair('+8', '+0');

	$standby->stop('immediate');
	my @rows = busy($primary);
	$primary->backup('busy');
	my $promoted = add_standby($primary, $primary, 'promoted', backup => 'busy', clock => '-8');
	$promoted->promote;
	others_ok('promotion right after a base backup', $promoted, -8, 400, @rows);

	set_clock($primary, '+20');
	my @later = busy($primary);
	my ($time) = $primary->safe_psql('postgres', "SELECT pg_create_restore_point('point') AS lsn \\gset\nSELECT clock_timestamp()");
	set_clock($primary, '+21');
	give($primary, '1/8', 1);
	$primary->safe_psql('postgres', 'SELECT pg_switch_wal()');
	kill_server($primary);

	foreach my $target ([ 'immediate', "recovery_target = 'immediate'" ],
		[ 'name', "recovery_target_name = 'point'" ],
		[ 'time', "recovery_target_time = '$time'" ])
	{
		my ($what, $setting) = @{$target};
		my $restored = restore($primary, "restored_$what", $primary, $setting, backup => 'busy', clock => '-8');
		others_ok("restored, $what", $restored, -8, 400, $what eq 'immediate' ? @rows : (@rows, @later));
	}
}

# With synchronous replication, IDs that only clients have seen do not come again either: a
# session that raises the ceiling waits for the standbys as its commit would.  How that wait
# ends is in t/ceiling/slow_disk.
{
	# The primary's clock is ahead, so that the standby's does not help.
	my $primary = copy_server($template, 'primary', clock => '+8', lines => "synchronous_standby_names = 'standby'");
	start_server($primary);
	my $standby = add_standby($template, $primary, 'standby', clock => '+0');
	my %record;

	# No row is written, so that nothing but the ceiling has to wait.
	my $load = start_load($primary, '1/12' => 2);
	$standby->stop('immediate');
	my $wait_event = $primary->pg_version >= 17 ? 'Scru64Standby' : 'Extension';
	ok( $primary->poll_query_until('postgres',
			"SELECT count(*) > 0 FROM pg_stat_activity WHERE state = 'active' AND wait_event = '$wait_event'"),
		'without the standby, the ceiling is not raised');
	kill_server($primary);
	finish_load($load);
	is(record_load(\%record, $load), '', 'no client had an error before');
	cmp_ok(number_of_ids(\%record, '1/12'), '>', 100, 'clients have received IDs');

	start_server($standby);
	$standby->promote;
	my $again = start_load($standby, '1/12' => 2);
	end_load($again);
	is(record_load(\%record, $again), '', 'no client of the new primary had an error');
	is(record_problems(\%record), '', 'no ID that a client has received comes again');
}

done_testing();
