# A standby is promoted, or a server restored, in whatever way, with a clock that is behind: no ID
# of any row that it has is issued again, whether the row is committed or in a transaction that is
# prepared.  The simulator (unit_tests/sim/) tries all clocks, and t/ceiling/random_promotions what
# clients of a synchronous standby have seen.

use strict;
use warnings;
use Scru64Clock;
use Scru64Copies;
use Scru64Server;
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

# IDs of the node in rows, until it is ten seconds ahead
sub busy
{
	my ($node) = @_;

	return split(/\n/, $node->safe_psql('postgres', "SELECT make_busy('$spec')"));
}

sub any_commit
{
	my ($node) = @_;

	$node->safe_psql('postgres', 'INSERT INTO ids (node) VALUES (NULL); DELETE FROM ids WHERE node IS NULL');
	return;
}

sub kill_and_promote
{
	my ($primary, $standby) = @_;

	catch_up($primary, $standby);
	kill_server($primary);
	$standby->promote;
	return;
}

# The server, which has rows with these IDs, issues others, all above.  No clock is involved: with
# this allowance, the node neither waits nor is refused.
sub others_ok
{
	my ($name, $server, @rows) = @_;
	my %rows = map { $_ => 1 } @rows;
	my $last = (sort @rows)[-1];

	set_parameter($server, 'scru64.rollback_allowance', '1h');
	my @given = give($server, $spec, 20);

	cmp_ok(scalar(@rows), '>', 30, "$name: there are IDs");
	is(scalar(@given), 20, "$name: it gives IDs");
	is(scalar(grep { $rows{$_} } @given), 0, "$name: none of a row");
	cmp_ok($given[0], 'gt', $last, "$name: all above those of the rows");
	$server->safe_psql('postgres', "COMMIT PREPARED 'prepared'")
	  if $server->safe_psql('postgres', 'SELECT count(*) FROM pg_prepared_xacts');
	is( $server->safe_psql('postgres',
			"SELECT count(DISTINCT id) FILTER (WHERE id IN ('" . join("', '", @rows) . "')), count(*) - count(DISTINCT id) FROM ids"),
		scalar(@rows) . '|0',
		"$name: the rows are there, each with an ID of its own");
	$server->stop('immediate');
	return;
}

{
	my $name = 'prepared after the last commit';
	my ($primary, $standby) = pair('-12', '-8');

	any_commit($primary);
	set_clock($primary, '+0');
	my @rows = split(/\n/, $primary->safe_psql('postgres', "BEGIN; SELECT make_busy('$spec'); PREPARE TRANSACTION 'prepared'"));
	kill_and_promote($primary, $standby);
	others_ok($name, $standby, @rows);
}

{
	my $name = 'a process killed after the promotion';
	my ($primary, $standby) = pair('+8', '-8');
	my @rows = give($primary, $spec, 100);

	kill_and_promote($primary, $standby);
	crash($standby);
	like(slurp_file($standby->logfile), qr/all server processes terminated; reinitializing/, "$name: a crash");
	others_ok($name, $standby, @rows);
}

# The standby has a checkpoint after the rows: nothing to replay when it starts.
{
	my $name = 'standby restarted, nothing to replay';
	my ($primary, $standby) = pair('+0', '-8');
	my @rows = busy($primary);

	$primary->safe_psql('postgres', 'CHECKPOINT');
	catch_up($primary, $standby);
	kill_server($primary);
	$standby->stop;
	start_server($standby);
	unlike((slurp_file($standby->logfile) =~ /.*database system was shut down in recovery(.*)/s)[0],
		qr/last completed transaction/, "$name: it replays no transaction");
	$standby->promote;
	others_ok($name, $standby, @rows);
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
	others_ok($name, $server, @rows);
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
	others_ok($name, $standby, @rows);
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

	my $restored = copy_server($template, "restored_$cases", clock => '-8',
		lines => 'restore_command = \'cp ' . $primary->data_dir . "/pg_wal/%f %p'\nrecovery_target_lsn = '$lsn'\nrecovery_target_action = promote\n");
	$restored->set_recovery_mode;
	start_server($restored);
	$restored->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'the server is not restored';
	like(slurp_file($restored->logfile), qr/recovery stopping after WAL location/, "$name: it stops there");
	others_ok($name, $restored, @rows);
}

{
	my $name = 'a standby of a standby';
	my ($primary, $standby) = pair('+8', '+0');
	my $cascaded = add_standby($template, $standby, "cascaded_$cases", clock => '-8');
	my @rows = busy($primary);

	catch_up($primary, $standby, $cascaded);
	kill_server($primary);
	$standby->stop('immediate');
	$cascaded->promote;
	others_ok($name, $cascaded, @rows);
}

# A backup is taken, and promoted at once.
{
	my ($primary, $standby) = pair('+8', '+0');

	$standby->stop('immediate');
	my @rows = busy($primary);
	$primary->backup('busy');
	my $promoted = add_standby($primary, $primary, 'promoted', backup => 'busy', clock => '-8');
	$promoted->promote;
	others_ok('promotion right after a base backup', $promoted, @rows);
	$primary->stop('immediate');
}

done_testing();
