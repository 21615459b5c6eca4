# What the tests with faults need: a server whose clock can be set, clients that
# log every ID as they receive it, and a look into the state file.

package Scru64Fault;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Time::HiRes qw(sleep);

our @EXPORT = qw(
  can_set_clock
  ceiling_of
  crc32c
  decode_id
  encode_id
  end_load
  finish_load
  kill_server
  log_counts
  node_of
  number_of_ids
  read_file
  record_ids
  record_load
  record_problems
  replace_file
  set_clock
  start_load
  start_server
  state_file
  state_ids
  state_text
);

my ($libfaketime) = grep { -e $_ }
  glob('/usr/lib/*/faketime/libfaketime.so.1 /usr/lib*/faketime/libfaketime.so.1');

#
# Files
#

sub read_file
{
	my ($path) = @_;

	open(my $file, '<:raw', $path) or die "could not open $path: $!";
	local $/ = undef;
	my $text = <$file>;
	close($file);
	return $text;
}

# Who reads the file meanwhile sees the old or the new one.
sub replace_file
{
	my ($path, $text) = @_;

	unlink("$path.new");
	open(my $file, '>:raw', "$path.new") or die "could not open $path.new: $!";
	print $file $text or die "could not write $path.new: $!";
	close($file) or die "could not close $path.new: $!";
	rename("$path.new", $path) or die "could not rename $path.new: $!";
	return;
}

#
# The server and its clock
#

sub can_set_clock
{
	return defined $libfaketime;
}

# Set the server's clock: seconds to add to the real one, or a time at which it
# stands still.  Before the server is started for the first time, too.
sub set_clock
{
	my ($node, $clock) = @_;

	replace_file($node->basedir . '/clock', "$clock\n");
	return;
}

# Start a server, with its own clock if that was set.  After kill_server() the
# old processes may need a moment to go.  fake_monotonic: the clock that measures
# how long something takes is set, too; it must not go back while the server is up.
sub start_server
{
	my ($node, %params) = @_;
	my $clock = $node->basedir . '/clock';
	my $attempts = 10 * $PostgreSQL::Test::Utils::timeout_default;

	local %ENV = %ENV;
	if (-e $clock)
	{
		$ENV{LD_PRELOAD} = $libfaketime;
		$ENV{FAKETIME_TIMESTAMP_FILE} = $clock;
		$ENV{FAKETIME_NO_CACHE} = 1;
		$ENV{FAKETIME_DISABLE_SHM} = 1;
		# sleeping takes its time whatever the clock says
		$ENV{DONT_FAKE_MONOTONIC} = 1 if !$params{fake_monotonic};
		$ENV{TZ} = 'UTC';
	}
	until ($node->start(fail_ok => 1))
	{
		die 'could not start ' . $node->name if $attempts-- == 0;
		sleep(0.1);
		# a start that failed must not be taken for a running server
		$node->stop('fast', fail_ok => 1);
	}
	return;
}

# kill -9 of the postmaster.
sub kill_server
{
	my ($node) = @_;

	$node->kill9;
	return;
}

#
# Clients
#

# Statements that one client goes through: single IDs, and sets of them, at once
# and row by row.  About 4,000 IDs a second, so that a node of 12 bits has room for
# the IDs of some clients.
my $load_script;

sub load_script
{
	my ($dir) = @_;

	# The pause is the client's: pg_sleep() goes by the clock that tests set, and
	# sleeps for a year if that is set back by one meanwhile.
	my $statements =
		"SELECT scru64_generate();\n" x 60
	  . "SELECT scru64_generate(20);\n"
	  . "COPY (SELECT scru64_generate(20)) TO STDOUT;\n"
	  . "\\! sleep 0.02\n";

	if (!defined $load_script)
	{
		$load_script = "$dir/load.sql";
		append_to_file($load_script,
			"SET scru64.node_spec = :'node';\n" . $statements x 5000);
	}
	return $load_script;
}

my $loads = 0;

# Let sessions generate IDs of nodes, each session into a log of its own, and
# return when each has some.  Nodes: spec => number of sessions.
sub start_load
{
	my ($node, %sessions) = @_;
	my $script = load_script($node->basedir);
	my @clients;

	$loads++;
	foreach my $spec (sort keys %sessions)
	{
		foreach my $n (1 .. $sessions{$spec})
		{
			my $log = $node->basedir . "/load_${loads}_" . scalar(@clients);
			my $run = IPC::Run::start(
				[
					'psql', '-XAtq', '-v', "node=$spec", '-f', $script, '-d',
					$node->connstr('postgres') . ' application_name=load'
				],
				'<', '/dev/null', '>', "$log.ids", '2>', "$log.err");
			push @clients, { spec => $spec, log => $log, run => $run };
		}
	}

	foreach my $client (@clients)
	{
		my $attempts = 100 * $PostgreSQL::Test::Utils::timeout_default;

		until (-s "$client->{log}.ids")
		{
			die "no ID of $client->{spec}: " . read_file("$client->{log}.err")
			  if $attempts-- == 0;
			sleep(0.01);
		}
	}
	return { node => $node, clients => \@clients };
}

# Wait until the clients of a load have lost their server.
sub finish_load
{
	my ($load) = @_;

	$_->{run}->finish foreach (@{ $load->{clients} });
	return;
}

# End a load whose server lives on.
sub end_load
{
	my ($load) = @_;

	$load->{node}->safe_psql('postgres',
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'load'"
	);
	finish_load($load);
	return;
}

