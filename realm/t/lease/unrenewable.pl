# A lease that the realm does not know any more, as after a failover that has lost it: the
# server uses it to its end and goes over to another one, and no session notices.  What is
# asked for again is the same or another request.  And a realm that is another one.

use strict;
use warnings;
use Scru64Clock;
use Scru64Copies;
use Scru64Lease;
use Scru64Server;
use Scru64Test;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;

my $template = make_template('template', allows_streaming => 1);
my $realm = make_realm($template, 'realm', clock => '+0');
# what the servers ask for
$realm->safe_psql('postgres', "ALTER ROLE fleet SET log_statement = 'all'");

# Have a server's lease forgotten; the node stays occupied.
sub forget
{
	my ($server) = @_;

	$realm->safe_psql('realm', "UPDATE scru64_realm.ledger SET lease_id = gen_random_uuid() WHERE released_at IS NULL AND holder = '" . $server->name . "'");
	$server->reload;
	return;
}

# How often the realm was asked so.
sub asked
{
	my ($function) = @_;

	return scalar(logged($realm, " scru64_realm\\.$function\\(.*\\\$"));
}

sub log_has_once
{
	my ($server, $pattern, $name) = @_;

	is(scalar(logged($server, $pattern)), 1, $name) or note(join("\n", logged($server, 'LOG:  .*(lease|node|realm)')));
	return;
}

#
# A lease is unknown, and there is another one at once
#
{
	my $server = fleet_server($template, 'unknown', fleet_lines($realm) . $preload);
	my $node = wait_for_lease($server);
	my $releases = asked('release');

	# at most one new lease in ten seconds
	sleep(10);
	begin_load($server, 1);
	begin_streams($server, 1000, 4, 1);
	sleep(1);
	forget($server);
	my $other = wait_until(sub { my $now = lease_of($server); $now ne $node && $now });
	isnt($other, '', 'an unknown lease: another one');
	ok_streams('an unknown lease');
	end_loads_ok('', 'no error of any client');
	is(lease_sql($server, 'state, failures'), 'held|0', 'all is well');
	log_has_once($server, qr/LOG:  the lease of node \Q$node\E is not renewed any more: lease is not active/, 'the log says that it is unknown');
	log_has_once($server, qr/LOG:  the node of this server is \Q$other\E now, and was \Q$node\E: its lease was not renewed any more/, 'and that the server has gone over');
	is(asked('release') - $releases, 0, 'no release was sent');
	ok_ids($realm, 'an unknown lease');
	$server->stop;
}

#
# The realm grants no other one for a while
#
{
	my $server = fleet_server($template, 'refused', fleet_lines($realm) . $preload);
	my $node = wait_for_lease($server);

	sleep(10);
	begin_streams($server, 200, 14, 1);
	my $refuse = 'REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA scru64_realm FROM fleet; GRANT EXECUTE ON FUNCTION scru64_realm.realm_id(), scru64_realm.renew, scru64_realm.release TO fleet';
	$realm->safe_psql('realm', $refuse);
	my $releases = asked('release');
	forget($server);
	ok(wait_until(sub { lease_sql($server, "state = 'held, not renewed' AND last_error LIKE '%permission denied%'") eq 't' }), 'no other lease is granted: scru64_lease()');
	my $renewals = asked('renew');
	my $leases = asked('lease');
	is(lease_of($server), $node, 'the node stays');
	$server->reload;
	ok(wait_until(sub { asked('lease') > $leases }), 'it is tried again');
	log_has_once($server, qr/LOG:  the lease of node \Q$node\E is not renewed any more/, 'the log says once that it is unknown');
	log_has_once($server, qr/LOG:  this server has not acquired another lease: permission denied/, 'and that there is no other');
	ok_streams('no other lease');

	is(asked('renew') - $renewals, 0, 'it was not renewed any more');
	is(asked('release') - $releases, 0, 'nor released');

	begin_streams($server, 200, 6, 1);
	$realm->safe_psql('realm', "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA scru64_realm TO fleet");
	$server->reload;
	ok(wait_until(sub { lease_sql($server, "state = 'held' AND failures = 0") eq 't' }), 'granted again: another one');
	ok_streams('granted again');
	$realm->safe_psql('realm', $refuse);
	forget($server);
	ok(wait_until(sub { lease_sql($server, "state = 'held, not renewed' AND last_error LIKE '%permission denied%'") eq 't' }), 'and unknown once more');
	$server->stop;
	is(asked('release') - $releases, 0, 'a stop does not release what is unknown');
	$realm->safe_psql('realm', 'GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA scru64_realm TO fleet');
}

