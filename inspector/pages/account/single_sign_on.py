"""Signing in at an OpenID provider: there, back, and out. What the browser keeps in between is one signed cookie, so
that a visitor who never comes back leaves nothing here."""

from __future__ import annotations

import logging
from typing import Any

from django.conf import settings
from django.contrib.auth import login
from django.core import signing
from django.db import IntegrityError, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import Resolver404, resolve, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_GET

from inspector.accounts import audit, identities, invitations, limits, memberships, oidc
from inspector.accounts.oidc import Begun, Person, SignInFailed
from inspector.models import Account, Invitation, default_project
from inspector.pages.account.views import PASSWORDS, VIA_PROVIDER

log = logging.getLogger(__name__)

COOKIE = f"{settings.COOKIES}_sso"
SALT = "inspector.single-sign-on"
THERE_SECONDS = 600  # that a person may be at the provider
LONGEST_PLACE = 1000  # characters of the address that was asked for


@require_GET
def begin(request: HttpRequest) -> HttpResponse:
    """Send the browser to the provider."""
    _check_on()
    try:
        address, begun = oidc.begin(_back(request))
    except SignInFailed as failed:
        return _failed(request, failed)
    place = request.GET.get("next", "")  # where the browser goes afterwards; "" for the first page
    is_ours = url_has_allowed_host_and_scheme(place, {request.get_host()}, require_https=request.is_secure())
    place = place if is_ours and len(place) <= LONGEST_PLACE else ""
    response = redirect(address)
    response.set_cookie(
        COOKIE,
        signing.dumps([*begun, place], salt=SALT),
        max_age=THERE_SECONDS,
        secure=settings.SECURE,
        httponly=True,
        samesite="Lax",
    )
    return response


@require_GET
def done(request: HttpRequest) -> HttpResponse:
    """The provider has sent the browser back: sign in whom it names."""
    _check_on()
    try:
        begun, place = _from_cookie(request)
        if wait := limits.spend(limits.SIGN_IN_ADDRESS, audit.address_of(request)):
            raise SignInFailed("too many tries", f"Too many attempts. Try again in {wait:,} seconds.", 429)
        person = oidc.finish(begun, request.GET.dict(), _back(request))
        account, invitation = _account(request, person, place)
    except SignInFailed as failed:
        response = _failed(request, failed)
    else:
        login(request, account, backend=PASSWORDS)
        request.session[VIA_PROVIDER] = True
        if invitation is not None:
            request.session[memberships.CHOSEN] = invitation.project_id
        audit.note(request, "signed in", account.name)
        response = redirect("home" if invitation is not None else place or "home")
    response.delete_cookie(COOKIE, samesite="Lax")
    return response


@require_GET
def out(request: HttpRequest) -> HttpResponse:
    """Send the browser to where the provider ends its own session."""
    _check_on()
    try:
        address = oidc.sign_out_address(request.build_absolute_uri(reverse("login")))
        if not address:
            sentence = f"{settings.OIDC_NAME} has no address for that: sign out on its own pages."
            raise SignInFailed("the provider has no end_session_endpoint", sentence, 404)
    except SignInFailed as failed:
        return _failed(request, failed)
    return redirect(address)


def _check_on() -> None:
    if not oidc.is_on():
        raise Http404("OIDC_ISSUER is not set.")


def _back(request: HttpRequest) -> str:
    """The address to which the provider sends the browser, which the operator has registered there."""
    path = reverse("sso_done")
    return settings.PUBLIC_URL.rstrip("/") + path if settings.PUBLIC_URL else request.build_absolute_uri(path)


def _from_cookie(request: HttpRequest) -> tuple[Begun, str]:
    try:
        state, nonce, verifier, place = signing.loads(request.COOKIES.get(COOKIE, ""), salt=SALT, max_age=THERE_SECONDS)
    except (signing.BadSignature, ValueError) as error:
        sentence = "This browser started no sign-in, or did so more than ten minutes ago. Start again."
        raise SignInFailed("no cookie of a begin", sentence) from error
    return Begun(state, nonce, verifier), place


def _account(request: HttpRequest, person: Person, place: str) -> tuple[Account, Invitation | None]:
    """The account of a person, and the invitation by which it was made. Raises SignInFailed."""
    account, invitation = identities.account_of(person), None
    if account is None:
        try:
            account, invitation = _new_account(request, person, _invited(place))
        except IntegrityError as error:  # the same person, or another of that name, a moment before
            sentence = "You, or someone with your name, signed in at the same moment. Try again."
            raise SignInFailed("two at the same moment", sentence) from error
    if not account.is_active:
        sentence = "Your account is not active. Ask an owner of your project."
        raise SignInFailed(f"{account.name} is not active", sentence, 403, account.name)
    return account, invitation


def _new_account(request: Any, person: Person, token: str) -> tuple[Account, Invitation | None]:
    """By an invitation, for the account that is signed in here, or as a member of a domain. Raises SignInFailed."""
    if token:
        return _by_invitation(request, person, token)
    if request.user.is_authenticated:
        identities.connect(person, request.user)
        audit.note(request, "single sign-on connected", request.user.name)
        return request.user, None
    if identities.is_let_in(person):
        account = identities.let_in(person)
        audit.note(request, "account made by single sign-on", account.name)
        return account, None
    sentence = (
        f"{settings.OIDC_NAME} knows you as {person.email or person.name}, and there is no account for you here yet. "
        "Ask an owner of your project for an invitation, open its link and sign in from there. If you have an account "
        "with a password, sign in with that and connect the two on the page Account."
    )
    who = f"{person.name[:40]!r} ({person.subject[:60]} at {person.issuer[:60]})"
    raise SignInFailed(f"{who} has no account and no invitation", sentence, 403)


def _by_invitation(request: HttpRequest, person: Person, token: str) -> tuple[Account, Invitation]:
    with transaction.atomic():
        invitation = invitations.opened_by(token)
        account = None if invitation is None else _entering(person, invitation)
        if invitation is None or account is None or not invitations.use(invitation, account):
            sentence = "The invitation is unknown, has expired, or was used or revoked. Ask for another one."
            raise SignInFailed("an invitation that does not work", sentence, 404)
    if invitation.account is None:
        audit.note(request, "joined", f"{account.name} as {invitation.role}", invitation.project)
    else:
        audit.note(request, "single sign-on connected", account.name)
    return account, invitation


def _entering(person: Person, invitation: Invitation) -> Account:
    """A new account, or the one for whose password the invitation is, which the person may use from now on."""
    if invitation.account is None:
        return identities.make_account(person)
    identities.connect(person, invitation.account)
    return invitation.account


def _invited(place: str) -> str:
    """The token of the invitation that the browser came from; "" where it came from elsewhere."""
    try:
        match = resolve(place.partition("?")[0])
    except Resolver404:
        return ""
    return str(match.kwargs["token"]) if match.url_name == "join" else ""


def _failed(request: HttpRequest, failed: SignInFailed) -> HttpResponse:
    log.warning("single sign-on: %s", failed)
    if failed.account:
        audit.note_failure(request, audit.INACTIVE, failed.account)
    else:
        audit.note_failure(request, audit.SSO_FAILED, failed, default_project())
    context = {"sentence": failed.sentence, "status": failed.status}
    response = render(request, "inspector/account/sso_failed.html", context, status=failed.status)
    if failed.status in (429, 503):
        response.headers["Retry-After"] = "5"
    return response
