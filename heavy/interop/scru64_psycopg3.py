"""Arrays of IDs for psycopg 3 and all that use it: doc/clients.md says how"""

from psycopg.types import TypeInfo


def register_scru64_arrays(conn):
    info = TypeInfo.fetch(conn, "scru64")
    if info:
        info.register(conn)
