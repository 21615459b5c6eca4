# A realm that is none: it speaks PostgreSQL's protocol, and answers what the lease
# worker asks, well, or as badly as the test wants.  And a proxy that stands before a
# realm, and delays, cuts and swallows.
#
# What is answered is a matter of the call: "connect", before anything was read;
# "startup", to the startup packet; "realm_id", "lease", "renew" and "release".  The
# names of bad answers are the keys of %bad_answers, %bad_startups and so on.

package Scru64FakeRealm;

use strict;
use warnings;

use Exporter 'import';
use Fcntl qw(:flock);
use IO::Select;
use IO::Socket::UNIX;
use POSIX ();
use PostgreSQL::Test::Utils;
use Scru64Fault;
use Socket;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(
  %bad_answers
  %bad_leases
  %bad_renewals
  %bad_realm_ids
  %bad_startups
  %endless_answers
  %odd_answers
  %silences
  fill_backlog
);

my $realm_id = '5c264000-0000-4000-8000-00000000fa6e';
my $usecs_a_tick = 256_000;
my $fakes = 0;
my @started;

#
# Messages
#

sub message
{
	my ($type, $content) = @_;

	return $type . pack('N', 4 + length($content)) . $content;
}

sub parameter
{
	my ($name, $value) = @_;

	return message('S', "$name\0$value\0");
}

sub columns
{
	my ($count) = @_;

	return message('T', pack('n', $count)
		  . join('', map { "c$_\0" . pack('NnNnNn', 0, 0, 25, 0xffff, 0xffffffff, 0) } 1 .. $count));
}

sub row
{
	my (@values) = @_;

	return message('D', pack('n', scalar(@values))
		  . join('', map { defined $_ ? pack('N', length($_)) . $_ : pack('N', 0xffffffff) } @values));
}

# An error or a notice: its fields as a list of codes and texts.
sub report
{
	my ($type, @fields) = @_;
	my $content = '';

	while (my ($code, $text) = splice(@fields, 0, 2))
	{
		$content .= "$code$text\0";
	}
	return message($type, "$content\0");
}

my $begin = message('1', '') . message('2', '');
my $complete = message('C', "SELECT 1\0");
my $ready = message('Z', 'I');
my $welcome = message('R', pack('N', 0))
  . join('', map { parameter(@{$_}) } (
	[ 'server_version', '15.0' ], [ 'server_encoding', 'UTF8' ], [ 'client_encoding', 'UTF8' ],
	[ 'standard_conforming_strings', 'on' ], [ 'integer_datetimes', 'on' ], [ 'in_hot_standby', 'off' ],
	[ 'default_transaction_read_only', 'off' ]))
  . message('K', pack('NN', 4711, 815)) . $ready;

sub rows
{
	my ($count, @rows) = @_;

	return $begin . columns($count) . join('', map { row(@{$_}) } @rows) . $complete . $ready;
}

sub good
{
	my (@values) = @_;

	return rows(scalar(@values), \@values);
}

sub failure
{
	my (@fields) = @_;

	return $begin . report('E', @fields) . $ready;
}

# What the answer has before the end of its row.
sub half
{
	my (@values) = @_;
	my $text = $begin . columns(scalar(@values)) . row(@values);

	return substr($text, 0, length($text) - 3);
}

#
# Answers
#
# Each is called with the connection and the values of a good answer, and returns what
# to send; then the connection goes on, unless the answer has closed it.
#

my @error = (S => 'ERROR', V => 'ERROR', C => '58000', M => 'out of order');

sub without
{
	my ($code) = @_;
	my %fields = @error;

	return failure(map { $_ eq $code ? () : ($_ => $fields{$_}) } qw(S V C M));
}

# Send something, and hang up.
sub parting
{
	my ($connection, $bytes) = @_;

	transmit($connection, $bytes);
	shutdown($connection->{socket}, 2);
	return '';
}

