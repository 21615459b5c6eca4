"""asyncpg"""

import asyncio
import datetime
import struct

from harness import ID, ORDERED, done, is_equal, psql
from scru64_binary import decode, encode

import asyncpg

print(f"# asyncpg {asyncpg.__version__}")

# [recipe: asyncpg, binary codec]
async def register_scru64(conn):
    await conn.set_type_codec("scru64", encoder=encode, decoder=decode, format="binary")
# [end]


async def failure(awaitable):
    """The class of the error of what fails"""
    try:
        return await awaitable
    except Exception as error:
        return type(error)


async def try_values(conn, how, malformed):
    """What works as well with the binary codec as without. The error for text that is no ID is not the same."""
    async with conn.transaction():
        first = await conn.fetchval("INSERT INTO event (what) VALUES ($1) RETURNING id", "first")
        is_equal(len(first), 12, f"{how}: DEFAULT gives an ID, a string")
        second = await conn.fetchval("INSERT INTO event (what) VALUES ($1) RETURNING id", "second")
        is_equal(await conn.fetchval("SELECT id::text FROM event WHERE what = 'first'"), first, f"{how}: it is stored")
        is_equal(await conn.fetchval("SELECT what FROM event WHERE id = $1", first), "first", f"{how}: in a comparison")
        is_equal([row["id"] for row in await conn.fetch("SELECT id FROM event WHERE id > $1", first)], [second],
                 f"{how}: in a range")
        is_equal(await conn.fetchval("INSERT INTO event (id, what) VALUES ($1, 'given') RETURNING id", ID.upper()), ID,
                 f"{how}: parameter in an INSERT")
        is_equal(await conn.fetchval("SELECT id::bigint FROM event WHERE what = 'given'"), int(ID, 36),
                 f"{how}: it has its number")
        is_equal(await conn.fetchval("SELECT $1::scru64", None), None, f"{how}: NULL")
        is_equal(await conn.fetchval("SELECT $1::bigint::scru64", int(ID, 36)), ID, f"{how}: a number, with a cast")
        since = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1)
        is_equal([row["id"] for row in await conn.fetch(
            "SELECT id FROM event WHERE id >= $1::timestamptz ORDER BY id", since)], [first, second],
                 f"{how}: a time, with a cast")
        is_equal([row["what"] for row in await conn.fetch(
            "SELECT what FROM event WHERE id = ANY($1) ORDER BY id", [first, ID])], ["given", "first"], f"{how}: = ANY")
        is_equal(await conn.fetchval("UPDATE event SET related = $1 WHERE id = $2 RETURNING related",
                                     [first, None, ID], first), [first, None, ID], f"{how}: arrays")
        for expected in ORDERED:
            is_equal(await conn.fetchval("SELECT $1::scru64", expected), expected, f"{how}: {expected}")
        await conn.execute("DELETE FROM event")
    for bad in ["no ID", "5", ID + "0", "0u2r_5hm2pt3", "0u2r85hm2pt\u0663", "12345678", None]:
        if bad is None:
            bad = datetime.datetime.now(datetime.timezone.utc)
        is_equal(await failure(conn.fetchval("SELECT $1::scru64", bad)),
                 malformed if isinstance(bad, str) else asyncpg.DataError, f"{how}: {bad!r} is an error")
    is_equal(await conn.fetchval("SELECT $1::scru64", ID), ID, f"{how}: and the connection is usable")


async def main():
    conn = await asyncpg.connect()

    # Works without a hint
    await try_values(conn, "text", asyncpg.InvalidTextRepresentationError)

    # Needs one
    copy = lambda: conn.copy_records_to_table("event", records=[(id, "copied") for id in reversed(ORDERED)],
                                              columns=["id", "what"])
    composite = lambda: conn.fetchval("SELECT event FROM event WHERE id = $1", ID)
    is_equal(await failure(copy()), asyncpg.InternalClientError, "copy_records_to_table needs a codec")
    await conn.execute("INSERT INTO event (id, what) VALUES ($1, 'composite')", ID)
    is_equal(await failure(composite()), asyncpg.UnsupportedClientFeatureError, "a composite, too")
    await register_scru64(conn)
    is_equal(tuple(await composite()), (ID, "composite", None), "and has one")
    is_equal(await conn.fetchval("SELECT $1::event = event FROM event", (ID, "composite", None)), True,
             "it goes in, too")
    await conn.execute("DELETE FROM event")
    await try_values(conn, "binary", asyncpg.DataError)
    await copy()
    for wrong in [b"", ID.encode()]:
        try:
            is_equal(decode(wrong), None, "an ID has 8 bytes")
        except struct.error as error:
            is_equal(type(error), struct.error, f"{len(wrong)} bytes are no ID")

    # Order
    ids = [row["id"] for row in await conn.fetch("SELECT id FROM event ORDER BY id")]
    is_equal(ids, psql("SELECT id FROM event ORDER BY id"), "copy_records_to_table, and the server's order")
    is_equal(ids, ORDERED, "it is that of the strings")

    async with asyncpg.create_pool(init=register_scru64, min_size=1) as pool:
        is_equal([row["id"] for row in await pool.fetch("SELECT id FROM event ORDER BY id")], ids, "a pool")
    await conn.close()


asyncio.run(main())
done()
