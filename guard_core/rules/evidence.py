"""What one stretch of a session proves of its agent's threshold, in few numbers: what is joined over many sessions."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

import msgspec

from guard_core.rules.base import OwnRule, Stretch
from guard_core.rules.inference import CheckEvidence


class Cause(StrEnum):
    """Why a compaction was made, as far as the recording says."""

    AUTOMATIC = "automatic"  # at a check, as the file says
    UNSTATED = "trigger not recorded"  # at a check; a person may have asked for it
    MANUAL = "manual"
    REFUSED = "request refused"  # after the provider refused a request, whatever the threshold
    UNPROVEN = "no count"  # automatic as the file says, but at no check of the rule, or without a count
    UNKNOWN = "trigger not recorded, no count"  # the same without that the file says so
    SLIDING = "sliding window"  # a move of a window that slides by design, whatever the count


UNSAID = (Cause.UNSTATED, Cause.UNKNOWN)  # of these the file does not say what triggered them
EVIDENCE = (Cause.AUTOMATIC, Cause.UNSTATED)  # these compactions bound a threshold


def automatic(counts: Mapping[Cause, int]) -> int:
    """How many compactions, counted by cause, were made by an agent itself at a check or after a refused request, as
    the file says."""
    return sum(counts.get(cause, 0) for cause in (Cause.AUTOMATIC, Cause.REFUSED, Cause.UNPROVEN))


class CompactionCheck(NamedTuple):
    """A compaction at the check before call `step` (from 0), at a count of `tokens` (None: not known).

    `passed` is the largest count since the compaction before it at which the agent did not compact, 0 where there is
    none. `time`: seconds since the epoch, None where the file has none.
    """

    step: int
    tokens: int | None
    passed: int
    cause: Cause
    time: float | None = None


class StretchEvidence(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The evidence of one stretch. `agent` is who wrote the recording, as people call it.

    `rule` is None where the agent's rule is not known; then the counts are prompts. `passed` is the check with the
    largest count at which the agent did not compact. `auto` are the compactions that no person asked for, as far as the
    file says, `comparable` of them can be compared with the rule, and `agrees` fit it. `missed` are the checks at which
    the rule fires and the agent did not compact. `gc=False`, as of the rules in it: there are no cycles, and a page
    reads tens of thousands.
    """

    agent: str
    stretch: Stretch
    rule: OwnRule | None
    counter: str
    relation: str
    passed: CheckEvidence | None
    compactions: tuple[CompactionCheck, ...] = ()
    auto: int = 0
    comparable: int = 0
    agrees: int = 0
    missed: int = 0

    @property
    def window(self) -> int | None:
        """The context window in tokens that the rule takes, else the stretch's."""
        settings = () if self.rule is None else self.rule.settings
        named = next((item.value for item in settings if item.name == "window"), None)
        if named is not None:
            return int(named)
        return None if self.stretch.window is None else self.stretch.window.value

    def fired(self) -> list[CompactionCheck]:
        """The compactions that bound a threshold."""
        return [item for item in self.compactions if item.cause in EVIDENCE and item.tokens is not None]
