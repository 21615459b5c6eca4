#!/usr/bin/env bash
#
# docker-entrypoint.sh
#		Do as the one of PostgreSQL's official image, as far as the examples need it.

set -euo pipefail
shopt -s nullglob

if [[ ${1:--} == -* ]]; then
	set -- postgres "$@"
fi
if ((EUID == 0)); then
	install -d -o postgres -g postgres -m 700 "$PGDATA"
	exec setpriv --reuid=postgres --regid=postgres --init-groups "${BASH_SOURCE[0]}" "$@"
fi
if [[ ! -s $PGDATA/PG_VERSION ]]; then
	initdb -D "$PGDATA" -U postgres --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD")
	printf '%s\n' "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
	pg_ctl -D "$PGDATA" -o "$(printf '%q ' -c listen_addresses= "${@:2}")" -w start
	for file in /docker-entrypoint-initdb.d/*.sql; do
		psql -v ON_ERROR_STOP=1 -X -U postgres -f "$file"
	done
	pg_ctl -D "$PGDATA" -m fast -w stop
	printf '%s\n' "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
fi
exec "$@"
