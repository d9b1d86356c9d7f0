"""Damaged recordings, each with what a strict and a lenient reading must make of it.

`strict` and `lenient` are the name of the error, or the number of events of the first session that is read.
`sentence` is part of what a person is told, by the error or by the import report.
"""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any, NamedTuple

from guard_core.errors import RecordingError
from guard_core.recordings import read


class Case(NamedTuple):
    """One damaged file."""

    name: str
    content: bytes
    strict: str | int
    lenient: str | int
    sentence: str
    line: int | None = None  # that a strict refusal names


class Outcome(NamedTuple):
    """What a reading gave: the number of events of the first session, or the name of the error with its line."""

    result: str | int
    sentence: str
    line: int | None = None


def outcome(content: bytes, *, strict: bool) -> Outcome:
    """Read a file."""
    try:
        recording = read(content, strict=strict)
    except RecordingError as error:
        return Outcome(type(error).__name__, str(error), error.line)
    problems = " ".join(problem.message for problem in recording.notes.problems)
    return Outcome(len(recording.sessions[0].events), problems)


def user(number: int, text: str = "Look", **fields: Any) -> bytes:
    """A line of a Claude Code transcript with a user's words."""
    parent = f"n{number - 1}" if number > 1 else None
    message = {"role": "user", "content": text}
    line = {"type": "user", "uuid": f"n{number}", "parentUuid": parent, "sessionId": "s", "message": message, **fields}
    return json.dumps(line).encode() + b"\n"


def answer(number: int, text: str = "Done", usage: Any = None, **message: Any) -> bytes:
    """A line of a Claude Code transcript with one whole answer."""
    usage = {"input_tokens": 10, "output_tokens": 2} if usage is None else usage
    content = [{"type": "text", "text": text}]
    body = {"id": f"m{number}", "role": "assistant", "model": "model-1", "content": content, "usage": usage, **message}
    line = {
        "type": "assistant",
        "uuid": f"n{number}",
        "parentUuid": f"n{number - 1}",
        "sessionId": "s",
        "message": body,
    }
    return json.dumps(line).encode() + b"\n"


HEAD = user(1) + answer(2)
TAIL = user(4, "Go on", parentUuid="n2")
GOOD = HEAD + TAIL


def _line(content: bytes) -> bytes:
    """The content as line 3 of a recording that is good before and behind."""
    return HEAD + content + b"\n" + TAIL


def _value(json_value: bytes) -> bytes:
    return _line(b'{"type":"note","value":' + json_value + b"}")


def adk(events: bytes, head: bytes = b'"id":"s","appName":"app","userId":"u"') -> bytes:
    """An ADK session around the text of its events."""
    return b"{" + head + b',"state":{},"events":' + events + b"}"


def adk_event(text: str = "Hello", **fields: Any) -> bytes:
    """One ADK event with one text."""
    content = {"role": "user", "parts": [{"text": text}]}
    return json.dumps({"author": "user", "content": content, "timestamp": 1.0, **fields}).encode()


ADK_GOOD = adk(b"[" + adk_event(id="e1") + b"," + adk_event(id="e2") + b"]")


