"""A page and its parts share URL, view and context; only the template differs."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django_htmx.middleware import HtmxDetails

GROWN = "grown"  # what js/grown.js asks a page of a session for: its parts that a new step changes


def wants_part(request: HttpRequest, target: str) -> bool:
    """Does htmx ask for the element with this id, and not for a whole page to restore."""
    htmx: HtmxDetails | None = getattr(request, "htmx", None)
    return htmx is not None and bool(htmx) and not htmx.history_restore_request and htmx.target == target


def render_part(
    request: HttpRequest, target: str, part: str, page: str, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    """The part where htmx asked for it, else the page that includes it."""
    template = part if wants_part(request, target) else page
    return render(request, template, context, status=status)
