# shellcheck shell=bash
#
# common.sh
#		What the scripts have in common: find or install PostgreSQL and tools, build
#		in a copy of the tree, install, run a server that is thrown away.
#
# To be sourced.
#
# Two rules hold throughout.  A server that was there before is never stopped,
# restarted, upgraded or connected to.  Nothing is written into the checkout, unless
# the user asks for results there.

set -euo pipefail
umask 022

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top"

readonly oldest_major=15

work=					# the folder of all temporary files, removed at the end
tree=					# the copy of the checkout in it
child=					# process group that run() waits for
beside=					# process of begin_beside()
dropin=					# see apt_install
server=data				# what start_server calls its data directory, and its log
declare -a initdb_options=()	# more of them for start_server
declare -a become_root=()		# prefix of commands that need root
declare -a become_server=()		# prefix of commands that root must not run
declare -a make_args=()
readonly replace=${REPLACE:-}		# another build of the extension, though servers run

# Where a command would read them, variables for another server would lead it
# there, and make's own would change the build.
unset_foreign_variables()
{
	local name

	for name in $(compgen -e); do
		case $name in
			PG_CONFIG) ;;
			PG[A-Z]* | SCRU64_* | MAKEFLAGS | MFLAGS | MAKELEVEL | MAKEFILES)
				unset "$name"
				;;
		esac
	done
}

say()
{
	printf '%s\n' "$*"
}

# Print the script's first comment, and end: with an error unless that was asked for.
usage()
{
	sed '1,2d; /^#/!Q; s/^# \{0,1\}//' "$top/scripts/${0##*/}"
	! declare -F chroots_usage >/dev/null || chroots_usage
	[[ $1 == --help || $1 == -h ]] && exit 0
	exit 2
}

