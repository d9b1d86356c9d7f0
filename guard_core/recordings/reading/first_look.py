"""A first look at a long recording: what the provider reported for each call, before the file is read in full.

It takes a fraction of a second for 200 MB. It is not the session: lines are taken in the
order of the file, nothing is checked, branches and messages are not distinguished, and nothing is counted. `look_at`
gives the same of a session that was read.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Protocol, runtime_checkable

import msgspec

from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import Session


class FirstLook(msgspec.Struct, frozen=True):
    """Recorded prompt tokens of each call (0: not reported), and the calls before which a compaction is recorded."""

    prompt_tokens: tuple[int, ...]
    compactions: tuple[int, ...] = ()
    model: str = ""
    window: int = 0  # tokens, where the recording has it


def look_at(session: Session) -> FirstLook:
    """What the provider reported for each call of a session."""
    ats = [call.at for call in session.calls]
    cuts = (bisect_left(ats, compaction.at) for compaction in session.compactions if compaction.kind != "edit")
    compactions = tuple(sorted({step for step in cuts if step < len(ats)}))
    tokens = tuple(call.prompt_tokens or 0 for call in session.calls)
    return FirstLook(tokens, compactions, session.model, session.window.value if session.window else 0)


@runtime_checkable
class GivesFirstLook(Protocol):
    """A format that can give a first look; None: of this file it cannot."""

    def first_look(self, source: ByteSource) -> FirstLook | None: ...
