"""What a recording does not say of itself: calls without a count, and a history that was cut without a record."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from guard_core.events import Event, ToolResultPart
from guard_core.findings.claims import INFO, LISTED, WARNING, Finding
from guard_core.findings.facts import Case
from guard_core.findings.words import at_step, counted, totals_words
from guard_core.sessions import Evidence
from guard_core.triggers import is_counted


def unreported(case: Case) -> list[Finding]:
    """Answered calls without a count."""
    steps = case.facts.ledger.steps
    missing = np.flatnonzero((steps["prompt_tokens"] <= 0) & (steps["response"] >= 0))
    if not case.is_recorded or not len(missing):
        return []
    answered = int(((steps["prompt_tokens"] > 0) | (steps["response"] >= 0)).sum())
    is_all, first = len(missing) == answered, int(missing[0])
    name = "call" if answered == case.facts.ledger.step_count else "answered call"
    calls, lack = counted(answered, name), "no recorded token usage"
    if is_all:
        who = f"The only {name} has {lack}" if answered == 1 else f"None of the {calls} has recorded token usage"
        lacking = case.facts.not_estimated
        sentence = f"{who}. Every figure is an estimate"
        sentence += (
            f", without the {lacking}, which {'is' if lacking == 'system prompt' else 'are'} not in the file."
            if lacking
            else "."
        )
    elif len(missing) == 1:
        sentence = f"1 of {calls} has {lack}: {at_step(first)}."
    else:
        sentence = f"{len(missing):,} of {calls} have {lack}. The first is {at_step(first)}."
    numbers = {"missing": len(missing), "calls": answered}
    session = case.facts.session
    if case.facts.is_uncounted and session.mean_prompt_tokens:
        sentence += f" Only totals are recorded: {totals_words(session)}."
        numbers |= {
            "total": session.prompt_tokens_total or 0,
            "total_calls": session.total_calls or 0,
            "average": session.mean_prompt_tokens,
        }
    severity = WARNING if is_all else INFO
    return [Finding("no_usage", severity, first, sentence, numbers, (), tuple(missing[:LISTED].tolist()), len(missing))]


def repeated_usage(case: Case) -> list[Finding]:
    """Counts that repeat the one before them to the token, though messages were added."""
    repeated = case.facts.repeated
    if not case.is_recorded or not len(repeated):
        return []
    calls, first = int(case.facts.requests.reported.sum()), int(repeated[0])
    sentence = (
        f"{len(repeated):,} of {calls:,} recorded counts repeat the one before them, though messages were added: what "
        f"those calls sent is not known. The first is {at_step(first)}."
    )
    numbers, steps = {"repeated": len(repeated), "counted": calls}, tuple(repeated[:LISTED].tolist())
    return [Finding("usage_repeated", WARNING, first, sentence, numbers, (), steps, len(repeated))]


def counted_in_characters(case: Case) -> list[Finding]:
    """Counts that grow by a token for each byte of text: of characters, from which nothing follows."""
    same, compared = case.facts.in_characters
    if not len(same):
        return []
    first = int(same[0])
    sentence = (
        f"{len(same):,} of {counted(compared, 'recorded count')} grew by as many tokens as the new text has bytes: "
        f"they seem to count characters, and nothing is concluded from them. The first is {at_step(first)}."
    )
    numbers, steps = {"same": len(same), "compared": compared}, tuple(same[:LISTED].tolist())
    return [Finding("usage_in_characters", WARNING, first, sentence, numbers, (), steps, len(same))]


def cached_above_prompt(case: Case) -> list[Finding]:
    """Counts of which more is said to be read from the cache than there is."""
    above = case.facts.above_prompt
    if not case.is_recorded or not len(above):
        return []
    calls, first = int(case.facts.requests.reported.sum()), int(above[0])
    prompt, cached = (int(case.facts.ledger.steps[name][first]) for name in ("prompt_tokens", "cached_tokens"))
    has = "has" if len(above) == 1 else "have"
    sentence = (
        f"{len(above):,} of {counted(calls, 'recorded count')} {has} more cached tokens than prompt tokens, the first "
        f"at {at_step(first)}: {cached:,} of {prompt:,}. Perhaps the counts leave out what the provider's cache held: "
        "the requests were then larger than these figures."
    )
    numbers = {"above": len(above), "counted": calls, "prompt": prompt, "cached": cached}
    return [Finding("cached_above", WARNING, first, sentence, numbers, (), tuple(above[:LISTED].tolist()), len(above))]


def silent_truncation(case: Case) -> list[Finding]:
    """Recorded prompts that fell while the log grew, though no compaction is recorded."""
    falls = case.facts.falls if case.is_recorded else ()
    if not falls:
        return []
    worst = max(falls, key=lambda fall: fall.before + fall.added - fall.after)
    more = "" if len(falls) == 1 else f" {counted(len(falls) - 1, 'more fall')} like it."
    if len(falls) > 1 and case.facts.is_miscounted:
        more += " Perhaps the counts leave out what the provider's cache held."
    sentence = (
        f"The recorded prompt fell from {worst.before:,} to {worst.after:,} tokens at {at_step(worst.step)}, though "
        f"about {worst.added:,} were added and no compaction is recorded.{more}"
    )
    numbers = {"step": worst.step, "before": worst.before, "after": worst.after, "added": worst.added}
    steps = tuple(fall.step for fall in falls[:LISTED])
    return [Finding("silent_truncation", WARNING, worst.step, sentence, numbers, (), steps, len(falls))]


def cleared_results(case: Case) -> list[Finding]:
    """Messages whose tool results are shorter in later requests, though the recording says nothing of it."""
    ledger, session = case.facts.ledger, case.facts.session
    if not case.is_recorded or ledger.usage_ratio is not None:
        return []
    places: dict[str, int] = {}  # the event that has the result of each call, by the call's id
    known: set[int] = set()
    steps, size = [], 0
    for step, (last, epoch) in enumerate(pairwise([-1, *ledger.steps["epoch"].tolist()])):
        item = session.compactions[epoch] if epoch >= 0 else None
        if epoch == last or item is None or item.evidence is not Evidence.INFERRED or is_counted(item):
            continue
        if item.trigger or item.note:  # the reader knows what it was: a resume, a history built anew
            continue
        places = places or {name: at for at, event in enumerate(session.events) for name in _answered_calls(event)}
        after, before = ledger.bases[epoch].costs["result_bytes"], ledger.events["result_bytes"]
        less = {
            at: int(before[at]) - after[index]
            for index, message in enumerate(item.messages)
            for at in {places[name] for name in _answered_calls(message) if name in places}
        }
        fresh = {event: saved for event, saved in less.items() if saved > 0 and event not in known}
        if fresh:
            steps.append(step)
            known |= fresh.keys()
            size += sum(fresh.values())
    if not steps:
        return []
    where = (
        f"from {at_step(steps[0])} on"
        if len(steps) == 1
        else f"at {len(steps):,} steps, the first step {steps[0] + 1:,}"
    )
    sentence = (
        f"The tool results of {counted(len(known), 'older message')} were cleared or shortened {where}: {size:,} bytes "
        "less, by their texts in the file. The recording has no compaction there: only the requests show it."
    )
    numbers = {"messages": len(known), "bytes": size, "edits": len(steps)}
    return [Finding("results_cleared", INFO, steps[0], sentence, numbers, (), tuple(steps[:LISTED]), len(steps))]


def _answered_calls(event: Event) -> list[str]:
    """The ids of the calls whose results a message has; results without an id are not known again when changed."""
    return [part.call_id for part in event.parts if isinstance(part, ToolResultPart) and part.call_id]
