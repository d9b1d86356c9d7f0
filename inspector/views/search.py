"""Text search over all sessions and over one."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe


@require_safe
def search(request: HttpRequest) -> HttpResponse:
    return redirect("home")


@require_safe
def session_search(request: HttpRequest, pk: UUID) -> HttpResponse:
    return redirect("home")
