# Rules of leases one by one, by a worker on a server, with clocks that are set: for how long leases are
# asked for, when they are renewed, replaced and released, what a crash leaves, and a realm that was promoted
# and has lost some.  realm/t/lease/stopped.pl has the lease that another worker resumes.

use strict;
use warnings;
use Scru64Clock;
use Scru64Copies;
use Scru64Lease;
use Scru64Server;
use Scru64Test;

plan skip_all => 'no clock can be set' if !can_set_clock();

my $template = make_template('template', allows_streaming => 1);
my $realm = make_realm($template, 'realm', clock => '+0');
$realm->safe_psql('realm', "SELECT scru64_realm.set_guard('0 s', true)");
# what the servers ask for
$realm->safe_psql('postgres', "ALTER ROLE fleet SET log_statement = 'all'");

#
# How long a lease is asked for, however old it is, and when it is renewed.  A reload has
# it renewed at once.
#
{
	my $server = fleet_server($template, 'asks', fleet_lines($realm, lease_ttl => '20min') . $preload);
	my $asked = sub {
		return map { /\$\d = '(\d+):(\d+):(\d+)'/ ? $1 * 3600 + $2 * 60 + $3 : () } logged($realm, 'DETAIL: .*[Pp]arameters: ');
	};
	my @fractions;

	# no session asks for an ID, which could have the lease renewed once more
	isnt(wait_until(sub { lease_of($server) }), '', 'a lease');
	foreach my $n (1 .. 4)
	{
		my $renewed = lease_sql($server, 'renewed_at');

		$server->reload;
		wait_until(sub { lease_sql($server, "renewed_at > '$renewed' AND next_attempt_at > now() + '10 s'") eq 't' });
		# scru64_lease() shows it by the server's clock, which is the realm's here
		push @fractions, lease_sql($server, "3 * extract(epoch FROM next_attempt_at - renewed_at) / least(1200, extract(epoch FROM expires_at - renewed_at) - 10)");
	}
	# each time with the rollback allowance of 10 s, and a second, on top
	is(join(' ', $asked->()), join(' ', (1211) x 5), 'the lease and each renewal: for the setting');
	is(join(' ', grep { $_ < 0.89 || $_ > 1.11 } @fractions), '', 'the next one is after a third, give or take a tenth');
	my ($least, @more) = sort { $a <=> $b } @fractions;
	cmp_ok($more[-1] - $least, '>', 0.005, 'not always after the same part: ' . join(' ', map { sprintf('%.3f', $_) } @fractions));
	# a realm's clock that was set back costs nobody a lease
	my $node = lease_of($server);
	my $renewed = lease_sql($server, 'renewed_at');
	set_clock($realm, '-1800');
	$server->reload;
	ok(wait_until(sub { lease_sql($server, "renewed_at > '$renewed' AND worker_pid IS NOT NULL AND next_attempt_at > now()") eq 't' }), "a realm's clock is set back: the lease is renewed");
	# a new one might be had every ten seconds
	sleep(10);
	isnt((try_generate($server))[0], '', 'and there are IDs');
	is(lease_of($server), $node, 'of the same node');
	# nor is a day that is left asked for
	$renewed = lease_sql($server, 'renewed_at');
	set_clock($realm, '-86400');
	configure_server($server, "scru64.lease_node_id_size = 11\n");
	wait_until(sub { lease_sql($server, "renewed_at > '$renewed'") eq 't' });
	is(join(' ', grep { $_ > 1211 } $asked->()), '', 'nor is a lease of another size asked for longer than that');
	set_clock($realm, '+0');
	$server->stop;
}

