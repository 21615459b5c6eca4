# What all tests need: strict and warnings, PostgreSQL's own modules, with Test::More, and
# sleep() and time() of parts of a second.  And what several need: a server with the
# extension, sessions whose errors are expected, and statements that are to be watched
# while they run.

package Scru64Test;

use strict;
use warnings;

use Exporter;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

# Tests that want the server to have it say so.
delete $ENV{SCRU64_NODE_SPEC};

our @EXPORT = qw(
  add_helpers
  has_program
  new_node
  open_session
  set_parameter
  start_statement
  try_statement
);

sub import
{
	my ($package) = @_;
	my $into = caller;

	strict->import;
	warnings->import;
	Exporter::export($_, $into) foreach ($package, 'PostgreSQL::Test::Utils', 'Test::More');
	Exporter::export('Time::HiRes', $into, 'sleep', 'time');
	return;
}

# If INITDB_TEMPLATE is set and a test gives initdb no options, PostgreSQL's modules from 17 on copy
# that data directory instead of running initdb; for the modules before 17, copy_or_run() copies
# it.  All servers that are copies have the same system identifier.
my $system_or_bail = \&PostgreSQL::Test::Utils::system_or_bail;

sub copy_or_run
{
	my ($program, undef, $data, @options) = @_;
	my $is_plain = $program eq 'initdb' && "@options" eq '-A trust -N';

	return $system_or_bail->($is_plain && $ENV{INITDB_TEMPLATE} ? ('cp', '-RPp', $ENV{INITDB_TEMPLATE}, $data) : @_);
}
{
	no warnings 'redefine';
	*PostgreSQL::Test::Utils::system_or_bail = \&copy_or_run;
}

# A server that is initialized but not started.  Parameters: those of init(), and install_path.
sub new_node
{
	my ($name, %params) = @_;
	my $path = delete $params{install_path};
	my $node = PostgreSQL::Test::Cluster->new($name, defined $path ? (install_path => $path) : ());

	delete local $ENV{INITDB_TEMPLATE} if defined $path;
	$node->init(%params);
	# What happens in the background would disturb what is measured.  Recovery reports its
	# progress from a signal handler, which waits for ever where it interrupts libfaketime.
	$node->append_conf(
		'postgresql.conf', qq(
autovacuum = off
log_startup_progress_interval = 0
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

# Functions to look at IDs and at sessions that run a statement.
sub add_helpers
{
	my ($node) = @_;

	$node->safe_psql(
		'postgres', q(
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
));
	return;
}

# A session that lives on after errors, and shows them in full.
sub open_session
{
	my ($node, %params) = @_;
	my $session = $node->background_psql($params{dbname} || 'postgres',
		on_error_stop => 0);

	$session->set_query_timer_restart();
	$session->query_safe('\set VERBOSITY verbose');
	return $session;
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
	$node->safe_psql(
		'postgres', qq(
LOAD 'scru64';
ALTER SYSTEM SET $name = '$value';
SELECT pg_reload_conf();
));
	$node->poll_query_until('postgres',
		"SELECT current_setting('$name', true) = '$value'")
	  or die "$name did not become $value";

	foreach my $session (@sessions)
	{
		my $shown = '';

		for my $attempt (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
		{
			$shown = $session->query_safe("SHOW $name");
			last if $shown eq $value;
			usleep(100_000);
		}
		die "$name did not become $value in a session" if $shown ne $value;
	}
	return;
}

1;
