"""Events told while the rest of a file is read: told early, and never taken for the session where it is another."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from guard_core import recordings
from guard_core.events import Event
from guard_core.recordings.reading.early_events import SendingPace
from guard_core.simulator.big_files import write_claude_code
from tests.plugins.tiers import mostly_long

STEPS = 400
PACE = SendingPace(newest=8, stretch=64, around=16)  # so that short recordings have many stretches


@pytest.fixture
def lines(tmp_path: Path) -> list[dict[str, Any]]:
    path = tmp_path / "made.jsonl"
    with path.open("wb") as out:
        write_claude_code(out, steps=STEPS, size=400_000)
    return [json.loads(line) for line in path.read_bytes().splitlines()]


class Reading:
    """A file read while its events are told, and read as a whole."""

    def __init__(self, lines: list[dict[str, Any]], folder: Path) -> None:
        path = folder / "read.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.told: list[Event] = []
        follower = recordings.EarlyEvents(self.told.append, PACE)
        events = recordings.read(path, shelve=folder, shelve_from=0, early=follower)
        whole = recordings.read(path)
        self.agreed = follower.agreed(events.sessions[0].events)
        assert (events.facts, events.notes) == (whole.facts, whole.notes)
        for mine, other in zip(events.sessions, whole.sessions, strict=True):
            assert tuple(mine.events) == other.events
            assert (mine.calls, mine.compactions, mine.side_calls) == (other.calls, other.compactions, other.side_calls)
            assert mine.notes == other.notes
        self.events = whole.sessions[0].events
        assert tuple(self.told[: self.agreed]) == self.events[: self.agreed]


def said(uuid: str, parent: str | None, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content, **more}
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message}


def chain(start: int, stop: int, parent: str | None) -> list[dict[str, Any]]:
    """Questions and answers, each the child of the one before."""
    events = []
    for number in range(start, stop):
        usage = {"input_tokens": 100 + number, "output_tokens": 5}
        answer = [{"type": "text", "text": f"answer {number}"}]
        events.append(said(f"u{number}", parent, "user", f"question {number}"))
        events.append(said(f"a{number}", f"u{number}", "assistant", answer, id=f"m{number}", model="m", usage=usage))
        parent = f"a{number}"
    return events


def test_nearly_all_of_a_straight_session_is_told_while_it_is_read(lines, tmp_path):
    reading = Reading(lines, tmp_path)
    assert reading.agreed == len(reading.told)
    assert len(reading.events) - PACE.stretch - 2 * PACE.around - PACE.newest <= reading.agreed <= len(reading.events)


def test_what_was_told_before_a_branch_stands(tmp_path):
    """The user went back to answer 100 when answer 300 was there."""
    reading = Reading([*chain(0, 300, None), *chain(300, 400, "a100")], tmp_path)
    assert len(reading.events) == 2 * (101 + 100)
    assert reading.agreed == 2 * 101 < len(reading.told)


def test_a_short_branch_that_was_left_is_never_told(tmp_path):
    reading = Reading([*chain(0, 100, None), *chain(1000, 1003, "a99"), *chain(100, 300, "a99")], tmp_path)
    assert len(reading.events) == 600
    assert reading.agreed == len(reading.told) > 400


def test_lines_of_one_message_are_told_together(tmp_path):
    """Two calls of one answer, each with its result before the next line of the answer."""
    usage = {"input_tokens": 10, "output_tokens": 5}
    events, parent = [], None
    for number in range(150):
        calls = [{"type": "tool_use", "id": f"c{number}{which}", "name": "run", "input": {}} for which in "xy"]
        for which, call in zip("xy", calls, strict=True):
            line = said(f"a{number}{which}", parent, "assistant", [call], id=f"m{number}", model="m", usage=usage)
            result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"result {number}{which}"}
            events += [line, said(f"r{number}{which}", line["uuid"], "user", [result])]
            parent = line["uuid"]
    reading = Reading([said("u", None, "user", "begin"), *events], tmp_path)
    assert reading.agreed == len(reading.told) > 300
    assert all(len(event.parts) == 2 for event in reading.told[1:-1] if event.role.value == "model")


def test_a_late_line_of_an_old_message_is_not_lost(tmp_path):
    late = said("late", "a199", "assistant", [{"type": "text", "text": "more"}], id="m3", model="m")
    reading = Reading([*chain(0, 200, None), late, *chain(200, 210, "late")], tmp_path)
    assert [part.text for part in reading.events[7].parts] == ["answer 3", "more"]
    assert reading.agreed == 7


@pytest.mark.parametrize("seed", mostly_long(range(12), short=range(3)))
def test_whatever_the_branches_are_the_session_is_the_same(seed, tmp_path):
    dice = random.Random(seed)
    events, ends, number = [], [None], 0
    for _ in range(dice.randint(2, 30)):
        length = dice.choice([1, 2, 5, 40, 120])
        parent = ends[-1] if dice.random() < 0.6 else dice.choice(ends)
        events += chain(number, number + length, parent)
        ends += [f"a{n}" for n in range(number, number + length)]
        number += length
    for line in events:
        if dice.random() < 0.02:
            line["isSidechain"] = True
    Reading(events, tmp_path)
