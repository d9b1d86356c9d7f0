"""Hermes' list of messages: the messages of a view with the sizes that Hermes estimates, and back to views.

Estimates are made of the texts where they are there, else of the characters of the parts (PART_COLUMNS); then the
arguments of a call count as JSON with a space behind each comma and colon. A tool result is a message of its own in
Hermes, so that an event with several results is estimated as so many messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guard_core.costs import CALL, HAS_CALL, HAS_MEDIA, HAS_RESULT, HAS_TEXT, MEDIA, MODEL, REASONING, RESULT, SYSTEM
from guard_core.estimation.estimators import Heuristic
from guard_core.estimation.usage import normal
from guard_core.events import Event, MediaPart, ReasoningPart, Role, ToolResultPart, value_text
from guard_core.forms import HERMES_PRUNED, PRUNED_CHARS
from guard_core.ledger import Ints, Ledger
from guard_core.policies.hermes.settings import HermesSettings
from guard_core.policies.hermes.texts import arguments_text, texts_of, tool_calls, written
from guard_core.sessions import Session
from guard_core.views import Rewritten, Segment, Span, Synthetic, View, content_count

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
SUMMARY_CHARS = len(str({"_compressed_summary": True})) - len("{}") + len(", ")  # the mark of a summary's message
USER, ASSISTANT, TOOL, SYSTEM_ROLE = range(4)
# Kinds of synthetic messages; the last one and the message behind it are one in Hermes.
BY_ROLE = {USER: "summary, in the user's role", ASSISTANT: "summary, in the model's role"}
MERGED = "summary, merged into the next message"
CONTINUATION = "note that the session continues from its summary"
FORM = "pruned"
SHORTENED = "shortened by the compaction"


def is_stand_in(segment: Segment) -> bool:
    """Is a segment a message of Hermes' own of which the size is known, not the words."""
    return isinstance(segment, Synthetic) and segment.kind in (*BY_ROLE.values(), MERGED, CONTINUATION)


def is_merged(segment: Segment) -> bool:
    """Is a segment the first half of the message that follows it."""
    return isinstance(segment, Synthetic) and segment.kind == MERGED


def message_count(view: View) -> int:
    """Messages of a view: a summary that is merged into one is part of it."""
    return content_count(view) - sum(map(is_merged, view))


