"""Is it up, is it fit to work, may it be sent requests, and what does it do: for machines that watch over it."""

from __future__ import annotations

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe

from guard_core import __version__
from inspector.accounts import keys
from inspector.project import metrics as measured
from inspector.project.checks import is_for_this_machine
from inspector.project.health import problems, unready


@require_safe
def health(request: HttpRequest) -> JsonResponse:
    """200 and "ok", else 503 with every reason."""
    return _answer(list(problems()))


@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """200 where requests can be answered: the database does, and is of this version. Workers may be away."""
    return _answer(list(unready()))


def _answer(reasons: list[dict[str, str]]) -> JsonResponse:
    if reasons:
        return JsonResponse({"status": "failing", "version": __version__, "reasons": reasons}, status=503)
    return JsonResponse({"status": "ok", "version": __version__})


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Metrics for Prometheus, for whoever sends METRICS_TOKEN. Without that setting they are for this machine alone."""
    token = settings.METRICS_TOKEN
    if token and not constant_time_compare(keys.given(request.headers) or "", token):
        response = HttpResponse("Send METRICS_TOKEN: Authorization: Bearer …\n", "text/plain", status=401)
        response.headers["WWW-Authenticate"] = "Bearer"
        return response
    if not token and (settings.TEAM or not is_for_this_machine()):
        raise Http404("Metrics need METRICS_TOKEN here.")
    return HttpResponse(measured.page(), content_type=measured.CONTENT_TYPE)
