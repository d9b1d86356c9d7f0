"""ATIF trajectories (Harbor's agent trajectory interchange format), versions 1.0 to 1.8: one session each.

Definition: https://www.harborframework.com/docs/agents/trajectory-format. A step of source `agent` is one model call
with its answer; `metrics.prompt_tokens` includes `cached_tokens`, and what the cache wrote (in `metrics.extra`), which
of some agents is beside it and added. A step may be several calls (`llm_call_count`): its metrics are their sum and no
call's own, so its call carries none; with 0 calls it is an event. `observation.results` are tool results for the calls
of the same step; results without a call id answer by order. The first `system` step is the system prompt, later ones
stay in the log (agents add context so), marked as automatic. A compaction is a system step with
`extra.context_management` (or `muse_compaction`): all before it leaves the request, the next user step is what takes
its place. A trajectory made from pi's sessions has the summary in an agent's step of its own. Steps with
`is_copied_context` repeat another file's history: they are in the log, but are not calls of this file. After a
summarisation an agent may continue in another file; a note states that boundary, for the history before it is in the
other file. Embedded `subagent_trajectories` become sessions of their own; results that only refer to a sub-agent's file
hold that reference. `agent.tool_definitions` are the tools. A file holds one trajectory, or many: an array, or one per
line; of a session that was written again when it had grown, its fullest state counts. Facts count steps as messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from guard_core.errors import DamagedRecording
from guard_core.events import Event, MediaPart, Part, ReasoningPart, Role, ToolCallPart, ToolResultPart
from guard_core.plural import counted
from guard_core.recordings.base import Recording
from guard_core.recordings.reading import chat, fields, wrong_kinds
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.known_names import Names, words
from guard_core.recordings.reading.lost_lines import skipped_words
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.recordings.reading.states import SessionState, content_key, superseded
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction, Session
from guard_core.views import Inserted, Span, View

# Harbor's own agent keeps its first message, the task, when it hands over: `terminus_2.py`, `_summarize`. Its older
# versions mark that in words only.
KEEPS_FIRST = "terminus"
IN_WORDS = "Performed context summarization and handoff to continue task."
# What the cache wrote, in `metrics.extra`, as Harbor takes it over from Claude Code, Codex and Kimi CLI: a part of the
# prompt tokens.
CACHE_WRITES = ("cache_creation_input_tokens", "cache_write_input_tokens", "input_cache_creation")
# Of these agents Harbor's prompt tokens are the fresh and the read ones only, and what the cache wrote is beside them,
# under this name: `src/harbor/agents/installed/` (`opencode.py`, `mimo.py`, `openclaw.py`, `rovodev_cli.py`), 0.22. Of
# other agents the name does not say which it is; of Cline it is a part.
WRITES_BESIDE, OTHER_WRITES = frozenset({"opencode", "mimo", "openclaw", "rovodev-cli"}), "cache_write_tokens"
WRITES_WITHIN = frozenset({"cline-cli"})
SUBAGENT_DEPTH = 4  # trajectories inside trajectories; the format allows any


_KNOWN_NAMES = Names(
    usage=words("metrics final_metrics"),
    counts=words(
        "prompt_tokens completion_tokens cached_tokens total_prompt_tokens total_completion_tokens total_cached_tokens"
    ),
    beside=words("tokens_before tokens_after"),
    tools=words("tool_calls tool_definitions function tools"),
    passed_over=words("extra"),
)


class AtifFormat:
    name = "atif"
    label = "ATIF"
    place = "trajectory.json"
    known_names = _KNOWN_NAMES

    def matches(self, source: ByteSource) -> bool:
        if source.shape is SourceShape.LINES:
            many = [line for line in source.head_lines() if _is_trajectory(line.obj)]
            return len(many) > 1  # one with rubbish behind it is a damaged value
        value = source.json_head() if source.shape is SourceShape.JSON else None
        return any(map(_is_trajectory, value[:10] if isinstance(value, list) else [value]))

    def read(self, source: ByteSource) -> Recording:
        facts = FactCounter(self.name)
        sessions: list[Session] = []
        earlier = superseded(_states(source))
        for place, value in _objects(source):
            if not _is_trajectory(value):
                source.notes.skip("object that is not a trajectory")
            elif place in earlier:
                source.notes.folded += 1
            else:
                sessions += _sessions(source, value, facts, 0)
        if not any(session.events or session.system is not None for session in sessions):
            raise DamagedRecording("this ATIF trajectory has no steps")
        return Recording(self.name, tuple(sessions), facts.facts(), source.notes)


FORMAT = AtifFormat()


def _is_trajectory(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("steps"), list):
        return False
    declared = fields.text(value, "schema_version").upper().startswith("ATIF")
    first = next(fields.objects(value["steps"]), {})
    return declared or ("step_id" in first and "source" in first)


def _objects(source: ByteSource) -> Iterator[tuple[int, Any]]:
    """What the file holds, each with its place in it."""
    if source.shape is SourceShape.LINES:
        return ((line.number, line.obj) for line in source.lines())
    return enumerate(source.elements())


def _states(source: ByteSource) -> Iterator[SessionState]:
    """Each trajectory as a state of its session: one that a later state repeats is not read."""
    for place, value in _objects(source):
        if _is_trajectory(value):
            name = fields.text(value, "trajectory_id") or fields.text(value, "session_id")
            yield SessionState(place, name, tuple(map(content_key, value["steps"])))


def _sessions(source: ByteSource, value: JSON, facts: FactCounter, depth: int) -> list[Session]:
    facts.session()
    reader = _Trajectory(source, value, facts)
    sessions = [reader.session()]
    if depth < SUBAGENT_DEPTH:
        for child in fields.objects(value.get("subagent_trajectories")):
            sessions.extend(_sessions(source, child, facts, depth + 1))
    return sessions


class _Trajectory:
    def __init__(self, source: ByteSource, value: JSON, facts: FactCounter) -> None:
        self._source = source
        self._value = value
        self._facts = facts
        self._builder = SessionBuilder("atif", source)
        self._system: tuple[Part, ...] | None = None
        self._copied = 0
        self._folded = 0
        self._prompts = 0  # prompt tokens of the calls in this file, in all
        self._evidence = Evidence.DECLARED
        self._writer = fields.text(fields.mapping(value, "agent"), "name")
        self._cut: JSON | None = None  # the step of a compaction whose summary is still to come

    def session(self) -> Session:
        agent = fields.mapping(self._value, "agent")
        for step in wrong_kinds.objects(self._source, self._value.get("steps"), "step"):
            self._facts.message()
            wrong_kinds.check_words(self._source, step, "message", "a step")
            if not self._compaction(step):
                self._step(step)
        self._compact(None)
        numbers = (fields.tokens(step, "step_id") for step in fields.objects(self._value.get("steps")))
        self._builder.notes += skipped_words([number for number in numbers if number is not None])
        self._add_notes()
        return self._builder.session(
            system=self._system,
            tools=chat.tool_definitions(agent.get("tool_definitions")),
            agent=fields.text(agent, "name"),
            model=fields.text(agent, "model_name"),
            source_id=fields.text(self._value, "session_id") or fields.text(self._value, "trajectory_id"),
            title=fields.text(self._value, "session_id"),
        )

    def _compaction(self, step: JSON) -> bool:
        """Is this step the mark of a compaction, or what takes the place of the history?"""
        extra, source = fields.mapping(step, "extra"), fields.text(step, "source")
        marked = fields.text(fields.mapping(extra, "context_management"), "type") == "compaction"
        marked = marked or "muse_compaction" in extra
        if source == "system" and (marked or step.get("message") == IN_WORDS):
            self._compact(None)
            self._evidence = Evidence.DECLARED if marked else Evidence.MATCHED
            self._cut = step
            for item in fields.objects(fields.mapping(step, "observation").get("results")):
                self._facts.tool_result("", len(fields.plain_text(item.get("content"))))
            return True
        if source == "agent" and fields.text(extra, "pi_event_type") == "compaction":
            self._compact(None)
            self._evidence = Evidence.DECLARED
            self._cut = step
            self._compact(step, _call_of(step, self._count(step), self._writer))
            return True
        waiting, has_summary = self._cut is not None, source == "user"
        self._compact(step if has_summary else None)
        return waiting and has_summary

    def _compact(self, summary: JSON | None, summariser: JSON | None = None) -> None:
        """The compaction that was marked, now that it is known what follows it."""
        if self._cut is None:
            return
        cut, self._cut = self._cut, None
        if self._evidence is Evidence.DECLARED:
            self._facts.compaction()
        at, time = len(self._builder.events), fields.timestamp(cut, "timestamp")
        first: View = ()
        ours = fields.text(fields.mapping(self._value, "agent"), "name").startswith(KEEPS_FIRST)
        if ours and at and self._system is None:
            first = (Span(0, 1),)
        message = Event(Role.USER, _parts((summary or {}).get("message")), timestamp=time, meta=True)
        self._builder.compaction(
            RecordedCompaction(
                at=at,
                evidence=self._evidence,
                kind="summary" if summary else "opaque",
                base=(*first, Inserted(0)) if summary else first,
                messages=(message,) if summary else (),
                tokens_before=fields.tokens(fields.mapping(cut, "extra"), "tokens_before"),
                summariser=ModelCall(at=at, **summariser) if summariser else None,
                timestamp=time,
                note="Only the summary is in this file, not what was kept beside it.",
            )
        )

    def _step(self, step: JSON) -> None:
        parts = _parts(step.get("message"))
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
        calls = [
            ToolCallPart(
                fields.text(item, "function_name"),
                fields.arguments(item.get("arguments")),
                fields.text(item, "tool_call_id"),
            )
            for item in fields.objects(step.get("tool_calls"))
        ]
        for part in calls:
            self._facts.tool_call(part.id)
        head: tuple[Part, ...] = (ReasoningPart(reasoning),) if reasoning else ()
        copied = step.get("is_copied_context") is True
        self._copied += copied
        if copied or fields.tokens(step, "llm_call_count") == 0:
            self._builder.event(Role.MODEL, (*head, *parts, *calls), timestamp=time)
        else:
            call = _call_of(step, self._count(step), self._writer)
            self._builder.answer((*head, *parts, *calls), call=call, timestamp=time)
        self._results(step, calls, time)

    def _count(self, step: JSON) -> int | None:
        """The prompt tokens of a step, if they are those of one call."""
        metrics = fields.mapping(step, "metrics")
        prompt = fields.tokens(metrics, "prompt_tokens")
        if prompt is None or step.get("is_copied_context") is True:
            return None
        self._prompts += prompt
        if self._writer in WRITES_BESIDE:
            prompt += fields.tokens(fields.mapping(metrics, "extra"), OTHER_WRITES) or 0
        self._facts.call(prompt)
        if (fields.tokens(step, "llm_call_count") or 1) > 1:
            self._folded += 1
            return None
        return prompt

    def _results(self, step: JSON, calls: list[ToolCallPart], time: float | None) -> None:
        parts: list[Part] = []
        for index, item in enumerate(fields.objects(fields.mapping(step, "observation").get("results"))):
            call_id = fields.text(item, "source_call_id")
            if not call_id and index < len(calls):
                call_id = calls[index].id
            content = item.get("content")
            result: Any = fields.plain_text(content) or item.get("subagent_trajectory_ref") or ""
            self._facts.tool_result(call_id, len(result) if isinstance(result, str) else 0)
            parts.append(ToolResultPart(content=result, call_id=call_id))
            parts.extend(part for part in _parts(content) if isinstance(part, MediaPart))
        if parts:
            self._builder.event(Role.USER, parts, timestamp=time)

    def _add_notes(self) -> None:
        if self._copied:
            self._builder.notes.append(
                f"{counted(self._copied, 'answer')} copied from another file as context: the calls are counted there."
            )
        if self._folded:
            self._builder.notes.append(
                f"Steps of several calls each: {self._folded}. Their tokens are added up, and belong to no single call."
            )
        total = fields.tokens(fields.mapping(self._value, "final_metrics"), "total_prompt_tokens") or 0
        if self._prompts and total > self._prompts:
            self._builder.notes.append(
                f"{total - self._prompts} of {total} prompt tokens were sent in calls that are not listed here."
            )
        following = fields.text(self._value, "continued_trajectory_ref")
        if following:
            self._builder.notes.append(
                f"The agent summarised its history and continues in another file: {following[:200]}"
            )


def _call_of(step: JSON, prompt: int | None, writer: str) -> JSON:
    """The call of a step, as fields of ModelCall. `writer`: the agent whose session Harbor took over."""
    writes = (*CACHE_WRITES, OTHER_WRITES) if writer in WRITES_BESIDE | WRITES_WITHIN else CACHE_WRITES
    metrics = fields.mapping(step, "metrics") if prompt is not None else {}
    extra = fields.mapping(metrics, "extra")
    return {
        "prompt_tokens": prompt,
        "cached_tokens": fields.tokens(metrics, "cached_tokens"),
        "cache_write_tokens": fields.first_tokens(extra, *writes),
        "cache_hour_tokens": fields.tokens(fields.mapping(extra, "cache_creation"), fields.HOUR_TOKENS),
        "output_tokens": fields.tokens(metrics, "completion_tokens"),
        "model": fields.text(step, "model_name"),
        "timestamp": fields.timestamp(step, "timestamp"),
    }


def _parts(content: Any) -> tuple[Part, ...]:
    """Text, and pictures and sound by the path or address at which they lie."""
    if not isinstance(content, list):
        return fields.content_parts(content)
    parts: list[Part] = []
    for item in content:
        place = fields.mapping(item, "source")
        if path := fields.text(place, "path"):
            parts.append(MediaPart(mime=fields.text(place, "media_type"), uri=path[:2000]))
        else:
            parts += fields.content_parts([item])
    return tuple(parts)
