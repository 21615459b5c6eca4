# pg_upgrade from older major versions, one after the other: what is in a database
# that uses the type everywhere is the same afterwards, and the indexes are valid;
# and what becomes of the ceiling and the settings, with the recipe of doc/operating.md and
# without.
#
# OLD_BINDIRS has the folders of the older versions' programs, oldest first.  The
# extension is installed for each.

use strict;
use warnings;
use File::Basename;
use FindBin;
use Scru64Everything;
use Scru64Examples;
use Scru64Server;
use Scru64Test;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;

my @bindirs = split(/ /, $ENV{OLD_BINDIRS} || '');
plan skip_all => 'OLD_BINDIRS names no older version' if !@bindirs;

my ($bindir) = run_command([ $ENV{PG_CONFIG} || 'pg_config', '--bindir' ]);
push @bindirs, $bindir;

# A server of the version of these programs.
sub new_server
{
	my ($name, $bin) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name, install_path => dirname($bin));

	# whose default differs between versions
	$node->init(extra => ['--data-checksums']);
	$node->append_conf('postgresql.conf', "autovacuum = off\nwal_level = replica");
	return $node;
}

# As the pages have it.  IDs may be so far ahead that only the ceiling, or the allowance, can keep
# them from coming again.
sub set_node
{
	my ($node) = @_;

	$node->safe_psql('postgres', q(
LOAD 'scru64';
ALTER SYSTEM SET scru64.node_spec = '1/8';
ALTER SYSTEM SET scru64.rollback_allowance = '1h';
));
	$node->restart;
	return;
}

# What pg_upgrade leaves behind
my $recipe = recipe("$FindBin::RealBin/../../doc/operating.md", 'pg_upgrade');

sub run_recipe
{
	my ($old, $new) = @_;
	my %folder = (old => $old->data_dir, new => $new->data_dir);

	command_ok([ 'bash', '-e', '-c', $recipe =~ s/^(old|new)=.*/$1='$folder{$1}'/gmr ], $new->name . ': the recipe');
	return;
}

# Some minor versions mark columns with an option, and those that do not know it
# cannot take a dump from them.  That would be so without this extension.
sub drop_unknown_option
{
	my ($old, $new) = @_;
	my $has = q(SELECT attoptions IS NULL FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum = 1);

	$new->start;
	my $unknown =
	  $new->safe_psql('postgres', "BEGIN; CREATE TABLE t (n integer); $has; ROLLBACK;") eq 't';
	$new->stop;
	return if !$unknown;

	$old->start;
	foreach my $db (split(/\n/, $old->safe_psql('postgres', 'SELECT datname FROM pg_database WHERE datallowconn')))
	{
		$old->safe_psql($db, q(UPDATE pg_attribute SET attoptions = NULL WHERE attoptions::text ~ '^{pg_attver=\d+}$'));
	}
	$old->stop;
	return;
}

# Upgrade a server that is stopped.
sub upgrade
{
	my ($old, $new, $old_bin, $new_bin) = @_;

	drop_unknown_option($old, $new);
	chdir($new->basedir) or die 'could not enter ' . $new->basedir . ": $!";
	command_ok(
		[
			"$new_bin/pg_upgrade", '--no-sync',
			'-b', $old_bin, '-B', $new_bin,
			'-d', $old->data_dir, '-D', $new->data_dir,
			'-s', $new->host, '-p', $old->port, '-P', $new->port
		],
		$old->name . ' -> ' . $new->name)
	  or diag(map { slurp_file($_) =~ /^(pg_restore: error: .*)/ms } glob($new->data_dir . '/pg_upgrade_output.d/*/log/pg_upgrade_dump_*.log'));
	chdir($FindBin::RealBin);
	return;
}

# A dump by the newest programs, without what tells the versions apart.
sub dump_of
{
	my ($node) = @_;
	my $file = PostgreSQL::Test::Utils::tempdir . '/' . $node->name . '.txt';

	command_ok([ "$bindir/pg_dump", '--create', '-f', $file, $node->connstr('everything') ], $node->name . ': dumped');
	# From 16 on, a query of one table does not name it with each column.
	return slurp_file($file)
	  =~ s/^\\(un)?restrict .*\n|^-- Dumped .*\n|^ALTER .* SET \(pg_attver=\d+\);\n//mgr
	  =~ s/\b(event|tree|tree_\d|leaf|top|of_query)\.(?=\w)//gr;
}

