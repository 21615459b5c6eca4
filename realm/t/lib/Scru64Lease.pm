# What the tests of leases need: a realm, servers that lease their nodes from it,
# clients that log what they get whatever happens to their server, clients of a given rate,
# and the join of all that with the realm's ledger.

package Scru64Lease;

use strict;
use warnings;

use Exporter 'import';
use List::Util qw(first);
use Scru64Copies;
use Scru64Disk;
use Scru64Loads;
use Scru64Server;
use Scru64Test;

our @EXPORT = qw(
	$password $preload begin_load begin_streams children_of configure_server end_loads end_loads_ok finish_streams
	fleet_lines fleet_server last_error lease_of lease_sql make_realm note_ids ok_ids ok_streams postmaster_pid
	signal_server size_of try_generate wait_for_lease
);

our $password = 'not-for-you-4711';
our $preload = "shared_preload_libraries = 'scru64'\n";

#
# The realm
#

# The database of a realm on a server from a template, which is started.  One line
# makes a realm; servers are the role "fleet".  Parameters: clock, disk.
sub make_realm
{
	my ($template, $name, %params) = @_;
	my $realm = copy_server($template, $name, clock => $params{clock});

	make_disk($realm) if $params{disk};
	start_server($realm);
	$realm->safe_psql('postgres', "CREATE DATABASE realm; CREATE ROLE fleet LOGIN; CREATE ROLE stranger LOGIN");
	$realm->safe_psql(
		'realm', q(
CREATE EXTENSION scru64_realm CASCADE;
GRANT USAGE ON SCHEMA scru64_realm TO fleet, stranger;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA scru64_realm TO fleet;
GRANT EXECUTE ON FUNCTION scru64_realm.realm_id() TO stranger;
));
	return $realm;
}

