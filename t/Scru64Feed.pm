# What t/081 needs: clients that write and read at random until they are to stop,
# each a process with a psql of its own that it talks to, and the comparison of what
# readers have read with what there is.
#
# A client goes by a seed of its own.  What it logs is there whatever happens to the
# server: DIR/NAME.read, the rows that a reader has read, in this order; DIR/NAME.times,
# a line for each ID that was made after a moment and each watermark that was reported before
# one; DIR/NAME.report, counts and what was wrong.

package Scru64Feed;

use strict;
use warnings;

use Exporter 'import';
use IPC::Open3;
use POSIX ();
use Scru64Fault qw(read_file);
use Scru64Random;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC sleep);

our @EXPORT = qw(
  @readers
  compare
  early_ids
  pick
  set_weights
  sql_for_clients
  start_client
);

#
# Chance
#

# How often what happens: of actions of a writer, steps of a transaction, its ends, faults,
# and numbers of nodes.  SCRU64_WATERMARK_WEIGHTS changes some of them, "prepare=20 crash=0"
# for example.
my %weights = (
	action => { single => 25, transaction => 40, procedure => 8, finish => 16, settings => 8, idle => 4 },
	step => { row => 20, rows => 10, savepoint => 6, rollback_to => 4, release => 3, blocks => 5, node => 6, pause => 6, parallel => 2, id => 2 },
	end => { commit => 70, rollback => 15, prepare => 15 },
	fault => { terminate => 30, cancel => 40, crash => 6, kill => 4, restart => 4, clock => 40, clock_right => 20 },
	# more than there are slots for, too
	nodes => { nodes1 => 20, nodes3 => 20, nodes40 => 40, nodes300 => 20 });

sub set_weights
{
	foreach my $setting (split(/[ ,]+/, $_[0]))
	{
		my ($name, $weight) = split(/=/, $setting);
		my ($of) = grep { defined $name && exists $_->{$name} } values %weights;

		die "SCRU64_WATERMARK_WEIGHTS: $setting" if !defined $of || $weight !~ /^\d+$/;
		$of->{$name} = $weight;
	}
	return;
}

sub pick
{
	my $of = $weights{ $_[0] };

	return one_by_weight(map { [ $of->{$_}, $_ ] } sort keys %{$of})->[1];
}

#
# The database
#

sub sql_for_clients
{
	return q(
CREATE EXTENSION scru64;
-- lax: a crash may forget the row after it was seen
CREATE TABLE event (id scru64 PRIMARY KEY DEFAULT scru64_generate(),
	lax boolean DEFAULT current_setting('synchronous_commit') = 'off');
CREATE TABLE parted (LIKE event INCLUDING DEFAULTS) PARTITION BY HASH (id);
SELECT format('CREATE TABLE parted_%s PARTITION OF parted (PRIMARY KEY (id)) FOR VALUES WITH (MODULUS 4, REMAINDER %s)', n, n)
FROM generate_series(0, 3) AS n \gexec
CREATE TABLE consumer AS SELECT '000000000000'::scru64 AS position;
CREATE TABLE numbers AS SELECT n FROM generate_series(1, 200) AS n;
ALTER TABLE numbers SET (parallel_workers = 2);
ANALYZE numbers;

-- a step for each letter
CREATE PROCEDURE go_through(steps text) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. length(steps) LOOP
		CASE substr(steps, i, 1)
			WHEN 'e' THEN INSERT INTO event DEFAULT VALUES;
			WHEN 'p' THEN INSERT INTO parted DEFAULT VALUES;
			WHEN 'k' THEN
				BEGIN
					INSERT INTO event DEFAULT VALUES;
				EXCEPTION WHEN division_by_zero THEN NULL;
				END;
			WHEN 'u' THEN
				BEGIN
					INSERT INTO parted DEFAULT VALUES;
					PERFORM 1 / 0;
				EXCEPTION WHEN division_by_zero THEN
					INSERT INTO event DEFAULT VALUES;
				END;
			WHEN 'c' THEN COMMIT;
			WHEN 'r' THEN ROLLBACK;
		END CASE;
	END LOOP;
END
$$;

CREATE FUNCTION stable_watermark() RETURNS scru64 LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN scru64_watermark();
END
$$;

CREATE FUNCTION read_on(since scru64, most integer) RETURNS SETOF parted LANGUAGE plpgsql AS $$
DECLARE
	reader CURSOR FOR SELECT * FROM parted WHERE id > since AND id < scru64_watermark() ORDER BY id LIMIT most;
BEGIN
	FOR line IN reader LOOP
		RETURN NEXT line;
	END LOOP;
END
$$;
);
}

