"""Vectors of the format contextguard-function/1: tables of inputs and outputs of single functions."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from typing import Any

from guard_core.conformance.attempts import contents
from guard_core.conformance.compare import ConformanceVerdict, FigureComparison
from guard_core.conformance.scripted import event
from guard_core.conformance.traces import declaration
from guard_core.conformance.vectors import FunctionFile, VectorError, parse, settings_of
from guard_core.events import Event, MediaPart, Part, Role, TextPart, ToolCallPart, ToolResultPart, utf8_bytes
from guard_core.ledger import Ledger
from guard_core.policies.base import Check
from guard_core.policies.contextguard.contents import Contents, costs_of, truncate
from guard_core.policies.contextguard.memory import GuardMemory
from guard_core.policies.contextguard.settings import PROFILES, Settings, profile_settings
from guard_core.policies.contextguard.splits import find_split, safe_split
from guard_core.policies.contextguard.threshold import Threshold
from guard_core.sessions import Session
from guard_core.summaries.continuation import continuation
from guard_core.summaries.fallback import fallback_bytes
from guard_core.summaries.sizes import FixedSummaries
from guard_core.summaries.todos import load_todos
from guard_core.summaries.wrapper import BEGIN, wrap
from guard_core.tokens.calibration import CORRECTION_SOURCES, estimate
from guard_core.tokens.heuristic import parts_costs, render, schema_json, tool_definition_tokens
from guard_core.views import Span

Case = dict[str, Any]
# The figures of a case, computed from its inputs: one function for each file of vectors, however short (_FUNCTIONS).
Answers = Callable[[Case, Settings], dict[str, Any]]
_BOTH = "both"
_WRONG_SHAPE = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, binascii.Error)


def check(data: bytes) -> Iterator[ConformanceVerdict]:
    """One verdict per profile of the file."""
    file = parse(data, FunctionFile)
    if file.case is not None:
        yield _timing_gap(file.case)
        return
    if file.function not in _FUNCTIONS:
        raise VectorError(f"there is no function {file.function[:40]!r}; known are {', '.join(_FUNCTIONS)}")
    if not file.cases:
        raise VectorError("the file has no cases")
    for profile, given in file.cases.items():
        cases = given if isinstance(given, list) else [given]
        yield _check_cases(file, profile, cases)


def _check_cases(file: FunctionFile, profile: str, cases: list[Any]) -> ConformanceVerdict:
    inputs, answers = _FUNCTIONS[file.function]
    settings = _settings(file, profile)
    compared = FigureComparison()
    for number, case in enumerate(cases):
        where = f"case {number}"
        if not isinstance(case, dict):
            raise VectorError(f"{where} is not an object")
        missing = [name for name in inputs if name not in case]
        if missing:
            raise VectorError(f"{where} has no {missing[0]!r}")
        try:
            got = answers(case, settings)
        except _WRONG_SHAPE as error:
            raise VectorError(f"{where} cannot be read: {type(error).__name__}: {str(error)[:80]}") from error
        compared.mapping(where, {name: value for name, value in case.items() if name not in inputs}, got)
    return compared.verdict(profile)


def _settings(file: FunctionFile, profile: str) -> Settings:
    """The constants that a file gives for a profile, else our own; cases of both profiles are checked in the
    current one."""
    if file.constants and profile in file.constants:
        return settings_of(file.constants[profile])
    if profile != _BOTH and profile not in PROFILES:
        raise VectorError(f"there is no profile {profile[:40]!r}; known are both, {', '.join(PROFILES)}")
    return profile_settings("current" if profile == _BOTH else profile)


def _ledger(case: Case) -> Ledger:
    return Ledger.of(Session(events=tuple(event(item) for item in case["events"])))


def _tokens(ledger: Ledger) -> list[int]:
    tokens: list[int] = ledger.events["text_tokens"].tolist()
    return tokens


def _buffer(case: Case, settings: Settings) -> dict[str, Any]:
    limits = settings.limits(_whole(case["window"]))
    return {
        "buffer": limits.buffer,
        "threshold": limits.threshold,
        "max_output_tokens": limits.output_tokens,
        "max_words": limits.words,
    }


def _token_count(case: Case, settings: Settings) -> dict[str, Any]:
    """Where a count comes from has the name that the vectors give it."""
    heuristic, real, last = (_whole(case[name]) for name in ("heuristic", "real", "last_heuristic"))
    counted = estimate(heuristic, real, last, settings.factors)
    return {"correction": counted.factor, "result": counted.tokens, "source": CORRECTION_SOURCES[counted.source]}


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > 2**53:
        raise ValueError(f"{value!r} is not a whole number of tokens")
    return value


def _estimate_part(case: Case, settings: Settings) -> dict[str, Any]:
    part = case["part"]
    text, inline, metadata = parts_costs(_parts(part))
    counted = text + (inline if settings.count_inline else 0) + (metadata if settings.count_metadata else 0)
    response = part.get("functionResponse", {}).get("response")
    arguments = part.get("functionCall", {}).get("args") or {}
    return {
        "tokens": counted,
        "args_rendered": {key: render(value) for key, value in arguments.items()},
        "response_rendered": "map[]" if response is None else render(response),
    }


def _parts(part: dict[str, Any]) -> list[Part]:
    """One part of the framework as ours: its fields add up."""
    parts: list[Part] = []
    if "text" in part:
        parts.append(TextPart(part["text"]))
    if "functionCall" in part:
        parts.append(ToolCallPart(part["functionCall"].get("name", ""), part["functionCall"].get("args")))
    if "functionResponse" in part:
        response = part["functionResponse"]
        parts.append(ToolResultPart(response.get("name", ""), response.get("response")))
    if "inlineData" in part:
        data = base64.b64decode(part["inlineData"].get("data", ""), validate=True)
        parts.append(MediaPart(mime=part["inlineData"].get("mimeType", ""), size=len(data)))
    if "partMetadata" in part:
        parts.append(TextPart("", metadata=part["partMetadata"]))
    return parts


def _estimate_tools(case: Case, settings: Settings) -> dict[str, Any]:
    """The sizes of the schemas are asked as well: they say whether the JSON differs or its estimate."""
    tools = [declaration(item) for item in case["declarations"]]
    tokens = sum(map(tool_definition_tokens, tools)) if settings.count_tools else 0
    return {"tokens": tokens, "schema_json_bytes": [utf8_bytes(schema_json(tool.schema)) for tool in tools]}


def _safe_split(case: Case, settings: Settings) -> dict[str, Any]:
    """A case lists indices with their splits: each index is asked, and the list is compared as a whole."""
    ledger = _ledger(case)
    contents = Contents((Span(0, ledger.event_count),), costs_of(ledger, settings))
    pairs = [[_whole(index), safe_split(contents, index)] for index, _ in case["idx_to_split"]]
    return {"idx_to_split": pairs}


def _find_split(case: Case, settings: Settings) -> dict[str, Any]:
    ledger = _ledger(case)
    contents = Contents((Span(0, ledger.event_count),), costs_of(ledger, settings))
    splits = [[_whole(budget), find_split(contents, budget)] for budget, _ in case["budget_to_split"]]
    return {"budget_to_split": splits, "event_tokens": _tokens(ledger)}


def _truncate(case: Case, settings: Settings) -> dict[str, Any]:
    ledger = _ledger(case)
    costs = costs_of(ledger, settings)
    whole = (Span(0, ledger.event_count),)
    dropped = [
        [_whole(window), truncate(whole, costs, int(window * settings.summariser_share))[2]]
        for window, _ in case["window_to_dropped"]
    ]
    return {"window_to_dropped": dropped, "event_tokens": _tokens(ledger)}


def _inject(case: Case, settings: Settings) -> dict[str, Any]:
    first = {
        "plain": (Role.USER, "hello"),
        "marker_user": (Role.USER, f"{BEGIN}\nabc"),
        "marker_model": (Role.MODEL, f"{BEGIN}\nabc"),
    }[case["first"]]
    count = _whole(case["n"])
    if not 0 < count <= 100_000:
        raise ValueError("n is out of range")
    events = (Event(first[0], (TextPart(first[1]),)), *(Event(Role.MODEL, (TextPart("m"),)),) * (count - 1))
    check_ = Check(Ledger.of(Session(events=events)), 0, count, 128_000, FixedSummaries(0))
    memory = GuardMemory(summary_bytes=3, watermark=_whole(case["watermark"]))
    return {"after": contents(Threshold(settings).injected(check_, memory))}


def _wrapper(case: Case, settings: Settings) -> dict[str, Any]:
    """A summary is sent as a message of the user."""
    text = wrap(case["summary"], settings.marker_dash)
    return {"text": text, "bytes": utf8_bytes(text), "role": "user"}


def _continuation(case: Case, settings: Settings) -> dict[str, Any]:
    """The request that is continued is the user's first text that is not empty."""
    request = next((text for text in case["user_parts"] or () if text), "")
    text = continuation(request)
    return {"bytes": utf8_bytes(text), "contains_user_text": bool(request) and request in text, "role": "user"}


