"""pg8000"""

import os

from harness import ID, ORDERED, ask, done, is_equal, psql

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


ask(values, pg8000.ProgrammingError, time="::timestamptz", any="::scru64[]")
is_equal(values("SELECT json_agg(id ORDER BY id) FROM event"), [psql("SELECT id FROM event ORDER BY id")], "json_agg")

# Order
cur.executemany("INSERT INTO event (id, what) VALUES (%s, 'ordered')",
                [(id,) for id in reversed(ORDERED) if id != ID])
done(values("SELECT id FROM event ORDER BY id"))
