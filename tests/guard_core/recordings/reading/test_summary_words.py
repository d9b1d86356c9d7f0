"""How messages open that give the gist of a conversation before them."""

from __future__ import annotations

import json

import pytest

from guard_core import recordings
from guard_core.recordings.reading.summary_words import begins_with_summary, may_begin_with_summary
from guard_core.sessions import HEADED_SUMMARY
from tests.builders import model, user

ASK = user("Now write the tests.")


@pytest.mark.parametrize(
    "text",
    [
        "Summary of the conversation so far:\n- the parser is done",
        "## Conversation summary\nThe parser is done.",
        "Here's a summary of our previous session: the parser is done.",
        "<conversation_summary>\nThe parser is done.",
        "[Previous conversation summary]\nThe parser is done.",
        "**Session summary** – the parser is done",
        "Earlier messages were summarized: the parser is done",
        "Zusammenfassung des bisherigen Gesprächs: Der Parser ist fertig.",
        "Résumé de la conversation : le parseur est fini.",
        "Resumen de la conversación: el analizador está listo.",
        "之前的对话摘要：解析器已经完成。",
        "これまでの会話の要約：パーサーは完成した。",
    ],
)
def test_a_message_that_is_headed_as_a_summary_of_a_conversation_may_be_one(text):
    assert may_begin_with_summary((user(text), ASK, model("Yes")))
    assert not begins_with_summary((user(text),))
    assert not may_begin_with_summary((ASK, model("Yes"), user(text)))  # the model has spoken before it


@pytest.mark.parametrize(
    "text",
    [
        "Write a summary of the conversation in the file.",
        "Summary of the requirements: a parser for dates.",
        "The conversation page needs a summary column.",
        "Please look at session summary tables.",
        "History of the project: begun in 2019.",
    ],
)
def test_words_about_summaries_are_none(text):
    assert not may_begin_with_summary((user(text),))


def test_a_log_that_begins_so_is_noted():
    messages = [{"role": "user", "content": "Summary of our conversation so far: the parser is done. Go on."}]
    messages += [{"role": "assistant", "content": "I go on."}]
    (session,) = recordings.read(json.dumps({"model": "gpt-4o", "messages": messages}).encode()).sessions
    assert HEADED_SUMMARY in session.notes
