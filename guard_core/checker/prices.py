"""What compactions cost and saved, recomputed call by call with the price table's own arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property

from guard_core.checker.shared import is_forced, says_what_is_uncounted, sliding_moves
from guard_core.checker.story import Story, Wrong, agree, number
from guard_core.events import Event, ReasoningPart, part_text
from guard_core.findings.claims import LIST_PRICES, MODELLED_CACHE, Finding
from guard_core.requests import materialise
from guard_core.views import Segment, Span, View
from guard_core.windows.model_table import PriceRow, rows_of
from guard_core.windows.models import main_model

LIFETIME, SHORTEST = 300_000, 1_024  # of the provider's cache: milliseconds, and the least tokens that it keeps
WITH_SUMMARY = ("summary", "summary+tail", "empty", "opaque")


def never_paid(story: Story, finding: Finding) -> None:
    """A compaction that cost more than it saved until the next one, and that no request needed to fit its window. One
    that a refused request forced was needed."""
    ledger = _Calls(story)
    moves = sliding_moves(story)
    lasting = [index for index in ledger.fired if index not in moves and not is_forced(story, index)]
    real = {index: balance for index in lasting if (balance := ledger.unpaid(index)) is not None}
    index = number(finding, "compaction")
    if index not in real:
        raise Wrong(f"compaction {index} paid for itself, or the window needed it")
    paid, saved = real[index]
    if paid - saved < max(cost - back for cost, back in real.values()):
        raise Wrong("another compaction cost more")
    step = story.compaction(index).step
    agree(finding, step=step, paid=float(paid), saved=float(saved), compactions=list(real))
    agree(finding, calls=ledger.stop(index) - step - 1, window=story.window)
    says_what_is_uncounted(story, finding)
    if not {LIST_PRICES, MODELLED_CACHE} <= set(finding.assumptions):
        raise Wrong("it rests on list prices and a modelled cache, and does not say so")


@dataclass(frozen=True)
class _Calls:
    """The calls of a recording with what they cost."""

    story: Story

    @cached_property
    def fired(self) -> list[int]:
        """The compactions that a call followed."""
        return [index for index, item in enumerate(self.story.compactions) if item.step >= 0]

    def stop(self, index: int) -> int:
        """The step of the next compaction, or the end."""
        step = self.story.compaction(index).step
        later = [self.story.compaction(other).step for other in self.fired]
        return min((other for other in later if other > step), default=len(self.story.sent))

    def unpaid(self, index: int) -> tuple[Decimal, Decimal] | None:
        """What it cost at once and what it saved later, in US dollars; None where it paid or was needed."""
        story, step = self.story, self.story.compaction(index).step
        if (story.recorded(index).tokens_before or 0) <= 0 and story.removes_nothing(index):
            return None  # what it replaced is neither counted nor in the file
        if not step and story.removes_nothing(index):
            return None  # what the cache held of it is not known
        before = story.before(index)
        is_counted = step > 0 and (story.session.calls[step - 1].prompt_tokens or 0) > 0
        replaced = story.sent[step - 1] + story.log_grew(step - 1, step) if is_counted else before
        fewer = replaced - story.sent[step]
        steps = range(step, self.stop(index))
        if any(story.windows[at] and story.sent[at] + fewer > story.windows[at] for at in steps):
            return None
        if step == len(story.sent) - 1:  # the recording ends before it could have saved anything
            return None
        less = [
            self._cost(at, *self._without(at, step, fewer)) - self._cost(at, story.sent[at], self._read(at))
            for at in steps
        ]
        summaries = self._summary(index, before, step) + self._summaries_of_replaced(index, step)
        paid, saved = summaries - less[0], sum(less[1:], Decimal(0))
        return (paid, saved) if saved < paid else None

    def _without(self, at: int, step: int, fewer: int) -> tuple[int, int]:
        """A request without the compaction, and what it would have read."""
        story, since = self.story, self._last_to_its_model(at)
        tokens = max(0, story.sent[at] + fewer)
        if since is None:
            return tokens, 0
        shared = []
        for later in range(since + 1, at + 1):
            common = story.sent[step - 1] if later == step else self._shared(later)
            is_rebuilt = not self._continues(later) and common <= self._fixed
            common += fewer if later > step and not is_rebuilt else 0
            shared.append(common if later < step else min(common, max(0, story.sent[later] + fewer)))
        return tokens, min(shared) if min(shared) >= SHORTEST else 0

    def _read(self, at: int) -> int:
        """What a request reads from the cache."""
        since = self._last_to_its_model(at)
        shared = 0 if since is None else min(map(self._shared, range(since + 1, at + 1)))
        return shared if shared >= SHORTEST else 0

    def _last_to_its_model(self, at: int) -> int | None:
        """The last request to the same model, as long as the cache has it."""
        calls = self.story.session.calls
        last = max((other for other in range(at) if calls[other].model == calls[at].model), default=None)
        return last if last is not None and self._is_kept(last, at) else None

    def _shared(self, at: int) -> int:
        """Tokens that a request has in common with the one before."""
        sent = self.story.sent
        return min(sent[at - 1] if self._continues(at) else self._beginning(at), sent[at])

    def _continues(self, at: int) -> bool:
        """Is a request the one before and more."""
        return self.story.places[at] == self.story.places[at - 1]

    def _beginning(self, at: int) -> int:
        """Tokens of what a request on another base has in common with the one before, message by message."""
        story, (view, place) = self.story, self.story.views[at]
        before = materialise(story.views[at - 1][0], story.session, story.views[at - 1][1])
        count = 0
        for one, other in zip(before, materialise(view, story.session, place), strict=False):
            if one is not other and not self._says_the_same(one, other):
                break
            count += 1
        beginning = _first(view, count)
        return story.price(at, beginning, place) if beginning else self._fixed

    def _says_the_same(self, one: Event, other: Event) -> bool:
        """Are two messages that compactions inserted the same, word for word, as far as they can be read."""
        if id(one) in self._logged or id(other) in self._logged:
            return False
        sealed = any(isinstance(part, ReasoningPart) and part.opaque_bytes for part in other.parts)
        has_text = any(part_text(part) for part in other.parts)
        return has_text and not sealed and (one.role, one.parts) == (other.role, other.parts)

    @cached_property
    def _logged(self) -> set[int]:
        return {id(event) for event in self.story.session.events}

    @cached_property
    def _fixed(self) -> int:
        """The overhead, unless the first call after a compaction that kept no beginning read less from the cache."""
        story, reads = self.story, []
        for place, item in enumerate(story.session.compactions):
            begins = any(isinstance(part, Span) and part.start == 0 < part.stop for part in item.base)
            is_edit = item.kind == "edit" and (item.tokens_before or 0) <= 0
            if place in story.places and not begins and not is_edit:
                reads.append(story.session.calls[story.places.index(place)].cached_tokens or 0)
        return min([story.attribution.overhead, *(tokens for tokens in reads if tokens > 0)])

    def _is_kept(self, since: int, at: int) -> bool:
        """Does the cache still have an earlier request to the same model."""
        calls = self.story.session.calls
        if self._is_cache_off:
            return False
        then, now = self._moments[calls[since].at - 1], self._moments[calls[at].at - 1]
        return calls[since].at == 0 or then < 0 or now - then <= self._lifetime

    def _reads_before(self, step: int, moment: float | None) -> bool:
        """Had the cache the request before a step when the compaction before that step was made."""
        last = self.story.session.calls[step - 1].at - 1
        if moment is None or not step or last < 0 or self._moments[last] < 0:
            return step > 0 and self._last_to_its_model(step) == step - 1
        return not self._is_cache_off and 1_000 * moment - self._moments[last] <= self._lifetime

    @property
    def _lifetime(self) -> int:
        """How long the cache keeps a request, in milliseconds."""
        return 1_000 * self.story.session.cache_seconds or LIFETIME

    @cached_property
    def _is_cache_off(self) -> bool:
        """Did the provider say of a call that nothing was read or written, and never anything else."""
        calls = self.story.session.calls
        counts = [count for call in calls for count in (call.cached_tokens, call.cache_write_tokens)]
        return 0 in counts and not any(counts)

    @cached_property
    def _moments(self) -> list[int]:
        """The latest time of all events up to each one, in milliseconds, -1: none is known."""
        latest, moments = -1, []
        for event in self.story.session.events:
            latest = max(latest, -1 if event.timestamp is None else int(event.timestamp * 1000))
            moments.append(latest)
        return moments

    def _cost(self, at: int, prompt: int, read: int) -> Decimal:
        call = self.story.session.calls[at]
        output = call.output_tokens
        if output is None:
            output = 0 if call.response is None else int(self.story.attribution.tokens[call.response])
        return self._price(call.model, prompt, read, 0 if self._is_cache_off else prompt - read, output)

    def _summaries_of_replaced(self, index: int, step: int) -> Decimal:
        """The price of the summaries that this compaction replaced before any call was made with them."""
        story, prices = self.story, Decimal(0)
        for other in range(index):
            if story.compaction(other).step < 0 and story.first_call_after(other) == step:
                least = story.sent[step - 1] if step else 0
                prices += self._summary(other, max(least, story.recorded(other).tokens_before or 0), step, at_end=True)
        return prices

    def _summary(self, index: int, before: int, step: int, *, at_end: bool = False) -> Decimal:
        """The price of the summariser's call; `at_end`: nothing was said between the compaction and the next."""
        item = self.story.recorded(index)
        place = self.story.compaction(index).place
        summariser = item.summariser
        if summariser is not None and summariser.prompt_tokens is not None:
            prompt, output = summariser.prompt_tokens, summariser.output_tokens or 0
        elif item.kind in WITH_SUMMARY:
            added = 0 if at_end else self.story.added_after(index)
            prompt, output = before - added, sum(self.story.attribution.inserted[place])
        else:
            return Decimal(0)
        read = min(prompt, self._sent_behind(place - 1, step)) if self._reads_before(step, item.timestamp) else 0
        return self._price(main_model(self.story.session), prompt, read, 0, output)

    def _sent_behind(self, place: int, step: int) -> int:
        """What a request behind a compaction has of that before a step: all of it, unless the compaction came since."""
        story = self.story
        if place <= story.places[step - 1]:
            return story.sent[step - 1]
        before = materialise(story.views[step - 1][0], story.session, story.views[step - 1][1])
        left = materialise(story.session.compactions[place].base, story.session, place)
        count = 0
        while count < min(len(before), len(left)) and before[count] is left[count] is story.session.events[count]:
            count += 1
        shared = story.price(step - 1, (Span(0, count),), -1) if count else self._fixed
        return shared if shared >= SHORTEST else 0

    def _price(self, model: str, prompt: int, read: int, written: int, output: int) -> Decimal:
        from genai_prices import Usage  # late: the table takes time to load

        session = self.story.session
        row: PriceRow | None = rows_of((model or main_model(session)).removesuffix("[1m]")).own
        if row is None:
            raise Wrong(f"the price table has no price of {model!r}")
        first = next((call.timestamp for call in session.calls if call.model == model), None) or session.started_at
        moment = datetime(2100, 1, 1, 12, tzinfo=UTC) if first is None else datetime.fromtimestamp(first, UTC)

        def priced(**counts: int) -> Decimal:
            usage = Usage(input_tokens=prompt, **counts)
            return row.info.calc_price(usage, row.provider, genai_request_timestamp=moment).total_price

        if self._lifetime > LIFETIME and prompt:  # written for an hour: twice the price of a plain token
            return priced(cache_read_tokens=read, output_tokens=output) + written * priced() / prompt
        return priced(cache_read_tokens=read, cache_write_tokens=written, output_tokens=output)


def _first(view: View, count: int) -> View:
    """The first messages of a view."""
    beginning: list[Segment] = []
    for segment in view:
        size = segment.stop - segment.start if isinstance(segment, Span) else 1
        if size > count and isinstance(segment, Span):
            segment = Span(segment.start, segment.start + count)
        if count > 0 and (not isinstance(segment, Span) or segment.stop > segment.start):
            beginning.append(segment)
        count -= min(size, count)
    return tuple(beginning)
