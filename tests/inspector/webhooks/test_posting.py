"""One message to a receiver that takes it, or fails in one of the ways in which one can."""

from __future__ import annotations

import socket
import time

import pytest

from inspector.webhooks.posting import post
from inspector.webhooks.signing import headers, new_secret, secret_of
from tests.inspector.webhooks.receiver import receiving

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
