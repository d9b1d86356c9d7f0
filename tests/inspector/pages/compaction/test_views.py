"""The page of one compaction."""

import html
import re

import pytest
from msgspec.structs import replace

from guard_core.counts import counted_compactions
from guard_core.events import Event, ReasoningPart, Role, TextPart
from guard_core.recordings.formats import native
from guard_core.sessions import Evidence, RecordedCompaction
from guard_core.views import Inserted, Span
from inspector.models import Session
from tests.builders import model, session, tool_call, tool_result, transcript, user
from tests.inspector.pages.conftest import counted_long


def cells(row: str) -> list[str]:
    """The texts of a table row."""
    return [html.unescape(re.sub("<[^>]+>", "", cell)).strip() for cell in re.findall(r"<t[hd][ >].*?</t[hd]>", row)]


def number(text: str) -> int:
    return int(text.replace(",", "").replace("−", "-").replace("+", "") or 0)


def bridge(text: str) -> tuple[list[str], dict[str, list[int]], list[int]]:
    """The heads, the rows by name and the total of the bridge on a page."""
    table = text[text.index("bridge-table") :]
    head, *rows = (cells(row) for row in re.findall(r"<tr>.*?</tr>", table[: table.index("</table>")], re.S))
    figures = {row[0]: [number(cell) for cell in row[1:7]] for row in rows}
    return head, figures, figures.pop("Total")


@pytest.fixture
def recorded(gap, coding):
    return [gap.get_absolute_url() + "c/1/", *(f"{coding.get_absolute_url()}c/{n}/" for n in (1, 2, 3))]


@pytest.fixture
def base(gap):
    return gap.get_absolute_url() + "c/"


def test_a_recorded_compaction_names_its_evidence_and_what_is_not_recorded(client, base):
    text = client.get(base + "1/").content.decode()
    assert "Compaction 1 of 1" in text
    assert "declared" in text
    assert "Not recorded" in text


def test_it_shows_the_summary(client, base):
    assert "[Previous conversation summary]" in client.get(base + "1/").content.decode()


def test_a_replayed_compaction_shows_the_prompt_the_summariser_would_see(client, base):
    text = client.get(base + "1/?side=replayed").content.decode()
    assert "[Conversation to summarize]" in text
    assert "[called tool: " in text
    assert "Only the size of this summary is modelled" in text


def test_it_says_what_the_summariser_never_saw(client, gap):
    text = client.get(gap.get_absolute_url() + "c/1/?window=60000&side=replayed").content.decode()
    assert "What it never saw" in text
    assert "content of tool results" in text


def test_the_messages_stand_in_three_columns(client, base):
    text = client.get(base + "1/?side=replayed").content.decode()
    assert all(head in text for head in (">before<", ">sent to summariser<", ">after<"))
    assert text.count('class="is-summarised"') == 60


def test_rows_can_be_windowed_without_the_page(part_of, base):
    text = part_of(base + "1/?side=replayed&from=61", "rows").content.decode()
    assert "<html" not in text
    assert "61 to 97 of 97" in text


def test_neighbours_are_linked(client, coding):
    text = client.get(coding.get_absolute_url() + "c/2/").content.decode()
    assert f'href="{coding.get_absolute_url()}c/1/"' in text
    assert f'href="{coding.get_absolute_url()}c/3/"' in text


@pytest.mark.parametrize("query", ["", "?side=replayed", "?side=replayed&window=60000"])
def test_every_row_and_every_column_of_the_bridge_adds_up(client, recorded, query):
    for address in recorded:
        _, rows, total = bridge(client.get(address + query).content.decode())
        assert len(rows) > 4
        assert all(sum(row[:5]) == row[5] for row in rows.values())
        assert [sum(column) for column in zip(*rows.values(), strict=True)] == total
        assert sum(total[:5]) == total[5]


def test_the_bridge_begins_and_ends_with_the_counts_of_the_two_requests(client, base):
    heads, rows, total = bridge(client.get(base + "1/").content.decode())
    assert (heads[1], heads[6]) == ("before, step 48", "after, step 49")
    assert (total[0], total[5]) == (140_000, 3_098)
    assert rows["Tool results"][2] < -30_000


