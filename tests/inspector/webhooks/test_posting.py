"""One message to a receiver that takes it, or fails in one of the ways in which one can."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from inspector.webhooks.posting import post
from inspector.webhooks.signing import headers, new_secret, secret_of
from tests.inspector.webhooks.receiver import Receiver, receiving

SHORT = 0.5  # seconds for receivers that never answer
LONG = 60.0  # for those that do, on a slow machine


@pytest.fixture(autouse=True)
def allowed(settings):
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8"]


def test_a_message_arrives_as_it_was_sent_and_its_signature_holds():
    secret, body = new_secret(), '{"a": "é"}'.encode()
    with receiving() as receiver:
        outcome = post(receiver.url, headers(secret, "m-1", 1_700_000_000, body), body, LONG)
    (message,) = receiver.messages
    assert outcome == (204, "HTTP 204.")
    assert outcome.is_success
    assert message.line == "POST /hooks?a=1 HTTP/1.1"
    assert message.headers["host"] == receiver.url.split("/")[2]
    assert (message.body, message.headers["webhook-timestamp"]) == (body, "1700000000")
    assert message.is_signed_with(secret.text)
    assert not message.is_signed_with(new_secret().text)


def test_a_secret_follows_from_its_salt_and_the_key_of_the_server(settings):
    secret = new_secret()
    assert secret_of(secret.salt) == secret
    settings.SECRET_KEY = "another key"
    assert secret_of(secret.salt).digest != secret.digest


@pytest.mark.parametrize(
    ("how", "status", "words", "seconds"),
    [
        ("informed", 200, "HTTP 200.", LONG),
        ("error", 500, "HTTP 500.", LONG),
        ("gone", 410, "HTTP 410.", LONG),
        ("redirect", 302, "redirects are not followed", LONG),
        ("garbage", 0, "not HTTP", LONG),
        ("half", 0, "not HTTP, or was cut off", LONG),
        ("nothing", 0, "not HTTP, or was cut off", LONG),
        ("endless", 0, "not HTTP", LONG),
        ("reset", 0, "No connection", LONG),
        ("stall", 0, "No answer within 0.5 seconds", SHORT),
        ("drip", 0, "No answer within 0.5 seconds", SHORT),
    ],
)
def test_a_receiver_that_fails_is_reported_in_words(how, status, words, seconds):
    with receiving(how) as receiver:
        outcome = post(receiver.url, {}, b"{}", seconds)
    assert outcome.status == status
    assert words in outcome.words
    assert "secret" not in outcome.words


def test_the_time_of_an_attempt_is_that_of_all_its_parts():
    with receiving("drip") as receiver:
        begin = time.monotonic()
        post(receiver.url, {}, b"{}", SHORT)
        assert time.monotonic() - begin < 30  # the drip would go on for ever


def test_a_port_without_a_receiver_and_a_name_without_an_address_are_reported(settings):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert "No connection: Connection refused" in post(f"http://127.0.0.1:{port}/", {}, b"{}", LONG).words
    assert "has no address" in post("https://no-such-host.invalid/", {}, b"{}", LONG).words


def test_a_receiver_without_tls_is_no_safe_connection():
    with receiving("garbage") as receiver:
        outcome = post(receiver.url.replace("http:", "https:"), {}, b"{}", LONG)
    assert "No safe connection" in outcome.words


def test_nothing_is_sent_where_no_message_may_go(settings):
    settings.WEBHOOK_NETWORKS = []
    with receiving() as receiver:
        outcome = post(receiver.url.replace("http:", "https:").replace("127.0.0.1", "localhost"), {}, b"{}", LONG)
    assert "not a public address" in outcome.words
    assert receiver.messages == []


HOST = "hooks.example"


def leads(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> None:
    """A resolver to which HOST leads to these addresses, when it is asked again to the next ones."""
    left, real = list(answers), socket.getaddrinfo

    def getaddrinfo(host: str, port: int, *args: Any, **options: Any) -> Any:
        if host != HOST:
            return real(host, port, *args, **options)
        addresses = left.pop(0) if len(left) > 1 else left[0]
        return [item for address in addresses for item in real(address, port, *args, **options)]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@contextmanager
def unvisited(address: str, port: int = 0) -> Iterator[int]:
    """A port at which no connection may arrive."""
    with socket.create_server((address, port)) as listening:
        yield listening.getsockname()[1]
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            listening.accept()


def named(receiver: Receiver) -> str:
    return receiver.url.replace("127.0.0.1", HOST)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_into_an_allowed_network_is_not_followed(status):
    with unvisited("127.0.0.1") as port, receiving() as receiver:
        moved = f"HTTP/1.1 {status} Moved\r\nlocation: http://127.0.0.1:{port}/\r\nrefresh: 0\r\n\r\n"
        receiver.answers = [moved]
        outcome = post(receiver.url, {}, b"{}", LONG)
    assert outcome == (status, f"HTTP {status}: redirects are not followed; use the final address.")
    assert len(receiver.messages) == 1


def test_a_name_that_leads_elsewhere_after_it_was_checked_is_not_asked_again(monkeypatch, settings):
    """DNS rebinding: what was checked is connected to."""
    settings.WEBHOOK_NETWORKS = ["127.0.0.1/32"]
    with receiving() as receiver:
        leads(monkeypatch, ["127.0.0.1"], ["127.0.0.2"])
        with unvisited("127.0.0.2", int(receiver.url.split(":")[2].split("/")[0])):
            assert post(named(receiver), {}, b"{}", LONG).is_success
            again = post(named(receiver), {}, b"{}", LONG)
    assert again.words.startswith(f"{HOST} is 127.0.0.2, which is not a public address.")
    assert len(receiver.messages) == 1
    assert receiver.messages[0].headers["host"] == named(receiver).split("/")[2]


def test_where_one_address_of_a_name_may_not_be_reached_none_is(monkeypatch, settings):
    settings.WEBHOOK_NETWORKS = ["127.0.0.1/32"]
    with receiving() as receiver:
        leads(monkeypatch, ["127.0.0.1", "127.0.0.2"])
        outcome = post(named(receiver), {}, b"{}", LONG)
    assert "127.0.0.2, which is not a public address" in outcome.words
    assert receiver.messages == []


def test_an_address_to_which_this_machine_has_no_way_gives_way_to_the_next_one(monkeypatch, settings):
    """As the IPv6 address of a receiver does on a machine without IPv6; no connection leads to a multicast address."""
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8", "224.0.0.0/4"]
    with receiving() as receiver:
        leads(monkeypatch, ["224.0.0.1", "127.0.0.1"])
        assert post(named(receiver), {}, b"{}", LONG) == (204, "HTTP 204.")


def test_an_address_that_breaks_off_before_the_connection_is_safe_gives_way_to_the_next_one(monkeypatch, settings):
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8"]
    with socket.create_server(("127.0.0.1", 0)) as first, ThreadPoolExecutor(2) as threads:
        port = first.getsockname()[1]
        with socket.create_server(("127.0.0.2", port)) as second:
            second.settimeout(LONG)
            leads(monkeypatch, ["127.0.0.1", "127.0.0.2"])
            both = [threads.submit(reset_one, listening) for listening in (first, second)]
            post(f"https://{HOST}:{port}/", {}, b"{}", LONG)
            for asked in both:
                asked.result()


def reset_one(listening: socket.socket) -> None:
    connection, _ = listening.accept()
    connection.recv(1)  # TLS has begun
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
