# COPY with IDs by DEFAULT inserts many rows at a time, as with nextval(): where it does is seen
# in the WAL.  And a COPY that is cancelled leaves nothing.

use strict;
use warnings;
use Scru64Test;

plan skip_all => 'there is no pg_waldump' if !has_program('pg_waldump');

my $node = new_node('main');
$node->append_conf('postgresql.conf', "scru64.node_spec = '1/1'");
$node->start;
create_extension($node, q(
CREATE SEQUENCE numbers;
CREATE DOMAIN made AS scru64 DEFAULT scru64_generate();
CREATE ROLE app;

CREATE TABLE by_nextval (id bigint DEFAULT nextval('numbers'), n integer);
CREATE TABLE by_default (id scru64 DEFAULT scru64_generate() PRIMARY KEY, n integer);
CREATE TABLE by_domain (id made, n integer);
CREATE TABLE by_expression (id bigint DEFAULT scru64_generate()::bigint, n integer);
CREATE TABLE beside_volatile (id scru64 DEFAULT scru64_generate(), chance float8 DEFAULT random(), n integer);
CREATE TABLE triggered (LIKE by_default INCLUDING DEFAULTS);
CREATE TABLE partitioned (LIKE by_default INCLUDING DEFAULTS) PARTITION BY HASH (n);
CREATE TABLE partition PARTITION OF partitioned FOR VALUES WITH (MODULUS 1, REMAINDER 0);
CREATE FUNCTION as_it_is() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER as_it_is BEFORE INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION as_it_is();
GRANT ALL ON ALL TABLES IN SCHEMA public TO app;
GRANT pg_read_server_files TO app;
));

my $rows = PostgreSQL::Test::Utils::tempdir . '/rows';
append_to_file($rows, join('', map { "$_\n" } 1 .. 1000));
chmod(0644, $rows) or die $!;

# How many records of the WAL insert rows, of many rows and of one, while this SQL runs
sub records_of
{
	my ($sql) = @_;
	my $now = 'SELECT pg_current_wal_insert_lsn()';
	my ($start, $end) = ($node->safe_psql('postgres', $now));

	$node->safe_psql('postgres', "$sql; SELECT pg_switch_wal()");
	$end = $node->safe_psql('postgres', $now);
	my ($out) = run_command([ 'pg_waldump', '-p', $node->data_dir . '/pg_wal', '-s', $start, '-e', $end ]);
	return (scalar(() = $out =~ /MULTI_INSERT/g), scalar(() = $out =~ /^rmgr: Heap .*desc: INSERT/mg));
}

foreach my $case (
	[ 'by nextval()', 'by_nextval', 1 ],
	[ 'by DEFAULT', 'by_default', 1 ],
	[ 'by the DEFAULT of a domain', 'by_domain', 1 ],
	[ 'within an expression', 'by_expression', 1 ],
	[ 'into partitions', 'partitioned', 1 ],
	[ 'beside what is volatile', 'beside_volatile', 0 ],
	[ 'with a trigger', 'triggered', 0 ],
	[ 'by another role', 'by_default', 1, 'SET ROLE app' ],
	[ 'by a role that may not call what replaces it', 'by_default', 0, 'SET ROLE app',
		'REVOKE EXECUTE ON FUNCTION scru64_generate_in_copy(internal) FROM PUBLIC' ])
{
	my ($name, $table, $many, $set, $before) = @$case;

	$node->safe_psql('postgres', $before) if defined $before;
	my ($records, $single) = records_of(($set // '') . "; TRUNCATE $table; COPY $table (n) FROM '$rows'; RESET ROLE");
	if ($many)
	{
		ok($records > 0 && $records < 100, "$name: many rows at a time");
	}
	else
	{
		ok($records == 0 && $single >= 1000, "$name: row by row");
	}
	is($node->safe_psql('postgres', "SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE id <= before)
		FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before FROM $table) AS o"),
		'1000|1000|0', "$name: an ID a row, in order");
}

# With one counter bit, the COPY fills the allowance ahead of the clock, and waits.
my $session = open_session($node);
$session->query_safe("SET scru64.node_spec = '1/23'; TRUNCATE by_default");
start_statement($session, "COPY by_default (n) FROM '$rows'");
waits_for($node, $session, 'Clock') or die 'the COPY does not wait';
$node->safe_psql('postgres', "SELECT pg_cancel_backend($session->{pid})");
my ($out, $err) = try_statement($session, "SELECT count(*) FROM by_default");
like($err, qr/ERROR:  57014: canceling statement due to user request/, 'a COPY that waits for the clock can be cancelled');
is($out, '0', '... and leaves nothing');
$session->quit;

$node->stop;
done_testing();