class HermesEstimates:
    """Hermes' estimates over one ledger under some settings, as prefix sums. `session` is there where texts are."""

    def __init__(self, ledger: Ledger, settings: HermesSettings, session: Session | None = None) -> None:
        self.ledger, self.session = ledger, None if settings.is_seed else session
        self.round_up, self.seed = settings.round_up, settings.is_seed
        self.call_frame, self.result_frame = settings.call_frame, settings.result_frame
        texts = "texts" if self.session else "sizes"
        self._key = f"hermes {texts} {self.seed} {self.round_up} {self.call_frame} {self.result_frame}"
        self.fixed = Heuristic.of(ledger).fixed
        if self.session:
            self.fixed += self.whole_quarter(ledger.system_chars) - ledger.system_tokens
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

    @staticmethod
    def whole_quarter(chars: Any) -> Any:
        """Tokens of some characters of a whole request."""
        return -(-chars // CHARS_PER_TOKEN)

    # ---- of one message with its texts

    def tokens_of(self, message: Event, extra: int = 0) -> int:
        """The estimate of a message as the walk from the end counts it, with `extra` characters of text."""
        results = [part for part in message.parts if isinstance(part, ToolResultPart)]
        tokens = sum(self.quarter(len(value_text(part.content))) + MESSAGE_TOKENS for part in results)
        if len(results) < len(message.parts) or not results:
            pictures = sum(isinstance(part, MediaPart) for part in message.parts)
            tokens += self.quarter(sum(map(len, texts_of(message))) + extra) + MESSAGE_TOKENS + pictures * IMAGE_TOKENS
        for call in tool_calls(message):
            tokens += self.quarter(written(arguments_text(call.arguments)) + len(call.name) + self.call_frame)
        for part in message.parts:
            if isinstance(part, ReasoningPart):
                tokens += len(part.text) // CHARS_PER_TOKEN + part.opaque_bytes // CHARS_PER_TOKEN
        return int(tokens)

    def chars_of(self, message: Event, wrap: str = "") -> int:
        """Characters of a message as Python writes it; `wrap` is what a merged summary puts around its text."""
        results = [part for part in message.parts if isinstance(part, ToolResultPart)]
        total = sum(written(value_text(part.content)) + self.result_frame for part in results)
        if results and len(results) == len(message.parts):
            return total
        texts, calls = texts_of(message), tool_calls(message)
        pictures = sum(isinstance(part, MediaPart) for part in message.parts)
        total += ANSWER_CHARS if message.role is Role.MODEL else PLAIN_CHARS
        if pictures or len(texts) > 1:
            blocks = [{"type": "text", "text": text} for text in (*texts, *((wrap, "") if wrap else ()))]
            total += len(str(blocks)) - len("''") + pictures * (REQUEST_IMAGE_TOKENS * CHARS_PER_TOKEN + IMAGE_CHARS)
        else:
            total += written("".join(texts) + wrap)
        frame = self.call_frame + len(", ")
        total += sum(written(arguments_text(call.arguments)) + len(call.name) + frame for call in calls)
        return total + (CALLS_CHARS if calls else 0) + (SUMMARY_CHARS if wrap else 0)

    def summary_chars(self, summary: Synthetic) -> int:
        """Characters of a summary's own message as Python writes it."""
        if summary.text is None or not self.session:
            return summary.bytes + PLAIN_CHARS
        plain = ANSWER_CHARS if summary.role is Role.MODEL else PLAIN_CHARS
        return written(summary.text) + plain + (SUMMARY_CHARS if summary.kind in BY_ROLE.values() else 0)

    # ---- of every event

    def _message_tokens(self, ledger: Ledger, form: str) -> Ints:
        """The estimate of each event's messages as the walk from the end counts it."""
        if self.session:
            return np.array([self.tokens_of(event) for event in self.session.events], dtype=np.int64)
        parts, kind = ledger.parts, ledger.parts["kind"]
        chars = _chars(ledger, form)
        result, call = kind == RESULT, kind == CALL
        tokens = np.where(result, self.quarter(chars) + MESSAGE_TOKENS, 0)
        if self.seed:
            tokens += np.where(call, chars // CHARS_PER_TOKEN, 0)
        else:
            of_call = chars + parts["separators"] + parts["name_chars"] + self.call_frame
            tokens += np.where(call, self.quarter(of_call), 0)
            tokens += np.where(kind == MEDIA, IMAGE_TOKENS, 0)
            tokens += np.where(kind == REASONING, chars // CHARS_PER_TOKEN, 0)
        content = ledger.by_event(np.where(result | call | (kind == REASONING) | (kind == MEDIA), 0, chars))
        own = _has_own_message(ledger)
        total = ledger.by_event(tokens) + np.where(own, self.quarter(content) + MESSAGE_TOKENS, 0)
        return np.asarray(total if self.seed else total + ledger.events["opaque_bytes"] // CHARS_PER_TOKEN)

    def _request_chars(self, ledger: Ledger, form: str) -> Ints:
        """Characters of each event's messages as Python writes them; a line break or backslash is two, as in JSON."""
        if self.session:
            return np.array([self.chars_of(event) for event in self.session.events], dtype=np.int64)
        parts, kind = ledger.parts, ledger.parts["kind"]
        chars = _chars(ledger, form)
        as_written = np.where(chars == parts["chars"], parts["repr_chars"] - 2, chars)
        by_part = np.where(kind == RESULT, as_written + self.result_frame, as_written)
        call = parts["chars"] + parts["separators"] + parts["name_chars"] + self.call_frame + len(", ")
        by_part = np.where(kind == CALL, call, by_part)
        by_part = np.where(kind == MEDIA, REQUEST_IMAGE_TOKENS * CHARS_PER_TOKEN + IMAGE_CHARS, by_part)
        flags = ledger.events["flags"]
        own = np.where(flags & MODEL, ANSWER_CHARS, PLAIN_CHARS) + np.where(flags & HAS_CALL, CALLS_CHARS, 0)
        own = own + np.where(flags & HAS_MEDIA, TEXT_CHARS, 0)
        return ledger.by_event(by_part) + np.where(_has_own_message(ledger), own, 0)

    def request_chars(self, view: View) -> int:
        """Characters of a view's messages as Python writes them."""
        total, wrap = 0, ""
        for segment in view:
            if is_merged(segment):
                assert isinstance(segment, Synthetic)
                wrap = segment.text or ""
                total += 0 if self.session and wrap else segment.bytes
            elif isinstance(segment, Synthetic):
                total += self.summary_chars(segment)
            elif isinstance(segment, Rewritten):
                total += self.chars_of(segment.message, wrap)
                wrap = ""
            elif isinstance(segment, Span):
                prefix = self.chars[segment.form]
                total += prefix.item(segment.stop) - prefix.item(segment.start)
                if wrap and self.session:
                    merged = self.session.events[segment.start]
                    total += self.chars_of(merged, wrap) - self.chars_of(merged)
                wrap = ""
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
class HermesMessages:
    """A list of messages in columns. `tokens` is Hermes' estimate of each, `pruned` that of its pruned form; `event` is
    the event of the log it is, or -1 - k for segment k of the view, which is not an event."""

    event: Ints
    role: Ints
    tokens: Ints
    pruned: Ints
    has_calls: Bools
    has_words: Bools
    is_summary: Bools

    def __len__(self) -> int:
        return len(self.event)


def list_messages(estimates: HermesEstimates, view: View) -> HermesMessages:
    """The messages of a view.

    A merged summary and the message that it is part of are one: its row is the event's.
    """
    flags, role_sums = estimates.ledger.events["flags"], estimates.roles
    rows: list[tuple[Ints, ...]] = []
    extra = 0
    for number, segment in enumerate(view):
        if isinstance(segment, Rewritten):
            rows.append(_row_of(estimates, segment, extra))
            extra = 0
            continue
        if not isinstance(segment, Span):
            assert isinstance(segment, Synthetic)
            if is_merged(segment):
                extra = len(segment.text) if estimates.session and segment.text else segment.bytes
            else:
                chars = len(segment.text) if estimates.session and segment.text else segment.bytes
                size = estimates.quarter(chars) + MESSAGE_TOKENS
                speaker = ASSISTANT if segment.kind == BY_ROLE[ASSISTANT] else USER
                row = (-1 - number, speaker, size, size, 0, 1, segment.kind != CONTINUATION)
                rows.append(tuple(np.array([value]) for value in row))
            continue
        span, both = slice(segment.start, segment.stop), slice(segment.start, segment.stop + 1)
        pruned = np.diff(estimates.pruned[both])
        tokens = pruned if segment.form else np.diff(estimates.plain[both])
        summary = np.zeros(len(pruned), dtype=np.int64)
        if extra:
            tokens, pruned = tokens.copy(), pruned.copy()
            if estimates.session:
                tokens[0] = estimates.tokens_of(estimates.session.events[segment.start], extra)
            else:
                tokens[0] += extra // CHARS_PER_TOKEN
                pruned[0] += extra // CHARS_PER_TOKEN
            summary[0], extra = 1, 0
        calls, words, events = flags[span] & HAS_CALL, flags[span] & HAS_TEXT, np.arange(segment.start, segment.stop)
        rows.append((events, np.diff(role_sums[both]), tokens, pruned, calls, words, summary))
    empty = (np.zeros(0, dtype=np.int64),) * 7
    event, role, tokens, pruned, calls, words, summary = map(np.concatenate, zip(*rows, strict=True)) if rows else empty
    return HermesMessages(event, role, tokens, pruned, calls > 0, words > 0, summary > 0)


def _row_of(estimates: HermesEstimates, segment: Rewritten, extra: int) -> tuple[Ints, ...]:
    """The row of a message that was changed, with `extra` characters of a summary in it."""
    message = segment.message
    role = estimates.roles.item(segment.event + 1) - estimates.roles.item(segment.event)
    tokens = estimates.tokens_of(message, extra)
    calls, words = bool(tool_calls(message)), any(text.strip() for text in texts_of(message))
    return tuple(np.array([value]) for value in (segment.event, role, tokens, tokens, calls, words, extra > 0))


def roles_of(ledger: Ledger) -> Ints:
    """The role of each event in Hermes."""
    flags = ledger.events["flags"]
    role = np.where(flags & MODEL, ASSISTANT, np.where(flags & SYSTEM, SYSTEM_ROLE, USER))
    return np.where(flags & HAS_RESULT, TOOL, role)


def calls_of(ledger: Ledger) -> Ints:
    """1 + the event of the newest call that each event has a result of; 0: none, or not known, -1: the result names a
    call that is not in the log."""
    parts = ledger.parts
    is_result, is_known = parts["kind"] == RESULT, parts["answers"] >= 0
    calls = np.zeros(ledger.event_count, dtype=np.int64)
    calls[parts["event"][is_result & ~is_known & (parts["id_chars"] > 0)]] = -1
    answers = np.flatnonzero(is_result & is_known)
    np.maximum.at(calls, parts["event"][answers], parts["event"][parts["answers"][answers]] + 1)
    return calls


def without_orphans(estimates: HermesEstimates, messages: HermesMessages, chosen: list[int]) -> list[int]:
    """The chosen messages but for results whose call is not among them."""
    events = messages.event[chosen]
    sums = estimates.calls
    calls = np.where(events >= 0, sums[events + 1] - sums[events], 0) - 1
    orphans = (messages.role[chosen] == TOOL) & (calls != -1) & ~np.isin(calls, events[events >= 0])
    return [index for index, orphan in zip(chosen, orphans.tolist(), strict=True) if not orphan]


def sent_texts(session: Session, view: View, messages: HermesMessages) -> list[Event | None]:
    """The messages of a view as they are sent; None: a summary of its own."""
    rewritten = {row: segment.message for row, segment in _at_rows(view) if isinstance(segment, Rewritten)}
    events = enumerate(messages.event.tolist())
    return [rewritten.get(row, session.events[event]) if event >= 0 else None for row, event in events]


def _at_rows(view: View) -> Iterator[tuple[int, Segment]]:
    """The segments of a view, each with the row of its first message, or of the message that it is merged into."""
    row = 0
    for segment in view:
        yield row, segment
        if isinstance(segment, Span):
            row += segment.stop - segment.start
        elif not is_merged(segment):
            row += 1


def take(
    ledger: Ledger,
    view: View,
    messages: HermesMessages,
    chosen: Iterable[int],
    boundary: int,
    texts: Mapping[int, Event] | None = None,
) -> View:
    """The chosen messages of a view, in order, as a view. Where `texts` are known, the messages at those places are
    sent as those; else the ones before `boundary` are in pruned form."""
    events, formed = messages.event.tolist(), _formed(view, messages)
    merged = {row: segment for row, segment in _at_rows(view) if is_merged(segment)}
    segments: list[Segment] = []
    for index in chosen:
        is_pruned = texts is None and (index < boundary or formed[index])
        event, form = events[index], FORM if is_pruned else ""
        last = segments[-1] if segments else None
        if event < 0:
            segments.append(view[-1 - event])
        elif texts is not None and index in texts:
            segments += [merged[index]] if index in merged else []
            segments.append(Rewritten(event, texts[index], SHORTENED))
        elif index in merged:
            segments += [merged[index], Span(event, event + 1, form)]
        elif isinstance(last, Span) and (last.stop, last.form) == (event, form):
            segments[-1] = Span(last.start, event + 1, form)
        else:
            segments.append(Span(event, event + 1, form))
    return normal(
        tuple(ledger.span(item.start, item.stop, item.form) if isinstance(item, Span) else item for item in segments)
    )


def _formed(view: View, messages: HermesMessages) -> list[bool]:
    """Which messages have the pruned form already."""
    result = np.zeros(len(messages), dtype=np.bool_)
    for segment in view:
        if isinstance(segment, Span) and segment.form:
            result |= (messages.event >= segment.start) & (messages.event < segment.stop)
    return result.tolist()
