"""Is it up: the process answers, the database answers."""

from __future__ import annotations

from django.db import connection
from django.db.utils import Error
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from guard_core import __version__


@require_safe
def health(request: HttpRequest) -> JsonResponse:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            cursor.fetchone()
    except Error:
        return JsonResponse({"status": "the database does not answer", "version": __version__}, status=503)
    return JsonResponse({"status": "ok", "version": __version__})
