"""What commands print of a session, a file's name or an argument controls no terminal."""

import msgspec
import pytest

from guard_core.__main__ import main
from guard_core.events import TextPart
from guard_core.recordings.formats import native
from tests.builders import bundled

MARKS = "\u202egnp\u2066\u200b\u200e\x1b[31m\x07"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A recording whose names and requests hold such characters, under a name that does."""
    session = bundled("unpersisted-loop")
    events = tuple(
        msgspec.structs.replace(event, parts=(TextPart(f"Keep{MARKS} it{MARKS} short, and never touch it{MARKS}."),))
        if event.starts_turn()
        else event
        for event in session.events
    )
    calls = tuple(msgspec.structs.replace(call, model=f"model{MARKS}") for call in session.calls)
    names = {"title": f"A{MARKS}title", "agent": f"Agent{MARKS}", "source_id": f"id{MARKS}", "model": f"model{MARKS}"}
    path = tmp_path_factory.mktemp("hostile") / "file\u202e.json"
    path.write_bytes(native.write(msgspec.structs.replace(session, events=events, calls=calls, **names)))
    return str(path)


@pytest.mark.parametrize(
    "command",
    [
        ("verdict",),
        ("explain",),
        ("facts",),
        ("facts", "--find", f"it{MARKS}"),
        ("triggers",),
        ("inspect",),
        ("context",),
        ("measure",),
        ("replay", "--policy", "none"),
        ("avoid",),
        ("report", "--format", "md", "--level", "text"),
    ],
    ids=" ".join,
)
def test_no_character_of_a_recording_controls_the_terminal(hostile, command, capsys):
    assert main([command[0], hostile, *command[1:]]) == 0
    printed = capsys.readouterr()
    assert printed.out
    _is_plain(printed.out + printed.err)


@pytest.mark.parametrize(
    "arguments",
    [
        ("verdict", "{missing}"),
        ("inspect", "{missing}"),
        ("conformance", "{file}"),
        ("verdict", "{file}", "--session", MARKS),
        ("explain", "{file}", "--set", f"{MARKS}=1"),
        ("replay", "{file}", "--policy", MARKS),
        ("facts", "{damaged}"),
    ],
    ids=lambda arguments: " ".join(map(ascii, arguments)),
)
def test_no_character_of_an_error_does(hostile, arguments, tmp_path, capsys):
    damaged = tmp_path / "damaged\u202e.jsonl"
    damaged.write_text(f'{{"type": "user", "sessionId": "{MARKS}"')
    places = {"missing": f"{hostile}\u202e", "file": hostile, "damaged": str(damaged)}
    assert main([argument.format(**places) for argument in arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out + printed.err
    _is_plain(printed.out + printed.err)


def _is_plain(printed: str) -> None:
    assert [ascii(line) for line in printed.split("\n") if not line.isprintable()] == []
