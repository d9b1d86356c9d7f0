"""Presets in the form of a sweep: what they fill, what they cannot, and that the sweep then holds it."""

from __future__ import annotations

import html
import re

import pytest

from guard_core.policies import POLICIES
from inspector.models import Preset, Project, default_project
from inspector.pages.sweep.presets import filled
from inspector.pages.sweep.question import FIELDS, parse_question
from inspector.replays.choice import parse_choice

pytestmark = pytest.mark.django_db


def preset(query: str, name: str = "mine") -> Preset:
    return Preset.objects.of(default_project()).create(name=name, query=query)


def menu(page: str) -> str:
    fields_shown = re.search(r'<details class="saved-queries".*?</details>', page, re.DOTALL)
    return fields_shown[0] if fields_shown else ""


def link(page: str) -> str:
    """The address of the only preset in the menu."""
    return html.unescape(re.search('<a href="([^"]*)"', menu(page))[1])


def fields(page: str) -> dict[str, str]:
    """What the form would send."""
    typed = {name: re.search(f'name="{name}"\\s+value="([^"]*)"', page) for name in FIELDS}
    chosen = {name: re.search(f'<select[^>]*name="{name}".*?</select>', page, re.DOTALL) for name in FIELDS}
    options = {name: re.search('value="([^"]*)"\\s+selected', value[0]) for name, value in chosen.items() if value}
    return {name: html.unescape(value[1]) for name, value in (typed | options).items() if value}


def test_a_preset_fills_the_fixed_settings_and_keeps_which_sessions(client, gap):
    preset("?profile=early&window=100000&cap=3")
    page = client.get(f"/sweeps/new?session={gap.pk}&figure=overflows").text
    assert "aria-current" not in menu(page)
    answer = client.get(link(page))
    assert f'name="session" value="{gap.pk}"' in answer.text
    shown = fields(answer.text)
    assert {name: shown[name] for name in ("policy", "profile", "window", "settings", "figure")} == {
        "policy": "contextguard",
        "profile": "early",
        "window": "100000",
        "settings": "cap=3",
        "figure": "overflows",
    }
    assert 'aria-current="true"' in menu(answer.text)
    assert re.search("Preset:</span>\\s*<b[^>]*>mine</b>", answer.text)


def test_the_filters_of_the_sessions_are_kept(client, gap):
    preset("?cap=3")
    page = client.get("/sweeps/new?q=gap&has=overflow").text
    assert {"q=gap", "has=overflow"} <= set(re.split("[?&#]", link(page)))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("?profile=early&window=100000&buffer=10%25", "ContextGuard, profile early, buffer 10%, window 100,000: "),
        ("?policy=codex&limit=80000", "Codex, profile current, limit 80000: "),
        ("?policy=contextguard", "ContextGuard, profile current: "),
    ],
)
def test_the_form_that_a_preset_filled_can_be_sent_as_it_is(client, gap, query, words):
    preset(query)
    page = client.get(link(client.get(f"/sweeps/new?session={gap.pk}").text)).text
    answer = client.post("/sweeps/new", {"session": gap.pk, **fields(page)})
    assert answer.status_code == 302, re.findall("field-error[^>]*>([^<]*)", answer.text)
    question, _ = parse_question(fields(page), 1)
    assert question.words().startswith(words)


def test_a_setting_that_a_preset_fixes_is_no_axis(client, gap):
    preset("?buffer=10%25")
    shown = fields(client.get(link(client.get(f"/sweeps/new?session={gap.pk}").text)).text)
    assert shown["settings"] == "buffer=10%"
    assert "buffer" not in (shown["axis1"], shown.get("axis2"))


def test_what_a_sweep_cannot_hold_is_named(client, gap):
    preset("?cap=3&summary=share:low")
    shown = menu(client.get("/sweeps/new").text)
    assert "Left out, because the form of a sweep cannot hold it: summary share:low." in shown


def test_a_value_with_a_comma_is_left_out():
    texts = ((kind, setting.key) for kind in POLICIES.values() for setting in kind.settings if setting.verbatim)
    kind, key = next(texts)
    form, left_out = filled(parse_choice({"policy": kind.name, key: "a, b"})[0])
    assert (form["settings"], left_out) == ("", {key: "a, b"})


def test_a_preset_of_a_policy_that_is_gone_leads_nowhere(client, gap):
    preset("?policy=nevermore")
    shown = menu(client.get("/sweeps/new").text)
    assert "There is no policy nevermore any more." in shown
    assert "<a " not in shown


def test_presets_of_another_project_and_none_are_not_offered(client, gap):
    assert menu(client.get("/sweeps/new").text) == ""
    preset("?cap=3", "zanzibar")
    Preset.unscoped.update(project=Project.objects.create(slug="other", name="Other"))
    assert "zanzibar" not in client.get("/sweeps/new").text


def test_a_hostile_name_is_text(client, gap):
    preset("?cap=3", "<script>alert(1)</script>")
    assert "<script>alert" not in client.get("/sweeps/new").text
