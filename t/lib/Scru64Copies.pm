# A server with the extension that was stopped, and its copies, which may be standbys of another; and rows
# with IDs.

package Scru64Copies;

use strict;
use warnings;

use Exporter 'import';
use Scru64Clock;
use Scru64Server;
use Scru64Test;

our @EXPORT = qw($give_sql add_standby catch_up copy_server give leave_behind make_template);

# For create_extension(): a table for IDs, and functions that put IDs into it and return them
our $give_sql = q(
CREATE TABLE ids (n bigserial, node text, id scru64);

CREATE FUNCTION give(spec text, count integer) RETURNS SETOF scru64
LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('scru64.node_spec', true) IS DISTINCT FROM spec THEN
		PERFORM set_config('scru64.node_spec', spec, false);
	END IF;
	RETURN QUERY INSERT INTO ids (node, id) SELECT spec, g FROM scru64_generate(count) g
		RETURNING id;
END
$$;

-- IDs until the node is as far ahead of the clock as it may be
CREATE FUNCTION make_busy(spec text) RETURNS SETOF scru64
LANGUAGE plpgsql AS $$
BEGIN
	LOOP
		RETURN QUERY SELECT give(spec, 8);
		EXIT WHEN (SELECT lead > current_setting('scru64.rollback_allowance')::interval - interval '0.6 s'
				   FROM scru64_generators() WHERE node_id || '/' || node_id_size = spec);
	END LOOP;
END
$$;

-- the nodes whose rows have an ID twice, or out of order
CREATE FUNCTION wrong_nodes() RETURNS text
LANGUAGE sql AS $$
	SELECT coalesce(string_agg(DISTINCT node, ' '), '')
	FROM (SELECT node, id <= lag(id) OVER (PARTITION BY node ORDER BY n) AS wrong FROM ids) i
	WHERE wrong
$$;
);

# A server with the extension that was stopped, from which others are made: cheaper
# than a base backup, and each may be a standby of another.
sub make_template
{
	my ($name, %params) = @_;
	my $node = new_node($name, %params);

	$node->append_conf(
		'postgresql.conf', qq(
wal_keep_size = 256MB
bgwriter_delay = 10s
max_prepared_transactions = 10
restart_after_crash = on
)) if $params{allows_streaming};
	start_server($node);
	create_extension($node, $give_sql);
	$node->stop;
	$node->backup_fs_cold('cold');
	return $node;
}

# A server from a backup, with a clock and lines in its configuration if it is to have them, not started.
sub copy_server
{
	my ($from, $name, %params) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init_from_backup($from, $params{backup} || 'cold');
	set_clock($node, $params{clock}) if defined $params{clock};
	$node->append_conf('postgresql.conf', $params{lines}) if defined $params{lines};
	return $node;
}

# The same, and it is a standby that follows another server.
sub add_standby
{
	my ($from, $primary, $name, %params) = @_;
	my $node = copy_server($from, $name, %params);

	$node->enable_streaming($primary);
	start_server($node);
	return $node;
}

# Wait until standbys have replayed all WAL that the primary has flushed: they get no other.  The
# WAL writer of a server whose clock stands still writes WAL, and does not flush it.
sub catch_up
{
	my ($primary, @standbys) = @_;
	my $lsn = $primary->lsn('flush');

	foreach my $standby (@standbys)
	{
		$standby->poll_query_until('postgres', "SELECT pg_last_wal_replay_lsn() >= '$lsn'")
		  or die $standby->name . ' does not catch up';
	}
	return;
}

# A standby has what there is, and gets nothing from here on.
sub leave_behind
{
	my ($primary, $standby) = @_;

	catch_up($primary, $standby);
	$standby->safe_psql('postgres', "ALTER SYSTEM SET primary_conninfo = ''; SELECT pg_reload_conf()");
	$primary->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM pg_stat_replication WHERE application_name = '" . $standby->name . "'")
	  or die $standby->name . ' still follows';
	return;
}

# IDs of a node, as rows of the table.
sub give
{
	my ($node, $spec, $count) = @_;

	return split(/\n/, $node->safe_psql('postgres', "SELECT give('$spec', $count)"));
}

1;
