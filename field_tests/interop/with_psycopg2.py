"""psycopg 2"""

import datetime

from harness import ID, ORDERED, done, is_equal, psql, raises

from scru64_psycopg2 import register_scru64_arrays

import psycopg2
import psycopg2.errors
import psycopg2.extras

print(f"# psycopg2 {psycopg2.__version__}")

conn = psycopg2.connect("")
conn.autocommit = True
cur = conn.cursor()


def value(query, params=None):
    """The first value of the first row"""
    cur.execute(query, params)
    return cur.fetchone()[0]


def values(query, params=None):
    """The first values of all rows"""
    cur.execute(query, params)
    return [row[0] for row in cur]


# Works without a hint
first = value("INSERT INTO event (what) VALUES (%s) RETURNING id", ("first",))
is_equal([first], psql("SELECT id FROM event WHERE what = 'first'"), "DEFAULT gives an ID, a string")
more = psycopg2.extras.execute_values(cur, "INSERT INTO event (what) VALUES %s RETURNING id",
                                      [("second",), ("third",)], fetch=True)
is_equal([row[0] for row in more], psql("SELECT id FROM event WHERE what <> 'first' ORDER BY id"),
         "execute_values gives IDs")
is_equal(value("SELECT id FROM event WHERE what = 'first'"), first, "an ID is read back")
is_equal(value("SELECT what FROM event WHERE id = %s", (first,)), "first", "parameter in a comparison")
is_equal(values("SELECT what FROM event WHERE id > %s ORDER BY id", (first,)), ["second", "third"],
         "parameter in a range")
is_equal(value("SELECT what FROM event WHERE id IN %s", ((first, ID),)), "first", "IN parameter")
is_equal(value("INSERT INTO event (id, what) VALUES (%s, 'given') RETURNING id", (ID.upper(),)), ID,
         "parameter in an INSERT")
is_equal(psql("SELECT id FROM event WHERE what = 'given'"), [ID], "it is stored")
cur.execute("UPDATE event SET related = %s WHERE id = %s", ([first, None, ID], first))
is_equal(psql(f"SELECT related FROM event WHERE id = '{first}'"), [f"{{{first},NULL,{ID}}}"], "an array in")
is_equal(value("SELECT count(*) FROM event WHERE id >= %s",
               (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1),)), 3,
         "a datetime in a comparison")
is_equal(value("SELECT to_json(id) FROM event WHERE id = %s", (first,)), first, "to_json")
is_equal(value("SELECT json_agg(id ORDER BY id) FROM event"), psql("SELECT id FROM event ORDER BY id"), "json_agg")

# Needs a hint
raises(lambda: values("SELECT what FROM event WHERE id = ANY(%s)", ([first],)), psycopg2.errors.UndefinedFunction,
       "= ANY(parameter) needs a cast")
ids = [first, ID]
cur.execute("SELECT what FROM event WHERE id = ANY(%s::scru64[]) ORDER BY id", (ids,))
is_equal(cur.fetchall(), [("given",), ("first",)], "and has one")
is_equal(values("SELECT what FROM event WHERE id = ANY(%s::scru64[])", ([],)), [], "also an empty one")
is_equal(value("SELECT related FROM event WHERE id = %s", (first,)), f"{{{first},NULL,{ID}}}",
         "unregistered, an array comes as a string")

register_scru64_arrays(conn)
is_equal(value("SELECT related FROM event WHERE id = %s", (first,)), [first, None, ID],
         "registered, an array comes as a list")
is_equal(value("SELECT '{}'::scru64[]"), [], "and an empty one")
is_equal(value("SELECT array_agg(id ORDER BY id) FROM event"), psql("SELECT id FROM event ORDER BY id"), "array_agg")

other = psycopg2.connect(dbname="postgres")
register_scru64_arrays(other)
is_equal(other.closed, 0, "in a database without the extension, registration does nothing")
other.close()

# Order
psycopg2.extras.execute_values(cur, "INSERT INTO event (id, what) VALUES %s ON CONFLICT DO NOTHING",
                               [(id, "ordered") for id in reversed(ORDERED)])
ids = values("SELECT id FROM event ORDER BY id")
done(ids)
