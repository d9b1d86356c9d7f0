"""Agents that stream into a server which is away, killed and started again: nothing acknowledged is lost or doubled.

KILLS is the number of rounds, EVENTS how many lines are acknowledged in them at least; KILLS_SEED repeats the moments
at which they end.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import shlex
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from guard_core.recordings import read
from guard_core.recordings.formats import native
from guard_core.sessions import ModelCall, Session
from guard_core.streaming import Client
from tests.big_sessions import big_session
from tests.inspector.streamed import lines_of
from tests.services.databases import query
from tests.services.server import ROOT, Running, command, running
from tests.services.test_orphans import processes_of
from tests.services.test_watching import claude_line
from tests.waiting import PATIENCE, until

KILLS = int(os.environ.get("KILLS", "1"))
SEED = os.environ.get("KILLS_SEED") or str(random.randrange(2**32))
EVENTS = int(os.environ.get("EVENTS") or 200 * KILLS)
SHORT_LOAD = 400  # model calls of each agent at least, so that some are still sent when a short test kills the server
AWAY = """
import sys
from guard_core.streaming import Client
client = Client(sys.argv[1], "left-behind", spool=sys.argv[2])
client.write(sys.stdin.buffer.read())
assert not client.close(0.1)
"""


@dataclass
class Sender:
    """A program that posts batches of one stream, and notes what is acknowledged."""

    name: str
    lines: list[dict[str, Any]]
    acknowledged: int = 0
    refused: list[str] = field(default_factory=list)

    def send(self, server: Running, size: int) -> None:
        batch = {"first": self.acknowledged, "lines": self.lines[self.acknowledged : self.acknowledged + size]}
        headers = {"Content-Type": "application/json"}
        answer = server.request("POST", f"/api/v1/sessions/{self.name}/events", json.dumps(batch), headers)
        document = json.loads(answer.body)
        if answer.status == 200:
            self.acknowledged = document["acknowledged"]
        elif answer.status != 503:
            self.refused.append(answer.text)

    def send_until_killed(self, server: Running, dice: random.Random) -> None:
        while self.acknowledged < len(self.lines) and not self.refused:
            try:
                self.send(server, dice.randint(1, 40))
            except (OSError, http.client.HTTPException, ValueError):
                return


def lasting_port() -> int:
    """A port that is free, and that the system gives to nobody while the server that has it is away."""
    for port in random.sample(range(20_000, 32_000), 100):  # below those of /proc/sys/net/ipv4/ip_local_port_range
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("a hundred ports are all in use")


def session_named(server: Running, name: str) -> dict[str, Any]:
    """What the API says of the session of a stream, which an empty batch names."""
    body = json.dumps({"first": 0, "lines": []})
    answer = server.request("POST", f"/api/v1/sessions/{name}/events", body, {"Content-Type": "application/json"})
    key = json.loads(answer.body)["session"]
    row: dict[str, Any] = json.loads(server.get(f"/api/v1/sessions/{key}").body)
    return row


def assert_whole(server: Running, name: str, sent: Session) -> None:
    """The session of a stream is the one that was sent: nothing missing, nothing twice, nothing in another order."""
    row = session_named(server, name)
    assert (row["events"], row["steps"]) == (len(sent.events), len(sent.calls)), name
    (stored,) = read(server.get(f"/s/{row['id']}/export").body).sessions
    assert [(e.role, e.parts) for e in stored.events] == [(e.role, e.parts) for e in sent.events], name
    assert [figures(call) for call in stored.calls] == [figures(call) for call in sent.calls], name


def figures(call: ModelCall) -> tuple[object, ...]:
    return call.at, call.response, call.prompt_tokens, call.cached_tokens, call.output_tokens


def assert_sound(data: Path, lines: int) -> None:
    """The database is sound, and every stream has each of its lines once."""
    if not os.environ.get("TEST_DATABASE_URL"):
        assert query(data, "PRAGMA integrity_check") == [("ok",)]
        assert query(data, "PRAGMA foreign_key_check") == []
    stored = query(data, "SELECT stream_id, first, count FROM inspector_streambatch ORDER BY stream_id, first")
    for _, batches in groupby(stored, key=lambda batch: batch[0]):
        number = 0
        for _, first, count in batches:
            assert first == number
            number += count
        assert number == lines
    received = query(data, "SELECT received, applied FROM inspector_stream")
    assert received == [(lines, lines)] * 3


@pytest.mark.long
def test_streams_survive_every_kill_of_the_server(tmp_path: Path) -> None:
    """`tests/inspector/streams` tries what a stream may lose or double without a server."""
    print(f"KILLS_SEED={SEED}")
    dice = random.Random(SEED)
    port, data = str(lasting_port()), tmp_path / "data"
    whole = msgspec.structs.replace(big_session(SHORT_LOAD + EVENTS // 3, 1), compactions=())
    lines = lines_of(whole)
    senders = [Sender(f"agent-{number}", lines) for number in range(2)]
    client = Client(f"http://127.0.0.1:{port}", "library", spool=tmp_path / "spool")
    client.write(native.write(whole))  # while the server is away
    under_load = 0
    for number in range(KILLS):
        wanted = min((number + 1) * EVENTS // KILLS, 2 * len(lines))
        with running(data, "--port", port) as server:
            threads = [threading.Thread(target=s.send_until_killed, args=(server, dice)) for s in senders]
            for thread in threads:
                thread.start()
            until(lambda wanted=wanted: sum(s.acknowledged for s in senders) >= wanted)
            time.sleep(dice.uniform(0, 0.5))
            under_load += any(thread.is_alive() for thread in threads)
            server.process.kill()
            until(lambda: not processes_of(data))
            for thread in threads:
                thread.join()
        assert not any(sender.refused for sender in senders)
    acknowledged = sum(sender.acknowledged for sender in senders)
    assert acknowledged >= EVENTS
    with running(data, "--port", port) as server:
        for sender in senders:
            while sender.acknowledged < len(lines) and not sender.refused:
                sender.send(server, 500)
            assert not sender.refused
        assert client.close(PATIENCE), client.trouble
        for name in ("agent-0", "agent-1", "library"):
            assert_whole(server, name, whole)
        assert_sound(data, len(lines))
    assert not list((tmp_path / "spool").iterdir())
    print(f"{acknowledged:,} lines acknowledged before the last start; {under_load} of {KILLS} kills while agents sent")


def test_what_a_run_could_not_send_is_sent_by_the_next_one(server: Running, tmp_path: Path) -> None:
    lines = b"".join(msgspec.json.encode(line) + b"\n" for line in lines_of(big_session(5, 1)))
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # held, and not listened at
        address = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        # In a process of its own: what it could not send it would go on trying to.
        subprocess.run([sys.executable, "-c", AWAY, address, tmp_path], cwd=ROOT, input=lines, check=True)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [lines]
    second = Client(server.origin, "next-run", spool=tmp_path)
    second.write(lines)
    assert second.close(PATIENCE), second.trouble
    assert session_named(server, "left-behind")["steps"] == 5
    assert not list(tmp_path.iterdir())


def listed(server: Running) -> list[dict[str, Any]]:
    """The sessions of the server, which other files have filled as well."""
    rows: list[dict[str, Any]] = json.loads(server.get("/api/v1/sessions?limit=1000").body)["sessions"]
    return rows


def test_the_lines_of_the_readme_stream_an_agent(server: Running, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    section = (ROOT / "README.md").read_text().partition("## Stream your own agent")[2]
    code = section.partition("```python\n")[2].partition("```")[0]
    code = code.replace("http://127.0.0.1:8000", server.origin)

    def complete(messages: list[Any]) -> dict[str, Any]:
        return {"usage": {"prompt_tokens": 10 * len(messages)}, "message": {"role": "assistant", "content": "Done."}}

    names: dict[str, Any] = {"task": "Count to twenty.", "complete": complete}
    exec(code, names)  # what a reader would type
    assert not list((tmp_path / "spool").iterdir())
    mine = next(row for row in listed(server) if row["agent"] == "my agent")
    assert (mine["steps"], mine["model"], mine["window"]) == (20, "gpt-5", 200_000)


def shell_line(start: str, server: Running) -> list[str]:
    """The words of the README's line that begins so, with the server of the test."""
    line = next(line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith(start))
    return shlex.split(re.sub(r"http://127.0.0.1:\d+", server.origin, line), comments=True)


