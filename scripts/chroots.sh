# shellcheck shell=bash disable=SC2154
#
# chroots.sh
#		What scripts/test-matrix, scripts/test-pg-upgrade, scripts/test-neighbours and
#		scripts/packages have in common: Debian's releases, each in a folder of its own.
#
# To be sourced after common.sh, which sets the variables that are not set here.
# The caller sets the trap for EXIT and calls cleanup_chroots in it.
#
# For each release a pristine tree is kept in a cache: Debian's minimal system and
# its package postgresql, nothing else.  Commands run in copies of it that are
# thrown away, in name spaces of their own for mounts and processes: whatever they
# mount or start is gone when they end, however they end.  They share the network
# with this machine, and the packages that they download.

# shellcheck disable=SC2034 # used by who sources this
readonly all_releases=(bookworm trixie forky)

cache=${MATRIX_CACHE:-/var/cache/scru64-matrix}
copies=					# the folder of the copies, removed at the end

chroots_usage()
{
	cat <<'END'
Each release is a pristine tree in a cache folder, made by debootstrap when it is
missing: Debian's minimal system and its package postgresql. It is used in copies
that are removed at the end. PostgreSQL servers of this machine are left alone.

Run it as root, on Debian or Ubuntu. Environment:

  MATRIX_CACHE   folder of the pristine trees and of downloaded packages; default:
                 /var/cache/scru64-matrix. Remove it for trees of today.
  MATRIX_MIRROR  Debian mirror; default: the one this machine's apt uses
  TMPDIR         where to put small temporary files; default: /tmp
END
}

