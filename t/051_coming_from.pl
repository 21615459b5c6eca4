# The recipes of doc/coming-from.md keep rows, references, order and time.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Scru64ComingFrom;
use Scru64Test;

my $rows = 10000;
my $node = new_node('main');

# nobody is asked to survive a crash
$node->append_conf('postgresql.conf', qq(
fsync = off
client_min_messages = warning
log_min_messages = debug1
));
$node->start;
$node->safe_psql('template1', 'CREATE EXTENSION scru64');
$node->safe_psql('postgres', "ALTER ROLE ALL SET scru64.node_spec = '42/8'");

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
	my ($ret, $out, $err) = $node->psql($db, recipe_of($source, $variant, $meanwhile), on_error_stop => 1);
	is($err, '', "$source, $variant: no error");

	# each prints a line
	my @checks = checks($variant, $rows);
	my @results = split /\n/, $node->safe_psql($db, join(";\n", map { ref $_ ? $_->[0] : () } @checks));
	while (my ($name, $check) = splice(@checks, 0, 2))
	{
		is(shift @results, $check->[1], "$source, $variant: $name");
	}
	($ret, $out, $err) = $node->psql($db, q(INSERT INTO entry (account_id, amount) VALUES ('000000000000', 1)));
	like($err, qr/violates foreign key constraint "entry_account_id_fkey"/, "$source, $variant: the foreign key holds");
	return $db;
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

#
# In one go, and the numbers as they are
#
try_recipe('identity', 'numbers');
foreach my $source (grep { $_ !~ /uuid7|identity/ } sources())
{
	my $db = try_recipe($source, 'in one go');
	next if $source ne 'bigserial';

	# And back: the tables are not rewritten.
	my $files = q(SELECT pg_relation_filenode('account'), pg_relation_filenode('entry'));
	my $before = $node->safe_psql($db, $files);
	my $ids = $node->safe_psql($db, q(SELECT md5(string_agg(id::bigint || name, ',' ORDER BY id)) FROM account));
	my ($ret, $out, $err) = $node->psql($db, recipe_of($source, 'back'), on_error_stop => 1);
	is($err, '', 'back: no error');
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

$node->stop;
done_testing();