#
# What a crash of a process leaves of a lease, as a restart does: nothing.  The server has another
# one, and the realm leases the first node to nobody before the lease is over.
#
{
	my $server = fleet_server($template, 'crashes', fleet_lines($realm) . $preload, clock => '+0');
	my $node = wait_for_lease($server);

	begin_load($server, 1);
	my ($before) = try_generate($server);
	crash($server);
	my $other = wait_for_lease($server);
	ok($other ne '' && $other ne $node, "a crash: another node, $node, $other");
	cmp_ok((try_generate($server))[0], 'gt', $before, 'whose IDs are later');
	is($realm->safe_psql('realm', "SELECT count(*), count(released_at), count(*) FILTER (WHERE occupied_until > scru64_realm.clock()) FROM scru64_realm.ledger WHERE holder = 'crashes'"),
		'2|0|2', 'the first one is not released, and occupied');
	end_loads();

	my $behind = fleet_server($template, 'behind', fleet_lines($realm) . $preload, clock => '-3600');
	ok(wait_until(sub { lease_of($behind) }), 'a server whose clock is behind has a lease');
	like((try_generate($behind))[1], qr/ERROR:  58000: the clock is too far behind/, 'and no ID');
	# The ceiling is farther ahead of the clock than an ID may be: a configured node has it there.
	my $ahead = fleet_server($template, 'ahead', fleet_lines($realm) . $preload, clock => '+0');
	wait_for_lease($ahead);
	set_clock($ahead, '+100');
	$ahead->safe_psql('postgres', "SET scru64.node_spec = '1001/10'; SELECT scru64_generate()");
	set_clock($ahead, '+0');
	crash($ahead);
	ok(wait_until(sub { (try_generate($ahead))[0] =~ /^\w{12}$/ }), 'a ceiling that is far ahead: another node gives IDs all the same');
	is(scalar(logged($ahead, 'IDs and the watermark of this server go back')), 1, 'and the log says so');
	$_->stop foreach ($server, $behind, $ahead);
}

#
# A realm's asynchronous standby is promoted.  It knows the lease of one server, and not
# that of another.
#
{
	my $standby = add_standby($template, $realm, 'realm_2', clock => '+0');
	my $lines = fleet_lines($realm,
		realm => sprintf('host=%s,%s port=%s,%s dbname=realm user=fleet target_session_attrs=read-write',
			(map { $_->host } $realm, $standby), (map { $_->port } $realm, $standby)));
	my $known = fleet_server($template, 'known', $lines . $preload);
	my $node = wait_for_lease($known);
	leave_behind($realm, $standby);
	# in a half of its own: the owner of the realm will not tell the truth
	my $lost = fleet_server($template, 'lost', $lines . "scru64.lease_within = '1/1'\n" . $preload);
	my $node_lost = wait_for_lease($lost);
	begin_load($_, 1) foreach ($known, $lost);
	sleep(0.5);
	$realm->stop('immediate');
	$standby->promote;
	my $expires = lease_sql($known, 'expires_at');
	my $fresh = fleet_server($template, 'fresh', $lines . $preload);

	my $waits = qr/realm grants no new lease until \d{4}-\d\d-\d\d \S+/;
	like(last_error($fresh, $waits), $waits, 'a promoted realm: a server that starts hears until when there is no lease');
	like(lease_sql($fresh, 'last_error'), $waits, 'so does scru64_lease()');
	is(scalar(logged($fresh, "has not acquired.*$waits")), 1, 'and the log, once');
	$_->reload foreach ($known, $lost);
	ok(wait_until(sub { $standby->safe_psql('realm', "SELECT expires_at > '$expires' FROM scru64_realm.leases WHERE node = '$node'") eq 't' }),
		'renewals go on');
	like(lease_sql($known, 'node_spec, state, failures'), qr{^\Q$node\E\|held\|0$}, 'the server has not noticed');
	like(last_error($lost, $waits), $waits, 'a lease that it does not know is not renewed');
	isnt((try_generate($lost))[0], '', 'and is used to its end');
	isnt((try_generate($known))[0], '', 'IDs where it is known');
	$standby->safe_psql('realm', 'SELECT scru64_realm.nothing_was_lost()');
	my $said = time();
	$_->reload foreach ($fresh, $lost);
	# by itself it would grant them after 161 s
	ok(wait_until(sub { try_generate($_); lease_sql($_, "state = 'held' AND failures = 0") eq 't' }) && time() - $said < 155, 'its owner says that nothing was lost: ' . $_->name . ' has a lease') foreach ($fresh, $lost);
	is(lease_of($known), $node, 'and the other one its own');
	end_loads();
	start_server($realm);
	ok_ids([ $realm, $standby ], 'all of them', 1000);
	$_->stop foreach ($known, $lost, $fresh);
}

