# The page that holds the ceiling is lost, damaged or not ours, and other programs
# come across it: no ID below those that were issued, or an error and no ID.

use strict;
use warnings;
use File::Copy;
use Scru64Clock;
use Scru64Debugger;
use Scru64Loads;
use Scru64Server;
use Scru64Test;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;
plan skip_all => 'no clock can be set' if !can_set_clock();

my $spec = '1/8';
my $lost = 'LOG:  the ceiling of scru64 was lost';
my $made = 'LOG:  the ceiling of scru64 was made';
my $damaged = qr/ERROR:  XX001: file "global\/9864" .*\nDETAIL:  .*\nHINT:  .*/;
my $way_out = qr/HINT:  .*standby.*scru64_set_ceiling\(\).*scru64\.node_spec/;

my $node = new_node('main');
my $file = page_file($node);
my $clock = 0;
my %received;

# What WAL of full pages does not need; and few pages are kept in memory.
$node->append_conf('postgresql.conf', "full_page_writes = off\nshared_buffers = 1MB");
set_clock($node, '+0');
start_server($node);
my $page_size = $node->safe_psql('postgres', 'SHOW block_size');

# Set the clock on, so that the next ID needs another ceiling.
sub advance
{
	$clock += 30;
	set_clock($node, "+$clock");
	return;
}

sub goes_on_ok
{
	my ($name) = @_;

	# what core says where the page's checksum, if there are any, is not right
	return issues_ok($node, \%received, $spec, $name,
		ignored => qr/^\S*\s*WARNING:  XX001: invalid page in block 0 of relation \S+; zeroing out page\n(LOCATION:.*\n?)?/m);
}

# A session that is about to write its first line to the log, and perhaps to its client, has
# unlocked the page.
sub unlocked_at_log_ok
{
	my ($sql, $name, %params) = @_;

  SKIP:
	{
		skip 'gdb is not installed', 3 if !has_gdb();
		my $session = open_session($node, %params);
		my $gdb = stop_at($node, $session->{pid}, 'EmitErrorReport');

		start_statement($session, $sql);
		ok(has_stopped($gdb), "$name: a line of the log");
		is($node->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE pid = $session->{pid} AND locktype = 'extend'"),
			'0', "$name: the page is not locked meanwhile");
		ok(let_go($gdb), "$name: the session goes on");
		try_statement($session, 'SELECT 1');
		$session->quit;
	}
	return;
}

sub all_refused_ok
{
	my ($name, $error) = @_;

	refused_ok($node, $_, $error || $damaged, $name) foreach ($spec, '2/8');
	return;
}

# scru64_check() raises the error that scru64_generate() has raised, and takes no other process that has
# locked the page for one that flushes.
sub check_refused_ok
{
	my ($name) = @_;
	my $check = "SET scru64.node_spec = '$spec'; SELECT scru64_check()";

	like(error_of($node, $check), $damaged, "$name: scru64_check() says so");
  SKIP:
	{
		skip 'a process would not come so far', 3 if -e $file;
		skip 'gdb is not installed', 3 if !has_gdb();
		my $session = open_session($node);
		my $gdb = stop_at($node, $session->{pid}, 'smgrexists');

		start_statement($session, 'SELECT scru64_ceiling()');
		ok(has_stopped($gdb), "$name: a process has locked the page");
		# longer than a flush that scru64_check() reports
		$node->safe_psql('postgres', 'SELECT pg_sleep(1.1)');
		is(error_of($node, $check), '', "$name: scru64_check() takes it for no flush");
		ok(let_go($gdb), "$name: the process goes on");
		try_statement($session, 'SELECT 1');
		$session->quit;
	}
	return;
}

# Seconds by which the next ID is ahead of the clock.
sub lead
{
	my ($server) = @_;

	return $server->safe_psql('postgres',
		"SET scru64.node_spec = '$spec'; SELECT extract(epoch FROM scru64_timestamp(scru64_generate()) - clock_timestamp())");
}

