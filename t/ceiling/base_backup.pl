# Servers that were started from one base backup: with node specs of their own they
# issue no ID that another one issues.  And what the programs for backups and checks make
# of the page.

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

# The backup is taken while the server generates.
my %received;
my @loads = start_load($main, { '1/8' => 2 });
$main->safe_psql('postgres', 'INSERT INTO ids SELECT FROM generate_series(1, 1000)');
$main->backup('main');
SKIP:
{
	skip 'there is no pg_verifybackup', 1 if !has_program('pg_verifybackup');
	command_ok([ 'pg_verifybackup', $main->backup_dir . '/main' ], 'pg_verifybackup');
}
$main->safe_psql('postgres', 'INSERT INTO ids SELECT FROM generate_series(1, 1000)');
sleep(0.2);

my %copies;
foreach my $n (2, 3)
{
	my $copy = copy_server($main, "copy_$n", backup => 'main', lines => "scru64.node_spec = '$n/8'");

	is(-s page_file($copy), $page_size, "copy $n has the page");
	start_server($copy);
	$copies{$n} = $copy;
}

# All three at once.
push @loads, map { start_load($copies{$_}, { "$_/8" => 2 }) } sort keys %copies;
sleep(0.5);
end_clients(@loads);
is(record_load(\%received, @loads), '', 'servers with node specs of their own: no error');
is(record_problems(\%received), '', 'no ID twice on any of them');
my %servers;
foreach my $spec (sort keys %received)
{
	cmp_ok(number_of_ids(\%received, $spec), '>', 100, "there are IDs of $spec");
	$servers{$_}++ foreach (keys %{ $received{$spec}{ids} });
}
is(scalar(grep { $_ > 1 } values %servers), 0, 'no ID on two of them');

# A copy that takes the place of the main server goes on with its node.
SKIP:
{
	skip 'amcheck is not installed', 1
	  if $main->safe_psql('postgres', "SELECT count(*) FROM pg_available_extensions WHERE name = 'amcheck'") == 0;
	$main->command_ok([ 'pg_amcheck', '--all', '--install-missing' ], 'pg_amcheck');
}
$main->stop;
foreach my $n (2, 3)
{
	is($copies{$n}->safe_psql('postgres', q(
SET scru64.node_spec = '1/8';
WITH last AS MATERIALIZED (SELECT max(id) AS id FROM ids)
SELECT g > id FROM last, scru64_generate() g
)),
		't', "copy $n: the main server's node is above the rows in the backup");
}

$_->stop foreach (values %copies);

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
