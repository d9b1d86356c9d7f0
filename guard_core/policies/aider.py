"""Aider's chat summary: the older part of the finished exchanges becomes a summary when they are over a limit.

Source of the rule: aider 0.86.2, `history.py` and `models.py`, and scripted runs of it. The newest messages of the user
are kept apart, and neither counted nor summarised. A message counts as JSON in ASCII, in which a Chinese character has
six; a summary that was just made counts as its text. Tool calls and results have no place in its history: they are sent
as nothing, and their messages are empty. A head that is larger than the summariser's window is cut to what fits, and
the rest of it is in no summary. Not here: the files, the map of the repository and the other parts of a request, and
that a summary is begun at the end of a turn beside the program (it is waited for before the next call).
"""

from __future__ import annotations

import json
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np

from guard_core.costs import TEXT
from guard_core.errors import SummaryFailed
from guard_core.events import Role
from guard_core.forms import Removed, WithoutCalls
from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.lists import ListOutcome, ListPolicy, ListRequest, Sizes
from guard_core.policies.pieces.messages import (
    ASSISTANT,
    ROLE_OF,
    USER,
    ListMessage,
    MessageCosts,
    role_of,
    roles_of,
    view_of,
)
from guard_core.policies.settings import COUNT, SWITCH, KnownProblem, PolicyKind, RecordedRuns, Setting
from guard_core.trace import Pass
from guard_core.views import Synthetic

CHARS_PER_TOKEN = 4  # as in the scripted runs; the program asks the model's tokenizer
LEAST_TOKENS, MOST_TOKENS, SHARE = 1024, 8192, 16  # of a history: a 16th of the window within these
LEAST_SPLIT = 4  # messages; no more of them are summarised together
MOST_DEPTH = 3  # of summaries of summaries
UNKNOWN_WINDOW = 4096
RESERVED = 512  # tokens of the summariser's window
PREFIX, PREFIX_BREAKS = 52, 1  # characters before every summary, and line breaks among them
# Characters of a message as JSON, besides its text: of USER, ASSISTANT, TOOL, SYSTEM_ROLE.
FRAME = tuple(len(json.dumps({"role": role, "content": ""})) for role in ("user", "assistant", "tool", "system"))
ANSWER = Synthetic("answer", 3, "Ok.", Role.MODEL)  # behind a list that does not end with an answer
SUMMARY = "summary"
_SOURCE = "aider 0.86.2, history.py"


