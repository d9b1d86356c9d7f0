"""Requests against the window: larger than it, nearly so, and a window that the recording contradicts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guard_core.estimation.recorder_figures import unfit_figures
from guard_core.findings.claims import (
    ERROR,
    LISTED,
    MODELLED_TOKENS,
    SIZES_ONLY,
    TRIGGER_NOT_RECORDED,
    WARNING,
    WINDOW_FROM_TABLE,
    Finding,
)
from guard_core.findings.facts import Case, Facts
from guard_core.findings.words import (
    at_step,
    counted,
    if_window,
    percent,
    steps_words,
    trigger_not_recorded,
    window_assumptions,
)
from guard_core.ledger import Ints
from guard_core.sessions import Provenance
from guard_core.windows import models
from guard_core.windows.window_evidence import (
    Status,
    are_all_forced,
    automatic_triggers,
    fired_words,
    is_set_by_hand,
)

# Ours: no source defines these words, so the numbers are chosen and named here.
NEAR_MISS_SHARE = 0.90  # of the window: a request this large leaves no room for a long answer
LATE_STEPS = 3  # an overflow at most so many steps before a compaction makes it late

_NEVER = np.iinfo(np.int64).max  # the place in the log of what does not come

_STATED = {
    Provenance.MODEL_TABLE: "the model table's window",
    Provenance.ASSUMED: "the assumed window",
    Provenance.PROMPTS: "the prompt-inferred window",
}


def contradicted_window(case: Case) -> list[Finding]:
    """An answered request that was larger than the window it is said to have had."""
    facts, window = case.facts, case.window
    if not case.is_recorded or not window.is_disproved or len(facts.in_characters[0]):
        return []
    if facts.is_uncounted:
        return [_contradicted_on_average(facts)]
    recorded = facts.ledger.steps["prompt_tokens"]
    recorded = np.where(facts.other_windows != 0, 0, recorded)
    step, over = int(np.argmax(recorded)), np.flatnonzero(recorded > window.value)
    sentence = (
        f"A prompt of {int(recorded[step]):,} tokens was answered at {at_step(step)}, above "
        f"{stated_window(facts)} of {window.value:,}. Set the real window."
    )
    numbers = {"window": window.value, "tokens": int(recorded[step]), "step": step, "calls": len(over)}
    return [Finding("window_contradicted", ERROR, step, sentence, numbers, (), _listed(over), len(over))]


def _contradicted_on_average(facts: Facts) -> Finding:
    """The same where only the total of all calls is recorded: the largest prompt was at least their average."""
    window, average, calls = facts.window.value, facts.session.mean_prompt_tokens or 0, facts.session.total_calls or 0
    sentence = (
        f"Prompts of {average:,} tokens on average over {counted(calls, 'call')} were answered, above "
        f"{stated_window(facts)} of {window:,}. Set the real window."
    )
    numbers = {"window": window, "tokens": average, "calls": calls}
    return Finding("window_contradicted", ERROR, 0, sentence, numbers, (), (), calls)


def stated_window(facts: Facts) -> str:
    """The window by where it comes from."""
    if is_set_by_hand(facts.window.sourced):
        return "the window set by hand"
    return _STATED.get(facts.window.source, "the stated window")


def doubted_window(case: Case) -> list[Finding]:
    """Automatic compactions that all fired below half of a window that was looked up or assumed."""
    window = case.window
    if not case.is_recorded or window.status is not Status.DOUBTED:
        return []
    fired = automatic_triggers(case.facts.session, case.facts.answers)
    low, high = min(fired), max(fired)
    where = fired_words(case.facts.session, low, high)
    sentence = (
        f"{counted(len(fired), 'compaction')} took place {where}, below half of {stated_window(case.facts)} of "
        f"{window.value:,}{_why_early(case, len(fired))}."
    )
    numbers = {"window": window.value, "low": low, "high": high, "compactions": len(fired)}
    step = case.fired[0].step if case.fired else 0
    assumptions: tuple[str, ...] = ()
    if unsaid := len(automatic_triggers(case.facts.session, case.facts.answers, unsaid=True)):
        assumptions, numbers["unknown_trigger"] = (TRIGGER_NOT_RECORDED,), unsaid
        sentence += f" {trigger_not_recorded(unsaid, len(fired))}"
    return [Finding("window_doubted", WARNING, step, sentence, numbers, assumptions, (), len(fired))]


def _why_early(case: Case, compactions: int) -> str:
    """What may be the cause of compactions far below the window, behind a sentence about them."""
    if not are_all_forced(case.facts.session, case.facts.answers):
        return ": the window is smaller, or the threshold was set by hand"
    if compactions == 1:
        return ", after a refused request: the window is smaller, or the request was larger than counted"
    return ", each after a refused request: the window is smaller, or the requests were larger than counted"


def overflows(case: Case) -> list[Finding]:
    """Requests larger than the window. Of a recording, only calls that the provider did not count can be meant."""
    return [overflow_at(case, case.over)] if len(case.over) else []


def overflow_at(case: Case, over: Ints) -> Finding:
    """What is to be said of some of the requests that are larger than the window, one at least."""
    worst = int(over[np.argmax(case.filled[over])])
    window = case.window_at(worst)
    tokens, first, last = int(case.tokens[worst]), int(over[0]), int(over[-1])
    answered = int((case.facts.ledger.steps["response"][over] >= 0).sum()) if case.is_recorded else 0
    how = "not counted by the provider, modelled" if case.is_recorded else "modelled"
    by_estimate = case.is_recorded and case.facts.is_uncounted
    how = "estimated from the text, no call is counted" if by_estimate else how
    where = f" at {at_step(worst)}" if len(over) > 1 else ""
    sentence = (
        f"{_subject(first, last, len(over))} over {_window_words(case, over, worst)}: {tokens:,} tokens{where}, "
        f"{percent(tokens / window - 1)} too many ({how})."
    )
    if answered == len(over):
        subject, requests = ("it was", "request was") if answered == 1 else ("they were", "requests were")
        sentence += (
            f" Yet {subject} answered: the window is larger, or the {requests} smaller, because the estimate is too "
            "high or messages were left out."
        )
    numbers = {
        "window": window,
        "tokens": tokens,
        "over_share": tokens / window - 1,
        "calls": len(over),
        "first": first,
        "last": last,
        "answered": answered,
    }
    assumptions = (*assumptions_at(case, worst), *_modelled(case, worst))
    severity = WARNING if answered == len(over) or by_estimate else ERROR
    return Finding("overflow", severity, worst, sentence, numbers, assumptions, _listed(over), len(over))


def _window_words(case: Case, over: Ints, worst: int) -> str:
    """The window that requests are over: the session's, or the one of each request's model."""
    size = f"{case.window_at(worst):,}"
    if len(set(case.windows[over].tolist())) > 1:
        return f"the windows of their models, at worst one of {size}"
    if case.rests_on_window(worst):
        return f"the window of {size}{if_window(case.window)}"
    return f"the window of its model, {size}" if len(over) == 1 else f"the window of their model, {size}"


def assumptions_at(case: Case, step: int) -> tuple[str, ...]:
    """The codes of what a claim about the window of a step's model rests on."""
    return window_assumptions(case.window) if case.rests_on_window(step) else (WINDOW_FROM_TABLE,)