#
# A lease that is over before its time, by no crash and with all clocks right: the IDs of the next
# one are above the last one's, which are ahead of the clock.  Sessions wait for the next one.
#
foreach my $case ([ 'ordered', '' ], [ 'ordered_preloaded', $preload ])
{
	my ($name, $lines) = @{$case};
	my $server = fleet_server($template, $name, fleet_lines($realm) . $lines, clock => '+0');
	my $node = wait_for_lease($server);
	# has the node issue so many IDs that it is ahead of the clock, and its lease end; then there is an ID
	my $ok_next = sub {
		my ($what, $end) = @_;
		my $last = $server->safe_psql('postgres', 'SELECT max(id) FROM scru64_generate(100000) AS id');

		$end->($last);
		my ($id, $err) = try_generate($server);
		is($err, '', "$name, $what: a session waits for the next lease");
		# perhaps of the same node: there is no guard time here
		cmp_ok($id, 'gt', $last, "$name, $what: the next ID is greater");
		$node = lease_of($server);
		return;
	};

	ok(wait_until(sub {
		look_at($server, 'postgres', "SELECT clock_timestamp() > backend_start + '6 s' FROM pg_stat_activity WHERE backend_type = 'scru64 lease worker'") eq 't'
	}), "$name: a worker has run for some seconds");
	$ok_next->('the worker is told to end', sub {
		$server->safe_psql('postgres', 'SELECT pg_terminate_backend(worker_pid) FROM scru64_lease()');
		wait_until(sub { lease_sql($server, 'worker_pid IS NULL') eq 't' });
		is(lease_sql($server, 'next_attempt_at <= clock_timestamp()'), 't', "$name: the next worker need not wait");
	});
	$ok_next->('the block is changed', sub {
		configure_server($server, "scru64.lease_within = '1/1'\n");
		wait_until(sub { lease_sql($server, 'node_id_size IS NULL OR node_spec <> $$' . $node . '$$') eq 't' });
	});
	$ok_next->('there is no realm for a while', sub {
		my ($last) = @_;

		configure_server($server, "scru64.realm = ''\n");
		wait_until(sub { lease_of($server) eq '' });
		ok(wait_until(sub { look_at($realm, 'realm', "SELECT released_at IS NOT NULL AND last_id = '$last' FROM scru64_realm.ledger WHERE holder = '$name' ORDER BY granted_at DESC LIMIT 1") eq 't' }),
			"$name: the lease is released, with its last ID");
		configure_server($server, fleet_lines($realm));
		wait_until(sub { look_at($server, 'postgres', 'SHOW scru64.realm') ne '' });
	});
	$server->stop;
}

#
# Another name
#
{
	# A cluster_name of 63 bytes, 252 characters since PostgreSQL 16
	my $long = fleet_server($template, "\xe2\x98\x83" x 21, fleet_lines($realm) . $preload);

	isnt(wait_for_lease($long), '', 'a long cluster_name: a lease');
	is(lease_sql($long, 'holder = left(current_setting($$cluster_name$$), 200)'), 't', 'cut, where the realm has a limit');
	$long->stop;

	my $server = fleet_server($template, 'named', fleet_lines($realm) . $preload);
	my $node = wait_for_lease($server);
	my $another = 'x' x 200;

	# and its realm, in other letters
	configure_server($server, "scru64.lease_holder = '$another'\nscru64.realm_id = '" . uc($realm->safe_psql('realm', 'SELECT scru64_realm.realm_id()')) . "'\n");
	ok(wait_until(sub { lease_sql($server, 'holder') eq $another }), 'another name is shown');
	is(lease_of($server), $node, 'the lease goes on');
	is($realm->safe_psql('realm', "SELECT holder FROM scru64_realm.leases WHERE node = '$node'"), 'named', 'the realm has the old name');
	$server->restart;
	wait_for_lease($server);
	is($realm->safe_psql('realm', "SELECT holder FROM scru64_realm.leases WHERE node = '" . lease_of($server) . "'"), $another, 'until the next lease');
	$server->stop;
}
done_testing();
