"""What the model saw of the `attachment` lines of Claude Code."""

import pytest

from guard_core.events import MediaPart, Role
from guard_core.recordings.formats.claude.attachments import SELECTION_CHARS
from guard_core.views import Inserted
from tests.guard_core.recordings.checks import texts
from tests.guard_core.recordings.formats.claude.test_transcript import SUMMARY, answer, attachment, boundary, read, user


def sent(content, **fields):
    """The events between a question and its answer."""
    lines = user("u1", None, "Look"), attachment("x", "u1", content, **fields), answer("a1", "x", "Done")
    return read(*lines).sessions[0].events[1:-1]


def test_a_rendered_attachment_is_an_event_with_the_role_it_was_sent_in():
    rendered = [
        {"content": "<system-reminder>Today</system-reminder>"},
        {"content": [{"type": "text", "text": "More"}]},
    ]
    (event,) = sent({"type": "date", "date": "2026-11-21"}, rendered=rendered, renderedRole="system")

    assert (event.role, [part.text for part in event.parts]) == (
        Role.SYSTEM,
        ["<system-reminder>Today</system-reminder>", "More"],
    )
    assert event.meta


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"type": "skill_listing", "content": "- review"}, "- review"),
        ({"type": "hook_additional_context", "content": ["One", "Two"]}, "One\nTwo"),
        ({"type": "file", "content": {"type": "text", "file": {"content": "a = 1"}}}, "a = 1"),
        ({"type": "nested_memory", "content": {"path": "b/CLAUDE.md", "content": "Be brief"}}, "Be brief"),
        ({"type": "invoked_skills", "skills": [{"content": "One"}, {"content": "Two"}]}, "One\nTwo"),
        ({"type": "todo_reminder", "content": [{"id": 1, "status": "done"}]}, '{"id":1,"status":"done"}'),
        ({"type": "hook_success", "hookEvent": "SessionStart", "content": "Hello"}, "Hello"),
        ({"type": "selected_lines_in_ide", "content": "x" * 9_000}, "x" * SELECTION_CHARS),
    ],
)
def test_an_attachment_that_was_not_rendered_gives_its_content(content, text):
    (event,) = sent(content)

    assert (event.role, event.parts[0].text) == (Role.USER, text)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"type": "hook_success", "hookEvent": "SessionStart", "content": "Hi"}, "Read hook success: Hi"),
        ({"type": "hook_additional_context", "content": ["One", "Two"]}, "Read hook additional context: One\nTwo"),
        ({"type": "hook_stopped_continuation", "message": "No"}, "Read hook stopped continuation: No"),
        (
            {"type": "hook_blocking_error", "blockingError": {"blockingError": "Bad", "command": "lint"}},
            'Read hook blocking error from command: "lint": Bad',
        ),
    ],
)
def test_what_a_hook_says_is_in_the_words_it_was_sent_in(content, words):
    """As 2.1.100 sends it, whose count has all of it."""
    (event,) = sent({**content, "hookName": "Read"})

    assert event.parts[0].text == f"<system-reminder>\n{words}\n</system-reminder>"


def test_an_image_named_with_an_at_sign_is_sized_not_counted_as_text():
    file = {"base64": "A" * 400, "type": "image/png"}
    (event,) = sent({"type": "file", "content": {"type": "image", "file": file}})

    assert event.parts == (MediaPart(mime="image/png", size=300),)


def test_words_typed_while_the_model_worked_are_the_users():
    (typed,) = sent({"type": "queued_command", "prompt": "Stop", "commandMode": "prompt"})
    (notification,) = sent({"type": "queued_command", "prompt": "Task done", "commandMode": "task-notification"})

    assert (typed.starts_turn(), notification.starts_turn()) == (True, False)


@pytest.mark.parametrize(
    "content",
    [
        {"type": "hook_success", "hookEvent": "PostToolUse", "content": "ok"},
        {"type": "task_reminder", "content": []},
        {"type": "command_permissions", "allowedTools": ["Read"]},
    ],
)
def test_what_the_model_did_not_see_is_noted_only(content):
    lines = user("u1", None, "Look"), attachment("x", "u1", content), answer("a1", "x", "Done")
    recording = read(*lines)

    assert texts(recording.sessions[0]) == ["Look", "Done"]
    assert recording.notes.skipped == {f"line kind attachment {content['type']}": 1}


def test_an_attachment_without_an_id_has_no_place_and_is_noted():
    line = attachment("x", "u1", {"type": "skill_listing", "content": "- a"})
    del line["uuid"]

    assert read(user("u1", None), line, answer("a1", "u1")).notes.skipped == {"line kind attachment skill_listing": 1}


def listing(uuid, parent, words):
    return attachment(uuid, parent, {"type": "skill_listing", "content": words})


COMPACTED = (
    user("u1", None, "Look"),
    answer("a1", "u1", "Done"),
    user("u2", "a1", "Keep me"),
    boundary("b", "u2", preservedMessages={"anchorUuid": "s1", "uuids": ["u2"]}),
    listing("x", "b", "Today"),
    user("s1", "x", SUMMARY, isCompactSummary=True),
    listing("y", "s1", "- review"),
    listing("z", "y", "- deploy"),
    answer("a2", "z", "Next"),
)


def view_texts(session, number):
    """What was sent right after a compaction, as texts in order."""
    compaction = session.compactions[number]
    events = []
    for segment in compaction.base:
        if isinstance(segment, Inserted):
            events.append(compaction.messages[segment.index])
        else:
            events.extend(session.events[segment.start : segment.stop])
    return [event.parts[0].text for event in events]


def test_what_is_attached_again_at_a_compaction_is_part_of_it_in_the_order_sent():
    session = read(*COMPACTED).sessions[0]

    assert view_texts(session, 0) == ["Today", SUMMARY, "Keep me", "- review", "- deploy"]
    assert (session.compactions[0].at, session.calls[-1].at) == (3, 3)


def test_a_log_without_its_compactions_holds_nothing_that_they_attached_again():
    assert texts(read(*COMPACTED).sessions[0]) == ["Look", "Done", "Keep me", "Next"]


def test_words_typed_during_a_compaction_stay_in_the_log():
    typed = attachment("q", "z", {"type": "queued_command", "prompt": "Stop", "commandMode": "prompt"})
    session = read(*COMPACTED[:-1], typed, answer("a2", "q", "Next")).sessions[0]

    assert (texts(session)[3:], session.compactions[0].at) == (["Stop", "Next"], 3)


def test_what_was_attached_again_and_kept_by_the_next_compaction_is_still_sent():
    session = read(
        *COMPACTED,
        boundary("c", "a2", preservedMessages={"anchorUuid": "s2", "uuids": ["z", "a2"]}),
        user("s2", "c", SUMMARY, isCompactSummary=True),
        answer("a3", "s2", "Last"),
    ).sessions[0]

    assert view_texts(session, 1) == [SUMMARY, "- deploy", "Next"]


def test_attachments_are_no_messages_of_the_facts():
    lines = user("u1", None), attachment("x", "u1", {"type": "skill_listing", "content": "- a"}), answer("a1", "x")

    assert read(*lines).facts.messages == 2