our %bad_answers = (
	'an error without V' => sub { without('V') },
	'an error without V that says it is over' => sub { failure(S => 'ERROR', C => '55000', M => 'it is over') },
	'an error without S' => sub { without('S') },
	'an error without C' => sub { without('C') },
	'an error without M' => sub { without('M') },
	'an error without S and V' => sub { failure(C => '55000', M => 'it is over') },
	'an error with nothing but V' => sub { failure(V => 'ERROR') },
	'an error without fields' => sub { failure() },
	'an error with unknown fields' => sub { failure(x => 'what', y => 'is', '!' => 'this') },
	'an error that is FATAL' => sub { parting(shift, $begin . report('E', S => 'FATAL', V => 'FATAL', C => '55000', M => 'going down')) },
	'an error of unknown severity' => sub { failure(S => 'ERROR', V => 'AWKWARD', C => '55000', M => 'it is over') },
	'an error after the row' => sub { shift; $begin . columns(scalar(@_)) . row(@_) . report('E', @error) . $ready },
	'an error after the end' => sub { shift; $begin . columns(scalar(@_)) . row(@_) . $complete . report('E', @error) . $ready },
	'an error without V after the end' => sub { shift; $begin . columns(scalar(@_)) . row(@_) . $complete . report('E', S => 'ERROR', C => '55000', M => 'it is over') . $ready },
	'an error before anything else' => sub { report('E', @error) . $ready },
	'an error of several lines, with control characters' => sub { failure(@error[ 0 .. 5 ], M => "one\ntwo\rthree\t\e[31mred\a\x7f \xc3\xa9 \xff") },
	'an error of 1 MB' => sub { failure(@error[ 0 .. 5 ], M => 'long ' x 200_000) },
	'an error with a severity of 1 MB' => sub { failure(S => 'E' x 1_000_000, V => 'E' x 1_000_000, C => '5' x 1_000_000, M => 'odd enough') },
	'an error that does not end' => sub { $begin . message('E', 'SERROR') . $ready },
	'a WARNING' => sub { shift; report('N', S => 'WARNING', V => 'WARNING', C => '01000', M => 'careful') . good(@_) },
	'a WARNING without V' => sub { shift; report('N', S => 'WARNING', C => '01000', M => 'careful') . good(@_) },
	'a WARNING after the row' => sub { my (undef, @values) = @_; my $text = good(@values); substr($text, 0, length($text) - length($ready)) . report('N', S => 'WARNING', C => '01000', M => 'careful') . $ready },
	'a notice without fields' => sub { shift; report('N') . good(@_) },
	'a notice of unknown severity' => sub { shift; report('N', S => 'WARNUNG', V => 'AWKWARD', C => '01000', M => 'careful') . good(@_) },
	'no columns' => sub { rows(0, []) },
	'no columns, and no rows' => sub { rows(0) },
	'fewer columns' => sub { shift; good(@_[ 0 .. $#_ - 1 ]) },
	'more columns' => sub { shift; good(@_, 'more') },
	'1,600 columns' => sub { good(('many') x 1600) },
	'no rows' => sub { shift; rows(scalar(@_)) },
	'two rows' => sub { shift; rows(scalar(@_), [@_], [@_]) },
	'a row with less than was said' => sub { shift; rows(scalar(@_), [ @_[ 0 .. $#_ - 1 ] ]) },
	'a row with more than was said' => sub { shift; rows(scalar(@_), [ @_, 'more' ]) },
	'a row out of the blue' => sub { shift; $begin . row(@_) . $complete . $ready },
	'a description of columns alone' => sub { shift; $begin . columns(scalar(@_)) . $ready },
	'a completion alone' => sub { $begin . $complete . $ready },
	'no completion' => sub { shift; $begin . columns(scalar(@_)) . row(@_) . $ready },
	'nothing but the end' => sub { $ready },
	'an empty query' => sub { $begin . message('n', '') . message('I', '') . $ready },
	'several results' => sub { shift; $begin . (columns(scalar(@_)) . row(@_) . $complete) x 3 . $ready },
	'a result, and an empty query' => sub { shift; $begin . columns(scalar(@_)) . row(@_) . $complete . message('I', '') . $ready },
	'all NULL' => sub { shift; good(map { undef } @_) },
	'a portal that is suspended' => sub { shift; $begin . columns(scalar(@_)) . row(@_) . message('s', '') . $ready },
	'COPY in' => sub { $begin . message('G', pack('Cn', 0, 0)) },
	'COPY out' => sub { $begin . message('H', pack('Cn', 0, 0)) },
	'COPY out, with data and an end' => sub { $begin . message('H', pack('Cn', 0, 0)) . message('d', "1\n") x 3 . message('c', '') . $complete . $ready },
	'COPY both' => sub { $begin . message('W', pack('Cn', 0, 0)) },
	'COPY in after the row' => sub { shift; $begin . columns(scalar(@_)) . row(@_) . message('G', pack('Cn', 0, 0)) },
	'a length of 0' => sub { $begin . 'T' . pack('N', 0) . $ready },
	'a length of 1' => sub { $begin . 'D' . pack('N', 1) . $ready },
	'a length of 3 in an error' => sub { $begin . 'E' . pack('N', 3) . $ready },
	'a length that is negative' => sub { $begin . 'D' . pack('N', 0xfffffff0) . $ready },
	'a value that is longer than its row' => sub { shift; $begin . columns(scalar(@_)) . message('D', pack('n', scalar(@_)) . pack('N', 100) . 'short') . $complete . $ready },
	'a value of negative length' => sub { shift; $begin . columns(scalar(@_)) . message('D', pack('n', scalar(@_)) . pack('N', 0xfffffffe) x @_) . $complete . $ready },
	'a negative number of columns' => sub { $begin . message('T', pack('n', 0xffff)) . $complete . $ready },
	'a message of unknown type' => sub { $begin . message('?', 'what is this') . $ready },
	'HTTP' => sub { "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n" },
	'nonsense' => sub { join('', map { chr(int(rand(256))) } 1 .. 4000) },
	'zeros' => sub { "\0" x 4000 },
	'a value of 1 MB' => sub { shift; good('x' x 1_000_000, @_[ 1 .. $#_ ], 'more') },
	'a transaction that failed' => sub { shift; $begin . report('E', @error) . message('Z', 'E') },
	'hanging up at once' => sub { parting(shift, '') },
	'hanging up before the columns' => sub { parting(shift, $begin) },
	'hanging up in the row' => sub { my ($connection, @values) = @_; parting($connection, half(@values)) },
	'hanging up after the row' => sub { my ($connection, @values) = @_; parting($connection, $begin . columns(scalar(@values)) . row(@values)) },
	'hanging up in the middle of an error' => sub { my $text = report('E', @error); parting(shift, substr($text, 0, 20)) },
	'hanging up with a WARNING without V' => sub { parting(shift, report('N', S => 'WARNING', M => 'careful')) });

# Odd, but all is there.
our %odd_answers = (
	'byte by byte' => sub {
		my ($connection, @values) = @_;

		foreach my $byte (split(//, good(@values)))
		{
			transmit($connection, $byte);
			sleep(0.001);
		}
		return '';
	},
	'with a NOTICE' => sub { shift; report('N', S => 'HINWEIS', V => 'NOTICE', C => '00000', M => 'by the way') . good(@_) },
	'with parameters between' => sub { shift; join(parameter('application_name', 'fake'), $begin, columns(scalar(@_)), row(@_), $complete, $ready) });

# Again and again, for as long as somebody listens.
sub without_end
{
	my ($connection, $first, $again) = @_;

	transmit($connection, $first);
	1 while transmit($connection, ref($again) ? $again->() : $again);
	return '';
}

our %endless_answers = (
	'rows' => sub { my ($c, @v) = @_; without_end($c, $begin . columns(scalar(@v)), row(@v) x 200) },
	'rows of 1 MB' => sub { my ($c, @v) = @_; without_end($c, $begin . columns(1), row('x' x 1_000_000)) },
	'notices' => sub { my ($c) = @_; without_end($c, $begin, report('N', S => 'NOTICE', V => 'NOTICE', C => '00000', M => 'by the way') x 200) },
	'errors' => sub { my ($c) = @_; without_end($c, $begin, report('E', @error) x 200) },
	'results' => sub { my ($c, @v) = @_; without_end($c, $begin, (columns(scalar(@v)) . row(@v) . $complete) x 100) },
	'empty queries' => sub { my ($c) = @_; without_end($c, $begin, message('I', '') x 1000) },
	'descriptions' => sub { my ($c) = @_; without_end($c, $begin, columns(5) x 100) },
	'COPY data' => sub { my ($c) = @_; without_end($c, $begin . message('H', pack('Cn', 0, 0)), message('d', 'x' x 1000) x 20) },
	'COPY responses' => sub { my ($c) = @_; without_end($c, $begin, (message('H', pack('Cn', 0, 0)) . message('c', '') . $complete) x 100) },
	'parameters' => sub { my ($c) = @_; my $n = 0; without_end($c, $begin, sub { join('', map { parameter('p' . $n++, 'x') } 1 .. 200) }) },
	'notifications' => sub { my ($c) = @_; without_end($c, $begin, message('A', pack('N', 1) . "channel\0" . 'x' x 1000 . "\0") x 20) },
	'drops' => sub { my ($c) = @_; without_end($c, $begin . 'D' . pack('N', 500_000_000), sub { sleep(0.01); 'x' }) });

sub with_number
{
	my ($place, $number) = @_;

	return sub { my (undef, @values) = @_; $values[$place] = $number; return good(@values) };
}

my %bad_numbers = (
	'no number' => 'abc', 'a number and more' => '1700000000000000abc', 'nothing' => '', 'a space' => ' ',
	'a minus sign' => '-', 'a hexadecimal one' => '0x60a0b0c0d0', 'infinity' => 'infinity', 'NaN' => 'NaN',
	'a fraction' => '1700000000000000.5', 'beyond int64' => '9223372036854775808', 'far beyond int64' => '9' x 400,
	'the greatest int64' => '9223372036854775807', 'the least int64' => '-9223372036854775808',
	'the year 1969' => '-86400000000', 'the year 4262' => '72330000000000000', 'the year 200000' => '6250000000000000000');

sub bad_times
{
	my ($place, $what) = @_;

	return map { ("$what: $_" => with_number($place, $bad_numbers{$_})) } keys %bad_numbers;
}

sub null_at
{
	my ($place, $what) = @_;

	return ("$what: NULL" => with_number($place, undef));
}

our %bad_leases = (
	bad_times(2, 'granted_at'), bad_times(3, 'expires_at'), bad_times(4, 'realm_clock'),
	null_at(0, 'lease_id'), null_at(1, 'node_spec'), null_at(2, 'granted_at'), null_at(3, 'expires_at'), null_at(4, 'realm_clock'),
	'it ends before it begins' => sub { shift; $_[3] = $_[2] - 3_600_000_000; good(@_) },
	'it ends when it begins' => sub { shift; $_[3] = $_[2]; good(@_) },
	(map { ("node $_" => with_number(1, $_)) }
		  ('', 'x', '42', '42/', '/12', '4096/12', '-1/12', '0/0', '1/24', '1/25', '4/11', '8/13', '42/12 ', '42/12/12', "42/1\x{b2}", '42/' . '1' x 1000, 'zzzzzzzzzzzz/12', '0' x 12)),
	(map { ("lease_id $_->[0]" => with_number(0, $_->[1])) } (
		[ 'too short', '5c264000-0000-4000-8000-00000000fa6' ], [ 'too long', '5c264000-0000-4000-8000-00000000fa6e0' ],
		[ 'empty', '' ], [ 'of another request', '5c264000-0000-4000-8000-000000000001' ], [ 'of 36 letters', 'z' x 36 ])));

our %bad_renewals = (
	bad_times(0, 'expires_at'), bad_times(1, 'realm_clock'), null_at(0, 'expires_at'), null_at(1, 'realm_clock'));

our %bad_realm_ids = (
	null_at(0, 'realm_id'),
	(map { ("realm_id $_->[0]" => with_number(0, $_->[1])) } (
		[ 'too short', substr($realm_id, 1) ], [ 'too long', "${realm_id}0" ], [ 'empty', '' ], [ 'of 36 letters', 'z' x 36 ],
		[ 'of 1 MB', 'a' x 1_000_000 ], [ 'with a line break', substr($realm_id, 1) . "\n" ])));

sub authentication
{
	my ($code, $more) = @_;

	return sub { message('R', pack('N', $code) . (defined $more ? $more : '')) };
}

our %bad_startups = (
	(map { ("authentication of kind $_" => authentication($_)) } (1, 2, 4, 6, 7, 8, 9, 11, 12, 13, 99, 0x7fffffff, 0xffffffff)),
	'a password in clear text' => authentication(3),
	'md5 without salt' => authentication(5),
	'SASL without mechanisms' => authentication(10, "\0"),
	'SASL by unknown mechanisms' => authentication(10, "WHAT\0IS-THIS\0\0"),
	'SASL without end' => authentication(10, 'SCRAM-SHA-256'),
	'authentication without a kind' => sub { message('R', '') },
	'authentication of 1 MB' => sub { message('R', pack('N', 0) . 'x' x 1_000_000) },
	'another version of the protocol' => sub { message('v', pack('NN', 0x00020000, 3) . "one\0two\0three\0") . $welcome },
	'an error without V' => sub { parting(shift, report('E', S => 'FATAL', C => '28000', M => 'no such thing')) },
	'an error without fields' => sub { parting(shift, report('E')) },
	'an error of an old server' => sub { parting(shift, "Eno such thing\n\0") },
	'an error of several lines, with control characters' => sub { parting(shift, report('E', S => 'FATAL', V => 'FATAL', C => '28000', M => "one\ntwo\e[31m \xc3\xa9\a")) },
	'an error of 1 MB' => sub { parting(shift, report('E', S => 'FATAL', V => 'FATAL', C => '28000', M => 'long ' x 200_000)) },
	'a notice without fields, then an error' => sub { parting(shift, report('N') . report('E', S => 'FATAL', M => 'no such thing')) },
	'a notice of several lines, then hanging up' => sub { parting(shift, message('R', pack('N', 0)) . report('N', S => 'WARNING', M => "one\n2026-01-01 LOG:  two\n")) },
	'the end first' => sub { parting(shift, $ready) },
	'a secret key of no length' => sub { parting(shift, message('R', pack('N', 0)) . message('K', '') . $ready) },
	'HTTP' => $bad_answers{HTTP},
	'nonsense' => $bad_answers{nonsense},
	'zeros' => $bad_answers{zeros},
	'hanging up' => sub { parting(shift, '') },
	'hanging up in the middle' => sub { parting(shift, substr($welcome, 0, 100)) });

# Say the beginning of it, and no more, for longer than anybody waits.
sub fall_silent
{
	my ($bytes) = @_;

	return sub {
		my ($connection, @values) = @_;

		transmit($connection, ref($bytes) ? $bytes->(@values) : $bytes);
		sleep(300);
		return '';
	};
}

my %silences_at_calls = (
	'nothing' => fall_silent(''),
	'a type' => fall_silent('1'),
	'the beginning' => fall_silent($begin),
	'half of the row' => fall_silent(\&half),
	'all but the end' => fall_silent(sub { my $text = good(@_); substr($text, 0, length($text) - length($ready)) }),
	'COPY in' => fall_silent($begin . message('G', pack('Cn', 0, 0))),
	# libpq waits for the rest of it
	'COPY with no sense in it' => fall_silent($begin . message('H', pack('Cnn', 7, 65535, 9)) . $ready),
	'a length of 2^31 - 1' => fall_silent($begin . 'D' . pack('N', 0x7fffffff)),
	'a length of 2^30' => fall_silent($begin . 'D' . pack('N', 0x40000000)));

our %silences = (
	connect => { 'nothing' => fall_silent('') },
	startup => {
		'nothing' => fall_silent(''), 'a type' => fall_silent('R'), 'half of a message' => fall_silent(substr($welcome, 0, 7)),
		'all but the end' => fall_silent(substr($welcome, 0, length($welcome) - length($ready))),
		'an error that does not end' => fall_silent('E' . pack('N', 2000) . 'SFATAL')
	},
	map { $_ => \%silences_at_calls } qw(realm_id lease renew release));

my %answers = (
	(map { $_ => { %bad_answers, %odd_answers, (map { ("$_ without end" => $endless_answers{$_}) } keys %endless_answers) } } qw(realm_id lease renew release)),
	connect => {},
	startup => { %bad_startups, 'parameters without end' => sub { my ($c) = @_; my $n = 0; without_end($c, message('R', pack('N', 0)), sub { join('', map { parameter('p' . $n++, 'x') } 1 .. 200) }) },
		'notices without end' => sub { my ($c) = @_; without_end($c, message('R', pack('N', 0)), report('N', S => 'NOTICE', M => 'by the way') x 200) },
		'authentication without end' => sub { my ($c) = @_; without_end($c, '', message('R', pack('N', 0)) x 200) } });
%{ $answers{lease} } = (%{ $answers{lease} }, %bad_leases);
%{ $answers{renew} } = (%{ $answers{renew} }, %bad_renewals);
%{ $answers{realm_id} } = (%{ $answers{realm_id} }, %bad_realm_ids);
foreach my $call (keys %silences)
{
	$answers{$call}{"silence after $_"} = $silences{$call}{$_} foreach (keys %{ $silences{$call} });
}

#
# A connection
#

# All of it; false if nobody listens any more.
sub transmit
{
	my ($connection, $bytes) = @_;

	while (length($bytes) > 0)
	{
		my $written = syswrite($connection->{socket}, $bytes);

		return 0 if !$written;
		substr($bytes, 0, $written, '');
	}
	return 1;
}

sub receive
{
	my ($connection, $length) = @_;
	my $bytes = '';

	while (length($bytes) < $length)
	{
		# the other one has hung up
		POSIX::_exit(0) if !sysread($connection->{socket}, $bytes, $length - length($bytes), length($bytes));
	}
	return $bytes;
}

# What was bound to a statement, as text.
sub parameters_of
{
	my ($content) = @_;
	my (undef, undef, $rest) = split(/\0/, $content, 3);
	my ($formats) = unpack('n', $rest);
	my $at = 2 + 2 * $formats;
	my @values;

	foreach my $n (1 .. unpack('n', substr($rest, $at, 2)))
	{
		my $length = unpack('l>', substr($rest, $at + 2, 4));

		push @values, $length < 0 ? undef : substr($rest, $at + 6, $length);
		$at += 4 + ($length < 0 ? 0 : $length);
	}
	return @values;
}

# Up to the next Sync: the statement, and its parameters.
sub next_question
{
	my ($connection) = @_;
	my ($sql, @parameters);

	for (;;)
	{
		my ($type, $length) = unpack('aN', receive($connection, 5));
		my $content = receive($connection, $length - 4);

		POSIX::_exit(0) if $type eq 'X';
		$sql = (split(/\0/, $content))[1] if $type eq 'P';
		@parameters = parameters_of($content) if $type eq 'B';
		return ($sql, @parameters) if $type eq 'S';
	}
}

sub now_usecs
{
	return int(time() * 1_000_000);
}

# For longer than any test takes, whatever was asked for.
sub until_usecs
{
	return now_usecs() + 3_600_000_000;
}

# What a good realm answers.  Each lease has a node of its own.
sub good_values
{
	my ($self, $call, @parameters) = @_;

	return ($realm_id, 'warning') if $call eq 'realm_id';
	return ('') if $call eq 'release';
	return (until_usecs(), now_usecs()) if $call eq 'renew';

	my ($size, undef, undef, $within, $request) = @parameters;
	my ($block, $block_size) = split(/\//, $within || '0/0');
	my $free = 1 << ($size - $block_size);
	my $node = ($block || 0) * $free + $self->events('lease') % $free;
	return ($request, "$node/$size", now_usecs(), until_usecs(), now_usecs());
}

sub call_of
{
	my ($sql) = @_;

	return $sql =~ /scru64_realm\.(realm_id|lease|renew|release)\(/ ? $1 : die "an unknown question: $sql";
}

# Answer a call as the test has it: false if the answer is a good one.
sub answer
{
	my ($self, $connection, $call, @values) = @_;
	my ($name) = map { /^$call\t(.*)$/ ? $1 : () } split(/\n/, read_file("$self->{dir}/script"));

	$self->note_event(join("\t", $call, $connection->{name}, $name || 'good', map { defined $_ ? substr($_, 0, 100) : 'NULL' } @values));
	return 0 if !defined $name;
	my $bytes = ($answers{$call}{$name} || die "unknown answer to $call: $name")->($connection, @values);
	transmit($connection, $bytes);
	return 1;
}

sub serve
{
	my ($self, $socket) = @_;
	my $connection = { socket => $socket, name => '' };

	$self->answer($connection, 'connect');
	my $startup = receive($connection, unpack('N', receive($connection, 4)) - 4);
	# no encryption
	while (length($startup) == 4)
	{
		transmit($connection, 'N');
		$startup = receive($connection, unpack('N', receive($connection, 4)) - 4);
	}
	my %options = split(/\0/, substr($startup, 4));
	$connection->{name} = $options{application_name} || '';
	transmit($connection, $welcome) if !$self->answer($connection, 'startup');
	for (;;)
	{
		my ($sql, @parameters) = next_question($connection);
		my $call = call_of($sql);
		my @values = $self->good_values($call, @parameters);

		transmit($connection, good(@values)) if !$self->answer($connection, $call, @values);
	}
}

#
# The realm
#

# A process for each connection, none of which outlives the test.
sub serve_all
{
	my ($self, $listener, $code) = @_;
	my $parent = getppid();
	my $select = IO::Select->new($listener);

	setpgrp(0, 0);
	$SIG{CHLD} = 'IGNORE';
	$SIG{PIPE} = 'IGNORE';
	$SIG{TERM} = 'DEFAULT';
	while (getppid() == $parent)
	{
		my $socket = $select->can_read(1) ? $listener->accept : undef;

		next if !$socket;
		next if fork() != 0;
		close($listener);
		alarm(600);
		srand();
		eval { $code->($socket); };
		$self->note_event("died\t$@") if $@;
		POSIX::_exit(0);
	}
	kill('TERM', -$$);
	POSIX::_exit(0);
	return;
}

sub start
{
	my ($self, $code) = @_;
	my $listener = IO::Socket::UNIX->new(Local => "$self->{dir}/.s.PGSQL.$self->{port}", Listen => 100)
	  or die "could not listen: $!";
	my $pid = fork();

	if ($pid == 0)
	{
		# what this process has of the test must not end with it
		eval { $self->serve_all($listener, $code); };
		POSIX::_exit(0);
	}
	close($listener);
	$self->{pid} = $pid;
	push @started, $self;
	return $self;
}

sub prepare
{
	my ($class) = @_;
	my $self = bless { dir => PostgreSQL::Test::Utils::tempdir_short(), port => 5400 + $fakes++ }, $class;

	$self->answers();
	replace_file("$self->{dir}/events", '');
	return $self;
}

sub new
{
	my ($class) = @_;
	my $self = prepare($class);

	return $self->start(sub { $self->serve(shift) });
}

sub stop
{
	my ($self) = @_;

	return if !$self->{pid};
	# the group, when there is one: at first there may be none
	kill('TERM', -$self->{pid}, $self->{pid});
	waitpid(delete $self->{pid}, 0);
	unlink("$self->{dir}/.s.PGSQL.$self->{port}");
	return;
}

END
{
	local $?;
	$_->stop foreach (@started);
}

sub dir { return $_[0]->{dir} }
sub port { return $_[0]->{port} }

# A connection string, which has a name that the events have, too.
sub connstr
{
	my ($self, $name) = @_;

	return "host=$self->{dir} port=$self->{port} dbname=realm user=fleet sslmode=disable gssencmode=disable application_name=$name";
}

# From now on these calls are answered so, and all others well.
sub answers
{
	my ($self, %names) = @_;

	foreach my $call (keys %names)
	{
		die "unknown answer to $call: $names{$call}" if !$answers{$call}{ $names{$call} };
	}
	replace_file("$self->{dir}/script", join('', map { "$_\t$names{$_}\n" } keys %names));
	return;
}

sub note_event
{
	my ($self, $line) = @_;

	open(my $file, '>>:raw', "$self->{dir}/events") or die "could not open: $!";
	$line =~ s/\n/ /g;
	syswrite($file, "$line\n");
	close($file);
	return;
}

# What has happened: calls of a kind, under a name.
sub events
{
	my ($self, $call, $name) = @_;

	return grep { my @fields = split(/\t/); $fields[0] eq $call && (!defined $name || $fields[1] eq $name) }
	  split(/\n/, read_file("$self->{dir}/events"));
}

# The windows of good leases: node => [ tick after which, and up to which ].
sub windows
{
	my ($self) = @_;
	my %windows;
	my $last;

	foreach my $line (split(/\n/, read_file("$self->{dir}/events")))
	{
		my ($call, undef, $answer, @values) = split(/\t/, $line);

		next if !$odd_answers{$answer} && $answer ne 'good';
		if ($call eq 'lease')
		{
			$last = $values[1];
			$windows{$last} = [ map { int($_ / $usecs_a_tick) } @values[ 2, 3 ] ];
		}
		$windows{$last}[1] = int($values[0] / $usecs_a_tick) if $call eq 'renew';
	}
	return %windows;
}

#
# A proxy before a realm
#

# One way: until something happens to it.
sub shovel
{
	my ($from, $to, $fault) = @_;

	return 0 if !sysread($from, my $bytes, 8192);
	$fault->{left} -= length($bytes);
	sleep($fault->{delay});
	if ($fault->{left} < 0)
	{
		return 0 if $fault->{kind} eq 'cut';
		# swallow it
		$bytes = substr($bytes, 0, length($bytes) + $fault->{left});
		$fault->{left} = 0;
	}
	return transmit({ socket => $to }, $bytes);
}

# Each way may be delayed, cut, or end in nothing.
sub random_fault
{
	my ($share) = @_;
	my $draw = rand();

	return {
		kind => $draw < $share ? 'cut' : 'swallow',
		left => $draw < 2 * $share ? int(rand(1200)) : 1_000_000_000,
		delay => rand() < 3 * $share ? rand(1.5) : 0
	};
}

sub relay
{
	my ($self, $client, $target) = @_;
	my $server = IO::Socket::UNIX->new(Peer => $target) or return;
	my $share = read_file("$self->{dir}/share") + 0;
	my %ways = (
		fileno($client) => [ $client, $server, random_fault($share) ],
		fileno($server) => [ $server, $client, random_fault($share) ]);
	my $select = IO::Select->new($client, $server);

	$self->note_event("fault\t" . join(', ', map { sprintf('%s after %d bytes, %.1f s late', @{ $_->[2] }{qw(kind left delay)}) } values %ways))
	  if grep { $_->[2]{left} < 1_000_000_000 || $_->[2]{delay} } values %ways;
	while (my @ready = $select->can_read(30))
	{
		foreach my $socket (@ready)
		{
			return if !shovel(@{ $ways{ fileno($socket) } });
		}
	}
	return;
}

sub proxy
{
	my ($class, $realm) = @_;
	my $self = prepare($class);
	my $target = $realm->host . '/.s.PGSQL.' . $realm->port;

	$self->share_of_faults(0);
	return $self->start(sub { $self->relay(shift, $target) });
}

# How many of the ways have a fault, of each kind.
sub share_of_faults
{
	my ($self, $share) = @_;

	replace_file("$self->{dir}/share", $share);
	return;
}

#
# A host that drops what it gets
#

# A port of 127.0.0.1 whose backlog is full: whoever connects to it waits.  Returns the
# port, and what keeps it so; nothing if it is not to be had.
sub fill_backlog
{
	my @kept;

	socket(my $listener, PF_INET, SOCK_STREAM, 0) or return;
	bind($listener, pack_sockaddr_in(0, INADDR_LOOPBACK)) or return;
	listen($listener, 0) or return;
	my ($port) = unpack_sockaddr_in(getsockname($listener));
	push @kept, $listener;
	foreach my $n (1 .. 10)
	{
		socket(my $client, PF_INET, SOCK_STREAM, 0) or return;
		IO::Handle::blocking($client, 0);
		connect($client, pack_sockaddr_in($port, INADDR_LOOPBACK));
		push @kept, $client;
		return ($port, \@kept) if !IO::Select->new($client)->can_write(0.5);
	}
	return;
}

1;
