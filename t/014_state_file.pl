# The state file is damaged, or it cannot be read or written: an error that names
# it, no ID, nothing lost, others go on reading, and generation goes on once the
# file is mended.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Scru64Fault;
use Scru64Test;
use Test::More;
use Time::HiRes qw(sleep);

# Node specs that are in the file all the time, and the last unused one.
my @specs = ('1/8', '700/12', '5/20');
my $unused = 100;

my $node = new_node('main');
my $state = state_file($node);
my $temporary = "$state.tmp";

start_server($node);
$node->safe_psql('postgres', 'CREATE EXTENSION scru64');
$node->safe_psql(
	'postgres', q(
CREATE TABLE other AS SELECT g FROM generate_series(1, 1000) g;

-- IDs until the first error, or for so many seconds, and the error
CREATE FUNCTION give_until_error(seconds integer, OUT ids text, OUT state text, OUT message text)
LANGUAGE plpgsql AS $$
DECLARE
	began timestamptz := clock_timestamp();
	given scru64[];
BEGIN
	WHILE clock_timestamp() < began + make_interval(secs => seconds) LOOP
		given := given || scru64_generate();
		PERFORM pg_sleep(0.02);
		ids := array_to_string(given, ' ');
	END LOOP;
EXCEPTION WHEN OTHERS THEN
	state := SQLSTATE;
	message := SQLERRM;
END
$$;
));

my %received;

# Generate in a session of its own, or another one: what it gave and its errors.
sub generate
{
	my ($spec, $session) = @_;
	my $own = !defined $session;

	$session = open_session($node) if $own;
	my ($out, $err) = try_statement($session,
		"SET scru64.node_spec = '$spec'; SELECT scru64_generate()");
	$session->quit if $own;
	record_ids(\%received, $spec, [ split(/\n/, $out) ]);
	return ($out, $err);
}

sub refused_ok
{
	my ($spec, $error, $name) = @_;
	my ($out, $err) = generate($spec);

	is($out, '', "$name: no ID of $spec");
	like($err, $error, "$name: the error of $spec");
	return;
}

sub reads_ok
{
	my ($name) = @_;

	is( $node->safe_psql('postgres',
			'SELECT sum(g), (SELECT count(*) >= 0 FROM scru64_generators) FROM other'),
		'500500|t',
		"$name: other sessions read, the view too");
	return;
}

sub goes_on_ok
{
	my ($name, @of) = @_;

	foreach my $spec (@of)
	{
		my ($out, $err) = generate($spec);

		is($err, '', "$name: $spec goes on");
	}
	is(record_problems(\%received), '', "$name: no ID twice, none too low");
	return;
}

#
# A file that is not as it was written.  It is read when the first ID after a
# start is asked for, and again until it could be read.
#
goes_on_ok('first', @specs);
$node->stop;
my $good = read_file($state);
my ($body) = $good =~ /^.*?\n(.*)$/s;

like($good, qr{^scru64 state file, version 1, checksum [0-9a-f]{8}\ntimeline 1\nfloor [0-9a-z]{12}\n([0-9a-z]{12}/(8|12|20)\n){3}$}, 'the file is as the reference says');
is($good, state_text($body), 'with the checksum that the reference says');
start_server($node);

my $session = open_session($node);
my $current = $good;
my @accepted;
my @wrong;
my $tried = 0;

# Errors of a file with this text; collects what goes wrong.
sub try_text
{
	my ($what, $text, $error) = @_;

	$tried++;
	replace_file($state, $text);
	my ($out, $err) = generate('1/8', $session);

	if ($err eq '')
	{
		push @accepted, $what;
		$session->quit;
		$node->stop('immediate');
		# what this did is wrong, but the next file must not look so
		$current = read_file($state);
		%received = ();
		start_server($node);
		$session = open_session($node);
	}
	else
	{
		push @wrong, "$what: $err" if $err !~ $error || $out ne '';
		push @wrong, "$what: the file is another one"
		  if read_file($state) ne $text;
	}
	return;
}

sub tried_ok
{
	my ($name) = @_;

	is(join(', ', @accepted), '', "$name: no ID");
	is(join("\n", @wrong), '', "$name: an error that names the file");
	cmp_ok($tried, '>', 0, "$name: $tried files");
	@accepted = @wrong = ();
	$tried = 0;
	return;
}

my $damaged = qr/^psql:.*: ERROR:  XX001: file "scru64\.state" is damaged\nDETAIL:  .*\nHINT:  .*scru64\.node_spec/;
my $damaged_or_future = qr/ERROR:  (XX001|0A000): file "scru64\.state" /;
my $future = qr/ERROR:  0A000: file "scru64\.state" has version \d+, which this version of scru64 cannot read\nDETAIL:  .*\nHINT:  Install/;

