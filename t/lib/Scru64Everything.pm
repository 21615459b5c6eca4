# A database that uses the type everywhere: what has to survive a dump and an
# upgrade.

package Scru64Everything;

use Exporter 'import';
use File::Basename;
use Scru64Examples;
use Scru64Test;

our @EXPORT = qw(create_everything create_temporal has_gist same_dump);

# Create a database, with the extension in this schema.  Needs a node spec.
sub create_everything
{
	my ($node, $db, $schema) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $db TEMPLATE template0");
	$node->safe_psql($db, qq(
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
	create_gist($node, $db, $schema) if has_gist($node);
	return;
}

sub has_gist
{
	my ($node) = @_;

	return $node->safe_psql('postgres', q(SELECT count(*) = 2 FROM pg_available_extensions WHERE name IN ('btree_gist', 'btree_gin'))) eq 't';
}

# GiST and GIN indexes; where the version has temporal keys, with these
sub create_gist
{
	my ($node, $db, $schema) = @_;

	$node->safe_psql($db, qq(
SET search_path = public, $schema;
CREATE EXTENSION scru64_gist SCHEMA $schema CASCADE;
CREATE INDEX event_gist ON event USING gist (id);
CREATE TABLE booking (id scru64, during int4range, EXCLUDE USING gist (id WITH =, during WITH &&));
CREATE EXTENSION scru64_gin SCHEMA $schema CASCADE;
CREATE INDEX event_gin ON event USING gin (id, others);
INSERT INTO booking SELECT id, int4range(n, n + 1) FROM event, generate_series(1, 2) AS n;
));
	create_temporal($node, $db, $schema) if $node->pg_version >= 18;
	return;
}

# The tables of the reference
sub create_temporal
{
	my ($node, $db, $schema) = @_;
	my $keys = recipe(dirname(__FILE__) . '/../../doc/scru64.md', 'temporal keys');

	$node->safe_psql($db, qq(
SET search_path = public, $schema;
$keys
INSERT INTO price
SELECT id, during FROM event, (VALUES (daterange('2026-01-01', '2026-01-11')), (daterange('2026-01-11', '2026-01-21'))) AS v (during);
INSERT INTO offer SELECT id, daterange('2026-01-05', '2026-01-15') FROM event;
));
	return;
}

# Is a dump the same as another one?  If not, where it begins to differ.
sub same_dump
{
	my ($got, $expected, $name) = @_;
	my @got = split(/\n/, $got);
	my @expected = split(/\n/, $expected);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return if ok($got eq $expected, $name);
	while (@got && @expected && $got[0] eq $expected[0])
	{
		shift @got;
		shift @expected;
	}
	diag("it has:    $_") foreach (splice(@got, 0, 5));
	diag("expected:  $_") foreach (splice(@expected, 0, 5));
	return;
}

1;
