"""A first look at a long recording: what the provider reported for each call, before the file is read in full.

It takes a fraction of a second for 200 MB. It is not the session: lines are taken in the
order of the file, nothing is checked, branches and messages are not told apart, and nothing is counted.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import msgspec

from guard_core.recordings.source import Source


class FirstLook(msgspec.Struct, frozen=True):
    """Recorded prompt tokens of each call (0: not reported), and the calls before which a compaction is recorded."""

    prompt_tokens: tuple[int, ...]
    compactions: tuple[int, ...] = ()
    model: str = ""


@runtime_checkable
class Looks(Protocol):
    """A format that can give a first look; None: of this file it cannot."""

    def first_look(self, source: Source) -> FirstLook | None: ...
