"""Presets: settings of a replay under a name, saved on one session and chosen on any other of the project.

Here because they are rows, to be tried on both databases; what else the overview shows is computed."""

from __future__ import annotations

import html
import re
from datetime import timedelta

import msgspec
import pytest

from inspector.models import AccountRole, Preset, Project, default_project
from inspector.pages.shared import saved_queries
from inspector.pages.shared.saved_queries import MOST
from tests.builders import bundled
from tests.guard_core.outcomes.cast import counted
from tests.inspector.pages.conftest import stored
from tests.inspector.people import browser, person

HOSTILE = "<script>alert(1)</script> & “q”"


def preset(query: str, name: str = "mine") -> Preset:
    return Preset.objects.of(default_project()).create(name=name, query=query)


def refused(client, address: str, sent: dict[str, str], field: str) -> tuple[str, str]:
    """What the page that a refused form leads back to says beside the field, and the name that the field still has."""
    target = client.post(address, sent)["Location"]
    assert target.endswith(f"#{field}")
    shown = menu(client.get(target.partition("#")[0]).text)
    sentence = re.search('class="field-error" id="saved-refused">([^<]*)', shown)[1]
    box = re.search(f'<input[^>]*id="{field}"[^>]*>', shown)[0]
    assert 'aria-invalid="true"' in box
    assert "saved-refused" in re.search('aria-describedby="([^"]*)"', box)[1]
    return html.unescape(sentence), html.unescape(re.search('value="([^"]*)"', box)[1])


def menu(page: str) -> str:
    """The menu of presets of an overview."""
    return re.search(r'<details class="saved-queries".*?(?=<p class="panel-foot">)', page, re.DOTALL)[0]


@pytest.fixture
def save(gap):
    return f"{gap.get_absolute_url()}presets"


def test_settings_are_saved_chosen_on_another_session_and_deleted(client, gap, save, store):
    answer = client.post(save, {"name": " Late  and small ", "query": "?profile=early&window=100k&cap=3&evil=1"})
    assert (answer.status_code, answer["Location"]) == (
        302,
        f"{gap.get_absolute_url()}?profile=early&window=100000&cap=3#saved",
    )
    row = Preset.unscoped.get()
    assert (row.name, row.query) == ("Late and small", "?policy=contextguard&profile=early&window=100000&cap=3")
    other = store(bundled("small-window"))
    shown = menu(client.get(other.get_absolute_url()).text)
    assert f'href="{other.get_absolute_url()}{html.escape(row.query)}"' in shown
    assert "ContextGuard, profile early, window 100,000, cap 3" in shown
    assert "aria-current" not in shown
    chosen = menu(client.get(other.get_absolute_url() + row.query).text)
    assert re.search("Preset:</span> <b[^>]*>Late and small</b>", chosen)
    assert 'aria-current="true"' in chosen
    answer = client.post(f"{other.get_absolute_url()}presets/{row.pk}/delete", {"query": "?cap=2"})
    assert answer["Location"].startswith(f"{other.get_absolute_url()}?cap=2&undo=")
    assert answer["Location"].endswith("#saved")
    assert not Preset.unscoped.exists()


def undo_of(page: str) -> str:
    """What the offer to undo a deletion sends; empty where there is none."""
    match = re.search('name="undo" value="([^"]*)"', page)
    return match[1] if match else ""


def test_a_deletion_is_undone_whole(client, gap, save):
    row = preset("?profile=newest&cap=3", "kept")  # with a setting that is no longer taken
    page = client.get(client.post(f"{save}/{row.pk}/delete", {"query": "?cap=2"})["Location"]).text
    assert "The preset “kept” was deleted." in page
    answer = client.post(f"{save}/restore", {"undo": undo_of(page), "query": "?cap=2"})
    assert answer["Location"] == f"{gap.get_absolute_url()}?cap=2#saved"
    again = Preset.unscoped.get()
    assert (again.pk, again.name, again.query, again.project) == (row.pk, row.name, row.query, row.project)


def test_what_another_window_has_deleted_is_no_session(client, gap, save):
    row = preset("?cap=3")
    client.post(f"{save}/{row.pk}/delete")
    for form in ("delete", "rename"):
        answer = client.post(
            f"{save}/{row.pk}/{form}",
            {"name": "new"},
            headers={"referer": f"http://testserver{gap.get_absolute_url()}"},
        )
        assert (answer.status_code, "session may" in answer.text) == (404, False)
        assert "What you wanted to change may have been deleted in another window." in answer.text
        assert ">Back</a>" in answer.text


def test_an_undo_that_was_done_is_not_offered_and_changes_nothing(client, gap, save):
    deleted = client.post(f"{save}/{preset('?cap=3').pk}/delete")["Location"]
    undo = undo_of(client.get(deleted).text)
    assert undo
    for _ in range(2):
        assert client.post(f"{save}/restore", {"undo": undo}).status_code == 302
        assert Preset.unscoped.count() == 1
    assert not undo_of(client.get(deleted).text)


