"""Arrays of IDs for psycopg 2 and all that use it: doc/clients.md says how"""

from psycopg2 import STRING
from psycopg2.extensions import new_array_type, register_type


def register_scru64_arrays(conn):
    with conn.cursor() as cur:
        cur.execute("SELECT typarray FROM pg_type WHERE typname = 'scru64'")
        oids = tuple(row[0] for row in cur)
    register_type(new_array_type(oids, "SCRU64[]", STRING), conn)
