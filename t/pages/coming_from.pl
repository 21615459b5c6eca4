# The recipes of doc/coming-from.md keep rows, references, order and time; and those of
# doc/plain.md, which share their statements, keep all that pg_dump knows.

use strict;
use warnings;
use FindBin;
use Scru64ComingFrom;
use Scru64Examples;
use Scru64Test;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;

my $rows = 10000;
my $plain = "$FindBin::RealBin/../../doc/plain.md";
my $node = new_node('main');

# nobody is asked to survive a crash
$node->append_conf('postgresql.conf', qq(
fsync = off
client_min_messages = warning
log_min_messages = debug1
));
$node->start;
$node->safe_psql('template1', 'CREATE EXTENSION scru64');
$node->safe_psql('postgres', 'CREATE ROLE reader; CREATE ROLE app');
$node->safe_psql('postgres', "ALTER ROLE ALL SET scru64.node_spec = '42/8'");

# Views, with what they may have
my $views = q(
CREATE VIEW named WITH (security_barrier) AS SELECT account.id, name, amount FROM entry JOIN account ON account.id = account_id;
CREATE VIEW sums AS SELECT name, sum(amount) AS sum FROM named GROUP BY name;
ALTER VIEW sums OWNER TO reader;
GRANT SELECT ON named TO reader WITH GRANT OPTION;
GRANT UPDATE (name) ON named TO PUBLIC;
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER nothing INSTEAD OF INSERT ON named FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE RULE nothing AS ON DELETE TO named DO INSTEAD NOTHING;
COMMENT ON VIEW named IS 'it''s named';
);

# What pg_dump says of tables and views
sub dump_of
{
	my ($db, @names) = @_;
	my ($dump) = has_program('pg_dump') ? run_command([ 'pg_dump', '-s', (map { ('-t', $_) } @names), '-d', $node->connstr($db) ]) : '';

	# newer ones write a random word
	return $dump =~ s/^\\.*\n//mgr;
}

# The same of the views and of entry, but for the type of its column
sub dump_beside_ids
{
	return dump_of($_[0], 'entry', 'named', 'sums') =~ s/^    account_id .*//mr =~ s/OPERATOR\(public\.=\)/=/gr;
}

# Run a recipe on tables of its own.
my %is_set_up;
sub try_recipe
{
	my ($source, $variant, $meanwhile) = @_;
	my $db = "$source $variant";

	if (!$is_set_up{$source}++)
	{
		$node->safe_psql('postgres', "CREATE DATABASE $source");
		$node->safe_psql($source, setup($source, $rows));
	}
	$node->safe_psql('postgres', qq(CREATE DATABASE "$db" TEMPLATE $source));
	$node->safe_psql($db, $views) if $variant ne 'quiet';
	my $dump = dump_beside_ids($db);
	is(error_of($node, recipe_of($source, $variant, $meanwhile), dbname => $db), '', "$source, $variant: no error");

	# each prints a line
	my @checks = checks($variant, $rows);
	my @results = split /\n/, $node->safe_psql($db, join(";\n", map { ref $_ ? $_->[0] : () } @checks));
	while (my ($name, $check) = splice(@checks, 0, 2))
	{
		is(shift @results, $check->[1], "$source, $variant: $name");
	}
	like(error_of($node, q(INSERT INTO entry (account_id, amount) VALUES ('000000000000', 1)), dbname => $db),
		qr/violates foreign key constraint "entry of account"/, "$source, $variant: the foreign key holds");
	if ($variant ne 'quiet')
	{
		is($node->safe_psql($db, 'SET ROLE reader; SELECT count(*) FROM named'), $rows + 1, "$source, $variant: the views");
		is(dump_beside_ids($db), $dump, "$source, $variant: nothing else has changed");
	}
	if ($source eq 'identity')
	{
		is(error_of($node, q(
INSERT INTO account (id, name) OVERRIDING SYSTEM VALUE VALUES ('0u2r85hm2pt3', 'chosen');
COPY account (id, name) FROM stdin;
0u2r85hm2pt4	copied
\.
DELETE FROM account WHERE name IN ('chosen', 'copied');
GRANT INSERT (name), UPDATE (name) ON account TO app;
SET ROLE app;
INSERT INTO account (name) VALUES ('by default');
RESET ROLE;
DELETE FROM account WHERE name = 'by default';
), dbname => $db), '', "$source, $variant: COPY and OVERRIDING SYSTEM VALUE work as before");
		foreach my $sql ("INSERT INTO account (id, name) VALUES (scru64_generate(), 'chosen')", 'UPDATE account SET id = scru64_generate()')
		{
			like(error_of($node, "SET ROLE app; $sql", dbname => $db), qr/42501/, "$source, $variant: a role without the column chooses no ID");
		}
	}
	return $db;
}

