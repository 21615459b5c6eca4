# A call of a realm commits with its statement, whatever the client sends after it and whatever it
# does not: messages that libpq does not send.

use strict;
use warnings;
use IO::Socket::UNIX;
use Scru64Clock;
use Scru64Server;
use Scru64Test;

my $node = new_node('main');
$node->append_conf('postgresql.conf', 'max_prepared_transactions = 2');
set_clock($node, 0) if can_set_clock();
start_server($node, set_monotonic => 1);
$node->safe_psql('postgres', 'CREATE EXTENSION scru64_realm CASCADE');
my $user = $node->safe_psql('postgres', 'SELECT current_user');
my $lease = "SELECT node_spec FROM scru64_realm.lease(8, 'x')";
my $socket;

# Types of the messages that come, up to one of this type, with the SQLSTATE of an error
sub answers
{
	my ($last) = @_;
	my ($answers, $type) = ('', '');

	while ($type ne $last)
	{
		read($socket, my $head, 5) == 5 or die 'the server has ended the connection';
		($type, my $length) = unpack('a N', $head);
		read($socket, my $body, $length - 4);
		$answers .= $type . ($type eq 'E' && $body =~ /\0C(\w{5})\0/ ? "$1 " : '') if $type =~ /[CDEsZ]/;
	}
	return $answers;
}

sub begin_session
{
	$socket = IO::Socket::UNIX->new($node->host . '/.s.PGSQL.' . $node->port) or die "cannot connect: $!";
	my $start = pack('N Z* Z* Z* Z* x', 196608, 'user', $user, 'database', 'postgres');

	print $socket pack('N', 4 + length($start)) . $start;
	$socket->flush;
	return answers('Z');
}

sub message { return pack('a N a*', $_[0], 4 + length($_[1]), $_[1]) }

# Parse, Bind and Execute, for so many rows; 0: all
sub execute
{
	my ($sql, $rows) = (@_, 0);

	return message('P', "\0$sql\0\0\0") . message('B', "\0" x 8) . message('E', pack('x N', $rows));
}

sub sends_ok
{
	my ($name, $messages, $expected, $leases) = @_;

	begin_session();
	print $socket $messages;
	$socket->flush;
	is(answers(substr($expected, -1)), $expected, $name);
	is($node->safe_psql('postgres', 'SELECT count(*) FROM scru64_realm.ledger'), $leases, '... and what is leased then');
	return;
}

my ($flush, $sync) = (message('H', ''), message('S', ''));
sends_ok('no Sync', execute($lease) . $flush, 'DC', 1);
sends_ok('two in a pipeline', execute($lease) x 2 . $sync, 'DCDCZ', 3);
sends_ok('after another statement', execute('SELECT 1') . execute($lease) . $sync, 'DCE25001 Z', 3);
sends_ok('a limit of rows', execute($lease, 1) . $sync, 'DsZ', 4);
sends_ok('a block that begins later', execute($lease, 1) . execute('BEGIN') . $sync . message('Q', "PREPARE TRANSACTION 'x'\0"), 'DsCZ', 4);
is(answers('Z'), 'E25001 Z', 'it is not prepared');

# After 15 seconds it is canceled, which ends no wait for a message, and then terminated.
SKIP:
{
	skip 'no clock can be set', 1 if !can_set_clock();

	begin_session();
	print $socket execute($lease, 1) . $flush;
	$socket->flush;
	answers('s');
	my $pid = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE query ~ 'lease' AND pid <> pg_backend_pid()");
	my $clock = 15;
	ok(wait_until(sub {
		set_clock($node, ++$clock);
		kill('ALRM', $pid);
		return $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE pid = $pid") eq '0';
	}), 'a client that does not go on loses its session');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM scru64_realm.ledger'), 4, '... and leases nothing');
}

$node->stop;
done_testing();
