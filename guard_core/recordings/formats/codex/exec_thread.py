"""One thread of `codex exec --json` as a session: answers that grow, results, and what is reported of tokens."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from guard_core.errors import LimitExceeded
from guard_core.events import Part, Role, TextPart, ToolCallPart, part_text
from guard_core.recordings.formats.codex import exec_items
from guard_core.recordings.reading import fields, wrong_kinds
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import UNRECORDED_COMPACTIONS, Evidence, ModelCall, RecordedCompaction, Session

NAME, LABEL = "codex", "Codex CLI"
COMPACTED = "Compact task completed"  # what 0.36 and 0.45 say after a compaction
COMPACTING = "auto-compact-"  # how the id of an automatic compaction's envelopes begins


class ExecThread:
    """One session, line by line."""

    def __init__(self, source: ByteSource, facts: FactCounter) -> None:
        self.source = source
        self.notes = source.notes
        self.facts = facts
        self.log = SessionBuilder(NAME, source)
        self.id = self.model = self.failure = ""
        self.run = 0  # the ids of items begin anew with each
        self.prompted = False
        self.itemised = False
        self.counted: list[int] = []  # input tokens that the ends of turns report
        self.answer: int | None = None  # the event of the answer that may still grow
        self.parts: list[Part] = []  # of that answer
        self.came_back = False  # has a result of that answer come?
        self.open: set[str] = set()  # calls whose result has not come
        self.plans: dict[str, Any] = {}
        self.total: Any = None

    # -- turns and items

    def turn(self, kind: str, obj: JSON) -> None:
        if kind == "turn.started":
            self._close()
            self.run += 1
        elif kind == "turn.completed":
            self.counted.append(fields.tokens(fields.mapping(obj, "usage"), "input_tokens") or 0)
        elif kind in {"turn.failed", "error"}:
            self.failure = fields.text(fields.mapping(obj, "error"), "message") or fields.text(obj, "message")
        elif kind != "thread.started":
            self.notes.skip(kind or "line without a type")

    def item(self, phase: str, item: JSON, line: int) -> None:
        self.itemised = True
        wrong_kinds.check_words(self.source, item, "text", "an item", line)
        kind, call_id = fields.text(item, "type"), f"{fields.text(item, 'id')}.{self.run}"
        done = phase == "item.completed"
        if exec_items.is_call(kind):
            if call_id not in self.open:
                self._call(exec_items.item_call(kind, item, call_id), line)
            if done:
                self._result(exec_items.item_result(item, call_id), line)
        elif kind == "todo_list":
            self._plan(kind, item, call_id, line)
        elif done and kind == "agent_message" and item.get("text") == COMPACTED:
            self._compacted(Evidence.MATCHED, line)
        elif done and (part := exec_items.spoken(kind, item)):
            self._say(part, line)
        elif done:
            self.notes.skip(f"item {kind}"[:60])

    # -- messages in envelopes

    def prompt(self, text: Any, line: int) -> None:
        self._close()
        self.prompted = True
        if not isinstance(text, str):
            self.source.leave_out(f"the prompt is {wrong_kinds.kind_of(text)} and no text, left out", line)
            return
        self.facts.message()
        self.log.event(Role.USER, (TextPart(text),), line=line)

    def message(self, said: JSON, envelope: str, line: int) -> None:
        kind = fields.text(said, "type")
        for key in ("text", "message"):
            wrong_kinds.check_words(self.source, said, key, "a message", line)
        compacting = envelope.startswith(COMPACTING)
        if kind != "token_count":
            self.log.states_window(len(self.log.events), fields.window(said, "model_context_window"))
        if kind == "token_count":
            self._token_count(said, line, compacting=compacting)
        elif kind == "agent_message" and fields.text(said, "message") == COMPACTED:
            self._compacted(Evidence.DECLARED if compacting else Evidence.MATCHED, line)
        elif exec_items.begun(kind):
            self._call(exec_items.message_call(kind, said), line)
        elif exec_items.ended(kind):
            if fields.text(said, "call_id") not in self.open:
                self._call(exec_items.message_call(kind, said), line)
            self._result(exec_items.message_result(said), line)
        elif kind == "plan_update":
            self._plan(kind, said, "", line)
        elif part := exec_items.spoken(kind, said):
            self._say(part, line, counted=True)
        else:
            self._about(kind, said)

    def _about(self, kind: str, said: JSON) -> None:
        if kind == "session_configured":
            self.id = fields.text(said, "session_id") or self.id
            self.model = fields.text(said, "model") or self.model
        elif kind == "error":
            self.failure = fields.text(said, "message")
        else:
            self.notes.skip(f"message {kind}"[:60])

    def _token_count(self, said: JSON, line: int, *, compacting: bool) -> None:
        """The tokens of the answer before it: alone, or (from 0.30) beside their running total."""
        info = fields.mapping(said, "info")
        usage = fields.mapping(info, "last_token_usage") if "info" in said else said
        total = info.get("total_token_usage")
        answered = len(self.log.events) if self.answer is None else self.answer
        for value in (said, info):
            self.log.states_window(answered, fields.window(value, "model_context_window"))
        prompt = fields.tokens(usage, "input_tokens")
        if not prompt:
            self.notes.skip("token_count without numbers")
            return
        if total is not None and total == self.total:
            self.notes.folded += 1
            return
        self.total = total
        counts: dict[str, Any] = {
            "prompt_tokens": prompt,
            "cached_tokens": fields.tokens(usage, "cached_input_tokens"),
            "output_tokens": fields.tokens(usage, "output_tokens"),
            "line": line,
        }
        if compacting:
            self.log.side_calls.append(ModelCall(at=len(self.log.events), model=self.model, **counts))
            return
        self.facts.call(prompt)
        if self.answer is None:
            self.log.calls.append(ModelCall(at=len(self.log.events), model=self.model, **counts))
            return
        self.log.calls[-1] = replace(self.log.calls[-1], **counts)
        self._close()

    # -- the log

    def _say(self, part: Part, line: int, *, counted: bool = False) -> None:
        """`counted`: a count of tokens ends the answer, not a result."""
        if self.came_back and not counted:
            self._close()
        self._add(part, line)

    def _call(self, call: ToolCallPart, line: int) -> None:
        if self.itemised and self.came_back and not self.open:
            self._close()
        self.facts.tool_call(call.id)
        self.open.add(call.id)
        self._add(call, line)

    def _plan(self, kind: str, said: JSON, call_id: str, line: int) -> None:
        """A plan is written again while and after it holds: only a new one is a call."""
        call = exec_items.plan(kind, said, call_id)
        if call is None or (call_id and self.plans.get(call_id) == call.arguments):
            return
        self.plans[call_id] = call.arguments
        call = replace(call, id=f"plan {line}")
        if self.itemised and self.came_back and not self.open:
            self._close()
        self.facts.tool_call(call.id)
        self._add(call, line)
        self.came_back = True

    def _add(self, part: Part, line: int) -> None:
        if self.answer is None:
            self.facts.message()
            self.answer = self.log.answer((), call={"line": line, "model": self.model}, line=line)
        if len(self.parts) >= self.log.limits.parts:
            raise LimitExceeded(f"an answer with more than {self.log.limits.parts} parts", line=line)
        self.parts.append(part)

    def _result(self, parts: tuple[Part, ...], line: int) -> None:
        call_id = getattr(parts[0], "call_id", "")
        self.open.discard(call_id)
        self.facts.tool_result(call_id, len(part_text(parts[0])))
        self.log.event(Role.USER, parts, line=line)
        self.came_back = True

    def _close(self) -> None:
        """The answer is complete."""
        if self.answer is not None:
            event = self.log.events[self.answer]
            self.log.events[self.answer] = replace(event, parts=tuple(self.parts))
        self.answer, self.parts, self.came_back = None, [], False

    def _compacted(self, evidence: Evidence, line: int) -> None:
        self._close()
        self.facts.compaction()
        note = "neither the summary nor what was kept is in the file"
        at = len(self.log.events)
        self.log.compaction(RecordedCompaction(at, evidence, "opaque", (), trigger="auto", line=line, note=note))

    def session(self) -> Session | None:
        """The session; None where nothing was said."""
        self._close()
        if not self.log.events:
            return None
        return self.log.session(
            source_id=self.id,
            agent=LABEL,
            model=self.model,
            window=self.log.window("model_context_window in the file, the usable part of it"),
            prompt_tokens_total=self._sum,
            notes=tuple(self._notes()),
        )

    @property
    def _sum(self) -> int | None:
        """Prompt tokens of all calls of the thread, where no call has its own."""
        if any(call.prompt_tokens for call in self.log.calls) or self.counted != sorted(self.counted):
            return None
        return self.counted[-1] or None if self.counted else None

    def _notes(self) -> list[str]:
        notes = ["The system prompt and the schemas of the tools are not in the file."]
        if not self.prompted:
            notes.append("The user's prompt is not in the file.")
        if self.itemised:
            notes.append(
                "The model's name is not in the file, nor where a request ends: what follows a result is taken as the"
                " next answer."
            )
            if not self.log.compactions:
                notes += (UNRECORDED_COMPACTIONS, "Newer versions (0.169) print nothing of it.")
        if self.counted:
            notes.append(
                "Tokens are reported at the end of a turn only, as a running sum over the thread's calls:"
                f" {self.counted[-1]} input tokens, cached ones included, at the last."
            )
        if self.failure:
            notes.append(f"The run ended with an error: {self.failure[:200]}")
        return notes
