# shellcheck shell=bash disable=SC2034,SC2154
#
# outside.sh
#		One tree with the PostgreSQL servers of all releases: the older ones are put beside the
#		newest, with the libraries that its release does not have any more.
#
# To be sourced by scripts/heavy.

# Set root to a tree of a release with the extension built and installed.
make_installed()
{
	say "$1: building and installing the extension."
	make_copy "$1" "$1"
	copy_checkout "$root/scru64"
	enter_quietly "$work/log/$1" "$root" /scru64/scripts/quickstart ||
		die "$1: that should have worked"
	keep_archives "$1" "$root"
}

# Put the PostgreSQL of an older tree into $root, with the libraries that it needs
# and that are not there.  Those that are there are of later versions, and do.
add_older()
{
	local older=$1 folder libraries=usr/local/lib/older missing library path

	for folder in usr/lib/postgresql usr/share/postgresql; do
		cp -a "$older/$folder/." "$root/$folder/"
	done
	mkdir -p "$root/$libraries"
	# A library that is put there may need others.
	while missing=$(missing_libraries) && [[ -n $missing ]]; do
		for library in $missing; do
			# Only from its own release.
			path=$(find "$older/usr/lib" "$older/lib" -name "$library" -print -quit)
			[[ -n $path ]] || die "$older has no $library"
			cp -L "$path" "$root/$libraries/$library"
		done
	done
}

missing_libraries()
{
	# shellcheck disable=SC2016 # that sh expands it
	enter "$root" sh -c '
		echo /usr/local/lib/older >/etc/ld.so.conf.d/older.conf
		ldconfig
		find /usr/lib/postgresql/*/bin /usr/lib/postgresql/*/lib /usr/local/lib/older -type f |
			xargs -n 1 ldd 2>/dev/null | sed -n "s/^[[:space:]]*\(.*\) => not found$/\1/p" | sort -u'
}

test_releases()
{
	local release i
	local -a roots=() bindirs=()

	for release in "${releases[@]}"; do
		make_installed "$release"
		roots+=("$root")
		bindirs+=("$(cd "$root" && printf '/%s' usr/lib/postgresql/*/bin)")
	done
	# The newest of the older ones first: so where both lack a library, it is the later.
	for ((i = ${#roots[@]} - 2; i >= 0; i--)); do
		add_older "${roots[i]}"
	done
	unset 'bindirs[-1]'
	row pg_upgrade enter "$root" env "OLD_BINDIRS=${bindirs[*]}" /scru64/scripts/test t/upgrade/pg_upgrade.pl
	row pg_upgradecluster enter "$root" /scru64/heavy/pg_upgrade/run
}
