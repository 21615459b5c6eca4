"""For Django: in a folder of migrations, with scru64.sql beside it. The environment has SCRU64_NODE_SPEC."""

import os
import pathlib

from django.db import migrations


class Migration(migrations.Migration):
    operations = [
        migrations.RunSQL(pathlib.Path(__file__).with_name("scru64.sql").read_text(),
                          "DROP SCHEMA scru64_plain CASCADE"),
        migrations.RunSQL(["SET LOCAL lock_timeout = '2s'",
                           ("SELECT scru64_plain.set_node(%s)", [os.environ["SCRU64_NODE_SPEC"]])],
                          migrations.RunSQL.noop),
    ]
