# shellcheck shell=bash disable=SC2154
#
# clusters.sh
#		The Patroni clusters of failover/run: the fleet, and the realm that it leases its
#		nodes from, three members each, with one etcd.
#
# To be sourced after common.sh.  The caller sets part and clusters.

readonly etcd_port=7410
readonly -A members_of=([fleet]='m1 m2 m3' [realm]='r1 r2 r3')
readonly -A port=([m1]=7401 [m2]=7402 [m3]=7403 [r1]=7404 [r2]=7405 [r3]=7406)
readonly realm_line='host=127.0.0.1,127.0.0.1,127.0.0.1 port=7404,7405,7406 dbname=realm user=fleet target_session_attrs=read-write'

declare -A patroni=()			# process IDs
declare -A leader=()			# of each cluster
declare -A replicas=()			# of each cluster
etcd=

# Longer than it takes until another member is promoted: the leader's key ends with its
# ttl.
readonly ttl=20 pause=27

on_member()
{
	local member=$1

	shift
	as_server env PGCONNECT_TIMEOUT=2 timeout 10 "$bindir/psql" -XAtq -F ' ' -v ON_ERROR_STOP=1 \
		-h 127.0.0.1 -p "${port[$member]}" -U postgres "$@" </dev/null 2>>"$work/log/on_member"
}

# Each member sees etcd at an address of its own, which can be taken away.
etcd_address()
{
	say "10.9.0.$((${port[$1]} - 7400))"
}

make_network()
{
	local member

	ip link set lo up
	for member in "${!port[@]}"; do
		ip address add "$(etcd_address "$member")/32" dev lo
	done
}

start_etcd()
{
	exec_as_server etcd --name etcd --data-dir "$work/etcd" \
		--listen-client-urls "http://0.0.0.0:$etcd_port" --advertise-client-urls "http://127.0.0.1:$etcd_port" \
		--listen-peer-urls "http://127.0.0.1:$((etcd_port + 1))" >>"$work/log/etcd" 2>&1 </dev/null &
	etcd=$!
	# Patroni 3.0 ends if it finds one that has not elected itself yet
	wait_until 60 as_server etcdctl --endpoints "127.0.0.1:$etcd_port" endpoint health >>"$work/log/etcdctl" 2>&1 ||
		die "etcd does not start"
	printf '%s\n' 'etcd3:' "  host: 127.0.0.1:$etcd_port" >"$work/patronictl.yml"
}

# The page's lines for patroni.yml
recipe()
{
	sed -n '/^## A realm under Patroni$/,/^## /{/^```yaml$/,/^```$/{//!p}}' "$top/doc/operating.md"
}

# The lines of a file that let the callback be the realm's owner, as items of patroni.yml.  There
# is no SSL here.
owner_lines()
{
	sed -n "/^<!-- recipe $1 -->\$/,/^\`\`\`\$/{/^hostssl/d; s/^[a-z]/    - &/p}" "$top/doc/realm.md"
}

# The setting of the node: one and the same for all members.
node_setting()
{
	if [[ $part == lease ]]; then
		say "scru64.realm: '$realm_line'"
	else
		say "scru64.node_spec: '42/10'"
	fi
}

configure_member()
{
	local cluster=$1 member=$2 etc=$work/$2.d

	mkdir "$etc"
	cat >"$etc/member.yml" <<END
scope: $cluster
name: $member
restapi:
  listen: 127.0.0.1:$((${port[$member]} + 20))
  connect_address: 127.0.0.1:$((${port[$member]} + 20))
etcd3:
  hosts: $(etcd_address "$member"):$etcd_port
  use_proxies: true
bootstrap:
  dcs:
    ttl: $ttl
    loop_wait: 2
    retry_timeout: 3
    primary_start_timeout: 0
    postgresql:
      use_pg_rewind: true
      parameters:
        $([[ $cluster == realm ]] || node_setting)
        shared_preload_libraries: scru64
        logging_collector: 'on'
        log_directory: $work/log
        log_line_prefix: '%m [%p] '
  initdb:
    - encoding: UTF8
    - no-locale
    - data-checksums
postgresql:
  listen: 127.0.0.1:${port[$member]}
  connect_address: 127.0.0.1:${port[$member]}
  data_dir: $work/$member
  bin_dir: $work/$member.bin
  pgpass: $work/$member.pgpass
  basebackup:
    - checkpoint: fast
  pg_hba:
$([[ $cluster != realm ]] || owner_lines pg_hba.conf)
    - local all all trust
    - host all all 127.0.0.1/32 trust
    - host replication all 127.0.0.1/32 trust
$([[ $cluster != realm ]] || { echo '  pg_ident:' && owner_lines pg_ident.conf; })
  parameters:
    unix_socket_directories: $work
    log_filename: server-$member
  authentication:
    superuser:
      username: postgres
    replication:
      username: replicator
tags: {}
END
	# as the page has it, but for the addresses
	if [[ $cluster == realm ]]; then
		recipe | sed "s|^\( *on_role_change: [^ ]*\) .*|\1 $(etcd_address "$member"):$etcd_port 'host=$work port=${port[$member]} user=realm dbname=realm'|" \
			>"$etc/realm.yml"
	fi
}

