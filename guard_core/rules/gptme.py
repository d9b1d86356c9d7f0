"""gptme: 90 % of the window, or what the window leaves for an answer and 1,000 tokens, at most 256,000 tokens.

Measured by running 0.35.1 (`util/context_budget.py`, `util/context_measurement.py`, `tools/autocompact/hook.py`):
compared after the results of each answer and at the end of a turn, with the last prompt and gptme's own count of the
answer and of what was added since. It asks a tokenizer (o200k_base or cl100k_base of tiktoken, by the model); here a
token is four characters, which is what gptme takes without one. A count that is close to the threshold may therefore be
on its other side. A set budget is a share of the window or a number of tokens, at most what the window leaves, and
then 256,000 is no limit. In a conversation without its views, what is sent is not known from the first compaction on.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from guard_core.errors import SettingError
from guard_core.ledger import Ints, Ledger
from guard_core.policies.gptme import CAP, CHARS_PER_TOKEN, COSTS, HEADROOM, LEAST, MAX_OUTPUT
from guard_core.recordings.formats.gptme.conversation import CUT_AT
from guard_core.rules.base import Agent, Hypothesis, Keeps, KeptShape, OwnRule, Stretch
from guard_core.rules.counters import TOTAL_PENDING, Checks, RuleCounter, outputs_of
from guard_core.rules.settings import WINDOW, RuleNumber, Typed, chosen, fraction, whole, window_setting
from guard_core.rules.thresholds import FRACTIONS, round_limits, windows_of
from guard_core.sessions import Provenance, Session

BUDGET, OUTPUT = "context_budget", "max_output_tokens"
SHARE = 0.9  # of the window; _DEFAULT_FRACTION of util/context_budget.py
KEEPS = Keeps("the newest messages, and shortened results behind them", KeptShape.TAIL)


def _left(window: int, output: int) -> tuple[str, int]:
    """What a window leaves, as an expression and in tokens."""
    left = window - output - HEADROOM
    if left > 0:
        return f"{window:,} − {output:,} (answer) − {HEADROOM:,}", left
    return f"{min(LEAST, window):,} (the least)", min(LEAST, window)


def default_limit(window: int, output: int = MAX_OUTPUT) -> tuple[str, int]:
    """The budget of a window where none is set, as an expression and in tokens."""
    formula, left = _left(window, output)
    share = int(SHARE * window)
    if min(share, left) > CAP:
        return f"{CAP:,} (the most)", CAP
    if left <= max(share, LEAST):
        return formula, left
    return f"{SHARE * 100:g} % of {window:,}", share


def _set_limit(window: int, budget: float, output: int) -> tuple[str, int]:
    """The threshold of a set budget, up to 1 a share of the window, as an expression and in tokens."""
    formula, left = _left(window, output)
    tokens = int(budget * window) if budget <= 1 else int(budget)
    if left < tokens:
        return formula, left
    return f"{budget * 100:g} % of {window:,}" if budget <= 1 else f"{tokens:,} (context_budget)", tokens


def _budget(typed: Typed) -> float | None:
    """A budget as typed: a share, or tokens. Raises SettingError."""
    try:
        return fraction(typed, BUDGET)
    except SettingError:
        return whole(typed, BUDGET, 2)


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """90 % of the window, or what it leaves for an answer, at most 256,000 tokens, unless a budget was typed."""
    window, budget = stretch.window, _budget(typed)
    output = chosen(OUTPUT, whole(typed, OUTPUT), MAX_OUTPUT, "tokens", "default; the most tokens of an answer")
    settings, size = [window_setting(window), output], int(output.value or MAX_OUTPUT)
    formula, threshold = "90 % of the window, or what it leaves for an answer", None
    if window is not None:
        formula, threshold = default_limit(window.value, size)
    if budget is not None:
        name, value, unit = ("budget_share", budget * 100, "%") if budget <= 1 else ("budget_tokens", budget, "tokens")
        settings.append(RuleNumber(name, value, unit, Provenance.USER, "typed in"))
        if window is not None:
            formula, threshold = _set_limit(window.value, budget, size)
        elif budget > 1:
            formula, threshold = f"{int(budget):,} (context_budget)", int(budget)
    return OwnRule(
        policy="gptme",
        settings=tuple(settings),
        counter=TOTAL_PENDING,
        threshold=threshold,
        formula=formula,
    )


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Other windows, shares and budgets."""
    output = whole(typed, OUTPUT) or MAX_OUTPUT
    for window, other in windows_of(stretch):
        yield Hypothesis(*default_limit(window, output), other)
        for share in FRACTIONS:
            yield Hypothesis(*_set_limit(window, share, output), other + 1)
        if other < 2:
            for limit in round_limits(window):
                yield Hypothesis(*_set_limit(window, limit, output), other + 1)


def _tokens(ledger: Ledger) -> Ints:
    """What gptme's count of each event is taken for, in tokens."""
    return np.asarray(COSTS.events(ledger, ledger.parts_in("")) // CHARS_PER_TOKEN)


def _answers(session: Session, ledger: Ledger, checks: Checks) -> Ints:
    """The provider's count of the last answer, in place of which gptme counts it itself."""
    return np.asarray(np.maximum(np.append(outputs_of(session, ledger), 0)[checks.last], 0))


COUNTER = RuleCounter(
    TOTAL_PENDING,
    "prompt tokens of the last answer, and characters / 4 of the answer and of what was added since, in place of "
    "gptme's own count of these",
    pending=_tokens,
    before_user=True,
    with_answer=True,
    carried=_answers,
)


def held(session: Session, ledger: Ledger, checks: Checks, _: Typed) -> Ints:
    """1 for each check from the first view on that is not in the file: what gptme sent is then not known."""
    cut = next((int(item.value) for item in session.settings if item.name == CUT_AT), None)
    return np.asarray((checks.stop >= cut) if cut is not None else checks.stop < 0, dtype=np.int64)


AGENT = Agent(
    format="gptme",
    label="gptme",
    rule=rule,
    plays={"gptme": {}},
    variants=variants,
    counter=lambda _: COUNTER,
    held=held,
    held_reason="gptme cut the conversation, and the view with what it left is not in this file",
    keeps=lambda _, __: KEEPS,
    uses_stated_window=True,
    names={
        BUDGET: "a share of the window or a number of tokens: --context-budget, context.budget",
        OUTPUT: "the most tokens of an answer, as gptme knows them of the model",
    },
    aliases={"GPTME_CONTEXT_BUDGET": BUDGET, "context.budget": BUDGET, "contextWindow": WINDOW},
)
