# A base backup has the page, and a server that is started from it goes on with the node: what the programs for
# backups and checks make of the page.  t/ceiling/promotion.pl has backups whose rows are in the WAL, and clocks.

use strict;
use warnings;
use File::Copy;
use Scru64Copies;
use Scru64Files;
use Scru64Loads;
use Scru64Server;
use Scru64Test;

my $main = new_node('main', allows_streaming => 1, extra => ['--data-checksums']);
$main->append_conf('postgresql.conf', "scru64.node_spec = '1/8'");
start_server($main);
my $page_size = $main->safe_psql('postgres', 'SHOW block_size');
$main->safe_psql('postgres', 'CREATE EXTENSION scru64; CREATE TABLE ids (id scru64 DEFAULT scru64_generate())');

my %received;
$main->safe_psql('postgres', 'INSERT INTO ids SELECT FROM generate_series(1, 1000)');
$main->backup('main');
SKIP:
{
	skip 'there is no pg_verifybackup', 1 if !has_program('pg_verifybackup');
	command_ok([ 'pg_verifybackup', $main->backup_dir . '/main' ], 'pg_verifybackup');
}
SKIP:
{
	skip 'amcheck is not installed', 1
	  if $main->safe_psql('postgres', "SELECT count(*) FROM pg_available_extensions WHERE name = 'amcheck'") == 0;
	$main->command_ok([ 'pg_amcheck', '--all', '--install-missing' ], 'pg_amcheck');
}
$main->stop;

my $copy = copy_server($main, 'copy', backup => 'main');
is(-s page_file($copy), $page_size, 'the copy has the page');
start_server($copy);
is($copy->safe_psql('postgres', q(
WITH last AS MATERIALIZED (SELECT max(id) AS id FROM ids)
SELECT g > id FROM last, scru64_generate() g
)),
	't', 'the copy goes on with the node, above the rows in the backup');
$copy->stop;

#
# pg_checksums checks the page as any other.  It may be moved away meanwhile, as a
# server that switches checksums on while it runs passes by the page: what it lacks
# then is its checksum, and it has one of its own.
#
my $data = $main->data_dir;
my $page = page_file($main);
my $away = $main->basedir . "/page";

sub goes_on_ok
{
	my ($name) = @_;

	start_server($main);
	# PostgreSQL's warning of the checksum
	issues_ok($main, \%received, '1/8', $name, ignored => qr/(.*WARNING:  XX001: .*\nLOCATION: .*\n?)+/);
	is(scalar(logged($main, 'the ceiling of scru64 was lost')), 0, "$name: the ceiling was not lost");
	$main->stop;
	return;
}

goes_on_ok('checksums on');
SKIP:
{
	skip 'there is no pg_checksums', 9 if !has_program('pg_checksums');
	command_ok([ 'pg_checksums', '--check', $data ], 'pg_checksums --check');
	command_ok([ 'pg_checksums', '--disable', $data ], 'pg_checksums --disable');
	goes_on_ok('checksums off');
	move($page, $away) or die "could not move $page: $!";
	command_ok([ 'pg_checksums', '--enable', $data ], 'pg_checksums --enable without the page');
	move($away, $page) or die "could not move $page: $!";
	command_fails([ 'pg_checksums', '--check', $data ], 'the page has no checksum');
	goes_on_ok('checksums on, the page has none');
	command_ok([ 'pg_checksums', '--check', $data ], 'the page has one again');
}

# Damaged, it is damaged with checksums, too.
my $text = slurp_file($page);
substr($text, 34, 1) = chr(ord(substr($text, 34, 1)) ^ 4);
replace_file($page, $text);
start_server($main);
refused_ok($main, '1/8', qr/ERROR:  XX001: file "global\/9864" is damaged/, 'damaged, with checksums');
$main->stop;
done_testing();
