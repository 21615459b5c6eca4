from django.urls import path, register_converter

from events import views


class Scru64Converter:
    regex = "[0-9A-Za-z]{12}"  # all of these are IDs; whatever else is in the URL is a 404

    def to_python(self, value):
        return value.lower()

    def to_url(self, value):
        return value


register_converter(Scru64Converter, "scru64")

urlpatterns = [
    path("events", views.events, name="events"),
    path("events/<scru64:id>", views.event, name="event"),
]
