"""`manage.py backup FILE`: everything stored, in one tar file, while the server runs."""

from __future__ import annotations

from argparse import ArgumentParser
from contextlib import closing
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils import timezone

from inspector.data_folder.backup import backup
from inspector.data_folder.owner import beside
from inspector.management.checks import WITHOUT_PAGES
from inspector.management.refusals import refusals
from inspector.pages.shared.numbers import counted, size


class Command(BaseCommand):
    help = (
        "Write all stored data to one file; the server may be running. `restore FILE` restores it. "
        "Exit code 2 when it cannot be written."
    )
    requires_system_checks = WITHOUT_PAGES

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, help="default: inspector-DATE.tar in the current folder")

    def handle(self, *args: Any, **options: Any) -> None:
        target = options["file"] or Path(f"inspector-{timezone.now():%Y%m%d-%H%M%S}.tar")
        with refusals(), closing(beside(Path(settings.DATA_DIR))):
            contents = backup(target)
        recordings = counted(contents["recordings"], "recording")
        self.stdout.write(f"{target}: {contents['database']}, {recordings}, {size(contents['bytes'])} of recordings")
