"""Judging our policies by recorded runs of libraries: acted, tokens, threshold, view, what the summariser was given."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from guard_core.conformance.compare import ConformanceVerdict, FigureComparison
from guard_core.conformance.libraries.function_model import WordUsage, WrittenSummaries, words
from guard_core.conformance.libraries.scripts import (
    ConversationScript,
    LibraryRun,
    LibraryStep,
    Script,
    Scripted,
    ScriptedConversation,
    VectorFile,
    indices,
    session_of,
    usage_of,
    without_calls,
)
from guard_core.conformance.libraries.views import (
    Shown,
    by_first_alike,
    difference,
    own_view,
    recorded_views,
    with_joined_users,
)
from guard_core.conformance.vectors import LARGEST_FILE, VectorError, convert
from guard_core.costs import EventCounter
from guard_core.errors import SettingError, UnknownName
from guard_core.events import Event, Role, ToolCallPart, part_text
from guard_core.forms import get_form
from guard_core.ledger import Ints, Ledger
from guard_core.policies import POLICIES
from guard_core.policies.base import Point, Policy
from guard_core.policies.settings import COUNT, SHARE, SWITCH, TEXT, PolicyKind, RecordedRuns
from guard_core.replay import replay
from guard_core.summaries.base import Summarizer
from guard_core.summaries.sizes import FixedSummaries, ScriptedSummaries
from guard_core.trace import RAISED, SUMMARISER_FAILED, CompactionRecord, Pass, Trace
from guard_core.views import Rewritten, Span, Synthetic

FORMAT, CONVERSATIONS = "policy-vector/1", "policy-conversations/1"
CONVERSATIONS_FILE = "conversations.json"
INTERRUPTED = "interrupted"  # the end of a run at which the script had no answer
AFTER = "after"  # the point of a row that is not a step before a call: the end of a turn
# Parameters of the script, not of the library.
OF_SCRIPT = {"name", "summary", "summary_chars", "usage", "overflow_at", "window", "limit"}
# Parameters that change only the instructions for a summariser, which no file holds.
OF_INSTRUCTIONS = {
    "compress_tool_call_instructions",
    "instructions",
    "prompt",
    "summarization_instructions",
    "summarization_prompt",
    "summarization_system_prompt",
    "summary_prompt",
}
MARKER = re.compile(r"\[m(\d{1,9})\]")  # what a scripted text begins with
SCRIPTED_ERROR = "scripted summariser failure"  # ours, as long as the error of the scripts
_NONE: dict[str, Any] = {SWITCH: False, TEXT: ""}  # of a setting that is not set, by its kind; None for a number
T = TypeVar("T")
# The counts of the messages of each conversation, which many runs have: by its name and the indices of those messages.
Counters = dict[tuple[str, tuple[int, ...]], EventCounter]


def check(data: bytes, path: Path) -> Iterator[ConformanceVerdict]:
    """A verdict for every set of parameters of a file; one with a parameter that our policy does not have is not
    judged, the others are. Raises VectorError where the file cannot be judged."""
    file = _decode(data, VectorFile, path)
    kind = _kind(file)
    conversations = _conversations(path.parent / CONVERSATIONS_FILE)
    counters: Counters = {}
    for parameters in file.parameters:
        name = str(parameters.get("name", ""))
        try:
            script_of(parameters)
            policy_of(kind, parameters)
        except (SettingError, UnknownName, VectorError) as error:
            yield ConformanceVerdict(name, (), 0, 0, str(error))
            continue
        comparison = FigureComparison()
        for run in file.runs:
            if run.parameters == name:
                if run.conversation not in conversations:
                    raise VectorError(f"{CONVERSATIONS_FILE} has no conversation {run.conversation[:60]!r}")
                judge(kind, parameters, run, conversations[run.conversation], comparison, counters).compare()
        yield comparison.verdict(name)


def _decode(data: bytes, kind: type[T], path: Path) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise VectorError(f"{path.name} does not have the shape of its format: {error}") from error


def _kind(file: VectorFile) -> PolicyKind:
    """The policy that a file judges. Raises VectorError where there is none."""
    for kind in POLICIES.values():
        judged = kind.judged_by
        if judged is not None and (judged.library, judged.strategy) == (file.library, file.strategy):
            return kind
    raise VectorError(f"not judged: there is no policy here for {file.strategy[:60]} of {file.library[:60]}")


def _conversations(path: Path) -> dict[str, ScriptedConversation]:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise VectorError(f"{path.name} has more than {LARGEST_FILE:,} bytes")
        data = path.read_bytes()
    except OSError as error:
        raise VectorError(f"the conversations of these runs, {path.name}, cannot be read beside the file") from error
    file = _decode(data, ConversationScript, path)
    return {conversation.name: conversation for conversation in file.conversations}


@dataclass(frozen=True)
class RunJudge:
    """One recorded run beside our replay of it."""

    judged: RecordedRuns
    run: LibraryRun
    scripted: Scripted
    ledger: Ledger
    trace: Trace
    script: tuple[Event, ...]
    comparison: FigureComparison

    def compare(self) -> None:
        """Compare every step, up to one at which only one of the two raises an error."""
        views = list(recorded_views(self.run))
        # For the steps that follow a row of the end of a turn, that row.
        step_of = {row: step for step, row in enumerate(self.scripted.rows)}
        after_turns = {
            step_of[row]: row - 1 for row in step_of if row and self.run.steps[row - 1].detail.get("point") == AFTER
        }
        for step, row in enumerate(self.scripted.rows):
            recorded = self.run.steps[row]
            at = f"{self.run.conversation}, step at message {recorded.at}"
            if step in after_turns:
                after, ended = self.run.steps[after_turns[step]], f"{at}, after the turn before"
                self._summaries(ended, after, self._records(step, after_turn=True))
            raised = int(self.trace.columns["held"][step]) == RAISED
            self.comparison.equal(at, "raises an error", "error" in recorded.detail, raised)
            if ("error" in recorded.detail) != raised:
                return
            if self._asks_again(row, views[row]):
                return
            if raised:  # the list stays as it was, and a script may continue with it
                continue
            self._counts(at, step, recorded)
            ours = own_view(
                self.trace.view(step, self.scripted.session.calls[step].at),
                self.scripted.session,
                self.scripted.numbers,
                self.judged.joint,
            )
            if self.judged.joins_user_messages:
                ours = with_joined_users(ours, self.script)
            self.comparison.equal(at, *(difference(views[row], ours, self.script) or ("view", "equal", "equal")))
            if int(self.trace.columns["held"][step]) == SUMMARISER_FAILED:  # no compaction, so no record of the call
                self.comparison.equal(at, "asks a summariser", True, bool(recorded.detail.get("summariser")))
            else:
                self._summaries(at, recorded, self._records(step, after_turn=False))

    def _asks_again(self, row: int, view: list[Shown]) -> bool:
        """Is a step the last one of a run that was interrupted, at which the agent itself asks for another answer, as
        Pydantic AI's does after a blank one: its words are not part of the script, nor of the policy."""
        is_last = self.run.end == INTERRUPTED and row == len(self.run.steps) - 1
        return is_last and bool(view) and view[-1].index < 0

    def _counts(self, at: str, step: int, recorded: LibraryStep) -> None:
        """Whether it acted, what it compared, and with what."""
        columns = self.trace.columns
        if self.judged.judges_acted:
            compacted = bool(self._records(step, after_turn=False))
            edited = "edited" in columns and bool(columns["edited"][step])
            self.comparison.equal(at, "acted", bool(recorded.acted), compacted or edited)
        in_messages = "messages_compared" in columns
        tokens, threshold = ("messages_compared", "message_limit") if in_messages else ("decision_tokens", "threshold")
        tokens = self.judged.tokens_column or tokens
        if recorded.tokens is not None:
            noted = self.judged.tokens
            at_events = self.scripted.session.calls[step].at
            compared = int(columns[tokens][step]) if noted is None else noted(self.ledger, at_events)
            self.comparison.equal(at, "tokens", recorded.tokens, compared)
        if recorded.threshold is not None:
            self.comparison.equal(at, "threshold", recorded.threshold, int(columns[threshold][step]))

    def _records(self, step: int, *, after_turn: bool) -> list[CompactionRecord]:
        """Our compactions before a call, or at the end of the turn before it."""
        own = (item for item in self.trace.compactions if item.step == step)
        return [item for item in own if (item.point == Point.END_OF_TURN) is after_turn]

    def _summaries(self, at: str, recorded: LibraryStep, records: list[CompactionRecord]) -> None:
        """How often the summariser was asked, and which messages it was given."""
        theirs = recorded.detail.get("summariser", [])
        if any("skipped" in call for call in theirs):
            return
        # Those that a summariser was asked for, if only for a summary of nothing, which may be empty.
        ours = [
            item
            for record in records
            for item in record.passes
            if item.summariser_view or ((item.summary_bytes or item.empty) and not item.fallback)
        ]
        if not any(item.failed for item in ours):  # no compaction, so no record of the call
            theirs = [call for call in theirs if call.get("reply") != "error"]
        self.comparison.equal(at, "calls of the summariser", len(theirs), len(ours))
        for number, (call, item) in enumerate(zip(theirs, ours, strict=False)):
            what, given = f"messages given to summariser call {number}", _given(item, self.scripted)
            if "given" in call:
                theirs_given = indices(call["given"])
                if theirs_given != given:
                    theirs_given, given = by_first_alike(theirs_given, self.script), by_first_alike(given, self.script)
                self.comparison.equal(at, what, theirs_given, given)
            elif "marks" in call:
                # A message without a marker cannot be seen in the prompt of a summariser.
                seen = sorted(_quoted(item).union(index for index in given if _has_mark(self.scripted, index)))
                self.comparison.equal(
                    at, what, [index for index in indices(call["marks"]) if index not in given or index in seen], seen
                )


