# From this version to a later one, and back: with a library that has another layout of
# shared memory and another page of the ceiling, and SQL with a new function and one of
# other columns.  It is built from the sources beside this file, as a maintainer would change them.
#
# Old SQL with the new library, databases of both, a new library while sessions go on with the old
# one, a standby first.

use strict;
use warnings;
use FindBin;
use Scru64Copies;
use Scru64Files;
use Scru64Loads;
use Scru64Test;
use Scru64Versions;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;

my $why_not = cannot_build();
plan skip_all => "the later version cannot be built: $why_not" if $why_not ne '';

my @specs = ('1/8', '2560/16');
my $later = qr/ERROR:  55000: file "global\/9864" was written by a later version of scru64\nDETAIL:  It is of format \d+, and .* none after \d+\.\nHINT:  Connect again, .*scru64_set_ceiling\(scru64_ceiling\(\)\)/;
my $unknown = qr/ERROR:  (42883: )?could not find function "scru64_novelty" in file ".*scru64\.so"/;
my %received;
my ($current) = slurp_file("$FindBin::RealBin/../../scru64.control") =~ /^default_version = '(.*)'/m
  or die 'scru64.control has no default_version';
my $next = 'next';

#
# The later version: its library, with the page of this one and with another; and its SQL
#

my %old = current_libraries();
my $sources = copy_sources();

