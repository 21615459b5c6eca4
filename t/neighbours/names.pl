# A library that is loaded before has functions and variables of the same names as those of this
# project, where they are no names of scru64: none of them is taken for one of ours.

use strict;
use warnings;
use FindBin;
use Scru64Copies;
use Scru64Files;
use Scru64Lease;
use Scru64Test;

# What the sources define for more than one file
my @sources = map { slurp_file($_) } glob("$FindBin::RealBin/../../{src,src/*,realm/*}/*.c");
my @headers = map { slurp_file($_) } glob("$FindBin::RealBin/../../{src,src/*,realm/*}/*.h");
my @functions = grep { !/^(scru64_|_PG_)/ } map { /^(?!static|pg_noreturn static)[\w \*]+\n(\w+)\([^;{}]*\)\n\{/mg } @sources;
my @variables = grep { !/^scru64_/ } map { /^extern (?:PGDLLEXPORT )?[\w \*]+?(\w+);/mg } @headers;
my $text = "void abort(void);\n" . join('', map { "void $_(void) { abort(); }\n" } @functions) . join('', map { "long $_\[100];\n" } @variables);

my $library = compile_library('names', PostgreSQL::Test::Utils::tempdir(), $text);
plan skip_all => 'there is no compiler' if !defined $library;

cmp_ok(scalar(@functions), '>', 50, 'functions of the same names');
cmp_ok(scalar(@variables), '>', 3, 'and variables');
my $template = make_template('template');
my $realm = make_realm($template, 'realm');
my $server = copy_server($template, 'server', lines => fleet_lines($realm) . $preload);

{
	local $ENV{LD_PRELOAD} = $library;

	if (!ok($server->start(fail_ok => 1), 'a server starts'))
	{
		done_testing();
		exit;
	}
}
wait_for_lease($server);
like(lease_of($server), qr{^\d+/\d+$}, 'a lease');
my $id = $server->safe_psql('postgres', 'SELECT scru64_generate()');
like($id, qr/^[0-9a-z]{12}$/, 'an ID');
is($server->safe_psql('postgres', "COPY (SELECT '$id'::scru64) TO STDOUT"), $id, 'COPY');
is($server->safe_psql('postgres', "SELECT '$id'::scru64 < scru64_watermark()"), 't', 'the watermark');
is($server->safe_psql('postgres', 'SELECT node_spec = scru64_node_spec() FROM scru64_lease()'), 't', 'functions for administrators');
unlike(slurp_file($server->logfile), qr/^TRAP: |was terminated by signal/m, 'no process has crashed');
$_->stop foreach ($server, $realm);
done_testing();
