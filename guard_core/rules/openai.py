"""The server-side compaction of OpenAI's Responses API, as the requests of a log ask for it.

With `context_management: [{"type": "compaction", "compact_threshold": N}]` the server compacts a request once its
context has more than N tokens, also while it answers; the response has the encrypted item, and the next request
continues from it. Not measured; source: https://developers.openai.com/api/docs/guides/compaction. At a compaction the
count is that of the response with the item, where it is above the threshold: a smaller one may be of what was left.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from guard_core.ledger import Ints, Ledger
from guard_core.recordings.formats.openai.responses import COMPACT_THRESHOLD
from guard_core.rules.base import Agent, Hypothesis, OwnRule, Stretch
from guard_core.rules.counters import REQUEST, UNKNOWN, Checks, RuleCounter
from guard_core.rules.settings import RuleNumber, Typed, whole
from guard_core.rules.thresholds import LARGEST_LIMIT, round_limits
from guard_core.sessions import Provenance, Session

COUNTER = RuleCounter(
    REQUEST,
    "tokens of the response with a compaction item, its output included where its input is not above the threshold; "
    "at requests that passed their input tokens",
)


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The threshold that was typed, else that of the requests: the server has no default."""
    setting = _setting(stretch, typed)
    threshold = None if setting.value is None else int(setting.value)
    return OwnRule(
        policy="openai-compaction",
        profile="server",
        settings=(setting,),
        counter=REQUEST,
        relation=">",
        threshold=threshold,
        formula="" if threshold is None else f"{threshold:,} (threshold)",
        reason="its requests do not say the threshold: set it" if threshold is None else "",
    )


def _setting(stretch: Stretch, typed: Typed) -> RuleNumber:
    """The threshold, as typed in or as the requests have it."""
    if (value := whole(typed, COMPACT_THRESHOLD, 0)) is not None:
        return RuleNumber(COMPACT_THRESHOLD, value, "tokens", Provenance.USER, "typed in")
    known = stretch.setting(COMPACT_THRESHOLD)
    if known is None:
        return RuleNumber(COMPACT_THRESHOLD, None, "tokens", Provenance.ASSUMED, "not in the requests")
    return RuleNumber(COMPACT_THRESHOLD, known.value, "tokens", Provenance.RECORDER, known.note)


def variants(_: Stretch, __: Typed) -> Iterable[Hypothesis]:
    """Other thresholds."""
    for limit in round_limits(LARGEST_LIMIT):
        yield Hypothesis(f"{limit:,} (threshold)", limit, 1)


def series(session: Session, ledger: Ledger, checks: Checks, _: Stretch) -> Ints:
    """The input tokens of each request that was answered without a compaction."""
    prompts = np.append(ledger.steps["prompt_tokens"], 0)[checks.step]
    by_server = np.array([item.summariser is None for item in session.compactions] or [False])
    within = checks.step[(checks.place >= 0) & by_server[checks.place]] - 1  # in the answer before the next request
    quiet = (checks.place < 0) & (prompts > 0) & ~np.isin(checks.step, within)
    return np.asarray(np.where(quiet, prompts, UNKNOWN))


AGENT = Agent(
    format="openai-responses",
    label="OpenAI server-side compaction",
    rule=rule,
    plays={"openai-compaction": {}},
    variants=variants,
    counter=lambda _: COUNTER,
    series=series,
    uncounted="the file has no count that the server can have compared here",
    records_count=True,
    wrote=lambda session: any(item.name == COMPACT_THRESHOLD for item in session.settings),
    fitted=lambda _, limit: f"{limit:,} (threshold)",
    names={COMPACT_THRESHOLD: "of context_management: the tokens above which the server compacts"},
)
