# ALTER EXTENSION ... UPDATE from each earlier version leaves the same objects as
# CREATE EXTENSION of the current one: of every extension of the repository.  And all
# versions call the same functions of the library, in the same way.
#
# The versions that do not exist are made up, so that the comparison is seen to
# pass and to fail: an earlier one that lacks the end of the current script, with
# an update that brings it, and updates that forget something.

use File::Basename;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use Scru64Test;
use Scru64Versions;

plan skip_all => 'there is no pg_dump' if !has_program('pg_dump');

my @names = sort map { basename($_, '.control') } glob("$FindBin::RealBin/../../*.control");

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

# The current version of each: that of its control file.
my %current = map { split(/\|/) } split(/\n/,
	$node->safe_psql('postgres', q(SELECT name, default_version FROM pg_available_extensions)));

# Those that need one which PostgreSQL has and this server has not
sub lacks
{
	my ($name) = @_;
	my ($requires) = slurp_file("$FindBin::RealBin/../../$name.control") =~ /^requires = '(.*)'/m;

	return grep { !$current{$_} } split(/, */, $requires // '');
}
note("skipped: there is no " . join(', ', lacks($_)) . " for $_") foreach (grep { lacks($_) } @names);
@names = grep { !lacks($_) } @names;

# All that an extension consists of in a version, updated to the current one if it is another: what
# pg_upgrade would take along.  An error is described, too.
sub describe
{
	my ($name, $version) = @_;

	$node->safe_psql('postgres', "DROP DATABASE IF EXISTS made;\nCREATE DATABASE made");
	my ($ret, undef, $err) = $node->psql(
		'made', "CREATE EXTENSION $name VERSION '$version' CASCADE; ALTER EXTENSION $name UPDATE",
		on_error_stop => 1);
	return $err if $ret != 0;
	my ($text) = run_command([ 'pg_dump', '--schema-only', '--binary-upgrade', $node->connstr('made') ]);
	# comments, keys of psql, ages, what sequences of a realm say of the server
	$text =~ s/^((--|\\(un)?restrict|SET rel(froz|min)|SELECT pg_catalog\.setval).*)?\n//mg;
	# OIDs, files, places in the WAL; and in which order extensions are required
	$text =~ s/^((SELECT pg_catalog\.binary_upgrade|WHERE oid).*)/$1 =~ s{'(?!,)[\d{},\/A-F]+'}{N}gr/gme;
	$text =~ s/(?<=ARRAY\[)('\w+'(,'\w+')+)(?=\]::pg_catalog\.text)/join(',', sort split(\/,\/, $1))/ge;
	return $text;
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
	push @difference, ($lines{$_} < 0 ? '- ' : '+ ') . $_ foreach (grep { $lines{$_} != 0 } sort keys %lines);
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
		$node->safe_psql('postgres', qq(
SELECT version FROM pg_available_extension_versions
WHERE name = '$name' AND version <> '$current{$name}' ORDER BY version
)));

	$fresh{$name} = describe($name, $current{$name});
	like($fresh{$name}, qr/create_empty_extension\('$name', .*'\Q$current{$name}\E'/, "$name: there is a description");
	unlike($fresh{$name}, qr/ERROR/, "$name: it is complete");
	is(difference($fresh{$name}, describe($name, $current{$name})),
		'', "$name: there is nothing in the description that changes");

	note("$name: earlier versions: " . (join(', ', @earlier) || 'none'));
	is(difference($fresh{$name}, describe($name, $_)),
		'', "$name: updated from $_, it is as if created") foreach (@earlier);

	# A made up version lacks the last ruled section of the current script, and what
	# is before it up to one with a comment.
	my $script = slurp_file("$extensions/$name--$current{$name}.sql");
	my ($rest, $last) = $script =~ /\A(.*\n)(-- -{70,}\n-- .*?\n-- -{70,}\n.*^\s*COMMENT ON .*)\z/ms
	  or die "the script of $name has no ruled section with a comment";
	# an update begins with a search_path of its own
	$last = "$1$last" if $rest =~ /\A.*^(SET LOCAL search_path = [^;]*;\n)/ms;
	(my $forgetful = $last) =~ s/^\s*COMMENT ON .*?;$//ms;

	write_version($name, '0.9', $rest, $last);
	is(difference($fresh{$name}, describe($name, '0.9')), '', "$name: an update that brings what is new");
	write_version($name, '0.9.1', $rest, $forgetful);
	like(difference($fresh{$name}, describe($name, '0.9.1')),
		qr/\A- COMMENT ON .*\z/, "$name: an update that forgets a comment is found out");
	write_version($name, '0.9.2', $rest, '');
	isnt(difference($fresh{$name}, describe($name, '0.9.2')), '', "$name: an update that brings nothing is found out");
}

# A function gets a new column by DROP and CREATE, and its privileges anew.
{
	my $script = slurp_file("$extensions/scru64--$current{scru64}.sql");
	my ($declaration) = $script =~ /^(CREATE FUNCTION scru64_generators\(.*?;\n)/ms or die 'the script has no scru64_generators()';
	my ($comment) = $script =~ /^(COMMENT ON FUNCTION scru64_generators\(\) .*?;\n)/m or die 'scru64_generators() has no comment';
	my $update = "DROP FUNCTION scru64_generators();\n$declaration${comment}REVOKE ALL ON FUNCTION scru64_generators() FROM PUBLIC;\n";

	$script =~ s/(^CREATE FUNCTION scru64_generators\(.*?),\n\tOUT waits bigint/$1/ms or die 'scru64_generators() has no last column';
	write_version('scru64', '0.8', $script, "${update}GRANT EXECUTE ON FUNCTION scru64_generators() TO pg_monitor;\n");
	is(difference($fresh{scru64}, describe('scru64', '0.8')), '', 'an update that brings a column');
	write_version('scru64', '0.8.1', $script, $update);
	like(difference($fresh{scru64}, describe('scru64', '0.8.1')), qr/^- GRANT .*\bscru64_generators\(/m, 'one that forgets a privilege is found out');
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
	|| CASE WHEN p.proretset THEN ' setof ' ELSE ' ' END || p.prorettype::regtype
	|| CASE WHEN p.proisstrict AND p.pronargs > 0 THEN ' strict' ELSE '' END
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

# C functions that two of these extensions or their versions declare, each in its own way; and errors
sub changed_functions
{
	my (@declaring) = @_;
	my %declared;

	foreach my $extension (@declaring)
	{
		foreach my $line (c_functions(@{$extension}))
		{
			my ($function, $declaration) = split(/\t/, $line, 2);

			$declared{$function}{ $declaration // '' } = 1;
		}
	}
	return join("\n", grep { /ERROR/ || keys %{ $declared{$_} } > 1 } sort keys %declared);
}

my @all;
foreach my $name (@names)
{
	my @versions = grep { !/^0/ } split(/\n/,
		$node->safe_psql('postgres', "SELECT version FROM pg_available_extension_versions WHERE name = '$name' ORDER BY version"));

	note("$name: versions @versions");
	push @all, map { [ $name, $_ ] } @versions;
}
is(changed_functions(@all), '', "all versions of all extensions declare the library's functions alike");
cmp_ok(scalar(c_functions('scru64', $current{scru64})), '>', 30, 'there are some');
foreach my $change (
	[ 'another column', qr/\bOUT waits bigint\n/, sub { "OUT waits bigint,\n\tOUT more bigint\n" }, qr/^scru64_generators$/ ],
	[ 'another argument', qr/(FUNCTION scru64_node_ctr\()scru64(\) RETURNS integer AS 'MODULE_PATHNAME')/, sub { "$1scru64, integer$2" }, qr/^scru64_node_ctr$/ ],
	[ 'what the library has not', qr/'MODULE_PATHNAME', 'scru64_generate_count'/, sub { "'MODULE_PATHNAME', 'scru64_gone'" }, qr/ERROR: .*"scru64_gone"/ ])
{
	my ($what, $pattern, $replacement, $found) = @{$change};
	my $script = slurp_file("$extensions/scru64--$current{scru64}.sql");
	my $version = '0.7.' . ++$number;

	$script =~ s/$pattern/$replacement->()/e or die "the script has no $pattern";
	# what follows names the function as it was
	$script =~ s/\bscru64_node_ctr\(scru64\)/scru64_node_ctr(scru64, integer)/g if $what eq 'another argument';
	append_to_file("$extensions/scru64--$version.sql", $script);
	like(changed_functions([ 'scru64', $current{scru64} ], [ 'scru64', $version ]), $found, "$what is found out");
	# A realm calls this one, too.
	like(changed_functions([ 'scru64_realm', $current{scru64_realm} ], [ 'scru64', $version ]), $found, "$what is found out by a realm")
	  if $what eq 'another column';
}

$node->stop;
done_testing();