#
# A client and its psql
#

# What may happen to any statement, by its SQLSTATE: it is ended, the clock is far behind,
# the transaction has failed before, transactions cannot be serialized.
my $expected = qr/^(57P0[123]|57014|58000|25P02|40001)/;
# And to one that prepares a transaction or ends one: there are as many as may be, its name
# is taken, it has gone, somebody else is at it.
my $expected_of_prepared = qr/^(53200|42710|42704|55000.*busy)/;
# And to the question for the watermark.
my $expected_of_watermark = qr/^55000.*prepared before scru64 was used/;

sub now { return clock_gettime(CLOCK_MONOTONIC) }

# Has the test ended without a word?
sub is_orphan { return getppid() != $_[0]->{parent} }

sub connect_client
{
	my ($me) = @_;

	$me->{psql} = open3($me->{in}, $me->{out}, undef, 'psql', '-XAtq', '-F', ' ', '-v', 'VERBOSITY=verbose',
		'-d', "$me->{connstr} application_name=client");
	$me->{in}->autoflush(1);
	$me->{reported} = '';
	$me->{counts}{connections}++;
	return;
}

sub disconnect
{
	my ($me) = @_;

	return if !defined $me->{psql};
	close($me->{in});
	close($me->{out});
	waitpid(delete $me->{psql}, 0);
	return;
}

sub wrong
{
	my ($me, $what) = @_;

	$me->{wrong} .= "$me->{name}: $what\n" if $me->{counts}{wrong}++ < 10;
	return;
}

# Run statements.  Returns whether all went well, and the rows.
sub ask
{
	my ($me, $sql, $may_fail) = @_;
	my (@rows, @errors);

	connect_client($me) if !defined $me->{psql};
	$me->{counts}{calls}++ if $sql =~ /watermark|read_on/;
	print { $me->{in} } "$sql;\n\\echo .\n";
	while (defined(my $line = readline($me->{out})))
	{
		chomp($line);
		if ($line eq '.')
		{
			foreach my $error (@errors)
			{
				$me->{counts}{ 'error ' . substr($error, 0, 5) }++;
				wrong($me, "$error in: $sql") if $error !~ $expected && (!defined $may_fail || $error !~ $may_fail);
			}
			return (!@errors, @rows);
		}
		push @errors, $1 if $line =~ /^(?:ERROR|FATAL|PANIC):  (\w{5}: .*)/;
		$errors[-1] .= " $line" if @errors && $line =~ /^DETAIL:/;
		push @rows, $line if $line =~ /^[0-9a-z]{12}(?: [tf])?$/;
	}
	disconnect($me);
	$me->{counts}{'connections lost'}++;
	sleep(0.05);
	return (0);
}

#
# Writers
#

# Statements that make IDs, and show them: they are made after this moment.
sub make_ids
{
	my ($me, $sql, $may_fail) = @_;
	my $asked = now();
	my ($ok, @ids) = ask($me, $sql, $may_fail);

	if (@ids)
	{
		my ($first) = sort @ids;
		printf { $me->{times} } "%017.6f a %s\n", $asked, substr($first, 0, 12);
		$me->{counts}{'IDs'} += @ids;
	}
	return ($ok, @ids);
}

