"""Data folders on SQLite as tests need them: made by commands, changed by hand, compared byte for byte."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.services.databases import DATABASE
from tests.services.server import ROOT, clean_environment, command
from tests.waiting import PATIENCE


def manage(data_dir: Path, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """A management command on a data folder, on SQLite."""
    return subprocess.run(
        [sys.executable, "manage.py", *map(str, arguments)],
        cwd=ROOT,
        env={**clean_environment(), "DATA_DIR": str(data_dir), **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def refused(data_dir: Path, *arguments: str) -> str:
    """What a server on the folder says that does not start, with exit code 2, in one line."""
    with command("serve", "--port", "0", "--data-dir", str(data_dir), *arguments) as process:
        _, sentence = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2, sentence
    assert sentence.count("\n") == 1, sentence
    return sentence


def change(data_dir: Path, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """A statement on the database of a folder that no server uses."""
    with closing(sqlite3.connect(data_dir / DATABASE)) as connection, connection:
        return connection.execute(statement, values).fetchall()


def digest(folder: Path) -> str:
    """Of the names and contents of all files in a folder."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        content = path.read_bytes() if path.is_file() else b""
        total.update(repr((str(path.relative_to(folder)), len(content))).encode() + content)
    return total.hexdigest()


def damage(path: Path) -> None:
    """Overwrite the middle of a file with noise."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2 // 4096 * 4096)
        file.write(os.urandom(8 * 4096))
