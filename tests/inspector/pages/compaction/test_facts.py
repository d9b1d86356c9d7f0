"""The facts of a compaction: instructions before, given to the summariser and after; open work; new names."""

import html
import re

from django.urls import reverse
from msgspec.structs import replace

from guard_core.sessions import ModelCall
from inspector.pages.shared.snippets import instructions_of
from inspector.replays.analysis import analyse
from inspector.replays.choice import Choice
from tests.builders import model, session, tool_call, user
from tests.guard_core.findings.cases import compaction

RULE = "Never rename the column tenant in the billing tables"
ASK = "Please add the column workspace to src/users/models.py"


def talk(summary, *more):
    todos = [{"content": "write the migration", "status": "pending"}, {"content": "plan it", "status": "completed"}]
    events = [user(f"{RULE}."), model("Understood."), user(ASK), tool_call("TodoWrite", "t", todos=todos), *more]
    events += [model("working on it") for _ in range(3)]
    calls = tuple(ModelCall(at, at, 1_000 + 100 * at) for at in range(1, len(events)))
    return session(*events, calls=calls, compactions=(compaction(5, summary=summary),))


def page(client, row, query=""):
    response = client.get(reverse("compaction", args=[row.pk, 1]) + query)
    assert response.status_code == 200
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())))


def test_it_shows_instructions_the_last_request_and_open_todos_before_and_after(client, store):
    text = page(client, store(talk(f"The user asked: {ASK}. Half is done.", model("so far so good"))))
    assert re.search(rf"{RULE}\. +rule +verbatim +gone", text)
    assert re.search(rf"{ASK} +last request +verbatim +quoted in the summary", text)
    assert re.search(r"write the migration +todo +verbatim +gone", text)
    assert "plan it todo" not in text


def test_what_had_left_before_is_not_said_to_be_there_and_what_is_quoted_is_not_said_to_be_verbatim(client, store):
    built = talk(f"Half is done. The user said: {RULE}.", model("fine"))
    again = replace(built, compactions=(*built.compactions, compaction(7, summary=f"More is done. {RULE}.")))
    response = client.get(reverse("compaction", args=[store(again).pk, 2]))
    text = html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())))
    assert "It removed no instruction that the request before it had." in text
    assert "1 other instruction is only in a summary, as before." in text
    assert "The last request and 1 open todo had left the context before." in text
    assert "still there verbatim" not in text


def test_todos_that_are_open_at_a_compaction_are_shown_however_many_lists_follow(client, store):
    later = [tool_call("TodoWrite", f"later{number}", todos=[]) for number in range(60)]
    text = page(client, store(talk("Half is done.", model("so far so good"), *later)))
    assert re.search(r"write the migration +todo +verbatim +gone", text)


def test_the_instructions_of_a_session_are_looked_for_once(store):
    row = store(talk("Half is done.", model("so far so good")))
    analysis = analyse(row, Choice())
    assert [item.text for item in instructions_of(row, analysis)] == [f"{RULE}.", ASK]
    assert instructions_of(row, analyse(row, Choice())) is instructions_of(row, analysis)


def test_it_counts_calls_without_a_result(client, store):
    assert "1 tool call had no result yet." in page(client, store(talk("Half is done.", model("so far so good"))))


def test_it_names_what_the_summary_has_and_no_message_before_it(client, store):
    new = page(client, store(talk("See src/users/models.py and src/ghosts/views.py.", model("fine"))))
    assert "Named in its summary, but in no message before it: src/ghosts/views.py." in new
    known = page(client, store(talk("See src/users/models.py.", model("fine")), title="known"))
    assert "Its summary names 1 path, identifier or quantity, none of them new." in known


def test_names_in_a_summary_are_not_called_new_where_the_file_lacks_what_came_before(client, store):
    first = compaction(0, summary="See src/ghosts/views.py.")
    text = page(client, store(session(user(ASK), model("fine"), calls=(ModelCall(1, 1, 900),), compactions=(first,))))
    assert "The file lacks what came before it, so where the names in its summary come from is not known." in text
    assert "Named in its summary" not in text


def test_a_tag_around_a_summary_is_no_path_and_no_identifier(client, store):
    tagged = "<state_snapshot> See src/users/models.py. </state_snapshot>"
    text = page(client, store(talk(tagged, model("fine"))))
    assert "Its summary names 1 path, identifier or quantity, none of them new." in text


def test_a_replay_says_what_the_summariser_was_given(client, store):
    rows = [each for turn in range(30) for each in (user(f"{RULE}, turn {turn}. " + "w " * 4_000), model("ok"))]
    text = page(client, store(session(*rows, window=30_000)), "?policy=contextguard&window=30000&side=replayed")
    assert re.search(rf"{RULE}, turn 0\. +rule +verbatim +yes +unknown: summary not readable", text)


def test_a_real_compaction_lost_the_request_that_the_first_one_quoted(client, long):
    response = client.get(reverse("compaction", args=[long.pk, 2])).content.decode()
    text = html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response)))
    assert re.search(r"let's go with option 1\. .* last request +quoted in the summary +gone", text)