sub write_page
{
	my ($text) = @_;

	open(my $page, '>:raw', $file) or die "could not open $file: $!";
	print $page $text;
	close($page) or die "could not write $file: $!";
	return;
}

# A page that is right, but for its ceiling.
sub page_with
{
	my ($good, $ceiling) = @_;
	my $contents = substr($good, 24, 8) . pack('Q', $ceiling);
	my $crc = 0xffffffff;

	# CRC-32C
	foreach my $byte (unpack('C*', $contents))
	{
		$crc ^= $byte;
		$crc = $crc >> 1 ^ ($crc & 1 ? 0x82f63b78 : 0) foreach (1 .. 8);
	}
	substr($good, 24, 20) = $contents . pack('L', $crc ^ 0xffffffff);
	return $good;
}

sub flipped
{
	my ($text, $at) = @_;

	substr($text, $at, 1) = chr(ord(substr($text, $at, 1)) ^ 4);
	return $text;
}

#
# The page is made with the extension, and says that no ID was issued.  A crash
# in the middle leaves an empty file, or a zero page, and the extension is not there.
#
ok(!-e $file, 'no page without the extension');
foreach my $left_over ('', "\0" x $page_size)
{
	my $name = 'left over from a crash: ' . length($left_over) . ' bytes';

	write_page($left_over);
	$node->safe_psql('postgres', 'CREATE EXTENSION scru64');
	is(-s $file, $page_size, "$name: there is a page");
	cmp_ok(lead($node), '<=', 0, "$name: the first ID is not ahead of the clock");
	is(scalar(logged($node, $lost)), 0, "$name: nothing was lost");
	is(scalar(logged($node, $made)), $left_over eq '' ? 1 : 2, "$name: the log says that it was made");
	last if $left_over ne '';
	$node->safe_psql('postgres', 'DROP EXTENSION scru64');
	ok(-s $file, "$name: the page outlives the extension");
	# as if this had never been
	$node->stop;
	unlink($file);
	start_server($node);
}

# A crash after that: the file as the crash may have left it, and the WAL.
foreach my $left_over ('', "\0" x $page_size, undef, undef)
{
	my $name = 'killed, and the file is ' . (defined $left_over ? length($left_over) . ' bytes' : 'missing');

	goes_on_ok($name);
	kill_server($node);
	defined $left_over ? write_page($left_over) : unlink($file);
	start_server($node);
	goes_on_ok($name);
	is(scalar(logged($node, $lost)), 0, "$name: the WAL has the page");
}

# The extension made anew does not start anew.
$node->safe_psql('postgres', 'DROP EXTENSION scru64; CREATE EXTENSION scru64');
goes_on_ok('extension made anew');
$node->restart;
goes_on_ok('extension made anew, after a restart');

#
# Lost while the server was down.
#
my $times_lost = 0;

foreach my $how ('missing', 'empty', 'zero')
{
	goes_on_ok("before it is $how");
	$node->stop;
	$how eq 'missing' ? unlink($file) : write_page($how eq 'zero' ? "\0" x $page_size : '');
	start_server($node);
	cmp_ok(lead($node), '>', 9, "$how: above the clock and the allowance");
	is(scalar(logged($node, $lost)), ++$times_lost, "$how: the log says so");
	goes_on_ok($how);
	is(scalar(logged($node, $lost)), $times_lost, "$how: once");
	advance();
}

# Lost, and somebody makes the extension in another database before the first ID: nobody
# can know, but the log says what to do.
$node->stop;
unlink($file);
start_server($node);
my $times_made = scalar(logged($node, $made));
$node->safe_psql('template1', 'CREATE EXTENSION scru64; DROP EXTENSION scru64; CREATE EXTENSION scru64; DROP EXTENSION scru64');
is(scalar(logged($node, $made)), $times_made + 1, 'made anew: the log says so, once');
is(scalar(logged($node, $lost)), $times_lost, 'made anew: not lost');
$node->safe_psql('postgres', "SELECT scru64_set_ceiling(scru64_timestamp('$received{$spec}{greatest}'))");
goes_on_ok('made anew, and set');
advance();