# Rows that each index finds, and rows that there are.
my %finds = (
	event_pkey => q(SELECT count(*) FROM event WHERE id >= timestamptz '2026-01-31 00:00+00'),
	event_hash => q(SELECT count(*) FROM event WHERE parent = (SELECT min(id) FROM event)),
	event_brin => q(SELECT count(*) FROM event WHERE id >= timestamptz '2026-01-31 00:00+00'),
	event_multi => q(SELECT count(*) FROM event WHERE id >= timestamptz '2026-01-31 00:00+00'),
	event_bloom => q(SELECT count(*) FROM event WHERE parent = (SELECT min(id) FROM event)),
	event_gist => q(SELECT count(*) FROM event WHERE id >= timestamptz '2026-01-31 00:00+00'),
	event_gin => q(SELECT count(*) FROM event WHERE id = (SELECT min(id) FROM event)),
	booking_id_during_excl => q(SELECT count(*) FROM booking WHERE id = (SELECT min(id) FROM event) AND during && int4range(1, 3)),
	event_others => q(SELECT count(*) FROM event WHERE others @> '{0u2r85hm2pt3}'),
	part_old_pkey => q(SELECT count(*) FROM part WHERE id < timestamptz '2026-01-01 00:00+00'),
	hashed_0_pkey => q(SELECT count(*) FROM hashed WHERE id > '0u2r85hm2pt3'));

# An index is the only one that its table has left, and sequential scans are not
# wanted: so it is used, or the plan shows that it is not.
sub found_by
{
	my ($node, $index) = @_;

	return $node->safe_psql(
		'everything', qq(
BEGIN;
UPDATE pg_index SET indisvalid = false
WHERE indrelid = (SELECT indrelid FROM pg_index WHERE indexrelid = '$index'::regclass)
	AND indexrelid <> '$index'::regclass;
SET LOCAL enable_seqscan = off;
CREATE FUNCTION pg_temp.plan_has(query text, what text) RETURNS boolean LANGUAGE plpgsql AS \$\$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
		IF line ~ what THEN
			RETURN true;
		END IF;
	END LOOP;
	RETURN false;
END
\$\$;
SELECT pg_temp.plan_has(\$\$$finds{$index}\$\$, ' $index ');
$finds{$index};
ROLLBACK;
));
}

sub check_data
{
	my ($node, $before, $answers) = @_;
	my $name = $node->name;

	same_dump(dump_of($node), $before, "$name: it is what it was");
	is(answers_of($node, 'everything'), $answers, "$name: it answers as it did");
	is( $node->safe_psql('everything', 'SELECT indexrelid::regclass FROM pg_index WHERE NOT indisvalid OR NOT indisready'),
		'',
		"$name: all indexes are valid");
	$node->command_ok([qw(pg_amcheck --install-missing --heapallindexed --rootdescend -d everything)],
		"$name: amcheck finds nothing");
	$node->safe_psql('everything', 'DROP EXTENSION amcheck');
	foreach my $index (sort keys %finds)
	{
		my $found = $node->safe_psql('everything', "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; $finds{$index}");
		like($found, qr/^[1-9]/, "$name: there are rows for $index");
		is(found_by($node, $index), "t\n$found", "$name: $index finds them");
	}
	return;
}

# The last ID is ahead of the clock by more than an upgrade takes.
sub run_ahead
{
	my ($node) = @_;

	return $node->safe_psql(
		'everything', q(
ALTER DATABASE everything RESET scru64.node_spec;
SELECT set_config('scru64.node_spec', scru64_from_parts(now() + interval '50 min', 1 << 16) || '/8', false) \gset
INSERT INTO event SELECT FROM generate_series(1, 100);
SELECT max(id) FROM event;
));
}

my $old = new_server('from', $bindirs[0]);
$old->start;
set_node($old);
create_everything($old, 'everything');
my $last = run_ahead($old);
# from 18 on an extension is made with it
my $skip_support = $old->pg_version >= 18 ? 1 : 0;

