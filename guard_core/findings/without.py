"""The session without any automatic compaction: was compacting needed, and how much later could it have come."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np

from guard_core.counts import RECORDED, CountedCompaction
from guard_core.findings.answer_room import LONGEST, AnswerRoom
from guard_core.findings.claims import INFO, LISTED, MODELLED_TOKENS, SAME_TURNS, TRIGGER_NOT_RECORDED, WARNING, Finding
from guard_core.findings.facts import Case, Facts, Fired
from guard_core.findings.sizes import NEAR_MISS_SHARE
from guard_core.findings.sliding import others
from guard_core.findings.words import (
    at_step,
    counted,
    if_window,
    percent,
    trigger_not_recorded,
    uncounted_words,
    window_assumptions,
)
from guard_core.ledger import Ints
from guard_core.triggers import MANUAL, REQUESTED, UNKNOWN
from guard_core.views import View
from guard_core.windows.models import context_window
from guard_core.windows.window_evidence import Status, windows_by_model

NO_WINDOW = 2**62  # tokens, which no request has: of a call whose model's window is not known
MOST_APART = 0.25  # ours: real recordings of six agents lie within 0.07


@dataclass(frozen=True)
class Without:
    """The same calls without the automatic compactions: prompt tokens per step, the compactions left out that a call
    followed, and those that they replaced before any call was made."""

    tokens: Ints
    removed: tuple[Fired, ...]
    replaced: tuple[CountedCompaction, ...] = ()

    @property
    def count(self) -> int:
        """How many compactions are left out."""
        return len(self.removed) + len(self.replaced)


def without_automatic(case: Case) -> Without | None:
    """Either side without its automatic compactions: a replay as policy `none`, a recording with its manual ones.

    None where there is none, where the file does not hold what one of them took away, or has no count at all.
    """
    if not case.is_recorded:
        whole = np.maximum(case.facts.whole_log.columns["modelled_prompt_tokens"], 0)
        return Without(whole, case.fired) if case.fired else None
    removed = tuple(item for item in case.fired if item.counted and item.counted.trigger != MANUAL)
    items = [item.counted for item in removed if item.counted]
    replaced = tuple(other for item in items for _, other in case.facts.replaced_by(item) if other.trigger != MANUAL)
    if not removed or case.facts.is_uncounted or any(map(case.facts.removes_nothing, (*items, *replaced))):
        return None
    return Without(_uncompacted(case.facts, {item.place for item in items}), removed, replaced)


def _uncompacted(facts: Facts, removed: set[int]) -> Ints:
    """Prompt tokens of every step's request, each built on the last base before it that stays."""
    epochs, size = facts.ledger.steps["epoch"], facts.ledger.step_count
    heuristics = facts.whole_log.columns["heuristic_sent"]
    tokens = np.zeros(size, dtype=np.int64)
    starts = [(0, -1), *((step, place) for place, step in _staying(facts, removed))]
    stops = [step for step, _ in starts[1:]] + [size]
    for (start, place), stop in zip(starts, stops, strict=True):
        head: View = facts.ledger.bases[place].view if place >= 0 else ()
        kept_from = facts.ledger.bases[place].at if place >= 0 else 0
        if start < stop:
            tokens[start:stop] = facts.usage.run(start, stop, head, kept_from, heuristics[start:stop]).tokens
    same = epochs < min(removed)
    return np.where(same, facts.requests.tokens, np.maximum(tokens, 0))


def _staying(facts: Facts, removed: set[int]) -> list[tuple[int, int]]:
    """Places and first steps of the bases that stay: manual compactions, and edits of a history that nothing automatic
    has compacted since the last manual one."""
    counted = [item.place for item in facts.counts.compactions if item.trigger == MANUAL or item.place in removed]
    places, firsts = np.unique(facts.ledger.steps["epoch"], return_index=True)
    staying = []
    for place, step in zip(places.tolist(), firsts.tolist(), strict=True):
        latest = bisect_right(counted, place)
        if place >= 0 and not (latest and counted[latest - 1] in removed):
            staying.append((place, step))
    return staying


