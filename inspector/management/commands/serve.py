"""`manage.py serve`: the same as `compaction-inspector serve`."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Serve the web application, with its worker, until Ctrl-C."
    requires_system_checks: list[str] = []

    def run_from_argv(self, argv: list[str]) -> None:
        """Start afresh: port and static files must be known before the settings are read."""
        os.execv(sys.executable, [sys.executable, "-m", "inspector.project.cli", "serve", *argv[2:]])  # noqa: S606 - this very program

    def handle(self, *args: Any, **options: Any) -> None:
        self.run_from_argv(["manage.py", "serve"])
