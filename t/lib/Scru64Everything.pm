# A database that uses the type everywhere: what has to survive a dump and an upgrade.
#
# A dump is restored, and postgres_fdw, pg_repack and a subscriber work, with a search_path that has
# pg_catalog and little else.  That is why the type is in pg_catalog.  So the module has the constructs of
# PostgreSQL that look for an operator or a function by its name alone, in each kind of place where a
# definition is stored:
#
#   written without a schema: IS DISTINCT FROM, also of rows (make_distinct_op), NULLIF, CASE x WHEN
#       (transformCaseExpr), JOIN USING and NATURAL JOIN (transformJoinUsingClause), comparisons of rows,
#       also with a subquery (make_row_comparison_op)
#   stored as it was written, and looked up when it runs: the bodies of functions that are strings
#
# A publication's WHERE has none of them: it takes no type with an OID that an extension has.

package Scru64Everything;

use strict;
use warnings;

use Exporter 'import';
use File::Basename;
use Scru64Examples;
use Scru64Test;

our @EXPORT = qw(answers_of create_everything create_temporal has_gist same_dump);

# Conditions that hold in each row of a table with an ID, the ID of a parent or NULL, and a number
my @conditions = (
	q(parent IS DISTINCT FROM id),
	q((n, parent) IS DISTINCT FROM (n, id)),
	q(NULLIF(id, parent) = id),
	q(CASE parent WHEN id THEN false WHEN '0u2r85hm2pt3' THEN false ELSE true END),
	q((n, id) > (0, parent) AND (n, id) IN ((n, id), (0, '0u2r85hm2pt3'))),
	q(id > '0u2r85hm2pt3' AND id >= timestamptz '2026-01-01 00:00+00' AND GREATEST(id, parent) = id),
	q(id = id::bigint::scru64 AND id = id::bytea::scru64 AND id = id::text::scru64 AND id::timestamptz = scru64_timestamp(id)),
	q(scru64_from_parts(scru64_timestamp(id), scru64_node_ctr(id)) = id AND scru64_min(scru64_timestamp(id)) <= id));

