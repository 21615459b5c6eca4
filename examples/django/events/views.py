from django import forms
from django.db import DataError
from django.http import HttpResponseBadRequest
from django.shortcuts import get_object_or_404, redirect, render

from events.models import Event

PAGE = 10


class EventForm(forms.ModelForm):
    class Meta:
        model = Event
        fields = ["what"]


class Filter(forms.Form):
    before = forms.CharField(required=False)
    since = forms.DateTimeField(required=False)
    until = forms.DateTimeField(required=False)


def events(request):
    form = EventForm(request.POST or None)
    if form.is_valid():
        return redirect("event", form.save().id)
    wanted = Filter(request.GET)
    if form.errors or not wanted.is_valid():
        return HttpResponseBadRequest()

    # PostgreSQL compares a time with the IDs themselves, so the primary key serves it too.
    found = Event.objects.order_by("-id")
    for name, lookup in [("before", "id__lt"), ("since", "id__gte"), ("until", "id__lt")]:
        if wanted.cleaned_data[name]:
            found = found.filter(**{lookup: wanted.cleaned_data[name]})
    try:
        page = list(found[:PAGE])
    except DataError:  # no ID, or no time zone of PostgreSQL's
        return HttpResponseBadRequest()

    older = request.GET.copy()
    if len(page) == PAGE:
        older["before"] = page[-1].id
    return render(request, "events.html", {
        "form": form, "events": page, "older": len(page) == PAGE and older.urlencode()})


def event(request, id):
    return render(request, "event.html", {"event": get_object_or_404(Event, id=id)})
