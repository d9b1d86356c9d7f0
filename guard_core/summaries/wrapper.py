"""The message that carries a summary: its begin and end marker.

Source: specification of ContextGuard, section 6.2. The markers are what the agent's framework recognises, so they are
exact.
"""

from __future__ import annotations

from functools import cache

from guard_core import defaults
from guard_core.events import utf8_bytes
from guard_core.summaries.base import Summary
from guard_core.views import Synthetic

BEGIN = "[Previous conversation summary]"


def wrap(text: str, dash: str = defaults.HYPHEN) -> str:
    """A summary between its markers."""
    return f"{BEGIN}\n{text}{_end(dash)}"


def wrapped_bytes(size: int, dash: str = defaults.HYPHEN) -> int:
    """UTF-8 bytes of the wrapped form of a summary of `size` bytes."""
    return len(BEGIN) + 1 + size + _end_bytes(dash)


def summary_message(summary: Summary, dash: str = defaults.HYPHEN) -> Synthetic:
    """The synthetic message that takes the place of everything a summary replaces."""
    text = None if summary.text is None else wrap(summary.text, dash)
    return Synthetic("summary", wrapped_bytes(summary.bytes, dash), text)


@cache
def _end_bytes(dash: str) -> int:
    return utf8_bytes(_end(dash))


def _end(dash: str) -> str:
    return f"\n[End of summary {dash} conversation continues below]"
