# More nodes on one server than there are slots for: nodes lose their slots and
# come back, and still no ID is issued twice and none too early.

use FindBin;
use lib $FindBin::RealBin;
use Scru64Test;

my $slots = 128;
my $nodes = 1024;
my $holders = 160;

my $node = new_node('main');
$node->append_conf('postgresql.conf', 'max_connections = 200');
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION scru64');
add_helpers($node);

# began and ended are moments of one order for the whole server: a batch that
# ended before another began has the smaller IDs, whichever session had them.
$node->safe_psql(
	'postgres', q(
CREATE SEQUENCE moments;
CREATE UNLOGGED TABLE ids (node integer, began bigint, n bigint, id scru64, ended bigint);
CREATE UNLOGGED TABLE watched (rows bigint, nodes bigint, wrong bigint);

-- insert IDs of a node; its spec is set only if the session has another one
CREATE FUNCTION give(node integer, count integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
	spec text := node || '/10';
	began bigint;
	given scru64[];
	ended bigint;
BEGIN
	IF current_setting('scru64.node_spec', true) IS DISTINCT FROM spec THEN
		PERFORM set_config('scru64.node_spec', spec, false);
	END IF;
	began := nextval('moments');
	given := ARRAY(SELECT scru64_generate(count));
	ended := nextval('moments');
	INSERT INTO ids
	SELECT node, began, g.n, g.id, ended
	FROM unnest(given) WITH ORDINALITY AS g (id, n);
END
$$;

CREATE FUNCTION watch() RETURNS void LANGUAGE sql AS $$
	INSERT INTO watched
	SELECT count(*), count(DISTINCT (node_id, node_id_size)),
		count(*) FILTER (WHERE scru64_node_ctr(last_id) >> 14 <> node_id
						 OR node_id_size <> 10)
	FROM scru64_generators;
$$;

-- IDs of another node, IDs that are not in order in their batch, and batches
-- with an ID at or below one of a batch of that node that had ended before
CREATE FUNCTION check_ids(OUT ids bigint, OUT different bigint, OUT foreign_ids bigint,
						  OUT disorder bigint, OUT early bigint)
LANGUAGE sql AS $$
	SELECT count(*), count(DISTINCT id),
		count(*) FILTER (WHERE scru64_node_ctr(id) >> 14 <> node),
		count(*) FILTER (WHERE id <= previous),
		(SELECT count(*) FILTER (WHERE least <= known)
		 FROM (SELECT least, max(greatest) OVER (PARTITION BY node ORDER BY moment) AS known
			   FROM (SELECT node, began AS moment, min(id) AS least, NULL::scru64 AS greatest
					 FROM ids GROUP BY node, began
					 UNION ALL
					 SELECT node, ended, NULL, max(id)
					 FROM ids GROUP BY node, ended) batches) known_ids)
	FROM (SELECT *, lag(id) OVER (PARTITION BY node, began ORDER BY n) AS previous
		  FROM ids) i;
$$;
));

sub check_ids
{
	my ($name, $count) = @_;

	is($node->safe_psql('postgres', 'SELECT * FROM check_ids()'),
		"$count|$count|0|0|0", $name);
	return;
}

# Every node issues IDs at least once.
$node->safe_psql('postgres',
	"SELECT give(g, 20) FROM generate_series(0, $nodes - 1) g");
check_ids('one session goes through all nodes', $nodes * 20);
is($node->safe_psql('postgres', 'SELECT count(*) FROM scru64_generators'),
	$slots, 'all slots are taken');

# Sessions switch nodes all the time, in random order.  Half of the time they
# choose from few enough nodes to come back soon.
$node->pgbench(
	'--no-vacuum --client=8 --jobs=2 --transactions=1500',
	0,
	[qr{processed: 12000/12000}],
	[qr{^$}],
	'8 sessions switch between nodes',
	{
		'switch_all@5' =>
		  "\\set node random(0, $nodes - 1)\nSELECT give(:node, 50)",
		'switch_some@5' =>
		  "\\set node random(0, $holders - 1)\nSELECT give(:node, 50)",
		'watch_switch@1' => 'SELECT watch()'
	});
my $switches = $node->safe_psql('postgres',
	"SELECT count(DISTINCT began) - $nodes FROM ids");
cmp_ok($switches, '>', 10000, 'nodes were switched');
check_ids('no ID twice or out of order, whichever node a session turns to',
	$nodes * 20 + $switches * 50);

is( $node->safe_psql(
		'postgres', q(
SELECT count(*) > 100, max(rows), count(*) FILTER (WHERE nodes <> rows), sum(wrong)
FROM watched
)),
	"t|$slots|0|0",
	'the view never showed more nodes than there are slots, nor one twice');

$node->stop;
done_testing();