patch($sources, 'src/shmem/shared_parts.h', qr/(SHARED_MEMORY_VERSION ")(\d+)/, sub { $1 . ($2 + 1) });
patch($sources, 'src/shmem/slots.h', qr/typedef struct NodeSlots\n\{\n/, sub { "$&\tuint64\t\tnovelty;\n" });
patch($sources, 'src/shmem/slot.h', qr/\) NodeSlot\n\{\n/, sub { "$&\tuint64\t\tnovelty;\n" });
patch($sources, 'src/shmem/slots.c', qr/NodeSlots  \*slots = part;\n\n/, sub { "$&\tslots->novelty = 4711;\n" });

patch($sources, 'src/admin/server.c', qr/\z/, sub { <<"END" });

PG_FUNCTION_INFO_V1(scru64_novelty);

Datum
scru64_novelty(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	shared_parts_attach();
	PG_RETURN_INT64((int64) node_slots->novelty);
}
END
my %new = built_libraries($sources);

my $page = 'src/ceiling/ceiling_page.c';
patch($sources, $page, qr/(define CEILING_VERSION\s+)(\d+)/, sub { $1 . ($2 + 1) });
patch($sources, $page, qr/} CeilingPage;/, sub { "\tuint64\t\tnovelty;\n$&" });
patch($sources, $page, qr/(define CEILING_PAGE_LEN).*/, sub { "$1 sizeof(CeilingPage)" });
patch($sources, $page, qr/\.ceiling = ceiling\n/, sub { ".ceiling = ceiling,\n\t\t.novelty = 4711\n" });
patch($sources, $page, qr/contents->version == 0 \|\|/, sub { "$& (contents->version == CEILING_VERSION && contents->novelty != 4711) ||" });
my %new_page = built_libraries($sources);

my ($columns) = slurp_file("$FindBin::RealBin/../../sql/scru64--1.0.sql") =~ /CREATE FUNCTION scru64_generators\(\n(.*?)\n\)/s;
my $update = <<"END";
CREATE FUNCTION scru64_novelty() RETURNS bigint AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
DROP FUNCTION scru64_generators();
CREATE FUNCTION scru64_generators_of_before($columns) RETURNS SETOF record AS 'MODULE_PATHNAME', 'scru64_generators' LANGUAGE C;
CREATE FUNCTION scru64_generators($columns, OUT novelty bigint) RETURNS SETOF record LANGUAGE sql
BEGIN ATOMIC
	SELECT g.*, scru64_novelty() FROM scru64_generators_of_before() AS g;
END;
REVOKE ALL ON FUNCTION scru64_generators(), scru64_generators_of_before() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION scru64_generators(), scru64_generators_of_before() TO pg_monitor;
END

# An installation, with the libraries of one version and with scripts of both: CREATE EXTENSION goes
# on from the base script to what the later version changes.
sub installation
{
	my (%libraries) = @_;
	my $installation = make_installation();

	append_to_file("$installation->{extensions}/scru64--$current--$next.sql", $update);
	install_libraries($installation, %libraries);
	return $installation;
}

# From here on CREATE EXTENSION creates this version.
sub set_default
{
	my ($installation, $version) = @_;
	my $control = slurp_file("$FindBin::RealBin/../../scru64.control");

	$control =~ s/^default_version = '.*'/default_version = '$version'/m or die 'scru64.control has no default_version';
	replace_file("$installation->{extensions}/scru64.control", $control);
	return;
}

sub version_in
{
	my ($node, $db) = @_;

	return $node->safe_psql($db, "SELECT extversion FROM pg_extension WHERE extname = 'scru64'");
}

sub goes_on_ok
{
	my ($node, $name, @dbs) = @_;

	foreach my $db (@dbs ? @dbs : 'postgres')
	{
		issues_ok($node, \%received, $_, "$name, in $db", dbname => $db, count => 3) foreach (@specs);
	}
	return;
}

sub all_refused_ok
{
	my ($node, $name) = @_;

	refused_ok($node, $_, $later, $name) foreach (@specs);
	like($node->safe_psql('postgres', 'SELECT scru64_ceiling()'), qr/^20/, "$name: it shows the ceiling");
	return;
}

#
# Loads that go on while something is done
#

sub loads
{
	my ($node) = @_;

	return [ start_load($node, { map { $_ => 2 } @specs }) ];
}

sub ids_of_client
{
	my ($client) = @_;

	return slurp_file("$client->{base}.out") =~ tr/\n//;
}

# Wait until each client has more IDs, or one error of the library.
sub wait_for_clients
{
	my ($what, $load) = @_;

	foreach my $client (@{$load})
	{
		my $enough = ids_of_client($client) + 300;

		wait_until(sub { $what eq 'IDs' ? ids_of_client($client) >= $enough : slurp_file("$client->{base}.err") =~ /ERROR/ })
		  or die "no $what of $client->{spec}";
	}
	return;
}

# End loads that have run beside each other.  What was wrong, but for one error.
sub end_together
{
	my ($node, $error, @loads) = @_;
	my $errors;

	end_clients(map { @{$_} } @loads);
	$errors = record_load(\%received, map { @{$_} } @loads);
	return join("\n", grep { !/$error/ } split(/\n/, $errors)) . record_problems(\%received);
}

my $installation = installation(%old);
my $node = new_node('main', install_path => $installation->{path});
my ($out, $err);

set_default($installation, $current);
$node->append_conf('postgresql.conf', "max_prepared_transactions = 1\nscru64.node_spec = '1/8'");
$node->start;
$node->safe_psql('postgres', q(
CREATE EXTENSION scru64;
CREATE DATABASE one TEMPLATE postgres;
CREATE ROLE realm_owner LOGIN;
CREATE ROLE monitor LOGIN IN ROLE pg_monitor;
CREATE ROLE granted LOGIN;
GRANT CREATE ON DATABASE postgres TO realm_owner;
SET SESSION AUTHORIZATION realm_owner;
CREATE EXTENSION scru64_realm;
));
is(version_in($node, 'postgres'), $current, 'this version');
goes_on_ok($node, 'this version');

#
# The new library, while a session goes on with the old one
#

# The owner of a realm is no superuser, and may not call scru64_generators() itself.
sub realm_session
{
	my $realm = open_session($node);

	$realm->query_safe('SET SESSION AUTHORIZATION realm_owner');
	return $realm;
}

sub lease_ok
{
	my ($realm, $name) = @_;

	like(join('', try_statement($realm, "SELECT node_spec FROM scru64_realm.lease(16, 'app')")), qr/^[0-9a-z]+\/16$/, "a lease, $name");
	return;
}

my $session = open_session($node);
$session->query_safe("LOAD 'scru64'");
my $realm = realm_session();
lease_ok($realm, 'before the update');
install_libraries($installation, %new);
set_default($installation, $next);
($out, $err) = try_statement($session, "ALTER EXTENSION scru64 UPDATE");
like($err, $unknown, 'a session of before cannot update');
$node->safe_psql('postgres', 'CREATE VIEW nodes AS SELECT * FROM scru64_generators(); GRANT EXECUTE ON FUNCTION scru64_generators() TO granted');
like(error_of($node, 'ALTER EXTENSION scru64 UPDATE'), qr/ERROR:  2BP01: .*\nDETAIL:  view public\.nodes depends on function scru64_generators\(\)/, "a user's view is dropped first");
is(version_in($node, 'postgres'), $current, '... else nothing is done');
$node->safe_psql('postgres', 'DROP VIEW nodes; ALTER EXTENSION scru64 UPDATE');
is(version_in($node, 'postgres'), $next, 'a new one can');
is($node->safe_psql('postgres', 'SELECT scru64_novelty()'), '4711', 'the new function');
($out, $err) = try_statement($session, 'SELECT scru64_novelty()');
like($err, $unknown, 'in a session of before, it is missing');
($out, $err) = try_statement($session, 'SELECT * FROM scru64_generators()');
like($err, $unknown, '... and so is the one with the new column');
($out, $err) = try_statement($realm, "SELECT scru64_realm.lease(16, 'app')");
like($err, $unknown, '... and in a session of the realm, which looks for it');
$realm->quit;
$realm = realm_session();
lease_ok($realm, 'in a new session');
$realm->quit;
record_ids(\%received, $specs[0], [ split(/\n/, $session->query_safe("SET scru64.node_spec = '$specs[0]'; SELECT scru64_generate(3)")) ]);
is(record_problems(\%received), '', '... and its IDs go on');
$session->quit;
goes_on_ok($node, 'two databases at two versions', 'postgres', 'one', 'postgres', 'one');
is(version_in($node, 'one'), $current, 'the other one is where it was');
is($node->safe_psql('postgres', 'SELECT DISTINCT novelty FROM scru64_generators()', extra_params => [ '-U', 'monitor' ]), '4711', 'the new column, for who monitors');
like(error_of($node, 'SELECT novelty FROM scru64_generators()', extra_params => [ '-U', 'granted' ]), qr/ERROR:  42501/, '... and not for a role that was granted the function before');

# Old SQL, new library: all that this version's script names
is($node->safe_psql('one', q(
SELECT count(*) > 30 FROM pg_proc AS p JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e',
	LATERAL (SELECT fmgr_c_validator(p.oid)) AS v WHERE p.probin ~ 'scru64')), 't', 'old SQL, new library: all functions');
is($node->safe_psql('one', 'SELECT count(*) FROM scru64_transactions()'), '0', 'old SQL, new library: transactions');
is($node->safe_psql('one', 'SELECT scru64_node_spec()'), '1/8', 'old SQL, new library: the node');

#
# A new library under load: the old one and the new one have shared memory of their own,
# and one ceiling.
#
sub roll
{
	my ($name, $error, %libraries) = @_;
	my @loads = loads($node);
	my $before = open_session($node, dbname => 'one');

	like($before->query_safe('SELECT scru64_watermark()'), qr/^[0-9a-z]{12}$/, "$name: there is a watermark");
	wait_for_clients('IDs', $loads[0]);
	install_libraries($installation, %libraries);
	push @loads, loads($node);
	wait_for_clients('IDs', $loads[1]);
	wait_for_clients($error eq '^$' ? 'IDs' : 'errors', $loads[0]);
	wait_for_clients('IDs', $loads[1]);
	foreach my $session ($before, open_session($node, dbname => 'one'))
	{
		(undef, $err) = try_statement($session, 'SELECT scru64_watermark()');
		like($err, qr/ERROR:  55000: there is no watermark\nDETAIL:  Two versions.*\nHINT:  Restart/, "$name: no watermark");
		$session->quit;
	}
	is(end_together($node, $error, @loads), '', "$name: no ID twice, none out of order, no error");
	note(log_counts(\%received));
	# Those of the two libraries are in no common order: these may be below the last ones.
	my %greatest = map { $_ => $received{$_}{greatest} } @specs;
	foreach my $spec (@specs)
	{
		$received{$spec}{greatest} = '';
		issues_ok($node, \%received, $spec, "$name: new sessions, in $_", dbname => $_, count => 3) foreach ('postgres', 'one');
		$received{$spec}{greatest} = $greatest{$spec} if $greatest{$spec} gt $received{$spec}{greatest};
	}
	return;
}

install_libraries($installation, %old);
set_default($installation, $current);
$node->restart;
goes_on_ok($node, 'the old library again');
like(error_of($node, 'SELECT scru64_novelty()'), $unknown, 'the old library again: what is new is missing');
roll('the page stays', '^$', %new);

# With another page: the sessions of before end with an error before they are beyond the
# ceiling that they have written.
install_libraries($installation, %old);
$node->restart;
roll('another page', 'ERROR:  file "global/9864" was written by a later version of scru64|^psql:.*(DETAIL|HINT): |^(DETAIL|HINT): ', %new_page);
$node->restart;
goes_on_ok($node, 'another page, after a restart', 'postgres', 'one');
is($node->safe_psql('one', 'SELECT scru64_watermark() IS NOT NULL'), 't', 'another page, after a restart: there is a watermark');

# Back
install_libraries($installation, %old);
$node->restart;
all_refused_ok($node, 'back');
like(error_of($node, 'SELECT scru64_check()', dbname => 'one'), $later, 'back: scru64_check() says so');
$node->safe_psql('one', 'SELECT scru64_set_ceiling(scru64_ceiling())');
goes_on_ok($node, 'back, and set', 'postgres', 'one');
$node->stop;

#
# A standby first; and one that is late
#
%received = ();
my @installations = map { installation(%old) } (1 .. 2);
set_default($_, $current) foreach (@installations);
my $first = new_node('first', allows_streaming => 1, install_path => $installations[0]{path});
$first->start;
$first->safe_psql('postgres', 'CREATE EXTENSION scru64');
$first->stop;
$first->backup_fs_cold('cold');
my $second = PostgreSQL::Test::Cluster->new('second', install_path => $installations[1]{path});
$second->init_from_backup($first, 'cold');
$second->enable_streaming($first);
install_libraries($installations[1], %new_page);
set_default($installations[1], $next);
$_->start foreach ($first, $second);
goes_on_ok($first, 'the primary');
catch_up($first, $second);
like($second->safe_psql('postgres', 'SELECT scru64_ceiling()'), qr/^20/, 'the new library on a standby: it shows the ceiling');
$first->stop;
$second->promote;
goes_on_ok($second, 'the new library, promoted');
$second->safe_psql('postgres', 'ALTER EXTENSION scru64 UPDATE');
goes_on_ok($second, 'the new library, promoted and updated');

$first->enable_streaming($second);
$first->start;
catch_up($second, $first);
is(version_in($first, 'postgres'), $next, 'a late standby has the new SQL');
$second->stop;
$first->promote;
all_refused_ok($first, 'a late standby, promoted');
install_libraries($installations[0], %new_page);
goes_on_ok($first, 'a late standby, with the new library');
$first->stop;

done_testing();
