# shellcheck shell=bash
#
# servers.sh
#		Shared by the programs beside this file: servers, a load, checks. They
#		run as the server's user, and everything is in a folder of theirs, sockets too.
#		To be sourced with the folder of PostgreSQL's programs.
#
# IDs run ahead of the clock here, by most of an hour: only the ceiling keeps a restored
# or promoted server from issuing the IDs of its rows again.

# shellcheck source-path=SCRIPTDIR source=../../scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"

bindir=$1
PATH=$bindir:$PATH
make_work
cd "$work"
export PGHOST=$work PGUSER=postgres PGDATABASE=postgres
initdb_options=(--data-checksums)
load=					# process inserting rows

# A check.  If it fails, the program goes on.
holds()
{
	check "$@" || true
}

fails()
{
	! "$@"
}

# ask PORT SQL
ask()
{
	psql -XAtq -v ON_ERROR_STOP=1 -p "$1" -c "$2" </dev/null
}

is_true()
{
	[[ $(ask "$1" "SELECT $2") == t ]]
}

# ---------------------------------------------------------------------------
# Servers: the folder is the name
# ---------------------------------------------------------------------------

# make_server NAME PORT: standard input is appended to its postgresql.conf.
make_server()
{
	server=$1
	cat - <(printf '%s\n' "port = $2" "scru64.node_spec = '42/22'" "scru64.rollback_allowance = '1d'") |
		start_server
}

# start NAME PORT: a copy is not of the port in its postgresql.conf.
start()
{
	pg_ctl -D "$1" -l "log/$1" -o "-p $2" -w -t 300 start || { cat "log/$1"; return 1; }
}

stop()
{
	pg_ctl -D "$1" -m "${2:-fast}" -w -t 300 stop
}

# ---------------------------------------------------------------------------
# Rows
# ---------------------------------------------------------------------------

# make_rows PORT NAME
make_rows()
{
	ask "$1" 'CREATE EXTENSION scru64'
	ask "$1" CHECKPOINT
	cp "$2/global/9864" first_ceiling
	ask "$1" 'CREATE TABLE event (id scru64 DEFAULT scru64_generate() PRIMARY KEY, what text)'
	ask "$1" "INSERT INTO event (what) SELECT 'first' FROM generate_series(1, 40000)"
}

# Insert rows, in transactions of their own, until end_load.
begin_load()
{
	printf "INSERT INTO event (what) VALUES ('load');\n" >load.sql
	pgbench -n -p "$1" -c 2 -R 500 -T 86400 -f load.sql >load.log 2>&1 &
	load=$!
	more_rows "$1"
}

# Wait for some more.
more_rows()
{
	wait_until 300 is_true "$1" "count(*) > $(ask "$1" 'SELECT count(*) + 200 FROM event') FROM event"
}

end_load()
{
	kill "$load" 2>/dev/null || true
	wait "$load" || true
	load=
}

# It ends by itself when the server is stopped.
await_load()
{
	wait_until 300 fails kill -0 "$load" 2>/dev/null || die "the load does not end"
	end_load
}

# All rows of a server
rows()
{
	ask "$1" "SELECT count(*), md5(string_agg(id::text, '' ORDER BY id)) FROM event"
}

has_rows()
{
	[[ $(rows "$1") == "$2" ]]
}

# Make an ID: is it above every row's, and not far above?  If the clock were, too, this would
# prove nothing.
continues()
{
	[[ $(ask "$1" "INSERT INTO event (what) SELECT 'new' RETURNING id > (SELECT max(id) FROM event),
			id::timestamptz < (SELECT max(id)::timestamptz + interval '10 s' FROM event),
			now() < (SELECT max(id)::timestamptz - interval '1 min' FROM event)") == 't|t|t' ]]
}

# Must hold of a restored or promoted server: its description, its port, its rows
check_server()
{
	wait_until 300 is_true "$2" 'NOT pg_is_in_recovery()'
	holds "$1: the rows are those that were there: ${3%|*}" has_rows "$2" "$3"
	holds "$1: the first new ID is next above every row's" continues "$2"
}

# The same of a restored one that is not running: its description, its name, its port, its
# rows
check_restored()
{
	start "$2" "$3"
	check_server "$1" "$3" "$4"
	stop "$2"
	holds "$1: the checksums are right" pg_checksums --check -D "$2"
}