#
# What the realm grants begins ahead of the server's clock
#
SKIP:
{
	skip 'no clock can be set', 1 if !can_set_clock();
	my $server = fleet_server($template, 'not_ahead', fleet_lines($realm, lease_ttl => '60s') . $preload);
	my $node = wait_for_lease($server);
	my $granted = "SELECT count(*), count(released_at) FROM scru64_realm.ledger WHERE holder = 'not_ahead' AND granted_at > now() + '1 h'";

	sleep(10);
	begin_streams($server, 200, 15, 1);
	set_clock($realm, '+7200');
	$server->reload;
	like(wait_until(sub { lease_sql($server, 'last_error') }), qr/its lease begins ahead of this server's clock/, 'a realm whose clock is ahead: it does not go over');
	is(lease_of($server), $node, 'the node stays');
	is(lease_sql($server, "state, next_attempt_at > now()"), 'held, not renewed|t', 'scru64_lease()');
	set_clock($realm, '+0');
	is($realm->safe_psql('realm', $granted), '1|1', 'what was granted is released');
	ok(wait_until(sub { lease_sql($server, "state = 'held' AND failures = 0") eq 't' }), 'the clock is right: another lease');
	ok_streams('a realm whose clock is ahead');
	$server->stop;
}

#
# A request that may have been granted is repeated as it was made, or not at all
#
{
	my $server = fleet_server($template, 'repeats', fleet_lines($realm, lease_holder => 'one'));
	# request => what it was made with => how often
	my $requests = sub {
		my %requests;

		foreach my $line (logged($realm, qr/DETAIL: .*[Pp]arameters: .*\$2 = '(one|two)'/))
		{
			my ($params, $request) = $line =~ /(\$1 = .*), \$5 = '([0-9a-f-]{36})'/ or die "not understood: $line";
			$requests{$request}{$params}++;
		}
		return %requests;
	};
	# as long as the realm waits for a standby, no answer is a good one
	my $wait_for = sub {
		my ($condition) = @_;

		return wait_until(sub {
			try_generate($server, "SET statement_timeout = '100 ms'; ");
			$realm->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = 'fleet' AND wait_event = 'SyncRep'");
			return $condition->($requests->());
		});
	};
	my $expected = 1;

	configure_server($realm, "synchronous_standby_names = 'nobody'\n");
	ok($wait_for->(sub { my %requests = @_; return grep { grep { $_ > 1 } values %{$_} } values %requests; }),
		'the answer is lost: the request is repeated');
	foreach my $line ("lease_holder = 'two'", "lease_ttl = '2h'", "lease_node_id_size = 11", "lease_within = '1/2'")
	{
		configure_server($server, "scru64.$line\n");
		$expected++;
		ok($wait_for->(sub { my %requests = @_; return keys %requests == $expected; }), "$line: another request");
	}
	configure_server($realm, "synchronous_standby_names = ''\n");
	isnt(wait_for_lease($server), '', 'a lease');
	my %requests = $requests->();
	is(scalar(grep { keys %{$_} > 1 } values %requests), 0, 'none is repeated but as it was made');
	is(scalar(keys %requests), $expected, 'nor is there another one without need');
	$server->stop;
	$realm->safe_psql('realm', "UPDATE scru64_realm.ledger SET holder = 'repeats' WHERE holder IN ('one', 'two')");
}
ok_ids($realm, 'all');

#
# Another realm in place of the one that was met
#
{
	my $server = fleet_server($template, 'met', fleet_lines($realm, lease_ttl => '10s') . $preload);
	my $node = wait_for_lease($server);
	my $met = $realm->safe_psql('realm', 'SELECT scru64_realm.realm_id()');

	# the worker does not see that for a while there is none
	signal_server($server, 'STOP');
	$realm->safe_psql('realm', 'DROP EXTENSION scru64_realm; CREATE EXTENSION scru64_realm; GRANT USAGE ON SCHEMA scru64_realm TO fleet; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA scru64_realm TO fleet');
	my $other = $realm->safe_psql('realm', 'SELECT scru64_realm.realm_id()');
	signal_server($server, 'CONT');
	$server->reload;
	like(wait_until(sub { lease_sql($server, 'last_error') }), qr/this is realm $other, and not $met/, 'another realm: scru64_lease()');
	like(slurp_file($server->logfile), qr/this is realm $other, and not $met.*\n.*DETAIL.*\n.*HINT:  .*DROP EXTENSION.*wait until the lease is over/, 'the log says what to do');
	isnt((try_generate($server))[0], '', 'the lease goes on');
	is(lease_of($server), $node, 'with its node');
	ok(wait_until(sub { try_generate($server); $realm->safe_psql('realm', "SELECT count(*) FROM scru64_realm.leases WHERE holder = 'met'") eq 1 }), 'when it is over, the other one is taken');
	is(lease_sql($server, 'state, failures'), 'held|0', 'and all is well');
	isnt((try_generate($server))[0], '', 'there are IDs');
	is(scalar(logged($server, 'was (not )?released')), 0, 'the old lease was not released to it');

	# but not if the setting names one
	configure_server($server, "scru64.realm_id = '$met'\n");
	like(wait_until(sub { lease_sql($server, 'last_error') }), qr/this is realm $other, and not $met/, 'one that is set is the only one');
	configure_server($server, "scru64.realm_id = '$other'\n");
	isnt(wait_for_lease($server), '', 'until another one is set');
	$server->stop;
}
done_testing();
