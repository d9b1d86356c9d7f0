"""Small recordings written in tests, and the counted facts of the samples."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from guard_core.ledger import Ledger
from guard_core.recordings.base import Recording, RecordingFormat
from guard_core.recordings.reading.source import ByteSource
from guard_core.recordings.reading.watch import ObjectWatch
from guard_core.sessions import Session
from guard_core.views import View, kept_events
from tests.plugins.examples import EXAMPLES, USUAL

SAMPLES = Path(__file__).parents[3] / "../shared/samples"


def lines(*objects: Any) -> bytes:
    """JSON Lines."""
    return b"".join(json.dumps(item).encode() + b"\n" for item in objects)


def read_as(format_: RecordingFormat, content: Any, *, strict: bool = False) -> Recording:
    """Read bytes, or a value as one JSON text; the format must recognise them."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    with ByteSource.open(data, strict=strict) as source:
        assert format_.matches(source)
        source.watch = ObjectWatch(format_.known_names) if format_.known_names is not None else None
        return format_.read(source)


def recognises(format_: RecordingFormat, content: Any) -> bool:
    """Does the format take this content for its own?"""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    with ByteSource.open(data) as source:
        return format_.matches(source)


def texts(session: Session) -> list[str]:
    """The first text of every event, for a short assertion."""
    return [next((part.text for part in event.parts if hasattr(part, "text")), "") for event in session.events]


def kept(view: View) -> list[int]:
    """The log indexes that a view keeps, in its order."""
    return [index for span in kept_events(view) for index in span]


def sample_facts(folder: str) -> Iterator[tuple[Path, dict[str, int]]]:
    """The samples of a folder with their counted facts; the test is skipped where there are none."""
    index = SAMPLES / "index.json"
    if not index.is_file():
        pytest.skip("../shared/samples is absent")
    for entry in json.loads(index.read_text())["files"]:
        if entry["file"].startswith(folder + "/"):
            yield SAMPLES / entry["file"], entry["facts"]


def check_sample_facts(format_: RecordingFormat, folder: str) -> None:
    """Every sample of the folder is recognised, and its facts are equal to the counted ones."""
    for path, expected in sample_facts(folder):
        with ByteSource.open(path) as source:
            assert format_.matches(source), path.name
            recording = format_.read(source)
        facts = msgspec.structs.asdict(recording.facts)
        assert {key: facts[key] for key in facts if key in expected} == {
            key: expected[key] for key in facts if key in expected
        }, path.name
        for session in recording.sessions:
            check_session(session)


def check_session(session: Session) -> None:
    """What the engine relies on: calls in order and inside the log, every recorded view can be priced."""
    positions = [call.at for call in session.calls]
    assert positions == sorted(positions)
    assert all(0 <= at <= len(session.events) for at in positions)
    assert [item.at for item in session.compactions] == sorted(item.at for item in session.compactions)
    ledger = Ledger.of(session)
    for step in range(ledger.step_count):
        view, epoch = ledger.recorded_view(step)
        assert ledger.price(view, "bytes", epoch=epoch) >= 0


def check_hostile(format_: RecordingFormat, contents: Iterable[bytes]) -> None:
    """Whatever is in the fields, a reading is a Recording (or a sentence), never another exception."""
    from guard_core.errors import RecordingError

    checked = set()  # most hostile values leave the same session, and a look at it costs as much as the reading
    for content in contents:
        with ByteSource.open(content) as source:
            try:
                for session in format_.read(source).sessions:
                    if (words := repr(session)) not in checked:
                        check_session(session)
                        checked.add(words)
            except RecordingError:
                continue  # a sentence is a fine answer


HOSTILE_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    1.5,
    2**70,
    "",
    "12",
    "x",
    [],
    [None, 3, ["a"]],
    {},
    {"type": 7},
    [{}],
)


def spoiled(record: Any) -> Iterator[Any]:
    """The record with each of its values, at every depth, replaced by hostile values: one half of them and the other in
    turn, and by all of them where laws are tried on more examples than usual (`make soak`)."""
    pairs = record.items() if isinstance(record, dict) else enumerate(record) if isinstance(record, list) else ()
    turns = 1 if EXAMPLES > USUAL else 2
    for place, (key, value) in enumerate(list(pairs)):
        for bad in (*HOSTILE_VALUES[place % turns :: turns], *spoiled(value)):
            copy = dict(record) if isinstance(record, dict) else list(record)
            copy[key] = bad
            yield copy
