"""What a token opens. Unknown, revoked, expired and deleted shares have one and the same answer."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_http_methods, require_safe

from inspector.accounts import audit
from inspector.models import Share
from inspector.pages.shared.attachments import sandboxed
from inspector.pages.shared.reports import FORM, OF_A_FORM, alone, report_answer
from inspector.sharing import publishing
from inspector.sharing.making import NAMES

KINDS = {
    "report.html": "text/html; charset=utf-8",
    "report.json": "application/json",
    "report.csv": "text/csv; charset=utf-8",
    "report.md": "text/markdown; charset=utf-8",
    "badge.svg": "image/svg+xml",
}
COOKIE, COOKIE_SECONDS = "report", 3_600
NOTHING = "default-src 'none'"


@require_http_methods(["GET", "HEAD", "POST"])
def report(request: HttpRequest, token: str) -> HttpResponse:
    """The report; before it the question for the password, where it has one."""
    share = publishing.opened_by(token)
    if share is None:
        return _unusable_link(request)
    if request.method == "POST":
        return _asked(request, share, token)
    if not _may_read(request, share):
        return _question(request)
    body = publishing.file_of(share, NAMES[0], is_view=request.method == "GET")
    if body is not None and request.method == "GET":
        audit.note(request, "share opened", share.pk, share.project_id)
    return _unusable_link(request) if body is None else report_answer(body, settings.EMBED_ORIGINS)


@require_safe
def report_file(request: HttpRequest, token: str, name: str) -> HttpResponse:
    """One form of the report as a file; a badge is a picture."""
    share = publishing.opened_by(token)
    if share is None or name not in KINDS or not _may_read(request, share):
        return _unusable_link(request)
    body = publishing.file_of(share, name, is_view=False)
    if body is None:
        return _unusable_link(request)
    response = alone(HttpResponse(body, content_type=KINDS[name]), NOTHING)
    if name == "badge.svg":
        response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"  # a README on another host shows it
        return response
    response.headers["Content-Disposition"] = f'attachment; filename="compaction-{name}"'
    return sandboxed(response)


def _may_read(request: HttpRequest, share: Share) -> bool:
    if not share.password:
        return True
    given = request.get_signed_cookie(COOKIE, default="", max_age=COOKIE_SECONDS)
    return constant_time_compare(str(given), publishing.proof_of(share))


def _asked(request: HttpRequest, share: Share, token: str) -> HttpResponse:
    """The answer to a typed password."""
    if not share.password:
        return redirect(reverse("report", args=[token]))
    if publishing.is_paused(share):
        response = _question(request, "Too many wrong passwords. Try again in five minutes.", 429)
        response.headers["Retry-After"] = str(int(publishing.PAUSE.total_seconds()))
        return response
    if not publishing.is_password(share, request.POST.get("password", "")[:1_000]):
        return _question(request, "This is not the password.", 403)
    response = alone(redirect(reverse("report", args=[token])), NOTHING)
    path = reverse("report", args=[token])
    response.set_signed_cookie(
        COOKIE,
        publishing.proof_of(share),
        max_age=COOKIE_SECONDS,
        path=path,
        httponly=True,
        samesite="Strict",
        secure=request.is_secure(),
    )
    return response


def _question(request: HttpRequest, error: str = "", status: int = 200) -> HttpResponse:
    page = render(request, "inspector/report/password.html", {"error": error}, status=status)
    return alone(page, FORM, referrer=OF_A_FORM)


def _unusable_link(request: HttpRequest) -> HttpResponse:
    return alone(render(request, "inspector/report/gone.html", status=404), FORM)
