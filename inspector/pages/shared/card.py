"""The decision card: a policy's arithmetic at one step, in its own order, and its verdict in words."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from guard_core.estimation.usage import PROVIDER
from guard_core.policies import POLICIES
from guard_core.sessions import Provenance, Sourced
from guard_core.trace import HELD_REASONS, Term, Trace
from guard_core.windows.window_evidence import shown_source
from inspector.pages.shared.numbers import counted, factor, percent, step_number, tokens
from inspector.replays.choice import policy_title

NEVER = "This policy never compacts."
SETTING_OF = {"buffer": "buffer", "limit": "max_turns"}  # terms of an arithmetic that are settings of a policy
# What a policy compares, among the terms of its explanation; the others are what it counts.
DECISION_TERMS = ("context window", "buffer", "threshold", "verdict", "the stale count alone", "limit")
BADGES = {"recorded": ("would not compact", "would compact"), "replayed": ("does not compact", "compacts")}


def card(
    trace: Trace, step: int, terms: Sequence[Term], *, side: str, compacted: bool = False, own: int | None = None
) -> dict[str, Any]:
    """The card of one step.

    `side` is "recorded" (the request that was really sent; `compacted`: it followed a recorded compaction, of which
    the agent itself says `own` tokens before) or "replayed".
    """
    decision, threshold = value(trace, "decision_tokens", step), value(trace, "threshold", step)
    fires, compared = value(trace, "fired", step) == 1, CardComparison.of(trace, step, terms)
    own_note = ""
    if own is not None and decision > 0 and abs(own - decision) >= 0.02 * decision:
        own_note = (
            f"The agent's own figure before this compaction is {own:,} tokens: of another request, or by another count."
        )
    return {
        "side": side,
        "inequality": compared.shown,
        "verdict": (
            recorded_verdict(trace, step, compacted, compared)
            if side == "recorded"
            else replayed_verdict(trace, step, compared)
        ),
        "badge": BADGES[side][fires],
        "badge_class": "badge-compaction" if fires else "",
        "terms": [term_row(term, step, acts=side == "replayed") for term in terms],
        "notes": [note for note in (_answer_note(trace, step), own_note) if note],
        **fill_of(decision, threshold, trace.window),
    }


def with_sources(terms: Sequence[Term], window: Sourced, typed: Container[str]) -> list[Term]:
    """The same terms, where context window and settings say where they come from: a policy is only given the numbers.

    `typed` holds the names of the settings that the user set.
    """
    sources = {"context window": shown_source(window).value}
    sources |= {term: Provenance.USER.value for term, setting in SETTING_OF.items() if setting in typed}
    return [
        msgspec.structs.replace(term, source=sources[term.name]) if term.name in sources else term for term in terms
    ]


def inequality(decision: int, threshold: int, terms: Sequence[Term]) -> str:
    """The comparison that decides, with its numbers and with the sign that the policy's own terms have."""
    if decision < 0 or threshold < 0:
        return "nothing to compare"
    return f"{decision:,} {_sign(decision, threshold, terms)} {threshold:,}"


def _sign(count: int, limit: int, terms: Sequence[Term]) -> str:
    said = [term.expression for term in terms]
    exceeds, is_at_most = (any(f"{count:,} {sign} {limit:,}" in one for one in said) for sign in (">", "<="))
    return ">" if exceeds else "≤" if is_at_most else "≥" if count >= limit else "<"


@dataclass(frozen=True)
class CardComparison:
    """What a policy compared at a step: its count and its limit, in a unit (-1: none, or not known), and the sign
    between them ("" without both)."""

    count: int
    limit: int
    unit: str
    sign: str

    @classmethod
    def of(cls, trace: Trace, step: int, terms: Sequence[Term]) -> CardComparison:
        """A threshold in tokens is in the columns of every trace, another limit in the terms, behind its count."""
        count, limit, unit = value(trace, "decision_tokens", step), value(trace, "threshold", step), "tokens"
        for term, following in pairwise(terms):
            if max(count, limit) < 0 and following.name == "limit":
                count, limit, unit = int(term.value), int(following.value), following.unit
        return cls(count, limit, unit, _sign(count, limit, terms) if min(count, limit) >= 0 else "")

    @property
    def shown(self) -> str:
        """The comparison, with its unit where that is not tokens."""
        if not self.sign:
            return "nothing to compare"
        return f"{self.count:,} {self.sign} {self.limit:,}{'' if self.unit == 'tokens' else f' {self.unit}'}"

    @property
    def name(self) -> str:
        """What the limit is called."""
        return "threshold" if self.unit == "tokens" else "limit"

    @property
    def reached(self) -> str:
        """Of a count that fires."""
        verb = {"≥": "reached", ">": "exceeded"}.get(self.sign)
        return f"its count {verb} the {self.name}" if verb else ""

    @property
    def reason(self) -> str:
        """Why it compacts, as far as the comparison says it."""
        return f": {self.reached}" if self.reached else ""

    @property
    def room(self) -> str:
        """Why it does not compact."""
        if not self.sign:
            return ": it has no threshold" if self.count >= 0 else ": it has no count to compare here"
        if self.reached:  # it does not look at its count here
            return f", although {self.reached}"
        left = self.limit - self.count
        if not left:
            return f": its count must exceed the {self.name}"
        return f": {counted(left, self.unit[:-1])} {'remains' if left == 1 else 'remain'} to its {self.name}"


