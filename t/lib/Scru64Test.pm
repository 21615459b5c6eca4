# What all tests need: what PostgreSQL::Test::Utils and Test::More export, and sleep() and time() of parts of
# a second.  And what several need: a server with the extension, sessions whose errors are expected,
# statements that are to be watched while they run, and waits that fail when they run out.

package Scru64Test;

use strict;
use warnings;

use Exporter;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

# Tests that want the server to have it say so.
delete $ENV{SCRU64_NODE_SPEC};

our @EXPORT = qw(
	create_extension error_of has_program in_view look_at new_node open_session pgbench_ok set_parameter start_statement
	try_statement wait_until waits_for
);

sub import
{
	my ($package) = @_;
	my $into = caller;

	Exporter::export($_, $into) foreach ($package, 'PostgreSQL::Test::Utils', 'Test::More');
	Exporter::export('Time::HiRes', $into, 'sleep', 'time');
	return;
}

# If INITDB_TEMPLATE is set and a test gives initdb no options, PostgreSQL's modules from 17 on copy
# that data directory instead of running initdb.  For the modules before 17, this takes the place of
# system_or_bail() while a server is initialized.  All servers that are copies have the same system identifier.
my $system_or_bail = \&PostgreSQL::Test::Utils::system_or_bail;

sub copy_or_run
{
	my ($program, undef, $data, @options) = @_;
	my $is_plain = $program eq 'initdb' && "@options" eq '-A trust -N';

	return $system_or_bail->($is_plain && $ENV{INITDB_TEMPLATE} ? ('cp', '-RPp', $ENV{INITDB_TEMPLATE}, $data) : @_);
}

# A server that is initialized but not started.  Parameters: those of init(), and install_path.
sub new_node
{
	my ($name, %params) = @_;
	my $path = delete $params{install_path};
	my $node = PostgreSQL::Test::Cluster->new($name, defined $path ? (install_path => $path) : ());

	delete local $ENV{INITDB_TEMPLATE} if defined $path;
	{
		no warnings 'redefine';
		local *PostgreSQL::Test::Utils::system_or_bail = \&copy_or_run;
		$node->init(%params);
	}
	# What happens in the background would disturb what is measured.  In a container, /dev/shm is
	# small, and a server that is killed leaves its segments there.
	$node->append_conf(
		'postgresql.conf', qq(
autovacuum = off
dynamic_shared_memory_type = mmap
log_statement = none
jit = off
max_connections = 50
shared_buffers = 32MB
));
	return $node;
}

# Is there this program of the server's version?  Not every package has all.
sub has_program
{
	my ($name) = @_;
	my ($bindir) = run_command([ $ENV{PG_CONFIG} || 'pg_config', '--bindir' ]);

	return -x "$bindir/$name";
}

