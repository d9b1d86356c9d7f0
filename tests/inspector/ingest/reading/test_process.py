"""A reader's process tells the same as a reader here, and neither outlives its caller nor takes it along."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from guard_core.errors import DamagedRecording, UnknownFormat
from guard_core.simulator.big_files import write_claude_code
from inspector.ingest.reading.messages import Begin, Done, End, EventBatch, Read, ReaderMessage, ReadingProgress
from inspector.ingest.reading.process import ReaderFailed, read_in_process
from inspector.ingest.reading.reader import ReadingOptions, read_here
from inspector.project.lifeline import ORPHANED

PATIENCE = 30.0  # seconds, for a machine that has other things to do


@pytest.fixture(scope="module")
def transcript(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("reading") / "big.jsonl"
    with path.open("wb") as out:
        write_claude_code(out, steps=1_500, size=6_000_000)
    return path


def readers() -> list[int]:
    """Process ids of the readers that this process has started."""
    children = [int(pid) for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()]
    return [pid for pid in children if b"inspector.ingest.reading" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def idle() -> None:
    """Nothing to do."""


def messages_of_process(path: Path, **options: object) -> list[ReaderMessage]:
    messages: list[ReaderMessage] = []
    read_in_process(ReadingOptions(str(path), **{"strict": True, **options}), messages.append, idle)  # type: ignore[arg-type]
    return messages


def messages_here(path: Path, **options: object) -> list[ReaderMessage]:
    messages: list[ReaderMessage] = []
    read_here(ReadingOptions(str(path), **{"strict": True, **options}), messages.append)  # type: ignore[arg-type]
    return messages


def texts(told: list[ReaderMessage]) -> list[bytes]:
    return [text for message in told if isinstance(message, EventBatch) for text in message.texts]


def of_kind(told: list[ReaderMessage], *kinds: type[ReaderMessage]) -> list[ReaderMessage]:
    return [message for message in told if isinstance(message, kinds)]


@pytest.fixture(scope="module")
def late(transcript) -> list[ReaderMessage]:
    """The messages of another process that reads the whole file before it sends events."""
    return messages_of_process(transcript)


def test_another_process_tells_the_same(transcript, late):
    here, there = messages_here(transcript), late
    assert there == here
    assert [type(message) for message in there[-2:]] == [End, Done]
    assert len(texts(there)) == of_kind(there, Read)[0].events > 3_000


def test_most_of_a_session_is_told_before_its_file_is_read(transcript, late):
    early = messages_of_process(transcript, early=True)
    assert texts(early) == texts(late)
    assert of_kind(early, Begin, End, Done) == of_kind(late, Begin, End, Done)
    before = early[: next(place for place, message in enumerate(early) if isinstance(message, Read))]
    assert len(texts(before)) > len(texts(late)) / 2
    assert len(of_kind(early, ReadingProgress)) >= 5  # each MiB


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        (b"\x00\x01nothing", UnknownFormat, "which no known format writes"),
        (b'{"uuid":"u","parentUuid":null,"sessionId":"s","type":"user"}\n', DamagedRecording, "message"),
    ],
)
def test_what_is_wrong_with_a_file_is_raised_here(content, error, words, tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    with pytest.raises(error, match=words) as here:
        messages_here(path)
    with pytest.raises(error, match=words) as there:
        messages_of_process(path)
    assert (there.value.line, there.value.column, there.value.reason) == (
        here.value.line,
        here.value.column,
        here.value.reason,
    )


def test_a_reader_that_the_system_ends_is_told_as_that(transcript):
    def kill_it(message: ReaderMessage) -> None:
        if isinstance(message, ReadingProgress):
            for reader in readers():  # none once it is killed; messages that it sent before may still come
                os.kill(reader, signal.SIGKILL)

    with pytest.raises(MemoryError, match="ended by the system"):
        read_in_process(ReadingOptions(str(transcript), strict=True), kill_it, idle)


def test_whoever_listens_may_stop_and_nothing_runs_on(transcript):
    def stop(message: ReaderMessage) -> None:
        assert len(readers()) == 1
        raise KeyError("enough")

    with pytest.raises(KeyError):
        read_in_process(ReadingOptions(str(transcript), strict=True, early=True), stop, idle)
    assert not readers()


def test_the_caller_can_do_something_while_the_process_starts(transcript):
    done: list[str] = []
    options = ReadingOptions(str(transcript), strict=True)
    note = done.append
    read_in_process(options, lambda message: note(type(message).__name__), idle, lambda: note("meanwhile"))
    assert (done[0], done[-1]) == ("meanwhile", "Done")


def test_idle_time_is_told_and_may_end_it_too(tmp_path):
    """While nothing comes: here while the process starts."""
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"{}")
    calls = iter(range(2))
    with pytest.raises(StopIteration):
        read_in_process(ReadingOptions(str(path), strict=True), lambda message: None, lambda: next(calls), wait=0.001)
    assert not readers()


def test_a_mistake_of_ours_is_told_with_its_place_and_not_printed(tmp_path, monkeypatch, capfd):
    path = tmp_path / "broken.py"
    path.write_text("raise RuntimeError('a mistake')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "sitecustomize.py").write_text(
        "import guard_core.recordings\nguard_core.recordings.read = lambda *_, **__: 1 / 0\n"
    )
    with pytest.raises(ReaderFailed, match=r"(?s)reader\.py.*ZeroDivisionError"):
        messages_of_process(path)
    assert capfd.readouterr() == ("", "")


def test_a_reader_ends_when_its_output_is_closed(transcript):
    with started_reader(transcript) as process:
        assert process.stdout is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.wait(PATIENCE) == 1


def test_a_reader_ends_with_its_parent(transcript):
    """Its standard input is a pipe that the parent holds."""
    with started_reader(transcript) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.read(10)
        process.stdin.close()
        assert process.wait(PATIENCE) == ORPHANED


def started_reader(transcript) -> subprocess.Popen[bytes]:
    options = json.dumps({"path": str(transcript), "strict": True, "early": True})
    command = [sys.executable, "-m", "inspector.ingest.reading", options]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_a_message_is_small_however_large_the_file_is(transcript):
    batches = [message for message in messages_here(transcript) if isinstance(message, EventBatch)]
    sizes = [sum(map(len, batch.texts)) + sum(len(words.encode()) for words in batch.words) for batch in batches]
    longest = max(len(text) for batch in batches for text in batch.texts)
    assert len(batches) > 4
    assert max(sizes) < 1_000_000 + 2 * longest, "several wait in memory at once"