def recorded_verdict(trace: Trace, step: int, compacted: bool, compared: CardComparison) -> str:
    """What the policy would have done with the recorded request, and what the recorded agent did."""
    policy = policy_title(trace.policy)
    if not POLICIES[trace.policy].compacts:
        return f"{'The recorded agent compacted here. ' if compacted else ''}{NEVER}"
    if value(trace, "fired", step) == 1:
        if compacted:
            return f"{policy} would compact here, too{compared.reason}."
        return f"{policy} would compact here{compared.reason}. The recorded agent did not."
    if compacted:
        return f"The recorded agent compacted here. {policy} would not{compared.room}."
    return f"{policy} would not compact{compared.room}."


def replayed_verdict(trace: Trace, step: int, compared: CardComparison) -> str:
    """What the policy did in the replay."""
    if not POLICIES[trace.policy].compacts:
        return NEVER
    held = HELD_REASONS[value(trace, "held", step)]
    if value(trace, "fired", step) == 1:
        return f"Compacts here{', but ' + held if held else compared.reason}."
    if held:
        return f"No compaction, although the threshold is reached: {held}."
    return f"No compaction{compared.room}."


def _answer_note(trace: Trace, step: int) -> str:
    """How far the decision's number was from what the provider then reported, where both are of the same request."""
    recorded, decision = value(trace, "recorded_prompt_tokens", step), value(trace, "decision_tokens", step)
    if recorded <= 0 or decision <= 0 or value(trace, "prompt_tokens_source", step) != PROVIDER:
        return ""
    measures = ("contents", "heuristic")
    if decision != recorded and any(
        value(trace, f"{name}_decided", step) != value(trace, f"{name}_sent", step) for name in measures
    ):
        return (
            "What was compared is the request before the history was shortened, which was never sent. "
            f"The request that was sent had {recorded:,} prompt tokens."
        )
    error = (decision - recorded) / recorded
    apart = "exact" if abs(error) < 0.0005 else f"{abs(100 * error):.1f} % too {'high' if error > 0 else 'low'}"
    return f"The provider then reported {recorded:,} prompt tokens: the decision tokens were {apart}."


def term_row(term: Term, step: int, *, acts: bool = True) -> dict[str, Any]:
    """One number of the arithmetic; where it was not measured at this step, the step at which it was. The verdict is a
    sentence: what the policy does, or would do where it only watches (`acts` is false)."""
    shown, unit, sentence = plain(term.value), term.unit, ""
    expression = term.expression.replace(">=", "≥").replace("<=", "≤").replace(" x ", " × ")
    if term.name == "verdict":
        shown, unit = "", ""
        expression, sentence = _verdict(expression, acts)
    elif term.unit == "factor":
        shown, unit = factor(term.value), "×"
    elif term.value == 1:
        unit = unit.removesuffix("s")
    return {
        "name": term.name,
        "value": shown,
        "unit": unit,
        "expression": expression,
        "sentence": sentence,
        "source": str(term.source),
        "as_of": None if term.as_of in (None, step) else step_number(term.as_of),
        "verdict": term.name == "verdict",
    }


def _verdict(expression: str, acts: bool) -> tuple[str, str]:
    """The comparison of a verdict, and what follows from it as a sentence."""
    numbers, colon, words = expression.partition(": ")
    if not colon:
        numbers, words = "", expression
    if not acts:
        words = words.replace("it compacts", "it would compact").replace("it does not compact", "it would not compact")
    return numbers, f"{words[:1].upper()}{words[1:]}."


def plain(value: float) -> str:
    """A value with its groups; a whole number without a point."""
    if np.isnan(value):
        return "–"
    return (f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4g}").replace("-", "−")


def fill_of(decision: int, threshold: int, window: int) -> dict[str, Any]:
    """The bar of a card: how much of the window a count fills, and where the threshold is; figures below 0 are none."""
    if decision < 0 or threshold < 0 or window <= 0:
        return {"fill": None}
    scale = max(window, decision)
    label = f"{percent(decision, window, 1)} of the window of {tokens(window)}; the mark is the threshold"
    return {"fill": f"{100 * decision / scale:.2f}", "mark": f"{100 * threshold / scale:.2f}", "fill_label": label}


def value(trace: Trace, name: str, step: int) -> int:
    """One entry of a column."""
    return int(trace.column(name)[step])


def settings_used(trace: Trace, window: Sourced, typed: Container[str]) -> dict[str, Any]:
    """The settings of a trace with where each comes from: typed by the user, or assumed from the profile.

    `typed` holds the names that the user set. The main ones come first; the others are folded.
    """
    first = [_setting("policy", trace.policy, typed)]
    first.append({"name": "context window", "value": tokens(window.value), "source": shown_source(window).value})
    names = [name for name in trace.settings if name != "mode"]
    published = POLICIES[trace.policy].settings if trace.policy in POLICIES else ()
    main = ["profile", *(item.name for item in published if item.main), "summary"]
    first += [_setting(name, trace.settings[name], typed) for name in main if name in names]
    rest = [_setting(name, trace.settings[name], typed) for name in names if name not in main]
    return {"main": first, "rest": rest}


def _setting(name: str, value: Any, typed: Container[str]) -> dict[str, str]:
    if isinstance(value, bool):
        text = "yes" if value else "no"
    elif isinstance(value, int):
        text = f"{value:,}"
    else:
        text = f"{value:g}" if isinstance(value, float) else str(value)
    source = Provenance.USER if name in typed else Provenance.ASSUMED
    return {"name": name.replace("_", " "), "value": text, "source": source.value}
