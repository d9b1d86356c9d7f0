"""Files in, sessions and the very same bytes out; limits kept before anything is written."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlparse

import pytest

from guard_core.recordings.formats import native
from guard_core.simulator.samples import SAMPLES
from tests.big_sessions import big_session
from tests.services.databases import query
from tests.services.server import Answer, Running, running, transcript
from tests.waiting import PATIENCE, until


def only(answer: Answer) -> dict:
    """The one import that an upload gave."""
    (report,) = json.loads(answer.body)["imports"]
    return report


def settled(ask: Callable[[], Answer]) -> Answer:
    """The answer to an upload that the server had the time to finish. A busy one answers before, and is asked again:
    the same bytes join the same import."""

    def finished() -> Answer | None:
        answer = ask()
        if "json" in answer.headers.get("content-type", ""):
            return answer if only(answer)["state"] not in ("received", "running") else None
        return answer if "/imports/" not in answer.headers.get("location", "") else None

    return until(finished)


def test_a_small_file_is_a_session_before_the_answer_comes(server: Running) -> None:
    content = transcript()
    answer = settled(lambda: server.send("chat.json", content))
    report = only(answer)
    assert answer.status == 201
    assert report["state"] == "done"
    assert report["url"].startswith("/s/")


def test_what_was_uploaded_comes_back_byte_for_byte(server: Running) -> None:
    content = transcript()
    answer = server.get(only(server.send("../../so <strange name>.json", content))["raw"])
    assert answer.body == content
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == 'attachment; filename="so _strange name_.json"'
    assert answer.headers["content-security-policy"].startswith("sandbox")
    assert not list(server.data_dir.parent.rglob("*strange name*"))


def test_the_plain_form_leads_to_the_session(server: Running) -> None:
    content = transcript()
    answer = settled(lambda: server.upload("chat.json", content))
    assert answer.status == 302
    assert answer.headers["location"].startswith("/s/")


def test_the_same_file_again_opens_the_same_session(server: Running) -> None:
    content = transcript()
    first, second = (only(settled(lambda name=name: server.send(name, content))) for name in ("a.json", "b.json"))
    assert first["url"] == second["url"]


@pytest.mark.long("postgresql")
@pytest.mark.parametrize("sample", list(SAMPLES))
def test_a_sample_opens_in_one_click(sample: str, server: Running) -> None:
    """On PostgreSQL the walk of `tests/browser/test_first_light.py` opens samples."""
    answer = settled(lambda: server.post(f"/samples/{sample}/"))
    assert answer.status == 302
    assert answer.headers["location"].startswith("/s/")


@pytest.mark.once
@pytest.mark.parametrize(
    ("content", "line"),
    [(b"just words", 1), (b'{"type":"user"}\n{"broken\n', None), (b"\xff\xfe\x00\x01", None), (b"[[[[", None)],
    ids=["words", "broken line", "UTF-16", "truncated"],
)
def test_bad_input_is_refused_in_a_sentence(content: bytes, line: int | None, server: Running) -> None:
    answer = settled(lambda: server.send("bad.jsonl", content))
    report = only(answer)
    assert answer.status == 422
    assert report["state"] == "failed"
    assert report["error"]
    assert line is None or report["line"] == line
    assert not list(server.data_dir.rglob(hashlib.sha256(content).hexdigest()))


@pytest.mark.once
def test_an_empty_file_is_refused(server: Running) -> None:
    answer = server.send("empty.jsonl", b"")
    assert answer.status == 400
    assert "empty" in json.loads(answer.body)["error"]


def test_a_damaged_line_can_be_left_out(server: Running) -> None:
    lines = native.write(SAMPLES["small-window"].build()).splitlines(keepends=True)
    content = b"".join([*lines[:5], b"{broken\n", *lines[5:]])
    refused = only(settled(lambda: server.send("damaged.jsonl", content)))
    assert (refused["state"], refused["line"]) == ("failed", 6)
    report = only(settled(lambda: server.send("damaged.jsonl", content, mode="lenient")))
    assert report["state"] == "done"
    assert report["url"].startswith("/imports/")
    assert "6" in server.get(report["url"]).text


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory):
    """A server that takes 100,000 bytes."""
    with running(tmp_path_factory.mktemp("narrow"), MAX_UPLOAD_BYTES="100000") as started:
        yield started


@pytest.mark.once
def test_a_file_over_the_limit_is_refused_with_the_limit_and_its_setting(narrow: Running) -> None:
    answer = narrow.send("large.json", b"x" * 300_000)
    assert answer.status == 413
    assert "MAX_UPLOAD_BYTES" in answer.text
    assert not list((narrow.data_dir / "incoming").iterdir())


@pytest.mark.once
def test_a_file_just_over_the_limit_is_refused_as_well(narrow: Running) -> None:
    answer = narrow.send("large.json", b"x" * 100_001)
    assert answer.status == 413
    assert "100,000" in answer.text


@pytest.mark.once
@pytest.mark.parametrize("path", ["/recordings/", "/no-such-page/", "/healthz"])
def test_a_body_without_end_is_cut_off(path: str, narrow: Running) -> None:
    address = urlparse(narrow.origin)
    sent = 0
    with socket.create_connection((address.hostname, address.port), timeout=PATIENCE) as connection:
        head = f"POST {path} HTTP/1.1\r\nHost: {address.netloc}\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head.encode())
        try:
            while sent < 64 * 2**20:
                connection.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
                sent += 65536
        except OSError:
            pass
        else:
            pytest.fail("the server took 64 MiB")
    assert narrow.get("/healthz").status == 200


@pytest.mark.once
def test_a_length_over_the_limit_is_refused_before_the_body(narrow: Running) -> None:
    address = urlparse(narrow.origin)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=PATIENCE)
    connection.putrequest("POST", "/no-such-page/")
    connection.putheader("Content-Length", str(2**40))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


@pytest.mark.once
def test_a_client_that_sends_all_before_it_reads_gets_the_answer(narrow: Running) -> None:
    body = b"x" * (32 * 2**20 + 1)  # more than lies in buffers on the way
    answer = narrow.request("POST", "/api/v1/sessions/a/events", body, {"Content-Type": "application/json"})
    assert (answer.status, "MAX_BATCH_BYTES" in answer.text) == (413, True)


@pytest.mark.long
def test_an_import_goes_on_after_the_server_was_stopped(tmp_path: Path) -> None:
    """`test_large.py` kills the worker, and `tests/inspector/jobs/test_recovery.py` takes back what it was at."""
    with running(tmp_path) as started:
        job = under_way(started, native.write(big_session(1_500, 10)))
        assert started.stop() == 0
    with running(tmp_path) as started:
        until(lambda: _complete(started, job))


def test_a_server_killed_while_it_answers_an_upload_leaves_nothing_in_incoming(tmp_path: Path) -> None:
    incoming, content = tmp_path / "incoming", native.write(big_session(1_000, 20))
    with running(tmp_path) as started:
        started.get("/")

        def send() -> None:
            with suppress(OSError, http.client.HTTPException):
                started.send("chat.jsonl", content)

        sender = threading.Thread(target=send)
        sender.start()
        (stored,) = until(lambda: list((tmp_path / "recordings").glob("??/*")))
        started.process.kill()
        sender.join()
        assert stored.stat().st_nlink == 1
        (incoming / "half").write_bytes(b"of an upload that was cut")
        os.link(stored, incoming / "other.upload.jsonl")  # as older versions left them
    with running(tmp_path):
        assert not list(incoming.iterdir())
        # The server may have died between the bytes and their row: then the bytes were never acknowledged, and go.
        known = query(tmp_path, "SELECT count(*) FROM inspector_recording")[0][0]
        assert stored.exists() == bool(known)
        assert not known or stored.read_bytes() == content


def under_way(server: Running, content: bytes) -> dict:
    """The import of these bytes, once a worker is reading it: the same bytes again join the same import."""

    def running_job() -> dict | None:
        job = only(server.send("big.jsonl", content))
        return job if job["state"] != "received" else None

    return until(running_job)


def _complete(server: Running, job: dict) -> bool:
    return job["url"].startswith("/s/") or "/s/" in server.get(job["url"]).headers.get("location", "")
