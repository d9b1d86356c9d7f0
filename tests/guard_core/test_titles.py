"""The title of a session that was given none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard_core.titles import TITLE_CHARS, first_words
from tests.builders import model, user

ASSIGNED = '{"type":"task_assignment","taskId":"4","subject":"UI-4: Fix it","description":"And test it"}'


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Fix  the\nparser", "Fix the parser"),
        ("<system-reminder>\nToday is Monday.\n</system-reminder>\n<x y='1'>z</x> Fix it", "Fix it"),
        ("# Context from my IDE setup:\n\n## Active file: a.md\n\n## My request for Codex:\nFix it\n", "Fix it"),
        ("<ide_selection>" + "A selected line.\n" * 1_000 + "</ide_selection>\nFix it", "Fix it"),
        ('<teammate-message teammate_id="team-lead" summary="s">\nFix it\n</teammate-message>', "Fix it"),
        (f'<teammate-message teammate_id="team-lead">\n{ASSIGNED}\n</teammate-message>', "UI-4: Fix it And test it"),
        (
            f'<teammate-message teammate_id="a">\n{ASSIGNED}\n</teammate-message>\n\n'
            f'<teammate-message teammate_id="b">\n{ASSIGNED.replace("4", "5")}\n</teammate-message>',
            "UI-4: Fix it And test it UI-5: Fix it And test it",
        ),
        (
            '<teammate-message teammate_id="a">\nSay </teammate-message> at the end\n</teammate-message>',
            "Say </teammate-message> at the end",
        ),
        ("<task>\nFix  the parser\n</task>\n<environment_details>\nNo tabs\n</environment_details>", "Fix the parser"),
        ("<user_message>\nFix it\n</user_message>", "Fix it"),
        ("<task>\n" + "Fix it all. " * 1_000 + "</task>", "Fix it all. " * 6 + "Fix it…"),
        ("<b>bold</b>", "and then this"),
        ("a < b > c", "a < b > c"),
        ("<open>never closed", "<open>never closed"),
        ("", "and then this"),
        ("/model", "and then this"),
        ("/mcp:list", "and then this"),
        ("/review the last change", "/review the last change"),
        ("/srv/app", "/srv/app"),
    ],
)
def test_it_is_what_the_user_wrote_first_without_what_the_agent_put_before_it(text: str, title: str) -> None:
    events = [model("Hello"), user("put in by the agent", meta=True), user(text), user("and then this")]
    assert first_words(events) == title


def test_it_is_cut_at_a_word_unless_that_is_very_long() -> None:
    title = first_words([user("Please look into why the second replica of the staging database lags behind the first")])
    assert title == "Please look into why the second replica of the staging database lags behind the…"
    title = first_words([user("Please look into why the second replica of the staging database lagged behind")])
    assert title == "Please look into why the second replica of the staging database lagged behind"
    assert first_words([user("词" * 200)]) == "词" * 79 + "…"


def test_without_words_of_a_user_there_is_none() -> None:
    assert first_words([model("Hello")]) == ""


def test_a_command_is_one_where_the_user_wrote_nothing_else() -> None:
    assert first_words([user("/init"), model("Hello"), user("/compact")]) == "/init"


@given(st.text(max_size=300))
def test_it_is_one_line_of_limited_length(text: str) -> None:
    title = first_words([user(text)])
    assert len(title) <= TITLE_CHARS
    assert title == " ".join(title.split())
