"""A client whose server is not there, is none, or is slow with what earlier runs left."""

from __future__ import annotations

import fcntl
import json
import resource
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from guard_core.streaming import Client
from guard_core.streaming.client import MOST_WAITING, TIMEOUT
from tests.waiting import until

NOBODY = "http://127.0.0.1:9"  # the port of a service that no machine runs any more


@pytest.mark.parametrize("address", ["", "127.0.0.1:8000", "ftp://host", "http://"])
def test_an_address_that_is_none_is_refused_at_once(address):
    with pytest.raises(ValueError, match="begins with http"):
        Client(address)


@pytest.mark.parametrize("key", ["ci_key\n", "ci_ke\u00df"])
def test_a_key_that_is_none_is_refused_at_once_and_not_printed(key):
    with pytest.raises(ValueError, match="letters, digits and _ only"):
        Client(NOBODY, key=key)


@pytest.mark.parametrize("name", [".x", "a b", "x" * 101])
def test_a_name_that_no_server_takes_is_refused_at_once(name):
    with pytest.raises(ValueError, match="1 to 100 letters"):
        Client(NOBODY, name)


def test_what_cannot_be_sent_is_on_disk_and_the_agent_hears_nothing(tmp_path):
    client = Client(NOBODY, "a", spool=tmp_path)
    client.write(b'{"a":1}\n{"b"')
    client.write(b":2}\n")
    client.flush()
    assert not client.wait(0.01)
    assert not client.close(0.01)
    assert (tmp_path / "a.stream.jsonl").read_bytes() == b'{"a":1}\n{"b":2}\n'


def test_a_spool_that_cannot_be_written_breaks_no_agent(tmp_path):
    (tmp_path / "file").touch()
    client = Client(NOBODY, "a", spool=tmp_path / "file")
    client.write(b"{}\n")
    assert not client.close(0.01)


