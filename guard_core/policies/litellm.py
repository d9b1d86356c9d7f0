"""LiteLLM's `trim_messages`: from the newest message back as many as fit; one that does not loses its middle.

Source of the rules: litellm 1.106.2, `utils.py`, and scripted runs of it. The caller's list stays whole, and each
request is made of it again. Tool results at the end are set aside and always sent, system messages are joined into one
at the beginning. Pictures are not counted. Only a text can lose its middle: where an answer that only calls tools,
whose content is null in OpenAI's API, or a message with pictures, whose content is a list, would have to be shortened,
the library fails inside and returns the whole list (run with such messages).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import CALL, HAS_CALL, HAS_MEDIA, HAS_TEXT, RESULT, TEXT
from guard_core.errors import SettingError
from guard_core.estimation.usage import normal
from guard_core.events import Role
from guard_core.forms import CutToEnds
from guard_core.ledger import Ints, Ledger, prefix_sums
from guard_core.policies.pieces.editing import ActingSteps, Edited, EditingPolicy
from guard_core.policies.pieces.lists import ListOutcome, ListRequest, Sizes
from guard_core.policies.pieces.messages import SYSTEM_ROLE, TOOL, MessageCosts, joined_view, roles_of
from guard_core.policies.settings import (
    BEGINS_WITH_ANSWER,
    COUNT,
    SHARE,
    SWITCH,
    KnownProblem,
    PolicyKind,
    RecordedRuns,
    Setting,
)
from guard_core.view_columns import ViewColumns
from guard_core.views import Segment, Span, Synthetic, View

CHARS_PER_TOKEN = 4  # as in the scripted runs; the library uses the model's tokenizer
MOST_RATIO = 100  # ours: the library takes any number, above 1 too
TRIM_RATIO = 0.75  # of the model's window, where no limit is given
ATTEMPTS = 10  # to shorten one message
LEAST_ROOM = 3  # tokens: with no more left it stops
CUT = ".."  # between the two ends of a shortened text
_SOURCE = "litellm 1.106.2, trim_messages"


def _chars(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """Characters of texts, results and arguments (as JSON) of each event."""
    kind, chars = parts["kind"], parts["chars"]
    text = np.where((kind == TEXT) | (kind == RESULT), chars, 0)
    return ledger.by_event(np.where(kind == CALL, chars + parts["separators"], text))


COSTS = MessageCosts("litellm characters", _chars, lambda message: message.bytes, is_local=True)


class LiteLlmSettings(msgspec.Struct, frozen=True):
    """`max_tokens` is 0 where `trim_ratio` of the window counts."""

    max_tokens: int = 0
    trim_ratio: float = TRIM_RATIO
    null_content: bool = True


class Ending(NamedTuple):
    """What stays of a text: its first `head` characters, `mark`, its last `tail`; `whole`: all of it."""

    head: int
    mark: str
    tail: int
    whole: bool = False

    @property
    def chars(self) -> int:
        return self.head + len(self.mark) + self.tail

    def halved(self, half: int) -> Ending | None:
        """The first and the last `half` characters with a mark between them. With no characters the library takes the
        last half for all of it; None where that can no longer be said by two ends."""
        if not half:
            return Ending(0, CUT + self.mark, self.tail) if not self.head else None
        if self.whole:
            return Ending(half, CUT, half)
        before, after = max(half - self.head, 0), max(half - self.tail, 0)
        mark = self.mark[:before] + CUT + self.mark[len(self.mark) - after :]
        return Ending(min(half, self.head), mark, min(half, self.tail))


def shortened(chars: int, others: int, tokens: int) -> Ending:
    """What stays of a text of so many characters, beside `others` that cannot be shortened, to fit some tokens. It may
    still not fit after the last attempt."""
    ending = Ending(0, "", chars, whole=True)
    for _ in range(ATTEMPTS):
        total = (ending.chars + others) // CHARS_PER_TOKEN
        if total <= tokens:
            break
        half = max(0, int(ending.chars * (tokens / total)) - 1) // 2
        shorter = ending.halved(half)
        if shorter is None:
            break
        ending = shorter
    return ending


class LiteLLMTrimMessages(EditingPolicy):
    """The policy; see the module."""

    name: ClassVar[str] = "litellm-trim-messages"
    relation: ClassVar[str] = ">="
    most_steps: ClassVar[int] = 128  # each may have a form of its own, whose columns are remembered for some events
    settings: LiteLlmSettings

    def costs(self) -> MessageCosts:
        return COSTS

    def limit(self, window: int) -> int:
        return self.settings.max_tokens or int(window * self.settings.trim_ratio)

    def counted(self, sizes: Sizes) -> Ints:
        return np.asarray(sizes.whole // CHARS_PER_TOKEN)

    def acts(self, sizes: Sizes, counted: Ints, limit: int) -> NDArray[np.bool_]:
        """The tool results at the end do not count."""
        prefix = COSTS.prefix(sizes.ledger)
        return np.asarray(prefix[_before_results(sizes.ledger)[sizes.at]] // CHARS_PER_TOKEN >= limit)

    def edited(self, steps: ActingSteps) -> Edited | None:
        lists = [self._segments(steps.ledger, at, steps.limit) for at in steps.at.tolist()]
        steps.ledger.look_up_changes(item for view in lists for item in view if isinstance(item, Span))
        columns = ViewColumns.of([normal(joined_view(steps.ledger, view)) for view in lists])
        return None if columns is None else Edited(columns)

    def compact(self, request: ListRequest, state: Any) -> ListOutcome:
        segments = self._segments(request.ledger, request.check.at, request.limit)
        return ListOutcome(normal(joined_view(request.ledger, segments)), state)

    def _segments(self, ledger: Ledger, at: int, limit: int) -> View:
        """What is sent over `at` events, before its spans are joined."""
        stop = _before_results(ledger).item(at)
        results = (Span(stop, at),) if stop < at else ()
        system, room = self._system(ledger, stop, limit)
        if system and not room:
            return system
        others = _shown_messages(ledger, system=False if system else None)
        newest = _newest(ledger, others, stop, room, only_texts=self.settings.null_content)
        return (Span(0, at),) if newest is None else (*system, *newest, *results)

    def _system(self, ledger: Ledger, stop: int, limit: int) -> tuple[tuple[Segment, ...], int]:
        """The system messages as one, and the tokens that are left for the others; none where all of them are empty,
        which the library then takes for messages like others."""
        events, sums, _ = _shown_messages(ledger, system=True)
        count = bisect_left(events, stop)
        if not sums[count]:
            return (), limit
        empty = bisect_right(sums, 0) - 1  # those at the beginning
        chars = sums[count] + count - empty - 1  # line breaks between the others
        ending = shortened(chars, 0, limit)
        room = limit - ending.chars // CHARS_PER_TOKEN
        if count > 1:
            return (Synthetic("system messages", ending.chars, None, Role.SYSTEM),), room
        return (Span(events[0], events[0] + 1, _form(ending, "text")),), room


class ShownMessages(NamedTuple):
    """The messages of the system, all others, or both: their events, prefix sums of their characters, and the places at
    which one does not follow the one before in the log; as plain numbers, for each request looks up a few of them."""

    events: list[int]
    sums: list[int]
    breaks: list[int]


def _shown_messages(ledger: Ledger, *, system: bool | None) -> ShownMessages:
    """`system` is None for all messages."""
    key = "litellm messages", system
    if key not in ledger.derived:
        chosen = (roles_of(ledger) == SYSTEM_ROLE) == system if system is not None else np.ones(ledger.event_count)
        prefix, events = COSTS.prefix(ledger), np.flatnonzero(chosen)
        sums = prefix_sums(prefix[events + 1] - prefix[events])
        breaks = np.flatnonzero(np.diff(events) != 1) + 1
        ledger.derived[key] = ShownMessages(events.tolist(), sums.tolist(), breaks.tolist())
    shown: ShownMessages = ledger.derived[key]
    return shown


def _newest(
    ledger: Ledger, shown: ShownMessages, stop: int, room: int, *, only_texts: bool
) -> tuple[Segment, ...] | None:
    """The newest of some messages before an event within some tokens, in order; those that do not fit are shortened
    where that helps. None where one would be that has no text as its content, and `only_texts` can be shortened."""
    events, sums, _ = shown
    count = bisect_left(events, stop)

    def fewest(tokens: int) -> int | None:
        """The fewest of the newest messages with so many tokens; None: all have fewer."""
        first = bisect_right(sums, sums[count] - CHARS_PER_TOKEN * tokens, 0, count + 1) - 1
        return count - first if first >= 0 else None

    enough, too_many = fewest(room - LEAST_ROOM), fewest(room + 1)
    # at least none, even where the system messages alone are over the limit, so that the room is less than nothing
    whole = max(0, min(count if enough is None else enough, count if too_many is None else too_many - 1))
    used = sums[count] - sums[count - whole]
    older: list[Span] = []
    for place in range(count - whole - 1, -1, -1):
        event = events[place]
        left = room - used // CHARS_PER_TOKEN
        if left <= LEAST_ROOM:
            break
        size, text, what = sums[place + 1] - sums[place], *_text_of(ledger, event)
        form = ""
        if (used + size) // CHARS_PER_TOKEN > room:
            if only_texts and size // CHARS_PER_TOKEN > left and not _is_text(ledger, event):
                return None
            ending = shortened(text, size - text, left)
            size, form = size - text + ending.chars, _form(ending, what)
        if (used + size) // CHARS_PER_TOKEN <= room:
            older.append(Span(event, event + 1, form))
            used += size
    return (*reversed(older), *_spans(shown, count - whole, count))


def _spans(shown: ShownMessages, start: int, stop: int) -> tuple[Span, ...]:
    """Some messages as spans, one for each run of events that follow each other in the log."""
    if start == stop:
        return ()
    inside = shown.breaks[bisect_right(shown.breaks, start) : bisect_left(shown.breaks, stop)]
    edges = [start, *inside, stop]
    return tuple(Span(shown.events[first], shown.events[last - 1] + 1) for first, last in pairwise(edges))


def _text_of(ledger: Ledger, event: int) -> tuple[int, str]:
    """The characters of an event's text alone, and which kind of part that is."""
    if "litellm texts" not in ledger.derived:
        kind, chars, is_result = ledger.parts["kind"], ledger.parts["chars"], roles_of(ledger) == TOOL
        is_text = kind == np.where(is_result[ledger.parts["event"]], RESULT, TEXT)
        ledger.derived["litellm texts"] = ledger.by_event(np.where(is_text, chars, 0)), is_result
    texts, results = ledger.derived["litellm texts"]
    return texts.item(event), "result" if results.item(event) else "text"


