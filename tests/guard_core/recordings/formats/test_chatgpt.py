"""Conversations exported from ChatGPT."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guard_core import recordings
from guard_core.events import MediaPart, OtherPart, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.formats.chatgpt import FORMAT
from guard_core.sessions import LeftBranches
from tests.guard_core.recordings.checks import check_hostile, read_as, recognises, spoiled, texts
from tests.recordings.seeds import SEEDS, archive


def message(role: str, kind: str = "text", **more: Any) -> dict[str, Any]:
    """A message of the conversation; what it does not know is its content's."""
    about = {name: more.pop(name) for name in ("recipient", "end_turn", "create_time") if name in more}
    author = {"role": role, "name": more.pop("name", None), "metadata": {}}
    model = {"model_slug": more.pop("model")} if "model" in more else {}
    return {"author": author, "recipient": "all", **about, "metadata": model, "content": {"content_type": kind, **more}}


def conversation(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A conversation without branches."""
    names = ["root", *(f"m{place}" for place in range(len(messages)))]
    mapping = {
        name: {
            "id": name,
            "parent": names[place - 1] if place else None,
            "children": names[place + 1 : place + 2],
            "message": {"id": name, **messages[place - 1]} if place else None,
        }
        for place, name in enumerate(names)
    }
    return {"title": "Files", "conversation_id": "c", "current_node": names[-1], "mapping": mapping, **more}


ASKED = message("user", parts=["List files"])
CALLED = message("assistant", "code", text='{"path": "."}', recipient="ls.run", model="gpt-5")
LISTED = message("tool", "execution_output", name="ls.run", text="a.txt")
SAID = message("assistant", parts=["One file"], model="gpt-5", end_turn=True)


def only(*messages: dict[str, Any], **more: Any) -> Any:
    """The session of a conversation alone."""
    return read_as(FORMAT, conversation(*messages, **more), strict=True).sessions[0]


def test_a_message_to_a_tool_is_its_call_and_the_tool_answers_it():
    session = only(ASKED, CALLED, LISTED, SAID)
    assert session.events[1].parts == (ToolCallPart("ls.run", {"path": "."}, "m1"),)
    assert session.events[2].parts == (ToolResultPart("ls.run", "a.txt", "m1"),)
    assert [(call.at, call.response, call.model) for call in session.calls] == [(1, 1, "gpt-5"), (3, 3, "gpt-5")]
    assert (session.title, session.source_id, session.system) == ("Files", "c", None)


def test_the_window_of_the_api_is_not_passed_off_as_that_of_the_plan():
    assert any(note.startswith("ChatGPT's window depends on the plan") for note in only(ASKED, SAID).notes)


def test_the_messages_of_one_answer_are_one_call_of_the_model():
    thought = message("assistant", "thoughts", thoughts=[{"summary": "Looking", "content": "There may be files."}])
    recap = message("assistant", "reasoning_recap", content="Thought for 4s")
    words = message("assistant", parts=["I look"])
    session = only(ASKED, thought, recap, words, CALLED, LISTED, SAID)
    reasoning = ReasoningPart("Looking\nThere may be files.")
    assert session.events[1].parts == (reasoning, TextPart("I look"), ToolCallPart("ls.run", {"path": "."}, "m4"))
    assert len(session.calls) == 2
    assert any("Reasoning is in the file as its summaries" in note for note in session.notes)


def test_what_follows_an_ended_turn_is_another_call():
    session = only(ASKED, SAID, message("assistant", parts=["And another"]))
    assert [(call.at, call.response) for call in session.calls] == [(1, 1), (2, 2)]


def test_only_the_displayed_branch_is_read_and_the_others_are_counted():
    chat = conversation(ASKED, SAID)
    node = {"id": "old", "parent": "m0", "children": [], "message": message("assistant", parts=["Nothing"])}
    chat["mapping"]["old"] = node
    session = read_as(FORMAT, chat, strict=True).sessions[0]
    assert texts(session) == ["List files", "One file"]
    assert session.left == LeftBranches(messages=1)
    assert "1 message on branches that are not displayed: not in the log." in session.notes
    displayed = read_as(FORMAT, {**chat, "current_node": "old"}, strict=True).sessions[0]
    assert texts(displayed) == ["List files", "Nothing"]


def test_without_a_displayed_branch_the_newest_message_decides():
    chat = conversation(ASKED, SAID, current_node=None)
    newer = message("assistant", parts=["Newer"], create_time=2_000_000_000)
    chat["mapping"]["new"] = {"id": "new", "parent": "m0", "children": [], "message": newer}
    session = read_as(FORMAT, chat, strict=True).sessions[0]
    assert texts(session) == ["List files", "Newer"]
    assert any("does not say which branch is displayed" in note for note in session.notes)


def test_what_the_user_set_is_sent_and_begins_no_turn():
    prompt = message("system", parts=["You are ChatGPT."])
    own = message("user", "user_editable_context", user_profile="", user_instructions="Be brief.")
    memory = message("assistant", "model_editable_context", model_set_context="Likes lists.")
    session = only(prompt, own, memory, ASKED, SAID)
    assert session.system == (TextPart("You are ChatGPT."),)
    assert [(event.role, event.meta) for event in session.events[:2]] == [(Role.USER, True)] * 2
    assert texts(session) == ["Be brief.", "Likes lists.", "List files", "One file"]


def test_a_result_that_no_call_asked_for_has_none():
    found = message("tool", "multimodal_text", name="file_search", parts=["Text of a file"])
    session = only(ASKED, found, CALLED, LISTED, SAID)
    assert session.events[1].parts == (ToolResultPart("file_search", "Text of a file"),)
    assert session.events[3].parts == (ToolResultPart("ls.run", "a.txt", "m2"),)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (
            {"content_type": "image_asset_pointer", "asset_pointer": "sediment://f", "size_bytes": 9},
            MediaPart("image", uri="sediment://f"),
        ),
        ({"content_type": "audio_transcription", "text": "Hello"}, TextPart("Hello")),
        ({"content_type": "new"}, OtherPart("new", {"content_type": "new"})),
    ],
)
def test_each_part_of_a_message_of_several_is_kept(content, part):
    session = only(message("user", "multimodal_text", parts=["Look", content]), SAID)
    assert session.events[0].parts == (TextPart("Look"), part)


def test_content_of_a_kind_that_is_not_known_is_kept():
    session = only(ASKED, message("assistant", "hologram", shape="cube"), SAID)
    assert session.events[1].parts[0] == OtherPart("hologram", {"content_type": "hologram", "shape": "cube"})


def test_each_conversation_is_a_session_also_in_the_archive_of_an_export():
    chats = [conversation(ASKED, SAID, conversation_id=name) for name in ("a", "b")]
    empty = conversation(conversation_id="c")
    shards = {"conversations-000.json": json.dumps([chats[0], empty]).encode(), "user.json": b"{}"}
    shards["conversations-001.json"] = json.dumps([chats[1]]).encode()
    for content in (json.dumps([*chats, empty]).encode(), archive(shards)):
        recording = recordings.read(content, strict=True)
        assert (recording.format, [session.source_id for session in recording.sessions]) == ("chatgpt", ["a", "b"])
        assert recording.notes.skipped == {"conversation without messages": 1}
        assert recording.facts.messages == 4


@pytest.mark.parametrize(
    "other",
    [
        [],
        [{"mapping": {}}],
        [{"mapping": {"a": {"message": "x"}}}],
        [{"role": "user", "content": "Hi"}],
        json.loads(SEEDS["claude-ai"]),
    ],
)
def test_other_values_are_not_taken(other):
    assert not recognises(FORMAT, other)


def test_a_circle_of_parents_ends():
    chat = conversation(ASKED, SAID)
    chat["mapping"]["root"]["parent"] = "m1"
    assert texts(read_as(FORMAT, chat).sessions[0]) == ["List files", "One file"]


def test_wrong_types_anywhere_are_survived():
    chat = conversation(ASKED, CALLED, LISTED, SAID)
    check_hostile(FORMAT, (json.dumps(bad).encode() for bad in spoiled([chat])))
