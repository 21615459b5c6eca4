# A realm that answers as no realm does, or not at all: the server lives on, and gives out
# no ID but those of leases that were granted well; whoever has a lease goes on with it;
# the view says what is wrong; and the server stops when it is told to.
#
# SCRU64_ONLY: of which names of answers, a regular expression.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Scru64FakeRealm;
use Scru64Fault;
use Scru64Lease;
use Scru64Test;
use Test::More;
use Time::HiRes qw(sleep time);

# Generous, for a busy machine.  What must not happen takes longer, or never ends: the
# worker would wait for 15 s for an answer.
my $soon = 30;
my $stop_soon = 12;
my $only = $ENV{SCRU64_ONLY} || '.';

my $template = make_template('template');
my $fake = Scru64FakeRealm->new;
my $round = 0;
my $within = '0/1';
my $server = fleet_server($template, 'server', $preload . lines('first'));
my $log_read = 0;
my $session;
my $is_gone = 0;
my %ids;

sub lines
{
	my ($name) = @_;

	return "scru64.realm = '" . $fake->connstr($name) . "'\nscru64.lease_ttl = '1h'\nscru64.lease_node_id_size = 12\n"
	  . "scru64.lease_node_id_size_min = 12\nscru64.lease_within = '$within'\nrestart_after_crash = on\n";
}

# The session that lives through it all, if the server does.
sub ask
{
	my ($sql) = @_;
	my ($out, $err) = eval { try_statement($session, $sql) };

	$is_gone = 1 if !defined $out;
	return defined $out ? ($out, $err) : ('', 'the session is gone');
}

# Wait for something, but not when that session is gone.
sub in_time
{
	my ($code) = @_;
	my $end = time() + $soon;

	while (time() < $end && !$is_gone)
	{
		my $result = $code->();
		return $result if $result && !$is_gone;
		sleep(0.02);
	}
	return '';
}

sub look
{
	my ($columns) = @_;

	return (ask("SELECT $columns FROM scru64_lease"))[0];
}

# IDs, for as long as they may take.
sub generate
{
	my ($out, $err) = ask("SET statement_timeout = '3 s'; SELECT scru64_generate(); RESET statement_timeout");

	$ids{$_} = 1 foreach ($out =~ /^([0-9a-z]{12})$/mg);
	return $out =~ /^[0-9a-z]{12}$/m ? 'an ID' : $err;
}

sub begin_session
{
	eval { $session->quit if defined $session; };
	$server->poll_query_until('postgres', 'SELECT true') or die 'the server does not come back';
	$session = open_session($server);
	$is_gone = 0;
	return;
}

# What the log says of crashes since the last time.
sub crashes
{
	my $text = substr(read_file($server->logfile), $log_read);

	$log_read += length($text);
	return $text =~ /((?:was terminated by|PANIC|TRAP|all server processes terminated)[^\n]*)/ ? $1 : '';
}

# Try at once, under a new name; and release the lease, if that is asked for.
sub poke
{
	my (%params) = @_;
	my $name = 'round' . ++$round;

	$within = $within eq '0/1' ? '1/1' : '0/1' if $params{release};
	$server->append_conf('postgresql.conf', lines($name));
	$server->reload;
	return $name;
}

# Have a good lease.
sub have_lease
{
	$fake->answers;
	for my $attempt (1 .. 3)
	{
		my $name = poke(release => 1);
		return 1 if in_time(sub { look("node_spec <> '' AND failures = 0") eq 't' && $fake->events('lease', $name) });
		begin_session();
	}
	return 0;
}

sub worker_memory
{
	my $pid = look('worker_pid');

	return 0 if !$pid || !-e "/proc/$pid/status";
	return read_file("/proc/$pid/status") =~ /VmHWM:\s+(\d+) kB/ ? $1 : 0;
}

# Is this a text for an operator?
sub text_problems
{
	my ($text) = @_;

	return $text =~ /^[\x20-\x7e]{8,275}$/ ? () : "the text is \"$text\"";
}

