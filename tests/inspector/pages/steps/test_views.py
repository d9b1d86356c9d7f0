"""The stepper."""

import re

import pytest
from msgspec.structs import replace

from guard_core.sessions import Evidence, ModelCall, RecordedCompaction, Session
from guard_core.triggers import RESUME
from guard_core.views import Inserted, Span
from tests.builders import model, session, tool_call, tool_result, transcript, user
from tests.guard_core.checker.cases import clearing


@pytest.fixture
def steps(gap):
    return gap.get_absolute_url() + "steps"


def test_the_decision_card_shows_the_arithmetic_with_its_sources(client, steps):
    text = client.get(steps + "?at=49").content.decode()
    assert "180,018 ≥ 180,000" in text
    assert "clamp(2.0000, 1, 5)" in text
    assert "measured at step 48" in text
    assert 'data-source="provider"' in text


def test_it_says_what_the_stale_count_would_have_said(client, steps):
    assert "would not have compacted" in client.get(steps + "?at=49").content.decode()


def test_a_step_below_the_threshold_says_how_much_room_is_left(client, steps):
    assert re.search(
        r"ContextGuard would not compact: [\d,]+ tokens remain", client.get(steps + "?at=11").content.decode()
    )


def test_a_key_swaps_only_the_panes_of_the_step(part_of, steps):
    text = part_of(steps + "?at=8", "step").content.decode()
    assert "<html" not in text
    assert 'id="step" data-at="8"' in text
    assert "<title>Step 8" in text
    assert 'id="steps"' not in text


def test_every_key_of_the_stepper_is_a_link(client, steps):
    text = client.get(steps + "?at=21").content.decode()
    assert f'data-key="j ArrowDown" title="next step (j)" href="{steps}?at=22"' in text
    assert f'data-key="]" title="next compaction (])" href="{steps}?at=49"' in text
    assert f'data-key="End" title="last step (End)" href="{steps}?at=55"' in text


def test_the_links_of_each_part_have_a_name_of_their_own(client, steps):
    """Read out alone, as in a list of links, "Read" twenty times over names nothing."""
    text = client.get(steps + "?at=21").content.decode()
    links = re.findall(r'<a\s+class="more[^>]*>(.*?)</a>', text, re.S)
    names = [" ".join(re.sub(r"<[^>]+>", "", link).split()) for link in links]
    assert {"Read: system prompt, part 1", "Read: message 18, part 1"} <= set(names)
    assert len(names) == len(set(names)) > 10


def test_settings_of_the_replay_stay_in_the_links(client, steps):
    assert f"{steps}?window=100000&amp;at=22" in client.get(steps + "?at=21&window=100000").content.decode()


def test_what_is_no_longer_in_the_request_can_be_seen(client, steps):
    text = client.get(steps + "?at=51&show=gone").content.decode()
    assert "removed 97" in text
    assert 'title="no longer sent; a summary replaced it">summarised' in text


def test_what_a_trim_removed_is_not_said_to_be_summarised(client, store):
    value = session(*(event for n in range(3) for event in (user(f"q{n}"), model(f"a{n}"))))
    trim = RecordedCompaction(2, Evidence.DECLARED, "trim", ())
    row = store(replace(value, compactions=(trim,)))
    text = client.get(row.get_absolute_url() + "steps?at=3&show=gone").content.decode()
    assert text.count('title="no longer sent, and no summary was made of it">dropped') == 2
    assert "summarised" not in text


def test_a_long_message_that_a_compaction_inserted_can_be_read_whole(client, store):
    text = "".join(f"line {number}\n" for number in range(3_000))
    value = session(user("go"), model("one"), user("and"), model("two"))
    item = RecordedCompaction(2, Evidence.DECLARED, "summary", (Inserted(0),), (user(text),))
    base = store(replace(value, compactions=(item,))).get_absolute_url()
    link = re.search(r'hx-get="([^"]+/messages/1/parts/1\?from=900)"', client.get(base + "steps?at=2").content.decode())
    whole = text[:900]
    while link is not None:
        piece = client.get(link[1]).content.decode()
        whole += re.search(r"<pre>(.*)</pre>", piece, re.S)[1]
        link = re.search(r'hx-get="([^"]+)"', piece)
    assert whole == text


