"""The message that follows a summary: it names the user's current request and asks to continue.

Source: specification of ContextGuard, section 6.3; the text is what the recorded traces contain, byte for byte.
"""

from __future__ import annotations

from guard_core.views import Synthetic

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


def names_request(message: Synthetic) -> bool:
    """Is it a continuation that has the user's request, whose text need not be known."""
    return message.kind == "continuation" and (message.text is None or message.text.startswith(_BEFORE))


def continuation_message(request_bytes: int, request: str | None) -> Synthetic:
    """The synthetic message. `request` None with `request_bytes` above 0: a request of which only the size is known."""
    if not request_bytes:
        return Synthetic("continuation", len(_WITHOUT), _WITHOUT)
    text = None if request is None else continuation(request)
    return Synthetic("continuation", continuation_bytes(request_bytes), text)
