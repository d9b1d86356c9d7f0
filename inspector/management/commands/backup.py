"""`manage.py backup FILE`: everything stored, in one tar file, while the server runs."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from inspector.presenters.numbers import counted, size
from inspector.services.backup import BackupFailed, backup


class Command(BaseCommand):
    help = (
        "Write a backup while the server runs. To restore: unpack it into an empty folder and start with that folder "
        "as DATA_DIR; with PostgreSQL also pg_restore --no-owner --dbname=NAME inspector.dump into an empty database."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, help="default: inspector-DATE.tar here")

    def handle(self, *args: Any, **options: Any) -> None:
        target = options["file"] or Path(f"inspector-{timezone.now():%Y%m%d-%H%M%S}.tar")
        try:
            contents = backup(target)
        except BackupFailed as error:
            raise CommandError(str(error)) from error
        recordings = counted(contents["recordings"], "recording")
        self.stdout.write(f"{target}: {contents['database']}, {recordings}, {size(contents['bytes'])} of recordings")
