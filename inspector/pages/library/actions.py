"""What is done to sessions of the list: one, some, or all that a search finds."""

from __future__ import annotations

from urllib.parse import urlencode
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_POST

from inspector.accounts import audit
from inspector.models import Session
from inspector.pages.errors.views import plain
from inspector.pages.library import tagging
from inspector.pages.library.dismissing import COOKIE, SHOWN_FOR, Dismissed
from inspector.pages.shared.listing import Listing
from inspector.pages.shared.numbers import counted
from inspector.pages.shared.project import project_of
from inspector.storage import deleting

MAX_COMPARED = 5  # one more than the page of comparisons takes, so that it says that some are left out
MAX_CHOSEN = 500  # sessions ticked one by one; more are chosen as "all that match"


@require_POST
def rename(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Give a session a title; back to the list where the form was there, else to the session."""
    session = get_object_or_404(Session.objects.of(project_of(request)), pk=pk, deleted=None)
    tagging.rename(session, request.POST.get("title", ""))
    if "list" in request.POST:
        return _back(request)
    return HttpResponseRedirect(session.get_absolute_url())


@require_POST
def delete(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Take one session off the list."""
    session = get_object_or_404(Session.objects.of(project_of(request)), pk=pk, deleted=None)
    undo = deleting.delete(project_of(request), Session.objects.of(project_of(request)).filter(pk=pk))
    audit.note(request, "session deleted", session.pk)
    return _back(request, undo=undo)


@require_POST
def restore(request: HttpRequest) -> HttpResponse:
    """Bring back what one deletion took."""
    count = deleting.restore(project_of(request), request.POST.get("undo", ""))
    audit.note(request, "deletion undone", counted(count, "session"))
    return _back(request)


@require_POST
def bulk(request: HttpRequest) -> HttpResponse:
    """Tag, untag, delete or compare the chosen sessions."""
    action = request.POST.get("action", "")
    chosen = _chosen(request)
    if action == "compare":
        keys = chosen.order_by("created", "ordinal").values_list("pk", flat=True)[:MAX_COMPARED]
        return HttpResponseRedirect(f"{reverse('compare')}?{urlencode([('side', key) for key in keys])}")
    if action == "delete":
        words = counted(chosen.count(), "session")
        undo = deleting.delete(project_of(request), chosen)
        audit.note(request, "sessions deleted", words)
        return _back(request, undo=undo)
    change = {"tag": tagging.tag, "untag": tagging.untag}.get(action)
    if change is None:
        return plain(request, 400, "Nothing was done", "Choose what to do: tag, untag, delete or compare.")
    change(project_of(request), chosen, tagging.tag_names(request.POST.get("tags", "")))
    return _back(request)


@require_POST
def dismiss(request: HttpRequest) -> HttpResponse:
    """Take one failed import, or all of them, off the front page in this browser."""
    before = Dismissed.parse(request.COOKIES.get(COOKIE, ""))
    try:
        after = before.and_one(UUID(request.POST["id"])) if "id" in request.POST else before.and_all()
    except ValueError:
        after = before
    return _remember(_back(request, dismissed=str(before)), after)


@require_POST
def undismiss(request: HttpRequest) -> HttpResponse:
    """Show again what one dismissal took off the front page."""
    return _remember(_back(request), Dismissed.parse(request.POST.get("dismissed", "")))


def _remember(response: HttpResponse, dismissed: Dismissed) -> HttpResponse:
    response.set_cookie(COOKIE, str(dismissed), max_age=SHOWN_FOR, httponly=True, samesite="Lax")
    return response


def _chosen(request: HttpRequest) -> QuerySet[Session]:
    if request.POST.get("all"):
        listed = Listing.parse(_address(request)).sessions(project_of(request))
        return Session.objects.of(project_of(request)).filter(pk__in=listed.order_by().values("pk"))
    keys = []
    for text in request.POST.getlist("id")[:MAX_CHOSEN]:
        try:
            keys.append(UUID(text))
        except ValueError:
            continue
    return Session.objects.of(project_of(request)).filter(pk__in=keys, deleted=None)


def _address(request: HttpRequest) -> QueryDict:
    """The query string of the list that the form was on."""
    return QueryDict(request.POST.get("list", "").removeprefix("?").encode("utf-8", "replace").decode()[:2_000])


def _back(request: HttpRequest, **offers: str) -> HttpResponse:
    """To the list as it was, with what can be undone there. Only what the list knows is taken over, so nobody can be
    sent elsewhere."""
    given = _address(request)
    query = Listing.parse(given).address(page=Listing.parse(given).page)
    if offered := {name: value for name, value in offers.items() if value}:
        query += ("&" if len(query) > 1 else "") + urlencode(offered)
    return HttpResponseRedirect(reverse("home") + ("" if query == "?" else query))