@pytest.mark.parametrize("text", ["", "x", "\x00", "a:b:c", "é:é:é", "." * 5_000])
def test_an_undo_that_is_not_ours_brings_nothing(client, gap, save, text):
    assert client.get(gap.get_absolute_url(), {"undo": text}).status_code == 200
    assert client.post(f"{save}/restore", {"undo": text}).status_code == 302
    assert not Preset.unscoped.exists()


def test_an_undo_is_for_a_day_and_for_its_project(client, gap, save):
    row = preset("?cap=3")
    text = saved_queries.take_away(row)
    project, rows = default_project(), Preset.objects.of(default_project())
    assert saved_queries.taken_away(rows, project, text).name == "mine"
    other = Project.objects.create(slug="other", name="Other")
    assert saved_queries.taken_away(Preset.objects.of(other), other, text) is None
    assert saved_queries.taken_away(rows, project, text, within=timedelta(seconds=-1)) is None


def test_a_preset_is_renamed_and_keeps_what_it_stands_for(client, gap, save):
    row = preset("?profile=newest&cap=3", "old")  # with a setting that is no longer taken
    shown = menu(client.get(gap.get_absolute_url()).text)
    assert f'action="{save}/{row.pk}/rename"' in shown
    answer = client.post(f"{save}/{row.pk}/rename", {"name": " Late  and small ", "query": "?cap=2"})
    assert (answer.status_code, answer["Location"]) == (302, f"{gap.get_absolute_url()}?cap=2#saved")
    again = Preset.unscoped.get()
    assert (again.pk, again.name, again.query) == (row.pk, "Late and small", row.query)
    assert client.post(f"{save}/{row.pk}/rename", {"name": again.name}).status_code == 302


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "A preset needs a name"),
        ("\u202e", "A preset needs a name"),
        ("x" * 61, "at most 60 characters; this one has 61"),
        ("taken", "There is a preset with the name “taken” already"),
    ],
)
def test_a_new_name_that_cannot_be_is_refused_in_words(client, save, name, words):
    preset("?cap=2", "taken")
    row = preset("?cap=3", "old")
    sentence, typed = refused(client, f"{save}/{row.pk}/rename", {"name": name}, f"saved-name-{row.pk}")
    assert sentence.startswith("The preset was not renamed. ")
    assert words in sentence
    assert typed == (name if name else "old")
    assert Preset.unscoped.get(pk=row.pk).name == "old"


def test_the_default_settings_are_saved_by_the_name_of_their_policy(client, gap, save):
    client.post(save, {"name": "as it is", "query": "?"})
    assert Preset.unscoped.get().query == "?policy=contextguard&profile=current"
    assert "aria-current" in menu(client.get(gap.get_absolute_url()).text)


def test_without_presets_only_the_form_that_saves_one_is_shown(client, gap):
    shown = menu(client.get(gap.get_absolute_url()).text)
    assert "<ul>" not in shown
    assert "Saves ContextGuard" in shown


def test_a_changed_setting_is_what_would_be_saved(part_of, gap):
    shown = menu(part_of(gap.get_absolute_url() + "?cap=3", "chart").content.decode())
    assert 'name="query" value="?policy=contextguard&amp;profile=current&amp;cap=3"' in shown


def test_a_setting_that_its_policy_no_longer_has_is_named_and_the_others_are_used(client, gap):
    preset("?profile=newest&cap=3&ratio_of_old=0.5&buffer=many")
    shown = menu(client.get(gap.get_absolute_url() + "?cap=3").text)
    left_out = re.search("no longer takes it: ([^<]*)", shown)[1]
    assert left_out == "profile newest, ratio_of_old 0.5, buffer many."
    assert f'href="{gap.get_absolute_url()}?policy=contextguard&amp;profile=current&amp;cap=3"' in shown
    assert shown.startswith('<details class="saved-queries" open')  # what is in use now is a part of the preset


@pytest.mark.django_db
def test_a_preset_that_names_no_policy_is_one_of_contextguard_on_a_session_of_any_agent(client):
    preset("?buffer=10%25")
    row = stored(msgspec.structs.replace(counted((9_000, 20_000)), format="claude-code"))
    shown = menu(client.get(row.get_absolute_url()).text)
    assert "Saves Claude Code" in shown
    assert "ContextGuard, profile current, buffer 10%" in shown
    assert f'href="{row.get_absolute_url()}?policy=contextguard&amp;profile=current&amp;buffer=10%25"' in shown


def test_a_preset_that_is_in_use_whole_has_nothing_to_name(client, gap):
    preset("?profile=early&cap=3&window=100000")
    assert "no longer" not in menu(client.get(gap.get_absolute_url()).text)


