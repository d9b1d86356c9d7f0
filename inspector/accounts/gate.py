"""The gate that every request of team mode passes: who asks, about which project, and whether it may."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode, urlsplit

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.deprecation import MiddlewareMixin

from inspector.accounts import access, limits
from inspector.accounts.access import AddressRule, Caller
from inspector.pages.errors.views import plain

UNKNOWN, FORBIDDEN, TOO_MANY = 401, 403, 429


class Gate(MiddlewareMixin):
    """Sets `request.project`, `account`, `membership` and `key`, or answers in the view's place.

    It comes before the check of forms' tokens: a request with a key brings no cookie that counts, so it needs none.
    """

    def process_view(self, request: Any, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        """None where the view may answer. Raises Http404 for an address without a rule."""
        rule = access.rule_of(request.resolver_match.view_name or "")
        if rule is None:
            raise Http404("This address has no access rule.")
        method = request.method or "GET"
        if (rule.look if method in access.SAFE else rule.change) == access.ANYONE:
            return None
        caller = access.caller_of(request)
        request.account, request.membership, request.key = caller
        request.project = caller.project
        if caller.key is not None:
            request._dont_enforce_csrf_checks = True
        if access.may(caller, rule, method):
            return None if method in access.SAFE else _limited(request, caller)
        return _refused(request, caller, rule)


def _limited(request: HttpRequest, caller: Caller) -> HttpResponse | None:
    """None, or the answer to one that has sent too many changes in ten seconds."""
    refused = limits.spend_change(caller)
    return None if refused is None else too_many(request, *refused)


def too_many(request: HttpRequest, reason: str, wait: int) -> HttpResponse:
    """429, with the seconds to wait in words and in the header."""
    response = _refusal(request, TOO_MANY, "Too many requests", f"{reason} Try again in {wait:,} seconds.")
    response.headers["Retry-After"] = str(wait)
    return response


def _refused(request: HttpRequest, caller: Caller, rule: AddressRule) -> HttpResponse:
    if not caller.is_known:
        return _unknown(request)
    if caller.key is not None:
        return _refusal(request, FORBIDDEN, "Not allowed", "This key lacks the scope that this address requires.")
    if caller.membership is None:
        sentence = "Your account is not in any project yet: ask an owner to invite you, or create your own."
        return _refusal(request, FORBIDDEN, "No project", sentence)
    needed = rule.look if request.method in access.SAFE else rule.change
    name, role = caller.membership.project.name, caller.membership.role
    sentence = f"In {name} you are {role}, and this needs the role {needed}. An owner can change your role."
    return _refusal(request, FORBIDDEN, "Not allowed", sentence)


def _unknown(request: HttpRequest) -> HttpResponse:
    """A page leads to the form of the login, and from there back; a program gets an error."""
    if "Authorization" in request.headers:
        return _refusal(request, UNKNOWN, "Not allowed", "This key is unknown, revoked or expired.")
    login = reverse("login")
    if request.headers.get("HX-Request"):
        response = HttpResponse(status=UNKNOWN)
        response.headers["HX-Redirect"] = _with_next(login, urlsplit(request.headers.get("HX-Current-URL", "")).path)
        return response
    if _wants_json(request) or request.method not in access.SAFE:
        return _refusal(request, UNKNOWN, "Sign in", "Sign in first, or send a key (Authorization: Bearer …).")
    return redirect(_with_next(login, request.get_full_path()))


def _with_next(login: str, path: str) -> str:
    return f"{login}?{urlencode({'next': path})}" if path.startswith("/") and path != "/" else login


def _refusal(request: HttpRequest, status: int, title: str, sentence: str) -> HttpResponse:
    if _wants_json(request):
        response: HttpResponse = JsonResponse({"error": sentence}, status=status)
    else:
        response = plain(request, status, title, sentence)
    if status == UNKNOWN:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _wants_json(request: HttpRequest) -> bool:
    is_program = "Authorization" in request.headers or request.path.startswith("/api/")
    return is_program or "application/json" in request.headers.get("Accept", "")
