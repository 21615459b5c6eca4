# A proxy between servers and their realm.  It delays, cuts and swallows what they say, at
# random; or it answers calls as no realm does.

package Scru64Proxy;

use strict;
use warnings;

use Exporter 'import';
use IO::Select;
use IO::Socket::UNIX;
use POSIX ();
use PostgreSQL::Test::Utils;
use Scru64Files;
use Time::HiRes qw(sleep);

our @EXPORT = qw(columns message report row transmit);

my $proxies = 0;
my @started;

#
# Messages of PostgreSQL's protocol
#

sub message
{
	my ($type, $content) = @_;

	return $type . pack('N', 4 + length($content)) . $content;
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

# The values of the row in an answer, if it is whole; nothing if it is not.
sub values_of
{
	my ($answer) = @_;
	my @values;

	while (length($answer) >= 5)
	{
		my ($type, $length) = unpack('aN', $answer);
		my $content = substr($answer, 5, $length - 4);

		return if length($content) < $length - 4;
		return \@values if $type eq 'Z';
		@values = unpack('x2 (N/a)*', $content) if $type eq 'D';
		$answer = substr($answer, 1 + $length);
	}
	return;
}

# Send all of it; false if nobody listens any more.
sub transmit
{
	my ($socket, $bytes) = @_;

	while (length($bytes) > 0)
	{
		my $written = syswrite($socket, $bytes);

		return 0 if !$written;
		substr($bytes, 0, $written, '');
	}
	return 1;
}

#
# A connection
#

# Both ways through a filter each, which returns what to send on, or nothing to hang up.
sub relay
{
	my ($self, $client, $to_realm, $to_client) = @_;
	my $realm = IO::Socket::UNIX->new(Peer => $self->{realm}) or return;
	my %ways = (fileno($client) => [ $client, $realm, $to_realm ], fileno($realm) => [ $realm, $client, $to_client ]);
	my $select = IO::Select->new($client, $realm);

	while (my @ready = $select->can_read(300))
	{
		foreach my $way (map { $ways{ fileno($_) } } @ready)
		{
			my ($from, $to, $filter) = @{$way};

			return if !sysread($from, my $bytes, 8192);
			$bytes = $filter->($bytes);
			return if !defined $bytes || !transmit($to, $bytes);
		}
	}
	return;
}

# Answer as the test has it, and note each call, with the name in the connection string.
sub answer
{
	my ($self, $client) = @_;
	my ($name, $gathered, $instead) = ('', '');
	my $note_call = sub {
		my ($call) = @_;
		my ($answer) = $self->setting =~ /^$call\t(.*)$/m;

		$self->note_event("$call\t$name");
		$instead = defined $answer ? $self->{answers}{$answer} : undef;
		return;
	};

	$note_call->('connect');
	return $instead->($client) if defined $instead;
	$self->relay(
		$client,
		sub {
			my ($bytes) = @_;

			$name = $1, $note_call->('startup') if $name eq '' && $bytes =~ /\0application_name\0([^\0]+)/;
			$note_call->($1) if $bytes =~ /scru64_realm\.(realm_id|lease|renew|release)\(/;
			return $bytes;
		},
		sub {
			my ($bytes) = @_;

			return $bytes if !defined $instead;
			# after the realm has answered
			$gathered .= $bytes;
			my $values = values_of($gathered) or return '';
			my $answer = $instead;
			($gathered, $instead) = ('', undef);
			return $answer->($client, @{$values});
		});
	return;
}

# A way may be delayed, cut, or end in nothing.
sub random_filter
{
	my ($self) = @_;
	my $share = $self->setting;
	my $draw = rand();
	my $left = $draw < 2 * $share ? int(rand(1200)) : 1_000_000_000;
	my $is_cut = $draw < $share;
	my $delay = rand() < 3 * $share ? rand(1.5) : 0;

	$self->note_event('fault') if $draw < 2 * $share || $delay;
	return sub {
		my ($bytes) = @_;

		$left -= length($bytes);
		sleep($delay);
		return $bytes if $left >= 0;
		return if $is_cut;
		# swallow it
		$bytes = substr($bytes, 0, length($bytes) + $left);
		$left = 0;
		return $bytes;
	};
}

#
# The proxy
#

# A process for each connection, none of which outlives the test.
sub serve
{
	my ($self, $listener) = @_;
	my $parent = getppid();
	my $select = IO::Select->new($listener);

	setpgrp(0, 0);
	$SIG{CHLD} = 'IGNORE';
	$SIG{PIPE} = 'IGNORE';
	$SIG{TERM} = 'DEFAULT';
	while (getppid() == $parent)
	{
		my $client = $select->can_read(1) ? $listener->accept : undef;

		next if !$client || fork() != 0;
		close($listener);
		alarm(600);
		srand();
		eval {
			$self->{answers} ? $self->answer($client) :
			  $self->relay($client, $self->random_filter, $self->random_filter);
		};
		$self->note_event("died\t$@") if $@;
		POSIX::_exit(0);
	}
	kill('TERM', -$$);
	return;
}

# A proxy before a realm: one with answers, name => function; or one with faults.  A
# function is called with the server's socket and the values of the realm's answer, and
# returns what to send, or nothing to hang up.
sub new
{
	my ($class, $realm, $answers) = @_;
	my $self = bless {
		dir => PostgreSQL::Test::Utils::tempdir_short(),
		port => 5400 + $proxies++,
		realm => $realm->host . '/.s.PGSQL.' . $realm->port,
		answers => $answers
	}, $class;

	$self->set($answers ? '' : 0);
	replace_file("$self->{dir}/events", '');
	my $listener = IO::Socket::UNIX->new(Local => "$self->{dir}/.s.PGSQL.$self->{port}", Listen => 100)
	  or die "could not listen: $!";
	$self->{pid} = fork();
	if ($self->{pid} == 0)
	{
		# what this process has of the test must not end with it
		eval { $self->serve($listener); };
		POSIX::_exit(0);
	}
	close($listener);
	push @started, $self;
	return $self;
}

END
{
	local $?;
	foreach my $self (@started)
	{
		# the group, when there is one: at first there may be none
		kill('TERM', -$self->{pid}, $self->{pid});
		waitpid($self->{pid}, 0);
	}
}

sub dir { return $_[0]->{dir} }
sub port { return $_[0]->{port} }

# A connection string, which has a name that the events have, too.
sub connstr
{
	my ($self, $name) = @_;

	return "host=$self->{dir} port=$self->{port} dbname=realm user=fleet sslmode=disable gssencmode=disable application_name=$name";
}

# What connections from now on go by.
sub set
{
	my ($self, $setting) = @_;

	return replace_file("$self->{dir}/setting", $setting);
}

sub setting
{
	my ($self) = @_;

	return slurp_file("$self->{dir}/setting");
}

# From now on these calls are answered so, and all others by the realm: "connect", before
# anything was read; "startup", the startup packet; "realm_id", "lease", "renew", "release".
sub answers
{
	my ($self, %names) = @_;

	return $self->set(join('', map { "$_\t$names{$_}\n" } keys %names));
}

# How many of the ways have a fault, of each kind.
sub share_of_faults
{
	my ($self, $share) = @_;

	return $self->set($share);
}

# What has happened: calls of a kind, under a name.
sub note_event
{
	my ($self, $line) = @_;

	append_to_file("$self->{dir}/events", $line =~ s/\n/ /gr . "\n");
	return;
}

sub events
{
	my ($self, $call, $name) = @_;
	my $line = $call . (defined $name ? "\t$name" : '');

	return grep { /^\Q$line\E(\t|$)/ } split(/\n/, slurp_file("$self->{dir}/events"));
}

1;