def judge(
    kind: PolicyKind,
    parameters: dict[str, Any],
    run: LibraryRun,
    conversation: ScriptedConversation,
    comparison: FigureComparison,
    counters: Counters,
) -> RunJudge:
    """A run beside our replay of it. `counters` has the counts of the runs before it, and gets those of this one."""
    judged = kind.judged_by
    assert judged is not None
    conversation = without_calls(conversation) if judged.leaves_out_calls else conversation
    scripted = session_of(conversation, run)
    if _counts_words(judged, parameters):
        scripted = _with_output_words(scripted, _answer_words(run, scripted))
    place = conversation.name, scripted.numbers
    if place not in counters:
        counters[place] = EventCounter()
        for event in scripted.session.events:
            counters[place].add(event)
    ledger = Ledger.counted(scripted.session, counters[place])
    trace = replayed(kind, parameters, run, scripted, ledger)
    return RunJudge(judged, run, scripted, ledger, trace, conversation.events, comparison)


def replayed(
    kind: PolicyKind, parameters: dict[str, Any], run: LibraryRun, scripted: Scripted, ledger: Ledger
) -> Trace:
    """Our replay of a run."""
    judged = kind.judged_by
    assert judged is not None
    script = script_of(parameters)
    return replay(
        ledger,
        policy_of(kind, parameters),
        window=script.window or judged.window,
        usage=WordUsage(scripted.session, _answer_words(run, scripted))
        if _counts_words(judged, parameters)
        else usage_of(
            run,
            scripted,
            most=-1 if script.overflow_at is None else script.overflow_at,
            count=partial(judged.refused_by, ledger) if judged.refused_by else None,
        ),
        summarizer=_summarizer(script, judged),
        session=scripted.session,
    )


