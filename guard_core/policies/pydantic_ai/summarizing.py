"""The summarising compaction: the oldest messages become a summary behind the user's first one."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import msgspec

from guard_core.costs import HAS_MEDIA, HAS_RESULT, TEXT
from guard_core.errors import SummaryFailed
from guard_core.forms import CutToEnds, Removed
from guard_core.ledger import Ledger
from guard_core.policies.pieces.lists import ListOutcome, ListRequest, failed
from guard_core.policies.pieces.messages import SYSTEM_ROLE, ListMessage, role_of, view_of
from guard_core.policies.pydantic_ai.cuts import (
    PARTS_PAIRS,
    LibraryMessage,
    PydanticAIWindow,
    WindowMemory,
    WindowSettings,
    first_prompt,
    flat,
    is_prompt,
    safe_cut,
    window_settings,
)
from guard_core.policies.pydantic_ai.parameters import SOURCE, harness_settings
from guard_core.policies.settings import COUNT, SWITCH, KnownProblem, PolicyKind, RecordedRuns, Setting
from guard_core.trace import NOTHING_TO_COMPACT
from guard_core.views import Synthetic

SUMMARY_TOKENS = 4_096  # ours: shares of a summary are taken of it; the library sets no limit
WITHOUT_RESULTS = Removed(what="result").name
MARKER = "[...]"  # what a cut message of the user ends with


class PydanticAISummarizingSettings(WindowSettings, frozen=True):
    """`incremental`: a summary updates the one before it."""

    keep_messages: int = 20
    incremental: bool = True
    keep_user_messages: bool = False
    keep_user_messages_max_chars: int = 20_000


class SummarizingMemory(WindowMemory, frozen=True, omit_defaults=True):
    """`copies`: events of the log whose messages stay beside the summary, for `keep_user_messages`."""

    copies: tuple[int, ...] = ()


class KeptTurns(NamedTuple):
    """What stays of a list beside the summary: messages before it, the user's `turns` behind it, and the new ones."""

    before: list[ListMessage]
    turns: list[list[ListMessage]]
    tail: list[ListMessage]

    @property
    def behind(self) -> list[ListMessage]:
        return [message for turn in self.turns for message in turn]


class Summarizing(PydanticAIWindow):
    """The policy; see the module."""

    name: ClassVar[str] = "pydantic-ai-summarizing"
    state_type: ClassVar[type] = SummarizingMemory
    settings: PydanticAISummarizingSettings

    def compact(self, request: ListRequest, state: SummarizingMemory) -> ListOutcome:
        ledger = request.ledger
        groups = self.groups(request, state)
        cut = self.cut(request, groups, state)
        nothing = ListOutcome(request.view, state, held=NOTHING_TO_COMPACT)
        if not cut:
            return nothing
        system = _leading_system(ledger, groups[0])
        kept = self._tail(request, groups, cut, system, state)
        if self.settings.keep_tokens and all(_adds_nothing(ledger, group, kept) for group in groups[:cut]):
            return nothing
        given = view_of(ledger, [item for item in flat(groups[:cut]) if item.event not in state.copies])
        try:
            summary, asked = request.summarise(state, given, SUMMARY_TOKENS)
            if not summary.bytes:
                raise SummaryFailed("the answer has no text")
        except SummaryFailed as error:
            return failed(request, state, given, error)
        tail = [item for item in kept.tail if item.inserted is None] if self.settings.incremental else kept.tail
        inserted = ListMessage(inserted=Synthetic("summary", summary.bytes, summary.text))
        after = view_of(ledger, [*system, *kept.before, inserted, *kept.behind, *tail])
        copies = tuple(item.event for item in kept.behind)
        memory = msgspec.structs.replace(asked, summary_bytes=summary.bytes, copies=copies)
        summarising = request.passed(given, after, summary_bytes=summary.bytes)
        parts = [system, kept.before, [inserted], *kept.turns, tail]
        return self.after(request, state, ListOutcome(after, memory, (summarising,)), parts)

    def _tail(
        self,
        request: ListRequest,
        groups: list[LibraryMessage],
        cut: int,
        system: list[ListMessage],
        state: SummarizingMemory,
    ) -> KeptTurns:
        """What stays. A message of the user that is not new stays whole, cut to a number of characters, or not."""
        ledger, settings = request.ledger, self.settings
        if settings.keep_user_messages:
            prompts = [self._prompts(ledger, group, state) for group in groups[:cut] if not group.is_answer]
            turns = [turn for turn in prompts if turn][-settings.keep_messages :] if settings.keep_messages else []
            tail = groups[cut:]
            slots = max(1, settings.keep_messages - len(turns))
            if not settings.keep_tokens and len(tail) > slots:
                tail = tail[safe_cut(ledger, tail, slots) :]
            return KeptTurns([], turns, flat(tail))
        first = first_prompt(ledger, groups)
        if not settings.preserve_first_user_message or first >= cut:
            return KeptTurns([], [], flat(groups[cut:]))
        return KeptTurns(_first_turn(ledger, groups[first], system), [], flat(groups[cut:]))

    def _prompts(self, ledger: Ledger, group: LibraryMessage, state: SummarizingMemory) -> list[ListMessage]:
        """The user's messages in one of the library's, without results beside them, of which those that are not copies
        already are one prompt: its texts share the characters that may stay (`_bound_sequence` of 0.62.0)."""
        kept, room = [], self.settings.keep_user_messages_max_chars
        for message in group.messages:
            if not is_prompt(ledger, message):
                continue
            if message.event in state.copies:
                kept.append(message)
                continue
            flags = ledger.events["flags"].item(message.event)
            if room or flags & HAS_MEDIA:  # a picture stays without its text
                said = message.joined(WITHOUT_RESULTS) if flags & HAS_RESULT else message
                # The text is cut to the room that is left, its mark included.
                cut = CutToEnds(what="text", head=max(room - len(MARKER), 0), over=room, marker=MARKER[:room]).name
                kept.append(said.joined(cut))
            first, stop = ledger.part_starts[message.event : message.event + 2].tolist()
            chars = int(ledger.parts["chars"][first:stop][ledger.parts["kind"][first:stop] == TEXT].sum())
            room -= min(chars, room)
        return kept