def test_recorded_and_replayed_compactions_have_the_same_columns(client, base):
    recorded, *_ = bridge(client.get(base + "1/").content.decode())
    replayed, *_ = bridge(client.get(base + "1/?side=replayed").content.decode())
    assert recorded == replayed


def test_every_figure_of_the_bridge_has_its_source(client, base):
    for query in ("", "?side=replayed"):
        text = client.get(base + "1/" + query).content.decode()
        rows = re.findall(r"<tr>.*?</tr>", text[text.index("bridge-table") : text.index("<tfoot>")], re.S)[1:]
        assert rows
        assert all(re.search(r'data-source="[a-z ]+"', row) for row in rows)


def test_where_only_a_total_is_recorded_the_fixed_part_rests_on_it_and_the_messages_are_assumed(client, store):
    events = (user("go"), tool_call(), tool_result("x" * 6_000), model("done"), user("and now?"), model("yes"))
    value = _compacted(session(*events), [None] * 3)
    row = store(replace(value, prompt_tokens_total=90_000, total_calls=3))
    text = client.get(row.get_absolute_url() + "c/1/").content.decode()
    table = text[text.index("bridge-table") : text.index("<tfoot>")]
    fixed, *others = [row for row in re.findall(r"<tr>.*?</tr>", table, re.S) if "data-source" in row]
    assert "System prompt" in fixed
    assert 'data-source="session total"' in fixed
    assert others
    assert not any("session total" in row or "attributed" in row for row in others)


def test_the_policys_own_estimate_is_named_beside_the_prompt_tokens(client, base):
    text = client.get(base + "1/?side=replayed").content.decode()
    assert re.search(r"by its own estimate: 180,018 ≥ 180,000 \(UTF-8 bytes // 4 = 90,009, factor 2.000\)", text)
    assert "tokens est." not in text


def test_what_the_request_after_it_holds_beyond_the_file_is_named(client, store):
    events = (user("go"), tool_call(), tool_result("x" * 6_000), model("done"), user("and now?"), model("yes"))
    value = session(*events)
    attached = [call.prompt_tokens + (5_000 if call.at > 4 else 0) for call in value.calls]
    row = store(_compacted(value, attached))
    text = client.get(row.get_absolute_url() + "c/1/").content.decode()
    _, rows, _ = bridge(text)
    assert rows["Not explained by this file"][5] > 3_000
    assert re.search(r"[\d,]+ tokens of the first request after it are not in this file", text)


def test_a_summary_that_is_not_readable_has_no_size_and_no_cause_is_made_up_for_its_tokens(client, store):
    events = (user("go"), tool_call(), tool_result("x" * 6_000), model("done"), user("and now?"), model("yes"))
    value = session(*events)
    value = _compacted(value, [call.prompt_tokens + (5_000 if call.at > 4 else 0) for call in value.calls])
    sealed = Event(Role.USER, (ReasoningPart("", opaque_bytes=900),), meta=True)
    item = replace(value.compactions[0], kind="opaque", messages=(sealed,))
    row = store(replace(value, compactions=(item,)))
    text = client.get(row.get_absolute_url() + "c/1/").content.decode()
    assert "size unknown" in text
    assert "0 bytes" not in text
    assert "The summary, which is not readable, is among them" in text
    _, rows, total = bridge(text)
    assert "Not explained by this file, including the summary, which is not readable" in rows
    assert not any(name.startswith("Summary, inserted") for name in rows)
    assert sum(total[:5]) == total[5]


def _compacted(value, tokens):
    """The session with a summary in place of its first four messages and other counts."""
    summary = Event(Role.USER, (TextPart("What was done."),), meta=True)
    item = RecordedCompaction(4, Evidence.DECLARED, "summary", (Inserted(0), Span(3, 4)), (summary,), "auto")
    calls = [replace(call, prompt_tokens=count) for call, count in zip(value.calls, tokens, strict=True)]
    return replace(value, calls=tuple(calls), compactions=(item,))


