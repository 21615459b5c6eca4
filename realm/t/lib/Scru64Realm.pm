# Realms that fail over, and holders of leases: what each was promised, whatever became of
# the realm that promised it, and whether two were promised the same.

package Scru64Realm;

use strict;
use warnings;

use Exporter 'import';
use Scru64Clock;
use Scru64Copies;
use Scru64Server;
use Scru64Test;

our @EXPORT = qw(
	$granted $not_active $not_free $waits $zero add_realm_standby ask at end_window grow lease lease_statement
	make_realm_template ok_apart ok_from ok_promised_once overlaps promoted_copy realm_of_template renew somebody_else
	start_realm windows_of
);

#
# Questions and answers
#

our $granted = qr/^[0-9a-f-]{36}\|/;
our $not_active = qr/ERROR:  55000: lease is not active/;
our $not_free = qr/ERROR:  55006: node .* is not free/;
our $waits = qr/ERROR:  55000: realm grants no new lease until /;

# Columns of an answer: the ticks after which and up to which there are IDs, and times
# in seconds since 1970.
my $of_window = q(scru64_realm_internal.tick(granted_at), scru64_realm_internal.tick(expires_at),
	extract(epoch FROM granted_at), extract(epoch FROM expires_at));

sub arguments
{
	my (%named) = @_;

	return join('', map { defined $named{$_} ? ", $_ => '$named{$_}'" : '' } sort keys %named);
}

