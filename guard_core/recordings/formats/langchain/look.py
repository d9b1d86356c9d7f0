"""A first look at LangSmith runs, or LangChain messages, one a line: the answers of the model runs alone.

Chains repeat the same messages over and over: their inputs and outputs are passed over without being built.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from guard_core.recordings.formats.langchain.messages import (
    KINDS,
    body_of,
    kind_of,
    model_of,
    provider_usage_of,
    usage_of,
)
from guard_core.recordings.formats.langchain.runs import MODEL_RUNS
from guard_core.recordings.reading import fields, looks
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.source import ByteSource

_ID_LENGTH = 36  # of a run's id, with which its `dotted_order` ends
_DEPTH = 64  # of runs in runs, as in the full reading
_ANSWERS = frozenset({"ai", "assistant"})
_MESSAGE = ("id", "type", "role", "data", "kwargs", "usage_metadata", "response_metadata")


class _Run(msgspec.Struct, gc=False):
    """A run, a batch of runs, or a message."""

    id: Any = None
    run_type: str = ""
    start_time: Any = None
    dotted_order: str | None = None
    outputs: msgspec.Raw = msgspec.Raw(b"null")
    child_runs: list[_Run] | None = None
    post: list[_Run] | None = None
    patch: list[_Run] | None = None
    type: Any = None
    role: Any = None
    data: Any = None
    kwargs: Any = None
    usage_metadata: Any = None
    response_metadata: Any = None


class _ModelRun(msgspec.Struct, gc=False):
    """What the records so far say of one model run."""

    at: float
    order: str
    tokens: int = 0
    model: str = ""


def look(source: ByteSource) -> FirstLook:
    """Calls from one quick pass, in the order of their times; a run may be spread over several lines."""
    answers: dict[object, _ModelRun] = {}
    for line in looks.lines_of(source, _Run):
        for run in _runs(line):
            order = run.dotted_order or ""
            named = run.id if isinstance(run.id, str) else order[-_ID_LENGTH:]
            name = named or object()
            if run.run_type in MODEL_RUNS:
                at = fields.timestamp({"start_time": run.start_time}, "start_time") or 0.0
                answers.setdefault(name, _ModelRun(at, order))
            if name in answers:
                _complete(answers[name], run)
            elif not run.run_type:
                _message(answers, run)
    calls = looks.CallsInOrder()
    for each in sorted(answers.values(), key=lambda each: (each.at, each.order)):
        calls.call(each.tokens, model=each.model)
    return calls.look()


def _runs(line: _Run, depth: int = 0) -> Iterator[_Run]:
    """The runs of one line, those inside others too, posts before patches."""
    batch = [*(line.post or ()), *(line.patch or ())]
    for run in batch or [line]:
        yield run
        for child in run.child_runs or () if depth < _DEPTH else ():
            yield from _runs(child, depth + 1)


def _complete(known: _ModelRun, run: _Run) -> None:
    """A later record of a known run adds what it holds."""
    outputs = looks.value_of(run.outputs)
    body = _answer(outputs)
    counts = usage_of(body)
    if counts.get("prompt_tokens") is None:
        counts = provider_usage_of(fields.mapping(fields.mapping(outputs, "llm_output"), "token_usage"))
    known.tokens = counts.get("prompt_tokens") or known.tokens
    known.model = model_of(body) or fields.text(outputs, "model") or known.model


def _answer(outputs: JSON) -> JSON:
    """The message that a model run ended with."""
    generations = fields.items(outputs, "generations")
    first = generations[0] if generations else None
    first = first[0] if isinstance(first, list) and first else first
    if isinstance(first, dict):
        return body_of(fields.mapping(first, "message"))
    listed = (*fields.items(outputs, "messages")[-1:], *fields.items(outputs, "choices")[:1])
    for item in (fields.mapping(outputs, "output"), *listed):
        message = fields.mapping(item, "message") or item
        if isinstance(message, dict) and kind_of(message) in KINDS:
            beside = message.get("usage_metadata") or outputs.get("usage_metadata")
            return body_of(message) | {"usage_metadata": beside}
    return outputs  # the provider's own response


def _message(answers: dict[object, _ModelRun], run: _Run) -> None:
    """A message on a line of its own."""
    message = {name: value for name in _MESSAGE if (value := getattr(run, name)) is not None}
    if kind_of(message) in _ANSWERS:
        body = body_of(message)
        tokens = usage_of(body).get("prompt_tokens") or 0
        answers[len(answers)] = _ModelRun(0.0, "", tokens, model_of(body))
