"""`attachment` lines of Claude Code: what its software put before the model besides the user's words.

Newer versions keep the text as it was sent (`rendered`, with its role). Older ones keep only what it was made from:
then the words around a file or a reminder are not in the recording, the content itself is; those around a hook's output
are the same in 2.0.76, 2.1.100 and 2.1.332 (run). Learned from the requests that versions 2.1.150 to 2.1.329 sent for
the lines they wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from guard_core.events import Part, Role, TextPart, value_text
from guard_core.recordings.formats.claude.lines import parts_of
from guard_core.recordings.reading import fields

# Where each kind without `rendered` holds what the model read: dotted paths, lists on the way are walked through.
_TEXTS: dict[str, tuple[str, ...]] = {
    "agent_listing_delta": ("addedLines",),
    "agent_mention": ("agentType",),
    "async_hook_response": ("response.systemMessage", "response.hookSpecificOutput.additionalContext"),
    "compact_file_reference": ("filename",),
    "critical_system_reminder": ("content",),
    "date_change": ("newDate",),
    "deferred_tools_delta": ("addedLines",),
    "diagnostics": ("files",),
    "directory": ("content",),
    "edited_text_file": ("filename", "snippet"),
    "hook_additional_context": ("content",),
    "hook_blocking_error": ("blockingError.blockingError",),
    "hook_stopped_continuation": ("message",),
    "hook_success": ("content",),
    "invoked_skills": ("skills.content",),
    "mcp_instructions_delta": ("addedBlocks",),
    "mcp_resource": ("content.contents.text",),
    "nested_memory": ("content.content",),
    "opened_file_in_ide": ("filename",),
    "pdf_reference": ("filename",),
    "plan_file_reference": ("planContent",),
    "relevant_memories": ("memories.content",),
    "selected_lines_in_ide": ("content",),
    "skill_listing": ("content",),
    "task_progress": ("message",),
    "task_reminder": ("content",),
    "task_status": ("description", "deltaSummary"),
    "todo": ("content",),
    "todo_reminder": ("content",),
    "total_tokens_reminder": ("text",),
    "ultramemory": ("content",),
}
# A hook's output reaches the model after these events only; after others Claude Code shows it to the user alone.
_HOOK_EVENTS = frozenset({"SessionStart", "UserPromptSubmit"})
# What is said of a hook's output between its name and a colon.
_OF_HOOKS = {
    "hook_success": "hook success",
    "hook_additional_context": "hook additional context",
    "hook_stopped_continuation": "hook stopped continuation",
    "hook_blocking_error": 'hook blocking error from command: "{command}"',
}
SELECTION_CHARS = 2_000  # of lines selected in an editor, more are cut off before they are sent


def role_of(line: dict[str, Any]) -> Role:
    """As whom the text was sent."""
    return Role.SYSTEM if fields.text(line, "renderedRole") == "system" else Role.USER


def is_users(line: dict[str, Any]) -> bool:
    """Are these the user's own words, typed while the model worked?"""
    attachment = fields.mapping(line, "attachment")
    mode = fields.text(attachment, "commandMode") or "prompt"
    return fields.text(attachment, "type") == "queued_command" and mode == "prompt" and not attachment.get("isMeta")


def parts_sent(line: dict[str, Any]) -> tuple[Part, ...]:
    """What the model saw of an attachment line; nothing where it saw nothing or the words are not in the file."""
    if isinstance(line.get("rendered"), list):
        return tuple(part for item in fields.objects(line["rendered"]) for part in parts_of(item.get("content")))
    attachment = fields.mapping(line, "attachment")
    kind = fields.text(attachment, "type")
    if kind == "queued_command":
        return parts_of(attachment.get("prompt"))
    if kind == "file":
        return _file(fields.mapping(attachment, "content"))
    if kind == "hook_success" and fields.text(attachment, "hookEvent") not in _HOOK_EVENTS:
        return ()
    texts = [text for path in _TEXTS.get(kind, ()) for text in _texts(attachment, path.split("."))]
    words = "\n".join(texts)
    hook = fields.text(attachment, "hookName") if kind in _OF_HOOKS else ""
    if hook:
        command = fields.text(fields.mapping(attachment, "blockingError"), "command")
        hook = f"{hook} {_OF_HOOKS[kind].replace('{command}', command)}: "
    if words and (kind == "total_tokens_reminder" or hook):
        return (TextPart(f"<system-reminder>\n{hook}{words}\n</system-reminder>"),)
    return (TextPart(words[:SELECTION_CHARS] if kind == "selected_lines_in_ide" else words),) if words else ()


def _file(content: dict[str, Any]) -> tuple[Part, ...]:
    """A file that the user named with @, or that was read again after a compaction."""
    file = fields.mapping(content, "file")
    if fields.text(file, "base64"):
        mime = "application/pdf" if fields.text(content, "type") == "pdf" else fields.text(file, "type")
        return (fields.media(mime, fields.text(file, "base64")),)
    words = fields.text(file, "content") or value_text(file.get("cells"))
    return (TextPart(words),) if words else ()


def _texts(value: Any, path: list[str]) -> Iterator[str]:
    """The texts at the end of a path; a value of another kind there is taken as its JSON."""
    if isinstance(value, list):
        for item in value:
            yield from _texts(item, path)
    elif path:
        if isinstance(value, dict):
            yield from _texts(value.get(path[0]), path[1:])
    elif words := value_text(value):
        yield words
