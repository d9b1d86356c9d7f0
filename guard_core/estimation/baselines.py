"""Baselines: where a recorded count does not continue the one before it although the log only grew.

A provider or an agent may leave older content out of a request and say nothing: the recorded prompt falls while the log
grows. Reasoning of an earlier turn that is not sent again is usual and not meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from guard_core.costs import HAS_MEDIA
from guard_core.estimation.ratios import STARTING, Floats, content
from guard_core.ledger import Ints, Ledger, prefix_sums

# What is missing must be this much of the request before (one part in LEAST_SHARE) and this many tokens; a smaller fall
# may be cleared reasoning, or the error of what was added.
LEAST_SHARE, LEAST_TOKENS = 10, 2_000
# No text costs more than this many prompt tokens per lexical token, no picture more (Anthropic: about 1,600).
MOST_PER_LEXICAL, MOST_PER_PICTURE = 4, 1_600
# Two tokenizers that count the same text with less difference than that are taken for one, nor on fewer tokens.
LEAST_FACTOR, LEAST_MEASURED, LEAST_STRETCHES = 1.08, 2_000, 5
MOST_RAISED = 4  # calls in a row, ours: web searches that the provider runs while it answers raise the counts of a few
DEEP = 0.7  # ours: of the prompt before; compactions of the recordings at hand leave 0.04 to 0.64
# Bytes of a token of reasoning at least, in words or sealed: ours; readable text has about 4, sealed text more.
REASONING_BYTES = 3
MOST_UNCOUNTED = 20  # ours: lexical tokens that a request may grow by without a token more; no text costs so little
# Prompts that grow by as many tokens as bytes, give or take this share, on so many bytes: in the recordings at hand at
# most 1.4 % of a session's do, for no text of a conversation has a token for each byte.
SAME_AS_BYTES, LEAST_BYTES = 0.05, 400
QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class ShrunkRequest:
    """A request smaller than the one before it, in tokens; `added` is an estimate of what the log grew by."""

    step: int
    before: int
    after: int
    added: int

    @property
    def missing(self) -> int:
        """Tokens that the request would have had more."""
        return self.before + self.added - self.after

    @property
    def is_deep(self) -> bool:
        """Is so much of the request gone that most compactions leave no less."""
        return self.after < DEEP * self.before


def silent_truncations(ledger: Ledger) -> tuple[ShrunkRequest, ...]:
    """The falls of the prompt at which messages of the log seem to be gone, not only what a few calls had beside it."""
    if "silent truncations" not in ledger.derived:
        (first, last), cuts = continued(ledger), list[ShrunkRequest]()
        for fall in unexplained_falls(ledger):
            row = int(np.searchsorted(last, fall.step))
            if not _had_risen(ledger, fall, (first[: row + 1], last[: row + 1]), cuts[-1:]):
                cuts.append(fall)
        ledger.derived["silent truncations"] = tuple(cuts)
    known: tuple[ShrunkRequest, ...] = ledger.derived["silent truncations"]
    return known


def unexplained_falls(ledger: Ledger) -> tuple[ShrunkRequest, ...]:
    """The steps at which the recorded prompt falls while the log grew and no compaction is recorded."""
    if "unexplained falls" not in ledger.derived:
        ledger.derived["unexplained falls"] = _unexplained_falls(ledger)
    known: tuple[ShrunkRequest, ...] = ledger.derived["unexplained falls"]
    return known


def _unexplained_falls(ledger: Ledger) -> tuple[ShrunkRequest, ...]:
    first, last = continued(ledger)
    recorded, at = ledger.steps["prompt_tokens"], ledger.steps["at"]
    lexical = ledger.prefix("lexical_tokens")
    added = lexical[at[last]] - lexical[at[first]]
    missing = recorded[first] + added - recorded[last]
    least = _least_fall(recorded[first])
    same_model = ledger.steps["model"][first] == ledger.steps["model"][last]
    fallen = (recorded[last] < recorded[first]) & (at[last] > at[first])
    fallen &= (missing >= least) & (missing > _reasoning(ledger, first, last))
    fallen &= ~np.isin(first, repeated_counts(ledger))  # a fall from a count that is another call's
    recounted = {change.step for change in count_changes(ledger)}
    return tuple(
        ShrunkRequest(int(last[row]), int(recorded[first[row]]), int(recorded[last[row]]), int(added[row]))
        for row in np.flatnonzero(fallen & same_model)
        if int(last[row]) not in recounted
    )


def _had_risen(
    ledger: Ledger, fall: ShrunkRequest, neighbours: tuple[Ints, Ints], earlier: Sequence[ShrunkRequest]
) -> bool:
    """Does a request lack only what a few calls before it had beside the log, such as pages that the provider read
    while it answered: of what was sent before them, and of the texts since, it lacks less than a fall. A count that is
    still low from an `earlier` fall is no measure of that. `neighbours` are those of `continued` up to the fall."""
    recorded, at, model = (ledger.steps[name] for name in ("prompt_tokens", "at", "model"))
    lexical, pictures, step = ledger.prefix("lexical_tokens"), _pictures(ledger), fall.step
    firsts, lasts = neighbours
    before, place = int(firsts[-1]), len(firsts) - 1
    for _ in range(MOST_RAISED):
        place -= 1
        if place < 0 or lasts[place] != before:
            return False
        before = int(firsts[place])
        if any(
            recorded[one.step : before + 1].max(initial=0) < one.before - _least_fall(one.before) for one in earlier
        ):
            return False
        # The tokens of pictures are not known.
        if model[before] != model[step] or pictures[at[step]] > pictures[at[before]]:
            return False
        lacking = int(recorded[before] + lexical[at[step]] - lexical[at[before]] - recorded[step])
        if lacking < _least_fall(int(recorded[before])) and 2 * lacking <= fall.missing:
            return True
    return False


def _pictures(ledger: Ledger) -> Ints:
    """How many of the messages up to each one have pictures."""
    return ledger.prefix_by("messages with pictures", lambda known: ((known.events["flags"] & HAS_MEDIA) > 0) * 1)


def returned_at(ledger: Ledger, fall: ShrunkRequest) -> int:
    """The step at which a count is back that had fallen; -1: none. It is no smaller than before the fall, or by less
    than makes a fall (reasoning of an earlier turn may be gone), and at least half of what was missing is more than
    what was added at that step: no agent puts a history together again."""
    first, last = continued(ledger)
    recorded, at, lexical = ledger.steps["prompt_tokens"], ledger.steps["at"], ledger.prefix("lexical_tokens")
    like = last > fall.step
    for name in ("epoch", "model"):
        like &= ledger.steps[name][last] == ledger.steps[name][fall.step]
    first, last = first[like], last[like]
    more = recorded[last] - recorded[first] - (lexical[at[last]] - lexical[at[first]])
    grown_back = np.flatnonzero(recorded[last] >= fall.before)
    stop = int(grown_back[0]) + 1 if len(grown_back) else len(last)
    is_back = (recorded[last] > fall.before - _least_fall(fall.before)) & (2 * more >= fall.missing)
    back = np.flatnonzero(is_back[:stop])
    return int(last[back[0]]) if len(back) else -1


def _least_fall(before: Ints | int) -> Ints:
    """How many tokens must be missing where a request had `before` tokens."""
    return np.asarray(np.maximum(LEAST_TOKENS, np.asarray(before) // LEAST_SHARE), dtype=np.int64)


def falls_at_other_models(ledger: Ledger) -> Ints:
    """The steps at which another model is asked, or only one of the two is recorded, and the recorded prompt falls as
    far as most compactions take it, though the log grew: it counts otherwise, or the history was cut, which the file
    does not say."""
    first, last = continued(ledger)
    recorded, at, model = (ledger.steps[name] for name in ("prompt_tokens", "at", "model"))
    is_deep = (recorded[last] < DEEP * recorded[first]) & (at[last] > at[first])
    return np.asarray(last[is_deep & (model[first] != model[last])])


def repeated_counts(ledger: Ledger) -> Ints:
    """The steps whose recorded prompt is that of the counted call before, to the token, though text was added since and
    the requests differ in size: a recorder has written down an earlier count once more, or the provider is a script."""
    recorded, at, epoch = (ledger.steps[name] for name in ("prompt_tokens", "at", "epoch"))
    reported, lexical = np.flatnonzero(recorded > 0), ledger.prefix("lexical_tokens")
    first, last = reported[:-1], reported[1:]
    repeated = (recorded[first] == recorded[last]) & (lexical[at[last]] - lexical[at[first]] > MOST_UNCOUNTED)
    for row in np.flatnonzero(repeated & (epoch[first] != epoch[last])):
        views = [ledger.recorded_view(int(step[row])) for step in (first, last)]
        before, after = (ledger.price(view, "lexical_tokens", epoch=base) for view, base in views)
        repeated[row] = abs(after - before) > MOST_UNCOUNTED
    return np.asarray(last[repeated])


def grown_by_bytes(ledger: Ledger) -> tuple[Ints, int]:
    """The steps whose recorded prompt grew by as many tokens as bytes of text were added, and how many could be
    compared: a recorder has written down characters, or a script has."""
    first, last = continued(ledger)
    size, recorded, at = ledger.prefix("bytes"), ledger.steps["prompt_tokens"], ledger.steps["at"]
    added, grown = size[at[last]] - size[at[first]], recorded[last] - recorded[first]
    is_large = added >= LEAST_BYTES
    is_same = is_large & (np.abs(grown - added) <= SAME_AS_BYTES * added)
    return np.asarray(last[is_same]), int(np.count_nonzero(is_large))


@dataclass(frozen=True)
class Jump:
    """A request larger or smaller than the one before it, in tokens, by more than messages explain.

    `factor`: from here on the same content costs so many times the tokens (1.0: it costs the same, other content
    came along).
    """

    step: int
    before: int
    after: int
    factor: float = 1.0


def count_changes(ledger: Ledger) -> tuple[Jump, ...]:
    """Where the provider counts otherwise from a call on: prompt and later growth change by about the same factor."""
    if "count changes" not in ledger.derived:
        ledger.derived["count changes"] = _count_changes(ledger)
    known: tuple[Jump, ...] = ledger.derived["count changes"]
    return known


def _count_changes(ledger: Ledger) -> tuple[Jump, ...]:
    first, last = continued(ledger)
    recorded, jumps, begin = ledger.steps["prompt_tokens"], [], 0
    large = _large(ledger, first, last)
    if not large:
        return ()
    # Estimated tokens of what was added between neighbours.
    at, tools = ledger.steps["at"], np.zeros(ledger.event_count, dtype=np.int64)
    total = np.concatenate([[0.0], np.cumsum(STARTING.estimates(content(ledger), tools))])
    estimate = np.asarray(total[at[last]] - total[at[first]])
    ratios = (recorded[last] - recorded[first]) / np.maximum(estimate, 1.0)
    for row in large:
        before = _middle(ratios[begin:row], estimate[begin:row])
        after = _middle(ratios[row + 1 :], estimate[row + 1 :]) if before else None
        if not before or not after:
            continue
        factor = float(recorded[last[row]] / max(1.0, recorded[first[row]] + before[1] * estimate[row]))
        if _agree(factor, before, after):
            jumps.append(Jump(int(last[row]), int(recorded[first[row]]), int(recorded[last[row]]), factor))
            begin = row + 1
    return tuple(jumps)


def unexplained_rises(ledger: Ledger) -> tuple[Jump, ...]:
    """Where a prompt rises by content that is not in the file."""
    first, last = continued(ledger)
    recorded = ledger.steps["prompt_tokens"]
    changed = {change.step for change in count_changes(ledger)}
    return tuple(
        Jump(int(last[row]), int(recorded[first[row]]), int(recorded[last[row]]))
        for row in _large(ledger, first, last)
        if recorded[last[row]] > recorded[first[row]] and int(last[row]) not in changed
    )


def _large(ledger: Ledger, first: Ints, last: Ints) -> list[int]:
    """The neighbours of one model whose difference is far from anything that the log's messages can cost."""
    steps = ledger.steps
    recorded, at, prefix = steps["prompt_tokens"], steps["at"], ledger.prefix("lexical_tokens")
    growth, lexical = recorded[last] - recorded[first], prefix[at[last]] - prefix[at[first]]
    least = _least_fall(recorded[first])
    pictures = _pictures(ledger)
    sealed, written = ledger.prefix("opaque_bytes"), np.maximum(steps["output_tokens"][first], 0)
    start, stop = at[first], at[last]
    most = MOST_PER_LEXICAL * lexical + MOST_PER_PICTURE * (pictures[stop] - pictures[start])
    most += sealed[stop] - sealed[start] + written
    far = (growth - most >= least) | ((growth < 0) & (lexical - growth >= least))
    return [int(row) for row in np.flatnonzero(far & (steps["model"][first] == steps["model"][last]))]


