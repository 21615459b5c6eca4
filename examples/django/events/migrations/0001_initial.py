from django.contrib.postgres.operations import CreateExtension
from django.db import migrations, models

from events.fields import Scru64KeyField


class Migration(migrations.Migration):
    initial = True
    operations = [
        CreateExtension("scru64"),
        migrations.CreateModel("Event", [
            ("id", Scru64KeyField(primary_key=True, editable=False, serialize=False)),
            ("what", models.TextField()),
        ]),
    ]
