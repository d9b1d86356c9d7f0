"""Messages are written once for each occurrence, and sent until they are accepted or given up."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from django.db import OperationalError
from django.test import Client
from django.utils import timezone
from django_tasks.signals import task_enqueued

from guard_core.sessions import ModelCall
from inspector.jobs import kinds, queue
from inspector.models import Delivery, Session, SessionData, Stream, Webhook, default_project
from inspector.storage import appending, loading
from inspector.storage.compression import compressed, decompressed
from inspector.webhooks import arising, deliveries, signing
from tests.builders import model, session, user
from tests.inspector.pages.conftest import stored
from tests.inspector.streamed import lines_of, send
from tests.inspector.webhooks.receiver import receiving

assert kinds  # registers what the jobs do
pytestmark = pytest.mark.django_db
ALL = "near_miss overflow loop"
LONG = 60.0


@pytest.fixture(autouse=True)
def allowed(settings):
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8"]


def hook_of(url: str, kinds: str = ALL) -> tuple[Webhook, str]:
    secret = signing.new_secret()
    values = {"url": url, "kinds": kinds, "salt": secret.salt, "secret_digest": secret.digest}
    return Webhook.objects.of(default_project()).create(**values), secret.text


def near(row: Session, tokens: int = 95_000) -> None:
    """One more call of a session, whose prompt nearly fills the window of 100,000 tokens."""
    row.refresh_from_db()
    end = row.events + 1
    appending.append(row, [user("go on"), model("d")], [ModelCall(at=end, response=end, prompt_tokens=tokens)])


def small() -> Session:
    return stored(session(user("a"), model("b"), window=100_000))


def due_now() -> None:
    past = timezone.now() - timedelta(seconds=1)
    Delivery.unscoped.filter(state="waiting").update(due=past)
    Webhook.unscoped.update(due=None)


def find(row: Session, known: int = 0) -> None:
    queue.run(arising.FIND, f"{row.pk} {known}")


def states() -> list[tuple[str, int]]:
    return list(Delivery.unscoped.order_by("created").values_list("state", "attempts"))


def test_an_occurrence_is_sent_once_however_long_it_lasts():
    row = small()
    with receiving() as receiver:
        hook, secret = hook_of(receiver.url)
        for _ in range(2):
            near(row)
            find(row)
            deliveries.send(str(hook.pk), LONG)
        near(row, 20_000)
        near(row, 96_000)
        find(row)
        deliveries.send(str(hook.pk), LONG)
    first, second = (message.data for message in receiver.messages)
    assert (first["type"], first["data"]["first_step"], first["data"]["last_step"]) == ("session.near_miss", 2, 2)
    assert second["data"]["first_step"] == 5
    assert first["data"]["path"] == row.get_absolute_url()
    assert "95,000 of 100,000 tokens" in first["data"]["sentence"]
    assert all(message.is_signed_with(secret) for message in receiver.messages)
    assert states() == [("delivered", 1), ("delivered", 1)]


def test_only_chosen_kinds_and_steps_that_are_new_are_sent():
    row = small()
    near(row)
    wanted, _ = hook_of("http://127.0.0.1:1/a", "near_miss overflow")
    hook_of("http://127.0.0.1:1/b", "loop")
    find(row, known=2)
    assert not Delivery.unscoped.exists()
    find(row, known=1)
    assert [(delivery.kind, delivery.webhook) for delivery in Delivery.unscoped.all()] == [("near_miss", wanted)]


def test_a_stream_and_an_import_that_extends_ask_for_a_look(bring, recording, agent_session):
    client, lines = Client(), lines_of(agent_session)
    assert send(client, "agent", 0, lines[:2]).status_code == 200
    assert not queue.entries(arising.FIND).exists()  # the project has no webhook
    hook_of("http://127.0.0.1:1/a")
    assert send(client, "agent", 2, lines[2:3]).status_code == 200
    assert send(client, "agent", 3, lines[3:4]).status_code == 200
    assert queue.entries(arising.FIND).count() == 1  # one look for both
    queue.entries(arising.FIND).delete()
    whole = recording.splitlines(keepends=True)
    first = bring(recording, "a.jsonl")
    assert first.state == "done"
    assert not queue.entries(arising.FIND).exists()  # what is over does not arise
    assert len(whole) > 2


def test_a_file_that_has_grown_sends_what_is_at_its_new_steps(bring):
    from guard_core.recordings.formats import native

    def chat(*tokens: int) -> bytes:
        events = [event for number in range(len(tokens)) for event in (user(f"q{number}"), model(f"a{number}"))]
        calls = [ModelCall(2 * n + 1, 2 * n + 1, prompt_tokens=count) for n, count in enumerate(tokens)]
        return native.write(session(*events, calls=tuple(calls), window=100_000, title="t"))

    hook_of("http://127.0.0.1:1/a")
    bring(chat(95_000, 20_000), "a.jsonl")
    assert not queue.entries(arising.FIND).exists()
    bring(chat(95_000, 20_000, 30_000), "a.jsonl")
    (entry,) = queue.entries(arising.FIND)
    queue.run(arising.FIND, queue.about(entry))
    assert not Delivery.unscoped.exists()  # the near miss was there before
    queue.entries(arising.FIND).delete()
    bring(chat(95_000, 20_000, 30_000, 97_000), "a.jsonl")
    (entry,) = queue.entries(arising.FIND)
    queue.run(arising.FIND, queue.about(entry))
    (delivery,) = Delivery.unscoped.all()
    assert (delivery.kind, delivery.first) == ("near_miss", 3)


def test_what_arose_while_no_worker_was_there_is_sent_once_each_in_its_order():
    row = small()
    with receiving() as receiver:
        hook, secret = hook_of(receiver.url)
        for tokens in (95_000, 20_000, 96_000, 20_000, 97_000):
            near(row, tokens)
        for _ in range(2):
            find(row, known=1)
            deliveries.send(str(hook.pk), LONG)
    assert [message.data["data"]["first_step"] for message in receiver.messages] == [2, 4, 6]
    assert all(message.is_signed_with(secret) for message in receiver.messages)


def test_a_look_whose_worker_died_or_failed_is_done_again_later_and_not_for_ever():
    row = small()
    hook_of("http://127.0.0.1:1/a")
    near(row)
    arising.ask(row, 1)
    (entry,) = queue.entries(arising.FIND)
    old = timezone.now() - arising.CLAIM - timedelta(seconds=5)
    for state in ("RUNNING", "FAILED"):
        queue.entries(arising.FIND).update(status=state, started_at=old, worker_ids=["a"])
        deliveries.resume()
        (entry,) = queue.entries(arising.FIND)
        assert entry.status == "READY"
        assert entry.run_after > timezone.now()
    queue.run(arising.FIND, queue.about(entry))
    assert Delivery.unscoped.count() == 1
    queue.entries(arising.FIND).update(status="RUNNING", started_at=timezone.now())
    deliveries.resume()  # it may live
    queue.entries(arising.FIND).filter(status="RUNNING").update(status="FAILED", worker_ids=["a"] * 9)
    deliveries.resume()
    assert not queue.entries(arising.FIND).filter(status="READY").exists()


def test_new_steps_and_the_look_at_them_are_one_transaction(agent_session):
    client, lines = Client(), lines_of(agent_session)
    hook_of("http://127.0.0.1:1/a")
    assert send(client, "agent", 0, lines[:2]).status_code == 200
    queue.entries(arising.FIND).delete()
    task_enqueued.connect(_no_space)
    try:
        assert send(client, "agent", 2, lines[2:4]).status_code == 507
    finally:
        task_enqueued.disconnect(_no_space)
    stream, row = Stream.unscoped.get(), Session.unscoped.get()
    assert (stream.received, stream.applied, row.events + row.calls) == (2, 2, 1)
    assert send(client, "agent", 2, lines[2:5]).status_code == 200
    assert Stream.unscoped.get().applied == 5
    (entry,) = queue.entries(arising.FIND)
    assert arising.known_in(entry) == 0


def _no_space(**_: object) -> None:
    raise OperationalError("database or disk is full")


def test_one_look_waits_for_the_earliest_of_the_steps_that_are_new():
    row = small()
    hook_of("http://127.0.0.1:1/a")
    for known in (4, 6, 2, 3):
        arising.ask(row, known)
    assert sorted(map(arising.known_in, queue.entries(arising.FIND))) == [2, 4]


def test_a_session_of_an_older_version_is_counted_again_and_looked_at():
    row = small()
    hook_of("http://127.0.0.1:1/a")
    near(row)
    data = SessionData.unscoped.get(session=row)
    columns = msgspec.msgpack.decode(decompressed(data.ledger))
    data.ledger = compressed(msgspec.msgpack.encode({**columns, "version": 1}))
    data.save()
    loading.forget(row)
    find(row, known=1)
    assert Delivery.unscoped.count() == 1


@pytest.mark.parametrize(("answer", "order"), [("error", [2, 2, 4, 6]), ("refused", [2, 4, 6, 2])])
def test_messages_keep_their_order_while_a_receiver_is_away_and_one_that_is_refused_goes_behind(answer, order):
    row = small()
    with receiving(answer, "ok") as receiver:
        hook, _ = hook_of(receiver.url)
        for tokens in (95_000, 20_000, 96_000, 20_000, 97_000):
            near(row, tokens)
            find(row, known=1)
        deliveries.send(str(hook.pk), LONG)
        for pause in deliveries.AGAIN[:2]:
            _pass(pause)
            deliveries.send(str(hook.pk), LONG)
    assert [message.data["data"]["first_step"] for message in receiver.messages] == order


def _pass(seconds: float) -> None:
    """Have so much time pass for what is due."""
    for rows in (Delivery.unscoped.filter(state="waiting"), Webhook.unscoped.exclude(due=None)):
        for row in rows:
            type(row).unscoped.filter(pk=row.pk).update(due=row.due - timedelta(seconds=seconds + 1))


@pytest.mark.parametrize("how", ["error", "reset", "redirect", "garbage", "nothing"])
def test_what_is_not_accepted_is_sent_again_later_under_the_same_id(how):
    with receiving(how, "ok") as receiver:
        hook, secret = hook_of(receiver.url)
        deliveries.write_test(hook)
        assert deliveries.send(str(hook.pk), LONG) == (0, 1)
        (row,) = Delivery.unscoped.all()
        assert (row.state, row.attempts) == ("waiting", 1)
        assert timedelta(0) < row.due - timezone.now() <= timedelta(seconds=deliveries.AGAIN[0])
        assert deliveries.send(str(hook.pk), LONG) == (0, 0)  # not before
        due_now()
        assert deliveries.send(str(hook.pk), LONG) == (1, 0)
    assert states() == [("delivered", 2)]
    assert {message.headers["webhook-id"] for message in receiver.messages} == {str(row.pk)}
    assert all(message.is_signed_with(secret) for message in receiver.messages)


def test_a_receiver_that_fails_is_left_alone_with_all_that_waits_for_it():
    with receiving("error") as receiver:
        hook, _ = hook_of(receiver.url)
        for _ in range(3):
            deliveries.write_test(hook)
        deliveries.send(str(hook.pk), LONG)
    assert len(receiver.messages) == 1
    assert states().count(("waiting", 0)) == 2
    latest = queue.entries(deliveries.SEND).order_by("-run_after").first()
    assert latest.run_after > timezone.now()


def test_a_message_that_is_never_accepted_is_given_up_and_the_others_are_sent():
    with receiving("error") as receiver:
        hook, _ = hook_of(receiver.url)
        deliveries.write_test(hook)
        pauses = []
        for _ in range(len(deliveries.AGAIN)):
            deliveries.send(str(hook.pk), LONG)
            pauses.append(round((Webhook.unscoped.get().due - timezone.now()).total_seconds(), -1))
            due_now()
        assert pauses == sorted(pauses)
        assert states() == [("waiting", 9)]
        deliveries.send(str(hook.pk), LONG)
        assert states() == [("failed", 10)]
        receiver.answers = ["ok"]
        due_now()
        deliveries.write_test(hook)
        deliveries.send(str(hook.pk), LONG)
    assert states() == [("failed", 10), ("delivered", 1)]
    assert Webhook.unscoped.get().failures == 0


def test_after_410_nothing_is_sent_any_more():
    row = small()
    near(row)
    with receiving("gone") as receiver:
        hook, _ = hook_of(receiver.url)
        deliveries.write_test(hook)
        deliveries.write_test(hook)
        deliveries.send(str(hook.pk), LONG)
        due_now()
        find(row)
        deliveries.send(str(hook.pk), LONG)
    assert len(receiver.messages) == 1
    assert "410 Gone" in Webhook.unscoped.get().stopped
    assert states() == [("failed", 1), ("failed", 0)]


def test_another_secret_key_ends_a_webhook_instead_of_signing_with_another_secret(settings):
    with receiving() as receiver:
        hook, _ = hook_of(receiver.url)
        deliveries.write_test(hook)
        settings.SECRET_KEY = "another key"
        deliveries.send(str(hook.pk), LONG)
    assert receiver.messages == []
    assert "secret key of this server has changed" in Webhook.unscoped.get().stopped


def test_one_worker_sends_to_a_webhook_and_what_a_dead_one_left_is_queued_again():
    with receiving() as receiver:
        hook, _ = hook_of(receiver.url)
        deliveries.write_test(hook)
        Webhook.unscoped.update(due=timezone.now() + deliveries.CLAIM)  # a worker has it
        assert deliveries.send(str(hook.pk), LONG) == (0, 0)
        queue.entries(deliveries.SEND).delete()
        deliveries.resume()
        assert not queue.entries(deliveries.SEND).exists()  # it may live
        due_now()
        deliveries.resume()
        deliveries.resume()
        (entry,) = queue.entries(deliveries.SEND)
        assert deliveries.send(queue.about(entry), LONG) == (1, 0)


def test_messages_that_are_over_are_forgotten_after_a_month():
    with receiving() as receiver:
        hook, _ = hook_of(receiver.url)
        deliveries.write_test(hook)
        deliveries.send(str(hook.pk), LONG)
        Delivery.unscoped.update(finished=timezone.now() - deliveries.KEPT - timedelta(hours=1))
        deliveries.write_test(hook)
        deliveries.send(str(hook.pk), LONG)
    assert states() == [("delivered", 1)]
