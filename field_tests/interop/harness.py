"""What the Python programs here share: tests, and values that another client fetched."""

import os
import subprocess

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


def done(ids=None, table="event"):
    """The end, which scripts/interop waits for. ids: all of the table, in the server's order, as the client has them"""
    if ids is not None:
        is_equal(ids, psql(f"SELECT id FROM {table} ORDER BY id"), "the server's order")
        is_equal(sorted(ids), ids, "it is the order of the strings")
        is_equal([id for id in ids if id in ORDERED], ORDERED, "and the one expected")
    print("done")
