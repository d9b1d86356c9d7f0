"""What Mistral Vibe's harness compares with its threshold: the last answer's total, or its estimate of the request.

The estimate is a quarter of the bytes that messages and tools take as JSON. 3.0.3 multiplies it by the correction, the
prompt that the provider reported for the last request divided by the estimate of that one, which is at least 1, and
adds the estimate of what came since to the total; the larger of both counts. 2.26.1 and 3.0.2 do neither: they take the
larger of the total and the estimate. Measured by running these versions with a scripted provider: `estimate_correction`
of 3.0.3's checkpoints is such a quotient in each of seven, of an estimate that this one equals where the file has the
request (four). The harness is a compiled library; pictures, of which each is a fixed number of tokens there, are
counted here as their JSON.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from guard_core.events import utf8_bytes, value_text
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON

BYTES_PER_TOKEN, BASE = 4, 1  # of the estimate; the latter in tokens


class VibeRequest(msgspec.Struct, frozen=True):
    """A request: the bytes of its messages and tools (None: not known) as JSON, and the provider's counts."""

    bytes: int = 0
    tools: int | None = None
    prompt: int | None = None
    output: int | None = None

    def with_request(self, items: Iterable[JSON], tools: Any = None, *, is_whole: bool = False) -> VibeRequest:
        """The next request, whose messages replace or extend these."""
        known = self.tools if tools is None else utf8_bytes(value_text(tools))
        return VibeRequest((0 if is_whole else self.bytes) + _size(items), known)

    def counted(self, prompt: int | None, output: int | None) -> VibeRequest | None:
        """The same with the provider's counts; None where it did not report them."""
        return msgspec.structs.replace(self, prompt=prompt, output=output) if prompt and output is not None else None

    @property
    def estimate(self) -> int:
        """The harness's estimate of the request in tokens, at least 1."""
        return -(-(self.bytes + 1 + (self.tools or 0)) // BYTES_PER_TOKEN) + BASE

    def pending(self, since: list[JSON], later: VibeRequest, *, is_corrected: bool) -> int | None:
        """How many tokens the count before a later request has above the total of the answer to this one.

        `since` are the later request's messages from that answer on. None where the tools are not known.
        """
        if self.tools is None or self.prompt is None or self.output is None:
            return None
        correction = max(1.0, self.prompt / self.estimate) if is_corrected else 1.0
        added = correction * _size(since[1:]) / BYTES_PER_TOKEN if is_corrected else 0.0
        above = correction * later.estimate - self.prompt - self.output
        return max(0, math.ceil(added), math.ceil(above))


def since_answer(items: list[JSON]) -> list[JSON]:
    """The last answer among messages and what follows it; none without an answer."""
    answers = [place for place, item in enumerate(items) if fields.text(item, "role") == "assistant"]
    return items[answers[-1] :] if answers else []


def _size(items: Iterable[JSON]) -> int:
    """Bytes as JSON, each with the comma behind it."""
    return sum(utf8_bytes(value_text(item)) + 1 for item in items)
