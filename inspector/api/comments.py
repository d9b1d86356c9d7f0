"""Comments of a session for programs: read with the scope "read", written, resolved and deleted with "comment"."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Router, Status
from ninja.errors import HttpError
from pydantic import ConfigDict, Field

from inspector.accounts import audit
from inspector.api import schemas
from inspector.api.asked import CHANGE_ERRORS, ERRORS, session_in
from inspector.models import Comment, Session
from inspector.pages.comments import writing
from inspector.pages.comments.writing import CommentConflict, CommentRefused, CommentWriter, Full, Missing
from inspector.pages.shared import comments as shown
from inspector.pages.shared.comments import LONGEST_TEXT, CommentPlace, place_of

router = Router()
LONGEST_TOKEN = 200  # characters
HIGHEST = 999_999_999  # as on pages
CREATED, DELETED = 201, 204
Number = Annotated[int, Field(ge=0, le=HIGHEST)]
NOT_BLANK = r"[^\s\x00\x1c-\x1f\x85]"  # writing.clean says it in words
PLACE_OR_THREAD: list[Any] = [
    {"required": ["place"], "properties": {"place": {"type": "string"}}},
    {"required": ["thread"], "properties": {"thread": {"type": "string"}}},
]


class NewComment(schemas.Strict):
    """What begins a thread at a place, or answers in `thread`, whose place it then has. The same `token` of the same
    sender is stored once: with it a request can be sent again after an answer that was lost."""

    model_config = ConfigDict(json_schema_extra={"anyOf": PLACE_OR_THREAD})

    text: Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT, json_schema_extra={"pattern": NOT_BLANK})]
    place: Literal["step", "compaction", "part"] | None = None
    number: Number = 0
    part: Number = 0
    thread: UUID | None = None
    token: Annotated[str, Field(max_length=LONGEST_TOKEN)] = ""


@router.get(
    "/sessions/{session_id}/comments",
    response={200: schemas.CommentList, **ERRORS},
    summary="Comments of a session",
    url_name="comments",
)
def comments(request: HttpRequest, session_id: UUID) -> dict[str, Any]:
    """What was written first comes first; a comment whose text was deleted stays while others answer it."""
    session = session_in(request, session_id)
    return {"comments": [_row(row) for row in Comment.objects.in_session(session)]}


@router.post(
    "/sessions/{session_id}/comments",
    response={200: schemas.Comment, CREATED: schemas.Comment, **CHANGE_ERRORS, 409: schemas.Problem},
    summary="Comment on a place",
    url_name="comments",
)
def write_comment(request: HttpRequest, session_id: UUID, new: NewComment) -> Status[dict[str, Any]]:
    """201 with the new comment; 200 with the one that was stored before under the same token; 404 where the session has
    no such place or thread; 409 where the token is another comment's, or the session or thread has all it may have."""
    session = session_in(request, session_id)
    writer = _writer(request, new.token)
    is_known = bool(new.token) and Comment.objects.in_session(session).filter(sent=writer.sent).exists()
    try:
        row = _written(session, new, writer)
    except Missing as error:
        raise HttpError(404, str(error)) from error
    except (Full, CommentConflict) as error:
        raise HttpError(409, str(error)) from error
    except CommentRefused as error:
        raise HttpError(400, str(error)) from error
    return Status(200 if is_known else CREATED, _row(row))


@router.delete(
    "/sessions/{session_id}/comments/{comment_id}",
    response={DELETED: None, **CHANGE_ERRORS},
    summary="Delete a comment",
    url_name="delete_comment",
)
def delete_comment(request: HttpRequest, session_id: UUID, comment_id: UUID) -> HttpResponse:
    """One's own, as an owner of the project any. One that others answer keeps its place without its text."""
    session = session_in(request, session_id)
    row = Comment.objects.in_session(session).exclude(text="").filter(pk=comment_id).first()
    if row is None:
        raise HttpError(404, "There is no such comment.")
    if not shown.may_delete(request, row):
        raise HttpError(403, "Only the author of a comment or an owner of the project can delete it.")
    audit.note(request, "comment deleted", f"{session.pk}: {place_of(row).words.lower()}, by {row.author}")
    writing.remove(row)
    return HttpResponse(status=DELETED)


@router.put(
    "/sessions/{session_id}/comments/{comment_id}/resolved",
    response={200: schemas.Comment, **CHANGE_ERRORS},
    summary="Resolve a thread",
    url_name="resolve_comment",
)
def resolve_thread(request: HttpRequest, session_id: UUID, comment_id: UUID) -> dict[str, Any]:
    """The thread that this comment begins. One that is resolved already keeps who resolved it, and when."""
    return _resolve(request, session_id, comment_id, is_resolved=True)


@router.delete(
    "/sessions/{session_id}/comments/{comment_id}/resolved",
    response={200: schemas.Comment, **CHANGE_ERRORS},
    summary="Reopen a thread",
    url_name="resolve_comment",
)
def reopen_thread(request: HttpRequest, session_id: UUID, comment_id: UUID) -> dict[str, Any]:
    """The thread that this comment begins. One that is open stays so."""
    return _resolve(request, session_id, comment_id, is_resolved=False)


def _resolve(request: HttpRequest, session_id: UUID, comment_id: UUID, *, is_resolved: bool) -> dict[str, Any]:
    thread = _thread(session_in(request, session_id), comment_id)
    writing.resolve(thread, _writer(request).name, is_resolved=is_resolved)
    return _row(thread)


def _thread(session: Session, key: UUID) -> Comment:
    """The comment that begins a thread. Raises HttpError."""
    row = Comment.objects.in_session(session).filter(pk=key, thread=None).first()
    if row is None:
        raise HttpError(404, "There is no such thread.")
    return row


def _writer(request: Any, token: str = "") -> CommentWriter:
    key = getattr(request, "key", None)
    name = shown.name_of(request) if key is None else audit.actor_of(request)
    return CommentWriter(name, getattr(request, "account", None), key, token)


def _written(session: Session, new: NewComment, writer: CommentWriter) -> Comment:
    if new.thread is not None:
        return writing.answer(_thread(session, new.thread), new.text, writer)
    if new.place is None:
        raise CommentRefused("A comment must name its place or the thread it replies to.")
    place = CommentPlace(new.place, new.number, new.part if new.place == shown.PART else 0)
    return writing.add(session, place, new.text, writer)


def _row(row: Comment) -> dict[str, Any]:
    plain = ("place", "number", "part", "author", "text", "created", "edited", "resolved", "resolved_by")
    return {
        "id": str(row.pk),
        "thread": None if row.thread_id is None else str(row.thread_id),
        **{name: getattr(row, name) for name in plain},
        "url": reverse("comment", args=[row.session_id, row.pk]),
    }
