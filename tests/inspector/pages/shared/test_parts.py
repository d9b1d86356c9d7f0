"""Parts of messages on a page."""

import re

import pytest

from guard_core.events import Event, MediaPart, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from inspector.models import Share, default_project
from inspector.pages.shared.parts import display_text, piece, role_of, shown, summary_line, visible
from tests.builders import model, session, user
from tests.inspector.pages.conftest import stored


def test_plain_text_keeps_its_lines_and_tabs():
    assert visible("a\tb\nc") == "a\tb\nc"


@pytest.mark.parametrize(
    ("text", "mark"),
    [("\x1b[31mred", "␛[31mred"), ("a\u202eb", "a⟨U+202E⟩b"), ("a\u200bb", "a⟨U+200B⟩b"), ("a\r\nb", "a\nb")],
)
def test_characters_that_do_not_show_get_a_mark(text, mark):
    assert visible(text) == mark


@pytest.mark.parametrize(("rest", "left"), [(1, 0), (89, 0), (90, 90), (1_000, 1_000)])
def test_a_few_characters_are_not_folded_away(rest, left):
    part = piece("a" * (900 + rest), 0, 900)
    assert (part["left"], len(part["text"])) == (left, 900 + rest - left)
    assert part["next"] == (900 if left else None)


def test_a_long_part_comes_in_pieces_that_join_without_loss():
    text = "".join(chr(97 + i % 26) for i in range(40_000))
    joined, start = "", 0
    while start is not None:
        part = piece(text, start, 16_000)
        joined, start = joined + part["text"], part["next"]
    assert joined == text


def test_arguments_are_shown_a_line_a_key():
    assert display_text(ToolCallPart("read", {"path": "a.py", "lines": 3})) == "path: a.py\nlines: 3"


def test_nested_results_are_indented():
    assert display_text(ToolResultPart("read", {"rows": [1]})) == '{\n "rows": [\n  1\n ]\n}'


def test_encrypted_reasoning_says_that_it_cannot_be_read():
    assert "2 kB, not readable (encrypted)" in shown(ReasoningPart(opaque_bytes=2000), 0)["note"]


def test_media_show_their_kind_and_size():
    part = shown(MediaPart("image/png", 39_000), 0)
    assert (part["name"], part["note"]) == ("image/png", "39 kB")


def test_a_result_that_failed_says_so():
    assert shown(ToolResultPart("read", "no such file", is_error=True), 0)["note"] == "error"


def test_tool_results_are_not_the_users_words():
    assert role_of(Event(Role.USER, (ToolResultPart("read", "x"),))) == "tool"
    assert role_of(Event(Role.USER, (TextPart("hi"),))) == "user"
    assert role_of(Event(Role.USER, (TextPart("reminder"),), meta=True)) == "automatic"


def test_a_step_is_named_by_its_tools_or_its_first_words():
    call = ToolCallPart("read", {"lines": 3, "path": "a.py"})
    assert summary_line(Event(Role.MODEL, (TextPart("I read"), call))) == "read a.py"
    deep = ToolCallPart("read", {"path": "/home/anna/orchard/billing/rates.py"})
    assert summary_line(Event(Role.MODEL, (deep,))) == "read …/billing/rates.py"
    assert summary_line(Event(Role.MODEL, (ToolCallPart("read"), ToolCallPart("grep")))) == "2 calls: read, grep"
    assert summary_line(Event(Role.MODEL, (TextPart("All\n\n done"),))) == "All done"
    assert summary_line(Event(Role.USER, (ToolResultPart("read", "x = 1"),))) == "read: x = 1"


def test_a_title_that_turns_the_reading_order_is_read_as_it_was_written(client, db):
    """ "live" would be displayed of the word behind U+202E; joiners of emoji stay."""
    family = "👩\u200d👧"
    row = stored(session(user("go"), model("done"), title=f"\u202eevil {family}"), title="turned")
    other = stored(session(user("on"), model("done"), title="other"), title="other")
    shown = f"⟨U+202E⟩evil {family}"
    of_row = {"title": row.title, "session": row, "state": Share.State.FAILED}
    share = Share.objects.of(default_project()).create(request=b"{}", lifetime=60, **of_row)
    of_it = ("", "steps", "search", "search?q=%E2%80%AEgo", "share", "replay/cancelled?policy=codex")
    pages = [f"{row.get_absolute_url()}{page}" for page in of_it]
    pages += ["/", f"/compare/?side={row.pk}&side={other.pk}", f"/sweeps/new?session={row.pk}"]
    for address in (*pages, "/compare/", "/shares/", share.get_absolute_url()):
        text = client.get(address).content.decode()
        assert shown in text, address
        assert "\u202e" not in re.sub('value="[^"]*"', "", text), address  # a form sends on what was typed
    assert (
        'value="\u202eevil' in client.get(f"/?rename={row.pk}").content.decode()
    )  # what is renamed is the title itself
