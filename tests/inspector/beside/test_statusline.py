"""The status line says what the rule of the version says, of the counts that Claude Code gives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inspector.beside.statusline import NOT_A_STATUS, status_line
from inspector.beside.transcript import FIRST_BYTES, recent_counts


def status(used: int = 120_000, version: str = "2.1.100", window: int = 200_000, **more: Any) -> bytes:
    usage = {"input_tokens": 1_000, "cache_read_input_tokens": used - 3_000, "cache_creation_input_tokens": 1_500}
    context = {"context_window_size": window, "current_usage": {**usage, "output_tokens": 500}}
    return json.dumps({"version": version, "context_window": context, **more}).encode()


def answer(number: int, tokens: int, **more: Any) -> str:
    usage = {"input_tokens": 10, "cache_read_input_tokens": tokens - 10, "output_tokens": 0}
    message = {"id": f"msg_{number}", "usage": usage, "content": [{"type": "text", "text": "x" * 50}]}
    return json.dumps({"type": "assistant", "message": message, **more})


def transcript(folder: Path, counts: list[int]) -> Path:
    path = folder / "session.jsonl"
    path.write_text("".join(f"{answer(number, count)}\n" for number, count in enumerate(counts)))
    return path


@pytest.mark.parametrize(
    ("version", "environ", "words"),
    [
        ("2.1.14", {}, "compacts at 155,000 = 200,000 − 32,000 (max output) − 13,000"),
        ("2.1.100", {}, "compacts at 167,000 = 200,000 − 20,000 (max output) − 13,000"),
        ("2.1.330", {}, "no threshold: compacts when the provider refuses a request"),
        ("2.1.330", {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "150000"}, "compacts at 117,000 = 150,000 − 20,000"),
        ("2.1.60", {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "150000"}, "compacts at 167,000 = 200,000"),
        ("2.1.14", {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "16000"}, "compacts at 171,000 = 200,000 − 16,000"),
        ("2.1.100", {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "80"}, "compacts at 144,000 = min("),
        ("2.1.100", {"DISABLE_AUTO_COMPACT": "1"}, "automatic compaction is off"),
        ("2.1.100", {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "much"}, "compacts at 167,000"),
    ],
)
def test_it_names_the_threshold_of_the_version_and_its_settings(
    version: str, environ: dict[str, str], words: str
) -> None:
    line = status_line(status(version=version), environ)
    assert line.startswith("120,000 of 200,000 tokens (60 %) · ")
    assert words in line


@pytest.mark.parametrize("window", [0, -1, 1, True, None, 999_999_999])
def test_an_assumed_window_is_said_to_be_one(window: Any) -> None:
    line = status_line(status(window=window), {})
    assert line.startswith("120,000 of 200,000 tokens (60 %), if that is the window · ")


def test_the_most_that_a_model_can_answer_limits_its_output() -> None:
    """As in the rule: what is set for Opus 4.1 counts as 32,000."""
    environ = {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "64000"}
    opus, sonnet = (
        {"id": name, "display_name": "A model"} for name in ("claude-opus-4-1-20250805", "claude-sonnet-4-5")
    )
    assert "compacts at 155,000 = " in status_line(status(version="2.1.14", model=opus), environ)
    assert "compacts at 123,000 = " in status_line(status(version="2.1.14", model=sonnet), environ)
    for model in (None, "x", {"id": 1}, {}):
        assert "compacts at 123,000 = " in status_line(status(version="2.1.14", model=model), environ)


def test_a_window_that_a_request_exceeds_gives_no_threshold() -> None:
    assert status_line(status(used=250_000), {}).startswith("250,000 tokens, above the stated window of 200,000")
    assert "compacts" not in status_line(status(used=250_000), {})


def test_the_calls_left_follow_from_the_growth_of_the_last_calls(tmp_path: Path) -> None:
    even = transcript(tmp_path, [100_000 + 2_000 * number for number in range(11)])
    line = status_line(status(120_000, transcript_path=str(even)), {})
    assert line.endswith("about 24 calls left"), "47,000 tokens at 2,000 a call, and nothing that spreads"
    uneven = transcript(tmp_path, [100_000, 100_500, 106_000, 106_300, 113_000, 114_000, 120_000])
    line = status_line(status(120_000, transcript_path=str(uneven)), {})
    assert line.endswith("about 14 calls left, 3 to 25")


def test_at_the_threshold_it_says_that_the_next_call_compacts() -> None:
    assert status_line(status(167_000), {}).endswith("compacts before the next call")


def test_calls_before_a_compaction_and_of_sub_agents_do_not_count(tmp_path: Path) -> None:
    lines = [answer(number, 150_000) for number in range(5)]
    lines.append(json.dumps({"type": "system", "subtype": "compact_boundary"}))
    lines += [answer(10, 30_000), answer(11, 90_000, isSidechain=True), answer(12, 31_000), answer(12, 31_500)]
    lines.append('{"type": "assistant", "message": {"usage": ')  # still being written
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join(lines))
    assert recent_counts(path) == [30_000, 31_500]


def test_more_of_a_transcript_is_read_where_its_end_holds_one_large_line(tmp_path: Path) -> None:
    path = transcript(tmp_path, [100_000, 101_000, 102_000, 103_000, 104_000])
    with path.open("a") as out:
        out.write(json.dumps({"type": "user", "message": {"content": "x" * 2 * FIRST_BYTES}}) + "\n")
    assert recent_counts(path) == [100_000, 101_000, 102_000, 103_000, 104_000]


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    for name, make in (("pipe", os.mkfifo), ("folder", os.mkdir), ("loop", lambda path: os.symlink(path, path))):
        place = tmp_path / name
        make(place)
        assert recent_counts(place) == []


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff", b"[]", b"7", b'"x"', b"{", b"[" * 100_000, b'{"context_window": 3' + b"0" * 10_000],
)
def test_what_is_no_status_gives_a_plain_line(data: bytes) -> None:
    assert status_line(data, {}) == NOT_A_STATUS


@pytest.mark.parametrize(
    "context",
    [None, 7, *({"current_usage": usage} for usage in (None, {"input_tokens": True}, {"input_tokens": -5}))],
)
def test_a_status_without_counts_says_that_there_was_no_call(context: Any) -> None:
    data = json.dumps({"context_window": context, "version": 3, "transcript_path": "/no/such\0file"}).encode()
    assert status_line(data, {}) == "no call counted yet"


@pytest.mark.parametrize("share", [None, 0, -1, True, "50", float("nan"), 10**400])
def test_a_status_without_a_share_names_the_window_that_it_states(share: Any) -> None:
    data = json.dumps({"context_window": {"context_window_size": 100_000, "used_percentage": share}}).encode()
    assert status_line(data, {}) == "no call counted yet in a window of 100,000 tokens"


@pytest.mark.parametrize(
    ("context", "words"),
    [
        (
            {"context_window_size": 200_000, "used_percentage": 50},
            "about 100,000 of 200,000 tokens (50 %) · compacts at",
        ),
        (
            {"context_window_size": 200_000, "used_percentage": 8.5},
            "about 17,000 of 200,000 tokens (8 %) · compacts at",
        ),
        ({"used_percentage": 50}, "about 100,000 of 200,000 tokens (50 %), if that is the window · compacts at"),
        ({"context_window_size": 200_000, "used_percentage": 120}, "about 240,000 tokens, above the stated window"),
    ],
)
def test_a_share_of_the_window_stands_in_for_counts(context: dict[str, Any], words: str) -> None:
    line = status_line(json.dumps({"version": "2.1.100", "context_window": context}).encode(), {})
    assert line.startswith(words)
    assert "before the next call" not in line


def test_counts_are_preferred_to_a_share() -> None:
    given = json.loads(status(120_000))
    given["context_window"]["used_percentage"] = 50
    assert status_line(json.dumps(given).encode(), {}).startswith("120,000 of 200,000 tokens (60 %)")


def test_the_command_loads_little_because_an_agent_waits_for_it(tmp_path: Path) -> None:
    """By what it loads, not by a clock: it takes 0.04 seconds of processor time, twice what an empty program takes."""
    path = transcript(tmp_path, [1_000 * number for number in range(1, 2_000)])
    code = (
        "import sys; from inspector.project.cli import main; main(['statusline']); "
        "print([name for name in ('django', 'numpy', 'msgspec', 'asyncio') if name in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code],
        input=status(transcript_path=str(path)),
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    line, loaded = answer.stdout.decode().splitlines()
    assert line.startswith("120,000 of 200,000 tokens (60 %)")
    assert loaded == "[]"