# What still generates numbers fails; what does not fail, the page's query finds, and its CHECK refuses.
sub old_generators
{
	my ($db) = @_;
	my $page = "$FindBin::RealBin/../../doc/coming-from.md";
	my ($find, $guard) = map { recipe($page, $_) } ('rows of another time', 'guard');
	my $times = q(
BEGIN;
INSERT INTO account (id, name) VALUES (1::bigint::scru64, 'cast');
INSERT INTO account (id, name) VALUES ((((extract(epoch FROM now()) * 1000)::bigint - 1288834974657) << 22)::scru64, 'cast');
DO $$ DECLARE new_id account.id%TYPE := 200000000000; BEGIN INSERT INTO account (id, name) VALUES (new_id, 'text'); END $$;
);

	$node->safe_psql($db, q(
CREATE SEQUENCE s;
CREATE FUNCTION old_trigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.id := nextval('s'); RETURN NEW; END $$;
CREATE FUNCTION old_function() RETURNS bigint LANGUAGE sql RETURN nextval('s');
));
	is(join(' ', sort split(/\n/, $node->safe_psql($db, recipe($page, 'old generators')))), 'old_function() old_trigger()', 'functions that generate are found');
	foreach my $number ("nextval('s')", '42::bigint', '((extract(epoch FROM now()) * 1000)::bigint - 1288834974657) << 22', 'old_function()')
	{
		like(error_of($node, "INSERT INTO account (id, name) VALUES ($number, 'old')", dbname => $db), qr/ERROR:  42804/, "not stored: $number");
	}
	like(error_of($node, q(
CREATE TRIGGER old BEFORE INSERT ON account FOR EACH ROW EXECUTE FUNCTION old_trigger();
INSERT INTO account (name) VALUES ('old');
), dbname => $db), qr/ERROR:  22P02/, 'nor what a trigger makes');
	$node->safe_psql($db, 'DROP TRIGGER old ON account; DROP FUNCTION old_trigger, old_function; DROP SEQUENCE s');

	my @found = split(/\n/, $node->safe_psql($db, "SET TimeZone = 'UTC'; $times$find; ROLLBACK"));
	is(scalar(@found), 3, 'rows of another time are found, and no others');
	is(join(' ', sort map { /\|(\d{4})-/ } @found), '1970 2097 2998', 'with their times');
	$node->safe_psql($db, $guard);
	foreach my $insert ($times =~ /^((?:INSERT|DO).*)/mg)
	{
		like(error_of($node, $insert, dbname => $db), qr/ERROR:  23514/, "the CHECK refuses: $insert");
	}
	is($node->safe_psql($db, q(INSERT INTO account (name) VALUES ('now') RETURNING name)), 'now', 'but not what is generated');
	like(dump_of($db, 'account'), qr/time_of_id CHECK .*2000-01-01 00:00:00\+00.*2060-01-01 00:00:00\+00.* NOT VALID/, 'a dump has the CHECK') if has_program('pg_dump');
	$node->safe_psql($db, q(ALTER TABLE account DROP CONSTRAINT time_of_id; DELETE FROM account WHERE name = 'now'));
	return;
}

