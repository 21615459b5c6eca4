# shellcheck shell=bash disable=SC2034,SC2154
#
# outside.sh
#		The images of examples/ are built, and containers of them run, with podman and
#		podman-compose.  That for CloudNativePG is of PostgreSQL 18; CloudNativePG itself is
#		not run.  A copy of the Debian release stands in for the official images: no
#		registry of images is asked.
#
# To be sourced by scripts/heavy.

# Where podman has everything of a release, so that nothing of it outlives this run.  Resource limits
# that podman would raise are as low as anybody's.
configure_podman()
{
	local folder=$copies/podman.$1

	mkdir "$folder"
	export CONTAINERS_CONF=$folder/containers.conf CONTAINERS_STORAGE_CONF=$folder/storage.conf
	cat >"$CONTAINERS_CONF" <<END
[containers]
cgroups = "disabled"
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
tmp_dir = "$folder/tmp"
[network]
network_backend = "netavark"
network_config_dir = "$folder/networks"
END
	cat >"$CONTAINERS_STORAGE_CONF" <<END
[storage]
driver = "${STORAGE_DRIVER:-overlay}"
graphroot = "$folder/root"
runroot = "$folder/run"
END
}

# Run a command in name spaces of its own, with the control groups that podman expects.
contained()
{
	# shellcheck disable=SC2016 # that bash expands it
	isolated bash -euc 'mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec "$@"' - "$@"
}

# Make the image of a Debian release that stands in for PostgreSQL's official one.
make_stand_in()
{
	rm -rf "$root"/usr/lib/llvm* "$root"/usr/lib/postgresql/*/lib/{bitcode,llvmjit*} "$root"/usr/share/{doc,locale,man}
	install -m 755 heavy/examples/docker-entrypoint.sh "$root/usr/local/bin/"
	mkdir -p "$root/docker-entrypoint-initdb.d"
	enter "$root" install -d -o postgres -g postgres -m 3777 /run/postgresql
	tar -C "$root" --exclude=./var/cache/apt/archives -cf "$copies/base.tar" . &&
		contained podman import -c "ENV PG_MAJOR=$major" \
			-c "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/postgresql/$major/bin" \
			-c "ENV PGDATA=/var/lib/postgresql/$major/docker" \
			-c 'ENTRYPOINT ["docker-entrypoint.sh"]' -c 'CMD ["postgres"]' -c 'STOPSIGNAL SIGINT' \
			"$copies/base.tar" "postgres:$major"
	rm "$copies/base.tar"
}

# Build an image.  Packages that were downloaded once are in the cache.
build_image()
{
	contained podman build --isolation chroot --network host -v "$root/var/cache/apt/archives:/var/cache/apt/archives" \
		-f "$copies/scru64/$1" -t "$2" --build-arg "BASE=postgres:$major" "$copies/scru64"
}

test_containers()
{
	local major root root_release

	configure_podman "$1"
	make_copy "$1" "$1" || return
	copy_checkout "$copies/scru64" || return
	major=$(basename "$root"/usr/lib/postgresql/*)
	check "PostgreSQL $major: a base image can be made" make_stand_in || return
	check "PostgreSQL $major: examples/Dockerfile" build_image examples/Dockerfile postgres-scru64 || return
	if ((major >= 18)); then
		check "PostgreSQL $major: examples/cloudnativepg/Dockerfile" build_image examples/cloudnativepg/Dockerfile scru64-extension || return
	fi
	contained unshare --net "$copies/scru64/heavy/examples/containers" "$major" || return
	remove_copy
	rm -rf --one-file-system "$copies/podman.$1"
}

test_releases()
{
	local release

	provide_programs iptables openssl podman podman-compose
	# The network of containers; its programs are not in PATH.
	if [[ ! -x /usr/lib/podman/netavark || ! -x /usr/lib/podman/aardvark-dns ]]; then
		apt_update
		plan_install netavark aardvark-dns
		apt_install
	fi
	for release in "${releases[@]}"; do
		row "prometheus-$release" in_copy "$release" /scru64/heavy/examples/prometheus
		row "examples-$release" test_containers "$release"
	done
}
