"""What a long file costs, in ratios within one run: they hold on a slow machine and on a busy one."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from guard_core import recordings
from guard_core.costs import EventCounter
from guard_core.simulator.big_files import write_claude_code


@pytest.fixture(scope="module")
def transcript(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "big.jsonl"
    with path.open("wb") as out:
        write_claude_code(out, steps=2_500, size=10_000_000)
    return path


def best(work: Callable[[], object], times: int = 3) -> float:
    """Processor seconds of the fastest of some runs."""
    spent = []
    for _ in range(times):
        started = time.process_time()
        work()
        spent.append(time.process_time() - started)
    return min(spent)


def counted(path: Path) -> int:
    (session,) = recordings.read(path, shelve=path.parent).sessions
    counter = EventCounter()
    for event in session.events:
        counter.add(event)
    return counter.count


def test_the_first_look_costs_a_small_part_of_the_reading(transcript: Path) -> None:
    assert best(lambda: recordings.first_look(transcript)) * 4 < best(lambda: recordings.read(transcript))


def test_twice_the_file_is_about_twice_the_work(transcript: Path, tmp_path: Path) -> None:
    half = tmp_path / "half.jsonl"
    with half.open("wb") as out:
        write_claude_code(out, steps=1_250, size=5_000_000)
    assert best(lambda: counted(transcript)) < 3 * best(lambda: counted(half))