#
# With little locking
#
# UUIDs of both kinds are the same here, so one is tried in this way and the other in
# the next.
foreach my $source (grep { $_ ne 'ulid_uuid' } sources())
{
	# Rows come and change while it goes on: new accounts, entries for old and new
	# ones, and an entry that moves from account to account.
	my $id = $source =~ /bigserial|identity/ ? '' : ', id';
	my $value =
		$source eq 'uuid7' ? ', gen_random_uuid()'
	  : $source eq 'ulid_text' ? ', upper(left(md5(random()::text), 26))'
	  : $source eq 'snowflake' ? ', (random() * 1e15)::bigint'
	  : '';
	my $log = -s $node->logfile;
	my $db = try_recipe($source, 'quiet', qq(
INSERT INTO account (name$id) SELECT 'meanwhile'$value FROM generate_series(1, 100);
INSERT INTO entry (account_id, amount) SELECT id, 2 FROM account WHERE name = 'meanwhile';
INSERT INTO entry (account_id, amount) SELECT id, 2 FROM account WHERE name = 'account 7';
UPDATE truth_entry SET name = (SELECT 'account ' || count(*) FROM account WHERE name = 'meanwhile') WHERE id = 3;
UPDATE entry SET account_id = (SELECT a.id FROM account AS a JOIN truth_entry AS t USING (name) WHERE t.id = 3) WHERE id = 3;
));

	my @proved = slurp_file($node->logfile, $log) =~ /existing constraints on column .* are sufficient to prove/g;
	is(scalar(@proved), 2, "$source, quiet: SET NOT NULL reads no table");
	is($node->safe_psql($db, q(SELECT count(*) FROM entry JOIN account ON account.id = account_id WHERE amount = 2)),
		'603', "$source, quiet: rows that came meanwhile");
	is( $node->safe_psql($db, q(SELECT count(*) FROM account WHERE name = 'meanwhile' AND scru64_node_ctr(id) >> 16 = 42)),
		'300', "$source, quiet: have IDs of now");
	is($node->safe_psql($db, q(SELECT to_regclass('account_id_seq') IS NULL)), 't', "$source, quiet: no sequence is left");
}

# A step 5 that fails changes nothing, also where psql rolls back only the statement that failed.
{
	my $db = 'failing';
	my $error_of = sub { error_of($node, join("\n", @_), dbname => $db, on_error_stop => 0, extra_params => [ '-v', 'ON_ERROR_ROLLBACK=on' ]) };

	$node->safe_psql('postgres', "CREATE DATABASE $db TEMPLATE bigserial");
	is($error_of->(step(1), map_beside('bigserial'), map { step($_) } 2 .. 4), '', 'steps 1 to 4: no error');
	$node->safe_psql($db, 'CREATE VIEW amounts AS SELECT account_id, amount FROM entry');
	my $dump = dump_of($db);
	like($error_of->(step(5)), qr/2BP01: cannot drop column account_id/, 'step 5 and a view: an error');
	is(dump_of($db), $dump, 'step 5 and a view: nothing has changed');
}

#
# In one go, and the numbers as they are
#
{
	my $db = try_recipe('identity', 'numbers');

	is(error_of($node, recipe_of('identity', 'back'), dbname => $db), '', 'identity, back: no error');
	is($node->safe_psql($db, q(INSERT INTO account (name) VALUES ('later') RETURNING id - 1 = (SELECT max(id) FROM account))),
		't', 'identity, back: a new row');
}
foreach my $source (grep { $_ !~ /uuid7|identity/ } sources())
{
	my $db = try_recipe($source, 'in one go');
	next if $source ne 'bigserial';

	old_generators($db);

	# And back: the tables are not rewritten.
	my $files = q(SELECT pg_relation_filenode('account'), pg_relation_filenode('entry'));
	my $before = $node->safe_psql($db, $files);
	my $ids = $node->safe_psql($db, q(SELECT md5(string_agg(id::bigint || name, ',' ORDER BY id)) FROM account));
	is(error_of($node, recipe_of($source, 'back'), dbname => $db), '', 'back: no error');
	is($node->safe_psql($db, $files), $before, 'back: no table is rewritten');
	is($node->safe_psql($db, q(SELECT md5(string_agg(id || name, ',' ORDER BY id)) FROM account)), $ids, 'back: the same numbers');
	is( $node->safe_psql($db, q(SELECT count(*) FROM truth_entry AS t JOIN entry AS e USING (id) JOIN account AS a ON a.id = e.account_id AND a.name = t.name)),
		$rows, 'back: the same references');
	is( $node->safe_psql($db, q(INSERT INTO account (name) VALUES ('later') RETURNING id - 1 = (SELECT max(id) FROM account))),
		't', 'back: a new row, though the sequence of the bigserial is left');
}