# One answer to one call.  Returns what is wrong.
sub problems_of
{
	my ($call, $name) = @_;
	my @problems;
	my $window = look('node_spec, granted_at, expires_at');
	my $renewed = look("coalesce(renewed_at, '-infinity')");
	my $log_before = length(read_file($server->logfile));
	my $failure;

	$fake->answers($call => $name);
	my $poked = poke($call eq 'lease' || $call eq 'release' ? (release => 1) : ());
	if ($call eq 'release')
	{
		# under the name of where the lease is from
		$failure = in_time(sub { ask('SELECT 1'); substr(read_file($server->logfile), $log_before) =~ /was (not returned:? ?[^\n]*)/ ? $1 : '' });
		push @problems, 'the lease was returned' if !$failure;
		in_time(sub { look("node_spec <> ''") eq 't' }) || push(@problems, 'no new lease');
	}
	else
	{
		in_time(sub { $fake->events($call, $poked) }) || push(@problems, 'it was not asked');
		my $held = $window =~ /^\d/ ? "renewed_at > '$renewed'" : 'node_spec IS NOT NULL';
		my $taken = in_time(sub { look("CASE WHEN failures > 0 THEN 'failed' WHEN $held THEN 'taken' ELSE '' END") });
		push @problems, 'no failure in the view' if $taken eq '';
		push @problems, 'it was taken for a good one' if $taken eq 'taken';
		$failure = look('last_error');
		my $window_now = look('node_spec, granted_at, expires_at');
		push @problems, "the lease was $window, and is $window_now" if $window_now ne $window;
		my $generated = generate();
		push @problems, "generation: $generated" if $window =~ /^\d/ ? $generated ne 'an ID' : $generated !~ /ERROR:  55000: /;
	}
	push @problems, text_problems($failure) if $failure;
	my $crash = crashes();
	if (grep { /^(it was not asked|no failure in the view|no new lease)$/ } @problems)
	{
		# it hangs: have another one for the next answer
		kill('KILL', look('worker_pid') || ());
		sleep(0.5);
	}
	if ($crash ne '' || (ask('SELECT 1'))[0] ne '1')
	{
		# again and again, else
		$fake->answers;
		unshift @problems, "CRASH: $crash";
		begin_session();
		have_lease();
	}
	note("$call: $name: " . ($failure || ''));
	return @problems;
}

sub try_answers
{
	my ($call, @names) = @_;

	foreach my $name (grep { /$only/ } sort @names)
	{
		if ($call ne 'lease' && look('node_spec') eq '')
		{
			begin_session() if (ask('SELECT 1'))[0] ne '1';
			have_lease() || diag("no lease before $call: $name");
		}
		is(join('; ', problems_of($call, $name)), '', "$call: $name");
	}
	return;
}

begin_session();
ok(in_time(sub { look("node_spec <> ''") eq 't' }), 'a fake realm gives a lease');
is(generate(), 'an ID', 'and there are IDs');
my $backend = (ask('SELECT pg_backend_pid()'))[0];
have_lease();

#
# Bad answers while there is a lease, and to its release
#
try_answers('startup', keys %bad_startups);
try_answers('realm_id', keys %bad_answers, keys %bad_realm_ids);
# the first two are what they say
try_answers('renew', keys %bad_answers, keys %bad_renewals);
try_answers('release', keys %bad_answers);

#
# And while there is none
#
$fake->answers('realm_id' => 'no rows');
poke(release => 1);
in_time(sub { look('node_spec') eq '' });
try_answers('lease', keys %bad_answers, keys %bad_leases);
is(generate() =~ /ERROR:  55000: this server has no lease/ ? '' : 'one', '', 'no lease, no ID');
have_lease();

