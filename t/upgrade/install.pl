# make install while sessions come: each finds a library, the old one or the new one,
# however long the installation takes; and what it leaves is what PGXS would leave.  The
# scripts replace no other build under a server, and know their own from another folder.

use FindBin;
use lib "$FindBin::RealBin/../lib";
use Scru64Test;

my $top = "$FindBin::RealBin/../..";
plan skip_all => 'the extension is not built here' if !-e "$top/scru64.so" || !-e "$top/src/lease_worker/scru64_lease.so";

my $dir = PostgreSQL::Test::Utils::tempdir();
my $node = new_node('main');
my $pkglibdir = $node->config_data('--pkglibdir');
my $libraries = "$dir$pkglibdir";

# As install does it, but each time it waits until a session has come meanwhile.
my $window = "$dir/window";
append_to_file("$dir/slow_install", <<"END");
#!/bin/sh
while [ "\$#" -gt 2 ]; do shift; done
to=\$2
[ ! -d "\$to" ] || to=\$to/\${1##*/}
rm -f "\$to"
(umask 077 && : >"\$to")
chmod 0 "\$to"
: >"$window"
tries=0
while [ -e "$window" ] && [ "\$tries" -lt 1800 ]; do
	tries=\$((tries + 1))
	sleep 0.1
done
rm -f "\$to"
cat "\$1" >"\$to"
chmod 755 "\$to"
END
chmod(0755, "$dir/slow_install");

sub make
{
	my ($target, @args) = @_;
	my $out = '';

	IPC::Run::run([ 'make', '-s', '-C', $top, $target, "DESTDIR=$dir", @args ], '<', '/dev/null', '>', \$out, '2>&1')
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
like($installed, qr/^755 \S+\/$_\.so$/m, "$_.so, with its permissions") foreach ('scru64', 'scru64_lease');
like($installed, qr/^644 \S+\/$_$/m, "$_, with its permissions") foreach ('scru64.control', 'scru64--1.0.sql');

# A server that loads the library from there
$node->append_conf('postgresql.conf', "dynamic_library_path = '$libraries'\nsession_preload_libraries = 'scru64'");
$node->start;

my ($sessions, $failed, $inodes) = (0, '', '');
foreach my $round (1 .. 3)
{
	my $out = '';
	my $make = IPC::Run::start([ 'make', '-s', '-C', $top, 'install', "DESTDIR=$dir", "INSTALL_SHLIB=$dir/slow_install" ],
		'<', '/dev/null', '>', \$out, '2>&1');

	$inodes .= (stat("$libraries/scru64.so"))[1] . ' ';
	while ($make->pumpable)
	{
		$make->pump_nb;
		if (!-e $window)
		{
			sleep(0.05);
			next;
		}
		my ($ret, undef, $err) = $node->psql('postgres', "LOAD 'scru64'; LOAD 'scru64_lease'");

		$sessions++;
		$failed .= "$err\n" if $ret != 0 || $err ne '';
		unlink($window);
	}
	ok($make->finish, "round $round: installed") or diag($out);
}
is($failed, '', 'no session has failed');
is($sessions, 6, 'one came while each library was installed');
unlike($inodes, qr/\b(\d+) \1\b/, 'each time there was a new file');
is(files("$dir/") =~ s/^.*slow_install\n//mr, $installed =~ s/^.*slow_install\n//mr, 'nothing else is left');

# A slow one that fails leaves what there was.
chmod(0644, "$dir/slow_install");
ok(!IPC::Run::run([ 'make', '-s', '-C', $top, 'install', "DESTDIR=$dir", "INSTALL_SHLIB=$dir/slow_install" ], '>', '/dev/null', '2>', '/dev/null'),
	'an installation that fails');
is($node->safe_psql('postgres', 'SELECT 1'), '1', 'does no harm');

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
