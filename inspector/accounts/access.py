"""Who may use which address: one table, and the one place that decides by it.

Every address of the application has a rule here, by its name (or one for all names of a namespace, "api:"); a system
check fails for an address without one, and in team mode such an address is not there. What belongs to another project
is kept apart by the rows themselves (`models/projects.py`): a page of it answers 404, whoever asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpRequest
from django.urls import URLPattern, URLResolver

from inspector.accounts import keys, memberships
from inspector.models import Account, AccountRole, ApiKey, Membership, Project

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
ANYONE, SIGNED_IN = "anyone", "signed in"


class AddressRule(NamedTuple):
    """What reading an address needs, and what every other method: a role, SIGNED_IN or ANYONE. `scope`: a key with it
    may send there. A key with the scope "read" reads what a viewer reads."""

    look: str
    change: str
    scope: str = ""


OPEN = AddressRule(ANYONE, ANYONE)
PERSONAL = AddressRule(SIGNED_IN, SIGNED_IN)  # of one's own account
LOOK = AddressRule(AccountRole.VIEWER, AccountRole.VIEWER)  # a POST of it changes nothing that is stored for others
WORK = AddressRule(AccountRole.VIEWER, AccountRole.EDITOR)
FORM = AddressRule(AccountRole.EDITOR, AccountRole.EDITOR)  # a page that is nothing but a form
SEND = AddressRule(AccountRole.VIEWER, AccountRole.EDITOR, ApiKey.Scope.INGEST)
SAY = AddressRule(AccountRole.VIEWER, AccountRole.EDITOR, ApiKey.Scope.COMMENT)
OWN = AddressRule(AccountRole.OWNER, AccountRole.OWNER)

RULES: dict[str, AddressRule] = {
    # the library
    "home": WORK,
    "search": LOOK,
    "sessions_bulk": WORK,
    "sessions_restore": WORK,
    "sessions_view_save": WORK,
    "sessions_view_delete": WORK,
    "sessions_view_restore": WORK,
    "sessions_view_rename": WORK,
    "imports_dismiss": LOOK,  # a cookie of this browser
    "imports_undismiss": LOOK,
    "upload": SEND,
    "recording_raw": LOOK,
    "open_sample": WORK,
    "import_detail": LOOK,
    "import_status": LOOK,
    "import_cancel": WORK,
    "import_again": WORK,
    "import_choose": WORK,
    # a session
    "session_overview": LOOK,
    "session_figure": LOOK,
    "session_strip": LOOK,
    "session_search": LOOK,
    "session_steps": LOOK,
    "step_list": LOOK,
    "step_messages": LOOK,
    "message_part": LOOK,
    "request_part": LOOK,
    "system_part": LOOK,
    "part_old": LOOK,
    "system_part_old": LOOK,
    "selection_tokens": LOOK,  # counts what it was sent
    "compaction": LOOK,
    "compaction_old": LOOK,
    "compactions_together": LOOK,
    "compactions_share": FORM,
    "session_estimator": LOOK,
    "estimator_figure": LOOK,
    "session_rule": LOOK,
    "session_rule_settings": WORK,
    "session_context": LOOK,
    "session_difference": LOOK,
    "session_policies": LOOK,
    "session_facts": LOOK,
    "session_avoid": LOOK,
    "session_growth": LOOK,
    "session_preset_save": WORK,
    "session_preset_delete": WORK,
    "session_preset_restore": WORK,
    "session_preset_rename": WORK,
    "session_window": WORK,
    "session_rename": WORK,
    "session_delete": WORK,
    "session_share": WORK,
    "session_export": LOOK,
    "session_comments": WORK,
    "comment": LOOK,
    "comment_edit": WORK,  # one's own
    "comment_delete": WORK,  # one's own, as an owner any
    "comment_resolve": WORK,
    "replay_cancel": LOOK,  # of a computation, which is begun again by looking
    "replay_cancelled": LOOK,
    "replay_again": LOOK,
    # all sessions
    "running": LOOK,
    "connect": LOOK,
    "watching": OWN,  # of local mode: elsewhere these three answer 404
    "watching_add": OWN,
    "watching_remove": OWN,
    "webhooks": OWN,
    "webhook_add": OWN,
    "webhook_test": OWN,
    "webhook_remove": OWN,
    "triggers": LOOK,
    "triggers_rows": LOOK,
    "triggers_compactions": LOOK,
    "triggers_json": LOOK,
    "triggers_share": FORM,
    "triggers_view_save": WORK,
    "triggers_view_delete": WORK,
    "triggers_view_restore": WORK,
    "triggers_view_rename": WORK,
    "compare": LOOK,
    "compare_share": FORM,
    "sweeps": LOOK,
    "sweep_new": FORM,
    "sweep": LOOK,
    "sweep_csv": LOOK,
    "sweep_json": LOOK,
    "sweep_share": FORM,
    "sweep_cancel": WORK,
    "sweep_delete": WORK,
    "sweep_restore": WORK,
    "shares": LOOK,
    "share": LOOK,
    "share_preview": WORK,  # what a draft does not hide yet is in the session as well
    "share_review": WORK,
    "share_publish": WORK,
    "share_revoke": WORK,
    "gallery": LOOK,
    "gallery_run": WORK,
    "gallery_cancel": WORK,
    "gallery_open": WORK,
    "gallery_new": WORK,
    "gallery_step": LOOK,
    "help": LOOK,
    "tour": LOOK,
    "go": LOOK,
    "policies": LOOK,
    "policy": LOOK,
    # what programs use
    "api:": SEND,
    "api:comments": SAY,
    "api:delete_comment": SAY,  # one's own
    "api:resolve_comment": SAY,
    "otlp_traces": SEND,
    "otlp_logs": SEND,
    # without an account
    "report": OPEN,
    "report_file": OPEN,
    "health": OPEN,
    "ready": OPEN,
    "metrics": OPEN,  # by a token of their own
    # accounts and the team
    "login": OPEN,
    "join": OPEN,
    "sso_begin": OPEN,
    "sso_done": OPEN,
    "sso_out": OPEN,
    "logout": PERSONAL,
    "account": PERSONAL,
    "account_password": PERSONAL,
    "account_disconnect": PERSONAL,
    "account_project": PERSONAL,
    "project_new": PERSONAL,
    "team": OWN,
    "team_member": OWN,
    "team_invite": OWN,
    "team_uninvite": OWN,
    "team_key": OWN,
    "team_key_revoke": OWN,
    "team_audit": OWN,
    "team_keeping": OWN,
}


def rule_of(name: str) -> AddressRule | None:
    """The rule of an address by its full name; None where it has none."""
    namespace, colon, _ = name.partition(":")
    return RULES.get(name) or (RULES.get(namespace + colon) if colon else None)


class Caller(NamedTuple):
    """Who makes a request: an account with its membership of the project that it works in, or a key."""

    account: Account | None = None
    membership: Membership | None = None
    key: ApiKey | None = None

    @property
    def project(self) -> Project | None:
        """The project whose rows alone the request may see."""
        row = self.key or self.membership
        return None if row is None else row.project

    @property
    def is_known(self) -> bool:
        """Has it shown who it is."""
        return self.account is not None or self.key is not None


def caller_of(request: HttpRequest) -> Caller:
    """Who makes a request. Where it names a key that alone counts, and its cookies do not."""
    text = keys.given(request.headers)
    if text is not None:
        return Caller(key=keys.opened_by(text))
    return caller_of_session(request.user, request.session)


def caller_of_session(user: Any, session: Any) -> Caller:
    """Who has signed in with a browser."""
    if not (user.is_authenticated and user.is_active):
        return Caller()
    return Caller(account=user, membership=memberships.current(user, session.get(memberships.CHOSEN)))


def may(caller: Caller, rule: AddressRule, method: str) -> bool:
    """May this caller use an address with this rule."""
    needed = rule.look if method in SAFE else rule.change
    if needed == ANYONE:
        return True
    if caller.key is not None:
        if method in SAFE:
            return needed == AccountRole.VIEWER and caller.key.may(ApiKey.Scope.READ)
        return bool(rule.scope) and caller.key.may(rule.scope)
    if needed == SIGNED_IN:
        return caller.account is not None
    return caller.membership is not None and caller.membership.allows(AccountRole(needed))


def allows(request: HttpRequest, name: str, method: str = "POST") -> bool:
    """May whoever makes a request use the address of this name with this method. Without team mode everyone may."""
    if not settings.TEAM:
        return True
    rule = rule_of(name)
    caller = Caller(*(getattr(request, field, None) for field in Caller._fields))
    return rule is not None and may(caller, rule, method)


def without_rule(patterns: Iterable[Any]) -> list[str]:
    """The addresses that have no rule."""
    return [path for path, name in routes(patterns) if rule_of(name) is None]


def routes(patterns: Iterable[Any], path: str = "", namespace: str = "") -> Iterator[tuple[str, str]]:
    """Every address as it is written, with its full name."""
    for item in patterns:
        here = path + str(item.pattern)
        if isinstance(item, URLResolver):
            inner = f"{namespace}{item.namespace}:" if item.namespace else namespace
            yield from routes(item.url_patterns, here, inner)
        elif isinstance(item, URLPattern):
            yield here, namespace + (item.name or "")
