# What the simulator of unit_tests/sim/ expects of PostgreSQL and of the sources, a real server does:
# each seed is a script of what a session does while the clock stands, with crashes, promotions
# and lost pages, and of what comes of each line.
#
# SCRU64_SEED has it play other scripts, of these seeds.

use strict;
use warnings;
use FindBin;
use Scru64Clock;
use Scru64Copies;
use Scru64Files;
use Scru64Server;
use Scru64Test;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;

plan skip_all => 'the simulator is in 64 bits' if length(pack('p', 'a')) != 8;
plan skip_all => 'no clock can be set' if !can_set_clock();

my $dir = PostgreSQL::Test::Utils::tempdir();
system_or_bail('make', '-s', '-C', "$FindBin::RealBin/../../unit_tests/sim", "BUILD=$dir", 'PG_CONFIG=' . ($ENV{PG_CONFIG} || 'pg_config'), "$dir/sim");

my $template = make_template('template', allows_streaming => 1, extra => ['--wal-segsize=1']);
$template->append_conf('postgresql.conf', 'max_prepared_transactions = 3');
$template->start;
$template->stop;
$template->backup_fs_cold('simulated');

my ($servers, $node, $session, $clock) = (0);

sub new_server
{
	my $server = copy_server($template, 'server_' . ++$servers, backup => 'simulated');

	stop_clock($server, $clock);
	return $server;
}

sub begin_session
{
	$session->quit if defined $session;
	$session = open_session($node);
	return $session->query_safe("LOAD 'scru64';\nSET statement_timeout = '20s';");
}

# What happens to the server.  All that is in the WAL by then survives kill -9.
my %events = (
	clock => sub { $clock = $_[0] / 1000; stop_clock($node, $clock) },
	crash => sub { $node->safe_psql('postgres', 'SELECT pg_switch_wal()'); kill_server($node); start_server($node) },
	lose_page => sub { $node->safe_psql('postgres', 'CHECKPOINT'); kill_server($node); unlink(page_file($node)); start_server($node) },
	promote => sub {
		my $standby = new_server();

		$standby->enable_streaming($node);
		start_server($standby);
		$node->safe_psql('postgres', 'SELECT pg_switch_wal()');
		catch_up($node, $standby);
		kill_server($node);
		$standby->promote;
		$node = $standby;
	});

# What the session does, with the line's argument for #
my %statements = (
	begin => 'BEGIN ISOLATION LEVEL #;',
	commit_level => 'SET LOCAL synchronous_commit = #;',
	commit => 'COMMIT;', rollback => 'ROLLBACK;',
	prepare => q(PREPARE TRANSACTION '#';),
	commit_prepared => q(COMMIT PREPARED '#';), rollback_prepared => q(ROLLBACK PREPARED '#';),
	node => q(SET scru64.node_spec = '#';),
	generate => q(SELECT concat_ws(' ', tick_of(scru64_generate()), tick_of(scru64_ceiling())) AS result \gset),
	watermark => 'SELECT tick_of(scru64_watermark()) AS result \gset',
	check => 'DO $$ BEGIN PERFORM scru64_check(); END $$;',
	set_ceiling => 'DO $$ BEGIN PERFORM scru64_set_ceiling(to_timestamp(# / 1000.0)); END $$;');

# Have the session play some lines; it waits only where it is to wait.  Returns what differs
# first, or ''.
sub play
{
	my ($first, @lines) = @_;
	my $commands = "\\o $dir/out\n";

	foreach my $line (@lines)
	{
		my ($call, $result) = split(/ = /, $line);
		my ($what, $argument) = split(/ /, $call);
		my $statement = $statements{$what} =~ s/#/$argument/r =~ s/(LEVEL \w+)_/$1 /r;

		$commands .= "SET LOCAL statement_timeout = '10ms';\n" if $result eq 'error 57014';
		$commands .= "\\set result ok\n$statement\n\\if :ERROR\n\\set result 'error ' :SQLSTATE\nROLLBACK;\n\\endif\n\\qecho '$call =' :result\n";
	}
	replace_file("$dir/commands", "$commands\\o\n");
	my (undef, $errors) = try_statement($session, "\\i $dir/commands");
	my @got = split(/\n/, slurp_file("$dir/out"));
	my ($wrong) = grep { ($got[$_] // '') ne $lines[$_] } (0 .. $#lines);

	return '' if !defined $wrong;
	return 'line ' . ($first + $wrong) . ": $lines[$wrong]\nthe server: " . ($got[$wrong] // '') . "\n$errors";
}

foreach my $seed (split(/ /, $ENV{SCRU64_SEED} || '1 6 7'))
{
	my ($script) = run_command([ "$dir/sim", '-s', $seed ]);
	my ($wrong, $n) = ($script =~ /^generate = \d/m ? '' : 'no script', 0);

	$script =~ s/.*\z//;	# it ends within a line
	$clock = 1_750_001_000;
	$node = new_server();
	start_server($node);
	foreach my $part (split(/^(?=\w+(?: \d+)?$)/m, $script))
	{
		my ($event, @lines) = split(/\n/, $part);
		my ($what, $argument) = split(/ /, $event);

		last if $wrong ne '';
		$events{$what}->($argument);
		begin_session() if $what ne 'clock';
		$wrong = play($n + 2, @lines);
		$n += 1 + @lines;
	}
	is($wrong, '', "seed $seed: $n lines");
	$node->stop('immediate');
}
$session->quit;
done_testing();
