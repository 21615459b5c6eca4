# shellcheck shell=bash
#
# feeds.sh
#		Ways of reading new rows: the rows a reader misses, its waits, and the cost for
#		writers.
#
# To be sourced by scripts/bench.
#
# All of them have the same load: so many clients inserting rows, most in transactions
# of one statement. Some take a while between the ID and the commit, some of these roll
# back, and one transaction is open for seconds. One reader looks every few milliseconds.
# A committed row that the reader has not got at the end is missed.

readonly feed_clients=8
readonly feed_poll="5 ms"
readonly feed_batch=1000
# More than the wait of the reader staying behind
readonly feed_drain_seconds=7

# SQL before the ID in each transaction of a writer, if any
feed_guard()
{
	case $1 in
		"LOCK TABLE") say "LOCK TABLE bench.event IN SHARE ROW EXCLUSIVE MODE" ;;
		"advisory lock, shared") say "SELECT pg_advisory_xact_lock_shared(64)" ;;
	esac
}

# The scripts of the writers. pgbench sends a statement ending with \; with the next one.
write_writers()
{
	local payload="repeat('x', 100)" begin guard
	local insert="INSERT INTO bench.event (payload) VALUES ($payload)"

	guard=$(feed_guard "$1")
	begin="BEGIN\\;${guard:+ $guard\\;}"
	say "${guard:+$begin }$insert${guard:+\\; COMMIT};" >"$work/tmp/feed-short.sql"
	say '\set pause random(0, 20)' "
$begin $insert;" '
\sleep :pause ms
' "$insert\\; COMMIT;" >"$work/tmp/feed-slow.sql"
	say '\set pause random(0, 5)' "
$begin $insert;" '
\sleep :pause ms
ROLLBACK;' >"$work/tmp/feed-rollback.sql"
	say "\\sleep $((feed_seconds / 4)) s
$begin ${insert/"$payload"/\'long\'};
\\sleep $feed_hold_seconds s
COMMIT;" >"$work/tmp/feed-long.sql"
}

# Print what one look of the reader reads, as a query for its IDs.
feed_query()
{
	local new="FROM bench.event WHERE id > :last" limit="LIMIT $feed_batch"

	case $1 in
		watermark*) say "SELECT id $new AND id < scru64_watermark() ORDER BY id $limit" ;;
		"5 s behind") say "SELECT id $new AND id < now() - interval '5 seconds' ORDER BY id $limit" ;;
		xid8*) say "SELECT id, tx FROM bench.event WHERE (tx, id) > (:tx, :last)" \
			"AND tx < pg_snapshot_xmin(pg_current_snapshot()) ORDER BY tx, id $limit" ;;
		"logical decoding, polled") say "SELECT split_part(data, '''', 2)::scru64 AS id" \
			"FROM pg_logical_slot_get_changes('feed', NULL, NULL, 'include-xids', '0', 'skip-empty-xacts', '1')" \
			"WHERE starts_with(data, 'table bench.event: INSERT')" ;;
		*) say "SELECT id $new ORDER BY id $limit" ;;
	esac
}

# The reader: keep new rows, with the time, and go on after them.
write_reader()
{
	local position="coalesce(max(id), :last) AS last"

	[[ $1 != xid8* ]] ||
		position="coalesce((SELECT id FROM new ORDER BY tx DESC, id DESC LIMIT 1), :last) AS last,
			coalesce((SELECT tx FROM new ORDER BY tx DESC LIMIT 1), :tx) AS tx"
	{
		# once it has the lock, no writer is between its ID and its commit
		[[ $1 != "advisory lock, shared" ]] || say "BEGIN; SELECT pg_advisory_xact_lock(64);"
		say "WITH new AS MATERIALIZED ($(feed_query "$1")),
		kept AS (INSERT INTO bench.delivered SELECT id, extract(epoch FROM clock_timestamp()) FROM new)
		SELECT count(*) AS number, $position FROM new \\gset"
		[[ $1 != "advisory lock, shared" ]] || say "COMMIT;"
		say "\\if :number < $feed_batch
\\sleep $feed_poll
\\endif"
	} >"$work/tmp/feed-reader.sql"
}

# Read until end_other_sessions.
start_reader()
{
	case $1 in
		plain*) return ;;
		logical*) query "SELECT pg_create_logical_replication_slot('feed', 'test_decoding')" >/dev/null ;;
	esac
	if [[ $1 == *streamed ]]; then
		# shellcheck disable=SC2016 # for Perl
		as_server "$bindir/pg_recvlogical" -h "$work" -U postgres -d scru64 -S feed --start --no-loop -f - \
			-o include-xids=0 -o skip-empty-xacts=1 2>"$work/log/feed-reader" </dev/null |
			perl -MTime::HiRes=time -ne \
				'printf "%s\t%.6f\n", $1, time if /^table bench\.event: INSERT: .*?\x27(.*?)\x27/' >"$work/tmp/delivered" &
	else
		write_reader "$1"
		as_server "$bindir/pgbench" -n -h "$work" -U postgres -M extended -T 86400 -D last=000000000000 -D tx=0 \
			-f "$work/tmp/feed-reader.sql" scru64 >"$work/log/feed-reader" 2>&1 </dev/null &
	fi
	reader=$!
}

