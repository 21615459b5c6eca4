# A herd: many servers come back at once after their realm was away, and some answers are
# lost.  All get a lease in time, and each of them one.
#
# They are simulated, one short connection a call, as the lease worker makes them, with
# its timeout and pauses.  SCRU64_HERD: how many, for example 1000.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Errno qw(EAGAIN);
use IO::Select;
use IO::Socket::UNIX;
use Scru64Fault;
use Scru64Lease;
use Scru64Test;
use Socket;

my $clients = $ENV{SCRU64_HERD} || 60;
my $ttl = 3600;

# what the worker goes by, in milliseconds
my %worker = join('', map { read_file($_) } glob("$FindBin::RealBin/../src/{lease_worker,pure}/*.[ch]")) =~ /^#define\s+(\w+)\s+(\d+)/mg;
my ($timeout, $min_pause, $max_pause) = map { ($worker{$_} // die "no $_ in the worker") / 1000 } qw(CALL_TIMEOUT_MS MIN_PAUSE_MS MAX_PAUSE_MS);
# a small herd lives faster
$_ /= 5 foreach ($clients < 1000 ? ($min_pause, $max_pause) : ());

my $realm = make_realm(make_template('template', allows_streaming => 1), 'realm');
# most of the herd find no room
$realm->append_conf('postgresql.conf', sprintf("max_connections = %d\n", $clients < 1000 ? 10 + $clients / 6 : 100));
$realm->stop;

my $startup = "\0\3\0\0user\0fleet\0database\0realm\0application_name\0herd\0\0";
my $path = $realm->host . '/.s.PGSQL.' . $realm->port;
my (%errors, @herd, %connected);
my $select = IO::Select->new;

sub uuid
{
	return join('-', map { join('', map { sprintf('%x', rand(16)) } 1 .. $_) } 8, 4, 4, 4, 12);
}

sub hang_up
{
	my ($client) = @_;
	my $socket = delete $client->{socket};

	return if !defined $socket;
	$select->remove($socket);
	delete $connected{ fileno($socket) };
	close($socket);
	return;
}

# A call has failed: pause as the worker does, see retry_pause().
sub failed
{
	my ($client, $why) = @_;
	my $most = $max_pause < $ttl / 6 ? $max_pause : $ttl / 6;
	my $grown = $min_pause * 2**(++$client->{failures} > 6 ? 6 : $client->{failures});
	my $pause = rand($grown < $most ? $grown : $most);

	$errors{$why}++;
	hang_up($client);
	$client->{next} = time() + ($pause > $min_pause / 2 ? $pause : $min_pause / 2);
	return;
}

sub call
{
	my ($client) = @_;
	my $socket;

	$client->{calls}++;
	socket($socket, PF_UNIX, SOCK_STREAM, 0) or die "could not make a socket: $!";
	$socket->blocking(0);
	return failed($client, "$!") if !connect($socket, pack_sockaddr_un($path));
	@{$client}{qw(socket input deadline asked)} = ($socket, '', time() + $timeout, 0);
	$connected{ fileno($socket) } = $client;
	$select->add($socket);
	syswrite($socket, pack('N', 4 + length($startup)) . $startup);
	return;
}

# The realm is ready for a query, or has answered the last one.
sub ready
{
	my ($client) = @_;
	my $sql = $client->{lease_id}
	  ? "SELECT granted_at FROM scru64_realm.renew('$client->{lease_id}', '$ttl s')"
	  : "SELECT lease_id FROM scru64_realm.lease(10, '$client->{holder}', '$ttl s', NULL, NULL, '$client->{request}')";

	if ($client->{asked} == 2)
	{
		$client->{lease_id} = $client->{row} if !$client->{lease_id};
		@{$client}{qw(served failures next)} = (time(), 0, undef);
		return hang_up($client);
	}
	$sql = 'SELECT scru64_realm.realm_id()' if $client->{asked} == 0;
	$client->{asked}++;
	syswrite($client->{socket}, 'Q' . pack('N', length($sql) + 5) . "$sql\0");
	# the network may lose the answer
	failed($client, 'answer lost') if $client->{asked} == 2 && rand() < ($clients < 1000 ? 0.2 : 0.02);
	return;
}

sub hear
{
	my ($client) = @_;
	return if !defined $client;
	my $read = sysread($client->{socket}, $client->{input}, 65536, length($client->{input}));

	return if !defined $read && $! == EAGAIN;
	return failed($client, 'connection lost') if !$read;
	while (defined $client->{socket} && length($client->{input}) >= 5)
	{
		my ($type, $length) = unpack('aN', $client->{input});
		last if length($client->{input}) <= $length;
		my $message = substr($client->{input}, 5, $length - 4);

		$client->{input} = substr($client->{input}, $length + 1);
		($client->{row}) = unpack('x2 N/a', $message) if $type eq 'D';
		failed($client, $message =~ /\0C([0-9A-Z]{5})\0/) if $type eq 'E';
		ready($client) if $type eq 'Z';
	}
	return;
}

# Until all are served, or too long.  Does something to the realm when half of them are.
sub serve
{
	my ($seconds, $code) = @_;
	my $end = time() + $seconds;
	my @waiting = @herd;

	while (@waiting && time() < $end)
	{
		my $now = time();

		foreach my $client (@waiting)
		{
			if (defined $client->{socket})
			{
				failed($client, 'timeout') if $now > $client->{deadline};
			}
			elsif ($now >= $client->{next})
			{
				call($client);
			}
		}
		if (%connected)
		{
			hear($connected{ fileno($_) }) foreach ($select->can_read(0.02));
		}
		else
		{
			sleep(0.02);
		}
		@waiting = grep { defined $_->{next} } @waiting;
		if ($code && @waiting <= $clients / 2)
		{
			$code->();
			undef $code;
		}
	}
	hang_up($_) foreach (@herd);
	return scalar(@waiting);
}

@herd = map { { holder => "client $_", request => uuid(), failures => 0, calls => 0 } } 1 .. $clients;
foreach my $what ('leases', 'renewals')
{
	%errors = ();
	@{$_}{qw(next served calls)} = (time(), undef, 0) foreach (@herd);
	# they find out that it is away; a large herd that renews has been at it for long
	if ($what eq 'leases') { serve(0.5); }
	elsif ($clients >= 1000) { $_->{failures} = 6 foreach (@herd); }
	start_server($realm);
	my $back = time();
	# a large one finds it away once more, when half of them have been there
	my $left = serve(120, $what eq 'leases' && $clients >= 1000 ? sub { kill_server($realm); start_server($realm); } : undef);
	my @after = sort { $a <=> $b } map { ($_->{served} || time()) - $back } @herd;
	my $calls = 0;

	$calls += $_->{calls} foreach (@herd);
	is($left, 0, sprintf("$what: %d clients are served within %.1f s, half of them within %.1f s", $clients, $after[-1], $after[ $clients / 2 ]));
	note("$calls calls; " . join(', ', map { "$_: $errors{$_}" } sort keys %errors));
	cmp_ok(scalar(keys %errors), '>', 0, "$what: not at once");
	is($realm->safe_psql('realm', 'SELECT count(*), count(DISTINCT holder) FROM scru64_realm.ledger'), "$clients|$clients",
		"$what: one for each, and no other");
	my %ledger = split(/[|\n]/, $realm->safe_psql('realm', 'SELECT holder, lease_id FROM scru64_realm.ledger'));
	is(scalar(grep { ($_->{lease_id} || '') eq ($ledger{ $_->{holder} } || '-') } @herd), $clients, "$what: each has its own");
	$realm->stop('immediate');
}
done_testing();
