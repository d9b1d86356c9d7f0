"""Who may use which address: every address, method and role, against rows that are really there.

What a role may is decided by a table before any view asks the database: `once`. Whose rows it is, the database says.
"""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import override_settings
from django.urls import path
from django.urls.resolvers import get_resolver

from guard_core.recordings.formats import native
from guard_core.simulator.samples import SAMPLES
from inspector.accounts import access, keys
from inspector.accounts.access import ANYONE, RULES, SIGNED_IN
from inspector.models import AccountRole, Project, Session, default_project
from inspector.project.checks import every_address_has_a_rule
from tests.inspector.conftest import TEAM_MODE, imported
from tests.inspector.pages.test_hostile_requests import addresses, dump, undone
from tests.inspector.people import browser, person

pytestmark = pytest.mark.django_db
CALLERS = ("owner", "editor", "viewer", "other", "nobody")
REFUSED = {302, 401, 403, 404}
SAFE = ("GET", "HEAD", "OPTIONS")
# Every address is tried with GET and POST. No rule distinguishes the other methods, so the addresses take these
# combinations in turn, in `make long` only.
IN_TURN = [("GET", "POST", "HEAD", "PUT"), ("GET", "POST", "OPTIONS", "PATCH"), ("GET", "POST", "HEAD", "DELETE")]


@pytest.fixture(scope="module")
def stored(shared_rows):
    """A session of the first project, and people; the other owns a project of its own."""
    with shared_rows(), override_settings(**TEAM_MODE):
        job = imported(native.write(SAMPLES["small-window"].build()))
        project, elsewhere = default_project(), Project.objects.create(slug="elsewhere", name="Elsewhere")
        people = {role: person(role, project, AccountRole(role)) for role in ("owner", "editor", "viewer")}
        people["other"] = person("other", elsewhere)
        session = project_sessions(project)[0]
        known = {"/s/": {session.pk}, "/imports/": {job.pk}, "/recordings/": {job.recording_id}}
        all_keys = set().union(*known.values())
        foreign = tuple(f"{start}{key}" for start, own in known.items() for key in all_keys - own)
        urls = [url for url in addresses(*sorted(all_keys)) if not url.startswith(foreign)]
    return SimpleNamespace(urls=urls, people=people, job=job, session=session)


@pytest.fixture
def there(stored, team, team_handler, settings):
    """What is stored, and a browser of each caller."""
    settings.RATE_CHANGES = 1_000_000
    settings.ANSWER_WAIT_SECONDS = 0
    clients = {name: browser(team_handler, stored.people.get(name)) for name in CALLERS}
    for client in clients.values():
        client.raise_request_exception = False
    return SimpleNamespace(clients=clients, **vars(stored))


def project_sessions(project: Project) -> list[Any]:
    return list(Session.objects.of(project))


def rule(url: str) -> access.AddressRule:
    rule_found = access.rule_of(get_resolver().resolve(url.partition("?")[0]).view_name)
    assert rule_found is not None, url
    return rule_found


@pytest.fixture
def requests_in_turn(there, pytestconfig) -> list[tuple[str, str]]:
    """Each address with each of its methods."""
    most = 2 if pytestconfig.getoption("short") else None
    return [(url, method) for url, methods in zip(there.urls, itertools.cycle(IN_TURN)) for method in methods[:most]]


def asked(there, caller: str, method: str, url: str) -> HttpResponse:
    return undone(lambda: there.clients[caller].generic(method, url))


def allowed(caller: str, needed: str) -> bool:
    """By the table alone, in other words than the code's."""
    if needed == ANYONE:
        return True
    if needed == SIGNED_IN:
        return caller != "nobody"
    return caller in {"viewer": CALLERS[:3], "editor": CALLERS[:2], "owner": CALLERS[:1]}[needed]


def test_every_address_is_tried(there):
    names = {get_resolver().resolve(url).view_name for url in there.urls}
    assert {"home", "session_overview", "team", "login", "account", "recording_raw", "sweep_delete"} <= names
    assert names <= RULES.keys() | {name for name in names if ":" in name}


@pytest.mark.once
def test_an_owner_looks_at_everything(there):
    """Editors and viewers: `test_viewers.py`."""
    for url in there.urls:
        answer = asked(there, "owner", "GET", url)
        assert answer.status_code < 500, url
        assert (answer.status_code == 403) is not allowed("owner", rule(url).look), url


@pytest.mark.long("more")
@pytest.mark.once
def test_a_viewer_changes_nothing(there, requests_in_turn):
    before = dump()
    for url, method in requests_in_turn:
        if method not in SAFE and rule(url).change in (AccountRole.EDITOR, AccountRole.OWNER):
            assert there.clients["viewer"].generic(method, url).status_code == 403, (url, method)
    assert changed(before) <= {"inspector_spent"}


@pytest.mark.once
def test_an_editor_does_not_manage_the_team(there):
    for url in there.urls:
        if url == "/logout/":
            continue  # it would end what the rest is asked with
        refused = asked(there, "editor", "POST", url).status_code == 403
        assert refused is (rule(url).change == AccountRole.OWNER), url


