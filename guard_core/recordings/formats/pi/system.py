"""The system prompt and the tools of a pi session, replayed from its system messages (0.87): the state at the end.

The first message brings all; later ones add words, replace or remove (`null`) named sections, add or remove tools, or
begin anew (`replace`). pi joins the sections by blank lines.
Source: https://github.com/badlogic/pi-mono, packages/coding-agent/docs/message-types.md.
"""

from __future__ import annotations

from guard_core.events import Part, TextPart
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON
from guard_core.sessions import ToolDefinition


class SystemPrompt:
    """What the system messages so far say together."""

    def __init__(self) -> None:
        self.changes = -1  # after the first message
        self._words: list[str] = []
        self._sections: dict[str, str] = {}
        self._tools: dict[str, ToolDefinition] = {}

    def take(self, message: JSON) -> None:
        """The next system message."""
        self.changes += 1
        if message.get("replace") is True:
            self._words, self._sections, self._tools = [], {}, {}
        if words := fields.plain_text(message.get("content")):
            self._words.append(words)
        for name, section in fields.mapping(message, "sections").items():
            if isinstance(section, str):
                self._sections[name] = section
            else:
                self._sections.pop(name, None)
        for tool in fields.objects(message.get("toolsRemoved")):
            self._tools.pop(fields.text(tool, "name"), None)
        for tool in fields.objects(message.get("toolsAdded")):
            name, about = fields.text(tool, "name"), fields.text(tool, "description")
            self._tools[name] = ToolDefinition(name, about, tool.get("parameters"))

    @property
    def parts(self) -> tuple[Part, ...] | None:
        """The prompt; None where none is in the file."""
        text = "\n\n".join((*self._words, *self._sections.values()))
        return (TextPart(text),) if text else None

    @property
    def tools(self) -> tuple[ToolDefinition, ...] | None:
        """The tools; None where none are in the file."""
        return tuple(self._tools.values()) or None