@pytest.mark.parametrize("place", ["0/messages/1", "3/messages/1", "2/messages/0", "2/messages/9", "1/messages/1"])
def test_a_message_that_no_request_has_is_not_found(client, store, place):
    value = session(user("go"), model("one"), user("and"), model("two"))
    item = RecordedCompaction(2, Evidence.DECLARED, "summary", (Inserted(0),), (user("short"),))
    base = store(replace(value, compactions=(item,))).get_absolute_url()
    assert client.get(f"{base}steps/{place}/parts/1").status_code == 404


def test_the_step_from_which_on_results_are_cleared_says_so(client, store):
    address = store(clearing()).get_absolute_url()
    assert "Tool results of 2 messages cleared or shortened" in client.get(address).text
    page = client.get(f"{address}steps?at=4").text
    assert "the tool results of 2 older messages were cleared or shortened, about " in page
    assert "cleared or shortened" not in client.get(f"{address}steps?at=3").text


def test_the_replayed_side_shows_its_own_request(client, steps):
    text = client.get(steps + "?at=51&side=replayed").content.decode()
    assert "The replay&#x27;s decision" in text or "The replay's decision" in text


def test_what_happened_on_the_other_side_alone_is_marked_as_such(client, steps):
    """Under a window of 1,000,000 the replay does not compact at step 49, as the recorded agent did."""
    recorded = client.get(steps + "?at=49&window=1000000").content.decode()
    replayed = client.get(steps + "?at=49&window=1000000&side=replayed").content.decode()
    assert '<span class="badge badge-compaction">▼ compaction</span>' in recorded
    assert '<span class="badge badge-compaction badge-outline">▼ compaction, recorded</span>' in replayed
    assert '<span class="badge badge-compaction">▼' not in replayed


def test_a_modelled_summary_counts_by_its_modelled_size(client, steps):
    text = client.get(steps + "?at=49&side=replayed").content.decode()
    size = int(re.search(r"\(([\d,]+) bytes; only the size", text)[1].replace(",", ""))
    assert f"est. <b>{size // 4:,}</b>" in text


@pytest.mark.parametrize(
    ("typed", "shown", "words"),
    [
        ("999999", 55, "There is no step 999,999; showing step 55, the last."),
        ("56", 55, "There is no step 56; showing step 55, the last."),
        ("0", 1, "There is no step 0; showing step 1, the first."),
        ("minus", 1, "“minus” is not the number of a step; showing step 1, the first."),
        ("-3", 1, "“-3” is not the number of a step; showing step 1, the first."),
        ("1.5", 1, "“1.5” is not the number of a step; showing step 1, the first."),
        ("9" * 400, 1, f"“{'9' * 20}” is not the number of a step; showing step 1, the first."),
    ],
)
def test_an_address_of_a_step_that_is_not_there_shows_the_nearest_and_says_so(client, steps, typed, shown, words):
    response = client.get(f"{steps}?at={typed}")
    text = response.content.decode()
    assert response.status_code == 200
    assert f'id="step" data-at="{shown}"' in text
    assert words in text


@pytest.mark.parametrize("address", ["", "?at=1", "?at=55", "?at=01"])
def test_an_address_of_a_step_that_is_there_needs_no_words(client, steps, address):
    assert "; showing step" not in client.get(steps + address).content.decode()


def test_the_first_step_is_step_1_of_all_everywhere_on_its_page(client, steps):
    text = client.get(steps + "?at=1").content.decode()
    assert "<title>Step 1 –" in text
    assert re.search(r"<h1>Step 1 <span[^>]*>of 55 · user turn 1 of", text)
    assert '<span class="num">1 / 55</span>' in text
    assert f'href="{steps}?at=1" data-step="1" aria-current="step"' in text
    assert '<span class="step-n">0</span>' not in text
    assert 'id="m1"' in text
    assert "#1</span>" in text
    assert "#0</span>" not in text


def test_the_list_is_a_window_with_room_for_the_rest(client, coding):
    text = client.get(coding.get_absolute_url() + "steps?at=144").content.decode()
    assert text.count('class="step"') + text.count('class="step ') == 72
    assert 'style="height:2016px"' in text


def test_another_window_of_the_list_can_be_fetched(client, coding):
    text = client.get(coding.get_absolute_url() + "steps/list?from=11&at=13").content.decode()
    assert 'data-from="11" data-to="82"' in text


def listed(text: str) -> list[int]:
    return [int(step) for step in re.findall(r'data-step="(\d+)"', text)]


