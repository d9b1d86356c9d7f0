"""Very large Claude Code transcripts, written to disk as they are made: the same arguments give the same bytes.

    python -m guard_core.simulator.big_files big.jsonl --steps 50000 --megabytes 200

A step is one model call with a tool call (a fifth of them in two lines), and the tool's result. The prompt grows
by what was said until it nears the window; then a compaction is recorded. No text is repeated.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from guard_core.simulator import wording
from guard_core.simulator.wording import Dice

BYTES_A_STEP_BARE = 1_560  # of a step's lines without the result's text
SHORTEST_RESULT = 24  # characters
START_TOKENS = 14_000  # system prompt and tools, which the file does not hold
COMPACT_AT = 165_000  # prompt tokens
TURN = 25  # steps of one user turn
POOL_LINES = 3_000
_SESSION = "7f9b2a4e-58c1-4d6f-9e30-a1b2c3d4e5f6"
_ENVELOPE = {
    "isSidechain": False,
    "userType": "external",
    "cwd": "/home/dev/orchard",
    "sessionId": _SESSION,
    "version": "2.1.62",
    "gitBranch": "main",
}


def write_claude_code(out: IO[bytes], *, steps: int = 50_000, size: int = 200_000_000, seed: int = 1) -> int:
    """Write a transcript of so many steps and about `size` bytes; the bytes written."""
    written = 0
    for line in _Transcript(steps, size, seed).lines():
        written += out.write(line)
    return written


class _Transcript:
    """The lines of one transcript, in order, made as they are asked for."""

    def __init__(self, steps: int, size: int, seed: int) -> None:
        self.steps = steps
        self.result_chars = max(SHORTEST_RESULT, size // max(steps, 1) - BYTES_A_STEP_BARE)
        self.dice = Dice(seed)
        self.pool = _pool(self.dice)
        self.encode = msgspec.json.Encoder().encode
        self.context = START_TOKENS
        self.parent: str | None = None
        self.count = 0

    def lines(self) -> Iterator[bytes]:
        for step in range(self.steps):
            if self.context > COMPACT_AT:
                yield from self._compaction(step)
            if step % TURN == 0:
                text = f"Task {step // TURN}: {wording.path(self.dice)} {self._text(200)}"
                yield self._line("user", message={"role": "user", "content": text})
                self.context += len(text) // 4
            yield from self._step(step)

    def _step(self, step: int) -> Iterator[bytes]:
        call_id, words = f"toolu_{step:08d}", f"Step {step}. {self._text(90)}"
        call = {
            "type": "tool_use",
            "id": call_id,
            "name": ("Read", "Bash", "Grep", "Edit")[step % 4],
            "input": {"file_path": f"/home/dev/orchard/{wording.path(self.dice)}", "offset": step},
        }
        blocks: list[dict[str, Any]] = [{"type": "text", "text": words}, call]
        usage = self._usage(step)
        for content in [[blocks[0]], [call]] if step % 5 == 0 else [blocks]:
            yield self._answer(step, content, usage)
        length = self.result_chars // 2 + self.dice.below(self.result_chars)
        result = f"{step:>7} {self._text(length)}"
        block = {"type": "tool_result", "tool_use_id": call_id, "content": result}
        yield self._line("user", message={"role": "user", "content": [block]})
        self.context += (len(words) + len(result)) // 4 + 70

    def _usage(self, step: int) -> dict[str, int]:
        cached = self.context * 9 // 10 if step else 0
        return {
            "input_tokens": self.context - cached - 40,
            "cache_creation_input_tokens": 40,
            "cache_read_input_tokens": cached,
            "output_tokens": 60 + step % 90,
        }

    def _answer(self, step: int, content: list[dict[str, Any]], usage: dict[str, int]) -> bytes:
        message = {
            "id": f"msg_{step:08d}",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": content,
            "stop_reason": "tool_use",
            "usage": usage,
        }
        return self._line("assistant", requestId=f"req_{step:08d}", message=message)

    def _compaction(self, step: int) -> Iterator[bytes]:
        details = {"trigger": "auto", "preTokens": self.context}
        last, self.parent = self.parent, None
        more = {"subtype": "compact_boundary", "content": "Conversation compacted", "compactMetadata": details}
        yield self._line("system", logicalParentUuid=last, **more)
        text = f"The work up to step {step}, in short. {self._text(4_000)}"
        yield self._line("user", isCompactSummary=True, message={"role": "user", "content": text})
        self.context = START_TOKENS + len(text) // 4

    def _line(self, kind: str, **more: Any) -> bytes:
        self.count += 1
        uuid = f"{self.count:08x}-0000-4000-8000-{self.count:012x}"
        seconds = self.count * 3
        day, clock = 1 + seconds // 86_400, f"{seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        when = {"timestamp": f"2026-{1 + day // 28 % 12:02d}-{1 + day % 28:02d}T{clock}.000Z"}
        line = {"parentUuid": self.parent, **_ENVELOPE, "type": kind, **more, "uuid": uuid, **when}
        self.parent = uuid
        return self.encode(line) + b"\n"

    def _text(self, chars: int) -> str:
        """Lines from the pool, each behind a fresh number, up to a length."""
        parts, left = [], chars
        while left > 0:
            line = f"{self.dice.below(1 << 30):x} {self.dice.pick(self.pool)}"
            parts.append(line[:left])
            left -= len(line) + 1
        return "\n".join(parts)


def _pool(dice: Dice) -> list[str]:
    lines: list[str] = []
    while len(lines) < POOL_LINES:
        lines += wording.listing(dice, wording.path(dice), 20).splitlines()
        lines += wording.report(dice, 2).splitlines()
        lines += wording.source(dice, 40).splitlines()
    return [line for line in lines if line.strip()]


def main() -> None:
    """Write a long session to the path of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--megabytes", type=float, default=200.0, help="of 1,000,000 bytes, about")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with chosen.path.open("wb") as out:
        size = write_claude_code(out, steps=chosen.steps, size=int(chosen.megabytes * 1_000_000), seed=chosen.seed)
    print(f"{chosen.path}: {size:,} bytes, {chosen.steps:,} steps")


if __name__ == "__main__":
    main()
