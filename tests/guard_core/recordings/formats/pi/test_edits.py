"""Edits of the context in pi's sessions, as 1.6.0 writes them: by an extension, and for an answer cut off."""

from __future__ import annotations

from typing import Any

from guard_core.events import ToolResultPart
from guard_core.ledger import Ledger
from guard_core.requests import materialise
from guard_core.rules import Agreement, explain
from guard_core.rules.kept import KeptVerdict
from guard_core.sessions import Provenance, Session, Sourced
from tests.guard_core.recordings.formats.pi.test_session import assistant, entry, result, session_of, user


def chained(*entries: dict[str, Any]) -> list[dict[str, Any]]:
    """Messages, and what else is given as (kind, fields), each the child of the one before: e0, e1, …"""
    made = []
    for number, item in enumerate(entries):
        kind, fields = item.get("kind", "message"), {k: v for k, v in item.items() if k != "kind"}
        fields = fields if "kind" in item else {"message": item}
        made.append(entry(f"e{number}", f"e{number - 1}" if number else None, kind, **fields))
    return made


def edit(target: str, content: Any = None) -> dict[str, Any]:
    replacement = None if content is None else {"content": content}
    return {"kind": "context_edit", "targetId": target, "replacement": replacement}


def cut(kept: str, tokens: int) -> dict[str, Any]:
    return {"kind": "compaction", "summary": "S", "firstKeptEntryId": kept, "tokensBefore": tokens}


def sent(session: Session, step: int) -> list[str]:
    """The texts of a request, a tool result's and a call's name among them."""
    view, epoch = Ledger.of(session).recorded_view(step)
    parts = [part for event in materialise(view, session, epoch) for part in event.parts]
    return [str(part.content) if isinstance(part, ToolResultPart) else getattr(part, "text", "") for part in parts]


SHORT = [{"type": "text", "text": "short"}]


def test_a_message_is_sent_as_an_extension_changed_it_also_where_a_compaction_keeps_it():
    asked = [user("Go"), assistant("Look", 100, "c1"), result("c1", "long")]
    more = [assistant("Again", 200, "c2"), result("c2"), assistant("On", 300), cut("e2", 300), user("More")]
    session = session_of(*chained(*asked, edit("e2", SHORT), *more, assistant("Done", 90)))
    assert [item.kind for item in session.compactions] == ["edit", "summary+tail"]
    for step in (1, 2, 3):
        assert "short" in sent(session, step)
        assert "long" not in sent(session, step)
    (kept,) = explain(session).kept
    assert (kept.tail, kept.rewritten, kept.verdict) == (3, 1, KeptVerdict.AGREES)


def test_a_message_that_was_taken_out_is_not_sent_and_two_edits_at_once_are_one():
    asked = [user("Go"), assistant("Look", 100, "c1"), result("c1", "long"), assistant("Wrong", 150)]
    session = session_of(*chained(*asked, edit("e3"), edit("e2", SHORT), user("Again"), assistant("Done", 140)))
    assert len(session.compactions) == 1
    assert "Wrong" not in sent(session, 2)
    assert {"short", "Again"} <= set(sent(session, 2))


def test_an_answer_that_was_cut_off_and_taken_out_caused_the_compaction_behind_it():
    asked = [user("Go"), assistant("Look", 100, "c1"), result("c1"), assistant("I thi", 150, reason="length")]
    session = session_of(*chained(*asked, edit("e3"), cut("e1", 40), assistant("I think", 90)))
    assert [item.trigger for item in session.compactions] == ["context_edit", "cut_off"]
    assert "I thi" not in sent(session, 2)
    (item,) = explain(session, window=Sourced(200_000, Provenance.USER)).compactions
    assert (item.verdict, item.computed) == (Agreement.NOT_MODELLED, None)
    assert item.reason == "the answer before it was cut off at its limit of tokens and left out, whatever the threshold"


def test_an_edit_of_a_failed_answer_changes_nothing():
    failed = {**assistant("", 0, reason="error"), "errorMessage": "prompt is too long: 210000 tokens > 200000 maximum"}
    session = session_of(*chained(user("Go"), assistant("On", 100), user("More"), failed, edit("e3"), cut("e1", 90)))
    assert [item.trigger for item in session.compactions] == ["overflow"]


def test_a_check_right_behind_an_edit_has_no_count():
    """1.6.0 counts the last answer no longer there."""
    asked = [user("Go"), assistant("Look", 190_000, "c1"), result("c1", "x" * 90_000)]
    system = {"role": "system", "content": "", "sections": {"preamble": "You are pi."}}
    for behind, missed in (([edit("e3", SHORT)], 0), ([], 1)):
        session = session_of(*chained(system, *asked, *behind, assistant("Done", 213_000)))
        assert len(explain(session, window=Sourced(200_000, Provenance.USER)).missed) == missed