#
# More rows in a tick than there is room for
#
$node->safe_psql('postgres', 'CREATE DATABASE bulk');
$node->safe_psql(
	'bulk', q(
CREATE TABLE account AS
	SELECT i AS id, timestamptz '2026-01-31 12:00+00' + CASE WHEN i > 140000 THEN interval '0.3 s' ELSE '0' END AS created_at
	FROM generate_series(1, 140010) AS i;
));
$node->safe_psql('bulk', map_of('bigserial'));
is( $node->safe_psql(
		'bulk', q(
SET TimeZone = 'UTC';
SELECT scru64_timestamp(new_id), count(DISTINCT new_id), min(scru64_node_ctr(new_id)) - (255 << 16), max(scru64_node_ctr(new_id)) - (255 << 16), min(old_id), max(old_id)
FROM account_map GROUP BY 1 ORDER BY 1)),
	join("\n",
		'2026-01-31 12:00:00+00|65536|0|65535|1|65536',
		'2026-01-31 12:00:00.256+00|65536|0|65535|65537|131072',
		'2026-01-31 12:00:00.512+00|8938|0|8937|131073|140010'),
	'a tick that is too full runs over into the next ones');

#
# From plain/scru64.sql to the extension, and back: tables with foreign keys, partitions and
# views, with 1,000,000 rows each
#
my $many = 1000000;
my %keep = (
	rows => q(SELECT md5(string_agg(id || what, ',' ORDER BY id)) FROM (SELECT id::bigint, what FROM event) AS e),
	references => q(SELECT md5(string_agg(event_id || ' ' || n, ',' ORDER BY n)) FROM (SELECT event_id::bigint, n FROM detail) AS d),
	'rows of partitions' => q(SELECT md5(string_agg(id || line || place, ',' ORDER BY id)) FROM (SELECT id::bigint, line, tableoid::regclass AS place FROM log) AS l),
	'rows of the view' => q(SELECT count(*), min(what), max(what) FROM named_detail),);

sub kept
{
	my @kept = split(/\n/, $node->safe_psql('plain', join('; ', map { $keep{$_} } sort keys %keep)));

	return { map { $_ => shift @kept } sort keys %keep };
}

# The same, had IDs another type and no default
sub dump_beside_types
{
	return dump_of('plain') =~ s/^(    \w+) scru64\b( DEFAULT scru64_generate\(\))?/$1 bigint/gmr =~ s/^(ALTER TABLE ONLY public\.log ATTACH PARTITION \S+).*/$1/mgr;
}

sub run_plain_recipe
{
	my ($table, $name) = @_;

	return is(error_of($node, plain_recipe($table, $name), dbname => 'plain'), '', "$table, $name: no error");
}

