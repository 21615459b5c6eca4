"""The type of IDs for SQLAlchemy: doc/clients.md says how"""

from datetime import datetime

from sqlalchemy import DateTime
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.types import UserDefinedType


class Scru64(UserDefinedType):
    cache_ok = True

    def get_col_spec(self, **kw):
        return "scru64"

    def coerce_compared_value(self, op, value):
        return DateTime(timezone=True) if isinstance(value, datetime) else self


ischema_names["scru64"] = Scru64  # for reflection