def _fallback(case: Case, settings: Settings) -> dict[str, Any]:
    """An excerpt may end within a character, so the summary is compared as bytes."""
    messages = [(role, (text,)) for role, text in case["messages"]]
    data = fallback_bytes(messages, case["previous"], settings.fallback_excerpt)
    return {"bytes": len(data), "output_base64": base64.b64encode(data).decode()}


def _todos(case: Case, settings: Settings) -> dict[str, Any]:
    items = load_todos(case["state"])
    if items is None:
        return {"loaded": None}
    todos = [dict(zip(("content", "status", "active_form"), item, strict=True)) for item in items]
    # The original writes an empty status, and no empty active form.
    return {"loaded": [{key: value for key, value in item.items() if value or key != "active_form"} for item in todos]}


_FUNCTIONS: dict[str, tuple[tuple[str, ...], Answers]] = {
    "buffer": (("window",), _buffer),
    "token_count": (("heuristic", "real", "last_heuristic"), _token_count),
    "estimate_part": (("part",), _estimate_part),
    "estimate_tools": (("declarations",), _estimate_tools),
    "safe_split": (("events",), _safe_split),
    "find_split": (("events",), _find_split),
    "truncate_for_summarizer": (("events",), _truncate),
    "inject_summary": (("first", "n", "watermark"), _inject),
    "summary_wrapper": (("summary",), _wrapper),
    "continuation": (("user_parts",), _continuation),
    "fallback_summary": (("messages", "previous"), _fallback),
    "todos": (("state",), _todos),
}


