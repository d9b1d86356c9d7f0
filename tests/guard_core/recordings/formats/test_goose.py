"""Sessions of Goose."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guard_core import recordings
from guard_core.events import MediaPart, OtherPart, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.formats.goose import FORMAT
from guard_core.sessions import Evidence, Provenance, Sourced
from guard_core.views import Inserted, Span
from tests.guard_core.recordings.checks import check_hostile, lines, read_as, recognises, spoiled, texts
from tests.recordings.seeds import database

SHOWN, HIDDEN = {"userVisible": True, "agentVisible": True}, {"userVisible": True, "agentVisible": False}
FOR_MODEL = {"userVisible": False, "agentVisible": True}
NOWHERE = {"userVisible": False, "agentVisible": False}
CALL = {"type": "toolRequest", "id": "c1"}
CALL["toolCall"] = {"status": "success", "value": {"name": "shell", "arguments": {"command": "ls"}}}  # type: ignore[assignment]


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def result(value: Any, **more: Any) -> dict[str, Any]:
    return {"type": "toolResponse", "id": "c1", "toolResult": {"status": "success", "value": value, **more}}


def message(role: str, *content: dict[str, Any], metadata: dict[str, bool] | None = None) -> dict[str, Any]:
    about = {"id": None, "role": role, "created": 1_762_000_000, "content": list(content)}
    return {**about, "metadata": metadata or SHOWN}


def user(*content: Any, metadata: dict[str, bool] | None = None) -> dict[str, Any]:
    blocks = [text(item) if isinstance(item, str) else item for item in content]
    return message("user", *blocks, metadata=metadata)


def model(*content: Any, metadata: dict[str, bool] | None = None) -> dict[str, Any]:
    blocks = [text(item) if isinstance(item, str) else item for item in content]
    return message("assistant", *blocks, metadata=metadata)


def exported(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    about = {"id": "20251101_1", "working_dir": "/repo", "name": "Files", "created_at": "2025-11-01T10:00:00Z"}
    return {**about, "conversation": list(messages), "message_count": len(messages), **more}


def stored(*messages: dict[str, Any], ledger: tuple[dict[str, Any], ...] = (), **more: Any) -> bytes:
    """The session in a database."""
    rows = [
        {
            "message_id": f"m{place}",
            "session_id": "s",
            "role": item["role"],
            "content_json": json.dumps(item["content"]),
            "created_timestamp": item["created"],
            "metadata_json": json.dumps(item["metadata"]),
        }
        for place, item in enumerate(messages)
    ]
    header = {"id": "s", "name": "Files", "working_dir": "/repo", "created_at": "2025-11-01 10:00:00", **more}
    counts = {"usage_ledger": [{"session_id": "s", **row} for row in ledger]} if ledger else {}
    return database({"sessions": [header], "messages": rows, **counts})


ASKED, CALLED, LISTED, SAID = user("List files"), model("I look", CALL), user(result([text("a.txt")])), model("One")
LAST = {"input_tokens": 80, "output_tokens": 10, "total_tokens": 90}


def only(content: Any) -> Any:
    return read_as(FORMAT, content, strict=True).sessions[0]


def test_its_three_forms_are_read_alike():
    talk = (ASKED, CALLED, LISTED, SAID)
    old = lines({"working_dir": "/repo", "description": "Files", "message_count": 4, **LAST}, *talk)
    for content in (exported(*talk, **LAST), old, stored(*talk, **LAST)):
        session = only(content)
        assert session.events[1].parts == (TextPart("I look"), ToolCallPart("shell", {"command": "ls"}, "c1"))
        assert session.events[2].parts == (ToolResultPart("shell", "a.txt", "c1"),)
        assert [(call.at, call.prompt_tokens, call.output_tokens) for call in session.calls] == [
            (1, None, None),
            (3, 80, 10),
        ]
        assert (session.title, session.agent) == ("Files", "Goose")


def test_pieces_of_an_answer_are_one_call_of_the_model():
    session = only(exported(ASKED, model("I look"), model(CALL), LISTED, SAID))
    assert len(session.calls) == 2
    assert session.events[1].parts == (TextPart("I look"), ToolCallPart("shell", {"command": "ls"}, "c1"))


def test_an_automatic_compaction_keeps_the_last_message_of_the_user():
    before = [{**item, "metadata": HIDDEN} for item in (ASKED, SAID)]
    new = [user("Summary", metadata=FOR_MODEL), model("Continue.", metadata=FOR_MODEL), user("And now?")]
    session = only(exported(*before, user("And now?", metadata=NOWHERE), *new, model("Two")))
    assert texts(session) == ["List files", "One", "And now?", "Two"]
    assert not any(event.meta for event in session.events)
    (compaction,) = session.compactions
    assert (compaction.at, compaction.evidence, compaction.trigger) == (3, Evidence.DECLARED, "auto")
    assert compaction.base == (Inserted(0), Inserted(1), Span(2, 3))
    assert [(event.role, event.meta) for event in compaction.messages] == [(Role.USER, True), (Role.MODEL, True)]
    assert [(call.at, call.response) for call in session.calls] == [(1, 1), (3, 3)]


def test_a_compaction_between_calls_of_tools_keeps_the_request_behind_it():
    before = [{**item, "metadata": HIDDEN} for item in (ASKED, CALLED, LISTED)]
    new = [user("Summary", metadata=FOR_MODEL), model("Continue.", metadata=FOR_MODEL), ASKED]
    session = only(exported(*before, *new, SAID))
    assert session.compactions[0].base == (Inserted(0), Inserted(1), Span(0, 1))
    assert texts(session) == ["List files", "I look", "", "One"]


def test_a_compaction_that_the_user_asked_for_keeps_nothing():
    before = [{**item, "metadata": HIDDEN} for item in (ASKED, SAID)]
    new = [user("Summary", metadata=FOR_MODEL), model("Continue.", metadata=FOR_MODEL), user("Next")]
    compaction = only(exported(*before, *new, model("Two"))).compactions[0]
    assert (compaction.trigger, compaction.base) == ("manual", (Inserted(0), Inserted(1)))


def test_of_two_compactions_the_summary_of_the_first_is_no_message():
    first = [user("Summary", metadata=NOWHERE), model("Continue.", metadata=NOWHERE), {**ASKED, "metadata": HIDDEN}]
    second = [user("Summary 2", metadata=FOR_MODEL), model("Continue.", metadata=FOR_MODEL), user("Next")]
    session = only(
        exported({**ASKED, "metadata": NOWHERE}, *first, {**SAID, "metadata": HIDDEN}, *second, model("Two"))
    )
    assert [item.at for item in session.compactions] == [1, 2]
    assert texts(session) == ["List files", "One", "Next", "Two"]
    assert session.calls[0].at == 1


def test_a_line_in_the_place_of_a_tool_call_is_sent_and_begins_no_turn():
    pair = [{**CALLED, "metadata": HIDDEN}, {**LISTED, "metadata": HIDDEN}]
    session = only(exported(ASKED, *pair, user("Listed one file.", metadata=FOR_MODEL), SAID))
    assert (session.events[3].meta, session.compactions) == (True, ())
    assert any("1 message that only the model sees" in note and "2 messages hidden" in note for note in session.notes)


def test_the_table_of_calls_gives_each_its_tokens():
    rows = [{"model": "gpt-4o", "input_tokens": count, "output_tokens": 5, "is_compaction": 0} for count in (50, 80)]
    rows.insert(1, {"model": "gpt-4o", "input_tokens": 300, "output_tokens": 20, "is_compaction": 1})
    before = [{**item, "metadata": HIDDEN} for item in (ASKED, SAID)]
    new = [user("Summary", metadata=FOR_MODEL), model("Continue.", metadata=FOR_MODEL), user("Next"), model("Two")]
    session = only(stored(*before, *new, ledger=tuple(rows)))
    assert [call.prompt_tokens for call in session.calls] == [50, 80]
    assert session.compactions[0].summariser.prompt_tokens == 300
    assert not any("tokens" in note for note in session.notes)


def test_a_table_with_other_calls_than_the_messages_gives_the_last_its_tokens():
    rows = tuple({"model": "m", "input_tokens": 50, "output_tokens": 5, "is_compaction": 0} for _ in range(3))
    session = only(stored(ASKED, CALLED, LISTED, SAID, ledger=rows, **LAST))
    assert [call.prompt_tokens for call in session.calls] == [None, 80]
    assert any("The table of calls has 3, the messages show 2 calls" in note for note in session.notes)


@pytest.mark.parametrize("more", [{"input_tokens": 30, "total_tokens": 30}, {}])
def test_the_size_of_a_summary_is_no_prompt(more):
    session = only(exported(ASKED, SAID, **more))
    assert session.calls[0].prompt_tokens is None
    assert "The file has tokens of no call." in session.notes


def test_model_and_window_are_those_of_the_configuration():
    config = json.dumps({"model_name": "gpt-4o", "context_limit": 90_000})
    session = only(stored(ASKED, SAID, model_config_json=config, parent_session_id="p"))
    assert (session.model, session.calls[0].model, session.parent) == ("gpt-4o", "gpt-4o", "p")
    assert session.window == Sourced(90_000, Provenance.RECORDER, "context_limit in the session's model configuration")


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (result({"content": [text("a.txt")], "isError": True}), ToolResultPart("", "a.txt", "c1", True)),
        (
            result(
                {
                    "content": [
                        text("a", annotations={"audience": ["assistant"]}),
                        text("b", annotations={"audience": ["user"]}),
                    ]
                }
            ),
            ToolResultPart("", "a", "c1"),
        ),
        (
            {"type": "toolResponse", "id": "c1", "toolResult": {"status": "error", "error": "no such tool"}},
            ToolResultPart("", "no such tool", "c1", True),
        ),
        ({"type": "image", "mimeType": "image/png", "data": "AAAA"}, MediaPart("image/png", size=3)),
        ({"type": "thinking", "thinking": "Hm", "signature": "AAAA"}, ReasoningPart("Hm", opaque_bytes=3)),
        ({"type": "redactedThinking", "data": "AAAA"}, ReasoningPart("", opaque_bytes=3)),
        ({"type": "hologram"}, OtherPart("hologram", {"type": "hologram"})),
    ],
)
def test_each_block_is_read_as_what_it_is(block, part):
    assert only(exported(ASKED, message("user", block))).events[1].parts == (part,)


def test_what_is_displayed_alone_is_counted_and_left_out():
    notice = {"type": "systemNotification", "notificationType": "inlineMessage", "msg": "Compaction complete"}
    recording = recordings.read(json.dumps(exported(ASKED, model(notice, metadata=HIDDEN), SAID)).encode(), strict=True)
    assert len(recording.sessions[0].events) == 2
    assert recording.notes.skipped == {"systemNotification block, which is displayed": 1}


@pytest.mark.parametrize(
    "other", [[ASKED], {"conversation": []}, {"working_dir": "/repo"}, lines({"role": "user", "content": "Hi"})]
)
def test_other_values_are_not_taken(other):
    assert not recognises(FORMAT, other)


def test_wrong_types_anywhere_are_survived():
    hidden = [user("Summary", metadata=FOR_MODEL), model("Continue.", metadata=FOR_MODEL), ASKED]
    check_hostile(FORMAT, (json.dumps(bad).encode() for bad in spoiled(exported(ASKED, CALLED, LISTED, *hidden, SAID))))
