"""What a command that shows no page checks, and loads, before it begins."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.services.databases import ROOT
from tests.services.server import clean_environment

LOOK = """
import sys
import django
django.setup()
from django.core.management import load_command_class
from django.core.checks.registry import run_checks
for name in sys.argv[1:]:
    tags = load_command_class("inspector", name).requires_system_checks
    found = run_checks(tags=None if tags == "__all__" else tags)
    print(*[error.id for error in found], "inspector.project.urls" in sys.modules)
"""
COMMANDS = ("import", "backup", "move_to_postgres")


@pytest.mark.parametrize(("bind", "found"), [("127.0.0.1", ""), ("0.0.0.0", "inspector.E001 ")])
def test_settings_are_checked_and_no_page_is_loaded(tmp_path, bind, found):
    given = {"DJANGO_SETTINGS_MODULE": "inspector.project.settings", "DATA_DIR": str(tmp_path), "BIND": bind}
    command = [sys.executable, "-c", LOOK, *COMMANDS]
    done = subprocess.run(command, cwd=ROOT, env=clean_environment() | given, capture_output=True, text=True)
    assert done.stdout == f"{found}False\n" * len(COMMANDS), done.stderr
