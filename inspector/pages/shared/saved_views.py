"""Saved views of a page: the menu that chooses one, saving the filters that are set, deleting a view."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404
from django.urls import reverse

from inspector.accounts import access
from inspector.models import SavedView
from inspector.pages.errors.views import plain
from inspector.pages.shared import parameters
from inspector.pages.shared.project import project_of

LONGEST_NAME = 60  # characters
LONGEST_QUERY = 4_000
MOST_VIEWS = 100  # of a page in a project
SESSIONS, TRIGGERS = SavedView.Page.SESSIONS, SavedView.Page.TRIGGERS
HOME = {SESSIONS: "home", TRIGGERS: "triggers"}


def menu(request: HttpRequest, page: SavedView.Page, query: str) -> dict[str, Any]:
    """What `_saved_views.html` shows. `query`: the filters that are set, as the page writes them."""
    path = reverse(HOME[page])
    views = SavedView.objects.of(project_of(request)).filter(page=page)[:MOST_VIEWS]
    return {
        "views": [
            {
                "name": view.name,
                "url": path if view.query == "?" else path + view.query,
                "delete": reverse(f"{page}_view_delete", args=[view.pk]),
                "current": view.query == query,
            }
            for view in views
        ],
        "current": next((view.name for view in views if view.query == query), ""),
        "query": query,
        "save": reverse(f"{page}_view_save"),
        "may_save": access.allows(request, f"{page}_view_save"),
        "longest_name": LONGEST_NAME,
    }


def given_query(request: HttpRequest) -> QueryDict:
    """The query string that a form of the menu has."""
    text = request.POST.get("query", "").removeprefix("?")
    return QueryDict(text.encode("utf-8", "replace").decode()[:LONGEST_QUERY])


def save(request: HttpRequest, page: SavedView.Page, query: str) -> HttpResponse:
    """Save a query string, as the page itself writes it, under the name of the form."""
    name, views = parameters.text(request.POST.get("name", "")), SavedView.objects.of(project_of(request))
    if wrong := _wrong(name, query) or _too_many(views.filter(page=page).count()):
        return plain(request, 422, "The view was not saved", wrong)
    try:
        with transaction.atomic():
            views.create(page=page, name=name, query=query)
    except IntegrityError:
        sentence = f"There is a view with the name “{name}” already: choose another name, or delete that view first."
        return plain(request, 422, "The view was not saved", sentence)
    return _to(page, query)


def _wrong(name: str, query: str) -> str:
    if not name or not name.isprintable():
        return "A view needs a name, of characters that are displayed."
    if len(name) > LONGEST_NAME:
        return f"A name has at most {LONGEST_NAME} characters; this one has {len(name)}."
    return f"These filters have more than {LONGEST_QUERY:,} characters." if len(query) > LONGEST_QUERY else ""


def _too_many(count: int) -> str:
    return "" if count < MOST_VIEWS else f"A page has at most {MOST_VIEWS} saved views: delete some first."


def delete(request: HttpRequest, page: SavedView.Page, pk: UUID, query: str) -> HttpResponse:
    """Delete a view; back to the page with the filters that are set."""
    get_object_or_404(SavedView.objects.of(project_of(request)).filter(page=page), pk=pk).delete()
    return _to(page, query)


def _to(page: SavedView.Page, query: str) -> HttpResponse:
    return HttpResponseRedirect(reverse(HOME[page]) + ("" if query == "?" else query))
