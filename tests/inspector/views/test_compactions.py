"""The page of one compaction."""

import pytest


@pytest.fixture
def base(gap):
    return gap.get_absolute_url() + "c/"


def test_a_recorded_compaction_names_its_evidence_and_what_is_not_recorded(client, base):
    text = client.get(base + "r0/").content.decode()
    assert "Compaction 1 of 1" in text
    assert "declared" in text
    assert "Not recorded" in text


def test_it_shows_the_summary(client, base):
    assert "[Previous conversation summary]" in client.get(base + "r0/").content.decode()


def test_a_replayed_compaction_shows_the_prompt_the_summariser_would_see(client, base):
    text = client.get(base + "p0/").content.decode()
    assert "[Conversation to summarize]" in text
    assert "[called tool: " in text
    assert "Only the size of this summary is modelled" in text


def test_it_says_what_the_summariser_never_saw(client, gap):
    text = client.get(gap.get_absolute_url() + "c/p0/?window=60000").content.decode()
    assert "What it never saw" in text
    assert "content of tool results" in text


def test_the_messages_stand_in_three_columns(client, base):
    text = client.get(base + "p0/").content.decode()
    assert all(head in text for head in (">before<", ">sent to summariser<", ">after<"))
    assert text.count('class="is-summarised"') == 60


def test_rows_can_be_windowed_without_the_page(part_of, base):
    text = part_of(base + "p0/?from=60", "rows").content.decode()
    assert "<html" not in text
    assert "61 to 97 of 97" in text


def test_neighbours_are_linked(client, coding):
    text = client.get(coding.get_absolute_url() + "c/r1/").content.decode()
    assert f'href="{coding.get_absolute_url()}c/r0/"' in text
    assert f'href="{coding.get_absolute_url()}c/r2/"' in text


@pytest.mark.parametrize("key", ["r7", "p999", "x1", "r"])
def test_a_compaction_that_is_not_there_is_not_found(client, base, key):
    assert client.get(f"{base}{key}/").status_code == 404