def test_a_filter_leaves_the_steps_of_its_kind_in_the_list(client, coding):
    path = coding.get_absolute_url() + "steps"
    text = client.get(path + "?at=5&list=compactions").content.decode()
    assert listed(text) == [38, 86, 125] == listed(client.get(path + "/list?at=5&list=compactions").content.decode())
    assert "?at=6&amp;list=compactions" in text  # the next step, and the filter stays
    assert re.search(r'aria-current="true"\s*>compactions 3</a>', text)


def test_filters_that_leave_nothing_are_not_offered_and_ask_for_all_steps(client, coding):
    path = coding.get_absolute_url() + "steps"
    text = client.get(path).content.decode()
    assert "list=turns" in text
    assert "list=comments" not in text
    assert listed(text) == listed(client.get(path + "?list=comments").content.decode())
    assert listed(text) == listed(client.get(path + "?list=<b>").content.decode())


def test_the_rows_around_a_step_of_a_filtered_list_can_be_fetched(client, store):
    events = [event for number in range(200) for event in (user(f"do {number}"), model("done"))]
    calls = tuple(ModelCall(2 * step + 1, 2 * step + 1, 1_000 + step) for step in range(200))
    path = store(session(*events, calls=calls)).get_absolute_url() + "steps"
    rows = listed(client.get(path + "/list?list=turns&around=150").content.decode())
    assert 150 in rows
    assert len(rows) == 72


def test_earlier_messages_come_in_pieces(client, coding):
    each = 'class="message message-'
    shown = client.get(coding.get_absolute_url() + "steps?at=37").content.decode()
    sent = int(re.search(r"in this request (\d+)", shown)[1])
    messages = [shown.count(each)]
    while link := re.search(r'hx-get="([^"]+only=earlier)"', shown):
        shown = client.get(link[1].replace("&amp;", "&")).content.decode()
        assert "<html" not in shown
        messages.append(shown.count(each))
    assert len(messages) > 2
    assert sum(messages) == sent


def test_a_long_part_is_folded_and_comes_whole(client, store):
    text = "".join(f"line {number}\n" for number in range(5_000))
    row = store(session(user("go"), tool_call(), tool_result(text), model("done")))
    shown = client.get(row.get_absolute_url() + "steps?at=2").content.decode()
    link = re.search(r'hx-get="([^"]+/parts/1\?from=900)"', shown)
    beginning = text[:900]
    while link is not None:
        piece = client.get(link[1]).content.decode()
        beginning += re.search(r"<pre>(.*)</pre>", piece, re.S)[1]
        link = re.search(r'hx-get="([^"]+)"', piece)
    assert beginning == text


def test_hostile_text_stays_text(client, store):
    row = store(session(user("<script>alert(1)</script>\u202e\x1b[31m"), model("ok", reasoning="<b>x</b>")))
    text = client.get(row.get_absolute_url() + "steps?at=1").content.decode()
    assert "<script>alert(1)" not in text
    assert "⟨U+202E⟩␛[31m" in text


def test_a_session_without_model_calls_says_so(client, store):
    row = store(session(user("hello")))
    assert "No model calls" in client.get(row.get_absolute_url() + "steps").content.decode()


def test_a_part_that_is_not_there_is_not_found(client, gap):
    assert client.get(gap.get_absolute_url() + "messages/99999/parts/1").status_code == 404
    assert client.get(gap.get_absolute_url() + "messages/1/parts/9").status_code == 404
    assert client.get(gap.get_absolute_url() + "messages/0/parts/1").status_code == 404
    for address in ("messages/1/parts/0", "steps/1/messages/1/parts/0", "system/parts/0"):
        assert client.get(gap.get_absolute_url() + address).status_code == 404


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("messages/2/part/0?as=raw&window=100000", "messages/2/parts/1?as=raw&window=100000"),
        ("steps/3/messages/1/part/1", "steps/3/messages/1/parts/2"),
        ("system/0", "system/parts/1"),
    ],
)
def test_an_old_address_of_a_part_leads_to_the_part_that_it_named(client, gap, old, new):
    answer = client.get(gap.get_absolute_url() + old)
    assert (answer.status_code, answer["Location"]) == (301, gap.get_absolute_url() + new)
    assert client.get(f"/s/00000000-0000-0000-0000-000000000000/{old}").status_code == 404


