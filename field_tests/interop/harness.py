"""What the Python programs here share: TAP, and values that another client fetched."""

import os
import subprocess
import sys

# A fixed ID, as text and as the integer in it
ID = "0u2r85hm2pt3"
ID_INTEGER = 109964681944955175

# IDs in the order of the server, which must be the order of strings
ORDERED = [
    "000000000000",
    "0000000000zz",
    "00000000a000",
    "0u2r85hm2pt3",
    "9zzzzzzzzzzz",
    "a00000000000",
    "zzzzzzzzzzzz",
]

tests = 0
failures = 0


def is_equal(got, expected, name):
    """One test. The type counts too: a string is not an array of characters."""
    global tests, failures
    tests += 1
    if type(got) is type(expected) and got == expected:
        print(f"ok {tests} - {name}")
    else:
        failures += 1
        print(f"not ok {tests} - {name}")
        print(f"#        got: {got!r}")
        print(f"#   expected: {expected!r}")
    sys.stdout.flush()


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


def done():
    """The plan comes last, so a program ending early is without one."""
    print(f"1..{tests}")
    sys.exit(failures > 0)
