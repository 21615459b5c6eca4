"""IDs in binary results as strings, for psycopg 3: doc/clients.md says how"""

from psycopg.adapt import Loader
from psycopg.pq import Format

from scru64_binary import decode


class Scru64BinaryLoader(Loader):
    format = Format.BINARY

    def load(self, data):
        return decode(data)


def register_scru64_binary(conn):
    conn.adapters.register_loader("scru64", Scru64BinaryLoader)