def _middle(ratios: Floats, sizes: Floats) -> tuple[float, float, float] | None:
    """Lower quartile, median and upper quartile by size; None where too little was measured."""
    chosen = ratios > 0
    ratios, sizes = ratios[chosen], sizes[chosen]
    if len(ratios) < LEAST_STRETCHES or sizes.sum() < LEAST_MEASURED:
        return None
    order = np.argsort(ratios, kind="stable")
    share = np.cumsum(sizes[order])
    low, middle, high = (float(ratios[order[int(np.searchsorted(share, share[-1] * part))]]) for part in QUARTILES)
    return low, middle, high


def _agree(factor: float, before: tuple[float, float, float], after: tuple[float, float, float]) -> bool:
    """Do prompt and growth change by about the same, with the quartiles of the growth before and after apart."""
    middle = after[1] / before[1]
    rose, fell = after[0] > before[2] and factor >= LEAST_FACTOR, after[2] < before[0] and factor <= 1 / LEAST_FACTOR
    return (rose or fell) and 2 / 3 <= (factor - 1) / (middle - 1) <= 3 / 2


def model_changes(ledger: Ledger) -> tuple[int, ...]:
    """The reported steps that another model answered than the one before them."""
    model = ledger.steps["model"]
    known = np.flatnonzero((ledger.steps["prompt_tokens"] > 0) & (model >= 0))
    return tuple(int(step) for step in known[1:][model[known[1:]] != model[known[:-1]]])


