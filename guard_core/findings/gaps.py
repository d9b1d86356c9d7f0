"""What a recording does not say of itself: calls without a count, and a history that was cut without a record."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from guard_core.costs import event_columns
from guard_core.defaults import CACHE_LEAST
from guard_core.estimation.baselines import LEAST_BYTES, returned_at
from guard_core.findings.claims import INFO, LISTED, WARNING, Finding
from guard_core.findings.facts import Case, Facts
from guard_core.findings.words import at_step, counted, totals_words
from guard_core.sessions import COUNTS_UNREAD, DAMAGED, NO_CONTENT, Evidence
from guard_core.triggers import is_counted
from guard_core.views import Rewritten

# Less is not a clearing but a cut of one result: the smallest beginning of a request that a provider's cache keeps.
LEAST_CLEARED = CACHE_LEAST


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
        if COUNTS_UNREAD in case.facts.session.notes:
            who += " that can be read: what looks like counts has places or names that are not known here"
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
    if case.facts.is_uncounted and (total := session.prompt_tokens_total):
        sentence += f" Only totals are recorded: {totals_words(session)}."
        numbers["total"] = total
        if session.mean_prompt_tokens is not None:  # 0 where there are more calls than tokens
            numbers |= {"total_calls": session.total_calls or 0, "average": session.mean_prompt_tokens}
        else:
            numbers["each"] = (total + answered // 2) // answered
            if answered > 1:
                mean = f"a request had {numbers['each']:,} on average"
                sentence += f" If there were no more than the {answered:,} here, {mean}."
    severity = WARNING if is_all else INFO
    return [Finding("no_usage", severity, first, sentence, numbers, (), tuple(missing[:LISTED].tolist()), len(missing))]


def left_branches(case: Case) -> list[Finding]:
    """Compactions, refused requests or a larger prompt on branches that were left: nothing else here speaks of them."""
    left = case.facts.session.left if case.is_recorded else None
    peak = int(case.tokens.max())
    if left is None or not (left.compactions or left.refused or left.largest > peak):
        return []
    numbers = {"messages": left.messages, "compactions": left.compactions, "refused": left.refused}
    held = [
        *([counted(left.compactions, "compaction")] if left.compactions else []),
        *([f"{counted(left.refused, 'request')} refused as too long"] if left.refused else []),
    ]
    if left.largest > peak:
        numbers |= {"largest": left.largest, "peak": peak}
        held.append(f"a prompt of {left.largest:,} tokens, more than any here ({peak:,})")
    sentence = (
        f"{counted(left.messages, 'message')} on abandoned branches (after a rewind or an edit) are not in this log, "
        f"with {', '.join(held)}. Verdict and figures are those of the branch that was continued."
    )
    return [Finding("left_branches", INFO, 0, sentence, numbers)]


def repeated_usage(case: Case) -> list[Finding]:
    """Counts that repeat the one before them to the token, though messages were added."""
    repeated = case.facts.repeated
    if not case.is_recorded or not len(repeated):
        return []
    calls, first = int(case.facts.requests.reported.sum()), int(repeated[0])
    sentence = (
        f"{len(repeated):,} of {calls:,} recorded counts repeat the one before them, although messages were "
        f"added: what "
        f"those calls sent is not known. The first is {at_step(first)}."
    )
    numbers, steps = {"repeated": len(repeated), "counted": calls}, tuple(repeated[:LISTED].tolist())
    return [Finding("usage_repeated", WARNING, first, sentence, numbers, (), steps, len(repeated))]


def counted_in_characters(case: Case) -> list[Finding]:
    """Counts that grow by one token per byte of text: they count characters, so nothing is concluded from them."""
    same, compared = case.facts.in_characters
    if not len(same):
        return []
    first = int(same[0])
    sentence = (
        f"Of {counted(compared, 'recorded count')} after {LEAST_BYTES} bytes of new text or more, {len(same):,} grew "
        "by one token per byte: they seem to count characters, so nothing is concluded from them. The first is "
        f"{at_step(first)}."
    )
    numbers = {"same": len(same), "compared": compared, "least_bytes": LEAST_BYTES}
    steps = tuple(same[:LISTED].tolist())
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
    blind = (
        " What left the request is not known: the file has no messages."
        if NO_CONTENT in case.facts.session.notes
        else ""
    )
    if DAMAGED in case.facts.session.notes:
        blind += " Damaged parts of the file were left out: they may hold the reason."
    more = "" if len(falls) == 1 else f" {counted(len(falls) - 1, 'more fall')} like it."
    if len(falls) > 1 and case.facts.is_miscounted:
        more += " Perhaps the counts leave out what the provider's cache held."
    sentence = (
        f"The recorded prompt fell from {worst.before:,} to {worst.after:,} tokens at {at_step(worst.step)}, "
        f"{f'though about {worst.added:,} were added and' if worst.added else 'and'} no compaction is recorded."
    )
    numbers = {"step": worst.step, "before": worst.before, "after": worst.after, "added": worst.added}
    if (back_step := returned_at(case.facts.ledger, worst)) >= 0:
        back = int(case.facts.ledger.steps["prompt_tokens"][back_step])
        numbers |= {"back": back, "back_step": back_step}
        sentence += (
            f" It returned to {back:,} at {at_step(back_step)}, by far more than was added there: the counts between "
            "are not of the whole history."
        )
    sentence += f"{blind}{more}"
    steps = tuple(fall.step for fall in falls[:LISTED])
    return [Finding("silent_truncation", WARNING, worst.step, sentence, numbers, (), steps, len(falls))]


class ResultClearing(NamedTuple):
    """What a request has less of tool results than the one before, by an edit and no compaction: how many messages,
    bytes by their texts, and prompt tokens, estimated by the share of their bytes that is gone. `again` of these
    messages had been shorter before than in the log already. `recorded`: the file has a record of the edit."""

    step: int
    messages: int
    again: int
    bytes: int
    tokens: int
    recorded: bool


def clearings(facts: Facts) -> tuple[ResultClearing, ...]:
    """Where older results are cleared or shortened, as the file records, or in the requests alone; the latter by at
    least LEAST_CLEARED tokens in all."""
    ledger, session, attributed = facts.ledger, facts.session, facts.attribution.tokens
    left: dict[int, int] = {}  # the fewest bytes of results that a request has had of a message
    cleared = []
    for step, (last, epoch) in enumerate(pairwise([-1, *ledger.steps["epoch"].tolist()])):
        item = session.compactions[epoch] if epoch >= 0 else None
        if epoch == last or item is None or is_counted(item):
            continue
        recorded = item.evidence is not Evidence.INFERRED
        if not recorded and (item.trigger or item.note):  # the reader knows what it was: a history built anew
            continue
        sizes = {
            part.event: event_columns(part.message)["result_bytes"] for part in item.base if isinstance(part, Rewritten)
        }
        whole = {event: int(ledger.events["result_bytes"][event]) for event in sizes}
        saved = {event: left.get(event, whole[event]) - size for event, size in sizes.items()}
        saved = {event: size for event, size in saved.items() if size > 0}
        if saved:
            again = len(saved.keys() & left.keys())
            left |= {event: sizes[event] for event in saved}
            shares = {event: size / int(ledger.events["bytes"][event]) for event, size in saved.items()}
            tokens = sum(int(attributed[event]) * share for event, share in shares.items())
            cleared.append(ResultClearing(step, len(saved), again, sum(saved.values()), round(tokens), recorded))
    enough = any(item.recorded for item in cleared) or sum(item.tokens for item in cleared) >= LEAST_CLEARED
    return tuple(cleared) if enough else ()


def clearing_words(item: ResultClearing) -> str:
    """What was cleared before one step, as a clause."""
    again = f", {item.again:,} of them once more" if item.again else ""
    return (
        f"the tool results of {counted(item.messages, 'older message')} were cleared or shortened{again}, about "
        f"{item.tokens:,} tokens (estimated; {item.bytes:,} bytes)"
    )


def cleared_results(case: Case) -> list[Finding]:
    """Messages whose tool results are shorter in later requests, without a compaction."""
    edits = clearings(case.facts) if case.is_recorded and case.facts.ledger.usage_ratio is None else ()
    if not edits:
        return []
    steps = [item.step for item in edits]
    where = (
        f"from {at_step(steps[0])} on"
        if len(steps) == 1
        else f"at {len(steps):,} steps, the first step {steps[0] + 1:,}"
    )
    cuts, size, tokens = (sum(values) for values in zip(*((one.messages, one.bytes, one.tokens) for one in edits)))
    messages = cuts - sum(item.again for item in edits)
    often = "" if cuts == messages else f", some more than once ({cuts:,} cuts in all)"
    recorded = sum(item.recorded for item in edits)
    sentence = (
        f"The tool results of {counted(messages, 'older message')} were cleared or shortened {where}{often}: about "
        f"{tokens:,} tokens less (estimated), {size:,} bytes. {_recorded_words(recorded, len(edits))}"
    )
    numbers = {"messages": messages, "cuts": cuts, "bytes": size, "tokens": tokens, "edits": len(edits)}
    numbers["recorded"] = recorded
    return [Finding("results_cleared", INFO, steps[0], sentence, numbers, (), tuple(steps[:LISTED]), len(steps))]


def _recorded_words(recorded: int, edits: int) -> str:
    """Whether the file says so itself."""
    if not recorded:
        return "The recording has no compaction there: only the requests show it."
    if recorded == edits:
        return "The file records it as an edit, not as a compaction."
    return f"The file records {recorded:,} of these edits; only the requests show the others."
