"""A program of examples/, driven as a browser would. Argument: which one"""

import contextlib
import html
import http.cookiejar
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import harness
from harness import ID, done, is_equal, psql

PYTHON = "/usr/bin/python3"

# How to migrate, and how to serve
PROGRAMS = {
    "django": ([PYTHON, "manage.py", "migrate"], [PYTHON, "manage.py", "runserver", "--noreload", "127.0.0.1:{port}"]),
    "rails": (["rake", "db:migrate"], ["puma", "-b", "tcp://127.0.0.1:{port}"]),
    "express": ([os.environ["PSQL"], "-X", "-v", "ON_ERROR_STOP=1", "-f", "migration.sql"], ["node", "app.mjs"]),
}

name = sys.argv[1]
migrate, serve = PROGRAMS[name]
folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", name)
browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))


def answers(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def start(log):
    """Start the program on a free port. Another program may take that before: then it ends, and is started again."""
    for _ in range(3):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        program = subprocess.Popen([word.format(port=port) for word in serve], cwd=folder, stdout=log, stderr=log,
                                   env={**environment, "PORT": str(port)})
        while program.poll() is None:
            if answers(port):
                return program, f"http://127.0.0.1:{port}"
            time.sleep(0.1)
    sys.exit(f"{name} does not start")


def fetch(path, fields=None):
    """The status, the page, and the path that redirections led to"""
    data = urllib.parse.urlencode(fields).encode() if fields else None
    try:
        response = browser.open(urllib.request.Request(urllib.parse.urljoin(address, path), data))
    except urllib.error.HTTPError as error:
        response = error
    with response:
        return response.status, response.read().decode(), urllib.parse.urlsplit(response.url).path


def status(path, fields=None):
    return fetch(path, fields)[0]


def hidden_fields(page):
    """What the form sends beside the user's words, such as a token"""
    inputs = [dict(re.findall(r'(\w+)="([^"]*)"', tag)) for tag in re.findall("<input[^>]*>", page)]
    return {tag["name"]: tag["value"] for tag in inputs if tag.get("type") == "hidden"}


def add(what):
    return fetch("/events", {**hidden_fields(fetch("/events")[1]), field: what})


def ids_of(page):
    return re.findall(r'href="/events/([^"?]+)"', page)


def pages(path):
    """The IDs of each page, from the first to the last, which none of these tests has after the third"""
    found = []
    while path and len(found) < 4:
        code, page, _ = fetch(path)
        found.append(ids_of(page))
        older = re.search(r'rel="next" href="([^"]+)"', page)
        path = older and urllib.parse.urljoin("/events", html.unescape(older[1]))
    return found


environment = {**os.environ, "SECRET_KEY": secrets.token_hex(64), "PATH": os.path.dirname(os.environ["PSQL"])
               + os.pathsep + os.environ["PATH"]}
subprocess.run(migrate, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
(table,) = psql("SELECT attrelid::regclass FROM pg_attribute JOIN pg_index ON indrelid = attrelid AND indisprimary"
                " AND indkey[0] = attnum WHERE atttypid = 'scru64'::regtype")
is_equal(psql(f"SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = '{table}'::regclass"),
         ["scru64_generate()"], "the migration makes a table with a key that is an ID by default")

log = tempfile.TemporaryFile()
program, address = start(log)
try:
    is_equal(pages("/events"), [[]], "no event")
    field = re.search(r'name="([^"]*\bwhat\b[^"]*)"', fetch("/events")[1])[1]
    code, page, path = add("the first")
    (first,) = psql(f"SELECT id FROM {table}")
    is_equal((code, path, "the first" in page), (200, f"/events/{first}", True), "the form leads to the new event")
    is_equal(status("/events", {**hidden_fields(fetch("/events")[1]), field: ""}), 400, "an empty form")
    for number in range(2, 24):
        add(f"number {number}")
    psql(f"INSERT INTO {table} VALUES ('{ID}', 'of 2023')")
    newest = psql(f"SELECT id FROM {table} ORDER BY id DESC")
    is_equal(pages("/events"), [newest[:10], newest[10:20], newest[20:]], "pages, the newest first")

    is_equal(pages("/events?until=2024-01-01T00:00:00Z"), [[ID]], "until a time")
    is_equal(pages("/events?since=2024-01-01T00:00:00Z"), [newest[:10], newest[10:20], newest[20:-1]],
             "since a time, with pages")
    is_equal(pages("/events?since=2023-03-04T11:04:46Z&until=2023-03-04T11:04:47Z"), [[ID]], "the second it is of")
    is_equal(pages("/events?since=2023-03-04T11:04:47Z&until=2023-03-04T11:04:48Z"), [[]], "the next second")
    is_equal(status("/events?since=yesterday-ish"), 400, "a malformed time")

    code, page, _ = fetch(f"/events/{ID.upper()}")
    is_equal((code, ID in page, "of 2023" in page), (200, True, True), "upper case is found")
    is_equal(status("/events/000000000001"), 404, "no such event")
    for bad in ["0", ID[1:], ID + "0", ID[1:] + "-", "%D9%A3" + ID[1:], "%EF%BC%A1" + ID[1:], ID[1:] + "%00",
                "%27" + ID[1:], "109964681944955175", "id"]:
        is_equal(status(f"/events/{bad}"), 404, f"malformed: {bad}")
        is_equal(status(f"/events?before={bad}"), 400, f"the same in a page's link: {bad}")
    is_equal(status("/events/" + "%FF" * 12) in (400, 404), True, "no text at all, which a framework may refuse")
    is_equal(program.poll(), None, "it still runs")
finally:
    program.terminate()
    try:
        program.wait(60)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()
    log.seek(0)
    if sys.exc_info()[0] or harness.failures:
        print(re.sub("(?m)^", "# ", log.read().decode(errors="replace")))

done()
