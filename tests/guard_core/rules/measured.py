"""Recordings made by running real agents, with what was measured of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from guard_core.recordings import read
from guard_core.sessions import Provenance, Session, Sourced

SHARED = Path(__file__).parents[3] / "../shared"
RULES = SHARED / "rules"
SAMPLES = SHARED / "samples"
# Windows that the runs were configured with, where the file does not have them, in tokens.
WINDOWS = {"pi": 200_000, "opencode": 200_000, "hermes": 200_000}
RUNS = (
    "claude-code/2.1.14-default",
    "claude-code/2.1.330-default-overflow",
    "codex/default",
    "gemini-cli/default",
    "hermes/default-200k",
    "kimi-cli/default",
    "kimi-code/default",
    "mistral-vibe/default",
    "opencode/default",
    "pi/0.74.2-default",
    "qwen-code/default-1m",
)


class Run(NamedTuple):
    """A run: its main session, what was measured, and the window that the file does not have."""

    session: Session
    truth: dict[str, Any]
    window: Sourced | None


_READ: dict[str, Run] = {}  # each run is read once


def run_of(name: str, folder: Path) -> Run:
    """A measured run; the test is skipped where the recordings are not there. Databases are read from a copy."""
    place = RULES / name
    if not place.is_dir():
        pytest.skip(f"../shared/rules has no {name}")
    if name in _READ:
        return _READ[name]
    sessions = []
    for file in sorted(place.iterdir()):
        if file.name != "truth.json":
            path = shutil.copy(file, folder) if file.suffix == ".db" else file
            sessions += read(str(path)).sessions
    window = WINDOWS.get(name.split("/")[0])
    _READ[name] = Run(
        max(sessions, key=lambda session: len(session.calls)),
        json.loads((place / "truth.json").read_text()),
        None if window is None else Sourced(window, Provenance.USER),
    )
    return _READ[name]


def sample(name: str) -> Session:
    """The session with most calls of a sample, skipped where it is not there."""
    if not (SAMPLES / name).is_file():
        pytest.skip(f"../shared/samples has no {name}")
    return max(read(str(SAMPLES / name)).sessions, key=lambda session: len(session.calls))