def test_a_spool_on_a_full_disk_has_whole_lines_and_is_no_other_runs(tmp_path, caplog):
    """Where only a part of a write fits, it is cut there without an error."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    client = Client(NOBODY, "a", spool=tmp_path)
    place = tmp_path / "a.stream.jsonl"
    client.write(b'{"a":1}\n')
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (12, hard))
        client.write(b'{"a":2}\n')
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    client.write(b'{"a":3}\n')
    assert place.read_bytes() == b'{"a":1}\n'
    with pytest.raises(BlockingIOError), place.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    client.close(0.01)
    assert caplog.messages[0] == "stream a is not kept on disk any more: [Errno 28] No space left on device"
    assert caplog.messages[1].startswith("stream a was closed with 3 lines not acknowledged, without a spool")


@pytest.mark.parametrize(
    ("with_spool", "words"), [(True, "left in the spool"), (False, "without a spool lost when the program ends")]
)
def test_one_warning_says_how_many_lines_the_server_has_not_acknowledged(with_spool, words, tmp_path, caplog):
    client = Client(NOBODY, "a", spool=tmp_path if with_spool else None)
    client.write(b"{}\n{}\n")
    client.close(0.01)
    client.close(0.01)
    assert caplog.messages == [f"stream a was closed with 2 lines not acknowledged, {words}"]


def test_lines_after_the_client_gave_up_are_in_the_number(caplog):
    client = Client(NOBODY, "a")
    for line in (b"1" * MOST_WAITING, b"{}", b"{}", b"{}"):  # from the first one on it gave up
        client.write(line + b"\n")
    client.close(0.01)
    assert caplog.messages[-1].startswith("stream a was closed with 4 lines not acknowledged")


def test_nothing_is_said_of_a_stream_without_lines(caplog):
    Client(NOBODY, "a").close(0.01)
    assert not caplog.messages


class Inspector(ThreadingHTTPServer):
    """Keeps the lines of streams, and holds requests about one of them until it is released."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lines: dict[str, list[object]] = {}
        self.firsts: dict[str, list[int]] = {}
        self.ended: set[str] = set()
        self.held, self.released = "", threading.Event()
        self.refusals: dict[str, tuple[int, str]] = {}  # by stream: what it is answered with
        self.asked: list[str] = []
        self.refuses_lines_alone = False

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Inspector

    def do_POST(self) -> None:
        name = self.path.split("/")[-2]
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(name)
        if name == self.server.held:
            self.server.released.wait(60)
        if name in self.server.refusals and (message["lines"] or not self.server.refuses_lines_alone):
            status, words = self.server.refusals[name]
            self._answer(status, {"error": words})
            return
        lines = self.server.lines.setdefault(name, [])
        if message["lines"]:
            self.server.firsts.setdefault(name, []).append(message["first"])
        lines += message["lines"][len(lines) - message["first"] :]
        if message["ended"]:
            self.server.ended.add(name)
        self._answer(200, {"acknowledged": len(lines)})

    def _answer(self, status: int, answer: dict[str, object]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def inspector() -> Iterator[Inspector]:
    with Inspector() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.released.set()
        server.shutdown()


def test_new_lines_do_not_wait_for_what_an_earlier_run_left(inspector, tmp_path):
    (tmp_path / "old.stream.jsonl").write_bytes(b'{"old":1}\n')
    inspector.held = "old"
    client = Client(inspector.origin, "new", spool=tmp_path)
    for number in range(3):
        client.write(b'{"new":%d}\n' % number)
        assert client.wait(TIMEOUT - 5), "acknowledged before the held request is given up"
    assert client.close(0.5), "nor does the end of the agent"
    assert inspector.lines["new"] == [{"new": 0}, {"new": 1}, {"new": 2}]
    assert [path.name for path in tmp_path.iterdir()] == ["old.stream.jsonl"]


def test_what_an_earlier_run_left_is_sent_from_where_the_server_has_it(inspector, tmp_path):
    (tmp_path / "old.stream.jsonl").write_bytes(b'{"old":0}\n{"old":1}\n{"old":2}\n{"cut')
    (tmp_path / "whole.stream.jsonl").write_bytes(b'{"old":0}\n')
    inspector.lines = {"old": [{"old": 0}, {"old": 1}], "whole": [{"old": 0}]}
    client = Client(inspector.origin, "new", spool=tmp_path)
    client.write(b"{}\n")
    assert client.close(60)
    assert inspector.lines["old"] == [{"old": 0}, {"old": 1}, {"old": 2}]
    assert inspector.firsts == {"new": [0], "old": [2]}
    assert inspector.ended == {"new", "old", "whole"}
    assert not any(tmp_path.iterdir())


def run(inspector, folder, name):
    """One run of an agent with a spool."""
    client = Client(inspector.origin, name, spool=folder)
    client.write(b"{}\n")
    assert client.close(60)


def test_a_second_stream_of_a_name_leaves_the_lines_of_the_first(inspector, tmp_path):
    """They were written by a run that could not send them, and no other one may throw them away."""
    client = Client(NOBODY, "a", spool=tmp_path)
    client.write(b'{"first":1}\n')
    client.close(0.01)
    run(inspector, tmp_path, "a")
    assert (tmp_path / "a.stream.jsonl").read_bytes() == b'{"first":1}\n'


@pytest.mark.parametrize("status", [409, 410, 413])
def test_what_a_server_will_never_take_is_set_aside_and_no_server_is_asked_again(status, inspector, tmp_path, caplog):
    (tmp_path / "old.stream.jsonl").write_bytes(b'{"old":0}\n')
    (tmp_path / "old.stream.jsonl.refused").write_bytes(b"of a run before\n")
    inspector.refusals["old"] = status, "The session of this stream was deleted."
    run(inspector, tmp_path, "first")
    run(inspector, tmp_path, "second")
    assert inspector.asked.count("old") == 1
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "old.stream.jsonl.refused": b"of a run before\n",
        "old.stream.jsonl.refused-2": b'{"old":0}\n',
    }
    assert caplog.messages == [
        f"stream old of an earlier run is not sent any more: {status}: The session of this stream was deleted; "
        f"it is in {tmp_path / 'old.stream.jsonl.refused-2'}"
    ]