@pytest.mark.long("more")
def test_what_is_anothers_is_not_there(there, requests_in_turn):
    before = dump()
    for url, method in requests_in_turn:
        has_key = str(there.session.pk) in url or str(there.job.pk) in url or str(there.job.recording_id) in url
        if has_key and rule(url).look != ANYONE:
            answer = there.clients["other"].generic(method, url)
            assert answer.status_code in (404, 405), (url, method)
            assert "small-window" not in answer.text
    assert changed(before) <= {"inspector_spent"}


@pytest.mark.long("more")
@pytest.mark.once
def test_nobody_gets_no_further_than_the_login(there, requests_in_turn):
    before = dump()
    for url, method in requests_in_turn:
        if ANYONE in rule(url)[:2]:
            continue
        answer = there.clients["nobody"].generic(method, url)
        is_page = method in SAFE and not url.startswith("/api/")
        assert answer.status_code == (302 if is_page else 401), (url, method)
        assert not is_page or answer["Location"].startswith("/login/"), url
    assert changed(before) <= {"inspector_spent"}


def changed(before: dict[str, str]) -> set[str]:
    """The tables whose rows are not what they were."""
    after = dump()
    return {name for name in after if after[name] != before.get(name)}


@pytest.mark.once  # keys are looked up on both by the tests of comments in the API
def test_a_key_does_what_its_scope_says_and_nothing_else(there):
    reading = keys.make(default_project(), "r", ["read"], "owner")[1]
    sending = keys.make(default_project(), "i", ["ingest"], "owner")[1]
    saying = keys.make(default_project(), "c", ["comment"], "owner")[1]
    foreign = keys.make(Project.objects.get(slug="elsewhere"), "f", ["read", "ingest"], "other")[1]
    client = there.clients["nobody"]
    for url in there.urls:
        looks, needed = rule(url).look == AccountRole.VIEWER, rule(url)
        if needed.look == ANYONE:
            continue
        for text, method, expected in (
            (reading, "GET", looks),
            (reading, "POST", False),
            (sending, "GET", False),
            (sending, "POST", needed.scope == "ingest"),
            (saying, "GET", False),
            (saying, "POST", needed.scope == "comment"),
        ):
            answer = undone(
                lambda url=url, m=method, t=text: client.generic(m, url, headers={"Authorization": f"Bearer {t}"})
            )
            assert (answer.status_code != 403) is expected, (url, method, answer.status_code)
        answer = client.get(url, headers={"Authorization": f"Bearer {foreign}"})
        assert str(there.session.pk) not in answer.text


def test_with_a_key_the_cookies_of_a_browser_do_not_count(there):
    for header in ("Bearer ci_wrong", "Bearer ", "Basic b3duZXI6eA=="):
        answer = there.clients["owner"].get("/", headers={"Authorization": header})
        assert answer.status_code == 401
        assert answer["WWW-Authenticate"] == "Bearer"


FIELDS = ("username", "password", "name", "password1", "password2", "old_password", "new_password1", "role", "project")
FIELDS += ("scope", "lifetime", "days", "keep", "quota", "action", "next", "before")


FORM = "application/x-www-form-urlencoded"
HOSTILE = ("a%00b%ED%A0%80%FF", "9" * 5_000, "-1", "%3Cscript%3E" + "x" * 2_000)


def test_no_value_breaks_a_page_of_accounts_or_the_team(there):
    urls = [url for url in there.urls if url.startswith(("/login", "/join", "/account", "/team"))]
    broken = set()
    for url, value in itertools.product(urls, HOSTILE):
        form = "&".join(f"{name}={value}" for name in FIELDS)
        client = there.clients["nobody" if rule(url).change == ANYONE else "owner"]
        for ask in (
            lambda url=url, form=form, client=client: client.post(url, data=form, content_type=FORM),
            lambda url=url, form=form, client=client: client.get(f"{url}?{form}"),
        ):
            if undone(ask).status_code >= 500:
                broken.add((url, value[:20]))
    assert broken == set()


def test_every_address_of_the_application_has_a_rule():
    assert every_address_has_a_rule(None) == []


def test_an_address_without_a_rule_is_found():
    assert access.without_rule([path("new/", lambda request: None, name="new"), path("x", lambda request: None)]) == [
        "new/",
        "x",
    ]


def test_an_address_without_a_rule_is_not_there(team, team_handler, settings):
    settings.ROOT_URLCONF = "tests.inspector.accounts.forgotten_urls"
    owner = browser(team_handler, person("one", default_project()))
    assert owner.get("/forgotten/").status_code == 404


def test_a_rule_names_an_address_that_exists(settings):
    names = {name for _, name in access.routes(get_resolver(settings.TEAM_URLS).url_patterns)}
    spaces = {name.partition(":")[0] + ":" for name in names if ":" in name}
    assert set(RULES) <= names | spaces


def test_too_many_changes_are_refused_for_a_moment_and_for_one_account(team, team_handler, settings):
    settings.RATE_CHANGES = 3
    project = default_project()
    one, two = (browser(team_handler, person(name, project)) for name in ("one", "two"))
    answers = [one.post("/gallery/cancel", REMOTE_ADDR=f"10.0.0.{n}") for n in range(5)]
    assert [answer.status_code == 429 for answer in answers] == [False] * 3 + [True] * 2
    assert 1 <= int(answers[-1]["Retry-After"]) <= 10
    assert two.post("/gallery/cancel").status_code != 429
    assert one.get("/").status_code == 200