def if_window_at(case: Case, step: int) -> str:
    """The assumption on the window of a step's model in words; nothing where it can be relied on."""
    return if_window(case.window) if case.rests_on_window(step) else ""


def _subject(first: int, last: int, count: int) -> str:
    if count == 1:
        return f"The request of {at_step(first)} is"
    if count == last - first + 1:
        return f"The requests of {steps_words(first, last)} are"
    return f"{count:,} requests between {at_step(first)} and {at_step(last)} are"


def near_misses(case: Case) -> list[Finding]:
    """Requests that nearly filled the window."""
    approaches = runs(is_near(case))
    return [near_miss_in(case, approaches)] if approaches else []


def near_miss_in(case: Case, approaches: list[tuple[int, int]]) -> Finding:
    """What is to be said of some of the runs of such requests, one at least."""
    tops = [start + int(np.argmax(case.filled[start:stop])) for start, stop in approaches]
    worst = max(tops, key=lambda step: float(case.filled[step]))
    tokens, window = int(case.tokens[worst]), case.window_at(worst)
    whose = "the window" if case.rests_on_window(worst) else "its model's window"
    how = " (modelled)" if case.modelled[worst] else ""
    often = "" if len(tops) == 1 else f" The context rose above {percent(NEAR_MISS_SHARE)} {len(tops):,} times."
    sentence = (
        f"The request of {at_step(worst)} fills {percent(tokens / window)} of {whose}: {tokens:,} of {window:,} "
        f"tokens{how}{if_window_at(case, worst)}.{often}"
    )
    numbers = {"window": window, "tokens": tokens, "share": tokens / window, "approaches": len(tops)}
    assumptions = (*assumptions_at(case, worst), *_modelled(case, worst))
    return Finding("near_miss", WARNING, worst, sentence, numbers, assumptions, tuple(tops[:LISTED]), len(tops))


