# Files that others read meanwhile, libraries that a server loads before its own, and a shell that does
# something later.

package Scru64Files;

use strict;
use warnings;

use Exporter 'import';
use Scru64Test;

our @EXPORT = qw(compile_library replace_file soon);

# Who reads the file meanwhile sees the old or the new one.
sub replace_file
{
	my ($path, $text) = @_;

	unlink("$path.new");
	append_to_file("$path.new", $text);
	rename("$path.new", $path) or die "could not rename $path.new: $!";
	return;
}

# Compile a library that a server loads before its own: a file of the modules' folders, or the text of
# one.  Returns its path, or nothing if there is no compiler, or if the server cannot load the
# library, as a server that is built with the address sanitizer.
sub compile_library
{
	my ($name, $dir, $text) = @_;
	my $library = "$dir/$name.so";
	my ($source) = defined $text ? "$dir/$name.c" : grep { -e } map { "$_/$name.c" } @INC;

	append_to_file($source, $text) if defined $text;
	my $status = system('cc', '-shared', '-fPIC', '-o', $library, $source);
	my $errors = '';

	return if $status == -1;
	die "could not compile $name.c" if $status != 0;

	local $ENV{LD_PRELOAD} = $library;
	# ld.so ignores a library that it cannot load, and prints an error
	return $library if IPC::Run::run([ 'postgres', '--version' ], '>', '/dev/null', '2>', \$errors) && $errors eq '';
	unlink($library);
	return;
}

# Something that a shell does after so many seconds, whatever the test waits for then.
sub soon
{
	my ($seconds, $command) = @_;

	system("(sleep $seconds; $command) </dev/null >/dev/null 2>&1 &") == 0 or die 'no shell';
	return;
}

1;
