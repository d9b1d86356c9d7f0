"""smolagents: the steps of an agent's memory (`agent.memory.get_full_steps()`, `get_succinct_steps()`), and the result
of a run (`run(..., return_full_result=True).dict()`), which holds them.

A step of an action is one call of the model with its answer, `token_usage` the provider's counts of it. What its tools
gave back is one text for all calls of the step, `observations`, and belongs to the first. The calls are sent again as
text, so a code agent's program is in later requests twice, here as there. A call that failed is in no later request,
only its error is. A step of planning has a request of its own; its plan goes into the context with a request to carry
it out. Full steps have the request of each call, and so the system prompt; where a request has another number of
messages than the steps before it give, the application changed the memory. The wrappers that the library puts around
texts ("New task:", "Observation:") are left out.
Source: runs of smolagents 1.26.0, whose `memory.py` writes the steps.
"""

from __future__ import annotations

from typing import Any

from guard_core.events import Part, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.plural import counted
from guard_core.recordings.base import Recording
from guard_core.recordings.reading import fields, wrong_kinds
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.known_names import Names, words
from guard_core.recordings.reading.refusals import names_length
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.sessions import ModelCall, Session

NAME = "smolagents"
_ACTION = frozenset({"step_number", "timing", "observations", "action_output"})  # keys of every step of an action
_CARRY_OUT = "Now proceed and carry out this plan."  # what the library puts behind a plan (memory.py)
_COUNTS = ("input_tokens", "output_tokens")


class SmolagentsFormat:
    name = NAME
    label = "smolagents"
    place = "agent.memory.get_full_steps()"
    known_names = Names(
        usage=words("token_usage"),
        counts=words("input_tokens output_tokens total_tokens"),
        tools=words("tool_calls function steps"),
        passed_over=words("model_input_messages model_output_message action_output output raw arguments"),
    )

    def matches(self, source: ByteSource) -> bool:
        heads = _listed(source.json_head())[:20] if source.shape is SourceShape.JSON else []
        return any(isinstance(head, dict) and head.keys() >= _ACTION for head in heads)

    def read(self, source: ByteSource) -> Recording:
        reader = _StepReader(source)
        for step in wrong_kinds.objects(source, source.elements(_listed), "step"):
            with source.tolerate():
                reader.step(step)
        return Recording(NAME, (reader.session(),), reader.facts.facts(), source.notes)


FORMAT = SmolagentsFormat()


def _listed(value: Any) -> list[Any]:
    """The steps, alone or in the result of a run."""
    listed = value.get("steps") if isinstance(value, dict) else value
    return listed if isinstance(listed, list) else []


class _StepReader:
    def __init__(self, source: ByteSource) -> None:
        self.facts = FactCounter(NAME)
        self._source = source
        self._log = SessionBuilder(NAME, source)
        self._system: tuple[Part, ...] | None = None
        self._sent = 1  # messages that the next request has, as the steps so far give them: the system prompt first
        self._changed = 0  # requests that have another number
        self.facts.session()

    def step(self, step: JSON) -> None:
        if "step_number" in step:
            self._action(step)
        elif "plan" in step:
            self._plan(step)
        elif "task" in step:
            wrong_kinds.check_words(self._source, step, "task", "a step")
            if task := fields.text(step, "task"):
                self._add(Role.USER, [TextPart(task)])
        elif "system_prompt" in step:
            self._system = (TextPart(fields.text(step, "system_prompt")),)
        else:
            self._source.notes.skip(f"step with the keys {', '.join(map(ascii, [*step][:4]))}")

    def _action(self, step: JSON) -> None:
        self._request(step)
        usage = fields.mapping(step, "token_usage")
        wrong_kinds.check_counts(self._source, usage, _COUNTS, "a step")
        prompt = fields.tokens(usage, "input_tokens") or None
        timing = fields.mapping(step, "timing")
        raw = fields.mapping(fields.mapping(step, "model_output_message"), "raw")  # the provider's answer, if kept
        call: JSON = {
            "prompt_tokens": prompt,
            "output_tokens": fields.tokens(usage, "output_tokens"),
            "timestamp": fields.timestamp(timing, "start_time"),
            "model": fields.text(raw, "model"),
        }
        if prompt:
            self.facts.call(prompt)
        calls: list[ToolCallPart] = []
        for item in fields.objects(step.get("tool_calls")):
            function = fields.mapping(item, "function")
            arguments = fields.arguments(function.get("arguments"))
            calls.append(ToolCallPart(fields.text(function, "name"), arguments, fields.text(item, "id")))
        said: list[Part] = [*fields.content_parts(step.get("model_output")), *calls]
        self._sent += (step.get("model_output") is not None) + bool(calls)
        if said:
            self.facts.message()
            self.facts.parts(said)
            self._log.answer(said, call=call, timestamp=fields.timestamp(timing, "end_time"))
        else:
            self._log.calls.append(ModelCall(len(self._log.events), **call))
        self._results(step, calls[0] if calls else None)

    def _results(self, step: JSON, call: ToolCallPart | None) -> None:
        """What the tools of a step gave back, and the error with which it ended."""
        observed, error = step.get("observations"), fields.mapping(step, "error")
        self._sent += bool(step.get("observations_images"))
        if observed is not None:
            self._add(Role.USER, [ToolResultPart(call.name, observed, call.id) if call else TextPart(str(observed))])
        if not error:
            return
        message = fields.text(error, "message")
        if not call and names_length(message):
            self._log.refuse(message)
        if call and observed is None:
            self._add(Role.USER, [ToolResultPart(call.name, message, call.id, True)])
        else:
            self._add(Role.USER, [TextPart(message)], meta=True)

    def _plan(self, step: JSON) -> None:
        """A plan is asked for beside the conversation, of which it becomes a part."""
        usage = fields.mapping(step, "token_usage")
        if prompt := fields.tokens(usage, "input_tokens"):
            self.facts.call(prompt)
            output = fields.tokens(usage, "output_tokens")
            when = fields.timestamp(fields.mapping(step, "timing"), "start_time")
            at = len(self._log.events)
            self._log.side_calls.append(ModelCall(at, None, prompt, output_tokens=output, timestamp=when))
        self._add(Role.MODEL, [TextPart(fields.text(step, "plan"))])
        self._add(Role.USER, [TextPart(_CARRY_OUT)], meta=True)

    def _add(self, role: Role, parts: list[Part], *, meta: bool = False) -> None:
        self._sent += 1
        self.facts.message()
        self.facts.parts(parts)
        self._log.event(role, parts, meta=meta)

    def _request(self, step: JSON) -> None:
        """What a full step says it sent: the system prompt, and whether the rest is what the steps before give."""
        messages = list(fields.objects(step.get("model_input_messages")))
        if not messages:
            return
        self._changed += len(messages) != self._sent
        if self._system is None and fields.text(messages[0], "role") == "system":
            self._system = fields.content_parts(messages[0].get("content"))

    def session(self) -> Session:
        if not self._log.events:
            raise self._source.nothing_left("no step can be read")
        notes = ["The schemas of the tools are not in the file."]
        if self._system is None:
            notes.append("The system prompt is not in the file: full steps have it.")
        if self._changed:
            notes.append(
                f"{counted(self._changed, 'request')} with another number of messages than the steps before give: the "
                "application changed the memory of the agent. The log has the steps as they are."
            )
        return self._log.session(system=self._system, agent="smolagents", notes=notes)