def _gzip_of(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


# The third of four lines is damaged: strict stops there, lenient reads the other three messages.
BROKEN_LINES = [
    ("cut in a string", b'{"type":"user","message":{"content":"Lo', "JSON that ends too early"),
    ("cut in an object", b'{"type":"user","message":{', "JSON that ends too early"),
    ("only a brace", b"{", "JSON that ends too early"),
    ("closing brace too many", b'{"a":1}}', "trailing characters"),
    ("two objects on a line", b'{"a":1}{"b":2}', "trailing characters"),
    ("text behind the object", b'{"a":1} and so on', "trailing characters"),
    ("plain text", b"Traceback (most recent call last):", "not valid JSON"),
    ("a comment", b"// a comment", "not valid JSON"),
    ("trailing comma", b'{"a":1,}', "trailing comma"),
    ("single quotes", b"{'a':1}", "not valid JSON"),
    ("unquoted key", b"{a:1}", "not valid JSON"),
    ("missing colon", b'{"a" 1}', "not valid JSON"),
    ("missing value", b'{"a":}', "not valid JSON"),
    ("mismatched brackets", b'{"a":[1}', "not valid JSON"),
    ("python literals", b'{"a":None,"b":True}', "not valid JSON"),
    ("unknown escape", b'{"a":"\\x41"}', "invalid escape"),
    ("short unicode escape", b'{"a":"\\u12"}', "not valid JSON"),
    ("raw tab in a string", b'{"a":"x\ty"}', "invalid character"),
    ("raw NUL in a string", b'{"a":"x\x00y"}', "invalid character"),
    ("raw escape character in a string", b'{"a":"\x1b[31m"}', "invalid character"),
    ("a form feed between lines", b"\x0c", "nothing where a JSON value should be"),
    ("an array", b"[1,2,3]", "a JSON array where an object should be"),
    ("a number", b"42", "a JSON number where an object should be"),
    ("a string", b'"text"', "a JSON text where an object should be"),
    ("null", b"null", "a JSON null where an object should be"),
    ("true", b"true", "a JSON boolean where an object should be"),
    ("latin-1 bytes", b'{"a":"caf\xe9"}', "the byte 0xe9, which is not UTF-8"),
    ("an overlong encoding", b'{"a":"\xc0\x80"}', "which is not UTF-8"),
    ("a raw surrogate", b'{"a":"\xed\xa0\xbd"}', "which is not UTF-8"),
    ("a code point behind the last", b'{"a":"\xf4\x90\x80\x80"}', "which is not UTF-8"),
    ("a cut character", b'{"a":"\xe2\x82"}', "which is not UTF-8"),
    ("a UTF-16 line", '{"a":1}'.encode("utf-16-le"), "not valid JSON"),
    ("a key twice", b'{"a":1,"b":2,"a":3}', 'the key "a" twice'),
    ("a key twice, written otherwise", b'{"key":1,"k\\u0065y":2}', 'the key "key" twice'),
    ("a key twice, deep inside", b'{"x":[{"y":{"k":1,"k":1}}]}', 'the key "k" twice'),
    ("a key twice, with spaces", b'{"a" :1,  "a"  :2}', 'the key "a" twice'),
    ("a key twice beside text like keys", b'{"a":"\\"b\\":","a":":"}', 'the key "a" twice'),
]
BROKEN_VALUES = [
    ("NaN", b"NaN", "NaN, which is not a JSON number"),
    ("Infinity", b"[Infinity]", "Infinity, which is not a JSON number"),
    ("negative infinity", b"-Infinity", "Infinity, which is not a JSON number"),
    ("a float that overflows", b"1e400", "too large for a float"),
    ("2 to the 63rd", b"9223372036854775808", "outside the 64-bit range"),
    ("2 to the 64th", b"18446744073709551616", "outside the 64-bit range"),
    ("below the smallest integer", b"-9223372036854775809", "outside the 64-bit range"),
    ("21 digits", b"123456789012345678901", "a number of 21 digits (limit 20)"),
    ("5,000 digits", b"9" * 5000, "a number of 5000 digits (limit 20)"),
    ("a leading zero", b"012", "invalid number"),
    ("a leading plus", b"+1", "not valid JSON"),
    ("a bare fraction", b".5", "not valid JSON"),
    ("a number without fraction", b"1.", "invalid number"),
    ("hexadecimal", b"0x1F", "not valid JSON"),
    ("other digits", "१२".encode(), "not valid JSON"),
]
BROKEN_LIMITS = [
    ("129 levels", b'{"a":' + b"[" * 128 + b"]" * 128 + b"}", "nesting deeper than 128 levels"),
    ("100,000 levels", b"[" * 100_000, "nesting deeper than 128 levels"),
    ("100,000 levels of objects", b'{"a":' * 100_000, "nesting deeper than 128 levels"),
    (
        "10,001 keys",
        json.dumps({f"k{n}": n for n in range(10_001)}).encode(),
        "an object with 10001 keys (limit 10000)",
    ),
]
BROKEN_MEANING = [
    ("a message that is text", b'{"type":"user","uuid":"x","message":"hi"}', '"message" of a user line is missing'),
    ("a message that is missing", b'{"type":"assistant","uuid":"x"}', '"message" of a assistant line is missing'),
    ("tokens as text", answer(3, usage={"input_tokens": "10"}).strip(), "input_tokens is '10' (text)"),
    (
        "negative tokens",
        answer(3, usage={"input_tokens": -1}).strip(),
        "input_tokens is -1, no count",
    ),
    ("tokens with a fraction", answer(3, usage={"input_tokens": 1.5}).strip(), "input_tokens is 1.5"),
    (
        "tokens that are true",
        answer(3, usage={"cache_read_input_tokens": True}).strip(),
        "_tokens is true, no count",
    ),
    (
        "tokens beyond counting",
        answer(3, usage={"output_tokens": 2**60}).strip(),
        "1152921504606846976, no count",
    ),
    (
        "a boundary with tokens as text",
        b'{"type":"system","subtype":"compact_boundary","uuid":"b","compactMetadata":{"preTokens":"many"}}',
        'preTokens is "many", no count of tokens',
    ),
]
# The line stays: what no store takes is replaced where lenient.
MENDED = [
    ("an escaped NUL", b'{"type":"note","a":"x\\u0000y"}', "a NUL character"),
    ("half a surrogate pair", b'{"type":"note","a":"\\ud83d"}', "half of a surrogate pair"),
    ("the other half", b'{"type":"note","a":"\\uDE00!"}', "half of a surrogate pair"),
    ("halves in the wrong order", b'{"type":"note","a":"\\ude00\\ud83d"}', "half of a surrogate pair"),
    ("an escaped NUL in a key", b'{"type":"note","\\u0000":1}', "a NUL character"),
]
HARMLESS = [
    ("an emoji as a pair of escapes", b'{"type":"note","a":"\\ud83d\\ude00"}'),
    ("an escaped backslash before ud83d", b'{"type":"note","a":"\\\\ud83d"}'),
    ("line separators that end no line", '{"type":"note","a":"\u2028\u2029\x85\ufeff"}'.encode()),
    ("a blank line", b"   "),
    ("a carriage return", b'{"type":"note"}\r'),
    ("negative zero", b'{"type":"note","a":-0.0}'),
    ("128 levels", b'{"type":"note","a":' + b"[" * 127 + b"]" * 127 + b"}"),
    ("the largest integer", b'{"type":"note","a":9223372036854775807}'),
    ("an unknown kind of line", b'{"type":"from the future","payload":{"x":1}}'),
    ("a line without a kind", b'{"x":1}'),
    ("equal keys in different objects", b'{"type":"note","a":{"k":1},"b":{"k":1}}'),
    ("text that looks like keys", b'{"type":"note","a":"{\\"k\\":1,\\"k\\":2}","b":":"}'),
]
WHOLE_FILES = [
    Case("nothing", b"", "DamagedRecording", "DamagedRecording", "the file is empty"),
    Case("only blanks", b" \n\n \t\n", "UnknownFormat", "UnknownFormat", "an empty file"),
    Case("a byte order mark alone", b"\xef\xbb\xbf", "UnknownFormat", "UnknownFormat", "an empty file"),
    Case("a byte order mark before a good file", b"\xef\xbb\xbf" + GOOD, 3, 3, ""),
    Case("UTF-16", GOOD.decode().encode("utf-16"), "DamagedRecording", "DamagedRecording", "UTF-16"),
    Case("UTF-32", b"\xff\xfe\x00\x00" + b"{\x00\x00\x00", "DamagedRecording", "DamagedRecording", "UTF-32"),
    Case("a letter", b"Dear all,\nthe meeting is moved.\n", "UnknownFormat", "UnknownFormat", "line 1: this is text"),
    Case("random bytes", bytes(range(128, 256)) * 4, "UnknownFormat", "UnknownFormat", "this is text"),
    Case("an object of something else", b'{"name":"x"}', "UnknownFormat", "UnknownFormat", "the keys name"),
    Case("lines of something else", b'{"n":1}\n{"n":2}\n', "UnknownFormat", "UnknownFormat", "the keys n"),
    Case("an array of numbers", b"[1,2,3]", "UnknownFormat", "UnknownFormat", "a JSON array of 3 items"),
    Case("a lone number", b"42", "UnknownFormat", "UnknownFormat", "no known format"),
    Case("a cut object", b'{"events":[{"id":1', "DamagedRecording", "DamagedRecording", "ends too early"),
    Case("an unfinished last line", GOOD + b'{"type":"assis', 3, 3, ""),
    Case("a last line without newline", GOOD.rstrip(b"\n"), 3, 3, ""),
    Case("a damaged first line", b"{broken\n" + GOOD, "DamagedRecording", 3, "not valid JSON"),
    Case("no message at all", user(1).replace(b'"user"', b'"note"'), "UnknownFormat", "UnknownFormat", "the keys type"),
    Case("a parent that leads to itself", user(1, parentUuid="n1"), 1, 1, ""),
    Case("a circle of parents", user(1, parentUuid="n2") + user(2), 2, 2, ""),
    Case("a parent that is missing", HEAD + user(3, parentUuid="lost"), 3, 3, ""),
    Case("every line twice", GOOD + GOOD, 3, 3, ""),
    Case("an orphan result", HEAD + user(3, [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]), 3, 3, ""),  # type: ignore[arg-type]
    Case("content of a wrong type", HEAD + user(3, 7), 3, 3, ""),  # type: ignore[arg-type]
    Case("a zip archive", b"PK\x03\x04" + bytes(40), "UnknownFormat", "UnknownFormat", "ZIP archive"),
    Case("a tar archive", bytes(257) + b"ustar" + bytes(250), "UnknownFormat", "UnknownFormat", "a tar archive"),
    Case("a 7z archive", b"7z\xbc\xaf\x27\x1c" + bytes(40), "UnknownFormat", "UnknownFormat", "a 7z archive"),
    Case("a PDF", b"%PDF-1.7\n", "UnknownFormat", "UnknownFormat", "a PDF document"),
    Case("a picture", b"\x89PNG\r\n\x1a\n" + bytes(40), "UnknownFormat", "UnknownFormat", "a PNG image"),
    Case("a gzip stream", _gzip_of(GOOD), 3, 3, ""),
    Case("a cut gzip stream", _gzip_of(GOOD)[:-30], "DamagedRecording", "DamagedRecording", "ends too early"),
    Case(
        "a broken gzip stream", b"\x1f\x8b\x08\x00" + bytes(60), "DamagedRecording", "DamagedRecording", "gzip stream"
    ),
    Case(
        "two gzip streams", _gzip_of(HEAD) + _gzip_of(TAIL), "DamagedRecording", "DamagedRecording", "only a single one"
    ),
    Case("gzip in gzip", _gzip_of(_gzip_of(GOOD)), "UnknownFormat", "UnknownFormat", "inside a gzip stream"),
    Case("a gzip bomb", _gzip_of(bytes(2_000_000) * 20), "LimitExceeded", "LimitExceeded", "unpacks to more than"),
    Case("zlib without gzip", zlib.compress(GOOD), "UnknownFormat", "UnknownFormat", "this is text"),
    Case("a SQLite header alone", b"SQLite format 3\x00" + bytes(84), "UnknownFormat", "UnknownFormat", "SQLite"),
    Case("a good ADK session", ADK_GOOD, 2, 2, ""),
    Case("ADK events that are an object", adk(b"{}"), "DamagedRecording", "DamagedRecording", "not an array"),
    Case("ADK without events", adk(b"[]"), "DamagedRecording", "DamagedRecording", "without any message"),
    Case(
        "an ADK event that is text",
        adk(b'["x",' + adk_event() + b"]"),
        "DamagedRecording",
        1,
        "event 1 is not an object",
    ),
    Case(
        "ADK tokens as text",
        adk(b"[" + adk_event() + b"," + adk_event(usageMetadata={"promptTokenCount": "9"}) + b"]"),
        "DamagedRecording",
        1,
        "event 2: promptTokenCount is '9'",
    ),
    Case(
        "an ADK compaction without times",
        adk(b"[" + adk_event() + b"," + adk_event(actions={"compaction": {"compactedContent": {}}}) + b"]"),
        "DamagedRecording",
        1,
        "a compaction without its range of times",
    ),
    Case("an ADK session and blanks", adk(b"[" + adk_event() + b"]") + b" \n\n", 1, 1, ""),
    Case(
        "an ADK session with a key twice",
        adk(b"[" + adk_event() + b"]", b'"id":"a","id":"b","appName":"app"'),
        "DamagedRecording",
        1,
        'the key "id" twice',
    ),
    Case(
        "NaN in an ADK session", adk(b"[" + adk_event() + b"]", b'"id":NaN,"appName":"a"'), "DamagedRecording", 1, "NaN"
    ),
    Case("a cut ADK session", ADK_GOOD[:-40], "DamagedRecording", "DamagedRecording", "ends too early"),
    Case("an ADK session with text behind it", ADK_GOOD + b"x", "DamagedRecording", "DamagedRecording", "trailing"),
]

CASES: list[Case] = [
    *(Case(name, _line(content), "DamagedRecording", 3, sentence) for name, content, sentence in BROKEN_LINES),
    *(Case(name, _value(value), "DamagedRecording", 3, sentence) for name, value, sentence in BROKEN_VALUES),
    *(Case(name, _line(content), "LimitExceeded", 3, sentence) for name, content, sentence in BROKEN_LIMITS),
    *(Case(name, _line(content), "DamagedRecording", 3, sentence) for name, content, sentence in BROKEN_MEANING),
    *(Case(name, _line(content), "DamagedRecording", 3, sentence) for name, content, sentence in MENDED),
    *(Case(name, _line(content), 3, 3, "") for name, content in HARMLESS),
    *WHOLE_FILES,
]
LINE_CASES = [case for case in CASES if case.content.startswith(HEAD) and case.strict == "DamagedRecording"]
