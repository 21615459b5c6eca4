"""Arrays of IDs for psycopg 3 and all that use it"""

# [recipe: psycopg 3, arrays]
from psycopg.types import TypeInfo

def register_scru64_arrays(conn):
    info = TypeInfo.fetch(conn, "scru64")
    if info:
        info.register(conn)
# [end]
