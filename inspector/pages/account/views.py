"""Signing in, joining by an invitation, and one's own account."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import login, update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.contrib.auth.views import LoginView, LogoutView
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.crypto import get_random_string
from django.utils.text import slugify
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from inspector.accounts import audit, identities, invitations, limits, memberships, oidc
from inspector.models import Account, AccountRole, Invitation, Project
from inspector.models.accounts import LONGEST_NAME
from inspector.pages.account.forms import NewAccountForm, ProjectForm, SignInForm, attributes
from inspector.pages.errors.views import plain

VIA_PROVIDER = "sso"  # the key of a session's data, where an OpenID provider has signed the person in
OUT = "out"  # of the address of the login, for whom that provider has still signed in
PASSWORDS = "django.contrib.auth.backends.ModelBackend"
NO_KEY = 2**63 - 1  # which no row has; the largest that every database takes


class SignIn(LoginView):
    """Django's, with a limit on how often it is tried."""

    template_name = "inspector/account/login.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get_form(self, form_class: Any = None) -> Any:
        return attributes(super().get_form(form_class))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        signed_out = OUT in self.request.GET
        return super().get_context_data(sso=oidc.name(), signed_out=signed_out, **kwargs)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        name, address = request.POST.get("username", ""), audit.address_of(request)
        self.name = name.strip().lower()[:LONGEST_NAME]
        wait = (
            limits.spend(limits.SIGN_IN, self.name, address)
            or limits.spend(limits.SIGN_IN_ACCOUNT, self.name)
            or limits.spend(limits.SIGN_IN_ADDRESS, address)
        )
        if not wait:
            return super().post(request, *args, **kwargs)
        audit.note_failure(request, "sign-in paused", self.name)
        context = self.get_context_data(form=attributes(SignInForm(request)), wait=wait)
        response = self.render_to_response(context, status=429)
        response.headers["Retry-After"] = str(wait)
        return response

    def form_valid(self, form: Any) -> HttpResponse:
        limits.forget(limits.SIGN_IN, self.name, audit.address_of(self.request))
        response = super().form_valid(form)
        audit.note(self.request, "signed in", self.name)
        return response

    def form_invalid(self, form: Any) -> HttpResponse:
        audit.note(self.request, "sign-in failed", self.name)
        response = super().form_invalid(form)
        response.status_code = 422
        return response


class SignOut(LogoutView):
    """Django's, which the log remembers."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        audit.note(request, "signed out", audit.actor_of(request))
        is_at_provider = VIA_PROVIDER in request.session
        response = super().post(request, *args, **kwargs)
        return redirect(f"{reverse('login')}?{OUT}") if is_at_provider else response


@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest, token: str) -> HttpResponse:
    """What an invitation opens: an account is made, or the one that is signed in joins, or a password is set anew."""
    invitation = invitations.opened_by(token)
    if invitation is None:
        return _unusable_link(request)
    if invitation.account is None and request.user.is_authenticated:
        return _join_as(request, invitation, request.user)
    data = request.POST if request.method == "POST" else None
    account = invitation.account
    form = attributes(NewAccountForm(data) if account is None else SetPasswordForm(account, data))
    if request.method == "POST" and form.is_valid():
        return _enter(request, invitation, form)
    context = {"invitation": invitation, "form": form, "sso": oidc.name()}
    return render(request, "inspector/account/join.html", context, status=422 if form.errors else 200)


def _join_as(request: HttpRequest, invitation: Invitation, account: Account) -> HttpResponse:
    """A person who is signed in joins with their account, once they confirm it: a link alone changes nothing."""
    if request.method != "POST":
        return render(request, "inspector/account/join.html", {"invitation": invitation, "as_account": account})
    if not invitations.use(invitation, account):
        return _unusable_link(request)
    return _entered(request, invitation, account)


def _enter(request: HttpRequest, invitation: Invitation, form: Any) -> HttpResponse:
    with transaction.atomic():
        account: Account = form.save()
        if not invitations.use(invitation, account):
            transaction.set_rollback(True)
            return _unusable_link(request)
    login(request, account, backend=PASSWORDS)
    if invitation.account is None:
        return _entered(request, invitation, account)
    audit.note(request, "password set by a link", account.name)
    return redirect("home")


def _entered(request: HttpRequest, invitation: Invitation, account: Account) -> HttpResponse:
    request.session[memberships.CHOSEN] = invitation.project_id
    audit.note(request, "joined", f"{account.name} as {invitation.role}", invitation.project)
    return redirect("home")


def _unusable_link(request: HttpRequest) -> HttpResponse:
    sentence = "It is unknown, has expired, or was used or revoked. Ask for another one."
    return plain(request, 404, "This link does not work", sentence)


@require_GET
def account(request: HttpRequest) -> HttpResponse:
    """One's own account: projects, password."""
    return _account(request)