#
# Odd, but good
#
foreach my $name (grep { /$only/ } sort keys %odd_answers)
{
	my %odd = map { $_ => $name } qw(realm_id lease renew);

	foreach my $call (qw(lease renew))
	{
		$fake->answers(%odd);
		my $poked = poke($call eq 'lease' ? (release => 1) : ());
		ok(in_time(sub { $fake->events($call, $poked) && look("state = 'held' AND failures = 0") eq 't' }), "odd, but good: $call: $name");
		is(generate(), 'an ID', 'and there are IDs');
	}
}

#
# Answers that do not end: they are given up, and the worker does not grow
#
have_lease();
my $memory = worker_memory();
cmp_ok($memory, '>', 1000, "the worker's memory: $memory kB");
foreach my $call (qw(realm_id renew))
{
	foreach my $name (grep { /$only/ } sort keys %endless_answers)
	{
		$fake->answers($call => "$name without end");
		my $poked = poke();
		my $pid = look('worker_pid');

		ok(in_time(sub { $fake->events($call, $poked) }), "$name without end to $call: it was asked");
		is(generate(), 'an ID', 'meanwhile there are IDs');
		sleep(1.5);
		cmp_ok(worker_memory() - $memory, '<', 100_000, sprintf('the worker has not grown, %.1f MB', (worker_memory() - $memory) / 1000));
		is(look('worker_pid'), $pid, 'and is the same');
		is(crashes(), '', 'no crash');
		$fake->answers;
		poke();
		ok(in_time(sub { look("state = 'held' AND failures = 0") eq 't' }), 'it goes on at once when told to');
		# another worker, for another memory
		if (worker_memory() - $memory >= 100_000)
		{
			ask('SELECT pg_terminate_backend(worker_pid) FROM scru64_lease');
			in_time(sub { look("node_spec <> '' AND worker_pid <> $pid") eq 't' });
		}
	}
}
is((ask('SELECT pg_backend_pid()'))[0], $backend, 'a session has lived through all of it');

#
# Silence, and rows without end: the server stops
#
sub stops
{
	my ($name) = @_;
	my $began = time();
	local $ENV{PGCTLTIMEOUT} = 40;

	eval { $session->quit; };
	$session = undef;
	my $stopped = $server->stop('fast', fail_ok => 1);
	my $took = time() - $began;
	ok($stopped && $took < $stop_soon, sprintf('%s: the server stops, in %.2f s', $name, $took));
	$server->stop('immediate', fail_ok => 1) if !$stopped;
	is(crashes(), '', "$name: no crash");
	return;
}

stops('all is well');
foreach my $call (qw(connect startup realm_id lease renew release))
{
	my @names = map { "silence after $_" } sort keys %{ $silences{$call} };

	push @names, map { "$_ without end" } ('rows', 'notices', 'COPY responses', 'parameters') if $call =~ /realm_id|renew|release/;
	push @names, 'COPY in', 'COPY both' if $call =~ /lease|renew|release/;
	push @names, 'parameters without end', 'notices without end', 'authentication without end' if $call eq 'startup';
	foreach my $name (grep { /$only/ } @names)
	{
		my $label = "$call: $name";

		# begin with a lease, but for what is asked without one
		$fake->answers($call eq 'lease' ? (lease => $name) : ());
		start_server($server);
		begin_session();
		if ($call ne 'lease')
		{
			in_time(sub { look("state = 'held'") eq 't' }) || diag("no lease before $label");
			$fake->answers($call => $name);
		}
		my $poked = poke();
		my $reached = $call eq 'release' || in_time(sub {
			return $call eq 'connect' ? $fake->events('connect') > 0 && look("state = 'held'") eq 't' : $fake->events($call, $poked);
		});
		ok($reached, "$label: it was asked");
		sleep(0.1);
		is(generate(), 'an ID', "$label: meanwhile there are IDs") if $call ne 'lease' && $call ne 'release';
		stops($label);
	}
}
$fake->answers;
start_server($server);
begin_session();

