"""IDs in binary, for asyncpg and psycopg 3: doc/clients.md says how"""

import struct


def encode(id):
    if not (len(id) == 12 and id.isascii() and id.isalnum()):
        raise ValueError(f"no ID: {id!r}")
    return int(id, 36).to_bytes(8, "big")


def decode(data):
    (number,), digits = struct.unpack("!Q", data), ""
    for _ in range(12):
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits
