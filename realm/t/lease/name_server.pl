# While name servers do not answer, the lease worker waits in libpq, and DROP DATABASE waits for the
# worker.  With hostaddr, the worker asks no name server.

use strict;
use warnings;
use Scru64Copies;
use Scru64Files;
use Scru64Lease;
use Scru64Test;

my $server = copy_server(make_template('template'), 'server');
my $file = $server->basedir . '/slow_resolver';
my $library = compile_library('slow_resolver', $server->basedir);
plan skip_all => 'there is no compiler' if !defined $library;

sub realm_is
{
	my ($realm) = @_;

	$server->append_conf('postgresql.conf', "scru64.realm = '$realm dbname=realm user=fleet'");
	return;
}

$server->append_conf('postgresql.conf', "shared_preload_libraries = 'scru64'");
realm_is('host=realm.example port=5999');
append_to_file($file, '');
{
	local @ENV{qw(LD_PRELOAD SLOW_RESOLVER)} = ($library, $file);
	$server->start;
}
$server->safe_psql('postgres', $_) foreach ('CREATE DATABASE one STRATEGY file_copy', 'CREATE DATABASE two STRATEGY file_copy');
ok(wait_until(sub { -e "$file.log" }), 'the worker asks a name server');
my $session = open_session($server);
start_statement($session, 'DROP DATABASE one');
ok(waits_for($server, $session, 'ProcSignalBarrier'), 'DROP DATABASE waits');
unlink($file) or die "could not remove $file: $!";
is($session->query_safe('SELECT count(*) FROM pg_database WHERE datname = $$one$$'), '0', 'until the name server answers');

# While names are refused at once, the worker gets the new setting.
realm_is('host=realm.example hostaddr=127.0.0.1 port=5999');
$server->reload;
ok(wait_until(sub { lease_sql($server, 'last_error') =~ /127\.0\.0\.1/ }), 'hostaddr: the worker gets as far as the realm');
append_to_file($file, '');
my $failures = lease_sql($server, 'failures');
ok(wait_until(sub { lease_sql($server, 'failures') > $failures }), '... and again while name servers do not answer');
is(error_of($server, 'DROP DATABASE two'), '', 'hostaddr: DROP DATABASE does not wait');
$session->quit;
$server->stop;
done_testing();
