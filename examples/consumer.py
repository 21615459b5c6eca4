#!/usr/bin/env python3
"""A consumer of doc/feeds.md: handles each new row of the table outbox once, in order.

Needs psycopg 3 and the tables of the page. Put what your program does with a row in place
of make_mail(). The server is that of PGHOST, PGPORT, PGUSER and PGDATABASE.
"""
import select
import sys

import psycopg

conn = psycopg.connect(autocommit=True)


def next_batch(name, handle):
    """Handle the next rows and move the consumer's position, in one transaction."""
    with conn.transaction():
        (seen,) = conn.execute("SELECT seen FROM consumer WHERE name = %s FOR UPDATE", (name,)).fetchone()
        rows = conn.execute("""
            SELECT id, what FROM outbox
            WHERE id > %s AND id < scru64_watermark()
            ORDER BY id LIMIT 1000""", (seen,)).fetchall()
        if rows:
            handle(rows)
            conn.execute("UPDATE consumer SET seen = %s WHERE name = %s", (rows[-1][0], name))
    return rows


def make_mail(rows):
    with conn.cursor() as cur:
        cur.executemany("INSERT INTO mail VALUES (%s, 'Dear reader: ' || %s)", rows)


def run(name, handle):
    """Handle rows for ever: as soon as NOTIFY outbox comes, and at least once a second.

    Without a watermark, say why and wait: after a restart or a promotion, until the transactions
    prepared before it have ended.
    """
    woken = []
    waiting_for = None
    conn.add_notify_handler(woken.append)
    conn.execute("LISTEN outbox")
    while True:
        woken.clear()
        try:
            while next_batch(name, handle):
                pass
            waiting_for = None
        except psycopg.errors.ObjectNotInPrerequisiteState as error:
            if str(error) != waiting_for:
                waiting_for = str(error)
                print(f"{name} waits: {waiting_for}", file=sys.stderr, flush=True)
        if not woken:
            select.select([conn], [], [], 1)


if __name__ == "__main__":
    run("mail", make_mail)