#
# A host that drops what it gets, before a good one
#
SKIP:
{
	my ($port, $kept) = fill_backlog();
	skip 'no backlog can be filled here', 4 if !defined $port;
	my $set = sub {
		my ($hosts, $ports) = @_;
		$server->append_conf('postgresql.conf',
			"scru64.realm = 'host=$hosts port=$ports dbname=realm user=fleet sslmode=disable gssencmode=disable application_name=dropping'\n");
	};

	$server->stop('fast');
	$set->('127.0.0.1,' . $fake->dir, "$port," . $fake->port);
	start_server($server);
	my $began = time();
	begin_load($server, 3);
	my $node = wait_for_lease($server, 45);
	isnt($node, '', sprintf('a host that drops what it gets is first, and sessions ask: a lease, after %.1f s', time() - $began));
	end_loads();
	# now only that one: the worker waits for it
	begin_session();
	$set->('127.0.0.1', $port);
	$server->reload;
	begin_load($server, 3);
	sleep(1);
	stops('a host that drops what it gets');
	end_loads();
	@{$kept} = ();
}

#
# A host that accepts, and gives no usable answer, before a good one: it is not asked
# first the next time
#
{
	my $zombie = Scru64FakeRealm->new;
	$zombie->answers(lease => 'hanging up before the columns', renew => 'hanging up before the columns');
	$server->append_conf('postgresql.conf', lines('zombie')
		  . "scru64.realm = 'host=" . $zombie->dir . ',' . $fake->dir . ' port=' . $zombie->port . ',' . $fake->port
		  . " dbname=realm user=fleet sslmode=disable gssencmode=disable application_name=zombie'\n");
	start_server($server);
	begin_session();
	isnt(wait_for_lease($server, 30), '', 'a host that gives no usable answer is first: a lease');
	cmp_ok(scalar($zombie->events('realm_id')), '<=', 2, 'after it was asked once or twice');
	my $asked = $zombie->events('realm_id');
	my $renewed = $fake->events('renew');
	# and stays with the good one
	foreach my $n (1 .. 3)
	{
		$server->append_conf('postgresql.conf', "scru64.lease_holder = 'renamed$n'\n");
		$server->reload;
		in_time(sub { $fake->events('renew') > $renewed + $n - 1 });
	}
	is(scalar($zombie->events('realm_id')), $asked, 'and is not asked again while the other one is good');
	$zombie->stop;
}

#
# A reload has it try at once, though no setting has changed
#
$server->append_conf('postgresql.conf', lines('reloads'));
$server->reload;
ok(in_time(sub { $fake->events('renew', 'reloads') && look("next_attempt_at > now() + interval '20 s'") eq 't' }), 'the next attempt is not soon');
my $renewals = $fake->events('renew', 'reloads');
$server->reload;
ok(in_time(sub { $fake->events('renew', 'reloads') > $renewals }), 'a reload has it renewed at once');

#
# While sessions fail, the pauses are short
#
$fake->answers(lease => 'an error before anything else');
poke(release => 1);
my $is_long = 0;
wait_until(
	180,
	sub {
		# a call makes the pause short, whenever it comes
		$is_long ||= !in_time(sub { generate(); look("failures = 0 OR next_attempt_at - last_error_at < '6 s'") eq 't' });
		return look('failures') >= 8;
	});
cmp_ok(look('failures'), '>=', 8, 'sessions fail, and it is tried again and again');
ok(!$is_long, 'after short pauses');

#
# All in all
#
my %windows = $fake->windows;
my @outside = grep {
	my $number = 0;
	$number = $number * 36 + ($_ ge 'a' ? ord($_) - ord('a') + 10 : $_) foreach (split(//, $_));
	my $window = $windows{ (($number & 0xffffff) >> 12) . '/12' };
	!defined $window || ($number >> 24) <= $window->[0] || ($number >> 24) > $window->[1];
} keys %ids;
cmp_ok(scalar(keys %ids), '>', 20, 'there are IDs: ' . scalar(keys %ids)) if $only eq '.';
is("@outside", '', 'none of them outside of a window that was granted well');
is(crashes(), '', 'no crash');
is(join("\n", $fake->events('died')), '', 'the fake realm has lived through it, too');
done_testing();