# PostgreSQL's programs for a member, whose server has a clock of its own.  Patroni has the
# machine's clock.
make_bindir()
{
	local member=$1

	mkdir "$work/$member.bin"
	ln -s "$bindir"/* "$work/$member.bin/"
	rm "$work/$member.bin/postgres"
	cat >"$work/$member.bin/postgres" <<END
#!/bin/sh
export LD_PRELOAD=$work/set_clock.so SET_CLOCK=$work/$member.clock
exec $bindir/postgres "\$@"
END
	chmod 755 "$work/$member.bin/postgres"
	set_clock "$member" 0
}

# Set a member's clock to the machine's plus so many seconds: see t/lib/set_clock.c.
set_clock()
{
	perl -MFcntl -e 'sysopen(my $file, $ARGV[0], O_WRONLY | O_CREAT) or die $!; syswrite($file, pack("q", 2e6 * $ARGV[1])) == 8 or die $!' \
		"$work/$1.clock" "$2"
}

start_patroni()
{
	local member=$1

	exec_as_server patroni "$work/$member.d" >>"$work/log/patroni-$member" 2>&1 </dev/null &
	patroni[$member]=$!
}

start_cluster()
{
	local cluster=$1 member

	if [[ $cluster == realm ]]; then
		mkdir -p /etc/patroni
		install "$top/examples/realm_promoted" "$(recipe | sed -n 's/^ *on_role_change: \([^ ]*\).*/\1/p')"
	fi
	for member in ${members_of[$cluster]}; do
		configure_member "$cluster" "$member"
		make_bindir "$member"
		start_patroni "$member"
	done
	wait_whole "$cluster" || die "there is no leader with two standbys"
	if [[ $cluster == realm ]]; then
		on_member "${leader[realm]}" -d postgres -c "CREATE ROLE realm LOGIN" -c "CREATE ROLE fleet LOGIN" \
			-c "CREATE DATABASE realm OWNER realm"
		on_member "${leader[realm]}" -d realm -c "SET ROLE realm" -c "SET client_min_messages = warning" \
			-c "CREATE EXTENSION scru64_realm CASCADE" \
			-c "GRANT EXECUTE ON FUNCTION scru64_realm.realm_id, scru64_realm.lease, scru64_realm.renew, scru64_realm.release TO fleet"
		# as the page says
		event_switchover realm
		wait_whole realm || die "there is no leader with two standbys"
	fi
}

patronictl()
{
	as_server timeout 120 patronictl -c "$work/patronictl.yml" "$@" >>"$work/log/patronictl" 2>&1 </dev/null
}

# The synchronous standby of the realm, as Patroni has recorded in etcd
synchronous_standby()
{
	as_server etcdctl --endpoints "127.0.0.1:$etcd_port" get --print-value-only /service/realm/sync 2>>"$work/log/on_member" |
		sed -n "s/.*\"leader\":\"${leader[realm]}\".*\"sync_standby\":\"\([^,\"]*\).*/\1/p"
}

# Set a cluster's leader and replicas; false unless there is one primary that streams to
# the others, and the realm's has a synchronous one.
is_whole()
{
	local cluster=$1 member row

	leader[$cluster]=
	replicas[$cluster]=
	for member in ${members_of[$cluster]}; do
		row=$(on_member "$member" -d postgres -c "SELECT pg_is_in_recovery(),
			(SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND application_name ~ '^[mr][123]$')") || return
		if [[ $row == f* ]]; then
			[[ $row == "f 2" && -z ${leader[$cluster]} ]] || return
			leader[$cluster]=$member
		else
			replicas[$cluster]+="$member "
		fi
	done
	[[ -n ${leader[$cluster]} ]] && { [[ $cluster == fleet ]] || [[ -n $(synchronous_standby) ]]; }
}

# Build members anew that are neither primary nor follow one, as somebody would who looks
# after them.  pg_rewind does not help with two histories of one timeline.
mend()
{
	local cluster=$1 member

	for member in ${members_of[$cluster]}; do
		if [[ $(on_member "$member" -d postgres -c "SELECT NOT pg_is_in_recovery()
				OR EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')") != t ]]; then
			say "$(date +%T) building $member anew"
			patronictl reinit "$cluster" "$member" --force || true
		fi
	done
}

# Arguments: which clusters; all that there are if none is named
wait_whole()
{
	local end=$((SECONDS + 480)) mend_at=$((SECONDS + 90)) cluster

	(($# > 0)) || set -- "${clusters[@]}"
	for cluster in "$@"; do
		until is_whole "$cluster"; do
			((SECONDS < end)) || return
			if ((SECONDS > mend_at)); then
				mend "$cluster"
				mend_at=$end
			fi
			sleep 1
		done
	done
}
