"""The facts page: instructions with the compaction that lost them, a typed text, a replay, hostile texts."""

import html
import re

import pytest
from django.urls import reverse

from guard_core.sessions import ModelCall
from inspector.pages.facts import listed
from inspector.storage.search import index_some
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.checker.cases import exchange
from tests.guard_core.findings.cases import compaction

RULE = "Never rename the column tenant in the billing tables"


def talk(*compactions, after=()):
    events = [user(f"{RULE}. See src/billing/models.py"), *(model("working on it") for _ in range(6))]
    for index, event in dict(after).items():
        events[index] = event
    calls = tuple(ModelCall(step + 1, step + 1, 1_000 + 100 * step) for step in range(6))
    return session(*events, calls=calls, compactions=compactions)


def page(client, row, query=""):
    response = client.get(reverse("session_facts", args=[row.pk]) + query)
    assert response.status_code == 200
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())))


@pytest.fixture
def lost(store):
    return store(talk(compaction(3, summary="Half is done.")))


def test_it_says_which_instruction_was_lost_at_which_compaction(client, lost):
    text = page(client, lost)
    assert "The words of the one instruction are not in the last request: it is lost." in text
    assert re.search(rf"{RULE}\. +rule, +message 1 +gone +2 +step +3 +\( compaction 1 \)", text)


def test_a_rule_that_the_user_took_back_is_withdrawn_and_not_gone(client, store):
    lifted = user("You may rename the column tenant in the billing tables again.")
    text = page(client, store(talk(compaction(4, summary="Half is done."), after={2: lifted})))
    assert "1 rule was withdrawn by the user." in text
    assert re.search(rf"{RULE}\. +rule, +message 1 +withdrawn ", text)


def test_its_links_lead_to_the_compaction_and_the_last_request_with_it(client, lost):
    content = client.get(reverse("session_facts", args=[lost.pk])).content.decode()
    assert reverse("compaction", args=[lost.pk, 1]) in content
    assert reverse("session_steps", args=[lost.pk]) + "?at=2" in content
    assert (
        'aria-label="In 2 of 6 requests; lost at step 3 (compaction 1); the last request with it is step 2."' in content
    )


def test_a_typed_text_has_a_lane_and_a_table_of_its_changes(client, store):
    back = {3: tool_call(), 4: tool_result({"text": f"# {RULE}"})}
    row = store(talk(compaction(3, summary="Half is done."), after=back))
    text = page(client, row, "?q=column+tenant+in+the+billing")
    assert "verbatim first in the request of step 1" in text
    assert "gone lost at step 3 (compaction 1) compaction 1" in text
    assert "verbatim back at step 5 with message 5" in text
    assert "It was read again 1 time, " in text


def test_the_lane_of_a_typed_text_does_not_wait_for_the_list_of_a_long_session(client, store):
    row = store(exchange(listed.QUICK_STEPS + 1, tokens=lambda step: 10_000 + step, size=40, words=RULE))
    address = reverse("session_facts", args=[row.pk]) + "?q=tenant"
    content = client.get(address).content.decode()
    assert "“tenant”" in content
    assert "lane-key" not in content
    later = html.unescape(re.search(r'hx-get="([^"]+)" hx-trigger="intersect once"', content)[1])
    assert f'<a href="{html.escape(later)}">' in content
    part = client.get(later, headers={"HX-Request": "true", "HX-Target": "ledger"}).content.decode()
    assert part.lstrip().startswith("<section")
    assert "lane-key" in part
    assert "lane-key" not in client.get(address).content.decode()  # computed by now, it would still take the most of it


def test_details_are_a_table_of_their_own(client, lost):
    assert re.search(r"src/billing/models\.py +path, +message 1 +gone", page(client, lost, "?show=details"))


def test_what_no_request_has_is_said(client, lost):
    assert "No request of the recording has “unicorns”" in page(client, lost, "?q=unicorns")


def test_a_session_without_instructions_says_so(client, store):
    text = page(client, store(session(user("hello"), model("hi"), system="You are a helpful assistant.")))
    assert "No sentence of a user or of the system prompt was recognised as an instruction." in text
    assert "None was recognised. Any other text can be followed above." in text


def test_of_a_system_prompt_that_the_file_lacks_nothing_is_said(client, store):
    text = page(client, store(session(user("hello"), model("hi"))))
    assert "No sentence of a user was recognised as an instruction. The file lacks the system prompt." in text


def test_a_replay_is_followed_under_its_own_policy(client, store):
    events = [user(f"{RULE}. Thanks."), *(each for k in range(30) for each in (user("w " * 4_000), model(f"ok {k}")))]
    row = store(session(*events, window=30_000))
    text = page(client, row, "?policy=contextguard&window=30000")
    assert "what each request still holds, replayed: ContextGuard" in text
    assert "unknown: summary not readable" in text
    assert "The words of 1 of 1 instruction are in the last request." in page(
        client, row, "?policy=contextguard&window=30000&side=recorded"
    )


def test_the_index_and_the_whole_texts_give_the_same_lanes(client, store):
    row = store(talk(compaction(3, summary="Half is done."), after={4: tool_result({"a": [f"x\n{RULE}!"]})}))
    before = page(client, row, "?q=COLUMN+tenant")
    assert row.indexed < row.events
    while row.indexed < row.events:
        index_some(row)
        row.refresh_from_db()
    assert page(client, row, "?q=COLUMN+tenant") == before
    assert "verbatim back at step 5 with message 5" in before


def test_what_too_many_messages_have_is_not_followed(client, store):
    events = [each for k in range(501) for each in (user("the zebra again"), model("the zebra"))]
    row = store(session(*events))
    while row.indexed < row.events:
        index_some(row)
        row.refresh_from_db()
    assert "More than 1,000 messages have this text" in page(client, row, "?q=zebra")


def test_texts_of_a_session_are_shown_as_text(client, store):
    attack = "Never <script>alert(1)</script> \u202e reverse"
    content = client.get(reverse("session_facts", args=[store(session(user(attack), model("ok"))).pk])).content.decode()
    assert "<script>alert" not in content
    assert "⟨U+202E⟩" in content


def test_in_a_real_recording_the_request_is_lost_at_the_second_compaction(client, long):
    text = page(client, long)
    assert re.search(r"let's go with option 1\. +request, +message 15 +gone +109 +step +110 +\( compaction 2 \)", text)


def test_lists_of_the_recording_and_of_each_replay_stay_their_own(client, lost):
    recorded, whole, sliding = ("", "?policy=none&side=replayed", "?policy=sweagent-last-n&side=replayed")
    first = [page(client, lost, query) for query in (recorded, whole, sliding)]
    assert "it is lost" in first[0]
    assert "it is lost" not in first[1]
    assert [page(client, lost, query) for query in (sliding, recorded, whole)] == [first[2], first[0], first[1]]
    assert page(client, lost, "?show=details") != first[0] == page(client, lost)
