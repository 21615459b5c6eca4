# A database may have any version of each extension, and calls one library: each function that a
# script names is there, and all versions declare it alike.  A version is a base script and what
# later ones change, so what is created is what is updated.
#
# Versions that do not exist are made up, so that a difference is seen to be found.

use strict;
use warnings;
use File::Basename;
use FindBin;
use Scru64Test;
use Scru64Versions;

my @names = sort map { basename($_, '.control') } glob("$FindBin::RealBin/../../{,realm/}*.control");

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
	my ($requires) = slurp_file(grep { -e } map { "$FindBin::RealBin/../../$_$name.control" } ('', 'realm/')) =~ /^requires = '(.*)'/m;

	return grep { !$current{$_} } split(/, */, $requires // '');
}
note("skipped: there is no " . join(', ', lacks($_)) . " for $_") foreach (grep { lacks($_) } @names);
@names = grep { !lacks($_) } @names;

# The C functions that an extension of a version declares, and how
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
	return split(/\n/, "$out\n$err");
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

my ($number, @all) = (0);
foreach my $name (@names)
{
	my @versions = split(/\n/,
		$node->safe_psql('postgres', "SELECT version FROM pg_available_extension_versions WHERE name = '$name' ORDER BY version"));

	note("$name: versions @versions");
	push @all, map { [ $name, $_ ] } @versions;
}
is(changed_functions(@all), '', "all versions of all extensions declare the library's functions alike");
cmp_ok(scalar(c_functions('scru64', $current{scru64})), '>', 30, 'there are some');

# Made up from the first version: its scripts stay, whatever later ones drop.
foreach my $change (
	[ 'another column', qr/\bOUT waits bigint\n/, sub { "OUT waits bigint,\n\tOUT more bigint\n" }, qr/^scru64_generators$/ ],
	[ 'another argument', qr/(FUNCTION scru64_node_ctr\()scru64(\) RETURNS integer AS 'MODULE_PATHNAME')/, sub { "$1scru64, integer$2" }, qr/^scru64_node_ctr$/ ],
	[ 'what the library has not', qr/'MODULE_PATHNAME', 'scru64_generate_count'/, sub { "'MODULE_PATHNAME', 'scru64_gone'" }, qr/ERROR: .*"scru64_gone"/ ])
{
	my ($what, $pattern, $replacement, $found) = @{$change};
	my $script = slurp_file("$FindBin::RealBin/../../sql/scru64--1.0.sql");
	my $version = '0.' . ++$number;

	$script =~ s/$pattern/$replacement->()/e or die "the script has no $pattern";
	# what follows names the function as it was
	$script =~ s/\bscru64_node_ctr\(scru64\)/scru64_node_ctr(scru64, integer)/g if $what eq 'another argument';
	append_to_file("$extensions/scru64--$version.sql", $script);
	like(changed_functions([ 'scru64', '1.0' ], [ 'scru64', $version ]), $found, "$what is found out");
}

$node->stop;
done_testing();