#
# Damaged, or not ours.
#
goes_on_ok('before it is damaged');
$node->stop;
my $good = slurp_file($file);
is(length($good), $page_size, 'one page');
my %texts = (
	'random bytes' => join('', map { chr($_ * $_ * 37 % 251) } (1 .. $page_size)),
	'contents of something else' => substr($good, 0, 24) . 'x' x ($page_size - 24),
	'no contents' => substr($good, 0, 24) . "\0" x ($page_size - 24),
	'half a page' => substr($good, 0, 24 + 4) . "\0" x ($page_size - 24 - 4),
	'two pages' => $good x 2,
	'a page and a half' => $good . substr($good, 0, $page_size / 2),
	(map { ("ceiling $_" => page_with($good, $_)) } (282429536480, 1 << 39, 1 << 40, 1 << 63, ~0)),
	(map { ("cut to $_ bytes" => substr($good, 0, $_)) } (1, 100, $page_size - 1)),
	map { ("bit flipped in byte $_" => flipped($good, $_)) } (24, 28, 32, 34, 40));
foreach my $name (sort keys %texts)
{
	write_page($texts{$name});
	start_server($node);
	all_refused_ok($name);
	is(slurp_file($file), $texts{$name}, "$name: the file is as it was");
	$node->stop;
	is(slurp_file($file), $texts{$name}, "$name: after a clean stop, too");
}
is(page_with($good, unpack('Q', substr($good, 32, 8))), $good, 'pages can be made');
write_page(page_with($good, 282429536479));
start_server($node);
all_refused_ok('a ceiling at the last timestamp', qr/ERROR:  58000: the clock is too far behind/);
$node->stop;
my $later = $good;
substr($later, 28, 4) = pack('L', 2);
write_page(page_with($later, unpack('Q', substr($good, 32, 8))));
start_server($node);
all_refused_ok('of a later version', qr/ERROR:  55000: file "global\/9864" was written by a later version.*\nDETAIL:  It is of format 2, .*\nHINT:  .*scru64_set_ceiling/);
is($node->safe_psql('postgres', 'SELECT (extract(epoch FROM scru64_ceiling()) * 1000)::bigint'), unpack('Q', substr($good, 32, 8)) * 256, 'of a later version: the ceiling is shown');
$node->stop;
write_page(flipped($good, 34));
start_server($node);
all_refused_ok('damaged, then restored', $way_out);
$node->stop;
write_page($good);
start_server($node);
goes_on_ok('restored');
$node->stop;

# The contents are all that counts.
write_page(flipped(slurp_file($file), 13));
start_server($node);
goes_on_ok('bit flipped in the header');
advance();
goes_on_ok('bit flipped in the header, the page is written');

#
# While the server is up.
#
foreach my $how ('missing', 'empty', 'cut', 'two pages')
{
	my $name = "$how while the server is up";

	$node->safe_psql('postgres', 'CHECKPOINT');
	my $before = slurp_file($file);
	copy($file, "$file.away") or die "could not copy $file: $!";
	$how eq 'missing' ? unlink($file) : $how eq 'empty' ? truncate($file, 0) :
	  $how eq 'cut' ? truncate($file, 100) : append_to_file($file, $before);
	advance();
	all_refused_ok($name);
	check_refused_ok($name);
	is($node->safe_psql('postgres', 'SELECT count(*) > 0 FROM scru64_generators()'), 't', "$name: the nodes are shown");
	unlink($file);
	copy("$file.away", $file) or die "could not copy $file: $!";
	goes_on_ok("$name, restored");
}
unlink("$file.away");

# A disk loses a write, so that the page is an old one when it is read again.
my $name = 'an old page while the server is up';
my $ceiling = 'SELECT extract(epoch FROM scru64_ceiling())';

