"""The comments of a session: all of them or those of one place, and writing, editing, resolving and deleting them."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from inspector.accounts import audit
from inspector.models import Comment, Session
from inspector.models.accounts import LONGEST_NAME
from inspector.pages.comments import writing
from inspector.pages.comments.writing import CommentRefused, CommentWriter
from inspector.pages.errors.views import plain
from inspector.pages.session.frame import SIDES, frame
from inspector.pages.shared import comments
from inspector.pages.shared.comments import NAME_COOKIE, CommentPlace, named_place, place_of
from inspector.pages.shared.project import project_of
from inspector.replays.choice import NAMES, parse_choice
from inspector.replays.own_policy import own_policy

LONGEST_TOKEN = 100  # characters
COOKIE_SECONDS = 365 * 24 * 3600
SHOW = {"": "All", "open": "Open", "resolved": "Resolved"}


@require_http_methods(["GET", "HEAD", "POST"])
def session_comments(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """All comments, or those of the place that the address names. A POST begins a thread, or answers in one."""
    if request.method == "POST":
        return _write(request, session_id)
    return _page(request, session_id, named_place(request.GET.dict()))


def _page(
    request: HttpRequest, session_id: UUID, place: CommentPlace | None, status: int = 200, **more: Any
) -> HttpResponse:
    page, asked = frame(request, session_id), _here(request)
    if asked is not None:  # what is wrong is said where the form was
        place = named_place({name: str(value) for name, value in asked.items()})
    elif place is not None and request.method != "POST" and (missing := _missing(page.row, place)):
        return plain(request, 404, "There is no such place", missing, page.paths["comments"])
    show = request.GET.get("show", "") if asked is None else asked["show"]
    show = show if show in SHOW else ""
    if place is not None:
        listed = comments.panel(request, page.row, place, page.choice)
    else:
        listed = {
            **comments.form(request, page.row, page.choice),
            "threads": comments.threads(request, page.row, page.choice, _shown(show)),
        }
    path = page.paths["comments"]
    here = "?" + urlencode({"show": show, **({} if place is None else place.fields)})
    part_url = ""
    if place is not None and place.kind == comments.PART:
        part_url = reverse("message_part", args=[page.row.pk, *place.fields.values()]) + "?as=raw"
    context = {
        **page.context("comments"),
        "comments": {**listed, "names_places": place is None, "here": here, **more},
        "place": place,
        "place_url": "" if place is None or place.kind == comments.PART else place.url(page.row.pk, page.choice),
        "part_url": part_url,
        "all_url": path + page.choice.query(),
        "tabs": [
            {"label": label, "url": path + page.choice.query(show=name), "current": name == show}
            for name, label in SHOW.items()
        ],
    }
    return render(request, "inspector/comments/index.html", context, status=status)


def _missing(row: Session, place: CommentPlace) -> str:
    """Says that the session does not have a place, else "". A place with comments is there: a session that was read
    again may lack it by now."""
    if comments.counts(row)[place]:
        return ""
    try:
        writing.check_place(row, place)
    except writing.Missing as error:
        return str(error)
    return ""


def _shown(show: str) -> Q:
    """The comments of all threads, of the open or of the resolved ones."""
    if not show:
        return Q()
    is_open = show == "open"
    return Q(thread=None, resolved__isnull=is_open) | Q(thread__isnull=False, thread__resolved__isnull=is_open)


def _write(request: HttpRequest, session_id: UUID) -> HttpResponse:
    session, text = _session(request, session_id), request.POST.get("text", "")
    author, account = _author(request), getattr(request, "account", None)
    place, thread = named_place(request.POST.dict()), _thread(request, session)
    writer = CommentWriter(author, account, token=_token(request, text, place, thread))
    try:
        if thread is not None:
            place = place_of(thread)
            row = writing.answer(thread, text, writer)
        elif place is not None:
            row = writing.add(session, place, text, writer)
        else:
            raise CommentRefused("A comment belongs to a step, a compaction or a part of a message: name one.")
    except CommentRefused as error:
        typed = {"error": str(error), "typed": text, "answers": thread.pk if thread else None}
        return _page(request, session_id, place, 422, **typed)
    response = _to(request, session, row)
    if account is None:
        response.set_cookie(NAME_COOKIE, quote(author), max_age=COOKIE_SECONDS, httponly=True, samesite="Lax")
    return response


def _token(request: HttpRequest, text: str, place: CommentPlace | None, thread: Comment | None) -> str:
    """What the same form has that is sent twice: by a second click, or because its page is loaded again. With another
    text, the form of a page to which one went back is another sending."""
    given = request.POST.get("token", "")[:LONGEST_TOKEN]
    return given and "\0".join((given, text, str(place), str(thread.pk if thread else "")))


def _thread(request: HttpRequest, session: Session) -> Comment | None:
    """The thread that a form answers; None where it begins one."""
    given = request.POST.get("thread", "")
    if not given:
        return None
    try:
        key = UUID(given)
    except ValueError as error:
        raise Http404("There is no such thread.") from error
    return get_object_or_404(Comment.objects.in_session(session), pk=key, thread=None)


def _author(request: HttpRequest) -> str:
    """The account's name; in local mode what was typed."""
    if getattr(request, "account", None) is not None:
        return comments.name_of(request)
    typed = " ".join(request.POST.get("name", "").split())[:LONGEST_NAME]
    return typed if typed.isprintable() and typed else comments.LOCAL_NAME


