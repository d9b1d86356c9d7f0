"""Laws of every reader: no bytes give anything but a session that can be stored, or a sentence."""

import json
import random
import zlib

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from guard_core.errors import RecordingError
from guard_core.ledger import Ledger
from guard_core.recordings import FORMATS, ByteSource, read
from guard_core.recordings.formats import native
from guard_core.recordings.reading.limits import Limits
from guard_core.recordings.reading.strict_json import JsonProblem, decode
from tests.guard_core.recordings.checks import SAMPLES
from tests.guard_core.recordings.formats.test_native import TALK
from tests.plugins.examples import EXAMPLES
from tests.recordings.damaged import ADK_GOOD, GOOD

SMALL = [GOOD, ADK_GOOD, native.write(TALK)]

# Names that readers look for: random objects made of these get far into them.
KEYS = [
    *("type", "role", "content", "message", "messages", "payload", "id", "uuid", "parentUuid", "sessionId", "usage"),
    *("events", "appName", "app_name", "actions", "compaction", "usageMetadata", "usage_metadata", "timestamp", "data"),
    *("input_tokens", "prompt_tokens", "tool_calls", "function", "arguments", "name", "call_id", "output", "item"),
    *("request", "response", "model", "info", "parts", "tokens", "steps", "trajectory", "history", "conversations"),
    *("resourceSpans", "scopeSpans", "spans", "attributes", "run_type", "trace_id", "inputs", "outputs", "kind"),
    *("isCompactSummary", "subtype", "compactMetadata", "preTokens", "logicalParentUuid", "isSidechain", "version"),
    *("projectHash", "$set", "state", "schema_version", "tool_name", "summary", "cwd", "parentId", "firstKeptEntryId"),
]
WORDS = [
    *("user", "assistant", "tool", "system", "model", "gemini", "human", "gpt", "message", "session", "compaction"),
    *("session_meta", "response_item", "event_msg", "compacted", "turn_context", "function_call", "text", "tool_use"),
    *("function_call_output", "tool_result", "compact_boundary", "llm", "chain", "token_count", "session.start"),
    *("ATIF-v1.5", "ActionEvent", "reasoning", "a1", "u1", "", "2026-11-21T03:00:00Z", "\u2028", "😀"),
]
SCALAR = st.none() | st.booleans() | st.integers(-3, 2**40) | st.floats(allow_nan=False) | st.sampled_from(WORDS)
TREE = st.recursive(
    SCALAR,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=30,
)
OBJECT = st.dictionaries(st.sampled_from(KEYS), TREE, min_size=1, max_size=8)


def check_reading(content, *, strict):
    """Read; what comes out can be stored, counted and exported. The recording, or None for a sentence."""
    try:
        recording = read(content, strict=strict, limits=Limits(database_seconds=5))
    except RecordingError as error:
        sentence = str(error)
    else:
        check_recording(recording)
        return recording
    assert sentence.strip()
    assert "\n" not in sentence
    assert "cannot be read as" not in sentence, "a reader met what it did not foresee"
    return None


def check_recording(recording):
    """Every session can be stored, priced at every step, and exported."""
    msgspec.json.encode(recording.sessions).decode("utf-8")
    for session in recording.sessions:
        ledger = Ledger.of(session)
        for step in range(ledger.step_count):
            ledger.price(ledger.recorded_view(step)[0], "bytes", epoch=ledger.recorded_view(step)[1])
        assert read(native.write(session), strict=True).sessions == (session,)


def damaged(content, seed):
    """The content with a few bytes cut out, doubled, changed or put elsewhere."""
    chance = random.Random(seed)
    data = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) or 1)
        to = min(at + chance.choice([1, 1, 2, 8, 60]), len(data))
        kind = chance.randrange(4)
        if kind == 0:
            del data[at:to]
        elif kind == 1:
            data[at:at] = data[at:to]
        elif kind == 2:
            data[at:to] = chance.choice(
                [b"{", b"}", b"[", b'"', b"\\", b"\n", b"\x00", b"\xff", b"1e999", b"NaN", b"-1"]
            )
        else:
            data[at:at] = bytes(data[chance.randrange(len(data) or 1) :][:40])
    return bytes(data)