sub insert_sql
{
	my ($count) = @_;

	return 'INSERT INTO ' . one_of('event', 'event', 'parted') . " SELECT FROM generate_series(1, $count) RETURNING id";
}

# How many nodes are in use, how many writers write, and whether they all leave it to the
# server when it flushes, changes all the time.
sub weather
{
	my ($me) = @_;
	my @weather = @{ $me->{weather} };

	return @{ $weather[ int((now() - $me->{began}) / 3) % @weather ] };
}

sub node_sql
{
	my ($me) = @_;
	my ($nodes) = weather($me);

	# of two sizes
	return "SET scru64.node_spec = '" . (rand() < 0.9 ? int(rand($nodes)) . '/12' : int(200 + rand($nodes) / 8) . '/8') . "'";
}

# Most are short.
sub pause
{
	sleep(rand(0.004 / (0.004 + rand())));
	return;
}

# IDs that workers make, and rows that have them in the same transaction.
sub parallel_sql
{
	my ($me) = @_;
	my $table = "made_by_$me->{name}_" . ++$me->{tables};

	return "SET LOCAL parallel_leader_participation = " . one_of('on', 'off') . ";
CREATE TABLE $table AS SELECT scru64_generate() AS id FROM numbers;
" . (rand() < 0.5 ? '' : "\\! sleep 0.01\n") . 'INSERT INTO ' . one_of('event', 'parted') . " SELECT id FROM $table WHERE random() < 0.2 RETURNING id; DROP TABLE $table";
}

sub steps
{
	my ($letters, $most) = @_;

	return join('', map { substr($letters, rand(length($letters)), 1) } (1 .. 1 + rand($most)));
}

my %steps = (
	row => sub { return insert_sql(1) },
	rows => sub { return insert_sql(1 + int(rand(one_of(10, 10, 200)))) },
	savepoint => sub { $_[0]->{savepoints}++; return "SAVEPOINT s$_[0]->{savepoints}" },
	rollback_to => sub { return $_[0]->{savepoints} ? "ROLLBACK TO s$_[0]->{savepoints}" : '' },
	release => sub { return $_[0]->{savepoints} ? "RELEASE s$_[0]->{savepoints}" : '' },
	blocks => sub { return "CALL go_through('" . steps('epku', 5) . "')" },
	node => \&node_sql,
	pause => sub { pause(); return '' },
	parallel => \&parallel_sql,
	id => sub { return 'SELECT scru64_generate()' });

my %actions = (
	single => sub { make_ids($_[0], insert_sql(1)) },
	transaction => \&run_transaction,
	procedure => sub { ask($_[0], "CALL go_through('" . steps('eepkuccr', 10) . "c')") },
	finish => \&finish_prepared,
	settings => \&change_settings,
	idle => sub { sleep(rand(0.3)) });

sub change_settings
{
	my ($me) = @_;
	my (undef, undef, $commits) = weather($me);

	$commits = one_of('on', 'off') if $commits eq 'mixed';
	return ask($me, join('; ', node_sql($me), "SET synchronous_commit = $commits"));
}

sub run_transaction
{
	my ($me) = @_;
	my $end = pick('end');

	$me->{savepoints} = 0;
	return if !(ask($me, 'BEGIN'))[0];
	foreach my $n (1 .. 1 + rand(one_of(2, 4, 12)))
	{
		my $step = pick('step');
		my $sql = $steps{$step}->($me);
		my ($ok) = $sql eq '' ? 1 : make_ids($me, $sql);

		$me->{savepoints}-- if $step eq 'release' && $sql ne '';
		return ask($me, 'ROLLBACK') if !$ok;
	}
	# some names are taken, and it fails
	$end = "PREPARE TRANSACTION 'p" . int(rand(300)) . "'" if $end eq 'prepare';
	my ($ok) = ask($me, $end, $expected_of_prepared);
	$me->{counts}{prepared}++ if $ok && $end =~ /^PREPARE/;
	return ask($me, 'ROLLBACK') if !$ok;
	return;
}

