"""A viewer is shown no form, button or link whose address would refuse a viewer: every page, by the table of rules."""

from __future__ import annotations

import re
from contextlib import suppress
from html.parser import HTMLParser
from types import SimpleNamespace
from urllib.parse import urljoin, urlsplit

import pytest
from django.urls import Resolver404, get_resolver
from msgspec.structs import replace

from guard_core.recordings.formats import native
from guard_core.sessions import ModelCall
from guard_core.simulator.scenarios import SCENARIOS
from inspector.accounts import access
from inspector.models import AccountRole, GalleryRun, Import, Session, Share, Sweep, default_project
from inspector.pages.gallery import runs, views
from inspector.pages.gallery.table import PolicyChoice, rows_for
from inspector.sharing import making
from tests.builders import model, session, transcript, user
from tests.inspector.pages.conftest import stored
from tests.inspector.pages.share.tools import session_with_secrets
from tests.inspector.pages.test_hostile_requests import addresses, undone
from tests.inspector.people import browser, person

pytestmark = [pytest.mark.django_db, pytest.mark.once]
SENDS = ("hx-post", "hx-put", "hx-patch", "hx-delete")
NONE = PolicyChoice("none", "")
NOT_THERE = r"/comments/|/r999999|/1" + "0" * 30
ROLES = (AccountRole.VIEWER, AccountRole.EDITOR, AccountRole.OWNER)


