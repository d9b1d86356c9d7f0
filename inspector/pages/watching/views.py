"""The folders of this machine that the server watches, in local mode alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from inspector.models import Import, Project, WatchedPlace
from inspector.pages.shared.htmx import render_part
from inspector.pages.shared.import_answer import address_of
from inspector.pages.shared.project import project_of
from inspector.pages.watching.choosing import NotWatched, choose
from inspector.watching import child
from inspector.watching.files import known_folders
from inspector.watching.offered import is_offered

KEY = "[0-9a-f-]{36}"
SENT = re.compile(rf"^(?P<name>.*): https?://[^/\s]+(?P<path>/s/{KEY}/|/imports/(?P<job>{KEY})/)$")


class WatcherLine(NamedTuple):
    """One line that the watching process printed; with an address where it names a session or an import."""

    text: str
    path: str = ""


class WatchedRow(NamedTuple):
    """One watched place."""

    pk: int
    path: str
    is_there: bool


@require_safe
def watching(request: HttpRequest) -> HttpResponse:
    """The places, what was sent last, and those of known agents; its last lines are asked for every two seconds."""
    return _page(request)


@require_POST
def watching_add(request: HttpRequest) -> HttpResponse:
    """Watch a folder or file. What cannot be watched comes back with the reason."""
    _refuse_elsewhere()
    typed = request.POST.get("path", "")
    try:
        choose(project_of(request), typed)
    except NotWatched as error:
        return _page(request, {"typed": typed[:1000], "error": str(error)}, 422)
    return HttpResponseRedirect(reverse("watching"))


@require_POST
def watching_remove(request: HttpRequest, place: int) -> HttpResponse:
    """Watch a place no longer; its sessions stay."""
    _refuse_elsewhere()
    WatchedPlace.objects.of(project_of(request)).filter(pk=place).delete()
    return HttpResponseRedirect(reverse("watching"))


def _refuse_elsewhere() -> None:
    if not is_offered():
        raise Http404


def _page(request: HttpRequest, more: dict[str, Any] | None = None, status: int = 200) -> HttpResponse:
    _refuse_elsewhere()
    watch = child.of_this_server()
    stored = list(WatchedPlace.objects.of(project_of(request)).order_by("pk"))
    paths = {row.path for row in stored}
    context = {
        "places": [WatchedRow(row.pk, row.path, Path(row.path).exists()) for row in stored],
        "known": [str(path) for path in known_folders() if str(path.resolve()) not in paths],
        "is_server": watch is not None,
        "lines": [line_of(project_of(request), text) for text in reversed(watch.lines)] if watch is not None else [],
        "home": str(Path.home()),
        **(more or {}),
    }
    part, page = "inspector/watching/_lines.html", "inspector/watching/page.html"
    return render_part(request, "watch-lines", part, page, context, status)


def line_of(project: Project, text: str) -> WatcherLine:
    """A line with the session of the file that was sent; where that was still read when the server answered, with what
    has become of it since."""
    match = SENT.match(text)
    if match is None:
        return WatcherLine(text)
    job = Import.objects.of(project).filter(pk=match["job"]).first() if match["job"] else None
    return WatcherLine(match["name"], match["path"] if job is None else address_of(job))