def script_of(parameters: Mapping[str, Any]) -> Script:
    """The script's own parameters. Raises VectorError."""
    return convert(parameters, Script, "the script's parameters")


def policy_of(kind: PolicyKind, parameters: Mapping[str, Any]) -> Policy:
    """Our policy under a set of parameters of the library. Raises SettingError for one that it does not have."""
    judged = kind.judged_by
    assert judged is not None
    left_out = OF_SCRIPT | OF_INSTRUCTIONS
    settings = {name: value for name, value in judged.settings_of(parameters).items() if name not in left_out}
    given = {judged.names.get(name, name): value for name, value in settings.items()}
    return kind.make(**{**judged.settings, **{name: _value(kind, name, value) for name, value in given.items()}})


def _answer_words(run: LibraryRun, scripted: Scripted) -> Ints:
    """Words of the answers in the request of each call of a run."""
    events = dict(zip(scripted.numbers, scripted.session.events, strict=True))
    answers = {number: event for number, event in events.items() if event.role is Role.MODEL}
    sizes = {number: words(event) for number, event in answers.items()}
    views = list(recorded_views(run))

    def size(item: Shown) -> int:
        cleared = (item.facts or {}).get("args_chars")
        return sizes[item.index] if cleared is None else words(_with_cleared(answers[item.index], cleared))

    rows = ([size(item) for item in views[row] if item.index in answers] for row in scripted.rows)
    return np.array([sum(row) for row in rows], dtype=np.int64)