def test_an_opentelemetry_exporter_sends_a_session(server: Running, monkeypatch) -> None:
    for setting in shell_line("export OTEL_", server)[1:]:
        monkeypatch.setenv(*setting.split("=", 1))
    provider = TracerProvider(resource=Resource({"service.name": "shop agent"}))
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(compression=Compression.Gzip, timeout=PATIENCE)))
    text = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Where is my parcel?"}]}])
    with provider.get_tracer("test").start_as_current_span("chat gpt-4o") as span:
        span.set_attribute("gen_ai.operation.name", "chat")
        span.set_attribute("gen_ai.request.model", "gpt-4o")
        span.set_attribute("gen_ai.conversation.id", "parcel-7")
        span.set_attribute("gen_ai.input.messages", text)
        span.set_attribute("gen_ai.output.messages", text.replace("user", "assistant"))
        span.set_attribute("gen_ai.usage.input_tokens", 4321)
    provider.shutdown()

    def sessions() -> list[dict[str, Any]]:
        return [row for row in listed(server) if row["format"] == "otel"]

    until(lambda: bool(sessions()))
    assert [row["prompt_tokens_max"] for row in sessions()] == [4321]


def test_the_watch_line_of_the_readme_sends_files_of_claude_code(server: Running, tmp_path: Path) -> None:
    (tmp_path / ".claude/projects").mkdir(parents=True)
    (tmp_path / ".claude/projects/watched.jsonl").write_text(
        json.dumps(claude_line(0)) + "\n" + json.dumps(claude_line(1)) + "\n"
    )
    _, *words = shell_line("compaction-inspector watch ~", server)
    process = command(*(word.replace("~", str(tmp_path)) for word in words), "--once")
    said, trouble = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, trouble
    # The address of the import where a busy machine has not made the session yet.
    assert any(f"watched.jsonl: {server.origin}/{place}/" in said for place in ("s", "imports"))
    until(lambda: any(row["format"] == "claude-code" for row in listed(server)))


