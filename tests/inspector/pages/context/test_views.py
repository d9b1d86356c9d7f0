"""The context page: the request of a step by class and message, what changed, and what each tool took."""

import re

import msgspec
import pytest
from django.urls import reverse

from guard_core.sessions import ToolDefinition
from guard_core.simulator.samples import SAMPLES
from tests.builders import model, session, tool_call, tool_result, transcript, user
from tests.guard_core.checker.cases import exchange
from tests.inspector.pages.conftest import stored_sample


def page(client, row, query=""):
    response = client.get(reverse("session_context", args=[row.pk]) + query)
    assert response.status_code == 200
    return response.content.decode()


def words(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


@pytest.fixture
def reading(store):
    events = (user("Look"), tool_call("read", "1", path="a"), tool_result("x" * 4_000, "read", "1"), model("Done"))
    tools = (ToolDefinition("read"), ToolDefinition("write"))
    return store(session(*events, tools=tools))


def test_the_last_request_is_shown_with_its_count_and_its_classes(client, reading):
    text = words(page(client, reading))
    assert "The request of step 2 has 1,840 prompt tokens (counted by the provider)" in text
    assert "read results" in text
    assert "added all 2" in text
    assert "Defined and never called (1): write." in text


def test_both_requests_in_the_table_of_classes_have_their_total(client, reading):
    text = page(client, reading, "?at=1")
    largest = re.search(r"The largest has ([\d,]+) at step", text)[1]
    first, last = re.findall(r'<td class="num"><b>([\d,]+)</b></td>', text)
    assert last == largest
    assert int(first.replace(",", "")) < int(largest.replace(",", ""))


@pytest.fixture
def switched(store):
    """Two models: the second has a smaller window, and counts fewer tokens than the file's content has by the first."""
    texts = [user("y" * 60_000), model("Read"), user("Go on"), model("Done"), user("Once more"), model("Short")]
    built = session(*texts, overhead=2_000)
    models = ("claude-opus-4-5-20251101", "claude-opus-4-5-20251101", "voxtral-small-24b-2507")
    counts = (22_000, 22_010, 6_000)
    changed = [
        msgspec.structs.replace(call, model=name, prompt_tokens=count)
        for call, name, count in zip(built.calls, models, counts, strict=True)
    ]
    return store(msgspec.structs.replace(built, calls=tuple(changed), model=models[0]))


def test_the_window_in_the_caption_is_that_of_the_step_and_says_so(client, switched):
    text = words(page(client, switched, "?at=3"))
    assert re.search(r"The largest has 22,010 at step 2; the window of step 3 is 32,768\.", text)
    assert "at step 2; the window is 200,000." in words(page(client, switched, "?at=1"))


def test_shares_of_a_request_never_exceed_the_whole(client, switched):
    """The provider of the second model counted less than the parts of the request add up to."""
    html = page(client, switched, "?at=3")
    sentence = re.search(r"The request of step 3 has [^.]+\.", words(html))[0]
    assert "6,000 prompt tokens (counted by the provider), 16," in sentence
    assert "fewer than its parts add up to: user text" in sentence
    assert max(int(share) for share in re.findall(r"(\d+) %", sentence)) <= 100
    shares = [int(share) for share in re.findall(r'<td class="num">(\d+)\s*%', html)]
    assert len(shares) > 3
    assert max(shares) <= 100


def test_every_tile_is_a_link_with_a_name_to_its_message(client, reading):
    html = page(client, reading)
    links = re.findall(r'<a href="([^"]+)" title="([^"]+)">', html)
    assert any(label.startswith("read results: message #3") and "#m3" in url for url, label in links)
    assert all("/steps?at=2" in url for url, _ in links)


def test_a_step_is_chosen_by_its_number_and_a_wrong_one_is_named(client, reading):
    assert "The request of step 1 has 501 prompt tokens" in words(page(client, reading, "?at=1"))
    assert "There is no step 99; showing step 2, the last." in words(page(client, reading, "?at=99"))


def test_a_replay_is_shown_by_its_own_requests(client, store):
    row = stored_sample("timing-gap")
    assert "modelled" in words(page(client, row, "?side=replayed"))


def test_a_session_without_calls_says_so(client, store):
    assert "nothing was sent" in words(page(client, store(session(user("Hello")))))


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_has_the_page_with_few_nodes_and_bytes(client, store, name):
    html = page(client, stored_sample(name))
    assert len(re.findall(r"<[a-z]", html)) <= 2_000
    assert len(html) <= 700_000


def test_a_compaction_is_named_and_the_break_of_the_cached_prefix(client, store):
    row = store(transcript())
    text = words(page(client, row, "?at=4"))
    assert "compaction 1" in text
    assert "The cached prefix broke at message 1: the cache gave" in text
    assert "154,000 tokens of the call before" in text
    assert "more than reading them from the cache" in text
    assert "The cached prefix held: the cache gave all 150,000 tokens of the call" in words(page(client, row, "?at=3"))


def test_session_text_on_it_is_escaped(client, store):
    name = "<script>alert(1)</script>"
    events = (user("Look"), tool_call(name, "1", path="a"), tool_result("x" * 4_000, name, "1"), model("Done"))
    html = page(client, store(session(*events)))
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert" in html


def test_a_result_that_is_there_twice_and_an_old_copy_of_an_edited_file_are_named(client, store):
    text = "line of the file\n" * 50
    events = [user("Look")]
    for number, name in enumerate(["Read", "Edit", "Read", "Read"]):
        result = text if name == "Read" else "done"
        events += [tool_call(name, str(number), file_path="<a>.py"), tool_result(result, name, str(number))]
    html = page(client, store(session(*events, model("Done"))))
    shown = words(html)
    assert "2 results repeat an earlier one" in shown
    assert "1 copy of a file is older than an edit of it" in shown
    assert "same call and content" in shown
    assert "<a>.py" not in html
    assert "&lt;a&gt;.py" in html


def test_the_end_of_a_long_path_says_that_it_is_cut(client, store):
    events = [user("Look")]
    for stem in ("m" * 90, "n" * 900):
        for name in ("Read", "Edit"):
            call = f"{name} {stem}"
            events += [tool_call(name, call, file_path=f"/home/{stem}.py"), tool_result("line\n" * 90, name, call)]
    shown = words(page(client, store(session(*events, model("Done")))))
    assert f" /home/{'m' * 90}.py " in shown
    assert re.search(r" …n+\.py ", shown)


def test_numbers_of_steps_and_messages_are_grouped(client, store):
    row = store(exchange(1_100, tokens=lambda step: 10_000 + step, size=40))
    for place in ("context", "difference?a=1050"):
        text = words(client.get(f"{row.get_absolute_url()}{place}").content.decode())
        assert re.search(r"step 1,\d{3}", text)
        assert re.findall(r"(?:step |#)\d{4,}", text) == []