def _with_cleared(answer: Event, chars: list[int]) -> Event:
    """An answer whose calls with so few characters of arguments have none."""
    sizes = iter(chars)
    parts = (
        msgspec.structs.replace(part, arguments={}) if isinstance(part, ToolCallPart) and next(sizes) == 2 else part
        for part in answer.parts
    )
    return msgspec.structs.replace(answer, parts=tuple(parts))


def _with_output_words(scripted: Scripted, before: Ints) -> Scripted:
    """A run whose calls report the words of all answers up to now as output."""
    session = scripted.session
    calls = tuple(
        msgspec.structs.replace(
            call,
            output_tokens=earlier + (words(session.events[call.at]) if call.at < len(session.events) else 0),
        )
        for call, earlier in zip(session.calls, before.tolist(), strict=True)
    )
    return msgspec.structs.replace(scripted, session=msgspec.structs.replace(session, calls=calls))


def _counts_words(judged: RecordedRuns, parameters: dict[str, Any]) -> bool:
    return judged.counts_words and "usage" not in parameters


def _value(kind: PolicyKind, name: str, value: Any) -> Any:
    """A value of the library as one of our setting: names as a list in text, true as 1 of a number, none of it as 0,
    false or no text."""
    if value is None or isinstance(value, bool):
        of = kind.setting(name).kind
        if of in (COUNT, SHARE):
            return int(value or 0)
        return _NONE.get(of) if value is None else value
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else value


def _summarizer(script: Script, judged: RecordedRuns) -> Summarizer:
    if script.summary == "fail":
        return ScriptedSummaries((None,), error=SCRIPTED_ERROR)
    size = 0 if script.summary == "empty" else script.summary_chars
    if judged.writes_summaries or judged.strips_summaries:
        return WrittenSummaries(size, strips=judged.strips_summaries, has_texts=judged.writes_summaries)
    return FixedSummaries(size)


def _given(item: Pass, scripted: Scripted) -> list[int]:
    numbers: list[int] = []
    for segment in item.summariser_view:
        if isinstance(segment, Span):
            numbers += [
                scripted.numbers[event]
                for event in range(segment.start, segment.stop)
                if not segment.form or not _is_changed(segment.form, scripted, event)
            ]
        elif isinstance(segment, Rewritten):
            number = scripted.numbers[segment.event]
            numbers += (
                [number] if any(part_text(part).startswith(f"[m{number}]") for part in segment.message.parts) else []
            )
    return sorted(numbers)


def _quoted(item: Pass) -> set[int]:
    """The messages whose markers are in inserted messages that a summariser was given."""
    texts = [segment.text or "" for segment in item.summariser_view if isinstance(segment, Synthetic)]
    return {int(number) for text in texts for number in MARKER.findall(text)}


def _has_mark(scripted: Scripted, index: int) -> bool:
    """Does the text of a message begin with its marker."""
    event = scripted.session.events[scripted.numbers.index(index)]
    return any(part_text(part).startswith(f"[m{index}]") for part in event.parts)


def _is_changed(form: str, scripted: Scripted, event: int) -> bool:
    """Is a message without its marker in a form: changed, and not only behind its beginning."""
    if get_form(form).keeps_beginning:
        return False
    message = scripted.session.events[event]
    return get_form(form).message(message) is not message
