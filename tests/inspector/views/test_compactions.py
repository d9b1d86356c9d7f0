"""The page of one compaction."""

import pytest


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


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("0/", "The recording has 1 compaction; addresses count from 1."),
        ("8/", "The recording has 1 compaction; addresses count from 1."),
        ("2/?side=replayed", "The replay makes 1 compaction; addresses count from 1."),
        ("1/?side=replayed&policy=none", "The replay makes no compaction."),
    ],
)
def test_an_address_of_a_compaction_that_is_not_there_says_which_ones_are(client, base, address, words):
    response = client.get(base + address)
    assert response.status_code == 404
    assert words in response.content.decode()


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
    assert '<span class="muted">#1</span>' in text
    assert '<span class="muted">#0</span>' not in text
