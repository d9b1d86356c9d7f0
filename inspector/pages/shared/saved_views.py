"""Saved views of a page: the menu that chooses one, saving the filters that are set, renaming, deleting
and bringing back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_POST

from inspector.accounts import access
from inspector.models import SavedView
from inspector.pages.shared import saved_queries
from inspector.pages.shared.project import project_of

SESSIONS, TRIGGERS = SavedView.Page.SESSIONS, SavedView.Page.TRIGGERS
HOME = {SESSIONS: "home", TRIGGERS: "triggers"}
WORDS = saved_queries.Words("view", "Saved views", "A page has", "Save this view as")


def addresses(below: str, page: SavedView.Page, written: Callable[[QueryDict], str]) -> list[URLPattern]:
    """What saves, brings back, deletes and renames views of a page. `written`: filters, as the page writes them."""

    def view(change: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @require_POST
        def changed(request: HttpRequest, **key: UUID) -> HttpResponse:
            return change(request, page, written(saved_queries.given_query(request)), **key)

        return changed

    return [
        path(below, view(save), name=f"{page}_view_save"),
        path(f"{below}/restore", view(restore), name=f"{page}_view_restore"),
        path(f"{below}/<uuid:pk>/delete", view(delete), name=f"{page}_view_delete"),
        path(f"{below}/<uuid:pk>/rename", view(rename), name=f"{page}_view_rename"),
    ]


def menu(request: HttpRequest, page: SavedView.Page, query: str) -> dict[str, Any]:
    """What `_saved_queries.html` shows. `query`: the filters that are set, as the page writes them."""
    home = reverse(HOME[page])
    views = _views(request, page)[: saved_queries.MOST]
    items = (
        {
            "id": view.pk,
            "name": view.name,
            "url": home if view.query == "?" else home + view.query,
            "delete": reverse(f"{page}_view_delete", args=[view.pk]),
            "rename": reverse(f"{page}_view_rename", args=[view.pk]),
            "current": view.query == query,
        }
        for view in views
    )
    save = f"{page}_view_save"
    return saved_queries.menu(
        WORDS,
        items,
        query=query,
        save=reverse(save),
        may_save=access.allows(request, save),
        undo=saved_queries.offer(
            _views(request, page), project_of(request), request, reverse(f"{page}_view_restore"), page
        ),
        refused=saved_queries.refusal(request.GET),
    )


def save(request: HttpRequest, page: SavedView.Page, query: str) -> HttpResponse:
    """Save a query string, as the page itself writes it, under the name of the form."""
    return _to(page, query, **saved_queries.store(request, WORDS, _views(request, page), query, page=page))


def delete(request: HttpRequest, page: SavedView.Page, query: str, pk: UUID) -> HttpResponse:
    """Delete a view; back to the page with the filters that are set, with an undo."""
    undo = saved_queries.take_away(get_object_or_404(_views(request, page), pk=pk), page)
    return _to(page, query, undo=undo)


def rename(request: HttpRequest, page: SavedView.Page, query: str, pk: UUID) -> HttpResponse:
    """Give a view another name; back to the page with the filters that are set."""
    views = _views(request, page)
    return _to(page, query, **saved_queries.rename(request, WORDS, views, get_object_or_404(views, pk=pk)))


def restore(request: HttpRequest, page: SavedView.Page, query: str) -> HttpResponse:
    """Bring back a view that was deleted within a day; back to the page with the filters that are set."""
    views = _views(request, page)
    deleted = saved_queries.taken_away(views, project_of(request), request.POST.get("undo", ""), page)
    if deleted is None:  # brought back already, too late, or the name is taken by now
        return _to(page, query)
    return _to(page, query, **saved_queries.bring_back(WORDS, views, deleted, page=page))


def _views(request: HttpRequest, page: SavedView.Page) -> QuerySet[SavedView]:
    return SavedView.objects.of(project_of(request)).filter(page=page)


def _to(page: SavedView.Page, query: str, **more: str) -> HttpResponse:
    pairs = "&".join(filter(None, (query.removeprefix("?"), urlencode(more))))
    return HttpResponseRedirect(reverse(HOME[page]) + (pairs and f"?{pairs}") + saved_queries.place(more))