def _account(request: HttpRequest, status: int = 200, **forms: Any) -> HttpResponse:
    me: Account = request.user  # type: ignore[assignment]  # the gate lets no one else in
    context = {
        "memberships": memberships.of_account(me),
        "has_password": me.has_usable_password(),
        "sso": oidc.name(),
        "is_connected": identities.is_connected(me),
        "identities": me.identities.order_by("created", "pk"),
        "identity_error": forms.get("identity_error", ""),
        "password_form": forms.get("password_form") or _password_form(me),
        "project_form": forms.get("project_form") or attributes(ProjectForm()),
    }
    return render(request, "inspector/account/account.html", context, status=status)


def _password_form(me: Account, data: Any = None) -> Any:
    """Django's form, which would take the focus of a page that begins with something else."""
    form = attributes(PasswordChangeForm(me, data))
    form.fields["old_password"].widget.attrs.pop("autofocus", None)
    return form


@sensitive_post_parameters()
@require_POST
def password(request: HttpRequest) -> HttpResponse:
    """Another password. It ends every other session of the account."""
    me: Account = request.user  # type: ignore[assignment]  # as above
    if wait := limits.spend(limits.SIGN_IN, me.name, audit.address_of(request)):
        response = plain(request, 429, "Too many attempts", f"Try again in {wait:,} seconds.")
        response.headers["Retry-After"] = str(wait)
        return response
    form = _password_form(me, request.POST)
    if not form.is_valid():
        return _account(request, 422, password_form=form)
    form.save()
    limits.forget(limits.SIGN_IN, me.name, audit.address_of(request))
    update_session_auth_hash(request, me)
    audit.note(request, "password changed", me.name)
    return redirect("account")


@require_POST
def disconnect(request: HttpRequest, pk: int) -> HttpResponse:
    """End that an identity at the provider signs in to one's account, and every other session of the account."""
    me: Account = request.user  # type: ignore[assignment]  # as above
    try:
        row = identities.disconnect(me, min(pk, NO_KEY))
    except identities.LastWay:
        sentence = (
            "This is the last way to sign in to your account, which has no password. Ask an owner of your project for "
            "a link to choose one, then disconnect."
        )
        return _account(request, 422, identity_error=sentence)
    if row is None:
        return plain(request, 404, "Not connected", "Your account has no such identity (any more).")
    me.refresh_from_db()
    update_session_auth_hash(request, me)
    audit.note(request, "single sign-on disconnected", f"{me.name}: {row.subject} at {row.issuer}")
    return redirect("account")


@require_POST
def choose_project(request: HttpRequest) -> HttpResponse:
    """Work in another of one's projects."""
    me: Account = request.user  # type: ignore[assignment]  # as above
    chosen = request.POST.get("project", "")
    slugs = {one.project.slug: one.project_id for one in memberships.of_account(me)}
    if chosen not in slugs:
        return plain(request, 404, "No such project", "You belong to no project of this name.")
    request.session[memberships.CHOSEN] = slugs[chosen]
    return redirect("home")


@require_POST
def new_project(request: HttpRequest) -> HttpResponse:
    """A project that belongs to whoever makes it."""
    me: Account = request.user  # type: ignore[assignment]  # as above
    form = attributes(ProjectForm(request.POST))
    if not form.is_valid():
        return _account(request, 422, project_form=form)
    name = form.cleaned_data["name"]
    slug = f"{slugify(name)[:40] or 'project'}-{get_random_string(6, 'abcdefghjkmnpqrstuvwxyz23456789')}"
    with transaction.atomic():
        project = Project.objects.create(slug=slug, name=name)
        memberships.join(me, project, AccountRole.OWNER)
    request.session[memberships.CHOSEN] = project.pk
    audit.note(request, "project made", name, project)
    return redirect("home")
