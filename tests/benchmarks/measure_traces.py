"""Measures what spans of running programs cost a server: the rate that it takes them at, and when a session shows them.

    python -m tests.benchmarks.measure_traces [--spans 4200] [--bytes 20000] [--per-request 50] [--senders 2]

Starts a server of its own on SQLite with an empty data folder. Senders post spans about model calls as an exporter
packs them (protobuf, gzip), each after the answer to the one before. Nothing fails here: figures for people.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import os
import random
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlparse

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.benchmarks.measure_large import percentile
from tests.services.server import Running, running
from tests.services.test_orphans import processes_of
from tests.waiting import PATIENCE

TICKS = os.sysconf("SC_CLK_TCK")
WORDS = tuple(f"word{number}" for number in range(5_000))
BYTES_OF_A_WORD = 8.8  # with its blank, on average
CALLS_OF_A_CONVERSATION = 20
HEADERS = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}
BETWEEN = 0.5  # seconds between checks at the list of sessions
PAGE = 1_000  # sessions in one answer


class Spent(NamedTuple):
    """CPU seconds of processes since they started."""

    server: float
    workers: float


def request_of(first: int, count: int, size: int, program: int) -> bytes:
    """An export of `count` spans, with about `size` bytes each: model calls of agents that send the whole conversation
    again with each call, so that a request is longer than the one before."""
    export = ExportTraceServiceRequest()
    resource = export.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = f"program {program}"
    scope = resource.scope_spans.add()
    for number in range(first, first + count):
        span = scope.spans.add(name="chat gpt-4o", trace_id=number.to_bytes(16), span_id=number.to_bytes(8))
        span.start_time_unix_nano = span.end_time_unix_nano = 10**18 + number * 10**9
        conversation, call = divmod(number, CALLS_OF_A_CONVERSATION)
        messages = messages_of(conversation, call, 2 * size // CALLS_OF_A_CONVERSATION)
        texts = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "gpt-4o",
            "gen_ai.conversation.id": f"c-{program}-{conversation}",
            "gen_ai.input.messages": json.dumps(messages[:-1]),
            "gen_ai.output.messages": json.dumps(messages[-1:]),
        }
        for key, text in texts.items():
            span.attributes.add(key=key).value.string_value = text
        span.attributes.add(key="gen_ai.usage.input_tokens").value.int_value = 1_000 * (call + 1)
    return export.SerializeToString()


def messages_of(conversation: int, call: int, size: int) -> list[dict[str, Any]]:
    """What was said up to the answer of a call: of `size` bytes a question with its answer, the same at every call."""
    dice = random.Random(conversation)
    messages = []
    for _ in range(call + 1):
        for role, share in (("user", 0.8), ("assistant", 0.2)):
            text = " ".join(dice.choices(WORDS, k=int(size * share / BYTES_OF_A_WORD)))
            messages.append({"role": role, "parts": [{"type": "text", "content": text}]})
    return messages


def send(server: Running, bodies: list[bytes], seconds: list[float]) -> None:
    """Post each body after the answer to the one before; the seconds of each answer."""
    address = urlparse(server.origin)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=PATIENCE)
    for body in bodies:
        started = time.monotonic()
        connection.request("POST", "/v1/traces", body, HEADERS)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{answer.status}: {text[:300]!r}")
        seconds.append(time.monotonic() - started)
    connection.close()


def spent(server: Running) -> Spent:
    own = server.process.pid
    return Spent(_cpu(own), sum(_cpu(pid) for pid in processes_of(server.data_dir) if pid != own))


def _cpu(pid: int) -> float:
    """CPU seconds of a process, and of those it started that have ended."""
    try:
        columns = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has just ended; its parent has its seconds
        return 0.0
    return sum(map(int, columns[11:15])) / TICKS


def visible(server: Running) -> int:
    """Model calls in the sessions of the list."""
    calls = offset = 0
    while some := json.loads(server.get(f"/api/v1/sessions?limit={PAGE}&offset={offset}").body)["sessions"]:
        calls += sum(int(row["steps"]) for row in some)
        offset += PAGE
    return calls


def measure(server: Running, spans: int, size: int, per_request: int, senders: int) -> None:
    firsts = range(0, spans, per_request)
    plain = [request_of(first, per_request, size, first // per_request % senders) for first in firsts]
    bodies = [gzip.compress(body, 6) for body in plain]
    sent = len(bodies) * per_request
    answers: list[float] = []
    before, calls, started = spent(server), visible(server), time.monotonic()
    threads = [threading.Thread(target=send, args=(server, bodies[n::senders], answers)) for n in range(senders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored = time.monotonic() - started
    after = spent(server)
    cost = after.server - before.server
    print(f"spans sent                         {sent:8,}, {sum(map(len, plain)) / sent / 1000:.1f} kB each")
    print(f"stored and acknowledged            {sent / stored:8.0f} spans/s, from {senders} senders")
    print(f"answered                           {percentile(answers, 0.5) * 1000:8.0f} ms p50, ", end="")
    print(f"{percentile(answers, 0.95) * 1000:.0f} ms p95, {per_request} spans a request")
    print(f"CPU of the server                  {sent / cost:8.0f} spans per CPU second")
    while visible(server) < calls + sent and time.monotonic() < started + PATIENCE:
        time.sleep(BETWEEN)
    last = spent(server)
    seen = time.monotonic() - started
    print(f"in sessions                        {visible(server) - calls:8,} spans after {seen:.1f} s")
    print(f"CPU of the workers                 {last.workers - before.workers:8.1f} s, until the spans are in sessions")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("spans", 4_200), ("bytes", 20_000), ("per-request", 50), ("senders", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="measure-") as folder, running(Path(folder) / "data") as server:
        measure(server, chosen.spans, chosen.bytes, chosen.per_request, chosen.senders)
    print(f"load of the machine                {os.getloadavg()[0]:8.1f} ({os.cpu_count()} cores)")


if __name__ == "__main__":
    main()
