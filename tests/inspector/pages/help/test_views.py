"""Help, the tour and the list that goes anywhere."""

import re
from pathlib import Path

import pytest

from guard_core.facts.lanes import STATE_WORDS, SnippetState
from guard_core.rules import Agreement, KeptVerdict
from guard_core.sessions import Evidence, Provenance
from inspector.pages.help.views import SESSION_PAGES
from inspector.pages.session.frame import PAGES
from inspector.pages.shared.glossary import BY_LABEL, FINDINGS, PARTS
from inspector.pages.shared.kinds import KINDS
from inspector.pages.shared.listing import HAS, SEVERITY
from inspector.pages.shared.tour import STOPS
from inspector.templatetags.helping import meaning
from tests.inspector.pages.conftest import stored_sample

ROOT = Path(__file__).parents[4]
TERMS = [term for *_, terms in PARTS for term in terms]


def test_every_term_has_a_place_on_the_help_page(client, db):
    page = client.get("/help/").content.decode()
    assert [term.name for term in TERMS if f'id="{term.anchor}"' not in page] == []
    assert len({term.anchor for term in TERMS}) == len(TERMS)


def test_every_chip_has_its_entry():
    assert FINDINGS.keys() == KINDS.keys()
    shown = [*Provenance, *Evidence, *Agreement, *KeptVerdict, *(STATE_WORDS[state] for state in SnippetState if state)]
    named = [label for label in (*shown, *(label for label, _ in (HAS | SEVERITY).values())) if not meaning(label)]
    assert named == []


def test_a_chip_says_what_it_means_where_it_is(client, gap):
    page = client.get(gap.get_absolute_url() + "steps?at=49").content.decode()
    assert 'data-source="provider" title="Reported by the model&#x27;s provider' in page
    page = client.get(gap.get_absolute_url()).content.decode()
    assert 'title="Later calls of the turn no longer have the first words of what the user asked for."' in page


def test_every_picture_is_there(client, db):
    page, readme = client.get("/help/").text, (ROOT / "README.md").read_text()
    names = re.findall(r'src="[^"]*/(pictures/[a-z]+)[^"]*\.png"', page)
    assert len(names) == page.count("<img")
    for name in {*(f"static/{name}.png" for name in names), *re.findall(r"\((static/pictures/[^)]+)\)", readme)}:
        assert (ROOT / name).read_bytes().startswith(b"\x89PNG"), name
    assert sum((ROOT / f"static/{name}.png").stat().st_size for name in names) < 600_000  # of the 700 kB of a page


def test_a_label_belongs_to_one_term():
    assert len(BY_LABEL) == sum(1 + len(term.labels) for term in TERMS)


def test_the_labels_of_a_decision_link_to_the_glossary(client, gap):
    page = client.get(gap.get_absolute_url() + "steps?at=49").content.decode()
    assert 'href="/help/#term-correction-factor"' in page


def test_the_help_page_names_every_key_of_the_overlay(client, db):
    page = client.get("/help/").content.decode()
    assert page.count("<kbd>Home</kbd>") == 2  # on the page, and in the dialog


def test_the_tour_offers_to_open_its_sample_where_it_is_not_there(client, db):
    page = client.get("/help/tour").content.decode()
    assert 'action="/samples/unpersisted-loop/"' in page


@pytest.mark.once  # pages of one session
def test_the_tour_can_be_followed_by_its_links_alone(client, db):
    stored_sample("unpersisted-loop", "unpersisted-loop.jsonl")
    url = re.search(r'href="([^"]+\?tour=1)"', client.get("/help/tour").content.decode())[1]
    titles = []
    while url:
        page = client.get(url).content.decode()
        titles.append(re.search(r"Tour, \d of \d: ([^<]+)\.</b>", page)[1])
        following = re.search(r'btn-primary" href="([^"]+tour=\d)">Next', page)
        url = following[1] if following else ""
    assert titles == [stop.title for stop in STOPS]


@pytest.mark.parametrize(
    ("words", "place"),
    [("trig", "/triggers/"), ("hermes", "/policies/hermes"), ("watch", "/watching/"), ("webh", "/webhooks/")],
)
def test_it_goes_to_pages_and_policies_by_name(client, db, words, place):
    assert f'href="{place}"' in client.get("/go", {"q": words}).content.decode()


def test_every_page_of_a_session_that_others_link_to_is_a_place():
    missing = {f"session_{page}" for page in PAGES} - {name for _, name in SESSION_PAGES}
    assert missing == set(), "add these to SESSION_PAGES of inspector/pages/help/views.py, so that Ctrl+K leads there"


def test_it_goes_to_sessions_and_to_a_step_of_the_session_in_hand(client, gap):
    for number in ("#0", f"#{gap.calls + 1}", "#999999999"):
        assert "Step" not in client.get("/go", {"q": number, "s": str(gap.pk)}, headers={"hx-request": "true"}).text
    for words in ("#12", "12", "step 12", "Step #12"):
        page = client.get("/go", {"q": words, "s": str(gap.pk)}).content.decode()
        assert f'href="{gap.get_absolute_url()}steps?at=12"' in page
    assert f'href="{gap.get_absolute_url()}"' in client.get("/go", {"q": gap.title}).content.decode()