def is_near(case: Case) -> NDArray[np.bool_]:
    """At which steps the request nearly filled the window."""
    return np.asarray((case.tokens > NEAR_MISS_SHARE * case.windows) & (case.tokens <= case.windows))


def late(case: Case) -> list[Finding]:
    """Compactions that came only after a request had been over the window."""
    over, previous = case.over, -1
    if case.is_recorded:  # what was answered fitted
        over = over[case.facts.ledger.steps["response"][over] < 0]
    pairs: list[tuple[int, int, int]] = []  # step over the window, step and index of the compaction
    for item in case.fired:
        recent = over[(over < item.step) & (over >= item.step - LATE_STEPS) & (over > previous)]
        if len(recent):
            pairs.append((int(recent[0]), item.step, item.index))
        previous = item.step
    if not pairs:
        return []
    step, compacted_at, index = pairs[0]
    tokens, window = int(case.tokens[step]), case.window_at(step)
    more = "" if len(pairs) == 1 else f" So did {counted(len(pairs) - 1, 'later compaction')}."
    sentence = (
        f"Compaction {index + 1:,} came too late, at {at_step(compacted_at)}: the request of {at_step(step)} has "
        f"{tokens:,} tokens, {percent(tokens / window - 1)} over the window of {window:,}"
        f"{if_window_at(case, step)}.{more}"
    )
    numbers = {
        "step_over": step,
        "tokens": tokens,
        "window": window,
        "compaction": index,
        "step_compacted": compacted_at,
        "compactions": [pair[2] for pair in pairs],
    }
    assumptions = (*assumptions_at(case, step), *_modelled(case, step))
    steps = tuple(pair[0] for pair in pairs[:LISTED])
    return [Finding("late", ERROR, step, sentence, numbers, assumptions, steps, len(pairs))]


def counted_over(case: Case) -> list[Finding]:
    """Compactions before which the agent itself counted more than the window: such a request is refused. Not those
    whose figure the calls before them contradict."""
    bases, unfit = case.facts.ledger.bases, unfit_figures(case.facts.ledger)
    fits = [(item, item.counted.place) for item in case.fired if item.counted and item.counted.place not in unfit]
    counts = [(item, bases[place].tokens_before) for item, place in fits]
    over = [(item, tokens) for item, tokens in counts if tokens > case.windows[item.step] > 0]
    if not over or not case.is_recorded:
        return []
    first, tokens = over[0]
    window = case.window_at(first.step)
    whose = "the window" if case.rests_on_window(first.step) else "its model's window"
    more = "" if len(over) == 1 else f" It did the same before {counted(len(over) - 1, 'more compaction')}."
    sentence = (
        f"Before compaction {first.index + 1:,} ({at_step(first.step)}) the agent counted {tokens:,} tokens, over "
        f"{whose} of {window:,}{if_window_at(case, first.step)}: a provider refuses such a request.{more}"
    )
    numbers = {
        "compaction": first.index,
        "tokens": tokens,
        "window": window,
        "compactions": [item.index for item, _ in over],
    }
    steps = tuple(item.step for item, _ in over[:LISTED])
    assumptions = assumptions_at(case, first.step)
    return [Finding("counted_over", WARNING, first.step, sentence, numbers, assumptions, steps, len(over))]


def overflow_words(numbers: Mapping[str, Any]) -> str:
    """What the refused requests of a finding are."""
    return "an overflow" if numbers["requests"] == 1 else "overflows"


