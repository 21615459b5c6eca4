# The recipes of doc/coming-from.md: tables to try them on, the statements as the page and
# the files that it names have them, and what has to be true afterwards.

package Scru64ComingFrom;

use strict;
use warnings;

use Exporter 'import';
use File::Basename;
use Scru64Examples;

our @EXPORT = qw(checks map_beside map_of plain_recipe recipe_in_top recipe_of setup sources step);

my $top = dirname(__FILE__) . '/../..';
my $page = "$top/doc/coming-from.md";

# The kinds of old IDs: how the column is declared, how an ID is made from the number
# i and the time ms of a row, which map is right for it, what the order is.
my %source = (
	bigserial => {
		declared => 'bigserial',
		map => 'bigserial',
	},
	identity => {
		declared => 'bigint GENERATED ALWAYS AS IDENTITY',
		map => 'bigserial',
	},
	uuid7 => {
		declared => 'uuid',
		id => q((lpad(to_hex(ms), 12, '0') || '7' || substr(md5(i::text), 1, 3) || '8' || substr(md5(i::text), 5, 15))::uuid),
		map => 'uuid',
	},
	ulid_uuid => {
		declared => 'uuid',
		id => q((lpad(to_hex(ms), 12, '0') || substr(md5(i::text), 1, 20))::uuid),
		map => 'uuid',
	},
	ulid_text => {
		declared => 'text COLLATE "C"',
		id => q(upper(base32(ms) || substr(md5(i::text), 1, 16))),
		map => 'ulid',
	},
	snowflake => {
		declared => 'bigint',
		id => '(ms - 1288834974657) << 22 | i',
		map => 'snowflake',
	},);

sub sources
{
	my @names = sort keys %source;

	return @names;
}

# Tables account and entry with this many rows each.  A fifth of the accounts are of
# one tick, as a bulk load leaves them.  What is to be kept is in truth_account and
# truth_entry.
sub setup
{
	my ($name, $rows) = @_;
	my $s = $source{$name};
	my $type = $s->{declared} =~ s/serial/int/r =~ s/ .*//r;
	my $id = $s->{id} // 'i';

	return qq(
CREATE FUNCTION base32(ms bigint) RETURNS text LANGUAGE sql IMMUTABLE AS \$\$
	SELECT string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', (ms >> 5 * k & 31)::integer + 1, 1), '' ORDER BY k DESC)
	FROM generate_series(0, 9) AS k
\$\$;
CREATE TABLE account (
	id $s->{declared} PRIMARY KEY,
	created_at timestamptz NOT NULL DEFAULT now(),
	name text NOT NULL
);
CREATE TABLE entry (
	id bigserial PRIMARY KEY,
	account_id $type NOT NULL,
	amount numeric NOT NULL
);
CREATE INDEX entry_account_id_idx ON entry (account_id);
CREATE TABLE truth_account AS
	SELECT i, $id AS id, timestamptz 'epoch' + ms * interval '1 ms' AS created_at, 'account ' || i AS name,
		   row_number() OVER (ORDER BY ms, $id) AS n
	FROM (SELECT i, 1700000000000 + CASE WHEN i % 5 = 0 THEN 123456 ELSE i * 97 + i % 3 END AS ms
		  FROM generate_series(1::bigint, $rows) AS i) AS v;
INSERT INTO account (id, created_at, name)
	) . ($name eq 'identity' ? 'OVERRIDING SYSTEM VALUE' : '') . qq(
	SELECT id, created_at, name FROM truth_account ORDER BY i;
) . ($s->{id} ? '' : "SELECT setval('account_id_seq', $rows);") . qq(
CREATE TABLE truth_entry AS
	SELECT e AS id, a.name FROM generate_series(1, $rows) AS e JOIN truth_account AS a ON a.i = 1 + e::bigint * 7919 % $rows;
INSERT INTO entry (account_id, amount)
	SELECT a.id, 1 FROM truth_entry AS e JOIN truth_account AS a USING (name) ORDER BY e.id;
-- after the rows, which is faster
ALTER TABLE entry ADD CONSTRAINT "entry of account" FOREIGN KEY (account_id) REFERENCES account
	ON UPDATE RESTRICT ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;
ANALYZE;
);
}

