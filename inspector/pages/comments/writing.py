"""What changes comments."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from inspector.models import Account, Comment, Session
from inspector.models.accounts import LONGEST_NAME
from inspector.pages.shared.comments import COMPACTION, LONGEST_TEXT, PART, Place
from inspector.storage import convert

MOST_COMMENTS = 1_000  # of a session
MOST_REPLIES = 50  # in a thread


class Refused(Exception):
    """A comment that is not stored. The text is one sentence for a person."""


def clean(text: str) -> str:
    """A typed text as it is stored. Raises Refused for an empty or too long one."""
    plain = text.replace("\x00", "").replace("\r\n", "\n").encode("utf-8", "replace").decode().strip()
    if not plain:
        raise Refused("A comment needs a text.")
    if len(plain) > LONGEST_TEXT:
        raise Refused(f"A comment has at most {LONGEST_TEXT:,} characters; this one has {len(plain):,}.")
    return plain


def add(session: Session, place: Place, text: str, author: str, account: Account | None) -> Comment:
    """Begin a thread. Raises Refused, also for a place that the session does not have."""
    plain = clean(text)
    _check_place(session, place)
    return _create(session, place, None, plain, author, account)


def answer(thread: Comment, text: str, author: str, account: Account | None) -> Comment:
    """Answer in a thread, which is open again then. Raises Refused."""
    plain = clean(text)
    if thread.replies.count() >= MOST_REPLIES:
        raise Refused(f"A thread has at most {MOST_REPLIES} answers: begin another one.")
    place = Place(thread.place, thread.number, thread.part)
    with transaction.atomic():
        row = _create(thread.session, place, thread, plain, author, account)
        resolve(thread, "", is_resolved=False)
    return row


def _create(
    session: Session, place: Place, thread: Comment | None, text: str, author: str, account: Account | None
) -> Comment:
    comments = Comment.objects.in_session(session)
    if comments.count() >= MOST_COMMENTS:
        raise Refused(f"A session has at most {MOST_COMMENTS:,} comments: delete some first.")
    return comments.create(
        place=place.kind,
        number=place.number,
        part=place.part,
        thread=thread,
        account=account,
        author=author[:LONGEST_NAME],
        text=text,
    )


def change(comment: Comment, text: str) -> None:
    """Replace the text. Raises Refused."""
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
    """Call a thread resolved, or open again."""
    thread.resolved = timezone.now() if is_resolved else None
    thread.resolved_by = by[:LONGEST_NAME] if is_resolved else ""
    thread.save(update_fields=["resolved", "resolved_by"])


def _check_place(session: Session, place: Place) -> None:
    if place.kind == PART:
        event = convert.load_some_events(session, [place.number]).get(place.number)
        if event is None:
            raise Refused(f"There is no message {place.number + 1:,}: the session has {session.events:,}.")
        if place.part >= len(event.parts):
            raise Refused(f"Message {place.number + 1:,} has no part {place.part + 1:,}.")
        return
    what, count = ("compaction", session.compactions) if place.kind == COMPACTION else ("step", session.calls)
    if place.number >= count:
        raise Refused(f"There is no {what} {place.number + 1:,}: the session has {count:,}.")