def _leading_system(ledger: Ledger, group: LibraryMessage) -> list[ListMessage]:
    """The system prompts with which a list begins."""
    leading: list[ListMessage] = []
    for message in group.messages:
        if message.inserted is not None or role_of(ledger, message) != SYSTEM_ROLE:
            break
        leading.append(message)
    return leading


def _first_turn(ledger: Ledger, group: LibraryMessage, system: list[ListMessage]) -> list[ListMessage]:
    """The user's first turn: without the system prompts, which come before it, and what an earlier summary and the
    messages behind that one brought into the same message of the library."""
    messages = group.messages
    prompt = next(place for place, message in enumerate(messages) if is_prompt(ledger, message))
    written = (place for place, message in enumerate(messages) if place >= prompt and message.inserted is not None)
    turn = messages[: next(written, len(messages))]
    return [message for message in turn if message.inserted is None and message not in system]


def _adds_nothing(ledger: Ledger, group: LibraryMessage, kept: KeptTurns) -> bool:
    """Does a summary of one of the library's messages add nothing: it stays whole, or is a system prompt or summary."""
    if group.messages == kept.before or (kept.behind and all(item in kept.behind for item in group.messages)):
        return True
    of_system = (item.inserted is not None or role_of(ledger, item) == SYSTEM_ROLE for item in group.messages)
    return not group.is_answer and all(of_system)


SUMMARIZING = PolicyKind(
    Summarizing.name,
    "Pydantic AI (summarizing)",
    "Replaces the oldest messages with a summary after the user's first message.",
    lambda **values: Summarizing(PydanticAISummarizingSettings(**values)),
    (
        *window_settings(20, "stay in addition to the summary"),
        Setting("incremental", "Update", SWITCH, True, "a summary updates the one before it", SOURCE),
        Setting(
            "keep_user_messages",
            "Keep the user's messages",
            SWITCH,
            False,
            "user messages stay after the summary, and count towards the kept ones",
            SOURCE,
        ),
        Setting(
            "keep_user_messages_max_chars",
            "Characters of each",
            COUNT,
            20_000,
            "maximum length of each user message that stays this way",
            SOURCE,
            needs="keep_user_messages",
            unit="characters",
            least=1,
        ),
    ),
    parts_pairs=PARTS_PAIRS,
    judged_by=RecordedRuns(
        "pydantic-ai-harness",
        "summarizing",
        settings={"max_tokens": 0},
        settings_of=harness_settings,
        counts_words=True,
        writes_summaries=True,
        strips_summaries=True,
    ),
    known_problems=(
        KnownProblem(
            "A failing summariser ends the run",
            "An error of the summariser, or an empty summary after one retry, is raised to the caller.",
            "measured, specification of new policies section 3",
        ),
        KnownProblem(
            "The count is one request old",
            (
                "The provider's last count still includes what has been summarised since, so it may summarise "
                "again one step later."
            ),
            SOURCE,
        ),
    ),
)
