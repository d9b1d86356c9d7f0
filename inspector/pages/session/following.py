"""What the pages of a followed session get at a new step: made once for all who ask for the same with the same rights.
Making it takes several times as long as finding it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.template.loader import render_to_string

from inspector.models import Session
from inspector.pages.shared import comments
from inspector.pages.shared.htmx import GROWN, wants_part
from inspector.pages.shared.project import project_of
from inspector.replays.analysis import key_of
from inspector.replays.choice import Choice
from inspector.storage.byte_cache import ByteCache

SECONDS = 1.0  # for which it is kept: viewers of a growing session ask within one pause between two steps of each other
CACHE_BYTES = 4_000_000  # about 50 of them
# They mark where each viewer gets what is its own. No text of a session holds them.
TOKEN, COMMENTS = (f"[{secrets.token_hex()}]" for _ in range(2))


@dataclass(frozen=True)
class SharedHtml:
    """HTML, and what of it is made for each viewer, by what marks its place."""

    html: str
    own: dict[str, Callable[[HttpRequest], str]] = field(default_factory=dict)


def followed(
    request: HttpRequest, session_id: UUID, make: Callable[[HttpRequest, UUID], SharedHtml]
) -> HttpResponse | None:
    """The answer to a page that asks for what has grown; None for any other, and where a session is not there or has
    no steps."""
    if not wants_part(request, GROWN):
        return None
    row = Session.objects.of(project_of(request)).filter(pk=session_id, deleted=None).first()
    if row is None or not row.calls:
        return None
    membership, program = getattr(request, "membership", None), getattr(request, "key", None)
    rights = (membership and membership.role, program and program.pk)
    commented = frozenset(comments.counts(row).items())
    key = (key_of(row, Choice()), request.get_full_path(), rights, commented, int(time.monotonic() / SECONDS))
    parts = _cache.get(key, partial(make, request, session_id))
    html = parts.html.replace(TOKEN, get_token(request))
    for place, own in parts.own.items():
        html = html.replace(place, own(request))
    return HttpResponse(html)


def rendered(template: str, context: dict[str, object], request: HttpRequest) -> str:
    """The HTML of a template, in which TOKEN marks the token of whoever gets it."""
    return render_to_string(template, {**context, "csrf_token": TOKEN}, request)


_cache: ByteCache[SharedHtml] = ByteCache(CACHE_BYTES, lambda parts: len(parts.html))
