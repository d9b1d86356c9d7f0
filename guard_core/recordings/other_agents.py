"""Sessions of agents that no reader knows yet, recognised so that none is read as another agent's.

Their files resemble known ones: Factory Droid's lines are linked as pi's are, Amp's messages have Anthropic's blocks.
Read as those, they would lose their tokens, their tool calls or both silently. Each is known here by keys and kinds
that only it writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.recordings.reading.sqlite_source import Tables, tables

_LOOKED_AT = 200  # messages of a JSON value in which a kind of block that identifies the agent is looked for
_DROID_KINDS = frozenset({"session_start", "todo_state", "compaction_state"})
_IFLOW_SESSION = re.compile(r"session-[0-9a-f]{8}-[0-9a-f]{4}-")  # Claude Code's ids have no word in front
_KIRO_KINDS = frozenset({"Prompt", "AssistantMessage", "ToolResults"})
_DROID_BLOCKS = frozenset({"tool_use", "tool_result"})


def agent_of(source: ByteSource) -> str:
    """The agent whose session this is, where it is one without a reader; else "". Raises RecordingError where the
    content cannot be looked at."""
    if agent := _of_tables(tables(source)):
        return agent
    if source.shape is SourceShape.LINES:
        return _first(_LINES, [line.obj for line in source.head_lines()])
    if source.shape is not SourceShape.JSON:
        return ""
    value = source.json_head(allow_nan=True)
    values = value[:_LOOKED_AT] if isinstance(value, list) else [value]
    heads = list(fields.objects(values))
    whole = bool(heads) and len(heads) == len(values)
    if agent := next((name for name, is_its in _VALUES.items() if whole and all(map(is_its, heads))), ""):
        return agent
    messages = fields.items(value, "messages") if isinstance(value, dict) else value
    return _first(_LINES, messages[:_LOOKED_AT] if isinstance(messages, list) and messages else [value])


def _of_tables(columns: Tables) -> str:
    """The agent or the library whose database has these tables."""
    return next((name for name, known in _TABLES if all(set(own) <= set(columns.get(t, ())) for t, own in known)), "")


def _first(agents: dict[str, Callable[[JSON], bool]], records: list[Any]) -> str:
    names = (name for record in fields.objects(records) for name, is_its in agents.items() if is_its(record))
    return next(names, "")


def _is_droid_line(record: JSON) -> bool:
    """A kind of line that pi does not have, or an entry as pi's with Anthropic's blocks for tools."""
    kind = fields.text(record, "type")
    if kind in _DROID_KINDS:
        return "id" in record and "data" not in record
    blocks = fields.objects(fields.mapping(record, "message").get("content"))
    own = any(fields.text(block, "type") in _DROID_BLOCKS for block in blocks)
    return kind == "message" and own and "sessionId" not in record


def _is_printed_by_droid(record: JSON) -> bool:
    """A call of a tool, or its result, as `droid exec --output-format stream-json` prints them."""
    kind = fields.text(record, "type")
    return kind in {"tool_call", "tool_result"} and {"messageId", "toolId"} <= record.keys()


def _is_kiro_line(record: JSON) -> bool:
    """A message of the Kiro CLI (`~/.kiro/sessions/cli/*.jsonl`)."""
    is_message = fields.text(record, "kind") in _KIRO_KINDS and "message_id" in fields.mapping(record, "data")
    return is_message and "version" in record


def _is_grok_line(record: JSON) -> bool:
    """An answer in `chat_history.jsonl` of xAI's CLI, with the build of the model that gave it."""
    return fields.text(record, "type") == "assistant" and {"model_id", "model_fingerprint"} <= record.keys()


def _is_codebuddy_line(record: JSON) -> bool:
    """A result of a tool of CodeBuddy and WorkBuddy, else items of OpenAI's Responses, or what the provider said."""
    own = fields.text(record, "type") == "function_call_result" or "rawUsage" in fields.mapping(record, "providerData")
    return own and "sessionId" in record


def _is_muse_line(record: JSON) -> bool:
    """A record of a stream of Meta's coding agent, numbered within it."""
    return {"stream", "sequence", "record_type", "payload_type"} <= record.keys()


def _is_printed_by_qwen(record: JSON) -> bool:
    """The first line of what a run of Qwen Code prints, else as Claude Code's, but with prompts that hold the cache."""
    return "qwen_code_version" in record and fields.text(record, "type") == "system"


