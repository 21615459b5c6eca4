"""What the Python programs here share: tests, and values that another client fetched."""

import os
import subprocess
from datetime import datetime, timedelta, timezone

# A fixed ID, as text and as the integer in it
ID = "0u2r85hm2pt3"
ID_INTEGER = 109964681944955175

# IDs in the order of the server, which must be the order of strings
ORDERED = "000000000000 0000000000zz 00000000a000 0u2r85hm2pt3 9zzzzzzzzzzz a00000000000 zzzzzzzzzzzz".split()

failures = 0


def is_equal(got, expected, name):
    """One test. The type counts too: a string is not an array of characters."""
    global failures
    if type(got) is type(expected) and got == expected:
        print(f"ok - {name}", flush=True)
    else:
        failures += 1
        print(f"not ok - {name}\n#        got: {got!r}\n#   expected: {expected!r}", flush=True)


def raises(function, exception, name):
    """One test: does the call raise this?"""
    try:
        got = function()
    except exception:
        got = exception
    except Exception as error:
        got = error
    is_equal(got, exception, name)


def psql(sql):
    """psql's output, a string for each line"""
    printed = subprocess.run(
        [os.environ["PSQL"], "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"],
        input=sql, check=True, stdout=subprocess.PIPE, universal_newlines=True)
    return printed.stdout.splitlines()


def an_hour_ago():
    return datetime.now(timezone.utc) - timedelta(hours=1)


def ask(values, bad, uncast, time="", any="", lists=False):
    """What every client is asked that takes SQL; returns the ID of the first row.

    values(query, *params) gives the first values of all rows. bad is the error of bad text, and uncast that of a
    missing cast; time and any are the casts of a time and of a parameter of = ANY, and lists says whether arrays come
    as lists."""
    [first] = values("INSERT INTO event (what) VALUES (%s) RETURNING id", "first")
    is_equal([first], psql("SELECT id FROM event"), "DEFAULT gives an ID, a string")
    is_equal(values("SELECT what FROM event WHERE id = %s", first), ["first"], "parameter in a comparison")
    is_equal(values("INSERT INTO event (id, what) VALUES (%s, 'given') RETURNING id", ID.upper()), [ID],
             "parameter in an INSERT")
    is_equal(psql("SELECT id FROM event WHERE what = 'given'"), [ID], "it is stored")
    is_equal(values("SELECT %s::scru64", None), [None], "NULL")
    raises(lambda: values("SELECT what FROM event WHERE id = %s", "no ID"), bad, "bad text")
    raises(lambda: values("SELECT what FROM event WHERE id = %s", ID_INTEGER), uncast, "a number needs a cast")
    is_equal(values("SELECT what FROM event WHERE id = %s::bigint::scru64", ID_INTEGER), ["given"], "and has one")
    if time:
        raises(lambda: values("SELECT id FROM event WHERE id >= %s", an_hour_ago()), uncast, "a time needs a cast")
    is_equal(values(f"SELECT id FROM event WHERE id >= %s{time}", an_hour_ago()), [first], "a time in a comparison")
    if any:
        raises(lambda: values("SELECT id FROM event WHERE id = ANY(%s)", [first]), uncast,
               "= ANY(parameter) needs a cast")
    by_ids = f"SELECT what FROM event WHERE id = ANY(%s{any}) ORDER BY id"
    is_equal(values(by_ids, [first, ID]), ["given", "first"], "= ANY(parameter)")
    is_equal(values(by_ids, []), [], "= ANY(empty parameter)")

    related = [first, None, ID]
    text = f"{{{first},NULL,{ID}}}"
    is_equal(values("UPDATE event SET related = %s WHERE id = %s RETURNING related", related, first),
             [related if lists else text], "an array in and out")
    is_equal(psql(f"SELECT related FROM event WHERE id = '{first}'"), [text], "it is stored")
    is_equal(values("SELECT related::text[] FROM event WHERE id = %s", first), [related], "an array, cast")
    return first


def done(ids=None, table="event"):
    """The end, which scripts/heavy interop waits for. ids: all of the table, in the server's order, as the client has them"""
    if ids is not None:
        is_equal(ids, psql(f"SELECT id FROM {table} ORDER BY id"), "the server's order")
        is_equal(sorted(ids), ids, "it is the order of the strings")
        is_equal([id for id in ids if id in ORDERED], ORDERED, "and the one expected")
    print("done")
