"""What the watcher takes for changed, and for whole."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from inspector.watching.child import FolderWatch
from inspector.watching.command import _Loop, watch
from inspector.watching.files import Watched, companions, is_only_begun, versions_of, whole_size
from inspector.watching.sending import GREETED, TOKEN, TOO_LARGE, Changed, SentFile, Server, _read

SENT_SLOWLY = 32 * 2**20  # bytes: more than what sockets hold of it before the other side reads


def changed(watched: Watched) -> list[str]:
    return [path.name for path in watched.changed()]


def test_files_are_changed_until_the_version_that_was_sent_is_the_one_there(tmp_path):
    (tmp_path / "deep").mkdir()
    log = tmp_path / "deep" / "a.jsonl"
    log.write_text("{}\n")
    (tmp_path / "notes.txt").write_text("no session")
    (tmp_path / ".hidden.jsonl").write_text("{}\n")
    (tmp_path / "empty.jsonl").touch()
    old = tmp_path / "old.jsonl"
    old.write_text("{}\n")
    os.utime(old, (1e9, 1e9))
    watched = Watched([tmp_path], since=time.time() - 60)
    assert changed(watched) == ["a.jsonl"]
    versions = versions_of(log)
    with log.open("a") as file:  # while it was sent
        file.write("{}\n")
    watched.sent(log, versions)
    assert changed(watched) == ["a.jsonl"]
    watched.sent(log, versions_of(log))
    assert changed(watched) == []
    with old.open("a") as file:
        file.write("{}\n")
    assert changed(watched) == ["old.jsonl"]
    log.unlink()
    assert changed(watched) == ["old.jsonl"]


def test_an_old_file_that_grows_is_sent_though_the_clock_was_set_back(tmp_path):
    log = tmp_path / "a.jsonl"
    log.write_text("{}\n")
    os.utime(log, (1e9, 1e9))
    watched = Watched([tmp_path], since=time.time() - 60)
    assert changed(watched) == []
    with log.open("a") as file:
        file.write("{}\n")
    os.utime(log, (1e9, 1e9))
    assert changed(watched) == ["a.jsonl"]


def test_an_old_database_whose_newest_rows_are_in_its_log_is_sent(tmp_path):
    database = tmp_path / "a.db"
    database.write_bytes(b"x")
    os.utime(database, (1e9, 1e9))
    (tmp_path / "a.db-wal").write_bytes(b"y")
    assert changed(Watched([database], since=time.time() - 60)) == ["a.db"]


def test_another_file_in_the_place_of_one_is_sent_even_of_the_same_size_and_time(tmp_path):
    log, other = tmp_path / "a.jsonl", tmp_path / "other"
    log.write_text("{}\n")
    other.write_text("[]\n")
    watched = Watched([tmp_path], since=0)
    watched.sent(log, versions_of(log))
    known = log.stat()
    os.utime(other, ns=(known.st_atime_ns, known.st_mtime_ns))
    other.replace(log)
    assert changed(watched) == ["a.jsonl"]


@contextmanager
def receiving(meanwhile: Callable[[], object], *, needs_token: bool = False) -> Iterator[tuple[str, list[bytes]]]:
    """The address of a server that does something before it reads a recording, and the bodies that arrived whole."""
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer('<body hx-headers=\'{"X-CSRFToken": "t"}\'>')

        def do_POST(self) -> None:
            meanwhile()
            body = self.rfile.read(size := int(self.headers["Content-Length"]))
            if needs_token and self.headers["X-CSRFToken"] != "t":
                self._answer('{"error": "The token was missing."}', 403)
            elif len(body) == size:
                bodies.append(body)
                self._answer('{"imports": [{"url": "/s/1/"}]}')

        def _answer(self, text: str, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("Set-Cookie", "csrftoken=t")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", bodies
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_database_that_is_written_to_while_it_is_sent_is_not_taken_until_it_is_whole(tmp_path):
    """SQLite moves rows from the log to the file: what was read of the one before and of the other after lacks them."""
    database = tmp_path / "opencode.db"
    database.write_bytes(bytes(SENT_SLOWLY))
    database.with_name("opencode.db-wal").write_bytes(b"frames")

    def move_rows() -> None:
        if not arrived:
            with database.open("ab") as file:
                file.write(b"rows")
            arrived.append(True)

    arrived: list[bool] = []
    with receiving(move_rows) as (address, bodies):
        server = Server(address)
        with pytest.raises(Changed, match="was written to while it was sent"):
            server.send(database)
        assert bodies == []
        assert server.send(database).url == f"{address}/s/1/"
    assert len(bodies) == 1
    assert b"rows\r\n" in bodies[0]


def test_lines_that_are_added_while_a_file_is_sent_are_for_the_next_time(tmp_path):
    log = tmp_path / "a.jsonl"
    log.write_bytes(b"1\n" * (SENT_SLOWLY // 2))

    def write_on() -> None:
        with log.open("ab") as file:
            file.write(b"more\n")

    with receiving(write_on) as (address, bodies):
        assert Server(address).send(log).url
    assert b"more" not in bodies[0]


def test_a_line_that_is_being_written_is_not_sent(tmp_path):
    log = tmp_path / "a.jsonl"
    for text, whole in ((b"", 0), (b"half", 0), (b"{}\n", 3), (b"{}\n" + b"x" * 200_000, 3)):
        log.write_bytes(text)
        assert whole_size(log) == whole
    value = tmp_path / "a.json"
    value.write_bytes(b"[1]")
    assert whole_size(value) == 3


SNAPSHOT = {"type": "file-history-snapshot", "messageId": "m1", "snapshot": {"trackedFileBackups": {}}}
WORDS = {
    "type": "user",
    "uuid": "u1",
    "parentUuid": None,
    "sessionId": "s1",
    "message": {"role": "user", "content": "Go"},
}


class Taking(Server):
    """A server that takes everything; how many lines each file had."""

    def __init__(self) -> None:
        super().__init__("http://h")
        self.lines: list[int] = []

    def send(self, path: Path) -> SentFile:
        self.lines.append(path.read_text().count("\n"))
        return SentFile("http://h/s/1/")


def test_a_session_of_claude_code_is_sent_from_its_first_message_on(tmp_path):
    log, other, server, words = tmp_path / "s1.jsonl", tmp_path / "other.jsonl", Taking(), []
    loop = _Loop(server, Watched([log], since=0), words.append)
    for line in (SNAPSHOT, SNAPSHOT, WORDS):
        with log.open("a") as file:
            file.write(json.dumps(line) + "\n")
        loop.look(1.0)
    assert (server.lines, words) == ([3], ["s1.jsonl: http://h/s/1/"])
    for text in ("{}\n", "no JSON\n", "half", '{"type": "session_meta", "payload": {}}\n', '{"role": "user"}\n'):
        other.write_text(text)
        assert not is_only_begun(other)


def test_a_database_comes_with_its_newest_rows(tmp_path):
    database = tmp_path / "a.db"
    database.write_bytes(b"x")
    watched = Watched([database], since=0)
    watched.sent(database, versions_of(database))
    log = tmp_path / "a.db-wal"
    log.write_bytes(b"y")
    assert companions(database) == [database, log]
    assert changed(watched) == ["a.db"]


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ({"imports": [{"url": "/s/1/", "error": ""}]}, SentFile("http://h/s/1/")),
        ({"imports": [{"url": "/imports/1/", "error": "line 3 is damaged"}]}, SentFile(refused="line 3 is damaged")),
        ({"imports": [], "aside": [{"reason": "no session"}]}, SentFile(refused="no session")),
        ({"error": "Too large."}, SentFile(refused="Too large.")),
        ([], SentFile(refused="it was not taken")),
    ],
)
def test_answers_of_the_server(given, answer):
    assert _read(given, "http://h") == answer


@pytest.mark.parametrize(("address", "key"), [("h", ""), ("http://", ""), ("http://h:port", ""), ("http://h", "a\nb")])
def test_an_address_and_a_key_that_are_none_are_refused_at_once(address, key):
    with pytest.raises(ValueError, match=r"address of a server|key of a server|Port could not"):
        Server(address, key)


@pytest.mark.parametrize("address", ["http://me:password@h:8000/path", "https://[::1]", "http://h"])
def test_a_password_in_an_address_is_not_printed(address):
    assert Server(address).origin == address.replace("me:password@", "").replace("/path", "")


def test_a_server_that_is_not_in_team_mode_takes_a_file_although_there_is_a_key(tmp_path):
    log = tmp_path / "a.jsonl"
    log.write_bytes(b"{}\n")
    with receiving(lambda: None, needs_token=True) as (address, bodies):
        assert Server(address, "ci_key").send(log).url
    assert len(bodies) == 1


def test_what_cannot_be_watched_is_said(tmp_path, capsys):
    assert watch([str(tmp_path / "none")], "http://127.0.0.1:1", once=True) == 2
    output = capsys.readouterr()
    assert "is not there" in output.out
    assert "nothing to watch" in output.err
    assert watch([str(tmp_path)], "ftp://127.0.0.1", once=True) == 2
    assert "http://" in capsys.readouterr().err
    Path(tmp_path, "a.jsonl").write_text("{}\n")
    assert watch([str(tmp_path)], "http://127.0.0.1:1", once=True) == 1
    assert "does not answer (ConnectionRefusedError); trying again." in capsys.readouterr().out


def test_a_place_that_cannot_be_looked_at_is_not_there_and_stops_nothing(tmp_path, capsys):
    """Without permission, on a network drive that is away; or, for the user who may do everything, by a long name."""
    place, log = tmp_path / ("x" * 300), tmp_path / "a.jsonl"
    log.write_text("{}\n")
    assert watch([str(place)], "http://127.0.0.1:1", once=True) == 2
    assert "is not there; it is not watched." in capsys.readouterr().out
    assert changed(Watched([place, log], since=0)) == ["a.jsonl"]
    assert FolderWatch("http://127.0.0.1:1", lambda: [str(place), str(log)])._wanted() == [str(log)]


@contextmanager
def refusing(status: int, text: str) -> Iterator[str]:
    """The address of a server that answers each recording with a status before it reads it."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())
            self.close_connection = True

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_a_file_that_is_larger_than_the_server_accepts_does_not_stop_the_others(tmp_path):
    """The server closes the connection while the file is still being sent."""
    log, words = tmp_path / "a.jsonl", []
    log.write_bytes(b"{}\n" * SENT_SLOWLY)
    with refusing(413, "The request is larger than the limit.") as address:
        loop = _Loop(Server(address, "key"), watched := Watched([log], since=0), words.append)
        loop.look(1.0)
    assert (words, changed(watched), loop.is_away) == ([f"a.jsonl: {TOO_LARGE}"], [], False)


@pytest.mark.parametrize("status", [401, 403, 408, 429, 502, 503, 504, 507])
def test_a_file_that_the_server_has_no_room_or_no_time_for_is_sent_again(status, tmp_path):
    log, words = tmp_path / "a.jsonl", []
    log.write_bytes(b"{}\n")
    with refusing(status, '{"error": "The disk is full."}') as address:
        loop = _Loop(Server(address, "key"), watched := Watched([log], since=0), words.append)
        loop.look(1.0)
    assert (words, changed(watched)) == ([f"{address} refuses: The disk is full; trying again."], ["a.jsonl"])


@pytest.mark.django_db
def test_the_page_that_is_asked_for_a_token_is_there(client):
    page = client.get(GREETED)
    assert page.status_code == 200
    assert TOKEN.search(page.content.decode())