# What every server of a fleet has in its configuration.
sub fleet_lines
{
	my ($realm, %params) = @_;
	my %settings = (
		realm => 'host=' . $realm->host . ' port=' . $realm->port . " dbname=realm user=fleet password=$password",
		%params);

	return join('', map { my $v = $settings{$_}; $v =~ s/'/''/g; "scru64.$_ = '$v'\n" } sort keys %settings);
}

# A server from a template, with these lines in its configuration, which is started.
# Parameters: those of copy_server() and start_server(), and disk, as for make_disk().
sub fleet_server
{
	my ($template, $name, $lines, %params) = @_;
	my $server = copy_server($template, $name, lines => $lines, %params);

	make_disk($server) if $params{disk};
	start_server($server, %params);
	return $server;
}

# Change settings of the fleet on a server that is up, by a reload.
sub configure_server
{
	my ($server, $lines) = @_;

	$server->append_conf('postgresql.conf', $lines);
	$server->reload;
	return;
}

# A query of the ledger, with ticks: holder, node_ctr values, ticks after which and up
# to which there are IDs, and the last ID if it was released.
my $ledger_sql = q(
SELECT holder, lower(node_ctr_range), upper(node_ctr_range) - 1,
	scru64_realm_internal.tick(granted_at), scru64_realm_internal.tick(expires_at),
	CASE WHEN released_at IS NOT NULL THEN last_id::bigint ELSE 0 END,
	node_id || '/' || node_id_size
FROM scru64_realm.ledger ORDER BY granted_at);

#
# Servers
#

sub postmaster_pid
{
	my ($server) = @_;

	return (split(/\n/, slurp_file($server->data_dir . '/postmaster.pid')))[0];
}

sub children_of
{
	my ($pid) = @_;

	return split(' ', slurp_file("/proc/$pid/task/$pid/children"));
}

# A signal to all processes of a server.
sub signal_server
{
	my ($server, $signal) = @_;
	my $pid = postmaster_pid($server);
	my @pids = ($pid, children_of($pid));

	kill($signal, $signal eq 'CONT' ? reverse(@pids) : @pids);
	return;
}

# Columns of scru64_lease()
sub lease_sql
{
	my ($server, $columns) = @_;

	return look_at($server, 'postgres', "SELECT $columns FROM scru64_lease()");
}

# The node that is leased, or nothing; and wait until there is one, and an ID, of another
# node than those.
sub lease_of
{
	my ($server) = @_;

	return lease_sql($server, "coalesce(node_spec, '')");
}

sub wait_for_lease
{
	my ($server, @others) = @_;

	return wait_until(
		sub {
			# IPC::Run dies where a psql that cannot connect ends before it has read the statement
			return eval {
				my ($id) = try_generate($server);
				my $node = lease_of($server);
				$id ne '' && !grep({ $_ eq $node } @others) && $node;
			};
		});
}

# Wait until scru64_lease() has an error like this, while a session asks for IDs, and return the error.
sub last_error
{
	my ($server, $pattern) = @_;

	return wait_until(sub { try_generate($server); lease_sql($server, 'last_error') =~ /($pattern)/ ? $1 : '' });
}

#
# IDs
#

my %received;		# id => [server, ...]
my @loads;

# IDs that a server has issued.
sub note_ids
{
	my ($server, @ids) = @_;

	push @{ $received{$_} }, $server->name foreach (@ids);
	return;
}

# One ID of a session of its own: the ID, or what went wrong.
sub try_generate
{
	my ($server, $sql) = @_;
	my ($rc, $out, $err) = $server->psql('postgres', "\\set VERBOSITY verbose\n" . ($sql || '') . 'SELECT scru64_generate()');

	note_ids($server, grep { /^[0-9a-z]{12}$/ } split(/\n/, $out));
	return ($out, $err);
}

# Clients that go on whatever happens, until end_loads().
sub begin_load
{
	my ($server, $count) = @_;

	push @loads, start_clients($server, $count, again => 1, variables => ['VERBOSITY=verbose']);
	return;
}

# Stop all clients, and note what they have received.
sub end_loads
{
	# the errors that the end causes do not count
	$_->{errors} = slurp_file("$_->{base}.err") foreach (@loads);
	end_clients(@loads);
	note_ids($_->{node}, ids_of($_)) foreach (@loads);
	return splice(@loads);
}

# The same, and the clients have had no errors but those of these SQLSTATEs.
sub end_loads_ok
{
	my ($expected, $name) = @_;
	my %errors;

	foreach my $load (end_loads())
	{
		$errors{$_}++ foreach ($load->{errors} =~ /(?:ERROR|FATAL):  ([0-9A-Z]{5}):/g);
	}
	note('errors of the clients: ' . join(', ', map { "$_ $errors{$_}" } sort keys %errors));
	return is(join(' ', grep { !/^($expected)$/ } sort keys %errors), '', $name);
}

#
# Loads of a given rate, and what they have received
#
my @streams;

# Sessions that ask for so many IDs a second together, in ten portions; the last one
# asks for them one by one and tells how long each took.
sub begin_streams
{
	my ($server, $a_second, $for, $sessions) = @_;
	my $start = time();

	foreach my $n (1 .. $sessions + 1)
	{
		my $portion = int($a_second / $sessions / 10);
		my $ask = $n <= $sessions ? "COPY (SELECT scru64_generate($portion)) TO STDOUT" :
		  "SELECT scru64_generate(), '#' || extract(epoch FROM clock_timestamp() - statement_timestamp())";
		my $sql = "\\set ON_ERROR_STOP on\n";

		foreach my $i (1 .. $for * 10)
		{
			my $due = $start + $i / 10;
			$sql .= "$ask;\nSELECT FROM pg_sleep(greatest(0, $due - extract(epoch FROM clock_timestamp())));\n";
		}
		push @streams, start_clients($server, 1, name => 'stream', sql => $sql);
	}
	return;
}

sub finish_streams
{
	finish_clients(@streams);
	return splice(@streams);
}

# Wait for all of them.  Each has had its IDs in order, and nobody one of another.
sub ok_streams
{
	my ($name) = @_;
	my @files;
	my $sum = 0;
	my $longest = 0;
	my ($errors, $unsorted) = ('', '');

	foreach my $stream (finish_streams())
	{
		my $file = $stream->{base};

		$errors .= slurp_file("$file.err");
		system("grep -oE '^[0-9a-z]{12}' '$file.out' >'$file.ids'");
		$unsorted .= `LC_ALL=C sort -c -u '$file.ids' 2>&1`;
		$sum += (split(' ', `wc -l '$file.ids'`))[0];
		push @files, "'$file.ids'";
		foreach my $time (`grep -oE '#[0-9.]+' '$file.out'` =~ /#([0-9.]+)/g)
		{
			$longest = $time if $time > $longest;
		}
	}
	my $distinct = `LC_ALL=C sort -m -u @files | wc -l` + 0;
	is($errors, '', "$name: no error");
	is($unsorted, '', "$name: the IDs of each session are in order");
	is($distinct, $sum, "$name: none of $sum comes twice");
	cmp_ok($longest, '<', 5, sprintf('%s: nobody waits for long, %.3f s', $name, $longest));
	return;
}

# The size of the node that is leased, or 0.
sub size_of
{
	my ($server) = @_;

	return lease_sql($server, 'node_id_size') || 0;
}

sub number_of
{
	my ($id) = @_;
	my $number = 0;

	$number = $number * 36 + ($_ ge 'a' ? ord($_) - ord('a') + 10 : $_) foreach (split(//, $id));
	return $number;
}

# No ID that was noted was received twice, and each is of a lease of its server, in
# the lease's window.  A realm that has lost leases is given with the one that knows them.
sub ok_ids
{
	my ($realm, $name, $least) = @_;
	my @rows = map { [ split(/\|/) ] }
	  map { split(/\n/, $_->safe_psql('realm', $ledger_sql)) } ref($realm) eq 'ARRAY' ? @{$realm} : $realm;
	my @twice = grep { @{ $received{$_} } > 1 } sort keys %received;
	my @outside;
	my %nodes;
	my $row;

	foreach my $id (sort keys %received)
	{
		my $number = number_of($id);
		my ($tick, $ctr) = ($number >> 24, $number & 0xffffff);

		# most often the one of the ID before
		$row = first {
			     $_->[0] eq $received{$id}[0]
			  && $ctr >= $_->[1]
			  && $ctr <= $_->[2]
			  && $tick > $_->[3]
			  && $tick <= $_->[4]
			  && ($_->[5] == 0 || $number <= $_->[5])
		} $row || (), @rows;

		push @outside, "$id of $received{$id}[0]" if !defined $row;
		$nodes{"$row->[0] $row->[6]"}++ if defined $row;
	}
	cmp_ok(scalar(keys %received), '>', $least || 0, "$name: there are IDs");
	is(join(' ', map { "$_ (@{ $received{$_} })" } @twice[ 0 .. ($#twice > 3 ? 3 : $#twice) ]), '',
		"$name: none of " . scalar(keys %received) . ' twice');
	is(join(', ', scalar(@outside) > 4 ? (@outside[ 0 .. 3 ], scalar(@outside)) : @outside), '',
		"$name: each within a lease of its server");
	diag(join("\n", map { join(' ', @{$_}) } @rows)) if @outside;
	note(join(', ', map { "$_: $nodes{$_}" } sort keys %nodes) . '; ' . scalar(@rows) . ' leases');
	return;
}

1;