# Install the programs that are needed here, of the packages of the same name.
provide_programs()
{
	local program
	local -a missing=()

	((EUID == 0)) || die "this needs root: it makes chroots and mounts in them"
	for program in "$@"; do
		command -v "$program" >/dev/null || missing+=("$program")
	done
	if ((${#missing[@]} > 0)); then
		command -v apt-get >/dev/null ||
			die "missing: ${missing[*]} (by their names in Debian)" \
				"This machine has no apt-get. Install them and run this again."
		apt_update
		plan_install "${missing[@]}"
		apt_install
	fi
}

# Leave in $releases those of the command line, or all.
choose_releases()
{
	local release

	releases=("$@")
	if (($# == 0)); then
		releases=("${all_releases[@]}")
	fi
	for release in "${releases[@]}"; do
		[[ " ${all_releases[*]} " == *" $release "* ]] ||
			die "there is no release $release here" "There is: ${all_releases[*]}"
	done
}

# The mirror that this machine's apt uses for Debian itself (Debian) or for its
# security updates (Debian-Security), if there is one
mirror_of()
{
	local targets

	# shellcheck disable=SC2016 # that apt-get expands it
	targets=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages') || true
	sed -n "/^Debian $1 /{s///p;q}" <<<"$targets"
}

# ---------------------------------------------------------------------------
# Name spaces
# ---------------------------------------------------------------------------

# Run a command so that all its mounts and processes end with it, it ends with
# this script, and a signal gets through.
isolated()
{
	local status=0

	setpriv --pdeathsig KILL setsid \
		unshare --mount --pid --ipc --fork --kill-child --mount-proc "$@" </dev/null &
	child=$!
	wait "$child" || status=$?
	child=
	return "$status"
}

# Run a command as the root of a tree.
enter()
{
	local root=$1

	shift
	# /dev/shm is its own: what a server that was killed leaves there goes, too.
	# shellcheck disable=SC2016 # that bash expands it
	isolated bash -c '
		set -eu
		root=$1
		shift
		mount -t proc proc "$root/proc"
		mount --rbind /dev "$root/dev"
		mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
		exec chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
			HOME=/root TERM=dumb LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"' \
		- "$root" "$@"
}

# The same, with the output in a log that is shown only if the command fails.
enter_quietly()
{
	local log=$1

	shift
	if ! enter "$@" >"$log" 2>&1; then
		cat "$log" >&2
		return 1
	fi
}

# ---------------------------------------------------------------------------
# Trees
# ---------------------------------------------------------------------------

# Packages that were downloaded once are in the cache.  A tree has links to them, so
# that apt in one never waits for apt in another.
take_archives()
{
	mkdir -p "$cache/archives/$1"
	find "$cache/archives/$1" -maxdepth 1 -name '*.deb' -exec ln -f -t "$2/var/cache/apt/archives" {} +
}

keep_archives()
{
	find "$2/var/cache/apt/archives" -maxdepth 1 -name '*.deb' -exec ln -f -t "$cache/archives/$1" {} + 2>/dev/null || true
}

# See to it that the cache has the pristine tree of a release.
make_pristine()
{
	local release=$1 root=$cache/$1 new=$copies/$1.new script mirror security lock
	local -a arguments=()

	# Two runs at once: the second waits for the first one's tree.
	exec {lock}>"$cache/.$release.lock"
	flock "$lock"
	if [[ ! -d $root ]]; then
		say "$release: making the pristine tree in $root."
		script=/usr/share/debootstrap/scripts/$release
		# One that debootstrap does not know yet is made as the newest that it knows.
		[[ -e $script ]] || script=${script%/*}/sid
		mirror=${MATRIX_MIRROR:-$(mirror_of Debian)}
		arguments=(--variant=minbase)
		[[ $mirror != https:* ]] || arguments+=(--include=ca-certificates)
		arguments+=("$release" "$new")
		# Without a mirror debootstrap has one of its own.
		[[ -z $mirror ]] || arguments+=("$mirror" "$script")
		if ! isolated debootstrap "${arguments[@]}" >"$work/log/debootstrap" 2>&1; then
			tail -n 50 "$work/log/debootstrap" "$new/debootstrap/debootstrap.log" >&2
			die "debootstrap failed"
		fi

		# How this machine's apt gets at the mirror: proxies, what it checks.
		apt-config dump --no-empty |
			grep -E '^Acquire::(http|https|Retries|ForceIPv|Check-)' >"$new/etc/apt/apt.conf.d/90host" || true
		security=$(mirror_of Debian-Security)
		if [[ -n $security ]]; then
			say "deb $security $release-security main" >>"$new/etc/apt/sources.list"
		fi
		# No server is started that nobody asked for.
		printf '#!/bin/sh\nexit 101\n' >"$new/usr/sbin/policy-rc.d"
		chmod 755 "$new/usr/sbin/policy-rc.d"
		take_archives "$release" "$new"
		enter_quietly "$work/log/pristine" "$new" sh -ec '
			apt-get -q update
			apt-get -q -y dist-upgrade
			apt-get -q -y --no-install-recommends install postgresql' ||
			die "apt-get failed in the tree of $release"
		keep_archives "$release" "$new"
		rm -f "$new"/var/cache/apt/archives/*.deb
		mv "$new" "$root"
	fi
	exec {lock}>&-
}

# Set root to a copy of the pristine tree of a release, called name.
make_copy()
{
	root_release=$1
	make_pristine "$1"
	root=$copies/$2
	cp -a --reflink=auto "$cache/$1" "$root"
	take_archives "$1" "$root"
	# as it is now
	cp -L /etc/resolv.conf "$root/etc/resolv.conf"
}

remove_copy()
{
	keep_archives "$root_release" "$root"
	rm -rf --one-file-system "${root:?}"
}

# Copy the checkout, without what was built in it, to a folder of a tree.
copy_tree_into()
{
	mkdir -p "$1"
	tar -C "$top" --exclude-vcs --exclude='*.o' --exclude='*.bc' --exclude='*.so' --exclude='*.a' \
		--exclude=./unit_tests/build --exclude=./results --exclude=./tmp_check -cf - . |
		tar -C "$1" --no-same-owner -xf -
}

# The folder of this run's copies.  Those of runs that were killed are removed.
make_copies()
{
	local old

	mkdir -p "$cache"
	for old in "$cache"/run.*; do
		if [[ -d $old && ! -d /proc/${old##*.} ]]; then
			rm -rf --one-file-system "$old"
		fi
	done
	copies=$cache/run.$$
	mkdir "$copies"
}

cleanup_chroots()
{
	trap '' INT TERM HUP
	set +e
	if [[ -n $child ]]; then
		kill -KILL -- "-$child" 2>/dev/null
		wait "$child" 2>/dev/null
		child=
	fi
	if [[ -n $copies ]]; then
		rm -rf --one-file-system "$copies"
		copies=
	fi
	cleanup
}
