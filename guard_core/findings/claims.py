"""What is claimed of a session: findings and a verdict, each a sentence for people and the same claim as data."""

from __future__ import annotations

from typing import Any

import msgspec

ERROR, WARNING, INFO = "error", "warning", "info"
SEVERITIES = (ERROR, WARNING, INFO)  # the gravest first
LISTED = 20  # steps that one finding lists

# Assumptions: what a claim rests on besides the recording. The sentence says them in words.
WINDOW_ASSUMED = "window_assumed"  # neither the file nor the model table has it
WINDOW_FROM_TABLE = "window_from_table"  # looked up by the model's name; said in words only where it is doubted
WINDOW_DOUBTED = "window_doubted"  # the recorded triggers contradict the table
TRIGGER_NOT_RECORDED = "trigger_not_recorded"  # the file does not say who asked for a compaction: taken as automatic
SAME_TURNS = "same_turns"  # the agent would have made the same calls
MODELLED_TOKENS = "modelled_tokens"  # a modelled count is part of the number
RULE_DEFAULTS = "rule_defaults"  # settings of the agent's rule that the file does not hold are at their defaults
LIST_PRICES = "list_prices"  # what the calls cost is taken from the price table
MODELLED_CACHE = "modelled_cache"  # what the provider's cache gave is worked out, for the recording too
SIZES_ONLY = "sizes_only"  # the file has no count by the provider


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One claim about a session.

    `step` (from 0) is where to look, `steps` are all steps that it is about (the first LISTED), `count` is their
    number. The sentence counts steps, messages and compactions from 1. `numbers` has what it says as data: steps and
    messages from 0, `compaction` from 0 among the counted compactions, tokens as prompt tokens, shares from 0 to 1.
    """

    kind: str
    severity: str
    step: int
    sentence: str
    numbers: dict[str, Any] = {}
    assumptions: tuple[str, ...] = ()
    steps: tuple[int, ...] = ()
    count: int = 1


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """The one sentence on a whole session, of at most 25 words; fields as in a Finding."""

    kind: str
    severity: str
    step: int
    sentence: str
    numbers: dict[str, Any] = {}
    assumptions: tuple[str, ...] = ()


def gravest_first(findings: list[Finding]) -> tuple[Finding, ...]:
    """Errors before warnings before the rest, each in the order of steps."""
    return tuple(sorted(findings, key=lambda finding: (SEVERITIES.index(finding.severity), finding.step)))
