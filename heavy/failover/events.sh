# shellcheck shell=bash disable=SC2154
#
# events.sh
#		The events of failover/run.
#
# To be sourced after clusters.sh.  The caller sets each, how often a kind comes.  A kind
# names a target and an event: the fleet, the realm, both at once, or etcd and so both.

n_events=0				# so far
n_waits=0				# after which the realm waited
declare -A n_clocks=()			# that have been set, of each cluster

# Print the clusters of an event: with one node spec for all, there is no realm.
befallen()
{
	if [[ $1 == both ]]; then
		say "${clusters[*]}"
	else
		say "$1"
	fi
}

postmaster_of()
{
	head -n 1 "$work/$1/postmaster.pid"
}

# Its processes, the postmaster last
server_of()
{
	local postmaster

	postmaster=$(postmaster_of "$1")
	say "$(<"/proc/$postmaster/task/$postmaster/children") $postmaster"
}

event_kill()
{
	local cluster

	for cluster in $(befallen "$1"); do
		kill -KILL "$(postmaster_of "${leader[$cluster]}")"
	done
}

# The postmaster goes first, so that it starts no other.
event_stop_postgres()
{
	local cluster stopped=''

	for cluster in $(befallen "$1"); do
		kill -STOP "$(postmaster_of "${leader[$cluster]}")"
		stopped+="$(server_of "${leader[$cluster]}") "
	done
	# shellcheck disable=SC2086 # they are several
	kill -STOP $stopped || true
	# shellcheck disable=SC2046
	stay_stopped $(befallen "$1")
	# shellcheck disable=SC2086
	kill -CONT $stopped 2>/dev/null || true
}

# The server goes on, unaware that it is the leader no more.
event_stop_patroni()
{
	local member=${leader[$1]}

	kill -STOP "${patroni[$member]}"
	stay_stopped "$1"
	kill -CONT "${patroni[$member]}"
}

# Wait while the leaders of these clusters are stopped.
#
# A woken Patroni before 3.0.3 overwrites the lock of the member promoted meanwhile, and
# a realm then forgets the leases of the latter.  So a realm under it needs a
# watchdog, which resets the machine before the lock ends.
stay_stopped()
{
	local reset=''

	sleep "$((ttl - 5))"
	if [[ " $* " == *" realm "* ]] && is_older 3.0.3; then
		reset=${leader[realm]}
		switch_off "$reset"
	fi
	sleep "$((pause - ttl + 5))"
	[[ -z $reset ]] || start_patroni "$reset"
}

# Is Patroni older than this version?
is_older()
{
	[[ $patroni_version != "$1" && $(printf '%s\n' "$patroni_version" "$1" | sort -V | head -n 1) == "$patroni_version" ]]
}

# A machine that has lost its power
switch_off()
{
	# shellcheck disable=SC2046 # they are several
	kill -KILL "${patroni[$1]}" $(server_of "$1") || true
	wait "${patroni[$1]}" 2>/dev/null || true
}

event_switchover()
{
	local candidate

	if [[ $1 == realm ]]; then
		candidate=$(synchronous_standby)
	else
		candidate=$(one_of "${replicas[$1]}")
	fi
	patronictl switchover "$1" --candidate "$candidate" --force
}

event_reinit()
{
	patronictl reinit "$1" "$(one_of "${replicas[$1]}")" --force
	# until it has begun
	sleep 5
}

# etcd, for this member alone
event_cut()
{
	local address

	address=$(etcd_address "${leader[$1]}")/32
	ip address delete "$address" dev lo
	sleep "$pause"
	ip address add "$address" dev lo
}

# Ahead and behind, by more and by less than the allowance of 10 seconds
event_clock()
{
	local member=${leader[$1]} off from
	local -a offs=(+60 -60 +15 -15)

	off=${offs[n_clocks[$1]++ % ${#offs[@]}]}
	from=$(true_time)
	set_clock "$member" "$off"
	sleep 20
	set_clock "$member" 0
	printf '%s\t%s\t%s\t%s\n' "${port[$member]}" "$from" "$(true_time)" "$off" >>"$work/tmp/clocks"
}

# etcd, for all members
event_hang()
{
	kill -STOP "$etcd"
	sleep 25
	kill -CONT "$etcd"
}

# The leader and the synchronous standby are lost, and somebody promotes the member
# that may lack committed transactions.
event_failover_to_asynchronous()
{
	local lost member one

	lost="${leader[realm]} $(synchronous_standby)"
	for member in ${replicas[realm]}; do
		[[ " $lost " == *" $member "* ]] || break
	done
	for one in $lost; do
		switch_off "$one"
	done
	sleep "$pause"
	patronictl failover realm --candidate "$member" --force
	for one in $lost; do
		start_patroni "$one"
	done
}

one_of()
{
	local -a them

	read -ra them <<<"$1"
	say "${them[RANDOM % ${#them[@]}]}"
}

true_time()
{
	date +%FT%T.%N%:z
}

readonly -a kinds=(
	'fleet kill' 'fleet stop_postgres' 'fleet stop_patroni' 'fleet switchover' 'fleet reinit' 'fleet cut' 'fleet clock'
	'realm kill' 'realm stop_postgres' 'realm stop_patroni' 'realm switchover' 'realm cut' 'realm clock'
	'both kill' 'both stop_postgres' 'etcd hang')

# All kinds as often as each other, in an order drawn by lot
plan()
{
	local n kind

	for ((n = 0; n < each; n++)); do
		for kind in "${kinds[@]}"; do
			[[ $part == static && $kind == realm* ]] || say "$kind"
		done
	done | shuf
}

leaders()
{
	local cluster shown=''

	for cluster in "${clusters[@]}"; do
		shown+="${shown:+ }${leader[$cluster]}"
	done
	say "$shown"
}

# Has the realm noticed its promotion, and nobody reported that nothing was lost?
realm_waits()
{
	[[ $(on_member "${leader[realm]}" -U realm -d realm -c "SELECT scru64_realm_internal.note_failover()" \
		-c "SELECT granting_from > scru64_realm.clock() FROM scru64_realm_internal.last_failover()" | tail -n 1) == t ]]
}

event()
{
	local whom=$1 what=$2 before note=''

	((n_events += 1))
	before=$(leaders)
	printf '%s\t%s\t%s\t%s\t' "$n_events" "$whom $what" "$(true_time)" "$before" >>"$work/tmp/events"
	"event_$what" "$whom" || say "not ok: event $n_events, $whom $what"
	wait_whole || die "event $n_events, $whom $what: there is no leader with two standbys"
	sleep 3
	printf '%s\n' "$(leaders)" >>"$work/tmp/events"
	if [[ $part == lease ]] && realm_waits; then
		note=', and the realm waits'
		((n_waits += 1))
	fi
	say "$(date +%T) $n_events $whom $what: $before -> $(leaders)$note"
}

run_events()
{
	local whom what

	: >"$work/tmp/clocks"
	while read -r whom what <&3; do
		event "$whom" "$what"
	done 3< <(plan)
	if [[ $part == lease ]]; then
		check "the realm has been told each time that nothing was lost" test "$n_waits" = 0 || true
		event realm failover_to_asynchronous
		check "a member that was not synchronous has the realm wait" realm_waits || true
	fi
}