def test_the_replayed_view_shows_what_the_replay_would_have_sent_in_list_head_and_strip(client, gap):
    """With a window of 100,000 tokens the replay compacts long before the recording does."""
    steps = gap.get_absolute_url() + "steps?window=100000&at=40"
    recorded, replayed = (client.get(steps + side).content.decode() for side in ("", "&side=replayed"))
    counts = [re.findall(r'step-tokens">([^<]+)<', text) for text in (recorded, replayed)]
    assert not any("≈" in count for count in counts[0])
    first = next(step for step, count in enumerate(counts[1]) if "≈" in count)
    assert counts[1][:first] == counts[0][:first]
    assert all("≈" in count for count in counts[1][first:])
    assert counts[0][39] != counts[1][39].removeprefix("≈")
    head = re.findall(r"<span>([\d,]+ prompt tokens \([a-z]+\))</span>", replayed)
    assert head[0].endswith("(modelled)")
    assert re.search(r"recorded: [\d,]+ prompt tokens \(provider\)", replayed)
    assert "Replayed prompt tokens (modelled) over 55 steps, 2 compactions marked" in replayed
    assert "Recorded prompt tokens over 55 steps, 1 compaction marked" in recorded


def resumed() -> Session:
    """A session that was resumed before its third call, with the result of a tool repeated."""
    value = session(user("Read it"), tool_call("read_file", "1"), tool_result("text", "read_file", "1"), model("a"))
    events = (*value.events, user("And the next"), model("b"))
    calls = tuple(ModelCall(at, at, tokens) for at, tokens in ((1, 900), (3, 950), (5, 1_200)))
    base = (Span(0, 3), Inserted(0), Span(3, 4))
    again = RecordedCompaction(4, Evidence.INFERRED, "edit", base, (events[2],), trigger=RESUME)
    return replace(value, events=events, calls=calls, compactions=(again,))


def test_what_a_resumed_session_repeats_is_not_said_to_come_from_a_compaction(client, store):
    text = client.get(store(resumed()).get_absolute_url() + "steps?at=3").content.decode()
    assert "repeated by the resumed history" in text
    assert "inserted by the recorded compaction" not in text


def test_a_replay_without_compaction_of_a_resumed_session_is_what_was_recorded(client, store):
    text = client.get(store(resumed()).get_absolute_url() + "?policy=none").content.decode()
    assert "every request is the same" in text
    assert "modelled from step" not in text


def test_a_replayed_step_before_the_first_difference_shows_the_recorded_count_as_recorded(client, steps):
    text = client.get(steps + "?at=40&side=replayed&window=180001").content.decode()
    line = text.partition('class="facts-line"')[2].partition("</div>")[0]
    first = text.partition('data-step="1"')[2].partition("</a>")[0]
    assert "prompt tokens (provider)" in line
    assert "modelled" not in line
    assert "≈" not in first


def test_a_replayed_step_after_it_says_which_figures_are_recorded(client, steps):
    text = client.get(steps + "?at=50&side=replayed").content.decode()
    line = text.partition('class="facts-line"')[2].partition("</div>")[0]
    assert "prompt tokens (modelled)" in line
    assert re.search(r"<span>recorded: [\d,]+ prompt tokens \(provider\)(, \d+.% from cache)?</span>", line)


# -- the rule of the recording's own agent


def test_the_decision_of_a_recording_is_by_its_own_rule(client, store):
    text = client.get(store(transcript()).get_absolute_url() + "steps?at=4").content.decode()
    assert "155,010 ≥ 155,000 = 200,000 − 32,000 (max output) − 13,000" in text
    assert "Claude Code compacted here: the count reached the threshold." in text
    assert "measured at step 3" in text
    assert "ContextGuard would" not in text
    assert "Settings used" not in text


def test_a_policy_that_is_chosen_stands_beside_it(client, store):
    text = client.get(store(transcript()).get_absolute_url() + "steps?at=4&policy=contextguard").content.decode()
    assert "Claude Code compacted here" in text
    assert "ContextGuard on the same request" in text
    assert "Settings used" in text


def test_of_an_unknown_rule_the_card_says_what_was_counted(client, store):
    text = client.get(store(transcript("homemade")).get_absolute_url() + "steps?at=4").content.decode()
    assert "The rule of this agent is not known" in text
    assert "154,000 prompt tokens" in text
    assert "the threshold is above 150,000 and at most 154,000" in text