end_reader()
{
	[[ -n $reader ]] || return 0
	sleep "$feed_drain_seconds"
	if ! kill -0 "$reader" 2>/dev/null; then
		die "the reader has ended" "$(cat "$work/log/feed-reader")"
	fi
	end_other_sessions
	wait "$reader" || true
	[[ $1 != *streamed ]] || query "COPY delivered FROM '$work/tmp/delivered'" >/dev/null
	[[ $1 != logical* ]] || query "SELECT pg_drop_replication_slot('feed')" >/dev/null
}

# Rows written and read. The latency is from the commit to the reader.
keep_feed()
{
	query "COPY (
		WITH event AS (
			SELECT id, payload, extract(epoch FROM pg_xact_commit_timestamp(xmin)) AS committed FROM event
		), long AS (
			SELECT committed - $feed_hold_seconds AS begun, committed AS ended FROM event WHERE payload = 'long'
		), read AS (
			SELECT 1000 * (d.at - e.committed) AS latency_ms, d.id IS NULL AS missed,
				   e.committed >= l.begun AND e.committed < l.ended AS held
			FROM event AS e
				CROSS JOIN long AS l
				LEFT JOIN (SELECT id, min(at) AS at FROM delivered GROUP BY id) AS d USING (id)
		), figure (subject, value) AS (
			SELECT unnest('{rows,rows/s,bytes a row}'::text[]),
				   unnest(ARRAY[count(*), count(*) / $feed_seconds.0, pg_total_relation_size('event')::numeric / count(*)])
			FROM event
			UNION ALL SELECT 'missed', count(*) FROM read WHERE missed
			UNION ALL SELECT 'median ms', percentile_cont(0.5) WITHIN GROUP (ORDER BY latency_ms) FROM read WHERE NOT held
			UNION ALL SELECT '99% ms', percentile_cont(0.99) WITHIN GROUP (ORDER BY latency_ms) FROM read WHERE NOT held
			UNION ALL SELECT 'median ms, one open', percentile_cont(0.5) WITHIN GROUP (ORDER BY latency_ms) FROM read WHERE held
		)
		SELECT 'feeds: ' || subject, '$1', $2, value, CASE WHEN subject IN ('rows', 'missed') THEN 'rows' ELSE '' END FROM figure
		WHERE value IS NOT NULL AND ('$1' NOT LIKE 'plain%' OR subject <> 'missed')) TO STDOUT" \
		>>"$work/tmp/results"
}

# Half of the clients. Argument: their settings
run_writers()
{
	as_server env PGOPTIONS="$1" "$bindir/pgbench" -n -h "$work" -U postgres -c $((feed_clients / 2)) -T "$feed_seconds" \
		-f "$work/tmp/feed-short.sql@85" -f "$work/tmp/feed-slow.sql@10" -f "$work/tmp/feed-rollback.sql@5" scru64 </dev/null
}

run_long()
{
	as_server "$bindir/pgbench" -n -h "$work" -U postgres -t 1 -f "$work/tmp/feed-long.sql" scru64 </dev/null
}

# Arguments: contender, round
run_feed()
{
	local id="id scru64 DEFAULT scru64_generate() PRIMARY KEY, payload text" tx= other_node= reader= writer
	local -a writers

	[[ $1 != *"two nodes" ]] || other_node="-c scru64.node_spec=6/4"
	[[ $1 != xid8* ]] || tx=", tx xid8 DEFAULT pg_current_xact_id(), UNIQUE (tx, id)"
	run_quietly feed "${psql[@]}" -v ON_ERROR_STOP=1 -c "SET search_path = bench, public" \
		-c "DROP TABLE IF EXISTS event, delivered" -c "CREATE TABLE event ($id$tx)" \
		-c "CREATE UNLOGGED TABLE delivered (id scru64, at double precision)" -c CHECKPOINT
	write_writers "$1"
	start_reader "$1"
	run_long >"$work/log/feed-long" 2>&1 &
	writers=($!)
	run_writers "" >"$work/log/feed-writers" 2>&1 &
	writers+=($!)
	run_writers "$other_node" >"$work/log/feed-other-writers" 2>&1 &
	writers+=($!)
	for writer in "${writers[@]}"; do
		wait "$writer" || die "a writer has failed" "$(cat "$work"/log/feed-{long,writers,other-writers})"
	done
	end_reader "$1"
	keep_feed "$1" "$2"
	# a node no longer used has its place, and the watermark waits for its tick
	[[ -z $other_node ]] || restart_feeds
}

feed_contenders()
{
	printf '%s\n' "plain inserts, no reader" "naive polling, id > last" "watermark" "watermark, two nodes" "xid8 and pg_snapshot_xmin" "5 s behind" \
		"LOCK TABLE" "advisory lock, shared"
	if [[ -e $("$pg_config" --pkglibdir)/test_decoding.so ]]; then
		printf '%s\n' "logical decoding, polled" "logical decoding, streamed"
	fi
}

restart_feeds()
{
	restart
	# it starts where it may have got to before, see measure_capacity
	sleep 10
}

measure_feeds()
{
	local round contender
	local -a contenders

	say "  feeds"
	configure -c "ALTER SYSTEM SET wal_level = logical" -c "ALTER SYSTEM SET track_commit_timestamp = on"
	restart_feeds
	for ((round = 1; round <= rounds; round++)); do
		mapfile -t contenders < <(feed_contenders | shuf)
		for contender in "${contenders[@]}"; do
			run_feed "$contender" "$round"
		done
	done
	store
	configure -c "ALTER SYSTEM RESET wal_level" -c "ALTER SYSTEM RESET track_commit_timestamp"
	restart
}
