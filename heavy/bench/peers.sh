# shellcheck shell=bash
#
# peers.sh
#		Other extensions that make IDs, beside scru64.
#
# To be sourced by scripts/bench.

# The folder of each in that of --peers
readonly peer_folders=(snowflake pg_uuidv7 pg-ulid)

# Build those that are there, and install them into an installation of PostgreSQL of their
# own. Arguments: its folder
install_peers()
{
	local root=$1 peer tree

	for peer in "${peer_folders[@]}"; do
		if [[ ! -e $peers/$peer/Makefile ]]; then
			say "  $peers has no $peer: left out"
			continue
		fi
		tree=$work/peers/$peer
		mkdir -p "$tree"
		tar -C "$peers/$peer" --exclude-vcs --exclude='*.o' --exclude='*.bc' --exclude='*.so' -cf - . |
			tar -C "$tree" --no-same-owner -xf -
		((EUID != 0)) || chown -R "$(server_owner)" "$tree"
		run_quietly "build-$peer" make -C "$tree" "${make_args[@]}" USE_PGXS=1 install "DESTDIR=$root" || die "$peer: the build failed"
		say "  $peer, $(git --git-dir="$peers/$peer/.git" describe --tags --always 2>/dev/null || say "commit unknown")"
	done
}

# Make an installation of PostgreSQL in a folder, with what is in there already: a server
# finds its files by where its program is, so programs are copied, and the rest is links.
make_installation()
{
	local root=$1 dir

	run_quietly copy mkdir -p "$root$bindir"
	run_quietly copy cp "$bindir"/{postgres,initdb,pg_ctl} "$root$bindir"
	for dir in "$("$pg_config" --pkglibdir)" "$("$pg_config" --sharedir)"; do
		run_quietly copy cp -a --symbolic-link --no-clobber "$dir/." "$root$dir"
	done
}

measure_peers()
{
	if [[ -z $peers ]]; then
		say "  peers: left out; --help says which sources it needs"
		return
	fi
	install_peers "$work/peers-root"
	make_installation "$work/peers-root"
	restart -p "$work/peers-root$bindir/postgres"
	bench_sql peers
}
