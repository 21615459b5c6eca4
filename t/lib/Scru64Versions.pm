# Installations of PostgreSQL that have their own extension scripts and libraries, and a
# later version of the library, built from the sources beside it.

package Scru64Versions;

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter 'import';
use File::Basename;
use File::Copy;
use File::Find;
use File::Path qw(make_path);
use Scru64Files;
use Scru64Test;

our @EXPORT = qw(built_libraries built_scripts cannot_build copy_sources current_libraries install_libraries make_installation patch);

# The folder that pg_config tells
sub folder_of
{
	my ($what) = @_;
	my ($path) = run_command([ $ENV{PG_CONFIG} || 'pg_config', "--$what" ]);

	return $path;
}

# PostgreSQL's programs in another place find its other folders where they were relative
# to them.  What is in these are links, so that each can be replaced.  Returns the place
# (as install_path of a server), and its folders of programs, extensions and libraries.
sub make_installation
{
	my $root = PostgreSQL::Test::Utils::tempdir;
	my ($bin, $share, $lib) = map { folder_of($_) } qw(bindir sharedir pkglibdir);
	my $extensions = "$root$share/extension";

	make_path("$root$bin", $extensions, "$root$lib");
	foreach my $program (qw(initdb pg_basebackup pg_config pg_controldata pg_ctl postgres psql))
	{
		next if !-e "$bin/$program";
		copy("$bin/$program", "$root$bin/$program") or die "could not copy $bin/$program: $!";
		chmod(0755, "$root$bin/$program");
	}
	# some packages have libraries beside the folder of libraries
	foreach my $path (glob(dirname($lib) . '/*.so.*'), glob("$lib/*"), glob("$share/extension/*"), grep { basename($_) ne 'extension' } glob("$share/*"))
	{
		symlink($path, "$root$path") or die "could not link $path: $!";
	}
	return { path => $root . dirname($bin), bin => "$root$bin", extensions => $extensions, libraries => "$root$lib" };
}

# Libraries by their names, for install_libraries()
sub libraries_of
{
	my (@paths) = @_;

	return map { basename($_) => slurp_file($_) } @paths;
}

# Those of the installation under test
sub current_libraries
{
	my $lib = folder_of('pkglibdir');
	my ($number) = slurp_file(dirname(__FILE__) . '/../../src/shmem/shared_parts.h') =~ /SHARED_MEMORY_VERSION "(.*)"/;

	return libraries_of("$lib/scru64.so", "$lib/scru64_realm.so", "$lib/scru64_lease_$number.so");
}

# Install libraries as packages do: a process that opens one has the old or the new one.
sub install_libraries
{
	my ($installation, %libraries) = @_;

	foreach my $name (sort keys %libraries)
	{
		replace_file("$installation->{libraries}/$name", $libraries{$name});
		chmod(0755, "$installation->{libraries}/$name");
	}
	return;
}

# Why the sources cannot be built here; nothing if they can.
sub cannot_build
{
	my ($cc) = split(' ', folder_of('cc'));

	return "there is no $cc" if !defined $cc || system("command -v '$cc' >/dev/null 2>&1") != 0;
	return 'there is no make' if system('command -v make >/dev/null 2>&1') != 0;
	return 'there are no server headers' if !-e folder_of('includedir-server') . '/postgres.h';
	return 'there are no headers of libpq' if !-e folder_of('includedir') . '/libpq-fe.h' && !glob(folder_of('includedir') . '/*/libpq-fe.h');
	return '';
}

# A copy of what the libraries are made of
sub copy_sources
{
	my $top = abs_path(dirname(__FILE__) . '/../..');
	my $copy = PostgreSQL::Test::Utils::tempdir;

	find(
		{
			no_chdir => 1,
			wanted => sub {
				my $to = $copy . substr($_, length($top));

				return make_path($to) if -d;
				return if /\.(o|bc|so|a)$/;
				copy($_, $to) or die "could not copy $_: $!";
			}
		},
		map { "$top/$_" } qw(realm src sql Makefile), map { basename($_) } glob("$top/*.control"));
	return $copy;
}

# Change a file of such a copy, or die if it has not what is to be changed.
sub patch
{
	my ($copy, $file, $pattern, $replacement) = @_;
	my $text = slurp_file("$copy/$file");

	$text =~ s/$pattern/$replacement->()/e or die "$file has no $pattern";
	replace_file("$copy/$file", $text);
	return;
}

# Those that are built of a copy of the sources
sub built_libraries
{
	my ($copy) = @_;
	my $out = '';

	IPC::Run::run([ 'make', '-s', '-j2', '-C', $copy, 'PG_CONFIG=' . ($ENV{PG_CONFIG} || 'pg_config'), 'with_llvm=no' ],
		'<', '/dev/null', '>', \$out, '2>&1')
	  or die "could not build the library: $out";
	return libraries_of("$copy/scru64.so", "$copy/realm/scru64_realm.so", glob("$copy/realm/worker/scru64_lease_*.so"));
}

# The realm's scripts that are put together of such a copy, by their names
sub built_scripts
{
	my ($copy) = @_;
	my ($version) = slurp_file("$copy/realm/scru64_realm.control") =~ /^default_version = '(.*)'/m;
	my @from = map { basename($_) =~ /^(.*)--/ } glob("$copy/realm/sql/[0-9]*--*.sql");
	my @names = ("scru64_realm--$version.sql", map { "scru64_realm--$_--$version.sql" } @from);

	system_or_bail('make', '-s', '-C', "$copy/realm", 'PG_CONFIG=' . ($ENV{PG_CONFIG} || 'pg_config'), @names);
	return map { $_ => slurp_file("$copy/realm/$_") } @names;
}

1;