def _agrees_with_counts(case: Case, without: Without) -> bool:
    """Do the recorded counts, added up from call to call, come to about the same as the modelled requests.

    Where they do not, the provider counted something else than the messages of the file (a scripted provider, content
    that is left out), and what a longer history would have cost is not known. Nor is it where the recorder counted
    far more or less before a compaction than the model has there.
    """
    for item in without.removed:
        modelled = case.facts.grown_to(item.step)
        if abs(item.before - modelled) > MOST_APART * item.before:
            return False
    seen = np.flatnonzero(case.facts.requests.reported)
    counts, epochs = case.tokens[seen], case.facts.ledger.steps["epoch"][seen]
    if len(seen) < 2:
        return True
    grown = np.where(np.diff(epochs) == 0, np.maximum(np.diff(counts), 0), 0)
    added_up = int(counts[0]) + int(grown.sum())
    return abs(int(without.tokens.max()) - added_up) <= MOST_APART * added_up


def _is_known(case: Case, without: Without) -> bool:
    """Does a recording show what its requests would have been without them."""
    # Nor where the history was also shortened without a record, or the counts are not those of the requests.
    if has_smaller_window(case) or case.facts.falls or case.facts.is_miscounted:
        return False
    if not _agrees_with_counts(case, without):
        return False
    # Where only a model knows both peaks, and that without them is lower, the model has guessed what the compactions
    # left, and says nothing of the session without them.
    peak = case.facts.requests.peak
    return peak is None or peak.source == RECORDED or int(without.tokens.max()) >= peak.tokens


def has_smaller_window(case: Case) -> bool:
    """Did a model answer whose own window is smaller than the one that its calls are held against."""
    others = windows_by_model(case.facts.session, case.facts.answers)
    names = [name for name in case.facts.answers if name and others.get(name, 0) <= 0]
    windows = [window.value for name in names if (window := context_window(name))]
    return min(windows, default=case.window.value) < case.window.value


def needless_or_needed(case: Case) -> list[Finding]:
    """Whether the session would have fitted its window without them, and what follows. A window that slides by design
    is not meant to be needed. Calls of models whose window is not known are over none, and may be over theirs."""
    is_known = case.windows > 0
    without = without_automatic(case) if case.window_counts and is_known.any() else None
    if without is None or (case.is_recorded and not _is_known(case, without)):
        return []
    windows, tokens = np.where(is_known, case.windows, NO_WINDOW), without.tokens
    peak_step = int(np.argmax(tokens / windows))
    peak, first, window = int(tokens[peak_step]), without.removed[0], int(windows[peak_step])
    over = np.flatnonzero(tokens > windows)
    numbers: dict[str, Any] = {
        "compactions": without.count,
        "peak": peak,
        "peak_step": peak_step,
        "window": window,
        "calls_over": len(over),
        **({"larger": most} if (most := int(tokens.max())) > peak else {}),  # in a larger window
    }
    if case.is_recorded:
        numbers |= case.facts.uncounted
    if unsaid := _unknown(without):
        numbers["unknown_trigger"] = unsaid
    if not case.rests_on_window(peak_step):  # the fullest request was another model's
        numbers["own_window"] = case.window.value
    steps = tuple(item.step for item in without.removed[:LISTED])
    room = case.facts.answer_room
    assumptions = _assumptions(case, without)
    needed_with = tokens + (room.steps if room else 0)  # what answers may take of the window, too
    tight = int(np.count_nonzero((tokens <= windows) & (needed_with > windows)))
    is_needless = peak < NEAR_MISS_SHARE * window and not tight
    if room is not None and (is_needless or tight):
        numbers |= {"answer": room.tokens, "answer_source": room.source, "tight": tight}
        assumptions = (*assumptions, *room.assumptions)
    if is_needless:
        lasting = {item.index for item in others(case)}
        slides = any(item.index not in lasting for item in without.removed)
        if case.window.status is Status.DOUBTED or _was_refused(case, without) or slides or not is_known.all():
            return []
        severity = INFO if case.window.status is Status.ASSUMED else WARNING
        sentence = _needless_words(case, without, numbers, room)
        return [Finding("needless", severity, first.step, sentence, numbers, assumptions, steps, without.count)]
    if _was_refused(case, without) and not len(over):
        return []  # nothing would be over the window, and yet the provider refused a request
    late = np.flatnonzero(needed_with[first.step :] > windows[first.step :])
    numbers["first"] = first.step
    is_late = case.is_recorded and (first.before > windows[first.step] or case.facts.is_forced(first))
    if len(late) and not is_late:
        numbers |= {"first_over": first.step + int(late[0]), "could_wait": int(late[0])}
    sentence = _needed_words(case, without, numbers, room)
    return [Finding("needed", INFO, first.step, sentence, numbers, assumptions, steps, without.count)]


