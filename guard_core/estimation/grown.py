"""The attribution of a session that has grown: what was learnt of its beginning, applied to what is new.

Ratios, overhead and the other things that are learnt from a whole session stay as they are, so that only the events
after the last call that was counted are shared out. They are learnt again, which takes the whole session, when its log
has grown by a tenth since (`is_due`): a background job does that where attributions are stored.

Between two such points the result depends on the attribution that was learnt and on the log as it is now, not on the
pieces in which it came.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from guard_core.estimation.attribution import (
    Attribution,
    PriceList,
    attribute,
    attributed_steps,
    guesses_of,
    inserted_tokens,
)
from guard_core.estimation.fitting import CHARACTERS, LEXICAL, drifted
from guard_core.estimation.intervals import Intervals
from guard_core.estimation.outputs import answers_by
from guard_core.estimation.ratios import KINDS, Floats, Ratios, content
from guard_core.estimation.sharing import EXACT, SESSION, SHARED, share_out
from guard_core.ledger import Ints, Ledger, prefix_sums
from guard_core.tokens.tokenizer import ENCODINGS

TENTH = 10  # ours: learnt again when the log has grown by one part in so many, so that all of it costs ten readings


def is_learnt(attribution: Attribution) -> bool:
    """Was the growth of any prompt measured, so that there is something to attribute new events by."""
    measured = np.isin(attribution.source, (EXACT, SHARED, SESSION))
    of_log = attribution.weights in (LEXICAL, CHARACTERS, *ENCODINGS)  # not by counts that new events lack
    return attribution.fitted_events >= 0 and attribution.measured and of_log and bool(measured.any())


def is_due(attribution: Attribution, ledger: Ledger) -> bool:
    """Has the log grown by a tenth since the ratios were learnt, or is not known when they were."""
    fitted = attribution.fitted_events
    return fitted < 0 or ledger.event_count * TENTH > fitted * (TENTH + 1)


def extended(attribution: Attribution, ledger: Ledger) -> Attribution:
    """The attribution of a longer log that begins with the one attributed, by what was learnt of that.

    Where nothing is learnt (`is_learnt`), or the new calls do not simply follow, it is made from scratch.
    """
    place = _settled(attribution, ledger)
    if place is None:
        return attribute(ledger)
    step, begin = place
    event = int(ledger.steps["at"][step])
    tail = _Tail(ledger, begin, attribution)
    tokens = np.concatenate([attribution.tokens[:event], tail.tokens[event - tail.event :]])
    prologue, overhead = attribution.prologue, attribution.overhead
    inserted = inserted_tokens(ledger, tokens, overhead, guesses_of(ledger, tail.ratios), prologue)
    prices = PriceList(prefix_sums(tokens), inserted, prologue=prologue)
    recorded = ledger.steps["prompt_tokens"]
    after = step + 1 - begin  # of the tail's steps
    return replace(
        attribution,
        tokens=tokens,
        source=np.concatenate([attribution.source[:event], tail.source[event - tail.event :]]),
        residual=np.where(recorded > 0, recorded - attributed_steps(ledger, overhead, prices), 0),
        baseline=np.concatenate(
            [attribution.baseline[: step + 1], attribution.baseline[step] + np.cumsum(tail.begins[after:])]
        ),
        dropped=np.concatenate([attribution.dropped[: step + 1], tail.dropped[after:]]),
        inserted=inserted,
    )


class _Tail:
    """The log from the request of step `begin` on, attributed by what was learnt before."""

    def __init__(self, ledger: Ledger, begin: int, known: Attribution) -> None:
        self.event = int(ledger.steps["at"][begin])
        self.ratios = Ratios(np.array([known.lexical_ratios[kind] for kind in KINDS]), known.tools)
        # The ledger from a step and an event on, its places counted from there.
        steps = {name: column[begin:] for name, column in ledger.steps.items()}
        for name in ("at", "response", "user_event"):
            steps[name] = np.where(steps[name] >= self.event, steps[name] - self.event, -1)
        events = {name: column[self.event :] for name, column in ledger.events.items()}
        first = int(ledger.part_starts[self.event])
        parts = {name: column[first:] for name, column in ledger.parts.items()}
        parts |= {"event": parts["event"] - self.event, "answers": np.maximum(parts["answers"] - first, -1)}
        log = Ledger(events, steps, parts, agent=ledger.agent, models=ledger.models, encoding=ledger.encoding)
        amounts, ratios = content(log), self.ratios
        if known.weights in ENCODINGS:
            counted = [ledger.prefix(name).item(known.fitted_events) for name in ("lexical_tokens", "tokenizer_tokens")]
            amounts, ratios = content(log, events["tokenizer_tokens"]), ratios.scaled(counted[0] / max(1, counted[1]))
        says = answers_by(log, amounts, ratios, known.habit)
        estimate: Floats = says.over(ratios.estimates(amounts, log.events["tool"]))
        every = Intervals.of(log)
        grown = every.grown(says.dropped_between(every.first, every.last))
        intervals = grown.pick(~grown.edited(grown.totals(estimate)))
        self.tokens, self.source = share_out(log, intervals, drifted(log, estimate, known.drift), anything=True)
        self.dropped = says.dropped
        self.begins: Ints = (log.steps["prompt_tokens"] > 0).astype(np.int64)
        self.begins[intervals.last] = 0


def _settled(attribution: Attribution, ledger: Ledger) -> tuple[int, int] | None:
    """The last counted step whose request no later event can change, and the step from which its turn is attributed
    again; None where there is no such step."""
    steps, events = ledger.steps, len(attribution.tokens)
    if not is_learnt(attribution):
        return None
    known = len(attribution.residual)
    counted = np.flatnonzero((steps["prompt_tokens"][:known] > 0) & (steps["at"][:known] < events))
    if not len(counted) or ledger.event_count < events or ledger.step_count < known:
        return None
    step = begin = int(counted[-1])
    if attribution.habit is not None:  # what a turn no longer sends is known from its beginning
        begin = max(int(np.searchsorted(steps[name], steps[name][step], side="left")) for name in ("turn", "epoch"))
    at = int(steps["at"][begin])
    in_order = at >= int(steps["at"][: begin + 1].max()) and int(steps["response"][:begin].max(initial=-1)) < at
    return (step, begin) if in_order and int(steps["at"][step]) >= at else None
