"""Judging our policies by recorded runs of libraries: acted, tokens, threshold, view, what the summariser was given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from guard_core.conformance.compare import Comparison, Verdict
from guard_core.conformance.libraries.scripts import (
    Conversation,
    Conversations,
    LibraryRun,
    Scripted,
    Step,
    VectorFile,
    indices,
    session_of,
    usage_of,
)
from guard_core.conformance.libraries.views import difference, own_view, recorded_views
from guard_core.conformance.vectors import LARGEST_FILE, VectorError
from guard_core.forms import get_form
from guard_core.ledger import Ledger
from guard_core.policies import POLICIES
from guard_core.policies.settings import PolicyKind
from guard_core.replay import replay
from guard_core.summaries.base import Summarizer
from guard_core.summaries.sizes import FixedSummaries, ScriptedSummaries
from guard_core.trace import RAISED, SUMMARISER_FAILED, Pass, Trace
from guard_core.views import Span

FORMAT, CONVERSATIONS = "policy-vector/1", "policy-conversations/1"
CONVERSATIONS_FILE = "conversations.json"
# Parameters of the script, not of the library.
OF_SCRIPT = {"name", "summary", "summary_chars", "usage", "overflow_at", "window", "limit"}
SUMMARY_CHARS = 600  # of a scripted summary where the parameters give no other length
T = TypeVar("T")


def check(data: bytes, path: Path) -> Iterator[Verdict]:
    """A verdict for every set of parameters of a file. Raises VectorError where it cannot be judged."""
    file = _decode(data, VectorFile, path)
    kind = _kind(file)
    conversations = _conversations(path.parent / CONVERSATIONS_FILE)
    for parameters in file.parameters:
        name = str(parameters.get("name", ""))
        comparison = Comparison()
        for run in file.runs:
            if run.parameters == name:
                if run.conversation not in conversations:
                    raise VectorError(f"{CONVERSATIONS_FILE} has no conversation {run.conversation[:60]!r}")
                judge_run(kind, parameters, run, conversations[run.conversation], comparison)
        yield comparison.verdict(name)


def _decode(data: bytes, kind: type[T], path: Path) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise VectorError(f"{path.name} does not have the shape of its format: {error}") from error


def _kind(file: VectorFile) -> PolicyKind:
    for kind in POLICIES.values():
        judged = kind.judged_by
        if judged is not None and (judged.library, judged.strategy) == (file.library, file.strategy):
            return kind
    raise VectorError(f"not judged: there is no policy here for {file.strategy[:60]} of {file.library[:60]}")


def _conversations(path: Path) -> dict[str, Conversation]:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise VectorError(f"{path.name} has more than {LARGEST_FILE:,} bytes")
        data = path.read_bytes()
    except OSError as error:
        raise VectorError(f"the conversations of these runs, {path.name}, cannot be read beside the file") from error
    file = _decode(data, Conversations, path)
    return {conversation.name: conversation for conversation in file.conversations}


def judge_run(
    kind: PolicyKind, parameters: dict[str, Any], run: LibraryRun, conversation: Conversation, comparison: Comparison
) -> None:
    """Compare every step of one run."""
    scripted = session_of(conversation, run)
    trace, judged, ledger = replayed(kind, parameters, run, scripted), kind.judged_by, Ledger.of(scripted.session)
    where = f"{run.conversation}, step"
    views = list(recorded_views(run))
    for step, row in enumerate(scripted.rows):
        recorded = run.steps[row]
        at = f"{where} at message {recorded.at}"
        raised = int(trace.columns["held"][step]) == RAISED
        comparison.equal(at, "raises an error", "error" in recorded.detail, raised)
        if ("error" in recorded.detail) != raised:
            return
        if raised:  # the list stays as it was, and a script may go on with it
            continue
        ledger_at = scripted.session.calls[step].at
        noted = judged.tokens(ledger, ledger_at) if judged is not None and judged.tokens is not None else None
        _compare_counts(comparison, at, trace, step, recorded, noted)
        ours = own_view(trace.view(step, ledger_at), scripted.session, scripted.numbers)
        comparison.equal(at, *(difference(views[row], ours, conversation.events) or ("view", "equal", "equal")))
        _compare_summaries(comparison, at, trace, step, recorded, scripted)


def replayed(kind: PolicyKind, parameters: dict[str, Any], run: LibraryRun, scripted: Scripted) -> Trace:
    """Our replay of a run."""
    judged = kind.judged_by
    assert judged is not None
    given = {judged.names.get(name, name): _value(value) for name, value in parameters.items() if name not in OF_SCRIPT}
    policy = kind.make(**{**judged.settings, **given})
    return replay(
        Ledger.of(scripted.session),
        policy,
        window=int(parameters.get("window", judged.window)),
        usage=usage_of(run, scripted.rows),
        summarizer=_summarizer(parameters),
        session=scripted.session,
    )


def _value(value: Any) -> Any:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else value


def _summarizer(parameters: dict[str, Any]) -> Summarizer:
    scripted = parameters.get("summary", "fixed")
    if scripted == "fail":
        return ScriptedSummaries((None,))
    return FixedSummaries(0 if scripted == "empty" else int(parameters.get("summary_chars", SUMMARY_CHARS)))


def _compare_counts(
    comparison: Comparison, at: str, trace: Trace, step: int, recorded: Step, noted: int | None
) -> None:
    """The numbers of a step. `noted`: the tokens that the file has, where they are not what was compared."""
    edits = "edited" in trace.columns and not trace.columns["fired"][step]
    acted = trace.columns["edited" if edits else "fired"][step]
    comparison.equal(at, "acted", bool(recorded.acted), bool(acted))
    in_messages = "messages_compared" in trace.columns
    tokens, threshold = ("messages_compared", "message_limit") if in_messages else ("decision_tokens", "threshold")
    if recorded.tokens is not None:
        compared = int(trace.columns[tokens][step]) if noted is None else noted
        comparison.equal(at, "tokens", recorded.tokens, compared)
    if recorded.threshold is not None:
        comparison.equal(at, "threshold", recorded.threshold, int(trace.columns[threshold][step]))


def _compare_summaries(
    comparison: Comparison, at: str, trace: Trace, step: int, recorded: Step, scripted: Scripted
) -> None:
    """What the summariser was given: the messages that it was given whole, and how many times it was asked."""
    theirs = recorded.detail.get("summariser", [])
    if any("skipped" in call for call in theirs):
        return
    if int(trace.columns["held"][step]) == SUMMARISER_FAILED:  # no compaction, so no record of the call
        comparison.equal(at, "asks a summariser", True, bool(theirs))
        return
    passes = [item for record in trace.compactions if record.step == step for item in record.passes]
    ours = [item for item in passes if item.summariser_view]
    comparison.equal(at, "calls of the summariser", len(theirs), len(ours))
    for number, (call, item) in enumerate(zip(theirs, ours, strict=False)):
        if "given" in call:
            what = f"messages given to summariser call {number}"
            comparison.equal(at, what, indices(call["given"]), _given(item, scripted))


def _given(item: Pass, scripted: Scripted) -> list[int]:
    numbers: list[int] = []
    for segment in item.summariser_view:
        if isinstance(segment, Span):
            numbers += [
                scripted.numbers[event]
                for event in range(segment.start, segment.stop)
                if not segment.form or not _is_changed(segment.form, scripted, event)
            ]
    return sorted(numbers)


def _is_changed(form: str, scripted: Scripted, event: int) -> bool:
    message = scripted.session.events[event]
    return get_form(form).message(message) is not message
