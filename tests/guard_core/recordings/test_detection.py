"""Recognising a format: by content in whatever wrapping, and never tripping over what stands in the fields."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress

import pytest

from guard_core.errors import DamagedRecording, RecordingError, UnknownFormat
from guard_core.recordings import read
from guard_core.recordings.reading.source import ByteSource
from guard_core.recordings.registry import FORMATS
from tests.guard_core.recordings.checks import lines, spoiled
from tests.recordings.seeds import SEEDS

# Keys that detection looks at, together in one object that is not a recording at all.
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
            with ByteSource.open(content) as source:
                for format_ in FORMATS:
                    with suppress(RecordingError):  # a damaged file, told in a sentence
                        format_.matches(source)


def in_one_value(content):
    """The seeds that are one JSON value."""
    with suppress(ValueError):
        return json.loads(content)


WRAPPINGS = {
    "a byte order mark": lambda content: b"\xef\xbb\xbf" + content,
    "CRLF": lambda content: content.replace(b"\n", b"\r\n"),
    "blank lines around": lambda content: b"\n\n" + content + b"\n \n",
    "gzip": gzip.compress,
}
TEXTS = {name: content for name, content in SEEDS.items() if not content.startswith((b"SQLite", b"PK"))}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_a_wrapping_changes_nothing(wrapping):
    for name, content in TEXTS.items():
        assert read(WRAPPINGS[wrapping](content)).facts == read(content).facts, name


def test_lines_that_are_arrays_are_no_damaged_value():
    with pytest.raises(UnknownFormat, match="this is JSON Lines whose lines are arrays, which no known format writes"):
        read(b'["a", {"b": 1}]\n["c", {"d": 2}]\n')


def short_on_one_line(value, depth=0):
    """JSON laid out as Prettier does: what is short is on one line."""
    short = json.dumps(value)
    if not isinstance(value, dict | list) or (len(short) < 60 and depth):
        return short
    keys = [f"{json.dumps(key)}: " for key in value] if isinstance(value, dict) else [""] * len(value)
    inner = value.values() if isinstance(value, dict) else value
    written = (f"{key}{short_on_one_line(item, depth + 1)}" for key, item in zip(keys, inner, strict=True))
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n" + ",\n".join(written) + f"\n{last}"


def test_one_value_of_which_several_lines_are_objects_is_one_value():
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]
    content = short_on_one_line({"first": messages, "second": messages, "more": "x" * 60}).encode()
    assert sum(line.startswith(b"{") and line.endswith(b"}") for line in content.splitlines()) > 1
    with pytest.raises(UnknownFormat, match="a JSON object with the keys first, second"):
        read(content)
    recording = read(
        short_on_one_line({"messages": messages * 2, "more": {"b": [{"role": "user", "content": "x"}]}}).encode()
    )
    assert (recording.facts.messages, recording.notes.problems) == (4, [])


@pytest.mark.parametrize("name", [name for name, content in TEXTS.items() if in_one_value(content)])
def test_how_json_is_laid_out_changes_nothing(name):
    value = in_one_value(TEXTS[name])
    for layout in ({"indent": 2}, {"separators": (",", ":")}):
        assert read(json.dumps(value, **layout).encode()).facts == read(TEXTS[name]).facts
    assert read(short_on_one_line(value).encode()).facts == read(TEXTS[name]).facts


def test_lines_in_an_array_or_spread_over_lines_are_told_what_they_are():
    events = [json.loads(line) for line in SEEDS["claude-code"].splitlines()]
    spread = "\n".join(json.dumps(event, indent=2) for event in events).encode()
    for content in (json.dumps(events).encode(), json.dumps(events, indent=1).encode(), spread):
        with pytest.raises((UnknownFormat, DamagedRecording), match="Claude Code has such objects one per line"):
            read(content)


def test_an_array_written_as_lines_is_told_what_it_is():
    with pytest.raises(UnknownFormat, match="Cline, Roo Code has such objects in one array"):
        read(lines(*json.loads(SEEDS["cline"])))


@pytest.mark.parametrize("name", ["atif", "inspect", "mini-swe-agent", "swe-agent"])
def test_rubbish_behind_a_value_is_damage(name):
    with pytest.raises(DamagedRecording, match="trailing characters"):
        read(SEEDS[name].rstrip(b"\n") + b"\nrubbish\n")


HI = {"role": "user", "content": "Hi"}
STEP = {"step_id": 1, "source": "user", "message": "Hi"}
SAID = {"id": 0, "source": "user", "action": "message", "args": {"content": "Hi"}}
SMALLEST = [
    ("openai-chat", [HI]),
    ("openai-chat", {"messages": [HI]}),
    ("anthropic-messages", {"model": "m", "system": "Be brief.", "messages": [HI]}),
    ("cline", [{**HI, "ts": 1_770_000_000_000}]),
    ("cline", [{"ts": 1, "type": "ask", "ask": "followup", "text": "{}"}]),
    ("cline", {"version": 1, "sessionId": "s", "messages": [HI]}),
    ("mini-swe-agent", {"info": {"exit_status": "", "model_stats": {}}, "messages": [HI]}),
    ("swe-agent", {"trajectory": [], "history": [HI]}),
    ("swe-agent", {"trajectory": [{"action": "ls", "observation": "a"}]}),
    ("openhands", SAID),
    ("openhands", [SAID]),
    ("openhands", {"trajectory": [SAID]}),
    ("openhands", {"instance_id": "i", "history": [[SAID, {"observation": "null", "content": ""}]]}),
    ("atif", {"schema_version": "ATIF-v1.8", "steps": [STEP]}),
    # keys of two formats: the particular one is meant
    ("atif", {"schema_version": "ATIF-v1.2", "steps": [STEP], "messages": [HI]}),
    ("swe-agent", {"trajectory": [{"action": "ls", "observation": "a"}], "history": [HI], "messages": [HI]}),
    ("mini-swe-agent", {"info": {"mini_version": "1"}, "messages": [HI], "history": [HI], "trajectory": []}),
]
OTHERS = [
    [],
    {},
    [{}],
    [[HI]],
    {"messages": []},
    {"steps": []},
    {"trajectory": [], "messages": []},
    {"name": "a package", "version": "1.0"},
    {"steps": [{"name": "build"}], "jobs": []},
    [{"role": "admin", "name": "x"}],
    [{"id": 1, "source": "user", "action": "login"}],
]


@pytest.mark.parametrize(("name", "value"), SMALLEST, ids=[f"{name}-{at}" for at, (name, _) in enumerate(SMALLEST)])
def test_the_smallest_files_are_what_they_are(name, value):
    assert read(json.dumps(value).encode()).format == name


@pytest.mark.parametrize("value", OTHERS, ids=[f"other-{at}" for at in range(len(OTHERS))])
def test_what_no_format_writes_is_refused_in_words(value):
    with pytest.raises(UnknownFormat, match="which no known format writes"):
        read(json.dumps(value).encode())


HEADS = {"a comment": b"// exported by hand\n", "a shell comment": b"# exported\n", "a damaged line": b"{broken\n"}
JSON_TEXTS = [name for name in TEXTS if name != "aider"]


@pytest.mark.parametrize("head", HEADS)
def test_a_comment_or_a_damaged_line_before_a_recording_is_refused_or_left_out(head):
    for name in JSON_TEXTS:
        content = HEADS[head] + TEXTS[name]
        with pytest.raises(DamagedRecording) as refused:
            read(content, strict=True)
        assert refused.value.line == 1, name
        recording = read(content)
        assert recording.facts == read(TEXTS[name]).facts, name
        assert [problem.line for problem in recording.notes.problems] == [1], name


def test_a_comment_on_the_line_of_a_value_is_left_out_too():
    assert read(b"/* mine */ " + TEXTS["adk"]).facts == read(TEXTS["adk"]).facts


def test_a_comment_before_something_else_makes_no_recording_of_it():
    with pytest.raises(UnknownFormat):
        read(b"// a comment\n[1, 2, 3]\n")
