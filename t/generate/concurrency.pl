# Many sessions generate IDs of one node at once: no ID twice, and every ID
# greater than all that were known when it was asked for.

use strict;
use warnings;
use Scru64Test;

my $node = new_node('main');
$node->append_conf('postgresql.conf', "scru64.node_spec = '1/1'");
$node->start;

# before and after are the clock when the ID was asked for and when it was there
create_extension($node, q(
CREATE UNLOGGED TABLE ids (
	session integer,
	n integer,
	before timestamptz,
	id scru64,
	after timestamptz
);

-- rows, IDs, and pairs of IDs that are not in their session's order
CREATE FUNCTION count_ids(OUT ids bigint, OUT different bigint, OUT disorder bigint)
LANGUAGE sql AS $$
	SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE id <= previous)
	FROM (SELECT id, lag(id) OVER (PARTITION BY session ORDER BY n) AS previous
		  FROM ids) i;
$$;

-- how often the next ID in order is another session's
CREATE FUNCTION count_turns() RETURNS bigint LANGUAGE sql AS $$
	SELECT count(*) FILTER (WHERE session <> previous)
	FROM (SELECT session, lag(session) OVER (ORDER BY id) AS previous
		  FROM ids) i;
$$;
));

# Let 16 sessions insert IDs at the same time.
sub run_sessions
{
	my ($name, $statements, $rows) = @_;

	return pgbench_ok($node, $name, 16, $statements, { "insert_$statements" => q(
INSERT INTO ids
SELECT :client_id, :n + g, clock_timestamp(), scru64_generate(), clock_timestamp()
FROM generate_series(1, :rows) g;
\set n :n + :rows
) }, '--define=n=0', "--define=rows=$rows");
}

# A tick has room for all of these IDs.
run_sessions('16 sessions insert 100,000 IDs each', 100, 1000);
is($node->safe_psql('postgres', 'SELECT *, count_turns() > 100 FROM count_ids()'),
	'1600000|1600000|0|t', 'no ID twice, every session has its IDs in order, and they took turns');
is($node->safe_psql('postgres', q(
SELECT count(*) FILTER (WHERE scru64_node_ctr(id) >> 23 <> 1),
	count(*) FILTER (WHERE tick_of(id) < tick_of(before - interval '20 ms')),
	count(*) FILTER (WHERE tick_of(id) > tick_of(after))
FROM ids
)),
	'0|0|0', 'all IDs have the bits of the node and the time of the clock');

# A tick has room for 4,096 IDs: the counter overflows, and the IDs run ahead.
set_parameter($node, 'scru64.node_spec', '0x2bc/12');
$node->safe_psql('postgres', 'TRUNCATE ids');
run_sessions('16 sessions insert 5,000 IDs each', 10, 500);
is($node->safe_psql('postgres', 'SELECT *, count_turns() > 100 FROM count_ids()'),
	'80000|80000|0|t', 'no ID twice, every session has its IDs in order, and they took turns, with overflows');
is($node->safe_psql('postgres', q(
SELECT count(*) FILTER (WHERE scru64_node_ctr(id) >> 12 <> x'2bc'::integer),
	count(*) FILTER (WHERE tick_of(id) < tick_of(before - interval '20 ms')),
	count(*) FILTER (WHERE tick_of(id) > tick_of(after) + 10000 / 256),
	count(*) FILTER (WHERE tick_of(id) > tick_of(after)) > 0
FROM ids
)),
	'0|0|0|t', 'IDs run ahead of the clock, by no more than the allowance');
is($node->safe_psql('postgres', q(
SELECT node_id, node_id_size, last_id = (SELECT max(id) FROM ids),
	counter_overflows > 0, clock_rollbacks
FROM scru64_generators() WHERE node_id_size = 12
)),
	'700|12|t|t|0', 'the last ID is shown, and the overflows are counted');

# Sessions hand over to each other: who has the baton generates an ID after the
# one before was committed.  In between, the same sessions generate others.
$node->safe_psql('postgres', q(
CREATE TABLE baton (id scru64);
INSERT INTO baton VALUES (scru64_generate());
CREATE TABLE handovers (n bigserial, session integer, previous scru64, id scru64);

CREATE FUNCTION hand_over(session integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	previous_id scru64;
	next_id scru64;
BEGIN
	SELECT id INTO previous_id FROM baton FOR UPDATE;
	next_id := scru64_generate();
	UPDATE baton SET id = next_id;
	INSERT INTO handovers (session, previous, id)
	VALUES (session, previous_id, next_id);
END
$$;
));
pgbench_ok($node, '4 sessions hand over to each other', 4, 2000, {
		'hand_over@3' => q(SELECT hand_over(:client_id)),
		'others@1' => q(SELECT count(*) FROM scru64_generate(20))
	});
is($node->safe_psql('postgres', q(
SELECT count(*) FILTER (WHERE id <= previous),
	count(*) FILTER (WHERE id <= earlier),
	count(*) > 4000,
	count(*) FILTER (WHERE session <> earlier_session) > 100
FROM (SELECT *, lag(id) OVER (ORDER BY n) AS earlier,
		  lag(session) OVER (ORDER BY n) AS earlier_session
	  FROM handovers) h
)),
	'0|0|t|t', 'IDs are in commit order');

$node->stop;
done_testing();
