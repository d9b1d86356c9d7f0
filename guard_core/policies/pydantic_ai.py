"""The compaction of Pydantic AI's harness: old tool results are cleared in their place.

Source of the rule: pydantic-ai-harness 0.62.0, `compaction/`, and scripted runs of it. The library's count is the
provider's of the last request with its answer and the characters / 4 of what follows. All messages between two answers
are one message. Not here: a tokenizer of one's own, pinned messages, capabilities that are loaded later, and results
that ask for another try, which the library neither counts nor clears.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import CALL, REASONING, RESULT, TEXT, tool_key
from guard_core.forms import Arguments, Replaced
from guard_core.forms.edits import place_in_event, tools_of
from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.counters import outputs_of
from guard_core.policies.pieces.lists import MESSAGES, TOKENS, ListMemory, ListPolicy, Outcome, Request, Sizes
from guard_core.policies.pieces.messages import ASSISTANT, Costs, roles_of, view_of
from guard_core.policies.settings import COUNT, SHARE, SWITCH, KnownProblem, PolicyKind, RecordedRuns, Setting
from guard_core.policies.settings import TEXT as WORDS
from guard_core.trace import NOTHING_TO_COMPACT
from guard_core.views import View

CHARS_PER_TOKEN = 4
PLACEHOLDER = "[tool result cleared]"
_SOURCE = "pydantic-ai-harness 0.62.0, compaction"


def _chars(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """Characters of each event: texts, results, and of calls the tool's name and the arguments by `repr`."""
    kind = parts["kind"]
    text = np.where(np.isin(kind, (TEXT, RESULT, REASONING)), parts["chars"], 0)
    return ledger.by_event(np.where(kind == CALL, parts["name_chars"] + parts["repr_chars"], text))


COSTS = Costs("pydantic-ai characters", _chars, lambda message: message.bytes)


