from django.db import models

from events.fields import Scru64KeyField


class Event(models.Model):
    id = Scru64KeyField(primary_key=True, editable=False)
    what = models.TextField()
