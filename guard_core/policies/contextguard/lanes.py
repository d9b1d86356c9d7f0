"""Many settings of the threshold strategy over one session at once: one lane each, from compaction to compaction.

Until its first compaction every lane sees the same requests, so the first jump is a search over one array per
correction. After
it, lanes are looked ahead over in blocks, as a matrix of lanes by steps. Numbers are IEEE doubles holding whole
numbers below 2**53, so they are exact and equal to a replay's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guard_core.costs import STARTS_WITH_MARKER
from guard_core.defaults import LOOP_LENGTH
from guard_core.estimation.usage import AttributedUsage, RatioUsage, Usage
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Policy
from guard_core.policies.contextguard.contents import costs_of
from guard_core.policies.contextguard.settings import MENDS, Settings
from guard_core.policies.contextguard.threshold import Threshold
from guard_core.replay import request_bytes
from guard_core.summaries.base import Summary, SummaryRequest
from guard_core.summaries.continuation import continuation_bytes
from guard_core.summaries.sizes import FixedSummaries, RecordedSummaries, ShareSummaries, SizeModel
from guard_core.summaries.wrapper import wrapped_bytes
from guard_core.tokens.calibration import estimate_run
from guard_core.windows.request_limits import RequestLimits, over_limits

Floats = NDArray[np.float64]
Row = tuple[int, ...]  # the fields of guard_core.sweep.Figures

SMALLEST_BLOCK, LARGEST_BLOCK = 4, 512


def run_lanes(
    ledger: Ledger,
    policies: Sequence[Policy],
    windows: Sequence[int],
    usage: Usage,
    summarizer: SizeModel,
    limits: Sequence[RequestLimits],
) -> list[Row | None]:
    """The figures of every policy, in order; None for those that cannot run in a lane, whose replay is needed."""
    rows: list[Row | None] = [None] * len(policies)
    if not _is_plain(ledger) or not isinstance(usage, RatioUsage | AttributedUsage):
        return rows
    able = [
        index
        for index, (policy, window) in enumerate(zip(policies, windows, strict=True))
        if _can_run(policy, window, summarizer)
    ]
    for group in _groups({index: policies[index].settings for index in able}):
        settings = [policies[index].settings for index in group]
        sizes, most = [windows[index] for index in group], [limits[index] for index in group]
        lanes = Lanes.of(ledger, settings, sizes, usage, summarizer, most)
        lanes.run()
        for index, row in zip(group, lanes.rows(), strict=True):
            rows[index] = row
    return rows


def _can_run(policy: Policy, window: int, summarizer: SizeModel) -> bool:
    """The threshold strategy without mends, with summaries of known size, none of them empty: an empty one means a
    mechanical one, which lanes do not make."""
    if not isinstance(policy, Threshold) or any(getattr(policy.settings, name) for name in MENDS):
        return False
    if not isinstance(summarizer, FixedSummaries | ShareSummaries | RecordedSummaries):
        return False
    return min(_sizes(policy.settings.limits(window).output_tokens, summarizer)) > 0


def _is_plain(ledger: Ledger) -> bool:
    """Is a log plain enough for lanes: no empty request, only growth, no first message that looks like a summary."""
    at = ledger.steps["at"]
    if not len(at) or int(at.min()) < 1 or bool((np.diff(at) < 0).any()):
        return False
    return not int(ledger.events["flags"][0]) & STARTS_WITH_MARKER


def _groups(settings: Mapping[int, Settings]) -> list[list[int]]:
    """Lanes that count the same things share their prefix sums."""
    groups: dict[tuple[bool, ...], list[int]] = {}
    for index, item in settings.items():
        groups.setdefault((item.count_tools, item.count_inline, item.count_metadata), []).append(index)
    return list(groups.values())


def _sizes(output_tokens: int, summarizer: SizeModel) -> tuple[int, ...]:
    """The bytes of all summaries a lane may get, by call; the last repeats."""
    if isinstance(summarizer, RecordedSummaries):
        return summarizer.sizes
    request = SummaryRequest(view=(), tokens=0, previous=Summary(0), output_tokens=output_tokens, words=0)
    return (summarizer.summarise(request).bytes,)


@dataclass
class Lanes:
    """The state of all lanes. Per lane: constants, what the policy remembers, figures so far."""

    settings: Sequence[Settings]
    base: Floats  # heuristic of the whole log at every step, fixed costs included
    tokens: Floats  # per step: anchored tokens before it (attributed provider), unused otherwise
    whole: Ints  # provider's count of the whole log at every step
    last_reported: Ints  # last step up to each whose count was reported, -1: none
    continued: Floats  # heuristic tokens of the continuation at every step (where the request is named)
    continued_bytes: Floats
    fixed: float
    usage: RatioUsage | AttributedUsage
    threshold: Floats
    most: Floats  # tokens of the largest request without an overflow, at the steps where `others` is 0 (None: at all)
    others: Ints | None
    default: Floats
    floor: Floats
    cap: Floats
    passes: Ints
    sizes: Floats  # lanes x calls
    wrapper: Floats  # bytes around a summary
    named: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        ledger: Ledger,
        settings: Sequence[Settings],
        windows: Sequence[int],
        usage: RatioUsage | AttributedUsage,
        summarizer: SizeModel,
        most: Sequence[RequestLimits],
    ) -> Lanes:
        """Lanes before the first step."""
        costs, at = costs_of(ledger, settings[0]), ledger.steps["at"]
        base = costs.prefix[at] + costs.fixed
        counted = usage.run(0, len(at), (), 0, base)
        last_reported = np.maximum.accumulate(np.where(counted.reported & (counted.tokens > 0), np.arange(len(at)), -1))
        limits = [item.limits(window) for item, window in zip(settings, windows, strict=True)]
        sizes = [_sizes(item.output_tokens, summarizer) for item in limits]
        asked = request_bytes(ledger)
        bytes_ = np.where(asked > 0, continuation_bytes(1) - 1 + asked, continuation_bytes(0))
        return cls(
            settings=settings,
            base=base.astype(np.float64),
            tokens=(usage.anchors.kept[at] if isinstance(usage, AttributedUsage) else base).astype(np.float64),
            whole=counted.tokens,
            last_reported=last_reported,
            continued=(bytes_ // 4).astype(np.float64),
            continued_bytes=bytes_.astype(np.float64),
            fixed=float(costs.fixed),
            usage=usage,
            threshold=np.array([item.threshold for item in limits], dtype=np.float64),
            most=np.array([item.most for item in most], dtype=np.float64),
            others=most[0].others,
            default=np.array([item.default_factor for item in settings]),
            floor=np.array([item.floor for item in settings]),
            cap=np.array([item.cap for item in settings]),
            passes=np.array([item.max_passes for item in settings]),
            sizes=np.array(sizes, dtype=np.float64),
            wrapper=np.array([wrapped_bytes(0, item.marker_dash) for item in settings], dtype=np.float64),
            named=np.array([item.name_request for item in settings]),
        )

    def run(self) -> None:
        """From the first step to the last, in every lane."""
        lanes = len(self.settings)
        zeros = np.zeros(lanes, dtype=np.int64)
        self.compactions, self.calls, self.overflows, self.sent = zeros.copy(), zeros.copy(), zeros.copy(), zeros.copy()
        self.peak, self.streak, self.loop = zeros.copy(), zeros.copy(), zeros.copy()
        self.first_overflow, self.first_fire, self.last_fire = zeros - 1, zeros - 1, zeros - 2
        self.real, self.last, self.offset, self.extra, self.kept_from = (np.zeros(lanes) for _ in range(5))
        self.step = zeros.copy()
        active = self._until_first()
        block = 64
        while len(active):
            active, advanced = self._look_ahead(active, block)
            block = int(np.clip(advanced * 5 // 4, SMALLEST_BLOCK, LARGEST_BLOCK))

    def _until_first(self) -> Ints:
        """All lanes up to and with their first compaction; the lanes that continue after it."""
        steps = len(self.base)
        fires = np.full(len(self.settings), steps, dtype=np.int64)
        real = np.append(0, np.where(self.last_reported >= 0, self.whole[self.last_reported], 0)[:-1])
        last = np.append(0, self.base[:-1].astype(np.int64))
        for factors in dict.fromkeys(item.factors for item in self.settings):
            decided = estimate_run(self.base.astype(np.int64), real, last, factors).tokens
            highest = np.maximum.accumulate(decided)
            same = (self.default == factors.default) & (self.floor == factors.floor) & (self.cap == factors.cap)
            mine = np.flatnonzero(same)
            fires[mine] = np.searchsorted(highest, self.threshold[mine], side="left")
        self._count_whole(fires)
        active = np.flatnonzero(fires < steps)
        self.step[active] = fires[active]
        return self._compact(active)

    def _count_whole(self, until: Ints) -> None:
        """Figures of the steps before the first compaction, where all lanes send the same."""
        sums = np.append(0, np.cumsum(self.whole))
        peaks = np.append(0, np.maximum.accumulate(self.whole))
        self.sent[:], self.peak[:] = sums[until], peaks[until]
        for most in np.unique(self.most):
            over = over_limits(self.whole, most, self.others)
            counts, mine = np.append(0, np.cumsum(over)), self.most == most
            self.overflows[mine] = counts[until[mine]]
            first = int(np.argmax(over)) if over.any() else -1
            self.first_overflow[mine & (self.overflows > 0)] = first

    def _compact(self, lanes: Ints) -> Ints:
        """A compaction in each of the lanes at its step; the lanes that have steps after it."""
        if not len(lanes):
            return lanes
        steps = self.step[lanes]
        size = self._summaries(lanes, steps)
        wrapped = size + self.wrapper[lanes]
        summary, continued = np.floor(wrapped / 4), self._continued(lanes, steps)
        sent = self.fixed + summary + continued
        tokens = self._synthetic(lanes, steps, wrapped, sent)
        self._fired(lanes, steps, tokens)
        reported = self.last_reported[steps] == steps
        if isinstance(self.usage, AttributedUsage):
            reported &= tokens > 0
        self.real[lanes] = np.where(reported & (tokens > 0), tokens, 0)
        self.last[lanes] = sent
        self.offset[lanes] = self.fixed + summary - self.base[steps]
        self.extra[lanes] = self._extra(wrapped, steps)
        self.kept_from[lanes] = self.tokens[steps]
        self.step[lanes] = steps + 1
        return lanes[steps + 1 < len(self.base)]

    def _summaries(self, lanes: Ints, steps: Ints) -> Floats:
        """The size of the last pass's summary; passes are repeated while raw tokens are over the threshold."""
        size = np.zeros(len(lanes))
        repeats = np.ones(len(lanes), dtype=np.bool_)
        for number in range(int(self.passes[lanes].max())):
            repeats &= number < self.passes[lanes]
            place = np.minimum(self.calls[lanes], self.sizes.shape[1] - 1)
            size = np.where(repeats, self.sizes[lanes, place], size)
            self.calls[lanes] += repeats
            after = self.fixed + np.floor((size + self.wrapper[lanes]) / 4) + self._continued(lanes, steps)
            repeats = repeats & (after >= self.threshold[lanes])
            if not repeats.any():
                break
        return size

    def _continued(self, lanes: Ints, steps: Ints) -> Floats:
        return np.where(self.named[lanes], self.continued[steps], continuation_bytes(0) // 4)

    def _synthetic(self, lanes: Ints, steps: Ints, wrapped: Floats, sent: Floats) -> Ints:
        """The provider's count of a summary and its continuation."""
        if isinstance(self.usage, RatioUsage):
            return (sent * self.usage.ratio).astype(np.int64)
        follows = np.where(self.named[lanes], self.continued_bytes[steps], continuation_bytes(0))
        return (self._always(self.usage) + self._priced(wrapped) + self._priced(follows)).astype(np.int64)

    def _priced(self, size: Floats) -> Floats:
        """Attributed tokens of synthetic messages, as guard_core.estimation.attribution prices one."""
        assert isinstance(self.usage, AttributedUsage)
        ratios = self.usage.attribution.ratios
        return np.rint(size * ratios["model text"] + ratios["message"])

    def _always(self, usage: AttributedUsage) -> int:
        """What every request holds after a replayed compaction."""
        return usage.attribution.overhead + usage.anchors.unrecorded.tokens

    def _extra(self, wrapped: Floats, steps: Ints) -> Floats:
        """What is added to the tokens kept of the log to get the count of a request."""
        if isinstance(self.usage, RatioUsage):
            return np.zeros(len(steps))
        return self._always(self.usage) + self._priced(wrapped)

    def _fired(self, lanes: Ints, steps: Ints, tokens: Ints) -> None:
        """Figures of a step that compacted."""
        self.compactions[lanes] += 1
        fresh = self.first_fire[lanes] < 0
        self.first_fire[lanes] = np.where(fresh, steps, self.first_fire[lanes])
        vain = tokens >= self.threshold[lanes]
        follows = self.last_fire[lanes] == steps - 1
        self.streak[lanes] = np.where(vain, np.where(follows, self.streak[lanes], 0) + 1, 0)
        self.loop[lanes] = np.maximum(self.loop[lanes], self.streak[lanes])
        self.last_fire[lanes] = steps
        over = over_limits(tokens, self.most[lanes], None if self.others is None else self.others[steps])
        unseen = over & (self.first_overflow[lanes] < 0)
        self.first_overflow[lanes] = np.where(unseen, steps, self.first_overflow[lanes])
        self.overflows[lanes] += over
        self.sent[lanes] += tokens
        self.peak[lanes] = np.maximum(self.peak[lanes], tokens)

    def _look_ahead(self, lanes: Ints, block: int) -> tuple[Ints, int]:
        """Up to `block` steps and a due compaction in every lane; the lanes that continue and the mean advance."""
        steps = len(self.base)
        start = self.step[lanes]
        index = start[:, None] + np.arange(block)
        valid = index < steps
        np.minimum(index, steps - 1, out=index)
        heuristic = self.base[index]
        heuristic += (self.offset[lanes])[:, None]
        tokens = self._counts(lanes, index, heuristic)
        decided = self._decided(lanes, start, index, heuristic, tokens)
        fires = (decided >= self.threshold[lanes][:, None]) & valid
        fired = fires.any(axis=1)
        room = np.minimum(block, steps - start)
        quiet = np.where(fired, np.argmax(fires, axis=1), room)
        self._count_quiet(lanes, start, quiet, tokens, index)
        self._remember(lanes, start, quiet, heuristic, tokens)
        self.step[lanes] = start + quiet
        compacted = self._compact(lanes[fired])
        rest = lanes[~fired & (start + quiet < steps)]
        return np.sort(np.concatenate([compacted, rest])), int(quiet.mean()) + 1

    def _counts(self, lanes: Ints, index: Ints, heuristic: Floats) -> Floats:
        """The provider's counts of a block."""
        if isinstance(self.usage, RatioUsage):
            return np.floor(heuristic * self.usage.ratio)
        counts: Floats = self.tokens[index]
        counts -= self.kept_from[lanes][:, None]
        np.maximum(counts, 0.0, out=counts)
        counts += self.extra[lanes][:, None]
        return counts

    def _decided(self, lanes: Ints, start: Ints, index: Ints, heuristic: Floats, tokens: Floats) -> Floats:
        """The counts decisions are made on."""
        real = self._real_before(lanes, start, index, tokens)
        last = np.empty_like(heuristic)
        last[:, 0], last[:, 1:] = self.last[lanes], heuristic[:, :-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = real / last
        np.maximum(factor, self.floor[lanes][:, None], out=factor)
        np.minimum(factor, self.cap[lanes][:, None], out=factor)
        unknown = ~((real > 0) & (last > 0))
        if unknown.any():
            factor = np.where(unknown, self.default[lanes][:, None], factor)
        factor *= heuristic
        np.floor(factor, out=factor)
        return np.maximum(factor, real, out=factor)

    def _real_before(self, lanes: Ints, start: Ints, index: Ints, tokens: Floats) -> Floats:
        """What the policy remembers of the provider's counts before each step of a block."""
        real = np.empty_like(tokens)
        real[:, 0] = self.real[lanes]
        before = self.last_reported[index[:, :-1]]
        if (before == index[:, :-1]).all():
            real[:, 1:] = tokens[:, :-1]
            return real
        place = before - start[:, None]
        known = np.take_along_axis(tokens, np.maximum(place, 0), axis=1)
        real[:, 1:] = np.where(place >= 0, known, self.real[lanes][:, None])
        return real

    def _count_quiet(self, lanes: Ints, start: Ints, quiet: Ints, tokens: Floats, index: Ints) -> None:
        """Figures of the steps of a block before a compaction."""
        outside = np.arange(tokens.shape[1]) >= quiet[:, None]
        seen = np.where(outside, 0.0, tokens)
        self.sent[lanes] += seen.sum(axis=1).astype(np.int64)
        self.peak[lanes] = np.maximum(self.peak[lanes], seen.max(axis=1).astype(np.int64))
        over = over_limits(seen, self.most[lanes][:, None], None if self.others is None else self.others[index])
        if over.any():
            count = over.sum(axis=1)
            unseen = (count > 0) & (self.first_overflow[lanes] < 0)
            first = start + np.argmax(over, axis=1)
            self.first_overflow[lanes] = np.where(unseen, first, self.first_overflow[lanes])
            self.overflows[lanes] += count

    def _remember(self, lanes: Ints, start: Ints, quiet: Ints, heuristic: Floats, tokens: Floats) -> None:
        """What the policy remembers after the steps of a block before a compaction."""
        moved = np.flatnonzero(quiet > 0)
        if not len(moved):
            return
        rows, mine = moved, lanes[moved]
        self.last[mine] = heuristic[rows, quiet[rows] - 1]
        reported = self.last_reported[start[rows] + quiet[rows] - 1] - start[rows]
        known = tokens[rows, np.maximum(reported, 0)]
        self.real[mine] = np.where(reported >= 0, known, self.real[mine])

    def rows(self) -> list[Row]:
        """The figures of every lane."""
        loops: Any = np.where(self.loop >= LOOP_LENGTH, self.loop, 0)
        columns = (
            self.compactions,
            self.calls,
            self.overflows,
            self.first_overflow,
            self.first_fire,
            loops,
            self.peak,
            self.sent,
        )
        return list(zip(*(column.tolist() for column in columns), strict=True))
