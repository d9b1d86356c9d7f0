"""The lines of the README about captures and Claude Code run as they are there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from guard_core import read
from tests.inspector.beside.test_statusline import status
from tests.inspector.capturing.provider import provider

ROOT = Path(__file__).parents[3]
CLAUDE = """#!{python}
import sys, anthropic
assert sys.argv[1] == "-p"
client = anthropic.Anthropic(api_key="k", max_retries=0)
client.messages.create(model="m", max_tokens=9, messages=[{{"role": "user", "content": sys.argv[2]}}])
"""
AGENT = """
import openai
client = openai.OpenAI(api_key="k", max_retries=0)
client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}])
"""


def lines_of(heading: str) -> list[str]:
    section = (ROOT / "README.md").read_text().split(f"## {heading}\n")[1]
    block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert block is not None
    return block[1].splitlines()


def run(line: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """A line in a shell whose PATH has the commands that the README takes for installed."""
    commands = folder / "bin"
    commands.mkdir(exist_ok=True)
    shims = {
        "compaction-inspector": f'#!/bin/sh\nexec {sys.executable} -m inspector.project.cli "$@"\n',
        "python": f'#!/bin/sh\nexec {sys.executable} "$@"\n',
        "claude": CLAUDE.format(python=sys.executable),
    }
    for name, text in shims.items():
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    given = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{commands}:{os.environ['PATH']}", **environ}
    return subprocess.run(
        line, shell=True, cwd=folder, env=given, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.long
def test_what_the_readme_captures_is_recorded(tmp_path: Path) -> None:
    """In `make test`: `test_capture.py` runs a command behind the proxy."""
    (tmp_path / "my_agent.py").write_text(AGENT)
    with provider() as (origin, seen):
        addresses = {"ANTHROPIC_BASE_URL": origin, "OPENAI_BASE_URL": f"{origin}/v1"}
        for line in lines_of("Capture what an agent actually sends"):
            done = run(line, tmp_path, CAPTURES_DIR=str(tmp_path / "captures"), **addresses)
            assert (done.returncode, "Recorded 1 call of a model" in done.stderr) == (0, True), done.stderr
    assert [path for path, _, _ in seen.requests] == ["/v1/messages", "/v1/chat/completions"]
    prompts = [
        call.prompt_tokens for file in (tmp_path / "captures").iterdir() for call in read(file).sessions[0].calls
    ]
    assert prompts == [100, 100]


def test_what_runs_beside_claude_code_prints_what_the_readme_says(tmp_path: Path) -> None:
    (tmp_path / "session.jsonl").write_text('{"type": "user"}\n')
    (tmp_path / "event.json").write_text(json.dumps({"transcript_path": str(tmp_path / "session.jsonl")}))
    (tmp_path / "status.json").write_bytes(status())
    hooks, statusline, keep = lines_of("Beside Claude Code")
    printed = json.loads(run(hooks, tmp_path).stdout)
    assert set(printed) == set(re.findall(r'"(\w+)"', hooks)) == {"statusLine", "hooks"}
    promised = statusline.split("# ")[1].split(" = ")[0]
    assert run(statusline, tmp_path).stdout.startswith(promised)
    assert run(keep, tmp_path, COPIES_DIR=str(tmp_path / "copies")).returncode == 0
    assert [copy.read_text() for copy in (tmp_path / "copies").iterdir()] == ['{"type": "user"}\n']
