"""Members, invitations, keys, what is kept, and the audit log of a project, for its owners."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from inspector.accounts import audit, invitations, keys, memberships
from inspector.ingest.uploads import used_bytes
from inspector.models import AccountRole, ApiKey, Invitation, Membership
from inspector.pages.errors.views import plain
from inspector.pages.shared.project import project_of
from inspector.storage import retention

SHOWN = 200  # members, invitations, keys
SHOWN_RECORDS = 100
LONGEST_KEY_NAME = 60  # characters
MEGABYTE = 10**6
KEEPING = {"days": "The number of days", "keep": "The size to keep", "quota": "The quota"}
LIFETIMES: dict[str, timedelta | None] = {"30": timedelta(days=30), "365": timedelta(days=365), "": None}


@require_GET
def team(request: HttpRequest) -> HttpResponse:
    """Who belongs to the project, who is invited, and the keys of programs."""
    return _team(request)


def _team(request: HttpRequest, status: int = 200, **more: Any) -> HttpResponse:
    project, now = project_of(request), timezone.now()
    invited = Invitation.objects.of(project).filter(used=None, revoked=None, expires__gt=now)
    sizes = {"keep": project.keep_bytes, "quota": project.quota_bytes}
    megabytes = {name: size // MEGABYTE if size else "" for name, size in sizes.items()}
    context = {
        "members": Membership.objects.of(project).select_related("account").order_by("account__name")[:SHOWN],
        "invitations": invited.order_by("-created")[:SHOWN],
        "keys": [
            {"row": row, "is_open": row.is_open(now)} for row in ApiKey.objects.of(project).order_by("-created")[:SHOWN]
        ],
        "roles": AccountRole.values,
        "scopes": ApiKey.Scope.values,
        "typed": {"days": project.keep_days or "", **megabytes},
        "used": used_bytes(project),
        **more,
    }
    return render(request, "inspector/team/team.html", context, status=status)


@require_POST
def member(request: HttpRequest, pk: int) -> HttpResponse:
    """Give a member another role, or remove it."""
    row = get_object_or_404(Membership.objects.of(project_of(request)).select_related("account"), pk=_small(pk))
    wanted = request.POST.get("role", "")
    if wanted not in (*AccountRole.values, "remove"):
        return plain(request, 400, "No such role", f"The roles are {', '.join(AccountRole.values)}.")
    try:
        memberships.change(row, None if wanted == "remove" else AccountRole(wanted))
    except memberships.LastOwner as error:
        return _team(request, 422, error=str(error))
    audit.note(request, "member removed" if wanted == "remove" else f"role {wanted}", row.account.name)
    return redirect("team")


@require_POST
def invite(request: HttpRequest) -> HttpResponse:
    """Make a link that lets one person in; this one answer has it."""
    wanted = request.POST.get("role", "")
    if wanted not in AccountRole.values:
        return plain(request, 400, "No such role", f"The roles are {', '.join(AccountRole.values)}.")
    _, token = invitations.invite(project_of(request), AccountRole(wanted), audit.actor_of(request))
    audit.note(request, "invited", wanted)
    link = invitations.address_of(request.build_absolute_uri("/"), token)
    return _team(request, link=link, link_role=wanted)


@require_POST
def uninvite(request: HttpRequest, pk: int) -> HttpResponse:
    """End an invitation."""
    row = get_object_or_404(Invitation.objects.of(project_of(request)), pk=_small(pk))
    invitations.revoke(row)
    audit.note(request, "invitation revoked", row.role)
    return redirect("team")


@require_POST
def make_key(request: HttpRequest) -> HttpResponse:
    """Make a key; this one answer has it."""
    name = " ".join(request.POST.get("name", "").split())[:LONGEST_KEY_NAME]
    scopes = [scope for scope in ApiKey.Scope.values if scope in request.POST.getlist("scope")]
    lifetime = request.POST.get("lifetime", "")
    if not (name and name.isprintable() and scopes and lifetime in LIFETIMES):
        return _team(request, 422, error="A key needs a name and at least one scope.")
    row, text = keys.make(project_of(request), name, scopes, audit.actor_of(request), LIFETIMES[lifetime])
    audit.note(request, "key made", f"{row.name} ({row.prefix}…): {row.scopes}")
    return _team(request, key_text=text, key_name=row.name)


@require_POST
def revoke_key(request: HttpRequest, pk: int) -> HttpResponse:
    """End a key at once."""
    row = get_object_or_404(ApiKey.objects.of(project_of(request)), pk=_small(pk))
    if keys.revoke(row):
        audit.note(request, "key revoked", f"{row.name} ({row.prefix}…)")
    return redirect("team")


@require_POST
def keeping(request: HttpRequest) -> HttpResponse:
    """How long and how much is kept; a preview changes nothing and lists what would be deleted."""
    project, typed = project_of(request), {name: request.POST.get(name, "").strip() for name in KEEPING}
    wrong = [words for name, words in KEEPING.items() if _amount(typed[name]) == 0]
    if wrong:
        words = f"{wrong[0]} is a whole number from 1 on, or empty for no limit."
        return _team(request, 422, error=words, typed=typed)
    rules = retention.Rules(_amount(typed["days"]), _bytes(typed["keep"]))
    if request.POST.get("action") != "save":
        due = retention.due(project, rules, timezone.now()).select_related("recording").order_by("created")
        return _team(request, typed=typed, due=due[:SHOWN], due_count=due.count())
    project.keep_days, project.keep_bytes = rules
    project.quota_bytes = _bytes(typed["quota"])
    project.save(update_fields=["keep_days", "keep_bytes", "quota_bytes"])
    audit.note(request, "retention set", f"{rules.describe()}; quota {typed['quota'] or 'none'} MB")
    return redirect("team")


def _amount(text: str) -> int | None:
    """A number from 1 on; None where nothing was typed, 0 for anything else."""
    if not text:
        return None
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 6 else 0


def _bytes(text: str) -> int | None:
    megabytes = _amount(text)
    return None if megabytes is None else megabytes * MEGABYTE


@require_GET
def audit_log(request: HttpRequest) -> HttpResponse:
    """What was done, the newest first; `before` is the number of the last record of the page before."""
    before = request.GET.get("before", "")
    records = audit.records(project_of(request))
    if before.isascii() and before.isdigit() and len(before) < 19:
        records = records.filter(pk__lt=int(before))
    rows = list(records[: SHOWN_RECORDS + 1])
    more = rows[SHOWN_RECORDS - 1].pk if len(rows) > SHOWN_RECORDS else None
    return render(request, "inspector/team/audit.html", {"records": rows[:SHOWN_RECORDS], "more": more})


def _small(pk: int) -> int:
    """A number that every database takes as a key; 0, which no row has, for a larger one."""
    return pk if pk < 2**63 else 0
