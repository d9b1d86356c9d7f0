"""The hook before a compaction keeps the whole transcript, for its owner alone, and never stops the agent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from inspector.beside.keeping import MOST_COPIES, copy_bytes, keep, settings

NOW = datetime(2026, 11, 23, 12, 0, 0, tzinfo=UTC)
ROOT = Path(__file__).parents[3]


def event(path: Path) -> bytes:
    return json.dumps({"hook_event_name": "PreCompact", "trigger": "auto", "transcript_path": str(path)}).encode()


def test_a_copy_is_the_same_bytes_and_readable_by_its_owner_alone(tmp_path: Path) -> None:
    source = tmp_path / "0cf3db51.jsonl"
    source.write_bytes(b'{"type": "user"}\n\xff\n')
    words = keep(event(source), tmp_path / "copies", NOW)
    (copy,) = (tmp_path / "copies").iterdir()
    assert str(copy) in words
    assert copy.name == "20261123T120000Z-0cf3db51.jsonl"
    assert copy.read_bytes() == source.read_bytes()
    assert copy.stat().st_mode & 0o777 == 0o600
    assert copy.parent.stat().st_mode & 0o777 == 0o700


def test_the_oldest_copies_make_room(tmp_path: Path) -> None:
    source = tmp_path / "session.jsonl"
    source.write_bytes(b"{}\n")
    for number in range(MOST_COPIES + 3):
        keep(event(source), tmp_path / "copies", NOW + timedelta(seconds=number))
    names = sorted(path.name for path in (tmp_path / "copies").iterdir())
    assert len(names) == MOST_COPIES
    assert names[0].startswith("20261123T120003Z")


def test_an_old_copy_that_is_gone_when_it_is_looked_at_does_not_matter(tmp_path: Path) -> None:
    """The hook of another agent may have removed it."""
    source, copies = tmp_path / "session.jsonl", tmp_path / "copies"
    source.write_bytes(b"{}\n")
    copies.mkdir()
    (copies / "20201123T120000Z-gone.jsonl").symlink_to(tmp_path / "gone")
    assert keep(event(source), copies, NOW).endswith("20261123T120000Z-session.jsonl.")


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "loop"])
def test_what_is_no_regular_file_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    """A pipe gives its bytes when someone writes them, and a device without an end."""
    place = tmp_path / "session.jsonl"
    make: dict[str, Callable[[], object]] = {
        "pipe": lambda: os.mkfifo(place),
        "folder": place.mkdir,
        "device": lambda: place.symlink_to("/dev/zero"),
        "loop": lambda: place.symlink_to(place),
    }
    make[kind]()
    with pytest.raises(OSError, match=r"session\.jsonl"):
        keep(event(place), tmp_path / "copies", NOW)
    assert list((tmp_path / "copies").iterdir()) == []


def test_a_copy_has_what_the_transcript_had_when_it_was_begun(tmp_path: Path) -> None:
    """One into which its own copies are written would grow without an end."""
    source = tmp_path / "session.jsonl"
    source.write_bytes(b"{}\n" * 1_000)
    with source.open("rb") as original, source.open("ab", buffering=0) as copy:
        copy_bytes(original, copy, 3_000)
    assert source.stat().st_size == 6_000
    with source.open("rb") as original, (tmp_path / "copy").open("wb") as copy:
        copy_bytes(original, copy, 3_001)
    assert (tmp_path / "copy").read_bytes() == source.read_bytes()[:3_001]


def test_what_killed_hooks_left_is_removed_and_never_the_copy_of_one_that_runs(tmp_path: Path) -> None:
    source, copies = tmp_path / "session.jsonl", tmp_path / "copies"
    source.write_bytes(b"{}\n")
    copies.mkdir()
    old, new = copies / "20261120T120000Z-a.7.part", copies / "20261123T115959Z-b.8.part"
    for path in (old, new):
        path.write_bytes(b"{")
    os.utime(old, (0, 0))
    (copies / "20201123T120000Z-folder.jsonl").mkdir()
    keep(event(source), copies, NOW)
    assert (old.exists(), new.exists()) == (False, True)


@pytest.mark.parametrize(
    "data", [b"", b"[" * 100_000, b"[]", b"{}", b'{"transcript_path": "a\\u0000.jsonl"}', b'{"transcript_path": 7}']
)
def test_an_event_without_a_transcript_is_refused_in_words(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="event"):
        keep(data, tmp_path / "copies", NOW)
    assert not (tmp_path / "copies").exists()


def test_a_path_of_another_kind_of_file_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "nonexistent", tmp_path / "session.json"):
        with pytest.raises(ValueError, match=r"transcript_path is not a \.jsonl file: '/") as refused:
            keep(event(path), tmp_path / "copies", NOW)
        assert str(path) in str(refused.value)
    assert not (tmp_path / "copies").exists()


def test_the_printed_settings_run_as_they_are(tmp_path: Path) -> None:
    """Through a shell, as Claude Code runs them; a failure has exit code 1, because 2 would stop the compaction."""
    source = tmp_path / "session.jsonl"
    source.write_bytes(b"{}\n")
    command = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "inspector.project.cli"]
    given = settings(command)["hooks"]["PreCompact"][0]["hooks"][0]["command"]
    environ = {**os.environ, "COPIES_DIR": str(tmp_path / "my copies")}
    done = subprocess.run(given, shell=True, input=event(source), capture_output=True, env=environ, check=True)
    assert b"The context before this compaction is in" in done.stdout
    assert len(list((tmp_path / "my copies").iterdir())) == 1
    full = subprocess.run(
        f"ulimit -f 0; {given}", shell=True, input=event(source), capture_output=True, env=environ, check=False
    )
    assert full.returncode == 1
    assert full.stderr.decode() == f"No copy was kept: File too large: {tmp_path / 'my copies'}\n"
    source.unlink()
    failed = subprocess.run(given, shell=True, input=event(source), capture_output=True, env=environ, check=False)
    assert failed.returncode == 1
    assert failed.stderr.decode().startswith("No copy was kept: No such file or directory")
