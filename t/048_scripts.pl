# What the scripts say, in a few lines, where a machine is not as they need it, and that
# they replace no other build of the extension under a server that is running.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Scru64Test;
use Test::More;

my $top = "$FindBin::RealBin/..";
plan skip_all => 'the extension is not built here' if !-e "$top/scru64.so" || !-e "$top/src/lease_worker/scru64_lease.so";

my $dir = PostgreSQL::Test::Utils::tempdir();
my $node = new_node('main');
my $bindir = $node->config_data('--bindir');

sub program
{
	my ($path, $text) = @_;

	append_to_file($path, "#!/bin/sh\n$text\n");
	chmod(0755, $path);
	return $path;
}

# Run some of scripts/common.sh: exit status, what it prints.  The environment is added to.
sub common
{
	my ($commands, %environment) = @_;
	my $out = '';

	local %ENV = (%ENV, %environment);
	IPC::Run::run([ 'bash', '-c', ". '$top/scripts/common.sh'; $commands" ], '<', '/dev/null', '>', \$out, '2>&1');
	return ($? >> 8, $out);
}

# Without lists of packages, as in a new container
mkdir("$dir/apt");
program("$dir/apt/apt-cache", 'echo "N: Unable to locate package" >&2; exit 100');
my ($status, $out) = common('plan_install gcc postgresql', PATH => "$dir/apt:$ENV{PATH}");
is($status, 1, 'no lists of packages: an error');
like($out, qr/apt-get knows no package postgresql\nRun apt-get update/, 'and the way out');

# Without a network
append_to_file("$dir/log",
	"Reading\n" . "Err:1 http://a bookworm\n  Temporary failure resolving 'a'\n" x 400
	  . "E: Failed to fetch http://a/b  Temporary failure resolving 'a'\n" x 400 . "E: Unable to fetch some archives\n");
(undef, $out) = common("why_apt_failed '$dir/log'");
like($out, qr/\AThere is no network\b/, 'no network: it says so');
is($out =~ tr/\n//, 3, 'in three lines of 1,202');

# PG_CONFIG
my %said = (
	$bindir => qr{, a folder; set it to \Q$bindir\E/pg_config\n},
	"$bindir/../bin/" => qr{, a folder; set it to \S+/pg_config\n},
	$dir => qr/, a folder in which there is no pg_config\n/,
	"$bindir/psql" => qr/, which is a program, but no pg_config\n/,
	"$dir/none" => qr/, which is not a program\n/);
foreach my $wrong (sort keys %said)
{
	($status, $out) = common('find_server', PG_CONFIG => $wrong);
	is($status, 1, 'a PG_CONFIG that is none');
	like($out, qr/PG_CONFIG is \Q$wrong\E$said{$wrong}/, 'and what it is');
}

# Another build, where a server is running
my $library = "$dir/lib/scru64.so";
my $pg_config = program("$dir/pg_config", <<"END_OF_PROGRAM");
case \$1 in
	--pkglibdir) echo $dir/lib ;;
	--sharedir) echo $dir/share ;;
	*) exec $bindir/pg_config "\$@" ;;
esac
END_OF_PROGRAM
mkdir("$dir/$_") foreach (qw(lib share share/extension));
append_to_file($library, 'another build');

sub install_extension
{
	my ($replace) = @_;

	return common(<<"END_OF_COMMANDS", PG_CONFIG => $pg_config, REPLACE => $replace);
trap cleanup EXIT
make_work
mkdir "\$work/home" "\$work/tmp"
find_server
tree=\$top make_args=("PG_CONFIG=\$pg_config" with_llvm=no)
install_extension
END_OF_COMMANDS
}

$node->start;
($status, $out) = install_extension('');
is($status, 1, 'another build, and a server: an error');
like($out, qr{ has another build of the extension, and a server that may use it is running\nNothing was installed}, 'which says so');
is(slurp_file($library), 'another build', 'nothing was installed');
($status, $out) = install_extension('1');
is($status, 0, 'unless it is told to') or diag($out);
ok(slurp_file($library) eq slurp_file("$top/scru64.so"), 'it was installed');
like((install_extension(''))[1], qr/^It is installed already, /m, 'the same build is no other');
$node->stop;

done_testing();
