# 20,000 random requests to a realm, while its clock moves on, stands still, leaps
# and goes back. What came out is read by a model in this file that shares nothing
# with the extension: it looks for free blocks by trying them all. Then all leases
# that there ever were are looked at, those that were pruned, too: nobody was promised
# an ID that somebody else was.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use List::Util qw(max min);
use Scru64Random;
use Scru64Realm;
use Scru64Test;

my $requests = 20_000;
my $seed = seed_random();

my $node = new_node('main');
$node->start;
$node->safe_psql(
	'postgres', q(
CREATE EXTENSION scru64_realm CASCADE;
-- reached by leases of this test
UPDATE scru64_realm.settings SET max_ttl = '400 s', first_ttl = '100 s';

-- the realm's clock, in microseconds, is what this session says
CREATE OR REPLACE FUNCTION scru64_realm.clock() RETURNS timestamptz LANGUAGE sql VOLATILE
	RETURN to_timestamp(current_setting('test.us')::bigint / 1000000)
		+ current_setting('test.us')::bigint % 1000000 * interval '1 us';
-- many requests in one transaction
CREATE OR REPLACE FUNCTION scru64_realm_internal.keep_short() RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION us_of(timestamptz) RETURNS text LANGUAGE sql STABLE STRICT
	RETURN CASE WHEN isfinite($1) THEN (extract(epoch FROM $1) * 1000000)::bigint::text ELSE 'infinity' END;

CREATE FUNCTION shown(ttl interval) RETURNS text LANGUAGE sql IMMUTABLE
	RETURN CASE WHEN ttl IS NULL THEN '-' WHEN ttl < '1000 years' THEN extract(epoch FROM ttl)::bigint::text ELSE 'infinity' END;

CREATE TABLE log (n bigserial, line text);
-- leases that were granted, for requests to come
CREATE TABLE granted (n serial PRIMARY KEY, lease_id uuid, node_id integer, size integer);

CREATE FUNCTION pick(low integer, high integer) RETURNS integer LANGUAGE sql VOLATILE
	RETURN low + floor(random() * (high - low + 1))::integer;

-- what a holder could report as its last ID
CREATE FUNCTION some_id(node_id integer, size integer) RETURNS scru64 LANGUAGE sql VOLATILE
	RETURN scru64_from_parts(
		scru64_realm.clock() + pick(-40, 60) * interval '1 s',
		CASE WHEN random() < 0.9
			THEN (node_id << (24 - size)) + pick(0, (1 << (24 - size)) - 1)
			ELSE pick(0, 16777215) END);

CREATE FUNCTION request(count integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	what float8;
	args text;
	answer text;
	seconds integer;
	ttl interval;
	size integer;
	node_id integer;
	holder text;
	within text;
	within_size integer;
	last_id scru64;
	number integer;
	request uuid;
	target granted;
	known scru64_realm.ledger;
BEGIN
	FOR i IN 1 .. count LOOP
		what := random();
		PERFORM set_config('test.us', (current_setting('test.us')::bigint + CASE
			WHEN what < 0.02 THEN pick(-60000000, 0)
			WHEN what < 0.023 THEN pick(-900000000, 0)
			WHEN what < 0.04 THEN pick(0, 600000000)
			WHEN what < 0.2 THEN 0
			ELSE pick(0, 2000000) END)::text, false);
		what := random();
		size := pick(1, 23);
		seconds := pick(-2, 500);
		ttl := CASE pick(1, 200) WHEN 1 THEN interval '1000 years' WHEN 2 THEN NULL ELSE seconds * interval '1 s' END;
		number := (SELECT max(n) FROM granted);
		number := pick(greatest(1, number - 200), number);
		SELECT * INTO target FROM granted WHERE n = number;
		IF target.n IS NULL THEN
			what := 0.1;
		END IF;
		last_id := CASE WHEN random() < 0.7 THEN some_id(target.node_id, target.size) END;
		answer := '';

		IF what < 0.002 THEN
			seconds := greatest(seconds, 0) * pick(0, 40);
			args := format('prune %s', seconds);
			answer := scru64_realm.prune(seconds * interval '1 s');
		ELSIF what < 0.006 THEN
			args := format('revoke %s', target.lease_id);
			answer := scru64_realm.revoke(target.lease_id);
		ELSIF what < 0.01 THEN
			holder := (SELECT l.holder FROM scru64_realm.ledger AS l WHERE l.lease_id = target.lease_id);
			args := format('revoke %s', coalesce(holder, 'nobody'));
			answer := scru64_realm.revoke(coalesce(holder, 'nobody'));
		ELSIF what < 0.55 THEN
			-- a third are requests, of which a third are repeated
			request := CASE WHEN random() < 0.33 THEN gen_random_uuid() END;
			within_size := CASE WHEN random() < 0.2 THEN pick(1, least(size, 8)) END;
			within := pick(0, (1 << within_size) - 1) || '/' || within_size;
			node_id := CASE WHEN random() < 0.1 THEN pick(0, (1 << size) - 1) END;
			holder := 'holder_' || i / 3;
			SELECT * INTO known FROM scru64_realm.ledger AS l WHERE l.lease_id = target.lease_id;
			IF known.lease_id IS NOT NULL AND random() < 0.33 THEN
				-- as it was made, or not
				request := target.lease_id;
				what := random();
				size := CASE WHEN what < 0.95 THEN known.node_id_size ELSE size END;
				ttl := CASE WHEN what < 0.9 THEN known.ttl ELSE ttl END;
				within := CASE WHEN what < 0.85 THEN known.within ELSE within END;
				holder := CASE WHEN what < 0.8 THEN known.holder ELSE holder END;
				node_id := CASE WHEN what < 0.75 THEN NULL WHEN what < 0.9 THEN known.node_id ELSE node_id END;
			END IF;
			args := format('lease %s %s %s %s %s %s', size, shown(ttl), coalesce(node_id, -1), coalesce(within, '-'),
						   coalesce(request::text, '-'), holder);
			BEGIN
				SELECT format('%s,%s,%s,%s,%s', l.lease_id, l.node_spec, us_of(l.granted_at), us_of(l.expires_at), us_of(l.realm_clock))
				INTO answer
				FROM scru64_realm.lease(size, holder, ttl, node_id, within, request) AS l;
				INSERT INTO granted (lease_id, node_id, size)
				SELECT l.lease_id, l.node_id, l.node_id_size FROM scru64_realm.ledger AS l
				WHERE l.lease_id = split_part(answer, ',', 1)::uuid;
			EXCEPTION WHEN OTHERS THEN
				answer := SQLSTATE;
			END;
		ELSIF what < 0.75 THEN
			args := format('renew %s %s %s', target.lease_id, shown(ttl), coalesce(last_id::bigint, -1));
			BEGIN
				SELECT format('until,%s,%s,%s', us_of(r.expires_at), us_of(r.granted_at), us_of(r.realm_clock)) INTO answer
				FROM scru64_realm.renew(target.lease_id, ttl, last_id) AS r;
			EXCEPTION WHEN OTHERS THEN
				answer := SQLSTATE;
			END;
		ELSIF what < 0.9 THEN
			args := format('release %s %s', target.lease_id, coalesce(last_id::bigint, -1));
			BEGIN
				PERFORM scru64_realm.release(target.lease_id, last_id);
				answer := 'done';
			EXCEPTION WHEN OTHERS THEN
				answer := SQLSTATE;
			END;
		ELSE
			size := least(23, target.size + pick(0, 4));
			args := format('split %s %s %s', target.lease_id, size, coalesce(last_id::bigint, -1));
			BEGIN
				SELECT string_agg(format('%s,%s,%s,%s', s.lease_id, s.node_spec, us_of(s.granted_at), us_of(s.expires_at)), ' ')
				INTO answer
				FROM scru64_realm.split(target.lease_id, size, last_id) AS s;
				INSERT INTO granted (lease_id, node_id, size)
				SELECT l.lease_id, l.node_id, l.node_id_size FROM scru64_realm.ledger AS l
				WHERE l.parent = target.lease_id;
			EXCEPTION WHEN OTHERS THEN
				answer := SQLSTATE;
			END;
		END IF;
		INSERT INTO log (line) VALUES (current_setting('test.us') || ' ' || args || ' = ' || answer);
	END LOOP;
END
$$;
));

$node->safe_psql('postgres',
	"SELECT setseed($seed % 1000000 / 1000000.0);\nSET test.us = 1800000000000000;\n"
	  . "SELECT request(100);\n" x ($requests / 100));

# What the model finds, asked inside the database
is( $node->safe_psql(
		'postgres', q(
SELECT count(*) > 20,
	   count(*) FILTER (WHERE EXISTS (SELECT FROM scru64_realm.ledger AS b
									  WHERE a.occupied && b.occupied AND a.node_ctr_range && b.node_ctr_range
										AND a.lease_id <> b.lease_id))
FROM scru64_realm.ledger AS a;
)),
	't|0',
	'no two leases of one range at the same time, by the ledger');

my @log = split(/\n/, $node->safe_psql('postgres', 'SELECT line FROM log ORDER BY n'));
my $final = $node->safe_psql(
	'postgres', q(
SELECT lease_id, node_id, node_id_size, us_of(granted_at), us_of(coalesce(released_at, expires_at)),
	us_of(occupied_until), shown(ttl), coalesce(us_of(endless_since), '-'), coalesce(us_of(revoked_at), '-'), last_id::bigint
FROM scru64_realm.ledger ORDER BY lease_id));
$node->stop;

#
# The model
#

my $guard = 30_000_000;
my $max_ttl = 400_000_000;
my $first_ttl = 100_000_000;
my $hours = 12 * 3_600_000_000;
my $never = 9e18;
my %lease;		# by lease_id
my %pruned;		# the same
my $horizon = 0;	# their end
my @recent;		# those that may occupy their range still
my %of_node;	# leases of a node, by size and node_id
my %below;		# leases of a node and of all nodes in it
my %answers;	# how often each kind of answer was given
my @wrong;
my $read = 0;

sub range_of
{
	my ($node_id, $size) = @_;

	return ($node_id * 2**(24 - $size), ($node_id + 1) * 2**(24 - $size));
}

# The smallest free block of at least this size, then the first, among all blocks
# that are free and not part of a larger one; or nothing. What is found, and its
# size, is in @{$best}.
sub best_fit
{
	my ($best, $lo, $hi, $size, @taken) = @_;
	my $half = ($lo + $hi) / 2;

	# none can be better
	return if @{$best} && $best->[0] == $size;
	if (!@taken)
	{
		@{$best} = ($hi - $lo, $lo) if !@{$best} || $hi - $lo < $best->[0];
		return;
	}
	return if $hi - $lo <= $size || grep { $_->{lo} <= $lo && $_->{hi} >= $hi } @taken;
	best_fit($best, $lo, $half, $size, grep { $_->{lo} < $half } @taken);
	best_fit($best, $half, $hi, $size, grep { $_->{hi} > $half } @taken);
	return;
}

# All leases that have had a part of a node.
sub overlapping
{
	my ($lo, $size) = @_;
	my $key = sub { return "$_[0]/" . ($lo >> (24 - $_[0])) };

	return (map({ @{ $of_node{ $key->($_) } || [] } } 1 .. $size - 1), @{ $below{ $key->($size) } || [] });
}

# The spec that a lease has to have, and the ID that it continues after.
sub spec_of
{
	my ($granted, $lo, $size) = @_;

	return text_of((tick_of($granted) << 24) + $lo + 2**(24 - $size) - 1, $size);
}

sub tick_of
{
	my ($us) = @_;

	use integer;
	return $us / 256_000;
}

# The spec that continues after an ID, and the ID.
sub text_of
{
	my ($id, $size) = @_;
	my ($rest, $text) = ($id, '');

	foreach my $digit (1 .. 12)
	{
		use integer;
		$text = ('0' .. '9', 'a' .. 'z')[ $rest % 36 ] . $text;
		$rest /= 36;
	}
	return ("$text/$size", $id);
}

sub grant
{
	my ($id, $at, $lo, $size, $expires, $until, $asked) = @_;
	my ($spec, $last) = spec_of($at, $lo, $size);
	my $new = {
		lo => $lo, hi => $lo + 2**(24 - $size), size => $size, granted => $at, spec => $spec,
		expires => $expires, until => $until, last => $last, ended => undef, revoked => undef, %{$asked}
	};

	push @wrong, "lease $id was granted before" if exists $lease{$id};
	$lease{$id} = $new;
	push @recent, $new;
	push @{ $of_node{ "$size/" . ($lo >> (24 - $size)) } }, $new;
	push @{ $below{ "$_/" . ($lo >> (24 - $_)) } }, $new foreach (1 .. $size);
	return $spec;
}

sub shown
{
	my ($us) = @_;

	return $us >= $never ? 'infinity' : $us;
}

# What the last ID that a holder reports does to a request: an error, or what is
# known then.
sub check_last
{
	my ($at, $held, $last) = @_;
	my $ctr = $last & 0xffffff;

	return (undef, $held->{last}) if $last < 0;
	return '22023' if $ctr < $held->{lo} || $ctr >= $held->{hi};
	return '22023' if $held->{expires} < $never && ($last >> 24) > tick_of($held->{expires});
	return (undef, $last > $held->{last} ? $last : $held->{last});
}

# When the tick after an ID's begins
sub after
{
	my ($id) = @_;

	return (($id >> 24) + 1) * 256_000;
}

sub is_active
{
	my ($at, $held) = @_;

	return !defined $held->{ended} && $held->{expires} > $at;
}

# Does another lease have a part of it between these times?
sub conflicts
{
	my ($held, $until) = @_;

	return grep { $_ != $held && $_->{granted} < min($until, $_->{until}) && $held->{granted} < $_->{until} }
	  overlapping($held->{lo}, $held->{size});
}

# Until when a lease may be promised, and the end that is reported to its holder.
sub cap
{
	my ($at, $granted) = @_;

	return $at + min($max_ttl, max($first_ttl, $at - $granted));
}

sub reported
{
	my ($at, $held, $cap) = @_;

	return $held->{expires} if $held->{expires} < $never;
	$answers{'endless'}++;
	return $at > $held->{endless} + $max_ttl + $guard ? $never : $cap;
}

sub us_of
{
	my ($ttl) = @_;

	return $ttl eq '-' ? $max_ttl : $ttl eq 'infinity' ? $never : $ttl * 1_000_000;
}

sub expected_lease
{
	my ($at, $size, $ttl, $node_id, $within, $request, $holder, $answer) = @_;
	my $block = 2**(24 - $size);
	my ($lo, $hi) = $within eq '-' ? (0, 2**24) : range_of(split(qr{/}, $within));
	my ($wanted_lo, $wanted_hi) = $node_id >= 0 ? range_of($node_id, $size) : ($lo, $hi);

	return '22023' if $wanted_lo < $lo || $wanted_hi > $hi || us_of($ttl) <= 0 || $block > $hi - $lo;
	if (exists $lease{$request})
	{
		my $known = $lease{$request};

		return '55000' if !is_active($at, $known);
		return '22023'
		  if $known->{size} != $size
		  || $node_id >= 0 && $known->{lo} != $wanted_lo
		  || $known->{ttl} ne $ttl
		  || $known->{within} ne $within
		  || $known->{holder} ne $holder;
		$answers{'request repeated'}++;
		my $reported = $known->{expires} < $never ? $known->{expires} : cap($at, $at);
		return join(',', $request, $known->{spec}, $known->{granted}, $reported, $at);
	}
	return '55000' if $at < $horizon;
	my $reported = min(cap($at, $at), $at + us_of($ttl));
	my $expires = $ttl eq 'infinity' ? $never : $reported;
	my @taken = grep { $_->{until} > $at && $_->{granted} < min($_->{until}, $expires + $guard) } @recent;
	if ($node_id >= 0)
	{
		return '55006' if grep { $_->{lo} < $wanted_hi && $wanted_lo < $_->{hi} } @taken;
		$lo = $wanted_lo;
	}
	else
	{
		my @best;
		best_fit(\@best, $lo, $hi, $block, grep { $_->{lo} < $hi && $lo < $_->{hi} } @taken);
		return '53400' if !@best;
		$lo = $best[1];
	}
	my $id = $request eq '-' ? (split(/,/, $answer))[0] : $request;
	my $spec = grant($id, $at, $lo, $size, $expires, $expires + $guard,
		{ ttl => $ttl, within => $within, holder => $holder, endless => $ttl eq 'infinity' ? $at : undef });

	$answers{'lease before another'}++ if grep { $_->{granted} > $at } overlapping($lo, $size);
	return join(',', $id, $spec, $at, $reported, $at);
}

sub expected_renew
{
	my ($at, $id, $ttl, $last) = @_;
	my $held = $lease{$id};

	return '22023' if us_of($ttl) <= 0;
	return '55000' if !$held || !is_active($at, $held);
	my ($error, $known) = check_last($at, $held, $last);
	return $error if $error;
	return '55000' if defined $held->{revoked};
	my $cap = cap($at, $held->{granted});
	my $wanted = $ttl eq 'infinity' ? $never : min($cap, max($at, $held->{granted}) + us_of($ttl));
	my $expires = max($held->{expires}, $wanted);
	my $until = max($held->{until}, $wanted + $guard);
	return '55006' if conflicts($held, $until);
	$answers{'renew for less'}++ if $wanted < $held->{expires};
	$answers{'renew old'}++ if $expires > $at + $first_ttl && $expires < $never;
	$held->{endless} = $at if $expires == $never && !defined $held->{endless};
	@{$held}{qw(expires until last)} = ($expires, $until, $known);
	return join(',', 'until', shown(reported($at, $held, $cap)), $held->{granted}, $at);
}

sub expected_release
{
	my ($at, $id, $last) = @_;
	my $held = $lease{$id};

	return '55000' if !$held || !is_active($at, $held);
	my ($error, $known) = check_last($at, $held, $last);
	return $error if $error;
	my $ended = max($at, $held->{granted});
	my $until = min($held->{until}, max($ended + $guard, after($known)));
	$answers{'release ahead'}++ if $until > $ended + $guard;
	@{$held}{qw(ended until last)} = ($ended, $until, $known);
	return 'done';
}

sub expected_split
{
	my ($at, $id, $size, $last, $answer) = @_;
	my $held = $lease{$id};

	return '55000' if !$held || !is_active($at, $held);
	my ($error, $known) = check_last($at, $held, $last);
	return $error if $error;
	return '55000' if defined $held->{revoked};
	return '22023' if $size <= $held->{size};
	my $since = max($at, $held->{granted}, after($known));
	my $reported = reported($at, $held, cap($at, $held->{granted}));
	return '55000' if $since >= $reported;
	my $until = $held->{until};
	@{$held}{qw(ended until last)} = ($since, $since, $known);

	my @ids = map { (split(/,/))[0] } split(/ /, $answer);
	my @children;
	for (my $lo = $held->{lo}; $lo < $held->{hi}; $lo += 2**(24 - $size))
	{
		my $child = shift(@ids) || 'missing';
		my %asked = map { $_ => $held->{$_} } qw(ttl within holder endless);
		my $spec = grant($child, $since, $lo, $size, $held->{expires}, $until, { %asked, parent => $id });

		push @children, join(',', $child, $spec, $since, shown($reported));
	}
	return join(' ', @children);
}

sub expected_revoke
{
	my ($at, $whose) = @_;
	my @revoked = grep { is_active($at, $_) && !defined $_->{revoked} } grep { $_->{holder} eq $whose } values %lease;
	my @ids = ($whose);

	# or by its lease_id, with what it was split into
	while (defined(my $id = shift @ids))
	{
		push @revoked, grep { is_active($at, $_) && !defined $_->{revoked} } $lease{$id} || ();
		push @ids, grep { ($lease{$_}{parent} || '') eq $id } keys %lease;
	}
	$_->{revoked} = $at foreach (@revoked);
	return scalar(@revoked);
}

sub expected_prune
{
	my ($at, $age) = @_;
	my @ids = grep { $lease{$_}{until} <= $at - $age * 1_000_000 } keys %lease;

	foreach my $id (@ids)
	{
		my $gone = $pruned{$id} = delete $lease{$id};

		$horizon = max($horizon, $gone->{until});
		# others look for it here
		$gone->{is_pruned} = 1;
	}
	@recent = grep { !$_->{is_pruned} } @recent;
	foreach my $leases (values %of_node, values %below)
	{
		@{$leases} = grep { !$_->{is_pruned} } @{$leases};
	}
	return scalar(@ids);
}

my %expected = (
	lease => \&expected_lease,
	renew => \&expected_renew,
	release => \&expected_release,
	split => \&expected_split,
	revoke => \&expected_revoke,
	prune => \&expected_prune);

foreach my $line (@log)
{
	my ($at, $what, $args, $answer) = $line =~ /^(\d+) (\w+) (.*) = (.*)$/ or die "not a line of the log: $line";
	my $expected = $expected{$what}->($at, split(/ /, $args), $answer);

	push @wrong, "$line\n  expected $expected" if $expected ne $answer;
	$answers{ "$what " . ($answer =~ /^\w{5}$/ ? $answer : 'ok') }++;
	last if @wrong > 3;

	# further back than the clock goes
	@recent = grep { $_->{until} > $at - $hours } @recent if ++$read % 100 == 0;
}

is(scalar(@log), $requests, 'there is an answer to each request');
is(join("\n", @wrong), '', 'each is what it has to be');
note join(', ', map { "$_: $answers{$_}" } sort keys %answers);
cmp_ok($answers{$_} || 0, '>', $_ eq 'endless' ? 2 : 20, "there are some of: $_")
  foreach ('lease ok', 'lease 22023', 'lease 53400', 'lease 55000', 'lease 55006', 'lease before another',
	'endless', 'renew ok', 'renew 22023', 'renew 55000', 'renew for less', 'renew old', 'release ok', 'release 22023', 'release 55000',
	'release ahead', 'request repeated', 'split ok', 'split 22023', 'split 55000', 'prune ok', 'revoke ok');

# All leases of the log, also those that were pruned: the time in which nobody else
# may have the node, and the ticks that the IDs may be of.
my @all = (values %lease, values %pruned);
foreach my $lease (@all)
{
	$lease->{first_tick} = tick_of($lease->{granted}) + 1;
	$lease->{end_tick} = $lease->{until} >= $never ? $never : 1 + tick_of(defined $lease->{ended} ? $lease->{until} : $lease->{expires});
}
foreach my $span ([ 'times', 'granted', 'until' ], [ 'ticks', 'first_tick', 'end_tick' ])
{
	my ($what, $from, $to) = @{$span};

	ok_apart("by the answers: $what", map { { name => $_->{spec}, start => $_->{$from}, limit => $_->{$to}, lo => $_->{lo}, hi => $_->{hi} } } @all);
}

my %in_ledger = map { split(/\|/, $_, 2) } split(/\n/, $final);
my @differ;
foreach my $id (sort keys %lease)
{
	my $l = $lease{$id};
	my $expected = join('|',
		$l->{lo} / 2**(24 - $l->{size}),
		$l->{size}, $l->{granted}, map({ shown($_) } defined $l->{ended} ? $l->{ended} : $l->{expires}, $l->{until}),
		$l->{ttl}, map({ defined $_ ? $_ : '-' } $l->{endless}, $l->{revoked}), $l->{last});
	my $row = delete $in_ledger{$id} || '';

	push @differ, "$row, and not $expected" if $row ne $expected;
}
push @differ, values %in_ledger;
splice(@differ, 5) if @differ > 5;
is(join("\n", @differ), '', 'the ledger says what the model says');

done_testing();
