# shellcheck shell=bash disable=SC2034,SC2154
#
# chroots.sh
#		What scripts/heavy and scripts/release have in common: Debian's releases, each in a
#		folder of its own.
#
# To be sourced after common.sh, which sets the variables that are not set here.
#
# For each release a pristine tree is kept in a cache: Debian's minimal system and
# its PostgreSQL, nothing else.  One of an emulated architecture also has what
# scripts/test installs: that takes long there.  Commands run in copies of it that are
# thrown away, in name spaces of their own for mounts and processes: whatever they
# mount or start is gone when they end, however they end.  They share the network
# with this machine, and the packages that they download.

# Oldest PostgreSQL first.  "experimental" is sid with the PostgreSQL of experimental.
# A test that has others says so.
all_releases=(bookworm trixie forky experimental)
# Only if they are named
more_releases=()
readonly experimental_postgresql=postgresql-19

cache=${MATRIX_CACHE:-/var/cache/scru64-matrix}
copies=					# the folder of the copies, removed at the end
shm_size=50%			# of /dev/shm in a tree
declare -a confined=()	# prefix of what enters a tree

chroots_usage()
{
	cat <<'END'

Each release is a pristine tree in a cache folder, made by mmdebstrap when it is
missing: Debian's minimal system and its package postgresql; "experimental" is sid with
the PostgreSQL of experimental. It is used in copies that are removed at the end.
PostgreSQL servers of this machine are left alone.

Run it as root, on Debian or Ubuntu. Environment:

  MATRIX_CACHE   folder of the pristine trees and of downloaded packages, about 6 GB;
                 default: /var/cache/scru64-matrix. Remove it for trees of today.
  MATRIX_MIRROR  Debian mirror; default: deb.debian.org, with security updates
  TMPDIR         where to put small temporary files; default: /tmp
END
}

# Install the programs that are needed here, of the packages of the same name.
provide_programs()
{
	local -a missing

	((EUID == 0)) || die "this needs root: it makes chroots and mounts in them"
	mapfile -t missing < <(missing_of "$@")
	if ((${#missing[@]} > 0)); then
		prepare_apt "${missing[@]}"
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
		[[ " ${all_releases[*]} ${more_releases[*]-} " == *" $release "* ]] ||
			die "there is no release $release here" "There is: ${all_releases[*]} ${more_releases[*]-}"
	done
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
	# /dev/shm is its own: PostgreSQL's segments of a server that was killed go with it.
	# shellcheck disable=SC2016 # that bash expands it
	isolated bash -c '
		set -eu
		root=$1 shm_size=$2
		shift 2
		mount -t proc proc "$root/proc"
		mount --rbind /dev "$root/dev"
		mount -t tmpfs -o "mode=1777,size=$shm_size" shm "$root/dev/shm"
		exec "$@"' \
		- "$root" "$shm_size" ${confined[@]+"${confined[@]}"} \
		chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		HOME=/root TERM=dumb LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
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

# Run one of these functions with the rights and the shared memory that Docker gives a container.
in_container()
{
	local shm_size=64m
	local -a confined=(setpriv --bounding-set
		"-all,+audit_write,+chown,+dac_override,+fowner,+fsetid,+kill,+mknod,+net_bind_service,+net_raw,+setfcap,+setgid,+setpcap,+setuid,+sys_chroot")

	"$@"
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

# See to it that the cache has the pristine tree of a release, of an architecture, or
# of what is built.  One more build is a line here, and a name in scripts/heavy.
make_pristine()
{
	local lock

	# Two runs at once: the second waits for the first one's tree.
	exec {lock}>"$cache/.$1.lock"
	flock "$lock"
	if [[ ! -d $cache/$1 ]]; then
		say "$1: making the pristine tree in $cache/$1."
		case $1 in
			cassert) make_built "$1" --enable-cassert ;;
			exec)
				make_built "$1" --enable-cassert CPPFLAGS="$(printf -- '-D%s ' \
					EXEC_BACKEND {COPY,WRITE_READ}_PARSE_PLAN_TREES RAW_EXPRESSION_COVERAGE_TEST)"
				;;
			blocks32) make_built "$1" --enable-cassert --with-blocksize=32 ;;
			*) make_debian "$1" "$copies/$1.new" ;;
		esac
		mv "$copies/$1.new" "$cache/$1"
	fi
	exec {lock}>&-
}

make_debian()
{
	local release=$1 new=$2 suite=$1 package=postgresql mirror=${MATRIX_MIRROR:-http://deb.debian.org/debian}
	# How this machine's apt gets at the mirror: proxies, what it checks
	local -a options=(--mode=root --variant=minbase --skip=cleanup/apt/lists "--aptopt=$work/apt.conf")
	local -a sources=(${MATRIX_MIRROR:+"$MATRIX_MIRROR"})

	apt-config dump --no-empty | grep -E '^Acquire::(http|https|Retries|ForceIPv|Check-)' >"$work/apt.conf" || true
	[[ $mirror != https:* ]] || options+=(--include=ca-certificates)
	case $release in
		experimental)
			# Of experimental PostgreSQL only, libpq5 and libpq-dev with it
			suite=sid
			package=$experimental_postgresql
			sources=("deb $mirror sid main" "deb $mirror experimental main")
			printf '%s\n' "Package: src:$package" "Pin: release a=experimental" "Pin-Priority: 500" >"$work/experimental"
			options+=("--setup-hook=copy-in $work/experimental /etc/apt/preferences.d")
			;;
		i386)
			suite=trixie
			options+=(--architectures=i386 --skip=check/qemu)
			;;
		s390x)
			# with headers, without the compilers for JIT that come with their package
			suite=trixie
			options+=("--architectures=$release" --skip=check/qemu
				"--include=libpq-dev,gcc,libc6-dev,make,libipc-run-perl")
			# shellcheck disable=SC2016 # that sh expands it
			options+=('--customize-hook=chroot "$1" sh -ec "cd /tmp && apt-get -q download postgresql-server-dev-17 &&
				dpkg -x postgresql-server-dev-17_*.deb / && rm postgresql-server-dev-17_*.deb"')
			;;
	esac
	if ! isolated mmdebstrap "${options[@]}" "--include=$package" "$suite" "$new" ${sources[@]+"${sources[@]}"} >"$work/log/mmdebstrap" 2>&1; then
		tail -n 50 "$work/log/mmdebstrap" >&2
		die "mmdebstrap failed"
	fi
	# No server is started that nobody asked for.
	printf '#!/bin/sh\nexit 101\n' >"$new/usr/sbin/policy-rc.d"
	chmod 755 "$new/usr/sbin/policy-rc.d"
	# Debian's tools for packages have experimental's version, too.
	[[ $release != experimental ]] ||
		install -D -m 644 /dev/stdin "$new/etc/postgresql-common/supported_versions" <<<"${package#*-}"
}

