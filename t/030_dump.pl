# pg_dump and restore, in every format: what is in a database that uses the type
# everywhere, and what it is made of, are the same afterwards, and go on working.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Scru64Fault qw(read_file);
use Scru64Test;
use Test::More;

my $node = new_node('main');
$node->append_conf('postgresql.conf', "scru64.node_spec = '1/8'");
$node->start;

# All in one database, once with the extension in public and once where no
# search_path finds it.
sub fill
{
	my ($db, $schema) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $db TEMPLATE template0");
	$node->safe_psql(
		$db, qq(
CREATE SCHEMA IF NOT EXISTS $schema;
CREATE EXTENSION scru64 SCHEMA $schema;
SET search_path = public, $schema;
ALTER DATABASE $db SET scru64.node_spec = '2/8';

CREATE TABLE event (
	id scru64 DEFAULT scru64_generate() PRIMARY KEY,
	parent scru64 REFERENCES event,
	created_at timestamptz GENERATED ALWAYS AS (scru64_timestamp(id)) STORED,
	number bigint GENERATED ALWAYS AS (id::bigint) STORED,
	day timestamp GENERATED ALWAYS AS (date_trunc('day', id::timestamptz AT TIME ZONE 'UTC')) STORED,
	others scru64[] DEFAULT ARRAY['0u2r85hm2pt3', '0u2pf62ji4b9']::scru64[],
	CHECK (id > '0u2r85hm2pt3'),
	CHECK (parent < id),
	CONSTRAINT recent CHECK (id >= timestamptz '2026-01-01 00:00+00'),
	CONSTRAINT same CHECK (scru64_timestamp(id) = id::timestamptz AND id = id::bigint::scru64)
);
CREATE INDEX event_hash ON event USING hash (parent);
CREATE INDEX event_brin ON event USING brin (id);
CREATE INDEX event_multi ON event USING brin (id scru64_minmax_multi_ops (values_per_range = 16));
CREATE INDEX event_bloom ON event USING brin (parent scru64_bloom_ops (n_distinct_per_range = 100));
CREATE INDEX event_day ON event (date_trunc('day', scru64_timestamp(id) AT TIME ZONE 'UTC'));
CREATE INDEX event_recent ON event (parent) WHERE id >= timestamptz '2026-01-31 00:00+00';
CREATE INDEX event_others ON event USING gin (others);
CREATE STATISTICS event_time ON (scru64_timestamp(id)), (scru64_node_ctr(id)) FROM event;
ALTER TABLE event ALTER id SET STATISTICS 500;

CREATE TABLE part (id scru64 DEFAULT scru64_generate() PRIMARY KEY, n integer) PARTITION BY RANGE (id);
CREATE TABLE part_old PARTITION OF part
	FOR VALUES FROM (MINVALUE) TO (scru64_min('2026-01-01 00:00+00'));
CREATE TABLE part_new PARTITION OF part
	FOR VALUES FROM (scru64_min('2026-01-01 00:00+00')) TO (MAXVALUE);
CREATE TABLE hashed (id scru64 DEFAULT scru64_generate() PRIMARY KEY) PARTITION BY HASH (id);
CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1);

CREATE DOMAIN event_id AS scru64 CHECK (VALUE > '0u2r85hm2pt3');
CREATE TYPE pair AS (a scru64, b event_id);
CREATE TYPE id_range AS RANGE (SUBTYPE = scru64);
CREATE TABLE typed (
	d event_id, p pair, r id_range,
	EXCLUDE USING gist (r WITH &&)
);

CREATE VIEW last_hour AS
	SELECT id, id::timestamptz AS at, max(id) OVER (ORDER BY id RANGE '10 minutes' PRECEDING)
	FROM event
	WHERE id >= now() - interval '1 hour' AND id BETWEEN timestamptz '2026-01-31 00:00+00' AND now()
		AND parent::bigint > 0 AND id = ANY ('{0u2r85hm2pt3}');
CREATE MATERIALIZED VIEW days AS
	SELECT min(id), max(id), count(*) FROM event GROUP BY day;
CREATE FUNCTION newest() RETURNS scru64 LANGUAGE sql RETURN (SELECT max(id) FROM event);
CREATE FUNCTION only_new() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER only_new BEFORE UPDATE ON event FOR EACH ROW WHEN (NEW.id > OLD.id) EXECUTE FUNCTION only_new();
ALTER TABLE event ENABLE ROW LEVEL SECURITY;
CREATE POLICY recent ON event USING (id >= timestamptz '2026-01-31 00:00+00');

INSERT INTO event SELECT FROM generate_series(1, 2000);
UPDATE event SET parent = (SELECT min(id) FROM event)
WHERE id <> (SELECT min(id) FROM event) AND scru64_node_ctr(id) % 2 = 0;
INSERT INTO part (n) SELECT generate_series(1, 1000);
INSERT INTO part SELECT scru64_from_parts('2025-01-01', n), n FROM generate_series(1, 1000) AS n;
INSERT INTO part VALUES ('000000000000', 0), ('zzzzzzzzzzzz', 0);
INSERT INTO hashed SELECT FROM generate_series(1, 1000);
INSERT INTO typed
SELECT id, ROW(id, id::event_id)::pair, id_range(id, (id::bigint + 1)::scru64) FROM event WHERE scru64_node_ctr(id) % 2 = 0;
REFRESH MATERIALIZED VIEW days;
));
	return;
}

