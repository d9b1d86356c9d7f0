"""Comments of a session as its pages show them: how many are where, and the threads of a place."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse

from inspector.accounts import access
from inspector.models import AccountRole, Comment, Session
from inspector.models.accounts import LONGEST_NAME
from inspector.models.prepared import Select, Slot
from inspector.pages.shared.numbers import (
    compaction_index,
    compaction_number,
    message_index,
    message_number,
    part_index,
    part_number,
    step_index,
    step_number,
)
from inspector.pages.shared.parts import visible
from inspector.pages.shared.share_fields import MOST_REMARKS
from inspector.replays.choice import Choice

LONGEST_TEXT = 4_000  # characters of a comment
NAME_COOKIE = "comment-name"  # in local mode: the name that was typed last in this browser, percent-encoded
LOCAL_NAME = "local"
TOKEN_BYTES = 16  # of a form, so that one that is sent twice is stored once
STEP, COMPACTION, PART = Comment.Place.STEP, Comment.Place.COMPACTION, Comment.Place.PART
_PLACE = re.compile(r"(?i)\b(step|compaction)\s+#?([0-9]{1,3}(?:,[0-9]{3}){1,2}|[0-9]{1,9})\b")


@dataclass(frozen=True)
class CommentPlace:
    """Where a comment is; its numbers count from 0, as in rows, while addresses and words count from 1."""

    kind: str
    number: int
    part: int = 0

    @property
    def words(self) -> str:
        """The place as a person would call it."""
        if self.kind == PART:
            return f"Message {message_number(self.number):,}, part {part_number(self.part):,}"
        if self.kind == COMPACTION:
            return f"Compaction {compaction_number(self.number):,}"
        return f"Step {step_number(self.number):,}"

    @property
    def fields(self) -> dict[str, int]:
        """The place as addresses and forms name it."""
        if self.kind == PART:
            return {"message": message_number(self.number), "part": part_number(self.part)}
        if self.kind == COMPACTION:
            return {"compaction": compaction_number(self.number)}
        return {"step": step_number(self.number)}

    def url(self, session_id: object, choice: Choice, side: str = "") -> str:
        """The page that shows it, with the settings of a replay kept; of a step, also the side."""
        if self.kind == PART:
            return reverse("session_comments", args=[session_id]) + choice.query(**self.fields)
        if self.kind == COMPACTION:
            path = reverse("compaction", args=[session_id, compaction_number(self.number)])
            return path + choice.query(side="recorded")
        return reverse("session_steps", args=[session_id]) + choice.query(at=step_number(self.number), side=side)


def place_of(comment: Comment) -> CommentPlace:
    """Where a comment is."""
    return CommentPlace(comment.place, comment.number, comment.part)


def named_place(given: Mapping[str, str]) -> CommentPlace | None:
    """The place that an address or a form names; None where it names none that a session could have."""
    numbers = {name: _whole(given.get(name, "")) for name in ("step", "compaction", "message", "part")}
    if (message := numbers["message"]) is not None:
        return CommentPlace(PART, message_index(message), part_index(numbers["part"] or 1))
    if (compaction := numbers["compaction"]) is not None:
        return CommentPlace(COMPACTION, compaction_index(compaction))
    if (step := numbers["step"]) is not None:
        return CommentPlace(STEP, step_index(step))
    return None


def _whole(text: str) -> int | None:
    """A number from 1 on of at most nine digits."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 and int(text) else None


def counts(session: Session) -> Counter[CommentPlace]:
    """How many comments are at each place; those that were deleted are left out."""
    return Counter(CommentPlace(*values) for values in _PLACES.all(session=session.pk))


_PLACES = Select(
    Comment.objects.in_session(Slot(Comment, "session")).exclude(text="").values_list("place", "number", "part")
)


def may_write(request: HttpRequest) -> bool:
    """May whoever asks comment here."""
    return access.allows(request, "session_comments")