# What includes files of the checkout, as seen from anywhere
sub in_top
{
	my ($sql) = @_;

	return $sql =~ s{^\\i (examples/.*)$}{\\i '$top/$1'}gmr;
}

# A recipe of a page, for a psql that was started anywhere
sub recipe_in_top
{
	return in_top(recipe(@_));
}

# A recipe of doc/plain.md, for a table
sub plain_recipe
{
	my ($table, $name) = @_;

	return join("\n", map { recipe_in_top("$top/doc/plain.md", $_) } ($name, 'to the extension, end')) =~ s/^\\set table event$/\\set table $table/mr;
}

# A step of the recipe with little locking, without its comments
sub step
{
	my ($n) = @_;
	my $file = "$top/examples/change_ids/little_locking.sql";

	open(my $steps, '<', $file) or die "could not open $file: $!";
	local $/ = undef;
	my ($sql) = <$steps> =~ /^-- Step $n: .*?\n\n(.*?)(?=^-- Step|\z)/ms or die "$file has no step $n";
	return $sql;
}

# The map: the old IDs of a kind, and the new ones for them
sub map_of
{
	my ($name) = @_;

	return join "\n", map { recipe($page, $_) } ($source{$name}{map}, 'map');
}

# The map, made while rows come that have their new IDs
sub map_beside
{
	my ($name) = @_;
	my $map = map_of($name);

	$map =~ s/FROM account;/FROM account WHERE new_id IS NULL;/ or die "no place in the map for WHERE";
	return $map;
}

# The statements of a recipe: in one go, with little locking (quiet), with the numbers
# as they are, or back again.  What is given besides is run three times: when new rows
# get their IDs, when the map is made, and when the old rows have theirs.
sub recipe_of
{
	my ($name, $variant, $meanwhile) = @_;

	$meanwhile //= '';
	if ($variant eq 'in one go')
	{
		return join "\n", recipe($page, 'begin'), map_of($name), map { recipe_in_top($page, $_) } ('function', 'change');
	}
	elsif ($variant eq 'numbers')
	{
		return join "\n", map { recipe_in_top($page, $_) } ('begin', 'numbers', 'change');
	}
	elsif ($variant eq 'quiet')
	{
		return join "\n", step(1), $meanwhile, map_beside($name), $meanwhile, step(2), $meanwhile, map { step($_) } 3 .. 5;
	}
	elsif ($variant eq 'back')
	{
		return recipe_in_top($page, 'back');
	}
	die "there is no recipe \"$variant\"";
}