$node->safe_psql('postgres', 'CREATE DATABASE plain');
$node->command_ok([ 'psql', '-Xq1', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('plain'), '-f', "$FindBin::RealBin/../../plain/scru64.sql" ], 'plain/scru64.sql');
$node->safe_psql('plain', "SELECT scru64_plain.set_node('43/8')");
foreach my $table ('event', 'log')
{
	my ($block) = grep { $_->{text} =~ /CREATE TABLE $table / } blocks_of($plain);

	$node->safe_psql('plain', join("\n", map { $_->{sql} } examples_of($block)));
}
$node->safe_psql(
	'plain', qq(
DELETE FROM log;
CREATE TABLE detail (
	event_id bigint CONSTRAINT "of event" REFERENCES event ON DELETE CASCADE ON UPDATE RESTRICT DEFERRABLE INITIALLY DEFERRED,
	log_id bigint REFERENCES log,
	n integer
);
DELETE FROM event;
INSERT INTO event SELECT scru64_plain.min('2026-01-02 00:00+00') + i, 'event ' || i FROM generate_series(1, $many) AS i;
INSERT INTO log SELECT scru64_plain.min('2026-01-31 12:00+00') + i * (86400000::bigint << 16) / $many, 'line ' || i FROM generate_series(1, $many) AS i;
INSERT INTO detail SELECT id, NULL, row_number() OVER () FROM event;
UPDATE detail SET log_id = (SELECT min(id) FROM log) WHERE n = 1;
ALTER TABLE event ADD COLUMN previous bigint REFERENCES event;
ALTER TABLE detail ADD CONSTRAINT not_checked FOREIGN KEY (event_id) REFERENCES event NOT VALID;
ALTER TABLE event REPLICA IDENTITY USING INDEX event_pkey, CLUSTER ON event_pkey;
CREATE INDEX log_line ON log (line) WHERE line > '';
CREATE VIEW named_detail AS SELECT event.*, n FROM event JOIN detail ON event.id = event_id;
CREATE VIEW line AS SELECT line FROM log;
CREATE VIEW long_line AS SELECT l.line, id FROM line AS l JOIN log USING (line);
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER nothing BEFORE INSERT ON log FOR EACH ROW EXECUTE FUNCTION nothing();
COMMENT ON TABLE log IS 'partitioned';
COMMENT ON COLUMN log.line IS 'a line';
GRANT SELECT, INSERT ON event, log, long_line TO reader;
ALTER TABLE log OWNER TO reader;
ALTER TABLE log_rest OWNER TO reader;
ANALYZE;
));
my $kept = kept();
my $all = dump_of('plain');

run_plain_recipe($_, 'to the extension') foreach ('event', 'log');
is_deeply(kept(), $kept, 'to the extension: the same rows');
is(dump_beside_types(), $all =~ s/ DEFAULT scru64_plain\.generate\(\)//gr =~ s/^(ALTER TABLE ONLY public\.log ATTACH PARTITION \S+).*/$1/mgr,
	'to the extension: nothing else has changed');
is($node->safe_psql('plain', q(
SET ROLE reader;
INSERT INTO log (line) VALUES ('new') RETURNING tableoid::regclass, pg_typeof(id), scru64_node_ctr(id) >> 16;
DELETE FROM log WHERE line = 'new';
)), 'log_rest|scru64|42', 'to the extension: new rows');
unlike($node->safe_psql('plain', q(EXPLAIN SELECT FROM log WHERE id > timestamptz '2026-02-01 00:00:01+00')), qr/log_2026_01/,
	'to the extension: the bounds of partitions');

my $filenodes = q(SELECT string_agg(relname || relfilenode, ' ' ORDER BY relname) FROM pg_class WHERE relname ~ '^(event|log_.*|detail)$' AND relkind = 'r');
my $before = $node->safe_psql('plain', $filenodes);
run_plain_recipe($_, 'back') foreach ('log', 'event');
is_deeply(kept(), $kept, 'back: the same rows');
is($node->safe_psql('plain', $filenodes), $before, 'back: no table is rewritten');
is(dump_of('plain'), $all, 'back: the same to pg_dump');
is($node->safe_psql('plain', q(SET ROLE reader; INSERT INTO event (what) VALUES ('new') RETURNING id >> 16 & 255)), '43', 'back: new rows');

$node->stop;
done_testing();
