"""The container files name what is there. That they build and start, the workflow tries where there is an engine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
README = (ROOT / "README.md").read_text()
OURS = ("web", "worker")


def test_everything_that_is_copied_is_there_and_not_ignored():
    copied = [name for line in re.findall(r"^COPY (?!--)(.+) \S+$", DOCKERFILE, re.MULTILINE) for name in line.split()]
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {"requirements/team.txt", "pyproject.toml", "guard_core", "inspector", "templates", "static"} <= set(copied)
    assert [name for name in copied if not (ROOT / name).exists() or name.split("/")[0] in ignored] == []


def test_everything_is_installed_by_hash():
    assert [line for line in DOCKERFILE.splitlines() if "pip install" in line and "--require-hashes" not in line] == [
        "    && /app/bin/pip install --no-cache-dir --no-deps /wheels/*.whl"
    ]


def test_the_package_is_built_by_what_is_locked_for_it():
    (needed,) = re.findall(r'requires = \["(.+?)"\]', (ROOT / "pyproject.toml").read_text())
    assert f"{needed} \\" in (ROOT / "requirements" / "build.txt").read_text()


@pytest.mark.parametrize("name", OURS)
def test_every_variable_is_a_setting_that_the_readme_explains(name):
    assert [one for one in COMPOSE["services"][name]["environment"] if f"`{one}`" not in README] == []


@pytest.mark.parametrize("name", OURS)
def test_a_service_of_ours_may_do_no_more_than_it_needs(name):
    service = COMPOSE["services"][name]
    assert (service["cap_drop"], service["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    assert re.search(r"^USER [1-9][0-9]*$", DOCKERFILE, re.MULTILINE)
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


def test_the_port_that_is_asked_for_health_is_the_one_of_the_server():
    port = COMPOSE["services"]["web"]["environment"]["PORT"]
    assert f"http://127.0.0.1:{port}/healthz" in DOCKERFILE
    assert f"PORT={port}" in DOCKERFILE
    assert COMPOSE["services"]["web"]["ports"][0].endswith(f":{port}")
