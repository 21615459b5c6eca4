"""psqlODBC, with pyodbc"""

import os
from datetime import datetime, timedelta, timezone

from harness import ID, ID_INTEGER, ORDERED, done, is_equal, psql, raises

import pyodbc

# of libpq, which reads the rest of the environment
settings = {"Driver": "PostgreSQL Unicode", "Servername": "PGHOST", "Port": "PGPORT", "Database": "PGDATABASE",
            "UID": "PGUSER"}
conn = pyodbc.connect("".join(f"{name}={os.environ.get(value, value)};" for name, value in settings.items()),
                      autocommit=True)

print(f"# psqlODBC {conn.getinfo(pyodbc.SQL_DRIVER_VER)}, pyodbc {pyodbc.version}")


def values(query, *params):
    """The first values of all rows"""
    return [row[0] for row in conn.execute(query, params)]


[first] = values("INSERT INTO event (what) VALUES (?) RETURNING id", "first")
is_equal([first], psql("SELECT id FROM event"), "DEFAULT gives an ID, a string")
[second] = values("INSERT INTO event (what) VALUES (?) RETURNING id", "second")
is_equal(values("SELECT what FROM event WHERE id = ?", first), ["first"], "parameter in a comparison")
is_equal(values("SELECT what FROM event WHERE id > ?", first), ["second"], "parameter in a range")
is_equal(values("INSERT INTO event (id, what) VALUES (?, 'given') RETURNING id", ID.upper()), [ID],
         "parameter in an INSERT")
is_equal(values("SELECT ?::scru64", None), [None], "NULL")
raises(lambda: values("SELECT what FROM event WHERE id = ?", "no ID"), pyodbc.DataError, "bad text")
raises(lambda: values("SELECT ?::scru64", ID_INTEGER), pyodbc.DataError, "a number needs a cast")
is_equal(values("SELECT ?::bigint::scru64", ID_INTEGER), [ID], "and has one")

# A datetime loses its zone
conn.execute("SET TimeZone = 'Pacific/Kiritimati'")
since = datetime.now(timezone.utc) - timedelta(hours=1)
later = datetime.now(timezone.utc) + timedelta(hours=1)
query = "SELECT id FROM event WHERE id >= ?::timestamptz ORDER BY id"
raises(lambda: values(query.replace("::timestamptz", ""), since), pyodbc.DataError, "a time needs a cast")
is_equal(values(query, later), [first, second], "a datetime is taken for one of the session's zone")
is_equal([values(query, time.isoformat()) for time in (since, later)], [[first, second], []], "its text has its zone")

# Arrays are text
is_equal(values("SELECT what FROM event WHERE id = ANY(?) ORDER BY id", f"{{{first},{ID}}}"), ["given", "first"], "= ANY")
is_equal(values("UPDATE event SET related = ? WHERE id = ? RETURNING related", f"{{{first},NULL}}", first),
         [f"{{{first},NULL}}"], "an array")
is_equal(len(values("SELECT array_agg(scru64_generate()) FROM generate_series(1, 1000)")[0]), 1000 * 13 + 1,
         "a long one")

# Order
cur = conn.cursor()
cur.fast_executemany = True
cur.executemany("INSERT INTO event (id, what) VALUES (?, 'ordered')", [(id,) for id in reversed(ORDERED) if id != ID])
ids = values("SELECT id FROM event ORDER BY id")
done(ids)
