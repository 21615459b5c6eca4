"""pgloader: integers of SQLite, and then what doc/coming-from.md makes IDs of them with"""

import os
import re
import sqlite3
import subprocess
import tempfile

from harness import done, is_equal, psql

OLD = """
CREATE TABLE account (id integer PRIMARY KEY AUTOINCREMENT, created_at text NOT NULL, name text NOT NULL);
CREATE TABLE entry (id integer PRIMARY KEY, account_id integer NOT NULL REFERENCES account (id), amount numeric);
INSERT INTO account VALUES (1, '2020-01-01', 'Ann'), (2, '2020-01-02', 'Bob'), (3000000000, '2020-01-03', 'Eve');
INSERT INTO entry (account_id, amount) VALUES (1, 10), (3000000000, 20);
"""

with tempfile.TemporaryDirectory() as folder:
    old = sqlite3.connect(f"{folder}/old.db")
    old.executescript(OLD)
    old.close()
    target = "pgsql://{PGUSER}@unix:{PGHOST}:{PGPORT}/{PGDATABASE}".format_map(os.environ)
    loaded = subprocess.run(["pgloader", "--root-dir", folder, f"{folder}/old.db", target],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
printed = loaded.stdout.splitlines()
print("\n".join(f"# {line}" for line in (printed if loaded.returncode else printed[:1])))

TYPES = ("SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
         " WHERE (attrelid, attname) IN (('account'::regclass, 'id'), ('entry'::regclass, 'account_id'))")
is_equal(psql(TYPES), ["bigint", "bigint"], "integers come as bigint")

with open("../../doc/coming-from.md") as page:
    recipes = dict(re.findall(r"<!-- recipe (.*?) -->\n *```sql\n(.*?)```", page.read(), re.DOTALL))
psql("".join(recipes[name] for name in ("begin", "numbers", "change")).replace(r"\i ", r"\i ../../"))
is_equal(psql(TYPES), ["scru64", "scru64"], "they become IDs")
is_equal(psql("SELECT id, id::bigint, name FROM account ORDER BY account.id"),
         ["000000000001|1|Ann", "000000000002|2|Bob", "000001dm4etc|3000000000|Eve"], "of the same numbers")
is_equal(psql("SELECT name, amount FROM account JOIN entry ON account_id = account.id ORDER BY amount"),
         ["Ann|10", "Eve|20"], "references, too")
is_equal(psql("INSERT INTO account (created_at, name) VALUES ('2020-01-04', 'Max');"
              " SELECT name FROM account WHERE id >= now() - interval '1 hour'"), ["Max"], "new rows get new IDs")
is_equal(psql("DO $$ BEGIN INSERT INTO entry (id, account_id) VALUES (9, scru64_generate());"
              " EXCEPTION WHEN foreign_key_violation THEN RETURN; END $$; SELECT count(*) FROM entry"), ["2"],
         "the foreign key holds")

done()
