"""Calls of models as their bodies: each API's requests and answers are read as in logs of that API."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from guard_core.errors import DamagedRecording
from guard_core.recordings.base import Recording, RecordingFacts
from guard_core.recordings.formats.adk import known_names as gemini_names
from guard_core.recordings.formats.anthropic_messages import FORMAT as ANTHROPIC
from guard_core.recordings.formats.anthropic_messages import AnthropicReader
from guard_core.recordings.formats.capture.gemini import GeminiReader, as_log
from guard_core.recordings.formats.openai import known_names as openai_names
from guard_core.recordings.formats.openai.completions import ChatReader
from guard_core.recordings.formats.openai.responses import ResponsesReader
from guard_core.recordings.formats.provider_logs import converse
from guard_core.recordings.formats.provider_logs.converse import ConverseReader
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.known_names import Names, united, words
from guard_core.recordings.reading.source import ByteSource

KNOWN_NAMES = united(
    ANTHROPIC.known_names,
    openai_names.CHAT_COMPLETIONS,
    openai_names.RESPONSES_API,
    gemini_names.NAMES,
    Names(tools=words("functionDeclarations function_declarations toolConfig tool_config")),
)
_READERS: dict[str, type[ChatReader] | type[ResponsesReader]] = {
    "anthropic": AnthropicReader,
    "chat": ChatReader,
    "responses": ResponsesReader,
    "gemini": GeminiReader,
    "converse": ConverseReader,
}
FAILED = 400  # the least status of an answer that is an error


class CapturedCalls:
    """Collects the calls of one file, whatever their APIs."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._readers: dict[str, Any] = {}

    def add(self, line: int | None, api: str, request: JSON, response: Any, **about: Any) -> None:
        """One call. `about`: `path`, `status` and `timestamp`, where the file has them."""
        if api not in _READERS:
            self._source.notes.skip(f"call of the unknown API {api[:20]!r}")
            return
        if api == "gemini":
            request, response = as_log(str(about.get("path") or ""), request, response)
        if api == "converse":
            request = converse.as_log(request)
        status = about.get("status")
        failed = isinstance(status, int) and status >= FAILED
        answer = {"response": {}, "error": response} if failed else {"response": response or {}}
        record = {"timestamp": about.get("timestamp"), "request": request, **answer}
        self._readers.setdefault(api, _READERS[api](self._source)).record(line, record)

    def recording(self, name: str) -> Recording:
        """The sessions of all calls. Raises DamagedRecording where there are none."""
        recordings: list[Recording] = []
        for reader in self._readers.values():
            with suppress(DamagedRecording):
                recordings.append(reader.recording())
        if not recordings:
            raise self._source.nothing_left("no call of a model can be read")
        sessions = tuple(session for recording in recordings for session in recording.sessions)
        return Recording(name, sessions, _facts(name, recordings), self._source.notes)


def _facts(name: str, recordings: list[Recording]) -> RecordingFacts:
    """The sums of the facts by API, and their largest."""
    total = RecordingFacts(name)
    for facts in (recording.facts for recording in recordings):
        counts = ("model_calls", "messages", "tool_calls", "tool_results", "prompt_tokens_sum", "compactions")
        largest = ("prompt_tokens_max", "largest_tool_result_chars")
        total = replace(
            total,
            **{key: getattr(total, key) + getattr(facts, key) for key in counts},
            **{key: max(getattr(total, key), getattr(facts, key)) for key in largest},
        )
    return total
