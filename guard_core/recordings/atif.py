"""ATIF trajectories (Harbor's agent trajectory interchange format), versions 1.0 to 1.7: one session per file.

Definition: https://www.harborframework.com/docs/agents/trajectory-format.
A step of source `agent` is one model call with its answer; `metrics.prompt_tokens` includes `cached_tokens`. Its
`observation.results` are tool results for the calls of the same step; results without a call id answer by order. The
first `system` step is the system prompt, later ones stay in the log (agents add context so), marked as automatic.
Steps with `is_copied_context` repeat another file's history: they are in the log, but are no calls of this file. After
a summarisation an agent goes on in a continuation file; that boundary is told in a note, for the history before it is
in the other file. Embedded `subagent_trajectories` become sessions of their own; results that only refer to a
sub-agent's file hold that reference. `agent.tool_definitions` are the tools. Facts count steps as messages.
"""

from __future__ import annotations

from typing import Any

from guard_core.errors import DamagedRecording
from guard_core.events import MediaPart, Part, ReasoningPart, Role, ToolCallPart, ToolResultPart
from guard_core.recordings import chat, fields
from guard_core.recordings.base import Recording
from guard_core.recordings.build import FactCounter, SessionBuilder
from guard_core.recordings.fields import JSON
from guard_core.recordings.source import Shape, Source
from guard_core.sessions import Session

SUBAGENT_DEPTH = 4  # trajectories inside trajectories; the format allows any


class AtifFormat:
    name = "atif"
    label = "ATIF"

    def matches(self, source: Source) -> bool:
        value = source.json() if source.shape is Shape.JSON else None
        if not isinstance(value, dict) or not isinstance(value.get("steps"), list):
            return False
        declared = fields.text(value, "schema_version").upper().startswith("ATIF")
        first = next(fields.objects(value["steps"]), {})
        return declared or ("step_id" in first and "source" in first)

    def read(self, source: Source) -> Recording:
        facts = FactCounter(self.name)
        sessions = _sessions(source, source.json(), facts, 0)
        if not sessions[0].events and sessions[0].system is None:
            raise DamagedRecording("this ATIF trajectory has no steps")
        return Recording(self.name, tuple(sessions), facts.facts(), source.notes)


FORMAT = AtifFormat()


def _sessions(source: Source, value: JSON, facts: FactCounter, depth: int) -> list[Session]:
    reader = _Trajectory(source, value, facts)
    sessions = [reader.session()]
    if depth < SUBAGENT_DEPTH:
        for child in fields.objects(value.get("subagent_trajectories")):
            sessions.extend(_sessions(source, child, facts, depth + 1))
    return sessions


class _Trajectory:
    def __init__(self, source: Source, value: JSON, facts: FactCounter) -> None:
        self._source = source
        self._value = value
        self._facts = facts
        self._builder = SessionBuilder("atif", source)
        self._system: tuple[Part, ...] | None = None
        self._copied = 0

    def session(self) -> Session:
        agent = fields.mapping(self._value, "agent")
        for step in fields.objects(self._value.get("steps")):
            self._facts.message()
            self._step(step)
        self._add_notes()
        return self._builder.session(
            system=self._system,
            tools=chat.tool_definitions(agent.get("tool_definitions")),
            agent=fields.text(agent, "name"),
            model=fields.text(agent, "model_name"),
            source_id=fields.text(self._value, "session_id") or fields.text(self._value, "trajectory_id"),
            title=fields.text(self._value, "session_id"),
        )

    def _step(self, step: JSON) -> None:
        parts = fields.content_parts(step.get("message"))
        time = fields.timestamp(step, "timestamp")
        match fields.text(step, "source"):
            case "system" if self._system is None and not self._builder.events:
                self._system = parts
            case "system":
                self._builder.event(Role.SYSTEM, parts, timestamp=time, meta=True)
            case "user":
                self._builder.event(Role.USER, parts, timestamp=time)
            case "agent":
                self._answer(step, parts, time)
            case other:
                self._source.notes.skip(f"step of source {other[:40] or 'none'}")
        if fields.text(step, "source") != "agent":
            self._results(step, [], time)

    def _answer(self, step: JSON, parts: tuple[Part, ...], time: float | None) -> None:
        reasoning = fields.text(step, "reasoning_content")
        calls = [self._tool_call(item) for item in fields.objects(step.get("tool_calls"))]
        head: tuple[Part, ...] = (ReasoningPart(reasoning),) if reasoning else ()
        if step.get("is_copied_context") is True:
            self._copied += 1
            self._builder.event(Role.MODEL, (*head, *parts, *calls), timestamp=time)
        else:
            call = self._call(step, time)
            self._builder.answer((*head, *parts, *calls), call=call, timestamp=time)
        self._results(step, calls, time)

    def _call(self, step: JSON, time: float | None) -> dict[str, Any]:
        metrics = fields.mapping(step, "metrics")
        prompt = fields.tokens(metrics, "prompt_tokens")
        if prompt is not None:
            self._facts.call(prompt)
        return {
            "prompt_tokens": prompt,
            "cached_tokens": fields.tokens(metrics, "cached_tokens"),
            "output_tokens": fields.tokens(metrics, "completion_tokens"),
            "model": fields.text(step, "model_name"),
            "timestamp": time,
        }

    def _tool_call(self, item: JSON) -> ToolCallPart:
        call_id = fields.text(item, "tool_call_id")
        self._facts.tool_call(call_id)
        return ToolCallPart(fields.text(item, "function_name"), fields.arguments(item.get("arguments")), call_id)

    def _results(self, step: JSON, calls: list[ToolCallPart], time: float | None) -> None:
        parts: list[Part] = []
        for index, item in enumerate(fields.objects(fields.mapping(step, "observation").get("results"))):
            call_id = fields.text(item, "source_call_id")
            if not call_id and index < len(calls):
                call_id = calls[index].id
            content = item.get("content")
            found: Any = fields.plain_text(content) or item.get("subagent_trajectory_ref") or ""
            self._facts.tool_result(call_id, len(found) if isinstance(found, str) else 0)
            parts.append(ToolResultPart(content=found, call_id=call_id))
            parts.extend(part for part in fields.content_parts(content) if isinstance(part, MediaPart))
        if parts:
            self._builder.event(Role.USER, parts, timestamp=time)

    def _add_notes(self) -> None:
        if self._copied:
            self._builder.notes.append(
                f"{self._copied} answers are copied from another file as context; their calls are counted there."
            )
        following = fields.text(self._value, "continued_trajectory_ref")
        if following:
            self._builder.notes.append(
                f"The agent summarised its history and goes on in another file: {following[:200]}"
            )
