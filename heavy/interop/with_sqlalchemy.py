"""SQLAlchemy, with the driver that is named: psycopg2, asyncpg or, from SQLAlchemy 2 on, psycopg"""

import asyncio
import sys
import warnings

from harness import ID, ORDERED, an_hour_ago, done, is_equal, psql, raises

import sqlalchemy
from sqlalchemy import create_engine, inspect, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, declarative_base

driver = sys.argv[1]
if driver == "psycopg2":
    from scru64_psycopg2 import register_scru64_arrays
elif driver == "psycopg":
    from scru64_psycopg3 import register_scru64_arrays

print(f"# SQLAlchemy {sqlalchemy.__version__}, {driver}")

Base = declarative_base()
is_async = driver == "asyncpg"
engine = (create_async_engine if is_async else create_engine)(f"postgresql+{driver}://")
loop = asyncio.new_event_loop()

from scru64_sqlalchemy import Scru64
from sqlalchemy import Column, Text, text
from sqlalchemy.dialects.postgresql import ARRAY

class Event(Base):
    __tablename__ = "event"

    # [recipe: SQLAlchemy, model]
    id = Column(Scru64, server_default=text("scru64_generate()"), primary_key=True)
    related = Column(ARRAY(Scru64))
    # [end]
    what = Column(Text, nullable=False)


def in_session(function):
    """What a function gives in a session of its own"""
    def work(session):
        result = function(session)
        session.commit()
        return result

    async def work_async():
        async with AsyncSession(engine) as session:
            return await session.run_sync(work)

    if is_async:
        return loop.run_until_complete(work_async())
    with Session(engine) as session:
        return work(session)


def add(session, *whats):
    """Events, added in one go"""
    events = [Event(what=what) for what in whats]
    session.add_all(events)
    session.commit()
    return [event.id for event in events]


in_session(lambda session: Base.metadata.create_all(session.connection()))
is_equal(psql("SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
              " WHERE attrelid = 'event'::regclass AND attnum > 0 ORDER BY attnum"),
         ["scru64", "scru64[]", "text"], "the table has the types")

# Works with the type alone
[first] = in_session(lambda session: add(session, "first"))
is_equal([first], psql("SELECT id FROM event WHERE what = 'first'"), "DEFAULT gives an ID, a string")
more = in_session(lambda session: add(session, "second", "third"))
is_equal(more, psql("SELECT id FROM event WHERE what <> 'first' ORDER BY id"), "and two, in order")
is_equal(in_session(lambda session: session.get(Event, first).what), "first", "get by primary key")
is_equal(in_session(lambda session: session.query(Event).filter(Event.id == first).one().id), first,
         "parameter in a comparison")
is_equal(in_session(lambda session: session.query(Event).filter(Event.id.in_([first, ID])).one().what), "first",
         "IN")
is_equal(in_session(lambda session: session.execute(
    text("SELECT what FROM event WHERE id = :id"), {"id": first}).scalar()), "first", "parameter in text()")
raises(lambda: in_session(lambda session: session.get(Event, "no ID")), DBAPIError, "bad text")
in_session(lambda session: session.add(Event(id=ID, what="given", related=[first, ID])))
is_equal(psql("SELECT id, related FROM event WHERE what = 'given'"), [f"{ID}|{{{first},{ID}}}"],
         "parameter in an INSERT, and an array")
is_equal(in_session(lambda session: session.query(Event).filter(Event.related.contains([first])).one().id), ID,
         "array operators")
from sqlalchemy import any_, literal

def by_ids(session, ids):
    return session.query(Event).filter(Event.id == any_(literal(ids, ARRAY(Scru64))))
is_equal(in_session(lambda session: by_ids(session, [first, ID]).count()), 2, "= ANY(parameter)")
is_equal(in_session(lambda session: by_ids(session, []).count()), 0, "= ANY(empty parameter)")
is_equal(in_session(lambda session: session.query(Event).filter(Event.id >= an_hour_ago()).count()), 3,
         "a datetime in a comparison")

with warnings.catch_warnings():
    warnings.simplefilter("error")
    is_equal([column["type"].compile(engine.dialect) for column in
              in_session(lambda session: inspect(session.connection()).get_columns("event"))],
             ["scru64", "scru64[]", "TEXT"], "reflection")

# Needs a hint, but with asyncpg.  Without one, characters come back.
if not is_async:
    is_equal(in_session(lambda session: session.get(Event, ID).related), list(f"{{{first},{ID}}}"),
             "unregistered, an array comes as the characters of a string")

    # [recipe: SQLAlchemy, arrays]
    from sqlalchemy import event

    @event.listens_for(engine, "connect")
    def on_connect(conn, record):
        register_scru64_arrays(conn)
        conn.rollback()
    # [end]

    engine.dispose()
is_equal(in_session(lambda session: session.get(Event, ID).related), [first, ID],
         "an array comes as a list")

# Order
in_session(lambda session: session.add_all(
    [Event(id=id, what="ordered") for id in reversed(ORDERED) if id != ID]))
done(in_session(lambda session: list(session.execute(select(Event.id).order_by(Event.id)).scalars())))
