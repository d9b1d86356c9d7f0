"""A report as the answer to a request: a page without anything of the application around it."""

from __future__ import annotations

from collections.abc import Iterable

from csp.constants import NONE
from django.http import HttpRequest, HttpResponse

from guard_core.report.html import security_policy

BELOW = "/r/"  # of the addresses that tokens open
ROBOTS = "noindex, nofollow"
FORM = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'"
# A browser sends the origin of a form with it only where the page has a referrer: the check against forged requests
# needs it. Neither policy names the page to another site.
REFERRER, OF_A_FORM = "no-referrer", "same-origin"


def is_below(request: HttpRequest) -> bool:
    """Does a request ask for what a token opens."""
    return request.path.startswith(BELOW)


def report_answer(body: bytes, framed_by: Iterable[str] = ()) -> HttpResponse:
    """The one HTML file, under the policy that is in it. `framed_by`: origins whose pages may show it in a frame."""
    return alone(HttpResponse(body, content_type="text/html; charset=utf-8"), security_policy(), framed_by)


def alone(
    response: HttpResponse, policy: str, framed_by: Iterable[str] = (), *, referrer: str = REFERRER
) -> HttpResponse:
    """An answer that names no page it came from, is in no index, and is in no frame but of these origins' pages."""
    origins = " ".join(framed_by)
    response.headers["Content-Security-Policy"] = f"{policy}; frame-ancestors {origins or NONE}"
    if origins:
        response.xframe_options_exempt = True  # the older header knows no list
    response.headers["Referrer-Policy"] = referrer
    response.headers["X-Robots-Tag"] = ROBOTS
    response.headers["Cache-Control"] = "no-store"
    return response


def with_headers(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The response; below /r/ with the headers of reports, also where no view of theirs has made it."""
    is_made_by_them = response.headers.get("X-Robots-Tag") == ROBOTS
    return alone(response, FORM) if is_below(request) and not is_made_by_them else response
