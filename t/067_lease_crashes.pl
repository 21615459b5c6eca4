# Servers that crash again and again, and a realm's own server that is one of the fleet:
# no ID twice, and no more leases than crashes, whose nodes come back.  And what a copy of a
# server that is up gives away of its lease, which is nothing.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use File::Find;
use Scru64Fault;
use Scru64Lease;
use Scru64Test;

my $crashes = $ENV{SCRU64_CRASHES} || 20;
my $template = make_template('template', allows_streaming => 1);
my $realm = make_realm($template, 'realm');
$realm->safe_psql('realm', "SELECT scru64_realm.set_guard('0 s', true)");

# A password, and a file that it is in
my $passfile = $realm->basedir . '/passfile';
$realm->safe_psql('postgres', "SET log_statement = 'none'; ALTER ROLE fleet PASSWORD '$password'");
replace_file($realm->data_dir . '/pg_hba.conf', "local all fleet scram-sha-256\n" . read_file($realm->data_dir . '/pg_hba.conf'));
replace_file($passfile, "*:*:*:fleet:$password\n");
chmod(0600, $passfile);

# All have the same lines, the realm's own server, too, and are preloaded.
my $lines = $preload
  . fleet_lines($realm,
	lease_ttl => '10s',
	lease_within => '0/5',
	realm => 'host=' . $realm->host . ' port=' . $realm->port . " dbname=realm user=fleet passfile=$passfile");
my @servers = ($realm, map { copy_server($template, "server_$_") } 1 .. 3);
$_->append_conf('postgresql.conf', $lines) foreach (@servers);
$realm->stop;
start_server($_) foreach (@servers);
ok(wait_until(15, sub { lease_of($_) }), $_->name . ' has a lease, preloaded') foreach (@servers);
is(scalar(keys %{ { map { lease_of($_) => 1 } @servers } }), 4, 'each its own, three servers and the realm with the same lines');
begin_load($_, 1) foreach (@servers);

#
# Secrets: in a copy of a server that is up, its log, and what others see
#
{
	my $server = $servers[1];
	wait_until(10, sub { (try_generate($server))[0] });
	$server->backup('hot');
	my @ids = split(/\n/, $realm->safe_psql('realm', 'SELECT lease_id FROM scru64_realm.ledger'));
	my @secrets = ($password, map { my $hex = $_; $hex =~ s/-//g; ($_, $hex, pack('H*', $hex)) } @ids);
	my (@found, %seen);
	my $look = sub {
		my ($where, $text) = @_;
		push @found, "$_ in $where" foreach (grep { index($text, $_) >= 0 } @secrets);
	};

	find({ no_chdir => 1, wanted => sub { $look->($_, read_file($_)) if -f $_ } }, $server->backup_dir . '/hot');
	$look->('the log', read_file($server->logfile));
	$server->safe_psql('postgres', 'CREATE ROLE monitor LOGIN IN ROLE pg_monitor; CREATE ROLE other LOGIN');
	foreach my $role ('postgres', 'monitor', 'other')
	{
		foreach my $view ('scru64_lease', 'scru64_generators', 'pg_stat_activity', 'pg_settings', 'pg_file_settings', 'scru64_node_spec()')
		{
			my ($rc, $out, $err) = $server->psql('postgres', "SELECT v::text FROM $view v", extra_params => [ '-U', $role ]);
			$look->("$view of $role", "$out$err");
			$seen{$role} .= " $view" if $rc == 0 && $out ne '' && $out ne '()';
		}
	}
	cmp_ok(scalar(@secrets), '>', 12, 'there are secrets');
	is(join(', ', @found), '', 'no lease_id and no password in a base backup, the log, and what any role sees');
	is($seen{other}, ' pg_stat_activity pg_settings scru64_node_spec()', 'what others see at all');
}

#
# Crashes
#
my $server = $servers[2];
my $before = $realm->safe_psql('realm', "SELECT count(*) FROM scru64_realm.ledger WHERE holder = 'server_2'");
my $began = time();
foreach my $crash (1 .. $crashes)
{
	my $how = ('kill -9', 'immediate', 'kill -9', 'fast')[ $crash % 4 ];

	if ($how eq 'kill -9') { kill_server($server); }
	else { $server->stop($how); }
	start_server($server);
	wait_until(15, sub { (try_generate($server))[0] }) or fail("no ID after $how");
}
note(sprintf('%d crashes in %.1f s', $crashes, time() - $began));
my $leases = $realm->safe_psql('realm', "SELECT count(*) FROM scru64_realm.ledger WHERE holder = 'server_2'");
cmp_ok($leases, '<=', $before + $crashes, "$crashes crashes cost no more leases: $leases");
# the last ones are of now, and the server's
my $count = sub { return $realm->safe_psql('realm', "SELECT count(*) FROM scru64_realm.leases WHERE holder = 'server_2'"); };
# ten seconds, and as much as a node may be ahead
ok(wait_until(25, sub { $count->() == 1 }), 'they come back when their leases are over');
end_loads();
ok_ids($realm, 'crashes', 1000);
done_testing();
