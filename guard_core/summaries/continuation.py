"""Messages that follow a summary and send the user's current request again; and the one of ContextGuard, which asks to
continue.

Source of the latter: specification of ContextGuard, section 6.3; the text is what the recorded traces contain, byte
for byte.
"""

from __future__ import annotations

from guard_core.views import Segment, Synthetic

CONTINUATION, REQUEST_AGAIN = "continuation", "request sent again"  # kinds of synthetic messages

_BEGIN = (
    "[System: The conversation was compacted because it exceeded the context window. "
    "The summary above contains all prior context. "
)
_WITHOUT = f"{_BEGIN}Continue working without asking the user to repeat anything.]"
_BEFORE = f"{_BEGIN}The user's current request is: `"
_AFTER = "`. Continue working on this request without asking the user to repeat anything.]"


def continuation(request: str | None) -> str:
    """The continuation's text; without a request its short form of 187 bytes."""
    return f"{_BEFORE}{request}{_AFTER}" if request else _WITHOUT


def continuation_bytes(request_bytes: int) -> int:
    """UTF-8 bytes of the continuation for a request of so many bytes (0: its short form)."""
    return len(_BEFORE) + request_bytes + len(_AFTER) if request_bytes else len(_WITHOUT)


def repeats_request(segment: Segment) -> bool:
    """Is it a message in which a policy sends the user's request again, word for word: that of the turn in which it
    compacted. The text of a continuation that has it need not be known."""
    if not isinstance(segment, Synthetic):
        return False
    has_request = segment.text is None or segment.text.startswith(_BEFORE)
    return segment.kind == REQUEST_AGAIN or (segment.kind == CONTINUATION and has_request)


def continuation_message(request_bytes: int, request: str | None) -> Synthetic:
    """The synthetic message. `request` None with `request_bytes` above 0: a request of which only the size is known."""
    if not request_bytes:
        return Synthetic(CONTINUATION, len(_WITHOUT), _WITHOUT)
    text = None if request is None else continuation(request)
    return Synthetic(CONTINUATION, continuation_bytes(request_bytes), text)
