"""Vectors of the format contextguard-scripted/1: either strategy over a list of events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from guard_core.conformance.attempts import attempt, contents, real_after
from guard_core.conformance.compare import ConformanceVerdict, FigureComparison
from guard_core.conformance.vectors import COLUMNS, ScriptFile, ScriptInput, ScriptRun, VectorError, check_text, parse
from guard_core.events import Event, Part, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.policies.contextguard import STRATEGIES
from guard_core.policies.contextguard.contents import costs_of
from guard_core.policies.contextguard.settings import Settings
from guard_core.replay import replay
from guard_core.sessions import ModelCall, Session
from guard_core.simulator.flow import NEVER_REPORTED, filler
from guard_core.summaries.sizes import ScriptedSummaries
from guard_core.tokens.calibration import CORRECTION_SOURCES
from guard_core.trace import SUMMARISER_FAILED, Trace


def check(data: bytes) -> Iterator[ConformanceVerdict]:
    """One verdict per run of the file."""
    file = parse(data, ScriptFile)
    given = file.simulation
    if given.strategy not in STRATEGIES:
        raise VectorError(f"the strategy is threshold or sliding, not {given.strategy[:40]!r}")
    session = _session(given)
    ledger = Ledger.of(session)
    for run in file.runs:
        yield _check_run(file, ledger, run)


def _check_run(file: ScriptFile, ledger: Ledger, run: ScriptRun) -> ConformanceVerdict:
    given, comparison = file.simulation, FigureComparison()
    costs = costs_of(ledger, Settings())
    tokens = [int(costs.prefix[i + 1] - costs.prefix[i]) for i in range(ledger.event_count)]
    for number, (expected, got) in enumerate(zip(given.event_tokens, tokens, strict=False)):
        comparison.equal(f"event {number}", "heuristic", expected, got)
    comparison.equal("input", "number of events", len(given.event_tokens), len(tokens))
    sliding = given.strategy == "sliding"
    turns = {"max_turns": given.max_turns} if sliding else {}
    policy = get_policy(STRATEGIES[given.strategy], **run.constants.settings(sliding=sliding, **turns))
    limits = policy.settings.limits(given.window)
    comparison.equal("run", "buffer", run.buffer, limits.buffer)
    comparison.equal("run", "threshold", run.threshold, limits.threshold)
    if not given.llm_script:
        raise VectorError("llm_script has no reply")
    summarizer = ScriptedSummaries(tuple(map(_reply, given.llm_script)))
    trace = replay(ledger, policy, window=given.window, summarizer=summarizer, request=given.user_content)
    comparison.rows(file.step_fields, run.steps, _rows(trace, ledger, file.attempt_fields, sliding=sliding))
    return comparison.verdict(run.profile)


def _reply(reply: dict[str, Any]) -> int | None:
    if reply.get("error"):
        return None
    size = 0 if reply.get("empty") else reply.get("bytes")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= 20_000_000:
        raise VectorError(f"a reply of the summariser is bytes, error or empty, not {str(reply)[:60]}")
    return size


def _session(given: ScriptInput) -> Session:
    events = tuple(event(item) for item in given.events)
    check_text(given.system_bytes)
    calls = tuple(ModelCall(at=index + 1) for index, item in enumerate(events) if item.role is Role.USER)
    return Session(
        events=events,
        calls=calls,
        system=(TextPart(filler(given.system_bytes)),) if given.system_bytes else (),
        usage_ratio=given.token_ratio,
        usage_reported_from=0 if given.usage_metadata else NEVER_REPORTED,
    )


def event(item: list[Any]) -> Event:  # noqa: PLR0911 - one return for each short form
    """An event in the vectors' short form, such as ["ut", 300] or ["ur", "tool", 200]."""
    match item:
        case ["nil"]:
            return Event(Role.USER, ())
        case ["ut", int(size)]:
            return Event(Role.USER, (_text(size),))
        case ["mt", int(size)]:
            return Event(Role.MODEL, (_text(size),))
        case ["mc", str(name)]:
            return Event(Role.MODEL, (ToolCallPart(name, {"param": "value"}),))
        case ["mc", str(name), dict() | None as arguments]:
            return Event(Role.MODEL, (ToolCallPart(name, arguments or {}),))
        case ["mtc", str(name), int(size)]:
            return Event(Role.MODEL, (_text(size), ToolCallPart(name, {"param": "value"})))
        case ["ur", str(name), int(size)]:
            return Event(Role.USER, (_result(name, size),))
        case ["ur", str(name), str(key), int(size)]:
            return Event(Role.USER, (_result(name, size, key),))
        case ["urt", str(name), int(size), int(text)]:
            return Event(Role.USER, (_result(name, size), _text(text)))
    raise VectorError(f"{str(item)[:60]} is not an event")


def _text(size: int) -> Part:
    return TextPart("x" * _checked(size))


def _result(name: str, size: int, key: str = "result") -> Part:
    return ToolResultPart(name, {key: "x" * _checked(size)})


def _checked(size: int) -> int:
    if isinstance(size, bool) or not 0 <= size <= 20_000_000:
        raise VectorError(f"{size} is not a size in bytes")
    return size


def _rows(trace: Trace, ledger: Ledger, names: list[str], *, sliding: bool) -> Iterator[dict[str, Any]]:
    columns = {name: trace.columns[column].tolist() for name, column in COLUMNS.items()}
    records = {record.step: record for record in trace.compactions}
    after, at = real_after(trace), ledger.steps["at"].tolist()
    watermark, summarized = 0, None
    for step in range(len(trace)):
        record = records.get(step)
        row = {name: values[step] for name, values in columns.items()}
        passes = record.passes if record is not None else ()
        failed = int(trace.columns["held"][step]) == SUMMARISER_FAILED
        if passes:
            summarized = passes[-1].tokens_in if sliding else row["decision_tokens"]
        yield {
            **row,
            "step": step,
            "watermark_loaded": watermark,
            "correction_source": CORRECTION_SOURCES[trace.columns["correction_source"][step]],
            "fired": bool(trace.columns["fired"][step]),
            "llm_calls": len(passes) + failed,
            "attempts": [attempt(item, names) for item in passes],
            "contents_after": contents(trace.view(step, at[step])),
            "real_state_after": after[step],
            "overflow": bool(trace.columns["overflow"][step]),
            "summarized_at": summarized,
        }
        watermark = row["watermark"]
