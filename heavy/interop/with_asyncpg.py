"""asyncpg"""

import asyncio
import itertools
import re
import struct

from harness import ID, ORDERED, ask, done, is_equal, raises
from scru64_binary import decode, encode

import asyncpg

print(f"# asyncpg {asyncpg.__version__}")

# [recipe: asyncpg, binary codec]
async def register_scru64(conn):
    await conn.set_type_codec("scru64", encoder=encode, decoder=decode, schema="pg_catalog", format="binary")
# [end]


run = asyncio.new_event_loop().run_until_complete
conn = run(asyncpg.connect())


def values(query, *params):
    """The first values of all rows"""
    numbers = itertools.count(1)
    return [row[0] for row in run(conn.fetch(re.sub("%s", lambda _: f"${next(numbers)}", query), *params))]


def ask_all(how, malformed):
    """What works as well with the binary codec as without. The error for text that is no ID is not the same."""
    print(f"# {how}")
    ask(values, malformed, asyncpg.DataError, time="::timestamptz", lists=True)
    for expected in ORDERED:
        is_equal(values("SELECT %s::scru64", expected), [expected], expected)
    for bad in ["5", ID + "0", "0u2r_5hm2pt3", "0u2r85hm2pt\u0663", "12345678"]:
        raises(lambda: values("SELECT %s::scru64", bad), malformed, f"{bad!r} is an error")
    is_equal(values("SELECT %s::scru64", ID), [ID], "and the connection is usable")
    run(conn.execute("DELETE FROM event"))


def copy():
    run(conn.copy_records_to_table("event", records=[(id, "copied") for id in reversed(ORDERED)],
                                   columns=["id", "what"]))


def composite():
    return tuple(run(conn.fetchval("SELECT event FROM event WHERE id = $1", ID)))


# Works without a hint
ask_all("text", asyncpg.InvalidTextRepresentationError)

# Needs one
raises(copy, asyncpg.InternalClientError, "copy_records_to_table needs a codec")
run(conn.execute("INSERT INTO event (id, what) VALUES ($1, 'composite')", ID))
raises(composite, asyncpg.UnsupportedClientFeatureError, "a composite, too")
run(register_scru64(conn))
is_equal(composite(), (ID, "composite", None), "and has one")
is_equal(values("SELECT %s::event = event FROM event", (ID, "composite", None)), [True], "it goes in, too")
run(conn.execute("DELETE FROM event"))
ask_all("binary", asyncpg.DataError)
copy()
for wrong in [b"", ID.encode()]:
    raises(lambda: decode(wrong), struct.error, f"{len(wrong)} bytes are no ID")


async def ids_of_pool():
    """The IDs, in the server's order, by a pool"""
    async with asyncpg.create_pool(init=register_scru64, min_size=1) as pool:
        return [row["id"] for row in await pool.fetch("SELECT id FROM event ORDER BY id")]


# Order
is_equal(run(ids_of_pool()), ORDERED, "a pool")
done(values("SELECT id FROM event ORDER BY id"))