def _text_tokens(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """Tokens of the texts of each event."""
    return ledger.by_event(np.where(parts["kind"] == TEXT, parts["chars"], 0)) // CHARS_PER_TOKEN


def _json_tokens(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """Tokens of each event with a text as a message in JSON, in ASCII alone."""
    is_text = parts["kind"] == TEXT
    escaped = parts["json_chars"] + 5 * parts["non_ascii"] + 6 * (parts["utf16"] - parts["chars"]) - len('""')
    frames = np.array(FRAME)[roles_of(ledger)]
    has_text = ledger.by_event(is_text.astype(np.int64)) > 0
    return (ledger.by_event(np.where(is_text, escaped, 0)) + np.where(has_text, frames, 0)) // CHARS_PER_TOKEN


def _inserted_json(message: Synthetic) -> int:
    """The same of an inserted message, in tokens. A text that is not written is taken as ASCII with no line break but
    that of the prefix."""
    frame = FRAME[ROLE_OF[message.role]]
    if message.text is None:
        return (frame + message.bytes + PREFIX_BREAKS) // CHARS_PER_TOKEN
    return (frame + len(json.dumps(message.text)) - len('""')) // CHARS_PER_TOKEN


TEXTS = MessageCosts(
    "aider texts",
    _text_tokens,
    lambda message: (message.bytes if message.text is None else len(message.text)) // CHARS_PER_TOKEN,
)
MESSAGES_AS_JSON = MessageCosts("aider messages", _json_tokens, _inserted_json)


class AiderSettings(msgspec.Struct, frozen=True):
    """`max_tokens` is 0 where a 16th of the window counts."""

    max_tokens: int = 0
    as_json: bool = True

    @property
    def costs(self) -> MessageCosts:
        """What a message of the history costs."""
        return MESSAGES_AS_JSON if self.as_json else TEXTS

    def most(self, window: int) -> float:
        """Tokens over which a history is summarised."""
        return self.max_tokens or min(max(window / SHARE, LEAST_TOKENS), MOST_TOKENS)


class AiderMessage(NamedTuple):
    """A message of the history and its tokens."""

    message: ListMessage
    tokens: int


class _Summarising:
    """One compaction: what was asked so far. Raises SummaryFailed."""

    def __init__(self, request: ListRequest, state: Any, settings: AiderSettings, behind: list[ListMessage]) -> None:
        self.request, self.state, self.behind, self.budget = request, state, behind, request.limit // 2
        self.most, self.costs = settings.most(request.check.window), settings.costs
        self.passes: tuple[Pass, ...] = ()

    def history(self, items: list[AiderMessage], depth: int = 0) -> list[AiderMessage]:
        """A shorter history."""
        if len(items) <= LEAST_SPLIT or depth > MOST_DEPTH:
            return self._together(items, ())
        split = self._split(items)
        if split <= LEAST_SPLIT:
            return self._together(items, ())
        head, room = items[:split], (self.request.check.window or UNKNOWN_WINDOW) - RESERVED
        over = np.flatnonzero(np.cumsum([item.tokens for item in head]) > room)
        fitting = head[: int(over[0])] if len(over) else head  # the first messages that fit the summariser's window
        shorter = self._together(fitting, items[split:])
        summary, *tail = shorter
        if TEXTS.message(self.request.ledger, summary.message) + sum(item.tokens for item in tail) < self.most:
            return shorter
        return self.history(shorter, depth + 1)

    def _split(self, items: list[AiderMessage]) -> int:
        """Where the tail begins: less than half of the limit, behind an answer."""
        half, tail, split = self.most // 2, 0, len(items)
        while split and tail + items[split - 1].tokens < half:
            split -= 1
            tail += items[split].tokens
        while split > 1 and self._role(items[split - 1]) != ASSISTANT:
            split -= 1
        return split

    def _together(self, items: list[AiderMessage], tail: Any) -> list[AiderMessage]:
        """The summary of some messages, and the tail behind it."""
        spoken = [item.message for item in items if self._role(item) in (USER, ASSISTANT)]
        given = view_of(self.request.ledger, spoken)
        summary, self.state = self.request.summarise(self.state, given, self.budget)
        # The summary is behind words of the program, of which we know the length.
        message = ListMessage(inserted=Synthetic(SUMMARY, PREFIX + summary.bytes))
        shorter = [AiderMessage(message, self.costs.message(self.request.ledger, message)), *tail]
        after = view_of(self.request.ledger, [*(item.message for item in shorter), *self.behind])
        self.passes += (self.request.passed(given, after, summary_bytes=summary.bytes, empty=not summary.bytes),)
        return shorter

    def _role(self, item: AiderMessage) -> int:
        return role_of(self.request.ledger, item.message)


class ChatSummary(ListPolicy):
    """The policy; see the module."""

    name: ClassVar[str] = "aider-chat-summary"
    settings: AiderSettings

    def costs(self) -> MessageCosts:
        return self.settings.costs

    @property
    def sent_form(self) -> str:
        return f"{WithoutCalls().name}+{Removed(what='result').name}"

    def limit(self, window: int) -> int:
        return int(self.settings.most(window))

    def counted(self, sizes: Sizes) -> Ints:
        prefix = self.costs().prefix(sizes.ledger)
        return sizes.whole - (prefix[sizes.at] - prefix[_finished(sizes.ledger)[sizes.at]])

    def compact(self, request: ListRequest, state: Any) -> ListOutcome:
        ledger, at, messages = request.ledger, request.check.at, request.messages
        stop = len(messages) - (at - int(_finished(ledger)[at]))
        done, newest = messages[:stop], messages[stop:]
        items = [AiderMessage(*pair) for pair in zip(done, self.costs().messages(ledger, done), strict=True)]
        summarising = _Summarising(request, state, self.settings, newest)
        try:
            shorter = [item.message for item in summarising.history(items)]
        except SummaryFailed as error:
            after = msgspec.structs.replace(summarising.state, calls=summarising.state.calls + 1)
            return ListOutcome(request.view, after, error=str(error))
        if role_of(ledger, shorter[-1]) != ASSISTANT:
            shorter.append(ListMessage(inserted=ANSWER))
        view = view_of(ledger, [*shorter, *newest])
        return ListOutcome(view, summarising.state, summarising.passes)


def _finished(ledger: Ledger) -> Ints:
    """For logs of 0, 1, ... events, where the messages of the user at their end begin."""
    if "finished exchanges" not in ledger.derived:
        others = roles_of(ledger) != USER
        places = np.where(others, np.arange(1, len(others) + 1), 0)
        ledger.derived["finished exchanges"] = np.append(0, np.maximum.accumulate(places)).astype(np.int64)
    ends: Ints = ledger.derived["finished exchanges"]
    return ends


MAX_TOKENS = 1_024  # of ChatSummary where none are given (aider 0.86.2, history.py)
KIND = PolicyKind(
    ChatSummary.name,
    "Aider (chat summary)",
    "Summarises older finished exchanges once they exceed a limit; tool calls and results are ignored.",
    lambda **values: ChatSummary(AiderSettings(**values)),
    (
        Setting(
            "max_tokens",
            "History",
            COUNT,
            0,
            (
                "finished exchanges with more tokens than this are summarised; 0: a 16th of the window, "
                "between 1,024 and 8,192"
            ),
            _SOURCE,
            unit="tokens",
            main=True,
            sweep=(1_024, 2_048, 8_192),
        ),
        Setting(
            "as_json",
            "Count as JSON",
            SWITCH,
            True,
            "counts each message as JSON in ASCII, as aider does; off: its text alone",
            "aider 0.86.2, models.py",
        ),
    ),
    judged_by=RecordedRuns(
        "aider",
        "chat_summary",
        settings={"max_tokens": MAX_TOKENS, "as_json": False},  # the runs counted texts
        leaves_out_calls=True,
    ),
    known_problems=(
        KnownProblem(
            "An oversized summary is summarised again and again",
            "A summary longer than the limit is summarised again before every call: 135 times in a row.",
            "measured, specification of new policies section 3",
        ),
        KnownProblem(
            "Part of the head is lost",
            "What does not fit the summariser's window is neither summarised nor kept.",
            _SOURCE,
        ),
    ),
)
