"""The webhooks of a project for its owners: add, test, remove, and what was sent last."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from guard_core.findings.arising import LOOP, NEAR_MISS, OVERFLOW
from inspector.accounts import audit
from inspector.models import Delivery, Webhook
from inspector.pages.shared.kinds import kind_name
from inspector.pages.shared.project import project_of
from inspector.webhooks import signing
from inspector.webhooks.addresses import MOST_CHARS, AddressNotAllowed, target_of
from inspector.webhooks.deliveries import TEST, last, write_test

KINDS = (NEAR_MISS, OVERFLOW, LOOP)
MOST_WEBHOOKS = 10  # of a project
SHOWN_MESSAGES = 10  # of a webhook, the latest
STATES = {
    Delivery.State.WAITING: ("waiting", "warn"),
    Delivery.State.DELIVERED: ("delivered", "ok"),
    Delivery.State.FAILED: ("failed", "error"),
}


class DeliveryRow(NamedTuple):
    """One message as the page lists it."""

    row: Delivery
    name: str
    state: str
    level: str


class Hook(NamedTuple):
    """One webhook with its last messages."""

    row: Webhook
    kinds: str
    messages: list[DeliveryRow]


@require_safe
def webhooks(request: HttpRequest) -> HttpResponse:
    """The webhooks with their last messages."""
    return _page(request)


@require_POST
def webhook_add(request: HttpRequest) -> HttpResponse:
    """Add an address; this one answer has its secret."""
    url = request.POST.get("url", "").strip()
    kinds = [kind for kind in KINDS if kind in request.POST.getlist("kind")]
    try:
        target_of(url)
    except AddressNotAllowed as error:
        return _refused(request, url, kinds, str(error))
    if not kinds:
        return _refused(request, url, kinds, "Choose at least one kind of message.")
    project, secret = project_of(request), signing.new_secret()
    with transaction.atomic():
        mine = Webhook.objects.of(project)
        if mine.filter(url=url).exists():
            return _refused(request, url, kinds, "This address is already a webhook of the project.")
        if mine.count() >= MOST_WEBHOOKS:
            return _refused(request, url, kinds, f"A project has at most {MOST_WEBHOOKS} webhooks.")
        row = mine.create(
            url=url,
            kinds=" ".join(kinds),
            salt=secret.salt,
            secret_digest=secret.digest,
            made_by=audit.actor_of(request)[:100],
        )
    audit.note(request, "webhook added", row.url)
    return _page(request, {"secret": secret.text, "secret_url": row.url})


@require_POST
def webhook_test(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Queue a message that says that it is a test."""
    row = get_object_or_404(Webhook.objects.of(project_of(request)), pk=pk)
    if not row.stopped:
        write_test(row)
    return redirect("webhooks")


@require_POST
def webhook_remove(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Remove an address with its messages; what waits is not sent."""
    row = get_object_or_404(Webhook.objects.of(project_of(request)), pk=pk)
    row.delete()
    audit.note(request, "webhook removed", row.url)
    return redirect("webhooks")


def _refused(request: HttpRequest, url: str, kinds: list[str], error: str) -> HttpResponse:
    return _page(request, {"typed": url[:MOST_CHARS], "chosen": kinds, "error": error}, 422)


def _page(request: HttpRequest, more: dict[str, Any] | None = None, status: int = 200) -> HttpResponse:
    project = project_of(request)
    context = {
        "hooks": [_hook(row) for row in Webhook.objects.of(project).order_by("created")],
        "kinds": [(kind, kind_name(kind)) for kind in KINDS],
        "chosen": list(KINDS),
        "hosts": settings.WEBHOOK_HOSTS,
        "networks": settings.WEBHOOK_NETWORKS,
        "most_chars": MOST_CHARS,
        **(more or {}),
    }
    return render(request, "inspector/webhooks/page.html", context, status=status)


def _hook(row: Webhook) -> Hook:
    kinds = ", ".join(map(kind_name, row.kinds.split()))
    messages = [
        DeliveryRow(item, "test" if item.kind == TEST else kind_name(item.kind), *STATES[Delivery.State(item.state)])
        for item in last(row, SHOWN_MESSAGES)
    ]
    return Hook(row, kinds, messages)
