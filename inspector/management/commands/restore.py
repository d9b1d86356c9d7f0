"""`manage.py restore FILE`: a backup, or the copy of a database from before an upgrade, back into the data folder."""

from __future__ import annotations

from argparse import ArgumentParser
from contextlib import closing
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from inspector.data_folder.owner import alone, beside
from inspector.data_folder.restoring import restore
from inspector.management.refusals import refusals
from inspector.pages.shared.numbers import counted, size


class Command(BaseCommand):
    help = (
        "Verify a backup (every recording by its SHA-256, the database page by page) and put it into an empty data "
        "folder. Exit code 2, and nothing changed, when it is damaged, the folder is in use or a server runs on it. "
        "With --check it may be in use."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="written by `backup`, or a copy in DATA_DIR/backups")
        parser.add_argument(
            "--replace", action="store_true", help="move the data folder's contents into a subfolder first"
        )
        parser.add_argument("--check", action="store_true", help="only verify the file")

    def handle(self, *args: Any, **options: Any) -> None:
        folder, file = Path(settings.DATA_DIR), options["file"]
        with refusals(), closing((beside if options["check"] else alone)(folder)):
            restored = restore(file, replace=options["replace"], only_check=options["check"])
        recordings = f"{counted(restored.recordings, 'recording')}, {size(restored.size)} of recordings"
        self.stdout.write(f"{file}: database and {recordings}, verified.")
        if restored.lost:
            lost, names = counted(len(restored.lost), "recording"), ", ".join(restored.lost[:5])
            self.stdout.write(
                f"{lost} cannot be downloaded any more, because the bytes are missing or damaged: {names}."
            )
        if options["check"]:
            return
        self.stdout.write(f"Restored into {folder}. Start the server.")
        if restored.aside is not None:
            self.stdout.write(f"What was here before is in {restored.aside}. Delete it when you no longer need it.")
