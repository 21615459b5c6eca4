# ALTER EXTENSION ... UPDATE from each earlier version leaves the same objects as
# CREATE EXTENSION of the current one: of every extension of the repository.  And all
# versions call the same functions of the library, in the same way.
#
# The versions that do not exist are made up, so that the comparison is seen to
# pass and to fail: an earlier one that lacks the end of the current script, with
# an update that brings it, and updates that forget something.

use File::Basename;
use FindBin;
use lib $FindBin::RealBin;
use Scru64Fault qw(read_file);
use Scru64Test;
use Scru64Versions;

my %names = map { basename($_, '.control') => 1 } glob("$FindBin::RealBin/../*.control");
my @names = sort keys %names;

# A server that reads its extensions from a folder of ours
my $installation = make_installation();
my $extensions = $installation->{extensions};

# Some versions of the module run programs by the path only.
local $ENV{PATH} = "$installation->{bin}:$ENV{PATH}";
my $node = new_node('main');
$node->start;

# Would the server read our files?
is($node->safe_psql('postgres', q(SELECT setting FROM pg_config WHERE name = 'SHAREDIR')),
	dirname($extensions), 'the server has a folder of extensions of its own');

#
# What an extension consists of: a line for each row of a catalog that is a member
# or belongs to one, with names in the place of OIDs, so that nothing needs to be
# listed here to be compared.
#

$node->safe_psql(
	'postgres', q(
CREATE FUNCTION name_of(catalog regclass, id oid) RETURNS text LANGUAGE sql STABLE AS $$
	SELECT CASE WHEN id <> 0 THEN type || ' ' || identity END
	FROM pg_identify_object(catalog, id, 0)
$$;

-- Trees have OIDs and places in the source: their text instead
CREATE FUNCTION definition_of(catalog regclass, id oid) RETURNS text LANGUAGE sql STABLE AS $$
	SELECT CASE catalog
		WHEN 'pg_proc'::regclass THEN
			(SELECT pg_get_functiondef(oid) FROM pg_proc WHERE oid = id AND prokind <> 'a')
		WHEN 'pg_class'::regclass THEN
			CASE (SELECT relkind FROM pg_class WHERE oid = id)
				WHEN 'i' THEN pg_get_indexdef(id)
				WHEN 'v' THEN pg_get_viewdef(id)
				WHEN 'm' THEN pg_get_viewdef(id)
			END
		WHEN 'pg_attrdef'::regclass THEN
			(SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE oid = id)
		WHEN 'pg_policy'::regclass THEN
			(SELECT concat_ws(' / ', pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid))
			 FROM pg_policy WHERE oid = id)
		WHEN 'pg_constraint'::regclass THEN pg_get_constraintdef(id)
		WHEN 'pg_trigger'::regclass THEN pg_get_triggerdef(id)
		WHEN 'pg_rewrite'::regclass THEN pg_get_ruledef(id)
	END
$$;

CREATE FUNCTION describe(extension name) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	catalog regclass;
	key name;
	-- what is counted, or says where and when something is stored
	physical CONSTANT text[] = '{oid,relfilenode,relpages,reltuples,relallvisible,relallfrozen,
		relfrozenxid,relminmxid,reltoastrelid,atthasmissing,attmissingval}';