def _is_amp_line(record: JSON) -> bool:
    """A message numbered within its thread, a tool's result under Amp's own spelling, or the first line of what a run
    prints, else as Claude Code's: its sessions are threads."""
    kinds = (fields.text(record, "type"), fields.text(record, "subtype"))
    if kinds == ("system", "init") and fields.text(record, "session_id").startswith("T-"):
        return True
    blocks = fields.objects(record.get("content"))
    own = any("toolUseID" in block for block in blocks) or "totalInputTokens" in fields.mapping(record, "usage")
    return own and "role" in record


def _is_cursor_line(record: JSON) -> bool:
    """A line of `~/.cursor/projects/*/agent-transcripts`, which keeps neither results of tools nor tokens."""
    message = fields.mapping(record, "message")
    return record.keys() == {"role", "message"} and isinstance(record["role"], str) and message.keys() == {"content"}


def _is_printed_by_cursor(record: JSON) -> bool:
    """A line that `cursor-agent --output-format stream-json` prints: an answer or a tool of one call of a model, else
    as Claude Code's, or the start of a tool."""
    if {"model_call_id", "session_id", "timestamp_ms"} <= record.keys():
        return True
    return fields.text(record, "type") == "tool_call" and {"call_id", "tool_call", "session_id"} <= record.keys()


def _is_antigravity_step(record: JSON) -> bool:
    """A step of a conversation: of its transcript (`brain/*/.system_generated/logs`), or as the SDK gives it."""
    return record.keys() >= {"step_index", "source", "type", "status"}


def _is_iflow_line(record: JSON) -> bool:
    """A line of `~/.iflow/projects/*/session-*.jsonl`: as Claude Code's, but every answer hangs from the question, and
    a result is the response to a function of Gemini's."""
    return "parentUuid" in record and _IFLOW_SESSION.match(fields.text(record, "sessionId")) is not None


def _is_vs_code_change(record: JSON) -> bool:
    """The first line of a chat of VS Code (`workspaceStorage/*/chatSessions/*.jsonl`): the chat, then its changes."""
    return record.get("kind") == 0 and _is_vs_code_chat(fields.mapping(record, "v"))


def _is_vs_code_chat(value: JSON) -> bool:
    """A chat of VS Code, of that folder or exported."""
    return isinstance(value.get("requests"), list) and bool({"creationDate", "requesterUsername"} & value.keys())


def _is_kiro_conversation(value: JSON) -> bool:
    """A conversation of Amazon Q's CLI, now Kiro's, as `/save` writes it (crates/chat-cli/src/cli/chat/
    conversation.rs of aws/amazon-q-developer-cli)."""
    own = {"transcript", "valid_history_range", "next_message", "latest_summary"}
    return isinstance(value.get("history"), list) and "conversation_id" in value and bool(own & value.keys())


def _is_amp_thread(value: JSON) -> bool:
    """A thread of Amp's: its id begins with T-, and `v` is its version."""
    return fields.text(value, "id").startswith("T-") and isinstance(value.get("messages"), list) and "v" in value


def _lists_langfuse_traces(value: JSON) -> bool:
    """Traces without their observations, as the API lists them: the ids of these are there at most."""
    listed = value.get("data") if isinstance(value.get("data"), list) else [value]
    heads = list(fields.objects(listed))[:_LOOKED_AT]
    has_own_keys = all("htmlPath" in head and "sessionId" in head for head in heads)
    observed = any(True for head in heads for _ in fields.objects(head.get("observations")))
    return bool(heads) and has_own_keys and not observed


def _is_mistral_conversation(value: JSON) -> bool:
    """The entries or the messages of a conversation, as the API lists them."""
    return fields.text(value, "object") in {"conversation.history", "conversation.messages"}


def _is_assistants_thread(value: JSON) -> bool:
    """A page of the messages of a thread, or one of them: the calls of tools are in its runs."""
    listed = value["data"] if isinstance(value.get("data"), list) else [value]
    return any(fields.text(item, "object") == "thread.message" for item in fields.objects(listed[:_LOOKED_AT]))


def _is_open_webui_chat(value: JSON) -> bool:
    """A chat whose messages are a tree (Open WebUI, backend/open_webui/models/chats.py)."""
    history = fields.mapping(fields.mapping(value, "chat"), "history")
    return "currentId" in history and isinstance(history.get("messages"), dict)


def _is_continue_session(value: JSON) -> bool:
    """A session of the folder ~/.continue/sessions (Continue, core/util/history.ts; core/index.d.ts)."""
    items = list(fields.objects(value.get("history")))[:_LOOKED_AT]
    return bool(items) and all("message" in item and "contextItems" in item for item in items)


