"""Compactions that did not help: again and again, without effect, or with more afterwards than before."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from guard_core.defaults import LOOP_LENGTH
from guard_core.estimation.recorder_figures import MOST_UNSEEN
from guard_core.findings.claims import ERROR, INFO, LISTED, MODELLED_TOKENS, WARNING, Finding
from guard_core.findings.facts import Case, Fired
from guard_core.findings.sliding import others
from guard_core.findings.words import at_step, counted, steps_words
from guard_core.sliding import rows_of
from guard_core.triggers import MANUAL

# Ours, like the words.
THRASH_LENGTH, THRASH_STEPS = 3, 6  # so many compactions in a row, each fewer than so many steps after the one before
# The history is back in a request that is larger than the one after the compaction by 1.5 times what was added since
# (estimates of that may be a third too low) and half of what the compaction removed.
RETURN_GROWTH, RETURN_SHARE = 1.5, 0.5
MOST_ABOVE = 4  # a recorder's figure above so many times the largest request is not a request's
MOST_PER_HEURISTIC = 5  # provider tokens per heuristic token (four bytes); no text has more
# Of 196 calls of the samples, predicted one call ahead, 98 % grew by at most the larger of these above the estimate.
MODEL_TOKENS, MODEL_SHARE = 1_000, 0.5  # tokens; a share of the estimated growth


def loops(case: Case) -> list[Finding]:
    """Compactions at every step; several before the same call are those of one step."""
    findings = []
    for group in rows_of(_automatic(case), 1):
        firsts = _first_of_each_step(group)
        if len(firsts) >= LOOP_LENGTH:
            first, last = firsts[0], firsts[-1]
            numbers = {
                "length": len(firsts),
                "first": first.step,
                "last": last.step,
                "all": len(group),
                "before": first.before,
                "after": first.after,
                "again": firsts[1].before,
            }
            sentence = f"A loop: {loop_words(numbers)}; {_loop_sizes(case, first, firsts[1])}."
            steps = tuple(item.step for item in firsts[:LISTED])
            modelled = (MODELLED_TOKENS,) if case.modelled[first.step] else ()
            findings.append(Finding("loop", ERROR, first.step, sentence, numbers, modelled, steps, len(firsts)))
    return findings


def loop_words(numbers: Mapping[str, int]) -> str:
    """How many compactions there are at which steps."""
    length, all_of_them = numbers["length"], numbers["all"]
    steps = steps_words(numbers["first"], numbers["last"])
    if all_of_them == length:
        return f"{length:,} compactions at consecutive {steps}"
    return f"{all_of_them:,} compactions at {length:,} consecutive steps, {steps}"


def _first_of_each_step(group: list[Fired]) -> list[Fired]:
    """The first of several compactions before the same call."""
    return [item for place, item in enumerate(group) if not place or item.step > group[place - 1].step]


def _automatic(case: Case) -> list[Fired]:
    """The compactions that no person asked for, and that are not steps of a sliding window."""
    return [item for item in others(case) if item.counted is None or item.counted.trigger != MANUAL]


def _loop_sizes(case: Case, first: Fired, following: Fired) -> str:
    """From which size to which the first took the request, and where the next began."""
    if _is_guessed(case, first):
        return "this file does not say how much the first one removed"
    modelled = " (modelled)" if case.modelled[first.step] else ""
    sizes = f"from {first.before:,} to {first.after:,} tokens, the next began at {following.before:,}"
    return f"the first went {sizes}{modelled}"


def thrashing(case: Case) -> list[Finding]:
    """Compactions in quick succession, though not at every step."""
    findings = []
    for row in rows_of(_automatic(case), THRASH_STEPS - 1):
        group = _first_of_each_step(row)
        gaps = [after.step - before.step for before, after in pairwise(group)]
        if len(group) >= THRASH_LENGTH and max(gaps) > 1:
            first, last = group[0].step, group[-1].step
            mean = sum(gaps) / len(gaps)
            numbers = {"length": len(group), "first": first, "last": last, "all": len(row), "mean_gap": mean}
            sentence = f"Thrashing: {pace_words(numbers)}."
            steps = tuple(item.step for item in group[:LISTED])
            findings.append(Finding("thrash", WARNING, first, sentence, numbers, (), steps, len(group)))
    return findings


def pace_words(numbers: Mapping[str, Any]) -> str:
    """How many compactions there are in which steps, and how quickly they follow one another."""
    length, steps, mean = numbers["length"], steps_words(numbers["first"], numbers["last"]), numbers["mean_gap"]
    if numbers["all"] == length:
        return f"{length:,} compactions in {steps}, on average one every {mean:.1f} steps"
    return f"{numbers['all']:,} compactions at {length:,} of the {steps}, on average every {mean:.1f} steps"


def not_kept(case: Case) -> list[Finding]:
    """Compactions after which the whole history came back, though neither a resume nor an edit explains it."""
    if not _follows_text(case):
        return []
    lasting = {item.index for item in others(case)}
    followed = zip(case.fired, (*case.fired[1:], None), strict=False)
    returns = [
        numbers for item, following in followed if item.index in lasting and (numbers := _return(case, item, following))
    ]
    if not returns:
        return []
    first, where = returns[0], {item.index: item for item in case.fired}
    before = _before_words(case, where[first["compaction"]])
    steps = tuple(where[numbers["compaction"]].step for numbers in returns[:LISTED])
    more = "" if len(returns) == 1 else f" {counted(len(returns) - 1, 'more compaction')} had no lasting effect either."
    sentence = (
        f"Compaction {first['compaction'] + 1:,} ({at_step(steps[0])}) did not last: {before} → {first['after']:,} "
        f"tokens, and {first['again']:,} again at {at_step(first['again_step'])}, though only {first['added']:,} "
        f"(modelled) had been added.{more}"
    )
    return [Finding("summary_not_kept", ERROR, steps[0], sentence, first, (MODELLED_TOKENS,), steps, len(returns))]


def _before_words(case: Case, item: Fired) -> str:
    """The request without a compaction, and whether any of it is modelled."""
    return f"{item.before:,}{'' if _is_before_recorded(case, item) and not item.added else ' (modelled)'}"


def _is_before_recorded(case: Case, item: Fired) -> bool:
    """Does the file say how large the request was before a compaction."""
    return item.counted is not None and case.facts.ledger.bases[item.counted.place].tokens_before > 0


def _follows_text(case: Case) -> bool:
    """Do recorded counts grow with the text, before anything was compacted? Else they prove nothing afterwards."""
    if not case.is_recorded or not case.fired:
        return True
    if case.facts.is_miscounted:
        return False
    seen = np.flatnonzero(case.facts.requests.reported[: case.fired[0].step])
    if not len(seen):
        return False
    at, prefix = case.facts.ledger.steps["at"], case.facts.ledger.prefix_of(("text_tokens", "inline_tokens"))
    counts, texts = np.diff(case.tokens[seen]), np.diff(prefix[at[seen]])
    in_all = counts.sum() <= MOST_PER_HEURISTIC * texts.sum()
    return bool(in_all and (counts <= MOST_PER_HEURISTIC * texts + MOST_UNSEEN).all())


def _return(case: Case, item: Fired, following: Fired | None) -> dict[str, int] | None:
    """The first request, up to the next compaction, that has the history back; none where a recorder's own figure is
    far above anything that was sent."""
    if following is not None and following.step == item.step:
        return None  # no request was sent between the two
    figures = [item.before, *([following.before] if following else [])]
    if case.is_recorded and max(figures) > MOST_ABOVE * int(case.tokens.max()):
        return None
    start, stop = item.step + 1, following.step if following else len(case.tokens)
    if case.is_recorded:  # up to the last request built on this compaction alone
        stop = int(case.facts.stretches[item.step])
    growth = case.facts.growth
    again = case.tokens[start:stop].copy()
    if case.is_recorded:
        again[~case.facts.requests.reported[start:stop]] = 0
    added = np.maximum(growth[start:stop] - growth[item.step], 0)
    if following is not None and stop == following.step:  # as it would have been without the next compaction
        again = np.append(again, following.before)
        added = np.append(added, max(0, int(growth[stop] - growth[item.step])))
    limit = item.after + RETURN_GROWTH * added + RETURN_SHARE * max(0, item.before - item.after)
    back = np.flatnonzero((again > limit) & (item.before > item.after))
    if not len(back):
        return None
    place = int(back[0])
    return {
        "compaction": item.index,
        "before": item.before,
        "after": item.after,
        "again": int(again[place]),
        "again_step": start + place,
        "added": int(added[place]),
    }


def grown(case: Case) -> list[Finding]:
    """Compactions whose request was not smaller than the one before, whatever the error of what is modelled of that."""
    if case.facts.is_miscounted:
        return []
    larger = [item for item in case.fired if _is_larger(case, item)]
    if not larger:
        return []
    worst = max(larger, key=lambda item: item.after - item.before)
    blind = worst.counted is not None and case.facts.removes_nothing(worst.counted)
    missing = " What the compaction removed is not in the file." if blind else ""
    modelled = bool(case.modelled[worst.step])
    before = f"{worst.before:,}" if modelled else _before_words(case, worst)
    more = (
        "" if len(larger) == 1 else f" {counted(len(larger) - 1, 'more compaction')} did not shrink the request either."
    )
    what = "was followed by a larger request" if worst.after > worst.before else "did not shrink the request"
    sentence = (
        f"Compaction {worst.index + 1:,} ({at_step(worst.step)}) {what}: {before} → "
        f"{worst.after:,} tokens{' (modelled)' if modelled else ''}.{missing}{more}"
    )
    numbers = {"compaction": worst.index, "before": worst.before, "after": worst.after}
    steps = tuple(item.step for item in larger[:LISTED])
    severity = INFO if blind else WARNING
    return [Finding("grown", severity, worst.step, sentence, numbers, (MODELLED_TOKENS,), steps, len(larger))]


def _is_larger(case: Case, item: Fired) -> bool:
    """Is the counted request after a compaction not smaller than the one before it, whatever the model's error."""
    if item.after < item.before or item.before <= 0:
        return False
    if case.facts.ledger.usage_ratio is not None:  # of a simulation every count is exact
        return True
    if case.modelled[item.step] or _is_before_guessed(case, item) or case.facts.is_forced(item):
        return False  # of a refused request all that is known is that it was too large
    if item.after < _last_count(case, item):  # whatever the agent counted itself: requests only grow
        return False
    # Counted by the recorder, else by the provider at the last call.
    assert item.counted is not None
    figure = case.facts.ledger.bases[item.counted.place].tokens_before
    modelled = item.before - (figure if figure > 0 else _last_count(case, item))
    return not modelled or item.after >= item.before + max(MODEL_TOKENS, MODEL_SHARE * modelled)


def _last_count(case: Case, item: Fired) -> int:
    """The provider's last count between a compaction and the one before it; 0 where there is none."""
    start = max((other.step for other in case.fired if other.step < item.step), default=0)
    seen = np.flatnonzero(case.facts.requests.reported[start : item.step])
    return int(case.tokens[start + int(seen[-1])]) if len(seen) else 0


def _is_guessed(case: Case, item: Fired) -> bool:
    """Is the request after it, or the one before, only estimated, so that their difference proves nothing: an encrypted
    summary, no provider's count of any request before it, or content that the file does not hold."""
    if item.counted is None or case.facts.ledger.usage_ratio is not None:
        return False
    estimated = bool(case.modelled[item.step])
    if case.facts.removes_nothing(item.counted):
        estimated |= case.facts.ledger.bases[item.counted.place].tokens_before <= 0
    return estimated and (
        case.facts.is_sealed(item.counted)
        or case.facts.is_uncounted
        or _is_before_guessed(case, item)
        or case.facts.removes_nothing(item.counted)
    )


def _is_before_guessed(case: Case, item: Fired) -> bool:
    """Is the request before a recorded compaction unknown: nothing was counted since the compaction before that."""
    return not _is_before_recorded(case, item) and not _last_count(case, item)