def test_a_preset_of_a_policy_that_is_gone_is_named_and_leads_nowhere(client, gap):
    preset("?policy=nevermore&cap=3")
    shown = menu(client.get(gap.get_absolute_url()).text)
    assert "There is no policy nevermore any more." in shown
    assert "<a " not in shown


@pytest.mark.parametrize(
    ("name", "query", "words"),
    [
        ("", "?cap=3", "A preset needs a name"),
        ("\u202e", "?cap=3", "A preset needs a name"),
        ("x" * 61, "?cap=3", "at most 60 characters; this one has 61"),
        ("taken", "?cap=3", "There is a preset with the name “taken” already"),
    ],
)
def test_a_name_that_cannot_be_is_refused_beside_its_field(client, save, name, query, words):
    preset("?cap=2", "taken")
    sentence, typed = refused(client, save, {"name": name, "query": query}, "saved-name")
    assert sentence.startswith("The preset was not saved. ")
    assert words in sentence
    assert typed == name
    assert Preset.unscoped.get().query == "?cap=2"


def test_a_project_has_a_hundred_presets_at_most(client, save):
    rows = [Preset(name=str(number), query="?cap=3") for number in range(MOST)]
    Preset.objects.of(default_project()).bulk_create(rows)
    sentence, _ = refused(client, save, {"name": "more", "query": "?cap=3"}, "saved-name")
    assert "A project has at most 100 presets" in sentence


@pytest.mark.parametrize(
    ("query", "words"), [("?cap=many", "a number from 0 to 100"), ("?policy=nevermore", "is not known")]
)
def test_settings_that_cannot_be_are_not_saved(client, save, query, words):
    answer = client.post(save, {"name": "new", "query": query})
    assert (answer.status_code, words in answer.text) == (422, True)
    assert not Preset.unscoped.exists()


@pytest.mark.parametrize("text", ["", "x", "\x00", "a:b:c", "é:é:é", "." * 5_000])
def test_a_refusal_that_is_not_ours_says_nothing(client, gap, text):
    page = client.get(gap.get_absolute_url(), {"refused": text})
    assert (page.status_code, "was not" in menu(page.text)) == (200, False)


def test_a_hostile_name_and_hostile_settings_are_text(client, gap, save):
    client.post(save, {"name": HOSTILE, "query": "?cap=3"})
    preset("?policy=%3Cscript%3Ealert(2)&cap=%3Cb%3E", "gone")
    page = client.get(gap.get_absolute_url()).text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; “q”" in menu(page)


def test_presets_belong_to_a_project(client, gap, save):
    client.post(save, {"name": "zanzibar", "query": "?cap=3"})
    Preset.unscoped.update(project=Project.objects.create(slug="other", name="Other"))
    assert "zanzibar" not in client.get(gap.get_absolute_url()).text
    assert client.post(f"{save}/{Preset.unscoped.get().pk}/delete").status_code == 404
    assert client.post(f"{save}/{Preset.unscoped.get().pk}/rename", {"name": "mine"}).status_code == 404
    assert client.post(save, {"name": "zanzibar", "query": "?cap=3"}).status_code == 302


def test_a_viewer_chooses_presets_and_changes_none(gap, save, team, team_handler):
    viewer = browser(team_handler, person("viewer", default_project(), AccountRole.VIEWER))
    assert "saved-queries" not in viewer.get(gap.get_absolute_url()).text
    row = preset("?cap=3", "shown")
    shown = menu(viewer.get(gap.get_absolute_url()).text)
    assert "shown" in shown
    assert "<form" not in shown
    assert viewer.post(save, {"name": "mine", "query": "?cap=3"}).status_code == 403
    assert viewer.post(f"{save}/{row.pk}/delete").status_code == 403
    assert viewer.post(f"{save}/{row.pk}/rename", {"name": "mine"}).status_code == 403
    assert viewer.post(f"{save}/restore").status_code == 403


@pytest.mark.parametrize(
    ("referer", "back"),
    [
        ("http://testserver{page}?policy=codex&window=150000", '"{page}?policy=codex&amp;window=150000">Back<'),
        ("http://elsewhere.example{page}", None),
        ("http://testserver//elsewhere.example/", None),
        ("http://testserver{page}presets", None),  # answers forms alone
        ("http://[broken", None),
        ("", None),
    ],
)
def test_refused_settings_lead_back_to_the_page_with_the_form(client, coding, referer, back):
    page = coding.get_absolute_url()
    sent = {"name": "x", "query": "?policy=nevermore"}
    refused = client.post(f"{page}presets", sent, headers={"referer": referer.format(page=page)})
    assert refused.status_code == 422
    text = refused.content.decode()
    assert back.format(page=page) in text if back else "Back<" not in text