def _begins(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """1 for every event with which a message of the library begins: an answer, and what follows one."""
    answers = roles_of(ledger) == ASSISTANT
    before = np.append(True, answers)[: len(answers)]
    return np.asarray((answers | before).astype(np.int64))


GROUPS = Costs("pydantic-ai messages", _begins, lambda message: 1)


class ClearSettings(msgspec.Struct, frozen=True):
    """A limit of 0 does not act."""

    max_tokens: int = 0
    max_fraction: float = 0.0
    max_messages: int = 0
    keep_pairs: int = 3
    placeholder: str = PLACEHOLDER
    exclude_tools: str = ""
    clear_tool_inputs: bool = False
    min_clear_tokens: int = 0


class ClearMemory(ListMemory, frozen=True, omit_defaults=True):
    """The first `done` results of the log were cleared where their tools are not excluded; the last one cleared is in
    event `last`, -1: none is."""

    done: int = 0
    last: int = -1


class ClearToolResults(ListPolicy):
    """The policy; see the module."""

    name: ClassVar[str] = "pydantic-ai-clear-tool-results"
    forgets: ClassVar[bool] = False
    state_type: ClassVar[type] = ClearMemory
    settings: ClearSettings

    @property
    def compares(self) -> str:
        return TOKENS if self.settings.max_tokens or self.settings.max_fraction else MESSAGES

    def costs(self) -> Costs:
        return COSTS

    def limit(self, window: int) -> int:
        if self.compares == MESSAGES:
            return self.settings.max_messages
        return self.settings.max_tokens or max(1, int(window * self.settings.max_fraction))

    def counted(self, sizes: Sizes) -> Ints:
        return _tokens(sizes) if self.compares == TOKENS else _since(sizes)

    def acts(self, sizes: Sizes, counted: Ints, limit: int) -> NDArray[np.bool_]:
        """Over a limit, where a result is there that was not cleared."""
        most = self.settings.max_messages
        over = (counted > limit) & (limit > 0) | (_since(sizes) > most) & (most > 0)
        pairs = np.searchsorted(_pairs(sizes.ledger), sizes.ledger.part_starts[sizes.at])
        return np.asarray(over & (pairs - self.settings.keep_pairs > sizes.state.done))

    def compact(self, request: Request, state: ClearMemory) -> Outcome:
        ledger = request.ledger
        rows = _pairs(ledger)
        count = int(np.searchsorted(rows, ledger.part_starts[request.check.at])) - self.settings.keep_pairs
        cleared = rows[:count][~np.isin(tools_of(ledger.parts)[rows[:count]], self._excluded())]
        after = self._cleared(request, cleared)
        reclaimed = COSTS.view(ledger, request.view) // CHARS_PER_TOKEN - COSTS.view(ledger, after) // CHARS_PER_TOKEN
        if after == request.view or (self.settings.min_clear_tokens and reclaimed < self.settings.min_clear_tokens):
            return Outcome(request.view, state, held=NOTHING_TO_COMPACT)
        last = int(ledger.parts["event"][cleared[-1]])
        return Outcome(after, msgspec.structs.replace(state, done=count, last=last))

    def _excluded(self) -> list[int]:
        names = (name.strip() for name in self.settings.exclude_tools.split(","))
        return [tool_key(name) for name in names if name]

    def _cleared(self, request: Request, rows: Ints) -> View:
        """The list with some results, and the arguments of their calls where that is set, cleared."""
        ledger, messages = request.ledger, [message._replace(form="") for message in request.messages]
        for event, which in _by_event(ledger, rows, RESULT).items():
            messages[event] = messages[event].joined(Replaced(which, self.settings.placeholder).name)
        calls = ledger.parts["answers"][rows] if self.settings.clear_tool_inputs else rows[:0]
        for event, which in _by_event(ledger, calls, CALL).items():
            messages[event] = messages[event].joined(Arguments(which).name)
        return view_of(ledger, messages)


def _tokens(sizes: Sizes) -> Ints:
    """The last count with its answer, and what follows that answer; without a count all of it."""
    ledger, prefix = sizes.ledger, COSTS.prefix(sizes.ledger)
    answer = np.append(ledger.steps["at"], 0)[sizes.as_of]
    behind = prefix[sizes.at] - prefix[np.minimum(answer + 1, sizes.at)]
    counted = sizes.last + np.append(outputs_of(ledger), 0)[sizes.as_of] + behind // CHARS_PER_TOKEN
    return np.where(sizes.as_of >= 0, counted, (sizes.whole + ledger.system_chars) // CHARS_PER_TOKEN)


def _since(sizes: Sizes) -> Ints:
    """Messages since the last cleared result; without one all of them."""
    prefix = GROUPS.prefix(sizes.ledger)
    return np.asarray(prefix[sizes.at] - prefix[sizes.state.last + 1])


def _pairs(ledger: Ledger) -> Ints:
    """The rows of results whose call is known, in their order."""
    if "answered results" not in ledger.derived:
        kinds, answers = ledger.parts["kind"], ledger.parts["answers"]
        ledger.derived["answered results"] = np.flatnonzero((kinds == RESULT) & (answers >= 0))
    rows: Ints = ledger.derived["answered results"]
    return rows


def _by_event(ledger: Ledger, rows: Ints, kind: int) -> dict[int, tuple[int, ...]]:
    """Some parts of a kind by their event, as forms name them: no places where they are all of that kind there."""
    key = f"places/{kind}"
    if key not in ledger.derived:
        ledger.derived[key] = place_in_event(ledger.parts, kind)
    found: dict[int, list[int]] = {}
    for event, place in zip(ledger.parts["event"][rows].tolist(), ledger.derived[key][rows].tolist(), strict=True):
        found.setdefault(event, []).append(place)
    counts = ledger.by_event((ledger.parts["kind"] == kind).astype(np.int64))
    return {event: () if len(places) == counts[event] else tuple(places) for event, places in found.items()}


CLEARING = PolicyKind(
    ClearToolResults.name,
    "Pydantic AI (clear tool results)",
    "Replaces the older tool results by a placeholder, and the arguments of their calls where that is set.",
    lambda **values: ClearToolResults(ClearSettings(**values)),
    (
        Setting(
            "max_tokens",
            "Token limit",
            COUNT,
            100_000,
            "tokens over which it clears; 0: a share of the window, or none; the library has no default",
            _SOURCE,
            unit="tokens",
            main=True,
            sweep=(30_000, 100_000),
        ),
        Setting("max_fraction", "Share of the window", SHARE, 0.0, "instead of a token limit; 0: none", _SOURCE),
        Setting(
            "max_messages",
            "Messages",
            COUNT,
            0,
            "messages since the last cleared result over which it clears, all results of an answer are one; 0: none",
            _SOURCE,
            unit="messages",
            main=True,
        ),
        Setting("keep_pairs", "Results kept", COUNT, 3, "newest results that stay", _SOURCE, unit="results", main=True),
        Setting("placeholder", "Placeholder", WORDS, PLACEHOLDER, "what a cleared result says", _SOURCE),
        Setting("exclude_tools", "Tools left out", WORDS, "", "tools whose results stay, by commas", _SOURCE),
        Setting("clear_tool_inputs", "Clear arguments", SWITCH, False, "of the calls of cleared results, too", _SOURCE),
        Setting(
            "min_clear_tokens",
            "Least saving",
            COUNT,
            0,
            "clears only where it saves so many tokens; 0: always",
            _SOURCE,
            unit="tokens",
        ),
    ),
    summarises=False,
    judged_by=RecordedRuns("pydantic-ai-harness", "clear_tool_results", settings={"max_tokens": 0}, counts_words=True),
    known_problems=(
        KnownProblem(
            "The count is that of the request before",
            "The provider's last count does not know what was cleared since, so that it clears again one step later.",
            _SOURCE,
        ),
    ),
)
KINDS = (CLEARING,)
