# Recipes for a realm run no code of its owner with more rights than the owner has: what Patroni
# calls after a promotion, what is run on CloudNativePG then, and what monitoring reads.  And what a
# page puts into scru64.realm is no secret, since every role may see it.

use strict;
use warnings;
use FindBin;
use Scru64Examples;
use Scru64Files;
use Scru64Test;

plan skip_all => 'this system has no peer authentication' if $windows_os;

my $top = "$FindBin::RealBin/../../..";
my $system_user = getpwuid($<);
my %page = map { $_ => slurp_file("$top/doc/$_.md") } qw(realm operating cloudnativepg);

# The realm, as the page makes it
my ($make_realm) = grep { $_->{mark} eq 'at r1' && $_->{text} =~ /CREATE DATABASE realm/ } blocks_of("$top/doc/realm.md")
  or die 'there is no realm for several machines';
my $node = new_node('main');
$node->append_conf('postgresql.conf', "scru64.node_spec = '42/8'\nunix_socket_permissions = 0777");
$node->start;
$node->safe_psql('postgres', $make_realm->{text});
my $owner = q(
SELECT rolname, rolsuper FROM pg_proc AS p JOIN pg_roles AS r ON r.oid = p.proowner
WHERE p.oid = 'scru64_realm.nothing_was_lost'::regproc);
is($node->safe_psql('realm', $owner), 'realm|f', 'the realm belongs to no superuser');
$node->safe_psql('postgres', 'DROP DATABASE realm; DROP ROLE realm, fleet');
{
	local $ENV{FLEET_PASSWORD} = 'none';
	$node->command_ok([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-f', "$top/examples/realm.sql" ], 'the realm of compose.yaml');
}
is($node->safe_psql('realm', $owner), 'realm|f', '... neither');

#
# An owner who wants to be one: functions do what the owner may not, if the session may, and say
# who calls
#
my $hba = $node->data_dir . '/pg_hba.conf';
my $ident = $node->data_dir . '/pg_ident.conf';
my $trust = slurp_file($hba);

$node->safe_psql('realm', q(
CREATE TABLE public.called (role name, is_monitor boolean);
GRANT INSERT ON public.called TO PUBLIC;
GRANT USAGE ON SCHEMA public TO PUBLIC;
CREATE FUNCTION public.trap() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	RESET SESSION AUTHORIZATION;
	INSERT INTO public.called VALUES (session_user, pg_has_role(session_user, 'pg_monitor', 'MEMBER'));
	IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
		ALTER ROLE realm SUPERUSER;
	END IF;
END
$$;
CREATE OR REPLACE FUNCTION scru64_realm.nothing_was_lost() RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
	PERFORM public.trap();
	RETURN now();
END
$$;
CREATE OR REPLACE FUNCTION scru64_realm.clock() RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
	PERFORM public.trap();
	RETURN clock_timestamp();
END
$$;
), extra_params => [ '-U', 'realm' ]);

# Who has called since the last time, and whether the owner is a superuser; with this once more undone
sub callers
{
	my $found = $node->safe_psql('realm', q(
SELECT string_agg(DISTINCT role, ' ') FROM public.called;
SELECT rolsuper FROM pg_roles WHERE rolname = 'realm';
));

	$node->safe_psql('realm', 'TRUNCATE public.called; ALTER ROLE realm NOSUPERUSER');
	return $found;
}

# What a block of a page shows, for the user that runs this
sub lines_of
{
	my ($name) = @_;

	return recipe("$top/doc/realm.md", $name) =~ s/\bpostgres\b/$system_user/gr;
}

sub set_up
{
	my ($hba_lines, $ident_lines) = @_;

	replace_file($hba, $hba_lines);
	replace_file($ident, $ident_lines);
	$node->reload;
	return;
}

# Programs of the pages, with their output
sub output_of
{
	my (@command) = @_;
	my $out = '';

	local $ENV{PATH} = "$node->{stub}:" . $node->config_data('--bindir') . ":$ENV{PATH}";
	local @ENV{qw(PGHOST PGPORT)} = ($node->host, $node->port);
	IPC::Run::run(\@command, '<', '/dev/null', '>&', \$out);
	return $out;
}

# etcd, as the callback asks it: the member that has the lock was synchronous
$node->{stub} = PostgreSQL::Test::Utils::tempdir();
append_to_file("$node->{stub}/etcdctl", <<'END');
#!/bin/sh
case "$2" in
*/leader) printf '"CreateRevision" : 12\n"Version" : 1\n"Value" : "r2"\n' ;;
*/sync) echo '{"leader":"r1","sync_standby":"r2"}' ;;
esac
END
chmod(0755, "$node->{stub}/etcdctl");

my ($conninfo) = $page{operating} =~ m{on_role_change: /etc/patroni/realm_promoted \S+ '(.*)'} or die 'there is no callback';

sub promoted
{
	my ($to) = @_;

	return output_of("$top/examples/realm_promoted", '127.0.0.1:2379', $to, 'on_role_change', 'primary', 'realm');
}

