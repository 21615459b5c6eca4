"""psycopg 3"""

from harness import ID, ORDERED, ask, done, is_equal, psql, raises
from scru64_psycopg3 import register_scru64_arrays
from scru64_psycopg3_binary import register_scru64_binary

import psycopg
from psycopg.errors import InvalidTextRepresentation, UndefinedFunction

print(f"# psycopg {psycopg.__version__}")

conn = psycopg.connect(autocommit=True)


def values(query, *params, **options):
    """The first values of all rows"""
    return [row[0] for row in conn.execute(query, params, **options)]


# Works without a hint
first = ask(values, InvalidTextRepresentation, UndefinedFunction)
by_id = "SELECT what FROM event WHERE id = %s"
is_equal([values(by_id, first, prepare=True) for _ in range(3)], [["first"]] * 3, "parameter of a prepared statement")
raises(lambda: values("SELECT what FROM event WHERE id = %b", first), UndefinedFunction,
       "a binary parameter needs a cast")
is_equal(values("SELECT what FROM event WHERE id = %b::scru64", first), ["first"], "and has one")

# Needs a hint
is_equal(values("SELECT id FROM event WHERE id = %s", ID, binary=True), [bytes.fromhex("0186ac4bad2af927")],
         "unregistered, a binary ID comes as 8 bytes")

register_scru64_arrays(conn)

is_equal(values("SELECT related FROM event WHERE id = %s", first), [[first, None, ID]],
         "registered, an array comes as a list")
conn.execute("UPDATE event SET related = %s WHERE id = %s", ([ID, first], first))
is_equal(psql(f"SELECT related FROM event WHERE id = '{first}'"), [f"{{{ID},{first}}}"], "a list goes in as before")
is_equal(values("SELECT what FROM event WHERE id = ANY(%s)", [ID]), ["given"], "and is compared as before")

other = psycopg.connect(dbname="postgres")
register_scru64_arrays(other)
is_equal(other.closed, False, "in a database without the extension, registration does nothing")
other.close()

register_scru64_binary(conn)

for expected in ORDERED:
    is_equal(values("SELECT %s::scru64", expected, binary=True), [expected], f"binary: {expected}")
with conn.cursor(binary=True) as cur:
    cur.execute("SELECT id, related FROM event WHERE id = %s", (first,))
    is_equal(cur.fetchone(), (first, [ID, first]), "a binary cursor: an ID and an array")
is_equal(values("SELECT id FROM event WHERE id = %s", first), [first], "text as before")

# Order, and COPY
with conn.cursor().copy("COPY event (id, what) FROM STDIN") as copy:
    for expected in reversed(ORDERED):
        if expected != ID:
            copy.write_row((expected, "copied"))
done(values("SELECT id FROM event ORDER BY id"))
