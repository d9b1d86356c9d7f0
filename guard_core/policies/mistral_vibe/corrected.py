"""Mistral Vibe 3.0.3: it corrects its estimate by what the provider counted, and keeps what follows the last answer.

Source of the rules: `InMemoryHarnessRuntime` of mistralai_vibe_local_harness in 3.0.3, a compiled library, run with
scripted conversations; the texts around a summary are its own, of which only the sizes are here. Not
modelled: the request for a summary that would itself be too large, of which the harness drops the oldest part.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import msgspec
import numpy as np

from guard_core.costs import CALL, MEDIA, RESULT, TEXT, USER
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Point
from guard_core.policies.mistral_vibe.cut import CutMessage, note_of
from guard_core.policies.mistral_vibe.settings import MistralVibeSettings
from guard_core.policies.mistral_vibe.sizes import (
    BREAKS,
    BYTES_PER_TOKEN,
    ESTIMATE,
    LINE_BREAK,
    PICTURE,
    fixed_bytes,
    head_tokens,
    log_bytes,
    message_bytes,
    request_tokens,
    segment_bytes,
    text_message_bytes,
    view_bytes,
)
from guard_core.policies.pieces.counted import CountedMemory, CountedPolicy
from guard_core.policies.pieces.counters import ProviderCounts, UsageCounter, outputs_of, since_answer, sum_of
from guard_core.policies.pieces.estimates import TokenEstimate
from guard_core.policies.pieces.looks import PolicyLooks
from guard_core.policies.pieces.message_columns import MessageColumns
from guard_core.policies.pieces.plans import Ask, AskedSummary, CompactableHistory, Plan, SummaryMessage
from guard_core.trace import Head
from guard_core.views import Segment, Span, Synthetic, View

# Characters of messages that it writes (3.0.3): before the user's messages; around a summary; in place of what follows
# the last answer, where that does not fit; before the shortened lines of it.
CONTEXT, FRAME, OMITTED, REDUCED = 228, 118, 81, 81
LINE, ENDS = 100, 50  # characters: a longer line of what does not fit is cut to its two ends
SKIPPED = len("[CONTENT OMITTED FOR SIZE:  MORE CHARACTERS]")  # between them, beside the number
SAID, ANSWERED = len("UserMessage: "), len("<OK> ")  # before such lines
SHARE_OF_REST = 4  # the user's messages have a quarter of what the fixed part leaves of the threshold
REST_FOR_SUMMARY = 0.95  # of what is left then, where the summary has to be cut
EMPTY_MESSAGE = request_tokens(text_message_bytes(0))  # tokens


class VibeMemory(CountedMemory, frozen=True):
    """`correction` is that of the last answer before a compaction, or follows from a refused request."""

    correction: float = 1.0


BYTES = dataclasses.replace(ESTIMATE, words="Vibe's corrected estimate, a quarter of the bytes of JSON,")


class CorrectedVibe(CountedPolicy):
    """The policy; see the module."""

    settings: MistralVibeSettings
    name = "mistral-vibe"
    agent = "mistral-vibe"
    looks = (Point.BEFORE_CALL,)
    state_type = VibeMemory

    @property
    def uncounted(self) -> TokenEstimate | None:
        return BYTES

    @property
    def counter(self) -> UsageCounter:
        words = "Vibe's corrected estimate of the messages since, or of the whole request where that is more"
        return UsageCounter(pending=message_bytes, pending_words=words)

    @property
    def most_refusals(self) -> int:
        return 1  # 3.0.3: refused once more, the turn fails

    def threshold(self, window: int) -> int:
        return self.settings.limit(window)[1]

    def rule(self, window: int) -> str:
        return self.settings.limit(window)[0]

    # ---- the count

    def _numbers(
        self, ledger: Ledger, looks: PolicyLooks, counts: ProviderCounts, uncounted: Ints, head: Head | None = None
    ) -> dict[str, Ints]:
        columns = super()._numbers(ledger, looks, counts, uncounted, head)
        tokens, as_of = counts
        known = as_of >= 0
        if head is None:  # requests that were really sent: their own estimates
            answered, now = np.append(uncounted, 0)[as_of], uncounted
        else:
            answered = head_tokens(ledger, head, ledger.steps["at"][as_of])
            now = head_tokens(ledger, head, looks.stop)
        correction = np.maximum(tokens / np.maximum(answered, 1), 1.0)
        since = sum_of(log_bytes(ledger), *since_answer(ledger, as_of, looks.stop))
        total = tokens + np.where(known, outputs_of(ledger)[as_of], 0)
        added = np.ceil(correction * since / BYTES_PER_TOKEN).astype(np.int64)
        whole = np.ceil(correction * now).astype(np.int64) - total
        pending = np.where(known, np.maximum(np.maximum(added, whole), 0), 0)
        return columns | {"pending": pending, "decision_tokens": np.where(known, total + pending, uncounted)}

    def _uncounted(self, ledger: Ledger, head: Head, at: Ints, state: Any) -> Ints:
        return np.asarray(np.ceil(state.correction * head_tokens(ledger, head, at)).astype(np.int64))

    def _correction(self, history: CompactableHistory) -> float:
        """What its estimate is multiplied by at a compaction."""
        state, ledger = history.state, history.ledger
        head = Head(state.head, state.kept_from, self.form)
        if history.point is Point.ON_OVERFLOW:
            refused = int(head_tokens(ledger, head, np.array([history.stop]))[0])
            return max(float(history.check.window / refused), 1.0)
        if state.as_of < 0:
            return float(state.correction)
        answered = int(head_tokens(ledger, head, ledger.steps["at"][[state.as_of]])[0])
        return max(float(state.tokens / answered), 1.0)

    # ---- what a compaction leaves

    def plan(self, history: CompactableHistory) -> Plan:
        """The user's newest messages up to the last answer within a budget, the summary, and what follows from that
        answer on."""
        messages, correction = history.messages, self._correction(history)
        answers = np.flatnonzero(messages.is_model)
        last = int(answers[-1]) if len(answers) else len(messages)
        room = math.floor(self.threshold(history.check.window) / correction)
        begins = fixed_bytes(history.ledger) + text_message_bytes(CONTEXT, BREAKS["note"])
        budget = min(self.settings.user_budget, max(room - request_tokens(begins), 0) // SHARE_OF_REST)
        items = (
            Synthetic("note", CONTEXT),
            *_users(messages, last, budget),
            SummaryMessage((Ask(messages.between(0, last + 1), self.settings.summary_budget),), frame=FRAME),
            *messages.between(last, len(messages)),
        )
        cut = (messages.event_at(last, history.stop),) * 3
        return Plan(items, cut=cut, remembers={"correction": correction})

    def fitted(
        self, history: CompactableHistory, plan: Plan, summaries: list[AskedSummary]
    ) -> tuple[Plan, list[AskedSummary]]:
        """What exceeds the threshold goes: the oldest of what follows the last answer first, to which one message with
        the ends of its lines is left, then all of that and the end of the summary."""
        ledger, correction = history.ledger, plan.remembers["correction"]
        room: int = math.floor(self.threshold(history.check.window) / correction)
        place = next(index for index, item in enumerate(plan.items) if isinstance(item, SummaryMessage))
        before = tuple(item for item in plan.items[:place] if not isinstance(item, SummaryMessage))
        after = tuple(item for item in plan.items[place + 1 :] if not isinstance(item, SummaryMessage))
        message = summaries[0].message
        assert message is not None
        begins = fixed_bytes(ledger) + view_bytes(ledger, before)

        def fits(rest: View, breaks: int = 0) -> bool:
            return request_tokens(begins + view_bytes(ledger, (message, *rest)) + breaks * LINE_BREAK) < room

        if fits(after):
            return plan, summaries
        items = plan.items[: place + 1]
        for number in range(1, len(_exchanges(ledger, after)) + 1):
            lines, rest = _reduced(ledger, after, number)
            if fits((lines.message, *rest), lines.breaks):
                return plan._replace(items=(*items, lines.message, *rest)), summaries
        left = max(room - request_tokens(begins), 0)
        most = (math.floor(REST_FOR_SUMMARY * left) - EMPTY_MESSAGE) * BYTES_PER_TOKEN - FRAME
        short = min(message.bytes, max(most, FRAME))
        cut = summaries[0]._replace(message=msgspec.structs.replace(message, bytes=short, text=None))
        note = Synthetic("omitted", OMITTED)
        return plan._replace(items=(*items, note)), [cut if short < message.bytes else summaries[0], *summaries[1:]]


def _users(messages: MessageColumns, stop: int, budget: int) -> View:
    """The user's newest messages before one of a list within `budget` tokens; the one that does not fit is cut where
    its pictures fit, else left out unless it is the newest one."""
    ledger, left = messages.ledger, budget
    taken: list[Segment] = []
    for index in np.flatnonzero(messages.is_user[:stop] & ~messages.is_written[:stop])[::-1].tolist():
        segment = messages.segment_of(index)
        assert isinstance(segment, Span)
        tokens = request_tokens(segment_bytes(ledger, segment))
        if tokens <= left:
            taken.append(segment)
            left -= tokens
            continue
        size = _cut_size(ledger, segment, (left - EMPTY_MESSAGE) * BYTES_PER_TOKEN)
        if size < 0 and not taken:  # of the newest one the pictures alone are too much
            taken.append(segment)
        elif size > 0:
            form = "+".join(filter(None, (segment.form, CutMessage(size).name)))
            taken.append(ledger.span(segment.start, segment.stop, form))
        break
    return tuple(reversed(taken))


def _cut_size(ledger: Ledger, segment: Span, most: int) -> int:
    """Bytes to which a message is cut so that its text has so many as JSON, in whole tokens. What JSON escapes is taken
    to lie evenly in it."""
    parts = ledger.parts_in(segment.form)
    rows = slice(*ledger.part_starts[segment.start : segment.start + 2].tolist())
    is_text = parts["kind"][rows] == TEXT
    size, chars, quoted = (int(parts[name][rows][is_text].sum()) for name in ("bytes", "chars", "json_chars"))
    escapes = quoted - chars - len('""') * int(is_text.sum())
    share = escapes / max(size, 1)
    most -= int((parts["kind"][rows] == MEDIA).sum()) * PICTURE * BYTES_PER_TOKEN
    largest = min(math.floor((most + share * len(note_of(10))) / (1 + share)), size - 1)
    return largest // BYTES_PER_TOKEN * BYTES_PER_TOKEN


class _RemainingLines(NamedTuple):
    """What is left of messages that do not fit, with its line breaks."""

    message: Synthetic
    breaks: int


def _exchanges(ledger: Ledger, view: View) -> list[int]:
    """The events of a view that begin an answer with its results, or are a message of their own."""
    results = ledger.by_event((ledger.parts["kind"] == RESULT).astype(np.int64))
    events = [event for item in view if isinstance(item, Span) for event in range(item.start, item.stop)]
    return [event for event in events if not results[event]]


def _reduced(ledger: Ledger, view: View, number: int) -> tuple[_RemainingLines, View]:
    """The first exchanges of a view as lines, and the others."""
    starts = _exchanges(ledger, view)
    end = starts[number] if number < len(starts) else None
    rest: list[Segment] = []
    first: list[int] = []
    for item in view:
        assert isinstance(item, Span)
        stop = item.stop if end is None else min(max(end, item.start), item.stop)
        first += range(item.start, stop)
        rest += [Span(stop, item.stop, item.form)] if stop < item.stop else []
    lines = [size for event in first for size in _line_sizes(ledger, event)]
    size = REDUCED + sum(lines) + len(lines)
    return _RemainingLines(Synthetic("reduced", size), len(lines)), tuple(rest)


def _line_sizes(ledger: Ledger, event: int) -> list[int]:
    """Bytes of the lines that are left of an event: of what the user said, of each call and of each result. What the
    model said is left out."""
    parts = ledger.parts
    sizes, said, said_bytes = [], [], 0
    for row in range(*ledger.part_starts[event : event + 2].tolist()):
        kind, chars, size, name = (int(parts[column][row]) for column in ("kind", "chars", "bytes", "name_chars"))
        if kind in (TEXT, MEDIA) and ledger.events["flags"][event] & USER:
            said.append(chars if kind == TEXT else len("[Image]"))
            said_bytes += size if kind == TEXT else len("[Image]")
        elif kind == CALL:
            # Of arguments that are not nested: without brackets, and each name without quotation marks but with "=".
            names = (int(parts["separators"][row]) + 1) // 2
            shown = name + len("()") - (names + 3 if names else 2)
            sizes.append(_line(shown + chars, shown + size))
        elif kind == RESULT:
            sizes.append(ANSWERED + _line(chars, size))
    if said:
        joints = len(said) - 1
        sizes.append(SAID + _line(sum(said) + joints, said_bytes + joints))
    return sizes


def _line(chars: int, size: int) -> int:
    """Bytes of a line of so many characters and bytes, once it is cut to its two ends where it is long."""
    if chars <= LINE:
        return size
    return 2 * ENDS * size // chars + SKIPPED + len(str(chars - LINE))
