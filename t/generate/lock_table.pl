# Any session can fill the table of locks, which then keeps all shared memory that is not taken yet.
# Where the library is preloaded, IDs and watermarks need none of it: on a server that has just
# started, after a crash, and on a standby that is promoted.

use strict;
use warnings;
use Scru64Server;
use Scru64Test;

my $node = new_node('main', allows_streaming => 1);
$node->append_conf('postgresql.conf', "scru64.node_spec = '1/8'\nshared_preload_libraries = 'scru64'\nrestart_after_crash = on");
$node->start;
create_extension($node, 'CREATE ROLE app LOGIN');
$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;

sub fill_lock_table
{
	my ($server) = @_;

	like(error_of($server, 'SELECT count(pg_advisory_lock(i)) FROM generate_series(1, 10000000) AS i', extra_params => [ '-U', 'app' ]),
		qr/ERROR:  53200: out of shared memory/, 'the table of locks is full');
	# its locks go with its process, for which psql does not wait
	wait_until(sub { look_at($server, 'postgres', q(SELECT count(*) FROM pg_stat_activity WHERE usename = 'app')) eq '0' });
	return;
}

sub generates_ok
{
	my ($server, $name) = @_;

	is($server->safe_psql('postgres', 'SELECT scru64_generate() >= scru64_watermark()'), 't', $name);
	return;
}

$node->restart;
fill_lock_table($node);
generates_ok($node, 'IDs and watermarks, all the same');

# The server makes its shared memory anew.
crash($node);
fill_lock_table($node);
generates_ok($node, 'after a crash, too');

fill_lock_table($standby);
$standby->promote;
generates_ok($standby, 'on a standby that is promoted, too');

$standby->stop;
$node->stop;
done_testing();