def _was_refused(case: Case, without: Without) -> bool:
    """Did the provider refuse a request as too long, or may it have."""
    compactions = case.facts.session.compactions
    removed = (compactions[item.counted.place] for item in without.removed if item.counted)
    if case.facts.session.refused or any(item.trigger == REQUESTED for item in removed):
        return True
    return any(map(case.facts.is_forced, without.removed))


def _assumptions(case: Case, without: Without) -> tuple[str, ...]:
    return (
        *window_assumptions(case.window),
        *((TRIGGER_NOT_RECORDED,) if _unknown(without) else ()),
        SAME_TURNS,
        MODELLED_TOKENS,
    )


def _needless_words(case: Case, without: Without, numbers: dict[str, Any], room: AnswerRoom | None) -> str:
    count, share = without.count, percent(numbers["peak"] / numbers["window"])
    verb, which = ("was", "it") if count == 1 else ("were", "them")
    is_plain = room is None or (room.source == LONGEST and room.tokens <= (1 - NEAR_MISS_SHARE) * numbers["window"])
    leaves = f", which leaves {room.words}" if room and not is_plain else ""  # less has room in what needless leaves
    largest = "fullest" if "larger" in numbers else "largest"
    return (
        f"{counted(count, _name(without))} {verb} not needed{if_window(case.window)}: with the same calls and without "
        f"{which}, the {largest} request has {numbers['peak']:,} tokens at {at_step(numbers['peak_step'])}, "
        f"{share} of {_its_window(numbers)} (modelled{_uncounted(numbers)}){leaves}.{_unsure(without)}"
    )


def _needed_words(case: Case, without: Without, numbers: dict[str, Any], room: AnswerRoom | None) -> str:
    share = percent(numbers["peak"] / numbers["window"])
    it = "the window of its model" if "own_window" in numbers else "it"
    over = f"{counted(numbers['calls_over'], 'call')} over {it}" if numbers["calls_over"] else f"no call over {it}"
    if room is not None and numbers.get("tight"):
        over += f" and {counted(numbers['tight'], 'call')} without {room.words}"
    stays = case.is_recorded and _unknown(without) and case.facts.counts.manual
    but_manual = " but the manual ones" if stays else ""
    sentence = (
        f"Without any {_name(without)}{but_manual}, and with the same calls, the peak is {share} of "
        f"{_its_window(numbers)} at {at_step(numbers['peak_step'])}, {over} (modelled{_uncounted(numbers)})"
        f"{if_window(case.window)}."
    )
    if numbers.get("could_wait", 0) > 0:
        wait = counted(numbers["could_wait"], "call")
        the_first = "With that room, the first" if numbers.get("tight") else "The first"
        sentence += f" {the_first} could have come {wait} later, at {at_step(numbers['first_over'])}."
    return sentence + _unsure(without)


def _its_window(numbers: dict[str, Any]) -> str:
    return f"its model's window of {numbers['window']:,}" if "own_window" in numbers else "the window"


def _uncounted(numbers: dict[str, Any]) -> str:
    return uncounted_words(numbers) if "uncounted" in numbers else ""


def _name(without: Without) -> str:
    """What the compactions are called: automatic only where the file says so."""
    return "compaction" if without.removed[0].record or _unknown(without) else "automatic compaction"


def _unsure(without: Without) -> str:
    unsaid = _unknown(without)
    return f" {trigger_not_recorded(unsaid, without.count)}" if unsaid else ""


def _unknown(without: Without) -> int:
    """How many of them have a trigger that the file does not say."""
    items = (*(item.counted for item in without.removed if item.counted), *without.replaced)
    return sum(item.trigger == UNKNOWN for item in items)


def avoided_overflows(case: Case) -> list[Finding]:
    """Calls that would be over the window without compaction, and that a replay keeps within it."""
    without = without_automatic(case) if case.window_counts and not case.is_recorded else None
    if without is None:
        return []
    before, after = int(np.count_nonzero(without.tokens > case.windows)), len(case.over)
    if after >= before:
        return []
    left = "none" if not after else f"{after:,}"
    sentence = (
        f"This replay removes {counted(before - after, 'overflow')}: without compaction {counted(before, 'call')} "
        f"would be over the window of {case.window.value:,}, with it {left} (modelled){if_window(case.window)}."
    )
    numbers = {"without": before, "with": after, "window": case.window.value}
    first = case.fired[0].step
    assumptions = (*window_assumptions(case.window), SAME_TURNS, MODELLED_TOKENS)
    return [Finding("avoided_overflows", INFO, first, sentence, numbers, assumptions, (), before - after)]
