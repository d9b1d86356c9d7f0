"""Vectors of the format contextguard-trace/1: scenarios of turns, replayed under the constants of each run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from guard_core.conformance.attempts import attempts, real_after
from guard_core.conformance.compare import ConformanceVerdict, FigureComparison
from guard_core.conformance.vectors import (
    COLUMNS,
    TraceFile,
    TraceInput,
    TraceOutput,
    TraceRun,
    VectorError,
    check_text,
    parse,
)
from guard_core.events import MediaPart, TextPart, ToolCallPart, ToolResultPart, utf8_bytes
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.policies.contextguard.contents import costs_of
from guard_core.policies.contextguard.settings import Settings
from guard_core.replay import replay
from guard_core.sessions import ToolDefinition
from guard_core.simulator.flow import Flow, Simulation, Turn, play, sized_tool
from guard_core.summaries.sizes import FixedSummaries
from guard_core.tokens.calibration import CORRECTION_SOURCES
from guard_core.tokens.heuristic import schema_json, tool_definition_tokens
from guard_core.trace import Trace

_KINDS = {TextPart: "t", ToolCallPart: "c", ToolResultPart: "r", MediaPart: "i"}


def check(data: bytes) -> Iterator[ConformanceVerdict]:
    """One verdict per run of the file."""
    file = parse(data, TraceFile)
    flows = [play(_simulation(item)) for item in file.simulations]
    ledgers = [Ledger.of(flow.session) for flow in flows]
    for run in file.runs:
        yield _check_run(file, flows, ledgers, run)


def _check_run(file: TraceFile, flows: list[Flow], ledgers: list[Ledger], run: TraceRun) -> ConformanceVerdict:
    comparison = FigureComparison()
    if len(run.simulations) != len(flows):
        raise VectorError(f"the run {run.profile[:40]!r} has {len(run.simulations)} results for {len(flows)} inputs")
    for given, flow, ledger, output in zip(file.simulations, flows, ledgers, run.simulations, strict=True):
        _check_input(comparison, given, flow, ledger)
        policy = get_policy("contextguard", **run.constants.settings())
        trace = replay(ledger, policy, window=given.window, summarizer=FixedSummaries(given.summary_bytes), request="")
        _check_output(comparison, file, given, flow, ledger, trace, output, policy.settings)
    return comparison.verdict(run.profile)


def _simulation(given: TraceInput) -> Simulation:
    sizes = [size for turn in given.turns for _, size in turn.tools or ()]
    check_text(given.system_bytes + sum(turn.user_bytes + turn.model_bytes for turn in given.turns) + sum(sizes))
    return Simulation(
        window=given.window,
        turns=tuple(
            Turn(
                turn.user_bytes,
                turn.model_bytes,
                tuple(turn.tools or ()),
                bool(turn.sequential),
                tuple(turn.inline or ()),
            )
            for turn in given.turns
        ),
        ratio=given.token_ratio,
        reported_from=0 if given.usage_metadata else None,
        system_bytes=given.system_bytes,
        tools=tuple(sized_tool(*item) for item in given.tool_defs or ()),
        summary_bytes=given.summary_bytes,
    )


def _check_input(comparison: FigureComparison, given: TraceInput, flow: Flow, ledger: Ledger) -> None:
    comparison.equal("input", "system_tokens", given.system_tokens, ledger.system_tokens)
    if given.tool_defs_tokens is not None:
        comparison.equal("input", "tool_defs_tokens", given.tool_defs_tokens, ledger.tools_tokens)
    costs = costs_of(ledger, Settings())  # the vectors count events as `current` does
    rows = [
        [
            event.role.value,
            "".join(_KINDS[type(part)] for part in event.parts),
            int(costs.prefix[i + 1] - costs.prefix[i]),
        ]
        for i, event in enumerate(flow.session.events)
    ]
    for number, row in enumerate(given.events):
        if number < len(rows):
            comparison.equal(f"event {number}", "role, kinds, heuristic", list(row), rows[number])
    comparison.equal("input", "number of events", len(given.events), len(rows))
    if given.tool_defs_full is not None:
        # Declarations given in full must have the lengths and tokens that the file states.
        tools = [declaration(item) for item in given.tool_defs_full or ()]
        sizes = [[tool.name, utf8_bytes(tool.description), utf8_bytes(schema_json(tool.schema))] for tool in tools]
        comparison.equal("input", "tool_defs", [list(item) for item in given.tool_defs or ()], sizes)
        comparison.equal("input", "tool_defs_tokens", given.tool_defs_tokens, sum(map(tool_definition_tokens, tools)))


def declaration(item: dict[str, Any]) -> ToolDefinition:
    """A function declaration as the framework writes it; the raw schema goes before the typed one."""
    name, description = item.get("name", ""), item.get("description", "")
    if not isinstance(name, str) or not isinstance(description, str):
        raise VectorError("a tool's name and description are texts")
    schema = item.get("parametersJsonSchema")
    return ToolDefinition(name, description, item.get("parameters") if schema is None else schema)


def _check_output(
    comparison: FigureComparison,
    file: TraceFile,
    given: TraceInput,
    flow: Flow,
    ledger: Ledger,
    trace: Trace,
    output: TraceOutput,
    settings: Settings,
) -> None:
    limits = settings.limits(given.window)
    comparison.equal("run", "buffer", output.buffer, limits.buffer)
    comparison.equal("run", "threshold", output.threshold, limits.threshold)
    rows = list(_rows(trace, flow, file.attempt_fields))
    comparison.rows(file.step_fields, output.steps, rows)
    comparison.equal("run", "llm_compactions", output.llm_compactions, sum(len(row["attempts"]) for row in rows))
    comparison.mapping("result", output.result, _result(file, flow, ledger, rows, settings))


def _rows(trace: Trace, flow: Flow, attempt_fields: list[str]) -> Iterator[dict[str, Any]]:
    columns = {name: trace.columns[column].tolist() for name, column in COLUMNS.items()}
    records = {record.step: record for record in trace.compactions}
    after = real_after(trace)
    for step in range(len(trace)):
        row = {name: values[step] for name, values in columns.items()}
        counted = row["h_after"] < row["h_built"] and row["summary_bytes"] > 0
        yield {
            **row,
            "step": step,
            "turn": flow.turns[step],
            "label": flow.labels[step],
            "correction_source": CORRECTION_SOURCES[trace.columns["correction_source"][step]],
            "fired": bool(trace.columns["fired"][step]),
            "attempts": attempts(records.get(step), attempt_fields),
            "sim_counted": counted,
            "overflow": bool(trace.columns["overflow"][step]),
            "real_state_after": after[step],
        }


def _result(
    file: TraceFile, flow: Flow, ledger: Ledger, rows: list[dict[str, Any]], settings: Settings
) -> dict[str, Any]:
    counted = sum(row["sim_counted"] for row in rows)
    overflowed = any(row["overflow"] for row in rows)
    # Would the original's own test fail?
    least = file.upstream_asserts.get("min_sim_compactions")
    too_few = isinstance(least, int) and counted < least
    failed = too_few or (file.upstream_asserts.get("no_overflow") is True and overflowed)
    return {
        "turns": max(flow.turns, default=-1) + 1,
        "sim_compactions": counted,
        "max_real_tokens": max((row["real_for_llm"] for row in rows), default=0),
        "overflowed": overflowed,
        "final_event_tokens": int(costs_of(ledger, settings).prefix[-1]),
        "loop_detected": False,  # the original's check can never be true (specification, section 12)
        "failed": failed,
    }
