"""System checks: what a person should know before the server starts."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from django.conf import settings
from django.core.checks import Error, Tags, register
from django.urls import get_resolver

from inspector.accounts.access import without_rule
from inspector.project import environment

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def is_for_this_machine() -> bool:
    """Can only this machine reach the server."""
    return settings.BIND in LOOPBACK or settings.BIND.startswith("127.")


@register(Tags.security, deploy=False)
def loopback_only(app_configs: Any, **kwargs: Any) -> list[Error]:
    """Without login only this machine may reach the server."""
    if is_for_this_machine() or settings.TEAM:
        return []
    if environment.flag("LOGIN_PROXY"):
        return []
    return [
        Error(
            f"BIND={settings.BIND} would expose every session to the network, as there is no login.",
            id="inspector.E001",
        )
    ]


@register(Tags.security, deploy=False)
def single_sign_on_is_whole(app_configs: Any, **kwargs: Any) -> list[Error]:
    """What signing in at an OpenID provider needs is there."""
    if not settings.OIDC_ISSUER:
        return []
    missing = {
        "OIDC_ISSUER needs accounts: set TEAM=1.": not settings.TEAM,
        "OIDC_ISSUER needs OIDC_CLIENT_ID.": not settings.OIDC_CLIENT_ID,
        "OIDC_ISSUER is set, but the extra `oidc` is not installed.": find_spec("authlib") is None,
    }
    return [Error(words, id="inspector.E003") for words, is_missing in missing.items() if is_missing]


@register(Tags.urls)  # it loads every page
def every_address_has_a_rule(app_configs: Any, **kwargs: Any) -> list[Error]:
    """Without a rule no one may use an address."""
    patterns = get_resolver(settings.TEAM_URLS).url_patterns
    return [
        Error(
            f"The address {path!r} has no access rule: add its name to RULES in accounts/access.py.",
            id="inspector.E002",
        )
        for path in without_rule(patterns)
    ]
