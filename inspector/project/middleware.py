"""Headers of every answer: nothing sniffed, embedded or kept; fragments are never served as pages. The answers that no
view gives by itself. And the project of a request."""

from __future__ import annotations

import codecs
import logging
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers
from django.utils.decorators import sync_and_async_middleware, sync_only_middleware
from django.utils.functional import SimpleLazyObject

from inspector.models import default_project
from inspector.pages.errors.views import method_refused, plain, troubled
from inspector.pages.recounting.views import page_recounting
from inspector.pages.replay.views import loaded_anew, progress_page
from inspector.pages.shared.reports import with_headers
from inspector.project.metrics import REQUESTS
from inspector.project.trouble import trouble_of
from inspector.replays.analysis import ReplayUnderWay
from inspector.storage.loading import Outdated

log = logging.getLogger(__name__)

NOT_ALLOWED = 405  # HTTP status: Method Not Allowed
UNSUPPORTED = 415  # the same: Unsupported Media Type
# What forms and programs send, by the names of Python's codecs. Others read escapes and byte orders into plain letters
# (unicode_escape, utf-7, utf-16), or are not encodings of text at all (rot13), with which Django fails.
WEB_ENCODINGS = frozenset({"utf-8", "ascii", "iso8859-1", "cp1252"})


class RequestHeaders:
    """Adds the headers that Django's own middleware does not know."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponse | Awaitable[HttpResponse]:
        if self.is_async:
            return self._later(request)
        begin = perf_counter()
        return counted(request, begin, dressed(request, loaded_anew(request, self.get_response(request))))

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """What a view cannot answer by itself; None for a mistake of ours."""
        if isinstance(exception, ReplayUnderWay):
            return progress_page(request, exception.replay)
        if isinstance(exception, Outdated):
            return page_recounting(request, exception.session_id)
        if (trouble := trouble_of(exception)) is not None:
            log.warning("%s %s: %s", request.method, request.path, exception)
            return troubled(request, trouble)
        return None

    async def _later(self, request: HttpRequest) -> HttpResponse:
        """The same where the views are awaited; `__call__` serves plain ones, too, so it is no coroutine."""
        begin = perf_counter()
        return counted(request, begin, dressed(request, loaded_anew(request, await self.get_response(request))))


def counted(request: HttpRequest, begin: float, response: HttpResponse) -> HttpResponse:
    """The response, which is counted for the metrics."""
    view = request.resolver_match.view_name if request.resolver_match else ""
    REQUESTS.count(view, response.status_code, perf_counter() - begin)
    return response


@sync_and_async_middleware
def readable(get_response: Any) -> Any:
    """Answers 415 to a request that names an encoding in which nothing on the web is written, before it is decoded."""
    if iscoroutinefunction(get_response):

        async def answer_later(request: HttpRequest) -> Any:
            return unreadable(request) or await get_response(request)

        return answer_later

    def answer(request: HttpRequest) -> Any:
        return unreadable(request) or get_response(request)

    return answer


def unreadable(request: HttpRequest) -> HttpResponse | None:
    """The answer to a request in an encoding that is not read. None where it can be read, or names no encoding that
    Python knows: Django then takes UTF-8."""
    charset = (request.content_params or {}).get("charset", "")
    try:
        is_read = codecs.lookup(charset).name in WEB_ENCODINGS
    except (LookupError, ValueError):
        return None
    if is_read:
        return None
    sentence = "The request names an encoding that is not read here. Send it in UTF-8."
    return plain(request, UNSUPPORTED, "Unknown encoding", sentence)


@sync_and_async_middleware
def current_project(get_response: Any) -> Any:
    """Sets `request.project`, whose rows alone a page shows and changes: in local mode the default one. It is looked up
    when it is first used; a file of the program needs no database."""
    if iscoroutinefunction(get_response):

        async def answer_later(request: Any) -> Any:
            request.project = SimpleLazyObject(default_project)
            return await get_response(request)

        return answer_later

    def answer(request: Any) -> Any:
        request.project = SimpleLazyObject(default_project)
        return get_response(request)

    return answer


def dressed(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The response with our headers; session data is never kept by a cache, static files are."""
    if response.status_code == NOT_ALLOWED:
        response = method_refused(request, response)
    response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
    response.headers.setdefault("X-Robots-Tag", "noindex")
    if not request.path.startswith("/static/"):
        response.headers.setdefault("Cache-Control", "no-store")
        patch_vary_headers(response, ["HX-Request"])
    return with_headers(request, response)


@sync_only_middleware
def in_one_thread(get_response: Any) -> Any:
    """Has what lies between the static files and the view run in the thread of the request in one go. Otherwise Django
    passes the request from the event loop to that thread and back up to twice for each, a third of what a short one
    costs."""
    return lambda request: get_response(request)
