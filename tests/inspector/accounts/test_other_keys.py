"""Every key of another project's rows, in every address and in every parameter: nothing is shown and nothing changes.

In `make test` `test_access.py` has the addresses of a session, its import and its recording.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db.models import Model
from django.test import override_settings
from django.urls import get_resolver, reverse
from django.utils import timezone

from guard_core.recordings.formats import native
from guard_core.simulator.samples import SAMPLES
from inspector.accounts import access, invitations, keys
from inspector.ingest.importing import run_import
from inspector.ingest.submitting import submit
from inspector.ingest.uploads import receive
from inspector.models import (
    AccountRole,
    ApiKey,
    Comment,
    Import,
    Invitation,
    Membership,
    Preset,
    Project,
    Recording,
    SavedView,
    Session,
    Share,
    Sweep,
    Webhook,
    default_project,
)
from inspector.storage import deleting
from tests.inspector.conftest import TEAM_MODE
from tests.inspector.pages.test_hostile_requests import PARAMETERS, addresses, undone
from tests.inspector.people import browser, person

pytestmark = [pytest.mark.django_db, pytest.mark.once, pytest.mark.long]

SECRET = "zanzibar"
OWNED = (ApiKey, Import, Invitation, Membership, Preset, Recording, SavedView, Session, Share, Sweep, Webhook, Comment)
TAKING_KEYS = ("with", "id", "undo", "thread", "session", "s", "project", "show", "for", "replay", "here", "list")
WITH_NUMBERS = ("team_member", "team_uninvite", "team_key_revoke")


def brought(project: Project, title: str) -> Import:
    session = SAMPLES["small-window"].build()
    job = submit(project, receive([native.write(session)], f"{title}.jsonl"))
    run_import(str(job.pk))
    job.refresh_from_db()
    Session.objects.of(project).update(title=title)
    return job


def rows_of(project: Project) -> dict[str, Model]:
    """One row of each kind that belongs to a project, by what it is."""
    job = brought(project, SECRET)
    session = Session.objects.of(project).get()
    place = {"session": session, "place": Comment.Place.STEP, "number": 0, "author": SECRET, "text": SECRET}
    moment = timezone.now() + timedelta(days=1)
    return {
        "session": session,
        "import": job,
        "recording": job.recording,
        "comment": Comment.unscoped.create(**place),
        "preset": Preset.objects.of(project).create(name=SECRET, query="?policy=codex"),
        "view": SavedView.objects.of(project).create(name=SECRET, query="?q=1", page="sessions"),
        "view of triggers": SavedView.objects.of(project).create(name=SECRET, query="?q=1", page="triggers"),
        "sweep": Sweep.objects.of(project).create(question=b"{}", name=SECRET, cells=1),
        "share": Share.objects.of(project).create(
            session=session, request=b"{}", title=SECRET, lifetime=60, state="published", expires=moment
        ),
        "webhook": Webhook.objects.of(project).create(
            url=f"https://{SECRET}.example/", kinds="", salt="s", secret_digest="d"
        ),
    }


@pytest.fixture(scope="module")
def stored(shared_rows) -> SimpleNamespace:
    """An owner with a session of her own, and the rows of another project."""
    with shared_rows(), override_settings(**TEAM_MODE):
        alice, other = person("alice", default_project()), Project.objects.create(slug="other", name="Other")
        bob = person("bob", other)
        brought(default_project(), "mine")
        rows = rows_of(other)
        numbers = {
            "team_member": Membership.objects.of(other).get(account=bob).pk,
            "team_uninvite": invitations.invite(other, AccountRole.VIEWER, "bob")[0].pk,
            "team_key_revoke": keys.make(other, SECRET, ["read"], "bob")[0].pk,
        }
    return SimpleNamespace(alice=alice, other=other, rows=rows, numbers=numbers)


@pytest.fixture
def alice(stored, team, team_handler, settings) -> Any:
    settings.RATE_CHANGES = 1_000_000
    settings.ANSWER_WAIT_SECONDS = 0
    client = browser(team_handler, stored.alice)
    client.raise_request_exception = False
    return client


@pytest.fixture
def untouched(stored) -> Iterator[None]:
    """Holds that nothing of the other project is changed."""
    before = contents(stored.other)
    yield
    assert contents(stored.other) == before


def contents(project: Project) -> dict[str, list[dict[str, Any]]]:
    of_comments = Comment.unscoped.filter(session__project=project)
    return {
        model.__name__: sorted(
            (of_comments if model is Comment else model.unscoped.filter(project=project)).values(), key=str
        )
        for model in OWNED
    }


def own_addresses() -> list[str]:
    """The addresses of one's own rows, and those without a key, that ask who is there."""
    mine = Session.objects.of(default_project()).get()
    job = Import.objects.of(default_project()).get()
    urls = addresses(mine.pk, job.pk, job.recording_id)
    return [url for url in urls if access.ANYONE not in (rule := rule_of(url))[:2] and rule.look and url != "/logout/"]


def rule_of(url: str) -> access.AddressRule:
    rule = access.rule_of(get_resolver().resolve(url).view_name)
    assert rule is not None
    return rule


def test_no_address_with_a_key_of_another_project_shows_or_changes_anything(stored, alice, untouched):
    mine = str(Session.objects.of(default_project()).get().pk)
    foreign = {str(row.pk) for row in stored.rows.values()}
    sessions = (f"/s/{mine}/", f"/s/{stored.rows['session'].pk}/")
    for url in addresses(mine, *foreign):
        if url.startswith("/s/") and not url.startswith(sessions):
            continue  # a mere 404, and there are many
        if not any(key in url for key in foreign) or access.ANYONE in rule_of(url)[:2]:
            continue
        for method in ("GET", "POST", "DELETE"):
            answer = alice.generic(method, url)
            assert answer.status_code in (404, 405), (url, method)
            assert SECRET not in answer.text, url


@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_no_number_of_another_teams_row_changes_it(name, stored, alice, untouched):
    url = reverse(name, args=[stored.numbers[name]])
    for form in ({}, {"role": "viewer"}, {"action": "remove"}, {"remove": "1"}):
        assert alice.post(url, form).status_code == 404


@pytest.mark.parametrize("kind", ["session", "sweep", "share", "comment"])
def test_no_parameter_with_a_key_of_another_project_shows_or_changes_anything(kind, stored, alice, untouched):
    key = str(stored.rows[kind].pk)
    values = [dict.fromkeys(TAKING_KEYS, key)]
    if kind == "session":
        values += [{"with": f"/s/{key}/c/1/"}, dict.fromkeys(PARAMETERS, key)]
    for url in own_addresses():
        for given in values:
            for ask in (alice.get, alice.post):
                answer = undone(lambda ask=ask, url=url, given=given: ask(url, given))
                assert answer.status_code < 500, (url, given)
                text = b"".join(answer.streaming_content).decode() if answer.streaming else answer.text
                assert SECRET not in text, (url, given)


def test_an_undo_of_another_project_brings_nothing_back(stored, alice):
    key = deleting.delete(stored.other, Session.objects.row(stored.rows["session"]))
    for url in own_addresses():
        for ask in (alice.get, alice.post):
            undone(lambda ask=ask, url=url: ask(url, {"undo": key, "do": "restore"}))
            assert Session.objects.of(stored.other).get().deleted is not None, url