# Queries, and what each has to return, for this many rows.  The node spec is 42/8.
sub checks
{
	my ($variant, $rows) = @_;
	my @checks = (
		'rows of account' => [ 'SELECT count(*) FROM account JOIN truth_account USING (name)', $rows ],
		'rows of entry' => [ 'SELECT count(*) FROM entry JOIN truth_entry USING (id)', $rows ],
		'references' => [
			'SELECT count(*) FROM truth_entry AS t JOIN entry AS e USING (id)
			 JOIN account AS a ON a.id = e.account_id AND a.name = t.name', $rows ],
		'none without its account' => [
			'SELECT count(*) FROM entry AS e LEFT JOIN account AS a ON a.id = e.account_id WHERE a.id IS NULL', 0 ],
		'different IDs' => [ 'SELECT count(*) - count(DISTINCT id) FROM account', 0 ],
		'type, not null' => [
			q(SELECT string_agg(attrelid::regclass || '.' || attname || ' ' || atttypid::regtype || ' ' || attnotnull, ', ' ORDER BY attrelid::regclass::text)
			  FROM pg_attribute WHERE attrelid = 'account'::regclass AND attname = 'id' OR attrelid = 'entry'::regclass AND attname = 'account_id'),
			'account.id scru64 true, entry.account_id scru64 true' ],
		'constraints' => [
			q(SELECT string_agg(conname || ' ' || convalidated, ', ' ORDER BY conname COLLATE "C")
			  FROM pg_constraint WHERE conrelid IN ('account'::regclass, 'entry'::regclass) AND contype IN ('p', 'f', 'c')),
			'account_pkey true, entry of account true, entry_pkey true' ],
		'the foreign key' => [
			q(SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'entry of account'),
			'FOREIGN KEY (account_id) REFERENCES account(id) ON UPDATE RESTRICT ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED' ],
		'valid indexes' => [
			q(SELECT string_agg(indexrelid::regclass || ' ' || indisvalid, ', ' ORDER BY indexrelid::regclass::text COLLATE "C")
			  FROM pg_index WHERE indrelid IN ('account'::regclass, 'entry'::regclass)),
			'account_pkey true, entry_account_id_idx true, entry_pkey true' ],
		'nothing else is left' => [
			q(SELECT (SELECT count(*) FROM pg_trigger WHERE tgrelid = 'entry'::regclass AND NOT tgisinternal)
				   + (SELECT count(*) FROM pg_proc WHERE proname = 'entry_new_account_id')
				   + (SELECT count(*) FROM pg_attribute WHERE attname ~ 'new' AND attrelid IN ('account'::regclass, 'entry'::regclass))), 0 ],
		'default' => [
			q(WITH new AS (INSERT INTO account (name) VALUES ('new') RETURNING id)
			  SELECT scru64_node_ctr(id) >> 16, id > (SELECT max(id) FROM account) FROM new), '42|t' ],
		'reference to a new row' => [
			q(INSERT INTO entry (account_id, amount) SELECT id, 1 FROM account WHERE name = 'new' RETURNING amount), 1 ],);

	if ($variant eq 'numbers')
	{
		push @checks,
		  'same number' => [ 'SELECT count(*) FROM account AS a JOIN truth_account AS t USING (name) WHERE a.id::bigint = t.id', $rows ];
		return @checks;
	}

	# A fifth is of one tick.  A tick has room for 65,536, and those too many are late.
	push @checks, (
		'order' => [
			'SELECT count(*) FROM (SELECT t.n, row_number() OVER (ORDER BY a.id) AS new_n
								   FROM account AS a JOIN truth_account AS t USING (name)) AS v WHERE n <> new_n', 0 ],
		'node' => [
			'SELECT count(*) FROM account AS a JOIN truth_account AS t USING (name) WHERE scru64_node_ctr(a.id) >> 16 = 255', $rows ],
		'none too early' => [
			q(SELECT count(*) FROM account AS a JOIN truth_account AS t USING (name)
			  WHERE scru64_timestamp(a.id) <= t.created_at - interval '256 ms'), 0 ],
		'none late but where a tick was too full' => [
			q(SELECT count(*) FROM account AS a JOIN truth_account AS t USING (name),
				(SELECT scru64_timestamp(tick) AS start, count / 65536 * interval '256 ms' AS length
				 FROM (SELECT scru64_from_parts(created_at, 0) AS tick, count(*) FROM truth_account GROUP BY tick) AS v
				 ORDER BY count DESC LIMIT 1) AS fullest
			  WHERE scru64_timestamp(a.id) > t.created_at
				  AND (t.created_at < start OR t.created_at >= start + length)), 0 ],
		'late by no more than 256 ms for each 65,536 rows' => [
			q(SELECT coalesce(max(scru64_timestamp(a.id) - t.created_at), interval '0') <= interval '256 ms' *
				((SELECT max(count) FROM (SELECT count(*) FROM truth_account GROUP BY scru64_from_parts(created_at, 0)) AS v) / 65536)
			  FROM account AS a JOIN truth_account AS t USING (name)
			  WHERE scru64_timestamp(a.id) > t.created_at), 't' ],);
	return @checks;
}

1;
