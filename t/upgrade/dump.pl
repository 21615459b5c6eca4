# pg_dump and restore, as a whole and in parts: what is in a database that uses the type
# everywhere, and what it is made of, are the same afterwards, and go on working.

use strict;
use warnings;
use Scru64Everything;
use Scru64Test;

plan skip_all => 'there is no pg_dump' if !has_program('pg_dump');

my $node = new_node('main');
$node->append_conf('postgresql.conf', "scru64.node_spec = '1/8'");
$node->start;

# What a dump has, without what is random in it (a key of psql's) and the name of
# the database.
sub dump_of
{
	my ($db) = @_;
	my $file = PostgreSQL::Test::Utils::tempdir . "/$db.txt";

	$node->command_ok([ 'pg_dump', '--create', '-f', $file, $node->connstr($db) ], "$db can be dumped");
	my $text = slurp_file($file);
	$text =~ s/^\\(un)?restrict .*\n//mg;
	$text =~ s/\b\Q$db\E\b/DATABASE/g;
	return $text;
}

# What is to work in a database: index and pruning, and new IDs above the old.  It
# leaves no trace.
sub check_use
{
	my ($db, $name) = @_;

	is( $node->safe_psql($db, qq(
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT FROM part WHERE id >= timestamptz '2026-01-31 00:00+00';
)) =~ s/ using \w+//r =~ s/\n +Index Cond.*//r,
		'Index Only Scan on part_new part',
		"$name: the index is used, and the partition that is not needed pruned");
	is( $node->safe_psql($db, qq(
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
	if (has_gist($node))
	{
		my $refused = 'conflicting key value violates exclusion constraint';
		my %error = (booking => "$refused \"booking_id_during_excl\"");

		$error{price} = "$refused \"price_pkey\"" if $node->pg_version >= 18;
		foreach my $table (sort keys %error)
		{
			like(error_of($node, "INSERT INTO $table SELECT * FROM $table LIMIT 1", dbname => $db),
				qr/$error{$table}/, "$name: $table excludes what it did");
		}
	}
	return;
}

create_everything($node, 'source');
# which pg_upgrade cannot restore
$node->safe_psql('source', q(CREATE DOMAIN by_cast AS scru64 CHECK (VALUE::bigint > 0 AND VALUE::timestamptz >= '2026-01-01 00:00+00')));
my $before = dump_of('source');
my $answers = answers_of($node, 'source');
ok($before =~ /^COPY public\.typed .*\n\w{12}\t\(\w{12},\w{12}\)\t\[\w{12},\w{12}\)\n/m, 'the dump has IDs as text');
ok($before =~ /^REVOKE ALL ON FUNCTION pg_catalog\.scru64_generate\(\) FROM PUBLIC;\nGRANT ALL ON FUNCTION pg_catalog\.scru64_generate\(\) TO everything_app;$/m,
	'and who may generate');

# Dump, and restore into a database that may have something already.
sub restore
{
	my ($name, $db, $format, @options) = @_;
	my $file = PostgreSQL::Test::Utils::tempdir . '/' . $name =~ s/\W+/_/gr;
	my @jobs = $format eq 'plain' ? () : ('-j', 2);

	$node->command_ok(
		[
			'pg_dump', "--format=$format", '-f', $file, @options,
			($format eq 'directory' ? @jobs : ()), $node->connstr('source')
		],
		"$name: dumped");
	$node->command_ok(
		$format eq 'plain'
		? [ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $file, '-d', $node->connstr($db) ]
		: [ 'pg_restore', '--exit-on-error', @jobs, '-d', $node->connstr($db), $file ],
		"$name: restored");
	return;
}

foreach my $way ([ 'directory' ], [ 'plain', '--schema-only', '--data-only' ])
{
	my ($format, @parts) = @{$way};
	my $db = @parts ? 'in_parts' : $format;

	$node->safe_psql('postgres', qq(
CREATE DATABASE $db TEMPLATE template0;
ALTER DATABASE $db SET scru64.node_spec = '2/8';
));
	restore($db, $db, $format) if !@parts;
	restore("$db, $_", $db, $format, $_) foreach (@parts);
	# which is in neither part
	$node->safe_psql($db, q(SELECT format('REFRESH MATERIALIZED VIEW %s', oid::regclass) FROM pg_class WHERE relkind = 'm' \gexec)) if @parts;
	same_dump(dump_of($db), $before, "$db: it is what it was");
	is(answers_of($node, $db), $answers, "$db: it answers as it did");
	check_use($db, $db);
}
check_use('source', 'not dumped');

$node->stop;
done_testing();
