# examples/with_lease ends its command when a renewal fails, and when the script itself is killed.

use FindBin;
use lib "$FindBin::RealBin/../lib";
use IPC::Run;
use Scru64Test;

plan skip_all => 'no setpriv that knows --pdeathsig' if system('setpriv --pdeathsig TERM true 2>/dev/null') != 0;

my $node = new_node('main');
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION scru64_realm CASCADE');
my $dir = PostgreSQL::Test::Utils::tempdir();
local @ENV{qw(PGHOST PGPORT PGDATABASE)} = ($node->host, $node->port, 'postgres');

# renewals every 0.1 seconds
append_to_file("$dir/timeout", qq(#!/bin/bash\nPATH=\${PATH#*:}\n[ "\$1" != 40 ] || set -- 0.1 "\${\@:2}"\nexec timeout "\$@"\n));
chmod(0755, "$dir/timeout");
local $ENV{PATH} = "$dir:$ENV{PATH}";

# Start the script, whose command says that it runs, and ends with status 7 when it is told to.
sub start_command
{
	my ($holder) = @_;
	my $script = IPC::Run::start([ "$FindBin::RealBin/../../examples/with_lease", 8, $holder, 'bash', '-c',
		"trap '>$dir/$holder.ended; exit 7' TERM; >$dir/$holder; while :; do sleep 0.1; done" ]);

	ok(wait_until(sub { -e "$dir/$holder" }), "$holder: the command runs");
	return $script;
}

my $script = start_command('revoked');
ok(wait_until(sub { $node->safe_psql('postgres', "SELECT clock_reading > granted_at FROM scru64_realm.ledger WHERE holder = 'revoked'") eq 't' }), 'the lease is renewed');
$node->safe_psql('postgres', "SELECT scru64_realm.revoke('revoked')");
ok(wait_until(sub { -e "$dir/revoked.ended" }), 'when a renewal fails, the command ends') || $script->signal('KILL');
$script->finish;
is($script->result, 7, 'with its status');

$script = start_command('killed');
$script->signal('KILL');
$script->finish;
ok(wait_until(sub { -e "$dir/killed.ended" }), 'when the script is killed, the command ends');
$node->stop;
done_testing();