def continued(ledger: Ledger) -> tuple[Ints, Ints]:
    """Neighbouring reported steps between which no compaction is recorded and the log did not shrink."""
    steps = ledger.steps
    reported = np.flatnonzero(steps["prompt_tokens"] > 0)
    first, last = reported[:-1], reported[1:]
    grown = (steps["epoch"][first] == steps["epoch"][last]) & (steps["at"][last] >= steps["at"][first])
    return first[grown], last[grown]


def _reasoning(ledger: Ledger, first: Ints, last: Ints) -> Ints:
    """The most that reasoning of the turn before can have been, where a new turn begins: all that the model wrote.

    It has no bound where the file counts what the model writes, but not at every call of that turn. Where it counts
    this at no call, the size of the reasoning that it shows, in words or sealed, is one.
    """
    turn, output, turned = ledger.steps["turn"], ledger.steps["output_tokens"], ledger.steps["turn"][first]
    if not (output >= 0).any():
        shown = prefix_sums(np.maximum(ledger.events["reasoning_bytes"], ledger.events["opaque_bytes"]))
        begins, ends = np.maximum(ledger.steps["user_event"][first], 0), ledger.steps["at"][last]
        return np.where(turned == turn[last], 0, (shown[ends] - shown[begins]) // REASONING_BYTES)
    written, uncounted = prefix_sums(np.maximum(output, 0)), prefix_sums((output < 0).astype(np.int64))
    begin = np.searchsorted(turn, turned, side="left")  # turns do not go back
    stop = np.searchsorted(turn, turned, side="right")
    most = np.where(uncounted[stop] > uncounted[begin], np.iinfo(np.int64).max, written[last] - written[begin])
    return np.where(turned == turn[last], 0, most)
