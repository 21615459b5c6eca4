# What the tests of the watermark need: a table of rows, and whether the watermark is
# above an ID or has to stay below it.

package Scru64Watermark;

use strict;
use warnings;

use Exporter 'import';
use Scru64Test;

our @EXPORT = qw(add_events held_ok no_watermark_ok passes_ok put put_sql watermark);

# IDs as text sort as they do as IDs.
sub add_events
{
	my ($node) = @_;

	$node->safe_psql('postgres', q(
CREATE TABLE event (id scru64 PRIMARY KEY, n integer);

-- wait for whoever has this lock, but do not keep it
CREATE FUNCTION wait_for(lock integer) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_advisory_lock(lock);
	PERFORM pg_advisory_unlock(lock);
	RETURN true;
END
$$;
));
	return;
}

sub put_sql
{
	my ($n) = @_;

	return "INSERT INTO event VALUES (scru64_generate(), $n) RETURNING id";
}

# Put a row into the table, in a session that is open or, for a node, in one of its own.
sub put
{
	my ($session, $spec) = @_;

	return $session->query_safe(put_sql(0)) if !defined $spec;
	return $session->safe_psql('postgres', "SET scru64.node_spec = '$spec'; " . put_sql(0));
}

sub watermark
{
	my ($node) = @_;

	return $node->safe_psql('postgres', 'SELECT scru64_watermark()');
}

# The rows are, or soon will be, below the watermark.
sub passes_ok
{
	my ($node, $id, $name) = @_;

	return ok($node->poll_query_until('postgres',
			"SELECT '$id' < scru64_watermark() AND EXISTS (SELECT FROM event WHERE id >= '$id' AND id < scru64_watermark())"),
		$name);
}

# The watermark is at or below an ID, and stays there.
sub held_ok
{
	my ($node, $id, $name) = @_;
	my @watermarks = map { watermark($node) } (1 .. 3);

	return is(join(' ', grep { $_ gt $id } @watermarks), '', $name);
}

sub no_watermark_ok
{
	my ($node, $why, $name) = @_;
	return like(error_of($node, 'SELECT scru64_watermark()'), qr/ERROR:  55000: there is no watermark\n$why/, $name);
}

1;