foreach my $mask (0x01, 0x10, 0x20, 0x80, 0xff)
{
	foreach my $i (0 .. length($good) - 1)
	{
		my $text = $good;

		substr($text, $i, 1) = chr(ord(substr($text, $i, 1)) ^ $mask);
		try_text(sprintf('byte %d ^ 0x%02x', $i, $mask), $text, $damaged_or_future);
	}
}
tried_ok('each byte flipped');
reads_ok('damaged');

try_text("$_ bytes", substr($good, 0, $_), $damaged)
  foreach (0 .. length($good) - 1);
tried_ok('truncated at every length');

my %texts = (
	'one byte more' => $good . 'x',
	'one line end more' => "$good\n",
	'twice' => $good . $good,
	'a zero byte at the end' => "$good\0",
	'a blank at the start' => " $good",
	'garbage' => join('', map { chr($_ * 37 % 256) } (1 .. 500)),
	'zeros' => "\0" x length($good),
	'longer than any' => $good . "0w6fn1vzzzzz/8\n" x 100_000,
	'line ends of Windows' => $good =~ s/\n/\r\n/gr,
	'no lines' => state_text(''),
	'no timeline' => state_text($body =~ s/^timeline.*\n//r),
	'a timeline that is no number' => state_text($body =~ s/^timeline .*/timeline x/r),
	'a timeline that is too long' => state_text($body =~ s/^timeline /timeline 4294967296/r),
	'no floor' => state_text($body =~ s/^floor.*\n//mr),
	'two floors' => state_text($body =~ s/^(floor.*\n)/$1$1/mr),
	'a short floor' => state_text($body =~ s/^(floor \w{11})\w/$1/mr),
	'a floor that is not an ID' => state_text($body =~ s/^floor .*/floor zzzzzzzzzzz!/mr),
	'an empty line' => state_text("$body\n"),
	'a node without a ceiling' => state_text("${body}42/8\n"),
	'a node of size 24' => state_text("${body}0w6fn1vzzzzz/24\n"),
	'a line without its end' => state_text(substr($body, 0, -1)),
	'a line of something else' => state_text("${body}hello\n"));
try_text($_, $texts{$_}, $damaged) foreach (sort keys %texts);
tried_ok('other contents');

try_text("version $_", state_text("$body# and more\n", $_), $future)
  foreach (0, 2, 10, 11, 4711);
tried_ok('another version');

# Not a file, or not for the server to read.
unlink($state);
mkdir($state) or die "could not make $state: $!";
refused_ok('1/8', qr/ERROR:  42809: could not read file "scru64\.state": Is a directory/, 'a directory');
reads_ok('a directory');
rmdir($state);
replace_file($state, $current);
chmod(0, $state);
refused_ok('1/8', qr/ERROR:  42501: could not open file "scru64\.state" for reading: Permission denied/, 'no permission');
reads_ok('no permission');
chmod(0600, $state);

is(read_file($state), $current, 'the file is as it was');
goes_on_ok('mended', @specs);
$session->quit;

#
# A file that cannot be written.  Who has a ceiling goes on up to it.
#
my $holder = open_session($node);

$holder->query_safe("SET scru64.node_spec = '1/8'");
chmod(0500, $node->data_dir);
my $before = read_file($state);
my ($ids, $sqlstate, $message) =
  split(/\|/, $holder->query_safe('SELECT * FROM give_until_error(20)'));
my @ids = split(/ /, $ids);

record_ids(\%received, '1/8', \@ids);
is(record_problems(\%received), '', 'read-only directory: who has a ceiling generates');
cmp_ok($ids[-1], 'le', ceiling_of($node, '1/8'), 'read-only directory: up to the ceiling');
is($sqlstate, '42501', 'read-only directory: then there is an error');
is($message, 'could not create file "scru64.state.tmp": Permission denied', 'read-only directory: that names the file');
foreach my $again (1 .. 3)
{
	foreach my $spec ('1/8', $unused . '/8')
	{
		refused_ok($spec,
			qr/ERROR:  42501: could not create file "scru64\.state\.tmp": Permission denied\nDETAIL:  No ID is generated before the state file "scru64\.state" is written\./,
			"read-only directory, $again");
	}
}
reads_ok('read-only directory');
is(read_file($state), $before, 'read-only directory: the file is as it was');
chmod(0700, $node->data_dir);
goes_on_ok('directory mended', @specs, $unused++ . '/8');
record_ids(\%received, '1/8', [ $holder->query_safe('SELECT scru64_generate()') ]);
is(record_problems(\%received), '', 'directory mended: the session goes on');
$holder->quit;

# Things in the way: how, what it looks like, how to mend it.
my @obstacles = (
	[
		'a directory has the temporary name',
		sub { mkdir($temporary) },
		qr/ERROR:  42809: could not create file "scru64\.state\.tmp": Is a directory/,
		sub { rmdir($temporary) }
	],
	[
		'the temporary file is not writable',
		sub { replace_file($temporary, 'left over'); chmod(0400, $temporary) },
		qr/ERROR:  42501: could not create file "scru64\.state\.tmp": Permission denied/,
		sub { unlink($temporary) }
	],
	[
		'the state file is not writable',
		sub { chmod(0400, $state) },
		qr/ERROR:  42501: could not open file "scru64\.state": Permission denied/,
		sub { chmod(0600, $state) }
	],
	[
		'a directory is in the place of the state file',
		sub { unlink($state); mkdir($state) },
		qr/ERROR:  42809: could not open file "scru64\.state": Is a directory/,
		sub { rmdir($state) }
	],
	[
		'a write finds no space',
		sub { symlink('/dev/full', $temporary) },
		qr/ERROR:  53100: could not write file "scru64\.state\.tmp": No space left on device\nDETAIL:  No ID is generated before the state file/,
		sub { unlink($temporary) }
	]);

foreach my $obstacle (@obstacles)
{
	my ($name, $put, $error, $mend) = @{$obstacle};
	my $spec = $unused++ . '/8';

	foreach my $again (1 .. 2)
	{
		# what was put there may be gone with the error
		$put->();
		$before = -f $state && read_file($state);
		refused_ok($spec, $error, "$name, $again");
		is(-f $state && read_file($state), $before, "$name, $again: the state file is as it was");
	}
	reads_ok($name);
	$mend->();
	goes_on_ok("$name, mended", $spec, @specs);
}

# A write that fails half-way, and a crash after it.
SKIP:
{
	skip 'prlimit is not installed', 1
	  if system('prlimit --version > /dev/null 2>&1') != 0;

	my $spec = $unused++ . '/8';

	$session = open_session($node);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	$before = read_file($state);
	command_ok([ 'prlimit', "--pid=$pid", '--fsize=30:30' ], 'a session can write no more than 30 bytes to a file');
	foreach my $again (1 .. 2)
	{
		my ($out, $err) = generate($spec, $session);

		is($out, '', "half-way, $again: no ID");
		like($err, qr/ERROR:  \w{5}: could not write file "scru64\.state\.tmp": File too large\n/, "half-way, $again: the error");
		is(read_file($state), $before, "half-way, $again: the state file is as it was");
		ok(!-e $temporary, "half-way, $again: nothing is left over");
	}
	goes_on_ok('half-way, another session', $spec, @specs);
	$before = read_file($state);
	generate($unused++ . '/8', $session);
	kill_server($node);
	$session->{run}->finish;
	is(read_file($state), $before, 'half-way, then a crash: the state file is as it was');
	start_server($node);
	goes_on_ok('half-way, then a crash', $spec, @specs);
}

# What a crash has left over of a write is not read: half of it, or all.
foreach my $left_over ('scru64 state file, ver', $good, state_text("timeline 1\nfloor 000000000000\n"))
{
	kill_server($node);
	replace_file($temporary, $left_over);
	start_server($node);
	goes_on_ok('a left-over temporary file', @specs);
	ok(!-e $temporary, 'a left-over temporary file: it is gone');
}
$node->stop;

#
# A small file system that is full.
#
SKIP:
{
	my $small_fs = $ENV{SCRU64_SMALL_FS};

	skip 'SCRU64_SMALL_FS does not name a small file system', 1
	  if !defined $small_fs || $small_fs eq '';

	my $small = PostgreSQL::Test::Cluster->new('small');
	my $data = "$small_fs/pgdata.$$";
	my $filler = "$small_fs/filler.$$";

	mkdir($data) or die "could not make $data: $!";
	chmod(0700, $data);
	symlink($data, $small->data_dir) or die "could not link $data: $!";
	$small->init(extra => ['--wal-segsize=1']);
	$small->append_conf('postgresql.conf',
		"min_wal_size = 2MB\nmax_wal_size = 8MB\nautovacuum = off\nshared_buffers = 16MB\n");
	$node = $small;
	%received = ();
	start_server($node);
	$node->safe_psql('postgres', 'CREATE EXTENSION scru64; CREATE TABLE other AS SELECT g FROM generate_series(1, 1000) g; CHECKPOINT');
	$node->safe_psql('postgres', 'VACUUM other');
	goes_on_ok('small file system', @specs);

	open(my $file, '>', $filler) or die "could not open $filler: $!";
	my $block = 'x' x 4096;
	while (syswrite($file, $block)) { }
	close($file);

	$before = read_file(state_file($node));
	refused_ok($unused . '/8',
		qr/ERROR:  53100: could not (create|write|fsync) file "scru64\.state\.tmp": No space left on device/,
		"full file system, $_") foreach (1 .. 3);
	reads_ok('full file system');
	is(read_file(state_file($node)), $before, 'full file system: the state file is as it was');
	unlink($filler);
	goes_on_ok('full file system, mended', $unused++ . '/8', @specs);
	kill_server($node);
	start_server($node);
	goes_on_ok('full file system, after a crash', @specs);
	$node->stop;
	system('rm', '-r', $data);
}

done_testing();