def _is_text(ledger: Ledger, event: int) -> bool:
    """Is the content of a message a text in OpenAI's API: it is null beside calls alone, and a list with pictures."""
    flags = ledger.events["flags"].item(event)
    return not flags & HAS_MEDIA and (bool(flags & HAS_TEXT) or not flags & HAS_CALL)


def _form(ending: Ending, what: str) -> str:
    return "" if ending.whole else CutToEnds(what=what, head=ending.head, tail=ending.tail, marker=ending.mark).name


def _before_results(ledger: Ledger) -> Ints:
    """For logs of 0, 1, ... events, where the tool results at their end begin."""
    if "before results" not in ledger.derived:
        others = roles_of(ledger) != TOOL
        places = np.where(others, np.arange(1, len(others) + 1), 0)
        ledger.derived["before results"] = (
            np.append(0, np.maximum.accumulate(places)) if len(others) else np.zeros(1, int)
        )
    ends: Ints = ledger.derived["before results"]
    return ends


def litellm_settings(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the library as our settings. Raises SettingError for a limit of 0 tokens: ours of 0 is none."""
    if parameters.get("max_tokens", 1) == 0:
        raise SettingError("max_tokens of 0 is not modelled: the library then sends texts with marks before them")
    return dict(parameters)


KIND = PolicyKind(
    LiteLLMTrimMessages.name,
    "LiteLLM (trim messages)",
    "Sends the newest messages that fit; a message that does not fit loses its middle.",
    lambda **values: LiteLLMTrimMessages(LiteLlmSettings(**values)),
    (
        Setting(
            "max_tokens",
            "Limit",
            COUNT,
            0,
            "maximum tokens of a request, not counting tool results at its end; 0: a share of the window",
            _SOURCE,
            unit="tokens",
            main=True,
            sweep=(0, 30_000, 100_000),
        ),
        Setting(
            "trim_ratio",
            "Share of the window",
            SHARE,
            TRIM_RATIO,
            "share of the window used if no limit is given",
            _SOURCE,
            most=MOST_RATIO,
            main=True,
        ),
        Setting(
            "null_content",
            "Null contents",
            SWITCH,
            True,
            (
                "as in OpenAI's API, answers that only call tools have no content, and messages with pictures a list; "
                "off: all have texts"
            ),
            _SOURCE,
        ),
    ),
    summarises=False,
    judged_by=RecordedRuns(
        "litellm",
        "trim_messages",
        settings={"null_content": False},  # the runs had empty texts
        settings_of=litellm_settings,
    ),
    parts_pairs=(
        "tool results at the end stay even if their call is dropped, and a cut may fall between a call and its result"
    ),
    known_problems=(
        BEGINS_WITH_ANSWER,
        KnownProblem(
            "Results without their call",
            "Tool results at the end are sent even if their call is dropped: in 316 of 503 steps at a limit of 2,000.",
            "measured, specification of new policies section 3",
        ),
        KnownProblem(
            "Nothing is trimmed",
            (
                "The whole list is sent if the first message that does not fit is an answer that only calls tools, or "
                "has pictures."
            ),
            "measured by running litellm 1.106.2",
        ),
    ),
)
