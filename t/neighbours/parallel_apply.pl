# Logical replication's parallel apply workers, from PostgreSQL 16 on, are no workers of a parallel
# query: their defaults and triggers generate IDs.

use strict;
use warnings;
use Scru64Test;

my ($publisher, $subscriber) = map { new_node($_, allows_streaming => 'logical') } ('publisher', 'subscriber');

plan skip_all => 'no parallel apply before PostgreSQL 16' if $publisher->pg_version < 16;

# the least: so that the transaction below is streamed before it is committed
$publisher->append_conf('postgresql.conf', "logical_decoding_work_mem = '64kB'\n");
$publisher->start;
$publisher->safe_psql('postgres', 'CREATE TABLE event (n integer, what text); CREATE PUBLICATION event FOR TABLE event');

$subscriber->append_conf('postgresql.conf', "scru64.node_spec = '2/8'\nmax_parallel_apply_workers_per_subscription = 2\n");
$subscriber->start;
$subscriber->safe_psql('postgres', q(
CREATE EXTENSION scru64;
CREATE TABLE event (n integer, what text, received scru64 DEFAULT scru64_generate());
CREATE TABLE noted (id scru64, n integer, process text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO public.noted SELECT scru64_generate(), NEW.n, backend_type FROM pg_stat_activity WHERE pid = pg_backend_pid();
	RETURN NULL;
END
$$;
CREATE TRIGGER note AFTER INSERT ON event FOR EACH ROW EXECUTE FUNCTION note();
ALTER TABLE event ENABLE ALWAYS TRIGGER note;
));
# There is no parallel apply before all tables are ready: without an initial copy they are at once.
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION event CONNECTION '" . $publisher->connstr . q( dbname=postgres'
PUBLICATION event WITH (streaming = parallel, copy_data = false)));
$publisher->safe_psql('postgres', "INSERT INTO event SELECT n, repeat('x', 1000) FROM generate_series(1, 500) AS n");
$publisher->wait_for_catchup('event');

is($subscriber->safe_psql('postgres', 'SELECT process, count(*) FROM noted GROUP BY process'),
	'logical replication parallel worker|500', 'a parallel apply worker has inserted the rows');
is( $subscriber->safe_psql('postgres', q(
SELECT count(*), count(DISTINCT id), min(scru64_node_ctr(id) >> 16), max(scru64_node_ctr(id) >> 16)
FROM (SELECT received AS id FROM event UNION ALL SELECT id FROM noted) AS ids)),
	'1000|1000|2|2', 'with IDs of its node, by a default and by a trigger');
ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 500 FROM noted WHERE id < scru64_watermark()'),
	'the watermark is above the rows');
is($subscriber->safe_psql('postgres', 'SELECT count(*) FROM scru64_transactions()'), '0', 'and nothing holds it back');

$_->stop foreach ($subscriber, $publisher);
done_testing();