# lease_id, the first node_ctr value and the one after the last, and those columns.
sub lease_statement
{
	my ($size, $holder, %named) = @_;

	return "SELECT lease_id, node_id << (24 - node_id_size), (node_id + 1) << (24 - node_id_size), $of_window
FROM scru64_realm.lease($size, '$holder'" . arguments(%named) . '), scru64_parse_node_spec(node_spec)';
}

sub renew_statement
{
	my ($lease_id, %named) = @_;

	return "SELECT $of_window FROM scru64_realm.renew('$lease_id'" . arguments(%named) . ')';
}

# The answer to a question, or the error.
sub ask
{
	my ($node, $sql) = @_;
	my ($ret, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql");

	return $ret == 0 ? $out : $err;
}

#
# What holders were promised
#
# A window has the node_ctr values from lo to just below hi, and IDs of ticks after
# start, up to limit.  The limit is the end that was reported last, and no less than
# before.  A holder that has reported its last ID has none after that.
#

my @windows;

sub new_window
{
	my ($name, $lo, $hi, $start, $limit) = @_;

	push @windows, { name => $name, lo => $lo, hi => $hi, start => $start, limit => $limit };
	return $windows[-1];
}

sub raise_limit
{
	my ($window, $limit) = @_;

	$window->{limit} = $limit if $limit > $window->{limit};
	return;
}

sub end_window
{
	my ($window, $tick) = @_;

	$window->{limit} = $tick if $tick < $window->{limit};
	return;
}

# Pairs of windows that have IDs in common, at most five.
sub overlaps
{
	my (@windows) = @_;
	my (@open, @found);

	foreach my $next (sort { $a->{start} <=> $b->{start} } grep { $_->{start} < $_->{limit} } @windows)
	{
		@open = grep { $_->{limit} > $next->{start} } @open;
		push @found, map {
			sprintf('%s and %s: node_ctr values %d to %d and %d to %d, after %s to %s and %s to %s',
				$_->{name}, $next->{name},
				map({ ($_->{lo}, $_->{hi} - 1) } $_, $next), map({ ($_->{start}, $_->{limit}) } $_, $next))
		} grep { $_->{lo} < $next->{hi} && $next->{lo} < $_->{hi} } @open;
		push @open, $next;
	}
	splice(@found, 5) if @found > 5;
	return join("\n", @found);
}

# Windows out of a query with these five columns
sub windows_of
{
	my ($node, $sql) = @_;
	my @rows = map { [ split(/\|/) ] } split(/\n/, $node->safe_psql('postgres', $sql));

	return map { my %window; @window{qw(name lo hi start limit)} = @{$_}; \%window } @rows;
}

sub ok_apart
{
	my ($name, @windows) = @_;

	is(overlaps(@windows), '', "no two have IDs in common $name");
	return;
}

# No ID was promised twice, in so many leases, which are then forgotten.
sub ok_promised_once
{
	my ($least, $name) = @_;

	$name = defined $name ? "$name: " : '';
	is(overlaps(@windows), '', "${name}no ID was promised twice");
	cmp_ok(scalar(@windows), '>=', $least, $name . scalar(@windows) . ' leases');
	@windows = ();
	return;
}

#
# Realms whose clocks stand still
#
# Times are seconds, so that a test takes the same turns on any machine.
#

# since 1970, and within 31 bits, which is all that some machines have
our $zero = 2_000_000_000;

my $template;

# A server with a realm, which is stopped.  Others are made from it.
sub make_realm_template
{
	$template = make_template('template', allows_streaming => 1);
	start_server($template);
	$template->safe_psql('postgres', 'CREATE EXTENSION scru64_realm');
	$template->stop;
	$template->backup_fs_cold('realm');
	return;
}

sub at
{
	my ($seconds, @nodes) = @_;

	stop_clock($_, $zero + $seconds) foreach (@nodes);
	return;
}

# A copy of it, which is not started.
sub realm_of_template
{
	my ($name, %params) = @_;

	return copy_server($template, $name, backup => 'realm', %params);
}

# A realm in which nothing has happened, at -5000.
sub start_realm
{
	my ($name) = @_;
	my $realm = realm_of_template($name);

	at(-5000, $realm);
	start_server($realm);
	return $realm;
}

sub add_realm_standby
{
	my ($primary, $name) = @_;
	my $standby = realm_of_template($name);

	at(-5000, $standby);
	$standby->enable_streaming($primary);
	start_server($standby);
	return $standby;
}

# What a standby of a realm that is stopped would be, if it had got all that there is,
# once it is promoted.
sub promoted_copy
{
	my ($realm, $name, $seconds) = @_;

	$realm->backup_fs_cold($name);
	my $copy = copy_server($realm, $name, backup => $name, clock => '+0');
	at($seconds, $copy);
	append_to_file($copy->data_dir . '/standby.signal', '');
	start_server($copy);
	$copy->promote;
	return $copy;
}

# A lease of 8 bits that is granted.
sub lease
{
	my ($node, $holder, %named) = @_;
	my $answer = ask($node, lease_statement(8, $holder, %named));
	my ($id, $lo, $hi, $start, $limit, undef, $expires) = split(/\|/, $answer);

	die "no lease for $holder: $answer" if $answer !~ $granted;
	return {
		id => $id,
		node_id => $lo >> 16,
		expires => $expires - $zero,
		window => new_window($holder, $lo, $hi, $start, $limit)
	};
}

# A renewal: until when, or the error.
sub renew
{
	my ($node, $lease, %named) = @_;
	my $answer = ask($node, renew_statement($lease->{id}, %named));
	my (undef, $limit, undef, $expires) = split(/\|/, $answer);

	return $answer if $answer !~ /^[0-9]/;
	raise_limit($lease->{window}, $limit);
	$lease->{expires} = $expires - $zero;
	return $lease->{expires};
}

# Keep a lease until a time, as it grows.
sub grow
{
	my ($node, $lease, $until) = @_;

	while ($lease->{expires} < $until)
	{
		my $now = $lease->{expires} - 1;

		at($now, $node);
		renew($node, $lease, ttl => ($until - $now) . ' s');
	}
	return;
}

# What somebody else gets who asks for any node, or for this one.
sub somebody_else
{
	my ($node, $node_id) = @_;

	return ask($node, lease_statement(8, 'somebody else', node_id => $node_id) . "; DELETE FROM scru64_realm.ledger WHERE holder = 'somebody else'");
}

# Nobody is granted any node, or this one, before a time; from then on it is granted,
# and who is granted this one has it.
sub ok_from
{
	my ($node, $seconds, $name, $node_id) = @_;

	at($seconds - 1, $node);
	like(somebody_else($node, $node_id), qr/ERROR:  55/, "$name: not before $seconds s");
	at($seconds, $node);
	like(somebody_else($node, $node_id), $granted, "$name: from $seconds s on");
	lease($node, "$name, next", node_id => $node_id) if defined $node_id;
	return;
}

1;