BEGIN
	CREATE TEMP TABLE member ON COMMIT DROP AS
		WITH RECURSIVE m AS (
			SELECT 'pg_extension'::regclass::oid AS classid, oid AS objid
			FROM pg_extension WHERE extname = extension
			UNION
			SELECT d.classid, d.objid
			FROM m
			JOIN pg_depend AS d ON d.refclassid = m.classid AND d.refobjid = m.objid
			WHERE d.deptype = 'e' AND m.classid = 'pg_extension'::regclass
				OR d.deptype IN ('i', 'a')
		)
		SELECT * FROM m
		-- a TOAST table has an OID for its name, and is physical
		WHERE NOT (classid = 'pg_class'::regclass
				   AND EXISTS (SELECT FROM pg_class AS c
							   WHERE c.oid = objid AND relnamespace = 'pg_toast'::regnamespace));
	CREATE TEMP TABLE reference ON COMMIT DROP AS
		SELECT fktable, fkcols[1] AS fkcol, pktable, is_array
		FROM pg_get_catalog_foreign_keys()
		WHERE array_length(fkcols, 1) = 1 AND pkcols = '{oid}';

	FOR catalog, key IN
		SELECT DISTINCT classid::regclass, 'oid'::name FROM member
		UNION ALL
		VALUES ('pg_aggregate'::regclass, 'aggfnoid'::name), ('pg_attribute', 'attrelid'), ('pg_index', 'indexrelid'),
			('pg_partitioned_table', 'partrelid'), ('pg_range', 'rngtypid'), ('pg_sequence', 'seqrelid')
	LOOP
		RETURN QUERY EXECUTE format($query$
			SELECT concat_ws(E'\t', %1$L, name_of(m.classid, m.objid), r.columns, definition)
			FROM %1$s AS t
			JOIN member AS m ON m.objid = t.%2$I
				AND m.classid = coalesce((SELECT pktable FROM reference
										  WHERE fktable = %1$L::regclass AND fkcol = %2$L), %1$L::regclass)
			CROSS JOIN LATERAL (
				SELECT string_agg(c.key || '=' || coalesce(CASE
						WHEN f.is_array THEN
							(SELECT string_agg(name_of(f.pktable, id[1]::oid), ', ' ORDER BY n)
							 FROM regexp_matches(c.value, '\d+', 'g') WITH ORDINALITY AS i (id, n))
						-- those of a reg* type show a name
						WHEN f.pktable IS NOT NULL AND c.value ~ '^\d+$' THEN
							name_of(f.pktable, c.value::oid)
						-- of columns, in some minor versions
						ELSE regexp_replace(c.value, '"pg_attver=\d+"', '')
					END, ''), E'\t' ORDER BY c.key)
				FROM jsonb_each_text(to_jsonb(t)) AS c
				JOIN pg_attribute AS a ON attrelid = %1$L::regclass AND attname = c.key
				LEFT JOIN reference AS f ON fktable = %1$L::regclass AND fkcol = c.key
				WHERE c.key <> ALL (%3$L) AND atttypid <> 'pg_node_tree'::regtype
			) AS r (columns)
			CROSS JOIN definition_of(m.classid, m.objid) AS definition$query$,
			catalog, key, physical);
	END LOOP;

	RETURN QUERY
		SELECT concat_ws(E'\t', 'comment', name_of(classid, objid), objsubid, description)
		FROM member JOIN pg_description ON classoid = classid AND objoid = objid;
	RETURN QUERY
		SELECT concat_ws(E'\t', 'initial privileges', name_of(classid, objid), objsubid, initprivs)
		FROM member JOIN pg_init_privs ON classoid = classid AND objoid = objid;
	DROP TABLE member, reference;
END
$$;
));

# The current version of each: that of its control file.
my %current = map { split(/\|/) } split(
	/\n/,
	$node->safe_psql(
		'postgres', q(SELECT name, default_version FROM pg_available_extensions)));