#
# The trap works
#
like(promoted("user=$system_user dbname=realm"), qr/^realm_promoted: no lease is lost since 20/, 'a callback that connects as a superuser');
is(callers(), "$system_user\nt", '... makes the owner a superuser');
like(output_of('psql', '-XAtq', '-d', "dbname=realm user=$system_user", '-c', 'SET ROLE realm', '-c', 'SELECT scru64_realm.nothing_was_lost()'), qr/^20/, 'SET ROLE');
is(callers(), "$system_user\nt", '... does not help');

#
# Patroni
#
my $rest = "local all $system_user trust\n";

set_up(lines_of('pg_hba.conf') . $rest, '');
unlike(output_of('psql', '-XAtq', '-d', $conninfo, '-c', 'SELECT 1'), qr/^1$/m, 'without its line of pg_ident.conf, nobody connects as the owner');
set_up(lines_of('pg_hba.conf') . $rest, lines_of('pg_ident.conf'));
like(promoted($conninfo), qr/^realm_promoted: no lease is lost since 20/, "the callback of the page, $conninfo");
is(callers(), "realm\nf", '... connects as the owner, who stays what the owner was');

# By the same lines the owner dumps a realm that moves, whose name is another one then
$node->safe_psql('postgres', recipe("$top/doc/realm.md", 'move, old'));
is(output_of('sh', '-c', "cd '$node->{stub}'; " . recipe("$top/doc/realm.md", 'move, dump')), '', 'the owner dumps a realm that moves');
$node->safe_psql('postgres', 'ALTER DATABASE realm_old RENAME TO realm');

#
# CloudNativePG, whose own lines are these
#
my ($ident_line) = slurp_file("$top/examples/cloudnativepg/realm.yaml") =~ /^ *pg_ident:\n *- (.*)$/m or die 'there is no line of pg_ident.conf';
my ($arguments) = $page{cloudnativepg} =~ /^kubectl cnpg psql realm -- (.*nothing_was_lost.*)$/m or die 'there is no command';

set_up("local all all peer map=local\n", "local $system_user $system_user\n" . $ident_line =~ s/\bpostgres\b/$system_user/r . "\n");
like(output_of('sh', '-c', "psql -XAtq $arguments"), qr/^20/, "CloudNativePG, psql $arguments");
is(callers(), "realm\nf", '... the same');
set_up($trust, '');

#
# Monitoring
#
my ($check_user) = $page{operating} =~ /`--realm='host=r1 dbname=realm user=(\w+)'`/ or die 'there is no user for check_scru64';
my ($exporter_user) = slurp_file("$top/examples/prometheus/sql_exporter.yml") =~ m{//(\w+):secret\@localhost/realm\b} or die 'there is no user for sql_exporter';
my ($rows) = slurp_file("$top/examples/prometheus/sql_exporter.yml") =~ /(SELECT node_id_size::text, available.*?capacity)$/ms or die 'there is no query';
my @grants = $page{operating} =~ /^(GRANT .*;)$/mg;

$node->safe_psql('postgres', "CREATE ROLE $check_user LOGIN");
$node->safe_psql('realm', "@grants", extra_params => [ '-U', 'realm' ]);
is($exporter_user, $check_user, 'monitoring uses one role');
is($node->safe_psql('postgres', "SELECT rolsuper OR pg_has_role(oid, 'pg_monitor', 'MEMBER') FROM pg_roles WHERE rolname = '$check_user'"), 'f', '... without other rights');
like($node->safe_psql('realm', $rows, extra_params => [ '-U', $check_user ]), qr/^8\|25\d\|0$/m, '... that sees the free nodes');
is(callers(), "$check_user\nf", '... and is who runs the code of the owner');

#
# scru64.realm: what each page and example shows, and who sees it
#
my @shown;
foreach my $file (glob("$top/*.md $top/doc/*.md"), glob("$top/examples/{*,*/*}"))
{
	push @shown, slurp_file($file) =~ /\bscru64\.realm ?[=:] ?(?:>-|\\?['"]?)?\s*(['"]?[^\s'"].*(?:\n(?: {8,}| +').*)*)/g if -f $file;
}
cmp_ok(scalar(@shown), '>=', 6, 'pages and examples show settings');
is(join("\n", grep { /password *=|:\/\/\S*:\S*\@/ } @shown), '', 'none contains a password');

my ($literals) = $page{realm} =~ /^ALTER SYSTEM SET scru64.realm =\s+'(host=r1,[^;]*passfile=[^;]*)';$/m or die 'there is no setting for several machines';
# as SQL joins them
my $recipe = $literals =~ s/'\s+'//gr;
my $see = 'SHOW scru64.realm';
my @as_nobody = (extra_params => [ '-U', 'nobody' ]);
$node->safe_psql('postgres', 'CREATE ROLE nobody LOGIN; CREATE EXTENSION scru64');
$node->append_conf('postgresql.conf', "scru64.realm = '$recipe'");
$node->reload;
is($node->safe_psql('postgres', $see, @as_nobody), $recipe, 'where scru64 is not preloaded, every role sees the setting');
like(error_of($node, "SELECT '000000000000'::scru64; $see", @as_nobody), qr/ERROR:  42501: /, '... until the session has loaded the library');
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'scru64'");
$node->restart;
like(error_of($node, $see, @as_nobody), qr/ERROR:  42501: /, 'where it is preloaded, none without pg_read_all_settings does');

$node->stop;
done_testing();
