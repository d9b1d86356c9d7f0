"""A model behind an endpoint of Chat Completions: its words are the summary, and whatever else it answers is none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from guard_core import ChatEndpoint, Guard
from guard_core.errors import SettingError

HISTORY = [
    {"role": "user", "content": "Find the slow query"},
    {"role": "assistant", "content": "a" * 8_000},
    {"role": "user", "content": "And the other one"},
    {"role": "assistant", "content": "It is the third."},
]


class _Model(HTTPServer):
    """It answers every request with the same status and body."""

    status = 200
    body = b""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.asked: list[tuple[str, str | None, dict[str, object]]] = []


class _Answer(BaseHTTPRequestHandler):
    server: _Model

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, self.headers["Authorization"], asked))
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *parts: object) -> None:
        pass


@pytest.fixture
def answering() -> Iterator[_Model]:
    with _Model() as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def endpoint(server: _Model, **settings: object) -> ChatEndpoint:
    url = f"http://127.0.0.1:{server.server_port}/v1/"
    return ChatEndpoint(url, "small", frozenset({"127.0.0.1"}), **settings)  # type: ignore[arg-type]


def compacted(asked: ChatEndpoint) -> tuple[str, bool]:
    """The summary that an agent sends, and whether it is the mechanical one."""
    guard = Guard("contextguard", window=2_000, summarizer=asked)
    sent = guard.before_call(HISTORY)
    return sent[0]["content"], guard.compactions[0].passes[0].failed


def test_its_words_are_the_summary(answering, monkeypatch):
    monkeypatch.setenv("KEY_OF_THE_MODEL", "sk-1")
    answering.body = json.dumps({"choices": [{"message": {"content": "Two slow queries."}}]}).encode()
    said, failed = compacted(endpoint(answering, key_variable="KEY_OF_THE_MODEL"))
    assert ("Two slow queries." in said, failed) == (True, False)
    ((path, key, asked),) = answering.asked
    assert (path, key, asked["model"]) == ("/v1/chat/completions", "Bearer sk-1", "small")
    assert "And the other one" in json.dumps(asked["messages"])


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"<html>"),
        (200, b"[]"),
        (200, b'{"choices":[{"message":{"content":"\xff"}}]}'),
        (200, b'{"choices":[],"more":' + b"[" * 200_000),
        (302, b""),
        (500, b'{"choices":[{"message":{"content":"x"}}]}'),
    ],
    ids=["a page", "a list", "no UTF-8", "nested too deeply", "elsewhere", "an error"],
)
def test_any_other_answer_is_no_summary_and_breaks_no_agent(answering, status, body):
    answering.status, answering.body = status, body
    said, failed = compacted(endpoint(answering))
    assert (said.startswith("[Previous conversation summary]"), failed) == (True, True)


def test_it_is_asked_no_more_than_allowed_and_only_where_it_may_be(answering):
    assert compacted(endpoint(answering, most_calls=0))[1]
    assert not answering.asked
    with pytest.raises(SettingError, match="example is not among the hosts"):
        ChatEndpoint("https://model.example", "small", frozenset({"127.0.0.1"}))
    with pytest.raises(SettingError, match="begins with http"):
        ChatEndpoint("file:///etc/passwd", "small", frozenset({""}))