foreach my $to (1 .. $#bindirs)
{
	my @bins = @bindirs[ $to - 1, $to ];
	my ($version) = run_command([ "$bins[1]/pg_config", '--version' ]);
	my ($major) = $version =~ /(\d+)/;
	my $before = dump_of($old);
	my $answers = answers_of($old, 'everything');

	check_data($old, $before, $answers) if $to == 1;
	my $watermark = $old->safe_psql('everything', 'SELECT scru64_watermark()');
	$old->stop;

	# Without the recipe
	my $without = new_server("to_${major}_without", $bins[1]);
	upgrade($old, $without, @bins);
	ok(!-e page_file($without), "$major: pg_upgrade leaves the page behind");
	$without->start;
	is($without->safe_psql('everything', q(LOAD 'scru64'; SHOW scru64.node_spec)), '', "$major: and the settings");
	set_node($without);
	is( $without->safe_psql('everything', q(SELECT last_id IS NULL FROM scru64_generators())),
		'', "$major, without: the server knows of no node");
	is( $without->safe_psql('everything', qq(
SELECT id > '$last', extract(epoch FROM id::timestamptz - clock_timestamp()) BETWEEN 3540 AND 3601 FROM scru64_generate() AS id
)),
		't|t', "$major, without: IDs are ahead of the clock by the allowance, so above what was issued");
	like(slurp_file($without->logfile), qr/LOG: .* the ceiling of scru64 was lost/, "$major, without: the log says why");
	check_data($without, $before, $answers);

	# Too late for the recipe: the old ceiling is below the IDs that were issued.
	my $issued = $without->safe_psql('everything', 'SELECT scru64_generate()');
	$without->stop;
	run_recipe($old, $without);
	$without->start;
	is($without->safe_psql('everything', "SELECT scru64_generate() > '$issued'"), 't', "$major, without: the recipe does not take IDs back");
	$without->stop;

	# With the recipe
	my $with = new_server("to_${major}_with", $bins[1]);
	upgrade($old, $with, @bins);
	run_recipe($old, $with);
	$with->start;
	check_data($with, $before, $answers);
	is($with->safe_psql('everything', qq(SELECT count(*), scru64_watermark() >= '$watermark' FROM event WHERE id >= scru64_watermark())),
		'0|t', "$major, with: the watermark has not fallen, and is above all rows");
	is( $with->safe_psql('everything', qq(
INSERT INTO event DEFAULT VALUES RETURNING id > '$last', scru64_node_ctr(id) >> 16,
	scru64_timestamp(id) - scru64_timestamp('$last') < interval '1 min'
)),
		't|1|t', "$major, with: the node goes on right above what was issued");
	unlike(slurp_file($with->logfile), qr/was lost/, "$major, with: nothing was lost");

	# An operator family has what the version had that it was made with.
	if ($major >= 18)
	{
		my $members = q(
SELECT count(*) FROM pg_amproc WHERE amproc::text = 'btint8skipsupport' AND amproclefttype = 'scru64'::regtype
);
		is($with->safe_psql('everything', $members), $skip_support, "$major: skip support only if it was added");
		if (!$skip_support)
		{
			$with->safe_psql('everything', q(
ALTER OPERATOR FAMILY scru64_ops USING btree ADD
	FUNCTION 6 (scru64, scru64) btint8skipsupport(internal);
));
			is($with->safe_psql('everything', $members), '1', "$major: it can be added");

			my $temporal = 'CREATE TABLE refused (item scru64, valid int4range, PRIMARY KEY (item, valid WITHOUT OVERLAPS))';
			like(error_of($with, $temporal, dbname => 'everything'), qr/could not identify an equality operator/, "$major: temporal keys are refused");
			$with->safe_psql('everything', q(
ALTER EXTENSION btree_gist UPDATE;
ALTER OPERATOR FAMILY scru64_ops USING gist ADD
	FUNCTION 11 (scru64, scru64) gbt_int8_sortsupport(internal),
	FUNCTION 12 ("any", "any") gist_translate_cmptype_btree(integer);
));
			create_temporal($with, 'everything');
			is($with->safe_psql('everything', q(SELECT bool_and(amvalidate(oid)) FROM pg_opclass WHERE opcintype = 'scru64'::regtype)),
				't', "$major: what they need can be added");
			$skip_support = 1;
		}
	}

	$last = $with->safe_psql('everything', 'SELECT max(id) FROM event');
	$old = $with;
}
$old->stop;

done_testing();