# What a dump has, without what is random in it (a key of psql's) and the name of
# the database.
sub dump_of
{
	my ($db) = @_;
	my $file = PostgreSQL::Test::Utils::tempdir . "/$db.txt";

	$node->command_ok([ 'pg_dump', '--create', '-f', $file, $node->connstr($db) ],
		"$db can be dumped");
	my $text = read_file($file);
	$text =~ s/^\\(un)?restrict .*\n//mg;
	$text =~ s/\b\Q$db\E\b/DATABASE/g;
	return $text;
}

# What is to work in a database: index and pruning, and new IDs above the old.
sub check_use
{
	my ($db, $name, $schema) = @_;

	is( $node->safe_psql(
			$db, qq(
SET search_path = public, $schema;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT FROM part WHERE id >= timestamptz '2026-01-31 00:00+00';
)) =~ s/ using \w+//r =~ s/\n +Index Cond.*//r,
		'Index Only Scan on part_new part',
		"$name: the index is used, and the partition that is not needed pruned");
	is( $node->safe_psql(
			$db, qq(
SET search_path = public, $schema;
SHOW scru64.node_spec;
WITH old AS MATERIALIZED (SELECT max(id) AS id FROM event), new AS (INSERT INTO event DEFAULT VALUES RETURNING *)
SELECT new.id > old.id, created_at = scru64_timestamp(new.id), number = new.id::bigint,
	others = '{0u2r85hm2pt3,0u2pf62ji4b9}'
FROM old, new;
ROLLBACK;
SELECT count(*) FROM event JOIN typed ON d = id AND id <@ r;
)) =~ s/\n\d{3,4}$//r,
		"2/8\nt|t|t|t",
		"$name: it goes on");
	return;
}

my %formats = (public => [qw(plain custom directory)], hidden => ['custom']);
foreach my $schema (sort keys %formats)
{
	my $source = "source_$schema";

	fill($source, $schema);
	my $before = dump_of($source);
	like($before, qr/^COPY public\.typed .*\n\w{12}\t\(\w{12},\w{12}\)\t\[\w{12},\w{12}\)\n/m,
		"$schema: the dump has IDs as text");

	foreach my $format (@{ $formats{$schema} })
	{
		my $name = "$schema, $format";
		my $db = "${schema}_$format";
		my $file = PostgreSQL::Test::Utils::tempdir . "/$db";
		my @jobs = $format eq 'plain' ? () : ('-j', 2);

		$node->command_ok(
			[
				'pg_dump', "--format=$format", '-f', $file,
				($format eq 'directory' ? @jobs : ()), $node->connstr($source)
			],
			"$name: dumped");
		$node->safe_psql('postgres', qq(
CREATE DATABASE $db TEMPLATE template0;
ALTER DATABASE $db SET scru64.node_spec = '2/8';
));
		$node->command_ok(
			$format eq 'plain'
			? [ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $file, '-d', $node->connstr($db) ]
			: [ 'pg_restore', '--exit-on-error', @jobs, '-d', $node->connstr($db), $file ],
			"$name: restored");
		is(dump_of($db), $before, "$name: it is what it was");
		check_use($db, $name, $schema);
	}
	check_use($source, "$schema, not dumped", $schema);
}

$node->stop;
done_testing();
