"""pg8000"""

import datetime
import os

from harness import ID, ID_INTEGER, ORDERED, done, is_equal, psql, raises

import pg8000

print(f"# pg8000 {pg8000.__version__}")

conn = pg8000.connect(user=os.environ["PGUSER"], database=os.environ["PGDATABASE"],
                      unix_sock=f"{os.environ['PGHOST']}/.s.PGSQL.{os.environ['PGPORT']}")
conn.autocommit = True
cur = conn.cursor()


def values(query, *params):
    """The first values of all rows"""
    cur.execute(query, params)
    return [row[0] for row in cur.fetchall()]


[first] = values("INSERT INTO event (what) VALUES (%s) RETURNING id", "first")
is_equal([first], psql("SELECT id FROM event"), "DEFAULT gives an ID, a string")
[second] = values("INSERT INTO event (what) VALUES (%s) RETURNING id", "second")
is_equal(values("SELECT what FROM event WHERE id = %s", first), ["first"], "parameter in a comparison")
is_equal(values("SELECT what FROM event WHERE id > %s", first), ["second"], "parameter in a range")
is_equal(values("INSERT INTO event (id, what) VALUES (%s, 'given') RETURNING id", ID.upper()), [ID],
         "parameter in an INSERT")
is_equal(values("SELECT %s::scru64", None), [None], "NULL")
raises(lambda: values("SELECT what FROM event WHERE id = %s", "no ID"), pg8000.ProgrammingError, "bad text")
is_equal(values("SELECT %s::bigint::scru64", ID_INTEGER), [ID], "a number, with a cast")
since = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1)
is_equal(values("SELECT id FROM event WHERE id >= %s::timestamptz ORDER BY id", since), [first, second],
         "a time, with a cast")
is_equal(values("SELECT what FROM event WHERE id = ANY(%s::scru64[]) ORDER BY id", [first, ID]), ["given", "first"],
         "= ANY(parameter), with a cast")
values("UPDATE event SET related = %s::scru64[] WHERE id = %s RETURNING id", [first, None, ID], first)
is_equal(values("SELECT related FROM event WHERE id = %s", first), [f"{{{first},NULL,{ID}}}"],
         "an array comes as text")
is_equal(values("SELECT related::text[] FROM event WHERE id = %s", first), [[first, None, ID]],
         "cast, it comes as a list")
is_equal(values("SELECT json_agg(id ORDER BY id) FROM event"), [[ID, first, second]], "json_agg")

# Order
cur.executemany("INSERT INTO event (id, what) VALUES (%s, 'ordered')",
                [(id,) for id in reversed(ORDERED) if id != ID])
ids = values("SELECT id FROM event ORDER BY id")
done(ids)