def is_own(request: Any, comment: Comment) -> bool:
    """Did whoever asks write it: a program's key, or an account. In local mode everyone at this machine is one."""
    key, account = getattr(request, "key", None), getattr(request, "account", None)
    if key is not None:
        return bool(comment.key_id == key.pk)
    return account is None or comment.account_id == account.pk


def may_delete(request: Any, comment: Comment) -> bool:
    """One's own, and an owner of the project any."""
    membership = getattr(request, "membership", None)
    return is_own(request, comment) or (membership is not None and membership.allows(AccountRole.OWNER))


def name_of(request: Any) -> str:
    """Under which name whoever asks comments."""
    account = getattr(request, "account", None)
    if account is not None:
        return str(account.name)
    typed = " ".join(unquote(request.COOKIES.get(NAME_COOKIE, "")).split())[:LONGEST_NAME]
    return typed if typed and typed.isprintable() else LOCAL_NAME


def panel(
    request: HttpRequest, session: Session, place: CommentPlace, choice: Choice, side: str = ""
) -> dict[str, Any]:
    """What `comments/_threads.html` shows of one place: its threads, and the form of a new one. `side` is that of the
    page, which is shown again once a form was sent."""
    at = Q(place=place.kind, number=place.number, part=place.part)
    return {
        **form(request, session, choice, side),
        "place": place,
        "fields": place.fields.items(),
        "threads": threads(request, session, choice, at),
    }


def form(request: HttpRequest, session: Session, choice: Choice, side: str = "") -> dict[str, Any]:
    """What the forms of comments need, wherever they are."""
    return {
        "session_id": session.pk,
        "url": reverse("session_comments", args=[session.pk]),
        "may_write": may_write(request),
        "asks_name": getattr(request, "account", None) is None,
        "name": name_of(request),
        "settings": choice.query(side=side),
        "token": secrets.token_urlsafe(TOKEN_BYTES),
        "longest": LONGEST_TEXT,
        "longest_name": LONGEST_NAME,
    }


def threads(request: HttpRequest, session: Session, choice: Choice, at: Q | None = None) -> list[dict[str, Any]]:
    """The threads at some places, or all, in the order of what was written first; answers below what they answer."""
    rows = list(Comment.objects.in_session(session).filter(at or Q()))
    replies: dict[object, list[Comment]] = {}
    for row in rows:
        replies.setdefault(row.thread_id, []).append(row)
    return [
        {
            "row": first,
            "place": place_of(first),
            "url": place_of(first).url(session.pk, choice),
            "comments": [_shown(request, session, choice, row) for row in (first, *replies.get(first.pk, ()))],
        }
        for first in replies.get(None, ())
    ]


def _shown(request: HttpRequest, session: Session, choice: Choice, row: Comment) -> dict[str, Any]:
    return {
        "row": row,
        "author": visible(row.author),
        "pieces": list(pieces(row.text, session, choice)),
        "url": reverse("comment", args=[session.pk, row.pk]),
        "is_own": bool(row.text) and is_own(request, row),
        "may_delete": bool(row.text) and may_delete(request, row),
    }


def as_remarks(session: Session) -> list[str]:
    """The first comments of the open threads as lines of the form of a share: "step 12: …" where a step has them."""
    first = Comment.objects.in_session(session).filter(thread=None, resolved=None).exclude(text="")[:MOST_REMARKS]
    remarks = []
    for row in first:
        place = " ".join(f"{name} {number}" for name, number in place_of(row).fields.items())
        remarks.append(f"{place}: {' '.join(row.text.split())}")
    return remarks


def pieces(text: str, session: Session, choice: Choice) -> Iterable[dict[str, str]]:
    """A text in pieces; "step 12" and "compaction 2" carry the address of that place, where the session has it."""
    end = 0
    for match in _PLACE.finditer(text):
        kind, number = match[1].lower(), int(match[2].replace(",", ""))
        if not 1 <= number <= (session.calls if kind == STEP else session.compactions):
            continue
        yield {"text": visible(text[end : match.start()])}
        yield {"text": match[0], "url": CommentPlace(kind, number - 1).url(session.pk, choice)}
        end = match.end()
    yield {"text": visible(text[end:])}
