"""What `gemini -o json` prints at the end of a run: the last answer and totals, no messages.

Tokens are sums by model (and role, in newer versions) over all requests; where the conversation took a single request,
its sum is that call's prompt. The calls between the prompt and the answer are counted there, not shown.
Source: the output of Gemini CLI 0.12 to 0.61; https://github.com/google-gemini/gemini-cli, packages/core/src/output.
"""

from __future__ import annotations

from typing import Any

from guard_core.events import TextPart
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.gemini.messages import output_tokens
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import ByteSource


def is_result(value: Any) -> bool:
    """Is this the object that ends a run?"""
    stats = fields.mapping(value, "stats")
    models = fields.mapping(stats, "models")
    known = all(isinstance(model, dict) and {"api", "tokens"} <= model.keys() for model in models.values())
    return isinstance(fields.mapping(stats, "tools").get("totalCalls"), int) and "models" in stats and known


def read_result(source: ByteSource, name: str) -> Recording:
    """The one answer that is printed, as format `name`."""
    value = source.json()
    facts, log = FactCounter(name), SessionBuilder(name, source)
    answer = fields.text(value, "response")
    model, used = _conversation(fields.mapping(fields.mapping(value, "stats"), "models"))
    if not answer:
        raise source.nothing_left("what the Gemini CLI printed holds no answer")
    counts = _counts(used)
    log.answer((TextPart(answer),), call={"model": model, **counts})
    facts.message()
    if prompt := counts.get("prompt_tokens"):
        facts.call(prompt)
    session = log.session(
        source_id=fields.text(value, "session_id"),
        agent="Gemini CLI",
        model=model,
        notes=tuple(_notes(value, counts, used)),
    )
    return Recording(name, (session,), facts.facts(), source.notes)


def _conversation(models: JSON) -> tuple[str, JSON]:
    """The model that answered, and its numbers; where several are named, that of the role `main`."""
    by_role = {model: fields.mapping(fields.mapping(models[model], "roles"), "main") for model in models}
    main = {model: usage for model, usage in by_role.items() if usage}
    if len(main) == 1:
        return next(iter(main.items()))
    if len(models) == 1:
        model, usage = next(iter(models.items()))
        return model, {**fields.mapping(usage, "api"), "tokens": usage["tokens"]}
    return "", {}


def _counts(used: JSON) -> JSON:
    """The tokens of the call, where all the tokens are one call's."""
    tokens = fields.mapping(used, "tokens")
    prompt = fields.tokens(tokens, "prompt")
    if used.get("totalRequests") != 1 or used.get("totalErrors") or not prompt:
        return {}
    cached, output = fields.tokens(tokens, "cached"), output_tokens(tokens, "candidates")
    return {"prompt_tokens": prompt, "cached_tokens": cached, "output_tokens": output}


def _notes(value: JSON, counts: JSON, used: JSON) -> list[str]:
    stats = fields.mapping(value, "stats")
    notes = [
        "Only the last answer was printed: the system prompt, the tools' schemas and the prompt are not in the file.",
    ]
    if calls := fields.tokens(fields.mapping(stats, "tools"), "totalCalls"):
        notes.append(f"Tool calls that were made before it: {calls}, which are not in the file.")
    totals = [fields.mapping(model, "tokens") for model in fields.mapping(stats, "models").values()]
    prompt = fields.tokens(fields.mapping(used, "tokens"), "prompt")
    prompt = prompt if prompt is not None else sum(fields.tokens(total, "prompt") or 0 for total in totals)
    if not counts:
        notes.append(f"Tokens are reported for the whole run only: {prompt} prompt tokens over all calls.")
    return notes
