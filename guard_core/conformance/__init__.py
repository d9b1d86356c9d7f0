"""Conformance: recorded behaviour of ContextGuard and of libraries (vector files) against this engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from guard_core.conformance import functions, libraries, scripted, singleshot, traces
from guard_core.conformance.compare import LISTED, ConformanceVerdict, UnequalFigure
from guard_core.conformance.vectors import VectorError, load
from guard_core.errors import GuardError

__all__ = [
    "FORMATS",
    "LISTED",
    "ConformanceVerdict",
    "FileOutcome",
    "UnequalFigure",
    "VectorError",
    "check_file",
    "check_paths",
    "files_under",
]

FORMATS: dict[str, Callable[[bytes], Iterator[ConformanceVerdict]]] = {
    "contextguard-trace/1": traces.check,
    "contextguard-scripted/1": scripted.check,
    "contextguard-function/1": functions.check,
    "contextguard-singleshot/1": singleshot.check,
}


class FileOutcome(NamedTuple):
    """What was found in one file: a verdict per profile, or why it could not be judged."""

    path: Path
    verdicts: tuple[ConformanceVerdict, ...]
    problem: str = ""

    @property
    def equal(self) -> bool:
        """Was everything judged and equal."""
        return not self.problem and not any(verdict.different or verdict.problem for verdict in self.verdicts)


def check_file(path: Path) -> FileOutcome:
    """Judge one vector file."""
    try:
        format_, data = load(path)
        if format_ == libraries.CONVERSATIONS:
            return FileOutcome(path, (), "it holds conversations; the files beside it hold the runs that are judged")
        if format_ not in (*FORMATS, libraries.FORMAT):
            known = ", ".join((*FORMATS, libraries.FORMAT))
            return FileOutcome(path, (), f"its format is {format_[:60]!a}; known are {known}")
        verdicts = tuple(libraries.check(data, path) if format_ == libraries.FORMAT else FORMATS[format_](data))
        return FileOutcome(path, verdicts, "" if verdicts else "it holds no run")
    except GuardError as error:
        return FileOutcome(path, (), str(error))


def check_paths(paths: list[Path]) -> Iterator[FileOutcome]:
    """Judge files, and every .json file under folders, in order of name."""
    for path in paths:
        files = files_under(path)
        if not files:
            yield FileOutcome(path, (), "the folder holds no .json file")
        for file in files:
            if path == file or file.name != libraries.CONVERSATIONS_FILE:
                yield check_file(file)


def files_under(path: Path) -> list[Path]:
    """The file itself, or the .json files under a folder."""
    return sorted(path.rglob("*.json")) if path.is_dir() else [path]