# Where they are stored, each under its number.  <new> is the condition on the columns of NEW, <value>
# the one on a domain's VALUE, and <constant> on constants.
my $places = q(
CREATE FUNCTION string_<number>(id scru64, parent scru64, n integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT <quoted>';
CREATE FUNCTION return_<number>(id scru64, parent scru64, n integer) RETURNS boolean LANGUAGE sql IMMUTABLE RETURN <condition>;
CREATE FUNCTION block_<number>(id scru64, parent scru64, n integer) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN <quoted>; END';
CREATE FUNCTION default_<number>(b boolean DEFAULT <constant>) RETURNS boolean LANGUAGE sql IMMUTABLE RETURN b;
CREATE DOMAIN domain_<number> AS scru64 CHECK (<value>);
ALTER TABLE tree
	ADD CONSTRAINT check_<number> CHECK (<condition>),
	ADD CONSTRAINT check_string_<number> CHECK (string_<number>(id, parent, n)),
	ADD CONSTRAINT exclude_<number> EXCLUDE (id WITH =, (<condition>) WITH =) WHERE (<condition>),
	ADD generated_<number> boolean GENERATED ALWAYS AS (<condition>) STORED,
	ADD generated_block_<number> boolean GENERATED ALWAYS AS (block_<number>(id, parent, n)) STORED,
	ADD default_<number> boolean DEFAULT <constant>,
	ADD domain_<number> domain_<number> DEFAULT '0vodnvxngg01';
CREATE INDEX expression_<number> ON tree ((<condition>));
CREATE INDEX expression_return_<number> ON tree (return_<number>(id, parent, n));
CREATE INDEX predicate_<number> ON tree (n) WHERE <condition>;
CREATE STATISTICS statistics_<number> ON (<condition>), n FROM tree;
CREATE TRIGGER trigger_<number> BEFORE UPDATE ON tree FOR EACH ROW WHEN (<new>) EXECUTE FUNCTION count_fired();
CREATE RULE rule_<number> AS ON UPDATE TO tree WHERE <new> DO ALSO INSERT INTO ruled SELECT NEW.id WHERE <new>;
CREATE POLICY policy_<number> ON tree AS RESTRICTIVE USING (<condition>) WITH CHECK (<condition>);
CREATE VIEW view_<number> AS SELECT id, <condition> AS holds FROM tree WHERE <condition>;
CREATE MATERIALIZED VIEW materialized_<number> AS SELECT id, <condition> AS holds FROM tree WHERE <condition>;
CREATE TABLE part_by_<number> (id scru64, parent scru64, n integer) PARTITION BY LIST ((<condition>));
CREATE TABLE part_by_<number>_true PARTITION OF part_by_<number> FOR VALUES IN (<constant>);
INSERT INTO part_by_<number> SELECT id, parent, n FROM tree;
);

# Queries that return an ID, of the same table and of one with another column of that name
my @queries = (
	q(SELECT id FROM public.tree JOIN public.leaf USING (id)),
	q(SELECT id FROM public.tree NATURAL LEFT JOIN public.leaf),
	q(SELECT id FROM public.tree WHERE (n, id) IN (SELECT n, id FROM public.tree) AND id IN (SELECT id FROM public.leaf)
		AND (n, parent) NOT IN (SELECT n + 1, id FROM public.tree) AND (0, id) < (SELECT n, min(id) FROM public.tree GROUP BY n LIMIT 1)),
	q(SELECT id FROM (SELECT id FROM public.tree ORDER BY id USING > LIMIT 3) AS top));

# Where they are stored
my $query_places = q(
CREATE FUNCTION query_string_<number>() RETURNS SETOF scru64 LANGUAGE sql AS '<quoted>';
CREATE FUNCTION query_atomic_<number>() RETURNS SETOF scru64 LANGUAGE sql BEGIN ATOMIC <query>; END;
CREATE FUNCTION query_block_<number>() RETURNS SETOF scru64 LANGUAGE plpgsql AS 'BEGIN RETURN QUERY <quoted>; END';
CREATE VIEW query_<number> AS <query>;
CREATE MATERIALIZED VIEW query_materialized_<number> AS
	SELECT 'query', id FROM (<query>) AS of_query
	UNION ALL SELECT 'string', query_string_<number>()
	UNION ALL SELECT 'atomic', query_atomic_<number>()
	UNION ALL SELECT 'block', query_block_<number>();
CREATE POLICY query_<number> ON leaf_guarded AS RESTRICTIVE USING (EXISTS (<query>)) WITH CHECK (EXISTS (<query>));
CREATE RULE query_<number> AS ON UPDATE TO leaf_guarded DO ALSO INSERT INTO ruled SELECT id FROM (<query>) AS of_query;
);

# A text with what is to stand for each <name> in it
sub filled_in
{
	my ($text, %for) = @_;

	return $text =~ s/<(\w+)>/$for{$1}/gr;
}

# SQL that stores all conditions and queries
sub constructs
{
	my %constants = (id => "'0vodnvxngg01'::scru64", parent => "'0vodnvxngg00'::scru64", n => 1);
	my %values = (%constants, id => 'VALUE');
	my $column = qr/\b(id|parent|n)\b/;
	my $number = 0;

	return join(
		'',
		(
			map {
				filled_in(
					$places,
					number => ++$number,
					condition => $_,
					quoted => s/'/''/gr,
					new => s/$column/NEW.$1/gr,
					# pg_upgrade makes domains before the casts and operator families of extensions
					value => /\bid::|^\(n, id\) >/ ? 'VALUE IS NOT NULL' : s/$column/$values{$1}/gr,
					constant => '(' . s/$column/$constants{$1}/gr . ')')
			} @conditions),
		(map { filled_in($query_places, number => ++$number, query => $_, quoted => s/'/''/gr) } @queries));
}

# Create a database, and the role everything_app, which is nobody special.  Needs a node spec.
sub create_everything
{
	my ($node, $db) = @_;
	my $constructs = constructs();

	$node->safe_psql('postgres', "CREATE DATABASE $db TEMPLATE template0");
	$node->safe_psql($db, qq(
CREATE EXTENSION scru64;
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
CREATE AGGREGATE first_id(scru64) (SFUNC = scru64_smaller, STYPE = scru64, SORTOP = <);
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

CREATE TABLE tree (id scru64 PRIMARY KEY, parent scru64 REFERENCES tree, n integer, fired integer DEFAULT 0);
CREATE TABLE leaf (id scru64 REFERENCES tree, what text);
CREATE TABLE leaf_guarded (LIKE leaf);
CREATE TABLE ruled (id scru64);
INSERT INTO tree SELECT id, lag(id, 7) OVER (ORDER BY id), 1 FROM scru64_generate(20) AS id;
INSERT INTO leaf SELECT id, 'leaf' FROM tree ORDER BY id DESC LIMIT 5;
INSERT INTO leaf_guarded TABLE leaf;
CREATE FUNCTION count_fired() RETURNS trigger LANGUAGE plpgsql AS '
BEGIN
	IF NEW.parent IS DISTINCT FROM NEW.id AND NEW.id >= timestamptz ''2026-01-01'' THEN
		NEW.fired = NEW.fired + 1;
	END IF;
	RETURN NEW;
END';
CREATE PROCEDURE upsert(id scru64) LANGUAGE sql BEGIN ATOMIC
	INSERT INTO event (id) VALUES (id) ON CONFLICT (id) DO UPDATE SET parent = NULLIF(event.parent, excluded.id)
		WHERE event.parent IS DISTINCT FROM excluded.parent;
	MERGE INTO hashed USING (SELECT upsert.id) AS new ON hashed.id = new.id
		WHEN MATCHED AND hashed.id IS DISTINCT FROM new.id THEN DELETE
		WHEN NOT MATCHED THEN INSERT (id) VALUES (new.id);
END;
$constructs
CREATE POLICY permissive ON tree USING (true);
CREATE POLICY permissive ON leaf_guarded USING (true);
ALTER TABLE tree ENABLE ROW LEVEL SECURITY;
ALTER TABLE leaf_guarded ENABLE ROW LEVEL SECURITY;

CREATE ROLE everything_app;
GRANT ALL ON ALL TABLES IN SCHEMA public TO everything_app;
REVOKE EXECUTE ON FUNCTION scru64_generate() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION scru64_generate(), scru64_generators() TO everything_app;
));
	create_gist($node, $db) if has_gist($node);
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
	my ($node, $db) = @_;

	$node->safe_psql($db, qq(
CREATE EXTENSION scru64_gist CASCADE;
CREATE INDEX event_gist ON event USING gist (id);
CREATE TABLE booking (id scru64, during int4range, EXCLUDE USING gist (id WITH =, during WITH &&));
CREATE EXTENSION scru64_gin CASCADE;
CREATE INDEX event_gin ON event USING gin (id, others);
INSERT INTO booking SELECT id, int4range(n, n + 1) FROM event, generate_series(1, 2) AS n;
));
	create_temporal($node, $db) if $node->pg_version >= 18;
	return;
}

# The tables of the reference
sub create_temporal
{
	my ($node, $db) = @_;
	my $keys = recipe(dirname(__FILE__) . '/../../doc/scru64.md', 'temporal keys');

	$node->safe_psql($db, qq(
$keys
INSERT INTO price
SELECT id, during FROM event, (VALUES (daterange('2026-01-01', '2026-01-11')), (daterange('2026-01-11', '2026-01-21'))) AS v (during);
INSERT INTO offer SELECT id, daterange('2026-01-05', '2026-01-15') FROM event;
));
	return;
}

# What is in all tables and views, and what becomes of it by a statement for each; nothing is left
# of that.  The role has no schema in its search_path, and its rows are those of the policies.
sub answers_of
{
	my ($node, $db) = @_;
	my $relations = $node->safe_psql($db, q(
SELECT string_agg(format($$SELECT %L, count(*), md5(string_agg(t::text, ' ' ORDER BY t::text COLLATE "C")) FROM %s AS t$$, relname, oid::regclass),
	' UNION ALL ' ORDER BY relname COLLATE "C")
FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm')
));

	return $node->safe_psql($db, qq($relations;
BEGIN;
SET LOCAL ROLE everything_app;
SET LOCAL search_path = '';
UPDATE public.tree SET n = 2 RETURNING id, fired;
UPDATE public.leaf_guarded SET what = 'changed' RETURNING id;
SELECT count(*) FROM public.ruled;
INSERT INTO public.tree (id, n) SELECT scru64_generate(), 1;
ROLLBACK;
BEGIN;
SELECT max(id) AS last FROM event \\gset
CALL upsert(:'last');
SELECT count(*) FROM hashed WHERE id = :'last';
ROLLBACK;
));
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
