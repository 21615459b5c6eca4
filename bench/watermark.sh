# shellcheck shell=bash
#
# watermark.sh
#		The cost of the watermark: for making IDs, against a tree of another commit, and
#		for asking for it.
#
# To be sourced by scripts/bench.

# More than the comparison needs at a time
readonly watermark_sessions=100
readonly watermark_nodes=128
readonly against_port=5433

# Build the other commit, and make an installation of PostgreSQL with it. Sets
# against_bindir.
install_against()
{
	local other=$work/against-tree root=$work/against-root

	say "Building $against, to compare with."
	mkdir "$other"
	git -C "$top" archive "$against" | tar -x -C "$other" || die "git cannot give $against"
	((EUID != 0)) || chown -R "$(server_owner)" "$other"
	run_quietly build-against make -C "$other" "${make_args[@]}" "COPT=-ffile-prefix-map=$other=." install "DESTDIR=$root"
	make_installation "$root"
	against_bindir=$root$bindir
}

# Give both servers the objects of the statements.
start_against()
{
	local port

	install_against
	{
		bench_settings
		say "port = $against_port"
	} | bindir=$against_bindir server=against start_server
	run_quietly createdb "$bindir/createdb" -h "$work" -p "$against_port" -U postgres scru64
	run_quietly against "${psql[@]}" -p "$against_port" -c "CREATE EXTENSION scru64" -c "CREATE SCHEMA bench"
	for port in 5432 "$against_port"; do
		run_quietly against "${psql[@]}" -p "$port" -v ON_ERROR_STOP=1 -c "SET search_path = bench, public" \
			-c "CREATE TABLE watermark_row (id scru64 DEFAULT scru64_generate() PRIMARY KEY, payload integer)"
	done
}

# One pair: this tree's time, divided by the other's; a lot decides which begins.
# Arguments: what, round, then those of tps()
compare_trees()
{
	local what=$1 round=$2 port
	local -A rate

	shift 2
	for port in $(shuf -e 5432 "$against_port"); do
		run_quietly truncate "${psql[@]}" -p "$port" -c "TRUNCATE bench.watermark_row" -c CHECKPOINT
		rate[$port]=$(tps "$@" -p "$port")
	done
	((round == 0)) || keep "time, of that without the watermark" "$what" "$round" \
		"$(awk -v this="${rate[5432]}" -v other="${rate[$against_port]}" 'BEGIN { print other / this }')" "ratio"
}

measure_ids_against()
{
	local round sessions

	# of size 1: never ahead of the clock
	printf "SET scru64.node_spec = '1/1';\nSELECT count(scru64_generate()) FROM (SELECT generate_series(1, :n) OFFSET 0) AS s;\n" \
		>"$work/tmp/statement.sql"
	say "INSERT INTO bench.watermark_row (payload) VALUES (1);" >"$work/tmp/row.sql"
	for ((round = 0; round <= rounds; round++)); do
		compare_trees "one big statement" "$round" 1 8 "$work/tmp/statement.sql" -D n="$rows"
		for sessions in 1 2 16; do
			compare_trees "single rows, $sessions client$( ((sessions == 1)) || echo s)" "$round" \
				"$sessions" $((inserts * 8 / sessions)) "$work/tmp/row.sql" -M prepared
		done
	done
	store
}

# Transactions with IDs, which stay open until close_transactions
open_transactions()
{
	say "BEGIN; INSERT INTO bench.watermark_row (payload) VALUES (1); SELECT pg_sleep(3600);" >"$work/tmp/open.sql"
	tps "$watermark_sessions" 1 "$work/tmp/open.sql" >/dev/null 2>&1 &
	wait_for "SELECT count(*) = $watermark_sessions FROM scru64_transactions"
}

close_transactions()
{
	end_other_sessions
	wait_for "SELECT count(*) = 0 FROM scru64_transactions"
}

# Arguments: how it is meanwhile, and in how many nodes there are new IDs before each round
measure_calls()
{
	run_quietly calls "${psql[@]}" -v ON_ERROR_STOP=1 -c "SET search_path = bench, public" \
		-c "CALL measure_watermark('$1', $2, $rounds, $ids / 50)"
}

measure_watermark()
{
	say "  watermark"
	start_against
	measure_ids_against
	say "  the call"
	# have it forget the nodes so far
	restart
	bench_sql watermark
	measure_calls "idle" 1
	open_transactions
	measure_calls "$watermark_sessions open transactions" 1
	close_transactions
	measure_calls "$watermark_nodes nodes in use" "$watermark_nodes"
	open_transactions
	measure_calls "both" "$watermark_nodes"
	close_transactions
	query "SELECT measure_told($rounds, $rows)" >/dev/null
}
