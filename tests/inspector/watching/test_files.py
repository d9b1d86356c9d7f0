"""What the watcher takes for changed, and for whole."""

import json
import os
import time
from pathlib import Path

import pytest

from inspector.watching.command import _Loop, watch
from inspector.watching.files import Watched, companions, is_only_begun, versions_of, whole_size
from inspector.watching.sending import TOKEN, Answer, Away, Server, _read


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


def test_a_session_of_claude_code_is_sent_from_its_first_message_on(tmp_path, monkeypatch):
    log, other, sent, words = tmp_path / "s1.jsonl", tmp_path / "other.jsonl", [], []
    answer = Answer("http://h/s/1/")
    monkeypatch.setattr(Server, "send", lambda _, path: sent.append(path.read_text().count("\n")) or answer)
    loop = _Loop(Server("http://h"), Watched([log], since=0), words.append)
    for line in (SNAPSHOT, SNAPSHOT, WORDS):
        with log.open("a") as file:
            file.write(json.dumps(line) + "\n")
        loop.look(1.0)
    assert (sent, words) == ([3], ["s1.jsonl: http://h/s/1/"])
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
        ({"imports": [{"url": "/s/1/", "error": ""}]}, Answer("http://h/s/1/")),
        ({"imports": [{"url": "/imports/1/", "error": "line 3 is damaged"}]}, Answer(refused="line 3 is damaged")),
        ({"imports": [], "aside": [{"reason": "no session"}]}, Answer(refused="no session")),
        ({"error": "Too large."}, Answer(refused="Too large.")),
        ([], Answer(refused="it was not taken")),
    ],
)
def test_answers_of_the_server(given, answer):
    assert _read(given, "http://h") == answer


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


@pytest.mark.django_db
def test_the_page_that_is_asked_for_a_token_is_there(client, monkeypatch):
    asked = []

    def ask(_, method, path):
        asked.append(client.generic(method, path))
        raise Away("asked")

    monkeypatch.setattr(Server, "_ask", ask)
    with pytest.raises(Away):
        Server("http://h")._greet()
    assert asked[0].status_code == 200
    assert TOKEN.search(asked[0].content.decode())
