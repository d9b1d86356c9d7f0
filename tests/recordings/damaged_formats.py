"""Damages of every format: seeds cut, with wrong types and bytes that no text has; hostile containers; polyglots.

`damaged_formats.json` says what a reading of each must give: strict, lenient, sentence, line, as in `damaged.Case`.
`python -m tests.recordings.damaged_formats` prints entries for the files that have none, as they are read now: judge
each before you add it.
"""

from __future__ import annotations

import gzip
import json
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.recordings.damaged import GOOD, Case, outcome
from tests.recordings.seeds import DATABASES, ENTRIES, EVAL, SEEDS, WORDS, archive, database

HOSTILE = "\\u202egnp.\\u202c<script>document.title='XSS'</script>\\u001b[31m{{7*7}}%00\\ufffe\\u2028=1+1"
Damage = Callable[[bytes], bytes]


def _words(new: bytes) -> Damage:
    return lambda content: content.replace(WORDS.encode(), new)


def _numbers(new: bytes) -> Damage:
    """Every number of 100 tokens replaced, quoted or not."""
    return lambda content: re.sub(rb"\b100\b(?!\.)", new, content)


DAMAGES: dict[str, Damage] = {
    "cut in the middle": lambda content: content[: len(content) * 3 // 5],
    "with a byte that is not UTF-8": _words(b"List \xff files"),
    "with NUL and half a pair in the words": _words(b"List \\u0000\\ud83d files"),
    "with hostile words": _words(HOSTILE.encode()),
    "with words that are a number": lambda content: content.replace(f'"{WORDS}"'.encode(), b"7"),
    "with words nested 127 times": lambda content: content.replace(f'"{WORDS}"'.encode(), b"[" * 127 + b"]" * 127),
    "with 21 digits of tokens": _numbers(b"9" * 21),
}


def _damaged_seeds() -> Iterator[tuple[str, bytes]]:
    yield "aider with raw control characters", SEEDS["aider"].replace(WORDS.encode(), b"List\x00\x1b[31m\x7f\x85")
    for seed, content in SEEDS.items():
        for name, damage in DAMAGES.items():
            if (damaged := damage(content)) != content and (b"\\u0000" not in damaged or seed != "aider"):
                yield f"{seed} {name}", damaged


def _page(content: bytes, number: int, byte: bytes) -> bytes:
    """The database with one page of 4,096 bytes filled with one byte."""
    return content[: 4096 * (number - 1)] + byte * 4096 + content[4096 * number :]


def _damaged_databases() -> Iterator[tuple[str, bytes]]:
    for name, content in DATABASES.items():
        yield f"{name} cut in the middle", content[: len(content) * 3 // 5]
        yield f"{name} with a last page of 0xff", _page(content, len(content) // 4096, b"\xff")
        yield f"{name} with broken JSON", content.replace(b'{"', b"{{").replace(b'[{"', b"[{{")
        yield f"{name} with words of other bytes", content.replace(WORDS.encode(), b"List\xff\x00\xc0s")
        yield f"{name} with a schema that is not SQL", content.replace(b"CREATE TABLE", b"CREATE TABBE")


def _patched(content: bytes, signature: bytes, offset: int, new: bytes) -> bytes:
    at = content.rindex(signature) + offset
    return content[:at] + new + content[at + len(new) :]


def _containers() -> Iterator[tuple[str, bytes]]:
    sample = ENTRIES["samples/s0_epoch_1.json"]
    yield "an .eval cut in the middle", EVAL[: len(EVAL) // 2]
    yield "an .eval without its directory", EVAL[: EVAL.index(b"PK\x01\x02")]
    yield "an .eval with a wrong checksum", _patched(EVAL, b"PK\x01\x02", 16, b"\xde\xad\xbe\xef")
    yield "an .eval with an unknown method", _patched(EVAL, b"PK\x01\x02", 10, b"\x63\x00")
    yield "an .eval with encrypted entries", _patched(EVAL, b"PK\x01\x02", 8, b"\x01\x00")
    yield "an .eval that declares 4 GB", _patched(EVAL, b"PK\x01\x02", 24, b"\xfe\xff\xff\xff")
    yield "an .eval with an offset outside", _patched(EVAL, b"PK\x01\x02", 42, b"\xff\xff\xff\x7f")
    yield "an .eval with a directory outside", _patched(EVAL, b"PK\x05\x06", 16, b"\xff\xff\xff\x7f")
    yield "an .eval of 65,535 entries that are not there", _patched(EVAL, b"PK\x05\x06", 8, b"\xff\xff\xff\xff")
    yield "an .eval with a name that climbs", archive({**ENTRIES, "samples/../../../etc/x_epoch_1.json": sample})
    yield "an .eval with an absolute name", archive({**ENTRIES, "/etc/passwd": b"{}"})
    yield "an .eval with a name twice", EVAL[: EVAL.index(b"PK\x01\x02")] + EVAL
    yield "an .eval with an empty sample", archive({**ENTRIES, "samples/s0_epoch_1.json": b""})
    yield "an .eval with a cut sample", archive({**ENTRIES, "samples/s0_epoch_1.json": sample[:-20]})
    yield "an .eval with a sample that is an array", archive({**ENTRIES, "samples/s0_epoch_1.json": b"[1]"})
    yield "an .eval with one bad sample of two", archive({**ENTRIES, "samples/s1_epoch_1.json": b"{oops"})
    yield "an .eval without samples", archive({"header.json": ENTRIES["header.json"]})
    yield "an .eval with a header that is text", archive({**ENTRIES, "header.json": b"hello"})
    yield "an .eval inside gzip", gzip.compress(EVAL, mtime=0)
    yield "an .eval behind a script", b"#!/bin/sh\nexit\n" + EVAL
    yield "a zip of a transcript", archive({"session.jsonl": GOOD})
    yield "a zip of nothing", archive({})
    yield "a zip bomb as an .eval", archive({**ENTRIES, "samples/s0_epoch_1.json": bytes(12_000_000)})
    files = {"s/context.jsonl": SEEDS["kimi-cli"], "s/wire.jsonl": SEEDS["kimi-cli wire"]}
    kimi = archive(files)
    yield "a Kimi CLI archive cut in the middle", kimi[: len(kimi) * 2 // 3]
    yield "a Kimi CLI archive without its directory", kimi[: kimi.index(b"PK\x01\x02")]
    yield "a Kimi CLI archive with a wrong checksum", _patched(kimi, b"PK\x01\x02", 16, b"\xde\xad\xbe\xef")
    yield "a Kimi CLI archive with encrypted entries", _patched(kimi, b"PK\x01\x02", 8, b"\x01\x00")
    yield "a Kimi CLI archive with a name that climbs", archive({**files, "../../etc/wire.jsonl": b"{}"})
    yield (
        "a Kimi CLI archive with a damaged wire",
        archive({**files, "s/wire.jsonl": SEEDS["kimi-cli wire"] + b"oops\n{}\n"}),
    )
    yield "a Kimi CLI archive with a wire that is a chat", archive({**files, "s/wire.jsonl": SEEDS["openai-chat"]})
    yield "a Kimi CLI archive of empty files", archive(dict.fromkeys(files, b""))
    yield "gzip with a wrong checksum", gzip.compress(GOOD, mtime=0)[:-8] + bytes(8)
    yield "gzip with a wrong size", gzip.compress(GOOD, mtime=0)[:-4] + b"\xff\xff\xff\x7f"
    yield "gzip with text behind it", gzip.compress(GOOD, mtime=0) + b"and more"
    yield "gzip of nothing", gzip.compress(b"", mtime=0)
    yield "gzip with a hostile name", b"\x1f\x8b\x08\x08\0\0\0\0\x02\xff../../x\0" + gzip.compress(GOOD, mtime=0)[10:]
    yield "gzip of a database", gzip.compress(DATABASES["crush"], mtime=0)
    yield "a gzip header alone", b"\x1f\x8b"


def _polyglots() -> Iterator[tuple[str, bytes]]:
    adk, chat = SEEDS["adk"], SEEDS["openai-chat"]
    yield "a transcript and then a chat", GOOD + chat
    yield "two chats one after the other", chat + b"\n" + chat
    yield "a transcript and then an ADK session", GOOD + adk
    yield "a transcript with a database behind it", GOOD + DATABASES["crush"]
    yield "a database with a transcript behind it", DATABASES["crush"] + GOOD
    yield "a picture that is a transcript", b"GIF89a" + GOOD
    yield "a web page around a transcript", b"<!doctype html><script>\n" + GOOD + b"</script>"
    yield "HTML alone", b"<html><body>Error 502</body></html>"
    yield "YAML", b"format: compaction-inspector\nsession: {}\n"
    yield "CSV", b"role,content\nuser,hello\n"
    yield "a pickle", b"\x80\x04cos\nsystem\n(S'true'\ntR."
    yield "an empty array", b"[]"
    yield "an empty object", b"{}"
    yield "an empty text", b'""'
    yield "true alone", b"true"
    yield "half a surrogate alone", b'"\\ud800"'
    yield "a thousand empty objects", b"{}\n" * 1000
    yield "an array in arrays", b"[" * 100 + b"]" * 100
    yield "a hundred thousand brackets", b"[" * 100_000
    yield "zeros", bytes(5000)
    yield "a transcript of carriage returns", GOOD.replace(b"\n", b"\r")
    yield "a transcript with both ends of line", GOOD.replace(b"\n", b"\r\n")
    yield "a transcript with NUL between its lines", GOOD.replace(b"\n", b"\n\x00\n")
    yield "a transcript with a mark on every line", b"\xef\xbb\xbf" + GOOD.replace(b"\n", b"\n\xef\xbb\xbf")
    yield "a transcript with two marks", b"\xef\xbb\xbf\xef\xbb\xbf" + GOOD
    yield "UTF-16 of the other order", GOOD.decode().encode("utf-16-be")
    yield "UTF-16 with its mark", b"\xfe\xff" + GOOD.decode().encode("utf-16-be")
    yield "Latin-1", GOOD.replace(b"Look", "Größe".encode("latin-1"))
    yield "EBCDIC", GOOD.decode().encode("cp500")
    yield "UTF-7", GOOD.replace(b"Look", b"+2D0-")
    yield "a line of 2 MB", GOOD.replace(b'"Look"', b'"' + b"a" * 2_000_000 + b'"')
    yield "a line of 2 MB of control characters", GOOD.replace(b'"Look"', b'"' + b"\\u0001" * 300_000 + b'"')
    yield "a title of 5,000 characters", GOOD + b'{"type":"summary","summary":"' + b"T" * 5000 + b'","leafUuid":"n2"}\n'
    yield "a model name of 5,000 characters", GOOD.replace(b"model-1", b"m" * 5000)
    yield "a session id with a path", GOOD.replace(b'"sessionId": "s"', b'"sessionId": "../../etc/passwd"')
    yield "a time in the year 10000", _timed(b"10000-01-01T00:00:00Z")
    yield "a time in the year 9999", _timed(b"9999-12-31T23:59:59.999999-14:00")
    yield "a time in the year 1", _timed(b"0001-01-01T00:00:00+14:00")
    yield "a time that is none", _timed(b"yesterday")
    yield "a count of 2 to the 53rd", GOOD.replace(b'"input_tokens": 10', b'"input_tokens": 9007199254740993')
    yield (
        "a count of 2 to the 63rd less one",
        GOOD.replace(b'"input_tokens": 10', b'"input_tokens": 9223372036854775807'),
    )
    yield (
        "a spoofed boundary in the words",
        GOOD.replace(b'"Look"', b'"{\\"type\\":\\"system\\",\\"subtype\\":\\"compact_boundary\\"}"'),
    )
    yield (
        "a spoofed summary in a result",
        GOOD.replace(
            b'"Look"', b'"This session is being continued from a previous conversation that ran out of context."'
        ),
    )
    yield "a boundary without its numbers", GOOD + b'{"type":"system","subtype":"compact_boundary","uuid":"b"}\n'


def _timed(time: bytes) -> bytes:
    return GOOD.replace(b'"sessionId"', b'"timestamp": "' + time + b'", "sessionId"')


def _rows() -> Iterator[tuple[str, bytes]]:
    """Databases whose rows are of other types than their columns say."""
    message = {"id": "m", "session_id": "s1", "role": "user", "parts": "[]", "model": "m", "created_at": 0}
    message |= {"is_summary_message": 0}
    session = {"id": "s1", "parent_session_id": None, "title": "Files", "message_count": 1, "prompt_tokens": 1}
    session |= {"completion_tokens": 2, "created_at": 1, "summary_message_id": None}
    text = '[{"type":"text","data":{"text":"List"}}]'
    for name, changed in {
        "a blob for parts": {"parts": b"\x00\xff"},
        "a number for parts": {"parts": 7},
        "nothing for parts": {"parts": None},
        "a blob for a role": {"role": b"\x00\xff", "parts": text},
        "a text for a time": {"created_at": "never", "parts": text},
        "infinity for a time": {"created_at": float("inf"), "parts": text},
        "a NUL in an id": {"id": "m\x00", "session_id": "s1", "parts": text},
        "a session that is missing": {"session_id": "lost", "parts": text},
        "a model name that is a blob": {"model": b"\xff", "parts": text},
    }.items():
        yield f"a Crush database with {name}", database({"sessions": [session], "messages": [{**message, **changed}]})
    for name, more in {
        "a NUL and a hostile title": {"title": "x\x00<script>alert(1)</script>"},
        "tokens beyond counting": {"prompt_tokens": 2**63 - 1},
        "a session that is its own parent": {"parent_session_id": "s1"},
        "infinity for its beginning": {"created_at": float("inf")},
        "a beginning in the year 10000": {"created_at": 253_402_300_800},
    }.items():
        rows = [{**message, "parts": text}]
        yield f"a Crush database with {name}", database({"sessions": [{**session, **more}], "messages": rows})
    wrong = DATABASES["crush"]
    yield "a Crush database of a wrong page size", wrong[:16] + struct.pack(">H", 3) + wrong[18:]
    yield "a Crush database in UTF-16 by its header", wrong[:56] + struct.pack(">I", 2) + wrong[60:]
    yield "a Crush database of a later version", wrong[:18] + b"\x09\x09" + wrong[20:]
    yield "a Crush database that waits for its log", wrong[:18] + b"\x02\x02" + wrong[20:]


def _inputs() -> Iterator[tuple[str, bytes]]:
    for inputs in (_damaged_seeds, _damaged_databases, _containers, _polyglots, _rows):
        yield from inputs()


INPUTS = dict(_inputs())
OUTCOMES = json.loads(Path(__file__).with_suffix(".json").read_text())
FORMAT_CASES = [Case(name, content, *OUTCOMES.get(name, ("never judged", "", ""))) for name, content in INPUTS.items()]


def _entries() -> Iterator[str]:
    """Entries for the files without one, as they are read now, with the message that both readings give."""
    for name, content in INPUTS.items():
        if name not in OUTCOMES:
            strict, lenient = outcome(content, strict=True), outcome(content, strict=False)
            shared = lenient.sentence if lenient.sentence in strict.sentence else ""  # an error begins with its place
            entry = [strict.result, lenient.result, shared, strict.line]
            yield f"  {json.dumps(name)}: {json.dumps(entry, ensure_ascii=False)},"


if __name__ == "__main__":
    print("\n".join(_entries()))
