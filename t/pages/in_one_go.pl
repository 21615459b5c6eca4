# examples/change_ids/in_one_go.sql changes all that depends on an ID, or lists by name what it
# cannot change, and then changes nothing.

use strict;
use warnings;
use Scru64ComingFrom;
use Scru64Test;

my $node = new_node('main');
my $databases = 0;
my $has_pg_dump = has_program('pg_dump');

$node->append_conf('postgresql.conf', qq(
fsync = off
client_min_messages = warning
scru64.node_spec = '42/8'
));
$node->start;
$node->safe_psql('template1', 'CREATE EXTENSION scru64');
$node->safe_psql('postgres', 'CREATE ROLE reader LOGIN');

sub dump_of
{
	my ($db) = @_;
	my ($dump) = $has_pg_dump ? run_command([ 'pg_dump', '-d', $node->connstr($db) ]) : '';

	# newer ones write a random word
	return $dump =~ s/^\\.*\n//mgr;
}

# A database with 20 accounts, whose IDs are declared so, with what else is given, and accounts
# partitioned so
sub new_database
{
	my ($id, $sql, $partition) = @_;
	my $db = 'db' . ++$databases;

	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql($db, qq(
CREATE TABLE account (id $id, created_at timestamptz NOT NULL DEFAULT '2026-01-31 12:00+00', name text NOT NULL) @{[ $partition // '' ]};
$sql
INSERT INTO account (name) SELECT 'account ' || i FROM generate_series(1, 20) AS i;
));
	return $db;
}

sub change
{
	my ($db, $recipe, $before, $after) = @_;
	my $sql = recipe_of('bigserial', $recipe // 'in one go') =~ s/^(\\i .*)/$before\n$1\n$after/mr;

	# only a superuser can analyze all tables
	$sql =~ s/^ANALYZE;$//m;

	# as a .psqlrc may have it: no statement runs after one that failed
	return error_of($node, $sql, dbname => $db, on_error_stop => 0, extra_params => [ '-b', '-v', 'ON_ERROR_ROLLBACK=on' ]);
}

# All that is listed by one run, in any order
sub is_listed
{
	my ($db, $name, @lines) = @_;
	my $dump = dump_of($db);
	my $error = change($db, 'in one go', '', '');
	my ($list, $hint) = $error =~ /P0001: these objects cannot be changed with the ID\nDETAIL:  (.*?)\nHINT:  (.*?)\n/s;

	# PostgreSQL 19 says more of each operator
	is_deeply([ sort grep { !/^No operator of that name/ } split /\n/, $list // '' ], [ sort @lines ], "$name: the list") or diag($list // 'no list');
	like($hint, qr/^Nothing has changed\. ROLLBACK/, "$name: the hint");
	unlike($error, qr/DECLARE/, "$name: psql -b shows no code");
	is(dump_of($db), $dump, "$name: nothing has changed");
	return;
}

sub is_changed
{
	my ($db, $name, $check, $expected, @change) = @_;

	is(change($db, $change[0], $change[1] // '', $change[2] // ''), '', "$name: no error");
	is($node->safe_psql($db, $check), $expected, $name);
	return;
}

#
# What only PostgreSQL knows: a trial finds it.  Lago and Danbooru have such views and indexes.
#
{
	my $db = new_database(
		'bigserial PRIMARY KEY', q(
CREATE EXTENSION btree_gin;
CREATE EXTENSION btree_gist;
CREATE TABLE note (owner_id bigint, account_id bigint REFERENCES account, tags text[], during tstzrange);
CREATE VIEW joined AS SELECT n.* FROM note AS n JOIN account AS a ON a.id = n.owner_id;
CREATE VIEW "of joined" AS SELECT * FROM joined;
CREATE VIEW unioned AS SELECT id FROM account UNION ALL SELECT owner_id FROM note;
CREATE VIEW cased AS SELECT CASE WHEN owner_id > 0 THEN owner_id ELSE account_id END AS id FROM note;
CREATE VIEW good AS SELECT a.id, a.name, count(*) FROM account AS a JOIN note ON account_id = a.id GROUP BY a.id;
CREATE INDEX with_gin ON note USING gin (account_id, tags);
CREATE INDEX with_expression ON account ((id % 16));
CREATE INDEX with_predicate ON note (owner_id) WHERE account_id > 4;
CREATE STATISTICS with_statistics ON (id % 3), name FROM account;
ALTER TABLE note ADD CONSTRAINT excluded EXCLUDE USING gist (account_id WITH =, during WITH &&);
ALTER TABLE note ADD CONSTRAINT excluded_where EXCLUDE USING gist (during WITH &&) WHERE (account_id IS NOT NULL);
ALTER TABLE note ADD CONSTRAINT excluded_text EXCLUDE ((account_id::text) WITH =);
ALTER TABLE note ADD CONSTRAINT excluded_number EXCLUDE ((account_id % 2) WITH =) WHERE (owner_id > 1);
ALTER TABLE account ADD CONSTRAINT positive CHECK (id > 0);
INSERT INTO account (name) VALUES ('first');
INSERT INTO note (owner_id, account_id) VALUES (1, 1);
));
	my @indexes = (
		'ALTER TABLE note ADD CONSTRAINT excluded EXCLUDE USING gist (account_id WITH =, during WITH &&): data type scru64 has no default operator class for access method "gist"',
		'CREATE INDEX with_gin ON public.note USING gin (account_id, tags): data type scru64 has no default operator class for access method "gin"',);
	my @others = (
		'ALTER TABLE account ADD CONSTRAINT positive CHECK ((id > 0)): operator does not exist: scru64 > integer',
		'ALTER TABLE note ADD CONSTRAINT excluded_number EXCLUDE USING btree (((account_id % (2)::bigint)) WITH =) WHERE ((owner_id > 1)): operator does not exist: scru64 % bigint',
		'CREATE INDEX with_expression ON public.account USING btree (((id % (16)::bigint))): operator does not exist: scru64 % bigint',
		'CREATE INDEX with_predicate ON public.note USING btree (owner_id) WHERE (account_id > 4): operator does not exist: scru64 > integer',
		'CREATE STATISTICS public.with_statistics ON name, (id % 3::bigint) FROM account: operator does not exist: scru64 % bigint',
		'CREATE VIEW public.cased: CASE types scru64 and bigint cannot be matched',
		'CREATE VIEW public.joined: operator does not exist: scru64 = bigint',
		'CREATE VIEW public.unioned: UNION types scru64 and bigint cannot be matched',);

	is_listed($db, 'views and indexes', @indexes, @others);
	$node->safe_psql($db, 'CREATE EXTENSION scru64_gin; CREATE EXTENSION scru64_gist');
	is_listed($db, 'with scru64_gin and scru64_gist', @others);
	is_changed(
		$db, 'after DROP', q(SELECT string_agg(concat_ws(' ', a.name, n.account_id = a.id, good.count), ' ') FROM note AS n JOIN account AS a ON a.id = n.account_id JOIN good USING (id)),
		'first t 1', 'in one go', q(
DROP VIEW joined, "of joined", unioned, cased;
DROP INDEX with_expression, with_predicate;
DROP STATISTICS with_statistics;
ALTER TABLE note DROP CONSTRAINT excluded_number;
ALTER TABLE account DROP CONSTRAINT positive;), q(CREATE VIEW joined AS SELECT * FROM note;));
	is($node->safe_psql($db, q(SELECT string_agg(conname, ' ' ORDER BY conname) FROM pg_constraint WHERE contype = 'x')),
		'excluded excluded_text excluded_where', 'the other exclusion constraints');
}

#
# What the catalogs know
#
{
	my $db = new_database(
		'bigserial PRIMARY KEY', q(
CREATE DOMAIN number AS bigint CHECK (VALUE > 0);
CREATE TABLE entry (account_id number REFERENCES account, other_id bigint DEFAULT 1 REFERENCES account,
	third_id bigint GENERATED ALWAYS AS IDENTITY REFERENCES account, twice bigint GENERATED ALWAYS AS (other_id * 2) STORED);
CREATE MATERIALIZED VIEW kept AS SELECT id FROM account;
CREATE VIEW viewed AS SELECT id, name FROM account;
ALTER VIEW viewed ALTER COLUMN name SET DEFAULT 'nobody';
CREATE RULE ruled AS ON DELETE TO account WHERE OLD.id = 0 DO INSTEAD NOTHING;
CREATE POLICY own ON account USING (id > 0);
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER triggered BEFORE UPDATE OF id ON account FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE FUNCTION one() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT id FROM account WHERE name = 'account 1'; END;
CREATE PUBLICATION published FOR TABLE account WHERE (id > 0);
CREATE TABLE p_list (account_id bigint REFERENCES account) PARTITION BY LIST (account_id);
ALTER TABLE p_list ENABLE ROW LEVEL SECURITY;
CREATE TABLE p_range (tenant bigint, account_id bigint REFERENCES account) PARTITION BY RANGE (tenant, account_id);
CREATE TABLE p_range_1 PARTITION OF p_range FOR VALUES FROM (1, 1) TO (1, 9);
CREATE TABLE p_hash (account_id bigint REFERENCES account, n bigint GENERATED ALWAYS AS IDENTITY) PARTITION BY HASH (account_id);
CREATE TABLE p_hash_0 PARTITION OF p_hash FOR VALUES WITH (MODULUS 1, REMAINDER 0);
CREATE TABLE p_both (account_id bigint REFERENCES account, other_id bigint) PARTITION BY LIST (account_id);
CREATE STATISTICS counted ON account_id, other_id FROM p_both;
CREATE PUBLICATION published_too FOR TABLE p_both;
ALTER TABLE p_both ADD CONSTRAINT positive CHECK (account_id > 0) NOT VALID;
ALTER TABLE p_hash REPLICA IDENTITY FULL;
CREATE TRIGGER cloned BEFORE UPDATE OF account_id ON p_range FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE TABLE p_top (day date, account_id bigint REFERENCES account) PARTITION BY LIST (day);
CREATE TABLE p_sub PARTITION OF p_top FOR VALUES IN ('2026-01-31') PARTITION BY LIST (account_id);
INSERT INTO pg_subscription_rel (srsubid, srrelid, srsubstate) VALUES (1, 'p_both'::regclass, 'r');
CREATE TABLE parent (other_id bigint);
CREATE TABLE child () INHERITS (parent);
ALTER TABLE child ADD FOREIGN KEY (other_id) REFERENCES account;
));
	is_listed(
		$db, 'the catalogs',
		'column child.other_id is inherited from parent.other_id, which does not change',
		'column entry.account_id has the domain number: change its type to the type of the domain',
		'column entry.third_id refers to the ID and is an identity: drop the identity',
		'default value for column name of view viewed',
		'default value for column other_id of table entry uses entry.other_id',
		'default value for column twice of table entry uses entry.other_id',
		'function one() uses account.id',
		'policy own on table account uses account.id',
		'publication of table account in publication published uses account.id',
		'rule _RETURN on materialized view kept uses account.id',
		'rule ruled on table account uses account.id',
		'table p_both is partitioned by p_both.account_id and has a CHECK that is NOT VALID',
		'table p_both is partitioned by p_both.account_id and has a place in a publication',
		'table p_both is partitioned by p_both.account_id and has a place in a subscription',
		'table p_both is partitioned by p_both.account_id and has extended statistics',
		'table p_hash is partitioned by p_hash.account_id and has HASH partitions, which differ for the new IDs: move its rows into a new table',
		'table p_hash is partitioned by p_hash.account_id and has a REPLICA IDENTITY',
		'table p_hash is partitioned by p_hash.account_id and has another column that is an identity',
		'table p_list is partitioned by p_list.account_id and has row security or policies',
		'table p_range is partitioned by p_range.account_id and has another column in its partition key',
		'table p_sub is partitioned by p_sub.account_id and has a parent: it is itself a partition',
		'trigger cloned on table p_range uses p_range.account_id',
		'trigger triggered on table account uses account.id',);
}

#
# Foreign keys of partitions and of tables that inherit, beside those of their parents
#
{
	my $db = new_database(
		'bigserial PRIMARY KEY', q(
CREATE TABLE parent (account_id bigint REFERENCES account);
CREATE TABLE child (account_id bigint REFERENCES account) INHERITS (parent);
CREATE TABLE p_day (day date, account_id bigint REFERENCES account) PARTITION BY LIST (day);
CREATE TABLE p_day_1 PARTITION OF p_day (FOREIGN KEY (account_id) REFERENCES account ON DELETE CASCADE) FOR VALUES IN ('2026-01-31');
CREATE TABLE p_id (account_id bigint REFERENCES account) PARTITION BY LIST (account_id);
CREATE TABLE p_id_1 PARTITION OF p_id (FOREIGN KEY (account_id) REFERENCES account ON DELETE CASCADE) FOR VALUES IN (1);
));
	$node->safe_psql($db, q(INSERT INTO child VALUES (1); INSERT INTO p_day VALUES ('2026-01-31', 1); INSERT INTO p_id VALUES (1)));
	is_changed($db, 'foreign keys of children', q(
SELECT string_agg(concat_ws(' ', v.tableoid::regclass, name), ', ' ORDER BY v.tableoid::regclass::text)
FROM (SELECT tableoid, account_id FROM parent UNION ALL SELECT tableoid, account_id FROM p_day UNION ALL SELECT tableoid, account_id FROM p_id) AS v
	JOIN account ON id = account_id), 'child account 1, p_day_1 account 1, p_id_1 account 1');
	is($node->safe_psql($db, q(SELECT string_agg(DISTINCT conrelid::regclass::text, ' ') FROM pg_constraint WHERE confdeltype = 'c')), 'p_day_1 p_id_1',
		'foreign keys of children: they are still there');
}

#
# Names in capitals
#
{
	my $db = new_database('bigserial PRIMARY KEY', q(ALTER TABLE account RENAME TO "Account"; ALTER TABLE "Account" RENAME id TO "userId"; CREATE VIEW account AS SELECT * FROM "Account";));
	my $sql = recipe_of('bigserial', 'numbers') =~ s/^\\set table account$/\\set table '"Account"'/mr =~ s/^\\set column id$/\\set column userId/mr;

	is(error_of($node, $sql, dbname => $db), '', 'names in capitals: no error');
	is($node->safe_psql($db, q(SELECT count(*), min("userId") FROM account)), '20|000000000001', 'names in capitals');
}

#
# A table that is created again has its owner's privileges and its triggers as they were.
#
{
	my $db = new_database(
		'bigserial PRIMARY KEY', q(
CREATE TABLE account_1 PARTITION OF account DEFAULT;
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER always BEFORE UPDATE ON account FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE TRIGGER disabled BEFORE UPDATE ON account FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE TRIGGER replica AFTER UPDATE ON account EXECUTE FUNCTION nothing();
CREATE TRIGGER mixed BEFORE UPDATE ON account FOR EACH ROW EXECUTE FUNCTION nothing();
ALTER TABLE account ENABLE ALWAYS TRIGGER always, DISABLE TRIGGER disabled, ENABLE REPLICA TRIGGER replica, DISABLE TRIGGER mixed;
ALTER TABLE account_1 ENABLE TRIGGER mixed, DISABLE TRIGGER always;
CREATE VIEW viewed AS SELECT id FROM account;
GRANT CREATE ON SCHEMA public TO reader;
ALTER TABLE account OWNER TO reader;
ALTER VIEW viewed OWNER TO reader;
REVOKE TRUNCATE, TRIGGER ON account FROM reader;
REVOKE ALL ON viewed FROM reader;
), 'PARTITION BY RANGE (id)');
	my $state = q(
SELECT string_agg(concat_ws(' ', tgrelid::regclass, tgname, tgenabled), ', ' ORDER BY tgrelid::regclass::text, tgname) FROM pg_trigger WHERE NOT tgisinternal;
SELECT oid::regclass, relacl FROM pg_class WHERE oid IN ('account'::regclass, 'viewed'::regclass) ORDER BY oid::regclass::text);
	my $before = $node->safe_psql($db, $state);

	is_changed($db, 'privileges and triggers', $state, $before, 'numbers');
}

#
# Bounds of partitions
#
my $same_rows = q(SELECT count(*), count(DISTINCT id), string_agg(DISTINCT pg_typeof(id)::text, ' ') FROM account);

# The page's own account, partitioned by the ID; its sequences are no obstacle.
{
	my $db = new_database(
		'bigserial PRIMARY KEY CHECK (id IS NOT NULL), other bigserial', q(
CREATE TABLE account_1 PARTITION OF account FOR VALUES FROM (MINVALUE) TO (11);
CREATE TABLE account_2 PARTITION OF account FOR VALUES FROM (11) TO (MAXVALUE);
CREATE TABLE entry (account_id bigint REFERENCES account);
INSERT INTO account (name) VALUES ('first');
INSERT INTO entry VALUES (1);
CREATE VIEW account_1_ids AS SELECT id FROM account_1;
ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO reader;
), 'PARTITION BY RANGE (id)');
	# later accounts are older
	$node->safe_psql($db, q(UPDATE account SET created_at = created_at - id * interval '1 minute'));
	like(change($db, 'in one go', '', ''), qr/23514: partition constraint of relation "account_\d" is violated by some row/, 'bigserial, RANGE, another order: an error');
	is(error_of($node, recipe_of('bigserial', 'in one go') =~ s/created_at, id/id/r, dbname => $db), '', 'bigserial, RANGE, in the order of id: no error');
	is($node->safe_psql($db, $same_rows), '21|21|scru64', 'bigserial, RANGE');
	is($node->safe_psql($db, q(SELECT tableoid::regclass, count(*) FROM account GROUP BY 1 ORDER BY 1)), "account_1|10\naccount_2|11", 'bigserial, RANGE: the partitions');
	is($node->safe_psql($db, q(SELECT pg_get_serial_sequence('account', 'id'), pg_get_serial_sequence('account', 'other'))),
		'public.account_id_seq|public.account_other_seq', 'bigserial, RANGE: the sequences');
	is($node->safe_psql($db, q(SELECT name FROM entry JOIN account ON account_id = id)), 'first', 'bigserial, RANGE: the foreign key');
	is($node->safe_psql($db, q(INSERT INTO account (name) VALUES ('new') RETURNING tableoid::regclass, other)), 'account_2|22', 'bigserial, RANGE: a new row');
	is($node->safe_psql($db, q(SELECT has_table_privilege('reader', 'account', 'SELECT'), has_table_privilege('reader', 'account_1_ids', 'SELECT'))), 'f|f',
		'bigserial, RANGE: default privileges grant nothing');
}

# Round bounds, bounds of tables that refer to the ID, and of rows that are gone or not yet there
foreach my $type ('bigint', 'integer')
{
	my $db = new_database(
		"$type GENERATED ALWAYS AS IDENTITY PRIMARY KEY", qq(
CREATE TABLE list (account_id $type REFERENCES account) PARTITION BY LIST (account_id);
CREATE TABLE list_1 PARTITION OF list FOR VALUES IN (1, 2, NULL);
CREATE TABLE list_999 PARTITION OF list FOR VALUES IN (999);
CREATE TABLE round (account_id $type REFERENCES account) PARTITION BY RANGE (account_id);
CREATE TABLE round_0 PARTITION OF round FOR VALUES FROM (0) TO (10);
CREATE TABLE round_10 PARTITION OF round FOR VALUES FROM (10) TO (1000);
));
	my $bound = sub { 'pg_temp.new_bound(' . ($type eq 'bigint' ? "'$_[0]'" : $_[0]) . ')' };

	is_listed(
		$db, "$type, bounds without a row",
		'ALTER TABLE list ATTACH PARTITION list_999 FOR VALUES IN (' . $bound->(999) . '): the bound 999 has no new ID',
		'ALTER TABLE round ATTACH PARTITION round_0 FOR VALUES FROM (' . $bound->(0) . ') TO (' . $bound->(10) . '): the bound 0 has no new ID',
		'ALTER TABLE round ATTACH PARTITION round_10 FOR VALUES FROM (' . $bound->(10) . ') TO (' . $bound->(1000) . '): the bound 1000 has no new ID',);
	$node->safe_psql($db, 'INSERT INTO list VALUES (1), (2), (NULL); INSERT INTO round SELECT id FROM account');
	is_changed($db, "$type, bounds in the map", q(SELECT tableoid::regclass, count(*), count(account_id) FROM round GROUP BY 1 ORDER BY 1), "round_0|9|9\nround_10|11|11",
		'in one go', q(
INSERT INTO account_map (old_id, new_id) VALUES (0, '000000000000'), (999, '000000000999'), (1000, scru64_min('2027-01-01 00:00+00'));
));
	is($node->safe_psql($db, q(SELECT tableoid::regclass, count(*) FROM list GROUP BY 1)), 'list_1|3', "$type, bounds in the map: rows of LIST");
	like(error_of($node, q(INSERT INTO list VALUES ((SELECT id FROM account WHERE name = 'account 3'))), dbname => $db),
		qr/no partition of relation "list" found for row/, "$type, bounds in the map: no other row");
}

# Where numbers stay as they are, all bounds do, and HASH.
{
	my $db = new_database(
		'bigserial PRIMARY KEY', q(
CREATE TABLE account_0 PARTITION OF account FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE account_1 PARTITION OF account FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE entry (account_id bigint REFERENCES account) PARTITION BY RANGE (account_id);
CREATE TABLE entry_0 PARTITION OF entry FOR VALUES FROM (0) TO (1000);
), 'PARTITION BY HASH (id)');
	my $rows = q(SELECT md5(string_agg(concat_ws(' ', tableoid::regclass, id::bigint), ',' ORDER BY id)) FROM account);
	my $before = $node->safe_psql($db, $rows);

	is_changed($db, 'HASH and numbers', $rows, $before, 'numbers');
	is(error_of($node, recipe_of('bigserial', 'back'), dbname => $db), '', 'HASH and numbers, back: no error');
	is($node->safe_psql($db, $rows), $before, 'HASH and numbers, back');
}

# Integer IDs with foreign keys of bigint, as in Rails applications older than 5.1; by the owner of
# the tables, who is no superuser
foreach my $recipe ('in one go', 'numbers')
{
	my $db = new_database(
		'serial PRIMARY KEY', q(
CREATE TABLE entry (account_id bigint REFERENCES account, old_id integer REFERENCES account, name text);
));

	$node->safe_psql($db, q(
INSERT INTO entry SELECT id, 21 - id, name FROM account;
GRANT CREATE ON SCHEMA public TO reader;
ALTER TABLE account OWNER TO reader;
ALTER TABLE entry OWNER TO reader;
));
	local $ENV{PGUSER} = 'reader';
	is_changed($db, "integer IDs, $recipe", q(
SELECT count(*) FROM entry AS e JOIN account AS a ON a.id = account_id AND a.name = e.name JOIN account AS o ON o.id = old_id
WHERE split_part(a.name, ' ', 2)::integer + split_part(o.name, ' ', 2)::integer = 21), '20', $recipe);
}

$node->stop;
done_testing();
