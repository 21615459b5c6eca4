# Sessions that generate IDs while something happens, each into a log of its own, and whether what they
# have received is right; and sessions of one statement.

package Scru64Loads;

use strict;
use warnings;

use Exporter 'import';
use Scru64Test;

our @EXPORT = qw(
	end_clients finish_clients ids_of issues_ok kill_client log_counts number_of_ids record_ids record_load
	record_problems refused_ok start_client start_clients start_load try_node
);

#
# Clients: psql or another program, and what it prints
#

my $clients = 0;

# Start a client that reads statements from a file.  Parameters: name, of the application; variables, of
# psql; options, for the server; command, in place of psql; again: a shell starts the command again whenever
# it ends, until end_clients(); kill: end_clients() kills the program, which may cut what it
# prints.  That is in the files $base.out and $base.err.
sub start_client
{
	my ($node, $file, %params) = @_;
	my $name = $params{name} // 'load';
	my $base = $node->basedir . "/${name}_" . ++$clients;
	my @command = @{ $params{command} // [ 'psql', '-XAtq', map { ('-v', $_) } @{ $params{variables} // [] } ] };

	local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGDATABASE => 'postgres', PGAPPNAME => $name, PGOPTIONS => $params{options} // '');
	if ($params{again})
	{
		append_to_file("$base.again", '');
		unshift(@command, 'sh', '-c',
			qq(base=\$1 file=\$2; shift 2; while [ -e "\$base.again" ] && kill -0 $$; do "\$@" <"\$file" & echo \$! >"\$base.pid"; wait \$!; sleep 0.2; done),
			'again', $base, $file);
	}
	my $run = IPC::Run::start(\@command, '<', $params{again} ? '/dev/null' : $file, '>', "$base.out", '2>', "$base.err");
	return { node => $node, name => $name, base => $base, run => $run, kill => $params{kill} };
}

# Kill the program that a client runs again and again.
sub kill_client
{
	my ($client) = @_;
	my $file = "$client->{base}.pid";

	kill('KILL', $1) if -e $file && slurp_file($file) =~ /^(\d+)$/m;
	return;
}

# End clients and their sessions.
sub end_clients
{
	my (@clients) = @_;

	unlink("$_->{base}.again") foreach (@clients);
	foreach my $client (@clients)
	{
		my ($node, $name) = @{$client}{ 'node', 'name' };

		wait_until(
			sub {
				kill_client($client) if $client->{kill};
				my $left = !-e $node->data_dir . '/postmaster.pid' ? 0 :
				  look_at($node, 'postgres', "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = '$name'");
				return !$client->{run}->pumpable && $left eq '0';
			}) or die "$client->{base} does not end";
		$client->{run}->finish;
	}
	return;
}

# The IDs that a client has printed; the last line may be a part of one.
sub ids_of
{
	my ($client) = @_;
	my $text = slurp_file("$client->{base}.out");

	return grep { /^[0-9a-z]{12}$/ } split(/\n/, substr($text, 0, rindex($text, "\n") + 1));
}

#
# Loads: clients that generate IDs
#

# Single IDs, and sets of them, at once and row by row.  About 1,000 IDs a second: what a test needs is that
# sessions generate IDs when something happens.  The pause is the client's: pg_sleep() goes by the clock that
# tests set, and sleeps for a year if that is set back by one meanwhile.
my $statements = "\\if :{?node}\nSET scru64.node_spec = :'node';\n\\endif\n"
  . ("SELECT scru64_generate();\n" x 100
	  . "SELECT scru64_generate(100);\n"
	  . "COPY (SELECT scru64_generate(100)) TO STDOUT;\n"
	  . "\\! exec sleep 0.3\n") x 1000;

# Start so many clients.  Parameters: sql, if they are to run other statements; and those of start_client().
sub start_clients
{
	my ($node, $count, %params) = @_;
	my $file = $node->basedir . '/load' . (defined $params{sql} ? $clients : '') . '.sql';

	append_to_file($file, $params{sql} // $statements) if !-e $file;
	return map { start_client($node, $file, %params) } 1 .. $count;
}

# Let sessions generate IDs of nodes, and return when each has some.  Nodes: spec => number of sessions.
sub start_load
{
	my ($node, $sessions, %params) = @_;
	my @load;

	foreach my $spec (sort keys %{$sessions})
	{
		push @load, map { { %{$_}, spec => $spec } } start_clients($node, $sessions->{$spec}, variables => ["node=$spec"], %params);
	}
	foreach my $client (@load)
	{
		wait_until(sub { -s "$client->{base}.out" }, 0.01) or die "no ID of $client->{spec}: " . slurp_file("$client->{base}.err");
	}
	return @load;
}

# Wait until clients have lost their server, or have run all statements.
sub finish_clients
{
	$_->{run}->finish foreach (@_);
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

	return join(', ', map { "$_: " . number_of_ids($record, $_) } sort keys %{$record});
}

sub number_of_ids
{
	my ($record, $spec) = @_;

	return scalar(keys %{ $record->{$spec}{ids} });
}

# Add what sessions have received at the same time, each in its order, after everything that is
# recorded.  An ID that is there twice, or is not above those before, is a problem.
sub record_ids
{
	my ($record, $spec, @sessions) = @_;
	my $of_node = $record->{$spec} ||= { ids => {}, greatest => '', problems => [] };
	my $known = $of_node->{greatest};

	foreach my $session (@sessions)
	{
		my $previous = $known;

		foreach my $id (@{$session})
		{
			push @{ $of_node->{problems} }, "$id of $spec twice" if $of_node->{ids}{$id}++;
			push @{ $of_node->{problems} }, "$id of $spec after $previous" if $id le $previous;
			$previous = $id;
			$of_node->{greatest} = $id if $id gt $of_node->{greatest};
		}
	}
	return;
}

# Add what the clients of a load have received.  Returns what they have written to stderr except for the loss
# of the connection.
sub record_load
{
	my ($record, @load) = @_;
	my $lost = qr/terminating connection|server closed the connection|connection to server was lost|terminated abnormally|before or while processing|commanded this server process|another server process exited|corrupted shared memory|reconnect to the database|no connection to the server/;
	my %sessions;

	push @{ $sessions{ $_->{spec} } }, [ ids_of($_) ] foreach (@load);
	record_ids($record, $_, @{ $sessions{$_} }) foreach (sort keys %sessions);
	return join('', map { grep { !/$lost/ && !/^LOCATION:/ } split(/^/, slurp_file("$_->{base}.err")) } @load);
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
# Nodes, each time in a session of its own
#

# The IDs and the errors that the session gets.  Parameters: count, and those of open_session().
sub try_node
{
	my ($node, $spec, %params) = @_;
	my $session = open_session($node, %params);
	my ($out, $err) = try_statement($session,
		"SET statement_timeout = '20s'; SET scru64.node_spec = '$spec'; SELECT scru64_generate(" . ($params{count} || 1) . ')');

	$session->quit;
	return ($out, $err);
}

# The session gets no ID, and this error, which is returned.
sub refused_ok
{
	my ($node, $spec, $error, $name) = @_;
	my ($out, $err) = try_node($node, $spec);

	is($out, '', "$name: no ID of $spec");
	like($err, $error, "$name: the error of $spec");
	return $err;
}

# The session gets IDs, above all of the node in a record, and no error but the ignored one.
sub issues_ok
{
	my ($node, $record, $spec, $name, %params) = @_;
	my ($out, $err) = try_node($node, $spec, %params);

	$err =~ s/$params{ignored}// if $params{ignored};
	is($err, '', "$name: IDs of $spec");
	record_ids($record, $spec, [ split(/\n/, $out) ]);
	is(record_problems($record), '', "$name: above all before");
	return;
}

1;
