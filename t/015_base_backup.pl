# Servers that were started from one base backup: with node specs of their own they
# give no ID that another one gives; with the same node spec they do.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Scru64Fault;
use Scru64Test;
use Test::More;
use Time::HiRes qw(sleep);

my $main = new_node('main', allows_streaming => 1);
$main->append_conf('postgresql.conf', "scru64.node_spec = '1/8'");
start_server($main);
$main->safe_psql('postgres',
	'CREATE EXTENSION scru64; CREATE TABLE ids (id scru64 DEFAULT scru64_generate())');

# The backup is taken while the server generates, and rewrites its state file.
my %received;
my $load = start_load($main, '1/8' => 2);
$main->safe_psql('postgres', 'INSERT INTO ids SELECT FROM generate_series(1, 1000)');
$main->backup('main');
$main->safe_psql('postgres', 'INSERT INTO ids SELECT FROM generate_series(1, 1000)');
sleep(0.2);

my %copies;
foreach my $n (2, 3)
{
	my $copy = PostgreSQL::Test::Cluster->new("copy_$n");

	$copy->init_from_backup($main, 'main');
	$copy->append_conf('postgresql.conf', "scru64.node_spec = '$n/8'");
	like(read_file(state_file($copy)), qr{^scru64 state file.*\ntimeline 1\nfloor .*\n\w{12}/8\n$}, "copy $n has a complete state file");
	start_server($copy);
	$copies{$n} = $copy;
}

# All three at once.
my @loads = ($load, map { start_load($copies{$_}, "$_/8" => 2) } sort keys %copies);
sleep(0.5);
end_load($_) foreach (@loads);
is(record_load(\%received, $_), '', 'servers with node specs of their own: no error') foreach (@loads);
is(record_problems(\%received), '', 'no ID twice on any of them');
my %servers;
foreach my $spec (sort keys %received)
{
	cmp_ok(number_of_ids(\%received, $spec), '>', 100, "there are IDs of $spec");
	$servers{$_}++ foreach (keys %{ $received{$spec}{ids} });
}
is(scalar(grep { $_ > 1 } values %servers), 0, 'no ID on two of them');
ok( defined $received{'2/8'} && $received{'2/8'}{greatest} ne '',
	'a node that the backup does not know generates at once');

# A copy that takes the place of the main server goes on with its node.
$main->stop;
foreach my $n (2, 3)
{
	is( $copies{$n}->safe_psql(
			'postgres', q(
SET scru64.node_spec = '1/8';
WITH last AS MATERIALIZED (SELECT max(id) AS id FROM ids)
SELECT g > id FROM last, scru64_generate() g
)),
		't',
		"copy $n: the main server's node is above the rows in the backup");
}

# The same node spec on both: each server gives what the other one gives.  Only who
# assigns the node specs can see to it that this is not so.
my %same;
foreach my $n (2, 3)
{
	$same{$_}++
	  foreach (split(/\n/,
			$copies{$n}->safe_psql('postgres', "SET scru64.node_spec = '4/20'; SELECT scru64_generate(300)")));
}
cmp_ok(scalar(grep { $_ > 1 } values %same), '>', 0,
	'two servers with one node spec give the same IDs');

$_->stop foreach (values %copies);
done_testing();
