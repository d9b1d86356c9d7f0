"""One pass of a compaction: prune, cut, summarise, put together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec
import numpy as np

from guard_core.estimators import Heuristic
from guard_core.events import Role
from guard_core.ledger import Ledger
from guard_core.policies.base import Check
from guard_core.policies.hermes import cut as cuts
from guard_core.policies.hermes.messages import (
    ASSISTANT,
    BY_ROLE,
    MERGED,
    SYSTEM_ROLE,
    TOOL,
    USER,
    Estimates,
    Messages,
    list_messages,
    take,
    without_orphans,
)
from guard_core.policies.hermes.settings import HermesMemory, HermesSettings
from guard_core.policies.hermes.triggers import compacted, is_cooling
from guard_core.policies.pieces.plans import Ask, summarised
from guard_core.summaries.base import Summary
from guard_core.trace import NOTHING_TO_COMPACT, SUMMARISER_FAILED, Head, Pass, head_of
from guard_core.views import Synthetic, View, content_count

MOST_QUOTED, QUOTE_FRAME = 1_400, 153  # bytes of the user's last words in a summary, and around them (0.19.0)
FALLBACK_BYTES = 8_000  # most of the summary that is made without a model (section 1.2)
ROLE_NUMBERS = {USER: 1, ASSISTANT: 2, None: 3}  # in the words of the column summary_role; None: merged
NO_TIMES = "the recording has no times, so a failed summary has no cool-down"


class Compacted(NamedTuple):
    """What a pass gave: the view and state after it, and what was done; `record` is None where nothing was."""

    view: View
    state: HermesMemory
    record: Pass | None = None
    cut: tuple[int, int, int] | None = None
    held: int = 0
    notes: tuple[str, ...] = ()


class Parts(NamedTuple):
    """A list of messages, the first and last one of which a summary takes the place, and the first not pruned."""

    view: View
    messages: Messages
    start: int
    end: int
    boundary: int


@dataclass(frozen=True)
class Compactor:
    """Passes at one check."""

    settings: HermesSettings
    check: Check
    estimates: Estimates
    costs: Heuristic

    def run(self, state: HermesMemory, view: View) -> Compacted:
        """One pass over the messages of a view."""
        messages = list_messages(self.estimates, view)
        if len(messages) <= cuts.least_messages(messages, self.settings, state.compactions):
            return self._nothing(view, state)
        budget = self.settings.tail_budget(self.check.window)
        boundary = cuts.prune_boundary(messages, self.settings, budget)
        places = np.arange(len(messages))
        messages = replace(messages, tokens=np.where(places < boundary, messages.pruned, messages.tokens))
        start = cuts.head_end(messages, self.settings, state.compactions)
        if start >= len(messages):
            return self._nothing(view, state)
        cut = cuts.tail_cut(messages, start, self.settings, budget)
        if start >= cut.anchored:
            return self._nothing(view, state)
        events = tuple(_event_at(messages, index, self.check.at) for index in cut)
        done = self._replaced(state, Parts(view, messages, start, cut.anchored, boundary))
        return done._replace(cut=(events[0], events[1], events[2])) if done.record else done

    def _nothing(self, view: View, state: HermesMemory) -> Compacted:
        if not self.settings.is_seed:
            state = msgspec.structs.replace(state, ineffective=state.ineffective + 1)
        return Compacted(view, state, held=NOTHING_TO_COMPACT)

    def _replaced(self, state: HermesMemory, parts: Parts) -> Compacted:
        """The messages between head and tail replaced by a summary."""
        since = parts.start
        if not self.settings.is_seed:  # an earlier summary is not sent as a message, but as what is continued
            summaries = np.flatnonzero(parts.messages.is_summary[: parts.end])
            since = max(since, int(summaries[-1]) + 1) if len(summaries) else since
        given = take(self.check.ledger, parts.view, parts.messages, range(since, parts.end), parts.boundary)
        cooling = self.is_cooling(state)
        summary, failed = (Summary(0), True) if cooling else self._summary(state, given)
        if not summary.bytes and not cooling:
            state = msgspec.structs.replace(state, cooldown_until=self._cooldown())
        if not summary.bytes and self.settings.abort_on_failure and not self.settings.is_seed:
            return Compacted(parts.view, state, held=SUMMARISER_FAILED)
        text = self._text(summary, given, parts, since)
        after, role = self._layout(parts, text)
        record = Pass(
            contents_in=content_count(parts.view),
            tokens_in=self.costs.contents(parts.view),
            summariser_contents=content_count(given),
            summariser_tokens=self.costs.contents(given),
            summary_bytes=summary.bytes,
            contents_after=content_count(after),
            tokens_after=self.costs.request(after),
            failed=failed,
            fallback=not summary.bytes,
            empty=not summary.bytes and not failed,
            summariser_view=given,
        )
        notes = (NO_TIMES,) if not summary.bytes and self.time < 0 else ()
        return Compacted(after, self._after(state, after, text, summary, role, parts), record, notes=notes)

    @property
    def time(self) -> int:
        """The time of the newest event in the log in milliseconds, -1: not recorded."""
        at = self.check.at
        return int(self.check.ledger.events["time_ms"][at - 1]) if at else -1

    def is_cooling(self, state: HermesMemory) -> bool:
        """Did a summary fail a moment ago."""
        return bool(is_cooling(state.cooldown_until, self.time))

    def _cooldown(self) -> int:
        return self.time + self.settings.cooldown_seconds * 1000 if self.time >= 0 else -1

    def _summary(self, state: HermesMemory, given: View) -> tuple[Summary, bool]:
        """The summary, 0 bytes where there is none, and whether the summariser failed."""
        middle = -(-self.estimates.request_chars(given) // 4)
        budget = self.settings.summary_budget(self.check.window, middle)
        previous = Summary(state.previous_bytes, state.summary_text)
        return summarised(self.check, Ask(given, budget), self.costs.contents(given), previous, state.calls)

    def _text(self, summary: Summary, given: View, parts: Parts, since: int) -> Summary:
        """What takes the place of the messages. A recorded summary of Hermes has its frame already."""
        if not summary.bytes and self.settings.is_seed:
            removed = parts.end - parts.start
            marker = f"[{removed} earlier messages were removed; no summary of them could be made.]"  # ours
            return Summary(len(marker), marker)
        if not summary.bytes:
            size = min(FALLBACK_BYTES, self.estimates.request_chars(given))
            return Summary(size + self.settings.summary_frame)
        if self.check.summarizer.name == "recorded" and self.check.ledger.agent == "hermes":
            return summary
        quoted = 0 if self.settings.is_seed else _quoted(self.check.ledger, parts.messages, since, parts.end)
        return Summary(summary.bytes + self.settings.summary_frame + quoted, summary.text)

    def _layout(self, parts: Parts, text: Summary) -> tuple[View, int]:
        """Head, summary and tail as a view, and the summary's role as the column has it.

        Where the user's words are in none of them, the last message of the user goes before the first answer that does
        not follow one (current).
        """
        view, messages, start, end, boundary = parts
        ledger = self.check.ledger
        chosen = without_orphans(self.estimates, messages, [*range(start), *range(end, len(messages))])
        head, tail = [index for index in chosen if index < start], [index for index in chosen if index >= end]
        role = summary_role(messages, start, end, forced=not self.settings.is_seed)
        lost = None if self.settings.is_seed else _lost_request(messages, chosen)
        if lost is not None:
            place = _place_for_request(messages, head, tail, role)
            if place <= len(head):
                head.insert(place, lost)
            else:
                tail.insert(place - len(head) - (role is not None), lost)
        before, behind = take(ledger, view, messages, head, boundary), take(ledger, view, messages, tail, boundary)
        speaker = Role.MODEL if role == ASSISTANT else Role.USER
        summary = Synthetic(MERGED if role is None else BY_ROLE[role], text.bytes, text.text, speaker)
        first = behind[0] if behind else None
        if role is None and isinstance(first, Synthetic):  # merged into an earlier summary
            summary, behind = Synthetic(first.kind, text.bytes + first.bytes), behind[1:]
        return (*before, summary, *behind), ROLE_NUMBERS[role]

    def _after(
        self, state: HermesMemory, after: View, text: Summary, summary: Summary, role: int, parts: Parts
    ) -> HermesMemory:
        """The state after a pass. Where there is no summary, the next one continues the one before."""
        head = head_of(after, self.check.at)
        if head.form:  # later events are sent as they are
            head = Head(after, self.check.at)
        state = compacted(state, self.settings, estimate(self.estimates, self.costs, after))
        if summary.bytes:
            previous = {"previous_bytes": summary.bytes, "summary_text": summary.text, "cooldown_until": -1}
            state = msgspec.structs.replace(state, fallbacks=0, **previous)
        else:
            state = msgspec.structs.replace(state, fallbacks=state.fallbacks + 1)
        return msgspec.structs.replace(
            state,
            head=head.view,
            kept_from=head.kept_from,
            summary_bytes=text.bytes,
            calls=state.calls + 1,
            compactions=state.compactions + 1,
            watermark=_event_at(parts.messages, parts.end, self.check.at),
            summary_role=role,
        )


def estimate(estimates: Estimates, costs: Heuristic, view: View) -> int:
    """Hermes' estimate of a request with this view."""
    return costs.fixed + -(-estimates.request_chars(view) // 4)


def summary_role(messages: Messages, start: int, end: int, *, forced: bool) -> int | None:
    """The role of a summary between two messages; None where it is merged into the one behind it.

    `forced` (current): it speaks as the user behind the system message, or where no message of the user stays.
    """
    before = messages.role.item(start - 1) if start else USER
    behind = messages.role.item(end) if end < len(messages) else USER
    others = np.concatenate((messages.role[:start], messages.role[end:]))
    leads = forced and (before == SYSTEM_ROLE or not (others == USER).any())
    role = USER if before in (ASSISTANT, TOOL) or leads else ASSISTANT
    if role != behind:
        return role
    flipped = ASSISTANT if role == USER else USER
    if flipped != before and not leads:
        return flipped
    return None if end < len(messages) else role


def _place_for_request(messages: Messages, head: list[int], tail: list[int], role: int | None) -> int:
    """Where the user's last message goes back: before the first answer that does not follow a message of the user."""
    roles = messages.role[head].tolist() + ([] if role is None else [role]) + messages.role[tail].tolist()
    answers = (k for k, value in enumerate(roles) if value == ASSISTANT and (not k or roles[k - 1] != USER))
    return next(answers, len(roles))


def _lost_request(messages: Messages, chosen: list[int]) -> int | None:
    """The user's last message where none of them is among the chosen."""
    requests = (messages.role == USER) & ~messages.is_summary
    if requests[chosen].any() or not requests.any():
        return None
    return int(np.flatnonzero(requests)[-1])


def _quoted(ledger: Ledger, messages: Messages, start: int, stop: int) -> int:
    """Bytes of the user's last words among some messages as a summary quotes them, with what is around them."""
    requests = messages.event[start:stop][(messages.role[start:stop] == USER) & ~messages.is_summary[start:stop]]
    sizes = ledger.events["request_bytes"][requests]
    sizes = sizes[sizes > 0]
    return min(int(sizes[-1]), MOST_QUOTED) + QUOTE_FRAME if len(sizes) else 0


def _event_at(messages: Messages, index: int, at: int) -> int:
    """The event of the log that a message is, or the next one is where it is a summary."""
    events = messages.event[index:]
    events = events[events >= 0]
    return int(events[0]) if len(events) else at
