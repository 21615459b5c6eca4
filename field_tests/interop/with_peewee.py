"""peewee, which uses psycopg 2"""

import os

from harness import ID, ID_INTEGER, ORDERED, an_hour_ago, done, is_equal, psql, raises
from scru64_psycopg2 import register_scru64_arrays

import peewee
from playhouse.postgres_ext import PostgresqlExtDatabase

print(f"# peewee {peewee.__version__}")

# [recipe: peewee]
from peewee import SQL, Field, Model, TextField
from playhouse.postgres_ext import ArrayField

class Scru64Field(Field):
    field_type = "scru64"

class Event(Model):
    id = Scru64Field(primary_key=True, constraints=[SQL("DEFAULT scru64_generate()")])
    what = TextField()
    related = ArrayField(Scru64Field, index=False, null=True)
# [end]


class Comment(Model):
    event = peewee.ForeignKeyField(Event, backref="comments")


def by_id(id):
    """The event of an ID, in a transaction of its own"""
    with db.atomic():
        return Event.get_by_id(id)


def whats(condition):
    """What the events of a condition are, in order"""
    return [event.what for event in Event.select().where(condition).order_by(Event.id)]


db = PostgresqlExtDatabase(os.environ["PGDATABASE"])
db.bind([Event, Comment])
db.create_tables([Event, Comment])
is_equal(psql("SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
              " WHERE attrelid IN ('event'::regclass, 'comment'::regclass) AND attnum > 0 ORDER BY attrelid, attnum"),
         ["scru64", "text", "scru64[]", "integer", "scru64"], "the tables have the types")

# Works with the fields alone
first = Event.create(what="first")
is_equal([first.id], psql("SELECT id FROM event"), "create sets the ID, a string")
rows = Event.insert_many([{"what": "second"}, {"what": "third"}]).returning(Event.id).tuples().execute()
is_equal([id for id, in rows], psql("SELECT id FROM event WHERE what <> 'first' ORDER BY id"), "insert_many gives IDs")
is_equal(by_id(first.id).what, "first", "get_by_id")
is_equal(by_id(first.id).related, None, "NULL")
is_equal(whats(Event.id > first.id), ["second", "third"], "parameter in a range")
Event.create(id=ID.upper(), what="given", related=[first.id, None])
is_equal(psql("SELECT id, related FROM event WHERE what = 'given'"), [f"{ID}|{{{first.id},NULL}}"],
         "parameter in an INSERT, and an array")
is_equal(whats(Event.id.in_([first.id, ID])), ["given", "first"], "IN")
is_equal(whats(Event.related.contains(first.id)), ["given"], "array operators")
is_equal(whats(Event.id >= an_hour_ago()), ["first", "second", "third"], "a datetime in a comparison")
raises(lambda: by_id("no ID"), peewee.DataError, "bad text")
raises(lambda: by_id(ID_INTEGER), peewee.ProgrammingError, "a number needs a cast")
is_equal(by_id(peewee.Value(ID_INTEGER).cast("bigint").cast("scru64")).what, "given", "and has one")
Comment.create(event=first)
is_equal(first.comments.get().event_id, first.id, "a foreign key")

# Needs a hint
is_equal(by_id(ID).related, f"{{{first.id},NULL}}", "unregistered, an array comes as a string")
register_scru64_arrays(db.connection())
is_equal(by_id(ID).related, [first.id, None], "registered, an array comes as a list")

# Order
for id in reversed(ORDERED):
    if id != ID:
        Event.create(id=id, what="ordered")
done([event.id for event in Event.select().order_by(Event.id)])
