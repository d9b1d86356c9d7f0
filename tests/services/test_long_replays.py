"""Replays that take long run beside the server's pages, can be followed, joined and cancelled, and end with it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from guard_core.simulator.big_files import write_claude_code
from tests.benchmarks.measure_large import ended, send_file
from tests.services.server import Answer, Running, children_of, go_on, running, stepped
from tests.waiting import until

STEPS = 1_000  # with a window of 1,000 tokens each compacts: ten times the computing that a page may do here
APART = {"PAGE_MILLISECONDS": "10"}
SLOW = "?window=1000"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recording") / "long.jsonl"
    with path.open("wb") as out:
        write_claude_code(out, steps=STEPS, size=0)
    return path


@pytest.fixture(scope="module")
def served(recording: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, str]]:
    with running(tmp_path_factory.mktemp("replays"), **APART) as started:
        yield started, imported(started, recording)


def imported(server: Running, recording: Path) -> str:
    """The address of the session in a recording."""
    job, _, _ = send_file(server, recording)
    return until(lambda: ended(server, job))


def replaying(server: Running) -> list[int]:
    """Process ids of the replays of a server."""
    return server.children("inspector.replays")


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def asked_and_held(server: Running, path: str) -> int:
    """The process of the replay that this page waits for: held, so that it is not over before it is looked at."""
    before = set(replaying(server))
    server.get(path)
    (process,) = until(lambda: set(replaying(server)) - before)
    os.kill(process, signal.SIGSTOP)
    return process


def shown(server: Running, path: str) -> Answer | None:
    """The page at this address once its replay is done."""
    answer = server.get(path)
    assert answer.status == 200, answer.text[:500]
    assert "Not replayed" not in answer.text
    return None if 'id="replay"' in answer.text else answer


@pytest.mark.once  # replays run in processes of their own and leave files, whatever the database
def test_a_long_replay_shows_its_progress_and_then_its_page(served: tuple[Running, str]) -> None:
    server, session = served
    path = f"{session}?policy=inspect-summary&window=1000"  # a second of computing
    first = server.get(path)
    assert first.status == 200
    assert "<progress" in first.text
    assert 'http-equiv="refresh"' in first.text, "without JavaScript the page must ask again by itself"
    (process,) = until(lambda: replaying(server))
    assert stepped(process, lambda: re.search(rf"[\d,]+ of {STEPS:,} steps replayed", server.get(path).text))
    go_on(process)
    page = until(lambda: shown(server, path))
    assert "verdict-sentence" in page.text
    assert "Inspect AI (summary)" in page.text


@pytest.mark.once
@pytest.mark.parametrize("page", ["", "steps", "estimator", "figure.json"])
def test_every_page_of_a_session_waits_for_its_replay_alike(served: tuple[Running, str], page: str) -> None:
    server, session = served
    path = f"{session}{page}?window=1001"
    if page.endswith(".json"):
        until(lambda: server.get(path).status == 200)
        assert json.loads(server.get(path).body)["data"]
    else:
        assert "<h1" in until(lambda: shown(server, path)).text


@pytest.mark.long
@pytest.mark.once
def test_sides_that_both_take_long_are_compared(served: tuple[Running, str]) -> None:
    """`tests/inspector/pages/compare` compares sides whose replays take no time."""
    server, session = served
    sides = "&".join(f"side={session[3:-1]}%3Fwindow%3D{window}" for window in (1020, 1021))
    before, began = set(replaying(server)), set()

    def look() -> Answer | None:
        began.update(replaying(server))
        return shown(server, f"/compare/?{sides}")

    page = until(look)
    assert "window 1,020" in page.text
    assert "window 1,021" in page.text
    assert len(began - before) == 2, "the second waited for the first"


@pytest.mark.once
def test_a_search_shows_its_matches_at_once_and_their_places_when_the_replay_is_done(
    served: tuple[Running, str],
) -> None:
    server, session = served
    path = f"{session}search?q=step&window=1005"
    assert "The curve of the session is being computed" in until(lambda: matches(server, path))
    assert "with matches, marked above" in until(lambda: "strip-matches" in (text := matches(server, path)) and text)


def matches(server: Running, path: str) -> str:
    """The page of a search once it has found something."""
    answer = server.get(path)
    assert answer.status == 200
    return answer.text if "hit-session" in answer.text else ""


@pytest.mark.once
def test_a_chart_says_in_json_that_its_replay_runs(served: tuple[Running, str]) -> None:
    server, session = served
    answer = server.get(f"{session}figure.json?window=1002")
    assert (answer.status, answer.headers["retry-after"]) == (202, "1")
    document: dict[str, Any] = json.loads(answer.body)
    assert document["total"] == STEPS
    assert document["state"] in ("waiting", "replaying")


@pytest.mark.long
@pytest.mark.once
def test_a_changed_setting_shows_the_progress_in_the_part_that_changes(served: tuple[Running, str]) -> None:
    """A changed setting with its progress is part of the walk of `tests/browser/test_long_replays.py`."""
    server, session = served
    asked = {"HX-Request": "true", "HX-Target": "chart"}
    path = f"{session}?window=1003"
    answer = server.get(path, **asked)
    assert " ".join(answer.text.split()).startswith('<section id="chart"')
    assert f'hx-get="{path}"' in answer.text
    until(lambda: "<progress" not in server.get(path, **asked).text)
    assert "<html" not in server.get(path, **asked).text


@pytest.mark.long
@pytest.mark.once
def test_the_page_of_a_progress_is_loaded_anew_when_the_replay_is_done(served: tuple[Running, str]) -> None:
    """So it is in `tests/browser/test_long_replays.py`."""
    server, session = served
    asked = {"HX-Request": "true", "HX-Target": "replay"}
    until(lambda: server.get(session + SLOW, **asked).headers.get("hx-refresh") == "true")


@pytest.mark.long
@pytest.mark.once
def test_other_pages_answer_while_replays_run(served: tuple[Running, str]) -> None:
    """That replays run in other processes is tried above."""
    server, session = served
    paths = [f"{session}?window=110{number}" for number in (1, 2)]
    processes = [asked_and_held(server, path) for path in paths]
    for page in ("/", session):
        assert server.get(page).status == 200, "while they get no further"
        for process in processes:
            go_on(process)
        assert server.get(page).status == 200, "while they compute"
    for path in paths:
        until(lambda path=path: shown(server, path))


@pytest.mark.once
def test_whoever_asks_for_the_same_settings_joins_the_replay(served: tuple[Running, str]) -> None:
    server, session = served
    before = set(replaying(server))
    process = asked_and_held(server, f"{session}?window=1200")
    for page in ("steps", "", "figure.json"):
        server.get(f"{session}{page}?window=1200")
    assert set(replaying(server)) - before == {process}
    cancel(server, session, f"{session}?window=1200")


@pytest.mark.once
def test_two_replays_run_at_a_time_and_the_others_wait(served: tuple[Running, str]) -> None:
    server, session = served
    paths = [f"{session}figure.json?window=121{number}" for number in range(4)]
    for path in paths[:2]:
        asked_and_held(server, path)
    for path in paths[2:]:
        server.get(path)
    # The newest first: a replay that begins meanwhile has been read as one that waits.
    states = [json.loads(server.get(path).body).get("state", "ready") for path in reversed(paths)]
    assert states.count("replaying") <= 2
    assert "waiting" in states
    for path in paths:
        cancel(server, session, path.replace("figure.json", ""))


@pytest.mark.once
def test_a_cancelled_replay_ends_for_all_who_wait_and_says_so(served: tuple[Running, str]) -> None:
    server, session = served
    path = f"{session}?window=1300"
    before = set(replaying(server))
    asked_and_held(server, path)
    answer = cancel(server, session, path)
    assert (answer.status, answer.headers["location"]) == (302, f"{session}replay/cancelled?window=1300")
    page = server.get(answer.headers["location"])
    assert "Replay cancelled." in page.text
    assert f'href="{session}replay/again?window=1300">Run again</a>' in page.text
    assert '<option value="claude-code" selected>' in page.text, "other settings can be chosen at once"
    until(lambda: not set(replaying(server)) - before)
    assert "The replay was cancelled." in server.get(path).text, "whoever else waited hears of it"
    assert "<progress" in server.get(path).text, "and can ask again"
    cancel(server, session, path)
    assert server.get(f"{session}replay/again?window=1300").headers["location"] == path
    assert "<progress" in server.get(path).text, "whoever runs it again is not shown the cancel once more"
    cancel(server, session, path)


def cancel(server: Running, session: str, path: str) -> Answer:
    """Cancel the replay that this page waits for, if it still does."""
    match = re.search(r'name="replay" value="([^"]+)"', server.get(path).text) or "-"
    return server.post(f"{session}replay/cancel", f"replay={match[1]}".encode())


@pytest.mark.once
@pytest.mark.long
def test_a_finished_replay_is_not_replayed_by_the_next_server(recording: Path, tmp_path: Path) -> None:
    """`tests/inspector/replays/test_stored.py` shows a stored replay, and replaces a damaged one, without a server."""
    with running(tmp_path, **APART) as server:
        session = imported(server, recording)
        first = until(lambda: shown(server, session + SLOW))
    # What would have avoided the recording's findings is stored, too, in a smaller file.
    result = max((tmp_path / "replays").rglob("*.replay"), key=lambda path: path.stat().st_size)
    written = result.read_bytes()
    with running(tmp_path, **APART) as server:
        states = []
        until(lambda: states.append(json.loads(server.get(f"{session}figure.json{SLOW}").body)) or "data" in states[-1])
        assert [state["done"] for state in states[:-1] if state["done"]] == [], "no step was replayed"
        again = server.get(session + SLOW)
    assert re.findall(r'class="verdict-sentence[^<]*<?', again.text) == re.findall(
        r'class="verdict-sentence[^<]*<?', first.text
    )
    assert result.read_bytes() == written
    result.write_bytes(written[:-1] + b"?")
    with running(tmp_path, **APART) as server:
        assert until(lambda: shown(server, session + SLOW)).status == 200
        assert result.read_bytes() == written, "the damaged one was replaced"


@pytest.mark.once
def test_a_replay_under_way_ends_with_its_server(recording: Path, tmp_path: Path) -> None:
    with running(tmp_path, **APART) as server:
        server.get(f"{imported(server, recording)}?window=1500")
        processes = until(lambda: replaying(server))
        server.stop(signal.SIGKILL)
        until(lambda: not any(is_alive(process) for process in processes))


@pytest.mark.once
def test_a_replay_whose_process_dies_says_so_and_can_be_asked_for_again(served: tuple[Running, str]) -> None:
    server, session = served
    path = f"{session}?window=1400"
    before = set(replaying(server))
    server.get(path)
    (process,) = until(lambda: set(replaying(server)) - before)
    subprocess.run(["kill", "-9", str(process)], check=True)
    until(lambda: "The system ended this computation" in server.get(path).text)
    assert "<progress" in server.get(path).text
    cancel(server, session, path)


@pytest.mark.once
def test_a_comparison_of_all_policies_can_be_followed_and_cancelled(served: tuple[Running, str]) -> None:
    server, session = served
    path = f"{session}policies?window=1000"
    first = server.get(path)
    assert "<progress" in first.text
    assert until(lambda: re.search(r"[\d,]+ of [\d,]+ steps replayed|waiting", server.get(path).text))
    page = server.get(cancel(server, session, path).headers["location"])
    assert "Comparison cancelled" in page.text
    assert "work=policies" in page.text


@pytest.mark.long
@pytest.mark.once
@pytest.mark.skipif(os.cpu_count() == 1, reason="on one processor a comparison is made by one process")
def test_the_policies_of_a_comparison_are_shared_out_among_copies_of_its_process(served: tuple[Running, str]) -> None:
    """`tests/inspector/replays/test_comparing.py` has the rows of such copies."""
    server, session = served
    path = f"{session}policies?window=1001"
    process = asked_and_held(server, path)
    assert stepped(process, lambda: len(children_of(process)) == 2)
    copies = children_of(process)
    go_on(process)
    cancel(server, session, path)
    until(lambda: not any(map(is_alive, (process, *copies))))


def test_a_program_asks_again_until_its_replay_is_done(served: tuple[Running, str]) -> None:
    """What a program asks for on PostgreSQL, `tests/inspector/api/test_traces.py` tries without a server."""
    server, page = served
    address = f"/api/v1/sessions/{page.strip('/').split('/')[-1]}/replay/compactions?policy=contextguard&window=1003"
    first = server.get(address)
    assert (first.status, first.headers["retry-after"]) == (202, "1")
    assert set(json.loads(first.body)) == {"state", "done", "total"}

    def done() -> Answer | None:
        answer = server.get(address)
        return answer if answer.status != 202 else None

    answer = until(done)
    assert answer.status == 200, answer.text
    assert json.loads(answer.body)["count"] > STEPS / 2
