# examples/with_lease ends its command when a renewal fails, and when the script itself is killed; and
# examples/gunicorn.conf.py and examples/cluster_worker.mjs lease a node for each process.

use strict;
use warnings;
use FindBin;
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
	my $script = IPC::Run::start([ "$FindBin::RealBin/../../../examples/with_lease", 8, $holder, 'bash', '-c',
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

#
# Two processes by each of the examples: they have different nodes, and end with their leases.
#
my $top = "$FindBin::RealBin/../../..";
my %programs = (
	python => [ 'gunicorn.conf.py', '/usr/bin/python3', 'python.py', '', q(
import time

class Worker: pid = property(lambda self: os.getpid())

for i in range(2):
    if os.fork() == 0:
        post_fork(None, Worker())
        open(f"python.{i}", "w").write(os.environ["SCRU64_NODE_SPEC"] + chr(10))
        time.sleep(600)
for i in range(2):
    os.wait()
) ],
	js => [ 'cluster_worker.mjs', 'node', 'js.mjs', q(
import cluster from 'node:cluster';
import { writeFileSync } from 'node:fs';

if (cluster.isPrimary) {
  for (const i of [0, 1]) cluster.fork();
} else {
  await import('./worker.mjs');
  writeFileSync(`js.${cluster.worker.id - 1}`, `${globalThis.SCRU64_NODE_SPEC}\n`);
}
), '' ]);

symlink("$top/examples", "$dir/examples") or die "could not link $dir/examples: $!";
foreach my $language (sort keys %programs)
{
	my ($example, $interpreter, $file, $instead, $after) = @{ $programs{$language} };
  SKIP:
	{
		skip "no $interpreter", 3 if system("command -v $interpreter >/dev/null") != 0;
		append_to_file($instead ? "$dir/worker.mjs" : "$dir/$file", slurp_file("$top/examples/$example") . $after);
		append_to_file("$dir/$file", $instead) if $instead;
		my $processes = IPC::Run::start([ 'env', '-C', $dir, $interpreter, $file ]);
		my $specs = sub {
			return map { -e "$dir/$language.$_" ? slurp_file("$dir/$language.$_") =~ m{^(\w+/8)\n} : () } 0 .. 1;
		};

		wait_until(sub { $specs->() == 2 });
		is($node->safe_psql('postgres', "SELECT count(DISTINCT (scru64_parse_node_spec(s)).node_id) FROM unnest('{@{[join(',', $specs->())]}}'::text[]) AS s"),
			2, "$language: two processes have different nodes");
		ok(wait_until(sub { $node->safe_psql('postgres', q(
SELECT count(*) FROM scru64_realm.ledger
WHERE holder ~ '^app' AND released_at IS NULL AND revoked_at IS NULL AND clock_reading > granted_at)) eq '2' }), "$language: and renew their leases");
		$node->safe_psql('postgres', q(SELECT scru64_realm.revoke(lease_id) FROM scru64_realm.ledger WHERE holder ~ '^app'));
		ok(wait_until(sub { !$processes->pumpable }), "$language: they end with their leases") || $processes->kill_kill;
		$processes->finish;
	}
}
$node->stop;
done_testing();