# The extension, with functions to look at IDs and at sessions that run a statement, and what this
# SQL makes.
sub create_extension
{
	my ($node, $sql) = @_;

	$node->safe_psql('postgres', q(
CREATE EXTENSION scru64;

-- an ID's timestamp, and the one of a point in time
CREATE FUNCTION tick_of(id scru64) RETURNS bigint
	LANGUAGE sql IMMUTABLE RETURN id::bigint >> 24;
CREATE FUNCTION tick_of(at timestamptz) RETURNS bigint
	LANGUAGE sql STABLE RETURN floor(extract(epoch FROM at) * 1000)::bigint >> 8;

-- end what another session runs, and tell how many milliseconds it took to end
CREATE FUNCTION end_statement(pid integer, how text) RETURNS numeric
LANGUAGE plpgsql AS $$
DECLARE
	began timestamptz := clock_timestamp();
BEGIN
	EXECUTE format('SELECT %I($1)', how) USING pid;
	LOOP
		PERFORM pg_stat_clear_snapshot();
		EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity a
							  WHERE a.pid = end_statement.pid AND state = 'active');
		PERFORM pg_sleep(0.005);
	END LOOP;
	RETURN extract(epoch FROM clock_timestamp() - began) * 1000;
END
$$;
) . ($sql // ''));
	return;
}

# What a query returns, or its error.  While wait_until() calls a function again and again, one
# session runs all its queries, unless the server ends the session: to start a psql and a session
# for each query takes a processor more time than all else in most tests.
our $sessions;
my $looked = '';

sub look_at
{
	my ($node, $dbname, $sql) = @_;
	my $name = $node->name . " $dbname";

	if (defined $sessions)
	{
		my $answer = eval {
			my $session = $sessions->{$name} //= $node->background_psql($dbname, on_error_stop => 0);
			my ($out, $err) = try_statement($session, $sql);
			$err eq '' ? $out : $err;
		};

		$looked = "$sql\n$answer" if defined $answer;
		return $answer if defined $answer;
		delete $sessions->{$name};
	}
	# IPC::Run dies where a psql that cannot connect ends before it has read the statement
	my ($rc, $out, $err) = eval { $node->psql($dbname, $sql) } or return $@;

	return $rc == 0 ? $out : $err;
}

# Wait until a function returns what is true, and return that; look every so many seconds.  A wait that runs
# out fails, and says for what it waited: its line, and what look_at() has seen last.
sub wait_until
{
	my ($code, $seconds) = @_;
	my $end = time() + $PostgreSQL::Test::Utils::timeout_default;
	my $result;

	local $sessions = {};
	$looked = '';
	while (!($result = $code->()) && time() < $end)
	{
		sleep($seconds // 0.2);
	}
	eval { $_->quit } foreach (values %{$sessions});
	return $result if $result;

	my (undef, $file, $line) = caller;
	fail("a wait ends: $file line $line: " . ((split(/\n/, slurp_file($file)))[ $line - 1 ] =~ s/^\s+//r)) or diag($looked);
	return '';
}

# Clients of pgbench, with so many transactions each: no error.  Files and options are those of
# pgbench().
sub pgbench_ok
{
	my ($node, $name, $clients, $transactions, $files, @options) = @_;
	my $all = $clients * $transactions;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return $node->pgbench(join(' ', "--no-vacuum --client=$clients --jobs=2 --transactions=$transactions", @options),
		0, [qr{processed: $all/$all}], [qr{^$}], $name, $files);
}

# Columns of a node's row in scru64_generators()
sub in_view
{
	my ($node, $spec, $columns) = @_;

	return $node->safe_psql('postgres', "SELECT $columns FROM scru64_generators() WHERE node_id || '/' || node_id_size = '$spec'");
}

# What is wrong with SQL, in full, in a session of its own.  Parameters: those of psql(), and dbname.
sub error_of
{
	my ($node, $sql, %params) = @_;

	return ($node->psql(delete $params{dbname} // 'postgres', "\\set VERBOSITY verbose\n$sql", %params))[2];
}

# A session that lives on after errors, and shows them in full; "pid" is its process.
sub open_session
{
	my ($node, %params) = @_;
	my $session = $node->background_psql($params{dbname} || 'postgres', on_error_stop => 0);

	$session->set_query_timer_restart();
	$session->{pid} = $session->query_safe("\\set VERBOSITY verbose\nSELECT pg_backend_pid()");
	return $session;
}

# Wait until a session waits for this event: one of PostgreSQL's, or the library's Clock or Standby,
# which have names from PostgreSQL 17 on.
sub waits_for
{
	my ($node, $session, $event) = @_;

	$event = $node->pg_version >= 17 ? "Scru64$event" : 'Extension' if $event =~ /^(Clock|Standby)$/;
	return wait_until(sub { look_at($node, 'postgres', "SELECT wait_event FROM pg_stat_activity WHERE pid = $session->{pid}") eq $event }, 0.1);
}

# Run a statement that may fail: what it wrote to stdout and to stderr, after
# what a started statement did.
sub try_statement
{
	my ($session, $sql) = @_;

	my $out = $session->query($sql);
	my $err = $session->{stderr};
	$session->{stderr} = '';
	return ($out, $err);
}

# Send a statement and do not wait for its end.
sub start_statement
{
	my ($session, $sql) = @_;

	$session->query_until(qr/^sent$/m, "\\echo sent\n$sql;\n");
	return;
}

# Set a parameter for the whole server, and see to it that these sessions have
# it, too.
sub set_parameter
{
	my ($node, $name, $value, @sessions) = @_;

	# before PostgreSQL 17 this takes a session that has loaded the library
	$node->safe_psql('postgres', qq(
LOAD 'scru64';
ALTER SYSTEM SET $name = '$value';
SELECT pg_reload_conf();
));
	$node->poll_query_until('postgres', "SELECT current_setting('$name', true)", $value) or die "$name did not become $value";

	foreach my $session (@sessions)
	{
		wait_until(sub { $session->query_safe("SHOW $name") eq $value }) or die "$name did not become $value in a session";
	}
	return;
}

1;