# Any session's, or of before a restart.
sub finish_prepared
{
	my ($me) = @_;

	return ask(
		$me, "SELECT format('%s PREPARED %L', '" . one_of('COMMIT', 'COMMIT', 'ROLLBACK') . "', gid) FROM pg_prepared_xacts ORDER BY random() LIMIT 1 \\gexec
SELECT 1", $expected_of_prepared);
}

sub write_rows
{
	my ($me) = @_;

	my $commits = '';

	until (-e "$me->{dir}/stop" || is_orphan($me))
	{
		my (undef, $writers, $now) = weather($me);

		if ($me->{number} >= $writers)
		{
			sleep(0.05);
			next;
		}
		# another session's settings are gone
		change_settings($me) if !defined $me->{psql} || $commits ne $now;
		$commits = $now;
		$actions{ pick('action') }->($me);
	}
	return;
}

#
# Readers
#
# None of them writes a row: the last rows are those of the writers.
#

# Keep rows that were read.
sub take_rows
{
	my ($me, @rows) = @_;

	foreach my $row (@rows)
	{
		my $id = substr($row, 0, 12);

		wrong($me, "read $id after $me->{position}") if $id le $me->{position};
		$me->{position} = $id;
		print { $me->{read} } "$row\n";
	}
	$me->{counts}{'rows read'} += @rows;
	return;
}

sub poll_sql
{
	my ($me) = @_;

	return "SELECT id, lax FROM $me->{table} WHERE id > '$me->{position}' AND id < $me->{asks}() ORDER BY id LIMIT " . one_of(5, 200, 1000);
}

# Poll, and return how many rows that has brought; undef if it failed.
sub poll
{
	my ($me, $sql) = @_;
	my ($ok, @rows) = ask($me, defined $sql ? $sql : poll_sql($me), $expected_of_watermark);

	take_rows($me, @rows);
	return $ok ? scalar(@rows) : undef;
}

sub read_statements
{
	my ($me) = @_;

	return poll($me);
}

# One plan for all positions.
sub read_prepared
{
	my ($me) = @_;

	if (!defined $me->{psql})
	{
		my ($ok) = ask($me, "SET plan_cache_mode = force_generic_plan; PREPARE poll (scru64, integer) AS SELECT id, lax FROM $me->{table} WHERE id > \$1 AND id < scru64_watermark() ORDER BY id LIMIT \$2");
		disconnect($me) if !$ok;
		return if !$ok;
	}
	return poll($me, "EXECUTE poll ('$me->{position}', " . one_of(5, 200, 1000) . ')');
}

# Snapshots that are older than the call.
sub read_repeatably
{
	my ($me) = @_;
	my $rows = 0;

	ask($me, 'BEGIN ISOLATION LEVEL ' . one_of('REPEATABLE READ', 'REPEATABLE READ', 'SERIALIZABLE') . '; SELECT count(*) FROM consumer');
	foreach my $n (1 .. 3)
	{
		pause();
		my $read = poll($me);
		$rows = undef if !defined $read;
		last if !defined $rows;
		$rows += $read;
	}
	ask($me, one_of('COMMIT', 'ROLLBACK'));
	return $rows;
}

sub read_by_cursor
{
	my ($me) = @_;
	my $rows = poll($me, 'BEGIN; DECLARE reader CURSOR FOR ' . poll_sql($me) . '; FETCH 3 FROM reader');

	pause();
	if (defined $rows)
	{
		my $more = poll($me, 'FETCH ALL FROM reader');
		$rows = defined $more ? $rows + $more : undef;
	}
	ask($me, 'COMMIT');
	return $rows;
}

sub read_by_function
{
	my ($me) = @_;

	return poll($me, "SELECT id, lax FROM read_on('$me->{position}', " . one_of(5, 200, 1000) . ')');
}

# A transaction that stays open, and sometimes makes IDs itself: it is held back by those.
sub read_for_long
{
	my ($me) = @_;
	my $end = now() + rand(2);
	my $rows = 0;

	return if !(ask($me, 'BEGIN'))[0];
	while (defined $rows && now() < $end && !-e "$me->{dir}/last")
	{
		make_ids($me, 'SELECT scru64_generate()') if rand() < 0.02 && !-e "$me->{dir}/stop";
		sleep(rand(0.05));
		my $read = poll($me);
		$rows = defined $read ? $rows + $read : undef;
	}
	$rows = defined $rows ? $rows + (poll($me) || 0) : undef;
	ask($me, one_of('COMMIT', 'COMMIT', 'ROLLBACK'));
	return $rows;
}

# The position is kept in the database, in the transaction that has read.
sub read_and_keep
{
	my ($me) = @_;
	my $position = $me->{position};
	my ($kept, $ok, @rows);

	# a commit that is flushed would flush all that is lax
	return if (weather($me))[2] eq 'off' && !-e "$me->{dir}/last";
	($ok, @rows) = ask($me, 'BEGIN; ' . poll_sql($me), $expected_of_watermark);
	if (!$ok || !@rows)
	{
		ask($me, 'ROLLBACK');
		return $ok ? 0 : undef;
	}
	my $last = substr($rows[-1], 0, 12);
	($ok) = ask($me, "UPDATE consumer SET position = '$last'; COMMIT");
	while (!$ok)
	{
		($ok, $kept) = ask($me, 'ROLLBACK; SELECT position FROM consumer');
		return if is_orphan($me);
	}
	wrong($me, "$kept is kept, not $position or $last") if defined $kept && $kept ne $last && $kept ne $position;
	take_rows($me, @rows) if !defined $kept || $kept eq $last;
	return scalar(@rows);
}

# Watermarks: none falls for a session, none is above an ID that the session has made in a
# transaction that is open, nor above one that is made later, whoever makes it.
sub ask_for_watermarks
{
	my ($me) = @_;
	my $own = '';

	if (rand() < 0.3)
	{
		(undef, $own) = make_ids($me, 'BEGIN; SELECT scru64_generate()');
		$own = '' if !defined $own;
	}
	my $sql = 'SELECT scru64_watermark()';
	my ($ok, $reported) = ask($me, $sql, $expected_of_watermark);
	if (defined $reported)
	{
		printf { $me->{times} } "%017.6f w %s\n", now(), $reported;
		wrong($me, "the watermark is $reported, after $me->{reported}") if $reported lt $me->{reported};
		wrong($me, "the watermark is $reported, and $own is not committed") if $own ne '' && $reported gt $own;
		$me->{reported} = $reported if defined $me->{psql};
	}
	ask($me, one_of('COMMIT', 'ROLLBACK')) if $own ne '' || !$ok;
	make_ids($me, 'SELECT scru64_generate()') if !-e "$me->{dir}/stop";
	ask($me, node_sql($me)) if rand() < 0.1;
	pause();
	return $ok ? 0 : undef;
}

# name, table, how it reads, may it have read rows that a crash has undone?  And a function
# that it asks instead of scru64_watermark().
our @readers = (
	[ 'statements', 'event', \&read_statements, 1 ],
	[ 'repeatable', 'event', \&read_repeatably, 1 ],
	[ 'partitions', 'parted', \&read_statements, 1 ],
	[ 'prepared', 'parted', \&read_prepared, 1 ],
	[ 'cursor', 'event', \&read_by_cursor, 1 ],
	[ 'function', 'parted', \&read_by_function, 1 ],
	[ 'long', 'event', \&read_for_long, 1 ],
	[ 'consumer', 'event', \&read_and_keep, 0 ],
	[ 'stable', 'event', \&read_statements, 1, 'stable_watermark' ],
	[ 'stable_partitions', 'parted', \&read_statements, 1, 'stable_watermark' ],
	[ 'stable_repeatable', 'parted', \&read_repeatably, 1, 'stable_watermark' ]);

# Read until there is nothing more, after the last row was written and the watermark found
# to be above it.  If somebody commits while it is asked, a call gets an older answer;
# from then on the session knows.
sub read_rows
{
	my ($me) = @_;
	my $empty = 0;

	until ($empty == 2 || is_orphan($me))
	{
		my $is_last = -e "$me->{dir}/last";
		my $rows = $me->{reads}->($me);

		$empty = $is_last && defined $rows && $rows == 0 ? $empty + 1 : 0;
		sleep(defined $rows && $rows > 100 ? 0.001 : rand(0.03));
	}
	return;
}

#
# Processes
#

# Returns the process.  Client: dir, name, connstr, seed, number, weather, began; for those
# that read table and reads, or reads alone for one that asks for watermarks.
sub start_client
{
	my (%me) = @_;
	my $files = "$me{dir}/$me{name}";

	$me{parent} = $$;
	my $pid = fork();

	die "could not fork: $!" if !defined $pid;
	return $pid if $pid != 0;
	eval {
		srand($me{seed});
		local $SIG{PIPE} = 'IGNORE';
		open($me{times}, '>', "$files.times") or die "$files.times: $!";
		open($me{read}, '>', "$files.read") or die "$files.read: $!";
		@me{ 'position', 'wrong', 'counts', 'reported' } = ('000000000000', '', {}, '');
		$me{reads} = \&ask_for_watermarks if $me{name} =~ /^watermarks/;
		defined $me{reads} ? read_rows(\%me) : write_rows(\%me);
		disconnect(\%me);
		close($me{$_}) foreach ('times', 'read');
		1;
	} or $me{wrong} .= "$me{name}: $@";
	open(my $report, '>', "$files.report") or POSIX::_exit(1);
	print $report map { "$_\t$me{counts}{$_}\n" } sort keys %{ $me{counts} };
	print $report "wrong: $_\n" foreach (split(/\n/, $me{wrong}));
	close($report);
	POSIX::_exit(0);
}

#
# Comparison
#

# What there is in a file of rows in order, and what a reader has read.  Returns how many
# it has read that a crash has undone, and what is wrong.
sub compare
{
	my ($there_file, $read_file, $may_be_lost) = @_;
	my ($missed, $undone) = (0, 0);
	my @wrong;

	open(my $there, '<', $there_file) or die "$there_file: $!";
	open(my $read, '<', $read_file) or die "$read_file: $!";
	my ($row, $line) = (scalar(<$there>), scalar(<$read>));
	while (defined $row || defined $line)
	{
		my $is_missed = !defined $line || (defined $row && $row lt $line);
		my $is_undone = !$is_missed && (!defined $row || $line lt $row);

		if ($is_missed)
		{
			push @wrong, 'missed ' . substr($row, 0, 12) if $missed++ < 5;
		}
		elsif ($is_undone)
		{
			$undone++;
			push @wrong, 'read ' . substr($line, 0, 12) . ', which is not there'
			  if @wrong < 10 && (!$may_be_lost || $line !~ /t$/);
		}
		$row = <$there> if !$is_undone;
		$line = <$read> if !$is_missed;
	}
	return ($missed, $undone, join('; ', @wrong));
}

# IDs that were issued after a watermark above them had been reported, the first ones.
sub early_ids
{
	my ($dir) = @_;
	my ($greatest, $count, $watermarks, $wrong) = ('', 0, 0, '');

	local $ENV{LC_ALL} = 'C';
	open(my $lines, '-|', "sort -m $dir/*.times") or die "sort: $!";
	while (my $line = <$lines>)
	{
		my (undef, $kind, $id) = split(/[ \n]/, $line);

		if ($kind eq 'w')
		{
			$watermarks++;
			$greatest = $id if $id gt $greatest;
		}
		elsif ($id lt $greatest)
		{
			$wrong .= "$id was made after $greatest was the watermark\n" if $count++ < 5;
		}
	}
	close($lines) or die 'sort failed';
	return ($watermarks, $count, $wrong);
}

1;
