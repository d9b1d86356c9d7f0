"""The audit log: who signed in, shared, revoked, deleted, made a key, changed a membership; from which address."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from inspector.accounts import limits
from inspector.models import AuditRecord, Membership, Project

# A sign-on without an account is on record in the first project, whose owners run the server; that of an account in
# the projects of its memberships.
SSO_FAILED, INACTIVE = "single sign-on failed", "single sign-on of an inactive account"


def note(request: HttpRequest | None, what: str, about: object = "", project: Project | int | None = None) -> None:
    """Remember something that was done by whoever made the request, in its project or in one that is given, also by its
    primary key. Without team mode there is no log."""
    if settings.TEAM:
        owner = project if project is not None else getattr(request, "project", None)
        AuditRecord.objects.create(
            project_id=getattr(owner, "pk", owner),
            actor=actor_of(request)[:100],
            what=what,
            about="".join(char if char.isprintable() else "�" for char in str(about)[:200]),
            address=address_of(request)[:45],
        )


def note_failure(request: HttpRequest, what: str, about: object, project: Project | None = None) -> None:
    """Remember what anyone can cause without an account: so often, however often it is caused, that the log stays
    small."""
    if not (limits.spend(limits.RECORDED_ADDRESS, address_of(request)) or limits.spend(limits.RECORDED)):
        note(request, what, about, project)


def records(project: Project) -> QuerySet[AuditRecord]:
    """What was done in a project, and the sign-ins of its members; the newest first."""
    members = Membership.objects.of(project).values("account__name")
    of_members = Q(project=None, actor__in=members) | Q(project=None, about__in=members)
    return AuditRecord.objects.filter(Q(project=project) | of_members).order_by("-at", "-pk")


def actor_of(request: Any) -> str:
    """The name of the account or key that makes a request; "" for none."""
    key = getattr(request, "key", None)
    if key is not None:
        return f"key {key.name}"
    account = getattr(request, "account", None)
    return account.name if account is not None else ""


def address_of(request: HttpRequest | None) -> str:
    """The address of the client, as a proxy of ours says, or as it connected."""
    return request.META.get("REMOTE_ADDR", "") if request is not None else ""
