"""Captured requests: what an agent sent to its model and what came back, as `compaction-inspector capture` records it.

The lines are those of `lines`; each API's bodies are read as in logs of that API. Conversations that share no history
are sessions of their own, as in every log of requests. A request whose answer failed or was not kept is a call without
one; of an answer that broke off there is what came. Tokens are what the answer's usage says. Where a request
says what its agent calls the session, that is the session's `parent` here: the agent's own recording has this name.
"""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec

from guard_core.errors import DamagedRecording
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.capture.bodies import KNOWN_NAMES, CapturedCalls
from guard_core.recordings.formats.capture.lines import NAME, VERSION, Expander, LostRequest
from guard_core.recordings.reading import fields, log_records
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.known_names import Names
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.titles import first_words

# Formats of the agents' own recordings, by the names under which `capture` starts them, and how each begins its
# User-Agent, which its version follows; one that begins otherwise says no version. What Codex and Gemini CLI put behind
# their names is how they run (`codex_exec`, `GeminiCLI-tui`).
AGENTS = {
    "claude": ("claude-code", "claude-cli/"),
    "codex": ("codex", r"codex[\w-]*/"),
    "gemini": ("gemini-cli", r"GeminiCLI[\w-]*/"),
    "opencode": ("opencode", "opencode/"),
    "pi": ("pi", "pi/"),
}
_VERSION = r"(\d+\.\d+\.\d+)"
_USERS_SESSION = re.compile(r"_session_([\w-]+)\Z")  # how Claude Code 2.1.14 to 2.1.74 ends `metadata.user_id`


class CaptureFormat:
    """Lines of the capture proxy."""

    name = "capture"
    label = "Captured requests"
    place = "compaction-inspector capture"
    known_names: Names = KNOWN_NAMES

    def matches(self, source: ByteSource) -> bool:
        if source.shape is SourceShape.LINES:
            return any(line.obj.get("format") == NAME for line in source.head_lines(1))
        value = source.json_head() if source.shape is SourceShape.JSON else None  # the first line alone
        return isinstance(value, dict) and value.get("format") == NAME

    def read(self, source: ByteSource) -> Recording:
        calls, expander = CapturedCalls(source), Expander()
        head: JSON = {}
        names: dict[int | None, str] = {}  # what the agent calls the session of a line's request
        for number, line in log_records.entries(source):
            with source.tolerate(number):
                if line.get("format") == NAME:
                    version = line.get("version")
                    if version != VERSION:
                        raise DamagedRecording(
                            f"a capture of version {str(version)[:20]}; this program reads version {VERSION}"
                        )
                    head = line
                elif (request := _request(source, number, line, expander)) is not None:
                    about = {"path": fields.text(line, "path"), "status": line.get("status")}
                    api, when = fields.text(line, "api"), line.get("timestamp")
                    calls.add(number, api, request, line.get("response"), timestamp=when, **about)
                    names[number] = session_name(request)
        return _known(calls.recording(self.name), head, names)


def session_name(request: JSON) -> str:
    """What the agent calls the session of a request in its own recording, "" where the request does not say it.
    Measured: Claude Code (2.1.14 to 2.1.332) in `metadata.user_id`, as its end or in JSON; Codex (0.72 to 0.171) and
    Kimi Code as the key of the provider's cache, as pi does to OpenAI. From their programs: Qwen Code in
    `metadata.sessionId`, to DashScope, and Gemini CLI in what it asks Code Assist. Other programs may name anything by
    such a key."""
    metadata = fields.mapping(request, "metadata")
    user = fields.text(metadata, "user_id")
    if named := _USERS_SESSION.search(user):
        return named[1]
    if user.startswith("{"):
        try:
            return fields.text(msgspec.json.decode(user), "session_id")
        except (msgspec.DecodeError, RecursionError):
            return ""
    of_code_assist = fields.text(fields.mapping(request, "request"), "session_id")
    return fields.text(metadata, "sessionId") or of_code_assist or fields.text(request, "prompt_cache_key")


def _known(recording: Recording, head: JSON, names: dict[int | None, str]) -> Recording:
    """The recording with what the capture says of the agent: its name, the version that it gave its provider, and what
    it calls the session. Each conversation has the user's first words as its title, by which those of one capture are
    told apart."""
    named = [
        msgspec.structs.replace(
            one,
            title=one.title or first_words(one.events),
            parent=next((name for call in one.calls if (name := names.get(call.line, ""))), ""),
        )
        for one in recording.sessions
    ]
    name, begin = AGENTS.get(fields.text(head, "client"), ("", ""))
    if not name:
        return replace(recording, sessions=tuple(named))
    version = re.match(begin + _VERSION, fields.text(head, "user_agent"))
    versions = ((0, version[1]),) if version else ()
    sessions = (msgspec.structs.replace(one, written_by=name, versions=versions) for one in named)
    return replace(recording, sessions=tuple(sessions))


def _request(source: ByteSource, number: int | None, line: JSON, expander: Expander) -> JSON | None:
    """The request of a line; None where it cannot be known."""
    try:
        return expander.expand(line)
    except LostRequest as error:
        source.leave_out(str(error), number)
        return None
    except ValueError as error:
        raise DamagedRecording(str(error)) from error


FORMAT = CaptureFormat()
