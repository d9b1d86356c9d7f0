"""Which project an account works in, and changes of who belongs to a project."""

from __future__ import annotations

from django.db import transaction
from django.db.models import QuerySet

from inspector.models import Account, AccountRole, Membership, Project

CHOSEN = "project"  # the key of a session's data


class LastOwner(Exception):
    """A change would leave a project without an owner. The text is one sentence for a person."""


def of_account(account: Account) -> QuerySet[Membership]:
    """All memberships of an account, by the names of their projects."""
    return account.memberships.select_related("project").order_by("project__name", "project_id")


def current(account: Account, chosen: object) -> Membership | None:
    """The membership of the project that was chosen (its primary key), else of the first; None where there is none."""
    memberships = list(of_account(account))
    return next((one for one in memberships if one.project_id == chosen), memberships[0] if memberships else None)


def join(account: Account, project: Project, role: AccountRole) -> Membership:
    """Put an account into a project; one that is in it keeps the higher of the two roles."""
    with transaction.atomic():
        membership, is_new = Membership.objects.of(project).get_or_create(
            account=account, defaults={"role": role, "project": project}
        )
        if not is_new and AccountRole(membership.role).rank < role.rank:
            membership.role = role
            membership.save(update_fields=["role"])
    return membership


def change(membership: Membership, role: AccountRole | None) -> None:
    """Give another role, or None to remove. Raises LastOwner."""
    with transaction.atomic():
        owners = Membership.objects.of(membership.project_id).select_for_update().filter(role=AccountRole.OWNER)
        if role is not AccountRole.OWNER and [one.pk for one in owners] == [membership.pk]:
            raise LastOwner("A project needs an owner: make another member owner first.")
        if role is None:
            membership.delete()
        else:
            membership.role = role
            membership.save(update_fields=["role"])
