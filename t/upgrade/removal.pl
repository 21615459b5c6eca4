# Removal, as doc/operating.md has it, with the recipes of doc/coming-from.md and doc/plain.md: IDs become bigint where they are, no row moves, the
# extension can go without CASCADE, and new rows get IDs above the old.

use strict;
use warnings;
use FindBin;
use Scru64ComingFrom;
use Scru64Examples;
use Scru64Test;

my @blocks = grep { $_->{language} eq 'sql' } blocks_of("$FindBin::RealBin/../../doc/operating.md");
my ($tables) = map { $_->{text} =~ /^(CREATE TABLE .*)/ms } @blocks;
my $columns = recipe_in_top("$FindBin::RealBin/../../doc/coming-from.md", 'back') =~ s/\baccount\b/event/gr;
my $partitions = plain_recipe('log', 'back');
my ($in_the_way, $set_node) = map {
	my $what = $_;
	grep { $_->{text} =~ $what } @blocks
} (qr/pg_describe_object/, qr/scru64_plain\.set_node/);

my $node = new_node('main');
$node->append_conf('postgresql.conf', "scru64.node_spec = '42/8'");
$node->start;

sub sql
{
	my ($statements) = @_;

	return $node->safe_psql('postgres', $statements);
}

sql('CREATE EXTENSION scru64');
sql($tables);
sql(q(
INSERT INTO event (what) SELECT 'event ' || i FROM generate_series(1, 1000) AS i;
INSERT INTO detail SELECT id FROM event;
INSERT INTO log SELECT scru64_from_parts('2026-01-01 00:00+00'::timestamptz + i * interval '44 min', i), 'line ' || i FROM generate_series(0, 1000) AS i;
ALTER TABLE event ADD COLUMN made_at timestamptz GENERATED ALWAYS AS (scru64_timestamp(id)) STORED;
CREATE INDEX event_time ON event (scru64_timestamp(id));
CREATE INDEX event_new ON event (what) WHERE id > timestamptz '2026-01-01 00:00+00';
CREATE INDEX event_bloom ON event USING brin (id scru64_bloom_ops);
CREATE INDEX event_block ON event USING brin (id);
CREATE STATISTICS event_times ON scru64_timestamp(id), what FROM event;
ALTER TABLE event ADD CHECK (id < timestamptz '2060-01-01 00:00+00'), ADD CHECK (what > '');
CREATE VIEW recent AS SELECT id, what FROM event WHERE id >= now() - interval '1 hour';
));

my $files = q(SELECT pg_relation_filenode('event'), pg_relation_filenode('detail'), pg_relation_filenode('log_2026_01'));
my $rows = q(
SELECT string_agg(id || what || made_at, ' ' ORDER BY id) FROM (SELECT id::bigint, what, made_at FROM event) AS v;
SELECT string_agg(event_id, ' ' ORDER BY event_id) FROM (SELECT event_id::bigint::text FROM detail) AS v;
SELECT string_agg(id || line, ' ' ORDER BY id) FROM (SELECT id::bigint, line FROM log) AS v;
);
my ($files_before, $rows_before) = (sql($files), sql($rows));

# What the page has one drop first is in the way, each.
my $to_bigint = 'ALTER TABLE event ALTER COLUMN id DROP DEFAULT, ALTER COLUMN id TYPE bigint';
my $message = error_of($node, 'DROP EXTENSION scru64');
like($message, qr/ERROR:  2BP01/, 'the extension is in use');
like($message, qr/^(?:DETAIL:  )?$_ depends on/m, "by a $_") foreach ('view recent', 'column made_at of table event');
unlike($message, qr/\bindex|constraint|statistics/, 'which says nothing of indexes, CHECKs and statistics');
my $left = "constraint event_id_check on table event\nindex event_bloom\nindex event_new\nindex event_time\nstatistics object event_times";
is(join("\n", sort split(/\n/, sql($in_the_way->{text}))), $left, 'the query does, and of no others');
like(error_of($node, $to_bigint), qr/ERROR:  0A000/, 'a view, a generated column');
sql('DROP VIEW recent; ALTER TABLE event ALTER made_at DROP EXPRESSION, ALTER made_at SET DEFAULT now()');
foreach my $drop ('CONSTRAINT event_id_check', 'INDEX event_bloom', 'INDEX event_new', 'INDEX event_time', 'STATISTICS event_times')
{
	like(error_of($node, $to_bigint), qr/ERROR:  (?:42883|42804)/, "in the way: $drop");
	sql($drop =~ /^CONSTRAINT/ ? "ALTER TABLE event DROP $drop" : "DROP $drop");
}
is(sql($in_the_way->{text}), '', 'the query finds nothing more');

sql($columns);
$node->command_ok([ 'psql', '-Xq1', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), '-f', "$FindBin::RealBin/../../plain/scru64.sql" ],
	'plain/scru64.sql');
sql($_) foreach ($set_node->{text}, $partitions);
is(sql($files), $files_before, 'no table is rewritten');
is(sql($rows), $rows_before, 'the same rows');
is(sql('SELECT count(*) FROM event WHERE made_at = to_timestamp((id >> 24) * 0.256)'), '1000', 'the same times');
is( sql(q(SELECT string_agg(format('%s %s', conrelid::regclass, contype), ', ' ORDER BY conrelid::regclass::text COLLATE "C", contype)
		  FROM pg_constraint WHERE contype IN ('p', 'f') AND connamespace = 'public'::regnamespace)),
	'detail f, event p, log p, log_2026_01 p, log_rest p', 'the same keys');
is(sql(q(INSERT INTO log SELECT max(id) + 1, 'new' FROM log RETURNING tableoid::regclass)), 'log_2026_01', 'a row of January');


$rows_before = sql($rows);
sql('DROP EXTENSION scru64');
is(sql($rows), $rows_before, 'the same rows without the extension');

# New rows, of a role that may do nothing else
sql(q(
CREATE ROLE app;
GRANT SELECT, INSERT ON event, log TO app;
));
is(sql(q(SET ROLE app; INSERT INTO event (what) VALUES ('new'), ('newer') RETURNING id - (SELECT max(id) FROM event))),
	"1\n2", 'new rows have numbers right above');
is(sql(q(SELECT min(id) > 2::numeric ^ 53 FROM event)), 't', 'which JavaScript rounds');
is(sql(q(SELECT count(*) FROM event WHERE made_at IS NULL)), '0', 'and a time, by a default');
is(sql(q(SET ROLE app; INSERT INTO log (line) VALUES ('now') RETURNING tableoid::regclass, id > (SELECT max(id) FROM log))),
	'log_rest|t', 'or an ID with its time');

$node->stop;
done_testing();
