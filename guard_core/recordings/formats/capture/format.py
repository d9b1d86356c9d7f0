"""Captured requests: what an agent sent to its model and what came back, as `compaction-inspector capture` records it.

The lines are those of `lines`; each API's bodies are read as in logs of that API. Conversations that share no history
are sessions of their own, as in every log of requests. A request whose answer failed or was not kept is a call without
one; of an answer that broke off there is what came. Tokens are what the answer's usage says.
"""

from __future__ import annotations

from typing import Any

from guard_core.errors import DamagedRecording
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.capture.bodies import KNOWN_NAMES, Calls
from guard_core.recordings.formats.capture.lines import NAME, VERSION, Expander, LostRequest
from guard_core.recordings.reading import fields, log_records
from guard_core.recordings.reading.known_names import Names
from guard_core.recordings.reading.source import ByteSource, Shape

JSON = dict[str, Any]


class CaptureFormat:
    """Lines of the capture proxy."""

    name = "capture"
    label = "Captured requests"
    place = "compaction-inspector capture"
    known_names: Names = KNOWN_NAMES

    def matches(self, source: ByteSource) -> bool:
        if source.shape is Shape.LINES:
            return any(line.obj.get("format") == NAME for line in source.head_lines(1))
        value = source.json() if source.shape is Shape.JSON else None  # the first line alone
        return isinstance(value, dict) and value.get("format") == NAME

    def read(self, source: ByteSource) -> Recording:
        calls, expander = Calls(source), Expander()
        for number, line in log_records.entries(source):
            with source.tolerate(number):
                if line.get("format") == NAME:
                    _check(line)
                elif (request := _request(source, number, line, expander)) is not None:
                    about = {"path": fields.text(line, "path"), "status": line.get("status")}
                    api, when = fields.text(line, "api"), line.get("timestamp")
                    calls.add(number, api, request, line.get("response"), timestamp=when, **about)
        return calls.recording(self.name)


def _check(head: JSON) -> None:
    version = head.get("version")
    if version != VERSION:
        raise DamagedRecording(f"a capture of version {str(version)[:20]}; this program reads version {VERSION}")


def _request(source: ByteSource, number: int | None, line: JSON, expander: Expander) -> JSON | None:
    """The request of a line; None where it cannot be known."""
    try:
        return expander.expand(line)
    except LostRequest as error:
        source.problem(str(error), number)
        return None
    except ValueError as error:
        raise DamagedRecording(str(error)) from error


FORMAT = CaptureFormat()
