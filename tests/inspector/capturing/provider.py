"""A provider on loopback that answers as real ones do: whole, streamed, compressed, with errors, stalls, resets."""

from __future__ import annotations

import gzip
import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

JSON = dict[str, Any]
ANTHROPIC_USAGE = {
    "input_tokens": 10,
    "cache_read_input_tokens": 90,
    "cache_creation_input_tokens": 0,
    "output_tokens": 5,
}
CHAT_USAGE = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}


@dataclass
class Seen:
    """What arrived: request lines, headers, bodies."""

    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)  # lets a stalled answer go on
    stalled: threading.Event = field(default_factory=threading.Event)  # an answer has stalled


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    seen: Seen


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    @property
    def _path(self) -> str:
        return self.path.split("?")[0]

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._whole(200, b'{"data": []}')

    def do_POST(self) -> None:
        body = self._body()
        self.server.seen.requests.append((self.path, dict(self.headers), body))
        request = json.loads(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
        how = str(request.get("metadata", {}).get("user_id") or request.get("user") or "")
        if how.isdigit():
            self._whole(int(how), json.dumps({"type": "error", "error": {"type": "no", "message": "not now"}}).encode())
        elif how == "reset":
            self._reset()
        elif request.get("stream") or ":stream" in self.path:
            self._stream(list(events(self._path, request)), how)
        else:
            self._whole(200, json.dumps(answer(self._path, request)).encode(), zipped=how == "gzip")

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _whole(self, status: int, body: bytes, zipped: bool = False) -> None:
        body = gzip.compress(body) if zipped else body
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Request-Id", "req_1")
        if zipped:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, pieces: list[bytes], how: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, piece in enumerate(pieces):
            if number == len(pieces) // 2:
                if how == "reset in the middle":
                    self._reset()
                    return
                if how == "stall":
                    self.server.seen.stalled.set()
                    self.server.seen.released.wait(60)
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()


def answer(path: str, request: JSON) -> JSON:
    """The answer to a request, by the API of its path: a tool call first, then words."""
    if path.endswith("/messages"):
        content = [{"type": "text", "text": f"answer {len(request['messages'])}"}]
        about = {"id": f"msg_{len(request['messages'])}", "type": "message", "role": "assistant"}
        about |= {"model": request["model"], "stop_reason": "end_turn"}
        return {**about, "content": content, "usage": ANTHROPIC_USAGE}
    if path.endswith("/responses"):
        text = {"type": "output_text", "text": "answer", "annotations": []}
        message = {"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
        usage = {"input_tokens": 100, "output_tokens": 5, "total_tokens": 105}
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        about = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "error": None}
        return {**about, "model": request["model"], "output": [message], "usage": usage | details, "tools": []}
    if "enerateContent" in path:
        content = {"role": "model", "parts": [{"text": "answer"}]}
        usage = {"promptTokenCount": 100, "candidatesTokenCount": 5, "totalTokenCount": 105}
        return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}
    message = {"role": "assistant", "content": f"answer {len(request['messages'])}"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    about = {"id": "c1", "object": "chat.completion", "created": 1, "model": request["model"]}
    return {**about, "choices": [choice], "usage": CHAT_USAGE}


def events(path: str, request: JSON) -> Iterator[bytes]:
    """The same answer as a stream of events."""
    whole = answer(path, request)
    if path.endswith("/messages"):
        text = whole["content"][0]["text"]
        start = {**whole, "content": [], "stop_reason": None, "usage": {**ANTHROPIC_USAGE, "output_tokens": 1}}
        yield _event({"type": "message_start", "message": start})
        yield _event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
        for letter in text:
            yield _event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": letter}})
        yield _event({"type": "content_block_stop", "index": 0})
        end = {"stop_reason": "end_turn", "stop_sequence": None}
        yield _event({"type": "message_delta", "delta": end, "usage": {"output_tokens": 5}})
        yield _event({"type": "message_stop"})
        return
    if path.endswith("/responses"):
        yield _event({"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}})
        yield _event({"type": "response.output_item.done", "output_index": 0, "item": whole["output"][0]})
        yield _event({"type": "response.completed", "response": whole})
        return
    if "enerateContent" in path:
        first = {"content": {"role": "model", "parts": [{"text": "ans"}]}, "index": 0}
        yield _event({"candidates": [first]}, named=False)
        rest = {"content": {"role": "model", "parts": [{"text": "wer"}]}, "finishReason": "STOP", "index": 0}
        yield _event({"candidates": [rest], "usageMetadata": whole["usageMetadata"]}, named=False)
        return
    about = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": request["model"]}
    for letter in whole["choices"][0]["message"]["content"]:
        choice = {"index": 0, "delta": {"role": "assistant", "content": letter}, "finish_reason": None}
        yield _event({**about, "choices": [choice]}, named=False)
    yield _event({**about, "choices": [], "usage": CHAT_USAGE}, named=False)
    yield b"data: [DONE]\n\n"


def _event(value: JSON, named: bool = True) -> bytes:
    name = f"event: {value['type']}\n" if named else ""
    return f"{name}data: {json.dumps(value)}\n\n".encode()


@contextmanager
def provider() -> Iterator[tuple[str, Seen]]:
    """A running provider: its address and what it has seen."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.seen = Seen()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", server.seen
    finally:
        server.seen.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
