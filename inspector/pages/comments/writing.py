"""What changes comments."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from django.db import IntegrityError, transaction
from django.utils import timezone

from inspector.models import Account, ApiKey, Comment, Session
from inspector.models.accounts import LONGEST_NAME
from inspector.pages.shared.comments import COMPACTION, LONGEST_TEXT, PART, CommentPlace
from inspector.storage import loading

MOST_COMMENTS = 1_000  # of a session
MOST_REPLIES = 50  # in a thread


class CommentRefused(Exception):
    """A comment that is not stored. The text is one sentence for a person."""


class Missing(CommentRefused):
    """A comment on a place that the session does not have."""


class Full(CommentRefused):
    """One comment more than a session or a thread may have."""


class CommentConflict(Exception):
    """What was sent before under the same token is another comment. The text is one sentence for a person."""


class CommentWriter(NamedTuple):
    """Who writes: in team mode an account or a program's key. `token` is that of one sending, by which the same one is
    known when it is sent again; "" where it cannot be."""

    name: str
    account: Account | None = None
    key: ApiKey | None = None
    token: str = ""

    @property
    def sent(self) -> str:
        """What is stored of the token."""
        if not self.token:
            return ""
        who = (f"key {self.key.pk}" if self.key else "", f"account {self.account.pk}" if self.account else "")
        return hashlib.sha256("\0".join((*who, self.token)).encode("utf-8", "replace")).hexdigest()


def clean(text: str) -> str:
    """A typed text as it is stored. Raises CommentRefused for an empty or too long one."""
    plain = text.replace("\x00", "").replace("\r\n", "\n").encode("utf-8", "replace").decode().strip()
    if not plain:
        raise CommentRefused("A comment needs a text.")
    if len(plain) > LONGEST_TEXT:
        raise CommentRefused(f"A comment has at most {LONGEST_TEXT:,} characters; this one has {len(plain):,}.")
    return plain


def add(session: Session, place: CommentPlace, text: str, writer: CommentWriter) -> Comment:
    """Begin a thread; the comment that was stored before where the same form is sent again. Raises CommentRefused,
    also for a place that the session does not have, and CommentConflict."""
    plain = clean(text)
    if (earlier := _earlier(session, place, None, plain, writer)) is not None:
        return earlier
    check_place(session, place)
    return _create(session, place, None, plain, writer)


def answer(thread: Comment, text: str, writer: CommentWriter) -> Comment:
    """Answer in a thread, which is open again then; as `add`. Raises CommentRefused and CommentConflict."""
    plain, place = clean(text), CommentPlace(thread.place, thread.number, thread.part)
    if (earlier := _earlier(thread.session, place, thread, plain, writer)) is not None:
        return earlier
    if thread.replies.count() >= MOST_REPLIES:
        raise Full(f"A thread has at most {MOST_REPLIES} replies: start another one.")
    with transaction.atomic():
        row = _create(thread.session, place, thread, plain, writer)
        resolve(thread, "", is_resolved=False)
    return row


def _earlier(
    session: Session, place: CommentPlace, thread: Comment | None, text: str, writer: CommentWriter
) -> Comment | None:
    """What the same sending has stored. Raises CommentConflict where that was another comment."""
    row = Comment.objects.in_session(session).filter(sent=writer.sent).first() if writer.token else None
    if row is None:
        return None
    is_same = row.edited is not None or row.text in (text, "")  # what became of it since does not count
    if not is_same or (row.place, row.number, row.part, row.thread) != (place.kind, place.number, place.part, thread):
        raise CommentConflict("Another comment was sent with this token: each comment needs its own.")
    return row


def _create(session: Session, place: CommentPlace, thread: Comment | None, text: str, writer: CommentWriter) -> Comment:
    comments = Comment.objects.in_session(session)
    if comments.count() >= MOST_COMMENTS:
        raise Full(f"A session has at most {MOST_COMMENTS:,} comments: delete some first.")
    try:
        with transaction.atomic():
            return comments.create(
                place=place.kind,
                number=place.number,
                part=place.part,
                thread=thread,
                account=writer.account,
                key=writer.key,
                author=writer.name[:LONGEST_NAME],
                text=text,
                sent=writer.sent,
            )
    except IntegrityError:  # the same sending, a moment before
        if (earlier := _earlier(session, place, thread, text, writer)) is None:
            raise
        return earlier


def change(comment: Comment, text: str) -> None:
    """Replace the text. Raises CommentRefused."""
    plain = clean(text)
    if plain != comment.text:
        comment.text, comment.edited = plain, timezone.now()
        comment.save(update_fields=["text", "edited"])


def remove(comment: Comment) -> None:
    """Delete a comment; one that others answer loses its text, and goes with the last of them."""
    with transaction.atomic():
        if comment.replies.exists():
            comment.text, comment.edited = "", None
            comment.save(update_fields=["text", "edited"])
            return
        thread = comment.thread
        comment.delete()
        if thread is not None and not thread.text and not thread.replies.exists():
            thread.delete()


def resolve(thread: Comment, by: str, *, is_resolved: bool) -> None:
    """Mark a thread as resolved or as open. One that is so already stays as it is, with who resolved it and when."""
    if (thread.resolved is not None) is is_resolved:
        return
    thread.resolved = timezone.now() if is_resolved else None
    thread.resolved_by = by[:LONGEST_NAME] if is_resolved else ""
    thread.save(update_fields=["resolved", "resolved_by"])


def check_place(session: Session, place: CommentPlace) -> None:
    """Raises Missing for a place that the session does not have."""
    if place.kind == PART:
        event = loading.load_some_events(session, [place.number]).get(place.number)
        if event is None:
            raise Missing(f"There is no message {place.number + 1:,}: the session has {session.events:,}.")
        if place.part >= len(event.parts):
            raise Missing(f"Message {place.number + 1:,} has no part {place.part + 1:,}.")
        return
    what, count = ("compaction", session.compactions) if place.kind == COMPACTION else ("step", session.calls)
    if place.number >= count:
        raise Missing(f"There is no {what} {place.number + 1:,}: the session has {count:,}.")
