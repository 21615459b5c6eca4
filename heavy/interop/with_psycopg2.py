"""psycopg 2"""

from harness import ID, ORDERED, ask, done, is_equal

from scru64_psycopg2 import register_scru64_arrays

import psycopg2
import psycopg2.errors
import psycopg2.extras

print(f"# psycopg2 {psycopg2.__version__}")

conn = psycopg2.connect("")
conn.autocommit = True
cur = conn.cursor()


def values(query, *params):
    """The first values of all rows"""
    cur.execute(query, params)
    return [row[0] for row in cur]


# Works without a hint
first = ask(values, psycopg2.errors.InvalidTextRepresentation, psycopg2.errors.UndefinedFunction, any="::scru64[]")
is_equal(values("SELECT what FROM event WHERE id IN %s ORDER BY id", (first, ID)), ["given", "first"], "IN parameter")

# Needs a hint
register_scru64_arrays(conn)
is_equal(values("SELECT related FROM event WHERE id = %s", first), [[first, None, ID]],
         "registered, an array comes as a list")

other = psycopg2.connect(dbname="postgres")
register_scru64_arrays(other)
is_equal(other.closed, 0, "in a database without the extension, registration does nothing")
other.close()

# Order
more = psycopg2.extras.execute_values(
    cur, "INSERT INTO event (id, what) VALUES %s ON CONFLICT DO NOTHING RETURNING id",
    [(id, "ordered") for id in reversed(ORDERED)], fetch=True)
is_equal([row[0] for row in more], [id for id in reversed(ORDERED) if id != ID], "execute_values gives IDs")
done(values("SELECT id FROM event ORDER BY id"))
