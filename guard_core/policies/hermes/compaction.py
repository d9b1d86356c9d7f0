"""One pass of a compaction: prune, cut, summarise, put together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec
import numpy as np

from guard_core.errors import SummaryFailed
from guard_core.estimation.estimators import Heuristic
from guard_core.events import Event, Role
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Check
from guard_core.policies.hermes import cut as cuts
from guard_core.policies.hermes import texts as wording
from guard_core.policies.hermes.messages import (
    ASSISTANT,
    BY_ROLE,
    CONTINUATION,
    MERGED,
    SYSTEM_ROLE,
    TOOL,
    USER,
    Bools,
    HermesEstimates,
    HermesMessages,
    is_merged,
    list_messages,
    sent_texts,
    take,
    without_orphans,
)
from guard_core.policies.hermes.settings import HermesMemory, HermesSettings
from guard_core.policies.hermes.triggers import compacted, is_cooling
from guard_core.policies.pieces.plans import Ask, ask_for_summary
from guard_core.summaries.base import Summary
from guard_core.trace import NOTHING_TO_COMPACT, RAISED, SUMMARISER_FAILED, Head, Pass, head_of
from guard_core.views import Span, Synthetic, View, content_count

QUOTE_FRAME = 153  # bytes around the user's last words in a summary (0.19.0)
FALLBACK_BYTES = 8_000  # most of the summary that is made without a model (section 1.2)
ROLE_NUMBERS = {USER: 1, ASSISTANT: 2, None: 3}  # in the words of the column summary_role; None: merged
FOCUS = "the newest requests, as the summariser's prompt has them"
EMPTY = str(wording.EMPTY)  # why there is no summary where the answer had no text
LOST_SUMMARY = "the summary was to be merged into the next message, but there is none, so that it is not sent"
NO_TIMES = "the recording has no times, so a failed summary has no cool-down"


class Compacted(NamedTuple):
    """What a pass gave: the view and state after it, and what was done; `record` is None where nothing was."""

    view: View
    state: HermesMemory
    record: Pass | None = None
    cut: tuple[int, int, int] | None = None
    held: int = 0
    notes: tuple[str, ...] = ()


class CompactionParts(NamedTuple):
    """A list of messages, the first and last one of which a summary takes the place, and the first not pruned. `texts`
    are the messages with their texts (None: a summary), `changed` those that are not as in the log, by their place;
    both are None where texts are not known."""

    view: View
    messages: HermesMessages
    start: int
    end: int
    boundary: int
    texts: list[Event | None] | None = None
    changed: dict[int, Event] | None = None


@dataclass(frozen=True)
class Compactor:
    """Passes at one check."""

    settings: HermesSettings
    check: Check
    estimates: HermesEstimates
    costs: Heuristic

    def run(self, state: HermesMemory, view: View) -> Compacted:
        """One pass over the messages of a view."""
        messages = list_messages(self.estimates, view)
        if len(messages) <= cuts.least_messages(messages, self.settings, state.compactions):
            return self._nothing(view, state)
        budget = self.settings.tail_budget(self.check.window)
        boundary = cuts.prune_boundary(messages, self.settings, budget)
        texts, changed = self._shortened(view, messages, boundary)
        if changed is None:
            is_old = np.arange(len(messages)) < boundary
            messages = replace(messages, tokens=np.where(is_old, messages.pruned, messages.tokens))
        if texts is not None:
            words = [text is None or bool(wording.content_of(text).strip()) for text in texts]
            messages = replace(messages, has_words=messages.is_summary | np.array(words))
        start = cuts.head_end(messages, self.settings, state.compactions)
        if start >= len(messages):  # 0.19.0 looks for a summary behind the end of the list, and raises an IndexError
            return self._nothing(view, state) if self.settings.is_seed else Compacted(view, state, held=RAISED)
        cut = cuts.tail_cut(messages, start, self.settings, budget)
        if start >= cut.anchored:
            return self._nothing(view, state)
        events = tuple(_event_at(messages, index, self.check.at) for index in cut)
        done = self._replaced(state, CompactionParts(view, messages, start, cut.anchored, boundary, texts, changed))
        return done._replace(cut=(events[0], events[1], events[2])) if done.record else done

    def _shortened(
        self, view: View, messages: HermesMessages, boundary: int
    ) -> tuple[list[Event | None] | None, dict[int, Event] | None]:
        """The texts of the messages after the pruning, and which of them are not as in the log; their estimates are
        set. None where texts are not known."""
        session = self.estimates.session
        if session is None:
            return None, None
        texts = sent_texts(session, view, messages)
        for place, message in wording.shortened(texts, boundary).items():
            old = texts[place]
            assert old is not None
            messages.tokens[place] += self.estimates.tokens_of(message) - self.estimates.tokens_of(old)
            texts[place] = message
        events = messages.event.tolist()
        changed = {
            place: message
            for place, message in enumerate(texts)
            if message is not None and message is not session.events[events[place]]
        }
        return texts, changed

    def _nothing(self, view: View, state: HermesMemory) -> Compacted:
        if not self.settings.is_seed:
            state = msgspec.structs.replace(state, ineffective=state.ineffective + 1)
        return Compacted(view, state, held=NOTHING_TO_COMPACT)

    def _replaced(self, state: HermesMemory, parts: CompactionParts) -> Compacted:
        """The messages between head and tail replaced by a summary."""
        since = parts.start
        if not self.settings.is_seed:  # an earlier summary is not sent as a message, but as what is continued
            summaries = np.flatnonzero(parts.messages.is_summary[: parts.end])
            since = max(since, int(summaries[-1]) + 1) if len(summaries) else since
        places = range(since, parts.end)
        given = take(self.check.ledger, parts.view, parts.messages, places, parts.boundary, parts.changed)
        cooling = self.is_cooling(state)
        summary, failure = (Summary(0), "") if cooling else self._summary(state, given)
        if not summary.bytes and not cooling:
            until = self.time + self.settings.cooldown_seconds * 1000 if self.time >= 0 else -1
            state = msgspec.structs.replace(state, cooldown_until=until)
        if not summary.bytes and self.settings.abort_on_failure and not self.settings.is_seed:
            return Compacted(parts.view, state, held=SUMMARISER_FAILED)
        text = self._text(summary, given, parts, since, failure)
        after, role = self._layout(parts, text)
        prompt = given if cooling else (*self._quoted_to_summariser(state, parts, since), *given)
        record = Pass(
            contents_in=content_count(parts.view),
            tokens_in=self.costs.contents(parts.view),
            summariser_contents=content_count(prompt),
            summariser_tokens=self.costs.contents(prompt),
            summary_bytes=summary.bytes,
            contents_after=content_count(after),
            tokens_after=self.costs.request(after),
            failed=cooling or bool(failure and failure != EMPTY),
            fallback=not summary.bytes,
            empty=failure == EMPTY,
            summariser_view=prompt,
        )
        notes = (NO_TIMES,) if not summary.bytes and self.time < 0 else ()
        if ROLE_NUMBERS[None] == role and parts.end == len(parts.messages):
            notes = (*notes, LOST_SUMMARY)
        remembered = summary if self.is_own_recording else summary._replace(text=_grounded(summary, parts, since))
        return Compacted(after, self._after(state, after, text, remembered, role, parts), record, notes=notes)

    @property
    def is_own_recording(self) -> bool:
        """Are the summaries those of a recording of Hermes."""
        return self.check.summarizer.name == "recorded" and self.check.ledger.agent == "hermes"

    @property
    def time(self) -> int:
        """The time of the newest event in the log in milliseconds, -1: not recorded."""
        at = self.check.at
        return int(self.check.ledger.events["time_ms"][at - 1]) if at else -1

    def is_cooling(self, state: HermesMemory) -> bool:
        """Did a summary fail a moment ago."""
        return bool(is_cooling(state.cooldown_until, self.time))

    def _summary(self, state: HermesMemory, given: View) -> tuple[Summary, str]:
        """The summary, 0 bytes where there is none, and why there is none."""
        middle = -(-self.estimates.request_chars(given) // 4)
        budget = self.settings.summary_budget(self.check.window, middle)
        previous = Summary(state.previous_bytes, state.summary_text)
        ask = Ask(given, budget)
        try:
            summary = ask_for_summary(self.check, ask, self.costs.contents(given), previous, state.calls)
        except SummaryFailed as error:
            return Summary(0), str(error) or "error"
        return summary, "" if summary.bytes else EMPTY

    def _quoted_to_summariser(self, state: HermesMemory, parts: CompactionParts, since: int) -> View:
        """What the summariser is given beside the messages, where texts are known: the earlier summary, and the newest
        requests of the list. Of summaries that were merged into one message only the newest is remembered."""
        if parts.texts is None:
            return ()
        summaries = [item for item in parts.view if isinstance(item, Synthetic) and item.kind != CONTINUATION]
        if summaries and state.summary_text:
            text = state.summary_text
            summaries = [msgspec.structs.replace(summaries[0], bytes=_bytes(text), text=text)]
        is_request = _requests(parts)
        requests = [message for message, chosen in zip(parts.texts, is_request.tolist(), strict=True) if chosen]
        newest = wording.focus([message for message in requests if message is not None])
        focus = Synthetic(FOCUS, len(newest.encode("utf-8", "surrogatepass")), newest)
        return (*(summaries[:1] if since and parts.messages.is_summary[since - 1] else ()), focus)

    def _text(self, summary: Summary, given: View, parts: CompactionParts, since: int, failure: str) -> Summary:
        """What takes the place of the messages. A recorded summary of Hermes has its frame already."""
        if parts.texts is not None:
            return self._known_text(summary, parts, since, failure)
        if not summary.bytes and self.settings.is_seed:
            removed = parts.end - parts.start
            marker = f"[{removed} earlier messages were removed; no summary of them could be made.]"  # ours
            return Summary(len(marker), marker)
        if not summary.bytes:
            size = min(FALLBACK_BYTES, self.estimates.request_chars(given))
            return Summary(size + self.settings.summary_frame)
        if self.is_own_recording:
            return summary
        # A summary quotes the user's last words, with what is around them.
        sizes = _request_sizes(self.check.ledger, parts.messages, since, parts.end)
        is_quoted = len(sizes) and not self.settings.is_seed
        quoted = min(int(sizes[-1]), wording.MOST_QUOTED) + QUOTE_FRAME if is_quoted else 0
        if self.settings.quoted_chars:
            quoted += min(int(np.minimum(sizes, wording.MOST_OF_ONE).sum()), self.settings.quoted_chars)
        return Summary(summary.bytes + self.settings.summary_frame + quoted, summary.text)

    def _known_text(self, summary: Summary, parts: CompactionParts, since: int, failure: str) -> Summary:
        """The same where the texts of the messages are known."""
        assert parts.texts is not None
        removed = [message for message in parts.texts[since : parts.end] if message is not None]
        if summary.bytes:
            if self.is_own_recording:
                return summary
            requests = [message for message in removed if wording.is_request(message)]
            body = _grounded(summary, parts, since) or wording.grounded(wording.stand_in(summary.bytes), requests)
            text = wording.opened(wording.with_requests(body, requests, self.settings.quoted_chars))
        else:
            continued = bool(since and parts.messages.is_summary[since - 1])
            text = wording.fallback(removed, continued=continued, reason=failure)
        return Summary(_bytes(text), text)

    def _layout(self, parts: CompactionParts, text: Summary) -> tuple[View, int]:
        """Head, summary and tail as a view, and the summary's role as the column has it.

        Where the user's words are in none of them, the last message of the user goes before the first answer that does
        not follow one (current).
        """
        messages, start, end = parts.messages, parts.start, parts.end
        chosen = without_orphans(self.estimates, messages, [*range(start), *range(end, len(messages))])
        head, tail = [index for index in chosen if index < start], [index for index in chosen if index >= end]
        role = summary_role(messages, start, end, forced=not self.settings.is_seed)
        changed = _tidied(parts, chosen, end if role is None else -1)
        unmerged = [index for index in chosen if role is not None or index != end]
        lost = None if self.settings.is_seed else _lost_request(parts, unmerged)
        if lost is not None:
            place = _place_for_request(messages, head, tail, role)
            if place <= len(head):
                head.insert(place, lost)
            else:
                tail.insert(place - len(head) - (role is not None), lost)
        before, behind = (
            take(self.check.ledger, parts.view, messages, places, parts.boundary, changed) for places in (head, tail)
        )
        # Hermes appends this where no message of the person is in the session.
        words = str(wording.CONTINUE)
        note = () if self.settings.is_seed or _requests(parts).any() else (Synthetic(CONTINUATION, len(words), words),)
        if role is None and end == len(messages):
            return (*before, *note), ROLE_NUMBERS[role]
        if self.is_own_recording:  # its size is that of all messages of the request that the log does not have
            others = sum(item.bytes for item in (*before, *behind, *note) if isinstance(item, Synthetic))
            text = text._replace(bytes=max(text.bytes - others, 0))
        summary = _synthetic(text, role, framed=parts.texts is not None)
        first = behind[0] if behind else None
        if role is None and isinstance(first, Synthetic):  # merged into an earlier summary
            both = None if summary.text is None or first.text is None else summary.text + first.text
            summary, behind = Synthetic(first.kind, summary.bytes + first.bytes, both, first.role), behind[1:]
        return (*before, summary, *behind, *note), ROLE_NUMBERS[role]

    def _after(
        self, state: HermesMemory, after: View, text: Summary, summary: Summary, role: int, parts: CompactionParts
    ) -> HermesMemory:
        """The state after a pass. Where there is no summary, the next one continues the one before."""
        head = head_of(after, self.check.at)
        if head.form:  # later events are sent as they are
            head = Head(after, self.check.at)
        if head.view and is_merged(head.view[-1]):  # the message that it is part of belongs to the head
            merged = Span(head.kept_from, head.kept_from + 1)
            head = Head((*head.view, merged), head.kept_from + 1)
        state = compacted(state, self.settings, estimate(self.estimates, after))
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


def _grounded(summary: Summary, parts: CompactionParts, since: int) -> str | None:
    """The text of a summary with the newest of the requests that it replaces; as it is where texts are not known."""
    if parts.texts is None or not summary.text:
        return summary.text
    removed = [message for message in parts.texts[since : parts.end] if message is not None]
    return wording.grounded(summary.text, [message for message in removed if wording.is_request(message)])


def estimate(estimates: HermesEstimates, view: View) -> int:
    """Hermes' estimate of a request with this view."""
    return int(estimates.fixed + estimates.whole_quarter(estimates.request_chars(view)))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _synthetic(text: Summary, role: int | None, *, framed: bool) -> Synthetic:
    """A summary in a role, None: merged into the message behind it. `framed`: its text gets what Hermes writes around
    it."""
    speaker = Role.MODEL if role == ASSISTANT else Role.USER
    kind = MERGED if role is None else BY_ROLE[role]
    if not framed or text.text is None:
        return Synthetic(kind, text.bytes, text.text, speaker)
    whole = "".join(wording.around(text.text)) if role is None else wording.standalone(text.text)
    return Synthetic(kind, _bytes(whole), whole, speaker)


