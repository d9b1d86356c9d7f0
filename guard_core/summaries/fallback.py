"""The mechanical summary, made when the summariser fails: the beginning of every text.

Source: specification of ContextGuard, section 7. The cut is made at a byte, which may split a character: the bytes
here are exact, the text has a replacement character there.
"""

from __future__ import annotations

from collections.abc import Iterable

from guard_core import defaults
from guard_core.errors import SettingError
from guard_core.events import Event, ReasoningPart, TextPart, utf8_bytes
from guard_core.ledger import Ledger
from guard_core.requests import materialise
from guard_core.sessions import Session
from guard_core.summaries.base import Summary
from guard_core.views import Span, Synthetic, View

SEPARATOR = "\n\n---\n\n"
_USER = len("user")


def fallback_summary(
    view: View,
    ledger: Ledger,
    previous: Summary,
    *,
    excerpt: int = defaults.FALLBACK_EXCERPT,
    session: Session | None = None,
) -> Summary:
    """The mechanical summary of a view: with a session its text, without one its size from the ledger's prefix sums."""
    if session is not None and (previous.text is not None or not previous.bytes):
        messages = materialise(view, session)
        data = fallback_bytes(((event.role.value, texts(event)) for event in messages), previous.text or "", excerpt)
        return Summary(len(data), data.decode("utf-8", "replace"))
    if excerpt != defaults.FALLBACK_EXCERPT:
        raise SettingError(f"fallback_excerpt other than {defaults.FALLBACK_EXCERPT} needs the texts of the session")
    size = sum(_segment_size(segment, ledger) for segment in view)
    return Summary(size + (previous.bytes + len(SEPARATOR) if previous.bytes else 0))


def _segment_size(segment: object, ledger: Ledger) -> int:
    """Bytes of the lines that a segment has in the mechanical summary."""
    if isinstance(segment, Synthetic):
        return line_size(_USER, segment.bytes)
    assert isinstance(segment, Span), "only the log and synthetic messages are summarised"
    prefix = ledger.prefix("fallback_bytes")
    return int(prefix[segment.stop] - prefix[segment.start])


def line_size(role: int, size: int, excerpt: int = defaults.FALLBACK_EXCERPT) -> int:
    """Bytes that one text of `size` bytes adds, its role having `role` bytes."""
    return role + 2 + min(size, excerpt) + (3 if size > excerpt else 0) + 1 if size else 0


def fallback_bytes(messages: Iterable[tuple[str, Iterable[str]]], previous: str, excerpt: int) -> bytes:
    """The mechanical summary of (role, texts) messages, as bytes."""
    head = _encode(previous + SEPARATOR) if previous else b""
    lines = (_line(role or "unknown", text, excerpt) for role, texts in messages for text in texts if text)
    return head + b"".join(lines)


def texts(event: Event) -> list[str]:
    """The texts of an event that a mechanical summary takes."""
    return [part.text for part in event.parts if isinstance(part, TextPart | ReasoningPart)]


def _line(role: str, text: str, excerpt: int) -> bytes:
    """A line whose text is cut after so many bytes, perhaps within a character."""
    data = _encode(text)
    return _encode(f"{role}: ") + data[:excerpt] + (b"..." if len(data) > excerpt else b"") + b"\n"


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def without_text(messages: int) -> Summary:
    """What replaces an empty mechanical summary in profiles that do so."""
    text = f"{messages} messages without text (tool calls, tool results or media) were left out here."
    return Summary(utf8_bytes(text), text)
