"""What reading and counting a long file holds in memory, beside its size."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from guard_core import recordings
from guard_core.simulator.big_files import write_claude_code
from tests.benchmarks.test_large_files import counted


def peak(work: Callable[[], object]) -> int:
    """Bytes allocated at most."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.long
def test_reading_and_counting_holds_less_than_the_file(tmp_path: Path) -> None:
    """That events are on a shelf, not in memory, `reading/test_shelf.py` tries."""
    transcript = tmp_path / "big.jsonl"
    with transcript.open("wb") as out:
        write_claude_code(out, steps=1_500, size=6_000_000)
    whole = transcript.stat().st_size
    assert peak(lambda: counted(transcript)) < 0.9 * whole < 1.2 * whole < peak(lambda: recordings.read(transcript))


@pytest.mark.long
def test_reading_an_array_holds_less_than_the_file(tmp_path: Path) -> None:
    """That only the first elements are kept, `reading/test_large_array.py` tries."""
    export = tmp_path / "conversations.json"
    message = {"text": "", "content": [{"type": "text", "text": "word " * 200}], "sender": "human", "attachments": []}
    messages = [{**message, "uuid": str(number)} for number in range(60)]
    conversations = [{"uuid": str(number), "name": "", "chat_messages": messages} for number in range(300)]
    export.write_text("[" + ",\n".join(map(json.dumps, conversations)) + "]")
    whole = export.stat().st_size
    assert peak(lambda: recordings.read(export, shelve=tmp_path)) < 0.9 * whole
    assert peak(lambda: recordings.read(export, shelve=tmp_path, shelve_from=2 * whole)) > 1.2 * whole
