"""Error pages in the product's own words."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def plain(request: HttpRequest, status: int, title: str, sentence: str) -> HttpResponse:
    """A page that says in one sentence what is wrong; a fragment where htmx asked."""
    template = "inspector/_notice.html" if request.headers.get("HX-Request") else "error.html"
    return render(request, template, {"status": status, "title": title, "sentence": sentence}, status=status)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return plain(
        request, 400, "That request makes no sense here", "The address or the form holds something not allowed."
    )


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return plain(request, 403, "Not allowed", "This page was asked for in a way that is not allowed.")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    sentence = "The form came without its token. Open the page again and repeat what you did."
    return plain(request, 403, "Please open the page again", sentence)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return plain(
        request, 404, "There is nothing here", "The session may have been deleted, or the address is mistyped."
    )


def server_error(request: HttpRequest) -> HttpResponse:
    sentence = "An internal error occurred. Stored data is unharmed; details are in the server log."
    return plain(request, 500, "Something went wrong", sentence)
