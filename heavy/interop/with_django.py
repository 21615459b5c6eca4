"""Django, with psycopg 3 if it takes that, else psycopg 2"""

import datetime
import json
import os
import sys

from harness import ID, ORDERED, an_hour_ago, done, is_equal, psql

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ["PGHOST"],
        "PORT": os.environ["PGPORT"],
        "USER": os.environ["PGUSER"],
        "NAME": os.environ["PGDATABASE"],
    }},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.postgres"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    USE_TZ=True)
django.setup()

from django.core import serializers
from django.core.management import call_command
from django.db import connection
from django.db.models import CASCADE, ForeignKey, Model, TextField
from django.db.models.functions import Now

if connection.Database.__name__ == "psycopg2":
    from scru64_psycopg2 import register_scru64_arrays
else:
    from scru64_psycopg3 import register_scru64_arrays

print(f"# Django {django.__version__}, {connection.Database.__name__}")

# A model belongs to an application, and these are in none.
class Meta:
    app_label = "interop"


sys.path.append("../../examples/django")

# [recipe: Django]
from django.contrib.postgres.fields import ArrayField
from django.db import models
from events.fields import Scru64Field, Scru64KeyField

class Event(models.Model):
    id = Scru64KeyField(primary_key=True, editable=False)
    what = models.TextField()
    related = ArrayField(Scru64Field(), null=True)
    # [end]
    Meta = Meta


class Comment(Model):
    event = ForeignKey(Event, CASCADE)
    comment = TextField()
    Meta = Meta


with connection.schema_editor() as editor:
    editor.create_model(Event)
    editor.create_model(Comment)
is_equal(psql("SELECT attname, format_type(atttypid, atttypmod), pg_get_expr(adbin, adrelid)"
              " FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum"
              " WHERE attrelid = 'interop_event'::regclass AND attnum > 0 ORDER BY attnum"),
         ["id|scru64|scru64_generate()", "what|text|", "related|scru64[]|"], "the table has the types and the default")
is_equal(psql("SELECT format_type(atttypid, atttypmod), atthasdef FROM pg_attribute"
              " WHERE attrelid = 'interop_comment'::regclass AND attname = 'event_id'"),
         ["scru64|f"], "so has a foreign key, without the default")

# Works with the fields alone
connection.force_debug_cursor = True
event = Event.objects.create(what="first")
first = event.id
is_equal([first], psql("SELECT id FROM interop_event WHERE what = 'first'"), "DEFAULT gives an ID, a string")
is_equal(connection.queries[-1]["sql"].count("VALUES (DEFAULT, "), 1, "it was indeed DEFAULT")
is_equal([event.id for event in Event.objects.bulk_create([Event(what="second"), Event(what="third")])],
         psql("SELECT id FROM interop_event WHERE what <> 'first' ORDER BY id"), "bulk_create gives IDs, in order")
event.what = "changed"
event.save()
is_equal(psql("SELECT id, what FROM interop_event WHERE what IN ('first', 'changed')"), [f"{first}|changed"],
         "save() of what is there updates it")
Event.objects.filter(what="changed").update(what="first")
is_equal(Event.objects.get(what="first").id, first, "an ID is read back")
is_equal(Event.objects.get(id=first).what, "first", "parameter in a comparison")
is_equal(Event.objects.get(id__in=[first, ID]).what, "first", "IN")
Event.objects.create(id=ID, what="given", related=[first, ID])
is_equal(psql("SELECT id, related FROM interop_event WHERE what = 'given'"), [f"{ID}|{{{first},{ID}}}"],
         "parameter in an INSERT, and an array")
is_equal(Event.objects.get(related__contains=[first]).id, ID, "array operators")
is_equal(Event.objects.get_or_create(what="fourth")[0].id, psql("SELECT max(id) FROM interop_event")[0],
         "get_or_create")
Comment.objects.create(event_id=first, comment="so it is")
is_equal(Comment.objects.select_related("event").get(event=first).event.what, "first", "a foreign key")
def by_ids(ids):
    return Event.objects.extra(where=["id = ANY(%s::scru64[])"], params=[ids])
is_equal(by_ids([first, ID]).count(), 2, "= ANY(parameter)")
is_equal(by_ids([]).count(), 0, "= ANY(empty parameter)")
# All but the one of 2023
is_equal(Event.objects.filter(id__gte=an_hour_ago()).count(), 4, "a datetime in a comparison")
is_equal(Event.objects.filter(id__gte=Now() - datetime.timedelta(hours=1)).count(), 4, "Now() in a comparison")
is_equal(json.loads(serializers.serialize("json", [Event(id=ID)]))[0]["pk"], ID, "serialized as a string")

# Needs a hint
is_equal(Event.objects.get(id=ID).related, f"{{{first},{ID}}}", "unregistered, an array comes as a string")

# [recipe: Django, arrays]
from django.db import connections
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate
from django.dispatch import receiver

@receiver([connection_created, post_migrate])
def register(connection=None, using=None, **kwargs):
    register_scru64_arrays((connection or connections[using]).connection)
# [end]

call_command("migrate", verbosity=0)
is_equal(Event.objects.get(id=ID).related, [first, ID], "registered after migrate, an array comes as a list")
connection.close()
is_equal(Event.objects.get(id=ID).related, [first, ID], "registered, in a new connection too")

# Order
Event.objects.bulk_create([Event(id=id, what="ordered") for id in reversed(ORDERED) if id != ID])
done(list(Event.objects.order_by("id").values_list("id", flat=True)), "interop_event")
