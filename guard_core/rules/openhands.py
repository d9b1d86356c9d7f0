"""OpenHands: more events than the condenser's `max_size`, counted before every step.

From openhands-sdk 1.58.0 and 1.58.2 (`LLMSummarizingCondenser`), run with known settings: its list holds the system
prompt, each message, each tool call and each result as an event. Of recordings only the folder of a conversation holds
the settings, and defaults differ. Where one was requested, by a person or after a refused request, a condensation
proves nothing. The condenser's limit of tokens, `max_tokens` or the model's, is not modelled: where the settings are in
the file, a condensation of no more than `max_size` events that nobody requested was made at that limit.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from guard_core.ledger import Ints, Ledger
from guard_core.policies.openhands import sdk_events
from guard_core.rules.base import Agent, Hypothesis, OwnRule, Stretch
from guard_core.rules.counters import EVENTS, Checks, RuleCounter
from guard_core.rules.settings import RuleNumber, Typed, whole
from guard_core.sessions import Provenance, Session
from guard_core.views import Inserted, Rewritten, Span

# Events: max_size of the default agent's condenser (openhands-tools), of one made without, and of the application.
SIZES = {80: "default agent", 240: "default condenser", 100: "application of 2025"}
NOT_IN_FILE = "the condenser's max_size is not in the file: set max_size"
AT_TOKENS = "it had no more events than max_size and was not requested: its condenser's limit of tokens, not modelled"
ROUND_SIZES = range(10, 1_001, 10)  # events; what people may set
COUNTER = RuleCounter(EVENTS, "events of the request: system prompt, messages, tool calls and results, each one")


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """More events than `max_size`, as typed or as the file has it."""
    sized = _setting(stretch, "max_size", whole(typed, "max_size"))
    size = None if sized.value is None else int(sized.value)
    settings = [sized]
    for name, value, unit in (("keep_first", whole(typed, "keep_first", 0), EVENTS), ("max_tokens", None, "tokens")):
        if (setting := _setting(stretch, name, value, unit)).value is not None:
            settings.append(setting)
    return OwnRule(
        policy="openhands",
        settings=tuple(settings),
        counter=EVENTS,
        relation=">",
        threshold=size,
        formula="max_size" if size is None else f"{size:,} (max_size)",
        reason=NOT_IN_FILE if size is None else "",
    )


def _setting(stretch: Stretch, name: str, typed: int | None, unit: str = EVENTS) -> RuleNumber:
    """A setting of the condenser: that was typed, else that of the file."""
    if typed is not None:
        return RuleNumber(name, typed, unit, Provenance.USER, "typed in")
    if (known := stretch.setting(name)) is not None:
        return RuleNumber(name, known.value, unit, Provenance.RECORDER, known.note)
    return RuleNumber(name, None, unit, Provenance.ASSUMED, "not in the file")


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Sizes of other condensers, and round ones."""
    for size, owner in SIZES.items():
        yield Hypothesis(f"{size:,} (max_size, {owner})", size, 1)
    for size in ROUND_SIZES:
        yield Hypothesis(f"{size:,} (max_size)", size, 2)


def held(session: Session, ledger: Ledger, checks: Checks, _: Typed) -> Ints:
    """The condensations that the number of events does not explain, of a conversation whose settings are in the file:
    they were made at the limit of tokens."""
    known = next((setting.value for setting in session.settings if setting.name == "max_size"), None)
    if known is None:
        return checks.step * 0
    return np.asarray((checks.place >= 0) & (listed(session, ledger, checks) <= known), dtype=np.int64)


def series(session: Session, ledger: Ledger, checks: Checks, _: Stretch) -> Ints:
    """The events of OpenHands in the request at each check."""
    return listed(session, ledger, checks)


def listed(session: Session, ledger: Ledger, checks: Checks) -> Ints:
    """The same, of a session."""
    prefix = ledger.prefix_by("openhands events/", lambda ledger: sdk_events(ledger, ledger.parts))
    system = int(session.system is not None)
    ats = np.array([item.at for item in session.compactions], dtype=np.int64)
    bases = np.array([0, *(_size(prefix, item.base) for item in session.compactions)], dtype=np.int64)
    # The request of a check is what the last condensation before it left, and what came since.
    side = np.where(checks.place >= 0, checks.place, np.searchsorted(ats, checks.stop, side="right"))
    since = np.append(0, ats)[side]
    return np.asarray(system + bases[side] + prefix[checks.stop] - prefix[since])


def _size(prefix: Ints, base: Iterable[object]) -> int:
    """The events in what a condensation left."""
    size = 0
    for segment in base:
        if isinstance(segment, Span):
            size += int(prefix[segment.stop] - prefix[segment.start])
        elif isinstance(segment, Inserted | Rewritten):
            size += 1
    return size


AGENT = Agent(
    format="openhands",
    label="OpenHands",
    rule=rule,
    plays={"openhands": {}},
    variants=variants,
    counter=lambda _: COUNTER,
    fitted=lambda _, limit: f"{limit:,} (max_size)",
    names={
        "max_size": "of the condenser, in events",
        "keep_first": "of the condenser, in events: what is kept, not when",
    },
    series=series,
    held=held,
    held_reason=AT_TOKENS,
)
