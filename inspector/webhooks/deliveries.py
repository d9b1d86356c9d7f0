"""Messages to webhooks: written when something arises, sent by a worker until they are accepted or given up.

    arising.ask ──► find_alerts job: what is new in a session ──► Delivery rows, one of each occurrence
                                                             └─► send_webhook job per webhook ──► posting.post

Messages of a webhook are sent in the order in which they were written; one that its receiver refuses (a status of 4xx)
goes behind the others. A message is sent at least once: a worker that is killed between an answer and its note sends it
again, under the same id. A receiver that fails is left alone for longer and longer, with all that waits for it, so that
it delays no other.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any, NamedTuple

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now
from django.utils import timezone

from guard_core.findings.arising import Alert
from inspector.jobs import queue
from inspector.jobs.heartbeats import alive
from inspector.models import Delivery, Session, Webhook
from inspector.storage.alerts import occurrences_of
from inspector.webhooks import arising, signing
from inspector.webhooks.posting import GONE, TOTAL_SECONDS, post

SEND = "send_webhook"
PRIORITY = -10  # below imports, whose pages are waited for
TEST = "test"
# Seconds after each attempt that failed: the example of Standard Webhooks 1.0.0, over three days.
AGAIN = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
CLAIM = timedelta(seconds=60)  # in which a worker that lives has noted what became of a message
SLICE_SECONDS = 5.0  # then other jobs go first
KEPT = timedelta(days=30)  # messages that are over
AGENT = "compaction-inspector"


class DeliveryCounts(NamedTuple):
    """What a worker did for a webhook."""

    delivered: int
    failed: int


def find(about: str) -> None:
    """The job: write a message for each occurrence in a session that is new, the first one first. `about` is as
    `arising.ask` writes it."""
    key, _, known = about.partition(" ")
    session = Session.unscoped.filter(pk=key, deleted=None).first()
    if session is None:
        return
    hooks = Webhook.unscoped.filter(project=session.project_id, stopped="")
    for alert in occurrences_of(session, int(known or 0)):
        for hook in hooks:
            if alert.finding.kind in hook.kinds.split():
                _write(hook, session, alert)


def write_test(hook: Webhook) -> Delivery:
    """Queue a message that says only that it is a test."""
    with transaction.atomic():
        row = Delivery.objects.of(hook.project_id).create(
            webhook=hook, kind=TEST, body=_body("compaction_inspector.test", {"webhook": str(hook.pk)}), due=Now()
        )
        Webhook.objects.row(hook).update(due=None)  # a person waits for the answer
        enqueue(hook)
    return row


def enqueue(hook: Webhook) -> None:
    """Queue the sending to a webhook, where no job for it waits for this moment."""
    waiting = queue.entries(SEND).filter(args_kwargs__args__0=str(hook.pk), status="READY", run_after__lte=Now())
    if not waiting.exists():
        queue.enqueue(SEND, str(hook.pk), priority=PRIORITY)


def send(hook_id: str, seconds: float = TOTAL_SECONDS) -> DeliveryCounts:
    """The job: send what is due to a webhook, for a slice of time. Does nothing while another worker does.

    `seconds`: how long a receiver is waited for."""
    hooks = Webhook.unscoped.filter(pk=hook_id, stopped="")
    if not hooks.filter(Q(due=None) | Q(due__lte=Now())).update(due=Now() + CLAIM):
        return DeliveryCounts(0, 0)
    hook, delivered, failed, end = hooks.get(), 0, 0, time.monotonic() + SLICE_SECONDS
    while (row := _next(hook)) is not None and time.monotonic() < end:
        if not _attempt(hook, row, seconds):
            failed += 1
            break
        delivered += 1
    if not failed:
        hooks.update(due=None)
    Delivery.unscoped.filter(webhook=hook, finished__lt=Now() - KEPT).delete()
    waiting = Delivery.unscoped.filter(webhook__pk=hook_id, state=Delivery.State.WAITING).order_by("due")
    rest, due = hooks.first(), waiting.values_list("due", flat=True).first()
    if rest is not None and due is not None:  # what is left is sent when it is due
        queue.enqueue(SEND, hook_id, priority=PRIORITY, run_after=max(due, rest.due or due))
    return DeliveryCounts(delivered, failed)


def resume() -> None:
    """Queue the looks that dead workers left, and the webhooks for which a message is due and no job waits."""
    arising.resume()
    due = Delivery.unscoped.filter(webhook=OuterRef("pk"), state=Delivery.State.WAITING, due__lte=Now())
    hooks = Webhook.unscoped.filter(Exists(due), Q(due=None) | Q(due__lte=Now()), stopped="")
    for hook in hooks[:100]:
        if not queue.entries(SEND).filter(alive(CLAIM), args_kwargs__args__0=str(hook.pk)).exists():
            queue.enqueue(SEND, str(hook.pk), priority=PRIORITY)


def _write(hook: Webhook, session: Session, alert: Alert) -> None:
    finding = alert.finding
    data = {
        "session": str(session.pk),
        "path": session.get_absolute_url(),
        "kind": finding.kind,
        "severity": finding.severity,
        "first_step": alert.first + 1,  # counted from 1, as on pages
        "last_step": alert.last + 1,
        "sentence": finding.sentence,
    }
    if settings.PUBLIC_URL:
        data["url"] = settings.PUBLIC_URL.rstrip("/") + session.get_absolute_url()
    values = {"body": _body(f"session.{finding.kind}", data), "due": Now()}
    mine = {"webhook": hook, "session": session, "kind": finding.kind, "first": alert.first}
    with transaction.atomic():
        _, is_new = Delivery.objects.of(hook.project_id).get_or_create(**mine, defaults=values)
        if is_new:
            enqueue(hook)


def _body(kind: str, data: dict[str, Any]) -> str:
    return msgspec.json.encode({"type": kind, "timestamp": timezone.now().isoformat(), "data": data}).decode()


def _next(hook: Webhook) -> Delivery | None:
    """The message to be sent next: the oldest that is due."""
    rows = Delivery.unscoped.filter(webhook=hook, state=Delivery.State.WAITING, due__lte=Now())
    return rows.order_by("created", "first").first()


def _attempt(hook: Webhook, row: Delivery, seconds: float) -> bool:
    """Send one message and note what became of it; False where the receiver is to be left alone."""
    secret = signing.secret_of(hook.salt)
    mine, hooks = Delivery.unscoped.filter(pk=row.pk), Webhook.unscoped.filter(pk=hook.pk)
    if secret.digest != hook.secret_digest:
        return _stop(hook, "The secret key of this server has changed, and with it this secret. Add the address again.")
    body = row.body.encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": AGENT,
        **signing.headers(secret, str(row.pk), int(time.time()), body),
    }
    outcome = post(hook.url, headers, body, seconds)
    noted = {"attempts": F("attempts") + 1, "answer": outcome.words[:200]}
    if outcome.is_success:
        mine.update(state=Delivery.State.DELIVERED, finished=Now(), **noted)
        hooks.update(failures=0, due=Now() + CLAIM)
        hook.failures = 0
        return True
    if outcome.status == GONE:
        mine.update(state=Delivery.State.FAILED, finished=Now(), **noted)
        return _stop(hook, "The receiver answered 410 Gone: it wants no more messages.")
    pause = AGAIN[min(hook.failures, len(AGAIN) - 1)]
    if row.attempts >= len(AGAIN):
        mine.update(state=Delivery.State.FAILED, finished=Now(), **noted)
    elif outcome.is_refusal:  # of this message, perhaps: the others are tried before it is sent again
        mine.update(due=Now() + timedelta(seconds=AGAIN[min(row.attempts + 1, len(AGAIN) - 1)]), **noted)
    else:  # the order stays: it goes first again when the receiver is tried
        mine.update(due=Now() + timedelta(seconds=min(pause, AGAIN[row.attempts])), **noted)
    hooks.update(failures=F("failures") + 1, due=Now() + timedelta(seconds=pause))
    return False


def _stop(hook: Webhook, why: str) -> bool:
    """Send nothing to this webhook any more; what waits is given up."""
    Webhook.unscoped.filter(pk=hook.pk).update(stopped=why, due=None)
    waiting = Delivery.unscoped.filter(webhook=hook, state=Delivery.State.WAITING)
    waiting.update(state=Delivery.State.FAILED, finished=Now(), answer="Not sent: the webhook has ended.")
    return False


def last(hook: Webhook, count: int) -> list[Delivery]:
    """The last messages of a webhook, the newest first."""
    return list(hook.deliveries.order_by("-created")[:count])
