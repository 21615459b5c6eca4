# Sessions that generate IDs while something happens, each into a log of its own, and whether what they
# have received is right; and sessions of one statement.

package Scru64Loads;

use strict;
use warnings;

use Exporter 'import';
use Scru64Files;
use Scru64Test;

our @EXPORT = qw(
	end_load finish_load issues_ok log_counts number_of_ids record_ids record_load record_problems
	refused_ok run_again set_load start_load try_node
);

# Statements that one client goes through: single IDs, and sets of them, at once
# and row by row.  About 1,000 IDs a second: what a test needs is that sessions generate
# IDs when something happens.  The pause is the client's: pg_sleep() goes by the clock
# that tests set, and sleeps for a year if that is set back by one meanwhile.
my $statements =
	"SELECT scru64_generate();\n" x 100
  . "SELECT scru64_generate(100);\n"
  . "COPY (SELECT scru64_generate(100)) TO STDOUT;\n"
  . "\\! exec sleep 0.3\n";
my $load_script;
my $loads = 0;

# Have a shell run a command again and again, whatever happens to it, as long as there is a file.
# The end makes the file $base.done.
sub run_again
{
	my ($base, $file, $command) = @_;

	system("(while [ -e '$file' ] && kill -0 $$; do $command & echo \$! >'$base.pid'; wait \$!; sleep 0.2; done; touch '$base.done')"
		  . " </dev/null >/dev/null 2>'$base.err' &") == 0 or die 'no shell';
	return;
}

# Other statements for the loads to come
sub set_load
{
	my ($dir, $sql) = @_;

	$load_script = "$dir/load.sql";
	replace_file($load_script, $sql);
	return;
}

# Let sessions generate IDs of nodes, each session into a log of its own, and
# return when each has some.  Nodes: spec => number of sessions.
sub start_load
{
	my ($node, %sessions) = @_;
	my @clients;

	set_load($node->basedir, "SET scru64.node_spec = :'node';\n" . $statements x 1000) if !defined $load_script;
	$loads++;
	foreach my $spec (sort keys %sessions)
	{
		foreach my $n (1 .. $sessions{$spec})
		{
			my $log = $node->basedir . "/load_${loads}_" . scalar(@clients);
			my $run = IPC::Run::start(
				[
					'psql', '-XAtq', '-v', "node=$spec", '-f', $load_script, '-d',
					$node->connstr('postgres') . ' application_name=load'
				],
				'<', '/dev/null', '>', "$log.ids", '2>', "$log.err");
			push @clients, { spec => $spec, log => $log, run => $run };
		}
	}

	foreach my $client (@clients)
	{
		wait_until(sub { -s "$client->{log}.ids" }, 0.01) or die "no ID of $client->{spec}: " . slurp_file("$client->{log}.err");
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
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'load'");
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

# Add the logs of a load.  Returns what the clients have written to stderr
# except for the loss of the connection.
sub record_load
{
	my ($record, $load) = @_;
	my %sessions;
	my $errors = '';

	foreach my $client (@{ $load->{clients} })
	{
		my @lines = split(/\n/, slurp_file("$client->{log}.ids"));
		my @ids = grep { /^[0-9a-z]{12}$/ } @lines;

		die "$client->{log}.ids has other lines than IDs" if @ids != @lines;
		push @{ $sessions{ $client->{spec} } }, \@ids;

		foreach my $line (split(/\n/, slurp_file("$client->{log}.err")))
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