def test_a_compaction_at_the_end_says_that_no_call_came(client, store):
    value = session(user("go"), tool_call(), tool_result("x" * 6_000), model("done"))
    row = store(_compacted(value, [call.prompt_tokens for call in value.calls]))
    text = client.get(row.get_absolute_url() + "c/1/").content.decode()
    assert "There is no call after it" in text
    *_, total = bridge(text)
    assert sum(total[:5]) == total[5]


@pytest.mark.parametrize(("counted", "words"), [(168_123, "168,123"), (None, "–")])
def test_what_a_compaction_before_the_file_removed_is_not_made_up(client, store, counted, words):
    value = session(user("go"), tool_call(), tool_result("x" * 6_000), model("done"))
    note = "the history before this compaction is not in the file"
    item = RecordedCompaction(
        0, Evidence.DECLARED, "summary", (Inserted(0),), (user("What was done"),), "auto", counted, note=note
    )
    text = client.get(store(replace(value, compactions=(item,))).get_absolute_url() + "c/1/").content.decode()
    head = text[text.index('class="change"') : text.index("bridge-title")]
    (figure,) = re.findall(r'without the compaction</span><span class="value num">([^<]+)<', head)
    assert figure == words
    assert "what it removed is not in the file" in head
    assert "remaining" not in head
    assert "The history before this compaction is not in the file." in head
    assert "were removed" not in text
    assert "what it saved is unknown" in text


def test_edits_of_the_history_are_no_compactions_on_tab_badge_and_page(client, store):
    value = session(*(event for n in range(4) for event in (user(f"q{n}"), model(f"a{n}"))))
    edit, real = (
        RecordedCompaction(at, Evidence.INFERRED, kind, (Span(1, at),)) for at, kind in ((2, "edit"), (4, "trim"))
    )
    row = store(replace(value, compactions=(edit, real)))
    text = client.get(row.get_absolute_url() + "c/1/").content.decode()
    assert "Compaction 1 of 1" in text
    assert 'Compactions <span class="badge">1</span>' in text
    assert "step 3" in bridge(text)[0][6]
    assert client.get(row.get_absolute_url() + "c/2/").status_code == 404


def test_a_real_session_adds_up_to_what_its_agent_wrote_down(client, long):
    for place, compaction in enumerate(counted_long().facts.session.compactions, 1):
        text = client.get(f"{long.get_absolute_url()}c/{place}/").content.decode()
        *_, total = bridge(text)
        assert sum(total[:5]) == total[5]
        assert abs(total[0] + total[1] - compaction.tokens_before) < 0.01 * compaction.tokens_before
        assert f"The agent&#x27;s own figures: {compaction.tokens_before:,} tokens before." in text


def test_the_card_of_a_compacting_step_compares_no_count_from_after_with_an_estimate_from_before(client, long):
    steps = long.get_absolute_url() + "steps?policy=contextguard&at="
    text = client.get(steps + "27").content.decode()
    assert "too high" not in text
    assert "The request that was sent had 49,879 prompt tokens." in text
    assert "the decision tokens were" in client.get(steps + "26").content.decode()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("0/", "The recording has 1 compaction, numbered from 1."),
        ("8/", "The recording has 1 compaction, numbered from 1."),
        ("2/?side=replayed", "The replay makes 1 compaction, numbered from 1."),
        ("1/?side=replayed&policy=none", "The replay makes no compaction."),
    ],
)
def test_an_address_of_a_compaction_that_is_not_there_says_which_ones_are(client, base, address, words):
    response = client.get(base + address)
    assert response.status_code == 404
    assert words in response.content.decode()
    assert f'href="{base.removesuffix("c/")}">Back<' in response.content.decode()


@pytest.mark.parametrize("key", ["x1", "r", "-1", "1.5", "9" * 5000])
def test_an_address_that_names_no_compaction_is_not_found(client, base, key):
    assert client.get(f"{base}{key}/").status_code == 404


