"""Models by name: their context window, from the table bundled with genai-prices.

The table is loaded when first asked and never updated over the network. A name that it does not hold is unknown:
nothing is guessed. Where the row that a name means has no window, another provider's row of the same model is asked.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import NamedTuple

from guard_core import defaults
from guard_core.sessions import Provenance, Session, Sourced
from guard_core.windows.model_table import rows_of
from guard_core.windows.subscriptions import NOTE, PREFIX, subscription_windows

LONG_CONTEXT_SUFFIX, LONG_CONTEXT = "[1m]", 1_000_000  # Claude Code writes so for a model used with a million tokens
LONG_CONTEXT_FAMILY = "claude-sonnet-4"  # of 200,000 tokens, offered with a million, too
COPILOT = "github-copilot"  # as the table of models calls the service
SAME_WINDOW = 1.1  # ours: values up to this factor apart are one window, rounded differently
# Google states two limits, of input and of output (ai.google.dev/api/models: inputTokenLimit, outputTokenLimit); Codex
# writes down what its model takes as input (codex-rs, model_context_window: 272,000 of 400,000 tokens of GPT-5).
_INPUT_ALONE = re.compile("gemini", re.IGNORECASE)
UNKNOWN = "neither the file nor the model table has it"


def context_window(model: str) -> Sourced | None:
    """The context window of a model in tokens, or None where the table does not have it under any provider.

    Where only others than the model's maker say it, and say different things, the smallest is an assumption; so is the
    maker's for a model of GitHub Copilot, which has smaller windows for most, where the table does not say which.
    """
    if model.endswith(LONG_CONTEXT_SUFFIX) and rows_of(model[: -len(LONG_CONTEXT_SUFFIX)]).own:
        return Sourced(LONG_CONTEXT, Provenance.MODEL_TABLE, f"the name ends in {LONG_CONTEXT_SUFFIX}")
    rows = rows_of(model)
    if served := subscription_windows(model):
        note = NOTE.format(model.removeprefix(PREFIX))
        usual = rows.own.window if rows.own else 0
        others = f"; {rows.own.provider.name} says {usual:,}" if rows.own and usual else ""
        return Sourced(served[0], Provenance.MODEL_TABLE, note + others)
    known = sorted((row for row in rows.others if row.window), key=lambda row: row.window)
    row = next((row for row in (rows.host, rows.maker, *known) if row and row.window), None)
    if row is None:
        return None
    note = row.note if row is rows.own or rows.own is None else f"{row.note}; {rows.own.provider.name}'s row has none"
    is_elsewhere = model.strip().lower().startswith(f"{COPILOT}/") and row.provider.id != COPILOT
    if is_elsewhere and rows.host is None:
        note = f"{note}; GitHub Copilot has no row for it"
    differing = [other for other in known if not _same(row.window, other.window)]
    if differing:
        note = f"{note}; {differing[-1].provider.name} says {differing[-1].window:,}"
    is_guess = is_elsewhere or (bool(differing) and row in known)
    return Sourced(row.window, Provenance.ASSUMED if is_guess else Provenance.MODEL_TABLE, note)


def documented_windows(model: str, at_least: int) -> list[int]:
    """The windows that the table has for a model's variants, in tokens, from `at_least` on, smallest first.

    Values that differ by rounding (1,000,000 and 1,048,576) are one.
    """
    if served := subscription_windows(model):
        return sorted(value for value in served if value >= at_least)
    rows = rows_of(model)
    values = {row.window for row in (rows.host, rows.maker, *rows.others) if row and row.window}
    if rows.own and LONG_CONTEXT_FAMILY in rows.own.info.id:
        values.add(LONG_CONTEXT)
    distinct: list[int] = []
    for value in sorted(value for value in values if value >= at_least):
        if not distinct or not _same(value, distinct[-1]):
            distinct.append(value)
    return distinct


def is_documented(model: str, tokens: int) -> bool:
    """Does the table have this window, in tokens, for any variant of a model."""
    return any(_same(value, tokens) for value in documented_windows(model, 0))


def holds_answers(model: str, window: Sourced, agent_format: str) -> bool:
    """Does the window of a model hold a request and its answer together, as most do: not where its maker states a limit
    of input alone."""
    is_input = agent_format == "codex" and window.source is Provenance.RECORDER
    is_input |= bool(subscription_windows(model))  # what Codex, too, takes for its input
    return not (is_input or agent_format == "gemini-cli" or _INPUT_ALONE.search(model))


def is_assumed(window: Sourced, model: str) -> bool:
    """Is the window of a model an assumption: nothing says it, or prompts prove only that it is larger than another
    one, or the file states one that is larger than that of any model that is offered."""
    if window.source is Provenance.PROMPTS:
        return not is_documented(model, window.value)
    too_large = window.source is Provenance.RECORDER and window.value > defaults.LARGEST_OFFERED
    return too_large or window.source is Provenance.ASSUMED


def if_window_is(tokens: int) -> str:
    """That something rests on a window of so many tokens, as the end of a clause."""
    return f", if the window is {tokens:,}"


def _same(one: int, other: int) -> bool:
    """Are two windows one, rounded differently."""
    return max(one, other) <= SAME_WINDOW * min(one, other)


class ModelAnswers(NamedTuple):
    """The calls of a session that name one model: how many, the largest prompt and the longest answer in tokens (0:
    none is counted), and when the first of them was made."""

    calls: int
    largest: int
    longest: int
    first: float | None


def answers_of(session: Session) -> dict[str, ModelAnswers]:
    """The models of a session in the order of their first calls, "" for calls that name none. One pass over the calls,
    which a long stored session decodes each time."""
    counts: dict[str, list[int]] = {}  # calls, largest prompt, longest answer
    firsts: dict[str, float | None] = {}
    for call in session.calls:
        if (known := counts.get(call.model)) is None:
            known, firsts[call.model] = counts.setdefault(call.model, [0, 0, 0]), call.timestamp
        known[0] += 1
        known[1] = max(known[1], call.prompt_tokens or 0)
        known[2] = max(known[2], call.output_tokens or 0)
    return {
        name: ModelAnswers(calls, largest, longest, firsts[name]) for name, (calls, largest, longest) in counts.items()
    }


def main_model(session: Session, answers: dict[str, ModelAnswers] | None = None) -> str:
    """The model that answered most calls of a session; where calls do not name theirs, the session's."""
    known = answers_of(session) if answers is None else answers
    counts = {name: answers.calls for name, answers in known.items() if name}
    most = max(counts.values(), default=0)
    if counts.get(session.model, 0) == most:
        return session.model
    return next(name for name, count in counts.items() if count == most)


def stated_limit(session: Session, main: str) -> int:
    """The most prompt tokens that the provider takes of a session's main model, by its refusals; 0 where they do not
    say, say several things, or stand beside a call of another model."""
    ats, limits = [call.at for call in session.calls] if session.refusals else [], set()
    for item in session.refusals:
        place = bisect_left(ats, item.at)
        beside = {call.model for call in session.calls[max(0, place - 1) : place + 1]}
        if item.limit and beside <= {main, ""}:
            limits.add(item.limit)
    return limits.pop() if len(limits) == 1 else 0


def window_of(session: Session, main: str | None = None) -> Sourced:
    """The context window of a session in tokens: from its file, else what the provider stated in refusing a request,
    else by the name of its model, else assumed."""
    if session.window is not None and session.window.value > 0:
        return session.window
    main = main_model(session) if main is None else main
    if limit := stated_limit(session, main):
        return Sourced(limit, Provenance.PROVIDER, "stated by the provider when it refused a longer request")
    for name in dict.fromkeys([main, session.model]):
        if name and (window := context_window(name)):
            return window
    return Sourced(defaults.WINDOW, Provenance.ASSUMED, UNKNOWN)
