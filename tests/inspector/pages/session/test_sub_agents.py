"""Sessions of sub-agents and the sessions that started them, linked both ways."""

import html
import re

import pytest

from guard_core.recordings.formats import native
from guard_core.sessions import SubAgent
from inspector.models import Session
from tests.builders import model, session, tool_call, tool_result, user


def main(*agents: SubAgent, name: str = "main"):
    return session(
        user("write a poem"),
        tool_call("Task", "t1", prompt="about curry"),
        tool_result("done", "Task", "t1"),
        model("here it is"),
        source_id=name,
        sub_agents=agents,
    )


def agent(name: str = "a9", parent: str = "main", **fields):
    return session(
        user("about curry"), model("Oh curry"), source_id=name, parent=parent, title=f"Agent {name}", **fields
    )


@pytest.fixture
def pair(store):
    """A session and the one that its only tool call started."""
    return store(main(SubAgent("a9", "t1", 1)), title="Poems"), store(agent(), title="of the agent")


def page(client, row, path="steps?at=2"):
    return html.unescape(client.get(row.get_absolute_url() + path).content.decode())


def test_the_call_that_started_a_sub_agent_links_to_its_session(client, pair):
    parent, child = pair
    assert (
        page(client, parent).count(f'<a href="{child.get_absolute_url()}" hx-boost="false">Session of the sub-agent')
        == 2
    )


def test_files_that_were_imported_one_after_the_other_are_linked(client, bring):
    bring(native.write(agent()), "agent-a9.jsonl")
    bring(native.write(main(SubAgent("a9", "t1", 1))), "main.jsonl")
    parent, child = Session.unscoped.get(source_id="main"), Session.unscoped.get(source_id="a9")
    assert child.get_absolute_url() in page(client, parent)
    assert parent.get_absolute_url() + '"' in page(client, child, "").partition("Started by")[2]


def test_a_sub_agents_pages_link_back_to_the_session_and_the_step_that_started_it(client, pair):
    parent, child = pair
    for path in ("", "steps"):
        text = page(client, child, path)
        assert f'Started by <a href="{parent.get_absolute_url()}">write a poem</a>' in text
        start = re.search(r'\(<a href="([^"]+)">the step</a>\)', text)[1]
        assert 'id="step" data-at="2"' in client.get(start).content.decode()


def test_the_line_below_the_tabs_names_the_sub_agents_of_a_session(client, pair):
    parent, child = pair
    assert f'Sub-agents: <a href="{child.get_absolute_url()}">Agent a9</a>' in page(client, parent, "")


def test_a_side_that_is_not_here_is_said_so(client, store):
    parent = store(main(SubAgent("gone", "t1", 1)))
    text = page(client, parent)
    assert "The session of its sub-agent (gone) is not stored here" in text
    assert "1 sub-agent without a stored session" in text
    child = store(agent(parent="elsewhere"))
    assert "Started by session elsewhere, which is not stored here" in page(client, child, "")


def test_a_deleted_side_is_not_here(client, pair):
    parent, child = pair
    Session.unscoped.filter(pk=child.pk).update(deleted=parent.created)
    assert "(a9) is not stored here" in page(client, parent)


def test_of_several_copies_the_one_of_the_same_file_is_linked(client, store):
    other = store(agent(), title="imported alone")
    parent = store(main(SubAgent("a9", "t1", 1)))
    own = store(agent(), title="beside its parent")
    Session.unscoped.filter(pk=own.pk).update(recording=parent.recording, ordinal=1)
    text = page(client, parent)
    assert own.get_absolute_url() in text
    assert other.get_absolute_url() not in text


def test_a_session_without_relations_has_no_line_for_them(client, gap):
    assert 'class="family' not in page(client, gap, "")


def test_many_sub_agents_are_folded(client, store):
    parent = store(main())
    for number in range(9):
        store(agent(f"a{number}"), title=f"of agent {number}")
    assert "<summary>9 sub-agents</summary>" in page(client, parent, "")


def test_hostile_names_stay_text(client, store):
    name = "<script>alert(1)</script>\u202e"
    text = client.get(store(main(SubAgent(name, "t1", 1))).get_absolute_url() + "steps?at=2").content.decode()
    assert "<script>alert(1)" not in text
    assert "⟨U+202E⟩" in text


@pytest.mark.parametrize("query", ["started=nothing", "started=", "started=" + "x" * 3000, "started=a9&at=1"])
def test_an_unknown_start_shows_the_first_step(client, pair, query):
    assert 'id="step" data-at="1"' in client.get(f"{pair[0].get_absolute_url()}steps?{query}").content.decode()


def test_captured_requests_and_the_agents_own_recording_of_a_session_are_linked_both_ways(client, store):
    said = user("Mend it."), model("Done.")
    own = store(session(*said, source_id="s1", format="claude-code", title="Own"), title="1")
    captured = store(session(*said, parent="s1", format="capture", title="Captured"), title="2")
    other = store(session(*said, parent="s2", format="capture", title="Of another"), title="3")
    texts = {row: " ".join(page(client, row, "").split()) for row in (own, captured, other)}
    is_linked = f'Captured requests of this session: <a href="{captured.get_absolute_url()}">Captured</a>' in texts[own]
    assert is_linked
    is_linked = f'own recording of this session: <a href="{own.get_absolute_url()}">Own</a>' in texts[captured]
    assert is_linked
    are_started = ["Started by" in text for text in texts.values()]
    assert are_started == [False] * 3
    assert texts[other].count("of this session:") == 0


def test_a_title_cannot_turn_the_order_in_which_it_is_read(client, store):
    said = user("Mend it."), model("Done.")
    turned = "a\u202egnp.exe"
    own = store(session(*said, source_id="s1", title=turned), title="1")
    child = store(session(*said, source_id="s2", parent="s1", title="Child"), title="2")
    text = page(client, child, "")
    links = re.findall(rf'<a href="{own.get_absolute_url()}">([^<]*)</a>', text)
    assert links
    assert [turned in link for link in links] == [False] * len(links)
