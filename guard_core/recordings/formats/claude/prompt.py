"""The system prompt and the tools of a Claude Code session, in the versions that write them down (2.1.329 does).

`api-request-shape` lines hold both as they were sent, `prompt_snapshot` attachments the system prompt alone. A shape is
written again where it changed; a session has one, so the first is kept and the note says that others followed. An
`api-request` has the parameters of a request; the messages it names are those of the transcript.
"""

from __future__ import annotations

from typing import Any

from guard_core.events import Part, TextPart
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.notes import ImportNotes
from guard_core.sessions import ANSWER_LIMIT, AgentSetting, ToolDefinition


class PromptPrefix:
    """What precedes the messages of every request; None where the file does not say."""

    def __init__(self, notes: ImportNotes) -> None:
        self.system: tuple[Part, ...] | None = None
        self.tools: tuple[ToolDefinition, ...] | None = None
        self.settings: tuple[AgentSetting, ...] = ()
        self._notes = notes

    def shape(self, line: dict[str, Any]) -> None:
        """An `api-request-shape` line."""
        shape = fields.mapping(line, "shape")
        if shape.keys().isdisjoint(("system", "tools")):  # a recording from which the texts were taken out
            return
        system = fields.content_parts(shape.get("system"))
        # Deferred tools are looked up by name when they are wanted: their definitions are not in the prompt.
        offered = [tool for tool in fields.objects(shape.get("tools")) if tool.get("defer_loading") is not True]
        tools = tuple(
            ToolDefinition(fields.text(tool, "name"), fields.text(tool, "description"), tool.get("input_schema"))
            for tool in offered
        )
        if self.tools is None:
            self.system, self.tools = system, tools
        elif (system, tools) != (self.system, self.tools):
            self._notes.skip("later system prompt or tools")

    def request(self, line: dict[str, Any]) -> None:
        """An `api-request` line: what an answer may have, of the first request that says it."""
        limit = fields.tokens(fields.mapping(line, "params"), "max_tokens")
        if limit and not self.settings:
            self.settings = (AgentSetting(ANSWER_LIMIT, limit, "max_tokens of its requests"),)

    def snapshot(self, attachment: dict[str, Any]) -> None:
        """A `prompt_snapshot` attachment."""
        if attachment.get("masked") is True:  # by whoever took the texts out; its words are not those that were sent
            return
        texts = [text for text in fields.items(attachment, "systemPrompt") if isinstance(text, str) and text]
        if self.system is None and texts:
            self.system = tuple(TextPart(text) for text in texts)