def refused(case: Case) -> list[Finding]:
    """Requests that failed because they were too long, where the file says so: an overflow that is recorded."""
    session = case.facts.session
    if not case.is_recorded or not session.refused:
        return []
    ledger = case.facts.ledger
    # How many calls were made before each, how long the log was at the call after it, and at the compaction after it.
    places = session.refused_places
    calls = np.searchsorted(ledger.steps["at"], [at for at, _ in places])
    next_call = np.append(ledger.steps["at"], _NEVER)[calls]
    compacted = [(number, base.at) for number, base in enumerate(ledger.bases) if not base.is_edit]
    later = [bisect_left(compacted, (compactions,)) for _, compactions in places]
    next_compaction = np.array([*(at for _, at in compacted), _NEVER])[later]
    followed = int(np.count_nonzero((next_compaction <= next_call) & (next_compaction < _NEVER)))
    steps = (calls - 1).tolist()
    numbers = {"requests": len(steps), "after": steps[0], "compacted": followed}
    all_compacted = numbers["compacted"] == len(steps)
    which = "it" if len(steps) == 1 else "each of them"
    more = f" A compaction followed {which} before the next call." if all_compacted else ""
    stated = _stated_sizes(case, numbers)
    sentence = f"{refused_words(numbers)}, as the file says: {overflow_words(numbers)} (recorded).{stated}{more}"
    severity = WARNING if all_compacted else ERROR
    listed = tuple(max(0, step) for step in dict.fromkeys(steps))[:LISTED]
    return [Finding("refused", severity, max(0, steps[0]), sentence, numbers, (), listed, len(steps))]


def _stated_sizes(case: Case, numbers: dict[str, int]) -> str:
    """What the provider stated of these requests, as a sentence, "" where that is nothing or not one limit. Its figures
    are added to `numbers`."""
    session, window = case.facts.session, case.facts.window
    limits = {item.limit for item in session.refusals}
    if len(limits) != 1:
        return ""
    numbers["limit"] = limits.pop()
    largest = max(item.tokens for item in session.refusals)
    tokens = ""
    if largest:
        numbers["stated"] = largest
        # A request that is smaller than the limit was refused for the answer's room that it asked for beside.
        joint = " and" if largest > numbers["limit"] else ", which with room for an answer exceed"
        tokens = f"{largest:,} tokens{' for the largest' if numbers['requests'] > 1 else ''}{joint} "
    sentence = f" The provider stated {tokens}a limit of {numbers['limit']:,}{'' if tokens else ' tokens'}"
    is_own = models.stated_limit(session, models.main_model(session)) == numbers["limit"]
    if is_own and window.source is not Provenance.PROVIDER and numbers["limit"] < window.value:
        numbers["window"] = window.value
        return f"{sentence}, below {stated_window(case.facts)} of {window.value:,}."
    return f"{sentence}."


def refused_again(case: Case) -> list[Finding]:
    """Requests of a replay that fit the window and are as large as one that the provider refused."""
    steps, refused = case.refused_again, case.facts.refused_request
    if refused is None or not len(steps):
        return []
    first, last, worst = int(steps[0]), int(steps[-1]), int(steps[np.argmax(case.tokens[steps])])
    numbers = {
        "requests": len(steps),
        "first": first,
        "last": last,
        "tokens": int(case.tokens[worst]),
        "refused_tokens": refused.tokens,
        "after": refused.after,
    }
    sentence = (
        f"{_subject(first, last, len(steps))} within the window, but as large as the one that the provider refused "
        f"{_place_words(refused.after)}: {numbers['tokens']:,} tokens at {at_step(worst)}, {refused.tokens:,} there "
        "(modelled)."
    )
    return [Finding("refused_again", ERROR, worst, sentence, numbers, (MODELLED_TOKENS,), _listed(steps), len(steps))]


def _place_words(after: int) -> str:
    """Where a request was refused, by the last step before it."""
    return "before step 1" if after < 0 else f"after {at_step(after)}"


def limit_words(numbers: dict[str, int]) -> str:
    """The size that the provider stated of refused requests and its limit, in few words; "" where it did not."""
    if "limit" not in numbers:
        return ""
    limit = f"the provider takes {numbers['limit']:,}"
    if "stated" not in numbers:
        return f"{limit} tokens"
    answer = "" if numbers["stated"] > numbers["limit"] else " plus an answer"
    return f"{'up to ' if numbers['requests'] > 1 else ''}{numbers['stated']:,} tokens{answer}, {limit}"


def refused_words(numbers: dict[str, int]) -> str:
    """How many requests were too long, and where the first of them was."""
    first = "" if numbers["requests"] == 1 else "the first "
    return f"{counted(numbers['requests'], 'request')} failed as too long, {first}{_place_words(numbers['after'])}"


def runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Start and stop of every run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(start), int(stop)) for start, stop in edges.reshape(-1, 2)]


def _modelled(case: Case, step: int) -> tuple[str, ...]:
    if not case.modelled[step]:
        return ()
    return (MODELLED_TOKENS, SIZES_ONLY) if case.facts.is_uncounted else (MODELLED_TOKENS,)


def _listed(steps: Ints) -> tuple[int, ...]:
    return tuple(steps[:LISTED].tolist())
