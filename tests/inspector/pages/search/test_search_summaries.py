"""Recorded summaries and inserted messages are searched, and a hit leads to its compaction."""

import pytest
from django.urls import reverse

from guard_core.recordings.formats import native
from inspector.jobs import assessing
from inspector.models import Session, SummaryText
from tests.guard_core.findings.cases import compaction
from tests.guard_core.findings.test_requests import talk


@pytest.fixture
def summarised(bring):
    """Two compactions; only the second summary speaks of a café."""
    cuts = (compaction(3, summary="half is done"), compaction(5, summary="We renamed the *Café* module <b>today</b>"))
    bring(native.write(talk(*cuts)), "summarised.json")
    return Session.unscoped.get()


def found(client, words, row=None):
    address = reverse("search") if row is None else reverse("session_search", args=[row.pk])
    return client.get(address, {"q": words}).content.decode()


@pytest.mark.parametrize("words", ["renamed cafe", "renam", '"cafe module"'])
def test_a_hit_in_a_summary_links_to_its_compaction(client, summarised, words):
    for text in (found(client, words), found(client, words, summarised)):
        assert f'href="{reverse("compaction", args=[summarised.pk, 2])}">Compaction 2</a>' in text
        assert "<b>today" not in text
        assert "<mark>" in text


@pytest.mark.parametrize("words", ["cafeteria", '"module cafe"', "renamed tomorrow", '"renam"'])
def test_other_words_find_nothing(client, summarised, words):
    assert "Compaction 2</a>" not in found(client, words)
    assert "Compaction 2</a>" not in found(client, words, summarised)


def test_messages_and_summaries_are_counted_together(client, summarised):
    assert "Compaction 1</a>" in found(client, "half", summarised)
    assert "1 m" in found(client, "half", summarised)


def test_summaries_stored_by_an_older_version_are_read_in_a_job(client, summarised):
    SummaryText.unscoped.all().delete()
    Session.unscoped.update(requests=None, assessed_by="")
    assert "Compaction 2</a>" not in found(client, "cafe")
    assessing.ASSESSMENTS.run("test")
    assert "Compaction 2</a>" in found(client, "cafe")


def test_a_deleted_session_is_not_found_by_its_summaries(client, summarised):
    Session.unscoped.filter(pk=summarised.pk).update(deleted=summarised.created)
    assert "Compaction 2</a>" not in found(client, "cafe")


def test_a_session_whose_messages_have_the_words_too_is_listed_once(client, summarised):
    text = found(client, "done")
    assert text.count(f'<h2><a href="{summarised.get_absolute_url()}">') == 1
