"""psycopg 3"""

import datetime

from harness import ID, ORDERED, done, is_equal, psql, raises
from scru64_psycopg3 import register_scru64_arrays
from scru64_psycopg3_binary import register_scru64_binary

import psycopg

print(f"# psycopg {psycopg.__version__}")

conn = psycopg.connect(autocommit=True)


def value(query, params=None, binary=False):
    """The first value of the first row"""
    return conn.execute(query, params, binary=binary).fetchone()[0]


# Works without a hint
first = value("INSERT INTO event (what) VALUES (%s) RETURNING id", ("first",))
is_equal([first], psql("SELECT id FROM event WHERE what = 'first'"), "DEFAULT gives an ID, a string")
with conn.cursor() as cur:
    cur.executemany("INSERT INTO event (what) VALUES (%s)", [("second",), ("third",)])
is_equal(value("SELECT id FROM event WHERE what = 'first'"), first, "an ID is read back")
is_equal(value("SELECT what FROM event WHERE id = %s", (first,)), "first", "parameter in a comparison")
is_equal(conn.execute("SELECT what FROM event WHERE id > %s ORDER BY id", (first,)).fetchall(),
         [("second",), ("third",)], "parameter in a range")
is_equal([conn.execute("SELECT what FROM event WHERE id = %s", (first,), prepare=True).fetchone()[0]
          for _ in range(3)], ["first"] * 3, "parameter of a prepared statement")
is_equal(value("INSERT INTO event (id, what) VALUES (%s, 'given') RETURNING id", (ID.upper(),)), ID,
         "parameter in an INSERT")
is_equal(psql("SELECT id FROM event WHERE what = 'given'"), [ID], "it is stored")
is_equal([row[0] for row in conn.execute("SELECT what FROM event WHERE id = ANY(%s) ORDER BY id", ([first, ID],))],
         ["given", "first"], "= ANY(parameter)")
is_equal(value("SELECT count(*) FROM event WHERE id = ANY(%s)", ([],)), 0, "= ANY(empty parameter)")
conn.execute("UPDATE event SET related = %s WHERE id = %s", ([first, None, ID], first))
is_equal(psql(f"SELECT related FROM event WHERE id = '{first}'"), [f"{{{first},NULL,{ID}}}"], "an array in")
is_equal(value("SELECT count(*) FROM event WHERE id >= %s",
               (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1),)), 3,
         "a datetime in a comparison")
is_equal(value("SELECT to_json(id) FROM event WHERE id = %s", (first,)), first, "to_json")
is_equal(value("SELECT json_agg(id ORDER BY id) FROM event"), psql("SELECT id FROM event ORDER BY id"), "json_agg")
raises(lambda: value("SELECT what FROM event WHERE id = %b", (first,)), psycopg.errors.UndefinedFunction,
       "a binary parameter needs a cast")
is_equal(value("SELECT what FROM event WHERE id = %b::scru64", (first,)), "first", "and has one")

# Needs a hint
is_equal(value("SELECT related FROM event WHERE id = %s", (first,)), f"{{{first},NULL,{ID}}}",
         "unregistered, an array comes as a string")
is_equal(value("SELECT id FROM event WHERE id = %s", (ID,), binary=True), bytes.fromhex("0186ac4bad2af927"),
         "unregistered, a binary ID comes as 8 bytes")

register_scru64_arrays(conn)

is_equal(value("SELECT related FROM event WHERE id = %s", (first,)), [first, None, ID],
         "registered, an array comes as a list")
is_equal(value("SELECT '{}'::scru64[]"), [], "and an empty one")
conn.execute("UPDATE event SET related = %s WHERE id = %s", ([ID, first], first))
is_equal(psql(f"SELECT related FROM event WHERE id = '{first}'"), [f"{{{ID},{first}}}"], "a list goes in as before")
is_equal(value("SELECT what FROM event WHERE id = ANY(%s)", ([ID],)), "given", "and is compared as before")

other = psycopg.connect(dbname="postgres")
register_scru64_arrays(other)
is_equal(other.closed, False, "in a database without the extension, registration does nothing")
other.close()

register_scru64_binary(conn)

for expected in ORDERED:
    is_equal(value("SELECT %s::scru64", (expected,), binary=True), expected, f"binary: {expected}")
with conn.cursor(binary=True) as cur:
    cur.execute("SELECT id, related FROM event WHERE id = %s", (first,))
    is_equal(cur.fetchone(), (first, [ID, first]), "a binary cursor: an ID and an array")
is_equal(value("SELECT id FROM event WHERE id = %s", (first,)), first, "text as before")

# Order, and COPY
with conn.cursor().copy("COPY event (id, what) FROM STDIN") as copy:
    for expected in reversed(ORDERED):
        if expected != ID:
            copy.write_row((expected, "copied"))
ids = [row[0] for row in conn.execute("SELECT id FROM event ORDER BY id")]
done(ids)
