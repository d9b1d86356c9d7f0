"""Agno's compression of tool results: once there are enough of them, a model shortens every one that it has not yet.

Source of the rule: agno 3.1.10, `compression/manager.py`, and scripted runs of it. Every result is a message, also the
newest, and is compressed by a call of its own, once. A call that fails leaves the whole result with its tool's name
before it, which counts as compressed; after an empty answer the result is asked for again. Where the sizes of recorded
summaries are used, which are those of whole sessions, a compressed result is at most as long as the result. Not here:
the size of the definitions of tools and of an output schema in the library's count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import CALL, HAS_RESULT, RESULT, TEXT, text_sizes
from guard_core.errors import SummaryFailed
from guard_core.events import Part, ToolResultPart, value_text
from guard_core.forms import Form, Removed, brings_form
from guard_core.forms.base import MOST_KNOWN, LogColumns, PartColumns
from guard_core.forms.edits import Edit
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Check, ReplayRun
from guard_core.policies.pieces.compared import MESSAGES, TOKENS
from guard_core.policies.pieces.lists import ListMemory, ListOutcome, ListRequest, Sizes, summarised
from guard_core.policies.pieces.messages import ListMessage, MessageCosts, messages_of, parted_at, results_of, view_of
from guard_core.policies.pieces.shared_settings import summary_budget
from guard_core.policies.pieces.stages import Act, ScanRequest, StagedPolicy, SummarizerInput
from guard_core.policies.settings import COUNT, SWITCH, KnownProblem, PolicyKind, RecordedRuns, Setting
from guard_core.requests import synthetic_text
from guard_core.summaries.base import Summary
from guard_core.trace import SUMMARISER_FAILED, Column, Head, Pass
from guard_core.views import Span, Synthetic, View

CHARS_PER_TOKEN = 4  # as in the scripted runs; the library asks its model
RESULTS = 3  # uncompressed results at which it acts where no limit is given
HEADING = "Tool: "  # before the name of the tool, where a call failed
NO_NAME = "unknown"
_SOURCE = "agno 3.1.10, compression/manager.py"
LIST_TOKENS = Column("list_tokens", "tokens of the list as the library counts them: characters / 4", TOKENS, none=-1)


@brings_form
class Compressed(Edit, frozen=True):
    """Tool results replaced by what a model made of them: `text`, or `size` bytes where only that is known."""

    kind: ClassVar[str] = "compressed"
    size: int = 0
    text: str | None = None

    @property
    def words(self) -> str:
        return f"the result was compressed by a model to {self.size:,} bytes"

    @property
    def knows_text(self) -> bool:
        return self.text is not None

    @property
    def written(self) -> str:
        """The text, or a note of its size."""
        return _written(self.size, self.text)

    @property
    def written_sizes(self) -> dict[str, Any]:
        """The columns of what was written, without the tool's name; a number for all parts, or one for each."""
        return _sizes_of(self.size, self.text)

    @classmethod
    def of_each(cls, forms: Sequence[Compressed]) -> Form | None:
        if not forms or any(form.which for form in forms):
            return None
        sizes = [form.written_sizes for form in forms]
        return EachCompressed(columns={name: np.array([each[name] for each in sizes]) for name in sizes[0]})

    def differs(self, ledger: LogColumns, old: PartColumns, new: PartColumns) -> NDArray[np.bool_]:
        return self.chosen(old)  # an answer may be as long as the result

    def sizes(self, parts: PartColumns) -> dict[str, Any]:
        sizes = self.written_sizes
        return {**sizes, "heuristic": parts["name_chars"] // 4 + sizes["heuristic"]}

    def part(self, part: ToolResultPart) -> Part:
        return msgspec.structs.replace(part, content=self.written)


class EachCompressed(Compressed, frozen=True):
    """`Compressed` with other answers from part to part."""

    columns: dict[str, Any] = {}

    @property
    def written_sizes(self) -> dict[str, Any]:
        return self.columns


def _written(size: int, text: str | None) -> str:
    return synthetic_text(Synthetic("compressed result", size, text))


@lru_cache(MOST_KNOWN)
def _sizes_of(size: int, text: str | None) -> dict[str, int]:
    return text_sizes(_written(size, text))


@brings_form
class Headed(Edit, frozen=True):
    """Tool results with the name of their tool before them."""

    kind: ClassVar[str] = "headed"

    @property
    def words(self) -> str:
        return "compressing failed: the whole result with its tool's name before it"

    def sizes(self, parts: PartColumns) -> dict[str, Any]:
        """A name is taken as ASCII; the line break has two characters where it is escaped."""
        name = parts["name_chars"]
        added = len(HEADING) + np.where(name > 0, name, len(NO_NAME)) + 1
        columns = {column: parts[column] + added for column in ("chars", "bytes", "utf16")}
        columns |= {column: parts[column] + added + 1 for column in ("json_chars", "repr_chars")}
        return {**columns, "lines": parts["lines"] + 1, "heuristic": name // 4 + columns["bytes"] // 4}

    def part(self, part: ToolResultPart) -> Part:
        return msgspec.structs.replace(part, content=f"{HEADING}{part.name or NO_NAME}\n{value_text(part.content)}")


def _chars(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """Characters of texts, results and arguments (as JSON with ASCII alone) of each event."""
    kind, chars = parts["kind"], parts["chars"]
    escaped = chars + parts["separators"] + 5 * parts["non_ascii"] + 6 * (parts["utf16"] - chars)
    return ledger.by_event(np.where(kind == CALL, escaped, np.where((kind == TEXT) | (kind == RESULT), chars, 0)))


COSTS = MessageCosts("agno characters", _chars, lambda message: message.bytes, is_local=True)
RESULT_COUNT = MessageCosts(
    "results", lambda ledger, parts: ledger.by_event((parts["kind"] == RESULT).astype(np.int64)), lambda message: 0
)


class AgnoSettings(msgspec.Struct, frozen=True):
    """Both limits are 0 where they are not given; without `compress_tool_results` none counts."""

    compress_tool_results: bool = True
    compress_tool_results_limit: int = 0
    compress_token_limit: int = 0
    summary_budget: int = 1_000

    @property
    def results_limit(self) -> int:
        """Uncompressed results at which it acts, 0: their number does not matter."""
        return self.compress_tool_results_limit or (0 if self.compress_token_limit else RESULTS)


class AgnoMemory(ListMemory, frozen=True, omit_defaults=True):
    """Results of events before `asked` were compressed, but those in `left`, rows in the columns of parts, whose answer
    was empty."""

    asked: int = 0
    left: tuple[int, ...] = ()


class ResultPlace(NamedTuple):
    """One result of the log: its event, its row in the columns of parts, and its place among those of the event,
    -1: it is the only one."""

    event: int
    row: int
    place: int

    def which(self) -> tuple[int, ...]:
        """Itself, as forms name it."""
        return (self.place,) if self.place >= 0 else ()


class AgnoCall(NamedTuple):
    """A call of the model that compresses: the result that it was `given`, and the bytes of its answer."""

    given: View
    summary_bytes: int = 0
    failed: bool = False

    @property
    def facts(self) -> dict[str, Any]:
        """What the record says of it."""
        empty = not self.failed and not self.summary_bytes
        return {"summary_bytes": self.summary_bytes, "failed": self.failed, "empty": empty}


class CompressToolResults(StagedPolicy):
    """The policy; see the module."""

    name: ClassVar[str] = "agno-compress-tool-results"
    relation: ClassVar[str] = ">="
    own_columns: ClassVar[tuple[Column, ...]] = (LIST_TOKENS,)
    state_type: ClassVar[type] = AgnoMemory
    settings: AgnoSettings

    @property
    def compares(self) -> str:
        return TOKENS if self.settings.compress_token_limit else MESSAGES

    def costs(self) -> MessageCosts:
        return COSTS

    def limit(self, window: int) -> int:
        return self.settings.compress_token_limit or self.settings.results_limit

    def noted(self, sizes: Sizes) -> dict[str, Ints]:
        return {LIST_TOKENS.name: sizes.whole // CHARS_PER_TOKEN}

    def counted(self, sizes: Sizes) -> Ints:
        return sizes.whole // CHARS_PER_TOKEN if self.compares == TOKENS else _uncompressed(sizes)

    def acts(self, sizes: Sizes, counted: Ints, limit: int) -> NDArray[np.bool_]:
        """Where there is nothing to compress, it changes nothing."""
        results, most = _uncompressed(sizes), self.settings.results_limit
        many = self.over(counted, limit) | ((results >= most) & (most > 0))
        return np.asarray(many & (results > 0) & self.settings.compress_tool_results)

    @property
    def acts_below(self) -> str:
        return f"at least {self.settings.results_limit:,} uncompressed tool results"

    def compact(self, request: ListRequest, state: AgnoMemory) -> ListOutcome:
        check = request.check
        after, state, calls = self._compressed(check, check.step, request.view, check.at, state)
        passes: tuple[Pass, ...] = tuple(request.passed(call.given, after, **call.facts) for call in calls)
        return ListOutcome(after, state, passes, held=SUMMARISER_FAILED if after == request.view else 0)

    def walks(self, ledger: Ledger, state: Any) -> bool:
        return self.settings.compress_tool_results and not self.settings.compress_token_limit

    def searched(self, window: int) -> tuple[MessageCosts, int]:
        return RESULT_COUNT, self.settings.results_limit - 1

    def more_than_log(self, ledger: Ledger, head: Head, state: Any, window: int) -> int:
        """Without the results that are compressed."""
        return len(state.left) - RESULT_COUNT.prefix(ledger).item(state.asked)

    def act(self, asked: ScanRequest, row: int, head: Head, state: Any) -> Act | int | None:
        ledger, at = asked.ledger, asked.at.item(row)
        view = head.at(ledger, at)
        after, state, calls = self._compressed(asked.run, asked.start + row, view, at, state)
        if after == view:  # all answers were empty
            return None
        costs = self.estimator(ledger)
        given = [SummarizerInput(call.given, 1, costs.contents(call.given), **call.facts) for call in calls]
        return Act(self._head(after, at), state, given)

    def noted_of(
        self, asked: ScanRequest, heads: Sequence[Head], states: Sequence[Any], before: Ints
    ) -> dict[str, Ints]:
        ledger = asked.ledger
        prefix = COSTS.prefix(ledger)
        more = np.array([COSTS.view(ledger, head.view) - prefix.item(head.kept_from) for head in heads])
        return {LIST_TOKENS.name: (more[before] + prefix[asked.at[: len(before)]]) // CHARS_PER_TOKEN}

    def _compressed(
        self, asked: Check | ReplayRun, step: int, view: View, at: int, state: AgnoMemory
    ) -> tuple[View, AgnoMemory, list[AgnoCall]]:
        """The list with its results compressed, the state, and the calls. The answers are set all at once, as the
        library's asynchronous way does; the list is the same either way."""
        ledger, left, calls = asked.ledger, list[int](), list[AgnoCall]()
        results = _results(ledger, state, at)
        first = results[0].event if results else at
        before, rest = parted_at(view, first)
        messages, changed = messages_of(rest), set[int]()
        for result in results:
            form, state, call = self._answer(asked, step, state, result)
            calls.append(call)
            if form:
                place = result.event - first
                messages[place] = messages[place].joined(form)
                changed.add(place)
            else:
                left.append(result.row)
        ledger.know_changed(messages[place].as_span() for place in changed)
        after = view_of(ledger, messages, before)
        return after, msgspec.structs.replace(state, asked=at, left=tuple(left)), calls

    def _answer(
        self, asked: Check | ReplayRun, step: int, state: AgnoMemory, result: ResultPlace
    ) -> tuple[str, AgnoMemory, AgnoCall]:
        """The form of a result after its call, the state, and the call."""
        ledger = asked.ledger
        # The view that is given has one result alone.
        others = range(len(results_of(ledger, ListMessage(result.event))))
        which = tuple(place for place in others if place != result.place)
        without_others = Removed(which, "result").name if result.place >= 0 else ""
        given, budget = (Span(result.event, result.event + 1, without_others),), self.settings.summary_budget
        try:
            tokens = self.estimator(ledger).contents(given)
            summary, after = summarised(asked, step, given, tokens, state, budget)
        except SummaryFailed:
            failed = msgspec.structs.replace(state, calls=state.calls + 1)
            return Headed(result.which()).name, failed, AgnoCall(given, failed=True)
        if asked.summarizer.name == "recorded":  # of whole sessions: a result is not taken to grow by that
            size = ledger.parts["bytes"].item(result.row)
            summary = Summary(min(summary.bytes, size), summary.text if summary.bytes <= size else None)
        form = Compressed(result.which(), summary.bytes, summary.text).name if summary.bytes else ""  # no answer
        return form, cast(AgnoMemory, after), AgnoCall(given, summary.bytes)


def _uncompressed(sizes: Sizes) -> Ints:
    """Results that are not compressed yet, at some steps."""
    prefix = RESULT_COUNT.prefix(sizes.ledger)
    return np.asarray(prefix[sizes.at] - prefix[sizes.state.asked] + len(sizes.state.left))


def _results(ledger: Ledger, state: AgnoMemory, at: int) -> list[ResultPlace]:
    """The results that are not compressed yet, in their order."""
    left = {int(ledger.parts["event"][row]) for row in state.left}
    new = np.flatnonzero(ledger.events["flags"][state.asked : at] & HAS_RESULT) + state.asked
    results = []
    for event in [*sorted(left), *new.tolist()]:
        rows = results_of(ledger, ListMessage(event))
        results += [ResultPlace(event, row, place if len(rows) > 1 else -1) for place, row in enumerate(rows)]
    return [result for result in results if result.event >= state.asked or result.row in state.left]


def agno_settings(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the library as our settings: a limit of 0 or less, which each request reaches, acts as one
    of 1."""
    limits = ("compress_tool_results_limit", "compress_token_limit")
    return {
        name: max(value, 1) if name in limits and value is not None else value for name, value in parameters.items()
    }


KIND = PolicyKind(
    CompressToolResults.name,
    "Agno (compress tool results)",
    "Once there are enough tool results, has a model shorten each one not yet compressed, including the newest.",
    lambda **values: CompressToolResults(AgnoSettings(**values)),
    (
        Setting(
            "compress_tool_results_limit",
            "Results",
            COUNT,
            0,
            "acts at this number of uncompressed tool results; 0: 3, or none if a token limit is set",
            _SOURCE,
            unit="results",
            main=True,
            sweep=(0, 6, 12),
        ),
        Setting(
            "compress_token_limit",
            "Token limit",
            COUNT,
            0,
            "acts at this number of tokens in the list; 0: never",
            _SOURCE,
            unit="tokens",
            main=True,
        ),
        Setting("compress_tool_results", "Compress results", SWITCH, True, "off: nothing is compressed", _SOURCE),
        summary_budget("the library", label="Answer budget", tokens=1_000),
    ),
    judged_by=RecordedRuns("agno", "compress_tool_results", tokens_column=LIST_TOKENS.name, settings_of=agno_settings),
    known_problems=(
        KnownProblem(
            "A failed call makes a result longer",
            "The whole result, prefixed with its tool's name, counts as compressed and is not tried again.",
            "measured, specification of new policies section 3",
        ),
        KnownProblem(
            "A longer answer is kept",
            "The answer is not compared with the result it replaces.",
            "measured, specification of new policies section 3",
        ),
        KnownProblem(
            "The newest results are compressed, too",
            "All results not yet compressed are compressed at the same time, including those the model has not read.",
            "measured, specification of new policies section 3",
        ),
    ),
)