$node->safe_psql('postgres', q(
CREATE TABLE filler (n integer PRIMARY KEY, pad text);
ALTER TABLE filler ALTER pad SET STORAGE PLAIN;
INSERT INTO filler SELECT n, repeat('x', 7000) FROM generate_series(1, 600) n;
CHECKPOINT;
));
goes_on_ok("before $name");
$node->safe_psql('postgres', 'CHECKPOINT');
my $old_page = slurp_file($file);
my $old = $node->safe_psql('postgres', $ceiling);
advance();
goes_on_ok("then $name");
my $watermark = $node->safe_psql('postgres', 'SELECT scru64_watermark()');
my $written = $node->safe_psql('postgres', $ceiling);
cmp_ok($written, '>', $old + 20, "$name: the ceiling was raised");
$node->safe_psql('postgres', 'CHECKPOINT');
write_page($old_page);
for my $attempt (1 .. 100)
{
	$node->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(pad) FROM filler WHERE n > 0');
	last if $node->safe_psql('postgres', $ceiling) == $old;
}
is($node->safe_psql('postgres', $ceiling), $old, "$name: it has come back");
# Another node needs another ceiling, while this one is ahead of the clock.
set_clock($node, '+' . ($clock - 3));
my $other = $node->safe_psql('postgres', "SELECT scru64_from_parts(to_timestamp($written + 1), 2 << 16)") . '/8';
unlocked_at_log_ok("SET scru64.node_spec = '$other'; SELECT scru64_generate()", $name);
my ($id, $error) = try_node($node, $other);
is($error, '', "$name: another node raises it");
goes_on_ok($name);
cmp_ok($node->safe_psql('postgres', $ceiling), '>', $written, "$name: the ceiling has not fallen");
cmp_ok($node->safe_psql('postgres', 'SELECT scru64_watermark()'), 'ge', $watermark, "$name: nor has the watermark");
is(scalar(logged($node, 'LOG:  the ceiling of scru64 went back')), 1, "$name: the log says so");
set_clock($node, "+$clock");

# Crash recovery, a page that is not there, and no checkpoint since.
goes_on_ok('killed without a file');
kill_server($node);
unlink($file);
start_server($node);
goes_on_ok('killed without a file');
is(scalar(logged($node, $lost)), $times_lost, 'killed without a file: nothing was lost');

# The other lines about the page
$node->safe_psql('postgres', 'CREATE DATABASE fresh');
foreach my $case ([ 'lost', 'SELECT scru64_watermark()' ], [ 'made', 'CREATE EXTENSION scru64', dbname => 'fresh' ])
{
	my ($what, $sql, %params) = @{$case};

	$node->stop;
	unlink($file);
	start_server($node);
	unlocked_at_log_ok($sql, $what, %params);
	advance();
	goes_on_ok($what);
}

#
# A server for a single user
#
$node->stop;
foreach my $run (1, 2)
{
	my ($out, $err) = ('', '');

	with_clock(
		$node,
		sub {
			IPC::Run::run(
				[ 'postgres', '--single', '-D', $node->data_dir, '-c', 'scru64.realm=host=/nowhere', 'postgres' ],
				'<', \"SELECT scru64_generate()\nSET scru64.node_spec = '$spec'\nSELECT scru64_generate(5)\n",
				'>', \$out, '2>', \$err);
		});
	my @ids = $out =~ /= "(\w{12})"/g;
	is(scalar(@ids), 5, "a single user generates, $run") or diag("$out\n$err");
	like($err, qr/no lease of a node\n.*DETAIL:  There is no lease worker in single-user mode\.\n.*HINT:  Set "scru64\.node_spec" to a node that the realm/,
		"a single user: no lease, $run");
	record_ids(\%received, $spec, \@ids);
	is(record_problems(\%received), '', "a single user: above all before, $run");
}
start_server($node);
goes_on_ok('after the single user');
$node->stop;
done_testing();