#
# IDs that clients have received
#
# A record has for each node spec all IDs that were received, the greatest of
# them, and what was wrong.
#

sub log_counts
{
	my ($record) = @_;

	return join(', ',
		map { "$_: " . scalar(keys %{ $record->{$_}{ids} }) } sort keys %{$record});
}

sub number_of_ids
{
	my ($record, $spec) = @_;

	return scalar(keys %{ $record->{$spec}{ids} });
}

# Add what one session has received in this order: IDs twice, and IDs out of
# order, are problems.
sub add_ids
{
	my ($record, $spec, @ids) = @_;
	my $of_node = $record->{$spec} ||=
	  { ids => {}, greatest => '', problems => [] };
	my $previous = '';

	foreach my $id (@ids)
	{
		push @{ $of_node->{problems} }, "$id of $spec twice"
		  if $of_node->{ids}{$id}++;
		push @{ $of_node->{problems} }, "$id of $spec after $previous"
		  if $id le $previous;
		$previous = $id;
	}
	return;
}

# Add what sessions have received at the same time, after everything that is
# recorded: an ID at or below that is a problem, too.
sub record_ids
{
	my ($record, $spec, @sessions) = @_;
	my $known = exists $record->{$spec} ? $record->{$spec}{greatest} : '';
	my @ids = sort map { @{$_} } @sessions;

	add_ids($record, $spec, @{$_}) foreach (@sessions);
	return if !@ids;
	push @{ $record->{$spec}{problems} }, "$ids[0] of $spec, when $known was out"
	  if $ids[0] le $known;
	$record->{$spec}{greatest} = $ids[-1] if $ids[-1] gt $known;
	return;
}

# Add the logs of a load.  Returns what the clients have written to stderr
# except for the loss of the connection.
sub record_load
{
	my ($record, $load) = @_;
	my %sessions;
	my $errors = '';

	foreach my $client (@{ $load->{clients} })
	{
		my @lines = split(/\n/, read_file("$client->{log}.ids"));
		my @ids = grep { /^[0-9a-z]{12}$/ } @lines;

		die "$client->{log}.ids has other lines than IDs" if @ids != @lines;
		push @{ $sessions{ $client->{spec} } }, \@ids;

		foreach my $line (split(/\n/, read_file("$client->{log}.err")))
		{
			$errors .= "$line\n"
			  if $line !~
			  /terminating connection|server closed the connection|connection to server was lost|terminated abnormally|before or while processing|commanded this server process|another server process exited|corrupted shared memory|reconnect to the database|no connection to the server/;
		}
	}
	record_ids($record, $_, @{ $sessions{$_} }) foreach (sort keys %sessions);
	return $errors;
}

# Everything that was wrong so far, the first few; and forget it.
sub record_problems
{
	my ($record) = @_;
	my @problems;

	foreach my $spec (sort keys %{$record})
	{
		push @problems, @{ $record->{$spec}{problems} };
		$record->{$spec}{problems} = [];
	}
	splice(@problems, 5) if @problems > 5;
	return join("\n", @problems);
}

#
# The state file
#

sub state_file
{
	my ($node) = @_;

	return $node->data_dir . '/scru64.state';
}

# An ID as a number.
sub decode_id
{
	my ($id) = @_;
	my $number = 0;

	foreach my $digit (split(//, $id))
	{
		$number = $number * 36 +
		  ($digit =~ /\d/ ? $digit : ord($digit) - ord('a') + 10);
	}
	return $number;
}

# A number as an ID.
sub encode_id
{
	use integer;
	my ($number) = @_;
	my $id = '';

	foreach my $digit (1 .. 12)
	{
		$id = ('0' .. '9', 'a' .. 'z')[ $number % 36 ] . $id;
		$number /= 36;
	}
	return $id;
}

# The node spec of an ID, with a decimal node_id.
sub node_of
{
	my ($id, $size) = @_;

	return ((decode_id($id) & 0xffffff) >> (24 - $size)) . "/$size";
}

# What a state file says: for each node its ceiling, and 'floor'.  In the order
# of IDs as text.
sub state_ids
{
	my ($node) = @_;
	my %ids;

	foreach my $line (split(/\n/, read_file(state_file($node))))
	{
		if ($line =~ m{^floor ([0-9a-z]{12})$})
		{
			$ids{floor} = $1;
		}
		elsif ($line =~ m{^([0-9a-z]{12})/(\d+)$})
		{
			$ids{ node_of($1, $2) } = $1;
		}
	}
	return %ids;
}

# The ID up to which the file says that a node may have given out IDs.
sub ceiling_of
{
	my ($node, $spec) = @_;
	my %ids = state_ids($node);

	return $ids{$spec} || $ids{floor} || '';
}

my @crc_table = map {
	my $crc = $_;
	$crc = $crc & 1 ? ($crc >> 1) ^ 0x82f63b78 : $crc >> 1 foreach (1 .. 8);
	$crc;
} (0 .. 255);

sub crc32c
{
	my ($text) = @_;
	my $crc = 0xffffffff;

	$crc = ($crc >> 8) ^ $crc_table[ ($crc ^ $_) & 0xff ]
	  foreach (unpack('C*', $text));
	return $crc ^ 0xffffffff;
}

# A state file with these lines after the first, and a checksum that is right.
sub state_text
{
	my ($body, $version) = @_;

	return sprintf("scru64 state file, version %d, checksum %08x\n%s",
		defined $version ? $version : 1,
		crc32c($body), $body);
}

1;
