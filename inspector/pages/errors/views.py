"""Error pages in the product's own words."""

from __future__ import annotations

import sys
from urllib.parse import urlsplit, urlunsplit

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme

from inspector.pages.shared.reports import is_below
from inspector.project.trouble import UNAVAILABLE, Trouble, trouble_of

RETRY_SECONDS = "5"
APIS = ("/api/", "/v1/")  # addresses that programs ask, whose log then has the sentence and no page


def plain(request: HttpRequest, status: int, title: str, sentence: str, back: str = "") -> HttpResponse:
    """A page that says in one sentence what is wrong; a fragment where htmx asked. Below /r/ it is bare. `back` is the
    address that it leads back to; of a form that was refused, the page that has the form. A program gets the sentence
    as JSON."""
    if _is_program(request):
        return JsonResponse({"error": sentence}, status=status)
    template = "inspector/report/error.html" if is_below(request) else "error.html"
    if request.headers.get("HX-Request"):
        template = "inspector/_notice.html"
    context = {"status": status, "title": title, "sentence": sentence, "back": back or _page_of_the_form(request)}
    return render(request, template, context, status=status)


def _is_program(request: HttpRequest) -> bool:
    return request.path.startswith(APIS) or "application/json" in request.headers.get("Accept", "")


def _page_of_the_form(request: HttpRequest) -> str:
    """Where a form was sent from, if that is a page of this server; "" where it is not known. The address that answers
    is none: what it shows to a GET need not be a page."""
    page = request.headers.get("Referer", "") if request.method == "POST" else ""
    try:
        is_ours = url_has_allowed_host_and_scheme(page, {request.get_host()}, require_https=request.is_secure())
        parts = urlsplit(page)
    except (DisallowedHost, ValueError):
        return ""
    is_other = parts.path.startswith("/") and not parts.path.startswith("//") and parts.path != request.path
    return urlunsplit(("", "", parts.path, parts.query, "")) if is_ours and is_other else ""


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """400: what Django itself refuses, such as a broken form."""
    return plain(request, 400, "Invalid request", "The address or the form contains a value that is not allowed.")


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """403, wherever a view raises PermissionDenied."""
    return plain(request, 403, "Not allowed", "This request is not allowed.")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403 for a form without the token that its page had."""
    sentence = "The form's security token was missing or is not valid. Open the page again and repeat what you did."
    return plain(request, 403, "Open the page again", sentence)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """404, wherever a view or the routing raises Http404."""
    if request.path.startswith(APIS):
        sentence = (
            "Nothing is at this address. The API is described at /api/v1/openapi.json; spans go to /v1/traces, log "
            "records to /v1/logs."
        )
        return plain(request, 404, "Nothing here", sentence)
    if request.method == "POST":
        return plain(
            request, 404, "No longer here", "What you wanted to change may have been deleted in another window."
        )
    return plain(request, 404, "Page not found", "It may have been deleted, or the address is mistyped.")


def method_refused(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """405, from the answer that names the methods which are allowed (`Allow`); a program gets a sentence as JSON."""
    if not request.path.startswith(APIS):
        return response
    allowed = ", ".join(sorted(filter(None, response.headers.get("Allow", "").split(", "))))
    sentence = f"{str(request.method)[:20]} is not a method of this address; allowed: {allowed}."
    answer = JsonResponse({"error": sentence})
    response.content, response.headers["Allow"] = answer.content, allowed  # its other headers stay
    response.headers["Content-Type"] = answer.headers["Content-Type"]
    return response


def server_error(request: HttpRequest) -> HttpResponse:
    """The last answer. What went wrong while the body was read, before any view, comes here as well."""
    trouble = trouble_of(sys.exception())
    if trouble is not None:
        return troubled(request, trouble)
    sentence = "An internal error occurred. Stored data is unaffected; see the server log."
    return plain(request, 500, "Something went wrong", sentence)


def troubled(request: HttpRequest, trouble: Trouble) -> HttpResponse:
    """A full disk or a locked database, in words; as JSON where a script asked."""
    response: HttpResponse
    if _is_program(request):
        response = JsonResponse({"error": trouble.words}, status=trouble.status)
    else:
        response = plain(request, trouble.status, trouble.title, trouble.sentence)
    if trouble.status == UNAVAILABLE:
        response["Retry-After"] = RETRY_SECONDS
    return response