die()
{
	printf '%s: %s\n' "${0##*/}" "$1" >&2
	shift
	(($# == 0)) || printf '%s\n' "$@" >&2
	exit 1
}

# ---------------------------------------------------------------------------
# Whom to run commands as
# ---------------------------------------------------------------------------

# Root, sudo, or nothing.
can_become_root()
{
	if ((EUID == 0)); then
		return 0
	fi
	command -v sudo >/dev/null || return 1
	become_root=(sudo)
	# Without a terminal sudo cannot ask for a password.
	sudo -n true 2>/dev/null || { [[ -t 0 ]] && sudo -v; }
}

as_root()
{
	${become_root[@]+"${become_root[@]}"} "$@"
}

# Servers refuse to run as root.
choose_server_user()
{
	local user

	((EUID == 0)) || return 0
	for user in postgres nobody; do
		if id "$user" >/dev/null 2>&1; then
			become_server=(setpriv "--reuid=$user" "--regid=$(id -g "$user")" --init-groups)
			return 0
		fi
	done
	die "there is neither a user postgres nor a user nobody to run a server as"
}

# Become a command that runs as the server's user, in an environment that is the
# same for everybody.
exec_as_server()
{
	cd "$work"
	exec ${become_server[@]+"${become_server[@]}"} \
		env -i --default-signal \
		PATH="$PATH" HOME="$work/home" TMPDIR="$work/tmp" \
		TERM="${TERM:-dumb}" LANG="${LANG:-C}" LC_ALL="${LC_ALL:-${LANG:-C}}" \
		"$@"
}

as_server()
{
	(exec_as_server "$@")
}

# The same, in a process group of its own and waited for in a way that lets a
# signal through: cleanup then ends the group.
run()
{
	local status=0

	exec_as_server setsid "$@" <&0 &
	child=$!
	wait "$child" || status=$?
	child=
	return "$status"
}

# The same, with the output in a log that is shown only if the command fails.
run_quietly()
{
	local log=$work/log/$1

	shift
	if ! run "$@" >"$log" 2>&1 </dev/null; then
		cat "$log" >&2
		return 1
	fi
}

# Wait until a command holds.  After so many seconds, say for what this has waited, and return false.
wait_until()
{
	local seconds=$1 end=$((SECONDS + $1))

	shift
	until "$@"; do
		((SECONDS < end)) || { say "waited for $seconds seconds in vain: $*" >&2; return 1; }
		sleep 0.2
	done
}

# ---------------------------------------------------------------------------
# The folder of all temporary files
# ---------------------------------------------------------------------------

make_work()
{
	work=$(mktemp -d "${TMPDIR:-/tmp}/scru64.XXXXXX") ||
		die "cannot create a folder in ${TMPDIR:-/tmp}"
	mkdir "$work/log"
}

# Hand the folder to the server's user.  If it is nowhere that user can get to,
# if programs cannot be run there, or if its name is too long for a socket in
# it (107 bytes, of which the tests need 31), move.
hand_over_work()
{
	local base new

	for base in "" /tmp /var/tmp; do
		if [[ -n $base ]]; then
			new=$(mktemp -d "$base/scru64.XXXXXX") || continue
			cp -a "$work/." "$new/"
			rm -rf "$work"
			work=$new
		fi
		mkdir -p "$work/home" "$work/tmp"
		printf '#!/bin/sh\n' >"$work/tmp/probe"
		chmod 755 "$work/tmp/probe"
		if ((EUID == 0)); then
			chown -R "$(server_owner)" "$work"
		fi
		if ((${#work} <= 76)) && as_server "$work/tmp/probe" 2>/dev/null; then
			rm "$work/tmp/probe"
			return 0
		fi
	done
	die "found no folder for temporary files in which the server's user can run programs" \
		"Set TMPDIR to one."
}

# user:group of the server's user
server_owner()
{
	local user group

	user=$(${become_server[@]+"${become_server[@]}"} id -u)
	group=$(${become_server[@]+"${become_server[@]}"} id -g)
	say "$user:$group"
}

# End what is still running and remove all files.
cleanup()
{
	trap '' INT TERM HUP
	set +e

	if [[ -n $child ]]; then
		kill -TERM -- "-$child" 2>/dev/null || kill -TERM "$child" 2>/dev/null
		wait "$child" 2>/dev/null
		child=
	fi
	if [[ -n $beside ]]; then
		kill -TERM "$beside" 2>/dev/null
		wait "$beside" 2>/dev/null
		beside=
	fi
	remove_dropin
	if [[ -n $work ]]; then
		stop_servers
		if mountpoint -q "$work/small"; then
			as_root umount -l "$work/small"
		fi
		rm -rf "$work"
		work=
	fi
}

# ---------------------------------------------------------------------------
# PostgreSQL and the tools
# ---------------------------------------------------------------------------

major_of()
{
	"$1" --version 2>/dev/null | sed -n 's/^PostgreSQL \([0-9]\{1,\}\).*/\1/p; t; $s/.*/0/p'
}

# Print where a pg_config may be, that of the newest server first.
pg_configs()
{
	printf '%s\n' /usr/lib/postgresql/*/bin/pg_config | sort -rV
	command -v pg_config || true
}

# Set pg_config, bindir and major for the server to use; false if there is none.
find_server()
{
	local candidate

	pg_config=${PG_CONFIG:-}
	if [[ -n $pg_config ]]; then
		[[ $("$pg_config" --pgxs 2>/dev/null </dev/null) == /* ]] ||
			die "PG_CONFIG is $pg_config, which is no pg_config that runs" \
				"It has to be such as /usr/lib/postgresql/$oldest_major/bin/pg_config."
		pg_config=$(command -v "$pg_config")
	else
		for candidate in $(pg_configs); do
			if [[ -x $candidate && -x $("$candidate" --bindir)/postgres ]] &&
				(($(major_of "$candidate") >= oldest_major)); then
				pg_config=$candidate
				break
			fi
		done
		[[ -n $pg_config ]] || return 1
	fi

	bindir=$("$pg_config" --bindir)
	major=$(major_of "$pg_config")
	[[ -x $bindir/postgres ]] || die "$pg_config belongs to no server: there is no $bindir/postgres"
	((major >= oldest_major)) || die "$pg_config is of PostgreSQL $major; scru64 needs $oldest_major or later"
}

can_compile()
{
	command -v cc >/dev/null &&
		printf '#include <stdio.h>\nint main(void) { return 0; }\n' |
		cc -x c -o "$work/compiled" - 2>/dev/null
}

# How to see whether there is what a package has, where that is no program of the package's name.
# Debian 12 and older have no package cbmc.
declare -rA is_there=(
	[cbmc]='command -v cbmc || ! apt-cache show cbmc'
	[libipc-run-perl]='perl -MIPC::Run -e 1'
	[libperl-critic-perl]='command -v perlcritic'
	[nodejs]='command -v node'
	[perl]='command -v prove'
	[python3-psycopg]='/usr/bin/python3 -c "import psycopg"'
)

# Of what is needed, print the packages that are missing, a line each.
missing_of()
{
	local need

	for need in "$@"; do
		eval "${is_there[$need]:-command -v $need}" >/dev/null 2>&1 || say "$need"
	done
}

# The same of a build, of a server and of what else is needed; "postgresql" stands for the
# packages of a server that is still to be chosen.
missing_packages()
{
	can_compile || printf '%s\n' gcc libc6-dev
	if [[ -z $pg_config ]]; then
		say postgresql
	elif [[ ! -e $("$pg_config" --includedir-server)/postgres.h || ! -e $("$pg_config" --pgxs) ]]; then
		say "postgresql-server-dev-$major"
	fi
	missing_of make "$@"
}

# Find a server and whatever else is needed; install what is missing.
# Arguments as for missing_packages.
provide()
{
	local -a missing

	find_server || true
	mapfile -t missing < <(missing_packages "$@")
	if ((${#missing[@]} > 0)); then
		prepare_apt "${missing[@]}"
		# where there were no lists of packages, cbmc may be found only now
		mapfile -t missing < <(missing_packages "$@")
		plan_install "${missing[@]}"
		apt_install
		find_server || die "there is still no PostgreSQL $oldest_major or later"
		mapfile -t missing < <(missing_packages "$@")
		((${#missing[@]} == 0)) || die "still missing after installation: ${missing[*]}"
	fi
	say "PostgreSQL: $("$pg_config" --version | sed 's/^PostgreSQL //'), $bindir"
}

# ---------------------------------------------------------------------------
# apt
# ---------------------------------------------------------------------------

apt_get()
{
	# needrestart restarts services after an installation; not for us.
	as_root env LC_ALL=C DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 NEEDRESTART_MODE=l \
		apt-get -q -o DPkg::Lock::Timeout=600 "$@" </dev/null
}

# These packages are missing: bring the list of packages up to date, if that is possible.
prepare_apt()
{
	command -v apt-get >/dev/null ||
		die "missing: $* (by their names in Debian)" \
			"This machine has no apt-get. Install them and run this again."
	! can_become_root || apt_update
}

# Another apt-get, such as the nightly one, may hold the lock of the lists.
apt_update()
{
	local log=$work/log/apt-update end=$((SECONDS + 600))

	say "Updating the list of packages."
	# By itself it calls it a success if it has fetched nothing.
	until apt_get -o APT::Update::Error-Mode=any update >"$log" 2>&1; do
		if ((SECONDS >= end)) || ! grep -q 'Could not get lock' "$log"; then
			why_apt_failed "$log"
			say "apt-get update failed; going on with the lists that are there."
			return
		fi
		sleep 10
	done
}

# A few lines of a log that may have hundreds
why_apt_failed()
{
	{ grep '^[EW]: ' "$1" || tail -n 3 "$1"; } | cut -c 1-200 | awk '!seen[$NF]++ && ++n <= 3' >&2
}

installed_version()
{
	dpkg-query -W -f '${db:Status-Status} ${Version}\n' "$1" 2>/dev/null | sed -n 's/^installed //p' | head -n 1
}

# Print package=version if the archive has the package in that version, else
# the package.
at_version()
{
	local package=$1 version=$2

	if [[ -n $version ]] &&
		apt-cache madison "$package" | awk -F ' *[|] *' -v v="$version" '$2 == v { found = 1 } END { exit !found }'; then
		say "$package=$version"
	else
		say "$package"
	fi
}

# Set plan, the arguments for apt-get install, and upgrades, which lists what
# the plan would change of the PostgreSQL that is installed.
#
# The newest headers can pull the newest server in, and that restarts every
# cluster.  So headers and libpq-dev are asked for in the version that the
# server and libpq5 have.
plan_install()
{
	local package default

	plan=()
	for package in "$@"; do
		case $package in
			postgresql)
				default=$(LC_ALL=C apt-cache depends postgresql 2>/dev/null |
					sed -n 's/^ *Depends: postgresql-\([0-9]\{1,\}\)$/\1/p' | head -n 1) || true
				((${default:-0} >= oldest_major)) ||
					die "scru64 needs PostgreSQL $oldest_major or later; this system's packages have ${default:-none}" \
						"Run apt-get update as root if it was never run; see https://www.postgresql.org/download/ for a later one."
				plan+=("postgresql-$default" "postgresql-server-dev-$default")
				;;
			postgresql-server-dev-*)
				plan+=("$(at_version "$package" "$(installed_version "postgresql-$major")")")
				if [[ -z $(installed_version libpq-dev) ]]; then
					plan+=("$(at_version libpq-dev "$(installed_version libpq5)")")
				fi
				;;
			*)
				plan+=("$package")
				;;
		esac
	done

	# A line is "Inst name [old version] (new version ...)" or "Remv name [old version]".
	simulated=true
	simulation=$(LC_ALL=C apt-get install --simulate --no-install-recommends "${plan[@]}" 2>&1) ||
		simulated=false
	upgrades=$(awk '/^(Inst|Remv) / && $3 ~ /^\[/ && $2 ~ /^(postgresql(-.*)?|libpq5)(:.*)?$/ {
			gsub(/[][()]/, ""); print "    " $2 ": " $3 " -> " ($1 == "Inst" ? $4 : "removed") }' <<<"$simulation")
}

# Install what the plan says.
apt_install()
{
	can_become_root ||
		die "missing: ${plan[*]}" \
			"Run this again in a terminal as a user with sudo, or run this as root, then try again:" \
			"    apt-get update && apt-get install --no-install-recommends ${plan[*]}" \
			${upgrades:+"It upgrades, and restarts, what is there:" "$upgrades"}
	$simulated || die "apt-get cannot install ${plan[*]}:" "$(tail -n 8 <<<"$simulation")"
	# Root sees the servers of all users, and those whose program was replaced.
	if [[ -n $upgrades ]] && as_root sh -c 'grep -qsx postgres /proc/[0-9]*/comm'; then
		die "not installed, because a PostgreSQL server is running here and would be upgraded:" \
			"$upgrades" \
			"That restarts it. When it may be restarted, run this as root, then try again:" \
			"    apt-get install --no-install-recommends ${plan[*]}"
	fi

	say "Installing packages: ${plan[*]}"
	if grep -q '^Inst postgresql-[0-9]* (' <<<"$simulation"; then
		add_dropin
	fi
	if ! apt_get install -y --no-install-recommends "${plan[@]}" 2>&1 | tee "$work/log/apt-install" |
		sed -u -n '/^\(Get:\|Setting up\)/s/^/    /p'; then
		why_apt_failed "$work/log/apt-install"
		die "apt-get could not install these packages"
	fi
	remove_dropin
}

# Say how to remove the extension, and what this run has installed.
say_removal()
{
	local sudo=

	! command -v sudo >/dev/null || sudo="sudo "
	say "To remove the extension, and what this run has installed for it, PostgreSQL too if that is named:"
	say "    ${sudo}make -C $top PG_CONFIG=$pg_config uninstall"
	if [[ -n ${plan[*]-} ]]; then
		say "    ${sudo}apt-get autoremove ${plan[*]%%=*}"
		say "The latter lists, before it asks, all that it removes: whatever no package needs any more."
	fi
}

# A server that Debian installs gets a cluster, which is started.  Nobody asked
# for one.
add_dropin()
{
	dropin=/etc/postgresql-common/createcluster.d/scru64-$$.conf
	as_root install -D -m 644 /dev/stdin "$dropin" <<<"create_main_cluster = false"
}

remove_dropin()
{
	if [[ -n $dropin ]]; then
		as_root rm -f "$dropin"
		as_root rmdir --ignore-fail-on-non-empty "${dropin%/*}"
		dropin=
	fi
}

# ---------------------------------------------------------------------------
# Build and install
# ---------------------------------------------------------------------------

# Copy the checkout, without what was built in it, to a folder.
copy_checkout()
{
	mkdir -p "$1"
	tar -C "$top" --exclude-vcs --exclude='*.o' --exclude='*.bc' --exclude='*.so' --exclude='*.a' --exclude='./realm/scru64_realm--*.sql' \
		--exclude=./unit_tests/build --exclude=./unit_tests/sim/build --exclude=results --exclude=tmp_check -cf - . |
		tar -C "$1" --no-same-owner -xf - || die "the checkout changed while it was copied: run this again"
}

# The same, to a folder of the server's user
copy_tree()
{
	copy_checkout "$1"
	if ((EUID == 0)); then
		chown -R "$(server_owner)" "$1"
	fi
}

# Make the copy to build in, $tree, and set make_args.
prepare_build()
{
	tree=$work/tree
	copy_tree "$tree"
	set_make_args
}

set_make_args()
{
	local clang

	make_args=("PG_CONFIG=$pg_config")
	# A server with JIT wants bitcode, for which there may be no compiler.
	clang=$(sed -n 's/^CLANG *= *//p' "$(dirname "$("$pg_config" --pgxs)")/../Makefile.global")
	if ! command -v "$clang" >/dev/null; then
		make_args+=(with_llvm=no)
	fi
}

build()
{
	say "Building the extension."
	run_quietly build make -j "$(nproc)" -C "$tree" "${make_args[@]}"
}

# Install what was built, unless it is installed already.
install_extension()
{
	local stage=$work/stage file pkglibdir extensiondir differs=false
	# shellcheck disable=SC2016 # that sh expands it
	local find_running='find -L /proc/[0-9]*/exe -maxdepth 0 -samefile "$1" 2>/dev/null'
	local -a prefix=()

	run_quietly stage make -C "$tree" "${make_args[@]}" install "DESTDIR=$stage" || return
	while IFS= read -r file; do
		cmp -s "$stage$file" "$file" || differs=true
	done < <(find "$stage" -type f -printf '/%P\n')

	pkglibdir=$("$pg_config" --pkglibdir)
	extensiondir=$("$pg_config" --sharedir)/extension
	if ! $differs; then
		say "It is installed already, in $pkglibdir and $extensiondir."
		return
	fi
	if [[ ! -w $pkglibdir || ! -w $extensiondir ]]; then
		can_become_root ||
			die "$pkglibdir or $extensiondir cannot be written to" \
				"Run this as root, or in a terminal as a user with sudo."
		prefix=(as_root)
	fi
	# The next session of a running server would have what its users have not asked for.
	if [[ -z $replace && -e $pkglibdir/scru64.so ]] && ! cmp -s "$stage$pkglibdir/scru64.so" "$pkglibdir/scru64.so" &&
		[[ -n $(${prefix[@]+"${prefix[@]}"} sh -c "$find_running" - "$bindir/postgres") ]]; then
		die "$pkglibdir has another build of the extension, and a server that may use it is running" \
			"Nothing was installed. To replace that build, set REPLACE=1; or set PG_CONFIG to another PostgreSQL's."
	fi
	say "Installing it into $pkglibdir and $extensiondir."
	if ! ${prefix[@]+"${prefix[@]}"} make -s -C "$tree" "${make_args[@]}" install >"$work/log/install" 2>&1 </dev/null; then
		cat "$work/log/install" >&2
		return 1
	fi
}

# ---------------------------------------------------------------------------
# The server that is thrown away
# ---------------------------------------------------------------------------

# Start a server that can be reached through a socket in $work only.  Standard
# input is appended to its postgresql.conf.  Of /dev/shm, a container has little.
start_server()
{
	local data=$work/$server

	run_quietly initdb "$bindir/initdb" -D "$data" -U postgres -A trust --no-locale -E UTF8 --no-sync \
		${initdb_options[@]+"${initdb_options[@]}"} || return
	{
		printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$work'" \
			"unix_socket_permissions = 0700" "fsync = off" "dynamic_shared_memory_type = sysv"
		cat
	} >>"$data/postgresql.conf"
	if ! run_quietly pg_ctl "$bindir/pg_ctl" -D "$data" -l "$work/log/$server" -w -t 300 start; then
		cat "$work/log/$server" >&2
		return 1
	fi
}

# Stop every server below $work, those that a test left behind too.
stop_servers()
{
	local file

	while IFS= read -r file; do
		as_server "$bindir/pg_ctl" -D "${file%/*}" -m fast -t 30 -w stop >/dev/null 2>&1 ||
			as_server "$bindir/pg_ctl" -D "${file%/*}" -m immediate -w stop >/dev/null 2>&1
	done < <(find "$work" -name postmaster.pid 2>/dev/null)
}

# ---------------------------------------------------------------------------
# What passed and failed
# ---------------------------------------------------------------------------

passed=0 failed=0				# of the section, or of all
total_passed=0 total_failed=0	# of all sections

# A check: a command, whose output is shown if it fails.
check()
{
	local name=$1

	shift
	if "$@" >"$work/log/check" 2>&1 </dev/null; then
		say "ok: $name"
		((passed += 1))
	else
		# with the failed tests of a long log
		head -n -100 "$work/log/check" | failures_in || true
		tail -n 100 "$work/log/check"
		say "not ok: $name"
		((failed += 1))
		return 1
	fi
}

# The lines of a log that say what failed, of these scripts, of TAP programs and of prove, each after what
# the program said before
failures_in()
{
	grep -E -B 5 '^(not ok|#? *Failed test|.* No subtests run|.*Dubious, test returned|.*[1-9][0-9]* failed)' "$@"
}

# Set passed and failed to the numbers of lines "ok: ..." and "not ok: ..." in a log.
count_in()
{
	passed=$(grep -c '^ok: ' "$1" || true)
	failed=$(grep -c '^not ok: ' "$1" || true)
}

# Run a section: a function that sets passed and failed.  One that ends badly
# has at least one failure, and so has one that tested nothing.
section()
{
	local name=$1

	shift
	passed=0
	failed=0
	say ""
	say "== $name =="
	if ! "$@" && ((failed == 0)); then
		failed=1
	fi
	if ((passed + failed == 0)); then
		say "There is no test here."
		failed=1
	fi
	say "$name: $passed passed, $failed failed"
	((total_passed += passed, total_failed += failed)) || true
}

# Run a function that runs sections, beside what comes next, which the processor serves first.
# end_beside shows what the sections have printed.
begin_beside()
{
	(
		child=
		trap '[[ -z $child ]] || kill -TERM -- "-$child"' EXIT
		trap 'exit 143' TERM
		renice -n 10 "$BASHPID" >/dev/null
		"$@"
		say "$total_passed $total_failed" >"$work/log/beside.sum"
	) >"$work/log/beside" &
	beside=$!
}

# If the function has died, that counts as a failure.
end_beside()
{
	wait "$beside" || true
	beside=
	cat "$work/log/beside"
	passed=0
	failed=1
	[[ ! -e $work/log/beside.sum ]] || read -r passed failed <"$work/log/beside.sum"
	((total_passed += passed, total_failed += failed)) || true
}

# Remove everything, and close with the numbers.  False if any failed, or none passed.
finish()
{
	$cleanup
	say ""
	say "$1 passed, $2 failed"
	(($2 == 0 && $1 > 0))
}

unset_foreign_variables
cleanup=cleanup					# what removes everything
trap '$cleanup' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