def test_lines_that_make_no_sense_are_set_aside(inspector, tmp_path):
    (tmp_path / "old.stream.jsonl").write_bytes(b'{"old":0}\n')
    inspector.refusals["old"], inspector.refuses_lines_alone = (400, "Line 0 of the batch: no event."), True
    run(inspector, tmp_path, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["old.stream.jsonl.refused"]


def test_lines_stay_in_the_spool_where_a_server_is_not_known_by_its_address(inspector, tmp_path):
    """It answers 400 to whatever is sent, until its ALLOWED_HOSTS are mended."""
    inspector.refusals["mine"] = 400, "The address contains a value that is not allowed."
    client = Client(inspector.origin, "mine", spool=tmp_path)
    client.write(b'{"a":1}\n')
    until(lambda: client.trouble.startswith("400: The address"))
    client.close(0.01)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.stream.jsonl"]
    del inspector.refusals["mine"]
    run(inspector, tmp_path, "later")
    assert inspector.lines["mine"] == [{"a": 1}]


def test_a_line_that_is_too_large_is_not_sent_again_and_again(tmp_path):
    """Whoever limits bodies by their size answers in plain text, closes the connection, and reads nothing before."""
    words = b"The request is too large."
    answer = b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(words), words)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = Client(f"http://127.0.0.1:{listening.getsockname()[1]}", "mine", spool=tmp_path)
        client.write(b'{"a":"' + b"x" * 20_000_000 + b'"}\n')
        connection, _ = listening.accept()
        with connection:
            connection.recv(100)
            connection.sendall(answer)
        until(lambda: client.trouble)
        assert client.trouble.startswith("413: 20,000,0")
        # the thread of the client does that
        until(lambda: [path.name for path in tmp_path.iterdir()] == ["mine.stream.jsonl.refused"])
        client.close(0.01)


def test_an_answer_that_is_a_page_of_something_else_is_said_with_where_it_leads(tmp_path):
    page = b"<h1>Moved</h1>"
    head = b"HTTP/1.1 301 Moved\r\nLocation: https://inspector.example/\r\nContent-Length: %d\r\n\r\n" % len(page)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = Client(f"http://127.0.0.1:{listening.getsockname()[1]}", "mine", spool=tmp_path)
        client.write(b'{"a":1}\n')
        connection, _ = listening.accept()
        with connection:
            connection.recv(10_000)
            connection.sendall(head + page)
            until(lambda: client.trouble)
    words = "not sent now: the server answered with status 301 and no JSON (redirected to https://inspector.example/)"
    assert client.trouble == words
    client.close(0.01)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.stream.jsonl"]


def test_an_address_that_no_request_can_hold_is_said_and_the_lines_stay_in_the_spool(inspector, tmp_path):
    client = Client(f"{inspector.origin}/prüfer", "mine", spool=tmp_path)
    client.write(b'{"a":1}\n')
    until(lambda: client.trouble.startswith("not sent now: UnicodeEncodeError"))
    client.close(0.01)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.stream.jsonl"]


def test_a_stream_of_which_the_server_has_more_is_set_aside(inspector, tmp_path):
    (tmp_path / "old.stream.jsonl").write_bytes(b'{"old":0}\n{"cut')
    inspector.lines["old"] = [{"old": 0}, {"old": 1}]
    run(inspector, tmp_path, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["old.stream.jsonl.refused"]


def test_what_another_key_may_send_stays_in_the_spool_and_a_warning_says_why(inspector, tmp_path, caplog):
    (tmp_path / "old.stream.jsonl").write_bytes(b'{"old":0}\n')
    inspector.refusals["old"] = 403, "This key may not send."
    run(inspector, tmp_path, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["old.stream.jsonl"]
    assert caplog.messages == ["stream old of an earlier run stays in the spool: 403: This key may not send."]
    del inspector.refusals["old"]
    run(inspector, tmp_path, "later")
    assert inspector.lines["old"] == [{"old": 0}]
    assert not any(tmp_path.iterdir())


def test_a_stream_that_is_refused_while_its_agent_works_is_set_aside_whole(inspector, tmp_path):
    inspector.refusals["mine"] = 410, "The session of this stream was deleted."
    client = Client(inspector.origin, "mine", spool=tmp_path)
    client.write(b'{"a":1}\n')
    until(lambda: [path.name for path in tmp_path.iterdir()] == ["mine.stream.jsonl.refused"])
    client.write(b'{"a":2}\n')
    assert not client.close(60)
    assert (tmp_path / "mine.stream.jsonl.refused").read_bytes() == b'{"a":1}\n{"a":2}\n'
    assert inspector.asked == ["mine"]
