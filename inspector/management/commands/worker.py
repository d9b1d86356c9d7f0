"""`manage.py worker`: one more worker for a team's database, until Ctrl-C or SIGTERM."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from inspector.management.refusals import refusals
from inspector.project import worker


class Command(BaseCommand):
    help = "Run background jobs (imports) until stopped."

    def handle(self, *args: Any, **options: Any) -> None:
        with refusals():
            worker.main()