def _requests(parts: CompactionParts) -> Bools:
    """Which messages of a list the person wrote."""
    of_user = (parts.messages.role == USER) & ~parts.messages.is_summary
    if parts.texts is None:
        return np.asarray(of_user & parts.messages.has_words)
    by_person = [text is None or wording.is_request(text) for text in parts.texts]
    return np.asarray(of_user & np.array(by_person, dtype=np.bool_))


def _tidied(parts: CompactionParts, chosen: list[int], merged: int) -> dict[int, Event] | None:
    """The changed messages of a list of which these are chosen: without calls whose results went, and without pictures
    before the newest. `merged` is the one that the summary is merged into. None where texts are not known."""
    if parts.texts is None or parts.changed is None:
        return None
    texts = [parts.texts[place] for place in chosen]
    changed = dict(parts.changed)
    with_summary = [
        number for number, place in enumerate(chosen) if place == merged or parts.messages.is_summary[place]
    ]
    for number, message in wording.without_lost_calls(texts, with_summary).items():
        texts[number] = changed[chosen[number]] = message
    for number, message in wording.without_old_pictures(texts).items():
        changed[chosen[number]] = message
    return changed


def summary_role(messages: HermesMessages, start: int, end: int, *, forced: bool) -> int | None:
    """The role of a summary between two messages; None where it is merged into the one behind it, and lost where there
    is none (current).

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
    return None if forced or end < len(messages) else role


def _place_for_request(messages: HermesMessages, head: list[int], tail: list[int], role: int | None) -> int:
    """Where the user's last message goes back: before the first answer that does not follow a message of the user."""
    roles = messages.role[head].tolist() + ([] if role is None else [role]) + messages.role[tail].tolist()
    answers = (k for k, value in enumerate(roles) if value == ASSISTANT and (not k or roles[k - 1] != USER))
    return next(answers, len(roles))


def _lost_request(parts: CompactionParts, chosen: list[int]) -> int | None:
    """The user's last message where none of them is among the chosen, which a summary is not merged into."""
    requests = _requests(parts)
    if requests[chosen].any() or not requests.any():
        return None
    return int(np.flatnonzero(requests)[-1])


def _request_sizes(ledger: Ledger, messages: HermesMessages, start: int, stop: int) -> Ints:
    """UTF-8 bytes of the messages of the person among some messages."""
    requests = messages.event[start:stop][(messages.role[start:stop] == USER) & ~messages.is_summary[start:stop]]
    sizes = ledger.events["request_bytes"][requests[requests >= 0]]
    return np.asarray(sizes[sizes > 0])


def _event_at(messages: HermesMessages, index: int, at: int) -> int:
    """The event of the log that a message is, or the next one is where it is a summary."""
    events = messages.event[index:]
    events = events[events >= 0]
    return int(events[0]) if len(events) else at
