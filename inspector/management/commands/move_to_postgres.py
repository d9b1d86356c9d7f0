"""`manage.py move_to_postgres URL`: from the embedded SQLite database to PostgreSQL, every digest kept."""

from __future__ import annotations

from argparse import ArgumentParser
from contextlib import closing
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.db import Error

from inspector.data_folder.moving import MoveFailed, move
from inspector.data_folder.opening import check
from inspector.data_folder.owner import alone
from inspector.management.checks import WITHOUT_PAGES
from inspector.management.refusals import refusals


class Command(BaseCommand):
    help = (
        "Copy everything from SQLite to an empty PostgreSQL database and compare both. Stop the server first; "
        "afterwards start it with DATABASE_URL=URL and the same DATA_DIR, where the recordings stay."
    )
    requires_system_checks = WITHOUT_PAGES

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("url", help="postgresql://user:password@host:5432/name")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.EMBEDDED:
            raise CommandError("DATABASE_URL names a PostgreSQL database already; unset it to move from SQLite.")
        with refusals():
            locks = alone(Path(settings.DATA_DIR))
            check()
        try:
            with closing(locks):
                count = move(options["url"], self.stdout.write)
        except (MoveFailed, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error
        except Error as error:
            raise CommandError(f"PostgreSQL refused: {' '.join(str(error).split())[:500]}") from error
        self.stdout.write(
            f"{count:,} rows copied and compared. Start the server with DATABASE_URL set to this address."
        )
