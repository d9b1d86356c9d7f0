"""The lines that connect an agent, for a server's address. Those in Python and of OpenTelemetry are the README's."""

from __future__ import annotations

from typing import NamedTuple

ADDRESS = "http://127.0.0.1:8000"  # as in the lines below
KEY = "ci_…"  # in place of a key of team mode

LOOP = """from guard_core import Guard, Recorder
from guard_core.streaming import Client

guard = Guard("none", window=200_000)  # never compacts; any other policy would guard the agent as well
recorder = Recorder(Client("http://127.0.0.1:8000", spool="spool"), agent="my agent", model="gpt-5")
messages = [{"role": "user", "content": task}]
for _ in range(20):
    answer = complete(guard.before_call(messages))
    guard.after_call(answer["usage"]["prompt_tokens"])
    messages += [answer["message"], {"role": "user", "content": "Go on."}]
    recorder.record(guard)
recorder.close(guard)
"""
ADK = """from google.adk.apps import App
from guard_core.integrations.adk import ContextGuardPlugin
from guard_core.streaming import Client

plugin = ContextGuardPlugin(record_to=lambda: Client("http://127.0.0.1:8000", spool="spool"))
plugin.add("coder", max_tokens=200_000)      # guarded by ContextGuard, in a window of 200,000 tokens
plugin.add("researcher", policy="none")      # only watched
app = App(name="agents", root_agent=agent, plugins=[plugin])
"""
SPANS = """\
export OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:8000/v1/traces OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf
export OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=http://127.0.0.1:8000/v1/logs  # messages that are sent as log records
"""
HTTP = """curl http://127.0.0.1:8000/api/v1/sessions/my-session/events -H 'Content-Type: application/json' -d '{
  "first": 0,
  "lines": [
    {"format": "compaction-inspector", "version": 1,
     "session": {"title": "My session", "agent": "my agent", "model": "gpt-5", "events": []}},
    {"index": 0, "events": {"role": "user", "parts": [{"type": "text", "text": "Find the bug."}]}},
    {"index": 1, "events": {"role": "model", "parts": [{"type": "text", "text": "Found it."}]}},
    {"calls": {"at": 1, "response": 1, "prompt_tokens": 1200, "output_tokens": 8}}
  ]
}'
"""


class ConnectionWay(NamedTuple):
    """One way in which sessions come in: `anchor` for addresses, `lines` to copy, `notes` below them."""

    anchor: str
    title: str
    words: str
    lines: str
    notes: str


def ways(origin: str, command: str, *, has_keys: bool) -> list[ConnectionWay]:
    """The ways to this server, the easiest first. `command` runs the command line; `has_keys`: programs need a key."""
    key = f"INSPECTOR_KEY={KEY} " if has_keys else ""
    header = f" \\\n  -H 'Authorization: Bearer {KEY}'" if has_keys else ""
    headers = f"export OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20{KEY}\n" if has_keys else ""
    client_arguments = f'key="{KEY}", spool=' if has_keys else "spool="
    at_any_address = (
        ConnectionWay(
            "watch",
            "Session files, as agents write them",
            "Sends the sessions that Claude Code, Codex, Gemini CLI, pi and others store on the machine "
            "where this command runs. "
            "Add files or folders at the end to watch those instead.",
            f"{key}{command} watch --server {ADDRESS}\n",
            "Half-written lines wait until they are complete; if the server cannot be reached, the command "
            "tries again.",
        ),
        ConnectionWay(
            "capture",
            "Requests, as an agent sends them",
            "Runs the agent behind a proxy on its own machine, which records system prompt, tool schemas and requests "
            "that session files lack.",
            f"{key}{command} capture --server {ADDRESS} claude\n"
            f"{key}{command} capture --server {ADDRESS} -- python my_agent.py\n",
            "By name: claude, codex, gemini, opencode, pi, aider. Any other program has to read ANTHROPIC_BASE_URL or "
            "OPENAI_BASE_URL. Headers, and with them keys, are not stored.",
        ),
        ConnectionWay(
            "otel",
            "OpenTelemetry",
            "For programs instrumented by the GenAI conventions or OpenInference: set this where they start.",
            f"{headers}{SPANS}",
            "Messages are shown where the instrumentation records their content, in spans or in log records. Other log "
            "records are not stored.",
        ),
        ConnectionWay(
            "loop",
            "A loop of your own, in Python",
            "“task” and “complete” are your own: the request, and the function that calls the model.",
            LOOP.replace("spool=", client_arguments),
            "A server that cannot be reached never stops or delays the agent; unsent lines wait in the folder spool.",
        ),
        ConnectionWay(
            "adk",
            "Google ADK",
            "A plugin guards agents, or only watches them. “agent” is your own root agent.",
            ADK.replace("spool=", client_arguments),
            "It needs the extra adk of the package.",
        ),
        ConnectionWay(
            "http",
            "Any other language",
            "Lines are numbered from 0 and stored once; the next batch has the number of its first line in “first”. "
            "“at” is how many messages there were when the request was built, “response” the number of its answer, "
            "counted from 0.",
            HTTP.replace(" -H 'Content-Type", f"{header} \\\n  -H 'Content-Type"),
            "After a batch with “ended”: true the session leaves the list of running agents.",
        ),
    )
    return [way._replace(lines=way.lines.replace(ADDRESS, origin)) for way in at_any_address]
