"""Is it up, and is it fit to work: for a container's health check and for people."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from guard_core import __version__
from inspector.project.health import problems


@require_safe
def health(request: HttpRequest) -> JsonResponse:
    """200 and "ok", else 503 with every reason."""
    reasons = list(problems())
    if reasons:
        return JsonResponse({"status": "failing", "version": __version__, "reasons": reasons}, status=503)
    return JsonResponse({"status": "ok", "version": __version__})