class Offers(HTMLParser):
    """The requests that a page offers: method and address."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.page = page
        self.found: set[tuple[str, str]] = set()
        self.method = "get"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.method = given.get("method", "get").lower()
            self._add(self.method, given.get("action") or self.page)
        elif tag in ("button", "input") and "formaction" in given:
            self._add(given.get("formmethod", self.method), given["formaction"])
        elif tag == "a" and "href" in given:
            self._add("get", given["href"])
        for name in SENDS:
            if name in given:
                self._add("post", given[name])
        if "hx-get" in given:
            self._add("get", given["hx-get"])

    def _add(self, method: str, address: str) -> None:
        if method.upper() in ("GET", "POST"):  # a dialog's form sends nothing
            self.found.add((method.upper(), urljoin(self.page, address)))


def requests_of(page: str, html: str) -> set[tuple[str, str]]:
    """What a page offers: method and name of the address."""
    offers = Offers(page)
    offers.feed(html)
    named = set()
    for method, address in offers.found:
        parts = urlsplit(address)
        with suppress(Resolver404):  # a static file
            named |= set() if parts.netloc else {(method, get_resolver().resolve(parts.path).view_name)}
    return named


def refused(offers: set[tuple[str, str]], role: AccountRole) -> set[tuple[str, str]]:
    """Those that the table refuses to a role."""
    addresses = set()
    for method, name in offers:
        rule = access.rule_of(name)
        needed = rule.look if method == "GET" else rule.change
        if needed in ROLES and AccountRole(needed).rank > role.rank:
            addresses.add((method, name))
    return addresses


def no_window() -> bytes:
    """A recording of a model that nobody knows, whose prompts leave its window open."""
    call = ModelCall(at=1, response=1, prompt_tokens=60_000, model="model-of-our-own")
    value = session(user("hello"), model("here"), title="no window", model=call.model, calls=(call,))
    return native.write(replace(value, window=None))


@pytest.fixture
def there(bring, team, team_handler, settings):
    """A project in which something of every kind is at hand or under way, and a browser of each role."""
    settings.RATE_CHANGES, settings.ANSWER_WAIT_SECONDS = 1_000_000, 0
    project = default_project()
    clients = {role: browser(team_handler, person(role.value, project, role)) for role in ROLES}
    editor = clients[AccountRole.EDITOR]
    jobs = [bring(session_with_secrets()), bring(no_window()), bring(b"{", "bad.jsonl")]
    many = [session(user(f"find {n}"), model("here"), title=f"file {n}") for n in range(3)]
    jobs.append(bring(b"".join(native.write_all(many))))
    stored(transcript("codex", kind="opaque", messages=(user(""),)), title="codex")
    running = Import.objects.of(project).create(name="running.jsonl", state=Import.State.RUNNING)
    row = Session.objects.of(project).get(recording=jobs[0].recording_id)
    editor.post(f"/s/{row.pk}/comments", {"step": 2, "text": "Look"})
    editor.post("/sessions/views", {"name": "all", "query": "?"})
    editor.post(f"/s/{row.pk}/presets", {"name": "late", "query": "?cap=3"})
    form = {"policy": "contextguard", "axis1": "buffer", "values1": "500, 3000"}
    assert editor.post("/sweeps/new", form).status_code == 302
    for level in ("numbers", "text", "text"):
        assert editor.post(f"/s/{row.pk}/share", {"level": level, "lifetime": "7d"}).status_code == 302
    _, draft, published = Share.objects.of(project).order_by("created")
    for share in (draft, published):
        making.make_report(str(share.pk))
    editor.post(f"/shares/{published.pk}/publish")
    runs.start_run(project, views.DEFAULT)
    done = runs.start_run(project, (NONE,))
    result = runs.packed(rows_for(next(iter(SCENARIOS.values())), (NONE,)))
    GalleryRun.objects.row(done).update(state=GalleryRun.State.DONE, done=done.total, result=result)
    doomed = Session.objects.of(project).get(title="file 1")
    undo = editor.post(f"/s/{doomed.pk}/delete")["Location"]
    different = Session.objects.of(project).filter(deleted=None).exclude(title__startswith="file ")
    known = {
        "/s/": set(different.values_list("pk", flat=True)),
        "/imports/": {running.pk, *(job.pk for job in jobs)},
        "/shares/": set(Share.objects.of(project).values_list("pk", flat=True)),
        "/sweeps/": set(Sweep.objects.of(project).values_list("pk", flat=True)),
    }
    keys = sorted(set().union(*known.values()))
    foreign = tuple(f"{start}{key}" for start, own in known.items() for key in keys if key not in own)
    queries = {
        undo,
        "/gallery/?policy=none",
        "/?rename=" + str(row.pk),
        f"/s/{row.pk}/rule?set.window=9",
        f"/s/{row.pk}/comments?step=2",
    }
    queries |= {f"/s/{row.pk}/steps?at=2", f"/compare/?side={row.pk}&side={row.pk}?policy=codex", "/?q=nothing-like-it"}
    urls = [url for url in addresses(*keys) if not url.startswith(foreign) and not re.search(NOT_THERE, url)]
    return SimpleNamespace(urls=[*urls, *queries], clients=clients)


def offered(there, role: AccountRole) -> dict[str, set[tuple[str, str]]]:
    """What each page offers to a role, which is refused those that the table refuses to it, and no other."""
    pages = {}
    for url in there.urls:
        answer = undone(lambda url=url: there.clients[role].get(url))
        assert answer.status_code < 500, url
        name = get_resolver().resolve(urlsplit(url).path).view_name
        assert (answer.status_code == 403) is bool(refused({("GET", name)}, role)), url
        if answer.status_code == 200 and answer.get("Content-Type", "").startswith("text/html"):
            pages[url] = requests_of(url, answer.content.decode())
    return pages


@pytest.mark.long
def test_nobody_is_offered_what_would_be_refused_and_an_editor_more_than_a_viewer(there):
    """The walk of the editor meets the forms that a viewer is not offered; `test_access.py` tries the refusals."""
    for role in (AccountRole.VIEWER, AccountRole.EDITOR):
        pages = offered(there, role)
        assert (role, {url: wrong for url, offers in pages.items() if (wrong := refused(offers, role))}) == (role, {})
    more = {name for offers in pages.values() for _, name in refused(offers, AccountRole.VIEWER)}
    expected = {"upload", "open_sample", "session_window", "session_rule_settings", "session_share", "sweep_new"}
    expected |= {"sessions_bulk", "session_rename", "sessions_restore", "sessions_view_save", "sessions_view_delete"}
    expected |= {"session_preset_save", "session_preset_delete", "session_preset_rename", "sessions_view_rename"}
    expected |= {"share_review", "share_publish", "share_revoke", "import_cancel", "import_choose", "sweep_cancel"}
    expected |= {"gallery_run", "gallery_cancel", "gallery_open", "gallery_new", "session_comments", "comment_edit"}
    expected |= {"comment_delete", "comment_resolve", "sweep_delete", "compare_share", "triggers_share"}
    assert expected - more == set()