def _is_lm_studio_chat(value: JSON) -> bool:
    """A chat whose messages have versions, of which one is selected (~/.lmstudio/conversations)."""
    messages = list(fields.objects(value.get("messages")))[:_LOOKED_AT]
    return bool(messages) and all("versions" in item and "currentlySelected" in item for item in messages)


def _is_zed_thread(value: JSON) -> bool:
    """A thread of Zed's agent (crates/agent/src/db.rs)."""
    return isinstance(value.get("messages"), list) and {"request_token_usage", "cumulative_token_usage"} <= value.keys()


def _is_langgraph_state(value: JSON) -> bool:
    """A snapshot of a thread (`StateSnapshot` of langgraph 1.2)."""
    return {"values", "next", "parent_config", "tasks"} <= value.keys()


def _is_agent_framework_session(value: JSON) -> bool:
    """What `AgentSession.to_dict` of Microsoft's Agent Framework 1.23 gives."""
    return fields.text(value, "type") == "session" and "service_session_id" in value and "state" in value


def _is_strands_file(value: JSON) -> bool:
    """One message, or one agent, of a session that Strands' session manager keeps as files (types/session.py)."""
    return {"message", "message_id", "redact_message"} <= value.keys() or "conversation_manager_state" in value


def _of_requests(agent: str) -> str:
    return f"{agent} (a log of its chat requests can be imported)"


def _is_compacted_by_entire(record: JSON) -> bool:
    """A line of `transcript.jsonl` (Entire CLI, cmd/entire/cli/transcript/compact: a version, agent and Entire's own
    version on each line; messages without what was cached of a prompt)."""
    return {"v", "agent", "cli_version", "type", "content"} <= record.keys()


_LINES: dict[str, Callable[[JSON], bool]] = {
    "Entire (its shortened copy of a transcript; the agent's own, full.jsonl beside it, can be imported)": (
        _is_compacted_by_entire
    ),
    "Qwen Code (what a run printed; the chat that it recorded can be imported)": _is_printed_by_qwen,
    "Factory Droid": lambda record: _is_droid_line(record) or _is_printed_by_droid(record),
    "Kiro's CLI": _is_kiro_line,
    "xAI's Grok CLI": _is_grok_line,
    "CodeBuddy": _is_codebuddy_line,
    "Muse Code": _is_muse_line,
    "Amp": _is_amp_line,
    _of_requests("Cursor"): lambda record: _is_cursor_line(record) or _is_printed_by_cursor(record),
    "Google Antigravity": _is_antigravity_step,
    _of_requests("iFlow CLI"): _is_iflow_line,
    _of_requests("Copilot Chat in VS Code"): _is_vs_code_change,
}
_VALUES: dict[str, Callable[[JSON], bool]] = {
    "Kiro's or Amazon Q's CLI": _is_kiro_conversation,
    "Amp": _is_amp_thread,
    _of_requests("Copilot Chat in VS Code"): _is_vs_code_chat,
    _of_requests("Open WebUI"): _is_open_webui_chat,
    _of_requests("Continue"): _is_continue_session,
    _of_requests("LM Studio"): _is_lm_studio_chat,
    _of_requests("Zed"): _is_zed_thread,
    _of_requests("Microsoft's Agent Framework"): _is_agent_framework_session,
    "Strands Agents (a file of a session in several; its messages as one JSON array can be imported)": _is_strands_file,
    "LangGraph (a history of its states; the values of a single one can be imported)": _is_langgraph_state,
    "Mistral's Conversations API (a log of its chat requests can be imported)": _is_mistral_conversation,
    "OpenAI's Assistants API (a log of requests of Chat Completions or Responses can be imported)": (
        _is_assistants_thread
    ),
    "Langfuse (traces without their observations; a trace with them, or a list of them, can be imported)": (
        _lists_langfuse_traces
    ),
}
# Tables by which a database is known, each with columns of it. Amazon Q's and Kiro's are in `data.sqlite3`, those of
# Cursor's CLI in `store.db`, of LangGraph where its SqliteSaver was told to put them.
_TABLES: tuple[tuple[str, tuple[tuple[str, tuple[str, ...]], ...]], ...] = (
    (_of_requests("Cursor"), (("cursorDiskKV", ("key",)),)),
    (_of_requests("Cursor"), (("blobs", ("id", "data")), ("meta", ("key", "value")))),
    ("Kiro's or Amazon Q's CLI", (("conversations", ("key", "value")), ("auth_kv", ("key",)))),
    (
        "LangGraph (its checkpoints; the values of one of its states can be imported)",
        (("checkpoints", ("thread_id", "checkpoint_id")), ("writes", ("thread_id", "checkpoint_id"))),
    ),
)