@require_safe
def comment(request: HttpRequest, session_id: UUID, pk: UUID) -> HttpResponse:
    """The permalink of a comment: its place, with the settings of the address."""
    session = _session(request, session_id)
    return _to(request, session, _comment(session, pk))


@require_POST
def edit(request: HttpRequest, session_id: UUID, pk: UUID) -> HttpResponse:
    """Give one's own comment another text."""
    session = _session(request, session_id)
    row = _comment(session, pk)
    if not comments.is_own(request, row):
        raise PermissionDenied
    text = request.POST.get("text", "")
    try:
        writing.change(row, text)
    except CommentRefused as error:
        typed = text if text.strip() else row.text  # what is saved, where nothing was typed
        return _page(request, session_id, place_of(row), 422, error=str(error), typed=typed, edits=row.pk)
    return _to(request, session, row)


@require_POST
def delete(request: HttpRequest, session_id: UUID, pk: UUID) -> HttpResponse:
    """Delete a comment for good: one's own, or as an owner of the project."""
    session = _session(request, session_id)
    row = _comment(session, pk)
    if not comments.may_delete(request, row):
        raise PermissionDenied
    place = place_of(row)
    audit.note(request, "comment deleted", f"{session.pk}: {place.words.lower()}, by {row.author}")
    writing.remove(row)
    return HttpResponseRedirect(f"{_url(request, session, place)}#comments")


@require_POST
def resolve(request: HttpRequest, session_id: UUID, pk: UUID) -> HttpResponse:
    """Call a thread resolved, or open again."""
    session = _session(request, session_id)
    row = get_object_or_404(Comment.objects.in_session(session), pk=pk, thread=None)
    writing.resolve(row, comments.name_of(request), is_resolved=request.POST.get("resolved") == "1")
    return _to(request, session, row)


def _session(request: HttpRequest, session_id: UUID) -> Session:
    return get_object_or_404(Session.objects.of(project_of(request)), pk=session_id, deleted=None)


def _comment(session: Session, pk: UUID) -> Comment:
    """A comment that was not deleted."""
    return get_object_or_404(Comment.objects.in_session(session).exclude(text=""), pk=pk)


def _to(request: HttpRequest, session: Session, row: Comment) -> HttpResponse:
    """To the comment, where it is shown."""
    return HttpResponseRedirect(f"{_url(request, session, place_of(row))}#comment-{row.pk}")


def _url(request: HttpRequest, session: Session, place: CommentPlace) -> str:
    """The page of a place under the settings that the page of the form had, or that the address of a permalink has."""
    query = request.GET
    if request.method == "POST":
        given = request.POST.get("settings", "")[:2_000].removeprefix("?")
        query = QueryDict(given.encode("utf-8", "replace").decode())
    side = query.get("side", "")
    choice, _ = parse_choice({name: query.get(name, "") for name in NAMES}, own_policy(session))
    if (here := _here(request)) is not None:
        return reverse("session_comments", args=[session.pk]) + choice.query(**here)
    return place.url(session.pk, choice, side if side in SIDES else "")


def _here(request: HttpRequest) -> dict[str, Any] | None:
    """The parameters of the list of comments that a form was on; None for the form of another page."""
    given = request.POST.get("here", "")[:LONGEST_TOKEN]
    if not given.startswith("?"):
        return None
    query = QueryDict(given[1:].encode("utf-8", "replace").decode())
    show, place = query.get("show", ""), named_place(query.dict())
    return {"show": show if show in SHOW else "", **({} if place is None else place.fields)}