def _timing_gap(case: Case) -> ConformanceVerdict:
    """One request after a large tool result: the count of the step before would have let it pass."""
    compared = FigureComparison()
    try:
        got = _timing_gap_figures(case)
    except _WRONG_SHAPE as error:
        raise VectorError(f"the case cannot be read: {type(error).__name__}: {str(error)[:80]}") from error
    inputs = ("real", "last_heuristic", "events", "window")
    compared.mapping("case", {name: value for name, value in case.items() if name in got and name not in inputs}, got)
    return compared.verdict("both")


def _timing_gap_figures(case: Case) -> dict[str, Any]:
    ledger = _ledger(case)
    heuristic, window, real = sum(_tokens(ledger)), _whole(case["window"]), _whole(case["real"])
    counted = estimate(heuristic, real, _whole(case["last_heuristic"]), Settings().factors)
    named = case.get("threshold")
    names = [name for name in (named if isinstance(named, dict) else PROFILES) if name in PROFILES]
    thresholds = {name: profile_settings(name).limits(window).threshold for name in names}
    by_name: dict[str, dict[str, Any]] = {
        "threshold": thresholds,
        "real_alone_would_fire": {name: real >= value for name, value in thresholds.items()},
        "fires": {name: counted.tokens >= value for name, value in thresholds.items()},
    }
    plain: dict[str, Any] = dict(by_name)
    for name, value in by_name.items():
        if not isinstance(case.get(name), dict):
            plain[name] = value["current"]
    return {"heuristic": heuristic, "correction": counted.factor, "decision_tokens": counted.tokens, **plain}
