# pg_dump and restore, in every format: what is in a database that uses the type
# everywhere, and what it is made of, are the same afterwards, and go on working.

use FindBin;
use lib "$FindBin::RealBin/../lib";
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
	my ($db, $name, $schema) = @_;

	is( $node->safe_psql($db, qq(
SET search_path = public, $schema;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT FROM part WHERE id >= timestamptz '2026-01-31 00:00+00';
)) =~ s/ using \w+//r =~ s/\n +Index Cond.*//r,
		'Index Only Scan on part_new part',
		"$name: the index is used, and the partition that is not needed pruned");
	is( $node->safe_psql($db, qq(
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

my %formats = (public => [qw(plain custom directory)], hidden => ['custom']);
foreach my $schema (sort keys %formats)
{
	my $source = "source_$schema";

	# once with the extension in public, and once where no search_path finds it
	create_everything($node, $source, $schema);
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
		same_dump(dump_of($db), $before, "$name: it is what it was");
		check_use($db, $name, $schema);
	}
	check_use($source, "$schema, not dumped", $schema);
}

$node->stop;
done_testing();
