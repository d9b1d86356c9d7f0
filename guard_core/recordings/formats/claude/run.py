"""A run as Claude Code prints it: its lines, what its results report (totals, errors, the window), what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from guard_core.events import Event, Role
from guard_core.recordings.formats.claude.tree import Node
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import Line
from guard_core.sessions import Provenance, Sourced

_PROMPT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_MISSING = (
    "The system prompt, the schemas of the tools and what Claude Code adds to messages by itself are not in the file."
)


@dataclass
class PrintedRun:
    """The lines of one session, those of its sub-agents apart, and how it ended."""

    main: list[Node] = field(default_factory=list)
    agents: dict[str, list[Node]] = field(default_factory=dict)  # by the call that started each
    titles: dict[str, str] = field(default_factory=dict)  # of sub-agents
    results: list[Line] = field(default_factory=list)
    model: str = ""
    version: str = ""  # of Claude Code


def run_notes(run: PrintedRun, events: Sequence[Event]) -> Iterator[str]:
    """What is not in the file, and how runs ended."""
    yield _MISSING
    if not events[0].starts_turn():
        yield "The user's prompt is not in the file: Claude Code prints it with --replay-user-messages only."
    errors = [line.obj for line in run.results if failed(line.obj)]
    if errors:
        reason = fields.text(errors[0], "api_error") or fields.text(errors[0], "subtype").replace("success", "")
        yield f"Runs that ended with an error: {len(errors)}, the first with {reason[:60] or 'no reason'}"


def agent_notes(events: Sequence[Event]) -> Iterator[str]:
    """What versions leave out of a sub-agent's messages."""
    yield _MISSING
    if events and events[0].role is Role.MODEL:
        yield "The sub-agent's prompt is in the call that started it."
    if events and events[-1].role is not Role.MODEL:
        yield "The sub-agent's last answer is not in the file: it is the result of the call that started it."


def total_of_results(run: PrintedRun) -> int:
    """The prompt tokens that the results report, cached ones included."""
    usages = [fields.mapping(line.obj, "usage") for line in run.results]
    return sum(fields.tokens(usage, key) or 0 for usage in usages for key in _PROMPT)


def totals(run: PrintedRun) -> Iterator[str]:
    """What the results say about tokens, where no call says anything."""
    if run.results:
        yield (
            f"Only results were printed ({len(run.results)}), no messages; they report {total_of_results(run)} prompt"
            " tokens, cached ones included, which belong to no call."
        )


def failed(result: JSON) -> bool:
    """Does a result report an error?"""
    return result.get("is_error") is True or fields.text(result, "subtype").startswith("error")


def window_of(run: PrintedRun, model: str) -> Sourced | None:
    """The context window that a result reports for the model, whose name there may end in a mark such as `[1m]`."""
    for line in reversed(run.results):
        used = fields.mapping(line.obj, "modelUsage")
        names = [name for name in used if name.split("[")[0] == model] or (list(used) if len(used) == 1 else [])
        for name in names:
            if window := fields.window(used[name], "contextWindow"):
                return Sourced(window, Provenance.RECORDER, "contextWindow of the model in the result")
    return None