# A tree of trixie with one more PostgreSQL, in /usr/lib/postgresql/NAME, built from
# forky's source package; further arguments are configure's.  Not from trixie's: a mirror
# may lack the source of an update of a stable release.  Debian's patches are left
# out: to apply them takes more packages, and no test is about them.  OpenSSL is there for
# libpq, which connects in other steps with it, and zlib for pg_dump and pg_basebackup.
make_built()
{
	local root root_release

	make_copy trixie "$1.new"
	# shellcheck disable=SC2016 # that sh expands it
	enter_quietly "$work/log/pristine" "$root" sh -ec '
		name=$1
		shift
		sed -n "s/^deb \(.*\) trixie /deb-src \1 forky /p" /etc/apt/sources.list >/etc/apt/sources.list.d/source.list
		apt-get -q update
		apt-get -q -y --no-install-recommends install \
			gcc libc6-dev make bison flex bzip2 libipc-run-perl libssl-dev zlib1g-dev
		# outside its sources, as Debian does it: without that PGXS builds nothing outside a tree
		mkdir /build /build/outside
		cd /build
		apt-get -q --download-only source postgresql-18
		tar --strip-components=1 -xf postgresql-18_*.orig.tar.*
		cd outside
		../configure --quiet "--prefix=/usr/lib/postgresql/$name" "--with-extra-version= ($name)" \
			--enable-debug --enable-tap-tests --with-openssl --without-icu --without-readline "$@"
		make -s -j "$(nproc)" world-bin
		make -s install-world-bin
		cd /
		rm -r build /etc/apt/sources.list.d/source.list
		apt-get -q update' - "$@" ||
		die "PostgreSQL could not be built in the tree $1"
	keep_archives trixie "$root"
	rm -f "$root"/var/cache/apt/archives/*.deb
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

# Run a command in a copy of a release that has the checkout at /scru64.
in_copy()
{
	local root root_release status=0

	make_copy "$1" "$1" || return
	copy_checkout "$root/scru64" || return
	shift
	enter "$root" "$@" || status=$?
	remove_copy
	return "$status"
}

# ---------------------------------------------------------------------------
# The table at the end
# ---------------------------------------------------------------------------

declare -a table=()
all_passed=true

# Run a command and add a row to the table: its closing line "N passed, N failed", or else its
# lines "ok: ..." and "not ok: ..."; and on what it ran, if it prints "PostgreSQL: NAME, ...".
row()
{
	local title=$1 log=$cache/log/$1 began=$SECONDS server status=0 time

	shift
	say "$title: running; it prints into $log."
	"$@" >"$log" 2>&1 || status=$?
	passed='' failed=''
	read -r passed failed < <(tail -n 1 "$log" | sed -n -E 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p') || count_in "$log"
	((status == 0 || failed > 0)) || failed=1
	server=$(sed -n 's/^PostgreSQL: \(.*\), .*/\1/p' "$log" | head -n 1)
	if ((failed > 0 || passed == 0)); then
		all_passed=false
		failures_in "$log" || tail -n 20 "$log"
	fi
	time=$((SECONDS - began))
	table+=("$(printf '%-20s %-34s %8s %8s %5d:%02d' "$title" "${server:--}" "$passed" "$failed" \
		$((time / 60)) $((time % 60)))")
}

# Print the table.  False if anything failed.
print_table()
{
	say ""
	printf '%-20s %-34s %8s %8s %8s\n' "" PostgreSQL passed failed time
	printf '%s\n' "${table[@]}"
	$all_passed
}

# ---------------------------------------------------------------------------
# The beginning, and the end
# ---------------------------------------------------------------------------

# Begin with the releases that are named, or with all.
begin_chroots()
{
	make_work
	provide_programs mmdebstrap
	choose_releases "$@"
	make_copies
	mkdir -p "$cache/log"
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

cleanup=cleanup_chroots
