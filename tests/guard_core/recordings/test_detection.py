"""Recognising a format never trips over what stands in the fields."""

from __future__ import annotations

from contextlib import suppress

from guard_core.errors import RecordingError
from guard_core.recordings.registry import FORMATS
from guard_core.recordings.source import Source
from tests.guard_core.recordings.reading import lines, spoiled

# Keys that detection looks at, together in one object that is no recording at all.
RECORD = {
    "type": "a",
    "kind": "b",
    "source": "c",
    "action": "d",
    "id": "e",
    "role": "f",
    "data": {"spans": [{}]},
    "messages": [{"role": "user", "type": "human", "data": {}, "content": "", "from": "x", "value": ""}],
    "steps": [{"source": "agent"}],
    "trajectory": [{"action": "", "observation": ""}],
    "history": [{"action": ""}],
    "run_type": "llm",
    "context": {"trace_id": "t"},
    "attributes": {"a": "b"},
    "eval": {},
    "resourceSpans": [],
}


def test_no_format_trips_over_wrong_types():
    for bad in spoiled(RECORD):
        for content in (lines(bad), lines(bad, bad), lines([bad])):
            with Source.open(content) as source:
                for format_ in FORMATS:
                    with suppress(RecordingError):  # a damaged file, told in a sentence
                        format_.matches(source)
