"""Hermes' list of messages: the messages of a view with the sizes that Hermes estimates, and back to views.

Estimates are made of the characters of the parts (PART_COLUMNS). A tool result is a message of its own in Hermes, so
that an event with several results is estimated as so many messages. The text of a call counts as compact JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guard_core.costs import CALL, HAS_CALL, HAS_MEDIA, HAS_RESULT, HAS_TEXT, MEDIA, MODEL, REASONING, RESULT, SYSTEM
from guard_core.forms import HERMES_PRUNED, PRUNED_CHARS
from guard_core.ledger import Ints, Ledger
from guard_core.policies.hermes.settings import HermesSettings
from guard_core.usage import normal
from guard_core.views import Segment, Span, Synthetic, View

Bools = NDArray[np.bool_]
CHARS_PER_TOKEN = 4  # section 1.1 of the specification of policies
MESSAGE_TOKENS = 10  # a message beside its text (section 1.1)
IMAGE_TOKENS = 1_600  # of a picture in a message (section 1.2)
REQUEST_IMAGE_TOKENS = 1_500  # of a picture in a whole request (0.19.0)
# Of a message beside its text in a whole request: the Python text of the dictionary.
PLAIN_CHARS, ANSWER_CHARS = len(str({"role": "user", "content": ""})), len(str({"role": "assistant", "content": ""}))
CALLS_CHARS = len(", 'tool_calls': []") - len(", ")
IMAGE_CHARS = len(str({"type": "image_url", "image": "[stripped]"})) + len(", ")
TEXT_CHARS = len(str([{"type": "text", "text": ""}])) - len("''")  # where there is a picture beside the text
USER, ASSISTANT, TOOL, SYSTEM_ROLE = range(4)
# Kinds of synthetic messages; the last one and the message behind it are one in Hermes.
BY_ROLE = {USER: "summary, in the user's role", ASSISTANT: "summary, in the model's role"}
MERGED = "summary, merged into the next message"
FORM = "pruned"


def is_merged(segment: Segment) -> bool:
    """Is a segment the first half of the message that follows it."""
    return isinstance(segment, Synthetic) and segment.kind == MERGED


class Estimates:
    """Hermes' estimates over one ledger under some settings, as prefix sums."""

    def __init__(self, ledger: Ledger, settings: HermesSettings) -> None:
        self.ledger = ledger
        self.round_up, self.seed = settings.round_up, settings.is_seed
        self.call_frame, self.result_frame = settings.call_frame, settings.result_frame
        self._key = f"hermes {self.seed} {self.round_up} {self.call_frame} {self.result_frame}"
        self.plain = self._prefix("message", "", self._message_tokens)
        self.pruned = self._prefix("message", FORM, self._message_tokens)
        self.roles = ledger.prefix_by("hermes roles", roles_of)
        self.calls = ledger.prefix_by("hermes calls", calls_of)
        self.chars = {form: self._prefix("request", form, self._request_chars) for form in ("", FORM)}

    def _prefix(self, what: str, form: str, column: Callable[[Ledger, str], Ints]) -> Ints:
        return self.ledger.prefix_by(f"{self._key} {what}/{form}", lambda ledger: column(ledger, form))

    def quarter(self, chars: Any) -> Any:
        """Tokens of some characters."""
        return -(-chars // CHARS_PER_TOKEN) if self.round_up else chars // CHARS_PER_TOKEN

    def _message_tokens(self, ledger: Ledger, form: str) -> Ints:
        """The estimate of each event's messages as the walk from the end counts it."""
        parts, kind = ledger.parts, ledger.parts["kind"]
        chars = _chars(ledger, form)
        result, call = kind == RESULT, kind == CALL
        tokens = np.where(result, self.quarter(chars) + MESSAGE_TOKENS, 0)
        if self.seed:
            tokens += np.where(call, chars // CHARS_PER_TOKEN, 0)
        else:
            tokens += np.where(call, self.quarter(chars + parts["name_chars"] + self.call_frame), 0)
            tokens += np.where(kind == MEDIA, IMAGE_TOKENS, 0)
            tokens += np.where(kind == REASONING, chars // CHARS_PER_TOKEN, 0)
        content = ledger.by_event(np.where(result | call | (kind == REASONING) | (kind == MEDIA), 0, chars))
        own = _has_own_message(ledger)
        total = ledger.by_event(tokens) + np.where(own, self.quarter(content) + MESSAGE_TOKENS, 0)
        return np.asarray(total if self.seed else total + ledger.events["opaque_bytes"] // CHARS_PER_TOKEN)

    def _request_chars(self, ledger: Ledger, form: str) -> Ints:
        """Characters of each event's messages as Python writes them; a line break or backslash is two, as in JSON."""
        parts, kind = ledger.parts, ledger.parts["kind"]
        chars = _chars(ledger, form)
        written = np.where(chars == parts["chars"], parts["json_chars"] - 2, chars)
        by_part = np.where(kind == RESULT, written + self.result_frame, written)
        call = parts["chars"] + parts["name_chars"] + self.call_frame + len(", ")
        by_part = np.where(kind == CALL, call, by_part)
        by_part = np.where(kind == MEDIA, REQUEST_IMAGE_TOKENS * CHARS_PER_TOKEN + IMAGE_CHARS, by_part)
        flags = ledger.events["flags"]
        own = np.where(flags & MODEL, ANSWER_CHARS, PLAIN_CHARS) + np.where(flags & HAS_CALL, CALLS_CHARS, 0)
        own = own + np.where(flags & HAS_MEDIA, TEXT_CHARS, 0)
        return ledger.by_event(by_part) + np.where(_has_own_message(ledger), own, 0)

    def request_chars(self, view: View) -> int:
        """Characters of a view's messages as Python writes them."""
        total = 0
        for segment in view:
            if isinstance(segment, Span):
                prefix = self.chars[segment.form]
                total += prefix.item(segment.stop) - prefix.item(segment.start)
            elif isinstance(segment, Synthetic):
                total += segment.bytes + (0 if is_merged(segment) else PLAIN_CHARS)
        return total


def _chars(ledger: Ledger, form: str) -> Ints:
    chars = ledger.parts["chars"]
    long = (ledger.parts["kind"] == RESULT) & (chars > PRUNED_CHARS)
    return np.where(long, len(HERMES_PRUNED), chars) if form else chars


def _has_own_message(ledger: Ledger) -> Bools:
    """Which events have a message beside their tool results."""
    kinds = ledger.parts["kind"]
    others, results = ledger.by_event((kinds != RESULT).astype(np.int64)), ledger.by_event((kinds == RESULT) * 1)
    return np.asarray((others > 0) | (results == 0))


@dataclass(frozen=True, slots=True)
class Messages:
    """A list of messages in columns. `tokens` is Hermes' estimate of each, `pruned` that of its pruned form; `event` is
    the event of the log it is, or -1 - k for segment k of the view, which is no event."""

    event: Ints
    role: Ints
    tokens: Ints
    pruned: Ints
    has_calls: Bools
    has_words: Bools
    is_summary: Bools

    def __len__(self) -> int:
        return len(self.event)


def list_messages(estimates: Estimates, view: View) -> Messages:
    """The messages of a view.

    A merged summary and the message that it is part of are one: its row is the event's.
    """
    flags, role_sums = estimates.ledger.events["flags"], estimates.roles
    rows: list[tuple[Ints, ...]] = []
    extra = 0
    for number, segment in enumerate(view):
        if not isinstance(segment, Span):
            assert isinstance(segment, Synthetic)
            if is_merged(segment):
                extra = segment.bytes
            else:
                size = estimates.quarter(segment.bytes) + MESSAGE_TOKENS
                speaker = USER if segment.kind == BY_ROLE[USER] else ASSISTANT
                row = (-1 - number, speaker, size, size, 0, 1, 1)
                rows.append(tuple(np.array([value]) for value in row))
            continue
        span, both = slice(segment.start, segment.stop), slice(segment.start, segment.stop + 1)
        pruned = np.diff(estimates.pruned[both])
        tokens = pruned if segment.form else np.diff(estimates.plain[both])
        summary = np.zeros(len(pruned), dtype=np.int64)
        if extra:
            tokens, pruned = tokens.copy(), pruned.copy()
            tokens[0] += extra // CHARS_PER_TOKEN
            pruned[0] += extra // CHARS_PER_TOKEN
            summary[0], extra = 1, 0
        calls, words, events = flags[span] & HAS_CALL, flags[span] & HAS_TEXT, np.arange(segment.start, segment.stop)
        rows.append((events, np.diff(role_sums[both]), tokens, pruned, calls, words, summary))
    empty = (np.zeros(0, dtype=np.int64),) * 7
    event, role, tokens, pruned, calls, words, summary = map(np.concatenate, zip(*rows, strict=True)) if rows else empty
    return Messages(event, role, tokens, pruned, calls > 0, words > 0, summary > 0)


def roles_of(ledger: Ledger) -> Ints:
    """The role of each event in Hermes."""
    flags = ledger.events["flags"]
    role = np.where(flags & MODEL, ASSISTANT, np.where(flags & SYSTEM, SYSTEM_ROLE, USER))
    return np.where(flags & HAS_RESULT, TOOL, role)


def calls_of(ledger: Ledger) -> Ints:
    """1 + the event of the newest call that each event has a result of; 0: none, or not known."""
    parts = ledger.parts
    answers = np.flatnonzero((parts["kind"] == RESULT) & (parts["answers"] >= 0))
    calls = np.zeros(ledger.event_count, dtype=np.int64)
    np.maximum.at(calls, parts["event"][answers], parts["event"][parts["answers"][answers]] + 1)
    return calls


def without_orphans(estimates: Estimates, messages: Messages, chosen: list[int]) -> list[int]:
    """The chosen messages but for results whose call is not among them."""
    events = messages.event[chosen]
    sums = estimates.calls
    calls = np.where(events >= 0, sums[events + 1] - sums[events], 0) - 1
    orphans = (messages.role[chosen] == TOOL) & (calls >= 0) & ~np.isin(calls, events)
    return [index for index, orphan in zip(chosen, orphans.tolist(), strict=True) if not orphan]


def take(ledger: Ledger, view: View, messages: Messages, chosen: Iterable[int], boundary: int) -> View:
    """The chosen messages of a view, in order, as a view; those before `boundary` in pruned form."""
    events, formed = messages.event.tolist(), _formed(view, messages)
    merged = {_first_event(view[number + 1]): segment for number, segment in enumerate(view) if is_merged(segment)}
    segments: list[Segment] = []
    for index in chosen:
        event, form = events[index], FORM if index < boundary or formed[index] else ""
        last = segments[-1] if segments else None
        if event < 0:
            segments.append(view[-1 - event])
        elif event in merged:
            segments += [merged[event], Span(event, event + 1, form)]
        elif isinstance(last, Span) and (last.stop, last.form) == (event, form):
            segments[-1] = Span(last.start, event + 1, form)
        else:
            segments.append(Span(event, event + 1, form))
    return normal(tuple(ledger.span(*_fields(item)) if isinstance(item, Span) else item for item in segments))


def _fields(span: Span) -> tuple[int, int, str]:
    return span.start, span.stop, span.form


def _first_event(segment: Segment) -> int:
    assert isinstance(segment, Span)
    return segment.start


def _formed(view: View, messages: Messages) -> list[bool]:
    """Which messages have the pruned form already."""
    result = np.zeros(len(messages), dtype=np.bool_)
    for segment in view:
        if isinstance(segment, Span) and segment.form:
            result |= (messages.event >= segment.start) & (messages.event < segment.stop)
    return result.tolist()