@pytest.mark.parametrize(
    ("old", "new"), [("r0/", "1/"), ("p0/?window=60000", "1/?window=60000&side=replayed"), ("r2/", "3/")]
)
def test_addresses_of_earlier_versions_which_counted_from_0_lead_to_the_same_compaction(client, base, old, new):
    response = client.get(base + old)
    assert (response.status_code, response["Location"]) == (301, base + new)


def test_messages_are_counted_from_1(client, base):
    text = client.get(base + "1/?side=replayed").content.decode()
    assert re.search(r'href="/s/[^"]*/messages/1/parts/1\?as=raw" data-read data-key="r">\s*\w+ #1\s*</a>', text)
    assert not re.search(r"/messages/0/|\w #0\b", text)


def test_the_list_the_tab_the_badge_the_overview_and_the_page_count_the_same_compactions(client, store):
    value = session(*(event for n in range(5) for event in (user(f"q{n}"), model(f"a{n}"))))
    kinds = ((2, "edit"), (4, "trim"), (4, "trim"), (10, "summary"))  # an edit, two at once, one at the end
    compactions = [RecordedCompaction(at, Evidence.DECLARED, kind, (Span(1, at),)) for at, kind in kinds]
    row = store(replace(value, compactions=tuple(compactions)))
    overview = client.get(row.get_absolute_url()).content.decode()
    assert 'Compactions <span class="badge">3</span>' in overview
    assert re.search(r"<dt>compactions</dt>\s*<dd><span class=\"value num\">3</span>", overview)
    assert re.search(r'<span class="badge badge-compaction[^"]*">3 compactions</span>', overview)
    assert 'class="col-compactions num">3 <' in client.get("/").content.decode()
    for number in (1, 2, 3):
        assert f"Compaction {number} of 3" in client.get(f"{row.get_absolute_url()}c/{number}/").content.decode()


def test_one_message_is_one_message_and_a_session_without_calls_has_no_step(client, bring):
    cut = RecordedCompaction(2, Evidence.DECLARED, "summary", (Inserted(0), Span(1, 2)), (user("done", meta=True),))
    value = replace(session(user("one"), user("two"), user("three")), calls=(), compactions=(cut,))
    bring(native.write(value), "silent.json")
    text = client.get(Session.unscoped.get().get_absolute_url() + "c/1/").content.decode()
    assert "1 message ·" in text
    assert "1 messages" not in text
    assert "Step 1" not in text


def test_the_tile_of_tokens_saved_is_the_sum_of_the_pages(client, coding):
    address = coding.get_absolute_url()
    tile = re.search(r"tokens saved by compaction</dt>.*?([\d,]+)", client.get(address).content.decode(), re.S)
    saved = 0
    for place in (1, 2, 3):
        total = bridge(client.get(f"{address}c/{place}/").content.decode())[2]
        saved += total[0] + total[1] - total[5]  # before and what was added since, less what was sent after
    assert number(tile.group(1)) == saved


def test_a_recorded_compaction_is_explained_by_the_rule_of_its_agent(client, store):
    text = client.get(store(transcript()).get_absolute_url() + "c/1/").content.decode()
    assert "By the rule of Claude Code: 155,010 ≥ 155,000 = 200,000 − 32,000 (max output) − 13,000." in text
    assert "What was kept: as the rule says." in text
    assert "rule?at=4" in text
    unknown = store(transcript("homemade"), title="another")
    assert "By the rule of" not in client.get(unknown.get_absolute_url() + "c/1/").content.decode()


@pytest.mark.parametrize(
    ("trigger", "badge", "words"),
    [
        ("auto", "automatic", "1 automatic"),
        ("threshold", "automatic (threshold)", "1 automatic"),
        ("manual", "manual", "1 manual"),
        ("", "unknown trigger", "1 of unknown trigger"),
    ],
)
def test_badge_overview_and_command_line_count_a_trigger_alike(client, store, trigger, badge, words):
    built = transcript(trigger=trigger)
    row = store(built)
    assert f">{badge}</span>" in client.get(row.get_absolute_url() + "c/1/").content.decode()
    assert words in client.get(row.get_absolute_url()).content.decode()
    assert words in counted_compactions(built).split
