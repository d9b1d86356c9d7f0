"""Conversations exported from Claude.ai."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guard_core import recordings
from guard_core.events import MediaPart, OtherPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.formats.claude_ai import FORMAT
from guard_core.sessions import LeftBranches
from tests.guard_core.recordings.checks import check_hostile, read_as, recognises, spoiled, texts
from tests.recordings.seeds import SEEDS, archive

ROOT = "00000000-0000-4000-8000-000000000000"  # the parent of first messages


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words, "citations": [], "start_timestamp": None}


def message(uuid: str, sender: str, *blocks: dict[str, Any], parent: str = "", **more: Any) -> dict[str, Any]:
    about = {"uuid": uuid, "sender": sender, "text": "", "content": list(blocks), "attachments": [], "files": []}
    return {**about, "created_at": "2026-03-29T07:06:35.552627Z", "parent_message_uuid": parent, **more}


def conversation(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    about = {
        "uuid": "c",
        "name": "Files",
        "summary": "",
        "created_at": "2026-03-29T07:06:34Z",
        "account": {"uuid": "a"},
    }
    return {**about, "chat_messages": list(messages), **more}


THOUGHT = {"type": "thinking", "thinking": "There may be files.", "summaries": [{"summary": "Looking"}]}
CALL = {"type": "tool_use", "id": "t1", "name": "ls", "input": {"path": "."}, "message": "Listing"}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "name": "ls", "is_error": False, "content": [text("a.txt")]}
ASKED = message("1", "human", text("List files"), parent=ROOT)
SAID = message("2", "assistant", THOUGHT, CALL, RESULT, text("One file"), parent="1")


def only(*messages: dict[str, Any], **more: Any) -> Any:
    """The session of a conversation alone."""
    return read_as(FORMAT, conversation(*messages, **more), strict=True).sessions[0]


def test_each_step_of_an_answer_is_a_call_of_the_model():
    session = only(ASKED, SAID, model="claude-opus-5")
    assert session.events[1].parts == (ReasoningPart("There may be files."), ToolCallPart("ls", {"path": "."}, "t1"))
    assert session.events[2].parts == (ToolResultPart("ls", "a.txt", "t1"),)
    assert session.events[3].parts == (TextPart("One file"),)
    assert [(call.at, call.response, call.model) for call in session.calls] == [
        (1, 1, "claude-opus-5"),
        (3, 3, "claude-opus-5"),
    ]
    assert (session.title, session.source_id, session.system) == ("Files", "c", None)


def test_only_the_displayed_branch_is_read_and_the_others_are_counted():
    edited = message("3", "human", text("List all files"), parent=ROOT, created_at="2026-03-29T08:00:00Z")
    answer = message("4", "assistant", text("Two files"), parent="3", created_at="2026-03-29T08:00:01Z")
    session = only(ASKED, SAID, edited, answer)
    assert texts(session) == ["List all files", "Two files"]
    assert session.left == LeftBranches(messages=2)
    assert "2 messages on branches that are not displayed: not in the log." in session.notes
    displayed = only(ASKED, SAID, edited, answer, current_leaf_message_uuid="2")
    assert texts(displayed)[0] == "List files"


def test_a_conversation_without_parents_is_read_in_its_order():
    asked, said = ({key: value for key, value in item.items() if "parent" not in key} for item in (ASKED, SAID))
    session = only(asked, said)
    assert (len(session.events), session.left) == (4, None)


def test_the_text_of_old_messages_and_of_attached_files_is_read():
    attached = [{"file_name": "a.txt", "file_type": "txt", "extracted_content": "Text of a file"}]
    files = [{"file_name": "b.png", "file_kind": "image"}]
    old = message("1", "human", parent=ROOT, text="List files", attachments=attached, files=files)
    session = only(old, SAID)
    parts = (TextPart("List files"), TextPart("Text of a file"), MediaPart("image", uri="b.png"))
    assert session.events[0].parts == parts


def test_a_result_that_is_not_text_keeps_its_blocks():
    found = [{"type": "knowledge", "title": "A page", "url": "https://example.org", "text": "Words"}]
    session = only(ASKED, message("2", "assistant", CALL, {**RESULT, "content": found, "is_error": True}, parent="1"))
    assert session.events[2].parts == (ToolResultPart("ls", found, "t1", True),)


def test_blocks_of_no_words_are_left_out_and_unknown_ones_kept():
    budget, unknown = {"type": "token_budget"}, {"type": "hologram", "shape": "cube"}
    session = only(ASKED, message("2", "assistant", CALL, RESULT, budget, unknown, parent="1"))
    assert session.events[3].parts == (OtherPart("hologram", unknown),)
    assert len(session.calls) == 2


def test_each_conversation_is_a_session_also_in_the_archive_of_an_export():
    chats = [conversation(ASKED, SAID, uuid=name) for name in ("a", "b")] + [conversation(uuid="c")]
    packed = archive({"users.json": b"[]", "conversations.json": json.dumps(chats).encode(), "projects.json": b"[]"})
    for content in (json.dumps(chats).encode(), packed):
        recording = recordings.read(content, strict=True)
        assert (recording.format, [session.source_id for session in recording.sessions]) == ("claude-ai", ["a", "b"])
        assert recording.notes.skipped == {"conversation without messages": 1}
        assert (recording.facts.messages, recording.facts.tool_calls, recording.facts.tool_results) == (4, 2, 2)


@pytest.mark.parametrize(
    "other",
    [
        [],
        [{"chat_messages": [{"sender": "bob", "text": "Hi"}]}],
        {"chat_messages": []},
        [{"role": "user", "content": "Hi"}],
        json.loads(SEEDS["chatgpt"]),
    ],
)
def test_other_values_are_not_taken(other):
    assert not recognises(FORMAT, other)


def test_wrong_types_anywhere_are_survived():
    check_hostile(FORMAT, (json.dumps(bad).encode() for bad in spoiled([conversation(ASKED, SAID)])))
