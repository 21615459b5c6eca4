"""psqlODBC, with pyodbc"""

import os
from datetime import timedelta

from harness import ID, ORDERED, an_hour_ago, ask, done, is_equal

import pyodbc

# of libpq, which reads the rest of the environment
settings = {"Driver": "PostgreSQL Unicode", "Servername": "PGHOST", "Port": "PGPORT", "Database": "PGDATABASE",
            "UID": "PGUSER"}
conn = pyodbc.connect("".join(f"{name}={os.environ.get(value, value)};" for name, value in settings.items()),
                      autocommit=True)

print(f"# psqlODBC {conn.getinfo(pyodbc.SQL_DRIVER_VER)}, pyodbc {pyodbc.version}")


def values(query, *params):
    """The first values of all rows"""
    return [row[0] for row in conn.execute(query.replace("%s", "?"), params)]


def array(ids):
    """Arrays are text."""
    return f"{{{','.join(id or 'NULL' for id in ids)}}}"


# A datetime loses its zone, and is taken for one of the session's, which is ahead.
conn.execute("SET TimeZone = 'Pacific/Kiritimati'")
first = ask(values, pyodbc.DataError, pyodbc.DataError, time="::timestamptz", array=array)
query = "SELECT count(*) FROM event WHERE id >= %s::timestamptz"
in_an_hour = an_hour_ago() + timedelta(hours=2)
is_equal(values(query, in_an_hour), [3], "a datetime is taken for one of the session's zone")
is_equal(values(query, in_an_hour.isoformat()) + values(query, an_hour_ago().isoformat()), [0, 3],
         "its text has its zone")
is_equal(len(values("SELECT array_agg(scru64_generate()) FROM generate_series(1, 1000)")[0]), 1000 * 13 + 1,
         "a long array")

# Order
cur = conn.cursor()
cur.fast_executemany = True
cur.executemany("INSERT INTO event (id, what) VALUES (?, 'ordered')", [(id,) for id in reversed(ORDERED) if id != ID])
done(values("SELECT id FROM event ORDER BY id"))