def answer_to(connection: ClientConnection, frame: Any) -> dict[str, Any]:
    connection.send(frame if isinstance(frame, str | bytes) else json.dumps(frame))
    answer: dict[str, Any] = json.loads(connection.recv(PATIENCE))
    return answer


def test_a_socket_takes_the_same_messages_and_a_broken_frame_is_answered(server: Running) -> None:
    lines = lines_of(big_session(5, 1))
    address = server.origin.replace("http", "ws") + "/ws/streams/by-socket/"
    with connect(address, open_timeout=PATIENCE) as opened:
        assert answer_to(opened, {"first": 0, "lines": lines[:4]})["acknowledged"] == 4
        gap = answer_to(opened, {"first": 9, "lines": lines[9:]})
        assert (gap["status"], gap["expected"]) == (409, 4)
        for frame in ("{", "[" * 10_000, "9" * 5_000, "null"):
            assert answer_to(opened, frame)["status"] == 400
        binary = answer_to(opened, b"\x00\xff")
        assert (binary["status"], binary["error"]) == (400, "A message is a text frame; this one is binary.")
        assert answer_to(opened, {"first": 2, "lines": lines[2:], "ended": True})["acknowledged"] == len(lines)
        for _ in range(15):
            answer_to(opened, "{")  # the last of twenty
        with pytest.raises(ConnectionClosed):
            opened.recv(PATIENCE)
    assert session_named(server, "by-socket")["steps"] == 5


@pytest.mark.once
def test_a_socket_takes_as_much_at_once_as_the_client_sends(server: Running) -> None:
    header, event = lines_of(big_session(1, 1))[:2]
    text = "x" * 2**19  # a result of a tool, say
    event["events"]["parts"] = [{"type": "text", "text": text}]
    with connect(f"{server.origin.replace('http', 'ws')}/ws/streams/long-line/", open_timeout=PATIENCE) as opened:
        assert answer_to(opened, {"first": 0, "lines": [header, event]})["acknowledged"] == 2


@pytest.mark.once
def test_a_page_of_another_server_opens_no_socket(server: Running) -> None:
    address = server.origin.replace("http", "ws") + "/ws/streams/evil/"
    for origin in ("https://evil.invalid", "http://127.0.0.1:3000", "null"):
        with pytest.raises(InvalidStatus), connect(address, origin=origin, open_timeout=PATIENCE):
            pass


def test_a_page_hears_at_once_that_its_session_has_grown(server: Running) -> None:
    lines = lines_of(big_session(6, 1))
    sender = Sender("watched", lines)
    sender.send(server, 5)
    key = session_named(server, "watched")["id"]
    address = server.origin.replace("http", "ws") + f"/ws/sessions/{key}/"
    with connect(address, origin=server.origin, open_timeout=PATIENCE) as opened:
        before = json.loads(opened.recv(PATIENCE))["steps"]  # as it is when the page comes
        sender.send(server, 5)
        steps = json.loads(server.get(f"/s/{key}/growth").body)["steps"]
        assert steps == session_named(server, "watched")["steps"] > before
        until(lambda: json.loads(opened.recv(PATIENCE)) == {"changed": True, "steps": steps})