# Those that need one which PostgreSQL has and this server has not
sub lacks
{
	my ($name) = @_;
	my ($requires) = read_file("$FindBin::RealBin/../$name.control") =~ /^requires = '(.*)'/m;

	return grep { !$current{$_} } split(/, */, $requires // '');
}
note("skipped: there is no " . join(', ', lacks($_)) . " for $_") foreach (grep { lacks($_) } @names);
@names = grep { !lacks($_) } @names;

# Create an extension in a version, update it to the current one if it is another,
# and describe what there is then; an error is described too.
sub describe
{
	my ($name, $version) = @_;
	my ($out, $err);

	# What is created in a transaction goes with it.
	$node->psql(
		'postgres', qq(
BEGIN;
CREATE EXTENSION $name VERSION '$version' CASCADE;
ALTER EXTENSION $name UPDATE;
SELECT replace(line, E'\n', ' ') FROM describe('$name') AS line ORDER BY line COLLATE "C";
ROLLBACK;
),
		extra_params => ['--quiet'],
		on_error_stop => 1,
		stdout => \$out,
		stderr => \$err);
	# triggers of foreign keys have an OID in their names
	$out =~ s/(RI_ConstraintTrigger_\w_)\d+/$1/g;
	$err =~ s/^psql:<stdin>:\d+: NOTICE: .*\n?//mg;
	return $out . $err;
}

# What of two descriptions is in one only, the first few lines.  An error differs
# from itself.
sub difference
{
	my ($expected, $got) = @_;
	my (%lines, @difference);

	$lines{$_} -= 1 foreach (split(/\n/, $expected));
	$lines{$_} += 1 foreach (split(/\n/, $got));
	push @difference, grep { /ERROR/ } split(/\n/, $got);
	push @difference, ($lines{$_} < 0 ? '- ' : '+ ') . $_
	  foreach (grep { $lines{$_} != 0 } sort keys %lines);
	splice(@difference, 10) if @difference > 10;
	return join("\n", @difference);
}

# Make up a version: its script, and its update to the current one.
sub write_version
{
	my ($name, $version, $script, $update) = @_;

	append_to_file("$extensions/$name--$version.sql", $script);
	append_to_file("$extensions/$name--$version--$current{$name}.sql", $update);
	return;
}

my $number = 0;
my %fresh;
foreach my $name (@names)
{
	# The versions that there were, before any is made up.
	my @earlier = split(
		/\n/,
		$node->safe_psql(
			'postgres', qq(
SELECT version FROM pg_available_extension_versions
WHERE name = '$name' AND version <> '$current{$name}' ORDER BY version
)));

	$fresh{$name} = describe($name, $current{$name});
	like($fresh{$name}, qr/^pg_extension\t.*\textversion=\Q$current{$name}\E(\t|$)/m,
		"$name: there is a description");
	unlike($fresh{$name}, qr/ERROR/, "$name: it is complete");
	is(difference($fresh{$name}, describe($name, $current{$name})),
		'', "$name: there is nothing in the description that changes");

	note("$name: earlier versions: " . (join(', ', @earlier) || 'none'));
	is(difference($fresh{$name}, describe($name, $_)),
		'', "$name: updated from $_, it is as if created")
	  foreach (@earlier);

	# A made up version lacks the last ruled section of the current script, and what
	# is before it up to one with a comment.
	my $script = read_file("$extensions/$name--$current{$name}.sql");
	my ($rest, $last) = $script =~ /\A(.*\n)(-- -{70,}\n-- .*?\n-- -{70,}\n.*^\s*COMMENT ON .*)\z/ms
	  or die "the script of $name has no ruled section with a comment";
	# an update begins with a search_path of its own
	$last = "$1$last" if $rest =~ /\A.*^(SET LOCAL search_path = [^;]*;\n)/ms;
	(my $forgetful = $last) =~ s/^\s*COMMENT ON .*?;$//ms;

	write_version($name, '0.9', $rest, $last);
	is(difference($fresh{$name}, describe($name, '0.9')),
		'', "$name: an update that brings what is new");
	write_version($name, '0.9.1', $rest, $forgetful);
	like(
		difference($fresh{$name}, describe($name, '0.9.1')),
		qr/\A- comment\t.*\z/,
		"$name: an update that forgets a comment is found out");
	write_version($name, '0.9.2', $rest, '');
	isnt(difference($fresh{$name}, describe($name, '0.9.2')),
		'', "$name: an update that brings nothing is found out");
}

# A database of any version may call the library: each function that a script names is there, and
# what is declared with it, as it is called with that, is the same in all versions.
sub c_functions
{
	my ($name, $version) = @_;
	my ($out, $err);

	# names of columns do not matter to it, their number and types do
	$node->psql(
		'postgres', qq(
BEGIN;
CREATE EXTENSION $name VERSION '$version' CASCADE;
SELECT p.prosrc || E'\t' || p.proargtypes::regtype[]::text || ' ' || coalesce(p.proallargtypes::regtype[]::text, '')
	|| CASE WHEN p.proretset THEN ' setof ' ELSE ' ' END || p.prorettype::regtype || CASE WHEN p.proisstrict THEN ' strict' ELSE '' END
FROM pg_proc AS p JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
	JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid
WHERE d.deptype = 'e' AND e.extname = '$name' AND p.probin ~ 'scru64' ORDER BY 1;
ROLLBACK;
),
		extra_params => ['--quiet'],
		on_error_stop => 1,
		stdout => \$out,
		stderr => \$err);
	$err =~ s/^psql:<stdin>:\d+: NOTICE: .*\n?//mg;
	return split(/\n/, $out . $err);
}

# C functions that two versions declare, each in its own way; and errors
sub changed_functions
{
	my ($name, @versions) = @_;
	my %declared;

	foreach my $version (@versions)
	{
		foreach my $line (c_functions($name, $version))
		{
			my ($function, $declaration) = split(/\t/, $line, 2);

			$declared{$function}{ $declaration // '' } = 1;
		}
	}
	return join("\n", grep { /ERROR/ || keys %{ $declared{$_} } > 1 } sort keys %declared);
}

foreach my $name (@names)
{
	my @versions = grep { !/^0/ } split(/\n/,
		$node->safe_psql('postgres', "SELECT version FROM pg_available_extension_versions WHERE name = '$name' ORDER BY version"));

	is(changed_functions($name, @versions), '', "$name: versions @versions declare the library's functions alike");
}
cmp_ok(scalar(c_functions('scru64', $current{scru64})), '>', 30, 'there are some');
foreach my $change (
	[ 'another column', qr/\bOUT waits bigint\n/, "OUT waits bigint,\n\tOUT more bigint\n", qr/^scru64_generators$/ ],
	[ 'another argument', qr/(FUNCTION scru64_node_ctr\()scru64(\) RETURNS integer AS 'MODULE_PATHNAME')/, '$1scru64, integer$2', qr/^scru64_node_ctr$/ ],
	[ 'what the library has not', qr/'MODULE_PATHNAME', 'scru64_generate_count'/, "'MODULE_PATHNAME', 'scru64_gone'", qr/ERROR: .*"scru64_gone"/ ])
{
	my ($what, $pattern, $replacement, $found) = @{$change};
	my $script = read_file("$extensions/scru64--$current{scru64}.sql");
	my $version = '0.7.' . ++$number;

	$script =~ s/$pattern/my ($one, $two) = ($1, $2); (my $new = $replacement) =~ s{\$1}{$one}; $new =~ s{\$2}{$two}; $new/e
	  or die "the script has no $pattern";
	# what follows names the function as it was
	$script =~ s/\bscru64_node_ctr\(scru64\)/scru64_node_ctr(scru64, integer)/g if $what eq 'another argument';
	append_to_file("$extensions/scru64--$version.sql", $script);
	like(changed_functions('scru64', $current{scru64}, $version), $found, "$what is found out");
}

# What an update may forget: of scru64, all but the type.
my ($type, $others) =
  read_file("$extensions/scru64--$current{scru64}.sql") =~ /\A(.*?\n)(-- -{70,}\n-- Comparison .*)\z/s;
foreach my $change (
	[ 'a volatility', qr/(FUNCTION scru64_lt\([^;]*LANGUAGE C) IMMUTABLE/, '$1 STABLE', 'pg_proc' ],
	[ 'LEAKPROOF', qr/(FUNCTION scru64_lt\([^;]*LANGUAGE C IMMUTABLE STRICT) LEAKPROOF/, '$1', 'pg_proc' ],
	[ 'a number of rows', qr/ ROWS 10;/, ';', 'pg_proc' ],
	[ 'what a body says', qr/(RETURN \$1) < (scru64_min)/, '$1 <= $2', 'pg_proc' ],
	[ 'an estimator', qr/RESTRICT = scru64_ineqsel/, 'RESTRICT = scalarltsel', 'pg_operator' ],
	[ 'HASHES', qr/HASHES, MERGES/, 'MERGES', 'pg_operator' ],
	[ 'a member of an operator family', qr/,\n\tFUNCTION 2 scru64_hash_extended[^;]*;/, ';', 'pg_amproc' ],
	[ 'DEFAULT', qr/DEFAULT (FOR TYPE scru64 USING brin)/, '$1', 'pg_opclass' ],
	[ 'that an index answers', qr/SORTOP = <, /, '', 'pg_aggregate' ],
	[ 'the strength of a cast', qr/(scru64_from_bigint\(bigint\)) AS ASSIGNMENT/, '$1', 'pg_cast' ],
	[ 'a column of a view', qr/(counter_overflows), clock_rollbacks, waits\n/, "\$1\n", 'pg_attribute' ],
	[ 'a grant', qr/(GRANT SELECT ON) scru64_generators,/, '$1', 'pg_class' ],
	[ 'to revoke', qr/(REVOKE ALL ON FUNCTION .*) scru64_generators\(\),/, '$1', 'pg_proc' ])
{
	my ($what, $pattern, $replacement, $catalog) = @{$change};
	my $update = $others;
	my $version = '0.8.' . $number++;
	# a replacement is a string in which $1 and $2 count
	my $changes = $update =~ s/$pattern/my ($one, $two) = ($1, $2); (my $new = $replacement) =~ s{\$1}{$one}; $new =~ s{\$2}{$two}; $new/e;

	# a comment on a column that is not there is an error
	$update =~ s/^COMMENT ON COLUMN scru64_generators\.(clock_rollbacks|waits) [^;]*;//mg
	  if $catalog eq 'pg_attribute';
	write_version('scru64', $version, $type, $update);
	my $difference = difference($fresh{scru64}, describe('scru64', $version));
	ok($changes, "there is $what to forget");
	like($difference, qr/^[-+] $catalog\t/m, "an update that forgets $what is found out");
	unlike($difference, qr/ERROR/, "... and is no error");
}
write_version('scru64', '0.8', $type, $others);
is(difference($fresh{scru64}, describe('scru64', '0.8')),
	'', 'an update that brings all but the type');

$node->stop;
done_testing();
