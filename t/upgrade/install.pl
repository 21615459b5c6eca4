# The scripts replace no other build under a server, and know their own from another folder;
# make uninstall leaves nothing.

use strict;
use warnings;
use FindBin;
use Scru64Test;
use Time::HiRes qw(stat);

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;

my $top = "$FindBin::RealBin/../..";
plan skip_all => 'the extension is not built here' if !-e "$top/scru64.so" || !glob("$top/realm/worker/scru64_lease_*.so");

my $dir = PostgreSQL::Test::Utils::tempdir();
my $node = new_node('main');
my $pkglibdir = $node->config_data('--pkglibdir');

sub make
{
	my ($target) = @_;
	my $out = '';

	IPC::Run::run([ 'make', '-s', '-C', $top, $target, "DESTDIR=$dir" ], '<', '/dev/null', '>', \$out, '2>&1')
	  or diag($out);
	return $? == 0;
}

# Files with their permissions
sub files
{
	my ($below) = @_;

	return scalar qx(cd "$below" && find . -type f -printf '%m %p\n' | sort -k 2);
}

ok(make('install'), 'installed');
my $installed = files("$dir/");
like($installed, qr/^755 \S+\/$_\.so$/m, "$_.so, with its permissions") foreach ('scru64', 'scru64_realm', 'scru64_lease_\d+');
like($installed, qr/^644 \S+\/$_$/m, "$_, with its permissions") foreach ('scru64.control', 'scru64--1.0.sql', 'scru64_realm.control', 'scru64_realm--1.0.sql');

# A session may load scru64.so as soon as that is there, and start the lease worker.
my ($worker, $library) = map { (stat((glob("$dir$pkglibdir/$_.so"))[0]))[9] } ('scru64_lease_*', 'scru64');
cmp_ok($worker, '<', $library, 'the library of the lease worker was installed before scru64.so');

$node->start;

# The scripts replace no other build where a server is running, unless they are told to.
mkdir("$dir/$_") foreach ('share', 'share/extension', 'other');
append_to_file("$dir/other/scru64.so", 'another build');
append_to_file("$dir/pg_config", <<"END");
#!/bin/sh
case \$1 in
	--pkglibdir) echo $dir/other ;;
	--sharedir) echo $dir/share ;;
	*) exec pg_config "\$@" ;;
esac
END
chmod(0755, "$dir/pg_config");

sub install_by_script
{
	my ($replace, $build) = @_;
	my $out = '';

	local %ENV = (%ENV, PG_CONFIG => "$dir/pg_config", REPLACE => $replace);
	IPC::Run::run([ 'bash', '-c', <<"END" ], '<', '/dev/null', '>', \$out, '2>&1');
. '$top/scripts/common.sh'
trap cleanup EXIT
make_work
mkdir "\$work/home" "\$work/tmp"
find_server
$build && install_extension
END
	return $out;
}

like(install_by_script('', "tree=$top make_args=(\"PG_CONFIG=\$pg_config\" with_llvm=no)"),
	qr/ has another build of the extension, and a server that may use it is running\nNothing was installed/, 'another build, and a server');
is(slurp_file("$dir/other/scru64.so"), 'another build', 'it is as it was');
# each in a folder of its own
like(install_by_script('1', 'prepare_build && build'), qr/^Installing it into /m, 'it is replaced with REPLACE=1');
like(install_by_script('', 'prepare_build && build'), qr/^It is installed already, /m, 'the same build is no other');
$node->stop;

ok(make('uninstall'), 'uninstalled');
is(files("$dir$pkglibdir"), '', 'nothing is left');

done_testing();
