"""The ways in which running agents send their sessions to this server."""

from __future__ import annotations

import shlex

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from inspector.beside.keeping import this_command
from inspector.pages.connect.presenter import ways
from inspector.watching.offered import is_offered

INSTALLED = "compaction-inspector"


@require_safe
def connect(request: HttpRequest) -> HttpResponse:
    """Each way with the lines that it takes: under the address by which the page was asked for, and in local mode with
    the command as it runs on this machine."""
    origin = request.build_absolute_uri("/").rstrip("/")
    command = shlex.join(this_command()) if is_offered() else INSTALLED
    context = {"ways": ways(origin, command, has_keys=settings.TEAM), "can_watch": is_offered(), "team": settings.TEAM}
    return render(request, "inspector/connect/index.html", context)
