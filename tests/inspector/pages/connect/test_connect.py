"""The page that says how an agent is connected: what can be copied from it works on the server that showed it."""

from __future__ import annotations

import html
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from inspector.beside.keeping import this_command
from inspector.models import AccountRole, Session, default_project
from inspector.project.cli import _parser
from tests.inspector.people import browser, person

README = Path(__file__).parents[4] / "README.md"
HERE = "http://testserver"

pytestmark = [pytest.mark.django_db, pytest.mark.once]


def lines_of(response: Any) -> dict[str, str]:
    """What can be copied, by the anchor of its way."""
    found = re.findall(r'<pre[^>]* id="(\w+)-lines"[^>]*>(.*?)</pre>', response.content.decode(), re.DOTALL)
    return {name: html.unescape(text) for name, text in found}


def test_the_programs_are_those_of_the_readme_with_the_address_of_the_server(client):
    shown = lines_of(client.get("/connect/"))
    section = README.read_text().split("## Stream your own agent\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```\w+\n(.*?)```", section, re.DOTALL)
    assert len(blocks) == 3
    assert {shown[name] for name in ("loop", "adk", "otel")} == {
        block.replace("http://127.0.0.1:8000", HERE) for block in blocks
    }


@pytest.mark.parametrize("name", ["watch", "capture"])
def test_the_commands_are_commands_of_this_installation(client, name):
    for line in lines_of(client.get("/connect/"))[name].splitlines():
        words = shlex.split(line)
        command = this_command()
        assert words[: len(command)] == command
        options = _parser().parse_args(words[len(command) :])
        assert (options.command, options.server) == (name, HERE)


def test_the_batch_for_other_languages_is_a_session_of_one_step(client, folders):
    words = shlex.split(lines_of(client.get("/connect/"))["http"].replace("\\\n", " "))
    assert words[0] == "curl"
    assert words[1].startswith(HERE)
    body, kind = words[words.index("-d") + 1], words[words.index("-H") + 1].split(": ")[1]
    answer = client.post(words[1].removeprefix(HERE), body, content_type=kind)
    assert answer.status_code == 200, answer.content
    assert answer.json()["acknowledged"] == len(json.loads(body)["lines"])
    assert [(row.title, row.calls, row.events) for row in Session.unscoped.all()] == [("My session", 1, 2)]


def test_who_has_no_agent_running_is_led_there(client):
    for page in ("/", "/running/", "/help/"):
        assert 'href="/connect/"' in client.get(page).text


@pytest.mark.usefixtures("team")
def test_in_team_mode_every_way_has_its_key_and_an_owner_is_led_to_where_one_is_made(team_handler):
    pages = {
        role: browser(team_handler, person(role, default_project(), role)).get("/connect/") for role in AccountRole
    }
    for page in pages.values():
        assert all("ci_…" in text for text in lines_of(page).values())
        assert lines_of(page)["watch"] == f"INSPECTOR_KEY=ci_… compaction-inspector watch --server {HERE}\n"
    assert [role for role, page in pages.items() if 'href="/team/"' in page.text.split("<main")[1]] == [
        AccountRole.OWNER
    ]
