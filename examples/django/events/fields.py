"""An ID in a model: Scru64KeyField is a primary key, which the database makes; Scru64Field any other column."""

from django.db import models


class Scru64Field(models.Field):
    empty_strings_allowed = False

    def db_type(self, connection):
        return "scru64"


class DatabaseDefault(models.Expression):
    def as_sql(self, compiler, connection):
        return "DEFAULT", []


class Scru64KeyField(Scru64Field):
    db_returning = True

    def db_type(self, connection):
        return "scru64 DEFAULT scru64_generate()"

    def cast_db_type(self, connection):
        return "scru64"

    def rel_db_type(self, connection):
        return "scru64"

    def pre_save(self, instance, add):
        return super().pre_save(instance, add) or DatabaseDefault()