def replaced(value, chance, other):
    """The value with one random place in it replaced by another value."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        return {**value, key: replaced(value[key], chance, other)}
    if isinstance(value, list) and value and chance.random() < 0.9:
        at = chance.randrange(len(value))
        return [*value[:at], replaced(value[at], chance, other), *value[at + 1 :]]
    return other


def with_other_values(content, seed, others):
    """A recording with values of other kinds at random places; its JSON stays whole."""
    chance = random.Random(seed)
    lines = content.split(b"\n")
    try:
        whole = json.loads(content)
    except ValueError:
        whole = None
    for other in others:
        if whole is not None:
            whole = replaced(whole, chance, other)
            continue
        at = chance.randrange(len(lines))
        try:
            lines[at] = json.dumps(replaced(json.loads(lines[at]), chance, other)).encode()
        except ValueError:
            continue
    return b"\n".join(lines) if whole is None else json.dumps(whole).encode()


def pieces():
    """Small recordings: our own, and small samples or the first lines of large ones, where those are there."""
    about = {"index.json", "README.md"}
    paths = sorted(path for path in SAMPLES.rglob("*") if path.is_file() and path.name not in about)
    whole = [path.read_bytes() for path in paths if path.stat().st_size < 130_000]
    beginnings = [path.read_bytes()[:60_000].rpartition(b"\n")[0] for path in paths if path.suffix == ".jsonl"]
    return [*SMALL, *whole, *(content for content in beginnings if content)]


@given(st.binary(max_size=300), st.booleans())
@example(b"\x1f\x8b" + bytes(10), False)
@example(b"SQLite format 3\x00" + bytes(100), False)
@example(b"PK\x03\x04" + bytes(100), False)
def test_any_bytes_give_a_session_or_a_sentence(content, strict):
    check_reading(content, strict=strict)


@given(st.lists(OBJECT, min_size=1, max_size=6), st.booleans())
def test_any_lines_give_a_session_or_a_sentence(objects, strict):
    check_reading(b"".join(json.dumps(item).encode() + b"\n" for item in objects), strict=strict)


@given(OBJECT | st.lists(OBJECT, min_size=1, max_size=4), st.booleans())
def test_any_json_gives_a_session_or_a_sentence(value, strict):
    check_reading(json.dumps(value, indent=1).encode(), strict=strict)


@given(st.sampled_from(pieces()), st.integers(0, 2**32), st.booleans())
def test_a_damaged_recording_gives_a_session_or_a_sentence(content, seed, strict):
    check_reading(damaged(content, seed), strict=strict)


@given(st.sampled_from(pieces()), st.integers(0, 2**32), st.lists(TREE, min_size=1, max_size=4), st.booleans())
def test_values_of_other_kinds_give_a_session_or_a_sentence(content, seed, others, strict):
    check_reading(with_other_values(content, seed, others), strict=strict)


@given(st.binary(max_size=80) | TREE.map(lambda value: json.dumps(value).encode()), st.integers(0, 2**32))
def test_what_the_strict_parser_takes_json_takes_too(raw, seed):
    raw = damaged(raw, seed) if seed % 3 else raw
    try:
        value, mended, _ = decode(raw, Limits())
    except JsonProblem:
        return
    if not mended:
        assert json.loads(raw) == value


@given(st.sampled_from(SMALL), st.integers(0, 2**32))
def test_a_strict_reading_that_succeeds_equals_the_lenient_one(content, seed):
    data = damaged(content, seed)
    strict = check_reading(data, strict=True)

    if strict is not None:
        lenient = read(data)
        assert (strict.sessions, strict.facts) == (lenient.sessions, lenient.facts)


@pytest.mark.parametrize("format_", FORMATS, ids=[item.label for item in FORMATS])
@settings(max_examples=max(25, EXAMPLES // 12))  # times the formats
@given(TREE)
def test_no_format_fails_to_say_no(format_, value):
    with ByteSource.open(json.dumps(value).encode() + b" ") as source:
        format_.matches(source)


def test_the_bytes_decide_not_the_process():
    """The same damage everywhere: the seed is the whole chance."""
    assert zlib.crc32(damaged(GOOD, 7)) == zlib.crc32(damaged(GOOD, 7))
